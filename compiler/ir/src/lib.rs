//! Tile IR and loop IR, each with its text form and verifier, and the analyses of integers that passes share.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod cells;
pub mod formula;
pub mod indexed;
pub mod loops;
pub mod oracle;
pub mod scalar;
pub mod sync;
pub mod tile;
