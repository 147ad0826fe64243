//! Loop nests over memory: what `copy` and `mma` are in tile IR, and what a TLOAD or TSTORE becomes when a window of a
//! tensor or a tile is more than rows and columns at fixed distances (nested modes, tables, packed elements, swizzles).
//!
//! A nest has one *axis* for each leaf of the layouts that met; both sides and all guards are affine in the axes, so
//! whatever the layout algebra makes of a partition arrives here as numbers. Axis 0 is the fastest of a mode, as
//! everywhere in layouts; the order of axes has no meaning for a copy.

use super::{TensorId, TileRef, Value};
use ptoc_isa::Oob;
use ptoc_layout::Swizzle;
use ptoc_tensor::DType;

/// `start + sum(strides[i] * axis[i])`, all `index` values; one stride an axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Affine {
    /// The value where all axes are 0.
    pub start: Value,
    /// One an axis.
    pub strides: Vec<Value>,
}

/// How the bytes of a tensor are read or written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Elem {
    /// Whole elements of this dtype, little-endian, wherever they begin: the tensor's own dtype or `recast`.
    Whole(DType),
    /// Half bytes, low one first, zero-extended; a tile holds them as `u8`. Read only.
    U4,
    /// Half bytes, low one first, sign-extended; a tile holds them as `i8`. Read only.
    I4,
}

/// A table that replaces an axis' index: the axis contributes `entry * stride` elements, where
/// `entry = table[at]` and `at` is affine in the axes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// A tensor of `i32`, `u32`, `i64` or `index`-like integers.
    pub tensor: TensorId,
    /// Element of the table.
    pub at: Affine,
    /// Elements of the data tensor for each unit of the entry.
    pub stride: Value,
    /// Entries lie in `0..extent`, else `oob` says what happens.
    pub extent: Value,
    /// `Undefined`: the launch ends with PA-1071; `Zero`: the element is the copy's `fill` (a source only);
    /// `Clamp`, `Wrap`: as for MGATHER.
    pub oob: Oob,
}

/// One side of a nest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// Elements of (a window of) a tile. Row and column are relative to the window and inside its capacity.
    Tile {
        /// The window.
        tile: TileRef,
        /// Row of the element.
        row: Affine,
        /// Column of the element.
        col: Affine,
    },
    /// Elements of a tensor: number `swizzle(at + sum of the tables' contributions)`.
    Tensor {
        /// The tensor.
        tensor: TensorId,
        /// What an element is; `at` counts in it.
        elem: Elem,
        /// Number of the element. Inside the tensor wherever the guards hold (proved, or checked before).
        at: Affine,
        /// Applied to the sum.
        swizzle: Option<Swizzle>,
        /// Contributions that are looked up.
        tables: Vec<Table>,
    },
}

/// The element is moved only where `at < bound` (tails: the identity tensor's coordinates against its shape).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guard {
    /// A coordinate.
    pub at: Affine,
    /// Its bound.
    pub bound: Value,
}

/// Moves every element of the nest from `src` to `dst`. The two sides never overlap (arguments do not alias; a copy
/// within one tile is refused). Both sides have one dtype.
#[derive(Clone, PartialEq, Debug)]
pub struct Copy {
    /// Extent of each axis, at least 0; none: one element.
    pub extents: Vec<Value>,
    /// Where to.
    pub dst: Access,
    /// Where from.
    pub src: Access,
    /// All must hold.
    pub guards: Vec<Guard>,
    /// Written where a guard fails (`pad = Zero`) or a table says so; without it such elements are left alone.
    pub fill: Option<Value>,
    /// Does it write every element of the destination tile's valid window? (So it starts the tile's life; only then
    /// may the tile be uninitialised before.) Always false for a tensor.
    pub covers: bool,
}

/// `acc[m, n] = fma(a[m, k], b[n, k], acc[m, n])` for ascending `k`, in the accumulator's precision: f32 for f16, bf16
/// and f32 operands, f64 for f64, wrapping i32 for integers; an f16 accumulator rounds after each step.
/// Axes: those of `m`, then `n`, then `k`; each list counts colexicographically (its first axis fastest), which for `k`
/// is the order of accumulation. An access has zero strides for axes that it does not see.
#[derive(Clone, PartialEq, Debug)]
pub struct Mma {
    /// Extents of the rows' axes.
    pub m: Vec<Value>,
    /// Extents of the columns' axes.
    pub n: Vec<Value>,
    /// Extents of the contraction's axes.
    pub k: Vec<Value>,
    /// Read and written.
    pub acc: Access,
    /// Rows by k.
    pub a: Access,
    /// Columns by k.
    pub b: Access,
}
