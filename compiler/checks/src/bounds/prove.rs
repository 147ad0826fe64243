//! Bounds of accesses, at one place or at all points of a nest ([`ptoc_ir::analysis::inequalities`]).
//!
//! **Points.** What is claimed of all points of a nest is linear in each index, so it holds if it does at both ends of
//! the index' range. Which end decides is known from the sign of its stride; else both are looked at. A guard `g(i) <
//! bound` bounds several indices together: a multiple of `g(i) - (bound - 1)`, which is not positive, is added so that
//! an index drops out.
//!
//! **Wrapping.** If every element that is touched is inside as an integer, the machine's numbers are these integers,
//! and what they were computed from need not be exact. What they are compared with, and how far an index counts, must
//! be. A guard counts if none of its parts can leave 62 bits.

use super::claim::{Bound, Claim, Nest, Sum};
use ptoc_ir::analysis::facts::Facts;
use ptoc_ir::analysis::inequalities;
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::Value;
use std::cell::Cell;

/// Ends of ranges of indices that are looked at.
const ENDS: u32 = 64;
/// Magnitudes of a guard's parts, in bits, with which neither it nor what the lowering makes of it wraps.
const GUARD_PART: u32 = 58;
const GUARD_TERMS: usize = 8;

/// A proof under way.
pub(super) struct Prover<'f> {
    numbers: inequalities::Prover<'f>,
    /// Ends of ranges that may still be looked at.
    ends: Cell<u32>,
}

impl<'f> Prover<'f> {
    /// Proofs of so much effort each.
    pub fn new(facts: &'f Facts, effort: inequalities::Effort) -> Prover<'f> {
        Prover { numbers: inequalities::Prover::new(facts, effort), ends: Cell::new(ENDS) }
    }

    /// Steps that all proofs took.
    pub fn taken(&self) -> u64 {
        self.numbers.taken()
    }

    /// Whether both ends hold, as integers. They are `0 <= what` and `what <= last`.
    pub fn both(&self, bounds: &[Bound]) -> bool {
        bounds.len() == 2 && bounds.iter().zip([true, false]).all(|(b, low)| self.holds(&b.claim, low, !low))
    }

    /// Whether the bound holds without the other end's.
    pub fn alone(&self, claim: &Claim) -> bool {
        self.holds(claim, true, true)
    }

    /// Whether the bound holds. `low` and `high` tell whether definitions on that side must be exact.
    fn holds(&self, claim: &Claim, low: bool, high: bool) -> bool {
        let ends = self.sum(&claim.high, high).zip(self.sum(&claim.low, low));
        let room = claim.swizzle.map_or(0, |s| s.room);
        let difference = ends.and_then(|(h, l)| h.plus(&l, -1)?.plus(&Poly::constant(room), -1));
        let Some(difference) = difference else { return false };
        let Some(nest) = &claim.nest else { return self.numbers.certain(&difference) };
        self.ends.set(ENDS);
        let entries = nest.entries.iter().map(|e| (e.value, e.extent));
        let ranges: Vec<(Value, Value)> = entries.chain(nest.axes.iter().copied()).collect();
        self.everywhere(&difference, &ranges, &self.guards(nest))
    }

    /// Whether it is natural for all indices below these extents, as far as the guards allow them (which are at most
    /// 0).
    fn everywhere(&self, p: &Poly, ranges: &[(Value, Value)], guards: &[Poly]) -> bool {
        let Some((&(index, extent), others)) = ranges.split_last() else { return self.numbers.certain(p) };
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
            let last = self.numbers.poly(extent).and_then(|n| n.plus(&Poly::constant(1), -1));
            let end = last.and_then(|x| a.times(&x)).and_then(|end| end.plus(&rest, 1));
            end.is_some_and(|p| self.everywhere(&p, others, guards))
        };
        if self.numbers.natural_factor(&a) {
            first()
        } else if negative.as_ref().is_some_and(|n| self.numbers.natural_factor(n)) {
            last()
        } else {
            last() && first()
        }
    }

    /// `p` without an index that counts `a` times in it and `step` times in the guard; it is natural only if `p` is.
    fn without(&self, p: &Poly, (a, negative): (&Poly, &Poly), guard: &Poly, step: &Poly) -> Option<Poly> {
        // p + q * guard <= p for a natural q.
        if let Some(q) = negative.divided(step) {
            return self.numbers.natural_factor(&q).then(|| p.plus(&q.times(guard)?, 1)).flatten();
        }
        // An integer is natural if s times it, for a positive s, is more than -s.
        let s = step.number().filter(|s| *s > 1 && a.number().is_none_or(|a| a < 0))?;
        let scaled = p.times(&Poly::constant(s))?.plus(&Poly::constant(s - 1), 1)?;
        self.numbers.natural_factor(negative).then(|| scaled.plus(&negative.times(guard)?, 1)).flatten()
    }

    /// Each guard as what is at most 0; those whose numbers might wrap say nothing.
    fn guards(&self, nest: &Nest) -> Vec<Poly> {
        nest.guards.iter().flat_map(|(at, bound)| self.guard(nest, at, *bound).unwrap_or_default()).collect()
    }

    fn guard(&self, nest: &Nest, at: &Sum, bound: Value) -> Option<Vec<Poly>> {
        let near = |v: &Value| self.numbers.facts().magnitude(*v);
        let axis = |v: &Value| nest.axes.iter().find(|a| a.0 == *v);
        let bits = |(factors, n): &(Vec<Value>, i64)| {
            let factors = factors.iter().map(|v| near(axis(v).map_or(v, |a| &a.1)));
            factors.sum::<u32>() + (i64::BITS - n.unsigned_abs().leading_zeros())
        };
        let fits = at.terms.len() <= GUARD_TERMS
            && at.constant.unsigned_abs() >> GUARD_PART == 0
            && near(&bound) <= GUARD_PART
            && at.terms.iter().all(|t| bits(t) <= GUARD_PART);
        let limit = self.numbers.poly(bound).filter(|_| fits)?;
        let mut out = vec![self.sum(at, true)?.plus(&limit, -1)?.plus(&Poly::constant(1), 1)?];
        // Of what is not negative, the multiples of a divisor of the bound stay below it by as much.
        if at.constant >= 0 && at.terms.iter().all(|(f, n)| *n > 0 && f.len() == 1 && axis(&f[0]).is_some()) {
            for step in at.terms.iter().map(|t| t.1).filter(|n| *n > 1 && self.numbers.divides(*n, bound)) {
                let terms = at.terms.iter().filter(|t| t.1 % step == 0).cloned().collect();
                let multiples = Sum { terms, constant: step };
                out.extend(self.sum(&multiples, true).and_then(|m| m.plus(&limit, -1)));
            }
        }
        Some(out)
    }

    fn sum(&self, sum: &Sum, exact: bool) -> Option<Poly> {
        sum.terms.iter().try_fold(Poly::constant(sum.constant), |whole, (factors, n)| {
            let product =
                factors.iter().try_fold(Poly::constant(1), |p, v| p.times(&self.numbers.expand(*v, exact)?))?;
            whole.plus(&product, *n)
        })
    }
}
