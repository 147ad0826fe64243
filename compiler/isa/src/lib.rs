//! The instruction table and the targets: the single description that type rules, IR, both backends, hover text and
//! the reference pages are driven by.

mod instr;
mod ops;
mod tile_type;

pub use instr::{DTypeRule, Instr, InstrId, OperandKind, OperandSpec, PipeRule, Role, Scratch, Sem, ShapeRule};
pub use ops::{AtomicOp, BinOp, CmpOp, Oob, Reduce, RoundMode, UnOp};
pub use tile_type::{Loc, Order, TileType};
