//! What the host computes while a program runs: arithmetic over elements that its launches have written. Conditions,
//! scalar arguments, ranges and `let`s are such.

use super::host::{self, Unhosted};
use super::{Demand, HostLoop, Parts, ProgramElaborator, TensorSource};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{ElabResult, ErrorReported};
use ptoc_ir::scalar;
use ptoc_ir::tile::{Const, Region, Ty, Value};
use ptoc_isa::{BinOp, CmpOp, RoundMode, UnOp};
use ptoc_layout::Tuple;
use ptoc_syntax::ast::{BinaryOp, Expr, ExprKind};
use ptoc_tensor::DType;
use ptoc_values::{RecordVal, TilesDomain, Val, View};
use std::rc::Rc;
use std::sync::Arc;

/// What runs in which order.
#[derive(Clone, Debug)]
pub enum ProgramNode {
    /// A tensor of the program begins with its `fill`, by position in `locals`.
    Fill(usize),
    /// A launch, by position in `steps`.
    Launch(usize),
    /// The host keeps a scalar, in the slot of this number.
    Set(usize, HostExpr),
    /// A tensor of the program is declared without `fill`, in what is decided late: nothing has written it since.
    New(usize),
    /// A `where` of a program that is launched here.
    Require(Arc<Demand>),
    /// Statements that a [`ProgramNode::Leave`] of this label ends.
    Scope {
        /// Its own; scopes one behind the other may share one.
        label: usize,
        /// The statements.
        body: Vec<ProgramNode>,
    },
    /// Goes on behind the scope around that has this label.
    Leave(usize),
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
    /// What [`ProgramNode::Set`] has kept, by its slot.
    Slot(usize),
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
    /// What a variable holds behind loops.
    Loop(Arc<HostLoop>),
}

/// Why the host gets no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostFault {
    /// An operation has none for its operands.
    NoValue,
    /// The loop of a function there goes on for too long.
    TooLong(Span),
}

impl HostExpr {
    /// Its bits; `element` gives those of an element, `slots` what was kept.
    pub fn evaluate(
        &self,
        slots: &[u64],
        element: &mut dyn FnMut(TensorSource, usize) -> u64,
    ) -> Result<u64, HostFault> {
        let mut of = |e: &HostExpr| e.evaluate(slots, element);
        let some = |bits: Option<u64>| bits.ok_or(HostFault::NoValue);
        Ok(match self {
            HostExpr::Const(c) => c.bits,
            HostExpr::Element { source, at, .. } => element(*source, *at),
            HostExpr::Slot(n) => slots[*n],
            HostExpr::Unary(op, ty, a) => some(scalar::unary(*op, *ty, of(a)?))?,
            HostExpr::Binary(op, ty, a, b) => some(scalar::binary(*op, *ty, of(a)?, of(b)?))?,
            HostExpr::Compare(op, ty, a, b) => u64::from(scalar::compare(*op, *ty, of(a)?, of(b)?)),
            HostExpr::Select(c, a, b) => {
                let taken = if of(c)? != 0 { a } else { b };
                of(taken)?
            }
            HostExpr::Convert { from, to, round, saturate, a } => {
                scalar::convert(*from, *to, of(a)?, *round, *saturate)
            }
            HostExpr::Loop(l) => l.evaluate(&mut of)?,
        })
    }

    /// Calls `f` with each slot that it reads.
    pub(super) fn slots(&self, f: &mut dyn FnMut(usize)) {
        match self {
            HostExpr::Const(_) | HostExpr::Element { .. } => {}
            HostExpr::Slot(slot) => f(*slot),
            HostExpr::Unary(_, _, a) | HostExpr::Convert { a, .. } => a.slots(f),
            HostExpr::Binary(_, _, a, b) | HostExpr::Compare(_, _, a, b) => {
                a.slots(f);
                b.slots(f);
            }
            HostExpr::Select(c, a, b) => [c, a, b].into_iter().for_each(|e| e.slots(f)),
            HostExpr::Loop(l) => l.taken().for_each(|e| e.slots(f)),
        }
    }

