//! What is known in terms of one number, said in terms of another one.

use super::numbers::{Literal, Node, Numbers, SymbolicOffset};
use ptoc_ir::tile::Ty;
use ptoc_isa::BinOp;

/// One number for a symbol.
#[derive(Clone, Copy)]
pub(super) struct Instead {
    /// The symbol, without an offset.
    pub(super) symbol: SymbolicOffset,
    pub(super) to: SymbolicOffset,
}

impl Numbers {
    /// The number where `path` holds: choices that it decides are made.
    pub(super) fn resolve(&mut self, n: SymbolicOffset, path: &[Literal]) -> SymbolicOffset {
        let Node::Select(c, a, b) = self.nodes[n.base as usize] else { return n };
        let new = match self.decide(c, path) {
            Some(true) => self.resolve(a, path),
            Some(false) => self.resolve(b, path),
            None => match (self.resolve(a, path), self.resolve(b, path)) {
                (x, y) if x == y => x,
                (x, y) => self.select(c, x, y),
            },
        };
        new.plus(n.offset).unwrap_or(n)
    }

    /// Choices within the number.
    pub(super) fn depth(&self, n: SymbolicOffset) -> usize {
        match self.nodes[n.base as usize] {
            Node::Select(_, a, b) => 1 + self.depth(a).max(self.depth(b)),
            _ => 0,
        }
    }

    /// `n` with another number for a symbol; `None` where that is out of range.
    pub(super) fn instead(&mut self, n: SymbolicOffset, with: Instead) -> Option<SymbolicOffset> {
        // Only what has a symbol of that age or a younger one can have this one.
        if self.newest[n.base as usize] < self.newest[with.symbol.base as usize] {
            return Some(n);
        }
        let of = |this: &mut Self, base: u32| this.instead(SymbolicOffset { base, offset: 0 }, with);
        let new = match self.nodes[n.base as usize].clone() {
            Node::Symbol(_) if n.base == with.symbol.base => with.to,
            Node::Zero | Node::Symbol(_) => return Some(n),
            Node::Less(a, b, k) => {
                let (a, b) = (of(self, a)?, of(self, b)?.plus(k)?);
                self.compare(Ty::Index, ptoc_isa::CmpOp::Lt, a, b)
            }
            Node::Equal(a, b, k) => {
                let (a, b) = (of(self, a)?, of(self, b)?.plus(k)?);
                self.compare(Ty::Index, ptoc_isa::CmpOp::Eq, a, b)
            }
            Node::Not(a) => {
                let a = self.instead(a, with)?;
                self.not(a)
            }
            Node::And(a, b) | Node::Or(a, b) => {
                let and = matches!(self.nodes[n.base as usize], Node::And(..));
                let (a, b) = (self.instead(a, with)?, self.instead(b, with)?);
                self.binary(Ty::BOOL, if and { BinOp::And } else { BinOp::Or }, a, b)
            }
            Node::Index(op, a, b) => {
                let (a, b) = (self.instead(a, with)?, self.instead(b, with)?);
                self.binary(Ty::Index, op, a, b)
            }
            Node::Select(c, a, b) => {
                let (c, a, b) = (self.instead(c, with)?, self.instead(a, with)?, self.instead(b, with)?);
                match c.constant() {
                    Some(c) => [b, a][usize::from(c != 0)],
                    None if a == b => a,
                    None => self.select(c, a, b),
                }
            }
            Node::Pure(what, of) => {
                let of = of.into_iter().map(|n| self.instead(n, with)).collect::<Option<Vec<_>>>()?;
                self.pure(what, of)
            }
        };
        new.plus(n.offset)
    }

    /// Whether the condition can be said with another number for a symbol.
    pub(super) fn says(&mut self, l: Literal, with: Instead) -> bool {
        self.instead(SymbolicOffset { base: l.condition, offset: 0 }, with).is_some()
    }

    /// A condition with another number for a symbol: `Ok` with what is left of it, nothing if it is sure where `path`
    /// holds; `Err` if it cannot be.
    pub(super) fn literal_instead(
        &mut self,
        l: Literal,
        with: Instead,
        path: &[Literal],
    ) -> Result<Option<Literal>, ()> {
        let condition = SymbolicOffset { base: l.condition, offset: 0 };
        // What cannot be said is not asked for.
        let Some(new) = self.instead(condition, with) else { return Ok(None) };
        match self.decide(new, path) {
            Some(holds) if holds == l.holds => Ok(None),
            Some(_) => Err(()),
            None => Ok(self.literal(new, l.holds)),
        }
    }
}

impl Numbers {
    /// `a == b` where `a` is the end of block `j` of `b` elements in blocks of `c`, `c * j + min(b - c * j, c)`: then
    /// it is the last one, as `j + 1 < (b + c - 1) / c` does not hold.
    pub(super) fn last_block(&mut self, a: SymbolicOffset, b: SymbolicOffset) -> Option<SymbolicOffset> {
        let (start, min) = match self.nodes[a.base as usize] {
            Node::Index(BinOp::Add, x, y) if a.offset == 0 => (x, y),
            // The block's number is known.
            Node::Index(BinOp::Min, ..) => (SymbolicOffset::known(a.offset), SymbolicOffset { offset: 0, ..a }),
            _ => return None,
        };
        let Node::Index(BinOp::Min, x, y) = self.nodes[min.base as usize] else { return None };
        let (left, c) = match (min.offset, x.constant(), y.constant()) {
            (0, None, Some(c)) => (x, c),
            (0, Some(c), None) => (y, c),
            _ => return None,
        };
        let block = match (start.constant(), self.nodes[start.base as usize].clone()) {
            (Some(d), _) if c > 0 && d % c == 0 && b.plus(d.checked_neg()?)? == left => SymbolicOffset::known(d / c),
            (None, Node::Index(BinOp::Mul, j, by)) if c > 0 && start.offset == 0 && by.constant() == Some(c) => {
                let same =
                    matches!(self.nodes[left.base as usize], Node::Index(BinOp::Sub, p, q) if (p, q) == (b, start));
                (same && left.offset == 0).then_some(j)?
            }
            _ => return None,
        };
        let count = self.binary(Ty::Index, BinOp::Div, b.plus(c - 1)?, SymbolicOffset::known(c));
        let more = self.compare(Ty::Index, ptoc_isa::CmpOp::Lt, block.plus(1)?, count);
        Some(self.not(more))
    }
}
