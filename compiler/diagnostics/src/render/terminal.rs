//! The rendering for people.
//!
//! ```text
//! error[E0101]: nothing is called `acx`
//!    ╭─[ add.tile:7:12 ]
//!    │
//!  7 │     TSTORE(acx, z);
//!    │            ─┬─
//!    │             ╰─── not found
//!    │
//!    = note: a sentence
//!    = help: use `acc`
//!    │
//!  7 -     TSTORE(acx, z);
//!  7 +     TSTORE(acc, z);
//! ```

use super::patch::{PatchLine, patch};
use super::snippet::snippet;
use super::text::{printable, wrap};
use crate::{Diagnostic, Severity, SourceMap};

/// The width to render for where none is known.
pub const DEFAULT_WIDTH: usize = 100;

/// Narrower terminals are treated as being this wide.
const MIN_WIDTH: usize = 40;

const BOLD: &str = "1";
const RED: &str = "31";
const GREEN: &str = "32";
const BOLD_BLUE: &str = "1;34";

/// Wraps text in ANSI colours, or does not.
#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn paint(self, style: &str, text: &str) -> String {
        if self.0 && !text.is_empty() { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// The diagnostic as text that ends in a line break: header, source excerpt, notes, help. `width` is that of the
/// terminal in columns; prose is wrapped to it and long source lines are cut.
pub fn terminal(diagnostic: &Diagnostic, sources: &SourceMap, color: bool, width: usize) -> String {
    let paint = Paint(color);
    let width = width.max(MIN_WIDTH);
    let style = match diagnostic.severity {
        Severity::Error => "1;31",
        Severity::Warning => "1;33",
        Severity::Note => "1;36",
    };
    let kind = format!("{}[{}]", diagnostic.severity.name(), diagnostic.code);
    let mut out = String::new();
    let mut message = printable(&diagnostic.message);
    if message.contains('\n') {
        message = message.replace('\n', &format!("\n{}", " ".repeat(kind.len() + 2)));
    }
    push(&mut out, &format!("{}{}", paint.paint(style, &kind), paint.paint(BOLD, &format!(": {message}"))));
    let drawn = snippet(diagnostic, sources, color, width);
    let margin = drawn.as_ref().map_or(2, |drawn| drawn.margin);
    let bar = format!("{}{}", " ".repeat(margin), paint.paint("38;5;246", "│"));
    if let Some(drawn) = drawn {
        drawn.lines.iter().for_each(|line| push(&mut out, line));
        if !diagnostic.notes.is_empty() || !diagnostic.fixes.is_empty() {
            push(&mut out, &bar);
        }
    }
    let remark = |out: &mut String, word: &str, text: &str| {
        let lead = margin + word.len() + 4; // `= `, the word, `: `
        for (i, line) in wrap(&printable(text), width.saturating_sub(lead).max(MIN_WIDTH / 2)).iter().enumerate() {
            match i {
                0 => push(out, &format!("{}= {} {line}", " ".repeat(margin), paint.paint(BOLD, &format!("{word}:")))),
                _ => push(out, &format!("{}{line}", " ".repeat(lead))),
            }
        }
    };
    for note in &diagnostic.notes {
        remark(&mut out, "note", note);
    }
    let mut after_patch = false;
    for fix in &diagnostic.fixes {
        if after_patch {
            push(&mut out, &bar);
        }
        remark(&mut out, "help", &fix.message);
        let lines = patch(&fix.edits, sources, diagnostic.span.map(|span| span.file), width.saturating_sub(margin + 3));
        after_patch = !lines.is_empty();
        if after_patch {
            push(&mut out, &bar);
        }
        lines.iter().for_each(|line| push(&mut out, &patch_line(line, margin, paint)));
    }
    out
}

/// A line number, a sign in the column of the bar, and the text.
fn patch_line(line: &PatchLine, margin: usize, paint: Paint) -> String {
    let number = |number: &u32| format!("{number:>width$} ", width = margin.saturating_sub(1));
    match line {
        PatchLine::Old(at, text) => {
            format!("{}{}", paint.paint(BOLD_BLUE, &number(at)), paint.paint(RED, &format!("- {text}")))
        }
        PatchLine::New(at, text) => {
            format!("{}{}", paint.paint(BOLD_BLUE, &number(at)), paint.paint(GREEN, &format!("+ {text}")))
        }
        PatchLine::File(name) => format!("{}in {}:", " ".repeat(margin), printable(name)),
        PatchLine::More(count) => {
            format!("{}… {count} more line{}", " ".repeat(margin), if *count == 1 { "" } else { "s" })
        }
    }
}

/// Adds a line without trailing spaces.
fn push(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}
