//! The f32 matrix product: `d[i, j] = start[i, j] + sum over k of a[i, k] * b[k, j]`, k ascending, one fused
//! multiply-add a step. Blocks of rows by vectors keep their accumulators in registers over the whole depth, so that
//! the blocking does not change any element's chain of roundings.

use super::simd::Simd;
#[cfg(target_arch = "x86_64")]
use super::simd::{Avx2, Avx512};

/// The routine: m, n, k; addresses of d, start (0 for none), a, b; then strides in bytes: rows of d, rows of start, rows
/// of a, columns of a, rows of b. Columns of d, start and b are contiguous.
pub(super) fn matmul() -> Option<*const u8> {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx512f") {
            return Some(matmul_avx512 as *const u8);
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            return Some(matmul_avx2 as *const u8);
        }
    }
    None
}

/// The operands.
#[derive(Clone, Copy)]
struct Product {
    k: isize,
    d: *mut u8,
    start: *const u8,
    a: *const u8,
    b: *const u8,
    d_row: isize,
    start_row: isize,
    a_row: isize,
    a_col: isize,
    b_row: isize,
}

macro_rules! entry {
    ($name:ident, $features:literal, $simd:ident, $most:literal) => {
        /// # Safety
        /// The machine has the instructions; the matrices are in memory, and `a` and `b` do not overlap `d`.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        #[allow(clippy::too_many_arguments, reason = "emitted code passes scalars")]
        unsafe extern "C" fn $name(
            m: i64,
            n: i64,
            k: i64,
            d: *mut u8,
            start: *const u8,
            a: *const u8,
            b: *const u8,
            d_row: i64,
            start_row: i64,
            a_row: i64,
            a_col: i64,
            b_row: i64,
        ) {
            let p = Product {
                k: k as isize,
                d,
                start,
                a,
                b,
                d_row: d_row as isize,
                start_row: start_row as isize,
                a_row: a_row as isize,
                a_col: a_col as isize,
                b_row: b_row as isize,
            };
            // SAFETY: the caller's promise.
            unsafe { columns::<$simd, $most>(&p, m as isize, n as isize) }
        }
    };
}

// Eight rows of three vectors are 24 accumulators of the 32 registers; four rows of three are 12 of 16.
entry!(matmul_avx512, "avx512f", Avx512, 8);
entry!(matmul_avx2, "avx2,fma", Avx2, 4);

/// Strips of three vectors of columns (two where three would leave one alone).
#[inline(always)]
unsafe fn columns<S: Simd, const MOST: usize>(p: &Product, m: isize, n: isize) {
    let width = S::N as isize;
    let mut j = 0;
    // SAFETY: the strips lie inside the n columns.
    unsafe {
        while j < n {
            let left = n - j;
            let vectors = match (left + width - 1) / width {
                4 => 2,
                v => v.min(3),
            };
            // Lanes of the last vector of the strip.
            let last = (left - (vectors - 1) * width).min(width);
            match (vectors, last == width) {
                (3, true) => strip::<S, MOST, 3, false>(p, m, j, last),
                (3, false) => strip::<S, MOST, 3, true>(p, m, j, last),
                (2, true) => strip::<S, MOST, 2, false>(p, m, j, last),
                (2, false) => strip::<S, MOST, 2, true>(p, m, j, last),
                (_, true) => strip::<S, MOST, 1, false>(p, m, j, last),
                (_, false) => strip::<S, MOST, 1, true>(p, m, j, last),
            }
            j += vectors * width;
        }
    }
}

/// All rows of a strip, `MOST` at a time.
#[inline(always)]
unsafe fn strip<S: Simd, const MOST: usize, const C: usize, const RAGGED: bool>(
    p: &Product,
    m: isize,
    j: isize,
    last: isize,
) {
    let mut i = 0;
    // SAFETY: the blocks lie inside the m rows.
    unsafe {
        while i + MOST as isize <= m {
            block::<S, MOST, C, RAGGED>(p, i, j, last);
            i += MOST as isize;
        }
        if MOST > 4 && i + 4 <= m {
            block::<S, 4, C, RAGGED>(p, i, j, last);
            i += 4;
        }
        if i + 2 <= m {
            block::<S, 2, C, RAGGED>(p, i, j, last);
            i += 2;
        }
        if i < m {
            block::<S, 1, C, RAGGED>(p, i, j, last);
        }
    }
}

