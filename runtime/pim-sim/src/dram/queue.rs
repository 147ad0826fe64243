//! A request queue, indexed by bank.
//!
//! Requests of one bank that need the same command become ready together, so the oldest of them stands for all. A queue
//! keeps for each bank the oldest request that hits the open row and the oldest that does not, and the banks that have
//! one in the order of these requests. The scheduler looks at banks from the oldest request on, and may stop at the
//! first that is as early as any can be.

use super::device::CLOSED;
use super::org::Address;

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// A waiting request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) address: Address,
    pub(super) bank: u32,
    /// The next younger entry of the bank.
    next: u32,
    /// Order of arrival over both queues.
    pub(super) seq: u64,
    /// Tick of arrival; it can be served from the next one.
    pub(super) arrived: u64,
    pub(super) write: bool,
    /// Whether hit, miss or conflict has been counted.
    pub(super) counted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Bank {
    head: u32,
    tail: u32,
    /// The oldest entry for the open row.
    hit: u32,
    /// The oldest entry for another row, or any row of a closed bank.
    other: u32,
}

/// A set of banks.
#[derive(Clone, Debug)]
pub(super) struct Banks {
    words: Vec<u64>,
}

impl Banks {
    pub(super) fn new(banks: usize) -> Banks {
        Banks { words: vec![0; banks.div_ceil(64)] }
    }

    #[inline]
    pub(super) fn put(&mut self, bank: usize, present: bool) {
        let bit = 1 << (bank % 64);
        if present {
            self.words[bank / 64] |= bit;
        } else {
            self.words[bank / 64] &= !bit;
        }
    }

    #[inline]
    pub(super) fn contains(&self, bank: usize) -> bool {
        self.words[bank / 64] & (1 << (bank % 64)) != 0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }

    /// Calls `f` with every bank in ascending order.
    #[inline]
    pub(super) fn for_each(&self, mut f: impl FnMut(usize)) {
        for (i, word) in self.words.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                f(i * 64 + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }
}

/// Banks in the order of their oldest requests: sorted numbers of sequence and bank.
#[derive(Clone, Debug, Default)]
pub(super) struct ByAge {
    keys: Vec<u64>,
}

/// Bits of a key that are the bank's; a channel has at most 2^14.
const BANK_BITS: u32 = 16;

impl ByAge {
    fn key(seq: u64, bank: usize) -> u64 {
        seq << BANK_BITS | bank as u64
    }

    /// Replaces a bank's request by another, or by none; the sequence number of the old one finds it.
    #[inline]
    fn replace(&mut self, bank: usize, old: Option<u64>, new: Option<u64>) {
        if old == new {
            return;
        }
        if let Some(seq) = old {
            let key = ByAge::key(seq, bank);
            // The oldest goes most often.
            if let Some(at) = self.keys.iter().position(|k| *k == key) {
                self.keys.remove(at);
            }
        }
        if let Some(seq) = new {
            let key = ByAge::key(seq, bank);
            // The next of a bank is among the youngest most often.
            let at = self.keys.iter().rposition(|k| *k < key).map_or(0, |at| at + 1);
            self.keys.insert(at, key);
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Sequence number and bank, the oldest first.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, usize)> {
        self.keys.iter().map(|key| (key >> BANK_BITS, (key & ((1 << BANK_BITS) - 1)) as usize))
    }
}

pub(super) struct Queue {
    slots: Vec<Entry>,
    free: Vec<u32>,
    banks: Vec<Bank>,
    pub(super) capacity: usize,
    /// Entries of each pseudo-channel.
    pub(super) in_pc: Vec<u32>,
    /// Banks with an entry for the open row.
    pub(super) hits: ByAge,
    /// Banks with an entry for another row or a closed bank.
    pub(super) others: ByAge,
}

impl Queue {
    pub(super) fn new(capacity: usize, banks: usize, pcs: usize) -> Queue {
        Queue {
            slots: Vec::with_capacity(capacity),
            free: Vec::with_capacity(capacity),
            banks: vec![Bank { head: NONE, tail: NONE, hit: NONE, other: NONE }; banks],
            capacity,
            in_pc: vec![0; pcs],
            hits: ByAge::default(),
            others: ByAge::default(),
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.len() == self.capacity
    }

    /// Puts a request at the end. `open_row` is its bank's.
    #[inline]
    pub(super) fn push(&mut self, address: Address, bank: usize, seq: u64, arrived: u64, write: bool, open_row: u32) {
        // The number of a bank is below 2^14 and of a slot at most 1024.
        self.in_pc[usize::from(address.pc)] += 1;
        let entry = Entry { address, bank: bank as u32, next: NONE, seq, arrived, write, counted: false };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                (self.slots.len() - 1) as u32
            }
        };
        let list = &mut self.banks[bank];
        if list.tail == NONE {
            list.head = slot;
        } else {
            self.slots[list.tail as usize].next = slot;
        }
        list.tail = slot;
        if address.row == open_row {
            if list.hit == NONE {
                list.hit = slot;
                self.hits.replace(bank, None, Some(seq));
            }
        } else if list.other == NONE {
            list.other = slot;
            self.others.replace(bank, None, Some(seq));
        }
    }

