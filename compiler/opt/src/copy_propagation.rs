//! Copy propagation and store-to-load forwarding: copies whose source is read in their place.
//!
//! Targets without a path between two memories go through others: from the accumulator to global memory and on to Vec,
//! from Vec to global memory, L1 and L0. Who reads the last of such copies reads the first one's source here, if
//! nothing can tell: the elements are the same ones, and nothing writes to the source's bytes before the last reader is
//! done. What is demanded of the copy's tile: the planner places it, it is single and plain, the copy is all that
//! writes it, and every use is a reader behind the copy in its region (or deeper) that takes strided operands.
//!
//! A block's own buffer in global memory that one TSTORE writes and one or more TLOADs read in full is such a copy too:
//! TLOAD takes the elements from what was stored. Where its tile is not forwarded, one move is left of the two.
//!
//! The plan does not change: a tile's bytes stay taken for as long as the planner gave them out, and a source whose
//! bytes have another owner too early is not forwarded.

use super::pattern::Pattern;
use super::tile_layout::tile_layout;
use crate::contraction::{self, Products, load, moved, product};
use crate::pass::Pass;
use ptoc_diagnostics::Account;
use ptoc_ir::analysis::poly::Definitions;
use ptoc_ir::tile::{
    AddrKind, Inst, InstAttrs, Kernel, Op, Operand, Region, Stmt, TensorDir, TensorId, Tile, TileRef, ViewRef,
};
use ptoc_isa::{Loc, Sem};
use ptoc_placement::Placement;
use ptoc_placement::access::{AccessMode, AccessedStorage, accesses, inst_operands, is_private, tile_accesses};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;

/// The pass.
pub const PASS: Pass = Pass {
    name: "copy-propagation",
    about: "reads the source of a copy in its place, and drops copies that nothing reads",
    run: |unit, cx| {
        let products = contraction::find(&unit.kernel);
        match propagated(&unit.kernel, &unit.placement, &products, cx.account) {
            Some(kernel) => {
                unit.kernel = kernel;
                true
            }
            None => false,
        }
    },
};

/// The kernel without the copies that nothing can see; `None` if there are none. Tiles that the products of `kernel`
/// have no need of stay as they are.
fn propagated(kernel: &Kernel, placement: &Placement, products: &Products<'_>, account: Account<'_>) -> Option<Kernel> {
    let mut f = Propagation::new(kernel, placement, products, account);
    let mut body = kernel.body.clone();
    f.region(&mut body);
    if !f.found {
        return None;
    }
    debug_assert!(f.counts_hold(&body));
    f.drop_stores(&mut body);
    Some(Kernel { body, ..kernel.clone() })
}

/// How often a tile or a buffer is read and written in the whole kernel, as it is now.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Uses {
    reads: usize,
    writes: usize,
}

struct Propagation<'a> {
    kernel: &'a Kernel,
    placement: &'a Placement,
    products: &'a Products<'a>,
    account: Account<'a>,
    defs: Definitions<'a>,
    tiles: FxHashMap<Tile, Uses>,
    buffers: FxHashMap<TensorId, Uses>,
    /// Loads of a buffer that take elements from what was stored.
    through: FxHashMap<TensorId, usize>,
    /// A copy was found.
    found: bool,
}

