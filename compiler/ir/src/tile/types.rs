//! Entities of tile IR and the kernel that owns them.

use super::{Affine, ElementPlacement, Event, EventData, Region, RoleData, RoleId, SyncMode};
use cranelift_entity::{PrimaryMap, entity_impl};
use ptoc_abi::Raster;
use ptoc_diagnostics::{Code, Span};
use ptoc_isa::TileType;
use ptoc_layout::Swizzle;
use ptoc_tensor::DType;
use smol_str::SmolStr;
use std::fmt;

/// An SSA scalar: `v3`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);
entity_impl!(Value, "v");

/// A tile, or an array of tiles of one type: `t2`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tile(u32);
entity_impl!(Tile, "t");

/// A mutable scalar: `m0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(u32);
entity_impl!(Var, "m");

/// A global tensor: `g0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId(u32);
entity_impl!(TensorId, "g");

/// A symbolic dimension, bound at launch: `d0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DimId(u32);
entity_impl!(DimId, "d");

/// A run-time check: `c0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CheckId(u32);
entity_impl!(CheckId, "c");

/// A loop or scope that `break`, `continue` and `leave` name: `l0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(u32);
entity_impl!(Label, "l");

/// Type of a scalar.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ty {
    /// Signed 64-bit; division floors.
    Index,
    /// A scalar of a tensor's dtype; conditions are `bool`.
    D(DType),
}

impl Ty {
    /// `bool`
    pub const BOOL: Ty = Ty::D(DType::Bool);
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Index => f.write_str("index"),
            Ty::D(d) => d.fmt(f),
        }
    }
}

/// A constant: the raw bits of its type, little-endian in the low bytes (`index` and i64 fill all 64).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Const {
    /// The type.
    pub ty: Ty,
    /// The bits; those above the type's width are zero.
    pub bits: u64,
}

impl Const {
    /// An `index` constant.
    pub fn index(value: i64) -> Const {
        Const { ty: Ty::Index, bits: value as u64 }
    }

    /// The value of an `index` constant.
    pub fn as_index(self) -> Option<i64> {
        (self.ty == Ty::Index).then_some(self.bits as i64)
    }
}

/// What is known of a scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueData {
    /// Its type.
    pub ty: Ty,
    /// The name in the source, if it has one.
    pub name: Option<SmolStr>,
    /// Where it was computed.
    pub span: Span,
}

/// How a tile gets its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddrKind {
    /// The planner's business. In interpretation such a tile has private storage.
    Auto,
    /// Constant byte offsets in the memory of its location, one an element (`TASSIGN` with constants, `at`).
    Fixed(Vec<u64>),
    /// Bound at run time by [`super::Op::Assign`].
    Dynamic,
}

/// A tile or tile array.
#[derive(Clone, Debug, PartialEq)]
pub struct TileData {
    /// The source's name, or a description (`"Left(..)"`) for hidden tiles.
    pub name: SmolStr,
    /// Type of each element.
    pub ty: TileType,
    /// Number of elements, at least 1.
    pub count: u32,
    /// Copies that `pipeline(stages = n)` asks for, at least 1. Only the budget knows; the meaning is sequential.
    pub stages: u32,
    /// The address.
    pub addr: AddrKind,
    /// Made by the compiler, not named in the source.
    pub hidden: bool,
    /// Where it is declared, or the expression that it was made for.
    pub span: Span,
}

/// How the launch uses a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TensorDir {
    /// Read only.
    In,
    /// Starts poisoned.
    Out,
    /// Read and written.
    InOut,
    /// Global memory private to a running block, made by the compiler (a move that has to go through GM). Poisoned at
    /// the block's start.
    Scratch,
}

/// A global tensor, contiguous and row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorData {
    /// Name of the argument.
    pub name: SmolStr,
    /// Element type.
    pub dtype: DType,
    /// Use.
    pub dir: TensorDir,
    /// Extents, each a value of the prologue (a dimension, a constant, or computed).
    pub shape: Vec<Value>,
    /// Declared `= none`, and given: a kernel whose argument is absent does not have the tensor.
    pub optional: bool,
    /// Where it is in the memory of a PIM target (`at`), if the author says so.
    pub place: Option<ElementPlacement>,
    /// Several blocks write it and the author says why they are disjoint.
    pub disjoint: bool,
    /// How an array lies in it, where its elements do not fill it row by row. Then its shape is the length of that
    /// buffer.
    pub stored: Option<Stored>,
    /// The declaration.
    pub span: Span,
}

/// How an array lies in a tensor's buffer: the element of index (i0, i1, ..) below the extents is number
/// `swizzle(at(i0, i1, ..))`. One index for each leaf of the layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Extents of the leaves.
    pub extents: Vec<Value>,
    /// Start and strides, in elements.
    pub at: Affine,
    /// Applied to the sum.
    pub swizzle: Option<Swizzle>,
}

