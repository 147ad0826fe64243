//! Elaboration: one instance of a kernel, from syntax tree to tile IR in one walk.
//!
//! Static things are evaluated ([`ptoc_values::Val`]), scalars and tiles become IR, functions are inlined. An error is
//! reported once and turns into [`Val::Poison`] or [`ErrorReported`]; what uses it stays silent.

mod absent;
mod asserts;
mod assign;
mod builtins;
mod called;
mod calls;
mod cells;
mod clauses;
mod closures;
mod control;
mod convert;
mod copies;
mod cut_blocks;
mod deduce;
mod destination;
mod elements;
mod emit;
mod exchanged;
mod expr;
mod fuel;
mod gathers;
mod in_place;
mod inline;
mod inst;
mod ints;
mod kernel;
pub(crate) mod labels;
mod layouts;
mod local;
mod masks;
mod mma;
mod names;
mod outcome;
mod overflow;
mod params;
mod pins;
mod place;
mod recast;
mod records;
mod retyped_bits;
mod sample;
mod scalars;
mod signature;
mod size_names;
mod slices;
mod statics;
mod stmt;
mod sync;
mod tensors;
mod threads;
mod tile_windows;
mod tileops;
mod tiles;
mod types;
mod views;
mod windows;

pub use emit::FailingTest;
pub use labels::count;
pub use names::{Fact, NameFact, TileFact};
pub use outcome::ElaborationOutcome;
pub use place::on_host;
pub use ptoc_values::Bindings;
pub use scalars::{arith, comparison};
pub use signature::{ArgDim, ScalarArg, TensorArg, is_tensor};
pub use tensors::ArgLayout;

use ptoc_diagnostics::{Code, Diagnostic, Span};
use ptoc_ir::analysis::facts::Facts;
use ptoc_ir::tile::{Builder, Label, Tile, Value, Var};
use ptoc_isa::Target;
use ptoc_names::{ItemId, ModuleId, Modules};
use ptoc_syntax::ast::{Expr, ItemKind, Name};
use ptoc_values::{Env, Val};
use rustc_hash::FxHashMap;

/// The problem was reported (or the code waits for a dimension): unwind to the statement.
#[derive(Clone, Copy, Debug)]
pub struct ErrorReported;

/// Result of everything that can fail with a diagnostic.
pub type ElabResult<T> = Result<T, ErrorReported>;

/// Depth of inlined calls.
pub const MAX_CALLS: usize = 64;

/// Values that a record or a closure is made of: what walks through them takes as many steps.
const MAX_PARTS: usize = 4096;

/// What the valid shape of a tile is at this point of the program.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Valid {
    /// These rows and columns.
    Known(Value, Value),
    /// It depends on the path; the span is where the paths met.
    Unknown(Span),
    /// It depends on scalars of the role at this place, which has ended.
    InRole(Span),
    /// What wrote the tile was refused: reads of it stay silent.
    Poison,
}

/// A parameter of a function that is being inlined, and what the call gives for it.
pub(crate) struct Argument {
    pub name: Name,
    /// The parameter's name, where it is declared.
    pub declared: Span,
    /// The argument.
    pub at: Span,
    pub given: Given,
}

/// What a parameter stands for, for one who writes to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Given {
    /// What the caller can name, or no tile.
    Place,
    /// A tile that a call computes, there: nobody outside the function can read it.
    Computed(Span),
    /// A tile for a scalar: the function maps over its elements.
    Mapped,
}

/// Where `return` goes while a function is inlined.
pub(crate) struct Inlined {
    /// Leaves here.
    pub label: Option<Label>,
    /// Results are stored here.
    pub slots: Vec<Var>,
    /// The names of those, where they are the fields of a record.
    pub fields: Option<Vec<Name>>,
    /// The value of a `return` that was the last statement.
    pub result: Option<Val>,
    /// A jump to `label` was translated.
    pub left: bool,
}

