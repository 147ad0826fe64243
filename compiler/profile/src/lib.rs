//! Measured launches.
//!
//! [`setup`] says what is measured, and on what; [`sample`] launches, and [`race`] launches many in turns.
//! [`mod@bench`] is one kernel held against the machine's [`limits`], [`tune`] all configurations of its `tune` lists,
//! [`profile`] a table of problems and configurations, each of which is [verified](verify) before it is measured.

#![forbid(unsafe_code)]

pub mod bench;
pub mod best;
mod format;
pub mod journal;
mod limits;
mod line;
mod measured;
pub mod plot;
pub mod profile;
mod race;
mod recall;
mod sample;
pub mod setup;
mod sweep;
pub mod table;
pub mod tune;
mod verify;

pub use sweep::{Values, configurations, sizes};
