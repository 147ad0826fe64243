//! Instructions that put elements elsewhere, in loop IR: a matrix with strides (`moved.rs`), runs of neighbours
//! (`runs.rs`), else rows of lanes, each of which computes where its element lies and reads it there. What a lane would
//! not read is read somewhere inside and not taken.

use super::code::FunctionBuilder;
use super::matrix::{Matrix, map, scaled};
use super::runs::Runs;
use super::{Lower, moved, ops};
use ptoc_diagnostics::codes;
use ptoc_ir::indexed;
use ptoc_ir::loops::{Addr, Base, BinOp as L, Cast, CmpOp as C, LTy, MemTy, Reg, Stride};
use ptoc_ir::tile::{CheckData, Inst, Operand, TileRef, Ty};
use ptoc_isa::{BinOp, Cell, Cells, IndexExpr, Test};
use ptoc_tensor::DType;

/// An operand in registers.
pub(super) enum CellOperand {
    /// A tile, the tile's dtype, valid rows and columns, columns of its capacity.
    Tile(Matrix, (Reg, Reg), i64),
    /// An i64.
    Index(Reg),
    /// The bits of an element, as they are loaded raw; the element; and, of an integer, its value in i64.
    Element(Reg, Reg, Option<Reg>),
}

/// What an expression is made of.
pub(super) struct Emit<'a> {
    pub(super) sources: &'a [CellOperand],
    /// The destination's dtype, and how its elements are stored: raw, or, where they are kept wider, as numbers.
    pub(super) dtype: DType,
    pub(super) ty: MemTy,
    pub(super) raw: bool,
    pub(super) at: (Reg, Reg),
}

