//! What the passes ask of a target's memories, and how diagnostics call them.

use ptoc_ir::tile::Kernel;
use ptoc_isa::{Loc, Target, text};
use std::borrow::Cow;

/// The target as this kernel sees it: one that the host runs has the host's memory.
pub fn seen_by<'t>(kernel: &Kernel, target: &'t Target) -> Cow<'t, Target> {
    if kernel.host { Cow::Owned(target.host()) } else { Cow::Borrowed(target) }
}

/// Bytes of the memory behind `loc`; 0 if the target has none.
pub fn capacity(target: &Target, loc: Loc) -> u64 {
    target.capacity(loc)
}

/// Alignment of addresses in it, at least 1.
pub fn align(target: &Target, loc: Loc) -> u64 {
    target.memory(loc).align.max(1)
}

/// `L0C (Acc)`; of a pool `smem (Mat and Vec)`
pub fn name(target: &Target, loc: Loc) -> String {
    if let Some(pool) = target.pool_of(loc) {
        return format!("{} ({})", pool.name, text::list(&pool.locations));
    }
    match target.memory(loc).name.as_str() {
        "" => loc.name().to_owned(),
        hardware => format!("{hardware} ({loc})"),
    }
}
