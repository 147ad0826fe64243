//! Requests, the commands that they become, and the text forms of both.
//!
//! A request trace has one request a line; `#` begins a comment:
//!
//! * `R|W bankgroup bank row column`, in channel 0 and pseudo-channel 0;
//! * `R|W channel pseudochannel bankgroup bank row column`;
//! * `R|W address`, a byte address (decimal or `0x`) that a [`Mapping`] resolves.
//!
//! Columns are bursts. Bank groups count over all SIDs of a pseudo-channel.
//!
//! A command trace is JSON, `[[tick, "CMD", bankgroup, bank, row, column], ...]`; a seventh element is the
//! pseudo-channel and an eighth the channel, written where they are not all 0. [`crate::check::CommandTrace`] reads it.

use super::command::Command;
use super::config::Config;
use super::mapping::Mapping;
use super::org::Address;
use crate::located::InputError;

/// A read or a write of one burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Where.
    pub address: Address,
    /// Whether it writes.
    pub write: bool,
}

/// A command that a controller issued. An all-bank command has bank group and bank 0; PREpb has row and column of the
/// request for which it makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Issued {
    /// When its first cycle is on the bus, in ticks.
    pub tick: u64,
    /// What.
    pub command: Command,
    /// Where.
    pub address: Address,
}

impl Request {
    /// The index of its bank in the channel.
    #[inline]
    pub(super) fn bank_index(&self, config: &Config) -> usize {
        let a = self.address;
        (u32::from(a.pc) * config.org.banks_per_pc() + config.org.bank_index(a.bankgroup, a.bank)) as usize
    }

    /// The address of a bank's first burst, from its index in the channel.
    pub(super) fn bank_address(config: &Config, bank: usize) -> Address {
        let per_pc = config.org.banks_per_pc() as usize;
        let (group, in_group) = ((bank % per_pc) / config.org.bank as usize, bank % config.org.bank as usize);
        // Bounded by the organisation's limits.
        Address { pc: (bank / per_pc) as u16, bankgroup: group as u16, bank: in_group as u16, row: 0, column: 0 }
    }

    /// Which coordinate lies outside the device, if any.
    pub fn outside(&self, config: &Config) -> Option<String> {
        let org = &config.org;
        let a = self.address;
        let coordinates = [
            ("pseudo-channel", u32::from(a.pc), org.pseudochannel),
            ("bank group", u32::from(a.bankgroup), org.bankgroups_per_pc()),
            ("bank", u32::from(a.bank), org.bank),
            ("row", a.row, org.row),
            ("column", a.column, org.bursts_per_row()),
        ];
        if coordinates.iter().all(|(_, value, count)| value < count) {
            return None;
        }
        let (what, value, count) = coordinates.into_iter().find(|(_, value, count)| value >= count)?;
        Some(format!("{what} {value}, of {count}"))
    }
}

/// The words of a line with their byte offsets in the text.
fn words(line: &str, at: usize) -> impl Iterator<Item = (usize, &str)> {
    let line = line.split('#').next().unwrap_or_default();
    line.split_ascii_whitespace().map(move |w| (at + (w.as_ptr() as usize - line.as_ptr() as usize), w))
}

/// Errors of a trace beyond this many are not collected.
const MAX_ERRORS: usize = 20;

/// Reads a request trace: the requests of each channel in order. At most 20 mistakes are reported.
pub fn parse_requests(config: &Config, mapping: &Mapping, text: &str) -> Result<Vec<Vec<Request>>, Vec<InputError>> {
    let mut channels = vec![Vec::new(); config.org.channel as usize];
    let mut errors = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        match request(config, mapping, text, line, at) {
            Ok(Some((channel, request))) => channels[channel].push(request),
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
        if errors.len() == MAX_ERRORS {
            break;
        }
        at += line.len();
    }
    if errors.is_empty() { Ok(channels) } else { Err(errors) }
}

