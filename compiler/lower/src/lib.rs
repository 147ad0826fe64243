//! Code generation of loop IR: lowers placed tile IR to loop IR: every instruction once, for all emitters.
//!
//! The launch function runs the prologue with its checks and leaves the grid's extents; the block function repeats the
//! part of the prologue that the body needs (it is pure) and runs the body. Scalars become registers (`index`, `i64`
//! and `u64` in i64; narrow integers wrapped to their width after each operation; floats in f32, rounded after each
//! operation), tiles become strided matrices of the arena's spaces. Copies and products along nests of axes become
//! loops in an order of the lowering's own (`nest`).

#![forbid(unsafe_code)]

mod cells;
mod chains;
mod code;
mod contract;
mod control;
mod convert;
mod copy;
mod element;
mod elementwise;
mod f8;
mod fixpipe;
mod formula;
mod function;
mod gather;
mod inst;
mod math;
mod matrix;
mod memory;
mod mma;
mod moved;
mod named;
mod nest;
mod nibbles;
mod ops;
mod partial;
mod prologue;
mod reduce;
pub mod row_pipelining;
mod runs;
mod sorts;
mod terms;
mod watch;

pub use element::{lower_element, lower_formula};

use code::FunctionBuilder;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use memory::Memory;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::analysis::poly::Definitions;
use ptoc_ir::loops::{CheckRow, FunctionEntry, LTy, MemTy, Module, Reg, SpaceData, SpaceId, VarId};
use ptoc_ir::tile::{CheckData, CheckId, Kernel, Label, TensorDir, Tile, Ty, Value, Var};
use ptoc_isa::{Loc, Target};
use ptoc_opt::analyses::Analyses;
use ptoc_opt::contraction::Products;
use ptoc_opt::fusion::Fusion;
use ptoc_opt::grid_coarsen::Coarsening;
use ptoc_opt::grid_split::Next;
use ptoc_opt::lazy_gather::LazyGathers;
use ptoc_opt::overlap::Overlap;
use ptoc_opt::pass::RewriteUnit;
use ptoc_placement::Placement;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Lowers a kernel to loop IR. Checks that lowering adds (a gather's bounds) come along, for the kernel's table: their
/// numbers follow those that it has.
///
/// # Errors
/// What cannot be lowered: a mistake of the steps before, never the author's.
pub fn lower(
    unit: &RewriteUnit,
    analyses: Analyses<'_>,
    target: &Target,
) -> Result<(Module, Vec<CheckData>), Vec<Diagnostic>> {
    Lower::new(unit, analyses, target).run()
}

/// Lowers `kernel` so that a monitor is told of each statement that touches memory before it is executed
/// (`ptoc_interp::sanitize`). Statements stay as they are and where they are: nothing is fused, forwarded or spread, so
/// each of them has its operands in tiles. Results have the bits of [`lower`]: what would be part of one product knows
/// its size.
///
/// # Errors
/// As [`lower`].
pub fn lower_watched(kernel: &mut Kernel, placement: &Placement, target: &Target) -> Result<Module, Vec<Diagnostic>> {
    let unit = RewriteUnit::new(kernel.clone(), placement.clone());
    let mut lower = Lower::new(&unit, Analyses::none(&unit), target);
    lower.watched = Some(watch::Watched::new(&unit.kernel));
    let (module, checks) = lower.run()?;
    for data in checks {
        kernel.checks.push(data);
    }
    Ok(module)
}

/// State of one lowering.
struct Lower<'k> {
    kernel: &'k Kernel,
    placement: &'k Placement,
    target: &'k Target,
    code: FunctionBuilder,
    spaces: PrimaryMap<SpaceId, SpaceData>,
    memory: Memory,
    products: Products<'k>,
    defs: Definitions<'k>,
    /// Instructions that become one nest.
    fusion: Rc<Fusion<'k>>,
    spread: Coarsening,
    /// What the next block will read, and where this one is done with its own.
    next: &'k [Next],
    /// Gathers that leave row pointers.
    gathers: &'k LazyGathers,
    /// The rows of those that have been lowered.
    rows: FxHashMap<Tile, matrix::Matrix>,
    /// Numbers of blocks along the dimensions of the grid, if one call may run several.
    blocks: Vec<Reg>,
    values: SecondaryMap<Value, Option<Reg>>,
    vars: FxHashMap<Var, VarId>,
    labels: FxHashMap<Label, ptoc_ir::loops::Label>,
    check_rows: Vec<CheckRow>,
    check_index: FxHashMap<u32, u32>,
    /// Checks that the kernel's table does not have yet.
    new_checks: Vec<CheckData>,
    errors: Vec<Diagnostic>,
    /// The statements of which a monitor is told.
    watched: Option<watch::Watched<'k>>,
}

/// The register type of a scalar.
fn reg_ty(ty: Ty) -> LTy {
    match ty {
        Ty::Index => LTy::I64,
        Ty::D(d) => MemTy::of(d).reg(),
    }
}

