//! Integers of layouts.

use crate::poly::{self, AtomKind, Poly};
use crate::{LayoutError, Result};
use std::fmt;
use std::sync::Arc;

/// An integer that is known now, or a polynomial of quantities that the launch brings.
///
/// Equal polynomials are equal values; whether two different ones are equal, or one divides the other, is for
/// [`crate::Cx`] to say, which has the facts.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Int {
    /// Known now.
    Const(i64),
    /// Not known now.
    Sym(Arc<Poly>),
}

impl Int {
    /// 0
    pub const ZERO: Int = Int::Const(0);
    /// 1
    pub const ONE: Int = Int::Const(1);

    /// A named quantity of the launch, `min <= it <= max`, a multiple of `multiple_of`.
    pub fn var(id: u64, name: impl Into<String>, multiple_of: i64, min: i64, max: Option<i64>) -> Int {
        let multiple_of = multiple_of.max(1);
        Int::of_atom(AtomKind::Var { id, name: name.into(), multiple_of, min, max })
    }

    /// The quantity itself.
    pub(crate) fn of_atom(kind: AtomKind) -> Int {
        Int::Sym(Arc::new(Poly::atom(kind)))
    }

    /// The number, if it is known now.
    pub fn as_const(&self) -> Option<i64> {
        match self {
            Int::Const(n) => Some(*n),
            Int::Sym(_) => None,
        }
    }

    /// Whether it is this known number.
    pub fn is(&self, n: i64) -> bool {
        *self == Int::Const(n)
    }

    /// `self + other`
    pub fn add(&self, other: &Int) -> Result<Int> {
        match (self, other) {
            (Int::Const(a), Int::Const(b)) => {
                a.checked_add(*b).map(Int::Const).ok_or_else(|| LayoutError::overflow("+", self, other))
            }
            _ => poly::add(self, other),
        }
    }

    /// `self - other`
    pub fn sub(&self, other: &Int) -> Result<Int> {
        self.add(&other.neg()?)
    }

    /// `self * other`
    pub fn mul(&self, other: &Int) -> Result<Int> {
        match (self, other) {
            (Int::Const(a), Int::Const(b)) => {
                a.checked_mul(*b).map(Int::Const).ok_or_else(|| LayoutError::overflow("*", self, other))
            }
            _ => poly::mul(self, other),
        }
    }

    /// `-self`
    pub fn neg(&self) -> Result<Int> {
        self.mul(&Int::Const(-1))
    }

    /// The quotient, where it is exact whatever the symbols are.
    pub fn div_exact(&self, other: &Int) -> Option<Int> {
        match (self, other) {
            (Int::Const(a), Int::Const(b)) => {
                (a.checked_rem(*b)? == 0).then(|| a.checked_div(*b).map(Int::Const)).flatten()
            }
            _ => poly::div_exact(self, other),
        }
    }

    /// Least and greatest value, as far as the symbols' own facts tell.
    pub fn bounds(&self) -> (Option<i128>, Option<i128>) {
        match self {
            Int::Const(n) => (Some(i128::from(*n)), Some(i128::from(*n))),
            Int::Sym(p) => crate::cx::bounds(p),
        }
    }

    /// Greatest value, if it is known and fits.
    pub fn max(&self) -> Option<i64> {
        self.bounds().1.and_then(|n| i64::try_from(n).ok())
    }
}

impl From<i64> for Int {
    fn from(n: i64) -> Int {
        Int::Const(n)
    }
}

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Int::Const(n) => n.fmt(f),
            Int::Sym(p) => p.fmt(f),
        }
    }
}
