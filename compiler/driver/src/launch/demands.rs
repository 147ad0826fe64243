//! Holding what a program launches another one with to the `where` of that one.

use super::compare::{oracle_failed, violated};
use super::order::{PlanStep, Position};
use super::plan::{Argument, Plan, Specification};
use super::tensors::Used;
use super::witness;
use crate::backend::Launches;
use crate::session::{Failed, Session};
use ptoc_analysis::{Demand, Demanded, HostExpr, ProgramNode, TensorSource};
use ptoc_diagnostics::{Diagnostic, Severity, codes};
use ptoc_ir::oracle::{Inputs, OracleTensor, Predicate};
use ptoc_ir::tile::{CheckData, TensorDir, Ty};
use ptoc_tensor::Tensor;

impl Position<'_> {
    /// Holds a launch of a program to what it demands.
    pub(super) fn require(
        &self,
        demand: &Demand,
        code: Option<&dyn Launches>,
        tensors: &mut [Tensor],
        locals: &mut [Tensor],
    ) -> Result<(), Box<Diagnostic>> {
        let told = match &demand.condition {
            Demanded::Scalars(value) => {
                if self.value(value, demand.span, code, &mut Used::of(tensors, locals))? != 0 {
                    return Ok(());
                }
                let message = "this `where` condition does not hold";
                Diagnostic::error(codes::WHERE_VIOLATED, demand.span, message).with_label("this is false")
            }
            Demanded::Check { holds, data, shown } => {
                let mut used = Used::of(tensors, locals);
                if self.value(holds, demand.span, code, &mut used)? != 0 {
                    return Ok(());
                }
                let shown = shown.iter().map(|value| self.value(value, demand.span, code, &mut used));
                check_failed(data, &shown.collect::<Result<Vec<_>, _>>()?).with_label("when it came to this launch")
            }
            Demanded::Contents { tensors: sources, .. } => {
                if !self.tests_contents {
                    return Ok(());
                }
                if let (Some(step), Some(code)) = (self.plan.steps.first(), code) {
                    code.fetch(step, &mut Used::of(tensors, locals), &|source| sources.contains(&source))?;
                }
                match not_held(self.plan, demand, &self.slots, (tensors, locals)) {
                    None => return Ok(()),
                    Some(d) => d,
                }
            }
        };
        Err(Box::new(demand.called(told)))
    }
}

/// What is said of a test, with these numbers.
fn check_failed(data: &CheckData, shown: &[u64]) -> Diagnostic {
    let numbers = shown.iter().enumerate();
    let message = numbers.fold(data.message.clone(), |message, (n, bits)| {
        message.replace(&format!("{{{n}}}"), &(*bits as i64).to_string())
    });
    let d = Diagnostic::error(data.code, data.span, message);
    data.help.iter().fold(d, |d, help| d.with_help(help.clone()))
}

/// Warnings of launches that fail whenever a program comes to them, which data decide.
pub(crate) fn failing(nodes: &[ProgramNode]) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for node in nodes {
        match node {
            ProgramNode::Require(demand) => {
                let Demanded::Check { holds: HostExpr::Const(never), data, shown } = &demand.condition else {
                    continue;
                };
                let number = |value: &HostExpr| match value {
                    HostExpr::Const(c) => Some(c.bits),
                    _ => None,
                };
                let shown: Option<Vec<u64>> = shown.iter().map(number).collect();
                if let (0, Some(shown)) = (never.bits, shown) {
                    out.push(undecided(demand.called(check_failed(data, &shown))));
                }
            }
            ProgramNode::Scope { body, .. } | ProgramNode::While { body, .. } => out.extend(failing(body)),
            ProgramNode::If { then, els, .. } => [then, els].into_iter().for_each(|b| out.extend(failing(b))),
            ProgramNode::Launch(_)
            | ProgramNode::Fill(_)
            | ProgramNode::Set(..)
            | ProgramNode::New(_)
            | ProgramNode::Leave(_) => {}
        }
    }
    out
}

/// The warning for an error of what a program may never come to.
pub(crate) fn undecided(mut d: Diagnostic) -> Diagnostic {
    d.severity = Severity::Warning;
    d.with_note("data decide whether the program comes to this launch: if it does, it ends there")
}

