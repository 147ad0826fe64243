//! Placed tile IR to the loop IR that this backend wants.

use ptoc_checks::bounds;
use ptoc_diagnostics::{Account, Diagnostic};
use ptoc_ir::loops::Module;
use ptoc_ir::tile::Kernel;
use ptoc_isa::Target;
use ptoc_opt::analyses::Analyses;
use ptoc_opt::pass::{Context, Pass, PassOptions, Unit, run};
use ptoc_opt::{copy_propagation, rematerialize};
use ptoc_placement::Placement;

/// The rewrites of tile IR: those of the CPU's that are not about its caches and threads. Grid splitting and row
/// pipelining make work for one core of what a CTA does at once, and lazy gathers compare addresses of the chip's
/// memories with those of arrays.
pub const GPU_PASSES: &[Pass] = &[copy_propagation::PASS, rematerialize::PASS];

/// Lowers a placed kernel. Checks of accesses and of the lowering are appended to its table.
///
/// # Errors
/// What a step says of the result of another: never the author's mistake.
pub fn lower(
    kernel: &mut Kernel,
    placement: &Placement,
    target: &Target,
    account: Account<'_>,
) -> Result<Module, Vec<Diagnostic>> {
    let (bounded, verdict) = bounds::settled(kernel, target, account);
    if let Some(bounded) = &bounded {
        bounds::verify(bounded, target)?;
        kernel.checks.clone_from(&bounded.checks);
    }
    let mut unit = Unit::new(bounded.unwrap_or_else(|| kernel.clone()), placement.clone());
    run(GPU_PASSES, &mut unit, &Context { target, account }, PassOptions::default())?;
    let analyses = Analyses::of(&unit);
    let (mut module, checks) = ptoc_lower::lower(&unit, analyses, target)?;
    for check in checks {
        kernel.checks.push(check);
    }
    module.bounds = bounds::of_module(verdict.rows, &module);
    Ok(module)
}
