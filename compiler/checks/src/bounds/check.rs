//! Checks for what is not proved, in front of the access.
//!
//! A sum is compared without overflow: each product counts only if a division shows that it has not wrapped, and no
//! term only if it is beyond every memory. Of a box of points the ends are compared; points that guards or tables
//! decide about are gone through one by one ([`super::points`]).

use super::Open;
use super::claim::{Bound, Claim, Nest, Sum};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{CheckData, CheckId, Const, Kernel, Op, Region, Stmt, Ty, Value, ValueData};
use ptoc_isa::{BinOp, CmpOp};
use rustc_hash::FxHashMap;

/// Numbers beyond this are beyond every memory: sums of a few of them do not overflow.
const FAR: i64 = 1 << 56;

/// Which end of a range of indices is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Least,
    Most,
}

/// Inserts checks into a kernel.
pub(super) struct Checks<'k> {
    pub(super) kernel: &'k mut Kernel,
    constants: FxHashMap<i64, Value>,
    fresh: Region,
    /// What indices and entries of a point are at the place at hand.
    pub(super) point: FxHashMap<Value, Value>,
    /// Extents of the indices of a box, as guards leave them.
    pub(super) extents: FxHashMap<Value, Value>,
}

impl<'k> Checks<'k> {
    pub fn new(kernel: &'k mut Kernel) -> Checks<'k> {
        Checks {
            kernel,
            constants: FxHashMap::default(),
            fresh: Region::new(),
            point: FxHashMap::default(),
            extents: FxHashMap::default(),
        }
    }

    /// Puts each check before its statement; `open` is in the order of a walk.
    pub fn insert(&mut self, open: &[Open]) {
        let mut body = std::mem::take(&mut self.kernel.body);
        self.region(&mut body, &mut { open }, &mut 0);
        self.kernel.body = body;
    }

    /// New constants stand where everything sees them.
    pub fn finish(self) {
        self.kernel.prologue.splice(0..0, self.fresh);
    }

    fn region(&mut self, region: &mut Region, open: &mut &[Open], at: &mut usize) {
        let mut out = Region::with_capacity(region.len());
        for mut stmt in std::mem::take(region) {
            while let Some(((_, span, bound), rest)) = open.split_first().filter(|(o, _)| o.0 == *at) {
                *open = rest;
                self.check(bound, *span, &mut out);
            }
            *at += 1;
            match &mut stmt.op {
                Op::For(f) => self.region(&mut f.body, open, at),
                Op::If(i) => {
                    self.region(&mut i.then, open, at);
                    self.region(&mut i.els, open, at);
                }
                Op::While(w) => {
                    self.region(&mut w.head, open, at);
                    self.region(&mut w.body, open, at);
                }
                Op::Scope(s) => self.region(&mut s.body, open, at),
                _ => {}
            }
            out.push(stmt);
        }
        *region = out;
    }

    /// What tests a bound, at the end of `out`.
    pub fn check(&mut self, bound: &Bound, span: Span, out: &mut Region) {
        let claim = &bound.claim;
        let data = CheckData {
            code: bound.what.code(),
            message: format!("{}: {{0}} > {{1}}", bound.what.text(self.kernel)),
            span,
            help: None,
        };
        let check = self.kernel.checks.push(data);
        match &claim.nest {
            Some(nest) if !nest.is_box() || claim.swizzle.is_some() => self.points(claim, nest, check, span, out),
            _ => {
                self.extents.clear();
                let mut none = Vec::new();
                let mut extents = claim.unless_empty.clone();
                if let Some(nest) = &claim.nest {
                    self.extents.extend(nest.axes.iter().copied());
                    none = self.limits(nest, span, out);
                    let shorter = nest.axes.iter().map(|a| self.extents[&a.0]);
                    extents.extend(shorter.zip(&nest.axes).filter(|(n, a)| *n != a.1).map(|(n, _)| n));
                }
                let one = self.constant(1);
                for v in extents {
                    none.push(self.compare(CmpOp::Lt, v, one, span, out));
                }
                self.compare_sums(claim, check, none, span, out);
            }
        }
    }

    /// Extents of a box as its guards leave them; where one of these holds, nothing of it is left. A guard whose
    /// numbers are too far to be compared is taken to hold.
    fn limits(&mut self, nest: &Nest, span: Span, out: &mut Region) -> Vec<Value> {
        let mut none = Vec::new();
        for limit in nest.guards.iter().filter_map(|g| nest.limit(g)) {
            let mut near = Vec::new();
            let start = self.sum(&limit.start, End::Most, &mut near, span, out);
            self.near(start, &mut near, span, out);
            self.near(limit.bound, &mut near, span, out);
            let near = self.all(&near, span, out);
            let Some((index, step)) = limit.axis else {
                let fails = self.compare(CmpOp::Ge, start, limit.bound, span, out);
                none.push(self.binary(BinOp::And, near, fails, span, out));
                continue;
            };
            // The first index at which it fails: (bound - start) / step, rounded up.
            let extent = self.extents[&index];
            let mut shorter = self.binary(BinOp::Sub, limit.bound, start, span, out);
            if step > 1 {
                let (less, step) = (self.constant(step - 1), self.constant(step));
                shorter = self.binary(BinOp::Add, shorter, less, span, out);
                shorter = self.binary(BinOp::Div, shorter, step, span, out);
            }
            shorter = self.binary(BinOp::Min, shorter, extent, span, out);
            let dst = self.value(Ty::Index, span);
            out.push(Stmt { op: Op::Select { dst, cond: near, a: shorter, b: extent }, span });
            self.extents.insert(index, dst);
        }
        none
    }

    /// `low <= high`, at the ends of the indices of a box, unless one of these holds.
    pub(super) fn compare_sums(
        &mut self,
        claim: &Claim,
        check: CheckId,
        unless: Vec<Value>,
        span: Span,
        out: &mut Region,
    ) {
        let mut holds = Vec::new();
        let mut low = self.sum(&claim.low, End::Most, &mut holds, span, out);
        if let Some(uneven) = claim.swizzle {
            low = self.swizzled(uneven, low, span, out);
        }
        let high = self.sum(&claim.high, End::Least, &mut holds, span, out);
        holds.push(self.compare(CmpOp::Le, low, high, span, out));
        let mut cond = self.all(&holds, span, out);
        for empty in unless {
            cond = self.binary(BinOp::Or, cond, empty, span, out);
        }
        out.push(Stmt { op: Op::Check { cond, check, args: vec![low, high] }, span });
    }

    /// Whether all of them hold.
    pub(super) fn all(&mut self, holds: &[Value], span: Span, out: &mut Region) -> Value {
        let (first, rest) = holds.split_first().expect("there is something that must hold");
        rest.iter().fold(*first, |all, h| self.binary(BinOp::And, all, *h, span, out))
    }

    /// A sum, and conditions under which it has not overflowed. An index of a box has the end at which its term is
    /// largest or smallest.
    pub(super) fn sum(&mut self, sum: &Sum, end: End, holds: &mut Vec<Value>, span: Span, out: &mut Region) -> Value {
        // A value alone needs no arithmetic.
        if let Some(v) = sum.value().filter(|v| !self.extents.contains_key(v)) {
            return self.point.get(&v).copied().unwrap_or(v);
        }
        let mut whole = self.constant(sum.constant);
        for (factors, n) in &sum.terms {
            let mut product = self.constant(*n);
            let mut to_an_end = false;
            for f in factors {
                let f = match (self.point.get(f), self.extents.get(f).copied()) {
                    (Some(v), _) => *v,
                    (None, Some(extent)) => {
                        to_an_end = true;
                        let one = self.constant(1);
                        self.near(extent, holds, span, out);
                        self.binary(BinOp::Sub, extent, one, span, out)
                    }
                    (None, None) => *f,
                };
                product = match self.is_one(product) {
                    true => {
                        self.near(f, holds, span, out);
                        f
                    }
                    false => self.product(product, f, holds, span, out),
                };
            }
            if to_an_end {
                let (zero, op) = (self.constant(0), if end == End::Most { BinOp::Max } else { BinOp::Min });
                product = self.binary(op, product, zero, span, out);
            }
            whole = self.binary(BinOp::Add, whole, product, span, out);
        }
        whole
    }

    /// `a * f`, and conditions under which it is near.
    fn product(&mut self, a: Value, f: Value, holds: &mut Vec<Value>, span: Span, out: &mut Region) -> Value {
        self.near(f, holds, span, out);
        let next = self.binary(BinOp::Mul, a, f, span, out);
        // The quotient is the factor, or the factor is 0; near numbers have no other way to come back.
        let q = self.binary(BinOp::Div, next, f, span, out);
        let (same, zero) = (self.compare(CmpOp::Eq, q, a, span, out), self.constant(0));
        let none = self.compare(CmpOp::Eq, f, zero, span, out);
        holds.push(self.binary(BinOp::Or, same, none, span, out));
        self.near(next, holds, span, out);
        next
    }

    /// Adds the conditions that `v` is within [`FAR`] to `holds`.
    pub(super) fn near(&mut self, v: Value, holds: &mut Vec<Value>, span: Span, out: &mut Region) {
        let (low, high) = (self.constant(-FAR), self.constant(FAR));
        holds.push(self.compare(CmpOp::Ge, v, low, span, out));
        holds.push(self.compare(CmpOp::Le, v, high, span, out));
    }

    pub(super) fn constant(&mut self, n: i64) -> Value {
        if let Some(v) = self.constants.get(&n) {
            return *v;
        }
        let dst = self.value(Ty::Index, Span::default());
        self.fresh.push(Stmt { op: Op::Const { dst, value: Const::index(n) }, span: Span::default() });
        self.constants.insert(n, dst);
        dst
    }

    fn is_one(&self, v: Value) -> bool {
        self.constants.get(&1) == Some(&v)
    }

    /// The constants that were made.
    pub fn numbers(&self) -> FxHashMap<Value, i64> {
        self.constants.iter().map(|(n, v)| (*v, *n)).collect()
    }

    pub(super) fn value(&mut self, ty: Ty, span: Span) -> Value {
        self.kernel.values.push(ValueData { ty, name: None, span })
    }

    pub(super) fn binary(&mut self, op: BinOp, a: Value, b: Value, span: Span, out: &mut Region) -> Value {
        let dst = self.value(self.kernel.values[a].ty, span);
        out.push(Stmt { op: Op::Binary { dst, op, a, b }, span });
        dst
    }

    pub(super) fn compare(&mut self, op: CmpOp, a: Value, b: Value, span: Span, out: &mut Region) -> Value {
        let dst = self.value(Ty::BOOL, span);
        out.push(Stmt { op: Op::Compare { dst, op, a, b }, span });
        dst
    }
}
