//! What a condition says where it holds: a truth value is followed to the comparisons that it was made of.

use super::Elab;
use ptoc_ir::tile::{Ty, Value};
use ptoc_isa::{BinOp, CmpOp, UnOp};
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
pub(crate) struct Tests {
    made: FxHashMap<Value, Test>,
    /// The number of a block and how many there are, by the block's end and the domain's: the last block ends with it.
    blocks: FxHashMap<(Value, Value), (Value, Value)>,
}

impl Elab<'_> {
    pub fn note_compare(&mut self, v: Value, op: CmpOp, a: Value, b: Value) {
        if self.ty(a) == Ty::Index {
            self.tests.made.entry(v).or_insert(Test::Compare(op, a, b));
        }
    }

    pub fn note_unary(&mut self, v: Value, op: UnOp, a: Value) {
        if op == UnOp::Not && self.ty(v) == Ty::BOOL {
            self.tests.made.entry(v).or_insert(Test::Not(a));
        }
    }

    pub fn note_binary(&mut self, v: Value, op: BinOp, a: Value, b: Value) {
        if self.ty(v) == Ty::BOOL {
            match op {
                BinOp::And => self.note_logic(v, true, a, b),
                BinOp::Or => self.note_logic(v, false, a, b),
                _ => {}
            }
        }
    }

    /// `a && b`, or `a || b`.
    pub fn note_logic(&mut self, v: Value, and: bool, a: Value, b: Value) {
        self.tests.made.entry(v).or_insert(if and { Test::Both(a, b) } else { Test::Either(a, b) });
    }

    /// Block number `index` of `count` ends at `end`; all of them at `domain`.
    pub fn note_block(&mut self, (end, domain): (Value, Value), (index, count): (Value, Value)) {
        self.tests.blocks.insert((end, domain), (index, count));
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
            }
            CmpOp::Ne if self.facts.le_certain(a, b, 0) => self.learn_le(a, b, -1),
            CmpOp::Ne if self.facts.le_certain(b, a, 0) => self.learn_le(b, a, -1),
            CmpOp::Ne => {}
        }
        let block = self.tests.blocks.get(&(a, b)).or_else(|| self.tests.blocks.get(&(b, a)));
        match (op, block.copied()) {
            (CmpOp::Eq, Some((index, count))) => self.facts.le(count, index, 1),
            (CmpOp::Ne | CmpOp::Lt | CmpOp::Gt, Some((index, count))) => self.facts.le(index, count, -2),
            _ => {}
        }
    }

    /// `a <= b + c`, also of what the two were computed from.
    fn learn_le(&mut self, a: Value, b: Value, c: i64) {
        self.facts.le(a, b, c);
        let ((x, k), (y, l)) = (self.without_constant(a), self.without_constant(b));
        // x + k <= y + l + c
        if let Some(c) = c.checked_add(l).and_then(|c| c.checked_sub(k))
            && (x, y) != (a, b)
        {
            self.facts.le(x, y, c);
        }
    }

    /// A value as another one and a constant.
    fn without_constant(&self, v: Value) -> (Value, i64) {
        match self.facts.definition(v) {
            Some((BinOp::Add, x, k)) if self.const_index(k).is_some() => (x, self.const_index(k).unwrap_or(0)),
            Some((BinOp::Add, k, x)) if self.const_index(k).is_some() => (x, self.const_index(k).unwrap_or(0)),
            Some((BinOp::Sub, x, k)) => match self.const_index(k).and_then(i64::checked_neg) {
                Some(k) => (x, k),
                None => (v, 0),
            },
            _ => (v, 0),
        }
    }
}
