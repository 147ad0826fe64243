//! PTO's mnemonics that the table does not have, so that messages can tell "not yet" from "no such thing".

use super::{TABLE, lookup};
use crate::InstrId;

/// Instructions of PTO that ptoc does not have yet, sorted (pto_isa.md section 5).
pub const NOT_YET: &[&str] = &[
    "MSCATTER",
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
    "TDEINTERLEAVE",
    "TEXTRACT_FP",
    "TGEMV_MX",
    "TGET",
    "TGET_ASYNC",
    "TGET_SCALE_ADDR",
    "TINSERT_FP",
    "TINTERLEAVE",
    "TMATMUL_MX",
    "TMOV_FP",
    "TNOTIFY",
    "TPARTADD",
    "TPARTARGMAX",
    "TPARTARGMIN",
    "TPARTMAX",
    "TPARTMIN",
    "TPARTMUL",
    "TPOW",
    "TPOWS",
    "TPREFETCH",
    "TPREFETCH_ASYNC",
    "TPRINT",
    "TPUT",
    "TPUT_ASYNC",
    "TQUANT_DN",
    "TREDUCE",
    "TSTORE_FP",
    "TSUBVIEW",
    "TTEST",
    "TWAIT",
];

/// What a name that looks like an instruction stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// An instruction of the table.
    Found(InstrId),
    /// A PTO instruction that ptoc does not have yet.
    NotYet(&'static str),
    /// Neither; the nearest instructions that ptoc has, best first (may be empty).
    Unknown {
        /// Did you mean?
        nearest: Vec<&'static str>,
    },
}

/// Looks `name` up in the table, then among PTO's other mnemonics.
pub fn find(name: &str) -> Lookup {
    if let Some(id) = lookup(name) {
        return Lookup::Found(id);
    }
    let upper = name.to_ascii_uppercase();
    if let Ok(at) = NOT_YET.binary_search(&upper.as_str()) {
        return Lookup::NotYet(NOT_YET[at]);
    }
    Lookup::Unknown { nearest: crate::text::nearest(&upper, TABLE.iter().map(|i| i.name)) }
}
