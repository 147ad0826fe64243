//! Skinny-M kernel for a transposed b, as queries meet keys: few rows of a by columns of b that are contiguous, which
//! come from memory, and once. Packing b would write and read it again.
//!
//! Squares of sixteen columns by sixteen words are transposed in registers, so that a vector holds one step of k of
//! sixteen columns: each element of the result has its chain of multiply-adds in the order of single steps. The columns
//! of several squares side by side have chains of their own, which hide the latency of the multiply-adds.

use super::super::{
    Rows,
    transpose_avx512::{SIDE, turned},
};
use super::micro_kernel::Version;
use super::packing::Widen;
use super::panels::{KC, STRIP, shifted};
use super::plain::{at, float};
use super::skinny::side_by_side;
use super::{Job, Matrix, panels};
use ptoc_tensor::DType;
use std::arch::x86_64::*;

/// Most rows of a: their sums and a square of b are in registers together.
const ROWS: usize = 4;
/// Least columns and steps: below, a square is mostly empty.
const LEAST: usize = SIDE;

/// Whether a product goes this way.
pub(super) fn suits(job: &Job, version: &Version) -> bool {
    let columns_contiguous = job.b.row == job.ab.size() as isize && job.b.col != job.b.row;
    version.lanes == SIDE && job.m <= ROWS && job.n >= LEAST && job.k >= LEAST && columns_contiguous
}

/// Computes the product.
///
/// # Safety
/// As for the routine; columns of d and of the start are contiguous f32, a and b floats, and the product [`suits`].
pub(super) unsafe fn product(job: &Job, widen: Widen) {
    let (_, strip) = panels::room(job, STRIP);
    for from in (0..job.k).step_by(KC) {
        let k = KC.min(job.k - from);
        let rows = Rows { at: strip, step: 4 * KC as isize };
        // SAFETY: the strip has room for more rows of `KC` steps, and elements of a are there.
        let a = unsafe { side_by_side(job, from, k, rows, widen) }.at.cast::<f32>();
        // SAFETY: the caller's promise.
        unsafe {
            match job.m {
                1 => Stretch::<1> { job, from, k, a }.columns::<4>(),
                2 => Stretch::<2> { job, from, k, a }.columns::<4>(),
                3 => Stretch::<3> { job, from, k, a }.columns::<2>(),
                _ => Stretch::<4> { job, from, k, a }.columns::<2>(),
            }
        }
    }
}

/// A stretch of k of R rows of a, as f32.
struct Stretch<'j, const R: usize> {
    job: &'j Job,
    from: usize,
    k: usize,
    a: *const f32,
}

impl<const R: usize> Stretch<'_, R> {
    /// All columns, C squares of them at a time.
    ///
    /// # Safety
    /// As for [`product`].
    unsafe fn columns<const C: usize>(&self) {
        let job = self.job;
        for j in (0..job.n).step_by(C * SIDE) {
            let columns = (C * SIDE).min(job.n - j);
            // SAFETY: the caller's promise; the version of [`suits`] has AVX-512.
            unsafe {
                match job.ab {
                    DType::F16 => self.block::<C, F16>(j, columns),
                    DType::BF16 => self.block::<C, BF16>(j, columns),
                    _ => self.block::<C, F32>(j, columns),
                }
            }
        }
    }

    /// # Safety
    /// As for [`product`]; there are so many columns from `j` on, and the machine has AVX-512.
    #[target_feature(enable = "avx512f,avx512bw,f16c")]
    unsafe fn block<const C: usize, E: Elements>(&self, j: usize, columns: usize) {
        let job = self.job;
        // The columns of square c.
        let width = |c: usize| columns.saturating_sub(c * SIDE).min(SIDE);
        let some = |c: usize| ((1u32 << width(c)) - 1) as __mmask16;
        let b = shifted(job.b, self.from, j);
        let mut sums = [[_mm512_setzero_ps(); R]; C];
        let (start, start_row) = match self.from {
            0 => job.starts(0, j),
            _ => (job.d.at.wrapping_add(4 * j).cast_const(), job.d.row),
        };
        // SAFETY: lanes that are not there are not touched; columns from `width` on are zero.
        unsafe {
            if !start.is_null() {
                for (c, sums) in sums.iter_mut().enumerate() {
                    for (r, sum) in sums.iter_mut().enumerate() {
                        let from = start.wrapping_offset(r as isize * start_row).wrapping_add(4 * c * SIDE);
                        *sum = _mm512_maskz_loadu_ps(some(c), from.cast());
                    }
                }
            }
            let mut p = 0;
            while p + E::STEPS <= self.k {
                for (c, sums) in sums.iter_mut().enumerate().take(columns.div_ceil(SIDE)) {
                    let from = shifted(b, p, c * SIDE);
                    let square = square::<E>(&from, width(c));
                    // The same steps of as many columns behind this block.
                    let mut ahead = from.at.wrapping_offset(columns as isize * from.col);
                    for _ in 0..SIDE {
                        _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
                        ahead = ahead.wrapping_offset(from.col);
                    }
                    *sums = E::add::<R>(square, self.a.wrapping_add(p), *sums);
                }
                p += E::STEPS;
            }
            for p in p..self.k {
                for (c, sums) in sums.iter_mut().enumerate() {
                    let mut step = [0f32; SIDE];
                    for (l, x) in step[..width(c)].iter_mut().enumerate() {
                        *x = float(job.ab, at(&b, p, c * SIDE + l));
                    }
                    let step = _mm512_loadu_ps(step.as_ptr());
                    for (r, sum) in sums.iter_mut().enumerate() {
                        *sum = _mm512_fmadd_ps(_mm512_set1_ps(*self.a.wrapping_add(r * KC + p)), step, *sum);
                    }
                }
            }
            for (c, sums) in sums.iter().enumerate() {
                for (r, &sum) in sums.iter().enumerate() {
                    let to = job.d.at.wrapping_offset(r as isize * job.d.row).wrapping_add(4 * (j + c * SIDE));
                    _mm512_mask_storeu_ps(to.cast(), some(c), sum);
                }
            }
        }
    }
}

