//! Mistakes in expressions, wherever they stand.

use ptoc_diagnostics::{Diagnostic, Edit, Fix, Span, codes};

use super::{Situation, View};
use crate::terminal::Terminal;
use crate::token::Tok;

const COMPARISONS: [Tok; 6] = [Tok::Eq, Tok::Ne, Tok::Lt, Tok::Le, Tok::Gt, Tok::Ge];

pub(super) fn find(v: &View<'_, '_>) -> Option<Situation> {
    spaced_static(v)
        .or_else(|| direction(v))
        .or_else(|| unnamed_function(v))
        .or_else(|| lambda(v))
        .or_else(|| chained(v))
        .or_else(|| half_a_record(v))
        .or_else(|| assignment(v))
        .or_else(|| colon(v))
        .or_else(|| semicolon_in_brackets(v))
        .or_else(|| missing_field(v))
        .or_else(|| keyword(v))
        .or_else(|| closure(v))
        .or_else(|| missing_operand(v))
}

/// `ring <MTE2, V>(..)`: static arguments are glued to their name.
fn spaced_static(v: &View<'_, '_>) -> Option<Situation> {
    let here = v.here_tok();
    // A comparison whose `>` is directly called, or that a comma cuts.
    let open = match here? {
        Tok::Gt if v.tok(v.at + 1) == Some(Tok::LParen) => v.find_back(v.at, &[Tok::Lt])?,
        Tok::Comma => {
            let open = v.find_back(v.at, &[Tok::Lt])?;
            v.lexemes[v.at..].iter().any(|l| l.is(Tok::Gt)).then_some(open)?
        }
        Tok::Lt if matches!(v.tok(v.at.checked_sub(2)?), Some(Tok::Tile | Tok::Tensor)) => v.at,
        _ => return None,
    };
    let name = open.checked_sub(1)?;
    if v.tok(name) != Some(Tok::Name) {
        return None;
    }
    let gap = v.builder.span(v.span(name).end, v.span(open).start);
    let text = v.text(name);
    let d = v.error(
        codes::SPACED_STATIC_ARGUMENTS,
        v.span(open),
        format!("a space stands between `{text}` and its static arguments: this `<` compares"),
    );
    let d = d.with_fix("remove the space", gap, "");
    let close = (open..v.lexemes.len()).find(|i| v.tok(*i) == Some(Tok::Gt))?;
    let mut with: Vec<_> = v.lexemes[open..=close].to_vec();
    let last = with.len() - 1;
    with[0].term = Terminal::Tok(Tok::StaticOpen);
    with[last].term = Terminal::Tok(Tok::AngleClose);
    Situation::replace(d, open..close + 1, with)
}

/// `(src: in f32[M, N], by: f32)`
fn direction(v: &View<'_, '_>) -> Option<Situation> {
    let directed = matches!(v.here_tok()?, Tok::In | Tok::Out | Tok::InOut) && v.prev_tok() == Some(Tok::Colon);
    if v.start != Terminal::StartArg || !directed {
        return None;
    }
    let word = v.text(v.at);
    let gap = v.builder.span(v.here().start, v.span(v.at + 1).start.max(v.here().end));
    let message = format!("the type of a field has no `{word}`: a record never changes");
    let d = v.error(codes::FOREIGN_SPELLING, v.here(), message).with_fix("remove it", gap, "");
    Situation::replace(d, v.at..v.at + 1, Vec::new())
}

