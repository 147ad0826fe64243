//! First fit: rectangle after rectangle takes the lowest gap that is free for its whole life. All depends on the order.

use super::{Best, Budget, Units};
use std::cmp::Reverse;

/// The orders that usually suffice.
pub(super) fn orders(units: &Units, best: &mut Best) {
    let boxes = &units.boxes;
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    // Offered even if there is nothing to place.
    for n in 0..6 {
        match n {
            0 => order.sort_by_key(|&i| (boxes[i].left, i)),
            1 => order.sort_by_key(|&i| (Reverse(boxes[i].size), i)),
            2 => order.sort_by_key(|&i| (Reverse(boxes[i].width()), i)),
            3 => order.sort_by_key(|&i| (Reverse(boxes[i].size.saturating_mul(boxes[i].width())), i)),
            4 => order.sort_by_key(|&i| (Reverse(boxes[i].right), i)),
            _ => order.sort_by_key(|&i| (Reverse(boxes[i].width()), Reverse(boxes[i].size), i)),
        }
        let Some((offsets, _)) = first_fit(units, &order, best.extent) else { continue };
        let extent = units.extent(&offsets);
        best.offer(offsets, extent);
        if best.done() {
            return;
        }
    }
}

/// The offsets, and how many steps that took; nothing if something does not end below `limit`.
fn first_fit(units: &Units, order: &[usize], limit: u64) -> Option<(Vec<u64>, u64)> {
    let mut offsets = vec![0; units.boxes.len()];
    // Bottom, top, left, right of what is placed, by the bottom.
    let mut placed: Vec<(u64, u64, u32, u32)> =
        units.obstacles.iter().map(|o| (o.bottom, o.top, o.left, o.right)).collect();
    let mut steps = 0;
    for &i in order {
        let b = &units.boxes[i];
        let mut base = 0u64;
        for &(bottom, top, left, right) in &placed {
            steps += 1;
            if b.meets(left, right) {
                if base.saturating_add(b.size) <= bottom {
                    break;
                }
                base = base.max(top);
            }
        }
        let top = base.saturating_add(b.size);
        if top >= limit && limit < u64::MAX {
            return None;
        }
        offsets[i] = base;
        let at = placed.partition_point(|p| p.0 <= base);
        placed.insert(at, (base, top, b.left, b.right));
    }
    Some((offsets, steps))
}

/// Lets everything fall into the gaps below it: first fit from the bottom up. No offset grows, because what was lower
/// has not moved up.
pub(super) fn settle(units: &Units, offsets: Vec<u64>) -> (Vec<u64>, u64) {
    let mut order: Vec<usize> = (0..offsets.len()).collect();
    order.sort_by_key(|&i| (offsets[i], i));
    // There is no limit.
    first_fit(units, &order, u64::MAX).unwrap_or_default()
}

/// Hill climbing over orders: a rectangle that reaches above the bound goes before one that is below it.
pub(super) fn climb(units: &Units, best: &mut Best, budget: &mut Budget) {
    let n = units.boxes.len();
    let (mut offsets, mut extent) = (best.offsets.clone(), best.extent);
    while budget.left > 0 && !best.done() && n > 1 {
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by_key(|&i| (offsets[i], i));
        let top = |i: usize| offsets[i].saturating_add(units.boxes[i].size);
        let high: Vec<usize> = (0..n).filter(|&k| top(order[k]) > best.bound.max(extent - 1)).collect();
        let Some(&from) = high.get(budget.below(high.len().max(1))) else { return };
        // Near moves more often than far ones.
        let far = budget.below(from.max(1)) + 1;
        let to = from.saturating_sub(budget.below(far) + 1);
        let moved = order.remove(from);
        order.insert(to, moved);
        if budget.below(2) == 0 {
            let (a, b) = (budget.below(n), budget.below(n));
            order.swap(a, b);
        }
        let (next, steps) = first_fit(units, &order, u64::MAX).unwrap_or_default();
        budget.spend(steps + 8 * n as u64);
        let reached = units.extent(&next);
        // Sideways and, now and then, a little downhill.
        if reached <= extent || budget.below(16) == 0 && reached <= best.extent + best.extent / 32 {
            (offsets, extent) = (next, reached);
            best.offer(offsets.clone(), extent);
        }
    }
}
