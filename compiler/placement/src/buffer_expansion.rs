//! Buffer expansion (multi-buffering made explicit): makes a kernel **physical**: every tile has its bytes, and the
//! copies that a pipeline keeps of a tile are elements of it.
//!
//! The meaning stays, and becomes one about bytes: which accesses meet is a question of addresses from here on, so
//! pipes can be ordered, checked and run out of order. Neither `check` nor machine code needs this.
//!
//! A tile of `count` elements with `stages = n` becomes one of `count * n` elements, copy by copy, at the addresses
//! that the planner reserved for them (n is at most the target's flags from one pipe to another: [`crate::stages`]).
//! Iteration number `i` of the pipeline in whose body it is declared (the innermost one) uses copy `i % n`: element `e`
//! becomes `i % n * count + e`. Loops inside the pipeline stay within one copy.

use crate::memories;
use crate::placement::{Placement, pitch};
use crate::scalars::Scalars;
use crate::stages;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{AddrKind, Kernel, Op, Region, Stmt, Tile, TileData, TileRef, Value};
use ptoc_isa::{BinOp, Target};
use rustc_hash::FxHashMap;

/// `kernel` with the addresses of `placement`, which is sound for it on `target`. The result is valid, computes the
/// same, and has `stages` = 1 everywhere.
pub fn physical(kernel: &Kernel, placement: &Placement, target: &Target) -> Kernel {
    let mut out = kernel.clone();
    let mut copies: SecondaryMap<Tile, Option<Copies>> = SecondaryMap::new();
    for (tile, data) in &mut out.tiles {
        if data.addr == AddrKind::Auto {
            let first = placement.offsets[tile].clone();
            let live = placement.intervals[tile].is_some();
            // What nothing touches has an address and no bytes, hence no copies either.
            let n = if live { stages::used(data.stages, target) } else { 1 };
            let step = pitch(data, memories::align(target, data.ty.loc)) * u64::from(data.count);
            let all = (0..u64::from(n)).flat_map(|c| first.iter().map(move |at| at + c * step));
            data.addr = AddrKind::Fixed(all.collect());
            if n > 1 {
                copies[tile] = Some(Copies { n, count: data.count });
            }
        }
    }
    let mut pass = BufferExpansion {
        tiles: &out.tiles,
        scalars: Scalars::new(&mut out.values, &out.prologue),
        copies,
        home: SecondaryMap::new(),
        pipelines: Vec::new(),
        known: vec![FxHashMap::default()],
    };
    pass.region(&mut out.body);
    let (scalars, copies) = (pass.scalars, pass.copies);
    scalars.finish(&mut out.prologue);
    for (tile, data) in &mut out.tiles {
        data.stages = 1;
        data.count *= copies[tile].map_or(1, |c| c.n);
    }
    out
}

/// The copies of a tile.
#[derive(Clone, Copy)]
struct Copies {
    n: u32,
    /// Elements of one.
    count: u32,
}

/// A pipeline around the current statement.
struct Pipeline {
    index: Value,
    lo: Value,
    span: Span,
    /// What the start of its body has to compute.
    head: Region,
    counter: Option<Value>,
    /// First element of the current copy, by number of copies and elements of one.
    first: FxHashMap<(u32, u32), Value>,
}

struct BufferExpansion<'k> {
    tiles: &'k PrimaryMap<Tile, TileData>,
    scalars: Scalars<'k>,
    copies: SecondaryMap<Tile, Option<Copies>>,
    /// The pipeline of a tile's last declaration, counted from 1; 0 is none.
    home: SecondaryMap<Tile, usize>,
    pipelines: Vec<Pipeline>,
    /// Sums that are there already, by region.
    known: Vec<FxHashMap<(Value, Value), Value>>,
}

impl BufferExpansion<'_> {
    fn region(&mut self, region: &mut Region) {
        let mut out = Region::with_capacity(region.len());
        for mut stmt in std::mem::take(region) {
            match &mut stmt.op {
                Op::Alloc { tile } => self.home[*tile] = self.pipelines.len(),
                Op::For(f) if f.stages > 1 => {
                    f.stages = 1;
                    let (index, lo, span) = (f.index, f.lo, stmt.span);
                    let (head, first) = (Region::new(), FxHashMap::default());
                    self.pipelines.push(Pipeline { index, lo, span, head, counter: None, first });
                    self.nested(&mut f.body);
                    if let Some(pipeline) = self.pipelines.pop() {
                        f.body.splice(0..0, pipeline.head);
                    }
                }
                Op::For(f) => self.nested(&mut f.body),
                Op::If(i) => {
                    self.nested(&mut i.then);
                    self.nested(&mut i.els);
                }
                Op::While(w) => {
                    // The body sees what the head computes.
                    self.known.push(FxHashMap::default());
                    self.region(&mut w.head);
                    self.nested(&mut w.body);
                    self.known.pop();
                }
                Op::Scope(s) => self.nested(&mut s.body),
                _ => self.stmt(&mut stmt, &mut out),
            }
            out.push(stmt);
        }
        *region = out;
    }

    fn nested(&mut self, region: &mut Region) {
        self.known.push(FxHashMap::default());
        self.region(region);
        self.known.pop();
    }

    fn stmt(&mut self, stmt: &mut Stmt, out: &mut Region) {
        let span = stmt.span;
        stmt.op.for_each_tile_mut(&mut |t| self.select(t, span, out));
    }

    /// Makes a reference one to the current copy.
    fn select(&mut self, r: &mut TileRef, span: Span, out: &mut Region) {
        let Some(copies) = self.copies[r.tile] else { return };
        // Outside of a pipeline there is one copy at a time: the first.
        let Some(home) = self.home[r.tile].checked_sub(1) else { return };
        let Some(first) = self.first(home, copies) else { return };
        let element = r.element.filter(|_| self.tiles[r.tile].count > 1);
        r.element = Some(match element {
            None => first,
            Some(e) => match self.known.iter().rev().find_map(|k| k.get(&(first, e))) {
                Some(&sum) => sum,
                None => {
                    let sum = self.scalars.binary(BinOp::Add, first, e, span, out);
                    self.known.last_mut().and_then(|k| k.insert((first, e), sum));
                    sum
                }
            },
        });
    }

    /// `(index - lo) % n * count`, computed at the start of the body of pipeline `home`.
    fn first(&mut self, home: usize, Copies { n, count }: Copies) -> Option<Value> {
        let p = self.pipelines.get_mut(home)?;
        if let Some(&v) = p.first.get(&(n, count)) {
            return Some(v);
        }
        let (s, span) = (&mut self.scalars, p.span);
        let counter = *p.counter.get_or_insert_with(|| s.binary(BinOp::Sub, p.index, p.lo, span, &mut p.head));
        let slot = match p.first.get(&(n, 1)) {
            Some(&slot) => slot,
            None => {
                let copies = s.index(i64::from(n));
                let slot = s.binary(BinOp::Rem, counter, copies, span, &mut p.head);
                p.first.insert((n, 1), slot);
                slot
            }
        };
        let size = s.index(i64::from(count));
        let first = s.binary(BinOp::Mul, slot, size, span, &mut p.head);
        p.first.insert((n, count), first);
        Some(first)
    }
}
