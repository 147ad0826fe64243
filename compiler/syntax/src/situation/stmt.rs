//! Mistakes in statements.

use ptoc_diagnostics::{Diagnostic, Fix, Span, codes};

use super::expr::{edits, keyword_as_name};
use super::part::missing_in;
use super::{Repair, Situation, View, foreign, role};
use crate::terminal::{Lexeme, Terminal};
use crate::token::Tok;

pub(super) fn find(v: &View<'_, '_>) -> Option<Situation> {
    if v.at == 0
        && let Some(Lexeme { term: Terminal::Block(_), start, .. }) = v.get(0)
    {
        let open = v.builder.span(*start, start + 1);
        let d = v.error(codes::UNEXPECTED_TOKEN, open, "a block cannot stand alone");
        return Situation::hopeless(d.with_note("a block is the body of `if`, `else`, `for`, or `while`"));
    }
    match v.first() {
        Some(Tok::Let | Tok::Var | Tok::Const) => definition(v),
        Some(Tok::For) => body_after_colon(v, 0).or_else(|| for_loop(v, 0)),
        Some(Tok::Pipeline) => pipeline(v),
        Some(Tok::If | Tok::While) => body_after_colon(v, 0).or_else(|| condition(v)),
        Some(Tok::Else) => else_without_if(v),
        Some(Tok::Grid) => grid(v),
        Some(Tok::Role) => role::find(v),
        Some(Tok::Hash) => attributes(v),
        Some(Tok::Fn | Tok::Kernel | Tok::Program | Tok::Atom | Tok::Use) => nested_item(v),
        Some(Tok::Name | Tok::Tile) => declaration(v).or_else(|| foreign_statement(v)),
        _ => None,
    }
}

/// `Vec<f32, 16, 64> x, y;`: storage as C++ declares it.
fn declaration(v: &View<'_, '_>) -> Option<Situation> {
    let (at, head) = (v.at, usize::from(v.first() == Some(Tok::Tile)));
    if v.text(0) == "GlobalTensor" && at > 1 && v.prev_tok() == Some(Tok::AngleClose) && v.here_tok() == Some(Tok::Name)
    {
        let d = v.error(codes::FOREIGN_SPELLING, v.between(0, at), "tensors are arguments of the kernel");
        return Situation::hopeless(
            d.with_help("write it into the kernel's list, as in `x: in f32[M, N]`; windows are `x.tile(i, j)`"),
        );
    }
    const TYPES: [&str; 11] =
        ["Vec", "Mat", "Left", "Right", "Acc", "Bias", "Scaling", "Tile", "TileLeft", "TileRight", "TileAcc"];
    let location = TYPES.contains(&v.text(head));
    let typed = location && v.tok(head + 1) == Some(Tok::StaticOpen) && v.prev_tok() == Some(Tok::AngleClose);
    if !typed || v.here_tok() != Some(Tok::Name) || v.starts_line(at) || v.find_back(at, &[Tok::Semi]).is_some() {
        return None;
    }
    let mut end = at + 1;
    while v.tok(end) == Some(Tok::Comma) && v.tok(end + 1) == Some(Tok::Name) {
        end += 2;
    }
    let ty = v.between(head, at - 1);
    let mut d = v.error(codes::FOREIGN_SPELLING, v.between(0, at - 1), "a name is defined by `let`, not by its type");
    let names = v.between(at, end - 1);
    let made = v.made(Tok::Let, v.builder.span(v.span(0).start, v.span(0).start));
    match v.tok(end) {
        // What follows `=` says what the name is.
        Some(Tok::Assign) => {
            let gap = v.between(0, at - 1);
            Situation::replace(d.with_fix("write `let`", gap, "let"), 0..at, vec![made])
        }
        Some(Tok::Semi) | None => {
            let text = |s: Span| v.builder.text(s.start, s.end);
            let (front, back) = (Span { end: ty.start, ..v.span(0) }, Span { start: ty.end, ..names });
            let start = format!("let {} = tile ", text(names));
            d.fixes.push(edits("make a tile of this type", vec![(front, &start), (back, "")]));
            let mut with = vec![made];
            with.extend_from_slice(&v.lexemes[at..end]);
            with.extend([v.made(Tok::Assign, names.after()), v.made(Tok::Tile, names.after())]);
            with.extend_from_slice(&v.lexemes[head..at]);
            // What is wrong with the type says more.
            Situation::replace(d.with_unless(ty), 0..end, with)
        }
        _ => None,
    }
}

