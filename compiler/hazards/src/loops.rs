//! Loops in the walk. The first iterations are walked one by one. Then one state stands for all further ones: its
//! counter is `period * t + offset`, and it is the same again when a period has passed. Of a loop whose length is not
//! known, each iteration may be the last; of one of known length, the last ones are walked one by one again.

use super::code::Loop;
use super::domain::{AffineValue, MAX};
use super::interpreter::{HazardInterpreter, Then};
use super::state::{HazardState, LoopMode, core};
use cranelift_entity::EntityRef;
use ptoc_isa::CmpOp;
use std::rc::Rc;

impl Loop {
    /// The counter of a loop that counts.
    fn counter<'s>(&self, state: &'s mut HazardState) -> &'s mut AffineValue {
        match self.counted.and_then(|c| c.var) {
            Some(var) => &mut state.vars[var.index()],
            None => &mut state.slots[self.slot],
        }
    }
}

impl HazardInterpreter<'_> {
    pub(super) fn enter(&mut self, state: &mut HazardState, l: usize) -> Then {
        let this = &self.code.loops[l];
        if let Some(counted) = this.counted {
            let first = match (counted.lo, counted.var) {
                (Some(lo), _) => state.value(self.code, lo),
                (None, Some(var)) => state.vars[var.index()],
                (None, None) => AffineValue::TOP,
            };
            state.slots[this.slot] = first;
        }
        state.modes[l] = LoopMode::First;
        state.iteration(l, |_| 0);
        Then::On
    }

    pub(super) fn next(&mut self, state: &mut HazardState, l: usize) -> Then {
        // `continue` may come from inside of further loops, which it left on its way.
        let this = &self.code.loops[l];
        if this.counted.is_some_and(|c| c.var.is_none()) {
            state.slots[this.slot] = state.slots[this.slot].plus(1);
        }
        state.iteration(l, |n| n + 1);
        self.age(state, l, false);
        state.step = this.head;
        Then::On
    }

    pub(super) fn head(&mut self, state: &mut HazardState, l: usize) -> Then {
        let this = &self.code.loops[l];
        state.forget(self.code, l);
        let Some(counted) = this.counted else {
            return if self.again(state) { Then::Stop } else { Then::On };
        };
        let (told, period) = (self.code.told, this.period);
        let hi = counted.hi;
        let j = *this.counter(state);
        let start = match counted.lo {
            Some(lo) => state.value(self.code, lo).constant(),
            None => state.slots[this.slot].constant(),
        };
        let length = state.value(self.code, hi).constant();
        if let (LoopMode::First, Some(start), Some(at)) = (state.modes[l], start, j.constant()) {
            let passed = at - start;
            // Worth it only if there is something in between.
            let long = !this.stepwise && length.is_none_or(|n| n - at > 2 * period + told);
            if passed == told {
                state.before.insert(l, Rc::new(state.vars.clone()));
            }
            if passed == told + period && long {
                self.generalise(state, l, start + told, hi, length);
            }
        } else if let (LoopMode::General, Some(start), Some(offset)) = (state.modes[l], start, j.offset())
            && offset == start + told + period
        {
            state.shift(l);
        }
        if self.again(state) {
            return Then::Stop;
        }
        if let (LoopMode::General, Some(n), Some(offset)) = (state.modes[l], length, this.counter(state).offset()) {
            self.spawn_last(state, l, offset, n);
            return Then::On;
        }
        self.iterate(state, l, hi)
    }

    /// From here on one iteration stands for all that are as far into a period; `base` is the first of the first
    /// period.
    fn generalise(
        &mut self,
        state: &mut HazardState,
        l: usize,
        base: i64,
        hi: ptoc_ir::tile::Value,
        length: Option<i64>,
    ) {
        let this = &self.code.loops[l];
        let (told, period) = (self.code.told, this.period);
        state.modes[l] = LoopMode::General;
        *this.counter(state) = AffineValue::moving(l, period, base, base);
        state.periods[l] = match length {
            // The last that still leaves `told` iterations after it.
            Some(n) => (n - told - 1 - base).div_euclid(period).max(1),
            None => MAX,
        };
        if length.is_none() {
            // The bound is as far away as before.
            let (bound, _) = core(self.code, hi);
            let far = state.value(self.code, bound);
            if far.base == 0 && far.constant().is_none() {
                let (lo, hi) = (far.lo, far.hi);
                let moving =
                    AffineValue::moving(l, period, lo.saturating_sub(if lo == i64::MIN { 0 } else { period }), hi);
                if hi == MAX && lo != i64::MIN {
                    // Residues of the bound stay what they are.
                    state.assume(self.code, bound, moving.with_class(far));
                }
            }
        }
        if let Some(before) = state.before.remove(&l) {
            for &var in &self.code.counting {
                let n = var.index();
                if let (Some(was), Some(is)) = (before[n].constant(), state.vars[n].constant())
                    && is != was
                {
                    state.vars[n] = AffineValue::moving(l, is - was, was, was);
                } else if before[n] != state.vars[n] {
                    // It began the loop with a number that is not known, and its residue is what stays.
                    state.vars[n] = state.vars[n].unbounded();
                }
            }
        }
    }

    /// A loop of `n` as its bound: the same iteration, and the one among the last that is as far into a period.
    fn spawn_last(&mut self, state: &HazardState, l: usize, offset: i64, n: i64) {
        let (told, period) = (self.code.told, self.code.loops[l].period);
        let end = n - told - 1;
        let last = end - (end - offset).rem_euclid(period);
        let t = (last - offset) / period;
        if t < 1 {
            return;
        }
        let mut other = state.clone();
        other.pin(l, t);
        other.modes[l] = LoopMode::Last;
        other.periods[l] = MAX;
        let passed = t - 1;
        other.iteration(l, |k| k + passed * period);
        // It was counted as seen where it stands for all.
        if !self.again(&other) {
            self.later(other);
        }
    }

    /// Runs the iteration or ends the loop; both, where that is not known.
    fn iterate(&mut self, state: &mut HazardState, l: usize, hi: ptoc_ir::tile::Value) -> Then {
        let (code, told) = (self.code, self.code.told);
        let leave = code.loops[l].leave;
        let j = *code.loops[l].counter(state);
        let bound = state.value(code, hi);
        let rest = bound.add(j.neg());
        let exact = rest.base == 0 && (j.base == bound.base || (j.base == 0 && bound.base == 0));
        if let Some(n) = rest.constant().filter(|_| exact) {
            if n <= 0 {
                state.step = leave;
            }
            return Then::On;
        }
        let running = AffineValue::compare(CmpOp::Lt, j, bound, &state.periods);
        let Some(_) = j.offset().filter(|_| exact) else {
            // Nothing relates the two, nor this to what is said about them later.
            state.unsure |= state.concrete.is_some();
            if running != Some(true) {
                let mut over = state.clone();
                over.step = leave;
                self.later(over);
            }
            return if running == Some(false) { Then::Stop } else { Then::On };
        };
        if rest.lo >= told {
            return Then::On;
        }
        let (bound_core, c) = core(code, hi);
        let first = state.at[l] == 0;
        let fork = |walk: &mut Self, n: AffineValue, step: usize| {
            let mut other = state.clone();
            other.step = step;
            if other.assume(code, bound_core, n.plus(-c)) {
                walk.later(other);
            }
        };
        if rest.lo <= 0 {
            // Later than in the first iteration it ends where it has come to.
            fork(self, if first { bound.limited(CmpOp::Le, j) } else { j }, leave);
        }
        let body = state.step;
        for r in rest.lo.max(1)..told.min(rest.hi.saturating_add(1)) {
            if AffineValue::compare(CmpOp::Eq, rest, AffineValue::of(r), &state.periods) != Some(false) {
                fork(self, j.plus(r), body);
            }
        }
        let far = AffineValue { lo: j.lo + told, hi: MAX, ..j }.with_class(bound);
        let far = if bound.base == j.base { far.capped(bound) } else { far };
        if state.assume(code, bound_core, far.plus(-c)) { Then::On } else { Then::Stop }
    }
}