/// `a < b < c`
fn chained(v: &View<'_, '_>) -> Option<Situation> {
    let here = v.here_tok()?;
    if !COMPARISONS.contains(&here) || !v.ends_operand(v.at.checked_sub(1)?) {
        return None;
    }
    let mut first = v.find_back(v.at, &COMPARISONS)?;
    if v.find_back(v.at, &[Tok::AndAnd, Tok::OrOr]).is_some_and(|i| i > first) {
        return None;
    }
    // Later comparisons of the same chain, after a repair: the chain was reported.
    while let Some(earlier) = v.find_back(first, &COMPARISONS) {
        if v.find_back(first, &[Tok::AndAnd, Tok::OrOr]).is_some_and(|i| i > earlier) {
            break;
        }
        first = earlier;
    }
    let joints: Vec<usize> = (first + 1..v.at).filter(|i| joined(v.tok(*i)).is_some()).collect();
    if let &[joint, ..] = joints.as_slice() {
        return bits_between(v, first, joint, joints.len() == 1);
    }
    let d = v
        .error(codes::CHAINED_COMPARISON, v.here(), "comparisons do not chain")
        .with_secondary(v.span(first), "this comparison is already complete");
    let middle = &v.lexemes[first + 1..v.at];
    if middle.is_empty() || middle.len() > 16 {
        return Situation::hopeless(d);
    }
    // `a < b == c` compares a result, most likely, and `a < b > c` is no range.
    let truth = v.lexemes[v.at..].get(1).is_some_and(|l| l.is(Tok::True) || l.is(Tok::False));
    if truth || !v.tok(first).is_some_and(|t| chains(t, here)) {
        let d = d.with_help("to combine two comparisons write `&&` between them");
        return Situation::hopeless(d.with_help("to compare the result of one, put it into brackets: `(a < b) == c`"));
    }
    let text = v.builder.text(middle[0].start, middle[middle.len() - 1].end);
    let d = d.with_fix("compare twice", v.after_prev(), format!(" && {text}"));
    let mut with = vec![v.made(Tok::AndAnd, v.after_prev())];
    with.push(v.made(Tok::BadNumber, v.after_prev()));
    Situation::replace(d, v.at..v.at, with)
}

/// Whether `a FIRST b SECOND c` is read as a chain in mathematics.
fn chains(first: Tok, second: Tok) -> bool {
    let rising = |t| matches!(t, Tok::Lt | Tok::Le);
    let falling = |t| matches!(t, Tok::Gt | Tok::Ge);
    rising(first) && rising(second) || falling(first) && falling(second) || (first, second) == (Tok::Eq, Tok::Eq)
}

/// The operator of conditions that `&` and `|` between comparisons stand for.
fn joined(bits: Option<Tok>) -> Option<(Tok, &'static str, &'static str)> {
    match bits? {
        Tok::And => Some((Tok::AndAnd, "&", "&&")),
        Tok::Or => Some((Tok::OrOr, "|", "||")),
        _ => None,
    }
}

/// `a >= 0 & a < n`: operators of bits bind tighter than comparisons, those of conditions do not.
fn bits_between(v: &View<'_, '_>, first: usize, joint: usize, only: bool) -> Option<Situation> {
    let (tok, bits, condition) = joined(v.tok(joint))?;
    let operand = v.builder.text(v.span(first + 1).start, v.after_prev().end);
    let message = format!("`{bits}` binds tighter than comparisons, which do not chain");
    let d = v
        .error(codes::CHAINED_COMPARISON, v.span(joint), message)
        .with_label(format!("joins `{operand}`, not the two comparisons"));
    if !only {
        // Which of them joins the comparisons is not to be seen.
        return Situation::hopeless(
            d.with_help("write `&&` or `||` between comparisons, and brackets around what is joined bit by bit"),
        );
    }
    let d = d.with_fix(format!("conditions are joined by `{condition}`"), v.span(joint), condition);
    Situation::replace(d, joint..joint + 1, vec![v.made(tok, v.span(joint))])
}

