//! What leaves the accumulator quantised, and windows of tiles of the matrix unit. `TMOV` and `TSTORE` themselves are
//! in `memory`.

use super::places::{INSERTED, PADDED, WINDOW};
use super::{dst, src};
use crate::BinOp::{Add, Div, Rem};
use crate::{
    Cell, Cells, CmpOp, DTypeRule, Fixpipe, FixpipeWindow, IndexExpr, Instr, InstrMode, Loc, OperandKind, OperandSpec,
    PipeRule, Precondition, Role, Scratch, Sem, ShapeRule,
};
use ptoc_tensor::DType;

const MAT: &[Loc] = &[Loc::Mat];
const VEC_OR_MAT: &[Loc] = &[Loc::Vec, Loc::Mat];
const VIEW: OperandSpec = OperandSpec { name: "view", role: Role::Dst, kind: OperandKind::View };
const ACC: OperandSpec = src("a", &[Loc::Acc]);
const SCALE: OperandSpec = OperandSpec { name: "scale", role: Role::Src, kind: OperandKind::Scalar(Some(DType::F32)) };
const SCALES: OperandSpec = src("scale", &[Loc::Scaling]);
const ROW: OperandSpec = OperandSpec { name: "row", role: Role::Src, kind: OperandKind::Index };
const COL: OperandSpec = OperandSpec { name: "col", role: Role::Src, kind: OperandKind::Index };
const OLD: OperandSpec = src("old", MAT);

/// What TMOV, TSTORE and their kin may do to what leaves Acc.
pub(super) const RELU: InstrMode =
    InstrMode { words: &["Relu"], optional: true, doc: "from Acc alone: what is negative becomes 0 first" };

/// What stores may do to what is there.
pub(super) const UPDATE: InstrMode = InstrMode {
    words: &["atomic = true"],
    optional: true,
    doc: "adds to what is there, one element at a time, in no set order; replaces it if not said",
};

const fn row(name: &'static str, operands: &'static [OperandSpec], meaning: &'static Fixpipe) -> Instr {
    Instr {
        name,
        sem: Sem::Fixpipe(meaning),
        operands,
        optional: 0,
        modes: &[RELU],
        scalar_first: false,
        shape: ShapeRule::Fixpipe,
        dtypes: DTypeRule::Fixpipe,
        pipe: PipeRule::Move,
        scratch: Scratch::None,
        in_place: false,
        updates: false,
        doc: "",
        meaning: "",
        source: "pto_isa 5.7",
    }
}

const fn le(left: IndexExpr, right: IndexExpr, what: &'static str) -> Precondition {
    Precondition { left, op: CmpOp::Le, right, what }
}

/// `left` is a multiple of `of`.
const fn whole(left: &'static IndexExpr, of: &'static IndexExpr, what: &'static str) -> Precondition {
    Precondition { left: IndexExpr::Bin(Rem, left, of), op: CmpOp::Eq, right: ZERO, what }
}

const ZERO: IndexExpr = IndexExpr::Is(0);
const SIXTEEN: &IndexExpr = &IndexExpr::Is(16);
/// Elements of a block of 32 bytes.
const BLOCK: &IndexExpr = &IndexExpr::Bin(Div, &IndexExpr::Is(32), &IndexExpr::Size(1));
const ROW_BEFORE: &str = "row {1} is before row {0}";
const COL_BEFORE: &str = "column {1} is before column {0}";
const ROW_SIXTEEN: &str = "the window's row must be a multiple of 16, and is {0} more than one";
const COL_SIXTEEN: &str = "the window's column must be a multiple of 16, and is {0} more than one";
const ROW_BLOCK: &str = "the window's row must be a multiple of the elements of 32 bytes, and is {0} more than one";
const COL_BLOCK: &str = "the window's column must be a multiple of the elements of 32 bytes, and is {0} more than one";
const ROW_END: &str = "the window ends at row {0}, the source at row {1}";
const COL_END: &str = "the window ends at column {0}, the source at column {1}";
const ROW_END_DST: &str = "the source ends at row {0}, the destination at row {1}";
const COL_END_DST: &str = "the source ends at column {0}, the destination at column {1}";

