//! Variables of programs. What they hold is known before the first launch, until a statement assigns to one of which
//! data decide whether and how often it is executed: from there on the host keeps the number in a slot. A variable that
//! stands for a tensor is known everywhere.

use super::{Parts, ProgramElaborator, ProgramNode};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{ElabResult, ErrorReported};
use ptoc_ir::tile::{Region, Ty};
use ptoc_syntax::ast::*;
use ptoc_tensor::DType;
use ptoc_values::{Binding, Val, View};
use std::rc::Rc;

/// What statements do to what is around them.
#[derive(Default)]
pub(super) struct Outward {
    /// Names from outside that they assign to.
    pub names: Vec<Name>,
    /// They leave a loop that is around them, or its iteration.
    pub leaves: bool,
    /// They leave a loop that is around them.
    pub breaks: bool,
    /// Names that are declared inside, up to here.
    inside: Vec<Name>,
    /// Loops that are inside, around here.
    loops: usize,
}

impl Outward {
    /// Of the body of a loop.
    pub fn of_body(body: &Block) -> Outward {
        let mut out = Outward::default();
        out.block(body);
        out
    }

    /// Of both branches of an `if`.
    pub fn of_branches(i: &IfStmt) -> Outward {
        let mut out = Outward::default();
        out.branches(i);
        out
    }

    fn branches(&mut self, i: &IfStmt) {
        self.block(&i.then);
        match i.els.as_deref() {
            Some(Else::Block(b)) => self.block(b),
            Some(Else::If(i, _)) => self.branches(i),
            None => {}
        }
    }

    fn looped(&mut self, body: &Block) {
        self.loops += 1;
        self.block(body);
        self.loops -= 1;
    }

    fn block(&mut self, b: &Block) {
        let outside = self.inside.len();
        for s in &b.stmts {
            match &s.kind {
                StmtKind::Let { names, .. } | StmtKind::LetTuple { names, .. } => {
                    self.inside.extend(names.iter().map(|n| n.name.clone()));
                }
                StmtKind::Var { name, .. } => self.inside.push(name.name.clone()),
                StmtKind::Const(c) => self.inside.push(c.name.name.clone()),
                StmtKind::Assign { target, .. } | StmtKind::OpAssign { target, .. } => {
                    if let ExprKind::Name(n) = &*target.kind
                        && !self.inside.contains(n)
                        && !self.names.contains(n)
                    {
                        self.names.push(n.clone());
                    }
                }
                StmtKind::If(i) => self.branches(i),
                StmtKind::For { var, body, .. } => {
                    self.inside.push(var.name.clone());
                    self.looped(body);
                    self.inside.pop();
                }
                StmtKind::While { body, .. } => self.looped(body),
                StmtKind::Break if self.loops == 0 => (self.leaves, self.breaks) = (true, true),
                StmtKind::Continue if self.loops == 0 => self.leaves = true,
                _ => {}
            }
        }
        self.inside.truncate(outside);
    }
}

impl Parts {
    /// The slot of a variable, as whose value `v` was read and which nothing has assigned to since.
    fn variable_slot(&self, v: &Val) -> Option<usize> {
        let Val::Scalar(x) = v else { return None };
        self.slots.get(x).copied().filter(|slot| self.variables.contains(slot))
    }
}

