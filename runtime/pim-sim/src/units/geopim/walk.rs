//! What a unit does, in order, without time: which bursts it reads and writes, and what it computes from them.

use super::kernel::{BURST, Banks, GeoPimFault, GeoPimKernel, Job};
use super::{Accumulators, Order, Query, Sample};
use ptoc_pim_stream::register::Parameters;

/// What a group of bursts is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BurstPurpose {
    /// Parameter entries.
    Params,
    /// Attention weights of the next samples.
    Weights,
    /// Offsets of the next samples.
    Offsets,
    /// Half a tile buffer.
    Tile,
    /// The result.
    Output,
}

/// Bursts that belong together.
#[derive(Clone, Debug)]
pub struct BurstGroup {
    /// What for.
    pub kind: BurstPurpose,
    /// Their numbers in the bank, in the order in which they are read or written.
    pub bursts: Vec<u64>,
    /// Cycles that the lanes then compute.
    pub cycles: u64,
    /// Of a tile: the first of its sample.
    pub first: bool,
}

impl Default for BurstGroup {
    fn default() -> BurstGroup {
        BurstGroup { kind: BurstPurpose::Params, bursts: Vec::new(), cycles: 0, first: false }
    }
}

/// How often a unit was in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States {
    /// LOAD_PARAMS.
    pub loads: u64,
    /// Queries begun: the accumulators are cleared at each.
    pub queries: u64,
    /// Samples.
    pub samples: u64,
    /// FETCH, COMPUTE and ACCUMULATE of a half buffer.
    pub tiles: u64,
    /// OUTPUT.
    pub outputs: u64,
}

/// What a unit is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnitPhase {
    /// Nothing yet.
    Idle,
    /// Parameter entries come into the registers.
    Load,
    /// Samples of a query are fetched, computed and added.
    Process,
    /// The sums of a query are written.
    Output,
    /// Nothing any more.
    Done,
}

impl UnitPhase {
    /// The name in timelines.
    pub fn name(self) -> &'static str {
        ["IDLE", "LOAD", "PROCESS", "OUTPUT", "DONE"][self as usize]
    }
}

/// When a half buffer was filled, and when the lanes computed what it held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileTime {
    /// From its first command, or from when the burst before it was there, until its last burst is there.
    pub fetch: (u64, u64),
    /// From the first product to the last.
    pub compute: (u64, u64),
}

/// A state from its first tick to the next one's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phase {
    /// Which.
    pub state: UnitPhase,
    /// The first tick.
    pub begin: u64,
    /// Samples begun in it.
    pub samples: u64,
    /// Half buffers fetched in it.
    pub tiles: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum JobStage {
    Params,
    Query,
    Sample,
    Tile(u32),
    Output,
}

/// A unit on its way through its job.
#[derive(Clone, Debug)]
pub struct JobCursor<'k> {
    kernel: &'k GeoPimKernel,
    job: &'k Job,
    stage: JobStage,
    query: u16,
    entry: Parameters,
    sample: u16,
    /// The tile that all samples go through, where tiles are outermost; 0 elsewhere.
    pass: u32,
    /// The burst of weights that the unit holds, and its bytes; of offsets too.
    weights: Held,
    offsets: Held,
    found: Option<Sample>,
    sums: Accumulators,
    pixels: [Vec<u16>; 4],
    /// The rows of a group's bursts: kept, so that no group asks for memory.
    rows: Vec<u64>,
    limit: u64,
    /// What it has been through.
    pub states: States,
}

/// A burst that a unit holds.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    burst: Option<u64>,
    bytes: [u8; BURST as usize],
}

impl Held {
    /// Two bytes at an address in it.
    fn half(&self, address: u64) -> u16 {
        let at = (address % BURST) as usize;
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    /// Whether the unit needs another burst for this address. Then it has it now.
    fn turn(&mut self, banks: &impl Banks, bank: usize, address: u64) -> Option<u64> {
        let burst = address / BURST;
        if self.burst == Some(burst) {
            return None;
        }
        *self = Held { burst: Some(burst), bytes: banks.read(bank, burst) };
        Some(burst)
    }
}

impl<'k> JobCursor<'k> {
    /// At the beginning of a job in a bank of `limit` bursts.
    pub fn new(kernel: &'k GeoPimKernel, job: &'k Job, limit: u64) -> JobCursor<'k> {
        let channels = kernel.map.channels as usize;
        JobCursor {
            kernel,
            job,
            stage: JobStage::Params,
            query: 0,
            entry: Parameters::default(),
            sample: 0,
            pass: 0,
            weights: Held::default(),
            offsets: Held::default(),
            found: None,
            sums: Accumulators::new(channels),
            pixels: std::array::from_fn(|_| vec![0; channels]),
            rows: Vec::new(),
            limit,
            states: States::default(),
        }
    }

