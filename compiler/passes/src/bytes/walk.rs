//! The abstract interpretation: statements and what they do to bytes.

use super::contents::{
    Bytes, Contents, Def, EMPTY_LOOP, Entry, FIRST_DEF, Meeting, NOTHING, Owner, Sets, UNWRITTEN, Vague,
};
use super::numbers::{Literal, Num, Numbers};
use super::places::{Places, shift};
use super::sources::OwnSource;
use super::window::{Key, Keys, Part};
use crate::access::{Access, inst_operands, tile_accesses};
use cranelift_entity::SecondaryMap;
use ptoc_diagnostics::{Span, codes};
use ptoc_ir::tile::{
    AddrKind, Kernel, Label, Op, Operand, PrintPart, Stmt, SyncMode, TensorDir, Tile, TileRef, Value, Var,
};
use ptoc_isa::{Loc, Sem};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Statements that are looked at before the analysis gives up.
const FUEL: u32 = 200_000;

/// Automatic tiles, each element for itself, of a kernel that is looked at.
const STORAGES: usize = 10_000;

/// An element of a tile array; `None` if it is not known which.
pub(super) type Element = Option<u32>;

/// What is known of a write.
#[derive(Clone, Debug)]
pub(super) struct DefInfo {
    pub(super) tile: Tile,
    pub(super) element: Element,
    /// The statement.
    pub(super) span: Span,
    /// Some read may find its value.
    pub(super) used: bool,
    /// The first write that covers some of it.
    pub(super) overwritten: Option<Span>,
    /// Some of it may still be there where the block ends.
    pub(super) at_end: bool,
}

/// What the visits of a read found about bytes that nothing has written.
#[derive(Clone, Debug)]
pub(super) struct Unwritten {
    pub(super) tile: Tile,
    pub(super) span: Span,
    /// Each visit finds some byte certainly unwritten.
    pub(super) always: bool,
    /// So does a visit that is sure to come.
    pub(super) sure: bool,
    /// Only a loop that does not run leaves them so.
    pub(super) empty_loop: bool,
    /// They are read only where more is valid than need be.
    pub(super) beyond: bool,
    /// The bytes of the visit that tells most, in the tile.
    pub(super) bytes: Vec<Bytes>,
    /// Rows and columns that it reads.
    pub(super) rows: (u32, u32),
    pub(super) cols: (u32, u32),
}

/// A read finds another tile's value where its own was.
#[derive(Clone, Debug)]
pub(super) struct Overlap {
    /// The tile that is read, and where.
    pub(super) tile: Tile,
    pub(super) read: Span,
    /// The value that was there.
    pub(super) lost: Def,
    /// The write that destroyed it.
    pub(super) by: Def,
    /// In the memory.
    pub(super) bytes: Bytes,
    /// Some iteration stood for many before this was found.
    pub(super) summary: bool,
    /// The write or the read may be somewhere else.
    pub(super) maybe: bool,
}

impl Overlap {
    /// A closer look may show that it is none.
    fn vague(&self) -> bool {
        self.summary || self.maybe
    }
}

/// Everything that is known at a place of the program.
#[derive(Clone, PartialEq)]
pub(super) struct State {
    pub(super) storages: Vec<Rc<Contents>>,
    /// Addresses of tiles that are bound at run time; what is missing is unknown.
    pub(super) bound: FxHashMap<(Tile, u32), Num>,
    pub(super) vars: FxHashMap<Var, Num>,
}

pub(super) struct Target {
    pub(super) label: Label,
    pub(super) breaks: Option<State>,
    pub(super) continues: Option<State>,
}

