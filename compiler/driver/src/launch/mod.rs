//! From arrays and definitions to results: bind, elaborate, compile, run, compare.
//!
//! A kernel is a [`Plan`] of one step, a program one of several. A plan is made once and can be run on any backend.

mod arrays;
mod bind;
mod compare;
mod holes;
mod mismatch;
pub mod pim;
mod pipes;
mod plan;
mod random;
mod run;
mod watched;
mod witness;

use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_isa::Target;

pub use arrays::{Arrays, check_given, check_outputs, for_argument, open_arrays, open_expected};
pub use bind::bind_dimensions;
pub use compare::{Verified, verify};
pub use mismatch::explain;
pub use pipes::{Schedule, Timed};
pub use plan::{Argument, Plan, Step};
pub(crate) use plan::{extent, step_dims};
pub use run::{Backend, CompiledPlan, Observers, Outcome, RunOptions};

/// A stage of `emit` that kernels for this target do not have.
pub fn wrong_stage(target: &Target, stage: &str) -> Diagnostic {
    let message = format!("a kernel for {} has no stage `{stage}`", target.name);
    let d = Diagnostic::global(codes::BACKEND_TARGET, message);
    match target.is_pim() {
        true => d
            .with_note(format!(
                "`{}` has units in memory: its kernels become a command stream, and not machine code",
                target.name
            ))
            .with_help("`--stage pim` shows the stream, `--stage placed` what it is made from"),
        false => d
            .with_note(format!("`{}` has no units in memory, for which command streams are", target.name))
            .with_help(format!("give {}; or `--stage loop`, `clif` or `asm`", pim_targets())),
    }
}

/// The targets with units in memory, as flags.
fn pim_targets() -> String {
    let pim = Target::all().iter().filter(|t| t.is_pim()).map(|t| format!("`--target {}`", t.name));
    pim.collect::<Vec<_>>().join(" or ")
}

/// A backend that does not have the numbers of this target.
pub fn wrong_backend(target: &Target, asked: &str) -> Diagnostic {
    let [first, second] = *target.backends() else { unreachable!("every target has two") };
    let why = match target.is_pim() {
        true => format!("`{}` has units in memory, which `{asked}` has not", target.name),
        false => format!("`{}` has no units in memory, which is what `{asked}` runs", target.name),
    };
    Diagnostic::global(codes::BACKEND_TARGET, format!("the backend `{asked}` does not run kernels for {}", target.name))
        .with_note(why)
        .with_help(match (target.is_pim(), asked) {
            (false, "pim") => {
                let pim = pim_targets();
                format!("give {pim}, where `pim` is the default; or use `--backend {first}` or `--backend {second}`")
            }
            _ => format!("use `--backend {first}` or `--backend {second}`"),
        })
}
