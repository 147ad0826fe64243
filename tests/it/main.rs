//! Tests across crates.

mod pages;
mod spec;
mod ui;
