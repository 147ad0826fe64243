//! The header: version, length, and a Python dictionary with the keys `descr`, `fortran_order` and `shape`.

use super::{MAGIC, NpyError};
use std::io::Read;

/// The longest header that is read, in bytes. An extent takes some characters, so tensors of tens of thousands of
/// dimensions have room; a length field that claims more is damaged, and nothing of that size is read or allocated to
/// find out.
const LONGEST: u64 = 1 << 20;

/// The header's three values, and where the data start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The element type: the text of a string literal, or the source text of a structured type.
    pub descr: Descr,
    /// Column-major: the first index is the fastest.
    pub fortran_order: bool,
    /// The extents.
    pub shape: Vec<usize>,
    /// The extents as spelled.
    pub shape_text: String,
    /// Offset of the first data byte.
    pub data: u64,
}

/// The element type as the header gives it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Descr {
    /// `'<f4'`, without the quotes.
    Plain(String),
    /// `[('a', '<f4'), ...]`.
    Structured(String),
}

fn bad(reason: impl Into<String>) -> NpyError {
    NpyError::BadHeader { reason: reason.into() }
}

/// `text` on one line and cut to a readable length, without quotes around it.
pub(super) fn shown(text: &str) -> String {
    const SHOWN: usize = 60;
    let visible = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    let mut shown: String = text.chars().take(SHOWN).map(visible).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

/// [`shown`] in backquotes.
pub(super) fn quoted(text: &str) -> String {
    format!("`{}`", shown(text))
}

/// Reads everything before the data, and no byte more. `length` is that of the whole file, where it is known.
pub(super) fn read(source: &mut impl Read, length: Option<u64>) -> Result<Header, NpyError> {
    let mut head = Vec::new();
    more(source, &mut head, 8)?;
    if !head.starts_with(MAGIC) {
        return Err(NpyError::NotNpy { found: beginning(&head) });
    }
    let truncated = |needed: u64, read: &[u8]| {
        let found = length.unwrap_or(read.len() as u64);
        NpyError::TruncatedHeader { needed, found }
    };
    let (&major, &minor) = head.get(6).zip(head.get(7)).ok_or_else(|| truncated(10, &head))?;
    let prefix = match (major, minor) {
        (1, 0) => 10,
        (2 | 3, 0) => 12,
        _ => return Err(NpyError::Version { major, minor }),
    };
    more(source, &mut head, prefix)?;
    let length_bytes = head.get(8..prefix).ok_or_else(|| truncated(prefix as u64, &head))?;
    let text_length = length_bytes.iter().rev().fold(0u64, |length, &byte| length << 8 | u64::from(byte));
    let data = prefix as u64 + text_length;
    if length.is_some_and(|length| length < data) {
        return Err(truncated(data, &head));
    }
    if text_length > LONGEST {
        return Err(bad(format!("it claims to be {text_length} bytes long, and at most {LONGEST} are read")));
    }
    more(source, &mut head, data as usize)?;
    let text = head.get(prefix..data as usize).ok_or_else(|| truncated(data, &head))?;
    // Versions 1 and 2 are Latin-1, 3 is UTF-8; what we accept is ASCII, except in field names, which we only quote.
    let text = std::str::from_utf8(text).map_err(|e| bad(format!("byte {} is not text", prefix + e.valid_up_to())))?;
    dictionary(text, data)
}

/// Reads on until `head` has `length` bytes or the source ends.
fn more(source: &mut impl Read, head: &mut Vec<u8>, length: usize) -> Result<(), NpyError> {
    source.by_ref().take((length - head.len()) as u64).read_to_end(head)?;
    Ok(())
}

/// What a file that is not `.npy` starts with.
fn beginning(file: &[u8]) -> String {
    match file {
        [] => "nothing (it is empty)".to_string(),
        [b'P', b'K', 3 | 5, ..] => "a zip header (an .npz archive? save one of its arrays)".to_string(),
        _ => format!("`{}`", file[..file.len().min(6)].escape_ascii()),
    }
}

fn dictionary(text: &str, data: u64) -> Result<Header, NpyError> {
    let body = text
        .trim()
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .ok_or_else(|| bad(format!("{} is not a dictionary", quoted(text.trim()))))?;
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    let mut rest = body.trim_start();
    while !rest.is_empty() {
        let (key, after) = string(rest).ok_or_else(|| bad(format!("expected a quoted key at {}", quoted(rest))))?;
        let after = after.trim_start();
        let after = after.strip_prefix(':').ok_or_else(|| bad(format!("expected `:` after the key `{key}`")))?;
        let (value, after) = value(after)?;
        let slot = match key {
            "descr" => &mut descr,
            "fortran_order" => &mut fortran_order,
            "shape" => &mut shape,
            _ => return Err(bad(format!("unknown key {}", quoted(key)))),
        };
        if slot.replace(value).is_some() {
            return Err(bad(format!("the key `{key}` occurs twice")));
        }
        rest = after.trim_start();
    }
    let missing = |key| bad(format!("the key `{key}` is missing"));
    let shape_text = shape.ok_or_else(|| missing("shape"))?;
    Ok(Header {
        descr: parse_descr(descr.ok_or_else(|| missing("descr"))?)?,
        fortran_order: parse_bool(fortran_order.ok_or_else(|| missing("fortran_order"))?)?,
        shape: parse_shape(shape_text)?,
        shape_text: shape_text.to_owned(),
        data,
    })
}

/// A string literal without escapes, and what follows it.
fn string(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}

/// The source text of the value at the start of `text`, and what follows its comma.
fn value(text: &str) -> Result<(&str, &str), NpyError> {
    let (mut depth, mut quote) = (0u32, None);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => drop(chars.next()),
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => {
                depth = depth.checked_sub(1).ok_or_else(|| bad(format!("`{c}` without its opening bracket")))?;
            }
            (None, ',') if depth == 0 => return Ok((text[..at].trim(), &text[at + 1..])),
            (None, _) => {}
        }
    }
    match (quote, depth) {
        (None, 0) => Ok((text.trim(), "")),
        (Some(_), _) => Err(bad(format!("a string is not closed in {}", quoted(text.trim())))),
        (None, _) => Err(bad(format!("a bracket is not closed in {}", quoted(text.trim())))),
    }
}