    /// The next group, into `group`; false at the end. `open` is the row that the bank holds open, `row` the bursts of
    /// one.
    pub fn next(
        &mut self,
        banks: &mut impl Banks,
        group: &mut BurstGroup,
        open: Option<u32>,
        row: u64,
    ) -> Result<bool, GeoPimFault> {
        group.bursts.clear();
        (group.cycles, group.first) = (0, false);
        loop {
            match self.stage {
                JobStage::Params if self.query >= self.job.queries => return Ok(false),
                JobStage::Params => {
                    self.stage = JobStage::Query;
                    let entries = self.kernel.unit.entries.min(u32::from(u16::MAX)) as u16;
                    if self.query.is_multiple_of(entries) {
                        group.kind = BurstPurpose::Params;
                        let first = self.job.params / BURST + u64::from(self.query);
                        let count = u64::from(entries.min(self.job.queries - self.query));
                        group.bursts.extend(first..first + count);
                        self.states.loads += 1;
                        return Ok(true);
                    }
                }
                JobStage::Query => self.begin_query(banks)?,
                JobStage::Sample if self.sample >= self.entry.samples => self.stage = JobStage::Output,
                JobStage::Sample => {
                    let s = u64::from(self.sample);
                    if let Some(burst) = self.weights.turn(banks, self.job.bank, self.entry.weights + 2 * s) {
                        group.kind = BurstPurpose::Weights;
                        group.bursts.push(burst);
                        return Ok(true);
                    }
                    let address = self.entry.offsets + 4 * s;
                    if self.entry.has_offsets
                        && let Some(burst) = self.offsets.turn(banks, self.job.bank, address)
                    {
                        group.kind = BurstPurpose::Offsets;
                        group.bursts.push(burst);
                        return Ok(true);
                    }
                    self.take_sample(banks);
                    self.stage = JobStage::Tile(0);
                }
                JobStage::Tile(n) => {
                    if self.tile(n, group, open, row) {
                        self.stage = JobStage::Tile(n + 1);
                        return Ok(true);
                    }
                    self.sample += 1;
                    self.stage = JobStage::Sample;
                }
                JobStage::Output => {
                    self.output(banks, group);
                    if !group.bursts.is_empty() {
                        return Ok(true);
                    }
                }
            }
        }
    }

    fn begin_query(&mut self, banks: &impl Banks) -> Result<(), GeoPimFault> {
        let fault = |message: String| Err(GeoPimFault { bank: Some(self.job.bank), refresh: false, message });
        let burst = self.job.params / BURST + u64::from(self.query);
        let entry = match Parameters::decode(&banks.read(self.job.bank, burst)) {
            Ok(entry) => entry,
            Err(e) => return fault(format!("parameter entry {}: {e}", self.query)),
        };
        if !entry.valid {
            self.query += 1;
            self.stage = JobStage::Params;
            return Ok(());
        }
        let end = self.limit * BURST;
        let samples = u64::from(entry.samples);
        let offsets = if entry.has_offsets { samples } else { 0 };
        for (what, address, bytes, each) in
            [("weights", entry.weights, 2 * samples, 2), ("offsets", entry.offsets, 4 * offsets, 4)]
        {
            if bytes > 0 && !address.is_multiple_of(each) {
                return fault(format!("query {}: its {what} begin at {address:#x}, between two of them", entry.query));
            }
            if bytes > 0 && address + bytes > end {
                return fault(format!(
                    "query {}: its {what} at {address:#x} end behind the bank's {end} bytes",
                    entry.query
                ));
            }
        }
        (self.entry, self.sample, self.pass) = (entry, entry.current, 0);
        (self.weights, self.offsets) = (Held::default(), Held::default());
        self.sums.clear();
        self.states.queries += 1;
        self.stage = JobStage::Sample;
        Ok(())
    }

