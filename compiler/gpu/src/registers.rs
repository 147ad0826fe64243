//! How many registers a thread may have, so that none spill.
//!
//! `ptxas` aims at many threads a multiprocessor, and spills a few registers for that where many are live at once.
//! `.minnctapersm` tells it what it may take instead. The numbers are from kernels of `examples`: how many registers
//! they got, and which of them spilled, by their pressure ([`ptoc_ptx::pressure`]), with `ptxas` 13.0.

/// Registers of a multiprocessor.
const REGISTERS: u32 = 65_536;

/// The least pressure at which `ptxas` spills by itself.
const SPILLS: u32 = 72;

/// The least pressure at which 128 registers are too few.
const MANY: u32 = 110;

/// The CTAs that a multiprocessor shall have registers for, where that has to be said.
pub(crate) fn resident(pressure: u32, threads: u32) -> Option<u32> {
    match pressure {
        ..=SPILLS => None,
        MANY.. => Some(1),
        _ => Some((REGISTERS / (threads * (pressure - 8).next_multiple_of(8))).max(1)),
    }
}
