//! Intervals of `index` values.

use ptoc_isa::{BinOp, CmpOp};

/// All numbers from one to another. Empty if the first is greater.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Range {
    pub(super) lo: i64,
    pub(super) hi: i64,
}

impl Range {
    pub(super) const ALL: Range = Range { lo: i64::MIN, hi: i64::MAX };
    pub(super) const BIT: Range = Range { lo: 0, hi: 1 };

    pub(super) fn of(n: i64) -> Range {
        Range { lo: n, hi: n }
    }

    pub(super) fn is_empty(self) -> bool {
        self.lo > self.hi
    }

    pub(super) fn meet(self, other: Range) -> Range {
        Range { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) }
    }

    pub(super) fn join(self, other: Range) -> Range {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Range { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) },
        }
    }

    /// The range of `f` at its corners, where `f` grows or falls with each operand; all numbers if one wraps around.
    pub(super) fn corners(self, other: Range, f: impl Fn(i64, i64) -> Option<i64>) -> Range {
        let corners = [(self.lo, other.lo), (self.lo, other.hi), (self.hi, other.lo), (self.hi, other.hi)];
        let all: Option<Vec<i64>> = corners.into_iter().map(|(a, b)| f(a, b)).collect();
        let Some(all) = all else { return Range::ALL };
        let (lo, hi) = (all.iter().min(), all.iter().max());
        lo.zip(hi).map_or(Range::ALL, |(&lo, &hi)| Range { lo, hi })
    }

    pub(super) fn binary(op: BinOp, a: Range, b: Range) -> Range {
        if a.is_empty() || b.is_empty() {
            return Range { lo: 0, hi: -1 };
        }
        match op {
            BinOp::Add => a.corners(b, i64::checked_add),
            BinOp::Sub => a.corners(b, i64::checked_sub),
            BinOp::Mul => a.corners(b, i64::checked_mul),
            // Division and remainder round down.
            BinOp::Div if b.lo > 0 => a.corners(b, |x, y| Some(x.div_euclid(y))),
            BinOp::Rem if b.lo == b.hi && b.lo > 0 && a.lo >= 0 && a.hi < b.lo => a,
            BinOp::Rem if b.lo > 0 => Range { lo: 0, hi: b.hi - 1 },
            BinOp::Min => Range { lo: a.lo.min(b.lo), hi: a.hi.min(b.hi) },
            BinOp::Max => Range { lo: a.lo.max(b.lo), hi: a.hi.max(b.hi) },
            _ => Range::ALL,
        }
    }

    pub(super) fn compare(op: CmpOp, a: Range, b: Range) -> Option<bool> {
        let below = |strict: bool| match strict {
            true if a.hi < b.lo => Some(true),
            true if a.lo >= b.hi => Some(false),
            false if a.hi <= b.lo => Some(true),
            false if a.lo > b.hi => Some(false),
            _ => None,
        };
        match op {
            CmpOp::Lt => below(true),
            CmpOp::Le => below(false),
            CmpOp::Gt => below(false).map(|r| !r),
            CmpOp::Ge => below(true).map(|r| !r),
            CmpOp::Eq if a.lo == a.hi && a == b => Some(true),
            CmpOp::Eq if a.meet(b).is_empty() => Some(false),
            CmpOp::Eq => None,
            CmpOp::Ne => Range::compare(CmpOp::Eq, a, b).map(|r| !r),
        }
    }

    /// What is left of it where it compares so with one of `other`.
    pub(super) fn limited(self, op: CmpOp, other: Range) -> Range {
        match op {
            CmpOp::Lt => self.meet(Range { lo: i64::MIN, hi: other.hi.saturating_sub(1) }),
            CmpOp::Le => self.meet(Range { lo: i64::MIN, hi: other.hi }),
            CmpOp::Gt => self.meet(Range { lo: other.lo.saturating_add(1), hi: i64::MAX }),
            CmpOp::Ge => self.meet(Range { lo: other.lo, hi: i64::MAX }),
            CmpOp::Eq => self.meet(other),
            CmpOp::Ne if other.lo == other.hi && self.lo == other.lo => Range { lo: self.lo.saturating_add(1), ..self },
            CmpOp::Ne if other.lo == other.hi && self.hi == other.hi => Range { hi: self.hi.saturating_sub(1), ..self },
            CmpOp::Ne => self,
        }
    }
}
