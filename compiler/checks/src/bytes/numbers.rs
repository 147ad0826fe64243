//! Value numbering: what is known of scalars: constants, and symbols plus constants. Pure operations on unknown scalars
//! are numbered, so that the same computation of the same operands is the same number wherever it stands.

use ptoc_ir::analysis::progression::Progression;
use ptoc_ir::tile::{Op, Stmt, Ty, Value};
use ptoc_isa::{BinOp, CmpOp};
use rustc_hash::{FxHashMap, FxHashSet};

/// A scalar: `base + offset`; base 0 is the number zero, so that constants are `0 + offset`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct SymbolicOffset {
    pub(super) base: u32,
    pub(super) offset: i64,
}

impl SymbolicOffset {
    pub(super) const fn known(offset: i64) -> SymbolicOffset {
        SymbolicOffset { base: 0, offset }
    }

    pub(super) fn constant(self) -> Option<i64> {
        (self.base == 0).then_some(self.offset)
    }

    /// `self + n`; `None` if that overflows.
    pub(super) fn plus(self, n: i64) -> Option<SymbolicOffset> {
        Some(SymbolicOffset { offset: self.offset.checked_add(n)?, ..self })
    }
}

/// A condition that is not decided, and how it turned out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Literal {
    pub(super) condition: u32,
    pub(super) holds: bool,
}

impl Literal {
    pub(super) fn negated(self) -> Literal {
        Literal { holds: !self.holds, ..self }
    }
}

/// An operation on numbers that has no simpler form.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Node {
    Zero,
    /// Something of which nothing is known.
    Symbol(u32),
    /// `a < b + n`
    Less(u32, u32, i64),
    /// `a == b + n`, `a < b`.
    Equal(u32, u32, i64),
    Not(SymbolicOffset),
    And(SymbolicOffset, SymbolicOffset),
    Or(SymbolicOffset, SymbolicOffset),
    /// Arithmetic on indices.
    Index(BinOp, SymbolicOffset, SymbolicOffset),
    /// One or the other.
    Select(SymbolicOffset, SymbolicOffset, SymbolicOffset),
    /// Any other pure operation, by its description.
    Pure(String, Vec<SymbolicOffset>),
}

/// All numbers of an analysis.
pub(super) struct Numbers {
    pub(super) nodes: Vec<Node>,
    /// The youngest symbol in each node.
    pub(super) newest: Vec<u32>,
    ids: FxHashMap<Node, u32>,
    symbols: u32,
    /// Symbols that are at least some number.
    at_least: FxHashMap<u32, SymbolicOffset>,
    /// Symbols that are less than some number.
    below: FxHashMap<u32, SymbolicOffset>,
    /// Symbols that are multiples of some number.
    multiples: FxHashSet<(u32, i64)>,
    /// The values that nodes may have.
    spreads: FxHashMap<u32, Progression>,
    values: FxHashMap<Value, SymbolicOffset>,
}

impl Numbers {
    pub(super) fn new() -> Numbers {
        Numbers {
            nodes: vec![Node::Zero],
            newest: vec![0],
            ids: FxHashMap::from_iter([(Node::Zero, 0)]),
            symbols: 0,
            at_least: FxHashMap::default(),
            below: FxHashMap::default(),
            multiples: FxHashSet::default(),
            spreads: FxHashMap::default(),
            values: FxHashMap::default(),
        }
    }

    /// It is not negative.
    pub(super) fn natural(&mut self, n: SymbolicOffset) {
        if n.offset == 0 && matches!(self.nodes[n.base as usize], Node::Symbol(_)) {
            self.at_least.entry(n.base).or_insert(SymbolicOffset::known(0));
            self.spreads.clear();
        }
    }

    /// `0 <= i < end`, for a symbol.
    pub(super) fn counts(&mut self, i: SymbolicOffset, end: SymbolicOffset) {
        if i.offset == 0 && matches!(self.nodes[i.base as usize], Node::Symbol(_)) {
            self.at_least.insert(i.base, SymbolicOffset::known(0));
            self.below.insert(i.base, end);
            self.spreads.remove(&i.base);
        }
    }

