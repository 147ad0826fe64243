//! What instructions compute, on the bits of registers.
//!
//! NaN that arithmetic makes is the card's: all bits but the sign.

use crate::inst::{Cmp, Round};
use crate::table::Arith;
use crate::types::Type;
use half::{bf16, f16};
use ptoc_tensor::ex2::ex2;

/// The NaN of results.
pub(super) const NAN32: u64 = 0x7fff_ffff;
const NAN64: u64 = 0x7fff_ffff_ffff_ffff;

fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn of32(x: f32) -> u64 {
    if x.is_nan() { NAN32 } else { u64::from(x.to_bits()) }
}

fn of64(x: f64) -> u64 {
    if x.is_nan() { NAN64 } else { x.to_bits() }
}

/// The bits of an integer type as a number.
fn int(ty: Type, x: u64) -> i128 {
    match ty {
        Type::S8 => i128::from(x as i8),
        Type::S16 => i128::from(x as i16),
        Type::S32 => i128::from(x as i32),
        Type::S64 => i128::from(x as i64),
        _ => match ty.size() {
            1 => i128::from(x as u8),
            2 => i128::from(x as u16),
            4 => i128::from(x as u32),
            _ => i128::from(x),
        },
    }
}

/// The low `bytes` of a number; predicates are bits.
pub(super) fn truncate(size: u32, x: u64) -> u64 {
    match size {
        0 => x & 1,
        1 => u64::from(x as u8),
        2 => u64::from(x as u16),
        4 => u64::from(x as u32),
        _ => x,
    }
}

/// An instruction of the table.
pub(super) fn arith(op: Arith, ty: Type, a: u64, b: u64, c: u64, keep_nan: bool) -> u64 {
    match ty {
        Type::F32 => return single(op, a, b, c, keep_nan),
        Type::F64 => return double(op, a, b, c),
        Type::F16x2 => return pair(op, a, b, keep_nan),
        _ => {}
    }
    let bits = 8 * ty.size();
    let (x, y) = (int(ty, a), int(ty, b));
    let low = |x: i128| truncate(ty.size(), x as u64);
    match op {
        Arith::Add => low(x + y),
        Arith::Sub => low(x - y),
        Arith::MulLo => low(x.wrapping_mul(y)),
        Arith::MulHi if ty == Type::U64 => ((u128::from(a) * u128::from(b)) >> 64) as u64,
        Arith::MulHi => low((x * y) >> bits),
        Arith::MadLo => low(x.wrapping_mul(y).wrapping_add(int(ty, c))),
        Arith::MulWide => (x * y) as u64,
        Arith::MadWide => ((x * y) as u64).wrapping_add(c),
        // Nobody may rely on it: something that is easy to notice.
        Arith::Div | Arith::Rem if y == 0 => low(0x5bad_5bad_5bad_5bad),
        Arith::Div => low(x / y),
        Arith::Rem => low(x % y),
        Arith::Min => low(x.min(y)),
        Arith::Max => low(x.max(y)),
        Arith::Neg => low(-x),
        Arith::Abs => low(x.abs()),
        Arith::And => truncate(ty.size(), a & b),
        Arith::Or => truncate(ty.size(), a | b),
        Arith::Xor => truncate(ty.size(), a ^ b),
        Arith::Not => truncate(ty.size(), !a),
        Arith::Clz => u64::from((a as u32).leading_zeros()),
        Arith::Shl if b as u32 >= bits => 0,
        Arith::Shl => truncate(ty.size(), a << (b as u32)),
        Arith::Shr => low(x >> (b as u32).min(bits).min(127)),
        _ => 0,
    }
}

