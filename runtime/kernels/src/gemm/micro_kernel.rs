//! Micro-kernels of GEMM: a register block of MR rows by vectors of columns (NR), accumulated over a KC block.

use super::super::simd::Simd;
#[cfg(target_arch = "x86_64")]
use super::super::simd::{Avx2, Avx512, Dots, Pairs, Vnni, Widening};
use super::super::unrolled::Operands;
use super::packing::{PanelPair, Widen};
#[cfg(target_arch = "x86_64")]
use super::packing::{side_narrow, widen_narrow, widen_wide};

use ptoc_tensor::DType;

/// What one block computes. Distances are in bytes.
#[derive(Clone, Copy)]
pub(super) struct MicroKernelArgs {
    /// Steps.
    pub(super) k: usize,
    /// The result, its columns contiguous.
    pub(super) d: *mut u8,
    pub(super) d_row: isize,
    /// Where the sums start, columns contiguous; null for zero.
    pub(super) start: *const u8,
    pub(super) start_row: isize,
    /// Rows by k, f32.
    pub(super) a: *const u8,
    pub(super) a_row: isize,
    pub(super) a_col: isize,
    /// k by columns, columns contiguous; whole vectors may be read if it is packed. f32, or what the version reads.
    pub(super) b: *const u8,
    pub(super) b_row: isize,
    /// A row that is added to every row of the result at the end; null for none.
    pub(super) plus: *const u8,
    /// Lanes of the last vector.
    pub(super) last: usize,
}

/// Code for one size of block.
pub(super) type MicroKernel = unsafe fn(&MicroKernelArgs);

/// Which lanes of the last vector exist.
const WHOLE: u8 = 0;
/// Some of d, all of b, which is packed.
const PADDED: u8 = 1;
/// Some of both.
const RAGGED: u8 = 2;

/// Rows of a that one pointer serves: the others are one and two rows further on, which an address can hold.
const GROUP: usize = 3;

/// The steps of a block, two at a time. `DENSE` tells whether a's elements of a row are known to be neighbours. So few
/// instructions beside the multiply-adds leave room for another thread of the core.
///
/// # Safety
/// As for [`block`].
#[inline(always)]
unsafe fn depth<S: Simd, const R: usize, const C: usize, const LAST: u8, const DENSE: bool>(
    x: &MicroKernelArgs,
    sums: &mut [[S::V; C]; R],
) {
    let col = if DENSE { 4 } else { x.a_col };
    let mut rows = [x.a; 4];
    for (n, row) in rows.iter_mut().enumerate() {
        *row = row.wrapping_offset((n * GROUP) as isize * x.a_row);
    }
    let mut b = x.b;
    // SAFETY: the caller's promise.
    unsafe {
        let mask = S::mask(x.last);
        let mut k = x.k;
        if LAST != RAGGED {
            let done = S::steps(&Operands { a: x.a, a_row: x.a_row, a_col: col, b, b_row: x.b_row }, k, sums);
            k -= done;
            b = b.wrapping_offset(done as isize * x.b_row);
            rows.iter_mut().for_each(|row| *row = row.wrapping_offset(done as isize * col));
        }
        for _ in 0..k / 2 {
            step::<S, R, C, LAST>(x, &rows, 0, b, mask, sums);
            step::<S, R, C, LAST>(x, &rows, col, b.wrapping_offset(x.b_row), mask, sums);
            for row in &mut rows {
                *row = row.wrapping_offset(2 * col);
            }
            b = b.wrapping_offset(2 * x.b_row);
        }
        if k % 2 == 1 {
            step::<S, R, C, LAST>(x, &rows, 0, b, mask, sums);
        }
    }
}

/// One step, `ahead` bytes behind what the pointers to rows of a point to.
///
/// # Safety
/// As for [`block`].
#[inline(always)]
unsafe fn step<S: Simd, const R: usize, const C: usize, const LAST: u8>(
    x: &MicroKernelArgs,
    rows: &[*const u8; 4],
    ahead: isize,
    b: *const u8,
    mask: S::M,
    sums: &mut [[S::V; C]; R],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut factors = [S::zero(); C];
        for (c, factor) in factors.iter_mut().enumerate() {
            let from = b.wrapping_add(c * S::N * S::FACTOR);
            *factor = if LAST == RAGGED && c + 1 == C { S::factor_some(from, x.last, mask) } else { S::factor(from) };
        }
        for (r, row) in sums.iter_mut().enumerate() {
            let one = S::splat(rows[r / GROUP].wrapping_offset((r % GROUP) as isize * x.a_row + ahead).cast());
            for (sum, &factor) in row.iter_mut().zip(&factors) {
                *sum = S::fma(one, factor, *sum);
            }
        }
    }
}

