//! Checks a placement against the program, independently of the planner: no live intervals, no numbering, but the
//! two classic data-flow facts on the structured program. A tile **holds a value** at a place if it may have been
//! written since its declaration and may be read before its next one. A plan is sound if no write destroys bytes of a
//! value that is still wanted, and if every address is aligned and inside its memory.
//!
//! All of it is derived anew, from the program and the bytes: which tiles are touched and when, where the copies of a
//! pipeline lie, which instruction may write over what it reads. Only the reading of statements
//! ([`ptoc_placement::access`]) and the facts about memories ([`ptoc_placement::memories`]) are those that everybody
//! has.
//!
//! What the author placed (`TASSIGN` with constants) may overlap as it likes in Vec and Mat. In the other memories
//! bytes have no meaning under another type, so there a write that destroys a tile of another type is the author's
//! mistake. There a write that covers what is read ends a value, too ([`values`]).

mod fault;
mod values;

pub use fault::PlanFault;

use ptoc_diagnostics::Span;
use ptoc_ir::tile::{AddrKind, Inst, Kernel, Op, Operand, Stmt, SyncMode, Tile, TileData, TileRef};
use ptoc_isa::{Loc, ShapeRule, Target};
use ptoc_placement::Placement;
use ptoc_placement::access::{AccessMode, regions, tile_accesses};
use ptoc_placement::memories;
use rustc_hash::{FxHashMap, FxHashSet};

type Set = FxHashSet<Tile>;
type Range = (u64, u64);

/// Verifies `placement`; the faults found, none if the plan is sound.
pub fn check(kernel: &Kernel, placement: &Placement, target: &Target) -> Vec<PlanFault> {
    let mut faults = Vec::new();
    let mut ranges: FxHashMap<Tile, Vec<Range>> = FxHashMap::default();
    let mut touched = Set::default();
    note_touched(kernel, &kernel.body, &mut touched);
    let dynamic = kernel.tiles.values().filter(|t| t.addr == AddrKind::Dynamic);
    let bound: FxHashSet<Loc> = dynamic.map(|t| target.home(t.ty.loc)).collect();
    for (tile, data) in &kernel.tiles {
        // A tile that is only declared has an address and no bytes.
        if data.addr == AddrKind::Dynamic || (data.addr == AddrKind::Auto && !touched.contains(&tile)) {
            continue;
        }
        let starts = &placement.offsets[tile];
        if starts.len() != data.count as usize {
            faults.push(PlanFault::Unplaced(tile));
            continue;
        }
        let (capacity, align) = (memories::capacity(target, data.ty.loc), memories::align(target, data.ty.loc));
        let bytes = match data.addr {
            AddrKind::Auto => occupied(data, starts, align),
            // The author's address is that of all copies.
            _ => starts.iter().map(|&s| (s, s.saturating_add(data.ty.bytes()))).collect(),
        };
        for &(start, end) in &bytes {
            if end > capacity {
                faults.push(PlanFault::Outside(tile, end));
            }
            if align > 1 && start % align != 0 {
                faults.push(PlanFault::Unaligned(tile, start));
            }
        }
        // Who binds a tile while the kernel runs is told to stay below the limit, if there is one.
        if data.addr == AddrKind::Auto && bound.contains(&target.home(data.ty.loc)) {
            let limit = placement.memory(data.ty.loc).and_then(|m| m.dynamic_limit).unwrap_or(u64::MAX);
            if bytes.iter().any(|&(start, _)| start < limit) {
                faults.push(PlanFault::WithinReach(tile, limit));
            }
        }
        ranges.insert(tile, bytes);
    }
    faults.extend(unbounded(kernel, target));
    let mut flow = LiveTilesAnalysis {
        kernel,
        target,
        ranges,
        faults,
        wanted: FxHashMap::default(),
        exits: Vec::new(),
        loops: 0,
        left: FxHashMap::default(),
        again: FxHashMap::default(),
        walked: FxHashMap::default(),
        unobservable: Vec::new(),
    };
    flow.backward(&kernel.body, Set::default());
    flow.faults.extend(pipelined_overlaps(kernel, target, &flow.ranges));
    flow.faults.extend(unordered_overlaps(kernel, target, &flow.ranges));
    let mut written = Set::default();
    flow.forward(&kernel.body, &mut written);
    flow.destroyed();
    let mut seen = FxHashSet::default();
    flow.faults.retain(|f| seen.insert(f.clone()));
    flow.faults
}

