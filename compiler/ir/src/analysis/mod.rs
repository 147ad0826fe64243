//! Analyses of integers: conditions that hold, ranges, polynomials of `index` values and inequalities
//! between them, and systems of linear inequalities.

pub mod along_grid;
pub mod facts;
pub mod inequalities;
pub mod linear;
pub mod poly;
pub mod ranges;

pub use ptoc_layout::{gcd, lcm};
