//! Calls of compiled code.

use ptoc_abi::{EntryFn, Frame};

/// Calls `entry` with clean upper vector halves: compiled code holds legacy SSE instructions, which are up to 6.8 times
/// slower while the upper halves of the ZMM registers are dirty.
///
/// # Safety
/// `entry` must be compiled code that is still mapped, and `frame` what that code expects (see [`Frame`]).
#[inline]
pub(crate) unsafe fn enter(entry: EntryFn, frame: &Frame) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        /// # Safety
        /// The CPU has AVX.
        #[target_feature(enable = "avx")]
        unsafe fn clean_upper_halves() {
            std::arch::x86_64::_mm256_zeroupper();
        }
        if std::arch::is_x86_feature_detected!("avx") {
            // SAFETY: AVX was just detected; the instruction touches only halves that the System V and Windows calling
            // conventions leave to the callee.
            unsafe { clean_upper_halves() };
        }
    }
    // SAFETY: the caller's promise.
    unsafe { entry(frame) }
}
