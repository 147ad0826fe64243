//! Reductions along rows and columns, in the order that the numbers demand.
//!
//! Rows are one [`loops::Reduce`], which has their order: 64 strided partials (element j goes to partial j mod 64,
//! ascending), then a halving tree. A column is ascending rows. Sums of narrow floats are kept in f32 and rounded
//! once, by the store of the result. Largest and smallest do not depend on the order.

use super::code::FunctionBuilder;
use super::matrix::{Matrix, map};
use super::memory::Clash;
use super::{Lower, ops};
use ptoc_ir::loops::{self, Base, BinOp as L, LTy, MemTy, Op, Reg, Stride};
use ptoc_ir::tile::{TileRef, Ty};
use ptoc_isa::{BinOp, CmpOp, Reduce};
use ptoc_tensor::DType;

fn op_of(reduce: Reduce) -> BinOp {
    match reduce {
        Reduce::Sum => BinOp::Add,
        Reduce::Max => BinOp::Max,
        Reduce::Min => BinOp::Min,
        Reduce::Prod => BinOp::Mul,
    }
}

/// What changes nothing: +0, or the extreme that every element replaces.
pub(super) fn identity(code: &mut FunctionBuilder, ty: Ty, reduce: Reduce) -> Reg {
    let Ty::D(dtype) = ty else { return ops::number(code, ty, 0) };
    if dtype.is_float() {
        return match reduce {
            Reduce::Sum => code.f32(0.0),
            Reduce::Max => code.f32(f32::NEG_INFINITY),
            Reduce::Min => code.f32(f32::INFINITY),
            Reduce::Prod => code.f32(1.0),
        };
    }
    let (low, high) = ptoc_tensor::scalar::integer_range(dtype).unwrap_or((0, 0));
    let value = match reduce {
        Reduce::Sum => 0,
        Reduce::Max => low,
        Reduce::Min => high,
        Reduce::Prod => 1,
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
        // Rows too are multiplied in ascending order (`fold`).
        Reduce::Prod => L::Mul,
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
    match MemTy::of(dtype).reg() {
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

    /// Source and destination of a reduction as a fold over rows: lanes are columns, or, `by_row`, rows. With the
    /// numbers of steps and of lanes, and the most lanes that there can be.
    fn lying(&mut self, dst: &TileRef, src: &TileRef, by_row: bool) -> (Matrix, Matrix, Reg, Reg, u64) {
        let (rows, cols) = (self.value(src.valid.0), self.value(src.valid.1));
        let (d, a) = (self.tile(dst), self.tile(src));
        match by_row {
            true => (d.transposed(), a.transposed(), cols, rows, src.rows.into()),
            false => (d, a, rows, cols, src.cols.into()),
        }
    }

    /// A row of running results for each of these dtypes, one a lane, stored as wide as the registers.
    fn running<const N: usize>(&mut self, lanes: u64, dtypes: [DType; N]) -> [Matrix; N] {
        let bytes = |d: DType| lanes * u64::from(wide(d).size());
        // There is one space for what is temporary: the rows lie in it one after the other.
        let space = self.temp_space(dtypes.iter().map(|d| bytes(*d)).sum());
        let mut at = 0;
        dtypes.map(|dtype| {
            let (base, offset) = (Base::Space(space), self.code.int(at as i64));
            at += bytes(dtype);
            let (rows, cols) = (Stride::Const(0), Stride::Const(i64::from(wide(dtype).size())));
            Matrix { base, offset, rows, cols, ty: wide(dtype), dtype, places: None }
        })
    }

    /// Columns, or, `by_row`, rows, element after element.
    pub(super) fn fold(&mut self, reduce: Reduce, dst: &TileRef, src: &TileRef, by_row: bool) {
        let (d, a, steps, lanes, most) = self.lying(dst, src, by_row);
        let one = self.code.int(1);
        let ty = Ty::D(a.dtype);
        // Narrow floats add up in f32. Everything else may accumulate in place: wrapping does not mind, extremes are
        // elements.
        let rounds = matches!(reduce, Reduce::Sum | Reduce::Prod);
        let exact = !rounds || !a.dtype.is_float() || a.dtype == DType::F32;
        let running = if exact && matches!(self.clash(dst, &[(src, true)]), Clash::No) {
            d
        } else {
            self.running(most, [a.dtype])[0]
        };
        map(&mut self.code, (one, lanes), &running, &[], &mut |code, _| identity(code, ty, reduce));
        self.code.for_count(steps, |code, i| {
            let row = a.at_row(code, i);
            map(code, (one, lanes), &running, &[running, row], &mut |code, v| {
                ops::binary(code, ty, op_of(reduce), v[0], v[1])
            });
        });
        if running.base != d.base || running.ty != d.ty {
            map(&mut self.code, (one, lanes), &d, &[running], &mut |_, v| v[0]);
        }
    }

    /// Where the largest or smallest is: a running extreme and its place, which start at what every element replaces
    /// and 0. So the first of equal ones stays; a NaN replaces what is none. The extremes go to `values`, if that is
    /// wanted.
    pub(super) fn arg(&mut self, reduce: Reduce, values: Option<&TileRef>, dst: &TileRef, src: &TileRef, by_row: bool) {
        let (d, a, steps, lanes, most) = self.lying(dst, src, by_row);
        let values = values.map(|t| if by_row { self.tile(t).transposed() } else { self.tile(t) });
        let one = self.code.int(1);
        let ty = Ty::D(a.dtype);
        // The wider one first, so that both are aligned.
        let [best, place] = self.running(most, [a.dtype, DType::I32]);
        let better = |code: &mut FunctionBuilder, x: Reg, best: Reg| {
            let cmp = if reduce == Reduce::Min { CmpOp::Lt } else { CmpOp::Gt };
            let beats = ops::compare(code, ty, cmp, x, best);
            if !a.dtype.is_float() {
                return beats;
            }
            let nan = code.cmp(loops::CmpOp::Ne, x, x);
            let number = code.cmp(loops::CmpOp::Eq, best, best);
            let first_nan = code.bin(L::And, nan, number);
            code.bin(L::Or, beats, first_nan)
        };
        map(&mut self.code, (one, lanes), &best, &[], &mut |code, _| identity(code, ty, reduce));
        map(&mut self.code, (one, lanes), &place, &[], &mut |code, _| code.i32(0));
        self.code.for_count(steps, |code, i| {
            let row = a.at_row(code, i);
            let here = code.cast(loops::Cast::Wrap, i, LTy::I32);
            map(code, (one, lanes), &place, &[place, best, row], &mut |code, v| {
                let moves = better(code, v[2], v[1]);
                code.select(moves, here, v[0])
            });
            map(code, (one, lanes), &best, &[best, row], &mut |code, v| {
                let moves = better(code, v[1], v[0]);
                code.select(moves, v[1], v[0])
            });
        });
        if let Some(values) = values {
            // Of an empty row there is no value; 0 stands for it.
            let zero = self.code.int(0);
            let empty = self.code.cmp(loops::CmpOp::Eq, steps, zero);
            map(&mut self.code, (one, lanes), &values, &[best], &mut |code, v| {
                let none = ops::number(code, ty, 0);
                code.select(empty, none, v[0])
            });
        }
        map(&mut self.code, (one, lanes), &d, &[place], &mut |_, v| v[0]);
    }

    /// Neighbouring columns, two and two; an odd last one alone; zeros.
    pub(super) fn pair_sum(&mut self, dst: &TileRef, src: &TileRef) {
        let (rows, cols) = (self.value(src.valid.0), self.value(src.valid.1));
        let (d, a) = (self.tile(dst), self.tile(src));
        let ty = Ty::D(a.dtype);
        let one = self.code.int(1);
        let pairs = self.code.bin(L::Shr, cols, one);
        let alone = self.code.bin(L::And, cols, one);
        let two_steps = Stride::Const(2 * fixed(a.cols));
        let left = Matrix { cols: two_steps, ..a };
        let right = Matrix { cols: two_steps, ..a.at_col(&mut self.code, one) };
        let last = self.code.times(pairs, 2);
        let single = a.at_col(&mut self.code, last);
        let clash = self.clash(dst, &[(src, true)]);
        self.write_apart(clash, dst, &d, (rows, cols), &mut |code, target| {
            map(code, (rows, cols), target, &[], &mut |code, _| ops::number(code, ty, 0));
            map(code, (rows, pairs), target, &[left, right], &mut |code, v| {
                ops::binary(code, ty, BinOp::Add, v[0], v[1])
            });
            let end = target.at_col(code, pairs);
            map(code, (rows, alone), &end, &[single], &mut |_, v| v[0]);
        });
    }
}
