//! Checks a placement against the program, independently of the planner: no live intervals, no numbering, but the
//! two classic data-flow facts on the structured program. A tile **holds a value** at a place if it may have been
//! written since its declaration and may be read before its next one. A plan is sound if no write destroys bytes of a
//! value that is still wanted, and if every address is aligned and inside its memory.
//!
//! What the author placed (`TASSIGN` with constants) may overlap as it likes in Vec and Mat. In the other memories bytes
//! have no meaning under another type, so there a write that destroys a tile of another type is the author's mistake.

use crate::access::{Access, is_broadcast, is_whole, regions, tile_accesses};
use crate::memories;
use crate::placement::Placement;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{AddrKind, Inst, Kernel, Op, Operand, Stmt, Tile, TileData};
use ptoc_isa::Target;
use rustc_hash::{FxHashMap, FxHashSet};

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A tile has no address although something touches it, or fewer addresses than elements.
    Unplaced(Tile),
    /// A tile's bytes end past its memory.
    Outside(Tile, u64),
    /// A tile starts at an address that the memory cannot take.
    Unaligned(Tile, u64),
    /// Writing the first tile at `span` destroys the second one, which is still wanted.
    Clobber(Tile, Tile, Span),
    /// The author gave both tiles the same bytes of a memory whose contents have no meaning under another type, and
    /// writing the first at `span` destroys the second.
    Unobservable(Tile, Tile, Span),
}

impl Fault {
    /// One sentence.
    pub fn describe(&self, kernel: &Kernel) -> String {
        let name = |t: &Tile| format!("`{}` ({t})", kernel.tiles[*t].name);
        match self {
            Fault::Unplaced(t) => format!("the plan has no address for tile {}", name(t)),
            Fault::Outside(t, end) => {
                format!("the plan puts the end of tile {} at {end:#x}, outside its memory", name(t))
            }
            Fault::Unaligned(t, at) => format!("the plan puts tile {} at {at:#x}, which is not aligned", name(t)),
            Fault::Unobservable(a, b, _) => {
                format!("writing {} destroys {}, which may still be read", name(a), name(b))
            }
            Fault::Clobber(a, b, _) => {
                format!("the plan gives tile {} bytes of tile {}, which is still needed", name(a), name(b))
            }
        }
    }

    /// The report: whose mistake it is, where, and what helps until it is mended.
    pub fn diagnostic(&self, kernel: &Kernel) -> Diagnostic {
        if let Fault::Unobservable(a, b, span) = self {
            let (a, b) = (&kernel.tiles[*a], &kernel.tiles[*b]);
            let message = format!("writing `{}` destroys `{}`, which may still be read", a.name, b.name);
            return Diagnostic::error(codes::UNOBSERVABLE_ALIAS, *span, message)
                .with_label(format!("writes `{}`", a.name))
                .with_secondary(a.span, format!("`{}` is {}", a.name, a.ty))
                .with_secondary(b.span, format!("`{}` is {}, on the same bytes", b.name, b.ty))
                .with_note(format!("bytes of {} mean nothing to a tile of another type", a.ty.loc))
                .with_help("move one of them, or finish with the first before the second is written");
        }
        let (tile, span) = match self {
            Fault::Unplaced(t) | Fault::Outside(t, _) | Fault::Unaligned(t, _) => (*t, kernel.tiles[*t].span),
            Fault::Clobber(t, _, span) | Fault::Unobservable(t, _, span) => (*t, *span),
        };
        let data = &kernel.tiles[tile];
        let workaround = match data.hidden {
            true => "until that is mended: give this result a tile of its own with `tile r: ..;`, and an address with `TASSIGN(r, ..)`".to_owned(),
            false => format!("until that is mended: give `{0}` an address with `TASSIGN({0}, ..)`", data.name),
        };
        Diagnostic::error(codes::PLAN_FAULT, span, format!("a bug of ptoc: {}", self.describe(kernel)))
            .with_label("the plan is wrong here")
            .with_note("the program is not at fault: ptoc checks its own plans and refuses this one; please report it")
            .with_help(workaround)
    }
}

type Set = FxHashSet<Tile>;
type Range = (u64, u64);

