//! What expressions denote while a kernel is elaborated: values, windows of tensors and tiles, thread partitions, the
//! scopes that names are bound in, and calls as they are written. Data with small methods; what computes with it is the
//! elaborator (`ptoc-elab`).

#![forbid(unsafe_code)]

mod bindings;
pub mod consts;
pub mod debug;
mod env;
pub mod lengths;
mod thread_pattern;
mod value;
mod window;
pub mod written;

pub use bindings::Bindings;
pub use env::{Binding, Call, Entered, Env};
pub use thread_pattern::{Astray, Compared, ThreadPattern};
pub use value::{
    BlockRange, ClosureVal, EventSpec, EventVal, RecordVal, Ring, RingSpec, Slots, TileArray, TileBlock, TilePartition,
    TileSpec, TileVal, TilesDomain, Val,
};
pub use window::{Leaf, Pattern, Quantity, TableLookup, View, WindowMap, WindowMode};
