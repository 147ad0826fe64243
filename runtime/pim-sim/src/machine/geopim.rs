//! Units with sequencers of their own: descriptors, parameter entries, and the driver's commands.
//!
//! LOAD and READ say what the units and the host may rely on; they take no time of their own, because operands and
//! results move by `params`, `write` and `read` steps. EXECUTE closes the banks, lets the units of every channel work,
//! and ends when all are done and their banks are closed again.

mod gather;
mod order;

use super::account::{Bucket, Buckets};
use super::lanes::{Channel, CommandSource, Effect, Rules, Want, Work};
use super::log::{Log, UnitTrace};
use super::memory::ChannelMemory;
use super::{Fail, Machine, MachineStop};
use crate::dram::{Command, Refresh};
use crate::units::geopim::{
    Banks, Border, GeoPimFault, GeoPimKernel, Job, Map, MapPlace, Order, Report, Start, TickLabel, UnitConfig, run,
};
use order::Commands;
use ptoc_pim_stream::Geometry;
use ptoc_pim_stream::driver::{self, CommandKind};
use ptoc_pim_stream::register::{self, Parameters};
use ptoc_pim_stream::stream::{self, BURST, Descriptor, LoopOrder, MapLayout, Params, SourceLine};
use ptoc_pim_stream::unit::GeoPim;
use ptoc_tensor::Tensor;

/// What the driver has told the units.
#[derive(Debug, Default)]
pub struct DriverState {
    descriptor: Option<Descriptor>,
    /// Where a unit's entries are, after a LOAD.
    loaded: Option<u64>,
}

/// What a unit did in its executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitTime {
    /// Ticks by [`TickLabel`], in the order of [`TickLabel::ALL`].
    pub ticks: [u64; TickLabel::COUNT],
    /// Queries, samples and half buffers.
    pub work: [u64; 3],
    /// Accesses of the map, and those that found their row open.
    pub map: [u64; 2],
    /// Bursts from the scratchpad.
    pub shared: u64,
}

impl UnitTime {
    fn add(&mut self, other: &UnitTime) {
        self.ticks.iter_mut().zip(other.ticks).for_each(|(a, b)| *a += b);
        self.work.iter_mut().zip(other.work).for_each(|(a, b)| *a += b);
        self.map.iter_mut().zip(other.map).for_each(|(a, b)| *a += b);
        self.shared += other.shared;
    }

    /// Its time as the account of a pseudo-channel names it.
    pub fn buckets(&self) -> Buckets {
        let mut out = Buckets::default();
        TickLabel::ALL.iter().zip(self.ticks).for_each(|(label, ticks)| out[bucket(*label) as usize] += ticks);
        out
    }
}

/// The banks of a channel, for the units.
struct View<'v, 'm> {
    memory: &'v mut ChannelMemory<'m>,
    homes: Vec<u64>,
    full: bool,
}

impl Banks for View<'_, '_> {
    fn read(&self, bank: usize, burst: u64) -> [u8; BURST] {
        self.memory.read(self.homes[bank] + burst * BURST as u64)
    }

    fn write(&mut self, bank: usize, burst: u64, bytes: &[u8; BURST]) {
        self.full |= self.memory.write(self.homes[bank] + burst * BURST as u64, bytes).is_err();
    }
}

/// Closes the banks of a pseudo-channel.
struct Closing {
    done: bool,
    place: SourceLine,
}

impl CommandSource for Closing {
    fn place(&self) -> SourceLine {
        self.place
    }

    fn want(&self) -> Want {
        if self.done { Want::End } else { Want::Close }
    }

    fn done(&mut self, _: &mut ChannelMemory<'_>, _: &mut Log) -> Result<Effect, MachineStop> {
        self.done = true;
        Ok(Effect { bucket: Bucket::Row, place: self.place, host: false, work: Work::Other })
    }
}

fn missing(what: &str) -> MachineStop {
    MachineStop::new(Fail::Unit, format!("there is no {what} before it"))
}

