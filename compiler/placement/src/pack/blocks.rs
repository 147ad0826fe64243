//! Joining rectangles that fit together without a gap into larger ones, which are then packed in their stead.
//!
//! Three patterns leave no gap: one after another with the same size; side by side with the same life; and five in a
//! pinwheel. Wherever a packing without gaps can be cut from side to side again and again, joining leads back to one
//! block. Which of many candidates belong together cannot always be seen ([`super::join`] takes the surest first), so
//! the doubtful blocks of some times are taken apart again and again, and joined otherwise. Few blocks that are partly
//! wrong are packed much better than the many that are certainly right, so both are tried.

use super::join::Joining;
use super::{Best, Box, Budget, Obstacle, Units, fit, skyline};

/// How often joining gives way to packing what has been joined so far.
const ROUNDS: u64 = 3;

/// At most so many times, of those that have to do with each other, at which blocks are taken apart at once.
const TIMES: usize = 3;

/// What part of the budget is for the blocks that were joined without doubt.
const SURE: u64 = 14;

/// Joins, and packs the blocks by the skyline in between, until `reserve` of the budget is left.
pub(super) fn search(units: &Units, best: &mut Best, budget: &mut Budget, reserve: u64) {
    let mut now = Joined::new(units);
    let all = now.active.len();
    let mut joining = Joining::new(units.columns);
    let (last, reserve) = (reserve, reserve + budget.left / SURE);
    joining.join(&mut now, 0.0, budget, reserve);
    // Without doubts, all that was joined is sure.
    let sure = joining.sure().unwrap_or_else(|| now.clone());
    if now.active.len() * 20 > all * 19 {
        return;
    }
    let mut next = now.clone();
    let mut worth = now.worth();
    let round = budget.left.saturating_sub(reserve) / ROUNDS;
    for to_come in (0..ROUNDS).rev() {
        let end = reserve + round * to_come;
        while budget.left > end + round / 2 && now.active.len() > 1 {
            next.copy(&now);
            let doubt = [1.0, 3.0, 6.0, 10.0, 20.0][budget.below(5)];
            next.ruin(doubt, budget);
            joining.join(&mut next, 4.0, budget, end + round / 4);
            let better = next.worth();
            // Joining that was broken off has left what it had taken apart.
            if better < worth || budget.left <= end + round / 4 {
                continue;
            }
            std::mem::swap(&mut now, &mut next);
            worth = better;
            if now.blocks.len() > 4 * all {
                now.compact(all);
            }
        }
        fill(units, &now, best, budget, end);
        if best.done() {
            return;
        }
    }
    fill(units, &sure, best, budget, last);
}

/// Packs the blocks by the skyline until `reserve` of the budget is left, and lets their parts fall.
fn fill(units: &Units, joined: &Joined, best: &mut Best, budget: &mut Budget, reserve: u64) {
    let small = joined.units(units);
    let mut inner = Best { offsets: Vec::new(), extent: u64::MAX, bound: best.bound };
    skyline::search(&small, &mut inner, budget, reserve);
    if inner.offsets.is_empty() {
        return;
    }
    let (offsets, steps) = fit::settle(units, joined.unpack(units.boxes.len(), &inner.offsets));
    budget.spend(steps);
    let extent = units.extent(&offsets);
    best.offer(offsets, extent);
}

/// A rectangle made of others, or one of the problem's own.
#[derive(Clone, Copy)]
pub(super) struct PackedBlock {
    pub left: u32,
    pub right: u32,
    pub size: u64,
    /// How sure it is that its parts, and theirs, belong together.
    pub sure: f32,
    /// Where its parts are listed; the problem's own have none.
    first: u32,
    count: u32,
    pub active: bool,
}

/// All blocks that were made: first the problem's own, each before those that it is part of.
#[derive(Clone, Default)]
pub(super) struct Joined {
    pub blocks: Vec<PackedBlock>,
    /// Those that are part of no other.
    pub active: Vec<u32>,
    /// Active ones of which it is not known what they fit with.
    pub fresh: Vec<u32>,
    /// What blocks are made of, in the order of the blocks, and how far above their bases.
    parts: Vec<(u32, u64)>,
}

impl Joined {
    fn new(units: &Units) -> Joined {
        let block = |b: &Box| PackedBlock {
            left: b.left,
            right: b.right,
            size: b.size,
            sure: f32::MAX,
            first: 0,
            count: 0,
            active: true,
        };
        let blocks: Vec<PackedBlock> = units.boxes.iter().map(block).collect();
        let active: Vec<u32> = (0..blocks.len() as u32).collect();
        Joined { fresh: active.clone(), active, blocks, parts: Vec::new() }
    }

    fn copy(&mut self, from: &Joined) {
        self.blocks.clone_from(&from.blocks);
        self.active.clone_from(&from.active);
        self.parts.clone_from(&from.parts);
        self.fresh.clone_from(&from.fresh);
    }

    /// A new block of these parts.
    pub(super) fn push(&mut self, left: u32, right: u32, size: u64, sure: f32, parts: &[(u32, u64)]) -> u32 {
        let sure = parts.iter().map(|p| self.blocks[p.0 as usize].sure).fold(sure, f32::min);
        let (first, count) = (self.parts.len() as u32, parts.len() as u32);
        self.parts.extend_from_slice(parts);
        self.blocks.push(PackedBlock { left, right, size, sure, first, count, active: true });
        (self.blocks.len() - 1) as u32
    }

