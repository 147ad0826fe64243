//! Reductions of rows, in the order that `Reduce` of loop IR fixes: 64 strided partials, then a halving tree.
//!
//! Sums of floats are made in f32. Largest and smallest floats are found among integers of the same order, with NaN
//! beyond the extreme that wins.

#[cfg(target_arch = "x86_64")]
mod eights;
#[cfg(target_arch = "x86_64")]
mod floats;

use half::{bf16, f16};
use ptoc_abi::PARTIALS;
use ptoc_tensor::DType;
use std::marker::PhantomData;

/// What joins the elements of a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceOp {
    /// Sum; of integers modulo their width.
    Add,
    /// Largest.
    Max,
    /// Smallest.
    Min,
}

/// The routine: addresses of the results and of element (0, 0), rows, columns, bytes from result to result, from row to
/// row, from column to column.
pub fn reduce(op: ReduceOp, ty: DType) -> Option<*const u8> {
    #[cfg(target_arch = "x86_64")]
    if let Some(routine) = floats::reduce(op, ty).or_else(|| eights::reduce(op, ty)) {
        return Some(routine);
    }
    Some(match ty {
        DType::F32 => of_float::<f32>(op),
        DType::F16 => of_float::<Half>(op),
        DType::BF16 => of_float::<Brain>(op),
        DType::I8 => of_integer::<i8>(op),
        DType::U8 => of_integer::<u8>(op),
        DType::I16 => of_integer::<i16>(op),
        DType::U16 => of_integer::<u16>(op),
        DType::I32 => of_integer::<i32>(op),
        DType::U32 => of_integer::<u32>(op),
        DType::I64 => of_integer::<i64>(op),
        DType::U64 => of_integer::<u64>(op),
        DType::Bool | DType::F8E4M3 | DType::F8E5M2 => return None,
    })
}

fn of_float<E: Float>(op: ReduceOp) -> *const u8 {
    match op {
        ReduceOp::Add => entry::<FloatSum<E>>(),
        ReduceOp::Max => entry::<FloatMax<E>>(),
        ReduceOp::Min => entry::<FloatMin<E>>(),
    }
}

fn of_integer<E: Integer>(op: ReduceOp) -> *const u8 {
    match op {
        ReduceOp::Add => entry::<IntegerSum<E>>(),
        ReduceOp::Max => entry::<IntegerMax<E>>(),
        ReduceOp::Min => entry::<IntegerMin<E>>(),
    }
}

fn entry<F: Fold>() -> *const u8 {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512bw") {
            return rows_avx512::<F> as *const u8;
        }
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("f16c") {
            return rows_avx2::<F> as *const u8;
        }
    }
    rows_plain::<F> as *const u8
}

/// How elements become partials, what joins two partials, and what becomes of the last.
trait Fold {
    /// In memory.
    type Element: Copy;
    /// A partial.
    type Partial: Copy;
    /// Changes nothing.
    const NOTHING: Self::Partial;
    fn take(x: Self::Element) -> Self::Partial;
    fn join(a: Self::Partial, b: Self::Partial) -> Self::Partial;
    fn give(x: Self::Partial) -> Self::Element;
}

trait Float: Copy {
    fn wide(self) -> f32;
    fn narrow(x: f32) -> Self;
}

impl Float for f32 {
    #[inline(always)]
    fn wide(self) -> f32 {
        self
    }
    #[inline(always)]
    fn narrow(x: f32) -> f32 {
        x
    }
}

/// f16 by its bits.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Half(u16);

impl Float for Half {
    /// By integers, which vectors can do: the exponent moves by 112, a subnormal is a multiple of 2^-24 (as a subnormal
    /// f32 it would cost a hundred cycles), and infinity and NaN are set apart.
    #[inline(always)]
    fn wide(self) -> f32 {
        let bits = u32::from(self.0);
        let magnitude = bits & 0x7fff;
        let moved = magnitude << 13;
        let small = (magnitude as i32 as f32 * f32::from_bits(0x3380_0000)).to_bits();
        let special = moved | 0x7f80_0000 | if magnitude > 0x7c00 { 0x0040_0000 } else { 0 };
        let finite = if magnitude < 0x0400 { small } else { moved + (112 << 23) };
        let bits_of = if magnitude >= 0x7c00 { special } else { finite };
        f32::from_bits(bits_of | (bits & 0x8000) << 16)
    }
    #[inline(always)]
    fn narrow(x: f32) -> Half {
        Half(f16::from_f32(x).to_bits())
    }
}

