//! Text to tokens. What logos cannot say in a regular expression (whole malformed numbers, strings, foreign comments,
//! characters that look like ours) is scanned here, so that every lexical mistake is reported once and exactly.

use logos::Logos;
use ptoc_diagnostics::{Diagnostic, Edit, FileId, Fix, Span, codes};

use crate::confusables::{self, Likeness};
use crate::token::Tok;

/// A token at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    /// Its kind.
    pub tok: Tok,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// The tokens of a text with its lexical errors.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    /// Everything but white space, in order, not overlapping.
    pub tokens: Vec<Token>,
    /// Lexical errors.
    pub diagnostics: Vec<Diagnostic>,
    /// Reports beyond [`MAX_ERRORS`] that were dropped.
    pub dropped: usize,
}

/// Lexer, bracket pass and parser report at most this many errors each for one text.
pub const MAX_ERRORS: usize = 100;

/// Splits `text` into tokens. Never fails.
pub(crate) fn lex(file: FileId, text: &str) -> Lexed {
    let mut lexer = Lexer { file, text, out: Lexed::default(), spaces: Vec::new(), no_comment_end: false };
    let mut raw = Tok::lexer(text);
    while let Some(result) = raw.next() {
        let (start, len) = (raw.span().start, raw.span().len());
        let (tok, whole) = match result {
            Ok(Tok::Int) => lexer.number(start),
            Ok(Tok::Str) => lexer.string(start, '"'),
            Ok(Tok::Comment) => lexer.comment(start),
            Ok(Tok::BlockComment) => lexer.block_comment(start),
            Ok(Tok::Hash) => lexer.hash(start),
            Ok(tok) => (tok, len),
            Err(()) => match lexer.unknown(start) {
                (Some(tok), whole) => (tok, whole),
                (None, whole) => {
                    raw.bump(whole.saturating_sub(len));
                    continue;
                }
            },
        };
        // `whole` ends on a character boundary, and never before what logos took: see each scanner.
        raw.bump(whole.saturating_sub(len));
        lexer.push(tok, start, start + whole.max(len));
    }
    lexer.report_spaces();
    lexer.out
}

struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    out: Lexed,
    /// Foreign white space: usually all of it was pasted at once, so it is one report.
    spaces: Vec<(usize, char, &'static str)>,
    /// No `*/` follows any more: not to be looked for again.
    no_comment_end: bool,
}

