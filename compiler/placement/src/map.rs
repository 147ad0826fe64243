//! What lives where and when: the data behind `ptoc mem`, derived from a kernel and its plan alone.
//!
//! Points are the numbers of [`crate::liveness`], which is computed anew here: passes after placement insert
//! statements.

use crate::address_bounds;
use crate::liveness::{Interval, Liveness, LoopRange, Point, for_each_point, liveness};
use crate::placement;
use crate::placement::{Placement, footprint, pitch};
use crate::value_liveness::{Holding, holding};
use cranelift_entity::SecondaryMap;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{AddrKind, EventKind, Kernel, Tile, TileData, Trail, Value};
use ptoc_isa::{Loc, Target, text};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The memories of a kernel.
#[derive(Clone, Debug)]
pub struct MemoryMap {
    /// The kernel.
    pub kernel: SmolStr,
    /// Its name in the source.
    pub span: Span,
    /// The target.
    pub target: SmolStr,
    /// Source of each point.
    pub points: Vec<Span>,
    /// What each point was before the passes.
    pub origins: Vec<Origin>,
    /// The call in the kernel's own text that brought a point here, where it is in a function. For whoever knows the
    /// source's scopes to fill in; empty otherwise.
    pub calls: Vec<Option<Span>>,
    /// The loops.
    pub loops: Vec<LoopRange>,
    /// The memories that tiles live in, in the order of [`Loc::ALL`].
    pub memories: Vec<MappedMemory>,
    /// Transaction barriers. They take words on the chip, beside the tiles; a flag is the hardware's own.
    pub barriers: Vec<MappedBarrier>,
    /// Registers of a thread that hold tiles at once, and as many as may, where tiles are fragments on a GPU. For
    /// whoever generates its code to fill in.
    pub registers: Option<[u32; 2]>,
}

/// A transaction barrier, or an array of them.
#[derive(Clone, Debug)]
pub struct MappedBarrier {
    /// The source's name.
    pub name: SmolStr,
    /// Elements.
    pub count: u32,
}

impl MappedBarrier {
    /// Bytes of a barrier: phase, pending arrivals and pending bytes are one word.
    const WORD: u64 = 8;

    /// Bytes of all elements.
    pub fn bytes(&self) -> u64 {
        Self::WORD * u64::from(self.count)
    }
}

/// One memory.
#[derive(Clone, Debug)]
pub struct MappedMemory {
    /// The locations whose tiles lie in it: several of a pool, none of a program's workspace.
    pub locations: Vec<Loc>,
    /// The hardware's name (`UB`), or that of the pool; that of the location if it has none.
    pub name: String,
    /// A pool: several locations share it.
    pub pool: bool,
    /// Bytes that the target has; 0 if it has no such memory.
    pub capacity: u64,
    /// The capacity was set for this compilation.
    pub overridden: bool,
    /// One past the last byte that a tile occupies; of a tile with run-time addresses, that it may.
    pub used: u64,
    /// There are run-time addresses that nothing bounds: they are not in `used`.
    pub open: bool,
    /// Most bytes held at one point. Tiles with run-time addresses count as if they met no other one.
    pub peak: u64,
    /// A point where that many are held.
    pub peak_point: Point,
    /// Bytes held at each point.
    pub held: Vec<u64>,
    /// The tiles by address, then by time; those with run-time addresses last.
    pub tiles: Vec<MappedTile>,
}

/// Who chose an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chosen {
    /// The planner.
    Auto,
    /// The planner, in a plan that the author wrote down.
    Pinned,
    /// The author, as a constant.
    Fixed,
    /// The author, while the kernel runs.
    RunTime,
}

