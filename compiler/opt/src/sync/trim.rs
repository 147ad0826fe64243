//! What was inserted becomes as little as it can be.

use super::place::Placer;
use super::tree::{FlagId, SyncBlock};

/// What placing may cost, and then what trimming and limiting may, by [`Flow::cost`](super::flow::SyncDataflow::cost).
/// Beyond it all pipes meet once in each iteration of the loops that are left; nothing more is tried, and what is there
/// stays.
const BUDGET: u64 = 20_000_000;

impl Placer<'_> {
    /// Drops flags and barriers, latest first, without which nothing is missing. Returns how many.
    pub fn drop_surplus(&mut self, block: &SyncBlock) -> usize {
        let mut dropped = 0;
        let (flags, barriers) = (self.tree.flags.len(), self.tree.barriers.len());
        if !self.affordable() || !self.check(block).is_empty() {
            return 0;
        }
        // A flag may be there only so that another can be raised again, hence once more.
        loop {
            let before = dropped;
            for barrier in (0..barriers).rev() {
                if self.tree.barriers[barrier].dead || !self.affordable() {
                    continue;
                }
                self.tree.barriers[barrier].dead = true;
                if self.check(block).is_empty() {
                    dropped += 1;
                } else {
                    self.tree.barriers[barrier].dead = false;
                }
            }
            for flag in (0..flags).rev() {
                if self.tree.flags[flag].dead || self.tree.flags[flag].same.is_some() || !self.affordable() {
                    continue;
                }
                let group: Vec<FlagId> = self.group(flag).filter(|&f| !self.tree.flags[f].dead).collect();
                group.iter().for_each(|&f| self.tree.flags[f].dead = true);
                if self.check(block).is_empty() {
                    dropped += 1;
                } else {
                    group.iter().for_each(|&f| self.tree.flags[f].dead = false);
                }
            }
            if dropped == before {
                return dropped;
            }
        }
    }

    /// A flag and all that share it.
    pub fn group(&self, flag: FlagId) -> impl Iterator<Item = FlagId> {
        (0..self.tree.flags.len()).filter(move |&f| f == flag || self.tree.flags[f].same == Some(flag))
    }

    /// Whether something more may be tried.
    pub fn affordable(&self) -> bool {
        self.spent.get() < BUDGET
    }
}
