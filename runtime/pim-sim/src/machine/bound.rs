//! A lower bound of a step's time: what its bytes, its rows and its activations take, and, where commands go in order,
//! what no order of them can avoid.
//!
//! Of the commands of a step on a pseudo-channel count: each RD and WR for the distance that the next one keeps (tCCD_L
//! for commands to many banks and to one bank group, else the burst or tCCD_S); what one bank has to do, each of its
//! rows once, tRC apart or with their commands between, however often they were opened; and as many activations for
//! tFAW and tRRD_S ([`any_order`]). The largest of the three is waited for, then the last data. The first row of all is
//! opened if none of those that are needed was open, when the steps before have left its bank ready.
//!
//! Commands that go in order ([`in_order`]) wait one after the other, so these parts add up there. What a schedule
//! could avoid counts nothing: rows that are opened again, turns beyond those that registers ask for, other fences. The
//! pseudo-channel that has most is the bound. Refreshes of all banks that fall due in that time come on top, less what
//! is waited for beside them; none that the host's controller may leave until it has served the rows that are open.

mod any_order;
mod in_order;
mod sums;

use super::lanes::{Rules, Work};
use crate::dram::{Command, Config, Constraint, Controller, Issued, Level, Refresh};
use any_order::{AnyOrder, Distances};
use in_order::InOrder;
use ptoc_pim_stream::mode::RESERVED_BIT;
use sums::Sums;

/// What a bound is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoundBy {
    /// Column commands: bytes over the column rate.
    Columns,
    /// Rows of one bank, over tRC; in order: each of them, over tRP and tRCD.
    Rows,
    /// Activations of a pseudo-channel, over tFAW and tRRD_S.
    Activations,
    /// From reads to writes and back, with the fences that stand there: registers are full, or used up.
    Turns,
    /// Into the units' modes and out of them: all banks close.
    Modes,
    /// From the last column command to the end of its data.
    Data,
    /// Refreshes of all banks.
    Refresh,
}

impl BoundBy {
    /// All of them.
    pub const ALL: [BoundBy; 7] = [
        BoundBy::Columns,
        BoundBy::Rows,
        BoundBy::Activations,
        BoundBy::Turns,
        BoundBy::Modes,
        BoundBy::Data,
        BoundBy::Refresh,
    ];

    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            BoundBy::Columns => "columns",
            BoundBy::Rows => "rows",
            BoundBy::Activations => "activations",
            BoundBy::Turns => "turns",
            BoundBy::Modes => "modes",
            BoundBy::Data => "last data",
            BoundBy::Refresh => "refresh",
        }
    }
}

/// A lower bound of some steps, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LowerBound {
    parts: [u64; BoundBy::ALL.len()],
}

impl LowerBound {
    /// All of it.
    pub fn ticks(&self) -> u64 {
        self.parts.iter().sum()
    }

    /// One of its parts.
    pub fn part(&self, by: BoundBy) -> u64 {
        self.parts[by as usize]
    }

    /// So many times the bound, if there is one.
    pub fn factor(&self, ticks: u64) -> Option<f64> {
        let own = self.ticks();
        (own > 0).then(|| ticks as f64 / own as f64)
    }

    pub(super) fn add(&mut self, other: &LowerBound) {
        self.parts.iter_mut().zip(other.parts).for_each(|(a, b)| *a += b);
    }

    fn with(mut self, by: BoundBy, ticks: u64) -> LowerBound {
        self.parts[by as usize] += ticks;
        self
    }
}

/// When a step began, and its refreshes.
#[derive(Clone, Copy, Debug)]
pub struct StepSpan {
    /// Its first tick.
    pub start: u64,
    /// When a refresh is due, before or behind the step's end.
    pub due: u64,
    /// Ticks from the tick of a read, and of a write, to the first behind its data.
    pub latency: [u64; 2],
}

/// What the current step needs of one pseudo-channel.
#[derive(Clone, Debug, Default)]
struct Needs {
    /// Ticks of column commands.
    columns: u64,
    banks: AnyOrder,
    /// Sums that units have one place for.
    sums: Sums,
    /// Reads and writes were there.
    kinds: [bool; 2],
    order: InOrder,
}

/// The needs of the current step on a channel.
#[derive(Clone, Debug)]
pub struct BoundMeter {
    pchs: Vec<Needs>,
    banks_of_group: u32,
    distances: Distances,
    refresh: Option<(u64, u64)>,
    /// Bursts of a row.
    bursts: u64,
    gaps: in_order::Gaps,
    act_weight: u32,
    /// Whether its commands go in order, and fences wait for data then.
    in_order: Option<bool>,
    /// Rows with [`RESERVED_BIT`] are for modes and registers.
    reserved: bool,
    /// The step has a bound.
    counts: bool,
    /// When the first refresh is due that the steps before have not taken.
    due: Option<u64>,
}

