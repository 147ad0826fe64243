//! What a number has in common in all iterations: it is a constant more than multiples of a step, and not below some
//! number. So an address is known to be wrong that is wrong wherever the loops are.

use ptoc_ir::analysis::gcd;
use ptoc_isa::BinOp;

/// `base + k * step` for whole numbers `k`, and at least `low`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progression {
    base: i64,
    /// Not negative; 0: the number is `base`.
    step: i64,
    low: Option<i64>,
}

impl Progression {
    /// One number.
    pub fn constant(n: i64) -> Progression {
        Progression { base: n, step: 0, low: Some(n) }
    }

    /// Any number, from `low` on if that is known.
    pub fn any(low: Option<i64>) -> Progression {
        Progression { base: 0, step: 1, low }
    }

    /// The result of an operation; any number, where nothing is known of it.
    pub fn of(op: BinOp, a: Progression, b: Progression) -> Progression {
        Progression::exact(op, a, b).unwrap_or(Progression::any(None))
    }

    fn exact(op: BinOp, a: Progression, b: Progression) -> Option<Progression> {
        let lows = || a.low.zip(b.low);
        let (base, step, low) = match op {
            BinOp::Add => {
                let low = lows().and_then(|(x, y)| x.checked_add(y));
                (a.base.checked_add(b.base)?, gcd(a.step, b.step), low)
            }
            BinOp::Sub => {
                // Only a constant is known from above.
                let low = a.low.filter(|_| b.step == 0).and_then(|x| x.checked_sub(b.base));
                (a.base.checked_sub(b.base)?, gcd(a.step, b.step), low)
            }
            BinOp::Mul => {
                let low = lows().filter(|(x, y)| *x >= 0 && *y >= 0).and_then(|(x, y)| x.checked_mul(y));
                let steps = [a.base.checked_mul(b.step)?, b.base.checked_mul(a.step)?, a.step.checked_mul(b.step)?];
                (a.base.checked_mul(b.base)?, steps.into_iter().fold(0, gcd), low)
            }
            // Floors: the parts that are multiples stay so.
            BinOp::Div if b.step == 0 && b.base > 0 && a.step % b.base == 0 => {
                (a.base.div_euclid(b.base), a.step / b.base, a.low.map(|x| x.div_euclid(b.base)))
            }
            BinOp::Div if b.step == 0 && b.base > 0 => (0, 1, a.low.map(|x| x.div_euclid(b.base))),
            BinOp::Rem if b.step == 0 && b.base > 0 => (a.base.rem_euclid(b.base), gcd(a.step, b.base), Some(0)),
            BinOp::Max => (0, 1, a.low.max(b.low)),
            BinOp::Min => (0, 1, lows().map(|(x, y)| x.min(y))),
            _ => return None,
        };
        Some(Progression { base, step, low }.tight())
    }

    /// The lowest number is one of the progression's.
    fn tight(self) -> Progression {
        let Some(low) = self.low else { return self };
        let low = match self.step {
            0 => self.base,
            step => low.saturating_add((self.base.wrapping_sub(low)).rem_euclid(step)),
        };
        Progression { low: Some(low), ..self }
    }

    /// Is no number of it a multiple of `unit`?
    pub fn never_multiple(self, unit: u64) -> bool {
        i64::try_from(unit).is_ok_and(|unit| unit > 0 && self.base.rem_euclid(gcd(self.step, unit)) != 0)
    }

    /// Are all numbers of it above `last`?
    pub fn always_above(self, last: i64) -> bool {
        self.low.is_some_and(|low| low > last)
    }

    /// One of its numbers: the lowest, if that is known.
    pub fn sample(self) -> i64 {
        self.low.unwrap_or(self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number that an operation makes of two of the operands' numbers is one of the result's.
    #[test]
    fn nothing_is_left_out() {
        let all = [(5, 0, Some(5)), (-3, 0, Some(-3)), (0, 1, None), (0, 1, Some(0)), (4, 32, Some(4)), (1, 6, None)];
        let all = all.map(|(base, step, low)| Progression { base, step, low });
        let numbers = |p: Progression| {
            let all = (-9..9).map(move |k| p.base + k * p.step);
            all.filter(move |n| p.low.is_none_or(|low| *n >= low)).collect::<Vec<_>>()
        };
        for op in [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Div, BinOp::Rem, BinOp::Min, BinOp::Max] {
            for a in all {
                for b in all {
                    let got = Progression::of(op, a, b);
                    for (x, y) in numbers(a).into_iter().flat_map(|x| numbers(b).into_iter().map(move |y| (x, y))) {
                        let n = match op {
                            BinOp::Add => x + y,
                            BinOp::Sub => x - y,
                            BinOp::Mul => x * y,
                            BinOp::Min => x.min(y),
                            BinOp::Max => x.max(y),
                            _ if y <= 0 => continue,
                            BinOp::Div => x.div_euclid(y),
                            _ => x.rem_euclid(y),
                        };
                        let fits = if got.step == 0 { n == got.base } else { (n - got.base) % got.step == 0 };
                        assert!(fits && got.low.is_none_or(|low| low <= n), "{op:?} {a:?} {b:?}: {got:?} without {n}");
                    }
                }
            }
        }
    }

    #[test]
    fn addresses() {
        let j = Progression::any(Some(0));
        let c = Progression::constant;
        let at = Progression::of(BinOp::Add, Progression::of(BinOp::Mul, j, c(64)), c(4));
        assert!(at.never_multiple(32) && at.sample() == 4);
        assert!(!at.never_multiple(4) && at.always_above(3) && !at.always_above(4));
        let turn = Progression::of(BinOp::Mul, Progression::of(BinOp::Rem, j, c(2)), c(48));
        assert!(!turn.never_multiple(32), "every other one is");
    }
}
