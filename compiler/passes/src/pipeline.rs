//! The order of the passes.

use ptoc_checks::capacity::{FixContext, NoSource, check_sizes, reports, smaller};
use ptoc_checks::{blocks, bounds, bytes, init, plan_check, ring_order};
use ptoc_diagnostics::{Analysis, Budget, Diagnostic, Severity, codes};
use ptoc_ir::loops::Module;
use ptoc_ir::tile::verify::verify;
use ptoc_ir::tile::{Kernel, SyncMode};
use ptoc_isa::Target;
use ptoc_lower::row_pipelining;
use ptoc_opt::analyses::Analyses;
use ptoc_opt::clock::pass;
use ptoc_opt::fragments::{seen_by, tile_registers};
use ptoc_opt::pass::{self as opt, Context, Pass, PassOptions, RewriteUnit, Snapshot, verified};
use ptoc_opt::{copy_propagation, fusion, grid_split, lazy_gather, rematerialize};
use ptoc_placement::map::{MemoryMap, plan_without_limit};
use ptoc_placement::physical;
use ptoc_placement::{PlacedKernel, Placement};
use ptoc_placement::{addresses, dynamic, fixed_addresses, multi_buffering, stages};
use rustc_hash::FxHashSet;
use std::fmt;
use std::sync::Arc;

/// A kernel that is ready for an emitter.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The kernel with its checks, and where its tiles are.
    pub placed: PlacedKernel,
    /// The same as loop IR; `None` for a backend that takes the placed kernel.
    pub module: Option<Arc<Module>>,
    /// What is not an error.
    pub warnings: Vec<Diagnostic>,
}

/// What a backend has made of a kernel that is checked and placed.
#[derive(Clone, Copy)]
pub enum Pipeline {
    /// Nothing: it takes the placed kernel.
    Placed,
    /// Loop IR, lowered after these rewrites of tile IR, in their order.
    Loops(&'static [Pass]),
}

/// How the passes are run.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What is made of the placed kernel.
    pub pipeline: Pipeline,
    /// Someone who knows the source: capacity errors then say more, and what would mend them.
    pub author: &'a dyn FixContext,
    /// What the analyses may spend. What they do not decide with its steps is one warning.
    pub budget: &'a Budget,
    /// Verifying and recording the IR between passes.
    pub options: PassOptions<'a>,
}

/// The rewrites of tile IR that the CPU backend wants, in their order.
pub const CPU_PASSES: &[Pass] = &[copy_propagation::PASS, grid_split::PASS, lazy_gather::PASS, rematerialize::PASS];

impl Pipeline {
    /// The pipeline of the backend that ptoc has for a target.
    pub fn of(target: &Target) -> Pipeline {
        if target.has_units() { Pipeline::Placed } else { Pipeline::Loops(CPU_PASSES) }
    }

    /// The steps that change IR, in their order, and what each does: for `emit --stage after:NAME`.
    pub fn steps(self) -> Vec<(&'static str, &'static str)> {
        let mut steps = vec![
            ("elaboration", "tile IR as the source says it"),
            ("addresses", "folds addresses that are constants, and proves those that are computed"),
            ("initialisation", "marks what is written before it is read"),
            ("placement", "gives each tile its bytes, and copies of its own to what pipes use at the same time"),
            ("address-checks", "checks the addresses that only the launch knows"),
        ];
        let Pipeline::Loops(rewrites) = self else { return steps };
        steps.push(("bounds", "puts a check in front of each access that is not proved to be in bounds"));
        steps.extend(rewrites.iter().map(|p| (p.name, p.about)));
        steps.push((fusion::NAME, fusion::ABOUT));
        steps.push(("lowering", "loop IR: a loop nest for each instruction, or for a fused chain of them"));
        steps.push((row_pipelining::NAME, row_pipelining::ABOUT));
        steps
    }
}

/// Pipelines are the same if their steps are.
impl PartialEq for Pipeline {
    fn eq(&self, other: &Pipeline) -> bool {
        match (self, other) {
            (Pipeline::Placed, Pipeline::Placed) => true,
            (Pipeline::Loops(a), Pipeline::Loops(b)) => a.iter().map(|p| p.name).eq(b.iter().map(|p| p.name)),
            _ => false,
        }
    }
}

impl Eq for Pipeline {}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.steps().iter().map(|s| s.0)).finish()
    }
}

