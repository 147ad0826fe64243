//! The order of a plan's launches: a list with branches, since what some launches write decides over others.

use super::plan::Plan;
use super::planned::PlannedLaunch;
use super::tensors::Used;
use super::workspace::Workspace;
use crate::backend::Launches;
use ptoc_analysis::{Demand, Demanded, HostExpr, HostFault, ProgramNode, TensorSource};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_tensor::Tensor;
use std::borrow::Cow;
use std::sync::Arc;

/// What is next.
#[derive(Clone, Debug)]
pub enum PlanStep {
    /// A launch of the plan.
    Launch(usize),
    /// A tensor of the program begins with its `fill`.
    Fill(usize),
    /// The host keeps a scalar, in the slot of this number.
    Set(usize, HostExpr),
    /// A tensor of the program is declared anew: what launches leave of it is 0.
    New(usize),
    /// A `where` of a program that the program launches.
    Require(Arc<Demand>),
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

impl PlanStep {
    /// The place of a condition over contents that is tested here.
    pub(crate) fn tests_contents(&self) -> Option<Span> {
        match self {
            PlanStep::Require(demand) if matches!(demand.condition, Demanded::Contents { .. }) => Some(demand.span),
            _ => None,
        }
    }
}

/// The list for a program.
pub(crate) fn linear(nodes: &[ProgramNode]) -> Vec<PlanStep> {
    let mut out = Vec::new();
    append(nodes, &mut out, &mut Vec::new());
    out
}

/// `left` are the jumps of a [`ProgramNode::Leave`] whose scope goes on, with its label.
fn append(nodes: &[ProgramNode], out: &mut Vec<PlanStep>, left: &mut Vec<(usize, usize)>) {
    for node in nodes {
        match node {
            ProgramNode::Launch(n) => out.push(PlanStep::Launch(*n)),
            ProgramNode::Fill(k) => out.push(PlanStep::Fill(*k)),
            ProgramNode::Set(slot, value) => out.push(PlanStep::Set(*slot, value.clone())),
            ProgramNode::New(k) => out.push(PlanStep::New(*k)),
            ProgramNode::Require(demand) => out.push(PlanStep::Require(Arc::clone(demand))),
            ProgramNode::Scope { label, body } => {
                append(body, out, left);
                for (_, jump) in left.extract_if(.., |(of, _)| of == label) {
                    lead(out, jump);
                }
            }
            ProgramNode::Leave(label) => {
                left.push((*label, out.len()));
                out.push(PlanStep::Jump(0));
            }
            ProgramNode::While { cond, body } => {
                let head = out.len();
                out.push(PlanStep::Branch { cond: cond.clone(), otherwise: 0 });
                append(body, out, left);
                out.push(PlanStep::Jump(head));
                lead(out, head);
            }
            ProgramNode::If { cond, then, els } => {
                let head = out.len();
                out.push(PlanStep::Branch { cond: cond.clone(), otherwise: 0 });
                append(then, out, left);
                let end = out.len();
                out.push(PlanStep::Jump(0));
                lead(out, head);
                append(els, out, left);
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
        PlanStep::Launch(_) | PlanStep::Fill(_) | PlanStep::New(_) | PlanStep::Set(..) | PlanStep::Require(_) => {}
    }
}

/// Where a run is in the list.
pub(crate) struct Position<'c> {
    pub(super) plan: &'c Plan,
    workspace: &'c Workspace,
    at: usize,
    /// Scalars that the host keeps.
    pub(super) slots: Vec<u64>,
    /// What programs demand of contents is tested.
    pub(super) tests_contents: bool,
}

impl<'c> Position<'c> {
    /// At the beginning.
    pub fn start(plan: &'c Plan, workspace: &'c Workspace) -> Position<'c> {
        Position { plan, workspace, at: 0, slots: vec![0; plan.slots], tests_contents: true }
    }

    /// At the beginning, for launches of which only the time is of interest.
    pub fn timed(plan: &'c Plan, workspace: &'c Workspace) -> Position<'c> {
        Position { tests_contents: false, ..Position::start(plan, workspace) }
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
                    let mut ready = step.ready(late, &mut |v| self.value(v, step.span, code, &mut used))?;
                    for (n, by) in &late.late.moved {
                        let by = self.value(by, step.span, code, &mut used)? as i64;
                        ready.move_window(*n, by, used.get(step.tensors[*n]).len())?;
                    }
                    return Ok(Some((*number, Cow::Owned(ready))));
                }
                PlanStep::Set(slot, value) => {
                    let bits = self.value(value, Span::default(), code, &mut Used::of(tensors, locals))?;
                    self.slots[*slot] = bits;
                }
                PlanStep::Require(demand) => self.require(demand, code, tensors, locals)?,
                PlanStep::Jump(to) => self.at = *to,
                PlanStep::Fill(k) => self.fill(*k, code, locals),
                PlanStep::New(k) if self.workspace.left[*k] => self.fill(*k, code, locals),
                PlanStep::New(_) => {}
                PlanStep::Branch { cond, otherwise } => {
                    if self.value(cond, Span::default(), code, &mut Used::of(tensors, locals))? == 0 {
                        self.at = *otherwise;
                    }
                }
            }
        }
        Ok(None)
    }

    /// A tensor of the program gets its `fill`, or 0.
    fn fill(&self, number: usize, code: Option<&dyn Launches>, locals: &mut [Tensor]) {
        let (local, tensor) = (&self.plan.locals[number], &mut locals[number]);
        let element = local.fill.unwrap_or(0).to_le_bytes();
        let width = local.dtype.size();
        tensor.bytes_mut().chunks_exact_mut(width).for_each(|x| x.copy_from_slice(&element[..width]));
        if let Some(code) = code {
            code.changed(&|source| source == TensorSource::Local(number));
        }
    }

    /// The bits of what the host computes. Arithmetic is total, so there are always some.
    pub(super) fn value(
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
        value.evaluate(&self.slots, &mut |source, at| used.get(source).get_bits(at)).map_err(|fault| match fault {
            HostFault::NoValue => {
                let message = "what the program computes between launches has no value for these elements";
                Box::new(Diagnostic::error(codes::SIM_SELF_CHECK, at, message))
            }
            HostFault::TooLong(at) => {
                let message = "between launches, a loop of a function goes on for too long";
                let d = Diagnostic::error(codes::TRAP_OUT_OF_FUEL, at, message)
                    .with_label("stopped here")
                    .with_help("see that it ends for all data, or compute it in a kernel");
                Box::new(d)
            }
        })
    }
}
