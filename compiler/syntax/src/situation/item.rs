//! Mistakes in items and their headers.

use ptoc_diagnostics::{Diagnostic, Span, codes};

use super::expr::keyword_as_name;
use super::{Situation, View, foreign, stmt};
use crate::build::Builder;
use crate::similar;
use crate::terminal::{Lexeme, Terminal};
use crate::token::Tok;

const WORDS: [(&str, Tok); 6] = [
    ("use", Tok::Use),
    ("const", Tok::Const),
    ("atom", Tok::Atom),
    ("fn", Tok::Fn),
    ("kernel", Tok::Kernel),
    ("program", Tok::Program),
];

/// A word that means one of ours.
pub(crate) fn misspelt_item(builder: &Builder<'_>, word: &Lexeme, next: Option<&Lexeme>) -> Option<(Tok, Diagnostic)> {
    let text = builder.text(word.start, word.end);
    let span = builder.span(word.start, word.end);
    if !word.is(Tok::Name) || !next.is_some_and(|n| n.tok().is_some_and(|t| t == Tok::Name || t.is_keyword())) {
        return None;
    }
    let (meant, foreign) = match text {
        "def" | "func" | "function" | "void" | "proc" | "sub" => ("fn", true),
        "import" | "include" | "from" => ("use", true),
        "static" | "constexpr" | "define" => ("const", true),
        "__global__" | "entry" => ("kernel", true),
        _ if foreign::dtype(text).is_some() => ("fn", true),
        _ => (similar::nearest(text, &WORDS.map(|w| w.0)).filter(|_| text.len() > 1)?, false),
    };
    let tok = WORDS.iter().find(|w| w.0 == meant)?.1;
    let d = if foreign {
        Diagnostic::error(codes::FOREIGN_SPELLING, span, format!("`{text}` is written `{meant}`"))
    } else {
        Diagnostic::error(codes::UNKNOWN_ITEM_WORD, span, format!("`{text}` begins no item"))
    };
    Some((tok, d.with_fix(format!("write `{meant}`"), span, meant)))
}

/// Something at the top of a file that is no item.
pub(crate) fn no_item(builder: &Builder<'_>, lexemes: &[Lexeme]) -> Diagnostic {
    let Some(first) = lexemes.first() else {
        return Diagnostic::error(codes::UNKNOWN_ITEM_WORD, builder.span(0, 0), "an item is missing here");
    };
    let text = builder.text(first.start, first.end);
    let span = builder.span(first.start, first.end);
    let items = "a file holds `use`, `const`, `fn`, `kernel`, `program`, and `atom` items";
    match first.tok() {
        Some(Tok::Let | Tok::Var) => {
            let d = Diagnostic::error(codes::MISPLACED, span, format!("`{text}` cannot stand outside of a body"));
            d.with_fix("a value of the whole file is a `const`", span, "const")
        }
        Some(
            Tok::If
            | Tok::Else
            | Tok::For
            | Tok::While
            | Tok::Pipeline
            | Tok::Grid
            | Tok::Return
            | Tok::Break
            | Tok::Continue,
        ) => Diagnostic::error(codes::MISPLACED, span, format!("`{text}` cannot stand outside of a body"))
            .with_note("if it is meant to be in one, a `}` before it is too early"),
        Some(Tok::Where | Tok::Ensures) => {
            let message = format!("`{text}` belongs to the header of a kernel");
            Diagnostic::error(codes::MISPLACED, span, message)
                .with_help("it stands between the parameters and the `{`, without `;`")
        }
        Some(Tok::Name) => {
            let next = lexemes.get(1);
            let d = match text {
                "pub" | "export" | "extern" | "inline" | "async" | "unsafe" => {
                    let d = Diagnostic::error(codes::FOREIGN_SPELLING, span, format!("there is no `{text}`"));
                    return d.with_note("every item can be used from other files").with_fix("remove it", span, "");
                }
                "struct" | "class" | "enum" | "trait" | "impl" | "mod" | "macro" | "template" | "type" => {
                    let d = Diagnostic::error(codes::FOREIGN_SPELLING, span, format!("there is no `{text}`"));
                    return d.with_note(items);
                }
                _ if next.is_some_and(|n| {
                    matches!(n.tok(), Some(Tok::LParen | Tok::Assign | Tok::StaticOpen | Tok::LBracket | Tok::Dot))
                }) =>
                {
                    Diagnostic::error(codes::MISPLACED, span, "a statement cannot stand outside of a body")
                }
                _ => Diagnostic::error(codes::UNKNOWN_ITEM_WORD, span, format!("`{text}` begins no item")),
            };
            d.with_note(items)
        }
        Some(Tok::Semi) => {
            let d = Diagnostic::error(codes::MISPLACED, span, "there is nothing here that `;` could end");
            d.with_fix("remove it", span, "")
        }
        _ => {
            let shown = if text.len() > 24 || first.is(Tok::Str) { "this" } else { text };
            let message =
                if shown == text { format!("`{text}` begins no item") } else { "no item begins here".to_owned() };
            Diagnostic::error(codes::UNKNOWN_ITEM_WORD, span, message).with_note(items)
        }
    }
}

