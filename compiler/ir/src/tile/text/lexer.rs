//! Words, numbers, strings and punctuation of the text form.

use ptoc_diagnostics::{Diagnostic, FileId, Span, codes};

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tok<'t> {
    /// `v3`, `tadd`, `PA-1003`
    Word(&'t str),
    /// A number as written, also negative and hexadecimal, and `-inf`.
    Num(&'t str),
    /// A string, unescaped.
    Str(String),
    /// A character; `..` is `'…'`.
    Punct(char),
    /// The end of the text.
    End,
}

impl Tok<'_> {
    /// As it is named in messages.
    pub fn show(&self) -> String {
        match self {
            Tok::Word(w) => format!("`{w}`"),
            Tok::Num(n) => format!("`{n}`"),
            Tok::Str(_) => "a string".to_owned(),
            Tok::Punct('…') => "`..`".to_owned(),
            Tok::Punct(c) => format!("`{c}`"),
            Tok::End => "the end of the text".to_owned(),
        }
    }
}

/// Length of the leading part of `text` whose characters satisfy `f`.
fn run(text: &str, f: impl Fn(char) -> bool) -> usize {
    text.find(|c| !f(c)).unwrap_or(text.len())
}

fn word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// All tokens with their places. The last is `End`.
pub(super) fn lex(text: &str, file: FileId) -> Result<Vec<(Tok<'_>, Span)>, Box<Diagnostic>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    if u32::try_from(text.len()).is_err() {
        return Err(Diagnostic::global(codes::IR_SYNTAX, "the text is larger than 4 GiB").into());
    }
    let span = |from: usize, to: usize| Span::new(file, from as u32, to as u32);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let start = at;
        let tok = match c {
            _ if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '/' if rest.starts_with("//") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            '"' => {
                let (string, len) = string(rest).ok_or_else(|| {
                    Diagnostic::error(codes::IR_SYNTAX, span(start, start + 1), "a string that does not end well")
                })?;
                at += len;
                Tok::Str(string)
            }
            '.' if rest.starts_with("..") => {
                at += 2;
                Tok::Punct('…')
            }
            '-' if rest.starts_with("-inf") => {
                at += 4;
                Tok::Num(&rest[..4])
            }
            '-' | '0'..='9' => {
                let len = number(rest);
                at += len;
                Tok::Num(&rest[..len])
            }
            _ if c.is_ascii_alphabetic() || c == '_' => {
                let mut len = run(rest, word_char);
                // A code: `PA-1003`.
                let tail = &rest[len..];
                if tail.len() > 1 && tail.starts_with('-') && tail.as_bytes()[1].is_ascii_digit() {
                    len += 1 + run(&tail[1..], |c| c.is_ascii_digit());
                }
                at += len;
                Tok::Word(&rest[..len])
            }
            '{' | '}' | '[' | ']' | '(' | ')' | '<' | '>' | ',' | ':' | '=' | '+' | '#' | '@' | '.' | '?' => {
                at += 1;
                Tok::Punct(c)
            }
            _ => {
                let place = span(start, start + c.len_utf8());
                return Err(Diagnostic::error(codes::IR_SYNTAX, place, format!("{c:?} is no part of tile IR")).into());
            }
        };
        tokens.push((tok, span(start, at)));
    }
    tokens.push((Tok::End, span(at, at)));
    Ok(tokens)
}

/// Length of a number: decimal, `0x` hexadecimal, or with a fraction or exponent.
fn number(text: &str) -> usize {
    let sign = usize::from(text.starts_with('-'));
    let digits = |from: usize| from + run(&text[from..], |c| c.is_ascii_digit());
    if text[sign..].starts_with("0x") {
        return sign + 2 + run(&text[sign + 2..], |c| c.is_ascii_hexdigit());
    }
    let mut at = digits(sign);
    let tail = &text.as_bytes()[at..];
    // `1.5`, but not `1..2`.
    if tail.len() > 1 && tail[0] == b'.' && tail[1].is_ascii_digit() {
        at = digits(at + 1);
    }
    let tail = &text.as_bytes()[at..];
    if tail.first() == Some(&b'e') {
        let signed = usize::from(matches!(tail.get(1), Some(b'-' | b'+')));
        if tail.get(1 + signed).is_some_and(u8::is_ascii_digit) {
            at = digits(at + 1 + signed);
        }
    }
    at
}

/// A string literal at the start of `text`, and its length.
fn string(text: &str) -> Option<(String, usize)> {
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    loop {
        match chars.next()? {
            (i, '"') => return Some((out, i + 1)),
            (_, '\n') => return None,
            (_, '\\') => match chars.next()?.1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                c @ ('"' | '\\') => out.push(c),
                'u' => {
                    if chars.next()?.1 != '{' {
                        return None;
                    }
                    let mut code = 0u32;
                    loop {
                        match chars.next()?.1 {
                            '}' => break,
                            c => code = code.checked_mul(16)?.checked_add(c.to_digit(16)?)?,
                        }
                    }
                    out.push(char::from_u32(code)?);
                }
                _ => return None,
            },
            (_, c) => out.push(c),
        }
    }
}