    fn node(&mut self, node: Node) -> u32 {
        if let Some(&id) = self.ids.get(&node) {
            return id;
        }
        let newest = match &node {
            Node::Zero => 0,
            Node::Symbol(n) => *n,
            Node::Less(a, b, _) | Node::Equal(a, b, _) => self.newest[*a as usize].max(self.newest[*b as usize]),
            Node::Not(a) => self.newest[a.base as usize],
            Node::And(a, b) | Node::Or(a, b) | Node::Index(_, a, b) => {
                self.newest[a.base as usize].max(self.newest[b.base as usize])
            }
            Node::Select(c, a, b) => [c, a, b].into_iter().map(|n| self.newest[n.base as usize]).max().unwrap_or(0),
            Node::Pure(_, of) => of.iter().map(|n| self.newest[n.base as usize]).max().unwrap_or(0),
        };
        let id = self.nodes.len() as u32;
        self.nodes.push(node.clone());
        self.newest.push(newest);
        self.ids.insert(node, id);
        id
    }

    /// Something of which nothing is known.
    pub(super) fn symbol(&mut self) -> SymbolicOffset {
        self.symbols += 1;
        let base = self.node(Node::Symbol(self.symbols));
        SymbolicOffset { base, offset: 0 }
    }

    /// A symbol that is at least `least` and less than `end`.
    pub(super) fn symbol_in(&mut self, least: SymbolicOffset, end: SymbolicOffset) -> SymbolicOffset {
        let symbol = self.symbol();
        self.at_least.insert(symbol.base, least);
        self.below.insert(symbol.base, end);
        symbol
    }

    /// What the symbol is at least, and less than.
    pub(super) fn range(&self, id: u32) -> (Option<SymbolicOffset>, Option<SymbolicOffset>) {
        (self.at_least.get(&id).copied(), self.below.get(&id).copied())
    }

    /// Of an inequality, what is less (or at most as much), and what is more; without constants.
    pub(super) fn sides(&self, l: Literal) -> Option<(SymbolicOffset, SymbolicOffset)> {
        let Node::Less(a, b, _) = self.nodes[l.condition as usize] else { return None };
        let (a, b) = (SymbolicOffset { base: a, offset: 0 }, SymbolicOffset { base: b, offset: 0 });
        Some(if l.holds { (a, b) } else { (b, a) })
    }

    /// What certainly divides the symbol.
    pub(super) fn divisors(&self, id: u32) -> Vec<i64> {
        self.multiples.iter().filter(|(of, _)| *of == id).map(|(_, n)| *n).collect()
    }

    /// Whether `n` has no symbol made after `then` but these.
    pub(super) fn made_of(&self, n: SymbolicOffset, then: u32, known: &dyn Fn(u32) -> bool) -> bool {
        let (mut open, mut seen) = (vec![n.base], FxHashSet::default());
        while let Some(id) = open.pop() {
            if self.newest[id as usize] <= then || !seen.insert(id) {
                continue;
            }
            if matches!(self.nodes[id as usize], Node::Symbol(_)) && !known(id) {
                return false;
            }
            self.parts(id, &mut open);
        }
        true
    }

    /// A symbol that is `first` or a number of steps more than that, and less than `end`.
    pub(super) fn symbol_every(
        &mut self,
        first: SymbolicOffset,
        step: i64,
        end: Option<SymbolicOffset>,
    ) -> SymbolicOffset {
        let symbol = self.symbol();
        self.at_least.insert(symbol.base, first);
        self.below.extend(end.map(|end| (symbol.base, end)));
        let known = self.spread(symbol);
        if let Some(first) = first.constant().filter(|_| step > 1) {
            self.spreads.insert(symbol.base, known.every(first, step));
        }
        symbol
    }

    /// All values that `n` may have.
    pub(super) fn spread(&mut self, n: SymbolicOffset) -> Progression {
        let base = match self.spreads.get(&n.base) {
            Some(&known) => known,
            None => {
                let found = self.spread_of(n.base);
                self.spreads.insert(n.base, found);
                found
            }
        };
        base.plus(Progression::one(n.offset))
    }

    fn spread_of(&mut self, id: u32) -> Progression {
        match self.nodes[id as usize].clone() {
            Node::Zero => Progression::one(0),
            Node::Symbol(_) => {
                let least = self.at_least.get(&id).copied().map(|n| self.spread(n));
                let end = self.below.get(&id).copied().map(|n| self.spread(n));
                let last = end.and_then(|e| e.last).and_then(|e| e.checked_sub(1));
                Progression::between(least.and_then(|l| l.first), last)
            }
            Node::Index(op, a, b) => {
                let (x, y) = (self.spread(a), self.spread(b));
                x.binary(op, y)
            }
            Node::Select(_, a, b) => {
                let (x, y) = (self.spread(a), self.spread(b));
                x.or(y)
            }
            _ => Progression::ANY,
        }
    }

