//! Packing routines: elements on their way to panels and strips: f16 and bf16 are widened, f32 copied.

#[cfg(target_arch = "x86_64")]
use super::super::simd::{Avx2, Avx512};
use super::super::{Rows, simd::Halves};
use super::plain::float;
use ptoc_tensor::DType;

/// A vector of f32 from elements of a type.
///
/// # Safety
/// They are there, and the machine has the instructions.
#[inline(always)]
unsafe fn loaded<S: Halves>(ty: DType, from: *const u8) -> S::V {
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            DType::F16 => S::load_f16(from.cast()),
            DType::BF16 => S::load_bf16(from.cast()),
            _ => S::load(from.cast()),
        }
    }
}

/// # Safety
/// As for [`Widen`].
#[inline(always)]
unsafe fn widened<S: Halves>(ty: DType, from: Rows<*const u8>, to: Rows<*mut u8>, size: (usize, usize)) {
    // A loop for each type, which does not ask for it.
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            DType::F16 => rows_widened::<S>(DType::F16, from, to, size),
            DType::BF16 => rows_widened::<S>(DType::BF16, from, to, size),
            _ => rows_widened::<S>(DType::F32, from, to, size),
        }
    }
}

/// # Safety
/// As for [`Widen`].
#[inline(always)]
unsafe fn rows_widened<S: Halves>(ty: DType, from: Rows<*const u8>, to: Rows<*mut u8>, (rows, count): (usize, usize)) {
    let size = ty.size();
    for row in 0..rows as isize {
        let from = from.at.wrapping_offset(row * from.step);
        let to = to.at.wrapping_offset(row * to.step).cast::<f32>();
        let mut n = 0;
        // SAFETY: whole vectors are inside the elements, and the rest goes one by one.
        unsafe {
            while n + S::N <= count {
                S::store(to.wrapping_add(n), loaded::<S>(ty, from.wrapping_add(n * size)));
                n += S::N;
            }
            for n in n..count {
                to.wrapping_add(n).write(float(ty, from.wrapping_add(n * size)));
            }
        }
    }
}

/// Copies elements as f32: their type, from where, where to, how many rows and elements of a row. They are there, and
/// the machine has the instructions.
pub(super) type Widen = unsafe fn(DType, Rows<*const u8>, Rows<*mut u8>, (usize, usize));

/// # Safety
/// As for [`Widen`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn widen_wide(ty: DType, from: Rows<*const u8>, to: Rows<*mut u8>, size: (usize, usize)) {
    // SAFETY: the caller's promise.
    unsafe { widened::<Avx512>(ty, from, to, size) }
}

/// # Safety
/// As for [`Widen`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn widen_narrow(ty: DType, from: Rows<*const u8>, to: Rows<*mut u8>, size: (usize, usize)) {
    // SAFETY: the caller's promise.
    unsafe { widened::<Avx2>(ty, from, to, size) }
}

/// Packs panels of two vectors side by side, row by row: their type, the rows of all, the first panel and bytes from
/// panel to panel, how many rows and panels. They are there, and the machine has the instructions.
///
/// So rows of b are read along, where a panel alone would take a line of each.
pub(super) type PanelPair = unsafe fn(DType, Rows<*const u8>, Rows<*mut u8>, (usize, usize));

/// # Safety
/// As for [`PanelPair`].
#[inline(always)]
unsafe fn panels_of<S: Halves>(ty: DType, from: Rows<*const u8>, to: Rows<*mut u8>, (rows, panels): (usize, usize)) {
    let vector = S::N * ty.size();
    for row in 0..rows {
        let from = from.at.wrapping_offset(row as isize * from.step);
        let line = to.at.wrapping_add(row * 8 * S::N);
        for panel in 0..panels {
            let to = line.wrapping_offset(panel as isize * to.step).cast::<f32>();
            let from = from.wrapping_add(2 * panel * vector);
            // SAFETY: the caller's promise.
            unsafe {
                let [x, y] = [loaded::<S>(ty, from), loaded::<S>(ty, from.wrapping_add(vector))];
                S::store(to, x);
                S::store(to.wrapping_add(S::N), y);
            }
        }
    }
}

/// # Safety
/// As for [`PanelPair`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn side_narrow(ty: DType, from: Rows<*const u8>, to: Rows<*mut u8>, size: (usize, usize)) {
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            DType::F16 => panels_of::<Avx2>(DType::F16, from, to, size),
            DType::BF16 => panels_of::<Avx2>(DType::BF16, from, to, size),
            _ => panels_of::<Avx2>(DType::F32, from, to, size),
        }
    }
}