pub(super) struct Walk<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) numbers: Numbers,
    pub(super) keys: Keys,
    pub(super) sets: Sets,
    /// What loops leave is related to their indices.
    pub(super) relational: bool,
    /// First storage of each automatic tile; those of the memories come first.
    pub(super) own: SecondaryMap<Tile, usize>,
    pub(super) defs: Vec<DefInfo>,
    def_ids: FxHashMap<(*const Stmt, Tile, Element), Def>,
    /// What holds here.
    pub(super) path: Vec<Literal>,
    /// Nobody knows whether control comes here.
    pub(super) unsure: bool,
    /// A fixed point is sought: nothing is noted.
    pub(super) quiet: u32,
    pub(super) visits: u32,
    /// Loops around of which one iteration stands for many.
    pub(super) summarised: u32,
    /// There was one.
    pub(super) any_summary: bool,
    pub(super) targets: Vec<Target>,
    /// The statement that an inserted check of a trip count guards.
    checked: Option<Span>,
    unwritten: FxHashMap<(*const Stmt, Tile, Element), Unwritten>,
    /// Reads of [`Walk::unwritten`]'s kind that found everything written.
    clean: FxHashSet<(*const Stmt, Tile, Element)>,
    /// Reads that may find something unwritten, or cannot be followed: the statement and the tile.
    unproved: FxHashSet<(Span, Tile)>,
    /// Those of them for which it matters where a window is.
    doubts: FxHashSet<(Span, Tile)>,
    /// Reads that were looked at.
    looked_at: FxHashSet<(Span, Tile)>,
    overlaps: Vec<Overlap>,
    pub(super) own_sources: Vec<OwnSource>,
    /// Pairs of tiles of which one reads what the other wrote: they share bytes on purpose.
    aliases: FxHashSet<(Tile, Tile)>,
}

/// The result.
pub(super) struct Findings {
    pub(super) defs: Vec<DefInfo>,
    pub(super) unwritten: Vec<Unwritten>,
    pub(super) overlaps: Vec<Overlap>,
    pub(super) own_sources: Vec<OwnSource>,
    /// Statements with a tile that they read, of which every byte that they may read is sure to be written.
    pub(super) proved: FxHashSet<(Span, Tile)>,
    /// There are others.
    unproved: bool,
    /// Of the others, those of which it is not known where they, or the writes before them, are.
    pub(super) doubts: FxHashSet<(Span, Tile)>,
}

fn owns(defs: &[DefInfo], def: Def, tile: Tile, element: Element) -> bool {
    def.0 >= FIRST_DEF && owner(defs, def).meets(Owner { tile, element })
}

/// Of a write of the program.
fn owner(defs: &[DefInfo], def: Def) -> Owner {
    let d = &defs[(def.0 - FIRST_DEF) as usize];
    Owner { tile: d.tile, element: d.element }
}

/// Rounds in which equal numbers become one.
const EQUALITIES: usize = 4;

/// Analyses the body of `kernel`; `None` if it is too large for that. `doubts` says that initialisation has some, which
/// may be dispelled.
pub(super) fn analyse(kernel: &Kernel, doubts: bool) -> Option<Findings> {
    let mut plain = pass(kernel, false)?;
    let doubtful = |u: &Unwritten| !u.always && !u.sure;
    // What one iteration writes for the next one takes more work to see.
    let doubts = (doubts && plain.unproved) || !plain.doubts.is_empty() || plain.overlaps.iter().any(Overlap::vague);
    if (doubts || plain.unwritten.iter().any(doubtful))
        && let Some(closer) = pass(kernel, true)
    {
        plain.unwritten.retain(|u| {
            let same = |c: &Unwritten| (c.span, c.tile) == (u.span, u.tile);
            !doubtful(u) || closer.unwritten.iter().any(same) || !closer.proved.contains(&(u.span, u.tile))
        });
        let places = |f: &Findings, o: &Overlap| (o.tile, o.read, f.def(o.lost).span, f.def(o.by).span);
        let found: FxHashSet<_> = closer.overlaps.iter().map(|o| places(&closer, o)).collect();
        let mut overlaps = std::mem::take(&mut plain.overlaps);
        overlaps.retain(|o| !o.vague() || found.contains(&places(&plain, o)));
        plain.overlaps = overlaps;
        plain.doubts.retain(|read| !closer.proved.contains(read) && closer.doubts.contains(read));
        plain.proved.extend(closer.proved);
    }
    Some(plain)
}

