//! Analyses of integers: conditions that hold, ranges, polynomials of `index` values and inequalities
//! between them, and systems of linear inequalities.

pub mod along_grid;
pub mod facts;
pub mod inequalities;
pub mod linear;
pub mod poly;
pub mod ranges;

/// Greatest common divisor of numbers that are not negative; 1 if both are 0.
pub fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}
