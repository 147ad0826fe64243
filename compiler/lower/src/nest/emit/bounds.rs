//! Guards as bounds of loops, and what is written outside of them.

use super::{Clip, Elem, LevelState, NestEmitter};
use crate::code::FunctionBuilder;
use crate::nest::Stored;
use ptoc_ir::loops::{BinOp, CmpOp, Reg};

impl NestEmitter<'_> {
    pub(super) fn clip_of(&mut self, a: usize, state: &LevelState) -> Clip {
        match state.clips[a] {
            Some(clip) => clip,
            None => self.clip(a, state),
        }
    }

    /// The bounds of axis `a`.
    pub(super) fn clip(&mut self, a: usize, state: &LevelState) -> Clip {
        let nest = self.nest;
        let mut range = (self.code.int(0), nest.axes[a].extent);
        let mut all = range;
        for real in [false, true] {
            for g in nest.guards.iter().filter(|g| g.real == real) {
                if self.innermost(g.at) == Some(a) {
                    let (lo, hi) =
                        self.bounds_of(nest.forms[g.at].steps[a], state.at[g.at], g.bound, nest.axes[a].extent);
                    range.0 = lo.map_or(range.0, |lo| self.code.bin(BinOp::Max, range.0, lo));
                    range.1 = hi.map_or(range.1, |hi| self.code.bin(BinOp::Min, range.1, hi));
                }
            }
            if !real {
                all = range;
            }
        }
        if self.fill.is_some() && range != all {
            // What is kept is a part of what exists, also where it is nothing.
            range.0 = self.code.bin(BinOp::Min, range.0, all.1);
            range.1 = self.code.bin(BinOp::Max, range.1, range.0);
        }
        Clip { all, kept: range }
    }

    /// The `x` with `partial + x * step < bound`, among `0..extent`: first and one past the last.
    fn bounds_of(&mut self, step: Reg, partial: Reg, bound: Reg, extent: Reg) -> (Option<Reg>, Option<Reg>) {
        let code = &mut *self.code;
        let room = code.bin(BinOp::Sub, bound, partial);
        let zero = code.int(0);
        let upper = |code: &mut FunctionBuilder, step: Reg| {
            let less = code.plus(step, -1);
            let sum = code.add(room, less);
            code.bin(BinOp::DivFloor, sum, step)
        };
        let lower = |code: &mut FunctionBuilder, step: Reg| {
            let (room, step) = (code.bin(BinOp::Sub, zero, room), code.bin(BinOp::Sub, zero, step));
            let below = code.bin(BinOp::DivFloor, room, step);
            code.plus(below, 1)
        };
        match code.known(step) {
            Some(1) => (None, Some(room)),
            Some(t) if t > 0 => (None, Some(upper(code, step))),
            Some(t) if t < 0 => (Some(lower(code, step)), None),
            _ => {
                // Its sign is known only now.
                let (lo, hi) = (lower(code, step), upper(code, step));
                let (forwards, backwards) = (code.cmp(CmpOp::Gt, step, zero), code.cmp(CmpOp::Lt, step, zero));
                let holds = code.cmp(CmpOp::Gt, room, zero);
                let still = code.select(holds, extent, zero);
                let hi = code.select(forwards, hi, still);
                (Some(code.select(backwards, lo, zero)), Some(code.select(backwards, extent, hi)))
            }
        }
    }

    pub(super) fn fill_range(&mut self, l: usize, range: (Reg, Reg), state: &LevelState) {
        if range.0 == range.1 {
            return;
        }
        if l + 1 == self.nest.axes.len() && self.lanes {
            return self.fill_lanes(l, range, state);
        }
        self.each(l, range, state, &mut |this, state| this.fill_level(l + 1, state));
    }

    /// Fills everything that exists from level `l` on.
    pub(super) fn fill_level(&mut self, l: usize, mut state: LevelState) {
        let Some((value, ty)) = self.fill else { return };
        if state.places[0].is_none() && self.settles[0] <= l {
            state.places[0] = Some(self.settle(&self.sides[0], &state));
        }
        if l == self.nest.axes.len() {
            let elem = self.elems(&state, None)[0];
            return Elem { stored: Stored::Whole(ty), ..elem }.store(self.code, value);
        }
        let range = self.clip_of(l, &state).all;
        self.fill_range(l, range, &state);
    }

    fn fill_lanes(&mut self, l: usize, range: (Reg, Reg), state: &LevelState) {
        let Some((value, ty)) = self.fill else { return };
        self.in_lanes(l, range, state, 1, &mut |code, elems| {
            Elem { stored: Stored::Whole(ty), ..elems[0] }.store(code, value);
        });
    }
}
