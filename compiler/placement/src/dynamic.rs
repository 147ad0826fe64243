//! Keeps run-time addresses away from tiles that the compiler placed in the same memory.

use crate::placement::Placement;
use ptoc_diagnostics::{Span, codes};
use ptoc_ir::tile::{CheckData, Const, Kernel, Op, Region, Stmt, Tile, Ty, Value, ValueData};
use ptoc_isa::{CmpOp, text};

/// Adds, before every run-time TASSIGN into a memory where automatic tiles have the top end, a check that the tile
/// ends below them.
pub fn add_checks(kernel: &mut Kernel, placement: &Placement) {
    let mut body = std::mem::take(&mut kernel.body);
    region(kernel, placement, &mut body);
    kernel.body = body;
}

fn region(kernel: &mut Kernel, placement: &Placement, stmts: &mut Region) {
    let mut out = Region::with_capacity(stmts.len());
    for mut stmt in std::mem::take(stmts) {
        match &mut stmt.op {
            Op::Assign { tile, addr, .. } => {
                let (tile, addr, span) = (*tile, *addr, stmt.span);
                check(kernel, placement, tile, addr, span, &mut out);
            }
            Op::For(f) => region(kernel, placement, &mut f.body),
            Op::If(i) => {
                region(kernel, placement, &mut i.then);
                region(kernel, placement, &mut i.els);
            }
            Op::While(w) => {
                region(kernel, placement, &mut w.head);
                region(kernel, placement, &mut w.body);
            }
            Op::Scope(s) => region(kernel, placement, &mut s.body),
            _ => {}
        }
        out.push(stmt);
    }
    *stmts = out;
}

fn check(kernel: &mut Kernel, placement: &Placement, tile: Tile, addr: Value, span: Span, out: &mut Region) {
    let data = &kernel.tiles[tile];
    let Some(memory) = placement.memory(data.ty.loc) else { return };
    let Some(limit) = memory.dynamic_limit else { return };
    // The highest address at which the tile still ends in time; negative if there is none.
    let last = i64::try_from(limit).unwrap_or(i64::MAX) - i64::try_from(data.ty.bytes()).unwrap_or(i64::MAX);
    let (name, places) = (data.name.clone(), text::list(&memory.locations));
    let mut value = |ty| kernel.values.push(ValueData { ty, name: None, span });
    let (bound, cond) = (value(Ty::Index), value(Ty::BOOL));
    let check = kernel.checks.push(CheckData {
        code: codes::DYNAMIC_ADDRESS_LIMIT,
        message: format!(
            "tile `{name}` at run-time address {{0}} runs into tiles that the compiler placed in {places} from \
            {limit:#x} on"
        ),
        span,
        help: Some(format!(
            "keep the address at or below {last:#x}, or give the other tiles of {places} addresses of their own"
        )),
    });
    let mut push = |op| out.push(Stmt { op, span });
    push(Op::Const { dst: bound, value: Const::index(last) });
    push(Op::Compare { dst: cond, op: CmpOp::Le, a: addr, b: bound });
    push(Op::Check { cond, check, args: vec![addr] });
}
