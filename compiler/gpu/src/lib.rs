//! Loop IR to PTX for NVIDIA Hopper, one thread a lane.
//!
//! A block of the grid is the work of a CTA; CTAs are persistent and take blocks with a fixed stride, in the order of
//! the kernel's raster. Scalars are computed by every thread alike. `Lanes` are spread over the threads; what one
//! thread stores and another may load is ordered by a barrier, which stands only where two statements touch the same
//! memory. Tiles are in shared memory as far as it goes, and else in memory of the device that belongs to the CTA.
//!
//! Results have the interpreter's bits: every operation is the one of loop IR, rounded as it says, in its order. What
//! has no translation is a [`Refused`] with a code, never something else.

mod abi;
mod allocation;
mod atomics;
mod bounds;
mod control;
mod demand;
mod dependences;
mod division;
mod emit;
mod exponents;
mod fragments;
mod gather;
mod gemm;
mod iterations;
mod lanes;
mod memory;
mod merges;
mod nests;
mod ops;
mod pipeline;
mod products;
mod raster;
mod reduce;
mod resident;
mod row_pointers;
mod rows;
mod segments;
mod single_thread;
mod sorts;
mod staged;
mod threads;
mod transpose;
mod unsupported;
mod vectors;

pub use abi::{Abi, Arguments, NO_FAILURE, extents};
pub use allocation::MOST_SHARED;
pub use emit::{Compiled, Options, compile};
pub use fragments::ArrayMap;
pub use gemm::{GemmAbi, HALVES, Major, Obstacle, OperandSide, compile_kernel};
pub use pipeline::GPU_PASSES;
pub use unsupported::{RefusalCode, Refused};
