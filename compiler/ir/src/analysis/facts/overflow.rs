//! Definitions that do not wrap: bounds on magnitudes, in bits, and the few shapes of sums that stay between their
//! operands.

use super::memo::{BITS, EXACT};
use super::{DEPTH, FUEL, Facts, Undo};
use crate::tile::Value;
use ptoc_isa::BinOp;
use ptoc_tensor::MAX_BYTES_BITS;

/// Magnitudes below 2^62 leave room for a sum.
const SAFE: u32 = 62;

/// Nothing is known of a magnitude.
const UNKNOWN: u32 = 64;

/// Factors of a product that are looked at.
const FACTORS: usize = 8;

impl Facts {
    /// `|v| < 2^bits`: a fact of its type or of the launch.
    pub fn width(&mut self, v: Value, bits: u32) {
        self.memo.forget();
        let known = self.widths.entry(v).or_insert(bits);
        *known = (*known).min(bits);
    }

    /// `|v| < 2^bits`, as far as is known; 64: nothing is.
    pub fn magnitude(&self, v: Value) -> u32 {
        self.fuel.set(FUEL);
        self.bits_at(v, DEPTH)
    }

    /// Keeps what the definition of `v` says of its magnitude, so that what is computed from it need not follow it
    /// again.
    pub(super) fn note_width(&mut self, v: Value) {
        let bits = self.bits_at(v, DEPTH);
        let old = self.widths.get(&v).copied();
        if old.map_or(bits < UNKNOWN, |o| bits < o) {
            self.widths.insert(v, bits);
            self.log.push(Undo::Width(v, old));
        }
    }

    /// `v` is a dimension: the launch refuses longer ones.
    pub fn dimension(&mut self, v: Value) {
        self.width(v, MAX_BYTES_BITS);
    }

    /// A tensor has this shape: the launch bounds the product of its extents, empty ones counted as 1.
    pub fn tensor(&mut self, shape: Vec<Value>) {
        self.memo.forget();
        self.shapes.push(shape);
    }

    /// The definition of `v` does not wrap, here and in the rest of the region.
    pub fn assume_exact(&mut self, v: Value) {
        if self.exact.insert(v) {
            self.memo.forget();
            self.log.push(Undo::Exact(v));
        }
    }

    /// The definition of `v`, if it is known to be one over the integers.
    pub fn exact_definition(&self, v: Value) -> Option<(BinOp, Value, Value)> {
        self.begin(FUEL);
        self.exact_def(v, DEPTH)
    }

    /// The definition of `v`, if it may wrap.
    pub fn may_wrap(&self, v: Value) -> Option<(BinOp, Value, Value)> {
        let def = self.definition(v)?;
        self.begin(FUEL);
        (!self.exact.contains(&v) && !self.exact_at(v, DEPTH)).then_some(def)
    }

    /// The definition of `v`, if it is one over the integers.
    pub(super) fn exact_def(&self, v: Value, depth: u32) -> Option<(BinOp, Value, Value)> {
        let def = self.definition(v)?;
        (self.exact.contains(&v) || self.exact_at(v, depth)).then_some(def)
    }

