//! Builds a [`Kernel`]: constants are shared, pure scalar code is folded and numbered.
//!
//! The builder keeps a stack of open regions: the prologue, after [`Builder::begin_body`] the body on top of it, and
//! whatever [`Builder::push_region`] opened. Guarantees that callers rely on:
//!
//! * **Equal constants are the same [`Value`]**, wherever they were asked for. They are defined at the start of the
//!   prologue.
//! * **Equal pure expressions are the same [`Value`]** wherever one dominates the other. A pure operation is placed in
//!   the outermost open region in which its operands are defined (but body code stays in the body), so expressions in
//!   sibling regions meet there. All pure operations are total, hence moving them up is never wrong.
//! * Folding uses [`crate::scalar`], the arithmetic of the interpreter.

use super::simplify::Simplified;
use super::{
    AddrKind, Affine, CheckData, CheckId, Const, Copy, Dim, For, GridDim, If, Inst, Kernel, Label, Mma, Op, Region,
    RoleId, ScalarParam, Scope, ScopeCell, Stmt, SyncMode, SyncOp, TensorData, TensorId, Tile, TileData, TileRef,
    Trail, Ty, Value, ValueData, Var, VarData, While,
};
use crate::scalar;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use ptoc_diagnostics::Span;
use ptoc_isa::{BinOp, CmpOp, RoundMode, TileType, UnOp};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

/// A pure expression over values.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Unary(UnOp, Value),
    Binary(BinOp, Value, Value),
    Compare(CmpOp, Value, Value),
    Select(Value, Value, Value),
    Convert(Ty, Value, RoundMode, bool),
    Bitcast(Ty, Value),
}

/// An open region.
#[derive(Default)]
struct Frame {
    stmts: Region,
    available: FxHashMap<Key, Value>,
}

/// A kernel under construction.
pub struct Builder {
    kernel: Kernel,
    frames: Vec<Frame>,
    constants: FxHashMap<Const, Value>,
    constant_stmts: Region,
    const_of: SecondaryMap<Value, Option<Const>>,
    /// The expression of a pure value, for simplification.
    expr_of: SecondaryMap<Value, Option<Key>>,
    /// One more than the index of the frame that defines the value; 0 while unknown.
    depth: SecondaryMap<Value, u32>,
    in_body: bool,
    scope: ScopeCell,
    trail: Trail,
}

impl Builder {
    /// An empty kernel; the prologue is open.
    pub fn new(name: impl Into<SmolStr>, span: Span, target: impl Into<SmolStr>) -> Builder {
        Builder {
            kernel: Kernel {
                name: name.into(),
                span,
                target: target.into(),
                tensors: PrimaryMap::new(),
                dims: PrimaryMap::new(),
                scalars: Vec::new(),
                values: PrimaryMap::new(),
                vars: PrimaryMap::new(),
                tiles: PrimaryMap::new(),
                aliases: Vec::new(),
                pins: Vec::new(),
                events: PrimaryMap::new(),
                roles: PrimaryMap::new(),
                sync: SyncMode::Auto,
                checks: PrimaryMap::new(),
                labels: PrimaryMap::new(),
                prologue: Region::new(),
                grid: Vec::new(),
                raster: None,
                cluster: Vec::new(),
                on: None,
                host: false,
                body: Region::new(),
            },
            frames: vec![Frame::default()],
            constants: FxHashMap::default(),
            constant_stmts: Region::new(),
            const_of: SecondaryMap::new(),
            expr_of: SecondaryMap::new(),
            depth: SecondaryMap::new(),
            in_body: false,
            scope: ScopeCell::default(),
            trail: Trail::default(),
        }
    }

    /// The kernel as far as it is built. Statements are in open regions and not in it.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// For changes to entities that were made earlier (a tile's address, a tensor's flags).
    pub fn kernel_mut(&mut self) -> &mut Kernel {
        &mut self.kernel
    }

    /// The cell that says to which scope new statements belong; 0 unless somebody sets it.
    pub fn scope_cell(&self) -> ScopeCell {
        self.scope.clone()
    }

    /// [`Builder::finish`], with the scopes of all statements.
    pub fn finish_with_trail(mut self) -> (Kernel, Trail) {
        let trail = std::mem::take(&mut self.trail);
        (self.finish(), trail)
    }

