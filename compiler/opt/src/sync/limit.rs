//! What was inserted fits the target's flags. In this order, each step only where there are still too many between two
//! pipes:
//!
//! 1. flags whose lives do not meet become one (`share`), also those that are carried around loops that follow each
//!    other (`chain`);
//! 2. flags that are carried around the same loop become one, waited for at the first of the waits and raised at the
//!    last of the sets (`coalesce`);
//! 3. an array with an element for each iteration under way becomes one flag, and one back says that it is down again:
//!    the pipe that raises it is at most an iteration ahead (`narrow`);
//! 4. all pipes meet where a flag was waited for (`replace`).
//!
//! All but the last is tried, and taken back where it leaves something without its order.

use super::place::{Fallback, Narrowed, Placer};
use super::tree::{Act, Anchor, Elem, Flag, FlagId, LoopId, Node, Sync, SyncBlock};
use ptoc_diagnostics::Span;
use ptoc_isa::Pipe;

/// A way from one pipe to another.
type Way = (Pipe, Pipe);

/// Makes one of two flags, the later one of the earlier, if it can.
type Join<P> = fn(&mut P, &mut SyncBlock, FlagId, FlagId) -> bool;

impl Placer<'_> {
    /// Keeps to `limit` flags from each pipe to each other. Returns whether anything changed.
    pub fn limit(&mut self, block: &mut SyncBlock, limit: u32) -> bool {
        let all = Pipe::ALL.into_iter().flat_map(|from| Pipe::ALL.into_iter().map(move |to| (from, to)));
        let ways: Vec<Way> = all.collect();
        if ways.iter().all(|&way| self.used(way) <= limit) {
            return false;
        }
        let steps: [Join<Self>; 3] = [Self::share, Self::chain, Self::coalesce];
        for step in steps {
            ways.iter().for_each(|&way| self.pairs(block, way, limit, step));
        }
        for &way in &ways {
            for flag in (0..self.tree.flags.len()).rev() {
                if self.used(way) > limit && self.alone(flag, way) {
                    let (count, phase) = (self.tree.flags[flag].count, self.tree.flags[flag].phase);
                    if self.narrow(block, flag)
                        && let Some(lp) = phase
                    {
                        let span = self.tree.loops[lp].span;
                        self.narrowed.push((flag, Narrowed { span, from: way.0, to: way.1, count }));
                    }
                }
            }
        }
        // The flags back are carried around the same loop.
        ways.iter().for_each(|&way| self.pairs(block, way, limit, Self::coalesce));
        for &way in &ways {
            while self.used(way) > limit {
                let live = |f: &FlagId| self.is(*f, way);
                // One that is not carried is cheaper to replace.
                let Some(flag) =
                    (0..self.tree.flags.len()).filter(live).min_by_key(|f| self.tree.flags[*f].ring.is_some())
                else {
                    break;
                };
                self.replace(block, flag);
                let span = self.tree.flags[flag].span;
                let fallback = Fallback { span, reason: "there are no more flags between these pipes" };
                self.fallbacks.push((self.tree.barriers.len() - 1, fallback));
            }
        }
        true
    }

    fn is(&self, flag: FlagId, way: Way) -> bool {
        let data = &self.tree.flags[flag];
        (data.from, data.to) == way && !data.dead && data.same.is_none()
    }

    /// Nobody shares it.
    fn alone(&self, flag: FlagId, way: Way) -> bool {
        self.is(flag, way) && self.group(flag).count() == 1
    }

    fn used(&self, way: Way) -> u32 {
        (0..self.tree.flags.len()).filter(|&f| self.is(f, way)).map(|f| self.tree.flags[f].count).sum()
    }

    /// Makes one of two flags where `step` can.
    fn pairs(&mut self, block: &mut SyncBlock, way: Way, limit: u32, step: Join<Self>) {
        // Counted anew only where something has changed, so that pairs that do not fit cost one step each.
        let mut used = self.used(way);
        for later in 0..self.tree.flags.len() {
            if used <= limit || !self.affordable() {
                return;
            }
            if !self.alone(later, way) {
                continue;
            }
            let fits =
                |this: &Self, f: FlagId| this.is(f, way) && this.tree.flags[f].count == this.tree.flags[later].count;
            if (0..later).any(|earlier| fits(self, earlier) && step(self, block, earlier, later)) {
                used = self.used(way);
            }
        }
    }

    /// Keeps a change if nothing is missing with it.
    fn attempt(&mut self, block: &mut SyncBlock, change: impl FnOnce(&mut Self, &mut SyncBlock) -> bool) -> bool {
        if !self.affordable() {
            return false;
        }
        let (old, flags) = (block.clone(), self.tree.flags.clone());
        if change(self, block) && self.check(block).is_empty() {
            return true;
        }
        (*block, self.tree.flags) = (old, flags);
        false
    }

    /// Two flags that are not carried become one.
    fn share(&mut self, block: &mut SyncBlock, earlier: FlagId, later: FlagId) -> bool {
        if self.tree.flags[earlier].ring.is_some() || self.tree.flags[later].ring.is_some() {
            return false;
        }
        self.attempt(block, |this, _| {
            this.tree.flags[later].same = Some(earlier);
            true
        })
    }

    /// A flag that is carried around a loop stays raised for a later loop.
    fn chain(&mut self, block: &mut SyncBlock, earlier: FlagId, later: FlagId) -> bool {
        let ring = |f: FlagId| self.tree.flags[f].ring;
        if ring(earlier).is_none() || ring(later).is_none() || ring(earlier) == ring(later) {
            return false;
        }
        // The last that shares it is the one that is waited for after its loop.
        let last = self.group(earlier).last().unwrap_or(earlier);
        self.attempt(block, |this, block| {
            this.tree.flags[later].same = Some(earlier);
            drop_where(block, &|act| match act {
                Act::Wait(f, Elem::Fixed(_)) => f == last,
                Act::Set(f, Elem::Fixed(_)) => f == later,
                _ => false,
            });
            true
        })
    }

    /// Two flags that are carried around the same loop become one.
    fn coalesce(&mut self, block: &mut SyncBlock, first: FlagId, second: FlagId) -> bool {
        let (a, b) = (&self.tree.flags[first], &self.tree.flags[second]);
        if a.ring.is_none() || (a.ring, a.phase) != (b.ring, b.phase) || self.group(first).count() > 1 {
            return false;
        }
        self.attempt(block, |this, block| {
            this.tree.flags[second].dead = true;
            with_block(block, &mut |body| {
                let at = |act: Act| body.iter().position(|n| matches!(n, Node::Sync(s) if s.act == act));
                let (wait, set) = (|f| Act::Wait(f, Elem::Phase), |f| Act::Set(f, Elem::Phase));
                let (Some(w0), Some(w1)) = (at(wait(first)), at(wait(second))) else { return false };
                let (Some(s0), Some(s1)) = (at(set(first)), at(set(second))) else { return false };
                replace_act(body, w0.min(w1), wait(first));
                replace_act(body, s0.max(s1), set(first));
                let mut gone = [w0.max(w1), s0.min(s1)];
                gone.sort_unstable();
                body.remove(gone[1]);
                body.remove(gone[0]);
                true
            })
        })
    }

    /// One flag takes the place of one for each iteration that is under way; another, back, says that it has been
    /// waited for.
    fn narrow(&mut self, block: &mut SyncBlock, flag: FlagId) -> bool {
        let data = &self.tree.flags[flag];
        let (Some(lp), None) = (data.phase, data.ring) else { return false };
        let (from, to, span, name) = (data.to, data.from, data.span, data.name.clone());
        self.attempt(block, |this, block| {
            let back = this.tree.flags.len();
            let data = &mut this.tree.flags[flag];
            (data.count, data.phase) = (1, None);
            let (phase, ring) = (None, Some(lp));
            this.tree.flags.push(Flag { from, to, name, span, count: 1, phase, ring, dead: false, same: None });
            let placed = with_block(block, &mut |body| {
                let at = |act: Act| body.iter().position(|n| matches!(n, Node::Sync(s) if s.act == act));
                let (Some(set), Some(wait)) = (at(Act::Set(flag, Elem::Phase)), at(Act::Wait(flag, Elem::Phase)))
                else {
                    return false;
                };
                for (at, other, act) in
                    [(wait + 1, wait, Act::Set(back, Elem::Phase)), (set, set, Act::Wait(back, Elem::Phase))]
                {
                    if let Node::Sync(s) = body[other] {
                        body.insert(at, Node::Sync(Sync { act, ..s }));
                    }
                }
                true
            });
            placed && around(block, (lp, this.tree.loops[lp].span), back)
        })
    }

    /// Barriers of all pipes take the place of a flag's waits.
    fn replace(&mut self, block: &mut SyncBlock, flag: FlagId) {
        let members: Vec<FlagId> = self.group(flag).collect();
        let act = self.barrier(None);
        fn walk(block: &mut SyncBlock, members: &[FlagId], act: Act) {
            for node in block {
                if let Node::Sync(Sync { act: a @ Act::Wait(..), .. }) = node
                    && let Act::Wait(f, Elem::Phase) = *a
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

fn replace_act(block: &mut SyncBlock, at: usize, act: Act) {
    if let Some(Node::Sync(s)) = block.get_mut(at) {
        s.act = act;
    }
}

fn drop_where(block: &mut SyncBlock, gone: &dyn Fn(Act) -> bool) {
    block.retain(|n| !matches!(n, Node::Sync(s) if gone(s.act)));
    block.iter_mut().flat_map(Node::blocks_mut).for_each(|b| drop_where(b, gone));
}

/// Calls `change` on one block after another until it did something.
fn with_block(block: &mut SyncBlock, change: &mut dyn FnMut(&mut SyncBlock) -> bool) -> bool {
    change(block) || block.iter_mut().flat_map(Node::blocks_mut).any(|b| with_block(b, change))
}

/// Raises `flag` before the loop `lp`, and waits for it after it.
fn around(block: &mut SyncBlock, (lp, span): (LoopId, Span), flag: FlagId) -> bool {
    with_block(block, &mut |block| {
        let is = |n: &Node| matches!(n, Node::For { lp: l, .. } | Node::While { lp: l, .. } if *l == lp);
        let Some(n) = block.iter().position(is) else { return false };
        let Some(at) = block[n].at() else { return false };
        let sync = |anchor, act| Node::Sync(Sync { anchor, act, span });
        block.insert(n + 1, sync(Anchor::After(at), Act::Wait(flag, Elem::Fixed(0))));
        block.insert(n, sync(Anchor::Before(at), Act::Set(flag, Elem::Fixed(0))));
        true
    })
}
