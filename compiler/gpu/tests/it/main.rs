//! Kernels as PTX, executed by its interpreter, against the reference interpreter.

mod examples;
mod harness;
