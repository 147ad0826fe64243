//! The properties that the fuzz targets hold the compiler to: each takes bytes and panics if a property is broken.
//!
//! `tests/it/corpus.rs` includes this file and replays the committed corpora with it, so nothing here may depend on
//! libFuzzer.

mod devices;
mod dram;
mod exec;
mod format;
pub mod front;
mod ir;
mod loops;
mod plan;
mod pto;
mod stream;

pub use devices::devices;
pub use dram::dram;
pub use exec::exec_diff;
pub use format::format_text;
pub use front::source_to_ir;
pub use ir::ir_text;
pub use loops::loop_text;
pub use plan::plan;
pub use pto::pto;
pub use stream::{machine, stream};

/// A number that depends on all of the input: it picks dimensions and data, so that a finding is one file.
fn hash(bytes: &[u8]) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325u64;
    for &b in bytes {
        h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    h ^ h >> 29
}