/// `(x = a, b)`: either all fields have names, or none has.
fn half_a_record(v: &View<'_, '_>) -> Option<Situation> {
    let entry = |l: &crate::terminal::Lexeme| matches!(l.term, Terminal::Arg(_) | Terminal::Expr(_));
    let inside = |l: &crate::terminal::Lexeme| entry(l) || l.is(Tok::Comma) || l.tok().is_some_and(Tok::ends_operand);
    let open = v.lexemes[..v.at.min(v.lexemes.len())].iter().rposition(|l| !inside(l) || l.is(Tok::RParen))?;
    let named = |l: &crate::terminal::Lexeme| matches!(l.term, Terminal::Arg(_));
    let before = &v.lexemes[open + 1..v.at];
    let here = v.get(v.at)?;
    let mixed = before.len() >= 2 && before.iter().filter(|l| !l.is(Tok::Comma)).any(|l| named(l) != named(here));
    if v.tok(open) != Some(Tok::LParen) || !mixed || !(entry(here) || v.starts_operand(v.at)) {
        return None;
    }
    let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), "the fields of a record all have names");
    let d = d.with_secondary(v.span(open + 1), if named(here) { "this has none" } else { "this has one" });
    Situation::hopeless(d.with_help("a record is `(x = a, y = b)`, a tuple `(a, b)`"))
}

/// `=` where a value is compared.
fn assignment(v: &View<'_, '_>) -> Option<Situation> {
    let in_condition = matches!(v.first(), Some(Tok::If | Tok::While | Tok::Else))
        || v.find_back(v.at, &[Tok::If, Tok::Where, Tok::Ensures]).is_some();
    let d = |span| {
        let d = v.error(codes::ASSIGNMENT_IN_CONDITION, span, "`=` assigns; values are compared by `==`");
        d.with_fix("write `==`", span, "==")
    };
    // In round brackets: the named argument `(a = b)`, which no call takes. It may begin a record of one field, so that
    // the parse stops one lexeme later.
    let alone = v.here_tok() == Some(Tok::RParen) && v.at >= 2 && v.tok(v.at - 2) == Some(Tok::LParen);
    let named = if alone { v.at - 1 } else { v.at };
    if let Some(Terminal::Arg(i)) = v.get(named).map(|l| l.term) {
        let name = v.builder.parts.args.get(i as usize)?.as_ref()?.name.as_ref()?.span;
        if matches!(v.prev_tok(), Some(Tok::TilerOpen)) {
            let message = "static arguments follow a name, and none stands before this `<`";
            return Situation::abandon(v.error(codes::MISSING_NAME, v.span(v.at - 1), message));
        }
        let value = v.span(named);
        if alone && !in_condition {
            let d = v.error(codes::UNEXPECTED_TOKEN, value, "a record of one field ends with a comma");
            let d = d.with_fix("write it", Span { start: value.end, ..value }, ",");
            return Situation::replace(d, named..named + 1, vec![v.made(Tok::BadNumber, value)]);
        }
        let after = v.builder.text(name.end, value.end);
        let at = name.end + after.find('=')? as u32;
        let d = d(v.builder.span(at, at + 1));
        return Situation::replace(d, named..named + 1, vec![v.made(Tok::BadNumber, value)]);
    }
    if v.here_tok() != Some(Tok::Assign) || !v.ends_operand(v.at.checked_sub(1)?) {
        return None;
    }
    let with = vec![v.made(Tok::Eq, v.here())];
    let nested = v.find_back(v.at, &[Tok::Assign]).is_some();
    match v.start {
        _ if in_condition => Situation::replace(d(v.here()), v.at..v.at + 1, with),
        Terminal::StartArg | Terminal::StartExpr => Situation::replace(d(v.here()), v.at..v.at + 1, with),
        Terminal::StartStmt if nested => {
            let message = "an assignment has no value that could be assigned";
            let d = v.error(codes::ASSIGNMENT_IN_CONDITION, v.here(), message);
            let d = d.with_fix("to compare, write `==`", v.here(), "==");
            Situation::replace(d, v.at..v.at + 1, with)
        }
        _ => None,
    }
}