/// `#[..]` and nothing after it.
pub(crate) fn attribute_of_nothing(span: Span) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED_ATTRIBUTE, span, "no item follows this attribute")
}

pub(super) fn find(v: &View<'_, '_>) -> Option<Situation> {
    if let Some(situation) = attribute(v) {
        return Some(situation);
    }
    // After the attributes, which are well-formed when the parser got past them.
    let word = (0..v.at).find(|i| {
        let tok = v.tok(*i);
        let outside = *i == 0 || v.tok(i - 1) == Some(Tok::RBracket);
        outside && tok.is_some_and(|t| WORDS.iter().any(|w| w.1 == t))
    })?;
    match v.tok(word)? {
        Tok::Use => use_item(v, word),
        Tok::Const => stmt::definition(&View { lexemes: &v.lexemes[word..], at: v.at - word, ..*v }).map(|s| {
            let repair = match s.repair {
                super::Repair::Replace(r, with) => super::Repair::Replace(r.start + word..r.end + word, with),
                super::Repair::Split | super::Repair::SplitQuiet => super::Repair::None,
                none => none,
            };
            Situation { repair, ..s }
        }),
        Tok::Atom => atom(v, word),
        tok => header(v, word, tok),
    }
}

/// `#[name(arg, ..)]`: the parse stopped in one.
pub(super) fn attribute(v: &View<'_, '_>) -> Option<Situation> {
    let hash = v.lexemes[..v.at].iter().rposition(|l| l.is(Tok::Hash))?;
    let close = v.lexemes[hash..].iter().position(|l| l.is(Tok::RBracket)).map_or(v.lexemes.len(), |c| c + hash);
    if v.at > close {
        return None;
    }
    let span = v.here();
    let name = v.text(hash + 2).to_owned();
    let d = match v.here_tok() {
        Some(Tok::Assign) if v.tok(hash + 2) == Some(Tok::Name) && v.at == hash + 3 => {
            let d =
                v.error(codes::MALFORMED_ATTRIBUTE, span, format!("the arguments of `{name}` stand in parentheses"));
            if close == v.at + 2 {
                let value = v.text(v.at + 1);
                let all = v.between(hash + 2, v.at + 1);
                d.with_fix(format!("write `{name}({value})`"), all, format!("{name}({value})"))
            } else {
                d
            }
        }
        Some(tok) if tok.is_keyword() => return keyword_as_name(v, v.at),
        _ => v.error(codes::MALFORMED_ATTRIBUTE, span, "an attribute is `#[name]` or `#[name(word, \"text\")]`"),
    };
    // The attribute is left out, so that the rest is looked at.
    Situation::replace(d, hash..(close + 1).min(v.lexemes.len()), Vec::new())
}

