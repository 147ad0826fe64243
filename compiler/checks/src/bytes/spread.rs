//! The values that a number may have: a progression `first, first + step, ..., last`, with open ends.

use ptoc_ir::analysis::gcd;
use ptoc_isa::BinOp;

/// Some values; it may have more than the number does have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spread {
    pub(super) first: Option<i64>,
    pub(super) last: Option<i64>,
    /// The distance of neighbours; 0 if there is one value.
    step: i64,
    /// All values differ from this one by multiples of the step.
    some: i64,
}

impl Spread {
    pub(super) const ANY: Spread = Spread { first: None, last: None, step: 1, some: 0 };

    pub(super) const fn one(n: i64) -> Spread {
        Spread { first: Some(n), last: Some(n), step: 0, some: n }
    }

    pub(super) fn between(first: Option<i64>, last: Option<i64>) -> Spread {
        match (first, last) {
            (Some(a), Some(b)) if a == b => Spread::one(a),
            // Nothing is between: what is computed of it does not matter, but must not be wrong elsewhere.
            (Some(a), Some(b)) if a > b => Spread::ANY,
            _ => Spread { first, last, step: 1, some: 0 },
        }
    }

    /// Only those that are `some` and multiples of `step` more or less than that.
    pub(super) fn every(self, some: i64, step: i64) -> Spread {
        match self.step {
            0 => self,
            _ => Spread { step, some, ..self },
        }
    }

    pub(super) fn constant(self) -> Option<i64> {
        (self.step == 0).then_some(self.some)
    }

    fn made(first: Option<i64>, last: Option<i64>, step: Option<i64>, some: Option<i64>) -> Spread {
        match (step, some) {
            (Some(step), Some(some)) => Spread { first, last, step, some },
            _ => Spread { first, last, step: 1, some: 0 },
        }
    }

    pub(super) fn plus(self, other: Spread) -> Spread {
        let sum = |a: Option<i64>, b: Option<i64>| a?.checked_add(b?);
        let step = gcd(self.step, other.step);
        Spread::made(
            sum(self.first, other.first),
            sum(self.last, other.last),
            Some(step),
            self.some.checked_add(other.some),
        )
    }

    fn times(self, by: i64) -> Spread {
        let scaled = |n: Option<i64>| n?.checked_mul(by);
        let (first, last) = if by < 0 { (self.last, self.first) } else { (self.first, self.last) };
        match by {
            0 => Spread::one(0),
            _ => Spread::made(
                scaled(first),
                scaled(last),
                self.step.checked_mul(by).and_then(i64::checked_abs),
                self.some.checked_mul(by),
            ),
        }
    }

    /// The values of both.
    pub(super) fn or(self, other: Spread) -> Spread {
        let apart = self.some.checked_sub(other.some).and_then(i64::checked_abs);
        let least = self.first.zip(other.first).map(|(a, b)| a.min(b));
        let most = self.last.zip(other.last).map(|(a, b)| a.max(b));
        let step = apart.map(|n| gcd(gcd(self.step, other.step), n));
        Spread::made(least, most, step, Some(self.some))
    }

    /// `self op other` on indices; what is not understood may be anything. An operation that overflows ends the run.
    pub(super) fn binary(self, op: BinOp, other: Spread) -> Spread {
        match (op, self.constant(), other.constant()) {
            (BinOp::Add, ..) => self.plus(other),
            (BinOp::Sub, ..) => self.plus(other.times(-1)),
            (BinOp::Mul, _, Some(n)) => self.times(n),
            (BinOp::Mul, Some(n), _) => other.times(n),
            (BinOp::Min, ..) => {
                let last = self.last.into_iter().chain(other.last).min();
                Spread { last, ..self.or(other) }
            }
            (BinOp::Max, ..) => {
                let first = self.first.into_iter().chain(other.first).max();
                Spread { first, ..self.or(other) }
            }
            // Both floor.
            (BinOp::Div, _, Some(n)) if n > 0 => {
                let part = |m: Option<i64>| m.map(|m| m.div_euclid(n));
                match self.step % n == 0 && self.step > 0 {
                    true => Spread::made(part(self.first), part(self.last), Some(self.step / n), part(Some(self.some))),
                    false => Spread::between(part(self.first), part(self.last)),
                }
            }
            (BinOp::Rem, _, Some(n)) if n > 0 => match (self.first, self.last) {
                (Some(a), Some(b)) if a >= 0 && b < n => self,
                _ => {
                    let step = gcd(n, self.step);
                    let low = self.some.rem_euclid(step);
                    let last = n - step + low;
                    if low == last {
                        Spread::one(low)
                    } else {
                        Spread { first: Some(low), last: Some(last), step, some: low }
                    }
                }
            },
            _ => Spread::ANY,
        }
    }

