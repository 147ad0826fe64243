//! Errors: what the compiler or a launch has found.

use ptoc_driver::library::Report;
use std::fmt;

/// What is wrong with a text, or with a launch. It prints as a terminal shows it, with excerpts of the source.
#[derive(Clone)]
pub struct Error(Box<Report>);

impl Error {
    /// The code of the first error: `ptoc explain CODE` has a page on it.
    pub fn code(&self) -> &'static str {
        self.0.code().map_or("", |code| code.as_str())
    }

    /// The same text as [`Display`](fmt::Display) has, in colours if those are wanted.
    pub fn rendered(&self, color: bool) -> String {
        self.0.rendered(color)
    }

    /// An object for each diagnostic, as `ptoc check --message-format json` writes it.
    pub fn json(&self) -> Vec<String> {
        self.0.json()
    }

    /// All that was found.
    pub fn report(&self) -> &Report {
        &self.0
    }
}

impl From<Report> for Error {
    fn from(report: Report) -> Error {
        Error(Box::new(report))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// `unwrap` and `main` show it as it is meant to be read.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::error::Error for Error {}
