//! Sorting, counting, random numbers.

use super::{VEC, dst, src};
use crate::BinOp::{Div, Mul, Sub};
use crate::{
    CmpOp, DTypeRule, Instr, Named, Need, Num, OperandKind, OperandSpec, PipeRule, Primitive, Role, Scratch, Sem,
    ShapeRule,
};
use ptoc_tensor::DType::{self, F16, F32, I32, U8, U16, U32};

const fn operand(name: &'static str, kind: OperandKind) -> OperandSpec {
    OperandSpec { name, role: Role::Src, kind }
}

const fn eq(left: Num, right: Num, what: &'static str) -> Need {
    Need { left, op: CmpOp::Eq, right, what }
}

const fn le(left: Num, right: Num, what: &'static str) -> Need {
    Need { left, op: CmpOp::Le, right, what }
}

const fn row(name: &'static str, operands: &'static [OperandSpec], named: &'static Named) -> Instr {
    Instr {
        name,
        sem: Sem::Named(named),
        operands,
        optional: 0,
        modes: &[],
        scalar_first: false,
        shape: ShapeRule::Own,
        dtypes: DTypeRule::Any,
        pipe: PipeRule::V,
        scratch: Scratch::None,
        in_place: false,
        updates: false,
        doc: "",
        meaning: "",
        source: "pto_isa 5.8",
    }
}

/// Elements of a record.
const FIELDS: &Num = &Num::Bin(Div, &Num::Is(crate::RECORD as i64), &Num::Size(1));

const SORT32: &Named = &Named {
    what: Primitive::Sort32,
    needs: &[
        eq(Num::Rows(1), Num::Rows(0), "the source has {0} valid rows, the destination {1}"),
        eq(Num::Rows(2), Num::Rows(0), "the index has {0} valid rows, the destination {1}"),
        eq(Num::Cols(2), Num::Cols(1), "the index has {0} valid columns, the source {1}"),
        eq(
            Num::Bin(Mul, &Num::Cols(1), FIELDS),
            Num::Cols(0),
            "records of eight bytes have {0} columns, the destination {1}",
        ),
    ],
    example: "x: in f32[M, N], result: out f32[CB, RB, 128]|let a = tile Vec<f32, 1, 64>;|\
              TFILLPAD(a, Vec(x[i.start, _].tile(j)), Min);|let idx = tile Vec<u32, 1, 64>;|TCI(idx, 0);|\
              let dst = tile Vec<f32, 1, 128>;|TSORT32(dst, a, idx);|TSTORE(result[j.index, i.index, _], dst);",
};

const MERGE: &Named = &Named {
    what: Primitive::MergeSort,
    needs: &[
        eq(Num::Rows(1), Num::Is(1), "the source has {0} valid rows, and must have {1}"),
        eq(Num::Rows(0), Num::Is(1), "the destination has {0} valid rows, and must have {1}"),
        eq(Num::Cols(1), Num::Cols(0), "the source has {0} valid columns, the destination {1}"),
        le(Num::Is(64), Num::Arg(2), "a list has {1} elements, and at least {0}"),
        eq(
            Num::Bin(crate::BinOp::Rem, &Num::Arg(2), &Num::Is(64)),
            Num::Is(0),
            "the length of a list is {0} more than a multiple of 64, and must be {1}",
        ),
    ],
    example: "x: in f32[M, N], result: out f32[CB, RB, 128]|let a = tile Vec<f32, 1, 64>;|\
              TFILLPAD(a, Vec(x[i.start, _].tile(j)), Min);|let idx = tile Vec<u32, 1, 64>;|TCI(idx, 0);|\
              let lists = tile Vec<f32, 1, 128>;|TSORT32(lists, a, idx);|let dst = tile Vec<f32, 1, 128>;|\
              TMRGSORT(dst, lists, 64);|TSTORE(result[j.index, i.index, _], dst);",
};

