//! Kernels with products whose tiles stay in registers: which they are. Attention, products of a part of k, problems
//! with sizes of their own, left operands that are computed. The code generator and the reference interpreter ask the
//! same, as for kernels that are one plain product ([`crate::matrix_unit`]).
//!
//! Not names decide, but what happens to tiles: a block has 16 to 128 rows; operands of products are windows of arrays,
//! or rows that were computed; everything else is done row by row: element-wise instructions, reductions of rows,
//! columns and rows that are repeated. A warp-group then has 64 rows of every tile in the registers of its threads, in
//! the one arrangement that products leave, and that they take on their left.

mod fused;
mod fusion;
mod images;
mod loads;
mod nibbles;
mod order;
mod pages;
mod pressure;
mod rearranged;
mod scalars;
mod staged;
mod steps;

pub use fusion::{seen_by, tile_registers};
pub use images::Image;
pub use loads::{OperandLoad, OperandSource, PART, PART_BYTES, filled_by};
pub use nibbles::Nibbles;
pub use order::ordered;
pub use pages::{Pages, ScatteredRows, TableRows, scattered};
pub use scalars::{Ramp, ramp};
pub use steps::{is_byte, is_direct};

use crate::contraction::{self, Uses};
use crate::matrix_unit::{self, asks};
use crate::rings::straight;
use pressure::room;
use ptoc_diagnostics::Span;
use ptoc_ir::analysis::poly::Definitions;
use ptoc_ir::tile::{Kernel, Op, Region, TensorDir, TensorId, Tile, TileRef, Value, ViewRef};
use ptoc_isa::math::Exponential;
use ptoc_isa::{Loc, Target};
use ptoc_placement::access::{AccessMode, is_private, is_whole, tile_accesses};
use ptoc_tensor::DType;
use ptoc_tensor::matrix_unit::SumProfile;
use rustc_hash::{FxHashMap, FxHashSet};

/// A kernel of that kind.
#[derive(Clone, Debug)]
pub struct FragmentKernel {
    /// The kernel whose statements they are: with products that start at what they are added to, and exponentials of
    /// differences as one instruction.
    pub kernel: Kernel,
    /// Of all operands.
    pub factors: DType,
    /// How their products are added.
    pub profile: SumProfile,
    /// How exponentials are computed.
    pub exponential: Exponential,
    /// Rows of a block: those of an instruction, or fewer.
    pub rows: u32,
    /// Operands that are windows of arrays.
    pub loads: Vec<OperandLoad>,
    /// Values of the prologue that a block needs.
    pub needed: FxHashSet<Value>,
    /// Registers of a thread for tiles that are alive at once.
    pub registers: u32,
    /// Valid rows or columns that are the same for all but the last number of a loop or of the grid: which number.
    pub blocks: FxHashMap<Value, Value>,
    /// Valid rows or columns that are all of a tile's in every block.
    pub whole: FxHashSet<Value>,
    /// Arrays that a block may store to more than once: threads wait for each other in front of that.
    pub ordered: FxHashSet<TensorId>,
    /// Conditions are checked in its blocks.
    pub checks: bool,
    /// All threads of the producer walk the statements: some bring windows, or look at tables.
    pub all_threads: bool,
    /// The source of the first product.
    pub span: Span,
}

/// Rows of an instruction, which are a warp-group's.
const UNIT_ROWS: u32 = 64;

/// How a tile lies in the registers of a warp-group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fragment {
    /// Rows of a block, by so many columns.
    Full(u32),
    /// Its rows by one column.
    Column,
    /// One row of so many columns.
    Row(u32),
}

impl Fragment {
    /// Elements of a thread.
    pub fn elements(self) -> u32 {
        match self {
            Fragment::Full(columns) => columns / 2,
            Fragment::Column => 2,
            Fragment::Row(columns) => columns / 4,
        }
    }
}

