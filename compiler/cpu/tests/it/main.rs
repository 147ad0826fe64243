//! Cranelift's code against the evaluator of loop IR.

mod generate;
mod make;
mod property;
mod scalars;
