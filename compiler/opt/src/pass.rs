//! The pass manager: rewrites of placed tile IR as named passes, each verified, timed and recorded alike.
//!
//! A backend names the passes that it wants, in their order ([`run`]). A pass is a function from a [`RewriteUnit`] to a
//! [`RewriteUnit`]: it sees nothing but the kernel, its placement, the target, and the budget of steps. What it finds
//! out for the emitter, beyond the kernel itself, is a field of the unit.

use crate::clock;
use crate::grid_split::RowBlocks;
use crate::lazy_gather::LazyGathers;
use ptoc_diagnostics::{Account, Diagnostic};
use ptoc_ir::loops::Module;
use ptoc_ir::tile::Kernel;
use ptoc_ir::tile::verify::{VerifyError, verify, verify_rewritten};
use ptoc_isa::Target;
use ptoc_placement::Placement;
use std::cell::RefCell;

/// A placed kernel on its way through the rewrites, and what they found out for the emitter.
#[derive(Clone, Debug)]
pub struct RewriteUnit {
    /// The kernel.
    pub kernel: Kernel,
    /// Where its tiles are.
    pub placement: Placement,
    /// Grid splitting: each row of the former blocks is a block of its own.
    pub rows: Option<RowBlocks>,
    /// Lazy gathers: which gathers leave row pointers.
    pub gathers: LazyGathers,
}

impl RewriteUnit {
    /// A kernel as it was placed.
    pub fn new(kernel: Kernel, placement: Placement) -> RewriteUnit {
        RewriteUnit { kernel, placement, rows: None, gathers: LazyGathers::default() }
    }
}

/// What a pass may ask beside its unit.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The target.
    pub target: &'a Target,
    /// What searches take their steps from.
    pub account: Account<'a>,
}

/// A rewrite of tile IR.
#[derive(Clone, Copy)]
pub struct Pass {
    /// `copy-propagation`: for `emit --stage after:NAME` and `--time-passes`.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Rewrites the unit; says whether anything changed.
    pub run: fn(&mut RewriteUnit, &Context<'_>) -> bool,
}

/// IR as it was after a pass.
#[derive(Clone, Debug)]
pub enum Snapshot {
    /// Tile IR, and where tiles are once they are placed.
    Tile(Kernel, Option<Placement>),
    /// Loop IR.
    Loop(Module),
    /// What a pass decided that changes no IR, in words.
    Decided(String),
}

impl Snapshot {
    /// Whether it is the same tile IR. Loop IR is only recorded when it has changed.
    fn is_same(&self, other: &Snapshot) -> bool {
        match (self, other) {
            (Snapshot::Tile(a, p), Snapshot::Tile(b, q)) => a == b && p == q,
            _ => false,
        }
    }
}

/// Keeps the IR after each pass that changed it. It is off unless someone wants to see them.
#[derive(Default, Debug)]
pub struct Recorder(RefCell<Vec<(&'static str, Snapshot)>>);

impl Recorder {
    /// Takes what was recorded, in order.
    pub fn take(&self) -> Vec<(&'static str, Snapshot)> {
        self.0.take()
    }

    /// Keeps the IR after a pass, unless the pass changed nothing.
    pub fn keep(&self, pass: &'static str, ir: Snapshot) {
        let mut kept = self.0.borrow_mut();
        if kept.last().is_none_or(|(_, last)| !last.is_same(&ir)) {
            kept.push((pass, ir));
        }
    }
}

/// How passes are run.
#[derive(Clone, Copy, Default)]
pub struct PassOptions<'a> {
    /// Verifies the IR after each pass that changed it, in release builds too.
    pub verify: bool,
    /// Keeps the IR after each pass that changed it.
    pub recorder: Option<&'a Recorder>,
}

impl PassOptions<'_> {
    /// Whether the IR is verified after each pass. Always in debug builds.
    pub fn verifies(&self) -> bool {
        self.verify || cfg!(debug_assertions)
    }
}

/// Runs passes in their order.
///
/// # Errors
/// What the verifier says after a pass: a mistake of the pass, never the author's.
pub fn run(
    passes: &[Pass],
    unit: &mut RewriteUnit,
    cx: &Context<'_>,
    options: PassOptions<'_>,
) -> Result<(), Vec<Diagnostic>> {
    for pass in passes {
        if !clock::pass(pass.name, || (pass.run)(unit, cx)) {
            continue;
        }
        if options.verifies() {
            checked(pass.name, || verify_rewritten(&unit.kernel))?;
        }
        if let Some(recorder) = options.recorder {
            recorder.keep(pass.name, Snapshot::Tile(unit.kernel.clone(), Some(unit.placement.clone())));
        }
    }
    Ok(())
}

/// The verifier between passes.
///
/// # Errors
/// The first thing that it finds, as a mistake of the step before.
pub fn verified(kernel: &Kernel, step: &str) -> Result<(), Vec<Diagnostic>> {
    checked(step, || verify(kernel))
}

/// A verifier's errors as a mistake of the step before.
fn checked(step: &str, verifier: impl FnOnce() -> Result<(), Vec<VerifyError>>) -> Result<(), Vec<Diagnostic>> {
    clock::pass("verification", verifier).map_err(|errors| {
        let report = |e: VerifyError| {
            Diagnostic::error(e.code, e.span, format!("a bug of ptoc: after {step}, {}", e.message))
                .with_label("the code for this is not valid tile IR")
                .with_note("the program is not at fault: please report it")
        };
        errors.into_iter().take(1).map(report).collect()
    })
}
