//! Checks of statements.

use super::Verifier;
use super::scope::Target;
use crate::scalar;
use crate::tile::{
    AddrKind, CheckId, Label, Op, PrintPart, Region, TensorDir, TensorId, Tile, TileRef, Ty, Value, ViewRef,
};
use ptoc_diagnostics::codes;
use ptoc_isa::AtomicOp;

impl Verifier<'_> {
    /// Checks a region and leaves its scope.
    pub(super) fn region(&mut self, region: &Region, depth: usize) {
        if !region.is_empty() && self.depth_ok(depth) {
            let top = depth == 1;
            let mark = self.scopes.mark();
            self.stmts(region, depth);
            // The values of the prologue stay for the body.
            if !top {
                self.scopes.rewind(&mark);
            }
        }
    }

    fn stmts(&mut self, region: &Region, depth: usize) {
        for stmt in region {
            self.span = stmt.span;
            if self.prologue_op(&stmt.op) {
                self.stmt(&stmt.op, depth);
            }
        }
    }

    fn stmt(&mut self, op: &Op, depth: usize) {
        match op {
            Op::For(x) => {
                self.expect(x.lo, Ty::Index, "a bound of `for`");
                self.expect(x.hi, Ty::Index, "a bound of `for`");
                if x.stages == 0 {
                    self.error(codes::IR_DECLARATION, "a `for` has 0 stages");
                }
                let mark = self.scopes.mark();
                self.define(x.index);
                self.expect(x.index, Ty::Index, "the index of a `for`");
                self.labelled(x.label, Target::Loop, |v| v.region(&x.body, depth + 1));
                self.scopes.rewind(&mark);
            }
            Op::If(x) => {
                self.expect(x.cond, Ty::BOOL, "a condition");
                self.region(&x.then, depth + 1);
                self.region(&x.els, depth + 1);
            }
            Op::While(x) => {
                if !self.depth_ok(depth + 1) {
                    return;
                }
                let mark = self.scopes.mark();
                let span = self.span;
                self.stmts(&x.head, depth + 1);
                self.span = span;
                self.expect(x.cond, Ty::BOOL, "a condition");
                self.labelled(x.label, Target::Loop, |v| v.region(&x.body, depth + 1));
                self.scopes.rewind(&mark);
            }
            Op::Scope(x) => {
                self.in_role(x.role, |v| v.labelled(x.label, Target::Scope, |v| v.region(&x.body, depth + 1)));
            }
            Op::Break(label) => self.jump(*label, Target::Loop, "break"),
            Op::Continue(label) => self.jump(*label, Target::Loop, "continue"),
            Op::Leave(label) => self.jump(*label, Target::Scope, "leave"),
            _ => {
                self.simple(op);
                if let Some(dst) = op.def() {
                    self.define(dst);
                }
            }
        }
    }

    fn labelled(&mut self, label: Label, target: Target, inside: impl FnOnce(&mut Self)) {
        if self.k.labels.get(label).is_none() {
            self.error(codes::IR_NO_SUCH_ENTITY, format!("there is no label {label}"));
        }
        if !self.scopes.push_label(label, target) {
            self.error(codes::IR_REDEFINED_VALUE, format!("label {label} names two loops or scopes"));
        }
        inside(self);
        self.scopes.pop_label();
    }

    fn jump(&mut self, label: Label, wanted: Target, word: &str) {
        if self.scopes.target(label) != Some(wanted) {
            let what = if wanted == Target::Loop { "loop" } else { "scope" };
            self.error(codes::IR_LABEL, format!("`{word} {label}` is not inside a {what} of that label"));
        }
    }

    /// The type of the result.
    fn result(&mut self, dst: Value, ty: Option<Ty>) {
        if let (Some(data), Some(ty)) = (self.k.values.get(dst), ty)
            && data.ty != ty
        {
            self.error(codes::IR_TYPE_MISMATCH, format!("the result is {ty}, {dst} is {}", data.ty));
        }
    }

    /// The common type of two operands.
    fn both(&mut self, a: Value, b: Value) -> Option<Ty> {
        let (ta, tb) = (self.used(a)?, self.used(b)?);
        if ta != tb {
            self.error(codes::IR_TYPE_MISMATCH, format!("{a} is {ta}, {b} is {tb}"));
            return None;
        }
        Some(ta)
    }

    /// Everything without a region. The result is not yet visible.
    fn simple(&mut self, op: &Op) {
        match op {
            Op::Const { dst, value } => {
                self.result(*dst, Some(value.ty));
                if value.bits & !scalar::mask(value.ty) != 0 {
                    self.error(codes::IR_TYPE_MISMATCH, format!("{:#x} has bits beyond {}", value.bits, value.ty));
                }
                self.scopes.set_const(*dst, value.as_index());
            }
            Op::Unary { dst, op, a } => {
                let ty = self.used(*a);
                if let Some(ty) = ty.filter(|&t| !scalar::unary_exists(*op, t)) {
                    self.error(codes::IR_TYPE_MISMATCH, format!("there is no `{op}` of {ty}"));
                }
                self.result(*dst, ty);
            }
            Op::Binary { dst, op, a, b } => {
                let ty = self.both(*a, *b);
                if let Some(ty) = ty.filter(|&t| !scalar::binary_exists(*op, t)) {
                    self.error(codes::IR_TYPE_MISMATCH, format!("there is no `{op}` of {ty}"));
                }
                self.result(*dst, ty);
            }
            Op::Compare { dst, a, b, .. } => {
                self.both(*a, *b);
                self.result(*dst, Some(Ty::BOOL));
            }
            Op::Select { dst, cond, a, b } => {
                self.expect(*cond, Ty::BOOL, "the condition of a select");
                let ty = self.both(*a, *b);
                self.result(*dst, ty);
            }
            Op::Convert { a, .. } => {
                self.used(*a);
            }
            Op::Bitcast { dst, a } => {
                let (from, to) = (self.used(*a), self.k.values.get(*dst).map(|d| d.ty));
                if let (Some(from), Some(to)) = (from, to)
                    && scalar::width(from) != scalar::width(to)
                {
                    self.error(codes::IR_TYPE_MISMATCH, format!("{from} and {to} differ in width"));
                }
            }
            Op::Get { dst, var } => match self.k.vars.get(*var) {
                Some(data) => self.result(*dst, Some(data.ty)),
                None => self.error(codes::IR_NO_SUCH_ENTITY, format!("there is no variable {var}")),
            },
            Op::Set { var, value } => match self.k.vars.get(*var).map(|d| d.ty) {
                Some(ty) => self.expect(*value, ty, "the variable"),
                None => self.error(codes::IR_NO_SUCH_ENTITY, format!("there is no variable {var}")),
            },
            Op::Load { dst, tensor, offset } => {
                let ty = self.element(*tensor, *offset, false);
                self.result(*dst, ty);
            }
            Op::Store { tensor, offset, value } => {
                if let Some(ty) = self.element(*tensor, *offset, true) {
                    self.expect(*value, ty, "an element");
                }
            }
            Op::Atomic { dst, op, tensor, offset, expected, value } => {
                let ty = self.element(*tensor, *offset, true);
                if let Some(ty) = ty {
                    self.expect(*value, ty, "an element");
                    if let Some(expected) = expected {
                        self.expect(*expected, ty, "an element");
                    }
                    if !super::inst::atomic_exists(*op, ty) {
                        self.error(codes::IR_TYPE_MISMATCH, format!("there is no atomic `{op}` of {ty}"));
                    }
                }
                if expected.is_some() != (*op == AtomicOp::Cas) {
                    self.error(codes::IR_OPERANDS, "`cas`, and nothing else, has an expected value");
                }
                self.result(*dst, ty);
            }
            Op::TileGet { dst, tile, row, col } => {
                self.tile_ref(tile);
                self.expect(*row, Ty::Index, "a row");
                self.expect(*col, Ty::Index, "a column");
                let ty = self.k.tiles.get(tile.tile).map(|t| Ty::D(t.ty.dtype));
                self.result(*dst, ty);
            }
            Op::TileSet { tile, row, col, value } => {
                self.tile_ref(tile);
                self.expect(*row, Ty::Index, "a row");
                self.expect(*col, Ty::Index, "a column");
                if let Some(ty) = self.k.tiles.get(tile.tile).map(|t| Ty::D(t.ty.dtype)) {
                    self.expect(*value, ty, "an element");
                }
            }
            Op::Alloc { tile } => {
                if self.tile_exists(*tile) {
                    self.scopes.allocate(*tile);
                }
            }
            Op::Assign { tile, element, addr } => {
                self.live(*tile);
                self.tile_element(*tile, *element);
                self.expect(*addr, Ty::Index, "an address");
                if self.k.tiles.get(*tile).is_some_and(|t| t.addr != AddrKind::Dynamic) {
                    self.error(codes::IR_DECLARATION, format!("{tile} is assigned an address but is not dynamic"));
                }
            }
            Op::Inst(inst) => self.inst(inst),
            Op::Copy(copy) => self.copy(copy),
            Op::Mma(mma) => self.mma(mma),
            Op::Sync(sync) => self.sync(sync),
            Op::Check { cond, check, args } => {
                self.expect(*cond, Ty::BOOL, "a check's condition");
                for &arg in args {
                    self.used(arg);
                }
                self.check_text(*check, args.len());
            }
            Op::Print { parts } => {
                for part in parts {
                    match part {
                        PrintPart::Text(_) => {}
                        PrintPart::Scalar(v) => {
                            self.used(*v);
                        }
                        PrintPart::Tile(t) => self.tile_ref(t),
                    }
                }
            }
            // Handled by `stmt`.
            Op::For(_) | Op::If(_) | Op::While(_) | Op::Scope(_) => {}
            Op::Break(_) | Op::Continue(_) | Op::Leave(_) => {}
        }
    }

    fn check_text(&mut self, check: CheckId, args: usize) {
        let Some(data) = self.k.checks.get(check) else {
            return self.error(codes::IR_NO_SUCH_ENTITY, format!("there is no check {check}"));
        };
        for text in [Some(&data.message), data.help.as_ref()].into_iter().flatten() {
            for n in placeholders(text) {
                if n >= args {
                    let message = format!("{check} shows argument {{{n}}}, and the statement has {args}");
                    self.error(codes::IR_CHECK_ARGUMENTS, message);
                }
            }
        }
    }

    /// Element type of a tensor that is read or written at a scalar offset.
    fn element(&mut self, tensor: TensorId, offset: Value, write: bool) -> Option<Ty> {
        self.expect(offset, Ty::Index, "an offset");
        self.tensor(tensor, write)
    }

    pub(super) fn tensor(&mut self, tensor: TensorId, write: bool) -> Option<Ty> {
        let Some(data) = self.k.tensors.get(tensor) else {
            self.error(codes::IR_NO_SUCH_ENTITY, format!("there is no tensor {tensor}"));
            return None;
        };
        if write && data.dir == TensorDir::In {
            self.error(codes::IR_READ_ONLY, format!("{tensor} `{}` is an input and is written", data.name));
        }
        Some(Ty::D(data.dtype))
    }

    fn tile_exists(&mut self, tile: Tile) -> bool {
        let exists = self.k.tiles.get(tile).is_some();
        if !exists {
            self.error(codes::IR_NO_SUCH_ENTITY, format!("there is no tile {tile}"));
        }
        exists
    }

    fn live(&mut self, tile: Tile) {
        if self.tile_exists(tile) && !self.scopes.is_allocated(tile) {
            let name = &self.k.tiles[tile].name;
            self.error(codes::IR_NOT_ALLOCATED, format!("{tile} `{name}` is used where no `alloc` reaches"));
        }
    }

    fn tile_element(&mut self, tile: Tile, element: Option<Value>) {
        let Some(element) = element else { return };
        self.expect(element, Ty::Index, "the element of a tile array");
        if let (Some(n), Some(data)) = (self.scopes.index(element), self.k.tiles.get(tile))
            && !(0..i64::from(data.count)).contains(&n)
        {
            self.error(codes::IR_WINDOW, format!("{tile} has {} elements, {n} is used", data.count));
        }
    }

    pub(super) fn tile_ref(&mut self, t: &TileRef) {
        self.live(t.tile);
        self.tile_element(t.tile, t.element);
        let origin = t.origin.map_or((None, None), |(r, c)| {
            self.expect(r, Ty::Index, "a window's row");
            self.expect(c, Ty::Index, "a window's column");
            (self.scopes.index(r), self.scopes.index(c))
        });
        self.expect(t.valid.0, Ty::Index, "a valid extent");
        self.expect(t.valid.1, Ty::Index, "a valid extent");
        let Some(data) = self.k.tiles.get(t.tile) else { return };
        let axes = [
            ("rows", t.rows, data.ty.rows, origin.0, t.valid.0),
            ("columns", t.cols, data.ty.cols, origin.1, t.valid.1),
        ];
        for (what, window, capacity, start, valid) in axes {
            let message = if window == 0 || window > capacity {
                format!("a window of {window} {what} in {} of capacity {capacity}", t.tile)
            } else if let Some(n) = self.scopes.index(valid).filter(|n| !(0..=i64::from(window)).contains(n)) {
                format!("{n} valid {what} in a window of {window}")
            } else if let Some(s) = start.filter(|s| !(0..=i64::from(capacity)).contains(s)) {
                format!("a window that starts at {s} of {capacity} {what}")
            } else {
                continue;
            };
            self.error(codes::IR_WINDOW, message);
        }
    }

    pub(super) fn view(&mut self, v: &ViewRef, write: bool) -> Option<Ty> {
        self.expect(v.offset, Ty::Index, "an offset");
        for &x in v.shape.iter().chain(&v.strides) {
            self.expect(x, Ty::Index, "an extent or stride");
        }
        if v.shape.len() != v.strides.len() {
            let message = format!("a view has {} extents and {} strides", v.shape.len(), v.strides.len());
            self.error(codes::IR_WINDOW, message);
        }
        self.tensor(v.tensor, write)
    }
}

/// The numbers n of the `{n}` in a check's text.
pub(crate) fn placeholders(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.split('{').skip(1).filter_map(|rest| rest.split_once('}')?.0.parse().ok())
}