#[inline(always)]
unsafe fn block<S: Simd, const R: usize, const C: usize, const RAGGED: bool>(
    p: &Product,
    i: isize,
    j: isize,
    last: isize,
) {
    // SAFETY: R rows from i and C vectors from j (the last one ragged) are inside the matrices.
    unsafe {
        let mask = S::mask(last as usize);
        let load = |from: *const f32, c: usize| {
            let from = from.wrapping_add(c * S::N);
            if RAGGED && c + 1 == C { S::load_some(from, mask) } else { S::load(from) }
        };
        let mut sums = [[S::zero(); C]; R];
        if !p.start.is_null() {
            for (r, row) in sums.iter_mut().enumerate() {
                let from = p.start.offset((i + r as isize) * p.start_row).cast::<f32>().offset(j);
                for (c, sum) in row.iter_mut().enumerate() {
                    *sum = load(from, c);
                }
            }
        }
        let mut a = p.a.wrapping_offset(i * p.a_row);
        let mut b = p.b.wrapping_offset(4 * j);
        for _ in 0..p.k {
            let mut factors = [S::zero(); C];
            for (c, factor) in factors.iter_mut().enumerate() {
                *factor = load(b.cast(), c);
            }
            for (r, row) in sums.iter_mut().enumerate() {
                let one = S::splat(a.wrapping_offset(r as isize * p.a_row).cast());
                for (sum, factor) in row.iter_mut().zip(factors) {
                    *sum = S::fma(one, factor, *sum);
                }
            }
            a = a.wrapping_offset(p.a_col);
            b = b.wrapping_offset(p.b_row);
        }
        for (r, row) in sums.iter().enumerate() {
            let to = p.d.offset((i + r as isize) * p.d_row).cast::<f32>().offset(j);
            for (c, sum) in row.iter().enumerate() {
                if RAGGED && c + 1 == C {
                    S::store_some(to.add(c * S::N), mask, *sum);
                } else {
                    S::store(to.add(c * S::N), *sum);
                }
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    type Entry = unsafe extern "C" fn(i64, i64, i64, *mut u8, *const u8, *const u8, *const u8, i64, i64, i64, i64, i64);

    /// The integration tests see only the widest version that the machine has.
    #[test]
    fn every_version_gives_the_bits_of_the_definition() {
        let mut versions: Vec<Entry> = Vec::new();
        if std::is_x86_feature_detected!("avx512f") {
            versions.push(matmul_avx512);
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            versions.push(matmul_avx2);
        }
        let number = |n: usize| ((n * 2_654_435_761) % 1000) as f32 / 7.0 - 60.0;
        for (m, n, k) in [(1, 1, 1), (5, 3, 0), (7, 9, 5), (8, 16, 3), (9, 31, 4), (15, 49, 2), (4, 64, 7), (3, 100, 3)]
        {
            let a: Vec<f32> = (0..m * k).map(number).collect();
            let b: Vec<f32> = (0..k * n).map(|i| number(i + 5)).collect();
            let start: Vec<f32> = (0..n).map(|i| number(i + 9)).collect();
            for bias in [false, true] {
                let mut want = vec![0f32; m * n];
                for (at, sum) in want.iter_mut().enumerate() {
                    let (i, j) = (at / n, at % n);
                    *sum = if bias { start[j] } else { 0.0 };
                    for p in 0..k {
                        *sum = a[i * k + p].mul_add(b[p * n + j], *sum);
                    }
                }
                for version in &versions {
                    let mut got = vec![9f32; m * n];
                    let from = if bias { start.as_ptr().cast() } else { std::ptr::null() };
                    let (row, depth) = (4 * n as i64, 4 * k as i64);
                    let (d, a, b) = (got.as_mut_ptr().cast(), a.as_ptr().cast(), b.as_ptr().cast());
                    // SAFETY: the matrices have these shapes, and the machine the instructions.
                    unsafe { version(m as i64, n as i64, k as i64, d, from, a, b, row, 0, depth, 4, row) };
                    assert_eq!(got, want, "{m} x {n} x {k}");
                }
            }
        }
    }
}
