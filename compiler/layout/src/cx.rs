//! What is known of the symbols: divisibility, order, equality; and the divisions that need to know.

use crate::poly::{self, Atom, AtomKind, Poly};
use crate::{AtomFamily, Int, LayoutError, Result, gcd, lcm};
use std::fmt;
use std::sync::Arc;

/// Whether a condition holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Truth {
    /// For all values of the symbols.
    Yes,
    /// For none.
    No,
    /// It depends, or could not be shown.
    Unknown,
}

/// A statement about integers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// The first divides the second.
    Divides(Int, Int),
    /// The first is at most the second.
    Le(Int, Int),
    /// They are equal.
    Eq(Int, Int),
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Divides(d, n) => match n {
                Int::Sym(p) if p.terms().count() > 1 => write!(f, "({n}) % {d} == 0"),
                _ => write!(f, "{n} % {d} == 0"),
            },
            Condition::Le(a, b) => write!(f, "{a} <= {b}"),
            Condition::Eq(a, b) => write!(f, "{a} == {b}"),
        }
    }
}

/// Facts that are kept: every question goes through all of them.
const FACTS: usize = 2000;

/// Facts beyond those that symbols carry themselves. Static layouts need none: `Cx::default()`.
#[derive(Clone, Default, Debug)]
pub struct Cx {
    facts: Vec<Condition>,
    families: Arc<[Arc<AtomFamily>]>,
}

impl Cx {
    /// The matrix instructions that [`crate::ops`]' `select_mma` chooses from.
    pub fn with_families(self, families: Arc<[Arc<AtomFamily>]>) -> Cx {
        Cx { families, ..self }
    }

    /// What [`Cx::with_families`] was given.
    pub fn families(&self) -> &[Arc<AtomFamily>] {
        &self.families
    }

    /// From here on `fact` holds. Of more than [`FACTS`] the later ones are not kept.
    pub fn assume(&mut self, fact: Condition) {
        if self.facts.len() < FACTS && !self.facts.contains(&fact) {
            self.facts.push(fact);
        }
    }

    /// Where [`Cx::forget`] may go back to.
    pub fn mark(&self) -> usize {
        self.facts.len()
    }

    /// Drops the facts that were assumed since `mark`.
    pub fn forget(&mut self, mark: usize) {
        self.facts.truncate(mark);
    }

    /// Whether a condition holds.
    pub fn decide(&self, condition: &Condition) -> Truth {
        match condition {
            Condition::Divides(d, n) => self.divides(d, n),
            Condition::Le(a, b) => self.le(a, b),
            Condition::Eq(a, b) => self.eq(a, b),
        }
    }

    /// `condition` must hold: `Ok(true)` if it does, `Ok(false)` if it never does, else undecided.
    pub fn require(&self, op: &'static str, condition: Condition) -> Result<bool> {
        match self.decide(&condition) {
            Truth::Yes => Ok(true),
            Truth::No => Ok(false),
            Truth::Unknown => Err(LayoutError::undecided(op, condition)),
        }
    }

    /// Whether `d` divides `n`. 0 divides only 0.
    pub fn divides(&self, d: &Int, n: &Int) -> Truth {
        if n.is(0) || d.is(1) || d.is(-1) || d == n {
            return Truth::Yes;
        }
        if let (Int::Const(d), Int::Const(n)) = (d, n) {
            return if *d != 0 && n % d == 0 { Truth::Yes } else { Truth::No };
        }
        let (d, n) = (&self.normal(d), &self.normal(n));
        if n.div_exact(d).is_some() {
            return Truth::Yes;
        }
        for fact in &self.facts {
            if let Condition::Divides(e, m) = fact
                && self.normal(m).eq(n)
                && self.normal(e).div_exact(d).is_some()
            {
                return Truth::Yes;
            }
        }
        let Int::Const(d) = d else { return Truth::Unknown };
        if *d == 0 {
            return Truth::Unknown;
        }
        // n = (multiples of d) + rest; a constant rest decides either way.
        let mut rest = 0i128;
        for (m, c) in poly::terms_of(n) {
            let factor = m.iter().fold(i128::from(c), |f, (atom, p)| {
                (0..*p).fold(f, |f, _| f.checked_mul(i128::from(self.multiple_of(atom))).unwrap_or(f))
            });
            match (m.is_empty(), factor % i128::from(*d) == 0) {
                (_, true) => {}
                (true, false) => rest = i128::from(c) % i128::from(*d),
                (false, false) => return Truth::Unknown,
            }
        }
        if rest == 0 { Truth::Yes } else { Truth::No }
    }