/// Ticks that a command keeps from another one to the same bank.
fn same_bank(config: &Config, before: Command, after: Command) -> u64 {
    gap(config, before, after, |_| true)
}

/// Ticks that a command keeps from another one to the same pseudo-channel, whichever banks they are for.
fn same_pch(config: &Config, before: Command, after: Command) -> u64 {
    gap(config, before, after, |level| matches!(level, Level::Channel | Level::PseudoChannel))
}

fn gap(config: &Config, before: Command, after: Command, level: impl Fn(Level) -> bool) -> u64 {
    let holds = |c: &&Constraint| {
        c.window == 1 && !c.sibling && level(c.level) && c.preceding.contains(before) && c.following.contains(after)
    };
    config.constraints.iter().filter(holds).map(|c| u64::try_from(c.gap).unwrap_or(0)).max().unwrap_or(0)
}

impl BoundMeter {
    pub(super) fn new(config: &Config, controller: &Controller) -> BoundMeter {
        let (org, t) = (&config.org, &config.timing);
        let refresh = (controller.refresh == Refresh::AllBank).then(|| (config.ticks(t.refi), config.ticks(t.rfc)));
        BoundMeter {
            pchs: vec![Needs::default(); org.pseudochannel as usize],
            banks_of_group: org.bank,
            distances: Distances::new(config),
            refresh: refresh.filter(|(interval, length)| *interval > *length),
            bursts: u64::from(org.bursts_per_row()).max(1),
            gaps: in_order::Gaps::new(config),
            act_weight: 1,
            in_order: None,
            reserved: false,
            counts: false,
            due: None,
        }
    }

    /// A step begins, which has a bound or none: units with sequencers use no buses.
    pub(super) fn begin(&mut self, counts: bool) {
        (self.counts, self.in_order, self.act_weight, self.reserved, self.due) = (counts, None, 1, false, None);
    }

    /// The step commands units of HBM-PIM.
    pub(super) fn commands_units(&mut self) {
        self.reserved = true;
    }

    /// The commands of the step go in order.
    pub(super) fn in_order(&mut self, rules: &Rules) {
        self.act_weight = rules.act_weight;
        self.in_order = Some(rules.fence_data);
    }

    /// Ticks from PRE to ACT.
    pub(super) fn precharge(&self) -> u64 {
        self.gaps.precharge()
    }

    /// When the banks of a pseudo-channel can open a row at the earliest, in ticks behind the step's first, and when
    /// all that have one open can, closed together; and when the next refresh is due. A step takes one that its last
    /// command waits for, even if that is behind its end.
    pub(super) fn ready(&mut self, pc: usize, ticks: impl Iterator<Item = u64>, closed: u64, due: u64) {
        self.due.get_or_insert(due);
        self.pchs[pc].banks.ready(ticks, closed);
    }

    fn bank(&self, i: &Issued) -> u32 {
        u32::from(i.address.bankgroup) * self.banks_of_group + u32::from(i.address.bank)
    }

    /// A bank was opened.
    pub(super) fn activated(&mut self, i: &Issued) {
        if self.counts {
            let bank = self.bank(i);
            self.pchs[usize::from(i.address.pc)].banks.activated(bank);
        }
    }

    /// A column command was issued, which so many banks follow.
    pub(super) fn column(&mut self, i: &Issued, banks: u64) {
        if !self.counts {
            return;
        }
        let (a, bank, write) = (&i.address, self.bank(i), i.command.is_write());
        let needs = &mut self.pchs[usize::from(a.pc)];
        needs.columns += if banks > 1 { self.distances.long } else { self.distances.short };
        needs.kinds[usize::from(write)] = true;
        if banks > 1 {
            needs.sums.step(a.row);
        }
        let new = needs.banks.column((bank, bank / self.banks_of_group), a.row, write, banks > 1);
        if new && self.in_order.is_some() {
            needs.order.row(bank, write, banks > 1, self.reserved && a.row & RESERVED_BIT != 0);
        }
    }

    /// A sum is begun, which takes so many ticks, and so many more behind one that the host has taken.
    pub(super) fn begin_sum(&mut self, pc: usize, ticks: (u64, u64)) {
        if self.counts {
            self.pchs[pc].sums.begin(ticks, self.distances.long);
        }
    }

    /// Units work on sums, so many ticks behind their last step and so many ticks long.
    pub(super) fn work_on_sum(&mut self, pc: usize, behind: u64, ticks: u64) {
        if self.counts {
            self.pchs[pc].sums.work(behind, ticks);
        }
    }

