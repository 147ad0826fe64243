//! What every bank did when: counts in bins of time, whose number is bounded however long the run, and the commands one
//! by one, packed. Pages draw it.
//!
//! Accesses are told apart by the commands of their bank since the access before: none (a hit), ACT (a miss), PRE and
//! ACT (a conflict). A command for many banks counts at each of them.

use super::kept::Kept;
pub use super::kept::{COLUMNS, Chunk, MOST, Moment};
use crate::dram::{Command, Config, Issued};
use ptoc_pim_stream::stream::SourceLine;
use std::sync::Arc;

/// Bins of a bank, at most; when time goes beyond them they become twice as wide.
const BINS: u64 = 512;

/// What is counted in a bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Rows opened.
    Act,
    /// Bursts read.
    Rd,
    /// Bursts written.
    Wr,
    /// Accesses that found their row open.
    Hit,
    /// Accesses that had a row opened.
    Miss,
    /// Accesses that had another row closed first.
    Conflict,
    /// Ticks in which the bank's unit computed.
    Compute,
    /// Ticks of refresh.
    Refresh,
}

impl Count {
    /// How many there are.
    pub const COUNT: usize = 8;
}

/// A bank in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// By [`Count`].
    pub counts: [u32; Count::COUNT],
    /// The first line that it worked for; file 0 is none.
    pub place: SourceLine,
    /// It worked for others, too.
    pub others: bool,
}

impl Bin {
    fn add(&mut self, what: Count, n: u64, place: SourceLine) {
        let count = &mut self.counts[what as usize];
        *count = count.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
        self.works_for(place, false);
    }

    fn works_for(&mut self, place: SourceLine, others: bool) {
        self.others |= others;
        if self.place.file == 0 {
            self.place = place;
        } else if place.file != 0 && place != self.place {
            self.others = true;
        }
    }

    fn join(&mut self, other: &Bin) {
        self.counts.iter_mut().zip(other.counts).for_each(|(a, b)| *a = a.saturating_add(b));
        self.works_for(other.place, other.others);
    }
}

/// A bank's bins from tick 0 on.
#[derive(Clone, Debug, Default)]
pub struct Bins {
    /// A bin has 2^shift ticks.
    shift: u32,
    bins: Vec<Bin>,
}

impl Bins {
    fn widen(&mut self) {
        self.shift += 1;
        self.bins = self
            .bins
            .chunks(2)
            .map(|two| {
                let mut bin = two[0];
                two[1..].iter().for_each(|b| bin.join(b));
                bin
            })
            .collect();
    }

    /// With bins of 2^shift ticks, which are not narrower than they were.
    fn widen_to(&mut self, shift: u32) {
        while self.shift < shift {
            self.widen();
        }
    }

    fn at(&mut self, tick: u64) -> &mut Bin {
        while tick >> self.shift >= BINS {
            self.widen();
        }
        let n = (tick >> self.shift) as usize;
        if n >= self.bins.len() {
            self.bins.resize(n + 1, Bin::default());
        }
        &mut self.bins[n]
    }

    fn fill(&mut self, from: u64, to: u64, what: Count, place: SourceLine) {
        // The width is settled by the last tick.
        if to > from {
            self.at(to - 1);
        }
        let mut at = from;
        while at < to {
            let end = (((at >> self.shift) + 1) << self.shift).min(to);
            self.at(at).add(what, end - at, place);
            at = end;
        }
    }
}

/// The past of the banks of a channel; after [`History::joined`] of all.
#[derive(Clone, Debug)]
pub struct History {
    banks: Vec<Bins>,
    /// Of each bank: since its last access another row was closed, a row was opened.
    rows: Vec<[bool; 2]>,
    kept: Arc<Kept>,
    per_pch: usize,
    bank: usize,
    /// Ticks of a refresh of all banks, and of one.
    refresh: [u64; 2],
}

impl History {
    /// Nothing has happened in a channel. Commands are kept one by one from a tick on.
    pub fn new(config: &Config, from: u64) -> History {
        let org = &config.org;
        let per_pch = org.banks_per_pc() as usize;
        let per_channel = per_pch * org.pseudochannel as usize;
        History {
            banks: vec![Bins::default(); per_channel],
            rows: vec![[false; 2]; per_channel],
            kept: Arc::new(Kept::new(from)),
            per_pch,
            bank: org.bank as usize,
            refresh: [config.timing.rfc, config.timing.rfc_pb].map(|n| config.ticks(n)),
        }
    }