/// How a tile of a kernel whose blocks have so many rows lies; `None` if it has another shape.
pub fn fragment(kernel: &Kernel, tile: Tile, rows: u32) -> Option<Fragment> {
    let ty = &kernel.tiles[tile].ty;
    // Of fewer rows than an instruction has the first ones are there.
    let fits = |r: u32| r == rows || (rows <= UNIT_ROWS && (2..=UNIT_ROWS).contains(&r));
    match (ty.rows, ty.cols) {
        (r, 1) if fits(r) => Some(Fragment::Column),
        (r, c) if fits(r) && c.is_multiple_of(EIGHT) && c <= 256 => Some(Fragment::Full(c)),
        (1, c) if c.is_multiple_of(EIGHT) && c <= 256 => Some(Fragment::Row(c)),
        _ => None,
    }
}

/// Columns among which a thread has two neighbours.
const EIGHT: u32 = 8;

/// The first column of a window of a tile that has all of its rows, if it begins and ends between two such groups of
/// columns: the elements that a thread has of it are some of those that it has of the tile.
pub fn first_column(kernel: &Kernel, defs: &Definitions<'_>, t: &TileRef) -> Option<u32> {
    let ty = &kernel.tiles[t.tile].ty;
    let from = match t.origin {
        None => 0,
        Some((row, column)) if defs.number(row) == Some(0) => u32::try_from(defs.number(column)?).ok()?,
        Some(_) => return None,
    };
    let even = from.is_multiple_of(EIGHT) && t.cols.is_multiple_of(EIGHT) && ty.cols.is_multiple_of(EIGHT);
    let all = t.origin.is_none() && t.cols == ty.cols;
    (all || t.rows == ty.rows && even && from + t.cols <= ty.cols).then_some(from)
}

/// A kernel of that kind.
///
/// # Errors
/// Why it is none; empty if it has no products for the unit, or is one ([`matrix_unit::find`]).
pub fn find(kernel: &Kernel, target: &Target) -> Result<FragmentKernel, String> {
    if target.matrix_unit.is_empty() || !asks(kernel, target) {
        return Err(String::new());
    }
    let kernel = &*straight(kernel);
    if matrix_unit::find(kernel, target).is_ok() {
        return Err(String::new());
    }
    let fused = fused::fused(kernel).and_then(|kernel| found(&kernel, target).ok());
    fused.map_or_else(|| found(kernel, target), Ok)
}

/// The same of a kernel as it is.
fn found(kernel: &Kernel, target: &Target) -> Result<FragmentKernel, String> {
    let mut products = Vec::new();
    gather(&kernel.body, &mut products);
    let Some(&(span, first)) = products.first() else { return Err(String::new()) };
    if kernel.grid.is_empty() || kernel.on.is_some() || !kernel.roles.is_empty() {
        return no("a grid of one block, or one with roles or places");
    }
    if kernel.tensors.values().any(|t| t.dir == TensorDir::Scratch || t.stored.is_some()) {
        return no("an argument has a layout of its own, or a tile goes through memory");
    }
    let rows = kernel.tiles[first.d.tile].ty.rows;
    if ![16, 32, 64, 128].contains(&rows) {
        return no(format!("a block has {rows} rows, and the unit takes 16, 32, 64 or 128"));
    }
    let mut finder = Finder {
        kernel,
        defs: Definitions::new(kernel),
        rows,
        uses: FxHashMap::default(),
        valid: FxHashMap::default(),
        loads: Vec::new(),
        filled: FxHashSet::default(),
        beside: FxHashSet::default(),
        images: FxHashMap::default(),
        checks: false,
        scatters: false,
        factors: None,
        computed: FxHashSet::default(),
        stored: FxHashSet::default(),
        ordered: FxHashSet::default(),
        loops: 0,
        bounds: kernel.grid.iter().map(|d| (d.index, d.extent)).collect(),
        ends: FxHashMap::default(),
    };
    finder.count(&kernel.body)?;
    finder.find_images();
    finder.loads(&kernel.body, 1)?;
    finder.region(&kernel.body)?;
    finder.slots(target.memory(Loc::Mat).capacity)?;
    let Some(factors) = finder.factors else { return no("its products are of no type that the unit has") };
    let Some(profile) = target.sum_profile(factors) else {
        return no(format!("the unit has no products of {factors}"));
    };
    let all_threads = finder.scatters || finder.loads.iter().any(OperandLoad::by_threads);
    let registers = finder.fits(&kernel.body, all_threads)?;
    let valid = finder.valid.values().flat_map(|(rows, cols)| [*rows, *cols]);
    let whole = valid.clone().filter(|v| finder.divides(*v) == Some(true)).collect();
    let blocks = valid.filter_map(|v| Some((v, finder.block_of(v)?))).collect();
    let needed = finder.needed()?;
    let exponential = target.gpu.map_or(Exponential::Program, |gpu| gpu.exponential);
    let (kernel, loads, checks, ordered) = (kernel.clone(), finder.loads, finder.checks, finder.ordered);
    Ok(FragmentKernel {
        kernel,
        factors,
        profile,
        exponential,
        rows,
        loads,
        needed,
        registers,
        blocks,
        whole,
        ordered,
        checks,
        all_threads,
        span,
    })
}

