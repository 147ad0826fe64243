//! Element-wise fusion: neighbouring instructions of one shape become a chain, one nest of loops whose intermediate
//! results stay in registers.
//!
//! For each element a chain does in order what its instructions do to that element. That is the same as instruction
//! after instruction if no instruction reads, at other indices, what another one of the chain writes, and none
//! overwrites what an earlier one has still to read at other indices; [`Planner::conflict`] sees to that for all pairs.
//! Arithmetic on scalars between the instructions goes in front: it reads no memory. So does a product that has nothing
//! to do with the instructions before it. Checks and everything else that has an effect ends a chain, so what happens
//! before it and behind it stays there.
//!
//! Reductions of rows end chains: an element goes to its partial as soon as it is there (`Op::Join` of loop IR), and
//! behind the nest the partials of all rows are joined and the results written. So nothing else of the chain may look
//! at those.
//!
//! Two kinds of stores disappear ([`crate::webs`]). A result that only instructions of its own chain read stays a
//! register, rounded to its dtype as the store would have. A plain TLOAD of an array that nothing writes need not fill
//! its tile if all readers can read the array instead; arguments do not overlap. So TLOAD, TTRANS and TSTORE behind one
//! another are one move from array to array, and a TLOAD of a row between instructions on a tile keeps none of them
//! apart. A copy of half bytes disappears the same way: its readers take theirs of the array's words, if the emitter
//! can tell where in a word each lies (a GPU's threads cannot share a word so).
//!
//! This only decides. The result ([`Fusion`]) says which statements of each region are one nest; an emitter reads it.

use crate::contraction::{Products, product};
use crate::lazy_gather::{self, LazyGathers};
use crate::overlap::Overlap;
use crate::pattern::{OperandWindow, Pattern, Read, foldable};
use crate::webs::{Uses, Web, Webs};
use ptoc_ir::tile::{AddrKind, Copy, Elem, Kernel, NestAccess, Op, Region, Stmt, TensorDir, TileRef, Value, ViewRef};
use ptoc_isa::{Loc, Order, Sem};
use ptoc_placement::access::AccessMode;
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;
use std::fmt::Write as _;

/// The name of the pass, and what it does.
pub const NAME: &str = "fusion";
/// See [`NAME`].
pub const ABOUT: &str = "decides which neighbouring element-wise instructions become one nest of loops";

/// Instructions of a chain: as many as registers and pointers serve well.
const LONGEST: usize = 32;

/// Where an operand comes from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum OperandSource<'r> {
    /// The result of a member of the chain.
    Member(usize),
    /// A window, and under which indices it is read.
    Memory(OperandWindow<'r>, Read),
    /// The half bytes that a copy would take to a tile, under the tile's indices.
    Halves(&'r Copy),
}

/// What is read in place of a tile that is not filled.
enum ArrayWindow<'r> {
    View(&'r ViewRef),
    Halves(&'r Copy),
}

/// An instruction of a chain.
#[derive(Clone, Debug)]
pub struct Member<'r> {
    /// Its place in the region.
    pub stmt: usize,
    /// What it computes.
    pub pattern: Pattern<'r>,
    /// Where each operand is found.
    pub sources: Vec<OperandSource<'r>>,
    /// The result is written to memory.
    pub stored: bool,
}

/// A chain, or a single instruction that reads arrays in place of tiles.
#[derive(Clone, Debug)]
pub struct Chain<'r> {
    /// Its instructions, in order.
    pub members: Vec<Member<'r>>,
}

impl Chain<'_> {
    /// First and last statement.
    pub fn span(&self) -> (usize, usize) {
        let at = |m: Option<&Member<'_>>| m.map_or(0, |m| m.stmt);
        (at(self.members.first()), at(self.members.last()))
    }

    /// A single instruction as it stands.
    fn is_plain(&self) -> bool {
        let [m] = &self.members[..] else { return false };
        m.stored && m.sources.iter().zip(&m.pattern.srcs).all(|(s, (p, r))| *s == OperandSource::Memory(*p, *r))
    }
}

