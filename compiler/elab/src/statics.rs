//! Static parameters: `const`, `type`, `fn` in `<..>`.

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes, suggest};
use ptoc_ir::tile::Ty;
use ptoc_layout::Value as Algebra;
use ptoc_names::builtins::Word;
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, Val};

impl Elaborator<'_> {
    /// Static parameters from the bindings or their defaults.
    pub fn kernel_statics(&mut self, k: &KernelItem) -> ElabResult<Vec<(Name, String)>> {
        let mut shown = Vec::new();
        let mut failed = false;
        for p in &k.statics {
            let v = self.kernel_static(p, &k.name);
            failed |= v.is_err();
            let v = v.unwrap_or(Val::Poison);
            if let Val::Word(Word::DType(d)) = v {
                self.parameters.push((p.name.name.clone(), d, p.name.span));
            }
            shown.push((p.name.name.clone(), self.show_static(&v)));
            self.env.define(p.name.name.clone(), Binding::Let(v), p.name.span);
        }
        if failed { Err(ErrorReported) } else { Ok(shown) }
    }

    fn kernel_static(&mut self, p: &StaticParam, kernel: &Ident) -> ElabResult<Val> {
        let given = self.bindings.statics.get(&p.name.name).cloned();
        let v = match given {
            Some(v) => self.static_value(p, v, p.span)?,
            None => match self.bindings.defs.get(&p.name.name) {
                Some(e) => {
                    let e = e.clone();
                    let v = self.expr(&e)?;
                    self.static_value(p, v, e.span)?
                }
                None => self.static_default(p, kernel)?,
            },
        };
        if let StaticKind::Const { tune, .. } = &p.kind {
            for t in tune {
                let candidate = self.expr(t)?;
                let candidate = self.static_value(p, candidate, t.span)?;
                if std::mem::discriminant(&candidate) != std::mem::discriminant(&v) {
                    let message =
                        format!("`{}` is {}, this candidate is {}", p.name.name, v.describe(), candidate.describe());
                    let d = Diagnostic::error(codes::TYPE_MISMATCH, t.span, message).with_label("of another kind");
                    return self.report(d);
                }
            }
        }
        Ok(v)
    }

    fn show_static(&self, v: &Val) -> String {
        match v {
            Val::Word(Word::DType(d)) => d.to_string(),
            Val::Fn(id) => ptoc_names::item_name(self.modules.item(*id)).map_or("?".into(), |n| n.name.to_string()),
            v => self.show(v),
        }
    }

    /// Static arguments of a call in the order of the parameters: positional, named.
    pub fn given_statics(
        &mut self,
        params: &[StaticParam],
        args: &[Arg],
        name: &Ident,
    ) -> ElabResult<Vec<Option<(Val, Span)>>> {
        let mut given = vec![None; params.len()];
        for (k, a) in args.iter().enumerate() {
            let slot = match &a.name {
                None => k,
                Some(n) => match params.iter().position(|p| p.name.name == n.name) {
                    Some(s) => s,
                    None => return self.unknown_static(params, n, name),
                },
            };
            if slot >= params.len() {
                let message = format!("`{}` has {} static parameters, {} given", name.name, params.len(), args.len());
                return self.error(codes::UNKNOWN_STATIC, a.value.span, message);
            }
            let v = self.expr(&a.value)?;
            given[slot] = Some((v, a.value.span));
        }
        Ok(given)
    }

    /// Reports a static argument that is no parameter.
    pub fn unknown_static<T>(&mut self, params: &[StaticParam], n: &Ident, name: &Ident) -> ElabResult<T> {
        let names: Vec<&str> = params.iter().map(|p| p.name.name.as_str()).collect();
        let mut d = Diagnostic::error(
            codes::UNKNOWN_STATIC,
            n.span,
            format!("`{}` has no static parameter `{}`", name.name, n.name),
        );
        d = match suggest(&n.name, names.iter().copied()) {
            Some(s) => d.with_suggestion(format!("did you mean `{s}`?"), n.span, s),
            None if names.is_empty() => d.with_note("it has none"),
            None => d.with_note(format!("it has: {}", names.join(", "))),
        };
        self.report(d)
    }

    /// The default of a static parameter.
    pub fn static_default(&mut self, p: &StaticParam, name: &Ident) -> ElabResult<Val> {
        let default = match &p.kind {
            StaticKind::Const { default: Some(e), .. } | StaticKind::Type { default: Some(e) } => {
                let v = self.expr(e)?;
                return self.static_value(p, v, e.span);
            }
            StaticKind::Fn { default: Some(n) } => self.name(&n.name, n.span)?,
            _ => {
                let n = &p.name.name;
                let d = Diagnostic::error(
                    codes::MISSING_STATIC,
                    p.span,
                    format!("`{}` needs a value for `{n}`", name.name),
                )
                .with_label("no default")
                .with_help(format!("give it: `-D {n}=..`, or `{}<{n} = ..>(..)` in a call", name.name));
                return self.report(d);
            }
        };
        self.static_value(p, default, p.span)
    }

    /// The value of a static parameter must be of its kind.
    pub fn static_value(&mut self, p: &StaticParam, v: Val, at: Span) -> ElabResult<Val> {
        let n = &p.name.name;
        match (&p.kind, v) {
            (_, Val::Poison) => Err(ErrorReported),
            (StaticKind::Type { .. }, v @ Val::Word(Word::DType(_))) => Ok(v),
            (StaticKind::Type { .. }, v) => {
                self.error(codes::TYPE_MISMATCH, at, format!("`{n}` is a dtype, this is {}", v.describe()))
            }
            (StaticKind::Fn { .. }, v @ (Val::Fn(_) | Val::Builtin(_) | Val::Closure(_))) => Ok(v),
            (StaticKind::Fn { .. }, v) => {
                self.error(codes::TYPE_MISMATCH, at, format!("`{n}` is a function, this is {}", v.describe()))
            }
            (StaticKind::Const { ty: Some(t), .. }, v) => {
                if is_layout(t) {
                    return match v {
                        Val::Algebra(a) if matches!(*a, Algebra::Layout(_) | Algebra::Composed(_)) => {
                            Ok(Val::Algebra(a))
                        }
                        v => {
                            let message = format!("`{n}` is a layout, this is {}", v.describe());
                            let d = Diagnostic::error(codes::TYPE_MISMATCH, at, message)
                                .with_help("a layout is `shape:stride`, as `(4, 8):(8, 1)`; `8:1` is a vector");
                            self.report(d)
                        }
                    };
                }
                let ty = self.scalar_type(t)?;
                if ty == Ty::Index {
                    return Ok(Val::Int(self.static_int(&v, at, &format!("`{n}`"))?));
                }
                let x = self.scalar_of(&v, ty, at)?;
                Ok(self.fold(x))
            }
            (
                StaticKind::Const { .. },
                v @ (Val::Int(_) | Val::Float(_) | Val::Bool(_) | Val::Tuple(_) | Val::List(_) | Val::Algebra(_)),
            ) => Ok(v),
            (StaticKind::Const { .. }, v @ Val::Record(_)) if self.is_constant(&v) => Ok(v),
            (StaticKind::Const { .. }, v @ Val::Scalar(_)) => {
                if let Val::Scalar(x) = &v
                    && matches!(self.ty(*x), Ty::D(d) if d.is_float())
                    && self.b.const_of(*x).is_some()
                {
                    return Ok(v);
                }
                Ok(Val::Int(self.static_int(&v, at, &format!("`{n}`"))?))
            }
            (StaticKind::Const { .. }, v) => {
                self.error(codes::TYPE_MISMATCH, at, format!("`{n}` is a constant, this is {}", v.describe()))
            }
        }
    }
}

/// The type `layout`.
pub(crate) fn is_layout(ty: &Expr) -> bool {
    matches!(&*ty.kind, ExprKind::Name(w) if w == "layout")
}
