//! Quotients and remainders: a division gets a harmless divisor first, and the documented result is selected
//! afterwards, as PTX promises none for a divisor of 0.

use crate::ops::{bits, signed, unsigned};
use ptoc_ir::loops::{BinOp, LTy};
use ptoc_ptx::{Arith, Builder, Cmp, Src, Type, VReg};

/// A quotient or a remainder of signed numbers; `known` is the divisor's value.
pub(crate) fn divide(b: &mut Builder, op: BinOp, ty: LTy, (x, by): (Src, Src), known: Option<u64>) -> VReg {
    let s = signed(ty);
    let ones = if ty == LTy::I64 { u64::MAX } else { u64::from(u32::MAX) };
    let harmless = known.is_some_and(|n| n & ones != 0 && n & ones != ones);
    let mut divisor = by;
    let (mut zero, mut minus) = (None, None);
    if !harmless {
        let is_zero = b.setp(Cmp::Eq, s, by, Src::Imm(0));
        let is_minus = b.setp(Cmp::Eq, s, by, Src::Imm(ones));
        let bad = b.arith(Arith::Or, Type::Pred, &[is_zero.into(), is_minus.into()]);
        divisor = Src::Reg(b.selp(bits(ty), Src::Imm(1), by, bad));
        (zero, minus) = (Some(is_zero), Some(is_minus));
    }
    let quotient = b.arith(Arith::Div, s, &[x, divisor]);
    let product = b.arith(Arith::MulLo, s, &[quotient.into(), divisor]);
    let remainder = b.arith(Arith::Sub, s, &[x, product.into()]);
    // With the harmless divisor 1 the remainder is 0: right for -1, and replaced below for 0.
    let adjust = matches!(op, BinOp::DivFloor | BinOp::RemFloor).then(|| {
        let inexact = b.setp(Cmp::Ne, s, remainder, Src::Imm(0));
        let signs = b.arith(Arith::Xor, bits(ty), &[remainder.into(), by]);
        let differ = b.setp(Cmp::Lt, s, signs, Src::Imm(0));
        b.arith(Arith::And, Type::Pred, &[inexact.into(), differ.into()])
    });
    if matches!(op, BinOp::Rem | BinOp::RemFloor) {
        let mut result = remainder;
        if let Some(adjust) = adjust {
            let moved = b.arith(Arith::Add, s, &[remainder.into(), by]);
            result = b.selp(bits(ty), moved, result, adjust);
        }
        return match zero {
            Some(zero) => b.selp(bits(ty), x, result, zero),
            None => result,
        };
    }
    let mut result = quotient;
    if let Some(adjust) = adjust {
        let below = b.arith(Arith::Sub, s, &[quotient.into(), Src::Imm(1)]);
        result = b.selp(bits(ty), below, result, adjust);
    }
    if let (Some(zero), Some(minus)) = (zero, minus) {
        let negated = b.arith(Arith::Sub, s, &[Src::Imm(0), x]);
        let result = b.selp(bits(ty), negated, result, minus);
        return b.selp(bits(ty), Src::Imm(ones), result, zero);
    }
    result
}

/// The same of unsigned numbers.
pub(crate) fn divide_unsigned(b: &mut Builder, op: BinOp, ty: LTy, (x, by): (Src, Src), known: Option<u64>) -> VReg {
    let u = unsigned(ty);
    let ones = if ty == LTy::I64 { u64::MAX } else { u64::from(u32::MAX) };
    let (arith, otherwise) = if op == BinOp::DivU { (Arith::Div, Src::Imm(ones)) } else { (Arith::Rem, x) };
    if known.is_some_and(|n| n & ones != 0) {
        return b.arith(arith, u, &[x, by]);
    }
    let zero = b.setp(Cmp::Eq, u, by, Src::Imm(0));
    let divisor = b.selp(bits(ty), Src::Imm(1), by, zero);
    let result = b.arith(arith, u, &[x, divisor.into()]);
    b.selp(bits(ty), otherwise, result, zero)
}