    /// Finds those that are part of no other.
    pub(super) fn find_active(&mut self) {
        self.active.clear();
        self.active.extend((0..self.blocks.len() as u32).filter(|&i| self.blocks[i as usize].active));
    }

    fn parts(&self, i: u32) -> &[(u32, u64)] {
        let b = &self.blocks[i as usize];
        &self.parts[b.first as usize..(b.first + b.count) as usize]
    }

    /// The active blocks as a problem, with no more columns than they need.
    fn units(&self, of: &Units) -> Units {
        let blocks = self.active.iter().map(|&i| &self.blocks[i as usize]);
        let mut name = vec![0u32; of.columns as usize + 1];
        let edges = blocks.flat_map(|b| [b.left, b.right]).chain(of.obstacles.iter().flat_map(|o| [o.left, o.right]));
        edges.for_each(|c| name[c as usize] = 1);
        let mut columns = 0;
        for n in &mut name {
            columns += std::mem::replace(n, columns);
        }
        let name = |c: u32| name[c as usize];
        let boxes = self.active.iter().map(|&i| {
            let b = &self.blocks[i as usize];
            Box { rect: i as usize, left: name(b.left), right: name(b.right), size: b.size }
        });
        let obstacles = of.obstacles.iter().map(|o| Obstacle { left: name(o.left), right: name(o.right), ..*o });
        let (boxes, obstacles) = (boxes.collect(), obstacles.collect());
        Units { boxes, obstacles, columns: columns.saturating_sub(1), ..*of }
    }

    /// Offsets of the problem's own, of which there are `n`, given those of the active blocks.
    fn unpack(&self, n: usize, offsets: &[u64]) -> Vec<u64> {
        let mut at = vec![0; n];
        let mut stack: Vec<(u32, u64)> = self.active.iter().copied().zip(offsets.iter().copied()).collect();
        while let Some((i, offset)) = stack.pop() {
            if let Some(own) = at.get_mut(i as usize) {
                *own = offset;
            }
            stack.extend(self.parts(i).iter().map(|p| (p.0, offset.saturating_add(p.1))));
        }
        at
    }

    /// How much is in large blocks: 1 if all is in one.
    fn worth(&self) -> f64 {
        let area = |&i: &u32| {
            let b = &self.blocks[i as usize];
            b.size as f64 * f64::from(b.right - b.left)
        };
        let all: f64 = self.active.iter().map(area).sum();
        self.active.iter().map(|i| (area(i) / all).powi(2)).sum()
    }

    /// Takes some blocks apart, down to what was joined with less doubt.
    fn ruin(&mut self, doubt: f32, budget: &mut Budget) {
        let chosen = if budget.below(8) == 0 { self.anywhere(budget) } else { self.together(budget) };
        let (mut stack, mut left) = (Vec::new(), Vec::new());
        for (&i, chosen) in self.active.iter().zip(chosen) {
            if chosen { &mut stack } else { &mut left }.push(i);
        }
        self.fresh.clear();
        while let Some(i) = stack.pop() {
            let b = self.blocks[i as usize];
            if b.count == 0 || b.sure >= doubt {
                left.push(i);
                self.fresh.push(i);
                continue;
            }
            self.blocks[i as usize].active = false;
            stack.extend(self.parts[b.first as usize..(b.first + b.count) as usize].iter().map(|p| p.0));
        }
        for &i in &left {
            self.blocks[i as usize].active = true;
        }
        left.sort_unstable();
        self.fresh.sort_unstable();
        budget.spend(self.blocks.len() as u64 / 8);
        self.active = left;
    }

    /// Chooses active blocks by chance.
    fn anywhere(&self, budget: &mut Budget) -> Vec<bool> {
        let part = [0.1, 0.3, 0.6, 1.0][budget.below(4)];
        self.active.iter().map(|_| budget.unit() <= part).collect()
    }

    /// Chooses the active blocks that begin or end at some times, each time one at which a chosen block does.
    fn together(&self, budget: &mut Budget) -> Vec<bool> {
        let n = self.active.len();
        let mut chosen = vec![false; n];
        let mut list: Vec<u32> = Vec::new();
        let mut from = self.active[budget.below(n)];
        for _ in 0..=budget.below(TIMES) {
            let b = &self.blocks[from as usize];
            let time = if budget.below(2) == 0 { b.left } else { b.right };
            for (&i, chosen) in self.active.iter().zip(&mut chosen) {
                let b = &self.blocks[i as usize];
                if !*chosen && (b.left == time || b.right == time) {
                    *chosen = true;
                    list.push(i);
                }
            }
            budget.spend(n as u64 / 4);
            from = list[budget.below(list.len())];
        }
        chosen
    }

    /// Forgets the blocks that were taken apart; the problem's own `n` stay where they are.
    fn compact(&mut self, n: usize) {
        let mut used = vec![false; self.blocks.len()];
        used[..n].fill(true);
        let mut stack = self.active.clone();
        while let Some(i) = stack.pop() {
            used[i as usize] = true;
            stack.extend(self.parts(i).iter().map(|p| p.0));
        }
        let old = std::mem::take(self);
        let mut name = vec![0u32; old.blocks.len()];
        for i in (0..old.blocks.len()).filter(|&i| used[i]) {
            let b = old.blocks[i];
            name[i] = self.blocks.len() as u32;
            let first = self.parts.len() as u32;
            self.parts.extend(old.parts(i as u32).iter().map(|p| (name[p.0 as usize], p.1)));
            self.blocks.push(PackedBlock { first, ..b });
        }
        self.active = old.active.iter().map(|&i| name[i as usize]).collect();
    }
}
