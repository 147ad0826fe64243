//! Vectors of words (f32, and i32 for products of narrow integers), as wide as the machine has them.

use super::unrolled;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A vector instruction set. Its functions are inlined into callers that enable the instructions.
pub(super) trait Simd {
    /// A vector.
    type V: Copy;
    /// Which lanes of a vector exist.
    type M: Copy;
    /// Lanes.
    const N: usize;

    /// # Safety
    /// The machine has the instructions; this holds for every function here.
    unsafe fn zero() -> Self::V;
    /// # Safety
    /// `from` may be read.
    unsafe fn splat(from: *const f32) -> Self::V;
    /// # Safety
    /// `from` has a whole vector.
    unsafe fn load(from: *const f32) -> Self::V;
    /// # Safety
    /// `to` has room for a whole vector.
    unsafe fn store(to: *mut f32, v: Self::V);
    /// The first `n` lanes, 1 to `N`.
    ///
    /// # Safety
    /// See above.
    unsafe fn mask(n: usize) -> Self::M;
    /// # Safety
    /// `from` has the lanes of the mask; no other is touched.
    unsafe fn load_some(from: *const f32, m: Self::M) -> Self::V;
    /// # Safety
    /// `to` has the lanes of the mask; no other is touched.
    unsafe fn store_some(to: *mut f32, m: Self::M, v: Self::V);
    /// `a * b + c`, rounded once.
    ///
    /// # Safety
    /// See above.
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The sum.
    ///
    /// # Safety
    /// See above.
    unsafe fn plus(a: Self::V, b: Self::V) -> Self::V;
    /// Bytes of an element of b, as a block reads it.
    const FACTOR: usize = 4;
    /// A vector of b's elements.
    ///
    /// # Safety
    /// They are there.
    #[inline(always)]
    unsafe fn factor(from: *const u8) -> Self::V {
        unsafe { Self::load(from.cast()) }
    }
    /// The first `n` of them, which are those of the mask.
    ///
    /// # Safety
    /// They are there; no other is touched.
    #[inline(always)]
    unsafe fn factor_some(from: *const u8, _n: usize, m: Self::M) -> Self::V {
        unsafe { Self::load_some(from.cast(), m) }
    }
    /// The first of `k` steps of a block of R rows by C vectors, if there is code of its own for them: how many it
    /// took.
    ///
    /// # Safety
    /// The operands are there.
    #[inline(always)]
    unsafe fn steps<const R: usize, const C: usize>(
        _: &unrolled::Operands,
        _k: usize,
        _: &mut [[Self::V; C]; R],
    ) -> usize {
        0
    }
}

/// Vectors of f32 that can be loaded from half of the bytes.
pub(super) trait Halves: Simd {
    /// Widened, exactly.
    ///
    /// # Safety
    /// `from` has a whole vector of f16.
    unsafe fn load_f16(from: *const u16) -> Self::V;
    /// # Safety
    /// `from` has a whole vector of bf16.
    unsafe fn load_bf16(from: *const u16) -> Self::V;
}

/// Vectors of f32 by a b of f16 or bf16, which is widened as it is read.
pub(super) struct Widening<S, const BF16: bool>(std::marker::PhantomData<S>);

impl<S: Halves, const BF16: bool> Simd for Widening<S, BF16> {
    type V = S::V;
    type M = S::M;
    const N: usize = S::N;
    const FACTOR: usize = 2;

