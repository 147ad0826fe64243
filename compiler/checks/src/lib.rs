//! Checks of tile IR: what is wrong with a kernel, or not proved to be right.
//!
//! Each module is one analysis with its reports; none of them changes the kernel, but for the run-time checks that
//! [`bounds`] inserts.

#![forbid(unsafe_code)]

pub mod blocks;
pub mod bounds;
pub mod bytes;
pub mod capacity;
pub mod init;
pub mod plan_check;
pub mod ring_order;
