//! Filling a skyline from below: the lowest stretch of it takes the rectangle that closes it best, or rises to the
//! level of its lower neighbour if none fits into it (the best-fit method of strip packing, with places in time given).
//!
//! What closes best is a matter of weights: flush with a wall of the stretch, level with what stands there, long,
//! large. The weights change from pass to pass.
//!
//! When a stretch rises, nothing that waits fits between its walls, so what lies below is lost for good. As much may be
//! lost in a column as a target leaves beside what lives there: a pass that loses more has failed, at once. The next
//! one repeats the beginning of the pass that came furthest, up to some point, and goes on otherwise.

use super::{Best, Budget, Obstacle, Units, fit};

/// What a rectangle that fits is worth.
#[derive(Clone, Copy, Debug)]
struct Weights {
    /// It begins (ends) where the stretch does.
    flush: f32,
    /// It reaches exactly the height of a wall that it touches.
    level: f32,
    /// The part of the stretch that it covers.
    length: f32,
    /// Its size, compared with the largest one.
    size: f32,
    /// Chance.
    noise: f32,
}

/// The first passes have these; the later ones change them at random.
const USUAL: [Weights; 4] = [
    Weights { flush: 1.0, level: 0.5, length: 1.0, size: 0.2, noise: 0.0 },
    Weights { flush: 0.0, level: 0.0, length: 1.0, size: 0.001, noise: 0.0 },
    Weights { flush: 1.0, level: 1.0, length: 0.3, size: 0.5, noise: 0.0 },
    Weights { flush: 0.5, level: 0.2, length: 0.5, size: 1.0, noise: 0.0 },
];

/// Fruitless passes after which the pass that came furthest is forgotten, and the target eased.
const PATIENCE: u32 = 30;

/// Passes with changing weights until `reserve` of the budget is left.
pub(super) fn search(units: &Units, best: &mut Best, budget: &mut Budget, reserve: u64) {
    let mut fill = Fill::new(units);
    let mut base = USUAL[0];
    for weights in USUAL {
        if budget.left <= reserve || best.done() {
            return;
        }
        fill.start(best.extent - 1);
        if fill.go_on(&weights, budget) {
            base = weights;
            fill.offer(best, budget);
        }
    }
    let mut ease = 0;
    while budget.left > reserve && !best.done() {
        // Aim low first, then lower and lower.
        let gap = best.extent - best.bound;
        let target = match ease {
            0 => best.bound + gap / 2,
            1 => best.bound + gap / 4 * 3,
            2 => best.bound + (gap - gap / 10),
            _ => best.extent - 1,
        }
        .min(best.extent - 1);
        let done = fill.aim(target, &mut base, best, budget, reserve);
        ease = if done { 0 } else { (ease + 1) % 4 };
    }
}

fn vary(base: Weights, budget: &mut Budget) -> Weights {
    let mut near = |x: f32| if budget.below(3) == 0 { budget.unit() * 1.5 } else { x * (0.7 + 0.6 * budget.unit()) };
    let (flush, level, length, size) = (near(base.flush), near(base.level), near(base.length), near(base.size));
    let noise = [0.0, 0.05, 0.2, 0.5][budget.below(4)];
    Weights { flush, level, length, size, noise }
}

/// A stretch of the skyline.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    left: u32,
    right: u32,
    height: u64,
}

/// A box that waits.
#[derive(Clone, Copy)]
struct Item {
    of: u32,
    right: u32,
    size: u64,
}

/// Instead of a box: the stretch rose.
const RISE: u32 = u32::MAX;

struct Fill<'a> {
    units: &'a Units,
    sky: Vec<Stretch>,
    /// Boxes by the column where they begin; of each column's, the first `count` wait.
    items: Vec<Item>,
    first: Vec<u32>,
    count: Vec<u32>,
    /// What may still be lost, a column.
    slack: Vec<u64>,
    largest: f32,
    /// Of what is placed.
    offsets: Vec<u64>,
    /// Boxes in the order of their placing, and rises.
    trail: Vec<u32>,
    /// Area of what is placed.
    area: f64,
    /// How many boxes wait.
    left: usize,
    /// As all is before a pass; what lives in each column.
    all_items: Vec<Item>,
    all_count: Vec<u32>,
    total: Vec<u64>,
}

