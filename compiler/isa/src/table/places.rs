//! Instructions that put elements elsewhere: each is a [`Cells`], which is all that there is to say.

use super::{VEC, dst, src};
use crate::BinOp::{Add, And, Div, Mul, Rem, Shr, Sub};
use crate::{
    BinOp, Cell, Cells, CmpOp, DTypeRule, IndexExpr, Instr, OperandKind, OperandSpec, PipeRule, Precondition, Role,
    Scratch, Sem, ShapeRule, Test,
};

const fn operand(name: &'static str, kind: OperandKind) -> OperandSpec {
    OperandSpec { name, role: Role::Src, kind }
}

const PAD: OperandSpec = operand("pad", OperandKind::Pad);
const AT_ROW: OperandSpec = operand("row", OperandKind::Index);
const AT_COL: OperandSpec = operand("col", OperandKind::Index);
/// Which columns: step and first one, as `first << 3 | step`.
const PATTERN: OperandSpec = operand(
    "pattern",
    OperandKind::Choice(&[
        ("P0101", 2),
        ("P1010", 1 << 3 | 2),
        ("P0001", 4),
        ("P0010", 1 << 3 | 4),
        ("P0100", 2 << 3 | 4),
        ("P1000", 3 << 3 | 4),
        ("P1111", 1),
    ]),
);

const fn row(name: &'static str, operands: &'static [OperandSpec], cells: &'static Cells) -> Instr {
    Instr {
        name,
        sem: Sem::Cells(cells),
        operands,
        optional: 0,
        modes: &[],
        scalar_first: false,
        shape: ShapeRule::Own,
        dtypes: DTypeRule::Same,
        pipe: PipeRule::V,
        scratch: Scratch::None,
        in_place: false,
        updates: false,
        doc: "",
        meaning: "",
        source: "pto_isa 5.7",
    }
}

const fn eq(left: IndexExpr, right: IndexExpr, what: &'static str) -> Precondition {
    Precondition { left, op: CmpOp::Eq, right, what }
}

const fn le(left: IndexExpr, right: IndexExpr, what: &'static str) -> Precondition {
    Precondition { left, op: CmpOp::Le, right, what }
}

const I: &IndexExpr = &IndexExpr::Row;
const J: &IndexExpr = &IndexExpr::Col;
const ZERO: IndexExpr = IndexExpr::Is(0);

const fn num(op: BinOp, a: &'static IndexExpr, b: &'static IndexExpr) -> IndexExpr {
    IndexExpr::Bin(op, a, b)
}

const fn lt(a: &'static IndexExpr, b: &'static IndexExpr) -> Test {
    Test::Cmp(CmpOp::Lt, a, b)
}

/// The source, and the pad where it ends.
pub(super) const PADDED: &Cells = &Cells {
    value: Cell::If(
        &Test::And(&lt(I, &IndexExpr::Rows(1)), &lt(J, &IndexExpr::Cols(1))),
        &Cell::At(1, I, J),
        &Cell::Scalar(2),
    ),
    needs: &[
        le(IndexExpr::Rows(1), IndexExpr::Rows(0), "the source has {0} valid rows, the destination {1}"),
        le(IndexExpr::Cols(1), IndexExpr::Cols(0), "the source has {0} valid columns, the destination {1}"),
    ],
    example: "a: in f32[M, N], result: out f32[CB, M]|let a = Vec(a.tile(i, j));|let dst = tile Vec<f32, i, 64>;|\
              TFILLPAD(dst, a, Zero);|let sums = tile Vec<f32, i, 1>;|TROWSUM(sums, dst);|\
              TSTORE(col(result[j.index, _]).tile(i, _), sums);",
};
const PADDED_IN_PLACE: &Cells = &Cells {
    example: "a: in f32[M, N], result: out f32[CB, M]|let dst = Vec(a.tile(i, j));|TFILLPAD_INPLACE(dst, dst, Zero);|\
              let sums = tile Vec<f32, i, 1>;|TROWSUM(sums, dst);|\
              TSTORE(col(result[j.index, _]).tile(i, _), sums.valid(i.len, 1));",
    ..*PADDED
};
const PADDED_LARGER: &Cells = &Cells {
    example: "a: in f32[M, N], result: out f32[CB, M]|let a = Vec(a.tile(i, j));|let dst = tile Vec<f32, i, 128>;|\
              TFILLPAD_EXPAND(dst, a, Zero);|let sums = tile Vec<f32, i, 1>;|TROWSUM(sums, dst);|\
              TSTORE(col(result[j.index, _]).tile(i, _), sums);",
    ..*PADDED
};
const PADDING: &[OperandSpec] = &[dst(VEC), src("a", VEC), PAD];

