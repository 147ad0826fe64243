//! The tensor: a dtype, a shape, and C-order little-endian elements in aligned storage.

use crate::npy::NpyError;
use crate::pages::{self, Line};
use crate::{DType, Element, scalar};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::Read;
use std::ptr::NonNull;
use std::slice;

/// Why a tensor cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The byte count leaves the address range.
    #[error("a tensor {dtype}{shape:?} is too large to address")]
    TooLarge {
        /// Element type.
        dtype: DType,
        /// The shape asked for.
        shape: Vec<usize>,
    },
    /// The allocator refused.
    #[error("a tensor {dtype}{shape:?} needs {bytes} bytes, more than there is memory for")]
    OutOfMemory {
        /// Element type.
        dtype: DType,
        /// The shape asked for.
        shape: Vec<usize>,
        /// Its data bytes.
        bytes: usize,
    },
    /// The data given do not have the length that the shape demands.
    #[error("a tensor {dtype}{shape:?} has {want} elements, but {got} were given")]
    Length {
        /// Element type.
        dtype: DType,
        /// The shape asked for.
        shape: Vec<usize>,
        /// Elements that the shape has.
        want: usize,
        /// Elements given.
        got: usize,
    },
    /// A range of random values holds no value of the dtype.
    #[error("the range [{lo}, {hi}) holds no value of {dtype}")]
    EmptyRange {
        /// Element type.
        dtype: DType,
        /// First value.
        lo: i128,
        /// One past the last value.
        hi: i128,
    },
}

impl TensorError {
    /// The diagnostic code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            TensorError::TooLarge { .. } | TensorError::OutOfMemory { .. } => "E0708",
            TensorError::Length { .. } => "E0709",
            TensorError::EmptyRange { .. } => "E0710",
        }
    }
}

/// A dense tensor. Equality is equality of dtype, shape and bits.
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    len: usize,
    data: Elements,
}

/// Where the elements are.
enum Elements {
    /// In lines of the tensor's own.
    Own(Vec<Line>),
    /// In memory of someone else's, from here on.
    Lent(NonNull<u8>),
}

// SAFETY: lines are plain bytes, and what is lent may be used from any thread by the promise that was made to
// `Tensor::lent`. Shared access only reads.
unsafe impl Send for Elements {}
// SAFETY: as above.
unsafe impl Sync for Elements {}

/// The bytes of a tensor, empty extents counted as 1, are below 2 to this power: no machine addresses more, and the
/// compiler relies on it where it proves that products of extents do not overflow.
pub const MAX_BYTES_BITS: u32 = 48;

/// Elements of `shape`, or `None` if the bytes of the non-zero extents reach 2^[`MAX_BYTES_BITS`].
///
/// Zero extents are left out of the product, so that strides of an accepted shape never overflow either.
pub(crate) fn element_count(dtype: DType, shape: &[usize]) -> Option<usize> {
    let extents = shape.iter().copied().filter(|&extent| extent != 0);
    let product = extents.into_iter().try_fold(dtype.size() as u64, |bytes, n| bytes.checked_mul(n as u64))?;
    if product >> MAX_BYTES_BITS != 0 {
        return None;
    }
    let product = usize::try_from(product).ok()?;
    Some(if shape.contains(&0) { 0 } else { product / dtype.size() })
}

impl Clone for Tensor {
    fn clone(&self) -> Tensor {
        let data = match &self.data {
            Elements::Own(lines) => pages::copied(lines),
            Elements::Lent(_) => {
                let mut lines = vec![Line([0; 64]); self.bytes().len().div_ceil(64)];
                bytemuck::cast_slice_mut(&mut lines)[..self.bytes().len()].copy_from_slice(self.bytes());
                lines
            }
        };
        Tensor { dtype: self.dtype, shape: self.shape.clone(), len: self.len, data: Elements::Own(data) }
    }
}

