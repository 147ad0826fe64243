//! How a run ends early.

use ptoc_diagnostics::{Code, Diagnostic, Span};

/// The end of a launch by an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// `PA-10xx`, the code of a failed check, or that of a grid with too many blocks.
    pub code: Code,
    /// One sentence with names and numbers.
    pub message: String,
    /// The statement, or the place that a check blames.
    pub span: Span,
    /// The remark at `span`; may be empty.
    pub label: String,
    /// Other places.
    pub labels: Vec<(Span, String)>,
    /// Further facts.
    pub notes: Vec<String>,
    /// A repair, if the check has one.
    pub help: Option<String>,
    /// The block, as its coordinates in the grid; `None` before the first.
    pub block: Option<Vec<i64>>,
}

impl Trap {
    /// Without further remarks.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Trap {
        let (label, labels, notes) = (String::new(), Vec::new(), Vec::new());
        Trap { code, message: message.into(), span, label, labels, notes, help: None, block: None }
    }

    /// The same as a diagnostic; the block is a note.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let mut d = Diagnostic::error(self.code, self.span, self.message.clone()).with_label(self.label.clone());
        for (span, label) in &self.labels {
            d = d.with_secondary(*span, label.clone());
        }
        for note in &self.notes {
            d = d.with_note(note.clone());
        }
        if let Some(block) = self.block.as_ref().filter(|b| !b.is_empty()) {
            let list: Vec<_> = block.iter().map(i64::to_string).collect();
            d = d.with_note(format!("in block ({}) of the grid", list.join(", ")));
        }
        match &self.help {
            Some(help) => d.with_help(help.clone()),
            None => d,
        }
    }
}
