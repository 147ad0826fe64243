//! Conditions on numbers as linear inequalities, and whether some of them contradict each other.
//!
//! Sums stay sums; what is no sum of symbols (a minimum, a quotient, a product of two symbols) is a symbol of the
//! system, of which it is noted what is known of it: a minimum is one of its two sides and at most both, `q = a / n`
//! has `n q <= a < n q + n`.

use super::numbers::{Literal, Node, Numbers, SymbolicOffset};
use ptoc_ir::analysis::linear::{LinearSum, System};
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::Ty;
use ptoc_isa::BinOp;
use rustc_hash::{FxHashMap, FxHashSet};

/// Operations that a sum is followed through.
const DEPTH: u32 = 10;
/// Symbols of which it is noted what is known.
const KNOWN: usize = 128;
/// Pairs of inequalities, of which one holds, that are split at once.
const SPLITS: usize = 4;
/// Pairs before those that are split, each alone.
const ALONE: usize = 8;
/// Steps that a look for a contradiction takes, and more of them for each row.
const LOOK: usize = 64;
const ROW: usize = 40;

impl Numbers {
    /// The number as a sum of products of nodes that are no sums.
    pub(super) fn sum(&self, n: SymbolicOffset) -> Option<Poly<u32>> {
        self.sum_at(n, DEPTH)
    }

    fn sum_at(&self, n: SymbolicOffset, depth: u32) -> Option<Poly<u32>> {
        let of = |n: SymbolicOffset| self.sum_at(n, depth - 1);
        let base = match self.nodes[n.base as usize] {
            Node::Zero => Poly::constant(0),
            Node::Index(BinOp::Add, a, b) if depth > 0 => of(a)?.plus(&of(b)?, 1)?,
            Node::Index(BinOp::Sub, a, b) if depth > 0 => of(a)?.plus(&of(b)?, -1)?,
            Node::Index(BinOp::Mul, a, b) if depth > 0 => of(a)?.times(&of(b)?)?,
            _ => Poly::symbol(n.base),
        };
        base.plus(&Poly::constant(n.offset), 1)
    }

    /// The sum as a number.
    pub(super) fn number_of(&mut self, sum: &Poly<u32>) -> SymbolicOffset {
        sum.terms().iter().fold(SymbolicOffset::known(0), |whole, (factors, n)| {
            let product = factors.iter().fold(SymbolicOffset::known(*n), |product, f| {
                self.binary(Ty::Index, BinOp::Mul, product, SymbolicOffset { base: *f, offset: 0 })
            });
            self.binary(Ty::Index, BinOp::Add, whole, product)
        })
    }
}

/// What holds at once.
#[derive(Clone, Default)]
pub(super) struct Facts {
    system: System,
    /// One of the two is at least zero; the newest comes last.
    either: Vec<[LinearSum; 2]>,
    /// Symbols of which the system has what is known.
    known: FxHashSet<u32>,
}

/// A proof under way.
pub(super) struct Linear<'n> {
    pub(super) numbers: &'n mut Numbers,
    /// Symbols of systems: products of nodes.
    symbols: FxHashMap<Vec<u32>, u32>,
    fresh: u32,
    /// Steps that were taken, and those that may be.
    pub(super) taken: usize,
    most: usize,
}

