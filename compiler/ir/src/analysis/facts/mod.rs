//! What is known about `index` values, enough to prove most bounds: constants, upper bounds by other values, and how a
//! value was computed. What is not proved here is checked at run time, so this may be weak but never wrong.
//!
//! Arithmetic on `index` wraps at 64 bits, and bounds are statements about integers. So a definition takes part in a
//! proof of order only if it is *exact*: [`overflow`] proves that it does not wrap, or a run-time check said so.

mod conditions;
mod memo;
mod overflow;

use crate::tile::Value;
use conditions::Tests;
use memo::{LEAST, MOST, Memo, Table};
use ptoc_isa::BinOp;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;

/// Depth of a proof.
const DEPTH: u32 = 10;

/// Steps of a proof: enough for what kernels need, and a bound on what a hostile one can cost.
const FUEL: u32 = 4_000;
/// Steps of all questions about one kernel with as much each; later ones have [`LITTLE`], and are more often answered
/// by a test at run time.
const ALL: u64 = 4_000_000;
const LITTLE: u32 = 40;

/// What is known at one place of a kernel.
#[derive(Default)]
pub struct Facts {
    consts: FxHashMap<Value, i64>,
    /// `v <= u + c`
    upper: FxHashMap<Value, Vec<(Value, i64)>>,
    /// `v >= u + c`
    lower: FxHashMap<Value, Vec<(Value, i64)>>,
    /// Sums with an upper bound, by their operands: the sum and the other operand.
    sums: FxHashMap<Value, Vec<(Value, Value)>>,
    /// `v >= c`
    at_least: FxHashMap<Value, i64>,
    /// `v <= c`
    at_most: FxHashMap<Value, i64>,
    /// How values were computed, modulo 2^64.
    defs: FxHashMap<Value, (BinOp, Value, Value)>,
    /// Definitions that do not wrap.
    exact: FxHashSet<Value>,
    /// `|v| < 2^bits`
    widths: FxHashMap<Value, u32>,
    /// What a condition says to divide a value.
    multiples: FxHashMap<Value, i64>,
    /// Extents of each tensor: the launch bounds their product ([`ptoc_tensor::MAX_BYTES_BITS`]).
    shapes: Vec<Vec<Value>>,
    tests: Tests,
    /// How to take back what was learned since a region began: a fact holds where it was learned, and a region (a loop
    /// that may not run, a branch) is no place to learn something about the rest.
    log: Vec<Undo>,
    fuel: Cell<u32>,
    /// Steps of all questions so far.
    spent: Cell<u64>,
    memo: Memo,
}

enum Undo {
    Pair(Value, Value),
    AtLeast(Value, Option<i64>),
    AtMost(Value, Option<i64>),
    Exact(Value),
    Width(Value, Option<u32>),
    Multiple(Value, Option<i64>),
}

impl Facts {
    /// `v` is the constant `c`.
    pub fn constant(&mut self, v: Value, c: i64) {
        self.consts.insert(v, c);
    }

    /// `v <= u + c` until the region ends.
    pub fn le(&mut self, v: Value, u: Value, c: i64) {
        self.memo.forget();
        if let Some((BinOp::Add, a, b)) = self.definition(v) {
            self.sums.entry(a).or_default().push((v, b));
            self.sums.entry(b).or_default().push((v, a));
        }
        self.upper.entry(v).or_default().push((u, c));
        self.lower.entry(u).or_default().push((v, c.saturating_neg()));
        self.log.push(Undo::Pair(v, u));
    }

    /// A region begins.
    pub fn mark(&self) -> usize {
        self.log.len()
    }

