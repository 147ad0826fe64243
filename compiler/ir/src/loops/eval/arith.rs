//! Arithmetic on register bits, written as the definitions in `op` say it.

use crate::loops::{BinOp, Cast, CmpOp, LTy, MemTy, UnOp};
use half::{bf16, f16};
use ptoc_tensor::DType;

fn float(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn bits(x: f32) -> u64 {
    u64::from(x.to_bits())
}

/// An integer register as a signed number.
fn signed(ty: LTy, x: u64) -> i128 {
    if ty == LTy::I32 { i128::from(x as i32) } else { i128::from(x as i64) }
}

/// An integer register as an unsigned number.
fn unsigned(ty: LTy, x: u64) -> u128 {
    if ty == LTy::I32 { u128::from(x as u32) } else { u128::from(x) }
}

/// The low bits of an exact result.
fn wrap(ty: LTy, x: i128) -> u64 {
    if ty == LTy::I32 { u64::from(x as u32) } else { x as u64 }
}

pub(in crate::loops) fn unary(op: UnOp, ty: LTy, a: u64) -> u64 {
    let x = float(a);
    match (op, ty) {
        (UnOp::Neg, LTy::F32) => bits(-x),
        (UnOp::Neg, _) => wrap(ty, -signed(ty, a)),
        (UnOp::Not, LTy::Bool) => a ^ 1,
        (UnOp::Not, _) => wrap(ty, !signed(ty, a)),
        (UnOp::Abs, LTy::F32) => bits(x.abs()),
        (UnOp::Abs, _) => wrap(ty, signed(ty, a).abs()),
        (UnOp::Sqrt, _) => bits(x.sqrt()),
        (UnOp::Floor, _) => bits(x.floor()),
        (UnOp::Ceil, _) => bits(x.ceil()),
        (UnOp::Trunc, _) => bits(x.trunc()),
        (UnOp::Rint, _) => bits(x.round_ties_even()),
        (UnOp::RoundF16, _) => bits(f16::from_f32(x).to_f32()),
        (UnOp::RoundBf16, _) => bits(bf16::from_f32(x).to_f32()),
    }
}

pub(in crate::loops) fn binary(op: BinOp, ty: LTy, a: u64, b: u64) -> u64 {
    if ty == LTy::F32 {
        let (x, y) = (float(a), float(b));
        let larger = |x: f32, y: f32| if x > y || (x == y && y.is_sign_negative()) { x } else { y };
        return bits(match op {
            BinOp::Add => x + y,
            BinOp::Sub => x - y,
            BinOp::Mul => x * y,
            BinOp::Div => x / y,
            BinOp::Scale => ptoc_isa::math::scale(x, y),
            _ if x.is_nan() || y.is_nan() => f32::NAN,
            BinOp::Max => larger(x, y),
            _ => -larger(-x, -y),
        });
    }
    let (x, y) = (signed(ty, a), signed(ty, b));
    let (xu, yu) = (unsigned(ty, a), unsigned(ty, b));
    let width = if ty == LTy::I32 { 32 } else { 64 };
    let result = match op {
        BinOp::Add => x + y,
        BinOp::Sub => x - y,
        // Two 64-bit numbers: the product fits 128 bits but for MIN * MIN, whose low half is right all the same.
        BinOp::Mul => x.wrapping_mul(y),
        BinOp::Div | BinOp::DivFloor | BinOp::DivU if y == 0 => -1,
        BinOp::Rem | BinOp::RemFloor | BinOp::RemU if y == 0 => x,
        BinOp::Div => x / y,
        BinOp::DivU => (xu / yu) as i128,
        BinOp::DivFloor => floor_div(x, y),
        BinOp::Rem => x % y,
        BinOp::RemU => (xu % yu) as i128,
        BinOp::RemFloor => x - floor_div(x, y) * y,
        BinOp::Max => x.max(y),
        BinOp::Min => x.min(y),
        BinOp::MaxU => xu.max(yu) as i128,
        BinOp::MinU => xu.min(yu) as i128,
        BinOp::And => x & y,
        BinOp::Or => x | y,
        BinOp::Xor => x ^ y,
        BinOp::Shl if yu >= width => 0,
        BinOp::Shl => ((xu << yu) & u128::from(u64::MAX)) as i128,
        BinOp::Shr => x >> yu.min(width - 1),
        BinOp::ShrU if yu >= width => 0,
        BinOp::ShrU => (xu >> yu) as i128,
        // Of floats only.
        BinOp::Scale => x,
    };
    if ty == LTy::Bool { result as u64 & 1 } else { wrap(ty, result) }
}

/// What changes nothing when it is joined by a reduction's operation.
pub(super) fn neutral(op: BinOp, ty: MemTy) -> u64 {
    let bits = 8 * ty.size();
    let (least, most) = match ty {
        MemTy::F16 | MemTy::BF16 | MemTy::F32 | MemTy::F8E4M3 | MemTy::F8E5M2 => {
            (u64::from(f32::NEG_INFINITY.to_bits()), u64::from(f32::INFINITY.to_bits()))
        }
        MemTy::U8 | MemTy::U16 => (0, (1 << bits) - 1),
        _ => (widen(ty, 1 << (bits - 1)), widen(ty, (1 << (bits - 1)) - 1)),
    };
    match op {
        BinOp::Max => least,
        BinOp::Min => most,
        // No number is below 0, or above all ones.
        BinOp::MinU => wrap(ty.reg(), -1),
        _ => 0,
    }
}

fn floor_div(x: i128, y: i128) -> i128 {
    let q = x / y;
    if x % y != 0 && (x < 0) != (y < 0) { q - 1 } else { q }
}

pub(in crate::loops) fn compare(op: CmpOp, ty: LTy, a: u64, b: u64) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match (op, ty) {
        (_, LTy::F32) => float(a).partial_cmp(&float(b)),
        (_, LTy::Bool) => Some(a.cmp(&b)),
        (CmpOp::LtU | CmpOp::LeU | CmpOp::GtU | CmpOp::GeU, _) => Some(unsigned(ty, a).cmp(&unsigned(ty, b))),
        _ => Some(signed(ty, a).cmp(&signed(ty, b))),
    };
    match op {
        CmpOp::Eq => order == Some(Equal),
        CmpOp::Ne => order != Some(Equal),
        CmpOp::Lt | CmpOp::LtU => order == Some(Less),
        CmpOp::Le | CmpOp::LeU => matches!(order, Some(Less | Equal)),
        CmpOp::Gt | CmpOp::GtU => order == Some(Greater),
        CmpOp::Ge | CmpOp::GeU => matches!(order, Some(Greater | Equal)),
    }
}