impl<'a> Request<'a> {
    /// Without verifying or recording.
    pub fn new(author: &'a dyn FixContext, budget: &'a Budget, pipeline: Pipeline) -> Request<'a> {
        Request { pipeline, author, budget, options: PassOptions::default() }
    }
}

/// All passes: initialisation, placement, the independent check of the plan, lowering.
pub fn pipeline(kernel: Kernel, target: &Target) -> Result<Prepared, Vec<Diagnostic>> {
    let budget = Budget::default();
    pipeline_of(kernel, target, Request::new(&NoSource, &budget, Pipeline::of(target)))
}

/// As [`pipeline`], as a request says.
pub fn pipeline_of(kernel: Kernel, target: &Target, request: Request<'_>) -> Result<Prepared, Vec<Diagnostic>> {
    lowered(place_with(kernel, target, Hazards::Refuse, request)?, target, request)
}

/// What is said of the first hazard of a launch that goes on.
const TOLD: &str = "an error on other backends; the interpreter runs the kernel, so that you can look at it";

/// What is said of the first race of a launch that goes on.
const WATCHED: &str =
    "an error where nobody watches; this run watches every element and goes on, so that you can look at it";

/// As [`pipeline_of`], for a launch on the interpreter: hazards are only told, since a run is how one looks at them.
pub fn pipeline_to_run(kernel: Kernel, target: &Target, request: Request<'_>) -> Result<Prepared, Vec<Diagnostic>> {
    lowered(place_with(kernel, target, Hazards::Tell, request)?, target, request)
}

fn lowered(
    (mut placed, warnings): (PlacedKernel, Vec<Diagnostic>),
    target: &Target,
    request: Request<'_>,
) -> Result<Prepared, Vec<Diagnostic>> {
    let Pipeline::Loops(rewrites) = request.pipeline else {
        return Ok(Prepared { placed, module: None, warnings });
    };
    let module = module(&mut placed, target, rewrites, request).map_err(|mut errors| {
        errors.extend(warnings.iter().cloned());
        errors
    })?;
    Ok(Prepared { placed, module: Some(Arc::new(module)), warnings })
}

/// A placed kernel as loop IR. Checks of accesses and of the lowering are appended to its table.
fn module(
    placed: &mut PlacedKernel,
    target: &Target,
    rewrites: &[Pass],
    request: Request<'_>,
) -> Result<Module, Vec<Diagnostic>> {
    let account = request.budget.account(Analysis::Lowering);
    let (bounded, verdict) = pass("bounds", || bounds::settled(&placed.kernel, target, account));
    if let Some(bounded) = &bounded {
        bounds::verify(bounded, target)?;
        placed.kernel.checks.clone_from(&bounded.checks);
        keep(request, "bounds", bounded, Some(&placed.placement));
    }
    let kernel = bounded.unwrap_or_else(|| placed.kernel.clone());
    let mut unit = RewriteUnit::new(kernel, placed.placement.clone());
    opt::run(rewrites, &mut unit, &Context { target, account }, request.options)?;
    let analyses = Analyses::of(&unit, target);
    if let Some(recorder) = request.options.recorder
        && let decided = analyses.fusion.text(&unit.kernel)
        && !decided.is_empty()
    {
        recorder.keep(fusion::NAME, Snapshot::Decided(decided));
    }
    let (mut module, checks) = pass("lowering", || ptoc_lower::lower(&unit, analyses, target))?;
    for check in checks {
        placed.kernel.checks.push(check);
    }
    keep_loops(request, "lowering", &module);
    if let Some(rows) = &unit.rows
        && pass(row_pipelining::NAME, || row_pipelining::run(&mut module, rows.dim))
    {
        keep_loops(request, row_pipelining::NAME, &module);
    }
    module.bounds = bounds::of_module(verdict.rows, &module);
    Ok(module)
}

/// Records tile IR, if someone wants it.
fn keep(request: Request<'_>, step: &'static str, kernel: &Kernel, placement: Option<&Placement>) {
    if let Some(recorder) = request.options.recorder {
        recorder.keep(step, Snapshot::Tile(kernel.clone(), placement.cloned()));
    }
}

/// Records loop IR, if someone wants it.
fn keep_loops(request: Request<'_>, step: &'static str, module: &Module) {
    if let Some(recorder) = request.options.recorder {
        recorder.keep(step, Snapshot::Loop(module.clone()));
    }
}

