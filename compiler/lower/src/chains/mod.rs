//! Chains: neighbouring element-wise instructions of one shape as one nest, whose intermediate results stay in
//! registers.
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
//! Two kinds of stores disappear ([`webs`]). A result that only instructions of its own chain read stays a register,
//! rounded to its dtype as the store would have. A plain TLOAD of an array that nothing writes need not fill its tile
//! if all readers can read the array instead; arguments do not overlap. So TLOAD, TTRANS and TSTORE behind one another
//! are one move from array to array, and a TLOAD of a row between instructions on a tile keeps none of them apart.

mod emit;

use super::Lower;
use ptoc_ir::tile::{AddrKind, Op, Region, Stmt, TensorDir, TileRef, Value, ViewRef};
use ptoc_isa::{Loc, Order, Sem};
use ptoc_opt::contraction::product;
use ptoc_opt::pattern::{Pattern, Place, Read, foldable};
use ptoc_opt::webs::{Web, Webs};
use ptoc_placement::access::Access;

/// Instructions of a chain: as many as registers and pointers serve well.
const LONGEST: usize = 32;

/// Where an operand comes from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Source<'r> {
    /// The result of a member of the chain.
    Member(usize),
    Memory(Place<'r>, Read),
}

/// An instruction of a chain.
#[derive(Clone, Debug)]
pub(super) struct Member<'r> {
    /// Its place in the region.
    pub(super) stmt: usize,
    pub(super) pattern: Pattern<'r>,
    pub(super) sources: Vec<Source<'r>>,
    /// Is the result written to memory?
    pub(super) stored: bool,
}

/// A chain, or a single instruction that reads arrays in place of tiles.
#[derive(Clone, Debug)]
pub(super) struct Chain<'r> {
    pub(super) members: Vec<Member<'r>>,
}

impl Chain<'_> {
    /// First and last statement.
    fn span(&self) -> (usize, usize) {
        let at = |m: Option<&Member<'_>>| m.map_or(0, |m| m.stmt);
        (at(self.members.first()), at(self.members.last()))
    }

    /// A single instruction as it stands.
    fn is_plain(&self) -> bool {
        let [m] = &self.members[..] else { return false };
        m.stored && m.sources.iter().zip(&m.pattern.srcs).all(|(s, (p, r))| *s == Source::Memory(*p, *r))
    }
}

/// What must agree in a chain.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    shape: (Value, Value),
    /// Do lanes run down the columns?
    down: bool,
}

impl Lower<'_> {
    pub(super) fn region(&mut self, region: &Region) {
        if self.watched.is_some() {
            return self.watched_region(region);
        }
        let planner = Planner::new(self, region);
        let chains = planner.chains();
        let needed: Vec<bool> = (0..region.len()).map(|n| !planner.unneeded(n)).collect();
        let mut next = 0;
        for chain in chains.iter().filter(|c| !c.is_plain()) {
            let (first, last) = chain.span();
            for n in next..last + 1 {
                if needed[n] && chain.members.iter().all(|m| m.stmt != n) {
                    self.stmt(&region[n]);
                }
            }
            debug_assert!(next <= first);
            self.chain(chain, region);
            next = last + 1;
        }
        for n in next..region.len() {
            if needed[n] {
                self.stmt(&region[n]);
            }
        }
    }
}

/// Finds the chains of a region.
struct Planner<'a, 'k, 'r> {
    lower: &'a Lower<'k>,
    region: &'r Region,
    /// Of the instructions that a chain may hold.
    patterns: Vec<Option<Pattern<'r>>>,
    webs: Webs,
}

impl<'a, 'k, 'r> Planner<'a, 'k, 'r> {
    fn new(lower: &'a Lower<'k>, region: &'r Region) -> Planner<'a, 'k, 'r> {
        let pattern = |op: &'r Op| match op {
            Op::Inst(inst) => Pattern::with_folds(inst).filter(|p| lower.chainable(p)),
            _ => None,
        };
        let patterns: Vec<_> = region.iter().map(|s| pattern(&s.op)).collect();
        let webs = match patterns.iter().any(Option::is_some) {
            true => Webs::new(lower.kernel, &lower.uses, region, &|s| lower.tiles_of(s), &|n| patterns[n].is_some()),
            false => Webs::default(),
        };
        Planner { lower, region, patterns, webs }
    }

