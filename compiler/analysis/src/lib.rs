//! Kernels and programs for a target: from syntax trees to tile IR with what a launch must know.
//!
//! [`instantiate`] elaborates one kernel of [`ptoc_names::Modules`] for one target and one choice of static parameters,
//! [`instantiate_program`] a program with every kernel that it launches. Statements and expressions are the
//! elaborator's (`ptoc-elab`); here are what stands around them: `where`, `ensures`, and launches. All of it is pure.

#![forbid(unsafe_code)]

mod channel_order;
mod derived;
mod instance;
mod oracle;
mod program;
mod retyped;

pub use derived::derived_dimensions;
pub use instance::{Instance, instantiate};
pub use program::{
    Demand, Demanded, HostExpr, HostFault, LateWindow, LaunchSite, ProgramInstance, ProgramNode, ProgramStep,
    ProgramTensor, ScalarSource, TensorSource, instantiate_program,
};
pub use ptoc_elab::{ArgDim, ArgLayout, Bindings, ElaborationOutcome, Fact, NameFact, ScalarArg, TensorArg, TileFact};
pub use ptoc_values::debug;
