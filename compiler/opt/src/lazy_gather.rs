//! Lazy (indirect) gather: gathered rows that are read where they are.
//!
//! MGATHER fetches elements by their numbers, and mostly neighbours: the channels of a pixel, a row of embeddings. If
//! only element-wise instructions read its tile, they may as well read such rows in the table: the gather leaves a
//! place for each row (`Gather` of loop IR), and copies a row only if its elements are no neighbours.
//!
//! Three things make that one pass over several gathers:
//! * A gather whose indices are a column and a row, added up, takes the two; what adds them has nothing to do.
//! * Readers come as late as they may, so that gathers, and arithmetic on columns between them, are done before them,
//!   and the readers of several gathers are one chain. What is put behind another statement shares no bytes with it
//!   that one of the two writes.
//! * Tiles that are live for longer than the planner knew get bytes of their own, behind all that it has placed. (Those
//!   of a chain are not touched in the end.)

use super::pattern::{OperandWindow, Pattern};
use crate::copy_propagation::regions;
use crate::pass::Pass;
use crate::spill_storage::SpillStorage;
use crate::webs::Uses;
use ptoc_diagnostics::Account;
use ptoc_ir::analysis::poly::{Definitions, Poly};
use ptoc_ir::tile::{Inst, Kernel, Op, Operand, Region, Stmt, TensorDir, Tile, TileRef, ViewRef};
use ptoc_isa::{BinOp, Expr, Order, Read, Sem};
use ptoc_placement::Placement;
use ptoc_placement::access::{AccessMode, tile_accesses};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;

/// Bytes of a row from which on a place is worth its eight.
const LEAST_ROW: u64 = 64;

/// Of a MGATHER whose rows are read where they are.
#[derive(Clone, Copy, Debug)]
pub struct Located {
    /// Indices as the sums of a column and a row.
    pub sum: Option<(TileRef, TileRef)>,
    /// Where the place of row 0 is kept, and bytes to the next one.
    pub place: (u64, u64),
}

/// The gathers of a kernel that leave row pointers.
#[derive(Clone, Default, Debug)]
pub struct LazyGathers {
    /// By the tiles that they would fill.
    pub located: FxHashMap<Tile, Located>,
    /// Bytes of all places.
    pub room: u64,
}

/// The pass.
pub const PASS: Pass = Pass {
    name: "lazy-gather",
    about: "reads gathered rows in their table through row pointers, and puts their readers late",
    run: |unit, cx| match lazy_gathers(&unit.kernel, &unit.placement, cx.account) {
        Some((kernel, placement, gathers)) => {
            (unit.kernel, unit.placement, unit.gathers) = (kernel, placement, gathers);
            true
        }
        None => false,
    },
};

/// The kernel with gathers whose rows are read in their tables, and where its tiles are; `None` if it has none.
fn lazy_gathers(
    kernel: &Kernel,
    placement: &Placement,
    account: Account<'_>,
) -> Option<(Kernel, Placement, LazyGathers)> {
    let storage = SpillStorage::new(kernel, placement)?;
    let uses = Uses::new(kernel, &|s| tile_accesses(kernel, s));
    let (defs, located) = (Definitions::new(kernel), FxHashMap::default());
    let mut finder = Finder { kernel, account, defs, uses, storage, located, room: 0 };
    let mut body = kernel.body.clone();
    finder.region(&mut body);
    let Finder { storage, located, room, .. } = finder;
    let placement = storage.placement;
    (!located.is_empty()).then(|| (Kernel { body, ..kernel.clone() }, placement, LazyGathers { located, room }))
}

struct Finder<'k> {
    kernel: &'k Kernel,
    account: Account<'k>,
    defs: Definitions<'k>,
    uses: Uses,
    storage: SpillStorage<'k>,
    located: FxHashMap<Tile, Located>,
    room: u64,
}

