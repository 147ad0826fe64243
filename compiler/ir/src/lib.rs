//! Tile IR with its text form, verifier and the reference interpreter; loop IR with its text form and verifier.

pub mod cells;
pub mod cost;
pub mod facts;
pub mod formula;
pub mod interp;
pub mod loops;
pub mod oracle;
pub mod ranges;
pub mod scalar;
pub mod sync;
pub mod tile;
