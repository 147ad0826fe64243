//! JSON (RFC 8259) with places. A parser of our own, because ours must locate every value and not only syntax errors.

use super::{InputError, Key, Node, Value};

/// Nesting beyond this is refused, so that input cannot exhaust the stack.
const MAX_DEPTH: usize = 64;

pub(super) fn parse(text: &str) -> Result<Node, InputError> {
    let mut parser = Parser { text, at: if text.starts_with('\u{feff}') { 3 } else { 0 } };
    let node = parser.value(0)?;
    parser.space();
    if parser.at < text.len() {
        return Err(parser.error_here("something follows the end of the JSON document"));
    }
    Ok(node)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn error_here(&self, message: impl Into<String>) -> InputError {
        let length = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        InputError::at(self.text, self.at..self.at + length, message)
    }

    fn expected(&self, what: &str) -> InputError {
        match self.text[self.at..].chars().next() {
            None => self.error_here(format!("the text ends where {what} should be")),
            Some(c) => self.error_here(format!("{what} should be here, not `{}`", c.escape_default())),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, InputError> {
        self.space();
        let start = self.at;
        if depth > MAX_DEPTH {
            return Err(self.error_here(format!("more than {MAX_DEPTH} levels of nesting")));
        }
        let value = match self.peek() {
            Some(b'{') => self.table(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'a'..=b'z') => self.word()?,
            _ => return Err(self.expected("a value")),
        };
        Ok(Node { value, bytes: start..self.at })
    }

    fn table(&mut self, depth: usize) -> Result<Value, InputError> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut names = std::collections::HashSet::new();
        self.at += 1;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Table(entries));
        }
        loop {
            self.space();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key in quotation marks"));
            }
            let name = self.string()?;
            let key = Key { name: name.clone(), bytes: start..self.at };
            if !names.insert(name) {
                return Err(InputError::at(self.text, key.bytes, format!("the key `{}` is here twice", key.name)));
            }
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.expected("`:`"));
            }
            self.at += 1;
            let node = self.value(depth + 1)?;
            entries.push((key, node));
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.expected("`,` or `}`")),
            }
        }
        self.at += 1;
        Ok(Value::Table(entries))
    }

    fn list(&mut self, depth: usize) -> Result<Value, InputError> {
        let mut items = Vec::new();
        self.at += 1;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.expected("`,` or `]`")),
            }
        }
        self.at += 1;
        Ok(Value::List(items))
    }

    fn word(&mut self) -> Result<Value, InputError> {
        for (word, value) in [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.expected("a value"))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Value, InputError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let leading_zero = self.peek() == Some(b'0');
        match self.digits() {
            0 => return Err(self.expected("a digit")),
            1 => {}
            _ if leading_zero => {
                return Err(InputError::at(self.text, start..self.at, "a number does not begin with 0"));
            }
            _ => {}
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            integer = false;
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            integer = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        let spelling = &self.text[start..self.at];
        if integer && let Ok(value) = spelling.parse() {
            return Ok(Value::Int(value));
        }
        match spelling.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Value::Float(value)),
            _ => Err(InputError::at(self.text, start..self.at, "this number is out of range")),
        }
    }

    fn string(&mut self) -> Result<String, InputError> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let Some(c) = self.text[self.at..].chars().next() else {
                return Err(InputError::at(self.text, start..self.text.len(), "this string is not closed"));
            };
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(out);
                }
                '\\' => out.push(self.escape()?),
                c if (c as u32) < 0x20 => {
                    return Err(self.error_here("a control character in a string is written as an escape"));
                }
                c => {
                    out.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, InputError> {
        let start = self.at;
        self.at += 1;
        let c = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                let bad = |p: &Self| InputError::at(p.text, start..p.at, "this is not a Unicode escape");
                let mut code = self.hex4().ok_or_else(|| bad(self))?;
                if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with("\\u") {
                    self.at += 2;
                    let low = self.hex4().ok_or_else(|| bad(self))?;
                    if !(0xdc00..0xe000).contains(&low) {
                        return Err(bad(self));
                    }
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                }
                return char::from_u32(code).ok_or_else(|| bad(self));
            }
            _ => return Err(self.expected("an escape")),
        };
        self.at += 1;
        Ok(c)
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}