impl Tensor {
    /// All bits zero.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Tensor, TensorError> {
        let Some(len) = element_count(dtype, shape) else {
            return Err(TensorError::TooLarge { dtype, shape: shape.to_vec() });
        };
        let bytes = len * dtype.size();
        let data = pages::zeroed(bytes.div_ceil(64)).ok_or_else(|| TensorError::OutOfMemory {
            dtype,
            shape: shape.to_vec(),
            bytes,
        })?;
        Ok(Tensor { dtype, shape: shape.to_vec(), len, data: Elements::Own(data) })
    }

    /// A tensor whose elements are in memory of the caller's, in C order. It is not copied, and not freed either; a
    /// clone has memory of its own. Its first byte need not be at a cache line, only at a multiple of the element's
    /// size.
    ///
    /// # Safety
    /// As long as the tensor lives, the bytes of `shape` from `data` on are valid for reads, and for writes if anyone
    /// writes through [`Tensor::bytes_mut`] or [`Tensor::as_mut_ptr`]; nothing else writes them, or reads them while
    /// they are written; they may be used from any thread. A bool is 0 or 1.
    pub unsafe fn lent(dtype: DType, shape: &[usize], data: *mut u8) -> Result<Tensor, TensorError> {
        let Some(len) = element_count(dtype, shape) else {
            return Err(TensorError::TooLarge { dtype, shape: shape.to_vec() });
        };
        let nothing = NonNull::<Line>::dangling().cast();
        let data = if len == 0 { nothing } else { NonNull::new(data).unwrap_or(nothing) };
        Ok(Tensor { dtype, shape: shape.to_vec(), len, data: Elements::Lent(data) })
    }

    /// Every element has the raw bits `bits`.
    pub fn filled(dtype: DType, shape: &[usize], bits: u64) -> Result<Tensor, TensorError> {
        let mut tensor = Tensor::zeros(dtype, shape)?;
        let element = &bits.to_le_bytes()[..dtype.size()];
        if element.iter().any(|&byte| byte != 0) {
            tensor.bytes_mut().chunks_exact_mut(dtype.size()).for_each(|chunk| chunk.copy_from_slice(element));
        }
        Ok(tensor)
    }

    /// Element `i` has the raw bits `bits(i)`.
    pub fn from_fn(dtype: DType, shape: &[usize], mut bits: impl FnMut(usize) -> u64) -> Result<Tensor, TensorError> {
        let mut tensor = Tensor::zeros(dtype, shape)?;
        (0..tensor.len).for_each(|i| tensor.set_bits(i, bits(i)));
        Ok(tensor)
    }

    /// Element `i` is `values[i]`, rounded to `dtype` once.
    pub fn from_f64s(dtype: DType, shape: &[usize], values: &[f64]) -> Result<Tensor, TensorError> {
        check_length(dtype, shape, values.len())?;
        Tensor::from_fn(dtype, shape, |i| scalar::bits_from_f64(dtype, values[i]))
    }

    /// A copy of `values`.
    pub fn from_slice<T: Element>(shape: &[usize], values: &[T]) -> Result<Tensor, TensorError> {
        check_length(T::DTYPE, shape, values.len())?;
        let mut tensor = Tensor::zeros(T::DTYPE, shape)?;
        tensor.bytes_mut().copy_from_slice(bytemuck::cast_slice(values));
        Ok(tensor)
    }

    /// A copy of C-order little-endian bytes.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Tensor, TensorError> {
        let elements = bytes.len().div_ceil(dtype.size());
        check_length(dtype, shape, elements)?;
        if elements * dtype.size() != bytes.len() {
            let got = bytes.len() / dtype.size();
            return Err(TensorError::Length { dtype, shape: shape.to_vec(), want: elements, got });
        }
        let mut tensor = Tensor::zeros(dtype, shape)?;
        tensor.bytes_mut().copy_from_slice(bytes);
        Ok(tensor)
    }

    /// The elements as they come from a source of bytes. One that ends early gives no tensor but how many bytes came.
    pub(crate) fn filled_from(
        dtype: DType,
        shape: &[usize],
        source: &mut impl Read,
    ) -> Result<Result<Tensor, usize>, NpyError> {
        let Some(len) = element_count(dtype, shape) else {
            return Err(TensorError::TooLarge { dtype, shape: shape.to_vec() }.into());
        };
        let bytes = len * dtype.size();
        let (data, found) = pages::filled_from(bytes, source)?.ok_or_else(|| TensorError::OutOfMemory {
            dtype,
            shape: shape.to_vec(),
            bytes,
        })?;
        Ok(if found < bytes {
            Err(found)
        } else {
            Ok(Tensor { dtype, shape: shape.to_vec(), len, data: Elements::Own(data) })
        })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents, slowest first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements, C-order and little-endian. The first byte is 64-byte aligned, unless it is someone else's.
    pub fn bytes(&self) -> &[u8] {
        let length = self.len * self.dtype.size();
        match &self.data {
            Elements::Own(lines) => &bytemuck::cast_slice(lines)[..length],
            // SAFETY: whoever called `Tensor::lent` has promised so many bytes.
            Elements::Lent(data) => unsafe { slice::from_raw_parts(data.as_ptr(), length) },
        }
    }

    /// The elements, to be changed. A bool is 0 or 1 and nothing else.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let length = self.len * self.dtype.size();
        match &mut self.data {
            Elements::Own(lines) => &mut bytemuck::cast_slice_mut(lines)[..length],
            // SAFETY: whoever called `Tensor::lent` has promised so many bytes, which nobody else uses now.
            Elements::Lent(data) => unsafe { slice::from_raw_parts_mut(data.as_ptr(), length) },
        }
    }

    /// Where the elements are, for code that keeps the rules of memory by itself.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        match &mut self.data {
            Elements::Own(lines) => lines.as_mut_ptr().cast(),
            Elements::Lent(data) => data.as_ptr(),
        }
    }

    /// The elements as Rust values; `None` if `T` does not stand for this dtype.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        (T::DTYPE == self.dtype).then(|| bytemuck::cast_slice(self.bytes()))
    }

    /// The elements as Rust values, to be changed; `None` if `T` does not stand for this dtype.
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        if T::DTYPE == self.dtype { Some(bytemuck::cast_slice_mut(self.bytes_mut())) } else { None }
    }

    /// Raw bits of element `i`, zero-extended. Panics if `i >= len`, as all element access does.
    pub fn get_bits(&self, i: usize) -> u64 {
        let size = self.dtype.size();
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&self.bytes()[i * size..][..size]);
        u64::from_le_bytes(bytes)
    }

    /// Sets the raw bits of element `i`; bits above the dtype's width are ignored.
    pub fn set_bits(&mut self, i: usize, bits: u64) {
        let size = self.dtype.size();
        self.bytes_mut()[i * size..][..size].copy_from_slice(&bits.to_le_bytes()[..size]);
    }

    /// Element `i` as f64: see [`scalar::bits_to_f64`].
    pub fn get_f64(&self, i: usize) -> f64 {
        scalar::bits_to_f64(self.dtype, self.get_bits(i))
    }

    /// Sets element `i` to `value` rounded once: see [`scalar::bits_from_f64`].
    pub fn set_f64(&mut self, i: usize, value: f64) {
        self.set_bits(i, scalar::bits_from_f64(self.dtype, value));
    }

    /// Element `i` as an integer: see [`scalar::bits_to_i128`].
    pub fn get_i128(&self, i: usize) -> i128 {
        scalar::bits_to_i128(self.dtype, self.get_bits(i))
    }

    /// Sets element `i` to `value`, wrapped or rounded: see [`scalar::bits_from_i128`].
    pub fn set_i128(&mut self, i: usize, value: i128) {
        self.set_bits(i, scalar::bits_from_i128(self.dtype, value));
    }

    /// Every element as f64.
    pub fn to_f64s(&self) -> Vec<f64> {
        (0..self.len).map(|i| self.get_f64(i)).collect()
    }

    /// Element number of a coordinate; `None` if the rank differs or an index is out of range.
    pub fn offset(&self, index: &[usize]) -> Option<usize> {
        if index.len() != self.shape.len() {
            return None;
        }
        index.iter().zip(&self.shape).try_fold(0, |at, (&i, &extent)| (i < extent).then(|| at * extent + i))
    }

    /// The coordinate of element number `i`.
    pub fn unravel(&self, i: usize) -> Vec<usize> {
        unravel(&self.shape, i)
    }

    /// Every element converted to `dtype`: see [`scalar::convert_bits`].
    pub fn cast(&self, dtype: DType) -> Result<Tensor, TensorError> {
        Tensor::from_fn(dtype, &self.shape, |i| scalar::convert_bits(self.dtype, dtype, self.get_bits(i)))
    }

    /// The same elements in another shape of as many.
    pub fn reshaped(mut self, shape: &[usize]) -> Result<Tensor, TensorError> {
        check_length(self.dtype, shape, self.len)?;
        self.shape = shape.to_vec();
        Ok(self)
    }

    /// SHA-256 of [`Tensor::bytes`], in lower-case hexadecimal.
    pub fn sha256(&self) -> String {
        Sha256::digest(self.bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Dtype and shape as the language spells them: `f32[128, 64]`.
    pub fn signature(&self) -> String {
        format!("{}{:?}", self.dtype, self.shape)
    }
}

/// The coordinate of element number `i` of a C-order `shape`.
pub(crate) fn unravel(shape: &[usize], mut i: usize) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (at, &extent) in index.iter_mut().zip(shape).rev() {
        *at = i % extent.max(1);
        i /= extent.max(1);
    }
    index
}

