//! Who touched a byte last, and what orders that before who touches it now.
//!
//! Where a kernel has nothing but barriers of all its threads, those order the threads of a CTA. Where it has more,
//! vector clocks say what is ordered (`clocks.rs`). CTAs of a launch are ordered by nothing, but for those of a
//! cluster. Two accesses to a byte race if one of them writes, nothing orders them, and not both of them are atomic.

use super::Other;
use super::clocks::{Clocks, Column};
use std::ops::Range;
use std::rc::Rc;

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

/// Bits of a thread's number.
const THREAD: u32 = 10;

/// A thread, or an asynchronous operation that it has issued; its time, and the instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Who {
    pub(super) cta: u32,
    /// The thread, and above it one more than the slot of an asynchronous operation.
    agent: u32,
    /// Barriers passed, or what the clocks say; the number of a phase or a group.
    pub(super) time: u32,
    pub(super) pc: u32,
}

/// Nobody yet.
const NOBODY: Who = Who { cta: u32::MAX, agent: u32::MAX, time: 0, pc: 0 };

impl Who {
    /// A thread.
    pub(super) fn new(cta: u32, thread: u32, time: u32, pc: u32) -> Who {
        Who { cta, agent: thread, time, pc }
    }

    /// An asynchronous operation of a slot, issued by this thread.
    pub(super) fn operation(self, slot: usize, time: u32) -> Who {
        Who { agent: self.thread() as u32 | (slot as u32 + 1) << THREAD, time, ..self }
    }

    pub(super) fn thread(self) -> usize {
        (self.agent & ((1 << THREAD) - 1)) as usize
    }

    /// The slot of an asynchronous operation.
    pub(super) fn slot(self) -> Option<usize> {
        (self.agent >> THREAD).checked_sub(1).map(|slot| slot as usize)
    }
}

/// Who accesses, and what they know.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) who: Who,
    /// `None` where barriers of all threads are all that there is.
    pub(super) clocks: Option<Rc<Clocks>>,
    /// What the async proxy is to see needs no fence.
    pub(super) sees: bool,
}

/// What is missing between two accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Missing {
    /// Nothing orders them.
    Order,
    /// They are ordered, but the async proxy does not see what the generic one wrote.
    Fence,
}

/// A race: what the other access does, whose it is, and what is missing.
pub(super) type Race = (RaceAccess, Who, Missing);

impl View {
    /// What is missing for an access of `other`, which came before and wrote or did not, to be ordered before.
    #[inline]
    fn missing(&self, other: Who, wrote: bool, fence: Column) -> Option<Missing> {
        let who = self.who;
        if other.cta == NOBODY.cta {
            return None;
        }
        match &self.clocks {
            None if who.cta != other.cta => Some(Missing::Order),
            None => (who.time == other.time && who.agent != other.agent).then_some(Missing::Order),
            Some(clocks) => self.unknown(clocks, other, wrote, fence),
        }
    }

    /// The same, by clocks.
    fn unknown(&self, clocks: &Clocks, other: Who, wrote: bool, fence: Column) -> Option<Missing> {
        let who = self.who;
        if !clocks.together(who.cta, other.cta) {
            return Some(Missing::Order);
        }
        let same = who.cta == other.cta && who.agent == other.agent;
        // Of operations of one slot, none waits for another.
        if !clocks.knows(other) && (!same || who.slot().is_some()) {
            return Some(Missing::Order);
        }
        let crosses = wrote && who.slot().is_some() && other.slot().is_none() && !self.sees;
        (crosses && !clocks.fenced(fence, other)).then_some(Missing::Fence)
    }
}

/// Those of several accesses that later ones may race with. Where barriers of all threads are all that there is, two
/// are enough: whatever races with one that is left out races with one of these. Clocks need more of them.
#[derive(Clone, Debug)]
struct Others {
    first: Who,
    other: Who,
    #[expect(clippy::box_collection, reason = "every four bytes of memory have two of these, mostly empty")]
    more: Option<Box<Vec<Who>>>,
}

