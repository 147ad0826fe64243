//! Reductions along rows and columns, broadcasts of a column or a row, transposition.

use super::{VEC, dst, src, tile};
use crate::{BinOp, DTypeRule, Expr, Instr, OperandSpec, PipeRule, Reduce, Role, Scratch, Sem, ShapeRule, UnOp};

const TWO: &[OperandSpec] = &[dst(VEC), src("a", VEC), src("b", VEC)];

const BASE: Instr = Instr {
    name: "",
    sem: Sem::RowExpand,
    operands: &[dst(VEC), src("a", VEC)],
    optional: 0,
    modes: &[],
    scalar_first: false,
    shape: ShapeRule::Same,
    dtypes: DTypeRule::Any,
    pipe: PipeRule::V,
    scratch: Scratch::None,
    in_place: false,
    updates: false,
    doc: "",
    meaning: "",
    source: "pto_isa 5.4",
};

const fn row(name: &'static str, op: Reduce, doc: &'static str, meaning: &'static str) -> Instr {
    Instr {
        name,
        sem: Sem::RowReduce(op),
        shape: ShapeRule::RowReduce,
        dtypes: DTypeRule::Same,
        scratch: Scratch::LikeSource,
        doc,
        meaning,
        ..BASE
    }
}

const fn col(name: &'static str, op: Reduce, doc: &'static str, meaning: &'static str) -> Instr {
    Instr { name, sem: Sem::ColReduce(op), shape: ShapeRule::ColReduce, dtypes: DTypeRule::Same, doc, meaning, ..BASE }
}

/// `a` is as large as the result, `b` one column: `[R, 1]`, column-major on the device. Either may be written first.
const fn row_expand(name: &'static str, op: BinOp, doc: &'static str) -> Instr {
    Instr {
        name,
        sem: Sem::RowExpandBinary(op),
        operands: TWO,
        scalar_first: true,
        shape: ShapeRule::RowExpand,
        dtypes: DTypeRule::Same,
        in_place: true,
        doc,
        ..BASE
    }
}

/// `a` is as large as the result, `b` one row: `[1, C]`.
const fn col_expand(name: &'static str, op: BinOp, doc: &'static str) -> Instr {
    Instr {
        sem: Sem::ColExpandBinary(op),
        scalar_first: false,
        shape: ShapeRule::ColExpand,
        ..row_expand(name, op, doc)
    }
}

/// An index of 32 bits, of what PTO's tables list.
const fn arg(name: &'static str, sem: Sem, doc: &'static str, meaning: &'static str) -> Instr {
    let shape = match sem {
        Sem::RowArg(_) | Sem::RowArgValues(_) => ShapeRule::RowReduce,
        _ => ShapeRule::ColReduce,
    };
    Instr { name, sem, shape, dtypes: DTypeRule::Tuples, scratch: Scratch::LikeSource, doc, meaning, ..BASE }
}

/// The form with a destination for the values.
const fn arg_values(name: &'static str, sem: Sem, doc: &'static str, meaning: &'static str) -> Instr {
    Instr { operands: VALUE_INDEX, ..arg(name, sem, doc, meaning) }
}

const VALUE_INDEX: &[OperandSpec] = &[tile("value", Role::Dst, VEC), tile("idx", Role::Dst, VEC), src("a", VEC)];

const EXPDIF: &Expr = &Expr::Un(UnOp::Exp, &Expr::Bin(BinOp::Sub, &Expr::Arg(1), &Expr::Arg(2)));

