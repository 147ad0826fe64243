//! Functions with loops that the host of a program calls: their statements are executed, with the arithmetic of
//! kernels.

use super::HostExpr;
use super::condition::HostFault;
use ptoc_diagnostics::Span;
use ptoc_ir::scalar;
use ptoc_ir::tile::{Label, Op, Stmt, Ty, Value, Var};
use rustc_hash::FxHashMap;

/// Statements that one evaluation executes, at most. A loop of the host is not interrupted.
const MOST_STEPS: u64 = 1 << 26;

/// Statements that do nothing but compute scalars, and the variable that they are executed for.
#[derive(Clone, PartialEq, Debug)]
pub struct HostLoop {
    /// The statements.
    pub(super) stmts: Vec<Stmt>,
    /// What they take from outside: values, and elements that are read inside.
    pub(super) inputs: Vec<(Value, HostExpr)>,
    /// Variables, with what they hold before.
    pub(super) vars: Vec<(Var, HostExpr)>,
    /// Types of what is computed.
    pub(super) types: FxHashMap<Value, Ty>,
    /// The variable.
    pub(super) result: Var,
}

/// Where execution goes on behind a statement.
enum Flow {
    Next,
    Break(Label),
    Continue(Label),
    Leave(Label),
}

/// An execution of a [`HostLoop`].
struct Execution<'l> {
    span: Span,
    types: &'l FxHashMap<Value, Ty>,
    values: FxHashMap<Value, u64>,
    vars: FxHashMap<Var, u64>,
    left: u64,
}

impl HostLoop {
    /// What the variable holds behind them; `of` evaluates what they take from outside.
    pub(super) fn evaluate(&self, of: &mut dyn FnMut(&HostExpr) -> Result<u64, HostFault>) -> Result<u64, HostFault> {
        let values = self.inputs.iter().map(|(v, e)| Ok((*v, of(e)?))).collect::<Result<_, HostFault>>()?;
        let vars = self.vars.iter().map(|(v, e)| Ok((*v, of(e)?))).collect::<Result<_, HostFault>>()?;
        let mut run = Execution {
            span: self.stmts.last().map(|s| s.span).unwrap_or_default(),
            types: &self.types,
            values,
            vars,
            left: MOST_STEPS,
        };
        run.execute(&self.stmts)?;
        run.vars.get(&self.result).copied().ok_or(HostFault::NoValue)
    }

    /// What they take from outside.
    pub(super) fn taken(&self) -> impl Iterator<Item = &HostExpr> {
        self.inputs.iter().map(|(_, e)| e).chain(self.vars.iter().map(|(_, e)| e))
    }
}

impl Execution<'_> {
    fn get(&self, v: Value) -> Result<u64, HostFault> {
        self.values.get(&v).copied().ok_or(HostFault::NoValue)
    }

    fn ty(&self, v: Value) -> Result<Ty, HostFault> {
        self.types.get(&v).copied().ok_or(HostFault::NoValue)
    }

    fn execute(&mut self, stmts: &[Stmt]) -> Result<Flow, HostFault> {
        for s in stmts {
            self.step()?;
            match self.statement(&s.op)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn step(&mut self) -> Result<(), HostFault> {
        self.left = self.left.checked_sub(1).ok_or(HostFault::TooLong(self.span))?;
        Ok(())
    }

    fn statement(&mut self, op: &Op) -> Result<Flow, HostFault> {
        match op {
            Op::Set { var, value } => {
                let bits = self.get(*value)?;
                self.vars.insert(*var, bits);
            }
            Op::If(i) => return self.execute(if self.get(i.cond)? != 0 { &i.then } else { &i.els }),
            Op::Scope(s) => {
                return Ok(match self.execute(&s.body)? {
                    Flow::Leave(label) if label == s.label => Flow::Next,
                    flow => flow,
                });
            }
            Op::For(f) => {
                let range = self.get(f.lo)? as i64..self.get(f.hi)? as i64;
                for i in range {
                    self.step()?;
                    self.values.insert(f.index, i as u64);
                    let flow = self.execute(&f.body)?;
                    if let Some(flow) = behind_iteration(flow, f.label) {
                        return Ok(flow);
                    }
                }
            }
            Op::While(w) => loop {
                self.step()?;
                if let flow @ (Flow::Break(_) | Flow::Continue(_) | Flow::Leave(_)) = self.execute(&w.head)? {
                    return Ok(flow);
                }
                if self.get(w.cond)? == 0 {
                    return Ok(Flow::Next);
                }
                let flow = self.execute(&w.body)?;
                if let Some(flow) = behind_iteration(flow, w.label) {
                    return Ok(flow);
                }
            },
            Op::Break(label) => return Ok(Flow::Break(*label)),
            Op::Continue(label) => return Ok(Flow::Continue(*label)),
            Op::Leave(label) => return Ok(Flow::Leave(*label)),
            // Elements are among what is taken from outside.
            Op::Load { .. } => {}
            op => self.compute(op)?,
        }
        Ok(Flow::Next)
    }

    fn compute(&mut self, op: &Op) -> Result<(), HostFault> {
        let dst = op.def().ok_or(HostFault::NoValue)?;
        let bits = match *op {
            Op::Const { value, .. } => value.bits,
            Op::Get { var, .. } => *self.vars.get(&var).ok_or(HostFault::NoValue)?,
            Op::Unary { op, a, .. } => scalar::unary(op, self.ty(a)?, self.get(a)?).ok_or(HostFault::NoValue)?,
            Op::Binary { op, a, b, .. } => {
                scalar::binary(op, self.ty(a)?, self.get(a)?, self.get(b)?).ok_or(HostFault::NoValue)?
            }
            Op::Compare { op, a, b, .. } => u64::from(scalar::compare(op, self.ty(a)?, self.get(a)?, self.get(b)?)),
            Op::Select { cond, a, b, .. } => self.get(if self.get(cond)? != 0 { a } else { b })?,
            Op::Convert { a, round, saturate, .. } => {
                scalar::convert(self.ty(a)?, self.ty(dst)?, self.get(a)?, round, saturate)
            }
            _ => return Err(HostFault::NoValue),
        };
        self.values.insert(dst, bits);
        Ok(())
    }
}

/// Where execution goes on behind an iteration, if the loop of this label does not.
fn behind_iteration(flow: Flow, label: Label) -> Option<Flow> {
    match flow {
        Flow::Next => None,
        Flow::Continue(l) if l == label => None,
        Flow::Break(l) if l == label => Some(Flow::Next),
        flow => Some(flow),
    }
}
