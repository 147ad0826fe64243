//! exp and log.

use super::build::Builder;
use super::coefficients::{EXP, LN2, LOG};
use super::program::{Id, MathProgram};
use crate::CmpOp;

/// Added to a number of magnitude below 2^22 - 254 it leaves the nearest integer, ties to even, in the last digits: 1.5
/// x 2^23. What is more, 254, is twice the bias of exponents: so half of these digits is the exponent of a power of
/// two.
const ROUNDS: f32 = 12_582_912.0 + 254.0;

/// What [`exp_of`] multiplies with and adds, in its order, for those who have to know an exponential from its
/// operations: log2 e and what rounds; both parts of -ln 2; the coefficients of 1 + r (1 + r q(r)) from the highest
/// power down.
pub const EXPONENTIAL: [f32; 11] = {
    let [q4, q3, q2, q1, q0] = EXP;
    [std::f32::consts::LOG2_E, ROUNDS, -LN2[0], -LN2[1], q4, q3, q2, q1, q0, 1.0, 1.0]
};

/// e^x for `x` already between -104 and 89 or NaN: x = n ln 2 + r, e^x = 2^n (1 + r (1 + r q(r))). A result below
/// 2^-126 is rounded once more, where it becomes subnormal.
pub(super) fn exp_of(b: &mut Builder, x: Id) -> Id {
    let [log2e, rounds, hi, lo, coefficients @ ..] = EXPONENTIAL;
    let (log2e, rounds) = (b.c(log2e), b.c(rounds));
    let moved = b.fma(x, log2e, rounds);
    let n = b.sub(moved, rounds);
    let (hi, lo) = (b.c(hi), b.c(lo));
    let r = b.fma(n, hi, x);
    let r = b.fma(n, lo, r);
    let p = b.horner(r, &coefficients);
    b.scale(p, n)
}

pub(super) fn exp() -> MathProgram {
    let (mut b, x) = Builder::new();
    // Beyond these the result is infinite or 0; NaN stays.
    let (top, bottom) = (b.c(89.0), b.c(-104.0));
    let x = b.min(x, top);
    let x = b.max(x, bottom);
    exp_of(&mut b, x);
    b.finish(
        "exp",
        0.95,
        f32::INFINITY,
        "exp(-inf) is 0, exp(inf) is inf, NaN stays NaN; results below 2^-126 are subnormal.",
    )
}

pub(super) fn log() -> MathProgram {
    let (mut b, x) = Builder::new();
    // Subnormals are scaled by 2^23 and counted as 23 binades lower.
    let tiny = b.c(f32::MIN_POSITIVE);
    let scale = b.c(8_388_608.0);
    let is_tiny = b.cmp(CmpOp::Lt, x, tiny);
    let scaled = b.mul(x, scale);
    let v = b.select(is_tiny, scaled, x);
    let (down, zero_i) = (b.i(-23), b.i(0));
    let adjust = b.select(is_tiny, down, zero_i);
    // v = 2^k m with m in [sqrt(1/2), sqrt(2)): take the exponent of v / sqrt(1/2).
    let bits = b.bits(v);
    let origin = b.i(std::f32::consts::FRAC_1_SQRT_2.to_bits() as i32);
    let mantissa = b.i(23);
    let offset = b.isub(bits, origin);
    let k = b.shr(offset, mantissa);
    let whole = b.shl(k, mantissa);
    let m_bits = b.isub(bits, whole);
    let m = b.unbits(m_bits);
    let k = b.iadd(k, adjust);
    let k = b.i_to_f(k);
    let one = b.c(1.0);
    let f = b.sub(m, one);
    let p = b.horner(f, &LOG);
    let f2 = b.mul(f, f);
    let minus_half = b.c(-0.5);
    let f3 = b.mul(f2, f);
    let cubic = b.mul(f3, p);
    let tail = b.fma(f2, minus_half, cubic);
    // k ln 2 + f exactly as head + rest (k * LN2[0] is exact and not smaller than f unless k is 0).
    let (hi, lo) = (b.c(LN2[0]), b.c(LN2[1]));
    let head = b.fma(k, hi, f);
    let minus_hi = b.c(-LN2[0]);
    let back = b.fma(k, minus_hi, head);
    let rest = b.sub(f, back);
    let tail = b.fma(k, lo, tail);
    let tail = b.add(tail, rest);
    let y = b.add(head, tail);
    // 0 -> -inf, below 0 -> NaN, inf -> inf, NaN -> NaN.
    let (zero, inf, nan) = (b.c(0.0), b.c(f32::INFINITY), b.c(f32::NAN));
    let minus_inf = b.c(f32::NEG_INFINITY);
    let finite = b.cmp(CmpOp::Lt, x, inf);
    let y = b.select(finite, y, x);
    let is_zero = b.cmp(CmpOp::Eq, x, zero);
    let y = b.select(is_zero, minus_inf, y);
    let negative = b.cmp(CmpOp::Lt, x, zero);
    b.select(negative, nan, y);
    b.finish("log", 1.0, f32::INFINITY, "log(+-0) is -inf, log(inf) is inf, NaN for NaN and for what is below 0.")
}