fn no<T>(why: impl Into<String>) -> Result<T, String> {
    Err(why.into())
}

fn gather(region: &Region, out: &mut Vec<(Span, contraction::Product)>) {
    for stmt in region {
        out.extend(contraction::product(&stmt.op).map(|(p, _)| (stmt.span, p)));
        stmt.op.regions().for_each(|r| gather(r, out));
    }
}

struct Finder<'k> {
    kernel: &'k Kernel,
    defs: Definitions<'k>,
    rows: u32,
    uses: FxHashMap<Tile, Uses>,
    /// Every tile is always used as the same window.
    valid: FxHashMap<Tile, (Value, Value)>,
    loads: Vec<OperandLoad>,
    /// Tiles that only hold what is loaded, on its way to an operand.
    filled: FxHashSet<Tile>,
    /// Tiles that threads load their own elements of: they are no operands.
    beside: FxHashSet<Tile>,
    /// Tiles that only hold images which are unfolded, and the windows that they are copies of.
    images: FxHashMap<Tile, ViewRef>,
    /// A condition is checked.
    checks: bool,
    /// Rows are stored where a table says.
    scatters: bool,
    factors: Option<DType>,
    /// Arrays that are stored to, and to which more than once.
    stored: FxHashSet<TensorId>,
    ordered: FxHashSet<TensorId>,
    /// How many loops are around.
    loops: u32,
    /// Tiles of results, beside those that only repeat something.
    computed: FxHashSet<Tile>,
    /// One past the last number that indices of loops and of the grid have, which begin at 0.
    bounds: FxHashMap<Value, Value>,
    /// The same of all loops, wherever they begin.
    ends: FxHashMap<Value, Value>,
}