impl Finder<'_> {
    fn region(&mut self, region: &mut Region) {
        for stmt in region.iter_mut() {
            regions(&mut stmt.op).for_each(|r| self.region(r));
        }
        let mut unneeded = vec![false; region.len()];
        let found: Vec<_> = (0..region.len()).filter_map(|n| self.candidate(region, n)).collect();
        let rows = found.iter().map(|(dst, ..)| u64::from(dst.rows)).max().unwrap_or(0);
        // Places of one row are side by side.
        let step = 8 * found.len() as u64;
        let mut any = false;
        for (n, (dst, sum, adding)) in (0..).zip(found) {
            if !self.storage.moves(dst.tile) {
                continue;
            }
            any = true;
            self.located.insert(dst.tile, Located { sum, place: (self.room + 8 * n, step) });
            adding.into_iter().for_each(|n| unneeded[n] = true);
        }
        if !any {
            return;
        }
        self.room += rows * step;
        let mut unneeded = unneeded.into_iter();
        region.retain(|_| !unneeded.next().unwrap_or(false));
        *region = self.readers_late(std::mem::take(region));
    }

    /// Statement `n`, if it is a gather whose rows may be read in the table: its tile, the column and the row that are
    /// its indices, and the statements that add these up.
    #[allow(clippy::type_complexity, reason = "three things that are taken apart at once")]
    fn candidate(&self, region: &[Stmt], n: usize) -> Option<(TileRef, Option<(TileRef, TileRef)>, Vec<usize>)> {
        let (dst, view, idx) = gathered(&region[n].op)?;
        let data = &self.kernel.tiles[dst.tile];
        let bytes = u64::from(dst.cols) * u64::from(data.ty.dtype.size() as u32);
        let plain = self.storage.is_plain(&dst) && data.ty.order == Order::Nd && data.ty.dtype != DType::Bool;
        let unwritten = self.kernel.tensors[view.tensor].dir == TensorDir::In;
        if !plain || !unwritten || bytes < LEAST_ROW || !is_dense(&self.defs, view) {
            return None;
        }
        self.account.spend(region.len()).ok()?;
        // All else that there is to the tile is instructions behind the gather that compute something element by
        // element, or store it.
        let mut reads = 0;
        for stmt in &region[n + 1..] {
            let by_elements = |sem: Sem| sem.expr().is_some() || sem == Sem::Store;
            let Some(p) = Pattern::of_stmt(stmt).filter(|p| by_elements(p.inst.instr.get().sem)) else { continue };
            for (place, read) in &p.srcs {
                reads += usize::from(*place == OperandWindow::Tile(dst) && *read != Read::Turned);
            }
        }
        if reads == 0 || self.uses.of(dst.tile) != reads + 1 {
            return None;
        }
        Some(match self.sum(region, n, &idx) {
            Some((column, row, adding)) => (dst, Some((column, row)), adding),
            None => (dst, None, Vec::new()),
        })
    }

    /// Indices that are the sums of a column and a row, and the statements that only add them up.
    fn sum(&self, region: &[Stmt], n: usize, idx: &TileRef) -> Option<(TileRef, TileRef, Vec<usize>)> {
        let (mut terms, mut adding) = (Vec::new(), Vec::new());
        self.terms(region, n, idx, Read::Whole, &mut terms, &mut adding)?;
        let (column, row) = match terms[..] {
            [(column, Read::Column), (row, Read::Row)] | [(row, Read::Row), (column, Read::Column)] => (column, row),
            _ => return None,
        };
        // Both are still what they were when they were added.
        let first = adding.iter().min()?;
        let between = (*first..n).filter(|m| !adding.contains(m)).map(|m| &region[m]);
        let kept = |t: &TileRef| between.clone().all(|s| !self.writes(s, t.tile));
        (kept(&column) && kept(&row)).then_some((column, row, adding))
    }

    /// What a tile is the sum of, in front of statement `n`.
    fn terms(
        &self,
        region: &[Stmt],
        n: usize,
        tile: &TileRef,
        read: Read,
        terms: &mut Vec<(TileRef, Read)>,
        adding: &mut Vec<usize>,
    ) -> Option<()> {
        if let Read::Column | Read::Row = read {
            let plain =
                tile.element.is_none() && tile.origin.is_none() && self.kernel.tiles[tile.tile].ty.layout.is_none();
            terms.push((*tile, read));
            return (plain && terms.len() <= 2).then_some(());
        }
        if read != Read::Whole || !self.storage.is_plain(tile) || self.uses.of(tile.tile) != 2 {
            return None;
        }
        self.account.spend(n).ok()?;
        let (m, p) = (0..n)
            .rev()
            .find_map(|m| Some((m, Pattern::of_stmt(&region[m]).filter(|p| p.dst == OperandWindow::Tile(*tile))?)))?;
        let dtype = |t: &TileRef| self.kernel.tiles[t.tile].ty.dtype;
        let same = p.srcs.iter().all(|(s, _)| s.tile().is_some_and(|t| dtype(t) == dtype(tile)));
        let adds = match p.inst.instr.get().sem.expr() {
            Some(Expr::Arg(_)) => p.srcs.len() == 1,
            Some(Expr::Bin(BinOp::Add, Expr::Arg(a), Expr::Arg(b))) => p.srcs.len() == 2 && a != b,
            _ => false,
        };
        if !same || !adds || p.inst.operands.len() != p.srcs.len() + 1 {
            return None;
        }
        adding.push(m);
        p.srcs.iter().try_for_each(|(s, read)| self.terms(region, m, s.tile()?, *read, terms, adding))
    }

    /// Whether a statement may write to bytes of a tile.
    fn writes(&self, stmt: &Stmt, tile: Tile) -> bool {
        tile_accesses(self.kernel, stmt)
            .iter()
            .any(|(access, t)| *access == AccessMode::Write && self.storage.meet(t.tile, tile))
            || stmt.op.regions().flatten().any(|s| self.writes(s, tile))
    }

    // ---- the order -----------------------------------------------------------------------------------------------

    /// The statements of a region, readers of gathered rows behind as many others as may be.
    fn readers_late(&mut self, region: Region) -> Region {
        let mut out = Region::new();
        let mut late = Region::new();
        for stmt in region {
            let reads_rows =
                self.accesses(&stmt).iter().any(|(a, t)| *a == AccessMode::Read && self.located.contains_key(&t.tile));
            // Without steps, nothing waits.
            if self.account.spend(1 + late.len()).is_err() {
                out.append(&mut late);
            }
            let apart = late.iter().all(|l| self.storage.apart(&self.accesses(&stmt), &self.accesses(l)));
            let computes = Pattern::of_stmt(&stmt);
            let stores = computes.as_ref().is_some_and(|p| p.dst.tile().is_none());
            if !reads_rows && (late.is_empty() || (apart && !stores && self.may_come_first(&stmt))) {
                out.push(stmt);
                continue;
            }
            let to = computes.as_ref().and_then(|p| p.dst.tile()).copied();
            if computes.is_none() {
                out.append(&mut late);
                out.push(stmt);
                continue;
            }
            if let Some(to) = to.filter(|t| self.storage.is_plain(t)) {
                self.storage.moves(to.tile);
            }
            late.push(stmt);
            // What is behind a store may see it.
            if stores {
                out.append(&mut late);
            }
        }
        out.append(&mut late);
        out
    }

    /// Whether a statement is one that computes, and nothing more, or a gather whose rows may stay.
    fn may_come_first(&self, stmt: &Stmt) -> bool {
        let located = gathered(&stmt.op).is_some_and(|(dst, ..)| self.located.contains_key(&dst.tile));
        located || stmt.op.is_pure() || matches!(stmt.op, Op::Alloc { .. }) || Pattern::of_stmt(stmt).is_some()
    }

    fn accesses(&self, stmt: &Stmt) -> Vec<(AccessMode, TileRef)> {
        tiles_of(self.kernel, &self.located, stmt)
    }
}

