//! Functions that `ensures` uses: their bodies, substituted.

use super::{Math, MathClosure, OracleElaborator, OracleScopes};
use ptoc_diagnostics::{Span, codes};
use ptoc_elab::{ElabResult, ErrorReported, MAX_CALLS, count};
use ptoc_ir::oracle::OracleExpr;
use ptoc_names::ItemId;
use ptoc_names::builtins::Word;
use ptoc_syntax::ast::*;
use ptoc_tensor::DType;
use ptoc_values::Val;
use std::rc::Rc;

impl OracleElaborator<'_, '_> {
    /// A call of a function of the program.
    pub(super) fn math_inline(
        &mut self,
        (id, by_name): (ItemId, bool),
        statics: &[Arg],
        args: &[Arg],
        span: Span,
        st: &mut OracleScopes,
    ) -> ElabResult<Math> {
        let modules = self.elab.modules;
        let ItemKind::Fn(f) = &modules.item(id).kind else { return Err(ErrorReported) };
        if (by_name && st.around.contains(&id)) || st.calls >= MAX_CALLS {
            return self.elab.error(codes::RECURSION, span, format!("`{}` calls itself", f.name.name));
        }
        if args.len() != f.params.len() {
            let message = format!(
                "`{}` takes {}, {} given",
                f.name.name,
                count(f.params.len(), "argument", "arguments"),
                args.len()
            );
            return self.elab.error(codes::WRONG_ARGUMENTS, span, message);
        }
        let statics = self.elab.given_statics(&f.statics, statics, &f.name)?;
        let values = args.iter().map(|a| self.math(&a.value, st)).collect::<ElabResult<Vec<_>>>()?.into_iter();
        let module = std::mem::replace(&mut self.elab.module, id.module);
        self.elab.env.push_frame();
        let mut around = if by_name { st.around.clone() } else { Vec::new() };
        around.push(id);
        std::mem::swap(&mut st.around, &mut around);
        let r = self.math_body(f, statics, values, st);
        st.around = around;
        self.elab.env.pop_frame();
        self.elab.module = module;
        r
    }

    /// The body of a function whose module has been entered.
    fn math_body(
        &mut self,
        f: &FnItem,
        statics: Vec<Option<(Val, Span)>>,
        mut values: std::vec::IntoIter<Math>,
        st: &mut OracleScopes,
    ) -> ElabResult<Math> {
        let mut frame = self.math_statics(f, statics, values.as_slice())?;
        for p in &f.params {
            let Some(m) = values.next() else { break };
            // An element is read once, too.
            let m = match m {
                Math::Elem(tensor, index) if !matches!(&*p.ty.kind, ExprKind::Name(n) if n == "index") => {
                    Math::Real(OracleExpr::Elem { tensor, index })
                }
                m => m,
            };
            let truth = self.is_truth_value(&m, st);
            let m = st.share(m, truth);
            frame.push((p.name.name.clone(), m));
        }
        st.frames.push(frame);
        st.calls += 1;
        let r = self.math_block(&f.body, st);
        st.calls -= 1;
        st.frames.pop();
        r
    }

    /// A closure, with what its names stand for here.
    pub(super) fn math_closure(&mut self, c: &Closure, e: &Expr, st: &OracleScopes) -> ElabResult<Math> {
        let mut names: Vec<Name> = Vec::new();
        ptoc_names::resolve::each_name(e, &mut |n| names.push(n.into()));
        let mut captured: Vec<(Name, Math)> = Vec::new();
        for n in names {
            let own = c.params.iter().any(|p| p.name.name == n) || captured.iter().any(|(known, _)| *known == n);
            if !own && (st.get(&n).is_some() || st.frames.len() == 1 && self.elab.env.get(&n).is_some()) {
                let m = self.math_name(&n, e.span, st)?;
                captured.push((n, m));
            }
        }
        Ok(Math::Closure(Rc::new(MathClosure {
            closure: c.clone(),
            captured,
            module: self.elab.module,
            around: st.around.clone(),
        })))
    }