fn use_item(v: &View<'_, '_>, word: usize) -> Option<Situation> {
    let (here, at) = (v.here_tok(), v.at);
    match here {
        Some(Tok::Dot | Tok::Slash | Tok::Colon) => {
            v.respell(at..at + 1, "the parts of a path are separated by `::`".to_owned(), "::", Tok::PathSep)
        }
        Some(Tok::Str) if at == word + 1 => {
            let d = v.error(codes::FOREIGN_SPELLING, v.here(), "`use` takes a path of names, not a file name");
            Situation::hopeless(d.with_help("`use linear::gelu;` takes `gelu` from linear.tile beside this file"))
        }
        Some(Tok::Star) => {
            let d = v.error(codes::FOREIGN_SPELLING, v.here(), "`use` names what it takes");
            Situation::hopeless(d.with_help("write one `use` for each item"))
        }
        Some(Tok::LBrace) | None if v.prev_tok() == Some(Tok::PathSep) && !v.at_end() => {
            let d = v.error(codes::FOREIGN_SPELLING, v.here(), "`use` takes one item");
            Situation::hopeless(d.with_help("write one `use` for each item"))
        }
        Some(Tok::Name) if v.text(at) == "as" => {
            let d = v.error(codes::FOREIGN_SPELLING, v.here(), "an item cannot be renamed");
            Situation::hopeless(d)
        }
        Some(tok) if tok.is_keyword() && !v.starts_line(at) => keyword_as_name(v, at),
        _ if matches!(v.prev_tok(), Some(Tok::Use | Tok::PathSep)) => {
            let message = format!("a name is missing after `{}`", v.text(at - 1));
            Situation::hopeless(v.error(codes::MISSING_NAME, v.after_prev(), message))
        }
        _ => None,
    }
}

fn atom(v: &View<'_, '_>, word: usize) -> Option<Situation> {
    let (here, at) = (v.here_tok(), v.at);
    match at - word {
        1 if here.is_some_and(Tok::is_keyword) => return keyword_as_name(v, at),
        1 => return Situation::hopeless(v.error(codes::MISSING_NAME, v.after_prev(), "the atom's name is missing")),
        2 => {
            let d = v.error(codes::MISSING_BODY, v.after_prev(), "an atom's fields stand in `{` and `}`");
            return Situation::hopeless(d.with_help("write `atom NAME { shape = (16, 8, 16); .. }`"));
        }
        _ => {}
    }
    let field_value = |tok| matches!(tok, Some(Tok::Colon)) && v.tok(at - 1) == Some(Tok::Name);
    match here {
        tok if field_value(tok) && matches!(v.tok(at.checked_sub(2)?), Some(Tok::LBrace | Tok::Semi | Tok::Comma)) => {
            let text = if v.glued(at) { " =" } else { "=" };
            v.respell(at..at + 1, "a field has `=`, not `:`".to_owned(), text, Tok::Assign)
        }
        Some(Tok::Comma) => v.respell(at..at + 1, "a field ends with `;`".to_owned(), ";", Tok::Semi),
        Some(Tok::RBrace | Tok::Name) if v.wants.semicolon => {
            let d = v.error(codes::MISSING_SEMICOLON, v.after_prev(), "`;` is missing after this field");
            let d = d.with_fix("insert `;`", v.after_prev(), ";");
            Situation::replace(d, at..at, vec![v.made(Tok::Semi, v.after_prev())])
        }
        _ => None,
    }
}

