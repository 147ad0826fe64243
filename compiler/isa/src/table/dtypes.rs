//! The sets of dtypes that PTO's tables keep coming back to (the sets at the head of `coverage/pto.txt`).

use ptoc_tensor::DType::{self, *};

/// What the A2A3 vector unit computes with.
pub(super) const A2: &[DType] = &[I16, I32, F16, F32];
/// What the A5 vector unit computes with.
pub(super) const A5: &[DType] = &[I8, U8, I16, U16, I32, U32, I64, U64, F16, BF16, F32];
/// What A5 moves, fills and takes windows of.
pub(super) const A5_MOVED: &[DType] = &[I8, U8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F8E4M3, F8E5M2];
/// A5 without the 8-bit types.
pub(super) const A5_16: &[DType] = &[I16, U16, I32, U32, I64, U64, F16, BF16, F32];
/// A5's division: no 8-bit types and no bf16.
pub(super) const A5_DIV: &[DType] = &[I16, U16, I32, U32, I64, U64, F16, F32];
/// Floats of the transcendental unit.
pub(super) const F: &[DType] = &[F16, F32];
/// Bitwise operations; masks are bits too, packed or not.
pub(super) const BITS: &[DType] = &[Bool, I8, U8, I16, U16, I32, U32];
/// Bits taken as numbers: shifts, and bitwise operations with a scalar.
pub(super) const INTS: &[DType] = &[I8, U8, I16, U16, I32, U32];
/// Shifts of a tile by a tile on A5.
pub(super) const INTS_64: &[DType] = &[I8, U8, I16, U16, I32, U32, I64, U64];
/// Everything of 1, 2 and 4 bytes.
pub(super) const UP_TO_32: &[DType] = &[I8, U8, I16, U16, I32, U32, F16, BF16, F32];
/// Everything of 2 and 4 bytes.
pub(super) const WIDTH_16_32: &[DType] = &[I16, U16, I32, U32, F16, BF16, F32];
/// A5's row sums and minima.
pub(super) const A5_ROW: &[DType] = &[I16, I32, I64, U64, F16, F32];
/// A5's row maxima.
pub(super) const A5_ROW_MAX: &[DType] = &[I8, U8, I16, I32, I64, U64, F16, F32];
/// TABS on A5.
pub(super) const A5_ABS: &[DType] = &[I8, I16, I32, F16, F32];
/// TNEG on A5.
pub(super) const A5_NEG: &[DType] = &[I16, U16, I32, U32, F16, BF16, F32];
/// TPOW on A2A3.
pub(super) const POW: &[DType] = &[I8, U8, I16, U16, I32, U32, F32];
/// TPOW on A5.
pub(super) const POW_A5: &[DType] = &[I8, U8, I16, U16, I32, U32, F16, BF16, F32];
/// TRECIP.
pub(super) const RECIP: &[DType] = &[I16, I32, F16, F32];
/// TRELU.
pub(super) const RELU: &[DType] = &[I32, F16, F32];
/// i32 alone.
pub(super) const I32_ONLY: &[DType] = &[I32];

/// TCVT on A2A3.
pub(super) const CVT_A2A3: &[(DType, DType)] = &[
    (F32, F32),
    (F32, F16),
    (F32, BF16),
    (F32, I16),
    (F32, I32),
    (F32, I64),
    (F16, F32),
    (F16, I8),
    (F16, U8),
    (F16, I16),
    (F16, I32),
    (BF16, F32),
    (BF16, I32),
    (I8, F16),
    (U8, F16),
    (I16, F16),
    (I16, F32),
    (I32, F32),
    (I32, I16),
    (I32, I64),
    (I64, F32),
    (I64, I32),
];

/// TCVT on A5.
pub(super) const CVT_A5: &[(DType, DType)] = &[
    (F32, F32),
    (F32, F16),
    (F32, BF16),
    (F32, I16),
    (F32, I32),
    (F32, I64),
    (F16, F16),
    (F16, F32),
    (F16, I8),
    (F16, U8),
    (F16, I16),
    (F16, I32),
    (BF16, F16),
    (BF16, F32),
    (BF16, I32),
    (I8, F16),
    (I8, I16),
    (I8, I32),
    (U8, F16),
    (U8, U16),
    (I16, F16),
    (I16, F32),
    (I16, U8),
    (I16, I32),
    (I16, U32),
    (I32, F32),
    (I32, U8),
    (I32, I16),
    (I32, U16),
    (I32, I64),
    (U32, U8),
    (U32, I16),
    (U32, U16),
    (I64, F32),
    (I64, I32),
    (F32, F8E4M3),
    (F32, F8E5M2),
    (F8E4M3, F32),
    (F8E5M2, F32),
];

/// TROWARGMAX and TROWARGMIN: index, source.
pub(super) const ROW_ARGS: &[&[DType]] =
    &[&[I32, F16], &[U32, F16], &[I32, F32], &[U32, F32], &[I32, I16], &[U32, I16], &[I32, I32], &[U32, I32]];
