//! Contraction recognition: matrix products whose operands stay where they are.
//!
//! The target copies a window of an array to L1 and on to L0, and multiplies there. Nothing can see those copies: a
//! product reads the window itself ([`Products::windows`]). A loop over tiles of k whose body is such a product on one
//! accumulator is one product over all of k ([`KLoop`]): each element has the same chain of multiply-adds, as a product
//! goes on where its accumulator stands. And an accumulator that is only stored need not exist: the product is computed
//! where the store would put it ([`Products::stores`]).
//!
//! What is demanded for it, of each tile on the way: the planner places it (so no other tile shares its bytes while it
//! lives), it is single and plain, one instruction writes it, and every use is one of those that disappear. The array
//! is an input, which nothing writes.

use ptoc_diagnostics::Span;
use ptoc_ir::analysis::poly::{Definitions, Poly};
use ptoc_ir::tile::{
    For, If, Inst, Kernel, Label, Op, Operand, Region, Stmt, TensorDir, Tile, TileRef, Value, ViewRef,
};
use ptoc_isa::{BinOp, CmpOp, Factors, Loc, RoundMode, Sem};
use ptoc_placement::access::{is_private, tile_accesses};
use ptoc_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};

/// What the lowering leaves out, and what it puts there.
#[derive(Default)]
pub struct Products<'k> {
    /// Operand tiles that are not filled: the windows to read instead.
    pub windows: FxHashMap<Tile, ViewRef>,
    /// Tiles that nothing reads or writes any more: those, what fills them, and accumulators.
    pub gone: FxHashSet<Tile>,
    /// Loops that are one product.
    pub loops: FxHashMap<Label, KLoop<'k>>,
    /// Accumulators that are computed where they would be stored: what computes them.
    pub stores: FxHashMap<Tile, Label>,
}

/// A loop over tiles of k that is one product.
#[derive(Clone, Debug)]
pub struct KLoop<'k> {
    /// The loop.
    pub of: &'k For,
    /// The product of every iteration; with its index 0, all its windows are those of the first one.
    pub product: Product,
    /// The sum of the depths of its iterations.
    pub depth: Depth,
    /// The depth of a whole iteration.
    pub step: i64,
    /// Where the chains start.
    pub start: From,
    /// How factors are rounded.
    pub rounding: Option<FactorRounding>,
    /// The source of the product.
    pub span: Span,
}

/// The sum of all iterations' depths.
#[derive(Clone, Copy, Debug)]
pub enum Depth {
    /// Each has this constant.
    Even(i64),
    /// This value, as it is in the first iteration.
    AtFirst(Value),
}

/// Where the chains of a loop start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    /// At the accumulator, as it stands.
    Acc,
    /// At zero.
    Zero,
    /// At a row.
    Bias(TileRef),
}

/// One instruction of the matrix unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Product {
    /// The accumulator.
    pub d: TileRef,
    /// The left operand.
    pub a: TileRef,
    /// The right operand.
    pub b: TileRef,
}

/// How factors of f32 are rounded before they are multiplied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FactorRounding {
    /// What they become.
    pub to: Factors,
    /// Of two equally near numbers the even one; else the larger one in magnitude.
    pub even: bool,
}

/// How often a tile is read and written in the whole kernel.
#[derive(Clone, Copy, Default)]
pub(crate) struct Uses {
    pub reads: u32,
    pub writes: u32,
}

struct Finder<'k> {
    kernel: &'k Kernel,
    /// For a unit that multiplies 8-bit floats, and takes biases that are loaded in front of the loop.
    unit: bool,
    defs: Definitions<'k>,
    uses: FxHashMap<Tile, Uses>,
    out: Products<'k>,
}

/// An instruction of the matrix unit, and where it starts.
pub fn product(op: &Op) -> Option<(Product, From)> {
    // Rounded factors are other numbers than those of the window.
    rounding(op).is_none().then(|| product_of_any(op)).flatten()
}

/// How an instruction rounds its factors.
pub(crate) fn rounding(op: &Op) -> Option<FactorRounding> {
    let Op::Inst(inst) = op else { return None };
    inst.attrs.factors.map(|to| FactorRounding { to, even: inst.attrs.round == Some(RoundMode::Rint) })
}

/// The same of factors of any kind.
fn product_of_any(op: &Op) -> Option<(Product, From)> {
    let Op::Inst(inst) = op else { return None };
    let tile = |n: usize| match inst.operands.get(n) {
        Some(Operand::Tile(t)) => Some(*t),
        _ => None,
    };
    let d = tile(0)?;
    match inst.instr.get().sem {
        Sem::Matmul => Some((Product { d, a: tile(1)?, b: tile(2)? }, From::Zero)),
        Sem::MatmulBias => Some((Product { d, a: tile(1)?, b: tile(2)? }, From::Bias(tile(3)?))),
        Sem::MatmulAcc if tile(1)? == d => Some((Product { d, a: tile(2)?, b: tile(3)? }, From::Acc)),
        _ => None,
    }
}

