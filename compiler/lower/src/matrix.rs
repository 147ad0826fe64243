//! Operands as strided matrices of memory, and the loop nests over them. Every element-wise instruction, load, store
//! and broadcast is one [`map`].

use super::code::FunctionBuilder;
use ptoc_ir::loops::{Addr, Base, MemTy, Reg, Stride};
use ptoc_tensor::DType;

/// A strided matrix in memory: element (i, j) is at `base + offset + i * rows + j * cols`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix {
    pub(super) base: Base,
    /// Byte offset of element (0, 0), an i64 register.
    pub(super) offset: Reg,
    /// Bytes from row to row.
    pub(super) rows: Stride,
    /// Bytes from column to column.
    pub(super) cols: Stride,
    /// How an element is stored.
    pub(super) ty: MemTy,
    /// What it is in the language.
    pub(super) dtype: DType,
    /// If set, where the rest of a row's offset is read.
    pub(super) places: Option<Places>,
}

/// What a gather has left of where its rows are: an i64 for each of them at `base + offset + i * rows + j * cols +
/// number`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) base: Base,
    pub(super) offset: Reg,
    pub(super) rows: Stride,
    pub(super) cols: Stride,
    pub(super) number: Reg,
}

impl Matrix {
    /// Rows and columns exchanged.
    pub(super) fn transposed(self) -> Matrix {
        let places = self.places.map(|p| Places { rows: p.cols, cols: p.rows, ..p });
        Matrix { rows: self.cols, cols: self.rows, places, ..self }
    }

    /// All rows are row 0.
    pub(super) fn one_row(self) -> Matrix {
        let places = self.places.map(|p| Places { rows: Stride::Const(0), ..p });
        Matrix { rows: Stride::Const(0), places, ..self }
    }

    /// All columns are column 0.
    pub(super) fn one_column(self) -> Matrix {
        let places = self.places.map(|p| Places { cols: Stride::Const(0), ..p });
        Matrix { cols: Stride::Const(0), places, ..self }
    }

    /// The part that starts at row `i`.
    pub(super) fn at_row(self, code: &mut FunctionBuilder, i: Reg) -> Matrix {
        let step = scaled(code, i, self.rows);
        let places = self.places.map(|p| {
            let step = scaled(code, i, p.rows);
            Places { offset: code.add(p.offset, step), ..p }
        });
        Matrix { offset: code.add(self.offset, step), places, ..self }
    }

    /// The part that starts at column `j`.
    pub(super) fn at_col(self, code: &mut FunctionBuilder, j: Reg) -> Matrix {
        self.transposed().at_row(code, j).transposed()
    }

    /// Address of element (0, 0).
    pub(super) fn first(&self) -> Addr {
        Addr { base: self.base, offset: self.offset, stride: Stride::Const(0), gather: None }
    }

    /// Address of element (0, lane).
    pub(super) fn lane(&self) -> Addr {
        Addr { base: self.base, offset: self.offset, stride: self.cols, gather: None }
    }

    /// What is to be added to the address of element (0, lane), in lanes.
    pub(super) fn lane_place(&self, code: &mut FunctionBuilder) -> Option<Reg> {
        let Places { base, offset, cols, number, .. } = self.places?;
        Some(code.load(MemTy::I64, Addr { base, offset, stride: cols, gather: Some(number) }))
    }

    /// Element (0, lane).
    pub(super) fn load(&self, code: &mut FunctionBuilder, ty: MemTy) -> Reg {
        let gather = self.lane_place(code);
        code.load(ty, Addr { gather, ..self.lane() })
    }

    /// The stride along columns is one element.
    pub(super) fn unit_cols(&self) -> bool {
        self.cols == Stride::Const(i64::from(self.ty.size()))
    }

    /// Whether `cols` columns and then the next row follow each other evenly.
    pub(super) fn flat(&self, cols: i64) -> bool {
        match (self.rows, self.cols) {
            (Stride::Const(r), Stride::Const(c)) => c.checked_mul(cols) == Some(r) && self.places.is_none(),
            _ => false,
        }
    }

    /// The same bytes as unsigned integers: for copies, which must keep every bit.
    pub(super) fn raw(self) -> Matrix {
        let ty = match self.ty {
            MemTy::F8E4M3 | MemTy::F8E5M2 => MemTy::U8,
            MemTy::F16 | MemTy::BF16 => MemTy::U16,
            MemTy::F32 => MemTy::I32,
            ty => ty,
        };
        Matrix { ty, ..self }
    }
}

/// `index * stride` in bytes.
pub(super) fn scaled(code: &mut FunctionBuilder, index: Reg, stride: Stride) -> Reg {
    match stride {
        Stride::Const(n) => code.times(index, n),
        Stride::Reg(r) => code.bin(ptoc_ir::loops::BinOp::Mul, index, r),
    }
}

/// Whether lanes should run along rows (down a column) rather than along columns.
fn lanes_down(code: &FunctionBuilder, rows: Reg, cols: Reg, dst: &Matrix, srcs: &[Matrix]) -> bool {
    match (code.known(rows), code.known(cols)) {
        (_, Some(1)) => return true,
        (Some(1), _) => return false,
        _ => {}
    }
    if dst.unit_cols() || dst.transposed().unit_cols() {
        return !dst.unit_cols();
    }
    // The destination is scattered either way: let the reads be contiguous.
    !srcs.iter().any(Matrix::unit_cols) && srcs.iter().any(|s| s.transposed().unit_cols())
}

/// `dst[i, j] = f(srcs[i, j]...)` for i < rows, j < cols. A source may be the very same elements as `dst`, and must
/// not overlap it otherwise.
pub(super) fn map(
    code: &mut FunctionBuilder,
    (rows, cols): (Reg, Reg),
    dst: &Matrix,
    srcs: &[Matrix],
    f: &mut dyn FnMut(&mut FunctionBuilder, &[Reg]) -> Reg,
) {
    if lanes_down(code, rows, cols, dst, srcs) {
        let turned: Vec<Matrix> = srcs.iter().map(|s| s.transposed()).collect();
        rows_of_lanes(code, (cols, rows), &dst.transposed(), &turned, f);
    } else {
        rows_of_lanes(code, (rows, cols), dst, srcs, f);
    }
}

fn rows_of_lanes(
    code: &mut FunctionBuilder,
    (rows, cols): (Reg, Reg),
    dst: &Matrix,
    srcs: &[Matrix],
    f: &mut dyn FnMut(&mut FunctionBuilder, &[Reg]) -> Reg,
) {
    let mut one = |code: &mut FunctionBuilder, count: Reg, dst: &Matrix, srcs: &[Matrix]| {
        code.lanes(count, |code, _| {
            let values: Vec<Reg> = srcs.iter().map(|s| s.load(code, s.ty)).collect();
            let value = f(code, &values);
            code.store(dst.ty, dst.lane(), value);
        });
    };
    if let Some(n) = code.known(cols)
        && srcs.iter().chain([dst]).all(|m| m.flat(n))
    {
        let count = code.times(rows, n);
        one(code, count, dst, srcs);
        return;
    }
    code.for_count(rows, |code, i| {
        let dst = dst.at_row(code, i);
        let srcs: Vec<Matrix> = srcs.iter().map(|s| s.at_row(code, i)).collect();
        one(code, cols, &dst, &srcs);
    });
}
