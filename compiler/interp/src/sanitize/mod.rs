//! The sanitizer: machine code that is compiled to be watched tells it each statement before it executes it, and it
//! keeps shadow state of what is written, as what, and by which block. It finds what the interpreter finds of memory,
//! in the same words:
//!
//! * reads of what nothing has written, in tiles (PA-1001), `out` tensors and buffers of the block (PA-1012);
//! * bytes that are read under another type than they were written under (PA-1006), values that another tile has
//!   destroyed (PA-1014), results over operands that are still read (PA-1015);
//! * uses of one element of a tensor by two blocks of which one writes it, or one reads what the other updates
//!   (PA-1013);
//! * two points of a nest that meet (PA-1072);
//! * accesses outside of tiles, their valid parts and tensors (PA-1002, PA-1003), addresses that are none (PA-1004,
//!   PA-1005).
//!
//! It executes the kernel's statements as the interpreter does, but without values: only *where* matters, and that is
//! given by `index` values ([`arguments`]) and, where indices are read from memory, by that memory ([`data`]). So
//! windows are handled row by row, at about what copying their marks costs. Blocks run on several threads; marks of
//! tensors are shared.
//!
//! *Coarseness.* Where two blocks use an element at the same time, either may be the one that is blamed. With one
//! thread the blocks run in order, and the first fault is the interpreter's.

mod cells;
mod inst;
mod memory;
mod nest;
mod sites;
mod tensors;
mod tiles;
mod worker;

pub use sites::{Data, arguments, data, known, sites, updates};

use crate::overlap::Overlaps;
use crate::{Trap, Unwritten};
use cranelift_entity::PrimaryMap;
use ptoc_abi::{Monitor, Watcher};
use ptoc_diagnostics::codes;
use ptoc_ir::tile::{Const, Kernel, Op, Region, Stmt, TensorId, Value};
use ptoc_isa::Loc;
use ptoc_layout::Storage;
use std::sync::{Mutex, PoisonError};
use tensors::Tensor;
use worker::Worker;

/// What a launch is given.
pub struct Options<'o> {
    /// Values of the symbolic dimensions, in the kernel's order.
    pub dims: &'o [i64],
    /// Bits of the scalar arguments, in the kernel's order.
    pub scalars: &'o [u64],
    /// Addresses of the tensors' first bytes (their provenance exposed), in the kernel's order without its own buffers.
    /// Entries of tables are read.
    pub tensors: &'o [usize],
    /// By tensor argument: which elements of its buffer are the tensor's, as in [`crate::Options::storage`].
    pub storage: &'o [Option<Storage>],
    /// Bytes of the memories, for tiles with addresses.
    pub capacity: Vec<(Loc, u64)>,
}

/// A statement with what is told of it.
struct Site<'k> {
    stmt: &'k Stmt,
    arguments: Vec<Value>,
    data: Vec<Data>,
}

/// The shadow state of one launch.
pub struct Sanitizer<'k> {
    kernel: &'k Kernel,
    sites: Vec<Site<'k>>,
    /// Bits of the values that are known before a block begins.
    values: Vec<u64>,
    tensors: PrimaryMap<TensorId, Tensor>,
    /// Where the arguments' elements are.
    memory: Vec<usize>,
    capacity: worker::Capacities,
    found: Mutex<Found>,
}

/// What threads have found.
#[derive(Default)]
struct Found {
    /// The fault of the lowest block.
    fault: Option<(u64, Trap)>,
    overlaps: Option<Overlaps>,
}

impl<'k> Sanitizer<'k> {
    /// For one launch of a kernel. `kernel` is the one whose code runs.
    ///
    /// # Errors
    /// Where the prologue fails, as the launch itself does, or where there are more blocks or elements than there is
    /// room for marks.
    pub fn new(kernel: &'k Kernel, options: &Options<'_>) -> Result<Sanitizer<'k>, Trap> {
        let scalars: Vec<Option<u64>> = options.scalars.iter().map(|&bits| Some(bits)).collect();
        let mut values = crate::prologue(kernel, options.dims, &scalars)?;
        let extents: Vec<i64> =
            kernel.grid.iter().map(|d| (values[d.extent.as_u32() as usize] as i64).max(0)).collect();
        // Marks are the numbers of blocks, 0 and one more.
        crate::blocks(kernel, &extents)?;
        constants(&kernel.body, &mut values);
        let known = known(kernel);
        let list = sites(kernel);
        let mut tensors = PrimaryMap::new();
        for (id, t) in &kernel.tensors {
            let shape = t.shape.iter().map(|v| values[v.as_u32() as usize]).collect();
            let uses: Vec<_> = list.iter().flat_map(|stmt| sites::tensor_uses(stmt, id)).collect();
            let uses: Vec<_> =
                uses.into_iter().map(|(k, elem)| (k, elem.map_or(t.dtype.size(), |d| d.size()))).collect();
            let storage = options.storage.get(id.as_u32() as usize).and_then(Option::as_ref);
            let tensor = Tensor::new(t.dtype, t.dir, shape, &uses).map_err(|bytes| {
                let message = format!("to watch tensor {} takes {bytes} bytes, which there are not", t.name);
                Trap::new(codes::TRAP_MEMORY_LIMIT, t.span, message)
            })?;
            tensors.push(tensor.stored(storage));
        }
        let sites = list.into_iter();
        let sites = sites.map(|stmt| Site { stmt, arguments: arguments(stmt, &known), data: data(kernel, stmt) });
        Ok(Sanitizer {
            kernel,
            sites: sites.collect(),
            values,
            tensors,
            memory: options.tensors.to_vec(),
            capacity: options.capacity.clone(),
            found: Mutex::default(),
        })
    }

    /// What the launch did wrong, or which arguments it has not filled.
    ///
    /// # Errors
    /// The fault of the lowest block that has one.
    pub fn finish(self) -> Result<Vec<Unwritten>, Trap> {
        let found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, trap)) = found.fault {
            return Err(trap);
        }
        if let Some(trap) = found.overlaps.and_then(|o| o.end(self.kernel)) {
            return Err(trap);
        }
        let unwritten = |(id, t): (TensorId, &Tensor)| {
            let (count, first) = t.unwritten()?;
            Some(Unwritten { tensor: id, count, first: t.coordinates(first) })
        };
        Ok(self.tensors.iter().filter_map(unwritten).collect())
    }

    /// A block has a fault.
    fn stop(&self, block: u64, trap: Trap) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.fault.as_ref().is_none_or(|(old, _)| *old > block) {
            found.fault = Some((block, trap));
        }
    }

    /// A thread has no more blocks.
    fn leave(&self, overlaps: Overlaps) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut found.overlaps {
            Some(all) => all.join(overlaps),
            None => found.overlaps = Some(overlaps),
        }
    }
}

impl Monitor for Sanitizer<'_> {
    fn watcher(&self) -> Box<dyn Watcher + '_> {
        Box::new(Worker::new(self))
    }
}

#[cfg(test)]
pub(crate) mod tests;

/// Values of the constants of a region.
fn constants(region: &Region, values: &mut [u64]) {
    for stmt in region {
        if let Op::Const { dst, value: Const { bits, .. } } = &stmt.op {
            values[dst.as_u32() as usize] = *bits;
        }
        stmt.op.regions().for_each(|region| constants(region, values));
    }
}
