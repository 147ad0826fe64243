//! Accesses of a statement: the windows that a statement touches.

use super::window::{Count, TouchedPart};
use ptoc_ir::tile::{self, Affine, Copy, Inst, Kernel, Op, Operand, PrintPart, Region, Stmt, TileRef, Value};
use ptoc_isa::{FixpipeWindow, Oob, Role, Sem};
use ptoc_placement::access::{AccessMode, inst_operands, tile_accesses};
use rustc_hash::FxHashMap;

/// Values that are constants.
pub(super) type Constants = FxHashMap<Value, i64>;

/// All `index` constants of a kernel.
pub(super) fn constants(kernel: &Kernel) -> Constants {
    fn collect(region: &Region, out: &mut Constants) {
        for stmt in region {
            if let Op::Const { dst, value } = &stmt.op {
                out.extend(value.as_index().map(|n| (*dst, n)));
            }
            stmt.op.regions().for_each(|r| collect(r, out));
        }
    }
    let mut out = Constants::default();
    collect(&kernel.prologue, &mut out);
    collect(&kernel.body, &mut out);
    out
}

/// The windows that a statement touches, reads before writes. A read may be of less than that; a write is of all.
pub(super) fn touches(kernel: &Kernel, constants: &Constants, stmt: &Stmt) -> Vec<(AccessMode, TileRef, TouchedPart)> {
    let mut out = Vec::new();
    match &stmt.op {
        Op::TileGet { tile, row, col, .. } => out.push((AccessMode::Read, *tile, TouchedPart::Element(*row, *col))),
        Op::TileSet { tile, row, col, .. } => out.push((AccessMode::Write, *tile, TouchedPart::Element(*row, *col))),
        Op::Print { parts } => out.extend(parts.iter().filter_map(|p| match p {
            PrintPart::Tile(t) => Some((AccessMode::Read, *t, TouchedPart::Valid)),
            _ => None,
        })),
        Op::Inst(inst) if inst.instr.get().sem == Sem::Assign => {}
        Op::Inst(inst) => {
            for (access, operand) in inst_operands(inst) {
                if let Operand::Tile(t) = operand {
                    let part = if access == AccessMode::Write { inserted(inst) } else { None };
                    out.push((access, *t, part.unwrap_or(TouchedPart::Valid)));
                }
            }
        }
        Op::Copy(copy) => {
            out.extend(side(copy, &copy.src, everywhere(copy), constants).map(|(t, part)| {
                // A part of a tile is cut from what was valid: nothing beyond it is read.
                let part = match part {
                    TouchedPart::Some([m, n]) => TouchedPart::Some([m.or(Some(t.valid.0)), n.or(Some(t.valid.1))]),
                    part => part,
                };
                (AccessMode::Read, t, part)
            }));
            let filled = copy.fill.is_some() || everywhere(copy);
            out.extend(side(copy, &copy.dst, filled, constants).map(|(t, part)| {
                let part = match part {
                    _ if copy.covers => TouchedPart::Valid,
                    TouchedPart::Rect(..) => part,
                    _ => TouchedPart::Some([None; 2]),
                };
                (AccessMode::Write, t, part)
            }));
        }
        _ => out.extend(tile_accesses(kernel, stmt).into_iter().map(|(a, t)| (a, t, TouchedPart::Some([None; 2])))),
    }
    out.sort_by_key(|(a, ..)| *a == AccessMode::Write);
    out
}

/// What an instruction writes that puts its source somewhere into its destination.
fn inserted(inst: &Inst) -> Option<TouchedPart> {
    let Sem::Fixpipe(f) = inst.instr.get().sem else { return None };
    if f.window != FixpipeWindow::OfDestination {
        return None;
    }
    let sources = || inst.instr.get().operands.iter().zip(&inst.operands).filter(|(spec, _)| spec.role == Role::Src);
    let mut places = sources().filter_map(|(_, o)| match o {
        Operand::Scalar(v) => Some(*v),
        _ => None,
    });
    let source = sources().find_map(|(_, o)| match o {
        Operand::Tile(t) => Some(t),
        _ => None,
    });
    let at = places.next().zip(places.next());
    let (Some(at), Some(source)) = (at, source) else { return Some(TouchedPart::Some([None; 2])) };
    Some(TouchedPart::Rect(at, (Count::Of(source.valid.0), Count::Of(source.valid.1))))
}

/// The window of a side of a nest, and the rectangle of it in which all points are. `all`: none of them is left out.
fn side(copy: &Copy, side: &tile::NestAccess, all: bool, constants: &Constants) -> Option<(TileRef, TouchedPart)> {
    let tile::NestAccess::Tile { tile, row, col } = side else { return None };
    let (at, extents) = ((row.start, col.start), &copy.extents);
    let part = match (axis(row, extents, constants), axis(col, extents, constants)) {
        // Of two coordinates that follow one axis, a diagonal is touched.
        (Some((m, a)), Some((n, b))) if a.is_none() || a != b => {
            // Where an axis that moves nothing here is empty, there is no point at all.
            let runs = |k: usize| [a, b].contains(&Some(k)) || constants.get(&extents[k]).is_some_and(|n| *n >= 1);
            match all && (0..extents.len()).all(runs) {
                true => TouchedPart::Rect(at, (m, n)),
                false => TouchedPart::Within(at, (m, n)),
            }
        }
        _ => TouchedPart::Some([row, col].map(|axis| limit(copy, axis))),
    };
    Some((*tile, part))
}

/// How many rows (or columns) a guard leaves, if there is one on them.
fn limit(copy: &Copy, axis: &Affine) -> Option<Value> {
    copy.guards.iter().find(|g| g.at == *axis && copy.fill.is_none()).map(|g| g.bound)
}

/// How many rows (or columns) a nest walks that follow each other, and along which axis.
fn axis(at: &Affine, extents: &[Value], constants: &Constants) -> Option<(Count, Option<usize>)> {
    let mut moving = (0..extents.len()).filter(|k| constants.get(&at.strides[*k]) != Some(&0));
    match (moving.next(), moving.next()) {
        (None, _) => Some((Count::One, None)),
        (Some(k), None) if constants.get(&at.strides[k]) == Some(&1) => Some((Count::Of(extents[k]), Some(k))),
        _ => None,
    }
}

/// Whether an element is moved at every point of a nest.
fn everywhere(copy: &Copy) -> bool {
    let found = |side: &tile::NestAccess| match side {
        tile::NestAccess::Tensor { tables, .. } => tables.iter().all(|t| t.oob != Oob::Zero),
        tile::NestAccess::Tile { .. } => true,
    };
    copy.guards.is_empty() && found(&copy.src) && found(&copy.dst)
}
