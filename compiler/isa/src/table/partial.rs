//! Instructions whose operands are not all alike: of two valid shapes, with pairs of value and index, and those that
//! take rows apart and put them together.

use super::{VEC, dst, src, tile};
use crate::BinOp::{Add, Max, Min, Mul};
use crate::{BinOp, DTypeRule, Instr, OperandSpec, PipeRule, Reduce, Role, Scratch, Sem, ShapeRule};

const TWO: &[OperandSpec] = &[dst(VEC), src("a", VEC), src("b", VEC)];
/// PTO's order: the values of all three, then their indices.
const PAIRS: &[OperandSpec] =
    &[dst(VEC), src("a", VEC), src("b", VEC), tile("idx", Role::Dst, VEC), src("a_idx", VEC), src("b_idx", VEC)];
/// PTO's order: the later half first, of both.
const STREAMS: &[OperandSpec] =
    &[tile("dst1", Role::Dst, VEC), tile("dst0", Role::Dst, VEC), src("src1", VEC), src("src0", VEC)];

const BASE: Instr = Instr {
    name: "",
    sem: Sem::Interleave,
    operands: TWO,
    optional: 0,
    modes: &[],
    scalar_first: false,
    shape: ShapeRule::Part,
    dtypes: DTypeRule::Any,
    pipe: PipeRule::V,
    scratch: Scratch::None,
    in_place: false,
    updates: false,
    doc: "",
    meaning: "",
    source: "pto_isa 5.4",
};

const fn part(name: &'static str, op: BinOp, doc: &'static str, meaning: &'static str) -> Instr {
    Instr { name, sem: Sem::Part(op), dtypes: DTypeRule::Same, doc, meaning, ..BASE }
}

const fn pairs(name: &'static str, op: Reduce, doc: &'static str, meaning: &'static str) -> Instr {
    Instr { name, sem: Sem::PartArg(op), operands: PAIRS, dtypes: DTypeRule::Tuples, doc, meaning, ..BASE }
}

pub(super) const ROWS: &[Instr] = &[
    part(
        "TPARTADD",
        Add,
        "Adds where both sources are valid; where one is, takes its element.",
        "dst[i, j] = a[i, j] + b[i, j] where both are, else a[i, j] or b[i, j]",
    ),
    part(
        "TPARTMUL",
        Mul,
        "Multiplies where both sources are valid; where one is, takes its element.",
        "dst[i, j] = a[i, j] * b[i, j] where both are, else a[i, j] or b[i, j]",
    ),
    part(
        "TPARTMAX",
        Max,
        "Larger of two where both sources are valid; where one is, takes its element.",
        "dst[i, j] = max(a[i, j], b[i, j]) where both are, else a[i, j] or b[i, j]",
    ),
    part(
        "TPARTMIN",
        Min,
        "Smaller of two where both sources are valid; where one is, takes its element.",
        "dst[i, j] = min(a[i, j], b[i, j]) where both are, else a[i, j] or b[i, j]",
    ),
    pairs(
        "TPARTARGMAX",
        Reduce::Max,
        "The larger value with its index where both sources are valid; where one is, takes its pair. Of equal values \
         that of `b`, of NaN the first.",
        "dst[i, j], idx[i, j] = a[i, j], a_idx[i, j] if a[i, j] > b[i, j], else b[i, j], b_idx[i, j]",
    ),
    pairs(
        "TPARTARGMIN",
        Reduce::Min,
        "The smaller value with its index where both sources are valid; where one is, takes its pair. Of equal values \
         that of `b`, of NaN the first.",
        "dst[i, j], idx[i, j] = a[i, j], a_idx[i, j] if a[i, j] < b[i, j], else b[i, j], b_idx[i, j]",
    ),
    Instr {
        name: "TINTERLEAVE",
        sem: Sem::Interleave,
        operands: STREAMS,
        shape: ShapeRule::EvenColumns,
        dtypes: DTypeRule::Same,
        doc: "Takes elements of two rows in turn: the first half of what that makes is `dst0`, the second `dst1`.",
        meaning: "dst0[i, 2 * k] = src0[i, k], dst0[i, 2 * k + 1] = src1[i, k], then dst1 from k = c / 2 on",
        source: "pto_isa 5.2",
        ..BASE
    },
    Instr {
        name: "TDEINTERLEAVE",
        sem: Sem::Deinterleave,
        operands: STREAMS,
        shape: ShapeRule::EvenColumns,
        dtypes: DTypeRule::Same,
        doc: "Takes the rows of two tiles as one, `src0` first: its even elements are `dst0`, its odd ones `dst1`.",
        meaning: "dst0[i, k] = src[i, 2 * k], dst1[i, k] = src[i, 2 * k + 1], src = src0 and then src1",
        source: "pto_isa 5.2",
        ..BASE
    },
    Instr {
        name: "TDEINTERLEAVE_ONE",
        sem: Sem::DeinterleaveOne,
        operands: &[tile("dst1", Role::Dst, VEC), tile("dst0", Role::Dst, VEC), src("src", VEC)],
        shape: ShapeRule::Halves,
        dtypes: DTypeRule::Same,
        doc: "The form of TDEINTERLEAVE with one source: its even columns are `dst0`, its odd ones `dst1`.",
        meaning: "dst0[i, k] = src[i, 2 * k], dst1[i, k] = src[i, 2 * k + 1]",
        source: "pto_isa 5.2",
        ..BASE
    },
];