/// A window of the source that starts at operands `r` and `c`, in whole boxes.
const fn of_source(r: &'static [IndexExpr; 6]) -> [Precondition; 6] {
    [
        le(ZERO, r[0], ROW_BEFORE),
        le(ZERO, r[1], COL_BEFORE),
        whole(&r[0], SIXTEEN, ROW_SIXTEEN),
        whole(&r[1], SIXTEEN, COL_SIXTEEN),
        le(r[2], r[3], ROW_END),
        le(r[4], r[5], COL_END),
    ]
}

/// A window of the destination that starts there.
const fn of_destination(r: &'static [IndexExpr; 6]) -> [Precondition; 4] {
    [le(ZERO, r[0], ROW_BEFORE), le(ZERO, r[1], COL_BEFORE), le(r[2], r[3], ROW_END_DST), le(r[4], r[5], COL_END_DST)]
}

/// Row, column, where the window ends and where there is an end: of operand `inner` within operand `outer`.
const fn bounds(
    row: &'static IndexExpr,
    col: &'static IndexExpr,
    inner: &'static [IndexExpr; 2],
    outer: [IndexExpr; 2],
) -> [IndexExpr; 6] {
    [*row, *col, IndexExpr::Bin(Add, row, &inner[0]), outer[0], IndexExpr::Bin(Add, col, &inner[1]), outer[1]]
}

const OF_DST: &[IndexExpr; 2] = &[IndexExpr::Rows(0), IndexExpr::Cols(0)];
const OF_SRC: &[IndexExpr; 2] = &[IndexExpr::Rows(1), IndexExpr::Cols(1)];
const AT_2: (&IndexExpr, &IndexExpr) = (&IndexExpr::Arg(2), &IndexExpr::Arg(3));
const AT_3: (&IndexExpr, &IndexExpr) = (&IndexExpr::Arg(3), &IndexExpr::Arg(4));
const SOURCE_AT_2: [IndexExpr; 6] = bounds(AT_2.0, AT_2.1, OF_DST, *OF_SRC);
const SOURCE_AT_3: [IndexExpr; 6] = bounds(AT_3.0, AT_3.1, OF_DST, *OF_SRC);
const DST_AT_2: [IndexExpr; 6] = bounds(AT_2.0, AT_2.1, OF_SRC, *OF_DST);
const DST_AT_3: [IndexExpr; 6] = bounds(AT_3.0, AT_3.1, OF_SRC, *OF_DST);
const EXTRACTED: &[Precondition] = &of_source(&SOURCE_AT_2);
const EXTRACTED_SCALED: &[Precondition] = &of_source(&SOURCE_AT_3);
const PUT: &[Precondition] = &of_destination(&DST_AT_2);
const PUT_SCALED: &[Precondition] = &of_destination(&DST_AT_3);

const fn fixpipe(
    quantised: bool,
    window: FixpipeWindow,
    needs: &'static [Precondition],
    example: &'static str,
) -> Fixpipe {
    Fixpipe { quantised, window, needs, example }
}

/// Of a window of L1 on its way to the matrix unit, which starts at whole boxes.
const fn boxed(row: Precondition, col: Precondition) -> [Precondition; 6] {
    [WINDOW.needs[0], WINDOW.needs[1], row, col, WINDOW.needs[2], WINDOW.needs[3]]
}

