//! Which kernels are products on a matrix unit: the one decision that the code generator and the reference interpreter
//! both ask for, so that their sums are the same ([`ptoc_isa::Target::sum_profile`]).
//!
//! A kernel is taken as a whole: a grid over tiles of rows and columns, a loop over k that is one product, and what is
//! done to the elements of the accumulator until they are stored ([`Epilogue`]). Where its arrays begin, their strides
//! and their extents are numbers of the launch, as polynomials in its parameters. What does not fit stays a chain of
//! multiply-adds.

mod epilogue;

pub use epilogue::{ElementArray, Epilogue, EpilogueStep, Place};

use crate::contraction::{self, Depth, FactorRounding, From, KLoop, Product, Products};
use crate::fragments;
use crate::rings::straight;
use epilogue::EpilogueFinder;
use ptoc_diagnostics::Span;
use ptoc_ir::analysis::poly::{Definitions, Poly};
use ptoc_ir::tile::{Kernel, Op, Operand, Region, Stmt, TensorDir, TileRef, Value, ViewRef};
use ptoc_isa::math::Exponential;
use ptoc_isa::{BinOp, CmpOp, Factors, Loc, Sem, Target};
use ptoc_tensor::DType;
use ptoc_tensor::matrix_unit::SumProfile;

/// A number of the launch: a polynomial in its parameters, dimensions first, then scalars.
pub type Number = Poly<u32>;

/// How many rows or columns there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Extent {
    /// This number.
    Whole(Number),
    /// All of the grid's tiles are full.
    Tiles,
}

/// A matrix in an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayMatrix {
    /// Which argument.
    pub tensor: u32,
    /// The element of row and column 0.
    pub first: Number,
    /// Elements from row to row, from column to column.
    pub strides: [Number; 2],
    /// Elements from matrix to matrix, along each dimension of the batch.
    pub batch: Vec<Number>,
}

/// A kernel that is one product.
#[derive(Clone, PartialEq, Debug)]
pub struct UnitProduct<'k> {
    /// Of the operands, and of sums.
    pub factors: [DType; 2],
    /// Factors of f32 are rounded to TF32, as the copy engine rounds them.
    pub tf32: bool,
    /// What sums are: f32, or i32 of factors of i8.
    pub sums: DType,
    /// How products are added; `None` of integers, whose sums are exact in any order.
    pub profile: Option<SumProfile>,
    /// Rows and columns of a block.
    pub tile: [u32; 2],
    /// The dimensions of the grid that count tiles of rows and of columns.
    pub grid: [usize; 2],
    /// Those that count matrices.
    pub batch: Vec<usize>,
    /// Rows and columns.
    pub extents: [Extent; 2],
    /// Depth; none if it is negative.
    pub depth: Number,
    /// Steps of k that the author wants under way at once, and how deep one is; 1 in a plain loop.
    pub stages: (u32, u32),
    /// Rows by k.
    pub a: ArrayMatrix,
    /// k by columns.
    pub b: ArrayMatrix,
    /// The row where sums start, if that is not zero; a column of a product that is turned round.
    pub bias: Option<ArrayMatrix>,
    /// What becomes of the sums.
    pub epilogue: Epilogue<'k>,
    /// The source of the product.
    pub span: Span,
}

impl ArrayMatrix {
    fn turned(self) -> ArrayMatrix {
        let [rows, cols] = self.strides;
        ArrayMatrix { strides: [cols, rows], ..self }
    }
}

impl UnitProduct<'_> {
    /// The product whose rows are this one's columns. Its sums have the same products in the same order.
    fn turned(mut self) -> Self {
        self.tile.reverse();
        self.grid.reverse();
        self.extents.reverse();
        self.factors.reverse();
        (self.a, self.b) = (self.b.turned(), self.a.turned());
        self.bias = self.bias.map(ArrayMatrix::turned);
        for array in &mut self.epilogue.arrays {
            array.matrix.strides.reverse();
            array.has.reverse();
        }
        self
    }
}

/// The rounding of factors of f32 that the copy engine does.
const TF32: FactorRounding = FactorRounding { to: Factors::Tf32, even: true };

