//! Reductions along rows and columns, in the order that the numbers demand.
//!
//! A row is 64 strided partials (element j goes to partial j mod 64, ascending), then a halving tree; both steps are
//! independent lanes on a small buffer. A column is ascending rows. Sums of narrow floats are kept in f32 and rounded
//! once, by the store of the result. Largest and smallest do not depend on the order and use the same loops.

use super::code::Code;
use super::matrix::{Matrix, map};
use super::memory::Clash;
use super::{Lower, ops};
use ptoc_ir::loops::{Base, BinOp as L, LTy, MemTy, Reg, Stride};
use ptoc_ir::tile::{TileRef, Ty};
use ptoc_isa::{BinOp, Reduce};
use ptoc_tensor::DType;

/// Partials of a row.
const PARTIALS: i64 = 64;

fn op_of(reduce: Reduce) -> BinOp {
    match reduce {
        Reduce::Sum => BinOp::Add,
        Reduce::Max => BinOp::Max,
        Reduce::Min => BinOp::Min,
    }
}

/// What changes nothing: +0, or the extreme that every element replaces.
fn identity(code: &mut Code, ty: Ty, reduce: Reduce) -> Reg {
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

/// How a running result is stored: as wide as the registers.
fn wide(dtype: DType) -> MemTy {
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
        let partials = Matrix {
            base: Base::Space(self.partials_space()),
            offset: self.code.int(0),
            rows: Stride::Const(0),
            cols: Stride::Const(i64::from(wide(a.dtype).size())),
            ty: wide(a.dtype),
            dtype: a.dtype,
        };
        // A row is read before its result is written; another row's elements must not be overwritten.
        let clash = self.clash(dst, &[(src, true)]);
        self.write_apart(clash, dst, &d, (rows, one), &mut |code, target| {
            code.for_count(rows, |code, i| {
                let (row, out) = (a.at_row(code, i), target.at_row(code, i));
                let result = reduce_row(code, reduce, &row, cols, &partials);
                code.store(out.ty, out.first(), result);
            });
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

/// Reduces `cols` elements of the row that starts at `row` (lanes along its columns).
fn reduce_row(code: &mut Code, reduce: Reduce, row: &Matrix, cols: Reg, partials: &Matrix) -> Reg {
    let ty = Ty::D(row.dtype);
    let known = code.known(cols);
    // Partials beyond the row keep +0 (or the extreme), and adding them changes nothing: no partial is -0.
    let used = known.map_or(PARTIALS, |n| (n.max(1) as u64).next_power_of_two().min(PARTIALS as u64) as i64);
    let all = code.int(used);
    code.lanes(all, |code, _| {
        let start = identity(code, ty, reduce);
        code.store(partials.ty, partials.lane(), start);
    });
    let fold = |code: &mut Code, count: Reg, at: Reg| {
        let part = row.at_col(code, at);
        code.lanes(count, |code, _| {
            let (p, x) = (code.load(partials.ty, partials.lane()), code.load(part.ty, part.lane()));
            let sum = ops::binary(code, ty, op_of(reduce), p, x);
            code.store(partials.ty, partials.lane(), sum);
        });
    };
    let whole = match known {
        Some(n) => code.int(n / PARTIALS * PARTIALS),
        None => {
            let mask = code.int(!(PARTIALS - 1));
            code.bin(L::And, cols, mask)
        }
    };
    let rest = code.bin(L::Sub, cols, whole);
    if code.known(whole) != Some(0) {
        let (zero, full) = (code.int(0), code.int(PARTIALS));
        code.for_range(zero, whole, PARTIALS, |code, at| fold(code, full, at));
    }
    if code.known(rest) != Some(0) {
        fold(code, rest, whole);
    }
    let mut half = used / 2;
    while half > 0 {
        let count = code.int(half);
        let upper = partials.at_col(code, count);
        code.lanes(count, |code, _| {
            let (p, q) = (code.load(partials.ty, partials.lane()), code.load(upper.ty, upper.lane()));
            let sum = ops::binary(code, ty, op_of(reduce), p, q);
            code.store(partials.ty, partials.lane(), sum);
        });
        half /= 2;
    }
    code.load(partials.ty, partials.first())
}
