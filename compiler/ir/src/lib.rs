//! Tile IR with its text form, verifier, the reference interpreter and the sanitizer of machine code; loop IR with its
//! text form and verifier.

pub mod cells;
pub mod cost;
pub mod facts;
pub mod formula;
pub mod indexed;
pub mod interp;
pub mod loops;
pub mod oracle;
pub mod ranges;
pub mod sanitize;
pub mod scalar;
pub mod sync;
pub mod tile;
