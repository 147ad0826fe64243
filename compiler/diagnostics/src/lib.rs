//! Spans, the one [`Diagnostic`] type with its renderings, and the registry of codes.
//!
//! Every code is one Markdown page in `codes/`; `build.rs` turns the pages into [`codes`] constants, so a code
//! cannot exist without its page. Nothing here knows the language.

#![forbid(unsafe_code)]

mod budget;
mod code;
mod collector;
mod diagnostic;
pub mod fixes;
mod page;
pub mod render;
mod source_map;
mod span;
mod suggest;
mod words;

pub use budget::{Account, Analysis, Budget, Spent, work, worked};
pub use code::{Code, CodeInfo, codes};
pub use collector::{DEFAULT_LIMIT, Diagnostics};
pub use diagnostic::{Applicability, Diagnostic, Edit, Fix, Label, Severity};
pub use page::{Example, UnknownCode, examples, explain};
pub use source_map::{Position, SourceMap};
pub use span::{FileId, Span};
pub use suggest::suggest;
pub use words::{list, plural};