/// A second `:`, or one after a comparison: slices and conditional expressions of other languages.
fn colon(v: &View<'_, '_>) -> Option<Situation> {
    if v.here_tok() == Some(Tok::Colon) && v.find_back(v.at, &[Tok::Colon]).is_some() {
        let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), "a layout has one `:`, between shape and stride");
        return Situation::hopeless(d.with_help("for a range write `lo..hi`; for a whole mode write `_`"));
    }
    // `x[:, 0]`, `x[0:]`
    let slice = v.start == Terminal::StartArg
        && v.wants.operand
        && (v.here_tok() == Some(Tok::Colon) || (v.at_end() && v.prev_tok() == Some(Tok::Colon)));
    if slice {
        let whole = v.lexemes.len() == 1;
        let d = v.error(codes::FOREIGN_SPELLING, v.span(v.at.min(v.lexemes.len() - 1)), "`:` does not slice");
        let d = match whole {
            true => d.with_fix("the whole mode is written `_`", v.here(), "_"),
            false => d.with_help("a part of a mode is written `lo..hi`, the whole mode `_`"),
        };
        return Situation::hopeless(d);
    }
    None
}

fn semicolon_in_brackets(v: &View<'_, '_>) -> Option<Situation> {
    let inside = matches!(
        v.start,
        Terminal::StartArg
            | Terminal::StartStaticArg
            | Terminal::StartParam
            | Terminal::StartStaticParam
            | Terminal::StartGridVar
    );
    if !inside || v.here_tok() != Some(Tok::Semi) {
        return None;
    }
    let d = v.error(codes::MISSING_COMMA, v.here(), "list elements are separated by `,`");
    Situation::hopeless(d.with_fix("write `,`", v.here(), ","))
}

fn missing_field(v: &View<'_, '_>) -> Option<Situation> {
    if v.prev_tok() != Some(Tok::Dot) || v.wants.operand {
        return None;
    }
    let before = v.at.checked_sub(2);
    let d = match before {
        Some(b) if v.ends_operand(b) => {
            v.error(codes::MISSING_NAME, v.after_prev(), "a field's name is missing after `.`")
        }
        _ => return None,
    };
    Situation::hopeless(d)
}

/// `|v: f32| -> f32 { .. }`
pub(super) fn result_of_closure(v: &View<'_, '_>) -> Option<Situation> {
    let bars = v.here_tok() == Some(Tok::Arrow) && v.prev_tok() == Some(Tok::Or);
    if !bars || v.find_back(v.at - 1, &[Tok::Or]).is_none() {
        return None;
    }
    let end = before_block(v, v.at)?;
    let gap = v.builder.span(v.here().start, v.span(end).start);
    let d = v.error(codes::FOREIGN_SPELLING, v.between(v.at, end - 1), "the type of a closure's result is not written");
    Situation::replace(d.with_fix("remove it", gap, ""), v.at..end, Vec::new())
}

/// The place of the next block, with something in front of it.
fn before_block(v: &View<'_, '_>, from: usize) -> Option<usize> {
    let block = |i: &usize| v.get(*i).is_some_and(|l| matches!(l.term, Terminal::Block(_)));
    (from..v.lexemes.len()).find(block).filter(|end| *end > from)
}

/// `fn(v) { .. }`, `fn(v: f32) -> f32 { .. }`
fn unnamed_function(v: &View<'_, '_>) -> Option<Situation> {
    let opens = v.wants.operand && v.here_tok() == Some(Tok::Fn) && v.tok(v.at + 1) == Some(Tok::LParen);
    let close = (v.at..v.lexemes.len()).find(|i| opens && v.tok(*i) == Some(Tok::RParen))?;
    let end = before_block(v, close)?;
    let params = &v.lexemes[v.at + 2..close];
    let [open, shut] = [v.between(v.at, v.at + 1), v.builder.span(v.span(close).start, v.span(end).start)];
    let message = "a function without a name is a closure: its parameters stand between bars";
    let mut d = v.error(codes::FOREIGN_SPELLING, v.between(v.at, end - 1), message);
    if params.is_empty() {
        return Situation::abandon(d.with_help("what takes nothing is a value: `let half = 0.5 * scale;`"));
    }
    d.fixes.push(edits("write a closure", vec![(open, "|"), (shut, "| ")]));
    if !params.iter().all(|l| l.is(Tok::Name) || l.is(Tok::Comma)) {
        return Situation::abandon(d);
    }
    let mut with = vec![v.made(Tok::Or, open)];
    with.extend_from_slice(params);
    with.push(v.made(Tok::Or, shut));
    Situation::replace(d, v.at..end, with)
}