    /// A number that is known to divide the atom.
    fn multiple_of(&self, atom: &Arc<Atom>) -> i64 {
        let own = match &atom.kind {
            AtomKind::Var { multiple_of, .. } => *multiple_of,
            // n / c is a multiple of what is left of n's divisor.
            AtomKind::FloorDiv(Int::Sym(top), Int::Const(c)) => match &top.terms().collect::<Vec<_>>()[..] {
                [([(inner, 1)], 1)] => {
                    let d = self.multiple_of(inner);
                    if d % c == 0 { d / c } else { 1 }
                }
                _ => 1,
            },
            _ => 1,
        };
        self.facts.iter().fold(own, |best, fact| match fact {
            Condition::Divides(Int::Const(d), Int::Sym(p)) if is_atom(p, atom) => lcm(best, *d).unwrap_or(best),
            _ => best,
        })
    }

    /// Whether `a <= b`.
    pub fn le(&self, a: &Int, b: &Int) -> Truth {
        let difference = |a: &Int, b: &Int| b.sub(a).map(|d| self.normal(&d));
        let Ok(gap) = difference(a, b) else { return Truth::Unknown };
        let decided = |gap: &Int| match gap.bounds() {
            (Some(lo), _) if lo >= 0 => Some(Truth::Yes),
            (_, Some(hi)) if hi < 0 => Some(Truth::No),
            _ => None,
        };
        if let Some(t) = decided(&gap) {
            return t;
        }
        for fact in &self.facts {
            let known = match fact {
                Condition::Le(x, y) => difference(x, y),
                Condition::Eq(x, y) => difference(x, y),
                Condition::Divides(..) => continue,
            };
            // gap = known + more, and known >= 0.
            if let Ok(known) = known
                && let Ok(more) = gap.sub(&known)
                && decided(&more) == Some(Truth::Yes)
            {
                return Truth::Yes;
            }
        }
        Truth::Unknown
    }

    /// Whether they are equal.
    pub fn eq(&self, a: &Int, b: &Int) -> Truth {
        if a == b {
            return Truth::Yes;
        }
        let Ok(gap) = a.sub(b).map(|d| self.normal(&d)) else { return Truth::Unknown };
        match gap.bounds() {
            (Some(0), Some(0)) => return Truth::Yes,
            (Some(lo), _) if lo > 0 => return Truth::No,
            (_, Some(hi)) if hi < 0 => return Truth::No,
            _ => {}
        }
        for fact in &self.facts {
            if let Condition::Eq(x, y) = fact
                && let Ok(known) = x.sub(y).map(|d| self.normal(&d))
                && (gap == known || known.neg().is_ok_and(|n| n == gap))
            {
                return Truth::Yes;
            }
        }
        Truth::Unknown
    }

