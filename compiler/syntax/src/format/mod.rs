//! The formatter: white space between tokens, and nothing else, is made canonical.
//!
//! Which tokens stand on one line is the author's choice; how far lines are indented, what stands between two tokens of
//! a line, and where comments at the ends of lines begin is not. What the author has aligned in columns stays aligned.
//! No token and no comment is added, removed or moved, so the meaning cannot change, and the result is looked at again
//! before it is given out.
//!
//! ```text
//! text --pieces--> pieces --breaks--> pieces with their line breaks
//!      --lines (spacing, indentation), align--> lines --trailing--> text
//! ```

mod align;
mod breaks;
mod context;
mod lines;
mod pieces;
mod spacing;
mod trailing;

use context::Context;
use lines::OutputLine;
use pieces::Piece;
use ptoc_diagnostics::{Diagnostic, FileId};

/// Columns of a level.
const INDENT: usize = 4;

/// How often padding is computed at most.
const ROUNDS: usize = 16;

/// Why a text has no canonical form.
#[derive(Clone, Debug)]
pub enum Refused {
    /// It cannot be parsed: these are the errors, in source order.
    Broken(Vec<Diagnostic>),
    /// The result would not mean the same. That is a mistake of the formatter.
    Changed,
}

/// The canonical form of a text; formatting it again changes nothing.
///
/// # Errors
/// [`Refused`], and the text is to be left alone.
pub fn format(file: FileId, text: &str) -> Result<String, Refused> {
    let parsed = crate::parse(file, text);
    if parsed.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Refused::Broken(parsed.diagnostics));
    }
    let mut pieces = pieces::pieces(file, text);
    let contexts = context::contexts(&pieces);
    breaks::settle(&mut pieces, &contexts);
    let mut groups = align::groups(&pieces, &contexts);
    let lines = loop {
        match padded(&pieces, &contexts, &groups) {
            Ok(lines) => break lines,
            // What can never stand in one column does not.
            Err(endless) => {
                let mut number = 0..;
                groups.retain(|_| number.next().is_some_and(|n| endless.binary_search(&n).is_err()));
            }
        }
    };
    let formatted = trailing::join(&lines, line_end(text));
    match same(&pieces, &pieces::pieces(file, &formatted)) {
        true => Ok(formatted),
        false => Err(Refused::Changed),
    }
}

/// The lines with groups of pieces each in one column; or groups that move farther each time, because lines below a
/// bracket push what is to its left.
fn padded<'t>(
    pieces: &[Piece<'t>],
    contexts: &[Context],
    groups: &[Vec<usize>],
) -> Result<Vec<OutputLine<'t>>, Vec<usize>> {
    let mut pads = vec![0; pieces.len()];
    let mut changed = Vec::new();
    // Padding moves brackets, and those the lines below them.
    for _ in 0..ROUNDS {
        let (lines, columns) = lines::lines(pieces, contexts, &pads);
        changed = align::pad(groups, pieces, &columns, &mut pads);
        if changed.is_empty() {
            return Ok(lines);
        }
    }
    Err(changed)
}

/// What ends most lines of a text, and so every line of its canonical form.
fn line_end(text: &str) -> &'static str {
    let (all, both) = (text.matches('\n').count(), text.matches("\r\n").count());
    if 2 * both > all { "\r\n" } else { "\n" }
}

/// Whether these are the same tokens and comments.
fn same(before: &[Piece<'_>], after: &[Piece<'_>]) -> bool {
    before.len() == after.len() && before.iter().zip(after).all(|(a, b)| a.tok == b.tok && a.text == b.text)
}

#[cfg(test)]
mod tests;
