//! Tile IR to PTO text: one function a kernel.
//!
//! * The grid is a loop from `get_block_idx` in steps of `get_block_num`, so that any number of cores runs all blocks.
//! * Mutable scalars become values that loops and branches carry.
//! * A window of a tensor is a part of a view of all of it where its strides are the tensor's own, else a view of its
//!   own from where it begins.
//! * An `assert` is a trap. Other run-time checks are left out: the text has none. What the dialect has no words for is
//!   E1405 at its place.

mod accumulators;
mod build;
mod bytes;
mod control;
mod dead;
mod instructions;
mod numbering;
mod row_views;
mod scalars;
mod schedule;
mod sync;
mod tiles;
mod views;

use crate::attr::{Attr, AttrValue, Source};
use crate::lexer::Word;
use crate::tree::{BlockArg, Function, Item, Module, Op, Region};
use crate::types::{Type, Typed, element_word};
use crate::verify::constraints::{self, Arch};
use build::Names;
pub(crate) use build::{cleaned, unnumbered};
use cranelift_entity::EntityRef;
pub use instructions::is_written;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::analysis::poly::{Definitions, Poly};
use ptoc_ir::tile::{Kernel, SyncMode, TensorDir, TensorId, Tile, Ty, Value, Var};
use ptoc_isa::Loc;
use rustc_hash::{FxHashMap, FxHashSet};

/// Who places tiles and orders the pipes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// PTOAS does both.
    Automatic,
    /// The text places, and PTOAS orders: tiles have addresses, and nothing else is said of order.
    Placed,
    /// The text does both: tiles have addresses, and flags stand where they are needed.
    Explicit,
}

/// The version of PTOAS whose spelling the text has.
const VERSION: &str = "a56b18c3";

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// PTO text.
    Text,
    /// C++, which [`crate::cpp`] makes of the tree.
    Cpp,
}

/// Where a place in the source is, as the text says it.
pub type Places<'p> = dyn Fn(Span) -> Option<Source> + 'p;

/// The module of one kernel. At [`Level::Explicit`] its tiles have addresses and its pipes are ordered, at
/// [`Level::Placed`] the former.
pub fn write(kernel: &Kernel, form: Form, level: Level, places: &Places<'_>) -> Result<Module, Box<Diagnostic>> {
    let begun = accumulators::begin(kernel);
    let kernel = begun.as_ref().unwrap_or(kernel);
    let shared = if form == Form::Text && level != Level::Automatic { bytes::shared(kernel) } else { None };
    let kernel = shared.as_ref().unwrap_or(kernel);
    let function = Writer::new(kernel, form, level, places).function()?;
    let mut attrs = Vec::new();
    if ["a2a3", "a5"].contains(&kernel.target.as_str()) {
        let value = Some(AttrValue::Str(Word::new(format!("\"{}\"", kernel.target))));
        attrs.push(Attr { name: Word::new_static("pto.target_arch"), value, span: kernel.span });
    }
    Ok(Module { attrs, items: vec![Item::Function(function)], written: true, span: kernel.span })
}

type Res<T> = Result<T, Box<Diagnostic>>;

/// What the dialect has no words for.
fn unsaid<T>(span: Span, what: impl Into<String>) -> Res<T> {
    let what = what.into();
    Err(Box::new(Diagnostic::error(codes::PTO_UNSAID, span, format!("PTO text has no words for {what}"))))
}

/// Constants stand by type and value, whatever asked for them first.
fn constant_order(op: &Op) -> (String, i128, String) {
    match op.attr("value").and_then(|a| a.value.as_ref()) {
        Some(AttrValue::Int(n, ty)) => (ty.as_ref().map(ToString::to_string).unwrap_or_default(), *n, String::new()),
        other => ("other".into(), 0, other.map(ToString::to_string).unwrap_or_default()),
    }
}