/// `let`, `var`, `const`.
pub(super) fn definition(v: &View<'_, '_>) -> Option<Situation> {
    let (here, at) = (v.here_tok(), v.at);
    let word = v.text(0).to_owned();
    // `let mut x`
    if v.first() == Some(Tok::Let) && v.text(1) == "mut" && at == 2 && here == Some(Tok::Name) {
        return v.respell(0..2, "a mutable scalar is made by `var`".to_owned(), "var", Tok::Var);
    }
    let defined = (1..at).any(|i| v.tok(i) == Some(Tok::Assign));
    let wants_name = at == 1 || (!defined && v.prev_tok() == Some(Tok::Comma) && !v.wants.operand);
    let in_pattern = v.tok(1) == Some(Tok::LParen) && !defined && v.find_back(at, &[Tok::RParen]).is_none() && at > 1;
    if wants_name || (in_pattern && matches!(v.prev_tok(), Some(Tok::LParen | Tok::Comma))) {
        if here.is_some_and(Tok::is_keyword) {
            return keyword_as_name(v, at);
        }
        if here == Some(Tok::Hole) {
            let d = v.error(codes::MISSING_NAME, v.here(), "`_` is no name");
            return Situation::replace(
                d.with_help("give it a name; nothing has to use it"),
                at..at + 1,
                vec![v.made(Tok::Name, v.here())],
            );
        }
        let d = match v.get(at) {
            Some(l) => {
                v.error(codes::MISSING_NAME, v.here(), format!("a name must follow `{word}`, not {}", v.show(l)))
            }
            None => v.error(codes::MISSING_NAME, v.after_prev(), format!("a name is missing after `{word}`")),
        };
        return Situation::hopeless(d);
    }
    if defined {
        return None;
    }
    if v.prev_tok() == Some(Tok::Colon) && v.wants.operand && !v.starts_operand(at) {
        let d = v.error(codes::MISSING_TYPE, v.after_prev(), "a type is missing after `:`");
        let d = d.with_fix("to let the type be inferred, remove `:`", v.span(at - 1), "");
        return Situation::replace(d, at - 1..at, Vec::new());
    }
    let name = v.text(1).to_owned();
    match here {
        _ if v.wants.operand => None,
        Some(Tok::Eq) => v.respell(at..at + 1, "a definition has `=`; `==` compares".to_owned(), "=", Tok::Assign),
        Some(Tok::ColonAssign | Tok::FatArrow) => {
            let message = format!("a definition has `=`, not `{}`", v.text(at));
            v.respell(at..at + 1, message, "=", Tok::Assign)
        }
        Some(Tok::AddAssign | Tok::SubAssign | Tok::MulAssign | Tok::DivAssign | Tok::OrAssign | Tok::XorAssign) => {
            let gap = v.builder.span(v.span(0).start, v.span(1).start);
            let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), format!("`{name}` has no value yet that could change"));
            let d = d.with_fix(format!("to change an existing `{name}`, remove `{word}`"), gap, "");
            Situation::replace(d, 0..1, Vec::new())
        }
        Some(Tok::Semi) | None if v.ends_operand(at.wrapping_sub(1)) => {
            let d = v.error(codes::MISSING_VALUE, v.after_prev(), format!("`{name}` has no value"));
            let help = match v.first() {
                Some(Tok::Let) => "write `= value`; storage is made by `= tile Vec<f32, 16, 64>`",
                _ => "write `= value`",
            };
            Situation::hopeless(d.with_help(help))
        }
        _ if v.starts_operand(at) && v.starts_line(at) => {
            let d = v.error(codes::MISSING_VALUE, v.after_prev(), format!("`{name}` has no value"));
            Some(Situation { diagnostic: d.with_help("write `= value;`"), repair: Repair::Split })
        }
        _ if v.starts_operand(at) && v.tok(at - 1) == Some(Tok::Name) && at == 2 && foreign::dtype(&name).is_some() => {
            let span = v.between(1, 2);
            let (ty, name) = (foreign::dtype(&name).unwrap_or_default(), v.text(2));
            let d = v.error(codes::FOREIGN_SPELLING, span, "the type follows the name");
            let d = d.with_fix(format!("write `{name}: {ty}`"), span, format!("{name}: {ty}"));
            Situation::replace(d, 1..2, Vec::new())
        }
        Some(Tok::Name) if at == 2 && v.tok(1) == Some(Tok::Name) && v.tok(3) == Some(Tok::Assign) => {
            let first = v.text(1).to_owned();
            let d = v.error(codes::UNEXPECTED_TOKEN, v.between(1, 2), format!("`{word}` is followed by two names"));
            let early = v.builder.span(v.span(1).start, v.span(2).start);
            let d = d.with_fix(format!("remove the first one, `{first}`"), early, "");
            Situation::replace(d, 1..2, Vec::new())
        }
        _ if v.starts_operand(at) || here == Some(Tok::LBracket) => {
            let d = v.error(codes::MISSING_VALUE, v.after_prev(), format!("`=` is missing after `{}`", v.text(at - 1)));
            let d = d.with_fix("insert `=`", v.after_prev(), " =");
            Situation::replace(d, at..at, vec![v.made(Tok::Assign, v.after_prev())])
        }
        _ => None,
    }
}

