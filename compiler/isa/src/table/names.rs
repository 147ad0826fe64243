//! PTO's mnemonics that the table does not have, so that messages can tell "not yet" from "no such thing".

use super::{TABLE, lookup};
use crate::{InstrId, Sem};

/// Instructions of PTO that ptoc does not have yet, sorted (`coverage/pto.txt` has them all).
pub const NOT_YET: &[&str] = &[
    "SETFMATRIX",
    "SETHF32MODE",
    "SETTF32MODE",
    "SET_IMG2COL_PADDING",
    "SET_IMG2COL_RPT",
    "SET_QUANT_SCALAR",
    "SET_QUANT_VECTOR",
    "SYNCALL",
    "TALIAS",
    "TBROADCAST",
    "TGEMV_MX",
    "TGET",
    "TGET_ASYNC",
    "TGET_SCALE_ADDR",
    "TMATMUL_MX",
    "TNOTIFY",
    "TPACK",
    "TPREFETCH",
    "TPRINT",
    "TPUT",
    "TPUT_ASYNC",
    "TQUANT_DN",
    "TQUANT_HIF4",
    "TREDUCE",
    "TSUBVIEW",
    "TTEST",
    "TWAIT",
];

/// What a name that looks like an instruction stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NameLookup {
    /// An instruction of the table.
    Found(InstrId),
    /// A PTO instruction that ptoc does not have yet.
    NotYet(&'static str),
    /// Neither; the nearest instructions that ptoc has, best first (may be empty).
    Unknown {
        /// Names to propose.
        nearest: Vec<&'static str>,
    },
}

/// The instruction that means the same with a scalar where `id` has a tile, or the reverse (TADD and TADDS, TPRELU and
/// TLRELU, TSTORE_FP and TSTORE with a scale), and the position of that operand.
pub fn sibling(id: InstrId) -> Option<(InstrId, usize)> {
    let row = id.get();
    if let Sem::Fixpipe(f) = row.sem {
        let k = row.operands.iter().position(|o| o.name == "scale")?;
        let (own, others) = if f.by_column(row) { ("_FP", "_QUANT") } else { ("_QUANT", "_FP") };
        return Some((lookup(&format!("{}{others}", row.name.strip_suffix(own)?))?, k));
    }
    let expr = row.sem.expr()?;
    let scalar = |i: &crate::Instr, k: usize| matches!(i.operands[k].kind, crate::OperandKind::Scalar(_));
    InstrId::all().find_map(|other| {
        let o = other.get();
        let alike = o.sem.expr() == Some(expr)
            && (o.shape, o.updates, o.operands.len()) == (row.shape, row.updates, row.operands.len());
        let differ: Vec<usize> = (0..row.operands.len()).filter(|&k| alike && scalar(row, k) != scalar(o, k)).collect();
        if let [k] = differ[..] { Some((other, k)) } else { None }
    })
}

/// Looks `name` up in the table, then among PTO's other mnemonics.
pub fn find(name: &str) -> NameLookup {
    if let Some(id) = lookup(name) {
        return NameLookup::Found(id);
    }
    let upper = name.to_ascii_uppercase();
    if let Ok(at) = NOT_YET.binary_search(&upper.as_str()) {
        return NameLookup::NotYet(NOT_YET[at]);
    }
    // What the language adds is called by its function's name.
    let of_pto = TABLE.iter().filter(|i| i.source != super::functions::OWN).map(|i| i.name);
    NameLookup::Unknown { nearest: crate::text::nearest(&upper, of_pto) }
}
