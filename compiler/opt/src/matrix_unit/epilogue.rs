//! Epilogues: what becomes of an accumulator's elements on their way to memory, as steps on one element.
//!
//! Every instruction behind the product is element-wise: its result at row i and column j is made of the accumulator's
//! element there, of elements of other tiles there (of a row at j, of a column at i), of array elements whose place
//! follows from i and j, and of scalars that are the same in the whole launch. So the order of elements cannot be seen,
//! and loops over subtiles disappear: that they cover the block is shown here.

use super::{ArrayMatrix, Finder, no};
use crate::fusion::dtype;
use crate::pattern::{OperandWindow, Pattern, Read};
use ptoc_diagnostics::Span;
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{
    For, If, Inst, InstAttrs, Op, Operand, Region, Stmt, TensorDir, Tile, TileRef, Ty, Value, ViewRef,
};
use ptoc_isa::{BinOp, CmpOp, Sem};
use ptoc_placement::access::is_private;
use ptoc_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};

/// Steps at most: each is code for every element that a thread has.
const LONGEST: usize = 64;

/// What becomes of an element.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Epilogue<'k> {
    /// The arrays that it is made of, or goes to.
    pub arrays: Vec<ElementArray>,
    /// In order.
    pub steps: Vec<EpilogueStep<'k>>,
}

/// An array under the rows and columns of the result: a row has no stride from row to row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ElementArray {
    /// Where its elements are.
    pub matrix: ArrayMatrix,
    /// What they are.
    pub dtype: DType,
    /// Which of rows and columns it has.
    pub has: [bool; 2],
}

/// Where an operand of a step comes from, or its result goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The accumulator.
    Acc,
    /// An array, by its number.
    Array(usize),
    /// A tile's element.
    Tile(Tile),
}

/// A step.
#[derive(Clone, PartialEq, Debug)]
pub enum EpilogueStep<'k> {
    /// An instruction.
    Inst {
        /// What it computes.
        pattern: Pattern<'k>,
        /// Its operands that are no scalars.
        from: Vec<Place>,
        /// Its result.
        to: Place,
        /// Its source.
        span: Span,
    },
    /// Steps that a scalar decides about.
    If {
        /// The scalar.
        cond: Value,
        /// When true.
        then: Vec<EpilogueStep<'k>>,
        /// When false.
        els: Vec<EpilogueStep<'k>>,
    },
}

impl EpilogueStep<'_> {
    /// This step, and those in it.
    pub fn each(&self, f: &mut dyn FnMut(&EpilogueStep<'_>)) {
        f(self);
        if let EpilogueStep::If { then, els, .. } = self {
            then.iter().chain(els).for_each(|s| s.each(f));
        }
    }
}

impl Epilogue<'_> {
    /// The number of the one array where sums are stored as floats; `None` if more is done to them.
    pub fn plain(&self) -> Option<usize> {
        match &self.steps[..] {
            [EpilogueStep::Inst { pattern, from, to: Place::Array(n), .. }] if from[..] == [Place::Acc] => {
                let float = matches!(self.arrays[*n].dtype, DType::F32 | DType::F16 | DType::BF16);
                (float && pattern.inst.attrs == InstAttrs::default()).then_some(*n)
            }
            _ => None,
        }
    }
}

/// Which part of the block's rows and columns a tile has elements for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Whole,
    /// All of them, its rows under the block's columns.
    Turned,
    /// One row, or one column, for all.
    Row,
    Column,
}

impl Kind {
    fn has(self) -> [bool; 2] {
        [self != Kind::Row, self != Kind::Column]
    }
}

/// Subtiles along one side: the index that counts them, and how long one is.
type Subtiles = Option<(Value, i64)>;

/// The part of the block that statements at hand are about.
#[derive(Clone, Default)]
struct Scope {
    shape: Option<(Value, Value)>,
    along: [Subtiles; 2],
    /// Tiles that have elements.
    tiles: FxHashMap<Tile, Kind>,
}

/// Finds the steps.
pub(super) struct EpilogueFinder<'f, 'k, 'p> {
    pub(super) finder: &'f Finder<'k, 'p>,
    pub(super) acc: TileRef,
    /// The number of steps of k, which is positive.
    pub(super) count: Option<Value>,
    /// The dimensions of the grid that count tiles of rows and of columns, and how long those are.
    pub(super) block: [(usize, u32); 2],
    pub(super) out: Epilogue<'k>,
}