#[inline(always)]
unsafe fn block<S: Simd, const R: usize, const C: usize, const LAST: u8>(x: &MicroKernelArgs) {
    // SAFETY: R rows and C vectors (of the last one, the lanes that exist) are inside the matrices.
    unsafe {
        let mask = S::mask(x.last);
        let mut sums = [[S::zero(); C]; R];
        if !x.start.is_null() {
            for (r, row) in sums.iter_mut().enumerate() {
                let from = x.start.wrapping_offset(r as isize * x.start_row).cast::<f32>();
                for (c, sum) in row.iter_mut().enumerate() {
                    let from = from.wrapping_add(c * S::N);
                    *sum = if LAST != WHOLE && c + 1 == C { S::load_some(from, mask) } else { S::load(from) };
                }
            }
        }
        // Of 11 and 12 rows by two wide vectors LLVM fetches the elements of both steps at once where it knows that
        // they are neighbours, and has to store half of them: 34 accesses to the stack for 48 multiply-adds (counted in
        // the machine code, not timed). Of 8 by three and 6 by four it does not.
        if x.a_col == 4 && !(R > 10 && C > 1) {
            depth::<S, R, C, LAST, true>(x, &mut sums);
        } else {
            depth::<S, R, C, LAST, false>(x, &mut sums);
        }
        if !x.plus.is_null() {
            let plus = x.plus.cast::<f32>();
            let row: [S::V; C] = std::array::from_fn(|c| S::load(plus.wrapping_add(c * S::N)));
            for sums in &mut sums {
                sums.iter_mut().zip(&row).for_each(|(sum, &more)| *sum = S::plus(*sum, more));
            }
        }
        for (r, row) in sums.iter().enumerate() {
            let to = x.d.wrapping_offset(r as isize * x.d_row).cast::<f32>();
            for (c, &sum) in row.iter().enumerate() {
                let to = to.wrapping_add(c * S::N);
                if LAST != WHOLE && c + 1 == C {
                    S::store_some(to, mask, sum)
                } else {
                    S::store(to, sum)
                };
            }
        }
    }
}

/// A vector instruction set's blocks.
pub(super) struct Version {
    /// Lanes of a vector.
    pub(super) lanes: usize,
    /// Most rows of blocks of 1, 2, .. vectors: as many as the registers hold.
    pub(super) rows: &'static [usize],
    /// What brings elements to its width.
    pub(super) widen: Option<Widen>,
    /// What packs several panels of two vectors, if there is something better than one behind the other.
    pub(super) side: Option<PanelPair>,
    /// The code for (rows, vectors, what the last vector is).
    pick: fn(usize, usize, u8) -> MicroKernel,
}

impl Version {
    /// Vectors of so many columns, and lanes of the last one.
    pub(super) fn vectors(&self, columns: usize) -> (usize, usize) {
        debug_assert!(self.lanes.is_power_of_two());
        let vectors = (columns + self.lanes - 1) >> self.lanes.trailing_zeros();
        (vectors, columns - (vectors - 1) * self.lanes)
    }

