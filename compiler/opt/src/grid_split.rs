//! Grid splitting (row tiling): blocks of rows as blocks of one row.
//!
//! Targets want several rows in a block: a column of f32 has eight elements at least. A block that goes over its rows
//! again and again (softmax, layer norm) would fill a first-level cache several times in each pass; a row fits. Where
//! each row's results depend on that row alone, the rows of a block are blocks of their own here: row r of the arrays
//! is row 0 of the tiles of block r.
//!
//! What is proved for a dimension g of the grid with tiles of T rows, thus `min(M - T g, T)` of them from `T g` on (the
//! length): the length is nothing but the number of rows of windows, g nothing but `T g`, and that only places windows;
//! a window of an array that has these rows moves by T of them with each g, every other one rests; and instructions
//! compute each row from the same row of their operands and from what all rows share. Then with one row from r on, for
//! r below M, every window is row r - T g of what it was in block r / T, and everything else is the same in both.

use super::pattern::{OperandWindow, Pattern, Read};
use crate::pass::Pass;
use ptoc_ir::analysis::along_grid::{Along, Length};
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{Const, Inst, Kernel, Op, Operand, Region, Stmt, TensorDir, Tile, TileRef, Value, ViewRef};
use ptoc_isa::{BinOp, Loc};
use ptoc_placement::access::is_private;
use rustc_hash::{FxHashMap, FxHashSet};

/// Columns from which on a row is worth a nest of its own.
const LEAST_COLUMNS: u32 = 256;

/// Bytes of a tile up to which a block stays in a first-level cache, so that its rows may stay together.
const SMALL: u64 = 16 << 10;

/// The blocks of a kernel that was split: one for each row.
#[derive(Clone, Debug)]
pub struct RowBlocks {
    /// The dimension of the grid along which rows are.
    pub dim: usize,
    /// What can be fetched for the next block.
    pub next: Vec<Next>,
}

/// A window of an array that the next block reads a row further on.
#[derive(Clone, Debug)]
pub struct Next {
    /// The window.
    pub view: ViewRef,
    /// What of it is read where this block reads its own for the last time: from which column on.
    pub col: Option<Value>,
    /// The tile that holds this block's elements, by the window that is read last.
    last: TileRef,
}

impl Next {
    /// Whether it is this block's part of it that is read.
    pub fn is_read(&self, place: &OperandWindow<'_>) -> bool {
        match place {
            OperandWindow::Tile(t) => *t == self.last,
            OperandWindow::View(v) => self.col.is_none() && **v == self.view,
        }
    }
}

/// The pass.
pub const PASS: Pass = Pass {
    name: "grid-split",
    about: "makes a block of each row, where a block goes over its rows again and they do not fit in a first-level \
        cache",
    run: |unit, _| match split(&unit.kernel) {
        Some((kernel, rows)) => {
            unit.kernel = kernel;
            unit.rows = Some(rows);
            true
        }
        None => false,
    },
};

/// The kernel with a block for each row; `None` where that is not the same, or of no use.
fn split(kernel: &Kernel) -> Option<(Kernel, RowBlocks)> {
    if kernel.raster.is_some() || kernel.on.is_some() {
        return None;
    }
    let length = rows_of_fold(&kernel.body)?;
    (0..kernel.grid.len()).find_map(|dim| {
        let mut rows = Rows::new(kernel, dim, length)?;
        let split = rows.region(&kernel.body, false) && rows.worth();
        let kernel = split.then(|| rows.split())??;
        let mut next = Vec::new();
        // The last dimension is the one along which the next block is.
        if dim + 1 == kernel.grid.len() {
            rows.next(&kernel.body, &mut FxHashMap::default(), &mut next);
        }
        Some((kernel, RowBlocks { dim, next }))
    })
}

/// The number of rows of the first reduction of rows.
fn rows_of_fold(region: &Region) -> Option<Value> {
    region.iter().find_map(|stmt| match &stmt.op {
        Op::Inst(inst) => {
            let pattern = Pattern::with_folds(inst).filter(|p| p.fold.is_some())?;
            pattern.shape().map(|s| s.0)
        }
        op => op.regions().find_map(rows_of_fold),
    })
}

struct Rows<'a> {
    along: Along<'a>,
    dim: usize,
    /// The dimension's number of a block.
    g: Value,
    /// A block's number of rows.
    length: Value,
    /// Rows of a whole block.
    tile: i64,
    /// Values that something is done with.
    live: FxHashSet<Value>,
    /// Of each tile, whether its rows are the block's.
    tiles: FxHashMap<Tile, bool>,
    /// A row is read again after one of its reductions.
    again: bool,
    /// A block has more than [`SMALL`] bytes of a tile.
    large: bool,
}

