//! Conversions between scalar types, with every rounding mode: one rounding, done on integers, so that the result
//! cannot depend on the host.

use super::{from_int, is_int, is_signed, mask, to_f32, to_int, width};
use crate::tile::Ty;
use ptoc_isa::RoundMode;
use ptoc_tensor::DType;

/// A float type's format: bits of precision (with the hidden one), of the exponent, and of storage.
struct Format {
    precision: u32,
    exponent_bits: u32,
    width: u32,
    /// The largest exponent is that of infinities and NaNs; without, only its last pattern is one, a NaN.
    infinities: bool,
}

fn format(d: DType) -> Format {
    match d {
        DType::F16 => Format { precision: 11, exponent_bits: 5, width: 16, infinities: true },
        DType::BF16 => Format { precision: 8, exponent_bits: 8, width: 16, infinities: true },
        DType::F8E4M3 => Format { precision: 4, exponent_bits: 4, width: 8, infinities: false },
        DType::F8E5M2 => Format { precision: 3, exponent_bits: 5, width: 8, infinities: true },
        _ => Format { precision: 24, exponent_bits: 8, width: 32, infinities: true },
    }
}

/// Converts `bits` of type `from` to `to`.
///
/// * Float to integer: rounded by `round`; then clamped to the range if `saturate`, else reduced modulo 2^width.
///   NaN gives 0; infinities clamp if `saturate`, else give 0.
/// * Integer to integer: clamped if `saturate`, else wraps.
/// * To a float: one rounding by `round`; overflow goes to infinity or to the largest finite value as the mode says
///   (f8e4m3 has a NaN in the place of infinities); if `saturate`, what is too large for a float of 8 or 16 bits,
///   infinities too, becomes the largest finite value. NaN stays NaN.
/// * To `bool`: whether it is different from zero. From `bool`: 0 or 1.
pub fn convert(from: Ty, to: Ty, bits: u64, round: RoundMode, saturate: bool) -> u64 {
    if from == to {
        return bits & mask(to);
    }
    if to == Ty::BOOL {
        let zero = match super::float(from) {
            Some(d) => to_f32(d, bits) == 0.0,
            None => bits & mask(from) == 0,
        };
        return u64::from(!zero);
    }
    match (super::float(from), super::float(to)) {
        (Some(a), Some(b)) => float_to_float(to_f32(a, bits), b, round, saturate),
        (Some(a), None) => float_to_int(to_f32(a, bits), to, round, saturate),
        (None, Some(b)) => {
            let value = to_int(from, bits);
            encode(&format(b), value < 0, value.unsigned_abs(), 0, round, saturate)
        }
        (None, None) => {
            let value = to_int(from, bits);
            from_int(to, if saturate && is_int(to) { clamp(value, to) } else { value })
        }
    }
}

fn clamp(value: i128, to: Ty) -> i128 {
    let (lo, hi) = match is_signed(to) {
        true => (-(1i128 << (width(to) - 1)), (1i128 << (width(to) - 1)) - 1),
        false => (0, i128::from(mask(to))),
    };
    value.clamp(lo, hi)
}

fn float_to_float(x: f32, to: DType, round: RoundMode, saturate: bool) -> u64 {
    // Nothing but an infinity is too large for an f32, and it stays one.
    let (f, saturate) = (format(to), saturate && to != DType::F32);
    if x.is_nan() {
        return super::from_f32(to, x);
    }
    if x.is_infinite() {
        let held = if saturate { infinity(&f) - 1 } else { infinity(&f) };
        return held | sign_bit(&f, x < 0.0);
    }
    let (mantissa, exponent) = decompose(x);
    encode(&f, x.is_sign_negative(), u128::from(mantissa), exponent, round, saturate)
}

/// |x| = mantissa * 2^exponent
fn decompose(x: f32) -> (u32, i32) {
    let bits = x.to_bits();
    let (field, fraction) = ((bits >> 23 & 0xff) as i32, bits & 0x7f_ffff);
    if field == 0 { (fraction, -149) } else { (fraction | 0x80_0000, field - 150) }
}

