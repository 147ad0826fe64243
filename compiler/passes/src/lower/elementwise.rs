//! Element-wise instructions, broadcasts, loads, stores and moves: each is one [`map`] over strided matrices.

use super::code::Code;
use super::matrix::{Matrix, map};
use super::memory::Clash;
use super::{Lower, convert, ops};
use ptoc_ir::loops::{Atomic, Base, If, Op, Reg, Stride};
use ptoc_ir::tile::{InstAttrs, TileRef, Ty, Value, ViewRef};
use ptoc_isa::{AtomicOp, BinOp, CmpOp, RoundMode, UnOp};
use ptoc_tensor::DType;

/// How an operand is read under the destination's indices.
#[derive(Clone, Copy)]
enum Read {
    /// Element (i, j).
    Whole,
    /// Element (i, 0).
    Column,
    /// Element (0, j).
    Row,
    /// Element (j, i).
    Turned,
}

impl Lower<'_> {
    fn dtype(&self, t: &TileRef) -> DType {
        self.kernel.tiles[t.tile].ty.dtype
    }

    /// `dst[i, j] = f(srcs)` over the valid shape of `dst`. Where the result would overwrite operands that are still
    /// to be read, it is computed beside and copied.
    fn elementwise(&mut self, dst: &TileRef, srcs: &[(&TileRef, Read)], f: &mut dyn FnMut(&mut Code, &[Reg]) -> Reg) {
        let shape = (self.value(dst.valid.0), self.value(dst.valid.1));
        let d = self.tile(dst);
        let matrices: Vec<Matrix> = srcs
            .iter()
            .map(|(t, read)| {
                let m = self.tile(t);
                match read {
                    Read::Whole => m,
                    Read::Column => m.one_column(),
                    Read::Row => m.one_row(),
                    Read::Turned => m.transposed(),
                }
            })
            .collect();
        let pairs: Vec<(&TileRef, bool)> = srcs.iter().map(|(t, r)| (*t, !matches!(r, Read::Whole))).collect();
        let clash = self.clash(dst, &pairs);
        self.write_apart(clash, dst, &d, shape, &mut |code, target| map(code, shape, target, &matrices, f));
    }

    /// Lets `write` fill the destination, or, if it clashes with what `write` reads, a buffer that is copied then.
    pub(super) fn write_apart(
        &mut self,
        clash: Clash,
        dst: &TileRef,
        d: &Matrix,
        shape: (Reg, Reg),
        write: &mut dyn FnMut(&mut Code, &Matrix),
    ) {
        if let Clash::No = clash {
            write(&mut self.code, d);
            return;
        }
        let size = i64::from(d.ty.size());
        let bytes = u64::from(dst.rows) * u64::from(dst.cols) * size as u64;
        let space = self.temp_space(bytes);
        let down = d.cols != Stride::Const(size);
        let (rows, cols) = if down { (size, i64::from(dst.rows) * size) } else { (i64::from(dst.cols) * size, size) };
        let beside = Matrix {
            base: Base::Space(space),
            offset: self.code.int(0),
            rows: Stride::Const(rows),
            cols: Stride::Const(cols),
            ..*d
        };
        let by_way_of_the_buffer = |code: &mut Code, write: &mut dyn FnMut(&mut Code, &Matrix)| {
            write(code, &beside);
            map(code, shape, &d.raw(), &[beside.raw()], &mut |_, v| v[0]);
        };
        match clash {
            Clash::Unless(cond) => {
                self.code.push();
                write(&mut self.code, d);
                let then = self.code.pop();
                self.code.push();
                by_way_of_the_buffer(&mut self.code, write);
                let els = self.code.pop();
                self.code.emit(Op::If(Box::new(If { cond, then, els })));
            }
            _ => by_way_of_the_buffer(&mut self.code, write),
        }
    }

    pub(super) fn binary(&mut self, op: BinOp, d: &TileRef, a: &TileRef, b: &TileRef) {
        let ty = Ty::D(self.dtype(d));
        let srcs = [(a, Read::Whole), (b, Read::Whole)];
        self.elementwise(d, &srcs, &mut |code, v| ops::binary(code, ty, op, v[0], v[1]));
    }

    pub(super) fn binary_scalar(&mut self, op: BinOp, d: &TileRef, a: &TileRef, s: Value, reversed: bool) {
        let ty = Ty::D(self.dtype(d));
        let s = self.value(s);
        self.elementwise(d, &[(a, Read::Whole)], &mut |code, v| {
            let (x, y) = if reversed { (s, v[0]) } else { (v[0], s) };
            ops::binary(code, ty, op, x, y)
        });
    }

    pub(super) fn unary(&mut self, op: UnOp, d: &TileRef, a: &TileRef) {
        let ty = Ty::D(self.dtype(d));
        self.elementwise(d, &[(a, Read::Whole)], &mut |code, v| ops::unary(code, ty, op, v[0]));
    }

    pub(super) fn expand(&mut self, d: &TileRef, s: Value) {
        let s = self.value(s);
        self.elementwise(d, &[], &mut |_, _| s);
    }

    pub(super) fn convert(&mut self, d: &TileRef, a: &TileRef, attrs: &InstAttrs) {
        let (from, to) = (self.dtype(a), self.dtype(d));
        let round = attrs.round.unwrap_or(RoundMode::Rint);
        let saturate = attrs.saturate.unwrap_or(from.is_float());
        self.convert_tile(d, a, (from, to), round, saturate);
    }

    fn convert_tile(&mut self, d: &TileRef, a: &TileRef, (from, to): (DType, DType), round: RoundMode, sat: bool) {
        self.elementwise(d, &[(a, Read::Whole)], &mut |code, v| {
            convert::convert(code, Ty::D(from), Ty::D(to), v[0], round, sat)
        });
    }

    pub(super) fn compare(&mut self, d: &TileRef, a: &TileRef, b: &TileRef, attrs: &InstAttrs) {
        let ty = Ty::D(self.dtype(a));
        let op = attrs.cmp.unwrap_or(CmpOp::Eq);
        let srcs = [(a, Read::Whole), (b, Read::Whole)];
        self.elementwise(d, &srcs, &mut |code, v| ops::compare(code, ty, op, v[0], v[1]));
    }

    pub(super) fn select(&mut self, d: &TileRef, mask: &TileRef, a: &TileRef, b: &TileRef) {
        let srcs = [(mask, Read::Whole), (a, Read::Whole), (b, Read::Whole)];
        self.elementwise(d, &srcs, &mut |code, v| code.select(v[0], v[1], v[2]));
    }

    pub(super) fn row_expand(&mut self, d: &TileRef, a: &TileRef) {
        self.elementwise(d, &[(a, Read::Column)], &mut |_, v| v[0]);
    }

    pub(super) fn row_expand_binary(&mut self, op: BinOp, d: &TileRef, a: &TileRef, b: &TileRef) {
        let ty = Ty::D(self.dtype(d));
        let srcs = [(a, Read::Whole), (b, Read::Column)];
        self.elementwise(d, &srcs, &mut |code, v| ops::binary(code, ty, op, v[0], v[1]));
    }

    pub(super) fn col_expand(&mut self, d: &TileRef, a: &TileRef) {
        self.elementwise(d, &[(a, Read::Row)], &mut |_, v| v[0]);
    }

    pub(super) fn col_expand_binary(&mut self, op: BinOp, d: &TileRef, a: &TileRef, b: &TileRef) {
        let ty = Ty::D(self.dtype(d));
        let srcs = [(a, Read::Whole), (b, Read::Row)];
        self.elementwise(d, &srcs, &mut |code, v| ops::binary(code, ty, op, v[0], v[1]));
    }

    pub(super) fn transpose(&mut self, d: &TileRef, a: &TileRef) {
        self.elementwise(d, &[(a, Read::Turned)], &mut |_, v| v[0]);
    }

    pub(super) fn movement(&mut self, d: &TileRef, a: &TileRef) {
        let (from, to) = (self.dtype(a), self.dtype(d));
        if from == to {
            self.elementwise(d, &[(a, Read::Whole)], &mut |_, v| v[0]);
        } else {
            self.convert_tile(d, a, (from, to), RoundMode::Rint, true);
        }
    }

    pub(super) fn load(&mut self, d: &TileRef, view: &ViewRef) {
        let shape = self.view_shape(view);
        let (d, v) = (self.tile(d), self.view(view));
        if d.dtype == v.dtype {
            // A tile of the tensor's dtype takes its bits as they are.
            let (d, v) = if d.ty == v.ty { (d.raw(), v.raw()) } else { (d, v) };
            map(&mut self.code, shape, &d, &[v], &mut |_, x| x[0]);
        } else {
            let (from, to) = (Ty::D(v.dtype), Ty::D(d.dtype));
            map(&mut self.code, shape, &d, &[v], &mut |code, x| {
                convert::convert(code, from, to, x[0], RoundMode::Rint, true)
            });
        }
    }

    pub(super) fn store(&mut self, view: &ViewRef, a: &TileRef, atomic_add: bool) {
        let shape = self.view_shape(view);
        let (v, a) = (self.view(view), self.tile(a));
        let (from, to) = (Ty::D(a.dtype), Ty::D(v.dtype));
        if atomic_add {
            self.atomic_store(shape, &v, &a);
        } else if from == to {
            map(&mut self.code, shape, &v.raw(), &[a.raw()], &mut |_, x| x[0]);
        } else {
            map(&mut self.code, shape, &v, &[a], &mut |code, x| {
                convert::convert(code, from, to, x[0], RoundMode::Rint, true)
            });
        }
    }

    /// Elements in row-major order, each one an atomic addition.
    fn atomic_store(&mut self, (rows, cols): (Reg, Reg), v: &Matrix, a: &Matrix) {
        let (from, to) = (Ty::D(a.dtype), Ty::D(v.dtype));
        self.code.for_count(rows, |code, i| {
            let (v, a) = (v.at_row(code, i), a.at_row(code, i));
            code.for_count(cols, |code, j| {
                let (v, a) = (v.at_col(code, j), a.at_col(code, j));
                let x = code.load(a.ty, a.first());
                let x = convert::convert(code, from, to, x, RoundMode::Rint, true);
                let value = ops::settle(code, to, x);
                let dst = code.reg(v.ty.reg());
                code.emit(Op::Atomic(Box::new(Atomic {
                    dst,
                    op: AtomicOp::Add,
                    unsigned: ops::kind(to) == ops::Kind::Unsigned,
                    ty: v.ty,
                    addr: v.first(),
                    expected: None,
                    value,
                })));
            });
        });
    }

    /// Rows and columns of a view; one of rank 1 is a row.
    fn view_shape(&mut self, view: &ViewRef) -> (Reg, Reg) {
        let mut dims: Vec<Reg> = view.shape.iter().map(|&v| self.value(v)).collect();
        let one = self.code.int(1);
        let cols = dims.pop().unwrap_or(one);
        (dims.pop().unwrap_or(one), cols)
    }
}
