//! `vdpbf16ps` kernel: products of bf16 by the machine's dot products of pairs, with the bits of single steps.
//!
//! The instruction takes the upper element of a pair first, then the lower one, each by a fused multiply-add. So the
//! pairs of a and of b hold the earlier step of k in their upper half. It takes numbers below 2^-126 for zero, factors
//! and sums alike; all other rounding is that of single steps. Where no such number can turn up, the bits are the same:
//!
//! A normal bf16 with exponent e is a multiple of 2^(e-7). So with the least exponents of a and b, all products are
//! multiples of 2^(ea+eb-14), and so are their sums, rounded or not. If that is at least 2^-126, no sum but zero is
//! below it. The start of a sum has to be such a multiple too: an f32 with exponent e is one of 2^(e-23).
//!
//! Products of which that does not hold go the way of the other floats.

use super::micro_kernel::Version;
use super::panels::{self, Panel, Way};
use super::plain::at;
use super::{Job, Matrix};

/// By blocks of pairs of bf16.
struct Dots(&'static Version);

/// The least sum of biased exponents of two factors whose products are multiples of 2^-126: (ea - 127 - 7) + (eb -
/// 127 - 7) is at least -126.
const LEAST_PRODUCT: u32 = 142;
/// The least biased exponent of an f32 that is a multiple of 2^-126.
const LEAST_START: u32 = 24;

/// Magnitudes of numbers, as bits: less one, so that zero is the largest.
#[derive(Clone, Copy)]
struct Range {
    /// The least of all but zero, less one; the type's largest if there is none.
    least: u32,
    largest: u32,
}

impl Range {
    const NONE: Range = Range { least: u32::MAX, largest: 0 };

    fn add(&mut self, magnitude: u32) {
        self.least = self.least.min(magnitude.wrapping_sub(1));
        self.largest = self.largest.max(magnitude);
    }

    /// The least biased exponent, if all are finite; `bits`: of the type's mantissa.
    fn exponent(self, bits: u32) -> Option<u32> {
        (self.largest >> bits < 255).then(|| self.least.saturating_add(1) >> bits)
    }
}

/// What the elements of a matrix are like: bf16, or f32.
///
/// # Safety
/// They are there.
unsafe fn range(m: &Matrix<*const u8>, rows: usize, cols: usize, wide: bool) -> Range {
    let size = if wide { 4 } else { 2 };
    // Along what is contiguous, if anything is.
    let (m, rows, cols) = if m.row == size { (&m.transposed(), cols, rows) } else { (m, rows, cols) };
    let mut out = Range::NONE;
    for r in 0..rows {
        // SAFETY: the caller's promise.
        unsafe {
            if m.col == size && !wide {
                let row = ranges::of(at(m, r, 0).cast(), cols);
                out.least = out.least.min(row.least);
                out.largest = out.largest.max(row.largest);
                continue;
            }
            for c in 0..cols {
                let at = at(m, r, c);
                out.add(match wide {
                    true => at.cast::<u32>().read_unaligned() & 0x7fff_ffff,
                    false => u32::from(at.cast::<u16>().read_unaligned() & 0x7fff),
                });
            }
        }
    }
    out
}

mod ranges {
    use super::Range;

    /// Of so many bf16 side by side.
    ///
    /// # Safety
    /// They are there, and the machine has the instructions.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx512f,avx512bw"))]
    pub(super) unsafe fn of(from: *const u16, count: usize) -> Range {
        let (mut least, mut largest) = (u16::MAX, 0);
        for n in 0..count {
            // SAFETY: the caller's promise.
            let x = unsafe { from.wrapping_add(n).read_unaligned() } & 0x7fff;
            least = least.min(x.wrapping_sub(1));
            largest = largest.max(x);
        }
        let least = if least == u16::MAX { u32::MAX } else { u32::from(least) };
        Range { least, largest: u32::from(largest) }
    }
}

/// The largest magnitude of halves, as bits.
///
/// # Safety
/// They are there.
pub(super) unsafe fn largest(m: &Matrix<*const u8>, rows: usize, cols: usize) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { range(m, rows, cols, false).largest }
}

/// Whether dot products give the bits of single steps.
///
/// # Safety
/// As for the routine; a start is f32.
unsafe fn same_bits(job: &Job) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let exponent = |m, rows, cols| range(m, rows, cols, false).exponent(7).filter(|&e| e > 0);
        let (Some(a), Some(b)) = (exponent(&job.a, job.m, job.k), exponent(&job.b, job.k, job.n)) else {
            return false;
        };
        let start = match job.start.at.is_null() {
            true => Some(u32::MAX),
            // One row for all, or a matrix.
            false => range(&job.start, if job.start.row == 0 { 1 } else { job.m }, job.n, true).exponent(23),
        };
        a.saturating_add(b) >= LEAST_PRODUCT && start.is_some_and(|e| e >= LEAST_START)
    }
}

