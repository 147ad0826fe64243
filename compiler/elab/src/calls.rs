//! Calls: built-in functions, methods, conversions.

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Edit, Fix, Span, codes};
use ptoc_ir::tile::{Ty, Value};
use ptoc_isa::{BinOp, UnOp};
use ptoc_names::builtins::{self, Builtin, Over, Word};
use ptoc_syntax::ast::*;
use ptoc_tensor::DType;
use ptoc_values::{TileVal, TilesDomain, Val};

impl Elaborator<'_> {
    /// `callee(args)`
    pub(crate) fn call(&mut self, callee: &Expr, args: &[Arg], dest: Option<TileVal>, span: Span) -> ElabResult<Val> {
        if let ExprKind::Field(base, method) = &*callee.kind {
            return self.method(base, method, args, span);
        }
        let (base, statics): (&Expr, &[Arg]) = match &*callee.kind {
            ExprKind::Static(b, s) => (b, s),
            _ => (callee, &[]),
        };
        let f = self.expr(base)?;
        if let Val::Builtin(Builtin::Layout(name)) = f {
            return self.layout_call(name, statics, args, span);
        }
        if let Val::Builtin(Builtin::Sync(what)) = f {
            return self.sync_call(what, statics, args, span, base.span);
        }
        if let Val::Builtin(Builtin::Recast) = f {
            return self.recast(statics, args, span);
        }
        if !statics.is_empty()
            && let Val::Builtin(Builtin::Size | Builtin::Rank) = f
        {
            let name = if matches!(f, Val::Builtin(Builtin::Size)) { "size" } else { "rank" };
            return self.layout_call(name, statics, args, span);
        }
        if let (false, Val::Builtin(b)) = (statics.is_empty(), &f)
            && let Some(over) = b.over()
        {
            return self.belongs_to_ensures(over, base.span);
        }
        if !statics.is_empty() && !matches!(f, Val::Fn(_)) {
            if let Val::Builtin(Builtin::NotYet(what)) = f {
                return self.not_yet(base.span, what);
            }
            if let Val::Instr(id) = f {
                if id.get().sem == ptoc_isa::Sem::Assign {
                    self.refused_place(args);
                }
                return self.report(super::inst::statics::of_instruction(id, callee, base, statics, span));
            }
            let message = format!("{} takes no static arguments", f.describe());
            return self.error(codes::UNKNOWN_STATIC, callee.span, message);
        }
        match f {
            Val::Poison => Err(ErrorReported),
            Val::Instr(id) => self.instruction(id, args, span, base.span),
            Val::Fn(id) => {
                let by_name = matches!(&*base.kind, ExprKind::Name(n) if self.env.get(n).is_none());
                self.inline((id, by_name), statics, args, dest, span)
            }
            Val::Closure(c) => {
                let name = called_name(base);
                self.call_closure(&c, &name, args, dest, span)
            }
            Val::Builtin(b) => self.builtin(b, args, dest, span, base.span),
            Val::Word(Word::DType(d)) => {
                let e = self.exactly(args, 1, &format!("{d}(x)"), span)?[0];
                let v = self.expr(e)?;
                self.convert_to(Ty::D(d), v, dest, span, e.span)
            }
            Val::Word(Word::Index) => {
                let e = self.exactly(args, 1, "index(x)", span)?[0];
                let v = self.expr(e)?;
                self.convert_to(Ty::Index, v, dest, span, e.span)
            }
            Val::Word(Word::Loc(l)) => {
                let e = self.exactly(args, 1, &format!("{l}(x)"), span)?[0];
                let v = self.expr(e)?;
                let loads = matches!(v, Val::View(_) | Val::Cut(_));
                let there = self.to_location(l, v, dest, span, e.span)?;
                if let (true, Val::Tile(t)) = (loads, &there) {
                    self.loads.push((t.tile, span, base.span));
                }
                Ok(there)
            }
            other => {
                let message = format!("{} cannot be called", other.describe());
                let d = Diagnostic::error(codes::NOT_CALLABLE, base.span, message).with_label(other.describe());
                self.report(match other {
                    Val::View(_) => d.with_help("`x.tile(i, j)` is a window of blocks, `x[i, j]` an element"),
                    Val::Tile(_) => d.with_help("`t[i, j]` is an element, `t.tile(i, j)` a window"),
                    _ => d,
                })
            }
        }
    }

    fn method(&mut self, base: &Expr, method: &Ident, args: &[Arg], span: Span) -> ElabResult<Val> {
        self.no_names(args)?;
        let v = self.expr(base)?;
        match (&v, method.name.as_str()) {
            (Val::Poison, _) => Err(ErrorReported),
            (Val::View(view) | Val::Cut(view), "tile") => self.tile_view(&view.clone(), args, span),
            (Val::Tile(t), "tile") => self.tile_window(&t.clone(), args, span),
            (Val::Tile(t), "valid") => self.revalid(&t.clone(), args, span),
            (Val::Record(r), _) => match self.record_field(&r.clone(), method)? {
                Val::Closure(c) => self.call_closure(&c, &method.name, args, None, span),
                Val::Fn(id) => self.inline((id, false), &[], args, None, span),
                Val::Builtin(b) => self.builtin(b, args, None, span, method.span),
                other => {
                    let message = format!("`{}` is {}, and cannot be called", method.name, other.describe());
                    self.error(codes::NOT_CALLABLE, method.span, message)
                }
            },
            (Val::Ring(ring), _) => self.ring_method(&ring.clone(), method, args, span),
            (_, "tile") => {
                let d =
                    Diagnostic::error(codes::UNKNOWN_MEMBER, method.span, format!("{} has no `.tile`", v.describe()))
                        .with_note("`.tile(i, j)` takes a window of a tensor or of a tile");
                self.report(d)
            }
            (_, name) if let Some(d) = ptoc_names::resolve::otherwise(name, method.span) => self.report(d),
            (_, name) => {
                let message = format!("{} has no method `{name}`", v.describe());
                let d = Diagnostic::error(codes::UNKNOWN_MEMBER, method.span, message);
                let function =
                    builtins::function(name).is_some() || self.modules.get(self.module).scope.contains_key(name);
                let d = match (function, args.first()) {
                    // `x.astype(f16)` is `f16(x)`.
                    (false, Some(to)) if let Some(dtype) = converted(name, &to.value) => {
                        let start = Span::new(base.span.file, base.span.start, base.span.start);
                        let edits = vec![
                            Edit { span: start, text: format!("{dtype}(") },
                            Edit { span: Span::new(base.span.file, base.span.end, span.end), text: ")".into() },
                        ];
                        match v {
                            Val::View(_) => d.with_help(format!("load it, then convert: `{dtype}(Vec(view))`")),
                            _ => d.with_edits("a dtype converts as a function does", edits),
                        }
                    }
                    // PTO's C++ takes a pointer out of a tile.
                    (false, None) if name == "data" && matches!(v, Val::Tile(_) | Val::View(_)) => {
                        let rest = Span::new(base.span.file, base.span.end, span.end);
                        d.with_fix("an instruction takes it as it is", rest, "")
                    }
                    // `x.exp()` is `exp(x)`, `x.max(y)` is `max(x, y)`.
                    (true, first) => {
                        let start = Span::new(base.span.file, base.span.start, base.span.start);
                        let (end, text) = first.map_or((span.end, ")"), |a| (a.value.span.start, ", "));
                        let rest = Span::new(base.span.file, base.span.end, end);
                        let edits = vec![
                            Edit { span: start, text: format!("{name}(") },
                            Edit { span: rest, text: text.into() },
                        ];
                        d.with_edits(format!("`{name}` is a function"), edits)
                    }
                    (false, _) => match &v {
                        Val::Tile(_) => d.with_note("a tile has .tile(..) and .valid(..)"),
                        Val::View(_) => d.with_note("a window has .tile(..)"),
                        _ => d,
                    },
                };
                self.report(d)
            }
        }
    }

    fn builtin(&mut self, b: Builtin, args: &[Arg], dest: Option<TileVal>, span: Span, name: Span) -> ElabResult<Val> {
        match b {
            Builtin::NotYet(what) => self.not_yet(name, what),
            // Their pipes are no values, see `call`.
            Builtin::Sync(what) => self.sync_call(what, &[], args, span, name),
            Builtin::Print => self.print(args, span),
            Builtin::StaticAssert => self.static_assert(args, span),
            Builtin::Assert => self.run_time_assert(args, span),
            Builtin::Tiles => {
                let e = self.exactly(args, 2, "tiles(n, size)", span)?;
                let n = self.length(e[0])?;
                let v = self.expr(e[1])?;
                let told = self.diags.len();
                let size = self.static_extent(&v, e[1].span, "the size of a block").inspect_err(|_| {
                    if let Some(d) = self.diags.get_mut(told).filter(|d| d.code == codes::NOT_CONSTANT) {
                        let help = "the first n of a mode, where only the launch knows n, are a slice: `x[0 .. n, _]`";
                        d.fixes.push(Fix::advice(help));
                    }
                })?;
                let by = self.idx(i64::from(size));
                let count = self.ceil_div(n, by, span);
                self.exact(count, span)?;
                Ok(Val::Tiles(TilesDomain { n, size, count }.into()))
            }
            Builtin::CeilDiv => {
                let e = self.exactly(args, 2, "ceil_div(a, b)", span)?;
                let (a, b) = (self.expr(e[0])?, self.expr(e[1])?);
                if let (Some(x), Some(y)) = (self.int_const(&a), self.int_const(&b)) {
                    if y == 0 {
                        return self.error(codes::DIVISION_BY_ZERO, span, "`ceil_div` by zero");
                    }
                    let q = x
                        .checked_neg()
                        .and_then(|n| ptoc_values::consts::int(BinaryOp::Div, n, y).ok())
                        .and_then(i128::checked_neg);
                    return match q {
                        Some(q) => Ok(Val::Int(q)),
                        None => self.error(codes::CONSTANT_OVERFLOW, span, "`ceil_div` overflows"),
                    };
                }
                let (x, y) = (self.index_of(&a, e[0].span)?, self.index_of(&b, e[1].span)?);
                if self.const_index(y).is_none_or(|c| c <= 0) {
                    // -(-a / b), of which facts do not see the parts.
                    let minus = self.un(UnOp::Neg, x, span);
                    self.exact(minus, span)?;
                    self.exact(y, span)?;
                }
                Ok(Val::Scalar(self.ceil_div(x, y, span)))
            }
            Builtin::Unary(op) => {
                let e = self.exactly(args, 1, &format!("{op}(x)"), span)?[0];
                match self.expr(e)? {
                    Val::Tile(t) => self.tile_unary(op, t, dest, span, e.span),
                    v => self.scalar_unary(op, &v, span, e.span),
                }
            }
            Builtin::Binary(op) => {
                let e = self.exactly(args, 2, &format!("{op}(a, b)"), span)?;
                let (a, b) = (self.expr(e[0])?, self.expr(e[1])?);
                self.min_max(op, a, b, dest, span, (e[0].span, e[1].span))
            }
            Builtin::Pow => {
                let e = self.exactly(args, 2, "pow(a, b)", span)?;
                let (a, b) = (self.expr(e[0])?, self.expr(e[1])?);
                self.pow(a, b, dest, span, (e[0].span, e[1].span))
            }
            Builtin::Clamp => {
                let e = self.exactly(args, 3, "clamp(x, lo, hi)", span)?;
                let (x, lo, hi) = (self.expr(e[0])?, self.expr(e[1])?, self.expr(e[2])?);
                let up = self.min_max(BinOp::Max, x, lo, None, span, (e[0].span, e[1].span))?;
                self.min_max(BinOp::Min, up, hi, dest, span, (e[0].span, e[2].span))
            }
            Builtin::Select => {
                let e = self.exactly(args, 3, "select(condition, a, b)", span)?;
                let (c, a, b) = (self.expr(e[0])?, self.expr(e[1])?, self.expr(e[2])?);
                let at = (e[1].span, e[2].span);
                if let Some(mask) = c.as_mask() {
                    return self.tile_select(mask, a, b, dest, span, at);
                }
                match c {
                    Val::Bool(c) => Ok(if c { a } else { b }),
                    c => {
                        let c = self.bool_of(&c, e[0].span)?;
                        let ty = self.scalar_ty(&a).or_else(|| self.scalar_ty(&b)).unwrap_or(Ty::Index);
                        let (x, y) = (self.scalar_of(&a, ty, at.0)?, self.scalar_of(&b, ty, at.1)?);
                        Ok(Val::Scalar(self.b.select(c, x, y, span)))
                    }
                }
            }
            Builtin::RowReduce(op) | Builtin::ColReduce(op) | Builtin::RowArg(op) | Builtin::ColArg(op) => {
                let by_row = matches!(b, Builtin::RowReduce(_) | Builtin::RowArg(_));
                let place = matches!(b, Builtin::RowArg(_) | Builtin::ColArg(_));
                let e = self.exactly(args, 1, if by_row { "rowsum(t)" } else { "colsum(t)" }, span)?[0];
                match self.expr(e)? {
                    Val::Tile(t) if place => self.tile_argument(by_row, op, t, dest, span, e.span),
                    Val::Tile(t) => self.tile_reduce(by_row, op, t, dest, span, e.span),
                    Val::Poison => Err(ErrorReported),
                    other => self.error(
                        codes::TYPE_MISMATCH,
                        e.span,
                        format!("a reduction takes a tile, found {}", other.describe()),
                    ),
                }
            }
            Builtin::RowScan(op) | Builtin::ColScan(op) => self.scan(matches!(b, Builtin::RowScan(_)), op, args, span),
            Builtin::PackBits => self.packbits(args, span),
            Builtin::Matmul => {
                let e = self.exactly(args, 2, "matmul(left, right)", span)?;
                match (self.expr(e[0])?, self.expr(e[1])?) {
                    (Val::Tile(a), Val::Tile(b)) => self.tile_matmul(a, b, span, (e[0].span, e[1].span)),
                    (Val::Poison, _) | (_, Val::Poison) => Err(ErrorReported),
                    (a, b) => {
                        let bad = if matches!(a, Val::Tile(_)) { (&b, e[1]) } else { (&a, e[0]) };
                        let d = Diagnostic::error(
                            codes::TYPE_MISMATCH,
                            bad.1.span,
                            format!("`matmul` takes tiles, found {}", bad.0.describe()),
                        )
                        .with_label(bad.0.describe())
                        .with_help("bring the operands to the cube: `matmul(Left(..), Right(..))`");
                        self.report(d)
                    }
                }
            }
            Builtin::Transpose => {
                let e = self.exactly(args, 1, "transpose(t)", span)?[0];
                match self.expr(e)? {
                    Val::Tile(t) => self.tile_transpose(t, dest, span, e.span),
                    Val::View(v) | Val::Cut(v) => self.transpose_view(&v, span),
                    Val::Poison => Err(ErrorReported),
                    other => self.error(
                        codes::TYPE_MISMATCH,
                        e.span,
                        format!("`transpose` takes a tile, found {}", other.describe()),
                    ),
                }
            }
            Builtin::Iota => self.iota(args, span),
            Builtin::Bytes => {
                let e = self.exactly(args, 1, "bytes(tile)", span)?[0];
                let ty = match self.expr(e)? {
                    Val::Tile(t) => t.ty,
                    Val::TileArray(a) => a.ty,
                    Val::TileType(t) => t.ty,
                    Val::Poison => return Err(ErrorReported),
                    other => {
                        return self.error(
                            codes::TYPE_MISMATCH,
                            e.span,
                            format!("`bytes` takes a tile, found {}", other.describe()),
                        );
                    }
                };
                Ok(Val::Int(i128::from(ty.bytes())))
            }
            Builtin::Capacity => {
                let e = self.exactly(args, 1, "capacity(Vec)", span)?[0];
                match self.expr(e)? {
                    Val::Word(Word::Loc(loc)) => Ok(Val::Int(i128::from(self.target.capacity(loc)))),
                    Val::Poison => Err(ErrorReported),
                    other => {
                        let message = format!("`capacity` takes a location, found {}", other.describe());
                        self.error(codes::TYPE_MISMATCH, e.span, message)
                    }
                }
            }
            Builtin::IsSimt => self.exactly(args, 0, "is_simt()", span).map(|_| Val::Bool(self.target.gpu.is_some())),
            Builtin::Copy => self.copy(args, span),
            Builtin::TiledMma => self.tiled_mma(args, span),
            Builtin::SelectMma => self.select_mma(args, span),
            Builtin::Fragment(operand) => self.mma_fragment(operand, args, span),
            Builtin::Partition(operand) => {
                let name = match operand {
                    ptoc_layout::Operand::A => "partition_A",
                    ptoc_layout::Operand::B => "partition_B",
                    ptoc_layout::Operand::C => "partition_C",
                };
                self.mma_partition(operand, name, args, span)
            }
            Builtin::Mma => self.mma(args, span),
            Builtin::Gather => self.gather(args, span),
            Builtin::Scatter => self.scatter(args, span),
            Builtin::Recast => self.recast(&[], args, span),
            Builtin::Size => self.layout_call("size", &[], args, span),
            Builtin::Rank => self.layout_call("rank", &[], args, span),
            Builtin::Layout(name) => self.layout_call(name, &[], args, span),
            Builtin::Col => {
                let e = self.exactly(args, 1, "col(v)", span)?[0];
                match self.expr(e)? {
                    Val::View(v) => self.column_view(&v, span),
                    Val::Poison => Err(ErrorReported),
                    other => self.error(
                        codes::TYPE_MISMATCH,
                        e.span,
                        format!("`col` takes a vector of a tensor, found {}", other.describe()),
                    ),
                }
            }
            Builtin::Sum => self.belongs_to_ensures(Over::Sum, name),
            Builtin::Over(over) => self.belongs_to_ensures(over, name),
            Builtin::Close => {
                let d = Diagnostic::error(codes::TYPE_MISMATCH, name, "`close(..)` belongs to `ensures`")
                    .with_label("no function of tiles")
                    .with_help("write `abs(a - b) <= 1e-3`");
                self.report(d)
            }
            Builtin::Atomic(op) => self.atomic(op, args, span),
        }
    }

    /// `ceil(a / b)` of `index` values.
    pub(crate) fn ceil_div(&mut self, a: Value, b: Value, span: Span) -> Value {
        // (a + b - 1) / b: the spelling whose bounds the facts can follow.
        let Some(c) = self.const_index(b).filter(|c| *c > 0) else {
            let v = self.b.ceil_div(a, b, span);
            let name = format!("ceil_div({}, {})", self.size_name(a), self.size_name(b));
            self.size_origin(v, || name);
            return v;
        };
        if c == 1 {
            return a;
        }
        let (n, d) = (self.int_of(a), self.int_of(b));
        if self.cx.divides(&d, &n) == ptoc_layout::Truth::Yes
            && let Ok(q) = self.cx.floor_div(&n, &d)
        {
            return self.value_of(&q, span);
        }
        let add = self.idx(c - 1);
        let up = self.bin(BinOp::Add, a, add, span);
        self.bin(BinOp::Div, up, b, span)
    }

    fn min_max(
        &mut self,
        op: BinOp,
        a: Val,
        b: Val,
        dest: Option<TileVal>,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<Val> {
        match (&a, &b) {
            (Val::Tile(_), _) | (_, Val::Tile(_)) => return self.tile_arith(op, a, b, dest, span, at),
            (Val::Int(x), Val::Int(y)) => return Ok(Val::Int(if op == BinOp::Max { *x.max(y) } else { *x.min(y) })),
            (Val::Float(x), Val::Float(y)) => {
                return Ok(Val::Float(if op == BinOp::Max { x.max(*y) } else { x.min(*y) }));
            }
            _ => {}
        }
        let ty = match (self.scalar_ty(&a), self.scalar_ty(&b)) {
            (Some(t), _) | (None, Some(t)) => t,
            (None, None) => Ty::D(DType::F32),
        };
        if ty == Ty::BOOL {
            return self.error(codes::UNDEFINED_OPERATION, span, format!("`{op}` is not defined on `bool`"));
        }
        let (x, y) = (self.scalar_of(&a, ty, at.0)?, self.scalar_of(&b, ty, at.1)?);
        Ok(Val::Scalar(self.bin(op, x, y, span)))
    }
}

/// How a closure is called where it is called.
fn called_name(callee: &Expr) -> Name {
    match &*callee.kind {
        ExprKind::Name(n) => n.clone(),
        _ => "the closure".into(),
    }
}

/// The dtype of a method that converts elsewhere, `x.astype(f16)`.
fn converted(method: &str, to: &Expr) -> Option<DType> {
    let ExprKind::Name(n) = &*to.kind else { return None };
    ["astype", "to", "cast", "type", "as_type", "convert"].contains(&method).then(|| DType::from_name(n)).flatten()
}
