//! Transposes of words with AVX2: squares of eight by eight, two side by side, so that whole lines are written.
//!
//! Both halves of a line leave the registers one after the other, which is all that writing past the caches asks for. A
//! stage, as [`super::transpose_avx512`] has one, takes longer here: its rows go through the first-level cache by half
//! lines twice.

use super::Rows;
use super::simd::{columns, turn};
use std::arch::x86_64::*;

/// Rows of a square.
pub(super) const SIDE: usize = 8;

/// Words of a line: columns of two squares.
pub(super) const PAIR: usize = 2 * SIDE;

/// Lines of the source that are read by turns: their pages, and those that are written, are fewer than the 64 that
/// cores with AVX2 have at hand.
const MOST: usize = 48;

/// Turns `cols` lines of `rows` words, whole squares, to `rows` lines within the caches: a line at a time is written
/// whole.
///
/// # Safety
/// Both are in memory, and apart; the machine has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn within(src: Rows<*const u8>, cols: usize, rows: usize, dst: Rows<*mut u8>) {
    debug_assert!(rows.is_multiple_of(SIDE) && cols.is_multiple_of(SIDE));
    for first in (0..cols).step_by(PAIR) {
        for r in (0..rows).step_by(SIDE) {
            for c in (first..cols.min(first + PAIR)).step_by(SIDE) {
                let at = src.at.wrapping_offset(c as isize * src.step).wrapping_add(4 * r);
                let to = dst.at.wrapping_offset(r as isize * dst.step).wrapping_add(4 * c);
                // SAFETY: the square is inside.
                unsafe { turn(at.cast(), src.step, to.cast(), dst.step) };
            }
        }
    }
}

/// Turns `cols` lines of `rows` words, whole pairs of squares, to `rows` lines past the caches. Asks for what lies
/// `ahead` of the lines that it reads.
///
/// # Safety
/// Both are in memory, and apart, the destination at addresses of whole lines; the machine has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn pass(src: Rows<*const u8>, cols: usize, rows: usize, dst: Rows<*mut u8>, ahead: isize) {
    debug_assert!(rows.is_multiple_of(SIDE) && cols.is_multiple_of(PAIR));
    // Rows of the destination are written whole, unless lines of the source are on more pages than the machine has at
    // hand.
    let strip = if cols <= MOST { cols.max(PAIR) } else { PAIR };
    for first in (0..cols).step_by(strip) {
        for r in (0..rows).step_by(SIDE) {
            for c in (first..cols.min(first + strip)).step_by(PAIR) {
                let at = src.at.wrapping_offset(c as isize * src.step).wrapping_add(4 * r);
                // What two squares read of a line is asked for by the first of them.
                if r % PAIR == 0 {
                    for n in 0..PAIR as isize {
                        _mm_prefetch::<_MM_HINT_T1>(at.wrapping_offset(ahead + n * src.step).cast());
                    }
                }
                let to = dst.at.wrapping_offset(r as isize * dst.step).wrapping_add(4 * c);
                // SAFETY: the squares are inside.
                unsafe { pair(Rows { at, ..src }, Rows { at: to, ..dst }) };
            }
        }
    }
}

/// # Safety
/// As [`pass`], for sixteen lines of eight words.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn pair(src: Rows<*const u8>, dst: Rows<*mut u8>) {
    // SAFETY: the caller's promise.
    unsafe {
        let low = columns(src.at.cast(), src.step);
        let high = columns(src.at.wrapping_offset(SIDE as isize * src.step).cast(), src.step);
        for (n, (low, high)) in low.into_iter().zip(high).enumerate() {
            let to = dst.at.wrapping_offset(n as isize * dst.step).cast::<f32>();
            _mm256_stream_ps(to, low);
            _mm256_stream_ps(to.wrapping_add(SIDE), high);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strided::fence;

    /// Every element at its place, nothing beside them, whatever lies ahead.
    #[test]
    fn squares() {
        if !std::is_x86_feature_detected!("avx2") {
            return;
        }
        for (rows, cols) in [(8, 16), (16, 16), (24, 48), (64, 64), (40, 32), (0, 16), (8, 0), (8, 8), (24, 40)] {
            let non_temporal = cols % PAIR == 0;
            for (non_temporal, more, apart) in
                [(non_temporal, 0, 0), (non_temporal, 1, 16), (non_temporal, 5, 32), (false, 0, 0), (false, 3, 5)]
            {
                let (from, to) = (rows + more, cols + apart);
                let src: Vec<u32> = (0..cols * from).map(|n| (n as u32).wrapping_mul(2_654_435_761)).collect();
                let mut dst = vec![7u32; rows * to + 33];
                // Whole lines are what goes past the caches.
                let start = dst.as_ptr().cast::<u8>().align_offset(64) / 4 + usize::from(!non_temporal);
                let mut want = dst.clone();
                for r in 0..rows {
                    for c in 0..cols {
                        want[start + r * to + c] = src[c * from + r];
                    }
                }
                let lines = Rows { at: src.as_ptr().cast::<u8>(), step: 4 * from as isize };
                let turned = Rows { at: dst[start..].as_mut_ptr().cast::<u8>(), step: 4 * to as isize };
                // SAFETY: both vectors hold all elements; the machine has AVX2.
                unsafe {
                    if non_temporal {
                        pass(lines, cols, rows, turned, 1 << 40)
                    } else {
                        within(lines, cols, rows, turned)
                    }
                };
                fence();
                assert!(dst == want, "past {non_temporal}, {rows} x {cols}, {more} and {apart} between lines");
            }
        }
    }
}
