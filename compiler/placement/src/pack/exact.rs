//! Branch and bound: exhaustive search for few rectangles.
//!
//! In some best packing nothing can move down. Taken in the order of its offsets, each of its rectangles then lies as
//! low as possible above all before it that share a time with it (and clear of obstacles). So it is enough to try all
//! orders, dropping each rectangle onto the skyline, and to go on only where the offsets do not descend.

use super::{Best, Effort, Units};

/// Nodes after which the search gives up; never reached by what was measured, it bounds what was not.
const NODES: u64 = 2_000_000;

/// The same where little effort is wanted.
const FEW_NODES: u64 = 5_000;

/// True if what `best` holds in the end is the best there is.
pub(super) fn search(units: &Units, best: &mut Best, effort: Effort) -> bool {
    let n = units.boxes.len();
    let columns = units.columns as usize;
    let mut left = vec![0u64; columns];
    for b in &units.boxes {
        left[b.left as usize..b.right as usize].iter_mut().for_each(|c| *c = c.saturating_add(b.size));
    }
    // Wide and large ones first find good packings early.
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(units.boxes[i].size.saturating_mul(units.boxes[i].width())), i));
    let limit = if effort == Effort::Much { NODES } else { FEW_NODES };
    let (sky, at) = (vec![0; columns], vec![None; n]);
    let mut walk = ExactSearch { units, best, order, left, sky, at, last: (0, 0), nodes: 0, limit };
    walk.node(0);
    walk.nodes < limit
}

struct ExactSearch<'a> {
    units: &'a Units,
    best: &'a mut Best,
    /// In which order they are tried.
    order: Vec<usize>,
    /// What is still to be placed, a column.
    left: Vec<u64>,
    /// How high each column is filled.
    sky: Vec<u64>,
    at: Vec<Option<u64>>,
    /// Offset and rank of the one placed last.
    last: (u64, usize),
    nodes: u64,
    limit: u64,
}

impl ExactSearch<'_> {
    fn node(&mut self, placed: usize) {
        self.nodes += 1;
        if placed == self.order.len() {
            let offsets: Vec<u64> = self.at.iter().map(|a| a.unwrap_or(0)).collect();
            let extent = self.units.extent(&offsets);
            self.best.offer(offsets, extent);
            return;
        }
        // What is left lies at or above the last offset, column by column.
        let floor = self.last.0;
        let hopeless =
            |(sky, left): (&u64, &u64)| *left > 0 && sky.max(&floor).saturating_add(*left) >= self.best.extent;
        if self.sky.iter().zip(&self.left).any(hopeless) {
            return;
        }
        for rank in 0..self.order.len() {
            if self.nodes >= self.limit || self.best.done() {
                return;
            }
            let i = self.order[rank];
            if self.at[i].is_some() || self.has_earlier_twin(rank) {
                continue;
            }
            let b = self.units.boxes[i];
            let columns = b.left as usize..b.right as usize;
            let sky = self.sky[columns.clone()].iter().copied().max().unwrap_or(0);
            let base = self.units.above_obstacles(&b, sky);
            let top = base.saturating_add(b.size);
            if (base, rank) < self.last || top >= self.best.extent {
                continue;
            }
            let (last, before) = (self.last, self.sky[columns.clone()].to_vec());
            self.sky[columns.clone()].fill(top);
            self.left[columns.clone()].iter_mut().for_each(|c| *c -= b.size);
            (self.at[i], self.last) = (Some(base), (base, rank));
            self.node(placed + 1);
            (self.at[i], self.last) = (None, last);
            self.left[columns.clone()].iter_mut().for_each(|c| *c += b.size);
            self.sky[columns].copy_from_slice(&before);
        }
    }

    /// Of equal rectangles the first one is placed first.
    fn has_earlier_twin(&self, rank: usize) -> bool {
        let b = self.units.boxes[self.order[rank]];
        self.order[..rank].iter().any(|&j| {
            let other = self.units.boxes[j];
            self.at[j].is_none() && (other.left, other.right, other.size) == (b.left, b.right, b.size)
        })
    }
}
