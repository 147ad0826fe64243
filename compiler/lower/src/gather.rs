//! MGATHER and MSCATTER: elements of a view by index.

use super::code::FunctionBuilder;
use super::matrix::{Matrix, Places, map, scaled};
use super::reduce::fixed;
use super::{Lower, ops};
use ptoc_diagnostics::codes;
use ptoc_ir::indexed::{ELEMENT, Lookup, ROW};
use ptoc_ir::loops::{Addr, Atomic, Base, BinOp as L, Cast, CmpOp as C, Gather, If, LTy, Op, Reg, SpaceId, Stride};
use ptoc_ir::tile::{CheckData, InstAttrs, TileRef, Ty, ViewRef};
use ptoc_isa::Oob;
use ptoc_opt::lazy_gather::{Located, is_dense};
use ptoc_tensor::DType;

/// Where an index leads that a check has let pass, of modes that lead somewhere.
fn led(code: &mut FunctionBuilder, oob: Oob, n: Reg, total: Reg) -> Reg {
    match oob {
        Oob::Wrap => code.bin(L::RemFloor, n, total),
        Oob::Clamp => {
            let (zero, last) = (code.int(0), code.plus(total, -1));
            let low = code.bin(L::Max, n, zero);
            code.bin(L::Min, low, last)
        }
        Oob::Undefined | Oob::Zero => n,
    }
}

/// The indexed view: its extents, and strides in bytes.
struct Table {
    matrix: Matrix,
    dims: Vec<(Reg, Stride)>,
    /// Number of elements.
    total: Reg,
    /// The elements are contiguous.
    dense: bool,
}

