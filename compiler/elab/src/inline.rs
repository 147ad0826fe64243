//! Inlined functions: a call is the function's body, where it stands.

use super::labels::count;
use super::{Argument, ElabResult, Elaborator, ErrorReported, Inlined, MAX_CALLS};
use ptoc_diagnostics::{Diagnostic, Span, codes, suggest};
use ptoc_ir::tile::{Op, Scope, Ty};
use ptoc_isa::TileType;
use ptoc_names::{ItemId, ModuleId};
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, RecordVal, TileVal, Val};

impl Elaborator<'_> {
    /// A call of a function of the program, by its name or as a value: its body, here.
    pub(crate) fn inline(
        &mut self,
        (id, by_name): (ItemId, bool),
        statics: &[Arg],
        args: &[Arg],
        dest: Option<TileVal>,
        span: Span,
    ) -> ElabResult<Val> {
        self.step(span)?;
        let modules = self.modules;
        let ItemKind::Fn(f) = &modules.item(id).kind else { return Err(ErrorReported) };
        if (by_name && self.around.contains(&id)) || self.calls.len() >= MAX_CALLS {
            let d = Diagnostic::error(codes::RECURSION, span, format!("`{}` calls itself", f.name.name))
                .with_label("this call would never end")
                .with_secondary(f.name.span, "functions are inlined where they are called")
                .with_help("use a loop");
            return self.report(d);
        }
        let statics = self.given_statics(&f.statics, statics, &f.name)?;
        let mut values: Vec<Option<(Val, Span)>> = vec![None; f.params.len()];
        let mut given = Vec::new();
        for (k, a) in args.iter().enumerate() {
            let slot = match &a.name {
                None => k,
                Some(n) => match f.params.iter().position(|p| p.name.name == n.name) {
                    Some(s) => s,
                    None => {
                        let names: Vec<&str> = f.params.iter().map(|p| p.name.name.as_str()).collect();
                        let message = format!("`{}` has no parameter `{}`", f.name.name, n.name);
                        let d =
                            Diagnostic::error(codes::WRONG_ARGUMENTS, n.span, message).with_label("no such parameter");
                        let d = match suggest(&n.name, names.iter().copied()) {
                            Some(s) => d.with_suggestion(format!("did you mean `{s}`?"), n.span, s),
                            None => d.with_note(format!("it has: {}", names.join(", "))),
                        };
                        return self.report(d);
                    }
                },
            };
            if slot >= f.params.len() || values[slot].is_some() {
                return self.arity(f, args.len(), span);
            }
            let p = &f.params[slot];
            let v = match super::signature::takes_a_window(&p.ty) {
                _ if self.may_be_absent(p) && self.is_absent_value(&a.value) => Val::Nothing,
                true => self.operand_value(&a.value)?,
                false => self.expr(&a.value)?,
            };
            let what = self.argument(p, &v, &a.value);
            given.push(Argument { name: p.name.name.clone(), declared: p.name.span, at: a.value.span, given: what });
            values[slot] = Some((v, a.value.span));
        }
        if values.iter().zip(&f.params).any(|(v, p)| v.is_none() && p.default.is_none()) {
            return self.arity(f, args.len(), span);
        }
        self.in_call((f.name.name.clone(), span), (id.module, Some(id)), given, |e| {
            let around = e.around.clone();
            // What a value is was written elsewhere.
            if !by_name {
                e.around.clear();
            }
            e.around.push(id);
            let deduced = e.deduced.len();
            let r = match e.define_statics(f, statics, &values) {
                Ok(()) => e.bind_and_run(f, values, dest, span),
                Err(stopped) => Err(stopped),
            };
            e.deduced.truncate(deduced);
            e.around = around;
            r
        })
    }

    /// Runs the body of a function or a closure: in its module, with a frame of its own, outside of the caller's loops.
    /// `at` is its name and the call, `of` where it is written.
    pub(crate) fn in_call<T>(
        &mut self,
        at: (Name, Span),
        of: (ModuleId, Option<ItemId>),
        given: Vec<Argument>,
        body: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.arguments.push(given);
        self.calls.push(of.1);
        let module = std::mem::replace(&mut self.module, of.0);
        let (stages, loops) = (std::mem::replace(&mut self.stages, 1), std::mem::take(&mut self.loops));
        self.env.push_call(at.0, at.1);
        let r = body(self);
        self.env.pop_frame();
        self.loops = loops;
        self.stages = stages;
        self.module = module;
        self.calls.pop();
        self.arguments.pop();
        r
    }

    fn arity<T>(&mut self, f: &FnItem, given: usize, span: Span) -> ElabResult<T> {
        let params: Vec<&str> = f.params.iter().map(|p| p.name.name.as_str()).collect();
        let d = Diagnostic::error(
            codes::WRONG_ARGUMENTS,
            span,
            format!("`{}` takes {}, {given} given", f.name.name, count(params.len(), "argument", "arguments")),
        )
        .with_secondary(f.name.span, format!("{}({})", f.name.name, params.join(", ")));
        self.report(d)
    }

    fn bind_and_run(
        &mut self,
        f: &FnItem,
        values: Vec<Option<(Val, Span)>>,
        dest: Option<TileVal>,
        span: Span,
    ) -> ElabResult<Val> {
        // Extents of tensors may speak of any other parameter, so those are bound first.
        let (tensors, others): (Vec<_>, Vec<_>) =
            f.params.iter().zip(values).partition(|(p, _)| super::signature::is_tensor(&p.ty));
        for (p, v) in others.into_iter().chain(tensors) {
            let (v, at) = match v {
                Some(v) => v,
                None => {
                    let e = p.default.as_ref().ok_or(ErrorReported)?;
                    (self.expr(e)?, e.span)
                }
            };
            let v = match v {
                Val::Nothing if self.may_be_absent(p) => Val::Absent(p.name.name.clone()),
                v => self.bind_param(p, v, at)?,
            };
            self.env.define(p.name.name.clone(), Binding::Let(v), p.name.span);
        }
        if !returns_early(&f.body, true) {
            self.inlined.push(Inlined { label: None, slots: Vec::new(), fields: None, result: None, left: false });
            let tail = self.block_value(&f.body, dest);
            let frame = self.inlined.pop();
            let v = match frame.and_then(|i| i.result) {
                Some(v) => v,
                None => tail?,
            };
            return self.returned(f, v, span);
        }
        // Early returns: the body is a scope, results travel in variables.
        let record = f.ret.as_ref().and_then(Expr::record_type);
        let fields: Option<Vec<Name>> = record.as_ref().map(|l| l.iter().map(|(n, _)| n.name.clone()).collect());
        let types = match (&f.ret, record) {
            (None, _) => Vec::new(),
            (_, Some(l)) => l.iter().map(|(_, t)| self.scalar_type(t)).collect::<ElabResult<_>>()?,
            (Some(t), None) => match &*t.kind {
                ExprKind::Tuple(l) => l.iter().map(|t| self.scalar_type(t)).collect::<ElabResult<_>>()?,
                _ => vec![self.scalar_type(t)?],
            },
        };
        let slots: Vec<_> = types.iter().map(|t| self.b.var(f.name.name.as_str(), *t)).collect();
        for (slot, ty) in slots.iter().zip(&types) {
            let zero = self.constant(ptoc_ir::tile::Const { ty: *ty, bits: 0 });
            self.b.set(*slot, zero, span);
        }
        let label = self.b.label(span);
        let named = fields.clone();
        self.inlined.push(Inlined {
            label: Some(label),
            slots: slots.clone(),
            fields: named,
            result: None,
            left: false,
        });
        let before = self.valid.clone();
        let (body, r) = self.region(|s| {
            let v = s.block_value(&f.body, None)?;
            if f.body.tail.is_some() {
                s.store_results(&v, span)?;
            }
            Ok(())
        });
        self.inlined.pop();
        self.merge_exits(label, &before, span);
        self.valid.retain(|t, _| before.contains_key(t));
        self.emit(Op::Scope(Box::new(Scope { label, role: None, body })), span);
        r?;
        let mut out: Vec<Val> = slots.iter().map(|s| Val::Scalar(self.b.get(*s, span))).collect();
        if let Some(names) = fields {
            return Ok(Val::Record(RecordVal::new(names.into_iter().zip(out).collect()).into()));
        }
        Ok(match (out.len(), &f.ret) {
            (0, _) => Val::Unit,
            (1, Some(t)) if !matches!(&*t.kind, ExprKind::Tuple(_)) => out.remove(0),
            _ => Val::Tuple(out),
        })
    }

    /// Stores the value of an early `return`.
    pub(crate) fn store_results(&mut self, v: &Val, span: Span) -> ElabResult<()> {
        let slots = self.inlined.last().map(|i| i.slots.clone()).unwrap_or_default();
        let fields = self.inlined.last().and_then(|i| i.fields.clone());
        let parts = match v {
            Val::Record(r) if fields.is_some() => {
                let names = fields.unwrap_or_default();
                let parts: Vec<Val> = names.iter().filter_map(|n| r.get(n).cloned()).collect();
                if parts.len() != r.fields.len() {
                    let wanted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
                    let message =
                        format!("the record that is returned has the fields {}", ptoc_isa::text::list(&wanted));
                    return self.error(codes::BAD_RETURN, span, message);
                }
                parts
            }
            Val::Tuple(l) => l.clone(),
            Val::Unit => Vec::new(),
            v => vec![v.clone()],
        };
        if parts.len() != slots.len() {
            let message = format!(
                "{} value{} returned, {} declared",
                parts.len(),
                if parts.len() == 1 { "" } else { "s" },
                slots.len()
            );
            return self.error(codes::BAD_RETURN, span, message);
        }
        for (p, s) in parts.iter().zip(slots) {
            let ty = self.b.kernel().vars[s].ty;
            let x = self.scalar_of(p, ty, span)?;
            self.b.set(s, x, span);
        }
        Ok(())
    }

    /// The value of a call, checked against the declared type.
    fn returned(&mut self, f: &FnItem, v: Val, span: Span) -> ElabResult<Val> {
        let Some(ret) = &f.ret else {
            return match v {
                Val::Unit => Ok(Val::Unit),
                v => {
                    let d = Diagnostic::error(
                        codes::BAD_RETURN,
                        f.name.span,
                        format!("`{}` returns {}, and declares nothing", f.name.name, v.describe()),
                    )
                    .with_label(format!("returns {}", v.describe()));
                    let ty = match &v {
                        Val::Tile(t) => Some(t.ty.dtype.to_string()),
                        Val::Fn(_) | Val::Builtin(_) | Val::Closure(_) => Some("fn".to_owned()),
                        v => self.scalar_ty(v).map(|ty| ty.to_string()),
                    };
                    let start = Span::new(f.body.span.file, f.body.span.start, f.body.span.start);
                    self.report(match ty {
                        Some(ty) => d.with_fix("declare what it returns", start, format!("-> {ty} ")),
                        None => d.with_help("write `-> type` after the parameters, or end the last statement with `;`"),
                    })
                }
            };
        };
        self.typed_result(f, ret, v, span)
    }

    /// The function gives something else than it declares.
    pub(crate) fn bad_return<T>(&mut self, f: &FnItem, ret: &Expr, message: String) -> ElabResult<T> {
        let d = Diagnostic::error(codes::BAD_RETURN, ret.span, message).with_label("declared here");
        let last = f.body.tail.as_ref().map(|e| e.span).or_else(|| f.body.stmts.last().map(|s| s.span));
        self.report(match last {
            Some(at) => d.with_secondary(at, "given here"),
            None => d,
        })
    }

    pub(crate) fn typed_result(&mut self, f: &FnItem, ret: &Expr, v: Val, span: Span) -> ElabResult<Val> {
        match (&*ret.kind, v) {
            (_, Val::Poison) => Err(ErrorReported),
            (_, v) if ret.record_type().is_some() => self.typed_record(f, ret, v, span),
            (ExprKind::FnType, v @ (Val::Fn(_) | Val::Builtin(_) | Val::Closure(_))) => Ok(v),
            (ExprKind::FnType, v) => {
                let message = format!("the function returns {}, and declares a function", v.describe());
                self.bad_return(f, ret, message)
            }
            (ExprKind::Tuple(types), Val::Tuple(values)) if types.len() == values.len() => {
                let parts = types
                    .iter()
                    .zip(values)
                    .map(|(t, v)| self.typed_result(f, t, v, span))
                    .collect::<ElabResult<_>>()?;
                Ok(Val::Tuple(parts))
            }
            (ExprKind::Tuple(_), v) => {
                let message = format!("expected a tuple, the function returns {}", v.describe());
                self.bad_return(f, ret, message)
            }
            (ExprKind::Static(..), Val::Tile(t)) => {
                let want = self.tile_spec(ret)?;
                let have = self.valid_of(&t, span)?;
                let size = (want.rows, want.cols) == (t.rows, t.cols) || self.shapes_agree(want.valid, have);
                if want.ty.loc != t.ty.loc || want.ty.dtype != t.ty.dtype || !size {
                    let shown = |ty: TileType, rows, cols| TileType { rows, cols, ..ty };
                    let (have, want) = (shown(t.ty, t.rows, t.cols), shown(want.ty, want.rows, want.cols));
                    let message = format!("the function returns `{have}`, and declares `{want}`");
                    return self.bad_return(f, ret, message);
                }
                self.same_shape(want.valid, have, span, None)?;
                Ok(Val::Tile(t))
            }
            (ExprKind::Index(base, _), v) if matches!(&*base.kind, ExprKind::Static(..)) => self.typed_array(f, ret, v),
            (_, v @ (Val::View(_) | Val::Cut(_))) => Ok(v),
            (_, v @ (Val::Record(_) | Val::Closure(_) | Val::Fn(_))) => {
                let message = format!("the function returns {}, and declares another type", v.describe());
                let d = self.bad_return::<Val>(f, ret, message);
                if let (Some(last), Val::Closure(_) | Val::Fn(_)) = (self.diags.last_mut(), &v) {
                    let edit = ptoc_diagnostics::Edit { span: ret.span, text: "fn".into() };
                    last.fixes.push(ptoc_diagnostics::Fix::certain("declare that it is a function", vec![edit]));
                }
                d
            }
            (_, v) if super::statics::is_layout(ret) => match v {
                Val::Algebra(a) if matches!(*a, ptoc_layout::Value::Layout(_) | ptoc_layout::Value::Composed(_)) => {
                    Ok(Val::Algebra(a))
                }
                v => {
                    let message = format!("the function returns {}, and declares a layout", v.describe());
                    self.bad_return(f, ret, message)
                }
            },
            (_, v) => {
                let ty = self.scalar_type(ret)?;
                match v {
                    Val::Tile(t) if Ty::D(t.ty.dtype) == ty || (ty == Ty::Index && t.ty.dtype.is_int()) => {
                        Ok(Val::Tile(t))
                    }
                    Val::Mask(m, n) if ty == Ty::BOOL => Ok(Val::Mask(m, n)),
                    Val::Tile(t) => {
                        let message = format!("the function returns a tile of `{}`, and declares `{ty}`", t.ty.dtype);
                        self.bad_return(f, ret, message)
                    }
                    Val::Int(i) if ty == Ty::Index => Ok(Val::Int(i)),
                    Val::Unit => {
                        let d = Diagnostic::error(
                            codes::BAD_RETURN,
                            ret.span,
                            format!("`{}` declares a value and returns none", f.name.name),
                        )
                        .with_label("declared here");
                        self.report(match f.body.stmts.last() {
                            Some(s) => d
                                .with_secondary(s.span, "a statement gives no value: it ends with `;`")
                                .with_help("end the body with an expression, without `;`"),
                            None => d.with_help("end the body with an expression"),
                        })
                    }
                    Val::Scalar(x) if self.ty(x) != ty => {
                        let message = format!("the function returns `{}`, and declares `{ty}`", self.ty(x));
                        self.bad_return(f, ret, message)
                    }
                    v => {
                        let x = self.scalar_of(&v, ty, span)?;
                        Ok(self.fold(x))
                    }
                }
            }
        }
    }

    /// An array of tiles as a result: the function's own storage.
    fn typed_array(&mut self, f: &FnItem, ret: &Expr, v: Val) -> ElabResult<Val> {
        let want = self.tile_spec(ret)?;
        let Val::TileArray(a) = v else {
            let message = format!("the function returns {}, and declares an array of tiles", v.describe());
            return self.bad_return(f, ret, message);
        };
        let same = want.ty.loc == a.ty.loc && want.ty.dtype == a.ty.dtype;
        if !same || (want.rows, want.cols, want.count) != (a.rows, a.cols, a.count) {
            let shown = |ty: TileType, rows, cols, n| format!("{}[{n}]", TileType { rows, cols, ..ty });
            let (have, want) = (shown(a.ty, a.rows, a.cols, a.count), shown(want.ty, want.rows, want.cols, want.count));
            let message = format!("the function returns `{have}`, and declares `{want}`");
            return self.bad_return(f, ret, message);
        }
        Ok(Val::TileArray(a))
    }
}

/// Whether there is a `return` that is not the function's last statement.
pub(super) fn returns_early(b: &Block, top: bool) -> bool {
    let last = b.stmts.len().wrapping_sub(1);
    b.stmts.iter().enumerate().any(|(i, s)| match &s.kind {
        StmtKind::Return(_) => !(top && i == last && b.tail.is_none()),
        StmtKind::If(s) => if_returns(s),
        StmtKind::For { body, .. }
        | StmtKind::Pipeline { body, .. }
        | StmtKind::While { body, .. }
        | StmtKind::Role { body, .. } => returns_early(body, false),
        _ => false,
    }) || b.tail.as_ref().is_some_and(|t| matches!(&*t.kind, ExprKind::If(i) if if_returns(i)))
}

fn if_returns(i: &IfStmt) -> bool {
    returns_early(&i.then, false)
        || match i.els.as_deref() {
            Some(Else::Block(b)) => returns_early(b, false),
            Some(Else::If(i, _)) => if_returns(i),
            None => false,
        }
}