    /// Symbols that are made from now on are younger than this.
    pub(super) fn now(&self) -> u32 {
        self.symbols
    }

    /// Whether `n` depends on a symbol made after `then`.
    pub(super) fn younger(&self, n: SymbolicOffset, then: u32) -> bool {
        self.newest[n.base as usize] > then
    }

    pub(super) fn literal_younger(&self, l: Literal, then: u32) -> bool {
        self.newest[l.condition as usize] > then
    }

    pub(super) fn set(&mut self, value: Value, n: SymbolicOffset) {
        self.values.insert(value, n);
    }

    /// The number of a value; a symbol if nothing is known of it.
    pub(super) fn get(&mut self, value: Value) -> SymbolicOffset {
        match self.values.get(&value) {
            Some(n) => *n,
            None => {
                let n = self.symbol();
                self.values.insert(value, n);
                n
            }
        }
    }

    /// What the checks of a prologue say of the least and the largest value of something is known from there on.
    pub(super) fn bound(&mut self, prologue: &[Stmt]) {
        let mut known = Vec::new();
        for stmt in prologue {
            if let Op::Check { cond, .. } = &stmt.op {
                let cond = self.get(*cond);
                self.assume(cond, true, &mut known);
            }
        }
        for l in known {
            // a % n == 0
            if let (Node::Equal(a, b, 0), true) = (&self.nodes[l.condition as usize], l.holds)
                && let Node::Index(BinOp::Rem, of, n) = self.nodes[*a.max(b) as usize]
                && let (0, 0, Some(n)) = (*a.min(b), of.offset, n.constant())
            {
                self.multiples.insert((of.base, n));
            }
            let (symbol, end, least) = match (&self.nodes[l.condition as usize], l.holds) {
                // a < n, a >= n
                (Node::Less(a, 0, n), true) => (*a, Some(*n), None),
                (Node::Less(a, 0, n), false) => (*a, None, Some(*n)),
                // 0 < b + n, 0 >= b + n
                (Node::Less(0, b, n), true) => (*b, None, n.checked_neg().and_then(|n| n.checked_add(1))),
                (Node::Less(0, b, n), false) => (*b, n.checked_neg().and_then(|n| n.checked_add(1)), None),
                _ => continue,
            };
            if matches!(self.nodes[symbol as usize], Node::Symbol(_)) {
                self.below.extend(end.map(|end| (symbol, SymbolicOffset::known(end))));
                self.at_least.extend(least.map(|least| (symbol, SymbolicOffset::known(least))));
            }
        }
        self.spreads.clear();
    }

    /// Where the checks of a prologue say that something of which nothing is known is some other number, it becomes
    /// that number. Values that were computed with it are to be computed again. Returns whether there was one.
    pub(super) fn unify(&mut self, prologue: &[Stmt]) -> bool {
        let (mut known, mut any) = (Vec::new(), false);
        for stmt in prologue {
            if let Op::Check { cond, .. } = &stmt.op {
                let cond = self.get(*cond);
                self.assume(cond, true, &mut known);
            }
        }
        for l in known.into_iter().filter(|l| l.holds) {
            let Node::Equal(a, b, n) = self.nodes[l.condition as usize] else { continue };
            let symbol = |id: u32| matches!(self.nodes[id as usize], Node::Symbol(_));
            let other = |id: u32, offset: Option<i64>| offset.map(|offset| SymbolicOffset { base: id, offset });
            let (from, to) = match (symbol(a), symbol(b)) {
                (_, true) if a != 0 && !self.contains(a, b) => (b, other(a, n.checked_neg())),
                (true, _) if b != 0 && !self.contains(b, a) => (a, other(b, Some(n))),
                _ => continue,
            };
            let Some(to) = to else { continue };
            for n in self.values.values_mut().filter(|n| n.base == from) {
                any = true;
                *n = to.plus(n.offset).unwrap_or(*n);
            }
        }
        any
    }

