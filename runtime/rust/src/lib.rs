#![doc = include_str!("../README.md")]

mod element;
mod error;
mod kernel;
mod launch;
mod module;
mod view;

pub use element::{Element, F8E4M3, F8E5M2};
pub use error::Error;
pub use half;
pub use kernel::Kernel;
pub use launch::{Array, Launch, Outputs};
pub use module::{Module, Options};
pub use ptoc_driver::launch::Verified;
pub use ptoc_driver::library::{Report, Scalar};
pub use ptoc_tensor::DType;
pub use view::{View, ViewMut};
