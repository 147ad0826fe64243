//! Inequalities between polynomials of `index` values. The latest of the values is replaced by a bound of it, until
//! what is left is a sum of things that are not negative: `(end - 1) * N + (N - 1) < M * N`, for `end <= M`.
//!
//! **Points.** What is claimed of all points of a nest is linear in each index, so it holds if it does at both ends of
//! the index' range. Which end decides is known from the sign of its stride; else both are looked at. A guard `g(i) <
//! bound` bounds several indices together: a multiple of `g(i) - (bound - 1)`, which is not positive, is added so that
//! an index drops out.
//!
//! **Wrapping.** Sums and products are the same modulo 2^64 however they wrap on the way. So if every element that is
//! touched is inside *as an integer*, the machine's numbers are these integers, and what they were computed from need
//! not be exact. What they are compared with, and how far an index counts, must be: and so must all of a single
//! inequality, which says nothing of numbers that wrapped, and definitions below quotients and minima. A guard counts
//! if none of its parts can leave 62 bits.

use super::claim::{Bound, Claim, Nest, Sum};
use ptoc_ir::analysis::facts::Facts;
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::Value;
use ptoc_isa::BinOp;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};

/// Replacements in a row.
const DEPTH: u32 = 12;
/// Steps of one proof.
const STEPS: u32 = 600;
/// Steps of one proof once those of the file are spent: enough for windows in line.
const LITTLE: u32 = 12;
/// Operations that an expression is followed through.
const OPERATIONS: u32 = 24;
/// Ends of ranges of indices that are looked at.
const ENDS: u32 = 64;
/// Magnitudes of a guard's parts, in bits, with which neither it nor what the lowering makes of it wraps.
const GUARD_PART: u32 = 58;
const GUARD_TERMS: usize = 8;

/// A proof under way.
pub(super) struct Prover<'f> {
    facts: &'f Facts,
    steps: Cell<u32>,
    /// Each proof has few steps, and one order of replacements.
    short: bool,
    /// Steps of all of them.
    taken: Cell<u64>,
    /// Ends of ranges that may still be looked at.
    ends: Cell<u32>,
    /// Are bounds of few terms tried before others?
    short_first: Cell<bool>,
    /// What was not shown to be natural, with so many replacements: replacing in another order leads to the same sums.
    failed: RefCell<FxHashMap<Poly, u32>>,
}