fn check_length(dtype: DType, shape: &[usize], got: usize) -> Result<(), TensorError> {
    match element_count(dtype, shape) {
        None => Err(TensorError::TooLarge { dtype, shape: shape.to_vec() }),
        Some(want) if want != got => Err(TensorError::Length { dtype, shape: shape.to_vec(), want, got }),
        Some(_) => Ok(()),
    }
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Tensor) -> bool {
        self.dtype == other.dtype && self.shape == other.shape && self.bytes() == other.bytes()
    }
}

impl Eq for Tensor {}

impl fmt::Debug for Tensor {
    /// The signature and the first elements.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 16;
        let shown = (0..self.len.min(SHOWN)).map(|i| scalar::format_bits(self.dtype, self.get_bits(i)));
        let more = if self.len > SHOWN { ", ..." } else { "" };
        write!(f, "{} {{{}{more}}}", self.signature(), shown.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_is_aligned_and_zero_sizes_work() {
        for shape in [&[][..], &[0], &[3, 0, 5], &[7, 9]] {
            for dtype in DType::ALL {
                let tensor = Tensor::zeros(dtype, shape).unwrap();
                assert_eq!(tensor.bytes().as_ptr() as usize % 64, 0);
                assert_eq!(tensor.len(), shape.iter().product::<usize>());
                assert_eq!(tensor.bytes().len(), tensor.len() * dtype.size());
            }
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_errors() {
        let huge = [usize::MAX / 2, 3];
        assert_eq!(
            Tensor::zeros(DType::F32, &huge),
            Err(TensorError::TooLarge { dtype: DType::F32, shape: huge.to_vec() })
        );
        // The zero extent does not excuse the others: their strides would overflow.
        assert!(Tensor::zeros(DType::U8, &[0, usize::MAX, 2]).is_err());
        assert!(matches!(Tensor::zeros(DType::U8, &[1 << 47]), Err(TensorError::OutOfMemory { .. })));
        assert!(Tensor::from_f64s(DType::F32, &[2, 2], &[1.0; 3]).is_err());
        assert!(Tensor::from_bytes(DType::F32, &[1], &[0; 3]).is_err());
        assert!(Tensor::from_bytes(DType::F32, &[1], &[0; 5]).is_err());
    }

    #[test]
    fn elements_in_every_view() {
        let mut tensor = Tensor::filled(DType::I16, &[2, 3], 0xfffe).unwrap();
        assert_eq!(tensor.as_slice::<i16>().unwrap(), [-2; 6]);
        assert!(tensor.as_slice::<u16>().is_none());
        tensor.set_i128(5, 70000);
        assert_eq!(tensor.get_i128(5), 70000 - 65536);
        tensor.set_f64(0, 1e9);
        assert_eq!(tensor.get_f64(0), 32767.0);
        tensor.as_mut_slice::<i16>().unwrap()[1] = 7;
        assert_eq!(tensor.get_bits(1), 7);
        assert_eq!(tensor.offset(&[1, 2]), Some(5));
        assert_eq!(tensor.offset(&[1, 3]), None);
        assert_eq!(tensor.offset(&[1]), None);
        assert_eq!(tensor.unravel(5), [1, 2]);
        assert_eq!(format!("{tensor:?}"), "i16[2, 3] {32767, 7, -2, -2, -2, 4464}");
        assert_eq!(tensor.cast(DType::U8).unwrap().to_f64s(), [255.0, 7.0, 254.0, 254.0, 254.0, 112.0]);
        assert_eq!(tensor.reshaped(&[6]).unwrap().signature(), "i16[6]");
    }

    #[test]
    fn lent_memory_is_used_in_place() {
        let mut memory = [1u16, 2, 3, 4, 5, 6];
        let at = memory[1..].as_mut_ptr().cast::<u8>();
        // SAFETY: `memory` outlives the tensor, which alone uses it until then.
        let mut lent = unsafe { Tensor::lent(DType::U16, &[2, 2], at) }.unwrap();
        assert_eq!(lent.bytes().as_ptr(), at.cast_const());
        assert_eq!(lent.as_slice::<u16>().unwrap(), [2, 3, 4, 5]);
        lent.set_bits(3, 9);
        let copy = lent.clone();
        assert_ne!(copy.bytes().as_ptr(), at.cast_const());
        assert_eq!(copy, lent);
        drop(lent);
        assert_eq!(memory, [1, 2, 3, 4, 9, 6]);
        // SAFETY: no byte is used.
        let empty = unsafe { Tensor::lent(DType::F32, &[0, 3], std::ptr::null_mut()) }.unwrap();
        assert!(empty.bytes().is_empty());
        // SAFETY: it is refused.
        assert!(unsafe { Tensor::lent(DType::F32, &[1 << 46], std::ptr::null_mut()) }.is_err());
    }

    #[test]
    fn sha256_is_over_the_data_bytes() {
        let empty = Tensor::zeros(DType::F32, &[0]).unwrap();
        assert_eq!(empty.sha256(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let abc = Tensor::from_slice(&[3], b"abc").unwrap();
        assert_eq!(abc.sha256(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