struct Writer<'k> {
    kernel: &'k Kernel,
    form: Form,
    level: Level,
    /// Whether tiles are declared above all else, as bytes of their memory.
    bytes: bool,
    places: &'k Places<'k>,
    defs: Definitions<'k>,
    /// Values that are written once, though they are computed several times.
    numbering: numbering::Numbering,
    /// Open regions, the function's first.
    regions: Vec<Vec<Op>>,
    /// Constants, which stand at the beginning.
    constants: Vec<Op>,
    constant_names: FxHashMap<(String, String), Word>,
    /// Numbers of type `index` among them, and conditions, which are 0 or 1.
    constant_values: FxHashMap<Word, i64>,
    names: Names,
    values: FxHashMap<Value, Word>,
    /// Values that are defined in each open region.
    visible: Vec<Vec<Value>>,
    polys: FxHashMap<Value, Option<Poly>>,
    /// Sums of values that were written where something asked for them, in each open region.
    sums: Vec<Vec<(Poly, Word)>>,
    vars: FxHashMap<Var, Word>,
    /// How often each variable is asked for.
    reads: FxHashMap<Var, usize>,
    tiles: FxHashMap<(Tile, u32), tiles::TileState>,
    /// Elements of arrays where tiles are bytes: one that nothing is in is none of the text's.
    elements: FxHashSet<Word>,
    /// Tiles of arrays whose number is no constant, in each open region.
    chosen: Vec<FxHashMap<tiles::Chosen, Word>>,
    tensors: FxHashMap<TensorId, Word>,
    /// Views of whole tensors.
    views: FxHashMap<(TensorId, views::Way), Word>,
    /// Tensors that are used by pointers to their elements, too.
    in_pieces: FxHashSet<TensorId>,
    /// Values that may have no use: views that say what an array is, numbers of blocks that say what the grid is.
    declared: FxHashSet<Word>,
    events: FxHashMap<ptoc_ir::tile::Event, u32>,
    /// How each tile is used.
    uses: FxHashMap<Tile, tiles::Uses>,
    /// Values that are seen not to be negative.
    naturals: FxHashSet<Value>,
    /// The statement that is being written.
    span: Span,
}

