//! Statements of loop IR, about forty operations in all.

use super::{Label, MemTy, Merge, Reg, Sort, SpaceId, VarId};
pub use ptoc_abi::PARTIALS;
use ptoc_diagnostics::Span;
use ptoc_isa::Oob;

/// Statements in order.
pub type Region = Vec<Stmt>;

/// A statement and its source.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it does.
    pub op: Op,
    /// The source.
    pub span: Span,
}

/// Where an address starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// Data of the n-th tensor of the pointer table.
    Tensor(u32),
    /// A space of the arena.
    Space(SpaceId),
}

/// Bytes from one lane to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stride {
    /// Known; 0 means that every lane uses the same address (outside `Lanes` it must be 0).
    Const(i64),
    /// An i64 register that is the same in all lanes.
    Reg(Reg),
}

/// `base + offset + lane * stride`, in bytes. `offset` is an i64 register that is the same in all lanes, unless
/// `gather` is set: then `gather` is an i64 register that may differ between lanes and is added as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addr {
    /// Base.
    pub base: Base,
    /// Byte offset.
    pub offset: Reg,
    /// Byte stride a lane.
    pub stride: Stride,
    /// Byte offset that differs between lanes.
    pub gather: Option<Reg>,
}

macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names say it")]
        pub enum $name { $($(#[$vmeta])* $variant),* }
        impl $name {
            /// Every one.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            /// Name in text.
            pub fn name(self) -> &'static str { match self { $($name::$variant => $text),* } }
            /// The one with that name.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
        }
    };
}

named! {
    /// One operand, same type.
    UnOp {
        /// Integers wrap; floats flip the sign.
        Neg = "neg",
        /// Bitwise, or logical on bool.
        Not = "not",
        /// Clears the sign (floats) or negates negatives (integers).
        Abs = "abs",
        Sqrt = "sqrt",
        Floor = "floor",
        Ceil = "ceil",
        Trunc = "trunc",
        /// To nearest, ties to even, as a float.
        Rint = "rint",
        /// f32 to the nearest f16 value (ties to even, overflow to infinity, subnormals kept), as f32.
        RoundF16 = "round_f16",
        /// f32 to the nearest bf16 value, as f32.
        RoundBf16 = "round_bf16",
    }
}

named! {
    /// Two operands of one type, same type out.
    BinOp {
        Add = "add", Sub = "sub", Mul = "mul",
        /// Floats: IEEE. Integers (signed): truncation; x/0 is -1; MIN/-1 is MIN.
        Div = "div",
        /// Unsigned integers; x/0 is all ones.
        DivU = "div_u",
        /// Integers: towards minus infinity; x/0 is -1.
        DivFloor = "div_floor",
        /// Goes with `Div`; x%0 is x. Floats: not used.
        Rem = "rem",
        RemU = "rem_u",
        /// Goes with `DivFloor`: the sign of the divisor; x%0 is x.
        RemFloor = "rem_floor",
        /// Floats: NaN if either is NaN, +0 above -0. Integers: signed.
        Max = "max",
        Min = "min",
        MaxU = "max_u",
        MinU = "min_u",
        And = "and", Or = "or", Xor = "xor",
        /// Count taken as unsigned; at the width or more: 0, or the sign for `Shr`.
        Shl = "shl", Shr = "shr", ShrU = "shr_u",
        /// f32: a * 2^b, rounded once, for the operands of [`ptoc_isa::math::scale`]; others have no result to rely on.
        Scale = "scale",
    }
}

named! {
    /// Comparisons to bool; floats: every one but `ne` is false on NaN.
    CmpOp {
        Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge",
        LtU = "lt_u", LeU = "le_u", GtU = "gt_u", GeU = "ge_u",
    }
}

named! {
    /// Changes of register type.
    Cast {
        /// i32 -> i64
        Sext = "sext",
        /// i32 -> i64
        Zext = "zext",
        /// i64 -> i32
        Wrap = "wrap",
        /// i32 or i64 -> f32, nearest even
        IToF = "i_to_f",
        /// i32 or i64 taken as unsigned -> f32, nearest even
        UToF = "u_to_f",
        /// f32 -> i32 truncating, saturating, NaN to 0
        FToI32 = "f_to_i32",
        /// f32 -> u32 (as i32 bits) truncating, saturating, NaN to 0
        FToU32 = "f_to_u32",
        /// f32 -> i64 truncating, saturating, NaN to 0
        FToI64 = "f_to_i64",
        /// f32 -> u64 (as i64 bits) truncating, saturating, NaN to 0
        FToU64 = "f_to_u64",
        /// f32 <-> i32, same bits
        Bits = "bits",
        /// bool -> i32, 0 or 1
        BToI = "b_to_i",
        /// i32 -> bool, non-zero
        IToB = "i_to_b",
    }
}

/// Where the accumulation of a [`Contract`] starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Zero.
    Zero,
    /// The value at this address for element (i, j): `addr + i * row + j * col` in bytes.
    At {
        /// Element (0, 0).
        addr: Addr,
        /// Bytes from row to row (0 for a bias row).
        row: Stride,
        /// Bytes from column to column.
        col: Stride,
        /// Type in memory.
        ty: MemTy,
    },
}

