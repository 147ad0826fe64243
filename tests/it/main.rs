//! Tests across crates.

mod differential;
mod engine;
mod fuzz;
mod pages;
mod spec;
mod ui;
