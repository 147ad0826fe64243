//! What a run leaves beside its results: counts by bank, energy, commands, and slices for a timeline.

use super::Options;
use super::account::{Account, Bucket};
use super::bound::BoundMeter;
use super::geopim::UnitTime;
use super::history::History;
use crate::dram::{Command, Config, Controller, Issued};
use crate::energy::{Energy, Model, UnitModel};
use crate::units::geopim::{Phase, TileTime};
use ptoc_pim_stream::stream::SourceLine;
use std::collections::BTreeMap;

/// What happened in one bank. Commands for many banks count at the one that they address, steps at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BankCount {
    /// Rows opened.
    pub act: u64,
    /// Bursts read.
    pub rd: u64,
    /// Bursts written.
    pub wr: u64,
    /// Steps of the bank's unit by commands that it took.
    pub steps: u64,
}

/// Bytes that moved, and bytes that somebody wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Bursts that the host read or wrote.
    pub host_moved: u64,
    /// Bytes of elements in them.
    pub host_useful: u64,
    /// Bursts that units read from or wrote to their banks.
    pub unit_moved: u64,
}

/// Something on the timeline of a pseudo-channel's units, which take commands together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Pseudo-channel of the device, counted through.
    pub pch: usize,
    /// From this tick.
    pub start: u64,
    /// To this one.
    pub end: u64,
    /// What was done.
    pub bucket: Bucket,
    /// The line.
    pub place: SourceLine,
}

/// What a unit with a sequencer did in one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitTrace {
    /// Its bank, counted through the device.
    pub bank: usize,
    /// The line.
    pub place: SourceLine,
    /// Its states in order.
    pub phases: Vec<Phase>,
    /// Half buffers in order.
    pub tiles: Vec<TileTime>,
    /// The end of the execution.
    pub end: u64,
}

/// Everything that is noted.
#[derive(Debug)]
pub struct Log {
    /// The time.
    pub account: Account,
    /// Counts of every bank of the device, in the order of addresses.
    pub banks: Vec<BankCount>,
    /// Commands by id. A command for many banks counts once.
    pub commands: [u64; Command::COUNT],
    /// Bytes.
    pub bytes: Bytes,
    /// Steps of units that executed an instruction.
    pub unit_steps: u64,
    /// Operations of lanes in them.
    pub lane_ops: u64,
    /// What every bank did when, if it is wanted.
    pub history: Option<History>,
    /// What units with sequencers of their own did in all executions, by the number of their bank.
    pub units: BTreeMap<usize, UnitTime>,
    /// Energy so far; background comes at the end.
    pub energy: Energy,
    /// Energy of units: accesses to their banks, and operations.
    pub unit_energy: [f64; 2],
    /// The commands of each channel, if they are wanted.
    pub trace: Option<Vec<Vec<Issued>>>,
    /// For each of them, whether its data stay in the memory, so that no data bus carries them.
    pub internal: Option<Vec<Vec<bool>>>,
    /// The units' timeline, if it is wanted.
    pub slices: Option<Vec<Slice>>,
    /// What units with sequencers did when, if it is wanted.
    pub unit_traces: Option<Vec<UnitTrace>>,
    /// What the current step takes at least.
    pub bounds: BoundMeter,
    /// The last slice of each pseudo-channel.
    last_slice: Vec<usize>,
    model: Model,
    unit_model: UnitModel,
    banks_of_pch: usize,
    pchs: usize,
    bank: usize,
    open: Vec<Open>,
}

/// Open banks of a pseudo-channel, for the standby current.
#[derive(Clone, Debug, Default)]
struct Open {
    banks: Vec<bool>,
    count: usize,
    since: u64,
    ticks: u64,
}

impl Log {
    /// Nothing has happened.
    pub fn new(config: &Config, controller: &Controller, model: Model, options: Options) -> Log {
        let org = &config.org;
        let pchs = (org.channel * org.pseudochannel) as usize;
        let banks_of_pch = org.banks_per_pc() as usize;
        Log {
            account: Account::new(pchs),
            banks: vec![BankCount::default(); pchs * banks_of_pch],
            commands: [0; Command::COUNT],
            bytes: Bytes::default(),
            unit_steps: 0,
            lane_ops: 0,
            history: options.history.then(|| History::new(config)),
            units: BTreeMap::new(),
            energy: Energy::default(),
            unit_energy: [0.0; 2],
            trace: options.trace.then(|| vec![Vec::new(); org.channel as usize]),
            internal: options.trace.then(|| vec![Vec::new(); org.channel as usize]),
            slices: options.trace.then(Vec::new),
            unit_traces: (options.trace || options.history).then(Vec::new),
            bounds: BoundMeter::new(config, controller),
            last_slice: vec![usize::MAX; pchs],
            model,
            unit_model: UnitModel::of(config),
            banks_of_pch,
            pchs: org.pseudochannel as usize,
            bank: org.bank as usize,
            open: vec![Open { banks: vec![false; banks_of_pch], ..Open::default() }; pchs],
        }
    }

