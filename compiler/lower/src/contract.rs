//! The matrix unit: one [`Contract`], which each emitter has its own micro-kernel for.

use super::Lower;
use super::code::FunctionBuilder;
use super::matrix::{Matrix, map};
use ptoc_ir::loops::{Base, BinOp, CmpOp, Contract, Op, Reg, Start, Stride};
use ptoc_ir::tile::{self, InstAttrs, Region, TileRef, Value, ViewRef};
use ptoc_isa::{Factors, RoundMode};
use ptoc_opt::contraction::{Depth, From, KLoop, stored};
use ptoc_opt::grid_coarsen::{Coarsening, Joined};
use ptoc_tensor::DType;

/// Steps that a matrix unit of a CPU adds up at once. It begins anew with every instruction, so loops over k whose
/// iterations have other numbers of steps are another sum there than as one product.
const STEPS: i64 = 32;

impl<'k> Lower<'k> {
    /// `d = start + a b`: starts at `c`, at a bias row, or at zero.
    pub(super) fn matmul(
        &mut self,
        d: &TileRef,
        c: Option<&TileRef>,
        bias: Option<&TileRef>,
        (a, b): (&TileRef, &TileRef),
        attrs: &InstAttrs,
    ) {
        let extents = (self.value(a.valid.0), self.value(b.valid.1), self.value(a.valid.1));
        let d = self.tile(d);
        let start = match (c, bias) {
            (Some(c), _) => {
                let from = self.tile(c);
                start_at(&from, from.rows)
            }
            (None, Some(bias)) => self.bias(bias),
            (None, None) => Start::Zero,
        };
        let (left, right) = (self.operand(a), self.operand(b));
        let part_of = self.watched.as_ref().and_then(|w| w.sizes.get(&(a.tile, b.tile)).copied());
        match attrs.factors {
            None => self.multiply(extents, &d, start, (&left, &right), part_of),
            Some(factors) => {
                let even = attrs.round == Some(RoundMode::Rint);
                let bytes = |t: &TileRef| u64::from(t.rows) * u64::from(t.cols) * 4;
                let space = self.temp_space(bytes(a) + bytes(b));
                let mut rounded = |at: u64, t: &TileRef, m: &Matrix| {
                    let beside = Matrix {
                        base: Base::Space(space),
                        offset: self.code.int(at as i64),
                        rows: Stride::Const(i64::from(t.cols) * 4),
                        cols: Stride::Const(4),
                        ..*m
                    };
                    let shape = (self.value(t.valid.0), self.value(t.valid.1));
                    map(&mut self.code, shape, &beside.raw(), &[m.raw()], &mut |code, v| {
                        round(code, v[0], factors, even)
                    });
                    beside
                };
                let (left, right) = (rounded(0, a, &left), rounded(bytes(a), b, &right));
                self.multiply(extents, &d, start, (&left, &right), None);
            }
        }
    }

    /// An operand of a product, or of what unfolds it: a tile, or the window that it would be a copy of.
    pub(super) fn operand(&mut self, t: &TileRef) -> Matrix {
        match self.products.windows.get(&t.tile).cloned() {
            Some(view) => self.view(&view),
            None => self.tile(t),
        }
    }

    fn bias(&mut self, t: &TileRef) -> Start {
        let from = self.operand(t);
        start_at(&from, Stride::Const(0))
    }

    fn multiply(
        &mut self,
        (m, n, k): (Reg, Reg, Reg),
        d: &Matrix,
        start: Start,
        (a, b): (&Matrix, &Matrix),
        part_of: Option<[Reg; 3]>,
    ) {
        self.code.emit(Op::Contract(Box::new(Contract {
            m,
            n,
            k,
            d: d.first(),
            d_strides: (d.rows, d.cols),
            d_ty: d.ty,
            start,
            a: a.first(),
            a_strides: (a.rows, a.cols),
            b: b.first(),
            b_strides: (b.rows, b.cols),
            ab_ty: a.ty,
            part_of,
        })));
    }

