//! Loops whose iterations write for later ones: loads ahead of their use, buffers in turn.
//!
//! As many iterations as buffers take turns stand for all: the first of them has the index `s`, a symbol of which the
//! remainder is known, and so the buffers of each are known. What is known at their end is said in terms of the `s` of
//! the next ones, and joined with what was known before, until nothing new comes. Before the loop, it is known in
//! numbers: what an entry says of `s` is what another one says of the first iteration, if it is the same for that one.

use super::contents::{Entry, Meeting, Set};
use super::control::ENOUGH;
use super::numbers::{Literal, SymbolicOffset};
use super::shift::Instead;
use super::states::{ByteState, agreed, replace};
use super::touches::touches;
use super::walk::ByteInterpreter;
use ptoc_ir::analysis::lcm;
use ptoc_ir::tile::{For, Op, Stmt, Value, Var, While};
use ptoc_isa::{BinOp, CmpOp};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Iterations that are looked at together, for the sake of arrays whose elements take turns.
const PERIOD: i64 = 12;
/// For the sake of remainders of the index.
const TURN: i64 = 64;
/// Statements that such a turn may have.
const TURN_SIZE: i64 = 1024;
/// Rounds until nothing new comes; after more, nothing is related.
const ROUNDS: usize = 8;
/// In the first of them, what is known before the loop is said in terms of the index.
const GENERAL: usize = 2;

const INDEX: ptoc_ir::tile::Ty = ptoc_ir::tile::Ty::Index;

/// The index of the first of the iterations.
struct Clock {
    symbol: SymbolicOffset,
    first: SymbolicOffset,
    period: i64,
}

impl<'k> ByteInterpreter<'k> {
    /// The iterations from `first` on. `Some(None)` if that does not succeed.
    pub(super) fn related_for(
        &mut self,
        f: &'k For,
        first: SymbolicOffset,
        hi: SymbolicOffset,
        head: &ByteState,
    ) -> Option<Option<Option<ByteState>>> {
        if !self.relational || self.visits > ENOUGH {
            return Some(None);
        }
        let period = self.period(&[&f.body]);
        let before = self.numbers.now();
        let clock = Clock { symbol: self.numbers.symbol_every(first, period, Some(hi)), first, period };
        let runs = self.numbers.compare(INDEX, CmpOp::Lt, clock.symbol, hi);
        let known = self.assume(runs, true);
        let round = |this: &mut Self, head: ByteState| -> Option<(Option<ByteState>, Option<ByteState>)> {
            let then = this.numbers.now();
            let (mut now, mut out) = (Some(head), None);
            for r in 0..period {
                let (Some(state), Some(index)) = (now.take(), clock.symbol.plus(r)) else { break };
                let runs = this.numbers.compare(INDEX, CmpOp::Lt, index, hi);
                let end = this.iteration(f, index, runs, state)?;
                let end = this.forget(end, then);
                let (mut stop, mut go) = (Vec::new(), Vec::new());
                if let Some(next) = index.plus(1) {
                    let again = this.numbers.compare(INDEX, CmpOp::Lt, next, hi);
                    (stop, go) = (this.assume(again, false), this.assume(again, true));
                }
                let stopped = end.clone().map(|s| this.filter(s, &stop));
                out = this.join(out, stopped, Meeting::Plain);
                now = end.map(|s| this.filter(s, &go));
            }
            Some((out, now.map(|s| this.next(s, &clock, &known))))
        };
        let Some(head) = self.settle(&clock, head.clone(), &mut |this, head| Some(round(this, head)?.1))? else {
            return Some(None);
        };
        let (out, _) = round(self, head)?;
        Some(Some(self.forget(out, before)))
    }

