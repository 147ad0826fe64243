//! Copies.

use super::LINE;
use super::strided::{VECTOR, write_past_cache};

/// Bytes of a row that is not of whole lines and is still written past the caches: with fewer, the lines at its ends,
/// which are written in part, cost more than reading all of them first.
const LONG: i64 = 512;

/// Whether non-temporal stores pay: rows of whole lines, or long ones that begin at a multiple of a vector.
fn is_worth(dst: *mut u8, rows: i64, bytes: i64, dst_step: i64) -> bool {
    let starts = dst as i64 | if rows == 1 { 0 } else { dst_step };
    (starts | bytes) % LINE as i64 == 0 || starts % VECTOR as i64 == 0 && bytes >= LONG
}

/// Copies `rows` rows of `bytes` bytes, one after the other. A row of the source may be the very row of the
/// destination, or overlap another one, unless `non_temporal` is not zero: then nothing overlaps, and what is written
/// is part of something too large for the caches.
///
/// # Safety
/// Both matrices are in memory that may be read and written.
pub(super) unsafe extern "C" fn copy(
    dst: *mut u8,
    src: *const u8,
    rows: i64,
    bytes: i64,
    dst_step: i64,
    src_step: i64,
    non_temporal: i64,
) {
    if rows <= 0 || bytes <= 0 || (dst.cast_const() == src && dst_step == src_step) {
        return;
    }
    if non_temporal != 0 && is_worth(dst, rows, bytes, dst_step) {
        let (rows, bytes) = if dst_step == bytes && src_step == bytes { (1, rows * bytes) } else { (rows, bytes) };
        let (vectors, rest) = (bytes as usize / VECTOR * VECTOR, bytes as usize % VECTOR);
        for row in 0..rows as isize {
            // SAFETY: row `row` of both is in memory. The destination is an array that nothing reads here, so they are
            // apart.
            unsafe {
                let (dst, src) = (dst.offset(row * dst_step as isize), src.offset(row * src_step as isize));
                write_past_cache(dst, src, vectors);
                std::ptr::copy_nonoverlapping(src.add(vectors), dst.add(vectors), rest);
            };
        }
        return;
    }
    if rows == 1 || (dst_step == bytes && src_step == bytes) {
        let all = rows.wrapping_mul(bytes);
        let apart = (dst as i64).wrapping_sub(src as i64).unsigned_abs() >= all as u64;
        if apart {
            // SAFETY: rows without gaps are one row, and the two do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(src, dst, all as usize) };
            return;
        }
    }
    // Short rows need no call each.
    macro_rules! short {
        ($($n:literal)*) => {
            match bytes {
                // SAFETY: the caller's.
                $($n => return unsafe { short::<$n>(dst, src, rows, dst_step, src_step) },)*
                _ => {}
            }
        };
    }
    short!(1 2 3 4 6 8 12 16 24 32 48 64 96 128);
    for row in 0..rows as isize {
        // SAFETY: row `row` of both is in memory; `copy` allows them to overlap.
        unsafe {
            std::ptr::copy(src.offset(row * src_step as isize), dst.offset(row * dst_step as isize), bytes as usize);
        }
    }
}

/// Rows of `N` bytes. A row is read before it is written.
///
/// # Safety
/// As [`copy`].
unsafe fn short<const N: usize>(dst: *mut u8, src: *const u8, rows: i64, dst_step: i64, src_step: i64) {
    for row in 0..rows as isize {
        // SAFETY: row `row` of both is in memory.
        unsafe {
            let bytes = src.offset(row * src_step as isize).cast::<[u8; N]>().read_unaligned();
            dst.offset(row * dst_step as isize).cast::<[u8; N]>().write_unaligned(bytes);
        }
    }
}
