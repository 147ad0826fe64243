//! How far results may be from what an `ensures` says.

use super::plan::Plan;
use ptoc_isa::{Loc, Rounding, Target};
use ptoc_tensor::{DType, scalar};

/// What a difference is held to, where a clause says nothing of its own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Tolerance {
    /// `rtol * |want| + atol`.
    Given {
        /// Relative to the element.
        rtol: f64,
        /// Absolute.
        atol: f64,
    },
    /// What roundings, and sums in another order, may come to: of floats 1e-4 and two units in the last place of the
    /// coarsest type that the kernel rounds to, relative to the element and to the root mean square of all. Where each
    /// addition of a sum is rounded to that type, it is the square root of its addends in place of two. Integers are
    /// equal.
    Rounding,
}

/// How a result comes to be rounded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Roundings {
    /// The coarsest type.
    pub dtype: DType,
    /// Additions behind each other that are rounded to it: of `n` random roundings as many go up as down, so what is
    /// left of them is some `sqrt(n)` of one (Higham, Accuracy and Stability of Numerical Algorithms, 2.8).
    pub additions: u64,
}

impl From<DType> for Roundings {
    fn from(dtype: DType) -> Roundings {
        Roundings { dtype, additions: 1 }
    }
}

/// Of [`Tolerance::Rounding`]: a sum in another order is nearer. One that lacks an addend of a million is not.
const ROUNDING: f64 = 1e-4;

impl Tolerance {
    /// Relative and absolute tolerance of integers.
    pub(super) fn of_integers(self) -> (f64, f64) {
        match self {
            Tolerance::Given { rtol, atol } => (rtol, atol),
            Tolerance::Rounding => (0.0, 0.0),
        }
    }

    /// Relative and absolute tolerance of floats of a type that should have these values.
    pub(super) fn of_floats(self, rounded: impl Into<Roundings>, want: &[f64]) -> (f64, f64) {
        let Roundings { dtype, additions } = rounded.into();
        match self {
            Tolerance::Given { rtol, atol } => (rtol, atol),
            Tolerance::Rounding => {
                let finite = || want.iter().filter(|x| x.is_finite());
                let squares: f64 = finite().map(|x| x * x).sum();
                let relative = ROUNDING + (additions as f64).sqrt().max(2.0) * last_place(dtype);
                (relative, relative * (squares / finite().count().max(1) as f64).sqrt())
            }
        }
    }
}

impl Plan {
    /// The coarsest float type that results of this type may have been rounded to: their own, or that of a tile in Vec.
    /// Operands of products elsewhere are loaded as they are.
    pub(super) fn rounded_to(&self, own: DType) -> DType {
        let tiles = self.steps.iter().flat_map(|step| step.kernel.tiles.values());
        let rounded = tiles.filter(|t| t.ty.loc == Loc::Vec && t.ty.dtype.is_float()).map(|t| t.ty.dtype);
        rounded.fold(own, |a, b| if last_place(b) > last_place(a) { b } else { a })
    }

    /// How sums of so many addends are rounded that the target's units make: after each operation, or once.
    pub(super) fn sums_of(&self, addends: u128, own: DType, target: &Target) -> Roundings {
        let each = target.unit.is_some_and(|unit| unit.rounding == Rounding::Each);
        let by_units = each && self.steps.iter().any(|step| !step.kernel.host);
        let additions = if by_units { u64::try_from(addends).unwrap_or(u64::MAX) } else { 1 };
        Roundings { dtype: self.rounded_to(own), additions }
    }
}

/// The distance of 1 to the next number of a type.
fn last_place(dtype: DType) -> f64 {
    let one = scalar::bits_from_f64(dtype, 1.0);
    scalar::bits_to_f64(dtype, one + 1) - 1.0
}

impl From<(f64, f64)> for Tolerance {
    fn from((rtol, atol): (f64, f64)) -> Tolerance {
        Tolerance::Given { rtol, atol }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roundings_are_relative_to_the_values() {
        let (relative, absolute) = Tolerance::Rounding.of_floats(DType::F32, &[3e-4, -3e-4, f64::INFINITY]);
        assert!((1e-4..1.1e-4).contains(&relative) && (3e-8..3.3e-8).contains(&absolute), "{relative} {absolute}");
        assert!(Tolerance::Rounding.of_floats(DType::BF16, &[1.0]).0 > 2.0 / 128.0);
        // 4096 additions in f16 leave 64 units in the last place; of three there are two, as of one.
        let sums = |additions| Tolerance::Rounding.of_floats(Roundings { dtype: DType::F16, additions }, &[1.0]).0;
        assert!((0.0625..0.0627).contains(&sums(4096)) && sums(3) == sums(1) && sums(1) < 0.0021);
        assert_eq!(Tolerance::Rounding.of_integers(), (0.0, 0.0));
        assert_eq!(Tolerance::from((0.5, 0.25)).of_floats(DType::F16, &[7.0]), (0.5, 0.25));
    }
}
