//! NumPy's `.npy` format, from and to bytes.
//!
//! The header is read by hand rather than with the `npyz` crate: that reports malformed input as text in an
//! `io::Error`, allocates the header length that a file claims before looking whether it is there, and brings a
//! Python literal grammar with some twenty crates for a dictionary with three known keys.
//! Format: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

mod error;
mod header;
mod read;
mod write;

pub use error::NpyError;
pub use read::{NpyReader, read};
pub use write::write;

/// What every file starts with.
const MAGIC: &[u8; 6] = b"\x93NUMPY";
