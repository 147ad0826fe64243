//! PTO text to the language: each function becomes a kernel, written as source text whose pieces know where they stem
//! from. The front end elaborates that text as any other, so names, types, legality on the target and all later checks
//! are those of `.tile` files, and what they report points into the `.pto` file.
//!
//! What has no counterpart is E1404 at its place. A function has one such error at most.

mod aliases;
mod arith;
mod arrays;
mod bound_views;
mod control;
mod forms;
mod grid;
mod inline;
mod instructions;
mod masks;
mod meaning;
mod names;
mod out;
mod params;
mod rebound;
mod shapes;
mod signs;
mod sync;
mod tiles;
mod unique_names;
mod values;
mod views;

use crate::lexer::Word;
use crate::tree::{BlockArg, Function, Module, Op, Operand, Region, Value};
use crate::types::{TileBuf, Type, dtype_of};
use meaning::{Meaning, Scalar};
use names::Names;
pub(crate) use names::{is_keyword, is_taken};
pub use out::Source;
use params::{Facts, Shape};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use rustc_hash::{FxHashMap, FxHashSet};

/// What was made of a module.
#[derive(Debug)]
pub struct Reading {
    /// Kernels as source text.
    pub source: Source,
    /// What could not be translated.
    pub diagnostics: Vec<Diagnostic>,
}

/// Translates a verified module. `reserved` says which names the language knows, `given` which arguments have contents
/// that the launch gives: a pointer that is only stored to keeps them where nothing is stored.
pub fn read(module: &Module, reserved: &dyn Fn(&str) -> bool, given: &[String]) -> Reading {
    let mut source = Source::new(module.span);
    let renamed = unique_names::renamed(module);
    let module = renamed.as_ref().unwrap_or(module);
    let mut diagnostics = Vec::new();
    let mut kernels = Names::default();
    let called = inline::called(module);
    let mut sizes = inline::Sizes::of(module);
    for f in module.functions() {
        let is_called = called.contains(&f.name);
        // Of what is called only the calls are judged here: the rest is read in the place of each call.
        let whole = if is_called { sizes.size(f).map(|_| None) } else { inline::expanded(f, &mut sizes) };
        let whole = match whole {
            Ok(whole) => whole,
            Err(d) if diagnostics.iter().any(|other: &Diagnostic| other.span == d.span) => continue,
            Err(d) => {
                diagnostics.push(*d);
                continue;
            }
        };
        if is_called {
            continue;
        }
        let f = whole.as_ref().unwrap_or(f);
        let remade = bound_views::remade(f);
        let f = remade.as_ref().unwrap_or(f);
        if let Err(d) = rebound::check(f) {
            diagnostics.push(*d);
            continue;
        }
        let columns = crate::row_views::remove(f);
        let f = columns.as_ref().unwrap_or(f);
        let Some(body) = &f.body else { continue };
        let mut reader = Reader::new(f, reserved, given);
        // It may have the name of a function that its text does not need.
        let name = match reader.facts.flags {
            true => kernels.give_manual(&f.name),
            false => kernels.give_kernel(&f.name),
        };
        match reader.function(f, body, &name) {
            Ok(()) => {
                if !source.text.is_empty() {
                    source.put("\n", module.span);
                }
                let end = source.text.len();
                source.insert(end, &reader.out);
            }
            Err(d) => diagnostics.push(*d),
        }
    }
    Reading { source, diagnostics }
}

