//! Which bytes of its tensors a launch reads and writes, as far as the walk of [`work`](super::work) knows addresses.

use std::collections::{BTreeMap, HashSet};

/// Stretches that are noted, over all tensors: beyond it nothing is said.
const MOST: u32 = 1 << 22;

/// A matrix in a tensor: offset of element (0, 0), and for rows and columns how many, and the bytes from one to the
/// next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Matrix {
    pub offset: i64,
    pub rows: (u64, i64),
    pub cols: (u64, i64),
    pub size: u32,
}

/// Bytes, as stretches that do not meet.
#[derive(Clone, Debug, Default)]
struct Stretches {
    /// Ends by begins.
    all: BTreeMap<i64, i64>,
    /// The begin of the last one that grew, which is the one that grows next, as a rule.
    last: i64,
}

impl Stretches {
    fn add(&mut self, mut from: i64, mut to: i64) {
        if let Some(end) = self.all.get_mut(&self.last)
            && self.last <= from
            && from <= *end
        {
            if to <= *end {
                return;
            }
            from = self.last;
        }
        if let Some((&begin, &end)) = self.all.range(..=from).next_back()
            && end >= from
        {
            if end >= to {
                return;
            }
            from = begin;
        }
        while let Some((&begin, &end)) = self.all.range(from..=to).next() {
            self.all.remove(&begin);
            to = to.max(end);
        }
        self.all.insert(from, to);
        self.last = from;
    }

    fn bytes(&self) -> u64 {
        self.all.iter().map(|(from, to)| (to - from) as u64).sum()
    }
}

/// What is known of a tensor.
#[derive(Clone, Debug, Default)]
struct Known {
    stretches: Stretches,
    /// An access is at a place that is not known.
    anywhere: bool,
}

/// What a launch has touched so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched {
    /// By tensor: what is read, and what is written.
    tensors: Vec<[Known; 2]>,
    /// Matrices that are noted: blocks read the same ones.
    seen: HashSet<(u32, bool, Matrix)>,
    noted: u32,
}

/// Whether an access writes.
pub(super) type Writes = bool;

impl Touched {
    /// Nothing of so many tensors.
    pub fn new(tensors: usize) -> Touched {
        Touched { tensors: vec![<[Known; 2]>::default(); tensors], ..Touched::default() }
    }

    /// An access to a matrix, or to a place that is not known.
    pub fn add(&mut self, tensor: u32, writes: Writes, matrix: Option<Matrix>) {
        let Some(known) = self.tensors.get_mut(tensor as usize).map(|both| &mut both[usize::from(writes)]) else {
            return;
        };
        if known.anywhere {
            return;
        }
        let Some(m) = matrix else {
            known.anywhere = true;
            return;
        };
        if m.rows.0 == 0 || m.cols.0 == 0 || !self.seen.insert((tensor, writes, m)) {
            return;
        }
        // The side along which elements are next to each other is the inner one.
        let size = i64::from(m.size);
        let (inner, outer) = match (m.cols, m.rows) {
            ((n, by), rows) if by == size || n == 1 => (n as i64 * size, rows),
            (cols, (n, by)) if by == size || n == 1 => (n as i64 * size, cols),
            (cols, rows) => {
                let lines =
                    (0..rows.0).map(|n| Matrix { offset: m.offset + n as i64 * rows.1, rows: (1, 0), cols, ..m });
                if rows.0.saturating_mul(cols.0) > u64::from(MOST) {
                    known.anywhere = true;
                    return;
                }
                lines.for_each(|line| self.add(tensor, writes, Some(line)));
                return;
            }
        };
        let (count, by) = if outer.1 == inner { (1, 0) } else { outer };
        let length = if outer.1 == inner { inner * outer.0 as i64 } else { inner };
        self.noted = self.noted.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        if self.noted > MOST {
            self.tensors.iter_mut().flatten().for_each(|known| known.anywhere = true);
            return;
        }
        for n in 0..count as i64 {
            known.stretches.add(m.offset + n * by, m.offset + n * by + length);
        }
    }

    /// Bytes of each tensor that are read, and that are written; `None` where that is not known.
    pub fn bytes(&self) -> Vec<[Option<u64>; 2]> {
        let of = |known: &Known| (!known.anywhere).then(|| known.stretches.bytes());
        self.tensors.iter().map(|[read, written]| [of(read), of(written)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(matrices: &[Matrix]) -> Option<u64> {
        let mut touched = Touched::new(1);
        matrices.iter().for_each(|m| touched.add(0, false, Some(*m)));
        touched.bytes()[0][0]
    }

    #[test]
    fn bytes_count_once() {
        let m = |offset, rows, cols| Matrix { offset, rows, cols, size: 4 };
        assert_eq!(bytes(&[]), Some(0));
        assert_eq!(bytes(&[m(0, (8, 64), (16, 4))]), Some(512));
        assert_eq!(bytes(&[m(0, (8, 64), (8, 4)), m(32, (8, 64), (8, 4)), m(0, (8, 64), (8, 4))]), Some(512));
        assert_eq!(bytes(&[m(0, (8, 64), (8, 4)), m(16, (8, 64), (8, 4))]), Some(8 * 48));
        // Columns that are rows in memory, elements apart, and backwards.
        assert_eq!(bytes(&[m(0, (8, 4), (3, 64))]), Some(96));
        assert_eq!(bytes(&[m(0, (8, 8), (3, 64))]), Some(96));
        assert_eq!(bytes(&[m(60, (1, 0), (16, -4)), m(0, (1, 0), (16, 4))]), Some(64));
        assert_eq!(bytes(&[m(0, (1 << 12, 1 << 20), (1 << 12, 8))]), None);
    }

    #[test]
    fn what_is_anywhere_is_not_counted() {
        let mut touched = Touched::new(2);
        touched.add(0, true, None);
        touched.add(1, false, Some(Matrix { offset: 8, rows: (1, 0), cols: (1, 0), size: 2 }));
        touched.add(7, false, None);
        assert_eq!(touched.bytes(), [[Some(0), None], [Some(2), Some(0)]]);
    }
}
