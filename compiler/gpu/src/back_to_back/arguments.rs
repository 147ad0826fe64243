//! Tensor maps of whole arrays, which a launch passes.

use crate::abi::Arguments;
use crate::gemm::{map, value};
use ptoc_opt::back_to_back::{OperandLoad, PART};
use ptoc_opt::matrix_unit::Number;
use ptoc_ptx::sim::TensorMap;

/// Bytes of an element.
const HALF: u64 = 2;

/// An array as a matrix with dense rows, and the boxes of a window.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayMap {
    /// The argument.
    pub tensor: u32,
    /// Elements of a row.
    pub pitch: Number,
    /// Elements of the array.
    pub total: Number,
    /// Rows of a box.
    pub lines: u32,
}

impl ArrayMap {
    pub(super) fn new(load: &OperandLoad) -> ArrayMap {
        let (pitch, total) = (load.pitch.clone(), load.total.clone());
        ArrayMap { tensor: load.tensor, pitch, total, lines: load.lines }
    }

    /// The map. An array without elements is never looked at, but its map has to be one.
    pub(crate) fn map(&self, a: &Arguments<'_>) -> TensorMap {
        let number = |n: &Number| u64::try_from(value(n, a.params)).unwrap_or(0);
        let (pitch, total) = (number(&self.pitch).max(8), number(&self.total));
        map(
            a.tensors[self.tensor as usize],
            vec![pitch, (total / pitch).max(1)],
            vec![pitch * HALF],
            [PART, self.lines],
        )
    }
}
