//! Element-wise instructions of several operations: the row's expression is all that there is to say.

use super::{SCALAR, VEC, dst, src};
use crate::BinOp::{Add, And, Mul, Rem, Sub, Xor};
use crate::Expr::{self, Arg, Bin, Cmp, CmpMode, Convert, Fma, Number, Select, Un};
use crate::{CmpOp, DTypeRule, Instr, OperandKind, OperandSpec, PipeRule, Role, Scratch, Sem, ShapeRule, To, UnOp};
use ptoc_tensor::DType::F32;

/// The destination as it was (see [`Instr::updates`]).
const OLD: OperandSpec = src("old", VEC);
const SCALAR_F32: OperandSpec = OperandSpec { name: "scalar", role: Role::Src, kind: OperandKind::Scalar(Some(F32)) };

const TWO: &[OperandSpec] = &[dst(VEC), src("a", VEC), src("b", VEC)];
const THREE: &[OperandSpec] = &[dst(VEC), src("a", VEC), src("b", VEC), src("c", VEC)];
const TWO_OLD: &[OperandSpec] = &[dst(VEC), src("a", VEC), src("b", VEC), OLD];
const WITH_SCALAR: &[OperandSpec] = &[dst(VEC), src("a", VEC), SCALAR];
const SCALAR_OLD: &[OperandSpec] = &[dst(VEC), src("a", VEC), SCALAR, OLD];
const SCALAR_BETWEEN: &[OperandSpec] = &[dst(VEC), src("a", VEC), SCALAR, src("b", VEC)];

/// An element-wise row: Vec tiles of one valid shape, the vector pipe.
const fn row(name: &'static str, operands: &'static [OperandSpec], expr: &'static Expr, dtypes: DTypeRule) -> Instr {
    Instr {
        name,
        sem: Sem::Map(expr),
        operands,
        optional: 0,
        modes: &[],
        scalar_first: false,
        shape: ShapeRule::Same,
        dtypes,
        pipe: PipeRule::V,
        scratch: Scratch::None,
        in_place: true,
        updates: false,
        doc: "",
        meaning: "",
        source: "pto_isa 5.2",
    }
}

const A: &Expr = &Arg(1);
const B: &Expr = &Arg(2);
const C: &Expr = &Arg(3);
const ZERO: &Expr = &Number(0, 1);

/// The remainder with the sign of the dividend; exact.
const FMOD: &Expr = &Bin(Rem, A, B);
/// The remainder with the sign of the divisor: the other one and, if that is of the other sign, the divisor.
const REM: &Expr = &Select(
    &Bin(And, &Cmp(CmpOp::Ne, FMOD, ZERO), &Bin(Xor, &Cmp(CmpOp::Lt, FMOD, ZERO), &Cmp(CmpOp::Lt, B, ZERO))),
    &Bin(Add, FMOD, B),
    FMOD,
);
const LEAKY: &Expr = &Select(&Cmp(CmpOp::Gt, A, ZERO), A, &Bin(Mul, A, B));
const POWER: &Expr = &Expr::Pow(A, B);
const WIDE_A: &Expr = &Convert(A, To::Wide);
const WIDE_B: &Expr = &Convert(B, To::Wide);