/// `for name in range {}`, whose `for` stands at `word`.
fn for_loop(v: &View<'_, '_>, word: usize) -> Option<Situation> {
    let (here, at) = (v.here_tok(), v.at);
    if at == word + 1 {
        if here == Some(Tok::LParen) {
            let close = (at..v.lexemes.len()).find(|i| v.tok(*i) == Some(Tok::RParen))?;
            let semicolons = (at..close).any(|i| v.tok(i) == Some(Tok::Semi));
            let span = v.between(at, close);
            if semicolons {
                let d = v.error(codes::FOREIGN_SPELLING, span, "a loop runs over a range");
                return Situation::hopeless(d.with_help("write `for i in 0..n { .. }`, or a `while` loop"));
            }
            let d = v.error(codes::FOREIGN_SPELLING, v.here(), "a loop's range stands without parentheses");
            let mut d = d;
            d.fixes.push(edits("remove them", vec![(v.span(at), ""), (v.span(close), "")]));
            return Situation::replace(d, at..close + 1, v.lexemes[at + 1..close].to_vec());
        }
        if here.is_some_and(Tok::is_keyword) && here != Some(Tok::In) {
            return keyword_as_name(v, at);
        }
        let d = v.error(codes::MISSING_NAME, v.after_prev(), "the loop variable is missing after `for`");
        return Situation::hopeless(d.with_help("write `for i in 0..n { .. }`"));
    }
    if at == word + 2 && v.tok(word + 1) == Some(Tok::Name) {
        // `for int i in ..`
        if here == Some(Tok::Name) && foreign::dtype(v.text(word + 1)).is_some() {
            let message = "a loop variable has no type".to_owned();
            return v.respell(word + 1..word + 2, message, "", Tok::Bad);
        }
        return missing_in(v, word + 1);
    }
    None
}

fn pipeline(v: &View<'_, '_>) -> Option<Situation> {
    if let Some(word) = v.lexemes.iter().position(|l| l.is(Tok::For)).filter(|w| *w < v.at) {
        return for_loop(v, word);
    }
    let d = match v.at {
        1 => {
            let d = v.error(codes::UNEXPECTED_TOKEN, v.after_prev(), "`pipeline` needs its number of stages");
            d.with_suggestion("insert `(stages = 2)`", v.after_prev(), "(stages = 2)")
        }
        _ => {
            let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), "`pipeline(..)` stands before a `for` loop");
            d.with_help("write `pipeline(stages = 2) for k in tiles(K, BK) { .. }`")
        }
    };
    Situation::hopeless(d)
}

