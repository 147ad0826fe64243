//! What each statement touches, and by what that is in bounds.

use super::Open;
use super::claim::Thing;
use cranelift_entity::EntityRef;
use ptoc_diagnostics::Span;
use ptoc_ir::loops::{Bounded, BoundsRow, Module, Op, Region};
use ptoc_ir::tile::{CheckId, Kernel};
use rustc_hash::FxHashMap;
use smol_str::{SmolStr, format_smolstr};

/// A group of bounds of a statement: the number of the statement in a walk, and how many they are.
pub(super) struct Touched {
    pub at: usize,
    pub span: Span,
    pub thing: Thing,
    pub bounds: usize,
}

/// By what one thing that a statement of the source touches is in bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessBounds {
    /// The statement.
    pub span: Span,
    /// The tile, the tensor, or the instruction that asks something of its operands.
    pub what: SmolStr,
    /// The checks in front of it; none: all follows from what is known there.
    pub checks: Vec<CheckId>,
    /// Some of its bounds follow from intervals of variables.
    pub intervals: bool,
}

/// The table of a kernel: one row a statement and thing, in the order of the first of them. The checks of `open` follow
/// those of the kernel.
pub(super) fn rows(kernel: &Kernel, touched: &[Touched], open: &[Open], removed: &[CheckId]) -> Vec<AccessBounds> {
    let name = |thing: Thing| match thing {
        Thing::Tile(t) => kernel.tiles[t].name.clone(),
        Thing::Tensor(t) => kernel.tensors[t].name.clone(),
        Thing::Operands(instruction) => format_smolstr!("operands of {instruction}"),
    };
    let mut out: Vec<AccessBounds> = Vec::new();
    let mut places: FxHashMap<(Span, SmolStr), usize> = FxHashMap::default();
    let mut from = 0;
    for t in touched {
        let what = name(t.thing);
        let place = *places.entry((t.span, what.clone())).or_insert_with(|| {
            out.push(AccessBounds { span: t.span, what, checks: Vec::new(), intervals: false });
            out.len() - 1
        });
        let row = &mut out[place];
        let first = open[from..].partition_point(|o| o.0 < t.at) + from;
        from = first;
        for (k, (_, _, bound)) in open.iter().enumerate().skip(first).take_while(|(_, o)| o.0 == t.at) {
            let check = CheckId::new(kernel.checks.len() + k);
            match bound.what.thing() == t.thing {
                true if removed.contains(&check) => row.intervals = true,
                true if !row.checks.contains(&check) => row.checks.push(check),
                _ => {}
            }
        }
    }
    out
}

/// The rows as a module's table. A check that was folded away holds wherever it stood.
pub fn of_module(rows: Vec<AccessBounds>, module: &Module) -> Vec<BoundsRow> {
    fn left(region: &Region, out: &mut Vec<u32>) {
        for stmt in region {
            if let Op::Check { check, .. } = &stmt.op {
                out.push(*check);
            }
            stmt.op.regions().for_each(|r| left(r, out));
        }
    }
    let mut checks = Vec::new();
    left(&module.block.body, &mut checks);
    let number = |id: CheckId| module.checks.iter().position(|row| row.id == id.as_u32()).map(|n| n as u32);
    let told = |row: AccessBounds| {
        let named: Vec<u32> = row.checks.into_iter().filter_map(number).filter(|n| checks.contains(n)).collect();
        let by = match row.intervals {
            _ if !named.is_empty() => Bounded::Checks(named),
            true => Bounded::Intervals,
            false => Bounded::Proof,
        };
        BoundsRow { what: row.what, by, span: row.span, place: None }
    };
    rows.into_iter().map(told).collect()
}
