//! The order of the passes.

use crate::capacity::{Author, Nobody, check_sizes, reports, smaller};
use crate::clock::pass;
use crate::map::{MemoryMap, plan_without_limit};
use crate::memories::seen_by;
use crate::physical::physical;
use crate::placed::PlacedKernel;
use crate::{addresses, blocks, bytes, copies, dynamic, hazards, init, lower, pins, plan_check, ring_order, stages};
use ptoc_diagnostics::{Analysis, Budget, Diagnostic, Severity, codes};
use ptoc_ir::loops::Module;
use ptoc_ir::tile::verify::verify;
use ptoc_ir::tile::{Kernel, SyncMode};
use ptoc_isa::Target;
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// A kernel that is ready for an emitter.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The kernel with its checks, and where its tiles are.
    pub placed: PlacedKernel,
    /// The same as loop IR; `None` on PIM targets, whose backend works from the placed kernel.
    pub module: Option<Rc<Module>>,
    /// What is not an error.
    pub warnings: Vec<Diagnostic>,
}

/// All passes: initialisation, placement, the independent check of the plan, lowering.
pub fn pipeline(kernel: Kernel, target: &Target) -> Result<Prepared, Vec<Diagnostic>> {
    pipeline_of(kernel, target, &Nobody, &Budget::default())
}

/// As [`pipeline`], with someone who knows the source: capacity errors then say more, and what would mend them. What
/// the analyses do not decide with the steps of `budget` is one warning.
pub fn pipeline_of(
    kernel: Kernel,
    target: &Target,
    author: &dyn Author,
    budget: &Budget,
) -> Result<Prepared, Vec<Diagnostic>> {
    lowered(place_with(kernel, target, author, Hazards::Refuse, budget)?, target, budget)
}

/// What is said of the first hazard of a launch that goes on.
const TOLD: &str = "an error on other backends; the interpreter runs the kernel, so that you can look at it";

/// What is said of the first race of a launch that goes on.
const WATCHED: &str =
    "an error where nobody watches; this run watches every element and goes on, so that you can look at it";

/// As [`pipeline_of`], for a launch on the interpreter: hazards are only told, since a run is how one looks at them.
pub fn pipeline_to_run(
    kernel: Kernel,
    target: &Target,
    author: &dyn Author,
    budget: &Budget,
) -> Result<Prepared, Vec<Diagnostic>> {
    lowered(place_with(kernel, target, author, Hazards::Tell, budget)?, target, budget)
}

fn lowered(
    (mut placed, warnings): (PlacedKernel, Vec<Diagnostic>),
    target: &Target,
    budget: &Budget,
) -> Result<Prepared, Vec<Diagnostic>> {
    if target.is_pim() {
        return Ok(Prepared { placed, module: None, warnings });
    }
    let account = budget.account(Analysis::Lowering);
    let lowered = pass("lowering", || lower::lower(&mut placed.kernel, &placed.placement, target, account));
    let module = lowered.map_err(|mut errors| {
        errors.extend(warnings.iter().cloned());
        errors
    })?;
    Ok(Prepared { placed, module: Some(Rc::new(module)), warnings })
}

/// The passes up to placement, with warnings: what `check`, `mem` and the editor need.
pub fn place(kernel: Kernel, target: &Target) -> Result<(PlacedKernel, Vec<Diagnostic>), Vec<Diagnostic>> {
    place_of(kernel, target, &Nobody, &Budget::default())
}

/// As [`place`], with someone who knows the source.
pub fn place_of(
    kernel: Kernel,
    target: &Target,
    author: &dyn Author,
    budget: &Budget,
) -> Result<(PlacedKernel, Vec<Diagnostic>), Vec<Diagnostic>> {
    place_with(kernel, target, author, Hazards::Refuse, budget)
}

/// What becomes of hazards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hazards {
    /// They are errors.
    Refuse,
    /// They are warnings.
    Tell,
}