/// `d[i, j] = start[i, j] + sum over k ascending of a[i, k] * b[k, j]`, each step one fused multiply-add in f32 (or a
/// wrapping i32 multiply-add), rounded to `d`'s memory type once at the end. `d` may be the bytes of `start`; `a` and
/// `b` do not overlap `d`. An emitter may keep partial sums in `d`, where its type has all of their bits. All strides
/// are in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    /// Rows (i64 register), at least 0.
    pub m: Reg,
    /// Columns.
    pub n: Reg,
    /// Depth.
    pub k: Reg,
    /// Element (0, 0) of the result.
    pub d: Addr,
    /// Strides of d: row, column.
    pub d_strides: (Stride, Stride),
    /// Type of d in memory.
    pub d_ty: MemTy,
    /// Where to start.
    pub start: Start,
    /// Element (0, 0) of the left operand.
    pub a: Addr,
    /// Strides of a: (row, k).
    pub a_strides: (Stride, Stride),
    /// Element (0, 0) of the right operand.
    pub b: Addr,
    /// Strides of b: (k, column).
    pub b_strides: (Stride, Stride),
    /// Type of a and b in memory: F32, F16 or BF16, or for integer products I32 or I8.
    pub ab_ty: MemTy,
    /// Rows, columns and depth of the product that this one is a part of, if it is one: the parts of all blocks, and of
    /// all steps along k. An emitter that may round in more than one order chooses it by these sizes, so all parts are
    /// rounded alike, however the work is cut. A depth of 0 rounds every step.
    pub part_of: Option<[Reg; 3]>,
}

/// For each row i in turn, `d[i]` = its elements joined by `op`, in a fixed order: element j joins partial j mod 64, j
/// ascending; then partial n joins partial n + 32 for n below 32, n + 16 for n below 16, and so on down to one.
/// Partials start with what changes nothing (+0, or the extreme that every element replaces), which is also the result
/// of a row without elements. Floats are joined in f32, integers at their width; the result is rounded to `ty` once.
/// All strides are byte constants. `d[i]` may be bytes of row i.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduce {
    /// `Add`, `Max` or `Min`; `MaxU` and `MinU` on I32 and I64 that hold unsigned numbers.
    pub op: BinOp,
    /// Type of elements and results in memory: any but Bool and the 8-bit floats.
    pub ty: MemTy,
    /// Rows (i64 register), at least 0.
    pub rows: Reg,
    /// Columns.
    pub cols: Reg,
    /// The first result.
    pub d: Addr,
    /// From result to result.
    pub d_stride: i64,
    /// Element (0, 0).
    pub a: Addr,
    /// From row to row, from column to column.
    pub a_strides: (i64, i64),
}

impl Reduce {
    /// Whether there is a reduction of this type by this operation.
    pub fn exists(op: BinOp, ty: MemTy) -> bool {
        match op {
            BinOp::Add | BinOp::Max | BinOp::Min => ty != MemTy::Bool && !ty.is_f8(),
            BinOp::MaxU | BinOp::MinU => matches!(ty, MemTy::I32 | MemTy::I64),
            _ => false,
        }
    }
}

