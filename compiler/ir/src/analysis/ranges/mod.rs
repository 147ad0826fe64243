//! Ranges of mutable scalars. Elaboration goes through a kernel once, and at the beginning of a loop does not know yet
//! what its end does to a variable. So an index like `slot`, with `slot += 1; if slot == 3 { slot = 0; flip = 1 - flip;
//! }`, gets a check. Here the finished kernel is interpreted with intervals for its `index` variables: a loop until
//! nothing changes, bounds that move being widened to the next number with which something is compared. Checks that
//! hold in all of these states are taken out.
//!
//! Only checks that depend on variables are looked at: all else was decided while elaborating, with more than
//! intervals.

mod range;

use crate::tile::{CheckId, For, If, Kernel, Label, Op, Region, Stmt, Ty, Value, Var, While};
use cranelift_entity::SecondaryMap;
use ptoc_isa::{BinOp, UnOp};
use range::Range;
use rustc_hash::{FxHashMap, FxHashSet};

/// Statements that are interpreted; a kernel that takes more keeps its checks.
const FUEL: u32 = 400_000;
/// Operations between a value and what it is compared as.
const DEPTH: u32 = 6;
/// Rounds of a loop before moving bounds are widened.
const ROUNDS: u32 = 3;

/// Takes out the checks that ranges of variables prove; gives their number.
pub fn settle(kernel: &mut Kernel) -> usize {
    settle_from(kernel, CheckId::from_u32(0)).len()
}

/// [`settle`] of the checks from this one on, all of them seen as they depend on each other; gives those that are gone.
pub fn settle_from(kernel: &mut Kernel, first: CheckId) -> Vec<CheckId> {
    let proved = {
        let Some(mut ranges) = Ranges::new(kernel) else { return Vec::new() };
        if ranges.region(&kernel.prologue).is_none() || ranges.region(&kernel.body).is_none() {
            return Vec::new();
        }
        let Ranges { held, failed, .. } = ranges;
        held.into_iter().filter(|c| *c >= first && !failed.contains(c)).collect::<FxHashSet<CheckId>>()
    };
    if !proved.is_empty() {
        without(&mut kernel.body, &proved);
    }
    proved.into_iter().collect()
}

fn without(region: &mut Region, proved: &FxHashSet<CheckId>) {
    region.retain(|s| !matches!(s.op, Op::Check { check, .. } if proved.contains(&check)));
    for stmt in region {
        match &mut stmt.op {
            Op::For(f) => without(&mut f.body, proved),
            Op::If(i) => {
                without(&mut i.then, proved);
                without(&mut i.els, proved);
            }
            Op::While(w) => {
                without(&mut w.head, proved);
                without(&mut w.body, proved);
            }
            Op::Scope(s) => without(&mut s.body, proved),
            _ => {}
        }
    }
}

/// Ranges of variables at one moment.
#[derive(Clone, PartialEq, Debug)]
struct VariableRanges {
    vars: FxHashMap<Var, Range>,
    /// Values that are what a variable is.
    same: FxHashMap<Var, Vec<Value>>,
    /// Control comes here.
    reached: bool,
}

impl VariableRanges {
    fn join(self, other: &VariableRanges) -> VariableRanges {
        if !self.reached {
            return other.clone();
        }
        if !other.reached {
            return self;
        }
        let mut out = self;
        // One that is not known on one side is not known.
        out.vars.retain(|v, _| other.vars.contains_key(v));
        out.vars.iter_mut().for_each(|(v, r)| *r = r.join(other.vars[v]));
        for (v, values) in &mut out.same {
            let theirs = other.same.get(v);
            values.retain(|x| theirs.is_some_and(|t| t.contains(x)));
        }
        out.same.retain(|_, values| !values.is_empty());
        out
    }
}

