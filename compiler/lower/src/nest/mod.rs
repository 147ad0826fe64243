//! Nests of loops over memory: axes, and numbers that are affine in them. What `copy` and `mma` become before they are
//! loops.
//!
//! Everything that a nest computes from its axes (addresses, places in tables, guarded coordinates) is a [`Form`] of
//! the nest, so that joining, splitting and ordering axes is done once for all of them.

mod emit;
mod order;
mod side;

pub(super) use emit::NestEmitter;
pub(super) use order::{copy_order, mergeable};
pub(super) use side::{Lookup, NestSide, Stored};

use super::Lower;
use super::code::FunctionBuilder;
use ptoc_ir::loops::{BinOp, Reg};
use ptoc_ir::tile::{Affine, Guard as IrGuard, Value};

/// Number of a function of the axes.
pub(super) type Form = usize;

/// `start + sum(steps[i] * axis[i])`
#[derive(Clone, Debug)]
pub(super) struct Lin {
    pub(super) start: Reg,
    /// One an axis.
    pub(super) steps: Vec<Reg>,
}

/// One loop.
#[derive(Clone, Debug)]
pub(super) struct NestAxis {
    pub(super) extent: Reg,
    /// Place in the order of the interpreter, slowest first; parts of a split axis have that of the whole.
    pub(super) rank: usize,
    /// Must not be joined with others or moved behind those that are free.
    pub(super) pinned: bool,
}

/// A condition on the elements: `at < bound`.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub(super) at: Form,
    pub(super) bound: Reg,
    /// An element that fails it exists, so that it is filled. Not so if an axis was only rounded up to whole parts.
    pub(super) real: bool,
}

/// Axes and what depends on them.
#[derive(Clone, Default, Debug)]
pub(super) struct Nest {
    /// From [`copy_order`] on: the outermost loop first.
    pub(super) axes: Vec<NestAxis>,
    pub(super) forms: Vec<Lin>,
    pub(super) guards: Vec<Guard>,
}

impl Nest {
    /// Axes that are numbered as in tile IR.
    pub(super) fn new(extents: Vec<Reg>) -> Nest {
        // The interpreter counts with the first axis as the fastest.
        let axes = (0..extents.len()).rev().zip(extents);
        Nest { axes: axes.map(|(rank, extent)| NestAxis { extent, rank, pinned: false }).collect(), ..Nest::default() }
    }

    pub(super) fn form(&mut self, lin: Lin) -> Form {
        self.forms.push(lin);
        self.forms.len() - 1
    }

    /// Whether axis `a` moves form `f`, as far as is known.
    pub(super) fn moves(&self, code: &FunctionBuilder, a: usize, f: Form) -> bool {
        code.known(self.forms[f].steps[a]) != Some(0)
    }

    /// Whether there is surely no element.
    pub(super) fn is_empty(&self, code: &FunctionBuilder) -> bool {
        self.axes.iter().any(|a| code.known(a.extent).is_some_and(|n| n <= 0))
    }

    /// Pins the axes that decide which entry of a table is the first one that is wrong: those of the tables, and those
    /// of guards that do not become stricter along them.
    pub(super) fn pin(&mut self, code: &FunctionBuilder, tables: &[Lookup]) {
        if tables.is_empty() {
            return;
        }
        for a in 0..self.axes.len() {
            let steps = |f: Form| code.known(self.forms[f].steps[a]);
            self.axes[a].pinned = tables.iter().any(|t| steps(t.at) != Some(0))
                || self.guards.iter().any(|g| steps(g.at).is_none_or(|t| t < 0));
        }
    }

    pub(super) fn remove(&mut self, axis: usize) {
        self.axes.remove(axis);
        self.forms.iter_mut().for_each(|f| {
            f.steps.remove(axis);
        });
    }

    /// Axes of one element are none.
    pub(super) fn drop_single(&mut self, code: &FunctionBuilder) {
        for a in (0..self.axes.len()).rev() {
            if code.known(self.axes[a].extent) == Some(1) {
                self.remove(a);
            }
        }
    }

