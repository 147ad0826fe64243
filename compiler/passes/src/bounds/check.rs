//! Checks for what is not proved, in front of the access.
//!
//! A sum is compared without overflow: its terms are taken from what is left, each product only after a division has shown
//! that it fits.

use super::Open;
use super::obligations::{Bound, Sum};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{CheckData, Const, Kernel, Op, Region, Stmt, Ty, Value, ValueData};
use ptoc_isa::{BinOp, CmpOp};
use rustc_hash::FxHashMap;

/// Numbers beyond this are beyond every memory: sums of a few of them do not overflow.
const FAR: i64 = 1 << 56;

/// Inserts checks into a kernel.
pub(super) struct Checks<'k> {
    kernel: &'k mut Kernel,
    constants: FxHashMap<i64, Value>,
    fresh: Region,
}

impl<'k> Checks<'k> {
    pub fn new(kernel: &'k mut Kernel) -> Checks<'k> {
        Checks { kernel, constants: FxHashMap::default(), fresh: Region::new() }
    }

    /// Puts each check before its statement; `open` is in the order of a walk.
    pub fn insert(&mut self, open: &mut Vec<Open>) {
        let mut body = std::mem::take(&mut self.kernel.body);
        open.reverse();
        self.region(&mut body, open, &mut 0);
        self.kernel.body = body;
    }

    /// New constants stand where everything sees them.
    pub fn finish(self) {
        self.kernel.prologue.splice(0..0, self.fresh);
    }

    fn region(&mut self, region: &mut Region, open: &mut Vec<Open>, at: &mut usize) {
        let mut out = Region::with_capacity(region.len());
        for mut stmt in std::mem::take(region) {
            while open.last().is_some_and(|(n, ..)| *n == *at) {
                if let Some((_, span, bound)) = open.pop() {
                    self.check(&bound, span, &mut out);
                }
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

    fn check(&mut self, bound: &Bound, span: Span, out: &mut Region) {
        let mut holds = Vec::new();
        let claim = &bound.claim;
        let low = self.sum(&claim.low, &mut holds, span, out);
        let high = self.sum(&claim.high, &mut holds, span, out);
        holds.push(self.compare(CmpOp::Le, low, high, span, out));
        let mut cond = holds[0];
        for h in &holds[1..] {
            cond = self.binary(BinOp::And, cond, *h, span, out);
        }
        // Nothing is touched where an extent is empty.
        let one = self.constant(1);
        for v in &claim.unless_empty {
            let empty = self.compare(CmpOp::Lt, *v, one, span, out);
            cond = self.binary(BinOp::Or, cond, empty, span, out);
        }
        let message = format!("{}: {{0}} > {{1}}", bound.what.text(self.kernel));
        let data = CheckData { code: bound.what.code(), message, span, help: None };
        let check = self.kernel.checks.push(data);
        out.push(Stmt { op: Op::Check { cond, check, args: vec![low, high] }, span });
    }

    /// A sum, and conditions under which it has not overflowed.
    fn sum(&mut self, sum: &Sum, holds: &mut Vec<Value>, span: Span, out: &mut Region) -> Value {
        // A value alone needs no arithmetic.
        if let Some(v) = sum.value() {
            return v;
        }
        let mut whole = self.constant(sum.constant);
        for (factors, n) in &sum.terms {
            let mut product = self.constant(*n);
            for f in factors {
                self.near(*f, holds, span, out);
                let next = self.binary(BinOp::Mul, product, *f, span, out);
                // The quotient is the factor, or the factor is 0; near numbers have no other way to come back.
                let q = self.binary(BinOp::Div, next, *f, span, out);
                let (same, zero) = (self.compare(CmpOp::Eq, q, product, span, out), self.constant(0));
                let none = self.compare(CmpOp::Eq, *f, zero, span, out);
                holds.push(self.binary(BinOp::Or, same, none, span, out));
                self.near(next, holds, span, out);
                product = next;
            }
            whole = self.binary(BinOp::Add, whole, product, span, out);
        }
        whole
    }

    /// Is it within [`FAR`]?
    fn near(&mut self, v: Value, holds: &mut Vec<Value>, span: Span, out: &mut Region) {
        let (low, high) = (self.constant(-FAR), self.constant(FAR));
        holds.push(self.compare(CmpOp::Ge, v, low, span, out));
        holds.push(self.compare(CmpOp::Le, v, high, span, out));
    }

    fn constant(&mut self, n: i64) -> Value {
        if let Some(v) = self.constants.get(&n) {
            return *v;
        }
        let dst = self.kernel.values.push(ValueData { ty: Ty::Index, name: None, span: Span::default() });
        self.fresh.push(Stmt { op: Op::Const { dst, value: Const::index(n) }, span: Span::default() });
        self.constants.insert(n, dst);
        dst
    }

    fn binary(&mut self, op: BinOp, a: Value, b: Value, span: Span, out: &mut Region) -> Value {
        let ty = self.kernel.values[a].ty;
        let dst = self.kernel.values.push(ValueData { ty, name: None, span });
        out.push(Stmt { op: Op::Binary { dst, op, a, b }, span });
        dst
    }

    fn compare(&mut self, op: CmpOp, a: Value, b: Value, span: Span, out: &mut Region) -> Value {
        let dst = self.kernel.values.push(ValueData { ty: Ty::BOOL, name: None, span });
        out.push(Stmt { op: Op::Compare { dst, op, a, b }, span });
        dst
    }
}
