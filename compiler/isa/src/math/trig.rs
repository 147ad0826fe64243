//! sin and cos, with a range reduction in fused multiply-adds.

use super::build::Builder;
use super::coefficients::{COS, PI_2, SIN, TWO_PI_INV};
use super::program::{Id, MathProgram};
use crate::CmpOp;

/// |x| up to which the bounds hold: the quadrant is right and the reduced argument accurate.
pub(super) const DOMAIN: f32 = 1_048_576.0;

const DOC: &str = "The bound holds for |x| <= 2^20. Beyond, the argument is reduced with fewer and fewer right bits; \
                   the result stays in [-1, 1] and is the same everywhere, but means nothing from about 2^24 on. NaN \
                   for NaN and for +-inf.";

/// The argument a >= 0 as a = n pi/2 + r: (r, n as i32). Four parts of pi/2, one fused step each; n times the first
/// part is subtracted exactly. r is held to [-1, 1] where a is too large for any of this.
fn reduce(b: &mut Builder, a: Id) -> (Id, Id) {
    let two_over_pi = b.c(TWO_PI_INV[0]);
    let turns = b.mul(a, two_over_pi);
    let n = b.rint(turns);
    let mut r = a;
    for part in PI_2 {
        let part = b.c(-part);
        r = b.fma(n, part, r);
    }
    let (one, minus_one) = (b.c(1.0), b.c(-1.0));
    let above = b.cmp(CmpOp::Gt, r, one);
    let r = b.select(above, one, r);
    let below = b.cmp(CmpOp::Lt, r, minus_one);
    let r = b.select(below, minus_one, r);
    let quadrant = b.f_to_i(n);
    (r, quadrant)
}

/// sin(r) and cos(r) for |r| <= 1.
fn kernels(b: &mut Builder, r: Id) -> (Id, Id) {
    let z = b.mul(r, r);
    let p = b.horner(z, &SIN);
    let zr = b.mul(z, r);
    let sin = b.fma(zr, p, r);
    let q = b.horner(z, &COS);
    let minus_half = b.c(-0.5);
    let inner = b.fma(z, q, minus_half);
    let one = b.c(1.0);
    let cos = b.fma(z, inner, one);
    (sin, cos)
}

/// sin(a + quarter * pi/2) before the sign of the argument.
fn sine_of_quadrant(b: &mut Builder, a: Id, quarter: i32) -> Id {
    let (r, n) = reduce(b, a);
    let (sin, cos) = kernels(b, r);
    let quarter = b.i(quarter);
    let n = b.iadd(n, quarter);
    let (one, zero, shift) = (b.i(1), b.i(0), b.i(30));
    let odd = b.and(n, one);
    let is_odd = b.cmp(CmpOp::Ne, odd, zero);
    let y = b.select(is_odd, cos, sin);
    // Bit 1 of n is the sign.
    let two = b.i(2);
    let half = b.and(n, two);
    let sign = b.shl(half, shift);
    b.flip_sign(y, sign)
}

pub(super) fn sin() -> MathProgram {
    let (mut b, x) = Builder::new();
    let (a, sign) = b.split_sign(x);
    let y = sine_of_quadrant(&mut b, a, 0);
    b.flip_sign(y, sign);
    b.finish("sin", 2.0, DOMAIN, DOC)
}

pub(super) fn cos() -> MathProgram {
    let (mut b, x) = Builder::new();
    let a = b.abs(x);
    sine_of_quadrant(&mut b, a, 1);
    b.finish("cos", 2.0, DOMAIN, DOC)
}
