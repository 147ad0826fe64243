//! From byte addresses to channels, banks, rows and columns: a layout with basis strides.
//!
//! A mapping is written in one of two ways, both from the least significant digit of the burst number up:
//!
//! * named digits: `(column:2, bankgroup:4, channel:8, column:16, pseudochannel:2, bank:4, row:32768)`; digits of one
//!   coordinate follow each other from its least significant;
//! * `shape:stride` with basis strides: `(2,4,8,16,2,4,32768):(1@column,1@bankgroup,1@channel,2@column,1@pseudochannel,
//!   1@bank,1@row)`, where `2@column` steps the column by two.
//!
//! The coordinates are those of the organisation; a bank group counts over all SIDs. Every burst must be reached
//! exactly once, so the digits of each coordinate are a mixed-radix number that covers it.

use super::config::Config;
use super::org::Address;
use crate::located::{InputError, nearest};

/// The coordinates, in the order in which [`Mapping::resolve`] collects them.
const FIELDS: [&str; 6] = ["channel", "pseudochannel", "bankgroup", "bank", "row", "column"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digit {
    extent: u64,
    stride: u64,
    field: usize,
}

/// A mapping of byte addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    digits: Vec<Digit>,
    burst_bytes: u64,
    bursts: u64,
}

impl Mapping {
    /// What is used where none is given: successive bursts go to successive channels, pseudo-channels and bank groups,
    /// then along the row, then over banks, then over rows. Streams then run at tCCD_S everywhere.
    pub fn interleaved(config: &Config) -> Mapping {
        let sizes = sizes(config);
        let digits = [0, 1, 2, 5, 3, 4].map(|field| Digit { extent: sizes[field], stride: 1, field });
        Mapping::new(config, digits.to_vec())
    }

    fn new(config: &Config, digits: Vec<Digit>) -> Mapping {
        // At most 2^10 channels x 2^4 x 2^10 banks x 2^24 rows x 2^14 bursts: 62 bits.
        let bursts = digits.iter().map(|d| d.extent).product();
        Mapping { digits, burst_bytes: u64::from(config.org.burst_bytes()), bursts }
    }

    /// Bytes that the mapping reaches.
    pub fn bytes(&self) -> u128 {
        u128::from(self.bursts) * u128::from(self.burst_bytes)
    }

    /// The channel and the place of the burst that holds a byte; none beyond the device's end.
    pub fn resolve(&self, byte: u64) -> Option<(u32, Address)> {
        let mut rest = byte / self.burst_bytes;
        if rest >= self.bursts {
            return None;
        }
        let mut at = [0u64; 6];
        for digit in &self.digits {
            at[digit.field] += rest % digit.extent * digit.stride;
            rest /= digit.extent;
        }
        // Each coordinate is below its count, which fits.
        let [channel, pc, bankgroup, bank, row, column] = at.map(|v| v as u32);
        let address = Address { pc: pc as u16, bankgroup: bankgroup as u16, bank: bank as u16, row, column };
        Some((channel, address))
    }

    /// Reads a mapping for a device.
    pub fn parse(config: &Config, text: &str) -> Result<Mapping, InputError> {
        let mut p = Parser { text, at: 0 };
        let first = p.list(Parser::item)?;
        p.space();
        let mut named = [1u64; 6];
        let mut digits: Vec<(Digit, std::ops::Range<usize>)> = Vec::new();
        if p.at == text.len() {
            for item in first {
                let (Some(extent), Some(field)) = (item.number, item.field) else {
                    return Err(InputError::at(text, item.bytes, "a digit is written `name:extent`").help(FORM));
                };
                digits.push((Digit { extent, stride: named[field], field }, item.bytes));
                named[field] = named[field].saturating_mul(extent);
            }
        } else {
            p.expect(b':')?;
            let start = p.at;
            let strides = p.list(Parser::stride)?;
            p.space();
            if p.at < text.len() {
                return Err(
                    InputError::at(text, p.at..text.len(), "something follows the end of the layout").help(FORM)
                );
            }
            if strides.len() != first.len() {
                let message = format!("{} extents and {} strides", first.len(), strides.len());
                return Err(InputError::at(text, start..text.len(), message).help(FORM));
            }
            for (shape, stride) in first.into_iter().zip(strides) {
                let (Some(extent), None) = (shape.number, shape.field) else {
                    return Err(InputError::at(text, shape.bytes, "an extent is a number").help(FORM));
                };
                let (Some(number), Some(field)) = (stride.number, stride.field) else {
                    return Err(InputError::at(text, stride.bytes, "a stride is written `number@name`").help(FORM));
                };
                digits.push((Digit { extent, stride: number, field }, stride.bytes));
            }
        }
        cover(config, text, &digits)?;
        Ok(Mapping::new(config, digits.into_iter().map(|(d, _)| d).collect()))
    }
}