/// What must agree in a chain.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    shape: (Value, Value),
    /// Lanes run down the columns.
    down: bool,
}

/// What is fused in each region of a kernel.
#[derive(Default, Debug)]
pub struct Fusion<'k>(FxHashMap<usize, Fused<'k>>);

/// What is fused in one region.
#[derive(Debug)]
pub struct Fused<'k> {
    /// Chains in the order of their first statements; they do not interleave.
    pub chains: Vec<Chain<'k>>,
    /// By statement, whether it is to be carried out. A TLOAD whose readers all read the array is not.
    pub needed: Vec<bool>,
}

/// What is known of the kernel that instructions are fused in.
pub struct Known<'a, 'k> {
    /// The kernel.
    pub kernel: &'k Kernel,
    /// Which windows of its tiles overlap.
    pub overlap: Overlap<'a>,
    /// Products whose operands stay where they are.
    pub products: &'a Products<'k>,
    /// How often each tile is accessed.
    pub uses: &'a Uses,
    /// Which gathers leave row pointers.
    pub gathers: &'a LazyGathers,
    /// Chains may read half bytes.
    pub halves: bool,
}

impl<'k> Fusion<'k> {
    /// Decides for all regions of a kernel.
    pub fn find(known: &Known<'_, 'k>) -> Fusion<'k> {
        let mut out = Fusion::default();
        out.region(known, &known.kernel.prologue);
        out.region(known, &known.kernel.body);
        out
    }

    /// What is fused in a region of the kernel; `None`: nothing.
    pub fn of(&self, region: &Region) -> Option<&Fused<'k>> {
        self.0.get(&key(region))
    }

    /// The nests of several instructions, and what is not filled, in the order of the kernel: for `emit --stage
    /// after:fusion`. Empty: nothing is fused.
    pub fn text(&self, kernel: &Kernel) -> String {
        let mut out = String::new();
        for region in [&kernel.prologue, &kernel.body] {
            self.describe(kernel, region, &mut out);
        }
        out
    }

    fn describe(&self, kernel: &Kernel, region: &Region, out: &mut String) {
        let name = |place: &OperandWindow<'_>| match place {
            OperandWindow::Tile(t) => kernel.tiles[t.tile].name.clone(),
            OperandWindow::View(v) => kernel.tensors[v.tensor].name.clone(),
        };
        if let Some(Fused { chains, needed }) = self.of(region) {
            for (stmt, _) in region.iter().zip(needed).filter(|(_, needed)| !**needed) {
                if let Op::Copy(copy) = &stmt.op
                    && let (Some(to), Some(from)) = of_copy(kernel, copy)
                {
                    let _ = writeln!(out, "# {to} is not filled: its readers read half bytes of {from}");
                }
                if let Some(p) = Pattern::of_stmt(stmt) {
                    let from = p.srcs.first().map(|s| name(&s.0)).unwrap_or_default();
                    let _ = writeln!(out, "# {} is not filled: its readers read {from}", name(&p.dst));
                }
            }
            for chain in chains {
                out.push_str("# one nest:\n");
                for m in &chain.members {
                    let place = if m.stored { "stored" } else { "a register" };
                    let (instr, to) = (m.pattern.inst.instr.get().written_name(), name(&m.pattern.dst));
                    let _ = writeln!(out, "#   {instr} {to}: {place}");
                }
            }
        }
        for stmt in region {
            stmt.op.regions().for_each(|r| self.describe(kernel, r, out));
        }
    }

    fn region(&mut self, known: &Known<'_, 'k>, region: &'k Region) {
        let planner = Planner::new(known, region);
        let mut chains = planner.chains();
        chains.retain(|c| !c.is_plain());
        let needed: Vec<bool> = (0..region.len()).map(|n| !planner.unneeded(n)).collect();
        if !chains.is_empty() || needed.contains(&false) {
            self.0.insert(key(region), Fused { chains, needed });
        }
        for stmt in region {
            stmt.op.regions().for_each(|r| self.region(known, r));
        }
    }
}

