//! Mistakes in parameters, static parameters, grid variables, and between list elements.

use ptoc_diagnostics::codes;

use super::expr::{edits, keyword_as_name};
use super::{Situation, View, foreign};
use crate::terminal::Terminal;
use crate::token::Tok;

fn is_dir(tok: Option<Tok>) -> bool {
    matches!(tok, Some(Tok::In | Tok::Out | Tok::InOut))
}

/// `name: dir type`
pub(super) fn param(v: &View<'_, '_>) -> Option<Situation> {
    let (here, at) = (v.here_tok(), v.at);
    if at == 0 {
        // `in a: f32`
        if is_dir(here) && v.tok(1) == Some(Tok::Name) && v.tok(2) == Some(Tok::Colon) {
            let word = v.text(0).to_owned();
            let gap = v.builder.span(v.span(0).start, v.span(1).start);
            let message = format!("`{word}` stands before the type: `{}: {word} ..`", v.text(1));
            let mut d = v.error(codes::UNEXPECTED_TOKEN, v.here(), message);
            d.fixes.push(edits("move it", vec![(gap, ""), (v.span(2).after(), &format!(" {word}"))]));
            return Situation::replace(d, 0..3, vec![v.lexemes[1], v.lexemes[2], v.lexemes[0]]);
        }
        if here.is_some_and(Tok::is_keyword) {
            return keyword_as_name(v, 0);
        }
        let message = format!("a parameter begins with its name, not with {}", v.show(v.get(0)?));
        return Situation::hopeless(v.error(codes::MISSING_NAME, v.here(), message));
    }
    if at == 1 {
        let name = v.text(0).to_owned();
        if v.at_end() || here == Some(Tok::Assign) {
            let d = v.error(codes::MISSING_TYPE, v.span(0), format!("the parameter `{name}` has no type"));
            let d = d.with_help(format!("write `{name}: f32`, or `{name}: in f32[M, N]` for a tensor"));
            return Situation::hopeless(d);
        }
        if here == Some(Tok::Star) {
            let ty = foreign::dtype(&name).unwrap_or("f32").to_owned();
            let arg = v.text(2).to_owned();
            let d =
                v.error(codes::FOREIGN_SPELLING, v.here(), "there are no pointers: an array is a tensor with a shape");
            return Situation::hopeless(d.with_help(format!("write `{arg}: in {ty}[N]`, or `out`, or `inout`")));
        }
        let second_is_name = here == Some(Tok::Name);
        if name == "mut" && second_is_name {
            return v.respell(0..1, "parameters have no `mut`; a direction `inout` does it".to_owned(), "", Tok::Bad);
        }
        // `f32 a`
        let known = foreign::dtype(&name).is_some();
        if second_is_name && (known || v.lexemes.len() == 2) && v.lexemes.len() < 5 && v.tok(2) != Some(Tok::Colon) {
            let (ty, arg) = (foreign::dtype(&name).unwrap_or(&name).to_owned(), v.text(1).to_owned());
            let span = v.between(0, 1);
            let d = v.error(codes::FOREIGN_SPELLING, span, "the type follows the name");
            return Situation::hopeless(d.with_fix(format!("write `{arg}: {ty}`"), span, format!("{arg}: {ty}")));
        }
        if v.starts_operand(1) || is_dir(here) {
            let message = format!("`:` is missing between `{name}` and its type");
            let d = v.error(codes::MISSING_TYPE, v.after_prev(), message).with_fix("insert `:`", v.after_prev(), ":");
            return Situation::replace(d, 1..1, vec![v.made(Tok::Colon, v.after_prev())]);
        }
    }
    // `a: f32 in`
    if is_dir(here) && at >= 3 && v.tok(1) == Some(Tok::Colon) {
        let word = v.text(at).to_owned();
        if is_dir(v.tok(2)) {
            let message = format!("a parameter has one direction, and this is `{}` already", v.text(2));
            let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), message).with_secondary(v.span(2), "the direction");
            return Situation::replace(d.with_fix("remove it", v.here(), ""), at..at + 1, Vec::new());
        }
        let gap = v.after_prev().to(v.here());
        let mut d = v.error(codes::UNEXPECTED_TOKEN, v.here(), format!("`{word}` stands before the type"));
        d.fixes.push(edits("move it", vec![(v.span(1).after(), &format!(" {word}")), (gap, "")]));
        return Situation::replace(d, at..at + 1, Vec::new());
    }
    if v.prev_tok() == Some(Tok::Colon) && here == Some(Tok::And) {
        return v.respell(
            at..at + 1,
            "there are no references; a direction says what is written".to_owned(),
            "",
            Tok::Bad,
        );
    }
    if let Some(Tok::Tile | Tok::Tensor) = here
        && (v.prev_tok() == Some(Tok::Colon) || is_dir(v.prev_tok()))
    {
        let message = format!("`{}` makes storage; the type of a parameter is written without it", v.text(at));
        let next = v.get(at + 1).map_or(v.here(), |l| v.span_of(l));
        let gap = v.builder.span(v.here().start, next.start.max(v.here().end));
        let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), message).with_fix("remove it", gap, "");
        return Situation::replace(d, at..at + 1, Vec::new());
    }
    // `act: fn(f32) -> f32`
    if v.prev_tok() == Some(Tok::Fn) && at >= 2 {
        let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), "the type of a function is `fn` alone");
        return Situation::hopeless(d.with_help("what it takes and gives is checked where it is called"));
    }
    if v.prev_tok() == Some(Tok::Over) || v.prev_tok() == Some(Tok::At) {
        let word = v.text(at - 1);
        let what = if word == "over" { "a unit's name" } else { "a layout" };
        let d = v.error(codes::MISSING_OPERAND, v.after_prev(), format!("{what} is missing after `{word}`"));
        return Situation::hopeless(d);
    }
    None
}

