//! What the banks hold: rows that something has written. The others read as zeros.

use rustc_hash::FxHashMap;
use std::cell::Cell;

/// Bytes of all rows that are not copies of each other, at most.
const MOST: u64 = 4 << 30;

/// The memory of a device. Addresses are those of [`ptoc_pim_stream::placement`].
#[derive(Debug)]
pub struct Memory {
    row_bytes: u64,
    rows: FxHashMap<u64, u32>,
    bytes: Vec<Box<[u8]>>,
    /// How many rows share an entry of `bytes`.
    shared: Vec<u32>,
    /// The row that was used last, and its entry.
    last: (u64, u32),
    /// It keeps nothing: where only time is wanted.
    forgets: bool,
}

/// The memory as a channel at work sees it: rows that it writes are its own until all channels are done, since others
/// work beside it. No row belongs to two channels.
#[derive(Debug)]
pub struct ChannelMemory<'m> {
    before: &'m Memory,
    rows: FxHashMap<u64, u32>,
    bytes: Vec<Box<[u8]>>,
    /// The row that was written last, and its entry.
    last: (u64, u32),
    /// The row that was read last, and where it is: units stay in a row for a while.
    read: Cell<(u64, Found)>,
}

/// Where a row is.
#[derive(Clone, Copy, Debug)]
enum Found {
    /// Nothing has written it.
    Nowhere,
    Before(u32),
    Own(u32),
}

