//! A lower bound of a step's time: what its bytes, its rows and its activations take on any schedule.
//!
//! Of the commands of a step on a pseudo-channel count: each RD and WR for the distance that the next one keeps (tCCD_L
//! for commands to many banks, else the burst or tCCD_S); the rows of a bank that are touched, each once and tRC apart,
//! however often they were opened; and as many activations for tFAW and tRRD_S. What a schedule could avoid, such as
//! rows that are opened again, turns of the data bus, fences and modes, counts nothing. The largest of the three, of
//! the pseudo-channel that has most, is the bound. Refreshes of all banks that fall due in that time come on top.

use super::lanes::Rules;
use crate::dram::{Config, Controller, Issued, Refresh};
use rustc_hash::FxHashSet;

/// What a bound is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoundBy {
    /// Column commands: bytes over the column rate.
    Columns,
    /// Rows of one bank, over tRC.
    Rows,
    /// Activations of a pseudo-channel, over tFAW and tRRD_S.
    Activations,
}

impl BoundBy {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            BoundBy::Columns => "columns",
            BoundBy::Rows => "rows",
            BoundBy::Activations => "activations",
        }
    }
}

/// A lower bound of some steps, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerBound {
    /// All of it, refreshes among it.
    pub ticks: u64,
    /// By what made it, without refreshes: columns, rows, activations.
    parts: [u64; 3],
}

impl LowerBound {
    /// What made most of it.
    pub fn by(&self) -> BoundBy {
        let all = [BoundBy::Columns, BoundBy::Rows, BoundBy::Activations];
        // The first of the largest.
        all.into_iter().rev().max_by_key(|by| self.parts[*by as usize]).unwrap_or(BoundBy::Columns)
    }

    /// So many times the bound, if there is one.
    pub fn factor(&self, ticks: u64) -> Option<f64> {
        (self.ticks > 0).then(|| ticks as f64 / self.ticks as f64)
    }

    pub(super) fn add(&mut self, other: &LowerBound) {
        self.ticks += other.ticks;
        self.parts.iter_mut().zip(other.parts).for_each(|(a, b)| *a += b);
    }
}

/// What the current step needs of one pseudo-channel.
#[derive(Clone, Debug, Default)]
struct Needs {
    columns: u64,
    /// Bank, row.
    rows: FxHashSet<(u32, u32)>,
    /// The row that each bank had last: most commands are to that one.
    last: Vec<u32>,
    /// Of them those of commands to many banks.
    wide: u64,
}

/// The needs of the current step on a channel.
#[derive(Clone, Debug)]
pub struct BoundMeter {
    pchs: Vec<Needs>,
    banks_of_group: u32,
    short: u64,
    long: u64,
    row: u64,
    /// From an ACT to its first use at least.
    opening: u64,
    window: u64,
    between: u64,
    refresh: Option<(u64, u64)>,
    act_weight: u32,
    /// The step has a bound.
    counts: bool,
}

impl BoundMeter {
    pub(super) fn new(config: &Config, controller: &Controller) -> BoundMeter {
        let (org, t) = (&config.org, &config.timing);
        let refresh = (controller.refresh == Refresh::AllBank).then(|| (config.ticks(t.refi), config.ticks(t.rfc)));
        BoundMeter {
            pchs: vec![Needs::default(); org.pseudochannel as usize],
            banks_of_group: org.bank,
            short: config.ticks(t.bl.max(t.ccd_s)),
            long: config.ticks(t.ccd_l),
            row: config.ticks(t.rc),
            opening: config.ticks(t.rcd_rd.min(t.rcd_wr)),
            window: config.ticks(t.faw),
            between: config.ticks(t.rrd_s),
            refresh: refresh.filter(|(interval, length)| *interval > *length),
            act_weight: 1,
            counts: false,
        }
    }

    /// A step begins, which has a bound or none: units with sequencers use no buses.
    pub(super) fn begin(&mut self, counts: bool) {
        self.counts = counts;
    }

    /// How activations of commands to many banks count, from here on.
    pub(super) fn rules(&mut self, rules: &Rules) {
        self.act_weight = rules.act_weight;
    }

    /// A column command was issued, which so many banks follow.
    pub(super) fn column(&mut self, i: &Issued, banks: u64) {
        if !self.counts {
            return;
        }
        let a = &i.address;
        let needs = &mut self.pchs[usize::from(a.pc)];
        needs.columns += if banks > 1 { self.long } else { self.short };
        let bank = u32::from(a.bankgroup) * self.banks_of_group + u32::from(a.bank);
        let at = bank as usize;
        if needs.last.len() <= at {
            needs.last.resize(at + 1, u32::MAX);
        }
        if std::mem::replace(&mut needs.last[at], a.row) == a.row {
            return;
        }
        let new = needs.rows.insert((bank, a.row));
        needs.wide += u64::from(new && banks > 1);
    }

    /// The bound of the step, which is over.
    pub(super) fn take(&mut self) -> LowerBound {
        let all = (0..self.pchs.len()).map(|n| self.of(n));
        let most = all.max_by_key(|b| b.ticks).unwrap_or_default();
        self.pchs.iter_mut().for_each(|n| *n = Needs::default());
        most
    }

    fn of(&self, pch: usize) -> LowerBound {
        let needs = &self.pchs[pch];
        if needs.columns == 0 {
            return LowerBound::default();
        }
        // The last command's distance is to nothing.
        let columns = needs.columns - self.short.min(self.long).min(needs.columns);
        let rows = self.rows(needs);
        let activations = self.activations(needs);
        let most = columns.max(rows).max(activations);
        let mut parts = [0; 3];
        let by = [columns, rows, activations].iter().position(|part| *part == most).unwrap_or(0);
        parts[by] = most;
        LowerBound { ticks: self.with_refreshes(most), parts }
    }

    /// Rows of the bank that has most of them. The first may be open from the step before.
    fn rows(&self, needs: &Needs) -> u64 {
        let mut banks: Vec<u32> = needs.rows.iter().map(|(bank, _)| *bank).collect();
        banks.sort_unstable();
        let most = banks.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(0) as u64;
        match most {
            0 | 1 => 0,
            n => (n - 2) * self.row + self.opening,
        }
    }

    /// All activations, of which each bank may have one from before.
    fn activations(&self, needs: &Needs) -> u64 {
        let banks: FxHashSet<u32> = needs.rows.iter().map(|(bank, _)| *bank).collect();
        let acts = (needs.rows.len() - banks.len()) as u64;
        if acts == 0 {
            return 0;
        }
        let plain = ((acts - 1) / 4 * self.window).max((acts - 1) * self.between);
        let weight = u64::from(self.act_weight);
        if weight < 2 || needs.wide < needs.rows.len() as u64 {
            return plain;
        }
        plain.max((acts - 1) * (weight * self.between).max((weight * self.window).div_ceil(4)))
    }

    /// The shortest time that has so many ticks beside the refreshes that are due in it.
    fn with_refreshes(&self, ticks: u64) -> u64 {
        let Some((interval, length)) = self.refresh else { return ticks };
        // In the time between two refreshes so much can be done.
        let work = interval - length;
        ticks + ticks / work * length
    }
}
