//! Printing copies, matrix products and their sides.

use super::print::Printer;
use crate::tile::{Affine, Copy, Elem, Mma, NestAccess, Stored, Table};
use ptoc_layout::Swizzle;
use std::fmt::{self, Write};

impl Printer<'_> {
    pub(super) fn copy(&mut self, copy: &Copy) -> fmt::Result {
        self.out.push_str("copy [");
        self.list(&copy.extents)?;
        self.out.push_str("] ");
        self.access(&copy.dst)?;
        self.out.push_str(" from ");
        self.access(&copy.src)?;
        for guard in &copy.guards {
            self.out.push_str(" where ");
            self.affine(&guard.at)?;
            write!(self.out, " < {}", guard.bound)?;
        }
        copy.fill.map_or(Ok(()), |v| write!(self.out, " fill {v}"))?;
        self.out.push_str(if copy.covers { " covers" } else { "" });
        Ok(())
    }

    pub(super) fn mma(&mut self, mma: &Mma) -> fmt::Result {
        self.out.push_str("mma ");
        for axes in [&mma.m, &mma.n, &mma.k] {
            self.out.push('[');
            self.list(axes)?;
            self.out.push(']');
        }
        self.out.push(' ');
        self.access(&mma.acc)?;
        self.out.push_str(", ");
        self.access(&mma.a)?;
        self.out.push_str(", ");
        self.access(&mma.b)
    }

    fn access(&mut self, access: &NestAccess) -> fmt::Result {
        match access {
            NestAccess::Tile { tile, row, col } => {
                self.tile_ref(tile)?;
                self.out.push_str(" at (");
                self.affine(row)?;
                self.out.push_str(", ");
                self.affine(col)?;
                self.out.push(')');
            }
            NestAccess::Tensor { tensor, elem, at, swizzle, tables } => {
                write!(self.out, "{tensor}.{elem}[")?;
                self.affine(at)?;
                tables.iter().try_for_each(|table| self.table(table))?;
                self.out.push(']');
                swizzle.map_or(Ok(()), |s| self.swizzle(s))?;
            }
        }
        Ok(())
    }

    fn swizzle(&mut self, s: Swizzle) -> fmt::Result {
        write!(self.out, " swizzle ({}, {}, {})", s.bits(), s.base(), s.shift())
    }

    /// ` stored [extents] start + (strides)`
    pub(super) fn stored(&mut self, stored: &Stored) -> fmt::Result {
        self.out.push_str(" stored [");
        self.list(&stored.extents)?;
        self.out.push_str("] ");
        self.affine(&stored.at)?;
        stored.swizzle.map_or(Ok(()), |s| self.swizzle(s))
    }

    fn table(&mut self, table: &Table) -> fmt::Result {
        write!(self.out, " + table.{} {}[", table.oob, table.tensor)?;
        self.affine(&table.at)?;
        write!(self.out, "] by {} below {}", table.stride, table.extent)
    }

    /// `start + (strides)`
    fn affine(&mut self, affine: &Affine) -> fmt::Result {
        write!(self.out, "{} + (", affine.start)?;
        self.list(&affine.strides)?;
        self.out.push(')');
        Ok(())
    }
}

impl fmt::Display for Elem {
    /// The dtype's name, `u4` or `i4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Whole(dtype) => dtype.fmt(f),
            Elem::U4 => f.write_str("u4"),
            Elem::I4 => f.write_str("i4"),
        }
    }
}