/// `kernel`, `program`, `fn`: what stands before the body.
fn header(v: &View<'_, '_>, word: usize, tok: Tok) -> Option<Situation> {
    let (here, at) = (v.here_tok(), v.at);
    let kind = if tok == Tok::Fn { "function" } else { tok.word().unwrap_or_default() };
    let name = v.text(word + 1).to_owned();
    if at == word + 1 {
        if here.is_some_and(Tok::is_keyword) && !v.starts_line(at) {
            return keyword_as_name(v, at);
        }
        let d = v.error(codes::MISSING_NAME, v.after_prev(), format!("a name is missing after `{kind}`"));
        return Situation::hopeless(d);
    }
    // `__global__ void add(..)`
    if at == word + 2 && here == Some(Tok::Name) && (name == "void" || foreign::dtype(&name).is_some()) {
        let message = match tok {
            Tok::Fn => "the type of a result follows the parameters and `->`".to_owned(),
            _ => format!("a {kind} returns nothing, and does not say so"),
        };
        return v.respell(word + 1..at, message, "", Tok::Bad);
    }
    let has_params = (word..at).any(|i| v.tok(i) == Some(Tok::RParen));
    if !has_params && here == Some(Tok::Lt) {
        let gap = v.after_prev().to(v.builder.span(v.here().start, v.here().start));
        let d = v.error(
            codes::SPACED_STATIC_ARGUMENTS,
            v.here(),
            format!("a space stands between `{name}` and its static parameters"),
        );
        return Situation::hopeless(d.with_fix("remove the space", gap, ""));
    }
    if !has_params && at == word + 2 && matches!(here, Some(Tok::Const | Tok::Type | Tok::Fn)) {
        let d = v.error(
            codes::UNEXPECTED_TOKEN,
            v.after_prev(),
            format!("`<` is missing between `{name}` and its parameters"),
        );
        let gap = v.after_prev().to(v.builder.span(v.here().start, v.here().start));
        return Situation::hopeless(d.with_fix("insert `<`", gap, "<"));
    }
    let ends = here.is_none() || matches!(here, Some(Tok::LBrace | Tok::Where | Tok::Ensures | Tok::Arrow));
    if !has_params && ends && (at == word + 2 || v.prev_tok() == Some(Tok::AngleClose)) {
        let d = v.error(codes::UNEXPECTED_TOKEN, v.after_prev(), format!("the parameters of `{name}` are missing"));
        let d = d.with_fix("insert `()`", v.after_prev(), "()");
        let with = vec![v.made(Tok::LParen, v.after_prev()), v.made(Tok::RParen, v.after_prev())];
        return Situation::replace(d, at..at, with);
    }
    if !has_params {
        return None;
    }
    match (here, tok) {
        _ if v.prev_tok() == Some(Tok::Colon) && v.wants.operand && (v.at_end() || v.starts_line(at)) => {
            let message = format!("the body of `{name}` stands in `{{` and `}}`, not after `:`");
            let d = v.error(codes::MISSING_BRACE, v.span(at - 1), message);
            Situation::hopeless(d.with_help("write `{` for the `:`, and `}` after the body"))
        }
        (Some(Tok::Colon), _) if v.prev_tok() == Some(Tok::RParen) && python_body(v) => {
            let message = format!("the body of `{name}` stands in `{{` and `}}`, not after `:`");
            let d = v.error(codes::MISSING_BRACE, v.here(), message);
            Situation::hopeless(d.with_help("write `{` for the `:`, and `}` after the body"))
        }
        (Some(Tok::Colon), _) if v.prev_tok() == Some(Tok::RParen) && is_block(v, at + 1) => {
            v.respell(at..at + 1, "no `:` stands before a body".to_owned(), "", Tok::Bad)
        }
        (Some(Tok::Colon | Tok::FatArrow), Tok::Fn) if v.prev_tok() == Some(Tok::RParen) => {
            let message = format!("the type of a result follows `->`, not `{}`", v.text(at));
            v.respell(at..at + 1, message, if v.glued(at) { " ->" } else { "->" }, Tok::Arrow)
        }
        (Some(Tok::Arrow), Tok::Kernel | Tok::Program) => {
            let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), format!("a {kind} returns nothing"));
            let d = d.with_help("write its results to `out` parameters");
            let end = (at..v.lexemes.len())
                .find(|i| matches!(v.tok(*i), Some(Tok::Where | Tok::Ensures)) || is_block(v, *i))
                .unwrap_or(v.lexemes.len());
            Situation::replace(d, at..end, Vec::new())
        }
        (Some(Tok::Where | Tok::Ensures), Tok::Fn) => {
            let clause = v.text(at).to_owned();
            let message = format!("only kernels and programs have `{clause}`");
            let d = v.error(codes::MISPLACED, v.here(), message);
            let end = (at..v.lexemes.len()).find(|i| is_block(v, *i)).unwrap_or(v.lexemes.len());
            Situation::replace(d, at..end, Vec::new())
        }
        (Some(Tok::Where), Tok::Kernel | Tok::Program) => {
            let before = v.find_back(at, &[Tok::Where, Tok::Ensures])?;
            let clause = v.text(before).to_owned();
            let d = match clause.as_str() {
                "where" => v.error(codes::UNEXPECTED_TOKEN, v.here(), "there is a `where` already").with_fix(
                    "go on with the first one: write `,`",
                    v.here(),
                    ",",
                ),
                _ => v.error(codes::UNEXPECTED_TOKEN, v.here(), "`where` stands before `ensures`"),
            };
            let d = d.with_secondary(v.span(before), format!("the `{clause}`"));
            if clause == "where" {
                return Situation::replace(d, at..at + 1, vec![v.made(Tok::Comma, v.here())]);
            }
            let end = (at..v.lexemes.len()).find(|i| is_block(v, *i)).unwrap_or(v.lexemes.len());
            Situation::replace(d, at..end, Vec::new())
        }
        (Some(Tok::Ensures), Tok::Kernel | Tok::Program) if v.find_back(at, &[Tok::Ensures]).is_some() => {
            let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), "there is an `ensures` already");
            let d = d.with_fix("go on with the first one: write `,`", v.here(), ",");
            Situation::replace(d, at..at + 1, vec![v.made(Tok::Comma, v.here())])
        }
        (Some(Tok::Semi), _) if !v.wants.operand => {
            let d = v.error(codes::MISSING_BODY, v.after_prev(), format!("the {kind} `{name}` has no body"));
            Situation::hopeless(d.with_fix("write a body instead of `;`", v.here(), " {\n}"))
        }
        (None, _) if v.at_end() && !v.wants.operand => {
            let d = v.error(codes::MISSING_BODY, v.after_prev(), format!("the {kind} `{name}` has no body"));
            Situation::hopeless(d.with_fix("write a body", v.after_prev(), " {\n}"))
        }
        (Some(Tok::Assign), Tok::Fn) if v.wants.block => {
            let d = v.error(codes::MISSING_BRACE, v.here(), "the body of a function stands in `{` and `}`");
            Situation::hopeless(d)
        }
        (Some(Tok::Name), Tok::Kernel | Tok::Program)
            if v.wants.block && !v.wants.operand && v.starts_operand(at + 1) && meant_clause(v).is_some() =>
        {
            let (word, meant) = meant_clause(v)?;
            let message = format!("a {kind} has no `{}`", v.text(at));
            let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), message);
            let d = d.with_suggestion(format!("did you mean `{word}`?"), v.here(), word);
            Situation::replace(d, at..at + 1, vec![v.made(meant, v.here())])
        }
        _ if v.wants.block && v.starts_operand(at) && v.prev_tok() == Some(Tok::RParen) && has_block_later(v) => {
            let d = v.error(codes::UNEXPECTED_TOKEN, v.here(), "a condition follows the parameters without its word");
            let start = v.builder.span(v.here().start, v.here().start);
            let d = match tok {
                Tok::Fn => d.with_note("a function has no `where` and no `ensures`"),
                _ => d.with_fix("insert `where`", start, "where ").with_fix("insert `ensures`", start, "ensures "),
            };
            // With `where`, what follows can be an `ensures`.
            let word = if tok == Tok::Fn { Vec::new() } else { vec![v.made(Tok::Where, start)] };
            let end = if tok == Tok::Fn { first_block(v) } else { at };
            Situation::replace(d, at..end, word)
        }
        _ if v.wants.block && !v.wants.operand && stands_for_body(v) => {
            let d = v.error(codes::MISSING_BRACE, v.after_prev(), format!("the body of `{name}` must begin with `{{`"));
            Situation::hopeless(d.with_fix("insert `{`", v.after_prev(), " {"))
        }
        _ => None,
    }
}