/// The tiles that some statement reads or writes.
fn note_touched(kernel: &Kernel, region: &[Stmt], touched: &mut Set) {
    for stmt in region {
        touched.extend(tile_accesses(kernel, stmt).into_iter().map(|(_, r)| r.tile));
        for region in regions(&stmt.op) {
            note_touched(kernel, region, touched);
        }
    }
}

/// Every copy of every element, as byte ranges.
fn occupied(data: &TileData, starts: &[u64], align: u64) -> Vec<Range> {
    let step = data.ty.bytes().div_ceil(align) * align * u64::from(data.count);
    let copies = 0..u64::from(data.stages);
    copies.flat_map(|c| starts.iter().map(move |&s| (s + c * step, s + c * step + data.ty.bytes()))).collect()
}

/// Several iterations of a pipeline are under way at once: a tile of which it has copies shares no bytes with anything
/// that it touches, whatever the order of the statements.
fn pipelined_overlaps(kernel: &Kernel, target: &Target, ranges: &FxHashMap<Tile, Vec<Range>>) -> Vec<PlanFault> {
    /// The tiles declared in a pipeline but not in an inner one, and its body.
    type Pipeline<'k> = (Vec<(Tile, Span)>, &'k [Stmt]);
    fn collect<'k>(region: &'k [Stmt], own: &mut Vec<(Tile, Span)>, out: &mut Vec<Pipeline<'k>>) {
        for stmt in region {
            match &stmt.op {
                Op::Alloc { tile } => own.push((*tile, stmt.span)),
                Op::For(f) if f.stages > 1 => {
                    let mut inner = Vec::new();
                    collect(&f.body, &mut inner, out);
                    out.push((inner, &f.body));
                }
                op => regions(op).into_iter().for_each(|r| collect(r, own, out)),
            }
        }
    }
    let (mut pipelines, mut faults) = (Vec::new(), Vec::new());
    collect(&kernel.body, &mut Vec::new(), &mut pipelines);
    for (own, body) in pipelines {
        let mut touched = Set::default();
        note_touched(kernel, body, &mut touched);
        let mut touched: Vec<Tile> = touched.into_iter().collect();
        touched.sort_unstable();
        for &(a, span) in &own {
            let x = &kernel.tiles[a];
            if x.stages <= 1 || x.addr != AddrKind::Auto {
                continue;
            }
            let meets = |b: &&Tile| {
                **b != a && one_memory(target, x, &kernel.tiles[**b]) && overlap(ranges.get(&a), ranges.get(b))
            };
            // Two that both have copies are told of once.
            let told = |b: &&Tile| kernel.tiles[**b].stages <= 1 || a < **b || !own.iter().any(|(t, _)| t == *b);
            faults.extend(touched.iter().filter(meets).filter(told).map(|&b| PlanFault::Clobber(a, b, span)));
        }
    }
    faults
}

/// Overlaps of a kernel whose author orders the pipes. Events order the accesses to a tile, and nothing orders those to
/// another tile on its bytes, in whatever order the statements stand: a tile that the planner placed shares no bytes.
fn unordered_overlaps(kernel: &Kernel, target: &Target, ranges: &FxHashMap<Tile, Vec<Range>>) -> Vec<PlanFault> {
    if kernel.sync != SyncMode::Manual {
        return Vec::new();
    }
    let planned = |data: &TileData| data.addr == AddrKind::Auto;
    let mut faults = Vec::new();
    for (a, x) in kernel.tiles.iter().filter(|(_, x)| planned(x)) {
        let meets = |(b, y): &(Tile, &TileData)| {
            // Two of the planner's are told of once.
            *b != a && (a < *b || !planned(y)) && one_memory(target, x, y) && overlap(ranges.get(&a), ranges.get(b))
        };
        faults.extend(kernel.tiles.iter().filter(meets).map(|(b, _)| PlanFault::Clobber(a, b, x.span)));
    }
    faults
}

/// Tiles with computed addresses beside tiles of another location of their memory that the author has placed too.
/// Between those of one location the run decides; the planner's own tiles stay out of reach.
fn unbounded(kernel: &Kernel, target: &Target) -> Vec<PlanFault> {
    let placed = || kernel.tiles.iter().filter(|(_, data)| data.addr != AddrKind::Auto);
    let mut faults = Vec::new();
    for (a, x) in placed().filter(|(_, x)| x.addr == AddrKind::Dynamic) {
        let beside = |(b, y): &(Tile, &TileData)| {
            x.ty.loc != y.ty.loc && one_memory(target, x, y) && (y.addr != AddrKind::Dynamic || a < *b)
        };
        faults.extend(placed().find(beside).map(|(b, _)| PlanFault::Unbounded(a, b)));
    }
    faults
}

