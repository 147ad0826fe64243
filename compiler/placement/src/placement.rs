//! Memory allocation of tiles: gives every automatic tile its bytes, memory by memory; locations of a pool are one
//! memory. What may lie where is decided here; [`crate::pack`] finds a good packing of it.
//!
//! * Tiles whose live intervals meet get disjoint bytes; others may share them. Fixed tiles stay where the author put
//!   them and are obstacles for as long as they live.
//! * A destination that is born at an instruction which may work in place takes over the bytes of a source that dies
//!   there, if both have the same element positions and no operand reads that source at other positions (through a
//!   window, or as the row or column that is repeated).
//! * A tile counts `count` elements and `stages` copies, all contiguous, each a multiple of the memory's alignment.
//! * A tile with a pin ([`Kernel::pins`]) is as any other, but for its place, which is known.
//! * Where a memory also has tiles with run-time addresses, automatic tiles go to its top end, and
//!   [`Memory::dynamic_limit`] says how far the run-time addresses may reach.

use crate::access::{AccessMode, inst_operands, is_auto, is_broadcast, is_whole};
use crate::liveness::{Interval, Liveness, Point, for_each_point, liveness};
use crate::pack::{Effort, Problem, Rect};
use crate::{fixed_addresses, memories};
use cranelift_entity::{EntityRef, SecondaryMap};
use ptoc_ir::tile::{AddrKind, Kernel, Op, Operand, Tile, TileData};
use ptoc_isa::{Loc, Target};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::collections::hash_map::Entry;

/// Where every tile lives.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// Byte offset of each element of each tile in its memory (first copy). Empty for tiles with run-time addresses.
    pub offsets: SecondaryMap<Tile, Vec<u64>>,
    /// When each tile is live; `None` for a tile that nothing touches.
    pub intervals: SecondaryMap<Tile, Option<Interval>>,
    /// The memories that tiles of the kernel live in, in the order of [`Loc::ALL`].
    pub memories: Vec<Memory>,
}

/// What a kernel takes of one memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The location that stands for the memory ([`Target::home`]).
    pub loc: Loc,
    /// The locations whose tiles lie in it: several of a pool.
    pub locations: Vec<Loc>,
    /// Bytes that the target has.
    pub capacity: u64,
    /// One past the last byte that a tile with a known address occupies (0 if there is none).
    pub extent: u64,
    /// Most bytes that are live at one point.
    pub peak: u64,
    /// A point where that many are live.
    pub peak_point: Point,
    /// Bytes at and above this one belong to automatic tiles, so that run-time addresses must stay below. `None` if
    /// no automatic tile lives here.
    pub dynamic_limit: Option<u64>,
}

impl Placement {
    /// What the kernel takes of the memory behind `loc`, if anything.
    pub fn memory(&self, loc: Loc) -> Option<&Memory> {
        self.memories.iter().find(|m| m.locations.contains(&loc))
    }
}

/// Bytes from one element (or copy) of a tile to the next.
pub fn pitch(data: &TileData, align: u64) -> u64 {
    data.ty.bytes().next_multiple_of(align.max(1))
}

/// Bytes that a tile takes in all.
pub fn footprint(data: &TileData, align: u64) -> u64 {
    pitch(data, align) * u64::from(data.count) * u64::from(data.stages)
}

/// One memory whose tiles do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The location that stands for the memory ([`Target::home`]).
    pub loc: Loc,
    /// What it has.
    pub capacity: u64,
    /// What the plan would need.
    pub needed: u64,
    /// Most bytes live at one point; less than `needed` if only fragmentation is to blame.
    pub peak: u64,
    /// That point.
    pub peak_point: Point,
    /// The tiles that live there.
    pub live: Vec<Tile>,
}

/// Places every automatic tile of `kernel`, or says which memories overflow.
pub fn plan(kernel: &Kernel, target: &Target) -> Result<Placement, Vec<Overflow>> {
    plan_with(kernel, &liveness(kernel), target, u32::MAX)
}