    // ---- products that are more than one instruction -------------------------------------------------------------

    /// Deals with a statement that is part of a larger product, or that only fills what nothing reads. Returns whether
    /// it is one.
    pub(super) fn in_product(&mut self, op: &tile::Op) -> bool {
        let products = &self.products;
        if let tile::Op::For(f) = op
            && let Some(found) = products.loops.get(&f.label).cloned()
        {
            if !products.stores.contains_key(&found.product.d.tile) {
                self.k_loop(&found, None);
            }
            return true;
        }
        if let Some((view, tile)) = stored(op)
            && let Some(found) = products.stores.get(&tile.tile).and_then(|l| products.loops.get(l)).cloned()
        {
            self.k_loop(&found, Some(view));
            return true;
        }
        products.disappears(op) || products.starts(op)
    }

    /// A loop over k as one product, into its accumulator or into `window`.
    fn k_loop(&mut self, k: &KLoop<'k>, window: Option<&ViewRef>) {
        let (lo, hi) = (self.value(k.of.lo), self.value(k.of.hi));
        let spread = if window.is_some() { self.spread } else { Coarsening::default() };
        // A loop that does not run leaves its accumulator alone. (Nothing reads it then, if it is only stored.)
        let may_not_run = window.is_none() && k.start != From::Acc;
        if may_not_run {
            self.code.push();
        }
        let depth = self.depth(k);
        let p = &k.product;
        let (m, n) = (self.value(p.a.valid.0), self.value(p.b.valid.1));
        let part_of = self.part_of(k, spread, depth);
        let extents = (self.joined(spread.rows, m), self.joined(spread.cols, n), depth);
        let (d, start) = match (window, k.start) {
            (Some(view), From::Acc) => (self.view(view), Start::Zero),
            (Some(view), _) => (self.view(view), self.loop_start(k)),
            (None, _) => (self.tile(&p.d), self.loop_start(k)),
        };
        let (a, b) = (self.operand(&p.a), self.operand(&p.b));
        self.multiply(extents, &d, start, (&a, &b), part_of);
        if may_not_run {
            let body = self.code.pop();
            let runs = self.code.cmp(CmpOp::Lt, lo, hi);
            self.code.either(runs, |code| code.append(body), |_| {});
        }
    }

    /// All steps of a loop over k. Its scalars are as in the first iteration then.
    fn depth(&mut self, k: &KLoop<'k>) -> Reg {
        let (lo, hi) = (self.value(k.of.lo), self.value(k.of.hi));
        self.values[k.of.index] = Some(lo);
        self.scalars(&k.of.body);
        self.code.span = k.span;
        let zero = self.code.int(0);
        let depth = match k.depth {
            Depth::Even(tile) => self.code.times(hi, tile),
            Depth::AtFirst(whole) => self.value(whole),
        };
        self.code.bin(BinOp::Max, depth, zero)
    }

    /// Whether a product may be rounded in another order than step by step.
    fn reordered(&self, k: &KLoop<'_>) -> bool {
        let dtype = self.kernel.tiles[k.product.a.tile].ty.dtype;
        self.target.gpu.is_none() && matches!(dtype, DType::F16 | DType::BF16)
    }

    /// The numbers of blocks that [`Lower::of_grid`] counts with.
    pub(super) fn sizes_of_grid(&self) -> Vec<Value> {
        let (products, spread) = match &self.watched {
            Some(watched) => (&watched.products, watched.coarsening),
            None => (&self.products, self.spread),
        };
        let joined = [spread.rows, spread.cols].into_iter().flatten().filter(|j| j.rest.is_none());
        let any = products.loops.values().any(|k| self.reordered(k));
        joined.filter(|_| any).map(|j| self.kernel.grid[j.dim].extent).collect()
    }