/// One tile, with all its elements and copies.
#[derive(Clone, Debug)]
pub struct MappedTile {
    /// Which.
    pub tile: Tile,
    /// Its name, or what a hidden tile is for (`TMULS result`).
    pub name: SmolStr,
    /// Made by the compiler for the expression at `span`.
    pub hidden: bool,
    /// The declaration, or the expression.
    pub span: Span,
    /// Type of an element, as text.
    pub ty: SmolStr,
    /// Bytes of an element.
    pub each: u64,
    /// Elements of the array; 1 for a tile.
    pub count: u32,
    /// Copies in a pipeline.
    pub stages: u32,
    /// Bytes in all.
    pub bytes: u64,
    /// Who chose the address.
    pub chosen: Chosen,
    /// First byte and one past the last of every element of every copy, in order; empty for run-time addresses, and for
    /// a tile that nothing touches.
    pub ranges: Vec<(u64, u64)>,
    /// When its bytes are taken; `None` if nothing touches it.
    pub held: Option<Interval>,
    /// When it holds a value that may still be read, or is written.
    pub live: Vec<Interval>,
    /// When its bytes are taken for nothing.
    pub dead: Vec<Interval>,
    /// The first point that writes it.
    pub first_write: Option<Point>,
    /// The last point that reads it.
    pub last_read: Option<Point>,
    /// Tiles with common bytes, by their place in the memory's list; of many the first [`SHARERS`].
    pub shares: Vec<usize>,
}

/// What a point is in the kernel as it was elaborated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The statement that defines this value.
    Value(Value),
    /// A statement of [`ptoc_ir::tile::Trail::statements`]: the next one of its span.
    Listed,
    /// A pass added it, or it is the end of a statement.
    Other,
}

fn origins(kernel: &Kernel, points: usize) -> Vec<Origin> {
    let mut out = vec![Origin::Other; points];
    for_each_point(kernel, &mut |point, stmt| {
        out[point as usize] = match stmt.op.def() {
            Some(value) => Origin::Value(value),
            None if Trail::lists(&stmt.op) => Origin::Listed,
            None => Origin::Other,
        };
    });
    out
}

impl MemoryMap {
    /// The map of `kernel` with the addresses of `placement`.
    pub fn new(kernel: &Kernel, placement: &Placement, target: &Target) -> MemoryMap {
        let (live, values, ends) = (liveness(kernel), holding(kernel), address_bounds::ends(kernel));
        let known = (&live, &values, &ends);
        let memories = Loc::ALL.into_iter().filter_map(|loc| memory(kernel, placement, target, loc, known));
        let barriers = kernel.events.values().filter(|e| matches!(e.kind, EventKind::Barrier { .. }));
        MemoryMap {
            kernel: kernel.name.clone(),
            span: kernel.span,
            target: target.name.as_str().into(),
            memories: memories.collect(),
            barriers: barriers.map(|e| MappedBarrier { name: e.name.clone(), count: e.count }).collect(),
            registers: None,
            origins: origins(kernel, live.spans.len()),
            calls: Vec::new(),
            points: live.spans,
            loops: live.loops,
        }
    }

    /// Every memory holds its tiles.
    pub fn fits(&self) -> bool {
        self.memories.iter().all(MappedMemory::fits)
    }

    /// Bytes of all transaction barriers.
    pub fn barrier_bytes(&self) -> u64 {
        self.barriers.iter().map(MappedBarrier::bytes).sum()
    }
}

impl MappedMemory {
    /// The workspace of a program, with its tensors in place of tiles; `points` are the program's steps. The capacity
    /// is what they would take without sharing.
    pub fn workspace(mut tiles: Vec<MappedTile>, used: u64, separate: u64, points: &[Span]) -> MappedMemory {
        arrange(&mut tiles);
        let held = occupied(&tiles, points.len());
        let (peak, peak_point) = peak(&held, &tiles, points);
        MappedMemory {
            locations: Vec::new(),
            name: "workspace".to_owned(),
            pool: true,
            capacity: separate,
            overridden: false,
            used,
            open: false,
            peak,
            peak_point,
            held,
            tiles,
        }
    }