const FORM: &str =
    "write `(channel:8, bankgroup:4, column:32, ...)` from the lowest digit up, or `(8,4,32):(1@channel,...)`";

fn sizes(config: &Config) -> [u64; 6] {
    let org = &config.org;
    [org.channel, org.pseudochannel, org.bankgroups_per_pc(), org.bank, org.row, org.bursts_per_row()].map(u64::from)
}

/// Whether the digits of each coordinate count it off exactly once.
fn cover(config: &Config, text: &str, digits: &[(Digit, std::ops::Range<usize>)]) -> Result<(), InputError> {
    for (field, (name, size)) in FIELDS.iter().zip(sizes(config)).enumerate() {
        let mut own: Vec<_> = digits.iter().filter(|(d, _)| d.field == field && d.extent != 1).collect();
        own.sort_by_key(|(d, _)| d.stride);
        let mut reached = 1u64;
        for (digit, bytes) in own {
            if digit.stride != reached {
                let message = format!("{name} steps by {}, but its lower digits reach {reached}", digit.stride);
                return Err(
                    InputError::at(text, bytes.clone(), message).help("every burst must be reached exactly once")
                );
            }
            reached = reached.saturating_mul(digit.extent);
            if reached > size {
                let message = format!("{name} reaches {reached}, but the device has {size}");
                return Err(InputError::at(text, bytes.clone(), message));
            }
        }
        if reached != size {
            let message = format!("{name} reaches {reached} of {size}");
            return Err(
                InputError::at(text, 0..text.len(), message).help(format!("add `{name}:{}`", size.div_ceil(reached)))
            );
        }
    }
    Ok(())
}

struct Item {
    number: Option<u64>,
    field: Option<usize>,
    bytes: std::ops::Range<usize>,
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
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), InputError> {
        self.space();
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        let end = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        let message = format!("`{}` should be here", char::from(byte));
        Err(InputError::at(self.text, self.at..self.at + end, message).help(FORM))
    }

    fn list(&mut self, item: fn(&mut Self) -> Result<Item, InputError>) -> Result<Vec<Item>, InputError> {
        self.expect(b'(')?;
        let mut items = Vec::new();
        loop {
            items.push(item(self)?);
            if items.len() > 64 {
                return Err(InputError::at(self.text, 0..self.at, "more than 64 digits"));
            }
            self.space();
            if self.peek() == Some(b',') {
                self.at += 1;
            } else {
                self.expect(b')')?;
                return Ok(items);
            }
        }
    }

    /// `extent`, or `name:extent`.
    fn item(&mut self) -> Result<Item, InputError> {
        self.space();
        let start = self.at;
        let field = if self.peek().is_some_and(|b| b.is_ascii_alphabetic()) {
            let field = self.name()?;
            self.expect(b':')?;
            Some(field)
        } else {
            None
        };
        let number = self.number()?;
        Ok(Item { number: Some(number), field, bytes: start..self.at })
    }

    /// `number@name`.
    fn stride(&mut self) -> Result<Item, InputError> {
        self.space();
        let start = self.at;
        let number = self.number()?;
        self.expect(b'@')?;
        let field = self.name()?;
        Ok(Item { number: Some(number), field: Some(field), bytes: start..self.at })
    }

    fn number(&mut self) -> Result<u64, InputError> {
        self.space();
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        match self.text[start..self.at].parse::<u64>() {
            Ok(n) if (1..=1 << 24).contains(&n) => Ok(n),
            _ => Err(InputError::at(self.text, start..self.at, "a number from 1 to 2^24 should be here").help(FORM)),
        }
    }

    fn name(&mut self) -> Result<usize, InputError> {
        self.space();
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
            self.at += 1;
        }
        let name = &self.text[start..self.at];
        FIELDS.iter().position(|f| f.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let error = InputError::at(self.text, start..self.at, format!("there is no coordinate `{name}`"));
            match nearest(name, FIELDS.into_iter()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help(format!("known are {}", FIELDS.join(", "))),
            }
        })
    }
}
