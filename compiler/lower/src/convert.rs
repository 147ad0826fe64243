//! Conversions between scalar types in loop IR, with every rounding mode and one rounding; the interpreter does the
//! same on integers (`ptoc_ir::scalar::convert`).
//!
//! Results are in registers and not yet narrowed: a store, or [`super::ops::settle`], takes the low bits of an integer
//! and is exact for a float.

use super::code::FunctionBuilder;
use super::f8;
use super::ops::{self, Arithmetic, kind};
use super::reg_ty;
use ptoc_ir::loops::{BinOp as L, Cast, CmpOp as C, LTy, Reg, UnOp as U};
use ptoc_ir::tile::Ty;
use ptoc_isa::RoundMode;
use ptoc_tensor::DType;
use ptoc_tensor::scalar::integer_range;

/// `a` of type `from` as `to`.
pub(super) fn convert(code: &mut FunctionBuilder, from: Ty, to: Ty, a: Reg, round: RoundMode, saturate: bool) -> Reg {
    if from == to {
        return a;
    }
    match (kind(from), kind(to)) {
        (Arithmetic::Bool, Arithmetic::Bool) => a,
        (Arithmetic::Float, Arithmetic::Bool) => {
            let zero = code.f32(0.0);
            code.cmp(C::Ne, a, zero)
        }
        (_, Arithmetic::Bool) => {
            let zero = ops::number(code, from, 0);
            code.cmp(C::Ne, a, zero)
        }
        (Arithmetic::Bool, Arithmetic::Float) => {
            let bit = code.cast(Cast::BToI, a, LTy::I32);
            code.cast(Cast::IToF, bit, LTy::F32)
        }
        (Arithmetic::Bool, _) => {
            let bit = code.cast(Cast::BToI, a, LTy::I32);
            if reg_ty(to) == LTy::I64 { code.cast(Cast::Zext, bit, LTy::I64) } else { bit }
        }
        (Arithmetic::Float, Arithmetic::Float) => {
            let x = float_to_float(code, to, a, round, saturate);
            held(code, to, x, saturate)
        }
        (Arithmetic::Float, _) => float_to_int(code, to, a, round, saturate),
        (_, Arithmetic::Float) => {
            let x = int_to_float(code, from, to, a, round, saturate);
            held(code, to, x, saturate)
        }
        _ => int_to_int(code, from, to, a, saturate),
    }
}

// ---- to integers -------------------------------------------------------------------------------------------------

/// Rounds an f32 to an integral value. Exact, as every f32 from 2^23 on is integral.
pub(super) fn to_integral(code: &mut FunctionBuilder, x: Reg, round: RoundMode) -> Reg {
    match round {
        RoundMode::Rint => code.un(U::Rint, x),
        RoundMode::Floor => code.un(U::Floor, x),
        RoundMode::Ceil => code.un(U::Ceil, x),
        RoundMode::Trunc => code.un(U::Trunc, x),
        RoundMode::Round | RoundMode::Odd => {
            let whole = code.un(U::Trunc, x);
            let rest = code.bin(L::Sub, x, whole);
            let rest = code.un(U::Abs, rest);
            let away = if round == RoundMode::Round {
                let half = code.f32(0.5);
                code.cmp(C::Ge, rest, half)
            } else {
                // Inexact and even: the odd neighbour lies away from zero.
                let zero = code.f32(0.0);
                let inexact = code.cmp(C::Gt, rest, zero);
                let half = code.f32(0.5);
                let halved = code.bin(L::Mul, whole, half);
                let floor = code.un(U::Floor, halved);
                let even = code.cmp(C::Eq, halved, floor);
                code.bin(L::And, inexact, even)
            };
            let one = copysign(code, 1.0, x);
            let next = code.bin(L::Add, whole, one);
            code.select(away, next, whole)
        }
    }
}

/// `magnitude` with the sign of `x`.
pub(super) fn copysign(code: &mut FunctionBuilder, magnitude: f32, x: Reg) -> Reg {
    let bits = code.cast(Cast::Bits, x, LTy::I32);
    let sign = code.i32(i32::MIN);
    let sign = code.bin(L::And, bits, sign);
    let magnitude = code.i32(magnitude.to_bits() as i32);
    let both = code.bin(L::Or, sign, magnitude);
    code.cast(Cast::Bits, both, LTy::F32)
}

