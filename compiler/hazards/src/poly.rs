//! Symbolic polynomials: integers by how they are computed: polynomials in the scalars of a kernel.

use super::code::{Def, HazardProgram};
use super::state::HazardState;
use ptoc_ir::analysis::poly::Poly as Sum;
use ptoc_ir::tile::Value;
use ptoc_isa::BinOp;
use std::cmp::Ordering;

/// Terms of a polynomial; more are not followed: they are part of each state.
const TERMS: usize = 12;

/// A polynomial of `ptoc-ir`, and an interval for its constant: what is left of a place when loops have gone on.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct PolyInterval {
    /// Without a constant.
    sum: Sum,
    pub(super) lo: i64,
    pub(super) hi: i64,
}

impl PolyInterval {
    pub(super) fn number(n: i64) -> PolyInterval {
        PolyInterval { sum: Sum::default(), lo: n, hi: n }
    }

    pub(super) fn symbol(v: Value) -> PolyInterval {
        PolyInterval { sum: Sum::symbol(v), lo: 0, hi: 0 }
    }

    /// The sum of these products, each of at least one scalar and in order, and of a number.
    pub(super) fn of_terms(terms: Vec<(Vec<Value>, i64)>, constant: i64) -> Option<PolyInterval> {
        PolyInterval { sum: Sum::sum_of(terms)?, ..PolyInterval::number(constant) }.small()
    }

    /// The products, with their factors.
    pub(super) fn terms(&self) -> &[(Vec<Value>, i64)] {
        self.sum.terms()
    }

    fn small(self) -> Option<PolyInterval> {
        (self.terms().len() <= TERMS).then_some(self)
    }

    pub(super) fn add(&self, other: &PolyInterval) -> Option<PolyInterval> {
        let (lo, hi) = (self.lo.checked_add(other.lo)?, self.hi.checked_add(other.hi)?);
        PolyInterval { sum: self.sum.plus(&other.sum, 1)?, lo, hi }.small()
    }

    pub(super) fn scaled(&self, n: i64) -> Option<PolyInterval> {
        let (a, b) = (self.lo.checked_mul(n)?, self.hi.checked_mul(n)?);
        Some(PolyInterval { sum: Sum::default().plus(&self.sum, n)?, lo: a.min(b), hi: a.max(b) })
    }

    /// The product of two whose constants are numbers.
    pub(super) fn product(&self, other: &PolyInterval) -> Option<PolyInterval> {
        debug_assert!(self.lo == self.hi && other.lo == other.hi, "{self:?} {other:?}");
        let (a, b) = (self.lo, other.lo);
        let sum = self.sum.times(&other.sum)?.plus(&self.sum, b)?.plus(&other.sum, a)?;
        PolyInterval { sum, ..PolyInterval::number(a.checked_mul(b)?) }.small()
    }
}

impl PolyInterval {
    /// The number, if it is one.
    pub(super) fn constant(&self) -> Option<i64> {
        (self.terms().is_empty() && self.lo == self.hi).then_some(self.lo)
    }

    /// The constant alone.
    pub(super) fn constants(&self) -> PolyInterval {
        PolyInterval { sum: Sum::default(), ..*self }
    }

