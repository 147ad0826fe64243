//! Filling a skyline from below: the lowest stretch of it takes the rectangle that closes it best, or rises to the level
//! of its lower neighbour if none fits into it (the best-fit method of strip packing, with places in time given).
//!
//! What closes best is a matter of weights: flush with a wall of the stretch, level with what stands there, long, large.
//! The weights change from pass to pass.

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

/// Passes with changing weights, for three quarters of the budget.
pub(super) fn search(units: &Units, best: &mut Best, budget: &mut Budget) {
    let reserve = budget.left / 4;
    let mut pass = 0;
    let mut base = USUAL[0];
    while budget.left > reserve && !best.done() {
        let weights = match USUAL.get(pass) {
            Some(w) => *w,
            None => vary(base, budget),
        };
        let offsets = fill(units, &weights, budget);
        let (offsets, steps) = fit::settle(units, offsets);
        budget.spend(steps);
        let extent = units.extent(&offsets);
        if best.offer(offsets, extent) {
            base = weights;
        }
        pass += 1;
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

struct Fill<'a> {
    units: &'a Units,
    sky: Vec<Stretch>,
    /// Boxes that are not placed, by the column where they begin.
    waiting: Vec<Vec<u32>>,
    largest: f32,
}

fn fill(units: &Units, weights: &Weights, budget: &mut Budget) -> Vec<u64> {
    let mut waiting = vec![Vec::new(); units.columns as usize];
    for (i, b) in units.boxes.iter().enumerate() {
        waiting[b.left as usize].push(i as u32);
    }
    let largest = units.boxes.iter().map(|b| b.size).max().unwrap_or(1).max(1) as f32;
    let sky = vec![Stretch { left: 0, right: units.columns, height: 0 }];
    let mut this = Fill { units, sky, waiting, largest };
    let mut offsets = vec![0; units.boxes.len()];
    let mut left = units.boxes.len();
    while left > 0 {
        budget.spend(this.sky.len() as u64 / 4);
        let Some(k) = (0..this.sky.len()).min_by_key(|&k| (this.sky[k].height, k)) else { break };
        match this.choose(k, weights, budget) {
            Some(i) => {
                let b = &units.boxes[i as usize];
                offsets[i as usize] = this.sky[k].height;
                this.waiting[b.left as usize].retain(|w| *w != i);
                let height = this.sky[k].height.saturating_add(b.size);
                this.raise(k, Stretch { left: b.left, right: b.right, height });
                left -= 1;
            }
            None => {
                let stretch = this.sky[k];
                let height = this.next_level(k);
                this.raise(k, Stretch { height, ..stretch });
            }
        }
    }
    offsets
}

impl Fill<'_> {
    /// The waiting box that fits into stretch `k` and is worth most.
    fn choose(&self, k: usize, weights: &Weights, budget: &mut Budget) -> Option<u32> {
        let s = self.sky[k];
        let span = (s.right - s.left) as f32;
        let wall = |k: Option<&Stretch>| k.map(|s| s.height);
        let walls = (wall(k.checked_sub(1).and_then(|k| self.sky.get(k))), wall(self.sky.get(k + 1)));
        let mut best: Option<(f32, u32)> = None;
        let mut steps = u64::from(s.right - s.left) / 4;
        for column in s.left..s.right {
            let waiting = &self.waiting[column as usize];
            steps += 2 * waiting.len() as u64;
            for &i in waiting {
                let b = &self.units.boxes[i as usize];
                let top = s.height.saturating_add(b.size);
                if b.right > s.right || self.blocked(b.left, b.right, s.height, top) {
                    continue;
                }
                steps += 4;
                let mut worth = weights.length * b.width() as f32 / span + weights.size * b.size as f32 / self.largest;
                if b.left == s.left {
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
                    best = Some((worth, i));
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
