//! GeoPIM: a unit a bank that samples a feature map between its pixels and adds up what it finds, weighted (geopim.md).
//!
//! This is what a unit computes, operation by operation and rounding by rounding; when it does so is the engine's business.

mod sample;
mod sum;

pub use sample::{Border, Map, Neighbour, Query, Sample};
pub use sum::Accumulators;
