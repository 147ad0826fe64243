//! Windows: what layouts become when they meet memory. A window is an affine map from the leaves of its modes to a few
//! quantities (the element's number; a tile's row and column; an entry of a table; a coordinate that must stay below a
//! bound), so that slicing, tiling, partitioning and predication are one mechanism.

use crate::thread_pattern::ThreadPattern;
use ptoc_ir::tile::{Elem, TensorId, Value};
use ptoc_isa::Oob;
use ptoc_layout::{Operand, Swizzle, TiledMma, Tuple};
use ptoc_tensor::DType;
use std::sync::Arc;

/// Something that moves when an index does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Number of the element in its tensor. Always the first quantity of a [`View`].
    Offset,
    /// Row of a tile. Always the first quantity of a tile's window.
    Row,
    /// Column of a tile, the second.
    Col,
    /// Number of an entry of a table; the entry times its stride is added to the offset.
    Entry(TableLookup),
    /// A coordinate: the element exists only where it is below this bound.
    Guard(Value),
    /// Coordinate 0 or 1 of the element in the block that a tiled MMA partitions: what a product goes by.
    Coord(usize),
}

/// How an entry of a table counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableLookup {
    /// The table.
    pub tensor: TensorId,
    /// Elements for each unit of the entry.
    pub stride: Value,
    /// Entries lie in `0..extent`.
    pub extent: Value,
    /// What else happens.
    pub oob: Oob,
}

/// One axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// Its length.
    pub extent: Value,
    /// What a step adds, one for each quantity of the window.
    pub by: Vec<Value>,
}

/// One mode of a window: its leaves in layout order, the first fastest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WindowMode {
    /// Valid extent: the indices `0..extent` exist. At most the product of the leaves' extents.
    pub extent: Value,
    /// Static bound of the extent, where one is known (a block's size, a constant). For a mode of several leaves it is
    /// the product of their extents.
    pub cap: Option<u32>,
    /// The leaves.
    pub tree: Tuple<Leaf>,
    /// Of a block that the end of an axis cuts: how many indices of the leaves come before its first one. Only windows
    /// of [`Val::Cut`](crate::Val::Cut) have such modes.
    pub skip: Option<Value>,
}

impl WindowMode {
    /// The axis, if the mode is a single one.
    pub fn plain(&self) -> Option<&Leaf> {
        match &self.tree {
            Tuple::Leaf(l) => Some(l),
            Tuple::Node(_) => None,
        }
    }
}

/// Which operand of which MMA a partition belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// The MMA.
    pub mma: Arc<TiledMma>,
    /// The operand.
    pub operand: Operand,
}

/// The affine map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WindowMap {
    /// What is computed.
    pub quantities: Vec<Quantity>,
    /// Each quantity where all indices are 0.
    pub starts: Vec<Value>,
    /// Modes, as the author counts them.
    pub modes: Vec<WindowMode>,
    /// The partition by a tiled MMA that it is.
    pub pattern: Option<Pattern>,
    /// How a block was handed out to threads, if this is a thread's part of it.
    pub threads: Option<Arc<ThreadPattern>>,
}

impl WindowMap {
    /// A window that is no partition.
    pub fn new(quantities: Vec<Quantity>, starts: Vec<Value>, modes: Vec<WindowMode>) -> WindowMap {
        WindowMap { quantities, starts, modes, pattern: None, threads: None }
    }

    /// Bounds of coordinates, with the number of the quantity.
    pub fn guards(&self) -> impl Iterator<Item = (usize, Value)> {
        self.quantities.iter().enumerate().filter_map(|(q, k)| match k {
            Quantity::Guard(bound) => Some((q, *bound)),
            _ => None,
        })
    }

    /// Whether every mode has one axis, and there are neither tables nor guards.
    pub fn is_strided(&self) -> bool {
        self.quantities.len() == 1 && self.modes.iter().all(|m| m.plain().is_some())
    }

    /// All axes, mode by mode.
    pub fn leaves(&self) -> Vec<&Leaf> {
        self.modes.iter().flat_map(|m| m.tree.leaves()).collect()
    }

    /// Rows and columns of all elements of a window of a tile, if they are numbers and not too many.
    pub fn elements(&self, number: impl Fn(Value) -> Option<i64>) -> Option<Vec<(i64, i64)>> {
        const MOST: usize = 1 << 16;
        let starts: Vec<i64> = self.starts.iter().map(|v| number(*v)).collect::<Option<_>>()?;
        let mut at = vec![starts];
        for m in &self.modes {
            let valid = usize::try_from(number(m.extent)?).ok()?;
            let mut steps = vec![vec![0i64; self.quantities.len()]];
            for l in m.tree.leaves() {
                // A mode of one axis is as long as it is valid.
                let n = if matches!(m.tree, Tuple::Leaf(_)) { m.extent } else { l.extent };
                let n = number(n)?;
                let by: Vec<i64> = l.by.iter().map(|v| number(*v)).collect::<Option<_>>()?;
                if usize::try_from(n).ok()?.checked_mul(steps.len())? > MOST {
                    return None;
                }
                let next = |i: i64| move |(s, b): (&i64, &i64)| s.checked_add(b.checked_mul(i)?);
                let all = (0..n).flat_map(|i| {
                    let by = &by;
                    steps.iter().map(move |s| s.iter().zip(by).map(next(i)).collect::<Option<Vec<i64>>>())
                });
                steps = all.collect::<Option<_>>()?;
            }
            steps.truncate(valid);
            if steps.len().checked_mul(at.len())? > MOST {
                return None;
            }
            let sum =
                |a: &Vec<i64>, s: &Vec<i64>| a.iter().zip(s).map(|(a, s)| a.checked_add(*s)).collect::<Option<_>>();
            at = at.iter().flat_map(|a| steps.iter().map(move |s| sum(a, s))).collect::<Option<_>>()?;
        }
        let mut out = Vec::new();
        'points: for p in at {
            for (q, bound) in self.guards() {
                if p[q] >= number(bound)? {
                    continue 'points;
                }
            }
            out.push((p[0], p[1]));
        }
        Some(out)
    }
}

/// A window of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// The tensor.
    pub tensor: TensorId,
    /// Element type, as a tile of it has.
    pub dtype: DType,
    /// How bytes become elements.
    pub elem: Elem,
    /// Applied to the element's number.
    pub swizzle: Option<Swizzle>,
    /// Where the elements are.
    pub window: WindowMap,
}

impl View {
    /// Number of the first element (before any table adds to it).
    pub fn offset(&self) -> Value {
        self.window.starts[0]
    }

    /// Elements from one index of mode `k` to the next, if the mode is a single axis.
    pub fn stride(&self, k: usize) -> Option<Value> {
        self.window.modes.get(k)?.plain().map(|l| l.by[0])
    }

    /// Whether elements have fixed places in memory: rows and columns at fixed distances, nothing looked up or masked.
    pub fn is_strided(&self) -> bool {
        self.window.is_strided() && self.swizzle.is_none() && matches!(self.elem, Elem::Whole(d) if d == self.dtype)
    }
}

impl std::ops::Deref for View {
    type Target = WindowMap;

    fn deref(&self) -> &WindowMap {
        &self.window
    }
}
