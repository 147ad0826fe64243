//! Liveness of values: where a tile holds a value that may still be read.
//!
//! [`crate::liveness`] says for how long a tile keeps its bytes: an interval, from the first write to the last use,
//! with every loop that may carry the value. This says at which of those points there is anything in it: the classic
//! backward flow of wanted values. The difference is space that is held for nothing, which the map shows and the
//! repairs of a capacity error try to free. Nothing is placed by it.

use crate::access::{AccessMode, is_whole, regions, tile_accesses};
use crate::liveness::{Interval, Point};
use cranelift_entity::SecondaryMap;
use ptoc_ir::tile::{Kernel, Label, Op, Stmt, Tile, TileRef, Value};
use rustc_hash::FxHashMap;

/// When a tile is touched, and when it holds something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holding {
    /// Runs of points at which it holds a wanted value or is being written, in order, apart from each other.
    pub live: Vec<Interval>,
    /// The points that write it, in program order.
    pub writes: Vec<Point>,
    /// The points that read it, in program order.
    pub reads: Vec<Point>,
}

/// Follows the values of every tile of `kernel`. Points are those of [`crate::liveness`].
pub fn holding(kernel: &Kernel) -> SecondaryMap<Tile, Holding> {
    let mut out: SecondaryMap<Tile, Holding> = SecondaryMap::new();
    let (mut touched, mut points) = (Vec::new(), 0);
    note_touched(kernel, &kernel.body, &mut SecondaryMap::new(), &mut touched, &mut points);
    // Some tiles after the others: what is held at each point takes a bit for each tile.
    for tiles in touched.chunks((BITS / points.max(1)).max(1024)) {
        let mut numbers: SecondaryMap<Tile, Option<u32>> = SecondaryMap::new();
        (0..).zip(tiles).for_each(|(n, t)| numbers[*t] = Some(n));
        let mut flow = ValueLiveness {
            kernel,
            numbers,
            points: FxHashMap::default(),
            constants: FxHashMap::default(),
            shapes: SecondaryMap::new(),
            at: Vec::new(),
            exits: Vec::new(),
            again: FxHashMap::default(),
        };
        flow.note_constants(&kernel.prologue);
        flow.note_constants(&kernel.body);
        flow.number(&kernel.body, &mut out);
        let words = tiles.len().div_ceil(64);
        flow.at.iter_mut().for_each(|set| set.resize(words, 0));
        flow.backward(&kernel.body, vec![0; words]);
        runs(tiles, &flow.at, &mut out);
    }
    out
}

/// Bits for tiles that are followed together, at all points.
const BITS: usize = 1 << 28;

/// The tiles that something touches, each once, and the number of points.
fn note_touched(
    kernel: &Kernel,
    region: &[Stmt],
    seen: &mut SecondaryMap<Tile, bool>,
    out: &mut Vec<Tile>,
    points: &mut usize,
) {
    for stmt in region {
        *points += 2;
        for (_, r) in tile_accesses(kernel, stmt) {
            if !std::mem::replace(&mut seen[r.tile], true) {
                out.push(r.tile);
            }
        }
        regions(&stmt.op).into_iter().for_each(|r| note_touched(kernel, r, seen, out, points));
    }
}

/// Runs of points from what is held at each of these tiles.
fn runs(tiles: &[Tile], at: &[Set], out: &mut SecondaryMap<Tile, Holding>) {
    let none = vec![0; at.first().map_or(0, Vec::len)];
    let mut before = &none;
    for (point, now) in at.iter().chain([&none]).enumerate() {
        for (word, (was, is)) in before.iter().zip(now).enumerate() {
            let mut changed = was ^ is;
            while changed != 0 {
                let bit = changed.trailing_zeros() as usize;
                changed &= changed - 1;
                let live = &mut out[tiles[64 * word + bit]].live;
                let point = point as Point;
                match is >> bit & 1 {
                    1 => live.push(Interval { start: point, end: point }),
                    _ => live.last_mut().into_iter().for_each(|run| run.end = point - 1),
                }
            }
        }
        before = now;
    }
}

/// Tiles, one bit each.
type Set = Vec<u64>;

fn join(set: &mut Set, other: &Set) {
    set.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
}

/// The valid shapes with which a tile is read.
#[derive(Clone, Copy, Default, PartialEq)]
enum Shapes {
    #[default]
    None,
    One((Value, Value)),
    Several,
}

/// What is wanted where `break` or `leave`, and `continue`, of a label arrive.
struct Exit {
    label: Label,
    on_break: Set,
    on_continue: Set,
}

struct ValueLiveness<'k> {
    kernel: &'k Kernel,
    /// Numbers of the tiles that are followed.
    numbers: SecondaryMap<Tile, Option<u32>>,
    /// Entry and exit of each statement, by its address in the (immutable) program.
    points: FxHashMap<*const Stmt, (Point, Point)>,
    constants: FxHashMap<Value, i64>,
    shapes: SecondaryMap<Tile, Shapes>,
    /// What is held at each point.
    at: Vec<Set>,
    exits: Vec<Exit>,
    /// What the end of each loop was found to want; seen from a loop around it, it wants no less later.
    again: FxHashMap<Label, Set>,
}

