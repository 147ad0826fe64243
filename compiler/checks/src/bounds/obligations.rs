//! What must hold for a statement to stay inside of what it touches.
//!
//! What a nest or a window touches is claimed of every *point*, whatever the signs of its strides: `0 <= at(i)` and
//! `at(i) <= last` for all `i` below the extents at which the guards hold, with entries of tables below theirs.

use super::claim::{Bound, Claim, Entry, Group, Nest, Sum, Uneven, What};
use cranelift_entity::EntityRef;
use ptoc_ir::analysis::facts::Facts;
use ptoc_ir::tile::{
    Affine, Elem, Guard, Inst, Kernel, NestAccess, Op, Operand, PrintPart, TensorId, Tile, TileRef, Value, ViewRef,
};
use ptoc_isa::{BinOp, CmpOp, IndexExpr, Target};
use ptoc_layout::Swizzle;
use std::rc::Rc;

/// Bounds of one access.
struct Bounds<'k> {
    kernel: &'k Kernel,
    facts: &'k Facts,
    out: Vec<Group>,
}

/// Everything that `op` itself must keep.
pub(super) fn obligations(kernel: &Kernel, target: &Target, facts: &Facts, op: &Op) -> Vec<Group> {
    let mut b = Bounds { kernel, facts, out: Vec::new() };
    match op {
        Op::Load { tensor, offset, .. } | Op::Store { tensor, offset, .. } | Op::Atomic { tensor, offset, .. } => {
            let last = Sum::number(-1).and(&kernel.tensors[*tensor].shape, 1);
            b.inside(Sum::of(*offset), last, What::Tensor(*tensor));
        }
        Op::TileGet { tile, row, col, .. } | Op::TileSet { tile, row, col, .. } => {
            b.tile(tile);
            for (what, at, valid) in [("row", *row, tile.valid.0), ("column", *col, tile.valid.1)] {
                let what = What::Element(tile.tile, what);
                b.inside(Sum::of(at), Sum::of(valid).plus(-1), what);
            }
        }
        Op::Assign { tile, element, addr } => {
            let data = &kernel.tiles[*tile];
            b.element(*tile, *element);
            // The larger of all: what is bound keeps every element of the tile inside of its memory.
            let last = target.capacity(data.ty.loc) as i64 - data.ty.bytes() as i64;
            b.inside(Sum::of(*addr), Sum::number(last), What::Address(*tile));
        }
        Op::Inst(inst) => b.inst(inst),
        Op::Copy(copy) => {
            // What is filled is touched where guards fail, too.
            let filled = if copy.fill.is_some() { &[] } else { &copy.guards[..] };
            b.side(&copy.dst, &copy.extents, filled);
            b.side(&copy.src, &copy.extents, &copy.guards);
        }
        Op::Mma(mma) => {
            let extents: Vec<Value> = [&mma.m, &mma.n, &mma.k].into_iter().flatten().copied().collect();
            for side in [&mma.acc, &mma.a, &mma.b] {
                b.side(side, &extents, &[]);
            }
        }
        Op::Print { parts } => parts.iter().for_each(|p| {
            if let PrintPart::Tile(t) = p {
                b.tile(t);
            }
        }),
        _ => {}
    }
    b.out
}

