//! Mistakes in `role name { .. }`. Where no name and no block follows, `role` is a name, and what is wrong is
//! another's.

use ptoc_diagnostics::codes;

use super::expr::{edits, keyword_as_name};
use super::{Situation, View};
use crate::terminal::Terminal;
use crate::token::Tok;

pub(super) fn find(v: &View<'_, '_>) -> Option<Situation> {
    let block = |i: usize| v.get(i).is_some_and(|l| matches!(l.term, Terminal::Block(_)));
    let has_block = (1..v.lexemes.len()).any(block);
    let here = v.here_tok();
    match v.at {
        1 if block(1) => {
            let d = v.error(codes::MISSING_NAME, v.after_prev(), "a name is missing after `role`");
            let d = d.with_help("a role has a name: `role producer { .. }`");
            Situation::replace(d, 1..1, vec![v.made(Tok::Name, v.after_prev())])
        }
        1 if here == Some(Tok::Str) && has_block => {
            let name = v.text(1).trim_matches('"').to_owned();
            let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            let d = v.error(codes::FOREIGN_SPELLING, v.here(), "a role's name is no string");
            let d = if plain { d.with_fix("remove the quotes", v.here(), name) } else { d };
            Situation::replace(d, 1..2, vec![v.made(Tok::Name, v.here())])
        }
        1 if has_block && here.is_some_and(Tok::is_keyword) => keyword_as_name(v, 1),
        2 if named(v) => after_name(v, has_block),
        // `role(producer) { .. }`: read as a call.
        at if block(at) && v.tok(1) == Some(Tok::LParen) && v.tok(at - 1) == Some(Tok::RParen) => {
            let d = v.error(codes::FOREIGN_SPELLING, v.between(1, at - 1), "a role's name stands without parentheses");
            let mut d = d;
            d.fixes.push(edits("remove them", vec![(v.span(1), " "), (v.span(at - 1), "")]));
            Situation::replace(d, 1..at, vec![v.made(Tok::Name, v.span(1))])
        }
        _ => None,
    }
}

/// Whether the second lexeme is a name.
fn named(v: &View<'_, '_>) -> bool {
    v.tok(1).is_some_and(|t| t == Tok::Name || t.is_soft_keyword())
}

/// What stands after `role name` is no block.
fn after_name(v: &View<'_, '_>, has_block: bool) -> Option<Situation> {
    let name = v.text(1).to_owned();
    match v.here_tok() {
        Some(Tok::LParen) if has_block => {
            let close = (2..v.lexemes.len()).find(|i| v.tok(*i) == Some(Tok::RParen))?;
            let span = v.between(2, close);
            let d = v.error(codes::UNEXPECTED_TOKEN, span, "a role has no parameters");
            let d = d.with_note("it sees the names around it");
            Situation::replace(d.with_fix("remove them", span, ""), 2..close + 1, Vec::new())
        }
        Some(Tok::Comma) if has_block => {
            let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), "a role has one name");
            Situation::hopeless(d.with_help("statements of two roles stand in two blocks"))
        }
        None | Some(Tok::Semi) => {
            let d = v.error(codes::MISSING_BODY, v.after_prev(), format!("the role `{name}` has no body"));
            Situation::hopeless(d.with_help("write `{ .. }`; what is outside of roles is issued by the kernel itself"))
        }
        _ => {
            let message = format!("the body of the role `{name}` must stand in `{{` and `}}`");
            let mut d = v.error(codes::MISSING_BRACE, v.after_prev(), message);
            let last = v.lexemes.len() - 1;
            if v.tok(last) == Some(Tok::Semi) {
                let fix = edits("put it in braces", vec![(v.after_prev(), " {"), (v.span(last).after(), " }")]);
                d.fixes.push(fix);
            }
            Situation::hopeless(d)
        }
    }
}