    /// A command was issued on the buses of a channel. `banks` follow it: 1, or those of one parity, or all. `host`
    /// tells whether its data, if any, cross the interface; `place` is the line that it works for.
    pub fn issued(&mut self, channel: usize, i: &Issued, banks: u64, host: bool, place: SourceLine) {
        let a = &i.address;
        let pch = channel * self.pchs + usize::from(a.pc);
        let in_pch = usize::from(a.bankgroup) * self.bank + usize::from(a.bank);
        let count = &mut self.banks[pch * self.banks_of_pch + in_pch];
        self.commands[i.command as usize] += 1;
        let open = &mut self.open[pch];
        let before = open.count;
        match i.command {
            Command::Act => {
                count.act += 1;
                self.energy.activate += self.model.activate * banks as f64;
                open.count += usize::from(!std::mem::replace(&mut open.banks[in_pch], true));
            }
            Command::PrePb => open.count -= usize::from(std::mem::take(&mut open.banks[in_pch])),
            Command::PreAb => {
                open.banks.fill(false);
                open.count = 0;
            }
            Command::Rd | Command::RdA => {
                count.rd += 1;
                if host {
                    self.energy.read += self.model.read;
                }
            }
            Command::Wr | Command::WrA => {
                count.wr += 1;
                if host {
                    // The burst crosses the interface once and is stored in every bank.
                    self.energy.write += self.model.write + self.unit_model.access * (banks - 1) as f64;
                }
            }
            Command::RefAb | Command::RfmAb => self.energy.refresh += self.model.refresh_all,
            Command::RefPb | Command::RfmPb => self.energy.refresh += self.model.refresh_one,
        }
        match (before, open.count) {
            (0, 1..) => open.since = i.tick,
            (1.., 0) => open.ticks += i.tick.saturating_sub(open.since),
            _ => {}
        }
        if i.command.is_column() {
            self.bounds.column(channel, i, banks);
        }
        if let Some(history) = &mut self.history {
            history.issued(channel, i, banks, place);
        }
        if let Some(trace) = &mut self.trace {
            trace[channel].push(*i);
        }
        if let Some(internal) = &mut self.internal {
            internal[channel].push(!host);
        }
    }

    /// A step is over: what it would have taken at least belongs to its kind. Units with sequencers use no buses, so
    /// there is no bound of theirs.
    pub fn bound(&mut self) {
        let bound = self.bounds.take();
        if self.account.kind() != "driver execute" {
            self.account.bound(&bound);
        }
    }

    /// The units of a pseudo-channel made a step by a command for these banks, one of each: so many lane operations in
    /// every unit, and maybe an access to its bank.
    pub fn stepped(&mut self, banks: impl Iterator<Item = usize>, ops: u64, access: bool) {
        let mut units = 0;
        for bank in banks {
            self.banks[bank].steps += 1;
            units += 1;
        }
        self.unit_steps += units;
        self.lane_ops += units * ops;
        self.unit_energy[1] += (units * ops) as f64 * self.unit_model.operation;
        if access {
            self.bytes.unit_moved += units * 32;
            self.unit_energy[0] += units as f64 * self.unit_model.access;
        }
    }

    /// A unit with a sequencer made so many accesses to its bank and operations of lanes.
    pub fn worked(&mut self, bank: usize, accesses: u64, ops: u64) {
        self.banks[bank].steps += accesses;
        self.unit_steps += accesses;
        self.lane_ops += ops;
        self.bytes.unit_moved += accesses * 32;
        self.unit_energy[0] += accesses as f64 * self.unit_model.access;
        self.unit_energy[1] += ops as f64 * self.unit_model.operation;
    }

    /// A slice of the timeline; one that goes on from the last of its pseudo-channel is joined to it, and cuts it off
    /// otherwise.
    pub fn slice(&mut self, slice: Slice) {
        let Some(slices) = &mut self.slices else { return };
        let last = &mut self.last_slice[slice.pch];
        if let Some(s) = slices.get_mut(*last) {
            s.end = s.end.min(slice.start.max(s.start));
            if s.bucket == slice.bucket && s.place == slice.place && s.end == slice.start {
                s.end = slice.end;
                return;
            }
        }
        *last = slices.len();
        slices.push(slice);
    }

    /// The end of the run: standby.
    pub fn finish(&mut self, config: &Config, ticks: u64) {
        for open in &mut self.open {
            if open.count > 0 {
                open.ticks += ticks.saturating_sub(open.since);
                open.since = ticks;
            }
            self.energy.open_ticks += open.ticks;
        }
        let idle = (ticks * self.open.len() as u64).saturating_sub(self.energy.open_ticks);
        // mW x ns = pJ.
        if let Some(history) = &mut self.history {
            history.finish(ticks);
        }
        self.energy.background = (self.energy.open_ticks as f64 * self.model.active_mw
            + idle as f64 * self.model.idle_mw)
            * config.tick_ps()
            / 1000.0;
    }
}
