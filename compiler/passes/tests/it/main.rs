//! Tests of the passes, most of them against the interpreter.

mod harness;
mod init;
mod lowering;
mod memory;
mod nests;
mod placement;
mod products;
mod scalars;
mod shapes;
