//! Shapes with strides.

use crate::{Cx, ErrorKind, Int, IntTuple, LayoutError, Result, Tuple};
use std::fmt;

/// Units that have a name instead of a mode's number: the coordinates of a memory with banks, coarse to fine, and the
/// processing unit. `1@row` has the basis `[NAMED + 4]`.
pub const NAMED_UNITS: [&str; 8] = ["channel", "pch", "bg", "bank", "row", "col", "byte", "unit"];

/// Number of the first named unit; coordinates have fewer modes than that.
pub const NAMED: usize = crate::MAX_DEPTH;

/// What one step along a leaf adds: a multiple of 1 (an offset), or of a unit vector (a coordinate).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Stride {
    /// The multiple.
    pub scale: Int,
    /// The unit vector, as mode numbers from the outermost inwards: `[1, 0]` is entry 0 of entry 1, written `1@0@1`.
    /// Empty for a plain number.
    pub basis: Vec<usize>,
}

impl Stride {
    /// A plain number.
    pub fn int(scale: Int) -> Stride {
        Stride { scale, basis: Vec::new() }
    }

    /// The number that it is, if it is a plain one.
    pub fn as_int(&self) -> Option<&Int> {
        self.basis.is_empty().then_some(&self.scale)
    }

    /// `self * n`
    pub fn times(&self, n: &Int) -> Result<Stride> {
        Ok(Stride { scale: self.scale.mul(n)?, basis: self.basis.clone() })
    }
}

impl From<i64> for Stride {
    fn from(n: i64) -> Stride {
        Stride::int(Int::from(n))
    }
}

impl fmt::Display for Stride {
    /// `4`, `4@0`, `1@0@1` (outermost mode last)
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.scale, self.basis.is_empty()) {
            (Int::Sym(p), false) if p.terms().count() > 1 => write!(f, "({p})")?,
            (scale, _) => scale.fmt(f)?,
        }
        self.basis.iter().rev().try_for_each(|&k| match k.checked_sub(NAMED).and_then(|k| NAMED_UNITS.get(k)) {
            Some(name) => write!(f, "@{name}"),
            None => write!(f, "@{k}"),
        })
    }
}

/// `shape:stride`, congruent. A function: a coordinate's entries times the strides, summed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    shape: IntTuple,
    stride: Tuple<Stride>,
}

impl Layout {
    /// Shape and stride must have one nesting, extents must not be negative.
    pub fn new(shape: IntTuple, stride: Tuple<Stride>) -> Result<Layout> {
        if !shape.congruent(&stride) {
            let message = format!("shape {shape} and stride {stride} are nested differently");
            return Err(LayoutError::new(ErrorKind::Profile, "layout", message)
                .with_help("give each extent of the shape its stride, in the same parentheses"));
        }
        if let Some(n) = shape.leaves().into_iter().find(|n| n.bounds().1.is_some_and(|hi| hi < 0)) {
            let message = format!("extent {n} of shape {shape} is negative");
            return Err(LayoutError::new(ErrorKind::Domain, "layout", message));
        }
        Ok(Layout { shape, stride })
    }

    /// A shape with strides of the same nesting, by construction.
    pub(crate) fn congruent(shape: IntTuple, stride: Tuple<Stride>) -> Layout {
        debug_assert!(shape.congruent(&stride), "{shape} and {stride}");
        Layout { shape, stride }
    }

    /// Other extents for the same strides.
    pub(crate) fn with_shape(&self, shape: IntTuple) -> Layout {
        Layout::congruent(shape, self.stride.clone())
    }

    /// One mode.
    pub fn leaf(extent: Int, stride: Stride) -> Layout {
        Layout { shape: Tuple::Leaf(extent), stride: Tuple::Leaf(stride) }
    }

    /// `n:1`
    pub fn vector(n: Int) -> Layout {
        Layout::leaf(n, Stride::from(1))
    }

    /// `1:0`, which is the unit of concatenation.
    pub fn unit() -> Layout {
        Layout::leaf(Int::ONE, Stride::from(0))
    }

    /// The layouts as modes of one.
    pub fn of_modes(modes: Vec<Layout>) -> Layout {
        let (shape, stride) = modes.into_iter().map(|m| (m.shape, m.stride)).unzip();
        Layout { shape: Tuple::Node(shape), stride: Tuple::Node(stride) }
    }

    /// The extents.
    pub fn shape(&self) -> &IntTuple {
        &self.shape
    }

    /// The strides.
    pub fn stride(&self) -> &Tuple<Stride> {
        &self.stride
    }

    /// Modes at the top level.
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// Levels of nesting.
    pub fn depth(&self) -> usize {
        self.shape.depth()
    }

    /// Whether it is a single extent with a stride.
    pub fn is_leaf(&self) -> bool {
        self.shape.is_leaf()
    }

    /// The modes at the top level; of a leaf: itself.
    pub fn modes(&self) -> Vec<Layout> {
        let pairs = self.shape.modes().iter().zip(self.stride.modes());
        pairs.map(|(s, d)| Layout { shape: s.clone(), stride: d.clone() }).collect()
    }

    /// Mode `k`, if there is one.
    pub fn mode(&self, k: usize) -> Option<Layout> {
        let (s, d) = (self.shape.modes().get(k)?, self.stride.modes().get(k)?);
        Some(Layout { shape: s.clone(), stride: d.clone() })
    }

    /// Extents and strides from left to right, without their nesting.
    pub fn leaves(&self) -> Vec<(&Int, &Stride)> {
        self.shape.leaves().into_iter().zip(self.stride.leaves()).collect()
    }

    /// Number of coordinates.
    pub fn size(&self) -> Result<Int> {
        self.shape.leaves().into_iter().try_fold(Int::ONE, |n, s| n.mul(s))
    }

    /// Whether all extents and strides are known now.
    pub fn is_static(&self) -> bool {
        self.leaves().iter().all(|(s, d)| s.as_const().is_some() && d.scale.as_const().is_some())
    }

    /// Whether it has strides that are coordinates.
    pub fn has_basis(&self) -> bool {
        self.stride.leaves().iter().any(|d| !d.basis.is_empty())
    }

    /// `1 + sum (extent - 1) * |stride|`: elements to allocate. Of strides that are coordinates: the size of the box
    /// that the coordinates lie in. An empty layout needs none. Symbolic strides must have a known sign.
    pub fn cosize(&self, cx: &Cx) -> Result<Int> {
        // One sum for each unit, plain numbers included.
        let mut sums: Vec<(&[usize], Int)> = Vec::new();
        for (s, d) in self.leaves() {
            if s.is(0) {
                return Ok(Int::ZERO);
            }
            if s.is(1) {
                continue;
            }
            let negative = !cx.require("cosize", crate::Condition::Le(Int::ZERO, d.scale.clone()))?;
            let step = if negative { d.scale.neg()? } else { d.scale.clone() };
            let reach = s.sub(&Int::ONE)?.mul(&step)?;
            match sums.iter_mut().find(|(unit, _)| *unit == d.basis) {
                Some((_, sum)) => *sum = sum.add(&reach)?,
                None => sums.push((&d.basis, reach.add(&Int::ONE)?)),
            }
        }
        sums.iter().try_fold(Int::ONE, |product, (_, sum)| product.mul(sum))
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.shape, self.stride)
    }
}
