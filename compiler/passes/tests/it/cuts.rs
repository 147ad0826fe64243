//! Packing problems whose best solution is known: a full rectangle of times x bytes is cut into pieces, and the pieces
//! forget their places.

use ptoc_placement::pack::{Problem, Rect, Solution};

/// Bytes that a size is a multiple of.
pub const ALIGN: u64 = 32;

/// A problem that fits exactly into `bytes`.
pub struct Cut {
    pub problem: Problem,
    pub bytes: u64,
}

impl Cut {
    /// By how many per cent a packing is worse than the best one.
    pub fn excess(&self, solution: &Solution) -> f64 {
        (solution.extent as f64 / self.bytes as f64 - 1.0) * 100.0
    }
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// In `lo..=hi`.
    pub fn within(&mut self, lo: u64, hi: u64) -> u64 {
        lo + self.next() % (hi - lo + 1)
    }
}

/// Times from `.0` to before `.1`, units of memory from `.2` to before `.3`.
type Piece = (u64, u64, u64, u64);

/// Instance number `seed`: from 5 to 1,000 pieces, on few or many times, by cuts from side to side (guillotine), by
/// pinwheels of five pieces that no such cut can make, or by both.
pub fn instance(seed: u64) -> Cut {
    let mut r = Random(seed);
    // Evenly over the magnitudes of the count.
    let exponent = r.within(0, 1000) as f64 / 1000.0;
    let count = (5.0 * 200f64.powf(exponent)) as usize;
    cut(seed, count.clamp(5, 1000))
}

/// As [`instance`], with at most so many pieces (and at least three quarters of them, if that many can be cut).
pub fn cut(seed: u64, count: usize) -> Cut {
    let mut r = Random(seed ^ 0xc0ffee);
    let times = match r.within(0, 2) {
        0 => 4 + count as u64 / 4,
        1 => 4 + count as u64,
        _ => 10 + 8 * count as u64,
    };
    let units = [1 << 11, 1 << 13, 1 << 16][r.within(0, 2) as usize];
    let pinwheels = r.within(0, 2);
    // Pieces of like size, or of very different ones.
    let even = r.within(0, 1) == 0;
    let mut pieces: Vec<Piece> = vec![(0, times, 0, units)];
    let mut idle = 0;
    while pieces.len() < count && idle < 1000 {
        let area = |p: &Piece| (p.1 - p.0) * (p.3 - p.2);
        let k = match even {
            true => (0..pieces.len()).max_by_key(|&k| (area(&pieces[k]), k)).unwrap_or(0),
            false => r.within(0, pieces.len() as u64 - 1) as usize,
        };
        let p = pieces.swap_remove(k);
        let before = pieces.len();
        if pinwheels > 0 && r.within(1, 2) <= pinwheels && before + 5 <= count {
            pinwheel(p, &mut r, &mut pieces);
        } else {
            guillotine(p, &mut r, &mut pieces);
        }
        idle = if pieces.len() == before + 1 { idle + 1 } else { 0 };
    }
    // In no telling order.
    for k in (1..pieces.len()).rev() {
        pieces.swap(k, r.within(0, k as u64) as usize);
    }
    let rect = |p: &Piece| Rect { start: p.0 as u32, end: p.1 as u32 - 1, size: (p.3 - p.2) * ALIGN, fixed: None };
    let rects = pieces.iter().map(rect).collect();
    Cut { problem: Problem { align: ALIGN, free: 0, rects }, bytes: units * ALIGN }
}

fn guillotine((l, r, b, t): Piece, random: &mut Random, out: &mut Vec<Piece>) {
    let (wide, high) = (r - l >= 2, t - b >= 2);
    let across_time = match (wide, high) {
        (false, false) => return out.push((l, r, b, t)),
        (wide, true) => wide && random.within(0, 1) == 0,
        _ => true,
    };
    if across_time {
        let at = random.within(l + 1, r - 1);
        out.extend([(l, at, b, t), (at, r, b, t)]);
    } else {
        let at = random.within(b + 1, t - 1);
        out.extend([(l, r, b, at), (l, r, at, t)]);
    }
}

fn pinwheel((l, r, b, t): Piece, random: &mut Random, out: &mut Vec<Piece>) {
    if r - l < 3 || t - b < 3 {
        return guillotine((l, r, b, t), random, out);
    }
    let x1 = random.within(l + 1, r - 2);
    let x2 = random.within(x1 + 1, r - 1);
    let y1 = random.within(b + 1, t - 2);
    let y2 = random.within(y1 + 1, t - 1);
    out.extend([(l, x2, b, y1), (x2, r, b, y2), (x1, r, y2, t), (l, x1, y1, t), (x1, x2, y1, y2)]);
}