impl<'k> EpilogueFinder<'_, 'k, '_> {
    /// The steps of statements around the product.
    pub(super) fn steps(mut self, before: &[&'k Stmt], after: &'k [Stmt]) -> Result<Epilogue<'k>, String> {
        let mut scope = Scope { shape: Some(self.acc.valid), ..Scope::default() };
        let mut steps = Vec::new();
        for stmt in before.iter().copied().chain(after) {
            self.stmt(stmt, &mut scope, &mut steps)?;
        }
        self.out.steps = steps;
        let mut count = 0;
        let mut stored = FxHashSet::default();
        let mut look = |step: &EpilogueStep<'_>| {
            count += 1;
            if let EpilogueStep::Inst { to: Place::Array(n), .. } = step {
                stored.insert(*n);
            }
        };
        self.out.steps.iter().for_each(|step| step.each(&mut look));
        let tensors: FxHashSet<u32> = stored.iter().map(|n| self.out.arrays[*n].matrix.tensor).collect();
        if stored.is_empty() {
            return no("there is no product that is stored");
        }
        if tensors.len() != stored.len() {
            return no("an array is stored to at two places");
        }
        if count > LONGEST {
            return no(format!("what becomes of an element has {count} steps, and {LONGEST} are taken"));
        }
        Ok(self.out)
    }

    fn region(
        &mut self,
        region: &'k Region,
        scope: &mut Scope,
        steps: &mut Vec<EpilogueStep<'k>>,
    ) -> Result<(), String> {
        region.iter().try_for_each(|stmt| self.stmt(stmt, scope, steps))
    }

    fn stmt(&mut self, stmt: &'k Stmt, scope: &mut Scope, steps: &mut Vec<EpilogueStep<'k>>) -> Result<(), String> {
        match &stmt.op {
            op if op.is_pure() || self.finder.products.disappears(op) => Ok(()),
            Op::Alloc { .. } => Ok(()),
            Op::For(f) => self.subtiles(f, scope, steps),
            Op::If(i) => self.choice(i, scope, steps),
            Op::Check { cond, .. } if self.holds(*cond) => Ok(()),
            Op::Inst(inst) => self.inst(inst, stmt.span, scope, steps),
            _ => no("there is more in the kernel than a product and what is done to its elements"),
        }
    }

    /// Whether a check is the one that there is a step of k, and there is one.
    fn holds(&self, cond: Value) -> bool {
        match self.finder.defs.of(cond) {
            Some(Op::Compare { op: CmpOp::Lt, a, b, .. }) => {
                self.finder.defs.number(*a) == Some(0) && self.count == Some(*b)
            }
            _ => false,
        }
    }

    fn choice(&mut self, i: &'k If, scope: &mut Scope, steps: &mut Vec<EpilogueStep<'k>>) -> Result<(), String> {
        if !self.uniform(i.cond) {
            return no("a condition behind the product depends on the block");
        }
        let (mut then, mut els) = (scope.clone(), scope.clone());
        let (mut first, mut second) = (Vec::new(), Vec::new());
        self.region(&i.then, &mut then, &mut first)?;
        self.region(&i.els, &mut els, &mut second)?;
        // What only one branch has made is there in neither.
        scope.tiles = then.tiles;
        scope.tiles.retain(|tile, kind| els.tiles.get(tile) == Some(kind));
        if !first.is_empty() || !second.is_empty() {
            steps.push(EpilogueStep::If { cond: i.cond, then: first, els: second });
        }
        Ok(())
    }

    // ---- subtiles ---------------------------------------------------------------------------------------------------

    /// A loop over subtiles of all rows, or of all columns.
    fn subtiles(&mut self, f: &'k For, scope: &mut Scope, steps: &mut Vec<EpilogueStep<'k>>) -> Result<(), String> {
        let Some((axis, length, valid)) = self.covers(f, scope) else {
            return no("a loop behind the product does not go over subtiles of the accumulator");
        };
        let mut inner = scope.clone();
        inner.tiles.clear();
        inner.along[axis] = Some((f.index, length));
        inner.shape = inner.shape.map(|shape| if axis == 0 { (valid, shape.1) } else { (shape.0, valid) });
        self.region(&f.body, &mut inner, steps)?;
        // Tiles have other elements now, of other rows and columns.
        let mut written = FxHashSet::default();
        written_tiles(&f.body, &mut written);
        scope.tiles.retain(|tile, _| !written.contains(tile));
        Ok(())
    }

    /// Along which side the loop's subtiles of the accumulator lie, how long one is, and how much of one is valid.
    fn covers(&self, f: &For, scope: &Scope) -> Option<(usize, i64, Value)> {
        let defs = &self.finder.defs;
        let part = part_of(self.acc.tile, &f.body)?;
        let origin = part.origin?;
        let moves = |v: Value| -> Option<i64> { defs.poly(v)?.step(f.index)?.number() };
        let (axis, length) = match (moves(origin.0)?, moves(origin.1)?) {
            (n, 0) if n > 0 => (0, n),
            (0, n) if n > 0 => (1, n),
            _ => return None,
        };
        let pick = |(rows, cols): (Value, Value)| if axis == 0 { rows } else { cols };
        let (outer, valid) = (pick(scope.shape?), pick(part.valid));
        if scope.along[axis].is_some() || defs.number(f.lo) != Some(0) {
            return None;
        }
        let whole = defs.poly(outer)?;
        let rest = whole.plus(&Poly::symbol(f.index), -length)?;
        // There may be one subtile, of which no more is known than that it is all.
        let one = i64::from(self.block[axis].1) <= length && defs.poly(valid)? == rest;
        let is_rest = match (defs.number(valid), whole.number()) {
            _ if one => true,
            (Some(n), Some(all)) => n == length && all % length == 0,
            (Some(_), None) => false,
            (None, _) => {
                let (left, most) = self.finder.least(valid)?;
                most == length && defs.poly(left)? == rest
            }
        };
        let count = match (defs.number(f.hi), whole.number()) {
            (Some(count), Some(all)) => count == all.checked_add(length - 1)?.div_euclid(length),
            _ => {
                let (sum, by) = defs.binary(f.hi, BinOp::Div)?;
                defs.number(by) == Some(length) && defs.poly(sum)? == whole.plus(&Poly::constant(length - 1), 1)?
            }
        };
        (is_rest && count).then_some((axis, length, valid))
    }

    // ---- instructions -----------------------------------------------------------------------------------------------

    fn inst(
        &mut self,
        inst: &'k Inst,
        span: Span,
        scope: &mut Scope,
        steps: &mut Vec<EpilogueStep<'k>>,
    ) -> Result<(), String> {
        let sem = inst.instr.get().sem;
        let moved = matches!(sem, Sem::Load | Sem::Store | Sem::Move);
        let plain =
            !moved || (inst.operands.len() == 2 && InstAttrs { relu: false, ..inst.attrs } == InstAttrs::default());
        let Some(pattern) = Pattern::of(inst).filter(|_| plain) else {
            return no(format!("{} behind the product is not element-wise", inst.instr.get().written_name()));
        };
        let scalars = inst.operands.iter().filter_map(|o| if let Operand::Scalar(v) = o { Some(*v) } else { None });
        if !scalars.into_iter().all(|v| self.uniform(v)) {
            return no("a scalar behind the product depends on the block");
        }
        let all = pattern.srcs.iter().map(|s| &s.0).chain([&pattern.dst]);
        let kernel = self.finder.kernel;
        if let Some(strange) = all.map(|place| dtype(kernel, place)).find(|d| !computed(*d)) {
            return no(format!("elements of {strange} behind the product"));
        }
        let (kind, to) = match &pattern.dst {
            OperandWindow::Tile(t) => (self.kind(t, scope)?, Place::Tile(t.tile)),
            // As much as the tile that it is stored from.
            OperandWindow::View(_) => (Kind::Whole, Place::Acc),
        };
        let mut from = Vec::new();
        for (src, read) in &pattern.srcs {
            from.push(self.source(src, *read, kind, scope)?);
        }
        let to = match &pattern.dst {
            OperandWindow::View(v) => Place::Array(self.array(v, kind, true, scope)?),
            OperandWindow::Tile(t) => {
                scope.tiles.insert(t.tile, kind);
                to
            }
        };
        steps.push(EpilogueStep::Inst { pattern, from, to, span });
        Ok(())
    }

    /// What a tile that is written has elements for.
    fn kind(&self, t: &TileRef, scope: &Scope) -> Result<Kind, String> {
        let name = || &self.finder.kernel.tiles[t.tile].name;
        if t.tile == self.acc.tile {
            return no("the accumulator is written behind the product");
        }
        if t.origin.is_some() || t.element.is_some() || !is_private(self.finder.kernel, t.tile) {
            return no(format!("`{}` is a part of a tile, or shares its bytes", name()));
        }
        let Some((rows, cols)) = scope.shape else { return no("the accumulator has no shape") };
        let one = |v| self.finder.defs.number(v) == Some(1);
        match (self.same(t.valid.0, rows), self.same(t.valid.1, cols)) {
            (true, true) => Ok(Kind::Whole),
            (false, true) if one(t.valid.0) => Ok(Kind::Row),
            (true, false) if one(t.valid.1) => Ok(Kind::Column),
            _ if self.same(t.valid.0, cols) && self.same(t.valid.1, rows) => Ok(Kind::Turned),
            _ => no(format!("`{}` has other rows and columns than the accumulator's part", name())),
        }
    }

    fn same(&self, a: Value, b: Value) -> bool {
        let number = |v| self.finder.defs.number(v);
        a == b || (number(a).is_some() && number(a) == number(b))
    }

    /// Where an operand of an instruction comes from whose result is of a kind.
    fn source(&mut self, src: &OperandWindow<'k>, read: Read, kind: Kind, scope: &Scope) -> Result<Place, String> {
        let t = match src {
            OperandWindow::View(v) if read == Read::Whole => {
                return Ok(Place::Array(self.array(v, kind, false, scope)?));
            }
            OperandWindow::View(_) => return no("an array behind the product is read in another order"),
            OperandWindow::Tile(t) => t,
        };
        let name = || &self.finder.kernel.tiles[t.tile].name;
        if t.tile == self.acc.tile {
            let whole = kind == Kind::Whole && read == Read::Whole && t.element.is_none();
            return match whole && self.is_part(t, scope) {
                true => Ok(Place::Acc),
                false => no("the accumulator is not read as subtiles of its rows and columns"),
            };
        }
        let has = scope.tiles.get(&t.tile).copied().filter(|_| t.origin.is_none() && t.element.is_none());
        let fits = match (has, read) {
            (Some(has), Read::Whole) => has == kind && self.kind(t, scope) == Ok(kind),
            (Some(Kind::Row), Read::Row) => matches!(kind, Kind::Whole | Kind::Row),
            (Some(Kind::Column), Read::Column) => matches!(kind, Kind::Whole | Kind::Column),
            (Some(Kind::Turned), Read::Turned) => kind == Kind::Whole,
            _ => false,
        };
        if fits { Ok(Place::Tile(t.tile)) } else { no(format!("`{}` is not read element by element", name())) }
    }

    /// Whether the part of the accumulator is the one that the scope is about.
    fn is_part(&self, t: &TileRef, scope: &Scope) -> bool {
        let Some((rows, cols)) = scope.shape else { return false };
        let begins = |origin: Option<Value>, along: Subtiles| -> Option<bool> {
            let at = origin.map_or(Some(Poly::constant(0)), |v| self.finder.defs.poly(v))?;
            let want = match along {
                Some((index, length)) => Poly::constant(0).plus(&Poly::symbol(index), length)?,
                None => Poly::constant(0),
            };
            Some(at == want)
        };
        let [along_rows, along_cols] = scope.along;
        self.same(t.valid.0, rows)
            && self.same(t.valid.1, cols)
            && begins(t.origin.map(|o| o.0), along_rows) == Some(true)
            && begins(t.origin.map(|o| o.1), along_cols) == Some(true)
    }

    // ---- arrays -----------------------------------------------------------------------------------------------------

    /// The number of an array, of which a part of the block's window is moved.
    fn array(&mut self, view: &ViewRef, kind: Kind, stored: bool, scope: &Scope) -> Result<usize, String> {
        let tensor = &self.finder.kernel.tensors[view.tensor];
        let good = match tensor.dir {
            TensorDir::In => !stored,
            TensorDir::Out | TensorDir::InOut => stored,
            TensorDir::Scratch => false,
        };
        if !good {
            return no(format!("`{}` is read and written", tensor.name));
        }
        let none =
            || format!("where the part of `{}` begins does not follow from the grid and the subtile", tensor.name);
        let array = self.element_array(view, kind, scope).ok_or_else(none)?;
        let at = self.out.arrays.iter().position(|a| *a == array).unwrap_or_else(|| {
            self.out.arrays.push(array);
            self.out.arrays.len() - 1
        });
        Ok(at)
    }

    fn element_array(&self, view: &ViewRef, kind: Kind, scope: &Scope) -> Option<ElementArray> {
        let (finder, has, turned) = (self.finder, kind.has(), kind == Kind::Turned);
        let (rows, cols) = scope.shape?;
        let one = |v: Value| finder.defs.number(v) == Some(1);
        let (shape, strides) = match (&view.shape[..], &view.strides[..]) {
            ([c, r], [y, x]) if turned => ((Some(*r), *c), [Some(*x), Some(*y)]),
            ([r, c], [x, y]) => ((Some(*r), *c), [Some(*x), Some(*y)]),
            // A row.
            ([c], [y]) => ((None, *c), [None, Some(*y)]),
            _ => return None,
        };
        let fits = |v: Option<Value>, has: bool, all: Value| match v {
            Some(v) if has => self.same(v, all),
            Some(v) => one(v),
            None => !has,
        };
        if !fits(shape.0, has[0], rows) || !fits(Some(shape.1), has[1], cols) {
            return None;
        }
        let nothing = Poly::constant(0);
        let stride = |n: usize| if has[n] { finder.defs.poly(strides[n]?) } else { Some(nothing.clone()) };
        let strides = [stride(0)?, stride(1)?];
        let mut first = finder.defs.poly(view.offset)?;
        for (along, stride) in scope.along.iter().zip(&strides) {
            let Some((index, length)) = along else { continue };
            let (step, rest) = first.split(*index)?;
            if step != stride.times(&Poly::constant(*length))? {
                return None;
            }
            first = rest;
        }
        let along = [0, 1].map(|n| has[n].then_some(self.block[n]));
        let matrix = finder.placed(view.tensor.as_u32(), first, &strides, along)?;
        Some(ElementArray { matrix, dtype: finder.kernel.tensors[view.tensor].dtype, has })
    }

    // ---- scalars ----------------------------------------------------------------------------------------------------

    /// Whether a scalar follows from the launch's arguments alone.
    fn uniform(&self, v: Value) -> bool {
        let kernel = self.finder.kernel;
        if let Some(Ty::D(d)) = kernel.scalars.iter().find(|s| s.value == v).map(|s| kernel.values[s.value].ty) {
            return matches!(d, DType::F32 | DType::I32 | DType::U32 | DType::I64 | DType::U64 | DType::Bool);
        }
        if kernel.dims.values().any(|d| d.value == v) || kernel.scalars.iter().any(|s| s.value == v) {
            return true;
        }
        match self.finder.defs.of(v) {
            Some(Op::Const { .. }) => true,
            Some(Op::Unary { a, .. } | Op::Convert { a, .. }) => self.uniform(*a),
            Some(Op::Binary { a, b, .. } | Op::Compare { a, b, .. }) => self.uniform(*a) && self.uniform(*b),
            Some(Op::Select { cond, a, b, .. }) => [cond, a, b].into_iter().all(|v| self.uniform(*v)),
            _ => false,
        }
    }
}