    /// Notes a statement that goes into a region by other ways than [`Builder::emit`].
    pub fn note(&mut self, op: &Op, span: Span) {
        self.trail.note(op, span, self.scope.get());
    }

    /// Closes the prologue and the body. Regions that are still open are merged into the body.
    pub fn finish(mut self) -> Kernel {
        while self.frames.len() > 2 {
            let rest = self.pop_region();
            self.frames.last_mut().expect("a frame is left").stmts.extend(rest);
        }
        if self.frames.len() == 2 {
            self.kernel.body = self.pop_region();
        }
        self.kernel.prologue = self.constant_stmts;
        self.kernel.prologue.extend(self.frames.pop().expect("the prologue is open").stmts);
        self.kernel
    }

    // ---- entities ------------------------------------------------------------------------------------------------

    /// A new value. Whoever makes one without an operation of this builder must define it (a `for` index).
    pub fn new_value(&mut self, ty: Ty, name: Option<SmolStr>, span: Span) -> Value {
        let value = self.kernel.values.push(ValueData { ty, name, span });
        self.trail.values[value] = self.scope.get();
        value
    }

    /// Says that `value` is defined by the innermost open region itself (a loop's index).
    pub fn define_here(&mut self, value: Value) {
        self.depth[value] = self.frames.len() as u32;
    }

    /// A symbolic dimension; returns its value.
    pub fn dim(&mut self, name: impl Into<SmolStr>, span: Span) -> Value {
        let name = name.into();
        let value = self.new_value(Ty::Index, Some(name.clone()), span);
        self.depth[value] = 1;
        self.kernel.dims.push(Dim { name, value, span });
        value
    }

    /// A scalar argument; returns its value. A default is set by [`Builder::set_scalar_default`].
    pub fn scalar_param(&mut self, name: impl Into<SmolStr>, ty: Ty, span: Span) -> Value {
        let name = name.into();
        let value = self.new_value(ty, Some(name.clone()), span);
        self.depth[value] = 1;
        self.kernel.scalars.push(ScalarParam { name, value, default: None, span });
        value
    }

    /// The default of the argument whose value is `param`. It must be computed in the prologue before `param` is used.
    pub fn set_scalar_default(&mut self, param: Value, default: Value) {
        if let Some(p) = self.kernel.scalars.iter_mut().find(|p| p.value == param) {
            p.default = Some(default);
        }
    }

    /// A tensor.
    pub fn tensor(&mut self, data: TensorData) -> TensorId {
        self.kernel.tensors.push(data)
    }

    /// A mutable scalar.
    pub fn var(&mut self, name: impl Into<SmolStr>, ty: Ty) -> Var {
        self.kernel.vars.push(VarData { name: name.into(), ty })
    }

    /// A tile, in full.
    pub fn tile(&mut self, data: TileData) -> Tile {
        self.kernel.tiles.push(data)
    }

    /// One tile of its own storage, not hidden.
    pub fn auto_tile(&mut self, name: impl Into<SmolStr>, ty: TileType, span: Span) -> Tile {
        self.tile(TileData { name: name.into(), ty, count: 1, stages: 1, addr: AddrKind::Auto, hidden: false, span })
    }

    /// A check's text.
    pub fn check_data(&mut self, data: CheckData) -> CheckId {
        self.kernel.checks.push(data)
    }

    /// A label.
    pub fn label(&mut self, span: Span) -> Label {
        self.kernel.labels.push(span)
    }

    /// A dimension of the grid, slowest first; returns the block's number. `extent` is a value of the prologue.
    pub fn grid_dim(&mut self, name: impl Into<SmolStr>, extent: Value, span: Span) -> Value {
        let name = name.into();
        let index = self.new_value(Ty::Index, Some(name.clone()), span);
        self.depth[index] = 2;
        self.kernel.grid.push(GridDim { name, extent, index });
        index
    }

    /// Type of a value.
    pub fn ty(&self, value: Value) -> Ty {
        self.kernel.values[value].ty
    }

    /// Gives a value a name, unless it has one (equal expressions share a value; the first name stays).
    pub fn name_value(&mut self, value: Value, name: impl Into<SmolStr>) {
        self.kernel.values[value].name.get_or_insert_with(|| name.into());
    }

