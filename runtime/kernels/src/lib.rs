//! Routines that are compiled ahead of time, at the machine's full vector width, and called by emitted code: matrix
//! products, reductions, scans, moves with strides, gathers, sorts.
//!
//! Cranelift's vectors are 128 bits wide and know nothing of half precision; these few bodies make up for it. They need
//! no time to compile, and their results are bit for bit those of the code that is emitted where a machine lacks the
//! instructions: each element has the same roundings in the same order.
//!
//! All take i64 only (addresses too) and give nothing, or one i64. What they are asked for here is their addresses,
//! since who calls them has no types.

#![allow(clippy::undocumented_unsafe_blocks, reason = "what a routine's caller promises is said once, at the routine")]

mod gather;
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, unused_imports, unused_variables, reason = "only its plain version is reached there")
)]
mod gemm;
mod halves;
mod located;
mod reduce;
mod rows;
mod scans;
mod simd;
mod sorts;
mod strided;
#[cfg(target_arch = "x86_64")]
mod transpose_avx2;
#[cfg(target_arch = "x86_64")]
mod transpose_avx512;
mod unrolled;

pub use gather::mode;
pub use gemm::{PARAMS as PRODUCT_PARAMS, Units, scratch, second_level, types};
pub use halves::{from_f16, to_f16};
pub use reduce::{ReduceOp, reduce};
pub use scans::scan;

/// Rows of elements: the first one, and bytes from row to row.
#[derive(Clone, Copy)]
struct Rows<P> {
    at: P,
    step: isize,
}

/// Bytes of a cache's line.
pub const LINE: usize = 64;

/// Whether the machine has vectors wider than Cranelift's.
pub fn wide() -> bool {
    gemm::wide()
}

/// Copies rows of bytes: destination, source, rows, bytes of a row, bytes from row to row of both, whether past the
/// caches.
pub fn copy() -> *const u8 {
    rows::copy as *const u8
}

/// Moves elements of 1, 2, 4 or 8 bytes: destination, source, rows, columns, bytes from row to row of both, from column
/// to column of both, whether past the caches.
pub fn strided(size: u32) -> Option<*const u8> {
    Some(match size {
        1 => strided::move_1 as *const u8,
        2 => strided::move_2 as *const u8,
        4 => strided::move_4 as *const u8,
        8 => strided::move_8 as *const u8,
        _ => return None,
    })
}

/// Gathers elements of 1, 2, 4 or 8 bytes of a table (`gather.rs`).
pub fn gather(size: u32) -> Option<*const u8> {
    Some(match size {
        1 => gather::gather_1 as *const u8,
        2 => gather::gather_2 as *const u8,
        4 => gather::gather_4 as *const u8,
        8 => gather::gather_8 as *const u8,
        _ => return None,
    })
}

/// Gathers rows, which may stay in the table (`located.rs`).
pub fn locate(size: u32) -> Option<*const u8> {
    Some(match size {
        1 => located::locate_1 as *const u8,
        2 => located::locate_2 as *const u8,
        4 => located::locate_4 as *const u8,
        8 => located::locate_8 as *const u8,
        _ => return None,
    })
}

/// Sorts lists of records with f32 or, of `half` values, f16 (`sorts.rs`).
pub fn sort(half: bool) -> *const u8 {
    if half { sorts::sort_f16 as *const u8 } else { sorts::sort_f32 as *const u8 }
}

/// Merges four lists of such records.
pub fn merge(half: bool) -> *const u8 {
    if half { sorts::merge_f16 as *const u8 } else { sorts::merge_f32 as *const u8 }
}

/// Merges neighbouring lists of such records, each four of them.
pub fn merge_runs(half: bool) -> *const u8 {
    if half { sorts::runs_f16 as *const u8 } else { sorts::runs_f32 as *const u8 }
}

/// The matrix product (`gemm/mod.rs` has its parameters).
pub fn product() -> *const u8 {
    gemm::product as *const u8
}