/// Operands 2 and 3 say where operand 1 has element (0, 0).
pub(super) const WINDOW: &Cells = &Cells {
    value: Cell::At(1, &num(Add, I, &IndexExpr::Arg(2)), &num(Add, J, &IndexExpr::Arg(3))),
    needs: &[
        le(ZERO, IndexExpr::Arg(2), "row {1} is before row {0}"),
        le(ZERO, IndexExpr::Arg(3), "column {1} is before column {0}"),
        le(
            num(Add, &IndexExpr::Arg(2), &IndexExpr::Rows(0)),
            IndexExpr::Rows(1),
            "the window ends at row {0}, the source at row {1}",
        ),
        le(
            num(Add, &IndexExpr::Arg(3), &IndexExpr::Cols(0)),
            IndexExpr::Cols(1),
            "the window ends at column {0}, the source at column {1}",
        ),
    ],
    example: "a: in f32[M, N], result: out f32[RB, N]|let a = Vec(a.tile(i, j));|let dst = tile Vec<f32, 1, j>;|\
              TEXTRACT(dst, a, i.len - 1, 0);|TSTORE(result[i.index, _].tile(j), dst);",
};

const INSERTED_ROW: &IndexExpr = &num(Sub, I, &IndexExpr::Arg(2));
const INSERTED_COL: &IndexExpr = &num(Sub, J, &IndexExpr::Arg(3));
/// Operand 4 is the destination as it was.
pub(super) const INSERTED: &Cells = &Cells {
    value: Cell::If(
        &Test::And(
            &Test::And(&Test::Cmp(CmpOp::Ge, I, &IndexExpr::Arg(2)), &lt(INSERTED_ROW, &IndexExpr::Rows(1))),
            &Test::And(&Test::Cmp(CmpOp::Ge, J, &IndexExpr::Arg(3)), &lt(INSERTED_COL, &IndexExpr::Cols(1))),
        ),
        &Cell::At(1, INSERTED_ROW, INSERTED_COL),
        &Cell::At(4, I, J),
    ),
    needs: &[
        le(ZERO, IndexExpr::Arg(2), "row {1} is before row {0}"),
        le(ZERO, IndexExpr::Arg(3), "column {1} is before column {0}"),
        le(
            num(Add, &IndexExpr::Arg(2), &IndexExpr::Rows(1)),
            IndexExpr::Rows(0),
            "the source ends at row {0}, the destination at row {1}",
        ),
        le(
            num(Add, &IndexExpr::Arg(3), &IndexExpr::Cols(1)),
            IndexExpr::Cols(0),
            "the source ends at column {0}, the destination at column {1}",
        ),
    ],
    example: "x: in f32[M, N], a: in f32[N], result: out f32[M, N]|let dst = Vec(x.tile(i, j));|\
              let a = Vec(a.tile(j));|TINSERT(dst, a, i.len - 1, 0);|TSTORE(result.tile(i, j), dst);",
};

