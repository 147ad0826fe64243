//! Parts of tiles that threads write in turn: `copy(local_partition(t, THREADS, i), ..)` for `i in 0..32`. Where ends
//! and steps are constants, the elements of all iterations are marked one by one. If they are a rectangle, the loop
//! writes it; a guard on its rows or columns says how far.

use super::{Body, Cover, CoveredAxis, Def};
use crate::bytes::numbers::SymbolicOffset;
use crate::bytes::walk::ByteInterpreter;
use ptoc_ir::tile::{Affine, Copy, For, NestAccess, Op, Stmt, Tile, TileRef, Value, jumps};
use ptoc_isa::BinOp;
use rustc_hash::FxHashMap;

/// Elements that the iterations of a loop write together, at most.
const MOST: usize = 1 << 16;

/// Where elements are marked that are written.
struct Marks {
    tile: Tile,
    element: u32,
    rows: usize,
    cols: usize,
    written: Vec<bool>,
    /// Guards on rows and columns.
    limits: [Option<SymbolicOffset>; 2],
    /// Elements that were marked, also twice.
    steps: usize,
}

/// The iteration that is looked at: indices of loops.
type Indices = FxHashMap<Value, i64>;

impl<'k> ByteInterpreter<'k> {
    /// What all copies in the iterations of `f` write together.
    pub(super) fn parts_of(&mut self, f: &'k For, body: &mut Body) -> Vec<Cover> {
        let mut marks = Vec::new();
        if self.mark_loop(f, body, &mut Indices::default(), &mut marks).is_none() {
            return Vec::new();
        }
        marks.iter().filter_map(rectangle).collect()
    }

    /// `None`: too much, or not known.
    fn mark_loop(&mut self, f: &'k For, body: &mut Body, at: &mut Indices, marks: &mut Vec<Marks>) -> Option<()> {
        let (lo, hi) = (self.whole(f.lo, body, at)?, self.whole(f.hi, body, at)?);
        if jumps(&f.body) || hi.checked_sub(lo)? > MOST as i64 || !writes_parts(&f.body) {
            return None;
        }
        for index in lo..hi {
            at.insert(f.index, index);
            self.mark_region(&f.body, body, at, marks)?;
        }
        at.remove(&f.index);
        Some(())
    }

    fn mark_region(
        &mut self,
        region: &'k [Stmt],
        body: &mut Body,
        at: &mut Indices,
        marks: &mut Vec<Marks>,
    ) -> Option<()> {
        for stmt in region {
            match &stmt.op {
                Op::For(f) if writes_parts(&f.body) => self.mark_loop(f, body, at, marks)?,
                Op::Scope(s) => self.mark_region(&s.body, body, at, marks)?,
                Op::Copy(copy) => self.mark_copy(copy, body, at, marks)?,
                _ => {}
            }
        }
        Some(())
    }

    /// Copies that are not followed mark nothing.
    fn mark_copy(&mut self, copy: &Copy, body: &mut Body, at: &Indices, marks: &mut Vec<Marks>) -> Option<()> {
        let NestAccess::Tile { tile, row, col } = &copy.dst else { return Some(()) };
        let known = self.points(copy, (row, col), body, at);
        let Some((points, limits)) = known else { return Some(()) };
        let Some(m) = self.marks_of(tile, body, marks) else { return Some(()) };
        m.steps = m.steps.checked_add(points.len()).filter(|n| *n <= MOST)?;
        for (limit, new) in m.limits.iter_mut().zip(limits) {
            match (*limit, new) {
                (Some(a), Some(b)) if a != b => return None,
                (None, Some(b)) => *limit = Some(b),
                _ => {}
            }
        }
        for (r, c) in points {
            let (Ok(r), Ok(c)) = (usize::try_from(r), usize::try_from(c)) else { continue };
            if r < m.rows && c < m.cols {
                m.written[r * m.cols + c] = true;
            }
        }
        Some(())
    }