/// `if` and `while`.
fn condition(v: &View<'_, '_>) -> Option<Situation> {
    let at = v.at;
    if v.here_tok() == Some(Tok::Name) && v.ends_operand(at.wrapping_sub(1)) && matches!(v.text(at), "then" | "do") {
        let message = format!("there is no `{}`: the condition ends where its block begins", v.text(at));
        return v.respell(at..at + 1, message, "", Tok::Bad);
    }
    None
}

fn else_without_if(v: &View<'_, '_>) -> Option<Situation> {
    if v.at != 0 {
        return None;
    }
    // The `if` before it has a `:`, too.
    if v.tok(1) == Some(Tok::Colon) {
        return Situation::hopeless(colon_for_brace(v, "else", v.span(1)));
    }
    let d = v.error(codes::ELSE_WITHOUT_IF, v.here(), "this `else` belongs to no `if`");
    let before = v.builder.source().get(..v.here().start as usize).unwrap_or_default().trim_end();
    let block_ended = before.strip_suffix(';').is_some_and(|b| b.trim_end().ends_with('}'));
    if block_ended {
        let end = before.len() as u32;
        return Situation::hopeless(d.with_fix("remove the `;` before it", v.builder.span(end - 1, end), ""));
    }
    Situation::hopeless(d.with_note("`else` follows the `}` of an `if`"))
}

fn grid(v: &View<'_, '_>) -> Option<Situation> {
    let at = v.at;
    if at == 1 {
        let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), "the variables of `grid` stand in parentheses");
        return Situation::hopeless(d.with_help("write `grid (i in tiles(M, 16), j in tiles(N, 64));`"));
    }
    if let Some(Terminal::Block(_)) = v.get(at).map(|l| l.term) {
        let d =
            v.error(codes::UNEXPECTED_TOKEN, v.after_prev(), "`grid` has no body: what follows it runs for each block");
        return Situation::hopeless(d.with_help("end it with `;`, and write its statements after it"));
    }
    None
}

/// `#[..]` in front of a statement.
fn attributes(v: &View<'_, '_>) -> Option<Situation> {
    if let Some(situation) = super::item::attribute(v) {
        return Some(situation);
    }
    if let Some(word) = v.lexemes.iter().position(|l| l.is(Tok::For))
        && v.at > word
    {
        return for_loop(v, word);
    }
    let d = v.error(codes::MALFORMED_ATTRIBUTE, v.span(0), "in a body, an attribute stands before a `for` loop only");
    Situation::hopeless(d.with_help("attributes of a kernel stand before `kernel`"))
}

fn nested_item(v: &View<'_, '_>) -> Option<Situation> {
    let word = v.text(0).to_owned();
    let d = v.error(codes::MISPLACED, v.span(0), format!("`{word}` cannot stand in a body"));
    let d = match v.first() {
        Some(Tok::Use) => d.with_help("write it at the top of the file"),
        _ => d
            .with_help("write it beside the kernel, not in it")
            .with_note("if it is beside it, a `}` is missing before"),
    };
    Situation::hopeless(d)
}