fn pass(kernel: &Kernel, relational: bool) -> Option<Findings> {
    let mut own = SecondaryMap::new();
    let mut count = Loc::ALL.len();
    for (tile, data) in &kernel.tiles {
        if data.addr == AddrKind::Auto {
            own[tile] = count;
            count = count.checked_add(data.count as usize).filter(|n| *n <= STORAGES)?;
        }
    }
    let mut walk = Walk {
        kernel,
        numbers: Numbers::new(),
        keys: Keys::default(),
        sets: Sets::new(),
        relational,
        own,
        defs: Vec::new(),
        def_ids: FxHashMap::default(),
        path: Vec::new(),
        unsure: false,
        quiet: 0,
        visits: 0,
        summarised: 0,
        any_summary: false,
        targets: Vec::new(),
        checked: None,
        unwritten: FxHashMap::default(),
        clean: FxHashSet::default(),
        unproved: FxHashSet::default(),
        doubts: FxHashSet::default(),
        looked_at: FxHashSet::default(),
        overlaps: Vec::new(),
        own_sources: Vec::new(),
        aliases: kernel.aliases.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect(),
    };
    // What the launch gives is older than every loop.
    let dims = kernel.dims.values().map(|d| d.value);
    for value in dims.chain(kernel.scalars.iter().map(|s| s.value)).chain(kernel.grid.iter().map(|g| g.index)) {
        walk.numbers.get(value);
    }
    let nothing = Rc::new(Contents::unwritten());
    let start = State { storages: vec![nothing; count], bound: FxHashMap::default(), vars: FxHashMap::default() };
    // What the launch's checks say to be the same number is one; all that is computed of it too.
    let depth = walk.path.len();
    for _ in 0..EQUALITIES {
        walk.region(&kernel.prologue, Some(start.clone()))?;
        walk.path.truncate(depth);
        if !walk.numbers.unify(&kernel.prologue) {
            break;
        }
    }
    walk.numbers.bound(&kernel.prologue);
    let start = walk.region(&kernel.prologue, Some(start))?;
    let end = walk.region(&kernel.body, start)?;
    if let Some(end) = end {
        walk.note_end(&end);
    }
    let mut unwritten: Vec<Unwritten> = Vec::new();
    for (key, mut found) in walk.unwritten {
        found.always &= !walk.clean.contains(&key);
        unwritten.push(found);
    }
    unwritten.sort_by_key(|u| (u.span.range().start, u.tile));
    let mut overlaps = walk.overlaps;
    overlaps.retain(|o| {
        let by = walk.defs[(o.by.0 - FIRST_DEF) as usize].tile;
        !walk.aliases.contains(&(by.min(o.tile), by.max(o.tile)))
    });
    let proved = walk.looked_at.difference(&walk.unproved).copied().collect();
    let (own_sources, unproved, doubts) = (walk.own_sources, !walk.unproved.is_empty(), walk.doubts);
    Some(Findings { defs: walk.defs, unwritten, overlaps, own_sources, proved, unproved, doubts })
}

impl Findings {
    pub(super) fn def(&self, def: Def) -> &DefInfo {
        &self.defs[(def.0 - FIRST_DEF) as usize]
    }
}

impl<'k> Walk<'k> {
    /// Walks the statements; `None` if the analysis gives up, `Some(None)` if control does not come to their end.
    pub(super) fn region(&mut self, region: &'k [Stmt], mut state: Option<State>) -> Option<Option<State>> {
        for stmt in region {
            let Some(now) = state else { return Some(None) };
            self.visits += 1;
            if self.visits > FUEL {
                return None;
            }
            state = self.stmt(stmt, now)?;
        }
        Some(state)
    }

