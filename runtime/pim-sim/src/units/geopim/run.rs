//! Units of a channel at work together.
//!
//! Each unit runs ahead by itself until it wants a row; activations are then granted in the order in which they become
//! ready. That is exact, as nothing else is shared but refreshes, before which all units of a pseudo-channel stop. With
//! a scratchpad units stop at every half buffer too.

use super::clock::Clock;
use super::kernel::{BURST, Banks, GeoPimFault, GeoPimKernel, Job, check};
use super::ledger::{Ledger, TickLabel};
use super::rows::{Gaps, Shared};
use super::scratchpad::Scratchpad;
use super::unit::{Counts, Fixed, GeoPimUnit, Pause};
use super::walk::{JobCursor, Phase, States, TileTime, UnitPhase};
use crate::dram::trace::Issued;
use crate::dram::{Address, Command, Config, Controller, Refresh};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What one unit did.
#[derive(Clone, Debug)]
pub struct UnitReport {
    /// Its bank, counted over the channel.
    pub bank: usize,
    /// The tick at which it was through.
    pub end: u64,
    /// The tick of its first product; absent if it had no sample.
    pub first_product: Option<u64>,
    /// How often it was in each state.
    pub states: States,
    /// The states in order, from the start to the end.
    pub phases: Vec<Phase>,
    /// The half buffers in order, if they were wanted.
    pub tiles: Vec<TileTime>,
    /// Its accesses.
    pub counts: Counts,
    /// Where its time went, from the start to the end of the execution.
    pub ledger: Ledger,
}

/// What the units of a channel did.
#[derive(Clone, Debug)]
pub struct Report {
    /// The first tick.
    pub start: u64,
    /// The tick at which all are through and all banks closed again.
    pub end: u64,
    /// One a job, in their order.
    pub units: Vec<UnitReport>,
    /// All-bank refreshes, or per-bank ones.
    pub refreshes: u64,
    /// The refresh that is due next: its tick, and the bank of its first pseudo-channel where banks take turns.
    pub due: (u64, usize),
}

/// When an execution begins, and what is kept of it.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The banks are closed and may be activated at this tick.
    pub tick: u64,
    /// The times of tiles are wanted.
    pub timed: bool,
}

/// Runs the units of a channel. Commands go to `sink` in no order between banks.
pub fn run(
    config: &Config,
    refresh: Refresh,
    kernel: &GeoPimKernel,
    jobs: &[Job],
    banks: &mut impl Banks,
    Start { tick: start, timed }: Start,
    mut sink: impl FnMut(Issued),
) -> Result<Report, GeoPimFault> {
    let org = &config.org;
    let row = u64::from(org.bursts_per_row());
    let bursts = row * u64::from(org.row);
    let count = (org.pseudochannel * org.banks_per_pc()) as usize;
    check(kernel, jobs, count, bursts)?;
    if u64::from(org.burst_bytes()) != BURST {
        let message = format!("units read bursts of {BURST} bytes; this device's have {}", org.burst_bytes());
        return Err(GeoPimFault { bank: None, refresh: false, message });
    }
    let fixed = Fixed { kernel, gaps: Gaps::new(config), clock: Clock::new(kernel.unit.clock_khz, config), row, timed };
    let pad = if kernel.replicated { Scratchpad::new(kernel.unit.scratchpad_bytes) } else { None };
    let units = jobs
        .iter()
        .map(|job| GeoPimUnit::new(JobCursor::new(kernel, job, bursts), start, &fixed.clock, pad.is_some()))
        .collect();
    let pcs = org.pseudochannel as usize;
    let mut engine = Engine {
        config,
        refresh: Refreshes::new(config, refresh, start),
        fixed,
        jobs,
        units,
        pauses: vec![Pause::Later(start); jobs.len()],
        shared: vec![Shared::new(org.bankgroups_per_pc() as usize, start); pcs],
        queue: BinaryHeap::new(),
        pad,
        sink: &mut sink,
        refreshes: 0,
        vain: (0, 0),
    };
    engine.run(banks)?;
    Ok(engine.report(start))
}