    /// Calls `f` with each element that it reads.
    pub fn elements(&self, f: &mut dyn FnMut(TensorSource, usize)) {
        match self {
            HostExpr::Const(_) | HostExpr::Slot(_) => {}
            HostExpr::Element { source, at, .. } => f(*source, *at),
            HostExpr::Unary(_, _, a) | HostExpr::Convert { a, .. } => a.elements(f),
            HostExpr::Binary(_, _, a, b) | HostExpr::Compare(_, _, a, b) => {
                a.elements(f);
                b.elements(f);
            }
            HostExpr::Select(c, a, b) => [c, a, b].into_iter().for_each(|e| e.elements(f)),
            HostExpr::Loop(l) => l.taken().for_each(|e| e.elements(f)),
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
        Ok(Decision::Late(self.computed_late(x, &region, cond.span, parts)?))
    }

    /// What the host computes for `x` while the program runs. `region` holds what was evaluated for it by itself.
    pub(super) fn computed_late(&mut self, x: Value, region: &Region, at: Span, parts: &Parts) -> ElabResult<HostExpr> {
        self.waits_for_all(at)?;
        let host = self.host_expr(x, region, at, parts)?;
        if self.elab.target.is_pim() {
            let message = "a command stream is the same for all data: units in memory cannot decide this";
            let d = Diagnostic::error(codes::UNIT_CANNOT, at, message)
                .with_label("known when the program runs")
                .with_help("decide it in a kernel of the host, `#[on(host)]`");
            return self.elab.report(d);
        }
        Ok(host)
    }

    /// Whether a scalar is known only when the program runs.
    pub(super) fn is_late(&self, x: Value) -> bool {
        let e = &self.elab;
        e.b.const_of(x).is_none() && !e.is_dimensional(x) && e.waits.is_empty()
    }

    /// Whether a scalar that is known only when the program runs stands behind what the check waits for.
    pub(super) fn waits_with(&self, x: Value) -> bool {
        let e = &self.elab;
        e.b.const_of(x).is_none() && !e.is_dimensional(x) && !e.waits.is_empty()
    }

    /// A value for a scalar that the host computes now, and keeps: launches behind it do not change it. What is known
    /// stays as it is, and so does what is in a tuple or record and no scalar.
    pub(super) fn kept(&mut self, v: Val, at: Span, parts: &mut Parts) -> ElabResult<Val> {
        Ok(match v {
            Val::Scalar(x) => Val::Scalar(self.kept_scalar(x, at, parts)?),
            Val::Range(lo, hi) => Val::Range(self.kept_scalar(lo, at, parts)?, self.kept_scalar(hi, at, parts)?),
            Val::Tiles(t) if [t.n, t.count].iter().any(|x| self.is_late(*x)) => {
                let [n, count] = [t.n, t.count].map(|x| self.kept_scalar(x, at, parts));
                Val::Tiles(TilesDomain { n: n?, size: t.size, count: count? }.into())
            }
            Val::View(view) => Val::View(self.kept_window(view, at, parts)?),
            Val::Tuple(l) => Val::Tuple(l.into_iter().map(|v| self.kept(v, at, parts)).collect::<ElabResult<_>>()?),
            Val::Record(r) => {
                let fields = r.fields.iter().map(|(n, v)| Ok((n.clone(), self.kept(v.clone(), at, parts)?)));
                Val::Record(RecordVal::new(fields.collect::<ElabResult<_>>()?).into())
            }
            Val::Closure(c) => {
                let mut c = (*c).clone();
                for (_, v, _) in &mut c.captured {
                    *v = self.kept(v.clone(), at, parts)?;
                }
                Val::Closure(c.into())
            }
            known => known,
        })
    }

    /// A window that stays where it begins now, and as long as it is, whatever becomes of the numbers that say so.
    fn kept_window(&mut self, view: Rc<View>, at: Span, parts: &mut Parts) -> ElabResult<Rc<View>> {
        let offset = self.kept_number(view.offset(), at, parts)?;
        let mut kept = (*view).clone();
        kept.window.starts[0] = offset;
        for (k, m) in view.modes.iter().enumerate() {
            let extent = self.kept_number(m.extent, at, parts)?;
            if let (true, Tuple::Leaf(l)) = (extent != m.extent, &mut kept.window.modes[k].tree) {
                l.extent = extent;
                kept.window.modes[k].extent = extent;
            }
        }
        Ok(if kept == *view { view } else { kept.into() })
    }

    /// A number of a window: as it is if nothing changes it.
    fn kept_number(&mut self, x: Value, at: Span, parts: &mut Parts) -> ElabResult<Value> {
        if !self.is_late(x) {
            return Ok(x);
        }
        let host = self.computed_late(x, &Region::default(), at, parts)?;
        let mut changes = false;
        host.elements(&mut |_, _| changes = true);
        host.slots(&mut |slot| changes |= parts.variables.contains(&slot));
        if !changes {
            return Ok(x);
        }
        let kept = self.slot(host, Ty::Index, at, parts);
        // Windows are as long as the most that their extents can be.
        let (least, most) = (self.elab.facts.min_of(x), self.elab.facts.max_of(x));
        least.into_iter().for_each(|n| self.elab.facts.ge_const(kept, n));
        most.into_iter().for_each(|n| self.elab.facts.le_const(kept, n));
        Ok(kept)
    }

    fn kept_scalar(&mut self, x: Value, at: Span, parts: &mut Parts) -> ElabResult<Value> {
        let known = parts.slots.get(&x).is_some_and(|slot| !parts.variables.contains(slot));
        if known || !self.is_late(x) {
            return Ok(x);
        }
        let host = self.computed_late(x, &Region::default(), at, parts)?;
        Ok(self.slot(host, self.elab.ty(x), at, parts))
    }

    /// A new slot that is set here, as a value.
    pub(super) fn slot(&mut self, host: HostExpr, ty: Ty, at: Span, parts: &mut Parts) -> Value {
        let x = self.elab.b.new_value(ty, None, at);
        self.elab.b.define_here(x);
        let number = parts.slot_types.len();
        parts.slot_types.push(ty);
        parts.slots.insert(x, number);
        parts.order.push(ProgramNode::Set(number, host));
        x
    }

    /// All dimensions and scalar arguments are known, or are waited for.
    pub(super) fn waits_for_all(&mut self, at: Span) -> ElabResult<()> {
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
        let why = match host::host_expr(&self.elab.b, parts, x, region) {
            Ok(host) => return Ok(host),
            Err(why) => why,
        };
        let message = "a program cannot compute this between launches";
        let d = Diagnostic::error(codes::NOT_CONSTANT, at, message);
        let kernel = "compute it in a kernel, which writes it to a tensor of one element";
        self.elab.report(match why {
            Unhosted::MoreThanScalars => d
                .with_label("more than arithmetic over elements")
                .with_note("what the host computes reads elements at known places, `n[0] > 0`")
                .with_help(kernel),
            Unhosted::TooLarge => d
                .with_label("too many operations")
                .with_note("each use of a number in a function counts all that the number is computed from")
                .with_help(format!("keep what is used often with a `let` of the program, or {kernel}")),
            Unhosted::Place(offset) => {
                let (what, told) = ("the place of an element that a program reads", self.elab.diags.len());
                let known = self.elab.static_int(&Val::Scalar(offset), at, what);
                if known.is_err() && self.elab.diags.len() > told {
                    let d = self.elab.diags.pop();
                    self.elab.diags.extend(d.map(|d| d.with_help(kernel)));
                }
                return Err(ErrorReported);
            }
            Unhosted::Outside => return Err(ErrorReported),
            Unhosted::Unwritten(tensor, place) => {
                let name = parts.sources.iter().find(|s| s.id == tensor).map_or("?".into(), |s| s.name.clone());
                let element = self.coordinates(tensor, place);
                let message = format!("element {element:?} of `{name}` is read before any launch has written it");
                let d = Diagnostic::error(codes::TENSOR_UNWRITTEN, at, message)
                    .with_label("read between launches")
                    .with_help("launch what writes it first, or give it a value: `tensor .. fill 0`");
                match parts.sources.iter().find(|s| s.id == tensor) {
                    Some(s) => parts.say_paths(d, s.source),
                    None => d,
                }
            }
        })
    }
}
