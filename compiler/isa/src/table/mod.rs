//! The instruction table: every PTO instruction that ptoc has, once, and those that are the language's own.

mod elementwise;
mod fixpipe;
mod formulas;
mod functions;
mod instead;
mod matrix;
mod memory;
mod named;
mod names;
mod partial;
mod places;
mod reduce;
mod unit;

pub(crate) use instead::instead_of;
pub use names::{NOT_YET, NameLookup, find, sibling};

use crate::{Instr, InstrId, InstrMode, Loc, OperandKind, OperandSpec, Role};
use std::collections::HashMap;
use std::sync::LazyLock;

/// All instructions. An [`InstrId`] is an index into it; the order is by group and not part of any format.
pub static TABLE: &[Instr] = &ROWS;

const GROUPS: [&[Instr]; 11] = [
    memory::ROWS,
    elementwise::ROWS,
    formulas::ROWS,
    reduce::ROWS,
    partial::ROWS,
    places::ROWS,
    named::ROWS,
    matrix::ROWS,
    fixpipe::ROWS,
    unit::ROWS,
    functions::ROWS,
];

static ROWS: [Instr; row_count()] = {
    let mut rows = [memory::ROWS[0]; row_count()];
    let (mut at, mut g) = (0, 0);
    while g < GROUPS.len() {
        let mut i = 0;
        while i < GROUPS[g].len() {
            rows[at] = GROUPS[g][i];
            at += 1;
            i += 1;
        }
        g += 1;
    }
    rows
};

const fn row_count() -> usize {
    let (mut n, mut g) = (0, 0);
    while g < GROUPS.len() {
        n += GROUPS[g].len();
        g += 1;
    }
    n
}

/// The instruction that is called exactly `name` (PTO's spelling, upper case).
pub fn lookup(name: &str) -> Option<InstrId> {
    static NAMES: LazyLock<HashMap<&str, InstrId>> =
        LazyLock::new(|| InstrId::all().map(|id| (id.get().name, id)).collect());
    NAMES.get(name).copied()
}

/// What ends the names of rows that are a second form of another row: with a destination for the values too, with one
/// source where the first has two, by a pattern of columns, with offsets, of so many lists, by a comparison, with a
/// scale, of whole rows, of 4 bits, between other memories. Authors write the first one's name.
pub(crate) const SECOND_FORMS: [&str; 15] = [
    "_VALUES",
    "_ONE",
    "_MASK",
    "_OFFSET",
    "_2",
    "_3",
    "_4",
    "_COMPARE",
    "_QUANT",
    "_TO_LEFT",
    "_TO_RIGHT",
    "_TO_MAT",
    "_ROWS",
    "_INT4",
    "_FROM_ACC",
];

/// The rows that the author calls by the name of this one: itself, then its second forms.
pub fn overloads(id: InstrId) -> impl Iterator<Item = InstrId> {
    let second = |end: &&str| lookup(&format!("{}{end}", id.get().name));
    std::iter::once(id).chain(SECOND_FORMS.iter().filter_map(second).collect::<Vec<_>>())
}

/// Whether it is a row that an author names, not the second form of another one.
pub fn is_first(id: InstrId) -> bool {
    id.get().written_name() == id.get().name
}

impl Instr {
    /// Whether PTO does not have it: a function of the language, or an instruction of units in memory.
    pub fn is_own(&self) -> bool {
        self.source == functions::OWN || self.sem == crate::Sem::Sample
    }
}

impl InstrId {
    /// The row of the table. Ids come from [`lookup`] or from [`InstrId::all`].
    pub fn get(self) -> &'static Instr {
        &TABLE[usize::from(self.0)]
    }

    /// Every instruction, in table order.
    pub fn all() -> impl ExactSizeIterator<Item = InstrId> {
        (0..TABLE.len()).map(|i| InstrId(i as u16))
    }
}

// Operand shorthands of the groups.

const VEC: &[Loc] = &[Loc::Vec];
const ANYWHERE: &[Loc] = &Loc::ALL;

const SCALAR: OperandSpec = OperandSpec { name: "scalar", role: Role::Src, kind: OperandKind::Scalar(None) };

const COMPARISON: InstrMode = InstrMode {
    words: &["EQ", "NE", "LT", "LE", "GT", "GE"],
    optional: false,
    doc: "the comparison; all but NE are false if either side is NaN",
};

const fn tile(name: &'static str, role: Role, at: &'static [Loc]) -> OperandSpec {
    OperandSpec { name, role, kind: OperandKind::Tile(at) }
}

const fn dst(at: &'static [Loc]) -> OperandSpec {
    tile("dst", Role::Dst, at)
}

const fn src(name: &'static str, at: &'static [Loc]) -> OperandSpec {
    tile(name, Role::Src, at)
}

#[cfg(test)]
mod tests;
