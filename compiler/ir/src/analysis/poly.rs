//! Polynomials over symbols; `index` values as polynomials in those that are not sums or products: enough to see how a
//! window moves with a loop.

use crate::tile::{Kernel, Op, Region, Value};
use ptoc_isa::BinOp;
use rustc_hash::FxHashMap;

/// Deepest expression and most terms that are followed.
const DEPTH: u32 = 24;
const TERMS: usize = 24;

/// Which statement defines a value. (The indices of loops and of the grid, dimensions and arguments have none.)
pub struct Definitions<'k>(FxHashMap<Value, &'k Op>);

impl<'k> Definitions<'k> {
    /// The definitions of a kernel's values, in its prologue and body.
    pub fn new(kernel: &'k Kernel) -> Definitions<'k> {
        let mut out = Definitions(FxHashMap::default());
        out.region(&kernel.prologue);
        out.region(&kernel.body);
        out
    }

    fn region(&mut self, region: &'k Region) {
        for stmt in region {
            if let Some(v) = stmt.op.def() {
                self.0.insert(v, &stmt.op);
            }
            stmt.op.regions().for_each(|r| self.region(r));
        }
    }

    /// The operation that defines a value; `None` for parameters and dimensions.
    pub fn of(&self, v: Value) -> Option<&'k Op> {
        self.0.get(&v).copied()
    }

    /// The number, if it is a constant.
    pub fn number(&self, v: Value) -> Option<i64> {
        self.poly(v)?.number()
    }

    /// The two sides of `v = a op b`.
    pub fn binary(&self, v: Value, op: BinOp) -> Option<(Value, Value)> {
        match self.of(v)? {
            Op::Binary { op: o, a, b, .. } if *o == op => Some((*a, *b)),
            _ => None,
        }
    }

    /// How a value is computed; `None` when that is too much to follow.
    pub fn poly(&self, v: Value) -> Option<Poly> {
        self.poly_at(v, 0)
    }

    fn poly_at(&self, v: Value, depth: u32) -> Option<Poly> {
        if depth > DEPTH {
            return None;
        }
        let of = |v| self.poly_at(v, depth + 1);
        match self.of(v) {
            Some(Op::Const { value, .. }) => value.as_index().map(Poly::constant),
            Some(Op::Binary { op: BinOp::Add, a, b, .. }) => of(*a)?.plus(&of(*b)?, 1),
            Some(Op::Binary { op: BinOp::Sub, a, b, .. }) => of(*a)?.plus(&of(*b)?, -1),
            Some(Op::Binary { op: BinOp::Mul, a, b, .. }) => of(*a)?.times(&of(*b)?),
            _ => Some(Poly::symbol(v)),
        }
    }
}

/// A sum of products: sorted factors with a coefficient that is not 0, in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Poly<S = Value>(Vec<(Vec<S>, i64)>);

impl<S> Default for Poly<S> {
    fn default() -> Poly<S> {
        Poly(Vec::new())
    }
}

impl<S: Copy + Ord> Poly<S> {
    /// A constant polynomial.
    pub fn constant(n: i64) -> Poly<S> {
        Poly(if n == 0 { Vec::new() } else { vec![(Vec::new(), n)] })
    }

    /// The polynomial of one symbol.
    pub fn symbol(v: S) -> Poly<S> {
        Poly(vec![(vec![v], 1)])
    }

    /// The constant that it is, if it has no symbols.
    pub fn number(&self) -> Option<i64> {
        match &self.0[..] {
            [] => Some(0),
            [(factors, n)] if factors.is_empty() => Some(*n),
            _ => None,
        }
    }

    /// The value, if it is one alone.
    pub fn symbol_alone(&self) -> Option<S> {
        match &self.0[..] {
            [(factors, 1)] => {
                if let [v] = factors[..] {
                    Some(v)
                } else {
                    None
                }
            }
            _ => None,
        }
    }

    /// `self + n * other`
    pub fn plus(&self, other: &Poly<S>, n: i64) -> Option<Poly<S>> {
        let mut terms = self.0.clone();
        for (factors, m) in &other.0 {
            terms.push((factors.clone(), m.checked_mul(n)?));
        }
        Poly::of_terms(terms)
    }