/// A square of b, transposed: a vector holds a word of each column. Columns from `width` on are zero.
///
/// # Safety
/// The columns have [`Elements::STEPS`] elements each; the machine has AVX-512.
#[inline(always)]
unsafe fn square<E: Elements>(b: &Matrix<*const u8>, width: usize) -> [__m512; SIDE] {
    let mut at = b.at;
    // SAFETY: the caller's promise.
    unsafe {
        let mut lines = [_mm512_setzero_ps(); SIDE];
        if width == SIDE {
            for line in &mut lines {
                *line = E::line(at);
                at = at.wrapping_offset(b.col);
            }
        } else {
            for line in lines.iter_mut().take(width) {
                *line = E::line(at);
                at = at.wrapping_offset(b.col);
            }
        }
        turned(lines)
    }
}

/// How elements of a type lie in words, of which a line of a square has sixteen.
trait Elements {
    /// Steps of k in a square.
    const STEPS: usize;

    /// A line.
    ///
    /// # Safety
    /// It is there; the machine has AVX-512. This holds for both functions.
    unsafe fn line(from: *const u8) -> __m512;

    /// Adds the products of a square by R rows of a, one step after the other.
    ///
    /// # Safety
    /// See above; rows of a are [`KC`] elements apart.
    #[inline(always)]
    unsafe fn add<const R: usize>(square: [__m512; SIDE], mut a: *const f32, mut sums: [__m512; R]) -> [__m512; R] {
        for step in square {
            // SAFETY: the caller's promise.
            sums = unsafe { multiply_add(step, a, sums) };
            a = a.wrapping_add(1);
        }
        sums
    }
}

/// One step.
///
/// # Safety
/// As for [`Elements::add`].
#[inline(always)]
unsafe fn multiply_add<const R: usize>(step: __m512, mut a: *const f32, mut sums: [__m512; R]) -> [__m512; R] {
    for sum in &mut sums {
        // SAFETY: the caller's promise.
        *sum = unsafe { _mm512_fmadd_ps(_mm512_set1_ps(*a), step, *sum) };
        a = a.wrapping_add(KC);
    }
    sums
}

struct F32;

impl Elements for F32 {
    const STEPS: usize = SIDE;

    #[inline(always)]
    unsafe fn line(from: *const u8) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_ps(from.cast()) }
    }
}

struct F16;

impl Elements for F16 {
    const STEPS: usize = SIDE;

    #[inline(always)]
    unsafe fn line(from: *const u8) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
    }
}

/// Two in a word, the earlier step in the lower half.
struct BF16;

impl Elements for BF16 {
    const STEPS: usize = 2 * SIDE;

    #[inline(always)]
    unsafe fn line(from: *const u8) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_ps(from.cast()) }
    }

    #[inline(always)]
    unsafe fn add<const R: usize>(square: [__m512; SIDE], mut a: *const f32, mut sums: [__m512; R]) -> [__m512; R] {
        for words in square {
            // SAFETY: the caller's promise.
            unsafe {
                let words = _mm512_castps_si512(words);
                let upper = _mm512_and_si512(words, _mm512_set1_epi32(0xffff_0000_u32 as i32));
                sums = multiply_add(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(words)), a, sums);
                sums = multiply_add(_mm512_castsi512_ps(upper), a.wrapping_add(1), sums);
                a = a.wrapping_add(2);
            }
        }
        sums
    }
}