    fn chains(&self) -> Vec<Chain<'r>> {
        let (mut out, mut run, mut key) = (Vec::new(), Vec::new(), None);
        for (n, stmt) in self.region.iter().enumerate() {
            match &self.patterns[n] {
                Some(_) if self.unneeded(n) => {}
                Some(p) => {
                    let this = self.lower.key(p);
                    if this != key {
                        self.cut(&mut run, &mut out);
                        key = this;
                    }
                    run.push(n);
                }
                None if stmt.op.is_pure() || matches!(stmt.op, Op::Alloc { .. }) => {}
                None if self.comes_first(stmt, &run) => {}
                None => self.cut(&mut run, &mut out),
            }
        }
        self.cut(&mut run, &mut out);
        out
    }

    /// Is this a product, or a copy for one that is not carried out, which may as well come before the statements of a
    /// run?
    fn comes_first(&self, stmt: &Stmt, run: &[usize]) -> bool {
        let l = self.lower;
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
            own.iter().all(|(this, u)| (how, *this) == (Access::Read, Access::Read) || !l.same_storage(&t, u))
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
                Place::View(_) => true,
                Place::Tile(t) => {
                    let web = self.webs.of_write(stmt, t.tile);
                    web.is_none_or(|w| !self.within(w, stmts))
                }
            };
            members.push(Member { stmt, pattern, sources, stored });
        }
        // Rows that become columns are moved by a routine, which computes nothing.
        let turned = members.len() > 1 && members.iter().any(|m| m.pattern.turns());
        if turned && !members.iter().all(|m| self.lower.copies(&m.pattern)) {
            return None;
        }
        let clear = |(n, s): (usize, &Member<'r>)| members[..n].iter().all(|p| !self.conflict(p, s));
        members.iter().enumerate().all(clear).then_some(Chain { members })
    }

    /// Where a statement finds an operand, behind these members; `None` if a chain cannot give it.
    fn source(&self, members: &[Member<'r>], stmt: usize, place: &Place<'r>, read: Read) -> Option<Source<'r>> {
        let Place::Tile(tile) = place else { return Some(Source::Memory(*place, read)) };
        if let Some(window) = self.webs.of_read(stmt, tile.tile).and_then(|w| self.window(w)) {
            return Some(Source::Memory(Place::View(window), read));
        }
        let writes = |m: &Member<'r>| m.pattern.dst.tile().is_some_and(|d| self.lower.same_storage(d, tile));
        if let Some((n, m)) = members.iter().enumerate().rev().find(|(_, m)| writes(m)) {
            // What another name was given to, or what was written at other indices, is not at hand.
            let same = m.pattern.dst.tile() == Some(tile) && read == Read::Whole && m.pattern.fold.is_none();
            // Where the storage is free again already, its last name does not matter.
            let gone = !m.stored && m.pattern.dst.tile().is_some_and(|d| d.tile != tile.tile);
            if same {
                return Some(Source::Member(n));
            }
            if !gone {
                return None;
            }
        }
        Some(Source::Memory(*place, read))
    }

    /// Is a statement a TLOAD whose readers all read the array?
    fn unneeded(&self, stmt: usize) -> bool {
        let to = self.patterns[stmt].as_ref().and_then(|p| p.dst.tile());
        let web = to.and_then(|t| self.webs.of_write(stmt, t.tile));
        web.is_some_and(|w| self.window(w).is_some())
    }

    /// Do only these statements read a web?
    fn within(&self, web: &Web, stmts: &[usize]) -> bool {
        web.reads.iter().all(|r| stmts.contains(r))
    }

    /// The array's window that all readers of a web can read in place of the tile.
    fn window(&self, web: &Web) -> Option<&'r ViewRef> {
        let def = self.patterns[web.def].as_ref()?;
        let [(Place::View(view), Read::Whole)] = def.srcs[..] else { return None };
        let unwritten = self.lower.kernel.tensors[view.tensor].dir == TensorDir::In;
        let plain = unwritten && self.lower.copies(def);
        (plain && web.chained).then_some(view)
    }

    /// Must a later member not be in one chain with an earlier one?
    fn conflict(&self, before: &Member<'r>, after: &Member<'r>) -> bool {
        let reads = |m: &Member<'r>| -> Vec<(Place<'r>, Read)> {
            let place = |s: &Source<'r>| if let Source::Memory(p, r) = *s { Some((p, r)) } else { None };
            m.sources.iter().filter_map(place).collect()
        };
        let l = self.lower;
        // A fold writes last of all, its result only.
        let fold = |m: &Member<'r>| m.pattern.fold.is_some();
        if fold(before) && before.stored && after.stored && !fold(after) {
            let meet = |w: &TileRef, v: &TileRef| l.same_storage(w, v);
            if before.pattern.dst.tile().zip(after.pattern.dst.tile()).is_some_and(|(w, v)| meet(w, v)) {
                return true;
            }
        }
        if before.stored {
            let w = &before.pattern.dst;
            let read_again = reads(after).iter().any(|(r, _)| match (w, r) {
                (Place::Tile(w), Place::Tile(r)) => l.same_storage(w, r),
                (Place::View(w), Place::View(r)) => w.tensor == r.tensor,
                _ => false,
            });
            let written_again = after.stored
                && !fold(after)
                && match (w, &after.pattern.dst) {
                    (Place::Tile(w), Place::Tile(v)) => l.entangled(v, w),
                    (Place::View(w), Place::View(v)) => w.tensor == v.tensor,
                    _ => false,
                };
            if read_again || written_again {
                return true;
            }
        }
        after.stored
            && !fold(after)
            && reads(before).iter().any(|(r, how)| match (&after.pattern.dst, r) {
                (Place::Tile(w), Place::Tile(r)) => l.entangled(w, r) || (*how != Read::Whole && l.same_storage(w, r)),
                (Place::View(w), Place::View(r)) => w.tensor == r.tensor,
                _ => false,
            })
    }
}

