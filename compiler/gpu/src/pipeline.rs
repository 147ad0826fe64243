//! The rewrites that this backend wants.

use ptoc_opt::pass::Pass;
use ptoc_opt::{copy_propagation, lazy_gather, rematerialize};

/// The rewrites of tile IR: those of the CPU's that are not about its caches and threads. Grid splitting and row
/// pipelining make work for one core of what a CTA does at once.
pub const GPU_PASSES: &[Pass] = &[copy_propagation::PASS, lazy_gather::PASS, rematerialize::PASS];
