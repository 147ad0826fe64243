//! Elements of a table by their numbers, as `Gather` of loop IR has it.
//!
//! Numbers that follow each other are the usual case: the channels of a pixel, a row of a table of embeddings. So each
//! stretch of a row is looked at first, and copied as a whole if its elements are neighbours.

use ptoc_abi::Oob;

/// Indices that are looked at together.
const STRETCH: usize = 64;

/// Rows ahead of which the table is asked for elements, and the most bytes that are asked for: what an index names is
/// anywhere, and the copy of one row is done long before the next one has come from beyond the second-level cache.
const AHEAD: i64 = 8;
const ASKED: usize = 256;

/// `oob` and the sign of the indices as one number.
pub fn mode(oob: Oob, unsigned: bool) -> i64 {
    let oob = match oob {
        Oob::Undefined => 0,
        Oob::Clamp => 1,
        Oob::Wrap => 2,
        Oob::Zero => 3,
    };
    oob * 2 + i64::from(unsigned)
}

pub(super) fn of_mode(mode: i64) -> (Oob, bool) {
    let oob = match mode / 2 {
        0 => Oob::Undefined,
        1 => Oob::Clamp,
        2 => Oob::Wrap,
        _ => Oob::Zero,
    };
    (oob, mode % 2 == 1)
}

/// Copies the element of a number, or zeros if there is none; says whether `oob` has an answer to the number.
///
/// # Safety
/// The table has `total` elements of `S` bytes, and there is room for one.
#[inline(always)]
pub(super) unsafe fn element<const S: usize>(table: *const u8, total: i64, oob: Oob, number: i64, to: *mut u8) -> bool {
    let at = oob.lead(number, total);
    // SAFETY: the caller's; the table is read inside only.
    unsafe {
        let x = match at {
            Some(at) => table.offset(at as isize * S as isize).cast::<[u8; S]>().read_unaligned(),
            None => [0; S],
        };
        to.cast::<[u8; S]>().write_unaligned(x);
    }
    at.is_some() || oob == Oob::Zero
}

/// One gather of elements of `S` bytes.
#[derive(Clone, Copy)]
struct Gather {
    dst: *mut u8,
    table: *const u8,
    index: *const u8,
    rows: i64,
    cols: i64,
    /// Bytes from row to row and from column to column.
    dst_steps: (isize, isize),
    index_steps: (isize, isize),
    /// Elements of the table.
    total: i64,
    oob: Oob,
    unsigned: bool,
}

impl Gather {
    /// # Safety
    /// All three are in memory, and the destination apart from the others.
    #[inline(always)]
    unsafe fn run<const S: usize>(self) -> i64 {
        let side_by_side = self.dst_steps.1 == S as isize && self.index_steps.1 == 4;
        let mut missing = -1;
        for i in 0..AHEAD {
            // SAFETY: the caller's.
            unsafe { self.ask::<S>(i, 0) };
        }
        for i in 0..self.rows.max(0) {
            let mut at = 0;
            while at < self.cols {
                // SAFETY: the caller's.
                unsafe { self.ask::<S>(i + AHEAD, at) };
                let count = if side_by_side { (self.cols - at).min(STRETCH as i64) } else { self.cols };
                // SAFETY: rows and columns are inside.
                let first = unsafe {
                    let dst = self.dst.offset(i as isize * self.dst_steps.0 + at as isize * self.dst_steps.1);
                    let index = self.index.offset(i as isize * self.index_steps.0 + at as isize * self.index_steps.1);
                    match side_by_side && self.stretch::<S>(dst, index.cast(), count as usize) {
                        true => -1,
                        false => self.each::<S>(dst, index, count),
                    }
                };
                if first >= 0 && missing < 0 {
                    missing = i * self.cols + at + first;
                }
                at += count;
            }
        }
        missing
    }

    /// Asks for what a row's stretch from `at` on will need, as far as its first index tells.
    ///
    /// # Safety
    /// The indices are in memory.
    #[inline(always)]
    unsafe fn ask<const S: usize>(&self, row: i64, at: i64) {
        #[cfg(target_arch = "x86_64")]
        if row < self.rows && at < self.cols {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: row and column are inside; asking touches nothing.
            unsafe {
                let index = self.index.offset(row as isize * self.index_steps.0 + at as isize * self.index_steps.1);
                let number = self.number(index.cast::<u32>().read_unaligned());
                if (0..self.total).contains(&number) {
                    let from = self.table.wrapping_offset(number as isize * S as isize);
                    let bytes = ((self.cols - at).min(STRETCH as i64) as usize * S).min(ASKED);
                    for line in (0..bytes).step_by(64) {
                        _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(line).cast());
                    }
                }
            }
        }
    }

    /// Copies elements that are neighbours inside of the table; says whether they are.
    ///
    /// # Safety
    /// `dst` and `index` have `count` elements, at most a stretch.
    #[inline(always)]
    unsafe fn stretch<const S: usize>(&self, dst: *mut u8, index: *const u32, count: usize) -> bool {
        // SAFETY: inside, as the caller says.
        unsafe {
            let first = index.read_unaligned();
            let number = self.number(first);
            // Numbers do not wrap around within a stretch.
            let end = if self.unsigned { 1 << 32 } else { 1 << 31 };
            if number < 0 || number + count as i64 > self.total.min(end) {
                return false;
            }
            let mut other = 0;
            if count == STRETCH {
                for k in 0..STRETCH {
                    other |= index.add(k).read_unaligned() ^ first.wrapping_add(k as u32);
                }
            } else {
                for k in 0..count {
                    other |= index.add(k).read_unaligned() ^ first.wrapping_add(k as u32);
                }
            }
            if other != 0 {
                return false;
            }
            let from = self.table.offset(number as isize * S as isize);
            if count == STRETCH {
                std::ptr::copy_nonoverlapping(from, dst, STRETCH * S);
            } else {
                std::ptr::copy_nonoverlapping(from, dst, count * S);
            }
        }
        true
    }

    /// Element after element; the first that is missing, or -1.
    ///
    /// # Safety
    /// `dst` and `index` have `count` elements.
    #[inline(always)]
    unsafe fn each<const S: usize>(&self, mut dst: *mut u8, mut index: *const u8, count: i64) -> i64 {
        let mut missing = -1;
        for j in 0..count {
            // SAFETY: inside, as the caller says; the table is read inside only.
            unsafe {
                let number = self.number(index.cast::<u32>().read_unaligned());
                if !element::<S>(self.table, self.total, self.oob, number, dst) && missing < 0 {
                    missing = j;
                }
                dst = dst.wrapping_offset(self.dst_steps.1);
                index = index.wrapping_offset(self.index_steps.1);
            }
        }
        missing
    }

    #[inline(always)]
    fn number(&self, bits: u32) -> i64 {
        if self.unsigned { i64::from(bits) } else { i64::from(bits as i32) }
    }
}

