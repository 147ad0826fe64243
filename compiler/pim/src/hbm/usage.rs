//! How much of the device a launch uses, as far as its stream tells: units with blocks, lanes with elements, rows that
//! are opened again, turns that registers do not ask for. Whoever compiles kernels compares ways to write them by it.

use super::code::REGISTERS;
use super::emit;
use super::places::Places;
use ptoc_abi::Coord;
use ptoc_ir::tile::Kernel;
use ptoc_pim_stream::Geometry;
use ptoc_pim_stream::mode::{GRF_A_COLUMNS, GRF_B_COLUMNS, RESERVED_BIT};
use ptoc_pim_stream::stream::{Action, Burst, ColumnOp, Data};
use std::collections::HashSet;

/// What a launch uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Blocks of the grid.
    pub blocks: u64,
    /// Units that have any.
    pub busy: u64,
    /// Units of the device.
    pub units: u64,
    /// Blocks of the unit that has most.
    pub rounds: u64,
    /// Clocks that the column commands of all its steps take, roughly.
    pub clocks: u64,
    /// Rows that are opened, in both banks of a unit.
    pub openings: u64,
    /// Those of them that are different.
    pub rows: u64,
    /// Changes from reads to writes.
    pub turns: u64,
    /// As many as full registers take.
    pub least_turns: u64,
    /// Tensors whose bursts are not full.
    pub thin: Vec<ThinBursts>,
}

/// A tensor with bursts that hold few elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThinBursts {
    /// The tensor, by its number.
    pub tensor: u32,
    /// Elements of its rows.
    pub columns: u64,
    /// Lanes of the bursts that have them.
    pub lanes: u64,
}

/// Rows of a tensor from which on thin bursts are of account.
const ROWS: u64 = 16;

impl Usage {
    /// Of a launch whose blocks are dealt out so, with these steps.
    pub(super) fn of<'a>(
        (kernel, places): (&Kernel, &Places),
        dealt: impl Iterator<Item = usize>,
        actions: impl Iterator<Item = &'a Action>,
        g: &Geometry,
    ) -> Usage {
        let mut out = Usage { units: u64::from(g.channel * g.pch * g.banks_of_pch() / 2), ..Usage::default() };
        for blocks in dealt {
            out.blocks += blocks as u64;
            out.busy += 1;
            out.rounds = out.rounds.max(blocks as u64);
        }
        let (mut rows, mut moved): (HashSet<(u16, u32)>, [u64; 3]) = Default::default();
        for action in actions {
            let Action::Exec(e) = action else { continue };
            out.clocks += emit::clocks(&e.ops);
            out.commands(&e.ops, &mut rows, &mut moved);
        }
        out.rows = rows.len() as u64;
        let file = REGISTERS as u64;
        out.least_turns = moved[0].div_ceil(file).max(moved[1].div_ceil(file)).max(moved[2].div_ceil(2 * file));
        out.thin = (0..kernel.tensors.len()).filter_map(|n| thin(n, places)).collect();
        out
    }

    fn commands(&mut self, ops: &[ColumnOp], rows: &mut HashSet<(u16, u32)>, moved: &mut [u64; 3]) {
        let (mut open, mut writes) = ([None; 2], true);
        for op in ops {
            let (at, count, data): (&Burst, u32, Option<&Data>) = match op {
                ColumnOp::Rd { at, count } => (at, *count, None),
                ColumnOp::Wr { at, count, data } => (at, *count, Some(data)),
                ColumnOp::Fence | ColumnOp::Line(_) | ColumnOp::Aim(_) => continue,
            };
            self.turns += u64::from(!writes && data.is_some());
            writes = data.is_some();
            if at.row & RESERVED_BIT != 0 {
                let file = [GRF_A_COLUMNS, GRF_B_COLUMNS].iter().position(|columns| columns.contains(&at.col));
                if let Some(file) = file {
                    moved[file] += u64::from(count);
                }
                continue;
            }
            moved[2] += if matches!(data, Some(Data::Unit)) { u64::from(count) } else { 0 };
            if open[usize::from(at.bank % 2)].replace(at.row) != Some(at.row) {
                self.openings += 1;
                rows.insert((at.bank % 2, at.row));
            }
        }
    }

    /// Shares of the time of all units in which they have a block.
    pub fn filled(&self) -> f64 {
        self.blocks as f64 / (self.rounds * self.units).max(1) as f64
    }
}

/// A tensor whose elements fill less than 0.6 of the lanes, in many rows.
fn thin(n: usize, places: &Places) -> Option<ThinBursts> {
    let placement = places.placement(n)?;
    let shape = places.shape(n as u32);
    let in_lanes = |d: &usize| placement.dims[*d].iter().any(|leaf| leaf.coord == Coord::Byte && leaf.extent > 1);
    let along = (0..shape.len().min(placement.dims.len())).find(in_lanes)?;
    let lanes: u32 = placement.dims[along].iter().filter(|l| l.coord == Coord::Byte).map(|l| l.extent).product();
    let columns = u64::try_from(shape[along]).ok()?;
    let rows = shape.iter().product::<i64>() as u64 / columns.max(1);
    let bursts = columns.div_ceil(u64::from(lanes.max(1)));
    let lanes = bursts * u64::from(super::trace::LANES);
    (rows >= ROWS && 10 * columns < 6 * lanes).then_some(ThinBursts { tensor: n as u32, columns, lanes })
}