    /// Computes with the sample as a whole; its time is that of its tiles.
    fn take_sample(&mut self, banks: &impl Banks) {
        let GeoPimKernel { map, fold, .. } = self.kernel;
        // In later passes the tile adds what it always would.
        let adds = self.pass == 0;
        let e = &self.entry;
        let s = u64::from(self.sample);
        let offset = e.has_offsets.then(|| {
            let at = e.offsets + 4 * s;
            (self.offsets.half(at), self.offsets.half(at + 2))
        });
        let query = Query { reference: (e.ref_x, e.ref_y), stride: (e.stride_x, e.stride_y) };
        let sample = query.sample(self.sample, offset, map);
        for (neighbour, pixel) in sample.neighbours.iter().zip(&mut self.pixels) {
            let Some(at) = neighbour.pixel.filter(|_| adds) else { continue };
            for (n, lanes) in pixel.chunks_exact_mut(16).enumerate() {
                let bytes = banks.read(self.job.bank, self.job.place.burst(at, n as u32));
                for (lane, two) in lanes.iter_mut().zip(bytes.chunks_exact(2)) {
                    *lane = u16::from_le_bytes([two[0], two[1]]);
                }
            }
        }
        let attention = self.weights.half(e.weights + 2 * s);
        let pixels = &self.pixels;
        match fold {
            _ if !adds => {}
            true => self.sums.add_folded(&sample, attention, |n| &pixels[n]),
            false => self.sums.add_unfolded(&sample, attention, |n| &pixels[n]),
        }
        self.found = Some(sample);
        self.states.samples += u64::from(adds);
    }

    /// Half buffer number `n` of the sample; false behind the last.
    fn tile(&mut self, n: u32, group: &mut BurstGroup, open: Option<u32>, row: u64) -> bool {
        let GeoPimKernel { unit, map, fold, order, .. } = self.kernel;
        let Some(sample) = self.found else { return false };
        let place = &self.job.place;
        let bursts = map.channels / 16;
        match order {
            Order::TileMajor | Order::TileOuter => {
                let outer = *order == Order::TileOuter;
                if n >= if outer { 1 } else { map.channels / unit.tile_channels } {
                    return false;
                }
                let first = (self.pass + n) * unit.tile_channels / 16;
                for at in sample.neighbours.iter().filter_map(|n| n.pixel) {
                    group.bursts.push(place.burst(at, first));
                }
                group.cycles = unit.tile_cycles(*fold);
            }
            Order::NeighbourMajor => {
                let half = (unit.half_bytes() / BURST as u32).max(1);
                let groups = bursts.div_ceil(half);
                if n >= 4 * groups {
                    return false;
                }
                let part = n % groups * half..((n % groups + 1) * half).min(bursts);
                group.cycles = u64::from(part.len() as u32 * 16 / unit.lanes);
                if let Some(at) = sample.neighbours[(n / groups) as usize].pixel {
                    group.bursts.extend(part.map(|b| place.burst(at, b)));
                }
            }
        }
        if unit.group_rows {
            // The open row first, then row by row in the order in which they come.
            // Most groups are bursts of one row.
            let first = group.bursts.first().map_or(0, |b| b / row * row);
            if !group.bursts.iter().all(|b| (first..first + row).contains(b)) {
                self.rows.clear();
                self.rows.extend(group.bursts.iter().map(|b| b / row));
                let rows = &self.rows;
                let rank = |r: u64| {
                    if open.map(u64::from) == Some(r) { 0 } else { 1 + rows.iter().position(|x| *x == r).unwrap_or(0) }
                };
                group.bursts.sort_by_key(|b| rank(b / row));
            }
        }
        (group.kind, group.first) = (BurstPurpose::Tile, n == 0);
        self.states.tiles += 1;
        true
    }

    /// The result of the query, or of a pass; and what comes then.
    fn output(&mut self, banks: &mut impl Banks, group: &mut BurstGroup) {
        let GeoPimKernel { unit, map, order, .. } = self.kernel;
        group.kind = BurstPurpose::Output;
        let bursts = u64::from(map.channels / 16);
        let first = self.job.output / BURST + u64::from(self.query) * bursts;
        let after = (self.pass + 1) * unit.tile_channels;
        let outer = *order == Order::TileOuter;
        match outer {
            true if after.is_multiple_of(16) => group.bursts.push(first + u64::from(after / 16 - 1)),
            true => {}
            false => group.bursts.extend(first..first + bursts),
        }
        if outer && after < map.channels {
            (self.pass, self.sample, self.stage) = (self.pass + 1, self.entry.current, JobStage::Sample);
            return;
        }
        let values = self.sums.output();
        for (burst, lanes) in (first..).zip(values.chunks_exact(16)) {
            let mut bytes = [0; BURST as usize];
            for (two, lane) in bytes.chunks_exact_mut(2).zip(lanes) {
                two.copy_from_slice(&lane.to_le_bytes());
            }
            banks.write(self.job.bank, burst, &bytes);
        }
        self.states.outputs += 1;
        self.query += 1;
        self.stage = JobStage::Params;
    }
}
