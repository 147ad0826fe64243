//! Abstract domain (interval and congruence): what is known of an integer: an interval, a residue class, and how it
//! moves with one generalised loop.
//!
//! A [`AffineValue`] stands for all `coef * t + x` where `lo <= x <= hi`, `x = r (mod m)`, and `t >= 1` counts the
//! periods that loop `base` has been through. The counter of a loop in its general state is `period * t + offset`, and
//! what moves along with it (its bound, a variable that counts) has the same base, so that comparisons between them are
//! exact.

use ptoc_ir::analysis::gcd;
use ptoc_isa::{BinOp, CmpOp};

/// No bound.
pub(super) const MIN: i64 = i64::MIN;
/// No bound.
pub(super) const MAX: i64 = i64::MAX;
/// Beyond this a bound is none; sums of two cannot overflow.
const LARGE: i64 = 1 << 60;

/// An integer (or a condition, 0 or 1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct AffineValue {
    /// The loop that it moves with, plus 1; 0: none.
    pub(super) base: u8,
    /// By how much it moves in a period of that loop; 0 without one.
    pub(super) coef: i64,
    /// Least.
    pub(super) lo: i64,
    /// Greatest.
    pub(super) hi: i64,
    /// Modulus, at least 1 (1: nothing is known).
    pub(super) m: i64,
    /// Residue of the offset.
    pub(super) r: i64,
}

/// For each loop the most periods that it can be through.
pub(super) type Periods<'a> = &'a [i64];

impl AffineValue {
    /// Anything.
    pub(super) const TOP: AffineValue = AffineValue { base: 0, coef: 0, lo: MIN, hi: MAX, m: 1, r: 0 };
    /// 0 or 1.
    pub(super) const BIT: AffineValue = AffineValue { base: 0, coef: 0, lo: 0, hi: 1, m: 1, r: 0 };

    pub(super) fn of(n: i64) -> AffineValue {
        AffineValue { base: 0, coef: 0, lo: n, hi: n, m: 1, r: 0 }.tidy()
    }

    pub(super) fn bit(b: bool) -> AffineValue {
        AffineValue::of(i64::from(b))
    }

    pub(super) fn range(lo: i64, hi: i64) -> AffineValue {
        AffineValue { base: 0, coef: 0, lo, hi, m: 1, r: 0 }.tidy()
    }

    /// `coef * t + offset`, with the periods of loop `base`.
    pub(super) fn moving(base: usize, coef: i64, lo: i64, hi: i64) -> AffineValue {
        match u8::try_from(base + 1) {
            Ok(base) => AffineValue { base, coef, lo, hi, m: 1, r: 0 }.tidy(),
            Err(_) => AffineValue::TOP,
        }
    }

    fn tidy(mut self) -> AffineValue {
        if self.lo <= -LARGE {
            self.lo = MIN;
        }
        if self.hi >= LARGE {
            self.hi = MAX;
        }
        if self.lo > LARGE || self.hi < -LARGE || self.coef.unsigned_abs() > LARGE.unsigned_abs() {
            return AffineValue::TOP;
        }
        if self.coef == 0 {
            self.base = 0;
        }
        if self.m > 1 {
            if self.lo != MIN {
                self.lo += (self.r - self.lo).rem_euclid(self.m);
            }
            if self.hi != MAX {
                self.hi -= (self.hi - self.r).rem_euclid(self.m);
            }
        }
        if self.m <= 1 || self.lo == self.hi {
            (self.m, self.r) = (1, 0);
        }
        self
    }

    /// The number, if it is one.
    pub(super) fn constant(self) -> Option<i64> {
        (self.base == 0 && self.lo == self.hi).then_some(self.lo)
    }

    /// The offset, if it is one number.
    pub(super) fn offset(self) -> Option<i64> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// Whether there is no such number.
    pub(super) fn empty(self) -> bool {
        self.lo > self.hi
    }

