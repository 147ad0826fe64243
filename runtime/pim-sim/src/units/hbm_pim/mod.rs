//! HBM-PIM: one unit for two banks, 16 lanes of f16, driven by column commands (Samsung's HBM-PIM; `spec/stream.md`).
//!
//! [`HbmPimUnit`] executes its program: each column command that reaches it steps it by one instruction. [`PimMode`] is
//! the state of a pseudo-channel that decides which commands do.

mod mode;
mod unit;

pub use mode::{Control, ModeMachine, Parity, PimMode};
pub(crate) use unit::register;
pub use unit::{ColumnAccess, HbmPimFault, HbmPimUnit, StepResult};
