//! The timing rules of HBM as one table, and the constraint list that they give for a device.
//!
//! A rule says: after any command of `preceding`, a command of `following` to the same `level` (or, with `sibling`, to
//! another one under the same parent) waits for `latency`. The standards count between the ends of commands; the
//! constraint counts ticks between first cycles, so a longer preceding command adds and a longer following one
//! subtracts. Sources: JESD235 and JESD238 as tabulated by the public HBM2 and HBM3 models of established simulators.

use super::command::CommandSet;

/// A level of the hierarchy at which a constraint holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The command buses.
    Channel,
    /// The data bus.
    PseudoChannel,
    /// A stack identifier.
    Sid,
    /// A bank group.
    BankGroup,
    /// A bank.
    Bank,
}

impl Level {
    /// The name in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Channel => "Channel",
            Level::PseudoChannel => "PseudoChannel",
            Level::Sid => "Sid",
            Level::BankGroup => "BankGroup",
            Level::Bank => "Bank",
        }
    }
}

/// A resolved constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Where it holds.
    pub level: Level,
    /// Commands that start it.
    pub preceding: CommandSet,
    /// Commands that wait.
    pub following: CommandSet,
    /// Ticks between first cycles; what is not positive forbids nothing.
    pub gap: i64,
    /// It counts from the `window`-th last preceding command; 1 is the last.
    pub window: u32,
    /// Whether it holds between different members of `level` under one parent, and not within one.
    pub sibling: bool,
    /// The timing parameters that it comes from.
    pub rule: &'static str,
}
