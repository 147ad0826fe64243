//! Arithmetic, comparisons and casts on one value or four.
//!
//! Nothing here can trap: divisions get a harmless divisor first and the documented result is selected afterwards.

use crate::func::Emit;
use crate::shape::{Shape, scalar_type};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F32X4, I8, I32, I32X4, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use ptoc_ir::loops::{BinOp, Cast, CmpOp, LTy, UnOp};

/// The second operand's value where it is known.
pub(crate) type Known = Option<u64>;

impl Emit<'_, '_> {
    /// A constant of a scalar register.
    pub(crate) fn constant(&mut self, ty: LTy, bits: u64) -> Value {
        match ty {
            LTy::F32 => self.b.ins().f32const(f32::from_bits(bits as u32)),
            LTy::Bool => self.b.ins().iconst(I8, i64::from(bits != 0)),
            LTy::I32 => self.b.ins().iconst(I32, i64::from(bits as u32)),
            LTy::I64 => self.b.ins().iconst(I64, bits as i64),
        }
    }

    pub(crate) fn unary(&mut self, s: Shape, ty: LTy, op: UnOp, a: Value) -> Value {
        let float = ty == LTy::F32;
        match op {
            UnOp::Neg if float => self.b.ins().fneg(a),
            UnOp::Neg => self.b.ins().ineg(a),
            UnOp::Not if ty == LTy::Bool && s == Shape::One => self.b.ins().bxor_imm_s(a, 1),
            UnOp::Not => self.b.ins().bnot(a),
            UnOp::Abs if float => self.b.ins().fabs(a),
            UnOp::Abs => self.b.ins().iabs(a),
            UnOp::Sqrt => self.b.ins().sqrt(a),
            UnOp::Floor => self.b.ins().floor(a),
            UnOp::Ceil => self.b.ins().ceil(a),
            UnOp::Trunc => self.b.ins().trunc(a),
            UnOp::Rint => self.b.ins().nearest(a),
            UnOp::RoundF16 => self.round_f16(s, a),
            UnOp::RoundBf16 => self.round_bf16(s, a),
        }
    }

    /// Four lanes: not division, remainder and shifts by counts that differ (see `lanes`).
    pub(crate) fn binary(&mut self, s: Shape, ty: LTy, op: BinOp, a: Value, b: Value, known: Known) -> Value {
        if ty == LTy::F32 {
            return match op {
                BinOp::Add => self.b.ins().fadd(a, b),
                BinOp::Sub => self.b.ins().fsub(a, b),
                BinOp::Mul => self.b.ins().fmul(a, b),
                BinOp::Div => self.b.ins().fdiv(a, b),
                BinOp::Max => self.float_max(s, a, b, known),
                BinOp::Scale => self.scaled(s, a, b),
                _ => self.float_min(s, a, b, known),
            };
        }
        match op {
            BinOp::Add => self.b.ins().iadd(a, b),
            BinOp::Sub => self.b.ins().isub(a, b),
            BinOp::Mul => self.b.ins().imul(a, b),
            BinOp::And => self.b.ins().band(a, b),
            BinOp::Or => self.b.ins().bor(a, b),
            BinOp::Xor => self.b.ins().bxor(a, b),
            BinOp::Max => self.b.ins().smax(a, b),
            BinOp::Min => self.b.ins().smin(a, b),
            BinOp::MaxU => self.b.ins().umax(a, b),
            BinOp::MinU => self.b.ins().umin(a, b),
            BinOp::Shl | BinOp::Shr | BinOp::ShrU => self.shift_one(ty, op, a, b, known),
            BinOp::Div | BinOp::DivFloor | BinOp::Rem | BinOp::RemFloor => self.divide(ty, op, a, b, known),
            BinOp::DivU | BinOp::RemU => self.divide_unsigned(ty, op, a, b, known),
            // Of floats only.
            BinOp::Scale => a,
        }
    }