    /// Whether the number is made of that symbol.
    pub(super) fn depends(&self, n: SymbolicOffset, symbol: SymbolicOffset) -> bool {
        symbol.base != 0 && self.contains(n.base, symbol.base)
    }

    /// `n` as a multiple of a symbol, and what comes in addition.
    pub(super) fn multiple(&self, n: SymbolicOffset, symbol: SymbolicOffset) -> Option<(i64, i64)> {
        if symbol.offset != 0 || symbol.base == 0 {
            return None;
        }
        if n.base == symbol.base {
            return Some((1, n.offset));
        }
        let Node::Index(BinOp::Mul, a, b) = self.nodes[n.base as usize] else { return None };
        let by = if a == symbol { b.constant() } else { a.constant().filter(|_| b == symbol) };
        by.map(|by| (by, n.offset))
    }

    /// Whether `part` is among what the node is made of.
    pub(super) fn contains(&self, id: u32, part: u32) -> bool {
        let (mut open, mut seen) = (vec![id], FxHashSet::default());
        while let Some(id) = open.pop() {
            if id == part {
                return true;
            }
            if !seen.insert(id) {
                continue;
            }
            self.parts(id, &mut open);
        }
        false
    }

    /// What a node is made of.
    fn parts(&self, id: u32, out: &mut Vec<u32>) {
        match &self.nodes[id as usize] {
            Node::Zero | Node::Symbol(_) => {}
            Node::Less(a, b, _) | Node::Equal(a, b, _) => out.extend([*a, *b]),
            Node::Not(a) => out.push(a.base),
            Node::And(a, b) | Node::Or(a, b) | Node::Index(_, a, b) => out.extend([a.base, b.base]),
            Node::Select(c, a, b) => out.extend([c.base, a.base, b.base]),
            Node::Pure(_, all) => out.extend(all.iter().map(|n| n.base)),
        }
    }

    pub(super) fn pure(&mut self, what: String, of: Vec<SymbolicOffset>) -> SymbolicOffset {
        let base = self.node(Node::Pure(what, of));
        SymbolicOffset { base, offset: 0 }
    }

    pub(super) fn select(&mut self, cond: SymbolicOffset, a: SymbolicOffset, b: SymbolicOffset) -> SymbolicOffset {
        let base = self.node(Node::Select(cond, a, b));
        SymbolicOffset { base, offset: 0 }
    }

    pub(super) fn not(&mut self, a: SymbolicOffset) -> SymbolicOffset {
        match (a.constant(), &self.nodes[a.base as usize]) {
            (Some(n), _) => SymbolicOffset::known(i64::from(n == 0)),
            (None, Node::Not(inner)) => *inner,
            _ => {
                let base = self.node(Node::Not(a));
                SymbolicOffset { base, offset: 0 }
            }
        }
    }

    pub(super) fn binary(&mut self, ty: Ty, op: BinOp, a: SymbolicOffset, b: SymbolicOffset) -> SymbolicOffset {
        if ty == Ty::BOOL && matches!(op, BinOp::And | BinOp::Or) {
            let and = op == BinOp::And;
            return match (a.constant(), b.constant()) {
                (Some(x), _) => {
                    if (x != 0) == and {
                        b
                    } else {
                        a
                    }
                }
                (_, Some(y)) => {
                    if (y != 0) == and {
                        a
                    } else {
                        b
                    }
                }
                _ => {
                    let base = self.node(if and { Node::And(a, b) } else { Node::Or(a, b) });
                    SymbolicOffset { base, offset: 0 }
                }
            };
        }
        if ty == Ty::Index {
            return match index_binary(op, a, b).or_else(|| self.whole_block(op, a, b)) {
                Some(n) => n,
                None => {
                    let made = SymbolicOffset { base: self.node(Node::Index(op, a, b)), offset: 0 };
                    match self.spread(made).constant().filter(|_| op == BinOp::Rem) {
                        Some(n) => SymbolicOffset::known(n),
                        None => made,
                    }
                }
            };
        }
        self.pure(format!("{op:?} {ty}"), vec![a, b])
    }