impl<'a> Propagation<'a> {
    fn new(
        kernel: &'a Kernel,
        placement: &'a Placement,
        products: &'a Products<'a>,
        account: Account<'a>,
    ) -> Propagation<'a> {
        let mut f = Propagation {
            kernel,
            placement,
            products,
            account,
            defs: Definitions::new(kernel),
            tiles: FxHashMap::default(),
            buffers: FxHashMap::default(),
            through: FxHashMap::default(),
            found: false,
        };
        count(kernel, &kernel.body, &mut f.tiles, &mut f.buffers);
        f
    }

    /// Whether the uses of tiles are those of the changed kernel, counted anew. Behind the last counted reader nobody
    /// looks for another one.
    fn counts_hold(&self, body: &Region) -> bool {
        let mut tiles = FxHashMap::default();
        count(self.kernel, body, &mut tiles, &mut FxHashMap::default());
        self.tiles.iter().all(|(t, uses)| tiles.get(t).copied().unwrap_or_default() == *uses)
    }

    fn region(&mut self, region: &mut Region) {
        for n in 0..region.len() {
            if let Some((tensor, from, inst)) = self.through_buffer(region, n) {
                region[n].op = Op::Inst(Box::new(inst));
                // What was stored has one more reader; the store itself stays one until all is done.
                self.tiles.entry(from).or_default().reads += 1;
                *self.through.entry(tensor).or_default() += 1;
                self.found = true;
            }
        }
        for n in 0..region.len() {
            let Some((to, from)) = moved(&region[n].op).filter(|(to, from)| self.same_elements(to, from)) else {
                continue;
            };
            let (_, rest) = region.split_at_mut(n + 1);
            let Some(last) = self.last_reader(rest, &to, &from) else { continue };
            if self.written(&rest[..=last], &from) {
                continue;
            }
            rest[..=last].iter_mut().for_each(|s| redirect(s, &to, &from));
            let reads = self.tiles.insert(to.tile, Uses::default()).map_or(0, |u| u.reads);
            if let Some(uses) = self.tiles.get_mut(&from.tile) {
                uses.reads += reads - 1;
            }
            self.found = true;
            // Nothing is left to do; an allocation does nothing on this machine.
            region[n].op = Op::Alloc { tile: to.tile };
        }
        for stmt in region {
            regions(&mut stmt.op).for_each(|r| self.region(r));
        }
    }

    // ---- buffers in global memory --------------------------------------------------------------------------------

    /// TLOAD from a buffer that one TSTORE in front of it has filled, as a move from what was stored: the buffer, that
    /// tile, the move.
    fn through_buffer(&self, region: &[Stmt], n: usize) -> Option<(TensorId, Tile, Inst)> {
        let (to, view) = load(&region[n].op)?;
        let data = &self.kernel.tensors[view.tensor];
        let one = self.buffers.get(&view.tensor).is_some_and(|u| u.writes == 1);
        if data.dir != TensorDir::Scratch || !one || !self.apart(view, &to) || self.dtype(&to) != data.dtype {
            return None;
        }
        self.account.spend(n).ok()?;
        let (m, from, attrs) = region[..n].iter().enumerate().rev().find_map(|(m, s)| {
            let (v, from, attrs) = store(&s.op)?;
            (v == view).then_some((m, from, attrs))
        })?;
        let shape = [to.valid.0, to.valid.1];
        let fits = view.shape[..] == shape && from.valid == to.valid;
        let readable = self.readable(&from) && !self.meets(from.tile, to.tile) && data.dtype != DType::Bool;
        if !fits || !readable || self.written(&region[m + 1..n], &from) {
            return None;
        }
        let instr = ptoc_isa::lookup("TMOV")?;
        let operands = vec![Operand::Tile(to), Operand::Tile(from)];
        Some((view.tensor, from.tile, Inst { instr, operands, scratch: Vec::new(), attrs }))
    }

    /// Whether a window has an element of its own for each one of a tile.
    fn apart(&self, view: &ViewRef, tile: &TileRef) -> bool {
        let number = |v| self.defs.number(v);
        match view.strides[..] {
            [rows, cols] => number(cols) == Some(1) && number(rows).is_some_and(|r| r >= i64::from(tile.cols)),
            _ => false,
        }
    }

    /// Stores to buffers that nothing reads any more go.
    fn drop_stores(&self, region: &mut Region) {
        region.retain(|s| {
            let to = store(&s.op).map(|(v, ..)| v.tensor);
            let unread = |t: TensorId| self.through.get(&t) == self.buffers.get(&t).map(|u| &u.reads);
            !to.is_some_and(|t| self.through.contains_key(&t) && unread(t))
        });
        for stmt in region {
            regions(&mut stmt.op).for_each(|r| self.drop_stores(r));
        }
    }

    // ---- moves ---------------------------------------------------------------------------------------------------

    fn dtype(&self, t: &TileRef) -> DType {
        self.kernel.tiles[t.tile].ty.dtype
    }

    /// Whether something else than the move may read the elements of `t` where they are.
    fn readable(&self, t: &TileRef) -> bool {
        let loc = self.kernel.tiles[t.tile].ty.loc;
        t.element.is_none()
            && t.origin.is_none()
            && is_private(self.kernel, t.tile)
            && matches!(loc, Loc::Vec | Loc::Mat | Loc::Acc)
            && !self.products.gone.contains(&t.tile)
    }

    /// Whether a reader cannot tell the move's result from its source.
    fn same_elements(&self, to: &TileRef, from: &TileRef) -> bool {
        let (d, s) = (&self.kernel.tiles[to.tile], &self.kernel.tiles[from.tile]);
        let uses = self.tiles.get(&to.tile).copied().unwrap_or_default();
        let by_rows = |t: &TileRef| {
            let (ty, _, col) = tile_layout(&self.kernel.tiles[t.tile]);
            col == i64::from(ty.size())
        };
        d.ty.dtype == s.ty.dtype
            && d.ty.dtype != DType::Bool
            && to.valid == from.valid
            && (uses.writes, uses.reads > 0) == (1, true)
            && to.element.is_none()
            && to.origin.is_none()
            && is_private(self.kernel, to.tile)
            && !self.products.gone.contains(&to.tile)
            && self.readable(from)
            && by_rows(to) == by_rows(from)
    }

    /// The last statement of `rest` with a reader of `to`, if every use of it is a reader there that takes `from`.
    fn last_reader(&self, rest: &[Stmt], to: &TileRef, from: &TileRef) -> Option<usize> {
        let (mut found, mut last) = (0, None);
        let all = self.tiles.get(&to.tile)?.reads;
        // Readers that were led to `to` are among the counted ones, so behind the last of them there is none.
        for (n, stmt) in rest.iter().enumerate() {
            if found == all {
                break;
            }
            self.account.spend(1).ok()?;
            let here = self.readers(stmt, to, from)?;
            if here > 0 {
                last = Some(n);
            }
            found += here;
        }
        last.filter(|_| found == all)
    }

    /// How often a statement reads `to`, if it can read `from` each time.
    fn readers(&self, stmt: &Stmt, to: &TileRef, from: &TileRef) -> Option<usize> {
        self.account.spend(1).ok()?;
        let mut here = tile_accesses(self.kernel, stmt).iter().filter(|(_, t)| t.tile == to.tile).count();
        if let (Op::Inst(inst), true) = (&stmt.op, here > 0) {
            for (k, operand) in inst.operands.iter().enumerate() {
                let Operand::Tile(t) = operand else { continue };
                if t.tile == to.tile && (t != to || !self.takes(&stmt.op, inst, k, to, from)) {
                    return None;
                }
            }
        } else if here > 0 {
            return None;
        }
        for region in stmt.op.regions() {
            for stmt in region {
                here += self.readers(stmt, to, from)?;
            }
        }
        Some(here)
    }

    /// Whether operand `k` of an instruction can be any strided window with these elements.
    fn takes(&self, op: &Op, inst: &Inst, k: usize, to: &TileRef, from: &TileRef) -> bool {
        let source = inst_operands(inst).nth(k).is_some_and(|(access, _)| access == AccessMode::Read);
        if let Some((p, _)) = product(op) {
            let operand = Operand::Tile(*to);
            let factor = inst.operands.iter().filter(|o| **o == operand).count()
                == usize::from(p.a == *to) + usize::from(p.b == *to);
            // Left and Right hold 8-bit floats widened.
            let stored = |t: &TileRef| tile_layout(&self.kernel.tiles[t.tile]).0;
            return factor && stored(to) == stored(from);
        }
        source && Pattern::with_folds(inst).is_some()
    }

    /// Whether something in these statements may write to the bytes of a tile.
    fn written(&self, stmts: &[Stmt], t: &TileRef) -> bool {
        stmts.iter().any(|s| {
            let own = tile_accesses(self.kernel, s);
            own.iter().any(|(access, w)| *access == AccessMode::Write && self.meets(w.tile, t.tile))
                || s.op.regions().any(|r| self.written(r, t))
        })
    }

    fn meets(&self, a: Tile, b: Tile) -> bool {
        meets(self.kernel, self.placement, a, b)
    }
}

