//! Formatting, as by `ptoc fmt`: of a text, of a range, of what was just finished.
//!
//! The formatter moves white space and nothing else, so both texts have the same other characters. Lines of both that begin behind
//! the same number of these belong together, and what differs between two such places is one edit.

use crate::lsp::documents::Document;
use crate::lsp::failure::{Failure, read};
use crate::lsp::position::Encoding;
use crate::lsp::reply::{Reply, result};
use crate::lsp::world::World;
use lsp_types::{DocumentFormattingParams, Position, Range, TextDocumentIdentifier, TextEdit};
use ptoc_diagnostics::SourceMap;
use ptoc_syntax::format::{Refused, format};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ops;

/// `textDocument/formatting`
pub fn document(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: DocumentFormattingParams = read(params)?;
    let document = &world.opened(&params.text_document.uri)?.document;
    let formatted = formatted(document)?;
    result(edits(document, &formatted, 0..document.text.len(), world.encoding))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfRange {
    text_document: TextDocumentIdentifier,
    range: Range,
}

/// `textDocument/rangeFormatting`: the lines that the range touches.
pub fn range(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: OfRange = read(params)?;
    let document = &world.opened(&params.text_document.uri)?.document;
    let asked = document.lines.bytes(&document.text, &params.range, world.encoding);
    let formatted = formatted(document)?;
    result(edits(document, &formatted, asked, world.encoding))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OnType {
    text_document: TextDocumentIdentifier,
    position: Position,
    ch: String,
}

/// `textDocument/onTypeFormatting`: behind `;` its line, behind `}` its block, behind a new line the one before. While the text is
/// broken nothing is done: its author is at work.
pub fn on_type(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: OnType = read(params)?;
    let document = &world.opened(&params.text_document.uri)?.document;
    let Ok(formatted) = formatted(document) else { return result(json!([])) };
    let text = &document.text;
    let at = document.lines.offset(text, params.position, world.encoding);
    let line = |at: usize| text[..at].rfind('\n').map_or(0, |n| n + 1);
    let asked = match params.ch.as_str() {
        "\n" => {
            let end = line(at);
            line(end.saturating_sub(1))..end.saturating_sub(1)
        }
        "}" => opener(text, at).unwrap_or_else(|| line(at))..at,
        _ => line(at)..at,
    };
    result(edits(document, &formatted, asked, world.encoding))
}

/// Where the line begins with the brace that the one before `at` closes.
fn opener(text: &str, at: usize) -> Option<usize> {
    let mut sources = SourceMap::new();
    let tokens = ptoc_syntax::tokens(sources.add("format", text), text);
    let mut open = Vec::new();
    for (tok, span) in tokens.iter().take_while(|(_, span)| (span.end as usize) <= at) {
        match tok {
            ptoc_syntax::Tok::LBrace => open.push(span.start as usize),
            ptoc_syntax::Tok::RBrace => {
                let opener = open.pop();
                if span.end as usize == at {
                    return opener.map(|o| text[..o].rfind('\n').map_or(0, |n| n + 1));
                }
            }
            _ => {}
        }
    }
    None
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

/// What differs in the lines that `asked` touches.
fn edits(document: &Document, to: &str, asked: ops::Range<usize>, encoding: Encoding) -> Vec<TextEdit> {
    let from = document.text.as_str();
    let position = |offset| document.lines.position(from, offset, encoding);
    let differs = hunks(from, to).into_iter();
    let touched = differs.filter(|(old, _)| {
        old.start <= asked.end && (asked.start < old.end || old.is_empty() && asked.start <= old.end)
    });
    touched
        .map(|(old, new)| TextEdit {
            range: Range { start: position(old.start), end: position(old.end) },
            new_text: to[new].to_owned(),
        })
        .collect()
}

/// Runs of lines that differ, in both texts.
fn hunks(from: &str, to: &str) -> Vec<(ops::Range<usize>, ops::Range<usize>)> {
    let (old, new) = (lines(from), lines(to));
    let there: HashMap<usize, usize> = new.into_iter().rev().collect();
    let mut found = Vec::new();
    let (mut a, mut b) = (0, 0);
    let mut last = None;
    let ends = old.into_iter().filter(|(count, _)| last.replace(*count) != Some(*count));
    let places: Vec<(usize, usize)> = ends.filter_map(|(count, at)| Some((at, *there.get(&count)?))).collect();
    for (x, y) in places.into_iter().chain([(from.len(), to.len())]) {
        if x >= a && y >= b {
            if from[a..x] != to[b..y] {
                found.push((a..x, b..y));
            }
            (a, b) = (x, y);
        }
    }
    found
}

/// For each line how many characters that are no white space stand before it, and where it begins.
fn lines(text: &str) -> Vec<(usize, usize)> {
    let mut count = 0;
    let mut found = vec![(0, 0)];
    for (at, c) in text.char_indices() {
        if c == '\n' {
            found.push((count, at + 1));
        } else if !c.is_whitespace() {
            count += 1;
        }
    }
    found
}
