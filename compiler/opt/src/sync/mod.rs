//! Inserts what orders the pipes of a physical kernel: flags from pipe to pipe, and barriers.
//!
//! Every pair of accesses to common bytes, one of them a write, that different pipes make (or one pipe that starts
//! early) gets an order, and no pair gets one that it has already: through the order of a pipe, through the issuer, or
//! through other flags. The steps:
//!
//! | step | file |
//! |---|---|
//! | the program as events on pipes, with what they touch | `tree`, `touch` |
//! | which pairs are not ordered yet | `flow`, on `state` |
//! | flags and barriers, innermost blocks first | `place` |
//! | none that is not needed | `trim` |
//! | not more than the target has | `limit` |
//! | back into tile IR | `emit` |
//!
//! The rules of order are those of [`ptoc_ir::tile::SyncOp`]; besides, the scalar pipe is the issuer: what it reads,
//! and what it waits for, is done before anything that is issued later starts. What it *writes* goes through its cache,
//! so that other pipes need a flag to see it.

mod emit;
mod flow;
mod limit;
mod place;
mod state;
mod touch;
mod tree;
mod trim;

pub use place::{Fallback, Narrowed};
use ptoc_ir::tile::{Kernel, SyncMode};
use ptoc_isa::Target;

/// What an insertion did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Flags, each element of an array counted.
    pub flags: u32,
    /// Barriers, of one pipe or of all.
    pub barriers: u32,
    /// Flags and barriers that placement put in and that turned out not to be needed.
    pub dropped: usize,
    /// Where all pipes meet because flags would not do.
    pub fallbacks: Vec<Fallback>,
    /// Where the target's flags were too few for one an iteration.
    pub narrowed: Vec<Narrowed>,
    /// Pairs that are still not ordered. A mistake of this pass, if there is any.
    pub missing: usize,
    /// Pairs of statements on different pipes, the first before the second on some way, that need an order: so many
    /// flags it would take to give one to each, not counting those that say when a flag may be raised again.
    pub pairs: usize,
    /// What the analyses cost, in machine words gone over.
    pub cost: u64,
    /// Not all was tried that could have made it less, as that would have cost too much.
    pub untried: bool,
}

/// `kernel`, which is physical and automatic, with its pipes ordered for `target`. Any other is returned as it is.
pub fn insert(kernel: Kernel, target: &Target) -> Kernel {
    insert_and_report(kernel, target).0
}

/// [`insert`], and what it did.
pub fn insert_and_report(kernel: Kernel, target: &Target) -> (Kernel, Report) {
    if kernel.sync != SyncMode::Auto {
        return (kernel, Report::default());
    }
    let (tree, block) = tree::Tree::new(&kernel, target);
    let mut placer = place::Placer::new(&kernel, tree);
    let mut block = placer.solve(block);
    if !placer.check(&block).is_empty() {
        let (tree, fresh) = tree::Tree::new(&kernel, target);
        placer = place::Placer::new(&kernel, tree);
        block = placer.meet_everywhere(fresh);
    }
    let placing = placer.spent.replace(0);
    let mut dropped = placer.drop_surplus(&block);
    if placer.limit(&mut block, target.pipes.flags) {
        // What makes do with fewer flags orders more than it replaces.
        dropped += placer.drop_surplus(&block);
    }
    let missing = placer.check(&block).len();
    let pairs = flow::pairs(&placer.tree, &placer.needs, &block);
    let (cost, untried) = (placing + placer.spent.get(), !placer.affordable());
    let place::Placer { tree, fallbacks, narrowed, .. } = placer;
    let live = tree.flags.iter().filter(|f| !f.dead && f.same.is_none());
    let report = Report {
        flags: live.map(|f| f.count).sum(),
        barriers: tree.barriers.iter().filter(|b| !b.dead).count() as u32,
        dropped,
        fallbacks: fallbacks.into_iter().filter(|(b, _)| !tree.barriers[*b].dead).map(|(_, f)| f).collect(),
        narrowed: narrowed.into_iter().filter(|(f, _)| !tree.flags[*f].dead).map(|(_, n)| n).collect(),
        missing,
        pairs,
        cost,
        untried,
    };
    (emit::emit(kernel, &tree, &block), report)
}
