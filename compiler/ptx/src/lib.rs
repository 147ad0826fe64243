//! PTX as data: kernels of typed virtual registers, a printer, a parser, a verifier, and an interpreter.
//!
//! A [`PtxKernel`] is what a code generator makes and what everything here takes: [`print()`] gives the text that
//! a driver (or `ptxas`) assembles, [`parse()`] reads it again, [`verify()`] refuses what it would refuse, and
//! [`sim`] executes it without a card: lanes with program counters of their own, in orders that are unfair on
//! purpose, with bounds of every access checked and races reported.
//!
//! Arithmetic is the one kind that has the bits of other machines: every float operation rounds to nearest even, none
//! is contracted, none flushes subnormals, `min` and `max` propagate NaN. There is no row in the table for any other.

mod builder;
mod inst;
mod kernel;
mod lines;
mod parse;
mod print;
pub mod sim;
mod sm90;
mod table;
mod types;
mod verify;

pub use builder::Builder;
pub use inst::{AddrBase, Address, AtomOp, Cmp, Inst, InstForm, Op, OperandClass, Round, Shfl, Special, Src};
pub use kernel::{BodyItem, Label, Param, PtxKernel, Symbol, VReg};
pub use lines::LineTable;
pub use parse::{ParseError, parse};
pub use print::{print, print_with_lines};
pub use sm90::{MmaType, Slot, Sm90, Wgmma};
pub use table::{Arith, InstInfo, Operands, TABLE};
pub use types::{Class, Space, Type};
pub use verify::{Error, verify};
