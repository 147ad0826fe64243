//! Conditions that a program decides while it runs: arithmetic over elements that its launches have written.

use super::{Parts, ProgramElaborator, TensorSource};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{ElabResult, ErrorReported};
use ptoc_ir::scalar;
use ptoc_ir::tile::{Const, Op, Region, Stmt, Ty, Value};
use ptoc_isa::{BinOp, CmpOp, RoundMode, UnOp};
use ptoc_syntax::ast::{BinaryOp, Expr, ExprKind};
use ptoc_tensor::DType;
use ptoc_values::Val;

/// What runs in which order.
#[derive(Clone, Debug)]
pub enum ProgramNode {
    /// A tensor of the program begins with its `fill`, by position in `locals`.
    Fill(usize),
    /// A launch, by position in `steps`.
    Launch(usize),
    /// As long as the condition holds.
    While {
        /// Evaluated before each iteration.
        cond: HostExpr,
        /// What is repeated.
        body: Vec<ProgramNode>,
    },
    /// One of two.
    If {
        /// Decides.
        cond: HostExpr,
        /// If it holds.
        then: Vec<ProgramNode>,
        /// If it does not.
        els: Vec<ProgramNode>,
    },
}

/// A scalar that the host computes from elements of tensors, with the arithmetic of kernels.
#[derive(Clone, PartialEq, Debug)]
pub enum HostExpr {
    /// A constant.
    Const(Const),
    /// An element of a tensor, by its number in C order.
    Element {
        /// The tensor.
        source: TensorSource,
        /// Element type.
        dtype: DType,
        /// The number.
        at: usize,
    },
    /// `op a`
    Unary(UnOp, Ty, Box<HostExpr>),
    /// `a op b`
    Binary(BinOp, Ty, Box<HostExpr>, Box<HostExpr>),
    /// `a op b`, a truth value.
    Compare(CmpOp, Ty, Box<HostExpr>, Box<HostExpr>),
    /// `if c { a } else { b }`
    Select(Box<HostExpr>, Box<HostExpr>, Box<HostExpr>),
    /// A conversion.
    Convert {
        /// Of this type.
        from: Ty,
        /// To this one.
        to: Ty,
        /// How it rounds.
        round: RoundMode,
        /// What does not fit becomes the nearest value that does.
        saturate: bool,
        /// What is converted.
        a: Box<HostExpr>,
    },
}

impl HostExpr {
    /// Its bits; `element` gives those of an element. `None` where an operation has no value for its operands.
    pub fn evaluate(&self, element: &mut dyn FnMut(TensorSource, usize) -> u64) -> Option<u64> {
        Some(match self {
            HostExpr::Const(c) => c.bits,
            HostExpr::Element { source, at, .. } => element(*source, *at),
            HostExpr::Unary(op, ty, a) => scalar::unary(*op, *ty, a.evaluate(element)?)?,
            HostExpr::Binary(op, ty, a, b) => {
                let (a, b) = (a.evaluate(element)?, b.evaluate(element)?);
                scalar::binary(*op, *ty, a, b)?
            }
            HostExpr::Compare(op, ty, a, b) => {
                let (a, b) = (a.evaluate(element)?, b.evaluate(element)?);
                u64::from(scalar::compare(*op, *ty, a, b))
            }
            HostExpr::Select(c, a, b) => {
                let taken = if c.evaluate(element)? != 0 { a } else { b };
                taken.evaluate(element)?
            }
            HostExpr::Convert { from, to, round, saturate, a } => {
                scalar::convert(*from, *to, a.evaluate(element)?, *round, *saturate)
            }
        })
    }

    /// Calls `f` with each element that it reads.
    pub fn elements(&self, f: &mut dyn FnMut(TensorSource, usize)) {
        match self {
            HostExpr::Const(_) => {}
            HostExpr::Element { source, at, .. } => f(*source, *at),
            HostExpr::Unary(_, _, a) | HostExpr::Convert { a, .. } => a.elements(f),
            HostExpr::Binary(_, _, a, b) | HostExpr::Compare(_, _, a, b) => {
                a.elements(f);
                b.elements(f);
            }
            HostExpr::Select(c, a, b) => [c, a, b].into_iter().for_each(|e| e.elements(f)),
        }
    }
}

/// When a condition is decided.
pub(super) enum Decision {
    /// Now.
    Known(bool),
    /// When the program runs.
    Late(HostExpr),
}