/// Whether the two could have bytes in common.
fn one_memory(target: &Target, x: &TileData, y: &TileData) -> bool {
    target.home(x.ty.loc) == target.home(y.ty.loc)
}

fn overlap(a: Option<&Vec<Range>>, b: Option<&Vec<Range>>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    a.iter().any(|x| b.iter().any(|y| x.0 < y.1 && y.0 < x.1))
}

/// The tiles that a loop's body declares, but for those of loops inside.
fn declared(region: &[Stmt], f: &mut impl FnMut(Tile)) {
    for stmt in region {
        match &stmt.op {
            Op::Alloc { tile } => f(*tile),
            Op::For(_) | Op::While(_) => {}
            op => regions(op).into_iter().for_each(|r| declared(r, f)),
        }
    }
}

/// The tiles that may still be read where a `break`, `continue` or `leave` of this label arrives.
struct Exit {
    label: ptoc_ir::tile::Label,
    on_break: Set,
    on_continue: Set,
}

struct LiveTilesAnalysis<'k> {
    kernel: &'k Kernel,
    target: &'k Target,
    ranges: FxHashMap<Tile, Vec<Range>>,
    faults: Vec<PlanFault>,
    /// What may be read after each statement and has bytes of a tile that it writes, by the address of the statement in
    /// the (immutable) program.
    wanted: FxHashMap<*const Stmt, Set>,
    exits: Vec<Exit>,
    /// Loops around what is looked at. Of one without any nothing is kept: nobody looks at it again.
    loops: u32,
    /// What may have been written where a jump leaves for a label.
    left: FxHashMap<ptoc_ir::tile::Label, Set>,
    /// What the end of each loop was found to want. Where a loop is looked at once more, for a loop around it, it wants
    /// no less.
    again: FxHashMap<ptoc_ir::tile::Label, Set>,
    /// For each loop what may have been written behind it, when it was walked last. Before it there is no less later,
    /// for a loop around it; if there is no more than this, another walk would find the same.
    walked: FxHashMap<*const Stmt, Set>,
    /// Writes, each with a tile of the author's placing that they destroy and that was not written anew since it was
    /// declared.
    unobservable: Vec<(*const Stmt, PlanFault)>,
}

