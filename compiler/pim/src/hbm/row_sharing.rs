//! Rows that operands share: which columns of which bank each array of a launch gets.
//!
//! To go on in another row costs PRE and ACT, and to turn from reads to writes costs as much as the data bus says. So
//! what a launch reads lies in the even banks, operand beside operand in the same rows: one ACT serves all of them.
//! What it writes lies in the odd banks, where a row stays open while the even one is read; or beside its operands, so
//! that the odd banks have the row of the registers open, to which the host writes again and again.
//!
//! A single block has both operands of its products in its banks. Sums of a few rows read them burst by burst in turns,
//! so there the operands may be interleaved: the first burst of every line, then the second one.

use super::Res;
use super::chosen::BlockParts;
use super::contraction::Orientation;
use super::node::BankBurst;
use crate::rows::{FreeRows, Laid, reach, same};
use ptoc_ir::tile;
use ptoc_pim_stream::{ArrayPlacement, Geometry};

/// Columns of the rows of one of a unit's banks, which an array has to itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowWindow {
    /// 0 is the even bank, 1 the odd one.
    pub bank: u32,
    /// The first column.
    pub col: u32,
    /// How many.
    pub columns: u32,
    /// After so many columns they come again; those of the row, where nothing is interleaved.
    pub every: u32,
}

/// How the lines of what is read lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineOrder {
    /// One after the other.
    Apart,
    /// So are they, and what is written lies beside them.
    Together,
    /// Up to eight beside each other, burst by burst, as a MAC with automatic indices goes through them.
    Beside,
    /// So are they, and each array has rows of its own: sums of different arrays each go through their rows once, with
    /// as many vectors of the host as there are registers.
    Alone,
    /// The lines of all operands beside each other, in as few rows as they fill.
    Interleaved,
}

/// Arrays that share a row, at most: a quarter has the eight columns of an instruction with automatic indices.
const SHARES: u32 = 4;

impl RowWindow {
    /// Whole rows of a bank.
    pub fn whole(bank: u32, g: &Geometry) -> RowWindow {
        RowWindow { bank, col: 0, columns: g.col, every: g.col }
    }

    /// Windows beside each other for so many arrays, at most [`SHARES`].
    fn beside(arrays: usize, bank: u32, g: &Geometry) -> impl Iterator<Item = RowWindow> {
        let columns = (g.col / (arrays as u32).next_power_of_two()).max(1);
        (0..).map(move |n| RowWindow { bank, col: n * columns, columns, every: g.col })
    }

    /// All windows that an array may have.
    fn all(g: &Geometry) -> impl Iterator<Item = RowWindow> {
        let shares = (0..=SHARES.ilog2()).map(|n| 1usize << n);
        shares.flat_map(move |n| (0..2).flat_map(move |bank| RowWindow::beside(n, bank, g).take(n)))
    }

    /// Whether the burst is in these columns.
    pub fn contains(&self, at: BankBurst) -> bool {
        u32::from(at.odd) == self.bank && (self.col..self.col + self.columns).contains(&(at.col % self.every))
    }
}

/// An array's place, and the window of its rows that it has.
pub type Windowed = (ArrayPlacement, RowWindow);

/// Who has a block, and how rows of a matrix lie.
#[derive(Clone, Copy, Debug)]
pub struct Layouts<'l> {
    /// The unit of each block.
    pub on: &'l tile::ElementPlacement,
    /// How lines lie.
    pub lines: LineOrder,
    /// How tiles lie.
    pub orientation: &'l Orientation,
    /// The device.
    pub g: &'l Geometry,
}

/// An array of the launch that has no place yet.
#[derive(Debug)]
pub struct Operand<'k> {
    /// Its number.
    pub tensor: u32,
    /// The launch stores to it.
    pub written: bool,
    /// What each block has of it.
    pub parts: BlockParts<'k>,
}

