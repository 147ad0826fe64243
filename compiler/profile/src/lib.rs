//! Measured launches.
//!
//! [`setup`] says what is measured, and on what; [`sample`] launches, and [`race`] launches many in turns.
//! [`mod@bench`] is one kernel held against the machine's [`limits`], or [`simulated`], [`tune`] the configurations of
//! its `tune` lists: all, or those that a [`search`] chooses, but for what the target's [`model`] of time leaves no
//! hope for. [`profile`] is a table of problems and configurations, each of which is [verified](verify) before it is
//! measured.

#![forbid(unsafe_code)]

pub mod bench;
pub mod best;
mod contest;
mod format;
pub mod journal;
mod limits;
mod line;
mod lock;
mod measure;
mod measured;
pub mod model;
mod patience;
pub mod plot;
pub mod profile;
pub mod race;
mod recall;
mod sample;
mod search;
pub mod setup;
mod simulated;
mod sweep;
pub mod table;
mod traffic;
pub mod tune;
mod tuned;
mod verify;

pub use sweep::{Values, configurations, sizes};
