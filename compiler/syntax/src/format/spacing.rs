//! What stands between two tokens of one line: one blank or nothing.

use super::context::{Context, Role};
use super::pieces::Piece;
use crate::Tok;

/// Blanks between piece `i - 1` and piece `i`, which are on one line: two between statements.
pub(super) fn blanks(pieces: &[Piece<'_>], contexts: &[Context], i: usize) -> usize {
    match pieces[i - 1].tok {
        Tok::Semi if contexts[i].start => 2,
        _ => usize::from(blank(pieces, contexts, i)),
    }
}

fn blank(pieces: &[Piece<'_>], contexts: &[Context], i: usize) -> bool {
    let (a, b) = (&pieces[i - 1], &pieces[i]);
    let (role_a, role_b) = (contexts[i - 1].role, contexts[i].role);
    if role_a == Role::Prefix {
        return false;
    }
    match (a.tok, b.tok) {
        (_, Tok::Or) if role_b == Role::Bar => false,
        (Tok::LBrace, Tok::RBrace) => false,
        (Tok::LBrace, _) | (_, Tok::LBrace | Tok::RBrace) => true,
        (Tok::LParen | Tok::LBracket | Tok::StaticOpen | Tok::TilerOpen, _) => false,
        (_, Tok::RParen | Tok::RBracket | Tok::AngleClose | Tok::Comma | Tok::Semi) => false,
        (Tok::Dot | Tok::PathSep | Tok::Basis | Tok::Hash | Tok::DotDot, _) => false,
        // Joined, they would be one number.
        (Tok::Int, Tok::Dot) => b.gap > 0,
        (_, Tok::Dot | Tok::PathSep | Tok::Basis | Tok::DotDot | Tok::StaticOpen) => false,
        // Layouts are written `4:1` and `(M, N) : (N, 1)`: as the author has it.
        (_, Tok::Colon) => role_b != Role::Annotation && layout_apart(pieces, i),
        (Tok::Colon, _) => role_a == Role::Annotation || layout_apart(pieces, i - 1),
        (Tok::Pipeline, Tok::LParen) => false,
        (_, Tok::LParen | Tok::LBracket) => role_a != Role::End,
        _ => true,
    }
}

/// Whether there is white space on either side of the `:` in the source.
fn layout_apart(pieces: &[Piece<'_>], colon: usize) -> bool {
    pieces[colon].gap > 0 || pieces.get(colon + 1).is_some_and(|p| p.gap > 0)
}
