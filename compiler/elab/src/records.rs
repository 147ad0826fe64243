//! Records: values with names, `(x = a, y = b)`, of the type `(x: f32, y: Vec<f32, r, c>)`. Two records with the same
//! fields have the same type, in whatever order they are written.

use super::{ElabResult, Elaborator, ErrorReported, MAX_PARTS};
use ptoc_diagnostics::{Code, Diagnostic, Span, codes, suggest};
use ptoc_ir::tile::PrintPart;
use ptoc_isa::text::list;
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, RecordVal, Val};
use std::rc::Rc;

/// The fields of a type, as they are written.
type Fields<'t> = [(Ident, &'t Expr)];

impl Elaborator<'_> {
    /// `(x = a, y = b)`
    pub(crate) fn record(&mut self, fields: &[(Ident, Expr)], span: Span) -> ElabResult<Val> {
        let repeated = |k: usize| fields[..k].iter().any(|(n, _)| n.name == fields[k].0.name);
        if (1..fields.len()).any(repeated) {
            // Name resolution has said so (E0102); what the record holds is not known.
            return Err(ErrorReported);
        }
        let fields = fields.iter().map(|(n, e)| Ok((n.name.clone(), self.expr(e)?))).collect::<ElabResult<_>>()?;
        self.bounded(Val::Record(Rc::new(RecordVal::new(fields))), span)
    }

    /// Refuses what is made of too many values.
    pub(crate) fn bounded(&mut self, v: Val, span: Span) -> ElabResult<Val> {
        if v.parts() <= MAX_PARTS {
            return Ok(v);
        }
        let message = format!("{} of more than {MAX_PARTS} values", v.describe());
        let d = Diagnostic::error(codes::OUT_OF_FUEL, span, message).with_label("too large");
        self.report(d.with_note("what records share is counted in each of them"))
    }

    /// `r.name`
    pub(crate) fn record_field(&mut self, r: &RecordVal, name: &Ident) -> ElabResult<Val> {
        if let Some(v) = r.get(&name.name) {
            return Ok(v.clone());
        }
        let d = Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, format!("the record has no field `{}`", name.name))
            .with_label("no such field");
        self.report(match suggest(&name.name, r.names()) {
            Some(s) => d.with_suggestion(format!("did you mean `{s}`?"), name.span, s),
            None => d.with_note(format!("it has: {}", r.names().collect::<Vec<_>>().join(", "))),
        })
    }

    /// A parameter that is a record or a tuple: part by part.
    pub(crate) fn bind_parts(&mut self, p: &Param, v: Val, at: Span) -> ElabResult<Val> {
        let part = |name: &Ident, ty: &Expr| Param {
            name: Ident { name: format!("{}.{}", p.name.name, name.name).into(), span: name.span },
            dir: None,
            ty: ty.clone(),
            at: None,
            over: None,
            default: None,
            span: name.span.to(ty.span),
        };
        if let Some(types) = p.ty.record_type() {
            let Val::Record(r) = v else {
                let have = v.describe();
                let d = Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    at,
                    format!("`{}` is a record, this is {have}", p.name.name),
                )
                .with_label(have)
                .with_secondary(p.span, "the parameter")
                .with_help(format!("write `({})`", outline(&types)));
                return self.report(d);
            };
            self.same_fields(&r, &types, codes::TYPE_MISMATCH, at, |d| d.with_secondary(p.span, "the parameter"))?;
            let mut fields = Vec::new();
            for (name, ty) in &types {
                let v = r.get(&name.name).cloned().ok_or(ErrorReported)?;
                fields.push((name.name.clone(), self.bind_param(&part(name, ty), v, at)?));
            }
            return Ok(Val::Record(Rc::new(RecordVal::new(fields))));
        }
        let ExprKind::Tuple(types) = &*p.ty.kind else { return Err(ErrorReported) };
        let Val::Tuple(values) = v else {
            let have = v.describe();
            let message = format!("`{}` is a tuple of {}, this is {have}", p.name.name, types.len());
            let d = Diagnostic::error(codes::TYPE_MISMATCH, at, message).with_label(have);
            return self.report(d.with_secondary(p.span, "the parameter"));
        };
        if values.len() != types.len() {
            let message = format!("`{}` is a tuple of {}, this has {}", p.name.name, types.len(), values.len());
            let d = Diagnostic::error(codes::TYPE_MISMATCH, at, message);
            return self.report(d.with_secondary(p.span, "the parameter"));
        }
        let mut out = Vec::new();
        for (k, (ty, v)) in types.iter().zip(values).enumerate() {
            let name = Ident { name: k.to_string().into(), span: ty.span };
            out.push(self.bind_param(&part(&name, ty), v, at)?);
        }
        Ok(Val::Tuple(out))
    }

    /// The record has the fields of the type, and no others.
    fn same_fields(
        &mut self,
        r: &RecordVal,
        types: &Fields<'_>,
        code: Code,
        at: Span,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) -> ElabResult<()> {
        let quoted = |n: &str| format!("`{n}`");
        let missing: Vec<_> = types.iter().map(|(n, _)| n.name.as_str()).filter(|n| r.get(n).is_none()).collect();
        let unknown: Vec<_> = r.names().filter(|n| !types.iter().any(|(t, _)| t.name == *n)).collect();
        let message = match (&missing[..], &unknown[..]) {
            ([], []) => return Ok(()),
            ([], more) => format!("the record has {} too many", list(more.iter().map(|n| quoted(n)))),
            (less, []) => format!("the record lacks {}", list(less.iter().map(|n| quoted(n)))),
            (less, more) => format!(
                "the record has {} where {} is wanted",
                list(more.iter().map(|n| quoted(n))),
                list(less.iter().map(|n| quoted(n)))
            ),
        };
        let d = Diagnostic::error(code, at, message).with_label(format!("has {}", list(r.names().map(quoted))));
        self.report(more(d))
    }

    /// The result of a function that declares a record.
    pub(crate) fn typed_record(&mut self, f: &FnItem, ret: &Expr, v: Val, span: Span) -> ElabResult<Val> {
        let types = ret.record_type().ok_or(ErrorReported)?;
        let Val::Record(r) = v else {
            let message = format!("expected a record, the function returns {}", v.describe());
            return self.bad_return(f, ret, message);
        };
        let last = f.body.tail.as_ref().map(|e| e.span).or_else(|| f.body.stmts.last().map(|s| s.span));
        let declared = |d: Diagnostic| d.with_secondary(ret.span, "declared here");
        self.same_fields(&r, &types, codes::BAD_RETURN, last.unwrap_or(ret.span), declared)?;
        let mut fields = Vec::new();
        for (name, ty) in &types {
            let v = r.get(&name.name).cloned().ok_or(ErrorReported)?;
            fields.push((name.name.clone(), self.typed_result(f, ty, v, span)?));
        }
        Ok(Val::Record(Rc::new(RecordVal::new(fields))))
    }

    /// A value under the type that `let` declares for it.
    pub(crate) fn typed_let(&mut self, ty: &Expr, v: Val, at: Span) -> ElabResult<Val> {
        let Some(types) = ty.record_type() else {
            let ty = self.scalar_type(ty)?;
            return Ok(Val::Scalar(self.scalar_of(&v, ty, at)?));
        };
        let r = match v {
            Val::Record(r) => r,
            Val::Poison => return Err(ErrorReported),
            other => {
                let message = format!("expected a record, found {}", other.describe());
                return self.error(codes::TYPE_MISMATCH, at, message);
            }
        };
        let declared = |d: Diagnostic| d.with_secondary(ty.span, "declared here");
        self.same_fields(&r, &types, codes::TYPE_MISMATCH, at, declared)?;
        let mut fields = Vec::new();
        for (name, ty) in &types {
            let v = r.get(&name.name).cloned().ok_or(ErrorReported)?;
            fields.push((name.name.clone(), self.typed_let(ty, v, at)?));
        }
        Ok(Val::Record(Rc::new(RecordVal::new(fields))))
    }

    /// `let (x, y) = r;`: fields by their names. `_x` is field `x` that nothing uses.
    pub(crate) fn let_fields(&mut self, names: &[Ident], r: &RecordVal, at: Span) -> ElabResult<()> {
        for n in names {
            let unused = n.name.strip_prefix('_').filter(|_| r.get(&n.name).is_none()).and_then(|f| r.get(f));
            let v = match unused {
                Some(v) => v.clone(),
                None => self.record_field(r, n)?,
            };
            let v = self.named(v, n, at)?;
            self.env.define(n.name.clone(), Binding::Let(v), n.span);
        }
        Ok(())
    }

    /// A record as `print` writes it.
    pub(crate) fn print_record(&mut self, r: &RecordVal, parts: &mut Vec<PrintPart>) {
        for (k, (name, v)) in r.fields.iter().enumerate() {
            parts.push(PrintPart::Text(format!("{}{name} = ", if k == 0 { "(" } else { ", " })));
            match v {
                Val::Record(inner) => self.print_record(inner, parts),
                Val::Scalar(x) if self.b.const_of(*x).is_none() => parts.push(PrintPart::Scalar(*x)),
                v => parts.push(PrintPart::Text(self.show(v))),
            }
        }
        parts.push(PrintPart::Text(")".into()));
    }
}

/// `x = .., y = ..`
fn outline(types: &Fields<'_>) -> String {
    let comma = if types.len() == 1 { "," } else { "" };
    let fields: Vec<String> = types.iter().map(|(n, _)| format!("{} = ..", n.name)).collect();
    format!("{}{comma}", fields.join(", "))
}
