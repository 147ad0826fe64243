//! Tensor maps: how bulk copies find a box of a matrix in memory.

use crate::context::Context;
use crate::error::Error;
use std::ffi::{c_int, c_uint, c_void};

/// `CU_TENSOR_MAP_DATA_TYPE_UINT16`: bulk copies move bits.
const HALVES: c_int = 1;
/// `CU_TENSOR_MAP_DATA_TYPE_TFLOAT32`: words of f32 become TF32 on their way.
const TF32: c_int = 11;
/// `CU_TENSOR_MAP_SWIZZLE_32B`, `_64B` and `_128B`, for boxes whose rows have so many bytes.
const SWIZZLES: [(u32, c_int); 3] = [(32, 1), (64, 2), (128, 3)];
/// `CU_TENSOR_MAP_L2_PROMOTION_L2_256B`
const PROMOTION_256: c_int = 3;

/// Matrices of 16-bit elements, or of f32 that become TF32, and a box of one whose rows are 32, 64 or 128 bytes,
/// swizzled by as many in shared memory. What lies beyond a matrix is zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matrices {
    /// Elements are f32, and rounded to TF32.
    pub tf32: bool,
    /// The address of the first element.
    pub base: u64,
    /// Elements of a row, rows, and matrices along up to three dimensions.
    pub dims: Vec<u64>,
    /// Bytes from row to row, and from matrix to matrix: one less than dimensions.
    pub strides: Vec<u64>,
    /// What a box has along each dimension.
    pub tile: Vec<u32>,
}

/// A tensor map, as a kernel takes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C, align(64))]
pub struct TensorMap([u64; 16]);

impl Context<'_> {
    /// The tensor map of matrices.
    ///
    /// # Errors
    /// What the driver says: of an address or a stride that is no multiple of 16 bytes, among others.
    pub fn tensor_map(&self, m: &Matrices) -> Result<TensorMap, Error> {
        let mut map = TensorMap([0; 16]);
        let rank = m.dims.len();
        let bytes = m.tile[0] * if m.tf32 { 4 } else { 2 };
        let swizzle = SWIZZLES.iter().find(|(wide, _)| *wide == bytes).map(|(_, swizzle)| *swizzle);
        let swizzle = swizzle.unwrap_or_else(|| panic!("rows of {bytes} bytes: {m:?}"));
        assert!((2..=5).contains(&rank) && m.strides.len() + 1 == rank && m.tile.len() == rank, "{m:?}");
        let ones: [c_uint; 5] = [1; 5];
        let base: *mut c_void = std::ptr::without_provenance_mut(m.base as usize);
        // SAFETY: all pointers are to live arrays of as many numbers as the rank asks for; the driver writes 128 bytes,
        // and does not look at the device's memory.
        let result = unsafe {
            (self.driver.f.tensor_map)(
                (&raw mut map).cast(),
                if m.tf32 { TF32 } else { HALVES },
                rank as c_uint,
                base,
                m.dims.as_ptr(),
                m.strides.as_ptr(),
                m.tile.as_ptr(),
                ones.as_ptr(),
                0,
                swizzle,
                PROMOTION_256,
                0,
            )
        };
        self.driver.check(result, "cuTensorMapEncodeTiled")?;
        Ok(map)
    }
}