    #[inline(always)]
    unsafe fn factor(from: *const u8) -> S::V {
        unsafe { if BF16 { S::load_bf16(from.cast()) } else { S::load_f16(from.cast()) } }
    }
    #[inline(always)]
    unsafe fn factor_some(from: *const u8, n: usize, _: S::M) -> S::V {
        let mut some = [0u16; 16];
        unsafe {
            from.copy_to_nonoverlapping(some.as_mut_ptr().cast(), 2 * n);
            Self::factor(some.as_ptr().cast())
        }
    }
    #[inline(always)]
    unsafe fn zero() -> S::V {
        unsafe { S::zero() }
    }
    #[inline(always)]
    unsafe fn splat(from: *const f32) -> S::V {
        unsafe { S::splat(from) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> S::V {
        unsafe { S::load(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: S::V) {
        unsafe { S::store(to, v) }
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> S::M {
        unsafe { S::mask(n) }
    }
    #[inline(always)]
    unsafe fn load_some(from: *const f32, m: S::M) -> S::V {
        unsafe { S::load_some(from, m) }
    }
    #[inline(always)]
    unsafe fn store_some(to: *mut f32, m: S::M, v: S::V) {
        unsafe { S::store_some(to, m, v) }
    }
    #[inline(always)]
    unsafe fn fma(a: S::V, b: S::V, c: S::V) -> S::V {
        unsafe { S::fma(a, b, c) }
    }
    #[inline(always)]
    unsafe fn plus(a: S::V, b: S::V) -> S::V {
        unsafe { S::plus(a, b) }
    }
}

/// 512 bits.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Simd for Avx512 {
    type V = __m512;
    type M = __mmask16;
    const N: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> __m512 {
        unsafe { _mm512_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn splat(from: *const f32) -> __m512 {
        unsafe { _mm512_set1_ps(from.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m512) {
        unsafe { _mm512_storeu_ps(to, v) }
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> __mmask16 {
        0xffff >> (16 - n)
    }
    #[inline(always)]
    unsafe fn load_some(from: *const f32, m: __mmask16) -> __m512 {
        unsafe { _mm512_maskz_loadu_ps(m, from) }
    }
    #[inline(always)]
    unsafe fn store_some(to: *mut f32, m: __mmask16, v: __m512) {
        unsafe { _mm512_mask_storeu_ps(to, m, v) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn plus(a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_add_ps(a, b) }
    }
}

/// 512 bits of i32, products of four bytes each: unsigned ones of the first factor by signed ones of the second.
#[cfg(target_arch = "x86_64")]
pub(super) struct Vnni;

#[cfg(target_arch = "x86_64")]
impl Simd for Vnni {
    type V = __m512i;
    type M = __mmask16;
    const N: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    unsafe fn splat(from: *const f32) -> __m512i {
        unsafe { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512i {
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m512i) {
        unsafe { _mm512_storeu_si512(to.cast(), v) }
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> __mmask16 {
        0xffff >> (16 - n)
    }
    #[inline(always)]
    unsafe fn load_some(from: *const f32, m: __mmask16) -> __m512i {
        unsafe { _mm512_maskz_loadu_epi32(m, from.cast()) }
    }
    #[inline(always)]
    unsafe fn store_some(to: *mut f32, m: __mmask16, v: __m512i) {
        unsafe { _mm512_mask_storeu_epi32(to.cast(), m, v) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        unsafe { _mm512_dpbusd_epi32(c, a, b) }
    }
    #[inline(always)]
    unsafe fn plus(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi32(a, b) }
    }
}

/// 512 bits of f32, products of two bf16 each, the upper ones first.
#[cfg(target_arch = "x86_64")]
pub(super) struct Dots;

#[cfg(target_arch = "x86_64")]
impl Simd for Dots {
    type V = __m512;
    type M = __mmask16;
    const N: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> __m512 {
        unsafe { Avx512::zero() }
    }
    #[inline(always)]
    unsafe fn splat(from: *const f32) -> __m512 {
        unsafe { _mm512_castsi512_ps(Vnni::splat(from)) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        unsafe { Avx512::load(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m512) {
        unsafe { Avx512::store(to, v) }
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> __mmask16 {
        unsafe { Avx512::mask(n) }
    }
    #[inline(always)]
    unsafe fn load_some(from: *const f32, m: __mmask16) -> __m512 {
        unsafe { Avx512::load_some(from, m) }
    }
    #[inline(always)]
    unsafe fn store_some(to: *mut f32, m: __mmask16, v: __m512) {
        unsafe { Avx512::store_some(to, m, v) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: vectors of the same size.
        unsafe {
            _mm512_dpbf16_ps(c, std::mem::transmute::<__m512, __m512bh>(a), std::mem::transmute::<__m512, __m512bh>(b))
        }
    }
    #[inline(always)]
    unsafe fn plus(a: __m512, b: __m512) -> __m512 {
        unsafe { Avx512::plus(a, b) }
    }
}

/// 256 bits.
#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Simd for Avx2 {
    type V = __m256;
    type M = __m256i;
    const N: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> __m256 {
        unsafe { _mm256_setzero_ps() }
    }
    #[inline(always)]
    unsafe fn splat(from: *const f32) -> __m256 {
        unsafe { _mm256_set1_ps(from.read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        unsafe { _mm256_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m256) {
        unsafe { _mm256_storeu_ps(to, v) }
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> __m256i {
        unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)) }
    }
    #[inline(always)]
    unsafe fn load_some(from: *const f32, m: __m256i) -> __m256 {
        unsafe { _mm256_maskload_ps(from, m) }
    }
    #[inline(always)]
    unsafe fn store_some(to: *mut f32, m: __m256i, v: __m256) {
        unsafe { _mm256_maskstore_ps(to, m, v) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m256, b: __m256, c: __m256) -> __m256 {
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    unsafe fn plus(a: __m256, b: __m256) -> __m256 {
        unsafe { _mm256_add_ps(a, b) }
    }
    #[inline(always)]
    unsafe fn steps<const R: usize, const C: usize>(
        x: &unrolled::Operands,
        k: usize,
        sums: &mut [[__m256; C]; R],
    ) -> usize {
        unsafe { unrolled::steps(x, k, sums) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Halves for Avx512 {
    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> __m512 {
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
    }
    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> __m512 {
        unsafe {
            let words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words))
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Halves for Avx2 {
    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> __m256 {
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
    }
    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> __m256 {
        unsafe {
            let words = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(words))
        }
    }
}

/// 256 bits of i32, products of two i16 each.
#[cfg(target_arch = "x86_64")]
pub(super) struct Pairs;

#[cfg(target_arch = "x86_64")]
impl Simd for Pairs {
    type V = __m256i;
    type M = __m256i;
    const N: usize = 8;

    #[inline(always)]
    unsafe fn zero() -> __m256i {
        unsafe { _mm256_setzero_si256() }
    }
    #[inline(always)]
    unsafe fn splat(from: *const f32) -> __m256i {
        unsafe { _mm256_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256i {
        unsafe { _mm256_loadu_si256(from.cast()) }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, v: __m256i) {
        unsafe { _mm256_storeu_si256(to.cast(), v) }
    }
    #[inline(always)]
    unsafe fn mask(n: usize) -> __m256i {
        unsafe { Avx2::mask(n) }
    }
    #[inline(always)]
    unsafe fn load_some(from: *const f32, m: __m256i) -> __m256i {
        unsafe { _mm256_maskload_epi32(from.cast(), m) }
    }
    #[inline(always)]
    unsafe fn store_some(to: *mut f32, m: __m256i, v: __m256i) {
        unsafe { _mm256_maskstore_epi32(to.cast(), m, v) }
    }
    #[inline(always)]
    unsafe fn fma(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
        unsafe { _mm256_add_epi32(c, _mm256_madd_epi16(a, b)) }
    }
    #[inline(always)]
    unsafe fn plus(a: __m256i, b: __m256i) -> __m256i {
        unsafe { _mm256_add_epi32(a, b) }
    }
}

/// Eight rows of eight words, `step` bytes apart, as columns: rows of the result are `row` bytes apart.
///
/// # Safety
/// They are there, and the machine has AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
pub(super) unsafe fn turn(from: *const f32, step: isize, to: *mut f32, row: isize) {
    // SAFETY: the caller's promise.
    unsafe {
        for (n, column) in columns(from, step).into_iter().enumerate() {
            _mm256_storeu_ps(to.wrapping_byte_offset(n as isize * row), column);
        }
    }
}

/// The columns of eight rows of eight words, `step` bytes apart.
///
/// # Safety
/// They are there, and the machine has AVX.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx")]
pub(super) unsafe fn columns(from: *const f32, step: isize) -> [__m256; 8] {
    // SAFETY: the caller's promise.
    unsafe { columns_of(|n| from.wrapping_byte_offset(n * step)) }
}

/// The columns of eight rows of eight words, which begin there.
///
/// # Safety
/// They are there, and the machine has AVX.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx")]
pub(super) unsafe fn columns_of(row: impl Fn(isize) -> *const f32) -> [__m256; 8] {
    // SAFETY: the caller's promise.
    unsafe {
        // Halves of rows n and n + 4 as they are loaded: that is no work for the unit that shuffles.
        let line = |n: isize, at: usize| {
            let half = |n: isize| _mm_loadu_ps(row(n).wrapping_add(at));
            _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(half(n)), half(n + 4))
        };
        // Four columns, of rows 0 to 3 in the lower half and of rows 4 to 7 in the upper one.
        let four = |at: usize| {
            let pairs = |x, y| (_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y));
            let quads = |x, y| (_mm256_shuffle_ps::<0x44>(x, y), _mm256_shuffle_ps::<0xee>(x, y));
            let (a0, a1) = pairs(line(0, at), line(1, at));
            let (b0, b1) = pairs(line(2, at), line(3, at));
            (quads(a0, b0), quads(a1, b1))
        };
        let (((c0, c1), (c2, c3)), ((c4, c5), (c6, c7))) = (four(0), four(4));
        [c0, c1, c2, c3, c4, c5, c6, c7]
    }
}
