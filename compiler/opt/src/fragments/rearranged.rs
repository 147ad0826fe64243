//! What is done to tiles twice where once does: integers of 8 bits that become f32 by way of a half, which holds each
//! of them exactly; and a tile that is transposed only to be stored, which is a store along the other dimension.

use super::fused::{Uses, inst, unchanged, writes};
use ptoc_ir::tile::{Inst, Kernel, Op, Operand, Region, Stmt, Tile, TileRef, ViewRef};
use ptoc_isa::{Expr, RoundMode, Sem, To};
use ptoc_placement::access::is_private;
use ptoc_tensor::DType;

/// Rewrites the statements of a region, and says whether any changed.
pub(super) fn rearranged(kernel: &Kernel, region: &mut Region, uses: &Uses) -> bool {
    let mut changed = false;
    while let Some((first, second)) = (0..region.len()).find_map(|at| conversions(kernel, region, at, uses)) {
        let Some((_, a)) = converted(&region.remove(first).op) else { return changed };
        let Op::Inst(to) = &mut region[second - 1].op else { return changed };
        to.operands[1] = Operand::Tile(a);
        changed = true;
    }
    while let Some((first, store, view, tile)) = (0..region.len()).find_map(|at| transposed(kernel, region, at, uses)) {
        region[store].op = inst("TSTORE", vec![Operand::View(view), Operand::Tile(tile)]);
        region.remove(first);
        changed = true;
    }
    changed
}

/// A conversion as it is: the result and its source.
fn converted(op: &Op) -> Option<(TileRef, TileRef)> {
    let Op::Inst(inst) = op else { return None };
    let is = matches!(inst.instr.get().sem.expr(), Some(Expr::Convert(Expr::Arg(1), To::Mode)));
    let exact = matches!(inst.attrs.round, None | Some(RoundMode::Rint)) && inst.attrs.saturate != Some(true);
    match inst.operands[..] {
        [Operand::Tile(d), Operand::Tile(a)] if is && exact => Some((d, a)),
        _ => None,
    }
}

/// The instruction that makes a tile that only the one at `at` reads, if what it reads itself is there until then.
fn maker<'r>(kernel: &Kernel, region: &'r [Stmt], at: usize, made: Tile, uses: &Uses) -> Option<(usize, &'r Inst)> {
    let first = region[..at].iter().rposition(|s| writes(kernel, s, made))?;
    let Op::Inst(inst) = &region[first].op else { return None };
    let [_, Operand::Tile(from), ..] = inst.operands[..] else { return None };
    let same = unchanged(kernel, &region[first + 1..at], [from.tile, from.tile]);
    let alone = uses.get(&made) == Some(&[1, 1]) && [made, from.tile].iter().all(|t| is_private(kernel, *t));
    (same && alone).then_some((first, inst))
}

/// The numbers of the conversion to a half, and of the one from it at a place.
fn conversions(kernel: &Kernel, region: &[Stmt], at: usize, uses: &Uses) -> Option<(usize, usize)> {
    let dtype = |t: &TileRef| kernel.tiles[t.tile].ty.dtype;
    let (d, half) = converted(&region[at].op)?;
    let (first, _) = maker(kernel, region, at, half.tile, uses)?;
    let (to, a) = converted(&region[first].op)?;
    let types = matches!(dtype(&a), DType::U8 | DType::I8)
        && matches!(dtype(&half), DType::F16 | DType::BF16)
        && dtype(&d) == DType::F32;
    (types && to == half && a.valid == d.valid && (a.rows, a.cols) == (d.rows, d.cols)).then_some((first, at))
}

/// The numbers of the transposition of what a store at a place stores, and of that; the window the other way round, and
/// the tile as it was.
fn transposed(kernel: &Kernel, region: &[Stmt], at: usize, uses: &Uses) -> Option<(usize, usize, ViewRef, TileRef)> {
    let (view, turned) = crate::contraction::stored(&region[at].op)?;
    let (first, inst) = maker(kernel, region, at, turned.tile, uses)?;
    let [Operand::Tile(d), Operand::Tile(a)] = inst.operands[..] else { return None };
    let is = inst.instr.get().sem == Sem::Transpose && d == turned && (d.valid.1, d.valid.0) == a.valid;
    let [rows, cols] = view.shape[..] else { return None };
    let [down, along] = view.strides[..] else { return None };
    let view = ViewRef { shape: vec![cols, rows], strides: vec![along, down], ..view.clone() };
    is.then_some((first, at, view, a))
}
