//! Counters of rings: numbers of one iteration that are the same, as both are functions of variables that are set
//! alike.

use super::Path;
use ptoc_ir::tile::{Kernel, Op, Region, Value, Var};
use rustc_hash::FxHashMap;

/// What is known of the scalars of a kernel.
pub(super) struct Scalars<'k> {
    pub(super) defs: FxHashMap<Value, &'k Op>,
    /// Where variables are read and set.
    gets: FxHashMap<Value, (Var, Path)>,
    sets: FxHashMap<Var, Vec<(Path, Value)>>,
    /// Where loops are.
    pub(super) loops: Vec<Path>,
}

impl<'k> Scalars<'k> {
    pub(super) fn new(kernel: &'k Kernel) -> Scalars<'k> {
        let (defs, gets, sets) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        let mut out = Scalars { defs, gets, sets, loops: Vec::new() };
        out.region(&kernel.prologue, &[usize::MAX]);
        out.region(&kernel.body, &[]);
        out
    }

    fn region(&mut self, region: &'k Region, at: &[usize]) {
        for (n, stmt) in region.iter().enumerate() {
            let path = [at, &[n]].concat();
            match &stmt.op {
                Op::Get { dst, var } => {
                    self.gets.insert(*dst, (*var, path.clone()));
                }
                Op::Set { var, value } => self.sets.entry(*var).or_default().push((path.clone(), *value)),
                Op::For(_) | Op::While(_) => self.loops.push(path.clone()),
                op if op.is_pure() => self.defs.extend(op.def().map(|v| (v, op))),
                _ => {}
            }
            for (r, inner) in stmt.op.regions().enumerate() {
                self.region(inner, &[&path[..], &[r]].concat());
            }
        }
    }

    /// Whether two numbers of one iteration of the region `here` are the same.
    pub(super) fn same(&self, a: Value, b: Value, here: &[usize]) -> bool {
        a == b
            || match (self.gets.get(&a), self.gets.get(&b)) {
                (Some((x, p)), Some((y, q))) => {
                    let first = |var: &Var, at: &Path| self.is_of_the_start(*var, at, here);
                    first(x, p) && first(y, q) && self.twins(*x, *y)
                }
                (None, None) => self.alike((a, b), &mut |a, b| self.same(a, b, here)),
                _ => false,
            }
    }

    /// The same operation of operands of which this is so.
    fn alike(&self, (a, b): (Value, Value), operands: &mut dyn FnMut(Value, Value) -> bool) -> bool {
        let (Some(x), Some(y)) = (self.defs.get(&a), self.defs.get(&b)) else { return false };
        let of = |op: &Op| {
            let mut values = Vec::new();
            op.for_each_use(&mut |v| values.push(v));
            values
        };
        let same = match (x, y) {
            (Op::Const { value: p, .. }, Op::Const { value: q, .. }) => p == q,
            (Op::Unary { op: p, .. }, Op::Unary { op: q, .. }) => p == q,
            (Op::Binary { op: p, .. }, Op::Binary { op: q, .. }) => p == q,
            (Op::Compare { op: p, .. }, Op::Compare { op: q, .. }) => p == q,
            (Op::Select { .. }, Op::Select { .. }) => true,
            _ => false,
        };
        let (x, y) = (of(x), of(y));
        same && x.len() == y.len() && x.into_iter().zip(y).all(|(a, b)| operands(a, b))
    }

    /// A variable that is read in an iteration of `here` before the iteration sets it.
    fn is_of_the_start(&self, var: Var, at: &Path, here: &[usize]) -> bool {
        let earlier = |(set, _): &(Path, Value)| set.starts_with(here) && set < at;
        at.starts_with(here) && !self.sets.get(&var).is_some_and(|sets| sets.iter().any(earlier))
    }

    /// Counters that are set in the same places, to the same functions of themselves: between those they are equal.
    fn twins(&self, x: Var, y: Var) -> bool {
        if x == y {
            return true;
        }
        let (Some(of_x), Some(of_y)) = (self.sets.get(&x), self.sets.get(&y)) else { return false };
        let alike = |(p, a): &(Path, Value), (q, b): &(Path, Value)| {
            let (Some((m, outer)), Some((n, other))) = (p.split_last(), q.split_last()) else { return false };
            let between = |l: &Path| {
                let at = l.split_last().filter(|(_, region)| *region == outer).map(|(at, _)| *at);
                at.is_some_and(|at| (*m.min(n)..=*m.max(n)).contains(&at))
            };
            outer == other && !self.loops.iter().any(between) && self.functions_of(x, y, (*a, *b))
        };
        of_x.len() == of_y.len() && of_x.iter().zip(of_y).all(|(a, b)| alike(a, b))
    }

    /// The same function of one variable and of another one.
    fn functions_of(&self, x: Var, y: Var, (a, b): (Value, Value)) -> bool {
        match (self.gets.get(&a), self.gets.get(&b)) {
            (Some((p, _)), Some((q, _))) => *p == x && *q == y,
            (None, None) => a == b || self.alike((a, b), &mut |a, b| self.functions_of(x, y, (a, b))),
            _ => false,
        }
    }
}
