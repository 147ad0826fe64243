//! Products of every type and stride without vectors: the definition.

use super::{Job, Matrix};
use ptoc_tensor::DType;

/// A float of memory, exactly.
///
/// # Safety
/// It is there.
pub(super) unsafe fn float(ty: DType, at: *const u8) -> f32 {
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            DType::F16 => half::f16::from_bits(at.cast::<u16>().read_unaligned()).to_f32(),
            DType::BF16 => f32::from_bits(u32::from(at.cast::<u16>().read_unaligned()) << 16),
            _ => at.cast::<f32>().read_unaligned(),
        }
    }
}

/// An integer of memory.
unsafe fn int(ty: DType, at: *const u8) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            DType::I8 => i32::from(at.cast::<i8>().read()),
            DType::U8 | DType::Bool => i32::from(at.read()),
            DType::I16 => i32::from(at.cast::<i16>().read_unaligned()),
            DType::U16 => i32::from(at.cast::<u16>().read_unaligned()),
            _ => at.cast::<i32>().read_unaligned(),
        }
    }
}

unsafe fn put_float(ty: DType, at: *mut u8, x: f32) {
    // SAFETY: the caller's promise.
    unsafe {
        match ty {
            DType::F16 => at.cast::<u16>().write_unaligned(half::f16::from_f32(x).to_bits()),
            DType::BF16 => at.cast::<u16>().write_unaligned(half::bf16::from_f32(x).to_bits()),
            _ => at.cast::<f32>().write_unaligned(x),
        }
    }
}

unsafe fn put_int(ty: DType, at: *mut u8, x: i32) {
    // SAFETY: the caller's promise.
    unsafe {
        match ty.size() {
            1 => at.write(x as u8),
            2 => at.cast::<u16>().write_unaligned(x as u16),
            _ => at.cast::<i32>().write_unaligned(x),
        }
    }
}

/// The address of element (i, j).
pub(super) fn at(m: &Matrix<*const u8>, i: usize, j: usize) -> *const u8 {
    m.at.wrapping_offset(i as isize * m.row + j as isize * m.col)
}

pub(super) fn at_mut(m: &Matrix<*mut u8>, i: usize, j: usize) -> *mut u8 {
    m.at.wrapping_offset(i as isize * m.row + j as isize * m.col)
}

/// # Safety
/// As for the routine.
pub(super) unsafe fn product(job: &Job) {
    let is_float = matches!(job.ab, DType::F32 | DType::F16 | DType::BF16);
    let zero = job.start.at.is_null();
    for i in 0..job.m {
        for j in 0..job.n {
            let (start, d) = (at(&job.start, i, j), at_mut(&job.d, i, j));
            // SAFETY: the caller's promise.
            unsafe {
                if is_float {
                    let mut sum = if zero { 0.0 } else { float(job.start_ty, start) };
                    for p in 0..job.k {
                        sum = float(job.ab, at(&job.a, i, p)).mul_add(float(job.ab, at(&job.b, p, j)), sum);
                    }
                    put_float(job.d_ty, d, sum);
                } else {
                    let mut sum = if zero { 0 } else { int(job.start_ty, start) };
                    for p in 0..job.k {
                        let (x, y) = (int(job.ab, at(&job.a, i, p)), int(job.ab, at(&job.b, p, j)));
                        sum = sum.wrapping_add(x.wrapping_mul(y));
                    }
                    put_int(job.d_ty, d, sum);
                }
            }
        }
    }
}

/// The same product with a start whose columns are contiguous: if need be, d itself, to which the start is copied. All
/// types are four bytes wide.
///
/// # Safety
/// As for the routine.
pub(super) unsafe fn with_rows_of_start(job: Job) -> Job {
    if job.start.at.is_null() || job.start.col == 4 {
        return job;
    }
    for i in 0..job.m {
        for j in 0..job.n {
            // SAFETY: the caller's promise.
            unsafe {
                let word = at(&job.start, i, j).cast::<u32>().read_unaligned();
                at_mut(&job.d, i, j).cast::<u32>().write_unaligned(word);
            }
        }
    }
    let d = job.d;
    Job { start: Matrix { at: d.at, row: d.row, col: d.col }, ..job }
}