/// Counts the uses in a region.
fn count(kernel: &Kernel, region: &Region, tiles: &mut FxHashMap<Tile, Uses>, buffers: &mut FxHashMap<TensorId, Uses>) {
    for stmt in region {
        for (access, place) in accesses(kernel, stmt) {
            let uses = match place {
                AccessedStorage::Tile(t) => tiles.entry(t.tile).or_default(),
                AccessedStorage::Scratch(b) => buffers.entry(b).or_default(),
            };
            match access {
                AccessMode::Read => uses.reads += 1,
                AccessMode::Write => uses.writes += 1,
            }
        }
        stmt.op.regions().for_each(|r| count(kernel, r, tiles, buffers));
    }
}

/// Whether two tiles may have bytes in common.
pub fn meets(kernel: &Kernel, placement: &Placement, a: Tile, b: Tile) -> bool {
    let (x, y) = (&kernel.tiles[a], &kernel.tiles[b]);
    if a == b {
        return true;
    }
    if x.ty.loc != y.ty.loc {
        return false;
    }
    if x.addr == AddrKind::Dynamic || y.addr == AddrKind::Dynamic {
        return true;
    }
    let of = |t: Tile| {
        let bytes = kernel.tiles[t].ty.bytes();
        placement.offsets[t].iter().map(move |&at| (at, at.saturating_add(bytes)))
    };
    of(a).any(|x| of(b).any(|y| x.0 < y.1 && y.0 < x.1))
}

/// A TSTORE: the window, the tile, and what is done to the elements.
fn store(op: &Op) -> Option<(&ViewRef, TileRef, InstAttrs)> {
    match op {
        Op::Inst(inst) if inst.instr.get().sem == Sem::Store && inst.attrs.atomic.is_none() => match &inst.operands[..]
        {
            [Operand::View(v), Operand::Tile(t)] => Some((v, *t, inst.attrs)),
            _ => None,
        },
        _ => None,
    }
}

/// Lets everything in a statement that reads `to` read `from`.
fn redirect(stmt: &mut Stmt, to: &TileRef, from: &TileRef) {
    if let Op::Inst(inst) = &mut stmt.op {
        for operand in &mut inst.operands {
            if *operand == Operand::Tile(*to) {
                *operand = Operand::Tile(*from);
            }
        }
    }
    regions(&mut stmt.op).flatten().for_each(|s| redirect(s, to, from));
}

/// The regions of a statement.
pub fn regions(op: &mut Op) -> impl Iterator<Item = &mut Region> {
    let (a, b) = match op {
        Op::For(x) => (Some(&mut x.body), None),
        Op::If(x) => (Some(&mut x.then), Some(&mut x.els)),
        Op::While(x) => (Some(&mut x.head), Some(&mut x.body)),
        Op::Scope(x) => (Some(&mut x.body), None),
        _ => (None, None),
    };
    a.into_iter().chain(b)
}