    /// The iterations of a `while` from here on, with a variable that counts them; what leaves the loop is among its
    /// breaks. `Some(false)` if that does not succeed.
    pub(super) fn related_while(&mut self, w: &'k While, head: &ByteState) -> Option<bool> {
        if !self.relational || self.visits > ENOUGH {
            return Some(false);
        }
        let period = self.period(&[&w.head, &w.body]);
        let rounds = |this: &mut Self, head: ByteState| -> Option<(Option<ByteState>, Vec<Literal>)> {
            let then = this.numbers.now();
            let (mut now, mut known) = (Some(head), Vec::new());
            for _ in 0..period {
                let Some(state) = now.take() else { break };
                let (end, decided) = this.round(w, state)?;
                now = this.forget(end, then);
                known.clear();
                if decided.is_none() {
                    let condition = this.numbers.get(w.cond);
                    known.extend(
                        this.assume(condition, true).into_iter().filter(|l| !this.numbers.literal_younger(*l, then)),
                    );
                }
            }
            Some((now, known))
        };
        self.quiet += 1;
        let trial = rounds(self, head.clone());
        self.quiet -= 1;
        let Some(end) = trial?.0 else { return Some(false) };
        let counts = |(var, n): (&Var, &SymbolicOffset)| {
            let first = n.constant()?;
            (end.vars.get(var)?.constant()? == first.checked_add(period)?).then_some((*var, *n))
        };
        let Some((var, first)) = head.vars.iter().filter_map(counts).min_by_key(|(var, _)| *var) else {
            return Some(false);
        };
        let clock = Clock { symbol: self.numbers.symbol_every(first, period, None), first, period };
        let mut start = head.clone();
        start.vars.insert(var, clock.symbol);
        let mut back = |this: &mut Self, head: ByteState| -> Option<Option<ByteState>> {
            let (end, known) = rounds(this, head)?;
            let with = clock.back();
            let known: Vec<Literal> =
                known.into_iter().filter_map(|l| this.numbers.literal_instead(l, with, &[]).ok().flatten()).collect();
            Some(end.map(|s| this.next(s, &clock, &known)))
        };
        let Some(head) = self.settle(&clock, start, &mut back)? else { return Some(false) };
        // All that is noted is noted now.
        back(self, head)?;
        Some(true)
    }

    /// A state that holds before each round. `Some(None)` if none is found.
    fn settle(
        &mut self,
        clock: &Clock,
        mut head: ByteState,
        back: &mut dyn FnMut(&mut Self, ByteState) -> Option<Option<ByteState>>,
    ) -> Option<Option<ByteState>> {
        for round in 0..ROUNDS {
            self.quiet += 1;
            let end = back(self, head.clone());
            self.quiet -= 1;
            let Some(end) = end? else { return Some(Some(head)) };
            let next = match round {
                ..GENERAL => self.generalised(clock, &head, end),
                _ => self.join(Some(head.clone()), Some(end), Meeting::Plain)?,
            };
            if next == head {
                return Some(Some(head));
            }
            head = next;
        }
        Some(None)
    }

    /// How many iterations a turn of the buffers takes, and of rows that are numbered by remainders.
    fn period(&mut self, regions: &[&[Stmt]]) -> i64 {
        let (mut counts, mut turns, mut size) = (Vec::new(), Vec::new(), 1i64);
        for region in regions {
            self.counts(region, &mut counts);
            self.turns(region, &mut FxHashMap::default(), &mut turns);
            size = size.saturating_add(self.size(region));
        }
        let mut period = 1;
        for (mut all, most) in [(counts, PERIOD), (turns, TURN.min(TURN_SIZE / size))] {
            all.sort_unstable();
            all.dedup();
            for n in all {
                if let Some(both) = lcm(period, n).filter(|both| *both <= most) {
                    period = both;
                }
            }
        }
        period
    }

    /// The iterations after which remainders come again: of `r % 16` 16, of `r / 4 % 16` 64. `quotients` are the values
    /// that were divided, and by what.
    fn turns(&mut self, region: &[Stmt], quotients: &mut FxHashMap<Value, i64>, out: &mut Vec<i64>) {
        for stmt in region {
            if let Op::Binary { dst, op: op @ (BinOp::Div | BinOp::Rem), a, b } = stmt.op
                && let Some(by) = self.numbers.get(b).constant().filter(|n| (2..=TURN).contains(n))
            {
                let turn = quotients.get(&a).map_or(by, |n| n.saturating_mul(by));
                match op {
                    BinOp::Div => drop(quotients.insert(dst, turn)),
                    _ => out.extend(Some(turn).filter(|n| *n <= TURN)),
                }
            }
            for region in stmt.op.regions() {
                self.turns(region, quotients, out);
            }
        }
    }

    fn counts(&self, region: &[Stmt], out: &mut Vec<i64>) {
        for stmt in region {
            let arrays =
                touches(self.kernel, &self.constants, stmt).into_iter().filter(|(_, r, _)| r.element.is_some());
            out.extend(
                arrays.map(|(_, r, _)| i64::from(self.kernel.tiles[r.tile].count.max(1))).filter(|n| *n <= PERIOD),
            );
            stmt.op.regions().for_each(|r| self.counts(r, out));
        }
    }

    /// What holds at the end of the iterations, in terms of the next ones, of which `known` holds.
    fn next(&mut self, mut state: ByteState, clock: &Clock, known: &[Literal]) -> ByteState {
        let path: Vec<Literal> = self.path.iter().chain(known).copied().collect();
        self.map_entries(&mut state, clock.back(), &path);
        let numbers = &mut self.numbers;
        let with = clock.back();
        let mut number = |n: &mut SymbolicOffset| match numbers.instead(*n, with) {
            Some(new) => {
                *n = numbers.resolve(new, &path);
                true
            }
            None => false,
        };
        state.vars.retain(|_, n| number(n));
        state.bound.retain(|_, n| number(n));
        state
    }