const TO_LEFT: &Cells = &Cells {
    needs: &boxed(whole(AT_2.0, SIXTEEN, ROW_SIXTEEN), whole(AT_2.1, BLOCK, COL_BLOCK)),
    example: "a: in f16[M, 64], b: in f16[32, N], result: out f32[M, N]|let a = Mat(a.tile(i, _));|\
              let dst = tile Left<f16, i, 32>;|TEXTRACT(dst, a, 0, 32);|let acc = tile Acc<f32, i, j>;|\
              TMATMUL(acc, dst, Right(b.tile(_, j)));|TSTORE(result.tile(i, j), acc);",
    ..*WINDOW
};
const TO_RIGHT: &Cells = &Cells {
    needs: &boxed(whole(AT_2.0, BLOCK, ROW_BLOCK), whole(AT_2.1, SIXTEEN, COL_SIXTEEN)),
    example: "a: in f16[M, 32], b: in f16[64, N], result: out f32[M, N]|let b = Mat(b.tile(_, j));|\
              let dst = tile Right<f16, 32, j>;|TEXTRACT(dst, b, 32, 0);|let acc = tile Acc<f32, i, j>;|\
              TMATMUL(acc, Left(a.tile(i, _)), dst);|TSTORE(result.tile(i, j), acc);",
    ..*WINDOW
};
const TO_MAT: &Cells = &Cells {
    example: "x: in f16[M, 64], a: in f16[M, 32], b: in f16[64, N], result: out f32[M, N]|let dst = Mat(x.tile(i, _));|\
              let a = Vec(a.tile(i, _));|TINSERT(dst, a, 0, 32);|let acc = tile Acc<f32, i, j>;|\
              TMATMUL(acc, Left(dst), Right(b.tile(_, j)));|TSTORE(result.tile(i, j), acc);",
    ..*INSERTED
};
/// What is copied, and zeros.
const PADDED_MAT: &Cells = &Cells {
    value: match PADDED.value {
        Cell::If(inside, of_source, _) => Cell::If(inside, of_source, &Cell::Is(0)),
        other => other,
    },
    needs: &[
        PADDED.needs[0],
        PADDED.needs[1],
        Precondition { left: *AT_2.0, op: CmpOp::Eq, right: ZERO, what: "the pad is {0}, and must be {1}" },
    ],
    example: "a: in f16[M, 20], b: in f16[32, N], result: out f32[M, N]|let a = Mat(a.tile(i, _));|\
              let dst = tile Mat<f16, i, 32>;|TFILLPAD(dst, a, Zero);|let acc = tile Acc<f32, i, j>;|\
              TMATMUL(acc, Left(dst), Right(b.tile(_, j)));|TSTORE(result.tile(i, j), acc);",
};
const ZEROS: OperandSpec = OperandSpec { name: "pad", role: Role::Src, kind: OperandKind::Choice(&[("Zero", 0)]) };