/// The state of one elaboration.
pub struct Elaborator<'a> {
    /// The program text.
    pub modules: &'a Modules,
    /// The machine.
    pub target: &'a Target,
    /// What the caller fixes.
    pub bindings: &'a Bindings,
    /// The kernel in tile IR, as far as it is built.
    pub b: Builder,
    /// Errors, warnings and notes, in the order of discovery.
    pub diags: Vec<Diagnostic>,
    /// Errors to be reported if there is no other.
    pub(crate) deferred: Vec<Diagnostic>,
    /// Names in scope.
    pub env: Env,
    /// What is known of scalars.
    pub facts: Facts,
    /// Valid shapes of tiles, by storage.
    pub(crate) valid: FxHashMap<Tile, Valid>,
    /// Reads of valid shapes since the innermost loop began: for the back-edge check.
    pub(crate) valid_reads: Vec<(Tile, Valid, Span)>,
    /// The module whose text is elaborated.
    pub module: ModuleId,
    /// Functions being inlined; a closure has no item.
    pub calls: Vec<Option<ItemId>>,
    /// Those in whose text this is, and that call each other by name, from the outermost: in a closure, those around
    /// the place where it is written.
    pub around: Vec<ItemId>,
    /// Their parameters that are given.
    pub(crate) arguments: Vec<Vec<Argument>>,
    pub(crate) inlined: Vec<Inlined>,
    /// Names that arguments of the calls around have bound, by where they are declared, and those arguments.
    pub(crate) deduced: Vec<(Span, Span)>,
    /// Variables whose values closures around have captured, by where they are defined.
    pub(crate) captured_variables: Vec<Span>,
    /// Shapes at `break`, `continue` and early `return`s, by where they lead.
    pub(crate) exits: Vec<(Label, control::Shapes)>,
    /// Loops around, innermost last.
    pub(crate) loops: Vec<Label>,
    /// `stages` of the pipeline whose body's tiles are being declared.
    pub(crate) stages: u32,
    pub(crate) grid_done: Option<Span>,
    /// `let` statements of one name, by the name's place: for the repair to `var`.
    pub(crate) lets: FxHashMap<Span, Span>,
    /// The first name that has no value.
    pub(crate) unknown: Option<(Name, Span)>,
    /// Tensors that the kernel writes, by name: for the repair of a missing direction.
    pub(crate) stored: Vec<Name>,
    /// Work on tiles or memory was emitted: `grid` can no longer come.
    pub(crate) worked: bool,
    /// What is elaborated belongs to the launch, not to a block.
    pub in_prologue: bool,
    /// It is a program, and no kernel.
    pub(crate) in_program: bool,
    /// Data decide whether a program comes to what is elaborated: a test that fails there ends it when it does.
    pub undecided: bool,
    /// The test that fails in what is [undecided](Self::undecided).
    pub failing: Option<FailingTest>,
    /// Steps of compile-time evaluation.
    pub(crate) fuel: fuel::Fuel,
    /// Dimensions that were needed statically, with their values.
    pub specialised: Vec<(Name, i64)>,
    /// A dimension that was needed and is not known: elaboration goes on, but nothing is produced.
    pub waits: Vec<(Name, Span)>,
    /// A slice for which the check waits, since only sizes say how long it is at most.
    pub unbounded: Option<Span>,
    /// Dimensions by their values.
    pub dims: FxHashMap<Value, Name>,
    /// Tensors of the signature, and of a program, as they were declared.
    pub(crate) declared: FxHashMap<ptoc_ir::tile::TensorId, ptoc_values::View>,
    pub(crate) place: PlaceMode,
    /// `rest = [..]` of `#[place(..)]`.
    pub(crate) rest: Option<Expr>,
    /// The vector among the operands of the instruction that is looked at, if a column stands beside it.
    pub(crate) vector: Option<Span>,
    /// How the author calls the operands of the instruction that is looked at.
    pub(crate) operand_names: Vec<(Span, String)>,
    /// `tmp = t` of the instruction that is made.
    pub(crate) given_scratch: Option<(Val, Span)>,
    /// Tiles whose `TASSIGN` was refused; of some it is not known which they are.
    pub(crate) refused_places: Vec<Option<Tile>>,
    /// Events, rings and roles.
    pub(crate) sync: sync::SyncState,
    /// Accumulator dtypes that were refused: what follows from them is not reported again.
    pub(crate) refused: Vec<ptoc_tensor::DType>,
    /// Locations that the target does not have were named and refused, those of the matrix unit together.
    pub(crate) absent: Vec<ptoc_isa::Loc>,
    /// Dtypes that the target does not have were named and refused.
    pub(crate) absent_dtypes: Vec<ptoc_tensor::DType>,
    /// Where that is told.
    pub absent_places: Vec<(ptoc_tensor::DType, Option<Span>)>,
    /// The kernel's static parameters that are dtypes.
    pub(crate) parameters: Vec<(Name, ptoc_tensor::DType, Span)>,
    /// An instruction of units was refused, as they are not there: the others of the kernel have the same reason.
    pub(crate) elsewhere: bool,
    /// Global memory that a hop of a path has written and the next one reads.
    pub(crate) pending_gm: Option<ptoc_values::View>,
    /// Tiles that were told to have no room for a block.
    pub(crate) wrong_sizes: Vec<Tile>,
    /// Scalar arguments that were told to be no constants.
    pub(crate) told_arguments: Vec<Name>,
    /// Tiles that `Vec(view)` and the like have loaded, with the place of that and of the location's name in it.
    pub(crate) loads: Vec<(Tile, Span, Span)>,
    /// Fragments: tiles whose elements are counted through a partition's layout.
    pub(crate) patterns: FxHashMap<Tile, ptoc_values::WindowMap>,
    /// What fills a tile beyond its valid shape when it is loaded.
    pub(crate) pads: FxHashMap<Tile, f64>,
    /// Tiles that `.T` of another tile has made: how that is written, and where.
    pub(crate) transposes: FxHashMap<Tile, (String, Span)>,
    /// Valid shapes beyond which a load has padded the tile, on the path that leads here.
    pub(crate) padded_loads: FxHashMap<(Tile, Option<Value>), (Value, Value)>,
    /// What is known of sizes beyond what the symbols carry; grows with checks, shrinks at the end of a region.
    pub(crate) cx: ptoc_layout::Cx,
    /// Values as integers of layouts, as they were first seen in this region or one around it.
    pub(crate) ints: FxHashMap<Value, ptoc_layout::Int>,
    /// The order in which `ints` grew.
    pub(crate) ints_log: Vec<Value>,
    /// Indices into the rest modes of partitions, in the order of the text.
    pub(crate) rest_uses: Vec<mma::coverage::RestUse>,
    /// Layouts that `tiled_copy_tv` has made, with the patterns that they are.
    pub(crate) tv_layouts: FxHashMap<ptoc_layout::Layout, std::sync::Arc<ptoc_values::ThreadPattern>>,
    /// Parts that threads have taken, in the order of the text.
    pub(crate) thread_uses: Vec<threads::ThreadUse>,
    /// What tiled MMAs take.
    pub(crate) mma_uses: Vec<threads::MmaUse>,
    /// Variables of loops and grids from 0 to a constant: the constant, and the range's place.
    pub(crate) constant_loops: FxHashMap<Value, (i64, Span)>,
    /// How messages call the parts of blocks, whatever their names in IR are.
    pub(crate) size_names: FxHashMap<Value, String>,
    /// A `where` is false: what follows from it is not looked at.
    pub where_failed: bool,
    /// What is known of names when the walk has ended.
    pub names: Vec<NameFact>,
    /// What messages say of sizes that have no name.
    pub(crate) size_origins: FxHashMap<Value, String>,
}

