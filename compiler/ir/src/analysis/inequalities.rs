//! Inequalities between polynomials of `index` values, proved from [`Facts`]. The latest of the values is replaced by a
//! bound of it, until what is left is a sum of things that are not negative: `(end - 1) * N + (N - 1) < M * N`, for
//! `end <= M`.
//!
//! **Wrapping.** Sums and products are the same modulo 2^64 however they wrap on the way. So if a number is between 0
//! and what an array has *as an integer*, the machine's number is that integer, and what it was computed from need not
//! be exact ([`Prover::within`]). What it is compared with must be: and so must all of a single inequality
//! ([`Prover::le`]), which says nothing of numbers that wrapped, and definitions below quotients and minima.

use super::facts::Facts;
use super::poly::Poly;
use crate::tile::Value;
use ptoc_isa::BinOp;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};

/// Replacements in a row.
const DEPTH: u32 = 12;
/// Replacements in a row for a coefficient.
const SIGN: u32 = 3;
/// Steps of one proof.
const STEPS: u32 = 600;
/// Steps of one proof once those of the file are spent: enough for windows in line.
const LITTLE: u32 = 12;
/// Steps of one proof that was found before, where less was known: more facts are more ways to go wrong.
const AMPLE: u32 = 40_000;
/// Operations that an expression is followed through.
const OPERATIONS: u32 = 24;

/// What one proof may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Few steps, and one order of replacements.
    Little,
    /// Enough for what kernels need.
    Full,
    /// Many: for the verifier, before it refuses.
    Ample,
}

/// A proof under way.
pub struct Prover<'f> {
    facts: &'f Facts,
    steps: Cell<u32>,
    effort: Effort,
    /// Steps of all of them.
    taken: Cell<u64>,
    /// Bounds of few terms are tried before others.
    short_first: Cell<bool>,
    /// What was not shown to be natural, with so many replacements: replacing in another order leads to the same sums.
    failed: RefCell<FxHashMap<Poly, u32>>,
}

impl<'f> Prover<'f> {
    /// Steps of a budget that a replacement stands for: it asks for bounds of several values.
    pub const STEP: usize = 16;

    /// Proofs of so much effort each.
    pub fn new(facts: &'f Facts, effort: Effort) -> Prover<'f> {
        Prover {
            facts,
            steps: Cell::new(0),
            effort,
            taken: Cell::new(0),
            short_first: Cell::new(false),
            failed: RefCell::default(),
        }
    }

    /// Steps that all proofs took.
    pub fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// The facts that proofs start from.
    pub fn facts(&self) -> &'f Facts {
        self.facts
    }

    /// Whether `a <= b` is certain, of what both are as integers.
    pub fn le(&self, a: Value, b: Value) -> bool {
        let ends = self.poly(b).zip(self.poly(a));
        ends.and_then(|(b, a)| b.plus(&a, -1)).is_some_and(|p| self.certain(&p))
    }

    /// Whether `0 <= index < extent` is certain, of the integer that the source says.
    pub fn within(&self, index: Value, extent: Value) -> bool {
        let Some((at, end)) = self.expand(index, false).zip(self.poly(extent)) else { return false };
        let room = end.plus(&at, -1).and_then(|p| p.plus(&Poly::constant(1), -1));
        self.certain(&at) && room.is_some_and(|p| self.certain(&p))
    }

    /// Whether it is natural, without indices of points.
    pub fn certain(&self, p: &Poly) -> bool {
        // Bounds by what a value was computed from lead through windows of tensors, numbers through those of tiles.
        let orders: &[bool] = if self.effort == Effort::Little { &[false] } else { &[false, true] };
        orders.iter().any(|&short_first| {
            self.begin(short_first);
            self.natural(p, DEPTH)
        })
    }

    /// Whether a coefficient is certainly not negative.
    pub fn natural_factor(&self, a: &Poly) -> bool {
        a.number().map_or_else(
            || {
                self.begin(false);
                self.natural(a, SIGN)
            },
            |n| n >= 0,
        )
    }

    fn begin(&self, short_first: bool) {
        self.steps.set(match self.effort {
            Effort::Little => LITTLE,
            Effort::Full => STEPS,
            Effort::Ample => AMPLE,
        });
        self.short_first.set(short_first);
        self.failed.borrow_mut().clear();
    }

    /// Whether `n` certainly divides the value.
    pub fn divides(&self, n: i64, v: Value) -> bool {
        self.divides_at(n, v, OPERATIONS)
    }