fn float_to_int(code: &mut FunctionBuilder, to: Ty, x: Reg, round: RoundMode, saturate: bool) -> Reg {
    let y = to_integral(code, x, round);
    if !saturate {
        return float_modulo(code, to, y);
    }
    match (to, reg_ty(to), kind(to)) {
        (Ty::D(DType::I32), ..) => code.cast(Cast::FToI32, y, LTy::I32),
        (Ty::D(DType::U32), ..) => code.cast(Cast::FToU32, y, LTy::I32),
        (_, LTy::I64, Arithmetic::Unsigned) => code.cast(Cast::FToU64, y, LTy::I64),
        (_, LTy::I64, _) => code.cast(Cast::FToI64, y, LTy::I64),
        (Ty::D(d), ..) => {
            let n = code.cast(Cast::FToI32, y, LTy::I32);
            let (low, high) = integer_range(d).unwrap_or((0, 0));
            let (low, high) = (code.i32(low as i32), code.i32(high as i32));
            let n = code.bin(L::Max, n, low);
            code.bin(L::Min, n, high)
        }
        (Ty::Index, ..) => code.cast(Cast::FToI64, y, LTy::I64),
    }
}

/// An integral f32 modulo 2^64: small ones convert, large ones are their significand, shifted. Infinities and NaN
/// come out as 0, because their "exponent" shifts everything out.
fn float_modulo(code: &mut FunctionBuilder, to: Ty, y: Reg) -> Reg {
    let small = code.cast(Cast::FToI64, y, LTy::I64);
    let bits = code.cast(Cast::Bits, y, LTy::I32);
    let (mask, hidden, shift, field) = (code.i32(0x7f_ffff), code.i32(0x80_0000), code.i32(23), code.i32(0xff));
    let fraction = code.bin(L::And, bits, mask);
    let significand = code.bin(L::Or, fraction, hidden);
    let exponent = code.bin(L::ShrU, bits, shift);
    let exponent = code.bin(L::And, exponent, field);
    let exponent = code.cast(Cast::Zext, exponent, LTy::I64);
    let up = code.plus(exponent, -150);
    let significand = code.cast(Cast::Zext, significand, LTy::I64);
    let magnitude = code.bin(L::Shl, significand, up);
    let minus = code.un(U::Neg, magnitude);
    let zero = code.f32(0.0);
    let negative = code.cmp(C::Lt, y, zero);
    let large = code.select(negative, minus, magnitude);
    let size = code.un(U::Abs, y);
    let limit = code.f32(16_777_216.0);
    let is_large = code.cmp(C::Ge, size, limit);
    let wide = code.select(is_large, large, small);
    if reg_ty(to) == LTy::I64 { wide } else { code.cast(Cast::Wrap, wide, LTy::I32) }
}

/// An integer as i64, of the same value unless it is a large u64.
fn widen(code: &mut FunctionBuilder, from: Ty, a: Reg) -> Reg {
    match (reg_ty(from), kind(from)) {
        (LTy::I64, _) => a,
        (_, Arithmetic::Unsigned) => code.cast(Cast::Zext, a, LTy::I64),
        _ => code.cast(Cast::Sext, a, LTy::I64),
    }
}

fn int_to_int(code: &mut FunctionBuilder, from: Ty, to: Ty, a: Reg, saturate: bool) -> Reg {
    let range = |ty: Ty| match ty {
        Ty::Index => integer_range(DType::I64),
        Ty::D(d) => integer_range(d),
    };
    let ((from_low, from_high), (low, high)) = (range(from).unwrap_or((0, 0)), range(to).unwrap_or((0, 0)));
    let mut wide = widen(code, from, a);
    if saturate {
        // Above i64's range only u64 lives, which has no negative values.
        if from_high > high {
            let (op, bound) = if from_low == 0 { (L::MinU, high) } else { (L::Min, high) };
            let bound = code.int(bound as i64);
            wide = code.bin(op, wide, bound);
        }
        if from_low < low {
            let bound = code.int(low as i64);
            wide = code.bin(L::Max, wide, bound);
        }
    }
    if reg_ty(to) == LTy::I64 { wide } else { code.cast(Cast::Wrap, wide, LTy::I32) }
}

/// What is infinite becomes the largest finite value, of a 16-bit float that saturates; NaN stays.
fn held(code: &mut FunctionBuilder, to: Ty, x: Reg, saturate: bool) -> Reg {
    let Ty::D(dtype) = to else { return x };
    let Some((_, most)) = narrow(dtype).filter(|_| saturate) else { return x };
    let (most, least) = (code.f32(most), code.f32(-most));
    let x = code.bin(L::Min, x, most);
    code.bin(L::Max, x, least)
}

// ---- to floats ---------------------------------------------------------------------------------------------------