/// Rows of an instruction, and of a block at most.
const ROWS: [u32; 2] = [64, 128];
/// Rows that are so few that the product is computed turned round: the right operand's columns are the unit's rows.
const FEW_ROWS: [u32; 2] = [16, 32];
/// Columns of so few rows that a warp takes 16 of, in place of a warp-group 64; of factors of 16 bits.
pub const FEW_COLUMNS: [u32; 2] = [16, 32];
/// Dimensions of a batch at most: a tensor map has five in all.
const MOST_BATCH: usize = 3;
/// What columns are a multiple of, and at most. (The unit has multiples of 8; tiles are padded to boxes of 16.)
const COLUMNS: (u32, u32) = (16, 256);

/// How a kernel on the matrix unit computes, where that is not as everywhere.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Numerics {
    /// By which profile products are added, for each type of factors; none where they are chains of multiply-adds.
    pub sums: Vec<(DType, SumProfile)>,
    /// Exponentials between products.
    pub exponential: Exponential,
    /// The kernel to execute in place of this one: some of its products start at what they are added to.
    pub kernel: Option<Kernel>,
}

/// The numerics of a kernel.
pub fn numerics(kernel: &Kernel, target: &Target) -> Numerics {
    if target.matrix_unit.is_empty() {
        return Numerics::default();
    }
    let kernel = &*straight(kernel);
    if let Ok(UnitProduct { factors, profile: Some(profile), .. }) = find(kernel, target) {
        return Numerics { sums: factors.map(|dtype| (dtype, profile)).into(), ..Numerics::default() };
    }
    let several = fragments::find(kernel, target).ok();
    several.map_or_else(Numerics::default, |several| Numerics {
        sums: vec![(several.factors, several.profile)],
        exponential: several.exponential,
        kernel: Some(several.kernel),
    })
}

/// A kernel, [`straight`], as a product on the matrix unit.
///
/// # Errors
/// Why it is none; empty if nothing in it asks for the unit.
pub fn find<'k>(kernel: &'k Kernel, target: &Target) -> Result<UnitProduct<'k>, String> {
    if target.matrix_unit.is_empty() || !asks(kernel, target) {
        return Err(String::new());
    }
    let products = contraction::find_for_unit(kernel);
    Finder { kernel, defs: Definitions::new(kernel), products: &products, batch: Vec::new() }.kernel(target)
}

/// Whether tiles of factors that the unit has a profile for are there.
pub(crate) fn asks(kernel: &Kernel, target: &Target) -> bool {
    let asks = |t: &ptoc_ir::tile::TileData| {
        let taken = t.ty.dtype == DType::I8 || target.sum_profile(t.ty.dtype).is_some();
        matches!(t.ty.loc, Loc::Left | Loc::Right) && taken
    };
    kernel.tiles.values().any(asks) || target.tf32.is_some() && rounds(&kernel.body)
}

/// Whether there are products whose factors are rounded so.
fn rounds(region: &Region) -> bool {
    let tf32 = |op: &Op| contraction::rounding(op).is_some_and(|r| r.to == Factors::Tf32);
    region.iter().any(|s| tf32(&s.op) || s.op.regions().any(rounds))
}

/// How products of these factors are added up to such sums: exactly, if there is no profile. `None`: they are not on
/// the unit.
fn adds(factors: [DType; 2], sums: DType, target: &Target) -> Option<Option<SumProfile>> {
    if sums == DType::I32 {
        return (factors == [DType::I8; 2]).then_some(None);
    }
    let [a, b] = factors.map(|f| target.sum_profile(f));
    let same = factors[0] == factors[1] || factors.iter().all(|f| f.is_f8());
    (sums == DType::F32 && same && a == b).then_some(a).filter(Option::is_some)
}

/// A polynomial in what the launch says; `None` where it has other symbols.
pub(crate) fn launch_number(kernel: &Kernel, p: &Poly) -> Option<Number> {
    let dims = kernel.dims.values().map(|d| d.value);
    let params: Vec<Value> = dims.chain(kernel.scalars.iter().map(|s| s.value)).collect();
    let term = |(factors, n): &(Vec<Value>, i64)| -> Option<(Vec<u32>, i64)> {
        let place = |v: &Value| params.iter().position(|p| p == v).map(|n| n as u32);
        let mut factors = factors.iter().map(place).collect::<Option<Vec<u32>>>()?;
        factors.sort_unstable();
        Some((factors, *n))
    };
    Poly::sum_of(p.terms().iter().map(term).collect::<Option<Vec<_>>>()?)
}

struct Finder<'k, 'p> {
    kernel: &'k Kernel,
    defs: Definitions<'k>,
    products: &'p Products<'k>,
    /// Dimensions of the grid that count matrices.
    batch: Vec<usize>,
}

