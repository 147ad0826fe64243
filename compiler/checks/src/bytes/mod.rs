//! Byte-level def-use analysis: overlap, use before write and dead stores, byte by byte.
//!
//! One abstract interpretation of the body ([`walk`], [`control`]) keeps, for every byte of every memory, the writes
//! whose value it may hold ([`contents`]), each with the conditions under which it does. An automatic tile has a
//! storage of its own, as in the interpreter; that the planner's addresses keep such tiles apart is the plan checker's
//! business. From it:
//!
//! * **Use before write**: a byte that is sure to be read and holds nothing: E0501; nothing on some path: E0502.
//! * **Overlap** (W0220): a read through one tile finds what another tile wrote over the value that was there. Reading
//!   another tile's bytes that the reading tile has not written is the way to see bytes under another type, and means
//!   that the two share bytes on purpose; so does `at x` in the source.
//! * **Own source** (E0617): an instruction that works in steps writes bytes that it still reads, or may do so.
//! * **Dead store** (W0221): a write of which no read can find a byte.
//!
//! A window is followed to its bytes where its origin and its extents are constants (of the iteration that is looked
//! at). Where a valid extent is symbolic, the same numbers mean the same window, and so does what is left of it behind
//! an origin; otherwise nothing is claimed: what is read may be more than is read, what is overwritten less than is
//! overwritten. So a dead store is dead in every run, and what is called unwritten is unwritten. A read of which
//! neither is shown is a warning (E0502), and runs of the kernel are watched.
//!
//! A counted loop is walked through as long as that is not too much; of a longer one, what an iteration may touch are
//! the windows at all values that its indices may have ([`ptoc_ir::analysis::progression`]), so that rows which no
//! iteration writes stay unwritten.
//!
//! What is left open then is looked at without iterations ([`families`], [`witness`]): of a loop, there is an index for
//! each window that it writes, and whether one of them has the element that is read is shown with linear inequalities
//! ([`linear`]), quotients, remainders, minima and maxima among them.
//!
//! Roles run side by side, but what a kernel means is its text from top to bottom; that the synchronisation keeps to
//! that is for the hazards to say.

mod contents;
mod control;
mod copies;
mod covers;
mod differ;
mod families;
mod linear;
mod numbers;
mod places;
mod reads;
mod related;
mod repair;
mod report;
mod shift;
mod sources;
mod states;
mod touches;
mod walk;
mod window;
mod witness;
mod writes;

use crate::capacity::FixContext;
use crate::init::{TileKind, kind};
use ptoc_diagnostics::{Analysis, Budget, Code, Diagnostic, Span, codes};
use ptoc_ir::tile::{Kernel, SyncMode, Tile};
use ptoc_isa::Target;
use rustc_hash::FxHashMap;

/// What is told where runs are watched: two tiles on the same bytes, and results over their own sources, if they are
/// not on purpose; copies that may meet themselves.
pub const DOUBTS: [Code; 4] =
    [codes::OVERLAP, codes::OVERLAPPING_OPERANDS, codes::MAYBE_UNINITIALISED, codes::COPY_NOT_PROVED];

/// What was found.
pub struct Checked {
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Whatever a statement reads of a tile is certainly written, by that tile.
    pub proved: bool,
}

/// Checks the body of `kernel`, of which initialisation has said `diagnostics`: takes out of them the doubts about
/// tiles (E0502) that it can dispel or has proved to be right, and gives the errors and warnings that come in addition.
/// If the steps of `budget` do not suffice, it says nothing, and notes that there.
pub fn check(
    kernel: &Kernel,
    target: &Target,
    diagnostics: &mut Vec<Diagnostic>,
    author: &dyn FixContext,
    budget: &Budget,
) -> Checked {
    let account = budget.account(Analysis::Bytes);
    let Some(findings) = walk::analyse(kernel, account) else {
        account.give_up();
        return Checked { diagnostics: Vec::new(), proved: false };
    };
    let mut proved: FxHashMap<Span, Vec<Tile>> = FxHashMap::default();
    findings.proved.iter().for_each(|(span, tile)| proved.entry(*span).or_default().push(*tile));
    diagnostics.retain(|d| {
        let of = |tile: &Tile| d.labels.iter().any(|l| l.span == kernel.tiles[*tile].span);
        let proved = || d.span.and_then(|span| proved.get(&span)).is_some_and(|tiles| tiles.iter().any(of));
        // Of flags in disorder the hazards have more to say; of a ring, this is what shows it.
        let first = |tile: Tile| kernel.sync != SyncMode::Manual || kind(kernel, tile) == TileKind::Ring;
        let wrong = |u: &walk::Unwritten| {
            (u.always || u.sure) && first(u.tile) && d.labels.iter().any(|l| l.span == kernel.tiles[u.tile].span)
        };
        d.code != codes::MAYBE_UNINITIALISED || !(proved() || findings.unwritten.iter().any(wrong))
    });
    let report = report::Report {
        kernel,
        target,
        earlier: diagnostics,
        author,
        findings: &findings,
        trial: account.of(Analysis::Repairs),
    };
    let mut found = report.all();
    let shared = copies::shared(kernel, &touches::constants(kernel));
    let of_bytes = |d: &Diagnostic| DOUBTS.contains(&d.code);
    let proved =
        findings.unproved.is_empty() && shared.is_empty() && !found.iter().chain(diagnostics.iter()).any(of_bytes);
    found.extend(shared);
    Checked { diagnostics: found, proved }
}
