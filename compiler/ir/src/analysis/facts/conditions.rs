//! What a condition says where it holds: a truth value is followed to the comparisons that it was made of.

use super::Facts;
use crate::tile::Value;
use ptoc_isa::{BinOp, CmpOp};
use rustc_hash::FxHashMap;

/// Nested conditions that are followed.
const DEPTH: u32 = 16;

/// How a truth value came about.
#[derive(Clone, Copy)]
enum Test {
    Compare(CmpOp, Value, Value),
    Not(Value),
    Both(Value, Value),
    Either(Value, Value),
}

/// Truth values of the kernel so far.
#[derive(Default)]
pub(super) struct Tests {
    made: FxHashMap<Value, Test>,
    /// The number of a block and how many there are, by the block's end and the domain's: the last block ends with it.
    blocks: FxHashMap<(Value, Value), (Value, Value)>,
}

impl Facts {
    /// `v` is `a op b`, of `index` values.
    pub fn compared(&mut self, v: Value, op: CmpOp, a: Value, b: Value) {
        self.tests.made.entry(v).or_insert(Test::Compare(op, a, b));
    }

    /// `v` is `!a`.
    pub fn negated(&mut self, v: Value, a: Value) {
        self.tests.made.entry(v).or_insert(Test::Not(a));
    }

    /// `v` is `a && b`, or `a || b`.
    pub fn combined(&mut self, v: Value, and: bool, a: Value, b: Value) {
        self.tests.made.entry(v).or_insert(if and { Test::Both(a, b) } else { Test::Either(a, b) });
    }

    /// Block number `index` of `count` ends at `end`; all of them at `domain`.
    pub fn block(&mut self, (end, domain): (Value, Value), (index, count): (Value, Value)) {
        self.tests.blocks.insert((end, domain), (index, count));
    }

    /// The comparisons of `index` values that a truth value was made of.
    pub fn comparisons(&self, cond: Value) -> Vec<(Value, Value)> {
        let (mut open, mut out, mut left) = (vec![cond], Vec::new(), 4 * DEPTH);
        while let Some(v) = open.pop() {
            let Some(rest) = left.checked_sub(1) else { break };
            left = rest;
            match self.tests.made.get(&v).copied() {
                Some(Test::Not(a)) => open.push(a),
                Some(Test::Both(a, b) | Test::Either(a, b)) => open.extend([a, b]),
                Some(Test::Compare(_, a, b)) => out.push((a, b)),
                None => {}
            }
        }
        out
    }

    /// The condition is `holds` until the region ends.
    pub fn learn(&mut self, cond: Value, holds: bool) {
        self.learn_at(cond, holds, DEPTH);
    }

    fn learn_at(&mut self, cond: Value, holds: bool, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match self.tests.made.get(&cond).copied() {
            Some(Test::Not(a)) => self.learn_at(a, !holds, depth),
            Some(Test::Both(a, b)) if holds => {
                self.learn_at(a, true, depth);
                self.learn_at(b, true, depth);
            }
            Some(Test::Either(a, b)) if !holds => {
                self.learn_at(a, false, depth);
                self.learn_at(b, false, depth);
            }
            Some(Test::Compare(op, a, b)) => self.learn_comparison(if holds { op } else { op.opposite() }, a, b),
            _ => {}
        }
    }

    fn learn_comparison(&mut self, op: CmpOp, a: Value, b: Value) {
        match op {
            CmpOp::Lt => self.learn_le(a, b, -1),
            CmpOp::Le => self.learn_le(a, b, 0),
            CmpOp::Gt => self.learn_le(b, a, -1),
            CmpOp::Ge => self.learn_le(b, a, 0),
            CmpOp::Eq => {
                self.learn_le(a, b, 0);
                self.learn_le(b, a, 0);
                self.learn_multiple(a, b);
                self.learn_multiple(b, a);
            }
            CmpOp::Ne if self.le_certain(a, b, 0) => self.learn_le(a, b, -1),
            CmpOp::Ne if self.le_certain(b, a, 0) => self.learn_le(b, a, -1),
            CmpOp::Ne => {}
        }
        let block = self.tests.blocks.get(&(a, b)).or_else(|| self.tests.blocks.get(&(b, a)));
        match (op, block.copied()) {
            (CmpOp::Eq, Some((index, count))) => self.le(count, index, 1),
            (CmpOp::Ne | CmpOp::Lt | CmpOp::Gt, Some((index, count))) => self.le(index, count, -2),
            _ => {}
        }
    }

    /// `x % n == 0`, with a constant.
    fn learn_multiple(&mut self, remainder: Value, zero: Value) {
        let number = |v: Value| self.consts.get(&v).copied();
        if let (Some(0), Some((BinOp::Rem, x, n))) = (number(zero), self.definition(remainder))
            && let Some(n) = number(n).filter(|n| *n > 0)
        {
            self.divisible(x, n);
        }
    }

    /// `a <= b + c`, also of what the two were computed from.
    fn learn_le(&mut self, a: Value, b: Value, c: i64) {
        self.le(a, b, c);
        let ((x, k), (y, l)) = (self.without_constant(a), self.without_constant(b));
        // x + k <= y + l + c
        if let Some(c) = c.checked_add(l).and_then(|c| c.checked_sub(k))
            && (x, y) != (a, b)
        {
            self.le(x, y, c);
        }
        let number = |v: Value| self.consts.get(&v).copied();
        let difference = |v: Value| match self.definition(v).filter(|_| self.may_wrap(v).is_none()) {
            Some((BinOp::Sub, x, y)) => Some((x, y)),
            _ => None,
        };
        let (left, right) = (difference(a).zip(number(b)), difference(b).zip(number(a)));
        // x - y <= n + c
        if let Some(((x, y), n)) = left
            && let Some(c) = n.checked_add(c)
        {
            self.le(x, y, c);
        }
        // n <= x - y + c
        if let Some(((x, y), n)) = right
            && let Some(c) = c.checked_sub(n)
        {
            self.le(y, x, c);
        }
    }

    /// A value as another one and a constant.
    pub(super) fn without_constant(&self, v: Value) -> (Value, i64) {
        let number = |v: Value| self.consts.get(&v).copied();
        match self.definition(v).filter(|_| self.may_wrap(v).is_none()) {
            Some((BinOp::Add, x, k) | (BinOp::Add, k, x)) if number(k).is_some() => (x, number(k).unwrap_or(0)),
            Some((BinOp::Sub, x, k)) => match number(k).and_then(i64::checked_neg) {
                Some(k) => (x, k),
                None => (v, 0),
            },
            _ => (v, 0),
        }
    }
}
