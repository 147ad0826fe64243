//! Tests across crates.

mod bytes;
mod corpus;
mod differential;
mod engine;
mod fuzz;
mod golden;
mod hazards;
mod inserted;
mod layouts;
mod limits;
mod memory;
mod minimal;
mod mutation;
mod orders;
mod pages;
mod physical;
mod pim_language;
mod plan_source;
mod plans;
mod random;
mod rearrange;
mod spec;
mod sync;
mod ui;
mod vectors;
mod windows;
