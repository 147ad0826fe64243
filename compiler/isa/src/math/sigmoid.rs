//! tanh and erf: odd functions that level off at 1.

use super::build::Builder;
use super::coefficients::{ERF, ERF_TAIL, TANH};
use super::exp_log::exp_of;
use super::program::MathProgram;
use crate::CmpOp;

pub(super) fn tanh() -> MathProgram {
    let (mut b, x) = Builder::new();
    let (a, sign) = b.split_sign(x);
    // Small: a + a^3 p(a^2).
    let z = b.mul(a, a);
    let p = b.horner(z, &TANH);
    let za = b.mul(z, a);
    let small = b.fma(za, p, a);
    // Large: 1 - 2 / (e^2a + 1); from 10 on it is 1, and the exponential stays finite.
    let ten = b.c(10.0);
    let above = b.cmp(CmpOp::Gt, a, ten);
    let clamped = b.select(above, ten, a);
    let twice = b.add(clamped, clamped);
    let e = exp_of(&mut b, twice);
    let one = b.c(1.0);
    let denominator = b.add(e, one);
    let minus_two = b.c(-2.0);
    let quotient = b.div(minus_two, denominator);
    let large = b.add(quotient, one);
    let limit = b.c(0.625);
    let is_large = b.cmp(CmpOp::Gt, a, limit);
    let y = b.select(is_large, large, small);
    b.flip_sign(y, sign);
    b.finish("tanh", 1.5, f32::INFINITY, "Odd: tanh(-0) is -0; tanh(+-inf) is +-1; NaN stays NaN.")
}

pub(super) fn erf() -> MathProgram {
    let (mut b, x) = Builder::new();
    let (a, sign) = b.split_sign(x);
    // Small: a + a p(a^2).
    let z = b.mul(a, a);
    let p = b.horner(z, &ERF);
    let small = b.fma(a, p, a);
    // Large: 1 - e^-q(a); from 4 on it is 1.
    let four = b.c(4.0);
    let above = b.cmp(CmpOp::Gt, a, four);
    let clamped = b.select(above, four, a);
    let q = b.horner(clamped, &ERF_TAIL);
    let minus_q = b.neg(q);
    let e = exp_of(&mut b, minus_q);
    let one = b.c(1.0);
    let large = b.sub(one, e);
    let is_large = b.cmp(CmpOp::Gt, a, one);
    let y = b.select(is_large, large, small);
    b.flip_sign(y, sign);
    b.finish("erf", 1.25, f32::INFINITY, "Odd: erf(-0) is -0; erf(+-inf) is +-1; NaN stays NaN.")
}
