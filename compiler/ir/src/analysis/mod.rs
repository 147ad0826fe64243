//! Analyses of integers: conditions that hold, ranges, polynomials of `index` values and inequalities
//! between them, and systems of linear inequalities. All passes share them:
//!
//! * [`poly`]: sums of products, over the values of a kernel or over the symbols of an analysis. The hazard proof
//!   extends it by an interval in place of the constant.
//! * [`progression`]: what a number may be, by ends and step.
//! * [`ranges`]: intervals of mutable variables, with widening; they have no step, since the end of a loop moves them.
//! * [`linear`]: rows of inequalities, eliminated one symbol after the other.
//! * [`gcd`] and [`lcm`].
//!
//! Apart from these are, on purpose: `ptoc_layout::Poly`, whose factors have powers, facts of their own and a spelling
//! that users see; the hazard proof's `Num`, which moves with a loop and is compared exactly along it; and functions of
//! a lane or a row as a code generator has them (`Affine` in `ptoc-cpu`, `Linear` in `ptoc-gpu`), two numbers each.

pub mod along_grid;
pub mod facts;
pub mod inequalities;
pub mod linear;
pub mod poly;
pub mod progression;
pub mod ranges;

pub use ptoc_layout::{gcd, lcm};
