//! VNNI kernel: products of i8 in i32, which wraps, so the order of the sums does not matter.
//!
//! The machine multiplies four unsigned bytes by four signed ones and adds the products to an i32. So a is shifted by
//! 128, and what that is too much, 128 times the sum of each column of b, is a row of the panel that is subtracted
//! (that is, its negative is added).

use super::micro_kernel::{MicroKernelArgs, Version};
use super::panels::{self, Panel, Way};
use super::plain::at;
use super::{Job, Matrix};

/// By blocks of groups of four bytes.
struct Bytes(&'static Version);

impl Bytes {
    /// Packs the columns of one panel.
    ///
    /// # Safety
    /// As for [`Way::panel`].
    unsafe fn fill(&self, b: Matrix<*const u8>, k: usize, to: Panel) {
        let Panel { at: to, columns, padded, .. } = to;
        let groups = k.div_ceil(4);
        // SAFETY: the panel has room for the groups of `padded` columns and one more row.
        unsafe {
            for g in 0..groups {
                let steps = (k - 4 * g).min(4);
                let row = to.wrapping_add(4 * g * padded);
                let mut c = 0;
                if b.col == 1 && steps == 4 {
                    c = interleaved(&b, 4 * g, columns, row);
                }
                for c in c..padded {
                    for s in 0..4 {
                        let there = c < columns && s < steps;
                        let byte = if there { at(&b, 4 * g + s, c).read() } else { 0 };
                        row.wrapping_add(4 * c + s).write(byte);
                    }
                }
            }
            // The sums of the columns are a product with a row of ones.
            let ones = [1u8; 4];
            let sums = to.wrapping_add(4 * groups * padded);
            let sum = MicroKernelArgs {
                k: groups,
                d: sums,
                d_row: 0,
                start: std::ptr::null(),
                start_row: 0,
                a: ones.as_ptr(),
                a_row: 0,
                a_col: 0,
                b: to.cast_const(),
                b_row: 4 * padded as isize,
                plus: std::ptr::null(),
                last: self.0.lanes,
            };
            self.0.code(1, padded / self.0.lanes, self.0.lanes, true)(&sum);
            for c in 0..padded {
                let sum = sums.cast::<i32>().wrapping_add(c);
                sum.write(sum.read().wrapping_mul(-128));
            }
        }
    }
}

/// # Safety
/// As for the routine; columns of d are contiguous i32, those of the start too.
pub(super) unsafe fn product(job: &Job, version: &'static Version) {
    // SAFETY: the caller's promise.
    unsafe { panels::packed(job, &Bytes(version)) }
}

impl Way for Bytes {
    const STEPS: usize = 4;
    const MORE: usize = 1;

    fn version(&self) -> &'static Version {
        self.0
    }

    unsafe fn panel(&self, _: &Job, b: Matrix<*const u8>, k: usize, to: Panel) {
        // SAFETY: the caller's promise.
        unsafe { self.fill(b, k, to) }
    }

    unsafe fn strip(&self, _: &Job, a: Matrix<*const u8>, rows: usize, k: usize, to: *mut u8) -> Matrix<*const u8> {
        let length = k.next_multiple_of(4);
        for r in 0..rows {
            let row = to.wrapping_add(r * length);
            // SAFETY: the strip has room for the rows. Behind the k of a row b is zero, and any byte will do.
            unsafe {
                if a.col == 1 {
                    let from = std::slice::from_raw_parts(at(&a, r, 0), k);
                    let to = std::slice::from_raw_parts_mut(row, k);
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = from ^ 0x80);
                } else {
                    (0..k).for_each(|p| row.wrapping_add(p).write(at(&a, r, p).read() ^ 0x80));
                }
                (k..length).for_each(|p| row.wrapping_add(p).write(0));
            }
        }
        Matrix { at: to.cast_const(), row: length as isize, col: 4 }
    }
}

/// Four rows of b from row `p` on, byte by byte side by side, as many columns as are whole vectors: how many.
unsafe fn interleaved(b: &Matrix<*const u8>, p: usize, columns: usize, to: *mut u8) -> usize {
    let mut c = 0;
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::*;
        while c + 16 <= columns {
            // SAFETY: 16 columns of four rows; x86-64 has SSE2.
            unsafe {
                let row = |s: usize| _mm_loadu_si128(at(b, p + s, c).cast());
                let (r0, r1, r2, r3) = (row(0), row(1), row(2), row(3));
                let (low, high) = (_mm_unpacklo_epi8(r0, r1), _mm_unpackhi_epi8(r0, r1));
                let (low2, high2) = (_mm_unpacklo_epi8(r2, r3), _mm_unpackhi_epi8(r2, r3));
                let out = [
                    _mm_unpacklo_epi16(low, low2),
                    _mm_unpackhi_epi16(low, low2),
                    _mm_unpacklo_epi16(high, high2),
                    _mm_unpackhi_epi16(high, high2),
                ];
                for (n, v) in out.into_iter().enumerate() {
                    _mm_storeu_si128(to.wrapping_add(4 * c + 16 * n).cast(), v);
                }
            }
            c += 16;
        }
    }
    c
}
