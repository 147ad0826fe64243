//! Run-time checks that `index` arithmetic did not overflow. It wraps at 64 bits, as all integers do; what an address
//! or a bound is computed from must not, or an element is used that nobody asked for. Only definitions that
//! [`ptoc_ir::analysis::facts`] cannot prove exact get a check, before the first use as an index.

use super::{ElabResult, Elaborator};
use ptoc_diagnostics::{Span, codes};
use ptoc_ir::tile::{CheckData, Op, Value};
use ptoc_isa::{BinOp, CmpOp};

/// Operations between an index and what it is computed from that are followed.
const STEPS: usize = 64;

impl Elaborator<'_> {
    /// `v` is what its source says, over the integers: from here on, in this region.
    pub(crate) fn exact(&mut self, v: Value, span: Span) -> ElabResult<()> {
        let (mut open, mut wraps) = (vec![v], Vec::new());
        let mut left = STEPS;
        while let Some(v) = open.pop() {
            let Some((op, a, b)) = self.facts.definition(v) else { continue };
            if wraps.contains(&v) {
                continue;
            }
            if self.facts.may_wrap(v).is_some() {
                wraps.push(v);
            }
            left = left.saturating_sub(1);
            if left == 0 {
                break;
            }
            // A remainder is a number of its own, whatever it was taken of: `(n * count + k) % 2` is a slot.
            if op != BinOp::Rem {
                open.extend([a, b]);
            }
        }
        // Operands before what is computed from them.
        wraps.sort_unstable();
        wraps.into_iter().try_for_each(|v| self.check_exact(v, span))
    }

    /// As [`Elaborator::exact`], where the whole was proved to be the integer that the source says: sums and products
    /// may wrap on the way, what they are made of must not.
    pub(crate) fn exact_terms(&mut self, v: Value, span: Span) -> ElabResult<()> {
        let mut terms = Vec::new();
        let (mut open, mut left) = (vec![v], STEPS);
        while let Some(v) = open.pop() {
            match self.facts.definition(v) {
                Some((BinOp::Add | BinOp::Sub | BinOp::Mul, a, b)) if left > 0 => {
                    left -= 1;
                    open.extend([a, b]);
                }
                Some(_) => terms.push(v),
                None => {}
            }
        }
        terms.sort_unstable();
        terms.dedup();
        terms.into_iter().try_for_each(|v| self.exact(v, span))
    }

    /// The numbers that a condition compares are what the source says.
    pub(crate) fn exact_condition(&mut self, cond: Value, span: Span) -> ElabResult<()> {
        self.facts.comparisons(cond).into_iter().try_for_each(|(a, b)| {
            self.exact(a, span)?;
            self.exact(b, span)
        })
    }

    fn check_exact(&mut self, v: Value, span: Span) -> ElabResult<()> {
        // An operand's check may have proved it.
        let Some((op, a, b)) = self.facts.may_wrap(v) else { return Ok(()) };
        let zero = self.idx(0);
        let cond = match op {
            BinOp::Add | BinOp::Sub => match (self.const_index(a), self.const_index(b)) {
                (_, Some(c)) => self.moved_by(a, c, op == BinOp::Add, span),
                (Some(c), _) if op == BinOp::Add => self.moved_by(b, c, true, span),
                _ => self.keeps_sign(op, v, (a, b), span),
            },
            // The quotients are the factors, or there is none. Both: the least number by -1 is itself.
            BinOp::Mul => {
                let gives_back = |s: &mut Self, x, y| {
                    let q = s.b.binary(BinOp::Div, v, x, span);
                    let same = s.b.compare(CmpOp::Eq, q, y, span);
                    let none = s.b.compare(CmpOp::Eq, x, zero, span);
                    s.b.binary(BinOp::Or, same, none, span)
                };
                match (self.const_index(a), self.const_index(b)) {
                    (_, Some(c)) => self.within(a, c, span),
                    (Some(c), _) => self.within(b, c, span),
                    _ => {
                        let (x, y) = (gives_back(self, a, b), gives_back(self, b, a));
                        self.b.binary(BinOp::And, x, y, span)
                    }
                }
            }
            // The least number by -1 has no quotient.
            BinOp::Div => {
                let minus = self.idx(-1);
                let least = self.idx(i64::MIN);
                let (x, y) = (self.b.compare(CmpOp::Ne, a, least, span), self.b.compare(CmpOp::Ne, b, minus, span));
                self.b.binary(BinOp::Or, x, y, span)
            }
            _ => return Ok(()),
        };
        let symbol = match op {
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            _ => "/",
        };
        let data = CheckData {
            code: codes::INDEX_OVERFLOW,
            message: format!("an index overflows: {{0}} {symbol} {{1}} is beyond 64 bits"),
            span,
            help: None,
        };
        let check = self.b.check_data(data);
        self.emit(Op::Check { cond, check, args: vec![a, b] }, span);
        self.facts.assume_exact(v);
        Ok(())
    }

    /// The condition that `x + c` (or `x - c`) fits 64 bits.
    fn moved_by(&mut self, x: Value, c: i64, up: bool, span: Span) -> Value {
        // Of the least number there is no opposite: x - MIN fits for negative x.
        let (op, bound) = match (up, c) {
            (true, 0..) => (CmpOp::Le, i64::MAX - c),
            (true, _) => (CmpOp::Ge, i64::MIN - c),
            (false, 0..) => (CmpOp::Ge, i64::MIN + c),
            (false, _) => (CmpOp::Le, i64::MAX + c),
        };
        let bound = self.idx(bound);
        self.b.compare(op, x, bound, span)
    }

    /// The sum's sign differs from that of both operands if it overflows, the difference's from the first one's where
    /// theirs differ.
    fn keeps_sign(&mut self, op: BinOp, v: Value, (a, b): (Value, Value), span: Span) -> Value {
        let zero = self.idx(0);
        let mut differ = |x, y| self.b.binary(BinOp::Xor, x, y, span);
        let (first, second) = match op {
            BinOp::Add => (differ(a, v), differ(b, v)),
            _ => (differ(a, b), differ(a, v)),
        };
        let signs = self.b.binary(BinOp::And, first, second, span);
        self.b.compare(CmpOp::Ge, signs, zero, span)
    }

    /// The condition that `x` times `c` fits 64 bits.
    fn within(&mut self, x: Value, c: i64, span: Span) -> Value {
        let (lo, hi) = match c {
            0 => (i64::MIN, i64::MAX),
            -1 => (-i64::MAX, i64::MAX),
            1.. => (i64::MIN / c, i64::MAX / c),
            _ => (i64::MAX / c, i64::MIN / c),
        };
        let (lo, hi) = (self.idx(lo), self.idx(hi));
        let above = self.b.compare(CmpOp::Ge, x, lo, span);
        let below = self.b.compare(CmpOp::Le, x, hi, span);
        self.b.binary(BinOp::And, above, below, span)
    }
}
