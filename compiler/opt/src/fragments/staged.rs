//! Tiles that are loaded in a loop to be computed with: bulk copies bring them to shared memory ahead of their
//! iteration, as they bring operands, and threads take their elements from there. A thread's own loads from memory
//! would be waited for in each iteration, and are of one or two elements.

use super::{Finder, Fragment, OperandLoad, PART_BYTES};
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{TileRef, ViewRef};

/// Bytes of a tile at most: operands of products need shared memory more.
const MOST: u32 = 16 << 10;

/// Whether bulk copies swizzle lines of so many bytes, or parts of them.
pub(super) fn is_swizzled(line: u32) -> bool {
    line.is_multiple_of(PART_BYTES) || [32, 64].contains(&line)
}

impl Finder<'_> {
    /// A tile of that kind as a ring of so many slots, if its lines are whole lines of a swizzle.
    pub(super) fn stage(&mut self, tile: &TileRef, view: &ViewRef, slots: u32) {
        let tensor = &self.kernel.tensors[view.tensor];
        let element = tensor.dtype.size() as u32;
        let full = matches!(self.fragment(tile.tile), Ok(Fragment::Full(_)));
        let line = tile.cols * element;
        let fits = slots > 1 && full && is_swizzled(line) && tile.rows * line <= MOST;
        // Bulk copies count halves.
        let even = |p: &Poly| p.terms().iter().all(|(_, n)| n * i64::from(element) % 2 == 0);
        let place = self.place(tile, view).filter(|p| fits && !p.turned && even(&p.at[0]));
        let uses = self.uses.get(&tile.tile).copied().unwrap_or_default();
        if let (Some(place), 1) = (place, uses.writes) {
            self.loads.push(OperandLoad { slots, staged: true, ..place });
        }
    }
}
