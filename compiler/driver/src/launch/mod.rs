//! From arrays and definitions to results: bind, elaborate, compile, run, compare.
//!
//! A kernel is a [`Plan`] of one step, a program one of several. A plan is made once and can be run on any backend.

mod arrays;
mod bind;
mod claims;
mod compare;
mod demands;
mod expected;
mod mismatch;
mod order;
mod pipes;
mod plan;
mod planned;
mod random;
mod run;
mod tensors;
mod tolerance;
mod witness;
mod workspace;

pub(crate) use arrays::batch_of_one;
pub use arrays::{Arrays, check_given, check_outputs, for_argument, open_arrays, open_expected};
pub use bind::bind_dimensions;
pub use compare::{Verified, verify};
pub(crate) use demands::{failing, undecided};
pub use expected::Expected;
pub use mismatch::explain;
pub use order::PlanStep;
pub(crate) use order::{Position, linear};
pub(crate) use pipes::stats as pipe_stats;
pub use pipes::{Schedule, Timed, parse_order};
pub use plan::{Argument, Plan};
pub(crate) use plan::{extent, step_dims};
pub(crate) use planned::refuted;
pub use planned::{LateScalars, PlannedLaunch};
pub(crate) use random::has_index;
pub use run::{
    BackendLaunch, CompiledPlan, Keep, LaunchTimes, Observers, RunOptions, RunOutcome, SharedLaunch, Total, counts,
    unwritten,
};
pub use tensors::Used;
pub use tolerance::Tolerance;
pub(crate) use workspace::accesses;
pub use workspace::{LaunchAccess, Locals, Workspace, WorkspacePlace};
