//! A channel with a past: its device, its counts and its refreshes go on from one piece of work to the next.
//!
//! [`Session::serve`] lets the FR-FCFS controller work on it; [`Session::issue`] and its neighbours are for those that
//! decide every command themselves, in order.

use super::command::Command;
use super::config::Config;
use super::controller::{Controller, Refresh, SimError};
use super::device::{CLOSED, Cause, Device};
use super::frfcfs;
use super::meter::Meter;
use super::org::Address;
use super::standard::Standard;
use super::stats::Stats;
use super::trace::{Issued, Request};

/// A refresh may be late by so many intervals: whole rounds of rows closed and opened for it.
const OWED: u64 = 64;

/// The state of a channel.
pub struct Session {
    pub(super) device: Device,
    pub(super) meter: Meter,
    /// When the next refresh is due; `u64::MAX` is never.
    pub(super) refresh_due: u64,
    pub(super) refresh_interval: u64,
    pub(super) refresh_bank: usize,
    standard: Standard,
    /// The first tick in which each bus is free: row (or the only one), column.
    buses: [u64; 2],
    /// Ticks between rising clock edges, and between edges for PRE.
    edges: [u64; 2],
}

impl Session {
    /// A channel on which nothing has happened.
    pub fn new(config: &Config, controller: &Controller) -> Session {
        let device = Device::new(config);
        let interval = controller.refresh_interval(config).unwrap_or(u64::MAX);
        let clock = match controller.clock_edges && config.standard == Standard::Hbm3 {
            true => u64::from(config.tick_multiplier),
            false => 1,
        };
        Session {
            standard: config.standard,
            meter: Meter::new(config, &device),
            device,
            refresh_due: interval,
            refresh_interval: interval,
            refresh_bank: 0,
            buses: [1; 2],
            edges: [clock, (clock / 2).max(1)],
        }
    }

    /// The counts so far.
    pub fn stats(&self) -> &Stats {
        &self.meter.stats
    }

    /// Serves requests with FR-FCFS from tick `start` on and returns the first tick after all data. Every command goes
    /// to `sink` with what held a column command back.
    pub fn serve(
        &mut self,
        config: &Config,
        controller: &Controller,
        start: u64,
        requests: impl Iterator<Item = Request>,
        sink: impl FnMut(Issued, Cause),
    ) -> Result<u64, SimError> {
        let start = start.max(self.buses[0]).max(self.buses[1]);
        let last = frfcfs::serve(config, controller, self, start, requests, sink)?;
        let end = self.meter.stats.end_tick.max(last + 2 * u64::from(config.tick_multiplier));
        self.buses = [end; 2];
        Ok(end)
    }

    /// Banks of the channel.
    pub fn banks(&self) -> usize {
        self.device.banks()
    }

    /// The open row of a bank of the channel.
    pub fn open_row(&self, bank: usize) -> Option<u32> {
        Some(self.device.open_row(bank)).filter(|row| *row != CLOSED)
    }

    /// Whether a bank of the pseudo-channel is open.
    pub fn any_open(&self, pc: usize) -> bool {
        self.device.any_open(pc)
    }

    /// The earliest tick from `from` on at which a command may issue; a refresh waits for all of its banks.
    pub fn earliest(&self, command: Command, bank: usize, from: u64) -> u64 {
        let refresh = matches!(command, Command::RefAb | Command::RefPb);
        let at = match refresh {
            true => self.device.earliest_refresh(command, bank),
            false => self.device.earliest(command, bank),
        };
        let at = at.max(from).max(self.buses[self.standard.bus(command)]);
        let pre = matches!(command, Command::PrePb | Command::PreAb);
        (at.max(1) - 1).next_multiple_of(self.edges[usize::from(pre)]) + 1
    }

    /// Issues a command at a tick of [`Session::earliest`]. `wanted` is the tick from which it was wanted; returns what
    /// held a column command back since.
    pub fn issue(&mut self, config: &Config, command: Command, bank: usize, row: u32, tick: u64, wanted: u64) -> Cause {
        let cause = self.meter.issue(&self.device, command, bank, tick, wanted);
        self.device.issue(command, bank, row, tick);
        self.buses[self.standard.bus(command)] = tick + u64::from(config.command_ticks[command as usize]);
        cause
    }

    /// The earliest tick from `from` on at which the bus is free for a command that no bank takes: to the units' own
    /// stores.
    pub fn earliest_apart(&self, from: u64) -> u64 {
        let at = from.max(self.buses[self.standard.bus(Command::Wr)]);
        (at.max(1) - 1).next_multiple_of(self.edges[0]) + 1
    }

    /// Such a command holds the bus from this tick on.
    pub fn issue_apart(&mut self, config: &Config, tick: u64) {
        self.buses[self.standard.bus(Command::Wr)] = tick + u64::from(config.command_ticks[Command::Wr as usize]);
    }

    /// The first tick after the data of a column command.
    pub fn data_end(&self, command: Command, tick: u64) -> u64 {
        self.meter.data_end(command, tick)
    }

