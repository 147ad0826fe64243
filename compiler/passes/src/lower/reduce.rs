//! Reductions along rows and columns, in the order that the numbers demand.
//!
//! Rows are one [`loops::Reduce`], which has their order: 64 strided partials (element j goes to partial j mod 64,
//! ascending), then a halving tree. A column is ascending rows. Sums of narrow floats are kept in f32 and rounded
//! once, by the store of the result. Largest and smallest do not depend on the order.

use super::code::Code;
use super::matrix::{Matrix, map};
use super::memory::Clash;
use super::{Lower, ops};
use ptoc_ir::loops::{self, Base, BinOp as L, LTy, MemTy, Op, Reg, Stride};
use ptoc_ir::tile::{TileRef, Ty};
use ptoc_isa::{BinOp, Reduce};
use ptoc_tensor::DType;

fn op_of(reduce: Reduce) -> BinOp {
    match reduce {
        Reduce::Sum => BinOp::Add,
        Reduce::Max => BinOp::Max,
        Reduce::Min => BinOp::Min,
    }
}

/// What changes nothing: +0, or the extreme that every element replaces.
pub(super) fn identity(code: &mut Code, ty: Ty, reduce: Reduce) -> Reg {
    let Ty::D(dtype) = ty else { return ops::number(code, ty, 0) };
    if dtype.is_float() {
        return match reduce {
            Reduce::Sum => code.f32(0.0),
            Reduce::Max => code.f32(f32::NEG_INFINITY),
            Reduce::Min => code.f32(f32::INFINITY),
        };
    }
    let (low, high) = ptoc_tensor::scalar::integer_range(dtype).unwrap_or((0, 0));
    let value = match reduce {
        Reduce::Sum => 0,
        Reduce::Max => low,
        Reduce::Min => high,
    };
    match super::reg_ty(ty) {
        LTy::I64 => code.int(value as i64),
        _ => code.i32(value as i32),
    }
}

/// A reduction's operation in loop IR.
pub(super) fn loop_op(reduce: Reduce, dtype: DType) -> L {
    let unsigned = matches!(dtype, DType::U32 | DType::U64);
    match reduce {
        Reduce::Sum => L::Add,
        Reduce::Max if unsigned => L::MaxU,
        Reduce::Max => L::Max,
        Reduce::Min if unsigned => L::MinU,
        Reduce::Min => L::Min,
    }
}

/// A tile's stride: known, because its type is.
pub(super) fn fixed(stride: Stride) -> i64 {
    match stride {
        Stride::Const(n) => n,
        Stride::Reg(_) => 0,
    }
}

/// How a running result is stored: as wide as the registers.
pub(super) fn wide(dtype: DType) -> MemTy {
    match super::memory::mem_ty(dtype).reg() {
        LTy::F32 => MemTy::F32,
        LTy::I64 => MemTy::I64,
        _ => MemTy::I32,
    }
}

impl Lower<'_> {
    pub(super) fn row_reduce(&mut self, reduce: Reduce, dst: &TileRef, src: &TileRef) {
        let (rows, cols) = (self.value(src.valid.0), self.value(src.valid.1));
        let (d, a) = (self.tile(dst), self.tile(src));
        let one = self.code.int(1);
        let op = loop_op(reduce, a.dtype);
        // A row is read before its result is written; another row's elements must not be overwritten.
        let clash = self.clash(dst, &[(src, true)]);
        self.write_apart(clash, dst, &d, (rows, one), &mut |code, target| {
            code.emit(Op::Reduce(Box::new(loops::Reduce {
                op,
                ty: a.ty,
                rows,
                cols,
                d: target.first(),
                d_stride: fixed(target.rows),
                a: a.first(),
                a_strides: (fixed(a.rows), fixed(a.cols)),
            })));
        });
    }

    pub(super) fn col_reduce(&mut self, reduce: Reduce, dst: &TileRef, src: &TileRef) {
        let (rows, cols) = (self.value(src.valid.0), self.value(src.valid.1));
        let (d, a) = (self.tile(dst), self.tile(src));
        let one = self.code.int(1);
        let ty = Ty::D(a.dtype);
        // Narrow floats add up in f32. Everything else may accumulate in place: wrapping does not mind, extremes are
        // elements.
        let exact = reduce != Reduce::Sum || !a.dtype.is_float() || a.dtype == DType::F32;
        let running = if exact && matches!(self.clash(dst, &[(src, true)]), Clash::No) {
            d
        } else {
            let size = i64::from(wide(a.dtype).size());
            let space = self.temp_space(u64::from(src.cols) * size as u64);
            let (base, offset) = (Base::Space(space), self.code.int(0));
            let (rows, cols) = (Stride::Const(0), Stride::Const(size));
            Matrix { base, offset, rows, cols, ty: wide(a.dtype), dtype: a.dtype }
        };
        map(&mut self.code, (one, cols), &running, &[], &mut |code, _| identity(code, ty, reduce));
        self.code.for_count(rows, |code, i| {
            let row = a.at_row(code, i);
            map(code, (one, cols), &running, &[running, row], &mut |code, v| {
                ops::binary(code, ty, op_of(reduce), v[0], v[1])
            });
        });
        if running.base != d.base || running.ty != d.ty {
            map(&mut self.code, (one, cols), &d, &[running], &mut |_, v| v[0]);
        }
    }
}
