//! States of units with sequencers, and the tiles that they fetch and compute, as JSON for the page's script.

use ptoc_pim_sim::machine::log::UnitTrace;
use ptoc_pim_sim::machine::report::Report;
use ptoc_pim_sim::units::geopim::UnitPhase;
use std::collections::BTreeMap;

/// States that are written, over all units; neighbours are joined where there are more.
const STATES: usize = 40_000;
/// Tiles that are written, over all units: the first.
const TILES: usize = 40_000;
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
    /// Tiles that are fetched from this tick on are left out.
    until: Option<u64>,
}

impl<'r> Units<'r> {
    pub fn new(r: &'r Report) -> Units<'r> {
        let mut traces: BTreeMap<usize, Vec<&UnitTrace>> = BTreeMap::new();
        r.unit_traces.iter().flatten().for_each(|unit| traces.entry(unit.bank).or_default().push(unit));
        let mut fetches: Vec<u64> =
            traces.values().flatten().flat_map(|unit| &unit.tiles).map(|tile| tile.fetch.0).collect();
        let until = (fetches.len() > TILES).then(|| *fetches.select_nth_unstable(TILES).1);
        let mut units = Units { traces, width: 1, until };
        let states = |units: &Units<'_>| units.traces.keys().map(|bank| units.states(*bank).len()).sum::<usize>();
        while states(&units) > STATES && units.width < 1 << 62 {
            units.width *= 2;
        }
        units
    }

    /// The tick from which on there are no tiles.
    pub fn until(&self) -> Option<u64> {
        self.until
    }

    /// States and tiles of the unit of a bank: flat lists with differences of begins.
    pub fn of(&self, bank: usize) -> (Vec<u64>, Vec<u64>) {
        let (mut states, mut tiles, mut last) = (Vec::new(), Vec::new(), 0);
        for (begin, end, state, samples, done) in self.states(bank) {
            states.extend([begin - last, end - begin, state, samples, done]);
            last = begin;
        }
        last = 0;
        let all = self.traces.get(&bank).into_iter().flatten().flat_map(|unit| &unit.tiles);
        for tile in all.filter(|tile| self.until.is_none_or(|until| tile.fetch.0 < until)) {
            let ((from, there), (begin, end)) = (tile.fetch, tile.compute);
            tiles.extend([from - last, there - from, begin.saturating_sub(there), end - begin]);
            last = from;
        }
        (states, tiles)
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

    fn units(trace: &UnitTrace, width: u64, until: Option<u64>) -> Units<'_> {
        Units { traces: BTreeMap::from([(trace.bank, vec![trace])]), width, until }
    }

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

    /// Rows 77 and 78: the page has each state in order, and when each tile is fetched and computed.
    #[test]
    fn states_and_tiles() {
        let trace = trace();
        let (states, tiles) = units(&trace, 1, None).of(3);
        assert_eq!(states, [5, 1, 0, 0, 0, 1, 14, 1, 0, 0, 14, 70, 2, 1, 2, 70, 10, 4, 0, 0]);
        assert_eq!(tiles, [20, 8, 2, 20, 20, 8, 2, 20]);
        assert_eq!(units(&trace, 1, Some(40)).of(3).1, [20, 8, 2, 20]);
        assert_eq!(names(), ["IDLE", "LOAD", "PROCESS", "OUTPUT", "DONE", "several states"]);
    }

    #[test]
    fn short_states_are_joined() {
        let trace = trace();
        let (states, _) = units(&trace, 32, None).of(3);
        assert_eq!(states, [5, 15, 5, 0, 0, 15, 70, 2, 1, 2, 70, 10, 4, 0, 0]);
    }
}