/// `const N = 1`, `type T`, `fn f`
pub(super) fn static_param(v: &View<'_, '_>) -> Option<Situation> {
    let (here, at) = (v.here_tok(), v.at);
    if at == 0 {
        let message = "a static parameter begins with `const`, `type`, or `fn`";
        let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), message);
        if here == Some(Tok::Name) && (v.lexemes.len() == 1 || matches!(v.tok(1), Some(Tok::Assign | Tok::Colon))) {
            let start = v.builder.span(v.here().start, v.here().start);
            let d = d.with_fix("insert `const`", start, "const ").with_fix("insert `type`", start, "type ");
            return Situation::replace(d, 0..0, vec![v.made(Tok::Const, start)]);
        }
        return Situation::hopeless(d);
    }
    if at == 1 {
        if here.is_some_and(Tok::is_keyword) {
            return keyword_as_name(v, 1);
        }
        let message = format!("a name is missing after `{}`", v.text(0));
        return Situation::hopeless(v.error(codes::MISSING_NAME, v.after_prev(), message));
    }
    if v.prev_tok() == Some(Tok::Tune) {
        let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), "the candidates of `tune` stand in `[` and `]`");
        return Situation::hopeless(d.with_help("write `tune [64, 128]`"));
    }
    if v.first() == Some(Tok::Fn) && here == Some(Tok::LParen) {
        let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), "a function parameter has no parameter list here");
        return Situation::hopeless(d.with_help("write `fn act`, or `fn act = gelu` with a default"));
    }
    None
}

/// `i in tiles(M, 16)`
pub(super) fn grid_var(v: &View<'_, '_>) -> Option<Situation> {
    let here = v.here_tok();
    match v.at {
        0 if here.is_some_and(Tok::is_keyword) => keyword_as_name(v, 0),
        0 => {
            let message = "a grid variable is `NAME in RANGE`";
            Situation::hopeless(v.error(codes::MISSING_NAME, v.here(), message))
        }
        1 => missing_in(v, 0),
        _ => None,
    }
}

/// `in` does not follow the loop variable at `name`.
pub(super) fn missing_in(v: &View<'_, '_>, name: usize) -> Option<Situation> {
    let at = name + 1;
    let variable = v.text(name).to_owned();
    let message = format!("`in` is missing after `{variable}`");
    match v.tok(at) {
        Some(Tok::Assign | Tok::Colon | Tok::ColonAssign) => {
            let d = v.error(codes::MISSING_IN, v.span(at), format!("`in` stands between `{variable}` and its range"));
            let glue = if v.glued(at) { " in" } else { "in" };
            let glue = if v.glued(at + 1) { format!("{glue} ") } else { glue.to_owned() };
            Situation::replace(
                d.with_fix("write `in`", v.span(at), glue),
                at..at + 1,
                vec![v.made(Tok::In, v.span(at))],
            )
        }
        Some(Tok::Name) if matches!(v.text(at), "of" | "from") && v.starts_operand(at + 1) => {
            let d = v.error(codes::MISSING_IN, v.span(at), format!("`in` stands between `{variable}` and its range"));
            Situation::replace(
                d.with_fix("write `in`", v.span(at), "in"),
                at..at + 1,
                vec![v.made(Tok::In, v.span(at))],
            )
        }
        Some(Tok::Comma) => {
            let d = v.error(codes::UNEXPECTED_TOKEN, v.span(at), "a loop has one variable");
            Situation::hopeless(d.with_help("loop over the range, and take the element by its index"))
        }
        _ => {
            let end = v.span(name).after();
            let d = v.error(codes::MISSING_IN, end, message);
            match v.starts_operand(at) {
                true => {
                    let made = v.made(Tok::In, end);
                    Situation::replace(d.with_fix("insert `in`", end, " in"), at..at, vec![made])
                }
                false => Situation::hopeless(d.with_help(format!("write `{variable} in 0..N`"))),
            }
        }
    }
}

/// Two values in a row inside brackets.
pub(super) fn missing_comma(v: &View<'_, '_>) -> Option<Situation> {
    let listed = matches!(
        v.start,
        Terminal::StartArg
            | Terminal::StartStaticArg
            | Terminal::StartParam
            | Terminal::StartStaticParam
            | Terminal::StartGridVar
    );
    let begins = v.starts_operand(v.at) || matches!(v.here_tok(), Some(Tok::Const | Tok::Type | Tok::Fn));
    if !listed || !begins || !v.ends_operand(v.at.checked_sub(1)?) {
        return None;
    }
    let message = format!("`,` is missing between {} and {}", v.show(v.prev()?), v.show(v.get(v.at)?));
    let d = v.error(codes::MISSING_COMMA, v.after_prev(), message);
    // All that are missing in a row of names and numbers.
    let single = |k: usize| v.get(k).is_some_and(|l| matches!(l.tok(), Some(Tok::Name | Tok::Int | Tok::Float)));
    let arguments = matches!(v.start, Terminal::StartArg | Terminal::StartStaticArg);
    let more = (v.at + 1..v.lexemes.len()).filter(|k| arguments && single(*k - 1) && single(*k));
    let mut d = d;
    let gaps = std::iter::once(v.after_prev()).chain(more.map(|k| v.span(k - 1).after()));
    d.fixes.push(edits("insert `,`", gaps.map(|gap| (gap, ",")).collect()));
    Situation::hopeless(d)
}
