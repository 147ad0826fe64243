//! `pmaddwd` kernel: products of i8 in i32 where the machine does not multiply bytes: both operands are widened to i16,
//! and two products at a time are added to an i32, exactly.

use super::micro_kernel::Version;
use super::panels::{self, Panel, Way};
use super::plain::at;
use super::{Job, Matrix};

/// By blocks of pairs.
struct Pairs(&'static Version);

impl Pairs {
    /// Packs the columns of one panel.
    ///
    /// # Safety
    /// As for [`Way::panel`].
    unsafe fn fill(&self, b: Matrix<*const u8>, k: usize, to: Panel) {
        let Panel { at: to, columns, padded, .. } = to;
        let to = to.cast::<i16>();
        for p in 0..k.next_multiple_of(2) {
            let row = to.wrapping_add(p / 2 * 2 * padded + p % 2);
            for c in 0..padded {
                // SAFETY: the panel has room for pairs of `padded` columns.
                unsafe {
                    let x = if p < k && c < columns { widened(&b, p, c) } else { 0 };
                    row.wrapping_add(2 * c).write(x);
                }
            }
        }
    }
}

/// # Safety
/// As for the routine; columns of d are contiguous i32, those of the start too.
pub(super) unsafe fn product(job: &Job, version: &'static Version) {
    // SAFETY: the caller's promise.
    unsafe { panels::packed(job, &Pairs(version)) }
}

/// # Safety
/// The element is there.
unsafe fn widened(m: &Matrix<*const u8>, i: usize, j: usize) -> i16 {
    // SAFETY: the caller's promise.
    i16::from(unsafe { at(m, i, j).cast::<i8>().read() })
}

impl Way for Pairs {
    const STEPS: usize = 2;
    const MORE: usize = 0;

    fn version(&self) -> &'static Version {
        self.0
    }

    unsafe fn panel(&self, _: &Job, b: Matrix<*const u8>, k: usize, to: Panel) {
        // SAFETY: the caller's promise.
        unsafe { self.fill(b, k, to) }
    }

    unsafe fn strip(&self, _: &Job, a: Matrix<*const u8>, rows: usize, k: usize, to: *mut u8) -> Matrix<*const u8> {
        let length = k.next_multiple_of(2);
        for r in 0..rows {
            let row = to.cast::<i16>().wrapping_add(r * length);
            for p in 0..length {
                // SAFETY: the strip has room for the rows. Behind the k of a row b is zero.
                unsafe { row.wrapping_add(p).write(if p < k { widened(&a, r, p) } else { 0 }) };
            }
        }
        Matrix { at: to.cast_const(), row: 2 * length as isize, col: 4 }
    }
}
