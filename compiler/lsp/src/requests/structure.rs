//! Folding and selection, from the tokens: they work in every text.

use crate::brackets::Brackets;
use crate::context::Context;
use crate::failure::{Failure, read};
use crate::reply::{Reply, result};
use crate::world::World;
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
    let mut open = Brackets::default();
    let closed = |&(tok, span): &(Tok, Span)| match open.open(tok, span) {
        true => None,
        false => open.close(tok).map(|opener| (opener, span)),
    };
    tokens.iter().filter_map(closed).collect()
}

/// `textDocument/selectionRange`: the word, then what is between commas, what is in the brackets, the brackets, the
/// statement, the item, the text.
pub fn selection(world: &mut World, params: Value) -> Result<Reply, Failure> {
    let params: SelectionRangeParams = read(params)?;
    let context = world.known(&params.text_document.uri)?;
    let nested = Nested::new(spans(&ptoc_syntax::tokens(context.file(), context.text())));
    let items = context.loaded().unit.modules.root().ast.items.iter().map(|i| i.span);
    let items: Vec<Span> = items.filter(|s| s.start < s.end).collect();
    let mut out = Vec::new();
    for at in &params.positions {
        out.push(written(context, &chain(context, &nested, &items, *at))?);
    }
    Ok(Reply::written(format!("[{}]", out.join(","))))
}

/// What is around a place, from the text on, each inside of the one before.
fn chain(context: Context<'_>, nested: &Nested, items: &[Span], at: Position) -> Vec<Span> {
    let offset = context.offset(at) as u32;
    let mut spans = vec![Span::new(context.file(), 0, context.text().len() as u32)];
    let before = items.partition_point(|s| s.end < offset);
    spans.extend(items[before..].iter().take_while(|s| s.start <= offset));
    nested.touching(offset, &mut spans);
    spans.sort_by_key(|s| (std::cmp::Reverse(s.end - s.start), s.start));
    spans.dedup();
    let mut kept: Vec<Span> = Vec::new();
    for span in spans {
        if kept.last().is_none_or(|outer| outer.contains(span)) {
            kept.push(span);
        }
    }
    kept
}

/// A chain as the protocol has it, the inner ones with their parents. It is written from one end to the other: there
/// may be more of them than calls have room.
fn written(context: Context<'_>, chain: &[Span]) -> Result<String, Failure> {
    let ranges = chain.iter().rev().map(|span| Ok(format!(r#"{{"range":{}"#, result(context.range(*span))?.text())));
    let ranges: Vec<String> = ranges.collect::<Result<_, Failure>>()?;
    Ok(ranges.join(r#","parent":"#) + &"}".repeat(ranges.len()))
}

/// Spans of which two have nothing in common, or one has all of the other; and for each the next one around it.
struct Nested {
    /// By their beginnings, those around others before these.
    spans: Vec<Span>,
    around: Vec<Option<usize>>,
}

impl Nested {
    fn new(mut spans: Vec<Span>) -> Nested {
        spans.retain(|s| s.start < s.end);
        spans.sort_by_key(|s| (s.start, std::cmp::Reverse(s.end)));
        spans.dedup();
        let mut open: Vec<usize> = Vec::new();
        let mut around = Vec::new();
        for (n, span) in spans.iter().enumerate() {
            while open.last().is_some_and(|&o| !spans[o].contains(*span)) {
                open.pop();
            }
            around.push(open.last().copied());
            open.push(n);
        }
        Nested { spans, around }
    }

    /// Adds those that have a place in them or at their ends: they are around the last one that begins there or before
    /// it, or around the last one that begins before it.
    fn touching(&self, offset: u32, out: &mut Vec<Span>) {
        for behind in [offset + 1, offset] {
            let mut next = self.spans.partition_point(|s| s.start < behind).checked_sub(1);
            while let Some(n) = next {
                out.extend(Some(self.spans[n]).filter(|s| offset <= s.end));
                next = self.around[n];
            }
        }
    }
}

/// Tokens, brackets with and without what is in them, and its parts: statements with their `;`, arguments without their
/// `,`.
fn spans(tokens: &[(Tok, Span)]) -> Vec<Span> {
    let mut all: Vec<Span> = tokens.iter().map(|(_, span)| *span).collect();
    let pairs = pairs(tokens);
    let mut closers: Vec<(Span, Span)> = pairs.iter().map(|&(open, close)| (close, open)).collect();
    let mut openers: Vec<Span> = pairs.iter().map(|p| p.0).collect();
    closers.sort_unstable();
    openers.sort_unstable();
    // The brackets around, with the part that has begun in each.
    let mut around: Vec<Option<Span>> = Vec::new();
    let grow = |part: Option<&mut Option<Span>>, span: Span| {
        part.into_iter().for_each(|part| *part = Some(part.map_or(span, |p| p.to(span))));
    };
    for (tok, span) in tokens.iter().filter(|(tok, _)| !tok.is_comment()) {
        if openers.binary_search(span).is_ok() {
            grow(around.last_mut(), *span);
            around.push(None);
            continue;
        }
        let closes = closers.binary_search_by_key(span, |c| c.0).ok().map(|n| closers[n].1);
        if let Some(open) = closes {
            all.extend(around.pop().flatten());
            all.extend([open.to(*span), Span::new(open.file, open.end, span.start)]);
        }
        let Some(part) = around.last_mut() else { continue };
        if *tok != Tok::Comma {
            grow(Some(part), *span);
        }
        if matches!(tok, Tok::Comma | Tok::Semi) || (closes.is_some() && *tok == Tok::RBrace) {
            all.extend(part.take());
        }
    }
    all
}
