//! The order of a plan's launches: a list with branches, since what some launches write decides over others.

use super::plan::Plan;
use super::tensors::Used;
use crate::backend::Launches;
use ptoc_analysis::{HostExpr, ProgramNode, TensorSource};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_tensor::Tensor;

/// What is next.
#[derive(Clone, Debug)]
pub enum PlanStep {
    /// A launch of the plan.
    Launch(usize),
    /// A tensor of the program begins with its `fill`.
    Fill(usize),
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
pub(super) fn linear(nodes: &[ProgramNode]) -> Vec<PlanStep> {
    let mut out = Vec::new();
    append(nodes, &mut out);
    out
}

fn append(nodes: &[ProgramNode], out: &mut Vec<PlanStep>) {
    for node in nodes {
        match node {
            ProgramNode::Launch(n) => out.push(PlanStep::Launch(*n)),
            ProgramNode::Fill(k) => out.push(PlanStep::Fill(*k)),
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
        PlanStep::Launch(_) | PlanStep::Fill(_) => {}
    }
}

/// Where a run is in the list.
pub(crate) struct Position<'c> {
    plan: &'c Plan,
    at: usize,
    /// Tensors of the program that hold their `fill`.
    filled: Vec<bool>,
}

impl<'c> Position<'c> {
    /// At the beginning; `new`: the program's tensors were just made.
    pub fn start(plan: &'c Plan, new: bool) -> Position<'c> {
        let filled = plan.locals.iter().map(|_| new).collect();
        Position { plan, at: 0, filled }
    }

    /// The number of the next launch; what stands before it is done. Without `code` all tensors are the host's.
    pub fn next(
        &mut self,
        code: Option<&dyn Launches>,
        tensors: &mut [Tensor],
        locals: &mut [Tensor],
    ) -> Result<Option<usize>, Box<Diagnostic>> {
        let plan = self.plan;
        while let Some(next) = plan.order.get(self.at) {
            self.at += 1;
            match next {
                PlanStep::Launch(number) => return Ok(Some(*number)),
                PlanStep::Jump(to) => self.at = *to,
                PlanStep::Fill(k) => {
                    if !std::mem::replace(&mut self.filled[*k], false) {
                        let (local, tensor) = (&plan.locals[*k], &mut locals[*k]);
                        let element = local.fill.unwrap_or(0).to_le_bytes();
                        let width = local.dtype.size();
                        tensor.bytes_mut().chunks_exact_mut(width).for_each(|x| x.copy_from_slice(&element[..width]));
                        if let Some(code) = code {
                            code.changed(&|source| source == TensorSource::Local(*k));
                        }
                    }
                }
                PlanStep::Branch { cond, otherwise } => {
                    if !self.holds(cond, code, &mut Used::of(tensors, locals))? {
                        self.at = *otherwise;
                    }
                }
            }
        }
        Ok(None)
    }

    fn holds(
        &self,
        cond: &HostExpr,
        code: Option<&dyn Launches>,
        used: &mut Used<'_>,
    ) -> Result<bool, Box<Diagnostic>> {
        let mut read = Vec::new();
        cond.elements(&mut |source, _| read.push(source));
        if let (Some(step), Some(code)) = (self.plan.steps.first(), code) {
            code.fetch(step, used, &|source| read.contains(&source))?;
        }
        let value = cond.evaluate(&mut |source, at| used.get(source).get_bits(at));
        value.map(|bits| bits != 0).ok_or_else(|| {
            let message = "a condition of the program has no value for these elements";
            Box::new(Diagnostic::global(codes::SIM_SELF_CHECK, message))
        })
    }
}