    fn stmt(&mut self, stmt: &'k Stmt, mut state: State) -> Option<Option<State>> {
        match &stmt.op {
            Op::For(f) => return self.for_loop(f, state),
            Op::While(w) => return self.while_loop(w, state),
            Op::If(i) => return self.conditional(i, state),
            Op::Scope(s) => return self.scope(s, state),
            Op::Break(label) | Op::Leave(label) => {
                self.jump(*label, state, false);
                return Some(None);
            }
            Op::Continue(label) => {
                self.jump(*label, state, true);
                return Some(None);
            }
            Op::Check { check, .. } if self.kernel.checks[*check].code == codes::EMPTY_LOOP => {
                self.checked = Some(stmt.span);
            }
            Op::Alloc { tile } => self.declare(*tile, &mut state),
            Op::Assign { tile, element, addr } => {
                let addr = self.numbers.get(*addr);
                match self.element(*element) {
                    Some(n) => {
                        state.bound.insert((*tile, n), addr);
                    }
                    None => state.bound.retain(|(t, _), _| t != tile),
                }
            }
            Op::Inst(inst) => self.sources(stmt, inst, &state),
            op => self.scalar(op, &mut state),
        }
        for (access, tile, part) in touches(self.kernel, stmt) {
            match access {
                Access::Read => self.read(stmt, &mut state, &tile, part),
                Access::Write => self.write(stmt, &mut state, &tile, part),
            }
        }
        Some(Some(state))
    }

    fn scalar(&mut self, op: &Op, state: &mut State) {
        let Some(dst) = op.def() else {
            if let Op::Set { var, value } = op {
                let n = self.numbers.get(*value);
                state.vars.insert(*var, n);
            }
            return;
        };
        let ty = |v: Value| self.kernel.values[v].ty;
        let n = match op {
            Op::Const { value, .. } => match value.as_index() {
                Some(n) => Num::known(n),
                None if value.ty == ptoc_ir::tile::Ty::BOOL => Num::known(value.bits as i64),
                None => self.numbers.pure(format!("{} {:#x}", value.ty, value.bits), Vec::new()),
            },
            Op::Unary { op, a, .. } => {
                let (of, n) = (ty(*a), self.numbers.get(*a));
                match op {
                    ptoc_isa::UnOp::Not if of == ptoc_ir::tile::Ty::BOOL => self.numbers.not(n),
                    _ => self.numbers.pure(format!("{op:?} {of}"), vec![n]),
                }
            }
            Op::Binary { op, a, b, .. } => {
                let (of, x, y) = (ty(*a), self.numbers.get(*a), self.numbers.get(*b));
                self.numbers.binary(of, *op, x, y)
            }
            Op::Compare { op, a, b, .. } => {
                let (of, x, y) = (ty(*a), self.numbers.get(*a), self.numbers.get(*b));
                self.numbers.compare(of, *op, x, y)
            }
            Op::Select { cond, a, b, .. } => {
                let (c, x, y) = (self.numbers.get(*cond), self.numbers.get(*a), self.numbers.get(*b));
                match self.numbers.decide(c, &self.path) {
                    Some(true) => x,
                    Some(false) => y,
                    None if x == y => x,
                    None => self.numbers.select(c, x, y),
                }
            }
            Op::Convert { a, round, saturate, .. } => {
                let (from, to, n) = (ty(*a), ty(dst), self.numbers.get(*a));
                self.numbers.pure(format!("{from} to {to} {round:?} {saturate}"), vec![n])
            }
            Op::Bitcast { a, .. } => {
                let (to, n) = (ty(dst), self.numbers.get(*a));
                self.numbers.pure(format!("bits as {to}"), vec![n])
            }
            // Nobody writes what is `in`.
            Op::Load { tensor, offset, .. } if self.kernel.tensors[*tensor].dir == TensorDir::In => {
                let at = self.numbers.get(*offset);
                self.numbers.pure(format!("element of {tensor}"), vec![at])
            }
            Op::Get { var, .. } => match state.vars.get(var) {
                Some(n) => self.numbers.resolve(*n, &self.path),
                None => {
                    let n = self.numbers.symbol();
                    state.vars.insert(*var, n);
                    n
                }
            },
            _ => self.numbers.symbol(),
        };
        self.numbers.set(dst, n);
    }

    fn element(&mut self, element: Option<Value>) -> Element {
        match element {
            None => Some(0),
            Some(v) => self.numbers.get(v).constant().and_then(|n| u32::try_from(n).ok()),
        }
    }