    fn marks_of<'m>(&mut self, r: &TileRef, body: &mut Body, marks: &'m mut Vec<Marks>) -> Option<&'m mut Marks> {
        let data = &self.kernel.tiles[r.tile];
        let fixed = data.addr != ptoc_ir::tile::AddrKind::Dynamic && !body.declared.contains(&r.tile);
        if !fixed || r.origin.is_some() {
            return None;
        }
        let count = data.count;
        let element = r.element.map_or(Some(SymbolicOffset::known(0)), |v| self.number(v, body))?.constant();
        let element = element.and_then(|n| u32::try_from(n).ok()).filter(|n| *n < count)?;
        let found = marks.iter().position(|m| m.tile == r.tile && m.element == element);
        if let Some(k) = found {
            return marks.get_mut(k);
        }
        let (rows, cols) = (r.rows as usize, r.cols as usize);
        let written = vec![false; rows.checked_mul(cols).filter(|n| *n <= MOST)?];
        marks.push(Marks { tile: r.tile, element, rows, cols, written, limits: [None; 2], steps: 0 });
        marks.last_mut()
    }

    /// Row and column of each element that is written, and how far guards on them let it go.
    #[allow(clippy::type_complexity, reason = "a list of elements and two bounds")]
    fn points(
        &mut self,
        copy: &Copy,
        (row, col): (&Affine, &Affine),
        body: &mut Body,
        at: &Indices,
    ) -> Option<(Vec<(i64, i64)>, [Option<SymbolicOffset>; 2])> {
        let mut extents = Vec::new();
        for e in &copy.extents {
            extents.push(self.whole(*e, body, at)?);
        }
        let total = extents.iter().try_fold(1i64, |n, e| n.checked_mul(*e))?;
        if total > MOST as i64 {
            return None;
        }
        let rows = self.along(row, &extents, body, at)?;
        let cols = self.along(col, &extents, body, at)?;
        let mut there = vec![true; rows.len()];
        let mut limits = [None; 2];
        // Where a fill is written, guards leave nothing out.
        for g in copy.guards.iter().filter(|_| copy.fill.is_none()) {
            let mut coordinate = self.along(&g.at, &extents, body, at)?;
            let Some((axis, bound)) =
                self.limit(g.bound, &mut coordinate, [&rows, &cols], &mut there, (&mut *body, at))?
            else {
                continue;
            };
            if limits[axis].is_some_and(|old| old != bound) {
                return None;
            }
            limits[axis] = Some(bound);
        }
        let all = rows.into_iter().zip(cols).zip(there);
        Some((all.filter(|(_, there)| *there).map(|(p, _)| p).collect(), limits))
    }

    /// A guard `coordinate < bound`: as far as the bound is a number, it says which points are `there`. What is left of
    /// it is a limit of rows or columns, if there is one. `first + k < n` may be written as
    /// `k < min(max(n - first, 0), count)`: how much of a thread's part exists.
    #[allow(clippy::type_complexity, reason = "an axis and a bound, if there is one, if it is known")]
    fn limit(
        &mut self,
        mut bound: Value,
        coordinate: &mut [i64],
        axes: [&[i64]; 2],
        there: &mut [bool],
        (body, at): (&mut Body, &Indices),
    ) -> Option<Option<(usize, SymbolicOffset)>> {
        loop {
            if let Some(n) = self.whole(bound, body, at) {
                there.iter_mut().zip(&*coordinate).for_each(|(t, c)| *t &= *c < n);
                return Some(None);
            }
            if let Some(axis) = axes.iter().position(|axis| **axis == *coordinate)
                && let Some(n) = self.number(bound, body)
            {
                return Some(Some((axis, n)));
            }
            let (op, a, b) = operands(bound, body)?;
            let (x, y) = (self.whole(a, body, at), self.whole(b, body, at));
            bound = match (op, x, y) {
                (BinOp::Min, Some(n), None) | (BinOp::Min, None, Some(n)) => {
                    there.iter_mut().zip(&*coordinate).for_each(|(t, c)| *t &= *c < n);
                    if x.is_some() { b } else { a }
                }
                (BinOp::Max, Some(n), None) | (BinOp::Max, None, Some(n)) if coordinate.iter().all(|c| *c >= n) => {
                    if x.is_some() { b } else { a }
                }
                // The bound is less than `a`: if it wraps around, `a` is far below all rows and columns.
                (BinOp::Sub, None, Some(n)) if n >= 0 => {
                    coordinate.iter_mut().try_for_each(|c| c.checked_add(n).map(|sum| *c = sum))?;
                    a
                }
                _ => return None,
            };
        }
    }

    /// The values of an affine function at all points of a nest.
    fn along(&mut self, f: &Affine, extents: &[i64], body: &mut Body, at: &Indices) -> Option<Vec<i64>> {
        let mut all = vec![self.whole(f.start, body, at)?];
        for (extent, stride) in extents.iter().zip(&f.strides) {
            let step = self.whole(*stride, body, at)?;
            let next = |(i, v): (i64, &i64)| v.checked_add(i.checked_mul(step)?);
            all = (0..*extent).flat_map(|i| all.iter().map(move |v| (i, v))).map(next).collect::<Option<_>>()?;
        }
        Some(all)
    }

    /// A number in this iteration.
    fn whole(&mut self, v: Value, body: &mut Body, at: &Indices) -> Option<i64> {
        if let Some(n) = at.get(&v) {
            return Some(*n);
        }
        if let Some(Def::Const(n)) = body.defs.get(&v) {
            return Some(*n);
        }
        let (op, a, b) = match operands(v, body) {
            Some(operation) => operation,
            None if body.other.contains(&v) => return None,
            None => return self.numbers.get(v).constant(),
        };
        let (a, b) = (self.whole(a, body, at)?, self.whole(b, body, at)?);
        match op {
            BinOp::Add => a.checked_add(b),
            BinOp::Sub => a.checked_sub(b),
            BinOp::Mul => a.checked_mul(b),
            BinOp::Div if a >= 0 && b > 0 => Some(a / b),
            BinOp::Rem if a >= 0 && b > 0 => Some(a % b),
            BinOp::Min => Some(a.min(b)),
            BinOp::Max => Some(a.max(b)),
            _ => None,
        }
    }
}

