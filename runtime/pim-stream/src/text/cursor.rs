//! A place in a text, and the small parts that are read from there.

use super::TextError;
use std::ops::Range;

/// Reads one line of a text from left to right.
pub(super) struct Cursor<'t> {
    pub text: &'t str,
    pub at: usize,
    /// The end of the line, its comment left out.
    pub end: usize,
}

pub(super) type Read<T> = Result<T, TextError>;

impl<'t> Cursor<'t> {
    pub fn error<T>(&self, bytes: Range<usize>, message: impl Into<String>) -> Read<T> {
        Err(error(self.text, bytes, message))
    }

    /// An error about what stands here.
    pub fn here<T>(&self, message: impl Into<String>) -> Read<T> {
        let rest = self.rest();
        let len = rest.find(|c: char| c.is_whitespace() || c == ',' || c == ')').unwrap_or(rest.len());
        let len = len.max(rest.chars().next().map_or(0, char::len_utf8));
        self.error(self.at..self.at + len, message)
    }

    pub fn rest(&self) -> &'t str {
        &self.text[self.at..self.end]
    }

    pub fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    pub fn is_end(&mut self) -> bool {
        self.space();
        self.at == self.end
    }

    /// Takes the text if it stands here.
    pub fn eat(&mut self, text: &str) -> bool {
        self.space();
        let hit = self.rest().starts_with(text);
        if hit {
            self.at += text.len();
        }
        hit
    }

    pub fn expect(&mut self, text: &str) -> Read<()> {
        match self.eat(text) {
            true => Ok(()),
            false => self.here(format!("`{text}` should be here")),
        }
    }

    /// Takes the word if it stands here as a whole one.
    pub fn eat_word(&mut self, word: &str) -> bool {
        self.space();
        let hit = self.peek_word() == word;
        if hit {
            self.at += word.len();
        }
        hit
    }

    fn peek_word(&self) -> &'t str {
        let rest = self.rest();
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
        let len = rest.find(|c| !inside(c)).unwrap_or(rest.len());
        // `a->` is `a`.
        rest[..len].trim_end_matches('-')
    }

    /// Letters, digits, `_`, `.` and `-`.
    pub fn word(&mut self, what: &str) -> Read<(&'t str, Range<usize>)> {
        self.space();
        let word = self.peek_word();
        if word.is_empty() {
            return self.here(format!("{what} should be here"));
        }
        let start = self.at;
        self.at += word.len();
        Ok((word, start..self.at))
    }

    /// A whole number, decimal or hexadecimal.
    pub fn number(&mut self, what: &str) -> Read<u64> {
        self.below(what, u64::MAX)
    }

    /// A number of at most `most`.
    pub fn below(&mut self, what: &str, most: u64) -> Read<u64> {
        self.space();
        let rest = self.rest();
        let len = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let digits = &rest[..len];
        if !digits.starts_with(|c: char| c.is_ascii_digit()) {
            return self.here(format!("{what}, a number, should be here"));
        }
        let parsed = match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        match parsed {
            Ok(n) if n <= most => {
                self.at += len;
                Ok(n)
            }
            Ok(n) => self.error(self.at..self.at + len, format!("{what} is at most {most}, and this is {n}")),
            Err(_) => self.error(self.at..self.at + len, format!("`{digits}` is no whole number below 2^64")),
        }
    }

    pub fn small(&mut self, what: &str) -> Read<u32> {
        Ok(self.below(what, u64::from(u32::MAX))? as u32)
    }

    pub fn half(&mut self, what: &str) -> Read<u16> {
        Ok(self.below(what, u64::from(u16::MAX))? as u16)
    }

    /// One of several words.
    pub fn one_of<T: Copy>(&mut self, what: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Read<T> {
        let (word, bytes) = self.word(what)?;
        match all.iter().find(|v| name(**v) == word) {
            Some(value) => Ok(*value),
            None => {
                let known: Vec<&str> = all.iter().map(|v| name(*v)).collect();
                let mut e = error(self.text, bytes, format!("{what} is no `{word}`"));
                e.help = format!("it is one of {}", known.join(", "));
                Err(e)
            }
        }
    }

    /// A text in quotes; `\"` and `\\` stand for `"` and `\`.
    pub fn quoted(&mut self) -> Read<String> {
        self.space();
        let start = self.at;
        self.expect("\"")?;
        let mut out = String::new();
        let mut escaped = false;
        for (n, c) in self.rest().char_indices() {
            match (escaped, c) {
                (false, '\\') => escaped = true,
                (false, '"') => {
                    self.at += n + 1;
                    return Ok(out);
                }
                (true, '"' | '\\') | (false, _) if !c.is_control() => {
                    out.push(c);
                    escaped = false;
                }
                _ => return self.error(self.at + n..self.at + n + c.len_utf8(), "this cannot stand in a name"),
            }
        }
        self.error(start..self.end, "the closing `\"` is missing")
    }

    /// `from FILE:LINE`
    pub fn from(&mut self) -> Read<super::SourceLine> {
        match self.eat_word("from") {
            true => self.place(),
            false => Ok(super::SourceLine::default()),
        }
    }

    pub fn place(&mut self) -> Read<super::SourceLine> {
        let file = self.small("the number of a file")?;
        self.expect(":")?;
        Ok(super::SourceLine { file, line: self.small("a line")? })
    }

    pub fn finish(&mut self) -> Read<()> {
        match self.is_end() {
            true => Ok(()),
            false => self.error(self.at..self.end, "this is too much"),
        }
    }
}

/// An error with its line and column.
pub(super) fn error(text: &str, bytes: Range<usize>, message: impl Into<String>) -> TextError {
    let before = &text[..bytes.start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    TextError {
        message: message.into(),
        line: before.bytes().filter(|b| *b == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        bytes,
        help: String::new(),
    }
}
