//! The one diagnostic type: terminal, JSON and editor are renderings of it.

use crate::{Code, Span};

/// How bad it is. Only [`Severity::Error`] makes the exit status 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// The input is refused.
    Error,
    /// The input is accepted; something is not proved or looks unintended.
    Warning,
    /// A fact that the author may want to know (a hidden move, an assumption).
    Note,
}

impl Severity {
    /// `error`, `warning`, `note`: the word in front of a message and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// A secondary place and what is to be said about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The remark, without a trailing full stop.
    pub message: String,
}

/// Replace the bytes of `span` by `text` (an empty span inserts).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// What to replace.
    pub span: Span,
    /// The replacement.
    pub text: String,
}

/// Whether a fix may be applied without asking, in rustc's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applicability {
    /// What the author meant: `ptoc check --fix` writes it.
    MachineApplicable,
    /// A guess, or a choice of the author's: a near name, a smaller tile, another order.
    MaybeIncorrect,
}

/// A repair that an editor can apply; without edits it is advice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fix {
    /// What the repair does, as an imperative ("insert `;`").
    pub message: String,
    /// The edits, non-overlapping.
    pub edits: Vec<Edit>,
    /// Whether it may be applied without asking.
    pub applicability: Applicability,
}

impl Fix {
    /// Advice without edits.
    pub fn advice(message: impl Into<String>) -> Fix {
        Fix::suggestion(message, Vec::new())
    }

    /// Edits that may not be what the author wants.
    pub fn suggestion(message: impl Into<String>, edits: Vec<Edit>) -> Fix {
        Fix { message: message.into(), edits, applicability: Applicability::MaybeIncorrect }
    }

    /// Edits that are what the author meant.
    pub fn certain(message: impl Into<String>, edits: Vec<Edit>) -> Fix {
        Fix { message: message.into(), edits, applicability: Applicability::MachineApplicable }
    }
}

/// One report about the user's input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Stable identifier, with a page that `ptoc explain` prints.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence: what is wrong, with the names and numbers.
    pub message: String,
    /// Where; `None` for what has no place in a source (a missing file, a bad flag).
    pub span: Option<Span>,
    /// The remark at `span` itself; may be empty.
    pub label: String,
    /// Secondary places.
    pub labels: Vec<Label>,
    /// Why, and further facts; each a sentence.
    pub notes: Vec<String>,
    /// What would mend it.
    pub fixes: Vec<Fix>,
    /// Not said if an error is reported in there: that one says more of the same mistake (see [`crate::Diagnostics`]).
    pub unless: Option<Span>,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, Severity::Error, Some(span), message)
    }

    /// A warning at `span`.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, Severity::Warning, Some(span), message)
    }

    /// A note at `span`.
    pub fn note(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, Severity::Note, Some(span), message)
    }

    /// An error that has no place in a source file.
    pub fn global(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, Severity::Error, None, message)
    }

    fn new(code: Code, severity: Severity, span: Option<Span>, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity,
            message: message.into(),
            span,
            label: String::new(),
            labels: Vec::new(),
            notes: Vec::new(),
            fixes: Vec::new(),
            unless: None,
        }
    }

    /// Sets the remark at the primary span.
    #[must_use]
    pub fn with_label(mut self, message: impl Into<String>) -> Diagnostic {
        self.label = message.into();
        self
    }

    /// Adds a secondary place.
    #[must_use]
    pub fn with_secondary(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, message: message.into() });
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Adds advice without edits.
    #[must_use]
    pub fn with_help(mut self, message: impl Into<String>) -> Diagnostic {
        self.fixes.push(Fix::advice(message));
        self
    }

    /// Adds a repair that replaces `span` by `text`.
    #[must_use]
    pub fn with_fix(mut self, message: impl Into<String>, span: Span, text: impl Into<String>) -> Diagnostic {
        self.fixes.push(Fix::certain(message, vec![Edit { span, text: text.into() }]));
        self
    }

    /// Adds a repair that replaces `span` by `text`, and that may not be what the author wants.
    #[must_use]
    pub fn with_suggestion(mut self, message: impl Into<String>, span: Span, text: impl Into<String>) -> Diagnostic {
        self.fixes.push(Fix::suggestion(message, vec![Edit { span, text: text.into() }]));
        self
    }

    /// Adds a repair of several edits, which must not overlap.
    #[must_use]
    pub fn with_edits(mut self, message: impl Into<String>, edits: Vec<Edit>) -> Diagnostic {
        self.fixes.push(Fix::certain(message, edits));
        self
    }

    /// Adds a repair of several edits, which must not overlap, and that may not be what the author wants.
    #[must_use]
    pub fn with_suggested_edits(mut self, message: impl Into<String>, edits: Vec<Edit>) -> Diagnostic {
        self.fixes.push(Fix::suggestion(message, edits));
        self
    }

    /// Not said if an error is reported in there.
    #[must_use]
    pub fn with_unless(mut self, place: Span) -> Diagnostic {
        self.unless = Some(place);
        self
    }

    /// Whether this error says what `other` need not say, because it lies where `other` gives way, or mends that place.
    pub(crate) fn replaces(&self, other: &Diagnostic) -> bool {
        let Some(place) = other.unless.filter(|_| self.is_error()) else { return false };
        let mended = self.fixes.iter().flat_map(|f| &f.edits).any(|e| e.span.contains(place));
        // What stands between `<` and `>` where nothing may stand, or in a form of another language, is refused with
        // it.
        let whole = [crate::codes::UNKNOWN_STATIC, crate::codes::FOREIGN_SPELLING].contains(&self.code);
        let around = whole && self.span.is_some_and(|s| s.contains(place));
        mended || around || self.span.is_some_and(|s| place.contains(s))
    }

    /// Takes over what `other`, which is not said, would have mended: its edits go to the repairs that leave that text
    /// as it is.
    pub(crate) fn take_over(&mut self, other: &Diagnostic) {
        let Some(edits) = other.fixes.first().map(|f| &f.edits).filter(|_| other.is_error()) else { return };
        for fix in self.fixes.iter_mut().filter(|f| !f.edits.is_empty()) {
            let free =
                |e: &Edit| !fix.edits.iter().any(|own| own.span.start < e.span.end && e.span.start < own.span.end);
            let more: Vec<Edit> = edits.iter().filter(|e| free(e)).cloned().collect();
            fix.edits.extend(more);
        }
    }

    /// Whether this is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