pub(super) const ROWS: &[Instr] = &[
    row(
        "TROWSUM",
        Reduce::Sum,
        "Sums each row: 64 strided partials, then a halving tree.",
        "dst[i, 0] = sum over j of a[i, j]",
    ),
    row("TROWMAX", Reduce::Max, "Largest of each row; NaN if any is NaN.", "dst[i, 0] = max over j of a[i, j]"),
    row("TROWMIN", Reduce::Min, "Smallest of each row; NaN if any is NaN.", "dst[i, 0] = min over j of a[i, j]"),
    col("TCOLSUM", Reduce::Sum, "Sums each column, rows ascending.", "dst[0, j] = sum over i of a[i, j]"),
    col("TCOLMAX", Reduce::Max, "Largest of each column; NaN if any is NaN.", "dst[0, j] = max over i of a[i, j]"),
    col("TCOLMIN", Reduce::Min, "Smallest of each column; NaN if any is NaN.", "dst[0, j] = min over i of a[i, j]"),
    row("TROWPROD", Reduce::Prod, "Multiplies each row, columns ascending.", "dst[i, 0] = product over j of a[i, j]"),
    col("TCOLPROD", Reduce::Prod, "Multiplies each column, rows ascending.", "dst[0, j] = product over i of a[i, j]"),
    arg(
        "TROWARGMAX",
        Sem::RowArg(Reduce::Max),
        "Column of the largest of each row: the first of equal ones, the first NaN if there is one.",
        "dst[i, 0] = argmax over j of a[i, j]",
    ),
    arg(
        "TROWARGMIN",
        Sem::RowArg(Reduce::Min),
        "Column of the smallest of each row: the first of equal ones, the first NaN if there is one.",
        "dst[i, 0] = argmin over j of a[i, j]",
    ),
    arg_values(
        "TROWARGMAX_VALUES",
        Sem::RowArgValues(Reduce::Max),
        "The form of TROWARGMAX with the largest of each row beside its column.",
        "idx[i, 0] = argmax over j of a[i, j], value[i, 0] = a[i, idx[i, 0]]",
    ),
    arg_values(
        "TROWARGMIN_VALUES",
        Sem::RowArgValues(Reduce::Min),
        "The form of TROWARGMIN with the smallest of each row beside its column.",
        "idx[i, 0] = argmin over j of a[i, j], value[i, 0] = a[i, idx[i, 0]]",
    ),
    arg(
        "TCOLARGMAX",
        Sem::ColArg(Reduce::Max),
        "Row of the largest of each column: the first of equal ones, the first NaN if there is one.",
        "dst[0, j] = argmax over i of a[i, j]",
    ),
    arg(
        "TCOLARGMIN",
        Sem::ColArg(Reduce::Min),
        "Row of the smallest of each column: the first of equal ones, the first NaN if there is one.",
        "dst[0, j] = argmin over i of a[i, j]",
    ),
    Instr {
        name: "TPAIRREDUCESUM",
        sem: Sem::PairSum,
        dtypes: DTypeRule::Same,
        doc: "Sums of neighbouring columns, two and two, then zeros; an odd last column stands alone.",
        meaning: "dst[i, k] = a[i, 2 * k] + a[i, 2 * k + 1], dst[i, (c + 1) / 2 ..] = 0",
        source: "pto_isa 5.2",
        ..BASE
    },
    Instr {
        name: "TROWEXPAND",
        sem: Sem::RowExpand,
        shape: ShapeRule::RowExpand,
        dtypes: DTypeRule::Same,
        doc: "Repeats a column along the rows.",
        ..BASE
    },
    row_expand("TROWEXPANDADD", BinOp::Add, "Adds a column to every column."),
    row_expand("TROWEXPANDSUB", BinOp::Sub, "Subtracts a column from every column."),
    row_expand("TROWEXPANDMUL", BinOp::Mul, "Scales each row."),
    row_expand("TROWEXPANDDIV", BinOp::Div, "Divides each row by its number."),
    row_expand("TROWEXPANDMAX", BinOp::Max, "Larger of element and its row's number."),
    row_expand("TROWEXPANDMIN", BinOp::Min, "Smaller of element and its row's number."),
    Instr {
        sem: Sem::Map(EXPDIF),
        ..row_expand("TROWEXPANDEXPDIF", BinOp::Sub, "Exponential of the difference from the row's number.")
    },
    Instr {
        name: "TCOLEXPAND",
        sem: Sem::ColExpand,
        shape: ShapeRule::ColExpand,
        dtypes: DTypeRule::Same,
        doc: "Repeats a row down the columns.",
        ..BASE
    },
    col_expand("TCOLEXPANDADD", BinOp::Add, "Adds a row to every row."),
    col_expand("TCOLEXPANDSUB", BinOp::Sub, "Subtracts a row from every row."),
    col_expand("TCOLEXPANDMUL", BinOp::Mul, "Scales each column."),
    col_expand("TCOLEXPANDDIV", BinOp::Div, "Divides each column by its number."),
    col_expand("TCOLEXPANDMAX", BinOp::Max, "Larger of element and its column's number."),
    col_expand("TCOLEXPANDMIN", BinOp::Min, "Smaller of element and its column's number."),
    Instr {
        sem: Sem::Map(EXPDIF),
        ..col_expand("TCOLEXPANDEXPDIF", BinOp::Sub, "Exponential of the difference from the column's number.")
    },
    Instr {
        name: "TTRANS",
        sem: Sem::Transpose,
        shape: ShapeRule::Transpose,
        dtypes: DTypeRule::Same,
        scratch: Scratch::Transpose,
        doc: "Transposes.",
        source: "pto_isa 5.7",
        ..BASE
    },
];