/// As [`plan`], with at most `max_stages` copies of a tile: what a smaller pipeline would need.
pub fn plan_with(
    kernel: &Kernel,
    live: &Liveness,
    target: &Target,
    max_stages: u32,
) -> Result<Placement, Vec<Overflow>> {
    let mut offsets: SecondaryMap<Tile, Vec<u64>> = SecondaryMap::new();
    let (mut memories, mut overflows) = (Vec::new(), Vec::new());
    let roots = in_place(kernel, live);
    for loc in Loc::ALL {
        let here = |t: &Tile| target.home(kernel.tiles[*t].ty.loc) == loc;
        let tiles: Vec<Tile> = kernel.tiles.keys().filter(here).collect();
        if tiles.is_empty() {
            continue;
        }
        let space = Space::new(kernel, live, target, max_stages, loc, &tiles, &roots);
        // Whole cache lines are kinder to the CPU, where they cost no bytes.
        let kind = if space.mirrored { space.align } else { space.align.max(64) };
        let (mut bases, mut needed) = space.pack(kind, Effort::Little);
        let (peak, peak_point) = space.peak(live);
        if space.align != kind && needed > peak {
            let (plain, less) = space.pack(space.align, Effort::Little);
            if less < needed {
                (bases, needed) = (plain, less);
            }
        }
        // What fits need not be better. What does not fit deserves a long search, if any packing might do.
        if needed > space.capacity && peak <= space.capacity {
            (bases, needed) = space.pack(space.align, Effort::Much);
        }
        if needed > space.capacity {
            let live_tiles = tiles
                .iter()
                .copied()
                .filter(|&t| live.intervals[t].is_some_and(|i| i.contains(peak_point)))
                .filter(|&t| kernel.tiles[t].addr != AddrKind::Dynamic);
            overflows.push(Overflow {
                loc,
                capacity: space.capacity,
                needed,
                peak,
                peak_point,
                live: live_tiles.collect(),
            });
            continue;
        }
        let mut limit = None;
        let mut extent = 0;
        for (group, base) in space.groups.iter().zip(&bases) {
            // With run-time addresses below, the plan is mirrored to the memory's top end.
            let base = if space.mirrored { space.capacity - base - group.size } else { *base };
            limit = Some(limit.map_or(base, |l: u64| l.min(base)));
            extent = extent.max(base + group.size);
            for &tile in &group.tiles {
                let data = &kernel.tiles[tile];
                let pitch = pitch(data, space.align);
                offsets[tile] = (0..u64::from(data.count)).map(|e| base + e * pitch).collect();
            }
        }
        for &tile in &tiles {
            match &kernel.tiles[tile].addr {
                AddrKind::Fixed(at) => {
                    let last = at.iter().max().copied().unwrap_or(0);
                    extent = extent.max(last.saturating_add(kernel.tiles[tile].ty.bytes()));
                    offsets[tile] = at.clone();
                }
                AddrKind::Auto if offsets[tile].is_empty() => {
                    // Nothing touches it: it needs an address, and no bytes of its own.
                    offsets[tile] = vec![0; kernel.tiles[tile].count as usize];
                }
                _ => {}
            }
        }
        let (locations, capacity) = (target.sharing(loc), space.capacity);
        memories.push(Memory { loc, locations, capacity, extent, peak, peak_point, dynamic_limit: limit });
    }
    if !overflows.is_empty() {
        return Err(overflows);
    }
    Ok(Placement { offsets, intervals: live.intervals.clone(), memories })
}

/// Tiles that share one slot by in-place reuse.
struct Group {
    tiles: Vec<Tile>,
    interval: Interval,
    size: u64,
    /// Where it is, if that is not for the planner to find.
    pin: Option<u64>,
}

/// Bytes that the author has taken, in the coordinates of the plan (mirrored or not).
struct Obstacle {
    interval: Interval,
    start: u64,
    end: u64,
}

struct Space {
    capacity: u64,
    align: u64,
    /// Automatic tiles grow down from the top end.
    mirrored: bool,
    groups: Vec<Group>,
    obstacles: Vec<Obstacle>,
}