/// The neighbours of a number among the values of a float type, as f32 registers.
struct Bracket {
    /// The nearest value, ties to even.
    nearest: Reg,
    /// The neighbour towards zero (the number itself if it is a value).
    toward: Reg,
    /// The neighbour away from zero; meaningless unless `inexact`.
    away: Reg,
    /// The number is no value of the type.
    inexact: Reg,
    /// The number is negative.
    negative: Reg,
    /// The neighbour away from zero is as near as the other one, or nearer.
    far_half: Reg,
    /// The neighbour towards zero has an odd last place.
    odd: Reg,
}

fn choose(code: &mut FunctionBuilder, b: &Bracket, round: RoundMode) -> Reg {
    let outward = match round {
        RoundMode::Rint => return b.nearest,
        RoundMode::Trunc => return b.toward,
        RoundMode::Floor => b.negative,
        RoundMode::Ceil => code.un(U::Not, b.negative),
        RoundMode::Round => b.far_half,
        RoundMode::Odd => code.un(U::Not, b.odd),
    };
    let outward = code.bin(L::And, outward, b.inexact);
    code.select(outward, b.away, b.toward)
}

/// f16 and bf16: magnitude bits of an ulp in the f32 pattern, and the largest finite value.
fn narrow(dtype: DType) -> Option<(i32, f32)> {
    match dtype {
        DType::F16 => Some((1 << 13, 65504.0)),
        DType::BF16 => Some((1 << 16, f32::from_bits(0x7f7f_0000))),
        _ => None,
    }
}

fn float_to_float(code: &mut FunctionBuilder, to: Ty, x: Reg, round: RoundMode, saturate: bool) -> Reg {
    let Ty::D(dtype) = to else { return x };
    if dtype.is_f8() {
        return f8::round(code, dtype, x, round, saturate);
    }
    let Some((ulp, largest)) = narrow(dtype) else { return x };
    let nearest = code.un(if dtype == DType::F16 { U::RoundF16 } else { U::RoundBf16 }, x);
    if round == RoundMode::Rint {
        return nearest;
    }
    // On magnitudes; the sign comes back at the end.
    let (size, near) = (code.un(U::Abs, x), code.un(U::Abs, nearest));
    let over = code.cmp(C::Gt, near, size);
    let under = code.cmp(C::Lt, near, size);
    let inexact = code.bin(L::Or, over, under);
    let below = step(code, dtype, near, -ulp);
    let most = code.f32(largest);
    let infinite = code.f32(f32::INFINITY);
    let overflowed = code.cmp(C::Eq, near, infinite);
    let below = code.select(overflowed, most, below);
    let toward = code.select(over, below, near);
    let away = step(code, dtype, toward, ulp);
    let far_half = if dtype == DType::BF16 {
        // The patterns of f32 between two values are evenly spaced, up to infinity.
        let (bits, low) = (code.cast(Cast::Bits, size, LTy::I32), code.cast(Cast::Bits, toward, LTy::I32));
        let rest = code.bin(L::Sub, bits, low);
        let half = code.i32(ulp / 2);
        code.cmp(C::Ge, rest, half)
    } else {
        let (to_low, to_high) = (code.bin(L::Sub, size, toward), code.bin(L::Sub, away, size));
        code.cmp(C::Ge, to_low, to_high)
    };
    let odd = is_odd(code, dtype, toward, ulp);
    let zero = code.f32(0.0);
    let negative = code.cmp(C::Lt, x, zero);
    let bracket = Bracket { nearest: near, toward, away, inexact, negative, far_half, odd };
    let chosen = choose(code, &bracket, round);
    // One past the largest finite value is infinity.
    let chosen = code.un(if dtype == DType::F16 { U::RoundF16 } else { U::RoundBf16 }, chosen);
    let minus = code.un(U::Neg, chosen);
    let signed = with_sign_of(code, x, chosen, minus);
    // Infinities and NaN have no neighbours.
    let finite = code.cmp(C::Lt, size, infinite);
    code.select(finite, signed, nearest)
}

/// `minus` if the sign bit of `x` is set, else `plus`.
fn with_sign_of(code: &mut FunctionBuilder, x: Reg, plus: Reg, minus: Reg) -> Reg {
    let bits = code.cast(Cast::Bits, x, LTy::I32);
    let zero = code.i32(0);
    let negative = code.cmp(C::Lt, bits, zero);
    code.select(negative, minus, plus)
}

/// The next value after a non-negative one, up or down.
fn step(code: &mut FunctionBuilder, dtype: DType, a: Reg, ulp: i32) -> Reg {
    let bits = code.cast(Cast::Bits, a, LTy::I32);
    let by = code.i32(ulp);
    let next = code.bin(L::Add, bits, by);
    let normal = code.cast(Cast::Bits, next, LTy::F32);
    if dtype == DType::BF16 {
        // Its subnormals are f32's, with the same spacing of patterns.
        return normal;
    }
    // Subnormal f16 values are multiples of 2^-24; so is the value below 2^-14.
    let unit = code.f32(if ulp > 0 { 2f32.powi(-24) } else { -(2f32.powi(-24)) });
    let tiny = code.bin(L::Add, a, unit);
    let first_normal = code.f32(2f32.powi(-14));
    let subnormal = code.cmp(if ulp > 0 { C::Lt } else { C::Le }, a, first_normal);
    code.select(subnormal, tiny, normal)
}

