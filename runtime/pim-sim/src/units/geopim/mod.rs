//! GeoPIM: a unit a bank that samples a feature map between its pixels and adds up what it finds, weighted
//! (`spec/geopim.md`).
//!
//! * What a unit computes, operation by operation and rounding by rounding: [`Sample`], [`Accumulators`].
//! * What it does, in order: `walk.rs`. When: `unit.rs` for one, [`run()`] for all units of a channel.
//! * What it is: [`UnitConfig`]; what it is told: [`GeoPimKernel`] and [`Job`]s.

mod clock;
mod config;
pub mod kernel;
mod ledger;
mod rows;
mod run;
mod sample;
mod scratchpad;
mod sum;
#[cfg(test)]
mod tests;
mod unit;
mod walk;

pub use clock::Clock;
pub use config::{Order, Refusal, UnitConfig};
pub use kernel::{Banks, GeoPimFault, GeoPimKernel, Job, MapPlace};
pub use ledger::{Ledger, TickLabel};
pub use run::{Report, Start, UnitReport, run};
pub use sample::{Border, Map, Neighbour, Query, Sample};
pub use sum::Accumulators;
pub use unit::Counts;
pub use walk::{Phase, States, TileTime, UnitPhase};
