//! Failed checks of compiled code as diagnostics.

use crate::launch::PlannedLaunch;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_exec::{Failure, LaunchError};
use ptoc_interp::Trap;
use ptoc_ir::tile::{CheckId, Kernel};

/// What to tell the user of a launch that did not complete. A failed check is handed back: what it means is in the
/// kernel's own table.
///
/// # Errors
/// The failed check.
pub fn diagnose(error: LaunchError) -> Result<Diagnostic, Failure> {
    let text = error.to_string();
    Ok(match error {
        LaunchError::Arguments { .. } => Diagnostic::global(codes::LAUNCH_ARGUMENTS, text),
        LaunchError::GridTooLarge(_) => Diagnostic::global(codes::GRID_TOO_LARGE, text),
        LaunchError::OutOfMemory { .. } => Diagnostic::global(codes::NO_MEMORY_FOR_TILES, text)
            .with_help("run with fewer threads (`--threads 1`), or choose smaller tiles"),
        LaunchError::Check(failure) => return Err(failure),
        // Whoever watches asks the monitor first, and whoever ends a launch knows why.
        LaunchError::Stopped { .. } | LaunchError::Interrupted => Diagnostic::global(codes::LAUNCH_ARGUMENTS, text),
    })
}

/// Why a launch did not complete; `check` is the number of the check in `kernel` that a row of the code's table is of.
pub(super) fn failed(
    step: &PlannedLaunch,
    kernel: &Kernel,
    check: impl Fn(usize) -> u32,
    error: LaunchError,
) -> Box<Diagnostic> {
    let failure = match diagnose(error) {
        Ok(mut d) => {
            d.span.get_or_insert(step.kernel.span);
            return Box::new(d);
        }
        Err(failure) => failure,
    };
    let check = &kernel.checks[CheckId::from_u32(check(failure.check as usize))];
    let fill = |text: &str| {
        failure
            .args
            .iter()
            .enumerate()
            .fold(text.to_owned(), |text, (n, arg)| text.replace(&format!("{{{n}}}"), &arg.to_string()))
    };
    let trap = Trap {
        help: check.help.as_deref().map(fill),
        block: failure.block.map(|_| failure.coords.clone()),
        ..Trap::new(check.code, check.span, fill(&check.message))
    };
    Box::new(step.trapped(trap.to_diagnostic()))
}
