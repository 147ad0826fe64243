//! The instruction table and the targets: the single description that type rules, IR, both backends, hover text and
//! the reference pages are driven by.

#![forbid(unsafe_code)]

mod cells;
mod coverage;
mod expr;
mod fixpipe;
mod instr;
mod legal;
pub mod math;
mod named;
mod ops;
mod pipe;
mod reference;
mod table;
mod target;
pub mod text;
mod tile_type;

pub use cells::{Cell, Cells, IndexExpr, Precondition, Test};
pub use coverage::{
    LeftOut, Otherwise, coverage_markdown, instructions_with, is_spelled, left_out, left_out_as, otherwise,
    storage_operand,
};
pub use expr::{Expr, Read, To};
pub use fixpipe::{Fixpipe, FixpipeWindow, SCALES, drained, scales};
pub use instr::{
    DTypeRule, Instr, InstrId, InstrMode, OperandKind, OperandSpec, PipeRule, Role, Scratch, Sem, ShapeRule,
};
pub use legal::*;
pub use named::{Named, PHILOX_MULTIPLIERS, PHILOX_WEYL, Primitive};
pub use ops::{AtomicOp, BinOp, CmpOp, Factors, Oob, Reduce, RoundMode, UnOp};
pub use pipe::{Pipe, pipe_of};
pub use ptoc_abi::{RECORD, SORTED};
pub use reference::{instruction_page, instruction_text, reference_markdown, targets_markdown};
pub use table::{NOT_YET, NameLookup, TABLE, find, is_first, lookup, overloads, sibling};
pub use target::{
    AimUnit, Allowed, Device, GeoUnit, HbmUnit, InstructionSet, Limits, Memory, MemorySpace, MoveRule, PipeTimes,
    Pipes, Pool, Preset, ProcessingUnit, Rounding, Setting, Stepping, Target, Triple, UnitKind, UnitOperation,
    UnitOperations,
};
pub use tile_type::{Loc, Order, TileType};