/// Verifies `placement`; the faults found, none if the plan is sound.
pub fn check(kernel: &Kernel, placement: &Placement, target: &Target) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut ranges: FxHashMap<Tile, Vec<Range>> = FxHashMap::default();
    let mut touched = Set::default();
    note_touched(kernel, &kernel.body, &mut touched);
    for (tile, data) in &kernel.tiles {
        // A tile that is only declared has an address and no bytes.
        if data.addr == AddrKind::Dynamic || (data.addr == AddrKind::Auto && !touched.contains(&tile)) {
            continue;
        }
        let starts = &placement.offsets[tile];
        if starts.len() != data.count as usize {
            faults.push(Fault::Unplaced(tile));
            continue;
        }
        if data.addr != AddrKind::Auto {
            // The author's addresses were checked where they were written (SA-0353, SA-0354).
            ranges.insert(tile, starts.iter().map(|&s| (s, s.saturating_add(data.ty.bytes()))).collect());
            continue;
        }
        let bytes = occupied(data, starts, memories::align(target, data.ty.loc));
        for &(start, end) in &bytes {
            if end > memories::capacity(target, data.ty.loc) {
                faults.push(Fault::Outside(tile, end));
            }
            if start % memories::align(target, data.ty.loc) != 0 {
                faults.push(Fault::Unaligned(tile, start));
            }
        }
        ranges.insert(tile, bytes);
    }
    let mut flow = Flow { kernel, ranges, faults, wanted: FxHashMap::default(), exits: Vec::new() };
    flow.backward(&kernel.body, Set::default());
    flow.faults.extend(pipelined_overlaps(kernel, &flow.ranges));
    let mut written = Set::default();
    flow.forward(&kernel.body, &mut written);
    flow.faults.dedup();
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

/// Two tiles of one pipeline that both have copies are in flight together whatever the order of their statements.
fn pipelined_overlaps(kernel: &Kernel, ranges: &FxHashMap<Tile, Vec<Range>>) -> Vec<Fault> {
    fn collect(region: &[Stmt], pipelines: &mut Vec<Vec<(Tile, Span)>>, inside: Option<usize>) {
        for stmt in region {
            if let (Op::Alloc { tile }, Some(p)) = (&stmt.op, inside) {
                pipelines[p].push((*tile, stmt.span));
            }
            let mut inner = inside;
            if let Op::For(f) = &stmt.op
                && f.stages > 1
            {
                pipelines.push(Vec::new());
                inner = Some(pipelines.len() - 1);
            }
            for region in regions(&stmt.op) {
                collect(region, pipelines, inner);
            }
        }
    }
    let mut pipelines = Vec::new();
    collect(&kernel.body, &mut pipelines, None);
    let mut faults = Vec::new();
    for tiles in pipelines {
        let staged: Vec<_> = tiles
            .into_iter()
            .filter(|(t, _)| kernel.tiles[*t].stages > 1 && kernel.tiles[*t].addr == AddrKind::Auto)
            .collect();
        for (i, &(a, span)) in staged.iter().enumerate() {
            for &(b, _) in &staged[i + 1..] {
                let same_memory = kernel.tiles[a].ty.loc == kernel.tiles[b].ty.loc;
                if a != b && same_memory && overlap(ranges.get(&a), ranges.get(&b)) {
                    faults.push(Fault::Clobber(a, b, span));
                }
            }
        }
    }
    faults
}

fn overlap(a: Option<&Vec<Range>>, b: Option<&Vec<Range>>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    a.iter().any(|x| b.iter().any(|y| x.0 < y.1 && y.0 < x.1))
}

/// The tiles that may still be read where a `break`, `continue` or `leave` of this label arrives.
struct Exit {
    label: ptoc_ir::tile::Label,
    on_break: Set,
    on_continue: Set,
}

struct Flow<'k> {
    kernel: &'k Kernel,
    ranges: FxHashMap<Tile, Vec<Range>>,
    faults: Vec<Fault>,
    /// What may be read after each statement, by its address in the (immutable) program.
    wanted: FxHashMap<*const Stmt, Set>,
    exits: Vec<Exit>,
}