/// Statements that begin with a name and are none of ours.
fn foreign_statement(v: &View<'_, '_>) -> Option<Situation> {
    let (here, at) = (v.here_tok(), v.at);
    let first = v.text(0).to_owned();
    // `x := 1;`
    if at == 1 && here == Some(Tok::ColonAssign) {
        let mut d = v.error(codes::FOREIGN_SPELLING, v.here(), format!("`{first}` is defined by `let`, not by `:=`"));
        let start = v.builder.span(v.span(0).start, v.span(0).start);
        d.fixes.push(edits(format!("write `let {first} =`"), vec![(start, "let "), (v.here(), "=")]));
        let with = vec![v.made(Tok::Let, start), v.lexemes[0], v.made(Tok::Assign, v.here())];
        return Situation::replace(d, 0..2, with);
    }
    if at != 1 || v.starts_line(1) {
        return None;
    }
    let help = match first.as_str() {
        "elif" | "elsif" | "elseif" => {
            let d = v.error(codes::FOREIGN_SPELLING, v.span(0), format!("`{first}` is written `else if`"));
            return Situation::hopeless(d.with_fix("write `else if`", v.span(0), "else if"));
        }
        "mut" | "auto" => "let",
        "using" | "typedef" => {
            let d =
                v.error(codes::FOREIGN_SPELLING, v.between(0, v.lexemes.len() - 1), "types have no names of their own");
            return Situation::hopeless(
                d.with_help("write the type where a tile is declared: `let x = tile Vec<f32, 16, 64>;`"),
            );
        }
        "loop" | "do" => {
            let d = v.error(codes::FOREIGN_SPELLING, v.span(0), format!("there is no `{first}` loop"));
            return Situation::hopeless(d.with_help("write `while cond { .. }` or `for i in 0..n { .. }`"));
        }
        "match" | "switch" | "case" => {
            let d = v.error(codes::FOREIGN_SPELLING, v.span(0), format!("there is no `{first}`"));
            return Situation::hopeless(d.with_help("write `if a == b { .. } else if .. { .. }`"));
        }
        "print" | "assert" | "static_assert" if v.starts_operand(1) => {
            let d =
                v.error(codes::FOREIGN_SPELLING, v.span(0), format!("the arguments of `{first}` stand in parentheses"));
            let last = v.lexemes.len() - 1;
            if v.tok(last) != Some(Tok::Semi) {
                return Situation::hopeless(d.with_help(format!("write `{first}(..);`")));
            }
            let (gap, end) = (v.span(0).after().to(v.builder.span(v.span(1).start, v.span(1).start)), v.span(last));
            let mut d = d;
            d.fixes.push(edits("put them in parentheses", vec![(gap, "("), (Span { end: end.start, ..end }, ")")]));
            return Situation::hopeless(d);
        }
        "def" | "func" | "function" => {
            let d =
                v.error(codes::MISPLACED, v.span(0), format!("`{first}` is written `fn`, and cannot stand in a body"));
            return Situation::hopeless(d.with_help("write it beside the kernel, not in it"));
        }
        name if foreign::dtype(name).is_some() => "let",
        name => {
            // A word of the language with a letter wrong.
            let words =
                ["let", "var", "const", "if", "for", "while", "return", "break", "continue", "grid", "pipeline"];
            let near = crate::similar::nearest(name, &words).filter(|_| v.starts_operand(1))?;
            let d = v.error(codes::UNEXPECTED_TOKEN, v.span(0), format!("`{name}` begins no statement"));
            let tok = word_token(near)?;
            let with = vec![v.made(tok, v.span(0))];
            return Situation::replace(d.with_fix(format!("write `{near}`"), v.span(0), near), 0..1, with);
        }
    };
    if here != Some(Tok::Name) {
        return None;
    }
    let gap = v.span(0);
    let message = format!("a name is defined by `{help}`, not by its type");
    let d = v.error(codes::FOREIGN_SPELLING, gap, message).with_fix(format!("write `{help}`"), gap, help);
    Situation::replace(d, 0..1, vec![v.made(Tok::Let, gap)])
}

fn word_token(word: &str) -> Option<Tok> {
    Some(match word {
        "let" => Tok::Let,
        "var" => Tok::Var,
        "const" => Tok::Const,
        "if" => Tok::If,
        "for" => Tok::For,
        "while" => Tok::While,
        "return" => Tok::Return,
        "break" => Tok::Break,
        "continue" => Tok::Continue,
        "grid" => Tok::Grid,
        "pipeline" => Tok::Pipeline,
        _ => return None,
    })
}

