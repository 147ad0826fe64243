//! `index` values of the kernel as integers of layouts, and back.

use super::Elaborator;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::Value;
use ptoc_isa::BinOp;
use ptoc_layout::{Atom, AtomKind, Condition, Int, LayoutError};

impl Elaborator<'_> {
    /// The integer that a value is. One value is always one integer: what is learned of it later is kept beside
    /// ([`Elaborator::cx`]), so that equal things stay equal.
    pub(crate) fn int_of(&mut self, v: Value) -> Int {
        if let Some(c) = self.const_index(v) {
            return Int::Const(c);
        }
        if let Some(n) = self.ints.get(&v) {
            return n.clone();
        }
        let n = self.defined_int(v).unwrap_or_else(|| self.symbol(v));
        self.ints.insert(v, n.clone());
        self.ints_log.push(v);
        n
    }

    fn defined_int(&mut self, v: Value) -> Option<Int> {
        let (op, a, b) = self.facts.definition(v)?;
        let (x, y) = (self.int_of(a), self.int_of(b));
        match op {
            BinOp::Add => x.add(&y).ok(),
            BinOp::Sub => x.sub(&y).ok(),
            BinOp::Mul => x.mul(&y).ok(),
            BinOp::Div if y.as_const().is_none() => {
                let positive = self.facts.min_of(b).is_some_and(|m| m >= 1);
                positive.then(|| self.cx.floor_div(&x, &y).ok()).flatten()
            }
            BinOp::Div => {
                let c = y.as_const().filter(|c| *c > 0)?;
                // (n + c - 1) / c is how ceilings are spelled.
                let below = x.sub(&Int::Const(c - 1)).ok()?;
                let n = match (&x, c) {
                    (Int::Sym(p), 2..) if constant_term(p) == c - 1 => self.cx.ceil_div(&below, &y),
                    _ => self.cx.floor_div(&x, &y),
                };
                n.ok()
            }
            _ => None,
        }
    }

    fn symbol(&mut self, v: Value) -> Int {
        let name = self.size_name(v);
        let (min, max) = (self.facts.min_of(v), self.facts.max_of(v));
        Int::var(u64::from(v.as_u32()), name, 1, min.unwrap_or(i64::MIN), max)
    }

    /// The value that an integer is, computed here.
    pub(crate) fn value_of(&mut self, n: &Int, span: Span) -> Value {
        let p = match n {
            Int::Const(c) => return self.idx(*c),
            Int::Sym(p) => p.clone(),
        };
        let mut sum: Option<Value> = None;
        // The constant last: `n - 1`, not `-1 + n`.
        let (constant, rest): (Vec<_>, Vec<_>) = p.terms().partition(|(m, _)| m.is_empty());
        for (m, c) in rest.into_iter().chain(constant) {
            let mut product: Option<Value> = None;
            for (atom, power) in m {
                let a = self.atom_value(atom, span);
                for _ in 0..*power {
                    product = Some(product.map_or(a, |x| self.bin(BinOp::Mul, x, a, span)));
                }
            }
            let term = match product {
                None => self.idx(c.saturating_abs()),
                Some(x) => {
                    let c = self.idx(c.saturating_abs());
                    self.bin(BinOp::Mul, x, c, span)
                }
            };
            sum = Some(match sum {
                None if c < 0 => {
                    let zero = self.idx(0);
                    self.bin(BinOp::Sub, zero, term, span)
                }
                None => term,
                Some(s) => self.bin(if c < 0 { BinOp::Sub } else { BinOp::Add }, s, term, span),
            });
        }
        sum.unwrap_or_else(|| self.idx(0))
    }

    fn atom_value(&mut self, atom: &Atom, span: Span) -> Value {
        match &atom.kind {
            AtomKind::Var { id, .. } => Value::from_u32(*id as u32),
            AtomKind::CeilDiv(a, b) => {
                let (a, b) = (self.value_of(a, span), self.value_of(b, span));
                self.ceil_div(a, b, span)
            }
            AtomKind::FloorDiv(a, b) => {
                let (a, b) = (self.value_of(a, span), self.value_of(b, span));
                self.bin(BinOp::Div, a, b, span)
            }
        }
    }

    /// Runs an operation of the algebra. What it cannot decide is checked at run time and then known.
    pub(crate) fn algebra<T>(
        &mut self,
        span: Span,
        f: impl Fn(&ptoc_layout::Cx) -> ptoc_layout::Result<T>,
    ) -> super::ElabResult<Result<T, LayoutError>> {
        // Each round settles one condition; operations have few.
        for _ in 0..16 {
            match f(&self.cx) {
                Err(e) if e.condition.is_some() => {
                    let condition = e.condition.clone().ok_or(super::ErrorReported)?;
                    // Which of two extents is less is no precondition: either may be. The dimensions become constants.
                    if let Condition::Le(a, b) = &condition {
                        match self.follows(a, b, span) {
                            true => self.cx.assume(condition.clone()),
                            false => return self.specialise(&[a, b], span).map(|()| Err(e)),
                        }
                        continue;
                    }
                    self.require_condition(&condition, &e, span)?;
                }
                other => return Ok(other),
            }
        }
        f(&self.cx).map_or_else(|e| Ok(Err(e)), |t| Ok(Ok(t)))
    }

    /// Whether the facts about values prove `a <= b`.
    fn follows(&mut self, a: &Int, b: &Int, span: Span) -> bool {
        let (x, y) = (self.value_of(a, span), self.value_of(b, span));
        self.facts.le_certain(x, y, 0)
    }

    /// The shape of a result depends on the dimensions in these integers: they become constants of the instance, and
    /// this elaboration is thrown away. If they are unknown, the check waits for them.
    fn specialise(&mut self, of: &[&Int], span: Span) -> super::ElabResult<()> {
        // What an earlier place has asked for is not there yet, here neither.
        let mut asked = false;
        for n in of {
            let v = self.value_of(n, span);
            if self.const_index(v).is_none() && self.is_dimensional(v) {
                let _ = self.static_int(&ptoc_values::Val::Scalar(v), span, "this size");
                asked = true;
            }
        }
        if asked { Err(super::ErrorReported) } else { Ok(()) }
    }

    /// The condition holds from here on: checked when the kernel runs.
    pub(crate) fn require_condition(
        &mut self,
        condition: &Condition,
        why: &LayoutError,
        span: Span,
    ) -> super::ElabResult<()> {
        use ptoc_isa::CmpOp;
        let (cond, args, holds) = match condition {
            Condition::Divides(d, n) => {
                let (d, n) = (self.value_of(d, span), self.value_of(n, span));
                let rest = self.bin(BinOp::Rem, n, d, span);
                let zero = self.idx(0);
                (self.compare(CmpOp::Eq, rest, zero, span), vec![n, d], "{0} is no multiple of {1}")
            }
            Condition::Le(a, b) => {
                let (a, b) = (self.value_of(a, span), self.value_of(b, span));
                (self.compare(CmpOp::Le, a, b, span), vec![a, b], "{0} exceeds {1}")
            }
            Condition::Eq(a, b) => {
                let (a, b) = (self.value_of(a, span), self.value_of(b, span));
                (self.compare(CmpOp::Eq, a, b, span), vec![a, b], "{0} is not {1}")
            }
        };
        let data = ptoc_ir::tile::CheckData {
            code: ptoc_diagnostics::codes::LAYOUT_CONDITION,
            message: format!("`{}` needs {condition}: {holds}", why.op),
            span,
            help: Some(self.settled_by(condition)),
        };
        self.check(cond, data, args, span)?;
        self.cx.assume(condition.clone());
        Ok(())
    }
}

fn constant_term(p: &ptoc_layout::Poly) -> i64 {
    p.terms().find(|(m, _)| m.is_empty()).map_or(0, |(_, c)| c)
}