impl ProgramElaborator<'_> {
    /// A condition over constants, dimensions and scalar arguments; or over elements of tensors.
    pub(super) fn decided(&mut self, cond: &Expr, parts: &Parts) -> ElabResult<Decision> {
        match &*cond.kind {
            ExprKind::Paren(e) => self.decided(e, parts),
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                // The value of the first that makes the second one of no matter.
                let ends = *op == BinaryOp::Or;
                let first = match self.decided(a, parts)? {
                    Decision::Known(a) if a == ends => return Ok(Decision::Known(ends)),
                    Decision::Known(_) => return self.decided(b, parts),
                    Decision::Late(a) => Box::new(a),
                };
                let truth = |b: bool| HostExpr::Const(Const { ty: Ty::BOOL, bits: u64::from(b) });
                let second = Box::new(match self.decided(b, parts)? {
                    Decision::Known(b) => truth(b),
                    Decision::Late(b) => b,
                });
                Ok(Decision::Late(match ends {
                    true => HostExpr::Select(first, Box::new(truth(true)), second),
                    false => HostExpr::Select(first, second, Box::new(truth(false))),
                }))
            }
            _ => self.decided_by(cond, parts),
        }
    }

    fn decided_by(&mut self, cond: &Expr, parts: &Parts) -> ElabResult<Decision> {
        let (region, value) = self.elab.region(|s| match s.expr(cond)? {
            Val::Bool(b) => Ok(Err(b)),
            Val::Poison => Err(ErrorReported),
            v => s.bool_of(&v, cond.span).map(Ok),
        });
        let x = match value? {
            Ok(x) => x,
            Err(known) => return Ok(Decision::Known(known)),
        };
        if let Some(c) = self.elab.b.const_of(x) {
            return Ok(Decision::Known(c.bits != 0));
        }
        self.waits_for_all(cond.span)?;
        let host = self.host_expr(x, &region, cond.span, parts)?;
        if self.elab.target.is_pim() {
            let message = "a command stream is the same for all data: units in memory cannot decide this";
            let d = Diagnostic::error(codes::UNIT_CANNOT, cond.span, message)
                .with_label("known when the program runs")
                .with_help("decide it in a kernel of the host, `#[on(host)]`");
            return self.elab.report(d);
        }
        Ok(Decision::Late(host))
    }

    /// All dimensions and scalar arguments are known, or are waited for.
    fn waits_for_all(&mut self, at: Span) -> ElabResult<()> {
        let open = self.elab.dims.values().filter(|n| !self.elab.bindings.dims.contains_key(*n)).cloned();
        for n in open.collect::<Vec<_>>() {
            if !self.elab.waits.iter().any(|(w, _)| *w == n) {
                self.elab.waits.push((n, at));
            }
        }
        if self.elab.waits.is_empty() { Ok(()) } else { Err(ErrorReported) }
    }

    /// What a region computes for a value, if that is arithmetic over elements at known places.
    fn host_expr(&mut self, x: Value, region: &Region, at: Span, parts: &Parts) -> ElabResult<HostExpr> {
        if let Some(c) = self.elab.b.const_of(x) {
            return Ok(HostExpr::Const(c));
        }
        let defines = |s: &&Stmt| match &s.op {
            Op::Unary { dst, .. }
            | Op::Binary { dst, .. }
            | Op::Compare { dst, .. }
            | Op::Select { dst, .. }
            | Op::Convert { dst, .. }
            | Op::Load { dst, .. } => *dst == x,
            _ => false,
        };
        let Some(op) = region.iter().find(defines).map(|s| s.op.clone()) else {
            let d = Diagnostic::error(codes::NOT_CONSTANT, at, "a program cannot decide by this")
                .with_label("more than arithmetic over elements")
                .with_note("a condition that is decided late reads elements at known places, `n[0] > 0`, in itself")
                .with_help("compute it in a kernel, which writes it to a tensor of one element");
            return self.elab.report(d);
        };
        let sub = |s: &mut Self, v: Value| s.host_expr(v, region, at, parts).map(Box::new);
        Ok(match op {
            Op::Unary { op, a, .. } => HostExpr::Unary(op, self.elab.ty(a), sub(self, a)?),
            Op::Binary { op, a, b, .. } => HostExpr::Binary(op, self.elab.ty(a), sub(self, a)?, sub(self, b)?),
            Op::Compare { op, a, b, .. } => HostExpr::Compare(op, self.elab.ty(a), sub(self, a)?, sub(self, b)?),
            Op::Select { cond, a, b, .. } => HostExpr::Select(sub(self, cond)?, sub(self, a)?, sub(self, b)?),
            Op::Convert { dst, a, round, saturate } => {
                let (from, to) = (self.elab.ty(a), self.elab.ty(dst));
                HostExpr::Convert { from, to, round, saturate, a: sub(self, a)? }
            }
            Op::Load { tensor, offset, .. } => {
                let place = self.elab.static_int(&Val::Scalar(offset), at, "the place of an element in a condition")?;
                let Some(source) = parts.sources.iter().find(|s| s.id == tensor) else { return Err(ErrorReported) };
                let place = usize::try_from(place).ok().filter(|p| (*p as u64) < source.len).ok_or(ErrorReported)?;
                let known = parts.written.get(&source.source).is_some_and(|w| w.has(place));
                if !known && !parts.failed {
                    let element = self.coordinates(source.id, place);
                    let message =
                        format!("element {element:?} of `{}` is read before any launch has written it", source.name);
                    let d = Diagnostic::error(codes::TENSOR_UNWRITTEN, at, message)
                        .with_label("decides over launches")
                        .with_help("launch what writes it first, or give it a value: `tensor .. fill 0`");
                    return self.elab.report(d);
                }
                let dtype = self.elab.b.kernel().tensors[tensor].dtype;
                HostExpr::Element { source: source.source, dtype, at: place }
            }
            _ => return Err(ErrorReported),
        })
    }
}
