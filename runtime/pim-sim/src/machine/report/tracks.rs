//! The timeline beside the commands: steps, and what units did.

use super::Report;
use crate::dram::Config;
use crate::machine::log::Slice;
use crate::perfetto::{self, Channel, Track};
use ptoc_pim_stream::stream::SourceLine;
use std::collections::BTreeMap;

impl Report {
    /// The whole timeline, if the run kept its commands: banks and buses, steps, units.
    pub fn timeline(&self, config: &Config) -> String {
        let mut internal = self.internal.iter().flatten();
        let channels = self.trace.iter().flatten();
        let channels: Vec<Channel<'_>> =
            channels.map(|issued| Channel { issued, internal: internal.next().map_or(&[], |i| &i[..]) }).collect();
        let mut out = String::new();
        perfetto::write_with(&mut out, config, &channels, &self.tracks(config)).expect("a string takes everything");
        out
    }

    /// A track for the steps, one for the kernels of a program, and one for each unit. The units of a pseudo-channel
    /// that take commands together do the same.
    pub fn tracks(&self, config: &Config) -> Vec<Track> {
        let steps = self.steps.iter().zip(&self.names);
        let slices = steps.map(|((from, to), (name, place))| (*from, *to, format!("{name}{}", self.suffix(*place))));
        let mut tracks = vec![Track { pch: None, name: "steps".into(), slices: slices.collect() }];
        if !self.launches.is_empty() {
            let launches = self.launches.iter();
            let slices = launches.map(|l| (l.start, l.end, format!("{}{}", l.kernel, self.suffix(l.place))));
            tracks.push(Track { pch: None, name: "launches".into(), slices: slices.collect() });
        }
        let per_pch = (self.shape[1] * self.shape[2]) as usize;
        let mut own: BTreeMap<(usize, Option<usize>), Vec<_>> = BTreeMap::new();
        for s in self.slices.iter().flatten() {
            own.entry((s.pch, s.unit)).or_default().push(self.named(s));
        }
        let mut accesses = self.accesses(config);
        for ((pch, unit), slices) in own {
            match unit {
                Some(number) => {
                    let [.., group, bank] = self.bank(number);
                    let name = format!("unit of bank group {group} bank {bank}");
                    let mut slices = slices;
                    slices.extend(accesses.remove(&number).unwrap_or_default());
                    slices.sort_by_key(|(from, to, _)| (*from, std::cmp::Reverse(*to)));
                    tracks.push(Track { pch: Some(pch), name, slices });
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

    /// What units with sequencers read and wrote, by bank.
    fn accesses(&self, config: &Config) -> BTreeMap<usize, Vec<(u64, u64, String)>> {
        let mut out: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        let [pchs, groups, banks] = self.shape.map(|n| n as usize);
        let moved = config.ticks(config.timing.bl);
        let channels = self.trace.iter().flatten().zip(self.internal.iter().flatten()).enumerate();
        for (channel, (issued, internal)) in channels.filter(|_| self.unit == "geopim") {
            for (i, _) in issued.iter().zip(internal).filter(|(i, internal)| **internal && i.command.is_column()) {
                let a = &i.address;
                let group = (channel * pchs + usize::from(a.pc)) * groups + usize::from(a.bankgroup);
                let name = format!("{} row {} column {}", i.command.name(), a.row, a.column);
                out.entry(group * banks + usize::from(a.bank)).or_default().push((i.tick, i.tick + moved, name));
            }
        }
        out
    }

    fn suffix(&self, place: SourceLine) -> String {
        if place.file == 0 { String::new() } else { format!(" {}", self.place(place)) }
    }

    fn named(&self, s: &Slice) -> (u64, u64, String) {
        (s.start, s.end, format!("{}{}", s.bucket.name(), self.suffix(s.place)))
    }
}
