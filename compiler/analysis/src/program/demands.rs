//! What the `where` of a program demands that a program launches: tested where its launches begin, if it is not known
//! before.

use super::{HostExpr, Parts, ProgramElaborator, ProgramNode, TensorSource};
use crate::instance::has_index;
use crate::oracle::OracleElaborator;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{ElabResult, ErrorReported, FailingTest};
use ptoc_ir::oracle::{Condition, Rewrite};
use ptoc_ir::tile::{CheckData, Const, Op, Region, TensorDir, Ty};
use ptoc_syntax::ast::{Expr, KernelItem, Name};
use ptoc_values::Val;
use std::cell::RefCell;
use std::sync::Arc;

/// A `where` of a program that is launched by a program, tested when it comes to that.
#[derive(Clone, Debug)]
pub struct Demand {
    /// What holds.
    pub condition: Demanded,
    /// The condition.
    pub span: Span,
    /// The programs that are being launched and their calls, the innermost first.
    pub calls: Vec<(Name, Span)>,
}

/// What must hold.
#[derive(Clone, Debug)]
pub enum Demanded {
    /// A condition over scalars that the host computes.
    Scalars(HostExpr),
    /// A condition over contents of tensors.
    Contents {
        /// The condition.
        condition: Condition,
        /// What its numbers of tensors stand for.
        tensors: Vec<TensorSource>,
        /// Types of the scalars that the host keeps, by slot: what its numbers of scalars stand for.
        slots: Vec<Ty>,
    },
    /// A test of the elaborator's: an index of a window is inside.
    Check {
        /// What must hold.
        holds: HostExpr,
        /// What is said if it does not.
        data: CheckData,
        /// The numbers that are said with it.
        shown: Vec<HostExpr>,
    },
}

impl Demand {
    /// Calls `f` with each tensor of which elements are read.
    pub fn reads(&self, f: &mut dyn FnMut(TensorSource)) {
        match &self.condition {
            Demanded::Scalars(value) => value.elements(&mut |source, _| f(source)),
            Demanded::Check { holds, shown, .. } => {
                shown.iter().chain([holds]).for_each(|value| value.elements(&mut |source, _| f(source)));
            }
            Demanded::Contents { tensors, .. } => tensors.iter().for_each(|source| f(*source)),
        }
    }

    /// Says which calls have led to the condition.
    pub fn called(&self, d: Diagnostic) -> Diagnostic {
        self.calls.iter().fold(d, |d, (name, at)| d.with_secondary(*at, format!("`{name}` is launched here")))
    }
}

/// Tensors by the order in which an expression has them.
#[derive(Default)]
struct InOrder(RefCell<Vec<usize>>);

impl Rewrite for InOrder {
    fn tensor(&self, tensor: usize) -> usize {
        let mut known = self.0.borrow_mut();
        known.iter().position(|t| *t == tensor).unwrap_or_else(|| {
            known.push(tensor);
            known.len() - 1
        })
    }
}

