//! The power function, of two arguments.

use super::build::Builder;
use super::coefficients::EXP;
use super::program::{Id, MathProgram};
use crate::CmpOp;

/// `a + b` with what its rounding lost, for |a| not below |b| (or a of 0).
fn fast_two_sum(b: &mut Builder, x: Id, y: Id) -> (Id, Id) {
    let sum = b.add(x, y);
    let back = b.sub(sum, x);
    (sum, b.sub(y, back))
}

/// `a * b` with what its rounding lost.
fn two_product(b: &mut Builder, x: Id, y: Id) -> (Id, Id) {
    let product = b.mul(x, y);
    let minus = b.neg(product);
    (product, b.fma(x, y, minus))
}

/// The constant in two parts.
fn parts(b: &mut Builder, value: f64) -> (Id, Id) {
    let high = value as f32;
    (b.c(high), b.c((value - f64::from(high)) as f32))
}

/// log2 of a positive number as a sum of two, to about 2^-36 of its size: v = 2^k m with m around 1, and the logarithm
/// of m by the series of z = (m - 1) / (m + 1), whose first terms are kept in two parts.
fn log2_in_two_parts(b: &mut Builder, magnitude: Id) -> (Id, Id) {
    let (tiny, scale) = (b.c(f32::MIN_POSITIVE), b.c(8_388_608.0));
    let is_tiny = b.cmp(CmpOp::Lt, magnitude, tiny);
    let scaled = b.mul(magnitude, scale);
    let v = b.select(is_tiny, scaled, magnitude);
    let (bits, origin) = (b.bits(v), b.i(std::f32::consts::FRAC_1_SQRT_2.to_bits() as i32));
    let width = b.i(23);
    let offset = b.isub(bits, origin);
    let k = b.shr(offset, width);
    let whole = b.shl(k, width);
    let m = b.isub(bits, whole);
    let m = b.unbits(m);
    let (down, zero) = (b.i(-23), b.i(0));
    let adjust = b.select(is_tiny, down, zero);
    let k = b.iadd(k, adjust);
    let k = b.i_to_f(k);
    // z = f / (f + 2), in two parts: the division's remainder, divided again.
    let (one, two) = (b.c(1.0), b.c(2.0));
    let f = b.sub(m, one);
    let sum = b.add(f, two);
    let back = b.sub(sum, two);
    let lost = b.sub(f, back);
    let z = b.div(f, sum);
    let minus_z = b.neg(z);
    let rest = b.fma(minus_z, sum, f);
    let rest = b.fma(minus_z, lost, rest);
    let z_low = b.div(rest, sum);
    let (z2, z2_low) = two_product(b, z, z);
    let twice = b.add(z, z);
    let z2_low = b.fma(twice, z_low, z2_low);
    // u = z^2 / 3 + z^4 (1/5 + z^2 / 7 + ..)
    let q = b.horner(z2, &[1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0]);
    let z4 = b.mul(z2, z2);
    let q = b.mul(q, z4);
    let (third, third_low) = parts(b, 1.0 / 3.0);
    let (t, t_low) = two_product(b, z2, third);
    let t_low = b.fma(z2, third_low, t_low);
    let t_low = b.fma(z2_low, third, t_low);
    let (u, u_low) = fast_two_sum(b, t, q);
    let u_low = b.add(u_low, t_low);
    // (z + z u) 2 / ln 2 + k
    let (p, p_low) = two_product(b, z, u);
    let p_low = b.fma(z_low, u, p_low);
    let p_low = b.fma(z, u_low, p_low);
    let (l, l_low) = fast_two_sum(b, z, p);
    let more = b.add(z_low, p_low);
    let l_low = b.add(l_low, more);
    let (c, c_low) = parts(b, 2.0 / std::f64::consts::LN_2);
    let (g, g_low) = two_product(b, l, c);
    let cross = b.mul(l, c_low);
    let cross = b.fma(l_low, c, cross);
    let g_low = b.add(g_low, cross);
    let (e, e_low) = fast_two_sum(b, k, g);
    (e, b.add(e_low, g_low))
}

