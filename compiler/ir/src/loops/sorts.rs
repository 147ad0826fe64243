//! Sorts of short lists and merges of sorted ones, of records as TSORT32 makes them.

use super::{Addr, MemTy, Reg};
pub use ptoc_abi::MERGED;
use ptoc_isa::RECORD;

/// For each row i, every 32 neighbouring columns of `a` are a list, the last one perhaps a shorter one. Its elements in
/// [`before`]'s order, equal ones in ascending order of their columns, become its records in `d`: record r of row i is
/// that of the list to which column r belongs. Values keep every bit.
///
/// A record is eight bytes in fields of the value's size: the value, zeros, and its element of `index`, I32 in memory,
/// in the last four bytes. All strides are in bytes. `d` overlaps neither `a` nor `index`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sort {
    /// Type of the values: F32 or F16.
    pub ty: MemTy,
    /// Rows (i64 register), at least 0.
    pub rows: Reg,
    /// Columns.
    pub cols: Reg,
    /// Field 0 of record 0 of row 0.
    pub d: Addr,
    /// From row to row, from field to field.
    pub d_strides: (i64, i64),
    /// Value (0, 0).
    pub a: Addr,
    /// From row to row, from column to column.
    pub a_strides: (i64, i64),
    /// Index (0, 0).
    pub index: Addr,
    /// From row to row, from column to column.
    pub index_strides: (i64, i64),
}

/// Merges lists of records of [`Sort`]: as long as a list has records left, the first of what is left of one of them
/// becomes the next record of `d`: the one whose value is before the others', of equal ones the first list's. So lists
/// that are in order make one that is; others are merged by the same steps. Records keep every bit. `d` overlaps no
/// list.
#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    /// Type of the values: F32 or F16.
    pub ty: MemTy,
    /// Field 0 of the first record.
    pub d: Addr,
    /// Bytes from field to field.
    pub d_stride: i64,
    /// What is merged.
    pub lists: Lists,
}

/// The lists of a [`Merge`].
#[derive(Clone, Debug, PartialEq)]
pub enum Lists {
    /// Four lists at most, one merge.
    Each(Vec<Records>),
    /// Neighbouring lists of `length` records, the last one perhaps a shorter one. Each four of them, the last ones
    /// perhaps fewer, are merged to where they came from.
    Runs {
        /// All of them.
        all: Records,
        /// Records of a list (i64 register), at least 1.
        length: Reg,
    },
}

/// Records that follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Records {
    /// Field 0 of the first.
    pub at: Addr,
    /// Bytes from field to field.
    pub stride: i64,
    /// How many (i64 register), at least 0.
    pub count: Reg,
}

/// Whether value `x` comes before `y` wherever they stand: larger ones do, and NaN before numbers. Zeros of either sign
/// are equal.
pub fn before(x: f32, y: f32) -> bool {
    x > y || (x.is_nan() && !y.is_nan())
}

/// Fields of a record with values of this type; `None` if there are no such records.
pub fn fields(ty: MemTy) -> Option<i64> {
    matches!(ty, MemTy::F32 | MemTy::F16).then(|| RECORD as i64 / i64::from(ty.size()))
}

impl Merge {
    /// Every run of records that is read.
    pub fn read(&self) -> &[Records] {
        match &self.lists {
            Lists::Each(lists) => lists,
            Lists::Runs { all, .. } => std::slice::from_ref(all),
        }
    }

    /// The registers that it reads, those of addresses aside.
    pub fn counts(&self) -> impl Iterator<Item = Reg> {
        let length = if let Lists::Runs { length, .. } = self.lists { Some(length) } else { None };
        self.read().iter().map(|r| r.count).chain(length)
    }
}
