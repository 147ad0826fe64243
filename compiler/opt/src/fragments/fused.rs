//! What is fused before tiles are looked at: products that are added to a tile, exponentials of differences from a
//! column or a row. ([`super::rearranged`] has what is converted or transposed on its way.)
//!
//! `mixed = matmul(weights, values) + mixed * fade` is a product that starts at zero, and an addition of each element.
//! A unit whose accumulator is in registers starts at `mixed * fade` as well: no registers for a product of its own, no
//! additions, and nobody waits for it before the next use of `mixed`. The sums are others then (each is the unit's from
//! its start on), so the interpreter takes the same kernel.
//!
//! `exp(score - peak)` is one instruction of the table, which a special function unit takes a multiply-add for.

use super::rearranged::rearranged;
use crate::contraction::{From, moved, product};
use ptoc_ir::tile::{Inst, InstAttrs, Kernel, Op, Operand, Region, Stmt, Tile, TileRef};
use ptoc_isa::{BinOp, Expr, Sem, ShapeRule, TABLE, UnOp, lookup};
use ptoc_placement::access::{AccessMode, is_private, is_whole, tile_accesses};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;

/// The kernel with such products and exponentials, if there are any.
pub(super) fn fused(kernel: &Kernel) -> Option<Kernel> {
    let mut uses = FxHashMap::default();
    count(kernel, &kernel.body, &mut uses);
    let mut body = kernel.body.clone();
    let changed = rewrite(kernel, &mut body, &uses);
    changed.then(|| Kernel { body, ..kernel.clone() })
}

/// Reads and writes of each tile.
pub(super) type Uses = FxHashMap<Tile, [u32; 2]>;

fn count(kernel: &Kernel, region: &Region, uses: &mut Uses) {
    for stmt in region {
        if matches!(stmt.op, Op::Inst(_)) {
            for (mode, t) in tile_accesses(kernel, stmt) {
                uses.entry(t.tile).or_default()[usize::from(mode == AccessMode::Write)] += 1;
            }
        }
        stmt.op.regions().for_each(|r| count(kernel, r, uses));
    }
}

fn rewrite(kernel: &Kernel, region: &mut Region, uses: &Uses) -> bool {
    let mut changed = rearranged(kernel, region, uses);
    changed |= differences(kernel, region, uses);
    while let Some(sum) = region.iter().enumerate().find_map(|(at, _)| addition(kernel, region, at, uses)) {
        replace(kernel, region, sum, uses);
        changed = true;
    }
    for stmt in region {
        match &mut stmt.op {
            Op::For(f) => changed |= rewrite(kernel, &mut f.body, uses),
            Op::If(i) => {
                changed |= rewrite(kernel, &mut i.then, uses);
                changed |= rewrite(kernel, &mut i.els, uses);
            }
            _ => {}
        }
    }
    changed
}

/// Exponentials of differences from a column that nobody else reads.
fn differences(kernel: &Kernel, region: &mut Region, uses: &Uses) -> bool {
    let mut changed = false;
    while let Some((sub, exp)) = (0..region.len()).find_map(|at| difference(kernel, region, at, uses)) {
        let (Op::Inst(of), Op::Inst(inst)) = (&region[sub].op, &region[exp].op) else { return changed };
        let operands = inst.operands[..1].iter().chain(&of.operands[1..]).cloned().collect();
        region[exp].op = self::inst(exponential_of_difference(of.instr.get().shape), operands);
        region.remove(sub);
        changed = true;
    }
    changed
}

/// The name of the instruction that is the exponential of a difference from the row's, or the column's, number.
fn exponential_of_difference(shape: ShapeRule) -> &'static str {
    let of = |expr: &Expr| matches!(expr, Expr::Un(UnOp::Exp, Expr::Bin(BinOp::Sub, Expr::Arg(1), Expr::Arg(2))));
    let row = TABLE.iter().find(|row| row.shape == shape && row.sem.expr().is_some_and(|e| of(&e)));
    row.expect("a row of the table").name
}

/// The exponential at a place, if it is one of those: the numbers of the subtraction and of itself.
fn difference(kernel: &Kernel, region: &[Stmt], at: usize, uses: &Uses) -> Option<(usize, usize)> {
    let plain = |op: &Op| match op {
        Op::Inst(inst) if inst.attrs == InstAttrs::default() => Some(inst.clone()),
        _ => None,
    };
    let inst = plain(&region[at].op)?;
    let (Sem::Unary(UnOp::Exp), [Operand::Tile(d), Operand::Tile(x)]) = (inst.instr.get().sem, &inst.operands[..])
    else {
        return None;
    };
    let sub = region[..at].iter().rposition(|s| writes(kernel, s, x.tile))?;
    let of = plain(&region[sub].op)?;
    let [Operand::Tile(t), Operand::Tile(a), Operand::Tile(column)] = &of.operands[..] else { return None };
    let subtracts = [Sem::RowExpandBinary(BinOp::Sub), Sem::ColExpandBinary(BinOp::Sub)];
    let is = subtracts.contains(&of.instr.get().sem) && t == x && uses.get(&x.tile) == Some(&[1, 1]);
    let same = unchanged(kernel, &region[sub + 1..at], [a.tile, column.tile]);
    let floats =
        [d, x, a, column].iter().all(|t| kernel.tiles[t.tile].ty.dtype == DType::F32 && is_private(kernel, t.tile));
    (is && same && floats).then_some((sub, at))
}