    /// The code for a block; `last`: lanes of its last vector, `packed`: whether b is packed.
    pub(super) fn code(&self, rows: usize, vectors: usize, last: usize, packed: bool) -> MicroKernel {
        let kind = match (last == self.lanes, packed) {
            (true, _) => WHOLE,
            (_, true) => PADDED,
            (_, false) => RAGGED,
        };
        (self.pick)(rows, vectors, kind)
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! version {
    ($name:ident, $simd:ident, $features:literal, $($vectors:literal: $($rows:literal)*;)*) => {
        mod $name {
            use super::*;

            /// # Safety
            /// As for [`block`]; the machine has the instructions.
            #[target_feature(enable = $features)]
            unsafe fn of<const R: usize, const C: usize, const LAST: u8>(x: &MicroKernelArgs) {
                // SAFETY: the caller's promise.
                unsafe { block::<$simd, R, C, LAST>(x) }
            }

            pub(super) fn pick(rows: usize, vectors: usize, last: u8) -> MicroKernel {
                match (rows, vectors, last) {
                    $($(
                        ($rows, $vectors, WHOLE) => of::<$rows, $vectors, WHOLE>,
                        ($rows, $vectors, PADDED) => of::<$rows, $vectors, PADDED>,
                        ($rows, $vectors, _) => of::<$rows, $vectors, RAGGED>,
                    )*)*
                    _ => unreachable!("blocks have as many rows as their version says"),
                }
            }
        }
    };
}

// Accumulators, a row of b and an element of a: 31 of 32 registers at most, 15 of 16 (all of them where `steps` has
// written them out).
#[cfg(target_arch = "x86_64")]
version! { wide, Avx512, "avx512f",
    1: 1 2 3 4 5 6 7 8 9 10 11 12;
    2: 1 2 3 4 5 6 7 8 9 10 11 12;
    3: 1 2 3 4 5 6 7 8;
    4: 1 2 3 4 5 6;
}
#[cfg(target_arch = "x86_64")]
version! { bytes, Vnni, "avx512f,avx512vnni",
    1: 1 2 3 4 5 6 7 8 9 10 11 12;
    2: 1 2 3 4 5 6 7 8 9 10 11 12;
    3: 1 2 3 4 5 6 7 8;
    4: 1 2 3 4 5 6;
}
#[cfg(target_arch = "x86_64")]
version! { dots, Dots, "avx512f,avx512bf16",
    1: 1 2 3 4 5 6 7 8 9 10 11 12;
    2: 1 2 3 4 5 6 7 8 9 10 11 12;
    3: 1 2 3 4 5 6 7 8;
    4: 1 2 3 4 5 6;
}
#[cfg(target_arch = "x86_64")]
version! { narrow, Avx2, "avx2,fma,f16c",
    1: 1 2 3 4 5 6 7 8 9 10;
    2: 1 2 3 4 5 6;
}

#[cfg(target_arch = "x86_64")]
version! { pairs, Pairs, "avx2,fma",
    1: 1 2 3 4 5 6 7 8 9 10;
    2: 1 2 3 4 5 6;
}

#[cfg(target_arch = "x86_64")]
type NarrowF16 = Widening<Avx2, false>;
#[cfg(target_arch = "x86_64")]
type NarrowBf16 = Widening<Avx2, true>;
#[cfg(target_arch = "x86_64")]
type WideF16 = Widening<Avx512, false>;
#[cfg(target_arch = "x86_64")]
type WideBf16 = Widening<Avx512, true>;

/// Blocks of few rows, which are wide: more of a row of b at once.
#[cfg(target_arch = "x86_64")]
macro_rules! versions_of_halves {
    ($($name:ident, $simd:ident, $features:literal;)*) => {
        $(version! { $name, $simd, $features,
            1: 1 2 3 4 5 6;
            2: 1 2 3 4 5 6;
            3: 1 2;
            4: 1 2;
        })*
    };
}
#[cfg(target_arch = "x86_64")]
versions_of_halves! {
    narrow_f16, NarrowF16, "avx2,fma,f16c";
    narrow_bf16, NarrowBf16, "avx2,fma,f16c";
    wide_f16, WideF16, "avx512f";
    wide_bf16, WideBf16, "avx512f";
}

/// Blocks of f32 by a b of f16 or bf16, for vectors of so many lanes.
pub(super) fn of_halves(lanes: usize, ty: DType) -> Option<&'static Version> {
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! halves {
            ($lanes:literal, $code:ident) => {{
                static HALVES: Version =
                    Version { lanes: $lanes, rows: &[6, 6, 2, 2], widen: None, side: None, pick: $code::pick };
                Some(&HALVES)
            }};
        }
        match (lanes, ty) {
            (8, DType::F16) => halves!(8, narrow_f16),
            (8, DType::BF16) => halves!(8, narrow_bf16),
            (16, DType::F16) => halves!(16, wide_f16),
            (16, DType::BF16) => halves!(16, wide_bf16),
            _ => None,
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// All that the machine has, the best first.
pub(super) fn versions() -> Vec<&'static Version> {
    let mut out: Vec<&'static Version> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        static WIDE: Version =
            Version { lanes: 16, rows: &[12, 12, 8, 6], widen: Some(widen_wide), side: None, pick: wide::pick };
        static NARROW: Version = Version {
            lanes: 8,
            rows: &[10, 6],
            widen: Some(widen_narrow),
            side: Some(side_narrow),
            pick: narrow::pick,
        };
        if std::is_x86_feature_detected!("avx512f") {
            out.push(&WIDE);
        }
        let has_fma = std::is_x86_feature_detected!("fma") && std::is_x86_feature_detected!("f16c");
        if std::is_x86_feature_detected!("avx2") && has_fma {
            out.push(&NARROW);
        }
    }
    out
}

/// The best.
pub(super) fn version() -> Option<&'static Version> {
    static BEST: std::sync::OnceLock<Option<&'static Version>> = std::sync::OnceLock::new();
    *BEST.get_or_init(|| versions().first().copied())
}

