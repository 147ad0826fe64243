//! Texts that are open in the editor, and their edits.

use super::failure::{Failure, read};
use super::position::{Encoding, LineIndex};
use lsp_types::{DidChangeTextDocumentParams, Range, TextDocumentContentChangeEvent as Change};
use serde_json::Value;

/// The parameters of `textDocument/didChange`. A change with a range that is none is refused: without it, it would be
/// one of the whole text. The length of what is replaced, which the protocol has given up, is not looked at.
pub(super) fn changes(mut params: Value) -> Result<DidChangeTextDocumentParams, Failure> {
    let list = params.get_mut("contentChanges").and_then(Value::as_array_mut);
    for change in list.into_iter().flatten().filter_map(Value::as_object_mut) {
        change.remove("rangeLength");
        if let Some(range) = change.get("range") {
            read::<Range>(range.clone())?;
        }
    }
    read(params)
}

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
                Change::TextDocumentContentChangeWholeDocument(whole) => *self = Document::new(version, whole.text),
                Change::TextDocumentContentChangePartial(part) => {
                    let bytes = self.lines.bytes(&self.text, &part.range, encoding);
                    self.text.replace_range(bytes.clone(), &part.text);
                    self.lines.edit(bytes, &part.text, &self.text);
                }
            }
        }
        self.version = version;
    }
}