impl Space {
    fn new(
        kernel: &Kernel,
        live: &Liveness,
        target: &Target,
        max_stages: u32,
        loc: Loc,
        tiles: &[Tile],
        roots: &SecondaryMap<Tile, Tile>,
    ) -> Space {
        let (capacity, align) = (memories::capacity(target, loc), memories::align(target, loc));
        let mirrored = tiles.iter().any(|&t| kernel.tiles[t].addr == AddrKind::Dynamic);
        let mut groups: Vec<Group> = Vec::new();
        let mut of_root: FxHashMap<Tile, usize> = FxHashMap::default();
        let mut obstacles = Vec::new();
        for &tile in tiles {
            let data = &kernel.tiles[tile];
            let Some(interval) = live.intervals[tile] else { continue };
            match &data.addr {
                AddrKind::Auto => {
                    let capped = TileData { stages: data.stages.min(max_stages), ..data.clone() };
                    let size = footprint(&capped, align);
                    match of_root.entry(roots[tile]) {
                        Entry::Occupied(at) => {
                            let group = &mut groups[*at.get()];
                            group.tiles.push(tile);
                            group.interval = group.interval.hull(interval);
                            group.size = group.size.max(size);
                        }
                        Entry::Vacant(new) => {
                            new.insert(groups.len());
                            let pin = fixed_addresses::base(kernel, tile);
                            groups.push(Group { tiles: vec![tile], interval, size, pin });
                        }
                    }
                }
                AddrKind::Fixed(at) => {
                    for &start in at {
                        let end = start.saturating_add(data.ty.bytes());
                        let (start, end) = if mirrored {
                            (capacity.saturating_sub(end), capacity.saturating_sub(start))
                        } else {
                            (start, end)
                        };
                        obstacles.push(Obstacle { interval, start, end });
                    }
                }
                AddrKind::Dynamic => {}
            }
        }
        Space { capacity, align, mirrored, groups, obstacles }
    }

    /// Base of each group, and the bytes that the plan needs.
    fn pack(&self, align: u64, effort: Effort) -> (Vec<u64>, u64) {
        // What the author has taken reaches so far anyway; a mirrored plan grows from the other end.
        let free = match self.mirrored {
            true => 0,
            false => self.obstacles.iter().map(|o| o.end).max().unwrap_or(0),
        };
        // Pins are addresses; a mirrored plan counts from the memory's end.
        let place = |g: &Group| match self.mirrored {
            true => g.pin.map(|at| self.capacity.saturating_sub(at.saturating_add(g.size))),
            false => g.pin,
        };
        let movable = self.groups.iter().map(|g| (g.interval, g.size, place(g)));
        let fixed = self.obstacles.iter().map(|o| (o.interval, o.end.saturating_sub(o.start), Some(o.start)));
        let rect =
            |(life, size, fixed): (Interval, u64, Option<u64>)| Rect { start: life.start, end: life.end, size, fixed };
        let problem = Problem { align, free, rects: movable.chain(fixed).map(rect).collect() };
        let mut bases = problem.solve(effort).offsets;
        bases.truncate(self.groups.len());
        let needed = self.groups.iter().zip(&bases).map(|(g, base)| base.saturating_add(g.size)).max();
        (bases, needed.unwrap_or(0).max(free))
    }

    /// Most bytes live at one point, and the most telling such point: the one with the shortest source (a statement of
    /// a loop rather than the loop). Fixed tiles count the bytes that they cover together.
    fn peak(&self, live: &Liveness) -> (u64, Point) {
        let mut best = (0, 0);
        let (groups, obstacles) =
            (Sweep::new(self.groups.iter().map(|g| g.interval)), Sweep::new(self.obstacles.iter().map(|o| o.interval)));
        let (mut auto, mut fixed, mut covered) = (0, BTreeSet::new(), 0);
        for point in 0..live.spans.len() as Point {
            auto -= groups.ended(point).map(|n| self.groups[n].size).sum::<u64>();
            auto += groups.begun(point).map(|n| self.groups[n].size).sum::<u64>();
            let before = fixed.len();
            let place = |n: usize| (self.obstacles[n].start, self.obstacles[n].end, n);
            let ended = obstacles.ended(point).filter(|n| fixed.remove(&place(*n))).count();
            fixed.extend(obstacles.begun(point).map(place));
            if ended > 0 || fixed.len() != before {
                let mut reach = 0;
                covered = 0;
                for &(start, end, _) in &fixed {
                    covered += end.saturating_sub(start.max(reach));
                    reach = reach.max(end);
                }
            }
            // What the compiler made has an empty span, which tells nothing.
            let length = |p: Point| match live.spans[p as usize].range().len() {
                0 => usize::MAX,
                n => n,
            };
            let (total, known) = (auto + covered, best.0);
            if total > known || (total == known && total > 0 && length(point) < length(best.1)) {
                best = (total, point);
            }
        }
        best
    }
}

/// Intervals by the points where they begin and end.
struct Sweep {
    begins: Vec<(Point, usize)>,
    ends: Vec<(Point, usize)>,
}

