//! Branches, loops and jumps. A loop of few iterations is walked through; of another one the first iterations are, and
//! then one that stands for all the rest, until nothing new comes of it.

use super::contents::Meeting;
use super::numbers::{Literal, SymbolicOffset};
use super::states::ByteState;
use super::touches::{Constants, touches};
use super::walk::{ByteInterpreter, Target};
use ptoc_ir::tile::{For, If, Kernel, Label, Op, Scope, Stmt, Tile, Value, While, jumps};
use ptoc_placement::access::AccessMode;
use rustc_hash::FxHashMap;

/// Iterations of a loop that are walked through one by one, if these are all of them.
const UNROLLED: i64 = 64;
/// Statements that a longer counted loop may have in all its iterations, to be walked through.
const LONG: i64 = 8192;
/// First iterations that are looked at otherwise.
const PEELED: i64 = 3;
/// More of them as long as they write what was unwritten: the last one that does is followed by at most so many.
const PATIENCE: i64 = 16;
/// Of a loop of which nobody knows how many iterations it has, at most so many; in another loop, which comes back to
/// it, so many.
const PEELED_OF_ANY: i64 = 24;
const PEELED_INSIDE: i64 = 6;
/// Statements after which loops are looked at less closely.
pub(super) const ENOUGH: u32 = 20_000;
/// Rounds of a loop until nothing new comes.
const ROUNDS: u32 = 24;

pub(super) type StateAfter = Option<Option<ByteState>>;

impl<'k> ByteInterpreter<'k> {
    fn target(&mut self, label: Label) {
        self.targets.push(Target { label, breaks: None, continues: None });
    }

    pub(super) fn jump(&mut self, label: Label, state: ByteState, continues: bool) {
        let Some(at) = self.targets.iter().rposition(|t| t.label == label) else { return };
        let slot = |t: &mut Target| if continues { t.continues.take() } else { t.breaks.take() };
        let old = slot(&mut self.targets[at]);
        let joined = self.join(old, Some(state), Meeting::Plain);
        let target = &mut self.targets[at];
        *(if continues { &mut target.continues } else { &mut target.breaks }) = joined;
    }

    pub(super) fn assume(&self, condition: SymbolicOffset, holds: bool) -> Vec<Literal> {
        let mut out = Vec::new();
        self.numbers.assume(condition, holds, &mut out);
        out
    }

    /// `region` where `condition` turned out so.
    fn under(&mut self, condition: SymbolicOffset, holds: bool, region: &'k [Stmt], state: ByteState) -> StateAfter {
        let more = self.assume(condition, holds);
        let state = self.filter(state, &more);
        let depth = self.path.len();
        self.path.extend(more);
        let end = self.region(region, Some(state));
        self.path.truncate(depth);
        end
    }

    pub(super) fn conditional(&mut self, i: &'k If, state: ByteState) -> StateAfter {
        let condition = self.numbers.get(i.cond);
        match self.numbers.decide(condition, &self.path) {
            Some(true) => self.region(&i.then, Some(state)),
            Some(false) => self.region(&i.els, Some(state)),
            None => {
                let before = std::mem::replace(&mut self.unsure, true);
                let then = self.under(condition, true, &i.then, state.clone())?;
                let els = self.under(condition, false, &i.els, state)?;
                self.unsure = before || jumps(&i.then) || jumps(&i.els);
                let how = self.numbers.literal(condition, true).map_or(Meeting::Plain, Meeting::Branch);
                Some(self.join(then, els, how))
            }
        }
    }

    pub(super) fn scope(&mut self, s: &'k Scope, state: ByteState) -> StateAfter {
        let (before, depth) = (self.unsure, self.path.len());
        self.target(s.label);
        let end = self.region(&s.body, Some(state))?;
        self.unsure = before;
        // Who leaves early passes no check behind that.
        self.path.truncate(depth);
        let breaks = self.targets.pop().and_then(|t| t.breaks);
        Some(self.join(end, breaks, Meeting::Plain))
    }

