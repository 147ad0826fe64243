//! Rewrites of tile IR, and the analyses of tile IR that the emitters share.
//!
//! Each module is one rewrite or analysis by its usual name; none of them emits code. [`pass`] runs, verifies, times
//! and records the rewrites; a backend chooses which, and in what order.

#![forbid(unsafe_code)]

pub mod analyses;
pub mod clock;
pub mod contraction;
pub mod copy_propagation;
pub mod fragments;
pub mod fusion;
pub mod grid_coarsen;
pub mod grid_split;
pub mod lazy_gather;
pub mod matrix_unit;
pub mod operands;
pub mod overlap;
pub mod pass;
pub mod pattern;
pub mod rematerialize;
pub mod rings;
pub mod spill_storage;
pub mod sync;
pub mod tile_layout;
pub mod webs;