fn float_to_int(x: f32, to: Ty, round: RoundMode, saturate: bool) -> u64 {
    if x.is_nan() {
        return 0;
    }
    if x.is_infinite() {
        let extreme = if x > 0.0 { i128::MAX } else { i128::MIN };
        return if saturate { from_int(to, clamp(extreme, to)) } else { 0 };
    }
    let (mantissa, exponent) = decompose(x);
    let negative = x < 0.0;
    let magnitude = if exponent >= 0 {
        // f32 reaches 2^128; beyond 2^96 nothing but the sign matters when clamping, and all low bits are zero.
        if exponent > 72 { if saturate { 1u128 << 96 } else { 0 } } else { u128::from(mantissa) << exponent }
    } else {
        shift_right(u128::from(mantissa), exponent.unsigned_abs(), negative, round)
    };
    let value = if negative { -(magnitude as i128) } else { magnitude as i128 };
    from_int(to, if saturate { clamp(value, to) } else { value })
}

/// `mantissa / 2^shift`, rounded.
fn shift_right(mantissa: u128, shift: u32, negative: bool, round: RoundMode) -> u128 {
    if shift == 0 {
        return mantissa;
    }
    let (whole, rest, half) = if shift >= 128 {
        // Less than half an ulp: any tie value above `rest` does.
        (0, u128::from(mantissa != 0), 2)
    } else {
        (mantissa >> shift, mantissa & ((1 << shift) - 1), 1u128 << (shift - 1))
    };
    let up = match round {
        RoundMode::Rint => rest > half || (rest == half && whole & 1 == 1),
        RoundMode::Round => rest >= half,
        RoundMode::Floor => negative && rest != 0,
        RoundMode::Ceil => !negative && rest != 0,
        RoundMode::Trunc => false,
        RoundMode::Odd => rest != 0 && whole & 1 == 0,
    };
    whole + u128::from(up)
}

/// The pattern above that of the largest finite value: infinity, or the NaN of a format that has none.
fn infinity(f: &Format) -> u64 {
    let last = (1 << (f.width - 1)) - 1;
    if f.infinities { last >> (f.precision - 1) << (f.precision - 1) } else { last }
}

fn sign_bit(f: &Format, negative: bool) -> u64 {
    u64::from(negative) << (f.width - 1)
}

/// The bits of `(-1)^negative * mantissa * 2^exponent` in a format, rounded once; nothing beyond the largest finite
/// value if `saturate`.
fn encode(f: &Format, negative: bool, mantissa: u128, exponent: i32, round: RoundMode, saturate: bool) -> u64 {
    let sign = sign_bit(f, negative);
    if mantissa == 0 {
        return sign;
    }
    let bias = (1 << (f.exponent_bits - 1)) - 1;
    // Exponent of the last place of a result of this size; subnormals share the smallest one.
    let smallest = 2 - bias - f.precision as i32;
    let top = 128 - mantissa.leading_zeros() as i32 + exponent;
    let mut place = (top - f.precision as i32).max(smallest);
    let mut kept = match place - exponent {
        s if s >= 0 => shift_right(mantissa, s as u32, negative, round),
        s => mantissa << -s,
    };
    if kept == 1 << f.precision {
        kept >>= 1;
        place += 1;
    }
    // Biased exponent of a normal number; a kept value without the hidden bit is subnormal and has field 0.
    let normal = kept >> (f.precision - 1) != 0;
    let field = if normal { place - smallest + 1 } else { 0 };
    let fraction = kept as u64 & ((1 << (f.precision - 1)) - 1);
    let magnitude = (field as u64) << (f.precision - 1) | fraction;
    if magnitude >= infinity(f) {
        let to_infinity = match round {
            _ if saturate => false,
            RoundMode::Rint | RoundMode::Round => true,
            RoundMode::Floor => negative,
            RoundMode::Ceil => !negative,
            RoundMode::Trunc | RoundMode::Odd => false,
        };
        return sign | if to_infinity { infinity(f) } else { infinity(f) - 1 };
    }
    sign | magnitude
}

/// Rounds an f64 to an integral value, for the oracle.
pub fn round_f64_to_integral(x: f64, round: RoundMode) -> f64 {
    match round {
        RoundMode::Rint => x.round_ties_even(),
        RoundMode::Round => x.round(),
        RoundMode::Floor => x.floor(),
        RoundMode::Ceil => x.ceil(),
        RoundMode::Trunc => x.trunc(),
        RoundMode::Odd if x == x.trunc() => x,
        RoundMode::Odd if x.floor() % 2.0 != 0.0 => x.floor(),
        RoundMode::Odd => x.ceil(),
    }
}
