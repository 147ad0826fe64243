//! Reproducible random tensors: the same on every platform, for every version, in any order of generation.

use crate::{DType, Tensor, TensorError, scalar};

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014) as a function of a counter:
/// the `i`-th number is `mix(key + (i + 1) * GOLDEN)`, so an element's value depends on nothing but its place.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    key: u64,
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Random {
    /// The stream of `name` under `seed`. The name is hashed with 64-bit FNV-1a.
    pub fn new(seed: u64, name: &str) -> Random {
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Random { key: mix(mix(seed.wrapping_add(GOLDEN)) ^ hash) }
    }

    /// Number `i` of the stream.
    pub fn at(self, i: u64) -> u64 {
        mix(self.key.wrapping_add(GOLDEN.wrapping_mul(i.wrapping_add(1))))
    }

    /// Number `i`, uniform in `[0, 1)` with 53 bits.
    pub fn unit(self, i: u64) -> f64 {
        (self.at(i) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Number `i`, in `[0, width)`, `width` up to 2^64, by the high half of a product. The bias is below `width /
    /// 2^64`.
    pub fn below(self, i: u64, width: u128) -> u64 {
        let width = width.clamp(1, 1 << 64);
        (u128::from(self.at(i)).wrapping_mul(width) >> 64) as u64
    }
}

/// A random tensor: floats uniform in [-1, 1) rounded to `dtype`, signed integers in [-8, 8), unsigned ones in
/// [0, 16), bools with equal chances. `name` (that of the argument) keeps tensors of one seed apart.
pub fn random(dtype: DType, shape: &[usize], seed: u64, name: &str) -> Result<Tensor, TensorError> {
    random_in(dtype, shape, seed, name, None)
}

/// [`random`] with values in `[lo, hi)` if a range is given: integers as far as the dtype has them, floats uniform
/// and then rounded, so that `hi` itself can be met.
pub fn random_in(
    dtype: DType,
    shape: &[usize],
    seed: u64,
    name: &str,
    range: Option<(i128, i128)>,
) -> Result<Tensor, TensorError> {
    let source = Random::new(seed, name);
    let Some((least, greatest)) = scalar::integer_range(dtype) else {
        let (lo, hi) = range.unwrap_or((-1, 1));
        if lo >= hi {
            return Err(TensorError::EmptyRange { dtype, lo, hi });
        }
        let (lo, hi) = (lo as f64, hi as f64);
        let value = |i| lo + (hi - lo) * source.unit(i as u64);
        return Tensor::from_fn(dtype, shape, |i| scalar::bits_from_f64(dtype, value(i)));
    };
    let (lo, hi) = range.unwrap_or(match dtype {
        DType::Bool => (0, 2),
        _ if dtype.is_signed_int() => (-8, 8),
        _ => (0, 16),
    });
    let (from, to) = (lo.max(least), hi.min(greatest + 1));
    if from >= to {
        return Err(TensorError::EmptyRange { dtype, lo, hi });
    }
    let width = (to - from) as u128;
    Tensor::from_fn(dtype, shape, |i| scalar::bits_from_i128(dtype, from + i128::from(source.below(i as u64, width))))
}

/// A random tensor of which each line along `mode` is a permutation of `0..n`, `n` being the extent of `mode`: of the
/// element at `i`, the place of the stream's number `i` among those of its line.
///
/// # Errors
/// As [`Tensor::from_fn`]; and [`TensorError::EmptyRange`] if `dtype` is no integer that holds all of `0..n`.
pub fn random_permutation(
    dtype: DType,
    shape: &[usize],
    mode: usize,
    seed: u64,
    name: &str,
) -> Result<Tensor, TensorError> {
    let n = shape[mode] as i128;
    if scalar::integer_range(dtype).is_none_or(|(_, greatest)| n - 1 > greatest) {
        return Err(TensorError::EmptyRange { dtype, lo: 0, hi: n });
    }
    let source = Random::new(seed, name);
    let mut out = Tensor::zeros(dtype, shape)?;
    for mut line in lines(shape, mode) {
        line.sort_by_key(|&i| (source.at(i as u64), i));
        for (place, &i) in line.iter().enumerate() {
            out.set_bits(i, scalar::bits_from_i128(dtype, place as i128));
        }
    }
    Ok(out)
}

/// `tensor` with the numbers of each line along `mode` in ascending order.
#[must_use]
pub fn sorted_lines(mut tensor: Tensor, mode: usize) -> Tensor {
    let shape = tensor.shape().to_vec();
    for line in lines(&shape, mode) {
        let mut bits: Vec<u64> = line.iter().map(|&i| tensor.get_bits(i)).collect();
        let dtype = tensor.dtype();
        match dtype.is_float() {
            true => bits.sort_by(|a, b| scalar::bits_to_f64(dtype, *a).total_cmp(&scalar::bits_to_f64(dtype, *b))),
            false => bits.sort_by_key(|b| scalar::bits_to_i128(dtype, *b)),
        }
        line.iter().zip(bits).for_each(|(&i, b)| tensor.set_bits(i, b));
    }
    tensor
}

/// The flat indices of each line of an array of `shape` along `mode`.
fn lines(shape: &[usize], mode: usize) -> impl Iterator<Item = Vec<usize>> + use<> {
    let (n, inner) = (shape[mode], shape[mode + 1..].iter().product::<usize>());
    let outer = shape[..mode].iter().product::<usize>();
    (0..outer * inner).map(move |k| {
        let first = k / inner * n * inner + k % inner;
        (0..n).map(|place| first + place * inner).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_permuted_or_sorted() {
        let shape = [2, 5, 3];
        let t = random_permutation(DType::U8, &shape, 1, 7, "order").unwrap();
        for line in lines(&shape, 1) {
            let mut values: Vec<u64> = line.iter().map(|&i| t.get_bits(i)).collect();
            values.sort_unstable();
            assert_eq!(values, [0, 1, 2, 3, 4]);
        }
        let of = |seed| format!("{:?}", random_permutation(DType::I32, &[8], 0, seed, "order").unwrap());
        assert_ne!(of(1), of(2));
        assert!(random_permutation(DType::U8, &[300], 0, 1, "order").is_err());
        assert!(random_permutation(DType::F32, &[3], 0, 1, "order").is_err());
        for dtype in [DType::I32, DType::U8, DType::F16] {
            let drawn = random(dtype, &shape, 3, "x").unwrap();
            let t = sorted_lines(drawn.clone(), 1);
            let value = |t: &Tensor, i: usize| t.get_f64(i);
            for line in lines(&shape, 1) {
                assert!(line.windows(2).all(|w| value(&t, w[0]) <= value(&t, w[1])));
                let mut want: Vec<f64> = line.iter().map(|&i| value(&drawn, i)).collect();
                want.sort_by(f64::total_cmp);
                assert_eq!(line.iter().map(|&i| value(&t, i)).collect::<Vec<_>>(), want);
            }
        }
    }

    #[test]
    fn values_are_pinned() {
        // Changing any of these breaks recorded seeds.
        let shown = |dtype| format!("{:?}", random(dtype, &[6], 2, "A").unwrap());
        insta::assert_snapshot!(DType::ALL.map(shown).join("\n"), @r#"
        bool[6] {false, true, false, false, true, true}
        i8[6] {-8, 0, -1, -6, 6, 7}
        u8[6] {0, 8, 7, 2, 14, 15}
        i16[6] {-8, 0, -1, -6, 6, 7}
        u16[6] {0, 8, 7, 2, 14, 15}
        i32[6] {-8, 0, -1, -6, 6, 7}
        u32[6] {0, 8, 7, 2, 14, 15}
        i64[6] {-8, 0, -1, -6, 6, 7}
        u64[6] {0, 8, 7, 2, 14, 15}
        f16[6] {-0.971, 0.0523, -0.03476, -0.649, 0.7686, 0.975}
        bf16[6] {-0.973, 0.0522, -0.0347, -0.65, 0.77, 0.977}
        f32[6] {-0.9714044, 0.052300785, -0.034756232, -0.64911443, 0.7686408, 0.9750628}
        f8e4m3[6] {-1.0, 0.05078125, -0.03515625, -0.625, 0.75, 1.0}
        f8e5m2[6] {-1.0, 0.0546875, -0.03125, -0.625, 0.75, 1.0}
        "#);
    }

    #[test]
    fn splitmix64_matches_its_reference() {
        // The first outputs of the reference implementation for seed 1234567.
        let random = Random { key: 1234567 };
        let got: Vec<u64> = (0..3).map(|i| random.at(i)).collect();
        assert_eq!(got, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn names_seeds_and_places_differ() {
        let bytes = |seed, name| random(DType::U64, &[4], seed, name).unwrap();
        assert_ne!(bytes(1, "A"), bytes(1, "B"));
        assert_ne!(bytes(1, "A"), bytes(2, "A"));
        assert_eq!(bytes(1, "A"), bytes(1, "A"));
    }

    #[test]
    fn ranges_hold_and_are_reached() {
        let tensor = random_in(DType::I32, &[2000], 7, "x", Some((-3, 4))).unwrap();
        let values: Vec<i128> = (0..2000).map(|i| tensor.get_i128(i)).collect();
        assert_eq!((*values.iter().min().unwrap(), *values.iter().max().unwrap()), (-3, 3));
        let wide = random_in(DType::U64, &[64], 7, "x", Some((i128::MIN, i128::MAX))).unwrap();
        assert!((0..64).any(|i| wide.get_bits(i) >> 63 == 1));
        let clipped = random_in(DType::U8, &[64], 7, "x", Some((250, 1000))).unwrap();
        assert!((0..64).all(|i| clipped.get_i128(i) >= 250));
        for (dtype, range) in [(DType::F32, (1, 1)), (DType::U8, (-5, 0)), (DType::I8, (200, 300))] {
            assert!(matches!(random_in(dtype, &[1], 0, "x", Some(range)), Err(TensorError::EmptyRange { .. })));
        }
        let floats = random(DType::BF16, &[3000], 1, "x").unwrap().to_f64s();
        assert!(floats.iter().all(|v| v.abs() <= 1.0));
        assert!(floats.iter().sum::<f64>().abs() < 100.0);
        let coins = random(DType::Bool, &[1000], 1, "x").unwrap();
        let heads = coins.bytes().iter().filter(|&&b| b == 1).count();
        assert!((400..600).contains(&heads));
    }
}