impl Lower<'_> {
    pub(super) fn cells(&mut self, cells: &Cells, inst: &Inst) -> Option<()> {
        let Some(Operand::Tile(dst)) = inst.operands.first() else { return None };
        let dst = *dst;
        let mut sources = Vec::new();
        let mut tiles: Vec<(usize, TileRef)> = Vec::new();
        for (k, operand) in inst.operands.iter().enumerate() {
            sources.push(match operand {
                Operand::Tile(t) => {
                    if !self.products.windows.contains_key(&t.tile) {
                        tiles.push((k, *t));
                    }
                    let shape = (self.value(t.valid.0), self.value(t.valid.1));
                    CellOperand::Tile(self.operand(t), shape, i64::from(t.cols))
                }
                Operand::Scalar(v) => match self.kernel.values[*v].ty {
                    Ty::Index => CellOperand::Index(self.value(*v)),
                    ty @ Ty::D(d) => {
                        let value = self.value(*v);
                        let whole = d.is_int().then(|| widened(&mut self.code, ty, value));
                        let settled = ops::settle(&mut self.code, ty, value);
                        CellOperand::Element(settled, settled, whole)
                    }
                },
                Operand::View(_) => return None,
            });
        }
        let Some(CellOperand::Tile(d, shape, _)) = sources.first() else { return None };
        let (d, shape) = (*d, *shape);
        // Left keeps elements wider than they are: those are converted, and all others copied bit by bit.
        let raw = d.ty == MemTy::of(d.dtype);
        let d = if raw { d.raw() } else { d };
        // An element that only the same one of the destination is made of is read before that is written.
        let reads = cells.value.reads();
        let elsewhere = |k: usize| {
            let here = (&IndexExpr::Row, &IndexExpr::Col);
            let looks = reads.iter().any(|(_, r, c)| r.looks() || c.looks());
            looks || reads.iter().any(|&(of, r, c)| of == k && (r, c) != here)
        };
        let read: Vec<(&TileRef, bool)> = tiles[1..].iter().map(|(k, t)| (t, elsewhere(*k))).collect();
        let most = |count: Reg, all: u32| self.code.known(count).unwrap_or(i64::from(all));
        let extents = (most(shape.0, dst.rows), most(shape.1, dst.cols));
        if let Some(source) = moved::matrix(&mut self.code, &cells.value, &sources, extents) {
            let source = if raw { source.raw() } else { source };
            let clash = self.clash(&dst, &read);
            self.write_apart(clash, &dst, &d, shape, &mut |code, target| {
                map(code, shape, target, &[source], &mut |_, v| v[0]);
            });
            return Some(());
        }
        for (source, operand) in sources.iter_mut().zip(&inst.operands) {
            if let (CellOperand::Element(bits, ..), Operand::Scalar(v)) = (source, operand)
                && let Ty::D(d) = self.kernel.values[*v].ty
            {
                let value = self.value(*v);
                *bits = self.raw_bits(d, value);
            }
        }
        let emit = |at| Emit { sources: &sources, dtype: d.dtype, ty: d.ty, raw, at };
        for (k, r, c) in cells.value.reads() {
            if r.looks() || c.looks() {
                self.check_looks(inst, &cells.value, (k, r, c), shape, &emit);
            }
        }
        let runs = Runs { sources: &sources, dtype: d.dtype, ty: d.ty, raw };
        let vectors = self.target.gpu.is_none();
        let clash = self.clash(&dst, &read);
        self.write_apart(clash, &dst, &d, shape, &mut |code, target| {
            if vectors && runs.emit(code, &cells.value, shape, target).is_some() {
                return;
            }
            code.for_count(shape.0, |code, i| {
                let row = target.at_row(code, i);
                code.lanes(shape.1, |code, j| {
                    let value = emit((i, j)).cell(code, &cells.value);
                    code.store(row.ty, row.lane(), value);
                });
            });
        });
        Some(())
    }

    /// TSCATTER: element after element, so that the last one stays.
    pub(super) fn scatter(&mut self, dst: &TileRef, src: &TileRef, idx: &TileRef) {
        let whole = (self.value(dst.valid.0), self.value(dst.valid.1));
        let (rows, cols) = (self.value(src.valid.0), self.value(src.valid.1));
        let (d, a, index) = (self.tile(dst), self.tile(src), self.tile(idx));
        let tiles = &self.kernel.tiles;
        let (to, from) = (tiles[dst.tile].name.clone(), tiles[idx.tile].name.clone());
        let check = self.new_check(CheckData {
            code: codes::GATHER_INDEX,
            message: indexed::outside_rows(&from, &to),
            span: self.code.span,
            help: None,
        });
        let clash = self.clash(dst, &[(src, true), (idx, true)]);
        self.write_apart(clash, dst, &d.raw(), whole, &mut |code, target| {
            let (target, d, a) = (target.raw(), d.raw(), a.raw());
            if target.base != d.base || target.offset != d.offset {
                map(code, whole, &target, &[d], &mut |_, v| v[0]);
            }
            code.for_count(rows, |code, i| {
                let (a, index) = (a.at_row(code, i), index.at_row(code, i));
                code.for_count(cols, |code, j| {
                    let (x, at) = (a.at_col(code, j), index.at_col(code, j));
                    let row = code.load(at.ty, at.first());
                    let row = widened(code, Ty::D(index.dtype), row);
                    let cond = code.cmp(C::LtU, row, whole.0);
                    code.emit(ptoc_ir::loops::Op::Check { cond, check, args: vec![row, i, j, whole.0] });
                    let x = code.load(x.ty, x.first());
                    let place = target.at_row(code, row).at_col(code, j);
                    code.store(place.ty, place.first(), x);
                });
            });
        });
    }

    /// The bits of a scalar as an element of this dtype is loaded raw. They go through memory, where a narrow float
    /// becomes its bits.
    fn raw_bits(&mut self, d: DType, value: Reg) -> Reg {
        let settled = ops::settle(&mut self.code, Ty::D(d), value);
        if !d.is_float() {
            return settled;
        }
        let space = self.temp_space(8);
        let one = self.code.int(1);
        let base = Base::Space(space);
        let offset = self.code.int(0);
        let m = Matrix {
            base,
            offset,
            rows: Stride::Const(0),
            cols: Stride::Const(0),
            ty: MemTy::of(d),
            dtype: d,
            places: None,
        };
        map(&mut self.code, (one, one), &m, &[], &mut |_, _| settled);
        let raw = m.raw();
        self.code.load(raw.ty, raw.first())
    }

    /// Ends the launch at the first index that leads out of the tile that it is looked for in.
    fn check_looks<'s>(
        &mut self,
        inst: &Inst,
        whole: &Cell,
        (k, r, c): (usize, &'static IndexExpr, &'static IndexExpr),
        shape: (Reg, Reg),
        emit: &dyn Fn((Reg, Reg)) -> Emit<'s>,
    ) {
        let Some((index, at_row, at_col)) = r.first_look().or(c.first_look()) else { return };
        let name = |k: usize| match &inst.operands[k] {
            Operand::Tile(t) => self.kernel.tiles[t.tile].name.clone(),
            _ => Default::default(),
        };
        let row = self.new_check(CheckData {
            code: codes::GATHER_INDEX,
            message: indexed::outside_tile(&name(index), &name(k)),
            span: self.code.span,
            help: None,
        });
        self.code.for_count(shape.0, |code, i| {
            code.for_count(shape.1, |code, j| {
                let e = emit((i, j));
                let CellOperand::Tile(_, (rows, cols), _) = &e.sources[k] else { return };
                let (y, x) = (e.num(code, r), e.num(code, c));
                // One unsigned comparison each: a negative number is huge.
                let inside = code.cmp(C::LtU, y, *rows);
                let across = code.cmp(C::LtU, x, *cols);
                let inside = code.bin(L::And, inside, across);
                // Where the element is another one, nothing is asked of this one.
                let cond = match whole {
                    Cell::If(test, a, _) => {
                        let taken = e.test(code, test);
                        let here = a.reads().contains(&(k, r, c));
                        let wanted = if here { taken } else { code.un(ptoc_ir::loops::UnOp::Not, taken) };
                        let not = code.un(ptoc_ir::loops::UnOp::Not, wanted);
                        code.bin(L::Or, not, inside)
                    }
                    _ => inside,
                };
                let value = e.num(code, &IndexExpr::At(index, at_row, at_col));
                let (y, x) = (e.num(code, at_row), e.num(code, at_col));
                code.emit(ptoc_ir::loops::Op::Check { cond, check: row, args: vec![value, y, x] });
            });
        });
    }
}