impl Machine<'_> {
    pub(super) fn describe(&mut self, d: &Descriptor) {
        self.geopim.descriptor = Some(*d);
    }

    /// Packs an entry for every query of every unit, and writes them; entries behind a unit's last query are not valid.
    pub(super) fn params(&mut self, place: SourceLine, p: &Params, start: u64) -> Result<u64, MachineStop> {
        let d = self.geopim.descriptor.ok_or_else(|| missing("descriptor"))?;
        let g = self.geometry;
        let geo = self.arrays[p.geo as usize].as_ref().map_or(&[][..], Tensor::bytes);
        let half = |n: usize| geo.get(2 * n..2 * n + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
        let queries = geo.len() / 8 / d.batch.max(1) as usize;
        let units = (d.units / d.batch.max(1)) as usize;
        let mut bursts = Vec::new();
        let mut full = false;
        for n in 0..d.units as usize {
            let [channel, pch, bg, bank] = self.stream.unit.home(d.first_unit + n as u32, &g);
            let home = g.address([channel, pch, bg, bank], 0, 0);
            for i in 0..d.queries as usize {
                let (batch, q) = (n / units, n % units * d.queries as usize + i);
                let at = 4 * (batch * queries + q);
                let entry = match q < queries {
                    false => Parameters::default(),
                    true => Parameters {
                        // The register counts queries in 16 bits; the number is for who reads it.
                        query: (batch * queries + q) as u16,
                        samples: p.samples,
                        current: 0,
                        ref_x: half(at),
                        ref_y: half(at + 1),
                        stride_x: half(at + 2),
                        stride_y: half(at + 3),
                        weights: p.weights.0 + i as u64 * u64::from(p.weights.1),
                        offsets: p.offsets.map_or(0, |(first, step)| first + i as u64 * u64::from(step)),
                        valid: true,
                        has_offsets: p.offsets.is_some(),
                    },
                };
                let bytes = entry.encode().map_err(|e| MachineStop::new(Fail::Unit, format!("query {q}: {e}")))?;
                let address = home + p.address + (i * register::SIZE) as u64;
                full |= self.dram.memory.write(address, &bytes).is_err();
                bursts.push(address / BURST as u64);
            }
        }
        if full {
            return Err(MachineStop::new(Fail::Size, super::FULL.into()));
        }
        self.dram.bytes().host_useful += (bursts.len() * register::SIZE) as u64;
        self.serve(place, &bursts, true, start)
    }

    pub(super) fn drive(
        &mut self,
        place: SourceLine,
        c: &driver::DriverCommand,
        unit: &GeoPim,
        start: u64,
    ) -> Result<u64, MachineStop> {
        match c.kind {
            CommandKind::Load => {
                self.geopim.loaded = Some(c.params);
                Ok(start)
            }
            CommandKind::Execute => self.execute(place, c, unit, start),
            CommandKind::Read => Ok(start),
        }
    }

    fn execute(
        &mut self,
        place: SourceLine,
        c: &driver::DriverCommand,
        unit: &GeoPim,
        start: u64,
    ) -> Result<u64, MachineStop> {
        let d = self.geopim.descriptor.ok_or_else(|| missing("descriptor"))?;
        let params = self.geopim.loaded.ok_or_else(|| missing("LOAD"))?;
        self.gather(&d, c, params, unit);
        let g = self.geometry;
        let mut jobs: Vec<Vec<Job>> = vec![Vec::new(); g.channel as usize];
        let kernel = kernel(&d, unit);
        for n in 0..d.units {
            let [channel, pch, bg, bank] = self.stream.unit.home(d.first_unit + n, &g);
            jobs[channel as usize].push(Job {
                bank: ((pch * g.bg + bg) * g.bank + bank) as usize,
                place: place_of(&d, n, &kernel.map, &g),
                queries: c.queries,
                params,
                output: c.output,
            });
        }
        let own = jobs.into_iter().enumerate().filter(|(_, own)| !own.is_empty());
        let ends = self
            .dram
            .each(own, (start, usize::MAX), |channel, jobs| channel.execute(&g, place, &kernel, jobs, start))?;
        Ok(ends.into_iter().max().unwrap_or(start))
    }
}

