//! Scalar arithmetic on registers: what an operation of the language is in loop IR, for each type.
//!
//! Registers hold narrow integers in range (sign- or zero-extended) and narrow floats as f32. [`unary`] and [`binary`]
//! leave the result as computed; a store narrows it, and where a result stays in a register [`settle`] does.

use super::code::FunctionBuilder;
use super::math;
use ptoc_ir::loops::{BinOp as L, Cast, CmpOp as C, LTy, Reg, UnOp as U};
use ptoc_ir::tile::Ty;
use ptoc_isa::{BinOp, CmpOp, UnOp};
use ptoc_tensor::DType;

/// How a type computes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arithmetic {
    /// In f32.
    Float,
    /// Signed; `index` divides towards minus infinity.
    Signed { floor: bool },
    /// Unsigned.
    Unsigned,
    /// A truth value.
    Bool,
}

/// How `ty` computes.
pub(super) fn kind(ty: Ty) -> Arithmetic {
    match ty {
        Ty::Index => Arithmetic::Signed { floor: true },
        Ty::D(DType::Bool) => Arithmetic::Bool,
        Ty::D(d) if d.is_float() => Arithmetic::Float,
        Ty::D(d) if d.is_signed_int() => Arithmetic::Signed { floor: false },
        Ty::D(_) => Arithmetic::Unsigned,
    }
}

/// The result `a` narrowed to the type, where a register holds more than that.
pub(super) fn settle(code: &mut FunctionBuilder, ty: Ty, a: Reg) -> Reg {
    match ty {
        Ty::D(DType::F16) => code.un(U::RoundF16, a),
        Ty::D(DType::BF16) => code.un(U::RoundBf16, a),
        Ty::D(d) if d.is_f8() => super::f8::nearest(code, d, a),
        Ty::D(d) => wrap(code, d, a),
        Ty::Index => a,
    }
}

/// An i32 register reduced to the range of a narrow integer type.
pub(super) fn wrap(code: &mut FunctionBuilder, dtype: DType, a: Reg) -> Reg {
    let (bits, signed) = match dtype {
        DType::I8 => (8, true),
        DType::I16 => (16, true),
        DType::U8 => (8, false),
        DType::U16 => (16, false),
        _ => return a,
    };
    if signed {
        let up = code.i32(32 - bits);
        let high = code.bin(L::Shl, a, up);
        code.bin(L::Shr, high, up)
    } else {
        let mask = code.i32((1 << bits) - 1);
        code.bin(L::And, a, mask)
    }
}

/// A number of the register type of `ty`, exactly representable.
pub(super) fn number(code: &mut FunctionBuilder, ty: Ty, n: i32) -> Reg {
    match super::reg_ty(ty) {
        LTy::F32 => code.f32(n as f32),
        LTy::I32 => code.i32(n),
        LTy::I64 => code.int(i64::from(n)),
        LTy::Bool => code.bits(LTy::Bool, u64::from(n != 0)),
    }
}

/// `a op b`
pub(super) fn binary(code: &mut FunctionBuilder, ty: Ty, op: BinOp, a: Reg, b: Reg) -> Reg {
    let kind = kind(ty);
    let wide_unsigned = kind == Arithmetic::Unsigned && ty != Ty::D(DType::U8) && ty != Ty::D(DType::U16);
    let op = match (op, kind) {
        (BinOp::Rem, Arithmetic::Float) => return math::fmod(code, a, b),
        (BinOp::Add, _) => L::Add,
        (BinOp::Sub, _) => L::Sub,
        (BinOp::Mul, _) => L::Mul,
        (BinOp::Div, Arithmetic::Signed { floor: true }) => L::DivFloor,
        (BinOp::Div, Arithmetic::Unsigned) => L::DivU,
        (BinOp::Div, _) => L::Div,
        (BinOp::Rem, Arithmetic::Signed { floor: true }) => L::RemFloor,
        (BinOp::Rem, Arithmetic::Unsigned) => L::RemU,
        (BinOp::Rem, _) => L::Rem,
        (BinOp::Max, _) if wide_unsigned => L::MaxU,
        (BinOp::Min, _) if wide_unsigned => L::MinU,
        (BinOp::Max, _) => L::Max,
        (BinOp::Min, _) => L::Min,
        (BinOp::And, _) => L::And,
        (BinOp::Or, _) => L::Or,
        (BinOp::Xor, _) => L::Xor,
        (BinOp::Shl, _) => L::Shl,
        (BinOp::Shr, Arithmetic::Signed { .. }) => L::Shr,
        (BinOp::Shr, _) => L::ShrU,
    };
    code.bin(op, a, b)
}

/// `op a`
pub(super) fn unary(code: &mut FunctionBuilder, ty: Ty, op: UnOp, a: Reg) -> Reg {
    let kind = kind(ty);
    match (op, kind) {
        (UnOp::Neg, _) => code.un(U::Neg, a),
        (UnOp::Not, _) => code.un(U::Not, a),
        (UnOp::Abs | UnOp::Relu, Arithmetic::Unsigned | Arithmetic::Bool) => a,
        (UnOp::Abs, _) => code.un(U::Abs, a),
        (UnOp::Relu, _) => {
            let zero = number(code, ty, 0);
            code.bin(L::Max, a, zero)
        }
        (UnOp::Recip, _) => {
            let one = number(code, ty, 1);
            binary(code, ty, BinOp::Div, one, a)
        }
        // The remaining functions exist on floats only; integers are their own integral parts.
        (_, Arithmetic::Signed { .. } | Arithmetic::Unsigned | Arithmetic::Bool) => a,
        (UnOp::Sqrt, Arithmetic::Float) => code.un(U::Sqrt, a),
        (UnOp::Rsqrt, Arithmetic::Float) => {
            let root = code.un(U::Sqrt, a);
            let one = code.f32(1.0);
            code.bin(L::Div, one, root)
        }
        (UnOp::Floor, Arithmetic::Float) => code.un(U::Floor, a),
        (UnOp::Ceil, Arithmetic::Float) => code.un(U::Ceil, a),
        (UnOp::Trunc, Arithmetic::Float) => code.un(U::Trunc, a),
        (UnOp::Rint, Arithmetic::Float) => code.un(U::Rint, a),
        (UnOp::Exp | UnOp::Log | UnOp::Tanh | UnOp::Erf | UnOp::Sin | UnOp::Cos, Arithmetic::Float) => {
            math::function(code, op, a)
        }
    }
}

/// `a op b` as a truth value.
pub(super) fn compare(code: &mut FunctionBuilder, ty: Ty, op: CmpOp, a: Reg, b: Reg) -> Reg {
    // Truth values compare as 0 and 1.
    let (a, b) = match kind(ty) {
        Arithmetic::Bool => (code.cast(Cast::BToI, a, LTy::I32), code.cast(Cast::BToI, b, LTy::I32)),
        _ => (a, b),
    };
    let unsigned = kind(ty) == Arithmetic::Unsigned;
    let op = match op {
        CmpOp::Eq => C::Eq,
        CmpOp::Ne => C::Ne,
        CmpOp::Lt if unsigned => C::LtU,
        CmpOp::Le if unsigned => C::LeU,
        CmpOp::Gt if unsigned => C::GtU,
        CmpOp::Ge if unsigned => C::GeU,
        CmpOp::Lt => C::Lt,
        CmpOp::Le => C::Le,
        CmpOp::Gt => C::Gt,
        CmpOp::Ge => C::Ge,
    };
    code.cmp(op, a, b)
}