pub(in crate::loops) fn cast(op: Cast, from: LTy, a: u64) -> u64 {
    match op {
        Cast::Sext => i64::from(a as i32) as u64,
        Cast::Zext | Cast::Wrap => u64::from(a as u32),
        // Rust's conversions round to nearest even, and saturate the other way; NaN gives 0.
        Cast::IToF if from == LTy::I32 => bits(a as i32 as f32),
        Cast::IToF => bits(a as i64 as f32),
        Cast::UToF if from == LTy::I32 => bits(a as u32 as f32),
        Cast::UToF => bits(a as f32),
        Cast::FToI32 => u64::from(float(a) as i32 as u32),
        Cast::FToU32 => u64::from(float(a) as u32),
        Cast::FToI64 => float(a) as i64 as u64,
        Cast::FToU64 => float(a) as u64,
        Cast::Bits | Cast::BToI => a,
        Cast::IToB => u64::from(a as u32 != 0),
    }
}

/// Memory's bits (zero-extended) to a register.
pub(in super::super) fn widen(ty: MemTy, raw: u64) -> u64 {
    match ty {
        MemTy::Bool => u64::from(raw as u8 != 0),
        MemTy::I8 => u64::from(i32::from(raw as i8) as u32),
        MemTy::U8 => u64::from(raw as u8),
        MemTy::I16 => u64::from(i32::from(raw as i16) as u32),
        MemTy::U16 => u64::from(raw as u16),
        MemTy::I32 | MemTy::F32 => u64::from(raw as u32),
        MemTy::I64 => raw,
        MemTy::F16 => bits(f16::from_bits(raw as u16).to_f32()),
        // The high half of an f32; a signalling NaN stays one.
        MemTy::BF16 => u64::from(raw as u16) << 16,
        MemTy::F8E4M3 => bits(ptoc_tensor::scalar::bits_to_f64(DType::F8E4M3, raw) as f32),
        MemTy::F8E5M2 => bits(ptoc_tensor::scalar::bits_to_f64(DType::F8E5M2, raw) as f32),
    }
}

/// A register to memory's bits (zero-extended).
pub(super) fn narrow(ty: MemTy, value: u64) -> u64 {
    match ty {
        MemTy::Bool | MemTy::I8 | MemTy::U8 => u64::from(value as u8),
        MemTy::I16 | MemTy::U16 => u64::from(value as u16),
        MemTy::I32 | MemTy::F32 => u64::from(value as u32),
        MemTy::I64 => value,
        MemTy::F16 => u64::from(f16::from_f32(float(value)).to_bits()),
        MemTy::BF16 => u64::from(bf16::from_f32(float(value)).to_bits()),
        MemTy::F8E4M3 => ptoc_tensor::scalar::bits_from_f64(DType::F8E4M3, f64::from(float(value))),
        MemTy::F8E5M2 => ptoc_tensor::scalar::bits_from_f64(DType::F8E5M2, f64::from(float(value))),
    }
}