    /// One iteration with the index as given; `continue` comes to its end too.
    pub(super) fn iteration(
        &mut self,
        f: &'k For,
        index: SymbolicOffset,
        runs: SymbolicOffset,
        state: ByteState,
    ) -> StateAfter {
        self.numbers.set(f.index, index);
        let sure = self.unsure;
        let end = self.under(runs, true, &f.body, state)?;
        let continues = self.targets.last_mut().and_then(|t| t.continues.take());
        // Who may have left the loop may not come again.
        self.unsure = sure || self.targets.last().is_some_and(|t| t.breaks.is_some());
        Some(self.join(end, continues, Meeting::Plain))
    }

    pub(super) fn for_loop(&mut self, f: &'k For, state: ByteState) -> StateAfter {
        let (lo, hi) = (self.numbers.get(f.lo), self.numbers.get(f.hi));
        let index_ty = ptoc_ir::tile::Ty::Index;
        let runs = self.numbers.compare(index_ty, ptoc_isa::CmpOp::Lt, lo, hi);
        let certain = self.numbers.decide(runs, &self.path);
        if certain == Some(false) {
            return Some(Some(state));
        }
        let trips = lo.constant().zip(hi.constant()).and_then(|(l, h)| h.checked_sub(l));
        // Blocks of a block: there are as many as the larger one can have, and a later one is no iteration.
        let bound = lo.constant().zip(self.numbers.spread(hi).last).and_then(|(l, h)| h.checked_sub(l));
        let fits = LONG / self.size(&f.body).max(1);
        let (mut peeled, most) = match trips {
            _ if self.visits > ENOUGH => (1, 1),
            Some(n) if n <= UNROLLED || (n <= fits && self.summarised == 0) => (n, n),
            Some(_) => (PEELED, fits),
            None => (PEELED, fits.min(if self.targets.is_empty() { PEELED_OF_ANY } else { PEELED_INSIDE })),
        };
        // What is read where the index is some number is looked at there.
        // Many choices of how a loop ends are no relation.
        let most = if self.relational && trips.is_none() { peeled } else { most };
        if peeled < most {
            let last = self.guard(&f.body, f.index).and_then(|k| k.checked_sub(lo.constant()?)?.checked_add(2));
            peeled = last.filter(|n| *n <= most).unwrap_or(peeled).max(peeled);
        }
        let filled = if peeled < most { self.filled_in_turn(f) } else { Vec::new() };
        let mut open = Some(self.unwritten_of(&filled, &state)).filter(|n| *n > 0);
        let least = peeled;
        let before = self.unsure;
        let skipped = (certain != Some(true)).then(|| state.clone());
        self.target(f.label);
        let then = self.numbers.now();
        let (mut now, mut out, mut known) = (Some(state), None, true);
        let mut n = 0;
        while n < peeled {
            let (Some(state), Some(index)) = (now.take(), lo.plus(n)) else { break };
            // Whether a second iteration comes is the launch's business.
            self.unsure |= n > 0 && trips.is_none();
            let condition = self.numbers.compare(index_ty, ptoc_isa::CmpOp::Lt, index, hi);
            let end = self.iteration(f, index, condition, state)?;
            let end = self.forget(end, then);
            match (trips, index.plus(1)) {
                (Some(trips), _) if n + 1 == trips => {
                    out = end;
                    known = false;
                }
                (Some(_), _) => now = end,
                (None, Some(next)) if bound != Some(n + 1) => {
                    let again = self.numbers.compare(index_ty, ptoc_isa::CmpOp::Lt, next, hi);
                    let (stop, go) = (self.assume(again, false), self.assume(again, true));
                    let stopped = end.clone().map(|s| self.filter(s, &stop));
                    out = self.join(out, stopped, Meeting::Plain);
                    now = end.map(|s| self.filter(s, &go));
                }
                (None, _) => {
                    known = false;
                    out = self.join(out, end, Meeting::Plain);
                }
            }
            n += 1;
            if let (Some(before), Some(now)) = (open, &now) {
                let left = self.unwritten_of(&filled, now);
                open = Some(left).filter(|n| *n > 0);
                if left == 0 {
                    peeled = least.max(n);
                } else if left < before {
                    peeled = peeled.max(n.saturating_add(PATIENCE).min(most));
                }
            }
        }
        let covers;
        if known && let Some(head) = now {
            let rest = self.rest(f, lo.plus(peeled).unwrap_or(lo), hi, head)?;
            covers = self.covers(f);
            out = match trips {
                Some(_) => rest,
                None => self.join(out, rest, Meeting::Plain),
            };
        } else {
            covers = if trips.is_some() { self.parts(f) } else { self.covers(f) };
        }
        self.unsure = before;
        let breaks = self.targets.pop().and_then(|t| t.breaks);
        let breaks = self.forget(breaks, then);
        out = self.join(out, breaks, Meeting::Plain);
        // Where the loop does not run, these are empty.
        let (mut out, mut skipped) = (out, skipped);
        for state in out.iter_mut().chain(&mut skipped) {
            self.apply(&covers, state);
        }
        Some(match skipped {
            None => out,
            Some(skipped) => {
                let literal = self.numbers.literal(runs, true);
                self.join(Some(skipped), out, Meeting::Loop(literal))
            }
        })
    }