/// 2^(e + low) for e between -160 and 160.
fn exp2_of(b: &mut Builder, e: Id, low: Id) -> Id {
    let n = b.rint(e);
    let r = b.sub(e, n);
    let r = b.add(r, low);
    let ln2 = b.c(std::f32::consts::LN_2);
    let (t, t_low) = two_product(b, r, ln2);
    let q = b.horner(t, &EXP);
    let t2 = b.mul(t, t);
    let tail = b.fma(t2, q, t_low);
    let tail = b.add(tail, t);
    let one = b.c(1.0);
    let p = b.add(tail, one);
    let k = b.f_to_i(n);
    // In two halves, so that a result below 2^-126 is rounded once more, where it becomes subnormal.
    let (by_one, bias, width) = (b.i(1), b.i(127), b.i(23));
    let k1 = b.shr(k, by_one);
    let k2 = b.isub(k, k1);
    let mut y = p;
    for half in [k1, k2] {
        let biased = b.iadd(half, bias);
        let bits = b.shl(biased, width);
        let power = b.unbits(bits);
        y = b.mul(y, power);
    }
    y
}

pub(super) fn pow() -> MathProgram {
    let (mut builder, x, y) = Builder::of_two();
    let b = &mut builder;
    let magnitude = b.abs(x);
    let (log, log_low) = log2_in_two_parts(b, magnitude);
    let (e, e_low) = two_product(b, y, log);
    let e_low = b.fma(y, log_low, e_low);
    // Beyond these the result is infinite or 0.
    let (top, bottom, zero) = (b.c(160.0), b.c(-160.0), b.c(0.0));
    let (above, below) = (b.cmp(CmpOp::Gt, e, top), b.cmp(CmpOp::Lt, e, bottom));
    let held = b.select(above, top, e);
    let held = b.select(below, bottom, held);
    let low = b.select(above, zero, e_low);
    let low = b.select(below, zero, low);
    let result = exp2_of(b, held, low);
    // Powers of 0 and of infinities.
    let inf = b.c(f32::INFINITY);
    let down = b.cmp(CmpOp::Lt, y, zero);
    let of_zero = b.select(down, inf, zero);
    let of_infinity = b.select(down, zero, inf);
    let is_zero = b.cmp(CmpOp::Eq, magnitude, zero);
    let is_infinite = b.cmp(CmpOp::Eq, magnitude, inf);
    let result = b.select(is_zero, of_zero, result);
    let result = b.select(is_infinite, of_infinity, result);
    // An odd power has the sign of the base; of what is below 0 there are whole powers only.
    let (half, top_bit, none) = (b.c(0.5), b.i(i32::MIN), b.i(0));
    let rounded = b.rint(y);
    let whole = b.cmp(CmpOp::Eq, rounded, y);
    let halved = b.mul(y, half);
    let half_rounded = b.rint(halved);
    let even = b.cmp(CmpOp::Eq, half_rounded, halved);
    let bits = b.bits(x);
    let sign = b.and(bits, top_bit);
    let sign = b.select(even, none, sign);
    let sign = b.select(whole, sign, none);
    let signed = b.flip_sign(result, sign);
    let nan = b.c(f32::NAN);
    let negative = b.cmp(CmpOp::Lt, x, zero);
    let fraction_of_negative = b.select(negative, nan, signed);
    let result = b.select(whole, signed, fraction_of_negative);
    let result = b.select(is_infinite, signed, result);
    // NaN, then what is 1 whatever the other argument is.
    let number = b.cmp(CmpOp::Eq, x, x);
    let result = b.select(number, result, nan);
    let number = b.cmp(CmpOp::Eq, y, y);
    let result = b.select(number, result, nan);
    let one = b.c(1.0);
    let size = b.abs(y);
    let endless = b.cmp(CmpOp::Eq, size, inf);
    let is_unit = b.cmp(CmpOp::Eq, magnitude, one);
    let of_unit = b.select(endless, one, result);
    let result = b.select(is_unit, of_unit, result);
    let is_one = b.cmp(CmpOp::Eq, x, one);
    let result = b.select(is_one, one, result);
    let to_none = b.cmp(CmpOp::Eq, y, zero);
    b.select(to_none, one, result);
    builder.finish(
        "pow",
        1.25,
        f32::INFINITY,
        "As C's pow: 1 to any power and anything to the power 0 are 1, NaN included; below 0 a power that is no whole \
         number gives NaN, an odd one a number below 0.",
    )
}
