//! Sums of products on a matrix unit, to the bit: those of the tensor cores of an H100, as they were measured on one
//! (`spec/design/gpu.md`). The reference interpreter and the interpreter of PTX both compute with this.
//!
//! A block of products is added at once. The sum before and the exact products are aligned to the greatest exponent
//! among them, where that of a product is the sum of its factors'; of each a few binary digits are kept, and the rest
//! is cut off. They are added exactly, and the sum is cut off.

/// The NaN of sums.
const NAN: u32 = 0x7fff_ffff;
/// The least exponent of a normal f32.
const LEAST: i32 = -126;

/// What a factor is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum FactorType {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
}

/// How a unit adds: its numeric profile for a type of factors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SumProfile {
    /// Products that are added at once.
    pub block: u32,
    /// Binary digits of each addend that are kept behind the greatest exponent.
    pub addend_digits: u32,
    /// Binary digits of the sum that are kept behind its leading one.
    pub sum_digits: u32,
}

/// A factor: `sig * 2^(exp - digits)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Factor {
    Finite { sig: i32, exp: i32 },
    Infinite { negative: bool },
    Nan,
}

impl FactorType {
    /// Bits in memory.
    fn bits(self) -> u32 {
        match self {
            FactorType::F16 | FactorType::Bf16 => 16,
            // The low bits of its 32 are not looked at.
            FactorType::Tf32 => 19,
            FactorType::E4m3 | FactorType::E5m2 => 8,
        }
    }

    /// Digits behind the point of a significand, and the bias.
    fn format(self) -> (u32, i32) {
        match self {
            FactorType::F16 => (10, 15),
            FactorType::Bf16 => (7, 127),
            FactorType::Tf32 => (10, 127),
            FactorType::E4m3 => (3, 7),
            FactorType::E5m2 => (2, 15),
        }
    }

    /// The factor of some bits.
    pub fn factor(self, bits: u32) -> Factor {
        let bits = if self == FactorType::Tf32 { bits >> 13 } else { bits };
        let ((digits, bias), width) = (self.format(), self.bits());
        let exps = width - 1 - digits;
        let negative = bits >> (width - 1) & 1 != 0;
        let (exp, fraction) = (bits >> digits & ((1 << exps) - 1), (bits & ((1 << digits) - 1)) as i32);
        let top = exp == (1 << exps) - 1;
        match self {
            // It has no infinity, and one NaN.
            FactorType::E4m3 if top && fraction == 7 => return Factor::Nan,
            FactorType::E4m3 => {}
            _ if top && fraction == 0 => return Factor::Infinite { negative },
            _ if top => return Factor::Nan,
            _ => {}
        }
        let sig = if exp == 0 { fraction } else { fraction | 1 << digits };
        Factor::Finite { sig: if negative { -sig } else { sig }, exp: exp.max(1) as i32 - bias }
    }
}

impl Factor {
    /// Zero, which changes no sum.
    pub const ZERO: Factor = Factor::Finite { sig: 0, exp: 0 };

    /// The same, negated.
    #[must_use]
    pub fn negated(self) -> Factor {
        match self {
            Factor::Finite { sig, exp } => Factor::Finite { sig: -sig, exp },
            Factor::Infinite { negative } => Factor::Infinite { negative: !negative },
            Factor::Nan => Factor::Nan,
        }
    }
}

/// `x * 2^by`, cut off towards zero.
fn scaled(x: i64, by: i32) -> i64 {
    let size = match by {
        // Nothing is at home at every scale: it may be far above the products.
        _ if x == 0 => 0,
        0.. => x.unsigned_abs() << by,
        -63..0 => x.unsigned_abs() >> -by,
        _ => 0,
    };
    if x < 0 { -(size as i64) } else { size as i64 }
}

