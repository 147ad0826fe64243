//! Entities of loop IR.

use super::Region;
use cranelift_entity::{PrimaryMap, entity_impl};
use ptoc_abi::Raster;
use ptoc_diagnostics::Span;
use ptoc_tensor::DType;
use smol_str::SmolStr;
use std::fmt;

/// An SSA register: `r3`. Inside `Lanes` a register may differ from lane to lane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(u32);
entity_impl!(Reg, "r");

/// A mutable scalar register: `m0`. Not accessible in `Lanes`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(u32);
entity_impl!(VarId, "m");

/// A loop or scope: `l0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(u32);
entity_impl!(Label, "l");

/// A byte space of a running block (on-chip memory, mask shadow, scratch): `s0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpaceId(u32);
entity_impl!(SpaceId, "s");

/// Register types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum LTy {
    I32,
    I64,
    F32,
    Bool,
}

impl LTy {
    /// Name in text.
    pub fn name(self) -> &'static str {
        match self {
            LTy::I32 => "i32",
            LTy::I64 => "i64",
            LTy::F32 => "f32",
            LTy::Bool => "bool",
        }
    }
}

impl fmt::Display for LTy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Types in memory, and the register type that each loads to: bool -> bool (a byte, 0 or 1); i8, u8, i16, u16, i32 ->
/// i32 (u32 is i32 with unsigned operations); i64 -> i64; f16, bf16, f32 -> f32. The 8-bit floats are what the lowering
/// calls the elements of such tiles: it reads and writes them as u8 and computes their values; but for prints of tiles
/// no statement has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum MemTy {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    I64,
    F16,
    BF16,
    F32,
    F8E4M3,
    F8E5M2,
}

impl MemTy {
    /// Storage type of an element of this dtype.
    pub fn of(dtype: DType) -> MemTy {
        match dtype {
            DType::Bool => MemTy::Bool,
            DType::I8 => MemTy::I8,
            DType::U8 => MemTy::U8,
            DType::I16 => MemTy::I16,
            DType::U16 => MemTy::U16,
            DType::I32 | DType::U32 => MemTy::I32,
            DType::I64 | DType::U64 => MemTy::I64,
            DType::F16 => MemTy::F16,
            DType::BF16 => MemTy::BF16,
            DType::F32 => MemTy::F32,
            DType::F8E4M3 => MemTy::F8E4M3,
            DType::F8E5M2 => MemTy::F8E5M2,
        }
    }

    /// Every one that loads and stores have.
    pub const ALL: [MemTy; 10] = [
        MemTy::Bool,
        MemTy::I8,
        MemTy::U8,
        MemTy::I16,
        MemTy::U16,
        MemTy::I32,
        MemTy::I64,
        MemTy::F16,
        MemTy::BF16,
        MemTy::F32,
    ];

    /// Name in text.
    pub fn name(self) -> &'static str {
        match self {
            MemTy::Bool => "bool",
            MemTy::I8 => "i8",
            MemTy::U8 => "u8",
            MemTy::I16 => "i16",
            MemTy::U16 => "u16",
            MemTy::I32 => "i32",
            MemTy::I64 => "i64",
            MemTy::F16 => "f16",
            MemTy::BF16 => "bf16",
            MemTy::F32 => "f32",
            MemTy::F8E4M3 => "f8e4m3",
            MemTy::F8E5M2 => "f8e5m2",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<MemTy> {
        MemTy::ALL.into_iter().chain([MemTy::F8E4M3, MemTy::F8E5M2]).find(|ty| ty.name() == name)
    }

    /// Bytes.
    pub fn size(self) -> u32 {
        match self {
            MemTy::Bool | MemTy::I8 | MemTy::U8 | MemTy::F8E4M3 | MemTy::F8E5M2 => 1,
            MemTy::I16 | MemTy::U16 | MemTy::F16 | MemTy::BF16 => 2,
            MemTy::I32 | MemTy::F32 => 4,
            MemTy::I64 => 8,
        }
    }

    /// The register type of its values.
    pub fn reg(self) -> LTy {
        match self {
            MemTy::Bool => LTy::Bool,
            MemTy::I8 | MemTy::U8 | MemTy::I16 | MemTy::U16 | MemTy::I32 => LTy::I32,
            MemTy::I64 => LTy::I64,
            MemTy::F16 | MemTy::BF16 | MemTy::F32 | MemTy::F8E4M3 | MemTy::F8E5M2 => LTy::F32,
        }
    }

    /// `f8e4m3` or `f8e5m2`.
    pub fn is_f8(self) -> bool {
        matches!(self, MemTy::F8E4M3 | MemTy::F8E5M2)
    }
}

/// A register's type and origin.
#[derive(Clone, Debug, PartialEq)]
pub struct RegData {
    /// The type.
    pub ty: LTy,
}

/// A mutable scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct VarData {
    /// The type.
    pub ty: LTy,
}

