//! Indirect gathers (row pointers): gathers that leave rows in the table: `Gather` of loop IR with `places`.
//!
//! Only a row whose elements are no neighbours in the table is copied; of the others what reads them reads the table.
//! They are asked for while they are looked at, so that many of them come at a time.

use super::LINE;
use super::gather::{element, of_mode};
use ptoc_abi::Oob;

/// Bytes that are asked for: a part of a second-level cache.
const ASKED: usize = 64 << 10;

/// A matrix of 32-bit numbers: its first element, and bytes from row to row and from column to column.
#[derive(Clone, Copy)]
struct Numbers {
    first: *const u8,
    steps: (isize, isize),
}

impl Numbers {
    /// # Safety
    /// The element is in memory.
    #[inline(always)]
    unsafe fn at(self, i: i64, j: i64) -> u32 {
        let at = self.first.wrapping_offset(i as isize * self.steps.0 + j as isize * self.steps.1);
        // SAFETY: the caller's.
        unsafe { at.cast::<u32>().read_unaligned() }
    }

    /// Whether each number of row `i` follows the one before it, if `cols` is not 0. Numbers wrap around.
    ///
    /// # Safety
    /// The row's elements are in memory.
    #[inline(always)]
    unsafe fn ascend(self, i: i64, cols: i64) -> bool {
        // SAFETY: the caller's.
        unsafe {
            let first = self.at(i, 0);
            let fold =
                |row: Numbers| (0..cols).fold(0, |other, j| other | (row.at(i, j) ^ first.wrapping_add(j as u32)));
            // Numbers side by side are compared as vectors.
            let other = if self.steps.1 == 4 { fold(Numbers { steps: (self.steps.0, 4), ..self }) } else { fold(self) };
            other == 0
        }
    }
}

/// One gather of elements of `S` bytes.
#[derive(Clone, Copy)]
struct Located {
    dst: *mut u8,
    table: *const u8,
    index: Numbers,
    plus: Option<Numbers>,
    places: *mut u8,
    place_step: isize,
    rows: i64,
    cols: i64,
    dst_steps: (isize, isize),
    total: i64,
    oob: Oob,
    unsigned: bool,
}

impl Located {
    /// # Safety
    /// All are in memory, and destination and places apart from each other and the rest.
    #[inline(always)]
    unsafe fn run<const S: usize>(self) -> i64 {
        if self.cols <= 0 {
            return -1;
        }
        // Numbers do not wrap around within a row.
        let end = self.total.min(if self.unsigned { 1 << 32 } else { 1 << 31 });
        // SAFETY: row 0 is there if any is.
        let even = self.rows > 0 && unsafe { self.even() };
        let (mut missing, mut asked) = (-1, 0);
        for i in 0..self.rows {
            // SAFETY: rows and columns are inside; the table is read where its elements are.
            unsafe {
                let number = self.number(i, 0);
                let inside = number >= 0 && number <= end - self.cols;
                let place = if inside && (even || self.neighbours(i)) {
                    let offset = number as isize * S as isize;
                    let bytes = self.cols as usize * S;
                    if asked < ASKED {
                        asked += bytes;
                        ask(self.table.wrapping_offset(offset), bytes.min(ASKED));
                    }
                    offset
                } else {
                    let to = self.dst.offset(i as isize * self.dst_steps.0);
                    let first = self.copy::<S>(i, to);
                    if first >= 0 && missing < 0 {
                        missing = i * self.cols + first;
                    }
                    (to as isize).wrapping_sub(self.table as isize)
                };
                self.places.offset(i as isize * self.place_step).cast::<i64>().write_unaligned(place as i64);
            }
        }
        missing
    }

    /// Whether the elements of every row are neighbours, as one look at what all rows share shows.
    ///
    /// # Safety
    /// There is a row.
    #[inline(always)]
    unsafe fn even(&self) -> bool {
        let Some(plus) = self.plus else { return false };
        let (column, row) = if self.index.steps.1 == 0 { (self.index, plus) } else { (plus, self.index) };
        // SAFETY: row 0 is inside.
        column.steps.1 == 0 && row.steps.0 == 0 && unsafe { row.ascend(0, self.cols) }
    }

