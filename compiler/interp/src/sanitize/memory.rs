//! Memory of a launch that says where a statement goes on: indices in tiles, entries of tables.

use std::ptr;

/// A matrix of elements in memory, with bytes from row to row and from column to column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Matrix {
    /// Address of element (0, 0).
    pub at: usize,
    pub row: i64,
    pub col: i64,
}

impl Matrix {
    /// Of the three numbers that code tells.
    pub fn told(numbers: &[i64]) -> Matrix {
        Matrix { at: numbers[0] as usize, row: numbers[1], col: numbers[2] }
    }

    /// Elements that lie side by side.
    pub fn row_of(at: usize, size: usize) -> Matrix {
        Matrix { at, row: 0, col: size as i64 }
    }

    /// The bits of element (row, col), of `size` bytes, at most 8.
    ///
    /// # Safety
    /// The element is in memory that the running launch has: an element of the tile or the tensor that the matrix is
    /// of, which a block of this thread may read.
    pub unsafe fn element(&self, row: i64, col: i64, size: usize) -> u64 {
        let step = self.row.wrapping_mul(row).wrapping_add(self.col.wrapping_mul(col));
        let at = ptr::with_exposed_provenance::<u8>(self.at.wrapping_add_signed(step as isize));
        let mut raw = [0u8; 8];
        // SAFETY: the caller's promise; bytes have no alignment.
        unsafe { ptr::copy_nonoverlapping(at, raw.as_mut_ptr(), size.min(8)) };
        u64::from_le_bytes(raw)
    }
}
