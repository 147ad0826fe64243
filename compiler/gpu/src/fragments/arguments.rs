//! Tensor maps of whole arrays, which a launch passes.

use crate::abi::Arguments;
use crate::gemm::{Obstacle, map, value};
use ptoc_opt::fragments::{OperandLoad, PART};
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
    /// Bytes of an element.
    pub element: u32,
    /// Rows of a box, and halves of one.
    pub lines: u32,
    /// See above.
    pub width: u32,
    /// The launch says whether bulk copies can bring it; else they always can.
    pub told: bool,
}

/// What addresses and strides of bulk copies are multiples of.
const ALIGNED: u64 = 16;
/// Rows of a map, and bytes from row to row, are less than these.
const MOST_ROWS: u64 = 1 << 31;
const MOST_PITCH: u64 = 1 << 40;

impl ArrayMap {
    pub(super) fn new(load: &OperandLoad) -> ArrayMap {
        let (pitch, total) = (load.pitch.clone(), load.total.clone());
        let (element, lines, width) = (load.element, load.box_lines(), load.line_bytes() / HALF as u32);
        ArrayMap { tensor: load.tensor, pitch, total, element, lines, width, told: load.is_told() }
    }

    /// So many elements as halves, which is what bulk copies count. Of an odd number of bytes there is no map.
    fn halves(&self, elements: u64) -> u64 {
        elements.saturating_mul(self.element.into()) / HALF
    }

    fn numbers(&self, a: &Arguments<'_>) -> [u64; 2] {
        [&self.pitch, &self.total].map(|n| u64::try_from(value(n, a.params)).unwrap_or(0))
    }

    /// Whether bulk copies can bring it in this launch.
    pub(crate) fn is_mapped(&self, a: &Arguments<'_>) -> bool {
        let [pitch, total] = self.numbers(a);
        let (address, bytes) = (a.tensors[self.tensor as usize], pitch.saturating_mul(self.element.into()));
        let rows = total.checked_div(pitch).unwrap_or(0);
        (1..MOST_ROWS).contains(&rows)
            && [address, bytes].iter().all(|n| n % ALIGNED == 0)
            && (ALIGNED..MOST_PITCH).contains(&bytes)
            && self.halves(pitch) < MOST_ROWS
    }

    /// The map. An array without elements, or one that bulk copies cannot bring, is never looked at, but its map has to
    /// be one.
    pub(crate) fn map(&self, a: &Arguments<'_>) -> TensorMap {
        let [pitch, total] = self.numbers(a);
        let address = a.tensors[self.tensor as usize];
        let least = ALIGNED / HALF;
        let (base, pitch, rows) = match self.told && !self.is_mapped(a) {
            true => (address & !(ALIGNED - 1), u64::from(PART), 1),
            false => (address, self.halves(pitch).max(least), (total / pitch.max(1)).max(1)),
        };
        map(base, vec![pitch, rows], vec![pitch * HALF], [self.width, self.lines])
    }

    /// What of the launch's parameters keeps bulk copies from it.
    pub fn obstacle(&self, params: &[i64]) -> Option<(u32, Obstacle)> {
        let bytes = value(&self.pitch, params).wrapping_mul(self.element.into());
        let odd = self.told && bytes % ALIGNED as i64 != 0;
        odd.then(|| (self.tensor, Obstacle::Stride(bytes, self.pitch.symbols().collect())))
    }
}
