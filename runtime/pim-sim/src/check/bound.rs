//! What bound a run: the critical path of a command trace.
//!
//! From the last RD or WR of a channel the path goes backwards. A command that was issued when its last demand ended
//! waited for the command that made the demand; the ticks between the two are the rule's. A command that was issued
//! later waited for nothing that the device asks: the ticks until its demand ended, or until the command that the
//! controller issued before it, are the controller's (no request was there, or its order or policy held it back). So
//! every tick from 0 to the end of the last burst is counted once, by cause. Of the ticks after a column command as
//! many as its burst are the data's.

use super::rule::Cause;
use super::track::Tracker;
use crate::dram::{Config, Issued};

/// Ticks of a channel's critical path by cause; they add up to the ticks until the end of the last burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Bound {
    ticks: [u64; Cause::ALL.len()],
}

impl Bound {
    /// Ticks for which this was the cause.
    pub fn ticks(&self, cause: Cause) -> u64 {
        self.ticks[cause as usize]
    }

    /// All ticks.
    pub fn total(&self) -> u64 {
        self.ticks.iter().sum()
    }

    /// What bound the run: the data bus if it took nine tenths of the time, or else what took most of the rest.
    pub fn dominant(&self) -> Cause {
        if u128::from(self.ticks(Cause::Data)) * 10 >= u128::from(self.total()) * 9 {
            return Cause::Data;
        }
        // The first of the largest.
        let stalls = Cause::ALL.into_iter().filter(|&c| c != Cause::Data);
        stalls.rev().max_by_key(|&c| self.ticks(c)).unwrap_or(Cause::Data)
    }

    /// Adds another channel's.
    pub fn add(&mut self, other: &Bound) {
        for (a, b) in self.ticks.iter_mut().zip(other.ticks) {
            *a = a.saturating_add(b);
        }
    }

    fn charge(&mut self, cause: Cause, from: i64, to: i64) {
        self.ticks[cause as usize] += u64::try_from(to - from).unwrap_or(0);
    }
}

/// What one command waited for last.
#[derive(Clone, Copy)]
struct Waited {
    cause: Cause,
    first: usize,
    /// When it could have been issued.
    ready: i64,
}

/// Follows the critical path of a channel.
pub fn attribute(config: &Config, trace: &[Issued]) -> Bound {
    let mut order: Vec<usize> = (0..trace.len()).collect();
    order.sort_by_key(|&n| trace[n].tick);
    let mut tracker = Tracker::new(config, false);
    // By position in `order`; a demand's command is found by `position`.
    let mut waited: Vec<Option<Waited>> = vec![None; trace.len()];
    let mut position = vec![0usize; trace.len()];
    let mut last = None;
    for (at, &n) in order.iter().enumerate() {
        let c = &trace[n];
        position[n] = at;
        if !tracker.is_place(c.command, &c.address) {
            continue;
        }
        // Of two that end together the earlier in the list is the more particular one.
        waited[at] = tracker.demands(c).iter().rev().max_by_key(|d| d.tick).map(|d| Waited {
            cause: d.rule.cause(),
            first: d.first,
            ready: d.tick,
        });
        tracker.apply(c, n);
        if c.command.is_column() {
            last = Some(at);
        }
    }
    let mut bound = Bound::default();
    let burst = i64::from(config.timing.bl) * i64::from(config.tick_multiplier);
    let tick = |at: usize| trace[order[at]].tick.min(1 << 62) as i64;
    let Some(mut at) = last else { return bound };
    bound.charge(Cause::Data, 0, burst);
    loop {
        let now = tick(at);
        let before = at.checked_sub(1).map(|before| (tick(before), before));
        match (waited[at], before) {
            (Some(w), before) if w.ready >= now || before.is_none_or(|(tick, _)| w.ready > tick) => {
                let ready = w.ready.min(now);
                bound.charge(Cause::Controller, ready, now);
                let from = (trace[w.first].tick.min(1 << 62) as i64).min(ready);
                let data = if trace[w.first].command.is_column() { (from + burst).min(ready) } else { from };
                bound.charge(Cause::Data, from, data);
                bound.charge(w.cause, data, ready);
                at = position[w.first];
            }
            (_, Some((tick, before))) => {
                bound.charge(Cause::Controller, tick, now);
                at = before;
            }
            (_, None) => {
                bound.charge(Cause::Controller, 0, now);
                return bound;
            }
        }
    }
}
