//! Which kernels are products on a matrix unit: the one decision that the code generator and the reference interpreter
//! both ask for, so that their sums are the same ([`ptoc_isa::Target::sum_profile`]).
//!
//! A kernel is taken as a whole: a grid over tiles of rows and columns, a loop over k that is one product, and a store
//! of the accumulator. Where its arrays begin, their strides and their extents are numbers of the launch, as
//! polynomials in its parameters. What does not fit stays a chain of multiply-adds.

use crate::contraction::{self, Depth, From, KLoop, Products};
use ptoc_diagnostics::Span;
use ptoc_ir::analysis::poly::{Definitions, Poly};
use ptoc_ir::tile::{InstAttrs, Kernel, Op, Operand, TensorDir, TileRef, Value, ViewRef};
use ptoc_isa::{BinOp, Loc, Sem, Target};
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
}

/// A kernel that is one product.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitProduct {
    /// Of both operands.
    pub factors: DType,
    /// How their products are added.
    pub profile: SumProfile,
    /// Of what is stored.
    pub result: DType,
    /// Rows and columns of a block.
    pub tile: [u32; 2],
    /// The dimensions of the grid that count tiles of rows and of columns.
    pub grid: [usize; 2],
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
    /// Rows by columns.
    pub c: ArrayMatrix,
    /// The source of the product.
    pub span: Span,
}

/// Rows of an instruction, and of a block at most.
const ROWS: [u32; 2] = [64, 128];
/// What columns are a multiple of, and at most. (The unit has multiples of 8; tiles are padded to boxes of 16.)
const COLUMNS: (u32, u32) = (16, 256);

/// The profile by which the products of a kernel are added; `None` where they are chains of multiply-adds.
pub fn profile(kernel: &Kernel, target: &Target) -> Option<(DType, SumProfile)> {
    find(kernel, target).ok().map(|product| (product.factors, product.profile))
}

/// A kernel as a product on the matrix unit.
///
/// # Errors
/// Why it is none; empty if nothing in it asks for the unit.
pub fn find(kernel: &Kernel, target: &Target) -> Result<UnitProduct, String> {
    if target.matrix_unit.is_empty() || !asks(kernel, target) {
        return Err(String::new());
    }
    let products = contraction::find(kernel);
    let finder = Finder { kernel, defs: Definitions::new(kernel), products: &products };
    finder.kernel(target)
}

/// Whether tiles of factors that the unit has a profile for are there.
fn asks(kernel: &Kernel, target: &Target) -> bool {
    let asks = |t: &ptoc_ir::tile::TileData| {
        matches!(t.ty.loc, Loc::Left | Loc::Right) && target.sum_profile(t.ty.dtype).is_some()
    };
    kernel.tiles.values().any(asks)
}

struct Finder<'k, 'p> {
    kernel: &'k Kernel,
    defs: Definitions<'k>,
    products: &'p Products<'k>,
}

/// The statements that count.
struct Parts<'k, 'p> {
    k: &'p KLoop<'k>,
    stored: (&'k ViewRef, TileRef),
}

fn no<T>(why: impl Into<String>) -> Result<T, String> {
    Err(why.into())
}

impl<'k, 'p> Finder<'k, 'p> {
    fn kernel(&self, target: &Target) -> Result<UnitProduct, String> {
        let kernel = self.kernel;
        if kernel.grid.len() != 2 || kernel.on.is_some() {
            return no("the grid is not one of tiles of rows and columns");
        }
        if kernel.tensors.values().any(|t| t.dir == TensorDir::Scratch || t.stored.is_some()) {
            return no("an argument has a layout of its own, or a tile goes through memory");
        }
        self.sizes()?;
        let Parts { k, stored: (view, acc) } = self.parts()?;
        let (p, d) = (&k.product, &kernel.tiles[k.product.d.tile].ty);
        let windows = &self.products.windows;
        let (Some(a), Some(b)) = (windows.get(&p.a.tile), windows.get(&p.b.tile)) else {
            return no("an operand is no window of an array");
        };
        let factors = kernel.tensors[a.tensor].dtype;
        let both = kernel.tensors[b.tensor].dtype == factors && d.dtype == DType::F32;
        let Some(profile) = target.sum_profile(factors).filter(|_| both) else {
            return no("factors and sums are not of the unit's types");
        };
        let result = kernel.tensors[view.tensor].dtype;
        if !matches!(result, DType::F32 | DType::F16 | DType::BF16) {
            return no(format!("what is stored is {result}"));
        }
        let tile = [p.d.rows, p.d.cols];
        if p.d != acc || p.d.valid != (p.a.valid.0, p.b.valid.1) || view.shape[..] != [acc.valid.0, acc.valid.1] {
            return no("what is stored is not what is computed");
        }
        let grid = self.grid(a)?;
        let none = || "where the windows of a block begin does not follow from the grid".to_owned();
        let (rows, cols) = ((grid[0], tile[0]), (grid[1], tile[1]));
        let matrix = |view, along| self.matrix(view, k, along).ok_or_else(none);
        let (a, b) = (matrix(a, [Some(rows), None])?, matrix(b, [None, Some(cols)])?);
        let c = matrix(view, [Some(rows), Some(cols)])?;
        let none = || "how many rows, columns or factors there are does not follow from the launch".to_owned();
        let extents =
            [self.extent(p.d.valid.0, rows).ok_or_else(none)?, self.extent(p.d.valid.1, cols).ok_or_else(none)?];
        let (depth, deep) = self.depth(k).ok_or_else(none)?;
        if deep % i64::from(profile.block) != 0 {
            return no(format!("a step of k has {deep} factors, and the unit adds {} at once", profile.block));
        }
        let stages = (k.of.stages.max(1), u32::try_from(deep).unwrap_or(u32::MAX));
        Ok(UnitProduct { factors, profile, result, tile, grid, extents, depth, stages, a, b, c, span: k.span })
    }

