//! Diagnostic codes. A code is its page in `codes/`; see `build.rs` for the format.

use std::fmt;

/// A stable identifier such as `SA-0353` or `E0101`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub(crate) &'static str);

/// What the registry knows about a code.
#[derive(Debug)]
pub struct CodeInfo {
    /// The identifier.
    pub code: Code,
    /// `snake_case` name; upper-cased it is the constant in [`codes`].
    pub name: &'static str,
    /// The word that stands for this code in a `// check:` line.
    pub kind: &'static str,
    /// One line: what the code means.
    pub title: &'static str,
    /// The whole page, Markdown.
    pub page: &'static str,
}

/// One constant a page of `codes/`.
pub mod codes {
    use super::{Code, CodeInfo};
    include!(concat!(env!("OUT_DIR"), "/codes.rs"));
}

impl Code {
    /// Every code, sorted.
    pub fn all() -> &'static [CodeInfo] {
        codes::TABLE
    }

    /// The code that is spelled `text`, in any letter case.
    pub fn find(text: &str) -> Option<&'static CodeInfo> {
        Code::all().iter().find(|c| c.code.0.eq_ignore_ascii_case(text))
    }

    /// The registry's row of this code.
    pub fn info(self) -> &'static CodeInfo {
        Code::all().iter().find(|c| c.code == self).expect("a Code is only made from a page")
    }

    /// The identifier as text.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
