//! Summaries of loops: what all iterations of a loop write together.
//!
//! A loop that is not walked through has one iteration for many, of which each byte is written somewhere else: nothing
//! is sure to be written. But where every iteration writes a window whose row (or column) is the index times a
//! constant, no more than the window is long, all of them write one larger window, whatever the bounds are: `x[r, _]`
//! for `r in 0..n` are the first `n` rows. This holds for indices, constants, their sums and products alone: what
//! depends on variables may have been another number in the first iterations.

mod parts;

use super::contents::{EMPTY_LOOP, UNWRITTEN};
use super::numbers::SymbolicOffset;
use super::states::ByteState;
use super::touches::touches;
use super::walk::ByteInterpreter;
use super::window::{Count, Key, TouchedPart};
use ptoc_ir::tile::{AddrKind, For, Op, Stmt, Tile, TileRef, Ty, Value, jumps};
use ptoc_isa::BinOp;
use ptoc_placement::access::AccessMode;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// First row or column, and how many.
type CoveredAxis = (SymbolicOffset, SymbolicOffset);

/// A window that is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cover {
    pub(super) tile: Tile,
    element: u32,
    row: CoveredAxis,
    col: CoveredAxis,
}

/// What the statements of a body do to values.
#[derive(Default)]
struct Body {
    /// Sums and products; constants.
    defs: FxHashMap<Value, Def>,
    /// Other operations on two values.
    others: FxHashMap<Value, (BinOp, Value, Value)>,
    /// Values that are none of the sums and products.
    other: FxHashSet<Value>,
    declared: FxHashSet<Tile>,
    /// Indices of the loops around a statement, and what was computed of them.
    known: FxHashMap<Value, SymbolicOffset>,
}

#[derive(Clone, Copy)]
enum Def {
    Const(i64),
    Binary(BinOp, Value, Value),
}

impl Body {
    fn note(&mut self, region: &[Stmt]) {
        for stmt in region {
            match &stmt.op {
                Op::Alloc { tile } => {
                    self.declared.insert(*tile);
                }
                Op::For(f) => {
                    self.other.insert(f.index);
                }
                _ => {}
            }
            let def = match &stmt.op {
                Op::Const { value, .. } => value.as_index().map(Def::Const),
                Op::Binary { op: op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), a, b, .. } => {
                    Some(Def::Binary(*op, *a, *b))
                }
                _ => None,
            };
            if let Some(dst) = stmt.op.def() {
                if let (None, Op::Binary { op, a, b, .. }) = (&def, &stmt.op) {
                    self.others.insert(dst, (*op, *a, *b));
                }
                match def {
                    Some(def) => drop(self.defs.insert(dst, def)),
                    None => drop(self.other.insert(dst)),
                }
            }
            stmt.op.regions().for_each(|r| self.note(r));
        }
    }
}

impl<'k> ByteInterpreter<'k> {
    /// What the iterations of `f` write, in terms of what is known outside of it. Where the loop does not run, these
    /// windows are empty.
    pub(super) fn covers(&mut self, f: &'k For) -> Vec<Cover> {
        let mut out = self.windows(f);
        out.extend(self.parts(f));
        out
    }

    /// Windows that follow the index.
    pub(super) fn windows(&mut self, f: &'k For) -> Vec<Cover> {
        let mut body = Body::default();
        body.note(&f.body);
        self.covers_of(f, &mut body)
    }

    /// What copies to parts of tiles write together.
    pub(super) fn parts(&mut self, f: &'k For) -> Vec<Cover> {
        if !parts::writes_parts(&f.body) {
            return Vec::new();
        }
        let mut body = Body::default();
        body.note(&f.body);
        self.parts_of(f, &mut body)
    }

    fn covers_of(&mut self, f: &'k For, body: &mut Body) -> Vec<Cover> {
        let (Some(lo), Some(hi)) = (self.number(f.lo, body), self.number(f.hi, body)) else { return Vec::new() };
        if jumps(&f.body) {
            return Vec::new();
        }
        let index = self.numbers.symbol();
        body.known.insert(f.index, index);
        let inner = self.written_in(&f.body, body);
        inner.into_iter().filter_map(|c| self.over(c, index, lo, hi)).collect()
    }

    fn written_in(&mut self, region: &'k [Stmt], body: &mut Body) -> Vec<Cover> {
        let mut out = Vec::new();
        for stmt in region {
            match &stmt.op {
                Op::For(f) => out.extend(self.covers_of(f, body)),
                Op::Scope(s) => out.extend(self.written_in(&s.body, body)),
                _ => {
                    let all = touches(self.kernel, &self.constants, stmt);
                    let writes = all.into_iter().filter(|(a, ..)| *a == AccessMode::Write);
                    out.extend(writes.filter_map(|(_, r, part)| self.cover(&r, part, body)));
                }
            }
        }
        out
    }

    /// A sum or product of indices, constants, and what is known outside.
    fn number(&mut self, v: Value, body: &mut Body) -> Option<SymbolicOffset> {
        if let Some(n) = body.known.get(&v) {
            return Some(*n);
        }
        let n = match body.defs.get(&v) {
            None if body.other.contains(&v) => return None,
            None => return Some(self.numbers.get(v)),
            Some(Def::Const(n)) => SymbolicOffset::known(*n),
            Some(&Def::Binary(op, a, b)) => {
                let (a, b) = (self.number(a, body)?, self.number(b, body)?);
                self.numbers.binary(Ty::Index, op, a, b)
            }
        };
        body.known.insert(v, n);
        Some(n)
    }