    /// Counts a request by the state in which it found its bank.
    pub fn count(&mut self, open: Option<u32>, row: u32, write: bool) {
        let stats = &mut self.meter.stats;
        *match open {
            Some(r) if r == row => &mut stats.hits,
            Some(_) => &mut stats.conflicts,
            None => &mut stats.misses,
        } += 1;
        *if write { &mut stats.writes } else { &mut stats.reads } += 1;
    }

    /// When the next refresh is due.
    pub fn refresh_due(&self) -> u64 {
        self.refresh_due
    }

    /// Takes the refresh that is due, in order: closes what it needs closed and refreshes. Returns the tick of its last
    /// command.
    ///
    /// Error: refreshes take longer than the interval between them, so that more and more are owed.
    pub fn refresh(
        &mut self,
        config: &Config,
        controller: &Controller,
        mut sink: impl FnMut(Issued),
    ) -> Result<u64, SimError> {
        let due = self.refresh_due;
        self.refresh_due = due.saturating_add(self.refresh_interval);
        let banks = self.device.banks();
        let per_pc = self.device.banks_per_pc();
        let (close, refresh, targets): (_, _, Vec<usize>) = match controller.refresh {
            Refresh::Off => return Ok(due),
            Refresh::AllBank => (Command::PreAb, Command::RefAb, (0..banks / per_pc).map(|pc| pc * per_pc).collect()),
            Refresh::PerBank => {
                let (together, stride) = Controller::refresh_together(config);
                let first = self.refresh_bank;
                self.refresh_bank = (first + 1) % (banks / together);
                (Command::PrePb, Command::RefPb, (0..together).map(|i| first + i * stride).collect())
            }
        };
        let from = due.max(self.buses[0]).max(self.buses[1]);
        let mut last = due;
        for bank in targets {
            let address = Request::bank_address(config, bank);
            let open = match close {
                Command::PreAb => self.any_open(self.device.pc_of(bank)),
                _ => self.open_row(bank).is_some(),
            };
            for command in [close, refresh].into_iter().skip(usize::from(!open)) {
                let tick = self.earliest(command, bank, from);
                self.issue(config, command, bank, 0, tick, due);
                sink(Issued { tick, command, address });
                last = tick;
            }
        }
        match last <= due.saturating_add(OWED * self.refresh_interval) {
            true => Ok(last),
            false => Err(SimError::RefreshStarves { tick: last }),
        }
    }

    /// Units with sequencers of their own have had the channel up to `end`: they found it closed and leave it so, and
    /// took its refreshes. `due` is the next one: its tick and bank.
    pub fn resume(&mut self, end: u64, due: (u64, usize), config: &Config, controller: &Controller) {
        self.buses = self.buses.map(|free| free.max(end));
        if controller.refresh != Refresh::Off {
            self.refresh_due = due.0;
        }
        if controller.refresh == Refresh::PerBank {
            let (together, _) = Controller::refresh_together(config);
            self.refresh_bank = due.1 % (self.device.banks() / together);
        }
    }

    /// Learns of commands that others issued, sorted by tick: what is issued next keeps its distance from them. They
    /// are not counted. Of those that are too old to matter only the rows that they opened and closed are taken.
    pub fn replay(&mut self, config: &Config, commands: &[Issued]) {
        let Some(last) = commands.last() else { return };
        let old = last.tick.saturating_sub(self.reach(config));
        for i in commands {
            let rows = matches!(i.command, Command::Act | Command::PrePb | Command::PreAb);
            if i.tick >= old || rows {
                self.device.issue(i.command, Session::bank_index(config, i.address), i.address.row, i.tick);
            }
        }
    }

    /// Ticks after which a command matters to no other, but for the row that it opened or closed.
    pub fn reach(&self, config: &Config) -> u64 {
        let longest = config.constraints.iter().map(|c| u64::try_from(c.gap).unwrap_or(0)).max().unwrap_or(0);
        // A window of four activations reaches back further than its length if they are rare; then it holds nobody.
        longest + self.device.refresh_spacing()
    }

    /// Counts accesses of units: those that found their row open, their bank closed, another row open; reads and
    /// writes.
    pub fn count_units(&mut self, [hits, misses, conflicts]: [u64; 3], [reads, writes]: [u64; 2]) {
        let stats = &mut self.meter.stats;
        stats.hits += hits;
        stats.misses += misses;
        stats.conflicts += conflicts;
        stats.reads += reads;
        stats.writes += writes;
    }

    /// Takes all refreshes that are due before `until`, on a channel that has nothing else to do.
    pub fn idle(
        &mut self,
        config: &Config,
        controller: &Controller,
        until: u64,
        mut sink: impl FnMut(Issued),
    ) -> Result<(), SimError> {
        while self.refresh_due < until {
            self.refresh(config, controller, &mut sink)?;
        }
        Ok(())
    }

    /// Index in the channel of a bank.
    pub fn bank_index(config: &Config, address: Address) -> usize {
        Request { address, write: false }.bank_index(config)
    }

    /// The address of a bank's first burst, from its index.
    pub fn bank_address(config: &Config, bank: usize) -> Address {
        Request::bank_address(config, bank)
    }
}
