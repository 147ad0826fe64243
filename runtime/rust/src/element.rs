//! Rust types of elements.

use half::{bf16, f16};
use ptoc_tensor::DType;

/// A type whose slices are arrays of one [`DType`].
///
/// # Safety
/// A value is as many bytes as the dtype has, none of them padding, and each value of the dtype is one of the type.
pub unsafe trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The dtype.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed {}
}

/// A float of 8 bits, OCP's E4M3, by its bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(transparent)]
pub struct F8E4M3(pub u8);

/// A float of 8 bits, OCP's E5M2, by its bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(transparent)]
pub struct F8E5M2(pub u8);

macro_rules! elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => {
        $(
            impl sealed::Sealed for $rust {}
            // SAFETY: the type is a number of as many bits, or a wrapper of one; a bool is a byte that is 0 or 1, and
            // kernels write no other.
            unsafe impl Element for $rust { const DTYPE: DType = DType::$dtype; }
        )*
    };
}

elements! {
    bool => Bool, i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64,
    f16 => F16, bf16 => BF16, f32 => F32, F8E4M3 => F8E4M3, F8E5M2 => F8E5M2,
}

/// The first byte of a slice.
pub(crate) fn start<T: Element>(slice: &[T]) -> *const u8 {
    slice.as_ptr().cast()
}

/// A tensor's bytes as elements, if they are of this type.
pub(crate) fn elements<T: Element>(dtype: DType, bytes: &[u8]) -> Option<&[T]> {
    let start: *const T = bytes.as_ptr().cast();
    let fits = dtype == T::DTYPE && start.is_aligned() && bytes.len().is_multiple_of(size_of::<T>());
    // SAFETY: the bytes are aligned elements of the dtype, which are values of the type.
    fits.then(|| unsafe { std::slice::from_raw_parts(start, bytes.len() / size_of::<T>()) })
}
