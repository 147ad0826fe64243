//! States of units with sequencers, and the tiles that they fetch and compute, as JSON for the page's script.

use crate::page::packed::{base64, pack};
use ptoc_pim_sim::machine::log::UnitTrace;
use ptoc_pim_sim::machine::report::Report;
use ptoc_pim_sim::units::geopim::UnitPhase;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// States that are drawn from afar, over all units; neighbours are joined where there are more.
const STATES: usize = 40_000;
/// States or tiles of a chunk.
const CHUNK: usize = 4096;
/// Bytes of all chunks.
const MOST: usize = 5 << 20;
/// The number of a state that stands for several.
const SEVERAL: u64 = 5;

/// Names of the states by their numbers.
pub(super) fn names() -> Vec<&'static str> {
    use UnitPhase::{Done, Idle, Load, Output, Process};
    [Idle, Load, Process, Output, Done].map(UnitPhase::name).into_iter().chain(["several states"]).collect()
}

/// A state: begin, end, number, samples, tiles.
type State = (u64, u64, u64, u64, u64);

/// What the units of a run did when.
pub(super) struct Units<'r> {
    /// By bank.
    traces: BTreeMap<usize, Vec<&'r UnitTrace>>,
    /// States that lie within so many ticks are joined.
    width: u64,
    chunks: Vec<Chunk>,
    /// What begins from this tick on is in no chunk.
    until: Option<u64>,
}

/// States or tiles of a bank that follow each other, packed.
struct Chunk {
    bank: usize,
    /// States, or else tiles.
    states: bool,
    from: u64,
    to: u64,
    count: usize,
    /// The number of the first one.
    first: usize,
    data: Vec<u8>,
}