impl Others {
    const NONE: Others = Others { first: NOBODY, other: NOBODY, more: None };

    fn add(&mut self, view: &View) {
        match &view.clocks {
            Some(clocks) => self.add_clocked(view.who, clocks),
            None => self.add_simple(view.who),
        }
    }

    fn add_simple(&mut self, who: Who) {
        let first = self.first;
        if first.cta == NOBODY.cta {
            self.first = who;
        } else if first.cta != who.cta || (self.other.cta != NOBODY.cta && self.other.cta != first.cta) {
            // Everyone races with one of two CTAs.
            if self.other.cta == NOBODY.cta || self.other.cta == first.cta {
                self.other = who;
            }
        } else if first.time != who.time {
            (self.first, self.other) = (who, NOBODY);
        } else if first.agent != who.agent {
            self.other = who;
        }
    }

    /// What is known to a thread need not be kept beside it: who is ordered behind it is ordered behind that. Who is
    /// told of an operation is not told what that knew.
    fn add_clocked(&mut self, who: Who, clocks: &Clocks) {
        let goes = |one: &Who| {
            one.cta == NOBODY.cta
                || (one.cta == who.cta && one.agent == who.agent)
                || (clocks.together(one.cta, who.cta) && who.slot().is_none() && clocks.knows(*one))
        };
        if let Some(more) = &mut self.more {
            more.retain(|one| !goes(one));
        }
        for one in [&mut self.first, &mut self.other] {
            if goes(one) {
                *one = self.more.as_mut().and_then(|more| more.pop()).unwrap_or(NOBODY);
            }
        }
        match (self.first.cta == NOBODY.cta, self.other.cta == NOBODY.cta) {
            (true, _) => self.first = who,
            (_, true) => self.other = who,
            // Everyone races with one of two clusters.
            _ if !clocks.together(self.first.cta, self.other.cta) => {}
            _ if !clocks.together(self.first.cta, who.cta) => self.other = who,
            _ => self.more.get_or_insert_default().push(who),
        }
    }

    /// One that `view` is not ordered behind.
    fn racing(&self, view: &View, wrote: bool, fence: Column) -> Option<(Who, Missing)> {
        let missing = |other: &Who| Some((*other, view.missing(*other, wrote, fence)?));
        let found = missing(&self.first).or_else(|| missing(&self.other));
        found.or_else(|| self.more.as_ref()?.iter().find_map(missing))
    }
}

/// The other access, for a report.
pub(super) fn other((access, who, _): Race) -> Other {
    let (at, thread) = ((who.pc as usize, String::new(), 0), (who.cta, who.thread() as u32));
    Other { access, at, thread, asynchronous: who.slot().is_some() }
}

#[derive(Clone, Debug)]
struct Cell {
    written: Who,
    updated: Others,
    read: Others,
}

const UNTOUCHED: Cell = Cell { written: NOBODY, updated: Others::NONE, read: Others::NONE };

