//! Processing units that sit beside the banks: what they compute, bit for bit, and when they may.

pub mod geopim;
pub mod hbm_pim;
pub mod vector;
