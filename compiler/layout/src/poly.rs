//! Polynomials of launch-time quantities: the integers that are not known yet.
//!
//! They are not those of `ptoc_ir::analysis::poly`: squares of squares are a power here and no long list of factors, an
//! overflow is an error with both operands in it, and the order of terms is the one in which users read them.

use crate::{Int, LayoutError, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A quantity that arithmetic does not look into.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Atom {
    /// What it is.
    pub kind: AtomKind,
}

/// The kinds of atoms.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum AtomKind {
    /// A named quantity; `id` tells those of one name apart. Facts belong to the quantity and hold everywhere.
    Var {
        /// Identity.
        id: u64,
        /// As the author wrote it.
        name: String,
        /// It is a multiple of this (at least 1).
        multiple_of: i64,
        /// Least value.
        min: i64,
        /// Greatest value.
        max: Option<i64>,
    },
    /// `ceil(a / b)`, b positive.
    CeilDiv(Int, Int),
    /// `floor(a / b)`, b positive.
    FloorDiv(Int, Int),
}

/// A sum of at least one product with an atom in it: `coefficient * atom^power * ..`, sorted, no zero coefficients.
/// A constant is [`Int::Const`], never a polynomial.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Poly {
    terms: BTreeMap<Monomial, i64>,
}

/// Atoms with their powers, ascending; empty for the constant term.
pub(crate) type Monomial = Vec<(Arc<Atom>, u32)>;

impl Poly {
    /// The polynomial that is this atom.
    pub fn atom(kind: AtomKind) -> Poly {
        Poly { terms: BTreeMap::from([(vec![(Arc::new(Atom { kind }), 1)], 1)]) }
    }

    /// Whether it is more than one factor, or a quotient.
    fn is_product(&self) -> bool {
        self.terms.iter().any(|(m, c)| {
            *c != 1 || m.len() != 1 || m.iter().any(|(a, p)| *p > 1 || matches!(a.kind, AtomKind::FloorDiv(..)))
        })
    }

    /// The products with their coefficients, the constant term (no atoms) first if there is one.
    pub fn terms(&self) -> impl Iterator<Item = (&[(Arc<Atom>, u32)], i64)> {
        self.terms.iter().map(|(m, &c)| (m.as_slice(), c))
    }
}

/// The terms of any integer.
pub(crate) fn terms_of(n: &Int) -> BTreeMap<Monomial, i64> {
    match n {
        Int::Const(0) => BTreeMap::new(),
        Int::Const(c) => BTreeMap::from([(Vec::new(), *c)]),
        Int::Sym(p) => p.terms.clone(),
    }
}

/// The integer with these terms.
pub(crate) fn from_terms(mut terms: BTreeMap<Monomial, i64>) -> Int {
    terms.retain(|_, c| *c != 0);
    match terms.len() {
        0 => Int::Const(0),
        1 if terms.contains_key(&Vec::new()) => Int::Const(terms[&Vec::new()]),
        _ => Int::Sym(Arc::new(Poly { terms })),
    }
}

/// Product of two monomials.
pub(crate) fn times(a: &[(Arc<Atom>, u32)], b: &[(Arc<Atom>, u32)]) -> Option<Monomial> {
    let mut powers: BTreeMap<Arc<Atom>, u32> = BTreeMap::new();
    for (atom, p) in a.iter().chain(b) {
        let power = powers.entry(atom.clone()).or_insert(0);
        *power = power.checked_add(*p)?;
    }
    Some(powers.into_iter().collect())
}

/// Quotient of two monomials, if it is one.
fn over(a: &Monomial, b: &Monomial) -> Option<Monomial> {
    let mut powers: BTreeMap<Arc<Atom>, u32> = a.iter().cloned().collect();
    for (atom, p) in b {
        let power = powers.get_mut(atom)?;
        *power = power.checked_sub(*p)?;
    }
    Some(powers.into_iter().filter(|(_, p)| *p > 0).collect())
}

pub(crate) fn add(a: &Int, b: &Int) -> Result<Int> {
    let mut terms = terms_of(a);
    for (m, c) in terms_of(b) {
        let sum = terms.entry(m).or_insert(0);
        *sum = sum.checked_add(c).ok_or_else(|| LayoutError::overflow("+", a, b))?;
    }
    Ok(from_terms(terms))
}

pub(crate) fn mul(a: &Int, b: &Int) -> Result<Int> {
    let overflow = || LayoutError::overflow("*", a, b);
    let mut terms: BTreeMap<Monomial, i64> = BTreeMap::new();
    let right = terms_of(b);
    for (m, c) in terms_of(a) {
        for (n, d) in &right {
            let product = c.checked_mul(*d).ok_or_else(overflow)?;
            let sum = terms.entry(times(&m, n).ok_or_else(overflow)?).or_insert(0);
            *sum = sum.checked_add(product).ok_or_else(overflow)?;
        }
    }
    Ok(from_terms(terms))
}

/// `a / b` where that is a polynomial again: `b` one product that divides each of `a`'s, or `a` a multiple of `b`.
pub(crate) fn div_exact(a: &Int, b: &Int) -> Option<Int> {
    let (numerator, divisor) = (terms_of(a), terms_of(b));
    let (first, &lead) = divisor.iter().next()?;
    if divisor.len() == 1 {
        let mut terms = BTreeMap::new();
        for (m, c) in numerator {
            if c.checked_rem(lead)? != 0 {
                return None;
            }
            terms.insert(over(&m, first)?, c.checked_div(lead)?);
        }
        return Some(from_terms(terms));
    }
    // A sum divides a sum only as a whole here.
    let (m, c) = numerator.iter().next()?;
    let factor = from_terms(BTreeMap::from([(
        over(m, first)?,
        c.checked_div(lead).filter(|q| q.checked_mul(lead) == Some(*c))?,
    )]));
    (mul(&factor, b).ok()? == *a).then_some(factor)
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            AtomKind::Var { name, .. } => f.write_str(name),
            AtomKind::CeilDiv(a, b) => write!(f, "ceil_div({a},{b})"),
            AtomKind::FloorDiv(a, b) => {
                let tight = |n: &Int, product: bool| match n {
                    Int::Sym(p) if p.terms.len() > 1 || product && p.is_product() => format!("({n})"),
                    _ => n.to_string(),
                };
                write!(f, "{}/{}", tight(a, false), tight(b, true))
            }
        }
    }
}

impl fmt::Display for Poly {
    /// `B*C`, `2*N+1`, `N-1`, `2*(N/32)`: as the language has it, where `/` rounds down.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The constant term reads best at the end.
        let constant = self.terms.get(&Vec::new()).copied();
        for (k, (m, c)) in self.terms.iter().filter(|(m, _)| !m.is_empty()).enumerate() {
            match (*c, k) {
                (1, 0) => {}
                (1, _) => f.write_str("+")?,
                (-1, _) => f.write_str("-")?,
                (c, 0) => write!(f, "{c}*")?,
                (c, _) => write!(f, "{c:+}*")?,
            }
            let mut first = true;
            for (atom, p) in m {
                for _ in 0..*p {
                    if !std::mem::take(&mut first) {
                        f.write_str("*")?;
                    }
                    match matches!(atom.kind, AtomKind::FloorDiv(..)) && (*c != 1 || m.len() > 1 || *p > 1) {
                        true => write!(f, "({atom})")?,
                        false => atom.fmt(f)?,
                    }
                }
            }
        }
        constant.map_or(Ok(()), |c| write!(f, "{c:+}"))
    }
}
