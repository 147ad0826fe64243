//! What an expression denotes while a kernel is elaborated.

use crate::window::{View, WindowMap};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{Event, EventKind, Tile, Value, Var};
use ptoc_isa::{InstrId, Loc, Pipe, TileType};
use ptoc_names::builtins::{Builtin, Word};
use ptoc_names::{ItemId, ModuleId};
use ptoc_syntax::ast::{Closure, Name};
use ptoc_tensor::DType;
use std::rc::Rc;

/// The meaning of an expression.
#[derive(Clone, Debug)]
pub enum Val {
    /// Something about it was reported already (or waits for a dimension); whatever uses it stays silent.
    Poison,
    /// No value.
    Unit,
    /// An integer constant without a type: adopts the type that its context has.
    Int(i128),
    /// A float constant without a type.
    Float(f64),
    /// A truth value known at compile time.
    Bool(bool),
    /// A text.
    Str(String),
    /// A scalar in IR (constants with a type are scalars too).
    Scalar(Value),
    /// A dtype, location, mode word.
    Word(Word),
    /// A function.
    Fn(ItemId),
    /// `|v| v * scale`
    Closure(Rc<ClosureVal>),
    /// A built-in function.
    Builtin(Builtin),
    /// An instruction.
    Instr(InstrId),
    /// `(a, b)`
    Tuple(Vec<Val>),
    /// `(x = a, y = b)`
    Record(Rc<RecordVal>),
    /// `[a, b]`
    List(Vec<Val>),
    /// A block index, or an extent bound from a tile's type.
    Block(Rc<TileBlock>),
    /// `tiles(n, size)`
    Tiles(Rc<TilesDomain>),
    /// `lo .. hi`
    Range(Value, Value),
    /// A window of a tensor.
    View(Rc<View>),
    /// A window of blocks of which the ends of axes cut some: it is loaded, stored and copied.
    Cut(Rc<View>),
    /// A tile.
    Tile(TileVal),
    /// `tile T[n]`
    TileArray(TileArray),
    /// The result of a comparison of tiles: a packed mask, perhaps to be read the other way round.
    Mask(TileVal, bool),
    /// `Vec<f32, i, j>` used as a type.
    TileType(Rc<TileSpec>),
    /// A window of a tile through a layout: a partition, a fragment.
    Part(Rc<TilePartition>),
    /// A layout, tiler, swizzle, atom or tiled MMA. Integers, tuples and truth values are the variants above.
    Algebra(Rc<ptoc_layout::Value>),
    /// `event<P, Q>[n]`, `mbarrier<P, Q>(..)[n]`: what `let` declares.
    EventType(EventSpec),
    /// A declared event, array of events or element of one.
    Event(EventVal),
    /// `ring<P, Q>(tile T[n])`: what `let` declares.
    RingType(Rc<RingSpec>),
    /// A declared ring.
    Ring(Rc<Ring>),
    /// `_`
    Hole,
    /// `none`
    Nothing,
    /// An argument that the launch does not give (`= none`), or what is taken from it.
    Absent(Name),
}

/// Values with names, in the order in which they are written.
#[derive(Clone, Debug)]
pub struct RecordVal {
    /// The fields.
    pub fields: Vec<(Name, Val)>,
    /// See [`Val::parts`].
    parts: usize,
}

impl RecordVal {
    /// A record of these fields.
    pub fn new(fields: Vec<(Name, Val)>) -> RecordVal {
        let parts = fields.iter().map(|(_, v)| v.parts()).fold(1, usize::saturating_add);
        RecordVal { fields, parts }
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&Val> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// The names of the fields.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(n, _)| n.as_str())
    }
}

/// A closure with what its names stood for where it is written.
#[derive(Clone, Debug)]
pub struct ClosureVal {
    /// Parameters and body.
    pub closure: Closure,
    /// Names of the body, their values, and where they are defined.
    pub captured: Vec<(Name, Val, Span)>,
    /// Where those of them are defined that are variables, of which the value is captured.
    pub variables: Vec<Span>,
    /// The module in which it is written.
    pub module: ModuleId,
    /// The functions in whose text it is written: a call of one of them has no end.
    pub around: Vec<ItemId>,
    /// Where.
    pub span: Span,
    /// See [`Val::parts`].
    parts: usize,
}