/// A region by where its statements are: the kernel is borrowed as long as the result lives, and what is empty has
/// none.
fn key(region: &Region) -> usize {
    region.as_ptr() as usize
}

/// Finds the chains of a region.
struct Planner<'a, 'r> {
    known: &'a Known<'a, 'r>,
    region: &'r Region,
    /// Of the instructions that a chain may hold.
    patterns: Vec<Option<Pattern<'r>>>,
    /// Copies of half bytes to a tile.
    halves: Vec<Option<(&'r Copy, TileRef)>>,
    webs: Webs,
}

impl<'a, 'r> Planner<'a, 'r> {
    fn new(known: &'a Known<'a, 'r>, region: &'r Region) -> Planner<'a, 'r> {
        let pattern = |op: &'r Op| match op {
            Op::Inst(inst) => Pattern::with_folds(inst).filter(|p| known.chainable(p)),
            _ => None,
        };
        let patterns: Vec<_> = region.iter().map(|s| pattern(&s.op)).collect();
        let halves: Vec<_> = region.iter().map(|s| known.halves(&s.op)).collect();
        let whole = |n: usize| patterns[n].is_some() || halves[n].is_some();
        let webs = match patterns.iter().any(Option::is_some) {
            true => Webs::new(known.kernel, known.uses, region, &|s| known.tiles_of(s), &whole),
            false => Webs::default(),
        };
        Planner { known, region, patterns, halves, webs }
    }

