//! The timeline beside the commands: steps, and what units did.

use super::Report;
use crate::dram::Config;
use crate::machine::log::{Slice, UnitTrace};
use crate::timeline::{self, Channel, NamedSlice, Track};
use ptoc_pim_stream::stream::SourceLine;
use ptoc_trace::Trace;
use std::collections::BTreeMap;

impl Report {
    /// The whole timeline, if the run kept its commands: banks and buses, steps, units.
    pub fn timeline(&self, config: &Config) -> Trace {
        let mut internal = self.internal.iter().flatten();
        let channels = self.trace.iter().flatten();
        let channels: Vec<Channel<'_>> =
            channels.map(|issued| Channel { issued, internal: internal.next().map_or(&[], |i| &i[..]) }).collect();
        timeline::with_tracks(config, &channels, &self.tracks())
    }

    /// A track for the steps, one for the kernels of a program, and those of the units. The units of a pseudo-channel
    /// that take commands together do the same; one with a sequencer has its states, and the tiles that it fetches and
    /// computes.
    pub fn tracks(&self) -> Vec<Track> {
        let steps = self.steps.iter().zip(&self.names);
        let slices = steps.map(|((from, to), (name, place))| self.slice((*from, *to), name, name, *place));
        let mut tracks = vec![Track { pch: None, name: "steps".into(), slices: slices.collect() }];
        if !self.launches.is_empty() {
            let launches = self.launches.iter();
            let slices = launches.map(|l| self.slice((l.start, l.end), "launch", &l.kernel, l.place));
            tracks.push(Track { pch: None, name: "launches".into(), slices: slices.collect() });
        }
        let per_pch = (self.shape[1] * self.shape[2]) as usize;
        let mut own: BTreeMap<usize, Vec<NamedSlice>> = BTreeMap::new();
        for s in self.slices.iter().flatten() {
            own.entry(s.pch).or_default().push(self.named(s));
        }
        for (pch, slices) in own {
            match self.unit {
                "hbm-pim" => (0..per_pch / 2).for_each(|unit| {
                    tracks.push(Track { pch: Some(pch), name: format!("unit {unit}"), slices: slices.clone() });
                }),
                // Broadcasts.
                _ => tracks.push(Track { pch: Some(pch), name: "all banks".into(), slices }),
            }
        }
        let mut units: BTreeMap<usize, Vec<&UnitTrace>> = BTreeMap::new();
        self.unit_traces.iter().flatten().for_each(|unit| units.entry(unit.bank).or_default().push(unit));
        for (bank, executions) in units {
            let [.., group, in_group] = self.bank(bank);
            let name = |what: &str| format!("unit of bank group {group} bank {in_group}: {what}");
            let track = |what, slices| Track { pch: Some(bank / per_pch), name: name(what), slices };
            tracks.push(track("state", executions.iter().flat_map(|u| self.states(u)).collect()));
            tracks.push(track("fetch", executions.iter().flat_map(|u| tiles(u, |t| t.fetch)).collect()));
            tracks.push(track("compute", executions.iter().flat_map(|u| tiles(u, |t| t.compute)).collect()));
        }
        tracks
    }

    /// The states of a unit, each until the next begins.
    fn states(&self, unit: &UnitTrace) -> Vec<NamedSlice> {
        let ends = unit.phases.iter().skip(1).map(|p| p.begin).chain([unit.end]);
        let slice = |(phase, end): (&crate::units::geopim::Phase, u64)| NamedSlice {
            numbers: vec![("samples", phase.samples), ("tiles", phase.tiles)],
            ..self.slice((phase.begin, end), phase.state.name(), phase.state.name(), unit.place)
        };
        unit.phases.iter().zip(ends).map(slice).collect()
    }

    fn slice(&self, ticks: (u64, u64), class: &'static str, name: &str, place: SourceLine) -> NamedSlice {
        NamedSlice { ticks, name: format!("{name}{}", self.suffix(place)), class, numbers: Vec::new() }
    }

    fn suffix(&self, place: SourceLine) -> String {
        if place.file == 0 { String::new() } else { format!(" {}", self.place(place)) }
    }

    fn named(&self, s: &Slice) -> NamedSlice {
        self.slice((s.start, s.end), s.bucket.name(), s.bucket.name(), s.place)
    }
}

/// The tiles of a unit by their numbers.
fn tiles(unit: &UnitTrace, ticks: impl Fn(&crate::units::geopim::TileTime) -> (u64, u64)) -> Vec<NamedSlice> {
    let slice = |(number, tile)| NamedSlice {
        ticks: ticks(tile),
        name: "tile".into(),
        class: "tile",
        numbers: vec![("tile", number)],
    };
    (0..).zip(&unit.tiles).map(slice).collect()
}
