//! `--message-format json`: one object a line.
//!
//! Lines and columns count from 1, columns in Unicode scalars, the end exclusive. The remark at the primary span is
//! the first of `labels`. A diagnostic without a place has `null` for `file` and `span`. `fixes` can be applied as they
//! are, each has an edit; advice in words alone is in `helps`.

use crate::{Diagnostic, Position, SourceMap, Span};
use serde::Serialize;

#[derive(Serialize)]
struct Object<'a> {
    code: &'a str,
    severity: &'a str,
    message: &'a str,
    file: Option<&'a str>,
    span: Option<Range>,
    labels: Vec<Label<'a>>,
    notes: &'a [String],
    helps: Vec<&'a str>,
    fixes: Vec<Fix<'a>>,
}

#[derive(Serialize)]
struct Range {
    start: Place,
    end: Place,
}

#[derive(Serialize)]
struct Place {
    line: u32,
    column: u32,
}

#[derive(Serialize)]
struct Label<'a> {
    file: &'a str,
    span: Range,
    message: &'a str,
}

#[derive(Serialize)]
struct Fix<'a> {
    message: &'a str,
    edits: Vec<Edit<'a>>,
}

#[derive(Serialize)]
struct Edit<'a> {
    file: &'a str,
    span: Range,
    text: &'a str,
}

fn place(position: Position) -> Place {
    Place { line: position.line, column: position.column }
}

fn range(sources: &SourceMap, span: Span) -> Range {
    let (start, end) = sources.range(span);
    Range { start: place(start), end: place(end) }
}

/// The diagnostic as one line of JSON, without a line break at the end.
pub fn json<'a>(diagnostic: &'a Diagnostic, sources: &'a SourceMap) -> String {
    let label = |span: Span, message| Label { file: sources.name(span.file), span: range(sources, span), message };
    let primary = diagnostic.span.filter(|_| !diagnostic.label.is_empty()).map(|span| label(span, &*diagnostic.label));
    let secondary = diagnostic.labels.iter().map(|secondary| label(secondary.span, &secondary.message));
    let edit = |edit: &'a crate::Edit| {
        let file = sources.name(edit.span.file);
        Edit { file, span: range(sources, edit.span), text: &edit.text }
    };
    let (fixes, helps): (Vec<_>, Vec<_>) = diagnostic.fixes.iter().partition(|fix| !fix.edits.is_empty());
    let fixes = fixes.into_iter().map(|fix| Fix { message: &fix.message, edits: fix.edits.iter().map(edit).collect() });
    let object = Object {
        code: diagnostic.code.as_str(),
        severity: diagnostic.severity.name(),
        message: &diagnostic.message,
        file: diagnostic.span.map(|span| sources.name(span.file)),
        span: diagnostic.span.map(|span| range(sources, span)),
        labels: primary.into_iter().chain(secondary).collect(),
        notes: &diagnostic.notes,
        helps: helps.into_iter().map(|fix| &*fix.message).collect(),
        fixes: fixes.collect(),
    };
    serde_json::to_string(&object).expect("strings and numbers always serialise")
}