fn place_with(
    mut kernel: Kernel,
    target: &Target,
    author: &dyn Author,
    hazards: Hazards,
    budget: &Budget,
) -> Result<(PlacedKernel, Vec<Diagnostic>), Vec<Diagnostic>> {
    let target = &*seen_by(&kernel, target);
    let mut too_large = pass("sizes", || check_sizes(&kernel, target, author, budget));
    if let Some(first) = too_large.first_mut() {
        first.fixes.splice(0..0, smaller(&kernel, target, author, budget));
    }
    // The verifier refuses monstrous tiles too; the author hears of them in terms of memories.
    if too_large.is_empty() {
        verified(&kernel, "elaboration")?;
    }
    let mut diagnostics = pass("addresses", || addresses::settle(&mut kernel, target));
    diagnostics.extend(pass("initialisation", || init::check_within(&mut kernel, budget)));
    // Of a kernel that is refused, these would only distract.
    let mut remarks = Vec::new();
    if too_large.is_empty() && !diagnostics.iter().any(Diagnostic::is_error) {
        let found = pass("blocks", || blocks::check(&kernel, target, budget));
        let (mut wrong, open): (Vec<_>, Vec<_>) = found.into_iter().partition(Diagnostic::is_error);
        if hazards == Hazards::Tell {
            told(&mut wrong, WATCHED);
        }
        diagnostics.extend(wrong);
        remarks = open;
    }
    let mut watched = false;
    if too_large.is_empty() {
        let found = pass("bytes", || bytes::check(&kernel, target, &mut diagnostics, author, budget));
        watched = !found.proved;
        let (now, later): (Vec<_>, Vec<_>) = found.diagnostics.into_iter().partition(goes_first);
        diagnostics.extend(now);
        remarks.extend(later);
    }
    if kernel.sync == SyncMode::Manual {
        ring_order::explain(&kernel, &mut diagnostics);
    }
    // A memory that cannot hold one of its tiles says so once.
    let spoken: FxHashSet<_> =
        kernel.tiles.values().filter(|t| ptoc_isa::check_size(target, t.ty).is_some()).map(|t| t.ty.loc).collect();
    diagnostics.extend(too_large);
    let (live, plan) = pass("placement", || copies::plan_with_copies(&mut kernel, target));
    diagnostics.extend(pins::check(&kernel, &live, target));
    match plan {
        Ok(placement) if !diagnostics.iter().any(Diagnostic::is_error) => {
            for fault in pass("plan check", || plan_check::check(&kernel, &placement, target)) {
                diagnostics.push(fault.diagnostic(&kernel));
            }
            if diagnostics.iter().any(Diagnostic::is_error) {
                return Err(diagnostics);
            }
            dynamic::add_checks(&mut kernel, &placement);
            verified(&kernel, "placement")?;
            if kernel.sync == SyncMode::Manual {
                // The author's flags are judged on the bytes that the tiles have got.
                let mut found = pass("hazards", || {
                    hazards::check_of(&physical(&kernel, &placement, target), target, author, budget)
                });
                if hazards == Hazards::Tell {
                    told(&mut found, TOLD);
                }
                // Where a wait is for ever, what is read behind it is not read.
                if found.iter().any(|d| d.is_error() && d.code == codes::WAIT_WITHOUT_SET) {
                    let ring = |d: &Diagnostic| {
                        let rings = kernel.tiles.iter().filter(|(t, _)| init::kind(&kernel, *t) == init::Kind::Ring);
                        rings.into_iter().any(|(_, t)| d.labels.iter().any(|l| l.span == t.span))
                    };
                    diagnostics.retain(|d| d.code != codes::MAYBE_UNINITIALISED || !ring(d));
                }
                diagnostics.extend(found);
                if diagnostics.iter().any(Diagnostic::is_error) {
                    return Err(diagnostics);
                }
            }
            diagnostics.extend(remarks);
            diagnostics.extend(stages::check(&kernel, target));
            diagnostics.extend(budget.warning(&kernel.name, kernel.span));
            Ok((PlacedKernel { kernel, placement, watched }, diagnostics))
        }
        Ok(_) => Err(diagnostics),
        Err(overflows) => {
            let told = overflows.iter().filter(|o| !spoken.contains(&o.loc));
            diagnostics.extend(pass("repairs", || reports(&kernel, &live, target, told, author, budget)));
            Err(diagnostics)
        }
    }
}

/// Errors become warnings, the first of which says so.
fn told(found: &mut [Diagnostic], how: &str) {
    if let Some(first) = found.iter_mut().find(|d| d.is_error()) {
        first.notes.push(how.to_owned());
    }
    found.iter_mut().for_each(|d| d.severity = Severity::Warning);
}

/// The memories of a kernel. If its tiles do not fit, they are placed as if there were room, and the diagnostics come
/// along. Without a map there is an error.
pub fn map(
    kernel: Kernel,
    target: &Target,
    author: &dyn Author,
    budget: &Budget,
) -> (Option<MemoryMap>, Vec<Diagnostic>) {
    let target = &*seen_by(&kernel, target);
    match place_of(kernel.clone(), target, author, budget) {
        Ok((placed, warnings)) => (Some(MemoryMap::new(&placed.kernel, &placed.placement, target)), warnings),
        Err(errors) => {
            // What the verifier refuses has no sizes to speak of.
            let plan = verify(&kernel).ok().and_then(|()| plan_without_limit(&kernel, target));
            (plan.map(|plan| MemoryMap::new(&kernel, &plan, target)), errors)
        }
    }
}

/// Of what is said about bytes: errors, and what may be one.
fn goes_first(d: &Diagnostic) -> bool {
    d.is_error() || d.code == codes::MAYBE_UNINITIALISED
}

/// The verifier between passes. What it finds is a mistake of the step before, never the author's.
fn verified(kernel: &Kernel, step: &str) -> Result<(), Vec<Diagnostic>> {
    pass("verification", || verify(kernel)).map_err(|errors| {
        let report = |e: ptoc_ir::tile::verify::VerifyError| {
            Diagnostic::error(e.code, e.span, format!("a bug of ptoc: after {step}, {}", e.message))
                .with_label("the code for this is not valid tile IR")
                .with_note("the program is not at fault: please report it")
        };
        errors.into_iter().take(1).map(report).collect()
    })
}
