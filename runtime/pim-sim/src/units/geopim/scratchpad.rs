//! The scratchpad of a vault: what one unit has read, the others need not read again (`spec/geopim.md`).
//!
//! It holds whole bursts and forgets the one that was not used for longest. It serves one burst at a time. Units are
//! looked at in the order in which their sequencers come to a tile, so which of two that come together finds the
//! other's burst is the model's choice; results never depend on it.

use std::collections::{BTreeMap, HashMap};

/// A scratchpad.
#[derive(Clone, Debug)]
pub struct Scratchpad {
    capacity: usize,
    /// Burst to the stamp of its last use, and back.
    used: HashMap<u64, u64>,
    stamps: BTreeMap<u64, u64>,
    stamp: u64,
    /// The cycle from which it can serve.
    free: u64,
    /// Bursts that it served.
    pub hits: u64,
}

impl Scratchpad {
    /// Of so many bytes; none of less than a burst.
    pub fn new(bytes: u32) -> Option<Scratchpad> {
        let capacity = bytes as usize / 32;
        (capacity > 0).then(|| Scratchpad {
            capacity,
            used: HashMap::new(),
            stamps: BTreeMap::new(),
            stamp: 0,
            free: 0,
            hits: 0,
        })
    }

    /// Serves a burst to a unit that asks in `cycle`: the cycle in which it has it, `cycles` after the scratchpad is
    /// free.
    pub fn serve(&mut self, burst: u64, cycle: u64, cycles: u64) -> Option<u64> {
        if !self.used.contains_key(&burst) {
            return None;
        }
        self.touch(burst);
        self.hits += 1;
        self.free = self.free.max(cycle) + cycles;
        Some(self.free)
    }

    /// A unit has read a burst from its bank.
    pub fn deposit(&mut self, burst: u64) {
        self.touch(burst);
        if self.used.len() > self.capacity
            && let Some((_, oldest)) = self.stamps.pop_first()
        {
            self.used.remove(&oldest);
        }
    }

    fn touch(&mut self, burst: u64) {
        self.stamp += 1;
        if let Some(old) = self.used.insert(burst, self.stamp) {
            self.stamps.remove(&old);
        }
        self.stamps.insert(self.stamp, burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes() {
        let mut s = Scratchpad::new(64).unwrap();
        s.deposit(1);
        s.deposit(2);
        assert_eq!(s.serve(1, 10, 2), Some(12));
        assert_eq!(s.serve(1, 10, 2), Some(14));
        s.deposit(3);
        assert_eq!((s.serve(2, 20, 2), s.serve(1, 20, 2), s.serve(3, 20, 2)), (None, Some(22), Some(24)));
        assert!(Scratchpad::new(31).is_none());
    }
}
