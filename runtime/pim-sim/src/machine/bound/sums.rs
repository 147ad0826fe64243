//! Units with one accumulator, which sums go through one after the other: what no order of them can avoid.
//!
//! A sum is begun, its steps come, and the host takes it before the next one begins. So the steps of a pseudo-channel
//! are in a line, and between two of them there is at least: behind the last step of a sum the time until it is there,
//! the turn of the bus, and the beginning of the next sum; between steps of one sum that are in different rows, the
//! change of the row, as what units hold cannot go on later. Rows in which no sum goes on are opened once each, at best
//! while sums change. A sum that begins in another row than those in which sums end opens it, too: sums through several
//! rows cannot go through them the other way, as each addition rounds.

use super::Distances;
use rustc_hash::FxHashMap;

/// What a pseudo-channel has done.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// Ticks between sums, how often, and the most of one.
    between: u64,
    count: u64,
    most: u64,
    /// Changes of the row within a sum.
    changes: u64,
    /// The row of the last step; `None` before the first one of a sum.
    row: Option<u32>,
    /// By rows, the sums that begin there and those that end there.
    ends: FxHashMap<u32, [u64; 2]>,
    /// Steps that the host has not taken, and what it has waited for those that it has.
    steps: bool,
    waited: u64,
    taken: bool,
}

impl Sums {
    /// A step in a row of all banks.
    pub fn step(&mut self, row: u32) {
        match self.row {
            Some(last) => self.changes += u64::from(last != row),
            None => self.ends.entry(row).or_default()[0] += 1,
        }
        (self.row, self.steps) = (Some(row), true);
    }

    /// Units work on sums, so many ticks behind their last step, which takes so many ticks.
    pub fn work(&mut self, behind: u64, ticks: u64) {
        self.take(behind, 0);
        self.waited += ticks;
        self.taken = false;
    }

    /// The host takes sums, so many ticks behind their last step; so many behind others.
    pub fn take(&mut self, ticks: u64, burst: u64) {
        if std::mem::take(&mut self.steps) {
            self.waited += ticks;
        }
        self.waited += if self.taken { burst } else { 0 };
        self.taken = true;
    }

    /// A sum is begun, which takes so many ticks, and so many more where the bus turns; `own` is a step's distance to
    /// the next one, in which all of that may happen.
    pub fn begin(&mut self, (written, turn): (u64, u64), own: u64) {
        if let Some(row) = self.row.take() {
            self.ends.entry(row).or_default()[1] += 1;
            let ticks = std::mem::take(&mut self.waited) + written + if self.taken { turn } else { 0 };
            let ticks = ticks.saturating_sub(own);
            (self.between, self.count, self.most) = (self.between + ticks, self.count + 1, self.most.max(ticks));
        }
        (self.waited, self.taken, self.steps) = (0, false, false);
    }

    /// Whether there are any.
    pub fn any(&self) -> bool {
        self.row.is_some() || self.count > 0
    }

    /// Ticks of the longest change of sums, in which no bank is needed.
    pub fn longest(&self) -> u64 {
        self.most
    }

    /// Ticks of changing sums, and of changing rows, beside the steps: which go to so many rows.
    pub fn bound(&self, d: &Distances, rows: u64) -> (u64, u64) {
        let change = d.change[0].saturating_sub(d.long);
        let kept: u64 = self.ends.values().map(|[begin, end]| begin.min(end)).sum();
        let opened = rows.saturating_sub(1).saturating_sub(self.changes).max(self.count.saturating_sub(kept));
        let opened = opened.min(self.count);
        (self.between, self.changes * change + opened * change.saturating_sub(self.most))
    }

    /// What the host waits for behind the last step.
    pub fn last(&self) -> u64 {
        self.waited
    }
}