impl<'k> Lower<'k> {
    fn new(unit: &'k RewriteUnit, analyses: Analyses<'k>, target: &'k Target) -> Lower<'k> {
        let RewriteUnit { kernel, placement, rows, gathers } = unit;
        Lower {
            kernel,
            placement,
            target,
            code: FunctionBuilder::new(format!("{}.launch", kernel.name), FunctionEntry::Launch, kernel.span),
            spaces: PrimaryMap::new(),
            memory: Memory::new(),
            spread: analyses.coarsening,
            next: rows.as_ref().map_or(&[], |r| &r.next),
            gathers,
            rows: FxHashMap::default(),
            blocks: Vec::new(),
            products: analyses.products,
            defs: analyses.defs,
            fusion: Rc::new(analyses.fusion),
            values: SecondaryMap::new(),
            vars: FxHashMap::default(),
            labels: FxHashMap::default(),
            check_rows: Vec::new(),
            check_index: FxHashMap::default(),
            new_checks: Vec::new(),
            errors: Vec::new(),
            watched: None,
        }
    }

    fn run(mut self) -> Result<(Module, Vec<CheckData>), Vec<Diagnostic>> {
        self.lay_out();
        self.lay_out_scratch();

        self.enter_params();
        self.region(&self.kernel.prologue);
        let results = self.kernel.grid.iter().map(|g| self.value(g.extent)).collect();
        let block = FunctionBuilder::new(format!("{}.block", self.kernel.name), FunctionEntry::Block, self.kernel.span);
        let launch = std::mem::replace(&mut self.code, block).finish(results);

        // Registers belong to one function.
        self.values.clear();
        self.vars.clear();
        self.labels.clear();
        self.enter_params();
        for dim in &self.kernel.grid {
            let index = self.code.param();
            self.values[dim.index] = Some(index);
        }
        let spread = self.spread.dims();
        if !spread.is_empty() {
            self.blocks = self.kernel.grid.iter().map(|_| self.code.param()).collect();
        }
        let needed = prologue::needed(self.kernel, &self.sizes_of_grid());
        for (stmt, wanted) in self.kernel.prologue.iter().zip(needed) {
            if wanted {
                self.stmt(stmt);
            }
        }
        self.region(&self.kernel.body);
        let after = FunctionBuilder::new("", FunctionEntry::Block, self.kernel.span);
        let block = std::mem::replace(&mut self.code, after).finish(Vec::new());
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        let arguments = self.kernel.tensors.values().filter(|t| t.dir != TensorDir::Scratch);
        let mut module = Module {
            name: self.kernel.name.clone(),
            tensors: arguments.map(|t| t.name.clone()).collect(),
            spaces: self.spaces,
            arena: 0,
            raster: self.kernel.raster,
            cluster: self.kernel.cluster.clone(),
            spread: spread.into_iter().map(|d| d as u32).collect(),
            checks: self.check_rows,
            bounds: Vec::new(),
            launch,
            block,
        };
        module.lay_out();
        Ok((module, self.new_checks))
    }

    /// Parameters that both functions have: dimensions, then scalar arguments.
    fn enter_params(&mut self) {
        for dim in self.kernel.dims.values() {
            let reg = self.code.param();
            self.values[dim.value] = Some(reg);
        }
        // All parameters first: unpacking emits code.
        let raw: Vec<Reg> = self.kernel.scalars.iter().map(|_| self.code.param()).collect();
        for (scalar, bits) in self.kernel.scalars.iter().zip(raw) {
            let reg = self.unpack(self.kernel.values[scalar.value].ty, bits);
            self.values[scalar.value] = Some(reg);
        }
    }

    /// The register of a scalar.
    fn value(&mut self, value: Value) -> Reg {
        match self.values[value] {
            Some(reg) => reg,
            None => {
                let message = format!("`{value}` is used where it is not defined");
                self.errors.push(Diagnostic::error(codes::LOWERING_FAILED, self.code.span, message));
                self.code.bits(reg_ty(self.kernel.values[value].ty), 0)
            }
        }
    }

    /// The value of an `index`, if it is known.
    fn constant(&self, value: Value) -> Option<i64> {
        self.values[value].and_then(|r| self.code.known(r))
    }

    /// Which windows of tiles overlap.
    fn overlap(&self) -> Overlap<'_> {
        Overlap { kernel: self.kernel, placement: self.placement, defs: &self.defs }
    }

    fn capacity(&self, loc: Loc) -> u64 {
        ptoc_placement::memories::capacity(self.target, loc)
    }

    /// Row of the module's check table for a check of the kernel.
    fn check_row(&mut self, check: CheckId, span: Span) -> u32 {
        self.check_row_of(check.index() as u32, span)
    }

    fn check_row_of(&mut self, id: u32, span: Span) -> u32 {
        let rows = &mut self.check_rows;
        *self.check_index.entry(id).or_insert_with(|| {
            rows.push(CheckRow { id, span });
            (rows.len() - 1) as u32
        })
    }

    /// A check of the lowering's own; returns its row.
    fn new_check(&mut self, data: CheckData) -> u32 {
        let id = (self.kernel.checks.len() + self.new_checks.len()) as u32;
        let span = data.span;
        self.new_checks.push(data);
        self.check_row_of(id, span)
    }
}