impl Channel<'_> {
    /// The units of the channel work.
    fn execute(
        &mut self,
        g: &Geometry,
        place: SourceLine,
        kernel: &GeoPimKernel,
        mut jobs: Vec<Job>,
        start: u64,
    ) -> Result<u64, MachineStop> {
        let begin = self.close(g, place, start)?;
        for pc in 0..g.pch as usize {
            self.log.account.spend(pc, begin, Bucket::Row, place);
        }
        let homes: Vec<u64> = (0..g.pch * g.banks_of_pch())
            .map(|n| {
                let (pch, in_pch) = (n / g.banks_of_pch(), n % g.banks_of_pch());
                g.address([self.number as u32, pch, in_pch / g.bank, in_pch % g.bank], 0, 0)
            })
            .collect();
        let wanted = jobs.len();
        if self.controller.refresh == Refresh::PerBank {
            // Banks without work take their turns too.
            let idle: Vec<usize> = (0..homes.len()).filter(|b| jobs.iter().all(|j| j.bank != *b)).collect();
            let job = jobs[0].clone();
            jobs.extend(idle.into_iter().map(|bank| Job { bank, queries: 0, ..job.clone() }));
        }
        let kernel = GeoPimKernel { replicated: self.replicated(g, kernel, &jobs[..wanted], &homes), ..kernel.clone() };
        let mut issued = Commands::new(self.session.reach(self.config), self.log.wants_order());
        let began = Start { tick: begin, timed: self.log.unit_traces.is_some() };
        let mut view = View { memory: &mut self.memory, homes, full: false };
        let log = &mut *self.log;
        let report = run(self.config, self.controller.refresh, &kernel, &jobs, &mut view, began, |i| {
            if !issued.keeps(i) {
                log.issued(&i, 1, false, place);
            }
        });
        let report = report.map_err(|f: GeoPimFault| {
            MachineStop::new(if f.refresh { Fail::Time } else { Fail::Unit }, f.to_string())
        })?;
        if view.full {
            return Err(MachineStop::new(Fail::Size, super::FULL.into()));
        }
        self.session.resume(report.end, report.due, self.config, self.controller);
        let (commands, noted) = issued.by_tick();
        self.session.replay(self.config, &commands);
        for i in commands.iter().filter(|i| !(noted && i.command.is_column())) {
            self.log.issued(i, 1, false, place);
        }
        self.charge(g, place, wanted, &kernel, &report);
        if let Some(traces) = &mut self.log.unit_traces {
            traces.extend(report.units.into_iter().take(wanted).map(|unit| UnitTrace {
                bank: unit.bank,
                place,
                phases: unit.phases,
                tiles: unit.tiles,
                end: report.end,
            }));
        }
        Ok(report.end)
    }

    /// Closes all banks of a channel; the tick from which they may be activated, or refreshed (a refresh has one cycle
    /// less than an ACT, and so waits for longer).
    fn close(&mut self, g: &Geometry, place: SourceLine, start: u64) -> Result<u64, MachineStop> {
        let mut closing: Vec<Closing> = (0..g.pch).map(|_| Closing { done: false, place }).collect();
        let rules = Rules { act_weight: 1, fence_data: true, waits: true, latency: 0 };
        let sources = closing.iter_mut().enumerate().map(|(pc, s)| (pc, s as &mut dyn CommandSource));
        let closed = self.run(rules, start, sources)?;
        let session = &*self.session;
        let banks = (g.pch * g.banks_of_pch()) as usize;
        let first: &[Command] = match self.controller.refresh {
            Refresh::Off => &[Command::Act],
            Refresh::AllBank => &[Command::Act, Command::RefAb],
            Refresh::PerBank => &[Command::Act, Command::RefPb],
        };
        let ready = |b| first.iter().map(move |c| session.earliest(*c, b, closed));
        Ok((0..banks).flat_map(ready).max().unwrap_or(closed))
    }

    /// Whether the units have a scratchpad, and the banks of all jobs hold the same map in the same place. Then they
    /// may share what they have read.
    fn replicated(&self, g: &Geometry, kernel: &GeoPimKernel, jobs: &[Job], homes: &[u64]) -> bool {
        if kernel.unit.scratchpad_bytes == 0 {
            return false;
        }
        let row = g.row_bytes();
        let first = homes[jobs[0].bank];
        let Map { width, height, .. } = kernel.map;
        jobs.iter().all(|job| {
            let corners = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
            corners.into_iter().all(|at| {
                let row = job.place.burst(at, 0) * BURST as u64 / row * row;
                self.memory.is_copy(first + row, homes[job.bank] + row)
            })
        })
    }

    /// Notes what the units did: counts, energy, and the time of every pseudo-channel, which is that of its slowest
    /// unit.
    fn charge(&mut self, g: &Geometry, place: SourceLine, units: usize, kernel: &GeoPimKernel, report: &Report) {
        let per_pc = g.banks_of_pch() as usize;
        for unit in &report.units[..units] {
            let c = &unit.counts;
            let accesses = c.map_reads + c.operand_reads + c.writes;
            self.session.count_units([c.hits, c.misses, c.conflicts], [accesses - c.writes, c.writes]);
            self.log.worked(unit.bank, accesses, c.cycles * u64::from(kernel.unit.lanes));
            let ticks = TickLabel::ALL.map(|l| unit.ledger.of(l));
            if let Some(history) = &mut self.log.history {
                history.computed(unit.bank, unit.ledger.busy(), place);
            }
            let s = &unit.states;
            self.log.units.entry(unit.bank).or_default().add(&UnitTime {
                ticks,
                work: [s.queries, s.samples, s.tiles],
                map: [c.map_reads, c.map_hits],
                shared: c.shared,
            });
        }
        for pc in 0..g.pch as usize {
            let of_pc = report.units[..units].iter().filter(|u| u.bank / per_pc == pc);
            let Some(slowest) = of_pc.max_by_key(|u| u.end) else { continue };
            let mut at = report.start;
            for label in TickLabel::ALL {
                at += slowest.ledger.of(label);
                self.log.account.spend_apart(pc, at, bucket(label), place);
            }
        }
    }
}

