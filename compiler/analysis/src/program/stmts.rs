//! Statements of a program: declarations, launches, and what decides over launches. Conditions are evaluated while the
//! program is elaborated; those over elements of tensors are decided when it runs.

use super::condition::Decision;
use super::host::only_computes;
use super::variables::Outward;
use super::written::{OnSomePaths, Written, both};
use super::{Parts, Placed, ProgramElaborator, ProgramNode, ProgramTensor, Source, TensorSource};
use ptoc_diagnostics::{Diagnostic, Fix, Span, codes};
use ptoc_elab::{ElabResult, ErrorReported};
use ptoc_ir::tile::{Op, Stmt as IrStmt, TensorDir};
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
    /// Nothing: on every path data have decided that the loop or its iteration ends.
    Left,
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
        let last = match &b.tail {
            Some(e) => self.until_a_test_fails(parts, |s, parts| s.launch_stmt(e, parts)),
            None => Ok(Flow::Next),
        };
        if failed { Err(ErrorReported) } else { last }
    }

    /// A statement. Those of kernels, which would be evaluated and dropped, are refused.
    fn program_stmt(&mut self, s: &Stmt, parts: &mut Parts) -> ElabResult<Flow> {
        let (begin, tiles) = (self.elab.b.len(), self.elab.b.kernel().tiles.len());
        let flow = self.until_a_test_fails(parts, |e, parts| e.program_statement(s, parts))?;
        self.demand_checks(parts)?;
        let own = !matches!(s.kind, StmtKind::If(_) | StmtKind::For { .. } | StmtKind::While { .. });
        if own && self.elab.waits.is_empty() && !parts.waiting && !parts.failed {
            self.no_effect(begin, tiles, s.span, parts)?;
        }
        Ok(flow)
    }

    /// A statement which is known to fail, if data decide that it comes to it, ends the program there.
    fn until_a_test_fails(
        &mut self,
        parts: &mut Parts,
        statement: impl FnOnce(&mut Self, &mut Parts) -> ElabResult<Flow>,
    ) -> ElabResult<Flow> {
        let around = self.elab.undecided;
        self.elab.undecided |= parts.late > 0 || parts.may_have_left();
        let flow = statement(self, parts);
        self.elab.undecided = around;
        let Some(test) = self.elab.failing.take() else { return flow };
        self.demand_checks(parts)?;
        self.demand_failing(test, parts)?;
        Ok(Flow::Left)
    }

    /// Refuses what does something where no kernel is: stores, tiles, prints, checks that are decided late.
    fn no_effect(&mut self, begin: usize, tiles: usize, at: Span, parts: &Parts) -> ElabResult<()> {
        let is_effect = |s: &&IrStmt| match &s.op {
            Op::Check { check, .. } => !parts.demanded.contains(check),
            _ => !only_computes(slice::from_ref(*s)),
        };
        let does = self.elab.b.since(begin).iter().find(is_effect).map(|s| s.span);
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
                    _ => self.first_value(ty.as_ref(), value, parts),
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
            StmtKind::Expr(e) => self.launch_stmt(e, parts),
            StmtKind::If(i) => self.program_if(i, parts),
            StmtKind::For { attrs, .. } if !attrs.is_empty() => self.elab.not_yet(attrs[0].span, "attributes of loops"),
            StmtKind::For { var, range, body, .. } => self.program_for(var, range, body, parts).map(done),
            StmtKind::While { cond, body } => self.program_while(cond, body, parts).map(done),
            StmtKind::Break => self.leave(Flow::Break, s, parts),
            StmtKind::Continue => self.leave(Flow::Continue, s, parts),
            StmtKind::Error => Err(ErrorReported),
            _ => {
                let message = "a program declares tensors and launches kernels";
                self.elab.report(Diagnostic::error(codes::TYPE_MISMATCH, s.span, message).with_help(ONLY_KERNELS))
            }
        }
    }

    fn launch_stmt(&mut self, e: &Expr, parts: &mut Parts) -> ElabResult<Flow> {
        let launched = self.launch(e, parts);
        parts.failed |= launched.is_err() && self.elab.failing.is_none();
        launched
    }

    fn program_if(&mut self, i: &IfStmt, parts: &mut Parts) -> ElabResult<Flow> {
        let cond = match self.decided(&i.cond, parts)? {
            Decision::Known(true) => return self.program_block(&i.then, parts),
            Decision::Known(false) => return self.program_else(i, parts),
            Decision::Late(cond) => cond,
        };
        let mut outward = Outward::of_branches(i);
        if let Some(l) = parts.loops.last().filter(|_| outward.leaves) {
            outward.names.extend(l.outward.names.iter().cloned());
        }
        self.become_late(&outward.names, i.cond.span, parts)?;
        let tensors = self.tensors_of(&outward.names, parts);
        let before = parts.written.clone();
        let then = self.decided_late(parts, |s, parts| s.program_block(&i.then, parts));
        let after_then = std::mem::replace(&mut parts.written, before);
        let tensors_then = self.tensors_of(&outward.names, parts);
        self.stand_for(&tensors);
        let els = self.decided_late(parts, |s, parts| s.program_else(i, parts));
        let after_else = std::mem::take(&mut parts.written);
        let ((then, flow_then), (els, flow_else)) = (then?, els?);
        parts.order.push(ProgramNode::If { cond, then, els });
        parts.written = match (flow_then, flow_else) {
            (Flow::Left, _) => after_else,
            (_, Flow::Left) => {
                self.stand_for(&tensors_then);
                after_then
            }
            _ => {
                let met = both(&after_then, &after_else);
                parts.note_paths(&after_then, &met, OnSomePaths::Then(i.cond.span));
                parts.note_paths(&after_else, &met, OnSomePaths::Else(i.cond.span));
                let tensors_else = self.tensors_of(&outward.names, parts);
                self.same_tensors(&tensors_then, &tensors_else, i.cond.span)?;
                met
            }
        };
        Ok(if flow_then == Flow::Left && flow_else == Flow::Left { Flow::Left } else { Flow::Next })
    }

    fn program_else(&mut self, i: &IfStmt, parts: &mut Parts) -> ElabResult<Flow> {
        match i.els.as_deref() {
            Some(Else::Block(b)) => self.program_block(b, parts),
            Some(Else::If(i, _)) => self.program_if(i, parts),
            None => Ok(Flow::Next),
        }
    }

    /// Statements of which it is known when the program runs whether they do, and how often.
    pub(super) fn decided_late(
        &mut self,
        parts: &mut Parts,
        f: impl FnOnce(&mut Self, &mut Parts) -> ElabResult<Flow>,
    ) -> ElabResult<(Vec<ProgramNode>, Flow)> {
        let around = std::mem::take(&mut parts.order);
        parts.late += 1;
        // What is tested there, or decided, is not known behind it.
        let mark = self.elab.facts.mark();
        let flow = f(self, parts);
        self.elab.facts.forget(mark);
        parts.late -= 1;
        let order = std::mem::replace(&mut parts.order, around);
        Ok((order, flow?))
    }

    /// Adds to an error about an extent what is done where only data have it.
    fn largest(&mut self, tensor: &Name, told: usize) {
        if let Some(d) = self.elab.diags.get_mut(told).filter(|d| d.code == codes::NOT_CONSTANT) {
            let help = format!("declare it as large as it can be, and launch on a window of it: `{tensor}[0 .. n]`");
            d.fixes.push(Fix::advice(help));
        }
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
            let told = self.elab.diags.len();
            let i = match self.elab.static_int(&v, d.value.span, "an extent of a tensor") {
                Ok(i) => i,
                Err(ErrorReported) if self.elab.waits.is_empty() => {
                    self.largest(&n.name, told);
                    return Err(ErrorReported);
                }
                // What is not there yet is not there for any extent.
                Err(ErrorReported) => {
                    parts.waiting = true;
                    shape.push(1);
                    let extent = self.elab.index_of(&v, d.value.span)?;
                    values.push(extent);
                    continue;
                }
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
        } else if parts.late > 0 {
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