    /// Whether `start + n <= end` is certain where `path` holds. `n` is a minimum of what is left there, or a constant.
    pub(super) fn ends_by(
        &self,
        start: SymbolicOffset,
        n: SymbolicOffset,
        end: SymbolicOffset,
        path: &[Literal],
    ) -> bool {
        if let (Some(start), Some(n)) = (start.constant(), n.constant())
            && let Some(last) = start.checked_add(n)
            && self.least(end, path).is_some_and(|least| last <= least)
        {
            return true;
        }
        if start.base == end.base && n.constant().is_some_and(|n| start.offset.saturating_add(n) <= end.offset) {
            return true;
        }
        if n == SymbolicOffset::known(1) && self.is_below(start, end, path) {
            return true;
        }
        if let Some(n) = n.constant() {
            let (_, most) = self.difference(start.base, end.base, path);
            let last = most.and_then(|m| m.checked_add(start.offset)).and_then(|m| m.checked_add(n));
            return last.is_some_and(|last| last <= end.offset);
        }
        if let Some(start) = start.constant() {
            let left = start.checked_neg().and_then(|start| end.plus(start));
            if left.is_some_and(|left| left.base == n.base && n.offset <= left.offset) {
                return true;
            }
        }
        match self.nodes[n.base as usize] {
            Node::Index(BinOp::Sub, a, b) => n.offset <= 0 && (a, b) == (end, start),
            Node::Index(BinOp::Min, a, b) if n.offset <= 0 => {
                [a, b].into_iter().any(|x| x.constant().is_none() && self.ends_by(start, x, end, path))
            }
            _ => false,
        }
    }

    /// `a - b`; of `b + n` it is `n`.
    pub(super) fn minus(&mut self, a: SymbolicOffset, b: SymbolicOffset) -> SymbolicOffset {
        match self.nodes[a.base as usize] {
            Node::Index(BinOp::Add, x, n) | Node::Index(BinOp::Add, n, x) if x == b && a.offset == 0 => n,
            _ => self.binary(Ty::Index, BinOp::Sub, a, b),
        }
    }

    /// What is cut into blocks, where `origin` and `valid` are block `index` of it and there are `count`.
    pub(super) fn blocks_of(
        &self,
        origin: SymbolicOffset,
        valid: SymbolicOffset,
        index: SymbolicOffset,
        count: SymbolicOffset,
    ) -> Option<SymbolicOffset> {
        let Node::Index(BinOp::Min, a, b) = self.nodes[valid.base as usize] else { return None };
        let (size, rest) = if a.constant().is_some() { (a, b) } else { (b, a) };
        let n = size.constant().filter(|n| *n >= 1)?;
        let Node::Index(BinOp::Sub, whole, start) = self.nodes[rest.base as usize] else { return None };
        let Node::Index(BinOp::Div, of, by) = self.nodes[count.base as usize] else { return None };
        let fits = self.multiple(origin, index) == Some((n, 0)) && start == origin && by == size;
        let plain = [valid, rest, count].iter().all(|x| x.offset == 0);
        (fits && plain && Some(of) == whole.plus(n - 1)).then_some(whole)
    }

    /// Whether `i < end` is certain, for an index of a loop, or what it is more than where the loop begins.
    fn is_below(&self, i: SymbolicOffset, end: SymbolicOffset, path: &[Literal]) -> bool {
        let (index, from) = match self.nodes[i.base as usize] {
            Node::Index(BinOp::Sub, index, from) if i.offset == 0 => (index, Some(from)),
            _ => (i, None),
        };
        let Some(below) = self.below.get(&index.base).filter(|_| index.offset <= 0) else { return false };
        let Node::Index(BinOp::Add, a, b) = self.nodes[below.base as usize] else { return false };
        if below.offset > 0 {
            return false;
        }
        match from {
            // start + len
            Some(from) => (a, b) == (from, end) || (b, a) == (from, end),
            // start + what is left behind it
            None => self.ends_by(a, b, end, path) || self.ends_by(b, a, end, path),
        }
    }

    /// `min(n, end - n * i)` where block `i` is never cut.
    fn whole_block(&self, op: BinOp, a: SymbolicOffset, b: SymbolicOffset) -> Option<SymbolicOffset> {
        let (size, rest) = if a.constant().is_some() { (a, b) } else { (b, a) };
        let n = size.constant().filter(|n| op == BinOp::Min && *n >= 1)?;
        let Node::Index(BinOp::Sub, end, start) = self.nodes[rest.base as usize] else { return None };
        (rest.offset == 0 && self.is_left(n, end, start, &[])).then_some(size)
    }