/// `#[place(..)]`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlaceMode {
    /// TASSIGN and automatic placement together.
    Mixed,
    /// Every tile has a TASSIGN.
    Manual,
    /// TASSIGN is checked, then ignored.
    Auto,
    /// TASSIGN of a whole tile says where the planner is to put it.
    Planned,
}

/// The help for a float where an integer stands.
pub(crate) const FLOAT_FOR_INTEGER: &str = "write an integer; `index(..)` truncates a float";

/// A feature of a later version.
pub(crate) fn not_yet(span: Span, what: &str) -> Diagnostic {
    let d = Diagnostic::error(ptoc_diagnostics::codes::NOT_YET, span, format!("ptoc does not have {what} yet"))
        .with_label("not available in this version");
    match what == ptoc_names::builtins::NIBBLES {
        true => d.with_help("`recast<u4>(x)` counts the bytes of a tensor of u8 in elements of 4 bits (layouts.md)"),
        false => d,
    }
}

impl<'a> Elaborator<'a> {
    /// Reports an error.
    pub fn error<T>(&mut self, code: Code, span: Span, message: impl Into<String>) -> ElabResult<T> {
        self.report(Diagnostic::error(code, span, message))
    }

    /// Reports a prepared diagnostic.
    pub fn report<T>(&mut self, mut d: Diagnostic) -> ElabResult<T> {
        if d.label.is_empty()
            && let Some(label) = labels::default_label(d.code)
        {
            d.label = label.into();
        }
        if d.is_error() {
            d = self.called_from(d);
        }
        // A secondary place that is the primary one says nothing more.
        let primary = d.span;
        d.labels.retain(|l| Some(l.span) != primary);
        self.diags.push(d);
        Err(ErrorReported)
    }

    /// An error that counts if nothing else is wrong: most likely the kernel's body has the same mistake.
    pub fn defer<T>(&mut self, d: Diagnostic) -> ElabResult<T> {
        self.deferred.push(d);
        Err(ErrorReported)
    }

    /// "Not yet".
    pub fn not_yet<T>(&mut self, span: Span, what: &str) -> ElabResult<T> {
        self.report(not_yet(span, what))
    }

    /// A refusal that nobody has explained yet: a name is used before its definition, or given by `-D` and unknown.
    pub fn explain(&mut self, failed: bool) {
        let silent = failed && self.waits.is_empty() && !self.diags.iter().any(Diagnostic::is_error);
        let Some((name, span)) = self.unknown.take().filter(|_| silent) else { return };
        // An import that failed was reported where it stands, and so was an item that could not be read.
        let unread = |m: &ptoc_names::Module| {
            m.ast.items.iter().any(|i| match &i.kind {
                ItemKind::Error => true,
                ItemKind::Fn(f) => ptoc_names::resolve::damaged(&f.params, &f.statics),
                ItemKind::Kernel(k) | ItemKind::Program(k) => ptoc_names::resolve::damaged(&k.params, &k.statics),
                _ => false,
            })
        };
        if self.modules.all().any(|(_, m)| m.broken.contains(&name) || unread(m)) {
            return;
        }
        if !self.modules.misnamed() {
            let message = format!("`{name}` has no value here");
            let d = Diagnostic::error(ptoc_diagnostics::codes::UNKNOWN_NAME, span, message)
                .with_label("not known, or not yet")
                .with_note("a name can be used after its definition; types of parameters are evaluated in order");
            self.report::<()>(d).ok();
        }
    }
}