/// The operation in the body that computes it.
fn operands(v: Value, body: &Body) -> Option<(BinOp, Value, Value)> {
    match body.defs.get(&v) {
        Some(&Def::Binary(op, a, b)) => Some((op, a, b)),
        Some(Def::Const(_)) => None,
        None => body.others.get(&v).copied(),
    }
}

/// Whether there is a copy in it that does not write the whole of a tile.
pub(super) fn writes_parts(region: &[Stmt]) -> bool {
    region.iter().any(|s| match &s.op {
        Op::Copy(c) => matches!(c.dst, NestAccess::Tile { .. }) && !c.covers,
        op => op.regions().any(|r| writes_parts(r)),
    })
}

/// What is written, if it is all of a rectangle.
fn rectangle(m: &Marks) -> Option<Cover> {
    let marked = || m.written.iter().enumerate().filter(|(_, w)| **w).map(|(k, _)| (k / m.cols, k % m.cols));
    let span = |of: &dyn Fn((usize, usize)) -> usize| {
        let first = marked().map(of).min()?;
        Some((first, marked().map(of).max()? + 1))
    };
    let (rows, cols) = (span(&|p| p.0)?, span(&|p| p.1)?);
    if marked().count() != (rows.1 - rows.0) * (cols.1 - cols.0) {
        return None;
    }
    let known = |n: usize| i64::try_from(n).ok().map(SymbolicOffset::known);
    let axis = |(first, end): (usize, usize), limit: Option<SymbolicOffset>, whole: usize| -> Option<CoveredAxis> {
        match limit {
            None => Some((known(first)?, known(end - first)?)),
            // All that there is of the tile, as far as it is valid.
            Some(n) => ((first, end) == (0, whole)).then_some((SymbolicOffset::known(0), n)),
        }
    };
    let (row, col) = (axis(rows, m.limits[0], m.rows)?, axis(cols, m.limits[1], m.cols)?);
    Some(Cover { tile: m.tile, element: m.element, row, col })
}
