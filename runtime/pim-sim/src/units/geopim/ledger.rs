//! Where a unit's time goes. Every tick from its start to its end has one label.

use std::collections::VecDeque;

/// What a unit does in a tick, or what its lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum TickLabel {
    /// The lanes compute.
    Compute,
    /// For bursts of the map from an open row: tCCD, and the way into the buffer.
    Column,
    /// For a row of the map: tRP, tRCD, and what precedes them.
    Row,
    /// For the right to open one: tRRD and tFAW, which the banks of a pseudo-channel share.
    Activate,
    /// For refreshes.
    Refresh,
    /// For parameters, weights and offsets, and for the output to be written.
    Operand,
    /// For addresses, and for the next edge of the unit's clock.
    Address,
    /// Nothing left to do while other units work.
    Idle,
}

impl TickLabel {
    /// How many there are.
    pub const COUNT: usize = 8;
    /// All, in the order of reports.
    pub const ALL: [TickLabel; TickLabel::COUNT] = [
        TickLabel::Compute,
        TickLabel::Column,
        TickLabel::Row,
        TickLabel::Activate,
        TickLabel::Refresh,
        TickLabel::Operand,
        TickLabel::Address,
        TickLabel::Idle,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        ["compute", "column", "row", "activate", "refresh", "operand", "address", "idle"][self as usize]
    }
}

/// The account of one unit.
#[derive(Clone, Debug)]
pub struct Ledger {
    spent: [u64; TickLabel::COUNT],
    /// Up to here every tick has its label.
    upto: u64,
    /// What the sequencer did, in order of time and not yet asked for.
    noted: VecDeque<(u64, u64, TickLabel)>,
    busy: Busy,
}

/// When the lanes computed, in a bounded number of stretches.
#[derive(Clone, Debug)]
struct Busy {
    /// A stretch has 2^shift ticks.
    shift: u32,
    /// The first one that is kept.
    first: u64,
    ticks: Vec<u32>,
}

impl Busy {
    /// Beyond so many stretches they become twice as long.
    const MOST: u64 = 512;

    fn add(&mut self, mut from: u64, to: u64) {
        while from < to {
            let n = from >> self.shift;
            if n - self.first >= Busy::MOST {
                self.widen();
                continue;
            }
            let end = ((n + 1) << self.shift).min(to);
            let at = (n - self.first) as usize;
            if at >= self.ticks.len() {
                self.ticks.resize(at + 1, 0);
            }
            self.ticks[at] = self.ticks[at].saturating_add(u32::try_from(end - from).unwrap_or(u32::MAX));
            from = end;
        }
    }

    fn widen(&mut self) {
        let first = self.first / 2;
        let mut wider = vec![0u32; self.ticks.len() / 2 + 1];
        for (n, ticks) in (self.first..).zip(&self.ticks) {
            let at = &mut wider[(n / 2 - first) as usize];
            *at = at.saturating_add(*ticks);
        }
        (self.shift, self.first, self.ticks) = (self.shift + 1, first, wider);
    }
}

impl Ledger {
    /// An account that opens at a tick.
    pub fn new(start: u64) -> Ledger {
        let busy = Busy { shift: 0, first: start, ticks: Vec::new() };
        Ledger { spent: [0; TickLabel::COUNT], upto: start, noted: VecDeque::new(), busy }
    }

    /// The sequencer was busy with this from `from` to `to`. Calls come in order of time.
    pub fn note(&mut self, from: u64, to: u64, label: TickLabel) {
        if from >= to || to <= self.upto {
            return;
        }
        match self.noted.back_mut() {
            Some(last) if last.2 == label && last.1 == from => last.1 = to,
            _ => self.noted.push_back((from, to, label)),
        }
    }

    /// The lanes waited up to `to`: for what the sequencer was busy with, and otherwise for `rest`.
    pub fn wait(&mut self, to: u64, rest: TickLabel) {
        while self.upto < to {
            match self.noted.front().copied() {
                Some((_, end, _)) if end <= self.upto => drop(self.noted.pop_front()),
                Some((from, end, label)) if from <= self.upto => self.spend(end.min(to), label),
                Some((from, ..)) => self.spend(from.min(to), rest),
                None => self.spend(to, rest),
            }
        }
    }

    /// The time up to `to` has this label.
    pub fn spend(&mut self, to: u64, label: TickLabel) {
        self.spent[label as usize] += to.saturating_sub(self.upto);
        if label == TickLabel::Compute {
            self.busy.add(self.upto, to);
        }
        self.upto = self.upto.max(to);
    }

    /// Ticks of a label.
    pub fn of(&self, label: TickLabel) -> u64 {
        self.spent[label as usize]
    }

    /// When the lanes computed: stretches of equal length, by their first ticks, and the ticks of each.
    pub fn busy(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.busy.first;
        (first..).zip(&self.busy.ticks).map(|(n, ticks)| (n << self.busy.shift, u64::from(*ticks)))
    }

    /// Up to where the account goes.
    pub fn upto(&self) -> u64 {
        self.upto
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn waiting_takes_what_the_sequencer_did() {
        let mut l = Ledger::new(10);
        l.note(10, 14, TickLabel::Row);
        l.note(14, 20, TickLabel::Column);
        l.note(22, 30, TickLabel::Column);
        l.wait(24, TickLabel::Address);
        l.spend(28, TickLabel::Compute);
        l.wait(31, TickLabel::Address);
        assert_eq!(
            [TickLabel::Row, TickLabel::Column, TickLabel::Address, TickLabel::Compute].map(|x| l.of(x)),
            [4, 10, 3, 4]
        );
    }

    proptest! {
        #[test]
        fn every_tick_has_one_label(
            notes in prop::collection::vec((0u64..9, 1u64..9, 0usize..8), 0..20),
            waits in prop::collection::vec((1u64..20, any::<bool>()), 0..20),
        ) {
            let mut l = Ledger::new(5);
            let mut at = 5;
            for (gap, length, label) in notes {
                l.note(at + gap, at + gap + length, TickLabel::ALL[label]);
                at += gap + length;
            }
            let mut to = 5;
            for (length, busy) in waits {
                to += length;
                if busy { l.spend(to, TickLabel::Compute) } else { l.wait(to, TickLabel::Address) }
            }
            prop_assert_eq!(TickLabel::ALL.map(|x| l.of(x)).iter().sum::<u64>(), to - 5);
        }
    }

    /// Stretches hold every tick of computing, where it was, however long the run.
    #[test]
    fn stretches_grow() {
        let mut l = Ledger::new(1000);
        for n in 0..5000u64 {
            l.spend(1000 + 10 * n + 3, TickLabel::Row);
            l.spend(1000 + 10 * n + 10, TickLabel::Compute);
        }
        let busy: Vec<(u64, u64)> = l.busy().collect();
        assert!(busy.len() <= 512 && busy.len() > 128, "{}", busy.len());
        assert_eq!(busy.iter().map(|b| b.1).sum::<u64>(), 5000 * 7);
        let width = busy[1].0 - busy[0].0;
        assert!(width.is_power_of_two() && busy.iter().all(|(from, ticks)| from % width == 0 && *ticks <= width));
        assert_eq!(busy[0].0, 1000 / width * width);
    }
}
