//! Liveness of tiles: numbers the statements of a kernel's body and computes the live interval of every tile.
//!
//! Structured control flow only jumps forward in this order, except for the back edges of loops; so an interval of
//! points is a sound approximation as soon as it covers every loop around which a value can be carried: a tile that
//! is declared outside a loop and touched in it is live throughout the loop. A tile that is declared in the loop starts
//! each iteration as poison, hence lives within one iteration.
//!
//! In a kernel whose author orders the pipes ([`SyncMode::Manual`]) automatic tiles live throughout: flags order the
//! accesses to a tile, and nobody orders those to another one that would get its bytes.
//!
//! A tile with `stages > 1` is kept apart for the whole of its pipeline: its copies belong to several iterations that
//! are under way at once, so no other tile can have the bytes in between.

use crate::access::{regions, tile_accesses};
use cranelift_entity::SecondaryMap;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{AddrKind, Kernel, Op, Stmt, SyncMode, Tile};

/// Number of a statement: its place in program order. A compound statement has one point where it is entered and one
/// where it is left.
pub type Point = u32;

/// Points between which a tile holds a value, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// First write, or the start of the loop that carries the value.
    pub start: Point,
    /// Last use, or the end of that loop.
    pub end: Point,
}

impl Interval {
    /// Whether there is a point in both.
    pub fn meets(self, other: Interval) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    /// Whether `point` is inside.
    pub fn contains(self, point: Point) -> bool {
        self.start <= point && point <= self.end
    }

    /// The points in both.
    pub fn meet(self, other: Interval) -> Option<Interval> {
        self.meets(other).then(|| Interval { start: self.start.max(other.start), end: self.end.min(other.end) })
    }

    /// The smallest interval that covers both.
    pub fn hull(self, other: Interval) -> Interval {
        Interval { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// The result.
#[derive(Clone, Debug)]
pub struct Liveness {
    /// Source of each point.
    pub spans: Vec<Span>,
    /// Interval of each tile; `None` if nothing touches it.
    pub intervals: SecondaryMap<Tile, Option<Interval>>,
    /// The loops: entry, exit, and the stages of those that are pipelines.
    pub loops: Vec<LoopRange>,
}

/// A loop's points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopRange {
    /// From the entry to the exit.
    pub range: Interval,
    /// `stages` of a pipeline, 1 for another loop.
    pub stages: u32,
    /// The loop's statement.
    pub span: Span,
}

/// Computes the live intervals of `kernel`'s tiles.
pub fn liveness(kernel: &Kernel) -> Liveness {
    let mut walk =
        LivenessAnalysis { kernel, spans: Vec::new(), stack: Vec::new(), loops: Vec::new(), events: Vec::new() };
    walk.region(&kernel.body);
    let LivenessAnalysis { spans, loops, events, .. } = walk;

    // The loops around a tile's declaration; a tile declared in several places lives in what they share.
    let mut homes: SecondaryMap<Tile, Option<Vec<usize>>> = SecondaryMap::new();
    for event in &events {
        if event.kind == EventKind::Alloc {
            let home = &mut homes[event.tile];
            *home = Some(match home.take() {
                None => event.stack.clone(),
                Some(old) => common_prefix(&old, &event.stack),
            });
        }
    }
    let mut intervals: SecondaryMap<Tile, Option<Interval>> = SecondaryMap::new();
    for event in &events {
        let home: &[usize] = homes[event.tile].as_deref().unwrap_or(&[]);
        let data = &kernel.tiles[event.tile];
        // An address of the author's choosing is taken from the declaration on, touched or not.
        if event.kind == EventKind::Alloc && data.addr == AddrKind::Auto {
            continue;
        }
        let depth = event.stack.iter().zip(home).take_while(|(a, b)| a == b).count();
        let mut range = match event.stack.get(depth) {
            Some(&outer) => loops[outer].range,
            None => Interval { start: event.point, end: event.point },
        };
        if data.stages > 1
            && let Some(&pipeline) = home.iter().rev().find(|&&l| loops[l].stages > 1)
        {
            range = range.hull(loops[pipeline].range);
        }
        if kernel.sync == SyncMode::Manual && data.addr == AddrKind::Auto {
            range = Interval { start: 0, end: spans.len() as Point - 1 };
        }
        let slot = &mut intervals[event.tile];
        *slot = Some(slot.map_or(range, |old| old.hull(range)));
    }
    Liveness { spans, intervals, loops }
}

fn common_prefix(a: &[usize], b: &[usize]) -> Vec<usize> {
    a.iter().zip(b).take_while(|(x, y)| x == y).map(|(x, _)| *x).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EventKind {
    Alloc,
    Touch,
}

/// A statement touches or declares a tile inside these loops (outermost first).
struct Event {
    tile: Tile,
    kind: EventKind,
    point: Point,
    stack: Vec<usize>,
}

struct LivenessAnalysis<'k> {
    kernel: &'k Kernel,
    spans: Vec<Span>,
    stack: Vec<usize>,
    loops: Vec<LoopRange>,
    events: Vec<Event>,
}

impl LivenessAnalysis<'_> {
    fn point(&mut self, span: Span) -> Point {
        self.spans.push(span);
        (self.spans.len() - 1) as Point
    }

    fn region(&mut self, region: &[Stmt]) {
        for stmt in region {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let point = self.point(stmt.span);
        if let Op::Alloc { tile } = stmt.op {
            self.event(tile, EventKind::Alloc, point);
        }
        for (_, tile) in tile_accesses(self.kernel, stmt) {
            self.event(tile.tile, EventKind::Touch, point);
        }
        let nested = regions(&stmt.op);
        if nested.is_empty() {
            return;
        }
        let stages = match &stmt.op {
            Op::For(f) => Some(f.stages),
            Op::While(_) => Some(1),
            _ => None,
        };
        if let Some(stages) = stages {
            let range = Interval { start: point, end: point };
            self.stack.push(self.loops.len());
            self.loops.push(LoopRange { range, stages, span: stmt.span });
        }
        for region in nested {
            self.region(region);
        }
        let end = self.point(stmt.span);
        if stages.is_some()
            && let Some(this) = self.stack.pop()
        {
            self.loops[this].range.end = end;
        }
    }

    fn event(&mut self, tile: Tile, kind: EventKind, point: Point) {
        self.events.push(Event { tile, kind, point, stack: self.stack.clone() });
    }
}

/// Calls `f` with every statement of the body and its point (the entry of a compound statement).
pub fn for_each_point(kernel: &Kernel, f: &mut dyn FnMut(Point, &Stmt)) {
    fn walk(region: &[Stmt], next: &mut Point, f: &mut dyn FnMut(Point, &Stmt)) {
        for stmt in region {
            f(*next, stmt);
            *next += 1;
            let nested = regions(&stmt.op);
            if !nested.is_empty() {
                for region in nested {
                    walk(region, next, f);
                }
                *next += 1;
            }
        }
    }
    walk(&kernel.body, &mut 0, f);
}
