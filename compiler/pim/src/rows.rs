//! Rows of the memory, for the arrays of a program.
//!
//! An array takes whole rows, the same ones in every bank: then no two arrays that live at a time meet, whoever of the
//! units stores what, and a launch's own places can be numbered from their first row.

use ptoc_abi::Coord;
use ptoc_pim_stream::placement::{ArrayPlacement, Leaf};
use std::ops::Range;

/// An array in the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Laid {
    /// Where.
    pub placement: ArrayPlacement,
    /// The rows that are its own, from the placement's first one.
    pub rows: u32,
}

impl Laid {
    /// Its rows.
    pub fn range(&self) -> Range<u32> {
        self.placement.row..self.placement.row.saturating_add(self.rows)
    }
}

/// What is free when a launch begins, and where its tensors are already.
#[derive(Clone, Debug)]
pub struct FreeRows {
    free: Vec<Range<u32>>,
    here: Vec<(u32, Vec<u32>, Laid)>,
}

impl FreeRows {
    /// All of them, but for those of these arrays.
    pub fn new(all: Range<u32>, taken: impl Iterator<Item = Range<u32>>) -> FreeRows {
        let mut taken: Vec<Range<u32>> = taken.collect();
        taken.sort_by_key(|r| (r.start, r.end));
        let (mut free, mut at) = (Vec::new(), all.start);
        for r in taken {
            if r.start > at {
                free.push(at..r.start.min(all.end));
            }
            at = at.max(r.end);
        }
        if at < all.end {
            free.push(at..all.end);
        }
        FreeRows { free, here: Vec::new() }
    }

    /// Tensor `number` of the launch, of this shape, is there.
    pub fn is_at(&mut self, number: u32, shape: &[u32], laid: &Laid) {
        self.here.push((number, shape.to_vec(), laid.clone()));
    }

    /// Where tensor `number` of the launch is already.
    pub fn known(&self, number: u32) -> impl Iterator<Item = (&[u32], &Laid)> {
        self.here.iter().filter(move |(n, ..)| *n == number).map(|(_, shape, laid)| (&shape[..], laid))
    }

    /// The first row for a tensor of the launch with this placement, which takes so many: that where it lies, or free
    /// ones. `None` is for what the launch needs beside its tensors. Returns `None` if there are none in one piece.
    pub fn take(&mut self, tensor: Option<u32>, placement: &ArrayPlacement, rows: u32) -> Option<u32> {
        let there = self.here.iter().find(|(n, shape, laid)| {
            Some(*n) == tensor && laid.rows >= rows && same(&laid.placement, placement, shape)
        });
        if let Some((.., laid)) = there {
            return Some(laid.placement.row);
        }
        let free = self.free.iter_mut().find(|r| r.end - r.start >= rows)?;
        free.start += rows;
        Some(free.start - rows)
    }

    /// The longest piece that is free.
    pub fn longest(&self) -> u32 {
        self.longest_piece().len() as u32
    }

    /// Its rows.
    pub fn longest_piece(&self) -> Range<u32> {
        self.free.iter().max_by_key(|r| r.len()).cloned().unwrap_or_default()
    }
}

/// The rows that a placement goes through.
pub fn reach(p: &ArrayPlacement) -> u32 {
    let rows = p.dims.iter().flatten().filter(|l| l.coord == Coord::Row && l.extent > 1);
    rows.fold(1, |n, l| n.saturating_add((l.extent - 1).saturating_mul(l.stride)))
}

/// Whether the elements of an array of this shape lie alike in both, from whatever row on.
pub fn same(a: &ArrayPlacement, b: &ArrayPlacement, shape: &[u32]) -> bool {
    let begins = |p: &ArrayPlacement| (p.replicated, p.bank, p.col);
    begins(a) == begins(b) && normal(a, shape) == normal(b, shape)
}

/// Each dimension's parts without those that nothing moves along; what goes on along the same coordinate is one.
fn normal(p: &ArrayPlacement, shape: &[u32]) -> Vec<Vec<Leaf>> {
    let one = |(dim, extent): (&Vec<Leaf>, &u32)| {
        let mut rest = *extent;
        let mut out: Vec<Leaf> = Vec::new();
        for leaf in dim {
            let here = Leaf { extent: leaf.extent.min(rest), ..*leaf };
            rest = rest.div_ceil(leaf.extent.max(1));
            if here.extent <= 1 {
                continue;
            }
            match out.last_mut() {
                Some(last) if last.coord == here.coord && last.extent.checked_mul(last.stride) == Some(here.stride) => {
                    last.extent *= here.extent;
                }
                _ => out.push(here),
            }
        }
        out
    };
    p.dims.iter().zip(shape).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::leaf;

    fn placed(dims: Vec<Vec<Leaf>>, row: u32) -> ArrayPlacement {
        ArrayPlacement { dims, row, replicated: false, ..ArrayPlacement::default() }
    }

    #[test]
    fn pieces() {
        let mut rows = FreeRows::new(1..100, [10..20, 0..5, 15..30, 90..200].into_iter());
        assert_eq!(rows.free, [5..10, 30..90]);
        let p = placed(vec![vec![leaf(4, Coord::Row, 2)]], 0);
        assert_eq!(reach(&p), 7);
        assert_eq!(
            (rows.take(None, &p, 7), rows.take(None, &p, 5), rows.take(Some(0), &p, 54)),
            (Some(30), Some(5), None)
        );
        assert_eq!(rows.longest(), 53);
        // A tensor that lies so already stays where it is, and one that would take more rows does not.
        rows.is_at(3, &[4], &Laid { placement: ArrayPlacement { row: 10, ..p.clone() }, rows: 7 });
        assert_eq!((rows.take(Some(3), &p, 7), rows.take(Some(3), &p, 8)), (Some(10), Some(37)));
        assert_eq!(FreeRows::new(0..4, std::iter::once(0..4)).longest(), 0);
    }

    #[test]
    fn places_that_are_alike() {
        let a = placed(vec![vec![leaf(1, Coord::Row, 9)], vec![leaf(16, Coord::Byte, 2), leaf(4, Coord::Col, 1)]], 3);
        let b = placed(
            vec![
                vec![],
                vec![leaf(4, Coord::Byte, 2), leaf(4, Coord::Byte, 8), leaf(2, Coord::Col, 1), leaf(8, Coord::Col, 2)],
            ],
            5,
        );
        assert!(same(&a, &b, &[1, 64]));
        // Room that no element takes makes no difference, and elements do.
        assert!(!same(&a, &b, &[1, 80]));
        let c = placed(vec![vec![], vec![leaf(16, Coord::Byte, 2), leaf(4, Coord::Col, 2)]], 3);
        assert!(!same(&a, &c, &[1, 64]));
        assert!(!same(&a, &ArrayPlacement { replicated: true, ..a.clone() }, &[1, 64]));
    }
}