    /// The region ends: what was learned in it is not known after it.
    pub fn forget(&mut self, mark: usize) {
        if self.log.len() > mark {
            self.memo.forget();
        }
        while self.log.len() > mark {
            match self.log.pop() {
                Some(Undo::Pair(v, u)) => {
                    self.upper.entry(v).or_default().pop();
                    self.lower.entry(u).or_default().pop();
                    if let Some((BinOp::Add, a, b)) = self.definition(v) {
                        for x in [a, b] {
                            self.sums.entry(x).or_default().pop_if(|s| s.0 == v);
                        }
                    }
                }
                Some(Undo::AtLeast(v, old)) => restore(&mut self.at_least, v, old),
                Some(Undo::AtMost(v, old)) => restore(&mut self.at_most, v, old),
                Some(Undo::Exact(v)) => {
                    self.exact.remove(&v);
                }
                Some(Undo::Width(v, old)) => {
                    restore(&mut self.widths, v, old);
                }
                Some(Undo::Multiple(v, old)) => restore(&mut self.multiples, v, old),
                None => return,
            }
        }
    }

    /// `v >= c`
    pub fn ge_const(&mut self, v: Value, c: i64) {
        self.memo.forget();
        let old = self.at_least.get(&v).copied();
        self.log.push(Undo::AtLeast(v, old));
        self.at_least.insert(v, old.map_or(c, |o| o.max(c)));
    }

    /// `index` counts below `extent`, which is therefore positive, and so is each factor of it that is not negative.
    pub fn counts(&mut self, index: Value, extent: Value) {
        self.le(index, extent, -1);
        if self.min_of(index).is_some_and(|m| m >= 0) {
            self.positive(extent, DEPTH);
        }
    }

    fn positive(&mut self, v: Value, depth: u32) {
        // v = x + k
        let (x, k) = self.without_constant(v);
        for (v, least) in [(v, Some(1)), (x, 1i64.checked_sub(k))] {
            if let Some(least) = least.filter(|least| self.min_of(v).is_none_or(|m| m < *least)) {
                self.ge_const(v, least);
            }
        }
        let Some(depth) = depth.checked_sub(1) else { return };
        if let Some((BinOp::Mul, a, b)) = self.exact_definition(v)
            && [a, b].iter().all(|f| self.min_of(*f).is_some_and(|m| m >= 0))
        {
            self.positive(a, depth);
            self.positive(b, depth);
        }
    }

    /// `v <= c`
    pub fn le_const(&mut self, v: Value, c: i64) {
        self.memo.forget();
        let old = self.at_most.get(&v).copied();
        self.log.push(Undo::AtMost(v, old));
        self.at_most.insert(v, old.map_or(c, |o| o.min(c)));
    }

    /// `v = a op b`, modulo 2^64
    pub fn defined(&mut self, v: Value, op: BinOp, a: Value, b: Value) {
        if self.defs.contains_key(&v) {
            return;
        }
        // What is known of other values stays so: those that are computed from `v` come later.
        self.defs.insert(v, (op, a, b));
        // Until the region ends: the value may be the same one in a region around, where less is known.
        self.begin(FUEL);
        if self.exact_at(v, DEPTH) && self.exact.insert(v) {
            self.log.push(Undo::Exact(v));
            self.note_width(v);
        }
    }

    /// How `v` was computed, modulo 2^64.
    pub fn definition(&self, v: Value) -> Option<(BinOp, Value, Value)> {
        self.defs.get(&v).copied()
    }

    /// Least value that is certain.
    pub fn min_of(&self, v: Value) -> Option<i64> {
        self.ask();
        self.min_at(v, DEPTH)
    }

    fn min_at(&self, v: Value, depth: u32) -> Option<i64> {
        if let Some(c) = self.consts.get(&v) {
            return Some(*c);
        }
        let best = self.at_least.get(&v).copied();
        if depth == 0 {
            return best;
        }
        self.memoized(LEAST, (v, depth), best, || self.min_by_rules(v, best, depth))
    }