impl LiveTilesAnalysis<'_> {
    /// What may be read before `region`, given what may be read `after` it. Notes the set after each statement.
    fn backward(&mut self, region: &[Stmt], after: Set) -> Set {
        let mut live = after;
        for stmt in region.iter().rev() {
            ptoc_diagnostics::work(1 + live.len());
            self.note_wanted(stmt, &live);
            live = self.before(stmt, live);
        }
        live
    }

    fn note_wanted(&mut self, stmt: &Stmt, live: &Set) {
        let LiveTilesAnalysis { kernel, target, ranges, wanted, .. } = self;
        for (access, written) in tile_accesses(kernel, stmt) {
            if access == AccessMode::Write {
                let own = ranges.get(&written.tile);
                let meets = |t: &Tile| one_memory(target, &kernel.tiles[*t], &kernel.tiles[written.tile]);
                let victims = live.iter().copied().filter(|t| meets(t) && overlap(own, ranges.get(t)));
                let mut victims = victims.peekable();
                if victims.peek().is_some() {
                    wanted.entry(std::ptr::from_ref(stmt)).or_default().extend(victims);
                }
            }
        }
    }

    fn before(&mut self, stmt: &Stmt, mut live: Set) -> Set {
        for (access, tile) in tile_accesses(self.kernel, stmt) {
            if access == AccessMode::Read {
                live.insert(tile.tile);
            }
        }
        match &stmt.op {
            Op::Alloc { tile } => {
                live.remove(tile);
                live
            }
            Op::If(i) => {
                let mut out = self.backward(&i.then, live.clone());
                out.extend(self.backward(&i.els, live));
                out
            }
            Op::Scope(s) => {
                self.exits.push(Exit { label: s.label, on_break: live.clone(), on_continue: Set::default() });
                let out = self.backward(&s.body, live);
                self.exits.pop();
                out
            }
            Op::For(f) => self.repeat(f.label, live, |this, again| this.backward(&f.body, again)),
            Op::While(w) => {
                let after = live.clone();
                self.repeat(w.label, live, |this, again| {
                    let mut before_body = this.backward(&w.body, again);
                    before_body.extend(after.iter().copied());
                    this.backward(&w.head, before_body)
                })
            }
            Op::Break(label) | Op::Leave(label) => {
                self.exits.iter().rev().find(|e| e.label == *label).map(|e| e.on_break.clone()).unwrap_or_default()
            }
            Op::Continue(label) => {
                self.exits.iter().rev().find(|e| e.label == *label).map(|e| e.on_continue.clone()).unwrap_or_default()
            }
            _ => live,
        }
    }

    /// A loop: whatever its start wants, its end wants too, until that adds nothing.
    fn repeat(&mut self, label: ptoc_ir::tile::Label, after: Set, mut body: impl FnMut(&mut Self, Set) -> Set) -> Set {
        let mut again = after.clone();
        again.extend(self.again.get(&label).into_iter().flatten());
        self.loops += 1;
        loop {
            self.exits.push(Exit { label, on_break: after.clone(), on_continue: again.clone() });
            let start = body(self, again.clone());
            self.exits.pop();
            let before = again.len();
            again.extend(start);
            if again.len() == before {
                self.loops -= 1;
                if self.loops > 0 {
                    self.again.insert(label, again.clone());
                }
                return again;
            }
        }
    }

    /// Walks with the tiles that may have been written; at each write, asks what it destroys. Behind a jump nothing is
    /// reached, and the walk goes on as if it were, which only adds to the set.
    fn forward(&mut self, region: &[Stmt], written: &mut Set) {
        for stmt in region {
            ptoc_diagnostics::work(1);
            if let Op::Alloc { tile } = &stmt.op {
                written.remove(tile);
            }
            let accesses = tile_accesses(self.kernel, stmt);
            let of = |kind: AccessMode| -> Vec<Tile> {
                accesses.iter().filter(|(a, _)| *a == kind).map(|(_, t)| t.tile).collect()
            };
            let (sources, targets) = (of(AccessMode::Read), of(AccessMode::Write));
            for (n, &target) in targets.iter().enumerate() {
                self.write(stmt, target, &sources, &targets[..n], written);
            }
            written.extend(targets);
            match &stmt.op {
                Op::If(i) => {
                    let mut other = written.clone();
                    self.forward(&i.then, written);
                    self.forward(&i.els, &mut other);
                    written.extend(other);
                }
                // Twice: the second time with what the first left behind.
                Op::For(_) | Op::While(_) => {
                    let label = match &stmt.op {
                        Op::For(f) => Some(f.label),
                        Op::While(w) => Some(w.label),
                        _ => None,
                    };
                    let key = std::ptr::from_ref(stmt);
                    match self.walked.get(&key).filter(|after| written.is_subset(after)) {
                        Some(after) => written.extend(after),
                        None => {
                            self.loops += 1;
                            for _ in 0..2 {
                                let skipped = written.clone();
                                for region in regions(&stmt.op) {
                                    self.forward(region, written);
                                }
                                written.extend(skipped);
                                label.into_iter().for_each(|l| self.arrive(l, written));
                            }
                            self.loops -= 1;
                            // What the loop declares ends with it.
                            let mut ended = Vec::new();
                            regions(&stmt.op).into_iter().for_each(|r| declared(r, &mut |t| ended.push(t)));
                            ended.iter().for_each(|t| {
                                written.remove(t);
                            });
                            if self.loops > 0 {
                                self.walked.insert(key, written.clone());
                            }
                        }
                    }
                }
                Op::Scope(s) => {
                    self.forward(&s.body, written);
                    self.arrive(s.label, written);
                }
                Op::Break(label) | Op::Continue(label) | Op::Leave(label) => {
                    self.left.entry(*label).or_default().extend(written.iter().copied());
                }
                _ => {}
            }
        }
    }

    /// Takes over what the jumps to `label` bring.
    fn arrive(&mut self, label: ptoc_ir::tile::Label, written: &mut Set) {
        written.extend(self.left.get(&label).into_iter().flatten());
    }

    /// `tile` is written by a statement that reads `sources` and writes `beside` as well.
    fn write(&mut self, stmt: &Stmt, tile: Tile, sources: &[Tile], beside: &[Tile], written: &Set) {
        let wanted = self.wanted.get(&std::ptr::from_ref(stmt)).cloned().unwrap_or_default();
        let mut later: Vec<Tile> = wanted.into_iter().filter(|t| *t != tile && written.contains(t)).collect();
        let mut victims = Vec::new();
        // Sources that die here are safe only if the instruction works element by element on the same positions. The
        // order in which a nest goes over its elements is nobody's promise, and a scratch operand is written at any
        // time.
        let in_place = |source: Tile| match &stmt.op {
            Op::Inst(inst) => self.same_positions(inst, tile, source),
            Op::Copy(_) | Op::Mma(_) => false,
            _ => true,
        };
        victims.extend(sources.iter().copied().filter(|&s| s != tile && !in_place(s)));
        // The results of one statement are wanted together, and its scratch operands are in use together.
        victims.extend(beside.iter().copied().filter(|&t| t != tile));
        later.retain(|t| !victims.contains(t));
        later.sort_unstable();
        victims.sort_unstable();
        victims.dedup();
        for (victim, now) in victims.into_iter().map(|t| (t, true)).chain(later.into_iter().map(|t| (t, false))) {
            if self.clash(tile, victim) {
                self.faults.push(PlanFault::Clobber(tile, victim, stmt.span));
            } else if self.unobservable(tile, victim) {
                let fault = PlanFault::Unobservable(tile, victim, stmt.span);
                match now {
                    true => self.faults.push(fault),
                    false => self.unobservable.push((std::ptr::from_ref(stmt), fault)),
                }
            }
        }
    }

    /// Of the tiles on the author's common bytes those are destroyed whose values are read before another write.
    fn destroyed(&mut self) {
        if self.unobservable.is_empty() {
            return;
        }
        let at = self.unobservable.iter().map(|(stmt, _)| *stmt).collect();
        let wanted = values::wanted_behind(self.kernel, &at);
        let found = std::mem::take(&mut self.unobservable).into_iter().filter(|(stmt, fault)| match fault {
            PlanFault::Unobservable(_, victim, _) => wanted.get(stmt).is_some_and(|w| w.contains(victim)),
            _ => true,
        });
        self.faults.extend(found.map(|(_, fault)| fault));
    }

    fn clash(&self, a: Tile, b: Tile) -> bool {
        let (x, y) = (&self.kernel.tiles[a], &self.kernel.tiles[b]);
        // At least one of them is the planner's.
        one_memory(self.target, x, y)
            && (x.addr == AddrKind::Auto || y.addr == AddrKind::Auto)
            && overlap(self.ranges.get(&a), self.ranges.get(&b))
    }

    /// Two tiles of the author's placing, of different types, on common bytes that cannot be seen under another type,
    /// or from another location.
    fn unobservable(&self, a: Tile, b: Tile) -> bool {
        let (x, y) = (&self.kernel.tiles[a], &self.kernel.tiles[b]);
        one_memory(self.target, x, y)
            && (!x.ty.loc.bytes_observable() || x.ty.loc != y.ty.loc)
            && x.ty != y.ty
            && overlap(self.ranges.get(&a), self.ranges.get(&b))
    }

    /// Whether `inst` reads each element of `source` only for the element of `target` at the same position, and those
    /// are the same bytes. Then it may write `target` over it.
    fn same_positions(&self, inst: &Inst, target: Tile, source: Tile) -> bool {
        let row = inst.instr.get();
        let tile = |o: &Operand| match o {
            Operand::Tile(t) => Some(*t),
            _ => None,
        };
        let written = inst.operands.iter().filter_map(tile).find(|t| t.tile == target);
        let Some(written) = written else { return false };
        let here = |k: usize, t: &TileRef| {
            let data = &self.kernel.tiles[t.tile];
            let whole = data.count == 1 && t.origin.is_none() && (t.rows, t.cols) == (data.ty.rows, data.ty.cols);
            // A row or column that is repeated is read again after the first results were written, unless there is
            // nothing to repeat it for.
            let repeated = matches!(row.shape, ShapeRule::RowExpand | ShapeRule::ColExpand)
                && k + 1 == row.operands.len()
                && t.valid != written.valid;
            whole && !repeated
        };
        let all = inst.operands.iter().enumerate().filter_map(|(k, o)| Some((k, tile(o)?)));
        let (x, y) = (&self.kernel.tiles[target].ty, &self.kernel.tiles[source].ty);
        row.in_place
            && !inst.scratch.iter().any(|t| t.tile == source)
            && all.filter(|(_, t)| t.tile == target || t.tile == source).all(|(k, t)| here(k, &t))
            && (x.rows, x.cols, x.order) == (y.rows, y.cols, y.order)
            && x.bytes() == y.bytes()
            && self.ranges.get(&target) == self.ranges.get(&source)
    }
}
