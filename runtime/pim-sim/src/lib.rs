//! Bank-level simulation of memories with processing in them: the DRAM device and its controller.
//!
//! [`dram`] is the device (organisation, commands, timing rules), the controllers and the engine that runs them. It is
//! usable by itself. [`located`] reads JSON and TOML so that every mistake in a user's file has a line and a column.
//!
//! [`machine`] executes command streams: memory, host path and units, functional and timed.
//!
//! This crate never sees the compiler: it takes numbers and texts and gives numbers and texts. It does no I/O.

#![forbid(unsafe_code)]

pub mod check;
pub mod dram;
pub mod energy;
pub mod located;
pub mod machine;
pub mod timeline;
pub mod units;
