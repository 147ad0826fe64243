//! Formatting, as by `ptoc fmt`: of a text, of a range, of what was just finished.
//!
//! The formatter moves white space and nothing else, so both texts have the same other characters. Lines of both that
//! begin behind the same number of these belong together, and so do the empty lines before them; what differs between
//! two such places is one edit. No edit of a range has anything of another line in it: where lines in it and outside of
//! it become one line, they stay as they are.

use crate::brackets::Brackets;
use crate::documents::Document;
use crate::failure::{Failure, read};
use crate::position::Encoding;
use crate::reply::{Reply, result};
use crate::world::World;
use lsp_types::{DocumentFormattingParams, Position, Range, TextDocumentIdentifier, TextEdit, Uri};
use ptoc_diagnostics::SourceMap;
use ptoc_syntax::Tok;
use ptoc_syntax::format::Refused;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ops;

/// `textDocument/formatting`
pub fn document(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: DocumentFormattingParams = read(params)?;
    let document = &world.opened(&params.text_document.uri)?.document;
    let formatted = formatted(document, &params.text_document.uri)?;
    result(edits(document, hunks(&document.text, &formatted), &formatted, world.encoding))
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
    let uri = &params.text_document.uri;
    let document = &world.opened(uri)?.document;
    let Range { start, end } = params.range;
    // A range that ends where a line begins has nothing of it.
    let last = if end.character == 0 { end.line.saturating_sub(1) } else { end.line };
    result(of_lines(document, &formatted(document, uri)?, start.line..=last.max(start.line), world.encoding))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OnType {
    text_document: TextDocumentIdentifier,
    position: Position,
    ch: String,
}

/// `textDocument/onTypeFormatting`: behind `;` its line, behind `}` its block, behind a new line the one before. While
/// the text is broken nothing is done: its author is at work.
pub fn on_type(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: OnType = read(params)?;
    let uri = &params.text_document.uri;
    let document = &world.opened(uri)?.document;
    let Ok(formatted) = formatted(document, uri) else { return result(json!([])) };
    let at = params.position;
    let lines = match params.ch.as_str() {
        "\n" => at.line.saturating_sub(1)..=at.line.saturating_sub(1),
        "}" => {
            let offset = document.lines.offset(&document.text, at, world.encoding);
            let opener = opener(&document.text, offset);
            opener.map_or(at.line, |o| document.lines.position(&document.text, o, world.encoding).line)..=at.line
        }
        _ => at.line..=at.line,
    };
    result(of_lines(document, &formatted, lines, world.encoding))
}

/// The brace that the one before `at` closes.
fn opener(text: &str, at: usize) -> Option<usize> {
    let mut sources = SourceMap::new();
    let tokens = ptoc_syntax::tokens(sources.add("format", text), text);
    let mut open = Brackets::default();
    for &(tok, span) in tokens.iter().take_while(|(_, span)| (span.end as usize) <= at) {
        if !open.open(tok, span.start as usize)
            && let Some(opener) = open.close(tok)
            && span.end as usize == at
        {
            return (tok == Tok::RBrace).then_some(opener);
        }
    }
    None
}

/// The text in its canonical form, which the name's ending tells.
fn formatted(document: &Document, uri: &Uri) -> Result<String, Failure> {
    let mut sources = SourceMap::new();
    let name = uri.as_str();
    let file = sources.add(name, document.text.as_str());
    ptoc_driver::pto::format(name, file, &document.text).map_err(|why| match why {
        Refused::Broken(_) => Failure::refused("the text has syntax errors: it is left as it is"),
        Refused::Changed => {
            Failure::new(Failure::INTERNAL, "a bug of ptoc: the formatted text would not mean the same")
        }
    })
}

/// A run of lines in a text, and what is to be in its place, in the formatted one.
type Hunk = (ops::Range<usize>, ops::Range<usize>);

fn edits(document: &Document, hunks: Vec<Hunk>, to: &str, encoding: Encoding) -> Vec<TextEdit> {
    let position = |offset| document.lines.position(&document.text, offset, encoding);
    let edit = |(old, new): Hunk| TextEdit {
        range: Range { start: position(old.start), end: position(old.end) },
        new_text: to[new].to_owned(),
    };
    hunks.into_iter().map(edit).collect()
}

/// What differs in these lines, and has nothing of others. What ends them stays: that all lines end alike is a matter
/// of the whole text.
fn of_lines(document: &Document, to: &str, lines: ops::RangeInclusive<u32>, encoding: Encoding) -> Vec<TextEdit> {
    let from = document.text.as_str();
    let place = |line| document.lines.offset(from, Position { line, character: 0 }, encoding);
    let asked = place(*lines.start())..place(lines.end().saturating_add(1));
    let end = |text: &str| text.len() - text.trim_end_matches(['\r', '\n']).len();
    let inside = |(old, new): Hunk| {
        let (is, should) = (&from[old.clone()], &to[new.clone()]);
        if !is.trim().is_empty() {
            let whole = asked.start <= old.start && old.end <= asked.end;
            return whole.then_some((old.start..old.end - end(is), new.start..new.end - end(should)));
        }
        // Of empty lines, those in the range go that are too many.
        let part = old.start.max(asked.start)..old.end.min(asked.end);
        let lines = |text: &str| text.matches('\n').count();
        let there = lines(from.get(part.clone())?);
        let stay = lines(should).saturating_sub(lines(is) - there).min(there);
        Some((part, new.end - (should.len() / lines(should).max(1)) * stay..new.end))
    };
    let bare = |text: &str| text.replace('\r', "");
    let differs = |(old, new): &Hunk| bare(&from[old.clone()]) != bare(&to[new.clone()]);
    edits(document, hunks(from, to).into_iter().filter_map(inside).filter(differs).collect(), to, encoding)
}

/// Runs of lines that differ, in both texts, without the line end that both have.
fn hunks(from: &str, to: &str) -> Vec<Hunk> {
    let (old, new) = (places(from), places(to));
    let there: HashMap<CaretAnchor, usize> = new.into_iter().collect();
    let mut found = Vec::new();
    let (mut a, mut b) = (0, 0);
    let both = old.into_iter().filter_map(|(place, at)| Some((at, *there.get(&place)?)));
    for (x, y) in both.chain([(from.len(), to.len())]) {
        if x < a || y < b {
            continue;
        }
        let (is, should) = (&from[a..x], &to[b..y]);
        if is != should {
            let end = ["\r\n", "\n"].iter().find(|end| is.ends_with(**end) && should.ends_with(**end));
            // Empty lines go with their ends.
            let end = end.filter(|_| !is.trim().is_empty()).map_or(0, |end| end.len());
            found.push((a..x - end, b..y - end));
        }
        (a, b) = (x, y);
    }
    found
}

/// The number of characters before a line that are no white space, and which of the lines with that number it is: the
/// one that has the next character (`true`), or the first of them (`false`), which may be empty.
type CaretAnchor = (usize, bool);

/// Where lines begin of which the other text has one, too.
fn places(text: &str) -> Vec<(CaretAnchor, usize)> {
    let (mut count, mut line) = (0, 0);
    let mut found = vec![((0, false), 0)];
    let mut empty = true;
    for (at, c) in text.char_indices() {
        if c == '\n' {
            if !empty {
                found.push(((count, false), at + 1));
            }
            (line, empty) = (at + 1, true);
        } else if !c.is_whitespace() {
            if std::mem::take(&mut empty) {
                found.push(((count, true), line));
            }
            count += 1;
        }
    }
    found
}