/// Bytes of an element above the one that is counted.
const ABOVE: Num = Num::Bin(Sub, &Num::Bin(Sub, &Num::Size(1), &Num::Is(1)), &Num::Arg(3));
const HISTOGRAM: &Named = &Named {
    what: Primitive::Histogram,
    needs: &[
        eq(Num::Rows(1), Num::Rows(0), "the source has {0} valid rows, the destination {1}"),
        eq(Num::Rows(2), Num::Rows(0), "the index has {0} valid rows, the destination {1}"),
        eq(Num::Cols(0), Num::Is(256), "the destination has {0} valid columns, and must have {1}"),
        le(Num::Is(0), ABOVE, "elements of the source have no such byte: {1} bytes are above it"),
        le(ABOVE, Num::Cols(2), "{0} bytes are above the one that is counted, and the index has {1} columns"),
    ],
    example: "x: in u32[M, N], result: out u32[CB, RB, 256]|let a = Vec(x[i.start, _].tile(j));|\
              let idx = tile Vec<u8, 1, 32>;|TEXPANDS(idx, 0);|let dst = tile Vec<u32, 1, 256>;|\
              THISTOGRAM(dst, a, idx, Byte2);|TSTORE(result[j.index, i.index, _], dst);",
};

const RANDOM: &Named = &Named {
    what: Primitive::Random,
    needs: &[],
    example: "x: in u32[M, N], result: out u32[M, N]|let dst = tile Vec<u32, i, j>;|TRANDOM(dst, 42, i.start, j.start);|\
              TSTORE(result.tile(i, j), dst);",
};

const SORTS: &[&[DType]] = &[&[F32, F32, U32], &[F16, F16, U32]];
const COUNTS: &[&[DType]] = &[&[U32, U16, U8], &[U32, U32, U8]];

pub(super) const ROWS: &[Instr] = &[
    Instr {
        dtypes: DTypeRule::Tuples { a2a3: SORTS, a5: SORTS },
        doc: "Sorts each 32 elements of a row, descending, into records of eight bytes: the value, then, in the last four bytes, its \
              index (between them zeros). Equal values keep their order, NaN comes before all others; a last list may be shorter.",
        meaning: "record r of a list = (a[i, p], idx[i, p]), p the place of rank r among the 32",
        ..row("TSORT32", &[dst(VEC), src("a", VEC), src("idx", VEC)], SORT32)
    },
    Instr {
        dtypes: DTypeRule::Same { a2a3: &[F16, F32], a5: &[F16, F32] },
        doc: "Merges each four neighbouring lists of records of TSORT32 that are so many elements long; the last group may have fewer, \
              and its last list may be shorter. Of equal values those of the list that comes first come first.",
        meaning: "lists 4k .. 4k + 3 of a, merged, descending",
        ..row("TMRGSORT", &[dst(VEC), src("a", VEC), operand("length", OperandKind::Index)], MERGE)
    },
    Instr {
        dtypes: DTypeRule::Tuples { a2a3: &[], a5: COUNTS },
        doc: "Counts for each row how often each value of a byte occurs, among the elements whose more significant bytes are those of \
              the index, the most significant one in column 0. Where there is none above, nothing of the index is looked at.",
        meaning: "dst[i, b] = number of j with byte(a[i, j]) == b and bytes above == idx[i, ..]",
        ..row(
            "THISTOGRAM",
            &[
                dst(VEC),
                src("a", VEC),
                src("idx", VEC),
                operand("byte", OperandKind::Choice(&[("Byte0", 0), ("Byte1", 1), ("Byte2", 2), ("Byte3", 3)])),
            ],
            HISTOGRAM,
        )
    },
    Instr {
        optional: 1,
        dtypes: DTypeRule::Same { a2a3: &[], a5: &[U32, I32] },
        doc: "Random words by a counter: Philox 4x32 with 10 rounds, or 7, of a key of 64 bits and a counter of 128 bits. Four \
              neighbours in row-major order are one block, and the next block has the next counter.",
        meaning: "dst[i, j] = word n % 4 of Philox(counter + n / 4, key), n = i * cols(dst) + j",
        ..row(
            "TRANDOM",
            &[
                dst(VEC),
                operand("key", OperandKind::Index),
                operand("low", OperandKind::Index),
                operand("high", OperandKind::Index),
                operand("rounds", OperandKind::Choice(&[("Rounds10", 10), ("Rounds7", 7)])),
            ],
            RANDOM,
        )
    },
];
