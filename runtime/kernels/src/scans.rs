//! Scans of lines, which are rows or columns: each element joined with all before it in its line, one after the other.
//!
//! A step waits for the one before it, so a line by itself goes at the latency of an addition. Columns go side by side.
//! Of rows sixteen do: squares of sixteen by sixteen are turned in registers, so that a vector holds one element of
//! each row, and are turned back. The order within a line is that of the loop that this stands for.

use super::{ReduceOp, Rows};
use half::f16;
use ptoc_tensor::DType;
#[cfg(target_arch = "x86_64")]
use {super::transpose_avx512::turned, std::arch::x86_64::*};

/// The routine: addresses of results and elements, lines, elements of a line, bytes from line to line of both, from
/// element to element of both, the bits of what is before the first element, whether an element is left out of its own
/// result. Results are in the elements' own places, or apart from them, or anywhere: then nothing is done out of order.
pub fn scan(op: ReduceOp, ty: DType) -> Option<*const u8> {
    Some(match (ty, op) {
        (DType::F32, ReduceOp::Add) => entry::<Floats<false, ADD>>(),
        (DType::F32, ReduceOp::Max) => entry::<Floats<false, MAX>>(),
        (DType::F32, ReduceOp::Min) => entry::<Floats<false, MIN>>(),
        (DType::F16, ReduceOp::Add) => entry::<Floats<true, ADD>>(),
        (DType::F16, ReduceOp::Max) => entry::<Floats<true, MAX>>(),
        (DType::F16, ReduceOp::Min) => entry::<Floats<true, MIN>>(),
        (DType::I32, ReduceOp::Add) | (DType::U32, ReduceOp::Add) => entry::<Integers<true, ADD>>(),
        (DType::I32, ReduceOp::Max) => entry::<Integers<true, MAX>>(),
        (DType::I32, ReduceOp::Min) => entry::<Integers<true, MIN>>(),
        (DType::U32, ReduceOp::Max) => entry::<Integers<false, MAX>>(),
        (DType::U32, ReduceOp::Min) => entry::<Integers<false, MIN>>(),
        _ => return None,
    })
}

fn entry<S: Scan>() -> *const u8 {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512vl")
    {
        return scan_avx512::<S> as *const u8;
    }
    scan_plain::<S> as *const u8
}

/// Elements and what joins them. Values are 32 bits: of f32, which holds those of f16, or of an integer.
trait Scan {
    /// Bytes of an element.
    const SIZE: usize;
    /// A step rounds to fewer digits than a lane has.
    const ROUNDS: bool;
    /// # Safety
    /// There is an element.
    unsafe fn get(from: *const u8) -> u32;
    /// # Safety
    /// There is room for one.
    unsafe fn put(to: *mut u8, value: u32);
    /// What is before an element with it, as the element's type has it.
    fn join(before: u32, element: u32) -> u32;

    /// Those whose bit is set; the others, which need not be there, are 0.
    ///
    /// # Safety
    /// They are in memory; the machine has AVX-512, as for the functions below.
    #[cfg(target_arch = "x86_64")]
    unsafe fn load(from: *const u8, mask: u16) -> __m512;
    /// # Safety
    /// There is room for those whose bit is set.
    #[cfg(target_arch = "x86_64")]
    unsafe fn store(to: *mut u8, mask: u16, values: __m512);
    /// [`Self::join`] of each lane.
    ///
    /// # Safety
    /// See above.
    #[cfg(target_arch = "x86_64")]
    unsafe fn join_lanes(before: __m512, elements: __m512) -> __m512;
}

const ADD: u8 = 0;
const MAX: u8 = 1;
const MIN: u8 = 2;

/// f32, or, `HALF`, f16.
struct Floats<const HALF: bool, const OP: u8>;

impl<const HALF: bool, const OP: u8> Scan for Floats<HALF, OP> {
    const SIZE: usize = if HALF { 2 } else { 4 };
    const ROUNDS: bool = HALF && OP == ADD;

    #[inline(always)]
    unsafe fn get(from: *const u8) -> u32 {
        // SAFETY: the caller's promise.
        unsafe {
            match HALF {
                true => f16::from_bits(from.cast::<u16>().read_unaligned()).to_f32().to_bits(),
                false => from.cast::<u32>().read_unaligned(),
            }
        }
    }