struct Ranges<'k> {
    kernel: &'k Kernel,
    defs: SecondaryMap<Value, Option<&'k Op>>,
    /// Ranges of values, as they were defined last, and as conditions around have it.
    values: SecondaryMap<Value, Option<Range>>,
    /// What ranges were before something was learned.
    log: Vec<(Value, Option<Range>)>,
    /// Variables that checks depend on.
    vars: FxHashSet<Var>,
    /// Their checks.
    checks: FxHashSet<CheckId>,
    /// What values are compared with, and the numbers beside.
    steps: Vec<i64>,
    now: VariableRanges,
    /// States at `break`, `continue` and `leave`; of a loop `true` means its end.
    exits: Vec<(Label, bool, VariableRanges)>,
    /// Nothing around changes any more.
    settled: bool,
    held: FxHashSet<CheckId>,
    failed: FxHashSet<CheckId>,
    fuel: u32,
}

impl<'k> Ranges<'k> {
    /// `None`: no check depends on a variable.
    fn new(kernel: &'k Kernel) -> Option<Ranges<'k>> {
        let mut all = Vec::new();
        collect(&kernel.prologue, &mut all);
        collect(&kernel.body, &mut all);
        let mut out = Ranges {
            kernel,
            defs: SecondaryMap::new(),
            values: SecondaryMap::new(),
            log: Vec::new(),
            vars: FxHashSet::default(),
            checks: FxHashSet::default(),
            steps: Vec::new(),
            now: VariableRanges { vars: FxHashMap::default(), same: FxHashMap::default(), reached: true },
            exits: Vec::new(),
            settled: true,
            held: FxHashSet::default(),
            failed: FxHashSet::default(),
            fuel: FUEL,
        };
        let mut sets: FxHashMap<Var, Vec<Value>> = FxHashMap::default();
        for &stmt in &all {
            if let Some(v) = stmt.op.def() {
                out.defs[v] = Some(&stmt.op);
            }
            if let Op::Set { var, value } = stmt.op {
                sets.entry(var).or_default().push(value);
            }
        }
        for &stmt in &all {
            if let Op::Check { cond, check, .. } = stmt.op {
                let mut vars = FxHashSet::default();
                out.depends(cond, &sets, &mut vars);
                if !vars.is_empty() {
                    out.checks.insert(check);
                    out.vars.extend(vars);
                }
            }
        }
        if out.checks.is_empty() {
            return None;
        }
        let given = kernel.dims.values().map(|d| d.value).chain(kernel.grid.iter().flat_map(|g| [g.index, g.extent]));
        given.for_each(|v| out.values[v] = Some(Range { lo: 0, hi: i64::MAX }));
        for stmt in all {
            if let Op::Compare { a, b, .. } = stmt.op {
                let numbers = [a, b].into_iter().filter_map(|v| out.constant(v));
                let beside = |n: i64| [n.saturating_sub(1), n, n.saturating_add(1)];
                let numbers: Vec<i64> = numbers.flat_map(beside).collect();
                out.steps.extend(numbers);
            }
        }
        out.steps.extend([0, 1, i64::MIN, i64::MAX]);
        out.steps.sort_unstable();
        out.steps.dedup();
        Some(out)
    }

    /// The `index` and `bool` variables that a value depends on.
    fn depends(&self, v: Value, sets: &FxHashMap<Var, Vec<Value>>, out: &mut FxHashSet<Var>) {
        let (mut open, mut seen) = (vec![v], FxHashSet::default());
        while let Some(v) = open.pop() {
            if !seen.insert(v) {
                continue;
            }
            match self.defs[v] {
                Some(Op::Get { var, .. }) if out.insert(*var) => open.extend(sets.get(var).into_iter().flatten()),
                Some(op) if op.is_pure() => op.for_each_use(&mut |u| open.push(u)),
                _ => {}
            }
        }
    }

    fn constant(&self, v: Value) -> Option<i64> {
        match self.defs[v] {
            Some(Op::Const { value, .. }) if value.ty == Ty::BOOL => Some(value.bits as i64),
            Some(Op::Const { value, .. }) => value.as_index(),
            _ => None,
        }
    }

    // ---- values --------------------------------------------------------------------------------------------------

    /// What a value may be here.
    fn range(&self, v: Value) -> Range {
        self.range_at(v, DEPTH)
    }

    fn range_at(&self, v: Value, depth: u32) -> Range {
        if let Some(n) = self.constant(v) {
            return Range::of(n);
        }
        // A bit that a loop carries has been widened to all numbers.
        let widest = if self.is_bit(v) { Range::BIT } else { Range::ALL };
        let known = self.values[v].unwrap_or(widest).meet(widest);
        let (Some(op), Some(depth)) = (self.defs[v], depth.checked_sub(1)) else { return known };
        // Conditions around say more of what it is computed from than they did where it was.
        known.meet(self.computed(op, depth))
    }

    fn computed(&self, op: &Op, depth: u32) -> Range {
        let get = |v| self.range_at(v, depth);
        match *op {
            Op::Binary { op, a, b, .. } if self.is_index(a) => Range::binary(op, get(a), get(b)),
            Op::Binary { op, a, b, .. } if self.is_bit(a) => {
                let (x, y) = (get(a), get(b));
                match op {
                    BinOp::And => Range { lo: x.lo.min(y.lo), hi: x.hi.min(y.hi) },
                    BinOp::Or => Range { lo: x.lo.max(y.lo), hi: x.hi.max(y.hi) },
                    _ => Range::BIT,
                }
            }
            Op::Unary { op: UnOp::Not, a, .. } if self.is_bit(a) => {
                let x = get(a);
                Range { lo: 1 - x.hi, hi: 1 - x.lo }
            }
            Op::Unary { op: UnOp::Neg, a, .. } if self.is_index(a) => Range::binary(BinOp::Sub, Range::of(0), get(a)),
            Op::Compare { op, a, b, .. } if self.is_index(a) => {
                Range::compare(op, get(a), get(b)).map_or(Range::BIT, |r| Range::of(i64::from(r)))
            }
            Op::Select { cond, a, b, .. } if self.is_index(a) => {
                self.where_it_holds(cond, true, a, depth).join(self.where_it_holds(cond, false, b, depth))
            }
            _ => Range::ALL,
        }
    }

    /// What `v` may be where a comparison of it holds, or does not: `slot + 1 == n ? 0 : slot + 1` stays below `n`.
    fn where_it_holds(&self, cond: Value, holds: bool, v: Value, depth: u32) -> Range {
        let range = self.range_at(v, depth);
        match self.defs[cond] {
            Some(&Op::Compare { op, a, b, .. }) if self.is_index(a) => {
                let op = if holds { op } else { op.opposite() };
                match (v == a, v == b) {
                    (true, _) => range.limited(op, self.range_at(b, depth)),
                    (_, true) => range.limited(op.mirrored(), self.range_at(a, depth)),
                    _ => range,
                }
            }
            _ => range,
        }
    }

    fn is_index(&self, v: Value) -> bool {
        self.kernel.values[v].ty == Ty::Index
    }

    fn is_bit(&self, v: Value) -> bool {
        self.kernel.values[v].ty == Ty::BOOL
    }

    /// The value gets another number.
    fn define(&mut self, v: Value, range: Option<Range>) {
        self.values[v] = range;
        self.now.same.values_mut().for_each(|values| values.retain(|x| *x != v));
    }

    /// From here on the condition holds, or does not.
    fn assume(&mut self, cond: Value, holds: bool, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else { return };
        self.limit(cond, Range::of(i64::from(holds)));
        match self.defs[cond] {
            Some(&Op::Unary { op: UnOp::Not, a, .. }) => self.assume(a, !holds, depth),
            Some(&Op::Binary { op: BinOp::And, a, b, .. }) if holds => {
                self.assume(a, true, depth);
                self.assume(b, true, depth);
            }
            Some(&Op::Binary { op: BinOp::Or, a, b, .. }) if !holds => {
                self.assume(a, false, depth);
                self.assume(b, false, depth);
            }
            Some(&Op::Compare { op, a, b, .. }) if self.is_index(a) => {
                let op = if holds { op } else { op.opposite() };
                let (x, y) = (self.range(a), self.range(b));
                self.limit_through(a, x.limited(op, y), depth);
                self.limit_through(b, y.limited(op.mirrored(), x), depth);
            }
            _ => {}
        }
    }

    /// Limits a value and what it is a sum of with a constant.
    fn limit_through(&mut self, v: Value, range: Range, depth: u32) {
        self.limit(v, range);
        let Some(depth) = depth.checked_sub(1) else { return };
        if let Some(&Op::Binary { op: op @ (BinOp::Add | BinOp::Sub), a, b, .. }) = self.defs[v] {
            let (x, k) = match (self.constant(a), self.constant(b)) {
                (_, Some(k)) => (a, k),
                (Some(k), _) if op == BinOp::Add => (b, k),
                _ => return,
            };
            let back = if op == BinOp::Add { BinOp::Sub } else { BinOp::Add };
            self.limit_through(x, Range::binary(back, range, Range::of(k)), depth);
        }
    }

    /// Limits a value, and the variables that hold it.
    fn limit(&mut self, v: Value, range: Range) {
        let range = self.range(v).meet(range);
        self.log.push((v, self.values[v]));
        self.values[v] = Some(range);
        for (var, values) in &self.now.same {
            if values.contains(&v)
                && let Some(of) = self.now.vars.get_mut(var)
            {
                *of = of.meet(range);
            }
        }
        self.now.reached &= !range.is_empty();
    }

    /// What was learned of values since then holds no more.
    fn forget(&mut self, mark: usize) {
        while self.log.len() > mark {
            if let Some((v, old)) = self.log.pop() {
                self.values[v] = old;
            }
        }
    }

    // ---- statements ----------------------------------------------------------------------------------------------

    /// `None`: it takes too long.
    fn region(&mut self, region: &'k Region) -> Option<()> {
        for stmt in region {
            if !self.now.reached {
                break;
            }
            self.stmt(stmt)?;
        }
        Some(())
    }

    fn stmt(&mut self, stmt: &'k Stmt) -> Option<()> {
        self.fuel = self.fuel.checked_sub(1)?;
        ptoc_diagnostics::work(1);
        match &stmt.op {
            Op::Get { dst, var } if self.vars.contains(var) => {
                let range = self.now.vars.get(var).copied();
                self.define(*dst, range);
                self.now.same.entry(*var).or_default().push(*dst);
            }
            Op::Set { var, value } if self.vars.contains(var) => {
                let range = self.range(*value);
                self.now.vars.insert(*var, range);
                self.now.same.insert(*var, vec![*value]);
            }
            Op::Check { cond, check, .. } => {
                if self.settled && self.checks.contains(check) {
                    let holds = self.range(*cond) == Range::of(1);
                    if holds {
                        self.held.insert(*check)
                    } else {
                        self.failed.insert(*check)
                    };
                }
                self.assume(*cond, true, DEPTH);
            }
            Op::If(i) => self.branch(i)?,
            Op::For(f) => self.cycle(Cycle::For(f))?,
            Op::While(w) => self.cycle(Cycle::While(w))?,
            Op::Scope(s) => {
                let (exits, log) = (self.exits.len(), self.log.len());
                self.region(&s.body)?;
                self.forget(log);
                self.join_exits(s.label, exits);
            }
            Op::Break(label) | Op::Leave(label) => self.exit(*label, true),
            Op::Continue(label) => self.exit(*label, false),
            op => {
                if let Some(v) = op.def() {
                    let range = op.is_pure().then(|| self.computed(op, DEPTH));
                    self.define(v, range);
                }
            }
        }
        Some(())
    }

    fn exit(&mut self, label: Label, end: bool) {
        self.exits.push((label, end, self.now.clone()));
        self.now.reached = false;
    }

    /// Joins the states with which `label` was left since `mark`.
    fn join_exits(&mut self, label: Label, mark: usize) {
        let all = self.exits.split_off(mark);
        for (to, end, state) in all {
            if to == label {
                let now = std::mem::replace(&mut self.now, state);
                self.now = now.join(&self.now);
            } else {
                self.exits.push((to, end, state));
            }
        }
    }

    fn branch(&mut self, i: &'k If) -> Option<()> {
        let before = self.now.clone();
        let log = self.log.len();
        self.assume(i.cond, true, DEPTH);
        self.region(&i.then)?;
        self.forget(log);
        let then = std::mem::replace(&mut self.now, before);
        self.assume(i.cond, false, DEPTH);
        self.region(&i.els)?;
        self.forget(log);
        let els = std::mem::replace(&mut self.now, then);
        self.now = els.join(&self.now);
        Some(())
    }

    fn cycle(&mut self, cycle: Cycle<'k>) -> Option<()> {
        let label = match cycle {
            Cycle::For(f) => f.label,
            Cycle::While(w) => w.label,
        };
        let (exits, log) = (self.exits.len(), self.log.len());
        let outer = std::mem::replace(&mut self.settled, false);
        let mut head = self.now.clone();
        let mut rounds = 0;
        let end = loop {
            self.exits.truncate(exits);
            self.now = head.clone();
            let end = self.iteration(cycle)?;
            self.forget(log);
            let back = self.exits.iter().skip(exits).filter(|(to, end, _)| *to == label && !end);
            let next = back.fold(self.now.clone(), |next, (.., state)| next.join(state));
            let joined = head.clone().join(&next);
            if joined == head {
                break end;
            }
            rounds += 1;
            head = if rounds > ROUNDS { self.widened(&head, joined) } else { joined };
        };
        self.settled = outer;
        self.now = end;
        if outer {
            self.exits.truncate(exits);
            self.now = head;
            self.now = self.iteration(cycle)?;
            self.forget(log);
        }
        self.exits.retain(|(to, end, _)| *to != label || *end);
        self.join_exits(label, exits);
        Some(())
    }

    /// One iteration from the loop's head; gives the state in which the loop ends there.
    fn iteration(&mut self, cycle: Cycle<'k>) -> Option<VariableRanges> {
        match cycle {
            Cycle::For(f) => {
                let end = self.now.clone();
                let (lo, hi) = (self.range(f.lo).lo, self.range(f.hi).hi.saturating_sub(1));
                self.now.reached &= lo <= hi;
                self.define(f.index, Some(Range { lo, hi }));
                self.region(&f.body)?;
                Some(end)
            }
            Cycle::While(w) => {
                self.region(&w.head)?;
                let (before, log) = (self.now.clone(), self.log.len());
                if before.reached {
                    self.assume(w.cond, false, DEPTH);
                }
                self.forget(log);
                let end = std::mem::replace(&mut self.now, before);
                if self.now.reached {
                    self.assume(w.cond, true, DEPTH);
                    self.region(&w.body)?;
                }
                Some(end)
            }
        }
    }

    /// Bounds that have moved go on to the next number that anything is compared with.
    fn widened(&self, from: &VariableRanges, mut to: VariableRanges) -> VariableRanges {
        for (var, range) in &mut to.vars {
            let Some(old) = from.vars.get(var) else { continue };
            if range.lo < old.lo {
                range.lo = self.steps.iter().rev().copied().find(|s| *s <= range.lo).unwrap_or(i64::MIN);
            }
            if range.hi > old.hi {
                range.hi = self.steps.iter().copied().find(|s| *s >= range.hi).unwrap_or(i64::MAX);
            }
        }
        to
    }
}

#[derive(Clone, Copy)]
enum Cycle<'k> {
    For(&'k For),
    While(&'k While),
}

fn collect<'k>(region: &'k Region, out: &mut Vec<&'k Stmt>) {
    for stmt in region {
        out.push(stmt);
        stmt.op.regions().for_each(|r| collect(r, out));
    }
}