    // ---- regions -------------------------------------------------------------------------------------------------

    /// Ends the prologue and opens the body. Only the first call has an effect.
    pub fn begin_body(&mut self) {
        if !self.in_body {
            self.in_body = true;
            self.push_region();
        }
    }

    /// Opens a region inside the innermost one.
    pub fn push_region(&mut self) {
        self.frames.push(Frame::default());
    }

    /// Closes the innermost region, which must not be the prologue, and returns its statements.
    pub fn pop_region(&mut self) -> Region {
        assert!(self.frames.len() > 1, "pop_region without push_region");
        self.frames.pop().map(|f| f.stmts).unwrap_or_default()
    }

    /// Takes the statements of the innermost region and leaves it open: its values stay available. This is how a
    /// `while` is built: `push_region`, head, `take_region` (the head), body, `pop_region` (the body).
    pub fn take_region(&mut self) -> Region {
        std::mem::take(&mut self.frames.last_mut().expect("a region is open").stmts)
    }

    /// Whether the value is defined in a region that is open. To be asked right after a region ended.
    pub fn is_available(&self, value: Value) -> bool {
        (self.depth[value] as usize) <= self.frames.len()
    }

    /// The statements of the open regions, the outermost first.
    pub fn open_regions(&self) -> Vec<&[Stmt]> {
        self.frames.iter().map(|f| &f.stmts[..]).collect()
    }

    /// How many statements the innermost open region has.
    pub fn len(&self) -> usize {
        self.frames.last().map_or(0, |f| f.stmts.len())
    }

    /// Whether the innermost open region has no statement.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The statements of the innermost open region from the one of this number on.
    pub fn since(&self, number: usize) -> &[Stmt] {
        self.frames.last().and_then(|f| f.stmts.get(number..)).unwrap_or_default()
    }

    /// Number of open regions: 1 in the prologue, 2 in the body itself.
    pub fn region_depth(&self) -> usize {
        self.frames.len()
    }

    /// Appends a statement to the innermost region.
    pub fn emit(&mut self, op: Op, span: Span) {
        if let Some(dst) = op.def() {
            self.define_here(dst);
            if let Op::Const { value, .. } = op {
                self.const_of[dst] = Some(value);
            }
        }
        self.note(&op, span);
        self.frames.last_mut().expect("a region is open").stmts.push(Stmt { op, span });
    }

    /// Inserts a statement right after the declaration of `tile`, which must be in an open region; it may use constants
    /// only. `false` if there is no such declaration.
    pub fn emit_after_alloc(&mut self, tile: Tile, op: Op, span: Span) -> bool {
        self.note(&op, span);
        for frame in self.frames.iter_mut().rev() {
            if let Some(at) = frame.stmts.iter().rposition(|s| matches!(s.op, Op::Alloc { tile: t } if t == tile)) {
                frame.stmts.insert(at + 1, Stmt { op, span });
                return true;
            }
        }
        false
    }

    // ---- constants -----------------------------------------------------------------------------------------------

    /// A constant; equal ones are the same value.
    pub fn constant(&mut self, value: Const) -> Value {
        let value = Const { ty: value.ty, bits: value.bits & scalar::mask(value.ty) };
        if let Some(&v) = self.constants.get(&value) {
            return v;
        }
        let dst = self.new_value(value.ty, None, Span::default());
        self.depth[dst] = 1;
        self.const_of[dst] = Some(value);
        self.constants.insert(value, dst);
        self.constant_stmts.push(Stmt { op: Op::Const { dst, value }, span: Span::default() });
        dst
    }

    /// An `index` constant.
    pub fn index_const(&mut self, value: i64) -> Value {
        self.constant(Const::index(value))
    }

    /// A truth value.
    pub fn bool_const(&mut self, value: bool) -> Value {
        self.constant(Const { ty: Ty::BOOL, bits: u64::from(value) })
    }

    /// A float constant, rounded to nearest.
    pub fn float_const(&mut self, dtype: DType, value: f32) -> Value {
        self.constant(Const { ty: Ty::D(dtype), bits: scalar::from_f32(dtype, value) })
    }

    /// The constant that `value` is, if it is one.
    pub fn const_of(&self, value: Value) -> Option<Const> {
        self.const_of[value]
    }