    /// The same number without what the facts make superfluous: `d * floor(n / d)` is `n` where `d` divides it.
    pub fn normal(&self, n: &Int) -> Int {
        let Int::Sym(p) = n else { return n.clone() };
        for (m, c) in p.terms() {
            for (k, (atom, power)) in m.iter().enumerate() {
                let AtomKind::FloorDiv(top, bottom) = &atom.kind else { continue };
                let mut others = m.to_vec();
                match *power {
                    1 => drop(others.remove(k)),
                    _ => others[k].1 -= 1,
                }
                let whole = poly::from_terms([(others.clone(), c)].into_iter().collect());
                let Some(factor) = whole.div_exact(bottom) else {
                    // In lowest terms: 4 * (n / 8) is n / 2 where 8 divides n.
                    let Int::Const(b) = bottom else { continue };
                    let g = gcd(c, *b);
                    if g == 1 || self.divides(bottom, top) != Truth::Yes {
                        continue;
                    }
                    let this = poly::from_terms([(m.to_vec(), c)].into_iter().collect());
                    let outer = poly::from_terms([(others, c / g)].into_iter().collect());
                    if let (Ok(rest), Ok(q)) = (n.sub(&this), self.floor_div(top, &Int::Const(b / g)))
                        && let Ok(instead) = outer.mul(&q)
                        && let Ok(sum) = rest.add(&instead)
                    {
                        return self.normal(&sum);
                    }
                    continue;
                };
                let known = self.facts.iter().any(|f| *f == Condition::Divides(bottom.clone(), top.clone()))
                    || (bottom.as_const().is_some() && top != n && self.divides(bottom, top) == Truth::Yes);
                if !known {
                    continue;
                }
                let this = poly::from_terms([(m.to_vec(), c)].into_iter().collect());
                if let (Ok(rest), Ok(instead)) = (n.sub(&this), factor.mul(top))
                    && let Ok(sum) = rest.add(&instead)
                {
                    return self.normal(&sum);
                }
            }
        }
        n.clone()
    }

    /// `ceil(a / b)` for a positive `b`.
    pub fn ceil_div(&self, a: &Int, b: &Int) -> Result<Int> {
        if let (Int::Const(a), Int::Const(b)) = (a, b) {
            positive(*b)?;
            return Ok(Int::Const(a.div_euclid(*b) + i64::from(a.rem_euclid(*b) != 0)));
        }
        match self.divides(b, a) {
            Truth::Yes => self.floor_div(a, b),
            _ => Ok(Int::Sym(Arc::new(Poly::atom(AtomKind::CeilDiv(a.clone(), b.clone()))))),
        }
    }

    /// `floor(a / b)` for a positive `b`.
    pub fn floor_div(&self, a: &Int, b: &Int) -> Result<Int> {
        if let (Int::Const(a), Int::Const(b)) = (a, b) {
            positive(*b)?;
            return Ok(Int::Const(a.div_euclid(*b)));
        }
        // floor(floor(n / c) / b) is floor(n / (c * b)).
        if let Int::Sym(p) = a
            && let [([(atom, 1)], 1)] = p.terms().collect::<Vec<_>>()[..]
            && let AtomKind::FloorDiv(top, c) = &atom.kind
        {
            let (top, c) = (top.clone(), c.mul(b)?);
            return self.floor_div(&top, &c);
        }
        match self.normal(a).div_exact(&self.normal(b)) {
            Some(q) => Ok(q),
            None => Ok(Int::Sym(Arc::new(Poly::atom(AtomKind::FloorDiv(a.clone(), b.clone()))))),
        }
    }

    /// The lesser, if that can be told.
    pub fn min(&self, op: &'static str, a: &Int, b: &Int) -> Result<Int> {
        Ok(if self.require(op, Condition::Le(a.clone(), b.clone()))? { a.clone() } else { b.clone() })
    }
}

fn positive(b: i64) -> Result<()> {
    match b > 0 {
        true => Ok(()),
        false => Err(LayoutError::new(crate::ErrorKind::Domain, "division", format!("division by {b}"))),
    }
}

fn is_atom(p: &Poly, atom: &Arc<Atom>) -> bool {
    let mut terms = p.terms();
    matches!((terms.next(), terms.next()), (Some(([(a, 1)], 1)), None) if a == atom)
}

/// Least and greatest value of a polynomial from its symbols' facts.
pub(crate) fn bounds(p: &Poly) -> (Option<i128>, Option<i128>) {
    let (mut lo, mut hi) = (Some(0i128), Some(0i128));
    for (m, c) in p.terms() {
        // Products of quantities that are at least 0; anything else is unbounded here.
        let mut range = (Some(1i128), Some(1i128));
        for (atom, power) in m {
            let (a, b) = atom_bounds(atom);
            for _ in 0..*power {
                range = match (range, a) {
                    ((Some(x), y), Some(a)) if x >= 0 && a >= 0 => {
                        (x.checked_mul(a), y.zip(b).and_then(|(y, b)| y.checked_mul(b)))
                    }
                    _ if m.len() == 1 && *power == 1 => (a, b),
                    _ => (None, None),
                };
            }
        }
        let c = i128::from(c);
        let scaled = |x: Option<i128>| x.and_then(|x| x.checked_mul(c));
        let (a, b) = if c >= 0 { (scaled(range.0), scaled(range.1)) } else { (scaled(range.1), scaled(range.0)) };
        lo = lo.zip(a).and_then(|(x, y)| x.checked_add(y));
        hi = hi.zip(b).and_then(|(x, y)| x.checked_add(y));
    }
    (lo, hi)
}