/// What infinities and NaN make of a sum; `None` if there are none.
fn special(a: &[Factor], b: &[Factor], sum: f32) -> Option<u32> {
    let (mut up, mut down) = (sum == f32::INFINITY, sum == f32::NEG_INFINITY);
    let mut nan = sum.is_nan();
    for (a, b) in a.iter().zip(b) {
        match (*a, *b) {
            (Factor::Finite { .. }, Factor::Finite { .. }) => {}
            (Factor::Nan, _) | (_, Factor::Nan) => nan = true,
            (Factor::Infinite { negative: a }, Factor::Infinite { negative: b }) => {
                *(if a == b { &mut up } else { &mut down }) = true;
            }
            (Factor::Infinite { negative }, Factor::Finite { sig, .. })
            | (Factor::Finite { sig, .. }, Factor::Infinite { negative }) => match sig {
                0 => nan = true,
                _ => *(if negative == (sig < 0) { &mut up } else { &mut down }) = true,
            },
        }
    }
    match (nan || (up && down), up, down) {
        (true, ..) => Some(NAN),
        (_, true, _) => Some(f32::INFINITY.to_bits()),
        (_, _, true) => Some(f32::NEG_INFINITY.to_bits()),
        _ => None,
    }
}

impl SumProfile {
    /// The sum before and a block of products: the bits of the sum. What there is less than a block of is as if it were
    /// filled with zeros.
    pub fn add(self, (ty_a, ty_b): (FactorType, FactorType), a: &[Factor], b: &[Factor], sum: u32) -> u32 {
        let sum = f32::from_bits(sum);
        let finite = |f: &Factor| matches!(f, Factor::Finite { .. });
        if (!sum.is_finite() || !a.iter().chain(b).all(finite))
            && let Some(bits) = special(a, b, sum)
        {
            return bits;
        }
        let products = || {
            a.iter().zip(b).filter_map(|(a, b)| match (*a, *b) {
                (Factor::Finite { sig: s, exp: e }, Factor::Finite { sig: t, exp: f }) if s != 0 && t != 0 => {
                    Some((i64::from(s) * i64::from(t), e + f))
                }
                _ => None,
            })
        };
        let bits = sum.to_bits();
        let exp = (bits >> 23 & 0xff).max(1) as i32 - 127;
        let sig = i64::from(bits & 0x7f_ffff | u32::from(bits >> 23 & 0xff != 0) << 23);
        let sig = if sum.is_sign_negative() { -sig } else { sig };
        let before = (sig != 0).then_some(exp);
        let Some(top) = products().map(|(_, e)| e).chain(before).max() else { return 0 };
        let (aligned, digits) = (self.addend_digits as i32, self.sum_digits as i32);
        let product_digits = (ty_a.format().0 + ty_b.format().0) as i32;
        let total = products().fold(scaled(sig, exp - 23 - top + aligned), |total, (product, e)| {
            total + scaled(product, e - product_digits - top + aligned)
        });
        if total == 0 {
            return 0;
        }
        // The total is in units of 2^(top - aligned).
        let leading = 63 - total.unsigned_abs().leading_zeros() as i32;
        let exp = (top - aligned + leading).max(LEAST);
        let sig = scaled(total, top - aligned - exp + digits);
        // Powers below the least normal f64 do not occur; what is too large becomes infinite.
        ((sig as f64 * f64::from(exp - digits).exp2()) as f32).to_bits()
    }