const FORM: &str = "a line is `R|W bankgroup bank row column`, `R|W channel pseudochannel bankgroup bank row column`, \
                    or `R|W address`";

fn request(
    config: &Config,
    mapping: &Mapping,
    text: &str,
    line: &str,
    at: usize,
) -> Result<Option<(usize, Request)>, InputError> {
    let mut words = words(line, at);
    let Some((start, kind)) = words.next() else { return Ok(None) };
    let write = match kind {
        "R" | "r" => false,
        "W" | "w" => true,
        _ => {
            let message = format!("a request begins with R or W, not `{}`", kind.escape_debug());
            return Err(InputError::at(text, start..start + kind.len(), message).help(FORM));
        }
    };
    let mut fields = [(0, ""); 6];
    let mut count = 0;
    for word in words {
        if count == fields.len() {
            return Err(InputError::at(text, word.0..word.0 + word.1.len(), "one field too many").help(FORM));
        }
        fields[count] = word;
        count += 1;
    }
    let org = &config.org;
    let bounds = [
        ("channel", org.channel),
        ("pseudo-channel", org.pseudochannel),
        ("bank group", org.bankgroups_per_pc()),
        ("bank", org.bank),
        ("row", org.row),
        ("column", org.bursts_per_row()),
    ];
    let mut values = [0; 6];
    match count {
        1 => {
            let (from, word) = fields[0];
            let bytes = from..from + word.len();
            let number = match word.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => word.parse(),
            };
            let Ok(number) = number else {
                return Err(InputError::at(text, bytes, "this is no byte address").help(FORM));
            };
            let (channel, address) = mapping.resolve(number).ok_or_else(|| {
                InputError::at(text, bytes, format!("the device ends at byte {:#x}", mapping.bytes()))
            })?;
            return Ok(Some((channel as usize, Request { address, write })));
        }
        4 | 6 => {
            let skip = 6 - count;
            for i in 0..count {
                let (from, word) = fields[i];
                let (what, bound) = bounds[skip + i];
                let bytes = from..from + word.len();
                values[skip + i] = match word.parse::<u32>() {
                    Ok(v) if v < bound => v,
                    Ok(v) => return Err(InputError::at(text, bytes, format!("{what} {v} is not below {bound}"))),
                    Err(_) => {
                        let message = format!("a {what} is a number below {bound}, not `{}`", word.escape_debug());
                        return Err(InputError::at(text, bytes, message));
                    }
                };
            }
        }
        _ => {
            let message = format!("{count} numbers after {kind}");
            return Err(InputError::at(text, start..at + line.trim_end().len(), message).help(FORM));
        }
    }
    let [channel, pc, bankgroup, bank, row, column] = values;
    // Bounded by the organisation's limits.
    let address = Address { pc: pc as u16, bankgroup: bankgroup as u16, bank: bank as u16, row, column };
    Ok(Some((channel as usize, Request { address, write })))
}

/// Writes command traces of channels as JSON, one command a line, in the order of ticks within each channel.
pub fn write_commands<'a>(channels: impl IntoIterator<Item = &'a [Issued]>) -> String {
    use std::fmt::Write;
    let channels: Vec<&[Issued]> = channels.into_iter().collect();
    let by_channel = channels.len() > 1;
    let by_pc = by_channel || channels.iter().any(|c| c.iter().any(|i| i.address.pc != 0));
    let mut out = String::from("[");
    let mut first = true;
    for (channel, commands) in channels.iter().enumerate() {
        for Issued { tick, command, address: a } in *commands {
            out.push_str(if first { "\n" } else { ",\n" });
            first = false;
            let name = command.name();
            // Writing to a string does not fail.
            let _ = write!(out, "[{tick},\"{name}\",{},{},{},{}", a.bankgroup, a.bank, a.row, a.column);
            if by_pc {
                let _ = write!(out, ",{}", a.pc);
            }
            if by_channel {
                let _ = write!(out, ",{channel}");
            }
            out.push(']');
        }
    }
    out.push_str("\n]\n");
    out
}
