//! 8-bit floats. Loop IR has their bytes, and here is what the bytes mean; a register has the value, as f32.
//!
//! Both formats have f32's order of fields, so with the exponents apart by a constant a byte is the top of an f32's
//! pattern, and one exact product by a power of two makes up for the constant, for subnormal values too.

use super::code::FunctionBuilder;
use super::convert::{copysign, to_integral};
use ptoc_ir::formula::largest;
use ptoc_ir::loops::{BinOp as L, Cast, CmpOp as C, LTy, MemTy, Reg, UnOp as U};
use ptoc_isa::RoundMode;
use ptoc_tensor::DType;

/// The 8-bit float that is stored so.
pub(super) fn dtype(ty: MemTy) -> Option<DType> {
    match ty {
        MemTy::F8E4M3 => Some(DType::F8E4M3),
        MemTy::F8E5M2 => Some(DType::F8E5M2),
        _ => None,
    }
}

struct Format {
    /// Bits of the mantissa.
    mantissa: i32,
    /// What f32 adds to the exponent beyond what this format adds.
    bias: i32,
    /// The exponent of the smallest normal value.
    least: i32,
    /// The first byte that is no number.
    special: i32,
    infinities: bool,
}

fn format(d: DType) -> Format {
    match d {
        DType::F8E4M3 => Format { mantissa: 3, bias: 120, least: -6, special: 0x7f, infinities: false },
        _ => Format { mantissa: 2, bias: 112, least: -14, special: 0x7c, infinities: true },
    }
}

/// The value of a byte (an i32 register, zero-extended).
pub(super) fn value(code: &mut FunctionBuilder, d: DType, byte: Reg) -> Reg {
    let f = format(d);
    let (mask, shift) = (code.i32(0x7f), code.i32(23 - f.mantissa));
    let magnitude = code.bin(L::And, byte, mask);
    let pattern = code.bin(L::Shl, magnitude, shift);
    let number = code.cast(Cast::Bits, pattern, LTy::F32);
    let scale = code.f32(2f32.powi(f.bias));
    let number = code.bin(L::Mul, number, scale);
    let number = code.cast(Cast::Bits, number, LTy::I32);
    // Infinities and NaNs have all bits of f32's exponent; the one NaN of f8e4m3 has some of its mantissa too.
    let all = code.i32(0x7f80_0000);
    let beyond = code.bin(L::Or, pattern, all);
    let special = code.i32(f.special);
    let is_special = code.cmp(C::Ge, magnitude, special);
    let size = code.select(is_special, beyond, number);
    let (sign, up) = (code.i32(0x80), code.i32(24));
    let sign = code.bin(L::And, byte, sign);
    let sign = code.bin(L::Shl, sign, up);
    let both = code.bin(L::Or, size, sign);
    code.cast(Cast::Bits, both, LTy::F32)
}

/// The byte of a value that is one of the format, as an i32 register.
pub(super) fn bits(code: &mut FunctionBuilder, d: DType, x: Reg) -> Reg {
    let f = format(d);
    let size = code.un(U::Abs, x);
    let scale = code.f32(2f32.powi(-f.bias));
    let number = code.bin(L::Mul, size, scale);
    let number = code.cast(Cast::Bits, number, LTy::I32);
    let down = code.i32(23 - f.mantissa);
    let number = code.bin(L::ShrU, number, down);
    let beyond = if f.infinities {
        // A NaN keeps the bits of its payload that there is room for, and is one.
        let (pattern, quiet, low) = (code.cast(Cast::Bits, size, LTy::I32), code.i32(2), code.i32(3));
        let payload = code.bin(L::ShrU, pattern, down);
        let payload = code.bin(L::And, payload, low);
        let (none, infinite) = (code.i32(0), code.i32(f.special));
        let empty = code.cmp(C::Eq, payload, none);
        let payload = code.select(empty, quiet, payload);
        let is_number = code.cmp(C::Eq, x, x);
        let payload = code.select(is_number, none, payload);
        code.bin(L::Or, infinite, payload)
    } else {
        code.i32(f.special)
    };
    let infinity = code.f32(f32::INFINITY);
    let is_finite = code.cmp(C::Lt, size, infinity);
    let magnitude = code.select(is_finite, number, beyond);
    let pattern = code.cast(Cast::Bits, x, LTy::I32);
    let (down, mask) = (code.i32(24), code.i32(0x80));
    let sign = code.bin(L::ShrU, pattern, down);
    let sign = code.bin(L::And, sign, mask);
    code.bin(L::Or, magnitude, sign)
}

/// The nearest value of the format, ties to even: what a store makes of a result. Beyond the largest is infinity, or
/// NaN.
pub(super) fn nearest(code: &mut FunctionBuilder, d: DType, x: Reg) -> Reg {
    round(code, d, x, RoundMode::Rint, false)
}

/// An f32 rounded to the format; what is too large, infinities too, becomes the largest finite value if `saturate`.
pub(super) fn round(code: &mut FunctionBuilder, d: DType, x: Reg, round: RoundMode, saturate: bool) -> Reg {
    let f = format(d);
    // The power of two below |x|, and with it the last place of a value of that size.
    let pattern = code.cast(Cast::Bits, x, LTy::I32);
    let field = code.i32(0x7f80_0000);
    let power = code.bin(L::And, pattern, field);
    let power = code.cast(Cast::Bits, power, LTy::F32);
    let least = code.f32(2f32.powi(f.least));
    let power = code.bin(L::Max, power, least);
    let last = code.f32(2f32.powi(-f.mantissa));
    let unit = code.bin(L::Mul, power, last);
    // Both are exact: powers of two, and whole numbers of few bits.
    let units = code.bin(L::Div, x, unit);
    let whole = to_integral(code, units, round);
    let rounded = code.bin(L::Mul, whole, unit);

    let most = code.f32(largest(d));
    let size = code.un(U::Abs, rounded);
    let over = code.cmp(C::Gt, size, most);
    let held = copysign(code, largest(d), x);
    let infinity = if f.infinities { f32::INFINITY } else { f32::from_bits(0x7fc0_0000) };
    let beyond = if saturate { held } else { copysign(code, infinity, x) };
    let zero = code.f32(0.0);
    let too_large = match round {
        RoundMode::Rint | RoundMode::Round => beyond,
        RoundMode::Floor => {
            let negative = code.cmp(C::Lt, x, zero);
            code.select(negative, beyond, held)
        }
        RoundMode::Ceil => {
            let negative = code.cmp(C::Lt, x, zero);
            code.select(negative, held, beyond)
        }
        RoundMode::Trunc | RoundMode::Odd => held,
    };
    let rounded = code.select(over, too_large, rounded);
    // Infinities and NaN have no last place.
    let is_number = code.cmp(C::Eq, x, x);
    let special = code.select(is_number, beyond, x);
    let (size, infinite) = (code.un(U::Abs, x), code.f32(f32::INFINITY));
    let finite = code.cmp(C::Lt, size, infinite);
    code.select(finite, rounded, special)
}