    /// Whether the elements of row `i` are neighbours.
    ///
    /// # Safety
    /// The row is inside.
    #[inline(always)]
    unsafe fn neighbours(&self, i: i64) -> bool {
        // SAFETY: the caller's.
        unsafe {
            match self.plus {
                None => self.index.ascend(i, self.cols),
                Some(_) => {
                    let first = self.bits(i, 0);
                    (1..self.cols).all(|j| self.bits(i, j) == first.wrapping_add(j as u32))
                }
            }
        }
    }

    /// Copies row `i` element after element; gives the first that is missing, or -1.
    ///
    /// # Safety
    /// The row is inside, and there is room for it at `to`.
    #[inline(never)]
    unsafe fn copy<const S: usize>(&self, i: i64, mut to: *mut u8) -> i64 {
        let mut missing = -1;
        for j in 0..self.cols {
            // SAFETY: the caller's; the table is read inside only.
            unsafe {
                if !element::<S>(self.table, self.total, self.oob, self.number(i, j), to) && missing < 0 {
                    missing = j;
                }
                to = to.wrapping_offset(self.dst_steps.1);
            }
        }
        missing
    }

    /// # Safety
    /// The index is in memory.
    #[inline(always)]
    unsafe fn bits(&self, i: i64, j: i64) -> u32 {
        // SAFETY: the caller's.
        unsafe { self.index.at(i, j).wrapping_add(self.plus.map_or(0, |p| p.at(i, j))) }
    }

    /// # Safety
    /// The index is in memory.
    #[inline(always)]
    unsafe fn number(&self, i: i64, j: i64) -> i64 {
        // SAFETY: the caller's.
        let bits = unsafe { self.bits(i, j) };
        if self.unsigned { i64::from(bits) } else { i64::from(bits as i32) }
    }
}

/// Asks for the lines of some bytes.
#[inline(always)]
fn ask(from: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..bytes).step_by(LINE).chain([bytes - 1]) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: asking touches nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, bytes);
}

macro_rules! routine {
    ($name:ident, $size:literal) => {
        /// Destination, table, indices, what is added to them (or 0), places, rows, columns, bytes from row to row and
        /// from column to column of destination, indices and what is added, from place to place, elements of the table,
        /// [`super::mode`]. Gives the row-major number of the first missing element, or -1.
        ///
        /// # Safety
        /// All are in memory, and destination and places apart from each other and the rest.
        pub(super) unsafe extern "C" fn $name(
            dst: *mut u8,
            table: *const u8,
            index: *const u8,
            plus: *const u8,
            places: *mut u8,
            rows: i64,
            cols: i64,
            dst_row: i64,
            dst_col: i64,
            index_row: i64,
            index_col: i64,
            plus_row: i64,
            plus_col: i64,
            place_step: i64,
            total: i64,
            mode: i64,
        ) -> i64 {
            let (oob, unsigned) = of_mode(mode);
            let numbers = |first, row: i64, col: i64| Numbers { first, steps: (row as isize, col as isize) };
            let index = numbers(index, index_row, index_col);
            let plus = (!plus.is_null()).then(|| numbers(plus, plus_row, plus_col));
            let (dst_steps, place_step) = ((dst_row as isize, dst_col as isize), place_step as isize);
            let all =
                Located { dst, table, index, plus, places, place_step, rows, cols, dst_steps, total, oob, unsigned };
            // SAFETY: the caller's.
            unsafe { all.run::<$size>() }
        }
    };
}

