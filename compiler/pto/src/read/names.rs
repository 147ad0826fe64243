//! Names of the language for values of the text.

use crate::lexer::Word;
use rustc_hash::FxHashSet;

/// Names that are given out, each once.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: FxHashSet<String>,
}

/// Words that are no names, or that mean something else.
const RESERVED: [&str; 51] = [
    "use",
    "const",
    "atom",
    "fn",
    "kernel",
    "program",
    "type",
    "where",
    "ensures",
    "in",
    "out",
    "inout",
    "at",
    "over",
    "on",
    "fill",
    "tune",
    "role",
    "let",
    "var",
    "if",
    "else",
    "for",
    "while",
    "pipeline",
    "grid",
    "return",
    "break",
    "continue",
    "tile",
    "tensor",
    "true",
    "false",
    "_",
    "index",
    "block",
    "inf",
    "nan",
    "none",
    "bool",
    "layout",
    "event",
    "barrier",
    "set",
    "wait",
    "print",
    "min",
    "max",
    "ceil_div",
    "col",
    "composition",
];

impl Names {
    /// A name for the value `%name`: its letters and digits, which differs from all names before. `reserved` says what
    /// else the language knows.
    pub fn give(&mut self, name: &str, reserved: &dyn Fn(&str) -> bool) -> Word {
        let mut base: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
        if base.is_empty() || base.starts_with(|c: char| c.is_ascii_digit()) {
            base.insert(0, 'v');
        }
        // A long name has its beginning: what tells it apart is added.
        base.truncate(64);
        let mut candidate = base.clone();
        let mut n = 1;
        while self.taken.contains(&candidate) || RESERVED.contains(&candidate.as_str()) || reserved(&candidate) {
            n += 1;
            candidate = format!("{base}_{n}");
        }
        self.taken.insert(candidate.clone());
        Word::new(&candidate)
    }
}
