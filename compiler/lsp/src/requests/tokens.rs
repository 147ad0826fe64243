//! Semantic tokens: what a name is, which no pattern can tell.

use crate::context::Context;
use crate::failure::{Failure, read};
use crate::reply::{Reply, result};
use crate::world::World;
use lsp_types::{DocumentSymbolParams, SemanticTokensRangeParams, TextDocumentIdentifier};
use ptoc_diagnostics::Span;
use ptoc_driver::pto::Kind;
use ptoc_names::index::{DefinitionKind, KnownName, Meaning, Occurrence, OccurrenceAccess};
use ptoc_syntax::Tok;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ops::Range;

/// Types of tokens, in the order of their numbers.
pub const TYPES: [&str; 14] = [
    "comment",
    "keyword",
    "number",
    "string",
    "namespace",
    "function",
    "macro",
    "type",
    "typeParameter",
    "parameter",
    "variable",
    "property",
    "enumMember",
    "decorator",
];

/// Modifiers, in the order of their bits.
pub const MODIFIERS: [&str; 4] = ["declaration", "readonly", "modification", "defaultLibrary"];

const DECLARATION: u32 = 1;
const READONLY: u32 = 2;
const MODIFICATION: u32 = 4;
const LIBRARY: u32 = 8;

fn number(name: &str) -> u32 {
    TYPES.iter().position(|t| *t == name).expect("it is in the list") as u32
}

/// `textDocument/semanticTokens/full`
pub fn full(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: DocumentSymbolParams = read(params)?;
    let uri = params.text_document.uri;
    let context = world.known(&uri)?;
    let data = encode(context, 0..context.text().len());
    let id = world.tokens.get(&uri).map_or(1, |(id, _)| id + 1);
    world.tokens.insert(uri, (id, data.clone()));
    result(json!({"resultId": id.to_string(), "data": data}))
}

/// Parameters of a difference.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta {
    text_document: TextDocumentIdentifier,
    previous_result_id: String,
}