    /// Whether `n <= end - n * i` is certain where `path` holds, for `start = n * i`. It is for `0 <= i < of / n`, if
    /// `of` is `end`, or rounds it up and `end` is a multiple of `n`; and for `n = 1` and `i < end`.
    fn is_left(&self, n: i64, end: SymbolicOffset, start: SymbolicOffset, path: &[Literal]) -> bool {
        let size = SymbolicOffset::known(n);
        // i < count
        let enough = |count: SymbolicOffset| match self.nodes[count.base as usize] {
            Node::Index(BinOp::Div, of, by) if by == size => {
                let rounded = || of.base == end.base && end.offset >= 0 && self.rounds_up(of, n);
                count.offset <= 0 && (of == end || rounded())
            }
            _ => n == 1 && count.base == end.base && count.offset <= end.offset,
        };
        self.is_block(n, start, path, &enough)
    }

    /// Whether `start = n * i` with `0 <= i < count`, for a count of this kind.
    fn is_block(&self, n: i64, start: SymbolicOffset, path: &[Literal], kind: &dyn Fn(SymbolicOffset) -> bool) -> bool {
        let size = SymbolicOffset::known(n);
        let i = match self.nodes[start.base as usize] {
            Node::Index(BinOp::Mul, i, by) | Node::Index(BinOp::Mul, by, i) if by == size => i,
            _ if n == 1 => start,
            _ => return false,
        };
        let natural =
            |least: &SymbolicOffset| least.constant().and_then(|l| l.checked_add(i.offset)).is_some_and(|l| l >= 0);
        let mut below = self.below.get(&i.base).copied().into_iter().chain(path.iter().filter_map(|l| {
            match (&self.nodes[l.condition as usize], l.holds) {
                (Node::Less(x, y, m), true) if *x == i.base => Some(SymbolicOffset { base: *y, offset: *m }),
                _ => None,
            }
        }));
        (start == i || start.offset == 0)
            && self.at_least.get(&i.base).is_some_and(natural)
            && below.any(|count| count.plus(i.offset).is_some_and(kind))
    }

    /// Whether `of` is a multiple of `n` and less than `n` more. Then that multiple is what it rounds down to.
    fn rounds_up(&self, of: SymbolicOffset, n: i64) -> bool {
        self.multiples.contains(&(of.base, n)) && (0..n).contains(&of.offset)
    }

    /// What `n` is at least, where `path` holds.
    fn least(&self, n: SymbolicOffset, path: &[Literal]) -> Option<i64> {
        if let Some(n) = n.constant() {
            return Some(n);
        }
        let parts = match self.nodes[n.base as usize] {
            Node::Index(BinOp::Min, a, b) => self.least(a, path).zip(self.least(b, path)).map(|(a, b)| a.min(b)),
            _ => None,
        };
        if let Node::Index(BinOp::Sub, end, start) = self.nodes[n.base as usize]
            && let Node::Index(BinOp::Mul, a, b) = self.nodes[start.base as usize]
            && let Some(size) = a.constant().or(b.constant()).filter(|size| *size >= 1)
        {
            if self.is_left(size, end, start, path) {
                return size.checked_add(n.offset);
            }
            // A block that there is has a row.
            let rounded = end.plus(size - 1).map(|of| Node::Index(BinOp::Div, of, SymbolicOffset::known(size)));
            let count = rounded.and_then(|node| self.ids.get(&node)).map(|id| SymbolicOffset { base: *id, offset: 0 });
            if count.is_some_and(|count| self.is_block(size, start, path, &|below| below == count)) {
                return n.offset.checked_add(1);
            }
        }
        let known = self.at_least.get(&n.base).and_then(|least| least.constant());
        let found = path.iter().filter_map(|l| {
            let (Node::Less(from, x, m), true) = (&self.nodes[l.condition as usize], l.holds) else { return None };
            if *from != 0 {
                // start < start + len + m
                let Node::Index(BinOp::Add, a, b) = self.nodes[*x as usize] else { return None };
                let start = SymbolicOffset { base: *from, offset: 0 };
                let len = if a == start { b } else { (b == start).then_some(a)? };
                let least = m.checked_neg()?.checked_add(1)?.checked_sub(len.offset)?;
                return (len.base == n.base).then_some(least);
            }
            let least = m.checked_neg()?.checked_add(1)?;
            if *x == n.base {
                return Some(least);
            }
            // of / by >= least
            let Node::Index(BinOp::Div, of, by) = self.nodes[*x as usize] else { return None };
            let by = by.constant().filter(|by| *by >= 1 && of.base == n.base)?;
            let more = if self.rounds_up(of, by) { 0 } else { of.offset };
            least.checked_mul(by)?.checked_sub(more)
        });
        known.into_iter().chain(parts).chain(found).max()?.checked_add(n.offset)
    }