impl ProgramElaborator<'_> {
    /// The first value of a `var`.
    pub(super) fn first_value(&mut self, ty: Option<&Expr>, value: &Expr, parts: &mut Parts) -> ElabResult<Val> {
        let v = self.variable_value(ty, value)?;
        match v {
            Val::Scalar(x) if self.is_late(x) => self.in_slot(&v, value.span, parts),
            v => Ok(v),
        }
    }

    fn variable_value(&mut self, ty: Option<&Expr>, value: &Expr) -> ElabResult<Val> {
        let mut v = self.elab.expr(value)?;
        if let Some(t) = ty {
            let ty = self.elab.scalar_type(t)?;
            v = Val::Scalar(self.elab.scalar_of(&v, ty, value.span)?);
        }
        match v {
            Val::Poison => Err(ErrorReported),
            Val::Scalar(x) if self.waits_with(x) => Err(ErrorReported),
            Val::Scalar(x) if self.elab.b.const_of(x).is_none() && !self.is_late(x) => {
                self.elab.static_int(&v, value.span, "the value of a `var` of a program")?;
                Ok(v)
            }
            _ => Ok(v),
        }
    }

    /// The number, in a slot of a variable.
    fn in_slot(&mut self, v: &Val, at: Span, parts: &mut Parts) -> ElabResult<Val> {
        let ty = match v {
            Val::Int(_) => Ty::Index,
            Val::Float(_) => Ty::D(DType::F32),
            Val::Scalar(x) => self.elab.ty(*x),
            _ => Ty::BOOL,
        };
        let x = self.elab.scalar_of(v, ty, at)?;
        let host = self.computed_late(x, &Region::default(), at, parts)?;
        let y = self.slot(host, ty, at, parts);
        parts.variables.insert(parts.slots[&y]);
        Ok(Val::Scalar(y))
    }

    /// Variables that statements assign to, of which it is not known whether they are executed: the host keeps their
    /// numbers from here on.
    pub(super) fn become_late(&mut self, names: &[Name], at: Span, parts: &mut Parts) -> ElabResult<()> {
        for n in names {
            let Some((Binding::Let(v), declared)) = self.elab.env.get(n) else { continue };
            let v = v.clone();
            let number = matches!(v, Val::Int(_) | Val::Float(_) | Val::Bool(_) | Val::Scalar(_));
            if number && parts.vars.contains(&declared) && parts.variable_slot(&v).is_none() {
                let kept = self.in_slot(&v, at, parts)?;
                self.elab.env.assign(n, kept);
            }
        }
        Ok(())
    }

    /// Variables among `names` that stand for tensors, and the tensors.
    pub(super) fn tensors_of(&self, names: &[Name], parts: &Parts) -> Vec<(Name, Rc<View>)> {
        let tensor = |n: &Name| match self.elab.env.get(n)? {
            (Binding::Let(Val::View(v)), declared) if parts.vars.contains(&declared) => Some((n.clone(), v.clone())),
            _ => None,
        };
        names.iter().filter_map(tensor).collect()
    }

    /// Variables stand for the tensors of another path.
    pub(super) fn stand_for(&mut self, tensors: &[(Name, Rc<View>)]) {
        for (n, view) in tensors {
            self.elab.env.assign(n, Val::View(view.clone()));
        }
    }

    /// On two paths that meet `at` a place, variables stand for the same tensors.
    pub(super) fn same_tensors(
        &mut self,
        on_one: &[(Name, Rc<View>)],
        on_other: &[(Name, Rc<View>)],
        at: Span,
    ) -> ElabResult<()> {
        let differs = |(n, v): &&(Name, Rc<View>)| on_other.iter().any(|(m, w)| n == m && v != w);
        let differing: Vec<&Name> = on_one.iter().filter(differs).map(|(n, _)| n).collect();
        let Some(n) = differing.first() else { return Ok(()) };
        let message = format!("which tensor `{n}` stands for would be known only when the program runs");
        let d = Diagnostic::error(codes::NOT_CONSTANT, at, message)
            .with_label("decided when the program runs")
            .with_note("a launch is compiled for its tensors, so which ones it gets is known before the first launch")
            .with_help("let the tensors take turns twice in an iteration, or copy the result back by a kernel");
        let d = match self.elab.env.get(n) {
            Some((_, declared)) => d.with_secondary(declared, "declared outside of it"),
            None => d,
        };
        // Launches that they are given to are not looked at.
        for n in &differing {
            self.elab.env.assign(n, Val::Poison);
        }
        self.elab.report(d)
    }

    pub(super) fn program_assign(&mut self, target: &Expr, value: &Expr, parts: &mut Parts) -> ElabResult<()> {
        let ExprKind::Name(n) = &*target.kind else {
            let d = Diagnostic::error(codes::NOT_ASSIGNABLE, target.span, "a program assigns to its `var`s alone")
                .with_label("no `var`")
                .with_help("kernels write tensors: launch one that stores this");
            return self.elab.report(d);
        };
        let Some((known, at)) = self.elab.env.get(n).map(|(b, s)| (b.clone(), s)) else { return Err(ErrorReported) };
        let Binding::Let(known) = known else { return Err(ErrorReported) };
        if matches!(known, Val::Poison) {
            return Err(ErrorReported);
        }
        if !parts.vars.contains(&at) {
            return self.elab.unchanging(n, &known, target.span, at);
        }
        // A number stays of the type that the declaration gave it.
        let v = match known {
            Val::Scalar(x) => {
                let ty = self.elab.ty(x);
                let v = self.elab.expr(value)?;
                Val::Scalar(self.elab.scalar_of(&v, ty, value.span)?)
            }
            _ => self.variable_value(None, value)?,
        };
        let v = match (parts.variable_slot(&known), &v) {
            (Some(slot), Val::Scalar(y)) => {
                let host = self.computed_late(*y, &Region::default(), value.span, parts)?;
                parts.order.push(ProgramNode::Set(slot, host));
                // What was read before is another number.
                if let Val::Scalar(x) = known {
                    parts.slots.remove(&x);
                }
                let now = self.elab.b.new_value(self.elab.ty(*y), None, value.span);
                self.elab.b.define_here(now);
                parts.slots.insert(now, slot);
                Val::Scalar(now)
            }
            (None, Val::Scalar(y)) if self.is_late(*y) => self.in_slot(&v, value.span, parts)?,
            _ => v,
        };
        self.elab.env.assign(n, v);
        Ok(())
    }
}
