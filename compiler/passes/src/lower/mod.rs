//! Lowers placed tile IR to loop IR: every instruction once, for all emitters.
//!
//! The launch function runs the prologue with its checks and leaves the grid's extents; the block function repeats the
//! part of the prologue that the body needs (it is pure) and runs the body. Scalars become registers (`index`, `i64`
//! and `u64` in i64; narrow integers wrapped to their width after each operation; floats in f32, rounded after each
//! operation), tiles become strided matrices of the arena's spaces. Copies and products along nests of axes become
//! loops in an order of the lowering's own (`nest`).

mod along;
mod behind;
mod cells;
mod chains;
mod code;
mod contract;
mod control;
mod convert;
mod copy;
mod elementwise;
mod f8;
mod filled;
mod fixpipe;
mod formula;
mod forward;
mod from_table;
mod gather;
mod inst;
mod math;
mod matrix;
mod memory;
mod mma;
mod named;
mod nest;
mod ops;
mod overlap;
mod partial;
mod pattern;
mod products;
mod prologue;
mod reduce;
mod rows;
mod sooner;
mod spread;
mod terms;
mod watch;

pub use filled::unfilled;

use crate::access::Access;
use crate::bounds;
use crate::integers::poly::Definitions;
use crate::placement::Placement;
use code::Code;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use memory::Memory;
use ptoc_diagnostics::{Account, Diagnostic, Span, codes};
use ptoc_ir::loops::{Bounded, BoundsRow, CheckRow, Entry, LTy, Module, Reg, SpaceData, SpaceId, VarId};
use ptoc_ir::tile::{CheckData, CheckId, Kernel, Label, Stmt, TensorDir, Tile, TileRef, Ty, Value, Var};
use ptoc_isa::{Loc, Target};
use rustc_hash::FxHashMap;

/// Lowers `kernel`, placed by `placement`, to loop IR. Checks that lowering adds (a gather's bounds) are appended to
/// the kernel's table, which is why it is taken by mutable reference. Searches for faster code end with the steps of
/// `account`.
pub fn lower(
    kernel: &mut Kernel,
    placement: &Placement,
    target: &Target,
    account: Account<'_>,
) -> Result<Module, Vec<Diagnostic>> {
    let mut new_checks = Vec::new();
    let (bounded, verdict) = bounds::settled(kernel, target, account);
    if let Some(b) = &bounded {
        bounds::verify(b, target)?;
        kernel.checks.clone_from(&b.checks);
    }
    let bounded = bounded.as_ref().unwrap_or(kernel);
    let forwarded = forward::forwarded(bounded, placement, &products::find(bounded), account);
    let shorter = forwarded.as_ref().unwrap_or(bounded);
    let rows = rows::by_rows(shorter);
    let whole = rows.as_ref().map_or(shorter, |r| &r.kernel);
    let table = from_table::from_table(whole, placement, account);
    let (last, placement) = table.as_ref().map_or((whole, placement), |t| (&t.kernel, &t.placement));
    // What is kept of a single row is near.
    let located = table.as_ref().map(|t| &t.located);
    let sooner = rows.is_none().then(|| sooner::sooner(last, placement, located, account)).flatten();
    let (last, placement) = sooner.as_ref().map_or((last, placement), |s| (&s.kernel, &s.placement));
    let mut lower = Lower::new(last, placement, target, table.as_ref());
    if let Some(rows) = &rows {
        lower.next = &rows.next;
        lower.by_rows = Some(rows.dim);
    }
    let result = lower.run(&mut new_checks);
    for data in new_checks {
        kernel.checks.push(data);
    }
    result.map(|mut module| {
        module.bounds = told(verdict.rows, &module);
        module
    })
}

/// The verdict as the module's table. A check that was folded away holds wherever it stood.
fn told(rows: Vec<bounds::Row>, module: &Module) -> Vec<BoundsRow> {
    fn left(region: &ptoc_ir::loops::Region, out: &mut Vec<u32>) {
        for stmt in region {
            if let ptoc_ir::loops::Op::Check { check, .. } = &stmt.op {
                out.push(*check);
            }
            stmt.op.regions().for_each(|r| left(r, out));
        }
    }
    let mut checks = Vec::new();
    left(&module.block.body, &mut checks);
    let number = |id: CheckId| module.checks.iter().position(|row| row.id == id.as_u32()).map(|n| n as u32);
    let told = |row: bounds::Row| {
        let named: Vec<u32> = row.checks.into_iter().filter_map(number).filter(|n| checks.contains(n)).collect();
        let by = match row.intervals {
            _ if !named.is_empty() => Bounded::Checks(named),
            true => Bounded::Intervals,
            false => Bounded::Proof,
        };
        BoundsRow { what: row.what, by, span: row.span, place: None }
    };
    rows.into_iter().map(told).collect()
}

