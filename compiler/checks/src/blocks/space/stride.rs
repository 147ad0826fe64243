//! Digits of numbers: what a product of symbols counts.

use super::{Form, Sym};
use ptoc_ir::analysis::poly::Poly;

/// A number times symbols: what a digit of an element's number counts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::blocks) struct Stride {
    pub(in crate::blocks) factors: Vec<Sym>,
    pub(in crate::blocks) count: i64,
}

impl Stride {
    /// The form, if it is one product.
    pub(in crate::blocks) fn of(form: &Form) -> Option<Stride> {
        match form.terms() {
            [(factors, n)] if *n > 0 => Some(Stride { factors: factors.clone(), count: *n }),
            _ => None,
        }
    }

    pub(in crate::blocks) fn form(&self) -> Form {
        Poly::sum_of(vec![(self.factors.clone(), self.count)]).unwrap_or_default()
    }

    /// How often it is in another one.
    pub(in crate::blocks) fn within(&self, other: &Stride) -> Option<Stride> {
        let factors = without(&other.factors, &self.factors)?;
        (other.count % self.count == 0).then_some(Stride { factors, count: other.count / self.count })
    }

    /// `form = self * quotient + rest`: what is a multiple by its factors, and the rest.
    pub(in crate::blocks) fn split(&self, form: &Form) -> Option<(Form, Form)> {
        let (mut q, mut r) = (Vec::new(), Vec::new());
        for (factors, k) in form.terms() {
            match without(factors, &self.factors) {
                Some(more) if k % self.count == 0 => q.push((more, k / self.count)),
                // A number of them.
                Some(more) if more.is_empty() => {
                    q.push((more, k.div_euclid(self.count)));
                    r.push((factors.clone(), k.rem_euclid(self.count)));
                }
                _ => r.push((factors.clone(), *k)),
            }
        }
        r.retain(|t| t.1 != 0);
        q.retain(|t| t.1 != 0);
        Some((Poly::sum_of(q)?, Poly::sum_of(r)?))
    }
}

/// A product without some of its factors; `None`: it does not have them.
fn without(factors: &[Sym], less: &[Sym]) -> Option<Vec<Sym>> {
    let mut out = factors.to_vec();
    for s in less {
        let at = out.iter().position(|f| f == s)?;
        out.remove(at);
    }
    Some(out)
}
