//! Instructions whose meaning has a name and no expression: sorting, counting, random numbers. The interpreter computes
//! each by the plainest program (`ptoc_interp`), the lowering has its own; tests hold them against numpy.

use crate::Precondition;

/// What such an instruction computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Primitive {
    /// Each 32 elements of a row, with their indices, in descending order.
    Sort32,
    /// Each four lists of records in descending order, merged.
    MergeSort,
    /// Lists of records in descending order, a tile each, merged.
    MergeTiles,
    /// Where a comparison with a number of the row holds, and how often.
    Places,
    /// Scaled, to 4 bits, two in a byte.
    Pack,
    /// Of 4 bits, two in a byte, shifted and scaled back.
    Unpack,
    /// How often each value of a byte occurs in a row.
    Histogram,
    /// Words of Philox 4x32.
    Random,
}

/// The meaning of such an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named {
    /// What it computes.
    pub what: Primitive,
    /// What is demanded before.
    pub needs: &'static [Precondition],
    /// A kernel that uses it, as in [`crate::Cells`].
    pub example: &'static str,
}

/// Multipliers of Philox 4x32 and what is added to the key in each round (Salmon, Moraes, Dror and Shaw: Parallel
/// random numbers: as easy as 1, 2, 3; SC 2011).
pub const PHILOX_MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// See [`PHILOX_MULTIPLIERS`].
pub const PHILOX_WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
