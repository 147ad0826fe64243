//! From arrays and definitions to results: bind, elaborate, compile, run, compare.
//!
//! A kernel is a [`Plan`] of one step, a program one of several. A plan is made once and can be run on any backend.

mod arrays;
mod bind;
mod compare;
pub mod pim;
mod pipes;
mod plan;
mod random;
mod run;
mod witness;

use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_isa::Target;

pub use arrays::{Array, Arrays, check_given, check_outputs, read_arrays};
pub use bind::bind_dimensions;
pub use compare::{Verified, verify};
pub use pipes::{Schedule, Timed};
pub use plan::{Argument, Plan, Step};
pub use run::{Backend, CompiledPlan, Outcome, RunOptions};

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
                let pim = Target::all().iter().filter(|t| t.is_pim()).map(|t| format!("`--target {}`", t.name));
                let pim = pim.collect::<Vec<_>>().join(" or ");
                format!("give {pim}, where `pim` is the default; or use `--backend {first}` or `--backend {second}`")
            }
            _ => format!("use `--backend {first}` or `--backend {second}`"),
        })
}