    fn min_by_rules(&self, v: Value, known: Option<i64>, depth: u32) -> Option<i64> {
        let mut best = known;
        let mut offer = |c: Option<i64>| best = best.max(c);
        for (u, c) in self.lower.get(&v).into_iter().flatten().take_while(|_| self.lasts()) {
            offer(self.min_at(*u, depth - 1).and_then(|m| m.checked_add(*c)));
        }
        if let Some((op, a, b)) = self.exact_def(v, depth) {
            let (a, b) = (&a, &b);
            let (x, y) = (self.min_at(*a, depth - 1), self.min_at(*b, depth - 1));
            match op {
                BinOp::Add => offer(x.zip(y).and_then(|(x, y)| x.checked_add(y))),
                BinOp::Mul => offer(x.zip(y).filter(|(x, y)| *x >= 0 && *y >= 0).and_then(|(x, y)| x.checked_mul(y))),
                BinOp::Div => {
                    let most = self.max_at(*b, depth - 1).unwrap_or(i64::MAX);
                    offer(x.zip(y).filter(|(x, y)| *x >= 0 && *y > 0).map(|(x, _)| x / most));
                }
                BinOp::Rem => offer(y.filter(|y| *y > 0).map(|_| 0)),
                BinOp::Max => offer(x.max(y)),
                BinOp::Min => offer(x.zip(y).map(|(x, y)| x.min(y))),
                BinOp::Sub => {
                    let top = self.max_at(*b, depth - 1);
                    offer(x.zip(top).and_then(|(x, t)| x.checked_sub(t)));
                    if self.le_at(*b, *a, 0, depth - 1) {
                        offer(Some(0));
                    }
                }
                _ => {}
            }
        }
        best
    }

    /// Greatest value that is certain.
    pub fn max_of(&self, v: Value) -> Option<i64> {
        self.ask();
        self.max_at(v, DEPTH)
    }

    fn max_at(&self, v: Value, depth: u32) -> Option<i64> {
        if let Some(c) = self.consts.get(&v) {
            return Some(*c);
        }
        let best = self.at_most.get(&v).copied();
        if depth == 0 {
            return best;
        }
        self.memoized(MOST, (v, depth), best, || self.max_by_rules(v, best, depth))
    }

    fn max_by_rules(&self, v: Value, known: Option<i64>, depth: u32) -> Option<i64> {
        let mut best = known;
        let mut offer = |c: Option<i64>| {
            if let Some(c) = c {
                best = Some(best.map_or(c, |b| b.min(c)));
            }
        };
        for (u, c) in self.upper.get(&v).into_iter().flatten().take_while(|_| self.lasts()) {
            offer(self.max_at(*u, depth - 1).and_then(|m| m.checked_add(*c)));
        }
        if let Some((op, a, b)) = self.exact_def(v, depth) {
            let (a, b) = (&a, &b);
            let (x, y) = (self.max_at(*a, depth - 1), self.max_at(*b, depth - 1));
            match op {
                BinOp::Add => offer(x.zip(y).and_then(|(x, y)| x.checked_add(y))),
                BinOp::Min => {
                    offer(x);
                    offer(y);
                }
                BinOp::Max => offer(x.zip(y).map(|(x, y)| x.max(y))),
                BinOp::Sub => offer(x.zip(self.min_at(*b, depth - 1)).and_then(|(x, m)| x.checked_sub(m))),
                BinOp::Mul => {
                    let least = |v: Value| self.min_at(v, depth - 1).is_some_and(|m| m >= 0);
                    let product = x.zip(y).and_then(|(x, y)| x.checked_mul(y));
                    offer(product.filter(|_| least(*a) && least(*b)));
                }
                BinOp::Rem => offer(y.filter(|_| self.min_at(*b, depth - 1).is_some_and(|m| m > 0)).map(|y| y - 1)),
                BinOp::Div => {
                    let below = self.min_at(*b, depth - 1).filter(|m| *m > 0);
                    let positive = self.min_at(*a, depth - 1).is_some_and(|m| m >= 0);
                    offer(x.zip(below).filter(|_| positive).map(|(x, m)| x / m));
                }
                _ => {}
            }
        }
        best
    }

