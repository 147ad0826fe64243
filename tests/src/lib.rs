//! Shared helpers of the cross-crate tests.

pub mod front;
pub mod programs;
pub mod trace;