/// Whether a statement writes a tile.
pub(super) fn writes(kernel: &Kernel, stmt: &Stmt, tile: Tile) -> bool {
    tile_accesses(kernel, stmt).iter().any(|(mode, t)| *mode == AccessMode::Write && t.tile == tile)
}

/// Whether these statements, which neither branch nor repeat, leave tiles as they are.
pub(super) fn unchanged(kernel: &Kernel, between: &[Stmt], tiles: [Tile; 2]) -> bool {
    between.iter().all(|s| {
        let simple = s.op.is_pure() || matches!(s.op, Op::Inst(_) | Op::Alloc { .. });
        simple && !tiles.iter().any(|t| writes(kernel, s, *t))
    })
}

/// A product, its copy and the addition by their numbers in a region, the sum, and what is added.
struct Addition {
    product: usize,
    copy: usize,
    at: usize,
    sum: TileRef,
    other: TileRef,
}

/// The addition at a place, if it is one of those.
fn addition(kernel: &Kernel, region: &[Stmt], at: usize, uses: &Uses) -> Option<Addition> {
    let (sum, pair) = added(&region[at].op)?;
    [0, 1].into_iter().find_map(|n| {
        let (term, other) = (pair[n], pair[1 - n]);
        let copy = region[..at].iter().rposition(|s| moved(&s.op).is_some_and(|(d, _)| d.tile == term.tile))?;
        let (_, acc) = moved(&region[copy].op)?;
        let product_at =
            region[..copy].iter().rposition(|s| product(&s.op).is_some_and(|(p, _)| p.d.tile == acc.tile))?;
        let (p, From::Zero) = product(&region[product_at].op)? else { return None };
        // Nobody else sees the product, in its accumulator or as a copy.
        let once = [acc, term].iter().all(|t| uses.get(&t.tile) == Some(&[1, 1]) && is_private(kernel, t.tile));
        let plain = [p.d, acc, term, other, sum].iter().all(|t| is_whole(kernel, t) && t.valid == sum.valid)
            && [acc, other, sum].iter().all(|t| kernel.tiles[t.tile].ty.dtype == DType::F32);
        // Its operands are the same where the sum is.
        let between = unchanged(kernel, &region[product_at + 1..at], [p.a.tile, p.b.tile]);
        let sums = [sum, other].iter().all(|t| t.tile != term.tile && is_private(kernel, t.tile));
        (once && plain && between && sums).then_some(Addition { product: product_at, copy, at, sum, other })
    })
}

/// `d = a + b` of tiles.
fn added(op: &Op) -> Option<(TileRef, [TileRef; 2])> {
    let Op::Inst(inst) = op else { return None };
    match (inst.instr.get().sem, &inst.operands[..]) {
        (Sem::Binary(BinOp::Add), [Operand::Tile(d), Operand::Tile(a), Operand::Tile(b)])
            if inst.attrs == InstAttrs::default() =>
        {
            Some((*d, [*a, *b]))
        }
        _ => None,
    }
}

/// The product, where the addition was, from what was added on.
fn replace(
    kernel: &Kernel,
    region: &mut Region,
    Addition { product: at, copy, at: end, sum, other }: Addition,
    uses: &Uses,
) {
    let Some((p, _)) = product(&region[at].op) else { return };
    let span = region[at].span;
    let acc = [sum, sum, p.a, p.b].map(Operand::Tile).to_vec();
    let acc = inst("TMATMUL_ACC", acc);
    let start = (other.tile != sum.tile && !renamed(kernel, &mut region[..end], (other, sum), uses)).then(|| {
        let op = inst("TMOV", vec![Operand::Tile(sum), Operand::Tile(other)]);
        Stmt { op, span: region[end].span }
    });
    region[end] = Stmt { op: acc, span };
    if let Some(start) = start {
        region.insert(end, start);
    }
    region.remove(copy);
    region.remove(at);
}

pub(super) fn inst(name: &str, operands: Vec<Operand>) -> Op {
    let instr = lookup(name).expect("an instruction of the table");
    Op::Inst(Box::new(Inst { instr, operands, scratch: Vec::new(), attrs: InstAttrs::default() }))
}

/// Lets what makes `from`, which only the addition reads, make `to` in its place; not where somebody else would notice.
fn renamed(kernel: &Kernel, region: &mut [Stmt], (from, to): (TileRef, TileRef), uses: &Uses) -> bool {
    let touches = |s: &Stmt, tile: Tile| tile_accesses(kernel, s).iter().any(|(_, t)| t.tile == tile);
    let Some(maker) = region.iter().rposition(|s| touches(s, from.tile)) else { return false };
    let later = region[maker + 1..].iter().any(|s| touches(s, to.tile));
    let Op::Inst(inst) = &mut region[maker].op else { return false };
    match inst.operands.first_mut() {
        Some(Operand::Tile(d)) if *d == from && !later && uses.get(&from.tile) == Some(&[1, 1]) => {
            *d = to;
            true
        }
        _ => false,
    }
}