const JOINED: &Cells = &Cells {
    value: Cell::If(
        &lt(J, &IndexExpr::Cols(1)),
        &Cell::At(1, I, J),
        &Cell::At(2, I, &num(Sub, J, &IndexExpr::Cols(1))),
    ),
    needs: &[
        eq(IndexExpr::Rows(1), IndexExpr::Rows(0), "the left source has {0} valid rows, the destination {1}"),
        eq(IndexExpr::Rows(2), IndexExpr::Rows(0), "the right source has {0} valid rows, the destination {1}"),
        eq(
            num(Add, &IndexExpr::Cols(1), &IndexExpr::Cols(2)),
            IndexExpr::Cols(0),
            "the sources have {0} valid columns together, the destination {1}",
        ),
    ],
    example: "a: in f32[M, N], b: in f32[M, N], result: out f32[CB, M]|\
              let a = Vec(a.tile(i, j));|let b = Vec(b.tile(i, j));|\
              let dst = tile Vec<f32, i, 128, valid = (i.len, 2 * j.len)>;|TCONCAT(dst, a, b);|\
              let sums = tile Vec<f32, i, 1>;|TROWSUM(sums, dst);|TSTORE(col(result[j.index, _]).tile(i, _), sums);",
};

const NUMBER: &IndexExpr = &num(Add, &num(Mul, I, &IndexExpr::Cols(0)), J);
const RESHAPED: &Cells = &Cells {
    value: Cell::At(1, &num(Div, NUMBER, &IndexExpr::Cols(1)), &num(Rem, NUMBER, &IndexExpr::Cols(1))),
    needs: &[eq(
        num(Mul, &IndexExpr::Rows(1), &IndexExpr::Cols(1)),
        num(Mul, &IndexExpr::Rows(0), &IndexExpr::Cols(0)),
        "the source has {0} valid elements, the destination {1}",
    )],
    example: "a: in f32[M, N], result: out f32[M, N]|let a = Vec(a.tile(i, j));|\
              let flat = tile Vec<f32, 1, 2048, valid = (1, i.len * j.len)>;|TRESHAPE(flat, a);|\
              let dst = tile Vec<f32, i, j>;|TRESHAPE(dst, flat);|TSTORE(result.tile(i, j), dst);",
};

const RAMP: &Cells = &Cells {
    value: Cell::Of(&num(Add, &IndexExpr::Arg(1), &num(Mul, J, &IndexExpr::Arg(2)))),
    needs: &[eq(IndexExpr::Rows(0), IndexExpr::Is(1), "the destination has {0} valid rows, and must have {1}")],
    example: "a: in i32[M, N], result: out i32[RB, N]|let first = Vec(a[i.start, _].tile(j));|\
              let dst = tile Vec<i32, 1, j>;|TCI(dst, i32(j.start));|TADD(dst, dst, first);|\
              TSTORE(result[i.index, _].tile(j), dst);",
};

/// How far right of the diagonal.
const RIGHT: &IndexExpr = &num(Sub, J, &num(Add, I, &IndexExpr::Arg(1)));
const TRIANGLE: &Cells = &Cells {
    value: Cell::If(&Test::Cmp(CmpOp::Ge, &num(Mul, RIGHT, &IndexExpr::Arg(2)), &ZERO), &Cell::Is(1), &Cell::Is(0)),
    needs: &[],
    example: "a: in f32[M, N], result: out f32[M, N]|let a = Vec(a.tile(i, j));|let dst = tile Vec<f32, i, j>;|\
              TTRI(dst, i.start - j.start);|TMUL(dst, dst, a);|TSTORE(result.tile(i, j), dst);",
};

