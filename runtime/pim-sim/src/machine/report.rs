//! What a run took, as numbers and as JSON.

use super::account::{Bucket, Buckets, Kind};
use super::geopim::UnitTime;
use super::log::{BankCount, Bytes, Log, Slice};
use crate::dram::mapping::Mapping;
use crate::dram::{Command, Config, Controller, Issued, Request, Session, simulate_channels};
use crate::energy::Energy;
use crate::perfetto::Track;
use crate::units::geopim::Label;
use ptoc_pim_stream::stream::{Place, Role, Stream};
use serde_json::{Map, Value, json};
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
    /// By kind of step.
    pub kinds: BTreeMap<&'static str, Kind>,
    /// By line of the source; file 0 is none.
    pub lines: BTreeMap<Place, Buckets>,
    /// By pseudo-channel of the device, counted through; so are its units.
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
    /// The host doing the same with the same memory: reading what the stream takes and writing what it gives.
    pub baseline: Baseline,
    /// What units with sequencers of their own did, execution by execution.
    pub units: Vec<UnitTime>,
    /// Files that places count.
    pub files: Vec<String>,
    /// Commands of each channel, if they were wanted.
    pub trace: Option<Vec<Vec<Issued>>>,
    /// What column commands in order did, if it was wanted.
    pub slices: Option<Vec<Slice>>,
    /// The name of each step.
    names: Vec<(&'static str, Place)>,
}

/// The host's arrays streamed once through the same memory, interleaved over channels, pseudo-channels and bank groups. A bound:
/// whoever computes on the host moves at least that.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Baseline {
    /// Bytes of the arrays that go in and come out.
    pub bytes: u64,
    /// Ticks until all have moved.
    pub ticks: u64,
    /// Share of the data buses' time.
    pub utilisation: f64,
}

impl Report {
    pub(super) fn new(
        stream: &Stream,
        config: &Config,
        log: Log,
        sessions: &[Session],
        steps: Vec<(u64, u64)>,
    ) -> Report {
        let org = &config.org;
        let pchs = (org.channel * org.pseudochannel) as usize;
        let sum = |f: fn(&crate::dram::Stats) -> u64| sessions.iter().map(|s| f(s.stats())).sum();
        Report {
            device: config.name.clone(),
            unit: stream.unit.name(),
            unit_mhz: stream.unit.clock_mhz(),
            ticks: steps.last().map_or(0, |(_, end)| *end),
            tick_ps: config.tick_ps(),
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
            baseline: baseline(stream, config),
            units: log.units,
            files: stream.files.clone(),
            trace: log.trace,
            slices: log.slices,
            names: stream.steps.iter().map(|s| (s.action.name(), s.place)).collect(),
        }
    }

