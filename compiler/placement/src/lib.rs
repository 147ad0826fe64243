//! Placement of tiles in on-chip memories: liveness, packing, fixed addresses, multi-buffering, and the map of memory
//! that results.
//!
//! One file a concept; nothing here reports on a kernel's correctness (`ptoc-checks` does).

#![forbid(unsafe_code)]

pub mod access;
pub mod addresses;
pub mod copies;
pub mod dynamic;
pub mod holding;
pub mod liveness;
pub mod map;
pub mod memories;
pub mod pack;
pub mod physical;
pub mod pins;
pub mod placed;
pub mod placement;
pub mod reach;
pub mod scalars;
pub mod stages;

pub use map::MemoryMap;
pub use physical::physical;
pub use placed::PlacedKernel;
pub use placement::Placement;