/// `textDocument/semanticTokens/full/delta`: one edit, or everything if the client has another state.
pub fn delta(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: Delta = read(params)?;
    let uri = params.text_document.uri;
    let context = world.known(&uri)?;
    let data = encode(context, 0..context.text().len());
    let before = world.tokens.get(&uri).cloned();
    let id = before.as_ref().map_or(1, |(id, _)| id + 1);
    world.tokens.insert(uri, (id, data.clone()));
    let Some((_, old)) = before.filter(|(id, _)| id.to_string() == params.previous_result_id) else {
        return result(json!({"resultId": id.to_string(), "data": data}));
    };
    let start = old.iter().zip(&data).take_while(|(a, b)| a == b).count();
    let tail = old[start..].iter().rev().zip(data[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (removed, new) = (old.len() - tail - start, &data[start..data.len() - tail]);
    let edits = match removed + new.len() {
        0 => json!([]),
        _ => json!([{"start": start, "deleteCount": removed, "data": new}]),
    };
    result(json!({"resultId": id.to_string(), "edits": edits}))
}

/// `textDocument/semanticTokens/range`
pub fn range(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: SemanticTokensRangeParams = read(params)?;
    let context = world.known(&params.text_document.uri)?;
    let bytes = context.offset(params.range.start)..context.offset(params.range.end);
    result(json!({"data": encode(context, bytes)}))
}

/// Tokens that touch `bytes`: five numbers each, relative to the one before, as the protocol has them.
fn encode(context: Context<'_>, bytes: Range<usize>) -> Vec<u32> {
    let index = context.loaded().index.file(context.file());
    let names: &[Occurrence] = index.map_or(&[], |f| &f.occurrences);
    let tokens = ptoc_syntax::tokens(context.file(), context.text());
    let is_pto = ptoc_driver::pto::is_pto(context.loaded().sources.name(context.file()));
    let mut next = 0;
    let mut out = Vec::new();
    let mut last = (0, 0);
    let mut put = |span: Span, (kind, modifiers): (u32, u32)| {
        for span in lines(context.text(), span) {
            let range = context.range(span);
            let (line, column) = (range.start.line, range.start.character);
            let from = if line == last.0 { last.1 } else { 0 };
            out.extend([line - last.0, column - from, range.end.character - column, kind, modifiers]);
            last = (line, column);
        }
    };
    if is_pto {
        for (at, kind) in ptoc_driver::pto::tokens(context.text()) {
            if at.end >= bytes.start && at.start <= bytes.end {
                put(Span::new(context.file(), at.start as u32, at.end as u32), (number(of_pto(kind)), 0));
            }
        }
        return out;
    }
    for (k, (tok, span)) in tokens.iter().enumerate() {
        while names.get(next).is_some_and(|o| o.span.start < span.start) {
            next += 1;
        }
        if (span.end as usize) < bytes.start || bytes.end < span.start as usize {
            continue;
        }
        let here = names.get(next).filter(|o| o.span == *span);
        let before = |n: usize| k.checked_sub(n).map(|i| tokens[i].0);
        match (tok, here) {
            (_, Some(o)) => put(*span, named(context, o)),
            (tok, _) if tok.is_comment() => commented(&names[next..], *span, &mut |s, o| match o {
                Some(o) => put(s, named(context, o)),
                None => put(s, (number("comment"), 0)),
            }),
            (Tok::Str, _) => put(*span, (number("string"), 0)),
            (Tok::Int | Tok::Float | Tok::BadNumber, _) => put(*span, (number("number"), 0)),
            // A field or a method, whatever word it is.
            (Tok::Name, _) if before(1) == Some(Tok::Dot) => put(*span, (number("property"), 0)),
            (tok, _) if tok.word().is_some() && before(1) == Some(Tok::Dot) => put(*span, (number("property"), 0)),
            (Tok::Name, _) if before(1) == Some(Tok::LBracket) && before(2) == Some(Tok::Hash) => {
                put(*span, (number("decorator"), 0));
            }
            (tok, _) if tok.is_keyword() => put(*span, (number("keyword"), 0)),
            _ => {}
        }
    }
    out
}

/// The type of a token of PTO text.
fn of_pto(kind: Kind) -> &'static str {
    match kind {
        Kind::Comment => "comment",
        Kind::Value => "variable",
        Kind::Symbol => "function",
        Kind::Type => "type",
        Kind::Attribute => "decorator",
        Kind::Operation => "macro",
        Kind::Word => "keyword",
        Kind::Number => "number",
        Kind::Text => "string",
    }
}

/// A comment with the names that a test line mentions.
fn commented(names: &[Occurrence], span: Span, put: &mut dyn FnMut(Span, Option<&Occurrence>)) {
    let mut at = span.start;
    for o in names.iter().take_while(|o| o.span.end <= span.end) {
        if at < o.span.start {
            put(Span::new(span.file, at, o.span.start), None);
        }
        put(o.span, Some(o));
        at = o.span.end;
    }
    if at < span.end {
        put(Span::new(span.file, at, span.end), None);
    }
}

/// Parts of a span on lines of their own: no token has two lines.
fn lines(text: &str, span: Span) -> Vec<Span> {
    let mut out = Vec::new();
    let mut at = span.start as usize;
    for piece in text[span.range()].split_inclusive(['\n', '\r']) {
        let length = piece.trim_end_matches(['\n', '\r']).len();
        if length > 0 {
            out.push(Span::new(span.file, at as u32, (at + length) as u32));
        }
        at += piece.len();
    }
    out
}

/// Type and modifiers of a name.
fn named(context: Context<'_>, o: &Occurrence) -> (u32, u32) {
    let source = match o.meaning {
        Meaning::Module(_) => return (number("namespace"), 0),
        Meaning::Known(known) => {
            let name = match known {
                KnownName::DType | KnownName::Loc => "type",
                KnownName::Instruction(_) => "macro",
                KnownName::Function => "function",
                KnownName::Pipe | KnownName::Word => "enumMember",
            };
            return (number(name), LIBRARY);
        }
        Meaning::Source(name) => name,
    };
    let Some(d) = context.loaded().index.definition(source) else { return (number("variable"), 0) };
    let (kind, mut modifiers) = match d.kind {
        DefinitionKind::Kernel | DefinitionKind::Program | DefinitionKind::Function | DefinitionKind::FnParam => {
            ("function", 0)
        }
        DefinitionKind::Atom => ("type", 0),
        DefinitionKind::Constant => ("variable", READONLY),
        DefinitionKind::TypeParam | DefinitionKind::Dimension => ("typeParameter", 0),
        DefinitionKind::ConstParam => ("parameter", READONLY),
        DefinitionKind::Tensor | DefinitionKind::Parameter => ("parameter", 0),
        DefinitionKind::LoopVariable | DefinitionKind::BoundIndex => ("variable", READONLY),
        DefinitionKind::Let | DefinitionKind::Variable => ("variable", 0),
        DefinitionKind::Field => ("property", READONLY),
    };
    match o.access {
        OccurrenceAccess::Define => modifiers |= DECLARATION,
        OccurrenceAccess::Write => modifiers |= MODIFICATION,
        _ => {}
    }
    (number(kind), modifiers)
}