/// A plain TLOAD: the tile and the window.
pub fn load(op: &Op) -> Option<(TileRef, &ViewRef)> {
    match op {
        Op::Inst(inst) if inst.instr.get().sem == Sem::Load => match &inst.operands[..] {
            [Operand::Tile(t), Operand::View(v)] => Some((*t, v)),
            _ => None,
        },
        _ => None,
    }
}

/// A TMOV: to, from.
pub fn moved(op: &Op) -> Option<(TileRef, TileRef)> {
    match op {
        Op::Inst(inst) if inst.instr.get().sem == Sem::Move && !inst.attrs.relu => match &inst.operands[..] {
            [Operand::Tile(d), Operand::Tile(s)] => Some((*d, *s)),
            _ => None,
        },
        _ => None,
    }
}

/// A plain TSTORE: the window and the tile.
pub fn stored(op: &Op) -> Option<(&ViewRef, TileRef)> {
    match op {
        Op::Inst(inst) if inst.instr.get().sem == Sem::Store && inst.attrs.atomic.is_none() && !inst.attrs.relu => {
            match &inst.operands[..] {
                [Operand::View(v), Operand::Tile(t)] => Some((v, *t)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// TEXPANDS.
fn expand(inst: &Inst) -> Option<(TileRef, Value)> {
    match (&inst.operands[..], inst.instr.get().sem) {
        ([Operand::Tile(d), Operand::Scalar(s)], Sem::Expand) => Some((*d, *s)),
        _ => None,
    }
}

/// Finds what can be left out.
pub fn find(kernel: &Kernel) -> Products<'_> {
    found(kernel, false)
}

/// The same for a unit that multiplies 8-bit floats, and takes biases that are loaded in front of the loop.
pub(crate) fn find_for_unit(kernel: &Kernel) -> Products<'_> {
    found(kernel, true)
}

fn found(kernel: &Kernel, unit: bool) -> Products<'_> {
    let defs = Definitions::new(kernel);
    let mut finder = Finder { kernel, unit, defs, uses: FxHashMap::default(), out: Products::default() };
    finder.count(&kernel.body);
    finder.windows(&kernel.body);
    finder.settle();
    finder.loops(&kernel.body);
    finder.stores(&kernel.body);
    finder.out
}

impl<'k> Finder<'k> {
    fn count(&mut self, region: &Region) {
        for stmt in region {
            for (access, tile) in tile_accesses(self.kernel, stmt) {
                let uses = self.uses.entry(tile.tile).or_default();
                match access {
                    ptoc_placement::access::AccessMode::Read => uses.reads += 1,
                    ptoc_placement::access::AccessMode::Write => uses.writes += 1,
                }
            }
            stmt.op.regions().for_each(|r| self.count(r));
        }
    }

    fn whole(&self, t: &TileRef) -> bool {
        t.element.is_none() && t.origin.is_none() && is_private(self.kernel, t.tile)
    }

    /// Chains of TLOAD and TMOV that end in operands of products, in every region.
    fn windows(&mut self, region: &'k Region) {
        for (n, stmt) in region.iter().enumerate() {
            if let Some((tile, view)) = load(&stmt.op) {
                self.chain(tile, view, &region[n + 1..]);
            }
            stmt.op.regions().for_each(|r| self.windows(r));
        }
    }

    /// A load, its move to L0 and the products that read it there: later in the same region, in no loop of their own (a
    /// tile that many products read is better copied once).
    fn chain(&mut self, first: TileRef, view: &ViewRef, rest: &'k [Stmt]) {
        let tensor = &self.kernel.tensors[view.tensor];
        let one = |f: &Self, t: Tile| f.uses.get(&t).is_some_and(|u| u.writes == 1);
        if tensor.dir != TensorDir::In || !self.whole(&first) || !one(self, first.tile) {
            return;
        }
        let valid: [Value; 2] = first.valid.into();
        let shape_fits = match view.shape[..] {
            [rows, cols] => [rows, cols] == valid,
            _ => false,
        };
        if !shape_fits || view.strides.len() != 2 || self.kernel.tiles[first.tile].ty.dtype != tensor.dtype {
            return;
        }
        if self.unfolded(&first, view, rest) {
            self.out.windows.insert(first.tile, view.clone());
            return;
        }
        let mut last = first;
        if !matches!(self.kernel.tiles[first.tile].ty.loc, Loc::Left | Loc::Right | Loc::Bias) {
            let mut moves = rest.iter().filter_map(|s| moved(&s.op)).filter(|(_, from)| from.tile == first.tile);
            let (Some((to, from)), None) = (moves.next(), moves.next()) else { return };
            let only = self.uses.get(&first.tile).is_some_and(|u| u.reads == 1);
            if !only || from.valid != first.valid || !self.whole(&from) {
                return;
            }
            last = to;
        }
        let ty = &self.kernel.tiles[last.tile].ty;
        if !self.whole(&last) || !one(self, last.tile) || last.valid != first.valid || ty.dtype != tensor.dtype {
            return;
        }
        let wanted = self.uses.get(&last.tile).map_or(0, |u| u.reads);
        if wanted > 0 && self.read_by(&last, rest) == wanted {
            self.out.windows.insert(last.tile, view.clone());
        }
    }

    /// Whether all that reads a tile in L1 is instructions that put its elements elsewhere, later in the same region or
    /// deeper. As often as they do, they read a dense window as fast as its copy.
    fn unfolded(&self, t: &TileRef, view: &ViewRef, rest: &[Stmt]) -> bool {
        fn readers(t: &TileRef, region: &[Stmt]) -> u32 {
            let mut count = 0;
            for stmt in region {
                if let Op::Inst(inst) = &stmt.op
                    && matches!(inst.instr.get().sem, Sem::Cells(_))
                {
                    count += inst.operands.iter().skip(1).filter(|o| **o == Operand::Tile(*t)).count() as u32;
                }
                count += stmt.op.regions().map(|r| readers(t, r)).sum::<u32>();
            }
            count
        }
        let ty = &self.kernel.tiles[t.tile].ty;
        let dense = match (&view.shape[..], &view.strides[..]) {
            (&[_, cols], &[down, across]) => down == cols && self.defs.number(across) == Some(1),
            _ => false,
        };
        let reads = self.uses.get(&t.tile).map_or(0, |u| u.reads);
        ty.loc == Loc::Mat && ty.layout.is_none() && dense && reads > 0 && readers(t, rest) == reads
    }

    /// How many products, here or in conditionals, have `t` as an operand that a window can replace.
    fn read_by(&self, t: &TileRef, rest: &[Stmt]) -> u32 {
        let mut count = 0;
        for stmt in rest {
            if let Some((p, from)) = self.product(&stmt.op) {
                let fits = matches!(
                    (self.kernel.tiles[p.d.tile].ty.dtype, self.kernel.tiles[t.tile].ty.dtype),
                    (DType::F32, DType::F32 | DType::F16 | DType::BF16) | (DType::I32, DType::I8)
                ) || (self.unit && self.kernel.tiles[t.tile].ty.dtype.is_f8());
                let bias = matches!(from, From::Bias(b) if b == *t);
                let same = self.kernel.tiles[p.d.tile].ty.dtype == self.kernel.tiles[t.tile].ty.dtype;
                let role = match self.kernel.tiles[t.tile].ty.loc {
                    Loc::Left => fits && p.a == *t,
                    Loc::Right => fits && p.b == *t,
                    Loc::Bias => same && bias,
                    _ => false,
                };
                count += u32::from(role);
            }
            if let Op::If(i) = &stmt.op {
                count += self.read_by(t, &i.then) + self.read_by(t, &i.els);
            }
            if let Op::For(f) = &stmt.op
                && self.unit
                && self.kernel.tiles[t.tile].ty.loc == Loc::Bias
            {
                count += self.read_by(t, &f.body);
            }
        }
        count
    }

    /// Which tiles are gone, with these windows.
    fn settle(&mut self) {
        self.out.gone = self.out.windows.keys().copied().collect();
        self.fillers(&self.kernel.body);
    }

    /// The L1 tiles from which tiles that are gone would have been filled.
    fn fillers(&mut self, region: &Region) {
        for stmt in region {
            if let Some((to, from)) = moved(&stmt.op).filter(|(to, _)| self.out.gone.contains(&to.tile)) {
                debug_assert_ne!(to.tile, from.tile);
                self.out.gone.insert(from.tile);
            }
            stmt.op.regions().for_each(|r| self.fillers(r));
        }
    }

    // ---- loops over k --------------------------------------------------------------------------------------------

    fn loops(&mut self, region: &'k Region) {
        for stmt in region {
            if let Op::For(f) = &stmt.op
                && let Some(found) = self.k_loop(f)
            {
                self.out.loops.insert(f.label, found);
                continue;
            }
            stmt.op.regions().for_each(|r| self.loops(r));
        }
    }

    /// The one product of a loop's body, with its start; `None` if there is more than scalars and what disappears.
    fn only_product(&self, f: &For, body: &Region) -> Option<(Product, From, Span)> {
        let mut found = None;
        for stmt in body {
            let this = match &stmt.op {
                op if op.is_pure() => continue,
                Op::Sync(_) => continue,
                Op::Alloc { tile } if self.out.gone.contains(tile) => continue,
                op if self.out.disappears(op) => continue,
                Op::If(i) => self.first_or_not(f, i)?,
                op => {
                    let (product, start) = self.product(op)?;
                    (product, start, stmt.span)
                }
            };
            if found.replace(this).is_some() {
                return None;
            }
        }
        found
    }

    /// A product; for a unit also of rounded factors.
    fn product(&self, op: &Op) -> Option<(Product, From)> {
        if self.unit { product_of_any(op) } else { product(op) }
    }

    /// `if k == 0 { start } else { go on }`, of one product.
    fn first_or_not(&self, f: &For, i: &If) -> Option<(Product, From, Span)> {
        let Some(Op::Compare { op: CmpOp::Eq, a, b, .. }) = self.defs.of(i.cond) else { return None };
        let other = if *a == f.index { *b } else { *a };
        if (*a != f.index && *b != f.index) || self.defs.number(other) != Some(0) {
            return None;
        }
        let (first, start, _) = self.only_product(f, &i.then)?;
        let (later, on, span) = self.only_product(f, &i.els)?;
        (first == later && on == From::Acc && start != From::Acc).then_some((first, start, span))
    }

    fn k_loop(&self, f: &'k For) -> Option<KLoop<'k>> {
        if self.defs.number(f.lo) != Some(0) {
            return None;
        }
        let (product, start, span) = self.only_product(f, &f.body)?;
        // In every iteration the start would start anew.
        if start != From::Acc && !f.body.iter().any(|s| matches!(s.op, Op::If(_))) {
            return None;
        }
        let data = &self.kernel.tiles[product.d.tile].ty;
        if data.layout.is_some() || !matches!(data.dtype, DType::F32 | DType::I32) {
            return None;
        }
        let (a, b) = (self.out.windows.get(&product.a.tile)?, self.out.windows.get(&product.b.tile)?);
        let mut inside = FxHashSet::default();
        defined(&f.body, &mut inside);
        inside.insert(f.index);
        let fixed = |v: &Value| !inside.contains(v);
        let mut of_acc = Vec::new();
        product.d.for_each_value(&mut |v| of_acc.push(v));
        if let From::Bias(t) = start {
            self.out.windows.get(&t.tile)?.for_each_value(&mut |v| of_acc.push(v));
        }
        let (rows, cols) = (product.a.valid.0, product.b.valid.1);
        if !of_acc.iter().chain([&rows, &cols]).all(fixed) || product.a.valid.1 != product.b.valid.0 {
            return None;
        }
        // The operands move along k by whole tiles.
        let k = product.a.valid.1;
        let (depth, step) = self.depth(f, k, &fixed)?;
        let along = |view: &ViewRef, axis: usize| -> Option<()> {
            let steady = |p: &Poly| p.symbols().all(|s| s == f.index || fixed(&s));
            let (offset, stride) = (self.defs.poly(view.offset)?, self.defs.poly(view.strides[axis])?);
            let across = self.defs.poly(view.strides[1 - axis])?;
            let still = |p: &Poly| steady(p) && p.step(f.index).is_some_and(|s| s.number() == Some(0));
            let moves = offset.step(f.index)? == stride.times(&Poly::constant(step))?;
            (steady(&offset) && still(&stride) && still(&across) && moves).then_some(())
        };
        along(a, 1)?;
        along(b, 0)?;
        let rounding = self.rounding_of(&f.body)?;
        Some(KLoop { of: f, product, depth, step, start, rounding, span })
    }

    /// How the products of a loop round factors, if all do alike.
    fn rounding_of(&self, body: &Region) -> Option<Option<FactorRounding>> {
        fn all(region: &Region, out: &mut Vec<Option<FactorRounding>>) {
            for stmt in region {
                out.extend(product_of_any(&stmt.op).map(|_| rounding(&stmt.op)));
                stmt.op.regions().for_each(|r| all(r, out));
            }
        }
        let mut found = Vec::new();
        all(body, &mut found);
        let first = *found.first()?;
        found.iter().all(|r| *r == first).then_some(first)
    }

    /// The depth of all iterations, and how far one goes. Each has `tile`, or the last one what is left of some K:
    /// `min(K - tile * k, tile)` for the k below `(K + tile - 1) / tile`.
    fn depth(&self, f: &For, k: Value, fixed: &dyn Fn(&Value) -> bool) -> Option<(Depth, i64)> {
        if let Some(tile) = self.defs.number(k) {
            return (tile > 0).then_some((Depth::Even(tile), tile));
        }
        let (x, y) = self.defs.binary(k, BinOp::Min)?;
        let (rest, tile) = match (self.defs.number(x), self.defs.number(y)) {
            (None, Some(tile)) => (x, tile),
            (Some(tile), None) => (y, tile),
            _ => return None,
        };
        let whole = self.defs.poly(rest)?.plus(&Poly::symbol(f.index), tile)?;
        if tile <= 0 || !whole.symbols().all(|s| fixed(&s)) {
            return None;
        }
        let tiles = match (self.defs.number(f.hi), whole.number()) {
            (Some(tiles), Some(whole)) => tiles == whole.checked_add(tile - 1)?.div_euclid(tile),
            _ => {
                let (sum, by) = self.defs.binary(f.hi, BinOp::Div)?;
                self.defs.number(by) == Some(tile)
                    && self.defs.poly(sum)? == whole.plus(&Poly::constant(tile - 1), 1)?
            }
        };
        tiles.then_some((Depth::AtFirst(rest), tile))
    }

    // ---- accumulators --------------------------------------------------------------------------------------------

    /// `acc = 0; for k {..}; TSTORE(window, acc)` in one region.
    fn stores(&mut self, region: &Region) {
        for (n, stmt) in region.iter().enumerate() {
            if let Op::For(f) = &stmt.op
                && let Some(found) = self.out.loops.get(&f.label)
                && self.only_stored(found, &region[..n], &region[n + 1..])
            {
                let acc = found.product.d.tile;
                self.out.gone.insert(acc);
                self.out.stores.insert(acc, f.label);
            }
            stmt.op.regions().for_each(|r| self.stores(r));
        }
    }

    fn only_stored(&self, k: &KLoop<'_>, before: &[Stmt], after: &[Stmt]) -> bool {
        let acc = k.product.d;
        if !self.whole(&acc) {
            return false;
        }
        let stored = after.iter().filter(|s| self.stored(&s.op, &acc)).count();
        let zeros = before.iter().filter(|s| self.zeroed(&s.op, &acc)).count();
        let uses = self.uses.get(&acc.tile).copied().unwrap_or_default();
        // Of the loop: TMATMUL_ACC reads and writes it, what starts only writes it.
        let (reads, writes) = if k.start == From::Acc { (1, 1) } else { (1, 2) };
        stored == 1
            && uses.reads == reads + 1
            && match k.start {
                From::Acc => zeros == 1 && uses.writes == writes + 1,
                _ => zeros == 0 && uses.writes == writes,
            }
    }

    fn stored(&self, op: &Op, acc: &TileRef) -> bool {
        let Some((view, tile)) = stored(op) else { return false };
        let tensor = &self.kernel.tensors[view.tensor];
        tile == *acc
            && view.strides.len() == 2
            && view.shape[..] == [acc.valid.0, acc.valid.1]
            && matches!(tensor.dir, TensorDir::Out | TensorDir::InOut)
            && tensor.dtype == self.kernel.tiles[acc.tile].ty.dtype
    }

    fn zeroed(&self, op: &Op, acc: &TileRef) -> bool {
        let Op::Inst(inst) = op else { return false };
        let zero = |v| matches!(self.defs.of(v), Some(Op::Const { value, .. }) if value.bits == 0);
        expand(inst).is_some_and(|(d, s)| d == *acc && zero(s))
    }
}

impl Products<'_> {
    /// Whether the statement only fills tiles that are gone.
    pub fn disappears(&self, op: &Op) -> bool {
        let to = load(op).map(|(t, _)| t).or_else(|| moved(op).map(|(t, _)| t));
        to.is_some_and(|t| self.gone.contains(&t.tile))
    }

    /// Whether it is the start of an accumulator that is gone.
    pub fn starts(&self, op: &Op) -> bool {
        matches!(op, Op::Inst(inst) if expand(inst).is_some_and(|(d, _)| self.stores.contains_key(&d.tile)))
    }
}

fn defined(region: &Region, out: &mut FxHashSet<Value>) {
    for stmt in region {
        out.extend(stmt.op.def());
        if let Op::For(f) = &stmt.op {
            out.insert(f.index);
        }
        stmt.op.regions().for_each(|r| defined(r, out));
    }
}