    /// `UB (Vec)`, `smem (Mat and Vec)`; the location alone where the memory has its name.
    pub fn title(&self) -> String {
        match &self.locations[..] {
            [] => self.name.clone(),
            [loc] if self.name == loc.name() => self.name.clone(),
            all => format!("{} ({})", self.name, text::list(all)),
        }
    }

    /// Whether the tiles end inside it.
    pub fn fits(&self) -> bool {
        self.used <= self.capacity
    }
}

impl MappedTile {
    /// Whether a byte of it lies past the memory's end.
    pub fn overflows(&self, capacity: u64) -> bool {
        self.ranges.iter().any(|r| r.1 > capacity)
    }
}

/// A plan that takes what it needs: memories that are too small are as large as their tiles want. `None` if not even
/// that has a plan.
pub fn plan_without_limit(kernel: &Kernel, target: &Target) -> Option<Placement> {
    let live = liveness(kernel);
    let mut target = target.clone();
    for _ in 0..2 * Loc::ALL.len() {
        match placement::plan_with(kernel, &live, &target, u32::MAX) {
            Ok(plan) => return Some(plan),
            Err(overflows) => {
                for o in overflows {
                    target = target.with_capacity(o.loc, o.needed.max(o.capacity));
                }
            }
        }
    }
    None
}

type Known<'a> = (&'a Liveness, &'a SecondaryMap<Tile, Holding>, &'a FxHashMap<Tile, Option<u64>>);

fn memory(
    kernel: &Kernel,
    placement: &Placement,
    target: &Target,
    loc: Loc,
    (live, values, ends): Known<'_>,
) -> Option<MappedMemory> {
    let (there, locations) = (target.memory(loc), target.sharing(loc));
    let (align, points) = (there.align.max(1), live.spans.len());
    let of_loc = kernel.tiles.iter().filter(|(_, data)| target.home(data.ty.loc) == loc);
    let mut tiles: Vec<MappedTile> = of_loc
        .map(|(tile, data)| mapped(tile, data, kernel.pin(tile).is_some(), align, placement, live, &values[tile]))
        .collect();
    if tiles.is_empty() {
        return None;
    }
    arrange(&mut tiles);
    let held = occupied(&tiles, points);
    let (peak, peak_point) = peak(&held, &tiles, &live.spans);
    let run_time = || tiles.iter().filter(|t| t.chosen == Chosen::RunTime).filter_map(|t| ends.get(&t.tile));
    // What runs past the end is refused when the kernel runs.
    let computed = run_time().flatten().map(|end| (*end).min(there.capacity));
    let used = tiles.iter().flat_map(|t| t.ranges.iter().map(|r| r.1)).chain(computed).max().unwrap_or(0);
    let open = used < there.capacity && run_time().any(Option::is_none);
    let name = match target.pool_of(loc) {
        Some(pool) => pool.name.clone(),
        None if there.name.is_empty() => loc.name().to_owned(),
        None => there.name.clone(),
    };
    let pool = target.pool_of(loc).is_some();
    let (capacity, overridden) = (there.capacity, there.overridden);
    Some(MappedMemory { locations, name, pool, capacity, overridden, used, open, peak, peak_point, held, tiles })
}

/// By address, then by time, with the tiles that share bytes.
fn arrange(tiles: &mut [MappedTile]) {
    let start = |t: &MappedTile| t.ranges.first().map_or(u64::MAX, |r| r.0);
    tiles.sort_by_key(|t| (start(t), t.held.map(|h| h.start), t.tile));
    let shared = sharers(tiles);
    tiles.iter_mut().zip(shared).for_each(|(t, s)| t.shares = s);
}

