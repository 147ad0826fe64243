//! Element-wise instructions: tile with tile, tile with scalar, unary, conversion, comparison, selection.

use super::dtypes::*;
use super::{COMPARISON, SCALAR, VEC, dst, src};
use crate::{
    BinOp::{self, *},
    DTypeRule, Instr, Mode, OperandSpec, PipeRule, Scratch, Sem, ShapeRule,
    UnOp::{self, *},
};
use ptoc_tensor::DType;

const TWO: &[OperandSpec] = &[dst(VEC), src("a", VEC), src("b", VEC)];
const WITH_SCALAR: &[OperandSpec] = &[dst(VEC), src("a", VEC), SCALAR];

/// What most of this group shares: Vec tiles of one valid shape, the vector pipe, in place where the target can.
const BASE: Instr = Instr {
    name: "",
    sem: Sem::Expand,
    operands: &[dst(VEC), src("a", VEC)],
    optional: 0,
    modes: &[],
    scalar_first: false,
    shape: ShapeRule::Same,
    dtypes: DTypeRule::Any,
    pipe: PipeRule::V,
    scratch: Scratch::None,
    in_place: true,
    updates: false,
    doc: "",
    meaning: "",
    source: "",
};

const fn binary(
    name: &'static str,
    op: BinOp,
    a2a3: &'static [DType],
    a5: &'static [DType],
    doc: &'static str,
) -> Instr {
    Instr {
        name,
        sem: Sem::Binary(op),
        operands: TWO,
        dtypes: DTypeRule::Same { a2a3, a5 },
        doc,
        source: "pto_isa 5.2",
        ..BASE
    }
}

const fn scalar(
    name: &'static str,
    op: BinOp,
    a2a3: &'static [DType],
    a5: &'static [DType],
    doc: &'static str,
) -> Instr {
    Instr {
        name,
        sem: Sem::BinaryScalar(op),
        operands: WITH_SCALAR,
        dtypes: DTypeRule::Same { a2a3, a5 },
        doc,
        source: "pto_isa 5.3",
        ..BASE
    }
}

/// On bits: the scalar is first spread over the destination, which must not be the source for that reason.
const fn bits_scalar(name: &'static str, op: BinOp, doc: &'static str) -> Instr {
    Instr { in_place: false, ..scalar(name, op, INTS, INTS, doc) }
}

const fn unary(name: &'static str, op: UnOp, a2a3: &'static [DType], a5: &'static [DType], doc: &'static str) -> Instr {
    Instr { name, sem: Sem::Unary(op), dtypes: DTypeRule::Same { a2a3, a5 }, doc, source: "pto_isa 5.2", ..BASE }
}

