//! Where the lines of an operand lie: one in each bank at the same rows and columns, so that a command is for all.
//!
//! Lines are counted through the banks of a pseudo-channel, then through pseudo-channels, then through the columns of a
//! row where several lines fit into one, then through rows. The line of a unit begins where the buffer's does, since a
//! command names one column for both; of several lines in a row the buffer has a copy of the other operand for each.

use super::LANES;
use ptoc_abi::Coord;
use ptoc_pim_stream::placement::Leaf;
use ptoc_pim_stream::stream::Pch;
use ptoc_pim_stream::{ArrayPlacement, Geometry};

/// Elements of a tensor at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub tensor: u32,
    pub first: i64,
    pub stride: i64,
    pub len: i64,
}

/// A tensor whose lines along a dimension lie in the banks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Matrix {
    pub tensor: u32,
    shape: Vec<u32>,
    /// The dimension.
    along: usize,
    /// Bursts of a line in a row; rows of a line; lines in a row.
    pub columns: u32,
    rows: u32,
    beside: u32,
    /// Banks of a pseudo-channel, and pseudo-channels with lines.
    banks: u32,
    pchs: u32,
    /// Banks of a group.
    bank: u32,
    /// Parts of the other dimensions.
    parts: Vec<Vec<Leaf>>,
}

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot {
    /// Row of the first of its rows, counted from the matrix's own.
    pub row: u32,
    /// Which of the lines of that row.
    pub beside: u32,
}

/// Elements from index to index of each dimension.
fn strides(shape: &[u32]) -> Vec<i64> {
    let mut out = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        out[d - 1] = out[d] * i64::from(shape[d]);
    }
    out
}

