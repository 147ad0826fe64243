//! Who touched a byte last, and whether a barrier lies between.
//!
//! Threads of a CTA are ordered by nothing but barriers of all of them, and CTAs of a launch by nothing at all. So two
//! accesses to a byte race if one of them writes, they come from different threads with no barrier between, or from
//! different CTAs, and not both of them are atomic.

use std::ops::Range;

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RaceAccess {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A read and a write in one step.
    Atomic,
}

impl RaceAccess {
    /// The verb, of several that do it.
    pub fn name(self) -> &'static str {
        match self {
            RaceAccess::Read => "read",
            RaceAccess::Write => "write",
            RaceAccess::Atomic => "update",
        }
    }
}

/// A thread, how many barriers it has passed, and the instruction that it is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Who {
    pub(super) cta: u32,
    pub(super) thread: u32,
    pub(super) epoch: u32,
    pub(super) pc: u32,
}

/// Nobody yet.
const NOBODY: Who = Who { cta: u32::MAX, thread: u32::MAX, epoch: 0, pc: 0 };

impl Who {
    /// Whether an access of `self` and one of `other`, which came before, may happen in the other order.
    fn races(self, other: Who) -> bool {
        other.cta != NOBODY.cta && (self.cta != other.cta || (self.epoch == other.epoch && self.thread != other.thread))
    }
}

/// Those of several accesses that later ones may race with, as far as it takes: whatever races with one that is left
/// out races with one of these two.
#[derive(Clone, Copy, Debug)]
struct Some2 {
    first: Who,
    other: Who,
}

impl Some2 {
    const NONE: Some2 = Some2 { first: NOBODY, other: NOBODY };

    fn add(&mut self, who: Who) {
        let first = self.first;
        if first.cta == NOBODY.cta {
            self.first = who;
        } else if first.cta != who.cta || (self.other.cta != NOBODY.cta && self.other.cta != first.cta) {
            // Everyone races with one of two CTAs.
            if self.other.cta == NOBODY.cta || self.other.cta == first.cta {
                self.other = who;
            }
        } else if first.epoch != who.epoch {
            *self = Some2 { first: who, other: NOBODY };
        } else if first.thread != who.thread {
            self.other = who;
        }
    }

    fn racing(&self, who: Who) -> Option<Who> {
        [self.first, self.other].into_iter().find(|other| who.races(*other))
    }
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    written: Who,
    updated: Some2,
    read: Some2,
}

const UNTOUCHED: Cell = Cell { written: NOBODY, updated: Some2::NONE, read: Some2::NONE };

impl Cell {
    /// Marks an access; the one before that it races with.
    fn touch(&mut self, access: RaceAccess, who: Who) -> Option<(RaceAccess, Who)> {
        if who.races(self.written) {
            return Some((RaceAccess::Write, self.written));
        }
        let updated = || self.updated.racing(who).map(|other| (RaceAccess::Atomic, other));
        let read = || self.read.racing(who).map(|other| (RaceAccess::Read, other));
        match access {
            RaceAccess::Read => {
                if let Some(race) = updated() {
                    return Some(race);
                }
                self.read.add(who);
            }
            RaceAccess::Write => {
                if let Some(race) = updated().or_else(read) {
                    return Some(race);
                }
                self.written = who;
            }
            RaceAccess::Atomic => {
                if let Some(race) = read() {
                    return Some(race);
                }
                self.updated.add(who);
            }
        }
        None
    }
}

/// Marks of the bytes of a memory: one for each aligned group of bytes that accesses have not told apart yet.
#[derive(Debug)]
pub(super) struct Shadow {
    cells: Vec<Cell>,
    size: usize,
    /// A group has `1 << shift` bytes.
    shift: u32,
}

impl Shadow {
    pub(super) fn new(size: usize) -> Shadow {
        Shadow { cells: vec![UNTOUCHED; size.div_ceil(4)], size, shift: 2 }
    }

