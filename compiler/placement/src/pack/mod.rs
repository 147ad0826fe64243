//! Packing rectangles of fixed width: every rectangle has a life on the axis of time and a size on the axis of
//! addresses, and is to be moved along addresses until none overlaps another and the highest end is low (dynamic
//! storage allocation, NP-hard in general). Nothing here knows of tiles.
//!
//! What is tried, in this order, until the bound is met that no packing can beat ([`Solution::bound`]):
//!
//! 1. first fit in several orders ([`fit`]);
//! 2. up to [`EXACT`] rectangles: exhaustive search ([`exact`]), whose answer is final;
//! 3. rectangles that fit together without a gap are joined to larger ones ([`blocks`]), and these fill a skyline from
//!    below, what closes it best first, with weights that change ([`skyline`]);
//! 4. the skyline filled with the rectangles themselves, where little could be joined;
//! 5. first fit again, in the order of the best packing with what sticks out of it moved forward ([`fit::climb`]).
//!
//! All but the first spend a budget that is counted in elementary steps and not in time, so that equal problems have
//! equal solutions everywhere.

mod blocks;
mod bound;
mod exact;
mod fit;
mod join;
mod skyline;

/// Up to so many movable rectangles the search is exhaustive.
pub const EXACT: usize = 12;

/// How long to search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// A fraction of a millisecond: the packing is good enough already.
    Little,
    /// Tens of milliseconds for many rectangles.
    Much,
}

/// A rectangle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rect {
    /// First point of its life.
    pub start: u32,
    /// Last point of its life, not before `start`.
    pub end: u32,
    /// Bytes.
    pub size: u64,
    /// Where it is, if that is not for the solver to say. Such rectangles may overlap each other, and need not be
    /// aligned; then the whole of each unit that they touch is theirs.
    pub fixed: Option<u64>,
}

/// What is to be packed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Every offset is a multiple of it; 0 counts as 1.
    pub align: u64,
    /// Bytes up to here cost nothing: something is known to reach so far anyway.
    pub free: u64,
    /// The rectangles.
    pub rects: Vec<Rect>,
}

/// A packing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Solution {
    /// Offset of each rectangle, those of the fixed ones included.
    pub offsets: Vec<u64>,
    /// One past the last byte of a movable rectangle, its size rounded up to the alignment; at least the problem's
    /// `free`.
    pub extent: u64,
    /// No packing has a smaller extent than this: the peak of the bytes alive.
    pub bound: u64,
    /// No packing has a smaller extent than [`Solution::extent`].
    pub optimal: bool,
}

impl Problem {
    /// A good packing, the best one for up to [`EXACT`] movable rectangles in all but contrived cases (see
    /// [`Solution::optimal`]). It always exists: no capacity is set here.
    pub fn solve(&self, effort: Effort) -> Solution {
        let units = Units::new(self);
        let bound = bound::bound(&units);
        let mut best = Best { offsets: Vec::new(), extent: u64::MAX, bound };
        let mut optimal = false;
        fit::orders(&units, &mut best);
        if !best.done() {
            optimal = units.boxes.len() <= EXACT && exact::search(&units, &mut best, effort);
        }
        if !best.done() && !optimal {
            let mut budget = Budget::new(units.boxes.len(), effort);
            let all = budget.left;
            blocks::search(&units, &mut best, &mut budget, all / 32);
            if !best.done() {
                skyline::search(&units, &mut best, &mut budget, all / 50);
            }
            fit::climb(&units, &mut best, &mut budget);
        }
        let mut offsets: Vec<u64> = self.rects.iter().map(|r| r.fixed.unwrap_or(0)).collect();
        for (b, at) in units.boxes.iter().zip(&best.offsets) {
            offsets[b.rect] = at.saturating_mul(units.align);
        }
        let bytes = |n: u64| n.saturating_mul(units.align).max(self.free);
        let (extent, bound) = (bytes(best.extent), bytes(bound));
        Solution { offsets, extent, bound, optimal: optimal || extent == bound }
    }
}