    /// The window of one write.
    fn cover(&mut self, r: &TileRef, part: TouchedPart, body: &mut Body) -> Option<Cover> {
        let data = &self.kernel.tiles[r.tile];
        if data.addr == AddrKind::Dynamic || body.declared.contains(&r.tile) {
            return None;
        }
        let count = data.count;
        let element = r.element.map_or(Some(SymbolicOffset::known(0)), |v| self.number(v, body))?.constant();
        let element = element.and_then(|n| u32::try_from(n).ok()).filter(|n| *n < count)?;
        let zero = SymbolicOffset::known(0);
        let (row, col) = match r.origin {
            Some((a, b)) => (self.number(a, body)?, self.number(b, body)?),
            None => (zero, zero),
        };
        let (row, col) = match part {
            TouchedPart::Valid => ((row, self.number(r.valid.0, body)?), (col, self.number(r.valid.1, body)?)),
            TouchedPart::Element(i, j) => {
                let (i, j) = (self.number(i, body)?, self.number(j, body)?);
                let mut at = |a: SymbolicOffset, b: SymbolicOffset| {
                    (self.numbers.binary(Ty::Index, BinOp::Add, a, b), SymbolicOffset::known(1))
                };
                (at(row, i), at(col, j))
            }
            TouchedPart::Rect((i, j), (m, n)) => {
                let (i, j) = (self.number(i, body)?, self.number(j, body)?);
                let mut count = |this: &mut Self, n: Count| match n {
                    Count::One => Some(SymbolicOffset::known(1)),
                    Count::Of(v) => this.number(v, body),
                };
                let (m, n) = (count(self, m)?, count(self, n)?);
                let mut at = |a: SymbolicOffset, b: SymbolicOffset| self.numbers.binary(Ty::Index, BinOp::Add, a, b);
                ((at(row, i), m), (at(col, j), n))
            }
            TouchedPart::Some(_) | TouchedPart::Within(..) => return None,
        };
        Some(Cover { tile: r.tile, element, row, col })
    }

    /// The window for all values of an index that one of its axes follows.
    fn over(&mut self, c: Cover, index: SymbolicOffset, lo: SymbolicOffset, hi: SymbolicOffset) -> Option<Cover> {
        let depends = |this: &Self, (a, n): CoveredAxis| [a, n].iter().any(|n| this.numbers.depends(*n, index));
        match (depends(self, c.row), depends(self, c.col)) {
            (true, false) => Some(Cover { row: self.axis(c.row, index, lo, hi)?, ..c }),
            (false, true) => Some(Cover { col: self.axis(c.col, index, lo, hi)?, ..c }),
            // It is the same each time, if there is a time.
            (false, false) => lo.constant().zip(hi.constant()).filter(|(lo, hi)| lo < hi).map(|_| c),
            (true, true) => None,
        }
    }

    fn axis(
        &mut self,
        (origin, valid): CoveredAxis,
        index: SymbolicOffset,
        lo: SymbolicOffset,
        hi: SymbolicOffset,
    ) -> Option<CoveredAxis> {
        // Blocks of something, of which the last may be cut: all of it.
        if let Some(whole) = self.numbers.blocks_of(origin, valid, index, hi).filter(|_| lo == SymbolicOffset::known(0))
        {
            return Some((lo, whole));
        }
        let length = valid.constant().filter(|n| *n >= 1)?;
        let trips = self.numbers.minus(hi, lo);
        // Counted from where the loop begins.
        if origin == self.numbers.binary(Ty::Index, BinOp::Sub, index, lo) && length == 1 {
            return Some((SymbolicOffset::known(0), trips));
        }
        let (step, offset) = self.numbers.multiple(origin, index)?;
        if !(1..=length).contains(&step) {
            return None;
        }
        let index_ty = Ty::Index;
        let start = self.numbers.binary(index_ty, BinOp::Mul, lo, SymbolicOffset::known(step)).plus(offset)?;
        // The last window may be longer than a step.
        let all = self.numbers.binary(index_ty, BinOp::Mul, trips, SymbolicOffset::known(step));
        match length - step {
            0 => Some((start, all)),
            // Of a loop that does not run, this would be more than nothing.
            more => trips.constant().filter(|n| *n >= 1).and(all.plus(more)).map(|all| (start, all)),
        }
    }

    /// After a loop: what it has written for sure is not unwritten.
    pub(super) fn apply(&mut self, covers: &[Cover], state: &mut ByteState) {
        for c in covers {
            let (storage, base, key, bytes, exact) = self.covered(c);
            let ranges: Vec<_> = bytes.iter().map(|(s, e)| (s + base, e + base)).collect();
            let sets = &mut self.sets;
            Rc::make_mut(&mut state.storages[storage]).update(&ranges, &mut |set| {
                sets.rewrite(set, &mut |e| {
                    if !matches!(e.def, UNWRITTEN | EMPTY_LOOP) {
                        return Some(e.clone());
                    }
                    (!exact).then(|| e.outside(key))
                })
            });
        }
    }

    /// Storage and first byte of the tile, the window, the bytes that it may have, and whether it has them all.
    fn covered(&mut self, c: &Cover) -> (usize, u64, Key, Rc<[super::contents::Bytes]>, bool) {
        let (storage, base) = self.start(c.tile, c.element);
        let own = self.kernel.tiles[c.tile].addr == AddrKind::Auto;
        let (key, bytes, exact) =
            self.keys.written(self.kernel, &mut self.numbers, (c.tile, own), (storage, base), (c.row, c.col));
        (storage, base, key, bytes, exact)
    }
}