macro_rules! routine {
    ($name:ident, $wide:ident, $size:literal) => {
        /// Destination, table, indices, rows, columns, bytes from row to row and from column to column of the
        /// destination and of the indices, elements of the table, [`mode`]. Gives the row-major number of the first
        /// missing element, or -1.
        ///
        /// # Safety
        /// All three are in memory, and the destination is apart from the others.
        pub(super) unsafe extern "C" fn $name(
            dst: *mut u8,
            table: *const u8,
            index: *const u8,
            rows: i64,
            cols: i64,
            dst_row: i64,
            dst_col: i64,
            index_row: i64,
            index_col: i64,
            total: i64,
            mode: i64,
        ) -> i64 {
            let (oob, unsigned) = of_mode(mode);
            let dst_steps = (dst_row as isize, dst_col as isize);
            let index_steps = (index_row as isize, index_col as isize);
            let all = Gather { dst, table, index, rows, cols, dst_steps, index_steps, total, oob, unsigned };
            // SAFETY: the caller's; the instructions are there.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                if std::is_x86_feature_detected!("avx2") {
                    return $wide(all);
                }
                all.run::<$size>()
            }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        unsafe fn $wide(all: Gather) -> i64 {
            // SAFETY: the caller's.
            unsafe { all.run::<$size>() }
        }
    };
}

routine!(gather_1, wide_1, 1);
routine!(gather_2, wide_2, 2);
routine!(gather_4, wide_4, 4);
routine!(gather_8, wide_8, 8);

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(oob: Oob, unsigned: bool, index: &[u32], total: i64) -> (Vec<u32>, i64) {
        let table: Vec<u32> = (0..total as u32).map(|n| n + 1000).collect();
        let mut dst = vec![7; index.len()];
        let (to, by) = (dst.as_mut_ptr().cast(), index.as_ptr().cast());
        let mode = mode(oob, unsigned);
        let cols = index.len() as i64;
        // SAFETY: one row of as many elements.
        let missing = unsafe { gather_4(to, table.as_ptr().cast(), by, 1, cols, 0, 4, 0, 4, total, mode) };
        (dst, missing)
    }

    #[test]
    fn stretches_and_single_elements() {
        // A stretch of neighbours, one that jumps, one that leaves the table, and a short rest.
        let index: Vec<u32> = (5..69).chain((0..64).map(|k| k * 3 % 80)).chain(30..94).chain(78..80).collect();
        for oob in [Oob::Undefined, Oob::Clamp, Oob::Wrap, Oob::Zero] {
            let (found, missing) = gathered(oob, false, &index, 80);
            for (n, (&i, x)) in index.iter().zip(found).enumerate() {
                let expected = match (i < 80, oob) {
                    (true, _) => 1000 + i,
                    (false, Oob::Clamp) => 1079,
                    (false, Oob::Wrap) => 1000 + i % 80,
                    (false, _) => 0,
                };
                assert_eq!(x, expected, "{oob:?} element {n}");
            }
            assert_eq!(missing, if oob == Oob::Undefined { 128 + 50 } else { -1 }, "{oob:?}");
        }
    }

    /// Neighbours in 32 bits that are none as numbers.
    #[test]
    fn numbers_do_not_wrap_around() {
        let index: Vec<u32> = (0..64).map(|k| (-2i32 + k) as u32).collect();
        let (found, missing) = gathered(Oob::Undefined, false, &index, 100);
        assert_eq!((found[0], found[1], found[2], missing), (0, 0, 1000, 0));
        let (found, missing) = gathered(Oob::Wrap, true, &index, 100);
        let wrapped = 1000 + (u32::MAX - 1) % 100;
        assert_eq!((found[0], found[2], missing), (wrapped, 1000, -1));
        assert_eq!(gathered(Oob::Clamp, false, &[3], 0), (vec![0], 0), "an empty table");
    }
}
