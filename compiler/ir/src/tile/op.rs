//! Statements of tile IR.

use super::{CheckId, Const, Copy, Label, Mma, RoleId, SyncOp, TensorId, Tile, TileRef, Value, Var, ViewRef};
use ptoc_diagnostics::Span;
use ptoc_isa::{AtomicOp, BinOp, CmpOp, Factors, InstrId, Oob, RoundMode, UnOp};

/// Statements in order.
pub type Region = Vec<Stmt>;

/// Whether control never reaches the end of the region. Its last statement leaves a loop, an iteration or a scope, on
/// every path.
pub fn diverges(region: &[Stmt]) -> bool {
    region.last().is_some_and(|last| match &last.op {
        Op::Break(_) | Op::Continue(_) | Op::Leave(_) => true,
        Op::If(i) => diverges(&i.then) && diverges(&i.els),
        _ => false,
    })
}

/// Whether there is a jump out of a loop, an iteration or a scope in the region, at any depth.
pub fn jumps(region: &[Stmt]) -> bool {
    region
        .iter()
        .any(|s| matches!(s.op, Op::Break(_) | Op::Continue(_) | Op::Leave(_)) || s.op.regions().any(|r| jumps(r)))
}

/// A statement with the source that it stems from.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it does.
    pub op: Op,
    /// The source.
    pub span: Span,
}

/// What a statement does. `dst` is defined by it; all other values are uses.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are explained on the variants")]
pub enum Op {
    /// A constant.
    Const { dst: Value, value: Const },
    /// `dst = op a`; both of one type. On `f16` and `bf16`: computed in f32, rounded once.
    Unary { dst: Value, op: UnOp, a: Value },
    /// `dst = a op b`; all of one type.
    Binary { dst: Value, op: BinOp, a: Value, b: Value },
    /// `dst: bool = a op b`
    Compare { dst: Value, op: CmpOp, a: Value, b: Value },
    /// `dst = cond ? a : b`, both evaluated.
    Select { dst: Value, cond: Value, a: Value, b: Value },
    /// Conversion to the type of `dst`; float to integer saturates, NaN gives 0; integers wrap unless `saturate`.
    Convert { dst: Value, a: Value, round: RoundMode, saturate: bool },
    /// Same bits, other type of the same width.
    Bitcast { dst: Value, a: Value },
    /// Reads a mutable scalar.
    Get { dst: Value, var: Var },
    /// Writes a mutable scalar.
    Set { var: Var, value: Value },
    /// Reads element `offset` of a tensor.
    Load { dst: Value, tensor: TensorId, offset: Value },
    /// Writes element `offset` of a tensor.
    Store { tensor: TensorId, offset: Value, value: Value },
    /// Atomic read-modify-write; `dst` is the old value; `expected` is for `cas` only.
    Atomic { dst: Value, op: AtomicOp, tensor: TensorId, offset: Value, expected: Option<Value>, value: Value },
    /// Reads an element of a tile (PTO's GetValue), `row` and `col` inside the valid shape.
    TileGet { dst: Value, tile: TileRef, row: Value, col: Value },
    /// Writes an element of a tile (PTO's SetValue).
    TileSet { tile: TileRef, row: Value, col: Value, value: Value },
    /// Starts the life of a tile (array): poison.
    Alloc { tile: Tile },
    /// TASSIGN with a run-time address: binds `element` (None: 0) to byte `addr` of its memory. Range, alignment and
    /// type checks precede it as `Check`s.
    Assign { tile: Tile, element: Option<Value>, addr: Value },
    /// A PTO instruction.
    Inst(Box<Inst>),
    /// Moves elements along a nest of axes.
    Copy(Box<Copy>),
    /// Accumulates products along a nest of axes.
    Mma(Box<Mma>),
    /// Orders pipes. Nothing but the order of execution depends on it.
    Sync(SyncOp),
    /// Ends the launch with an error unless `cond`.
    Check { cond: Value, check: CheckId, args: Vec<Value> },
    /// Prints `parts` to standard error, in the interpreter and on the CPU alike.
    Print { parts: Vec<PrintPart> },
    /// A counted loop.
    For(Box<For>),
    /// A conditional.
    If(Box<If>),
    /// A conditional loop.
    While(Box<While>),
    /// A region that `Leave` ends (an inlined call with early returns).
    Scope(Box<Scope>),
    /// Ends the loop.
    Break(Label),
    /// Ends the iteration.
    Continue(Label),
    /// Ends the scope.
    Leave(Label),
}

