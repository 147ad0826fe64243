//! From arrays and definitions to results: bind, elaborate, compile, run, compare.
//!
//! A kernel is a [`Plan`] of one step, a program one of several. A plan is made once and can be run on any backend.

mod arrays;
mod bind;
mod compare;
mod pipes;
mod plan;
mod random;
mod run;
mod witness;

pub use arrays::{Array, Arrays, check_outputs, read_arrays};
pub use bind::bind_dimensions;
pub use compare::{Verified, verify};
pub use pipes::{Schedule, Timed};
pub use plan::{Argument, Plan, Step};
pub use run::{Backend, CompiledPlan, Outcome, RunOptions};