    fn map_entries(&mut self, state: &mut ByteState, with: Instead, path: &[Literal]) {
        let mut known: FxHashMap<Set, Set> = FxHashMap::default();
        let work = replace(&mut state.storages, &mut |set| {
            *known.entry(set).or_insert_with(|| self.set_instead(set, with, path, false))
        });
        self.work += work;
    }

    /// With another number for the symbol. What cannot be said then is left out: if `exact` the entry, otherwise only
    /// what it knew.
    fn set_instead(&mut self, set: Set, with: Instead, path: &[Literal], exact: bool) -> Set {
        let ByteInterpreter { sets, numbers, keys, .. } = self;
        sets.rewrite(set, &mut |e| {
            let mut new = e.clone();
            new.literals.clear();
            for l in &e.literals {
                if exact && !numbers.says(*l, with) {
                    return None;
                }
                new.literals.extend(numbers.literal_instead(*l, with, path).ok()?);
            }
            new.literals.sort_unstable();
            new.literals.dedup();
            // In other iterations it is another window.
            new.inside = None;
            new.shadows.clear();
            for key in &e.shadows {
                let mut said = true;
                let key = keys.rewrite(*key, &mut |n| {
                    let other = numbers.instead(n, with);
                    said &= other.is_some();
                    other.unwrap_or(n)
                });
                if exact && !said {
                    return None;
                }
                new.shadows.extend(said.then_some(key));
            }
            new.shadows.sort_unstable();
            new.shadows.dedup();
            Some(new)
        })
    }

    /// Both; an entry of `head` that one of `end` says of the first iteration is that one.
    fn generalised(&mut self, clock: &Clock, head: &ByteState, end: ByteState) -> ByteState {
        let with = Instead { symbol: clock.symbol, to: clock.first };
        let mut memo: FxHashMap<(Set, Set), Set> = FxHashMap::default();
        let mut storages = Vec::with_capacity(head.storages.len());
        for (x, y) in head.storages.iter().zip(&end.storages) {
            storages.push(match Rc::ptr_eq(x, y) {
                true => x.clone(),
                false => Rc::new(x.zip(y, &mut |p, q| {
                    if p == q {
                        return p;
                    }
                    *memo.entry((p, q)).or_insert_with(|| {
                        let at_first = self.set_instead(q, with, &[], true);
                        let covered: Vec<Entry> = self.sets.get(at_first).to_vec();
                        self.sets.generalised(p, q, &covered)
                    })
                })),
            });
        }
        let mut vars = FxHashMap::default();
        for (var, &n) in &head.vars {
            let Some(&m) = end.vars.get(var) else { continue };
            let counted = || {
                let (a, b, first) = (n.constant()?, m.constant()?, clock.first.constant()?);
                (b == a.checked_add(clock.period)?).then_some(())?;
                clock.symbol.plus(a.checked_sub(first)?)
            };
            if n == m || self.numbers.instead(m, with) == Some(n) {
                vars.insert(*var, m);
            } else if let Some(counted) = counted() {
                vars.insert(*var, counted);
            }
        }
        ByteState { storages, bound: agreed(head.bound.clone(), &end.bound), vars }
    }

    /// Variables after a branch.
    pub(super) fn either(
        &mut self,
        l: Literal,
        a: FxHashMap<Var, SymbolicOffset>,
        b: &FxHashMap<Var, SymbolicOffset>,
    ) -> FxHashMap<Var, SymbolicOffset> {
        const CHOICES: usize = 4;
        let mut out = FxHashMap::default();
        let condition = SymbolicOffset { base: l.condition, offset: 0 };
        for (var, x) in a {
            let Some(&y) = b.get(&var) else { continue };
            let (x, y) = (self.numbers.resolve(x, &self.path), self.numbers.resolve(y, &self.path));
            if x == y {
                out.insert(var, x);
            } else if self.numbers.depth(x).max(self.numbers.depth(y)) < CHOICES {
                let (x, y) = if l.holds { (x, y) } else { (y, x) };
                out.insert(var, self.numbers.select(condition, x, y));
            }
        }
        out
    }
}

impl Clock {
    /// From these iterations to the next ones.
    fn back(&self) -> Instead {
        Instead { symbol: self.symbol, to: self.symbol.plus(-self.period).unwrap_or(self.symbol) }
    }
}
