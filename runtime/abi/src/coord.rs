//! Coordinates of a memory with processing units in it.

use std::fmt;

/// A coordinate of the memory: what the language calls so, and the stream too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Coord {
    /// Channel, counted through all stacks. A step is as many pseudo-channels as a channel has.
    Channel,
    /// Pseudo-channel, counted through all channels.
    Pch,
    /// Bank group of a pseudo-channel.
    Bg,
    /// Bank of a group; beside `unit`, bank of the unit.
    Bank,
    /// Row of a bank, counted from the first one that the placed thing has.
    Row,
    /// Burst of a row.
    Col,
    /// Byte of a burst.
    Byte,
    /// Processing unit: those of a bank group first, then those of a pseudo-channel, then those of all. It stands for
    /// channel, pseudo-channel, bank group and bank.
    Unit,
}

impl Coord {
    /// All of them, coarse to fine, in the order of their codes.
    pub const ALL: [Coord; 8] =
        [Coord::Channel, Coord::Pch, Coord::Bg, Coord::Bank, Coord::Row, Coord::Col, Coord::Byte, Coord::Unit];

    /// The name, as in `1@row`.
    pub fn name(self) -> &'static str {
        ["channel", "pch", "bg", "bank", "row", "col", "byte", "unit"][self as usize]
    }

    /// The coordinate with that name.
    pub fn from_name(name: &str) -> Option<Coord> {
        Coord::ALL.into_iter().find(|c| c.name() == name)
    }
}

impl fmt::Display for Coord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
