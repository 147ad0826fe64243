//! Tile IR: PTO's level. Instructions on tiles and views, structured control flow, scalars in SSA form.
//!
//! A [`Kernel`] is one instance: static parameters are gone, functions are inlined, every tile has a type. It has
//! * a **prologue**, pure scalar code that computes what the launch needs (grid extents, `where` conditions),
//! * a **grid**, whose blocks run the **body** independently. The body sees the prologue's values.
//!
//! Meaning: a block runs its statements in order. [`Op::Alloc`] starts a tile's life with poison; a tile without an
//! address has storage of its own, a tile with one is bytes of its memory space. An operand names a window of a tile
//! and the valid shape with which it is used; every valid shape is a pair of `index` values, and where an instruction
//! demands equal shapes the operands carry *the same values* (checks that make them so precede the instruction).
//!
//! Invariants are listed in and enforced by the verifier (`verify`).

mod access;
mod builder;
mod op;
mod pipes;
mod place;
mod simplify;
mod sync;
pub mod text;
mod trail;
mod types;
mod update;
pub mod verify;
mod visit;

pub use access::{Affine, Copy, Elem, Guard, Mma, NestAccess, Table};
pub use builder::Builder;
pub use op::{
    For, If, Inst, InstAttrs, Op, Operand, PrintPart, Region, SUM_LANES, Scope, Stmt, While, diverges, jumps,
};
pub use pipes::pipe_of_op;
pub use place::{Coord, ElementPlacement, PlaceLeaf};
pub use sync::{Event, EventData, EventKind, EventRef, Purpose, RoleData, RoleId, SyncMode, SyncOp};
pub use trail::{ScopeCell, Trail};
pub use types::{
    AddrKind, CheckData, CheckId, Const, Dim, DimId, GridDim, Kernel, Label, ScalarParam, Stored, TensorData,
    TensorDir, TensorId, Tile, TileData, TileRef, Ty, Value, ValueData, Var, VarData, ViewRef,
};
pub use update::{Update, adds_floats, used_values};