/// The statements that count.
struct Parts<'k, 'p> {
    k: &'p KLoop<'k>,
    /// What is done to elements, in front of the loop and behind it.
    before: Vec<&'k Stmt>,
    after: &'k [Stmt],
}

fn no<T>(why: impl Into<String>) -> Result<T, String> {
    Err(why.into())
}

impl<'k, 'p> Finder<'k, 'p> {
    fn kernel(mut self, target: &Target) -> Result<UnitProduct<'k>, String> {
        let kernel = self.kernel;
        if !(2..=2 + MOST_BATCH).contains(&kernel.grid.len()) || kernel.on.is_some() {
            return no("the grid is not one of tiles of rows and columns, and of up to three dimensions of a batch");
        }
        if kernel.tensors.values().any(|t| t.dir == TensorDir::Scratch || t.stored.is_some()) {
            return no("an argument has a layout of its own, or a tile goes through memory");
        }
        self.sizes()?;
        let Parts { k, before, after } = self.parts()?;
        let (p, d) = (&k.product, &kernel.tiles[k.product.d.tile].ty);
        let windows = &self.products.windows;
        let (Some(a), Some(b)) = (windows.get(&p.a.tile), windows.get(&p.b.tile)) else {
            return no("an operand is no window of an array");
        };
        let (factors, sums) = ([a, b].map(|view| kernel.tensors[view.tensor].dtype), d.dtype);
        let profile = match k.rounding {
            None => adds(factors, sums, target),
            Some(rounding) => {
                let known = rounding == TF32 && factors == [DType::F32; 2] && sums == DType::F32;
                known.then_some(target.tf32).filter(Option::is_some)
            }
        };
        let Some(profile) = profile else {
            return no(match k.rounding {
                Some(FactorRounding { to: Factors::Tf32, even: false }) => {
                    "`TF32` rounds ties away from zero, and the copy engine to even (`TF32, Rint`)"
                }
                _ => "factors and sums are not of the unit's types",
            });
        };
        let tile = [p.d.rows, p.d.cols];
        let few = FEW_ROWS.contains(&tile[0]) && FEW_COLUMNS.contains(&tile[1]);
        if few && factors[0].size() != 2 {
            return no(format!("a block of {} rows has {} columns, and factors have not 16 bits", tile[0], tile[1]));
        }
        if p.d.valid != (p.a.valid.0, p.b.valid.1) {
            return no("what is computed is not the product of its operands");
        }
        let grid = self.grid([a, b], p)?;
        self.batch = (0..kernel.grid.len()).filter(|d| !grid.contains(d)).collect();
        let none = || "where the windows of a block begin does not follow from the grid".to_owned();
        let (rows, cols) = ((grid[0], tile[0]), (grid[1], tile[1]));
        let matrix = |view, along| self.matrix(view, k, along).ok_or_else(none);
        let (a, b) = (matrix(a, [Some(rows), None])?, matrix(b, [None, Some(cols)])?);
        let bias = match k.start {
            From::Bias(t) => Some(self.bias(&t, cols, sums).ok_or_else(none)?),
            _ => None,
        };
        let none = || "how many rows, columns or factors there are does not follow from the launch".to_owned();
        let extents =
            [self.extent(p.d.valid.0, rows).ok_or_else(none)?, self.extent(p.d.valid.1, cols).ok_or_else(none)?];
        let (depth, deep) = self.depth(k).ok_or_else(none)?;
        let count = self.positive(&depth).then_some(k.of.hi);
        let epilogue = EpilogueFinder { finder: &self, acc: p.d, count, block: [rows, cols], out: Epilogue::default() }
            .steps(&before, after)?;
        let block = profile.map_or(1, |p| p.block);
        if deep % i64::from(block) != 0 {
            return no(format!("a step of k has {deep} factors, and the unit adds {block} at once"));
        }
        let stages = (k.of.stages.max(1), u32::try_from(deep).unwrap_or(u32::MAX));
        let (span, batch) = (k.span, self.batch.clone());
        let found = UnitProduct {
            tf32: k.rounding.is_some(),
            factors,
            sums,
            profile,
            tile,
            grid,
            batch,
            extents,
            depth,
            stages,
            a,
            b,
            bias,
            epilogue,
            span,
        };
        Ok(if FEW_ROWS.contains(&tile[0]) { found.turned() } else { found })
    }

    /// The accumulators have as many rows and columns as the unit takes.
    fn sizes(&self) -> Result<(), String> {
        let (step, most) = COLUMNS;
        for tile in self.kernel.tiles.values().filter(|t| t.ty.loc == Loc::Acc) {
            let (rows, cols) = (tile.ty.rows, tile.ty.cols);
            if FEW_ROWS.contains(&rows) && !ROWS.contains(&cols) && !FEW_COLUMNS.contains(&cols) {
                return no(format!(
                    "a block of {rows} rows has {cols} columns, and the unit takes 16, 32, 64 or 128 of so few"
                ));
            }
            if FEW_ROWS.contains(&rows) {
                continue;
            }
            if !ROWS.contains(&rows) {
                return no(format!("a block has {rows} rows, and the unit takes 16, 32, 64 or 128"));
            }
            if !cols.is_multiple_of(step) || cols > most {
                return no(format!("a block has {cols} columns, and the unit takes multiples of {step} up to {most}"));
            }
        }
        Ok(())
    }

    /// The statements of the body: a start at zero, one loop, what is done to elements, and what is computed for them.
    fn parts(&self) -> Result<Parts<'k, 'p>, String> {
        let body = &self.kernel.body;
        let found = body.iter().enumerate().find_map(|(n, stmt)| match &stmt.op {
            Op::For(f) => Some((n, self.products.loops.get(&f.label))),
            _ => None,
        });
        let Some((at, found)) = found else { return no("there is no product that is stored") };
        let Some(k) = found else {
            return no("a loop is not one product over k, of windows of arrays in tiles of multiples of 16");
        };
        let (mut zeroed, mut before) = (false, Vec::new());
        for stmt in &body[..at] {
            match &stmt.op {
                op if op.is_pure() || self.products.disappears(op) => {}
                Op::Alloc { .. } => {}
                op if !zeroed && self.zeroed(op) == Some(k.product.d) => zeroed = true,
                op if contraction::load(op).is_some() => before.push(stmt),
                _ => return no("there is more in the kernel than a product and what is done to its elements"),
            }
        }
        let after = &body[at + 1..];
        if after.iter().any(|s| matches!(&s.op, Op::For(f) if self.products.loops.contains_key(&f.label))) {
            return no("there are two products");
        }
        let starts = match k.start {
            From::Acc => zeroed,
            From::Zero | From::Bias(_) => !zeroed,
        };
        let plain = self.kernel.tiles[k.product.d.tile].ty.layout.is_none() && k.product.d.origin.is_none();
        match starts && plain && k.product.d.element.is_none() {
            true => Ok(Parts { k, before, after }),
            false => no("the product does not start at zero or at a bias, in a tile of its own"),
        }
    }

    /// The row that sums start at, as long as the block's columns.
    fn bias(&self, t: &TileRef, cols: (usize, u32), sums: DType) -> Option<ArrayMatrix> {
        let view = self.products.windows.get(&t.tile)?;
        let stride = self.defs.poly(*view.strides.last()?)?;
        let first = self.defs.poly(view.offset)?;
        let same = self.kernel.tensors[view.tensor].dtype == sums;
        let strides = [Poly::constant(0), stride];
        self.placed(view.tensor.as_u32(), first, &strides, [None, Some(cols)]).filter(|_| same)
    }

    /// A tile that becomes zero.
    fn zeroed(&self, op: &Op) -> Option<TileRef> {
        let Op::Inst(inst) = op else { return None };
        match (&inst.operands[..], inst.instr.get().sem) {
            ([Operand::Tile(d), Operand::Scalar(s)], Sem::Expand) => {
                matches!(self.defs.of(*s), Some(Op::Const { value, .. }) if value.bits == 0).then_some(*d)
            }
            _ => None,
        }
    }

    /// Whether the launch checks that a number is positive.
    fn positive(&self, n: &Number) -> bool {
        self.kernel.prologue.iter().any(|stmt| {
            let Op::Check { cond, .. } = &stmt.op else { return false };
            let Some(Op::Compare { op, a, b, .. }) = self.defs.of(*cond) else { return false };
            let least = match op {
                CmpOp::Ge => 1,
                CmpOp::Gt => 0,
                _ => return false,
            };
            self.defs.number(*b).is_some_and(|b| b >= least)
                && self.defs.poly(*a).and_then(|a| self.number(&a)).as_ref() == Some(n)
        })
    }

    /// Which dimension of the grid counts tiles of rows, and which of columns: one operand moves along it, by whole
    /// tiles, and the other does not.
    fn grid(&self, operands: [&ViewRef; 2], p: &Product) -> Result<[usize; 2], String> {
        let dims = 0..self.kernel.grid.len();
        let valid = [p.d.valid.0, p.d.valid.1];
        let tile = [p.d.rows, p.d.cols];
        let counts = |d: usize, side: usize| {
            let step = |n: usize| self.defs.poly(operands[n].offset).and_then(|p| p.step(self.kernel.grid[d].index));
            let along = self.defs.poly(operands[side].strides[side]);
            let whole = along.and_then(|stride| stride.times(&Poly::constant(tile[side].into())));
            step(side) == whole && step(1 - side).is_some_and(|step| step.number() == Some(0))
        };
        let [rows, cols] = [0, 1].map(|side| {
            let all: Vec<usize> = dims.clone().filter(|d| counts(*d, side)).collect();
            // A batch may move like rows; how many are valid depends on the dimension that counts them.
            let fits = |d: &&usize| self.extent(valid[side], (**d, tile[side])).is_some();
            all.iter().rfind(fits).or(all.last()).copied()
        });
        match (rows, cols) {
            (Some(rows), Some(cols)) if rows != cols => Ok([rows, cols]),
            _ => no(
                "no dimension of the grid counts tiles of the left operand's rows, or none of the right one's columns",
            ),
        }
    }

    fn number(&self, p: &Poly) -> Option<Number> {
        launch_number(self.kernel, p)
    }

    /// A window that moves by whole tiles: along rows and columns with these dimensions of the grid, or not at all.
    fn matrix(&self, view: &ViewRef, k: &KLoop<'_>, along: [Option<(usize, u32)>; 2]) -> Option<ArrayMatrix> {
        let strides = [self.defs.poly(view.strides[0])?, self.defs.poly(view.strides[1])?];
        // Along k it moves by whole tiles, too: that is what makes the loop one product.
        let (_, first) = self.defs.poly(view.offset)?.split(k.of.index)?;
        self.placed(view.tensor.as_u32(), first, &strides, along)
    }

    /// The same of the place of a block's first element.
    fn placed(
        &self,
        tensor: u32,
        mut first: Poly,
        strides: &[Poly; 2],
        along: [Option<(usize, u32)>; 2],
    ) -> Option<ArrayMatrix> {
        let mut batch = Vec::new();
        for (dim, grid) in self.kernel.grid.iter().enumerate() {
            let (step, rest) = first.split(grid.index)?;
            if self.batch.contains(&dim) {
                batch.push(self.number(&step)?);
                first = rest;
                continue;
            }
            let mut want = Poly::constant(0);
            for (stride, along) in strides.iter().zip(along) {
                if let Some((_, tile)) = along.filter(|(d, _)| *d == dim) {
                    want = want.plus(stride, i64::from(tile))?;
                }
            }
            if step != want {
                return None;
            }
            first = rest;
        }
        let strides = [self.number(&strides[0])?, self.number(&strides[1])?];
        Some(ArrayMatrix { tensor, first: self.number(&first)?, strides, batch })
    }

    /// Rows or columns: the tile, or the lesser of it and what is left.
    fn extent(&self, valid: Value, (dim, tile): (usize, u32)) -> Option<Extent> {
        let tile = i64::from(tile);
        if let Some(n) = self.defs.number(valid) {
            return (n == tile).then_some(Extent::Tiles);
        }
        let (rest, least) = self.least(valid)?;
        let whole = self.defs.poly(rest)?.plus(&Poly::symbol(self.kernel.grid[dim].index), tile)?;
        (least == tile).then_some(Extent::Whole(self.number(&whole)?))
    }

    /// `min(rest, number)`
    fn least(&self, v: Value) -> Option<(Value, i64)> {
        let (x, y) = self.defs.binary(v, BinOp::Min)?;
        match (self.defs.number(x), self.defs.number(y)) {
            (None, Some(n)) => Some((x, n)),
            (Some(n), None) => Some((y, n)),
            _ => None,
        }
    }

    /// The depth of all iterations, and of one.
    fn depth(&self, k: &KLoop<'_>) -> Option<(Number, i64)> {
        match k.depth {
            Depth::Even(tile) => {
                let all = self.defs.poly(k.of.hi)?.times(&Poly::constant(tile))?;
                Some((self.number(&all)?, tile))
            }
            Depth::AtFirst(rest) => {
                let (_, first) = self.defs.poly(rest)?.split(k.of.index)?;
                let (_, tile) = self.least(k.product.a.valid.1)?;
                Some((self.number(&first)?, tile))
            }
        }
    }
}
