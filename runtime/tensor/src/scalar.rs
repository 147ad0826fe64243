//! Scalars as raw bits: conversions with one rounding, and text.
//!
//! `bits` are always the element's own bits, zero-extended to `u64` (an `i8` of -1 is `0xff`); bits above the dtype's
//! width are ignored on input. Float results round to nearest, ties to even, **once**: going from f64 to f16 by way of
//! f32 would round twice, and so does the hardware path of common libraries. A NaN keeps its sign and the upper
//! payload bits and becomes quiet, as x86 conversions do.

use crate::DType;
use half::{bf16, f16};

/// A binary float format.
#[derive(Clone, Copy)]
struct Format {
    exp_bits: u32,
    man_bits: u32,
    /// The largest exponent is that of infinities and NaNs. Without, it is one of numbers but for the last pattern, a
    /// NaN.
    infinities: bool,
}

impl Format {
    const F16: Format = Format { exp_bits: 5, man_bits: 10, infinities: true };
    const BF16: Format = Format { exp_bits: 8, man_bits: 7, infinities: true };
    const F32: Format = Format { exp_bits: 8, man_bits: 23, infinities: true };
    const F8E4M3: Format = Format { exp_bits: 4, man_bits: 3, infinities: false };
    const F8E5M2: Format = Format { exp_bits: 5, man_bits: 2, infinities: true };

    /// The pattern, without its sign, of what is too large: infinity, or the NaN of a format that has none.
    fn overflow(self) -> u64 {
        let last = (1u64 << (self.exp_bits + self.man_bits)) - 1;
        if self.infinities { last - ((1 << self.man_bits) - 1) } else { last }
    }
}

/// The format of a float dtype.
fn format_of(dtype: DType) -> Option<Format> {
    match dtype {
        DType::F16 => Some(Format::F16),
        DType::BF16 => Some(Format::BF16),
        DType::F32 => Some(Format::F32),
        DType::F8E4M3 => Some(Format::F8E4M3),
        DType::F8E5M2 => Some(Format::F8E5M2),
        _ => None,
    }
}

/// The low `8 * size` bits of `bits`.
fn truncated(dtype: DType, bits: u64) -> u64 {
    bits & (u64::MAX >> (64 - 8 * dtype.size() as u32))
}

/// Rounds `(-1)^negative * significand * 2^exponent` to a binary float format, to nearest even.
///
/// A significand that stands for a longer number carries a sticky lowest bit; that is right as long as it has at
/// least two bits more than the mantissa, which 53 and 64 bit significands have for all our formats.
fn round_parts(negative: bool, significand: u64, exponent: i32, format: Format) -> u64 {
    let Format { exp_bits, man_bits, .. } = format;
    let sign = u64::from(negative) << (exp_bits + man_bits);
    if significand == 0 {
        return sign;
    }
    let bias = (1i32 << (exp_bits - 1)) - 1;
    let lead = 63 - significand.leading_zeros() as i32; // value = 1.xxx * 2^(exponent + lead)
    let smallest = 1 - bias; // exponent of the smallest normal, shared by the subnormals
    let scale = (exponent + lead).max(smallest);
    // Bits of the significand below the unit in the last place, 2^(scale - man_bits).
    let drop = scale - man_bits as i32 - exponent;
    let rounded = match drop {
        ..=0 => significand << -drop,
        1..=63 => {
            let (kept, rest, half) = (significand >> drop, significand & ((1 << drop) - 1), 1u64 << (drop - 1));
            kept + u64::from(rest > half || (rest == half && kept & 1 == 1))
        }
        // 2^63 is half a unit: a tie with the even 0.
        64 => u64::from(significand > 1 << 63),
        _ => 0,
    };
    // The leading one of a normal, or a carry out of the mantissa, increments the exponent field by itself.
    let magnitude = (((scale - smallest) as u64) << man_bits) + rounded;
    sign | magnitude.min(format.overflow())
}

/// Rounds an f64 to a binary float format.
fn round_f64(value: f64, format: Format) -> u64 {
    let Format { exp_bits, man_bits, infinities } = format;
    let bits = value.to_bits();
    let negative = bits >> 63 == 1;
    let (field, mantissa) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    match field {
        0x7ff => {
            let quiet = 1u64 << (man_bits - 1);
            let payload = if mantissa == 0 || !infinities { 0 } else { quiet | mantissa >> (52 - man_bits) };
            u64::from(negative) << (exp_bits + man_bits) | format.overflow() | payload
        }
        0 => round_parts(negative, mantissa, -1074, format),
        _ => round_parts(negative, mantissa | 1 << 52, field - 1075, format),
    }
}

