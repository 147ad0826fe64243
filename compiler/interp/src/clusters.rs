//! Loads that the blocks of a cluster share: a window that several of them load comes from memory once.
//!
//! Blocks of a cluster run at once on a device. Here they run one after another, so each block counts how often it has
//! loaded a window, and the first block of the cluster to come so far is the one that fetches it.

use ptoc_ir::tile::TensorId;
use std::collections::HashMap;

/// What makes two loads alike: tensor, place, steps, extents, and conditions with their numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Window {
    tensor: TensorId,
    numbers: Vec<i64>,
}

impl Window {
    /// Lists go with their lengths, so that two windows with the same numbers have the same lists.
    pub fn new(tensor: TensorId, lists: &[&[i64]]) -> Window {
        let numbers = lists.iter().flat_map(|list| std::iter::once(list.len() as i64).chain(list.iter().copied()));
        Window { tensor, numbers: numbers.collect() }
    }
}

/// How often windows have been loaded.
type Counts = HashMap<Window, u64>;

/// The clusters of a launch.
#[derive(Debug)]
pub(super) struct Clusters {
    /// Blocks along each dimension.
    size: Vec<u32>,
    /// The cluster of the running block, and what that block has loaded.
    running: Vec<i64>,
    own: Counts,
    /// Of each cluster that has begun: what any of its blocks has loaded.
    begun: HashMap<Vec<i64>, Counts>,
}

impl Clusters {
    pub fn new(size: &[u32]) -> Clusters {
        Clusters { size: size.to_vec(), running: Vec::new(), own: Counts::new(), begun: HashMap::new() }
    }

    /// The block with these coordinates begins.
    pub fn begin(&mut self, at: &[i64]) {
        self.own.clear();
        self.running = at.iter().zip(&self.size).map(|(at, size)| at / i64::from(*size)).collect();
    }

    /// Whether another block of the cluster has fetched this load of the running block.
    pub fn shared(&mut self, window: Window) -> bool {
        let fetched = self.begun.entry(self.running.clone()).or_default().entry(window.clone()).or_default();
        let own = self.own.entry(window).or_default();
        *own += 1;
        let shared = *own <= *fetched;
        *fetched = (*fetched).max(*own);
        shared
    }

    /// Clusters that have loaded anything.
    pub fn begun(&self) -> u64 {
        self.begun.len() as u64
    }
}
