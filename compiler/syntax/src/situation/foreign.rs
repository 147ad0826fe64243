//! Spellings of other languages inside expressions and statements.

use ptoc_diagnostics::codes;

use super::{Situation, View};
use crate::token::Tok;

/// Names of dtypes as casts and declarations of C have them, with ours.
pub(super) fn dtype(text: &str) -> Option<&str> {
    Some(match text {
        "float" => "f32",
        "half" | "__half" => "f16",
        "double" => "f64",
        "int" | "int32_t" => "i32",
        "unsigned" | "uint" | "uint32_t" => "u32",
        "size_t" | "long" => "index",
        "char" | "int8_t" => "i8",
        "uint8_t" => "u8",
        "f16" | "f32" | "f64" | "bf16" | "f8e4m3" | "f8e5m2" | "i4" | "i8" | "i16" | "i32" | "i64" | "u4" | "u8"
        | "u16" | "u32" | "u64" | "index" | "bool" => text,
        _ => return None,
    })
}

pub(super) fn find(v: &View<'_, '_>) -> Option<Situation> {
    let at = v.at;
    let (here, prev) = (v.here_tok(), v.prev_tok());
    match here {
        Some(Tok::Power) => return power(v),
        Some(Tok::FatArrow) => {
            return v.respell(at..at + 1, "`=>` is not in the language; at least is `>=`".to_owned(), ">=", Tok::Ge);
        }
        Some(Tok::ColonAssign) => {
            return v.respell(at..at + 1, "`:=` is not in the language; `=` assigns".to_owned(), "=", Tok::Assign);
        }
        Some(Tok::Arrow) if v.ends_operand(at.wrapping_sub(1)) && v.tok(at + 1) == Some(Tok::Name) => {
            return v.respell(at..at + 1, "there are no pointers; a field follows a `.`".to_owned(), ".", Tok::Dot);
        }
        Some(Tok::PathSep) => {
            let d = v.error(codes::FOREIGN_SPELLING, v.here(), "a path stands only in `use`");
            let d = d.with_note("a name stands alone: after `use a::b;` it is `b`, and PTO's `CmpMode::LT` is `LT`");
            return match (at.checked_sub(1), v.tok(at + 1)) {
                (Some(p), Some(Tok::Name)) if prev == Some(Tok::Name) => {
                    let span = v.between(p, at);
                    // What is wrong with the name itself says more.
                    let d = d.with_fix("remove the path", span, "").with_unless(v.span(at + 1));
                    Situation::replace(d, p..at + 1, Vec::new())
                }
                _ => Situation::hopeless(d),
            };
        }
        _ => {}
    }
    doubled_marks(v).or_else(|| words(v)).or_else(|| casts(v))
}

/// `a ** b`, which is taken for a product from here on.
fn power(v: &View<'_, '_>) -> Option<Situation> {
    let at = v.at;
    let d = v.error(codes::FOREIGN_SPELLING, v.here(), "there is no operator `**`");
    let plain = |i: usize| matches!(v.tok(i), Some(Tok::Name | Tok::Int | Tok::Float));
    let joined = |i: usize| matches!(v.tok(i), Some(Tok::LParen | Tok::LBracket | Tok::Dot | Tok::StaticOpen));
    let before = at.checked_sub(1).filter(|b| plain(*b) && b.checked_sub(1).is_none_or(|b| !joined(b)));
    let d = match before.filter(|_| plain(at + 1) && !joined(at + 2)) {
        Some(before) => {
            let whole = v.between(before, at + 1);
            d.with_fix("a power is a call", whole, format!("pow({}, {})", v.text(before), v.text(at + 1)))
        }
        None => d.with_help("a power is a call: `pow(a, b)`"),
    };
    Situation::replace(d, at..at + 1, vec![v.made(Tok::Star, v.here())])
}

/// Two marks in a row that are one operator elsewhere.
fn doubled_marks(v: &View<'_, '_>) -> Option<Situation> {
    let at = v.at;
    let before = at.checked_sub(1)?;
    let (here, prev) = (v.here_tok(), v.prev_tok());
    match (prev?, here) {
        (Tok::Plus, Some(Tok::Plus)) if v.glued(at) && !v.starts_operand(at + 1) => increment(v, before..at + 1, "+"),
        (Tok::Minus, Some(Tok::Semi)) if before > 0 && v.tok(before - 1) == Some(Tok::Minus) && v.glued(before) => {
            increment(v, before - 1..before + 1, "-")
        }
        (Tok::Eq | Tok::Ne, Some(Tok::Assign)) if v.glued(at) => {
            let text = v.text(before).to_owned();
            let message = format!("`{text}=` is not in the language; values are compared by `{text}`");
            let tok = prev?;
            v.respell(before..at + 1, message, &text, tok)
        }
        (Tok::Lt, Some(Tok::Gt)) if v.glued(at) => {
            v.respell(before..at + 1, "`<>` is not in the language; unequal is `!=`".to_owned(), "!=", Tok::Ne)
        }
        (_, Some(Tok::Assign)) if v.tok(at + 1) == Some(Tok::Lt) && v.glued(at + 1) => {
            v.respell(at..at + 2, "`=<` is not in the language; at most is `<=`".to_owned(), "<=", Tok::Le)
        }
        (Tok::Assign, Some(Tok::Lt | Tok::TilerOpen)) if v.glued(at) => {
            v.respell(before..at + 1, "`=<` is not in the language; at most is `<=`".to_owned(), "<=", Tok::Le)
        }
        (Tok::DotDot, Some(Tok::Assign)) if v.glued(at) => {
            let span = v.between(before, at);
            let d = v.error(codes::FOREIGN_SPELLING, span, "`..=` is not in the language: a range excludes its end");
            Situation::replace(d.with_help("write `lo..hi + 1`"), at..at + 1, Vec::new())
        }
        (Tok::DotDot, Some(Tok::Dot | Tok::DotDot)) if v.glued(at) => {
            v.respell(before..at + 1, "a range is written with two points".to_owned(), "..", Tok::DotDot)
        }
        _ => None,
    }
}

