//! Reductions of rows of floats with AVX2, where elements are neighbours: the same bits as by [`super::Fold`], for the
//! reasons that [`super::floats`] gives. Sums of up to eight rows go through the last three steps of the tree together.

use super::{Brain, Float, FloatMax, FloatMin, FloatSum, Half, ReduceOp, rows_avx2};
use ptoc_abi::PARTIALS;
use ptoc_tensor::DType;
use std::arch::x86_64::*;

/// Lanes of a vector.
const LANES: usize = 8;

/// Vectors of a row of partials.
const VECTORS: usize = PARTIALS / LANES;

/// Rows from which on they are worth joining together.
const LEAST: usize = 4;

/// The routine, on a machine that has AVX2.
pub(super) fn reduce(op: ReduceOp, ty: DType) -> Option<*const u8> {
    if !std::is_x86_feature_detected!("avx2") || !std::is_x86_feature_detected!("f16c") {
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
    /// +0.
    const ZERO: Self;

    /// # Safety
    /// The machine has AVX2 and F16C, and eight elements are in memory.
    unsafe fn load(from: *const Self) -> __m256;

    /// The first so many; the others, which need not be there, are +0.
    ///
    /// # Safety
    /// The machine has AVX2 and F16C, and the elements are in memory.
    #[inline(always)]
    unsafe fn some(from: *const Self, count: usize) -> __m256 {
        let mut all = [Self::ZERO; LANES];
        // SAFETY: the caller's promise.
        unsafe {
            for (n, to) in all.iter_mut().enumerate().take(count) {
                *to = from.add(n).read_unaligned();
            }
            Self::load(all.as_ptr())
        }
    }
}

impl Load for f32 {
    const ZERO: f32 = 0.0;
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn some(from: *const f32, count: usize) -> __m256 {
        // SAFETY: the caller's promise; masked lanes are not touched.
        unsafe { _mm256_maskload_ps(from, first(count)) }
    }
}

impl Load for Half {
    const ZERO: Half = Half(0);
    #[inline(always)]
    unsafe fn load(from: *const Half) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
    }
}

impl Load for Brain {
    const ZERO: Brain = Brain(0);
    #[inline(always)]
    unsafe fn load(from: *const Brain) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe {
            let bits = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(bits))
        }
    }
}

/// The first so many lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn first(count: usize) -> __m256i {
    _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
}