/// When refreshes are due.
#[derive(Debug)]
struct Refreshes {
    mode: Refresh,
    /// Ticks between two of one bank.
    interval: u64,
    /// Of each bank of the channel; those of a pseudo-channel are alike where all are refreshed at once.
    due: Vec<u64>,
}

impl Refreshes {
    fn new(config: &Config, mode: Refresh, start: u64) -> Refreshes {
        let banks = (config.org.pseudochannel * config.org.banks_per_pc()) as usize;
        let (step, turns) = match mode {
            Refresh::Off => return Refreshes { mode, interval: u64::MAX, due: vec![u64::MAX; banks] },
            Refresh::AllBank => (config.ticks(config.timing.refi).max(1), 1),
            Refresh::PerBank => {
                let (together, _) = Controller::refresh_together(config);
                (config.ticks(config.timing.refi_pb).max(1), banks / together)
            }
        };
        let interval = step * turns as u64;
        // Turn number t comes at (t + 1) steps, and again after a round, as the controllers have it.
        let first = |bank: usize| {
            let offset = (bank % turns + 1) as u64 * step;
            offset + start.saturating_sub(offset).div_ceil(interval) * interval
        };
        Refreshes { mode, interval, due: (0..banks).map(first).collect() }
    }
}

struct Engine<'e, 'k, S> {
    config: &'e Config,
    refresh: Refreshes,
    fixed: Fixed<'k>,
    jobs: &'k [Job],
    units: Vec<GeoPimUnit<'k>>,
    pauses: Vec<Pause>,
    shared: Vec<Shared>,
    /// Units that wait for their turn, by the tick at which they are ready.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    pad: Option<Scratchpad>,
    sink: &'e mut S,
    /// How many refreshes were issued.
    refreshes: u64,
    /// Refreshes of all banks since the accesses were this many.
    vain: (u64, u64),
}

impl<S: FnMut(Issued)> Engine<'_, '_, S> {
    fn run(&mut self, banks: &mut impl Banks) -> Result<(), GeoPimFault> {
        for n in 0..self.units.len() {
            self.advance(n, banks)?;
        }
        loop {
            while let Some(Reverse((_, n))) = self.queue.pop() {
                match self.pauses[n] {
                    Pause::Activate { row, ready } => match self.activate(n, row, ready) {
                        true => self.advance(n, banks)?,
                        false => self.stop_for_refresh(n),
                    },
                    Pause::Refresh => {
                        self.refresh_bank(n);
                        self.advance(n, banks)?;
                    }
                    // Its bank is refreshed as long as others work.
                    Pause::Done if self.pauses.iter().all(|p| *p == Pause::Done) => {}
                    Pause::Done => {
                        self.refresh_bank(n);
                        self.stop_for_refresh(n);
                    }
                    Pause::Later(_) => self.advance(n, banks)?,
                }
            }
            if !self.pauses.contains(&Pause::Refresh) {
                return Ok(());
            }
            for pc in 0..self.shared.len() {
                let of_pc: Vec<usize> = (0..self.units.len()).filter(|n| self.pc(*n) == pc).collect();
                if of_pc.iter().any(|n| self.pauses[*n] == Pause::Refresh) {
                    self.progress()?;
                    self.refresh_all(pc, &of_pc);
                    for n in of_pc {
                        if self.pauses[n] == Pause::Refresh {
                            self.advance(n, banks)?;
                        }
                    }
                }
            }
        }
    }

    /// Refreshes that come so often, or take so long, that no access fits between them.
    fn progress(&mut self) -> Result<(), GeoPimFault> {
        let of = |u: &GeoPimUnit<'_>| u.counts.map_reads + u.counts.operand_reads + u.counts.writes;
        let accesses = self.units.iter().map(of).sum();
        self.vain = if accesses == self.vain.0 { (accesses, self.vain.1 + 1) } else { (accesses, 0) };
        match self.vain.1 > 1000 {
            false => Ok(()),
            true => {
                let message = "refreshes leave no time for the units' accesses".into();
                Err(GeoPimFault { bank: None, refresh: true, message })
            }
        }
    }