    /// The host takes sums, so many ticks behind their last step, or behind others that it takes.
    pub(super) fn take_sum(&mut self, pc: usize, ticks: u64, burst: u64) {
        if self.counts {
            self.pchs[pc].sums.take(ticks, burst);
        }
    }

    /// What the last column command of a pseudo-channel was for.
    pub(super) fn work(&mut self, pc: usize, work: Work) {
        if self.counts {
            self.pchs[pc].order.work(work);
        }
    }

    /// The bound of the step, which is over.
    pub(super) fn take(&mut self, span: StepSpan) -> LowerBound {
        let all = (0..self.pchs.len()).map(|n| self.of(n, span));
        let most = all.max_by_key(LowerBound::ticks).unwrap_or_default();
        self.pchs.iter_mut().for_each(|n| *n = Needs::default());
        most
    }

    fn of(&self, pch: usize, span: StepSpan) -> LowerBound {
        let needs = &self.pchs[pch];
        if needs.columns == 0 {
            return LowerBound::default();
        }
        let Distances { short, long, window, .. } = self.distances;
        // A refresh may fall where commands wait for each other anyway.
        // Steps of units whose commands go in no order begin when all banks are closed.
        let all = self.in_order.is_none();
        let per_group = u64::from(self.banks_of_group);
        let plain = needs.banks.bound(&self.distances, (needs.columns, self.act_weight), all, per_group);
        // The host's controller serves what it has opened rows for, and refreshes then.
        let going = if self.in_order.is_none() && !needs.sums.any() { plain.going } else { 0 };
        let columns = plain.columns;
        let latencies = needs.kinds.into_iter().zip(span.latency).filter(|(there, _)| *there);
        let data = latencies.map(|(_, ticks)| ticks).min().unwrap_or(0).max(needs.sums.last());
        let hidden = if plain.by == BoundBy::Activations { window.max(long) } else { long };
        // What is read and written turns the bus once, where it is the bus that is waited for.
        let turn = self.in_order.is_none() && plain.by == BoundBy::Columns && needs.kinds == [true; 2];
        let turn = if turn { self.gaps.least_turn(short) } else { 0 };
        let going = going + turn;
        let plain_first = plain.first;
        let plain = LowerBound::default().with(plain.by, plain.most).with(BoundBy::Rows, plain.first);
        let plain = plain.with(BoundBy::Turns, turn);
        let (work, hidden) = match self.in_order {
            Some(fences) => {
                let of = in_order::Device { fences, column: [short, long], latency: span.latency, bursts: self.bursts };
                let ordered = needs.order.bound(&self.gaps, of);
                let ordered = ordered.with(BoundBy::Columns, columns);
                let most = if ordered.ticks() > plain.ticks() { ordered } else { plain };
                (most, hidden + self.gaps.hidden(fences, span.latency))
            }
            // Where a unit has one sum at a time, all steps and what is between them come one after the other.
            None => {
                let (turns, rows) = needs.sums.bound(&self.distances, needs.banks.wide_rows());
                let of = LowerBound::default().with(BoundBy::Columns, columns).with(BoundBy::Turns, turns);
                let of = of.with(BoundBy::Rows, rows + plain_first);
                let most = if needs.sums.any() && of.ticks() > plain.ticks() { of } else { plain };
                // Between two sums the host reads and writes what is in no bank, also while those are closed, refreshed
                // and opened.
                (most, hidden + needs.sums.longest().saturating_sub(self.distances.change[0]))
            }
        };
        // The step ends when all banks are closed, or with its last data.
        let closes = work.part(BoundBy::Modes) > 0;
        let last = if closes { self.gaps.last_close() } else { 0 };
        let refreshes = self.refreshes((work.ticks() - last).saturating_sub(going), hidden, span);
        work.with(BoundBy::Data, if closes { 0 } else { data }).with(BoundBy::Refresh, refreshes)
    }

    /// Ticks of the refreshes that fall due while so many ticks of work are done, beside the waits that one may be
    /// hidden in.
    fn refreshes(&self, work: u64, hidden: u64, span: StepSpan) -> u64 {
        let Some((interval, length)) = self.refresh else { return 0 };
        let length = length.saturating_sub(hidden);
        // The first that is due behind the step's first tick.
        let behind = match self.due {
            Some(due) => due.saturating_sub(span.start),
            None => span.due.saturating_sub(span.start) % interval,
        };
        let behind = if behind == 0 { interval } else { behind };
        let (mut due, mut now, mut left, mut taken) = (span.start + behind, span.start, work, 0);
        while due < now + left {
            left -= due.saturating_sub(now);
            now = now.max(due) + length;
            taken += length;
            due += interval;
        }
        taken
    }
}