routine!(locate_1, 1);
routine!(locate_2, 2);
routine!(locate_4, 4);
routine!(locate_8, 8);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode;

    /// Elements of each row as its place shows them, which rows stayed, and what is missing.
    fn located(oob: Oob, unsigned: bool, column: &[u32], row: &[u32], total: i64) -> (Vec<Vec<u32>>, Vec<bool>, i64) {
        let table: Vec<u32> = (0..total as u32).map(|n| n + 1000).collect();
        let (rows, cols) = (column.len(), row.len());
        let mut places = vec![0i64; rows];
        let mut dst = vec![7u32; rows * cols];
        let by_sum = |(index, steps): (&[u32], _),
                      (plus, plus_steps): (&[u32], _),
                      dst: &mut [u32],
                      places: &mut [i64]| {
            let (to, at): (*mut u8, *mut u8) = (dst.as_mut_ptr().cast(), places.as_mut_ptr().cast());
            let ((ir, ic), (pr, pc)): ((i64, i64), (i64, i64)) = (steps, plus_steps);
            let plus = if plus.is_empty() { std::ptr::null() } else { plus.as_ptr().cast() };
            let (row, mode) = (4 * cols as i64, mode(oob, unsigned));
            let (table, index) = (table.as_ptr().cast(), index.as_ptr().cast());
            // SAFETY: as many rows and columns as the slices have.
            unsafe {
                locate_4(to, table, index, plus, at, rows as i64, cols as i64, row, 4, ir, ic, pr, pc, 8, total, mode)
            }
        };
        let read = |places: &[i64]| -> Vec<Vec<u32>> {
            let one = |place: &i64| {
                let from = table.as_ptr().cast::<u8>().wrapping_offset(*place as isize).cast::<u32>();
                // SAFETY: a place leads to a row of the table or of the destination.
                (0..cols).map(|j| unsafe { from.wrapping_add(j).read_unaligned() }).collect()
            };
            places.iter().map(one).collect()
        };
        let stay = |places: &[i64]| places.iter().map(|p| (0..total * 4).contains(p)).collect::<Vec<_>>();
        let missing = by_sum((column, (4, 0)), (row, (0, 4)), &mut dst, &mut places);
        let found = (read(&places), stay(&places), missing);
        // The other way round, and as one matrix of sums.
        let missing = by_sum((row, (0, 4)), (column, (4, 0)), &mut dst, &mut places);
        assert_eq!((read(&places), stay(&places), missing), found);
        let sums: Vec<u32> = column.iter().flat_map(|c| row.iter().map(move |r| c.wrapping_add(*r))).collect();
        let missing = by_sum((&sums, (4 * cols as i64, 4)), (&[], (0, 0)), &mut dst, &mut places);
        assert_eq!((read(&places), stay(&places), missing), found);
        found
    }

    #[test]
    fn rows_stay_or_are_copied() {
        let along: Vec<u32> = (0..21).collect();
        for oob in [Oob::Undefined, Oob::Clamp, Oob::Wrap, Oob::Zero] {
            // At the start, somewhere, at the very end, one beyond it, and before the start.
            let column = [0, 33, 79, 80, u32::MAX];
            let (rows, stay, missing) = located(oob, false, &column, &along, 100);
            assert_eq!(stay, [true, true, true, false, false], "{oob:?}");
            for (found, c) in rows.iter().zip(column) {
                for (j, x) in (0..).zip(found) {
                    let index = i64::from(c as i32) + j;
                    assert_eq!(*x, oob.lead(index, 100).map_or(0, |n| n as u32 + 1000), "{oob:?} {c} + {j}");
                }
            }
            assert_eq!(missing, if oob == Oob::Undefined { 3 * 21 + 20 } else { -1 }, "{oob:?}");
        }
    }

    #[test]
    fn rows_that_jump_are_copied() {
        let mut along: Vec<u32> = (0..70).collect();
        along[69] = 5;
        let (rows, stay, missing) = located(Oob::Undefined, false, &[1, 2], &along, 200);
        assert_eq!((stay, missing), (vec![false; 2], -1));
        assert_eq!((rows[1][68], rows[1][69]), (1070, 1007));
    }

    #[test]
    fn numbers_do_not_wrap_around() {
        let along: Vec<u32> = (0..4).collect();
        let (rows, stay, missing) = located(Oob::Zero, false, &[u32::MAX - 1], &along, 100);
        assert_eq!((rows, stay, missing), (vec![vec![0, 0, 1000, 1001]], vec![false], -1));
        assert_eq!(located(Oob::Wrap, true, &[u32::MAX - 1], &along, 100).1, [false]);
        assert_eq!(located(Oob::Clamp, false, &[3], &along, 0), (vec![vec![0; 4]], vec![false], 0), "an empty table");
    }
}