    /// The tiles of which it takes iterations to know what they have written: not those that each iteration declares,
    /// of which the next one finds nothing; and not those of which all that is written is known from the bounds
    /// ([`ByteInterpreter::covers`]), if the loop itself reads none of it.
    fn filled_in_turn(&mut self, f: &'k For) -> Vec<Tile> {
        let mut uses = FxHashMap::default();
        uses_in(self.kernel, &self.constants, &f.body, &mut uses);
        uses.retain(|_, u| u.writes > 0 && !u.declared);
        if !uses.is_empty() {
            let mut whole: FxHashMap<Tile, usize> = FxHashMap::default();
            self.windows(f).iter().for_each(|c| *whole.entry(c.tile).or_default() += 1);
            let parts: Vec<Tile> = self.parts(f).iter().map(|c| c.tile).collect();
            uses.retain(|t, u| u.read || whole.get(t) != Some(&u.writes) && !parts.contains(t));
        }
        uses.into_keys().collect()
    }

    /// How many bytes of these tiles may be unwritten.
    fn unwritten_of(&mut self, tiles: &[Tile], state: &ByteState) -> u64 {
        tiles.iter().map(|t| self.unwritten_in(*t, state)).fold(0, u64::saturating_add)
    }

    /// The largest constant that the region compares an index with.
    fn guard(&mut self, region: &[Stmt], index: Value) -> Option<i64> {
        let mut largest = None;
        for stmt in region {
            if let Op::Compare { a, b, .. } = stmt.op {
                let other = if a == index { Some(b) } else { (b == index).then_some(a) };
                largest = largest.max(other.and_then(|v| self.numbers.get(v).constant()));
            }
            for region in stmt.op.regions() {
                largest = largest.max(self.guard(region, index));
            }
        }
        largest
    }

    /// Statements of a region, those of loops as often as they come, as far as that is known.
    pub(super) fn size(&mut self, region: &[Stmt]) -> i64 {
        region.iter().fold(0i64, |sum, stmt| {
            let inner = stmt.op.regions().fold(1i64, |sum, r| sum.saturating_add(self.size(r)));
            let times = match &stmt.op {
                Op::For(f) => {
                    let (lo, hi) = (self.numbers.get(f.lo), self.numbers.get(f.hi));
                    lo.constant().zip(hi.constant()).map_or(UNROLLED, |(l, h)| h.saturating_sub(l).max(1))
                }
                Op::While(_) => UNROLLED,
                _ => 1,
            };
            sum.saturating_add(inner.saturating_mul(times))
        })
    }

    /// All iterations from `first` on, as one. The state where the last one ends.
    fn rest(&mut self, f: &'k For, first: SymbolicOffset, hi: SymbolicOffset, head: ByteState) -> StateAfter {
        self.unsure = true;
        if let Some(out) = self.related_for(f, first, hi, &head)? {
            return Some(out);
        }
        self.summarised += 1;
        self.any_summary = true;
        let out = self.summary(f, first, hi, head)?;
        self.summarised -= 1;
        Some(out)
    }