impl Sweep {
    fn new(intervals: impl Iterator<Item = Interval>) -> Sweep {
        let all: Vec<(usize, Interval)> = intervals.enumerate().collect();
        let mut begins: Vec<_> = all.iter().map(|(n, i)| (i.start, *n)).collect();
        let mut ends: Vec<_> = all.iter().map(|(n, i)| (i.end, *n)).collect();
        begins.sort_unstable();
        ends.sort_unstable();
        Sweep { begins, ends }
    }

    fn at(all: &[(Point, usize)], point: Point) -> impl Iterator<Item = usize> {
        let first = all.partition_point(|(p, _)| *p < point);
        all[first..].iter().take_while(move |(p, _)| *p == point).map(|(_, n)| *n)
    }

    /// Those that begin at this point.
    fn begun(&self, point: Point) -> impl Iterator<Item = usize> {
        Sweep::at(&self.begins, point)
    }

    /// Those of which the point before was the last.
    fn ended(&self, point: Point) -> impl Iterator<Item = usize> {
        let before = point.checked_sub(1);
        before.into_iter().flat_map(|p| Sweep::at(&self.ends, p))
    }
}

/// The first tile of each chain of parents.
fn roots(kernel: &Kernel, parents: &SecondaryMap<Tile, Option<Tile>>) -> SecondaryMap<Tile, Tile> {
    let mut roots: SecondaryMap<Tile, Option<Tile>> = SecondaryMap::with_capacity(kernel.tiles.len());
    for tile in kernel.tiles.keys() {
        let (mut chain, mut at) = (Vec::new(), tile);
        let root = loop {
            match (roots[at], parents[at]) {
                (Some(root), _) => break root,
                (None, None) => break at,
                (None, Some(up)) => {
                    chain.push(at);
                    at = up;
                }
            }
        };
        chain.into_iter().chain([tile]).for_each(|t| roots[t] = Some(root));
    }
    let mut out = SecondaryMap::with_default(Tile::new(0));
    roots.iter().for_each(|(tile, root)| out[tile] = root.unwrap_or(tile));
    out
}

/// The tile whose slot each tile takes over (in-place reuse) in the end, or itself. Tiles with pins do so where these
/// agree.
pub fn in_place(kernel: &Kernel, live: &Liveness) -> SecondaryMap<Tile, Tile> {
    let mut parents: SecondaryMap<Tile, Option<Tile>> = SecondaryMap::with_capacity(kernel.tiles.len());
    parents.resize(kernel.tiles.len());
    for_each_point(kernel, &mut |point, stmt| {
        let Op::Inst(inst) = &stmt.op else { return };
        if !inst.instr.get().in_place {
            return;
        }
        let mut destination = None;
        let mut sources = Vec::new();
        // Tiles of which some operand reads other positions than the one that is written: a window, a broadcast.
        let mut elsewhere = Vec::new();
        for (k, (access, operand)) in inst_operands(inst).enumerate() {
            let Operand::Tile(t) = operand else { continue };
            match access {
                AccessMode::Write if is_auto(kernel, t.tile) && is_whole(kernel, t) => destination = Some(t.tile),
                AccessMode::Write => {}
                AccessMode::Read if !is_whole(kernel, t) || is_broadcast(inst, k) => elsewhere.push(t.tile),
                AccessMode::Read if is_auto(kernel, t.tile) => sources.push(t.tile),
                AccessMode::Read => {}
            }
        }
        let Some(dst) = destination else { return };
        let d = &kernel.tiles[dst];
        if live.intervals[dst].is_none_or(|i| i.start != point) || d.stages != 1 || parents[dst].is_some() {
            return;
        }
        let heir = sources.iter().copied().find(|&src| {
            let s = &kernel.tiles[src];
            src != dst
                && !elsewhere.contains(&src)
                && live.intervals[src].is_some_and(|i| i.end == point)
                && s.stages == 1
                && fixed_addresses::base(kernel, src) == fixed_addresses::base(kernel, dst)
                && (s.ty.loc, s.ty.rows, s.ty.cols, s.ty.order) == (d.ty.loc, d.ty.rows, d.ty.cols, d.ty.order)
                && s.ty.dtype.size() == d.ty.dtype.size()
                && (s.ty.dtype == ptoc_tensor::DType::Bool) == (d.ty.dtype == ptoc_tensor::DType::Bool)
        });
        if let Some(src) = heir {
            debug_assert!(src.index() != dst.index());
            parents[dst] = Some(src);
        }
    });
    roots(kernel, &parents)
}
