//! Statements of a program: declarations, launches, and what decides over launches. Conditions and ranges are evaluated
//! while the program is elaborated, so a loop is the launches of its iterations, one behind the other; conditions over
//! elements of tensors are decided when it runs.

use super::condition::Decision;
use super::host::only_computes;
use super::written::{OnSomePaths, Written};
use super::{HostExpr, Parts, Placed, ProgramElaborator, ProgramNode, ProgramTensor, Source, TensorSource};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{ElabResult, ErrorReported};
use ptoc_ir::tile::{Const, Region, TensorDir, Ty, Value};
use ptoc_isa::{BinOp, CmpOp};
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, Val};
use std::slice;

/// What comes behind a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next one.
    Next,
    /// The end of the loop.
    Break,
    /// The loop's next iteration.
    Continue,
}

/// The help for statements that programs do not have.
const ONLY_KERNELS: &str = "put this into a kernel; a program has `let`, `var`, `for`, `while`, `if` and launches";

impl ProgramElaborator<'_> {
    /// A block in a scope of its own.
    pub(super) fn program_block(&mut self, b: &Block, parts: &mut Parts) -> ElabResult<Flow> {
        self.elab.env.push();
        let flow = self.program_stmts(b, parts);
        self.elab.env.pop();
        flow
    }

    /// Statements; those after an error are still looked at.
    pub(super) fn program_stmts(&mut self, b: &Block, parts: &mut Parts) -> ElabResult<Flow> {
        let mut failed = false;
        for s in &b.stmts {
            match self.program_stmt(s, parts) {
                Ok(Flow::Next) => {}
                Ok(_) if failed => break,
                Ok(flow) => return Ok(flow),
                Err(ErrorReported) => failed = true,
            }
        }
        if let Some(e) = &b.tail {
            failed |= self.launch_stmt(e, parts).is_err();
        }
        if failed { Err(ErrorReported) } else { Ok(Flow::Next) }
    }

    /// A statement. Those of kernels, which would be evaluated and dropped, are refused.
    fn program_stmt(&mut self, s: &Stmt, parts: &mut Parts) -> ElabResult<Flow> {
        let (begin, tiles) = (self.elab.b.len(), self.elab.b.kernel().tiles.len());
        let flow = self.program_statement(s, parts)?;
        let own = !matches!(s.kind, StmtKind::If(_) | StmtKind::For { .. } | StmtKind::While { .. });
        if own && self.elab.waits.is_empty() && !parts.waiting && !parts.failed {
            self.no_effect(begin, tiles, s.span)?;
        }
        Ok(flow)
    }

    /// Refuses what does something where no kernel is: stores, tiles, prints, checks that are decided late.
    fn no_effect(&mut self, begin: usize, tiles: usize, at: Span) -> ElabResult<()> {
        let does = self.elab.b.since(begin).iter().find(|s| !only_computes(slice::from_ref(s))).map(|s| s.span);
        let tile = (self.elab.b.kernel().tiles.len() > tiles).then_some(at);
        let Some(place) = does.or(tile) else { return Ok(()) };
        let open = self.elab.dims.values().any(|n| !self.elab.bindings.dims.contains_key(n));
        if open {
            return Ok(());
        }
        let place = if at.contains(place) { place } else { at };
        let d = Diagnostic::error(codes::TYPE_MISMATCH, place, "a program declares tensors and launches kernels")
            .with_label("a kernel's work: nothing would do it")
            .with_help(ONLY_KERNELS);
        self.elab.report(d)
    }

    fn program_statement(&mut self, s: &Stmt, parts: &mut Parts) -> ElabResult<Flow> {
        self.elab.step(s.span)?;
        let done = |()| Flow::Next;
        match &s.kind {
            StmtKind::Let { names, value, .. } if matches!(&*value.kind, ExprKind::Tensor { .. }) => {
                for n in names {
                    let v = self.local_tensor(n, value, parts);
                    self.elab.env.define(
                        n.name.clone(),
                        Binding::Let(v.as_ref().map_or(Val::Poison, Clone::clone)),
                        n.span,
                    );
                    v?;
                }
                Ok(Flow::Next)
            }
            StmtKind::Let { names, value, .. } | StmtKind::LetTuple { names, value } => {
                self.elab.stmt(s)?;
                for n in names {
                    if let Some((Binding::Let(v), _)) = self.elab.env.get(&n.name) {
                        let v = self.kept(v.clone(), value.span, parts)?;
                        self.elab.env.assign(&n.name, v);
                    }
                }
                Ok(Flow::Next)
            }
            StmtKind::Const(_) => self.elab.stmt(s).map(done),
            StmtKind::Var { name, ty, value } => {
                let v = match &*value.kind {
                    ExprKind::Tensor { .. } => self.local_tensor(name, value, parts),
                    _ => self.variable_value(ty.as_ref(), value),
                };
                parts.vars.push(name.span);
                let known = v.as_ref().map_or(Val::Poison, Clone::clone);
                self.elab.env.define(name.name.clone(), Binding::Let(known), name.span);
                v.map(|_| Flow::Next)
            }
            StmtKind::Assign { target, value } => self.program_assign(target, value, parts).map(done),
            StmtKind::OpAssign { target, op, value, .. } => {
                let depth = target.depth.max(value.depth) + 1;
                let kind = Box::new(ExprKind::Binary(*op, target.clone(), value.clone()));
                let sum = Expr { kind, span: s.span, depth };
                self.program_assign(target, &sum, parts).map(done)
            }
            StmtKind::Expr(e) => self.launch_stmt(e, parts).map(done),
            StmtKind::If(i) => self.program_if(i, parts),
            StmtKind::For { attrs, .. } if !attrs.is_empty() => self.elab.not_yet(attrs[0].span, "attributes of loops"),
            StmtKind::For { var, range, body, .. } => self.program_for(var, range, body, parts).map(done),
            StmtKind::While { cond, body } => self.program_while(cond, body, parts).map(done),
            StmtKind::Break => Ok(Flow::Break),
            StmtKind::Continue => Ok(Flow::Continue),
            StmtKind::Error => Err(ErrorReported),
            _ => {
                let message = "a program declares tensors and launches kernels";
                self.elab.report(Diagnostic::error(codes::TYPE_MISMATCH, s.span, message).with_help(ONLY_KERNELS))
            }
        }
    }

    fn launch_stmt(&mut self, e: &Expr, parts: &mut Parts) -> ElabResult<()> {
        let launched = self.launch(e, parts);
        parts.failed |= launched.is_err();
        launched
    }

    /// The value of a `var`, which is known like everything else that decides over launches.
    fn variable_value(&mut self, ty: Option<&Expr>, value: &Expr) -> ElabResult<Val> {
        let mut v = self.elab.expr(value)?;
        if let Some(t) = ty {
            let ty = self.elab.scalar_type(t)?;
            v = Val::Scalar(self.elab.scalar_of(&v, ty, value.span)?);
        }
        match v {
            Val::Poison => Err(ErrorReported),
            Val::Scalar(x) if self.is_late(x) => {
                let message = "a `var` of a program is known before its first launch";
                let d = Diagnostic::error(codes::NOT_CONSTANT, value.span, message)
                    .with_label("known when the program runs")
                    .with_help(
                        "keep it with `let`; what changes from launch to launch is an element that a kernel writes",
                    );
                self.elab.report(d)
            }
            Val::Scalar(x) if self.elab.b.const_of(x).is_none() => {
                self.elab.static_int(&v, value.span, "the value of a `var` of a program")?;
                Ok(v)
            }
            _ => Ok(v),
        }
    }

    fn program_assign(&mut self, target: &Expr, value: &Expr, parts: &mut Parts) -> ElabResult<()> {
        let ExprKind::Name(n) = &*target.kind else {
            let d = Diagnostic::error(codes::NOT_ASSIGNABLE, target.span, "a program assigns to its `var`s alone")
                .with_label("no `var`")
                .with_help("kernels write tensors: launch one that stores this");
            return self.elab.report(d);
        };
        let Some((known, at)) = self.elab.env.get(n).map(|(b, s)| (b.clone(), s)) else { return Err(ErrorReported) };
        if !parts.vars.contains(&at) {
            let v = match known {
                Binding::Let(Val::Poison) => return Err(ErrorReported),
                Binding::Let(v) => v,
                Binding::Var(..) => return Err(ErrorReported),
            };
            return self.elab.unchanging(n, &v, target.span, at);
        }
        let declared = parts.vars.iter().position(|v| *v == at).unwrap_or(0);
        if parts.late.iter().any(|first| declared < *first) {
            let message = format!("`{n}` would be known only when the program runs");
            let d = Diagnostic::error(codes::NOT_CONSTANT, target.span, message)
                .with_label("inside of what is decided late")
                .with_secondary(at, "declared outside of it")
                .with_note("a `var` of a program is known before its first launch")
                .with_help("let a kernel count, in a tensor of one element: `let n = tensor u32[1] fill 0;`");
            return self.elab.report(d);
        }
        // A number stays of the type that the declaration gave it.
        let v = match known {
            Binding::Let(Val::Scalar(x)) => {
                let ty = self.elab.ty(x);
                let v = self.elab.expr(value)?;
                Val::Scalar(self.elab.scalar_of(&v, ty, value.span)?)
            }
            _ => self.variable_value(None, value)?,
        };
        self.elab.env.assign(n, v);
        Ok(())
    }

    fn program_if(&mut self, i: &IfStmt, parts: &mut Parts) -> ElabResult<Flow> {
        let cond = match self.decided(&i.cond, parts)? {
            Decision::Known(true) => return self.program_block(&i.then, parts),
            Decision::Known(false) => return self.program_else(i, parts),
            Decision::Late(cond) => cond,
        };
        let before = parts.written.clone();
        let then = self.decided_late(i.cond.span, parts, |s, parts| s.program_block(&i.then, parts));
        let after_then = std::mem::replace(&mut parts.written, before);
        let els = self.decided_late(i.cond.span, parts, |s, parts| s.program_else(i, parts));
        let after_else = std::mem::take(&mut parts.written);
        let both = after_then.iter().filter_map(|(source, w)| Some((*source, w.both(after_else.get(source)?))));
        let both = both.collect();
        parts.note_paths(&after_then, &both, OnSomePaths::Then(i.cond.span));
        parts.note_paths(&after_else, &both, OnSomePaths::Else(i.cond.span));
        parts.written = both;
        parts.order.push(ProgramNode::If { cond, then: then?, els: els? });
        Ok(Flow::Next)
    }

    fn program_else(&mut self, i: &IfStmt, parts: &mut Parts) -> ElabResult<Flow> {
        match i.els.as_deref() {
            Some(Else::Block(b)) => self.program_block(b, parts),
            Some(Else::If(i, _)) => self.program_if(i, parts),
            None => Ok(Flow::Next),
        }
    }

    /// Statements of which it is known when the program runs whether they do, and how often.
    fn decided_late(
        &mut self,
        at: Span,
        parts: &mut Parts,
        f: impl FnOnce(&mut Self, &mut Parts) -> ElabResult<Flow>,
    ) -> ElabResult<Vec<ProgramNode>> {
        let around = std::mem::take(&mut parts.order);
        parts.late.push(parts.vars.len());
        let flow = f(self, parts);
        parts.late.pop();
        let order = std::mem::replace(&mut parts.order, around);
        if flow? != Flow::Next {
            let message = "a loop is not left by what is known when the program runs";
            let d = Diagnostic::error(codes::NOT_CONSTANT, at, message)
                .with_label("decides over a `break` or `continue`")
                .with_help("let the loop's own condition say it: `while n[0] > 0 { .. }`");
            return self.elab.report(d);
        }
        Ok(order)
    }

    fn program_for(&mut self, var: &Ident, range: &Expr, body: &Block, parts: &mut Parts) -> ElabResult<()> {
        let known = |s: &mut Self, x| {
            if s.is_late(x) {
                let message = "the blocks that a program loops over are known before the program runs";
                let d = Diagnostic::error(codes::NOT_CONSTANT, range.span, message)
                    .with_label("known when it runs")
                    .with_help("loop over numbers, `for i in 0..n[0] { .. }`, and pass `i` to the kernel");
                return s.elab.report(d);
            }
            let i = s.elab.static_int(&Val::Scalar(x), range.span, "the range of a loop in a program")?;
            i64::try_from(i).map_err(|_| ErrorReported)
        };
        let (lo, hi, tiles) = match self.elab.range(range)? {
            Val::List(items) => {
                for v in items {
                    if self.iteration(var, v, body, parts)? == Flow::Break {
                        break;
                    }
                }
                return Ok(());
            }
            Val::Range(lo, hi) if self.waits_with(lo) || self.waits_with(hi) => return Err(ErrorReported),
            Val::Range(lo, hi) if self.is_late(lo) || self.is_late(hi) => {
                return self.for_late((var, range.span), (lo, hi), body, parts);
            }
            Val::Range(lo, hi) => (known(self, lo)?, known(self, hi)?, None),
            Val::Tiles(t) => (0, known(self, t.count)?, Some(t)),
            Val::Block(b) => match &b.place {
                Some(p) => (known(self, p.start)?, known(self, p.end)?, None),
                None => (0, known(self, b.len)?, None),
            },
            other => return self.elab.not_looped(&other, range),
        };
        for i in lo..hi {
            let i = self.elab.idx(i);
            let v = match &tiles {
                Some(t) => self.elab.block_at(t, i, range.span),
                None => Val::Scalar(i),
            };
            if self.iteration(var, v, body, parts)? == Flow::Break {
                break;
            }
        }
        Ok(())
    }

    /// A loop whose range the host computes before it: one body, with the number in a slot.
    fn for_late(
        &mut self,
        (var, at): (&Ident, Span),
        (lo, hi): (Value, Value),
        body: &Block,
        parts: &mut Parts,
    ) -> ElabResult<()> {
        let lo = self.computed_late(lo, &Region::default(), at, parts)?;
        let hi = self.computed_late(hi, &Region::default(), at, parts)?;
        let number = self.slot(lo, Ty::Index, at, parts);
        let end = self.slot(hi, Ty::Index, at, parts);
        let [number_slot, end_slot] = [number, end].map(|x| parts.slots[&x]);
        let slot = |n| Box::new(HostExpr::Slot(n));
        let before = parts.written.clone();
        let body = self.decided_late(at, parts, |s, parts| s.iteration(var, Val::Scalar(number), body, parts));
        parts.may_not_run(before, at);
        let mut body = body?;
        let one = Box::new(HostExpr::Const(Const::index(1)));
        body.push(ProgramNode::Set(number_slot, HostExpr::Binary(BinOp::Add, Ty::Index, slot(number_slot), one)));
        let cond = HostExpr::Compare(CmpOp::Lt, Ty::Index, slot(number_slot), slot(end_slot));
        parts.order.push(ProgramNode::While { cond, body });
        Ok(())
    }

    fn iteration(&mut self, var: &Ident, v: Val, body: &Block, parts: &mut Parts) -> ElabResult<Flow> {
        self.elab.step(body.span)?;
        self.elab.env.push();
        self.elab.env.define(var.name.clone(), Binding::Let(v), var.span);
        self.elab.begin_unrolled();
        let flow = self.program_block(body, parts);
        self.elab.end_unrolled();
        self.elab.env.pop();
        flow
    }

    fn program_while(&mut self, cond: &Expr, body: &Block, parts: &mut Parts) -> ElabResult<()> {
        loop {
            match self.decided(cond, parts)? {
                Decision::Known(false) => return Ok(()),
                Decision::Known(true) => {}
                Decision::Late(late) => {
                    let mut changes = false;
                    late.elements(&mut |_, _| changes = true);
                    if !changes {
                        let message = "nothing that this loop's condition reads can change";
                        let d = Diagnostic::error(codes::OUT_OF_FUEL, cond.span, message)
                            .with_label("kept since before the loop")
                            .with_note("a `let` keeps the number that it was given")
                            .with_help("read the element in the condition itself: `while n[0] > 0 { .. }`");
                        return self.elab.report(d);
                    }
                    return self.while_late((late, cond.span), body, parts);
                }
            }
            self.elab.step(cond.span)?;
            self.elab.begin_unrolled();
            let flow = self.program_block(body, parts);
            self.elab.end_unrolled();
            if flow? == Flow::Break {
                return Ok(());
            }
        }
    }

    fn while_late(&mut self, (cond, at): (HostExpr, Span), body: &Block, parts: &mut Parts) -> ElabResult<()> {
        let before = parts.written.clone();
        let body = self.decided_late(body.span, parts, |s, parts| s.program_block(body, parts));
        parts.may_not_run(before, at);
        parts.order.push(ProgramNode::While { cond, body: body? });
        Ok(())
    }

    fn local_tensor(&mut self, n: &Ident, e: &Expr, parts: &mut Parts) -> ElabResult<Val> {
        let ExprKind::Tensor { ty, at, over, fill } = &*e.kind else { return Err(ErrorReported) };
        let ExprKind::Index(base, dims) = &*ty.kind else {
            let d = Diagnostic::error(codes::BAD_PARAMETER_TYPE, ty.span, "expected a tensor type")
                .with_help("for example `tensor f32[M, N]`");
            return self.elab.report(d);
        };
        let dtype = self.elab.dtype(base)?;
        let mut shape = Vec::new();
        let mut values = Vec::new();
        for d in dims {
            let v = self.elab.expr(&d.value)?;
            let i = match self.elab.static_int(&v, d.value.span, "an extent of a tensor") {
                Ok(i) => i,
                // What is not there yet is not there for any extent.
                Err(ErrorReported) if !self.elab.waits.is_empty() => {
                    parts.waiting = true;
                    shape.push(1);
                    let extent = self.elab.index_of(&v, d.value.span)?;
                    values.push(extent);
                    continue;
                }
                Err(ErrorReported) => return Err(ErrorReported),
            };
            let Ok(i) = i64::try_from(i).map_err(|_| ()).and_then(|i| if i < 0 { Err(()) } else { Ok(i) }) else {
                return self.elab.error(codes::BAD_EXTENT, d.value.span, format!("an extent of {i}"));
            };
            shape.push(i);
            values.push(self.elab.idx(i));
        }
        if shape.iter().try_fold(1i64, |a, b| a.checked_mul(*b)).is_none_or(|n| n > 1 << 40) {
            return self.elab.error(codes::BAD_EXTENT, ty.span, "the tensor has more elements than memory could hold");
        }
        let fill = match fill {
            None => None,
            Some(f) => {
                let v = self.elab.expr(f)?;
                let x = self.elab.scalar_of(&v, ptoc_ir::tile::Ty::D(dtype), f.span)?;
                match self.elab.b.const_of(x) {
                    Some(c) => Some(c.bits),
                    None => return self.elab.error(codes::NOT_CONSTANT, f.span, "`fill` must be a constant"),
                }
            }
        };
        let id = self.elab.b.tensor(ptoc_ir::tile::TensorData {
            name: n.name.clone(),
            dtype,
            dir: TensorDir::InOut,
            shape: values.clone(),
            optional: false,
            place: None,
            disjoint: false,
            stored: None,
            span: n.span,
        });
        if let Some(at) = at {
            self.elab.tensor_place(id, &n.name, at, over.as_ref())?;
        }
        let source = TensorSource::Local(parts.locals.len());
        let len = self.length_of(id);
        parts.sources.push(Source { id, source, dir: TensorDir::InOut, name: n.name.clone(), len });
        if fill.is_some() {
            parts.written.insert(source, Written::Whole);
            parts.order.push(ProgramNode::Fill(parts.locals.len()));
        } else if !parts.late.is_empty() {
            parts.order.push(ProgramNode::New(parts.locals.len()));
        }
        let place = self.elab.b.kernel().tensors[id].place.clone();
        if let Some(place) = &place {
            parts.places.push(Placed::declared(source, place, n.span));
        }
        parts.locals.push(ProgramTensor { name: n.name.clone(), dtype, shape, fill, place, span: n.span });
        Ok(Val::View(self.elab.whole(id, dtype, &values, n.span).into()))
    }
}
