//! The clauses of `ensures`: what each element of an output is, what both sides of an equation have in common, what is
//! true. And `where` over the contents of tensors.

use super::{Math, OracleElaborator, OracleScopes, reductions};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{ArgDim, ElabResult, ErrorReported, TensorArg, count};
use ptoc_ir::oracle::{
    Claim, Clause, Comparison, Condition, Equation, IntExpr, Oracle, OracleExpr, Predicate, Relation,
};
use ptoc_ir::tile::{TensorDir, TensorId, Ty};
use ptoc_names::builtins::Over;
use ptoc_syntax::ast::*;
use ptoc_values::Val;

impl OracleScopes {
    fn outermost() -> OracleScopes {
        OracleScopes { frames: vec![Vec::new()], lets: vec![Vec::new()], ..OracleScopes::default() }
    }
}

/// The tolerance of a clause, where it has one of its own.
type Tolerance = (Option<f64>, Option<f64>);

impl OracleElaborator<'_, '_> {
    /// All `ensures` of a kernel.
    pub fn ensures(&mut self, k: &KernelItem, tensors: &[TensorArg]) -> ElabResult<Vec<Clause>> {
        let mut out = Vec::new();
        let mut failed = false;
        for e in &k.ensures {
            match self.clause(e, tensors) {
                Ok(eq) => out.push(eq),
                Err(_) => failed = true,
            }
        }
        if failed { Err(ErrorReported) } else { Ok(out) }
    }

    fn clause(&mut self, e: &Expr, tensors: &[TensorArg]) -> ElabResult<Clause> {
        if let ExprKind::Paren(a) = &*e.kind {
            return self.clause(a, tensors);
        }
        if let Some(args) = ptoc_names::resolve::close_args(e) {
            return self.close(args, e.span, tensors);
        }
        match &*e.kind {
            ExprKind::Binary(BinaryOp::Eq, lhs, rhs) => {
                let (lhs, rhs) = if claims_of_input(lhs, rhs, tensors) { (rhs, lhs) } else { (lhs, rhs) };
                self.equals(lhs, rhs, (None, None), e.span, tensors)
            }
            _ => self.claimed_condition(e, tensors),
        }
    }

