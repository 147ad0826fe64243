//! Tensor arguments that a launch may leave out: `offs: in f16[B, Q, S, 2] = none`. Whether one is given is known when
//! the kernel is compiled; a window of an absent one is absent.

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, Val};

impl Elaborator<'_> {
    /// Whether the launch leaves this argument out. Its default, if it has one, is checked.
    pub(crate) fn is_absent(&mut self, p: &Param) -> ElabResult<bool> {
        let Some(default) = &p.default else { return Ok(false) };
        if !self.is_none(default) {
            let d = Diagnostic::error(codes::BAD_PARAMETER_TYPE, default.span, "a tensor has no default but `none`")
                .with_label("no array")
                .with_fix("it may be left out", default.span, "none");
            return self.report(d);
        }
        if !matches!(p.dir, Some((Dir::In, _)) | None) {
            let d = Diagnostic::error(
                codes::BAD_PARAMETER_TYPE,
                default.span,
                format!("`{}` is written, so it cannot be absent", p.name.name),
            )
            .with_label("for `in` tensors")
            .with_help("leave `= none` out");
            return self.report(d);
        }
        Ok(!self.bindings.given.contains(&p.name.name))
    }

    /// Whether it is the word `none`.
    pub(crate) fn is_none(&self, e: &Expr) -> bool {
        match &*e.kind {
            ExprKind::Name(n) => n == "none" && self.env.get(n).is_none(),
            ExprKind::Paren(e) => self.is_none(e),
            _ => false,
        }
    }

    /// Whether a parameter of a function takes what is absent: its default is `none`.
    pub(crate) fn may_be_absent(&self, p: &Param) -> bool {
        p.default.as_ref().is_some_and(|d| self.is_none(d))
    }

    /// Whether it is `none`, an absent argument, or a window of one.
    pub(crate) fn is_absent_value(&self, e: &Expr) -> bool {
        self.is_none(e) || self.absent(e).is_some()
    }

    /// The absent argument that this is, or is a window of.
    fn absent(&self, e: &Expr) -> Option<Name> {
        match self.env.get(root(e)?) {
            Some((Binding::Let(Val::Absent(name)), _)) => Some(name.clone()),
            _ => None,
        }
    }

    /// The value of an expression where an absent argument, or a window of one, may stand.
    pub fn maybe_absent(&mut self, e: &Expr) -> ElabResult<Val> {
        match self.absent(e) {
            Some(name) => Ok(Val::Absent(name)),
            None => self.expr(e),
        }
    }

    /// `x == none`, `x != none`
    pub(crate) fn compare_none(&mut self, op: BinaryOp, x: &Expr) -> ElabResult<Val> {
        let absent = match self.maybe_absent(x)? {
            Val::Absent(_) | Val::Nothing => true,
            Val::View(_) | Val::Cut(_) => false,
            Val::Poison => return Err(ErrorReported),
            other => {
                let message = format!("{} is always there", other.describe());
                let d = Diagnostic::error(codes::TYPE_MISMATCH, x.span, message)
                    .with_label("never `none`")
                    .with_help("only a tensor argument with `= none` may be absent");
                return self.report(d);
            }
        };
        Ok(Val::Bool(absent == (op == BinaryOp::Eq)))
    }

    /// An absent argument where something is needed.
    pub fn absent_used<T>(&mut self, name: &Name, at: Span, declared: Span) -> ElabResult<T> {
        let d = Diagnostic::error(codes::ABSENT_ARGUMENT, at, format!("`{name}` may be absent, and is used here"))
            .with_label("needs an array")
            .with_secondary(declared, "may be left out")
            .with_help(format!("use it where it is there: `if {name} != none {{ .. }}`"));
        self.report(d)
    }
}

/// The name that a window is taken from.
fn root(e: &Expr) -> Option<&Name> {
    match &*e.kind {
        ExprKind::Name(n) => Some(n),
        ExprKind::Index(e, _) | ExprKind::Field(e, _) | ExprKind::Call(e, _) | ExprKind::Paren(e) => root(e),
        _ => None,
    }
}