impl Lower<'_> {
    pub(super) fn gather(&mut self, dst: &TileRef, view: &ViewRef, idx: &TileRef, attrs: &InstAttrs) {
        let oob = attrs.oob.unwrap_or(Oob::Undefined);
        let shape = (self.value(dst.valid.0), self.value(dst.valid.1));
        if let Some(located) = self.gathers.located.get(&dst.tile) {
            return self.locate(dst, view, idx, oob, located);
        }
        let (d, index) = (self.tile(dst), self.tile(idx));
        let table = self.table(view);
        // An index is read again behind the gather where an error says it.
        let again = table.dense && oob != Oob::Zero;
        let clash = self.clash(dst, &[(idx, again || d.ty.size() != index.ty.size())]);
        if table.dense {
            let check = (oob != Oob::Zero).then(|| self.index_check((oob, false, ELEMENT), view, idx));
            return self.write_apart(clash, dst, &d, shape, &mut |code, target| {
                let missing = code.reg(LTy::I64);
                code.emit(Op::Gather(Box::new(Gather {
                    dst: missing,
                    oob,
                    ty: target.raw().ty,
                    rows: shape.0,
                    cols: shape.1,
                    d: target.first(),
                    d_strides: (fixed(target.rows), fixed(target.cols)),
                    table: table.matrix.first(),
                    total: table.total,
                    index: index.first(),
                    unsigned: index.dtype == DType::U32,
                    index_strides: (fixed(index.rows), fixed(index.cols)),
                    plus: None,
                    places: None,
                })));
                if let Some(check) = check {
                    stop_at(code, missing, check, &[index], shape.1, table.total);
                }
            });
        }
        if oob != Oob::Zero {
            self.check_indices((oob, false, ELEMENT), view, idx, &index, shape, table.total);
        }
        let unsigned = index.dtype == DType::U32;
        let element = table.matrix.raw().ty;
        // From an empty table only zeros can come (or the check above has ended the launch).
        let zero = self.code.int(0);
        let some = self.code.cmp(C::Gt, table.total, zero);
        self.code.push();
        self.write_apart(clash, dst, &d, shape, &mut |code, target| {
            map(code, shape, &target.raw(), &[index], &mut |code, v| {
                let wide = code.cast(if unsigned { Cast::Zext } else { Cast::Sext }, v[0], LTy::I64);
                let zero = code.int(0);
                let last = code.plus(table.total, -1);
                let clamped = match oob {
                    Oob::Undefined => wide,
                    Oob::Wrap => code.bin(L::RemFloor, wide, table.total),
                    Oob::Clamp | Oob::Zero => {
                        let low = code.bin(L::Max, wide, zero);
                        code.bin(L::Min, low, last)
                    }
                };
                let bytes = flat_offset(code, clamped, &table.dims);
                let addr = Addr {
                    base: table.matrix.base,
                    offset: table.matrix.offset,
                    stride: Stride::Const(0),
                    gather: Some(bytes),
                };
                let x = code.load(element, addr);
                if oob != Oob::Zero {
                    return x;
                }
                let inside = code.cmp(C::Eq, clamped, wide);
                let none = code.bits(element.reg(), 0);
                code.select(inside, x, none)
            });
        });
        let then = self.code.pop();
        self.code.push();
        map(&mut self.code, shape, &d.raw(), &[], &mut |code, _| code.bits(element.reg(), 0));
        let els = self.code.pop();
        self.code.emit(Op::If(Box::new(If { cond: some, then, els })));
    }

    /// A gather that leaves its rows in the table where they are neighbours there, and places for those who read them.
    fn locate(&mut self, dst: &TileRef, view: &ViewRef, idx: &TileRef, oob: Oob, located: &Located) {
        let (rows, cols) = (self.value(dst.valid.0), self.value(dst.valid.1));
        let (d, table) = (self.tile(dst), self.table(view));
        let numbers = match &located.sum {
            Some((column, row)) => vec![self.tile(column).one_column(), self.tile(row).one_row()],
            None => vec![self.tile(idx)],
        };
        let strides = |m: &Matrix| (fixed(m.rows), fixed(m.cols));
        let (index, plus) = (&numbers[0], numbers.get(1).map(|m| (m.first(), strides(m))));
        let check = (oob != Oob::Zero).then(|| self.index_check((oob, false, ELEMENT), view, idx));
        let space = self.place_space();
        let (number, step) = (located.place.0 as i64, located.place.1 as i64);
        let places = Places {
            base: Base::Space(space),
            offset: self.code.int(0),
            rows: Stride::Const(step),
            cols: Stride::Const(0),
            number: self.code.int(number),
        };
        let code = &mut self.code;
        let (missing, first) = (code.reg(LTy::I64), code.int(number));
        let place = Addr { base: places.base, offset: first, stride: Stride::Const(0), gather: None };
        code.emit(Op::Gather(Box::new(Gather {
            dst: missing,
            oob,
            ty: d.raw().ty,
            rows,
            cols,
            d: d.first(),
            d_strides: strides(&d),
            table: table.matrix.first(),
            total: table.total,
            index: index.first(),
            unsigned: index.dtype == DType::U32,
            index_strides: strides(index),
            plus,
            places: Some((place, step)),
        })));
        if let Some(check) = check {
            stop_at(code, missing, check, &numbers, cols, table.total);
        }
        let (base, offset) = (table.matrix.base, table.matrix.offset);
        let rows = Matrix { base, offset, rows: Stride::Const(0), places: Some(places), ..d };
        self.rows.insert(dst.tile, rows);
    }

    /// The space for places of gathered rows.
    fn place_space(&mut self) -> SpaceId {
        if let Some(space) = self.memory.places {
            return space;
        }
        let space = self.space("places", self.gathers.room);
        self.memory.places = Some(space);
        space
    }

    /// Rows of the view, each copied as a whole.
    pub(super) fn gather_rows(&mut self, dst: &TileRef, view: &ViewRef, idx: &TileRef, attrs: &InstAttrs) {
        let oob = attrs.oob.unwrap_or(Oob::Undefined);
        let shape = (self.value(dst.valid.0), self.value(dst.valid.1));
        let (d, index, table) = (self.tile(dst), self.tile(idx), self.view(view));
        let total = self.value(view.shape[0]);
        if oob != Oob::Zero {
            let counts = (self.value(idx.valid.0), self.value(idx.valid.1));
            self.check_indices((oob, false, ROW), view, idx, &index, counts, total);
        }
        let index = along(idx, index);
        let clash = self.clash(dst, &[(idx, true)]);
        self.write_apart(clash, dst, &d, shape, &mut |code, target| {
            code.for_count(shape.0, |code, i| {
                let at = index.at_col(code, i);
                let n = number(code, &at);
                let to = target.at_row(code, i).raw();
                let copied = |code: &mut FunctionBuilder, n: Reg| {
                    let from = table.at_row(code, n).raw();
                    code.lanes(shape.1, |code, _| {
                        let x = code.load(from.ty, from.lane());
                        code.store(to.ty, to.lane(), x);
                    });
                };
                match oob {
                    Oob::Zero => {
                        let inside = code.cmp(C::LtU, n, total);
                        code.either(
                            inside,
                            |code| copied(code, n),
                            |code| {
                                code.lanes(shape.1, |code, _| {
                                    let none = code.bits(to.ty.reg(), 0);
                                    code.store(to.ty, to.lane(), none);
                                });
                            },
                        );
                    }
                    _ => {
                        let n = led(code, oob, n, total);
                        copied(code, n);
                    }
                }
            });
        });
    }

    /// Rows in order, so that of those that meet the last one stays.
    pub(super) fn scatter_rows(&mut self, view: &ViewRef, a: &TileRef, idx: &TileRef, attrs: &InstAttrs) {
        let oob = attrs.oob.unwrap_or(Oob::Undefined);
        let (rows, cols) = (self.value(a.valid.0), self.value(a.valid.1));
        let (source, index, table) = (self.tile(a), self.tile(idx), self.view(view));
        let total = self.value(view.shape[0]);
        if oob != Oob::Zero {
            let counts = (self.value(idx.valid.0), self.value(idx.valid.1));
            self.check_indices((oob, true, ROW), view, idx, &index, counts, total);
        }
        let index = along(idx, index);
        let ty = Ty::D(source.dtype);
        let source = if attrs.atomic.is_some() { source } else { source.raw() };
        self.code.for_count(rows, |code, i| {
            let (from, at) = (source.at_row(code, i), index.at_col(code, i));
            let n = number(code, &at);
            let put = |code: &mut FunctionBuilder, n: Reg| {
                let to = table.at_row(code, n);
                code.for_count(cols, |code, j| {
                    let (from, to) = (from.at_col(code, j), to.at_col(code, j));
                    let value = code.load(from.ty, from.first());
                    let Some(op) = attrs.atomic else { return code.store(from.ty, to.first(), value) };
                    let (dst, unsigned) = (code.reg(from.ty.reg()), ops::kind(ty) == ops::Arithmetic::Unsigned);
                    let addr = to.first();
                    let atomic = Atomic { dst, op, unsigned, ty: from.ty, addr, expected: None, value };
                    code.emit(Op::Atomic(Box::new(atomic)));
                });
            };
            match oob {
                Oob::Zero => {
                    let inside = code.cmp(C::LtU, n, total);
                    code.either(inside, |code| put(code, n), |_| {});
                }
                _ => {
                    let n = led(code, oob, n, total);
                    put(code, n);
                }
            }
        });
    }

    /// Elements in row-major order, so that of those that meet the last one stays.
    pub(super) fn scatter_to(&mut self, view: &ViewRef, a: &TileRef, idx: &TileRef, attrs: &InstAttrs) {
        let oob = attrs.oob.unwrap_or(Oob::Undefined);
        let (rows, cols) = (self.value(a.valid.0), self.value(a.valid.1));
        let (source, index) = (self.tile(a), self.tile(idx));
        let table = self.table(view);
        if oob != Oob::Zero {
            self.check_indices((oob, true, ELEMENT), view, idx, &index, (rows, cols), table.total);
        }
        let ty = Ty::D(source.dtype);
        let source = if attrs.atomic.is_some() { source } else { source.raw() };
        self.code.for_count(rows, |code, i| {
            let (source, index) = (source.at_row(code, i), index.at_row(code, i));
            code.for_count(cols, |code, j| {
                let (source, index) = (source.at_col(code, j), index.at_col(code, j));
                let number = number(code, &index);
                let value = code.load(source.ty, source.first());
                let put = |code: &mut FunctionBuilder, number: Reg| {
                    let bytes = flat_offset(code, number, &table.dims);
                    let (base, offset) = (table.matrix.base, code.add(table.matrix.offset, bytes));
                    let addr = Addr { base, offset, stride: Stride::Const(0), gather: None };
                    let Some(op) = attrs.atomic else { return code.store(source.ty, addr, value) };
                    let dst = code.reg(source.ty.reg());
                    let unsigned = ops::kind(ty) == ops::Arithmetic::Unsigned;
                    let atomic = Atomic { dst, op, unsigned, ty: source.ty, addr, expected: None, value };
                    code.emit(Op::Atomic(Box::new(atomic)));
                };
                let (zero, last) = (code.int(0), code.plus(table.total, -1));
                match oob {
                    Oob::Undefined => put(code, number),
                    Oob::Wrap => {
                        let inside = code.bin(L::RemFloor, number, table.total);
                        put(code, inside);
                    }
                    Oob::Clamp => {
                        let low = code.bin(L::Max, number, zero);
                        let inside = code.bin(L::Min, low, last);
                        put(code, inside);
                    }
                    Oob::Zero => {
                        // One unsigned comparison: a negative index is huge.
                        let inside = code.cmp(C::LtU, number, table.total);
                        code.either(inside, |code| put(code, number), |_| {});
                    }
                }
            });
        });
    }

    fn table(&mut self, view: &ViewRef) -> Table {
        let size = self.kernel.tensors[view.tensor].dtype.size() as i64;
        let dims: Vec<(Reg, Stride)> = view
            .shape
            .iter()
            .zip(&view.strides)
            .map(|(&n, &s)| {
                let n = self.value(n);
                (n, self.byte_stride(s, size))
            })
            .collect();
        let mut total = self.code.int(1);
        for &(n, _) in &dims {
            total = self.code.bin(L::Mul, total, n);
        }
        Table { matrix: self.view(view), dims, total, dense: is_dense(&self.defs, view) }
    }

    /// The row of the check that an index is inside.
    fn index_check(&mut self, (oob, scatters, what): (Oob, bool, &'static str), view: &ViewRef, idx: &TileRef) -> u32 {
        let (tensor, tile) = (&self.kernel.tensors[view.tensor].name, &self.kernel.tiles[idx.tile].name);
        let (message, help) = Lookup { oob, scatters, what }.outside(tensor, tile);
        self.new_check(CheckData {
            code: codes::GATHER_INDEX,
            message,
            span: self.code.span,
            help: Some(help.to_owned()),
        })
    }

    /// Ends the launch at the first index that the mode does not allow, of a gather or a scatter.
    fn check_indices(
        &mut self,
        (oob, scatters, what): (Oob, bool, &'static str),
        view: &ViewRef,
        idx: &TileRef,
        index: &Matrix,
        (rows, cols): (Reg, Reg),
        total: Reg,
    ) {
        let row = self.index_check((oob, scatters, what), view, idx);
        self.code.for_count(rows, |code, i| {
            let index = index.at_row(code, i);
            code.for_count(cols, |code, j| {
                let at = index.at_col(code, j);
                let wide = number(code, &at);
                // One unsigned comparison: a negative index is huge. The other modes only need any element at all.
                let zero = code.int(0);
                let cond = match oob {
                    Oob::Undefined => code.cmp(C::LtU, wide, total),
                    _ => code.cmp(C::Gt, total, zero),
                };
                code.emit(Op::Check { cond, check: row, args: vec![wide, total, i, j] });
            });
        });
    }
}

/// Indices of rows as a row: they may stand in a column.
fn along(idx: &TileRef, index: Matrix) -> Matrix {
    if idx.cols == 1 { index.transposed() } else { index }
}

/// The first index of a matrix as an i64.
fn number(code: &mut FunctionBuilder, index: &Matrix) -> Reg {
    let narrow = code.load(index.ty, index.first());
    let unsigned = ops::kind(Ty::D(index.dtype)) == ops::Arithmetic::Unsigned;
    code.cast(if unsigned { Cast::Zext } else { Cast::Sext }, narrow, LTy::I64)
}

/// Ends the launch if there is a missing element (its row-major number, else -1). The indices are the sums of
/// `numbers`.
fn stop_at(code: &mut FunctionBuilder, missing: Reg, check: u32, numbers: &[Matrix], cols: Reg, total: Reg) {
    let zero = code.int(0);
    let cond = code.cmp(C::Ge, missing, zero);
    code.push();
    let (i, j) = (code.bin(L::DivU, missing, cols), code.bin(L::RemU, missing, cols));
    let at: Vec<Matrix> = numbers.iter().map(|m| m.at_row(code, i).at_col(code, j)).collect();
    let wide = match at[..] {
        [column, row] => {
            let (a, b) = (code.load(column.ty, column.first()), code.load(row.ty, row.first()));
            let sum = code.add(a, b);
            code.cast(if column.dtype == DType::U32 { Cast::Zext } else { Cast::Sext }, sum, LTy::I64)
        }
        _ => number(code, &at[0]),
    };
    let never = code.bits(LTy::Bool, 0);
    code.emit(Op::Check { cond: never, check, args: vec![wide, total, i, j] });
    let then = code.pop();
    code.emit(Op::If(Box::new(If { cond, then, els: Vec::new() })));
}

/// Byte offset of a flat row-major index into strided dimensions.
fn flat_offset(code: &mut FunctionBuilder, index: Reg, dims: &[(Reg, Stride)]) -> Reg {
    let Some((&(_, first), rest)) = dims.split_first() else { return code.int(0) };
    let mut left = index;
    let mut bytes = code.int(0);
    for &(extent, stride) in rest.iter().rev() {
        let digit = code.bin(L::RemU, left, extent);
        left = code.bin(L::DivU, left, extent);
        let step = scaled(code, digit, stride);
        bytes = code.add(bytes, step);
    }
    let step = scaled(code, left, first);
    code.add(bytes, step)
}
