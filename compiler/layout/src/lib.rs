//! CuTe's layout algebra: shapes, strides, layouts, tilers, coordinates, swizzles, and the operations on them, over
//! integers that are known now or only when a kernel is launched.
//!
//! A [`Layout`] is a function from coordinates to offsets, written `shape:stride`. Operations are functions which take
//! the [`Cx`] (what is known of the symbols), borrow their operands and return a new value or a [`LayoutError`] that
//! names the operation, the mode and the two numbers that do not fit. [`ops::TABLES`] lists those that have a name in
//! the language and on the command line; [`Value`] is anything such a name takes or gives.
//!
//! Where an all-static case is sound, texts equal those of the C++ headers, 1-sized modes and their strides included.
//! This crate depends on nothing and does no I/O.

#![forbid(unsafe_code)]

mod cx;
mod divisors;
mod error;
mod expr;
mod family;
mod int;
mod intern;
mod layout;
mod mma;
pub mod ops;
pub mod picture;
mod points;
mod poly;
mod predicated;
mod storage;
mod substitute;
mod swizzle;
mod text;
mod tiler;
mod tuple;
mod value;
mod window;

pub use cx::{Condition, Cx, Truth};
pub use divisors::{gcd, lcm};
pub use error::{ErrorKind, LayoutError, Path};
pub use expr::{Env, ExprError, ExprErrorKind, eval_expr, parse_value};
pub use family::AtomFamily;
pub use int::Int;
pub use intern::TileLayout;
pub use layout::{Layout, NAMED, NAMED_UNITS, Stride};
pub use mma::{ATOM_FIELDS, MmaAtom, Operand, TiledMma};
pub use ops::Offset;
pub use points::{Point, Points};
pub use poly::{Atom, AtomKind, Poly};
pub use predicated::Predicated;
pub use storage::{Overlap, Storage, StorageError, TooManySteps, evaluate};
pub use swizzle::{Composed, Swizzle};
pub use text::{MAX_DEPTH, TextSpan};
pub use tiler::Tiler;
pub use tuple::{Coord, CoordLeaf, IntTuple, Tuple};
pub use value::Value;
pub use window::LayoutWindow;

/// The result of an operation.
pub type Result<T> = std::result::Result<T, LayoutError>;