    /// Joins axes that follow each other evenly in every form, wherever `may` allows the inner and the outer one.
    pub(super) fn merge(&mut self, code: &mut FunctionBuilder, may: &dyn Fn(&Nest, usize, usize) -> bool) {
        while let Some((i, j)) = self.joinable(code, may) {
            let (a, b) = (&self.axes[i], &self.axes[j]);
            let rank = a.rank.min(b.rank);
            self.axes[i] = NestAxis { extent: code.bin(BinOp::Mul, a.extent, b.extent), rank, pinned: false };
            self.remove(j);
        }
    }

    fn joinable(&self, code: &FunctionBuilder, may: &dyn Fn(&Nest, usize, usize) -> bool) -> Option<(usize, usize)> {
        let n = self.axes.len();
        let pairs = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
        pairs.filter(|(i, j)| i != j).find(|&(i, j)| {
            let follows = |f: &Lin| code.is_product(f.steps[j], self.axes[i].extent, f.steps[i]);
            may(self, i, j) && self.forms.iter().all(follows)
        })
    }

    /// Splits an axis into one of `n` and, right behind it, one of the rest rounded up. A guard excludes what the
    /// rounding has added.
    pub(super) fn split(&mut self, code: &mut FunctionBuilder, axis: usize, n: i64) {
        let extent = self.axes[axis].extent;
        let whole = match code.known(extent) {
            Some(e) => e % n == 0,
            None => n.count_ones() == 1 && code.power(extent) >= n as u64,
        };
        let (parts, rounded) = (code.int(n), code.plus(extent, if whole { 0 } else { n - 1 }));
        self.divide(code, axis, n, rounded);
        if !whole {
            let zero = code.int(0);
            let mut steps = vec![zero; self.axes.len()];
            (steps[axis], steps[axis + 1]) = (code.int(1), parts);
            let at = self.form(Lin { start: zero, steps });
            self.guards.push(Guard { at, bound: extent, real: false });
        }
    }

    /// Splits an axis whose extent is a multiple of `n`, where this code runs.
    pub(super) fn split_evenly(&mut self, code: &mut FunctionBuilder, axis: usize, n: i64) {
        let extent = self.axes[axis].extent;
        self.divide(code, axis, n, extent);
    }

    /// Makes an axis one of `n` and, right behind it, one of `extent / n`.
    fn divide(&mut self, code: &mut FunctionBuilder, axis: usize, n: i64, extent: Reg) {
        let NestAxis { rank, pinned, .. } = self.axes[axis];
        let parts = code.int(n);
        let rest = code.bin(BinOp::DivFloor, extent, parts);
        self.axes[axis].extent = parts;
        self.axes.insert(axis + 1, NestAxis { extent: rest, rank, pinned });
        for f in &mut self.forms {
            let step = code.times(f.steps[axis], n);
            f.steps.insert(axis + 1, step);
        }
    }

    /// Orders the axes as the interpreter goes: the first one innermost.
    pub(super) fn slowest_first(&mut self) {
        let order: Vec<usize> = (0..self.axes.len()).rev().collect();
        self.permute(&order);
    }

    /// Puts the axes into this order.
    pub(super) fn permute(&mut self, order: &[usize]) {
        self.axes = order.iter().map(|&a| self.axes[a].clone()).collect();
        for f in &mut self.forms {
            f.steps = order.iter().map(|&a| f.steps[a]).collect();
        }
    }
}

impl Lower<'_> {
    /// A function of the axes in units of `scale`.
    pub(super) fn lin(&mut self, a: &Affine, scale: i64) -> Lin {
        let scaled = |this: &mut Self, v: Value| {
            let reg = this.value(v);
            this.code.times(reg, scale)
        };
        Lin { start: scaled(self, a.start), steps: a.strides.iter().map(|&s| scaled(self, s)).collect() }
    }

    pub(super) fn nest(&mut self, extents: &[Value], guards: &[IrGuard]) -> Nest {
        let mut nest = Nest::new(extents.iter().map(|&v| self.value(v)).collect());
        for guard in guards {
            let lin = self.lin(&guard.at, 1);
            let (at, bound) = (nest.form(lin), self.value(guard.bound));
            nest.guards.push(Guard { at, bound, real: true });
        }
        nest
    }
}