pub(super) const ROWS: &[Instr] = &[
    Instr {
        doc: "Moves out of the accumulator, quantised: each element in f32 times the scale (rounded), then the nearest \
              of the destination's dtype, ties to even, saturating. `TMOV(dst, a, scale)` is this.",
        ..row(
            "TMOV_QUANT",
            &[dst(VEC_OR_MAT), ACC, SCALE],
            &fixpipe(
                true,
                FixpipeWindow::Whole,
                &[],
                "a: in i8[M, 32], b: in i8[32, N], result: out i8[M, N]|let acc = tile Acc<i32, i, j>;|\
                 TMATMUL(acc, Left(a.tile(i, _)), Right(b.tile(_, j)));|let dst = tile Vec<i8, i, j>;|\
                 TMOV(dst, acc, 0.05);|TSTORE(result.tile(i, j), dst);",
            ),
        )
    },
    Instr {
        doc: "As TMOV with a scale, and each column has its own, in a table in Scaling: f32, or u64, whose lower half \
            is the bits of an f32.",
        ..row(
            "TMOV_FP",
            &[dst(VEC_OR_MAT), ACC, SCALES],
            &fixpipe(
                true,
                FixpipeWindow::Whole,
                &[],
                "a: in i8[M, 32], b: in i8[32, N], s: in f32[N], result: out i8[M, N]|let acc = tile Acc<i32, i, j>;|\
                 TMATMUL(acc, Left(a.tile(i, _)), Right(b.tile(_, j)));|let dst = tile Vec<i8, i, j>;|\
                 TMOV_FP(dst, acc, Scaling(s.tile(j)), Relu);|TSTORE(result.tile(i, j), dst);",
            ),
        )
    },
    Instr {
        doc: "Stores from the accumulator, quantised as TMOV with a scale does. `TSTORE(view, a, scale)` is this.",
        pipe: PipeRule::Store,
        modes: &[UPDATE, RELU],
        source: "pto_isa 5.5",
        ..row(
            "TSTORE_QUANT",
            &[VIEW, ACC, SCALE],
            &fixpipe(
                true,
                FixpipeWindow::Whole,
                &[],
                "a: in i8[M, 32], b: in i8[32, N], result: out i8[M, N]|let acc = tile Acc<i32, i, j>;|\
                 TMATMUL(acc, Left(a.tile(i, _)), Right(b.tile(_, j)));|TSTORE(result.tile(i, j), acc, 0.05);",
            ),
        )
    },
    Instr {
        doc: "Stores from the accumulator, quantised with a scale for each column, as TMOV_FP does.",
        pipe: PipeRule::Store,
        modes: &[UPDATE, RELU],
        source: "pto_isa 5.5",
        ..row(
            "TSTORE_FP",
            &[VIEW, ACC, SCALES],
            &fixpipe(
                true,
                FixpipeWindow::Whole,
                &[],
                "a: in i8[M, 32], b: in i8[32, N], s: in f32[N], result: out f16[M, N]|let acc = tile Acc<i32, i, j>;|\
                 TMATMUL(acc, Left(a.tile(i, _)), Right(b.tile(_, j)));|\
                 TSTORE_FP(result.tile(i, j), acc, Scaling(s.tile(j)));",
            ),
        )
    },
    Instr {
        sem: Sem::Cells(TO_LEFT),
        shape: ShapeRule::Own,
        dtypes: DTypeRule::Same,
        modes: &[],
        doc: "The form of TEXTRACT from L1 to L0A: the window starts in a row that is a multiple of 16, and a column \
            that is one of 32 bytes.",
        ..row("TEXTRACT_TO_LEFT", &[dst(&[Loc::Left]), src("a", MAT), ROW, COL], PLAIN)
    },
    Instr {
        sem: Sem::Cells(TO_RIGHT),
        shape: ShapeRule::Own,
        dtypes: DTypeRule::Same,
        modes: &[],
        doc: "The form of TEXTRACT from L1 to L0B: the window starts in a row that is a multiple of 32 bytes, and a \
            column that is one of 16.",
        ..row("TEXTRACT_TO_RIGHT", &[dst(&[Loc::Right]), src("a", MAT), ROW, COL], PLAIN)
    },
    Instr {
        doc: "The form of TEXTRACT from the accumulator to L1: the window starts in a row and a column that are \
              multiples of 16, and is converted as by TMOV.",
        ..row(
            "TEXTRACT_FROM_ACC",
            &[dst(MAT), ACC, ROW, COL],
            &fixpipe(
                false,
                FixpipeWindow::OfSource,
                EXTRACTED,
                "a: in f16[M, 32], b: in f16[32, 64], w: in f16[32, N], result: out f32[M, N]|\
                 let acc = tile Acc<f32, i, 64>;|TMATMUL(acc, Left(a.tile(i, _)), Right(b));|\
                 let dst = tile Mat<f16, i, 32>;|TEXTRACT(dst, acc, 0, 32, Relu);|let c = tile Acc<f32, i, j>;|\
                 TMATMUL(c, Left(dst), Right(w.tile(_, j)));|TSTORE(result.tile(i, j), c);",
            ),
        )
    },
    Instr {
        doc: "As TEXTRACT from the accumulator, quantised as TMOV with a scale does. \
            `TEXTRACT(dst, a, scale, row, col)` is this.",
        ..row(
            "TEXTRACT_QUANT",
            &[dst(MAT), ACC, SCALE, ROW, COL],
            &fixpipe(
                true,
                FixpipeWindow::OfSource,
                EXTRACTED_SCALED,
                "a: in i8[M, 32], b: in i8[32, 64], w: in i8[32, N], result: out i32[M, N]|\
                 let acc = tile Acc<i32, i, 64>;|TMATMUL(acc, Left(a.tile(i, _)), Right(b));|\
                 let dst = tile Mat<i8, i, 32>;|TEXTRACT(dst, acc, 0.05, 0, 32);|let c = tile Acc<i32, i, j>;|\
                 TMATMUL(c, Left(dst), Right(w.tile(_, j)));|TSTORE(result.tile(i, j), c);",
            ),
        )
    },
    Instr {
        doc: "As TEXTRACT from the accumulator, quantised with a scale for each column of the window.",
        ..row(
            "TEXTRACT_FP",
            &[dst(MAT), ACC, SCALES, ROW, COL],
            &fixpipe(
                true,
                FixpipeWindow::OfSource,
                EXTRACTED_SCALED,
                "a: in i8[M, 32], b: in i8[32, 64], s: in f32[32], w: in i8[32, N], result: out i32[M, N]|\
                 let acc = tile Acc<i32, i, 64>;|TMATMUL(acc, Left(a.tile(i, _)), Right(b));|\
                 let dst = tile Mat<i8, i, 32>;|TEXTRACT_FP(dst, acc, Scaling(s), 0, 32);|let c = tile Acc<i32, i, j>;|\
                 TMATMUL(c, Left(dst), Right(w.tile(_, j)));|TSTORE(result.tile(i, j), c);",
            ),
        )
    },
    Instr {
        sem: Sem::Cells(TO_MAT),
        shape: ShapeRule::Own,
        dtypes: DTypeRule::Same,
        modes: &[],
        updates: true,
        doc: "The form of TINSERT from the vector memory to L1.",
        ..row("TINSERT_TO_MAT", &[dst(MAT), src("a", &[Loc::Vec]), ROW, COL, OLD], PLAIN)
    },
    Instr {
        sem: Sem::Cells(PADDED_MAT),
        shape: ShapeRule::Own,
        dtypes: DTypeRule::Same,
        modes: &[],
        pipe: PipeRule::Mte2,
        doc: "The form of TFILLPAD in L1, where the pad is `Zero` alone.",
        ..row("TFILLPAD_TO_MAT", &[dst(MAT), src("a", MAT), ZEROS], PLAIN)
    },
    Instr {
        updates: true,
        doc: "The form of TINSERT from the accumulator to L1: what is put there is converted as by TMOV. It may start \
              at any row and column: PTO asks for multiples of 16 of what TEXTRACT reads alone.",
        ..row(
            "TINSERT_FROM_ACC",
            &[dst(MAT), ACC, ROW, COL, OLD],
            &fixpipe(
                false,
                FixpipeWindow::OfDestination,
                PUT,
                "x: in f16[M, 64], a: in f16[M, 32], b: in f16[32, 32], w: in f16[64, N], result: out f32[M, N]|\
                 let dst = Mat(x.tile(i, _));|let acc = tile Acc<f32, i, 32>;|\
                 TMATMUL(acc, Left(a.tile(i, _)), Right(b));|TINSERT(dst, acc, 0, 32);|let c = tile Acc<f32, i, j>;|\
                 TMATMUL(c, Left(dst), Right(w.tile(_, j)));|TSTORE(result.tile(i, j), c);",
            ),
        )
    },
    Instr {
        updates: true,
        doc: "As TINSERT from the accumulator, quantised as TMOV with a scale does. `TINSERT(dst, a, scale, row, col)` \
            is this.",
        ..row(
            "TINSERT_QUANT",
            &[dst(MAT), ACC, SCALE, ROW, COL, OLD],
            &fixpipe(
                true,
                FixpipeWindow::OfDestination,
                PUT_SCALED,
                "x: in i8[M, 64], a: in i8[M, 32], b: in i8[32, 32], w: in i8[64, N], result: out i32[M, N]|\
                 let dst = Mat(x.tile(i, _));|let acc = tile Acc<i32, i, 32>;|\
                 TMATMUL(acc, Left(a.tile(i, _)), Right(b));|TINSERT(dst, acc, 0.05, 0, 32);|\
                 let c = tile Acc<i32, i, j>;|\
                 TMATMUL(c, Left(dst), Right(w.tile(_, j)));|TSTORE(result.tile(i, j), c);",
            ),
        )
    },
    Instr {
        updates: true,
        doc: "As TINSERT from the accumulator, quantised with a scale for each column of the source.",
        ..row(
            "TINSERT_FP",
            &[dst(MAT), ACC, SCALES, ROW, COL, OLD],
            &fixpipe(
                true,
                FixpipeWindow::OfDestination,
                PUT_SCALED,
                "x: in i8[M, 64], a: in i8[M, 32], b: in i8[32, 32], s: in f32[32], w: in i8[64, N], result: out \
                 i32[M, N]|\
                 let dst = Mat(x.tile(i, _));|let acc = tile Acc<i32, i, 32>;|\
                 TMATMUL(acc, Left(a.tile(i, _)), Right(b));|TINSERT_FP(dst, acc, Scaling(s), 0, 32);|\
                 let c = tile Acc<i32, i, j>;|TMATMUL(c, Left(dst), Right(w.tile(_, j)));|\
                 TSTORE(result.tile(i, j), c);",
            ),
        )
    },
];

/// Of rows that have another meaning.
const PLAIN: &Fixpipe = &fixpipe(false, FixpipeWindow::Whole, &[], "");