    pub(super) fn compare(&mut self, ty: Ty, op: CmpOp, a: SymbolicOffset, b: SymbolicOffset) -> SymbolicOffset {
        if ty != Ty::Index {
            return self.pure(format!("{op:?} {ty}"), vec![a, b]);
        }
        match op {
            CmpOp::Lt => self.less(a, b),
            CmpOp::Gt => self.less(b, a),
            CmpOp::Ge => {
                let less = self.less(a, b);
                self.not(less)
            }
            CmpOp::Le => {
                let less = self.less(b, a);
                self.not(less)
            }
            CmpOp::Eq => self.equal(a, b),
            CmpOp::Ne => {
                let equal = self.equal(a, b);
                self.not(equal)
            }
        }
    }

    fn less(&mut self, a: SymbolicOffset, b: SymbolicOffset) -> SymbolicOffset {
        if a.base == b.base {
            return SymbolicOffset::known(i64::from(a.offset < b.offset));
        }
        let Some(n) = b.offset.checked_sub(a.offset) else { return self.symbol() };
        let base = self.node(Node::Less(a.base, b.base, n));
        SymbolicOffset { base, offset: 0 }
    }

    fn equal(&mut self, a: SymbolicOffset, b: SymbolicOffset) -> SymbolicOffset {
        if a.base == b.base {
            return SymbolicOffset::known(i64::from(a.offset == b.offset));
        }
        if let Some(last) = self.last_block(a, b).or_else(|| self.last_block(b, a)) {
            return last;
        }
        let (a, b) = if a.base < b.base { (a, b) } else { (b, a) };
        let Some(n) = b.offset.checked_sub(a.offset) else { return self.symbol() };
        let base = self.node(Node::Equal(a.base, b.base, n));
        SymbolicOffset { base, offset: 0 }
    }

    /// The value of the condition where `path` holds; `None` if it is not known.
    pub(super) fn decide(&self, condition: SymbolicOffset, path: &[Literal]) -> Option<bool> {
        if let Some(n) = condition.constant() {
            return Some(n != 0);
        }
        self.decide_node(condition.base, path)
    }

