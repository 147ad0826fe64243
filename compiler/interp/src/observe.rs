//! Looking on while a kernel runs: what debuggers and tracers hang on to.
//!
//! An [`Observer`] is called around every statement of every block with a read-only [`RunningKernel`]. It can end the
//! run, and nothing else: reading through a state leaves no mark, so a run gives the same results with it and without.

use super::machine::Machine;
use super::tensors::Tensors;
use super::tiles::{Missing, TileReadFault, Tiles};
use super::trap::Trap;
use ptoc_ir::tile::{Elem, Kernel, Stmt, TensorId, Tile, Value, Var};
use ptoc_isa::TileType;
use ptoc_tensor::DType;
use std::ops::ControlFlow;

/// Who is told of every statement. The references to statements are those of the kernel that runs, so their addresses
/// identify them. The prologue is not observed.
pub trait Observer {
    /// A block begins; `state.block()` says which.
    fn block(&mut self, state: &RunningKernel<'_>) -> ControlFlow<()> {
        let _ = state;
        ControlFlow::Continue(())
    }

    /// A statement is about to run; a loop once, before its first iteration.
    fn before(&mut self, state: &RunningKernel<'_>, stmt: &Stmt) -> ControlFlow<()>;

    /// It has run; a loop with all iterations. Not called for one that fails.
    fn after(&mut self, state: &RunningKernel<'_>, stmt: &Stmt) -> ControlFlow<()>;

    /// The run has ended with an error; the state is that of the failing statement.
    fn trapped(&mut self, state: &RunningKernel<'_>, trap: &Trap) {
        let _ = (state, trap);
    }
}

/// How an observed run ends without results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By an error.
    Trap(Trap),
    /// By its observer.
    Stopped,
}

/// Why an element has no value to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unread {
    /// Nothing has written it.
    Unwritten,
    /// Its bytes were written as something else: as a tile of that type, or as plain data.
    Foreign(Option<TileType>),
    /// There is no such element.
    Outside,
}

/// Where a tile's bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// Its life has not begun, or it has no address yet.
    None,
    /// Storage of its own: its address is the planner's business.
    Own,
    /// At this byte of its location's memory.
    At(u64),
}

/// A running kernel, to look at.
#[derive(Clone, Copy)]
pub struct RunningKernel<'s> {
    kernel: &'s Kernel,
    values: &'s [u64],
    vars: &'s [u64],
    tiles: &'s Tiles,
    tensors: &'s Tensors,
    block: &'s [i64],
    number: u32,
    steps: u64,
}

impl<'s> RunningKernel<'s> {
    pub(super) fn new(machine: &'s Machine<'_, '_>) -> RunningKernel<'s> {
        RunningKernel {
            kernel: machine.k,
            values: &machine.values,
            vars: &machine.vars,
            tiles: &machine.tiles,
            tensors: &machine.tensors,
            block: machine.coordinates().unwrap_or(&[]),
            number: machine.block,
            steps: machine.stats.steps,
        }
    }

    /// The kernel.
    pub fn kernel(&self) -> &'s Kernel {
        self.kernel
    }

    /// The block's coordinates in the grid, slowest first.
    pub fn block(&self) -> &'s [i64] {
        self.block
    }

    /// The block's number in the order of execution, from 0.
    pub fn block_number(&self) -> u32 {
        self.number
    }

    /// Bits of a scalar. Those of one that is not visible here are leftovers.
    pub fn value(&self, value: Value) -> u64 {
        self.values[value.as_u32() as usize]
    }

    /// Bits of a mutable scalar.
    pub fn var(&self, var: Var) -> u64 {
        self.vars[var.as_u32() as usize]
    }

    /// Statements and elements so far, as [`super::Options::fuel`] counts them.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Where an element of a tile array is.
    pub fn storage(&self, tile: Tile, element: usize) -> Storage {
        self.tiles.storage(self.kernel, tile, element)
    }

    /// Bits of element (row, col) of a tile (of one of an array), counted in its capacity.
    pub fn element(&self, tile: Tile, element: usize, row: usize, col: usize) -> Result<u64, Unread> {
        let data = &self.kernel.tiles[tile];
        if element >= data.count as usize || row >= data.ty.rows as usize || col >= data.ty.cols as usize {
            return Err(Unread::Outside);
        }
        let slot = self.tiles.existing(self.kernel, tile, element).map_err(|m| match m {
            Missing::Unassigned | Missing::TooLarge => Unread::Unwritten,
        })?;
        self.tiles.read(&slot, row, col).map_err(|fault| match fault {
            TileReadFault::Poison => Unread::Unwritten,
            TileReadFault::Confused(by) => Unread::Foreign(by),
        })
    }

    /// Extents of a tensor's buffer.
    pub fn shape(&self, tensor: TensorId) -> &'s [u64] {
        &self.tensors[tensor].shape
    }

    /// Bits of an element of a tensor's buffer, seen as one of elements `elem`.
    pub fn tensor_element(&self, tensor: TensorId, elem: Elem, index: i64) -> Result<u64, Unread> {
        let t = &self.tensors[tensor];
        match elem {
            Elem::Whole(dtype) => t.peek(dtype, index),
            Elem::U4 | Elem::I4 => t.peek(DType::U8, index.div_euclid(2)).map(|byte| elem.half(byte, index)),
        }
        .map_err(|fault| match fault {
            super::tensors::TensorFault::Outside => Unread::Outside,
            _ => Unread::Unwritten,
        })
    }
}