/// # Safety
/// The machine has AVX2 and F16C, and the matrix and the results are in memory.
#[target_feature(enable = "avx2,f16c")]
unsafe extern "C" fn extremes<E: Load, const MAX: bool>(
    results: *mut u8,
    elements: *const u8,
    rows: i64,
    cols: i64,
    result_step: i64,
    row_step: i64,
    col_step: i64,
) {
    let slow = if MAX { rows_avx2::<FloatMax<E>> } else { rows_avx2::<FloatMin<E>> };
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
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn extreme<E: Load, const MAX: bool>(from: *const E, cols: usize) -> Option<f32> {
    let nothing = if MAX { f32::NEG_INFINITY } else { f32::INFINITY };
    let better = |a, b| if MAX { _mm256_max_ps(a, b) } else { _mm256_min_ps(a, b) };
    let mut best = [_mm256_set1_ps(nothing); 4];
    let mut nan = _mm256_setzero_ps();
    let mut at = 0;
    // SAFETY: these are elements of the row.
    unsafe {
        while at + 4 * LANES <= cols {
            let x = [0, 1, 2, 3].map(|n| E::load(from.add(at + n * LANES)));
            // Both of two vectors are looked at.
            nan = _mm256_or_ps(nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(x[0], x[1]));
            nan = _mm256_or_ps(nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(x[2], x[3]));
            for (best, x) in best.iter_mut().zip(x) {
                *best = better(*best, x);
            }
            at += 4 * LANES;
        }
        while at < cols {
            let count = (cols - at).min(LANES);
            let x = if count == LANES {
                E::load(from.add(at))
            } else {
                let there = _mm256_castsi256_ps(first(count));
                _mm256_blendv_ps(_mm256_set1_ps(nothing), E::some(from.add(at), count), there)
            };
            nan = _mm256_or_ps(nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
            best[0] = better(best[0], x);
            at += LANES;
        }
    }
    let eight = better(better(best[0], best[1]), better(best[2], best[3]));
    let better = |a, b| if MAX { _mm_max_ps(a, b) } else { _mm_min_ps(a, b) };
    let four = better(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = better(four, _mm_movehl_ps(four, four));
    let found = _mm_cvtss_f32(better(two, _mm_movehdup_ps(two)));
    (_mm256_movemask_ps(nan) == 0 && found != 0.0).then_some(found)
}

/// # Safety
/// The machine has AVX2 and F16C, and the matrix and the results are in memory.
#[target_feature(enable = "avx2,f16c")]
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
        return unsafe { rows_avx2::<FloatSum<E>>(results, elements, rows, cols, result_step, row_step, col_step) };
    }
    let (rows, cols) = (rows.max(0) as usize, cols.max(0) as usize);
    for start in (0..rows).step_by(LANES) {
        let some = (rows - start).min(LANES);
        let mut all = [_mm256_setzero_ps(); LANES];
        for (n, to) in all.iter_mut().enumerate().take(some) {
            // SAFETY: a row of the matrix.
            *to = unsafe { eighth(elements.offset((start + n) as isize * row_step as isize).cast::<E>(), cols) };
        }
        let mut found = [0f32; LANES];
        if some < LEAST {
            for (to, x) in found.iter_mut().zip(all).take(some) {
                *to = alone(x);
            }
        } else {
            found = together(all);
        }
        for (n, x) in found.into_iter().enumerate().take(some) {
            // SAFETY: a row's result.
            unsafe {
                let to = results.offset((start + n) as isize * result_step as isize).cast::<E>();
                to.write_unaligned(E::narrow(x));
            }
        }
    }
}

/// A row's partials after three steps of the tree.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn eighth<E: Load>(from: *const E, cols: usize) -> __m256 {
    let mut p = [_mm256_setzero_ps(); VECTORS];
    let mut at = 0;
    // SAFETY: these are elements of the row.
    unsafe {
        while at + PARTIALS <= cols {
            for (n, partial) in p.iter_mut().enumerate() {
                *partial = _mm256_add_ps(*partial, E::load(from.add(at + n * LANES)));
            }
            at += PARTIALS;
        }
        // A partial is never -0, so that adding +0 for what is missing changes nothing.
        if at < cols {
            for (n, partial) in p.iter_mut().enumerate() {
                let here = at + n * LANES;
                if here + LANES <= cols {
                    *partial = _mm256_add_ps(*partial, E::load(from.add(here)));
                } else if here < cols {
                    *partial = _mm256_add_ps(*partial, E::some(from.add(here), cols - here));
                }
            }
        }
    }
    let plus = |a, b| _mm256_add_ps(a, b);
    plus(plus(plus(p[0], p[4]), plus(p[2], p[6])), plus(plus(p[1], p[5]), plus(p[3], p[7])))
}

/// The last three steps of one tree.
#[inline]
#[target_feature(enable = "avx2")]
fn alone(eight: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

/// Those of eight trees.
#[inline]
#[target_feature(enable = "avx2")]
fn together(all: [__m256; LANES]) -> [f32; LANES] {
    // Trees n and n + 4 in the halves of a vector, so that what follows meets them side by side.
    let four = |n: usize| {
        let (a, b) = (all[n], all[n + 4]);
        _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b))
    };
    let two = |a, b| _mm256_add_ps(_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0xee>(a, b));
    let one = |a, b| _mm256_add_ps(_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xdd>(a, b));
    let sums = one(two(four(0), four(1)), two(four(2), four(3)));
    let mut out = [0f32; LANES];
    // SAFETY: as many elements as the vector has.
    unsafe { _mm256_storeu_ps(out.as_mut_ptr(), sums) };
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::tests::{Pairs, the_same_bits};

    fn pairs<E: Load>() -> Pairs {
        [
            [sums::<E>, rows_avx2::<FloatSum<E>>],
            [extremes::<E, true>, rows_avx2::<FloatMax<E>>],
            [extremes::<E, false>, rows_avx2::<FloatMin<E>>],
        ]
    }

    #[test]
    fn the_bits_are_those_of_the_order_that_is_stated() {
        if reduce(ReduceOp::Add, DType::F32).is_some() {
            the_same_bits(pairs::<f32>(), pairs::<Half>(), pairs::<Brain>());
        }
    }
}