    /// What `v` is at most: a number, or another value and a number.
    pub fn above(&self, v: Value) -> impl Iterator<Item = (Option<Value>, i64)> + '_ {
        let number = self.at_most.get(&v).map(|c| (None, *c));
        number.into_iter().chain(self.upper.get(&v).into_iter().flatten().map(|(u, c)| (Some(*u), *c)))
    }

    /// What `v` is at least.
    pub fn below(&self, v: Value) -> impl Iterator<Item = (Option<Value>, i64)> + '_ {
        let number = self.at_least.get(&v).map(|c| (None, *c));
        number.into_iter().chain(self.lower.get(&v).into_iter().flatten().map(|(u, c)| (Some(*u), *c)))
    }

    /// The constant that `v` is.
    pub fn number(&self, v: Value) -> Option<i64> {
        self.consts.get(&v).copied()
    }

    /// Sums that `x` is a part of, with the other part, which do not wrap and are at most another value.
    pub fn sums_with(&self, x: Value) -> impl Iterator<Item = (Value, Value)> + '_ {
        let sums = self.sums.get(&x).into_iter().flatten().copied();
        sums.filter(|(sum, _)| self.exact_definition(*sum).is_some())
    }

    /// A number that divides `v`, as a condition said.
    pub fn multiple_of(&self, v: Value) -> Option<i64> {
        self.multiples.get(&v).copied()
    }

    /// `n` divides `v` until the region ends.
    pub(super) fn divisible(&mut self, v: Value, n: i64) {
        let old = self.multiples.get(&v).copied();
        self.log.push(Undo::Multiple(v, old));
        self.multiples.insert(v, n);
    }

    /// `v` is one of two values.
    pub fn selected(&mut self, v: Value, x: Value, y: Value) {
        if let (Some(a), Some(b)) = (self.min_of(x), self.min_of(y)) {
            self.ge_const(v, a.min(b));
        }
        if let (Some(a), Some(b)) = (self.max_of(x), self.max_of(y)) {
            self.le_const(v, a.max(b));
        }
        if self.le_certain(x, y, 0) {
            self.le(v, y, 0);
        } else if self.le_certain(y, x, 0) {
            self.le(v, x, 0);
        }
    }

    /// Whether `v` is a multiple of `n`, a power of two, whatever its operands are.
    pub fn multiple_certain(&self, v: Value, n: u64) -> bool {
        self.ask();
        n.is_power_of_two() && self.twos_at(v, DEPTH) >= n.trailing_zeros()
    }

    /// 2 to this power certainly divides `v`; 64 for 0.
    pub fn twos(&self, v: Value) -> u32 {
        self.ask();
        self.twos_at(v, DEPTH)
    }

    /// 2 to this power divides `v`; 64 for 0. Sums and products that wrap around keep that.
    fn twos_at(&self, v: Value, depth: u32) -> u32 {
        if let Some(c) = self.consts.get(&v) {
            return c.trailing_zeros();
        }
        if depth == 0 || !self.spend() {
            return 0;
        }
        let Some((op, a, b)) = self.defs.get(&v) else { return 0 };
        let (x, y) = (self.twos_at(*a, depth - 1), self.twos_at(*b, depth - 1));
        match op {
            BinOp::Mul => (x + y).min(64),
            // x % y = x - q y
            BinOp::Add | BinOp::Sub | BinOp::Rem | BinOp::Min | BinOp::Max => x.min(y),
            _ => 0,
        }
    }

    /// Whether `a <= b + c` is certain.
    pub fn le_certain(&self, a: Value, b: Value, c: i64) -> bool {
        self.ask();
        self.le_at(a, b, c, DEPTH)
    }

    fn le_at(&self, a: Value, b: Value, c: i64, depth: u32) -> bool {
        if a == b && c >= 0 {
            return true;
        }
        if let (Some(x), Some(y)) = (self.max_at(a, depth.min(3)), self.min_at(b, depth.min(3)))
            && y.checked_add(c).is_some_and(|s| x <= s)
        {
            return true;
        }
        if depth == 0 || !self.spend() {
            return false;
        }
        let d = depth - 1;
        if self
            .upper
            .get(&a)
            .into_iter()
            .flatten()
            .take_while(|_| self.lasts())
            .any(|(u, k)| c.checked_sub(*k).is_some_and(|r| self.le_at(*u, b, r, d)))
        {
            return true;
        }
        if let Some((op, x, y)) = self.exact_def(a, depth) {
            let (x, y) = (&x, &y);
            let shifted = match op {
                BinOp::Add => {
                    self.consts.get(y).is_some_and(|k| c.checked_sub(*k).is_some_and(|r| self.le_at(*x, b, r, d)))
                        || self
                            .consts
                            .get(x)
                            .is_some_and(|k| c.checked_sub(*k).is_some_and(|r| self.le_at(*y, b, r, d)))
                }
                BinOp::Sub => {
                    self.min_at(*y, d.min(3)).is_some_and(|k| c.checked_add(k).is_some_and(|r| self.le_at(*x, b, r, d)))
                }
                BinOp::Min => self.le_at(*x, b, c, d) || self.le_at(*y, b, c, d),
                BinOp::Max => self.le_at(*x, b, c, d) && self.le_at(*y, b, c, d),
                BinOp::Div => {
                    self.min_at(*y, d.min(3)).is_some_and(|m| m >= 1)
                        && self.min_at(*x, d.min(3)).is_some_and(|m| m >= 0)
                        && self.le_at(*x, b, c, d)
                }
                // x % y < y for positive y
                BinOp::Rem => {
                    self.min_at(*y, d.min(3)).is_some_and(|m| m >= 1) && self.le_at(*y, b, c.saturating_add(1), d)
                }
                _ => false,
            };
            if shifted {
                return true;
            }
        }
        if let Some((op, x, y)) = self.exact_def(b, depth) {
            let (x, y) = (&x, &y);
            let shifted = match op {
                BinOp::Add => {
                    self.consts.get(y).is_some_and(|k| c.checked_add(*k).is_some_and(|r| self.le_at(a, *x, r, d)))
                        || self
                            .consts
                            .get(x)
                            .is_some_and(|k| c.checked_add(*k).is_some_and(|r| self.le_at(a, *y, r, d)))
                }
                BinOp::Sub => {
                    self.consts.get(y).is_some_and(|k| c.checked_sub(*k).is_some_and(|r| self.le_at(a, *x, r, d)))
                }
                BinOp::Max => self.le_at(a, *x, c, d) || self.le_at(a, *y, c, d),
                _ => false,
            };
            if shifted {
                return true;
            }
        }
        self.lower
            .get(&b)
            .into_iter()
            .flatten()
            .take_while(|_| self.lasts())
            .any(|(u, k)| c.checked_add(*k).is_some_and(|r| self.le_at(a, *u, r, d)))
    }

    /// A question begins.
    fn ask(&self) {
        self.begin(if self.spent.get() < ALL { FUEL } else { LITTLE });
    }

    /// A question begins, of so many steps at most.
    fn begin(&self, fuel: u32) {
        self.fuel.set(fuel);
    }

    /// A step of a question, unless its result is known. Without a step for it, it is `otherwise`; what was cut short
    /// below it is used, and not kept.
    fn memoized<T: Copy>(&self, table: Table<T>, key: (Value, u32), otherwise: T, by_rules: impl FnOnce() -> T) -> T {
        if let Some(found) = self.memo.get(table, key) {
            return found;
        }
        if !self.spend() {
            return otherwise;
        }
        let found = by_rules();
        if self.lasts() {
            self.memo.put(table, key, found);
        }
        found
    }

    /// Whether there are steps left for this question.
    fn lasts(&self) -> bool {
        self.fuel.get() > 0
    }

    fn spend(&self) -> bool {
        self.spent.set(self.spent.get() + 1);
        ptoc_diagnostics::work(1);
        let left = self.fuel.get();
        self.fuel.set(left.saturating_sub(1));
        left > 0
    }
}

fn restore<T>(map: &mut FxHashMap<Value, T>, v: Value, old: Option<T>) {
    match old {
        Some(c) => map.insert(v, c),
        None => map.remove(&v),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef as _;

    /// The farthest of all distances has no opposite.
    #[test]
    fn no_distance_is_too_far() {
        let mut facts = Facts::default();
        let (v, u) = (Value::new(0), Value::new(1));
        facts.le(v, u, i64::MIN);
        assert!(facts.le_certain(v, u, 0) && !facts.le_certain(u, v, 0));
    }
}