fn single(op: Arith, a: u64, b: u64, c: u64, keep_nan: bool) -> u64 {
    let of32 = |x: f32| if keep_nan { u64::from(x.to_bits()) } else { of32(x) };
    let (x, y, z) = (f(a), f(b), f(c));
    match op {
        Arith::AddF => of32(x + y),
        Arith::SubF => of32(x - y),
        Arith::MulF => of32(x * y),
        Arith::Fma => of32(x.mul_add(y, z)),
        Arith::DivF => of32(x / y),
        Arith::SqrtF => of32(x.sqrt()),
        Arith::Ex2 => of32(ex2(x)),
        Arith::Neg => of32(-x),
        Arith::Abs => of32(x.abs()),
        Arith::MinF | Arith::MaxF if x.is_nan() || y.is_nan() => of32(f32::NAN),
        Arith::MaxF => of32(if x > y || (x == y && y.is_sign_negative()) { x } else { y }),
        Arith::MinF => of32(if x < y || (x == y && x.is_sign_negative()) { x } else { y }),
        _ => 0,
    }
}

/// Two numbers of f16, each computed in f32 and rounded, which is as exact as once (24 digits are 2 x 11 and two more).
fn pair(op: Arith, a: u64, b: u64, keep_nan: bool) -> u64 {
    let half = |shift: u32| {
        let wide = |x: u64| convert(Type::F32, Type::F16, Round::None, x >> shift & 0xffff, keep_nan);
        convert(Type::F16, Type::F32, Round::Rn, single(op, wide(a), wide(b), 0, keep_nan), keep_nan)
    };
    half(16) << 16 | half(0)
}

fn double(op: Arith, a: u64, b: u64, c: u64) -> u64 {
    let [x, y, z] = [a, b, c].map(f64::from_bits);
    match op {
        Arith::AddF => of64(x + y),
        Arith::SubF => of64(x - y),
        Arith::MulF => of64(x * y),
        Arith::Fma => of64(x.mul_add(y, z)),
        Arith::DivF => of64(x / y),
        Arith::SqrtF => of64(x.sqrt()),
        Arith::Neg => of64(-x),
        Arith::Abs => of64(x.abs()),
        _ => 0,
    }
}

/// A comparison.
pub(super) fn compare(cmp: Cmp, ty: Type, a: u64, b: u64) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match ty {
        Type::F32 => f(a).partial_cmp(&f(b)),
        Type::F64 => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        _ => Some(int(ty, a).cmp(&int(ty, b))),
    };
    match cmp {
        Cmp::Eq => order == Some(Equal),
        Cmp::Ne => matches!(order, Some(Less | Greater)),
        Cmp::Lt => order == Some(Less),
        Cmp::Le => matches!(order, Some(Less | Equal)),
        Cmp::Gt => order == Some(Greater),
        Cmp::Ge => matches!(order, Some(Greater | Equal)),
        Cmp::Neu => order != Some(Equal),
        Cmp::Nan => order.is_none(),
    }
}

/// A conversion.
pub(super) fn convert(to: Type, from: Type, round: Round, x: u64, keep_nan: bool) -> u64 {
    match (from.is_float(), to.is_float()) {
        (false, false) => truncate(to.class().bits() / 8, int(to, int(from, x) as u64) as u64),
        (false, true) => {
            let n = int(from, x);
            if to == Type::F32 { of32(n as f32) } else { of64(n as f64) }
        }
        (true, false) => to_int(to, round, if from == Type::F32 { f64::from(f(x)) } else { f64::from_bits(x) }, from),
        (true, true) => between(to, from, round, x, keep_nan),
    }
}

/// Saturates. NaN is 0, but for results of 64 bits and operands of f64: the bit of the sign.
fn to_int(to: Type, round: Round, x: f64, from: Type) -> u64 {
    if x.is_nan() {
        return if to.size() == 8 || from == Type::F64 { 1 << (8 * to.size() - 1) } else { 0 };
    }
    let x = whole(round, x);
    match to {
        Type::S32 => u64::from(x as i32 as u32),
        Type::U32 => u64::from(x as u32),
        Type::S64 => x as i64 as u64,
        _ => x as u64,
    }
}

fn whole(round: Round, x: f64) -> f64 {
    match round {
        Round::Rmi => x.floor(),
        Round::Rpi => x.ceil(),
        Round::Rzi => x.trunc(),
        Round::Rni => x.round_ties_even(),
        Round::None | Round::Rn => x,
    }
}

