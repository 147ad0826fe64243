//! What a statement does to tiles and scratch tensors: the one reading of operands that liveness, initialisation and
//! the plan checker share. Nested regions are not entered.

use ptoc_ir::tile::{Inst, Kernel, Op, Operand, PrintPart, Stmt, TensorDir, TensorId, Tile, TileRef};
use ptoc_isa::{Role, Sem, ShapeRule};

/// Read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessMode {
    /// Elements are read.
    Read,
    /// Elements are written.
    Write,
}

/// Storage that a statement touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessedStorage {
    /// A tile, through this window.
    Tile(TileRef),
    /// A scratch tensor of the block.
    Scratch(TensorId),
}

/// The accesses of `stmt` itself, reads before writes.
pub fn accesses(kernel: &Kernel, stmt: &Stmt) -> Vec<(AccessMode, AccessedStorage)> {
    let mut out = Vec::new();
    let scratch = |t: TensorId| (kernel.tensors[t].dir == TensorDir::Scratch).then_some(AccessedStorage::Scratch(t));
    let side = |side: &ptoc_ir::tile::NestAccess, access: AccessMode, out: &mut Vec<(AccessMode, AccessedStorage)>| {
        out.extend(side.tile().map(|t| (access, AccessedStorage::Tile(*t))));
        out.extend(side.tensor().and_then(scratch).map(|p| (access, p)));
        out.extend(side.tables().filter_map(scratch).map(|p| (AccessMode::Read, p)));
    };
    match &stmt.op {
        Op::Load { tensor, .. } => out.extend(scratch(*tensor).map(|p| (AccessMode::Read, p))),
        Op::Store { tensor, .. } => out.extend(scratch(*tensor).map(|p| (AccessMode::Write, p))),
        Op::Atomic { tensor, .. } => {
            out.extend(scratch(*tensor).map(|p| (AccessMode::Read, p)));
            out.extend(scratch(*tensor).map(|p| (AccessMode::Write, p)));
        }
        Op::TileGet { tile, .. } => out.push((AccessMode::Read, AccessedStorage::Tile(*tile))),
        Op::TileSet { tile, .. } => out.push((AccessMode::Write, AccessedStorage::Tile(*tile))),
        Op::Print { parts } => out.extend(parts.iter().filter_map(|p| match p {
            PrintPart::Tile(t) => Some((AccessMode::Read, AccessedStorage::Tile(*t))),
            _ => None,
        })),
        // Binding an address touches no element.
        Op::Inst(inst) if inst.instr.get().sem == Sem::Assign => {}
        Op::Inst(inst) => {
            for (access, operand) in inst_operands(inst) {
                match operand {
                    Operand::Tile(t) => out.push((access, AccessedStorage::Tile(*t))),
                    Operand::View(v) => out.extend(scratch(v.tensor).map(|p| (access, p))),
                    Operand::Scalar(_) => {}
                }
            }
            if inst.attrs.atomic.is_some() {
                // An atomic store reads what it adds to.
                let reads: Vec<_> = out.iter().filter(|(a, _)| *a == AccessMode::Write).map(|(_, p)| *p).collect();
                out.extend(reads.into_iter().map(|p| (AccessMode::Read, p)));
            }
            out.extend(inst.scratch.iter().map(|t| (AccessMode::Write, AccessedStorage::Tile(*t))));
        }
        Op::Copy(copy) => {
            side(&copy.src, AccessMode::Read, &mut out);
            side(&copy.dst, AccessMode::Write, &mut out);
        }
        Op::Mma(mma) => {
            [&mma.a, &mma.b, &mma.acc].into_iter().for_each(|s| side(s, AccessMode::Read, &mut out));
            side(&mma.acc, AccessMode::Write, &mut out);
        }
        _ => {}
    }
    out.sort_by_key(|(a, _)| *a == AccessMode::Write);
    out
}

/// The operands of an instruction with the part that the table gives them.
pub fn inst_operands(inst: &Inst) -> impl Iterator<Item = (AccessMode, &Operand)> {
    inst.instr.get().operands.iter().zip(&inst.operands).map(|(spec, operand)| {
        let access = match spec.role {
            Role::Dst => AccessMode::Write,
            Role::Src => AccessMode::Read,
        };
        (access, operand)
    })
}

/// The tiles that `stmt` itself touches.
pub fn tile_accesses(kernel: &Kernel, stmt: &Stmt) -> Vec<(AccessMode, TileRef)> {
    accesses(kernel, stmt)
        .into_iter()
        .filter_map(|(a, p)| match p {
            AccessedStorage::Tile(t) => Some((a, t)),
            AccessedStorage::Scratch(_) => None,
        })
        .collect()
}

/// Whether the window is the whole of a single tile (not of an array), so that equal windows mean equal elements.
pub fn is_whole(kernel: &Kernel, r: &TileRef) -> bool {
    let data = &kernel.tiles[r.tile];
    data.count == 1 && r.origin.is_none() && (r.rows, r.cols) == (data.ty.rows, data.ty.cols)
}

/// Whether operand `k` is a row or column that the instruction repeats. Elements of it are read after the result has
/// been written at their positions.
pub fn is_broadcast(inst: &Inst, k: usize) -> bool {
    let row = inst.instr.get();
    matches!(row.shape, ShapeRule::RowExpand | ShapeRule::ColExpand) && k + 1 == row.operands.len()
}

/// The regions nested in a statement, in order of execution.
pub fn regions(op: &Op) -> Vec<&[Stmt]> {
    match op {
        Op::For(f) => vec![&f.body],
        Op::If(i) => vec![&i.then, &i.els],
        Op::While(w) => vec![&w.head, &w.body],
        Op::Scope(s) => vec![&s.body],
        _ => Vec::new(),
    }
}

/// Whether this tile's memory holds it at an address of the planner's choosing.
pub fn is_auto(kernel: &Kernel, tile: Tile) -> bool {
    kernel.tiles[tile].addr == ptoc_ir::tile::AddrKind::Auto
}

/// Whether the tile is single and plain, placed by the planner, on nobody's bytes. Then nothing but accesses to it by
/// its name sees its elements.
pub fn is_private(kernel: &Kernel, tile: Tile) -> bool {
    let data = &kernel.tiles[tile];
    data.count == 1
        && is_auto(kernel, tile)
        && data.ty.layout.is_none()
        && kernel.pin(tile).is_none()
        && kernel.aliases.iter().all(|&(a, b)| a != tile && b != tile)
}