    /// The timeline: steps, and the units of each pseudo-channel, which work in lock step.
    pub fn tracks(&self) -> Vec<Track> {
        let steps = self.steps.iter().zip(&self.names);
        let slices = steps.map(|((from, to), (name, place))| {
            let place = if place.file == 0 { String::new() } else { format!(" {}", self.place(*place)) };
            (*from, *to, format!("{name}{place}"))
        });
        let mut tracks = vec![Track { pch: None, name: "steps".into(), slices: slices.collect() }];
        let per_pch = (self.shape[1] * self.shape[2]) as usize;
        let named = |s: &Slice| {
            let place = if s.place.file == 0 { String::new() } else { format!(" {}", self.place(s.place)) };
            (s.start, s.end, format!("{}{place}", s.bucket.name()))
        };
        let mut own: BTreeMap<(usize, Option<usize>), Vec<_>> = BTreeMap::new();
        for s in self.slices.iter().flatten() {
            own.entry((s.pch, s.unit)).or_default().push(named(s));
        }
        for ((pch, unit), slices) in own {
            match unit {
                Some(bank) => {
                    let [.., group, bank] = self.bank(bank);
                    tracks.push(Track {
                        pch: Some(pch),
                        name: format!("unit of bank group {group} bank {bank}"),
                        slices,
                    });
                }
                None if self.unit == "hbm-pim" => (0..per_pch / 2).for_each(|unit| {
                    tracks.push(Track { pch: Some(pch), name: format!("unit {unit}"), slices: slices.clone() });
                }),
                // Broadcasts.
                None => tracks.push(Track { pch: Some(pch), name: "all banks".into(), slices }),
            }
        }
        tracks
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

    /// The numbers as JSON. What did not happen is left out of lists of commands and banks.
    pub fn json(&self) -> Value {
        let buckets = |b: &Buckets| -> Value {
            Bucket::ALL.iter().map(|n| (n.name().to_owned(), json!(b[*n as usize]))).collect::<Map<_, _>>().into()
        };
        let commands: Map<String, Value> = Command::ALL
            .iter()
            .filter(|c| self.commands[**c as usize] > 0)
            .map(|c| (c.name().to_owned(), json!(self.commands[*c as usize])))
            .collect();
        let kinds: Map<String, Value> = self
            .kinds
            .iter()
            .map(|(name, k)| {
                let value = json!({"steps": k.steps, "cycles": k.ticks, "attribution": buckets(&k.buckets)});
                ((*name).to_owned(), value)
            })
            .collect();
        let lines: Vec<Value> = self
            .lines
            .iter()
            .map(|(p, b)| json!({"file": self.place(*p), "line": p.line, "attribution": buckets(b)}))
            .collect();
        let pchs: Vec<Value> = self
            .pchs
            .iter()
            .enumerate()
            .map(|(n, b)| {
                let per = self.shape[0] as usize;
                json!({"channel": n / per, "pseudochannel": n % per, "attribution": buckets(b)})
            })
            .collect();
        let banks: Vec<Value> = self
            .banks
            .iter()
            .enumerate()
            .filter(|(_, b)| **b != BankCount::default())
            .map(|(n, b)| {
                let [channel, pch, group, bank] = self.bank(n);
                json!({"channel": channel, "pseudochannel": pch, "bankgroup": group, "bank": bank,
                       "act": b.act, "rd": b.rd, "wr": b.wr, "unit_steps": b.steps})
            })
            .collect();
        let units: Vec<Value> = self.units.iter().map(|u| self.unit_json(u)).collect();
        let e = &self.energy;
        json!({
            "device": self.device,
            "unit": self.unit,
            "cycles": self.ticks,
            "tick_ps": self.tick_ps,
            "ns": self.ns(),
            "unit_clock_mhz": self.unit_mhz,
            "unit_cycles": self.unit_cycles(),
            "steps": self.steps.len(),
            "commands": commands,
            "row_hits": self.rows[0],
            "row_misses": self.rows[1],
            "row_conflicts": self.rows[2],
            "bytes": {
                "host_moved": self.bytes.host_moved,
                "host_useful": self.bytes.host_useful,
                "unit_moved": self.bytes.unit_moved,
            },
            "unit_steps": self.unit_work[0],
            "lane_operations": self.unit_work[1],
            "attribution": buckets(&self.total()),
            "kinds": kinds,
            "lines": lines,
            "per_unit": pchs,
            "units": units,
            "per_bank": banks,
            "energy_pj": {
                "activate": e.activate, "read": e.read, "write": e.write, "refresh": e.refresh,
                "background": e.background, "unit_access": self.unit_energy[0], "unit_operation": self.unit_energy[1],
                "total": self.picojoules(),
            },
            "host_baseline": {
                "bytes": self.baseline.bytes,
                "cycles": self.baseline.ticks,
                "utilisation": self.baseline.utilisation,
            },
        })
    }
}

impl Report {
    /// A unit with a sequencer of its own.
    fn unit_json(&self, u: &UnitTime) -> Value {
        let [channel, pch, group, bank] = self.bank(u.bank);
        let ticks: Map<String, Value> =
            Label::ALL.iter().zip(u.ticks).map(|(l, t)| (l.name().to_owned(), json!(t))).collect();
        json!({"channel": channel, "pseudochannel": pch, "bankgroup": group, "bank": bank, "attribution": ticks,
               "queries": u.work[0], "samples": u.work[1], "tiles": u.work[2],
               "map_reads": u.map[0], "map_hits": u.map[1], "scratchpad_hits": u.shared})
    }
}

/// Bytes of arrays beyond which the baseline is scaled from as many of them.
const SAMPLED: u64 = 16 << 20;

fn baseline(stream: &Stream, config: &Config) -> Baseline {
    let mapping = Mapping::interleaved(config);
    let bytes = |roles: [Role; 2]| -> u64 {
        stream.tensors.iter().filter(|t| roles.contains(&t.role)).filter_map(|t| t.bytes()).sum()
    };
    let [taken, given] = [bytes([Role::In, Role::InOut]), bytes([Role::Out, Role::InOut])];
    let total = taken + given;
    if total == 0 {
        return Baseline::default();
    }
    let burst = u64::from(config.org.burst_bytes());
    let scale = total.div_ceil(SAMPLED).max(1);
    let mut channels = vec![Vec::new(); config.org.channel as usize];
    let bursts = [taken, given].map(|b| (b / scale).div_ceil(burst));
    for n in 0..bursts[0] + bursts[1] {
        if let Some((channel, address)) = mapping.resolve(n * burst) {
            channels[channel as usize].push(Request { address, write: n >= bursts[0] });
        }
    }
    let Ok(outcomes) = simulate_channels(config, &Controller::default(), &channels, false, 1) else {
        return Baseline::default();
    };
    let ticks = outcomes.iter().map(|o| o.stats.end_tick).max().unwrap_or(0);
    let data: u64 = outcomes.iter().flat_map(|o| &o.stats.data_busy).sum();
    let buses = u64::from(config.org.channel * config.org.pseudochannel);
    Baseline {
        bytes: total,
        ticks: ticks * scale,
        utilisation: if ticks == 0 { 0.0 } else { data as f64 / (ticks * buses) as f64 },
    }
}
