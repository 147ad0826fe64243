//! The abstract interpretation: statements and what they do to bytes.

use super::contents::{Bytes, Contents, Def, FIRST_DEF, Owner, Sets};
use super::families;
use super::numbers::{Literal, Numbers, SymbolicOffset};
use super::sources::OwnSource;
use super::states::ByteState;
use super::touches::{Constants, constants, touches};
use super::window::Keys;
use cranelift_entity::SecondaryMap;
use ptoc_diagnostics::{Account, Span, codes};
use ptoc_ir::tile::{AddrKind, Kernel, Label, Op, Stmt, TensorDir, Tile, Value};
use ptoc_isa::Loc;
use ptoc_placement::access::AccessMode;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Steps that a statement takes, beside those for what it does to states.
const VISIT: usize = 64;

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
    /// At some visit it is not known where it goes.
    pub(super) somewhere: bool,
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

pub(super) struct Target {
    pub(super) label: Label,
    pub(super) breaks: Option<ByteState>,
    pub(super) continues: Option<ByteState>,
}

pub(super) struct ByteInterpreter<'k> {
    pub(super) kernel: &'k Kernel,
    /// All `index` constants.
    pub(super) constants: Constants,
    account: Account<'k>,
    /// Steps since the last statement.
    pub(super) work: usize,
    pub(super) numbers: Numbers,
    pub(super) keys: Keys,
    pub(super) sets: Sets,
    /// What loops leave is related to their indices.
    pub(super) relational: bool,
    /// First storage of each automatic tile; those of the memories come first.
    pub(super) own: SecondaryMap<Tile, usize>,
    pub(super) defs: Vec<DefInfo>,
    pub(super) def_ids: FxHashMap<(*const Stmt, Tile, Element), Def>,
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
    pub(super) checked: Option<Span>,
    pub(super) unwritten: FxHashMap<(*const Stmt, Tile, Element), Unwritten>,
    /// Reads of [`ByteInterpreter::unwritten`]'s kind that found everything written.
    pub(super) clean: FxHashSet<(*const Stmt, Tile, Element)>,
    /// Reads that may find something unwritten, or cannot be followed: the statement and the tile.
    pub(super) unproved: FxHashSet<(Span, Tile)>,
    /// Reads that were looked at.
    pub(super) looked_at: FxHashSet<(Span, Tile)>,
    pub(super) overlaps: Vec<Overlap>,
    pub(super) own_sources: Vec<OwnSource>,
    /// Where in them that of a place, an operand and two tiles is; and where in the overlaps that of a read and two
    /// writes.
    pub(super) own_ids: FxHashMap<(Span, usize, (Tile, Tile)), usize>,
    pub(super) overlap_ids: FxHashMap<(Span, Def, Def), usize>,
    /// Pairs of tiles of which one reads what the other wrote: they share bytes on purpose.
    pub(super) aliases: FxHashSet<(Tile, Tile)>,
}

/// The result.
pub(super) struct Findings {
    pub(super) defs: Vec<DefInfo>,
    pub(super) unwritten: Vec<Unwritten>,
    pub(super) overlaps: Vec<Overlap>,
    pub(super) own_sources: Vec<OwnSource>,
    /// Statements with a tile that they read, of which every byte that they may read is sure to be written.
    pub(super) proved: FxHashSet<(Span, Tile)>,
    /// The others: something that they read may be unwritten, as far as the analysis sees.
    pub(super) unproved: FxHashSet<(Span, Tile)>,
}

pub(super) fn owns(defs: &[DefInfo], def: Def, tile: Tile, element: Element) -> bool {
    def.0 >= FIRST_DEF && owner(defs, def).meets(Owner { tile, element })
}

/// Of a write of the program.
pub(super) fn owner(defs: &[DefInfo], def: Def) -> Owner {
    let d = &defs[(def.0 - FIRST_DEF) as usize];
    Owner { tile: d.tile, element: d.element }
}

/// Rounds in which equal numbers become one.
const EQUALITIES: usize = 4;

/// Analyses the body of `kernel`; `None` if it is too large for that.
pub(super) fn analyse(kernel: &Kernel, account: Account<'_>) -> Option<Findings> {
    let mut plain = pass(kernel, false, account)?;
    let doubtful = |u: &Unwritten| !u.always && !u.sure;
    // What all iterations write together takes fewer steps than to walk through them again.
    let open: FxHashSet<(Span, Tile)> = plain.unproved.iter().copied().collect();
    if !open.is_empty() {
        let found = families::proved(kernel, &open, account);
        plain.unwritten.retain(|u| !doubtful(u) || !found.contains(&(u.span, u.tile)));
        plain.unproved.retain(|read| !found.contains(read));
        plain.proved.extend(found);
    }
    // What one iteration writes for the next one takes more work to see.
    let doubts = !plain.unproved.is_empty() || plain.overlaps.iter().any(Overlap::vague);
    if (doubts || plain.unwritten.iter().any(doubtful))
        && let Some(closer) = pass(kernel, true, account)
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
        plain.unproved.retain(|read| !closer.proved.contains(read));
        plain.proved.extend(closer.proved);
    }
    Some(plain)
}

