//! Arithmetic on scalars as raw bits: the one definition that constant folding and the interpreter share.
//!
//! Bits are those of [`crate::tile::Const`]: little-endian in the low bytes, zero above the type's width. Every
//! function returns `None` where the operation does not exist on the type, and is total otherwise. The rules are
//! those of `spec/numerics.md`: `f16`, `bf16` and the 8-bit floats compute in f32 and round once (nearest even),
//! integers wrap, x/0 is all ones, `index` division floors, a shift by the width or more gives 0 or the sign.

mod convert;
mod text;

pub use convert::{convert, round_f64_to_integral};
pub use text::display;

use crate::tile::Ty;
use half::{bf16, f16};
use ptoc_isa::{BinOp, CmpOp, UnOp};
use ptoc_tensor::DType;

/// Width of a scalar in bits; `bool` has 1.
pub fn width(ty: Ty) -> u32 {
    match ty {
        Ty::Index => 64,
        Ty::D(DType::Bool) => 1,
        Ty::D(d) => d.size() as u32 * 8,
    }
}

/// The bits of the type, all ones.
pub fn mask(ty: Ty) -> u64 {
    u64::MAX >> (64 - width(ty))
}

/// Whether it is a signed integer type (`index` is).
pub fn is_signed(ty: Ty) -> bool {
    match ty {
        Ty::Index => true,
        Ty::D(d) => d.is_signed_int(),
    }
}

/// Whether it is an integer type or `index`.
pub fn is_int(ty: Ty) -> bool {
    match ty {
        Ty::Index => true,
        Ty::D(d) => d.is_int(),
    }
}

/// The dtype, if it is a float.
pub fn float(ty: Ty) -> Option<DType> {
    match ty {
        Ty::D(d) if d.is_float() => Some(d),
        _ => None,
    }
}

/// The value of an integer, `index` or `bool`, exactly.
pub fn to_int(ty: Ty, bits: u64) -> i128 {
    if is_signed(ty) { i128::from(sign_extend(ty, bits)) } else { i128::from(bits & mask(ty)) }
}

/// The low bits of an integer as the type stores them.
pub fn from_int(ty: Ty, value: i128) -> u64 {
    value as u64 & mask(ty)
}

fn sign_extend(ty: Ty, bits: u64) -> i64 {
    let unused = 64 - width(ty);
    ((bits << unused) as i64) >> unused
}

/// The value of a float, exactly, in f32.
pub fn to_f32(d: DType, bits: u64) -> f32 {
    match d {
        DType::F16 => f16::from_bits(bits as u16).to_f32(),
        DType::BF16 => bf16::from_bits(bits as u16).to_f32(),
        d if d.is_f8() => ptoc_tensor::scalar::bits_to_f64(d, bits) as f32,
        _ => f32::from_bits(bits as u32),
    }
}

/// The nearest value of the float type, ties to even; what is too large is infinite, or NaN in f8e4m3, which has no
/// infinity.
pub fn from_f32(d: DType, value: f32) -> u64 {
    match d {
        DType::F16 => u64::from(f16::from_f32(value).to_bits()),
        DType::BF16 => u64::from(bf16::from_f32(value).to_bits()),
        d if d.is_f8() => ptoc_tensor::scalar::bits_from_f64(d, f64::from(value)),
        _ => u64::from(value.to_bits()),
    }
}

/// Whether a conversion saturates if nothing is said: from a float to an integer, and to an 8-bit float.
pub fn saturates_unasked(from: Ty, to: Ty) -> bool {
    match float(to) {
        Some(d) => d.is_f8(),
        None => float(from).is_some(),
    }
}

/// Whether a conversion of a scalar saturates, `asked` to or not: as one that is not asked, and between integers as
/// asked. Only TCVT can ask for more or less.
pub fn saturates(from: Ty, to: Ty, asked: bool) -> bool {
    saturates_unasked(from, to) || asked && float(to).is_none()
}

/// The value of any scalar in f64: exact for floats and integers of up to 53 bits.
pub fn to_f64(ty: Ty, bits: u64) -> f64 {
    match float(ty) {
        Some(d) => f64::from(to_f32(d, bits)),
        None => to_int(ty, bits) as f64,
    }
}

/// Larger; NaN if either is NaN; +0 above -0.
pub fn max_f32(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        f32::NAN
    } else if a == b {
        // Equal values differ in the sign of zero at most.
        f32::from_bits(a.to_bits() & b.to_bits())
    } else if a > b {
        a
    } else {
        b
    }
}

/// Smaller; NaN if either is NaN; -0 below +0.
pub fn min_f32(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        f32::NAN
    } else if a == b {
        f32::from_bits(a.to_bits() | b.to_bits())
    } else if a < b {
        a
    } else {
        b
    }
}

/// Whether `op` exists on `ty`.
pub fn binary_exists(op: BinOp, ty: Ty) -> bool {
    match ty {
        Ty::D(DType::Bool) => matches!(op, BinOp::And | BinOp::Or | BinOp::Xor),
        Ty::D(d) if d.is_float() => !matches!(op, BinOp::And | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::Shr),
        _ => true,
    }
}

