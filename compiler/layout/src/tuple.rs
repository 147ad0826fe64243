//! Nested tuples: the profile that shapes, strides and coordinates share.

use crate::Int;
use std::fmt;

/// A leaf or a tuple of such. `(4)`, a tuple of one, is not `4`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Tuple<T> {
    /// A single entry.
    Leaf(T),
    /// `(a, b, ..)`, perhaps of one or none.
    Node(Vec<Tuple<T>>),
}

/// A tuple of integers: a shape, or a coordinate without `_`.
pub type IntTuple = Tuple<Int>;

/// A coordinate with `_` where a mode is kept.
pub type Coord = Tuple<CoordLeaf>;

/// An entry of a coordinate.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum CoordLeaf {
    /// `_`
    Keep,
    /// An index.
    At(Int),
}

impl<T> Tuple<T> {
    /// Entries at the top level; a leaf counts as one.
    pub fn rank(&self) -> usize {
        match self {
            Tuple::Leaf(_) => 1,
            Tuple::Node(modes) => modes.len(),
        }
    }

    /// 0 for a leaf, else 1 + the deepest entry's.
    pub fn depth(&self) -> usize {
        match self {
            Tuple::Leaf(_) => 0,
            Tuple::Node(modes) => 1 + modes.iter().map(Tuple::depth).max().unwrap_or(0),
        }
    }

    /// Whether it is a single entry.
    pub fn is_leaf(&self) -> bool {
        matches!(self, Tuple::Leaf(_))
    }

    /// The entries at the top level: those of a node, or the leaf itself.
    pub fn modes(&self) -> &[Tuple<T>] {
        match self {
            Tuple::Leaf(_) => std::slice::from_ref(self),
            Tuple::Node(modes) => modes,
        }
    }

    /// The leaves from left to right.
    pub fn leaves(&self) -> Vec<&T> {
        fn walk<'t, T>(t: &'t Tuple<T>, out: &mut Vec<&'t T>) {
            match t {
                Tuple::Leaf(x) => out.push(x),
                Tuple::Node(modes) => modes.iter().for_each(|m| walk(m, out)),
            }
        }
        let mut out = Vec::new();
        walk(self, &mut out);
        out
    }

    /// The same profile with other leaves.
    pub fn map<U>(&self, f: &mut impl FnMut(&T) -> U) -> Tuple<U> {
        match self {
            Tuple::Leaf(x) => Tuple::Leaf(f(x)),
            Tuple::Node(modes) => Tuple::Node(modes.iter().map(|m| m.map(f)).collect()),
        }
    }

    /// The same profile with other leaves, or the first error.
    pub fn try_map<U, E>(&self, f: &mut impl FnMut(&T) -> Result<U, E>) -> Result<Tuple<U>, E> {
        Ok(match self {
            Tuple::Leaf(x) => Tuple::Leaf(f(x)?),
            Tuple::Node(modes) => Tuple::Node(modes.iter().map(|m| m.try_map(f)).collect::<Result<_, _>>()?),
        })
    }

    /// Whether both have the same nesting.
    pub fn congruent<U>(&self, other: &Tuple<U>) -> bool {
        match (self, other) {
            (Tuple::Leaf(_), Tuple::Leaf(_)) => true,
            (Tuple::Node(a), Tuple::Node(b)) => a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.congruent(y)),
            _ => false,
        }
    }
}

impl IntTuple {
    /// A tuple of known numbers.
    pub fn flat(items: &[i64]) -> IntTuple {
        Tuple::Node(items.iter().map(|&n| Tuple::Leaf(Int::from(n))).collect())
    }

    /// The number that it is, if it is one leaf known now.
    pub fn as_const(&self) -> Option<i64> {
        match self {
            Tuple::Leaf(n) => n.as_const(),
            Tuple::Node(_) => None,
        }
    }
}

impl From<i64> for IntTuple {
    fn from(n: i64) -> IntTuple {
        Tuple::Leaf(Int::from(n))
    }
}

impl From<Int> for IntTuple {
    fn from(n: Int) -> IntTuple {
        Tuple::Leaf(n)
    }
}

impl<T: fmt::Display> fmt::Display for Tuple<T> {
    /// CuTe's notation: `4`, `(4,(2,2))`, `(4)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tuple::Leaf(x) => x.fmt(f),
            Tuple::Node(modes) => write_list(f, "(", modes, ")"),
        }
    }
}

impl fmt::Display for CoordLeaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CoordLeaf::Keep => f.write_str("_"),
            CoordLeaf::At(n) => n.fmt(f),
        }
    }
}

/// Entries between brackets, with commas and no spaces.
pub(crate) fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    open: &str,
    entries: &[T],
    close: &str,
) -> fmt::Result {
    f.write_str(open)?;
    for (k, entry) in entries.iter().enumerate() {
        if k > 0 {
            f.write_str(",")?;
        }
        entry.fmt(f)?;
    }
    f.write_str(close)
}
