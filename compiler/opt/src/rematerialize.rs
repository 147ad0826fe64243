//! Scheduling and rematerialisation: work on a tile where its elements are at hand.
//!
//! Fused chains hold what is computed in registers, but only from one neighbouring instruction to the next. Where the
//! text puts something else between, tiles would be written and read again. Three things bring work back to the
//! elements:
//! * A reduction of rows comes directly behind what computes its elements: it sees the same ones there. In attention
//!   the weights are summed while they are computed, so that they are stored only as the factors of the next product.
//! * What one operation makes of a tile is computed again where a later chain reads it, in place of being kept: it
//!   writes the same elements to the same bytes, and its operand is read in place of it. So scaled scores are not
//!   stored.
//! * What computes a large tile sinks to its first reader, past instructions on tiles of other shapes. So weights that
//!   become numbers wait for their scales and zero points, and are never stored as numbers.
//!
//! What a statement is moved over shares no bytes with it that one of the two writes. Results of reductions that are
//! there sooner than the planner knew, and operands that live longer, get bytes of their own ([`SpillStorage`]).

use super::pattern::{OperandWindow, Pattern, Read, foldable};
use crate::copy_propagation::regions;
use crate::lazy_gather;
use crate::lazy_gather::Located;
use crate::pass::Pass;
use crate::spill_storage::SpillStorage;
use crate::webs::Uses;
use ptoc_diagnostics::Account;
use ptoc_ir::tile::{Kernel, Op, Region, Stmt, Tile, TileRef, Value};
use ptoc_isa::{BinOp, Expr};
use ptoc_placement::Placement;
use ptoc_placement::access::AccessMode;
use rustc_hash::{FxHashMap, FxHashSet};

/// Columns from which on partials of a row cost less than reading it again: the sum of 64 of them is work too.
const LEAST_COLUMNS: u32 = 256;

/// Elements from which on a tile is worth a move.
const LEAST_ELEMENTS: u32 = 1024;

/// The pass.
pub const PASS: Pass = Pass {
    name: "rematerialize",
    about: "moves reductions to where their elements are computed and large tiles to where they are read, and \
        computes cheap elements again rather than reload them",
    run: |unit, cx| {
        // What is kept of a single row is near.
        let changed = match unit.rows {
            None => rescheduled(&unit.kernel, &unit.placement, &unit.gathers.located, cx.account),
            Some(_) => None,
        };
        match changed {
            Some((kernel, placement)) => {
                (unit.kernel, unit.placement) = (kernel, placement);
                true
            }
            None => false,
        }
    },
};

/// The kernel with its work where its elements are, and where its tiles are; `None` if nothing moves.
fn rescheduled(
    kernel: &Kernel,
    placement: &Placement,
    located: &FxHashMap<Tile, Located>,
    account: Account<'_>,
) -> Option<(Kernel, Placement)> {
    let storage = SpillStorage::new(kernel, placement)?;
    let uses = Uses::new(kernel, &|s| lazy_gather::tiles_of(kernel, located, s));
    let mut finder = Finder { kernel, account, located, uses, storage, found: false };
    let mut body = kernel.body.clone();
    finder.region(&mut body);
    let Finder { storage, found, .. } = finder;
    found.then(|| (Kernel { body, ..kernel.clone() }, storage.placement))
}

struct Finder<'k> {
    kernel: &'k Kernel,
    account: Account<'k>,
    located: &'k FxHashMap<Tile, Located>,
    uses: Uses,
    storage: SpillStorage<'k>,
    found: bool,
}