    fn decide_node(&self, id: u32, path: &[Literal]) -> Option<bool> {
        if let Some(l) = path.iter().find(|l| l.condition == id) {
            return Some(l.holds);
        }
        match self.nodes[id as usize] {
            Node::Not(a) => self.decide(a, path).map(|b| !b),
            Node::And(a, b) => match (self.decide(a, path), self.decide(b, path)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Node::Or(a, b) => match (self.decide(a, path), self.decide(b, path)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Node::Less(a, b, n) => {
                let (low, high) = self.difference(a, b, path);
                match () {
                    () if high.is_some_and(|h| h < n) => Some(true),
                    () if low.is_some_and(|l| l >= n) => Some(false),
                    () => None,
                }
            }
            Node::Equal(a, b, n) => {
                let (low, high) = self.difference(a, b, path);
                match () {
                    () if low.is_some_and(|l| l > n) || high.is_some_and(|h| h < n) => Some(false),
                    () if low == Some(n) && high == Some(n) => Some(true),
                    () => None,
                }
            }
            _ => None,
        }
    }

    /// Bounds of `a - b`.
    fn difference(&self, a: u32, b: u32, path: &[Literal]) -> (Option<i64>, Option<i64>) {
        let (mut low, mut high): (Option<i64>, Option<i64>) = (None, None);
        let mut raise = |to: Option<i64>| low = low.max(to);
        if let Some(least) = self.at_least.get(&a).filter(|l| l.base == b) {
            raise(Some(least.offset));
        }
        let mut lower = |to: Option<i64>| high = high.into_iter().chain(to).min();
        if let Some(least) = self.at_least.get(&b).filter(|l| l.base == a) {
            lower(least.offset.checked_neg());
        }
        for l in path {
            match (&self.nodes[l.condition as usize], l.holds) {
                // a + n <= x < b + m
                (Node::Less(x, y, m), true) if *y == b && self.at_least.get(x).is_some_and(|n| n.base == a) => {
                    let n = self.at_least[x].offset;
                    lower(m.checked_sub(1).and_then(|m| m.checked_sub(n)));
                }
                // a < b + m
                (Node::Less(x, y, m), true) if (*x, *y) == (a, b) => lower(m.checked_sub(1)),
                (Node::Less(x, y, m), false) if (*x, *y) == (a, b) => raise(Some(*m)),
                // b < a + m
                (Node::Less(x, y, m), true) if (*x, *y) == (b, a) => {
                    raise(m.checked_neg().and_then(|m| m.checked_add(1)))
                }
                (Node::Less(x, y, m), false) if (*x, *y) == (b, a) => lower(m.checked_neg()),
                (Node::Equal(x, y, m), true) if (*x, *y) == (a, b) => {
                    raise(Some(*m));
                    lower(Some(*m));
                }
                (Node::Equal(x, y, m), true) if (*x, *y) == (b, a) => {
                    raise(m.checked_neg());
                    lower(m.checked_neg());
                }
                _ => {}
            }
        }
        (low, high)
    }

    /// What follows from a condition that turned out so.
    pub(super) fn assume(&self, condition: SymbolicOffset, holds: bool, out: &mut Vec<Literal>) {
        if condition.base == 0 {
            return;
        }
        match (&self.nodes[condition.base as usize], holds) {
            (Node::Not(a), _) => self.assume(*a, !holds, out),
            (Node::And(a, b), true) | (Node::Or(a, b), false) => {
                self.assume(*a, holds, out);
                self.assume(*b, holds, out);
            }
            _ => out.push(Literal { condition: condition.base, holds }),
        }
    }

    /// The one condition that tells two branches apart.
    pub(super) fn literal(&self, condition: SymbolicOffset, holds: bool) -> Option<Literal> {
        match self.nodes[condition.base as usize] {
            Node::Zero => None,
            Node::Not(a) => self.literal(a, !holds),
            _ => Some(Literal { condition: condition.base, holds }),
        }
    }

    /// Cannot be true where `path` holds.
    pub(super) fn contradicts(&self, l: Literal, path: &[Literal]) -> bool {
        self.decide_node(l.condition, path) == Some(!l.holds)
    }
}

pub(super) fn index_binary(op: BinOp, a: SymbolicOffset, b: SymbolicOffset) -> Option<SymbolicOffset> {
    match (op, a.constant(), b.constant()) {
        (BinOp::Add, _, Some(n)) => a.plus(n),
        (BinOp::Add, Some(n), _) => b.plus(n),
        (BinOp::Sub, _, Some(n)) => a.plus(n.checked_neg()?),
        (BinOp::Sub, ..) if a.base == b.base => Some(SymbolicOffset::known(a.offset.checked_sub(b.offset)?)),
        (BinOp::Mul, Some(x), Some(y)) => Some(SymbolicOffset::known(x.checked_mul(y)?)),
        (BinOp::Mul, Some(0), _) | (BinOp::Mul, _, Some(0)) => Some(SymbolicOffset::known(0)),
        (BinOp::Mul, Some(1), _) => Some(b),
        (BinOp::Mul, _, Some(1)) => Some(a),
        (BinOp::Min, Some(x), Some(y)) => Some(SymbolicOffset::known(x.min(y))),
        (BinOp::Max, Some(x), Some(y)) => Some(SymbolicOffset::known(x.max(y))),
        (BinOp::Min | BinOp::Max, ..) if a == b => Some(a),
        (BinOp::Min, ..) if a.base == b.base => Some(a.min(b)),
        (BinOp::Max, ..) if a.base == b.base => Some(a.max(b)),
        // Floors, as the language does; what it says for 0 and below is left open.
        (BinOp::Div, Some(x), Some(y)) if y > 0 => Some(SymbolicOffset::known(x.div_euclid(y))),
        (BinOp::Rem, Some(x), Some(y)) if y > 0 => Some(SymbolicOffset::known(x.rem_euclid(y))),
        _ => None,
    }
}