pub(super) const ROWS: &[Instr] = &[
    Instr {
        scratch: Scratch::Remainder,
        doc: "Remainder with the sign of the divisor. Exact but for the last addition; an integer x rem 0 is x.",
        ..row("TREM", TWO, REM, DTypeRule::Same)
    },
    Instr {
        doc: "Remainder with the sign of the dividend, exact: C's fmod.",
        ..row("TFMOD", TWO, FMOD, DTypeRule::Same)
    },
    // PTO's form has a scratch tile on every target; what A5 does with it is not said.
    Instr {
        scratch: Scratch::LikeSource,
        in_place: false,
        doc: "Power: as C's pow; of integers wrapping, and a negative power as a quotient of 1.",
        ..row("TPOW", TWO, POWER, DTypeRule::Same)
    },
    // A2A3 selects by a mask that it keeps in scratch, and reads the source again.
    Instr {
        scratch: Scratch::Bytes,
        in_place: false,
        doc: "Scales what is not positive by the other tile.",
        ..row("TPRELU", TWO, LEAKY, DTypeRule::Same)
    },
    Instr {
        doc: "Adds three tiles, from the left.",
        ..row("TADDC", THREE, &Bin(Add, &Bin(Add, A, B), C), DTypeRule::Same)
    },
    Instr {
        doc: "Subtracts the second tile, then adds the third.",
        ..row("TSUBC", THREE, &Bin(Add, &Bin(Sub, A, B), C), DTypeRule::Same)
    },
    Instr {
        updates: true,
        doc: "Adds a product to the destination: one fused multiply-add.",
        ..row("TMULADDDST", TWO_OLD, &Fma(A, B, C), DTypeRule::Same)
    },
    Instr {
        updates: true,
        doc: "Multiplies the destination by one tile and adds another: one fused multiply-add.",
        ..row("TFUSEDMULADD", TWO_OLD, &Fma(A, C, B), DTypeRule::Same)
    },
    Instr {
        updates: true,
        doc: "As TFUSEDMULADD; what is negative becomes 0.",
        ..row("TFUSEDMULADDRELU", TWO_OLD, &Un(UnOp::Relu, &Fma(A, C, B)), DTypeRule::Same)
    },
    Instr {
        doc: "Difference; what is negative becomes 0.",
        ..row("TSUBRELU", TWO, &Un(UnOp::Relu, &Bin(Sub, A, B)), DTypeRule::Same)
    },
    Instr {
        doc: "Sum, what is negative becomes 0, then the narrower dtype: nearest even, saturating. Integers are added \
            in i32.",
        ..row("TADDRELUCONV", TWO, &Convert(&Un(UnOp::Relu, &Bin(Add, WIDE_A, WIDE_B)), To::Narrow), DTypeRule::Tuples)
    },
    Instr {
        doc: "Difference, what is negative becomes 0, then the narrower dtype: nearest even, saturating. Integers are \
            subtracted in i32.",
        ..row("TSUBRELUCONV", TWO, &Convert(&Un(UnOp::Relu, &Bin(Sub, WIDE_A, WIDE_B)), To::Narrow), DTypeRule::Tuples)
    },
    Instr {
        scratch: Scratch::LikeSource,
        doc: "Sum of i32 (it wraps), converted to f32 and scaled; what is negative becomes 0; rounded to f16.",
        ..row(
            "TADDDEQRELU",
            &[dst(VEC), src("a", VEC), src("b", VEC), SCALAR_F32],
            &Un(UnOp::Relu, &Bin(Mul, &Convert(&Bin(Add, A, B), To::F32), C)),
            DTypeRule::Tuples,
        )
    },
    Instr {
        shape: ShapeRule::RowParams,
        in_place: false,
        doc: "Integers less their row's offset, times its scale, each step rounded to f32. As TQUANT, the Kirins have \
            it.",
        source: "pto_isa 5.8",
        ..row(
            "TDEQUANT",
            &[dst(VEC), src("a", VEC), src("scale", VEC), src("offset", VEC)],
            &Bin(Mul, &Bin(Sub, &Convert(A, To::F32), C), B),
            DTypeRule::Tuples,
        )
    },
    Instr {
        shape: ShapeRule::RowParams,
        in_place: false,
        doc: "Times the row's scale (rounded to f32), then the nearest integer, ties to even, saturating: symmetric \
              quantisation. PTO's flags of architectures name it on A5 alone, while its Kirin backends come with it: \
              here the Kirins have it.",
        source: "pto_isa 5.8",
        ..row(
            "TQUANT",
            &[dst(VEC), src("a", VEC), src("scale", VEC)],
            &Convert(&Bin(Mul, A, B), To::Narrow),
            DTypeRule::Tuples,
        )
    },
    Instr {
        shape: ShapeRule::RowParams,
        in_place: false,
        doc: "Times the row's scale, plus its offset (each rounded to f32), then the nearest integer, ties to even, \
              saturating. `TQUANT(dst, a, scale, offset)` is this.",
        source: "pto_isa 5.8",
        ..row(
            "TQUANT_OFFSET",
            &[dst(VEC), src("a", VEC), src("scale", VEC), src("offset", VEC)],
            &Convert(&Bin(Add, &Bin(Mul, A, B), C), To::Narrow),
            DTypeRule::Tuples,
        )
    },
    Instr {
        scratch: Scratch::Remainder,
        doc: "Remainder by a scalar, with its sign. Exact but for the last addition; an integer x rem 0 is x.",
        source: "pto_isa 5.3",
        ..row("TREMS", WITH_SCALAR, REM, DTypeRule::Same)
    },
    Instr {
        doc: "Remainder by a scalar, with the sign of the dividend, exact: C's fmod.",
        source: "pto_isa 5.3",
        ..row("TFMODS", WITH_SCALAR, FMOD, DTypeRule::Same)
    },
    Instr {
        scratch: Scratch::LikeSource,
        in_place: false,
        doc: "Power by a scalar: as C's pow; of integers wrapping, and a negative power as a quotient of 1.",
        source: "pto_isa 5.3",
        ..row("TPOWS", WITH_SCALAR, POWER, DTypeRule::Same)
    },
    Instr {
        doc: "Scales what is not positive by a scalar.",
        source: "pto_isa 5.3",
        ..row("TLRELU", WITH_SCALAR, LEAKY, DTypeRule::Same)
    },
    Instr {
        updates: true,
        doc: "Adds a multiple of a tile to the destination: one fused multiply-add.",
        source: "pto_isa 5.3",
        ..row("TAXPY", SCALAR_OLD, &Fma(B, A, C), DTypeRule::Tuples)
    },
    Instr {
        doc: "Adds a scalar, then a tile.",
        source: "pto_isa 5.3",
        ..row("TADDSC", SCALAR_BETWEEN, &Bin(Add, &Bin(Add, A, B), C), DTypeRule::Same)
    },
    Instr {
        doc: "Subtracts a scalar, then adds a tile.",
        source: "pto_isa 5.3",
        ..row("TSUBSC", SCALAR_BETWEEN, &Bin(Add, &Bin(Sub, A, B), C), DTypeRule::Same)
    },
    Instr {
        modes: &[super::COMPARISON],
        doc: "Compares a tile with a scalar; the result is a mask (packed bits on the device).",
        source: "pto_isa 5.3",
        ..row("TCMPS", WITH_SCALAR, &CmpMode(A, B), DTypeRule::Mask)
    },
    Instr {
        doc: "Takes each element from a tile or is a scalar, as a mask says.",
        source: "pto_isa 5.3",
        ..row("TSELS", &[dst(VEC), src("mask", VEC), src("a", VEC), SCALAR], &Select(A, B, C), DTypeRule::Mask)
    },
];