    /// The accumulators have as many rows and columns as the unit takes.
    fn sizes(&self) -> Result<(), String> {
        let (step, most) = COLUMNS;
        for tile in self.kernel.tiles.values().filter(|t| t.ty.loc == Loc::Acc) {
            let (rows, cols) = (tile.ty.rows, tile.ty.cols);
            if !ROWS.contains(&rows) {
                return no(format!("a block has {rows} rows, and the unit takes 64 or 128"));
            }
            if !cols.is_multiple_of(step) || cols > most {
                return no(format!("a block has {cols} columns, and the unit takes multiples of {step} up to {most}"));
            }
        }
        Ok(())
    }

    /// The statements of the body: a start at zero, one loop, one store, and what is computed for them.
    fn parts(&self) -> Result<Parts<'k, 'p>, String> {
        let (mut zeroed, mut k, mut stored) = (None, None, None);
        for stmt in &self.kernel.body {
            match &stmt.op {
                op if op.is_pure() || self.products.disappears(op) => {}
                Op::Alloc { .. } => {}
                Op::For(f) => {
                    let Some(found) = self.products.loops.get(&f.label) else {
                        return no(
                            "a loop is not one product over k, of windows of arrays in tiles of multiples of 16",
                        );
                    };
                    if k.replace(found).is_some() {
                        return no("there are two products");
                    }
                }
                op => match (self.zeroed(op), Self::stored(op)) {
                    (Some(tile), _) if k.is_none() && zeroed.is_none() => zeroed = Some(tile),
                    (_, Some(found)) if k.is_some() && stored.is_none() => stored = Some(found),
                    _ => return no("there is more in the kernel than a product and a store of it"),
                },
            }
        }
        let (Some(k), Some(stored)) = (k, stored) else { return no("there is no product that is stored") };
        let starts = match k.start {
            From::Acc => zeroed == Some(k.product.d),
            From::Zero => zeroed.is_none(),
            From::Bias(_) => false,
        };
        let plain = self.kernel.tiles[k.product.d.tile].ty.layout.is_none() && k.product.d.origin.is_none();
        match starts && plain && k.product.d.element.is_none() {
            true => Ok(Parts { k, stored }),
            false => no("the product does not start at zero, in a tile of its own"),
        }
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

    /// A store without modes.
    fn stored(op: &'k Op) -> Option<(&'k ViewRef, TileRef)> {
        let Op::Inst(inst) = op else { return None };
        let plain = inst.attrs == InstAttrs::default();
        contraction::stored(op).filter(|(view, _)| plain && view.strides.len() == 2)
    }

    /// Which dimension of the grid counts tiles of rows, by the left operand, and which the other ones.
    fn grid(&self, a: &ViewRef) -> Result<[usize; 2], String> {
        let moves = |d: usize| {
            let step = self.defs.poly(a.offset).and_then(|p| p.step(self.kernel.grid[d].index));
            step.is_some_and(|step| step.number() != Some(0))
        };
        match (moves(0), moves(1)) {
            (true, false) => Ok([0, 1]),
            (false, true) => Ok([1, 0]),
            _ => no("the left operand moves along both dimensions of the grid, or along none"),
        }
    }

    /// A polynomial in what the launch says; `None` where it has other symbols.
    fn number(&self, p: &Poly) -> Option<Number> {
        let dims = self.kernel.dims.values().map(|d| d.value);
        let params: Vec<Value> = dims.chain(self.kernel.scalars.iter().map(|s| s.value)).collect();
        let term = |(factors, n): &(Vec<Value>, i64)| -> Option<(Vec<u32>, i64)> {
            let place = |v: &Value| params.iter().position(|p| p == v).map(|n| n as u32);
            let mut factors = factors.iter().map(place).collect::<Option<Vec<u32>>>()?;
            factors.sort_unstable();
            Some((factors, *n))
        };
        Poly::sum_of(p.terms().iter().map(term).collect::<Option<Vec<_>>>()?)
    }

    /// A window that moves by whole tiles: along rows and columns with these dimensions of the grid, or not at all.
    fn matrix(&self, view: &ViewRef, k: &KLoop<'_>, along: [Option<(usize, u32)>; 2]) -> Option<ArrayMatrix> {
        let mut first = self.defs.poly(view.offset)?;
        let strides = [self.defs.poly(view.strides[0])?, self.defs.poly(view.strides[1])?];
        for (dim, grid) in self.kernel.grid.iter().enumerate() {
            let (step, rest) = first.split(grid.index)?;
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
        // Along k it moves by whole tiles, too: that is what makes the loop one product.
        let (_, first) = first.split(k.of.index)?;
        let strides = [self.number(&strides[0])?, self.number(&strides[1])?];
        Some(ArrayMatrix { tensor: view.tensor.as_u32(), first: self.number(&first)?, strides })
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
