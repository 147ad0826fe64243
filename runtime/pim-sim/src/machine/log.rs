//! What a run leaves beside its results: counts by bank, energy, commands, and slices for a timeline.

use super::Options;
use super::account::{Account, Bucket};
use super::bound::BoundMeter;
use super::geopim::UnitTime;
use super::history::History;
use crate::dram::{Command, Config, Controller, Issued};
use crate::energy::{Energy, Model, UnitModel};
use crate::units::geopim::{Phase, TileTime};
use ptoc_pim_stream::stream::{BURST, SourceLine};
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

/// Everything that is noted of a channel, which numbers its pseudo-channels and banks from 0 on; after
/// [`Log::joined`] of all.
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
    /// Energy, from the end of the run on.
    pub energy: Energy,
    /// Energy of units: accesses to their banks, and operations.
    pub unit_energy: [f64; 2],
    /// What energy is counted by.
    charges: Charges,
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
    bank: usize,
    open: Vec<Open>,
}

/// Commands that take energy. Counts are exact in any order, which sums of energies are not.
#[derive(Clone, Copy, Debug, Default)]
struct Charges {
    /// Rows opened, in every bank that follows.
    activations: u64,
    /// Bursts that cross the interface.
    reads: u64,
    writes: u64,
    /// Banks beyond the first that store them.
    copies: u64,
    /// Of all banks, of one.
    refreshes: [u64; 2],
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
    /// Nothing has happened in a channel.
    pub fn new(config: &Config, controller: &Controller, model: Model, options: Options) -> Log {
        let org = &config.org;
        let pchs = org.pseudochannel as usize;
        let banks_of_pch = org.banks_per_pc() as usize;
        Log {
            account: Account::new(pchs),
            banks: vec![BankCount::default(); pchs * banks_of_pch],
            commands: [0; Command::COUNT],
            bytes: Bytes::default(),
            unit_steps: 0,
            lane_ops: 0,
            history: options.history.map(|from| History::new(config, from)),
            units: BTreeMap::new(),
            energy: Energy::default(),
            unit_energy: [0.0; 2],
            charges: Charges::default(),
            trace: options.trace.then(|| vec![Vec::new()]),
            internal: options.trace.then(|| vec![Vec::new()]),
            slices: options.trace.then(Vec::new),
            unit_traces: (options.trace || options.history.is_some()).then(Vec::new),
            bounds: BoundMeter::new(config, controller),
            last_slice: vec![usize::MAX; pchs],
            model,
            unit_model: UnitModel::of(config),
            banks_of_pch,
            bank: org.bank as usize,
            open: vec![Open { banks: vec![false; banks_of_pch], ..Open::default() }; pchs],
        }
    }

    /// A command was issued on the buses of the channel. `banks` follow it: 1, or those of one parity, or all. `host`
    /// tells whether its data, if any, cross the interface; `place` is the line that it works for.
    pub fn issued(&mut self, i: &Issued, banks: u64, host: bool, place: SourceLine) {
        let a = &i.address;
        let pch = usize::from(a.pc);
        let in_pch = usize::from(a.bankgroup) * self.bank + usize::from(a.bank);
        let count = &mut self.banks[pch * self.banks_of_pch + in_pch];
        self.commands[i.command as usize] += 1;
        let open = &mut self.open[pch];
        let before = open.count;
        match i.command {
            Command::Act => {
                count.act += 1;
                self.charges.activations += banks;
                open.count += usize::from(!std::mem::replace(&mut open.banks[in_pch], true));
            }
            Command::PrePb => open.count -= usize::from(std::mem::take(&mut open.banks[in_pch])),
            Command::PreAb => {
                open.banks.fill(false);
                open.count = 0;
            }
            Command::Rd | Command::RdA => {
                count.rd += 1;
                self.charges.reads += u64::from(host);
            }
            Command::Wr | Command::WrA => {
                count.wr += 1;
                if host {
                    // The burst crosses the interface once and is stored in every bank.
                    self.charges.writes += 1;
                    self.charges.copies += banks - 1;
                }
            }
            Command::RefAb | Command::RfmAb => self.charges.refreshes[0] += 1,
            Command::RefPb | Command::RfmPb => self.charges.refreshes[1] += 1,
        }
        match (before, open.count) {
            (0, 1..) => open.since = i.tick,
            (1.., 0) => open.ticks += i.tick.saturating_sub(open.since),
            _ => {}
        }
        match i.command {
            Command::Act => self.bounds.activated(i),
            c if c.is_column() => self.bounds.column(i, banks),
            _ => {}
        }
        if let Some(history) = &mut self.history {
            history.issued(i, banks, place);
        }
        if let Some(trace) = &mut self.trace {
            trace[0].push(*i);
        }
        if let Some(internal) = &mut self.internal {
            internal[0].push(!host);
        }
    }