    /// Least and greatest value.
    pub(super) fn bounds(self, periods: Periods) -> (i64, i64) {
        if self.base == 0 {
            return (self.lo, self.hi);
        }
        let most = periods.get(self.base as usize - 1).copied().unwrap_or(MAX);
        let last = if most == MAX { None } else { self.coef.checked_mul(most) };
        let (low, high) = if self.coef > 0 { (Some(self.coef), last) } else { (last, Some(self.coef)) };
        (low.map_or(MIN, |n| sum(self.lo, n)), high.map_or(MAX, |n| sum(self.hi, n)))
    }

    /// The residue modulo `m`, if it is known.
    pub(super) fn residue(self, m: i64) -> Option<i64> {
        if m <= 0 || self.coef % m != 0 {
            return None;
        }
        match self.offset() {
            Some(n) => Some(n.rem_euclid(m)),
            None => (self.m % m == 0).then(|| self.r.rem_euclid(m)),
        }
    }

    /// Without its bounds, if a residue is known that is left.
    pub(super) fn unbounded(self) -> AffineValue {
        if self.base != 0 || self.m <= 1 { self } else { AffineValue { lo: MIN, hi: MAX, ..self } }
    }

    /// The same without the loop: what is left of it where the loop is over.
    pub(super) fn settled(self, periods: Periods) -> AffineValue {
        if self.base == 0 {
            return self;
        }
        let (lo, hi) = self.bounds(periods);
        let step = match self.offset() {
            Some(_) => self.coef.abs(),
            None => gcd(self.coef.abs(), self.m),
        };
        let residue = self.offset().unwrap_or(self.r);
        AffineValue { base: 0, coef: 0, lo, hi, m: step, r: residue.rem_euclid(step.max(1)) }.tidy()
    }

    /// As it is seen a period later.
    pub(super) fn shifted(self) -> AffineValue {
        self.plus(-self.coef)
    }

    /// `self + n`
    pub(super) fn plus(self, n: i64) -> AffineValue {
        AffineValue { lo: sum(self.lo, n), hi: sum(self.hi, n), r: (self.r + n % self.m).rem_euclid(self.m), ..self }
            .tidy()
    }