/// `d[i, j]` = element `index[i, j]` of a table, for each row i and column j. Elements of the table lie side by side,
/// and are taken bit for bit. Where there is none to take, `d[i, j]` is 0. `d` does not overlap the table; its elements
/// may be those of the indices, of the same size and in the same places, and overlap none otherwise.
///
/// With `places`, a row whose elements are neighbours in the table, all inside, may stay there: then `d` has none of
/// it. The row's place says which it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Gather {
    /// The row-major number of the first element that is missing although `oob` has no answer to it, or -1: an index
    /// outside under `Undefined`, any index into an empty table under `Clamp` and `Wrap`. i64.
    pub dst: Reg,
    /// What an index outside means.
    pub oob: Oob,
    /// Type of elements in memory: one that is loaded as it is stored, thus none of the floats, which would not keep
    /// every NaN.
    pub ty: MemTy,
    /// Rows (i64 register), at least 0.
    pub rows: Reg,
    /// Columns.
    pub cols: Reg,
    /// Element (0, 0) of the result.
    pub d: Addr,
    /// From row to row, from column to column, in bytes.
    pub d_strides: (i64, i64),
    /// The table's first element.
    pub table: Addr,
    /// Its number of elements, at least 0.
    pub total: Reg,
    /// Index (0, 0), I32 in memory.
    pub index: Addr,
    /// Indices are unsigned.
    pub unsigned: bool,
    /// From row to row, from column to column, in bytes.
    pub index_strides: (i64, i64),
    /// What is added to each index, wrapping at 32 bits: element (0, 0), and its strides. Only with `places`.
    pub plus: Option<(Addr, (i64, i64))>,
    /// Where the place of row 0 goes, and bytes from place to place. That of row i is an i64: with it as its `gather`,
    /// the table's address is that of element (i, 0), in the table or in `d`. Places do not overlap `d`, indices or the
    /// table.
    pub places: Option<(Addr, i64)>,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are explained on the variants")]
pub enum Op {
    /// A constant: the raw bits (f32 in the low half; bool 0 or 1).
    Const {
        dst: Reg,
        bits: u64,
    },
    Unary {
        dst: Reg,
        op: UnOp,
        a: Reg,
    },
    Binary {
        dst: Reg,
        op: BinOp,
        a: Reg,
        b: Reg,
    },
    /// `a * b + c` rounded once (f32).
    Fma {
        dst: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Compare {
        dst: Reg,
        op: CmpOp,
        a: Reg,
        b: Reg,
    },
    /// `cond ? a : b`
    Select {
        dst: Reg,
        cond: Reg,
        a: Reg,
        b: Reg,
    },
    Cast {
        dst: Reg,
        op: Cast,
        a: Reg,
    },
    Get {
        dst: Reg,
        var: VarId,
    },
    Set {
        var: VarId,
        value: Reg,
    },
    Load {
        dst: Reg,
        ty: MemTy,
        addr: Addr,
    },
    Store {
        ty: MemTy,
        addr: Addr,
        value: Reg,
    },
    /// In `Lanes` only: the line of this element may be wanted soon. It need not exist, and nothing is read.
    Fetch {
        ty: MemTy,
        addr: Addr,
    },
    /// In `Lanes` only: partial `lane mod 64` ([`PARTIALS`]) of the row of partials at `addr`, neighbouring elements of
    /// type `ty` (F32 or I32), becomes itself joined with `value` by `op`, as [`Reduce`] would join them; lanes that
    /// share a partial do so in ascending order. Nothing else in the body touches the row, and `addr` is the same in
    /// all lanes.
    Join {
        op: BinOp,
        ty: MemTy,
        addr: Addr,
        value: Reg,
    },
    /// In `Lanes` only: a half byte of the four bytes, a word, at `addr + lane / 8 * 4`, as 0 to 15: the low half of a
    /// byte counts first, and each bit of `lane mod 8` that is set moves the half byte's number by so many, at most to
    /// 7. Words that lanes take half bytes of are in memory whole, and `addr` is the same in all lanes.
    Nibble {
        dst: Reg,
        addr: Addr,
        moves: [u8; 3],
    },
    Atomic(Box<Atomic>),
    /// `for index in lo..hi` by `step` (a positive constant), i64.
    For(Box<For>),
    /// Independent lanes.
    Lanes(Box<Lanes>),
    If(Box<If>),
    While(Box<While>),
    Scope(Box<Scope>),
    Break(Label),
    Continue(Label),
    Leave(Label),
    /// Matrix product on memory.
    Contract(Box<Contract>),
    /// Rows of memory, each reduced to one value.
    Reduce(Box<Reduce>),
    /// Elements of a table by their numbers.
    Gather(Box<Gather>),
    /// Short lists, each put in order.
    Sort(Box<Sort>),
    /// Lists that are in order, merged.
    Merge(Box<Merge>),
    /// Ends the function with status `check` (row of the module's table) and up to four i64 arguments unless `cond`.
    Check {
        cond: Reg,
        check: u32,
        args: Vec<Reg>,
    },
    /// Before a statement of tile IR: tells the launch's monitor which one it is, and what it works with
    /// (`ptoc_abi::Monitor`). The function ends if the monitor says so. Without one it does nothing.
    Watch(Box<Watch>),
    /// Prints text, scalars (with the dtype in which to show them) and rows of memory through the runtime's hook.
    Print {
        parts: Vec<PrintPart>,
    },
}

/// The number of the half byte that a lane takes of its word ([`Op::Nibble`]).
pub fn nibble(lane: i64, moves: [u8; 3]) -> u64 {
    (0..).zip(moves).filter(|(bit, _)| lane >> bit & 1 == 1).map(|(_, by)| u64::from(by)).sum()
}

/// A piece of a print.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are explained on the variants")]
pub enum PrintPart {
    /// Text.
    Text(String),
    /// A register, shown as this memory type (u32 and u64 as unsigned).
    Scalar { value: Reg, ty: MemTy, unsigned: bool },
    /// A `rows x cols` matrix of memory.
    Matrix { addr: Addr, ty: MemTy, unsigned: bool, rows: Reg, cols: Reg, row_stride: i64, col_stride: i64 },
}

/// What a monitor is told: the statement's number and the values of `args`, then of each of `data` the address of
/// element (0, 0) and its strides, all as i64.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// The statement's number in the kernel that was lowered (the sanitizer of machine code reports by it).
    pub site: u32,
    /// Numbers, i64.
    pub args: Vec<Reg>,
    /// Memory that the monitor may read: matrices of elements with bytes from row to row, from column to column.
    pub data: Vec<(Addr, (i64, i64))>,
}