/// Operations that are no instructions, and are read.
const READ: [&str; 42] = [
    "func.return",
    "func.call",
    "pto.section.cube",
    "pto.section.vector",
    "pto.addptr",
    "pto.make_tensor_view",
    "pto.partition_view",
    "pto.get_tensor_view_dim",
    "pto.load_scalar",
    "pto.store_scalar",
    "pto.alloc_tile",
    "memref.alloc",
    "pto.declare_tile",
    "pto.subset",
    "pto.subview",
    "pto.set_validshape",
    "pto.treshape",
    "pto.bitcast",
    "pto.tassign",
    "pto.tgetval",
    "pto.tsetval",
    "pto.get_block_idx",
    "pto.get_block_num",
    "pto.set_flag",
    "pto.wait_flag",
    "pto.set_flag_dyn",
    "pto.wait_flag_dyn",
    "pto.declare_eventid_array",
    "pto.eventid_array_get",
    "pto.eventid_array_set",
    "pto.record_event",
    "pto.wait_event",
    "pto.barrier",
    "pto.barrier_sync",
    "pto.print",
    "pto.trap",
    "pto.tprint",
    "pto.tprefetch",
    "scf.for",
    "scf.if",
    "scf.while",
    "scf.yield",
];

/// Operations that the language has not: random numbers whose words go to other columns, the bits of a scalar, and the
/// remainder of two floats.
const UNREAD: [&str; 3] = ["pto.trandom", "arith.bitcast", "arith.remf"];

/// Whether an operation has a translation. Some of its forms may have none.
pub fn is_read(row: &crate::ops::Op) -> bool {
    (row.name.starts_with("arith.") && !UNREAD.contains(&row.name))
        || READ.contains(&row.name)
        || row.name == "scf.condition"
        || (row.instr.is_some() && !UNREAD.contains(&row.name))
}

pub(super) type Res<T> = Result<T, Box<Diagnostic>>;

/// What is right, but has no counterpart.
pub(super) fn not_read<T>(span: Span, message: impl Into<String>) -> Res<T> {
    Err(Box::new(Diagnostic::error(codes::PTO_NOT_READ, span, message)))
}

/// The translation of one function.
pub(super) struct Reader<'r> {
    out: Source,
    /// Declarations for the beginning of the kernel, and where that is.
    top: Source,
    top_at: usize,
    /// Declarations in front of the grid, and where that is.
    head: Source,
    head_at: usize,
    names: Names,
    reserved: &'r dyn Fn(&str) -> bool,
    given: &'r [String],
    scopes: Vec<FxHashMap<Word, Vec<Meaning>>>,
    facts: Facts,
    /// The names of arguments in the language.
    arguments: FxHashMap<Word, Word>,
    /// Events that are declared: the pipes, the number, and the name.
    events: FxHashMap<(String, String, String), Word>,
    /// Tiles at constant addresses: the address and the declaration, and the name.
    placed: FxHashMap<(i128, String), Word>,
    /// The names of arrays that are declared.
    arrays: FxHashMap<usize, Word>,
    /// The number of this block, and how many there are.
    block: Option<(Word, Word)>,
    /// The loop over all blocks, if the function is one.
    grid: Option<grid::Grid<'r>>,
    /// Arrays as lists of their elements.
    lists: FxHashMap<Word, Word>,
    /// Expressions that are whole numbers in another type, which holds them or their lowest bits, and these numbers;
    /// floats that were widened, too.
    casts: FxHashMap<Word, Word>,
    /// Which tiles each region changes the valid part of.
    changed: shapes::Changed,
    /// What the branches ask for whose regions are open.
    conditions: Vec<String>,
    /// Names of variables.
    variables: FxHashSet<Word>,
    /// Those of type `index`.
    indices: FxHashSet<Word>,
    /// Whether numbers are written where they are used, and get no names.
    inlined: bool,
    /// Other shapes of tiles, by what is moved out of them: the type, the tile's expression, and its address, if any.
    reshaped: FxHashMap<Word, (TileBuf, String, Option<i128>)>,
}