    fn declare(&mut self, tile: Tile, state: &mut State) {
        let data = &self.kernel.tiles[tile];
        match &data.addr {
            AddrKind::Auto => {
                for s in &mut state.storages[self.own[tile]..][..data.count as usize] {
                    *s = Rc::new(Contents::unwritten());
                }
            }
            AddrKind::Dynamic => {
                state.bound.retain(|(t, _), _| *t != tile);
                self.end_life(tile, &[(0, u64::MAX)], state);
            }
            AddrKind::Fixed(at) => {
                let mut ranges: Vec<Bytes> =
                    at.iter().map(|&s| (s, s.saturating_add(data.ty.bytes()))).filter(|(s, e)| s < e).collect();
                ranges.sort_unstable();
                // Elements may overlap.
                let mut apart: Vec<Bytes> = Vec::new();
                for (s, e) in ranges {
                    match apart.last_mut() {
                        Some(last) if s <= last.1 => last.1 = last.1.max(e),
                        _ => apart.push((s, e)),
                    }
                }
                self.end_life(tile, &apart, state);
            }
        }
    }

    fn end_life(&mut self, tile: Tile, ranges: &[Bytes], state: &mut State) {
        let Walk { sets, defs, kernel, .. } = self;
        let own = |d: Def| owns(defs, d, tile, None);
        let storage = &mut state.storages[kernel.tiles[tile].ty.loc as usize];
        Rc::make_mut(storage).update(ranges, &mut |set| sets.end(set, &own));
    }

    fn visible(&self, e: &Entry, key: Key) -> bool {
        !e.shadows.iter().any(|s| self.keys.covers(*s, key))
            && !e.literals.iter().any(|l| self.numbers.contradicts(*l, &self.path))
    }

    /// An element of an array, nobody knows which, in a kernel whose author orders the pipes: who writes the elements before
    /// whom is what the flags are about.
    fn in_turn(&self, places: &Places) -> bool {
        self.kernel.sync == SyncMode::Manual && places.element.is_none()
    }

    /// May a read find something unwritten, because of where a window is?
    fn doubtful(&self, state: &State, places: &Places, checked: bool) -> bool {
        let mut found = false;
        let in_turn = self.in_turn(places);
        for (storage, ranges) in places.sure() {
            state.storages[storage].visit(&ranges, &mut |_, set| {
                let open = |e: &Entry| match e.def {
                    UNWRITTEN if in_turn => e.vague == Vague::Somewhere,
                    UNWRITTEN => e.vague != Vague::Valid,
                    EMPTY_LOOP => e.vague == Vague::Somewhere && !checked,
                    _ => false,
                };
                found |= self.sets.get(set).iter().any(|e| open(e) && self.visible(e, places.key));
            });
        }
        found
    }

