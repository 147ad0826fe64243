//! Sums of the tensor core as `spec/design/gpu.md` states them, written plainly in f64: every value here has at most 53
//! digits, so that nothing but what is meant is cut off.

use half::f16;

/// The exponent of a factor of f16: of a subnormal that of the least normal number.
fn exponent(x: f64) -> i32 {
    x.abs().log2().floor().max(-14.0) as i32
}

fn cut(x: f64, unit: f64) -> f64 {
    (x / unit).trunc() * unit
}

/// The sum before, and 16 products of f16.
fn block(a: &[f16], b: &[f16], before: f32) -> f32 {
    let pairs: Vec<(f64, f64)> = a.iter().zip(b).map(|(a, b)| (a.to_f64(), b.to_f64())).collect();
    let products = pairs.iter().filter(|(a, b)| a * b != 0.0);
    let tops = products.map(|(a, b)| exponent(*a) + exponent(*b));
    let before = f64::from(before);
    let own = (before != 0.0).then(|| before.abs().log2().floor() as i32);
    let Some(top) = tops.chain(own).max() else { return 0.0 };
    let unit = f64::from(top - 25).exp2();
    let sum: f64 = cut(before, unit) + pairs.iter().map(|(a, b)| cut(a * b, unit)).sum::<f64>();
    if sum == 0.0 {
        return 0.0;
    }
    let unit = (sum.abs().log2().floor() - 23.0).exp2();
    cut(sum, unit) as f32
}

/// A chain of blocks.
pub fn dot(a: &[f16], b: &[f16], before: f32) -> f32 {
    assert_eq!(a.len() % 16, 0);
    a.chunks(16).zip(b.chunks(16)).fold(before, |sum, (a, b)| block(a, b, sum))
}

/// Numbers that look random, with a spread of exponents.
pub fn numbers(seed: u64, count: usize) -> Vec<f16> {
    let mut x = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) as f64 / f64::from(1u32 << 31)
    };
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