/// A piece of a `print`.
#[derive(Clone, Debug, PartialEq)]
pub enum PrintPart {
    /// Text.
    Text(String),
    /// A scalar's value.
    Scalar(Value),
    /// The valid part of a tile.
    Tile(TileRef),
}

/// `for index in lo..hi`: `index` counts up by 1; nothing runs if `hi <= lo`.
#[derive(Clone, Debug, PartialEq)]
pub struct For {
    /// Name for `break` and `continue`.
    pub label: Label,
    /// Defined in the body.
    pub index: Value,
    /// First.
    pub lo: Value,
    /// One past the last.
    pub hi: Value,
    /// `pipeline(stages = n)`; 1 for an ordinary loop. No effect on the meaning.
    pub stages: u32,
    /// The body.
    pub body: Region,
}

/// `if cond {} else {}`
#[derive(Clone, Debug, PartialEq)]
pub struct If {
    /// `bool`
    pub cond: Value,
    /// When true.
    pub then: Region,
    /// When false.
    pub els: Region,
}

impl If {
    /// What the condition was where control comes past the statement, if only one of the branches lets it.
    pub fn holds_behind(&self) -> Option<bool> {
        diverges(&self.then).then_some(false).or(diverges(&self.els).then_some(true))
    }
}

/// `while`: runs `head`, then, if `cond` (defined in it) holds, `body`, and again.
#[derive(Clone, Debug, PartialEq)]
pub struct While {
    /// Name for `break` and `continue`.
    pub label: Label,
    /// Computes the condition; its values are visible in the body.
    pub head: Region,
    /// `bool`
    pub cond: Value,
    /// The body.
    pub body: Region,
}

/// A region with an early exit, or one that a role issues.
#[derive(Clone, Debug, PartialEq)]
pub struct Scope {
    /// Name for `leave`.
    pub label: Label,
    /// Who issues the statements inside; `None`: whoever issues the scope.
    pub role: Option<RoleId>,
    /// The body.
    pub body: Region,
}

/// One PTO instruction. Operands stand in the order of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Inst {
    /// Which.
    pub instr: InstrId,
    /// As the table lists them.
    pub operands: Vec<Operand>,
    /// Hidden scratch tiles that the target wants.
    pub scratch: Vec<TileRef>,
    /// Modes.
    pub attrs: InstAttrs,
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A tile.
    Tile(TileRef),
    /// A window of a tensor.
    View(ViewRef),
    /// A scalar.
    Scalar(Value),
}

/// Modes of an instruction; `None` where it has no such mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct InstAttrs {
    /// TCMP.
    pub cmp: Option<CmpOp>,
    /// TCVT; of a `stepwise` product, that each product of factors is rounded to their dtype before it is added.
    pub round: Option<RoundMode>,
    /// TCVT to an integer or an 8-bit float: saturate (the default is true for float sources, false for integer ones).
    pub saturate: Option<bool>,
    /// Scalar forms: the scalar is the left operand.
    pub reversed: bool,
    /// MGATHER, MSCATTER; the border of TSAMPLE (Clamp or Zero).
    pub oob: Option<Oob>,
    /// TSAMPLE: whether attention is multiplied into the weights of the four pixels.
    pub fold: Option<bool>,
    /// TSTORE and MSCATTER do this to what is there, element by element, instead of overwriting it: `Add`, `Max` or
    /// `Min`.
    pub atomic: Option<AtomicOp>,
    /// Products of f32: how the factors are rounded (with `round`, `Round` or `Rint`) before they are multiplied.
    pub factors: Option<Factors>,
    /// What leaves Acc: negative elements become 0 first.
    pub relu: bool,
    /// TROWSUM, TCOLSUM of floats: in the order of units in memory. Of f16 every addition rounds to the dtype, as their
    /// adders are that wide, and TROWSUM has [`SUM_LANES`] partial sums; of f32 an adder tree sums [`SUM_LANES`]
    /// elements after the other. TMATMUL adds the products of a row and a column as TROWSUM does.
    pub stepwise: bool,
}

/// Partial sums of a stepwise TROWSUM, elements of an adder tree.
pub const SUM_LANES: usize = 16;