/// A movable rectangle in units: columns are the times between which nothing begins or ends, heights count alignments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Box {
    rect: usize,
    /// First column and one past the last.
    left: u32,
    right: u32,
    size: u64,
}

impl Box {
    fn meets(&self, left: u32, right: u32) -> bool {
        self.left < right && left < self.right
    }

    fn width(&self) -> u64 {
        u64::from(self.right - self.left)
    }
}

/// A fixed rectangle in units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Obstacle {
    left: u32,
    right: u32,
    bottom: u64,
    top: u64,
}

/// A problem in units.
struct Units {
    align: u64,
    /// What costs nothing.
    free: u64,
    columns: u32,
    boxes: Vec<Box>,
    obstacles: Vec<Obstacle>,
}

impl Units {
    fn new(problem: &Problem) -> Units {
        let align = problem.align.max(1);
        let mut times: Vec<u64> =
            problem.rects.iter().flat_map(|r| [u64::from(r.start), u64::from(r.end.max(r.start)) + 1]).collect();
        times.sort_unstable();
        times.dedup();
        let column = |t: u64| times.partition_point(|x| *x < t) as u32;
        let (mut boxes, mut obstacles) = (Vec::new(), Vec::new());
        for (rect, r) in problem.rects.iter().enumerate() {
            let (left, right) = (column(r.start.into()), column(u64::from(r.end.max(r.start)) + 1));
            match r.fixed {
                None => boxes.push(Box { rect, left, right, size: r.size.div_ceil(align) }),
                Some(at) => obstacles.push(Obstacle {
                    left,
                    right,
                    bottom: at / align,
                    top: at.saturating_add(r.size).div_ceil(align),
                }),
            }
        }
        obstacles.retain(|o| o.bottom < o.top);
        obstacles.sort_unstable_by_key(|o| (o.bottom, o.top, o.left, o.right));
        let columns = (times.len() as u32).saturating_sub(1);
        Units { align, free: problem.free.div_ceil(align), columns, boxes, obstacles }
    }

    /// The lowest place at or above `base` where `b` meets no obstacle.
    fn above_obstacles(&self, b: &Box, mut base: u64) -> u64 {
        // They are sorted by their bottoms, so what has been passed stays below.
        for o in &self.obstacles {
            if b.meets(o.left, o.right) && base < o.top && o.bottom < base.saturating_add(b.size) {
                base = o.top;
            }
        }
        base
    }

    fn extent(&self, offsets: &[u64]) -> u64 {
        let tops = self.boxes.iter().zip(offsets).map(|(b, at)| at.saturating_add(b.size));
        tops.max().unwrap_or(0).max(self.free)
    }
}

/// The best packing so far.
struct Best {
    offsets: Vec<u64>,
    extent: u64,
    bound: u64,
}

impl Best {
    /// Keeps the packing if it is better. Of equals the first one stays.
    fn offer(&mut self, offsets: Vec<u64>, extent: u64) -> bool {
        let better = extent < self.extent;
        if better {
            (self.offsets, self.extent) = (offsets, extent);
        }
        better
    }

    /// Nothing better is possible.
    fn done(&self) -> bool {
        self.extent <= self.bound
    }
}

/// How much may still be tried, in elementary steps.
struct Budget {
    left: u64,
    random: u64,
}

impl Budget {
    fn new(boxes: usize, effort: Effort) -> Budget {
        let n = boxes as u64;
        let left = match effort {
            Effort::Little => 100_000,
            Effort::Much => (300 * n * n).clamp(1_000_000, 9_000_000),
        };
        Budget { left, random: 0x5eed }
    }

    fn spend(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
    }

    /// The next number of a sequence that is always the same (SplitMix64).
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.random;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Below `n`, which is not 0.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// In 0..1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }
}
