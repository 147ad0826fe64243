//! What the host would do with the same memory and without units: bounds to compare a run with.
//!
//! **Streaming** moves every array that goes in or comes out once, from its first byte to its last, interleaved over
//! all channels. Whoever computes on the host moves at least that; a cache that holds everything gets no better.
//!
//! The same is said of each launch of a program, with the arrays that it reads and writes: an array that stays in the
//! memory, such as weights, is read by the host, too, in each launch that wants it.
//!
//! **Gathering** is for units that sample a map: the host takes query after query, reads weights and offsets as they
//! come, of each sample the pixels that the units read, and writes the results. It has no cache, so a pixel that two
//! samples share is read twice; within a sample it is read once. Arrays lie in C order one behind the other,
//! interleaved over all channels; each channel has a controller that sees as many requests ahead as its queues hold.

use super::device::controller;
use crate::dram::mapping::Mapping;
use crate::dram::{Config, Request, simulate_channels};
use ptoc_pim_stream::stream::{Action, BURST, Role, Stream};
use std::collections::BTreeMap;

/// Bursts that are simulated; of more than that these are the first, and the rest is taken to go on like them.
const SIMULATED: u64 = 1 << 19;

/// The host's baselines of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// Each array once; absent if there is none, or if refreshes leave no time.
    pub streaming: Option<Traffic>,
    /// Query by query, for units that sample.
    pub gathering: Option<Traffic>,
    /// Of each launch of a program the arrays that it works on, once.
    pub launches: Vec<Option<Traffic>>,
}

/// What the host moves, and how fast.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Bytes that it wants.
    pub useful: u64,
    /// Bytes of the bursts that have them.
    pub moved: u64,
    /// Ticks until all have moved.
    pub ticks: u64,
    /// Share of the time of all data buses.
    pub utilisation: f64,
    /// Requests that found their row open, their bank closed, another row open.
    pub rows: [u64; 3],
    /// Bursts that were simulated, and all.
    pub simulated: [u64; 2],
}

/// Requests in their order, by channel.
#[derive(Debug)]
pub(super) struct Requests {
    mapping: Mapping,
    channels: Vec<Vec<Request>>,
    useful: u64,
    kept: u64,
    all: u64,
}

impl Requests {
    pub(super) fn new(config: &Config) -> Requests {
        let channels = vec![Vec::new(); config.org.channel as usize];
        Requests { mapping: Mapping::interleaved(config), channels, useful: 0, kept: 0, all: 0 }
    }

    /// The host reads or writes these bytes. Beyond the device's end addresses begin again.
    pub(super) fn access(&mut self, first: u64, bytes: u64, write: bool) {
        if bytes == 0 {
            return;
        }
        self.useful += bytes;
        let burst = BURST as u64;
        let (from, to) = (first / burst, (first + bytes - 1) / burst);
        self.all += to - from + 1;
        let size = u64::try_from(self.mapping.bytes()).unwrap_or(u64::MAX).max(burst);
        for n in from..=to {
            if self.kept == SIMULATED {
                return;
            }
            self.kept += 1;
            if let Some((channel, address)) = self.mapping.resolve(n * burst % size) {
                self.channels[channel as usize].push(Request { address, write });
            }
        }
    }

    /// Bytes of an array from the front: those of the burst at hand have been read with the bytes before.
    pub(super) fn go_on(&mut self, array: &mut Reading, at: u64, bytes: u64) {
        debug_assert!(bytes > 0);
        let burst = BURST as u64;
        let (from, to) = (at / burst, (at + bytes - 1) / burst);
        let first = if array.last == Some(from) { from + 1 } else { from };
        self.useful += bytes;
        if first <= to {
            self.access(first * burst, (to - first + 1) * burst, false);
            self.useful -= (to - first + 1) * burst;
        }
        array.last = Some(to);
    }

    /// Serves them. None if there are none, or if the controllers cannot.
    pub(super) fn serve(self, stream: &Stream, config: &Config, threads: usize) -> Option<Traffic> {
        if self.all == 0 {
            return None;
        }
        let outcomes = simulate_channels(config, &controller(&stream.device), &self.channels, false, threads).ok()?;
        let ticks = outcomes.iter().map(|o| o.stats.end_tick).max().unwrap_or(0);
        let busy: u64 = outcomes.iter().flat_map(|o| &o.stats.data_busy).sum();
        let buses = u64::from(config.org.channel * config.org.pseudochannel);
        // Ticks and bursts are far below 2^64.
        let scaled = |n: u64| (u128::from(n) * u128::from(self.all) / u128::from(self.kept)) as u64;
        let sum = |f: fn(&crate::dram::Stats) -> u64| scaled(outcomes.iter().map(|o| f(&o.stats)).sum());
        Some(Traffic {
            useful: self.useful,
            moved: self.all * BURST as u64,
            ticks: scaled(ticks),
            utilisation: if ticks == 0 { 0.0 } else { busy as f64 / (ticks * buses) as f64 },
            rows: [sum(|s| s.hits), sum(|s| s.misses), sum(|s| s.conflicts)],
            simulated: [self.kept, self.all],
        })
    }
}

/// Where the host is in an array that it reads from the front.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    last: Option<u64>,
}

/// Each array that goes in, then each that comes out, one behind the other.
pub(super) fn streaming(stream: &Stream, config: &Config, threads: usize) -> Option<Traffic> {
    let roles = |roles: [Role; 2]| {
        let tensors = stream.tensors.iter().enumerate();
        tensors.filter(|(_, t)| roles.contains(&t.role)).map(|(n, _)| n as u32).collect::<Vec<_>>()
    };
    once(stream, config, threads, [&roles([Role::In, Role::InOut]), &roles([Role::Out, Role::InOut])])
}

/// The arrays that are read, then those that are written, by number.
fn once(stream: &Stream, config: &Config, threads: usize, arrays: [&[u32]; 2]) -> Option<Traffic> {
    let mut requests = Requests::new(config);
    let mut at = 0;
    for (numbers, write) in arrays.into_iter().zip([false, true]) {
        let tensors = numbers.iter().filter_map(|n| stream.tensors.get(*n as usize));
        for bytes in tensors.filter_map(|t| t.bytes()) {
            requests.access(at, bytes, write);
            at = (at + bytes).next_multiple_of(BURST as u64);
        }
    }
    requests.serve(stream, config, threads)
}

/// What each launch of a program would take; those with as many bytes take as long.
pub(super) fn launches(stream: &Stream, config: &Config, threads: usize) -> Vec<Option<Traffic>> {
    let mut known: BTreeMap<[Vec<Option<u64>>; 2], Option<Traffic>> = BTreeMap::new();
    let all = stream.steps.iter().filter_map(|s| match &s.action {
        Action::Launch(l) => Some([&l.reads[..], &l.writes[..]]),
        _ => None,
    });
    let bytes = |numbers: &[u32]| -> Vec<Option<u64>> {
        numbers.iter().map(|n| stream.tensors.get(*n as usize).and_then(|t| t.bytes())).collect()
    };
    all.map(|arrays| *known.entry(arrays.map(bytes)).or_insert_with(|| once(stream, config, threads, arrays))).collect()
}
