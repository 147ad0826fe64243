//! What the banks hold: rows that something has written. The others read as zeros.

use rustc_hash::FxHashMap;

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
}

/// The memory would take more of the host than it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Memory {
    /// A memory of zeros.
    pub fn new(row_bytes: u64) -> Memory {
        Memory { row_bytes, rows: FxHashMap::default(), bytes: Vec::new(), shared: Vec::new(), last: (u64::MAX, 0) }
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
