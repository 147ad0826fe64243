//! What a run took, as numbers, as JSON and as a timeline.

mod json;
mod tracks;

use super::account::{Bucket, Buckets, Kind};
use super::baseline::Baseline;
use super::device::geometry;
use super::geopim::UnitTime;
use super::lanes::Dram;
use super::launches::{self, LaunchTime};
use super::log::{BankCount, Bytes, Log, Slice};
use crate::dram::{Command, Config, Issued};
use crate::energy::Energy;
use ptoc_pim_stream::stream::{Place, Stream};
use std::collections::BTreeMap;

/// The numbers of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The device's name.
    pub device: String,
    /// The kind of units.
    pub unit: &'static str,
    /// Their clock in MHz.
    pub unit_mhz: Option<u32>,
    /// Ticks until the last step was done.
    pub ticks: u64,
    /// Picoseconds of a tick.
    pub tick_ps: f64,
    /// Begin and end of each step.
    pub steps: Vec<(u64, u64)>,
    /// The kernels of a program; none in a stream of one kernel.
    pub launches: Vec<LaunchTime>,
    /// By kind of step.
    pub kinds: BTreeMap<&'static str, Kind>,
    /// By line of the source; file 0 is none.
    pub lines: BTreeMap<Place, Buckets>,
    /// By pseudo-channel of the device, counted through.
    pub pchs: Vec<Buckets>,
    /// By bank, in the order of addresses.
    pub banks: Vec<BankCount>,
    /// Pseudo-channels of a channel, and bank groups and banks of one.
    pub shape: [u32; 3],
    /// Commands by id.
    pub commands: [u64; Command::COUNT],
    /// Requests and commands that found their row open, their bank closed, another row.
    pub rows: [u64; 3],
    /// Bytes.
    pub bytes: Bytes,
    /// Steps that units made, and operations of lanes in them.
    pub unit_work: [u64; 2],
    /// Picojoules of the memory.
    pub energy: Energy,
    /// Picojoules of the units: accesses to their banks, operations.
    pub unit_energy: [f64; 2],
    /// What the host would do with the same memory and without units.
    pub baseline: Baseline,
    /// The units that worked, by their numbers.
    pub units: Vec<UnitReport>,
    /// Files that places count.
    pub files: Vec<String>,
    /// Commands of each channel, if they were wanted.
    pub trace: Option<Vec<Vec<Issued>>>,
    /// For each of them: do its data stay in the memory?
    pub internal: Option<Vec<Vec<bool>>>,
    /// What column commands in order did, if it was wanted.
    pub slices: Option<Vec<Slice>>,
    /// The name of each step.
    names: Vec<(&'static str, Place)>,
}

/// What a unit did in the whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitReport {
    /// Its number, as placements count units.
    pub number: u32,
    /// The number of its first bank in the device.
    pub bank: usize,
    /// Every tick of the run, once: what its pseudo-channel did, or, of one with a sequencer, what it did itself while units
    /// had the banks.
    pub buckets: Buckets,
    /// Steps by commands, or accesses to its bank.
    pub steps: u64,
    /// What one with a sequencer worked on.
    pub sequencer: Option<UnitTime>,
}

/// The units that made a step.
fn units(stream: &Stream, config: &Config, log: &Log) -> Vec<UnitReport> {
    let g = geometry(config);
    let per_pch = g.banks_of_pch() as usize;
    let all = (0..stream.unit.count(&g)).map(|number| {
        let [channel, pch, group, bank] = stream.unit.home(number, &g);
        let pch = (channel * g.pch + pch) as usize;
        let bank = pch * per_pch + (group * g.bank + bank) as usize;
        let steps = log.banks[bank..bank + stream.unit.banks() as usize].iter().map(|b| b.steps).sum();
        let mut buckets = *log.account.buckets(pch);
        let sequencer = log.units.get(&bank).copied();
        if let Some(own) = &sequencer {
            let apart = log.account.apart(pch);
            let mine = own.buckets();
            buckets.iter_mut().zip(apart).zip(mine).for_each(|((b, apart), mine)| *b = *b - apart + mine);
            // Executions in which it had no work.
            buckets[Bucket::Idle as usize] += apart.iter().sum::<u64>() - mine.iter().sum::<u64>();
        }
        UnitReport { number, bank, buckets, steps, sequencer }
    });
    all.filter(|u| u.steps > 0 || u.sequencer.is_some()).collect()
}

impl Report {
    pub(super) fn new(
        stream: &Stream,
        config: &Config,
        dram: Dram,
        steps: Vec<(u64, u64)>,
        baseline: Baseline,
    ) -> Report {
        let Dram { log, sessions, .. } = dram;
        let units = units(stream, config, &log);
        let org = &config.org;
        let pchs = (org.channel * org.pseudochannel) as usize;
        let sum = |f: fn(&crate::dram::Stats) -> u64| sessions.iter().map(|s| f(s.stats())).sum();
        Report {
            device: config.name.clone(),
            unit: stream.unit.name(),
            unit_mhz: stream.unit.clock_mhz(),
            ticks: steps.last().map_or(0, |(_, end)| *end),
            tick_ps: config.tick_ps(),
            launches: launches::of(stream, &steps),
            steps,
            pchs: (0..pchs).map(|n| *log.account.buckets(n)).collect(),
            kinds: log.account.kinds,
            lines: log.account.lines,
            banks: log.banks,
            shape: [org.pseudochannel, org.bankgroups_per_pc(), org.bank],
            commands: log.commands,
            rows: [sum(|s| s.hits), sum(|s| s.misses), sum(|s| s.conflicts)],
            bytes: log.bytes,
            unit_work: [log.unit_steps, log.lane_ops],
            energy: log.energy,
            unit_energy: log.unit_energy,
            baseline,
            units,
            files: stream.files.clone(),
            trace: log.trace,
            internal: log.internal,
            slices: log.slices,
            names: stream.steps.iter().map(|s| (s.action.name(), s.place)).collect(),
        }
    }

    /// Nanoseconds of all steps.
    pub fn ns(&self) -> f64 {
        self.ticks as f64 * self.tick_ps / 1000.0
    }

    /// Cycles of the units in that time.
    pub fn unit_cycles(&self) -> Option<f64> {
        self.unit_mhz.map(|mhz| self.ns() * f64::from(mhz) / 1000.0)
    }

    /// Ticks of all pseudo-channels by bucket.
    pub fn total(&self) -> Buckets {
        let mut out = [0; Bucket::COUNT];
        for buckets in &self.pchs {
            out.iter_mut().zip(buckets).for_each(|(a, b)| *a += b);
        }
        out
    }

    /// Picojoules of everything.
    pub fn picojoules(&self) -> f64 {
        self.energy.total() + self.unit_energy.iter().sum::<f64>()
    }

    /// The name of a place: `file:line`.
    pub fn place(&self, place: Place) -> String {
        match (place.file as usize).checked_sub(1).and_then(|n| self.files.get(n)) {
            Some(file) => format!("{file}:{}", place.line),
            None => "no line".into(),
        }
    }

    /// Channel, pseudo-channel, bank group and bank of a bank's number.
    pub fn bank(&self, number: usize) -> [usize; 4] {
        let [pchs, groups, banks] = self.shape.map(|n| n as usize);
        [number / banks / groups / pchs, number / banks / groups % pchs, number / banks % groups, number % banks]
    }
}
