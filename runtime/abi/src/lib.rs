//! What compiled kernels, those who compile them and those who run them agree on: the launch record, the order of
//! blocks and of reductions, who looks on, what indices outside of a table mean, and the coordinates of a memory. Types
//! and numbers only: no thread, no file, no wire format.

#![forbid(unsafe_code)]

mod coord;
mod frame;
mod grid;
mod monitor;
mod oob;
mod print;
mod raster;
mod records;
mod reduction;

pub use coord::Coord;
pub use frame::{EntryFn, Frame, PrintHook, STOPPED, Status, WatchHook};
pub use grid::{CALLS_PER_THREAD, COLUMN_WEIGHT, MAX_GRID_RANK, MOST_BLOCKS, TooManyBlocks, count};
pub use monitor::{Monitor, Watcher};
pub use oob::Oob;
pub use print::PrintItem;
pub use raster::Raster;
pub use records::{MERGED, RECORD, SORTED};
pub use reduction::PARTIALS;