/// `value` as `dtype`. Floats round once, and what is too large is infinite (f8e4m3 has no infinity: NaN); integers
/// truncate the fraction, saturate, and take NaN as 0; a bool is `value != 0`, so NaN is true.
pub fn bits_from_f64(dtype: DType, value: f64) -> u64 {
    match dtype {
        DType::Bool => u64::from(value != 0.0),
        DType::I8 => u64::from(value as i8 as u8),
        DType::U8 => u64::from(value as u8),
        DType::I16 => u64::from(value as i16 as u16),
        DType::U16 => u64::from(value as u16),
        DType::I32 => u64::from(value as i32 as u32),
        DType::U32 => u64::from(value as u32),
        DType::I64 => value as i64 as u64,
        DType::U64 => value as u64,
        DType::F32 if !value.is_nan() => u64::from((value as f32).to_bits()),
        DType::F16 => round_f64(value, Format::F16),
        DType::BF16 => round_f64(value, Format::BF16),
        DType::F32 => round_f64(value, Format::F32),
        DType::F8E4M3 => round_f64(value, Format::F8E4M3),
        DType::F8E5M2 => round_f64(value, Format::F8E5M2),
    }
}

/// The value as f64: exact but for 64-bit integers, which round to nearest even.
pub fn bits_to_f64(dtype: DType, bits: u64) -> f64 {
    match (format_of(dtype), dtype) {
        (Some(format), _) => widen(bits, format),
        (None, DType::U64) => bits as f64,
        _ => bits_to_i128(dtype, bits) as f64,
    }
}

/// A narrow float as f64, which holds it exactly; the bits of a NaN move to the top of the payload.
fn widen(bits: u64, format: Format) -> f64 {
    let Format { exp_bits, man_bits, infinities } = format;
    let negative = bits >> (exp_bits + man_bits) & 1;
    let field = bits >> man_bits & ((1 << exp_bits) - 1);
    let mantissa = bits & ((1 << man_bits) - 1);
    let bias = (1i32 << (exp_bits - 1)) - 1;
    let special =
        if infinities { field == (1 << exp_bits) - 1 } else { field << man_bits | mantissa == format.overflow() };
    if special {
        let quiet = if mantissa == 0 { 0 } else { 1 << 51 };
        return f64::from_bits(negative << 63 | 0x7ff << 52 | quiet | mantissa << (52 - man_bits));
    }
    // Powers of two and 24-bit integers are exact in f64, and so is their product in this range.
    let (significand, scale) = match field {
        0 => (mantissa, 1 - bias - man_bits as i32),
        _ => (mantissa | 1 << man_bits, field as i32 - bias - man_bits as i32),
    };
    let power = f64::from_bits(((scale + 1023) as u64) << 52);
    let magnitude = significand as f64 * power;
    if negative == 1 { -magnitude } else { magnitude }
}

/// `value` as `dtype`. Integers wrap; floats round once; a bool is `value != 0`.
pub fn bits_from_i128(dtype: DType, value: i128) -> u64 {
    match format_of(dtype) {
        Some(format) => {
            let magnitude = value.unsigned_abs();
            let shift = 64u32.saturating_sub(magnitude.leading_zeros());
            let sticky = u64::from(magnitude & ((1 << shift) - 1) != 0);
            round_parts(value < 0, (magnitude >> shift) as u64 | sticky, shift as i32, format)
        }
        None if dtype == DType::Bool => u64::from(value != 0),
        None => truncated(dtype, value as u64),
    }
}

/// The value as an integer: exact for integers and bools; floats truncate the fraction, saturate, and NaN is 0.
pub fn bits_to_i128(dtype: DType, bits: u64) -> i128 {
    match dtype {
        DType::Bool => i128::from(bits & 0xff != 0),
        DType::I8 => i128::from(bits as i8),
        DType::U8 => i128::from(bits as u8),
        DType::I16 => i128::from(bits as i16),
        DType::U16 => i128::from(bits as u16),
        DType::I32 => i128::from(bits as i32),
        DType::U32 => i128::from(bits as u32),
        DType::I64 => i128::from(bits as i64),
        DType::U64 => i128::from(bits),
        DType::F16 | DType::BF16 | DType::F32 | DType::F8E4M3 | DType::F8E5M2 => bits_to_f64(dtype, bits) as i128,
    }
}

