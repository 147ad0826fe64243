//! Spill storage past the plan, for tiles whose live range a rewrite extended. (Tiles inside of a fused chain are
//! registers in the end.)

use crate::copy_propagation::meets;
use ptoc_ir::tile::{AddrKind, Kernel, Tile, TileRef};
use ptoc_isa::Loc;
use ptoc_placement::Placement;
use ptoc_placement::access::{AccessMode, is_private};

/// Bytes that tiles may take behind what is placed.
const ROOM: u64 = 1 << 20;

/// A placement that grows in Vec.
pub struct SpillStorage<'k> {
    kernel: &'k Kernel,
    /// The placement with the storage that was added.
    pub placement: Placement,
    /// Where the bytes behind what is placed begin, and where they are not taken yet.
    start: u64,
    end: u64,
}

impl<'k> SpillStorage<'k> {
    /// `None` where addresses in Vec are not known, or several machines share a kernel.
    pub fn new(kernel: &'k Kernel, placement: &Placement) -> Option<SpillStorage<'k>> {
        let vec = || kernel.tiles.iter().filter(|(_, data)| data.ty.loc == Loc::Vec);
        if kernel.on.is_some() || vec().any(|(_, data)| data.addr == AddrKind::Dynamic) {
            return None;
        }
        let end = vec().flat_map(|(t, data)| placement.offsets[t].iter().map(|at| at + data.ty.bytes())).max()?;
        let end = end.next_multiple_of(64);
        Some(SpillStorage { kernel, placement: placement.clone(), start: end, end })
    }

    /// Gives a tile bytes of its own; says whether it has them.
    pub fn moves(&mut self, tile: Tile) -> bool {
        let [at] = &mut self.placement.offsets[tile][..] else { return false };
        if *at >= self.start {
            return true;
        }
        let end = self.end + self.kernel.tiles[tile].ty.bytes().next_multiple_of(64);
        if end - self.start > ROOM {
            return false;
        }
        *at = self.end;
        self.end = end;
        true
    }

    /// Whether a window is the whole tile's, and the tile seen by nobody but by its name.
    pub fn is_plain(&self, t: &TileRef) -> bool {
        let private = is_private(self.kernel, t.tile) && self.kernel.tiles[t.tile].ty.loc == Loc::Vec;
        t.element.is_none() && t.origin.is_none() && private
    }

    /// Whether two tiles may have bytes in common.
    pub fn meet(&self, a: Tile, b: Tile) -> bool {
        meets(self.kernel, &self.placement, a, b)
    }

    /// Whether there is no byte that both of two lists of accesses touch and one writes.
    pub fn apart(&self, a: &[(AccessMode, TileRef)], b: &[(AccessMode, TileRef)]) -> bool {
        let reads = |x: AccessMode, y: AccessMode| (x, y) == (AccessMode::Read, AccessMode::Read);
        a.iter().all(|(how, t)| b.iter().all(|(this, u)| reads(*how, *this) || !self.meet(t.tile, u.tile)))
    }
}