    /// The `index` constant that `value` is, if it is one.
    pub fn index_of(&self, value: Value) -> Option<i64> {
        self.const_of(value).and_then(Const::as_index)
    }

    // ---- pure scalar code ----------------------------------------------------------------------------------------

    /// `op a`; `a` must have a type for which it exists.
    pub fn unary(&mut self, op: UnOp, a: Value, span: Span) -> Value {
        let ty = self.ty(a);
        if let Some(bits) = self.const_of(a).and_then(|c| scalar::unary(op, ty, c.bits)) {
            return self.constant(Const { ty, bits });
        }
        self.pure(Key::Unary(op, a), ty, span)
    }

    /// `a op b`, both of one type.
    pub fn binary(&mut self, op: BinOp, a: Value, b: Value, span: Span) -> Value {
        let ty = self.ty(a);
        let (ca, cb) = (self.const_of(a), self.const_of(b));
        if let (Some(ca), Some(cb)) = (ca, cb)
            && let Some(bits) = scalar::binary(op, ty, ca.bits, cb.bits)
        {
            return self.constant(Const { ty, bits });
        }
        match super::simplify::binary(op, ty, (a, ca), (b, cb)) {
            Some(Simplified::Value(v)) => return v,
            Some(Simplified::Const(bits)) => return self.constant(Const { ty, bits }),
            None => {}
        }
        let (op, a, b) = self.canonical(op, ty, a, b);
        // (x + c) + d = x + (c + d): wrapping addition is associative.
        if let (BinOp::Add, Ty::Index, Some(d)) = (op, ty, self.index_of(b))
            && let Some(Key::Binary(BinOp::Add, x, c)) = self.expr_of[a]
            && let Some(c) = self.index_of(c)
        {
            let sum = self.index_const(c.wrapping_add(d));
            return self.binary(BinOp::Add, x, sum, span);
        }
        self.pure(Key::Binary(op, a, b), ty, span)
    }

    /// One spelling for equal integer expressions: constants right, else the older value left; x - c is x + -c.
    fn canonical(&mut self, op: BinOp, ty: Ty, a: Value, b: Value) -> (BinOp, Value, Value) {
        if scalar::float(ty).is_some() {
            return (op, a, b);
        }
        if let (BinOp::Sub, Ty::Index, Some(c)) = (op, ty, self.index_of(b)) {
            return (BinOp::Add, a, self.index_const(c.wrapping_neg()));
        }
        let commutes = !matches!(op, BinOp::Sub | BinOp::Div | BinOp::Rem | BinOp::Shl | BinOp::Shr);
        let rank = |v: Value| (self.const_of(v).is_some(), v);
        if commutes && rank(b) < rank(a) { (op, b, a) } else { (op, a, b) }
    }

    /// `a op b` as `bool`.
    pub fn compare(&mut self, op: CmpOp, a: Value, b: Value, span: Span) -> Value {
        let ty = self.ty(a);
        if let (Some(x), Some(y)) = (self.const_of(a), self.const_of(b)) {
            return self.bool_const(scalar::compare(op, ty, x.bits, y.bits));
        }
        if a == b && scalar::float(ty).is_none() {
            return self.bool_const(matches!(op, CmpOp::Eq | CmpOp::Le | CmpOp::Ge));
        }
        self.pure(Key::Compare(op, a, b), Ty::BOOL, span)
    }

    /// `cond ? a : b`
    pub fn select(&mut self, cond: Value, a: Value, b: Value, span: Span) -> Value {
        match self.const_of(cond) {
            Some(c) if c.bits & 1 == 1 => a,
            Some(_) => b,
            None if a == b => a,
            None => self.pure(Key::Select(cond, a, b), self.ty(a), span),
        }
    }

    /// Conversion to `to`. `saturate` matters between integers ([`scalar::saturates`]).
    pub fn convert(&mut self, a: Value, to: Ty, round: RoundMode, saturate: bool, span: Span) -> Value {
        let from = self.ty(a);
        if from == to {
            return a;
        }
        if let Some(c) = self.const_of(a) {
            let bits = scalar::convert(from, to, c.bits, round, scalar::saturates(from, to, saturate));
            return self.constant(Const { ty: to, bits });
        }
        self.pure(Key::Convert(to, a, round, saturate), to, span)
    }