impl ClosureVal {
    /// A closure that is written there, with what its names stand for.
    pub fn new(
        closure: Closure,
        captured: Vec<(Name, Val, Span)>,
        variables: Vec<Span>,
        (module, around): (ModuleId, Vec<ItemId>),
        span: Span,
    ) -> ClosureVal {
        let parts = captured.iter().map(|(_, v, _)| v.parts()).fold(1, usize::saturating_add);
        ClosureVal { closure, captured, variables, module, around, span, parts }
    }
}

/// An event as written.
#[derive(Clone, Copy, Debug)]
pub struct EventSpec {
    /// Flag or transaction barrier.
    pub kind: EventKind,
    /// The pipes: whose work it announces, and who waits for it.
    pub pipes: (Pipe, Pipe),
    /// Elements, if `[n]` was written.
    pub count: Option<u32>,
}

/// An event, or an array of them.
#[derive(Clone, Copy, Debug)]
pub struct EventVal {
    /// In IR.
    pub event: Event,
    /// An array of so many of which one must be chosen.
    pub array: Option<u32>,
    /// The element that was chosen.
    pub element: Option<Value>,
}

/// A ring as written.
#[derive(Clone, Debug)]
pub struct RingSpec {
    /// The pipes: who fills slots, who empties them.
    pub pipes: (Pipe, Pipe),
    /// The slots.
    pub slots: Slots,
}

/// The tiles of a ring.
#[derive(Clone, Debug)]
pub enum Slots {
    /// `tile T[n] at ..`, to be declared with the ring.
    New(TileSpec, Option<ptoc_syntax::ast::Expr>),
    /// A tile or an array that was declared before.
    Given(Box<Val>),
}

/// Slots with their events and the two sides' places.
#[derive(Clone, Debug)]
pub struct Ring {
    /// The source's name.
    pub name: smol_str::SmolStr,
    /// The slots: a tile or an array.
    pub slots: Val,
    /// Number of slots.
    pub count: u32,
    /// `full` and `empty`: a slot is filled, is free.
    pub events: (Event, Event),
    /// The slots that are filled and emptied next; absent for a ring of one.
    pub next: Option<(Var, Var)>,
}

/// `i in tiles(n, size)`: a dimension of at most `cap`, `len` of them valid.
#[derive(Debug)]
pub struct TileBlock {
    /// Capacity.
    pub cap: u32,
    /// Valid length, at most `cap`.
    pub len: Value,
    /// Place in the domain; absent for an extent that only sizes tiles.
    pub place: Option<BlockRange>,
}

/// Where a block lies.
#[derive(Debug)]
pub struct BlockRange {
    /// First index.
    pub start: Value,
    /// One past the last index.
    pub end: Value,
    /// Number of the block.
    pub index: Value,
    /// It is the first.
    pub first: Value,
    /// One past the domain's last index.
    pub domain: Value,
}

/// `tiles(n, size)`
#[derive(Debug)]
pub struct TilesDomain {
    /// Length of the domain.
    pub n: Value,
    /// Block size.
    pub size: u32,
    /// Number of blocks.
    pub count: Value,
}

/// A tile, or a window of one.
#[derive(Clone, Copy, Debug)]
pub struct TileVal {
    /// The storage.
    pub tile: Tile,
    /// Type of the storage.
    pub ty: TileType,
    /// Element of a tile array.
    pub element: Option<Value>,
    /// Origin of the window.
    pub origin: Option<(Value, Value)>,
    /// Rows as the program sees them (storage may be rounded up).
    pub rows: u32,
    /// Columns as the program sees them.
    pub cols: u32,
    /// Valid shape, where it is not the storage's current one.
    pub valid: Option<(Value, Value)>,
    /// A result that nothing names yet.
    pub temp: bool,
}

impl TileVal {
    /// Whether it lies in Vec in an order of its own, which copies and access to elements follow and no instruction.
    pub fn is_laid_out(&self) -> bool {
        self.ty.loc == Loc::Vec && self.ty.layout.is_some()
    }
}