pub(super) const ROWS: &[Instr] = &[
    binary("TADD", Add, A2, A5, "Adds two tiles."),
    binary("TSUB", Sub, A2, A5, "Subtracts one tile from another."),
    binary("TMUL", Mul, A2, A5_16, "Multiplies two tiles element by element."),
    binary("TDIV", Div, F, A5_DIV, "Divides; an integer x / 0 is all ones."),
    binary("TMAX", Max, A2, A5, "Larger of two; NaN if either is NaN."),
    binary("TMIN", Min, A2, A5, "Smaller of two; NaN if either is NaN."),
    binary("TAND", And, BITS, BITS, "Bitwise and; on masks, logical and."),
    binary("TOR", Or, BITS, BITS, "Bitwise or; on masks, logical or."),
    // A2A3 builds exclusive or from three operations: it wants a scratch tile and no overlap.
    Instr {
        scratch: Scratch::LikeSource,
        in_place: false,
        ..binary("TXOR", Xor, BITS, BITS, "Bitwise exclusive or; on masks, inequality.")
    },
    binary("TSHL", Shl, INTS, INTS_64, "Shifts left; by the width or more (the count is taken as unsigned) gives 0."),
    binary(
        "TSHR",
        Shr,
        INTS,
        INTS_64,
        "Shifts right, signed types with copies of the sign; by the width or more gives 0 or the sign.",
    ),
    scalar("TADDS", Add, A2, A5, "Adds a scalar."),
    scalar("TSUBS", Sub, A2, A5, "Subtracts a scalar."),
    scalar("TMULS", Mul, A2, A5_16, "Multiplies by a scalar."),
    Instr { scalar_first: true, ..scalar("TDIVS", Div, A2, A5_DIV, "Divides by a scalar, or a scalar by the tile.") },
    scalar("TMAXS", Max, A2, A5, "Larger of element and scalar."),
    scalar("TMINS", Min, A2, A5, "Smaller of element and scalar."),
    bits_scalar("TANDS", And, "Bitwise and with a scalar."),
    bits_scalar("TORS", Or, "Bitwise or with a scalar."),
    // Exclusive or takes the way of TXOR on A2A3, through a scratch tile.
    Instr { scratch: Scratch::LikeSource, ..bits_scalar("TXORS", Xor, "Bitwise exclusive or with a scalar.") },
    bits_scalar("TSHLS", Shl, "Shifts left by a scalar; by the width or more gives 0."),
    bits_scalar(
        "TSHRS",
        Shr,
        "Shifts right by a scalar, signed types with copies of the sign; by the width or more gives 0 or the sign.",
    ),
    Instr {
        name: "TEXPANDS",
        sem: Sem::Expand,
        operands: &[dst(&[crate::Loc::Vec, crate::Loc::Mat]), SCALAR],
        dtypes: DTypeRule::Same { a2a3: A5, a5: A5_MOVED },
        doc: "Fills a tile with a scalar.",
        source: "pto_isa 5.3",
        ..BASE
    },
    unary("TABS", Abs, F, A5_ABS, "Absolute value."),
    unary("TNEG", Neg, A2, A5_NEG, "Negates."),
    unary("TNOT", Not, BITS, BITS, "Bitwise complement; on masks, logical not."),
    unary("TRELU", Relu, RELU, RELU, "Replaces what is negative by 0; NaN stays."),
    unary("TEXP", Exp, F, F, "Exponential function."),
    unary("TLOG", Log, F, F, "Natural logarithm."),
    unary("TSQRT", Sqrt, F, F, "Square root, correctly rounded."),
    unary("TRSQRT", Rsqrt, F, F, "Reciprocal square root: two rounded operations."),
    // A2A3 computes it in steps and reads the source again: no overlap.
    Instr {
        in_place: false,
        ..unary("TRECIP", Recip, RECIP, RECIP, "Reciprocal; of integers towards zero, of 0 all ones.")
    },
    Instr {
        name: "TCVT",
        sem: Sem::Convert,
        modes: &[
            Mode {
                words: &["Rint", "Round", "Floor", "Ceil", "Trunc", "Odd"],
                optional: true,
                doc: "rounding to nearest even, to nearest with ties away from 0, down, up, towards 0, or to the odd \
                      neighbour; from float to integer Trunc if not said, else Rint",
            },
            Mode {
                words: &["saturate = true", "saturate = false"],
                optional: true,
                doc: "what is too large, infinities too, becomes the largest value of an integer, or the largest finite one of a float \
                      of 8 or 16 bits; or not (then it is infinite, and of an integer the low bits stay); from float to integer, and \
                      to an 8-bit float, true if not said, else false",
            },
        ],
        dtypes: DTypeRule::Pairs { a2a3: CVT_A2A3, a5: CVT_A5 },
        in_place: false,
        doc: "Converts to the destination's dtype, with a rounding mode and optional saturation. Of one dtype to itself every value stays as it \
              is, in each mode: PTO's pages call it a cast, and a cast rounds to what the destination has.",
        source: "pto_isa 5.2",
        ..BASE
    },
    Instr {
        name: "TCMP",
        sem: Sem::Compare,
        modes: &[COMPARISON],
        operands: &[dst(VEC), src("a", VEC), src("b", VEC)],
        dtypes: DTypeRule::Mask { a2a3: F, a2a3_eq_only: I32_ONLY, a5: A5 },
        in_place: false,
        doc: "Compares two tiles; the result is a mask (packed bits on the device).",
        source: "pto_isa 5.2",
        ..BASE
    },
    Instr {
        name: "TSEL",
        sem: Sem::Select,
        operands: &[dst(VEC), src("mask", VEC), src("a", VEC), src("b", VEC)],
        dtypes: DTypeRule::Mask { a2a3: WIDTH_16_32, a2a3_eq_only: &[], a5: A5 },
        doc: "Takes each element from one of two tiles, as a mask says.",
        source: "pto_isa 5.2",
        ..BASE
    },
];
