//! Which line breaks stay. Those of the author do, but for some that would look broken, and brackets are opened and
//! closed alike: if the first thing in them begins a line, so does the bracket that closes them.

use super::context::Context;
use super::pieces::Piece;
use crate::Tok;

/// Settles the breaks of all pieces.
pub(super) fn settle(pieces: &mut [Piece<'_>], contexts: &[Context]) {
    for i in 1..pieces.len() {
        let (before, next) = (pieces[i - 1].tok, pieces[i].tok);
        let after_comment = before.is_comment();
        let chain = matches!((before, next), (Tok::RBrace, Tok::Else) | (Tok::Else, Tok::LBrace | Tok::If));
        let joined = chain || matches!(next, Tok::Comma | Tok::Semi);
        if joined && !after_comment {
            pieces[i].breaks = 0;
        }
        if after_comment {
            pieces[i].breaks = pieces[i].breaks.max(1);
        }
        // Items stand on lines of their own.
        if contexts[i].start && before == Tok::RBrace && !next.is_comment() {
            pieces[i].breaks = pieces[i].breaks.max(1);
        }
    }
    for close in 0..pieces.len() {
        let Some(open) = contexts[close].partner.filter(|&open| open < close) else { continue };
        match pieces[close].tok {
            Tok::RBrace => braces(pieces, contexts, open, close),
            _ => list(pieces, open, close),
        }
    }
    for i in 1..pieces.len() {
        // No blank lines inside of brackets at their ends.
        let opens =
            matches!(pieces[i - 1].tok, Tok::LBrace | Tok::LParen | Tok::LBracket | Tok::StaticOpen | Tok::TilerOpen);
        let closes = matches!(pieces[i].tok, Tok::RBrace | Tok::RParen | Tok::RBracket | Tok::AngleClose);
        if opens || closes {
            pieces[i].breaks = pieces[i].breaks.min(1);
        }
    }
}

/// A block on several lines has its braces at the ends of lines.
fn braces(pieces: &mut [Piece<'_>], contexts: &[Context], open: usize, close: usize) {
    if close == open + 1 {
        pieces[close].breaks = 0;
        return;
    }
    // What is in inner brackets does not count.
    let mut i = open + 1;
    let mut several = false;
    while i <= close {
        several |= pieces[i].begins_line();
        i = contexts[i]
            .partner
            .filter(|&p| p > i && p < close && pieces[i].tok != Tok::LBrace)
            .map_or(i + 1, |p| p + 1);
    }
    if !several {
        return;
    }
    // A comment behind the brace stays there.
    let first = if pieces[open + 1].tok.is_comment() && !pieces[open + 1].begins_line() { open + 2 } else { open + 1 };
    for i in [first, close] {
        pieces[i].breaks = pieces[i].breaks.max(1);
    }
}

/// A list closes as it opens.
fn list(pieces: &mut [Piece<'_>], open: usize, close: usize) {
    let after_comment = pieces[close - 1].tok.is_comment();
    if close == open + 1 {
        pieces[close].breaks = 0;
    } else if opens_line(pieces, open) || after_comment {
        pieces[close].breaks = 1;
    } else {
        pieces[close].breaks = 0;
    }
}

/// Whether what is in a bracket begins on a line of its own.
pub(super) fn opens_line(pieces: &[Piece<'_>], open: usize) -> bool {
    pieces[open + 1].begins_line() || pieces[open + 1].tok.is_comment()
}