/// `lambda v: v * s`, of which `v` cannot stand where it does.
fn lambda(v: &View<'_, '_>) -> Option<Situation> {
    let word = v.at.checked_sub(1).filter(|w| v.text(*w) == "lambda" && v.here_tok() == Some(Tok::Name))?;
    let colon = (v.at..v.lexemes.len()).find(|i| v.tok(*i) == Some(Tok::Colon))?;
    let params = &v.lexemes[v.at..colon];
    if !params.iter().all(|l| l.is(Tok::Name) || l.is(Tok::Comma)) {
        return None;
    }
    let gap = v.builder.span(v.span(word).start, v.here().start);
    let message = "a function without a name is a closure: its parameters stand between bars";
    let mut d = v.error(codes::FOREIGN_SPELLING, v.between(word, colon), message);
    d.fixes.push(edits("write a closure", vec![(gap, "|"), (v.span(colon), "|")]));
    let mut with = vec![v.made(Tok::Or, gap)];
    with.extend_from_slice(params);
    with.push(v.made(Tok::Or, v.span(colon)));
    Situation::replace(d, word..colon + 1, with)
}

/// The bars of a closure.
fn closure(v: &View<'_, '_>) -> Option<Situation> {
    // `|| 3`
    if v.here_tok() == Some(Tok::OrOr) && v.wants.operand && v.starts_operand(v.at + 1) {
        let d = v.error(codes::MISSING_NAME, v.here(), "a closure has at least one parameter");
        let d = d.with_help("what has none is a value: `let half = 0.5 * scale;`");
        return Situation::hopeless(d);
    }
    // `f<|v| v < 3>(x)`
    let compares = v.here_tok().is_some_and(|t| COMPARISONS.contains(&t));
    if compares && v.start == Terminal::StartStaticArg && v.lexemes.iter().any(|l| l.is(Tok::Or)) {
        let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), "in static arguments a comparison stands in parentheses");
        return Situation::hopeless(d.with_help("or give the closure a name first: `let f = |v| v < 3.0;`"));
    }
    // `|v v * 2`
    let bar = v.find_back(v.at, &[Tok::Or])?;
    let opens = bar.checked_sub(1).is_none_or(|b| !v.ends_operand(b));
    if !opens || bar + 1 >= v.at || v.tok(bar + 1) != Some(Tok::Name) {
        return None;
    }
    let d = v.error(codes::UNCLOSED_BRACKET, v.after_prev(), "`|` is missing behind the parameters of this closure");
    let d = d.with_secondary(v.span(bar), "they begin here");
    Situation::hopeless(d.with_fix("write `|`", v.after_prev(), "|"))
}

/// Where the `if` at `i` ends, with every `else`.
fn if_end(v: &View<'_, '_>, mut i: usize) -> Option<usize> {
    let block = |i: usize| v.get(i).is_some_and(|l| matches!(l.term, Terminal::Block(_)));
    loop {
        i = (i..v.lexemes.len()).find(|k| block(*k))? + 1;
        if v.tok(i) != Some(Tok::Else) {
            return Some(i);
        }
    }
}

