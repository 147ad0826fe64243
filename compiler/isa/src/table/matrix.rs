//! The matrix unit.

use super::{dst, src};
use crate::{DTypeRule, Instr, InstrMode, Loc, OperandSpec, PipeRule, Scratch, Sem, ShapeRule};

const D: OperandSpec = dst(&[Loc::Acc]);
const A: OperandSpec = src("a", &[Loc::Left]);
const B: OperandSpec = src("b", &[Loc::Right]);

const BASE: Instr = Instr {
    name: "",
    sem: Sem::Matmul,
    operands: &[D, A, B],
    optional: 0,
    modes: &[
        InstrMode {
            words: &["HF32", "TF32"],
            optional: true,
            doc: "factors of f32 are rounded first: 11 bits of their fractions are kept, or 10; if not said, all 23",
        },
        InstrMode {
            words: &["Round", "Rint"],
            optional: true,
            doc: "with one of these: the nearest, and of two the one that is larger in magnitude (if not said), or the \
                even one",
        },
    ],
    scalar_first: false,
    shape: ShapeRule::Matmul,
    dtypes: DTypeRule::Matmul,
    pipe: PipeRule::M,
    scratch: Scratch::None,
    in_place: false,
    updates: false,
    doc: "",
    meaning: "",
    source: "pto_isa 5.6",
};

pub(super) const ROWS: &[Instr] = &[
    Instr {
        name: "TMATMUL",
        doc: "Matrix product: k ascending, one fused multiply-add a step, starting at 0.",
        meaning: "dst[i, j] = sum over k of a[i, k] * b[k, j]",
        ..BASE
    },
    Instr {
        name: "TMATMUL_ACC",
        sem: Sem::MatmulAcc,
        operands: &[D, src("c", &[Loc::Acc]), A, B],
        in_place: true,
        doc: "Adds a matrix product to an accumulator.",
        meaning: "dst[i, j] = c[i, j] + sum over k of a[i, k] * b[k, j]",
        ..BASE
    },
    Instr {
        name: "TMATMUL_BIAS",
        sem: Sem::MatmulBias,
        operands: &[D, A, B, src("bias", &[Loc::Bias])],
        doc: "Matrix product that starts at a bias row.",
        meaning: "dst[i, j] = bias[0, j] + sum over k of a[i, k] * b[k, j]",
        ..BASE
    },
    Instr {
        name: "TGEMV",
        shape: ShapeRule::Gemv,
        doc: "Product of a vector and a matrix: TMATMUL of one row, with its bits.",
        meaning: "dst[0, j] = sum over k of a[0, k] * b[k, j]",
        ..BASE
    },
    Instr {
        name: "TGEMV_ACC",
        sem: Sem::MatmulAcc,
        shape: ShapeRule::Gemv,
        operands: &[D, src("c", &[Loc::Acc]), A, B],
        in_place: true,
        doc: "Adds a product of a vector and a matrix to an accumulator.",
        meaning: "dst[0, j] = c[0, j] + sum over k of a[0, k] * b[k, j]",
        ..BASE
    },
    Instr {
        name: "TGEMV_BIAS",
        sem: Sem::MatmulBias,
        shape: ShapeRule::Gemv,
        operands: &[D, A, B, src("bias", &[Loc::Bias])],
        doc: "Product of a vector and a matrix that starts at a bias row.",
        meaning: "dst[0, j] = bias[0, j] + sum over k of a[0, k] * b[k, j]",
        ..BASE
    },
];
