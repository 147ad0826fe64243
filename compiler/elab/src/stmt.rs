//! Statements that declare or evaluate.

use super::labels::count;
use super::sync::Jump;
use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Label, Op, Ty};
use ptoc_names::builtins::{Builtin, SyncFn};
use ptoc_syntax::ast::*;
use ptoc_tensor::DType;
use ptoc_values::{Binding, TileSpec, Val};

impl Elaborator<'_> {
    /// One statement. An error inside leaves the names that it defines poisoned.
    pub fn stmt(&mut self, s: &Stmt) -> ElabResult<()> {
        self.step(s.span)?;
        match &s.kind {
            StmtKind::Let { names, ty, value } => {
                let r = self.let_stmt(names, ty.as_ref(), value, s.span);
                if r.is_err() {
                    self.poison(names);
                }
                r
            }
            StmtKind::LetTuple { names, value } => {
                let r = self.let_tuple(names, value);
                if r.is_err() {
                    self.poison(names);
                }
                r
            }
            StmtKind::Var { name, ty, value } => {
                let r = self.var_stmt(name, ty.as_ref(), value, s.span);
                if r.is_err() {
                    self.poison(std::slice::from_ref(name));
                }
                r
            }
            StmtKind::Const(c) => {
                let v = self.const_value(c);
                let r = v.as_ref().map(|_| ()).map_err(|_| ErrorReported);
                self.env.define(c.name.name.clone(), Binding::Let(v.unwrap_or(Val::Poison)), c.name.span);
                r
            }
            StmtKind::Assign { target, value } => self.assign(target, value, s.span),
            StmtKind::OpAssign { target, op, value, .. } => self.op_assign(target, *op, value, s.span),
            StmtKind::Expr(e) => self.expr_stmt(e),
            StmtKind::If(i) => self.if_stmt(i, s.span),
            StmtKind::For { var, range, body, attrs } => {
                if let Some(a) = attrs.first() {
                    return self.not_yet(a.span, "attributes of loops");
                }
                self.for_stmt(var, range, body, 1, s.span)
            }
            StmtKind::Pipeline { args, var, range, body } => {
                self.automatic_pipeline(s.span)?;
                let stages = self.pipeline_stages(args, s.span)?;
                self.for_stmt(var, range, body, stages, s.span)
            }
            StmtKind::While { cond, body } => self.while_stmt(cond, body, s.span),
            StmtKind::Role { name, body } => self.role_stmt(name, body, s.span),
            StmtKind::Grid { .. } => {
                if let Some(first) = self.grid_done {
                    let d = Diagnostic::error(codes::GRID_MISUSE, s.span, "a kernel has one `grid`")
                        .with_label("a second one")
                        .with_secondary(first, "the first one")
                        .with_help(
                            "one `grid` takes several variables: `grid (i in tiles(M, 16), j in tiles(N, 64));`",
                        );
                    return self.report(d);
                }
                let d =
                    Diagnostic::error(codes::GRID_MISUSE, s.span, "`grid` stands at the top level of a kernel, once")
                        .with_help("move it to the beginning of the kernel's body");
                self.report(d)
            }
            StmtKind::Return(e) => self.return_stmt(e.as_ref(), s.span),
            StmtKind::Break => self.jump("break", "leave", Op::Break, s.span),
            StmtKind::Continue => self.jump("continue", "go on with", Op::Continue, s.span),
            StmtKind::Error => Err(ErrorReported),
        }
    }

    /// `break` and `continue`.
    fn jump(&mut self, word: &'static str, does: &str, op: impl FnOnce(Label) -> Op, span: Span) -> ElabResult<()> {
        self.may_jump(Jump::Loop(word), span)?;
        let Some(label) = self.loops.last().copied() else {
            let d = Diagnostic::error(codes::TYPE_MISMATCH, span, format!("`{word}` outside of a loop"))
                .with_label(format!("there is no loop to {does}"));
            return self.report(d);
        };
        self.exits_to(label);
        self.emit(op(label), span);
        Ok(())
    }

    fn poison(&mut self, names: &[Ident]) {
        for n in names {
            self.env.define(n.name.clone(), Binding::Let(Val::Poison), n.span);
        }
    }

    fn let_stmt(&mut self, names: &[Ident], ty: Option<&Expr>, value: &Expr, span: Span) -> ElabResult<()> {
        if let [n] = names {
            self.lets.insert(n.span, span);
        }
        if let ExprKind::Tile { ty: spec, at } = &*value.kind {
            let spec = self.tile_spec(spec)?;
            let labels: Vec<Name> = names.iter().map(|n| n.name.clone()).collect();
            let spans: Vec<Span> = names.iter().map(|n| n.span).collect();
            let values = self.make_tiles_at(&spec, at.as_ref(), &labels, &spans)?;
            for (n, v) in names.iter().zip(values) {
                self.env.define(n.name.clone(), Binding::Let(v), n.span);
            }
            return Ok(());
        }
        for n in names {
            let mut v = self.expr(value)?;
            if let Some(t) = ty {
                v = self.typed_let(t, v, value.span)?;
            }
            let v = self.named(v, n, value.span)?;
            self.env.define(n.name.clone(), Binding::Let(v), n.span);
        }
        Ok(())
    }

    /// A value under its name.
    pub(crate) fn named(&mut self, v: Val, n: &Ident, at: Span) -> ElabResult<Val> {
        let mut v = self.declare_sync(v, n, at)?;
        match &mut v {
            Val::Tile(t) | Val::Mask(t, _) => self.adopt(t, &n.name, n.span),
            Val::Scalar(x) if self.b.const_of(*x).is_none() => self.b.name_value(*x, n.name.clone()),
            Val::Unit => {
                let d = Diagnostic::error(codes::TYPE_MISMATCH, at, format!("`{}` gets no value", n.name))
                    .with_label("this gives none")
                    .with_note(
                        "an instruction writes its first operand; operators and functions give values: `exp(x)`, \
                        `x + y`",
                    );
                return self.report(d);
            }
            Val::Hole => return self.error(codes::TYPE_MISMATCH, at, "`_` is no value"),
            Val::Block(_) => self.name_block(&n.name, &v),
            _ => {}
        }
        Ok(v)
    }

    fn let_tuple(&mut self, names: &[Ident], value: &Expr) -> ElabResult<()> {
        let v = self.expr(value)?;
        let parts = match v {
            Val::Tuple(l) if l.len() == names.len() => l,
            Val::Tuple(l) => {
                let message = format!("{} for a tuple of {}", count(names.len(), "name", "names"), l.len());
                return self.error(codes::TYPE_MISMATCH, value.span, message);
            }
            Val::Record(r) => return self.let_fields(names, &r, value.span),
            Val::Poison => return Err(ErrorReported),
            other => {
                let message = format!("expected a tuple of {}, found {}", names.len(), other.describe());
                return self.error(codes::TYPE_MISMATCH, value.span, message);
            }
        };
        for (n, v) in names.iter().zip(parts) {
            let v = self.named(v, n, value.span)?;
            self.env.define(n.name.clone(), Binding::Let(v), n.span);
        }
        Ok(())
    }

    fn var_stmt(&mut self, name: &Ident, ty: Option<&Expr>, value: &Expr, span: Span) -> ElabResult<()> {
        let v = self.expr(value)?;
        let ty = match ty {
            Some(t) => self.scalar_type(t)?,
            None => match &v {
                Val::Int(_) => Ty::Index,
                Val::Float(_) => Ty::D(DType::F32),
                v => match self.scalar_ty(v) {
                    Some(t) => t,
                    None => {
                        let d = Diagnostic::error(
                            codes::TYPE_MISMATCH,
                            value.span,
                            format!("a `var` holds a scalar, this is {}", v.describe()),
                        )
                        .with_label(v.describe());
                        let word = Span::new(span.file, span.start, span.start + 3);
                        let d = match v {
                            Val::Tile(_) => {
                                d.with_fix("a tile is storage already: `let` names it, `=` writes it", word, "let")
                            }
                            _ => d.with_fix("what never changes is named by `let`", word, "let"),
                        };
                        return self.report(d);
                    }
                },
            },
        };
        let x = self.scalar_of(&v, ty, value.span)?;
        self.behind_grid(span)?;
        let var = self.b.var(name.name.clone(), ty);
        self.b.set(var, x, name.span);
        self.env.define(name.name.clone(), Binding::Var(var, ty), name.span);
        Ok(())
    }

    /// The tiles of one `tile T at ..`, one for each name.
    pub(crate) fn make_tiles(
        &mut self,
        spec: &TileSpec,
        at: Option<&Expr>,
        names: &[Name],
        span: Span,
    ) -> ElabResult<Vec<Val>> {
        self.make_tiles_at(spec, at, names, &vec![span; names.len()])
    }

    fn make_tiles_at(
        &mut self,
        spec: &TileSpec,
        at: Option<&Expr>,
        names: &[Name],
        spans: &[Span],
    ) -> ElabResult<Vec<Val>> {
        let mut out = Vec::new();
        for (n, s) in names.iter().zip(spans) {
            out.push(self.declare_tile(n, spec, None, *s)?);
        }
        if let Some(at) = at {
            let total = names.len() * spec.count as usize;
            let addresses = self.addresses(at, total)?;
            let mut it = addresses.into_iter();
            for v in &out {
                for k in 0..spec.count {
                    let (a, s, literal) = it.next().ok_or(ErrorReported)?;
                    let (tile, ty) = match v {
                        Val::Tile(t) => (t.tile, t.ty),
                        Val::TileArray(a) => (a.tile, a.ty),
                        _ => continue,
                    };
                    self.place_tile(tile, ty, spec.array.then_some(k), &a, (s, literal), s)?;
                }
            }
        }
        Ok(out)
    }

    fn expr_stmt(&mut self, e: &Expr) -> ElabResult<()> {
        let atomic = matches!(&*e.kind, ExprKind::Call(f, _)
            if matches!(&*f.kind, ExprKind::Name(n)
                if matches!(ptoc_names::builtins::function(n), Some(Builtin::Atomic(_)))));
        match self.expr(e)? {
            Val::Unit => Ok(()),
            _ if atomic => Ok(()),
            // Who knows the slot of a ring waits for it alone.
            Val::Tile(_) if gives_slot(e) => Ok(()),
            Val::Poison => Err(ErrorReported),
            other => {
                let d = Diagnostic::error(
                    codes::UNUSED_VALUE,
                    e.span,
                    format!("this computes {} and drops it", other.describe()),
                )
                .with_label("nothing takes this value")
                .with_help("assign it, or remove the statement");
                self.report(d)
            }
        }
    }

    fn return_stmt(&mut self, e: Option<&Expr>, span: Span) -> ElabResult<()> {
        let v = match e {
            Some(e) => self.expr(e)?,
            None => Val::Unit,
        };
        let Some(frame) = self.inlined.last() else {
            return self.error(codes::BAD_RETURN, span, "`return` outside of a function");
        };
        match frame.label {
            Some(label) => {
                self.may_jump(Jump::Return, span)?;
                self.store_results(&v, span)?;
                self.exits_to(label);
                self.emit(Op::Leave(label), span);
                if let Some(f) = self.inlined.last_mut() {
                    f.left = true;
                }
            }
            None => {
                if let Some(f) = self.inlined.last_mut() {
                    f.result = Some(v);
                }
            }
        }
        Ok(())
    }
}

/// `r.acquire()`, `r.wait()`, `TALLOC(r)`, `TPOP(r)`
fn gives_slot(e: &Expr) -> bool {
    let ExprKind::Call(callee, _) = &*e.kind else { return false };
    match &*callee.kind {
        ExprKind::Field(_, method) => matches!(method.name.as_str(), "acquire" | "wait"),
        ExprKind::Name(n) => matches!(SyncFn::from_name(n), Some(SyncFn::TAlloc | SyncFn::TPop)),
        _ => false,
    }
}