impl Cell {
    /// Marks an access; the one before that it races with.
    fn touch(&mut self, access: RaceAccess, view: &View, fence: Column) -> Option<Race> {
        if let Some(missing) = view.missing(self.written, true, fence) {
            return Some((RaceAccess::Write, self.written, missing));
        }
        let race = |access, found: Option<(Who, Missing)>| found.map(|(who, missing)| (access, who, missing));
        let updated = || race(RaceAccess::Atomic, self.updated.racing(view, true, fence));
        let read = || race(RaceAccess::Read, self.read.racing(view, false, fence));
        match access {
            RaceAccess::Read => {
                if let Some(race) = updated() {
                    return Some(race);
                }
                self.read.add(view);
            }
            RaceAccess::Write => {
                if let Some(race) = updated().or_else(read) {
                    return Some(race);
                }
                if view.clocks.is_some() {
                    // Who is ordered behind the write is ordered behind what it is behind, known or not.
                    (self.updated, self.read) = (Others::NONE, Others::NONE);
                }
                self.written = view.who;
            }
            RaceAccess::Atomic => {
                if let Some(race) = read() {
                    return Some(race);
                }
                self.updated.add(view);
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
    /// What of a clock counts for the async proxy.
    fence: Column,
}

impl Shadow {
    pub(super) fn new(size: usize, fence: Column) -> Shadow {
        Shadow { cells: vec![UNTOUCHED; size.div_ceil(4)], size, shift: 2, fence }
    }

    /// Marks an access, which lies inside; the one before that it races with.
    pub(super) fn touch(&mut self, bytes: Range<usize>, access: RaceAccess, view: &View) -> Option<Race> {
        while (bytes.start | bytes.end) & ((1 << self.shift) - 1) != 0 && self.shift > 0 {
            self.split();
        }
        let cells = bytes.start >> self.shift..bytes.end >> self.shift;
        self.cells[cells].iter_mut().find_map(|cell| cell.touch(access, view, self.fence))
    }

    /// Halves the groups.
    fn split(&mut self) {
        self.shift -= 1;
        let halves = self.cells.iter().flat_map(|cell| [cell.clone(), cell.clone()]);
        self.cells = halves.take(self.size.div_ceil(1 << self.shift)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::{Column, RaceAccess, Shadow, View, Who};

    fn who(cta: u32, thread: u32, epoch: u32) -> View {
        View { who: Who::new(cta, thread, epoch, 0), clocks: None, sees: false }
    }

    fn races(s: &mut Shadow, bytes: std::ops::Range<usize>, access: RaceAccess, by: View) -> bool {
        s.touch(bytes, access, &by).is_some()
    }

    #[test]
    fn barriers_order_threads_of_one_cta() {
        let s = &mut Shadow::new(4, Column::Shared);
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
        let s = &mut Shadow::new(1, Column::Shared);
        assert!(!races(s, 0..1, RaceAccess::Atomic, who(0, 1, 0)));
        assert!(!races(s, 0..1, RaceAccess::Atomic, who(1, 2, 0)));
        assert!(races(s, 0..1, RaceAccess::Read, who(1, 2, 0)));
        assert!(races(s, 0..1, RaceAccess::Write, who(0, 1, 5)));
    }

    #[test]
    fn the_witness_is_another_thread() {
        let s = &mut Shadow::new(4, Column::Shared);
        for thread in [5, 6, 7] {
            assert!(!races(s, 0..4, RaceAccess::Read, who(0, thread, 2)));
        }
        let race = s.touch(0..4, RaceAccess::Write, &who(0, 5, 2)).expect("others have read it");
        assert_eq!((race.0, race.1.thread()), (RaceAccess::Read, 7));
        // Behind a barrier they are ordered, but not those of another CTA.
        assert!(!races(s, 0..4, RaceAccess::Read, who(0, 1, 3)));
        assert!(!races(s, 0..4, RaceAccess::Read, who(1, 1, 0)));
        assert_eq!(s.touch(0..4, RaceAccess::Write, &who(0, 1, 4)).expect("CTA 1").1.cta, 1);
        assert_eq!(s.touch(0..4, RaceAccess::Write, &who(1, 1, 0)).expect("CTA 0").1.cta, 0);
    }

    /// Marks of words say what marks of bytes say.
    #[test]
    fn words_are_split_where_accesses_are_narrow() {
        let s = &mut Shadow::new(7, Column::Shared);
        assert!(!races(s, 0..4, RaceAccess::Write, who(0, 1, 0)));
        assert!(!races(s, 4..5, RaceAccess::Write, who(0, 1, 0)));
        assert!(!races(s, 5..7, RaceAccess::Write, who(0, 2, 0)));
        assert!(races(s, 3..4, RaceAccess::Read, who(0, 2, 0)));
        assert!(races(s, 6..7, RaceAccess::Read, who(0, 1, 0)));
        assert!(!races(s, 4..5, RaceAccess::Read, who(0, 1, 0)));
    }
}
