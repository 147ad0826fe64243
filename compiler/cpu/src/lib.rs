//! Loop IR to machine code by Cranelift, and loop nests at full vector width (`wide`).
//!
//! [`compile`] turns a loop-IR module into a [`CompiledKernel`]: the launch function and the block function as machine
//! code behind the ABI of `ptoc-exec`. Code is trusted with memory: the loop IR must stay inside the tensors' bytes.

mod analyse;
mod codegen;
mod contract;
mod effects;
mod ending;
mod func;
mod half;
mod host;
mod jit;
pub mod jitdump;
mod lanes;
mod launch_invariant;
mod link;
pub mod listing;
mod memory;
mod nest;
mod nest_emit;
pub mod object;
mod ops;
mod output;
mod routines;
mod scan;
mod shape;
mod stored;
mod wide;

pub use jit::{CompiledKernel, KernelText, Options, available, compile, compile_or_load};
pub use ptoc_exec::Vectors;
pub use stored::CodeStore;