impl ValueLiveness<'_> {
    /// The word and the bit of a tile that is followed.
    fn bit(&self, tile: Tile) -> Option<(usize, u64)> {
        let n = self.numbers[tile]? as usize;
        Some((n / 64, 1 << (n % 64)))
    }

    fn add(&self, set: &mut Set, tile: Tile) {
        if let Some((word, bit)) = self.bit(tile) {
            set[word] |= bit;
        }
    }

    fn remove(&self, set: &mut Set, tile: Tile) {
        if let Some((word, bit)) = self.bit(tile) {
            set[word] &= !bit;
        }
    }

    /// What a statement does to tiles that are followed.
    fn accesses(&self, stmt: &Stmt) -> Vec<(AccessMode, TileRef)> {
        let mut all = tile_accesses(self.kernel, stmt);
        all.retain(|(_, r)| self.bit(r.tile).is_some());
        all
    }

    fn note_constants(&mut self, region: &[Stmt]) {
        for stmt in region {
            if let Op::Const { dst, value } = &stmt.op
                && let Some(n) = value.as_index()
            {
                self.constants.insert(*dst, n);
            }
            regions(&stmt.op).into_iter().for_each(|nested| self.note_constants(nested));
        }
    }

    /// Numbers the statements as liveness does, and notes who touches what.
    fn number(&mut self, region: &[Stmt], out: &mut SecondaryMap<Tile, Holding>) {
        for stmt in region {
            let entry = self.at.len() as Point;
            self.at.push(Set::new());
            for (access, r) in self.accesses(stmt) {
                let list = match access {
                    AccessMode::Read => &mut out[r.tile].reads,
                    AccessMode::Write => &mut out[r.tile].writes,
                };
                if list.last() != Some(&entry) {
                    list.push(entry);
                }
                if access == AccessMode::Read {
                    let whole = is_whole(self.kernel, &r);
                    let shapes = &mut self.shapes[r.tile];
                    *shapes = match *shapes {
                        Shapes::None if whole => Shapes::One(r.valid),
                        Shapes::One(shape) if whole && shape == r.valid => Shapes::One(shape),
                        _ => Shapes::Several,
                    };
                }
            }
            let nested = regions(&stmt.op);
            let mut exit = entry;
            if !nested.is_empty() {
                for region in nested {
                    self.number(region, out);
                }
                exit = self.at.len() as Point;
                self.at.push(Set::new());
            }
            self.points.insert(std::ptr::from_ref(stmt), (entry, exit));
        }
    }

    /// Whether a write through this window leaves nothing of the old value that anyone reads.
    fn replaces(&self, r: &TileRef) -> bool {
        let data = &self.kernel.tiles[r.tile];
        let is = |value: Value, n: u32| self.constants.get(&value) == Some(&i64::from(n));
        let full = is(r.valid.0, data.ty.rows) && is(r.valid.1, data.ty.cols);
        is_whole(self.kernel, r) && (full || self.shapes[r.tile] == Shapes::One(r.valid))
    }

    fn backward(&mut self, region: &[Stmt], after: Set) -> Set {
        let mut live = after;
        for stmt in region.iter().rev() {
            let (entry, exit) = self.points[&std::ptr::from_ref(stmt)];
            ptoc_diagnostics::work(1 + live.len());
            join(&mut self.at[exit as usize], &live);
            live = self.before(stmt, live);
            if entry != exit {
                join(&mut self.at[entry as usize], &live);
            }
            for (_, r) in self.accesses(stmt) {
                if let Some((word, bit)) = self.bit(r.tile) {
                    self.at[entry as usize][word] |= bit;
                }
            }
        }
        live
    }

    fn before(&mut self, stmt: &Stmt, mut live: Set) -> Set {
        let accesses = self.accesses(stmt);
        for (access, r) in &accesses {
            if *access == AccessMode::Write && self.replaces(r) {
                self.remove(&mut live, r.tile);
            }
        }
        for (access, r) in &accesses {
            if *access == AccessMode::Read {
                self.add(&mut live, r.tile);
            }
        }
        match &stmt.op {
            Op::Alloc { tile } => {
                self.remove(&mut live, *tile);
                live
            }
            Op::If(i) => {
                let mut out = self.backward(&i.then, live.clone());
                join(&mut out, &self.backward(&i.els, live));
                out
            }
            Op::Scope(s) => {
                let none = vec![0; live.len()];
                self.exits.push(Exit { label: s.label, on_break: live.clone(), on_continue: none });
                let out = self.backward(&s.body, live);
                self.exits.pop();
                out
            }
            Op::For(f) => self.repeat(f.label, live, |flow, again| flow.backward(&f.body, again)),
            Op::While(w) => {
                let after = live.clone();
                self.repeat(w.label, live, |flow, again| {
                    let mut body = flow.backward(&w.body, again);
                    join(&mut body, &after);
                    flow.backward(&w.head, body)
                })
            }
            Op::Break(label) | Op::Leave(label) => self.exit(*label, |e| &e.on_break).unwrap_or(live),
            Op::Continue(label) => self.exit(*label, |e| &e.on_continue).unwrap_or(live),
            _ => live,
        }
    }

    fn exit(&self, label: Label, which: impl Fn(&Exit) -> &Set) -> Option<Set> {
        self.exits.iter().rev().find(|e| e.label == label).map(|e| which(e).clone())
    }

    /// A loop: what its start wants, its end wants too, until that adds nothing.
    fn repeat(&mut self, label: Label, after: Set, mut body: impl FnMut(&mut Self, Set) -> Set) -> Set {
        let mut again = after.clone();
        if let Some(known) = self.again.get(&label) {
            join(&mut again, known);
        }
        loop {
            self.exits.push(Exit { label, on_break: after.clone(), on_continue: again.clone() });
            let start = body(self, again.clone());
            self.exits.pop();
            let before = again.clone();
            join(&mut again, &start);
            if again == before {
                self.again.insert(label, again.clone());
                return again;
            }
        }
    }
}
