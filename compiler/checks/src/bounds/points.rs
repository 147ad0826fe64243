//! A check of points one by one, as code of tile IR in front of the nest. The ends of ranges would say too much: where
//! guards exclude an end, it need not be inside, and what tables hold is known only when they are looked into.
//!
//! Points are taken in the order of the interpreter (the first axis fastest), and tables are looked up as it does. An
//! entry that ends the launch by itself (PA-1071) ends the checking: what comes after it is never touched.

use super::check::{Checks, End};
use super::claim::{Claim, Entry, Nest, Uneven};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{CheckId, For, If, Label, Op, Region, Scope, Stmt, Ty, Value};
use ptoc_isa::{BinOp, CmpOp, Oob, RoundMode};
use ptoc_tensor::DType;

/// What is checked, and where.
#[derive(Clone, Copy)]
struct At<'c> {
    claim: &'c Claim,
    nest: &'c Nest,
    check: CheckId,
    /// What an entry that ends the launch leaves.
    scope: Label,
    span: Span,
}

impl Checks<'_> {
    /// Loops over the points of a claim, with its check inside.
    pub(super) fn points(&mut self, claim: &Claim, nest: &Nest, check: CheckId, span: Span, out: &mut Region) {
        self.extents.clear();
        let scope = self.kernel.labels.push(span);
        let mut body = Region::new();
        self.axes(&nest.axes, At { claim, nest, check, scope, span }, &mut body);
        self.point.clear();
        out.push(Stmt { op: Op::Scope(Box::new(Scope { label: scope, role: None, body })), span });
    }

    /// The last axis is the outermost loop.
    fn axes(&mut self, axes: &[(Value, Value)], at: At<'_>, out: &mut Region) {
        let Some((&(axis, hi), inner)) = axes.split_last() else { return self.guarded(at, out) };
        let (label, lo) = (self.kernel.labels.push(at.span), self.constant(0));
        let index = self.value(Ty::Index, at.span);
        self.point.insert(axis, index);
        let mut body = Region::new();
        self.axes(inner, at, &mut body);
        out.push(Stmt { op: Op::For(Box::new(For { label, index, lo, hi, stages: 1, body })), span: at.span });
    }

    /// A point at which a guard fails is none. A guard whose numbers are too far to be compared is taken to hold.
    fn guarded(&mut self, at: At<'_>, out: &mut Region) {
        let span = at.span;
        let mut hold = Vec::new();
        for (sum, bound) in &at.nest.guards {
            let mut near = Vec::new();
            let value = self.sum(sum, End::Most, &mut near, span, out);
            self.near(value, &mut near, span, out);
            self.near(*bound, &mut near, span, out);
            let (near, below) = (self.all(&near, span, out), self.compare(CmpOp::Lt, value, *bound, span, out));
            let far = self.value(Ty::BOOL, span);
            out.push(Stmt { op: Op::Unary { dst: far, op: ptoc_isa::UnOp::Not, a: near }, span });
            hold.push(self.binary(BinOp::Or, far, below, span, out));
        }
        if hold.is_empty() {
            return self.entries(&at.nest.entries, at, out);
        }
        let cond = self.all(&hold, span, out);
        let mut then = Region::new();
        self.entries(&at.nest.entries, at, &mut then);
        out.push(Stmt { op: Op::If(Box::new(If { cond, then, els: Region::new() })), span });
    }

    /// Looks up tables in their order, and compares.
    fn entries(&mut self, entries: &[Entry], at: At<'_>, out: &mut Region) {
        let Some((entry, rest)) = entries.split_first() else {
            return self.compare_sums(at.claim, at.check, Vec::new(), at.span, out);
        };
        let span = at.span;
        let place = self.sum(&entry.at, End::Most, &mut Vec::new(), span, out);
        let dtype = self.kernel.tensors[entry.tensor].dtype;
        let raw = self.value(Ty::D(dtype), span);
        out.push(Stmt { op: Op::Load { dst: raw, tensor: entry.tensor, offset: place }, span });
        let (zero, one) = (self.constant(0), self.constant(1));
        let (value, counts) = match entry.oob {
            Oob::Clamp => {
                let read = self.converted(raw, Ty::Index, span, out);
                let last = self.binary(BinOp::Sub, entry.extent, one, span, out);
                let below = self.binary(BinOp::Min, read, last, span, out);
                let inside = self.binary(BinOp::Max, below, zero, span, out);
                (inside, self.compare(CmpOp::Ge, entry.extent, one, span, out))
            }
            Oob::Wrap => {
                // u64 has entries that `index` does not.
                let ty = if dtype == DType::U64 { Ty::D(dtype) } else { Ty::Index };
                let extent = self.binary(BinOp::Max, entry.extent, one, span, out);
                let (read, extent) = (self.converted(raw, ty, span, out), self.converted(extent, ty, span, out));
                let inside = self.binary(BinOp::Rem, read, extent, span, out);
                let inside = self.converted(inside, Ty::Index, span, out);
                (inside, self.compare(CmpOp::Ge, entry.extent, one, span, out))
            }
            Oob::Undefined | Oob::Zero => {
                let read = self.converted(raw, Ty::Index, span, out);
                let (above, below) = (
                    self.compare(CmpOp::Ge, read, zero, span, out),
                    self.compare(CmpOp::Lt, read, entry.extent, span, out),
                );
                (read, self.binary(BinOp::And, above, below, span, out))
            }
        };
        self.point.insert(entry.value, value);
        let (mut then, mut els) = (Region::new(), Region::new());
        self.entries(rest, at, &mut then);
        if entry.oob != Oob::Zero {
            els.push(Stmt { op: Op::Leave(at.scope), span });
        }
        out.push(Stmt { op: Op::If(Box::new(If { cond: counts, then, els })), span });
    }

    /// To another type of integers; beyond its ends, the nearest.
    fn converted(&mut self, a: Value, ty: Ty, span: Span, out: &mut Region) -> Value {
        if self.kernel.values[a].ty == ty {
            return a;
        }
        let dst = self.value(ty, span);
        out.push(Stmt { op: Op::Convert { dst, a, round: RoundMode::Trunc, saturate: true }, span });
        dst
    }

    /// Where a swizzle puts an element: [`ptoc_layout::Swizzle::apply`].
    pub(super) fn swizzled(&mut self, uneven: Uneven, low: Value, span: Span, out: &mut Region) -> Value {
        let (swizzle, scale) = (uneven.swizzle, self.constant(uneven.scale));
        let (mask, shift) = (self.constant(swizzle.source_mask()), self.constant(i64::from(swizzle.shift()).abs()));
        let number = self.binary(BinOp::Div, low, scale, span, out);
        let field = self.binary(BinOp::And, number, mask, span, out);
        let op = if swizzle.shift() >= 0 { BinOp::Shr } else { BinOp::Shl };
        let moved = self.binary(op, field, shift, span, out);
        let number = self.binary(BinOp::Xor, number, moved, span, out);
        self.binary(BinOp::Mul, number, scale, span, out)
    }
}
