//! Values read from JSON or TOML that know where they stand, and the error that says so.

mod json;
mod toml_text;

use std::fmt;
use std::ops::Range;

/// What is wrong with an input text, and where. The caller adds the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// What is wrong.
    pub message: String,
    /// Line from 1; 0 where the error is not about a place.
    pub line: usize,
    /// Column from 1, in Unicode scalars; 0 with line 0.
    pub column: usize,
    /// Bytes of the text that are meant.
    pub bytes: Range<usize>,
    /// The path in the document, such as `timing_nCK.nFAW`; empty where there is none.
    pub path: String,
    /// What mends it; empty where nothing can be said.
    pub help: String,
}

impl InputError {
    /// An error about these bytes of a text.
    pub fn at(text: &str, bytes: Range<usize>, message: impl Into<String>) -> InputError {
        let mut start = bytes.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        InputError {
            message: message.into(),
            line: before.bytes().filter(|b| *b == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            bytes: start..bytes.end.clamp(start, text.len()),
            path: String::new(),
            help: String::new(),
        }
    }

    /// An error that is about no place.
    pub fn whole(message: impl Into<String>) -> InputError {
        InputError {
            message: message.into(),
            line: 0,
            column: 0,
            bytes: 0..0,
            path: String::new(),
            help: String::new(),
        }
    }

    /// With what mends it.
    pub fn help(mut self, help: impl Into<String>) -> InputError {
        self.help = help.into();
        self
    }

    /// With the path in the document.
    pub fn path(mut self, path: impl Into<String>) -> InputError {
        self.path = path.into();
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line != 0 {
            write!(f, "{}:{}: ", self.line, self.column)?;
        }
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if !self.help.is_empty() {
            write!(f, "; {}", self.help)?;
        }
        Ok(())
    }
}

impl std::error::Error for InputError {}

/// A value and the bytes that spell it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What.
    pub value: Value,
    /// Where.
    pub bytes: Range<usize>,
}

/// The values that JSON and TOML share. Dates do not occur in our documents.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// JSON's null.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A finite number with a fraction or an exponent, or an integer beyond 64 bits.
    Float(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Node>),
    /// An object or table, in the order of the text; no key occurs twice.
    Table(Vec<(Key, Node)>),
}

/// A key and the bytes that spell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The name.
    pub name: String,
    /// Where.
    pub bytes: Range<usize>,
}

impl Value {
    /// What it is called in messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a number with a fraction",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

impl Node {
    /// The member of that name, if this is a table which has it.
    pub fn get(&self, name: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node),
            _ => None,
        }
    }
}

/// Reads a JSON document.
pub fn parse_json(text: &str) -> Result<Node, InputError> {
    json::parse(text)
}

/// Reads a TOML document.
pub fn parse_toml(text: &str) -> Result<Node, InputError> {
    toml_text::parse(text)
}

/// Reads a document of either kind: JSON if its first visible character is `{`, TOML otherwise (a TOML document cannot
/// begin so).
pub fn parse(text: &str) -> Result<Node, InputError> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    if body.trim_start().starts_with('{') { parse_json(text) } else { parse_toml(text) }
}

/// The candidate that a misspelt name most likely means.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    candidates
        .map(|c| (distance(&lower, &c.to_lowercase()), c))
        .filter(|(d, c)| *d <= 2 && *d < c.len())
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// Edit distance; inputs longer than a name are far from everything.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > 32 || b.len() > 32 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
