//! The rewrites that this backend wants.

use ptoc_opt::pass::Pass;
use ptoc_opt::{copy_propagation, rematerialize};

/// The rewrites of tile IR: those of the CPU's that are not about its caches and threads. Grid splitting and row
/// pipelining make work for one core of what a CTA does at once, and lazy gathers compare addresses of the chip's
/// memories with those of arrays.
pub const GPU_PASSES: &[Pass] = &[copy_propagation::PASS, rematerialize::PASS];