/// The word of a clause that the name here is most like.
fn meant_clause(v: &View<'_, '_>) -> Option<(&'static str, Tok)> {
    let word = match v.text(v.at) {
        // Of other languages.
        "require" | "requires" => "where",
        text => similar::nearest(text, &["ensures", "where"])?,
    };
    Some((word, if word == "where" { Tok::Where } else { Tok::Ensures }))
}

/// A `:` after which the line ends: the body of Python.
fn python_body(v: &View<'_, '_>) -> bool {
    v.get(v.at + 1).is_none() || v.starts_line(v.at + 1)
}

fn first_block(v: &View<'_, '_>) -> usize {
    (v.at..v.lexemes.len()).find(|i| is_block(v, *i)).unwrap_or(v.lexemes.len())
}

fn has_block_later(v: &View<'_, '_>) -> bool {
    first_block(v) < v.lexemes.len()
}

fn is_block(v: &View<'_, '_>, i: usize) -> bool {
    v.get(i).is_some_and(|l| matches!(l.term, Terminal::Block(_)))
}

/// A statement begins where the body should.
fn stands_for_body(v: &View<'_, '_>) -> bool {
    v.starts_operand(v.at)
        || matches!(
            v.here_tok(),
            Some(Tok::Let | Tok::Var | Tok::Const | Tok::If | Tok::For | Tok::While | Tok::Grid | Tok::Pipeline)
                | Some(Tok::Return)
        )
}
