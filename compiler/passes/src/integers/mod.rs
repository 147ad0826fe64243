//! Integer arithmetic on what is not known yet: polynomials over symbols, and linear inequalities. One place for all
//! passes.

pub(crate) mod linear;
pub(crate) mod poly;

/// What divides both, of numbers that are not negative; 1 if both are 0.
pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}