/// An integer in i64.
fn widened(code: &mut FunctionBuilder, ty: Ty, value: Reg) -> Reg {
    match code.ty(value) {
        LTy::I64 => value,
        _ if ops::kind(ty) == ops::Arithmetic::Unsigned => code.cast(Cast::Zext, value, LTy::I64),
        _ => code.cast(Cast::Sext, value, LTy::I64),
    }
}

impl Emit<'_> {
    /// Bits of the element, as they are stored raw.
    pub(super) fn cell(&self, code: &mut FunctionBuilder, cell: &Cell) -> Reg {
        match *cell {
            Cell::At(k, r, c) => {
                let at = (self.num(code, r), self.num(code, c));
                self.element(code, k, at)
            }
            Cell::Scalar(k) => match self.sources[k] {
                CellOperand::Element(_, number, _) if !self.raw => number,
                CellOperand::Element(bits, ..) => bits,
                _ => code.bits(self.ty.reg(), 0),
            },
            Cell::Is(n) if !self.raw => ops::number(code, Ty::D(self.dtype), n),
            Cell::Is(n) => code.bits(self.ty.reg(), ptoc_ir::cells::small(self.dtype, n)),
            Cell::Of(n) => {
                let n = self.num(code, n);
                if self.ty.reg() == LTy::I64 { n } else { code.cast(Cast::Wrap, n, LTy::I32) }
            }
            Cell::If(t, a, b) => {
                let (t, a, b) = (self.test(code, t), self.cell(code, a), self.cell(code, b));
                code.select(t, a, b)
            }
        }
    }

    /// An element of a tile, raw (or as a number); a place outside is the nearest one inside.
    fn element(&self, code: &mut FunctionBuilder, k: usize, (row, col): (Reg, Reg)) -> Reg {
        let CellOperand::Tile(m, (rows, cols), _) = &self.sources[k] else { return code.bits(self.ty.reg(), 0) };
        let m = if self.raw { m.raw() } else { *m };
        let zero = code.int(0);
        let mut inside = |n: Reg, count: Reg| {
            let last = code.plus(count, -1);
            let low = code.bin(L::Min, n, last);
            code.bin(L::Max, low, zero)
        };
        let (row, col) = (inside(row, *rows), inside(col, *cols));
        let (down, right) = (scaled(code, row, m.rows), scaled(code, col, m.cols));
        let bytes = code.add(down, right);
        let addr = Addr { base: m.base, offset: m.offset, stride: Stride::Const(0), gather: Some(bytes) };
        code.load(m.ty, addr)
    }

    pub(super) fn num(&self, code: &mut FunctionBuilder, n: &IndexExpr) -> Reg {
        let shape = |k: usize| match &self.sources[k] {
            CellOperand::Tile(_, shape, _) => Some(*shape),
            _ => None,
        };
        match *n {
            IndexExpr::Row => self.at.0,
            IndexExpr::Col => self.at.1,
            IndexExpr::Rows(k) => shape(k).map_or_else(|| code.int(1), |s| s.0),
            IndexExpr::Cols(k) => shape(k).map_or_else(|| code.int(1), |s| s.1),
            IndexExpr::Width(k) => match self.sources[k] {
                CellOperand::Tile(_, _, width) => code.int(width),
                _ => code.int(1),
            },
            IndexExpr::Size(k) => match &self.sources[k] {
                CellOperand::Tile(m, ..) => code.int(m.dtype.size() as i64),
                _ => code.int(8),
            },
            IndexExpr::Is(n) => code.int(n),
            IndexExpr::Arg(k) => match self.sources[k] {
                CellOperand::Index(r) | CellOperand::Element(.., Some(r)) => r,
                _ => code.int(0),
            },
            IndexExpr::At(k, r, c) => {
                let at = (self.num(code, r), self.num(code, c));
                let CellOperand::Tile(m, ..) = &self.sources[k] else { return code.int(0) };
                let x = self.element(code, k, at);
                widened(code, Ty::D(m.dtype), x)
            }
            IndexExpr::Bin(op, a, b) => {
                let (a, b) = (self.num(code, a), self.num(code, b));
                // A division by a number of columns that is 0 has no element to be for.
                match op {
                    BinOp::Div | BinOp::Rem if code.known(b) == Some(1) => {
                        if op == BinOp::Div {
                            a
                        } else {
                            code.int(0)
                        }
                    }
                    op => ops::binary(code, Ty::Index, op, a, b),
                }
            }
        }
    }

    fn test(&self, code: &mut FunctionBuilder, t: &Test) -> Reg {
        match t {
            Test::Cmp(op, a, b) => {
                let (a, b) = (self.num(code, a), self.num(code, b));
                ops::compare(code, Ty::Index, *op, a, b)
            }
            Test::And(a, b) => {
                let (a, b) = (self.test(code, a), self.test(code, b));
                code.bin(L::And, a, b)
            }
        }
    }
}
