//! Folding and selection, from the tokens: they work in every text.

use crate::lsp::context::Context;
use crate::lsp::failure::{Failure, read};
use crate::lsp::reply::{Reply, result};
use crate::lsp::world::World;
use lsp_types::{DocumentSymbolParams, Position, SelectionRangeParams};
use ptoc_diagnostics::Span;
use ptoc_syntax::Tok;
use serde_json::{Value, json};

/// `textDocument/foldingRange`: brackets, runs of comment lines, runs of imports.
pub fn folding(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: DocumentSymbolParams = read(params)?;
    let context = world.known(&params.text_document.uri)?;
    let tokens = ptoc_syntax::tokens(context.file(), context.text());
    let line = |offset: u32| context.range(Span::new(context.file(), offset, offset)).start.line;
    let mut found: Vec<(u32, u32, Option<&str>)> = Vec::new();
    for (open, close) in pairs(&tokens) {
        // The line of the closing bracket stays to be seen.
        found.push((line(open.start), line(close.start).saturating_sub(1), None));
    }
    let mut at = 0;
    while at < tokens.len() {
        let first = tokens[at];
        let kind = match first.0 {
            tok if tok.is_comment() => "comment",
            Tok::Use => "imports",
            _ => {
                at += 1;
                continue;
            }
        };
        let (mut last, mut next) = (first.1, at + 1);
        while let Some((tok, span)) = tokens.get(next) {
            let adjacent = line(span.start) <= line(last.end.saturating_sub(1).max(last.start)) + 1;
            let belongs = match kind {
                "comment" => tok.is_comment() && adjacent,
                // Up to its `;`, then the next line's `use`.
                _ => adjacent && (*tok == Tok::Use || tokens[next - 1].0 != Tok::Semi),
            };
            if !belongs {
                break;
            }
            (last, next) = (*span, next + 1);
        }
        found.push((line(first.1.start), line(last.end), Some(kind)));
        at = next;
    }
    found.retain(|(from, to, _)| from < to);
    found.sort_unstable();
    // Of two that begin on a line the outer one is enough.
    found.reverse();
    found.dedup_by_key(|(from, ..)| *from);
    found.reverse();
    let ranges = found.into_iter().map(|(from, to, kind)| match kind {
        Some(kind) => json!({"startLine": from, "endLine": to, "kind": kind}),
        None => json!({"startLine": from, "endLine": to}),
    });
    result(ranges.collect::<Vec<_>>())
}

/// Brackets that belong together, the inner ones first.
fn pairs(tokens: &[(Tok, Span)]) -> Vec<(Span, Span)> {
    let mut open: Vec<(Tok, Span)> = Vec::new();
    let mut found = Vec::new();
    for (tok, span) in tokens {
        let opener = match tok {
            Tok::LParen | Tok::LBracket | Tok::LBrace | Tok::StaticOpen | Tok::TilerOpen => {
                open.push((*tok, *span));
                continue;
            }
            Tok::RParen => [Tok::LParen; 2],
            Tok::RBracket => [Tok::LBracket; 2],
            Tok::RBrace => [Tok::LBrace; 2],
            Tok::AngleClose => [Tok::StaticOpen, Tok::TilerOpen],
            _ => continue,
        };
        // What was not closed before this one is closed by nothing.
        if let Some(at) = open.iter().rposition(|(t, _)| opener.contains(t)) {
            found.push((open[at].1, *span));
            open.truncate(at);
        }
    }
    found
}

/// `textDocument/selectionRange`: the word, then what is between commas, what is in the brackets, the brackets, the statement, the
/// item, the text.
pub fn selection(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: SelectionRangeParams = read(params)?;
    let context = world.known(&params.text_document.uri)?;
    let tokens = ptoc_syntax::tokens(context.file(), context.text());
    result(params.positions.iter().map(|at| chain(context, &tokens, *at)).collect::<Vec<_>>())
}

fn chain(context: Context<'_>, tokens: &[(Tok, Span)], at: Position) -> Value {
    let offset = context.offset(at) as u32;
    let touches = |s: &Span| s.start <= offset && offset <= s.end;
    let mut spans: Vec<Span> = vec![Span::new(context.file(), 0, context.text().len() as u32)];
    spans.extend(context.loaded().unit.modules.root().ast.items.iter().map(|i| i.span).filter(touches));
    for (open, close) in pairs(tokens) {
        let (outer, inner) = (open.to(close), Span::new(open.file, open.end, close.start));
        if !touches(&outer) {
            continue;
        }
        spans.push(outer);
        if touches(&inner) {
            spans.push(inner);
            spans.extend(part(tokens, inner, offset));
        }
    }
    spans.extend(tokens.iter().map(|(_, s)| *s).filter(touches));
    spans.retain(|s| s.start < s.end);
    // From the largest on, each inside of the one before.
    spans.sort_by_key(|s| (std::cmp::Reverse(s.end - s.start), s.start));
    spans.dedup();
    let mut kept: Vec<Span> = Vec::new();
    for span in spans {
        if kept.last().is_none_or(|outer| outer.contains(span)) {
            kept.push(span);
        }
    }
    kept.into_iter().fold(Value::Null, |parent, span| match parent {
        Value::Null => json!({"range": context.range(span)}),
        parent => json!({"range": context.range(span), "parent": parent}),
    })
}

/// The statement or argument around a place, of those that `inside` is a list of.
fn part(tokens: &[(Tok, Span)], inside: Span, offset: u32) -> Option<Span> {
    let mut depth = 0_i32;
    let mut list: Vec<Span> = Vec::new();
    let mut current: Option<Span> = None;
    for (tok, span) in tokens.iter().filter(|(tok, span)| inside.contains(*span) && !tok.is_comment()) {
        match tok {
            Tok::LParen | Tok::LBracket | Tok::LBrace | Tok::StaticOpen | Tok::TilerOpen => depth += 1,
            Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::AngleClose => depth -= 1,
            _ => {}
        }
        let ends = depth == 0 && matches!(tok, Tok::Comma | Tok::Semi);
        // A statement has its `;`, an argument not its `,`.
        if *tok != Tok::Comma || depth > 0 {
            current = Some(current.map_or(*span, |c| c.to(*span)));
        }
        if ends || (depth == 0 && *tok == Tok::RBrace) {
            list.extend(current.take());
        }
    }
    list.extend(current);
    list.into_iter().find(|s| s.start <= offset && offset <= s.end)
}