/// A tile's elements through a layout.
#[derive(Clone, Debug)]
pub struct TilePartition {
    /// The tile.
    pub tile: TileVal,
    /// Quantities: the row, the column, guards.
    pub window: WindowMap,
    /// The valid shape of the tile that it was cut from: no element of it is outside. `None`: that of the capacity.
    pub within: Option<(Value, Value)>,
}

/// `let src = tile T[2]`
#[derive(Clone, Copy, Debug)]
pub struct TileArray {
    /// The storage.
    pub tile: Tile,
    /// Type of an element.
    pub ty: TileType,
    /// Rows as the program sees them.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
    /// Number of elements.
    pub count: u32,
}

/// A tile type as written, evaluated.
#[derive(Clone, Debug)]
pub struct TileSpec {
    /// The type of the storage, in whole lines or boxes of the target.
    pub ty: TileType,
    /// Rows as declared.
    pub rows: u32,
    /// Columns as declared.
    pub cols: u32,
    /// Declared valid shape.
    pub valid: (Value, Value),
    /// Array length; 1 for what is no array.
    pub count: u32,
    /// Written `T[count]`, so that its tiles are chosen by number even if there is one.
    pub array: bool,
    /// What a load puts beyond the valid shape.
    pub pad: Option<f64>,
}

impl Val {
    /// How many values it is made of, those that records and closures share counted wherever they stand.
    pub fn parts(&self) -> usize {
        match self {
            Val::Record(r) => r.parts,
            Val::Closure(c) => c.parts,
            Val::Tuple(l) | Val::List(l) => l.iter().map(Val::parts).fold(1, usize::saturating_add),
            _ => 1,
        }
    }

    /// The mask that it is: the result of a comparison, or a declared tile of `bool`; and whether it is to be read the
    /// other way round.
    pub fn as_mask(&self) -> Option<(TileVal, bool)> {
        match self {
            Val::Mask(m, negated) => Some((*m, *negated)),
            Val::Tile(t) if t.ty.dtype == DType::Bool => Some((*t, false)),
            _ => None,
        }
    }

    /// What kind of thing it is, for messages ("a tile").
    pub fn describe(&self) -> &'static str {
        match self {
            Val::Poison => "an erroneous value",
            Val::Unit => "no value",
            Val::Int(_) => "an integer",
            Val::Float(_) => "a float",
            Val::Bool(_) => "a truth value",
            Val::Str(_) => "a text",
            Val::Scalar(_) => "a scalar",
            Val::Word(Word::DType(_) | Word::Index) => "a dtype",
            Val::Word(Word::Loc(_)) => "a location",
            Val::Word(_) => "a keyword",
            Val::Fn(_) => "a function",
            Val::Builtin(_) => "a built-in function",
            Val::Instr(_) => "an instruction",
            Val::Closure(_) => "a closure",
            Val::Tuple(_) => "a tuple",
            Val::Record(_) => "a record",
            Val::List(_) => "a list",
            Val::Block(_) => "a block",
            Val::Tiles(_) => "a set of blocks",
            Val::Range(..) => "a range",
            Val::View(_) => "a window of a tensor",
            Val::Cut(_) => "a window whose blocks the end of an axis cuts",
            Val::Tile(_) => "a tile",
            Val::TileArray(_) => "an array of tiles",
            Val::Mask(..) => "a mask",
            Val::TileType(_) => "a tile type",
            Val::Part(p) if p.window.pattern.is_some() || p.window.threads.is_some() => "a partition of a tile",
            Val::Part(_) => "a part of a tile",
            Val::Algebra(v) => v.describe(),
            Val::EventType(s) if matches!(s.kind, EventKind::Barrier { .. }) => "a transaction barrier without a name",
            Val::EventType(_) => "an event without a name",
            Val::Event(e) if e.array.is_some() && e.element.is_none() => "an array of events",
            Val::Event(_) => "an event",
            Val::RingType(_) => "a ring without a name",
            Val::Ring(_) => "a ring",
            Val::Hole => "`_`",
            Val::Nothing => "`none`",
            Val::Absent(_) => "an absent argument",
        }
    }
}