impl Matrix {
    /// The tensor of the first lines of these pairs, whose second ones go through the buffer; what is in the way
    /// otherwise.
    pub(super) fn of(
        lines: impl Iterator<Item = (Line, Line)> + Clone,
        shape: &[u32],
        columns: u32,
        g: &Geometry,
    ) -> Result<Matrix, String> {
        let Some((first, _)) = lines.clone().next() else { return Err("there are no lines".into()) };
        let own = strides(shape);
        // A line of one element is along any dimension, the shortest one first.
        let mut dims: Vec<usize> = match first.len {
            1 => (0..shape.len()).collect(),
            _ => (0..shape.len()).filter(|&d| own[d] == first.stride && i64::from(shape[d]) >= first.len).collect(),
        };
        dims.sort_by_key(|&d| shape[d]);
        let mut refused = format!("elements {} apart are along no dimension", first.stride);
        for along in dims {
            match Matrix::along(along, lines.clone(), shape, columns, g) {
                Ok(matrix) => return Ok(matrix),
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    /// The same along a dimension.
    fn along(
        along: usize,
        lines: impl Iterator<Item = (Line, Line)> + Clone,
        shape: &[u32],
        columns: u32,
        g: &Geometry,
    ) -> Result<Matrix, String> {
        let Some((first, _)) = lines.clone().next() else { return Err("there are no lines".into()) };
        let own = strides(shape);
        for (a, b) in lines.clone() {
            let inside = a.first / own[along] % i64::from(shape[along].max(1));
            let ragged = a.len < i64::from(shape[along]) && a.len % i64::from(LANES) != 0;
            let why = match () {
                () if a.len > 1 && a.stride != first.stride => "its lines have other directions",
                () if a.len != first.len => "its lines have other lengths",
                () if inside != 0 => "a line begins within a dimension",
                () if ragged => "a line ends within a burst and a dimension",
                () if b.len > 1 && b.stride != 1 => "the other one's elements are not beside each other",
                () => continue,
            };
            return Err(why.into());
        }
        let bursts = shape[along].div_ceil(LANES).max(1);
        let (in_row, rows) = if bursts <= columns { (bursts, 1) } else { (columns, bursts.div_ceil(columns)) };
        let mut out = Matrix {
            tensor: first.tensor,
            shape: shape.to_vec(),
            along,
            columns: in_row,
            rows,
            beside: (columns / in_row).max(1),
            banks: g.banks_of_pch(),
            pchs: g.channel * g.pch,
            bank: g.bank,
            parts: Vec::new(),
        };
        // Few lines take few pseudo-channels, and lines beside each other only as many as there are.
        let others: u64 = shape.iter().enumerate().filter(|(d, _)| *d != along).map(|(_, e)| u64::from(*e)).product();
        let units = others.div_ceil(u64::from(out.banks)).max(1);
        out.pchs = u64::from(out.pchs).min(units) as u32;
        out.beside = u64::from(out.beside).min(units.div_ceil(u64::from(out.pchs))).max(1) as u32;
        out.parts = out.spread(g);
        Ok(out)
    }

    /// The parts of every dimension but that of the lines. Where an extent does not divide what is left of a
    /// coordinate, the rest stays empty.
    fn spread(&self, g: &Geometry) -> Vec<Vec<Leaf>> {
        let levels = [
            (Coord::Bank, g.bank, 1),
            (Coord::Bg, g.bg, 1),
            (Coord::Pch, self.pchs, 1),
            (Coord::Col, self.beside, self.columns),
            (Coord::Row, u32::MAX, self.rows),
        ];
        let (mut level, mut step) = (0, 1);
        let mut out = vec![Vec::new(); self.shape.len()];
        for d in (0..self.shape.len()).rev().filter(|d| *d != self.along) {
            let mut rest = self.shape[d];
            while rest > 1 {
                let (coord, bound, unit) = levels[level];
                let here = (bound / step).min(rest);
                if here > 1 {
                    out[d].push(Leaf { extent: here, coord, stride: step.saturating_mul(unit) });
                    rest = rest.div_ceil(here);
                    step = step.saturating_mul(here);
                }
                if coord != Coord::Row && (rest > 1 || here <= 1) {
                    (level, step) = (level + 1, 1);
                }
            }
            if out[d].is_empty() {
                out[d].push(Leaf { extent: 1, coord: Coord::Row, stride: 0 });
            }
        }
        out
    }

    /// The placement, from row 0 on.
    pub(super) fn placement(&self) -> ArrayPlacement {
        let mut dims = self.parts.clone();
        dims[self.along] = vec![
            Leaf { extent: LANES, coord: Coord::Byte, stride: 2 },
            Leaf { extent: self.columns, coord: Coord::Col, stride: 1 },
        ];
        if self.rows > 1 {
            dims[self.along].push(Leaf { extent: self.rows, coord: Coord::Row, stride: 1 });
        }
        ArrayPlacement { dims, ..ArrayPlacement::default() }
    }

    /// The pseudo-channels with lines.
    pub(super) fn pchs(&self, g: &Geometry) -> Vec<Pch> {
        (0..self.pchs).map(|n| Pch { channel: (n / g.pch) as u16, pc: (n % g.pch) as u16 }).collect()
    }

    /// Where the line is that begins with an element, and its bank, counted through the pseudo-channels.
    pub(super) fn find(&self, first: i64) -> (Slot, u32) {
        let (mut slot, mut bank) = (Slot { row: 0, beside: 0 }, 0);
        for (d, step) in strides(&self.shape).into_iter().enumerate().filter(|(d, _)| *d != self.along) {
            let mut rest = (first / step % i64::from(self.shape[d].max(1))) as u32;
            for leaf in &self.parts[d] {
                let digit = rest % leaf.extent;
                rest /= leaf.extent;
                let by = digit * leaf.stride;
                match leaf.coord {
                    Coord::Bank => bank += by,
                    Coord::Bg => bank += by * self.bank,
                    Coord::Pch => bank += by * self.banks,
                    Coord::Col => slot.beside += by / self.columns,
                    _ => slot.row += by,
                }
            }
        }
        (slot, bank)
    }
}
