//! `print`, `static_assert`, `assert`: what a kernel says of itself, and the texts that go with it.

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Op, PrintPart, Ty, Value};
use ptoc_names::resolve::interpolated;
use ptoc_syntax::ast::{Arg, Expr, ExprKind, Name};
use ptoc_values::{Binding, Val};

impl Elaborator<'_> {
    pub(crate) fn print(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        self.no_names(args)?;
        self.outside_prologue(span)?;
        let mut parts = Vec::new();
        for (k, a) in args.iter().enumerate() {
            if k > 0 {
                parts.push(PrintPart::Text(" ".into()));
            }
            let v = self.expr(&a.value)?;
            match v {
                Val::Str(s) => {
                    let text = self.interpolate(&s);
                    parts.push(PrintPart::Text(text));
                }
                Val::Tile(t) => {
                    let shape = self.valid_of(&t, a.value.span)?;
                    parts.push(PrintPart::Tile(self.tile_ref(&t, shape)));
                }
                Val::Scalar(x) => parts.push(PrintPart::Scalar(x)),
                Val::Record(r) => self.print_record(&r, &mut parts),
                Val::View(_) => {
                    let d =
                        Diagnostic::error(codes::TYPE_MISMATCH, a.value.span, "only tiles and scalars can be printed")
                            .with_help("load the window: `print(Vec(..))`");
                    return self.report(d);
                }
                v => parts.push(PrintPart::Text(self.show(&v))),
            }
        }
        self.emit(Op::Print { parts }, span);
        Ok(Val::Unit)
    }

    pub(crate) fn static_assert(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        self.no_names(args)?;
        let Some(cond) = args.first() else {
            return self.error(codes::WRONG_ARGUMENTS, span, "`static_assert` needs a condition");
        };
        // Of what was refused nothing more is said.
        let mut refused = false;
        let text = match args.get(1).map(|a| self.expr(&a.value)).transpose()? {
            Some(Val::Str(s)) => {
                refused = interpolated(&s).any(|n| matches!(self.env.get(n), Some((Binding::Let(Val::Poison), _))));
                Some(self.interpolate(&s))
            }
            Some(_) => return self.error(codes::TYPE_MISMATCH, args[1].value.span, "the message is a text"),
            None => None,
        };
        match self.expr(&cond.value)? {
            Val::Bool(true) => Ok(Val::Unit),
            Val::Bool(false) if refused => Err(ErrorReported),
            Val::Bool(false) => {
                let mut d = Diagnostic::error(
                    codes::STATIC_ASSERT,
                    cond.value.span,
                    text.clone().unwrap_or_else(|| "static assertion failed".into()),
                )
                .with_label("this is false");
                if let ExprKind::Binary(op, a, b) = &*cond.value.kind
                    && let (Ok(x), Ok(y)) = (self.expr(a), self.expr(b))
                {
                    let said = format!("it says {} {} {}", self.show(&x), op.symbol(), self.show(&y));
                    d = d.with_note(match &self.values_in(&cond.value)[..] {
                        [] => said,
                        values => format!("{said}, with {}", ptoc_isa::text::list(values)),
                    });
                }
                self.report(d)
            }
            Val::Poison => Err(ErrorReported),
            Val::Scalar(v) if self.ty(v) == Ty::BOOL => {
                // Dimensions that are known only at launch: checked there.
                self.launch_check(v, text.unwrap_or_else(|| "static assertion failed".into()), cond.value.span)?;
                Ok(Val::Unit)
            }
            other => {
                let message = format!("a condition is `bool`, this is {}", other.describe());
                self.error(codes::CONDITION_NOT_BOOL, cond.value.span, message)
            }
        }
    }

    /// `n = 9`: constants that an expression names, operands of the whole aside, which are shown anyway.
    fn values_in(&self, e: &Expr) -> Vec<String> {
        let mut names = Vec::new();
        match &*e.kind {
            ExprKind::Binary(_, a, b) => {
                let inner = [a, b].into_iter().filter(|e| !matches!(&*e.kind, ExprKind::Name(_)));
                inner.for_each(|e| names_of(e, &mut names));
            }
            _ => names_of(e, &mut names),
        }
        let shown = names.iter().filter_map(|n| match self.env.get(n) {
            Some((Binding::Let(v), _)) if self.int_const(v).is_some() => Some(format!("{n} = {}", self.show(v))),
            Some((Binding::Let(v @ (Val::Float(_) | Val::Bool(_) | Val::Algebra(_))), _)) => {
                Some(format!("{n} = {}", self.show(v)))
            }
            _ => None,
        });
        shown.take(6).collect()
    }

    /// A condition on dimensions, checked when the kernel is launched (or when a block starts).
    pub(crate) fn launch_check(&mut self, cond: Value, message: String, span: Span) -> ElabResult<()> {
        let data = ptoc_ir::tile::CheckData { code: codes::WHERE_FAILED, message, span, help: None };
        self.check(cond, data, Vec::new(), span)
    }

    pub(crate) fn run_time_assert(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        self.no_names(args)?;
        let Some(cond) = args.first() else {
            return self.error(codes::WRONG_ARGUMENTS, span, "`assert` needs a condition");
        };
        let message = match args.get(1).map(|a| self.expr(&a.value)).transpose()? {
            Some(Val::Str(s)) => s,
            _ => "assertion failed".into(),
        };
        let (message, shown) = self.run_time_text(&message, args.get(1).map_or(span, |a| a.value.span))?;
        let c = self.expr(&cond.value)?;
        let c = self.bool_of(&c, cond.value.span)?;
        let data =
            ptoc_ir::tile::CheckData { code: codes::ASSERTION_FAILED, message, span: cond.value.span, help: None };
        self.check(c, data, shown, span)?;
        Ok(Val::Unit)
    }

    /// A text whose `{name}`s are constants, put in now, or `index` values, shown when it is needed.
    fn run_time_text(&mut self, text: &str, at: Span) -> ElabResult<(String, Vec<Value>)> {
        let mut values = Vec::new();
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((path, tail)) = after.split_once('}') else { break };
            out.push_str(before);
            rest = tail;
            let (first, member) = path.split_once('.').map_or((path, None), |(f, m)| (f, Some(m)));
            let v = self.name(&Name::from(first.trim()), at)?;
            let v = match (v, member) {
                (Val::Block(b), Some(m)) => self.block_member(&b, m.trim(), at)?,
                (Val::Record(r), Some(m)) if r.get(m.trim()).is_some() => {
                    r.get(m.trim()).cloned().unwrap_or(Val::Poison)
                }
                (Val::Tuple(l), Some(m)) if m.parse::<usize>().is_ok_and(|k| k < l.len()) => {
                    l[m.parse::<usize>().unwrap_or(0)].clone()
                }
                (v, _) => v,
            };
            match &v {
                Val::Scalar(x) if self.b.const_of(*x).is_none() && self.ty(*x) == Ty::Index && values.len() < 4 => {
                    out.push_str(&format!("{{{}}}", values.len()));
                    values.push(*x);
                }
                Val::Int(_) | Val::Float(_) | Val::Bool(_) | Val::Str(_) | Val::Tuple(_) | Val::List(_) => {
                    out.push_str(&self.show(&v));
                }
                Val::Scalar(x) if self.b.const_of(*x).is_some() => out.push_str(&self.show(&v)),
                other => {
                    let d = Diagnostic::error(
                        codes::TYPE_MISMATCH,
                        at,
                        format!("`{{{path}}}` is {}, which this text cannot show", other.describe()),
                    )
                    .with_label("shows constants and up to four `index` values")
                    .with_help("print the value before: `print(..)`");
                    return self.report(d);
                }
            }
        }
        out.push_str(rest);
        Ok((out, values))
    }
}

/// The names in an expression, each once, in order; blocks are not looked into.
fn names_of(e: &Expr, out: &mut Vec<Name>) {
    match &*e.kind {
        ExprKind::Name(n) if !out.contains(n) => out.push(n.clone()),
        ExprKind::Paren(a)
        | ExprKind::Unary(_, a)
        | ExprKind::Basis(a, _)
        | ExprKind::Field(a, _)
        | ExprKind::TupleField(a, ..) => names_of(a, out),
        ExprKind::Tuple(l) | ExprKind::List(l) | ExprKind::Tiler(l) => l.iter().for_each(|a| names_of(a, out)),
        ExprKind::Record(l) => l.iter().for_each(|(_, a)| names_of(a, out)),
        ExprKind::Binary(_, a, b) | ExprKind::Layout(a, b) | ExprKind::Range(a, b) => {
            names_of(a, out);
            names_of(b, out);
        }
        ExprKind::Index(a, l) | ExprKind::Call(a, l) | ExprKind::Static(a, l) => {
            names_of(a, out);
            l.iter().for_each(|a| names_of(&a.value, out));
        }
        _ => {}
    }
}
