//! Requests, the commands that they become, and the text forms of both.
//!
//! A request trace has one request a line, `R|W bankgroup bank row column`; `#` begins a comment. With several channels
//! or pseudo-channels a line is `R|W channel pseudochannel bankgroup bank row column`, or `R|W address` with a byte
//! address that the mapping resolves. Columns are bursts.
//!
//! A command trace is JSON, `[[tick, "CMD", bankgroup, bank, row, column], ...]`; a seventh element is the
//! pseudo-channel and an eighth the channel, written where they are not all 0.

use super::command::Command;
use super::org::Address;

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