impl Lexer<'_> {
    fn push(&mut self, tok: Tok, start: usize, end: usize) {
        let token = |tok, start: usize, end: usize| Token { tok, start: start as u32, end: end as u32 };
        // Characters without meaning in a row are one error.
        if tok == Tok::Bad
            && let Some(last) = self.out.tokens.last_mut()
            && last.tok == Tok::Bad
            && last.end as usize == start
        {
            last.end = end as u32;
            return;
        }
        let after_dot = self.out.tokens.last().is_some_and(|t| t.tok == Tok::Dot);
        if after_dot && tok.word().is_some() {
            self.out.tokens.push(token(Tok::Name, start, end)); // `.tile(i, j)`
        } else if after_dot && tok == Tok::Float {
            self.tuple_fields(start, end);
        } else {
            self.out.tokens.push(token(tok, start, end));
        }
    }

    /// `x.0.1`: what looks like a float after a dot is two fields.
    fn tuple_fields(&mut self, start: usize, end: usize) {
        let part = &self.text[start..end];
        let mut push = |tok, from: usize, to: usize| {
            self.out.tokens.push(Token { tok, start: from as u32, end: to as u32 });
        };
        match part.find('.') {
            Some(dot) if part.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
                push(Tok::Int, start, start + dot);
                push(Tok::Dot, start + dot, start + dot + 1);
                push(Tok::Int, start + dot + 1, end);
            }
            _ => push(Tok::Float, start, end),
        }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start as u32, end as u32)
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.out.diagnostics.len() < MAX_ERRORS {
            self.out.diagnostics.push(diagnostic);
        } else {
            self.out.dropped += 1;
        }
    }

    /// A number and whatever letters are glued to it.
    fn number(&mut self, start: usize) -> (Tok, usize) {
        let bytes = &self.text.as_bytes()[start..];
        let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
        let word = |mut i: usize| {
            while at(i).is_ascii_alphanumeric() || at(i) == b'_' {
                i += 1;
            }
            i
        };
        let digits = |mut i: usize| {
            while at(i).is_ascii_digit() || at(i) == b'_' {
                i += 1;
            }
            i
        };
        if at(0) == b'0' && at(1).is_ascii_alphabetic() && !matches!(at(1), b'e' | b'E') {
            return self.radix_number(start, word(2));
        }
        // A dot directly before means a tuple field: `x.0.1`.
        let int_end = digits(0);
        let mut end = int_end;
        let mut float = false;
        if at(end) == b'.' && at(end + 1).is_ascii_digit() {
            float = true;
            end = digits(end + 1);
        } else if at(end) == b'.' && !(at(end + 1) == b'.' || at(end + 1) == b'_' || at(end + 1).is_ascii_alphabetic())
        {
            let span = self.span(start, start + end + 1);
            let number = &self.text[start..start + end];
            let fix = format!("{number}.0");
            let message = format!("`{number}.` is no number: a digit must follow the point");
            self.report(Diagnostic::error(codes::BAD_NUMBER, span, message).with_fix(
                format!("write `{fix}`"),
                span,
                fix,
            ));
            return (Tok::BadNumber, end + 1);
        }
        if matches!(at(end), b'e' | b'E') {
            let sign = usize::from(matches!(at(end + 1), b'+' | b'-'));
            if at(end + 1 + sign).is_ascii_digit() {
                float = true;
                end = digits(end + 1 + sign);
            } else if sign == 1 || word(end) == end + 1 {
                let span = self.span(start, start + end + 1 + sign);
                let number = &self.text[span.range()];
                let message = format!("`{number}` is no number: digits must follow the exponent mark");
                self.report(Diagnostic::error(codes::BAD_NUMBER, span, message));
                return (Tok::BadNumber, end + 1 + sign);
            }
        }
        let whole = word(end);
        if whole > end {
            self.glued_letters(start, start + end, start + whole, float);
            return (Tok::BadNumber, whole);
        }
        if !float && self.text[start..start + end].bytes().filter(u8::is_ascii_digit).count() > 38 {
            self.check_size(start, start + end, 10);
        }
        (if float { Tok::Float } else { Tok::Int }, end)
    }

    /// `0x..`, `0b..`, and other letters after a zero.
    fn radix_number(&mut self, start: usize, len: usize) -> (Tok, usize) {
        let text = &self.text[start..start + len];
        let span = self.span(start, start + len);
        let (radix, what) = match text.as_bytes()[1] {
            b'x' | b'X' => (16, "hexadecimal"),
            b'b' | b'B' => (2, "binary"),
            b'o' | b'O' => {
                let mut d = Diagnostic::error(codes::BAD_NUMBER, span, "octal numbers are not in the language");
                if let Ok(value) = i128::from_str_radix(&text[2..].replace('_', ""), 8) {
                    d = d.with_fix("write it in hexadecimal", span, format!("{value:#x}"));
                }
                self.report(d);
                return (Tok::BadNumber, len);
            }
            _ => {
                self.glued_letters(start, start + 1, start + len, false);
                return (Tok::BadNumber, len);
            }
        };
        if text.as_bytes()[1].is_ascii_uppercase() {
            let mark = self.span(start + 1, start + 2);
            let lower = text[1..2].to_ascii_lowercase();
            self.report(
                Diagnostic::error(codes::BAD_NUMBER, span, format!("the prefix of a {what} number is in lower case"))
                    .with_fix(format!("write `0{lower}`"), mark, lower),
            );
            return (Tok::BadNumber, len);
        }
        let digits = &text[2..];
        if let Some((i, c)) = digits.char_indices().find(|(_, c)| *c != '_' && !c.is_digit(radix)) {
            let at = self.span(start + 2 + i, start + 2 + i + c.len_utf8());
            self.report(
                Diagnostic::error(codes::BAD_NUMBER, at, format!("`{c}` is no {what} digit"))
                    .with_secondary(span, "in this number"),
            );
            return (Tok::BadNumber, len);
        }
        if !digits.bytes().any(|b| b != b'_') {
            self.report(Diagnostic::error(codes::BAD_NUMBER, span, format!("`{text}` has no {what} digits")));
            return (Tok::BadNumber, len);
        }
        self.check_size(start, start + len, radix);
        (Tok::Int, len)
    }

    /// Letters right after a number: a suffix of another language, or a missing space.
    fn glued_letters(&mut self, start: usize, end: usize, whole: usize, float: bool) {
        let (number, letters) = (&self.text[start..end], &self.text[end..whole]);
        let span = self.span(start, whole);
        let suffix = letters.trim_start_matches('_');
        let dtype = match suffix {
            "f" | "F" => Some("f32"),
            "u" | "U" => Some("u32"),
            "f8e4m3" | "f8e5m2" | "f16" | "f32" | "f64" | "bf16" | "i8" | "i16" | "i32" | "i64" | "u8" | "u16"
            | "u32" | "u64" => Some(suffix),
            _ => None,
        };
        let mut d =
            Diagnostic::error(codes::BAD_NUMBER, span, format!("`{letters}` is glued to the number `{number}`"));
        if let Some(dtype) = dtype {
            let number = if float || !dtype.contains('f') { number.to_owned() } else { format!("{number}.0") };
            d = d
                .with_note("literals have no suffix; they adopt the dtype of the other side")
                .with_fix("drop the suffix", span, number.clone())
                .with_fix("convert", span, format!("{dtype}({number})"));
        }
        self.report(d);
    }

    /// Integers are checked 128-bit numbers; what is beyond is reported here and has no value.
    fn check_size(&mut self, start: usize, end: usize, radix: u32) {
        if int_value(&self.text[start..end]).is_none() {
            let count = self.text[start..end].bytes().filter(u8::is_ascii_alphanumeric).count();
            let count = if radix == 10 { count } else { count - 2 };
            let span = self.span(start, end);
            self.report(
                Diagnostic::error(
                    codes::NUMBER_TOO_LARGE,
                    span,
                    format!("this integer of {count} digits is too large"),
                )
                .with_note("integers are signed numbers of 128 bits: at most 170141183460469231731687303715884105727"),
            );
        }
    }

    /// A string from its opening quote; `close` is the quote that ends it.
    fn string(&mut self, start: usize, close: char) -> (Tok, usize) {
        let open = self.text[start..].chars().next().map_or(1, char::len_utf8);
        // Not cut at the end of the line at once: a line may hold many strings.
        let line = &self.text[start + open..];
        let mut chars = line.char_indices();
        while let Some((i, c)) = chars.next() {
            if c == '\n' {
                break;
            }
            if c == close {
                return (Tok::Str, open + i + c.len_utf8());
            }
            if c != '\\' {
                continue;
            }
            let at = start + open + i;
            match chars.next() {
                Some((_, 'n' | 't' | 'r' | '0' | '\\' | '"')) => {}
                Some((_, 'u')) => {
                    let hex = line[i + 2..].strip_prefix('{').and_then(|h| h.split_once('}')).map(|(h, _)| h);
                    let ok = hex.and_then(|h| u32::from_str_radix(h, 16).ok()).and_then(char::from_u32).is_some();
                    if !ok {
                        let span = self.span(at, at + 2);
                        self.report(
                            Diagnostic::error(codes::BAD_ESCAPE, span, "`\\u` needs a character's number in braces")
                                .with_help("write it as in `\\u{3b1}`"),
                        );
                    }
                }
                Some((_, c)) => {
                    let span = self.span(at, at + 1 + c.len_utf8());
                    let what: String = c.escape_debug().collect();
                    let slash = self.span(at, at + 1);
                    self.report(
                        Diagnostic::error(codes::BAD_ESCAPE, span, format!("`\\{what}` is no escape"))
                            .with_note("the escapes are \\n \\t \\r \\0 \\\\ \\\" and \\u{..}")
                            .with_fix("for a backslash write `\\\\`", slash, "\\\\"),
                    );
                }
                None => {}
            }
        }
        let line = line[..line.find('\n').unwrap_or(line.len())].trim_end();
        // The text that a call's `);` follows probably ended before them.
        let text = line.trim_end_matches([')', ';', ',']);
        let end = start + open + if text.is_empty() { line.len() } else { text.len() };
        let span = self.span(start, end);
        self.report(
            Diagnostic::error(codes::UNTERMINATED_STRING, span, "this string does not end on its line")
                .with_label("it starts here")
                .with_fix("close it", span.after(), "\""),
        );
        (Tok::Str, end - start)
    }

    fn comment(&mut self, start: usize) -> (Tok, usize) {
        let line = &self.text[start..];
        let line = &line[..line.find('\n').unwrap_or(line.len())];
        let line = line.strip_suffix('\r').unwrap_or(line);
        let tok = if line.starts_with("//!") {
            Tok::FileDoc
        } else if line.starts_with("///") && !line.starts_with("////") {
            Tok::DocComment
        } else {
            Tok::Comment
        };
        (tok, line.len())
    }

    fn block_comment(&mut self, start: usize) -> (Tok, usize) {
        let rest = &self.text[start..];
        let close = if self.no_comment_end { None } else { rest[2..].find("*/") };
        let Some(close) = close else {
            self.no_comment_end = true;
            let line_len = rest.find('\n').unwrap_or(rest.len());
            let span = self.span(start, start + 2);
            self.report(
                Diagnostic::error(codes::BLOCK_COMMENT, span, "`/*` comments are not in the language")
                    .with_note("this one has no `*/` either; only its first line was skipped")
                    .with_fix("write `//`", span, "//"),
            );
            return (Tok::BlockComment, line_len);
        };
        let len = close + 4;
        let span = self.span(start, start + len);
        let after = rest[len..].trim_start_matches([' ', '\t', '\r']);
        let ends_line = after.is_empty() || after.starts_with('\n');
        let mut d = Diagnostic::error(codes::BLOCK_COMMENT, span, "`/* .. */` comments are not in the language");
        if ends_line {
            let indent: String = line_indent(self.text, start);
            let lines = rest[2..len - 2].trim().lines().map(|l| l.trim().trim_start_matches('*').trim());
            let text: Vec<String> = lines.map(|l| format!("// {l}").trim_end().to_owned()).collect();
            d = d.with_fix("write `//` on each line", span, text.join(&format!("\n{indent}")));
        } else {
            d = d.with_help("write a `//` comment: it runs to the end of its line");
        }
        self.report(d);
        (Tok::BlockComment, len)
    }

    /// `#` opens an attribute; otherwise it is a comment of another language.
    fn hash(&mut self, start: usize) -> (Tok, usize) {
        let rest = &self.text[start..];
        if rest[1..].trim_start_matches([' ', '\t']).starts_with('[') {
            return (Tok::Hash, 1);
        }
        let len = rest.find('\n').unwrap_or(rest.len());
        let len = rest[..len].trim_end().len();
        let span = self.span(start, start + 1);
        self.report(
            Diagnostic::error(codes::UNKNOWN_CHARACTER, span, "`#` does not start a comment")
                .with_note("comments start with `//`; `#[name(..)]` is an attribute")
                .with_fix("write `//`", span, "//"),
        );
        (Tok::BlockComment, len)
    }

    /// A character outside the language. One that looks like one of ours is read as that.
    fn unknown(&mut self, start: usize) -> (Option<Tok>, usize) {
        let Some(c) = self.text[start..].chars().next() else { return (None, 0) };
        let span = self.span(start, start + c.len_utf8());
        match confusables::find(c) {
            Some(Likeness::Mark(name, text, tok)) => {
                let code = u32::from(c);
                let message = format!("`{c}` (U+{code:04X}, {name}) is not `{text}`");
                let d = Diagnostic::error(codes::UNKNOWN_CHARACTER, span, message);
                self.report(d.with_fix(format!("write `{text}`"), span, text));
                (Some(tok), c.len_utf8())
            }
            Some(Likeness::Space(name)) => {
                if start > 0 || c != '\u{FEFF}' {
                    self.spaces.push((start, c, name));
                }
                (None, c.len_utf8())
            }
            Some(Likeness::Quote(close)) => {
                let (tok, len) = self.foreign_quote(start, c, close);
                (Some(tok), len)
            }
            None => {
                let (tok, len) = self.no_character(start, c);
                (Some(tok), len)
            }
        }
    }

    fn report_spaces(&mut self) {
        let spaces = std::mem::take(&mut self.spaces);
        let Some(&(start, c, name)) = spaces.first() else { return };
        let span = |start: usize, c: char| self.span(start, start + c.len_utf8());
        let message = format!("U+{:04X} ({name}) is not a space of the language", u32::from(c));
        let mut d = Diagnostic::error(codes::UNKNOWN_CHARACTER, span(start, c), message);
        if spaces.len() > 1 {
            d = d.with_note(format!("there are {} such characters in this file", spaces.len()));
        }
        let invisible = |c| matches!(c, '\u{200B}'..='\u{200D}' | '\u{FEFF}');
        let edit = |&(start, c, _): &(usize, char, _)| Edit {
            span: span(start, c),
            text: if invisible(c) { "" } else { " " }.to_owned(),
        };
        d.fixes.push(Fix::certain("write ordinary spaces", spaces.iter().map(edit).collect()));
        self.report(d);
    }

    /// A string in quotes of another kind.
    fn foreign_quote(&mut self, start: usize, open: char, close: char) -> (Tok, usize) {
        let line = &self.text[start + open.len_utf8()..];
        let span = self.span(start, start + open.len_utf8());
        let message = format!("strings stand in `\"`, not in `{open}`");
        let d = Diagnostic::error(codes::UNKNOWN_CHARACTER, span, message);
        let window = line.char_indices().take(80).take_while(|(_, c)| *c != '\n');
        let end = window.into_iter().find(|(_, c)| *c == close || *c == '"');
        let Some((end, _)) = end else {
            self.report(d.with_fix("write `\"`", span, "\""));
            return (Tok::Bad, open.len_utf8());
        };
        let text = line[..end].to_owned();
        let closing = line[end..].chars().next().map_or(1, char::len_utf8);
        let len = open.len_utf8() + end + closing;
        let whole = self.span(start, start + len);
        self.report(Diagnostic { span: Some(whole), ..d }.with_fix("use `\"`", whole, format!("\"{text}\"")));
        (Tok::Str, len)
    }

    fn no_character(&mut self, start: usize, c: char) -> (Tok, usize) {
        let follows_bad = self.out.tokens.last().is_some_and(|t| t.tok == Tok::Bad && t.end as usize == start);
        if follows_bad {
            return (Tok::Bad, c.len_utf8());
        }
        let rest = &self.text[start..];
        let run = |c: char| !c.is_ascii() && confusables::find(c).is_none() && !c.is_whitespace();
        let len = if c.is_ascii() { 1 } else { rest.find(|c| !run(c)).unwrap_or(rest.len()) };
        let len = len.max(c.len_utf8());
        let span = self.span(start, start + len);
        let shown: String = rest[..len].chars().take(16).flat_map(char::escape_debug).collect();
        let d = if c.is_alphabetic() {
            let message = format!("`{shown}` cannot be in a name: names are ASCII letters, digits and `_`");
            Diagnostic::error(codes::UNKNOWN_CHARACTER, span, message)
        } else {
            let shown = if c == '`' { "a backtick".to_owned() } else { format!("`{shown}`") };
            Diagnostic::error(codes::UNKNOWN_CHARACTER, span, format!("{shown} is no token of the language"))
        };
        let d = match c {
            '~' => d.with_note("to flip the bits of an integer, `x ^ -1`; to negate a condition, `!x`"),
            '?' => d.with_note("a choice is written `if a { b } else { c }`"),
            '$' => d.with_note("names need no mark; in a message, `{NAME}` stands for a value"),
            '\\' => d.with_note("a statement may go on on the next line without a mark"),
            '`' => d.with_note("strings stand in `\"`"),
            _ => d,
        };
        self.report(d);
        (Tok::Bad, len)
    }
}

