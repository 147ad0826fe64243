//! What is said to processing units in memory: the words that a compiler writes and a simulator reads. A leaf; neither knows the
//! other.
//!
//! * [`driver`]: LOAD, EXECUTE and READ, 44 bytes each on the wire, and what a sequence of them must satisfy.
//! * [`register`]: the parameter register of a GeoPIM unit, 256 bits.
//! * [`crf`]: the instruction words of an HBM-PIM unit, 32 bits.
//!
//! Each has a binary and a text form that are each other's inverse. Decoding checks everything that can be wrong with a word by
//! itself; nothing is truncated silently.

pub mod crf;
pub mod driver;
pub mod register;
mod word;

pub use word::{Field, WordError};
