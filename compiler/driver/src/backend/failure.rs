//! Failed checks of compiled code as diagnostics.

use crate::launch::PlannedLaunch;
use ptoc_diagnostics::Diagnostic;
use ptoc_interp::Trap;
use ptoc_ir::tile::{CheckId, Kernel};

/// Why a launch did not complete; `check` is the number of the check in `kernel` that a row of the code's table is of.
pub(super) fn failed(
    step: &PlannedLaunch,
    kernel: &Kernel,
    check: impl Fn(usize) -> u32,
    error: ptoc_exec::LaunchError,
) -> Box<Diagnostic> {
    let failure = match ptoc_cpu::diagnose(error) {
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