impl Lower<'_> {
    fn key(&self, p: &Pattern<'_>) -> Option<Key> {
        let shape = p.shape()?;
        let column = self.defs.number(shape.1) == Some(1);
        let order = |t: &TileRef| self.kernel.tiles[t.tile].ty.order;
        if p.fold.is_some() {
            return Some(Key { shape, down: column });
        }
        let turned =
            p.dst.tile().is_some_and(|t| order(t) == Order::Dn && self.kernel.tiles[t.tile].ty.loc == Loc::Vec);
        Some(Key { shape, down: column || turned })
    }

    /// May an instruction be part of a chain at all?
    fn chainable(&self, p: &Pattern<'_>) -> bool {
        let Some(shape) = p.shape() else { return false };
        // Lines of an array that do not go along its elements have routines of their own.
        let along = |v: &ViewRef| v.strides.len() == 2 && self.defs.number(v.strides[1]) == Some(1);
        let whole = |t: &TileRef| t.valid == shape;
        let ends = match (&p.dst, p.inst.instr.get().sem) {
            (Place::View(v), _) => along(v) && p.srcs.iter().all(|(s, _)| s.tile().is_some_and(whole)),
            (Place::Tile(t), Sem::Load) => {
                whole(t) && p.srcs.iter().all(|(s, _)| if let Place::View(v) = s { along(v) } else { false })
            }
            _ => true,
        };
        let products = &self.products;
        let plain = |t: &TileRef| {
            let data = &self.kernel.tiles[t.tile];
            let elsewhere = products.gone.contains(&t.tile) || products.windows.contains_key(&t.tile);
            data.addr != AddrKind::Dynamic
                && data.ty.layout.is_none()
                && !matches!(data.ty.loc, Loc::Left | Loc::Right)
                && !elsewhere
                && !products.stores.contains_key(&t.tile)
        };
        let foldable = |t: &TileRef| foldable(self.kernel, t) && self.defs.number(shape.1) != Some(1);
        if p.fold.is_some() && !p.srcs.iter().all(|(s, _)| s.tile().is_some_and(foldable)) {
            return false;
        }
        let apart = |t: &TileRef, read: Read| match &p.dst {
            Place::Tile(_) if p.fold.is_some() => true,
            Place::Tile(d) => !self.entangled(d, t) && (read == Read::Whole || !self.same_storage(d, t)),
            Place::View(_) => true,
        };
        let srcs = p.srcs.iter().all(|(s, read)| {
            (*read != Read::Turned || p.turns()) && s.tile().is_none_or(|t| plain(t) && apart(t, *read))
        });
        ends && srcs && p.dst.tile().is_none_or(plain)
    }
}
