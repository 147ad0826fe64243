//! Tests across crates.

mod pages;
mod ui;
