//! Which `<` and `>` are brackets.

use ptoc_diagnostics::{Diagnostic, Edit, codes};

use super::{BracketMatcher, LOOK_AHEAD, Open, starts_statement};
use crate::lexer::Token;
use crate::terminal::{Lexeme, Terminal};
use crate::token::Tok;

impl BracketMatcher<'_> {
    /// `>` and what begins with it: closes the angle on top, if one is.
    pub(super) fn greater(&mut self, mut t: Token) {
        let rest = |tok| match tok {
            Tok::Shr => Some(Tok::Gt),
            Tok::Ge => Some(Tok::Assign),
            Tok::ShrAssign => Some(Tok::Ge),
            _ => None,
        };
        while self.stack.last().is_some_and(Open::is_angle) {
            self.push(Token { tok: Tok::Gt, start: t.start, end: t.start + 1 }, Tok::AngleClose);
            self.pop();
            let Some(tok) = rest(t.tok) else { return };
            t = Token { tok, start: t.start + 1, end: t.end };
            if tok == Tok::Assign {
                break;
            }
        }
        self.push(t, t.tok);
    }

    /// Token `t` cannot stand in static arguments: the angles on top were none, or are unclosed.
    pub(super) fn fail_angles(&mut self, t: Token) {
        let mut reported = false;
        while let Some(open) = self.stack.last().copied().filter(Open::is_angle) {
            let at = self.out.lexemes[open.at];
            let (lt, before) = (self.span(at.start, at.end), self.span(self.last_end(), self.last_end()));
            let name = open.at.checked_sub(1).map(|i| self.out.lexemes[i]);
            let context = open.at.checked_sub(2).and_then(|i| self.out.lexemes[i].tok());
            let name = name.and_then(|n| self.text.get(n.start as usize..n.end as usize)).unwrap_or_default();
            let named = self.out.lexemes[open.at..].iter().take(LOOK_AHEAD).any(|l| l.is(Tok::Assign));
            let ty = named || context.is_some_and(wants_type);
            self.pop();
            if open.tok == Tok::TilerOpen {
                // The grammar says what is missing around this comparison.
                self.out.lexemes[open.at].term = Terminal::Tok(Tok::Lt);
                continue;
            }
            let mut d = Diagnostic::error(
                codes::UNCLOSED_STATIC_ARGUMENTS,
                lt,
                format!("`{name}<` opens static arguments, which no `>` closes"),
            );
            if ty {
                let end = self.last_end();
                self.out.lexemes.push(Lexeme { term: Terminal::Tok(Tok::AngleClose), start: end, end, touched: true });
                d = d.with_secondary(self.span(t.start, t.end), "this cannot be in static arguments");
                d = d.with_fix("close them", before, ">");
            } else {
                self.out.lexemes[open.at].term = Terminal::Tok(Tok::Lt);
                self.out.lexemes[open.at].touched = true;
                let next = self.out.lexemes.get(open.at + 1).map_or(t.start, |l| l.start);
                let text = if next == lt.end { " < " } else { " <" };
                d = d
                    .with_note("`<` right after a name opens static arguments; a comparison has a space before it")
                    .with_fix("for a comparison, insert a space", lt, text);
            }
            if !reported && !self.too_deep {
                self.report_bracket(d);
            }
            reported = true;
        }
    }

    /// `tile Vec <f32, 8, 8>`: where a type or a new name is expected, nothing is compared.
    pub(super) fn spaced_static(&mut self, i: usize) {
        let (name, lt) = (self.tokens[i - 1], self.tokens[i]);
        let gap = self.span(name.end, lt.start);
        let text = self.text.get(name.start as usize..name.end as usize).unwrap_or_default();
        let message = format!("a space stands between `{text}` and its static arguments");
        let d = Diagnostic::error(codes::SPACED_STATIC_ARGUMENTS, self.span(lt.start, lt.end), message);
        let d = d.with_note("`<` right after a name opens static arguments; a comparison has a space before it");
        // A comment in between is the author's: the bracket goes to the name, and the comment stays.
        let comment = self.text.get(gap.range()).is_some_and(|t| !t.trim().is_empty());
        self.report(match comment {
            false => d.with_fix("remove the space", gap, ""),
            true => d.with_edits(
                "put `<` behind the name",
                vec![
                    Edit { span: self.span(name.end, name.end), text: "<".into() },
                    Edit { span: self.span(lt.start, lt.end), text: String::new() },
                ],
            ),
        });
    }
}

/// Tokens that cannot stand in static arguments or a tiler outside of inner brackets.
pub(super) fn ends_angle(tok: Tok) -> bool {
    starts_statement(tok)
        || matches!(
            tok,
            Tok::Semi
                | Tok::LBrace
                | Tok::RBrace
                | Tok::RParen
                | Tok::RBracket
                | Tok::AndAnd
                | Tok::OrOr
                | Tok::Eq
                | Tok::Ne
                | Tok::Le
                | Tok::Arrow
                | Tok::FatArrow
                | Tok::DotDot
                | Tok::AddAssign
                | Tok::SubAssign
                | Tok::MulAssign
                | Tok::DivAssign
                | Tok::RemAssign
                | Tok::OrAssign
                | Tok::XorAssign
                | Tok::AndAssign
                | Tok::ShlAssign
                | Tok::If
                | Tok::Else
                | Tok::Use
                | Tok::Kernel
                | Tok::Program
                | Tok::Atom
                | Tok::Where
                | Tok::Ensures
        )
}

/// After these a name is a type or a new item: `<` can only open its static arguments, even after a space.
pub(super) fn wants_static(tok: Tok) -> bool {
    matches!(
        tok,
        Tok::Tile | Tok::Tensor | Tok::Kernel | Tok::Program | Tok::Fn | Tok::In | Tok::Out | Tok::InOut | Tok::Arrow
    )
}

/// After these a name is a type or an item, and `<` after it can only open static arguments.
fn wants_type(tok: Tok) -> bool {
    matches!(
        tok,
        Tok::Tile
            | Tok::Tensor
            | Tok::Kernel
            | Tok::Program
            | Tok::Fn
            | Tok::Colon
            | Tok::In
            | Tok::Out
            | Tok::InOut
            | Tok::Arrow
    )
}
