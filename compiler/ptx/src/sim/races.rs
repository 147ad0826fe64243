//! Who touched a byte last, and whether a barrier lies between.
//!
//! Threads of a CTA are ordered by nothing but barriers of all of them, and CTAs of a launch by nothing at all. So two
//! accesses to a byte race if one of them writes, they come from different threads with no barrier between, or from
//! different CTAs, and not both of them are atomic.

use std::ops::Range;

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    Read,
    Write,
    Atomic,
}

/// A thread, and how many barriers it has passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Who {
    pub(super) cta: u32,
    pub(super) thread: u32,
    pub(super) epoch: u32,
}

/// No thread or CTA in particular, but more than one.
const MANY: u32 = u32::MAX;

/// Nobody yet.
const NOBODY: Who = Who { cta: MANY - 1, thread: MANY - 1, epoch: 0 };

impl Who {
    /// May an access of `self` and one of `other`, which came before, be the other way round?
    fn races(self, other: Who) -> bool {
        other != NOBODY && (self.cta != other.cta || (self.epoch == other.epoch && self.thread != other.thread))
    }

    /// Both, where one mark has to stand for them.
    fn and(self, before: Who) -> Who {
        if before == NOBODY || self == before {
            self
        } else if before.cta != self.cta {
            Who { cta: MANY, ..self }
        } else if before.epoch == self.epoch {
            Who { thread: MANY, ..self }
        } else {
            self
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    written: Who,
    updated: Who,
    read: Who,
}

/// Marks of the bytes of a memory.
#[derive(Debug)]
pub(super) struct Shadow(Vec<Cell>);

impl Shadow {
    pub(super) fn new(size: usize) -> Shadow {
        Shadow(vec![Cell { written: NOBODY, updated: NOBODY, read: NOBODY }; size])
    }

    /// Marks an access, which lies inside; false if it races.
    pub(super) fn touch(&mut self, bytes: Range<usize>, access: Access, who: Who) -> bool {
        let mut fine = true;
        for cell in &mut self.0[bytes] {
            fine &= !who.races(cell.written);
            match access {
                Access::Read => {
                    fine &= !who.races(cell.updated);
                    cell.read = who.and(cell.read);
                }
                Access::Write => {
                    fine &= !who.races(cell.updated) && !who.races(cell.read);
                    cell.written = who;
                }
                Access::Atomic => {
                    fine &= !who.races(cell.read);
                    cell.updated = who.and(cell.updated);
                }
            }
        }
        fine
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Shadow, Who};

    fn who(cta: u32, thread: u32, epoch: u32) -> Who {
        Who { cta, thread, epoch }
    }

    #[test]
    fn barriers_order_threads_of_one_cta() {
        let mut s = Shadow::new(4);
        assert!(s.touch(0..4, Access::Write, who(0, 1, 0)));
        assert!(s.touch(0..2, Access::Read, who(0, 1, 0)), "the same thread");
        assert!(!s.touch(0..2, Access::Read, who(0, 2, 0)), "no barrier between");
        assert!(s.touch(2..4, Access::Read, who(0, 2, 1)), "a barrier between");
        assert!(s.touch(2..4, Access::Read, who(0, 3, 1)), "two that read");
        assert!(!s.touch(3..4, Access::Write, who(0, 3, 1)), "one of which another has read");
        assert!(!s.touch(2..3, Access::Read, who(1, 3, 9)), "another CTA");
    }

    #[test]
    fn atomics_race_with_plain_accesses_only() {
        let mut s = Shadow::new(1);
        assert!(s.touch(0..1, Access::Atomic, who(0, 1, 0)));
        assert!(s.touch(0..1, Access::Atomic, who(1, 2, 0)));
        assert!(!s.touch(0..1, Access::Read, who(1, 2, 0)));
        assert!(!s.touch(0..1, Access::Write, who(0, 1, 5)));
    }
}
