//! Binding of tiles to bytes, and movement between global memory and tiles and between tiles.

use super::fixpipe::{RELU, UPDATE};
use super::{ANYWHERE, VEC, dst, src, tile};
use crate::{DTypeRule, Instr, InstrMode, Loc, OperandKind, OperandSpec, PipeRule, Role, Scratch, Sem, ShapeRule};

const fn view(name: &'static str, role: Role) -> OperandSpec {
    OperandSpec { name, role, kind: OperandKind::View }
}

/// Whole rows instead of elements.
const BY_ROWS: OperandSpec = OperandSpec { name: "by", role: Role::Src, kind: OperandKind::Choice(&[("Row", 1)]) };

const SCATTER_OOB: InstrMode = InstrMode {
    words: &["Undefined", "Skip", "Clamp", "Wrap"],
    optional: true,
    doc: "where an index outside leads: to an error (if not said), nowhere, to the nearest place, to the one at the \
          index modulo the size",
};
const SCATTER_UPDATE: InstrMode = InstrMode {
    words: &["atomic = true", "atomic = Max", "atomic = Min"],
    optional: true,
    doc: "adds to what is there, or leaves the larger or smaller of both, one element at a time; replaces it if not \
          said. a2a3 only adds",
};

const BASE: Instr = Instr {
    name: "",
    sem: Sem::Move,
    operands: &[],
    optional: 0,
    modes: &[],
    scalar_first: false,
    shape: ShapeRule::Same,
    dtypes: DTypeRule::Move,
    pipe: PipeRule::Move,
    scratch: Scratch::None,
    in_place: false,
    updates: false,
    doc: "",
    meaning: "",
    source: "pto_isa 5.5",
};

pub(super) const ROWS: &[Instr] = &[
    Instr {
        name: "TASSIGN",
        sem: Sem::Assign,
        // The tile is bound, not written: its contents are undefined before and after.
        operands: &[
            tile("tile", Role::Dst, ANYWHERE),
            OperandSpec { name: "addr", role: Role::Src, kind: OperandKind::Address },
        ],
        shape: ShapeRule::Free,
        dtypes: DTypeRule::Any,
        pipe: PipeRule::S,
        doc: "Binds a tile to a byte address of its memory; no data moves. Constant addresses are proved (SA-0351 to \
            SA-0354).",
        meaning: "address(tile) = addr",
        source: "pto_tassign 1-5",
        ..BASE
    },
    Instr {
        name: "TLOAD",
        sem: Sem::Load,
        operands: &[dst(&[Loc::Vec, Loc::Mat, Loc::Bank]), view("view", Role::Src)],
        pipe: PipeRule::Mte2,
        doc: "Loads a window of a tensor into a tile; the tile takes the window's shape as valid shape.",
        meaning: "dst[i, j] = view[i, j]",
        ..BASE
    },
    Instr {
        name: "TSTORE",
        sem: Sem::Store,
        modes: &[UPDATE, RELU],
        operands: &[view("view", Role::Dst), src("a", &[Loc::Vec, Loc::Mat, Loc::Acc])],
        pipe: PipeRule::Store,
        doc: "Stores the valid part of a tile; from Acc it converts to the tensor's dtype. Optionally adds atomically.",
        meaning: "view[i, j] = a[i, j]",
        ..BASE
    },
    Instr {
        name: "TMOV",
        sem: Sem::Move,
        modes: &[RELU],
        operands: &[dst(ANYWHERE), src("a", ANYWHERE)],
        doc: "Moves a tile to another location; which moves exist is the target's business.",
        meaning: "dst[i, j] = a[i, j]",
        source: "pto_isa 5.7",
        ..BASE
    },
    Instr {
        name: "MGATHER",
        sem: Sem::Gather,
        modes: &[InstrMode {
            words: &["Undefined", "Clamp", "Wrap", "Zero"],
            optional: true,
            doc: "what an index outside gives: an error (if not said), the nearest element, the one at the index \
                  modulo the size, or 0",
        }],
        operands: &[dst(VEC), view("table", Role::Src), src("idx", VEC)],
        shape: ShapeRule::Gather,
        dtypes: DTypeRule::Gather,
        pipe: PipeRule::Mte2,
        doc: "Loads elements of a tensor by index; an index outside is an error unless a mode is named.",
        meaning: "dst[i, j] = table[idx[i, j]]",
        ..BASE
    },
    Instr {
        name: "MGATHER_ROWS",
        sem: Sem::GatherRows,
        modes: &[InstrMode {
            words: &["Undefined", "Clamp", "Wrap", "Zero"],
            optional: true,
            doc: "what an index outside gives: an error (if not said), the nearest row, the one at the index modulo \
                  the rows, or zeros",
        }],
        operands: &[dst(VEC), view("table", Role::Src), src("idx", VEC), BY_ROWS],
        shape: ShapeRule::GatherRows,
        dtypes: DTypeRule::Gather,
        pipe: PipeRule::Mte2,
        doc: "Loads rows of a tensor by index. `MGATHER(dst, table, idx, Row)` is this.",
        meaning: "dst[i, j] = table[idx[0, i], j]",
        ..BASE
    },
    Instr {
        name: "TPREFETCH_ASYNC",
        sem: Sem::Prefetch,
        operands: &[view("view", Role::Src)],
        shape: ShapeRule::Free,
        dtypes: DTypeRule::Any,
        pipe: PipeRule::Mte2,
        doc: "Says that a window of a tensor will be loaded, so that a cache may have it by then. Nothing can be seen \
              of it, and nothing waits for it.",
        meaning: "nothing is written",
        ..BASE
    },
    Instr {
        name: "MSCATTER_ROWS",
        sem: Sem::ScatterRows,
        modes: &[SCATTER_OOB, SCATTER_UPDATE],
        operands: &[view("table", Role::Dst), src("a", VEC), src("idx", VEC), BY_ROWS],
        shape: ShapeRule::ScatterRows,
        dtypes: DTypeRule::Gather,
        pipe: PipeRule::Store,
        doc: "Stores rows to a tensor by index; of those that meet, the last one stays. `MSCATTER(table, a, idx, Row)` \
            is this.",
        meaning: "table[idx[0, i], j] = a[i, j]",
        ..BASE
    },
    Instr {
        name: "MSCATTER",
        sem: Sem::ScatterTo,
        modes: &[SCATTER_OOB, SCATTER_UPDATE],
        operands: &[view("table", Role::Dst), src("a", VEC), src("idx", VEC)],
        shape: ShapeRule::Scattered,
        dtypes: DTypeRule::Gather,
        pipe: PipeRule::Store,
        doc: "Stores elements to a tensor by index, rows first; of those that meet, the last one stays. An index \
              outside is an \
              error unless a mode is named.",
        meaning: "table[idx[i, j]] = a[i, j]",
        ..BASE
    },
];