/// `i in 0..3 {`, `a == b {`: the word in front is missing.
pub(super) fn missing_head(v: &View<'_, '_>) -> Option<Situation> {
    // `(i in tiles(M, 16), ..)`
    if v.here_tok() == Some(Tok::In) && v.at > 0 {
        let start = v.builder.span(v.span(0).start, v.span(0).start);
        let loops = v.lexemes.iter().any(|l| matches!(l.term, Terminal::Block(_)));
        let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), "`in` belongs to a `for` loop or to a `grid`");
        let d = match v.start {
            Terminal::StartStmt if loops => d.with_fix("insert `for`", start, "for "),
            Terminal::StartArg => d.with_help("write `grid (i in tiles(M, 16), ..);`"),
            _ => d,
        };
        return match v.start {
            Terminal::StartStmt if loops && v.at == 1 => Situation::replace(d, 0..0, vec![v.made(Tok::For, start)]),
            _ => Situation::abandon(d),
        };
    }
    let block = v.get(v.at).is_some_and(|l| matches!(l.term, Terminal::Block(_)));
    let before = v.at.checked_sub(1)?;
    if v.start != Terminal::StartStmt || !block || !v.ends_operand(before) {
        return None;
    }
    if v.get(before).is_some_and(|l| matches!(l.term, Terminal::Block(_))) {
        let d = v.error(codes::UNEXPECTED_TOKEN, v.after_prev(), "`else` is missing between these blocks");
        let d = d.with_fix("insert `else`", v.after_prev(), " else");
        return Situation::replace(d, v.at..v.at, vec![v.made(Tok::Else, v.after_prev())]);
    }
    let value = v.find_back(v.at, &[Tok::Assign, Tok::Return]).map_or(0, |i| i + 1);
    if value == 0 && matches!(v.first(), Some(Tok::Let | Tok::Var | Tok::Const)) {
        return None;
    }
    let start = v.builder.span(v.span(value).start, v.span(value).start);
    let message = "a block follows an expression; before it `if` or `while` is missing";
    let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), message);
    let d = v.get(v.at).map_or(d, |b| {
        let open = v.builder.span(b.start, b.start + 1);
        v.error(codes::UNEXPECTED_TOKEN, open, message)
    });
    Situation::replace(d.with_fix("insert `if`", start, "if "), value..value, vec![v.made(Tok::If, start)])
}

/// A loop or branch without `{`.
pub(super) fn missing_body(v: &View<'_, '_>) -> Option<Situation> {
    if !matches!(v.start, Terminal::StartStmt | Terminal::StartTail) {
        return None;
    }
    let (here, at) = (v.here_tok(), v.at);
    let word = v.find_back(at, &[Tok::If, Tok::Else, Tok::For, Tok::While])?;
    let has_block = v.lexemes[word..at].iter().any(|l| matches!(l.term, Terminal::Block(_)));
    let complete = v.ends_operand(at.wrapping_sub(1)) || v.prev_tok() == Some(Tok::Else);
    if has_block || !complete {
        return None;
    }
    if let Some(situation) = body_after_colon(v, word) {
        return Some(situation);
    }
    let head = v.text(word).to_owned();
    if here == Some(Tok::Semi) || v.at_end() {
        let d = v.error(codes::MISSING_BODY, v.after_prev(), format!("`{head}` has no body"));
        return Situation::hopeless(d.with_help("write `{ .. }`"));
    }
    let message = format!("the body of `{head}` must stand in `{{` and `}}`");
    let mut d = v.error(codes::MISSING_BRACE, v.after_prev(), message);
    d.fixes.extend(braces(v, word));
    Situation::hopeless(d)
}

fn colon_for_brace(v: &View<'_, '_>, head: &str, colon: Span) -> Diagnostic {
    v.error(codes::MISSING_BRACE, colon, format!("the body of `{head}` stands in `{{` and `}}`, not after `:`"))
}

