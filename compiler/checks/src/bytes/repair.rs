//! An address at which a tile is in nobody's way.

use super::walk::analyse;
use crate::plan_check;
use ptoc_diagnostics::Account;
use ptoc_ir::tile::{AddrKind, Kernel, Tile};
use ptoc_isa::Target;
use ptoc_placement::liveness::liveness;
use ptoc_placement::{memories, placement};

/// Addresses that are tried.
const TRIES: usize = 16;

/// The lowest address for `tile`, a single one at a constant address, at which it takes part in no overlap and the
/// kernel still has a sound plan. Found by trying: the plan is made and checked anew for each.
pub(super) fn free_address(kernel: &Kernel, tile: Tile, target: &Target, trial: Account<'_>) -> Option<u64> {
    let data = &kernel.tiles[tile];
    let AddrKind::Fixed(now) = &data.addr else { return None };
    if data.count != 1 {
        return None;
    }
    let (align, capacity) = (memories::align(target, data.ty.loc), memories::capacity(target, data.ty.loc));
    let others = kernel.tiles.iter().filter(|(t, d)| *t != tile && target.home(d.ty.loc) == target.home(data.ty.loc));
    let mut ends: Vec<u64> = others
        .filter_map(|(_, d)| match &d.addr {
            AddrKind::Fixed(at) => Some(at.iter().map(|a| a.saturating_add(d.ty.bytes())).collect::<Vec<_>>()),
            _ => None,
        })
        .flatten()
        .chain([0])
        .filter_map(|end| end.checked_next_multiple_of(align))
        .filter(|at| *at != now[0] && at.checked_add(data.ty.bytes()).is_some_and(|end| end <= capacity))
        .collect();
    ends.sort_unstable();
    ends.dedup();
    ends.into_iter().take(TRIES).find(|&at| {
        let mut moved = kernel.clone();
        moved.tiles[tile].addr = AddrKind::Fixed(vec![at]);
        let apart = analyse(&moved, trial).is_some_and(|f| {
            f.overlaps.iter().all(|o| o.tile != tile && f.def(o.by).tile != tile)
                && f.unwritten.iter().all(|u| u.tile != tile)
        });
        apart
            && placement::plan_with(&moved, &liveness(&moved), target, u32::MAX)
                .is_ok_and(|plan| plan_check::check(&moved, &plan, target).is_empty())
    })
}
