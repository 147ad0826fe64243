//! Loop IR: what both machine emitters (and later the PIM backend) consume. Small, explicit, no tiles.
//!
//! A [`Func`] is structured control flow over SSA scalars, plus [`Op::Lanes`]: a loop whose iterations are independent
//! and straight-line, which an emitter runs at any width it likes. Memory is byte spaces; an address is a base, a
//! byte offset, and inside `Lanes` a byte stride a lane.
//!
//! Register types are few: `i32`, `i64`, `f32`, `bool`. Narrow memory types widen on load (sign- or zero-extended;
//! f16 and bf16 exactly to f32) and narrow on store (integers truncate, floats round to nearest even; to f16 and bf16).
//! Arithmetic on f16/bf16 is f32 arithmetic followed by [`UnOp::RoundF16`] or [`UnOp::RoundBf16`]; a store of an
//! already rounded value is exact.

pub mod eval;
mod op;
mod shared;
mod sorts;
pub mod text;
mod touched;
mod types;
mod verify;
pub mod work;

pub use op::{
    Addr, Atomic, Base, BinOp, Cast, CmpOp, Contract, For, Gather, If, Lanes, Op, PARTIALS, PrintPart, Reduce, Region,
    Scope, Start, Stmt, Stride, UnOp, Watch, While, nibble,
};
pub use shared::{SharedInfo, operands};
pub use sorts::{Lists, MERGED, Merge, Records, Sort, before, fields};
pub use types::{
    Bounded, BoundsRow, CheckRow, Func, FunctionEntry, LTy, Label, MemTy, Module, Reg, RegData, SourcePosition,
    SpaceData, SpaceId, VarData, VarId,
};
pub use verify::{MAX_DEPTH, verify};

#[cfg(test)]
mod tests;