/// `a op b`, all of type `ty`.
pub fn binary(op: BinOp, ty: Ty, a: u64, b: u64) -> Option<u64> {
    if !binary_exists(op, ty) {
        return None;
    }
    if let Some(d) = float(ty) {
        return Some(from_f32(d, binary_f32(op, to_f32(d, a), to_f32(d, b))?));
    }
    let (a, b) = (a & mask(ty), b & mask(ty));
    let (sa, sb) = (sign_extend(ty, a), sign_extend(ty, b));
    let signed = is_signed(ty);
    let result = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::Div if b == 0 => u64::MAX,
        BinOp::Rem if b == 0 => a,
        BinOp::Div if ty == Ty::Index => floor_div(sa, sb) as u64,
        BinOp::Rem if ty == Ty::Index => sa.wrapping_sub(floor_div(sa, sb).wrapping_mul(sb)) as u64,
        BinOp::Div if signed => sa.wrapping_div(sb) as u64,
        BinOp::Rem if signed => sa.wrapping_rem(sb) as u64,
        BinOp::Div => a / b,
        BinOp::Rem => a % b,
        BinOp::Max if signed => sa.max(sb) as u64,
        BinOp::Min if signed => sa.min(sb) as u64,
        BinOp::Max => a.max(b),
        BinOp::Min => a.min(b),
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl if b >= u64::from(width(ty)) => 0,
        BinOp::Shl => a << b,
        BinOp::Shr if signed => (sa >> b.min(63)) as u64,
        BinOp::Shr if b >= u64::from(width(ty)) => 0,
        BinOp::Shr => a >> b,
    };
    Some(result & mask(ty))
}

/// Division that rounds down; `b` is not 0. The one overflow wraps.
fn floor_div(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && (a < 0) != (b < 0) { q - 1 } else { q }
}

fn binary_f32(op: BinOp, a: f32, b: f32) -> Option<f32> {
    Some(match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::Div => a / b,
        BinOp::Rem => a % b,
        BinOp::Max => max_f32(a, b),
        BinOp::Min => min_f32(a, b),
        BinOp::And | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::Shr => return None,
    })
}

/// Whether `op` exists on `ty`.
pub fn unary_exists(op: UnOp, ty: Ty) -> bool {
    match op {
        UnOp::Not => float(ty).is_none(),
        UnOp::Neg | UnOp::Abs | UnOp::Relu | UnOp::Recip => ty != Ty::BOOL,
        _ => float(ty).is_some(),
    }
}

/// `op a`, both of type `ty`.
pub fn unary(op: UnOp, ty: Ty, a: u64) -> Option<u64> {
    if !unary_exists(op, ty) {
        return None;
    }
    if let Some(d) = float(ty) {
        let sign = (mask(ty) >> 1) + 1;
        return Some(match op {
            UnOp::Neg => a ^ sign,
            UnOp::Abs => a & !sign,
            _ => from_f32(d, unary_f32(op, to_f32(d, a))?),
        });
    }
    let negative = is_signed(ty) && sign_extend(ty, a) < 0;
    let result = match op {
        UnOp::Not => !a,
        UnOp::Neg => a.wrapping_neg(),
        UnOp::Abs => {
            if negative {
                a.wrapping_neg()
            } else {
                a
            }
        }
        UnOp::Relu => {
            if negative {
                0
            } else {
                a
            }
        }
        UnOp::Recip => return binary(BinOp::Div, ty, 1, a),
        _ => return None,
    };
    Some(result & mask(ty))
}

fn unary_f32(op: UnOp, a: f32) -> Option<f32> {
    Some(match op {
        UnOp::Relu => max_f32(a, 0.0),
        UnOp::Sqrt => a.sqrt(),
        UnOp::Rsqrt => 1.0 / a.sqrt(),
        UnOp::Recip => 1.0 / a,
        UnOp::Floor => a.floor(),
        UnOp::Ceil => a.ceil(),
        UnOp::Trunc => a.trunc(),
        UnOp::Rint => a.round_ties_even(),
        UnOp::Exp | UnOp::Log | UnOp::Tanh | UnOp::Erf | UnOp::Sin | UnOp::Cos => ptoc_isa::math::program(op)?.eval(a),
        UnOp::Neg | UnOp::Abs | UnOp::Not => return None,
    })
}

/// `a op b`, both of type `ty`.
pub fn compare(op: CmpOp, ty: Ty, a: u64, b: u64) -> bool {
    let order = match float(ty) {
        Some(d) => to_f32(d, a).partial_cmp(&to_f32(d, b)),
        None => Some(to_int(ty, a).cmp(&to_int(ty, b))),
    };
    match op {
        CmpOp::Eq => order.is_some_and(|o| o.is_eq()),
        CmpOp::Ne => !order.is_some_and(|o| o.is_eq()),
        CmpOp::Lt => order.is_some_and(|o| o.is_lt()),
        CmpOp::Le => order.is_some_and(|o| o.is_le()),
        CmpOp::Gt => order.is_some_and(|o| o.is_gt()),
        CmpOp::Ge => order.is_some_and(|o| o.is_ge()),
    }
}

#[cfg(test)]
mod tests;
