//! Models of synchronisation objects: the transaction barrier and the state of a ring of stages.
//!
//! Source: the mbarrier of PTX and CUTLASS's `PipelineState` (`spec/pipes.md`).

mod barrier;
mod state;

pub use barrier::{BarrierFault, MAX_ARRIVALS, MAX_BYTES, TransactionBarrier};
pub use state::PipelineState;
