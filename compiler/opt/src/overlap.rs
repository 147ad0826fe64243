//! Alias analysis of placed tiles: which windows of tiles may have bytes in common, once tiles are placed.

use crate::tile_layout::{Storage, tile_layout};
use ptoc_ir::analysis::poly::Definitions;
use ptoc_ir::tile::{AddrKind, Kernel, TileRef, Value};
use ptoc_placement::Placement;

/// The tiles of a placed kernel.
#[derive(Clone, Copy)]
pub struct Overlap<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Where its tiles are.
    pub placement: &'a Placement,
    /// How indices of windows are computed.
    pub defs: &'a Definitions<'a>,
}

impl Overlap<'_> {
    /// The bytes from here to there of a known tile element, in its memory; `None` if only known at run time.
    fn range(&self, r: &TileRef) -> Option<Vec<(u64, u64)>> {
        let data = &self.kernel.tiles[r.tile];
        if data.addr == AddrKind::Dynamic {
            return None;
        }
        let offsets = &self.placement.offsets[r.tile];
        Some(offsets.iter().map(|&s| (s, s.saturating_add(data.ty.bytes()))).collect())
    }

    /// Whether `dst` may have bytes of `src` at other positions than `src` itself, so that an element-by-element loop
    /// would read what it has already overwritten.
    pub fn entangled(&self, dst: &TileRef, src: &TileRef) -> bool {
        let (d, s) = (&self.kernel.tiles[dst.tile], &self.kernel.tiles[src.tile]);
        if d.ty.loc != s.ty.loc || Storage::of(&d.ty) != Storage::of(&s.ty) {
            return false;
        }
        if dst.tile == src.tile {
            return (dst.element, dst.origin) != (src.element, src.origin) && !self.disjoint_windows(dst, src);
        }
        let (Some(a), Some(b)) = (self.range(dst), self.range(src)) else { return true };
        let overlap = a.iter().any(|x| b.iter().any(|y| x.0 < y.1 && y.0 < x.1));
        let same_positions =
            a == b && (dst.element, dst.origin) == (src.element, src.origin) && tile_layout(d) == tile_layout(s);
        overlap && !same_positions
    }

    /// Whether the two windows may have bytes in common at all.
    pub fn same_storage(&self, a: &TileRef, b: &TileRef) -> bool {
        a.tile == b.tile || self.entangled(a, b) || {
            let at = |t: &TileRef| &self.placement.offsets[t.tile];
            self.kernel.tiles[a.tile].ty.loc == self.kernel.tiles[b.tile].ty.loc && at(a) == at(b)
        }
    }

    /// Whether two windows of one tile (array) are surely apart.
    fn disjoint_windows(&self, a: &TileRef, b: &TileRef) -> bool {
        let known = |v: Option<Value>| v.map_or(Some(0), |v| self.defs.number(v));
        if let (Some(x), Some(y)) = (known(a.element), known(b.element))
            && x != y
        {
            return true;
        }
        if a.element != b.element {
            return false;
        }
        let start = |r: &TileRef| (known(r.origin.map(|o| o.0)), known(r.origin.map(|o| o.1)));
        let apart = |x: Option<i64>, n: u32, y: Option<i64>, m: u32| match (x, y) {
            (Some(x), Some(y)) => x + i64::from(n) <= y || y + i64::from(m) <= x,
            _ => false,
        };
        let ((ar, ac), (br, bc)) = (start(a), start(b));
        apart(ar, a.rows, br, b.rows) || apart(ac, a.cols, bc, b.cols)
    }
}