/// Lowers `kernel` so that a monitor is told of each statement that touches memory before it is executed
/// ([`ptoc_ir::sanitize`]). Statements stay as they are and where they are: nothing is fused, forwarded or spread, so
/// each of them has its operands in tiles. Results have the bits of [`lower`].
pub fn lower_watched(kernel: &mut Kernel, placement: &Placement, target: &Target) -> Result<Module, Vec<Diagnostic>> {
    let mut new_checks = Vec::new();
    let mut lower = Lower::new(kernel, placement, target, None);
    lower.products = products::Products::default();
    lower.spread = spread::Spread::default();
    lower.watched = Some(watch::Watched::new(kernel));
    let result = lower.run(&mut new_checks);
    for data in new_checks {
        kernel.checks.push(data);
    }
    result
}

/// State of one lowering.
struct Lower<'k> {
    kernel: &'k Kernel,
    placement: &'k Placement,
    target: &'k Target,
    code: Code,
    spaces: PrimaryMap<SpaceId, SpaceData>,
    memory: Memory,
    products: products::Products<'k>,
    defs: Definitions<'k>,
    uses: chains::Uses,
    spread: spread::Spread,
    /// What the next block will read, and where this one is done with its own.
    next: &'k [rows::Next],
    /// The dimension of the grid along which each row has a block of its own.
    by_rows: Option<usize>,
    /// Gathers whose rows are read in their tables.
    table: Option<&'k from_table::FromTable>,
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
    watched: Option<watch::Watched>,
}

/// The register type of a scalar.
fn reg_ty(ty: Ty) -> LTy {
    match ty {
        Ty::Index => LTy::I64,
        Ty::D(d) => memory::mem_ty(d).reg(),
    }
}

impl<'k> Lower<'k> {
    fn new(
        kernel: &'k Kernel,
        placement: &'k Placement,
        target: &'k Target,
        table: Option<&'k from_table::FromTable>,
    ) -> Lower<'k> {
        let located = table.map(|t| &t.located);
        let products = products::find(kernel);
        Lower {
            kernel,
            placement,
            target,
            code: Code::new(format!("{}.launch", kernel.name), Entry::Launch, kernel.span),
            spaces: PrimaryMap::new(),
            memory: Memory::new(),
            spread: spread::find(kernel, &products),
            next: &[],
            by_rows: None,
            table,
            rows: FxHashMap::default(),
            blocks: Vec::new(),
            products,
            defs: Definitions::new(kernel),
            uses: chains::Uses::new(kernel, &|s| from_table::tiles_of(kernel, located, s)),
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

    fn run(mut self, new_checks: &mut Vec<CheckData>) -> Result<Module, Vec<Diagnostic>> {
        self.lay_out();
        self.lay_out_scratch();

        self.enter_params();
        self.region(&self.kernel.prologue);
        let results = self.kernel.grid.iter().map(|g| self.value(g.extent)).collect();
        let block = Code::new(format!("{}.block", self.kernel.name), Entry::Block, self.kernel.span);
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
        let needed = prologue::needed(self.kernel);
        for (stmt, wanted) in self.kernel.prologue.iter().zip(needed) {
            if wanted {
                self.stmt(stmt);
            }
        }
        self.region(&self.kernel.body);
        let after = Code::new("", Entry::Block, self.kernel.span);
        let mut block = std::mem::replace(&mut self.code, after).finish(Vec::new());
        let mut spread: Vec<u32> = spread.into_iter().map(|d| d as u32).collect();
        if let (Some(dim), true) = (self.by_rows, spread.is_empty())
            && let Some(several) = overlap::overlapped(&block, (dim, self.kernel.grid.len()), &mut self.spaces)
        {
            block = several;
            spread.push(dim as u32);
        }

        *new_checks = std::mem::take(&mut self.new_checks);
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        let mut arena = 0;
        for space in self.spaces.values_mut() {
            space.offset = arena;
            arena += space.size;
        }
        let arguments = self.kernel.tensors.values().filter(|t| t.dir != TensorDir::Scratch);
        Ok(Module {
            name: self.kernel.name.clone(),
            tensors: arguments.map(|t| t.name.clone()).collect(),
            spaces: self.spaces,
            arena,
            raster: self.kernel.raster,
            spread,
            checks: self.check_rows,
            bounds: Vec::new(),
            launch,
            block,
        })
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

    /// The tiles that a statement touches, reads before writes.
    fn tiles_of(&self, stmt: &Stmt) -> Vec<(Access, TileRef)> {
        from_table::tiles_of(self.kernel, self.table.map(|t| &t.located), stmt)
    }

    /// The value of an `index`, if it is known.
    fn constant(&self, value: Value) -> Option<i64> {
        self.values[value].and_then(|r| self.code.known(r))
    }

    fn capacity(&self, loc: Loc) -> u64 {
        crate::memories::capacity(self.target, loc)
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
