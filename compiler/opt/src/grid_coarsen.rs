//! Block (thread) coarsening: several blocks of the grid at once.
//!
//! If a block is one product that is stored, and the next block along a dimension of the grid is the same product on
//! the next rows or columns, then both together are one product on twice as many. The runtime may then call the block
//! function for a whole rectangle of blocks: it gives the first one's coordinates and the number of blocks along each
//! dimension ([`ptoc_ir::loops::Module::spread`]), and operands are packed once for all of them.
//!
//! What is proved for a dimension g with tiles of T rows (columns alike): the rows are T, or `min(M - T g, T)` for the
//! g below `(M + T - 1) / T`; the windows of the result and of the left operand move by T of their rows with each g;
//! and nothing else of the product depends on g. So the rows of the blocks from g on, s of them, are `min(M - T g, T
//! s)`.

use crate::contraction::{Depth, From, KLoop, Products, stored};
use ptoc_ir::analysis::along_grid::{Along, Length};
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{Kernel, Op, Value, ViewRef};

/// A dimension of the grid along which blocks join.
#[derive(Clone, Copy, Debug)]
pub struct Joined {
    /// Number of the dimension.
    pub dim: usize,
    /// Rows or columns of a whole block.
    pub tile: i64,
    /// What is left from the first block on, where the last block may be smaller.
    pub rest: Option<Value>,
}

/// How the blocks of a kernel join.
#[derive(Clone, Copy, Default, Debug)]
pub struct Coarsening {
    /// Along the rows of the product.
    pub rows: Option<Joined>,
    /// Along its columns.
    pub cols: Option<Joined>,
}

impl Coarsening {
    /// Numbers of the dimensions, ascending.
    pub fn dims(&self) -> Vec<usize> {
        let mut dims: Vec<usize> = [self.rows, self.cols].into_iter().flatten().map(|j| j.dim).collect();
        dims.sort_unstable();
        dims
    }
}

/// What a product depends on.
struct Parts<'a> {
    along: Along<'a>,
    a: &'a ViewRef,
    b: &'a ViewRef,
    d: &'a ViewRef,
    /// Its row.
    bias: Option<&'a ViewRef>,
    m: Value,
    n: Value,
    /// What it does not move with: the loop's bound, its depth.
    still: Vec<Value>,
}

/// How the blocks of `kernel` join; nothing, if they do not.
pub fn find(kernel: &Kernel, products: &Products<'_>) -> Coarsening {
    let Some(parts) = parts(kernel, products) else { return Coarsening::default() };
    let mut out = Coarsening::default();
    for dim in 0..kernel.grid.len() {
        if out.rows.is_none()
            && let Some(joined) = parts.joined(dim, true)
        {
            out.rows = Some(joined);
        } else if out.cols.is_none() {
            out.cols = parts.joined(dim, false);
        }
    }
    out
}

/// The product that a block is, if it is no more than one.
fn parts<'a>(kernel: &'a Kernel, products: &'a Products<'a>) -> Option<Parts<'a>> {
    let mut found: Option<(&KLoop<'_>, &ViewRef)> = None;
    for stmt in &kernel.body {
        match &stmt.op {
            op if op.is_pure() || products.disappears(op) || products.starts(op) => {}
            Op::Sync(_) => {}
            Op::Alloc { tile } if products.gone.contains(tile) => {}
            Op::For(f) if products.stores.values().any(|l| *l == f.label) => {}
            op => {
                let (view, tile) = stored(op)?;
                let k = products.loops.get(products.stores.get(&tile.tile)?)?;
                if found.replace((k, view)).is_some() {
                    return None;
                }
            }
        }
    }
    let (k, d) = found?;
    let window = |t: ptoc_ir::tile::Tile| products.windows.get(&t);
    let bias = match k.start {
        From::Bias(t) => Some(window(t.tile)?),
        _ => None,
    };
    let mut still = vec![k.of.lo, k.of.hi];
    if let Depth::AtFirst(v) = k.depth {
        still.push(v);
    }
    Some(Parts {
        along: Along::new(kernel),
        a: window(k.product.a.tile)?,
        b: window(k.product.b.tile)?,
        d,
        bias,
        m: k.product.a.valid.0,
        n: k.product.b.valid.1,
        still,
    })
}

impl Parts<'_> {
    /// How the product joins along a dimension of the grid, by rows or by columns. `None` if it does not.
    fn joined(&self, dim: usize, rows: bool) -> Option<Joined> {
        let along = &self.along;
        let g = along.kernel.grid[dim].index;
        let (mine, other) = if rows { (self.m, self.n) } else { (self.n, self.m) };
        let Length { rest, tile, .. } = along.length(dim, mine)?;
        let mode = usize::from(!rows);
        // Which operand moves: a by rows, b by columns; the bias row by columns.
        let (moving, resting) = if rows { (self.a, self.b) } else { (self.b, self.a) };
        let steps = |view: &ViewRef| along.poly(view.strides[mode], g)?.times(&Poly::constant(tile));
        let moves = |view: &ViewRef| Some(along.poly(view.offset, g)?.step(g)? == steps(view)?);
        let rests = |v: Value| along.rests(v, g);
        let strides = [self.a, self.b, self.d].into_iter().chain(self.bias).flat_map(|v| v.strides.iter().copied());
        let bias = match self.bias {
            Some(bias) if rows => rests(bias.offset),
            Some(bias) => moves(bias)?,
            None => true,
        };
        let all = moves(moving)?
            && moves(self.d)?
            && rests(resting.offset)
            && bias
            && rests(other)
            && strides.chain(self.still.iter().copied()).all(rests);
        all.then_some(Joined { dim, tile, rest })
    }
}