impl<'r> Units<'r> {
    /// Those of a run; chunks of what ends before the tick `since` are left out.
    pub fn new(r: &'r Report, since: u64) -> Units<'r> {
        Units::of(r.unit_traces.iter().flatten(), STATES, MOST, since)
    }

    fn of(all: impl Iterator<Item = &'r UnitTrace>, joined: usize, most: usize, since: u64) -> Units<'r> {
        let mut traces: BTreeMap<usize, Vec<&UnitTrace>> = BTreeMap::new();
        all.for_each(|unit| traces.entry(unit.bank).or_default().push(unit));
        let mut units = Units { traces, width: 1, chunks: Vec::new(), until: None };
        let states = |units: &Units<'_>| units.traces.keys().map(|bank| units.states(*bank).len()).sum::<usize>();
        let mut chunks: Vec<Chunk> = units.traces.keys().flat_map(|bank| units.tiles_of(*bank)).collect();
        if states(&units) > joined {
            chunks.extend(units.traces.keys().flat_map(|bank| units.single_states(*bank)));
        }
        while states(&units) > joined && units.width < 1 << 62 {
            units.width *= 2;
        }
        chunks.retain(|c| c.to >= since);
        chunks.sort_by_key(|c| (c.from, c.bank, c.states));
        let mut bytes = 0;
        let kept = chunks.iter().take_while(|c| {
            bytes += c.data.len();
            bytes <= most
        });
        let kept = kept.count();
        units.until = chunks.get(kept).map(|c| c.from);
        chunks.truncate(kept);
        units.chunks = chunks;
        units
    }

    /// The tick from which on there are no tiles.
    pub fn until(&self) -> Option<u64> {
        self.until
    }

    /// States of the unit of a bank, as they are drawn from afar: a flat list with differences of begins.
    pub fn states_of(&self, bank: usize) -> Vec<u64> {
        let (mut states, mut last) = (Vec::new(), 0);
        for (begin, end, state, samples, done) in self.states(bank) {
            states.extend([begin - last, end - begin, state, samples, done]);
            last = begin;
        }
        states
    }

    /// Its states and tiles one by one: of each chunk whether it has states, its ticks, how many, the number of the
    /// first, and the columns.
    pub fn chunks_of(&self, bank: usize) -> Vec<Value> {
        let of_bank = self.chunks.iter().filter(|c| c.bank == bank);
        of_bank.map(|c| json!([u32::from(c.states), c.from, c.to, c.count, c.first, base64(&c.data)])).collect()
    }

    /// Tiles: begin of the fetch, ticks until it is there, until it is computed, and of computing.
    fn tiles_of(&self, bank: usize) -> Vec<Chunk> {
        let tiles = self.traces.get(&bank).into_iter().flatten().flat_map(|unit| &unit.tiles);
        let tiles: Vec<_> = tiles.collect();
        let chunk = |(n, tiles): (usize, &[&ptoc_pim_sim::units::geopim::TileTime])| {
            let from = tiles.first().map_or(0, |t| t.fetch.0);
            let mut columns = vec![Vec::new(); 4];
            let mut last = from;
            for tile in tiles {
                let ((fetch, there), (begin, end)) = (tile.fetch, tile.compute);
                let numbers = [fetch.saturating_sub(last), there - fetch, begin.saturating_sub(there), end - begin];
                columns.iter_mut().zip(numbers).for_each(|(column, n)| column.push(n));
                last = fetch;
            }
            let to = tiles.iter().map(|t| t.compute.1).max().unwrap_or(from);
            let (count, first) = (tiles.len(), n * CHUNK);
            Chunk { bank, states: false, from, to, count, first, data: pack(&columns) }
        };
        tiles.chunks(CHUNK).enumerate().map(chunk).collect()
    }

    /// States: begin, ticks, number, samples, tiles.
    fn single_states(&self, bank: usize) -> Vec<Chunk> {
        let states = self.states(bank);
        let chunk = |(n, states): (usize, &[State])| {
            let from = states.first().map_or(0, |s| s.0);
            let mut columns = vec![Vec::new(); 5];
            let mut last = from;
            for &(begin, end, state, samples, tiles) in states {
                let numbers = [begin.saturating_sub(last), end - begin, state, samples, tiles];
                columns.iter_mut().zip(numbers).for_each(|(column, n)| column.push(n));
                last = begin;
            }
            let to = states.last().map_or(from, |s| s.1);
            let (count, first) = (states.len(), n * CHUNK);
            Chunk { bank, states: true, from, to, count, first, data: pack(&columns) }
        };
        states.chunks(CHUNK).enumerate().map(chunk).collect()
    }

    fn states(&self, bank: usize) -> Vec<State> {
        let mut out: Vec<State> = Vec::new();
        for unit in self.traces.get(&bank).into_iter().flatten() {
            let ends = unit.phases.iter().skip(1).map(|p| p.begin).chain([unit.end]);
            for (phase, end) in unit.phases.iter().zip(ends) {
                let stretch = |tick: u64| tick / self.width;
                match out.last_mut() {
                    Some(last) if self.width > 1 && stretch(last.0) == stretch(end) => {
                        *last = (last.0, end, SEVERAL, last.3 + phase.samples, last.4 + phase.tiles);
                    }
                    _ => out.push((phase.begin, end, phase.state as u64, phase.samples, phase.tiles)),
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptoc_pim_sim::units::geopim::{Phase, TileTime};

    fn trace() -> UnitTrace {
        let phase = |state, begin, samples, tiles| Phase { state, begin, samples, tiles };
        let tile = |at| TileTime { fetch: (at, at + 8), compute: (at + 10, at + 30) };
        UnitTrace {
            bank: 3,
            place: Default::default(),
            phases: vec![
                phase(UnitPhase::Idle, 5, 0, 0),
                phase(UnitPhase::Load, 6, 0, 0),
                phase(UnitPhase::Process, 20, 1, 2),
                phase(UnitPhase::Done, 90, 0, 0),
            ],
            tiles: vec![tile(20), tile(40)],
            end: 100,
        }
    }

    fn columns(chunk: &Chunk, count: usize) -> Vec<u64> {
        let bytes = miniz_oxide::inflate::decompress_to_vec(&chunk.data).unwrap();
        assert_eq!(bytes.len(), count * chunk.count, "all are below 128");
        bytes.into_iter().map(u64::from).collect()
    }

    /// Rows 77 and 78: the page has each state in order, and when each tile is fetched and computed.
    #[test]
    fn states_and_tiles() {
        let trace = trace();
        let units = Units::of([&trace].into_iter(), 40, 1000, 0);
        assert_eq!(units.states_of(3), [5, 1, 0, 0, 0, 1, 14, 1, 0, 0, 14, 70, 2, 1, 2, 70, 10, 4, 0, 0]);
        let [tiles] = &units.chunks[..] else { panic!("one chunk") };
        assert_eq!(columns(tiles, 4), [0, 20, 8, 8, 2, 2, 20, 20]);
        assert_eq!((tiles.from, tiles.to, units.until), (20, 70, None));
        assert_eq!(units.chunks_of(3).len() + units.chunks_of(2).len(), 1);
        assert_eq!(names(), ["IDLE", "LOAD", "PROCESS", "OUTPUT", "DONE", "several states"]);
    }

    /// States that are joined from afar are there one by one, too, as far as the bound goes.
    #[test]
    fn short_states_are_joined() {
        let trace = trace();
        let units = Units::of([&trace].into_iter(), 3, 1000, 0);
        assert_eq!(units.states_of(3), [5, 15, 5, 0, 0, 15, 70, 2, 1, 2, 70, 10, 4, 0, 0]);
        let [states, tiles] = &units.chunks[..] else { panic!("two chunks") };
        assert_eq!(columns(states, 5)[..8], [0, 1, 14, 70, 1, 14, 70, 10]);
        assert!(states.states && !tiles.states);
        let units = Units::of([&trace].into_iter(), 3, states.data.len(), 0);
        assert_eq!((units.chunks.len(), units.until), (1, Some(20)));
    }
}
