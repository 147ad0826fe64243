//! Spans, the one [`Diagnostic`] type with its renderings, and the registry of codes.
//!
//! Every code is one Markdown page in `codes/`; `build.rs` turns the pages into [`codes`] constants, so a code
//! cannot exist without its page. Nothing here knows the language.

mod code;
mod diagnostic;
mod span;

pub use code::{Code, codes};
pub use diagnostic::{Diagnostic, Edit, Fix, Label, Severity};
pub use span::{FileId, Span};