fn mapped(
    tile: Tile,
    data: &TileData,
    pinned: bool,
    align: u64,
    placement: &Placement,
    live: &Liveness,
    values: &Holding,
) -> MappedTile {
    let held = live.intervals[tile];
    let auto = data.addr == AddrKind::Auto;
    let chosen = match data.addr {
        AddrKind::Auto if pinned => Chosen::Pinned,
        AddrKind::Auto => Chosen::Auto,
        AddrKind::Fixed(_) => Chosen::Fixed,
        AddrKind::Dynamic => Chosen::RunTime,
    };
    let step = pitch(data, align).saturating_mul(u64::from(data.count));
    let copies = if auto { u64::from(data.stages) } else { 1 };
    let ranges = (0..copies).flat_map(|copy| {
        placement.offsets[tile].iter().map(move |&at| {
            let at = at.saturating_add(copy.saturating_mul(step));
            (at, at.saturating_add(data.ty.bytes()))
        })
    });
    let ranges = if chosen == Chosen::RunTime || held.is_none() { Vec::new() } else { ranges.collect() };
    // Copies belong to several iterations at once: some iteration wants one of them throughout.
    let live = match held {
        Some(held) if data.stages > 1 => vec![held],
        Some(held) => values.live.iter().filter_map(|run| run.meet(held)).collect(),
        None => Vec::new(),
    };
    MappedTile {
        tile,
        name: data.name.clone(),
        hidden: data.hidden,
        span: data.span,
        ty: data.ty.to_string().into(),
        each: data.ty.bytes(),
        count: data.count,
        stages: data.stages,
        bytes: if auto { footprint(data, align) } else { data.ty.bytes().saturating_mul(u64::from(data.count)) },
        chosen,
        ranges,
        dead: held.map_or_else(Vec::new, |held| gaps(held, &live)),
        held,
        live,
        first_write: values.writes.first().copied(),
        last_read: values.reads.last().copied(),
        shares: Vec::new(),
    }
}

/// What of `held` is not in `live`.
pub fn gaps(held: Interval, live: &[Interval]) -> Vec<Interval> {
    let (mut out, mut next) = (Vec::new(), held.start);
    for run in live {
        if run.start > next {
            out.push(Interval { start: next, end: run.start - 1 });
        }
        next = run.end + 1;
    }
    if next <= held.end {
        out.push(Interval { start: next, end: held.end });
    }
    out
}

/// Tiles with common bytes that are named of one tile.
pub const SHARERS: usize = 256;

/// For each tile the others that have bytes of it, in order.
fn sharers(tiles: &[MappedTile]) -> Vec<Vec<usize>> {
    let mut ranges: Vec<(u64, u64, usize)> =
        tiles.iter().enumerate().flat_map(|(n, t)| t.ranges.iter().map(move |r| (r.0, r.1, n))).collect();
    ranges.retain(|r| r.0 < r.1);
    ranges.sort_unstable();
    let mut out: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); tiles.len()];
    // Ranges that go on, by their ends.
    let mut open: BTreeSet<(u64, usize)> = BTreeSet::new();
    for (start, end, n) in ranges {
        while open.first().is_some_and(|(end, _)| *end <= start) {
            open.pop_first();
        }
        for &(_, m) in open.iter().rev().filter(|(_, m)| *m != n).take(SHARERS) {
            for (a, b) in [(n, m), (m, n)] {
                if out[a].len() < SHARERS {
                    out[a].insert(b);
                }
            }
        }
        open.insert((end, n));
    }
    out.into_iter().map(|all| all.into_iter().collect()).collect()
}