/// The white space that begins the line of byte `at`.
pub(crate) fn line_indent(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map_or(0, |i| i + 1);
    text[line..].chars().take_while(|c| *c == ' ' || *c == '\t').collect()
}

/// The value of a well-formed integer literal, if 128 bits hold it.
pub(crate) fn int_value(text: &str) -> Option<i128> {
    let text: String = text.chars().filter(|c| *c != '_').collect();
    match text.get(..2) {
        Some("0x") => i128::from_str_radix(&text[2..], 16).ok(),
        Some("0b") => i128::from_str_radix(&text[2..], 2).ok(),
        _ => text.parse().ok(),
    }
}

/// The characters of a string literal, quotes removed and escapes resolved. Malformed escapes stay as they are.
pub(crate) fn string_value(literal: &str) -> String {
    let mut inner = literal.chars();
    inner.next();
    let mut inner = inner.as_str();
    if let Some(last) = inner.chars().next_back()
        && (last == '"' || confusables::find(last).is_some_and(|l| matches!(l, Likeness::Quote(_))))
    {
        inner = &inner[..inner.len() - last.len_utf8()];
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (c, used) = match rest[at + 1..].chars().next() {
            Some('n') => ('\n', 2),
            Some('t') => ('\t', 2),
            Some('r') => ('\r', 2),
            Some('0') => ('\0', 2),
            Some(c @ ('\\' | '"')) => (c, 2),
            Some('u') => {
                let hex = rest[at + 2..].strip_prefix('{').and_then(|h| h.split_once('}')).map(|(h, _)| h);
                let c = hex.and_then(|h| Some((char::from_u32(u32::from_str_radix(h, 16).ok()?)?, h.len() + 4)));
                c.unwrap_or(('\\', 1))
            }
            _ => ('\\', 1),
        };
        out.push(c);
        rest = &rest[at + used..];
    }
    out.push_str(rest);
    out
}
