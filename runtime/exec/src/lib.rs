//! What compiled kernels need while they run: the launch record, the arena, the threads and the status.
//!
//! Knows nothing of the compiler: a [`Kernel`] is two function pointers and what keeps them alive.

mod arena;
mod frame;
mod interrupt;
mod kernel;
pub mod machine;
pub mod matrix;
mod monitor;
mod pool;
mod print;
mod ranges;
mod vectors;

pub use arena::ARENA_ALIGN;
pub use interrupt::interruptible;
pub use kernel::{Failure, Kernel, KernelParts, LEAST_COLUMNS, LaunchArgs, LaunchError, TensorArg};
pub use pool::Pool;
pub use print::{PrintEvent, PrintValue};
pub use vectors::Vectors;
