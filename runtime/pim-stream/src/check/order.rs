//! Commands that a controller could exchange.
//!
//! Between two fences a controller keeps the order of commands that read, or that write, one row of one bank: they wait
//! for the same row, and the oldest goes first. Writes to the reserved rows go to mapped registers, which are not
//! reordered among each other. Nothing else is kept. Units are stepped by commands, so what they compute follows from
//! the order.

use crate::mode::{Machine, PimMode, RESERVED_BIT};
use crate::placement::Geometry;
use crate::stream::*;

/// Commands that keep their order with others of the same kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Modes and registers.
    Control,
    /// Data of the host: where they go does not depend on their order.
    Data,
    /// Units step.
    Step { bank: u32, row: u32, write: bool },
}

/// Operations of an exec before which a fence is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unordered {
    /// The exec, by its number among the steps.
    pub step: usize,
    /// The first of the operations.
    pub op: usize,
    /// How many there are.
    pub count: usize,
}

impl Stream {
    /// Operations that a controller may exchange with those before them, though what the units do depends on it. The
    /// stream has no faults.
    pub fn unordered(&self, g: &Geometry) -> Vec<Unordered> {
        let execs = self.steps.iter().enumerate().filter_map(|(n, s)| match &s.action {
            Action::Exec(e) => Some((n, e)),
            _ => None,
        });
        let found = execs.filter_map(|(step, e)| {
            let ops = missing(e, g);
            ops.first().map(|&op| Unordered { step, op, count: ops.len() })
        });
        found.collect()
    }
}

fn missing(e: &Exec, g: &Geometry) -> Vec<usize> {
    // Modes are followed from the exec's own beginning: one that takes them over from the exec before it is all data.
    let (mut machine, mut last, mut out) = (Machine::default(), None, Vec::new());
    for (n, op) in e.ops.iter().enumerate() {
        let (at, count, data) = match op {
            ColumnOp::Fence => {
                last = None;
                continue;
            }
            ColumnOp::Line(_) => continue,
            ColumnOp::Rd { at, count } => (at, *count, None),
            ColumnOp::Wr { at, count, data } => (at, *count, Some(data)),
        };
        let bank = u32::from(at.bg) * g.bank + u32::from(at.bank);
        let kept = match at.row & RESERVED_BIT {
            0 if machine.mode() == PimMode::AllBankPim => Kept::Step { bank, row: at.row, write: data.is_some() },
            0 => Kept::Data,
            _ => Kept::Control,
        };
        if last.is_some_and(|l| l != kept) {
            out.push(n);
        }
        last = Some(kept);
        if let Some(Data::Bytes(bytes)) = data {
            (at.col..at.col + count).for_each(|col| {
                machine.write(bank, at.row, col, bytes);
            });
        }
    }
    out
}
