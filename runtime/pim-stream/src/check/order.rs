//! Commands that a controller could exchange.
//!
//! Between two fences a controller keeps the order of commands that read, or that write, one bank, as long as they come
//! back to no row: of those to the open row the oldest goes first, and the bank is opened for the oldest that is left.
//! To a row that was left commands may come back early, as long as it is open. Writes to the reserved rows go to mapped
//! registers, which are not reordered among each other. Nothing else is kept. Units are stepped by commands, so what
//! they compute follows from the order.

use crate::mode::{Machine, PimMode, RESERVED_BIT};
use crate::placement::Geometry;
use crate::stream::*;
use std::collections::HashSet;

/// Commands that keep their order with others of the same kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// Modes and registers.
    Control,
    /// Data of the host: where they go does not depend on their order.
    Data,
    /// Units step.
    Step { bank: u32, write: bool },
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
    // Rows of the bank since the last fence, and the open one.
    let (mut rows, mut open): (HashSet<u32>, Option<u32>) = (HashSet::new(), None);
    for (n, op) in e.ops.iter().enumerate() {
        let (at, count, data) = match op {
            ColumnOp::Fence => {
                last = None;
                continue;
            }
            // AiM's controllers keep the order of its commands.
            ColumnOp::Line(_) | ColumnOp::Aim(_) => continue,
            ColumnOp::Rd { at, count } => (at, *count, None),
            ColumnOp::Wr { at, count, data } => (at, *count, Some(data)),
        };
        let bank = u32::from(at.bg) * g.bank + u32::from(at.bank);
        let kept = match at.row & RESERVED_BIT {
            0 if machine.mode() == PimMode::AllBankPim => Kept::Step { bank, write: data.is_some() },
            0 => Kept::Data,
            _ => Kept::Control,
        };
        let steps = matches!(kept, Kept::Step { .. });
        let back = steps && open != Some(at.row) && rows.contains(&at.row);
        let ordered = last.is_none_or(|l| l == kept && !back);
        if !ordered {
            out.push(n);
        }
        if last.is_none() || !ordered {
            rows.clear();
        }
        if steps {
            rows.insert(at.row);
            open = Some(at.row);
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