    fn read(&mut self, stmt: &'k Stmt, state: &mut State, r: &TileRef, part: Part) {
        let places = self.places(state, r, part);
        let (mut written, mut used) = (true, Vec::new());
        for (storage, ranges) in places.most() {
            state.storages[storage].visit(&ranges, &mut |_, set| {
                let found = self.sets.get(set);
                let unwritten = |e: &Entry| matches!(e.def, UNWRITTEN | EMPTY_LOOP) && self.visible(e, places.key);
                written &= !found.iter().any(unwritten);
                used.extend(
                    found.iter().filter(|e| e.def.0 >= FIRST_DEF && self.visible(e, places.key)).map(|e| e.def),
                );
            });
        }
        for def in used {
            self.defs[(def.0 - FIRST_DEF) as usize].used = true;
        }
        if self.quiet == 0 {
            self.looked_at.insert((stmt.span, r.tile));
            if !written {
                self.unproved.insert((stmt.span, r.tile));
                if self.doubtful(state, &places, self.checked == Some(stmt.span)) {
                    self.doubts.insert((stmt.span, r.tile));
                }
            }
        }
        self.foreign(stmt, state, r.tile, &places);
        if !places.certain {
            return;
        }
        let (storage, base) = places.all[0];
        let ranges = shift(&places.extent.least, base);
        let id = (std::ptr::from_ref(stmt), r.tile, places.element);
        let (mut never, mut perhaps, mut empty): (Vec<Bytes>, Vec<Bytes>, Vec<Bytes>) = Default::default();
        state.storages[storage].visit(&ranges, &mut |(start, end), set| {
            let found = self.sets.get(set);
            let mut seen = found.iter().filter(|e| self.visible(e, places.key)).peekable();
            let (mut all, mut unwritten, mut no_loop) = (seen.peek().is_some(), false, false);
            for e in seen {
                all &= e.def == UNWRITTEN && e.vague == Vague::No;
                unwritten |= e.def == UNWRITTEN && e.vague == Vague::No;
                no_loop |= e.def == EMPTY_LOOP && e.vague == Vague::No;
            }
            match () {
                () if all => never.push((start - base, end - base)),
                () if unwritten => perhaps.push((start - base, end - base)),
                () if no_loop => empty.push((start - base, end - base)),
                () => {}
            }
        });
        // What is read where all is valid that can be, and nobody writes.
        let mut beyond: Vec<Bytes> = Vec::new();
        if never.is_empty() && perhaps.is_empty() {
            state.storages[storage].visit(&shift(&places.extent.full, base), &mut |(start, end), set| {
                let found = self.sets.get(set);
                let mut seen = found.iter().filter(|e| self.visible(e, places.key)).peekable();
                if seen.peek().is_some() && seen.all(|e| e.def == UNWRITTEN && e.vague == Vague::No) {
                    beyond.push((start - base, end - base));
                }
            });
        }
        let checked = self.checked == Some(stmt.span);
        let bad = [&never, &perhaps, &beyond].iter().any(|b| !b.is_empty()) || (!empty.is_empty() && !checked);
        let beyond_only = never.is_empty() && perhaps.is_empty() && !beyond.is_empty();
        if bad {
            if self.quiet == 0 {
                let sure = !never.is_empty() && !self.unsure;
                let always = !never.is_empty();
                let empty_loop = never.is_empty() && perhaps.is_empty() && beyond.is_empty();
                let bytes = [never, perhaps, beyond, empty].into_iter().find(|b| !b.is_empty()).unwrap_or_default();
                let (rows, cols) = match beyond_only {
                    true => places.extent.reach,
                    false => (places.extent.rows, places.extent.cols),
                };
                let new = Unwritten {
                    tile: r.tile,
                    span: stmt.span,
                    always,
                    sure,
                    empty_loop,
                    beyond: beyond_only,
                    bytes,
                    rows,
                    cols,
                };
                match self.unwritten.get_mut(&id) {
                    None => {
                        self.unwritten.insert(id, new);
                    }
                    Some(old) => {
                        let (always, sure, empty_loop) =
                            (old.always && always, old.sure || sure, old.empty_loop && empty_loop);
                        if (new.sure, new.always) > (old.sure, old.always) {
                            *old = new;
                        }
                        (old.always, old.sure, old.empty_loop) = (always, sure, empty_loop);
                    }
                }
            }
            let sets = &mut self.sets;
            let reported = shift(if beyond_only { &places.extent.full } else { &places.extent.least }, base);
            Rc::make_mut(&mut state.storages[storage]).update(&reported, &mut |set| sets.settled(set));
        } else if self.quiet == 0 {
            self.clean.insert(id);
        }
    }

