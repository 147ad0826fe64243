//! The order of a plan's launches: a list with branches, since what some launches write decides over others.

use super::plan::Plan;
use super::planned::PlannedLaunch;
use super::tensors::Used;
use crate::backend::Launches;
use ptoc_analysis::{HostExpr, ProgramNode, TensorSource};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_tensor::Tensor;
use std::borrow::Cow;

/// What is next.
#[derive(Clone, Debug)]
pub enum PlanStep {
    /// A launch of the plan.
    Launch(usize),
    /// A tensor of the program begins with its `fill`.
    Fill(usize),
    /// The host keeps a scalar, in the slot of this number.
    Set(usize, HostExpr),
    /// A `where` of a program that the program launches.
    Require(HostExpr, Span),
    /// Goes on behind `otherwise` entries if the condition does not hold.
    Branch {
        /// Decides.
        cond: HostExpr,
        /// Where to go on.
        otherwise: usize,
    },
    /// Goes on there.
    Jump(usize),
}

/// The list for a program.
pub(crate) fn linear(nodes: &[ProgramNode]) -> Vec<PlanStep> {
    let mut out = Vec::new();
    append(nodes, &mut out);
    out
}

fn append(nodes: &[ProgramNode], out: &mut Vec<PlanStep>) {
    for node in nodes {
        match node {
            ProgramNode::Launch(n) => out.push(PlanStep::Launch(*n)),
            ProgramNode::Fill(k) => out.push(PlanStep::Fill(*k)),
            ProgramNode::Set(slot, value) => out.push(PlanStep::Set(*slot, value.clone())),
            ProgramNode::Require(cond, at) => out.push(PlanStep::Require(cond.clone(), *at)),
            ProgramNode::While { cond, body } => {
                let head = out.len();
                out.push(PlanStep::Branch { cond: cond.clone(), otherwise: 0 });
                append(body, out);
                out.push(PlanStep::Jump(head));
                lead(out, head);
            }
            ProgramNode::If { cond, then, els } => {
                let head = out.len();
                out.push(PlanStep::Branch { cond: cond.clone(), otherwise: 0 });
                append(then, out);
                let end = out.len();
                out.push(PlanStep::Jump(0));
                lead(out, head);
                append(els, out);
                lead(out, end);
            }
        }
    }
}

/// The branch or jump at `from` leads to what comes next.
fn lead(out: &mut [PlanStep], from: usize) {
    let next = out.len();
    match &mut out[from] {
        PlanStep::Branch { otherwise, .. } => *otherwise = next,
        PlanStep::Jump(to) => *to = next,
        PlanStep::Launch(_) | PlanStep::Fill(_) | PlanStep::Set(..) | PlanStep::Require(..) => {}
    }
}

/// Where a run is in the list.
pub(crate) struct Position<'c> {
    plan: &'c Plan,
    at: usize,
    /// Scalars that the host keeps.
    slots: Vec<u64>,
}

impl<'c> Position<'c> {
    /// At the beginning.
    pub fn start(plan: &'c Plan) -> Position<'c> {
        Position { plan, at: 0, slots: vec![0; plan.slots] }
    }

    /// The number of the next launch, and the launch; what stands before it is done. Without `code` all tensors are the
    /// host's.
    pub fn next(
        &mut self,
        code: Option<&dyn Launches>,
        tensors: &mut [Tensor],
        locals: &mut [Tensor],
    ) -> Result<Option<(usize, Cow<'c, PlannedLaunch>)>, Box<Diagnostic>> {
        let plan = self.plan;
        while let Some(next) = plan.order.get(self.at) {
            self.at += 1;
            match next {
                PlanStep::Launch(number) => {
                    let step = &plan.steps[*number];
                    let Some(late) = &step.late else { return Ok(Some((*number, Cow::Borrowed(step)))) };
                    let mut used = Used::of(tensors, locals);
                    let values = late.values.iter().map(|(_, v)| self.value(v, step.span, code, &mut used));
                    let bits = values.collect::<Result<Vec<u64>, _>>()?;
                    return Ok(Some((*number, Cow::Owned(step.with_scalars(late, &bits)?))));
                }
                PlanStep::Set(slot, value) => {
                    let bits = self.value(value, Span::default(), code, &mut Used::of(tensors, locals))?;
                    self.slots[*slot] = bits;
                }
                PlanStep::Require(cond, at) => {
                    if self.value(cond, *at, code, &mut Used::of(tensors, locals))? == 0 {
                        let message = "this `where` condition does not hold";
                        let d = Diagnostic::error(codes::WHERE_VIOLATED, *at, message).with_label("this is false");
                        return Err(Box::new(d));
                    }
                }
                PlanStep::Jump(to) => self.at = *to,
                PlanStep::Fill(k) => {
                    let (local, tensor) = (&plan.locals[*k], &mut locals[*k]);
                    let element = local.fill.unwrap_or(0).to_le_bytes();
                    let width = local.dtype.size();
                    tensor.bytes_mut().chunks_exact_mut(width).for_each(|x| x.copy_from_slice(&element[..width]));
                    if let Some(code) = code {
                        code.changed(&|source| source == TensorSource::Local(*k));
                    }
                }
                PlanStep::Branch { cond, otherwise } => {
                    if self.value(cond, Span::default(), code, &mut Used::of(tensors, locals))? == 0 {
                        self.at = *otherwise;
                    }
                }
            }
        }
        Ok(None)
    }

    /// The bits of what the host computes. Arithmetic is total, so there are always some.
    fn value(
        &self,
        value: &HostExpr,
        at: Span,
        code: Option<&dyn Launches>,
        used: &mut Used<'_>,
    ) -> Result<u64, Box<Diagnostic>> {
        let mut read = Vec::new();
        value.elements(&mut |source, _| read.push(source));
        if let (Some(step), Some(code), false) = (self.plan.steps.first(), code, read.is_empty()) {
            code.fetch(step, used, &|source| read.contains(&source))?;
        }
        value.evaluate(&self.slots, &mut |source, at| used.get(source).get_bits(at)).ok_or_else(|| {
            let message = "what the program computes between launches has no value for these elements";
            Box::new(Diagnostic::error(codes::SIM_SELF_CHECK, at, message))
        })
    }
}