/// Computes the product if its bits are those of single steps. Returns whether it did.
///
/// # Safety
/// As for the routine; columns of d are contiguous f32, those of the start too; a and b are bf16.
pub(super) unsafe fn product(job: &Job, version: &'static Version) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let same = same_bits(job);
        if same {
            panels::packed(job, &Dots(version));
        }
        same
    }
}

/// A pair: the earlier step in the upper half.
fn pair(first: u16, second: u16) -> u32 {
    u32::from(first) << 16 | u32::from(second)
}

/// Behind the last step: a factor of a that adds -0 to any sum, so nothing.
const NOTHING: u16 = 0x8000;

/// # Safety
/// The element is there.
unsafe fn element(m: &Matrix<*const u8>, i: usize, j: usize) -> u16 {
    // SAFETY: the caller's promise.
    unsafe { at(m, i, j).cast::<u16>().read_unaligned() }
}

impl Dots {
    /// Packs the columns of one panel.
    ///
    /// # Safety
    /// As for [`Way::panel`].
    unsafe fn fill(&self, b: Matrix<*const u8>, k: usize, to: Panel) {
        let Panel { at: to, columns, padded, .. } = to;
        let to = to.cast::<u32>();
        let pairs = k / 2;
        let mut turned = (0, 0);
        #[cfg(target_arch = "x86_64")]
        if b.row == 2 {
            turned = (columns / 8 * 8, pairs / 8 * 8);
            for c in (0..turned.0).step_by(8) {
                for g in (0..turned.1).step_by(8) {
                    // SAFETY: eight columns of eight pairs are there.
                    unsafe { turn(at(&b, 2 * g, c), b.col, to.wrapping_add(g * padded + c), padded) };
                }
            }
        }
        for g in 0..k.div_ceil(2) {
            let row = to.wrapping_add(g * padded);
            let mut c = if g < turned.1 { turned.0 } else { 0 };
            // SAFETY: the panel has room for the pairs of `padded` columns.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                if b.col == 2 && g < pairs {
                    c = columns / 16 * 16;
                    interleave(at(&b, 2 * g, 0).cast(), at(&b, 2 * g + 1, 0).cast(), c, row);
                }
                for c in c..padded {
                    let there = c < columns;
                    let first = if there { element(&b, 2 * g, c) } else { 0 };
                    let second = if there && g < pairs { element(&b, 2 * g + 1, c) } else { 0 };
                    row.wrapping_add(c).write(pair(first, second));
                }
            }
        }
    }
}

impl Way for Dots {
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
        let (pairs, length) = (k / 2, k.div_ceil(2));
        for r in 0..rows {
            let row = to.cast::<u32>().wrapping_add(r * length);
            // SAFETY: the strip has room for the rows.
            unsafe {
                for g in 0..pairs {
                    let word = match a.col {
                        2 => at(&a, r, 2 * g).cast::<u32>().read_unaligned().rotate_left(16),
                        _ => pair(element(&a, r, 2 * g), element(&a, r, 2 * g + 1)),
                    };
                    row.wrapping_add(g).write(word);
                }
                if k % 2 == 1 {
                    row.wrapping_add(pairs).write(pair(element(&a, r, k - 1), NOTHING));
                }
            }
        }
        Matrix { at: to.cast_const(), row: 4 * length as isize, col: 4 }
    }
}

/// Pairs of two rows of so many columns, a multiple of 16.
///
/// # Safety
/// They are there, and the machine has AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn interleave(first: *const u16, second: *const u16, count: usize, to: *mut u32) {
    use std::arch::x86_64::*;
    for c in (0..count).step_by(16) {
        // SAFETY: the caller's promise.
        unsafe {
            let wide = |from: *const u16| _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.wrapping_add(c).cast()));
            let pairs = _mm512_or_si512(_mm512_slli_epi32::<16>(wide(first)), wide(second));
            _mm512_storeu_si512(to.wrapping_add(c).cast(), pairs);
        }
    }
}

/// Eight columns of eight pairs, `step` bytes apart, as rows, `width` words apart.
///
/// # Safety
/// They are there, and the machine has AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn turn(from: *const u8, step: isize, to: *mut u32, width: usize) {
    use std::arch::x86_64::*;
    // SAFETY: the caller's promise.
    unsafe {
        super::super::simd::turn(from.cast(), step, to.cast(), 4 * width as isize);
        for n in 0..8 {
            let row = to.wrapping_add(n * width).cast::<__m256i>();
            _mm256_storeu_si256(row, _mm256_rol_epi32::<16>(_mm256_loadu_si256(row)));
        }
    }
}
