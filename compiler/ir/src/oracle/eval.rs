//! Evaluation, many values of one index variable at a time.
//!
//! At any moment one variable, the *lane variable*, stands for a run of consecutive values; every other bound variable
//! has one value. What does not depend on the lane variable is computed once. A reduction makes its own variable the
//! lane variable, for each outer lane in turn.

use super::node::{Int, IntKind, Node, NodeKind};
use super::num::{OracleNumber, bits, elements, fold_op};
use super::work::Sample;
use super::{Equation, Inputs, IntOp, MAX_VARS, OracleError, ReduceKind, Sampled};
use crate::scalar;
use crate::tile::Ty;
use ptoc_isa::BinOp;

type Res<T> = Result<T, OracleError>;

/// Values at a time.
const LANES: usize = 256;

/// Largest tensor that an equation is evaluated for.
const MAX_ELEMENTS: u64 = 1 << 32;

/// A value in every lane.
#[derive(Clone)]
enum Value<T> {
    Same(T),
    Lanes(Vec<T>),
}

impl<T: Copy> Value<T> {
    fn at(&self, lane: usize) -> T {
        match self {
            Value::Same(x) => *x,
            Value::Lanes(xs) => xs[lane],
        }
    }

    fn into_lanes(self, lanes: usize) -> Vec<T> {
        match self {
            Value::Same(x) => vec![x; lanes],
            Value::Lanes(xs) => xs,
        }
    }
}

/// An index in every lane.
enum Index {
    /// `base + lane * step`
    Affine {
        base: i64,
        step: i64,
    },
    Lanes(Vec<i64>),
}

impl Index {
    fn at(&self, lane: usize) -> i64 {
        match self {
            // Both ends were checked when it was made.
            Index::Affine { base, step } => base.wrapping_add((lane as i64).wrapping_mul(*step)),
            Index::Lanes(xs) => xs[lane],
        }
    }
}

pub(super) struct Eval<'a, T> {
    inputs: Inputs<'a>,
    /// Elements of the tensors that values are taken from, when first needed.
    tensors: Vec<Option<Vec<T>>>,
    vars: [i64; MAX_VARS],
    /// The lane variable, and the number of lanes. Its entry in `vars` is lane 0's.
    lane: Option<usize>,
    lanes: usize,
    locals: Vec<Option<Value<T>>>,
}

/// Evaluates an equation for every element of the sample: the runs of elements that were evaluated, and their values; 0
/// for the others.
pub(super) fn equation<T: OracleNumber>(
    eq: &Equation,
    node: &Node,
    locals: usize,
    inputs: Inputs<'_>,
    sample: Sample,
) -> Res<Sampled<T>> {
    let tensor = inputs.tensors.get(eq.tensor).ok_or(OracleError::Malformed("a tensor that is not there"))?;
    if tensor.shape.len() != eq.vars.len() {
        return Err(OracleError::Malformed("as many variables as the tensor has modes are needed"));
    }
    let total = tensor.shape.iter().try_fold(1u64, |n, &e| n.checked_mul(e)).filter(|&n| n <= MAX_ELEMENTS);
    let Some(total) = total else { return Err(OracleError::Malformed("the tensor is too large")) };
    let mut e = Eval::new(inputs, locals);
    let mut out = Vec::with_capacity(total as usize);
    let Some((&last, outer)) = eq.vars.split_last() else {
        out.push(e.value(node)?.at(0));
        return Ok(Sampled { values: out, skipped: Vec::new() });
    };
    let row = tensor.shape[outer.len()] as i64;
    let (mut run, mut skipped) = (0, Vec::new());
    if total == 0 {
        return Ok(Sampled { values: out, skipped });
    }
    loop {
        e.runs(last, 0, row, |e| {
            let (lanes, begin) = (e.lanes, out.len());
            match sample.takes(run, (begin + lanes) as u64 == total) {
                true => out.extend(e.value(node)?.into_lanes(lanes)),
                false => {
                    out.resize(begin + lanes, T::from_int(0));
                    skipped.push(begin..begin + lanes);
                }
            }
            run += 1;
            Ok(true)
        })?;
        if out.len() as u64 >= total {
            return Ok(Sampled { values: out, skipped });
        }
        for (&var, &extent) in outer.iter().zip(tensor.shape).rev() {
            e.vars[var] += 1;
            if (e.vars[var] as u64) < extent {
                break;
            }
            e.vars[var] = 0;
        }
    }
}