/// Bytes that some tile holds at each point, each counted once.
fn occupied(tiles: &[MappedTile], points: usize) -> Vec<u64> {
    let mut ends: Vec<u64> = tiles.iter().flat_map(|t| t.ranges.iter().flat_map(|r| [r.0, r.1])).collect();
    ends.sort_unstable();
    ends.dedup();
    let mut union = Union::new(ends);
    // Who begins and ends to hold at a point.
    let mut begin: Vec<Vec<usize>> = vec![Vec::new(); points + 1];
    let mut done: Vec<Vec<usize>> = vec![Vec::new(); points + 1];
    for (n, held) in tiles.iter().enumerate().filter_map(|(n, t)| Some((n, t.held?))) {
        begin[(held.start as usize).min(points)].push(n);
        done[(held.end as usize + 1).min(points)].push(n);
    }
    let mut run_time = 0u64;
    let mut out = Vec::with_capacity(points);
    for point in 0..points {
        for (all, begins) in [(&begin[point], true), (&done[point], false)] {
            for t in all.iter().map(|n| &tiles[*n]) {
                t.ranges.iter().filter(|r| r.0 < r.1).for_each(|r| union.change(*r, begins));
                let bytes = if t.chosen == Chosen::RunTime { t.bytes } else { 0 };
                run_time = if begins { run_time.saturating_add(bytes) } else { run_time.saturating_sub(bytes) };
            }
        }
        out.push(union.length().saturating_add(run_time));
    }
    out
}

/// Ranges between some numbers, and how much they cover together: a tree of segments, of which each knows how many
/// ranges have all of it.
struct Union {
    ends: Vec<u64>,
    /// Of each node: ranges that cover it, and what is covered of it.
    nodes: Vec<(u32, u64)>,
}

impl Union {
    fn new(ends: Vec<u64>) -> Union {
        let nodes = vec![(0, 0); 4 * ends.len().max(1)];
        Union { ends, nodes }
    }

    fn length(&self) -> u64 {
        self.nodes[0].1
    }

    fn change(&mut self, (start, end): (u64, u64), add: bool) {
        let at = |n: u64| self.ends.partition_point(|e| *e < n);
        let range = (at(start), at(end));
        self.walk(0, (0, self.ends.len() - 1), range, add);
    }

    fn walk(&mut self, node: usize, (lo, hi): (usize, usize), (start, end): (usize, usize), add: bool) {
        if end <= lo || hi <= start {
            return;
        }
        let inner = hi - lo > 1;
        let middle = lo.midpoint(hi);
        if start <= lo && hi <= end {
            let count = &mut self.nodes[node].0;
            *count = if add { *count + 1 } else { count.saturating_sub(1) };
        } else {
            self.walk(2 * node + 1, (lo, middle), (start, end), add);
            self.walk(2 * node + 2, (middle, hi), (start, end), add);
        }
        self.nodes[node].1 = match self.nodes[node].0 {
            0 if inner => self.nodes[2 * node + 1].1 + self.nodes[2 * node + 2].1,
            0 => 0,
            _ => self.ends[hi] - self.ends[lo],
        };
    }
}

/// The most bytes, and the most telling point that has them: one with the most bytes that hold values (where the author
/// orders the pipes, bytes are held throughout); of a loop and a statement in it, the statement.
fn peak(held: &[u64], tiles: &[MappedTile], spans: &[Span]) -> (u64, Point) {
    let mut change = vec![0i128; held.len() + 1];
    let mut own = vec![false; held.len() + 1];
    for t in tiles {
        for run in &t.live {
            change[(run.start as usize).min(held.len())] += i128::from(t.bytes);
            change[(run.end as usize + 1).min(held.len())] -= i128::from(t.bytes);
        }
        for p in [t.first_write, t.last_read].into_iter().flatten() {
            own[(p as usize).min(held.len())] = true;
        }
    }
    let mut sum = 0;
    let values: Vec<i128> = change
        .into_iter()
        .map(|n| {
            sum += n;
            sum
        })
        .collect();
    let most = held.iter().copied().max().unwrap_or(0);
    let length = |p: usize| match spans[p].range().len() {
        0 => usize::MAX,
        n => n,
    };
    let at = (0..held.len())
        .filter(|&p| held[p] == most)
        .min_by_key(|&p| (Reverse(values[p]), !own[p], length(p)))
        .unwrap_or(0);
    (most, at as Point)
}
