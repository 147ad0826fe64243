//! Identities of integer, `index` and `bool` arithmetic. Floats have none that are exact.

use super::{Const, Ty, Value};
use crate::scalar;
use ptoc_isa::BinOp;

/// What an expression is known to be.
pub(super) enum Simplified {
    /// One of its operands.
    Value(Value),
    /// A constant of its type.
    Const(u64),
}

/// The simpler form of `a op b`, each with the constant that it is. Not both are constants.
pub(super) fn binary(
    op: BinOp,
    ty: Ty,
    (a, ca): (Value, Option<Const>),
    (b, cb): (Value, Option<Const>),
) -> Option<Simplified> {
    use Simplified::{Const as Bits, Value as Same};
    if scalar::float(ty).is_some() || !scalar::binary_exists(op, ty) {
        return None;
    }
    let ones = scalar::mask(ty);
    if a == b {
        match op {
            BinOp::Sub | BinOp::Xor => return Some(Bits(0)),
            BinOp::Max | BinOp::Min | BinOp::And | BinOp::Or => return Some(Same(a)),
            _ => {}
        }
    }
    match (op, cb.map(|c| c.bits)) {
        (BinOp::Add | BinOp::Sub | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::Shr, Some(0)) => return Some(Same(a)),
        (BinOp::Mul | BinOp::And, Some(0)) => return Some(Bits(0)),
        (BinOp::Mul | BinOp::Div, Some(1)) if ty != Ty::BOOL => return Some(Same(a)),
        (BinOp::Rem, Some(1)) => return Some(Bits(0)),
        (BinOp::And, Some(bits)) if bits == ones => return Some(Same(a)),
        (BinOp::Or, Some(bits)) if bits == ones => return Some(Bits(ones)),
        _ => {}
    }
    match (op, ca.map(|c| c.bits)) {
        (BinOp::Add | BinOp::Or | BinOp::Xor, Some(0)) => Some(Same(b)),
        (BinOp::Mul | BinOp::And | BinOp::Shl, Some(0)) => Some(Bits(0)),
        (BinOp::Mul, Some(1)) => Some(Same(b)),
        (BinOp::And, Some(bits)) if bits == ones => Some(Same(b)),
        (BinOp::Or, Some(bits)) if bits == ones => Some(Bits(ones)),
        _ => None,
    }
}