    /// a * 2^n in two products, as [`ptoc_isa::math::scale`].
    fn scaled(&mut self, s: Shape, a: Value, n: Value) -> Value {
        let ty = if s == Shape::One { I32 } else { I32X4 };
        let n = self.b.ins().fcvt_to_sint_sat(ty, n);
        let first = self.b.ins().sshr_imm_s(n, 1);
        let second = self.b.ins().isub(n, first);
        let bias = self.int(s, 127);
        [first, second].into_iter().fold(a, |product, half| {
            let field = self.b.ins().iadd(half, bias);
            let bits = self.b.ins().ishl_imm_s(field, 23);
            let power = self.as_float(s, bits);
            self.b.ins().fmul(product, power)
        })
    }

    /// A scalar shift; counts of the width or more are defined.
    fn shift_one(&mut self, ty: LTy, op: BinOp, a: Value, count: Value, known: Known) -> Value {
        let machine = scalar_type(ty);
        let width = i64::from(machine.bits());
        let known = known.map(|bits| if ty == LTy::I32 { u64::from(bits as u32) } else { bits });
        if let Some(n) = known.filter(|&n| n < width as u64) {
            return match op {
                BinOp::Shl => self.b.ins().ishl_imm_s(a, n as i64),
                BinOp::Shr => self.b.ins().sshr_imm_s(a, n as i64),
                _ => self.b.ins().ushr_imm_s(a, n as i64),
            };
        }
        if op == BinOp::Shr {
            let last = self.b.ins().iconst(machine, width - 1);
            let count = self.b.ins().umin(count, last);
            return self.b.ins().sshr(a, count);
        }
        let shifted = if op == BinOp::Shl { self.b.ins().ishl(a, count) } else { self.b.ins().ushr(a, count) };
        let inside = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThan, count, width);
        let zero = self.b.ins().iconst(machine, 0);
        self.b.ins().select(inside, shifted, zero)
    }

    /// A shift of four lanes by one scalar count.
    pub(crate) fn shift_four(&mut self, op: BinOp, a: Value, count: Value, known: Known) -> Value {
        let inside = known.is_some_and(|n| (n as u32) < 32);
        if op == BinOp::Shr {
            let last = self.b.ins().iconst(I32, 31);
            let count = if inside { count } else { self.b.ins().umin(count, last) };
            return self.b.ins().sshr(a, count);
        }
        let shifted = if op == BinOp::Shl { self.b.ins().ishl(a, count) } else { self.b.ins().ushr(a, count) };
        if inside {
            return shifted;
        }
        let small = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThan, count, 32);
        let mask = self.b.ins().bmask(I32, small);
        let mask = self.b.ins().splat(I32X4, mask);
        self.b.ins().band(shifted, mask)
    }

    fn divide(&mut self, ty: LTy, op: BinOp, a: Value, b: Value, known: Known) -> Value {
        let machine = scalar_type(ty);
        let known = known.map(|bits| if ty == LTy::I32 { i64::from(bits as i32) } else { bits as i64 });
        let harmless = known.is_some_and(|b| b != 0 && b != -1);
        let zero = self.b.ins().icmp_imm_s(IntCC::Equal, b, 0);
        let minus_one = self.b.ins().icmp_imm_s(IntCC::Equal, b, -1);
        let divisor = if harmless {
            b
        } else {
            let bad = self.b.ins().bor(zero, minus_one);
            let one = self.b.ins().iconst(machine, 1);
            self.b.ins().select(bad, one, b)
        };
        let quotient = self.b.ins().sdiv(a, divisor);
        let product = self.b.ins().imul(quotient, divisor);
        // With the harmless divisor 1 the remainder is 0: right for -1, and replaced below for 0.
        let remainder = self.b.ins().isub(a, product);
        let floor = matches!(op, BinOp::DivFloor | BinOp::RemFloor);
        let adjust = floor.then(|| {
            let inexact = self.b.ins().icmp_imm_s(IntCC::NotEqual, remainder, 0);
            let signs = self.b.ins().bxor(remainder, b);
            let differ = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, signs, 0);
            self.b.ins().band(inexact, differ)
        });
        if matches!(op, BinOp::Rem | BinOp::RemFloor) {
            let mut result = remainder;
            if let Some(adjust) = adjust {
                let moved = self.b.ins().iadd(remainder, b);
                result = self.b.ins().select(adjust, moved, result);
            }
            return if harmless { result } else { self.b.ins().select(zero, a, result) };
        }
        let mut result = quotient;
        if let Some(adjust) = adjust {
            let below = self.b.ins().iadd_imm_s(quotient, -1);
            result = self.b.ins().select(adjust, below, result);
        }
        if harmless {
            return result;
        }
        let negated = self.b.ins().ineg(a);
        let result = self.b.ins().select(minus_one, negated, result);
        let all_ones = self.b.ins().iconst(machine, mask(machine.bits()));
        self.b.ins().select(zero, all_ones, result)
    }

    fn divide_unsigned(&mut self, ty: LTy, op: BinOp, a: Value, b: Value, known: Known) -> Value {
        let machine = scalar_type(ty);
        let harmless = known.is_some_and(|bits| bits & mask(machine.bits()) as u64 != 0);
        let zero = self.b.ins().icmp_imm_s(IntCC::Equal, b, 0);
        let divisor = if harmless {
            b
        } else {
            let one = self.b.ins().iconst(machine, 1);
            self.b.ins().select(zero, one, b)
        };
        let (result, otherwise) = if op == BinOp::DivU {
            let all_ones = self.b.ins().iconst(machine, mask(machine.bits()));
            (self.b.ins().udiv(a, divisor), all_ones)
        } else {
            (self.b.ins().urem(a, divisor), a)
        };
        if harmless { result } else { self.b.ins().select(zero, otherwise, result) }
    }

    /// Four lanes: `maxps` gives its second operand when the two are equal or unordered. Taken both ways round, the
    /// results differ only for +0 and -0 and for NaN: `or` and a subtraction (x - 0, or -0 - -0 = +0) mend both. A
    /// constant that is no NaN needs one instruction or two.
    fn float_max(&mut self, s: Shape, a: Value, b: Value, known: Known) -> Value {
        if s == Shape::One {
            return self.b.ins().fmax(a, b);
        }
        match known.map(|bits| f32::from_bits(bits as u32)) {
            Some(c) if !c.is_nan() => {
                let most = self.pseudo_max(b, a);
                // Equal operands give `a`: wrong only for max(-0, +0), which adding +0 mends.
                if c != 0.0 || c.is_sign_negative() {
                    return most;
                }
                let zero = self.float(s, 0.0);
                return self.b.ins().fadd(most, zero);
            }
            _ => {}
        }
        let one = self.pseudo_max(a, b);
        let two = self.pseudo_max(b, a);
        let (one, two) = (self.as_int(s, one), self.as_int(s, two));
        let differ = self.b.ins().bxor(one, two);
        let either = self.b.ins().bor(one, differ);
        let (either, differ) = (self.as_float(s, either), self.as_float(s, differ));
        self.b.ins().fsub(either, differ)
    }

    /// As `float_max`, but `or` alone mends zeros (the sign of -0 wins) and NaN (all its exponent bits stay).
    fn float_min(&mut self, s: Shape, a: Value, b: Value, known: Known) -> Value {
        if s == Shape::One {
            return self.b.ins().fmin(a, b);
        }
        if known.map(|bits| f32::from_bits(bits as u32)).is_some_and(|c| !c.is_nan() && c.to_bits() != 0x8000_0000) {
            return self.pseudo_min(b, a);
        }
        let one = self.pseudo_min(a, b);
        let two = self.pseudo_min(b, a);
        let (one, two) = (self.as_int(s, one), self.as_int(s, two));
        let bits = self.b.ins().bor(one, two);
        self.as_float(s, bits)
    }

    /// `a > b ? a : b` (`maxps`).
    fn pseudo_max(&mut self, a: Value, b: Value) -> Value {
        let less = self.b.ins().fcmp(FloatCC::LessThan, b, a);
        let less = self.bitcast(F32X4, less);
        self.b.ins().bitselect(less, a, b)
    }

    /// `a < b ? a : b` (`minps`).
    fn pseudo_min(&mut self, a: Value, b: Value) -> Value {
        let less = self.b.ins().fcmp(FloatCC::LessThan, a, b);
        let less = self.bitcast(F32X4, less);
        self.b.ins().bitselect(less, a, b)
    }

    pub(crate) fn compare(&mut self, ty: LTy, op: CmpOp, a: Value, b: Value) -> Value {
        if ty == LTy::F32 {
            let cc = match op {
                CmpOp::Eq => FloatCC::Equal,
                CmpOp::Ne => FloatCC::NotEqual,
                CmpOp::Lt | CmpOp::LtU => FloatCC::LessThan,
                CmpOp::Le | CmpOp::LeU => FloatCC::LessThanOrEqual,
                CmpOp::Gt | CmpOp::GtU => FloatCC::GreaterThan,
                CmpOp::Ge | CmpOp::GeU => FloatCC::GreaterThanOrEqual,
            };
            return self.b.ins().fcmp(cc, a, b);
        }
        let cc = match op {
            CmpOp::Eq => IntCC::Equal,
            CmpOp::Ne => IntCC::NotEqual,
            CmpOp::Lt => IntCC::SignedLessThan,
            CmpOp::Le => IntCC::SignedLessThanOrEqual,
            CmpOp::Gt => IntCC::SignedGreaterThan,
            CmpOp::Ge => IntCC::SignedGreaterThanOrEqual,
            CmpOp::LtU => IntCC::UnsignedLessThan,
            CmpOp::LeU => IntCC::UnsignedLessThanOrEqual,
            CmpOp::GtU => IntCC::UnsignedGreaterThan,
            CmpOp::GeU => IntCC::UnsignedGreaterThanOrEqual,
        };
        self.b.ins().icmp(cc, a, b)
    }

    /// Four lanes: only the casts between 32-bit types and bool.
    pub(crate) fn cast(&mut self, s: Shape, op: Cast, a: Value) -> Value {
        let (int, float) = if s == Shape::One { (I32, F32) } else { (I32X4, F32X4) };
        match op {
            Cast::Sext => self.b.ins().sextend(I64, a),
            Cast::Zext => self.b.ins().uextend(I64, a),
            Cast::Wrap => self.b.ins().ireduce(I32, a),
            Cast::IToF => self.b.ins().fcvt_from_sint(float, a),
            Cast::UToF => self.b.ins().fcvt_from_uint(float, a),
            Cast::FToI32 => self.b.ins().fcvt_to_sint_sat(int, a),
            Cast::FToU32 => self.b.ins().fcvt_to_uint_sat(int, a),
            Cast::FToI64 => self.b.ins().fcvt_to_sint_sat(I64, a),
            Cast::FToU64 => self.b.ins().fcvt_to_uint_sat(I64, a),
            Cast::Bits => {
                let ty = self.b.func.dfg.value_type(a);
                self.bitcast(if ty == int { float } else { int }, a)
            }
            Cast::BToI if s == Shape::One => self.b.ins().uextend(I32, a),
            // A mask of -1 is the number 1.
            Cast::BToI => self.b.ins().ineg(a),
            Cast::IToB => {
                let zero = self.int(s, 0);
                self.b.ins().icmp(IntCC::NotEqual, a, zero)
            }
        }
    }
}

/// The low `bits` bits.
fn mask(bits: u32) -> i64 {
    if bits == 64 { -1 } else { (1 << bits) - 1 }
}