    /// A call of a closure.
    pub(super) fn math_call_closure(
        &mut self,
        c: &MathClosure,
        args: &[Arg],
        span: Span,
        st: &mut OracleScopes,
    ) -> ElabResult<Math> {
        let params = &c.closure.params;
        if st.calls >= MAX_CALLS {
            return self.elab.error(codes::RECURSION, span, "closures call each other without end");
        }
        if args.len() != params.len() {
            let takes = count(params.len(), "argument", "arguments");
            let message = format!("the closure takes {takes}, {} given", args.len());
            return self.elab.error(codes::WRONG_ARGUMENTS, span, message);
        }
        let mut frame = c.captured.clone();
        for (p, a) in params.iter().zip(args) {
            let m = self.math(&a.value, st)?;
            let truth = self.is_truth_value(&m, st);
            frame.push((p.name.name.clone(), st.share(m, truth)));
        }
        st.frames.push(frame);
        st.calls += 1;
        let around = std::mem::replace(&mut st.around, c.around.clone());
        let module = std::mem::replace(&mut self.elab.module, c.module);
        self.elab.env.push_frame();
        let r = self.math_block(&c.closure.body, st);
        self.elab.env.pop_frame();
        self.elab.module = module;
        st.around = around;
        st.calls -= 1;
        st.frames.pop();
        r
    }

    /// `r.name`
    pub(super) fn math_field(
        &mut self,
        base: &Expr,
        name: &Ident,
        span: Span,
        st: &mut OracleScopes,
    ) -> ElabResult<Math> {
        match self.math(base, st)? {
            Math::Record(fields) => match fields.into_iter().find(|(n, _)| *n == name.name) {
                Some((_, m)) => Ok(m),
                None => {
                    let message = format!("the record has no field `{}`", name.name);
                    self.elab.error(codes::UNKNOWN_MEMBER, name.span, message)
                }
            },
            _ => self.elab.not_yet(span, "this kind of expression in `ensures` and `where`"),
        }
    }

    /// `t.1`
    pub(super) fn math_part(&mut self, base: &Expr, k: u32, at: Span, st: &mut OracleScopes) -> ElabResult<Math> {
        match self.math(base, st)? {
            Math::Tuple(mut parts) if (k as usize) < parts.len() => Ok(parts.swap_remove(k as usize)),
            Math::Tuple(parts) => {
                let message = format!("the tuple has {} parts, no `.{k}`", parts.len());
                self.elab.error(codes::UNKNOWN_MEMBER, at, message)
            }
            _ => self.elab.error(codes::UNKNOWN_MEMBER, at, format!("this is no tuple, and has no `.{k}`")),
        }
    }

    /// Static parameters: given, deduced, defaults. Nothing rounds here, so of a dtype only counts how far it reaches.
    fn math_statics(
        &mut self,
        f: &FnItem,
        given: Vec<Option<(Val, Span)>>,
        arguments: &[Math],
    ) -> ElabResult<Vec<(Name, Math)>> {
        let mut frame = Vec::new();
        for (p, given) in f.statics.iter().zip(given) {
            let of_type =
                |(param, _): &(&Param, &Math)| matches!(&*param.ty.kind, ExprKind::Name(n) if *n == p.name.name);
            let argument = f.params.iter().zip(arguments).find(of_type);
            let v = match (given, argument, &p.kind) {
                (Some((v, at)), ..) => self.elab.static_value(p, v, at)?,
                (None, Some((_, m)), StaticKind::Type { .. }) => Val::Word(Word::DType(self.dtype_of(m))),
                _ => self.elab.static_default(p, &f.name)?,
            };
            frame.push((p.name.name.clone(), self.math_of(&v, p.name.span)?));
        }
        Ok(frame)
    }

    fn dtype_of(&self, m: &Math) -> DType {
        match m {
            Math::Elem(tensor, _) | Math::Real(OracleExpr::Elem { tensor, .. }) => {
                self.elab.b.kernel().tensors.values().nth(*tensor).map_or(DType::F32, |t| t.dtype)
            }
            _ => DType::F32,
        }
    }
}
