//! The reference interpreter of tile IR: slow, obvious, and the sanitizer.
//!
//! [`run`] executes a verified kernel directly and defines what it means. Blocks run one after another in row-major
//! order of the grid. Every byte of tiles, of `out` tensors and of scratch tensors has a mark that says whether it has
//! been written; a read of one that has not is a [`Trap`], as is every access outside a tile, its valid shape or a
//! tensor, and a use of one tensor element by two blocks of which one writes it.
//!
//! *Storage.* A tile whose address is the planner's business has storage of its own, poisoned by each `alloc`. Other
//! tiles are bytes of their location's memory, poisoned when a block starts; `alloc` leaves those bytes alone, since
//! other tiles may share them. Vec and Mat bytes may be read under any type. Masks and the tiles of all other
//! locations may not: their bytes remember the type that wrote them. Element (i, j) of a tile is at `i * cols + j`
//! (ND) or `j * rows + i` (DN) of the whole tile's capacity, or where the tile's layout says; a window indexes into
//! that.
//!
//! *Copies and products along nests* do as their documentation says ([`ptoc_ir::tile::Copy`], [`ptoc_ir::tile::Mma`]);
//! that no two of their elements meet is watched. A tensor whose elements are used as another dtype has marks for every
//! byte from then on.
//!
//! *Numbers* are those of [`ptoc_ir::scalar`] and of the `exec` module; nothing here rounds on its own.

mod cells;
mod clusters;
mod copy;
pub mod cost;
mod exec;
mod fixpipe;
mod inst;
mod launch;
mod machine;
mod matrix;
mod named;
pub(crate) mod nest;
mod observe;
pub(crate) mod overlap;
pub(crate) mod own_source;
mod pipes;
mod sample;
pub mod sanitize;
pub(crate) mod tensors;
mod tiles;
pub(crate) mod traffic;
mod trap;
pub(crate) mod wording;

pub use launch::{InterpreterLaunch, InterpreterOutcome, Options, Stats, TensorArg, TensorBytes, Unwritten};
pub use observe::{End, Observer, RunningKernel, Storage, Unread};
pub use pipes::{
    BlockTimeline, Cause, EventElement, Lane, Moment, Order, Pipes, Signal, Slice, Stall, StallInterval, Timing,
    UnitUse,
};
pub use tensors::coordinates;
pub use trap::Trap;

use ptoc_diagnostics::codes;
use ptoc_ir::tile::{Kernel, verify};

/// Runs a kernel. `launch.tensors` hold the results afterwards, also after a trap (as far as it came).
pub fn run(kernel: &Kernel, launch: &mut InterpreterLaunch<'_>) -> Result<InterpreterOutcome, Trap> {
    execute(kernel, launch, None).map_err(|end| match end {
        End::Trap(trap) => trap,
        // Only an observer stops a run.
        End::Stopped => Trap::new(codes::TRAP_INVALID_IR, kernel.span, "the run was stopped"),
    })
}

/// [`run`] with someone who looks on.
pub fn run_observed(
    kernel: &Kernel,
    launch: &mut InterpreterLaunch<'_>,
    observer: &mut dyn Observer,
) -> Result<InterpreterOutcome, End> {
    execute(kernel, launch, Some(observer))
}

fn execute(
    kernel: &Kernel,
    launch: &mut InterpreterLaunch<'_>,
    observer: Option<&mut dyn Observer>,
) -> Result<InterpreterOutcome, End> {
    let verified = match launch.options.rewritten {
        true => verify::verify_rewritten(kernel),
        false => verify::verify(kernel),
    };
    if let Err(errors) = verified {
        let first = &errors[0];
        let message = format!("kernel `{}` is not valid IR: {} ({})", kernel.name, first.message, first.code);
        return Err(End::Trap(Trap::new(codes::TRAP_INVALID_IR, first.span, message)));
    }
    let order = launch.options.pipes.as_ref().map(|p| p.order);
    let again = order.filter(|&o| o != Order::Program).map(|_| launch.tensors.clone());
    let result = once(kernel, launch, observer);
    let (Err(End::Trap(_)), Some(tensors)) = (&result, again) else { return result };
    // What is reported does not depend on the order.
    let mut options = launch.options.clone();
    if let Some(pipes) = &mut options.pipes {
        pipes.order = Order::Program;
    }
    let (dims, scalars, mut silent) = (launch.dims.clone(), launch.scalars.clone(), |_: &str| {});
    match once(kernel, &mut InterpreterLaunch { tensors, dims, scalars, options, print: &mut silent }, None) {
        Err(end) => Err(end),
        Ok(_) => result,
    }
}

fn once(
    kernel: &Kernel,
    launch: &mut InterpreterLaunch<'_>,
    observer: Option<&mut dyn Observer>,
) -> Result<InterpreterOutcome, End> {
    let mut machine = machine::Machine::new(kernel, launch).map_err(End::Trap)?;
    if let Some(observer) = observer {
        machine.observer = Some(&mut *observer);
    }
    let result = machine.launch().map_err(|trap| machine.end(trap));
    let data = machine.give_back();
    for (arg, data) in launch.tensors.iter_mut().zip(data) {
        arg.data = data;
    }
    result
}

/// The bits of every value that the prologue defines, indexed by the value's number: extents of tensors, scalar
/// arguments with their defaults, extents of the grid. Fails where a check of the prologue (a `where`) fails; no block
/// runs.
pub fn prologue(kernel: &Kernel, dims: &[i64], scalars: &[Option<u64>]) -> Result<Vec<u64>, Trap> {
    machine::prologue(kernel, dims, scalars)
}

/// The number of blocks of a grid of these extents. Fails where there are more than a launch may have, on any backend.
pub fn blocks(kernel: &Kernel, extents: &[i64]) -> Result<u32, Trap> {
    ptoc_abi::count(extents).map_err(|e| Trap::new(codes::GRID_TOO_LARGE, kernel.span, e.to_string()))
}

#[cfg(test)]
mod tests;