    fn chains(&self) -> Vec<Chain<'r>> {
        let (mut out, mut run, mut key) = (Vec::new(), Vec::new(), None);
        for (n, stmt) in self.region.iter().enumerate() {
            match &self.patterns[n] {
                Some(_) if self.unneeded(n) => {}
                Some(p) => {
                    let this = self.known.key(p);
                    if this != key {
                        self.cut(&mut run, &mut out);
                        key = this;
                    }
                    run.push(n);
                }
                None if self.unneeded(n) => {}
                None if stmt.op.is_pure() || matches!(stmt.op, Op::Alloc { .. }) => {}
                None if self.comes_first(stmt, &run) => {}
                None => self.cut(&mut run, &mut out),
            }
        }
        self.cut(&mut run, &mut out);
        out
    }

    /// Whether this is a product, or a copy for one that is not carried out, which may as well come before the
    /// statements of a run.
    fn comes_first(&self, stmt: &Stmt, run: &[usize]) -> bool {
        let l = self.known;
        if l.products.disappears(&stmt.op) {
            return true;
        }
        // An accumulator that is computed where it would be stored is so there.
        let computed = |d: &TileRef| !l.products.stores.contains_key(&d.tile);
        if !product(&stmt.op).is_some_and(|(p, _)| computed(&p.d)) {
            return false;
        }
        let own = l.tiles_of(stmt);
        run.iter().flat_map(|m| l.tiles_of(&self.region[*m])).all(|(how, t)| {
            own.iter()
                .all(|(this, u)| (how, *this) == (AccessMode::Read, AccessMode::Read) || !l.overlap.same_storage(&t, u))
        })
    }

    /// Cuts a run of instructions of one shape into chains, each as long as may be.
    fn cut(&self, run: &mut Vec<usize>, out: &mut Vec<Chain<'r>>) {
        let mut rest = &run[..];
        while !rest.is_empty() {
            let most = rest.len().min(LONGEST);
            let Some(chain) = (1..=most).rev().find_map(|n| self.chain(&rest[..n])) else { break };
            rest = &rest[chain.members.len()..];
            out.push(chain);
        }
        run.clear();
    }

    /// These statements as one chain, if they may be.
    fn chain(&self, stmts: &[usize]) -> Option<Chain<'r>> {
        let mut members: Vec<Member<'r>> = Vec::new();
        for &stmt in stmts {
            let pattern = self.patterns[stmt].clone()?;
            let sources = pattern.srcs.iter().map(|(p, r)| self.source(&members, stmt, p, *r));
            let sources = sources.collect::<Option<Vec<_>>>()?;
            let stored = match pattern.dst {
                OperandWindow::View(_) => true,
                OperandWindow::Tile(t) => {
                    let web = self.webs.of_write(stmt, t.tile);
                    web.is_none_or(|w| !self.within(w, stmts))
                }
            };
            members.push(Member { stmt, pattern, sources, stored });
        }
        // Rows that become columns are moved by a routine, which computes nothing.
        let turned = members.len() > 1 && members.iter().any(|m| m.pattern.turns());
        if turned && !members.iter().all(|m| copies(self.known.kernel, &m.pattern)) {
            return None;
        }
        let clear = |(n, s): (usize, &Member<'r>)| members[..n].iter().all(|p| !self.conflict(p, s));
        members.iter().enumerate().all(clear).then_some(Chain { members })
    }

    /// Where a statement finds an operand, behind these members; `None` if a chain cannot give it.
    fn source(
        &self,
        members: &[Member<'r>],
        stmt: usize,
        place: &OperandWindow<'r>,
        read: Read,
    ) -> Option<OperandSource<'r>> {
        let OperandWindow::Tile(tile) = place else { return Some(OperandSource::Memory(*place, read)) };
        if let Some(window) = self.webs.of_read(stmt, tile.tile).and_then(|w| self.window(w)) {
            return Some(match window {
                ArrayWindow::View(view) => OperandSource::Memory(OperandWindow::View(view), read),
                ArrayWindow::Halves(copy) => OperandSource::Halves(copy),
            });
        }
        let writes = |m: &Member<'r>| m.pattern.dst.tile().is_some_and(|d| self.known.overlap.same_storage(d, tile));
        if let Some((n, m)) = members.iter().enumerate().rev().find(|(_, m)| writes(m)) {
            // What another name was given to, or what was written at other indices, is not at hand.
            let same = m.pattern.dst.tile() == Some(tile) && read == Read::Whole && m.pattern.fold.is_none();
            // Where the storage is free again already, its last name does not matter.
            let gone = !m.stored && m.pattern.dst.tile().is_some_and(|d| d.tile != tile.tile);
            if same {
                return Some(OperandSource::Member(n));
            }
            if !gone {
                return None;
            }
        }
        Some(OperandSource::Memory(*place, read))
    }

    /// Whether a statement is a TLOAD, or a copy of half bytes, whose readers all read the array.
    fn unneeded(&self, stmt: usize) -> bool {
        let loaded = self.patterns[stmt].as_ref().and_then(|p| p.dst.tile());
        let to = loaded.or(self.halves[stmt].as_ref().map(|(_, to)| to));
        let web = to.and_then(|t| self.webs.of_write(stmt, t.tile));
        web.is_some_and(|w| self.window(w).is_some())
    }

    /// Whether only these statements read a web.
    fn within(&self, web: &Web, stmts: &[usize]) -> bool {
        web.reads.iter().all(|r| stmts.contains(r))
    }

    /// The array's window that all readers of a web can read in place of the tile.
    fn window(&self, web: &Web) -> Option<ArrayWindow<'r>> {
        if let Some((copy, to)) = self.halves[web.def] {
            // What only moves them is better off with bytes.
            let whole = |n: &usize| {
                let p = self.patterns[*n].as_ref().filter(|p| !copies(self.known.kernel, p));
                p.is_some_and(|p| p.srcs.iter().all(|(s, read)| s.tile() != Some(&to) || *read == Read::Whole))
            };
            return (web.chained && web.reads.iter().all(whole)).then_some(ArrayWindow::Halves(copy));
        }
        let def = self.patterns[web.def].as_ref()?;
        let [(OperandWindow::View(view), Read::Whole)] = def.srcs[..] else { return None };
        let unwritten = self.known.kernel.tensors[view.tensor].dir == TensorDir::In;
        let plain = unwritten && copies(self.known.kernel, def);
        (plain && web.chained).then_some(ArrayWindow::View(view))
    }

    /// Whether a later member must not be in one chain with an earlier one.
    fn conflict(&self, before: &Member<'r>, after: &Member<'r>) -> bool {
        let reads = |m: &Member<'r>| -> Vec<(OperandWindow<'r>, Read)> {
            let place = |s: &OperandSource<'r>| match *s {
                OperandSource::Memory(p, r) => Some((p, r)),
                // Words that are not whole are copied to the tile.
                OperandSource::Halves(copy) => match &copy.dst {
                    NestAccess::Tile { tile, .. } => Some((OperandWindow::Tile(*tile), Read::Whole)),
                    NestAccess::Tensor { .. } => None,
                },
                OperandSource::Member(_) => None,
            };
            m.sources.iter().filter_map(place).collect()
        };
        let l = self.known;
        // A fold writes last of all, its result only.
        let fold = |m: &Member<'r>| m.pattern.fold.is_some();
        if fold(before) && before.stored && after.stored && !fold(after) {
            let meet = |w: &TileRef, v: &TileRef| l.overlap.same_storage(w, v);
            if before.pattern.dst.tile().zip(after.pattern.dst.tile()).is_some_and(|(w, v)| meet(w, v)) {
                return true;
            }
        }
        if before.stored {
            let w = &before.pattern.dst;
            let read_again = reads(after).iter().any(|(r, _)| match (w, r) {
                (OperandWindow::Tile(w), OperandWindow::Tile(r)) => l.overlap.same_storage(w, r),
                (OperandWindow::View(w), OperandWindow::View(r)) => w.tensor == r.tensor,
                _ => false,
            });
            let written_again = after.stored
                && !fold(after)
                && match (w, &after.pattern.dst) {
                    (OperandWindow::Tile(w), OperandWindow::Tile(v)) => l.overlap.entangled(v, w),
                    (OperandWindow::View(w), OperandWindow::View(v)) => w.tensor == v.tensor,
                    _ => false,
                };
            if read_again || written_again {
                return true;
            }
        }
        after.stored
            && !fold(after)
            && reads(before).iter().any(|(r, how)| match (&after.pattern.dst, r) {
                (OperandWindow::Tile(w), OperandWindow::Tile(r)) => {
                    l.overlap.entangled(w, r) || (*how != Read::Whole && l.overlap.same_storage(w, r))
                }
                (OperandWindow::View(w), OperandWindow::View(r)) => w.tensor == r.tensor,
                _ => false,
            })
    }
}