    /// May it be `n`?
    pub(super) fn has(self, n: i64) -> bool {
        let within = self.first.is_none_or(|f| f <= n) && self.last.is_none_or(|l| n <= l);
        within
            && match self.step {
                0 => n == self.some,
                step => n.checked_sub(self.some).is_none_or(|d| d % step == 0),
            }
    }

    /// The values from `least` to `most`, at most `limit` of them.
    pub(super) fn values(self, least: i64, most: i64, limit: usize) -> Option<Vec<i64>> {
        let (least, most) = (self.first.map_or(least, |f| f.max(least)), self.last.map_or(most, |l| l.min(most)));
        let step = self.step.max(1);
        let behind = self.some.checked_sub(least)?.rem_euclid(step);
        let start = least.checked_add(behind)?;
        let mut out = Vec::new();
        let mut at = start;
        while at <= most {
            if self.has(at) {
                if out.len() == limit {
                    return None;
                }
                out.push(at);
            }
            at = match at.checked_add(step) {
                Some(next) if self.step > 0 => next,
                _ if self.step == 0 && at < self.some => self.some,
                _ => break,
            };
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Progressions of few small numbers, and what they stand for.
    fn some() -> Vec<(Spread, Vec<i64>)> {
        let mut out = Vec::new();
        for first in -7..8 {
            for step in 1..5 {
                for n in 1..5 {
                    let values: Vec<i64> = (0..n).map(|k| first + k * step).collect();
                    let s = values.iter().map(|v| Spread::one(*v)).reduce(Spread::or).expect("not empty");
                    assert_eq!(s.values(-100, 100, 100).as_ref(), Some(&values), "{s:?}");
                    out.push((s, values));
                }
            }
        }
        out
    }

    #[test]
    fn every_result_of_an_operation_is_in_the_spread() {
        let all = some();
        let ops = [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Min, BinOp::Max, BinOp::Div, BinOp::Rem];
        for op in ops {
            for (a, xs) in &all {
                for (b, ys) in all.iter().step_by(3) {
                    let found = a.binary(op, *b);
                    for (&x, &y) in xs.iter().flat_map(|x| ys.iter().map(move |y| (x, y))) {
                        let value = match op {
                            BinOp::Add => x + y,
                            BinOp::Sub => x - y,
                            BinOp::Mul => x * y,
                            BinOp::Min => x.min(y),
                            BinOp::Max => x.max(y),
                            BinOp::Div if y > 0 => x.div_euclid(y),
                            BinOp::Rem if y > 0 => x.rem_euclid(y),
                            _ => continue,
                        };
                        assert!(found.has(value), "{x} {op:?} {y} = {value} is not in {found:?} of {a:?} and {b:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn affine_spreads_are_exact() {
        let index = Spread::between(Some(3), Some(79));
        let even = index.binary(BinOp::Mul, Spread::one(2)).binary(BinOp::Add, Spread::one(1));
        assert_eq!(even.values(0, 12, 10), Some(vec![7, 9, 11]));
        assert!(!even.has(8) && even.has(159) && !even.has(161));
        // Of an index without an end, too.
        let any =
            Spread::between(Some(0), None).binary(BinOp::Mul, Spread::one(32)).binary(BinOp::Rem, Spread::one(128));
        assert_eq!(any.values(0, 1000, 10), Some(vec![0, 32, 64, 96]));
        assert_eq!(any.values(0, 1000, 3), None);
    }
}