/// A word of the language where a value is wanted.
fn keyword(v: &View<'_, '_>) -> Option<Situation> {
    let tok = v.here_tok()?;
    if !v.wants.operand || !tok.is_keyword() || v.starts_line(v.at) {
        return None;
    }
    let word = v.text(v.at);
    match tok {
        Tok::If => {
            let message = "`if` is a value only as a whole: put it in parentheses";
            let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), message);
            let Some(end) = if_end(v, v.at) else { return Situation::hopeless(d) };
            let (open, close) = (v.here(), v.span(end - 1));
            let [open, close] = [v.builder.span(open.start, open.start), v.builder.span(close.end, close.end)];
            let mut d = d;
            d.fixes.push(edits("add them", vec![(open, "("), (close, ")")]));
            Situation::replace(d, v.at..end, vec![v.made(Tok::BadNumber, v.between(v.at, end - 1))])
        }
        Tok::Tile | Tok::Tensor => {
            let message = format!("`{word}` makes storage; it cannot be an operand");
            let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), message);
            Situation::hopeless(d.with_help("give it a name with `let` first"))
        }
        Tok::In | Tok::Out | Tok::InOut | Tok::Type | Tok::Where | Tok::Ensures | Tok::Grid | Tok::Pipeline => {
            keyword_as_name(v, v.at)
        }
        Tok::Use | Tok::Const | Tok::Atom | Tok::Fn | Tok::Kernel | Tok::Program => keyword_as_name(v, v.at),
        _ => None,
    }
}

/// The word at `i` stands for a name.
pub(super) fn keyword_as_name(v: &View<'_, '_>, i: usize) -> Option<Situation> {
    let word = v.text(i);
    let d = v
        .error(codes::KEYWORD_AS_NAME, v.span(i), format!("`{word}` is a word of the language and cannot be a name"))
        .with_fix(format!("call it `{word}_`"), v.span(i), format!("{word}_"))
        // A function of that name is called otherwise here.
        .with_unless(v.span(i));
    Situation::replace(d, i..i + 1, vec![v.made(Tok::Name, v.span(i))])
}

/// Nothing stands where a value should.
fn missing_operand(v: &View<'_, '_>) -> Option<Situation> {
    let ends_return = v.prev_tok() == Some(Tok::Return) && v.wants.semicolon;
    if !v.wants.operand || v.starts_operand(v.at) || ends_return {
        return None;
    }
    // `.5`
    if v.here_tok() == Some(Tok::Dot) && matches!(v.tok(v.at + 1), Some(Tok::Int | Tok::Float)) && v.glued(v.at + 1) {
        let span = v.between(v.at, v.at + 1);
        let d = v.error(codes::BAD_NUMBER, span, "a digit must stand before the point");
        let d = d.with_fix("insert `0`", Span { end: span.start, ..span }, "0");
        return Situation::replace(d, v.at..v.at + 2, vec![v.made(Tok::BadNumber, span)]);
    }
    let before = v.prev();
    let what = match v.prev_tok() {
        Some(Tok::In | Tok::Out | Tok::InOut) if v.start == Terminal::StartParam => "a type",
        Some(Tok::In) => "a range or list",
        Some(Tok::Arrow | Tok::Tile | Tok::Tensor) => "a type",
        Some(Tok::Colon) if v.start == Terminal::StartParam => "a type",
        Some(Tok::If | Tok::While) => "a condition",
        _ => "a value",
    };
    let after = before.map(|l| v.show(l));
    let message = match (&after, v.get(v.at)) {
        (Some(after), _) => format!("{what} is missing after {after}"),
        (None, Some(here)) => format!("{what} is missing before {}", v.show(here)),
        (None, None) => format!("{what} is missing here"),
    };
    let span = if after.is_some() { v.after_prev() } else { v.here() };
    let d: Diagnostic = if what == "a type" {
        v.error(codes::MISSING_TYPE, span, message)
    } else {
        v.error(codes::MISSING_OPERAND, span, message)
    };
    // An operator alone: nothing is there on either side.
    if v.lexemes.len() == 1 && v.start == Terminal::StartArg {
        return Situation::hopeless(d);
    }
    // A type is no value, but the repaired part is not looked at any further than its syntax.
    Situation::replace(d, v.at..v.at, vec![v.made(Tok::BadNumber, v.after_prev())])
}

/// A fix of several edits.
pub(super) fn edits(message: impl Into<String>, edits: Vec<(Span, &str)>) -> Fix {
    let edit = |(span, text): (Span, &str)| Edit { span, text: text.to_owned() };
    Fix::certain(message, edits.into_iter().map(edit).collect())
}