impl Known<'_, '_> {
    /// The tiles that a statement touches, reads before writes.
    fn tiles_of(&self, stmt: &Stmt) -> Vec<(AccessMode, TileRef)> {
        lazy_gather::tiles_of(self.kernel, &self.gathers.located, stmt)
    }

    /// A copy that fills a tile with half bytes of an array that nothing writes.
    fn halves<'r>(&self, op: &'r Op) -> Option<(&'r Copy, TileRef)> {
        let Op::Copy(copy) = op else { return None };
        let NestAccess::Tile { tile, .. } = &copy.dst else { return None };
        let NestAccess::Tensor { tensor, elem: Elem::U4 | Elem::I4, swizzle: None, tables, .. } = &copy.src else {
            return None;
        };
        let data = &self.kernel.tiles[tile.tile];
        let plain = data.addr != AddrKind::Dynamic && data.ty.layout.is_none() && data.ty.order == Order::Nd;
        let array = self.kernel.tensors[*tensor].dir == TensorDir::In && tables.is_empty();
        (self.halves && copy.covers && copy.fill.is_none() && plain && array).then_some((copy, *tile))
    }

    fn key(&self, p: &Pattern<'_>) -> Option<Key> {
        let shape = p.shape()?;
        let column = self.overlap.defs.number(shape.1) == Some(1);
        let order = |t: &TileRef| self.kernel.tiles[t.tile].ty.order;
        if p.fold.is_some() {
            return Some(Key { shape, down: column });
        }
        let turned =
            p.dst.tile().is_some_and(|t| order(t) == Order::Dn && self.kernel.tiles[t.tile].ty.loc == Loc::Vec);
        Some(Key { shape, down: column || turned })
    }

    /// Whether an instruction may be part of a chain at all.
    fn chainable(&self, p: &Pattern<'_>) -> bool {
        let Some(shape) = p.shape() else { return false };
        // Lines of an array that do not go along its elements have routines of their own.
        let along = |v: &ViewRef| v.strides.len() == 2 && self.overlap.defs.number(v.strides[1]) == Some(1);
        let whole = |t: &TileRef| t.valid == shape;
        let ends = match (&p.dst, p.inst.instr.get().sem) {
            (OperandWindow::View(v), _) => along(v) && p.srcs.iter().all(|(s, _)| s.tile().is_some_and(whole)),
            (OperandWindow::Tile(t), Sem::Load) => {
                whole(t) && p.srcs.iter().all(|(s, _)| if let OperandWindow::View(v) = s { along(v) } else { false })
            }
            _ => true,
        };
        let products = self.products;
        let plain = |t: &TileRef| {
            let data = &self.kernel.tiles[t.tile];
            let elsewhere = products.gone.contains(&t.tile) || products.windows.contains_key(&t.tile);
            data.addr != AddrKind::Dynamic
                && data.ty.layout.is_none()
                && !matches!(data.ty.loc, Loc::Left | Loc::Right)
                && !elsewhere
                && !products.stores.contains_key(&t.tile)
        };
        let foldable = |t: &TileRef| foldable(self.kernel, t) && self.overlap.defs.number(shape.1) != Some(1);
        if p.fold.is_some() && !p.srcs.iter().all(|(s, _)| s.tile().is_some_and(foldable)) {
            return false;
        }
        let apart = |t: &TileRef, read: Read| match &p.dst {
            OperandWindow::Tile(_) if p.fold.is_some() => true,
            OperandWindow::Tile(d) => {
                !self.overlap.entangled(d, t) && (read == Read::Whole || !self.overlap.same_storage(d, t))
            }
            OperandWindow::View(_) => true,
        };
        let srcs = p.srcs.iter().all(|(s, read)| {
            (*read != Read::Turned || p.turns()) && s.tile().is_none_or(|t| plain(t) && apart(t, *read))
        });
        ends && srcs && p.dst.tile().is_none_or(plain)
    }
}

