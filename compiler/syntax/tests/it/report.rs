//! Diagnostics as plain text, and their fixes applied.

use std::fmt::Write as _;

use ptoc_diagnostics::{Diagnostic, FileId, Span};

/// Line and column of a byte, from 1.
fn place(text: &str, at: u32) -> String {
    let before = &text[..at as usize];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{line}:{column}")
}

fn range(text: &str, span: Span) -> String {
    match span.range().is_empty() {
        true => place(text, span.start),
        false => format!("{}-{}", place(text, span.start), place(text, span.end)),
    }
}

/// `text` with the edits of the first applicable fix of each diagnostic, those that do not overlap.
pub fn repaired(text: &str, diagnostics: &[Diagnostic]) -> Option<String> {
    let mut edits = Vec::new();
    for d in diagnostics {
        let fix = d.fixes.iter().find(|f| !f.edits.is_empty())?;
        edits.extend(fix.edits.iter().cloned());
    }
    edits.sort_by_key(|e| (e.span.start, e.span.end));
    let mut out = text.to_owned();
    let mut limit = u32::MAX;
    for e in edits.iter().rev() {
        if e.span.end <= limit {
            out.replace_range(e.span.range(), &e.text);
            limit = e.span.start;
        }
    }
    Some(out)
}

/// All about the diagnostics of `text`.
pub fn report(text: &str) -> String {
    let parsed = ptoc_syntax::parse(FileId(0), text);
    let mut out = String::new();
    for d in &parsed.diagnostics {
        let span = d.span.expect("syntax errors have a place");
        writeln!(out, "{} {} {}", range(text, span), d.code, d.message).expect("String");
        if !d.label.is_empty() {
            writeln!(out, "    here: {}", d.label).expect("String");
        }
        for l in &d.labels {
            writeln!(out, "    {}: {}", range(text, l.span), l.message).expect("String");
        }
        for n in &d.notes {
            writeln!(out, "    note: {n}").expect("String");
        }
        for f in &d.fixes {
            let edits: Vec<_> = f.edits.iter().map(|e| format!(" [{} -> {:?}]", range(text, e.span), e.text)).collect();
            writeln!(out, "    fix: {}{}", f.message, edits.concat()).expect("String");
        }
    }
    if parsed.diagnostics.is_empty() {
        return "no errors\n".to_owned();
    }
    if let Some(repaired) = repaired(text, &parsed.diagnostics) {
        let again = ptoc_syntax::parse(FileId(0), &repaired).diagnostics.len();
        let changed = repaired.lines().zip(text.lines()).find(|(a, b)| a != b).map_or("", |(a, _)| a.trim());
        writeln!(out, "repaired: {again} errors: {changed}").expect("String");
    }
    out
}
