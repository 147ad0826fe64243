//! Indices outside of a table.

use std::fmt;

/// What an index outside the table does in MGATHER.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Oob {
    /// An error, reported with tile and element.
    Undefined,
    /// Nearest index inside.
    Clamp,
    /// Modulo the extent.
    Wrap,
    /// There is no element: reads as zero, and is not written.
    Zero,
}

impl Oob {
    /// Every one.
    pub const ALL: &'static [Oob] = &[Oob::Undefined, Oob::Clamp, Oob::Wrap, Oob::Zero];

    /// The name in IR text.
    pub fn name(self) -> &'static str {
        match self {
            Oob::Undefined => "undefined",
            Oob::Clamp => "clamp",
            Oob::Wrap => "wrap",
            Oob::Zero => "zero",
        }
    }

    /// The one with that name.
    pub fn from_name(name: &str) -> Option<Oob> {
        Oob::ALL.iter().copied().find(|oob| oob.name() == name)
    }

    /// The element of a table of `total` elements that an index leads to; none if it leads to none.
    #[inline]
    pub fn lead(self, index: i64, total: i64) -> Option<i64> {
        match self {
            _ if (0..total).contains(&index) => Some(index),
            Oob::Clamp if total > 0 => Some(index.clamp(0, total - 1)),
            Oob::Wrap if total > 0 => Some(index.rem_euclid(total)),
            _ => None,
        }
    }
}

impl fmt::Display for Oob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