    /// The product; `None` where a coefficient overflows, or where it has too many terms.
    pub fn times(&self, other: &Poly<S>) -> Option<Poly<S>> {
        let mut terms = Vec::new();
        for (a, n) in &self.0 {
            for (b, m) in &other.0 {
                let mut factors = [a.as_slice(), b].concat();
                factors.sort();
                terms.push((factors, n.checked_mul(*m)?));
            }
        }
        Poly::of_terms(terms)
    }

    fn of_terms(mut terms: Vec<(Vec<S>, i64)>) -> Option<Poly<S>> {
        terms.sort();
        let mut out: Vec<(Vec<S>, i64)> = Vec::new();
        for (factors, n) in terms {
            match out.last_mut() {
                Some(last) if last.0 == factors => last.1 = last.1.checked_add(n)?,
                _ => out.push((factors, n)),
            }
        }
        out.retain(|t| t.1 != 0);
        (out.len() <= TERMS).then_some(Poly(out))
    }

    /// `self = a * x + b`, if it is linear in `x`: `a` and `b`.
    pub fn split(&self, x: S) -> Option<(Poly<S>, Poly<S>)> {
        let rest = self.0.iter().filter(|t| !t.0.contains(&x)).cloned().collect();
        Some((self.step(x)?, Poly(rest)))
    }

    /// The quotient by a monomial, if it divides each term.
    pub fn divided(&self, by: &Poly<S>) -> Option<Poly<S>> {
        let [(factors, n)] = &by.0[..] else { return None };
        let mut terms = Vec::new();
        for (own, m) in &self.0 {
            let mut rest = own.clone();
            for f in factors {
                rest.remove(rest.iter().position(|x| x == f)?);
            }
            terms.push((rest, (m % n == 0).then(|| m / n)?));
        }
        Poly::of_terms(terms)
    }

    /// Its terms: sorted factors with a coefficient that is not 0.
    pub fn terms(&self) -> &[(Vec<S>, i64)] {
        &self.0
    }

    /// The sum of these products, of which each has its factors in order.
    pub fn sum_of(terms: Vec<(Vec<S>, i64)>) -> Option<Poly<S>> {
        Poly::of_terms(terms)
    }

    /// What it grows by with each step of `x`, if it is linear in `x`.
    pub fn step(&self, x: S) -> Option<Poly<S>> {
        let mut terms = Vec::new();
        for (factors, n) in self.0.iter().filter(|t| t.0.contains(&x)) {
            let mut rest = factors.clone();
            rest.retain(|f| *f != x);
            if rest.len() + 1 != factors.len() {
                return None;
            }
            terms.push((rest, *n));
        }
        Poly::of_terms(terms)
    }

    /// The symbols of all terms, with repetitions.
    pub fn symbols(&self) -> impl Iterator<Item = S> + '_ {
        self.0.iter().flat_map(|t| t.0.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(n: u32) -> Poly {
        Poly::symbol(Value::from_u32(n))
    }

    #[test]
    fn sums_and_products_have_one_form() {
        let square = v(0).plus(&v(1), 1).unwrap().times(&v(0).plus(&v(1), -1).unwrap()).unwrap();
        let other = v(0).times(&v(0)).unwrap().plus(&v(1).times(&v(1)).unwrap(), -1).unwrap();
        assert_eq!(square, other);
        assert_eq!(square.plus(&other, -1).unwrap().number(), Some(0));
        assert_eq!(Poly::<Value>::constant(i64::MAX).plus(&Poly::constant(1), 1), None, "sums do not wrap");
    }

    #[test]
    fn steps() {
        let x = Value::from_u32(0);
        let moved = v(0).times(&v(1)).unwrap().plus(&v(0), 64).unwrap().plus(&v(2), 1).unwrap();
        assert_eq!(moved.step(x), v(1).plus(&Poly::constant(64), 1));
        assert_eq!(v(1).step(x).unwrap().number(), Some(0));
        assert_eq!(v(0).times(&v(0)).unwrap().step(x), None, "not linear");
    }
}