impl Finder<'_> {
    fn region(&mut self, region: &mut Region) {
        for stmt in region.iter_mut() {
            regions(&mut stmt.op).for_each(|r| self.region(r));
        }
        for n in 0..region.len() {
            if let Some(to) = self.place_of_fold(region, n) {
                self.move_up(region, n, to);
                self.found = true;
            }
        }
        for n in (0..region.len()).rev() {
            if let Some(reader) = self.reader_to_sink_to(region, n) {
                region[n..reader].rotate_left(1);
                self.found = true;
            }
        }
        // Accesses of each tile in the region.
        let mut here: FxHashMap<Tile, usize> = FxHashMap::default();
        let mut count = |finder: &Self, stmt: &Stmt| {
            finder.all(stmt).into_iter().for_each(|(_, t)| *here.entry(t.tile).or_default() += 1);
        };
        region.iter().for_each(|s| count(self, s));
        let mut n = 0;
        while n < region.len() {
            for at in self.again(region, n, &here).into_iter().rev() {
                let stmt = region[n].clone();
                self.all(&stmt).into_iter().for_each(|(_, t)| *here.entry(t.tile).or_default() += 1);
                region.insert(at, stmt);
                self.found = true;
            }
            n += 1;
        }
    }

    // ---- reductions ----------------------------------------------------------------------------------------------

    /// Where statement `n` goes, if it is a reduction whose elements are computed further up.
    fn place_of_fold(&mut self, region: &[Stmt], n: usize) -> Option<usize> {
        let fold = Pattern::of_stmt(&region[n]).filter(|p| p.fold.is_some())?;
        let shape = fold.shape()?;
        let (OperandWindow::Tile(dst), [(OperandWindow::Tile(src), _)]) = (fold.dst, &fold.srcs[..]) else {
            return None;
        };
        let writes = |s: &Stmt| self.all(s).iter().any(|(how, t)| (*how, t.tile) == (AccessMode::Write, src.tile));
        let steps = region[..n].iter().rev().take_while(|s| !writes(s)).count();
        self.account.spend(1 + steps).ok()?;
        let def = n.checked_sub(steps + 1)?;
        if src.cols < LEAST_COLUMNS {
            return None;
        }
        let computes =
            Pattern::of_stmt(&region[def]).is_some_and(|p| p.dst == OperandWindow::Tile(*src) && p.fold.is_none());
        let between = &region[def + 1..n];
        if !computes || between.iter().all(|s| in_line(s, shape)) || defines(between, &region[n]) {
            return None;
        }
        let apart = |f: &Self| between.iter().all(|s| f.storage.apart(&f.all(&region[n]), &f.all(s)));
        if !apart(self) {
            // Nobody else's bytes are in the way then; names may be.
            if !self.storage.is_plain(&dst) || !self.storage.moves(dst.tile) || !apart(self) {
                return None;
            }
        }
        Some(def + 1)
    }

    /// Puts statement `n` in place of `to`, further up. Declarations of what it touches come along: the life of its
    /// result begins in front of it.
    fn move_up(&self, region: &mut Region, n: usize, to: usize) {
        let touched: FxHashSet<Tile> = self.all(&region[n]).into_iter().map(|(_, t)| t.tile).collect();
        let declares = |s: &Stmt| matches!(&s.op, Op::Alloc { tile } if touched.contains(tile));
        let (declarations, passed): (Region, Region) = region.drain(to..n).partition(declares);
        region.splice(to + 1..to + 1, passed);
        region.splice(to..to, declarations);
    }

    // ---- sinking -------------------------------------------------------------------------------------------------

    /// The first reader of the large tile that statement `n` computes, if something of another shape stands between.
    fn reader_to_sink_to(&mut self, region: &[Stmt], n: usize) -> Option<usize> {
        let p = Pattern::of_stmt(&region[n]).filter(|p| p.fold.is_none())?;
        let (dst, shape) = (*p.dst.tile()?, p.shape()?);
        let plain = |s: &OperandWindow<'_>| s.tile().is_some_and(|t| self.storage.is_plain(t));
        let large = dst.rows.saturating_mul(dst.cols) >= LEAST_ELEMENTS;
        if !large || !plain(&p.dst) || !p.srcs.iter().all(|(s, read)| plain(s) && *read != Read::Turned) {
            return None;
        }
        let touches = |s: &Stmt| self.all(s).iter().any(|(_, t)| t.tile == dst.tile);
        let steps = region[n + 1..].iter().take_while(|s| !touches(s)).count();
        self.account.spend(1 + steps).ok()?;
        let reader = n + 1 + steps;
        let reads = Pattern::of_stmt(region.get(reader)?)?;
        let whole = reads.srcs.contains(&(OperandWindow::Tile(dst), Read::Whole));
        let between = &region[n + 1..reader];
        if !whole || reads.shape() != Some(shape) || between.iter().all(|s| in_line(s, shape)) {
            return None;
        }
        let own = self.all(&region[n]);
        own.iter().all(|one| self.keeps_apart(*one, between)).then_some(reader)
    }

    /// Whether nobody of `between` minds this access, given bytes of its own if need be.
    fn keeps_apart(&mut self, one: (AccessMode, TileRef), between: &[Stmt]) -> bool {
        let apart = |f: &Self| between.iter().all(|s| f.storage.apart(&[one], &f.all(s)));
        apart(self) || self.storage.is_plain(&one.1) && self.storage.moves(one.1.tile) && apart(self)
    }

    // ---- cheap results -------------------------------------------------------------------------------------------

    /// In front of which statements `n` is to be computed again: the first reader behind each end of a chain.
    fn again(&self, region: &[Stmt], n: usize, here: &FxHashMap<Tile, usize>) -> Vec<usize> {
        let Some((dst, shape)) = self.cheap(&region[n]) else { return Vec::new() };
        let own = |s: &Stmt| self.all(s).into_iter().filter(|(_, t)| t.tile == dst.tile).collect::<Vec<_>>();
        let here = here.get(&dst.tile).copied().unwrap_or(0);
        if !self.storage.is_plain(&dst) || self.uses.of(dst.tile) != here {
            return Vec::new();
        }
        let operands: Vec<TileRef> =
            self.accesses(&region[n]).iter().filter(|(how, _)| *how == AccessMode::Read).map(|(_, t)| *t).collect();
        let mut out = Vec::new();
        // Results of reductions in this chain, which it cannot read.
        let mut folded: Vec<Tile> = Vec::new();
        let (mut first, mut cut) = (false, false);
        let mut left = here - own(&region[n]).len();
        // Those in front of the statement are found at the end, if anywhere.
        for (at, stmt) in region.iter().enumerate().skip(n + 1) {
            if left == 0 {
                break;
            }
            if self.account.spend(1).is_err() {
                return Vec::new();
            }
            let all = self.all(stmt);
            let reads_fold = all.iter().any(|(how, t)| *how == AccessMode::Read && folded.contains(&t.tile));
            if reads_fold || !in_line(stmt, shape) {
                cut = true;
                folded.clear();
            }
            let mine = own(stmt);
            left -= mine.len();
            if mine.iter().any(|(how, t)| *how == AccessMode::Read && *t != dst) {
                return Vec::new();
            }
            if mine.iter().any(|(how, _)| *how == AccessMode::Read) {
                match (in_line(stmt, shape), cut) {
                    (false, _) => return Vec::new(),
                    (true, true) if !first => return Vec::new(),
                    (true, true) => out.push(at),
                    (true, false) => first = true,
                }
                cut = false;
            }
            if mine.iter().any(|(how, _)| *how == AccessMode::Write) {
                break;
            }
            if let Some(p) = Pattern::of_stmt(stmt).filter(|p| p.fold.is_some()) {
                // Such a one is no chain's, and reads what is kept.
                if p.srcs.iter().any(|(s, _)| *s == OperandWindow::Tile(dst) && !foldable(self.kernel, &dst)) {
                    return Vec::new();
                }
                folded.extend(p.dst.tile().map(|t| t.tile));
            }
            let overwritten = |(how, t): &(AccessMode, TileRef)| {
                *how == AccessMode::Write && operands.iter().any(|o| self.storage.meet(t.tile, o.tile))
            };
            if all.iter().any(overwritten) {
                if left == 0 {
                    return out;
                }
                // What reads it later needs what was kept.
                let later = |s: &Stmt| own(s).first().is_some_and(|(how, _)| *how == AccessMode::Read);
                let next = region[at + 1..].iter().find(|s| !own(s).is_empty());
                return if next.is_some_and(later) { Vec::new() } else { out };
            }
        }
        out
    }

    /// A statement that does one operation on the elements of one tile, with rows, columns and numbers: what it writes,
    /// and its shape.
    fn cheap(&self, stmt: &Stmt) -> Option<(TileRef, (Value, Value))> {
        let p = Pattern::of_stmt(stmt).filter(|p| p.fold.is_none())?;
        let arithmetic = matches!(
            p.inst.instr.get().sem.expr(),
            Some(Expr::Bin(BinOp::Add | BinOp::Sub | BinOp::Mul, Expr::Arg(_), Expr::Arg(_)))
        );
        let dst = *p.dst.tile()?;
        let dtype = |t: &TileRef| self.kernel.tiles[t.tile].ty.dtype;
        let apart = p.srcs.iter().all(|(s, _)| {
            s.tile()
                .is_some_and(|t| dtype(t) == dtype(&dst) && t.element.is_none() && !self.storage.meet(t.tile, dst.tile))
        });
        let whole = p.srcs.iter().filter(|(_, read)| *read == Read::Whole).count();
        let turned = p.srcs.iter().any(|(_, read)| *read == Read::Turned);
        (arithmetic && apart && whole == 1 && !turned && dtype(&dst).size() == 4).then_some((dst, p.shape()?))
    }

    // ---- what statements touch -----------------------------------------------------------------------------------

    fn accesses(&self, stmt: &Stmt) -> Vec<(AccessMode, TileRef)> {
        lazy_gather::tiles_of(self.kernel, self.located, stmt)
    }

    /// What a statement touches, and all that is within it.
    fn all(&self, stmt: &Stmt) -> Vec<(AccessMode, TileRef)> {
        let mut out = self.accesses(stmt);
        stmt.op.regions().flatten().for_each(|s| out.extend(self.all(s)));
        out
    }
}

/// Whether a chain over `shape` may go on over a statement.
fn in_line(stmt: &Stmt, shape: (Value, Value)) -> bool {
    stmt.op.is_pure()
        || matches!(stmt.op, Op::Alloc { .. })
        || Pattern::of_stmt(stmt).is_some_and(|p| p.shape() == Some(shape))
}

/// Whether one of these statements defines what `stmt` uses.
fn defines(between: &[Stmt], stmt: &Stmt) -> bool {
    let defined: FxHashSet<Value> = between.iter().filter_map(|s| s.op.def()).collect();
    let mut any = false;
    stmt.op.for_each_use(&mut |v| any |= defined.contains(&v));
    any
}