    /// The sum of all products of two rows, block by block in ascending order, from a start.
    pub fn dot(self, types: (FactorType, FactorType), a: &[Factor], b: &[Factor], start: u32) -> u32 {
        let block = self.block.max(1) as usize;
        a.chunks(block).zip(b.chunks(block)).fold(start, |sum, (a, b)| self.add(types, a, b, sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    fn value(ty: FactorType, f: Factor) -> f64 {
        match f {
            Factor::Finite { sig, exp } => f64::from(sig) * f64::from(exp - ty.format().0 as i32).exp2(),
            Factor::Infinite { negative: true } => f64::NEG_INFINITY,
            Factor::Infinite { negative: false } => f64::INFINITY,
            Factor::Nan => f64::NAN,
        }
    }

    #[test]
    fn the_smallest_products_begin_at_nothing() {
        let least = FactorType::Bf16.factor(1);
        let profile = SumProfile { block: 16, addend_digits: 25, sum_digits: 23 };
        let types = (FactorType::Bf16, FactorType::Bf16);
        assert_eq!(profile.dot(types, &[least; 3], &[least; 3], 0), 0);
    }

    #[test]
    fn factors_are_numbers() {
        let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
        for bits in 0..=u16::MAX {
            let wants = [
                (FactorType::F16, f16::from_bits(bits).to_f64()),
                (FactorType::Bf16, bf16::from_bits(bits).to_f64()),
                // The high half of an f16.
                (FactorType::E5m2, f16::from_bits(bits << 8).to_f64()),
            ];
            for (ty, want) in wants {
                let bits = if ty == FactorType::E5m2 { bits & 0xff } else { bits };
                assert!(same(value(ty, ty.factor(bits.into())), want), "{ty:?} {bits:x}");
            }
        }
        for x in [1.0f32, -0.375, 3e-40, f32::MAX, f32::INFINITY] {
            let cut = f32::from_bits(x.to_bits() & !0x1fff);
            let tf32 = FactorType::Tf32;
            assert!(same(value(tf32, tf32.factor(x.to_bits() | 0xfff)), cut.into()), "{x}");
        }
        let e4m3 = |bits| value(FactorType::E4m3, FactorType::E4m3.factor(bits));
        assert_eq!([e4m3(0x7e), e4m3(0x38), e4m3(0x81), e4m3(0x08)], [448.0, 1.0, -0.001_953_125, 0.015_625]);
        assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());
    }

    const HALF: SumProfile = SumProfile { block: 16, addend_digits: 25, sum_digits: 23 };

    #[test]
    fn sums_are_cut_off() {
        let f = |x: f32| FactorType::F16.factor(f16::from_f32(x).to_bits().into());
        let sum = |a: &[f32], b: &[f32], c: f32| {
            let (a, b): (Vec<_>, Vec<_>) = (a.iter().map(|x| f(*x)).collect(), b.iter().map(|x| f(*x)).collect());
            f32::from_bits(HALF.add((FactorType::F16, FactorType::F16), &a, &b, c.to_bits()))
        };
        assert_eq!(sum(&[3.0, 0.5], &[2.0, 4.0], 10.0), 18.0);
        // 1 + 2^-24 + 2^-24: two digits below those of f32 are kept, so the two are seen; a third below them is not.
        let tiny = 2f32.powi(-12);
        assert_eq!(sum(&[tiny, tiny], &[tiny, tiny], 1.0), 1.0 + 2f32.powi(-23));
        assert_eq!(sum(&[tiny, tiny, tiny], &[tiny, tiny, tiny], 1.0), 1.0 + 2f32.powi(-23));
        let less = 2f32.powi(-13);
        assert_eq!(sum(&[less; 16], &[less; 16], 1.0), 1.0);
        assert_eq!(sum(&[-less], &[less], 1.0), 1.0, "towards zero, not down");
        assert_eq!(sum(&[1.0], &[1.0], -1.0).to_bits(), 0);
        assert_eq!(sum(&[f32::INFINITY], &[2.0], 1.0), f32::INFINITY);
        assert_eq!(sum(&[f32::INFINITY, 1.0], &[0.0, 1.0], 1.0).to_bits(), NAN);
        assert_eq!(sum(&[60000.0; 2], &[60000.0; 2], f32::MAX), f32::MAX, "cut off");
        let e4m3 = FactorType::E4m3;
        let eight = SumProfile { block: 32, addend_digits: 13, sum_digits: 13 };
        // 13 digits behind the leading one: 1 + 2^-13 is seen, 1 + 2^-14 is not.
        let one = |bits| {
            let (a, b) = ([e4m3.factor(0x38), e4m3.factor(bits)], [e4m3.factor(0x38), e4m3.factor(0x08)]);
            f32::from_bits(eight.add((e4m3, e4m3), &a, &b, 0))
        };
        assert_eq!(one(0x04), 1.0 + 2f32.powi(-13));
        assert_eq!(one(0x02), 1.0);
    }

    /// A block that is filled with zeros is the block, and a longer row its blocks.
    #[test]
    fn blocks_follow_each_other() {
        let ty = (FactorType::Bf16, FactorType::Bf16);
        let row: Vec<Factor> = (0..37)
            .map(|n| FactorType::Bf16.factor(bf16::from_f32((n * n % 31) as f32 / 7.0 - 2.0).to_bits().into()))
            .collect();
        let whole = HALF.dot(ty, &row, &row, 0x3f80_0001);
        let mut sum = 0x3f80_0001;
        for chunk in row.chunks(16) {
            let mut padded = chunk.to_vec();
            padded.resize(16, Factor::ZERO);
            sum = HALF.add(ty, &padded, &padded, sum);
        }
        assert_eq!(whole, sum);
    }
}