/// The first values for which a condition fails.
pub(super) fn counterexample<T: OracleNumber>(
    vars: &[(usize, Int, Int)],
    node: &Node,
    locals: usize,
    inputs: Inputs<'_>,
) -> Res<Option<Vec<i64>>> {
    let mut e = Eval::<T>::new(inputs, locals);
    let found = e.search(vars, node)?;
    Ok(found.then(|| vars.iter().map(|(v, ..)| e.vars[*v]).collect()))
}

/// Both sides of a relation, for all values of its variables.
pub(super) fn pairs<T: OracleNumber>(
    vars: &[(usize, Int, Int)],
    sides: (&Node, &Node),
    locals: usize,
    inputs: Inputs<'_>,
    f: &mut dyn FnMut(&[i64], T, T),
) -> Res<()> {
    let mut e = Eval::<T>::new(inputs, locals);
    e.pairs(vars, sides, &mut Vec::new(), f)
}

impl<'a, T: OracleNumber> Eval<'a, T> {
    pub(super) fn new(inputs: Inputs<'a>, locals: usize) -> Eval<'a, T> {
        Eval {
            inputs,
            tensors: vec![None; inputs.tensors.len()],
            vars: [0; MAX_VARS],
            lane: None,
            lanes: 1,
            locals: vec![None; locals],
        }
    }

    /// Sets the variables to a counterexample, if there is one.
    fn search(&mut self, vars: &[(usize, Int, Int)], node: &Node) -> Res<bool> {
        let Some(((var, lo, hi), rest)) = vars.split_first() else { return Ok(!self.value(node)?.at(0).truth()) };
        let (lo, hi) = (self.int_at(lo, 0)?, self.int_at(hi, 0)?);
        if rest.is_empty() {
            let mut found = None;
            self.runs(*var, lo, hi, |e| {
                let value = e.value(node)?;
                let lane = (0..e.lanes).find(|&l| !value.at(l).truth());
                found = lane.map(|l| e.vars[*var] + l as i64);
                Ok(found.is_none())
            })?;
            if let Some(x) = found {
                self.vars[*var] = x;
            }
            return Ok(found.is_some());
        }
        for x in lo..hi {
            self.vars[*var] = x;
            if self.search(rest, node)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Calls `f` with the values of all variables, those before `vars` in `at`, and of both sides.
    fn pairs(
        &mut self,
        vars: &[(usize, Int, Int)],
        (left, right): (&Node, &Node),
        at: &mut Vec<i64>,
        f: &mut dyn FnMut(&[i64], T, T),
    ) -> Res<()> {
        let Some(((var, lo, hi), rest)) = vars.split_first() else {
            f(at, self.value(left)?.at(0), self.value(right)?.at(0));
            return Ok(());
        };
        let (lo, hi) = (self.int_at(lo, 0)?, self.int_at(hi, 0)?);
        if rest.is_empty() {
            return self.runs(*var, lo, hi, |e| {
                let (a, b) = (e.value(left)?, e.value(right)?);
                for l in 0..e.lanes {
                    at.push(e.vars[*var] + l as i64);
                    f(at, a.at(l), b.at(l));
                    at.pop();
                }
                Ok(true)
            });
        }
        for x in lo..hi {
            self.vars[*var] = x;
            at.push(x);
            self.pairs(rest, (left, right), at, f)?;
            at.pop();
        }
        Ok(())
    }

    /// Runs `f` for `var` in `lo..hi`, in runs of lanes, until it returns false.
    fn runs(&mut self, var: usize, lo: i64, hi: i64, mut f: impl FnMut(&mut Self) -> Res<bool>) -> Res<()> {
        let outer = (self.lane, self.lanes, self.vars[var]);
        let mut at = lo;
        while at < hi {
            self.lane = Some(var);
            self.lanes = (i128::from(hi) - i128::from(at)).min(LANES as i128) as usize;
            self.vars[var] = at;
            if !f(self)? {
                break;
            }
            at += self.lanes as i64;
        }
        (self.lane, self.lanes, self.vars[var]) = outer;
        Ok(())
    }

    /// Runs `f` as if lane `lane` were the only one.
    fn single<R>(&mut self, lane: usize, f: impl FnOnce(&mut Self) -> Res<R>) -> Res<R> {
        let Some(var) = self.lane else { return f(self) };
        let (lanes, start) = (self.lanes, self.vars[var]);
        let locals = self.locals.clone();
        for value in self.locals.iter_mut().flatten() {
            *value = Value::Same(value.at(lane));
        }
        (self.lane, self.lanes, self.vars[var]) = (None, 1, start + lane as i64);
        let result = f(self);
        (self.lane, self.lanes, self.vars[var]) = (Some(var), lanes, start);
        self.locals = locals;
        result
    }

    fn varies(&self, deps: u64) -> bool {
        self.lane.is_some_and(|v| deps >> v & 1 == 1)
    }

    // ---- indices -------------------------------------------------------------------------------------------------

    pub(super) fn int_at(&mut self, i: &Int, lane: usize) -> Res<i64> {
        Ok(self.int(i)?.at(lane))
    }

    fn int(&mut self, i: &Int) -> Res<Index> {
        let same = |x| Ok(Index::Affine { base: x, step: 0 });
        match &i.kind {
            IntKind::Const(x) => same(*x),
            IntKind::Var(v) => Ok(Index::Affine { base: self.vars[*v], step: i64::from(self.lane == Some(*v)) }),
            IntKind::Input(n) => {
                same(*self.inputs.ints.get(*n).ok_or(OracleError::Malformed("a launch integer that is not there"))?)
            }
            IntKind::Extent(tensor, mode) => {
                let extent = self.inputs.tensors.get(*tensor).and_then(|t| t.shape.get(*mode));
                let extent = extent.ok_or(OracleError::Malformed("an extent that is not there"))?;
                same(i64::try_from(*extent).map_err(|_| OracleError::Overflow)?)
            }
            IntKind::Elem(tensor, index) => {
                let lanes = if self.varies(i.deps) { self.lanes } else { 1 };
                let offsets = self.offsets(*tensor, index)?;
                let t = self.inputs.tensors[*tensor];
                let size = t.dtype.size();
                let mut out = Vec::with_capacity(lanes);
                for l in 0..lanes {
                    let at = offsets.at(l) as usize * size;
                    let raw = t.data.get(at..at + size).ok_or(OracleError::Malformed("a tensor without data"))?;
                    if t.dtype.is_float() {
                        return Err(OracleError::NotInteger);
                    }
                    let x = scalar::to_int(Ty::D(t.dtype), bits(t.dtype, raw));
                    out.push(i64::try_from(x).map_err(|_| OracleError::Overflow)?);
                }
                if lanes == 1 && self.lanes != 1 { same(out[0]) } else { Ok(Index::Lanes(out)) }
            }
            IntKind::Binary(op, a, b) => {
                let (a, b) = (self.int(a)?, self.int(b)?);
                self.int_binary(*op, &a, &b)
            }
        }
    }

    fn int_binary(&self, op: IntOp, a: &Index, b: &Index) -> Res<Index> {
        if let (&Index::Affine { base: x, step: s }, &Index::Affine { base: y, step: t }) = (a, b) {
            let affine = match op {
                IntOp::Add => Some((x.checked_add(y), s.checked_add(t))),
                IntOp::Sub => Some((x.checked_sub(y), s.checked_sub(t))),
                IntOp::Mul if t == 0 => Some((x.checked_mul(y), s.checked_mul(y))),
                IntOp::Mul if s == 0 => Some((x.checked_mul(y), t.checked_mul(x))),
                _ if s == 0 && t == 0 => Some((Some(int_op(op, x, y)?), Some(0))),
                _ => None,
            };
            if let Some((base, step)) = affine {
                let (Some(base), Some(step)) = (base, step) else { return Err(OracleError::Overflow) };
                // If both ends fit, everything between them does.
                let end = step.checked_mul(self.lanes as i64 - 1).and_then(|d| base.checked_add(d));
                end.ok_or(OracleError::Overflow)?;
                return Ok(Index::Affine { base, step });
            }
        }
        (0..self.lanes).map(|l| int_op(op, a.at(l), b.at(l))).collect::<Res<Vec<_>>>().map(Index::Lanes)
    }

    /// Offset of an element, every index checked.
    fn offsets(&mut self, tensor: usize, index: &[Int]) -> Res<Index> {
        let t = *self.inputs.tensors.get(tensor).ok_or(OracleError::Malformed("a tensor that is not there"))?;
        if t.shape.len() != index.len() {
            return Err(OracleError::Malformed("an index a mode is needed"));
        }
        let mut offset = Index::Affine { base: 0, step: 0 };
        for (mode, (i, &extent)) in index.iter().zip(t.shape).enumerate() {
            let i = self.int(i)?;
            let outside = |x: i64| u64::try_from(x).map_or(true, |x| x >= extent);
            let ends = match &i {
                Index::Affine { .. } => vec![i.at(0), i.at(self.lanes - 1)],
                Index::Lanes(xs) => xs.clone(),
            };
            if let Some(&index) = ends.iter().find(|&&x| outside(x)) {
                return Err(OracleError::OutOfRange { tensor, mode, index, extent });
            }
            let extent = i64::try_from(extent).map_err(|_| OracleError::Overflow)?;
            let scaled = self.int_binary(IntOp::Mul, &offset, &Index::Affine { base: extent, step: 0 })?;
            offset = self.int_binary(IntOp::Add, &scaled, &i)?;
        }
        Ok(offset)
    }

    // ---- values --------------------------------------------------------------------------------------------------

    fn value(&mut self, node: &Node) -> Res<Value<T>> {
        if self.lanes > 1 && !self.varies(node.deps) {
            // One lane says it all.
            return self.single(0, |e| Ok(Value::Same(e.node(node)?.at(0))));
        }
        self.node(node)
    }

    fn node(&mut self, node: &Node) -> Res<Value<T>> {
        Ok(match &node.kind {
            NodeKind::Const(x) => Value::Same(T::from_real(*x)?),
            NodeKind::Int(i) => match self.int(i)? {
                Index::Affine { base, step: 0 } => Value::Same(T::from_int(base)),
                index => Value::Lanes((0..self.lanes).map(|l| T::from_int(index.at(l))).collect()),
            },
            NodeKind::Scalar(n) => {
                let scalar = self.inputs.scalars.get(*n).ok_or(OracleError::Malformed("a scalar that is not there"))?;
                Value::Same(T::from_bits(scalar.0, scalar.1)?)
            }
            NodeKind::Local(slot) => {
                let value = self.locals.get(*slot).cloned().flatten();
                value.ok_or(OracleError::Malformed("an unbound local"))?
            }
            NodeKind::Elem(tensor, index) => self.element(*tensor, index)?,
            NodeKind::Unary(op, a) => match self.value(a)? {
                Value::Same(x) => Value::Same(T::unary(*op, x)?),
                Value::Lanes(xs) => Value::Lanes(xs.into_iter().map(|x| T::unary(*op, x)).collect::<Res<_>>()?),
            },
            NodeKind::Binary(op, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.binary(*op, a, b)?
            }
            NodeKind::Pow(a, b) => match (self.value(a)?, self.value(b)?) {
                (Value::Same(a), Value::Same(b)) => Value::Same(T::pow(a, b)?),
                (a, b) => Value::Lanes((0..self.lanes).map(|l| T::pow(a.at(l), b.at(l))).collect::<Res<_>>()?),
            },
            NodeKind::Compare(op, a, b) => match (self.value(a)?, self.value(b)?) {
                (Value::Same(a), Value::Same(b)) => Value::Same(T::from_int(i64::from(T::compare(*op, a, b)))),
                (a, b) => {
                    let holds = |l| T::from_int(i64::from(T::compare(*op, a.at(l), b.at(l))));
                    Value::Lanes((0..self.lanes).map(holds).collect())
                }
            },
            NodeKind::Select(cond, a, b) => {
                let cond = self.value(cond)?;
                let first = cond.at(0).truth();
                if (0..self.lanes).all(|l| cond.at(l).truth() == first) {
                    return self.value(if first { a } else { b });
                }
                // Lanes differ: each takes its own branch, as the other one may not be defined for it.
                let mut out = Vec::with_capacity(self.lanes);
                for l in 0..self.lanes {
                    let branch = if cond.at(l).truth() { a } else { b };
                    out.push(self.single(l, |e| e.value(branch))?.at(0));
                }
                Value::Lanes(out)
            }
            NodeKind::Reduce { kind, var, lo, hi, body } => {
                let mut out = Vec::with_capacity(self.lanes);
                for l in 0..self.lanes {
                    out.push(self.single(l, |e| e.reduce(*kind, *var, lo, hi, body))?);
                }
                Value::Lanes(out)
            }
            NodeKind::Rearranged { var, lo, hi, a, b } => {
                let mut out = Vec::with_capacity(self.lanes);
                for l in 0..self.lanes {
                    let same = self.single(l, |e| {
                        let (mut a, mut b) = (e.list(*var, lo, hi, a)?, e.list(*var, lo, hi, b)?);
                        a.sort_by(order);
                        b.sort_by(order);
                        Ok(a.iter().zip(&b).all(|(x, y)| order(x, y).is_eq()))
                    })?;
                    out.push(T::from_int(i64::from(same)));
                }
                Value::Lanes(out)
            }
            NodeKind::Let { slot, value, body } => {
                let value = self.value(value)?;
                let before = self.locals[*slot].replace(value);
                let result = self.value(body);
                self.locals[*slot] = before;
                result?
            }
        })
    }

    fn binary(&self, op: BinOp, a: Value<T>, b: Value<T>) -> Res<Value<T>> {
        Ok(match (a, b) {
            (Value::Same(a), Value::Same(b)) => Value::Same(T::binary(op, a, b)?),
            (a, b) => {
                let (mut a, b) = (a.into_lanes(self.lanes), b.into_lanes(self.lanes));
                T::binary_lanes(op, &mut a, &b)?;
                Value::Lanes(a)
            }
        })
    }

    fn element(&mut self, tensor: usize, index: &[Int]) -> Res<Value<T>> {
        let offsets = self.offsets(tensor, index)?;
        if self.tensors[tensor].is_none() {
            let t = self.inputs.tensors[tensor];
            self.tensors[tensor] = Some(elements(t.dtype, t.data)?);
        }
        let data = self.tensors[tensor].as_deref().unwrap_or_default();
        let get = |at: i64| data.get(at as usize).copied().ok_or(OracleError::Malformed("a tensor without data"));
        Ok(match offsets {
            Index::Affine { base, step: 0 } => Value::Same(get(base)?),
            Index::Affine { base, step: 1 } => {
                let run = data.get(base as usize..base as usize + self.lanes);
                Value::Lanes(run.ok_or(OracleError::Malformed("a tensor without data"))?.to_vec())
            }
            offsets => Value::Lanes((0..self.lanes).map(|l| get(offsets.at(l))).collect::<Res<_>>()?),
        })
    }

    /// The values of `body` for all values of `var`, in a single outer lane.
    fn list(&mut self, var: usize, lo: &Int, hi: &Int, body: &Node) -> Res<Vec<T>> {
        let (lo, hi) = (self.int_at(lo, 0)?, self.int_at(hi, 0)?);
        let mut out = Vec::new();
        self.runs(var, lo, hi, |e| {
            let lanes = e.lanes;
            out.extend(e.value(body)?.into_lanes(lanes));
            Ok(true)
        })?;
        Ok(out)
    }

    /// The place of the largest or smallest of them, counted from `lo`.
    fn argument(&mut self, op: BinOp, var: usize, lo: &Int, hi: &Int, body: &Node) -> Res<T> {
        let values = self.list(var, lo, hi, body)?;
        let better = |x: &T, best: &T| if op == BinOp::Max { x > best } else { x < best };
        let mut best = 0;
        for (i, x) in values.iter().enumerate().skip(1) {
            if !values[best].is_nan() && (x.is_nan() || better(x, &values[best])) {
                best = i;
            }
        }
        let first = self.int_at(lo, 0)?;
        Ok(T::from_int(first + best as i64))
    }

    /// A reduction, in a single outer lane.
    fn reduce(&mut self, kind: ReduceKind, var: usize, lo: &Int, hi: &Int, body: &Node) -> Res<T> {
        match kind {
            ReduceKind::ArgMax | ReduceKind::ArgMin => return self.argument(fold_op(kind), var, lo, hi, body),
            ReduceKind::Permutation => {
                let values = self.list(var, lo, hi, body)?;
                let mut seen = vec![false; values.len()];
                let once = |x: &T| {
                    let place = x.index().and_then(|i| seen.get_mut(i));
                    place.is_some_and(|seen| !std::mem::replace(seen, true))
                };
                return Ok(T::from_int(i64::from(values.iter().all(once))));
            }
            _ => {}
        }
        let (lo, hi) = (self.int_at(lo, 0)?, self.int_at(hi, 0)?);
        let op = fold_op(kind);
        let mut result = T::start(kind);
        self.runs(var, lo, hi, |e| {
            let value = e.value(body)?;
            for l in 0..e.lanes {
                let x = value.at(l);
                result = Some(match result {
                    Some(sum) => T::binary(op, sum, x)?,
                    None => x,
                });
            }
            Ok(true)
        })?;
        result.ok_or(OracleError::EmptyReduction)
    }
}

/// An order of all numbers: NaN is behind them, and equal to itself.
fn order<T: OracleNumber>(a: &T, b: &T) -> std::cmp::Ordering {
    a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn int_op(op: IntOp, a: i64, b: i64) -> Res<i64> {
    let result = match op {
        IntOp::Add => a.checked_add(b),
        IntOp::Sub => a.checked_sub(b),
        IntOp::Mul => a.checked_mul(b),
        IntOp::Div | IntOp::Rem if b == 0 => return Err(OracleError::DivisionByZero),
        IntOp::Div => a.checked_div(b).map(|q| if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q }),
        // The remainder of the one quotient that overflows is 0.
        IntOp::Rem => Some(a.checked_rem(b).map_or(0, |r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r })),
        IntOp::Min => Some(a.min(b)),
        IntOp::Max => Some(a.max(b)),
    };
    result.ok_or(OracleError::Overflow)
}