    /// `close(a, b, rtol = 1e-3, atol = 1e-5)`: equal up to a tolerance of its own.
    fn close(&mut self, args: &[Arg], span: Span, tensors: &[TensorArg]) -> ElabResult<Clause> {
        let usage = Over::CLOSE_USAGE;
        let sides: Vec<&Expr> = args.iter().filter(|a| a.name.is_none()).map(|a| &a.value).collect();
        let [a, b] = sides[..] else {
            let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, "`close` takes two values and their tolerance")
                .with_help(format!("write `{usage}`"));
            return self.elab.report(d);
        };
        let mut tolerance = (None, None);
        for arg in args {
            let Some(name) = &arg.name else { continue };
            let place = match name.name.as_str() {
                "rtol" => &mut tolerance.0,
                "atol" => &mut tolerance.1,
                _ => {
                    let message = format!("`close` has no `{}`", name.name);
                    let d = Diagnostic::error(codes::WRONG_ARGUMENTS, name.span, message)
                        .with_help("`rtol` is relative to the second value, `atol` is absolute");
                    return self.elab.report(d);
                }
            };
            let value = match self.elab.expr(&arg.value)? {
                Val::Int(i) => i as f64,
                Val::Float(f) => f,
                other => {
                    let message = format!("a tolerance is a constant, found {}", other.describe());
                    return self.elab.error(codes::TYPE_MISMATCH, arg.value.span, message);
                }
            };
            if !(value >= 0.0 && value.is_finite()) {
                return self.elab.error(
                    codes::LITERAL_OUT_OF_RANGE,
                    arg.value.span,
                    "a tolerance is 0 or more, and finite",
                );
            }
            *place = Some(value);
        }
        if tolerance == (None, None) {
            let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, "`close` has no tolerance")
                .with_help(format!("write `{usage}`, or `==` for the tolerance of the command line"));
            return self.elab.report(d);
        }
        self.equals(a, b, tolerance, span, tensors)
    }

    /// `a == b`: element for element of a tensor, or for all values of the indices on the left.
    fn equals(
        &mut self,
        lhs: &Expr,
        rhs: &Expr,
        (rtol, atol): Tolerance,
        span: Span,
        tensors: &[TensorArg],
    ) -> ElabResult<Clause> {
        if let (ExprKind::Name(_), ExprKind::Name(_)) = (&*lhs.kind, &*rhs.kind) {
            let (eq, names) = self.whole_equation(lhs, rhs, tensors, span)?;
            return Ok(Clause { claim: Claim::Equation(eq), names, rtol, atol });
        }
        let mut st = OracleScopes::outermost();
        let (claim, names) = match &*lhs.kind {
            ExprKind::Index(base, args) if args.iter().all(|a| matches!(&*a.value.kind, ExprKind::Name(_))) => {
                match self.math(base, &mut st)? {
                    Math::Tensor(tensor) => self.equation(tensor, args, rhs, (lhs.span, span), tensors, st)?,
                    _ => self.relation(lhs, rhs, span, tensors)?,
                }
            }
            _ => self.relation(lhs, rhs, span, tensors)?,
        };
        Ok(Clause { claim, names, rtol, atol })
    }

    /// `y[i, j] == ..`: all elements of `y`.
    fn equation(
        &mut self,
        tensor: usize,
        args: &[Arg],
        rhs: &Expr,
        (left, span): (Span, Span),
        tensors: &[TensorArg],
        mut st: OracleScopes,
    ) -> ElabResult<(Claim, Vec<String>)> {
        let (mut vars, mut names) = (Vec::new(), Vec::new());
        for a in args {
            let ExprKind::Name(n) = &*a.value.kind else { return Err(ErrorReported) };
            let v = st.fresh_var();
            st.define(n, Math::Int(IntExpr::Var(v)));
            vars.push(v);
            names.push(n.to_string());
        }
        let Some(arg) = tensors.iter().find(|t| t.id.as_u32() as usize == tensor) else { return Err(ErrorReported) };
        if arg.dims.len() != vars.len() {
            let message = format!(
                "`{}` has {}, and {} given",
                arg.name,
                count(arg.dims.len(), "mode", "modes"),
                count(vars.len(), "index is", "indices are")
            );
            return self.elab.error(codes::RANK_MISMATCH, left, message);
        }
        let m = self.math(rhs, &mut st)?;
        // What the output cannot hold is none of its elements.
        match (&m, arg.dtype) {
            (_, ptoc_tensor::DType::Bool) => {}
            (Math::Int(IntExpr::Const(i)), d) => drop(self.elab.literal_int(i128::from(*i), Ty::D(d), rhs.span)?),
            (Math::Real(OracleExpr::Const(f)), d) if d.is_float() => drop(self.elab.literal_float(*f, d, rhs.span)?),
            _ => {}
        }
        let body = self.real(m, rhs.span)?;
        let expr = st.wrap(body);
        let exact = arg.dtype.is_int() || arg.dtype == ptoc_tensor::DType::Bool;
        let mut eq = Equation { tensor, vars, exact: exact && !self.reads_floats(&expr), expr };
        if let Err(first) = Oracle::new(eq.clone()) {
            eq.exact = false;
            if Oracle::new(eq.clone()).is_err() {
                return self.elab.error(codes::TYPE_MISMATCH, span, format!("this cannot be evaluated: {first}"));
            }
        }
        Ok((Claim::Equation(eq), names))
    }

    /// `dst == src`: element for element, whatever the rank.
    fn whole_equation(
        &mut self,
        lhs: &Expr,
        rhs: &Expr,
        tensors: &[TensorArg],
        span: Span,
    ) -> ElabResult<(Equation, Vec<String>)> {
        let st = &mut OracleScopes::outermost();
        let mut side = |e: &Expr| -> ElabResult<&TensorArg> {
            let tensor = match self.math(e, st)? {
                Math::Tensor(t) => tensors.iter().find(|arg| arg.id.as_u32() as usize == t),
                _ => None,
            };
            match tensor {
                Some(t) => Ok(t),
                None => {
                    self.elab.error(codes::TYPE_MISMATCH, e.span, "without indices, both sides are tensor arguments")
                }
            }
        };
        let (dst, src) = (side(lhs)?, side(rhs)?);
        let modes = |t: &TensorArg| format!("`{}` has {}", t.name, count(t.dims.len(), "mode", "modes"));
        if dst.dims.len() != src.dims.len() {
            let d = Diagnostic::error(codes::RANK_MISMATCH, span, format!("{}, {}", modes(dst), modes(src)));
            return self.elab.defer(d.with_help("say what each element is: `y[i, j] == x[j, i]`"));
        }
        for (k, pair) in dst.dims.iter().zip(&src.dims).enumerate() {
            if let (ArgDim::Const(n), ArgDim::Const(m)) = pair
                && n != m
            {
                let message = format!("mode {k} of `{}` has {n} elements, that of `{}` {m}", dst.name, src.name);
                let d = Diagnostic::error(codes::SHAPE_MISMATCH, span, message).with_label("of two shapes");
                return self.elab.defer(d);
            }
        }
        let vars: Vec<usize> = (0..dst.dims.len()).collect();
        let names = vars.iter().map(|v| format!("i{v}")).collect();
        let index = vars.iter().map(|v| IntExpr::Var(*v)).collect();
        let number = |t: &TensorArg| t.id.as_u32() as usize;
        let exact = [dst, src].iter().all(|t| t.dtype.is_int() || t.dtype == ptoc_tensor::DType::Bool);
        let expr = OracleExpr::Elem { tensor: number(src), index };
        Ok((Equation { tensor: number(dst), vars, expr, exact }, names))
    }

    /// `sum<s>(part[s, i]) == ..`, `y[order[i], c] == ..`: for all values of the indices on the left.
    fn relation(
        &mut self,
        lhs: &Expr,
        rhs: &Expr,
        span: Span,
        tensors: &[TensorArg],
    ) -> ElabResult<(Claim, Vec<String>)> {
        let mut st = OracleScopes::outermost();
        let free = self.free_indices(lhs, &mut st);
        let left = self.math_branch(lhs, &mut st)?;
        let right = self.math_branch(rhs, &mut st)?;
        self.of_a_result(&left, tensors, lhs.span)?;
        let vars = self.ranges(&free, &st)?;
        let exact = !self.reads_floats(&left) && !self.reads_floats(&right);
        let mut relation = Relation { vars, left, right, exact };
        if let Err(first) = Comparison::new(&relation) {
            relation.exact = false;
            if Comparison::new(&relation).is_err() {
                return self.elab.error(codes::TYPE_MISMATCH, span, format!("this cannot be evaluated: {first}"));
            }
        }
        Ok((Claim::Relation(relation), free.into_iter().map(|(_, n)| n.name.to_string()).collect()))
    }

    /// What is true for all values of its free index names.
    fn claimed_condition(&mut self, e: &Expr, tensors: &[TensorArg]) -> ElabResult<Clause> {
        let mut st = OracleScopes::outermost();
        let free = self.free_indices(e, &mut st);
        let m = self.math(e, &mut st)?;
        if !self.is_truth_value(&m, &st) {
            let message = "an `ensures` says what each element of an output is, or what is true";
            let d = Diagnostic::error(codes::TYPE_MISMATCH, e.span, message).with_label("a number").with_help(
                "write `c[i, j] == a[i, j] + b[i, j]`, or a condition: `c[i, j] >= 0.0`, `sorted<i>(c[i])`, \
                 `any<i>(c[i] == 0)`",
            );
            return self.elab.report(d);
        }
        let body = self.real(m, e.span)?;
        let (more, cond) = reductions::opened(st.wrap(body));
        self.of_a_result(&cond, tensors, e.span)?;
        let mut vars = self.ranges(&free, &st)?;
        let mut names: Vec<String> = free.into_iter().map(|(_, n)| n.name.to_string()).collect();
        for (var, lo, hi) in more {
            let name = st.names.iter().find(|(v, _)| *v == var).map_or_else(String::new, |(_, n)| n.to_string());
            names.push(name);
            vars.push((var, lo, hi));
        }
        let exact = !self.reads_floats(&cond);
        let mut condition = Condition { vars, cond, exact };
        if let Err(first) = Predicate::new(&condition) {
            condition.exact = false;
            if Predicate::new(&condition).is_err() {
                return self.elab.error(codes::TYPE_MISMATCH, e.span, format!("this cannot be evaluated: {first}"));
            }
        }
        Ok(Clause { claim: Claim::Condition(condition), names, rtol: None, atol: None })
    }

    /// A `where` over contents: it holds for all values of its free index names.
    pub fn condition(&mut self, e: &Expr) -> ElabResult<Condition> {
        let mut st = OracleScopes::outermost();
        let free = self.free_indices(e, &mut st);
        let m = self.math(e, &mut st)?;
        let body = self.real(m, e.span)?;
        let cond = st.wrap(body);
        let c = Condition { vars: self.ranges(&free, &st)?, cond, exact: false };
        if let Err(why) = Predicate::new(&c) {
            return self.elab.error(codes::TYPE_MISMATCH, e.span, format!("this cannot be evaluated: {why}"));
        }
        Ok(c)
    }

    /// Defines the index names of `e` that nothing else does.
    fn free_indices(&mut self, e: &Expr, st: &mut OracleScopes) -> Vec<(usize, Ident)> {
        let mut names = Vec::new();
        ptoc_names::resolve::index_names(e, &mut names);
        let mut free = Vec::new();
        for n in names {
            let item = self.elab.modules.get(self.elab.module).scope.get(&n.name);
            let is_constant = item.is_some_and(|id| matches!(self.elab.modules.item(*id).kind, ItemKind::Const(_)));
            if self.elab.env.get(&n.name).is_none() && !is_constant {
                let v = st.fresh_var();
                st.define(&n.name, Math::Int(IntExpr::Var(v)));
                free.push((v, n));
            }
        }
        free
    }

    /// The range of each index: the extent that it indexes by itself.
    fn ranges(&mut self, free: &[(usize, Ident)], st: &OracleScopes) -> ElabResult<Vec<(usize, IntExpr, IntExpr)>> {
        let mut vars = Vec::new();
        for (v, n) in free {
            match st.ranges.iter().find(|(x, _)| x == v) {
                Some((_, hi)) => vars.push((*v, IntExpr::Const(0), hi.clone())),
                None => {
                    let message = format!("`{}` indexes nothing directly, so it has no range", n.name);
                    return self.elab.error(codes::TYPE_MISMATCH, n.span, message);
                }
            }
        }
        Ok(vars)
    }

    /// What an `ensures` claims is of something that the launch writes.
    fn of_a_result(&mut self, e: &OracleExpr, tensors: &[TensorArg], span: Span) -> ElabResult<()> {
        let written = |n: usize| tensors.iter().any(|t| t.id.as_u32() as usize == n && t.dir != TensorDir::In);
        if e.reads(&|n, scalar| !scalar && written(n)) {
            return Ok(());
        }
        let d = Diagnostic::error(codes::TYPE_MISMATCH, span, "no result of the kernel has a part in this `ensures`")
            .with_label("of inputs alone")
            .with_help("what a launch must satisfy is a `where`");
        self.elab.report(d)
    }

    /// Whether a tensor or a scalar of floats has a part in it.
    fn reads_floats(&self, e: &OracleExpr) -> bool {
        let kernel = self.elab.b.kernel();
        e.reads(&|n, scalar| match scalar {
            true => kernel.scalars.get(n).is_some_and(|s| matches!(self.elab.ty(s.value), Ty::D(d) if d.is_float())),
            false => kernel.tensors.get(TensorId::from_u32(n as u32)).is_some_and(|t| t.dtype.is_float()),
        })
    }
}

/// Whether `lhs == rhs` is `x[i] == y[i]` of an input and a result, with the same indices: what is claimed is the
/// result.
fn claims_of_input(lhs: &Expr, rhs: &Expr, tensors: &[TensorArg]) -> bool {
    fn element<'e>(e: &'e Expr, tensors: &'e [TensorArg]) -> Option<(TensorDir, Vec<&'e Name>)> {
        let ExprKind::Index(base, args) = &*e.kind else { return None };
        let ExprKind::Name(tensor) = &*base.kind else { return None };
        let dir = tensors.iter().find(|t| t.name == *tensor)?.dir;
        let index = args.iter().map(|a| match &*a.value.kind {
            ExprKind::Name(n) => Some(n),
            _ => None,
        });
        let mut index = index.collect::<Option<Vec<_>>>()?;
        index.sort();
        Some((dir, index))
    }
    match (element(lhs, tensors), element(rhs, tensors)) {
        (Some((of, left)), Some((to, right))) => of == TensorDir::In && to != TensorDir::In && left == right,
        _ => false,
    }
}
