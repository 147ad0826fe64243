//! Fields of words, and what can be wrong with them.

use thiserror::Error;

/// Why a word, or its text, is not one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WordError {
    /// The input ends early or has bytes left.
    #[error("{what} takes {wanted} bytes, found {found}")]
    Length {
        /// The word.
        what: &'static str,
        /// Its size.
        wanted: usize,
        /// What there is.
        found: usize,
    },
    /// A value has more bits than its field.
    #[error("{field} is {value:#x}, and has {bits} bits: at most {max:#x}", max = max(*bits))]
    Range {
        /// The field.
        field: &'static str,
        /// The value.
        value: u64,
        /// Bits of the field.
        bits: u32,
    },
    /// A code that stands for nothing.
    #[error("{field} is {value}: {known}")]
    Code {
        /// The field.
        field: &'static str,
        /// The value.
        value: u64,
        /// What it may be.
        known: &'static str,
    },
    /// Bits that must be 0 are not.
    #[error("{field} must be 0, and is {value:#x}")]
    Reserved {
        /// The field.
        field: &'static str,
        /// The value.
        value: u64,
    },
    /// The parts do not go together.
    #[error("{0}")]
    Conflict(String),
    /// The text is not of the form.
    #[error("{message}")]
    Text {
        /// What is wrong.
        message: String,
        /// First byte of the text that is meant.
        at: usize,
    },
}

fn max(bits: u32) -> u64 {
    u64::MAX >> (64 - bits.clamp(1, 64))
}

/// A field of a word: its lowest bit and its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in messages.
    pub name: &'static str,
    /// Lowest bit.
    pub low: u32,
    /// Number of bits, 1 to 64.
    pub bits: u32,
}

impl Field {
    /// The field `name` of bits `low` to `low + bits - 1`.
    pub const fn new(name: &'static str, low: u32, bits: u32) -> Field {
        Field { name, low, bits }
    }

    /// The value in the word.
    pub fn get(self, word: u32) -> u32 {
        (word >> self.low) & (max(self.bits) as u32)
    }

    /// The word with that value in this field, which was 0.
    pub fn put(self, word: u32, value: u64) -> Result<u32, WordError> {
        self.check(value)?;
        Ok(word | (value as u32) << self.low)
    }

    /// Whether the value fits.
    pub fn check(self, value: u64) -> Result<(), WordError> {
        match value <= max(self.bits) {
            true => Ok(()),
            false => Err(WordError::Range { field: self.name, value, bits: self.bits }),
        }
    }
}

/// Words of a text with the places where they begin; a comma is a word of its own.
pub(crate) fn split(text: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut start = None;
    let flush = |from: &mut Option<usize>, to: usize, out: &mut Vec<_>| {
        if let Some(from) = from.take() {
            out.push((from, &text[from..to]));
        }
    };
    for (at, c) in text.char_indices() {
        match c {
            ',' => {
                flush(&mut start, at, &mut out);
                out.push((at, &text[at..=at]));
            }
            c if c.is_whitespace() => flush(&mut start, at, &mut out),
            _ => start = start.or(Some(at)),
        }
    }
    flush(&mut start, text.len(), &mut out);
    out
}

/// A whole number, decimal or hexadecimal.
pub(crate) fn number(at: usize, text: &str) -> Result<u64, WordError> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| WordError::Text { message: format!("`{text}` is no whole number below 2^64"), at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_hold_what_fits() {
        let f = Field::new("f", 4, 3);
        assert_eq!(f.put(0, 7), Ok(0x70));
        assert_eq!(f.get(0xff), 7);
        assert_eq!(f.put(0, 8), Err(WordError::Range { field: "f", value: 8, bits: 3 }));
        assert_eq!(f.put(0, 8).unwrap_err().to_string(), "f is 0x8, and has 3 bits: at most 0x7");
    }

    #[test]
    fn words_and_commas() {
        assert_eq!(split(" a b,c "), [(1, "a"), (3, "b"), (4, ","), (5, "c")]);
        assert_eq!(number(3, "0x10"), Ok(16));
        assert!(matches!(number(3, "1x"), Err(WordError::Text { at: 3, .. })));
    }
}
