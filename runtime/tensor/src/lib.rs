//! Dtypes, their arithmetic and conversions, tensors and `.npy` files. A leaf: depends on nothing of ours.

mod dtype;

pub use dtype::DType;