/// Blocks of groups of four bytes, unsigned ones of a by signed ones of b, in i32.
pub(super) fn of_bytes() -> Option<&'static Version> {
    #[cfg(target_arch = "x86_64")]
    {
        static BYTES: Version =
            Version { lanes: 16, rows: &[12, 12, 8, 6], widen: None, side: None, pick: bytes::pick };
        if std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512vnni") {
            return Some(&BYTES);
        }
    }
    None
}

/// Blocks of pairs of bf16, in f32, if the machine's dot products are two fused multiply-adds, the upper elements
/// first.
pub(super) fn of_dots() -> Option<&'static Version> {
    #[cfg(target_arch = "x86_64")]
    {
        static DOTS: Version = Version { lanes: 16, rows: &[12, 12, 8, 6], widen: None, side: None, pick: dots::pick };
        static USABLE: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        let there = |f: &[bool]| f.iter().all(|&f| f);
        let has = || {
            there(&[
                std::is_x86_feature_detected!("avx512f"),
                std::is_x86_feature_detected!("avx512vl"),
                std::is_x86_feature_detected!("avx512bw"),
                std::is_x86_feature_detected!("avx512bf16"),
            ])
        };
        // SAFETY: the machine has the instructions when it is asked to use them.
        if *USABLE.get_or_init(|| has() && unsafe { steps_in_order(&DOTS) }) {
            return Some(&DOTS);
        }
    }
    None
}

/// Whether the machine rounds each half of a dot product as a step of its own, the upper one first. The manuals say so;
/// what they leave open is tried on the machine.
///
/// # Safety
/// The machine has the version's instructions.
#[cfg(target_arch = "x86_64")]
unsafe fn steps_in_order(version: &Version) -> bool {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Exponents from -8 to 7.
        let bits = (state >> 40) as u32;
        (bits & 0x8000 | (119 + (bits >> 16 & 15)) << 7 | bits & 127) << 16
    };
    let float = f32::from_bits;
    (0..64).all(|_| {
        let a = next() | next() >> 16;
        let b: [u32; 16] = std::array::from_fn(|_| next() | next() >> 16);
        let start: [f32; 16] = std::array::from_fn(|_| float(next() | next() >> 16));
        let mut d = [0f32; 16];
        let block = MicroKernelArgs {
            k: 1,
            d: d.as_mut_ptr().cast(),
            d_row: 0,
            start: start.as_ptr().cast(),
            start_row: 0,
            a: (&raw const a).cast(),
            a_row: 0,
            a_col: 0,
            b: b.as_ptr().cast(),
            b_row: 0,
            plus: std::ptr::null(),
            last: 16,
        };
        // SAFETY: one row by one vector.
        unsafe { version.code(1, 1, 16, true)(&block) };
        (0..16).all(|n| {
            let first = float(a & 0xffff_0000).mul_add(float(b[n] & 0xffff_0000), start[n]);
            d[n].to_bits() == float(a << 16).mul_add(float(b[n] << 16), first).to_bits()
        })
    })
}

/// Blocks of pairs of i16, in i32.
pub(super) fn of_pairs() -> Option<&'static Version> {
    #[cfg(target_arch = "x86_64")]
    {
        static PAIRS: Version = Version { lanes: 8, rows: &[10, 6], widen: None, side: None, pick: pairs::pick };
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
            return Some(&PAIRS);
        }
    }
    None
}