    /// The banks that follow a command to one of them.
    fn followers(&self, bank: usize, banks: u64) -> impl Iterator<Item = usize> + use<> {
        let first = bank / self.per_pch * self.per_pch;
        let all = first..first + self.per_pch;
        let step = match usize::try_from(banks).unwrap_or(1) {
            0 | 1 => return (bank..bank + 1).step_by(1),
            n if n < self.per_pch => (self.per_pch / n).max(1),
            _ => 1,
        };
        (first + bank % step..all.end).step_by(step)
    }

    /// A command was issued, and so many banks follow it.
    pub fn issued(&mut self, i: &Issued, banks: u64, place: SourceLine) {
        let a = &i.address;
        let pch = usize::from(a.pc);
        let bank = pch * self.per_pch + usize::from(a.bankgroup) * self.bank + usize::from(a.bank);
        let all = self.per_pch as u64;
        let banks = if matches!(i.command, Command::PreAb | Command::RefAb | Command::RfmAb) { all } else { banks };
        for n in self.followers(bank, banks) {
            self.note(n, i, place);
        }
        Arc::make_mut(&mut self.kept).push(Moment {
            tick: i.tick,
            command: i.command,
            bank: bank as u32,
            banks: banks as u32,
            at: [a.row, a.column],
            compute: 0,
            place,
        });
    }

    fn note(&mut self, bank: usize, i: &Issued, place: SourceLine) {
        let (bins, [closed, opened]) = (&mut self.banks[bank], &mut self.rows[bank]);
        let refresh = |ticks: u64| (i.tick, i.tick.saturating_add(ticks));
        let what = match i.command {
            Command::Act => {
                *opened = true;
                Count::Act
            }
            Command::PrePb => return *closed = true,
            Command::PreAb => return,
            Command::Rd | Command::RdA => Count::Rd,
            Command::Wr | Command::WrA => Count::Wr,
            Command::RefAb | Command::RfmAb | Command::RefPb | Command::RfmPb => {
                // It was the refresh that closed the row.
                *closed = false;
                let one = matches!(i.command, Command::RefPb | Command::RfmPb);
                let (from, to) = refresh(self.refresh[usize::from(one)]);
                return bins.fill(from, to, Count::Refresh, SourceLine::default());
            }
        };
        bins.at(i.tick).add(what, 1, place);
        if i.command.is_column() {
            let found = match (*opened, *closed) {
                (false, _) => Count::Hit,
                (true, false) => Count::Miss,
                (true, true) => Count::Conflict,
            };
            bins.at(i.tick).add(found, 1, place);
            (*opened, *closed) = (false, false);
        }
    }

    /// The units of the banks that followed the last command of a channel compute for so many ticks.
    pub fn stepped(&mut self, bank: usize, banks: u64, from: u64, to: u64, place: SourceLine) {
        for n in self.followers(bank, banks) {
            self.banks[n].fill(from, to, Count::Compute, place);
        }
        if let Some(last) = Arc::make_mut(&mut self.kept).last(from, bank) {
            last.compute = u32::try_from(to - from).unwrap_or(u32::MAX);
        }
    }

    /// The unit of a bank computed: stretches of time that begin at these ticks, and in each so many ticks.
    pub fn computed(&mut self, bank: usize, stretches: impl Iterator<Item = (u64, u64)>, place: SourceLine) {
        for (from, ticks) in stretches.filter(|(_, ticks)| *ticks > 0) {
            self.banks[bank].at(from).add(Count::Compute, ticks, place);
        }
    }

    /// The run is over: all bins get one width. Of at most `most` bins with anything in them, if that can be.
    pub fn finish(&mut self, ticks: u64) {
        let mut shift = self.banks.iter().map(|b| b.shift).max().unwrap_or(0);
        while ticks >> shift >= BINS {
            shift += 1;
        }
        self.banks.iter_mut().for_each(|b| b.widen_to(shift));
        let kept = Arc::make_mut(&mut self.kept);
        kept.seal();
        kept.finish();
    }

    /// Ticks of a bin.
    pub fn width(&self) -> u64 {
        1 << self.banks.first().map_or(0, |b| b.shift)
    }