impl<'k> Writer<'k> {
    fn new(kernel: &'k Kernel, form: Form, level: Level, places: &'k Places<'k>) -> Writer<'k> {
        let defs = Definitions::new(kernel);
        Writer {
            kernel,
            form,
            level,
            bytes: form == Form::Text && level != Level::Automatic,
            places,
            uses: tiles::uses(kernel, &defs),
            defs,
            numbering: numbering::Numbering::of(kernel),
            regions: vec![Vec::new()],
            constants: Vec::new(),
            constant_names: FxHashMap::default(),
            constant_values: FxHashMap::default(),
            names: Names::default(),
            values: FxHashMap::default(),
            visible: vec![Vec::new()],
            polys: FxHashMap::default(),
            sums: vec![Vec::new()],
            vars: FxHashMap::default(),
            reads: control::reads_of(kernel),
            tiles: FxHashMap::default(),
            elements: FxHashSet::default(),
            chosen: vec![FxHashMap::default()],
            tensors: FxHashMap::default(),
            views: FxHashMap::default(),
            in_pieces: FxHashSet::default(),
            declared: FxHashSet::default(),
            events: FxHashMap::default(),
            naturals: kernel.dims.values().map(|d| d.value).collect(),
            span: kernel.span,
        }
    }

    fn function(&mut self) -> Res<Function> {
        self.fits()?;
        let params = self.params()?;
        self.statements(&self.kernel.prologue)?;
        self.grid()?;
        self.declare()?;
        self.simple("func.return", &[]);
        self.row_views();
        let mut ops = std::mem::take(&mut self.constants);
        ops.sort_by_cached_key(constant_order);
        ops.append(&mut self.regions[0]);
        dead::hoist(&mut ops, &self.declared);
        dead::eliminate(&mut ops, &self.declared, &self.elements);
        schedule::late(&mut ops, &self.declared);
        schedule::place(&mut ops, &mut FxHashMap::default());
        dead::order(&mut ops);
        dead::renumber(&mut ops);
        if self.form == Form::Text {
            self.verifies(&ops, &mut FxHashSet::default())?;
        }
        let entry = Attr { name: Word::new_static("pto.entry"), value: None, span: self.kernel.span };
        Ok(Function {
            visibility: None,
            name: Word::new(build::function_name(&self.kernel.name)),
            name_span: self.kernel.span,
            params,
            results: Vec::new(),
            attrs: vec![entry],
            body: Some(Region { args: Vec::new(), ops }),
            span: self.kernel.span,
            source: (self.places)(self.kernel.span),
        })
    }

    /// What PTOAS's verifier asks of single operations. `allocated` has the tiles in front that are allocated, and
    /// views of them.
    fn verifies(&self, ops: &[Op], allocated: &mut FxHashSet<Word>) -> Res<()> {
        let arch = match self.kernel.target.as_str() {
            name @ ("a2a3" | "a5") => Arch::named(name),
            _ => return Ok(()),
        };
        for op in ops {
            let types: Vec<Option<Type>> = op.operands.iter().map(|o| o.ty.as_ref().map(|t| t.ty.clone())).collect();
            if let Err(d) = constraints::check(op, &types, Some(arch), constraints::Text::Written) {
                let message = format!("PTOAS refuses what is written of this: {}", d.message);
                let d = Diagnostic::error(codes::PTO_UNSAID, op.span, message);
                let note = "sizes are those of buffers, whose rows are padded to 32 bytes; C++ may have a form for it";
                return Err(Box::new(d.with_note(format!("by its verifier at {VERSION}: {note}"))));
            }
            let operand = op.operands.first().map(|o| &o.value.name);
            let is_view = op.row.name == "pto.treshape" && operand.is_some_and(|name| allocated.contains(name));
            if is_view || op.row.name == "pto.alloc_tile" {
                allocated.extend(op.results.iter().map(|r| r.name.clone()));
            }
            if op.row.name == "pto.set_validshape" && operand.is_none_or(|name| !allocated.contains(name)) {
                let what = "a column that is cut out of a tile, and of which as much is valid as the launch says";
                let d = Diagnostic::error(codes::PTO_UNSAID, op.span, format!("PTO text has no words for {what}"));
                let note = "it would be computed with as a row, and `pto.set_validshape` takes no view of a part";
                return Err(Box::new(d.with_note(format!("by PTOAS's verifier at {VERSION}: {note}"))));
            }
            op.regions.iter().try_for_each(|r| self.verifies(&r.ops, allocated))?;
        }
        Ok(())
    }

    /// What is known of the whole kernel that the dialect does not have.
    fn fits(&self) -> Res<()> {
        let kernel = self.kernel;
        for (_, tile) in &kernel.tiles {
            if Loc::UNIT.contains(&tile.ty.loc) || crate::types::loc_word(tile.ty.loc).is_none() {
                return unsaid(tile.span, format!("tiles in {}", tile.ty.loc));
            }
            if tile.ty.layout.is_some() {
                return unsaid(
                    tile.span,
                    format!("the layout of `{}`: a tile's order is row- or column-major", tile.name),
                );
            }
        }
        if let Some((_, role)) = kernel.roles.iter().next() {
            return unsaid(role.span, "roles: a function issues its instructions in one order");
        }
        for (_, tensor) in &kernel.tensors {
            if tensor.dir == TensorDir::Scratch {
                return unsaid(tensor.span, "memory of its own: this is moved through global memory");
            }
            if tensor.place.is_some() {
                return unsaid(tensor.span, "where a tensor is in a memory with units");
            }
        }
        if self.level != Level::Explicit && kernel.sync == SyncMode::Manual {
            let d = Diagnostic::error(
                codes::PTO_UNSAID,
                kernel.span,
                "text of levels 2 and `placed` has no flags, and the author of this kernel orders the pipes",
            );
            return Err(Box::new(d.with_help("write text of level 3: `--pto-level 3`")));
        }
        self.addresses_fit()
    }

    fn params(&mut self) -> Res<Vec<BlockArg>> {
        let mut params = Vec::new();
        let span = self.kernel.span;
        let arg = |name: Word, ty: Type, span| BlockArg { name, span, ty: Some(Typed { ty, span }), attrs: Vec::new() };
        for (id, tensor) in &self.kernel.tensors {
            let Some(element) = element_word(tensor.dtype) else {
                return unsaid(tensor.span, format!("elements of {}", tensor.dtype));
            };
            let name = self.names.give(&tensor.name);
            self.tensors.insert(id, name.clone());
            params.push(arg(name, Type::Ptr(Word::new_static(element)), tensor.span));
        }
        for (_, dim) in &self.kernel.dims {
            let name = self.names.give(&dim.name);
            self.values.insert(dim.value, name.clone());
            self.visible[0].push(dim.value);
            params.push(arg(name, Type::Index, dim.span));
        }
        for scalar in &self.kernel.scalars {
            let name = self.names.give(&scalar.name);
            self.values.insert(scalar.value, name.clone());
            self.visible[0].push(scalar.value);
            params.push(arg(name, self.ty(scalar.value, span)?, scalar.span));
        }
        Ok(params)
    }

    /// The type of a scalar.
    fn ty(&self, value: Value, span: Span) -> Res<Type> {
        self.scalar_type(self.kernel.values[value].ty, span)
    }

    fn scalar_type(&self, ty: Ty, span: Span) -> Res<Type> {
        match ty {
            Ty::Index => Ok(Type::Index),
            // Integers of `arith` have no sign: operations have.
            Ty::D(dtype) if dtype.is_int() => Ok(Type::Element(Word::new(format!("i{}", 8 * dtype.size())))),
            Ty::D(dtype) => match element_word(dtype) {
                Some(word) => Ok(Type::Element(Word::new_static(word))),
                None => unsaid(span, format!("numbers of {dtype}")),
            },
        }
    }

    /// The name of a value that is defined.
    fn value(&self, value: Value) -> Res<Word> {
        match self.values.get(&value) {
            Some(name) => Ok(name.clone()),
            None => unsaid(self.span, format!("the value v{} here", value.index())),
        }
    }

    fn poly(&mut self, value: Value) -> Option<Poly> {
        let defs = &self.defs;
        self.polys.entry(value).or_insert_with(|| defs.poly(value)).clone()
    }
}