/// An analysis of `kernel`, and what is known where its body begins.
pub(super) fn launch<'k>(
    kernel: &'k Kernel,
    relational: bool,
    account: Account<'k>,
) -> Option<(ByteInterpreter<'k>, ByteState)> {
    let mut own = SecondaryMap::new();
    let mut count = Loc::ALL.len();
    for (tile, data) in &kernel.tiles {
        if data.addr == AddrKind::Auto {
            own[tile] = count;
            count = count.checked_add(data.count as usize).filter(|n| *n <= STORAGES)?;
        }
    }
    let mut walk = ByteInterpreter {
        kernel,
        constants: constants(kernel),
        account,
        work: 0,
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
        looked_at: FxHashSet::default(),
        overlaps: Vec::new(),
        own_sources: Vec::new(),
        own_ids: FxHashMap::default(),
        overlap_ids: FxHashMap::default(),
        aliases: kernel.aliases.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect(),
    };
    // What the launch gives is older than every loop.
    let dims = kernel.dims.values().map(|d| d.value);
    for value in dims.chain(kernel.scalars.iter().map(|s| s.value)).chain(kernel.grid.iter().map(|g| g.index)) {
        walk.numbers.get(value);
    }
    let nothing = Rc::new(Contents::unwritten());
    let start = ByteState { storages: vec![nothing; count], bound: FxHashMap::default(), vars: FxHashMap::default() };
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
    for dim in &kernel.grid {
        let (i, extent) = (walk.numbers.get(dim.index), walk.numbers.get(dim.extent));
        walk.numbers.counts(i, extent);
    }
    Some((walk, start?))
}

fn pass(kernel: &Kernel, relational: bool, account: Account<'_>) -> Option<Findings> {
    let (mut walk, start) = launch(kernel, relational, account)?;
    let end = walk.region(&kernel.body, Some(start))?;
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
    let (own_sources, unproved) = (walk.own_sources, walk.unproved);
    Some(Findings { defs: walk.defs, unwritten, overlaps, own_sources, proved, unproved })
}

impl Findings {
    pub(super) fn def(&self, def: Def) -> &DefInfo {
        &self.defs[(def.0 - FIRST_DEF) as usize]
    }
}

impl<'k> ByteInterpreter<'k> {
    /// Walks the statements; `None` if the analysis gives up, `Some(None)` if control does not come to their end.
    pub(super) fn region(&mut self, region: &'k [Stmt], mut state: Option<ByteState>) -> Option<Option<ByteState>> {
        for stmt in region {
            let Some(now) = state else { return Some(None) };
            self.visits += 1;
            let work = std::mem::take(&mut self.work) + std::mem::take(&mut self.sets.work);
            self.account.spend(VISIT + work).ok()?;
            state = self.stmt(stmt, now)?;
        }
        Some(state)
    }

    fn stmt(&mut self, stmt: &'k Stmt, mut state: ByteState) -> Option<Option<ByteState>> {
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
            Op::Check { check, cond, .. } if self.kernel.checks[*check].code == codes::EMPTY_LOOP => {
                // From here on the loop has run.
                let cond = self.numbers.get(*cond);
                let more = self.assume(cond, true);
                state = self.filter(state, &more);
                self.path.extend(more);
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
        for (access, tile, part) in touches(self.kernel, &self.constants, stmt) {
            match access {
                AccessMode::Read => self.read(stmt, &mut state, &tile, part),
                AccessMode::Write => self.write(stmt, &mut state, &tile, part),
            }
        }
        Some(Some(state))
    }

    pub(super) fn scalar(&mut self, op: &Op, state: &mut ByteState) {
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
                Some(n) => SymbolicOffset::known(n),
                None if value.ty == ptoc_ir::tile::Ty::BOOL => SymbolicOffset::known(value.bits as i64),
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

    fn declare(&mut self, tile: Tile, state: &mut ByteState) {
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

    fn end_life(&mut self, tile: Tile, ranges: &[Bytes], state: &mut ByteState) {
        let ByteInterpreter { sets, defs, kernel, .. } = self;
        let own = |d: Def| owns(defs, d, tile, None);
        let storage = &mut state.storages[kernel.tiles[tile].ty.loc as usize];
        Rc::make_mut(storage).update(ranges, &mut |set| sets.end(set, &own));
    }
}
