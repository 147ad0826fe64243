//! Tilers: what divides, multiplies or composes with a layout.

use crate::{Int, IntTuple, Layout, Result, Tuple};
use std::fmt;

/// How to cut a layout.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Tiler {
    /// `_`: the mode stays.
    Keep,
    /// `n` elements in a row, `n:1`. (Not a layout yet: one element in a row has the stride 0 where CuTe makes a layout
    /// of it, to divide or to multiply by, and the stride 1 where it composes.)
    Extent(Int),
    /// A layout for the whole.
    Layout(Layout),
    /// `<t0, t1, ..>`: one for each mode.
    ByMode(Vec<Tiler>),
}

impl Tiler {
    /// A shape as a tiler: `(4, 8)` cuts mode by mode, `4` is `4:1`.
    pub fn of_shape(shape: &IntTuple) -> Tiler {
        match shape {
            Tuple::Leaf(n) => Tiler::Extent(n.clone()),
            Tuple::Node(modes) => Tiler::ByMode(modes.iter().map(Tiler::of_shape).collect()),
        }
    }

    /// Number of elements that it selects; `None` where a mode is `_`.
    pub fn size(&self) -> Result<Option<Int>> {
        Ok(match self {
            Tiler::Keep => None,
            Tiler::Extent(n) => Some(n.clone()),
            Tiler::Layout(l) => Some(l.size()?),
            Tiler::ByMode(modes) => {
                let mut product = Int::ONE;
                for m in modes {
                    let Some(n) = m.size()? else { return Ok(None) };
                    product = product.mul(&n)?;
                }
                Some(product)
            }
        })
    }
}

impl fmt::Display for Tiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tiler::Keep => f.write_str("_"),
            Tiler::Extent(n) => n.fmt(f),
            Tiler::Layout(l) => l.fmt(f),
            Tiler::ByMode(modes) => crate::tuple::write_list(f, "<", modes, ">"),
        }
    }
}
