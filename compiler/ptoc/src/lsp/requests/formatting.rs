//! Formatting, as by `ptoc fmt`.

use crate::lsp::documents::Document;
use crate::lsp::failure::{Failure, read, result};
use crate::lsp::position::Encoding;
use crate::lsp::world::World;
use lsp_types::{DocumentFormattingParams, Range, TextEdit};
use ptoc_diagnostics::SourceMap;
use ptoc_syntax::format::{Refused, format};
use serde_json::Value;

/// `textDocument/formatting`
pub fn document(world: &mut World, params: Value) -> Result<Value, Failure> {
    let params: DocumentFormattingParams = read(params)?;
    let document = &world.opened(&params.text_document.uri)?.document;
    result(difference(document, &formatted(document)?, world.encoding))
}

/// The text in its canonical form.
fn formatted(document: &Document) -> Result<String, Failure> {
    let mut sources = SourceMap::new();
    let file = sources.add("format", document.text.as_str());
    format(file, &document.text).map_err(|why| match why {
        Refused::Broken(_) => Failure::refused("the text has syntax errors: it is left as it is"),
        Refused::Changed => {
            Failure::new(Failure::INTERNAL, "a bug of ptoc: the formatted text would not mean the same")
        }
    })
}

/// The lines that differ, as one edit; none if nothing does.
fn difference(document: &Document, to: &str, encoding: Encoding) -> Vec<TextEdit> {
    let from = document.text.as_str();
    if from == to {
        return Vec::new();
    }
    let same = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let common = same(from, to);
    // Whole lines, so that no character is cut.
    let start = from[..from.floor_char_boundary(common)].rfind('\n').map_or(0, |n| n + 1);
    let (rest, new) = (&from[start..], &to[start..]);
    let tail = rest.bytes().rev().zip(new.bytes().rev()).take_while(|(a, b)| a == b).count();
    let tail = rest[rest.ceil_char_boundary(rest.len() - tail)..].find('\n').map_or(0, |n| {
        let at = rest.ceil_char_boundary(rest.len() - tail) + n + 1;
        rest.len() - at
    });
    let position = |offset| document.lines.position(from, offset, encoding);
    let range = Range { start: position(start), end: position(from.len() - tail) };
    vec![TextEdit { range, new_text: new[..new.len() - tail].to_owned() }]
}
