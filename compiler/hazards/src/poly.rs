//! Integers by how they are computed: polynomials in the scalars of a kernel.

use super::code::{Code, Def};
use super::state::State;
use ptoc_ir::tile::Value;
use ptoc_isa::BinOp;
use std::cmp::Ordering;

/// Terms of a polynomial; more are not followed.
const TERMS: usize = 12;
/// A sum of products of scalars, plus an interval.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Poly {
    /// Sorted scalars and their factor, sorted.
    pub(super) terms: Vec<(Vec<Value>, i64)>,
    pub(super) lo: i64,
    pub(super) hi: i64,
}

impl Poly {
    pub(super) fn number(n: i64) -> Poly {
        Poly { terms: Vec::new(), lo: n, hi: n }
    }

    pub(super) fn symbol(v: Value) -> Poly {
        Poly { terms: vec![(vec![v], 1)], lo: 0, hi: 0 }
    }

    pub(super) fn normal(mut self) -> Option<Poly> {
        self.terms.sort();
        let mut terms: Vec<(Vec<Value>, i64)> = Vec::new();
        for (symbols, n) in std::mem::take(&mut self.terms) {
            match terms.last_mut() {
                Some(last) if last.0 == symbols => last.1 = last.1.checked_add(n)?,
                _ => terms.push((symbols, n)),
            }
        }
        terms.retain(|t| t.1 != 0);
        self.terms = terms;
        (self.terms.len() <= TERMS).then_some(self)
    }

    pub(super) fn add(mut self, other: Poly) -> Option<Poly> {
        self.terms.extend(other.terms);
        (self.lo, self.hi) = (self.lo.checked_add(other.lo)?, self.hi.checked_add(other.hi)?);
        self.normal()
    }

    pub(super) fn scaled(mut self, n: i64) -> Option<Poly> {
        for t in &mut self.terms {
            t.1 = t.1.checked_mul(n)?;
        }
        let (a, b) = (self.lo.checked_mul(n)?, self.hi.checked_mul(n)?);
        (self.lo, self.hi) = (a.min(b), a.max(b));
        self.normal()
    }

    pub(super) fn product(&self, other: &Poly) -> Option<Poly> {
        let mut out = Poly::number(0);
        for (symbols, n) in &self.terms {
            let mut part = other.clone().scaled(*n)?;
            for t in &mut part.terms {
                t.0.extend(symbols);
                t.0.sort();
            }
            if other.lo != 0 {
                part.terms.push((symbols.clone(), part.lo));
                (part.lo, part.hi) = (0, 0);
            }
            out = out.add(part)?;
        }
        out.add(other.clone().scaled(self.lo)?)
    }
}

impl Poly {
    /// The number, if it is one.
    pub(super) fn constant(&self) -> Option<i64> {
        (self.terms.is_empty() && self.lo == self.hi).then_some(self.lo)
    }

    pub(super) fn symbols(&self) -> impl Iterator<Item = Value> + '_ {
        self.terms.iter().flat_map(|t| t.0.iter().copied())
    }

    /// As numbers, for the key of a state.
    pub(super) fn words(&self, out: &mut Vec<u64>) {
        out.extend([self.terms.len() as u64, self.lo as u64, self.hi as u64]);
        for (symbols, n) in &self.terms {
            out.extend([symbols.len() as u64, *n as u64]);
            out.extend(symbols.iter().map(|s| u64::from(s.as_u32())));
        }
    }

    /// What `v` is in a state: with the numbers of the symbols that are known there.
    pub(super) fn of(code: &Code, state: &State, v: Value) -> Option<Poly> {
        if let Some(n) = state.value(code, v).constant() {
            return Some(Poly::number(n));
        }
        let mut out = Poly::number(0);
        let p = poly(code, v, 0)?;
        for (symbols, n) in &p.terms {
            let mut term = Poly::number(*n);
            for &s in symbols {
                let factor = state.value(code, s).constant().map_or_else(|| Poly::symbol(s), Poly::number);
                term = term.product(&factor)?;
            }
            out = out.add(term)?;
        }
        out.add(Poly { terms: Vec::new(), ..p })
    }

    /// Least and greatest value in a state; `None`: not bounded, or not known.
    pub(super) fn bounds(&self, code: &Code, state: &State) -> (Option<i64>, Option<i64>) {
        let (mut low, mut high) = (Some(self.lo), Some(self.hi));
        for (symbols, n) in &self.terms {
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
    pub(super) fn sign(&self, code: &Code, state: &State) -> Option<Ordering> {
        match self.bounds(code, state) {
            (Some(0), Some(0)) => Some(Ordering::Equal),
            (Some(low), _) if low > 0 => Some(Ordering::Greater),
            (_, Some(high)) if high < 0 => Some(Ordering::Less),
            _ => None,
        }
    }
}

/// Is a value at least 1 wherever it is computed? The length of a tile is: its number is below the number of tiles.
fn at_least_one(code: &Code, v: Value, depth: u32) -> bool {
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
fn below_bounds(code: &Code, p: &Poly) -> bool {
    p.terms.iter().any(|(symbols, k)| {
        let (&[counter], k) = (&symbols[..], -k) else { return false };
        let Some(&bound) = code.bounds.get(&counter).filter(|_| k > 0) else { return false };
        let most = match code.defs[code.root(bound)] {
            Def::Binary(BinOp::Div, a, n) if constant(code, n) == Some(k) => poly(code, a, 0),
            _ => poly(code, bound, 0).and_then(|b| b.scaled(k)),
        };
        let least = || {
            let rest = p.clone().add(Poly::symbol(counter).scaled(k)?)?;
            rest.add(most?.scaled(-1)?)?.add(Poly::number(k))?.constant()
        };
        least().is_some_and(|n| n >= 1)
    })
}

pub(super) fn constant(code: &Code, v: Value) -> Option<i64> {
    match code.defs[v] {
        Def::Const(n) => n.constant(),
        _ => None,
    }
}

/// How a value is computed; what is not a sum or product is a symbol.
pub(super) fn poly(code: &Code, v: Value, depth: u32) -> Option<Poly> {
    if depth > 24 {
        return None;
    }
    match code.defs[v] {
        Def::Const(n) => n.constant().map(Poly::number),
        Def::Same(a) => poly(code, a, depth + 1),
        Def::Binary(BinOp::Add, a, b) => poly(code, a, depth + 1)?.add(poly(code, b, depth + 1)?),
        Def::Binary(BinOp::Sub, a, b) => poly(code, a, depth + 1)?.add(poly(code, b, depth + 1)?.scaled(-1)?),
        Def::Binary(BinOp::Mul, a, b) => poly(code, a, depth + 1)?.product(&poly(code, b, depth + 1)?),
        _ => Some(Poly::symbol(v)),
    }
}
