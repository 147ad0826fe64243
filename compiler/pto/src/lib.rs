//! PTO text: the `.pto` files of PTOAS, MLIR's generic structure with the `pto` dialect in it.
//!
//! ```text
//! .pto text --lexer, parse--> tree::Module --verify--> the same --read--> source text of the language
//!                                 ^   |                                   and its syntax tree
//!             tile IR --write-----+   +--print--> .pto text
//!                                     +--cpp::print--> C++ against pto-isa's headers
//! ```
//!
//! What the dialect has is data: a row of [`ops::OPS`] for each operation, with the name of its definition in PTOAS.
//! Parser, printer and both translations read the rows. Nothing here fails or panics on any text: what is wrong is a
//! diagnostic in the `.pto` file.

#![forbid(unsafe_code)]

pub mod attr;
pub mod cpp;
pub mod edit;
pub mod format;
pub mod highlight;
mod lexer;
pub mod names;
pub mod ops;
pub mod origins;
mod parse;
mod print;
pub mod read;
mod row_views;
pub mod tree;
pub mod types;
pub mod verify;
pub mod words;
pub mod write;

pub use parse::{Parsed, parse};
pub use print::print;

use ptoc_diagnostics::{Diagnostic, FileId};
use read::Reading;

/// Whether a text begins as PTO text does, and none of the language: with a module, a function or a name for a place.
pub fn begins(text: &str) -> bool {
    let first = lexer::next(text, 0);
    let second = lexer::next(text, first.end);
    let word = &text[first.start..first.end];
    matches!(word, "module" | "func.func") || first.tok == lexer::Tok::Attr && &text[second.start..second.end] == "="
}

/// A text in the language's words, and what is wrong with it or has no words there. Half of a text is not translated.
/// `reserved` says which names the language knows, `given` which arguments have contents that the launch gives.
pub fn translate(
    file: FileId,
    text: &str,
    reserved: &dyn Fn(&str) -> bool,
    given: &[String],
) -> (Option<Reading>, Vec<Diagnostic>) {
    let parsed = parse(file, text);
    let mut found = parsed.diagnostics;
    if found.is_empty() {
        found.extend(verify::check(&parsed.module));
    }
    if !found.is_empty() {
        return (None, found);
    }
    let mut reading = read::read(&parsed.module, reserved, given);
    found.append(&mut reading.diagnostics);
    (Some(reading).filter(|_| found.is_empty()), found)
}