    /// The same bits as another type of the same width.
    pub fn bitcast(&mut self, a: Value, to: Ty, span: Span) -> Value {
        if self.ty(a) == to {
            return a;
        }
        match self.const_of(a) {
            Some(c) => self.constant(Const { ty: to, bits: c.bits }),
            None => self.pure(Key::Bitcast(to, a), to, span),
        }
    }

    /// `a + b`
    pub fn add(&mut self, a: Value, b: Value, span: Span) -> Value {
        self.binary(BinOp::Add, a, b, span)
    }

    /// `a - b`
    pub fn sub(&mut self, a: Value, b: Value, span: Span) -> Value {
        self.binary(BinOp::Sub, a, b, span)
    }

    /// `a * b`
    pub fn mul(&mut self, a: Value, b: Value, span: Span) -> Value {
        self.binary(BinOp::Mul, a, b, span)
    }

    /// `ceil(a / b)` of `index` values: `-(-a floordiv b)`.
    pub fn ceil_div(&mut self, a: Value, b: Value, span: Span) -> Value {
        let minus_a = self.unary(UnOp::Neg, a, span);
        let quotient = self.binary(BinOp::Div, minus_a, b, span);
        self.unary(UnOp::Neg, quotient, span)
    }

    /// Both, of `bool` values.
    pub fn and(&mut self, a: Value, b: Value, span: Span) -> Value {
        self.binary(BinOp::And, a, b, span)
    }

    /// Finds or makes the value of a pure expression.
    fn pure(&mut self, key: Key, ty: Ty, span: Span) -> Value {
        if let Some(&v) = self.frames.iter().rev().find_map(|f| f.available.get(&key)) {
            return v;
        }
        let innermost = self.frames.len() as u32;
        let mut home = if self.in_body { 2.min(innermost) } else { 1 };
        let mut operand = |v: Value| {
            let depth = self.depth[v];
            home = home.max(if depth == 0 { innermost } else { depth.min(innermost) });
        };
        let dst_op = |dst| match key {
            Key::Unary(op, a) => Op::Unary { dst, op, a },
            Key::Binary(op, a, b) => Op::Binary { dst, op, a, b },
            Key::Compare(op, a, b) => Op::Compare { dst, op, a, b },
            Key::Select(cond, a, b) => Op::Select { dst, cond, a, b },
            Key::Convert(_, a, round, saturate) => Op::Convert { dst, a, round, saturate },
            Key::Bitcast(_, a) => Op::Bitcast { dst, a },
        };
        let dst = self.kernel.values.push(ValueData { ty, name: None, span });
        self.trail.values[dst] = self.scope.get();
        let op = dst_op(dst);
        op.for_each_use(&mut operand);
        self.depth[dst] = home;
        self.expr_of[dst] = Some(key);
        let frame = &mut self.frames[home as usize - 1];
        frame.available.insert(key, dst);
        frame.stmts.push(Stmt { op, span });
        dst
    }

    // ---- effects -------------------------------------------------------------------------------------------------

    /// Reads a mutable scalar.
    pub fn get(&mut self, var: Var, span: Span) -> Value {
        let dst = self.new_value(self.kernel.vars[var].ty, None, span);
        self.emit(Op::Get { dst, var }, span);
        dst
    }

    /// Writes a mutable scalar.
    pub fn set(&mut self, var: Var, value: Value, span: Span) {
        self.emit(Op::Set { var, value }, span);
    }

    /// Reads element `offset` of a tensor.
    pub fn load(&mut self, tensor: TensorId, offset: Value, span: Span) -> Value {
        let dst = self.new_value(Ty::D(self.kernel.tensors[tensor].dtype), None, span);
        self.emit(Op::Load { dst, tensor, offset }, span);
        dst
    }

    /// Reads an element of a tile.
    pub fn tile_get(&mut self, tile: TileRef, row: Value, col: Value, span: Span) -> Value {
        let dst = self.new_value(Ty::D(self.kernel.tiles[tile.tile].ty.dtype), None, span);
        self.emit(Op::TileGet { dst, tile, row, col }, span);
        dst
    }

    /// A PTO instruction.
    pub fn inst(&mut self, inst: Inst, span: Span) {
        self.emit(Op::Inst(Box::new(inst)), span);
    }

