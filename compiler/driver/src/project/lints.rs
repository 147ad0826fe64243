//! Levels of warnings and notes.

use ptoc_diagnostics::{Code, Diagnostic, Diagnostics, Severity};
use std::collections::BTreeMap;

/// What becomes of a warning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// It is not shown.
    Allow,
    /// It is shown.
    Warn,
    /// It is an error.
    Deny,
}

impl Level {
    /// The words.
    pub const NAMES: [(&'static str, Level); 3] =
        [("allow", Level::Allow), ("warn", Level::Warn), ("deny", Level::Deny)];
}

/// The levels of warnings that are not as they always are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lints {
    /// Of all warnings.
    all: Option<Level>,
    /// Of one code, which counts more.
    codes: BTreeMap<Code, Level>,
}

impl Lints {
    /// Sets the level of a code; without one, that of all warnings.
    pub fn set(&mut self, code: Option<Code>, level: Level) {
        match code {
            Some(code) => {
                self.codes.insert(code, level);
            }
            None => self.all = Some(level),
        }
    }

    /// What `other` says counts more.
    pub fn overlay(&mut self, other: Lints) {
        self.all = other.all.or(self.all);
        self.codes.extend(other.codes);
    }

    /// The level of a diagnostic. What is meant for all warnings is not meant for notes: these have one by their code.
    fn level(&self, d: &Diagnostic) -> Level {
        let all = if d.severity == Severity::Warning { self.all } else { None };
        self.codes.get(&d.code).copied().or(all).unwrap_or(Level::Warn)
    }

    /// Leaves warnings and notes out, and makes errors of them.
    pub fn apply(&self, found: &mut Diagnostics) {
        found.retain(|d| d.severity == Severity::Error || self.level(d) != Level::Allow);
        found.deny(|d| self.level(d) == Level::Deny);
    }
}
