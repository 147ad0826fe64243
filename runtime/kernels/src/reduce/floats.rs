//! Reductions of rows of floats with AVX-512, where elements are neighbours: the same bits as by [`super::Fold`].
//!
//! Extremes do not depend on the order, except between zeros, and NaN is seen apart: so the machine's own maximum does,
//! and rows with a NaN or whose extreme is a zero are left to `Fold`. Sums of up to sixteen rows go through the last
//! four steps of the tree together, a vector for all of them in place of one for each.

use super::{Brain, Float, FloatMax, FloatMin, FloatSum, Half, ReduceOp, rows_avx512};
use ptoc_abi::PARTIALS;
use ptoc_tensor::DType;
use std::arch::x86_64::*;

/// Lanes of a vector.
const LANES: usize = 16;

/// Vectors of a row of partials.
const VECTORS: usize = PARTIALS / LANES;

/// The routine, on a machine that has AVX-512.
pub(super) fn reduce(op: ReduceOp, ty: DType) -> Option<*const u8> {
    let there = std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512vl");
    if !there {
        return None;
    }
    match ty {
        DType::F32 => Some(of::<f32>(op)),
        DType::F16 => Some(of::<Half>(op)),
        DType::BF16 => Some(of::<Brain>(op)),
        _ => None,
    }
}

fn of<E: Load>(op: ReduceOp) -> *const u8 {
    match op {
        ReduceOp::Add => sums::<E> as *const u8,
        ReduceOp::Max => extremes::<E, true> as *const u8,
        ReduceOp::Min => extremes::<E, false> as *const u8,
    }
}

/// Elements that become lanes of f32.
trait Load: Float {
    /// Those whose bit is set; the others, which need not be there, are +0.
    ///
    /// # Safety
    /// The machine has AVX-512, and the elements are in memory.
    unsafe fn load(from: *const Self, mask: u16) -> __m512;
}

impl Load for f32 {
    #[inline(always)]
    unsafe fn load(from: *const f32, mask: u16) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_maskz_loadu_ps(mask, from) }
    }
}

impl Load for Half {
    #[inline(always)]
    unsafe fn load(from: *const Half, mask: u16) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from.cast())) }
    }
}

impl Load for Brain {
    #[inline(always)]
    unsafe fn load(from: *const Brain, mask: u16) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            let bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(bits))
        }
    }
}

/// Lanes of the next `count` elements.
fn mask(count: usize) -> u16 {
    if count < LANES { (1 << count) - 1 } else { u16::MAX }
}

/// # Safety
/// The machine has AVX-512, and the matrix and the results are in memory.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe extern "C" fn extremes<E: Load, const MAX: bool>(
    results: *mut u8,
    elements: *const u8,
    rows: i64,
    cols: i64,
    result_step: i64,
    row_step: i64,
    col_step: i64,
) {
    let slow = if MAX { rows_avx512::<FloatMax<E>> } else { rows_avx512::<FloatMin<E>> };
    if col_step != size_of::<E>() as i64 {
        // SAFETY: the caller's promise.
        return unsafe { slow(results, elements, rows, cols, result_step, row_step, col_step) };
    }
    for row in 0..rows as isize {
        // SAFETY: the caller's promise, here and for what follows.
        unsafe {
            let (from, to) = (elements.offset(row * row_step as isize), results.offset(row * result_step as isize));
            match extreme::<E, MAX>(from.cast(), cols.max(0) as usize) {
                Some(x) => to.cast::<E>().write_unaligned(E::narrow(x)),
                None => slow(to, from, 1, cols, result_step, row_step, col_step),
            }
        }
    }
}

/// The largest or smallest element, unless there is a NaN or it is a zero.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn extreme<E: Load, const MAX: bool>(from: *const E, cols: usize) -> Option<f32> {
    let nothing = _mm512_set1_ps(if MAX { f32::NEG_INFINITY } else { f32::INFINITY });
    let better = |a, b| if MAX { _mm512_max_ps(a, b) } else { _mm512_min_ps(a, b) };
    let mut best = [nothing; VECTORS];
    let mut nan = 0u16;
    let mut at = 0;
    // SAFETY: these are elements of the row.
    unsafe {
        while at + PARTIALS <= cols {
            for (n, best) in best.iter_mut().enumerate() {
                let x = E::load(from.add(at + n * LANES), u16::MAX);
                nan |= _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
                *best = better(*best, x);
            }
            at += PARTIALS;
        }
        while at < cols {
            let here = mask(cols - at);
            let x = _mm512_mask_mov_ps(nothing, here, E::load(from.add(at), here));
            nan |= _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
            best[0] = better(best[0], x);
            at += LANES;
        }
    }
    let best = better(better(best[0], best[1]), better(best[2], best[3]));
    let found = if MAX { _mm512_reduce_max_ps(best) } else { _mm512_reduce_min_ps(best) };
    (nan == 0 && found != 0.0).then_some(found)
}