fn between(to: Type, from: Type, round: Round, x: u64, keep_nan: bool) -> u64 {
    let of32 = |x: f32| if keep_nan { u64::from(x.to_bits()) } else { of32(x) };
    match (from, to) {
        // Exact in f64 as in f32, signs of zeros too.
        (Type::F32, Type::F32) => of32(whole(round, f64::from(f(x))) as f32),
        (Type::F64, Type::F64) => of64(whole(round, f64::from_bits(x))),
        (Type::F16, Type::F64) => of64(f16::from_bits(x as u16).to_f64()),
        (Type::F16, _) => of32(f16::from_bits(x as u16).to_f32()),
        (_, Type::F16) => half_nan(f16::from_f32(f(x)).to_bits(), f(x).is_nan() && !keep_nan),
        (_, Type::BF16) => half_nan(bf16::from_f32(f(x)).to_bits(), f(x).is_nan() && !keep_nan),
        (Type::F32, _) => of64(f64::from(f(x))),
        (_, _) => of32(f64::from_bits(x) as f32),
    }
}

fn half_nan(bits: u16, nan: bool) -> u64 {
    if nan { 0x7fff } else { u64::from(bits) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_and_shift() {
        assert_eq!(arith(Arith::Sub, Type::U32, 0, 1, 0, false), 0xffff_ffff);
        assert_eq!(arith(Arith::MulWide, Type::S32, 0xffff_ffff, 3, 0, false), -3i64 as u64);
        assert_eq!(arith(Arith::MadWide, Type::U32, 0xffff_ffff, 2, 1, false), 0x1_ffff_ffff);
        assert_eq!(arith(Arith::Shr, Type::S32, 0x8000_0000, 99, 0, false), 0xffff_ffff);
        assert_eq!(arith(Arith::Shr, Type::U64, u64::MAX, 64, 0, false), 0);
        assert_eq!(arith(Arith::Shl, Type::B32, 1, 31, 0, false), 0x8000_0000);
        assert_eq!(arith(Arith::MulHi, Type::U64, u64::MAX, u64::MAX, 0, false), u64::MAX - 1);
        assert_eq!(arith(Arith::Not, Type::Pred, 1, 0, 0, false), 0);
    }

    #[test]
    fn zeros_and_nan_of_min_and_max() {
        let bits = |x: f32| u64::from(x.to_bits());
        assert_eq!(arith(Arith::MaxF, Type::F32, bits(-0.0), bits(0.0), 0, false), bits(0.0));
        assert_eq!(arith(Arith::MinF, Type::F32, bits(0.0), bits(-0.0), 0, false), bits(-0.0));
        assert_eq!(arith(Arith::MinF, Type::F32, bits(0.0), bits(f32::NAN), 0, false), NAN32);
    }

    #[test]
    fn conversions_round_and_saturate() {
        let bits = |x: f32| u64::from(x.to_bits());
        let to = |ty, round, x| convert(ty, Type::F32, round, bits(x), false);
        assert_eq!(to(Type::S32, Round::Rzi, 3e9), i32::MAX as u64);
        assert_eq!(to(Type::U32, Round::Rzi, -1.0), 0);
        assert_eq!(to(Type::S32, Round::Rzi, f32::NAN), 0);
        assert_eq!(to(Type::S64, Round::Rzi, f32::NAN), 1 << 63);
        assert_eq!(to(Type::F32, Round::Rpi, -0.5), bits(-0.0));
        assert_eq!(to(Type::F16, Round::Rn, 65520.0), 0x7c00);
        assert_eq!(to(Type::F16, Round::Rn, 1e-8), 0);
        assert_eq!(to(Type::BF16, Round::Rn, 1.003_906_3), 0x3f80);
        assert_eq!(convert(Type::S64, Type::S32, Round::None, 0xffff_ffff, false), u64::MAX);
        assert_eq!(convert(Type::U64, Type::U32, Round::None, 0xffff_ffff, false), 0xffff_ffff);
        assert_eq!(convert(Type::F32, Type::U64, Round::Rn, u64::MAX, false), bits(18_446_744_073_709_551_615.0));
        // Rounded once: the sum of two ulps would be a tie in f64 first.
        assert_eq!(convert(Type::F32, Type::S64, Round::Rn, 0x0100_0001_0000_0001, false), bits(7.205_76e16_f32));
    }
}
