//! Cranelift's code against the evaluator of loop IR.

mod edges;
mod generate;
mod launch;
mod listings;
mod make;
mod nests;
mod past;
mod products;
mod property;
mod scalars;
mod steps;