    #[inline(always)]
    unsafe fn put(to: *mut u8, value: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            match HALF {
                true => to.cast::<u16>().write_unaligned(f16::from_f32(f32::from_bits(value)).to_bits()),
                false => to.cast::<u32>().write_unaligned(value),
            }
        }
    }

    #[inline(always)]
    fn join(before: u32, element: u32) -> u32 {
        let (a, b) = (f32::from_bits(before), f32::from_bits(element));
        // Equal ones differ at most in the sign of a zero: -0 is below +0.
        let joined = match OP {
            ADD => a + b,
            MAX if a == b => f32::from_bits(before & element),
            MIN if a == b => f32::from_bits(before | element),
            MAX if a > b => a,
            MIN if a < b => a,
            _ if a.is_nan() => a,
            _ => b,
        };
        match Self::ROUNDS {
            true => f16::from_f32(joined).to_f32().to_bits(),
            false => joined.to_bits(),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load(from: *const u8, mask: u16) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            match HALF {
                true => _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from.cast())),
                false => _mm512_maskz_loadu_ps(mask, from.cast()),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn store(to: *mut u8, mask: u16, values: __m512) {
        // SAFETY: the caller's promise.
        unsafe {
            match HALF {
                true => _mm256_mask_storeu_epi16(to.cast(), mask, _mm512_cvtps_ph::<NEAREST>(values)),
                false => _mm512_mask_storeu_ps(to.cast(), mask, values),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn join_lanes(before: __m512, elements: __m512) -> __m512 {
        let bits = _mm512_castps_si512;
        // SAFETY: the caller's promise.
        unsafe {
            // The machine's own give the second operand if both are equal or one is NaN: taken both ways round, they
            // differ there alone.
            let (one, two) = match OP {
                ADD => {
                    let sum = _mm512_add_ps(before, elements);
                    return if HALF { _mm512_cvtph_ps(_mm512_cvtps_ph::<NEAREST>(sum)) } else { sum };
                }
                MAX => (_mm512_max_ps(before, elements), _mm512_max_ps(elements, before)),
                _ => (_mm512_min_ps(before, elements), _mm512_min_ps(elements, before)),
            };
            let either = _mm512_or_si512(bits(one), bits(two));
            if OP == MIN {
                return _mm512_castsi512_ps(either);
            }
            // -0 is taken away of +0 and -0, and +0 of all else.
            let differ = _mm512_xor_si512(bits(one), bits(two));
            _mm512_sub_ps(_mm512_castsi512_ps(either), _mm512_castsi512_ps(differ))
        }
    }
}

/// To nearest, ties to even.
#[cfg(target_arch = "x86_64")]
const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// i32, or u32 that is compared without a sign.
struct Integers<const SIGNED: bool, const OP: u8>;

impl<const SIGNED: bool, const OP: u8> Scan for Integers<SIGNED, OP> {
    const SIZE: usize = 4;
    const ROUNDS: bool = false;

    #[inline(always)]
    unsafe fn get(from: *const u8) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { from.cast::<u32>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn put(to: *mut u8, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<u32>().write_unaligned(value) }
    }

    #[inline(always)]
    fn join(before: u32, element: u32) -> u32 {
        match (OP, SIGNED) {
            (ADD, _) => before.wrapping_add(element),
            (MAX, true) => (before as i32).max(element as i32) as u32,
            (MAX, false) => before.max(element),
            (_, true) => (before as i32).min(element as i32) as u32,
            (_, false) => before.min(element),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn load(from: *const u8, mask: u16) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_maskz_loadu_ps(mask, from.cast()) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn store(to: *mut u8, mask: u16, values: __m512) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_mask_storeu_ps(to.cast(), mask, values) }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn join_lanes(before: __m512, elements: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            let (a, b) = (_mm512_castps_si512(before), _mm512_castps_si512(elements));
            _mm512_castsi512_ps(match (OP, SIGNED) {
                (ADD, _) => _mm512_add_epi32(a, b),
                (MAX, true) => _mm512_max_epi32(a, b),
                (MAX, false) => _mm512_max_epu32(a, b),
                (_, true) => _mm512_min_epi32(a, b),
                (_, false) => _mm512_min_epu32(a, b),
            })
        }
    }
}

/// Lines, and the elements of each one after the other.
#[derive(Clone, Copy)]
struct Extent {
    lines: usize,
    places: usize,
}

/// A matrix: its first element, bytes from line to line and from an element of a line to the next.
#[derive(Clone, Copy)]
struct Lines<P> {
    at: P,
    line: isize,
    place: isize,
}

/// One element after the other.
///
/// # Safety
/// All of them are in memory.
#[inline(always)]
unsafe fn in_order<S: Scan>(d: Lines<*mut u8>, a: Lines<*const u8>, extent: Extent, start: u32, exclusive: bool) {
    for i in 0..extent.lines as isize {
        let (from, to) = (a.at.wrapping_offset(i * a.line), d.at.wrapping_offset(i * d.line));
        let mut before = start;
        for j in 0..extent.places as isize {
            // SAFETY: the caller's promise.
            unsafe {
                let with = S::join(before, S::get(from.wrapping_offset(j * a.place)));
                S::put(to.wrapping_offset(j * d.place), if exclusive { before } else { with });
                before = with;
            }
        }
    }
}

/// # Safety
/// Elements and results are in memory.
unsafe extern "C" fn scan_plain<S: Scan>(
    d: *mut u8,
    a: *const u8,
    lines: i64,
    places: i64,
    d_line: i64,
    a_line: i64,
    d_place: i64,
    a_place: i64,
    start: i64,
    exclusive: i64,
) {
    let d = Lines { at: d, line: d_line as isize, place: d_place as isize };
    let a = Lines { at: a, line: a_line as isize, place: a_place as isize };
    let extent = Extent { lines: lines.max(0) as usize, places: places.max(0) as usize };
    // SAFETY: the caller's promise.
    unsafe { in_order::<S>(d, a, extent, start as u32, exclusive != 0) }
}

/// Lines that do not keep the vectors busy.
const FEW: usize = 4;

/// Lanes of a vector, and rows side by side.
#[cfg(target_arch = "x86_64")]
const SIDE: usize = 16;

/// Vectors of columns side by side, none of which waits for another.
#[cfg(target_arch = "x86_64")]
const STRIP: usize = 4;

/// # Safety
/// As [`scan_plain`]; the machine has AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe extern "C" fn scan_avx512<S: Scan>(
    d: *mut u8,
    a: *const u8,
    lines: i64,
    places: i64,
    d_line: i64,
    a_line: i64,
    d_place: i64,
    a_place: i64,
    start: i64,
    exclusive: i64,
) {
    let d = Lines { at: d, line: d_line as isize, place: d_place as isize };
    let a = Lines { at: a, line: a_line as isize, place: a_place as isize };
    let extent = Extent { lines: lines.max(0) as usize, places: places.max(0) as usize };
    let (start, exclusive) = (start as u32, exclusive != 0);
    let size = S::SIZE as isize;
    let few = extent.lines < FEW;
    // SAFETY: the caller's promise.
    unsafe {
        if !few && (d.place, a.place) == (size, size) {
            let (d, a) = (Rows { at: d.at, step: d.line }, Rows { at: a.at, step: a.line });
            if in_place_or_apart(d, a, (extent.lines, extent.places * S::SIZE)) {
                return rows::<S>(d, a, extent, start, exclusive);
            }
        }
        if !few && (d.line, a.line) == (size, size) {
            let (d, a) = (Rows { at: d.at, step: d.place }, Rows { at: a.at, step: a.place });
            if in_place_or_apart(d, a, (extent.places, extent.lines * S::SIZE)) {
                return columns::<S>(d, a, extent, start, exclusive);
            }
        }
        in_order::<S>(d, a, extent, start, exclusive);
    }
}

/// Whether each result is in its element's place, or no result is in the place of any element: of so many rows of so
/// many bytes.
#[cfg(target_arch = "x86_64")]
fn in_place_or_apart(d: Rows<*mut u8>, a: Rows<*const u8>, (rows, bytes): (usize, usize)) -> bool {
    let span = |at: usize, step: isize| {
        let last = at.wrapping_add_signed(step.wrapping_mul(rows as isize - 1));
        (at.min(last), at.max(last).wrapping_add(bytes))
    };
    let ((d_from, d_to), (a_from, a_to)) = (span(d.at.addr(), d.step), span(a.at.addr(), a.step));
    let in_place = d.at.addr() == a.at.addr() && d.step == a.step;
    // Rows of results do not overlap one another.
    d.step.unsigned_abs() >= bytes && (in_place || d_to <= a_from || a_to <= d_from)
}

/// Lines along rows, as many as a type's steps leave room for at a time.
///
/// # Safety
/// As [`scan_avx512`], in place or apart.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn rows<S: Scan>(d: Rows<*mut u8>, a: Rows<*const u8>, extent: Extent, start: u32, exclusive: bool) {
    let mut r = 0;
    while r < extent.lines {
        let (a, d) = (a.at(r), d.at(r));
        let left = extent.lines - r;
        // SAFETY: the caller's promise.
        unsafe {
            if S::ROUNDS && left >= GROUPS * SIDE {
                squares::<S, GROUPS>(d, a, Extent { lines: GROUPS * SIDE, ..extent }, start, exclusive);
                r += GROUPS * SIDE;
            } else {
                squares::<S, 1>(d, a, Extent { lines: left.min(SIDE), ..extent }, start, exclusive);
                r += SIDE;
            }
        }
    }
}

/// Squares of rows that take turns where a step is long: one that rounds to f16 takes some twenty cycles.
#[cfg(target_arch = "x86_64")]
const GROUPS: usize = 4;

/// Up to `N` times sixteen rows, all of those of more than one.
///
/// # Safety
/// As [`rows`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn squares<S: Scan, const N: usize>(
    d: Rows<*mut u8>,
    a: Rows<*const u8>,
    extent: Extent,
    start: u32,
    exclusive: bool,
) {
    let count = extent.lines.min(SIDE);
    // SAFETY: the caller's promise; masked lanes are not touched.
    unsafe {
        let mut before = [_mm512_castsi512_ps(_mm512_set1_epi32(start as i32)); N];
        for c in (0..extent.places).step_by(SIDE) {
            let mask = mask(extent.places - c);
            let mut columns = [[_mm512_setzero_ps(); SIDE]; N];
            for (g, columns) in columns.iter_mut().enumerate() {
                let line = |n: usize| a.at(g * SIDE + n).at.wrapping_add(c * S::SIZE);
                let mut lines = [_mm512_setzero_ps(); SIDE];
                // Written out for each of the sixteen, so that all stay in registers.
                if count == SIDE {
                    for (n, v) in lines.iter_mut().enumerate() {
                        *v = S::load(line(n), mask);
                        _mm_prefetch::<_MM_HINT_T0>(line(n).wrapping_add(AHEAD).cast());
                    }
                } else {
                    for (n, v) in lines.iter_mut().enumerate() {
                        if n < count {
                            *v = S::load(line(n), mask);
                        }
                    }
                }
                *columns = turned(lines);
            }
            for n in 0..SIDE {
                for (before, columns) in before.iter_mut().zip(&mut columns) {
                    let with = S::join_lanes(*before, columns[n]);
                    columns[n] = if exclusive { *before } else { with };
                    *before = with;
                }
            }
            for (g, &columns) in columns.iter().enumerate() {
                let to = |n: usize| d.at(g * SIDE + n).at.wrapping_add(c * S::SIZE);
                let lines = turned(columns);
                if count == SIDE {
                    for (n, &v) in lines.iter().enumerate() {
                        S::store(to(n), mask, v);
                    }
                } else {
                    for (n, &v) in lines.iter().enumerate() {
                        if n < count {
                            S::store(to(n), mask, v);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Rows<*const u8> {
    /// From row `n` on.
    #[inline(always)]
    fn at(self, n: usize) -> Self {
        Rows { at: self.at.wrapping_offset(n as isize * self.step), ..self }
    }
}

#[cfg(target_arch = "x86_64")]
impl Rows<*mut u8> {
    /// From row `n` on.
    #[inline(always)]
    fn at(self, n: usize) -> Self {
        Rows { at: self.at.wrapping_offset(n as isize * self.step), ..self }
    }
}

/// Bytes from an element to the one that is asked for with it. Rows that follow one another are read in pieces, which
/// the machine does not see as one stream; nothing is lost where others do.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 4 << 10;

/// Lines down columns.
///
/// # Safety
/// As [`scan_avx512`], in place or apart.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn columns<S: Scan>(d: Rows<*mut u8>, a: Rows<*const u8>, extent: Extent, start: u32, exclusive: bool) {
    for c in (0..extent.lines).step_by(SIDE * STRIP) {
        let masks: [u16; STRIP] = std::array::from_fn(|n| mask(extent.lines.saturating_sub(c + n * SIDE)));
        // SAFETY: the caller's promise; masked lanes are not touched.
        unsafe {
            let mut before = [_mm512_castsi512_ps(_mm512_set1_epi32(start as i32)); STRIP];
            for p in 0..extent.places as isize {
                let from = a.at.wrapping_offset(p * a.step).wrapping_add(c * S::SIZE);
                let to = d.at.wrapping_offset(p * d.step).wrapping_add(c * S::SIZE);
                for (n, before) in before.iter_mut().enumerate() {
                    let at = n * SIDE * S::SIZE;
                    let with = S::join_lanes(*before, S::load(from.wrapping_add(at), masks[n]));
                    S::store(to.wrapping_add(at), masks[n], if exclusive { *before } else { with });
                    *before = with;
                }
            }
        }
    }
}

/// Lanes of the next `count` elements.
#[cfg(target_arch = "x86_64")]
fn mask(count: usize) -> u16 {
    if count < SIDE { (1 << count) - 1 } else { u16::MAX }
}
