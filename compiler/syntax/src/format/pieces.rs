//! A text as tokens and comments, with what stood between them.

use crate::Tok;
use ptoc_diagnostics::FileId;

/// A token or a comment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece<'t> {
    pub tok: Tok,
    /// Without white space at the end.
    pub text: &'t str,
    /// Line breaks before it; 2 stands for more.
    pub breaks: usize,
    /// White space before it, in characters, if it does not begin its line.
    pub gap: usize,
    /// Characters before it on its line.
    pub column: usize,
    /// Its line, from 0.
    pub line: usize,
}

impl Piece<'_> {
    /// Whether it is the first on its line.
    pub fn begins_line(&self) -> bool {
        self.breaks > 0
    }
}

/// The pieces of a text.
pub(super) fn pieces(file: FileId, text: &str) -> Vec<Piece<'_>> {
    let mut end = 0;
    // Characters before `end` on its line, and the number of that line.
    let (mut column, mut number) = (0, 0);
    let mut out = Vec::new();
    for (tok, span) in crate::tokens(file, text) {
        let (from, to) = (span.start as usize, span.end as usize);
        let between = &text[end..from];
        let count = between.matches('\n').count();
        number += count;
        let breaks = count.min(2);
        let gap = between.chars().count();
        column = between.rfind('\n').map_or(column + gap, |at| between[at + 1..].chars().count());
        let whole = &text[from..to];
        out.push(Piece { tok, text: whole.trim_end(), breaks, gap, column, line: number });
        column += whole.chars().count();
        end = to;
    }
    // Nothing stands before the first.
    if let Some(first) = out.first_mut() {
        first.breaks = 1;
    }
    out
}