/// The tiles that a statement touches, reads before writes: a gather of sums its column and its row.
pub fn tiles_of(kernel: &Kernel, located: &FxHashMap<Tile, Located>, stmt: &Stmt) -> Vec<(AccessMode, TileRef)> {
    let all = tile_accesses(kernel, stmt);
    let dst = gathered(&stmt.op).map(|(dst, ..)| dst);
    let known = dst.and_then(|dst| Some((dst, located.get(&dst.tile)?.sum?)));
    match known {
        Some((dst, (column, row))) => {
            vec![(AccessMode::Read, column), (AccessMode::Read, row), (AccessMode::Write, dst)]
        }
        None => all,
    }
}

/// The tile, the table and the indices of a MGATHER.
fn gathered(op: &Op) -> Option<(TileRef, &ViewRef, TileRef)> {
    let Op::Inst(inst) = op else { return None };
    let Inst { instr, operands, .. } = &**inst;
    match &operands[..] {
        [Operand::Tile(dst), Operand::View(view), Operand::Tile(idx)] if instr.get().sem == Sem::Gather => {
            Some((*dst, view, *idx))
        }
        _ => None,
    }
}

/// Whether the elements of a view follow each other, in row-major order and without gaps.
pub fn is_dense(defs: &Definitions<'_>, view: &ViewRef) -> bool {
    let mut step = Some(Poly::constant(1));
    view.shape.iter().zip(&view.strides).rev().all(|(&n, &stride)| {
        let here = step.take();
        step = here.as_ref().and_then(|s| s.times(&defs.poly(n)?));
        here.is_some() && here == defs.poly(stride)
    })
}
