//! Inequalities between polynomials of `index` values. The latest of the values is replaced by a bound of it, until
//! what is left is a sum of things that are not negative: `(end - 1) * N + (N - 1) < M * N`, for `end <= M`.
//!
//! **Wrapping.** Sums and products are the same modulo 2^64 however they wrap on the way. So if the first and the last
//! element that are touched are inside *as integers*, the machine's numbers are these integers, and operands need not be exact.
//! A single inequality says nothing of numbers that wrapped: there, and below quotients and minima, definitions must be exact.

use super::obligations::{Bound, Claim, Sum};
use crate::integers::poly::Poly;
use ptoc_ir::facts::Facts;
use ptoc_ir::tile::Value;
use ptoc_isa::BinOp;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};

/// Replacements in a row.
const DEPTH: u32 = 12;
/// Steps of one proof.
const STEPS: u32 = 600;
/// Operations that an expression is followed through.
const OPERATIONS: u32 = 24;

/// A proof under way.
pub(super) struct Prover<'f> {
    facts: &'f Facts,
    steps: Cell<u32>,
    /// Are bounds of few terms tried before others?
    short_first: Cell<bool>,
    /// What was not shown to be natural, with so many replacements: replacing in another order leads to the same sums.
    failed: RefCell<FxHashMap<Poly, u32>>,
}

impl<'f> Prover<'f> {
    pub fn new(facts: &'f Facts) -> Prover<'f> {
        Prover { facts, steps: Cell::new(STEPS), short_first: Cell::new(false), failed: RefCell::default() }
    }

    /// Do both ends hold, as integers?
    pub fn both(&self, bounds: &[Bound]) -> bool {
        bounds.len() == 2 && bounds.iter().all(|b| self.holds(&b.claim, false))
    }

    /// Does the bound hold by itself?
    pub fn alone(&self, claim: &Claim) -> bool {
        self.holds(claim, true)
    }

    fn holds(&self, claim: &Claim, exact: bool) -> bool {
        let ends = self.sum(&claim.high, exact).zip(self.sum(&claim.low, exact));
        let Some(difference) = ends.and_then(|(h, l)| h.plus(&l, -1)) else { return false };
        // Bounds by what a value was computed from lead through windows of tensors, numbers through those of tiles.
        [false, true].into_iter().any(|short_first| {
            self.steps.set(STEPS);
            self.short_first.set(short_first);
            self.failed.borrow_mut().clear();
            self.natural(&difference, DEPTH)
        })
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
        let number = if up { self.facts.min_of(x) } else { self.facts.max_of(x) };
        offer(number.and_then(|n| a.times(&Poly::constant(n))));
        if self.short_first.get() {
            out.sort_by_key(|p| p.terms().len());
        }
        out
    }

    /// What `a * (y / z)` is at least, for `z >= 1`: `y - z < (y / z) * z <= y`.
    fn quotient(&self, a: &Poly, (y, z): (Value, Value), up: bool) -> Option<Poly> {
        let (y, z) = (self.poly(y, OPERATIONS)?, self.poly(z, OPERATIONS)?);
        let n = a.divided(&z)?;
        let bound = if up { y.plus(&z, -1)?.plus(&Poly::constant(1), 1)? } else { y };
        n.times(&bound)
    }
}
