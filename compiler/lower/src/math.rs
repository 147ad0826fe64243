//! Functions that are programs: the published transcendentals, and the exact remainder of floats.

use super::code::FunctionBuilder;
use ptoc_ir::loops::{BinOp as L, Cast, CmpOp as C, LTy, Reg, UnOp as U};
use ptoc_isa::math::{self, MathOp};
use ptoc_isa::{CmpOp, UnOp};
use ptoc_tensor::DType;

/// Significand and exponent of a positive finite f32, as i64 and i32: the value is significand * 2^exponent.
fn decompose(code: &mut FunctionBuilder, bits: Reg) -> (Reg, Reg) {
    let (mask, hidden, shift, zero) = (code.i32(0x7f_ffff), code.i32(0x80_0000), code.i32(23), code.i32(0));
    let fraction = code.bin(L::And, bits, mask);
    let field = code.bin(L::ShrU, bits, shift);
    let with_hidden = code.bin(L::Or, fraction, hidden);
    let subnormal = code.cmp(C::Eq, field, zero);
    let significand = code.select(subnormal, fraction, with_hidden);
    let one = code.i32(1);
    let field = code.bin(L::Max, field, one);
    let bias = code.i32(150);
    let exponent = code.bin(L::Sub, field, bias);
    (code.cast(Cast::Zext, significand, LTy::I64), exponent)
}

/// 2^e as f32, for -126 <= e <= 127.
fn power_of_two(code: &mut FunctionBuilder, e: Reg) -> Reg {
    let (bias, shift) = (code.i32(127), code.i32(23));
    let field = code.bin(L::Add, e, bias);
    let bits = code.bin(L::Shl, field, shift);
    code.cast(Cast::Bits, bits, LTy::F32)
}

/// The remainder of a / b that goes with truncation, exact, as C's `fmod`: a's significand times 2^(difference of
/// exponents), modulo b's significand, by repeated squaring on integers.
pub(super) fn fmod(code: &mut FunctionBuilder, a: Reg, b: Reg) -> Reg {
    let (size_a, size_b) = (code.un(U::Abs, a), code.un(U::Abs, b));
    let (bits_a, bits_b) = (code.cast(Cast::Bits, size_a, LTy::I32), code.cast(Cast::Bits, size_b, LTy::I32));
    let ((ma, ea), (mb, eb)) = (decompose(code, bits_a), decompose(code, bits_b));
    let difference = code.bin(L::Sub, ea, eb);
    // Not 0 where b is: the result is not taken then, and x mod 0 is x.
    let mut power = code.int(1);
    for bit in (0..9).rev() {
        let square = code.bin(L::Mul, power, power);
        let square = code.bin(L::RemU, square, mb);
        let doubled = code.add(square, square);
        let doubled = code.bin(L::RemU, doubled, mb);
        let mask = code.i32(1 << bit);
        let set = code.bin(L::And, difference, mask);
        let set = code.cast(Cast::IToB, set, LTy::Bool);
        power = code.select(set, doubled, square);
    }
    let product = code.bin(L::Mul, ma, power);
    let rest = code.bin(L::RemU, product, mb);
    let rest = code.cast(Cast::IToF, rest, LTy::F32);
    // rest * 2^eb in two exact steps, as 2^eb itself may be too small for a normal number.
    let one = code.i32(1);
    let e1 = code.bin(L::Shr, eb, one);
    let e2 = code.bin(L::Sub, eb, e1);
    let (p1, p2) = (power_of_two(code, e1), power_of_two(code, e2));
    let scaled = code.bin(L::Mul, rest, p1);
    let scaled = code.bin(L::Mul, scaled, p2);
    // Smaller operands (and any finite one against infinity) are their own remainder.
    let small = code.cmp(C::Lt, size_a, size_b);
    let magnitude = code.select(small, size_a, scaled);
    let minus = code.un(U::Neg, magnitude);
    let zero = code.i32(0);
    let raw = code.cast(Cast::Bits, a, LTy::I32);
    let negative = code.cmp(C::Lt, raw, zero);
    let signed = code.select(negative, minus, magnitude);
    // NaN if a is infinite, b is 0, or either is NaN.
    let (infinity, none) = (code.f32(f32::INFINITY), code.f32(0.0));
    let finite = code.cmp(C::Lt, size_a, infinity);
    let divisor = code.cmp(C::Gt, size_b, none);
    let defined = code.bin(L::And, finite, divisor);
    let nan = code.f32(f32::NAN);
    code.select(defined, signed, nan)
}

/// A published program, operation by operation.
pub(super) fn function(code: &mut FunctionBuilder, op: UnOp, x: Reg) -> Reg {
    let Some(program) = math::program(op) else { return x };
    steps(code, program, x, x)
}