    pub(super) fn symbols(&self) -> impl Iterator<Item = Value> + '_ {
        self.sum.symbols()
    }

    /// As numbers, for the key of a state.
    pub(super) fn words(&self, out: &mut Vec<u64>) {
        out.extend([self.terms().len() as u64, self.lo as u64, self.hi as u64]);
        for (symbols, n) in self.terms() {
            out.extend([symbols.len() as u64, *n as u64]);
            out.extend(symbols.iter().map(|s| u64::from(s.as_u32())));
        }
    }

    /// What `v` is in a state: with the numbers of the symbols that are known there.
    pub(super) fn of(code: &HazardProgram, state: &HazardState, v: Value) -> Option<PolyInterval> {
        if let Some(n) = state.value(code, v).constant() {
            return Some(PolyInterval::number(n));
        }
        let mut out = PolyInterval::number(0);
        let p = poly(code, v, 0)?;
        for (symbols, n) in p.terms() {
            let mut term = PolyInterval::number(*n);
            for &s in symbols {
                let factor =
                    state.value(code, s).constant().map_or_else(|| PolyInterval::symbol(s), PolyInterval::number);
                term = term.product(&factor)?;
            }
            out = out.add(&term)?;
        }
        out.add(&p.constants())
    }

    /// Least and greatest value in a state; `None`: not bounded, or not known.
    pub(super) fn bounds(&self, code: &HazardProgram, state: &HazardState) -> (Option<i64>, Option<i64>) {
        let (mut low, mut high) = (Some(self.lo), Some(self.hi));
        for (symbols, n) in self.terms() {
            // Factors that are at least 0, and what they are at most.
            let (mut least, mut most) = (Some(1i64), Some(1i64));
            for &s in symbols {
                let (lo, hi) = state.value(code, s).bounds(&state.periods);
                let lo = if at_least_one(code, s, 0) { lo.max(1) } else { lo };
                least = least.and_then(|l| (lo >= 0).then(|| l.checked_mul(lo))?);
                most = most.and_then(|m| (lo >= 0 && hi != super::domain::MAX).then(|| m.checked_mul(hi))?);
            }
            let (from, to) = if *n > 0 { (least, most) } else { (most, least) };
            let sum = |a: Option<i64>, b: Option<i64>| a?.checked_add(b?.checked_mul(*n)?);
            (low, high) = (sum(low, from), sum(high, to));
        }
        (low, high)
    }

    /// Less than, equal to or greater than 0, if that is known.
    pub(super) fn sign(&self, code: &HazardProgram, state: &HazardState) -> Option<Ordering> {
        match self.bounds(code, state) {
            (Some(0), Some(0)) => Some(Ordering::Equal),
            (Some(low), _) if low > 0 => Some(Ordering::Greater),
            (_, Some(high)) if high < 0 => Some(Ordering::Less),
            _ => None,
        }
    }
}

/// Whether a value is at least 1 wherever it is computed. The length of a tile is: its number is below the number of
/// tiles.
fn at_least_one(code: &HazardProgram, v: Value, depth: u32) -> bool {
    if depth > 8 {
        return false;
    }
    let one = |v| at_least_one(code, v, depth + 1);
    match code.defs[v] {
        Def::Const(n) => n.constant().is_some_and(|n| n >= 1),
        Def::Same(a) => one(a),
        Def::Binary(BinOp::Min | BinOp::Mul, a, b) => one(a) && one(b),
        Def::Binary(BinOp::Max, a, b) => one(a) || one(b),
        Def::Binary(BinOp::Add | BinOp::Sub, ..) => poly(code, v, 0).is_some_and(|p| below_bounds(code, &p)),
        _ => false,
    }
}

/// `d - k * j + c` with a counter `j < (a / k)`: as `k * j <= a - k`, it is at least `d + c + k - a`.
fn below_bounds(code: &HazardProgram, p: &PolyInterval) -> bool {
    p.terms().iter().any(|(symbols, k)| {
        let (&[counter], k) = (&symbols[..], -k) else { return false };
        let Some(&bound) = code.bounds.get(&counter).filter(|_| k > 0) else { return false };
        let most = match code.defs[code.root(bound)] {
            Def::Binary(BinOp::Div, a, n) if constant(code, n) == Some(k) => poly(code, a, 0),
            _ => poly(code, bound, 0).and_then(|b| b.scaled(k)),
        };
        let least = || {
            let rest = p.add(&PolyInterval::symbol(counter).scaled(k)?)?;
            rest.add(&most?.scaled(-1)?)?.add(&PolyInterval::number(k))?.constant()
        };
        least().is_some_and(|n| n >= 1)
    })
}

pub(super) fn constant(code: &HazardProgram, v: Value) -> Option<i64> {
    match code.defs[v] {
        Def::Const(n) => n.constant(),
        _ => None,
    }
}

/// How a value is computed; what is not a sum or product is a symbol.
pub(super) fn poly(code: &HazardProgram, v: Value, depth: u32) -> Option<PolyInterval> {
    if depth > 24 {
        return None;
    }
    match code.defs[v] {
        Def::Const(n) => n.constant().map(PolyInterval::number),
        Def::Same(a) => poly(code, a, depth + 1),
        Def::Binary(BinOp::Add, a, b) => poly(code, a, depth + 1)?.add(&poly(code, b, depth + 1)?),
        Def::Binary(BinOp::Sub, a, b) => poly(code, a, depth + 1)?.add(&poly(code, b, depth + 1)?.scaled(-1)?),
        Def::Binary(BinOp::Mul, a, b) => poly(code, a, depth + 1)?.product(&poly(code, b, depth + 1)?),
        _ => Some(PolyInterval::symbol(v)),
    }
}
