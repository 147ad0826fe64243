//! Transposes of words with AVX-512: sixteen rows by sixteen, so that whole lines are read and written.
//!
//! What goes past the caches is turned into a stage first, a buffer in the first-level cache, and written from there
//! row by row: lines that are neighbours in memory leave one after the other, and take half the time of lines that are
//! far apart.

use super::{LINE, Rows};
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Rows and columns of a square.
pub(super) const SIDE: usize = 16;

/// Two words of each half of a quarter, of two vectors: the lower ones, the upper ones.
#[inline(always)]
fn pairs(a: __m512, b: __m512) -> (__m512, __m512) {
    // SAFETY: the callers have AVX-512.
    unsafe { (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)) }
}

/// The same of pairs of words.
#[inline(always)]
fn quads(a: __m512, b: __m512) -> (__m512, __m512) {
    // SAFETY: the callers have AVX-512.
    unsafe {
        let (a, b) = (_mm512_castps_pd(a), _mm512_castps_pd(b));
        (_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)))
    }
}

/// Sixteen lines of sixteen words as columns.
#[inline(always)]
pub(super) fn turned(lines: [__m512; SIDE]) -> [__m512; SIDE] {
    // Quarter q of v[4 n + k] is column 4 q + k of lines 4 n to 4 n + 3.
    let mut v = lines;
    for n in (0..SIDE).step_by(4) {
        let (a0, a1) = pairs(lines[n], lines[n + 1]);
        let (b0, b1) = pairs(lines[n + 2], lines[n + 3]);
        (v[n], v[n + 1]) = quads(a0, b0);
        (v[n + 2], v[n + 3]) = quads(a1, b1);
    }
    let mut out = lines;
    for k in 0..4 {
        // SAFETY: the callers have AVX-512.
        unsafe {
            let even = |a, b| _mm512_shuffle_f32x4::<0x88>(a, b);
            let odd = |a, b| _mm512_shuffle_f32x4::<0xdd>(a, b);
            let (low, high) = ((v[k], v[4 + k]), (v[8 + k], v[12 + k]));
            let (e0, e1) = (even(low.0, low.1), even(high.0, high.1));
            let (o0, o1) = (odd(low.0, low.1), odd(high.0, high.1));
            (out[k], out[8 + k]) = (even(e0, e1), odd(e0, e1));
            (out[4 + k], out[12 + k]) = (even(o0, o1), odd(o0, o1));
        }
    }
    out
}

/// Turns `count` lines of `words` words, up to sixteen of both.
///
/// # Safety
/// Both are in memory, and apart; the machine has AVX-512.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn turn(src: Rows<*const u8>, count: usize, words: usize, dst: Rows<*mut u8>) {
    let some = |n: usize| ((1u32 << n) - 1) as __mmask16;
    // SAFETY: the caller's promise; masked lanes are not touched.
    unsafe {
        let mut lines = [_mm512_setzero_ps(); SIDE];
        let line = |n: usize| src.at.wrapping_offset(n as isize * src.step).cast::<f32>();
        let to = |n: usize| dst.at.wrapping_offset(n as isize * dst.step).cast::<f32>();
        // Written out for each of the sixteen, so that all stay in registers.
        if count == SIDE && words == SIDE {
            for (n, v) in lines.iter_mut().enumerate() {
                *v = _mm512_loadu_ps(line(n));
            }
        } else {
            for (n, v) in lines.iter_mut().enumerate() {
                if n < count {
                    *v = _mm512_maskz_loadu_ps(some(words), line(n));
                }
            }
        }
        let columns = turned(lines);
        if count == SIDE {
            for (n, &v) in columns.iter().enumerate() {
                if n < words {
                    _mm512_storeu_ps(to(n), v);
                }
            }
        } else {
            for (n, &v) in columns.iter().enumerate() {
                if n < words {
                    _mm512_mask_storeu_ps(to(n), some(count), v);
                }
            }
        }
    }
}

/// Elements of a stage's rows and columns.
pub(super) const STAGE: usize = 64;

/// What is read ahead goes to the first-level cache up to so many bytes, otherwise to the second-level one.
const NEAR: usize = 12 << 10;

/// A stage.
#[repr(align(64))]
pub(super) struct Stage(MaybeUninit<[u8; 4 * STAGE * STAGE]>);

impl Stage {
    pub(super) fn new() -> Stage {
        Stage(MaybeUninit::uninit())
    }

    /// Turns `cols` lines of `rows` words, up to [`STAGE`] of both, by way of the stage to `rows` lines past the
    /// caches. Asks for what lies `ahead` of the lines that it reads.
    ///
    /// # Safety
    /// Both are in memory, and apart, the destination at addresses of whole words; the machine has AVX-512.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn pass(
        &mut self,
        src: Rows<*const u8>,
        cols: usize,
        rows: usize,
        dst: Rows<*mut u8>,
        ahead: isize,
    ) {
        debug_assert!(rows <= STAGE && cols <= STAGE);
        let (stage, width) = (self.0.as_mut_ptr().cast::<u8>(), 4 * cols);
        // Beside the stage and what is read now there is room for what comes next, if it is little.
        let near = rows * width <= NEAR;
        for c in (0..cols).step_by(SIDE) {
            for r in (0..rows).step_by(SIDE) {
                let (count, words) = ((cols - c).min(SIDE), (rows - r).min(SIDE));
                let at = src.at.wrapping_offset(c as isize * src.step).wrapping_add(4 * r);
                let next = at.wrapping_offset(ahead);
                for n in 0..count as isize {
                    let line = next.wrapping_offset(n * src.step).cast();
                    if near { _mm_prefetch::<_MM_HINT_T0>(line) } else { _mm_prefetch::<_MM_HINT_T1>(line) }
                }
                let to = Rows { at: stage.wrapping_add(r * width + 4 * c), step: width as isize };
                // SAFETY: the square is inside, and the stage holds all.
                unsafe { turn(Rows { at, ..src }, count, words, to) };
            }
        }
        // Rows that follow each other are one.
        let (runs, bytes) = if dst.step == width as isize { (1, rows * width) } else { (rows, width) };
        for n in 0..runs {
            // SAFETY: as above.
            unsafe { write(dst.at.wrapping_offset(n as isize * dst.step), stage.wrapping_add(n * bytes), bytes) };
        }
    }
}

/// Copies words; lines that are written whole go past the caches.
///
/// # Safety
/// Both are in memory, and apart, `to` at an address of whole words; the machine has AVX-512.
#[target_feature(enable = "avx512f")]
unsafe fn write(to: *mut u8, from: *const u8, bytes: usize) {
    let some = |at: usize, bytes: usize| {
        let mask = ((1u32 << (bytes / 4)) - 1) as __mmask16;
        // SAFETY: the caller's promise; masked lanes are not touched.
        unsafe {
            let v = _mm512_maskz_loadu_ps(mask, from.wrapping_add(at).cast());
            _mm512_mask_storeu_ps(to.wrapping_add(at).cast(), mask, v);
        }
    };
    let head = to.addr().wrapping_neg() % LINE;
    let mut at = head.min(bytes);
    if at > 0 {
        some(0, at);
    }
    while at + LINE <= bytes {
        // SAFETY: the caller's promise; the address is a line's.
        unsafe { _mm512_stream_ps(to.wrapping_add(at).cast(), _mm512_loadu_ps(from.wrapping_add(at).cast())) };
        at += LINE;
    }
    if at < bytes {
        some(at, bytes - at);
    }
}
