//! What was inserted becomes as little as it can be, and fits the target's flags.

use super::place::{Fallback, Placer};
use super::tree::{Act, Block, FlagId, Node, Sync};
use ptoc_isa::Pipe;

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
        for barrier in (0..barriers).rev() {
            self.tree.barriers[barrier].dead = true;
            if self.check(block).is_empty() {
                dropped += 1;
            } else {
                self.tree.barriers[barrier].dead = false;
            }
        }
        for flag in (0..flags).rev() {
            self.tree.flags[flag].dead = true;
            if self.check(block).is_empty() {
                dropped += 1;
            } else {
                self.tree.flags[flag].dead = false;
            }
        }
        dropped
    }

    fn affordable(&self, block: &Block, trials: usize) -> bool {
        let mut nodes = 0usize;
        block.iter().for_each(|n| n.visit(&mut |_| nodes += 1));
        let words = self.tree.events.len() / 64 + 1;
        nodes.saturating_mul(words).saturating_mul(self.tree.flags.len() + 14).saturating_mul(trials) <= BUDGET
    }

    /// Keeps to `limit` flags from one pipe to another: flags whose lives do not meet become one, and if that is not
    /// enough, all pipes meet where one was waited for.
    pub fn limit(&mut self, block: &mut Block, limit: u32) {
        for from in Pipe::ALL {
            for to in Pipe::ALL {
                if self.used(from, to) <= limit {
                    continue;
                }
                self.share(block, from, to, limit);
                while self.used(from, to) > limit {
                    let of = |f: &FlagId| {
                        let data = &self.tree.flags[*f];
                        (data.from, data.to) == (from, to) && !data.dead && data.same.is_none()
                    };
                    // One that is not carried is cheaper to replace.
                    let Some(flag) =
                        (0..self.tree.flags.len()).filter(of).min_by_key(|f| self.tree.flags[*f].ring.is_some())
                    else {
                        break;
                    };
                    self.replace(block, flag);
                    let span = self.tree.flags[flag].span;
                    let fallback = Fallback { span, reason: "there are no more flags between these pipes" };
                    self.fallbacks.push((self.tree.barriers.len() - 1, fallback));
                }
            }
        }
    }

    fn used(&self, from: Pipe, to: Pipe) -> u32 {
        let of = |f: &&super::tree::Flag| (f.from, f.to) == (from, to) && !f.dead && f.same.is_none();
        self.tree.flags.iter().filter(of).map(|f| f.count).sum()
    }

    fn share(&mut self, block: &Block, from: Pipe, to: Pipe, limit: u32) {
        for later in 0..self.tree.flags.len() {
            if self.used(from, to) <= limit {
                return;
            }
            let data = self.tree.flags[later].clone();
            if (data.from, data.to) != (from, to) || data.dead || data.ring.is_some() || data.same.is_some() {
                continue;
            }
            for earlier in 0..later {
                let other = &self.tree.flags[earlier];
                let fits = (other.from, other.to, other.count, other.phase) == (from, to, data.count, data.phase);
                if !fits || other.dead || other.ring.is_some() || other.same.is_some() {
                    continue;
                }
                self.tree.flags[later].same = Some(earlier);
                if self.check(block).is_empty() {
                    break;
                }
                self.tree.flags[later].same = None;
            }
        }
    }

    /// Barriers of all pipes take the place of a flag's waits.
    fn replace(&mut self, block: &mut Block, flag: FlagId) {
        let members: Vec<FlagId> =
            (0..self.tree.flags.len()).filter(|&f| f == flag || self.tree.flags[f].same == Some(flag)).collect();
        let act = self.barrier(None);
        fn walk(block: &mut Block, members: &[FlagId], act: Act) {
            for node in block {
                if let Node::Sync(Sync { act: a @ Act::Wait(..), .. }) = node
                    && let Act::Wait(f, super::tree::Elem::Phase) = *a
                    && members.contains(&f)
                {
                    *a = act;
                }
                node.blocks_mut().for_each(|b| walk(b, members, act));
            }
        }
        walk(block, &members, act);
        members.iter().for_each(|&f| self.tree.flags[f].dead = true);
    }
}