impl<'f> Prover<'f> {
    /// `short`: with few steps.
    pub fn new(facts: &'f Facts, short: bool) -> Prover<'f> {
        Prover {
            facts,
            steps: Cell::new(0),
            short,
            taken: Cell::new(0),
            ends: Cell::new(ENDS),
            short_first: Cell::new(false),
            failed: RefCell::default(),
        }
    }

    /// Steps that all proofs took.
    pub fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Do both ends hold, as integers? They are `0 <= what` and `what <= last`.
    pub fn both(&self, bounds: &[Bound]) -> bool {
        bounds.len() == 2 && bounds.iter().zip([true, false]).all(|(b, low)| self.holds(&b.claim, low, !low))
    }

    /// Does the bound hold by itself?
    pub fn alone(&self, claim: &Claim) -> bool {
        self.holds(claim, true, true)
    }

    /// Must definitions on either side be exact?
    fn holds(&self, claim: &Claim, low: bool, high: bool) -> bool {
        let ends = self.sum(&claim.high, high).zip(self.sum(&claim.low, low));
        let room = claim.swizzle.map_or(0, |s| s.room);
        let difference = ends.and_then(|(h, l)| h.plus(&l, -1)?.plus(&Poly::constant(room), -1));
        let Some(difference) = difference else { return false };
        let Some(nest) = &claim.nest else { return self.certain(&difference) };
        self.ends.set(ENDS);
        let entries = nest.entries.iter().map(|e| (e.value, e.extent));
        let ranges: Vec<(Value, Value)> = entries.chain(nest.axes.iter().copied()).collect();
        self.everywhere(&difference, &ranges, &self.guards(nest))
    }

    /// Is it natural, without indices of points?
    fn certain(&self, p: &Poly) -> bool {
        // Bounds by what a value was computed from lead through windows of tensors, numbers through those of tiles.
        let orders: &[bool] = if self.short { &[false] } else { &[false, true] };
        orders.iter().any(|&short_first| {
            self.begin(short_first);
            self.natural(p, DEPTH)
        })
    }

    fn begin(&self, short_first: bool) {
        self.steps.set(if self.short { LITTLE } else { STEPS });
        self.short_first.set(short_first);
        self.failed.borrow_mut().clear();
    }

    /// Is it natural for all indices below these extents, as far as the guards allow them (which are at most 0)?
    fn everywhere(&self, p: &Poly, ranges: &[(Value, Value)], guards: &[Poly]) -> bool {
        let Some((&(index, extent), others)) = ranges.split_last() else { return self.certain(p) };
        let Some((a, rest)) = p.split(index) else { return false };
        if a.number() == Some(0) {
            return self.everywhere(p, others, guards);
        }
        let Some(left) = self.ends.get().checked_sub(1) else { return false };
        self.ends.set(left);
        let negative = a.times(&Poly::constant(-1));
        for guard in guards {
            let less = guard.split(index).and_then(|(step, _)| self.without(p, (&a, negative.as_ref()?), guard, &step));
            if less.is_some_and(|p| self.everywhere(&p, others, guards)) {
                return true;
            }
        }
        let first = || self.everywhere(&rest, others, guards);
        let last = || {
            let last = self.poly(extent, OPERATIONS).and_then(|n| n.plus(&Poly::constant(1), -1));
            let end = last.and_then(|x| a.times(&x)).and_then(|end| end.plus(&rest, 1));
            end.is_some_and(|p| self.everywhere(&p, others, guards))
        };
        if self.sign(&a) {
            first()
        } else if negative.as_ref().is_some_and(|n| self.sign(n)) {
            last()
        } else {
            last() && first()
        }
    }

    /// `p` without an index that counts `a` times in it and `step` times in the guard; it is natural only if `p` is.
    fn without(&self, p: &Poly, (a, negative): (&Poly, &Poly), guard: &Poly, step: &Poly) -> Option<Poly> {
        // p + q * guard <= p for a natural q.
        if let Some(q) = negative.divided(step) {
            return self.sign(&q).then(|| p.plus(&q.times(guard)?, 1)).flatten();
        }
        // An integer is natural if s times it, for a positive s, is more than -s.
        let s = step.number().filter(|s| *s > 1 && a.number().is_none_or(|a| a < 0))?;
        let scaled = p.times(&Poly::constant(s))?.plus(&Poly::constant(s - 1), 1)?;
        self.sign(negative).then(|| scaled.plus(&negative.times(guard)?, 1)).flatten()
    }

    /// Is a coefficient natural?
    fn sign(&self, a: &Poly) -> bool {
        a.number().map_or_else(
            || {
                self.begin(false);
                self.natural(a, 3)
            },
            |n| n >= 0,
        )
    }

    /// Each guard as what is at most 0; those whose numbers might wrap say nothing.
    fn guards(&self, nest: &Nest) -> Vec<Poly> {
        nest.guards.iter().flat_map(|(at, bound)| self.guard(nest, at, *bound).unwrap_or_default()).collect()
    }

    fn guard(&self, nest: &Nest, at: &Sum, bound: Value) -> Option<Vec<Poly>> {
        let near = |v: &Value| self.facts.magnitude(*v);
        let axis = |v: &Value| nest.axes.iter().find(|a| a.0 == *v);
        let bits = |(factors, n): &(Vec<Value>, i64)| {
            let factors = factors.iter().map(|v| near(axis(v).map_or(v, |a| &a.1)));
            factors.sum::<u32>() + (i64::BITS - n.unsigned_abs().leading_zeros())
        };
        let fits = at.terms.len() <= GUARD_TERMS
            && at.constant.unsigned_abs() >> GUARD_PART == 0
            && near(&bound) <= GUARD_PART
            && at.terms.iter().all(|t| bits(t) <= GUARD_PART);
        let limit = self.poly(bound, OPERATIONS).filter(|_| fits)?;
        let mut out = vec![self.sum(at, true)?.plus(&limit, -1)?.plus(&Poly::constant(1), 1)?];
        // Of what is not negative, the multiples of a divisor of the bound stay below it by as much.
        if at.constant >= 0 && at.terms.iter().all(|(f, n)| *n > 0 && f.len() == 1 && axis(&f[0]).is_some()) {
            for step in at.terms.iter().map(|t| t.1).filter(|n| *n > 1 && self.divides(*n, bound, OPERATIONS)) {
                let terms = at.terms.iter().filter(|t| t.1 % step == 0).cloned().collect();
                let multiples = Sum { terms, constant: step };
                out.extend(self.sum(&multiples, true).and_then(|m| m.plus(&limit, -1)));
            }
        }
        Some(out)
    }

    /// Does `n` certainly divide the value?
    fn divides(&self, n: i64, v: Value, depth: u32) -> bool {
        if let Some(c) = self.facts.number(v) {
            return c % n == 0;
        }
        let Some(depth) = depth.checked_sub(1) else { return false };
        let of = |v| self.divides(n, v, depth);
        self.facts.multiple_of(v).is_some_and(|m| m % n == 0)
            || match self.facts.exact_definition(v) {
                Some((BinOp::Add | BinOp::Sub | BinOp::Min | BinOp::Max, a, b)) => of(a) && of(b),
                Some((BinOp::Mul, a, b)) => of(a) || of(b),
                _ => false,
            }
    }

    fn sum(&self, sum: &Sum, exact: bool) -> Option<Poly> {
        sum.terms.iter().try_fold(Poly::constant(sum.constant), |whole, (factors, n)| {
            let product =
                factors.iter().try_fold(Poly::constant(1), |p, v| p.times(&self.expand(*v, exact, OPERATIONS)?))?;
            whole.plus(&product, *n)
        })
    }

    /// What a value is, as a number.
    fn poly(&self, v: Value, depth: u32) -> Option<Poly> {
        self.expand(v, true, depth)
    }

    /// How a value is computed: modulo 2^64, or as far as that does not wrap.
    fn expand(&self, v: Value, exact: bool, depth: u32) -> Option<Poly> {
        if let Some(n) = self.facts.number(v) {
            return Some(Poly::constant(n));
        }
        let depth = depth.checked_sub(1)?;
        let of = |v| self.expand(v, exact, depth);
        match if exact { self.facts.exact_definition(v) } else { self.facts.definition(v) } {
            Some((BinOp::Add, a, b)) => of(a)?.plus(&of(b)?, 1),
            Some((BinOp::Sub, a, b)) => of(a)?.plus(&of(b)?, -1),
            Some((BinOp::Mul, a, b)) => of(a)?.times(&of(b)?),
            _ => Some(Poly::symbol(v)),
        }
    }

    /// Is it certainly not negative?
    fn natural(&self, p: &Poly, depth: u32) -> bool {
        if let Some(n) = p.number() {
            return n >= 0;
        }
        let positive = |v: &Value| self.facts.min_of(*v).is_some_and(|m| m >= 0);
        if p.terms().iter().all(|(factors, n)| *n > 0 && factors.iter().all(positive)) {
            return true;
        }
        let Some(less) = depth.checked_sub(1) else { return false };
        if self.failed.borrow().get(p).is_some_and(|d| *d >= depth) {
            return false;
        }
        let found = self.by_replacement(p, less);
        if !found {
            self.failed.borrow_mut().insert(p.clone(), depth);
        }
        found
    }

    /// Is it not negative once the latest of its values is replaced by a bound of it?
    fn by_replacement(&self, p: &Poly, depth: u32) -> bool {
        let mut symbols: Vec<Value> = p.symbols().collect();
        symbols.sort_unstable_by(|a, b| b.cmp(a));
        symbols.dedup();
        for x in symbols {
            let Some(left) = self.steps.get().checked_sub(1) else { return false };
            self.steps.set(left);
            self.taken.set(self.taken.get() + 1);
            let Some((a, rest)) = p.split(x) else { continue };
            let up = self.natural(&a, depth.min(3));
            if !up && !a.plus(&a, -2).is_some_and(|a| self.natural(&a, depth.min(3))) {
                continue;
            }
            // a * x + rest, with a bound of a * x from below.
            for bound in self.least(&a, x, up) {
                if bound.plus(&rest, 1).is_some_and(|q| self.natural(&q, depth)) {
                    return true;
                }
            }
            // One of the two, whichever it is.
            if let Some((op @ (BinOp::Min | BinOp::Max), y, z)) = self.facts.exact_definition(x)
                && (op == BinOp::Min) == up
            {
                let with = |v| {
                    let q = self.poly(v, OPERATIONS).and_then(|v| a.times(&v)).and_then(|q| q.plus(&rest, 1));
                    q.is_some_and(|q| self.natural(&q, depth))
                };
                if with(y) && with(z) {
                    return true;
                }
            }
        }
        false
    }

    /// What `a * x` is at least, where the sign of `a` is known.
    fn least(&self, a: &Poly, x: Value, up: bool) -> Vec<Poly> {
        let mut out = Vec::new();
        let mut offer = |p: Option<Poly>| out.extend(p);
        let poly = |v: Value| self.poly(v, OPERATIONS);
        let least = |v: Value, n: i64| self.facts.min_of(v).is_some_and(|m| m >= n);
        if let Some((op, y, z)) = self.facts.exact_definition(x) {
            match op {
                BinOp::Div if least(z, 1) => offer(self.quotient(a, (y, z), up)),
                BinOp::Rem if least(z, 1) && up => offer(Some(Poly::constant(0))),
                BinOp::Rem if least(z, 1) => {
                    offer(poly(z).and_then(|z| z.plus(&Poly::constant(1), -1)).and_then(|z| a.times(&z)));
                    if least(y, 0) {
                        offer(poly(y).and_then(|y| a.times(&y)));
                    }
                }
                BinOp::Min if !up => [y, z].into_iter().for_each(|v| offer(poly(v).and_then(|v| a.times(&v)))),
                BinOp::Max if up => [y, z].into_iter().for_each(|v| offer(poly(v).and_then(|v| a.times(&v)))),
                _ => {}
            }
        }
        let known: Vec<(Option<Value>, i64)> = match up {
            true => self.facts.below(x).collect(),
            false => self.facts.above(x).collect(),
        };
        for (v, n) in known {
            let bound = match v {
                Some(v) => poly(v).and_then(|p| p.plus(&Poly::constant(n), 1)),
                None => Some(Poly::constant(n)),
            };
            offer(bound.and_then(|b| a.times(&b)));
        }
        if !up {
            // x + y <= u + c
            for (sum, y) in self.facts.sums_with(x) {
                for (u, c) in self.facts.above(sum) {
                    let most = match u {
                        Some(u) => poly(u).and_then(|u| u.plus(&Poly::constant(c), 1)),
                        None => Some(Poly::constant(c)),
                    };
                    offer(most.zip(poly(y)).and_then(|(m, y)| m.plus(&y, -1)).and_then(|b| a.times(&b)));
                }
            }
        }
        let number = if up { self.facts.min_of(x) } else { self.facts.max_of(x) };
        offer(number.and_then(|n| a.times(&Poly::constant(n))));
        if self.short_first.get() {
            out.sort_by_key(|p| p.terms().len());
        }
        out
    }

    /// What `a * (y / z)` is at least, for `z >= 1`: `y - z < (y / z) * z <= y`.
    fn quotient(&self, a: &Poly, (y, z): (Value, Value), up: bool) -> Option<Poly> {
        let whole = self.facts.number(z).is_some_and(|z| self.divides(z, y, OPERATIONS));
        let (y, z) = (self.poly(y, OPERATIONS)?, self.poly(z, OPERATIONS)?);
        let n = a.divided(&z)?;
        let bound = if up && !whole { y.plus(&z, -1)?.plus(&Poly::constant(1), 1)? } else { y };
        n.times(&bound)
    }
}
