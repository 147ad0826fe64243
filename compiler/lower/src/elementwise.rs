//! Element-wise instructions, broadcasts, loads, stores and moves one by one: each is one [`map`] over strided
//! matrices.

use super::code::FunctionBuilder;
use super::matrix::{Matrix, map};
use super::memory::Clash;
use super::{Lower, convert, ops};
use ptoc_ir::loops::{Atomic, Base, If, Op, Reg, Stride};
use ptoc_ir::scalar;
use ptoc_ir::tile::{TileRef, Ty, Value, ViewRef};
use ptoc_isa::{AtomicOp, RoundMode, UnOp};
use ptoc_opt::pattern::{OperandWindow, Pattern, Read};

impl Lower<'_> {
    /// A window as a matrix under the result's indices.
    pub(super) fn place(&mut self, place: &OperandWindow<'_>, read: Read) -> Matrix {
        let m = match place {
            OperandWindow::Tile(t) => match self.rows.get(&t.tile) {
                Some(rows) => *rows,
                None => self.tile(t),
            },
            OperandWindow::View(v) => self.view(v),
        };
        match read {
            Read::Whole => m,
            Read::Column => m.one_column(),
            Read::Row => m.one_row(),
            Read::Turned => m.transposed(),
        }
    }

    /// Rows and columns of a pattern.
    pub(super) fn pattern_shape(&mut self, p: &Pattern<'_>) -> (Reg, Reg) {
        let of_rows = p.srcs.first().map(|s| s.0).filter(|_| p.fold.is_some());
        for place in p.srcs.iter().map(|s| &s.0).chain([&p.dst]) {
            if let OperandWindow::View(v) = place {
                return self.view_shape(v);
            }
        }
        let valid = of_rows.unwrap_or(p.dst).tile().map(|t| t.valid);
        let mut side = |v: Option<Value>| match v {
            Some(v) => self.value(v),
            None => self.code.int(0),
        };
        (side(valid.map(|v| v.0)), side(valid.map(|v| v.1)))
    }

    /// `dst[i, j] = f(srcs)` over the valid shape. Where the result would overwrite operands that are still to be read,
    /// it is computed beside and copied.
    pub(super) fn elementwise(&mut self, p: &Pattern<'_>) {
        let shape = self.pattern_shape(p);
        let mut d = self.place(&p.dst, Read::Whole);
        let mut matrices: Vec<Matrix> = p.srcs.iter().map(|(src, read)| self.place(src, *read)).collect();
        let f = self.function(p);
        if self.keeps_bits(p) && matrices.iter().all(|m| m.ty == d.ty) {
            d = d.raw();
            matrices.iter_mut().for_each(|m| *m = m.raw());
        }
        let clash = self.pattern_clash(p);
        let OperandWindow::Tile(dst) = &p.dst else {
            return map(&mut self.code, shape, &d, &matrices, &mut |code, v| f(code, v));
        };
        self.write_apart(clash, dst, &d, shape, &mut |code, target| {
            map(code, shape, target, &matrices, &mut |code, v| f(code, v));
        });
    }

    /// Whether the result of a pattern may overwrite its own operands before they are read.
    fn pattern_clash(&mut self, p: &Pattern<'_>) -> Clash {
        let OperandWindow::Tile(dst) = &p.dst else { return Clash::No };
        let tiles = p.srcs.iter().filter_map(|(src, read)| Some((src.tile()?, *read != Read::Whole)));
        self.clash(dst, &tiles.collect::<Vec<_>>())
    }

    /// Lets `write` fill the destination, or, if it clashes with what `write` reads, a buffer that is copied then.
    pub(super) fn write_apart(
        &mut self,
        clash: Clash,
        dst: &TileRef,
        d: &Matrix,
        shape: (Reg, Reg),
        write: &mut dyn FnMut(&mut FunctionBuilder, &Matrix),
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
        let by_way_of_the_buffer =
            |code: &mut FunctionBuilder, write: &mut dyn FnMut(&mut FunctionBuilder, &Matrix)| {
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

    /// A TSTORE that updates what is there.
    pub(super) fn update(&mut self, op: AtomicOp, view: &ViewRef, a: &TileRef, relu: bool) {
        let shape = self.view_shape(view);
        let (v, a) = (self.view(view), self.tile(a));
        let (from, to) = (Ty::D(a.dtype), Ty::D(v.dtype));
        update_each(&mut self.code, op, shape, &v, &[a], &mut |code, x| {
            let x = if relu { ops::unary(code, from, UnOp::Relu, x[0]) } else { x[0] };
            convert::convert(code, from, to, x, RoundMode::Rint, scalar::saturates_unasked(from, to))
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

/// Elements in row-major order, each one an atomic update of `dst` by what `value` makes of the sources.
pub(super) fn update_each(
    code: &mut FunctionBuilder,
    op: AtomicOp,
    (rows, cols): (Reg, Reg),
    dst: &Matrix,
    srcs: &[Matrix],
    value: &mut dyn FnMut(&mut FunctionBuilder, &[Reg]) -> Reg,
) {
    let to = Ty::D(dst.dtype);
    code.for_count(rows, |code, i| {
        let d = dst.at_row(code, i);
        let srcs: Vec<Matrix> = srcs.iter().map(|s| s.at_row(code, i)).collect();
        code.for_count(cols, |code, j| {
            let d = d.at_col(code, j);
            let operands: Vec<Reg> = srcs
                .iter()
                .map(|s| {
                    let s = s.at_col(code, j);
                    code.load(s.ty, s.first())
                })
                .collect();
            let x = value(code, &operands);
            let value = ops::settle(code, to, x);
            let old = code.reg(d.ty.reg());
            code.emit(Op::Atomic(Box::new(Atomic {
                dst: old,
                op,
                unsigned: ops::kind(to) == ops::Arithmetic::Unsigned,
                ty: d.ty,
                addr: d.first(),
                expected: None,
                value,
            })));
        });
    });
}