impl Plan {
    /// Holds the arguments, before the first launch, to what launches demand of contents that nothing has written
    /// before them, up to where data decide how the program goes on. Gives the launches that need no more of it.
    pub(crate) fn check_ahead(
        &self,
        session: &mut Session,
        tensors: &mut [Tensor],
        locals: &mut [Tensor],
    ) -> Result<Vec<usize>, Failed> {
        let mut written: Vec<TensorSource> = Vec::new();
        let mut held = Vec::new();
        for step in &self.order {
            let is_given = |source: &TensorSource| matches!(source, TensorSource::Arg(_)) && !written.contains(source);
            match step {
                PlanStep::Launch(number) => {
                    let step = &self.steps[*number];
                    let reads = |n: usize| step.contents.iter().any(|c| c.reads(n));
                    let mut read = step.tensors.iter().enumerate().filter(|(n, _)| reads(*n)).map(|(_, t)| t);
                    if step.contents.is_some() && step.late.is_none() && read.all(is_given) {
                        step.check_contents(session, &mut Used::of(tensors, locals))?;
                        held.push(*number);
                    }
                    let arguments = step.kernel.tensors.values().filter(|t| t.dir != TensorDir::Scratch);
                    written
                        .extend(arguments.zip(&step.tensors).filter(|(t, _)| t.dir != TensorDir::In).map(|(_, s)| *s));
                }
                PlanStep::Require(demand) if is_of(demand, is_given) => {
                    if let Some(d) = not_held(self, demand, &[], (tensors, locals)) {
                        return session.fail(demand.called(d));
                    }
                }
                PlanStep::Branch { .. } | PlanStep::Jump(_) => break,
                _ => {}
            }
        }
        Ok(held)
    }
}

/// Whether a demand is about the contents of such tensors, and nothing that the host keeps.
fn is_of(demand: &Demand, is_given: impl Fn(&TensorSource) -> bool) -> bool {
    match &demand.condition {
        Demanded::Contents { condition, tensors, .. } => {
            !condition.cond.reads(&|_, scalar| scalar) && tensors.iter().all(is_given)
        }
        _ => false,
    }
}

/// A tensor of the program, for a report.
fn local_argument(plan: &Plan, number: usize) -> Argument {
    let local = &plan.locals[number];
    let shape = local.shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect();
    Argument { name: local.name.clone(), dtype: local.dtype, dir: TensorDir::InOut, shape, span: local.span }
}

/// What is wrong with the contents of tensors, if anything is. `slots` is what the host keeps.
fn not_held(
    plan: &Plan,
    demand: &Demand,
    slots: &[u64],
    (tensors, locals): (&[Tensor], &[Tensor]),
) -> Option<Diagnostic> {
    let Demanded::Contents { condition, tensors: sources, slots: types } = &demand.condition else { return None };
    let of = |source: &TensorSource| match *source {
        TensorSource::Arg(n) => (plan.arguments[n].clone(), &tensors[n]),
        TensorSource::Local(n) => (local_argument(plan, n), &locals[n]),
    };
    let (arguments, tensors): (Vec<Argument>, Vec<&Tensor>) = sources.iter().map(of).unzip();
    let shapes: Vec<Vec<u64>> = arguments.iter().map(|a| a.shape.iter().map(|&n| n as u64).collect()).collect();
    let views = tensors.iter().zip(&shapes);
    let views: Vec<OracleTensor<'_>> =
        views.map(|(t, shape)| OracleTensor { dtype: t.dtype(), shape, data: t.bytes() }).collect();
    let scalars: Vec<(Ty, u64)> = types.iter().copied().zip(slots.iter().copied()).collect();
    let ints = scalars.iter().map(|(_, bits)| *bits as i64).collect();
    let spec = Specification { ints, scalars, ..Specification::default() };
    let inputs = Inputs { tensors: &views, ints: &spec.ints, scalars: &spec.scalars };
    match Predicate::new(condition).and_then(|p| p.counterexample(inputs)) {
        Ok(None) => None,
        Ok(Some(at)) => {
            let tensors: Vec<Tensor> = tensors.into_iter().cloned().collect();
            let shown = witness::values(condition, &at, &arguments, &tensors, &spec);
            let callee = demand.calls.first().map_or("program", |(name, _)| name);
            let d = violated(&format!("arguments of `{callee}`"), demand.span, &at, &shown);
            Some(d.with_help("launch it on contents that satisfy it"))
        }
        Err(e) => Some(oracle_failed(&e, &|n| arguments.get(n), demand.span, "this `where`")),
    }
}