/// Whether `dtype` has the integer `value`. For integers and bool, exactly; for floats, as a finite number after
/// rounding (`65519` fits f16, `65520` does not).
pub fn fits(dtype: DType, value: i128) -> bool {
    match (dtype, integer_range(dtype)) {
        (_, Some((lo, hi))) => (lo..=hi).contains(&value),
        (_, None) => bits_to_f64(dtype, bits_from_i128(dtype, value)).is_finite(),
    }
}

/// The smallest and the largest value of an integer dtype or bool; `None` for floats.
pub fn integer_range(dtype: DType) -> Option<(i128, i128)> {
    let width = 8 * dtype.size() as u32;
    match dtype {
        DType::Bool => Some((0, 1)),
        _ if dtype.is_float() => None,
        _ if dtype.is_signed_int() => Some((-(1i128 << (width - 1)), (1i128 << (width - 1)) - 1)),
        _ => Some((0, (1i128 << width) - 1)),
    }
}

/// Converts between dtypes: float to float and integer to float round once, float to integer truncates and saturates
/// (NaN is 0), integer to integer wraps, anything to bool is `!= 0`. bf16 to f32 is a shift, for every NaN too.
pub fn convert_bits(from: DType, to: DType, bits: u64) -> u64 {
    if from == to {
        truncated(to, bits)
    } else if (from, to) == (DType::BF16, DType::F32) {
        (bits & 0xffff) << 16
    } else if from.is_float() {
        bits_from_f64(to, bits_to_f64(from, bits))
    } else {
        bits_from_i128(to, bits_to_i128(from, bits))
    }
}

/// Whether it is a NaN. Integers never are.
pub fn is_nan(dtype: DType, bits: u64) -> bool {
    dtype.is_float() && bits_to_f64(dtype, bits).is_nan()
}

/// An f32 rounded to f16.
pub fn f16_from_f32(value: f32) -> u16 {
    f16::from_f32(value).to_bits()
}

/// An f32 rounded to bf16.
pub fn bf16_from_f32(value: f32) -> u16 {
    bf16::from_f32(value).to_bits()
}

/// An f16 as f32, exact.
pub fn f16_to_f32(bits: u16) -> f32 {
    f16::from_bits(bits).to_f32()
}

/// A bf16 as f32: the same bits above 16 zeros.
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// How many representable values lie between two floats (0 for equal ones and for -0 and +0, 1 for neighbours);
/// `None` for integers and NaN.
pub fn ulps(dtype: DType, a: u64, b: u64) -> Option<u64> {
    if !dtype.is_float() || is_nan(dtype, a) || is_nan(dtype, b) {
        return None;
    }
    // Sign and magnitude to a line of integers, on which neighbours differ by one.
    let place = |bits: u64| {
        let sign = 1u64 << (8 * dtype.size() - 1);
        let magnitude = (truncated(dtype, bits) & (sign - 1)) as i64;
        if bits & sign != 0 { -magnitude } else { magnitude }
    };
    Some(place(a).abs_diff(place(b)))
}

/// The shortest decimal text that reads back as the same value of `dtype`, of 8-bit floats the very number; `inf`,
/// `-inf`, `nan`, `true`, `false`.
pub fn format_bits(dtype: DType, bits: u64) -> String {
    match dtype {
        DType::Bool => (bits & 0xff != 0).to_string(),
        // So few digits are in them that all are told: fewer would be another number for the reader.
        d if d.is_f8() => format_f64(bits_to_f64(dtype, bits)),
        d if d.is_float() => {
            let value = bits_to_f64(dtype, bits);
            // 9 digits distinguish all f32, so the search always ends with a hit.
            let shortest = (0..9)
                .map(|digits| format!("{value:.digits$e}").parse().unwrap_or(value))
                .find(|&candidate| bits_from_f64(dtype, candidate) == truncated(dtype, bits))
                .unwrap_or(value);
            format_f64(shortest)
        }
        _ => bits_to_i128(dtype, bits).to_string(),
    }
}

/// The shortest decimal text that reads back as the same f64, spelled as [`format_bits`] does.
pub fn format_f64(value: f64) -> String {
    if value.is_nan() { "nan".to_string() } else { format!("{value:?}") }
}

#[cfg(test)]
#[path = "scalar_tests.rs"]
mod tests;