/// bf16 by its bits.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Brain(u16);

impl Float for Brain {
    #[inline(always)]
    fn wide(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
    #[inline(always)]
    fn narrow(x: f32) -> Brain {
        Brain(bf16::from_f32(x).to_bits())
    }
}

struct FloatSum<E>(PhantomData<E>);

impl<E: Float> Fold for FloatSum<E> {
    type Element = E;
    type Partial = f32;
    const NOTHING: f32 = 0.0;
    #[inline(always)]
    fn take(x: E) -> f32 {
        x.wide()
    }
    #[inline(always)]
    fn join(a: f32, b: f32) -> f32 {
        a + b
    }
    #[inline(always)]
    fn give(x: f32) -> E {
        E::narrow(x)
    }
}

/// An integer with the order of the floats, -0 below +0 and NaN replaced.
#[inline(always)]
fn ordered(x: f32, nan: i32) -> i32 {
    let bits = x.to_bits() as i32;
    let key = bits ^ ((bits >> 31) & i32::MAX);
    if x.is_nan() { nan } else { key }
}

#[inline(always)]
fn from_ordered(key: i32, nan: i32) -> f32 {
    if key == nan {
        return f32::NAN;
    }
    f32::from_bits((key ^ ((key >> 31) & i32::MAX)) as u32)
}

struct FloatMax<E>(PhantomData<E>);

impl<E: Float> Fold for FloatMax<E> {
    type Element = E;
    type Partial = i32;
    /// Minus infinity.
    const NOTHING: i32 = 0xff80_0000_u32 as i32 ^ i32::MAX;
    #[inline(always)]
    fn take(x: E) -> i32 {
        ordered(x.wide(), i32::MAX)
    }
    #[inline(always)]
    fn join(a: i32, b: i32) -> i32 {
        a.max(b)
    }
    #[inline(always)]
    fn give(x: i32) -> E {
        E::narrow(from_ordered(x, i32::MAX))
    }
}

struct FloatMin<E>(PhantomData<E>);

impl<E: Float> Fold for FloatMin<E> {
    type Element = E;
    type Partial = i32;
    /// Infinity.
    const NOTHING: i32 = 0x7f80_0000;
    #[inline(always)]
    fn take(x: E) -> i32 {
        ordered(x.wide(), i32::MIN)
    }
    #[inline(always)]
    fn join(a: i32, b: i32) -> i32 {
        a.min(b)
    }
    #[inline(always)]
    fn give(x: i32) -> E {
        E::narrow(from_ordered(x, i32::MIN))
    }
}

trait Integer: Copy + Ord {
    const ZERO: Self;
    const LEAST: Self;
    const MOST: Self;
    fn plus(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($ty:ty),*) => {
        $(impl Integer for $ty {
            const ZERO: $ty = 0;
            const LEAST: $ty = <$ty>::MIN;
            const MOST: $ty = <$ty>::MAX;
            #[inline(always)]
            fn plus(self, other: $ty) -> $ty {
                self.wrapping_add(other)
            }
        })*
    };
}
integers!(i8, u8, i16, u16, i32, u32, i64, u64);

macro_rules! integer_fold {
    ($name:ident, $nothing:ident, $join:expr) => {
        struct $name<E>(PhantomData<E>);

        // Sums wrap at the width of the element: the low bits of a wider sum are the same.
        impl<E: Integer> Fold for $name<E> {
            type Element = E;
            type Partial = E;
            const NOTHING: E = E::$nothing;
            #[inline(always)]
            fn take(x: E) -> E {
                x
            }
            #[inline(always)]
            fn join(a: E, b: E) -> E {
                $join(a, b)
            }
            #[inline(always)]
            fn give(x: E) -> E {
                x
            }
        }
    };
}
integer_fold!(IntegerSum, ZERO, E::plus);
integer_fold!(IntegerMax, LEAST, E::max);
integer_fold!(IntegerMin, MOST, E::min);

macro_rules! versions {
    ($($(#[$attr:meta])* $name:ident;)*) => {
        $(/// # Safety
        /// The machine has the instructions, and the matrix and the results are in memory.
        $(#[$attr])*
        unsafe extern "C" fn $name<F: Fold>(
            results: *mut u8,
            elements: *const u8,
            rows: i64,
            cols: i64,
            result_step: i64,
            row_step: i64,
            col_step: i64,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                for row in 0..rows as isize {
                    let from = elements.offset(row * row_step as isize);
                    let partial = if col_step == size_of::<F::Element>() as i64 {
                        contiguous::<F>(from.cast(), cols.max(0) as usize)
                    } else {
                        strided::<F>(from, cols as isize, col_step as isize)
                    };
                    let to = results.offset(row * result_step as isize).cast::<F::Element>();
                    to.write_unaligned(F::give(partial));
                }
            }
        })*
    };
}

versions! {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,f16c")]
    rows_avx512;
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,f16c")]
    rows_avx2;
    rows_plain;
}

/// Partials with `some` joined to the first ones.
#[inline(always)]
unsafe fn add<F: Fold>(partials: &mut [F::Partial; PARTIALS], some: *const F::Element, count: usize) {
    for (n, partial) in partials[..count].iter_mut().enumerate() {
        // SAFETY: `some` has `count` elements.
        *partial = F::join(*partial, F::take(unsafe { some.add(n).read_unaligned() }));
    }
}

#[inline(always)]
unsafe fn contiguous<F: Fold>(from: *const F::Element, cols: usize) -> F::Partial {
    let mut partials = [F::NOTHING; PARTIALS];
    let mut at = 0;
    // SAFETY: `from` has `cols` elements.
    unsafe {
        while at + PARTIALS <= cols {
            add::<F>(&mut partials, from.add(at), PARTIALS);
            at += PARTIALS;
        }
        add::<F>(&mut partials, from.add(at), cols - at);
    }
    tree::<F>(partials)
}

#[inline(always)]
unsafe fn strided<F: Fold>(from: *const u8, cols: isize, step: isize) -> F::Partial {
    let mut partials = [F::NOTHING; PARTIALS];
    for col in 0..cols {
        // SAFETY: element `col` of the row.
        let x = unsafe { from.offset(col * step).cast::<F::Element>().read_unaligned() };
        let partial = &mut partials[col as usize % PARTIALS];
        *partial = F::join(*partial, F::take(x));
    }
    tree::<F>(partials)
}

#[inline(always)]
fn tree<F: Fold>(partials: [F::Partial; PARTIALS]) -> F::Partial {
    let half = halved::<F, PARTIALS, 32>(&partials);
    let half = halved::<F, 32, 16>(&half);
    let half = halved::<F, 16, 8>(&half);
    let half = halved::<F, 8, 4>(&half);
    let half = halved::<F, 4, 2>(&half);
    F::join(half[0], half[1])
}

/// Each of the first half joined with its counterpart. Lengths are known, so that each step is a few vectors.
#[inline(always)]
fn halved<F: Fold, const ALL: usize, const HALF: usize>(all: &[F::Partial; ALL]) -> [F::Partial; HALF] {
    let mut out = [F::NOTHING; HALF];
    let (low, high) = all.split_at(HALF);
    for ((to, low), high) in out.iter_mut().zip(low).zip(high) {
        *to = F::join(*low, *high);
    }
    out
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    type Rows = unsafe extern "C" fn(*mut u8, *const u8, i64, i64, i64, i64, i64);

    /// Versions of a sum, of the largest and of the smallest, each beside the one that has to give the same.
    pub(super) type Pairs = [[Rows; 2]; 3];

    /// Both of each pair on a matrix of these bytes, by the bytes of the results.
    fn same(pairs: Pairs, x: &[u8], (rows, cols): (usize, usize), size: usize) {
        let run = |f: Rows| {
            let mut out = vec![7u8; rows * size];
            let [size, row] = [size, cols * size].map(|n| n as i64);
            // SAFETY: a matrix of these sizes, and as many results.
            unsafe { f(out.as_mut_ptr(), x.as_ptr(), rows as i64, cols as i64, size, row, size) };
            out
        };
        for [one, other] in pairs {
            assert_eq!(run(one), run(other), "{rows} x {cols} of {size} bytes");
        }
    }

    /// On rows of all lengths, with NaN, infinities and zeros of both signs: of f32, of f16 and of bf16.
    pub(super) fn the_same_bits(singles: Pairs, halves: Pairs, brains: Pairs) {
        let corners = [f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1e-7, -1.5];
        for rows in [1usize, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 35] {
            for cols in [0usize, 1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 128, 200] {
                for kind in 0..4 {
                    let at = |n: usize| match (kind, n.wrapping_mul(2_654_435_761) >> 7) {
                        (0, h) => (h % 1999) as f32 / 7.0 - 120.0,
                        // Zeros of both signs.
                        (1, h) => [0.0, -0.0][h % 2],
                        (2, h) if h % 37 == 0 => corners[h / 37 % 8],
                        (2, h) => (h % 91) as f32,
                        (_, h) => -((h % 5) as f32) * 1e-3,
                    };
                    let x: Vec<f32> = (0..rows * cols).map(at).collect();
                    let bytes = |f: &dyn Fn(f32) -> Vec<u8>| x.iter().flat_map(|x| f(*x)).collect::<Vec<u8>>();
                    same(singles, &bytes(&|x| x.to_le_bytes().to_vec()), (rows, cols), 4);
                    same(halves, &bytes(&|x| f16::from_f32(x).to_le_bytes().to_vec()), (rows, cols), 2);
                    same(brains, &bytes(&|x| bf16::from_f32(x).to_le_bytes().to_vec()), (rows, cols), 2);
                }
            }
        }
    }

    fn versions<F: Fold>() -> Vec<Rows> {
        let mut all: Vec<Rows> = vec![rows_plain::<F>];
        if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("f16c") {
            all.push(rows_avx2::<F>);
        }
        if std::is_x86_feature_detected!("avx512f") && std::is_x86_feature_detected!("avx512bw") {
            all.push(rows_avx512::<F>);
        }
        all
    }

    fn agree<F: Fold>(bytes: &[u8]) {
        let size = size_of::<F::Element>();
        let cols = (bytes.len() / size / 2) as i64;
        let results: Vec<Vec<u8>> = versions::<F>()
            .into_iter()
            .map(|version| {
                let mut results = vec![0; 2 * size];
                let row = cols * size as i64;
                // SAFETY: two rows of as many elements, and two results.
                unsafe { version(results.as_mut_ptr(), bytes.as_ptr(), 2, cols, size as i64, row, size as i64) };
                results
            })
            .collect();
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{results:?}");
    }

    /// The integration tests see only the widest version that the machine has.
    #[test]
    fn every_version_gives_the_same_bits() {
        for len in [8usize, 260, 1028, 2400] {
            let floats: Vec<f32> = (0..len).map(|n| ((n * 7919) % 997) as f32 / 3.0 - 150.0).collect();
            let singles: Vec<u8> = floats.iter().flat_map(|x| x.to_le_bytes()).collect();
            let halves: Vec<u8> = floats.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect();
            agree::<FloatSum<f32>>(&singles);
            agree::<FloatMax<f32>>(&singles);
            agree::<FloatMin<Half>>(&halves);
            agree::<FloatSum<Half>>(&halves);
            agree::<IntegerSum<i8>>(&singles);
            agree::<IntegerMax<u16>>(&singles);
            agree::<IntegerMin<i64>>(&singles);
        }
    }

    #[test]
    fn halves_widen_exactly() {
        for bits in 0..=u16::MAX {
            let (got, want) = (Half(bits).wide(), f16::from_bits(bits).to_f32());
            assert!(got.to_bits() == want.to_bits(), "{bits:#x}: {got} and {want}");
        }
    }
}