impl<'a> Fill<'a> {
    fn new(units: &'a Units) -> Fill<'a> {
        let columns = units.columns as usize;
        let mut order: Vec<u32> = (0..units.boxes.len() as u32).collect();
        order.sort_by_key(|&i| (units.boxes[i as usize].left, i));
        let (mut first, mut all_count, mut total) = (vec![0; columns], vec![0; columns], vec![0u64; columns]);
        let mut all_items = Vec::with_capacity(order.len());
        for &of in &order {
            let b = &units.boxes[of as usize];
            if all_count[b.left as usize] == 0 {
                first[b.left as usize] = all_items.len() as u32;
            }
            all_count[b.left as usize] += 1;
            all_items.push(Item { of, right: b.right, size: b.size });
            total[b.left as usize..b.right as usize].iter_mut().for_each(|t| *t = t.saturating_add(b.size));
        }
        Fill {
            units,
            sky: Vec::new(),
            items: Vec::new(),
            first,
            count: Vec::new(),
            slack: Vec::new(),
            largest: units.boxes.iter().map(|b| b.size).max().unwrap_or(1).max(1) as f32,
            offsets: vec![0; order.len()],
            trail: Vec::new(),
            area: 0.0,
            left: 0,
            all_items,
            all_count,
            total,
        }
    }

    /// Nothing is placed, and all is to end below `target`.
    fn start(&mut self, target: u64) {
        self.sky.clear();
        self.sky.push(Stretch { left: 0, right: self.units.columns, height: 0 });
        self.items.clone_from(&self.all_items);
        self.count.clone_from(&self.all_count);
        self.slack.clear();
        let free = !self.units.obstacles.is_empty();
        self.slack.extend(self.total.iter().map(|t| if free { u64::MAX } else { target.saturating_sub(*t) }));
        self.trail.clear();
        (self.area, self.left) = (0.0, self.units.boxes.len());
    }

    fn offer(&self, best: &mut Best, budget: &mut Budget) {
        let mut offsets = self.offsets.clone();
        if !self.units.obstacles.is_empty() {
            let (settled, steps) = fit::settle(self.units, offsets);
            offsets = settled;
            budget.spend(steps);
        }
        let extent = self.units.extent(&offsets);
        best.offer(offsets, extent);
    }

    /// Passes until one ends below `target`; false if patience or the budget ends.
    fn aim(&mut self, target: u64, base: &mut Weights, best: &mut Best, budget: &mut Budget, reserve: u64) -> bool {
        let mut elite: Vec<u32> = Vec::new();
        let mut reached = 0.0;
        let mut idle = 0;
        while budget.left > reserve && idle < PATIENCE {
            let weights = if idle == 0 && elite.is_empty() { *base } else { vary(*base, budget) };
            self.start(target);
            let keep = match elite.len() {
                0 => 0,
                n => {
                    let back = budget.unit();
                    n - ((n as f32 * back * back) as usize).min(n)
                }
            };
            budget.spend(self.all_items.len() as u64 / 2 + self.slack.len() as u64 / 4);
            for &step in &elite[..keep] {
                let Some(k) = self.lowest(budget) else { break };
                if !self.step(k, step) {
                    break;
                }
            }
            let done = self.go_on(&weights, budget);
            if done {
                self.offer(best, budget);
                *base = weights;
                return true;
            }
            if self.area > reached {
                reached = self.area;
                std::mem::swap(&mut elite, &mut self.trail);
                idle = 0;
            } else {
                idle += 1;
            }
        }
        false
    }

    fn lowest(&self, budget: &mut Budget) -> Option<usize> {
        budget.spend(self.sky.len() as u64 / 4);
        (0..self.sky.len()).min_by_key(|&k| (self.sky[k].height, k))
    }

    /// Fills until all is placed (true) or too much is lost.
    fn go_on(&mut self, weights: &Weights, budget: &mut Budget) -> bool {
        while self.left > 0 {
            let Some(k) = self.lowest(budget) else { break };
            let step = self.choose(k, weights, budget).unwrap_or(RISE);
            if !self.step(k, step) {
                return false;
            }
        }
        true
    }

    /// Places a box on stretch `k`, or lets it rise; false if too much is lost.
    fn step(&mut self, k: usize, step: u32) -> bool {
        let s = self.sky[k];
        if step == RISE {
            let height = self.next_level(k);
            let lost = height - s.height;
            for slack in &mut self.slack[s.left as usize..s.right as usize] {
                match slack.checked_sub(lost) {
                    Some(less) => *slack = less,
                    None => return false,
                }
            }
            self.raise(k, Stretch { height, ..s });
        } else {
            let b = self.units.boxes[step as usize];
            self.offsets[step as usize] = s.height;
            let first = self.first[b.left as usize] as usize;
            let count = &mut self.count[b.left as usize];
            let these = &mut self.items[first..first + *count as usize];
            if let Some(at) = these.iter().position(|w| w.of == step) {
                these.swap(at, *count as usize - 1);
                *count -= 1;
            }
            self.area += b.size as f64 * b.width() as f64;
            self.left -= 1;
            self.raise(k, Stretch { left: b.left, right: b.right, height: s.height.saturating_add(b.size) });
        }
        self.trail.push(step);
        true
    }

    /// The waiting box that fits into stretch `k` and is worth most.
    fn choose(&self, k: usize, weights: &Weights, budget: &mut Budget) -> Option<u32> {
        let s = self.sky[k];
        let span = 1.0 / (s.right - s.left) as f32;
        let largest = 1.0 / self.largest;
        let wall = |k: Option<&Stretch>| k.map(|s| s.height);
        let walls = (wall(k.checked_sub(1).and_then(|k| self.sky.get(k))), wall(self.sky.get(k + 1)));
        let mut best: Option<(f32, u32)> = None;
        let mut steps = u64::from(s.right - s.left) / 4;
        for column in s.left..s.right {
            let count = self.count[column as usize] as usize;
            if count == 0 {
                continue;
            }
            let first = self.first[column as usize] as usize;
            steps += 2 * count as u64;
            for b in &self.items[first..first + count] {
                let top = s.height.saturating_add(b.size);
                if b.right > s.right || self.blocked(column, b.right, s.height, top) {
                    continue;
                }
                steps += 4;
                let mut worth =
                    weights.length * (b.right - column) as f32 * span + weights.size * b.size as f32 * largest;
                if column == s.left {
                    worth += weights.flush;
                    worth += if walls.0 == Some(top) { weights.level } else { 0.0 };
                }
                if b.right == s.right {
                    worth += weights.flush;
                    worth += if walls.1 == Some(top) { weights.level } else { 0.0 };
                }
                if weights.noise > 0.0 {
                    worth += weights.noise * budget.unit();
                }
                if best.is_none_or(|(w, _)| worth > w) {
                    best = Some((worth, b.of));
                }
            }
        }
        budget.spend(steps);
        best.map(|(_, i)| i)
    }

    fn blocked(&self, left: u32, right: u32, bottom: u64, top: u64) -> bool {
        let meets = |o: &Obstacle| o.left < right && left < o.right && o.bottom < top && bottom < o.top;
        self.units.obstacles.iter().any(meets)
    }

    /// Where something else may fit: at a neighbour's height, or above an obstacle.
    fn next_level(&self, k: usize) -> u64 {
        let s = self.sky[k];
        let sides = [k.checked_sub(1), Some(k + 1)].into_iter().flatten();
        let walls = sides.filter_map(|k| self.sky.get(k)).map(|s| s.height);
        let over = self.units.obstacles.iter().filter(|o| o.left < s.right && s.left < o.right).map(|o| o.top);
        walls.chain(over).filter(|h| *h > s.height).min().unwrap_or(u64::MAX)
    }

    /// A part of stretch `k` gets another height; equal neighbours become one.
    fn raise(&mut self, k: usize, part: Stretch) {
        let s = self.sky[k];
        let before = Stretch { right: part.left, ..s };
        let after = Stretch { left: part.right, ..s };
        let parts = [before, part, after].into_iter().filter(|p| p.left < p.right);
        self.sky.splice(k..=k, parts);
        let from = k.saturating_sub(1);
        let mut at = from;
        // At most the three parts and a neighbour on each side.
        for _ in 0..4 {
            match (self.sky.get(at).copied(), self.sky.get(at + 1).copied()) {
                (Some(a), Some(b)) if a.height == b.height => {
                    self.sky[at].right = b.right;
                    self.sky.remove(at + 1);
                }
                _ => at += 1,
            }
        }
    }
}