    /// Moves elements along a nest of axes.
    pub fn copy(&mut self, copy: Copy, span: Span) {
        self.emit(Op::Copy(Box::new(copy)), span);
    }

    /// Accumulates products along a nest of axes.
    pub fn mma(&mut self, mma: Mma, span: Span) {
        self.emit(Op::Mma(Box::new(mma)), span);
    }

    /// An affine function of no axis in particular: `start` and zero strides for `axes` axes.
    pub fn fixed(&mut self, start: Value, axes: usize) -> Affine {
        Affine { start, strides: vec![self.index_const(0); axes] }
    }

    /// Emits a check, unless `cond` is the constant `true`. Returns whether it was emitted.
    pub fn check(&mut self, cond: Value, data: CheckData, args: Vec<Value>, span: Span) -> bool {
        if self.const_of(cond).is_some_and(|c| c.bits & 1 == 1) {
            return false;
        }
        let check = self.check_data(data);
        self.emit(Op::Check { cond, check, args }, span);
        true
    }

    /// The whole of element 0 of a tile: valid as far as its capacity goes.
    pub fn whole(&mut self, tile: Tile) -> TileRef {
        let ty = self.kernel.tiles[tile].ty;
        let valid = (self.index_const(i64::from(ty.rows)), self.index_const(i64::from(ty.cols)));
        TileRef { tile, element: None, origin: None, rows: ty.rows, cols: ty.cols, valid }
    }

    /// The whole of element 0 of a tile with the given valid shape.
    pub fn tile_ref(&self, tile: Tile, valid: (Value, Value)) -> TileRef {
        let ty = self.kernel.tiles[tile].ty;
        TileRef { tile, element: None, origin: None, rows: ty.rows, cols: ty.cols, valid }
    }

    // ---- structure -----------------------------------------------------------------------------------------------

    /// `for name in lo..hi`, the body built by `body`.
    pub fn for_loop(
        &mut self,
        name: &str,
        (lo, hi): (Value, Value),
        stages: u32,
        span: Span,
        body: impl FnOnce(&mut Builder, Label, Value),
    ) {
        let label = self.label(span);
        let index = self.new_value(Ty::Index, Some(name.into()), span);
        self.push_region();
        self.define_here(index);
        body(self, label, index);
        let body = self.pop_region();
        self.emit(Op::For(Box::new(For { label, index, lo, hi, stages, body })), span);
    }

    /// `if cond { then } else { els }`
    pub fn if_else(
        &mut self,
        cond: Value,
        span: Span,
        then: impl FnOnce(&mut Builder),
        els: impl FnOnce(&mut Builder),
    ) {
        self.push_region();
        then(self);
        let then = self.pop_region();
        self.push_region();
        els(self);
        let els = self.pop_region();
        self.emit(Op::If(Box::new(If { cond, then, els })), span);
    }

    /// `while head { body }`; `head` returns the condition.
    pub fn while_loop(
        &mut self,
        span: Span,
        head: impl FnOnce(&mut Builder, Label) -> Value,
        body: impl FnOnce(&mut Builder, Label),
    ) {
        let label = self.label(span);
        self.push_region();
        let cond = head(self, label);
        let head = self.take_region();
        body(self, label);
        let body = self.pop_region();
        self.emit(Op::While(Box::new(While { label, head, cond, body })), span);
    }

    /// Orders pipes.
    pub fn sync(&mut self, sync: SyncOp, span: Span) {
        self.emit(Op::Sync(sync), span);
    }

    /// A region that `role` issues.
    pub fn role(&mut self, role: RoleId, span: Span, body: impl FnOnce(&mut Builder)) {
        let label = self.label(span);
        self.push_region();
        body(self);
        let body = self.pop_region();
        self.emit(Op::Scope(Box::new(Scope { label, role: Some(role), body })), span);
    }

    /// A region that `leave` ends.
    pub fn scope(&mut self, span: Span, body: impl FnOnce(&mut Builder, Label)) {
        let label = self.label(span);
        self.push_region();
        body(self, label);
        let body = self.pop_region();
        self.emit(Op::Scope(Box::new(Scope { label, role: None, body })), span);
    }
}

#[cfg(test)]
mod tests;