/// Their second form: value, index, source.
pub(super) const ROW_ARG_VALUES: &[&[DType]] = &[
    &[F16, I32, F16],
    &[F16, U32, F16],
    &[F32, I32, F32],
    &[F32, U32, F32],
    &[I16, I32, I16],
    &[I16, U32, I16],
    &[I32, I32, I32],
    &[I32, U32, I32],
];
/// TPARTARGMAX and TPARTARGMIN on A2A3: values, indices. Wide values have wide indices.
pub(super) const PART_ARGS: &[&[DType]] = &[
    &[F16, F16, F16, I16, I16, I16],
    &[F16, F16, F16, U16, U16, U16],
    &[F16, F16, F16, I32, I32, I32],
    &[F16, F16, F16, U32, U32, U32],
    &[F32, F32, F32, I32, I32, I32],
    &[F32, F32, F32, U32, U32, U32],
];
/// The same on A5.
pub(super) const PART_ARGS_A5: &[&[DType]] = &[
    &[F16, F16, F16, I16, I16, I16],
    &[F16, F16, F16, U16, U16, U16],
    &[F16, F16, F16, I32, I32, I32],
    &[F16, F16, F16, U32, U32, U32],
    &[F32, F32, F32, I16, I16, I16],
    &[F32, F32, F32, U16, U16, U16],
    &[F32, F32, F32, I32, I32, I32],
    &[F32, F32, F32, U32, U32, U32],
];
/// TCOLARGMAX and TCOLARGMIN on A2A3: index, source.
pub(super) const COL_ARGS: &[&[DType]] =
    &[&[I32, F16], &[U32, F16], &[I32, F32], &[U32, F32], &[I32, U16], &[U32, U16], &[I32, U32], &[U32, U32]];
/// TCOLARGMAX and TCOLARGMIN on A5.
pub(super) const COL_ARGS_A5: &[&[DType]] = &[
    &[I32, I8],
    &[U32, I8],
    &[I32, U8],
    &[U32, U8],
    &[I32, I16],
    &[U32, I16],
    &[I32, U16],
    &[U32, U16],
    &[I32, I32],
    &[U32, I32],
    &[I32, U32],
    &[U32, U32],
    &[I32, F16],
    &[U32, F16],
    &[I32, F32],
    &[U32, F32],
];

/// TCI.
pub(super) const RAMPS: &[DType] = &[I16, U16, I32, U32];
/// TGATHER on A2A3: result, source, index.
pub(super) const GATHERS: &[&[DType]] = &[
    &[I16, I16, I32],
    &[U16, U16, I32],
    &[I32, I32, I32],
    &[U32, U32, I32],
    &[F16, F16, I32],
    &[BF16, BF16, I32],
    &[F32, F32, I32],
];
/// TGATHER on A5.
pub(super) const GATHERS_A5: &[&[DType]] = &[
    &[I16, I16, I32],
    &[U16, U16, I32],
    &[I32, I32, I32],
    &[U32, U32, I32],
    &[F16, F16, I32],
    &[BF16, BF16, I32],
    &[F32, F32, I32],
    &[I16, I16, U32],
    &[U16, U16, U32],
    &[I32, I32, U32],
    &[U32, U32, U32],
    &[F16, F16, U32],
    &[BF16, BF16, U32],
    &[F32, F32, U32],
];
/// TGATHERB: result, source, byte offsets.
pub(super) const GATHERS_U32: &[&[DType]] = &[
    &[I8, I8, U32],
    &[U8, U8, U32],
    &[I16, I16, U32],
    &[U16, U16, U32],
    &[I32, I32, U32],
    &[U32, U32, U32],
    &[F16, F16, U32],
    &[BF16, BF16, U32],
    &[F32, F32, U32],
];
/// TSCATTER: destination, source, rows; those are as wide as the elements, and two bytes at least.
pub(super) const SCATTERS: &[&[DType]] = &[
    &[I8, I8, I16],
    &[I8, I8, U16],
    &[U8, U8, I16],
    &[U8, U8, U16],
    &[I16, I16, I16],
    &[I16, I16, U16],
    &[U16, U16, I16],
    &[U16, U16, U16],
    &[I32, I32, I32],
    &[I32, I32, U32],
    &[U32, U32, I32],
    &[U32, U32, U32],
    &[F16, F16, I16],
    &[F16, F16, U16],
    &[BF16, BF16, I16],
    &[BF16, BF16, U16],
    &[F32, F32, I32],
    &[F32, F32, U32],
];
/// TGATHER by a pattern: the bits of elements of the same size.
pub(super) const PICKS: &[&[DType]] = &[
    &[I8, I8],
    &[I8, U8],
    &[U8, I8],
    &[U8, U8],
    &[I16, I16],
    &[I16, U16],
    &[I16, F16],
    &[I16, BF16],
    &[U16, I16],
    &[U16, U16],
    &[U16, F16],
    &[U16, BF16],
    &[F16, I16],
    &[F16, U16],
    &[F16, F16],
    &[F16, BF16],
    &[BF16, I16],
    &[BF16, U16],
    &[BF16, F16],
    &[BF16, BF16],
    &[I32, I32],
    &[I32, U32],
    &[I32, F32],
    &[U32, I32],
    &[U32, U32],
    &[U32, F32],
    &[F32, I32],
    &[F32, U32],
    &[F32, F32],
];
/// TIMG2COL.
pub(super) const IMAGES: &[DType] = &[I8, F16, BF16, F32];
