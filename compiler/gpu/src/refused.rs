//! What has no translation.

use ptoc_diagnostics::{Diagnostic, Span};
use std::fmt;

/// Why a module is refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    /// The loop IR is not valid.
    Invalid,
    /// A `print` statement.
    Print,
    /// Code that a monitor watches.
    Watch,
    /// A gather that leaves rows where they are: places are distances between memories that have none.
    Places,
    /// The grid has more dimensions than launches count.
    Rank,
    /// More parameters than a launch passes.
    Parameters,
    /// The PTX that was made is not valid: a mistake of this crate.
    Internal,
}

impl Code {
    /// Every one.
    pub const ALL: [Code; 7] =
        [Code::Invalid, Code::Print, Code::Watch, Code::Places, Code::Rank, Code::Parameters, Code::Internal];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Code::Invalid => "gpu-invalid-ir",
            Code::Print => "gpu-print",
            Code::Watch => "gpu-watch",
            Code::Places => "gpu-places",
            Code::Rank => "gpu-grid-rank",
            Code::Parameters => "gpu-parameters",
            Code::Internal => "gpu-internal",
        }
    }
}

/// A module that has no PTX.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Why.
    pub code: Code,
    /// In words.
    pub message: String,
    /// The statement.
    pub span: Span,
}

impl Refused {
    pub(crate) fn new(code: Code, span: Span, message: impl Into<String>) -> Refused {
        Refused { code, message: message.into(), span }
    }

    /// The first of some diagnostics.
    pub(crate) fn of(mut errors: Vec<Diagnostic>) -> Refused {
        match errors.is_empty() {
            true => Refused::new(Code::Invalid, Span::default(), "the loop IR is not valid"),
            false => {
                let d = errors.swap_remove(0);
                Refused::new(Code::Invalid, d.span.unwrap_or_default(), d.message)
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.name(), self.message)
    }
}

impl std::error::Error for Refused {}