    fn summary(&mut self, f: &'k For, first: SymbolicOffset, hi: SymbolicOffset, mut head: ByteState) -> StateAfter {
        let round = |this: &mut Self, head: ByteState| -> Option<(Option<ByteState>, Option<ByteState>)> {
            let then = this.numbers.now();
            let index = this.numbers.symbol_in(first, hi);
            let index_ty = ptoc_ir::tile::Ty::Index;
            let runs = this.numbers.compare(index_ty, ptoc_isa::CmpOp::Lt, index, hi);
            let end = this.iteration(f, index, runs, head)?;
            let (mut stop, mut go) = (Vec::new(), Vec::new());
            if let Some(next) = index.plus(1) {
                let again = this.numbers.compare(index_ty, ptoc_isa::CmpOp::Lt, next, hi);
                (stop, go) = (this.assume(again, false), this.assume(again, true));
            }
            let out = end.clone().map(|s| this.filter(s, &stop));
            let back = end.map(|s| this.filter(s, &go));
            let out = this.forget(out, then);
            let back = this.forget(back, then);
            // Breaks of this iteration know its symbols too; they are forgotten where the loop ends.
            Some((out, back))
        };
        self.quiet += 1;
        let mut rounds = 0;
        loop {
            let (_, back) = round(self, head.clone())?;
            let next = self.join(Some(head.clone()), back, Meeting::Plain)?;
            if next == head {
                break;
            }
            head = next;
            rounds += 1;
            if rounds > ROUNDS {
                return None;
            }
        }
        self.quiet -= 1;
        let (out, _) = round(self, head)?;
        Some(out)
    }

    pub(super) fn while_loop(&mut self, w: &'k While, state: ByteState) -> StateAfter {
        let before = self.unsure;
        self.target(w.label);
        let then = self.numbers.now();
        let mut now = Some(state);
        let mut n = 0;
        // As long as the condition is known, iterations are walked through.
        while let Some(head) = now.take() {
            let known = n < UNROLLED && self.visits <= ENOUGH;
            let (end, decided) = self.round(w, head)?;
            now = self.forget(end, then);
            if !known || decided != Some(true) {
                break;
            }
            n += 1;
        }
        if let Some(head) = &now {
            self.unsure = true;
            if self.related_while(w, head)? {
                now = None;
            }
        }
        if let Some(mut head) = now {
            self.quiet += 1;
            let mut rounds = 0;
            loop {
                let (end, _) = self.round(w, head.clone())?;
                let end = self.forget(end, then);
                let next = self.join(Some(head.clone()), end, Meeting::Plain)?;
                if next == head {
                    break;
                }
                head = next;
                rounds += 1;
                if rounds > ROUNDS {
                    return None;
                }
            }
            self.quiet -= 1;
            self.round(w, head)?;
        }
        self.unsure = before;
        let breaks = self.targets.pop().and_then(|t| t.breaks);
        Some(self.forget(breaks, then))
    }

    /// The head and, if the condition may hold, the body of a `while`; where it does not hold, the loop is left.
    pub(super) fn round(&mut self, w: &'k While, state: ByteState) -> Option<(Option<ByteState>, Option<bool>)> {
        let Some(tested) = self.region(&w.head, Some(state))? else { return Some((None, None)) };
        let condition = self.numbers.get(w.cond);
        let decided = self.numbers.decide(condition, &self.path);
        if decided != Some(true) {
            let stop = self.assume(condition, false);
            let stopped = self.filter(tested.clone(), &stop);
            self.jump(w.label, stopped, false);
        }
        if decided == Some(false) {
            return Some((None, decided));
        }
        let sure = self.unsure;
        self.unsure |= decided.is_none();
        let end = self.under(condition, true, &w.body, tested)?;
        self.unsure = sure;
        let continues = self.targets.last_mut().and_then(|t| t.continues.take());
        Some((self.join(end, continues, Meeting::Plain), decided))
    }
}

/// What a region does to a tile.
#[derive(Clone, Copy, Default)]
struct Uses {
    read: bool,
    writes: usize,
    declared: bool,
}

fn uses_in(kernel: &Kernel, constants: &Constants, region: &[Stmt], out: &mut FxHashMap<Tile, Uses>) {
    for stmt in region {
        if let Op::Alloc { tile } = stmt.op {
            out.entry(tile).or_default().declared = true;
        }
        for (access, r, _) in touches(kernel, constants, stmt) {
            let uses = out.entry(r.tile).or_default();
            match access {
                AccessMode::Read => uses.read = true,
                AccessMode::Write => uses.writes += 1,
            }
        }
        stmt.op.regions().for_each(|r| uses_in(kernel, constants, r, out));
    }
}
