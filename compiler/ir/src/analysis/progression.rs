//! The values that a number may have: a progression `first, first + step, ..., last`, with open ends. The bytes that a
//! window may touch and the addresses that a computed one may be are found by it.

use super::gcd;
use ptoc_isa::BinOp;

/// Some values; it may have more than the number does have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progression {
    /// The least one; `None`: it has no end below.
    pub first: Option<i64>,
    /// The greatest one; `None`: it has no end above.
    pub last: Option<i64>,
    /// The distance of neighbours; 0 if there is one value.
    step: i64,
    /// All values differ from this one by multiples of the step.
    some: i64,
}

impl Progression {
    /// All numbers.
    pub const ANY: Progression = Progression { first: None, last: None, step: 1, some: 0 };

    /// One number.
    pub const fn one(n: i64) -> Progression {
        Progression { first: Some(n), last: Some(n), step: 0, some: n }
    }

    /// All numbers from one to another.
    pub fn between(first: Option<i64>, last: Option<i64>) -> Progression {
        match (first, last) {
            (Some(a), Some(b)) if a == b => Progression::one(a),
            // Nothing is between: what is computed of it does not matter, but must not be wrong elsewhere.
            (Some(a), Some(b)) if a > b => Progression::ANY,
            _ => Progression { first, last, step: 1, some: 0 },
        }
    }

    /// Only those that are `some` and multiples of `step` more or less than that.
    pub fn every(self, some: i64, step: i64) -> Progression {
        match self.step {
            0 => self,
            _ => Progression { step, some, ..self },
        }
    }

    /// The number, if it is one.
    pub fn constant(self) -> Option<i64> {
        (self.step == 0).then_some(self.some)
    }

    fn made(first: Option<i64>, last: Option<i64>, step: Option<i64>, some: Option<i64>) -> Progression {
        match (step, some) {
            (Some(step), Some(some)) => Progression { first, last, step, some },
            _ => Progression { first, last, step: 1, some: 0 },
        }
    }

    /// All sums.
    pub fn plus(self, other: Progression) -> Progression {
        let sum = |a: Option<i64>, b: Option<i64>| a?.checked_add(b?);
        let step = gcd(self.step, other.step);
        Progression::made(
            sum(self.first, other.first),
            sum(self.last, other.last),
            Some(step),
            self.some.checked_add(other.some),
        )
    }

    fn times(self, by: i64) -> Progression {
        let scaled = |n: Option<i64>| n?.checked_mul(by);
        let (first, last) = if by < 0 { (self.last, self.first) } else { (self.first, self.last) };
        match by {
            0 => Progression::one(0),
            _ => Progression::made(
                scaled(first),
                scaled(last),
                self.step.checked_mul(by).and_then(i64::checked_abs),
                self.some.checked_mul(by),
            ),
        }
    }

    /// All products of two that are not known.
    fn product(self, other: Progression) -> Progression {
        let of = |a: i64, b: i64| a.checked_mul(b);
        let step = || {
            let parts = [of(self.some, other.step)?, of(other.some, self.step)?, of(self.step, other.step)?];
            Some(parts.into_iter().fold(0, gcd))
        };
        let ends = self.first.zip(other.first).filter(|(a, b)| *a >= 0 && *b >= 0);
        let first = ends.and_then(|(a, b)| of(a, b));
        let last = ends.and(self.last.zip(other.last)).and_then(|(a, b)| of(a, b));
        Progression::made(first, last, step(), of(self.some, other.some))
    }

    /// The values of both.
    pub fn or(self, other: Progression) -> Progression {
        let apart = self.some.checked_sub(other.some).and_then(i64::checked_abs);
        let least = self.first.zip(other.first).map(|(a, b)| a.min(b));
        let most = self.last.zip(other.last).map(|(a, b)| a.max(b));
        let step = apart.map(|n| gcd(gcd(self.step, other.step), n));
        Progression::made(least, most, step, Some(self.some))
    }