fn atom_bounds(atom: &Atom) -> (Option<i128>, Option<i128>) {
    let quotient = |a: &Int, b: &Int, up: i128| {
        let ((alo, ahi), (blo, bhi)) = (a.bounds(), b.bounds());
        let divide = |x: i128, y: i128| (x + up * (y - 1)).div_euclid(y);
        // Divisors are positive; a non-negative dividend is least over the greatest divisor.
        let lo = match (alo, bhi, blo) {
            (Some(x), Some(y), _) if x >= 0 && y > 0 => Some(divide(x, y)),
            (Some(x), None, _) if x >= 0 => Some(if up > 0 { i128::from(x > 0) } else { 0 }),
            _ => None,
        };
        let hi = match (ahi, blo) {
            (Some(x), Some(y)) if x >= 0 && y > 0 => Some(divide(x, y)),
            (Some(x), _) if x >= 0 => Some(x),
            _ => None,
        };
        (lo, hi)
    };
    match &atom.kind {
        AtomKind::Var { min, max, .. } => (Some(i128::from(*min)), max.map(i128::from)),
        AtomKind::CeilDiv(a, b) => quotient(a, b, 1),
        AtomKind::FloorDiv(a, b) => quotient(a, b, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(name: &str) -> Int {
        Int::var(name.as_bytes().iter().map(|&b| u64::from(b)).sum(), name, 1, 0, None)
    }

    #[test]
    fn facts_decide() {
        let mut cx = Cx::default();
        let (k, eight) = (n("K"), Int::Const(8));
        assert_eq!(cx.divides(&eight, &k), Truth::Unknown);
        cx.assume(Condition::Divides(eight.clone(), k.clone()));
        assert_eq!(cx.divides(&eight, &k), Truth::Yes);
        assert_eq!(cx.divides(&Int::Const(4), &k.mul(&n("M")).unwrap()), Truth::Yes);
        let q = cx.floor_div(&k, &eight).unwrap();
        assert_eq!(q.to_string(), "K/8");
        assert_eq!(cx.eq(&q.mul(&eight).unwrap(), &k), Truth::Yes);
        assert_eq!(cx.divides(&eight, &k.add(&Int::Const(4)).unwrap()), Truth::No);
        assert_eq!(cx.ceil_div(&k, &eight).unwrap(), q);
    }

    #[test]
    fn quotients_are_in_lowest_terms() {
        let mut cx = Cx::default();
        let k = n("K");
        cx.assume(Condition::Divides(Int::Const(128), k.clone()));
        let by = |c: i64| cx.floor_div(&k, &Int::Const(c)).unwrap();
        assert_eq!(cx.normal(&by(8).mul(&Int::Const(4)).unwrap()), by(2));
        assert_eq!(cx.divides(&Int::Const(64), &by(2)), Truth::Yes);
        assert_eq!(cx.floor_div(&by(2), &Int::Const(64)).unwrap(), by(128));
        assert_eq!(cx.divides(&Int::Const(128), &by(2)), Truth::Unknown);
    }

    #[test]
    fn order_follows_from_bounds() {
        let cx = Cx::default();
        let m = Int::var(1, "M", 1, 1, Some(16));
        assert_eq!(cx.le(&m, &Int::Const(16)), Truth::Yes);
        assert_eq!(cx.le(&Int::Const(17), &m), Truth::No);
        assert_eq!(cx.le(&Int::Const(2), &m), Truth::Unknown);
        assert_eq!(m.mul(&n("K")).unwrap().to_string(), "M*K");
    }
}
