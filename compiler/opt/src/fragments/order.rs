//! The order in which statements are emitted: a reduction of rows stands as far in front of a product as it can, as
//! what it reads need not be there any more while the product takes registers. In the source it may stand anywhere.

use crate::contraction::product;
use ptoc_ir::tile::{Kernel, Op, Stmt, Tile, Value};
use ptoc_isa::Sem;
use ptoc_placement::access::{AccessMode, tile_accesses};

/// The statements of a region in that order.
pub fn ordered<'k>(kernel: &Kernel, region: &'k [Stmt]) -> Vec<&'k Stmt> {
    let mut out: Vec<&Stmt> = Vec::with_capacity(region.len());
    for stmt in region {
        let reduces = matches!(&stmt.op, Op::Inst(inst) if matches!(inst.instr.get().sem, Sem::RowReduce(_)));
        if reduces {
            forward(kernel, stmt, &mut out);
        } else {
            out.push(stmt);
        }
    }
    out
}

/// Puts a reduction, and the allocation of its result, in front of what it does not depend on, if a product is among
/// that.
fn forward<'k>(kernel: &Kernel, stmt: &'k Stmt, out: &mut Vec<&'k Stmt>) {
    let accesses = tile_accesses(kernel, stmt);
    let touches = |tile: Tile| accesses.iter().any(|(_, t)| t.tile == tile);
    let writes = |tile: Tile| accesses.iter().any(|(mode, t)| *mode == AccessMode::Write && t.tile == tile);
    let mut values: Vec<Value> = Vec::new();
    stmt.op.for_each_use(&mut |v| values.push(v));
    let own = |s: &Stmt| matches!(&s.op, Op::Alloc { tile } if writes(*tile));
    let passes = |s: &Stmt| match &s.op {
        op if op.is_pure() => op.def().is_none_or(|v| !values.contains(&v)),
        Op::Alloc { tile } => own(s) || !touches(*tile),
        Op::Inst(_) => tile_accesses(kernel, s).iter().all(|(mode, t)| match mode {
            AccessMode::Write => !touches(t.tile),
            AccessMode::Read => !writes(t.tile),
        }),
        _ => false,
    };
    let at = out.iter().rposition(|s| !passes(s)).map_or(0, |n| n + 1);
    if !out[at..].iter().any(|s| product(&s.op).is_some()) {
        return out.push(stmt);
    }
    let behind = out.split_off(at);
    out.extend(behind.iter().copied().filter(|s| own(s)));
    out.push(stmt);
    out.extend(behind.into_iter().filter(|s| !own(s)));
}