    /// What the products of a loop are part of ([`Contract::part_of`]), where a matrix unit of a CPU may compute them.
    fn part_of(&mut self, k: &KLoop<'k>, spread: Coarsening, depth: Reg) -> Option<[Reg; 3]> {
        if !self.reordered(k) {
            return None;
        }
        let p = &k.product;
        let (m, n) = (self.value(p.a.valid.0), self.value(p.b.valid.1));
        let depth = if k.step % STEPS == 0 { depth } else { self.code.int(0) };
        Some([self.of_grid(spread.rows, m), self.of_grid(spread.cols, n), depth])
    }

    /// Tells the products of a loop, which are lowered one by one, what they are part of.
    pub(super) fn split_product(&mut self, f: &tile::For) {
        let Some(watched) = &self.watched else { return };
        let found = watched.products.loops.get(&f.label).filter(|k| self.reordered(k));
        let Some(k) = found.cloned() else { return };
        let stored = watched.products.stores.contains_key(&k.product.d.tile);
        let spread = if stored { watched.coarsening } else { Coarsening::default() };
        let depth = self.depth(&k);
        let sizes = self.part_of(&k, spread, depth);
        if let (Some(watched), Some(sizes)) = (&mut self.watched, sizes) {
            watched.sizes.insert((k.product.a.tile, k.product.b.tile), sizes);
        }
    }

    /// Rows or columns of all blocks of the grid.
    fn of_grid(&mut self, how: Option<Joined>, one: Reg) -> Reg {
        let Some(Joined { dim, tile, rest }) = how else { return one };
        let dim = &self.kernel.grid[dim];
        match rest {
            None => {
                let blocks = self.value(dim.extent);
                self.code.times(blocks, tile)
            }
            Some(rest) => {
                let (index, rest) = (self.value(dim.index), self.value(rest));
                let before = self.code.times(index, tile);
                self.code.bin(BinOp::Add, rest, before)
            }
        }
    }

    /// Rows or columns of all blocks that the call runs.
    fn joined(&mut self, how: Option<Joined>, one: Reg) -> Reg {
        let Some(Joined { dim, tile, rest }) = how else { return one };
        let all = self.code.times(self.blocks[dim], tile);
        match rest {
            None => all,
            Some(rest) => {
                let rest = self.value(rest);
                self.code.bin(BinOp::Min, rest, all)
            }
        }
    }

    fn loop_start(&mut self, k: &KLoop<'k>) -> Start {
        match k.start {
            From::Zero => Start::Zero,
            From::Bias(t) => self.bias(&t),
            From::Acc => {
                let from = self.tile(&k.product.d);
                start_at(&from, from.rows)
            }
        }
    }

    /// The scalars of a loop's body, those of its conditionals too.
    fn scalars(&mut self, region: &'k Region) {
        for stmt in region {
            if stmt.op.is_pure() {
                self.stmt(stmt);
            }
            if let tile::Op::If(i) = &stmt.op {
                self.scalars(&i.then);
                self.scalars(&i.els);
            }
        }
    }
}

fn start_at(from: &Matrix, row: Stride) -> Start {
    Start::At { addr: from.first(), row, col: from.cols, ty: from.ty }
}

/// The bits of a factor, rounded as [`Factors::rounded`] says.
fn round(code: &mut FunctionBuilder, bits: Reg, factors: Factors, even: bool) -> Reg {
    let drop = factors.dropped() as i32;
    let (magnitude, most) = (code.i32(i32::MAX), code.i32(0x7f80_0000));
    let magnitude = code.bin(BinOp::And, bits, magnitude);
    let number = code.cmp(CmpOp::Le, magnitude, most);
    let mut half = code.i32(if even { (1 << (drop - 1)) - 1 } else { 1 << (drop - 1) });
    if even {
        let (by, one) = (code.i32(drop), code.i32(1));
        let last = code.bin(BinOp::ShrU, bits, by);
        let last = code.bin(BinOp::And, last, one);
        half = code.bin(BinOp::Add, half, last);
    }
    let (sum, mask) = (code.bin(BinOp::Add, bits, half), code.i32(-(1 << drop)));
    let rounded = code.bin(BinOp::And, sum, mask);
    code.select(number, rounded, bits)
}
