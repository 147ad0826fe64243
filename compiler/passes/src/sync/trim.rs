//! What was inserted becomes as little as it can be.

use super::place::Placer;
use super::tree::{Block, FlagId};

/// Work of one trial run times trials, above which nothing is tried: programs of thousands of instructions keep what
/// placement gave them.
const BUDGET: usize = 60_000_000;

impl Placer<'_> {
    /// Drops flags and barriers, latest first, without which nothing is missing. Returns how many.
    pub fn drop_surplus(&mut self, block: &Block) -> usize {
        let mut dropped = 0;
        let (flags, barriers) = (self.tree.flags.len(), self.tree.barriers.len());
        if !self.affordable(block, flags + barriers) || !self.check(block).is_empty() {
            return 0;
        }
        // A flag may be there only so that another can be raised again, hence once more.
        loop {
            let before = dropped;
            for barrier in (0..barriers).rev() {
                if self.tree.barriers[barrier].dead {
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
                if self.tree.flags[flag].dead || self.tree.flags[flag].same.is_some() {
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

    fn affordable(&self, block: &Block, trials: usize) -> bool {
        let mut nodes = 0usize;
        block.iter().for_each(|n| n.visit(&mut |_| nodes += 1));
        let words = self.tree.events.len() / 64 + 1;
        nodes.saturating_mul(words).saturating_mul(self.tree.flags.len() + 14).saturating_mul(trials) <= BUDGET
    }
}