    /// What is in both; only of equal bases.
    pub(super) fn meet(self, other: AffineValue) -> AffineValue {
        if (self.base, self.coef) != (other.base, other.coef) {
            return if other.base != 0 { other } else { self };
        }
        let (m, r) = if self.m >= other.m { (self.m, self.r) } else { (other.m, other.r) };
        AffineValue { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi), m, r, ..self }.tidy()
    }

    /// With the residue class of `other` as a value, as far as it is one.
    pub(super) fn with_class(self, other: AffineValue) -> AffineValue {
        let m = match other.coef {
            0 => other.m,
            coef => gcd(coef.abs(), other.m),
        };
        if m <= 1 || self.coef % m != 0 {
            return self;
        }
        AffineValue { m, r: other.r.rem_euclid(m), ..self }.tidy()
    }

    /// Not above `other`, which has the same base.
    pub(super) fn capped(self, other: AffineValue) -> AffineValue {
        AffineValue { hi: self.hi.min(other.hi), ..self }.tidy()
    }

    /// `self + other`
    pub(super) fn add(self, other: AffineValue) -> AffineValue {
        if self.base != 0 && other.base != 0 && self.base != other.base {
            return AffineValue::TOP;
        }
        let Some(coef) = self.coef.checked_add(other.coef) else { return AffineValue::TOP };
        let (m, r) = match (self.offset(), other.offset()) {
            (Some(_), Some(_)) => (1, 0),
            (Some(n), None) => (other.m, (other.r + n % other.m).rem_euclid(other.m)),
            (None, Some(n)) => (self.m, (self.r + n % self.m).rem_euclid(self.m)),
            (None, None) => {
                let g = gcd(self.m, other.m);
                (g, (self.r + other.r).rem_euclid(g))
            }
        };
        let base = self.base.max(other.base);
        AffineValue { base, coef, lo: sum_low(self.lo, other.lo), hi: sum_high(self.hi, other.hi), m, r }.tidy()
    }

    /// `-self`
    pub(super) fn neg(self) -> AffineValue {
        let minus = |n: i64| {
            if n == MIN {
                MAX
            } else if n == MAX {
                MIN
            } else {
                -n
            }
        };
        let r = (-self.r).rem_euclid(self.m);
        AffineValue { coef: -self.coef, lo: minus(self.hi), hi: minus(self.lo), r, ..self }.tidy()
    }

    /// `self * n`
    fn times(self, n: i64) -> AffineValue {
        if n == 0 {
            return AffineValue::of(0);
        }
        if n < 0 {
            return n.checked_neg().map_or(AffineValue::TOP, |n| self.neg().times(n));
        }
        let bound = |x: i64| {
            if x == MIN || x == MAX {
                return Some(x);
            }
            x.checked_mul(n).filter(|p| p.unsigned_abs() < LARGE.unsigned_abs())
        };
        let (Some(lo), Some(hi), Some(coef)) = (bound(self.lo), bound(self.hi), self.coef.checked_mul(n)) else {
            return AffineValue::TOP;
        };
        let (m, r) = match (self.m.checked_mul(n), self.r.checked_mul(n)) {
            (Some(m), Some(r)) if m < LARGE => (m, r.rem_euclid(m)),
            _ => (1, 0),
        };
        AffineValue { coef, lo, hi, m, r, ..self }.tidy()
    }

    /// Modulus and residue of the values themselves.
    fn class(self) -> (i64, i64) {
        let m = match (self.offset(), self.coef) {
            (Some(_), coef) => coef.abs(),
            (None, 0) => self.m,
            (None, coef) => gcd(coef.abs(), self.m),
        };
        (m.max(1), self.offset().unwrap_or(self.r).rem_euclid(m.max(1)))
    }

    /// `self * other` of two numbers that are not known: a bound and a residue.
    fn product(self, other: AffineValue, periods: Periods) -> AffineValue {
        let ((m, r), (n, s)) = (self.class(), other.class());
        let g = gcd(m, n);
        let residue = i128::from(r) * i128::from(s) % i128::from(g);
        let ((al, ah), (bl, bh)) = (self.bounds(periods), other.bounds(periods));
        let bound = |x: i64, y: i64, none: i64| match (x, y) {
            (MIN | MAX, _) | (_, MIN | MAX) => none,
            _ => x.checked_mul(y).filter(|p| p.unsigned_abs() < LARGE.unsigned_abs()).unwrap_or(none),
        };
        let (lo, hi) = if al >= 0 && bl >= 0 { (bound(al, bl, 0), bound(ah, bh, MAX)) } else { (MIN, MAX) };
        AffineValue { base: 0, coef: 0, lo, hi, m: g, r: residue as i64 }.tidy()
    }

    /// The floor of `self / n`, n > 0.
    fn over(self, n: i64) -> AffineValue {
        let floor = |x: i64| if x == MIN || x == MAX { x } else { x.div_euclid(n) };
        if self.coef % n != 0 {
            return AffineValue::TOP;
        }
        AffineValue { coef: self.coef / n, lo: floor(self.lo), hi: floor(self.hi), m: 1, r: 0, ..self }.tidy()
    }

    /// `self` modulo `n`, n > 0; not negative.
    fn modulo(self, n: i64) -> AffineValue {
        if let Some(r) = self.residue(n) {
            return AffineValue::of(r);
        }
        if self.base == 0 && self.lo >= 0 && self.hi < n {
            return self;
        }
        let g = if self.coef % n == 0 { gcd(self.m, n) } else { 1 };
        AffineValue { base: 0, coef: 0, lo: 0, hi: n - 1, m: g, r: self.r.rem_euclid(g) }.tidy()
    }

    /// `a op b` on `index` values or conditions.
    pub(super) fn binary(op: BinOp, a: AffineValue, b: AffineValue, periods: Periods) -> AffineValue {
        let bits = |n: AffineValue| n.base == 0 && n.lo >= 0 && n.hi <= 1;
        match op {
            BinOp::Add => a.add(b),
            BinOp::Sub => a.add(b.neg()),
            BinOp::Mul => match (a.constant(), b.constant()) {
                (Some(n), _) => b.times(n),
                (_, Some(n)) => a.times(n),
                _ => a.product(b, periods),
            },
            BinOp::Div => match b.constant() {
                Some(n) if n > 0 => {
                    let exact = a.over(n);
                    if exact != AffineValue::TOP { exact } else { a.settled(periods).over(n) }
                }
                _ => AffineValue::TOP,
            },
            BinOp::Rem => match b.constant() {
                Some(n) if n > 0 => a.modulo(n),
                _ => AffineValue::TOP,
            },
            BinOp::Min | BinOp::Max => match AffineValue::compare(CmpOp::Le, a, b, periods) {
                Some(le) => {
                    if le == (op == BinOp::Min) {
                        a
                    } else {
                        b
                    }
                }
                None => {
                    let ((al, ah), (bl, bh)) = (a.bounds(periods), b.bounds(periods));
                    match op {
                        BinOp::Min => AffineValue::range(al.min(bl), ah.min(bh)),
                        _ => AffineValue::range(al.max(bl), ah.max(bh)),
                    }
                }
            },
            BinOp::And if bits(a) && bits(b) => AffineValue::range(a.lo & b.lo, a.hi & b.hi),
            BinOp::And => match (a.constant(), b.constant()) {
                (Some(x), Some(y)) => AffineValue::of(x & y),
                // The low bits.
                (_, Some(mask)) if (0..LARGE).contains(&mask) && (mask + 1) & mask == 0 => a.modulo(mask + 1),
                (Some(mask), _) if (0..LARGE).contains(&mask) && (mask + 1) & mask == 0 => b.modulo(mask + 1),
                _ => AffineValue::TOP,
            },
            BinOp::Or if bits(a) && bits(b) => AffineValue::range(a.lo | b.lo, a.hi | b.hi),
            BinOp::Xor if bits(a) && bits(b) => match (a.constant(), b.constant()) {
                (Some(x), Some(y)) => AffineValue::of(x ^ y),
                _ => AffineValue::BIT,
            },
            BinOp::Or | BinOp::Xor => match (a.constant(), b.constant()) {
                (Some(x), Some(y)) => AffineValue::of(if op == BinOp::Or { x | y } else { x ^ y }),
                _ => AffineValue::TOP,
            },
            BinOp::Shl => match b.constant() {
                Some(n) if (0..60).contains(&n) => a.times(1 << n),
                _ => AffineValue::TOP,
            },
            BinOp::Shr => match b.constant() {
                Some(n) if (0..60).contains(&n) => AffineValue::binary(BinOp::Div, a, AffineValue::of(1 << n), periods),
                _ => AffineValue::TOP,
            },
            #[allow(unreachable_patterns, reason = "further operations have no exact form")]
            _ => AffineValue::TOP,
        }
    }

    /// `a op b`, if it is decided.
    pub(super) fn compare(op: CmpOp, a: AffineValue, b: AffineValue, periods: Periods) -> Option<bool> {
        let difference = a.add(b.neg());
        let (lo, hi) = match difference.base {
            0 if a.base == b.base => (difference.lo, difference.hi),
            _ => difference.bounds(periods),
        };
        let (lo, hi) = match (a.base == b.base || difference != AffineValue::TOP, lo, hi) {
            (true, lo, hi) => (lo, hi),
            _ => {
                let ((al, ah), (bl, bh)) = (a.bounds(periods), b.bounds(periods));
                (sum_low(al, negated(bh)), sum_high(ah, negated(bl)))
            }
        };
        let class = difference.m > 1 && difference.coef % difference.m == 0 && difference.r != 0;
        let equal = if lo == 0 && hi == 0 {
            Some(true)
        } else if lo > 0 || hi < 0 || class {
            Some(false)
        } else {
            None
        };
        match op {
            CmpOp::Eq => equal,
            CmpOp::Ne => equal.map(|e| !e),
            CmpOp::Lt => decide(hi < 0, lo >= 0),
            CmpOp::Le => decide(hi <= 0, lo > 0),
            CmpOp::Gt => decide(lo > 0, hi <= 0),
            CmpOp::Ge => decide(lo >= 0, hi < 0),
        }
    }

    /// Either of two.
    pub(super) fn join(self, other: AffineValue, periods: Periods) -> AffineValue {
        if self == other {
            return self;
        }
        if (self.base, self.coef) == (other.base, other.coef) {
            return AffineValue { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi), m: 1, r: 0, ..self }.tidy();
        }
        let ((al, ah), (bl, bh)) = (self.bounds(periods), other.bounds(periods));
        AffineValue::range(al.min(bl), ah.max(bh))
    }

    /// Where `self op other` holds, as far as an interval can say it.
    pub(super) fn limited(self, op: CmpOp, other: AffineValue) -> AffineValue {
        if self.base != other.base || self.coef != other.coef {
            return self;
        }
        let (mut lo, mut hi) = (self.lo, self.hi);
        match op {
            CmpOp::Eq => (lo, hi) = (lo.max(other.lo), hi.min(other.hi)),
            CmpOp::Lt => hi = hi.min(sum(other.hi, -1)),
            CmpOp::Le => hi = hi.min(other.hi),
            CmpOp::Gt => lo = lo.max(sum(other.lo, 1)),
            CmpOp::Ge => lo = lo.max(other.lo),
            CmpOp::Ne => {
                if let Some(n) = other.offset() {
                    if lo == n {
                        lo += 1;
                    }
                    if hi == n {
                        hi -= 1;
                    }
                }
            }
        }
        AffineValue { lo, hi, ..self }.tidy()
    }
}