/// Atomic read-modify-write; `dst` is the old value. Integer types and f32 (`add` only).
#[derive(Clone, Debug, PartialEq)]
pub struct Atomic {
    /// The old value.
    pub dst: Reg,
    /// Which.
    pub op: ptoc_isa::AtomicOp,
    /// Unsigned comparison for max and min.
    pub unsigned: bool,
    /// Type in memory.
    pub ty: MemTy,
    /// Where.
    pub addr: Addr,
    /// For `cas`.
    pub expected: Option<Reg>,
    /// The operand.
    pub value: Reg,
}

/// A counted loop.
#[derive(Clone, Debug, PartialEq)]
pub struct For {
    /// For `break`, `continue`.
    pub label: Label,
    /// i64, defined in the body.
    pub index: Reg,
    /// First.
    pub lo: Reg,
    /// One past the last.
    pub hi: Reg,
    /// Positive.
    pub step: i64,
    /// The body.
    pub body: Region,
}

/// `count` independent iterations; `lane` is the i64 lane number. The body is straight-line: `Const`, `Unary`,
/// `Binary`, `Fma`, `Compare`, `Select`, `Cast`, `Load`, `Store`, `Fetch`, `Join`. Stores of one iteration are not
/// loads of another, except that an iteration may load and then store the very same element. Registers of the body are
/// not visible after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Lanes {
    /// Number of the lane.
    pub lane: Reg,
    /// How many, i64; 0 or less means none.
    pub count: Reg,
    /// The body.
    pub body: Region,
}

/// A conditional.
#[derive(Clone, Debug, PartialEq)]
pub struct If {
    /// bool
    pub cond: Reg,
    /// When true.
    pub then: Region,
    /// When false.
    pub els: Region,
}

/// Runs `head`; while `cond`, `body` and again.
#[derive(Clone, Debug, PartialEq)]
pub struct While {
    /// For `break`, `continue`.
    pub label: Label,
    /// Computes `cond`.
    pub head: Region,
    /// bool
    pub cond: Reg,
    /// The body.
    pub body: Region,
}

/// A region that `Leave` ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    /// For `leave`.
    pub label: Label,
    /// The body.
    pub body: Region,
}

impl Op {
    /// The regions inside, in the order in which they run.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        let (a, b) = match self {
            Op::For(x) => (Some(&x.body), None),
            Op::Lanes(x) => (Some(&x.body), None),
            Op::If(x) => (Some(&x.then), Some(&x.els)),
            Op::While(x) => (Some(&x.head), Some(&x.body)),
            Op::Scope(x) => (Some(&x.body), None),
            _ => (None, None),
        };
        a.into_iter().chain(b)
    }
}