/// The bucket of a pseudo-channel's account.
fn bucket(label: TickLabel) -> Bucket {
    match label {
        TickLabel::Compute => Bucket::Compute,
        TickLabel::Column | TickLabel::Address => Bucket::Column,
        TickLabel::Row => Bucket::Row,
        TickLabel::Activate => Bucket::Faw,
        TickLabel::Refresh => Bucket::Refresh,
        TickLabel::Operand => Bucket::Operand,
        TickLabel::Idle => Bucket::Idle,
    }
}

fn kernel(d: &Descriptor, unit: &GeoPim) -> GeoPimKernel {
    GeoPimKernel {
        unit: UnitConfig {
            clock_khz: unit.clock_mhz.saturating_mul(1000),
            lanes: unit.lanes,
            tile_channels: d.tile_channels,
            buffers: unit.buffers,
            buffer_bytes: unit.buffer_bytes.saturating_mul(unit.buffers),
            accumulators: unit.acc_regs,
            entries: unit.param_entries,
            address_cycles: unit.coordinate_cycles,
            scratchpad_bytes: unit.scratchpad_bytes,
            ..UnitConfig::default()
        },
        map: Map {
            width: d.width,
            height: d.height,
            channels: d.channels,
            base: 0,
            border: match d.border {
                stream::Border::Clamp => Border::Clamp,
                stream::Border::Zero => Border::Zero,
            },
        },
        fold: d.fold,
        order: match d.order {
            LoopOrder::Tile => Order::TileMajor,
            LoopOrder::Neighbour => Order::NeighbourMajor,
            LoopOrder::Outer => Order::TileOuter,
        },
        replicated: false,
    }
}

/// Where the map of unit `n` lies, counted from the first one that works.
fn place_of(d: &Descriptor, n: u32, map: &Map, g: &Geometry) -> MapPlace {
    let origin = (d.feature + d.map_of(n) * d.item_bytes(g.row_bytes())) / BURST as u64;
    match d.map {
        MapLayout::Pixels => MapPlace::rows(map, origin),
        MapLayout::Patches => MapPlace::patches(map, origin, u64::from(g.col)),
    }
}

#[cfg(test)]
mod tests;