    fn divides_at(&self, n: i64, v: Value, depth: u32) -> bool {
        if let Some(c) = self.facts.number(v) {
            return c % n == 0;
        }
        let Some(depth) = depth.checked_sub(1) else { return false };
        let of = |v| self.divides_at(n, v, depth);
        self.facts.multiple_of(v).is_some_and(|m| m % n == 0)
            || match self.facts.exact_definition(v) {
                Some((BinOp::Add | BinOp::Sub | BinOp::Min | BinOp::Max, a, b)) => of(a) && of(b),
                Some((BinOp::Mul, a, b)) => of(a) || of(b),
                _ => false,
            }
    }

    /// What a value is, as a number.
    pub fn poly(&self, v: Value) -> Option<Poly> {
        self.expand(v, true)
    }

    /// How a value is computed: modulo 2^64, or (`exact`) as far as that does not wrap.
    pub fn expand(&self, v: Value, exact: bool) -> Option<Poly> {
        self.expand_at(v, exact, OPERATIONS)
    }

    fn expand_at(&self, v: Value, exact: bool, depth: u32) -> Option<Poly> {
        if let Some(n) = self.facts.number(v) {
            return Some(Poly::constant(n));
        }
        let depth = depth.checked_sub(1)?;
        let of = |v| self.expand_at(v, exact, depth);
        match if exact { self.facts.exact_definition(v) } else { self.facts.definition(v) } {
            Some((BinOp::Add, a, b)) => of(a)?.plus(&of(b)?, 1),
            Some((BinOp::Sub, a, b)) => of(a)?.plus(&of(b)?, -1),
            Some((BinOp::Mul, a, b)) => of(a)?.times(&of(b)?),
            _ => Some(Poly::symbol(v)),
        }
    }

    /// Whether it is certainly not negative.
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

    /// Whether it is not negative once the latest of its values is replaced by a bound of it.
    fn by_replacement(&self, p: &Poly, depth: u32) -> bool {
        let mut symbols: Vec<Value> = p.symbols().collect();
        symbols.sort_unstable_by(|a, b| b.cmp(a));
        symbols.dedup();
        for x in symbols {
            let Some(left) = self.steps.get().checked_sub(1) else { return false };
            self.steps.set(left);
            self.taken.set(self.taken.get() + 1);
            let Some((a, rest)) = p.split(x) else { continue };
            let up = self.natural(&a, depth.min(SIGN));
            if !up && !a.plus(&a, -2).is_some_and(|a| self.natural(&a, depth.min(SIGN))) {
                continue;
            }
            // a * x + rest, with a bound of a * x from below.
            for bound in self.least(&a, x, up) {
                if bound.plus(&rest, 1).is_some_and(|q| self.natural(&q, depth)) {
                    return true;
                }
            }
            // A multiple of it, of which `x * z` is bounded: p is natural if z p is more than -z.
            if let Some((BinOp::Div, _, z)) = self.facts.exact_definition(x)
                && let Some(z) = self.positive(z).filter(|z| a.divided(z).is_none())
                && let Some(room) = z.plus(&Poly::constant(1), -1)
                && p.times(&z).and_then(|p| p.plus(&room, 1)).is_some_and(|q| self.natural(&q, depth))
            {
                return true;
            }
            // One of the two, whichever it is.
            if let Some((op @ (BinOp::Min | BinOp::Max), y, z)) = self.facts.exact_definition(x)
                && (op == BinOp::Min) == up
            {
                let with = |v| {
                    let q = self.poly(v).and_then(|v| a.times(&v)).and_then(|q| q.plus(&rest, 1));
                    q.is_some_and(|q| self.natural(&q, depth))
                };
                if with(y) && with(z) {
                    return true;
                }
            }
        }
        false
    }

    /// A value that is certainly at least 1.
    fn positive(&self, v: Value) -> Option<Poly> {
        self.facts.min_of(v).filter(|m| *m >= 1).and_then(|_| self.poly(v))
    }

    /// What `a * x` is at least, where the sign of `a` is known.
    fn least(&self, a: &Poly, x: Value, up: bool) -> Vec<Poly> {
        let mut out = Vec::new();
        let mut offer = |p: Option<Poly>| out.extend(p);
        let poly = |v: Value| self.poly(v);
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
        let whole = self.facts.number(z).is_some_and(|z| self.divides(z, y));
        let (y, z) = (self.poly(y)?, self.poly(z)?);
        let n = a.divided(&z)?;
        let bound = if up && !whole { y.plus(&z, -1)?.plus(&Poly::constant(1), 1)? } else { y };
        n.times(&bound)
    }
}