    pub(super) fn exact_at(&self, v: Value, depth: u32) -> bool {
        let Some((op, a, b)) = self.definition(v) else { return true };
        if !matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div) {
            return true;
        }
        let Some(below) = depth.checked_sub(1) else { return false };
        self.memoized(EXACT, (v, depth), false, || self.stays_exact(v, (op, a, b), below))
    }

    fn stays_exact(&self, v: Value, (op, a, b): (BinOp, Value, Value), depth: u32) -> bool {
        let (x, y) = (self.bits_at(a, depth), self.bits_at(b, depth));
        if self.corners_fit(op, a, b, depth) {
            return true;
        }
        match op {
            BinOp::Add => x.max(y) < SAFE || self.sum_between(a, b, depth) || self.sum_between(b, a, depth),
            BinOp::Sub => {
                let natural = |v| self.min_at(v, depth).is_some_and(|m| m >= 0);
                let below = |v| self.max_at(v, depth).is_some_and(|m| m < 0);
                x.max(y) < SAFE || (natural(a) && natural(b)) || (below(a) && below(b)) || self.stays_above(a, b)
            }
            BinOp::Mul => x + y <= SAFE || self.is_part_of_a_tensor(v, depth),
            // The least number by -1.
            _ => x < UNKNOWN - 1 || self.min_at(b, depth).is_some_and(|m| m >= 0),
        }
    }

    /// Whether the least and greatest values of the operands say that the result fits.
    fn corners_fit(&self, op: BinOp, a: Value, b: Value, depth: u32) -> bool {
        let f = match op {
            BinOp::Add => i64::checked_add,
            BinOp::Sub => i64::checked_sub,
            BinOp::Mul => i64::checked_mul,
            _ => return false,
        };
        let ends = |v| Some([self.min_at(v, depth)?, self.max_at(v, depth)?]);
        let (Some(x), Some(y)) = (ends(a), ends(b)) else { return false };
        x.into_iter().all(|x| y.into_iter().all(|y| f(x, y).is_some()))
    }

    /// Whether `a + b` stays at or below another `index`, and not below `a`.
    fn sum_between(&self, a: Value, b: Value, depth: u32) -> bool {
        let upper = |v| self.upper.get(&v).into_iter().flatten();
        if let Some(k) = self.consts.get(&b) {
            // a + k <= u with a <= u - k; downwards likewise.
            let room = |c: i64| c.checked_add(*k).is_some_and(|s| s <= 0);
            let lower = || self.lower.get(&a).into_iter().flatten();
            return match *k >= 0 {
                true => upper(a).any(|(_, c)| room(*c)),
                false => {
                    let above = |c: i64| c.checked_add(*k).is_some_and(|s| s >= 0);
                    self.min_at(a, depth).is_some_and(|m| m >= 0) || lower().any(|(_, c)| above(*c))
                }
            };
        }
        // start + min(size, n - start) <= n
        let is_rest = |v| matches!(self.exact_def(v, depth), Some((BinOp::Sub, _, from)) if from == a);
        let rest = is_rest(b)
            || matches!(self.definition(b), Some((BinOp::Min, x, y)) if is_rest(x) || is_rest(y))
            || upper(b).any(|(u, c)| *c <= 0 && is_rest(*u));
        rest && self.min_at(b, depth).is_some_and(|m| m >= 0)
    }

    /// Whether `a - b` of a constant `b` stays at or above another `index`.
    fn stays_above(&self, a: Value, b: Value) -> bool {
        let Some(k) = self.consts.get(&b).filter(|k| **k >= 0) else { return false };
        self.lower.get(&a).into_iter().flatten().any(|(_, c)| c >= k)
    }

    /// `|v| < 2^bits`
    fn bits_at(&self, v: Value, depth: u32) -> u32 {
        if let Some(c) = self.consts.get(&v) {
            return UNKNOWN - c.unsigned_abs().leading_zeros();
        }
        let known = self.widths.get(&v).copied().unwrap_or(UNKNOWN);
        let Some(below) = depth.checked_sub(1) else { return known };
        self.memoized(BITS, (v, depth), known, || self.bits_by_rules(v, known, below))
    }

    fn bits_by_rules(&self, v: Value, known: u32, depth: u32) -> u32 {
        let mut best = known;
        let length = |c: i64| UNKNOWN - c.unsigned_abs().leading_zeros();
        if let (Some(lo), Some(hi)) = (self.at_least.get(&v), self.at_most.get(&v)) {
            best = best.min(length(*lo).max(length(*hi)));
        }
        if self.exact.contains(&v)
            && let Some((op, a, b)) = self.definition(v)
        {
            let (x, y) = (self.bits_at(a, depth), self.bits_at(b, depth));
            let by_definition = match op {
                BinOp::Add | BinOp::Sub => x.max(y) + 1,
                BinOp::Mul if self.is_part_of_a_tensor(v, depth) => MAX_BYTES_BITS,
                BinOp::Mul => x + y,
                BinOp::Div => match self.consts.get(&b) {
                    // Of 2^(n - 1) <= c < 2^n.
                    Some(c) if *c >= 1 => x.saturating_sub(length(*c) - 1),
                    _ => x,
                },
                BinOp::Rem | BinOp::Max | BinOp::Min => x.max(y),
                _ => UNKNOWN,
            };
            best = best.min(by_definition);
        }
        // 0 <= v <= u + c
        let mut bound = None;
        for (u, c) in self.upper.get(&v).into_iter().flatten() {
            let far = match *c <= 0 {
                true => self.bits_at(*u, depth),
                false => self.bits_at(*u, depth).max(length(*c)) + 1,
            };
            bound = Some(bound.unwrap_or(far).min(far));
        }
        match bound.filter(|b| *b < best) {
            Some(b) if self.min_at(v, depth).is_some_and(|m| m >= 0) => b,
            _ => best.min(UNKNOWN),
        }
    }

    /// Whether `v` is a product of some of the extents of one tensor, or of numbers between 0 and these.
    fn is_part_of_a_tensor(&self, v: Value, depth: u32) -> bool {
        let (mut open, mut factors) = (vec![v], Vec::new());
        while let Some(v) = open.pop() {
            match self.definition(v) {
                Some((BinOp::Mul, a, b)) => open.extend([a, b]),
                _ => factors.push(v),
            }
            if open.len() + factors.len() > FACTORS {
                return false;
            }
        }
        self.shapes.iter().any(|shape| {
            let mut left = shape.clone();
            factors.iter().all(|f| match left.iter().position(|e| self.is_part_of_an_extent(*f, *e, depth)) {
                Some(at) => {
                    left.swap_remove(at);
                    true
                }
                None => false,
            })
        })
    }

    /// Whether `v` is an extent, or what is left of it, which is not negative.
    fn is_part_of_an_extent(&self, v: Value, extent: Value, depth: u32) -> bool {
        let at_least = |v: Value, n: i64| self.min_at(v, depth).is_some_and(|m| m >= n);
        v == extent
            || match self.definition(v) {
                Some((BinOp::Sub, from, less)) => from == extent && at_least(less, 0) && at_least(v, 0),
                Some((BinOp::Div, from, by)) => from == extent && at_least(by, 1) && at_least(from, 0),
                _ => false,
            }
    }
}
