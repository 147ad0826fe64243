//! Element-wise instructions: tile with tile, tile with scalar, unary, conversion, comparison, selection.

use super::{COMPARISON, SCALAR, VEC, dst, src};
use crate::{
    BinOp::{self, *},
    DTypeRule, Instr, InstrMode, OperandSpec, PipeRule, Scratch, Sem, ShapeRule,
    UnOp::{self, *},
};

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

const fn binary(name: &'static str, op: BinOp, doc: &'static str) -> Instr {
    Instr { name, sem: Sem::Binary(op), operands: TWO, dtypes: DTypeRule::Same, doc, source: "pto_isa 5.2", ..BASE }
}

const fn scalar(name: &'static str, op: BinOp, doc: &'static str) -> Instr {
    Instr {
        name,
        sem: Sem::BinaryScalar(op),
        operands: WITH_SCALAR,
        dtypes: DTypeRule::Same,
        doc,
        source: "pto_isa 5.3",
        ..BASE
    }
}

/// On bits: the scalar is first spread over the destination, which must not be the source for that reason.
const fn bits_scalar(name: &'static str, op: BinOp, doc: &'static str) -> Instr {
    Instr { in_place: false, ..scalar(name, op, doc) }
}

const fn unary(name: &'static str, op: UnOp, doc: &'static str) -> Instr {
    Instr { name, sem: Sem::Unary(op), dtypes: DTypeRule::Same, doc, source: "pto_isa 5.2", ..BASE }
}

pub(super) const ROWS: &[Instr] = &[
    binary("TADD", Add, "Adds two tiles."),
    binary("TSUB", Sub, "Subtracts one tile from another."),
    binary("TMUL", Mul, "Multiplies two tiles element by element."),
    binary("TDIV", Div, "Divides; an integer x / 0 is all ones."),
    binary("TMAX", Max, "Larger of two; NaN if either is NaN."),
    binary("TMIN", Min, "Smaller of two; NaN if either is NaN."),
    binary("TAND", And, "Bitwise and; on masks, logical and."),
    binary("TOR", Or, "Bitwise or; on masks, logical or."),
    // A2A3 builds exclusive or from three operations: it wants a scratch tile and no overlap.
    Instr {
        scratch: Scratch::LikeSource,
        in_place: false,
        ..binary("TXOR", Xor, "Bitwise exclusive or; on masks, inequality.")
    },
    binary("TSHL", Shl, "Shifts left; by the width or more (the count is taken as unsigned) gives 0."),
    binary(
        "TSHR",
        Shr,
        "Shifts right, signed types with copies of the sign; by the width or more gives 0 or the sign.",
    ),
    scalar("TADDS", Add, "Adds a scalar."),
    scalar("TSUBS", Sub, "Subtracts a scalar."),
    scalar("TMULS", Mul, "Multiplies by a scalar."),
    Instr { scalar_first: true, ..scalar("TDIVS", Div, "Divides by a scalar, or a scalar by the tile.") },
    scalar("TMAXS", Max, "Larger of element and scalar."),
    scalar("TMINS", Min, "Smaller of element and scalar."),
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
        dtypes: DTypeRule::Same,
        doc: "Fills a tile with a scalar.",
        source: "pto_isa 5.3",
        ..BASE
    },
    unary("TABS", Abs, "Absolute value."),
    unary("TNEG", Neg, "Negates."),
    unary("TNOT", Not, "Bitwise complement; on masks, logical not."),
    unary("TRELU", Relu, "Replaces what is negative by 0; NaN stays."),
    unary("TEXP", Exp, "Exponential function."),
    unary("TLOG", Log, "Natural logarithm."),
    unary("TSQRT", Sqrt, "Square root, correctly rounded."),
    unary("TRSQRT", Rsqrt, "Reciprocal square root: two rounded operations."),
    // A2A3 computes it in steps and reads the source again: no overlap.
    Instr { in_place: false, ..unary("TRECIP", Recip, "Reciprocal; of integers towards zero, of 0 all ones.") },
    Instr {
        name: "TCVT",
        sem: Sem::Convert,
        modes: &[
            InstrMode {
                words: &["Rint", "Round", "Floor", "Ceil", "Trunc", "Odd"],
                optional: true,
                doc: "rounding to nearest even, to nearest with ties away from 0, down, up, towards 0, or to the odd \
                      neighbour; from float to integer Trunc if not said, else Rint",
            },
            InstrMode {
                words: &["saturate = true", "saturate = false"],
                optional: true,
                doc: "what is too large, infinities too, becomes the largest value of an integer, or the largest \
                      finite one of a float of 8 or 16 bits; or not (then it is infinite, and of an integer the low \
                      bits stay); from float to integer, and to an 8-bit float, true if not said, else false",
            },
        ],
        dtypes: DTypeRule::Pairs,
        in_place: false,
        doc: "Converts to the destination's dtype, with a rounding mode and optional saturation. Of one dtype to \
              itself every value stays as it is, in each mode: PTO's pages call it a cast, and a cast rounds to what \
              the destination has.",
        source: "pto_isa 5.2",
        ..BASE
    },
    Instr {
        name: "TCMP",
        sem: Sem::Compare,
        modes: &[COMPARISON],
        operands: &[dst(VEC), src("a", VEC), src("b", VEC)],
        dtypes: DTypeRule::Mask,
        in_place: false,
        doc: "Compares two tiles; the result is a mask (packed bits on the device).",
        source: "pto_isa 5.2",
        ..BASE
    },
    Instr {
        name: "TSEL",
        sem: Sem::Select,
        operands: &[dst(VEC), src("mask", VEC), src("a", VEC), src("b", VEC)],
        dtypes: DTypeRule::Mask,
        doc: "Takes each element from one of two tiles, as a mask says.",
        source: "pto_isa 5.2",
        ..BASE
    },
];