    /// A burst of the host went to or came from stores of the units, which no bank has.
    pub fn apart(&mut self, read: bool) {
        *if read { &mut self.charges.reads } else { &mut self.charges.writes } += 1;
        self.bytes.host_moved += BURST as u64;
    }

    /// Whether column commands have to come in the order of their ticks, too. Counts do not need it.
    pub fn wants_order(&self) -> bool {
        self.trace.is_some() || self.history.is_some()
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
        if access {
            self.bytes.unit_moved += units * BURST as u64;
        }
    }

    /// A unit with a sequencer made so many accesses to its bank and operations of lanes.
    pub fn worked(&mut self, bank: usize, accesses: u64, ops: u64) {
        self.banks[bank].steps += accesses;
        self.unit_steps += accesses;
        self.lane_ops += ops;
        self.bytes.unit_moved += accesses * BURST as u64;
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

    /// The logs of the channels of a device, which number what is theirs from 0 on, as one.
    pub fn joined(channels: Vec<Log>) -> Option<Log> {
        let mut channels: Vec<Log> = channels;
        let history = History::joined(channels.iter_mut().filter_map(|c| c.history.take()));
        let account = Account::joined(channels.iter_mut().map(|c| std::mem::replace(&mut c.account, Account::new(0))));
        let mut all = channels.into_iter().reduce(|mut all, own| {
            all.add(own);
            all
        })?;
        (all.history, all.account) = (history, account?);
        Some(all)
    }

    fn add(&mut self, mut own: Log) {
        let (banks, pchs) = (self.banks.len(), self.open.len());
        self.banks.append(&mut own.banks);
        self.open.append(&mut own.open);
        self.commands.iter_mut().zip(own.commands).for_each(|(a, b)| *a += b);
        self.bytes.host_moved += own.bytes.host_moved;
        self.bytes.host_useful += own.bytes.host_useful;
        self.bytes.unit_moved += own.bytes.unit_moved;
        self.unit_steps += own.unit_steps;
        self.lane_ops += own.lane_ops;
        self.units.extend(own.units.into_iter().map(|(bank, unit)| (banks + bank, unit)));
        self.charges.activations += own.charges.activations;
        self.charges.reads += own.charges.reads;
        self.charges.writes += own.charges.writes;
        self.charges.copies += own.charges.copies;
        self.charges.refreshes.iter_mut().zip(own.charges.refreshes).for_each(|(a, b)| *a += b);
        fn append<T>(all: &mut Option<Vec<T>>, own: Option<Vec<T>>, number: impl Fn(T) -> T) {
            if let Some(all) = all {
                all.extend(own.into_iter().flatten().map(number));
            }
        }
        append(&mut self.trace, own.trace, |t| t);
        append(&mut self.internal, own.internal, |t| t);
        append(&mut self.slices, own.slices, |s| Slice { pch: pchs + s.pch, ..s });
        append(&mut self.unit_traces, own.unit_traces, |t| UnitTrace { bank: banks + t.bank, ..t });
    }

    /// The end of the run: standby, and energy.
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
        let (model, unit, c) = (&self.model, &self.unit_model, &self.charges);
        self.energy.activate = c.activations as f64 * model.activate;
        self.energy.read = c.reads as f64 * model.read;
        self.energy.write = c.writes as f64 * model.write + c.copies as f64 * unit.access;
        self.energy.refresh = c.refreshes[0] as f64 * model.refresh_all + c.refreshes[1] as f64 * model.refresh_one;
        self.unit_energy =
            [(self.bytes.unit_moved / BURST as u64) as f64 * unit.access, self.lane_ops as f64 * unit.operation];
        self.energy.background = (self.energy.open_ticks as f64 * self.model.active_mw
            + idle as f64 * self.model.idle_mw)
            * config.tick_ps()
            / 1000.0;
    }
}
