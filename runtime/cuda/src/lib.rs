//! NVIDIA's driver: devices, modules of PTX, memory, launches, events.
//!
//! The driver's library is opened when [`Driver::open`] asks for it, so programs start on machines that have none, and
//! need no toolkit anywhere. Every failure is an [`Error`] with a code and a remedy.
//!
//! This crate calls functions of another library and holds addresses of another machine's memory; both stay inside it.

mod context;
mod driver;
mod error;
mod stream;
mod tensor_map;

pub use context::{Buffer, Context, Event, Function, LaunchConfig, Module};
pub use driver::Driver;
pub use error::{Code, Error};
pub use stream::{Stream, StreamBuffer};
pub use tensor_map::{Matrices, TensorMap};
