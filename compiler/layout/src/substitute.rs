//! Values in place of symbols.

use crate::poly::AtomKind;
use crate::{Cx, Int, IntTuple, Layout, Result, Stride};

impl Int {
    /// With `value(id)` in place of each named quantity for which there is one. Quotients are evaluated again.
    pub fn substitute(&self, value: &dyn Fn(u64) -> Option<Int>) -> Result<Int> {
        let Int::Sym(p) = self else { return Ok(self.clone()) };
        let cx = Cx::default();
        let mut sum = Int::ZERO;
        for (monomial, c) in p.terms() {
            let mut product = Int::Const(c);
            for (atom, power) in monomial {
                let factor = match &atom.kind {
                    AtomKind::Var { id, .. } => match value(*id) {
                        Some(n) => n,
                        None => Int::of_atom(atom.kind.clone()),
                    },
                    AtomKind::CeilDiv(a, b) => cx.ceil_div(&a.substitute(value)?, &b.substitute(value)?)?,
                    AtomKind::FloorDiv(a, b) => cx.floor_div(&a.substitute(value)?, &b.substitute(value)?)?,
                };
                for _ in 0..*power {
                    product = product.mul(&factor)?;
                }
            }
            sum = sum.add(&product)?;
        }
        Ok(sum)
    }
}

impl Layout {
    /// With `value(id)` in place of each named quantity for which there is one.
    pub fn substitute(&self, value: &dyn Fn(u64) -> Option<Int>) -> Result<Layout> {
        let shape: IntTuple = self.shape().try_map(&mut |n| n.substitute(value))?;
        let stride = self.stride().try_map(&mut |d| {
            Ok::<_, crate::LayoutError>(Stride { scale: d.scale.substitute(value)?, basis: d.basis.clone() })
        })?;
        Layout::new(shape, stride)
    }
}