/// The dtype of a window's elements.
pub fn dtype(kernel: &Kernel, place: &OperandWindow<'_>) -> DType {
    match place {
        OperandWindow::Tile(t) => kernel.tiles[t.tile].ty.dtype,
        OperandWindow::View(v) => kernel.tensors[v.tensor].dtype,
    }
}

/// The names of the tile that a copy fills and of the array that it reads.
fn of_copy(kernel: &Kernel, copy: &Copy) -> (Option<String>, Option<String>) {
    let to = if let NestAccess::Tile { tile, .. } = &copy.dst { Some(tile) } else { None };
    let from = if let NestAccess::Tensor { tensor, .. } = &copy.src { Some(tensor) } else { None };
    (to.map(|t| kernel.tiles[t.tile].name.to_string()), from.map(|t| kernel.tensors[*t].name.to_string()))
}

/// Whether the bits are taken as they are, by a TLOAD, a TSTORE or a transposition. Members of a chain behind it may
/// read its source for its result: none of them writes there. (To that of a TMOV one may.)
pub fn copies(kernel: &Kernel, p: &Pattern<'_>) -> bool {
    let moves = p.turns() || matches!(p.inst.instr.get().sem, Sem::Load | Sem::Store);
    moves && !p.inst.attrs.relu && p.srcs.iter().all(|(src, _)| dtype(kernel, src) == dtype(kernel, &p.dst))
}