fn increment(v: &View<'_, '_>, range: std::ops::Range<usize>, sign: &str) -> Option<Situation> {
    let span = v.between(range.start, range.end - 1);
    let message = format!("there is no operator `{sign}{sign}`");
    let d = v.error(codes::FOREIGN_SPELLING, span, message);
    if range.start == 0 {
        let d = d.with_help(format!("write `NAME {sign}= 1;`"));
        return Situation::hopeless(d);
    }
    let d = d.with_fix(format!("write `{sign}= 1`"), span, format!(" {sign}= 1"));
    let op = if sign == "+" { Tok::AddAssign } else { Tok::SubAssign };
    Situation::replace(d, range, vec![v.made(op, span), v.made(Tok::BadNumber, span)])
}

/// Operators that are words elsewhere.
fn words(v: &View<'_, '_>) -> Option<Situation> {
    let at = v.at;
    if v.here_tok() == Some(Tok::Name) && v.ends_operand(at.wrapping_sub(1)) {
        let (text, tok) = match v.text(at) {
            "and" => ("&&", Tok::AndAnd),
            "or" => ("||", Tok::OrOr),
            "xor" => ("^", Tok::Caret),
            "mod" => ("%", Tok::Percent),
            "div" => ("/", Tok::Slash),
            "is" | "eq" => ("==", Tok::Eq),
            "as" => {
                let span = v.here();
                let d = v.error(codes::FOREIGN_SPELLING, span, "there is no `as`: a dtype converts as a function does");
                return match v.get(at + 1) {
                    Some(ty) => {
                        let ty = v.span_of(ty);
                        let name = v.text(at + 1);
                        Situation::replace(d.with_help(format!("write `{name}(..)`")), at..at + 2, Vec::new())
                            .filter(|_| !ty.range().is_empty())
                    }
                    None => Situation::hopeless(d),
                };
            }
            _ => ("", Tok::Bad),
        };
        if !text.is_empty() {
            let message = format!("`{}` is no operator; it is written `{text}`", v.text(at));
            return v.respell(at..at + 1, message, text, tok);
        }
    }
    if let Some(before) = at.checked_sub(1)
        && v.text(before) == "new"
        && v.here_tok() == Some(Tok::Name)
        && v.tok(at + 1) == Some(Tok::StaticOpen)
    {
        let d = v.error(codes::FOREIGN_SPELLING, v.span(before), "there is no `new`; `tile` makes a tile");
        let made = v.made(Tok::Tile, v.span(before));
        return Situation::replace(d.with_fix("write `tile`", v.span(before), "tile"), before..at, vec![made]);
    }
    if let Some(before) = at.checked_sub(1)
        && v.prev_tok() == Some(Tok::Name)
        && v.text(before) == "not"
        && v.starts_operand(at)
    {
        let gap = v.span(before).to(v.builder.span(v.here().start, v.here().start));
        let d = v.error(codes::FOREIGN_SPELLING, v.span(before), "`not` is no operator; it is written `!`");
        let made = v.made(Tok::Not, v.span(before));
        return Situation::replace(d.with_fix("write `!`", gap, "!"), before..at, vec![made]);
    }
    if v.wants.operand {
        let text = match v.here_tok()? {
            Tok::Plus => "there is no sign `+`",
            Tok::And => "there are no references; tiles and tensors are passed as they are",
            Tok::Star => "there are no pointers",
            _ => return None,
        };
        // After an operator it is more likely that the operand between them is missing.
        if v.starts_operand(at + 1) && v.glued(at + 1) {
            return v.respell(at..at + 1, text.to_owned(), "", Tok::Bad);
        }
    }
    None
}

/// `(f32)x`
fn casts(v: &View<'_, '_>) -> Option<Situation> {
    let at = v.at;
    let open = at.checked_sub(3)?;
    let shape = (v.tok(open), v.tok(open + 1), v.tok(open + 2));
    if shape != (Some(Tok::LParen), Some(Tok::Name), Some(Tok::RParen)) || !v.starts_operand(at) {
        return None;
    }
    let written = v.text(open + 1);
    let ty = dtype(written)?;
    let span = v.between(open, at - 1);
    let d = v.error(codes::FOREIGN_SPELLING, span, format!("`({written})` is no cast"));
    let simple = v.get(at).is_some_and(|l| matches!(l.tok(), Some(Tok::Name | Tok::Int | Tok::Float)))
        && !matches!(v.tok(at + 1), Some(Tok::LParen | Tok::LBracket | Tok::Dot | Tok::StaticOpen));
    let d = if simple {
        let whole = span.to(v.here());
        d.with_fix("convert by a call", whole, format!("{ty}({})", v.text(at)))
    } else {
        d.with_help(format!("a dtype converts as a function does: `{ty}(..)`"))
    };
    Situation::replace(d, open..at, Vec::new())
}
