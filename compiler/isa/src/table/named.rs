//! Sorting, counting, random numbers.

use super::{VEC, dst, src, tile};
use crate::BinOp::{Add, Div, Mul, Sub};
use crate::{
    CmpOp, DTypeRule, IndexExpr, Instr, InstrMode, Named, OperandKind, OperandSpec, PipeRule, Precondition, Primitive,
    Role, Scratch, Sem, ShapeRule,
};

const fn operand(name: &'static str, kind: OperandKind) -> OperandSpec {
    OperandSpec { name, role: Role::Src, kind }
}

const fn eq(left: IndexExpr, right: IndexExpr, what: &'static str) -> Precondition {
    Precondition { left, op: CmpOp::Eq, right, what }
}

const fn le(left: IndexExpr, right: IndexExpr, what: &'static str) -> Precondition {
    Precondition { left, op: CmpOp::Le, right, what }
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
const FIELDS: &IndexExpr = &IndexExpr::Bin(Div, &IndexExpr::Is(crate::RECORD as i64), &IndexExpr::Size(1));

const SORT32: &Named = &Named {
    what: Primitive::Sort32,
    needs: &[
        eq(IndexExpr::Rows(1), IndexExpr::Rows(0), "the source has {0} valid rows, the destination {1}"),
        eq(IndexExpr::Rows(2), IndexExpr::Rows(0), "the index has {0} valid rows, the destination {1}"),
        eq(IndexExpr::Cols(2), IndexExpr::Cols(1), "the index has {0} valid columns, the source {1}"),
        eq(
            IndexExpr::Bin(Mul, &IndexExpr::Cols(1), FIELDS),
            IndexExpr::Cols(0),
            "records of eight bytes have {0} columns, the destination {1}",
        ),
    ],
    example: "x: in f32[M, N], result: out f32[CB, RB, 128]|let a = tile Vec<f32, 1, 64>;|\
              TFILLPAD(a, Vec(x[i.start, _].tile(j)), Min);|let idx = tile Vec<u32, 1, 64>;|TCI(idx, 0);|\
              let dst = tile Vec<f32, 1, 128>;|TSORT32(dst, a, idx);|TSTORE(result[j.index, i.index, _], dst);",
};

/// PTO's instruction repeats 255 times at most, each time for four lists.
const MOST_LISTS: IndexExpr = IndexExpr::Bin(crate::BinOp::Mul, &IndexExpr::Arg(2), &IndexExpr::Is(4 * 255));
const MERGE: &Named = &Named {
    what: Primitive::MergeSort,
    needs: &[
        eq(IndexExpr::Rows(1), IndexExpr::Is(1), "the source has {0} valid rows, and must have {1}"),
        eq(IndexExpr::Rows(0), IndexExpr::Is(1), "the destination has {0} valid rows, and must have {1}"),
        eq(IndexExpr::Cols(1), IndexExpr::Cols(0), "the source has {0} valid columns, the destination {1}"),
        le(IndexExpr::Is(64), IndexExpr::Arg(2), "a list has {1} elements, and at least {0}"),
        eq(
            IndexExpr::Bin(crate::BinOp::Rem, &IndexExpr::Arg(2), &IndexExpr::Is(64)),
            IndexExpr::Is(0),
            "the length of a list is {0} more than a multiple of 64, and must be {1}",
        ),
        le(IndexExpr::Cols(1), MOST_LISTS, "the source has {0} valid columns, and 255 groups of four lists have {1}"),
        eq(
            IndexExpr::Bin(crate::BinOp::Rem, &IndexExpr::Cols(1), FIELDS),
            IndexExpr::Is(0),
            "the last list ends within a record: columns that are left over: {0}",
        ),
    ],
    example: "x: in f32[M, N], result: out f32[CB, RB, 128]|let a = tile Vec<f32, 1, 64>;|\
              TFILLPAD(a, Vec(x[i.start, _].tile(j)), Min);|let idx = tile Vec<u32, 1, 64>;|TCI(idx, 0);|\
              let lists = tile Vec<f32, 1, 128>;|TSORT32(lists, a, idx);|let dst = tile Vec<f32, 1, 128>;|\
              TMRGSORT(dst, lists, 64);|TSTORE(result[j.index, i.index, _], dst);",
};

/// What is said of each of several lists: its rows, and where it ends.
const LISTS: [(&IndexExpr, &str, &str); 4] = {
    macro_rules! list {
        ($k:literal, $which:literal) => {
            (
                &IndexExpr::Cols($k),
                concat!("the ", $which, " list has {0} valid rows, and must have {1}"),
                concat!("the ", $which, " list ends within a record: columns that are left over: {0}"),
            )
        };
    }
    [list!(1, "first"), list!(2, "second"), list!(3, "third"), list!(4, "fourth")]
};
const ONE_ROW: Precondition =
    eq(IndexExpr::Rows(0), IndexExpr::Is(1), "the destination has {0} valid rows, and must have {1}");
const TWO_WIDE: IndexExpr = IndexExpr::Bin(Add, &IndexExpr::Cols(1), &IndexExpr::Cols(2));
const THREE_WIDE: IndexExpr = IndexExpr::Bin(Add, &TWO_WIDE, &IndexExpr::Cols(3));
/// Each list is a row of whole records, and `all`, their columns together, are the destination's. Two demands a list,
/// and two more.
const fn merged<const NEEDS: usize>(all: IndexExpr) -> [Precondition; NEEDS] {
    let mut needs = [ONE_ROW; NEEDS];
    let mut k = 0;
    while 2 * k + 2 < NEEDS {
        let (cols, rows, broken) = LISTS[k];
        needs[2 * k] = eq(IndexExpr::Rows(k + 1), IndexExpr::Is(1), rows);
        needs[2 * k + 1] = eq(IndexExpr::Bin(crate::BinOp::Rem, cols, FIELDS), IndexExpr::Is(0), broken);
        k += 1;
    }
    needs[NEEDS - 1] = eq(all, IndexExpr::Cols(0), "the lists have {0} valid columns together, the destination {1}");
    needs
}
const MERGE_TWO: &Named = &Named {
    what: Primitive::MergeTiles,
    needs: &merged::<6>(TWO_WIDE),
    example: "x: in f32[M, N], result: out f32[CB, RB, 256]|let v = tile Vec<f32, 1, 64>;|\
              TFILLPAD(v, Vec(x[i.start, _].tile(j)), Min);|let idx = tile Vec<u32, 1, 64>;|TCI(idx, 0);|\
              let lists, a, b = tile Vec<f32, 1, 128>;|TSORT32(lists, v, idx);|TMRGSORT(a, lists, 64);|TMOV(b, a);|\
              let dst = tile Vec<f32, 1, 256>;|TMRGSORT(dst, a, b);|TSTORE(result[j.index, i.index, _], dst);",
};
const MERGE_THREE: &Named = &Named {
    what: Primitive::MergeTiles,
    needs: &merged::<8>(THREE_WIDE),
    example: "x: in f32[M, N], result: out f32[CB, RB, 192]|let v = tile Vec<f32, 1, 32>;|\
              TFILLPAD(v, Vec(x[i.start, _].tile(j)).valid(1, min(j.len, 32)), Min);|let idx = tile Vec<u32, 1, 32>;|\
              TCI(idx, 0);|\
              let a, b, c = tile Vec<f32, 1, 64>;|TSORT32(a, v, idx);|TMOV(b, a);|TMOV(c, a);|\
              let dst = tile Vec<f32, 1, 192>;|TMRGSORT(dst, a, b, c);|TSTORE(result[j.index, i.index, _], dst);",
};
const MERGE_FOUR: &Named = &Named {
    what: Primitive::MergeTiles,
    needs: &merged::<10>(IndexExpr::Bin(Add, &THREE_WIDE, &IndexExpr::Cols(4))),
    example: "x: in f32[M, N], result: out f32[CB, RB, 256]|let v = tile Vec<f32, 1, 32>;|\
              TFILLPAD(v, Vec(x[i.start, _].tile(j)).valid(1, min(j.len, 32)), Min);|let idx = tile Vec<u32, 1, 32>;|\
              TCI(idx, 0);|\
              let a, b, c, d = tile Vec<f32, 1, 64>;|TSORT32(a, v, idx);|TMOV(b, a);|TMOV(c, a);|TMOV(d, a);|\
              let dst = tile Vec<f32, 1, 256>;|TMRGSORT(dst, a, b, c, d);|TSTORE(result[j.index, i.index, _], dst);",
};

const COMPARE: &Named = &Named {
    what: Primitive::Places,
    needs: &[],
    example: "x: in f32[M, N], result: out i32[M, N], result_counts: out i32[CB, M]|let a = Vec(x.tile(i, j));|\
              let k = tile Vec<f32, i, 1>;|TROWMAX(k, a);|let dst = tile Vec<i32, i, j>;|\
              let counts = tile Vec<i32, i, 1>;|\
              TGATHER(dst, a, k, counts, j.start, EQ);|TSTORE(result.tile(i, j), dst);|\
              TSTORE(col(result_counts[j.index, _]).tile(i, _), counts);",
};
const EQUAL_OR_GREATER: InstrMode =
    InstrMode { words: &["EQ", "GT"], optional: false, doc: "the comparison; both are false if either side is NaN" };

const PACKED: OperandSpec = operand("packed", OperandKind::Choice(&[("INT4", 4)]));
const SCALE_ROWS: Precondition = eq(IndexExpr::Rows(2), IndexExpr::Rows(0), "there are {0} scales, and {1} rows");
const SCALE_COLS: Precondition =
    eq(IndexExpr::Cols(2), IndexExpr::Is(1), "the scales have {0} valid columns, and must have {1}");
const SAME_ROWS: Precondition =
    eq(IndexExpr::Rows(1), IndexExpr::Rows(0), "the source has {0} valid rows, the destination {1}");
const PACK: &Named = &Named {
    what: Primitive::Pack,
    needs: &[
        SAME_ROWS,
        eq(
            IndexExpr::Cols(1),
            IndexExpr::Bin(Mul, &IndexExpr::Cols(0), &IndexExpr::Is(2)),
            "the source has {0} valid columns, and the destination room for {1}",
        ),
        SCALE_ROWS,
        SCALE_COLS,
    ],
    example: "x: in f32[M, N], s: in f32[M], result: out i8[CB, M, 32]|let a = tile Vec<f32, i, 64>;|\
              TFILLPAD(a, Vec(x.tile(i, j)), Zero);|let scale = Vec(col(s).tile(i, _));|let dst = tile Vec<i8, i, 32>;|\
              TQUANT(dst, a, scale, INT4);|TSTORE(result[j.index, _, _].tile(i, _), dst);",
};
const UNPACK: &Named = &Named {
    what: Primitive::Unpack,
    needs: &[
        SAME_ROWS,
        eq(
            IndexExpr::Bin(Mul, &IndexExpr::Cols(1), &IndexExpr::Is(2)),
            IndexExpr::Cols(0),
            "the source holds {0} columns, the destination has {1}",
        ),
        SCALE_ROWS,
        SCALE_COLS,
        eq(IndexExpr::Rows(3), IndexExpr::Rows(0), "there are {0} offsets, and {1} rows"),
        eq(IndexExpr::Cols(3), IndexExpr::Is(1), "the offsets have {0} valid columns, and must have {1}"),
    ],
    example: "x: in i8[M, 32], s: in f32[M], o: in f32[M], n: in f32[N], result: out f32[CB, M, 64]|\
              let a = Vec(x.tile(i, _));|let scale = Vec(col(s).tile(i, _));|let offset = Vec(col(o).tile(i, _));|\
              let dst = tile Vec<f32, i, 64>;|TDEQUANT(dst, a, scale, offset, INT4);|\
              TSTORE(result[j.index, _, _].tile(i, _), dst);",
};

/// The highest byte of an element.
const LAST: IndexExpr = IndexExpr::Bin(Sub, &IndexExpr::Size(1), &IndexExpr::Is(1));
/// Bytes of an element above the one that is counted.
const ABOVE: IndexExpr = IndexExpr::Bin(Sub, &LAST, &IndexExpr::Arg(3));
const HISTOGRAM: &Named = &Named {
    what: Primitive::Histogram,
    needs: &[
        eq(IndexExpr::Rows(1), IndexExpr::Rows(0), "the source has {0} valid rows, the destination {1}"),
        eq(IndexExpr::Rows(2), IndexExpr::Rows(0), "the index has {0} valid rows, the destination {1}"),
        eq(IndexExpr::Cols(0), IndexExpr::Is(256), "the destination has {0} valid columns, and must have {1}"),
        le(IndexExpr::Arg(3), LAST, "elements of the source have no byte {0}: the last one is byte {1}"),
        le(ABOVE, IndexExpr::Cols(2), "{0} bytes are above the one that is counted, and the index has {1} columns"),
    ],
    example: "x: in u32[M, N], result: out u32[CB, RB, 256]|let a = Vec(x[i.start, _].tile(j));|\
              let idx = tile Vec<u8, 1, 32>;|TEXPANDS(idx, 0);|let dst = tile Vec<u32, 1, 256>;|\
              THISTOGRAM(dst, a, idx, Byte2);|TSTORE(result[j.index, i.index, _], dst);",
};

const RANDOM: &Named = &Named {
    what: Primitive::Random,
    needs: &[],
    example: "x: in u32[M, N], result: out u32[M, N]|let dst = tile Vec<u32, i, j>;|\
              TRANDOM(dst, 42, i.start, j.start);|\
              TSTORE(result.tile(i, j), dst);",
};

pub(super) const ROWS: &[Instr] = &[
    Instr {
        dtypes: DTypeRule::Tuples,
        doc: "Sorts each 32 elements of a row, descending, into records of eight bytes: the value, then, in the last \
              four bytes, its index (between them zeros). Equal values keep their order, NaN comes before all others; \
              a last list may be shorter.",
        meaning: "record r of a list = (a[i, p], idx[i, p]), p the place of rank r among the 32",
        ..row("TSORT32", &[dst(VEC), src("a", VEC), src("idx", VEC)], SORT32)
    },
    Instr {
        dtypes: DTypeRule::Same,
        doc: "Merges each four neighbouring lists of records of TSORT32 that are so many elements long; the last group \
              may have fewer, and its last list may be shorter. Of equal values those of the list that comes first \
              come first.",
        meaning: "lists 4k .. 4k + 3 of a, merged, descending",
        ..row("TMRGSORT", &[dst(VEC), src("a", VEC), operand("length", OperandKind::Index)], MERGE)
    },
    Instr {
        dtypes: DTypeRule::Same,
        scratch: Scratch::LikeResult,
        doc: "Merges two lists of records of TSORT32, each in descending order, which may be of any length. Of equal \
              values those of the first list come first. `TMRGSORT(dst, a, b)` is this.",
        meaning: "a and b, merged, descending",
        ..row("TMRGSORT_2", &[dst(VEC), src("a", VEC), src("b", VEC)], MERGE_TWO)
    },
    Instr {
        dtypes: DTypeRule::Same,
        scratch: Scratch::LikeResult,
        doc: "As with two lists. `TMRGSORT(dst, a, b, c)` is this.",
        meaning: "a, b and c, merged, descending",
        ..row("TMRGSORT_3", &[dst(VEC), src("a", VEC), src("b", VEC), src("c", VEC)], MERGE_THREE)
    },
    Instr {
        dtypes: DTypeRule::Same,
        scratch: Scratch::LikeResult,
        doc: "As with two lists. `TMRGSORT(dst, a, b, c, d)` is this.",
        meaning: "a, b, c and d, merged, descending",
        ..row("TMRGSORT_4", &[dst(VEC), src("a", VEC), src("b", VEC), src("c", VEC), src("d", VEC)], MERGE_FOUR)
    },
    Instr {
        dtypes: DTypeRule::Tuples,
        shape: ShapeRule::Counted,
        scratch: Scratch::Places,
        modes: &[EQUAL_OR_GREATER],
        doc: "Puts the columns of a row at which a comparison with the row's number holds one behind the other, \
              counted from `first`, and zeros behind them; how many there are is the row's count. Those that `dst` has \
              no room for are counted too. `TGATHER(dst, a, k, counts, first, GT)` is this.",
        meaning: "dst[i, n] = first + (column of the n-th j with a[i, j] cmp k[i, 0]), counts[i, 0] = number of such j",
        ..row(
            "TGATHER_COMPARE",
            &[
                dst(VEC),
                src("a", VEC),
                src("k", VEC),
                tile("counts", Role::Dst, VEC),
                operand("first", OperandKind::Index),
            ],
            COMPARE,
        )
    },
    Instr {
        dtypes: DTypeRule::Tuples,
        doc: "Counts for each row how often each value of a byte occurs, among the elements whose more significant \
              bytes are those of the index, the most significant one in column 0. Where there is none above, nothing \
              of the index is looked at. PTO's flags of architectures name it on A5 alone, while its Kirin backends \
              come with it: here the Kirins have it.",
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
        dtypes: DTypeRule::Tuples,
        doc: "Symmetric quantisation to 4 bits: times the row's scale (rounded to f32), then the nearest of -8 to 7, \
              ties to even, saturating; NaN gives 0. A byte holds two neighbours, the even column in its lower half. \
              `TQUANT(dst, a, scale, INT4)` is this. As TQUANT, the Kirins have it.",
        meaning: "dst[i, j] = q[i, 2 * j] & 15 | q[i, 2 * j + 1] << 4, q = nearest(a * scale[i, 0])",
        ..row("TQUANT_INT4", &[dst(VEC), src("a", VEC), src("scale", VEC), PACKED], PACK)
    },
    Instr {
        dtypes: DTypeRule::Tuples,
        doc: "Numbers of 4 bits as TQUANT packs them, less their row's offset, times its scale, each step rounded to \
              f32. `TDEQUANT(dst, a, scale, offset, INT4)` is this. As TQUANT, the Kirins have it.",
        meaning: "dst[i, j] = (q[i, j] - offset[i, 0]) * scale[i, 0], q[i, j] = half j % 2 of a[i, j / 2], with its \
            sign",
        ..row("TDEQUANT_INT4", &[dst(VEC), src("a", VEC), src("scale", VEC), src("offset", VEC), PACKED], UNPACK)
    },
    Instr {
        optional: 1,
        dtypes: DTypeRule::Same,
        doc: "Random words by a counter: Philox 4x32 with 10 rounds, or 7, of a key of 64 bits and a counter of 128 \
              bits. Four neighbours in row-major order are one block, and the next block has the next counter.",
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