impl<'r> Reader<'r> {
    fn new(f: &'r Function, reserved: &'r dyn Fn(&str) -> bool, given: &'r [String]) -> Reader<'r> {
        Reader {
            out: Source::new(f.span),
            top: Source::new(f.span),
            top_at: 0,
            head: Source::new(f.span),
            head_at: 0,
            names: Names::default(),
            reserved,
            given,
            scopes: vec![FxHashMap::default()],
            facts: Facts::of(f),
            arguments: FxHashMap::default(),
            events: FxHashMap::default(),
            placed: FxHashMap::default(),
            arrays: FxHashMap::default(),
            block: None,
            grid: None,
            lists: FxHashMap::default(),
            casts: FxHashMap::default(),
            changed: shapes::Changed::default(),
            conditions: Vec::new(),
            variables: FxHashSet::default(),
            indices: FxHashSet::default(),
            inlined: false,
            reshaped: FxHashMap::default(),
        }
    }

    fn give(&mut self, name: &str) -> Word {
        self.names.give(name, self.reserved)
    }

    // ---- values ----------------------------------------------------------------------------------------------------

    fn define(&mut self, name: &Word, meanings: Vec<Meaning>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.clone(), meanings);
        }
    }

    /// Defines what an operation gives, in one value.
    fn result(&mut self, op: &Op, meaning: Meaning) {
        if let Some(result) = op.results.first() {
            self.define(&result.name.clone(), vec![meaning]);
        }
    }

    fn meaning(&self, value: &Value) -> Res<&Meaning> {
        let found = self.scopes.iter().rev().find_map(|s| s.get(&value.name));
        match found.and_then(|m| m.get(value.index.unwrap_or(0) as usize)) {
            Some(meaning) => Ok(meaning),
            None => not_read(value.span, format!("`%{}` is of a type that is not read", value.name)),
        }
    }

    /// The operand in a slot, which the verifier or the parser has seen to.
    fn operand<'o>(&self, op: &'o Op, slot: &str) -> Res<&'o Operand> {
        match op.operand(slot) {
            Some(operand) => Ok(operand),
            None => not_read(op.span, format!("`{}` without `{slot}` is not read", op.row.name)),
        }
    }

    fn scalar(&self, value: &Value) -> Res<Scalar> {
        match self.meaning(value)? {
            Meaning::Scalar(s) => Ok(s.clone()),
            _ => not_read(value.span, format!("`%{}` is no number", value.name)),
        }
    }

    fn scalars(&self, op: &Op, slot: &str) -> Res<Vec<Scalar>> {
        op.operands_of(slot).map(|o| self.scalar(&o.value)).collect()
    }

    // ---- functions -------------------------------------------------------------------------------------------------

    fn function(&mut self, f: &'r Function, body: &'r Region, name: &Word) -> Res<()> {
        if let Some(result) = f.results.first() {
            return not_read(result.span, "a function with results is not read: a kernel has none");
        }
        if self.facts.flags {
            self.out.line("#[sync(manual)]", f.name_span);
        }
        let mut params = Vec::new();
        for param in &f.params {
            let given = self.give(&param.name);
            self.arguments.insert(param.name.clone(), given);
        }
        for param in &f.params {
            if let Some(text) = self.param(param)? {
                params.push((text, param.span));
            }
        }
        let grid = grid::of(body).filter(|grid| !self.facts.flags || grid.is_ended());
        if self.facts.blocks {
            let names = ["block_idx", "block_num"];
            // A loop over blocks is the only use of both numbers, and values of the text may have these names.
            let [index, count] = match grid {
                Some(_) => names.map(Word::new_static),
                None => names.map(|name| self.give(name)),
            };
            if grid.is_none() {
                params.push((format!("{count}: index = 1"), f.name_span));
            }
            self.block = Some((index, count));
        }
        self.out.put("kernel ", f.name_span);
        self.out.put(name, f.name_span);
        self.out.put("(", f.name_span);
        for (i, (text, span)) in params.iter().enumerate() {
            self.out.put(if i > 0 { ", " } else { "" }, *span);
            self.out.put(text, *span);
        }
        self.out.open(") {", f.name_span);
        (self.head_at, self.head) = (self.out.text.len(), self.out.at_depth());
        if grid.is_none()
            && let Some((index, count)) = self.block.clone()
        {
            self.out.line(&format!("grid ({index} in 0..{count});"), f.name_span);
        }
        self.grid = grid;
        shapes::changed(body, &mut self.changed);
        self.top_at = self.out.text.len();
        self.top = self.out.at_depth();
        self.ops(body)?;
        self.out.close("}", f.span);
        let top = self.top.clone();
        self.out.insert(self.top_at, &top);
        let head = self.head.clone();
        self.out.insert(self.head_at, &head);
        Ok(())
    }

    /// The declaration of an argument; none of one that is an extent.
    fn param(&mut self, param: &BlockArg) -> Res<Option<String>> {
        let name = self.arguments[&param.name].clone();
        let Some(ty) = &param.ty else { return Ok(None) };
        match &ty.ty {
            Type::Ptr(element) => {
                let Some(dtype) = dtype_of(element) else {
                    return not_read(ty.span, format!("elements of `{element}` are not read"));
                };
                let pointer = meaning::Pointer { argument: param.name.clone(), offset: None };
                self.define(&param.name, vec![Meaning::Pointer(pointer)]);
                let tensor = self.facts.tensors[&param.name].clone();
                let dir = tensor.direction(self.given.iter().any(|g| *g == name));
                let shape = match &tensor.shape {
                    Shape::Rows(extents) => self.product_list(extents),
                    Shape::Strided(extents, strides) => {
                        format!("({}) : ({})", self.product_list(extents), self.product_list(strides))
                    }
                    Shape::Flat => format!("{}_len", name),
                };
                Ok(Some(format!("{name}: {dir} {dtype}[{shape}]")))
            }
            Type::Index => {
                let product = Some(meaning::Product::argument(&param.name));
                let natural = self.facts.extents.contains(&param.name);
                let (text, ty) = (name.to_string(), Type::Index);
                let scalar = Scalar { text, ty, constant: None, natural, product };
                self.define(&param.name, vec![Meaning::Scalar(scalar)]);
                Ok((!natural).then(|| format!("{name}: index")))
            }
            Type::Element(element) => {
                let Some(dtype) = dtype_of(element) else {
                    return not_read(ty.span, format!("numbers of `{element}` are not read"));
                };
                let extent = self.facts.extents.contains(&param.name);
                let text = if extent { format!("{dtype}({name})") } else { name.to_string() };
                let scalar = Scalar { text, ty: ty.ty.clone(), constant: None, natural: extent, product: None };
                self.define(&param.name, vec![Meaning::Scalar(scalar)]);
                Ok((!extent).then(|| format!("{name}: {dtype}")))
            }
            other => {
                let Some((extents, element)) = params::array(other) else {
                    return not_read(ty.span, format!("an argument of type `{other}` is not read"));
                };
                let Some(dtype) = dtype_of(&element) else {
                    return not_read(ty.span, format!("elements of `{element}` are not read"));
                };
                let Some((rows, cols)) = params::rows_of(&extents) else {
                    return not_read(ty.span, "an array of this size is not read");
                };
                let shape = [rows, cols].map(|n| arith::number(n.into())).to_vec();
                self.define(&param.name, vec![Meaning::View(meaning::View::new(name.to_string(), shape))]);
                let dir = self.facts.tensors[&param.name].direction(self.given.iter().any(|g| *g == name));
                Ok(Some(format!("{name}: {dir} {dtype}[{rows}, {cols}]")))
            }
        }
    }

    /// Products with the arguments' names in the language.
    fn product_list(&self, products: &[meaning::Product]) -> String {
        let named = products.iter().map(|p| {
            let of = p.of.iter().map(|n| self.extent_text(n)).collect();
            meaning::Product { factor: p.factor, of }.text()
        });
        named.collect::<Vec<_>>().join(", ")
    }

    /// An argument, or what is computed of arguments.
    fn extent_text(&self, name: &Word) -> Word {
        let Some((op, a, b)) = self.facts.computed.get(name) else {
            return self.arguments.get(name).unwrap_or(name).clone();
        };
        let (a, b) = (self.product_list(std::slice::from_ref(a)), self.product_list(std::slice::from_ref(b)));
        let sign = match *op {
            "arith.addi" => "+",
            "arith.subi" => "-",
            "arith.floordivsi" => "/",
            "arith.maxsi" => return Word::new(format!("max({a}, {b})")),
            _ => return Word::new(format!("min({a}, {b})")),
        };
        Word::new(format!("(({a}) {sign} ({b}))"))
    }

    // ---- operations ------------------------------------------------------------------------------------------------

    fn ops(&mut self, region: &Region) -> Res<()> {
        region.ops.iter().try_for_each(|op| self.op(op))
    }

    fn op(&mut self, op: &Op) -> Res<()> {
        if !is_read(op.row) {
            return self.unread(op);
        }
        match op.row.name {
            _ if op.values.is_some() && op.row.name != "pto.tassign" => self.value_op(op),
            name if name.starts_with("arith.") => self.arith(op),
            name if name.starts_with("scf.") => self.control(op),
            "func.return" => Ok(()),
            "pto.section.cube" | "pto.section.vector" => op.regions.iter().try_for_each(|r| {
                self.enter(r, false);
                self.ops(r)?;
                self.leave(r);
                Ok(())
            }),
            "pto.addptr"
            | "pto.make_tensor_view"
            | "pto.partition_view"
            | "pto.get_tensor_view_dim"
            | "pto.load_scalar"
            | "pto.store_scalar" => self.view(op),
            "pto.alloc_tile" | "memref.alloc" | "pto.subset" | "pto.subview" | "pto.set_validshape"
            | "pto.treshape" | "pto.bitcast" | "pto.tassign" | "pto.declare_tile" | "pto.tgetval" | "pto.tsetval" => {
                self.tile_op(op)
            }
            "pto.get_block_idx" | "pto.get_block_num" => self.block_number(op),
            "pto.set_flag" | "pto.wait_flag" | "pto.set_flag_dyn" | "pto.wait_flag_dyn" | "pto.record_event"
            | "pto.wait_event" | "pto.barrier" | "pto.barrier_sync" => self.sync(op),
            "pto.declare_eventid_array" | "pto.eventid_array_get" | "pto.eventid_array_set" => self.event_numbers(op),
            "pto.print" | "pto.tprint" | "pto.trap" => self.print(op),
            _ => self.instruction(op),
        }
    }

    fn is_block_number(&self, name: &str) -> bool {
        self.block.as_ref().is_some_and(|(index, count)| [index, count].iter().any(|n| n.as_str() == name))
    }

    fn block_number(&mut self, op: &Op) -> Res<()> {
        let Some((index, count)) = self.block.clone() else { return Ok(()) };
        let name = if op.row.name == "pto.get_block_idx" { index } else { count };
        let ty = Type::Element(Word::new_static("i64"));
        let scalar = Scalar { text: format!("i64({name})"), ty, constant: None, natural: true, product: None };
        self.result(op, Meaning::Scalar(scalar));
        Ok(())
    }

    fn print(&mut self, op: &Op) -> Res<()> {
        let text = match op.row.name {
            // In a branch it is what the branch asks for that must not be, which only the launch knows.
            "pto.trap" => {
                let must_not = self.conditions.last().cloned().unwrap_or_else(|| "true".into());
                format!("assert(!({must_not}), \"`pto.trap` ends the launch\");")
            }
            "pto.tprint" => format!("print({});", self.tile(&self.operand(op, "src")?.value)?.text),
            _ => {
                let scalar = self.scalar(&self.operand(op, "scalar")?.value)?;
                let format = op.attr("format").and_then(|a| a.value.as_ref()).map(ToString::to_string);
                format!("print({}, {});", format.unwrap_or_default(), scalar.text)
            }
        };
        self.out.line(&text, op.span);
        Ok(())
    }
}
