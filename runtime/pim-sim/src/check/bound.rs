//! What bound a run: where the time between column commands went, read from the trace.
//!
//! The interval between two successive RD or WR of a pseudo-channel is followed backwards from the later one: what it
//! waited for last (the demand with the latest tick) and since when, then what that command waited for, until the
//! earlier column command is reached. Ticks in which a command could have been issued and was not are the controller's:
//! there was no request, or its order or policy held it back. The first burst length of each interval is the data's.

use super::rule::Cause;
use super::track::Tracker;
use crate::dram::{Config, Issued};

/// Ticks of one pseudo-channel by cause; they add up to the ticks until the end of the last burst.
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

    /// What took most ticks.
    pub fn dominant(&self) -> Cause {
        let mut most = Cause::Data;
        for cause in Cause::ALL {
            if self.ticks(cause) > self.ticks(most) {
                most = cause;
            }
        }
        most
    }

    /// Adds another pseudo-channel's.
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

/// Attributes the ticks of each pseudo-channel of a channel, from tick 0 to the end of its last burst.
pub fn attribute(config: &Config, trace: &[Issued]) -> Vec<Bound> {
    let mut order: Vec<usize> = (0..trace.len()).collect();
    order.sort_by_key(|&n| trace[n].tick);
    let mut tracker = Tracker::new(config, false);
    let mut waited: Vec<Option<Waited>> = vec![None; trace.len()];
    let burst = i64::from(config.timing.bl) * i64::from(config.tick_multiplier);
    let mut bounds = vec![Bound::default(); config.org.pseudochannel as usize];
    let mut last = vec![None::<i64>; bounds.len()];
    let tick_of = |n: usize| trace[n].tick.min(1 << 62) as i64;
    for &n in &order {
        let c = &trace[n];
        if !tracker.is_place(c.command, &c.address) {
            continue;
        }
        // Of two that end together the earlier in the list is the more particular one.
        waited[n] = tracker.demands(c).iter().rev().max_by_key(|d| d.tick).map(|d| Waited {
            cause: d.rule.cause(),
            first: d.first,
            ready: d.tick,
        });
        tracker.apply(c, n);
        if !c.command.is_column() {
            continue;
        }
        let pc = usize::from(c.address.pc);
        let bound = &mut bounds[pc];
        let now = tick_of(n);
        let begin = match last[pc] {
            Some(tick) => {
                let begin = (tick + burst).min(now);
                bound.charge(Cause::Data, tick, begin);
                begin
            }
            None => 0,
        };
        last[pc] = Some(now);
        let (mut at, mut number) = (now, n);
        while at > begin {
            let Some(w) = waited[number] else {
                bound.charge(Cause::Controller, begin, at);
                break;
            };
            let ready = w.ready.clamp(begin, at);
            bound.charge(Cause::Controller, ready, at);
            let from = tick_of(w.first).clamp(begin, ready);
            bound.charge(w.cause, from, ready);
            (at, number) = (from, w.first);
        }
    }
    for (bound, last) in bounds.iter_mut().zip(last) {
        if last.is_some() {
            bound.charge(Cause::Data, 0, burst);
        }
    }
    bounds
}
