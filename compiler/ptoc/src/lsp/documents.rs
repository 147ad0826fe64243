//! Texts that are open in the editor, and their edits.

use super::position::{Encoding, LineIndex};
use lsp_types::TextDocumentContentChangeEvent as Change;

/// An open text.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The editor's number of this state.
    pub version: i32,
    /// All of it.
    pub text: String,
    /// Its lines.
    pub lines: LineIndex,
}

impl Document {
    /// A text as it was opened.
    pub fn new(version: i32, text: String) -> Document {
        let lines = LineIndex::new(&text);
        Document { version, text, lines }
    }

    /// Applies changes, each to what the one before has left.
    pub fn change(&mut self, version: i32, changes: Vec<Change>, encoding: Encoding) {
        for change in changes {
            match change {
                Change::TextDocumentContentChangeWholeDocument(whole) => self.text = whole.text,
                Change::TextDocumentContentChangePartial(part) => {
                    let bytes = self.lines.bytes(&self.text, &part.range, encoding);
                    self.text.replace_range(bytes, &part.text);
                }
            }
            self.lines = LineIndex::new(&self.text);
        }
        self.version = version;
    }
}