fn decide(yes: bool, no: bool) -> Option<bool> {
    if yes {
        Some(true)
    } else if no {
        Some(false)
    } else {
        None
    }
}

fn negated(n: i64) -> i64 {
    match n {
        MIN => MAX,
        MAX => MIN,
        n => -n,
    }
}

/// A bound plus a number.
fn sum(bound: i64, n: i64) -> i64 {
    if bound == MIN || bound == MAX { bound } else { bound.saturating_add(n) }
}

fn sum_low(a: i64, b: i64) -> i64 {
    if a == MIN || b == MIN { MIN } else { a.saturating_add(b) }
}

fn sum_high(a: i64, b: i64) -> i64 {
    if a == MAX || b == MAX { MAX } else { a.saturating_add(b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_and_its_bound() {
        let (j, bound) = (AffineValue::moving(0, 4, 2, 2), AffineValue::moving(0, 4, 4, MAX));
        let none: Periods = &[MAX];
        assert_eq!(AffineValue::compare(CmpOp::Lt, j, bound, none), Some(true));
        assert_eq!(AffineValue::compare(CmpOp::Eq, j, bound.plus(-1), none), Some(false));
        assert_eq!(AffineValue::compare(CmpOp::Eq, j, bound.plus(-2), none), None);
        assert_eq!(AffineValue::binary(BinOp::Rem, j, AffineValue::of(2), none), AffineValue::of(0));
        assert_eq!(AffineValue::binary(BinOp::Rem, j, AffineValue::of(4), none), AffineValue::of(2));
        assert_eq!(AffineValue::binary(BinOp::Rem, j, AffineValue::of(3), none), AffineValue::range(0, 2));
        assert_eq!(AffineValue::compare(CmpOp::Eq, j, AffineValue::of(0), none), Some(false));
        assert_eq!(AffineValue::compare(CmpOp::Lt, j, AffineValue::of(100), none), None);
        assert_eq!(AffineValue::compare(CmpOp::Lt, j, AffineValue::of(100), &[3]), Some(true));
        assert_eq!(j.settled(none).residue(4), Some(2));
        assert_eq!(j.settled(none).bounds(none), (6, MAX));
    }

    /// Numbers at the ends of `i64`, in pairs, through every operation: none overflows, and a product that is no `i64`
    /// is not taken for one.
    #[test]
    fn numbers_at_the_ends_of_their_range() {
        let most = [i64::MIN, i64::MIN + 1, -LARGE, -LARGE + 1, -1, 0, 1, LARGE - 1, LARGE, i64::MAX - 1, i64::MAX];
        let values: Vec<AffineValue> = most
            .into_iter()
            .flat_map(|n| {
                [AffineValue::of(n), AffineValue::range(n, n.saturating_add(3)), AffineValue::moving(0, n, 0, 1)]
            })
            .collect();
        for periods in [&[3][..], &[i64::MAX]] {
            for a in &values {
                for b in &values {
                    for op in [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Div, BinOp::Rem, BinOp::Shl, BinOp::Shr] {
                        AffineValue::binary(op, *a, *b, periods).settled(periods);
                    }
                    a.join(*b, periods).shifted().unbounded();
                    assert_eq!(AffineValue::compare(CmpOp::Lt, *a, *a, periods).filter(|less| *less), None);
                }
                for n in most {
                    let product = a.times(n);
                    if let (Some(x), Some(p)) = (a.constant(), product.constant()) {
                        assert_eq!(i128::from(p), i128::from(x) * i128::from(n), "{x} * {n}");
                    }
                }
            }
        }
        assert_eq!(AffineValue::moving(0, 4, 0, 0).times(i64::MIN), AffineValue::TOP);
        assert_eq!(AffineValue::moving(0, -LARGE, 0, 0).times(8), AffineValue::TOP);
    }

    /// Every operation contains what it does to the members, by counting them.
    #[test]
    fn operations_contain_their_members() {
        let periods: Periods = &[3];
        let nums = [
            AffineValue::of(0),
            AffineValue::of(3),
            AffineValue::of(-5),
            AffineValue::range(-2, 4),
            AffineValue { m: 2, r: 1, ..AffineValue::range(1, 6) }.tidy(),
            AffineValue::moving(0, 4, 1, 1),
            AffineValue::moving(0, 4, -3, 2),
            AffineValue::moving(0, -6, 2, 2),
            AffineValue::BIT,
        ];
        // A member and the number of periods at which it is one.
        let members = |n: AffineValue| -> Vec<(i64, i64)> {
            let all = (1..=3).flat_map(move |t| (n.lo..=n.hi).map(move |x| (x, n.coef * t + x, t)));
            all.filter(|(x, ..)| (x - n.r).rem_euclid(n.m) == 0).map(|(_, v, t)| (v, t)).collect()
        };
        let contains = |n: AffineValue, v: i64, t: i64| {
            let x = v - n.coef * t;
            n.lo <= x && x <= n.hi && (x - n.r).rem_euclid(n.m) == 0
        };
        let ops = [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Div, BinOp::Rem, BinOp::Min, BinOp::Max];
        let cmps = [CmpOp::Eq, CmpOp::Ne, CmpOp::Lt, CmpOp::Le, CmpOp::Gt, CmpOp::Ge];
        for a in nums {
            for b in nums {
                for (x, t) in members(a) {
                    for (y, _) in members(b).into_iter().filter(|m| m.1 == t) {
                        for op in ops {
                            let exact = match op {
                                BinOp::Add => x + y,
                                BinOp::Sub => x - y,
                                BinOp::Mul => x * y,
                                BinOp::Min => x.min(y),
                                BinOp::Max => x.max(y),
                                _ if y <= 0 => continue,
                                BinOp::Div => x.div_euclid(y),
                                _ => x.rem_euclid(y),
                            };
                            let got = AffineValue::binary(op, a, b, periods);
                            assert!(contains(got, exact, t), "{x} {op} {y} = {exact}, t = {t}: {a:?} {b:?} {got:?}");
                        }
                        for op in cmps {
                            let exact = match op {
                                CmpOp::Eq => x == y,
                                CmpOp::Ne => x != y,
                                CmpOp::Lt => x < y,
                                CmpOp::Le => x <= y,
                                CmpOp::Gt => x > y,
                                CmpOp::Ge => x >= y,
                            };
                            let got = AffineValue::compare(op, a, b, periods);
                            assert!(got.is_none_or(|g| g == exact), "{x} {op:?} {y}: {a:?} {b:?} {got:?}");
                        }
                    }
                }
                for (x, t) in members(a) {
                    assert!(contains(a.settled(periods), x, t), "{a:?} settled");
                    assert!(contains(a.join(b, periods), x, t), "{a:?} join {b:?}");
                }
            }
        }
    }
}