impl Operand<'_> {
    /// The placement in a window, from row 0 on.
    pub fn lay_out(&self, window: RowWindow, layouts: Layouts<'_>) -> Res<ArrayPlacement> {
        let beside =
            matches!(layouts.lines, LineOrder::Beside | LineOrder::Alone) && !self.written && !self.parts.copied;
        self.parts.lay_out((window, beside), layouts.on, layouts.g)
    }

    /// The array where it lies already, if each block finds its part there.
    pub fn resident(&self, rows: &FreeRows, layouts: Layouts<'_>) -> Res<Option<Windowed>> {
        let known: Vec<(&[u32], &Laid)> = rows.known(self.tensor).collect();
        if known.is_empty() {
            return Ok(None);
        }
        for window in RowWindow::all(layouts.g) {
            let placement = self.lay_out(window, layouts)?;
            let there = |(shape, laid): &&(&[u32], &Laid)| {
                laid.rows >= reach(&placement) && same(&laid.placement, &placement, shape)
            };
            if let Some((_, laid)) = known.iter().find(there) {
                return Ok(Some((ArrayPlacement { row: laid.placement.row, ..placement }, window)));
            }
        }
        Ok(None)
    }
}

/// Interleaved places for what a single block reads, by number; `None` where it cannot be so, or a row would have less
/// than two bursts of a line.
pub fn interleaved(operands: &[Operand<'_>], rows: &mut FreeRows, g: &Geometry) -> Option<Vec<(u32, Windowed)>> {
    let mut reads: Vec<(&Operand<'_>, u32, i64)> = Vec::new();
    for operand in operands.iter().filter(|o| !o.written) {
        let (lines, bursts) = operand.parts.lines()?;
        reads.push((operand, u32::try_from(lines).ok()?, bursts));
    }
    let every = reads.iter().try_fold(0u32, |n, (_, lines, _)| n.checked_add(*lines))?;
    let alike = reads.windows(2).all(|two| two[0].2 == two[1].2);
    if reads.len() < 2 || !alike || 2 * every > g.col {
        return None;
    }
    // What others are multiplied with comes first.
    reads.sort_by_key(|(o, lines, _)| (*lines, o.tensor));
    let mut out: Vec<(u32, Windowed)> = Vec::new();
    let mut col = 0;
    for (operand, lines, _) in reads {
        let window = RowWindow { bank: 0, col, columns: lines, every };
        out.push((operand.tensor, (operand.parts.interleave(window, g)?, window)));
        col += lines;
    }
    // Where all of them lie so already, in the same rows, they stay.
    let at = |(n, (placement, _)): &(u32, Windowed)| -> Vec<u32> {
        let there = rows.known(*n).filter(|(shape, laid)| same(&laid.placement, placement, shape));
        there.map(|(_, laid)| laid.placement.row).collect()
    };
    let known: Vec<Vec<u32>> = out.iter().map(at).collect();
    let all = known.first().and_then(|first| first.iter().find(|row| known.iter().all(|k| k.contains(*row))));
    let row = match all {
        Some(row) => *row,
        None => {
            let needed = out.iter().map(|(_, (placement, _))| reach(placement)).max().unwrap_or(0);
            rows.take(None, &ArrayPlacement::default(), needed)?
        }
    };
    out.iter_mut().for_each(|(_, (placement, _))| placement.row = row);
    Some(out)
}

/// Places with shared rows for the operands, by number; `None` if there are not as many rows in one piece.
pub fn shared(
    operands: &[Operand<'_>],
    rows: &mut FreeRows,
    layouts: Layouts<'_>,
) -> Res<Option<Vec<(u32, Windowed)>>> {
    let together = layouts.lines == LineOrder::Together;
    let of = |written: bool| -> Vec<&Operand<'_>> {
        operands.iter().filter(|o| (o.written && !together) == written).collect()
    };
    let (reads, writes) = (of(false), of(true));
    let shares = if layouts.lines == LineOrder::Alone { 1 } else { SHARES as usize };
    let groups = |all: &[&Operand<'_>]| all.len().div_ceil(shares);
    let mut free = rows.clone();
    let mut out = Vec::new();
    for n in 0..groups(&reads).max(groups(&writes)) {
        let mut group: Vec<(u32, Windowed)> = Vec::new();
        for (bank, all) in [(0, &reads), (1, &writes)] {
            let Some(beside) = all.chunks(shares).nth(n) else { continue };
            for (operand, window) in beside.iter().zip(RowWindow::beside(beside.len(), bank, layouts.g)) {
                group.push((operand.tensor, (operand.lay_out(window, layouts)?, window)));
            }
        }
        let needed = group.iter().map(|(_, (placement, _))| reach(placement)).max().unwrap_or(0);
        let Some(row) = free.take(None, &ArrayPlacement::default(), needed) else { return Ok(None) };
        group.iter_mut().for_each(|(_, (placement, _))| placement.row = row);
        out.extend(group);
    }
    *rows = free;
    Ok(Some(out))
}
