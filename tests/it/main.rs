//! Tests across crates.

mod differential;
mod engine;
mod pages;
mod spec;
mod ui;
