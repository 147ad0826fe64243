//! Functions of one number that PTO has no instruction for: the language applies them to tiles, a target carries them
//! out as a sequence of its vector instructions. Their programs are in [`crate::math`].

use super::{VEC, dst, src};
use crate::{DTypeRule, Instr, OperandSpec, PipeRule, Scratch, Sem, ShapeRule, UnOp};

/// What stands as the source of a row that PTO does not have.
pub(super) const OWN: &str = "the language's own";

const ONE: &[OperandSpec] = &[dst(VEC), src("a", VEC)];

const fn function(name: &'static str, op: UnOp, doc: &'static str) -> Instr {
    Instr {
        name,
        sem: Sem::Unary(op),
        operands: ONE,
        optional: 0,
        modes: &[],
        scalar_first: false,
        shape: ShapeRule::Same,
        dtypes: DTypeRule::Same,
        pipe: PipeRule::V,
        scratch: Scratch::None,
        in_place: true,
        updates: false,
        doc,
        meaning: "",
        source: OWN,
    }
}

pub(super) const ROWS: &[Instr] = &[
    function("TSIN", UnOp::Sin, "Sine. PTO has no such instruction; `sin(t)` is this one."),
    function("TCOS", UnOp::Cos, "Cosine. PTO has no such instruction; `cos(t)` is this one."),
    function("TTANH", UnOp::Tanh, "Hyperbolic tangent. PTO has no such instruction; `tanh(t)` is this one."),
    function("TERF", UnOp::Erf, "Gauss error function. PTO has no such instruction; `erf(t)` is this one."),
    function(
        "TFLOOR",
        UnOp::Floor,
        "Largest whole number not above the element, in its dtype; `floor(t)` is this one.",
    ),
    function("TCEIL", UnOp::Ceil, "Smallest whole number not below the element, in its dtype; `ceil(t)` is this one."),
    function("TTRUNC", UnOp::Trunc, "Whole part of the element, in its dtype; `trunc(t)` is this one."),
    function("TRINT", UnOp::Rint, "Nearest whole number, ties to even, in the element's dtype; `rint(t)` is this one."),
];