    /// The same with wider bins, so that at most `most` of them have something in them (or each bank has one).
    pub fn at_most(&self, most: usize) -> History {
        let mut out = self.clone();
        while out.filled() > most && out.banks.iter().any(|b| b.bins.len() > 1) {
            out.banks.iter_mut().for_each(Bins::widen);
        }
        out
    }

    fn filled(&self) -> usize {
        self.banks.iter().flat_map(|b| &b.bins).filter(|b| b.counts != [0; Count::COUNT]).count()
    }

    /// Those of the channels of a device, one after the other.
    pub fn joined(channels: impl Iterator<Item = History>) -> Option<History> {
        channels.reduce(|mut all, mut own| {
            let before = all.banks.len() as u32;
            Arc::make_mut(&mut own.kept).seal();
            let (all_kept, own_kept) = (Arc::make_mut(&mut all.kept), Arc::unwrap_or_clone(own.kept));
            all_kept.seal();
            all_kept.join(own_kept, before);
            all.banks.append(&mut own.banks);
            all.rows.append(&mut own.rows);
            all
        })
    }

    /// The bins of a bank from tick 0 on; those behind the last are empty.
    pub fn bins(&self, bank: usize) -> &[Bin] {
        &self.banks[bank].bins
    }

    /// How many banks there are.
    pub fn banks(&self) -> usize {
        self.banks.len()
    }

    /// The tick from which on commands were to be kept.
    pub fn since(&self) -> u64 {
        self.kept.from
    }

    /// The commands that were kept, by the ticks of the first ones: all from [`History::since`] on and before the tick
    /// that comes with them, `None` for all of the run.
    pub fn chunks(&self) -> (&[Chunk], Option<u64>) {
        (&self.kept.chunks, (self.kept.lost != u64::MAX).then_some(self.kept.lost))
    }

    /// The lines that the commands of a channel name, by their numbers in chunks.
    pub fn places(&self, channel: u32) -> &[SourceLine] {
        self.kept.places.get(channel as usize).map_or(&[], |all| all)
    }

    /// How many channels there are.
    pub fn channels(&self) -> u32 {
        self.kept.places.len() as u32
    }

    /// The same commands, by tick.
    pub fn commands(&self) -> (Vec<Moment>, Option<u64>) {
        let (chunks, until) = self.chunks();
        let all = chunks.iter().flat_map(|c| self.kept.moments(c).unwrap_or_default());
        let mut all: Vec<Moment> = all.filter(|m| until.is_none_or(|until| m.tick < until)).collect();
        all.sort_by_key(|m| (m.tick, m.bank));
        (all, until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: SourceLine = SourceLine { file: 1, line: 2 };
    const B: SourceLine = SourceLine { file: 1, line: 3 };

    proptest! {
        /// However far time goes, nothing is lost, and each count is in the bin of its tick.
        #[test]
        fn bins_hold_everything(events in prop::collection::vec((0u64..1 << 40, 1u64..1 << 20), 1..60)) {
            let mut bins = Bins::default();
            for (tick, length) in &events {
                bins.at(*tick).add(Count::Act, 1, A);
                bins.fill(*tick, tick + length, Count::Compute, B);
            }
            let sum = |what: Count| bins.bins.iter().map(|b| u64::from(b.counts[what as usize])).sum::<u64>();
            prop_assert!(bins.bins.len() as u64 <= BINS);
            prop_assert_eq!(sum(Count::Act), events.len() as u64);
            prop_assert_eq!(sum(Count::Compute), events.iter().map(|e| e.1).sum::<u64>());
            for (n, bin) in bins.bins.iter().enumerate() {
                let of = events.iter().filter(|(tick, _)| tick >> bins.shift == n as u64).count();
                prop_assert_eq!(bin.counts[Count::Act as usize], of as u32);
                prop_assert!(of == 0 || bin.others);
            }
        }
    }

    #[test]
    fn lines_of_bins() {
        let mut bins = Bins::default();
        bins.at(0).add(Count::Refresh, 5, SourceLine::default());
        bins.at(1).add(Count::Rd, 1, A);
        assert_eq!((bins.bins[0].place, bins.bins[1].place, bins.bins[1].others), (SourceLine::default(), A, false));
        bins.at(600).add(Count::Rd, 1, B);
        assert_eq!((bins.shift, bins.bins[0].place, bins.bins[0].others), (1, A, false));
        bins.widen_to(10);
        assert_eq!((bins.bins.len(), bins.bins[0].place, bins.bins[0].others), (1, A, true));
    }
}