/// A byte space: `size` bytes at `offset` of the block's arena, both multiples of 64.
#[derive(Clone, Debug, PartialEq)]
pub struct SpaceData {
    /// `Vec`, `Left`, `Vec.mask`, `gm0`, `partials`, ...
    pub name: SmolStr,
    /// Offset in the arena.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// A row of the check table: what a failed `check` means is kept outside the code.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckRow {
    /// Index of the tile-IR check.
    pub id: u32,
    /// The source.
    pub span: Span,
}

/// By what one thing that a statement of the source touches is in bounds. Rows are about statements of tile IR: what
/// the lowering makes of one touches no more than the statement does.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundsRow {
    /// The tensor, the tile, or the instruction that asks something of its operands.
    pub what: SmolStr,
    /// By what.
    pub by: Bounded,
    /// The statement.
    pub span: Span,
    /// Where the statement stands, for those who read the text: spans mean nothing without the sources.
    /// [`Module::locate`] sets it.
    pub place: Option<SourcePosition>,
}

/// A place of the source in numbers that an editor shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePosition {
    /// The file, if it is not the kernel's.
    pub file: Option<SmolStr>,
    /// Line, from 1.
    pub line: u32,
    /// Column in Unicode scalars, from 1.
    pub column: u32,
}

/// By what an access is in bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bounded {
    /// It follows from the launch, and from conditions, loops and checks of the kernel.
    Proof,
    /// In part from intervals of mutable variables.
    Intervals,
    /// These rows of the check table stand in front of it, for what does not follow.
    Checks(Vec<u32>),
}

/// How a function is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionEntry {
    /// The prologue: checks the launch and leaves the grid's extents in the results.
    Launch,
    /// One block.
    Block,
}

/// One function.
#[derive(Clone, Debug)]
pub struct Func {
    /// `add.launch`, `add.block`
    pub name: SmolStr,
    /// Launch or block.
    pub entry: FunctionEntry,
    /// Inputs: one i64 register each, in the order of the launch record: dimensions, then scalar arguments (f32 as
    /// bits in the low half, and so on), then (block functions) the block's grid coordinates, then, where blocks join
    /// ([`Module::spread`]), the number of blocks along each dimension of the grid, at least 1.
    pub params: Vec<Reg>,
    /// Results of a launch function: the grid's extents. Empty for a block function.
    pub results: Vec<Reg>,
    /// Registers.
    pub regs: PrimaryMap<Reg, RegData>,
    /// Mutable scalars.
    pub vars: PrimaryMap<VarId, VarData>,
    /// Labels.
    pub labels: PrimaryMap<Label, ()>,
    /// The code.
    pub body: Region,
}

/// A kernel lowered: both functions, the arena's spaces.
#[derive(Clone, Debug)]
pub struct Module {
    /// The kernel's name.
    pub name: SmolStr,
    /// Names of the tensors, in the order of the pointer table.
    pub tensors: Vec<SmolStr>,
    /// Byte spaces of one running block.
    pub spaces: PrimaryMap<SpaceId, SpaceData>,
    /// Bytes of arena that a thread needs.
    pub arena: u64,
    /// Dimensions of the grid along which one call of the block function may run several blocks, from the one of its
    /// coordinates on. None: it runs one block, and has no parameters for more.
    pub spread: Vec<u32>,
    /// The order in which blocks start, if it is not that of the grid's dimensions.
    pub raster: Option<Raster>,
    /// Blocks of a cluster along each dimension of the grid; empty for none.
    pub cluster: Vec<u32>,
    /// Checks that the code refers to by index.
    pub checks: Vec<CheckRow>,
    /// By what the accesses of the block function are in bounds. Empty: the module does not say (a monitor watches it,
    /// or it was written by hand).
    pub bounds: Vec<BoundsRow>,
    /// The launch function.
    pub launch: Func,
    /// The block function.
    pub block: Func,
}

impl Module {
    /// Lays the spaces out in the arena, one behind the other: sets their offsets, and the arena's size.
    pub fn lay_out(&mut self) {
        self.arena = 0;
        for space in self.spaces.values_mut() {
            space.offset = self.arena;
            self.arena += space.size;
        }
    }

    /// Says of each row of the table of bounds where its statement stands. `place` is asked for spans of sources only.
    pub fn locate(&mut self, place: impl Fn(Span) -> SourcePosition) {
        for row in self.bounds.iter_mut().filter(|row| row.span != Span::default()) {
            row.place = Some(place(row.span));
        }
    }
}
