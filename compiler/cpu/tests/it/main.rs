//! Cranelift's code against the evaluator of loop IR.

#![allow(clippy::undocumented_unsafe_blocks, reason = "kernels of tests, launched on arrays of theirs")]

mod by_hand;
mod edges;
mod endings;
mod gaps;
mod generate;
mod launch;
mod listings;
mod make;
mod nests;
mod nibbles;
mod non_temporal;
mod products;
mod property;
mod scalars;
mod scans;
mod sorts;
mod steps;
