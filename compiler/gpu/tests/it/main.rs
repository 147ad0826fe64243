//! Kernels as PTX, executed by its interpreter: test lines of examples against the reference interpreter, and loop IR
//! against its evaluator, by the functions that the CPU's tests are made of.

mod barriers;
mod bundle;
mod bundles;
#[path = "../../../cpu/tests/it/by_hand.rs"]
mod by_hand;
mod examples;
mod failures;
#[path = "../../../cpu/tests/it/generate.rs"]
mod generate;
mod harness;
mod iterations;
mod joins;
mod make;
#[path = "../../../cpu/tests/it/products.rs"]
mod products;
mod property;
mod resident;
#[path = "../../../cpu/tests/it/scalars.rs"]
mod scalars;
#[path = "../../../cpu/tests/it/sorts.rs"]
mod sorts;
