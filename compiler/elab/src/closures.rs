//! Closures: a body with what its names stood for where it is written, inlined where it is called.

use super::inline::returns_early;
use super::labels::count;
use super::{ElabResult, Elaborator, ErrorReported, Inlined, MAX_CALLS};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, ClosureVal, TileVal, Val};
use std::rc::Rc;

impl Elaborator<'_> {
    /// `|v| v * scale`: names are captured by value, a variable as what it holds now.
    pub(crate) fn closure(&mut self, c: &Closure, e: &Expr) -> ElabResult<Val> {
        let mut names: Vec<Name> = Vec::new();
        ptoc_names::resolve::each_name(e, &mut |n| {
            if !names.iter().any(|known| known == n) {
                names.push(Name::from(n));
            }
        });
        let (mut captured, mut variables) = (Vec::new(), Vec::new());
        for n in names.into_iter().filter(|n| !c.params.iter().any(|p| p.name.name == *n)) {
            match self.env.get(&n).map(|(b, at)| (b.clone(), at)) {
                Some((Binding::Let(v), at)) => captured.push((n, v, at)),
                Some((Binding::Var(var, _), at)) => {
                    self.read_var(var, &format!("`{n}`"), e.span)?;
                    let v = self.b.get(var, e.span);
                    self.size_origin(v, || n.to_string());
                    variables.push(at);
                    captured.push((n, Val::Scalar(v), at));
                }
                None => {}
            }
        }
        let closure = ClosureVal::new(c.clone(), captured, variables, (self.module, self.around.clone()), e.span);
        self.bounded(Val::Closure(Rc::new(closure)), e.span)
    }

    /// A call of a closure, which the caller knows under a name.
    pub(crate) fn call_closure(
        &mut self,
        c: &Rc<ClosureVal>,
        name: &Name,
        args: &[Arg],
        dest: Option<TileVal>,
        span: Span,
    ) -> ElabResult<Val> {
        self.step(span)?;
        self.no_names(args)?;
        let params = &c.closure.params;
        if self.calls.len() >= MAX_CALLS {
            let d = Diagnostic::error(codes::RECURSION, span, "closures call each other without end")
                .with_label("this call would never end")
                .with_secondary(c.span, "closures are inlined where they are called")
                .with_help("use a loop");
            return self.report(d);
        }
        if params.len() != args.len() {
            let takes = count(params.len(), "argument", "arguments");
            let d = Diagnostic::error(
                codes::WRONG_ARGUMENTS,
                span,
                format!("`{name}` takes {takes}, {} given", args.len()),
            )
            .with_secondary(c.span, "the closure");
            return self.report(d);
        }
        if returns_early(&c.closure.body, true) {
            let d = Diagnostic::error(codes::BAD_RETURN, c.span, "a closure does not return early")
                .with_label("has a `return` that is not its end")
                .with_help("write the `if` as a value, or make it a function: `fn`");
            return self.report(d);
        }
        let mut values = Vec::new();
        for (p, a) in params.iter().zip(args) {
            let windows = p.ty.as_ref().is_some_and(super::signature::takes_a_window);
            let v = if windows { self.operand_value(&a.value)? } else { self.expr(&a.value)? };
            values.push((v, a.value.span));
        }
        let around = std::mem::replace(&mut self.around, c.around.clone());
        let r = self
            .in_call((name.clone(), span), (c.module, None), Vec::new(), |e| e.bind_and_run_closure(c, values, dest));
        self.around = around;
        r
    }

    fn bind_and_run_closure(
        &mut self,
        c: &Rc<ClosureVal>,
        values: Vec<(Val, Span)>,
        dest: Option<TileVal>,
    ) -> ElabResult<Val> {
        for (name, v, at) in &c.captured {
            self.env.define(name.clone(), Binding::Let(v.clone()), *at);
        }
        let deduced = self.deduced.len();
        for (p, (v, at)) in c.closure.params.iter().zip(values) {
            let v = match &p.ty {
                Some(ty) => {
                    let (name, span) = (p.name.clone(), p.name.span.to(ty.span));
                    let p = Param { name, dir: None, ty: ty.clone(), at: None, over: None, default: None, span };
                    self.bind_param(&p, v, at)?
                }
                None if matches!(v, Val::Poison) => return Err(ErrorReported),
                None => v,
            };
            self.env.define(p.name.name.clone(), Binding::Let(v), p.name.span);
        }
        self.deduced.truncate(deduced);
        let variables = self.captured_variables.len();
        self.captured_variables.extend(&c.variables);
        self.inlined.push(Inlined { label: None, slots: Vec::new(), fields: None, result: None, left: false });
        let tail = self.block_value(&c.closure.body, dest);
        let returned = self.inlined.pop().and_then(|i| i.result);
        self.captured_variables.truncate(variables);
        match returned {
            Some(v) => Ok(v),
            None => tail,
        }
    }

    /// Refuses to write to a variable of which a closure has captured the value.
    pub(crate) fn captured_variable(&self, n: &Name, at: Span, defined: Span) -> Option<Diagnostic> {
        self.captured_variables.contains(&defined).then(|| {
            let message = format!("`{n}` is what the variable held where the closure was written, and never changes");
            Diagnostic::error(codes::NOT_ASSIGNABLE, at, message)
                .with_secondary(defined, "the variable")
                .with_help("a closure captures values: give the result back, and assign it where it is called")
        })
    }
}
