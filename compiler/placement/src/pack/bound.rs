//! Lower bound of a packing: the bound that no packing can beat: at each time, what is alive needs its bytes beside
//! those of the obstacles.

use super::Units;

/// The lowest extent that some packing might have.
pub(super) fn bound(units: &Units) -> u64 {
    let columns = units.columns as usize;
    // What begins in a column, less what ends there.
    let (mut more, mut less) = (vec![0u64; columns + 1], vec![0u64; columns + 1]);
    for b in &units.boxes {
        more[b.left as usize] = more[b.left as usize].saturating_add(b.size);
        less[b.right as usize] = less[b.right as usize].saturating_add(b.size);
    }
    let (mut alive, mut best) = (0u64, units.free);
    for column in 0..columns {
        alive = alive.saturating_add(more[column]).saturating_sub(less[column]);
        best = best.max(level(units, column as u32, alive));
    }
    best
}

/// How high `alive` units reach in a column where the obstacles have their places: below that height as much is free.
fn level(units: &Units, column: u32, alive: u64) -> u64 {
    if alive == 0 {
        return 0;
    }
    let (mut left, mut reach) = (alive, 0u64);
    // Sorted by their bottoms.
    for o in units.obstacles.iter().filter(|o| o.left <= column && column < o.right) {
        let gap = o.bottom.saturating_sub(reach);
        if gap >= left {
            break;
        }
        left -= gap;
        reach = reach.max(o.top);
    }
    reach.saturating_add(left)
}
