//! Functions that `ensures` uses: their bodies, substituted.

use super::{Math, OracleScopes};
use crate::elab::labels::count;
use crate::elab::{ElabResult, Elaborator, ErrorReported, MAX_CALLS};
use crate::value::Val;
use ptoc_diagnostics::{Span, codes};
use ptoc_ir::oracle::OracleExpr;
use ptoc_names::ItemId;
use ptoc_names::builtins::Word;
use ptoc_syntax::ast::*;
use ptoc_tensor::DType;

impl Elaborator<'_> {
    /// A call of a function of the program.
    pub(super) fn math_inline(
        &mut self,
        id: ItemId,
        statics: &[Arg],
        args: &[Arg],
        span: Span,
        st: &mut OracleScopes,
    ) -> ElabResult<Math> {
        let modules = self.modules;
        let ItemKind::Fn(f) = &modules.item(id).kind else { return Err(ErrorReported) };
        if st.calls.contains(&id) || st.calls.len() >= MAX_CALLS {
            return self.error(codes::RECURSION, span, format!("`{}` calls itself", f.name.name));
        }
        if args.len() != f.params.len() {
            let message = format!(
                "`{}` takes {}, {} given",
                f.name.name,
                count(f.params.len(), "argument", "arguments"),
                args.len()
            );
            return self.error(codes::WRONG_ARGUMENTS, span, message);
        }
        let statics = self.given_statics(&f.statics, statics, &f.name)?;
        let mut values = args.iter().map(|a| self.math(&a.value, st)).collect::<ElabResult<Vec<_>>>()?.into_iter();
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
        st.calls.push(id);
        let module = std::mem::replace(&mut self.module, id.module);
        self.env.push_frame();
        let r = self.math_block(&f.body, st);
        self.env.pop_frame();
        self.module = module;
        st.calls.pop();
        st.frames.pop();
        r
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
                (Some((v, at)), ..) => self.static_value(p, v, at)?,
                (None, Some((_, m)), StaticKind::Type { .. }) => Val::Word(Word::DType(self.dtype_of(m))),
                _ => self.static_default(p, &f.name)?,
            };
            frame.push((p.name.name.clone(), self.math_of(&v, p.name.span)?));
        }
        Ok(frame)
    }

    fn dtype_of(&self, m: &Math) -> DType {
        match m {
            Math::Elem(tensor, _) | Math::Real(OracleExpr::Elem { tensor, .. }) => {
                self.b.kernel().tensors.values().nth(*tensor).map_or(DType::F32, |t| t.dtype)
            }
            _ => DType::F32,
        }
    }
}