/// Python's `if a: b;`, of the word at `word`. What follows `:` may have been read as the stride of a layout.
fn body_after_colon(v: &View<'_, '_>, word: usize) -> Option<Situation> {
    let has_block = v.lexemes[word..].iter().any(|l| matches!(l.term, Terminal::Block(_)));
    let colon = v.find_back(v.at + 1, &[Tok::Colon]).filter(|c| *c > word && !has_block)?;
    let d = colon_for_brace(v, v.text(word), v.span(colon));
    let last = v.lexemes.len() - 1;
    // Where the body goes on for more lines, it is not to be seen where it ends.
    let on_line = (colon + 1..=last).all(|i| !v.starts_line(i));
    let nested = v.lexemes[colon..].iter().any(begins_branch);
    if !on_line || nested || colon == last || v.tok(last) != Some(Tok::Semi) {
        return Situation::hopeless(d.with_help("write `{` for the `:`, and `}` after the body"));
    }
    let open = if v.glued(colon) { " {" } else { "{" };
    let mut d = d;
    d.fixes.push(edits("put it in braces", vec![(v.span(colon), open), (v.span(last).after(), " }")]));
    Situation::hopeless(d)
}

fn begins_branch(l: &Lexeme) -> bool {
    matches!(l.tok(), Some(Tok::If | Tok::Else | Tok::For | Tok::While))
}

/// Braces around the bodies of a loop or branch that stands on one line: `if a x = 1; else ..` has two of them.
fn braces(v: &View<'_, '_>, word: usize) -> Option<Fix> {
    let last = v.lexemes.len() - 1;
    let branches: Vec<usize> = (v.at..last).filter(|i| v.get(*i).is_some_and(begins_branch)).collect();
    let is_else = |i: usize| v.tok(i) == Some(Tok::Else) && v.tok(word) == Some(Tok::If);
    if v.tok(last) != Some(Tok::Semi) {
        return None;
    }
    // A value ends before the `;` of its statement, a statement has one of its own.
    let statement = [Tok::If, Tok::Else, Tok::For, Tok::While, Tok::Pipeline, Tok::Hash];
    let value = !v.first().is_some_and(|t| statement.contains(&t));
    let closed = if value { (v.span(last - 1).after(), " }") } else { (v.span(last).after(), " }") };
    let mut list = vec![(v.after_prev(), " {")];
    match branches[..] {
        [] if !value => {}
        [at] if is_else(at) => {
            list.push((v.span(at - 1).after(), if value { " }" } else { "; }" }));
            if matches!(v.get(at + 1).map(|l| l.term), Some(Terminal::Block(_))) {
                return None;
            }
            list.push((v.span(at).after(), " {"));
        }
        _ => return None,
    }
    list.push(closed);
    Some(edits("put it in braces", list))
}

/// The statement is complete, and another one begins.
pub(super) fn missing_semicolon(v: &View<'_, '_>) -> Option<Situation> {
    if !matches!(v.start, Terminal::StartStmt | Terminal::StartItem) || !v.wants.semicolon {
        return None;
    }
    let fits = v.at_end() || v.starts_line(v.at) || v.here_tok().is_some_and(|t| t.is_keyword());
    let operand = v.starts_operand(v.at) || v.get(v.at).is_some_and(|l| matches!(l.term, Terminal::Block(_)));
    if !fits && !operand {
        return None;
    }
    let before = v.prev()?;
    let d = v.error(codes::MISSING_SEMICOLON, v.after_prev(), format!("`;` is missing after {}", v.show(before)));
    let d = d.with_fix("insert `;`", v.after_prev(), ";");
    if !fits && v.start == Terminal::StartStmt {
        // On one line it may as well be an operator that is missing.
        let here = v.get(v.at).map(|l| v.show(l)).unwrap_or_default();
        let message = format!("`;` or an operator is missing between {} and {here}", v.show(before));
        let d = v.error(codes::MISSING_SEMICOLON, v.after_prev(), message).with_fix("insert `;`", v.after_prev(), ";");
        return Some(Situation { diagnostic: d, repair: Repair::SplitQuiet });
    }
    let repair = match v.start {
        Terminal::StartStmt => Repair::Split,
        _ if v.at_end() => Repair::Replace(v.at..v.at, vec![v.made(Tok::Semi, v.after_prev())]),
        _ => Repair::None,
    };
    Some(Situation { diagnostic: d, repair })
}