/// A dimension that stays symbolic. Its value is bound by the launch before the prologue runs, and is at least 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Dim {
    /// The name.
    pub name: SmolStr,
    /// Its value, type `index`.
    pub value: Value,
    /// First use in the signature.
    pub span: Span,
}

/// A scalar argument.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalarParam {
    /// The name.
    pub name: SmolStr,
    /// Its value.
    pub value: Value,
    /// The value that is taken when the launch gives none (computed in the prologue, as it may use dimensions): the
    /// prologue assigns `value`'s default to this value.
    pub default: Option<Value>,
    /// The declaration.
    pub span: Span,
}

/// A mutable scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct VarData {
    /// The name.
    pub name: SmolStr,
    /// The type.
    pub ty: Ty,
}

/// One dimension of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct GridDim {
    /// The source's name.
    pub name: SmolStr,
    /// Number of blocks, a value of the prologue; 0 or less means none.
    pub extent: Value,
    /// The block's number in `0..extent`, defined in the body.
    pub index: Value,
}

/// A condition that the compiler could not prove.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckData {
    /// A `PA-` code (or `where`'s).
    pub code: Code,
    /// One sentence; `{0}`, `{1}`, ... stand for the arguments' values.
    pub message: String,
    /// The place that is to blame.
    pub span: Span,
    /// Repairs, same placeholders.
    pub help: Option<String>,
}

/// A window of a tile, with the valid shape that is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TileRef {
    /// The tile.
    pub tile: Tile,
    /// Element of the tile array; `None` is element 0.
    pub element: Option<Value>,
    /// First row and column of the window; `None` is (0, 0).
    pub origin: Option<(Value, Value)>,
    /// Capacity of the window.
    pub rows: u32,
    /// Capacity of the window.
    pub cols: u32,
    /// Valid rows and columns, `index` values with `0 <= valid <= capacity` (proved, or checked before).
    pub valid: (Value, Value),
}

/// A strided window of a tensor: element `(i0, i1, ..)` is at `offset + i0 * strides[0] + ...`, in elements.
/// Every index within `shape` is inside the tensor (proved, or checked before).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ViewRef {
    /// The tensor.
    pub tensor: TensorId,
    /// Element of index (0, 0, ..).
    pub offset: Value,
    /// Extents; rank 2 for TLOAD and TSTORE, any rank for MGATHER.
    pub shape: Vec<Value>,
    /// Strides in elements.
    pub strides: Vec<Value>,
}

/// One kernel instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The source's name.
    pub name: SmolStr,
    /// The kernel's name in the source.
    pub span: Span,
    /// The target that it was checked for.
    pub target: SmolStr,
    /// Arguments in order, then scratch tensors.
    pub tensors: PrimaryMap<TensorId, TensorData>,
    /// Symbolic dimensions.
    pub dims: PrimaryMap<DimId, Dim>,
    /// Scalar arguments.
    pub scalars: Vec<ScalarParam>,
    /// All SSA scalars.
    pub values: PrimaryMap<Value, ValueData>,
    /// All mutable scalars.
    pub vars: PrimaryMap<Var, VarData>,
    /// All tiles.
    pub tiles: PrimaryMap<Tile, TileData>,
    /// Tiles that the author put on the bytes of another one on purpose (`at x`): the first on those of the second.
    pub aliases: Vec<(Tile, Tile)>,
    /// Where the planner is to put automatic tiles: a byte offset for each element, copy by copy. A tile has one entry
    /// at most, and is automatic in all else.
    pub pins: Vec<(Tile, Vec<u64>)>,
    /// All events.
    pub events: PrimaryMap<Event, EventData>,
    /// All roles.
    pub roles: PrimaryMap<RoleId, RoleData>,
    /// Who orders the pipes.
    pub sync: SyncMode,
    /// All run-time checks.
    pub checks: PrimaryMap<CheckId, CheckData>,
    /// Labels, by their span.
    pub labels: PrimaryMap<Label, Span>,
    /// Pure scalar code, run once a launch (and repeatable).
    pub prologue: Region,
    /// The grid, slowest dimension first; empty means one block.
    pub grid: Vec<GridDim>,
    /// The order in which blocks start, if it is not that of the grid's dimensions.
    pub raster: Option<Raster>,
    /// Blocks of a cluster along each dimension of the grid, which run at once and share what they load alike; empty
    /// for none. Those of the last clusters along a dimension may be fewer.
    pub cluster: Vec<u32>,
    /// Who runs each block (`grid .. on`): units, bank groups and so on, a dimension for each of the grid's.
    pub on: Option<ElementPlacement>,
    /// On a PIM target, whether it is run by the host, and not by the units.
    pub host: bool,
    /// What one block does.
    pub body: Region,
}

impl Kernel {
    /// Where the planner is to put `tile`, if anyone says so.
    pub fn pin(&self, tile: Tile) -> Option<&[u64]> {
        self.pins.iter().find(|(t, _)| *t == tile).map(|(_, at)| at.as_slice())
    }
}
