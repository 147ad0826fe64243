//! Tokens, read one at a time: extents (`16x64xf32`) are not tokens, and the parser reads them off the text.

pub use smol_str::SmolStr as Word;

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tok {
    /// `%name`
    Value,
    /// `#1` behind a value: one of several results.
    Number,
    /// `@name`
    Symbol,
    /// `^name`
    Block,
    /// `!pto.name`
    Type,
    /// `#pto.name`, `#pto`, `#loc1`
    Attr,
    /// `pto.tadd`, `index`
    Name,
    /// `12`, `-3`, `0x1F`
    Int,
    /// `1.5`, `1e-3`
    Float,
    /// `"text"`
    Str,
    /// A mark, or `->`.
    Mark,
    /// What no token begins with, or a text that does not end.
    Bad,
    /// The end of the text.
    End,
}

/// A token and its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub tok: Tok,
    pub start: usize,
    pub end: usize,
}

/// The token at or behind byte `at`.
pub(crate) fn next(text: &str, at: usize) -> Token {
    let start = skip(text, at);
    let rest = &text[start..];
    let bytes = rest.as_bytes();
    let Some(&first) = bytes.first() else { return Token { tok: Tok::End, start, end: start } };
    let prefixed = |tok: Tok| {
        let len = 1 + name_len(&bytes[1..]);
        (if len > 1 { tok } else { Tok::Bad }, len)
    };
    let (tok, len) = match first {
        b'%' => prefixed(Tok::Value),
        b'^' => prefixed(Tok::Block),
        b'!' => prefixed(Tok::Type),
        b'@' if bytes.get(1) == Some(&b'"') => match string_len(&bytes[1..]) {
            Some(len) => (Tok::Symbol, len + 1),
            None => (Tok::Bad, bytes.len()),
        },
        b'@' => prefixed(Tok::Symbol),
        b'#' if bytes.get(1).is_some_and(u8::is_ascii_digit) => {
            (Tok::Number, 1 + bytes[1..].iter().take_while(|b| b.is_ascii_digit()).count())
        }
        b'#' => prefixed(Tok::Attr),
        b'"' => match string_len(bytes) {
            Some(len) => (Tok::Str, len),
            None => (Tok::Bad, bytes.iter().position(|b| *b == b'\n').unwrap_or(bytes.len())),
        },
        b'-' if bytes.get(1) == Some(&b'>') => (Tok::Mark, 2),
        b'-' if bytes.get(1).is_some_and(u8::is_ascii_digit) => number(bytes),
        b if b.is_ascii_digit() => number(bytes),
        b if is_name_start(b) => (Tok::Name, name_len(bytes)),
        b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' | b',' | b':' | b'=' | b'?' | b'*' | b'/' | b'+'
        | b'-' => (Tok::Mark, 1),
        _ => (Tok::Bad, rest.chars().next().map_or(1, char::len_utf8)),
    };
    Token { tok, start, end: start + len }
}

/// The mark in front of a text that some editors write.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// Behind white space and `//` comments.
pub(crate) fn skip(text: &str, mut at: usize) -> usize {
    if at == 0 && text.starts_with(BYTE_ORDER_MARK) {
        at = BYTE_ORDER_MARK.len_utf8();
    }
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        if !trimmed.starts_with("//") {
            return at;
        }
        at += trimmed.find('\n').unwrap_or(trimmed.len());
    }
}

fn is_name_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_'
}

/// Letters, digits and `_ $ . -`, but no `-` in front of `>`.
fn name_len(bytes: &[u8]) -> usize {
    let part = |(i, b): (usize, &u8)| {
        b.is_ascii_alphanumeric()
            || matches!(b, b'_' | b'$' | b'.')
            || (*b == b'-' && i > 0 && bytes.get(i + 1).is_some_and(|n| *n != b'>' && n.is_ascii_alphanumeric()))
    };
    bytes.iter().enumerate().take_while(|p| part(*p)).count()
}

/// The length of a text with its quotes, if it ends in its line.
fn string_len(bytes: &[u8]) -> Option<usize> {
    let mut i = 1;
    loop {
        match bytes.get(i)? {
            b'"' => return Some(i + 1),
            b'\\' => i += 2,
            b'\n' => return None,
            _ => i += 1,
        }
    }
}

fn number(bytes: &[u8]) -> (Tok, usize) {
    let sign = usize::from(bytes[0] == b'-');
    let digits = |from: usize| bytes[from.min(bytes.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
    if bytes[sign] == b'0' && bytes.get(sign + 1) == Some(&b'x') {
        let hex = bytes[sign + 2..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
        if hex > 0 {
            return (Tok::Int, sign + 2 + hex);
        }
    }
    let mut len = sign + digits(sign);
    let mut tok = Tok::Int;
    if bytes.get(len) == Some(&b'.') {
        tok = Tok::Float;
        len += 1 + digits(len + 1);
    }
    if matches!(bytes.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits(len + 1 + sign);
        if exponent > 0 {
            tok = Tok::Float;
            len += 1 + sign + exponent;
        }
    }
    (tok, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_a_line() {
        let text = "%a:2 = pto.tadd ins(%b#1) // comment\n -> @\"f g\" !pto.ptr #pto<x> -1.5e+00 0x1F %é";
        let (mut at, mut seen) = (0, Vec::new());
        loop {
            let t = next(text, at);
            if t.tok == Tok::End {
                break;
            }
            seen.push((t.tok, &text[t.start..t.end]));
            at = t.end;
        }
        use Tok::*;
        let expected = [
            (Value, "%a"),
            (Mark, ":"),
            (Int, "2"),
            (Mark, "="),
            (Name, "pto.tadd"),
            (Name, "ins"),
            (Mark, "("),
            (Value, "%b"),
            (Number, "#1"),
            (Mark, ")"),
            (Mark, "->"),
            (Symbol, "@\"f g\""),
            (Type, "!pto.ptr"),
            (Attr, "#pto"),
            (Mark, "<"),
            (Name, "x"),
            (Mark, ">"),
            (Float, "-1.5e+00"),
            (Int, "0x1F"),
            (Bad, "%"),
            (Bad, "é"),
        ];
        assert_eq!(seen, expected);
    }
}