impl Finder<'_> {
    /// Accesses of each tile, of which nobody else sees the elements.
    fn count(&mut self, region: &Region) -> Result<(), String> {
        for stmt in region {
            for (access, tile) in tile_accesses(self.kernel, stmt) {
                let uses = self.uses.entry(tile.tile).or_default();
                match access {
                    AccessMode::Read => uses.reads += 1,
                    AccessMode::Write => uses.writes += 1,
                }
                let scratch = matches!(&stmt.op, Op::Inst(inst) if inst.scratch.contains(&tile));
                if !scratch {
                    self.alone(&tile)?;
                }
            }
            if let Op::For(f) = &stmt.op {
                self.ends.insert(f.index, f.hi);
                if self.defs.number(f.lo) == Some(0) {
                    self.bounds.insert(f.index, f.hi);
                }
            }
            stmt.op.regions().try_for_each(|r| self.count(r))?;
        }
        Ok(())
    }

    /// The whole of a tile of its own, valid as everywhere else.
    fn alone(&mut self, t: &TileRef) -> Result<(), String> {
        let name = &self.kernel.tiles[t.tile].name;
        let plain = t.element.is_none() && is_private(self.kernel, t.tile);
        if plain && self.is_part(t) && first_column(self.kernel, &self.defs, t).is_some() {
            return Ok(());
        }
        let same = *self.valid.entry(t.tile).or_insert(t.valid) == t.valid;
        // Fewer rows than a warp-group's are its first ones.
        let ty = &self.kernel.tiles[t.tile].ty;
        let first_rows = t.origin.is_none() && t.cols == ty.cols && ty.rows <= UNIT_ROWS && t.rows > 1;
        let whole = is_whole(self.kernel, t) || (first_rows && self.kernel.tiles[t.tile].count == 1);
        if !plain || !whole {
            return no(format!("`{name}` is a part of a tile, or shares its bytes"));
        }
        if !same {
            return no(format!("`{name}` is valid in several shapes"));
        }
        Ok(())
    }

    fn fragment(&self, tile: Tile) -> Result<Fragment, String> {
        let data = &self.kernel.tiles[tile];
        let (rows, cols) = (data.ty.rows, data.ty.cols);
        let why = || format!("`{}` has {rows} x {cols} elements, which threads do not share out", data.name);
        fragment(self.kernel, tile, self.rows).ok_or_else(why)
    }

    /// Some of the columns of a tile.
    fn is_part(&self, t: &TileRef) -> bool {
        t.origin.is_some() || t.cols != self.kernel.tiles[t.tile].ty.cols
    }

    /// How the columns that a reference names lie.
    fn fragment_of(&self, t: &TileRef) -> Result<Fragment, String> {
        Ok(match self.fragment(t.tile)? {
            Fragment::Full(_) => Fragment::Full(t.cols),
            other => other,
        })
    }

    fn ty(&self, tile: Tile) -> (Loc, DType) {
        let ty = &self.kernel.tiles[tile].ty;
        (ty.loc, ty.dtype)
    }

    /// What of the prologue a block needs: it can be computed there.
    fn needed(&self) -> Result<FxHashSet<Value>, String> {
        let mut needed = FxHashSet::default();
        uses(&self.kernel.body, &mut needed);
        for load in &self.loads {
            needed.extend(load.at.iter().flat_map(|p| p.symbols()));
            if let OperandSource::Nibbles(nibbles) = &load.source {
                needed.extend([nibbles.start, nibbles.pitch]);
            }
            if let OperandSource::Rows(rows) = &load.source {
                needed.extend([rows.start, rows.stride, rows.first, rows.step, rows.extent]);
                needed.extend([rows.valid.0, rows.valid.1]);
            }
            if let OperandSource::Image(image) = &load.source {
                needed.extend(image.values());
            }
            if let OperandSource::Pages(pages) = &load.source {
                needed.extend([pages.first, pages.step, pages.extent, pages.valid]);
                needed.extend(pages.rows.symbols());
                // Where an entry is missing, its coordinates are told.
                needed.extend(&self.kernel.tensors[pages.table].shape);
            }
        }
        for stmt in self.kernel.prologue.iter().rev() {
            if stmt.op.def().is_some_and(|v| needed.contains(&v)) {
                self.scalar(&stmt.op)?;
                stmt.op.for_each_use(&mut |v| {
                    needed.insert(v);
                });
            }
        }
        Ok(needed)
    }
}

fn uses(region: &Region, out: &mut FxHashSet<Value>) {
    for stmt in region {
        stmt.op.for_each_use(&mut |v| {
            out.insert(v);
        });
        stmt.op.regions().for_each(|r| uses(r, out));
    }
}
