//! The expressions of element-wise instructions in loop IR: each node is what the language's operation is (`ops`),
//! nodes that occur more than once are computed once.
//!
//! Between operations narrow integers are kept in range; floats stay f32 until they are stored.

use super::code::FunctionBuilder;
use super::{convert, math, ops};
use ptoc_ir::formula::{largest, working};
use ptoc_ir::loops::{BinOp as L, Reg};
use ptoc_ir::scalar;
use ptoc_ir::tile::{InstAttrs, Ty};
use ptoc_isa::{BinOp, CmpOp, Expr, RoundMode, To};
use ptoc_tensor::DType;

/// The element of type `dst` that the expression makes of one element of each source. It is left as computed: what
/// stores it narrows it.
pub(super) fn emit(
    code: &mut FunctionBuilder,
    expr: &Expr,
    dst: DType,
    sources: &[(DType, Reg)],
    attrs: &InstAttrs,
) -> Reg {
    Emit { sources, attrs, dst, done: Vec::new() }.value(code, expr).1
}

struct Emit<'a> {
    sources: &'a [(DType, Reg)],
    attrs: &'a InstAttrs,
    dst: DType,
    done: Vec<(Expr, (DType, Reg))>,
}

impl Emit<'_> {
    /// Settled: a narrow integer is in range.
    fn settled(&mut self, code: &mut FunctionBuilder, e: &Expr) -> (DType, Reg) {
        if let Some((_, there)) = self.done.iter().find(|(x, _)| x == e) {
            return *there;
        }
        let (d, r) = self.value(code, e);
        let settled = (d, ops::settle(code, Ty::D(d), r));
        self.done.push((*e, settled));
        settled
    }

    fn value(&mut self, code: &mut FunctionBuilder, e: &Expr) -> (DType, Reg) {
        match *e {
            Expr::Arg(k) => (working(self.sources[k - 1].0), self.sources[k - 1].1),
            Expr::Number(n, k) => {
                let d = working(self.sources[k - 1].0);
                (d, ops::number(code, Ty::D(d), n))
            }
            Expr::Bin(op, a, b) => {
                let ((d, a), (_, b)) = (self.settled(code, a), self.settled(code, b));
                (d, ops::binary(code, Ty::D(d), op, a, b))
            }
            Expr::Un(op, a) => {
                let (d, a) = self.settled(code, a);
                (d, ops::unary(code, Ty::D(d), op, a))
            }
            Expr::Fma(a, b, c) => {
                let ((d, a), (_, b), (_, c)) = (self.settled(code, a), self.settled(code, b), self.settled(code, c));
                if d.is_float() {
                    return (d, code.fma(a, b, c));
                }
                let product = ops::binary(code, Ty::D(d), BinOp::Mul, a, b);
                (d, ops::binary(code, Ty::D(d), BinOp::Add, product, c))
            }
            Expr::Pow(a, b) => {
                let ((d, a), (_, b)) = (self.settled(code, a), self.settled(code, b));
                (d, if d.is_float() { math::pow(code, a, b) } else { math::int_pow(code, d, a, b) })
            }
            Expr::Cmp(op, a, b) => self.compare(code, op, a, b),
            Expr::CmpMode(a, b) => self.compare(code, self.attrs.cmp.unwrap_or(CmpOp::Eq), a, b),
            Expr::Select(c, a, b) => {
                let ((_, c), (d, a), (_, b)) = (self.settled(code, c), self.settled(code, a), self.settled(code, b));
                (d, code.select(c, a, b))
            }
            Expr::Convert(a, to) => self.convert(code, a, to),
        }
    }

    fn compare(&mut self, code: &mut FunctionBuilder, op: CmpOp, a: &Expr, b: &Expr) -> (DType, Reg) {
        let ((d, a), (_, b)) = (self.settled(code, a), self.settled(code, b));
        (DType::Bool, ops::compare(code, Ty::D(d), op, a, b))
    }

    fn convert(&mut self, code: &mut FunctionBuilder, a: &Expr, to: To) -> (DType, Reg) {
        let dst = self.dst;
        if let (To::Mode, Expr::Arg(k)) = (to, a) {
            let (from, a) = self.sources[*k - 1];
            let saturate = self.attrs.saturate.unwrap_or_else(|| scalar::saturates_unasked(Ty::D(from), Ty::D(dst)));
            let round = self.attrs.round.unwrap_or(RoundMode::Rint);
            return (working(dst), convert::convert(code, Ty::D(from), Ty::D(dst), a, round, saturate));
        }
        let (from, a) = self.settled(code, a);
        let between = |code: &mut FunctionBuilder, to: DType, a, saturate| {
            (working(to), convert::convert(code, Ty::D(from), Ty::D(to), a, RoundMode::Rint, saturate))
        };
        match to {
            To::Mode | To::Narrow if from.is_float() && dst.is_float() => {
                let (most, least) = (code.f32(largest(dst)), code.f32(-largest(dst)));
                let held = code.bin(L::Min, a, most);
                let held = code.bin(L::Max, held, least);
                between(code, dst, held, false)
            }
            To::Mode | To::Narrow => between(code, dst, a, true),
            To::Wide if from.is_float() => (from, a),
            To::Wide => between(code, DType::I32, a, false),
            To::F32 => between(code, DType::F32, a, false),
        }
    }
}