    /// Marks an access, which lies inside; the one before that it races with.
    pub(super) fn touch(&mut self, bytes: Range<usize>, access: RaceAccess, who: Who) -> Option<(RaceAccess, Who)> {
        while (bytes.start | bytes.end) & ((1 << self.shift) - 1) != 0 && self.shift > 0 {
            self.split();
        }
        let cells = bytes.start >> self.shift..bytes.end >> self.shift;
        self.cells[cells].iter_mut().find_map(|cell| cell.touch(access, who))
    }

    /// Halves the groups.
    fn split(&mut self) {
        self.shift -= 1;
        let halves = self.cells.iter().flat_map(|cell| [*cell; 2]);
        self.cells = halves.take(self.size.div_ceil(1 << self.shift)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::{RaceAccess, Shadow, Who};

    fn who(cta: u32, thread: u32, epoch: u32) -> Who {
        Who { cta, thread, epoch, pc: 0 }
    }

    fn races(s: &mut Shadow, bytes: std::ops::Range<usize>, access: RaceAccess, by: Who) -> bool {
        s.touch(bytes, access, by).is_some()
    }

    #[test]
    fn barriers_order_threads_of_one_cta() {
        let s = &mut Shadow::new(4);
        assert!(!races(s, 0..4, RaceAccess::Write, who(0, 1, 0)));
        assert!(!races(s, 0..2, RaceAccess::Read, who(0, 1, 0)), "the same thread");
        assert!(races(s, 0..2, RaceAccess::Read, who(0, 2, 0)), "no barrier between");
        assert!(!races(s, 2..4, RaceAccess::Read, who(0, 2, 1)), "a barrier between");
        assert!(!races(s, 2..4, RaceAccess::Read, who(0, 3, 1)), "two that read");
        assert!(races(s, 3..4, RaceAccess::Write, who(0, 3, 1)), "one of which another has read");
        assert!(races(s, 2..3, RaceAccess::Read, who(1, 3, 9)), "another CTA");
    }

    #[test]
    fn atomics_race_with_plain_accesses_only() {
        let s = &mut Shadow::new(1);
        assert!(!races(s, 0..1, RaceAccess::Atomic, who(0, 1, 0)));
        assert!(!races(s, 0..1, RaceAccess::Atomic, who(1, 2, 0)));
        assert!(races(s, 0..1, RaceAccess::Read, who(1, 2, 0)));
        assert!(races(s, 0..1, RaceAccess::Write, who(0, 1, 5)));
    }

    #[test]
    fn the_witness_is_another_thread() {
        let s = &mut Shadow::new(4);
        for thread in [5, 6, 7] {
            assert!(!races(s, 0..4, RaceAccess::Read, who(0, thread, 2)));
        }
        let race = s.touch(0..4, RaceAccess::Write, who(0, 5, 2)).expect("others have read it");
        assert_eq!((race.0, race.1.thread), (RaceAccess::Read, 7));
        // Behind a barrier they are ordered, but not those of another CTA.
        assert!(!races(s, 0..4, RaceAccess::Read, who(0, 1, 3)));
        assert!(!races(s, 0..4, RaceAccess::Read, who(1, 1, 0)));
        assert_eq!(s.touch(0..4, RaceAccess::Write, who(0, 1, 4)).expect("CTA 1").1.cta, 1);
        assert_eq!(s.touch(0..4, RaceAccess::Write, who(1, 1, 0)).expect("CTA 0").1.cta, 0);
    }

    /// Marks of words say what marks of bytes say.
    #[test]
    fn words_are_split_where_accesses_are_narrow() {
        let s = &mut Shadow::new(7);
        assert!(!races(s, 0..4, RaceAccess::Write, who(0, 1, 0)));
        assert!(!races(s, 4..5, RaceAccess::Write, who(0, 1, 0)));
        assert!(!races(s, 5..7, RaceAccess::Write, who(0, 2, 0)));
        assert!(races(s, 3..4, RaceAccess::Read, who(0, 2, 0)));
        assert!(races(s, 6..7, RaceAccess::Read, who(0, 1, 0)));
        assert!(!races(s, 4..5, RaceAccess::Read, who(0, 1, 0)));
    }
}