impl Bounds<'_> {
    /// `0 <= at` and `at <= last`
    fn inside(&mut self, at: Sum, last: Sum, what: What) {
        self.points((at, 1), last, &[], None, (None, what));
    }

    /// `0 <= at` and `at * scale <= last` at every point of the nest.
    fn points(
        &mut self,
        (at, scale): (Sum, i64),
        last: Sum,
        unless_empty: &[Value],
        nest: Option<&Rc<Nest>>,
        (swizzle, what): (Option<Uneven>, What),
    ) {
        // Most have no axis but those of one element.
        let nest = nest.filter(|n| ***n != Nest::default()).cloned();
        let claim =
            |low, high, swizzle| Claim { low, high, unless_empty: unless_empty.to_vec(), nest: nest.clone(), swizzle };
        let low = claim(Sum::number(0), at.clone(), None);
        let high = claim(at.times(scale), last, swizzle);
        self.out.push([low, high].map(|claim| Bound { claim, what }).to_vec());
    }

    /// The index of axis `k`, as a value that the kernel does not have; `None`: it is 0.
    fn index(&self, k: usize, extent: Value) -> Option<Value> {
        (self.facts.number(extent) != Some(1)).then(|| Value::new(self.kernel.values.len() + k))
    }

    /// `start + sum of strides * indices`
    fn affine(&self, at: &Affine, extents: &[Value]) -> Sum {
        self.strided(at.start, &at.strides, extents)
    }

    fn strided(&self, start: Value, strides: &[Value], extents: &[Value]) -> Sum {
        let mut sum = match self.facts.number(start) {
            Some(n) => Sum::number(n),
            None => Sum::of(start),
        };
        for (k, (&by, &extent)) in strides.iter().zip(extents).enumerate() {
            sum = match (self.index(k, extent), self.facts.number(by)) {
                (None, _) | (_, Some(0)) => sum,
                (Some(index), Some(n)) => sum.and(&[index], n),
                (Some(index), None) => sum.and(&[by, index], 1),
            };
        }
        sum
    }

    fn nest(&self, extents: &[Value], guards: &[Guard]) -> Nest {
        let axes = extents.iter().enumerate().filter_map(|(k, &n)| Some((self.index(k, n)?, n)));
        Nest {
            axes: axes.collect(),
            entries: Vec::new(),
            guards: guards.iter().map(|g| (self.affine(&g.at, extents), g.bound)).collect(),
        }
    }

    fn element(&mut self, tile: Tile, element: Option<Value>) {
        let data = &self.kernel.tiles[tile];
        if let Some(e) = element {
            let last = Sum::number(i64::from(data.count) - 1);
            self.inside(Sum::of(e), last, What::Member(tile));
        }
    }

    /// A window in its tile, its valid shape in the window.
    fn tile(&mut self, t: &TileRef) {
        self.element(t.tile, t.element);
        let ty = self.kernel.tiles[t.tile].ty;
        let axes = [("rows", t.valid.0, t.rows, ty.rows), ("columns", t.valid.1, t.cols, ty.cols)];
        for (k, (what, valid, window, capacity)) in axes.into_iter().enumerate() {
            let exceeds = What::Valid(t.tile, what, window);
            self.inside(Sum::of(valid), Sum::number(i64::from(window)), exceeds);
            if let Some(origin) = t.origin {
                let at = if k == 0 { origin.0 } else { origin.1 };
                let nest = Rc::new(self.nest(&[valid], &[]));
                let at = nest.axes.iter().fold(Sum::of(at), |at, (index, _)| at.and(&[*index], 1));
                let last = Sum::number(i64::from(capacity) - 1);
                let what = What::Window(t.tile, what, capacity);
                self.points((at, 1), last, &[t.valid.0, t.valid.1], Some(&nest), (None, what));
            }
        }
    }

    fn view(&mut self, v: &ViewRef) {
        let nest = Rc::new(self.nest(&v.shape, &[]));
        let at = self.strided(v.offset, &v.strides, &v.shape);
        let last = Sum::number(-1).and(&self.kernel.tensors[v.tensor].shape, 1);
        self.points((at, 1), last, &v.shape, Some(&nest), (None, What::Tensor(v.tensor)));
    }

    fn inst(&mut self, inst: &Inst) {
        for operand in &inst.operands {
            match operand {
                Operand::Tile(t) => self.tile(t),
                Operand::View(v) => self.view(v),
                Operand::Scalar(_) => {}
            }
        }
        inst.scratch.iter().for_each(|t| self.tile(t));
        // Where an instruction's index operands say what it touches.
        for need in inst.instr.get().sem.needs().iter().filter(|n| n.op != CmpOp::Eq) {
            if let (Some(low), Some(high)) = (self.num(&need.left, inst), self.num(&need.right, inst)) {
                let what = What::Need(inst.instr.get().written_name(), need.what);
                let claim = Claim { low, high, unless_empty: Vec::new(), nest: None, swizzle: None };
                self.out.push(vec![Bound { claim, what }]);
            }
        }
    }

    /// A number that an instruction's demand speaks of; `None`: it is more than a sum.
    fn num(&self, n: &IndexExpr, inst: &Inst) -> Option<Sum> {
        let tile = |k: usize| match inst.operands.get(k)? {
            Operand::Tile(t) => Some(t),
            _ => None,
        };
        Some(match *n {
            IndexExpr::Is(n) => Sum::number(n),
            IndexExpr::Rows(k) => Sum::of(tile(k)?.valid.0),
            IndexExpr::Cols(k) => Sum::of(tile(k)?.valid.1),
            IndexExpr::Width(k) => Sum::number(i64::from(tile(k)?.cols)),
            IndexExpr::Size(k) => Sum::number(self.kernel.tiles[tile(k)?.tile].ty.dtype.size() as i64),
            IndexExpr::Arg(k) => match inst.operands.get(k)? {
                Operand::Scalar(v) => Sum::of(*v),
                _ => return None,
            },
            IndexExpr::Bin(op @ (BinOp::Add | BinOp::Sub), a, b) => {
                let (mut a, b) = (self.num(a, inst)?, self.num(b, inst)?);
                let sign = if op == BinOp::Add { 1 } else { -1 };
                a.terms.extend(b.terms.into_iter().map(|(f, n)| (f, sign * n)));
                a.plus(sign * b.constant)
            }
            _ => return None,
        })
    }

    /// One side of a nest.
    fn side(&mut self, side: &NestAccess, extents: &[Value], guards: &[Guard]) {
        let mut nest = self.nest(extents, guards);
        match side {
            NestAccess::Tile { tile, row, col } => {
                self.tile(tile);
                let nest = Rc::new(nest);
                let ty = self.kernel.tiles[tile.tile].ty;
                let (first_row, first_col) = tile.origin.unzip();
                let axes = [(row, tile.rows, first_row, ty.rows), (col, tile.cols, first_col, ty.cols)];
                for (at, window, first, capacity) in axes {
                    let at = self.affine(at, extents);
                    let last = |n: u32| Sum::number(i64::from(n) - 1);
                    let what = (None, What::Point(tile.tile));
                    self.points((at.clone(), 1), last(window), extents, Some(&nest), what);
                    if let Some(first) = first {
                        self.points((at.and(&[first], 1), 1), last(capacity), extents, Some(&nest), what);
                    }
                }
            }
            NestAccess::Tensor { tensor, elem, at, swizzle, tables } => {
                let mut at = self.affine(at, extents);
                for (k, table) in tables.iter().enumerate() {
                    let place = self.affine(&table.at, extents);
                    let last = Sum::number(-1).and(&self.kernel.tensors[table.tensor].shape, 1);
                    let looked_up = Rc::new(nest.clone());
                    let what = (None, What::Tensor(table.tensor));
                    self.points((place.clone(), 1), last, extents, Some(&looked_up), what);
                    // Whatever is done with entries outside, those that count are below the extent.
                    let value = Value::new(self.kernel.values.len() + extents.len() + k);
                    let &ptoc_ir::tile::Table { tensor, stride, extent, oob, .. } = table;
                    nest.entries.push(Entry { value, tensor, at: place, extent, oob });
                    at = at.and(&[stride, value], 1);
                }
                let (last, scale) = self.last(*tensor, *elem);
                let uneven = swizzle.and_then(|s| self.uneven(s, *tensor, *elem));
                self.points((at, scale), last, extents, Some(&Rc::new(nest)), (uneven, What::Tensor(*tensor)));
            }
        }
    }

    /// The largest number of an element, and what it counts in: `number * scale <= last`.
    fn last(&self, tensor: TensorId, elem: Elem) -> (Sum, i64) {
        let data = &self.kernel.tensors[tensor];
        let own = 8 * data.dtype.size() as i64;
        let bits = i64::from(elem.bits());
        // Sizes are powers of two.
        let (each, scale) = ((own / bits).max(1), (bits / own).max(1));
        (Sum::number(-scale).and(&data.shape, each), scale)
    }

    /// A swizzle of elements that do not surely fill whole blocks of it.
    fn uneven(&self, swizzle: Swizzle, tensor: TensorId, elem: Elem) -> Option<Uneven> {
        let data = &self.kernel.tensors[tensor];
        let (own, bits) = (8 * data.dtype.size() as i64, i64::from(elem.bits()));
        let (each, scale, block) = ((own / bits).max(1), (bits / own).max(1), swizzle.block());
        let twos: u32 = data.shape.iter().map(|&n| self.facts.twos(n)).sum();
        if twos + each.trailing_zeros() >= block.trailing_zeros() + scale.trailing_zeros() {
            return None;
        }
        let mut extents = data.shape.iter().map(|&n| self.facts.number(n));
        let room = match extents.try_fold(each, |product, n| product.checked_mul(n?)) {
            Some(n) => n % (scale * block),
            None => scale * block - 1,
        };
        Some(Uneven { swizzle, scale, room })
    }
}
