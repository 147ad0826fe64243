//! The order of passes over tile IR: placement, checks, rewrites and lowering ([`mod@pipeline`]).

#![forbid(unsafe_code)]

pub mod pipeline;

pub use pipeline::{Prepared, pipeline, place};
pub use ptoc_opt::clock;