/// The condition that the last place of a non-negative value is odd.
fn is_odd(code: &mut FunctionBuilder, dtype: DType, a: Reg, ulp: i32) -> Reg {
    let bits = code.cast(Cast::Bits, a, LTy::I32);
    let unit = code.i32(ulp);
    let last = code.bin(L::And, bits, unit);
    let normal = code.cast(Cast::IToB, last, LTy::Bool);
    if dtype == DType::BF16 {
        return normal;
    }
    let scale = code.f32(2f32.powi(24));
    let count = code.bin(L::Mul, a, scale);
    let count = code.cast(Cast::FToI32, count, LTy::I32);
    let one = code.i32(1);
    let last = code.bin(L::And, count, one);
    let tiny = code.cast(Cast::IToB, last, LTy::Bool);
    let first_normal = code.f32(2f32.powi(-14));
    let subnormal = code.cmp(C::Lt, a, first_normal);
    code.select(subnormal, tiny, normal)
}

fn int_to_float(code: &mut FunctionBuilder, from: Ty, to: Ty, a: Reg, round: RoundMode, saturate: bool) -> Reg {
    // Up to 24 bits every integer is an f32, and so it is enough to round to the narrow type.
    let few_bits = matches!(from, Ty::D(d) if d.size() <= 2);
    let f32_is_last = to == Ty::D(DType::F32);
    let unsigned = kind(from) == Arithmetic::Unsigned;
    let direct = if unsigned { Cast::UToF } else { Cast::IToF };
    if few_bits {
        let x = code.cast(direct, a, LTy::F32);
        return float_to_float(code, to, x, round, saturate);
    }
    if f32_is_last && round == RoundMode::Rint {
        return code.cast(direct, a, LTy::F32);
    }
    let wide = widen(code, from, a);
    let bracket = bracket_u64(code, wide, unsigned);
    // Rounding twice is safe if the first step is to odd: f32 has more than two bits more than the others.
    let first = choose(code, &bracket, if f32_is_last { round } else { RoundMode::Odd });
    let minus = code.un(U::Neg, first);
    let signed = code.select(bracket.negative, minus, first);
    float_to_float(code, to, signed, round, saturate)
}

/// The f32 neighbours of |a|.
fn bracket_u64(code: &mut FunctionBuilder, a: Reg, unsigned: bool) -> Bracket {
    let zero = code.int(0);
    let negative = if unsigned { code.bits(LTy::Bool, 0) } else { code.cmp(C::Lt, a, zero) };
    let minus = code.un(U::Neg, a);
    let size = code.select(negative, minus, a);
    let nearest = code.cast(Cast::UToF, size, LTy::F32);
    // 2^64 does not convert back: it is above every u64.
    let top = code.f32(2f32.powi(64));
    let at_top = code.cmp(C::Ge, nearest, top);
    let back = code.cast(Cast::FToU64, nearest, LTy::I64);
    let above = code.cmp(C::GtU, back, size);
    let over = code.bin(L::Or, above, at_top);
    let under = code.cmp(C::LtU, back, size);
    let inexact = code.bin(L::Or, over, under);
    let bits = code.cast(Cast::Bits, nearest, LTy::I32);
    let one = code.i32(1);
    let below = code.bin(L::Sub, bits, one);
    let toward_bits = code.select(over, below, bits);
    let toward = code.cast(Cast::Bits, toward_bits, LTy::F32);
    let away_bits = code.bin(L::Add, toward_bits, one);
    let away = code.cast(Cast::Bits, away_bits, LTy::F32);
    // Distances; that to 2^64 is 0 - size, modulo 2^64.
    let low = code.cast(Cast::FToU64, toward, LTy::I64);
    let away_is_top = code.cmp(C::Ge, away, top);
    let high = code.cast(Cast::FToU64, away, LTy::I64);
    let high = code.select(away_is_top, zero, high);
    let (to_low, to_high) = (code.bin(L::Sub, size, low), code.bin(L::Sub, high, size));
    let far_half = code.cmp(C::GeU, to_low, to_high);
    let last = code.bin(L::And, toward_bits, one);
    let odd = code.cast(Cast::IToB, last, LTy::Bool);
    Bracket { nearest, toward, away, inexact, negative, far_half, odd }
}