    /// `self op other` on indices; what is not understood may be anything. An operation that overflows ends the run.
    pub fn binary(self, op: BinOp, other: Progression) -> Progression {
        match (op, self.constant(), other.constant()) {
            (BinOp::Add, ..) => self.plus(other),
            (BinOp::Sub, ..) => self.plus(other.times(-1)),
            (BinOp::Mul, _, Some(n)) => self.times(n),
            (BinOp::Mul, Some(n), _) => other.times(n),
            (BinOp::Mul, ..) => self.product(other),
            (BinOp::Min, ..) => {
                let last = self.last.into_iter().chain(other.last).min();
                Progression { last, ..self.or(other) }
            }
            (BinOp::Max, ..) => {
                let first = self.first.into_iter().chain(other.first).max();
                Progression { first, ..self.or(other) }
            }
            // Both floor.
            (BinOp::Div, _, Some(n)) if n > 0 => {
                let part = |m: Option<i64>| m.map(|m| m.div_euclid(n));
                match self.step % n == 0 && self.step > 0 {
                    true => {
                        Progression::made(part(self.first), part(self.last), Some(self.step / n), part(Some(self.some)))
                    }
                    false => Progression::between(part(self.first), part(self.last)),
                }
            }
            (BinOp::Rem, _, Some(n)) if n > 0 => match (self.first, self.last) {
                (Some(a), Some(b)) if a >= 0 && b < n => self,
                _ => {
                    let step = gcd(n, self.step);
                    let low = self.some.rem_euclid(step);
                    let last = n - step + low;
                    if low == last {
                        Progression::one(low)
                    } else {
                        Progression { first: Some(low), last: Some(last), step, some: low }
                    }
                }
            },
            _ => Progression::ANY,
        }
    }

    /// Whether none of its values is a multiple of `unit`.
    pub fn never_multiple(self, unit: u64) -> bool {
        i64::try_from(unit).is_ok_and(|unit| unit > 0 && self.some.rem_euclid(gcd(self.step, unit)) != 0)
    }

    /// Whether all of its values are above `limit`.
    pub fn always_above(self, limit: i64) -> bool {
        self.first.is_some_and(|first| first > limit)
    }

    /// One of its values: the least, if that is known.
    pub fn sample(self) -> i64 {
        self.first.unwrap_or(self.some)
    }

    /// Whether it may be `n`.
    pub fn has(self, n: i64) -> bool {
        let within = self.first.is_none_or(|f| f <= n) && self.last.is_none_or(|l| n <= l);
        within
            && match self.step {
                0 => n == self.some,
                step => n.checked_sub(self.some).is_none_or(|d| d % step == 0),
            }
    }

    /// The values from `least` to `most`, at most `limit` of them.
    pub fn values(self, least: i64, most: i64, limit: usize) -> Option<Vec<i64>> {
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
    fn some() -> Vec<(Progression, Vec<i64>)> {
        let mut out = Vec::new();
        for first in -7..8 {
            for step in 1..5 {
                for n in 1..5 {
                    let values: Vec<i64> = (0..n).map(|k| first + k * step).collect();
                    let s = values.iter().map(|v| Progression::one(*v)).reduce(Progression::or).expect("not empty");
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
        let index = Progression::between(Some(3), Some(79));
        let even = index.binary(BinOp::Mul, Progression::one(2)).binary(BinOp::Add, Progression::one(1));
        assert_eq!(even.values(0, 12, 10), Some(vec![7, 9, 11]));
        assert!(!even.has(8) && even.has(159) && !even.has(161));
        // Of an index without an end, too.
        let any = Progression::between(Some(0), None)
            .binary(BinOp::Mul, Progression::one(32))
            .binary(BinOp::Rem, Progression::one(128));
        assert_eq!(any.values(0, 1000, 10), Some(vec![0, 32, 64, 96]));
        assert_eq!(any.values(0, 1000, 3), None);
    }

    #[test]
    fn addresses() {
        let j = Progression::between(Some(0), None);
        let n = Progression::one;
        let at = j.binary(BinOp::Mul, n(64)).binary(BinOp::Add, n(4));
        assert!(at.never_multiple(32) && at.sample() == 4);
        assert!(!at.never_multiple(4) && at.always_above(3) && !at.always_above(4));
        let turn = j.binary(BinOp::Rem, n(2)).binary(BinOp::Mul, n(48));
        assert!(!turn.never_multiple(32), "every other one is");
        let product = at.binary(BinOp::Mul, j.binary(BinOp::Mul, n(8)));
        assert_eq!((product.first, product.has(4 * 8), product.has(33)), (Some(0), true, false));
    }
}