const INDEX: &IndexExpr = &IndexExpr::At(2, I, J);
const WIDTH: &IndexExpr = &IndexExpr::Width(1);
const GATHERED: &Cells = &Cells {
    value: Cell::At(1, &num(Div, INDEX, WIDTH), &num(Rem, INDEX, WIDTH)),
    needs: SAME_AS_INDEX,
    example: "a: in f32[M, N], result: out f32[RB, N]|let a = Vec(a[i.start, _].tile(j));|\
              let idx = tile Vec<i32, 1, j>;|TCI(idx, i32(j.len - 1), Down);|let dst = tile Vec<f32, 1, j>;|\
              TGATHER(dst, a, idx);|TSTORE(result[i.index, _].tile(j), dst);",
};
const SAME_AS_INDEX: &[Precondition] = &[
    eq(IndexExpr::Rows(2), IndexExpr::Rows(0), "the index has {0} valid rows, the destination {1}"),
    eq(IndexExpr::Cols(2), IndexExpr::Cols(0), "the index has {0} valid columns, the destination {1}"),
];
const OFFSET: &IndexExpr = &num(Div, INDEX, &IndexExpr::Size(1));
const GATHERED_BYTES: &Cells = &Cells {
    value: Cell::At(1, &num(Div, OFFSET, WIDTH), &num(Rem, OFFSET, WIDTH)),
    needs: SAME_AS_INDEX,
    example: "a: in f32[M, N], result: out f32[RB, N]|let a = Vec(a[i.start, _].tile(j));|\
              let numbers, idx = tile Vec<u32, 1, j>;|TCI(numbers, u32(j.len - 1), Down);|TSHLS(idx, numbers, 2);|\
              let dst = tile Vec<f32, 1, j>;|TGATHERB(dst, a, idx);|TSTORE(result[i.index, _].tile(j), dst);",
};

const STEP: &IndexExpr = &num(And, &IndexExpr::Arg(2), &IndexExpr::Is(7));
const FIRST: &IndexExpr = &num(Shr, &IndexExpr::Arg(2), &IndexExpr::Is(3));
/// Columns of the packed tile that fall on columns of the other one, which has so many.
const fn packed(wide: &'static IndexExpr) -> IndexExpr {
    num(Div, wide, STEP)
}
const PICKED: &Cells = &Cells {
    value: Cell::At(1, I, &num(Add, &num(Mul, J, STEP), FIRST)),
    needs: &[
        eq(IndexExpr::Rows(1), IndexExpr::Rows(0), "the source has {0} valid rows, the destination {1}"),
        eq(num(Rem, &IndexExpr::Cols(1), STEP), ZERO, "a part of the pattern is left: {0} columns, and must be {1}"),
        eq(
            packed(&IndexExpr::Cols(1)),
            IndexExpr::Cols(0),
            "the pattern picks {0} columns of the source, the destination has {1}",
        ),
    ],
    example: "x: in f32[M, N], result: out f32[CB, M]|let a = tile Vec<f32, i, 64>;|\
              TFILLPAD(a, Vec(x.tile(i, j)), Zero);|let dst = tile Vec<f32, i, 32>;|TGATHER(dst, a, P0101);|\
              let sums = tile Vec<f32, i, 1>;|TROWSUM(sums, dst);|TSTORE(col(result[j.index, _]).tile(i, _), sums);",
};
const SPREAD_COL: &IndexExpr = &num(Sub, J, FIRST);
const SPREAD: &Cells = &Cells {
    value: Cell::If(
        &Test::Cmp(CmpOp::Eq, &num(Rem, SPREAD_COL, STEP), &ZERO),
        &Cell::At(1, I, &num(Div, SPREAD_COL, STEP)),
        &Cell::Is(0),
    ),
    needs: &[
        eq(IndexExpr::Rows(1), IndexExpr::Rows(0), "the source has {0} valid rows, the destination {1}"),
        eq(num(Rem, &IndexExpr::Cols(0), STEP), ZERO, "a part of the pattern is left: {0} columns, and must be {1}"),
        eq(packed(&IndexExpr::Cols(0)), IndexExpr::Cols(1), "the pattern has room for {0} columns, the source has {1}"),
    ],
    example: "x: in f32[M, N], result: out f32[CB, M]|let a = tile Vec<f32, i, 64>;|\
              TFILLPAD(a, Vec(x.tile(i, j)), Zero);|let dst = tile Vec<f32, i, 128>;|TSCATTER(dst, a, P1010);|\
              let sums = tile Vec<f32, i, 1>;|TROWSUM(sums, dst);|TSTORE(col(result[j.index, _]).tile(i, _), sums);",
};

