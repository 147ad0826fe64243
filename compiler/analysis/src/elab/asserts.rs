//! `print`, `static_assert`, `assert`: what a kernel says of itself, and the texts that go with it.

use super::{Elab, R, Reported};
use crate::value::Val;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Op, PrintPart, Ty, Value};
use ptoc_syntax::ast::{Arg, ExprKind, Name};

impl Elab<'_> {
    pub fn print(&mut self, args: &[Arg], span: Span) -> R<Val> {
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

    pub fn static_assert(&mut self, args: &[Arg], span: Span) -> R<Val> {
        self.no_names(args)?;
        let Some(cond) = args.first() else {
            return self.error(codes::WRONG_ARGUMENTS, span, "`static_assert` needs a condition");
        };
        let text = match args.get(1).map(|a| self.expr(&a.value)).transpose()? {
            Some(Val::Str(s)) => Some(self.interpolate(&s)),
            Some(_) => return self.error(codes::TYPE_MISMATCH, args[1].value.span, "the message is a text"),
            None => None,
        };
        match self.expr(&cond.value)? {
            Val::Bool(true) => Ok(Val::Unit),
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
                    d = d.with_note(format!("it says {} {} {}", self.show(&x), op.symbol(), self.show(&y)));
                }
                self.report(d)
            }
            Val::Poison => Err(Reported),
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

    /// A condition on dimensions, checked when the kernel is launched (or when a block starts).
    pub fn launch_check(&mut self, cond: Value, message: String, span: Span) -> R<()> {
        let data = ptoc_ir::tile::CheckData { code: codes::WHERE_FAILED, message, span, help: None };
        self.check(cond, data, Vec::new(), span)
    }

    pub fn run_time_assert(&mut self, args: &[Arg], span: Span) -> R<Val> {
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
    fn run_time_text(&mut self, text: &str, at: Span) -> R<(String, Vec<Value>)> {
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
