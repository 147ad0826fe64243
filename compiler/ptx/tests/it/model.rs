//! Sums of the tensor core as `spec/design/gpu.md` states them, written plainly in f64: every value here has at most 53
//! digits, so that nothing but what is meant is cut off.

use half::f16;

/// Types of factors.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Factors of a block.
    pub depth: usize,
    /// The least exponents of normal factors, left and right.
    pub least: [i32; 2],
    /// Digits behind the greatest exponent that are added, and digits of a sum behind its leading one.
    pub added: i32,
    pub kept: i32,
}

/// Factors of f16.
pub const HALVES: Kind = Kind { depth: 16, least: [-14, -14], added: 25, kept: 23 };

/// The exponent of a factor: of a subnormal that of the least normal number.
fn exponent(x: f64, least: i32) -> i32 {
    (x.abs().log2().floor() as i32).max(least)
}

fn cut(x: f64, unit: f64) -> f64 {
    (x / unit).trunc() * unit
}

/// The sum before, and a block of products.
pub fn block(kind: Kind, a: &[f64], b: &[f64], before: f32) -> f32 {
    let [left, right] = kind.least;
    let products = a.iter().zip(b).filter(|(a, b)| **a * **b != 0.0);
    let tops = products.map(|(a, b)| exponent(*a, left) + exponent(*b, right));
    let before = f64::from(before);
    let own = (before != 0.0).then(|| before.abs().log2().floor() as i32);
    let Some(top) = tops.chain(own).max() else { return 0.0 };
    let unit = f64::from(top - kind.added).exp2();
    let sum: f64 = cut(before, unit) + a.iter().zip(b).map(|(a, b)| cut(a * b, unit)).sum::<f64>();
    if sum == 0.0 {
        return 0.0;
    }
    let unit = (sum.abs().log2().floor() - f64::from(kind.kept)).exp2();
    cut(sum, unit) as f32
}

/// A chain of blocks of f16.
pub fn dot(a: &[f16], b: &[f16], before: f32) -> f32 {
    let wide = |x: &[f16]| x.iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
    let (a, b) = (wide(a), wide(b));
    assert_eq!(a.len() % HALVES.depth, 0);
    let blocks = a.chunks(HALVES.depth).zip(b.chunks(HALVES.depth));
    blocks.fold(before, |sum, (a, b)| block(HALVES, a, b, sum))
}

/// Words that look random.
pub fn words(seed: u64) -> impl FnMut() -> u32 {
    let mut x = seed.wrapping_mul(2).wrapping_add(1);
    move || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 32) as u32
    }
}

/// Numbers that look random, with a spread of exponents.
pub fn numbers(seed: u64, count: usize) -> Vec<f16> {
    let mut word = words(seed);
    let mut next = || f64::from(word() >> 1) / f64::from(1u32 << 31);
    (0..count).map(|_| f16::from_f64((next() * 2.0 - 1.0) * (next() * 6.0 - 4.0).exp2())).collect()
}

/// The bytes of an array.
pub fn bytes(array: &[f16]) -> Vec<u8> {
    array.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// An array of some bytes.
pub fn halves(bytes: &[u8]) -> Vec<f16> {
    bytes.chunks(2).map(|b| f16::from_le_bytes([b[0], b[1]])).collect()
}
