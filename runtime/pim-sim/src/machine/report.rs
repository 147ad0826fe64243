//! What a run took, as numbers, as JSON and as a timeline.

mod json;
mod tracks;

use super::account::{Bucket, Buckets, KindTotals};
use super::baseline::Baseline;
use super::device::geometry;
use super::geopim::UnitTime;
use super::history::History;
use super::lanes::Dram;
use super::launches::{self, LaunchTime};
use super::log::{BankCount, Bytes, Log, Slice, UnitTrace};
use crate::dram::{Command, Config, Issued};
use crate::energy::Energy;
use crate::units::vector::LANES;
use ptoc_pim_stream::UnitConfig;
use ptoc_pim_stream::stream::{Action, SourceLine, Stream};
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
    /// Ticks of a clock of the DRAM: 2 where commands can begin at half of one.
    pub clock_ticks: u64,
    /// Nanoseconds from one step of units to the next, where column commands step them.
    pub step_ns: Option<f64>,
    /// Begin and end of each step.
    pub steps: Vec<(u64, u64)>,
    /// The kernels of a program; none in a stream of one kernel.
    pub launches: Vec<LaunchTime>,
    /// Arrays that were in the memory before the run, with their bytes.
    pub resident: Vec<(String, u64)>,
    /// By kind of step.
    pub kinds: BTreeMap<&'static str, KindTotals>,
    /// By line of the source; file 0 is none.
    pub lines: BTreeMap<SourceLine, Buckets>,
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
    /// For each of them, whether its data stay in the memory.
    pub internal: Option<Vec<Vec<bool>>>,
    /// What column commands in order did, if it was wanted.
    pub slices: Option<Vec<Slice>>,
    /// What units with sequencers did when, if it was wanted.
    pub unit_traces: Option<Vec<UnitTrace>>,
    /// What the memory and its units could do at most.
    pub peaks: Peaks,
    /// Ticks of a burst on a bus, from ACT to RD, from PRE to ACT, of a refresh of all banks, and of one.
    pub lengths: [u64; 5],
    /// What every bank did when, if it was wanted.
    pub history: Option<History>,
    /// The name of each step.
    pub names: Vec<(&'static str, SourceLine)>,
}

/// Bounds that nothing passes, per nanosecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peaks {
    /// Operations of lanes in all units. HBM-PIM's and AiM's make two of each lane (multiply, add) in a command at
    /// tCCD_L, GeoPIM's one of each lane in a cycle of their clock.
    pub operations: f64,
    /// Bytes between banks and units: a burst in tCCD_L for each unit.
    pub unit_bytes: f64,
    /// Bytes on the data buses of all pseudo-channels.
    pub host_bytes: f64,
}

impl Peaks {
    fn new(stream: &Stream, config: &Config) -> Peaks {
        let (org, t) = (&config.org, &config.timing);
        let units = f64::from(stream.unit.count(&geometry(config)));
        let ns = |clocks: u32| config.ticks(clocks).max(1) as f64 * config.tick_ps() / 1000.0;
        let burst = f64::from(org.burst_bytes());
        let operations = match stream.unit {
            UnitConfig::None => 0.0,
            UnitConfig::HbmPim(_) | UnitConfig::Aim(_) => units * 2.0 * LANES as f64 / ns(t.ccd_l),
            UnitConfig::GeoPim(u) => units * f64::from(u.lanes) * f64::from(u.clock_mhz) / 1000.0,
        };
        Peaks {
            operations,
            unit_bytes: units * burst / ns(t.ccd_l),
            host_bytes: f64::from(org.channel * org.pseudochannel) * burst / ns(t.bl.max(t.ccd_s)),
        }
    }
}

/// What a unit did in the whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitReport {
    /// Its number, as placements count units.
    pub number: u32,
    /// The number of its first bank in the device.
    pub bank: usize,
    /// Every tick of the run, once: what its pseudo-channel did, or, of one with a sequencer, what it did itself while
    /// units had the banks.
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

/// Each array that is there before the first step, once.
fn resident(stream: &Stream) -> Vec<(String, u64)> {
    let mut numbers: Vec<u32> = stream
        .steps
        .iter()
        .filter_map(|s| match &s.action {
            Action::Resident(t) => Some(t.tensor),
            _ => None,
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let tensors = numbers.into_iter().filter_map(|n| stream.tensors.get(n as usize));
    tensors.map(|t| (t.name.clone(), t.bytes().unwrap_or(0))).collect()
}

impl Report {
    pub(super) fn new(
        stream: &Stream,
        config: &Config,
        dram: Dram,
        steps: Vec<(u64, u64)>,
        baseline: Baseline,
    ) -> Report {
        let Dram { logs, sessions, .. } = dram;
        let ticks = steps.last().map_or(0, |(_, end)| *end);
        // A device has a channel.
        let mut log = Log::joined(logs).expect("the log of a channel");
        log.finish(config, ticks);
        let units = units(stream, config, &log);
        let (org, t) = (&config.org, &config.timing);
        let pchs = (org.channel * org.pseudochannel) as usize;
        let sum = |f: fn(&crate::dram::Stats) -> u64| sessions.iter().map(|s| f(s.stats())).sum();
        Report {
            device: config.name.clone(),
            unit: stream.unit.name(),
            unit_mhz: stream.unit.clock_mhz(),
            ticks,
            tick_ps: config.tick_ps(),
            clock_ticks: config.ticks(1).max(1),
            step_ns: matches!(stream.unit, UnitConfig::HbmPim(_) | UnitConfig::Aim(_))
                .then(|| config.ticks(t.ccd_l) as f64 * config.tick_ps() / 1000.0),
            launches: launches::of(stream, &steps, &baseline.launches),
            resident: resident(stream),
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
            unit_traces: log.unit_traces,
            history: log.history,
            peaks: Peaks::new(stream, config),
            lengths: [t.bl, t.rcd_rd, t.rp, t.rfc, t.rfc_pb].map(|n| config.ticks(n)),
            names: stream.steps.iter().map(|s| (s.action.name(), s.place)).collect(),
        }
    }

    /// Clocks of the DRAM in so many ticks.
    pub fn clocks(&self, ticks: u64) -> f64 {
        ticks as f64 / self.clock_ticks as f64
    }

    /// Shares of what the data buses, and the banks towards their units, could have moved in the time of the run.
    pub fn utilisation(&self) -> [f64; 2] {
        let pairs = [(self.bytes.host_moved, self.peaks.host_bytes), (self.bytes.unit_moved, self.peaks.unit_bytes)];
        pairs.map(|(bytes, peak)| match peak * self.ns() {
            most if most > 0.0 => bytes as f64 / most,
            _ => 0.0,
        })
    }

    /// Pseudo-channels that did anything.
    pub fn busy(&self) -> u64 {
        let idle = |b: &&Buckets| b.iter().sum::<u64>() == b[Bucket::Idle as usize];
        (self.pchs.len() - self.pchs.iter().filter(idle).count()) as u64
    }

    /// Ticks that the host takes to move the arrays of every launch of a program once, launch by launch.
    pub fn launch_by_launch(&self) -> Option<u64> {
        let all = self.launches.iter().filter_map(|l| l.baseline);
        all.map(|t| t.ticks).reduce(|a, b| a + b)
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

    /// The file of a place, if it has one.
    pub fn file(&self, place: SourceLine) -> Option<&str> {
        (place.file as usize).checked_sub(1).and_then(|n| self.files.get(n)).map(String::as_str)
    }

    /// The name of a place: `file:line`.
    pub fn place(&self, place: SourceLine) -> String {
        match self.file(place) {
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
