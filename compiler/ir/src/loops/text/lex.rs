//! Tokens of loop IR's text.

use ptoc_diagnostics::{Diagnostic, FileId, Span, codes};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TokenKind {
    /// `lanes`, `r3`, `f32`
    Word,
    /// `12`, `-3`, `1.5e-7`, `0x7fc00000`
    Number,
    /// `"..."` with the quotes.
    Text,
    /// One of `( ) [ ] { } : , = @`, or `..`, or `->`.
    Mark,
    /// After the last token.
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    pub(super) span: Span,
}

/// All tokens, with an `End` as the last.
pub(super) fn tokens(text: &str, file: FileId) -> Result<Vec<Token<'_>>, Diagnostic> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    let span = |from: usize, to: usize| Span::new(file, from as u32, to as u32);
    if u32::try_from(text.len()).is_err() {
        return Err(Diagnostic::global(codes::LOOP_IR_SYNTAX, "text of 4 GiB or more"));
    }
    let run = |from: usize, ok: fn(u8) -> bool| from + bytes[from..].iter().take_while(|b| ok(**b)).count();
    while at < bytes.len() {
        let start = at;
        let next = bytes.get(at + 1).copied().unwrap_or(0);
        let kind = match bytes[at] {
            b if b.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if next == b'/' => {
                at = run(at, |b| b != b'\n');
                continue;
            }
            b if b.is_ascii_alphabetic() || b == b'_' => {
                at = run(at, |b| b.is_ascii_alphanumeric() || b == b'_');
                TokenKind::Word
            }
            b if b.is_ascii_digit() || (b == b'-' && next.is_ascii_digit()) => {
                at = number(bytes, at);
                TokenKind::Number
            }
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                if at >= bytes.len() {
                    let message = "this text has no closing quote";
                    return Err(Diagnostic::error(codes::LOOP_IR_SYNTAX, span(start, bytes.len()), message));
                }
                at += 1;
                TokenKind::Text
            }
            b'.' if next == b'.' => {
                at += 2;
                TokenKind::Mark
            }
            b'-' if next == b'>' => {
                at += 2;
                TokenKind::Mark
            }
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b':' | b',' | b'=' | b'@' => {
                at += 1;
                TokenKind::Mark
            }
            _ => {
                let c = text[at..].chars().next().unwrap_or('?');
                let message = format!("loop IR has no `{}`", c.escape_debug());
                return Err(Diagnostic::error(codes::LOOP_IR_SYNTAX, span(at, at + c.len_utf8()), message));
            }
        };
        // A backslash before a multi-byte character may have skipped to its middle.
        while !text.is_char_boundary(at) {
            at += 1;
        }
        tokens.push(Token { kind, text: &text[start..at], span: span(start, at) });
    }
    tokens.push(Token { kind: TokenKind::End, text: "", span: span(text.len(), text.len()) });
    Ok(tokens)
}

/// Where the number that starts at `at` ends. `1..2` is a range: a point belongs to a number before a digit only.
fn number(bytes: &[u8], mut at: usize) -> usize {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    if byte(at) == b'-' {
        at += 1;
    }
    let digits = |mut at: usize| {
        while byte(at).is_ascii_digit() {
            at += 1;
        }
        at
    };
    if byte(at) == b'0' && byte(at + 1) == b'x' {
        at += 2;
        while byte(at).is_ascii_hexdigit() {
            at += 1;
        }
        return at;
    }
    at = digits(at);
    if byte(at) == b'.' && byte(at + 1).is_ascii_digit() {
        at = digits(at + 1);
    }
    let sign = usize::from(matches!(byte(at + 1), b'+' | b'-'));
    if byte(at) == b'e' && byte(at + 1 + sign).is_ascii_digit() {
        at = digits(at + 1 + sign);
    }
    at
}
