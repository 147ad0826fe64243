//! Dtypes, their arithmetic and conversions, tensors and `.npy` files. A leaf: depends on nothing of ours.
//!
//! A scalar of any dtype travels as its raw bits in a `u64`, zero-extended ([`scalar`]); a [`Tensor`] is C-order
//! little-endian elements in 64-byte aligned storage. Whoever needs text, files or random data starts from those two.

mod compare;
mod dtype;
mod element;
pub mod ex2;
pub mod matrix_unit;
pub mod memory;
pub mod npy;
mod pages;
mod random;
pub mod scalar;
mod tensor;

pub use compare::{Mismatch, Stats, ValueMismatch, compare, compare_f64};
pub use dtype::DType;
pub use element::Element;
pub use random::{Random, random, random_in, random_permutation, sorted_lines};
pub use tensor::{MAX_BYTES_BITS, Tensor, TensorError};

// Tensors are little-endian bytes that typed slices and compiled kernels view in place.
#[cfg(not(target_endian = "little"))]
compile_error!("ptoc needs a little-endian host");