/// The passes up to placement, with warnings: what `check`, `mem` and the editor need.
pub fn place(kernel: Kernel, target: &Target) -> Result<(PlacedKernel, Vec<Diagnostic>), Vec<Diagnostic>> {
    place_of(kernel, target, &NoSource, &Budget::default())
}

/// As [`place`], with someone who knows the source.
pub fn place_of(
    kernel: Kernel,
    target: &Target,
    author: &dyn FixContext,
    budget: &Budget,
) -> Result<(PlacedKernel, Vec<Diagnostic>), Vec<Diagnostic>> {
    place_with(kernel, target, Hazards::Refuse, Request::new(author, budget, Pipeline::Placed))
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
    hazards: Hazards,
    request: Request<'_>,
) -> Result<(PlacedKernel, Vec<Diagnostic>), Vec<Diagnostic>> {
    let Request { author, budget, .. } = request;
    let target = &*seen_by(&kernel, target);
    let mut too_large = pass("sizes", || check_sizes(&kernel, target, author, budget));
    if let Some(first) = too_large.first_mut() {
        first.fixes.splice(0..0, smaller(&kernel, target, author, budget));
    }
    // The verifier refuses monstrous tiles too; the author hears of them in terms of memories.
    if too_large.is_empty() {
        verified(&kernel, "elaboration")?;
    }
    keep(request, "elaboration", &kernel, None);
    let mut diagnostics = pass("addresses", || addresses::settle(&mut kernel, target));
    keep(request, "addresses", &kernel, None);
    diagnostics.extend(pass("initialisation", || init::check_within(&mut kernel, budget)));
    keep(request, "initialisation", &kernel, None);
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
    let spoken: FxHashSet<_> = kernel
        .tiles
        .values()
        .filter(|t| ptoc_isa::check_size(target, t.ty).is_some())
        .map(|t| target.home(t.ty.loc))
        .collect();
    diagnostics.extend(too_large);
    let (live, plan) = pass("placement", || multi_buffering::plan_with_copies(&mut kernel, target));
    diagnostics.extend(fixed_addresses::check(&kernel, &live, target));
    match plan {
        Ok(placement) if !diagnostics.iter().any(Diagnostic::is_error) => {
            for fault in pass("plan check", || plan_check::check(&kernel, &placement, target)) {
                diagnostics.push(fault.diagnostic(&kernel));
            }
            if diagnostics.iter().any(Diagnostic::is_error) {
                return Err(diagnostics);
            }
            keep(request, "placement", &kernel, Some(&placement));
            dynamic::add_checks(&mut kernel, &placement);
            verified(&kernel, "placement")?;
            keep(request, "address-checks", &kernel, Some(&placement));
            if kernel.sync == SyncMode::Manual {
                // The author's flags are judged on the bytes that the tiles have got.
                let mut found = pass("hazards", || {
                    ptoc_hazards::check_of(&physical(&kernel, &placement, target), target, author, budget)
                });
                if hazards == Hazards::Tell {
                    told(&mut found, TOLD);
                }
                // Where a wait is for ever, what is read behind it is not read.
                if found.iter().any(|d| d.is_error() && d.code == codes::WAIT_WITHOUT_SET) {
                    let ring = |d: &Diagnostic| {
                        let rings =
                            kernel.tiles.iter().filter(|(t, _)| init::kind(&kernel, *t) == init::TileKind::Ring);
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
            let mut found = pass("repairs", || reports(&kernel, &live, target, told, author, budget));
            // On tensor cores fused tiles would have no bytes.
            if let (Some(first), Some(Err(why))) =
                (found.first_mut(), target.gpu.map(|_| ptoc_opt::fragments::find(&kernel, target)))
                && !why.is_empty()
            {
                first.notes.push(format!(
                    "the tensor cores, for which only registers that are alive count, are not used: {why}"
                ));
            }
            diagnostics.extend(found);
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
    author: &dyn FixContext,
    budget: &Budget,
) -> (Option<MemoryMap>, Vec<Diagnostic>) {
    let target = &*seen_by(&kernel, target);
    match place_of(kernel.clone(), target, author, budget) {
        Ok((placed, warnings)) => {
            let mut map = MemoryMap::new(&placed.kernel, &placed.placement, target);
            map.registers = tile_registers(&placed.kernel, target);
            (Some(map), warnings)
        }
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
