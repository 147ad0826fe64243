//! What is said to processing units in memory: the stream that a compiler writes and a simulator reads, and its words.
//! Neither knows the other; of our crates this one uses the types of elements (`ptoc-tensor`) alone.
//!
//! * [`stream`]: the whole: device, units, arrays, steps. [`binary`] and [`text`] are its forms, [`check`] its
//!   validator.
//! * [`placement`]: where arrays lie; [`mod@unit`]: parameters of units and where they are; [`mode`]: modes of HBM-PIM.
//! * [`driver`]: LOAD, EXECUTE and READ, 44 bytes each on the wire, and what a sequence of them must satisfy.
//! * [`register`]: the parameter register of a GeoPIM unit, 256 bits.
//! * [`crf`]: the instruction words of an HBM-PIM unit, 32 bits.
//!
//! Each has a binary and a text form that are each other's inverse. Decoding checks everything that can be wrong with a
//! word by itself; nothing is truncated silently.

#![forbid(unsafe_code)]

pub mod binary;
pub mod check;
pub mod crf;
pub mod driver;
pub mod mode;
pub mod placement;
mod reach;
pub mod register;
pub mod stream;
pub mod text;
pub mod unit;
mod word;

pub use check::{FaultKind, Site, StreamFault, Unordered, Unwritten};
pub use placement::{ArrayPlacement, Geometry};
pub use stream::Stream;
pub use unit::UnitConfig;
pub use word::{Field, WordError};