// Operands of TIMG2COL, by their places in its row.
const HEIGHT: &IndexExpr = &IndexExpr::Arg(2);
const IMAGE_WIDTH: &IndexExpr = &IndexExpr::Arg(3);
const KERNEL_H: &IndexExpr = &IndexExpr::Arg(4);
const KERNEL_W: &IndexExpr = &IndexExpr::Arg(5);
const STRIDE_H: &IndexExpr = &IndexExpr::Arg(6);
const STRIDE_W: &IndexExpr = &IndexExpr::Arg(7);
const PAD_H: &IndexExpr = &IndexExpr::Arg(8);
const PAD_W: &IndexExpr = &IndexExpr::Arg(9);
const TWO: &IndexExpr = &IndexExpr::Is(2);
/// Channels of a group: a row of the image's tile.
const C0: &IndexExpr = &IndexExpr::Cols(1);

const ROOM_H: &IndexExpr = &num(Sub, &num(Add, HEIGHT, &num(Mul, TWO, PAD_H)), KERNEL_H);
const ROOM_W: &IndexExpr = &num(Sub, &num(Add, IMAGE_WIDTH, &num(Mul, TWO, PAD_W)), KERNEL_W);
const OUT_H: &IndexExpr = &num(Add, &num(Div, ROOM_H, STRIDE_H), &IndexExpr::Is(1));
const OUT_W: &IndexExpr = &num(Add, &num(Div, ROOM_W, STRIDE_W), &IndexExpr::Is(1));
/// Which output element, and which tap of which group of channels.
const PIXEL: &IndexExpr = &num(Add, &IndexExpr::Arg(10), I);
const TAP: &IndexExpr = &num(Add, &IndexExpr::Arg(11), J);
const TAP_GROUP: &IndexExpr = &num(Div, TAP, C0);
const TAP_X: &IndexExpr = &num(Rem, TAP_GROUP, KERNEL_W);
const TAP_Y: &IndexExpr = &num(Rem, &num(Div, TAP_GROUP, KERNEL_W), KERNEL_H);
const GROUP: &IndexExpr = &num(Div, TAP_GROUP, &num(Mul, KERNEL_H, KERNEL_W));
const Y: &IndexExpr = &num(Add, &num(Sub, &num(Mul, &num(Div, PIXEL, OUT_W), STRIDE_H), PAD_H), TAP_Y);
const X: &IndexExpr = &num(Add, &num(Sub, &num(Mul, &num(Rem, PIXEL, OUT_W), STRIDE_W), PAD_W), TAP_X);
const IMAGE_ROW: &IndexExpr = &num(Add, &num(Mul, &num(Add, &num(Mul, GROUP, HEIGHT), Y), IMAGE_WIDTH), X);
const ONE: IndexExpr = IndexExpr::Is(1);
const IMAGE: &Cells = &Cells {
    value: Cell::If(
        &Test::And(
            &Test::And(&Test::Cmp(CmpOp::Ge, Y, &ZERO), &lt(Y, HEIGHT)),
            &Test::And(&Test::Cmp(CmpOp::Ge, X, &ZERO), &lt(X, IMAGE_WIDTH)),
        ),
        &Cell::At(1, IMAGE_ROW, &num(Rem, TAP, C0)),
        &Cell::Scalar(12),
    ),
    needs: &[
        le(ONE, IndexExpr::Arg(4), "the kernel has {1} rows, and at least {0}"),
        le(ONE, IndexExpr::Arg(5), "the kernel has {1} columns, and at least {0}"),
        le(ONE, IndexExpr::Arg(6), "the stride down is {1}, and at least {0}"),
        le(ONE, IndexExpr::Arg(7), "the stride across is {1}, and at least {0}"),
        le(ZERO, IndexExpr::Arg(8), "the padding above is {1}, and at least {0}"),
        le(ZERO, IndexExpr::Arg(9), "the padding at the left is {1}, and at least {0}"),
        le(ZERO, *ROOM_H, "the kernel is higher than the padded image: {1} rows are left"),
        le(ZERO, *ROOM_W, "the kernel is wider than the padded image: {1} columns are left"),
        le(ZERO, IndexExpr::Arg(10), "row {1} is before row {0}"),
        le(ZERO, IndexExpr::Arg(11), "column {1} is before column {0}"),
        eq(
            num(Rem, &IndexExpr::Rows(1), &num(Mul, HEIGHT, IMAGE_WIDTH)),
            ZERO,
            "the source is no whole number of images of that height and width: {0} rows are left, and must be {1}",
        ),
        le(
            num(Add, &IndexExpr::Arg(10), &IndexExpr::Rows(0)),
            num(Mul, OUT_H, OUT_W),
            "the window ends at row {0}, the unfolded image at row {1}",
        ),
        le(
            num(Add, &IndexExpr::Arg(11), &IndexExpr::Cols(0)),
            num(
                Mul,
                &num(
                    Mul,
                    &num(Div, &IndexExpr::Rows(1), &num(Mul, HEIGHT, IMAGE_WIDTH)),
                    &num(Mul, KERNEL_H, KERNEL_W),
                ),
                C0,
            ),
            "the window ends at column {0}, the unfolded image at column {1}",
        ),
    ],
    example: "image: in f16[64, 16], w: in f16[144, N], result: out f32[RB, 64, N], x: in f16[M]|let a = Mat(image);|\
              let dst = tile Left<f16, 64, 144>;|TIMG2COL(dst, a, 8, 8, 3, 3, 1, 1, 1, 1, 0, 0);|\
              let acc = tile Acc<f32, 64, j>;|TMATMUL(acc, dst, Right(w.tile(_, j)));|\
              TSTORE(result[i.index, _, _].tile(_, j), acc);",
};

