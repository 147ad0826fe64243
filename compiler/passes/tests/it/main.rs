//! Tests of the passes, most of them against the interpreter.

mod harness;
mod lowering;
mod init;
mod memory;
mod placement;
mod scalars;