/// x to the power y, of floats.
pub(super) fn pow(code: &mut FunctionBuilder, x: Reg, y: Reg) -> Reg {
    steps(code, math::pow(), x, y)
}

/// x to the power y, of integers whose registers are in range: repeated squaring over the bits of y, wrapping; below 0
/// what 1 divided by the power is (`ptoc_ir::formula`).
pub(super) fn int_pow(code: &mut FunctionBuilder, d: DType, x: Reg, y: Reg) -> Reg {
    let (zero, one) = (code.i32(0), code.i32(1));
    let (mut result, mut square) = (one, x);
    for bit in 0..8 * d.size() as i32 {
        let mask = code.i32((1u32 << bit) as i32);
        let bits = code.bin(L::And, y, mask);
        let clear = code.cmp(C::Eq, bits, zero);
        let product = code.bin(L::Mul, result, square);
        result = code.select(clear, result, product);
        square = code.bin(L::Mul, square, square);
    }
    if !d.is_signed_int() {
        return result;
    }
    let minus_one = code.i32(-1);
    let odd = code.bin(L::And, y, one);
    let is_even = code.cmp(C::Eq, odd, zero);
    let of_minus_one = code.select(is_even, one, minus_one);
    let mut below = zero;
    for (base, value) in [(zero, minus_one), (one, one), (minus_one, of_minus_one)] {
        let here = code.cmp(C::Eq, x, base);
        below = code.select(here, value, below);
    }
    let negative = code.cmp(C::Lt, y, zero);
    code.select(negative, below, result)
}

fn steps(code: &mut FunctionBuilder, program: &math::MathProgram, x: Reg, y: Reg) -> Reg {
    let mut regs: Vec<Reg> = Vec::with_capacity(program.ops.len());
    for &op in &program.ops {
        let reg = step(code, op, &regs, (x, y));
        regs.push(reg);
    }
    regs.last().copied().unwrap_or(x)
}

fn step(code: &mut FunctionBuilder, op: MathOp, regs: &[Reg], (x, y): (Reg, Reg)) -> Reg {
    let r = |id: math::Id| regs[id.index()];
    match op {
        MathOp::Arg => x,
        MathOp::Second => y,
        MathOp::F32(c) => code.f32(c),
        MathOp::I32(c) => code.i32(c),
        MathOp::Add(a, b) | MathOp::IAdd(a, b) => code.bin(L::Add, r(a), r(b)),
        MathOp::Sub(a, b) | MathOp::ISub(a, b) => code.bin(L::Sub, r(a), r(b)),
        MathOp::Mul(a, b) => code.bin(L::Mul, r(a), r(b)),
        MathOp::Div(a, b) => code.bin(L::Div, r(a), r(b)),
        MathOp::Min(a, b) => code.bin(L::Min, r(a), r(b)),
        MathOp::Max(a, b) => code.bin(L::Max, r(a), r(b)),
        MathOp::Scale(a, b) => code.bin(L::Scale, r(a), r(b)),
        MathOp::Sqrt(a) => code.un(U::Sqrt, r(a)),
        MathOp::Fma(a, b, c) => code.fma(r(a), r(b), r(c)),
        MathOp::Rint(a) => code.un(U::Rint, r(a)),
        MathOp::ToInt(a) => code.cast(Cast::FToI32, r(a), LTy::I32),
        MathOp::ToFloat(a) => code.cast(Cast::IToF, r(a), LTy::F32),
        MathOp::Bits(a) => code.cast(Cast::Bits, r(a), LTy::I32),
        MathOp::FromBits(a) => code.cast(Cast::Bits, r(a), LTy::F32),
        MathOp::And(a, b) => code.bin(L::And, r(a), r(b)),
        MathOp::Or(a, b) => code.bin(L::Or, r(a), r(b)),
        MathOp::Xor(a, b) => code.bin(L::Xor, r(a), r(b)),
        MathOp::Shl(a, b) => code.bin(L::Shl, r(a), r(b)),
        MathOp::Shr(a, b) => code.bin(L::Shr, r(a), r(b)),
        MathOp::Cmp(op, a, b) => {
            let op = match op {
                CmpOp::Eq => C::Eq,
                CmpOp::Ne => C::Ne,
                CmpOp::Lt => C::Lt,
                CmpOp::Le => C::Le,
                CmpOp::Gt => C::Gt,
                CmpOp::Ge => C::Ge,
            };
            code.cmp(op, r(a), r(b))
        }
        MathOp::Select { cond, a, b } => code.select(r(cond), r(a), r(b)),
    }
}
