//! Placement of tiles in on-chip memories: liveness, packing, fixed addresses, multi-buffering, and the map of memory
//! that results.
//!
//! One file a concept; nothing here reports on a kernel's correctness (`ptoc-checks` does).

#![forbid(unsafe_code)]

pub mod access;
pub mod address_bounds;
pub mod addresses;
pub mod buffer_expansion;
pub mod dynamic;
pub mod fixed_addresses;
pub mod liveness;
pub mod map;
pub mod memories;
pub mod multi_buffering;
pub mod pack;
pub mod placed;
pub mod placement;
pub mod scalars;
pub mod stages;
pub mod value_liveness;

pub use buffer_expansion::physical;
pub use map::MemoryMap;
pub use placed::PlacedKernel;
pub use placement::Placement;
