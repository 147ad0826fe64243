//! What has no translation.

use ptoc_diagnostics::{Diagnostic, Span};
use std::fmt;

/// Why a module is refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RefusalCode {
    /// The loop IR is not valid.
    Invalid,
    /// A `print` statement.
    Print,
    /// Code that a monitor watches.
    Watch,
    /// The grid has more dimensions than launches count.
    Rank,
    /// More parameters than a launch passes.
    Parameters,
    /// The PTX that was made is not valid: a mistake of this crate.
    Internal,
}

impl RefusalCode {
    /// Every one.
    pub const ALL: [RefusalCode; 6] = [
        RefusalCode::Invalid,
        RefusalCode::Print,
        RefusalCode::Watch,
        RefusalCode::Rank,
        RefusalCode::Parameters,
        RefusalCode::Internal,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            RefusalCode::Invalid => "gpu-invalid-ir",
            RefusalCode::Print => "gpu-print",
            RefusalCode::Watch => "gpu-watch",
            RefusalCode::Rank => "gpu-grid-rank",
            RefusalCode::Parameters => "gpu-parameters",
            RefusalCode::Internal => "gpu-internal",
        }
    }
}

/// A module that has no PTX.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Why.
    pub code: RefusalCode,
    /// In words.
    pub message: String,
    /// The statement.
    pub span: Span,
}

impl Refused {
    pub(crate) fn new(code: RefusalCode, span: Span, message: impl Into<String>) -> Refused {
        Refused { code, message: message.into(), span }
    }

    /// The first of some diagnostics.
    pub(crate) fn of(mut errors: Vec<Diagnostic>) -> Refused {
        match errors.is_empty() {
            true => Refused::new(RefusalCode::Invalid, Span::default(), "the loop IR is not valid"),
            false => {
                let d = errors.swap_remove(0);
                Refused::new(RefusalCode::Invalid, d.span.unwrap_or_default(), d.message)
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