impl<'n> Linear<'n> {
    pub(super) fn new(numbers: &'n mut Numbers, most: usize) -> Linear<'n> {
        Linear { numbers, symbols: FxHashMap::default(), fresh: 0, taken: 0, most }
    }

    /// There are no steps left.
    pub(super) fn spent(&self) -> bool {
        self.taken >= self.most
    }

    fn fresh(&mut self) -> u32 {
        self.fresh += 1;
        self.fresh - 1
    }

    fn row(&mut self, facts: &mut Facts, n: SymbolicOffset) -> Option<LinearSum> {
        let sum = self.numbers.sum(n)?;
        let mut row = LinearSum::number(0);
        for (factors, n) in sum.terms() {
            if factors.is_empty() {
                row = row.sum(1, &LinearSum::number(*n), 1)?;
                continue;
            }
            let symbol = self.symbol(factors.clone());
            row = row.plus(symbol, *n)?;
            for &node in factors {
                self.know(facts, node);
            }
        }
        Some(row)
    }

    fn symbol(&mut self, factors: Vec<u32>) -> u32 {
        if let Some(s) = self.symbols.get(&factors) {
            return *s;
        }
        let s = self.fresh();
        self.symbols.insert(factors, s);
        s
    }

    /// `a - b + n`
    fn difference(&mut self, facts: &mut Facts, a: SymbolicOffset, b: SymbolicOffset, n: i64) -> Option<LinearSum> {
        let (a, b) = (self.row(facts, a)?, self.row(facts, b)?);
        a.sum(1, &b, -1)?.sum(1, &LinearSum::number(n), 1)
    }

    /// `a <= b`
    fn at_most(&mut self, facts: &mut Facts, a: SymbolicOffset, b: SymbolicOffset) {
        if let Some(row) = self.difference(facts, b, a, 0) {
            facts.system.at_least_zero(row);
        }
    }

    /// `a == b`
    fn same(&mut self, facts: &mut Facts, a: SymbolicOffset, b: SymbolicOffset) {
        if let Some(row) = self.difference(facts, a, b, 0) {
            facts.system.zero(row);
        }
    }

    /// What is known of a node.
    fn know(&mut self, facts: &mut Facts, node: u32) {
        if facts.known.len() >= KNOWN || !facts.known.insert(node) {
            return;
        }
        let n = SymbolicOffset { base: node, offset: 0 };
        match self.numbers.nodes[node as usize].clone() {
            Node::Symbol(_) => {
                let (least, end) = self.numbers.range(node);
                if let Some(least) = least {
                    self.at_most(facts, least, n);
                }
                if let Some(last) = end.and_then(|end| end.plus(-1)) {
                    self.at_most(facts, n, last);
                }
                for by in self.numbers.divisors(node) {
                    let quotient = self.fresh();
                    let row = self.row(facts, n).and_then(|row| row.plus(quotient, -by));
                    row.into_iter().for_each(|row| facts.system.zero(row));
                }
            }
            Node::Index(op @ (BinOp::Min | BinOp::Max), a, b) => {
                let least = op == BinOp::Min;
                let mut sides = [a, b].map(|side| {
                    let (low, high) = if least { (n, side) } else { (side, n) };
                    self.at_most(facts, low, high);
                    self.difference(facts, low, high, 0)
                });
                if let [Some(a), Some(b)] = [sides[0].take(), sides[1].take()] {
                    facts.either.push([a, b]);
                }
            }
            Node::Index(BinOp::Div, a, b) => {
                if let Some(by) = b.constant().filter(|by| *by >= 1) {
                    self.quotient(facts, n, a, by);
                }
            }
            Node::Index(BinOp::Rem, a, b) => self.remainder(facts, n, a, b),
            _ => {}
        }
    }

    /// `by * q <= a < by * q + by`
    fn quotient(&mut self, facts: &mut Facts, q: SymbolicOffset, a: SymbolicOffset, by: i64) {
        let times = self.numbers.binary(Ty::Index, BinOp::Mul, q, SymbolicOffset::known(by));
        self.at_most(facts, times, a);
        if let Some(last) = times.plus(by - 1) {
            self.at_most(facts, a, last);
        }
    }

    /// `r = a % b`
    fn remainder(&mut self, facts: &mut Facts, r: SymbolicOffset, a: SymbolicOffset, b: SymbolicOffset) {
        if let Some(by) = b.constant().filter(|by| *by >= 1) {
            let q = self.numbers.binary(Ty::Index, BinOp::Div, a, b);
            let times = self.numbers.binary(Ty::Index, BinOp::Mul, q, b);
            let rest = self.numbers.binary(Ty::Index, BinOp::Sub, a, times);
            self.same(facts, r, rest);
            self.at_most(facts, SymbolicOffset::known(0), r);
            self.at_most(facts, r, SymbolicOffset::known(by - 1));
            return;
        }
        // Of something unknown: where the quotient is 0, 1 or -1, if that is seen here.
        let below = |this: &mut Self, x: SymbolicOffset, y: SymbolicOffset| {
            let less = this.numbers.compare(Ty::Index, ptoc_isa::CmpOp::Lt, x, y);
            this.follows(facts, less, true)
        };
        if !below(self, SymbolicOffset::known(0), b) {
            return;
        }
        let (zero, negative) =
            (SymbolicOffset::known(0), self.numbers.binary(Ty::Index, BinOp::Sub, SymbolicOffset::known(0), b));
        let twice = self.numbers.binary(Ty::Index, BinOp::Mul, b, SymbolicOffset::known(2));
        let shifted = |this: &mut Self, op: BinOp| this.numbers.binary(Ty::Index, op, a, b);
        let at_least = |this: &mut Self, y: SymbolicOffset| a.plus(1).is_some_and(|more| below(this, y, more));
        let found = if at_least(self, zero) {
            match () {
                () if below(self, a, b) => Some(a),
                () if at_least(self, b) && below(self, a, twice) => Some(shifted(self, BinOp::Sub)),
                () => None,
            }
        } else {
            (below(self, a, zero) && at_least(self, negative)).then(|| shifted(self, BinOp::Add))
        };
        if let Some(found) = found {
            self.same(facts, r, found);
        }
        self.at_most(facts, zero, r);
        if let Some(last) = b.plus(-1) {
            self.at_most(facts, r, last);
        }
    }

    /// The condition turned out so.
    pub(super) fn assume(&mut self, facts: &mut Facts, condition: SymbolicOffset, holds: bool) {
        if let Some(known) = condition.constant() {
            if (known != 0) != holds {
                facts.system.at_least_zero(LinearSum::number(-1));
            }
            return;
        }
        let mut all = Vec::new();
        self.numbers.assume(condition, holds, &mut all);
        all.into_iter().for_each(|l| self.literal(facts, l));
    }

    fn inequality(&mut self, facts: &mut Facts, l: Literal) -> Option<LinearSum> {
        let Node::Less(a, b, n) = self.numbers.nodes[l.condition as usize] else { return None };
        let (a, b) = (SymbolicOffset { base: a, offset: 0 }, SymbolicOffset { base: b, offset: 0 });
        match l.holds {
            // a < b + n
            true => self.difference(facts, b, a, n.checked_sub(1)?),
            false => self.difference(facts, a, b, n.checked_neg()?),
        }
    }

    pub(super) fn literal(&mut self, facts: &mut Facts, l: Literal) {
        if let Some(row) = self.inequality(facts, l) {
            facts.system.at_least_zero(row);
            return;
        }
        match self.numbers.nodes[l.condition as usize].clone() {
            Node::Less(..) => {}
            Node::Equal(a, b, n) => {
                let (a, b) = (SymbolicOffset { base: a, offset: 0 }, SymbolicOffset { base: b, offset: 0 });
                let Some(row) = n.checked_neg().and_then(|n| self.difference(facts, a, b, n)) else { return };
                if l.holds {
                    facts.system.zero(row);
                    return;
                }
                if let [Some(above), Some(below)] = [1, -1].map(|sign| row.sum(sign, &LinearSum::number(-1), 1)) {
                    facts.either.push([above, below]);
                }
            }
            Node::And(a, b) | Node::Or(a, b) => {
                // One of the two turned out as both together did.
                let sides = [a, b].map(|side| {
                    let mut all = Vec::new();
                    self.numbers.assume(side, l.holds, &mut all);
                    let [only] = all[..] else { return None };
                    self.inequality(facts, only)
                });
                if let [Some(a), Some(b)] = sides {
                    facts.either.push([a, b]);
                }
            }
            _ => {
                let symbol = self.symbol(vec![l.condition]);
                let row = LinearSum::number(-i64::from(l.holds)).plus(symbol, 1);
                row.into_iter().for_each(|row| facts.system.zero(row));
            }
        }
    }

    /// Whether the condition certainly turns out as `holds` says.
    pub(super) fn follows(&mut self, facts: &Facts, condition: SymbolicOffset, holds: bool) -> bool {
        if let Some(known) = condition.constant() {
            return (known != 0) == holds;
        }
        let mut other = facts.clone();
        self.assume(&mut other, condition, !holds);
        self.refuted(&other)
    }

    /// Whether there is certainly nothing of which all this holds.
    pub(super) fn refuted(&mut self, facts: &Facts) -> bool {
        let (older, newest) = facts.either.split_at(facts.either.len().saturating_sub(SPLITS));
        // Where rows are what contradicts itself, the pairs of columns may be the newer ones.
        self.split(&facts.system, newest, SPLITS)
            || older.iter().rev().take(ALONE).any(|pair| self.split(&facts.system, std::slice::from_ref(pair), 1))
    }

    fn split(&mut self, system: &System, either: &[[LinearSum; 2]], depth: usize) -> bool {
        if self.spent() {
            return false;
        }
        self.taken += LOOK + ROW * system.rows();
        if system.refuted() {
            return true;
        }
        let (Some(([a, b], older)), true) = (either.split_last(), depth > 0) else { return false };
        [a, b].into_iter().all(|side| {
            let mut with = system.clone();
            with.at_least_zero(side.clone());
            self.split(&with, older, depth - 1)
        })
    }
}