impl ProgramElaborator<'_> {
    /// `where NB == ceil_div(N, B)` defines `NB`, where no parameter has; the others hold.
    pub(super) fn called_wheres(&mut self, k: &KernelItem, parts: &mut Parts) -> ElabResult<()> {
        self.elab.where_dimensions(k);
        let (contents, sizes): (Vec<&Expr>, Vec<&Expr>) = k.wheres.iter().partition(|e| has_index(e));
        for e in sizes {
            self.called_where(e, parts)?;
        }
        for e in contents {
            self.called_contents(e, parts)?;
        }
        Ok(())
    }

    fn called_where(&mut self, e: &Expr, parts: &mut Parts) -> ElabResult<()> {
        let x = match self.elab.expr(e)? {
            Val::Bool(true) => return Ok(()),
            Val::Bool(false) => None,
            v => Some(self.elab.bool_of(&v, e.span)?),
        };
        if let Some(x) = x.filter(|x| self.is_late(*x)) {
            let host = self.computed_late(x, &Region::default(), e.span, parts)?;
            self.demand(Demanded::Scalars(host), e.span, parts);
            return Ok(());
        }
        match x.map(|x| self.elab.b.const_of(x).map(|c| c.bits != 0)) {
            Some(Some(true)) => Ok(()),
            // What is not known now is waited for.
            Some(None) => {
                self.waits_for_all(e.span)?;
                Err(ErrorReported)
            }
            Some(Some(false)) | None if self.elab.undecided => {
                let message = "this `where` condition does not hold".to_string();
                let data = CheckData { code: codes::WHERE_VIOLATED, message, span: e.span, help: None };
                self.elab.failing = Some(FailingTest { data, args: Vec::new(), span: e.span });
                Err(ErrorReported)
            }
            Some(Some(false)) | None => {
                let d = Diagnostic::error(codes::WHERE_VIOLATED, e.span, "this `where` condition does not hold")
                    .with_label("this is false");
                self.elab.report(d)
            }
        }
    }

    /// A condition over contents, of which the tensors are the caller's.
    fn called_contents(&mut self, e: &Expr, parts: &mut Parts) -> ElabResult<()> {
        // With sizes that are not known it is looked at when they are.
        if self.waits_for_all(e.span).is_err() {
            return Ok(());
        }
        let condition = OracleElaborator::with_slots(&mut self.elab, &parts.slots).condition(e)?;
        let order = InOrder::default();
        let cond = condition.cond.rewritten(&order);
        let vars = condition.vars.iter().map(|(v, lo, hi)| (*v, lo.rewritten(&order), hi.rewritten(&order)));
        let condition = Condition { vars: vars.collect(), cond, exact: condition.exact };
        let of = |t: &usize| parts.sources.iter().find(|s| s.id.as_u32() as usize == *t).map(|s| s.source);
        let Some(tensors) = order.0.borrow().iter().map(of).collect::<Option<Vec<_>>>() else {
            return Err(ErrorReported);
        };
        self.units_can_test(&tensors, e.span, parts)?;
        let slots = parts.slot_types.clone();
        self.demand(Demanded::Contents { condition, tensors, slots }, e.span, parts);
        Ok(())
    }

    /// On units in memory contents are tested before the first launch, while nothing has written them.
    fn units_can_test(&mut self, tensors: &[TensorSource], at: Span, parts: &Parts) -> ElabResult<()> {
        let writes = |source: &TensorSource| {
            if let TensorSource::Local(n) = source {
                return parts.locals.get(*n).map(|local| local.span);
            }
            let of = |s: &super::ProgramStep| {
                let arguments = s.instance.tensors.iter().zip(&s.tensors);
                arguments.filter(|(t, given)| t.dir != TensorDir::In && *given == source).map(|_| s.span).next()
            };
            parts.steps.iter().find_map(of)
        };
        let Some(written) = tensors.iter().find_map(writes).filter(|_| self.elab.target.is_pim()) else {
            return Ok(());
        };
        let message = "a command stream is the same for all data: what a launch has written is not tested";
        let d = Diagnostic::error(codes::UNIT_CANNOT, at, message)
            .with_label("known when the program runs")
            .with_secondary(written, "written here")
            .with_help("launch the program before this is written, or test it in a kernel of the host, `#[on(host)]`");
        self.elab.report(d)
    }

    /// Tests that the elaborator has made of what the host computes, since this was last asked: they are made where it
    /// comes to that.
    pub(super) fn demand_checks(&mut self, parts: &mut Parts) -> ElabResult<()> {
        let made = self.elab.b.since(parts.tested).iter().filter_map(|s| match &s.op {
            Op::Check { cond, check, args } => Some((*cond, *check, args.clone(), s.span)),
            _ => None,
        });
        let made: Vec<_> = made.filter(|(cond, ..)| self.is_late(*cond)).collect();
        parts.tested = self.elab.b.len();
        for (cond, check, args, at) in made {
            let data = self.elab.b.kernel().checks[check].clone();
            let holds = self.computed_late(cond, &Region::default(), at, parts)?;
            let shown = args.into_iter().map(|x| self.computed_late(x, &Region::default(), at, parts));
            let shown = shown.collect::<ElabResult<_>>()?;
            parts.demanded.insert(check);
            self.demand(Demanded::Check { holds, data, shown }, at, parts);
        }
        Ok(())
    }

    /// A test that fails whenever it comes to it.
    pub(super) fn demand_failing(&mut self, test: FailingTest, parts: &mut Parts) -> ElabResult<()> {
        let FailingTest { data, args, span } = test;
        let shown = args.into_iter().map(|x| self.computed_late(x, &Region::default(), span, parts));
        let shown = shown.collect::<ElabResult<_>>()?;
        let holds = HostExpr::Const(Const { ty: Ty::BOOL, bits: 0 });
        self.demand(Demanded::Check { holds, data, shown }, span, parts);
        Ok(())
    }

    fn demand(&mut self, condition: Demanded, span: Span, parts: &mut Parts) {
        let calls = self.elab.env.calls().into_iter().map(|c| (c.function.clone(), c.span)).collect();
        parts.order.push(ProgramNode::Require(Arc::new(Demand { condition, span, calls })));
    }
}