    /// Whether a request of a bank is for its open row.
    #[inline]
    pub(super) fn has_hit(&self, bank: usize) -> bool {
        self.banks[bank].hit != NONE
    }

    fn seq(&self, slot: u32) -> Option<u64> {
        self.slots.get(slot as usize).map(|entry| entry.seq)
    }

    /// The oldest entry of a bank for another row; there must be one.
    #[inline]
    pub(super) fn other(&mut self, bank: usize) -> &mut Entry {
        &mut self.slots[self.banks[bank].other as usize]
    }

    /// Takes the oldest hit of a bank out.
    #[inline]
    pub(super) fn take_hit(&mut self, bank: usize) -> Entry {
        let slot = self.banks[bank].hit;
        let entry = self.unlink(bank, slot);
        // The next hit is younger.
        let mut at = entry.next;
        while at != NONE && self.slots[at as usize].address.row != entry.address.row {
            at = self.slots[at as usize].next;
        }
        self.banks[bank].hit = at;
        let next = self.seq(at);
        self.hits.replace(bank, Some(entry.seq), next);
        entry
    }

    /// Takes the oldest other entry of a bank out. The bank's row changes with it: call [`Queue::row_changed`].
    pub(super) fn take_other(&mut self, bank: usize) -> Entry {
        let slot = std::mem::replace(&mut self.banks[bank].other, NONE);
        let entry = self.unlink(bank, slot);
        self.others.replace(bank, Some(entry.seq), None);
        entry
    }

    #[inline]
    fn unlink(&mut self, bank: usize, slot: u32) -> Entry {
        let entry = self.slots[slot as usize];
        self.in_pc[usize::from(entry.address.pc)] -= 1;
        let list = &mut self.banks[bank];
        if list.head == slot {
            list.head = entry.next;
            if entry.next == NONE {
                list.tail = NONE;
            }
        } else {
            let mut before = list.head;
            while self.slots[before as usize].next != slot {
                before = self.slots[before as usize].next;
            }
            self.slots[before as usize].next = entry.next;
            if entry.next == NONE {
                list.tail = before;
            }
        }
        self.free.push(slot);
        entry
    }

    /// Sorts the entries of a bank anew after its row opened or closed.
    pub(super) fn row_changed(&mut self, bank: usize, open_row: u32) {
        let (mut hit, mut other) = (NONE, NONE);
        let mut at = self.banks[bank].head;
        while at != NONE && (hit == NONE || other == NONE) {
            let entry = &self.slots[at as usize];
            if open_row != CLOSED && entry.address.row == open_row {
                if hit == NONE {
                    hit = at;
                }
            } else if other == NONE {
                other = at;
            }
            at = entry.next;
        }
        let old = std::mem::replace(&mut self.banks[bank].hit, hit);
        self.hits.replace(bank, self.seq(old), self.seq(hit));
        let old = std::mem::replace(&mut self.banks[bank].other, other);
        self.others.replace(bank, self.seq(old), self.seq(other));
    }

    /// Whether an entry for that burst waits.
    #[inline]
    pub(super) fn contains(&self, bank: usize, address: Address) -> bool {
        let mut at = self.banks[bank].head;
        while at != NONE {
            let entry = &self.slots[at as usize];
            if entry.address == address {
                return true;
            }
            at = entry.next;
        }
        false
    }
}