    fn pc(&self, unit: usize) -> usize {
        self.jobs[unit].bank / self.config.org.banks_per_pc() as usize
    }

    fn group(&self, unit: usize) -> usize {
        self.jobs[unit].bank % self.config.org.banks_per_pc() as usize / self.config.org.bank as usize
    }

    fn due(&self, unit: usize) -> u64 {
        self.refresh.due[self.jobs[unit].bank]
    }

    /// The unit goes on to its next pause.
    fn advance(&mut self, n: usize, banks: &mut impl Banks) -> Result<(), GeoPimFault> {
        let due = self.due(n);
        let sink = &mut *self.sink;
        let own = issued(self.config, self.jobs[n].bank, 0, Command::Act, 0, 0).address;
        let mut trace =
            |tick, command, row, column| sink(Issued { tick, command, address: Address { row, column, ..own } });
        let pause = self.units[n].advance(&self.fixed, banks, self.pad.as_mut(), due, &mut trace)?;
        self.pauses[n] = pause;
        match pause {
            Pause::Activate { ready, .. } => self.queue.push(Reverse((ready, n))),
            Pause::Later(tick) => self.queue.push(Reverse((tick, n))),
            Pause::Refresh | Pause::Done => self.stop_for_refresh(n),
        }
        Ok(())
    }

    /// A unit that stands still: if banks are refreshed one by one, its bank waits for its turn.
    fn stop_for_refresh(&mut self, n: usize) {
        if self.refresh.mode == Refresh::PerBank {
            let bank = &self.units[n].bank;
            let first = if bank.open.is_some() { Command::PrePb } else { Command::RefPb };
            self.queue.push(Reverse((bank.earliest(&self.fixed.gaps, first).max(self.due(n)), n)));
        }
    }

    /// Closes and refreshes the bank of one unit.
    fn refresh_bank(&mut self, n: usize) {
        let (pc, group, due) = (self.pc(n), self.group(n), self.due(n));
        let (config, bank, gaps, sink) = (self.config, self.jobs[n].bank, &self.fixed.gaps, &mut *self.sink);
        let mut trace = |tick, command, row, column| sink(issued(config, bank, tick, command, row, column));
        let unit = &mut self.units[n];
        if unit.bank.open.is_some() {
            let tick = unit.bank.earliest(gaps, Command::PrePb).max(due);
            unit.issue(Command::PrePb, 0, 0, tick, &mut trace);
        }
        let ready = unit.bank.earliest(gaps, Command::RefPb).max(due);
        let tick = self.shared[pc].grant(gaps, Command::RefPb, group, ready);
        self.shared[pc].issue(gaps, Command::RefPb, group, tick);
        unit.issue(Command::RefPb, 0, 0, tick, &mut trace);
        unit.refreshed(tick + gaps.own(Command::RefPb, Command::Act));
        self.refreshes += 1;
        self.refresh.due[bank] += self.refresh.interval;
    }

    /// Opens a row for a unit; false if a refresh comes before the row could be used. Opened all the same, it would
    /// have to stay open for tRAS, and delay the refresh; the time between two refreshes can be so short that nothing
    /// else happens.
    fn activate(&mut self, n: usize, row: u32, ready: u64) -> bool {
        let (pc, group) = (self.pc(n), self.group(n));
        let (config, bank) = (self.config, self.jobs[n].bank);
        let tick = self.shared[pc].grant(&self.fixed.gaps, Command::Act, group, ready);
        if tick + self.fixed.gaps.own(Command::Act, self.units[n].column_command()) >= self.due(n) {
            self.pauses[n] = Pause::Refresh;
            return false;
        }
        self.shared[pc].issue(&self.fixed.gaps, Command::Act, group, tick);
        let sink = &mut *self.sink;
        self.units[n].activated(row, ready, tick, &mut |tick, command, row, column| {
            sink(issued(config, bank, tick, command, row, column));
        });
        self.pauses[n] = Pause::Later(tick);
        true
    }

