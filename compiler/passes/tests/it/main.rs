//! Tests of the passes, most of them against the interpreter.

mod bytes;
mod chains;
mod copies;
mod cuts;
mod harness;
mod hazards;
mod init;
mod lowering;
mod memory;
mod nests;
mod packing;
mod partial;
mod placement;
mod points;
mod products;
mod scalars;
mod shapes;