fn parse_descr(text: &str) -> Result<Descr, NpyError> {
    match string(text) {
        Some((inner, "")) => Ok(Descr::Plain(inner.to_owned())),
        None if text.starts_with('[') => Ok(Descr::Structured(text.to_owned())),
        _ => Err(bad(format!("`descr` is {}, neither a string nor a list", quoted(text)))),
    }
}

fn parse_bool(text: &str) -> Result<bool, NpyError> {
    match text {
        "True" => Ok(true),
        "False" => Ok(false),
        _ => Err(bad(format!("`fortran_order` is {}, neither True nor False", quoted(text)))),
    }
}

fn parse_shape(text: &str) -> Result<Vec<usize>, NpyError> {
    let malformed = || bad(format!("`shape` is {}, not a tuple of extents", quoted(text)));
    let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).ok_or_else(malformed)?.trim();
    if inner.is_empty() {
        return Ok(Vec::new());
    }
    // `(3)` is a number in Python, not a tuple.
    if !inner.contains(',') {
        return Err(malformed());
    }
    let inner = inner.strip_suffix(',').unwrap_or(inner);
    inner.split(',').map(|extent| parse_extent(extent.trim(), text)).collect()
}

fn parse_extent(extent: &str, shape: &str) -> Result<usize, NpyError> {
    // Python 2 wrote long integers as `3L`.
    let digits = extent.strip_suffix('L').unwrap_or(extent);
    let negative = digits.strip_prefix('-');
    if negative.unwrap_or(digits).is_empty() || !negative.unwrap_or(digits).bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad(format!("the extent {} in `shape` is not an integer", quoted(extent))));
    }
    if negative.is_some() {
        return Err(bad(format!("the extent {} in `shape` is negative", quoted(extent))));
    }
    // Python reads no `017`, and who wrote it meant 15 perhaps.
    if digits.len() > 1 && digits.starts_with('0') && digits.bytes().any(|b| b != b'0') {
        return Err(bad(format!("the extent {} in `shape` begins with 0", quoted(extent))));
    }
    let too_large = |_| NpyError::TooLarge { shape: quoted(shape), itemsize: 1 };
    digits.parse().map_err(too_large)
}
