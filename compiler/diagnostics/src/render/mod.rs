//! Renderings of a [`Diagnostic`](crate::Diagnostic): text for a terminal, one JSON object a line for programs.

mod json;
mod patch;
mod snippet;
mod terminal;
mod text;

pub use json::json;
pub use terminal::{DEFAULT_WIDTH, terminal};
