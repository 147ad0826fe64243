//! Cells that are elements in even steps of one tile (every other column, a window, a tile of the same shape): a matrix
//! with strides, so that no lane computes where its element lies, and none has to be kept inside.

use super::cells::CellOperand;
use super::code::FunctionBuilder;
use super::matrix::Matrix;
use ptoc_ir::loops::{Reg, Stride};
use ptoc_isa::{BinOp, Cell, CmpOp, IndexExpr, Test};

/// `base + i * row + j * col` for the element in row i and column j.
#[derive(Clone, Copy)]
struct Affine {
    base: i64,
    row: i64,
    col: i64,
}

impl Affine {
    fn number(base: i64) -> Affine {
        Affine { base, row: 0, col: 0 }
    }

    /// The number, if it is the same for all elements.
    fn fixed(self) -> Option<i64> {
        (self.row == 0 && self.col == 0).then_some(self.base)
    }

    fn times(self, n: i64) -> Option<Affine> {
        let by = |x: i64| x.checked_mul(n);
        Some(Affine { base: by(self.base)?, row: by(self.row)?, col: by(self.col)? })
    }

    fn plus(self, other: Affine) -> Option<Affine> {
        let base = self.base.checked_add(other.base)?;
        Some(Affine { base, row: self.row.checked_add(other.row)?, col: self.col.checked_add(other.col)? })
    }

    /// The least and the greatest number, of so many rows and columns at most.
    fn range(self, (rows, cols): (i64, i64)) -> Option<(i64, i64)> {
        let far = |step: i64, count: i64| step.checked_mul((count - 1).max(0));
        let (down, right) = (far(self.row, rows)?, far(self.col, cols)?);
        let least = self.base.checked_add(down.min(0))?.checked_add(right.min(0))?;
        let most = self.base.checked_add(down.max(0))?.checked_add(right.max(0))?;
        Some((least, most))
    }
}

/// What is known where the cells are lowered.
struct Known<'a> {
    code: &'a FunctionBuilder,
    sources: &'a [CellOperand],
    /// Rows and columns, at most.
    extents: (i64, i64),
}

/// The matrix whose element (i, j) is the cell of row i and column j, if there is one. The destination has no more
/// than `extents` rows and columns.
pub(super) fn matrix(
    code: &mut FunctionBuilder,
    cell: &Cell,
    sources: &[CellOperand],
    extents: (i64, i64),
) -> Option<Matrix> {
    let (m, row, col) = Known { code, sources, extents }.element(cell)?;
    let (Stride::Const(down), Stride::Const(right), None) = (m.rows, m.cols, m.places) else { return None };
    let bytes = |r: i64, c: i64| r.checked_mul(down)?.checked_add(c.checked_mul(right)?);
    let (rows, cols) = (bytes(row.row, col.row)?, bytes(row.col, col.col)?);
    let offset = code.plus(m.offset, bytes(row.base, col.base)?);
    Some(Matrix { offset, rows: Stride::Const(rows), cols: Stride::Const(cols), ..m })
}

impl Known<'_> {
    /// The tile, row and column of every element, all inside.
    fn element(&self, cell: &Cell) -> Option<(Matrix, Affine, Affine)> {
        match *cell {
            Cell::At(k, row, col) => {
                let CellOperand::Tile(m, (rows, cols), _) = self.sources.get(k)? else { return None };
                let (row, col) = (self.num(row)?, self.num(col)?);
                self.inside(row, *rows)?;
                self.inside(col, *cols)?;
                Some((*m, row, col))
            }
            Cell::If(test, a, b) => self.element(if self.test(test)? { a } else { b }),
            _ => None,
        }
    }

    fn inside(&self, n: Affine, count: Reg) -> Option<()> {
        let (least, most) = n.range(self.extents)?;
        (least >= 0 && most < self.code.known(count)?).then_some(())
    }

    fn num(&self, n: &IndexExpr) -> Option<Affine> {
        let shape = |k: usize| match self.sources.get(k) {
            Some(CellOperand::Tile(_, shape, _)) => Some(*shape),
            _ => None,
        };
        let known = |reg: Reg| self.code.known(reg).map(Affine::number);
        match *n {
            IndexExpr::Row => Some(Affine { base: 0, row: 1, col: 0 }),
            IndexExpr::Col => Some(Affine { base: 0, row: 0, col: 1 }),
            IndexExpr::Rows(k) => known(shape(k)?.0),
            IndexExpr::Cols(k) => known(shape(k)?.1),
            IndexExpr::Width(k) => match self.sources.get(k)? {
                CellOperand::Tile(_, _, width) => Some(Affine::number(*width)),
                _ => None,
            },
            IndexExpr::Size(k) => match self.sources.get(k)? {
                CellOperand::Tile(m, ..) => Some(Affine::number(m.dtype.size() as i64)),
                _ => None,
            },
            IndexExpr::Is(n) => Some(Affine::number(n)),
            IndexExpr::Arg(k) => match self.sources.get(k)? {
                CellOperand::Index(r) => known(*r),
                _ => None,
            },
            IndexExpr::At(..) => None,
            IndexExpr::Bin(op, a, b) => {
                let (a, b) = (self.num(a)?, self.num(b)?);
                match (op, a.fixed(), b.fixed()) {
                    (BinOp::Add, ..) => a.plus(b),
                    (BinOp::Sub, ..) => a.plus(b.times(-1)?),
                    (BinOp::Mul, _, Some(n)) => a.times(n),
                    (BinOp::Mul, Some(n), _) => b.times(n),
                    (BinOp::Div, Some(a @ 0..), Some(b @ 1..)) => Some(Affine::number(a / b)),
                    (BinOp::Rem, Some(a @ 0..), Some(b @ 1..)) => Some(Affine::number(a % b)),
                    (BinOp::Shr, Some(a @ 0..), Some(b @ 0..64)) => Some(Affine::number(a >> b)),
                    (BinOp::And, Some(a), Some(b)) => Some(Affine::number(a & b)),
                    _ => None,
                }
            }
        }
    }

    /// Whether a test holds, if it does so for all elements or for none.
    fn test(&self, test: &Test) -> Option<bool> {
        match test {
            Test::Cmp(op, a, b) => {
                let difference = self.num(a)?.plus(self.num(b)?.times(-1)?)?;
                let (least, most) = difference.range(self.extents)?;
                let (always, never) = match op {
                    CmpOp::Lt => (most < 0, least >= 0),
                    CmpOp::Le => (most <= 0, least > 0),
                    CmpOp::Gt => (least > 0, most <= 0),
                    CmpOp::Ge => (least >= 0, most < 0),
                    CmpOp::Eq => (least == 0 && most == 0, least > 0 || most < 0),
                    CmpOp::Ne => (least > 0 || most < 0, least == 0 && most == 0),
                };
                (always || never).then_some(always)
            }
            Test::And(a, b) => match (self.test(a), self.test(b)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
        }
    }
}
