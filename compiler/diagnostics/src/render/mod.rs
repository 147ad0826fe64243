//! Renderings of a [`Diagnostic`](crate::Diagnostic): text for a terminal, JSON and SARIF for programs.

mod json;
mod patch;
pub mod sarif;
mod snippet;
mod terminal;
mod text;

pub use json::json;
pub use terminal::{DEFAULT_WIDTH, terminal};
