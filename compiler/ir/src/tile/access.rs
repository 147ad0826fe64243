//! Loop nests over memory: what `copy` and `mma` are in tile IR, and what a TLOAD or TSTORE becomes when a window of a
//! tensor or a tile is more than rows and columns at fixed distances (nested modes, tables, packed elements, swizzles).
//!
//! A nest has one *axis* for each leaf of the layouts that met; both sides and all guards are affine in the axes, so
//! whatever the layout algebra makes of a partition arrives here as numbers. A *point* is one value for each axis, from
//! 0 up to below its extent; a nest with an empty axis has none, one without axes a single one. Axis 0 is the fastest
//! of a mode, as everywhere in layouts; the order of axes has no meaning for a copy.
//!
//! **Exactness.** Affine functions are evaluated without overflow; what does not fit 64 bits lies outside everything.
//! Whoever makes a nest has proved, or checks before it, that the places which are touched are inside, that extents are
//! not negative, and that no two of the places meet (below). The interpreter verifies all of it and ends the run;
//! machine code need not.

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
    /// Elements of this dtype, little-endian: number n is the `size` bytes from byte `n * size` of the tensor, all of
    /// them inside. The tensor's own dtype, or another (`recast`) of whatever width. As `bool`, every byte but 0 is
    /// true.
    Whole(DType),
    /// Half bytes, zero-extended: number n is the low half of byte `n / 2` for even n, the high one for odd n. A tile
    /// holds them as `u8`. Read only.
    U4,
    /// The same half bytes, sign-extended. A tile holds them as `i8`. Read only.
    I4,
}

impl Elem {
    /// The dtype of the element once it is read.
    pub fn dtype(self) -> DType {
        match self {
            Elem::Whole(dtype) => dtype,
            Elem::U4 => DType::U8,
            Elem::I4 => DType::I8,
        }
    }

    /// Half number `index` of a byte, in the low bits of the element's dtype; a whole element as it is.
    pub fn half(self, byte: u64, index: i64) -> u64 {
        if matches!(self, Elem::Whole(_)) {
            return byte;
        }
        let half = byte >> (4 * index.rem_euclid(2)) & 0xf;
        // Of a signed half the top bit counts -8.
        if self == Elem::I4 && half >= 8 { half | 0xf0 } else { half }
    }

    /// Bits that it takes in the tensor.
    pub fn bits(self) -> u32 {
        match self {
            Elem::Whole(dtype) => 8 * dtype.size() as u32,
            Elem::U4 | Elem::I4 => 4,
        }
    }
}

/// A table that replaces an axis' index: the axis contributes `entry * stride` elements, where
/// `entry = table[at]` and `at` is affine in the axes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// A tensor of integers (any but `bool`), read in its own dtype.
    pub tensor: TensorId,
    /// Element of the table; inside it wherever it is looked up.
    pub at: Affine,
    /// Elements of the data tensor for each unit of the entry.
    pub stride: Value,
    /// Entries lie in `0..extent`, else `oob` says what happens.
    pub extent: Value,
    /// `Undefined`: the launch ends with PA-1071. `Clamp`: the nearest of `0..extent`; `Wrap`: the entry modulo the
    /// extent; both end the launch with PA-1071 if the extent is not positive. `Zero` (of what is read only): there is
    /// no element; a copy takes its `fill`, and without one leaves the destination alone; a matrix product takes 0.
    /// Tables are looked up in order, and the first that has no entry decides.
    pub oob: Oob,
}

/// One side of a nest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NestAccess {
    /// Elements of (a window of) a tile. Row and column are relative to the window and inside its capacity; the valid
    /// shape does not bound them.
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
        /// What an element is; `at`, the strides and the swizzle count in it.
        elem: Elem,
        /// Number of the element. Inside the tensor wherever it is touched (proved, or checked before).
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

/// Moves an element from `src` to `dst` at every point of the nest. Both sides have one dtype.
///
/// At a point where all guards hold, the source is read and the destination written. Where one fails, nothing of the
/// source is touched, not even its tables: the destination becomes `fill`, or stays as it is if there is none. So with
/// a `fill` the destination is inside everywhere, without one only where the guards hold.
///
/// The points have no order: no two of them write one element, and none reads (through a table either) bytes that
/// another one writes. The interpreter ends a run that does with PA-1072.
#[derive(Clone, PartialEq, Debug)]
pub struct Copy {
    /// Extent of each axis, at least 0; none: one element.
    pub extents: Vec<Value>,
    /// Where to.
    pub dst: NestAccess,
    /// Where from.
    pub src: NestAccess,
    /// All must hold.
    pub guards: Vec<Guard>,
    /// Written where a guard fails (`pad = Zero`) or a table says so; without it such elements are left alone. Of the
    /// dtype of the destination.
    pub fill: Option<Value>,
    /// Whether it writes every element of the destination window's valid part. Then it starts the tile's life; else
    /// what it does not write keeps its value, or stays poison. Always false for a tensor.
    pub covers: bool,
}

/// `acc[m, n] = fma(a[m, k], b[n, k], acc[m, n])` for ascending `k`, in the accumulator's precision: f32 for f16, bf16
/// and f32 operands, wrapping i32 for i8; an f16 accumulator computes each step in f32 and rounds after it. The dtypes
/// are those of TMATMUL; unlike it, the product starts from what the accumulator holds.
///
/// Axes: those of `m`, then `n`, then `k`; each list counts colexicographically (its first axis fastest), which for `k`
/// is the order of accumulation. An access has the constant 0 as stride along axes that it does not see: `acc` those of
/// `k`, `a` those of `n`, `b` those of `m`. No two points of `m` and `n` are one element of the accumulator, and none
/// is read as an operand. An operand that a table does not find is 0.
#[derive(Clone, PartialEq, Debug)]
pub struct Mma {
    /// Extents of the rows' axes.
    pub m: Vec<Value>,
    /// Extents of the columns' axes.
    pub n: Vec<Value>,
    /// Extents of the contraction's axes.
    pub k: Vec<Value>,
    /// Read and written.
    pub acc: NestAccess,
    /// Rows by k.
    pub a: NestAccess,
    /// Columns by k.
    pub b: NestAccess,
}
