//! Joining rectangles that fit together without a gap into larger ones, which are then packed in their stead.
//!
//! Three patterns leave no gap: one after another with the same size; side by side with the same life; and five in a
//! pinwheel. Wherever a packing without gaps can be cut from side to side again and again, joining leads back to one
//! block. Which of many candidates belong together cannot always be seen ([`super::join`] takes the surest first), so
//! the doubtful blocks are taken apart again and again, and joined otherwise.

use super::join::Joining;
use super::{Best, Box, Budget, Units, fit};

/// A block is packed when it has become so much better than the last one that was packed.
const BETTER: f64 = 1.02;

/// Joins, packs the blocks and unpacks them, until `reserve` of the budget is left.
pub(super) fn search(units: &Units, best: &mut Best, budget: &mut Budget, reserve: u64) {
    let mut now = Joined::new(units);
    let all = now.active.len();
    let mut joining = Joining::new(units.columns);
    joining.join(&mut now, 0.0, budget, reserve);
    if now.active.len() * 20 > all * 19 {
        return;
    }
    try_out(units, &now, best, budget);
    let (mut worth, mut shown) = (now.worth(), now.worth());
    let mut next = now.clone();
    while budget.left > reserve && !best.done() && now.active.len() > 1 {
        let part = [0.1, 0.3, 0.6, 1.0][budget.below(4)];
        let doubt = [1.0, 3.0, 6.0, 10.0, 20.0][budget.below(5)];
        next.copy(&now);
        next.ruin(part, doubt, budget);
        joining.join(&mut next, 4.0, budget, reserve);
        let better = next.worth();
        if better < worth {
            continue;
        }
        std::mem::swap(&mut now, &mut next);
        worth = better;
        if now.blocks.len() > 4 * all {
            now.compact(all);
        }
        if worth > BETTER * shown {
            shown = worth;
            try_out(units, &now, best, budget);
        }
    }
    if worth > shown && !best.done() {
        try_out(units, &now, best, budget);
    }
}

/// Packs the blocks and lets their parts fall.
fn try_out(units: &Units, joined: &Joined, best: &mut Best, budget: &mut Budget) {
    let small = joined.units(units);
    let mut inner = Best { offsets: Vec::new(), extent: u64::MAX, bound: best.bound };
    fit::orders(&small, &mut inner);
    let n = small.boxes.len() as u64;
    budget.spend(n * n);
    let mut climbing = Budget { left: budget.left / 40, random: budget.next() };
    budget.left -= climbing.left;
    fit::climb(&small, &mut inner, &mut climbing);
    budget.left += climbing.left;
    let (offsets, steps) = fit::settle(units, joined.unpack(units.boxes.len(), &inner.offsets));
    budget.spend(steps);
    let extent = units.extent(&offsets);
    best.offer(offsets, extent);
}

/// A rectangle made of others, or one of the problem's own.
#[derive(Clone, Copy)]
pub(super) struct Block {
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
    pub blocks: Vec<Block>,
    /// Those that are part of no other.
    pub active: Vec<u32>,
    /// What blocks are made of, in the order of the blocks, and how far above their bases.
    parts: Vec<(u32, u64)>,
}

impl Joined {
    fn new(units: &Units) -> Joined {
        let block = |b: &Box| Block {
            left: b.left,
            right: b.right,
            size: b.size,
            sure: f32::MAX,
            first: 0,
            count: 0,
            active: true,
        };
        let blocks: Vec<Block> = units.boxes.iter().map(block).collect();
        Joined { active: (0..blocks.len() as u32).collect(), blocks, parts: Vec::new() }
    }

    fn copy(&mut self, from: &Joined) {
        self.blocks.clone_from(&from.blocks);
        self.active.clone_from(&from.active);
        self.parts.clone_from(&from.parts);
    }

    /// A new block of these parts.
    pub(super) fn push(&mut self, left: u32, right: u32, size: u64, sure: f32, parts: &[(u32, u64)]) -> u32 {
        let sure = parts.iter().map(|p| self.blocks[p.0 as usize].sure).fold(sure, f32::min);
        let (first, count) = (self.parts.len() as u32, parts.len() as u32);
        self.parts.extend_from_slice(parts);
        self.blocks.push(Block { left, right, size, sure, first, count, active: true });
        (self.blocks.len() - 1) as u32
    }

    fn parts(&self, i: u32) -> &[(u32, u64)] {
        let b = &self.blocks[i as usize];
        &self.parts[b.first as usize..(b.first + b.count) as usize]
    }

    fn units(&self, of: &Units) -> Units {
        let boxes = self.active.iter().map(|&i| {
            let b = &self.blocks[i as usize];
            Box { rect: i as usize, left: b.left, right: b.right, size: b.size }
        });
        Units { boxes: boxes.collect(), obstacles: of.obstacles.clone(), ..*of }
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

    /// Takes a part of the blocks apart, down to what was joined without doubt.
    fn ruin(&mut self, part: f32, doubt: f32, budget: &mut Budget) {
        let mut stack: Vec<u32> = Vec::new();
        let mut left = Vec::with_capacity(self.active.len());
        for &i in &self.active {
            match budget.unit() > part {
                true => left.push(i),
                false => stack.push(i),
            }
        }
        while let Some(i) = stack.pop() {
            let b = self.blocks[i as usize];
            if b.count == 0 || b.sure >= doubt {
                left.push(i);
                continue;
            }
            self.blocks[i as usize].active = false;
            stack.extend(self.parts[b.first as usize..(b.first + b.count) as usize].iter().map(|p| p.0));
        }
        for &i in &left {
            self.blocks[i as usize].active = true;
        }
        left.sort_unstable();
        budget.spend(self.blocks.len() as u64 / 8);
        self.active = left;
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
        let old = std::mem::replace(self, Joined { blocks: Vec::new(), active: Vec::new(), parts: Vec::new() });
        let mut name = vec![0u32; old.blocks.len()];
        for i in (0..old.blocks.len()).filter(|&i| used[i]) {
            let b = old.blocks[i];
            name[i] = self.blocks.len() as u32;
            let first = self.parts.len() as u32;
            self.parts.extend(old.parts(i as u32).iter().map(|p| (name[p.0 as usize], p.1)));
            self.blocks.push(Block { first, ..b });
        }
        self.active = old.active.iter().map(|&i| name[i as usize]).collect();
    }
}
