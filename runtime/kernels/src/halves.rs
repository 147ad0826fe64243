//! Conversions between f16 and f32 by the machine's instructions, which round to nearest even, keep subnormals and
//! the sign and leading payload of a NaN, and make it quiet: as the emitted sequence of integer instructions does.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// f16 to f32, if the machine has an instruction for it.
pub fn from_f16() -> Option<*const u8> {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx") && std::is_x86_feature_detected!("f16c") {
        return Some(from_f16_f16c as *const u8);
    }
    None
}

/// f32 to f16.
pub fn to_f16() -> Option<*const u8> {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx") && std::is_x86_feature_detected!("f16c") {
        return Some(to_f16_f16c as *const u8);
    }
    None
}

/// # Safety
/// The machine has AVX and F16C; both matrices are in memory and do not overlap.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx,f16c")]
unsafe extern "C" fn from_f16_f16c(dst: *mut u8, src: *const u8, rows: i64, cols: i64, dst_step: i64, src_step: i64) {
    // SAFETY: see above; a row has `cols` elements, and the last few go by way of a buffer.
    unsafe {
        for row in 0..rows as isize {
            let to = dst.offset(row * dst_step as isize).cast::<f32>();
            let from = src.offset(row * src_step as isize).cast::<u16>();
            let mut col = 0;
            while col + 8 <= cols as isize {
                let halves = _mm_loadu_si128(from.offset(col).cast());
                _mm256_storeu_ps(to.offset(col), _mm256_cvtph_ps(halves));
                col += 8;
            }
            if col < cols as isize {
                let count = cols as usize - col as usize;
                let (mut few, mut wide) = ([0u16; 8], [0f32; 8]);
                std::ptr::copy_nonoverlapping(from.offset(col).cast::<u8>(), few.as_mut_ptr().cast(), 2 * count);
                let halves = _mm_loadu_si128(few.as_ptr().cast());
                _mm256_storeu_ps(wide.as_mut_ptr(), _mm256_cvtph_ps(halves));
                std::ptr::copy_nonoverlapping(wide.as_ptr().cast::<u8>(), to.offset(col).cast(), 4 * count);
            }
        }
    }
}

/// # Safety
/// As `from_f16_f16c`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx,f16c")]
unsafe extern "C" fn to_f16_f16c(dst: *mut u8, src: *const u8, rows: i64, cols: i64, dst_step: i64, src_step: i64) {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT;
    // SAFETY: see above.
    unsafe {
        for row in 0..rows as isize {
            let to = dst.offset(row * dst_step as isize).cast::<u16>();
            let from = src.offset(row * src_step as isize).cast::<f32>();
            let mut col = 0;
            while col + 8 <= cols as isize {
                let halves = _mm256_cvtps_ph::<NEAREST>(_mm256_loadu_ps(from.offset(col)));
                _mm_storeu_si128(to.offset(col).cast(), halves);
                col += 8;
            }
            if col < cols as isize {
                let count = cols as usize - col as usize;
                let (mut few, mut narrow) = ([0f32; 8], [0u16; 8]);
                std::ptr::copy_nonoverlapping(from.offset(col).cast::<u8>(), few.as_mut_ptr().cast(), 4 * count);
                let halves = _mm256_cvtps_ph::<NEAREST>(_mm256_loadu_ps(few.as_ptr()));
                _mm_storeu_si128(narrow.as_mut_ptr().cast(), halves);
                std::ptr::copy_nonoverlapping(narrow.as_ptr().cast::<u8>(), to.offset(col).cast(), 2 * count);
            }
        }
    }
}
