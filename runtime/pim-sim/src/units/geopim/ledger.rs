//! Where a unit's time goes. Every tick from its start to its end has one label.

use std::collections::VecDeque;

/// What a unit does in a tick, or what its lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Label {
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

impl Label {
    /// How many there are.
    pub const COUNT: usize = 8;
    /// All, in the order of reports.
    pub const ALL: [Label; Label::COUNT] = [
        Label::Compute,
        Label::Column,
        Label::Row,
        Label::Activate,
        Label::Refresh,
        Label::Operand,
        Label::Address,
        Label::Idle,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        ["compute", "column", "row", "activate", "refresh", "operand", "address", "idle"][self as usize]
    }
}

/// The account of one unit.
#[derive(Clone, Debug)]
pub struct Ledger {
    spent: [u64; Label::COUNT],
    /// Up to here every tick has its label.
    upto: u64,
    /// What the sequencer did, in order of time and not yet asked for.
    noted: VecDeque<(u64, u64, Label)>,
}

impl Ledger {
    /// An account that opens at a tick.
    pub fn new(start: u64) -> Ledger {
        Ledger { spent: [0; Label::COUNT], upto: start, noted: VecDeque::new() }
    }

    /// The sequencer was busy with this from `from` to `to`. Calls come in order of time.
    pub fn note(&mut self, from: u64, to: u64, label: Label) {
        if from >= to || to <= self.upto {
            return;
        }
        match self.noted.back_mut() {
            Some(last) if last.2 == label && last.1 == from => last.1 = to,
            _ => self.noted.push_back((from, to, label)),
        }
    }

    /// The lanes waited up to `to`: for what the sequencer was busy with, and otherwise for `rest`.
    pub fn wait(&mut self, to: u64, rest: Label) {
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
    pub fn spend(&mut self, to: u64, label: Label) {
        self.spent[label as usize] += to.saturating_sub(self.upto);
        self.upto = self.upto.max(to);
    }

    /// Ticks of a label.
    pub fn of(&self, label: Label) -> u64 {
        self.spent[label as usize]
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
        l.note(10, 14, Label::Row);
        l.note(14, 20, Label::Column);
        l.note(22, 30, Label::Column);
        l.wait(24, Label::Address);
        l.spend(28, Label::Compute);
        l.wait(31, Label::Address);
        assert_eq!([Label::Row, Label::Column, Label::Address, Label::Compute].map(|x| l.of(x)), [4, 10, 3, 4]);
    }

    proptest! {
        #[test]
        fn every_tick_has_one_label(notes in prop::collection::vec((0u64..9, 1u64..9, 0usize..8), 0..20), waits in prop::collection::vec((1u64..20, any::<bool>()), 0..20)) {
            let mut l = Ledger::new(5);
            let mut at = 5;
            for (gap, length, label) in notes {
                l.note(at + gap, at + gap + length, Label::ALL[label]);
                at += gap + length;
            }
            let mut to = 5;
            for (length, busy) in waits {
                to += length;
                if busy { l.spend(to, Label::Compute) } else { l.wait(to, Label::Address) }
            }
            prop_assert_eq!(Label::ALL.map(|x| l.of(x)).iter().sum::<u64>(), to - 5);
        }
    }
}
