//! Which tiles hold a value that may still be read, where a write may end that value as well as a declaration.
//!
//! Text with addresses declares its tiles once, in front of all loops, and writes each anew in every iteration. A write
//! ends the value if it covers what is read behind it: all of the tile, or as much as is read, by the same numbers.

use ptoc_ir::tile::{Kernel, Label, Op, Operand, Region, Stmt, Tile, TileRef, Value};
use ptoc_isa::Sem;
use ptoc_placement::access::{AccessMode, inst_operands, is_whole, regions, tile_accesses};
use rustc_hash::{FxHashMap, FxHashSet};

/// A number of rows or columns: the same wherever it is a constant, else the value that is defined here.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Count {
    Const(i64),
    Of(Value),
}

/// A tile that may be read, and as much of it as is; `None` if that is not known.
type Wanted = FxHashSet<(Tile, Option<[Count; 2]>)>;

/// What may be read where a jump of this label arrives.
struct Exit {
    label: Label,
    on_break: Wanted,
    on_continue: Wanted,
}

/// The tiles that may be read behind each of the statements in `at`, by their addresses in the (immutable) program.
pub(super) fn wanted_behind(kernel: &Kernel, at: &FxHashSet<*const Stmt>) -> FxHashMap<*const Stmt, FxHashSet<Tile>> {
    let mut constants = FxHashMap::default();
    note_constants(&kernel.prologue, &mut constants);
    note_constants(&kernel.body, &mut constants);
    let mut flow =
        Flow { kernel, constants, at, found: FxHashMap::default(), exits: Vec::new(), again: FxHashMap::default() };
    flow.backward(&kernel.body, Wanted::default());
    flow.found
}

fn note_constants(region: &Region, found: &mut FxHashMap<Value, i64>) {
    for stmt in region {
        if let Op::Const { dst, value } = &stmt.op {
            found.extend(value.as_index().map(|n| (*dst, n)));
        }
        stmt.op.regions().for_each(|r| note_constants(r, found));
    }
}

struct Flow<'k> {
    kernel: &'k Kernel,
    constants: FxHashMap<Value, i64>,
    at: &'k FxHashSet<*const Stmt>,
    found: FxHashMap<*const Stmt, FxHashSet<Tile>>,
    exits: Vec<Exit>,
    /// What the end of each loop was found to want; seen from a loop around it, it wants no less later.
    again: FxHashMap<Label, Wanted>,
}

impl Flow<'_> {
    fn counts(&self, r: &TileRef) -> [Count; 2] {
        [r.valid.0, r.valid.1].map(|v| self.constants.get(&v).map_or(Count::Of(v), |n| Count::Const(*n)))
    }

    /// Takes out what a write of an instruction ends.
    fn end(&self, stmt: &Stmt, wanted: &mut Wanted) {
        let Op::Inst(inst) = &stmt.op else { return };
        // These may leave elements of their destination as they were.
        if matches!(inst.instr.get().sem, Sem::ScatterTo | Sem::Scatter | Sem::Fixpipe(_) | Sem::Named(_)) {
            return;
        }
        for (access, operand) in inst_operands(inst) {
            let (AccessMode::Write, Operand::Tile(r)) = (access, operand) else { continue };
            if !is_whole(self.kernel, r) {
                continue;
            }
            let ty = &self.kernel.tiles[r.tile].ty;
            let (all, own) = ([ty.rows, ty.cols].map(|n| Count::Const(i64::from(n))), self.counts(r));
            wanted.retain(|(tile, read)| *tile != r.tile || (own != all && *read != Some(own)));
        }
    }

    fn backward(&mut self, region: &[Stmt], after: Wanted) -> Wanted {
        let mut wanted = after;
        for stmt in region.iter().rev() {
            ptoc_diagnostics::work(1 + wanted.len());
            let key = std::ptr::from_ref(stmt);
            if self.at.contains(&key) {
                self.found.entry(key).or_default().extend(wanted.iter().map(|(tile, _)| *tile));
            }
            self.end(stmt, &mut wanted);
            for (access, r) in tile_accesses(self.kernel, stmt) {
                if access == AccessMode::Read {
                    let read = is_whole(self.kernel, &r).then(|| self.counts(&r));
                    wanted.insert((r.tile, read));
                }
            }
            wanted = self.before(stmt, wanted);
            if let Some(value) = stmt.op.def() {
                wanted = other(wanted, value);
            }
        }
        wanted
    }

    fn before(&mut self, stmt: &Stmt, mut wanted: Wanted) -> Wanted {
        match &stmt.op {
            Op::Alloc { tile } => {
                wanted.retain(|(t, _)| t != tile);
                wanted
            }
            Op::If(_) => {
                let branches = regions(&stmt.op).into_iter().map(|r| self.backward(r, wanted.clone()));
                branches.fold(Wanted::default(), |mut all, one| {
                    all.extend(one);
                    all
                })
            }
            Op::Scope(s) => {
                let on_break = wanted.clone();
                self.exits.push(Exit { label: s.label, on_break, on_continue: Wanted::default() });
                let out = self.backward(&s.body, wanted);
                self.exits.pop();
                out
            }
            Op::For(f) => self.repeat(f.label, wanted, |flow, again| other(flow.backward(&f.body, again), f.index)),
            Op::While(w) => {
                let after = wanted.clone();
                self.repeat(w.label, wanted, |flow, again| {
                    let mut body = flow.backward(&w.body, again);
                    body.extend(after.iter().copied());
                    flow.backward(&w.head, body)
                })
            }
            Op::Break(label) | Op::Leave(label) => self.exit(*label, |e| &e.on_break),
            Op::Continue(label) => self.exit(*label, |e| &e.on_continue),
            _ => wanted,
        }
    }

    fn exit(&self, label: Label, of: impl Fn(&Exit) -> &Wanted) -> Wanted {
        self.exits.iter().rev().find(|e| e.label == label).map(|e| of(e).clone()).unwrap_or_default()
    }

    /// A loop: whatever its start wants, its end wants too, until that adds nothing.
    fn repeat(&mut self, label: Label, after: Wanted, mut body: impl FnMut(&mut Self, Wanted) -> Wanted) -> Wanted {
        let mut again = after.clone();
        again.extend(self.again.get(&label).into_iter().flatten());
        loop {
            self.exits.push(Exit { label, on_break: after.clone(), on_continue: again.clone() });
            let start = body(self, again.clone());
            self.exits.pop();
            let before = again.len();
            again.extend(start);
            if again.len() == before {
                self.again.insert(label, again.clone());
                return again;
            }
        }
    }
}

/// In front of its definition a number is another one.
fn other(wanted: Wanted, value: Value) -> Wanted {
    let is = |count: &Count| *count == Count::Of(value);
    wanted.into_iter().map(|(tile, read)| (tile, read.filter(|r| !r.iter().any(is)))).collect()
}
