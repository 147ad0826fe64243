//! Tilers: what divides, multiplies or composes with a layout.

use crate::{IntTuple, Layout, Tuple};
use std::fmt;

/// How to cut a layout.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Tiler {
    /// `_`: the mode stays.
    Keep,
    /// A layout for the whole; `n` is `n:1`.
    Layout(Layout),
    /// `<t0, t1, ..>`: one for each mode.
    ByMode(Vec<Tiler>),
}

impl Tiler {
    /// A shape as a tiler: `(4, 8)` cuts mode by mode, `4` is `4:1`.
    pub fn of_shape(shape: &IntTuple) -> Tiler {
        match shape {
            Tuple::Leaf(n) => Tiler::Layout(Layout::vector(n.clone())),
            Tuple::Node(modes) => Tiler::ByMode(modes.iter().map(Tiler::of_shape).collect()),
        }
    }
}

impl fmt::Display for Tiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tiler::Keep => f.write_str("_"),
            Tiler::Layout(l) => l.fmt(f),
            Tiler::ByMode(modes) => {
                f.write_str("<")?;
                for (k, m) in modes.iter().enumerate() {
                    if k > 0 {
                        f.write_str(",")?;
                    }
                    m.fmt(f)?;
                }
                f.write_str(">")
            }
        }
    }
}
