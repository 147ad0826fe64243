//! Work stealing: the blocks of a grid as one range for each thread.
//!
//! A thread takes blocks from the front of its own range, one after the other, so neighbours stay on one core, where
//! what they share is in the caches (packed panels, pages). A worker has the same range in each launch of as many
//! blocks, and finds in its core's caches what the launch before has left there. A thread whose range is empty takes
//! the upper half of the longest one that is left, so none waits for the slowest. Ranges of threads that never come are
//! taken by the others.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Most ranges. Further threads have none, and take blocks of others one by one.
const MOST: usize = 128;

/// A range in one word, so that it changes at once, in a line of the cache of its own. Nothing else is published by
/// it: what blocks read was there before the launch.
#[repr(align(64))]
struct Slot(AtomicU64);

impl Slot {
    fn word(range: Range<u32>) -> u64 {
        u64::from(range.start) << 32 | u64::from(range.end)
    }

    fn range(word: u64) -> Range<u32> {
        (word >> 32) as u32..word as u32
    }

    fn get(&self) -> Range<u32> {
        Slot::range(self.0.load(Relaxed))
    }

    fn set(&self, range: Range<u32>) {
        self.0.store(Slot::word(range), Relaxed);
    }

    /// Replaces a range by another unless it has changed.
    fn replace(&self, old: &Range<u32>, new: Range<u32>) -> bool {
        self.0.compare_exchange_weak(Slot::word(old.clone()), Slot::word(new), Relaxed, Relaxed).is_ok()
    }
}

/// The ranges. Only the first `count` slots are there: a launch of one block has no use for the others.
pub(crate) struct Ranges {
    slots: [MaybeUninit<Slot>; MOST],
    count: usize,
    /// A bit for each range that has its thread.
    owned: [AtomicU64; MOST / 64],
}

impl Ranges {
    /// Blocks from 0 on, in equal shares.
    pub(crate) fn new(blocks: u32, threads: usize) -> Ranges {
        let count = threads.clamp(1, MOST);
        let mut slots = [const { MaybeUninit::uninit() }; MOST];
        // At most `blocks`.
        let border = |n: usize| (u64::from(blocks) * n as u64 / count as u64) as u32;
        for (n, slot) in slots[..count].iter_mut().enumerate() {
            slot.write(Slot(AtomicU64::new(Slot::word(border(n)..border(n + 1)))));
        }
        Ranges { slots, count, owned: Default::default() }
    }

    /// The range that a thread has from now on: that of its number, or the next that nobody has. Where all are taken it
    /// is the number of none.
    pub(crate) fn own(&self, number: usize) -> usize {
        let free = |n: &usize| {
            let bit = 1 << (n % 64);
            self.owned[n / 64].fetch_or(bit, Relaxed) & bit == 0
        };
        (0..self.count).map(|n| (number + n) % self.count).find(free).unwrap_or(MOST)
    }

    fn slot(&self, n: usize) -> Option<&Slot> {
        // SAFETY: these were written, and are never taken away.
        (n < self.count).then(|| unsafe { self.slots[n].assume_init_ref() })
    }

    /// The next block for a thread, none if there are no more up to `last`. What a thread gets ascends until its range
    /// is empty.
    pub(crate) fn next(&self, thread: usize, last: impl Fn() -> u64) -> Option<u32> {
        let own = self.slot(thread);
        loop {
            while let Some(own) = own
                && let range = own.get()
                && !range.is_empty()
            {
                // All blocks of the range are beyond the last one if the first is.
                let beyond = u64::from(range.start) > last();
                let rest = if beyond { range.end } else { range.start + 1 }..range.end;
                if own.replace(&range, rest) && !beyond {
                    return Some(range.start);
                }
            }
            let stolen = self.steal(own.is_some(), &last)?;
            if let Some(own) = own {
                // It is empty, so others leave it alone.
                own.set(stolen.start + 1..stolen.end);
            }
            if u64::from(stolen.start) <= last() {
                return Some(stolen.start);
            }
        }
    }

    /// The upper half of the longest range, or its last block.
    fn steal(&self, half: bool, last: &impl Fn() -> u64) -> Option<Range<u32>> {
        loop {
            let ranges = (0..self.count).filter_map(|n| Some((self.slot(n)?, self.slot(n)?.get())));
            let left = ranges.filter(|(_, range)| !range.is_empty() && u64::from(range.start) <= last());
            let (slot, range) = left.max_by_key(|(_, range)| range.len())?;
            let size = if half { (range.end - range.start).div_ceil(2) } else { 1 };
            let middle = range.end - size;
            if slot.replace(&range, range.start..middle) {
                return Some(middle..range.end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::thread;

    fn all(ranges: &Ranges, thread: usize) -> Vec<u32> {
        std::iter::from_fn(|| ranges.next(thread, || u64::MAX)).collect()
    }

    #[test]
    fn a_thread_alone_does_all_its_own_first() {
        assert_eq!(all(&Ranges::new(5, 1), 0), [0, 1, 2, 3, 4]);
        assert_eq!(all(&Ranges::new(8, 2), 1), [4, 5, 6, 7, 2, 3, 1, 0]);
        assert_eq!(all(&Ranges::new(1, 4), 0), [0]);
        // One without a range of its own.
        assert_eq!(all(&Ranges::new(4, 2), 7), [3, 1, 2, 0]);
        assert_eq!(all(&Ranges::new(0, 2), 0), []);
    }

    #[test]
    fn each_range_has_one_thread_that_of_its_number_if_it_comes_first() {
        let ranges = Ranges::new(70, 70);
        assert_eq!([3, 69, 0, 65, 1].map(|n| ranges.own(n)), [3, 69, 0, 65, 1]);
        // Another thread of the caller, and a worker beyond those that were asked for.
        assert_eq!([0, 73].map(|n| ranges.own(n)), [2, 4]);
        for n in 7..70 {
            assert!(ranges.own(n) < 70);
        }
        assert_eq!(ranges.own(5), MOST);
        assert_eq!(all(&ranges, MOST).len(), 70);
    }

    #[test]
    fn blocks_beyond_the_last_are_left() {
        let upto = |last, thread| {
            let ranges = Ranges::new(40, 4);
            let mut taken = Vec::from_iter(std::iter::from_fn(|| ranges.next(thread, || last)));
            taken.sort_unstable();
            taken
        };
        for (last, thread) in [(0, 0), (0, 3), (13, 1), (13, 3), (39, 2), (25, 9)] {
            let upto = upto(last, thread);
            assert_eq!(upto, Vec::from_iter(0..=last as u32), "{last} {thread}");
        }
    }

    #[test]
    fn each_block_goes_to_one_thread() {
        for threads in [2, 3, 8, MOST + 3] {
            let (ranges, taken) = (Ranges::new(10_000, threads), Mutex::default());
            thread::scope(|scope| {
                for n in 0..threads {
                    let (ranges, taken): (_, &Mutex<Vec<u32>>) = (&ranges, &taken);
                    scope.spawn(move || taken.lock().unwrap().extend(all(ranges, n)));
                }
            });
            let mut taken = taken.into_inner().unwrap();
            taken.sort_unstable();
            assert_eq!(taken, Vec::from_iter(0..10_000), "{threads}");
        }
    }
}
