//! Passes over tile IR, and its lowering to loop IR. One file a pass; [`pipeline`] is their order.

pub mod access;
pub mod addresses;
pub mod blocks;
pub mod bounds;
pub mod bytes;
pub mod capacity;
pub mod clock;
pub mod copies;
pub mod dynamic;
pub mod hazards;
pub mod holding;
pub mod init;
mod integers;
pub mod launch_values;
pub mod liveness;
pub mod lower;
pub mod map;
pub mod memories;
pub mod pack;
pub mod physical;
pub mod pins;
pub mod pipeline;
pub mod placed;
pub mod placement;
pub mod plan_check;
mod progressions;
mod reach;
mod ring_order;
pub mod scalars;
mod stages;
pub mod sync;

pub use map::MemoryMap;
pub use physical::physical;
pub use pipeline::{Prepared, pipeline, place};
pub use placed::PlacedKernel;
pub use placement::Placement;
