//! Grids: how many blocks there may be.

use std::fmt;

/// Most dimensions of a grid.
pub const MAX_GRID_RANK: usize = 16;

/// Blocks that a launch may have. Who watches one marks elements with the numbers of blocks, in 32 bits, and needs two
/// more marks; a launch that nobody watches is refused alike.
pub const MOST_BLOCKS: u32 = u32::MAX - 2;

/// Calls of the block function that each thread gets at least, where blocks join: threads are not equally fast, and
/// one that is done takes calls of another.
pub const CALLS_PER_THREAD: i64 = 8;

/// How many blocks of another dimension count as much as one of the last, where blocks join along both. The last are
/// the columns of a product: a call packs its columns once for all of its rows, so it is to have more of these.
pub const COLUMN_WEIGHT: i64 = 4;

/// A grid of these extents has more than [`MOST_BLOCKS`] blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooManyBlocks(pub Vec<i64>);

impl fmt::Display for TooManyBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the grid {:?} has more than {MOST_BLOCKS} blocks", self.0)
    }
}

/// The number of blocks of a grid of these extents.
///
/// # Errors
/// There are more than [`MOST_BLOCKS`].
pub fn count(extents: &[i64]) -> Result<u32, TooManyBlocks> {
    if extents.iter().any(|&e| e <= 0) {
        return Ok(0);
    }
    let blocks = extents.iter().try_fold(1i64, |n, &e| n.checked_mul(e)).and_then(|n| u32::try_from(n).ok());
    blocks.filter(|&n| n <= MOST_BLOCKS).ok_or_else(|| TooManyBlocks(extents.to_vec()))
}