    /// Closes and refreshes all banks of a pseudo-channel; the tick from which they can be used.
    fn refresh_all(&mut self, pc: usize, units: &[usize]) -> u64 {
        let first = pc * self.config.org.banks_per_pc() as usize;
        let due = self.refresh.due[first];
        let gaps = &self.fixed.gaps;
        let all = |all: &[GeoPimUnit<'_>], command| {
            units.iter().map(|n| all[*n].bank.earliest(gaps, command)).max().unwrap_or(0).max(due)
        };
        if units.iter().any(|n| self.units[*n].bank.open.is_some()) {
            let tick = all(&self.units, Command::PreAb);
            units.iter().for_each(|n| self.units[*n].bank.issue(Command::PreAb, 0, tick));
            (self.sink)(issued(self.config, first, tick, Command::PreAb, 0, 0));
        }
        let tick = all(&self.units, Command::RefAb);
        let until = tick + gaps.own(Command::RefAb, Command::Act);
        for n in units {
            self.units[*n].bank.issue(Command::RefAb, 0, tick);
            self.units[*n].refreshed(until);
        }
        (self.sink)(issued(self.config, first, tick, Command::RefAb, 0, 0));
        self.refreshes += 1;
        let per_pc = self.config.org.banks_per_pc() as usize;
        self.refresh.due[first..first + per_pc].iter_mut().for_each(|due| *due += self.refresh.interval);
        until
    }

    /// Closes the books, and the banks. Pseudo-channels that were done early, or had nothing to do, were refreshed
    /// meanwhile.
    fn report(mut self, start: u64) -> Report {
        let clock = self.fixed.clock;
        let ends: Vec<u64> = self.units.iter().map(|u| u.end(&clock)).collect();
        let through = ends.iter().copied().max().unwrap_or(start);
        let mut end = through;
        for pc in 0..self.shared.len() {
            let of_pc: Vec<usize> = (0..self.units.len()).filter(|n| self.pc(*n) == pc).collect();
            let first = pc * self.config.org.banks_per_pc() as usize;
            while self.refresh.mode == Refresh::AllBank && self.refresh.due[first] < through {
                end = end.max(self.refresh_all(pc, &of_pc));
            }
            let gaps = &self.fixed.gaps;
            if of_pc.iter().any(|n| self.units[*n].bank.open.is_some()) {
                let at = of_pc.iter().map(|n| self.units[*n].bank.earliest(gaps, Command::PreAb)).max().unwrap_or(0);
                let at = at.max(of_pc.iter().map(|n| ends[*n]).max().unwrap_or(0));
                (self.sink)(issued(self.config, first, at, Command::PreAb, 0, 0));
                end = end.max(at + gaps.own(Command::PreAb, Command::Act));
            }
        }
        let units = self.jobs.iter().zip(self.units.drain(..)).zip(ends).map(|((job, mut unit), end_of_bank)| {
            // From then on the unit is idle, whatever becomes of its bank.
            let through = unit.through().unwrap_or(end_of_bank);
            unit.ledger.wait(through, TickLabel::Operand);
            unit.ledger.spend(end, TickLabel::Idle);
            unit.enter(UnitPhase::Done, through);
            UnitReport {
                bank: job.bank,
                end: through,
                first_product: unit.first_product,
                states: unit.walk.states,
                phases: unit.phases,
                tiles: unit.tiles,
                counts: unit.counts,
                ledger: unit.ledger,
            }
        });
        let units = units.collect();
        let due = self.refresh.due.iter().enumerate().map(|(bank, due)| (*due, bank)).min().unwrap_or((u64::MAX, 0));
        Report { start, end, units, refreshes: self.refreshes, due }
    }
}

/// A command to a bank, counted over the channel.
fn issued(config: &Config, bank: usize, tick: u64, command: Command, row: u32, column: u32) -> Issued {
    let per_pc = config.org.banks_per_pc() as usize;
    let (group, in_group) = (bank % per_pc / config.org.bank as usize, bank % config.org.bank as usize);
    // Bounded by the organisation's limits.
    let address = Address { pc: (bank / per_pc) as u16, bankgroup: group as u16, bank: in_group as u16, row, column };
    Issued { tick, command, address }
}