/// # Safety
/// The machine has AVX-512, and the matrix and the results are in memory.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe extern "C" fn sums<E: Load>(
    results: *mut u8,
    elements: *const u8,
    rows: i64,
    cols: i64,
    result_step: i64,
    row_step: i64,
    col_step: i64,
) {
    if col_step != size_of::<E>() as i64 {
        // SAFETY: the caller's promise.
        return unsafe { rows_avx512::<FloatSum<E>>(results, elements, rows, cols, result_step, row_step, col_step) };
    }
    let cols = cols.max(0) as usize;
    // SAFETY: a row of the matrix.
    let row_of = |row: isize| unsafe { elements.offset(row * row_step as isize).cast::<E>() };
    let give = |row: isize, x: f32| {
        // SAFETY: a row's result.
        unsafe { results.offset(row * result_step as isize).cast::<E>().write_unaligned(E::narrow(x)) };
    };
    let mut first = 0;
    while first < rows as isize {
        let some = (rows as isize - first).min(LANES as isize);
        if some < LEAST {
            for row in first..first + some {
                // SAFETY: it has so many elements.
                give(row, alone(unsafe { quarter::<E>(row_of(row), cols) }));
            }
            return;
        }
        let mut all = [_mm512_setzero_ps(); LANES];
        for (row, to) in (first..first + some).zip(&mut all) {
            // SAFETY: as before.
            *to = unsafe { quarter::<E>(row_of(row), cols) };
        }
        for (row, x) in (first..first + some).zip(lanes(together(all))) {
            give(row, x);
        }
        first += some;
    }
}

/// Rows from which on they are worth joining together.
const LEAST: isize = 4;

/// A row's partials after two steps of the tree.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn quarter<E: Load>(from: *const E, cols: usize) -> __m512 {
    let mut partials = [_mm512_setzero_ps(); VECTORS];
    let mut at = 0;
    // SAFETY: these are elements of the row.
    unsafe {
        while at + PARTIALS <= cols {
            for (n, partial) in partials.iter_mut().enumerate() {
                *partial = _mm512_add_ps(*partial, E::load(from.add(at + n * LANES), u16::MAX));
            }
            at += PARTIALS;
        }
        // A partial is never -0, so that adding +0 for what is missing changes nothing.
        for (n, partial) in partials.iter_mut().enumerate() {
            let here = at + n * LANES;
            if here < cols {
                *partial = _mm512_add_ps(*partial, E::load(from.add(here), mask(cols - here)));
            }
        }
    }
    _mm512_add_ps(_mm512_add_ps(partials[0], partials[2]), _mm512_add_ps(partials[1], partials[3]))
}

#[target_feature(enable = "avx512f")]
fn lanes(x: __m512) -> [f32; LANES] {
    let mut out = [0f32; LANES];
    // SAFETY: as many elements as the vector has.
    unsafe { _mm512_storeu_ps(out.as_mut_ptr(), x) };
    out
}

/// The last four steps of one tree.
#[target_feature(enable = "avx512f")]
fn alone(x: __m512) -> f32 {
    let eight =
        _mm256_add_ps(_mm512_castps512_ps256(x), _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(x))));
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

/// Those of sixteen trees: lane n of the result is the sum of vector n.
#[target_feature(enable = "avx512f")]
fn together(all: [__m512; LANES]) -> __m512 {
    let eight: [__m512; 8] = step(all);
    let four: [__m512; 4] = step(eight);
    let two: [__m512; 2] = step(four);
    let [one] = step(two);
    one
}

/// Vectors that hold blocks of `2 HALF` partials, a block for each tree: the low half of each block joined with the
/// high one.
#[inline]
#[target_feature(enable = "avx512f")]
fn step<const ALL: usize, const HALF: usize>(all: [__m512; ALL]) -> [__m512; HALF] {
    const { assert!(ALL == 2 * HALF) }
    let low: [i32; LANES] = const {
        let mut low = [0; LANES];
        let mut n = 0;
        while n < LANES {
            low[n] = (n / HALF * 2 * HALF + n % HALF) as i32;
            n += 1;
        }
        low
    };
    // SAFETY: as many elements as the vector has.
    let low = unsafe { _mm512_loadu_si512(low.as_ptr().cast()) };
    let high = _mm512_add_epi32(low, _mm512_set1_epi32(HALF as i32));
    let mut out = [_mm512_setzero_ps(); HALF];
    for (to, pair) in out.iter_mut().zip(all.chunks_exact(2)) {
        let (low, high) =
            (_mm512_permutex2var_ps(pair[0], low, pair[1]), _mm512_permutex2var_ps(pair[0], high, pair[1]));
        *to = _mm512_add_ps(low, high);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::tests::{Pairs, the_same_bits};

    fn pairs<E: Load>() -> Pairs {
        [
            [sums::<E>, rows_avx512::<FloatSum<E>>],
            [extremes::<E, true>, rows_avx512::<FloatMax<E>>],
            [extremes::<E, false>, rows_avx512::<FloatMin<E>>],
        ]
    }

    #[test]
    fn the_bits_are_those_of_the_order_that_is_stated() {
        if reduce(ReduceOp::Add, DType::F32).is_some() {
            the_same_bits(pairs::<f32>(), pairs::<Half>(), pairs::<Brain>());
        }
    }
}