impl Flow<'_> {
    /// What may be read before `region`, given what may be read `after` it. Notes the set after each statement.
    fn backward(&mut self, region: &[Stmt], after: Set) -> Set {
        let mut live = after;
        for stmt in region.iter().rev() {
            self.wanted.entry(std::ptr::from_ref(stmt)).or_default().extend(live.iter().copied());
            live = self.before(stmt, live);
        }
        live
    }

    fn before(&mut self, stmt: &Stmt, mut live: Set) -> Set {
        for (access, tile) in tile_accesses(self.kernel, stmt) {
            if access == Access::Read {
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
        loop {
            self.exits.push(Exit { label, on_break: after.clone(), on_continue: again.clone() });
            let start = body(self, again.clone());
            self.exits.pop();
            let before = again.len();
            again.extend(start);
            if again.len() == before {
                return again;
            }
        }
    }

    /// Walks with the tiles that may have been written; at each write, asks what it destroys. Jumps are taken as if
    /// they fell through, which only adds to the set.
    fn forward(&mut self, region: &[Stmt], written: &mut Set) {
        for stmt in region {
            if let Op::Alloc { tile } = &stmt.op {
                written.remove(tile);
            }
            for (access, target) in tile_accesses(self.kernel, stmt) {
                if access == Access::Write {
                    self.write(stmt, target.tile, written);
                }
            }
            for (access, target) in tile_accesses(self.kernel, stmt) {
                if access == Access::Write {
                    written.insert(target.tile);
                }
            }
            match &stmt.op {
                Op::If(i) => {
                    let mut other = written.clone();
                    self.forward(&i.then, written);
                    self.forward(&i.els, &mut other);
                    written.extend(other);
                }
                // Twice: the second time with what the first left behind.
                Op::For(_) | Op::While(_) => {
                    for _ in 0..2 {
                        let skipped = written.clone();
                        for region in regions(&stmt.op) {
                            self.forward(region, written);
                        }
                        written.extend(skipped);
                    }
                }
                Op::Scope(s) => self.forward(&s.body, written),
                _ => {}
            }
        }
    }

    fn write(&mut self, stmt: &Stmt, tile: Tile, written: &Set) {
        let wanted = self.wanted.get(&std::ptr::from_ref(stmt)).cloned().unwrap_or_default();
        let mut victims: Vec<Tile> = wanted.into_iter().filter(|t| *t != tile && written.contains(t)).collect();
        // Sources that die here are safe only if the instruction works element by element on the same positions.
        if let Op::Inst(inst) = &stmt.op {
            let sources = tile_accesses(self.kernel, stmt).into_iter().filter(|(a, _)| *a == Access::Read);
            victims.extend(sources.map(|(_, r)| r.tile).filter(|&s| s != tile && !self.same_positions(inst, tile, s)));
        }
        // The order in which a nest goes over its elements is nobody's promise.
        if matches!(stmt.op, Op::Copy(_) | Op::Mma(_)) {
            let sources = tile_accesses(self.kernel, stmt).into_iter().filter(|(a, _)| *a == Access::Read);
            victims.extend(sources.map(|(_, r)| r.tile).filter(|&s| s != tile));
        }
        victims.sort_unstable();
        victims.dedup();
        for victim in victims {
            if self.clash(tile, victim) {
                self.faults.push(Fault::Clobber(tile, victim, stmt.span));
            } else if self.unobservable(tile, victim) {
                self.faults.push(Fault::Unobservable(tile, victim, stmt.span));
            }
        }
    }

    fn clash(&self, a: Tile, b: Tile) -> bool {
        let (x, y) = (&self.kernel.tiles[a], &self.kernel.tiles[b]);
        // At least one of them is the planner's.
        x.ty.loc == y.ty.loc
            && (x.addr == AddrKind::Auto || y.addr == AddrKind::Auto)
            && overlap(self.ranges.get(&a), self.ranges.get(&b))
    }

    /// Two tiles of the author's placing, of different types, on common bytes that cannot be seen under another type.
    fn unobservable(&self, a: Tile, b: Tile) -> bool {
        let (x, y) = (&self.kernel.tiles[a], &self.kernel.tiles[b]);
        x.ty.loc == y.ty.loc
            && !x.ty.loc.bytes_observable()
            && x.ty != y.ty
            && overlap(self.ranges.get(&a), self.ranges.get(&b))
    }

    fn same_positions(&self, inst: &Inst, a: Tile, b: Tile) -> bool {
        let (x, y) = (&self.kernel.tiles[a], &self.kernel.tiles[b]);
        let whole = inst.operands.iter().enumerate().all(|(k, o)| match o {
            Operand::Tile(t) if t.tile == a || t.tile == b => is_whole(self.kernel, t) && !is_broadcast(inst, k),
            _ => true,
        });
        inst.instr.get().in_place
            && whole
            && (x.ty.rows, x.ty.cols, x.ty.order) == (y.ty.rows, y.ty.cols, y.ty.order)
            && x.ty.bytes() == y.ty.bytes()
            && self.ranges.get(&a) == self.ranges.get(&b)
    }
}