const GATHER: &[OperandSpec] = &[dst(VEC), src("a", VEC), src("idx", VEC)];

pub(super) const ROWS: &[Instr] = &[
    Instr {
        doc: "Copies a tile into one at least as large, whose valid part it fills with the pad.",
        ..row("TFILLPAD", PADDING, PADDED)
    },
    Instr {
        dtypes: DTypeRule::Same,
        shape: ShapeRule::Whole,
        doc: "As TFILLPAD, where the destination is valid as a whole then, and may be the source or be its bytes.",
        ..row("TFILLPAD_INPLACE", PADDING, PADDED_IN_PLACE)
    },
    Instr {
        doc: "As TFILLPAD; in PTO the one whose destination may have a larger capacity.",
        ..row("TFILLPAD_EXPAND", PADDING, PADDED_LARGER)
    },
    Instr {
        doc: "Copies the window of a tile that starts in that row and column.",
        ..row("TEXTRACT", &[dst(VEC), src("a", VEC), AT_ROW, AT_COL], WINDOW)
    },
    Instr {
        dtypes: DTypeRule::Same,
        updates: true,
        doc: "Overwrites the window of the destination that starts in that row and column.",
        ..row("TINSERT", &[dst(VEC), src("a", VEC), AT_ROW, AT_COL, src("old", VEC)], INSERTED)
    },
    Instr {
        optional: 1,
        dtypes: DTypeRule::Same,
        pipe: PipeRule::Move,
        doc: "Unfolds an image for a convolution: row m is an output element, columns are taps (channel group, kernel \
              row, kernel column, channel), and beyond the edges is the pad, 0 if not said. The source is NC1HWC0 for \
              one image: rows are (group, y, x), columns a group's channels. What PTO sets by SETFMATRIX, \
              SET_IMG2COL_RPT and SET_IMG2COL_PADDING are operands; `row` and `col` are its posM and posK.",
        source: "pto_isa 5.6",
        ..row(
            "TIMG2COL",
            &[
                dst(&[crate::Loc::Left]),
                src("a", &[crate::Loc::Mat]),
                operand("height", OperandKind::Index),
                operand("width", OperandKind::Index),
                operand("kernel_h", OperandKind::Index),
                operand("kernel_w", OperandKind::Index),
                operand("stride_h", OperandKind::Index),
                operand("stride_w", OperandKind::Index),
                operand("pad_h", OperandKind::Index),
                operand("pad_w", OperandKind::Index),
                AT_ROW,
                AT_COL,
                PAD,
            ],
            IMAGE,
        )
    },
    Instr { doc: "Puts two tiles side by side.", ..row("TCONCAT", &[dst(VEC), src("a", VEC), src("b", VEC)], JOINED) },
    Instr {
        doc: "The same elements in row-major order, in rows of another length.",
        ..row("TRESHAPE", &[dst(VEC), src("a", VEC)], RESHAPED)
    },
    Instr {
        optional: 1,
        dtypes: DTypeRule::Same,
        pipe: PipeRule::S,
        doc: "Counts up from a number, or down; it wraps.",
        source: "pto_isa 5.8",
        ..row(
            "TCI",
            &[dst(VEC), super::SCALAR, operand("direction", OperandKind::Choice(&[("Up", 1), ("Down", -1)]))],
            RAMP,
        )
    },
    Instr {
        dtypes: DTypeRule::Same,
        optional: 1,
        doc: "Ones on the diagonal that is so many columns to the right, and below it (or above), and zeros.",
        source: "pto_isa 5.8",
        ..row(
            "TTRI",
            &[
                dst(VEC),
                operand("diagonal", OperandKind::Index),
                operand("part", OperandKind::Choice(&[("Lower", -1), ("Upper", 1)])),
            ],
            TRIANGLE,
        )
    },
    Instr {
        dtypes: DTypeRule::Tuples,
        doc: "Elements by their number in the source: row times the columns of its capacity, and column.",
        source: "pto_isa 5.8",
        ..row("TGATHER", GATHER, GATHERED)
    },
    Instr {
        dtypes: DTypeRule::Tuples,
        doc: "Elements by their byte offset in the source; an offset within an element is that element.",
        source: "pto_isa 5.8",
        ..row("TGATHERB", GATHER, GATHERED_BYTES)
    },
    Instr {
        dtypes: DTypeRule::Tuples,
        doc: "The columns that the pattern picks, of every two or four: P0001 the first of four. The\n              \
            destination may have another dtype of the same size: it gets the bits. `TGATHER(dst, a, P0001)` is this.",
        source: "pto_isa 5.8",
        ..row("TGATHER_MASK", &[dst(VEC), src("a", VEC), PATTERN], PICKED)
    },
    Instr {
        sem: Sem::Scatter,
        dtypes: DTypeRule::Tuples,
        updates: true,
        doc: "Puts each element into the row of the destination that its index names, in its own column. Of two that \
              meet, the one in the lower row of the source stays.",
        meaning: "dst[idx[i, j], j] = a[i, j], rows i ascending",
        source: "pto_isa 5.8",
        ..row("TSCATTER", &[dst(VEC), src("a", VEC), src("idx", VEC), src("old", VEC)], PICKED)
    },
    Instr {
        doc: "Puts columns where the pattern has a one, of every two or four, and zeros elsewhere. \
            `TSCATTER(dst, a, P0001)` is this.",
        source: "pto_isa 5.8",
        ..row("TSCATTER_MASK", &[dst(VEC), src("a", VEC), PATTERN], SPREAD)
    },
];
