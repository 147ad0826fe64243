//! Tests of the passes, most of them against the interpreter.

mod harness;
mod lowering;
mod memory;
mod scalars;
