//! What ranges over an index in `ensures` and `where`: `sum<k>(..)`, `any<k>(..)`, `sorted<k>(..)`.

use super::{Math, OracleElaborator, OracleScopes};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{ElabResult, ErrorReported};
use ptoc_ir::oracle::{IntExpr, IntOp, OracleExpr, ReduceKind, Substitute};
use ptoc_isa::{CmpOp, UnOp};
use ptoc_names::builtins::Over;
use ptoc_syntax::ast::{Arg, ExprKind, Name};

/// An index variable that is bound, and where it stands.
type Bound = (usize, Name, Span);

impl OracleElaborator<'_, '_> {
    /// `sum<k>(..)` and all others.
    pub(super) fn math_over(
        &mut self,
        over: Over,
        vars: &[Arg],
        args: &[Arg],
        span: Span,
        st: &mut OracleScopes,
    ) -> ElabResult<Math> {
        let usage = over.usage();
        let lists = if over == Over::Permutation && args.len() == 2 { 2 } else { 1 };
        let bodies = self.elab.exactly(args, lists, usage, span)?;
        if matches!(over, Over::ArgMax | Over::ArgMin | Over::Sorted | Over::Permutation) && vars.len() != 1 {
            let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, format!("`{}` ranges over one index", over.name()))
                .with_help(format!("write `{usage}`"));
            return self.elab.report(d);
        }
        let depth = st.frames.last().map_or(0, Vec::len);
        let mut bound = Vec::new();
        for v in vars {
            let ExprKind::Name(n) = &*v.value.kind else {
                return self.elab.error(
                    codes::WRONG_ARGUMENTS,
                    v.value.span,
                    format!("`{}<..>` takes names", over.name()),
                );
            };
            let slot = st.fresh_var();
            st.define(n, Math::Int(IntExpr::Var(slot)));
            bound.push((slot, n.clone(), v.value.span));
        }
        let made = bodies.iter().map(|e| self.math_branch(e, st)).collect::<ElabResult<Vec<_>>>();
        if let Some(f) = st.frames.last_mut() {
            f.truncate(depth);
        }
        let made = made?;
        let ranges = bound.iter().map(|b| self.extent_of_index(b, over, st)).collect::<ElabResult<Vec<_>>>()?;
        Ok(Math::Real(reduced(over, made, &ranges).ok_or(ErrorReported)?))
    }

    /// The variable with its range, which is the extent that it indexes.
    fn extent_of_index(
        &mut self,
        (slot, name, at): &Bound,
        over: Over,
        st: &OracleScopes,
    ) -> ElabResult<(usize, IntExpr)> {
        match st.ranges.iter().find(|(v, _)| v == slot) {
            Some((_, hi)) => Ok((*slot, hi.clone())),
            None => {
                let message = format!("`{name}` indexes no tensor directly, so its range is unknown");
                let d = Diagnostic::error(codes::TYPE_MISMATCH, *at, message)
                    .with_help(format!("use `{name}` by itself as an index somewhere in the {}", over.noun()));
                self.elab.report(d)
            }
        }
    }
}

/// 1 where it is true.
fn flag(e: OracleExpr, truth: bool) -> OracleExpr {
    let (yes, no) = if truth { (1, 0) } else { (0, 1) };
    OracleExpr::select(e, OracleExpr::int(yes), OracleExpr::int(no))
}

/// The reduction of the bodies over all variables, the last one innermost.
fn reduced(over: Over, bodies: Vec<OracleExpr>, ranges: &[(usize, IntExpr)]) -> Option<OracleExpr> {
    let nest = |kind: ReduceKind, body: OracleExpr, first: i64| {
        ranges.iter().rev().fold(body, |body, (var, hi)| OracleExpr::Reduce {
            kind,
            var: *var,
            lo: IntExpr::Const(first),
            hi: hi.clone(),
            body: Box::new(body),
        })
    };
    let sum = |body| nest(ReduceKind::Sum, body, 0);
    let none = |e| OracleExpr::compare(CmpOp::Eq, e, OracleExpr::int(0));
    let mut bodies = bodies.into_iter();
    let body = bodies.next()?;
    Some(match over {
        Over::Sum => sum(body),
        Over::Prod => nest(ReduceKind::Prod, body, 0),
        Over::Max => nest(ReduceKind::Max, body, 0),
        Over::Min => nest(ReduceKind::Min, body, 0),
        Over::ArgMax => nest(ReduceKind::ArgMax, body, 0),
        Over::ArgMin => nest(ReduceKind::ArgMin, body, 0),
        Over::Count => sum(flag(body, true)),
        Over::Any => OracleExpr::compare(CmpOp::Gt, sum(flag(body, true)), OracleExpr::int(0)),
        Over::All => none(sum(flag(body, false))),
        Over::Sorted => none(nest(ReduceKind::Sum, flag(descends(&body, ranges.first()?.0), true), 1)),
        Over::Permutation => match bodies.next() {
            None => nest(ReduceKind::Permutation, body, 0),
            Some(b) => {
                let (var, hi) = ranges.first()?.clone();
                let (a, b) = (Box::new(body), Box::new(b));
                OracleExpr::Rearranged { var, lo: IntExpr::Const(0), hi, a, b }
            }
        },
    })
}

/// Whether an element is greater than the one after it; `var` is the place of the latter.
fn descends(body: &OracleExpr, var: usize) -> OracleExpr {
    let before = IntExpr::binary(IntOp::Sub, IntExpr::Var(var), IntExpr::Const(1));
    OracleExpr::compare(CmpOp::Gt, body.rewritten(&Substitute { var, by: before }), body.clone())
}

/// A condition for all values of more variables instead of one about all of them: `all<i>(c)` as `c`, `sorted<i>(e)` as
/// the order of two neighbours. So the first values for which it fails can be named.
pub(super) fn opened(e: OracleExpr) -> (Vec<(usize, IntExpr, IntExpr)>, OracleExpr) {
    let OracleExpr::Compare(CmpOp::Eq, sum, zero) = &e else { return (Vec::new(), e) };
    if **zero != OracleExpr::int(0) {
        return (Vec::new(), e);
    }
    let (mut vars, mut body) = (Vec::new(), &**sum);
    while let OracleExpr::Reduce { kind: ReduceKind::Sum, var, lo, hi, body: inner } = body {
        vars.push((*var, lo.clone(), hi.clone()));
        body = inner;
    }
    // What is counted is what must not be.
    match body {
        OracleExpr::Select(c, yes, no) if **yes == OracleExpr::int(1) && **no == OracleExpr::int(0) => {
            (vars, OracleExpr::unary(UnOp::Not, (**c).clone()))
        }
        OracleExpr::Select(c, yes, no) if **yes == OracleExpr::int(0) && **no == OracleExpr::int(1) => {
            (vars, (**c).clone())
        }
        _ => (Vec::new(), e),
    }
}

/// Whether the expression is a truth value by what it reduces.
pub(super) fn is_truth(e: &OracleExpr) -> bool {
    matches!(e, OracleExpr::Reduce { kind: ReduceKind::Permutation, .. } | OracleExpr::Rearranged { .. })
}
