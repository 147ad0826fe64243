//! Numbers that are never the same: elements of an array that are used in turn.

use super::numbers::{Node, Numbers, SymbolicOffset, index_binary};
use ptoc_ir::tile::Ty;
use ptoc_isa::BinOp;

/// Values of a symbol that are tried.
const RESIDUES: i64 = 4096;

impl Numbers {
    /// Whether the two are never the same.
    pub(super) fn differ(&mut self, a: SymbolicOffset, b: SymbolicOffset) -> bool {
        if a.base == b.base {
            return a.offset != b.offset;
        }
        let difference = self.binary(Ty::Index, BinOp::Sub, a, b);
        if !self.spread(difference).has(0) {
            return true;
        }
        // Remainders of one symbol: all of its residues are tried.
        let Some(symbol) = self.symbol_of(a, b) else { return false };
        if self.polynomial(a.base) && self.polynomial(b.base) {
            // One is odd where the other is even.
            return (0..2).all(|n| match (self.at(a, symbol, n), self.at(b, symbol, n)) {
                (Some(x), Some(y)) => (x ^ y) & 1 == 1,
                _ => false,
            });
        }
        let period = self.period(a.base).zip(self.period(b.base));
        let Some(period) = period.map(|(p, q)| p.saturating_mul(q)).filter(|p| *p <= RESIDUES) else { return false };
        (0..period).all(|n| match (self.at(a, symbol, n), self.at(b, symbol, n)) {
            (Some(x), Some(y)) => x != y,
            _ => false,
        })
    }

    /// The one symbol of both numbers.
    fn symbol_of(&self, a: SymbolicOffset, b: SymbolicOffset) -> Option<u32> {
        let (mut open, mut found) = (vec![a.base, b.base], None);
        while let Some(id) = open.pop() {
            match &self.nodes[id as usize] {
                Node::Zero => {}
                Node::Symbol(_) if found.is_none_or(|f| f == id) => found = Some(id),
                Node::Index(_, a, b) => open.extend([a.base, b.base]),
                _ => return None,
            }
        }
        found
    }

    /// After how many steps of the symbol the node has the same values again.
    fn period(&self, id: u32) -> Option<i64> {
        match &self.nodes[id as usize] {
            Node::Zero => Some(1),
            Node::Index(BinOp::Rem, a, b) => match b.constant() {
                Some(n) if n > 0 && self.polynomial(a.base) => Some(n),
                _ => self.period(a.base),
            },
            Node::Index(BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Min | BinOp::Max, a, b) => {
                self.period(a.base)?.checked_mul(self.period(b.base)?)
            }
            _ => None,
        }
    }

    /// Whether it is made of sums and products alone. Then its remainders depend on those of the symbol.
    fn polynomial(&self, id: u32) -> bool {
        match &self.nodes[id as usize] {
            Node::Zero | Node::Symbol(_) => true,
            Node::Index(BinOp::Add | BinOp::Sub | BinOp::Mul, a, b) => {
                self.polynomial(a.base) && self.polynomial(b.base)
            }
            _ => false,
        }
    }

    /// The number where the symbol is `n`.
    fn at(&self, number: SymbolicOffset, symbol: u32, n: i64) -> Option<i64> {
        let base = match &self.nodes[number.base as usize] {
            Node::Zero => 0,
            Node::Symbol(_) => (number.base == symbol).then_some(n)?,
            Node::Index(op, a, b) => {
                let (a, b) = (self.at(*a, symbol, n)?, self.at(*b, symbol, n)?);
                index_binary(*op, SymbolicOffset::known(a), SymbolicOffset::known(b))?.constant()?
            }
            _ => return None,
        };
        base.checked_add(number.offset)
    }
}
