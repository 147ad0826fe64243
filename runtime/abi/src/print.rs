//! What a `print` of compiled code hands over.

use ptoc_tensor::DType;

/// A piece of a `print` as the compiler knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrintItem {
    /// Text.
    Text(String),
    /// A scalar of this dtype.
    Scalar(DType),
    /// Rows of memory.
    Matrix {
        /// Type of an element.
        dtype: DType,
        /// Bytes from row to row.
        row_stride: i64,
        /// Bytes from column to column.
        col_stride: i64,
    },
}