impl<'a> Rows<'a> {
    fn new(kernel: &'a Kernel, dim: usize, length: Value) -> Option<Rows<'a>> {
        let along = Along::new(kernel);
        let Length { rest: Some(_), tile, .. } = along.length(dim, length)? else { return None };
        let mut live = FxHashSet::default();
        mark(&along, &kernel.body, length, &mut live);
        let g = kernel.grid[dim].index;
        let tiles = FxHashMap::default();
        (tile > 1).then_some(Rows { along, dim, g, length, tile, live, tiles, again: false, large: false })
    }

    /// Whether rows on their own would be faster.
    fn worth(&self) -> bool {
        self.again && self.large
    }

    fn rests(&self, v: Value) -> bool {
        self.along.rests(v, self.g)
    }

    /// Whether every statement is one of those that may see a row alone. `within`: in a loop.
    fn region(&mut self, region: &Region, within: bool) -> bool {
        region.iter().all(|stmt| match &stmt.op {
            op if op.is_pure() => self.scalar(op),
            Op::Alloc { .. } | Op::Sync(_) => true,
            Op::For(f) => self.rests(f.lo) && self.rests(f.hi) && self.region(&f.body, true),
            Op::Inst(inst) => self.inst(inst, within).is_some(),
            _ => false,
        })
    }

    /// Whether scalar code takes the length for nothing, and the block's number for places alone.
    fn scalar(&self, op: &Op) -> bool {
        let Some(dst) = op.def() else { return false };
        if dst == self.length || !self.live.contains(&dst) {
            return true;
        }
        let mut still = true;
        op.for_each_use(&mut |v| still = still && self.rests(v));
        match op {
            _ if still => true,
            Op::Binary { op: BinOp::Mul, a, b, .. } if self.is_start(*a, *b) => true,
            Op::Binary { op: BinOp::Add | BinOp::Sub | BinOp::Mul, a, b, .. } => {
                ![*a, *b].iter().any(|v| *v == self.g || *v == self.length)
            }
            _ => false,
        }
    }

    /// Whether the product of the two is the block's first row.
    fn is_start(&self, a: Value, b: Value) -> bool {
        let number = |v| self.along.defs.number(v);
        (a == self.g && number(b) == Some(self.tile)) || (b == self.g && number(a) == Some(self.tile))
    }

    /// Whether an instruction computes each row of its result from the same row of its operands and from what all rows
    /// share; `None` if not.
    fn inst(&mut self, inst: &Inst, within: bool) -> Option<()> {
        let p = Pattern::with_folds(inst)?;
        let scalars = |o: &Operand| if let Operand::Scalar(v) = o { self.rests(*v) } else { true };
        if !inst.operands.iter().all(scalars) {
            return None;
        }
        let by_rows = self.place(&p.dst, TensorDir::Out)?;
        if p.dst.tile().is_none() && !by_rows {
            return None;
        }
        let wide = |t: &TileRef| t.cols >= LEAST_COLUMNS;
        for (place, read) in &p.srcs {
            let same = by_rows && matches!(read, Read::Whole | Read::Column);
            if *read == Read::Turned || self.place(place, TensorDir::In)? != same {
                return None;
            }
            self.again |= by_rows && *read == Read::Column && p.dst.tile().is_some_and(wide);
        }
        if let (Some(t), true) = (p.dst.tile(), by_rows) {
            self.large |= wide(t) && (within || self.along.kernel.tiles[t.tile].ty.bytes() > SMALL);
        }
        Some(())
    }

    /// Whether a window's rows are those of the block. `None` if it could show whether there is one of them or several.
    /// Arrays have the direction `dir`: nothing that blocks write is read.
    fn place(&mut self, place: &OperandWindow<'_>, dir: TensorDir) -> Option<bool> {
        match place {
            OperandWindow::Tile(t) => self.window(t),
            OperandWindow::View(v) => (self.along.kernel.tensors[v.tensor].dir == dir).then(|| self.view(v))?,
        }
    }

    fn window(&mut self, t: &TileRef) -> Option<bool> {
        let kernel = self.along.kernel;
        let origin = t.origin.is_none_or(|(row, col)| self.rests(row) && self.rests(col));
        let plain = t.element.is_none() && is_private(kernel, t.tile) && kernel.tiles[t.tile].ty.loc == Loc::Vec;
        let by_rows = t.valid.0 == self.length;
        let known = origin && plain && self.rests(t.valid.1) && (by_rows || self.rests(t.valid.0));
        // A tile's elements are always seen as rows of the block, or never.
        (known && *self.tiles.entry(t.tile).or_insert(by_rows) == by_rows).then_some(by_rows)
    }

    fn view(&self, v: &ViewRef) -> Option<bool> {
        let moves = self.along.poly(v.offset, self.g)?.step(self.g)?;
        let still = v.shape.iter().skip(1).chain(&v.strides).all(|x| self.rests(*x));
        if v.shape.first() != Some(&self.length) {
            return (still && v.shape.iter().all(|x| self.rests(*x)) && moves.number() == Some(0)).then_some(false);
        }
        let row = self.along.poly(*v.strides.first()?, self.g)?;
        let steps = row.times(&Poly::constant(self.tile))?;
        (still && v.shape.len() == 2 && moves == steps && row.number() != Some(0)).then_some(true)
    }

    /// The kernel with a block for each row.
    fn split(&self) -> Option<Kernel> {
        let old = self.along.kernel;
        let Length { whole: Some(whole), .. } = self.along.length(self.dim, self.length)? else { return None };
        let mut kernel = old.clone();
        // Where a block starts is its number.
        let starts: Vec<Value> = old.body.iter().filter_map(|s| self.start(s)).collect();
        let [start] = starts[..] else { return None };
        kernel.grid[self.dim].index = start;
        kernel.grid[self.dim].extent = match whole.number() {
            Some(rows) => {
                let data = kernel.values[self.length].clone();
                let span = data.span;
                let dst = kernel.values.push(data);
                kernel.prologue.push(Stmt { op: Op::Const { dst, value: Const::index(rows) }, span });
                dst
            }
            None => whole.symbol_alone()?,
        };
        kernel.body.retain(|s| self.start(s).is_none());
        self.shorten(&mut kernel.body);
        Some(kernel)
    }

    /// What of each array is read last, in the order of the text. Where that misses something, it is not fetched.
    fn next(&self, region: &Region, loaded: &mut FxHashMap<Tile, ViewRef>, out: &mut Vec<Next>) {
        for stmt in region {
            if let Op::Inst(inst) = &stmt.op
                && let Some(p) = Pattern::with_folds(inst)
            {
                for (place, read) in &p.srcs {
                    let OperandWindow::Tile(t) = place else { continue };
                    let Some(view) = loaded.get(&t.tile).filter(|_| *read == Read::Whole) else { continue };
                    out.retain(|n| n.view.tensor != view.tensor);
                    out.push(Next { view: view.clone(), col: t.origin.map(|o| o.1), last: *t });
                }
                if let Some(to) = p.dst.tile() {
                    loaded.remove(&to.tile);
                    if let [(OperandWindow::View(view), _)] = p.srcs[..]
                        && view.shape.first() == Some(&self.length)
                    {
                        loaded.insert(to.tile, view.clone());
                    }
                }
            }
            stmt.op.regions().for_each(|r| self.next(r, loaded, out));
        }
    }

    /// The block's first row, if a statement computes it.
    fn start(&self, stmt: &Stmt) -> Option<Value> {
        match stmt.op {
            Op::Binary { dst, op: BinOp::Mul, a, b } if self.live.contains(&dst) && self.is_start(a, b) => Some(dst),
            _ => None,
        }
    }

    /// One row in place of the block's, and no scalars that nobody uses.
    fn shorten(&self, region: &mut Region) {
        region.retain(|s| !s.op.is_pure() || s.op.def().is_some_and(|d| d == self.length || self.live.contains(&d)));
        for stmt in region {
            if stmt.op.def() == Some(self.length) {
                stmt.op = Op::Const { dst: self.length, value: Const::index(1) };
            }
            if let Op::For(f) = &mut stmt.op {
                self.shorten(&mut f.body);
            }
        }
    }
}

/// Finds the values that something other than scalar code uses, and what these are computed from; not what `length` is.
fn mark(along: &Along<'_>, region: &Region, length: Value, live: &mut FxHashSet<Value>) {
    for stmt in region.iter().filter(|s| !s.op.is_pure()) {
        let mut uses = Vec::new();
        stmt.op.for_each_use(&mut |v| uses.push(v));
        while let Some(v) = uses.pop() {
            if live.insert(v)
                && v != length
                && let Some(op) = along.defs.of(v)
            {
                op.for_each_use(&mut |v| uses.push(v));
            }
        }
        stmt.op.regions().for_each(|r| mark(along, r, length, live));
    }
}