/// Elements that steps compute with.
fn computed(d: DType) -> bool {
    use DType::{BF16, Bool, F8E4M3, F8E5M2, F16, F32, I8, I16, I32, U8, U16, U32};
    matches!(d, F32 | F16 | BF16 | F8E4M3 | F8E5M2 | I8 | I16 | I32 | U8 | U16 | U32 | Bool)
}

/// The first part of a tile that a region reads.
fn part_of(tile: Tile, region: &Region) -> Option<TileRef> {
    for stmt in region {
        if let Op::Inst(inst) = &stmt.op {
            let found = inst.operands.iter().find_map(|o| match o {
                Operand::Tile(t) if t.tile == tile => Some(*t),
                _ => None,
            });
            if found.is_some() {
                return found;
            }
        }
        if let Some(found) = stmt.op.regions().find_map(|r| part_of(tile, r)) {
            return Some(found);
        }
    }
    None
}

/// Tiles that a region writes: the first operand of each instruction.
fn written_tiles(region: &Region, out: &mut FxHashSet<Tile>) {
    for stmt in region {
        if let Op::Inst(inst) = &stmt.op
            && let Some(Operand::Tile(t)) = inst.operands.first()
        {
            out.insert(t.tile);
        }
        stmt.op.regions().for_each(|r| written_tiles(r, out));
    }
}