impl<'m> ChannelMemory<'m> {
    /// Nothing is written yet.
    pub fn new(before: &'m Memory) -> ChannelMemory<'m> {
        let read = Cell::new((u64::MAX, Found::Nowhere));
        ChannelMemory { before, rows: FxHashMap::default(), bytes: Vec::new(), last: (u64::MAX, 0), read }
    }

    /// See [`Memory::read`].
    pub fn read<const N: usize>(&self, address: u64) -> [u8; N] {
        let (row, at) = (address / self.before.row_bytes, (address % self.before.row_bytes) as usize);
        let (last, mut found) = self.read.get();
        if last != row {
            found = match (self.rows.get(&row), self.before.rows.get(&row)) {
                (Some(n), _) => Found::Own(*n),
                (None, Some(n)) => Found::Before(*n),
                (None, None) => Found::Nowhere,
            };
            self.read.set((row, found));
        }
        let mut out = [0; N];
        match found {
            Found::Nowhere => {}
            Found::Before(n) => out.copy_from_slice(&self.before.bytes[n as usize][at..at + N]),
            Found::Own(n) => out.copy_from_slice(&self.bytes[n as usize][at..at + N]),
        }
        out
    }

    /// See [`Memory::write`].
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Full> {
        if self.before.forgets {
            return Ok(());
        }
        let (row, at) = (address / self.before.row_bytes, (address % self.before.row_bytes) as usize);
        if row != self.last.0 {
            let n = match self.rows.get(&row) {
                Some(n) => *n,
                None => self.copy(row)?,
            };
            self.last = (row, n);
        }
        self.bytes[self.last.1 as usize][at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn copy(&mut self, row: u64) -> Result<u32, Full> {
        if self.bytes.len() as u64 >= MOST / self.before.row_bytes {
            return Err(Full);
        }
        let mut own = vec![0; self.before.row_bytes as usize];
        self.before.read_into(row * self.before.row_bytes, &mut own);
        let n = self.bytes.len() as u32;
        self.bytes.push(own.into());
        self.rows.insert(row, n);
        self.read.set((row, Found::Own(n)));
        Ok(n)
    }

    /// See [`Memory::is_copy`].
    pub fn is_copy(&self, a: u64, b: u64) -> bool {
        let own = |address: u64| self.rows.contains_key(&(address / self.before.row_bytes));
        !own(a) && !own(b) && self.before.is_copy(a, b)
    }

    /// The rows that were written.
    pub fn written(self) -> Written {
        let mut bytes = self.bytes.into_iter().map(Some).collect::<Vec<_>>();
        let mut rows: Vec<(u64, u32)> = self.rows.into_iter().collect();
        rows.sort_unstable();
        Written(rows.into_iter().filter_map(|(row, n)| Some((row, bytes[n as usize].take()?))).collect())
    }
}

/// Rows that a channel wrote, by their numbers.
#[derive(Debug)]
pub struct Written(Vec<(u64, Box<[u8]>)>);

/// The memory would take more of the host than it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Memory {
    /// A memory of zeros.
    pub fn new(row_bytes: u64) -> Memory {
        let (rows, bytes, shared) = Default::default();
        Memory { row_bytes, rows, bytes, shared, last: (u64::MAX, 0), forgets: false }
    }

    /// A memory that stays zeros, whatever is written.
    pub fn forgetful(row_bytes: u64) -> Memory {
        Memory { forgets: true, ..Memory::new(row_bytes) }
    }

    /// The bytes from an address on, which end in the same row.
    pub fn read<const N: usize>(&self, address: u64) -> [u8; N] {
        let mut out = [0; N];
        self.read_into(address, &mut out);
        out
    }

    /// The same, of any length.
    pub fn read_into(&self, address: u64, out: &mut [u8]) {
        let (row, at) = (address / self.row_bytes, (address % self.row_bytes) as usize);
        let entry = if row == self.last.0 { Some(self.last.1) } else { self.rows.get(&row).copied() };
        match entry {
            Some(n) => out.copy_from_slice(&self.bytes[n as usize][at..at + out.len()]),
            None => out.fill(0),
        }
    }

    /// Writes bytes that end in the same row.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Full> {
        if self.forgets {
            return Ok(());
        }
        let (row, at) = (address / self.row_bytes, (address % self.row_bytes) as usize);
        let n = self.own(row)?;
        self.bytes[n as usize][at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// The entry of a row that no other shares.
    fn own(&mut self, row: u64) -> Result<u32, Full> {
        if row == self.last.0 && self.shared[self.last.1 as usize] == 1 {
            return Ok(self.last.1);
        }
        let n = match self.rows.get(&row).copied() {
            Some(n) if self.shared[n as usize] == 1 => n,
            Some(n) => {
                let copy = self.bytes[n as usize].clone();
                self.shared[n as usize] -= 1;
                self.push(row, copy)?
            }
            None => self.push(row, vec![0; self.row_bytes as usize].into())?,
        };
        self.last = (row, n);
        Ok(n)
    }

    fn push(&mut self, row: u64, bytes: Box<[u8]>) -> Result<u32, Full> {
        if self.bytes.len() as u64 >= MOST / self.row_bytes {
            return Err(Full);
        }
        let n = self.bytes.len() as u32;
        self.bytes.push(bytes);
        self.shared.push(1);
        self.rows.insert(row, n);
        Ok(n)
    }

    /// Takes over what a channel wrote.
    pub fn take(&mut self, written: Written) -> Result<(), Full> {
        for (row, bytes) in written.0 {
            match self.rows.get(&row).copied() {
                Some(n) if self.shared[n as usize] == 1 => self.bytes[n as usize] = bytes,
                Some(n) => {
                    self.shared[n as usize] -= 1;
                    self.push(row, bytes)?;
                }
                None => {
                    self.push(row, bytes)?;
                }
            }
        }
        self.last = (u64::MAX, 0);
        Ok(())
    }

    /// Makes the row at `to` a copy of the one at `from`, which something has written.
    pub fn copy_row(&mut self, from: u64, to: u64) {
        let (from, to) = (from / self.row_bytes, to / self.row_bytes);
        let Some(&n) = self.rows.get(&from) else { return };
        if from == to {
            return;
        }
        self.shared[n as usize] += 1;
        if let Some(old) = self.rows.insert(to, n) {
            self.shared[old as usize] -= 1;
        }
        if self.last.0 == to {
            self.last = (u64::MAX, 0);
        }
    }

    /// Whether the rows at these addresses hold one and the same, because one was copied from the other or nothing has
    /// written them.
    pub fn is_copy(&self, a: u64, b: u64) -> bool {
        self.rows.get(&(a / self.row_bytes)) == self.rows.get(&(b / self.row_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a channel writes it sees at once, and the memory when it is taken over; rows that were copies part.
    #[test]
    fn channels_write_rows_of_their_own() {
        let mut m = Memory::new(1024);
        m.write(1024 + 8, &[1, 2, 3]).unwrap();
        m.copy_row(1024, 4096);
        let mut c = ChannelMemory::new(&m);
        assert_eq!((c.read::<3>(1024 + 8), c.read::<2>(9000)), ([1, 2, 3], [0, 0]));
        c.write(4096 + 9, &[9]).unwrap();
        c.write(9000, &[7]).unwrap();
        c.write(4096 + 10, &[8]).unwrap();
        assert_eq!((c.read::<3>(4096 + 8), c.read::<2>(9000), c.read::<3>(1024 + 8)), ([1, 9, 8], [7, 0], [1, 2, 3]));
        let written = c.written();
        assert_eq!(m.read::<3>(4096 + 8), [1, 2, 3]);
        m.take(written).unwrap();
        assert_eq!((m.read::<3>(4096 + 8), m.read::<2>(9000), m.read::<3>(1024 + 8)), ([1, 9, 8], [7, 0], [1, 2, 3]));
        m.write(1024 + 8, &[5]).unwrap();
        assert_eq!((m.read::<1>(4096 + 8), m.shared.iter().sum::<u32>()), ([1], 3));
    }

    #[test]
    fn rows_are_copied_when_they_part() {
        let mut m = Memory::new(1024);
        assert_eq!(m.read::<4>(5000), [0; 4]);
        m.write(1024 + 8, &[1, 2, 3]).unwrap();
        m.copy_row(1024, 4096);
        assert_eq!(m.read::<4>(4096 + 8), [1, 2, 3, 0]);
        m.write(4096 + 9, &[9]).unwrap();
        assert_eq!((m.read::<3>(4096 + 8), m.read::<3>(1024 + 8)), ([1, 9, 3], [1, 2, 3]));
        m.write(1024 + 10, &[7]).unwrap();
        assert_eq!((m.read::<3>(4096 + 8), m.read::<3>(1024 + 8)), ([1, 9, 3], [1, 2, 7]));
        m.copy_row(4096, 1024);
        assert_eq!((m.read::<3>(1024 + 8), m.rows.len()), ([1, 9, 3], 2));
        m.write(4096, &[5]).unwrap();
        assert_eq!((m.read::<1>(4096), m.read::<1>(1024)), ([5], [0]));
    }
}
