//! Swizzles: XOR of one field of an offset's bits onto another, and layouts behind one.

use crate::{ErrorKind, Int, Layout, LayoutError, Result};
use std::fmt;

/// `Sw<bits, base, shift>`: `x ^ ((x & yyy) >> shift)` with `yyy` the `bits` bits from `base + max(0, shift)`; a
/// negative shift goes the other way. An involution that keeps the low `base` bits. (CUTLASS
/// `include/cute/swizzle.hpp`: `bits >= 0`, `base >= 0`, `|shift| >= bits`.)
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Swizzle {
    bits: u32,
    base: u32,
    shift: i32,
}

impl Swizzle {
    /// All fields within 62 bits, so that no offset leaves `i64`.
    pub fn new(bits: i64, base: i64, shift: i64) -> Result<Swizzle> {
        let refuse =
            |message: String, help: &str| Err(LayoutError::new(ErrorKind::Domain, "swizzle", message).with_help(help));
        if bits < 0 || base < 0 {
            return refuse(
                format!("Sw<{bits},{base},{shift}> has a negative field"),
                "bits and base count bits: at least 0",
            );
        }
        if shift.unsigned_abs() < bits.unsigned_abs() {
            return refuse(
                format!("Sw<{bits},{base},{shift}>: the two fields of {bits} bits overlap, as the shift is {shift}"),
                "the shift must be at least the number of bits",
            );
        }
        let top = i128::from(bits) + i128::from(base) + i128::from(shift).abs();
        if top > 62 {
            return refuse(
                format!("Sw<{bits},{base},{shift}> reaches bit {top}, offsets have 62"),
                "use smaller fields",
            );
        }
        Ok(Swizzle { bits: bits as u32, base: base as u32, shift: shift as i32 })
    }

    /// Number of bits that change.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Low bits that stay.
    pub fn base(self) -> u32 {
        self.base
    }

    /// Distance of the two fields.
    pub fn shift(self) -> i32 {
        self.shift
    }

    /// The bits that are read: `yyy`.
    pub fn source_mask(self) -> i64 {
        ((1i64 << self.bits) - 1) << (self.base + self.shift.max(0) as u32)
    }

    /// The swizzled offset; negative offsets keep their upper bits, as two's complement has them.
    pub fn apply(self, offset: i64) -> i64 {
        let field = offset & self.source_mask();
        offset ^ if self.shift >= 0 { field >> self.shift } else { field << -self.shift }
    }

    /// Offsets change places within aligned blocks of so many: the power of two above the highest bit that changes.
    pub fn block(self) -> i64 {
        match self.bits {
            0 => 1,
            bits => 1 << (bits + self.base + if self.shift < 0 { self.shift.unsigned_abs() } else { 0 }),
        }
    }

    /// Whether it changes nothing.
    pub fn is_identity(self) -> bool {
        self.bits == 0
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sw<{},{},{}>", self.bits, self.base, self.shift)
    }
}

/// `swizzle o offset o layout`: coordinate -> `swizzle(offset + layout(coordinate))`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Composed {
    /// Applied last.
    pub swizzle: Swizzle,
    /// Added before it.
    pub offset: Int,
    /// Applied first.
    pub layout: Layout,
}

impl fmt::Display for Composed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {} o {}", self.swizzle, self.offset, self.layout)
    }
}