    /// What a read finds of other tiles.
    fn foreign(&mut self, stmt: &Stmt, state: &State, tile: Tile, places: &Places) {
        let known = places.certain && !places.extent.full.is_empty();
        let all = match known {
            true => places.full().unwrap_or_default(),
            // What may be read of whole windows; where these are not either, nothing is said.
            false => places.sure(),
        };
        let mut found: Vec<(Bytes, Def, Vec<Def>, bool)> = Vec::new();
        for (storage, ranges) in all {
            state.storages[storage].visit(&ranges, &mut |bytes, set| {
                for e in self.sets.get(set).iter().filter(|e| e.def.0 >= FIRST_DEF && self.visible(e, places.key)) {
                    if owns(&self.defs, e.def, tile, places.element) {
                        continue;
                    }
                    let lost = |v: &Def| owns(&self.defs, *v, tile, places.element);
                    let lost: Vec<Def> = e.victims.iter().copied().filter(lost).collect();
                    // What may have been overwritten since says nothing about what the author means.
                    if !lost.is_empty() || (known && e.vague == Vague::No) {
                        found.push((bytes, e.def, lost, !known || e.maybe));
                    }
                }
            });
        }
        for (bytes, by, lost, maybe) in found {
            let other = self.defs[(by.0 - FIRST_DEF) as usize].tile;
            match lost.first() {
                None => {
                    self.aliases.insert((other.min(tile), other.max(tile)));
                }
                Some(&lost) if self.quiet == 0 => {
                    let new = Overlap { tile, read: stmt.span, lost, by, bytes, summary: self.any_summary, maybe };
                    match self.overlaps.iter_mut().find(|o| (o.read, o.lost, o.by) == (stmt.span, lost, by)) {
                        Some(old) => {
                            old.bytes = (old.bytes.0.min(bytes.0), old.bytes.1.max(bytes.1));
                            old.maybe &= maybe;
                        }
                        None => self.overlaps.push(new),
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn write(&mut self, stmt: &'k Stmt, state: &mut State, r: &TileRef, part: Part) {
        let places = self.places(state, r, part);
        let def = self.def(stmt, r.tile, places.element);
        let in_turn = self.in_turn(&places);
        let Walk { sets, defs, .. } = self;
        let own = Owner { tile: r.tile, element: places.element };
        if places.certain && places.extent.exact {
            let (storage, base) = places.all[0];
            let ranges = shift(&places.extent.most, base);
            let mut gone = Vec::new();
            state.storages[storage].visit(&ranges, &mut |_, set| gone.extend(sets.get(set).iter().map(|e| e.def)));
            for old in gone.into_iter().filter(|d| d.0 >= FIRST_DEF) {
                defs[(old.0 - FIRST_DEF) as usize].overwritten.get_or_insert(stmt.span);
            }
            let owners = |d: Def| owner(defs, d);
            Rc::make_mut(&mut state.storages[storage]).update(&ranges, &mut |set| {
                let victims = sets.victims(set, own, &owners);
                sets.only(def, victims)
            });
            return;
        }
        let key = (!matches!(part, Part::Some)).then_some(places.key);
        // What is written somewhere in a tile destroys nothing that could be named.
        let placed = places.certain && !places.extent.full.is_empty();
        let somewhere = !placed && !matches!(part, Part::Some) && !in_turn;
        let owners = |d: Def| owner(defs, d);
        for (storage, ranges) in places.most() {
            let contents = Rc::make_mut(&mut state.storages[storage]);
            contents.update(&ranges, &mut |set| sets.overlaid(set, def, key, (placed, somewhere), own, &owners));
        }
        if places.certain {
            // Written anew, if anything is; and if nothing is, nothing is read there either.
            let (storage, base) = places.all[0];
            let ranges = shift(&places.extent.least, base);
            Rc::make_mut(&mut state.storages[storage]).update(&ranges, &mut |set| sets.restored(set, own, &owners));
        }
    }

    fn def(&mut self, stmt: &'k Stmt, tile: Tile, element: Element) -> Def {
        let next = Def(self.defs.len() as u32 + FIRST_DEF);
        let def = *self.def_ids.entry((std::ptr::from_ref(stmt), tile, element)).or_insert(next);
        if def == next {
            let span = stmt.span;
            self.defs.push(DefInfo { tile, element, span, used: false, overwritten: None, at_end: false });
        }
        def
    }

    fn note_end(&mut self, end: &State) {
        for storage in &end.storages {
            let mut left = Vec::new();
            storage.visit(&[(0, u64::MAX)], &mut |_, set| {
                if set != NOTHING {
                    left.extend(self.sets.get(set).iter().map(|e| e.def));
                }
            });
            for def in left.into_iter().filter(|d| d.0 >= FIRST_DEF) {
                self.defs[(def.0 - FIRST_DEF) as usize].at_end = true;
            }
        }
    }

    // ---- states --------------------------------------------------------------------------------------------------

    pub(super) fn join(&mut self, a: Option<State>, b: Option<State>, how: Meeting) -> Option<State> {
        let (a, b) = match (a, b) {
            (None, x) | (x, None) => return x,
            (Some(a), Some(b)) => (a, b),
        };
        let sets = &mut self.sets;
        let mut both = |x: &Rc<Contents>, y: &Rc<Contents>| match Rc::ptr_eq(x, y) {
            true => x.clone(),
            false => Rc::new(x.zip(y, &mut |p, q| sets.join(p, q, how))),
        };
        Some(State {
            storages: a.storages.iter().zip(&b.storages).map(|(x, y)| both(x, y)).collect(),
            bound: agreed(a.bound, &b.bound),
            vars: match how {
                Meeting::Branch(l) if self.relational => self.either(l, a.vars, &b.vars),
                _ => agreed(a.vars, &b.vars),
            },
        })
    }

    /// Without what cannot be if these hold as well.
    pub(super) fn filter(&mut self, mut state: State, more: &[Literal]) -> State {
        if more.is_empty() {
            return state;
        }
        let path: Vec<Literal> = self.path.iter().chain(more).copied().collect();
        let Walk { sets, numbers, .. } = self;
        if self.relational {
            state.vars.values_mut().for_each(|n| *n = numbers.resolve(*n, &path));
        }
        for s in &mut state.storages {
            let new = {
                let mut c = Contents::clone(s);
                c.map(&mut |set| sets.filter(set, numbers, &path));
                c
            };
            if new != **s {
                *s = Rc::new(new);
            }
        }
        state
    }

    /// At the end of an iteration.
    pub(super) fn forget(&mut self, state: Option<State>, then: u32) -> Option<State> {
        let mut state = state?;
        let Walk { sets, numbers, keys, .. } = self;
        for s in &mut state.storages {
            let new = {
                let mut c = Contents::clone(s);
                c.map(&mut |set| sets.forget(set, numbers, keys, then));
                c
            };
            if new != **s {
                *s = Rc::new(new);
            }
        }
        state.bound.retain(|_, n| !numbers.younger(*n, then));
        state.vars.retain(|_, n| !numbers.younger(*n, then));
        Some(state)
    }
}

pub(super) fn agreed<K: std::hash::Hash + Eq>(mut a: FxHashMap<K, Num>, b: &FxHashMap<K, Num>) -> FxHashMap<K, Num> {
    a.retain(|k, n| b.get(k) == Some(n));
    a
}

/// The windows that a statement touches, reads before writes.
pub(super) fn touches(kernel: &Kernel, stmt: &Stmt) -> Vec<(Access, TileRef, Part)> {
    let mut out = Vec::new();
    match &stmt.op {
        Op::TileGet { tile, row, col, .. } => out.push((Access::Read, *tile, Part::Element(*row, *col))),
        Op::TileSet { tile, row, col, .. } => out.push((Access::Write, *tile, Part::Element(*row, *col))),
        Op::Print { parts } => out.extend(parts.iter().filter_map(|p| match p {
            PrintPart::Tile(t) => Some((Access::Read, *t, Part::Valid)),
            _ => None,
        })),
        Op::Inst(inst) if inst.instr.get().sem == Sem::Assign => {}
        Op::Inst(inst) => {
            for (access, operand) in inst_operands(inst) {
                if let Operand::Tile(t) = operand {
                    out.push((access, *t, Part::Valid));
                }
            }
        }
        Op::Copy(copy) => {
            out.extend(copy.src.tile().map(|t| (Access::Read, *t, Part::Some)));
            let part = if copy.covers { Part::Valid } else { Part::Some };
            out.extend(copy.dst.tile().map(|t| (Access::Write, *t, part)));
        }
        _ => out.extend(tile_accesses(kernel, stmt).into_iter().map(|(a, t)| (a, t, Part::Some))),
    }
    out.sort_by_key(|(a, ..)| *a == Access::Write);
    out
}
