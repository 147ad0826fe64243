//! What the host computes for a value of a program: statements of the prologue, read backwards from the value. Where
//! paths of `&&`, `if` and early returns meet, a variable is a selection between what it is on each of them; where
//! there are loops, or too many selections, statements are executed.

use super::{HostExpr, HostLoop, Parts, Source};
use ptoc_ir::tile::{Builder, If, Label, Op, Region, Scope, Stmt, TensorId, Value, Var};
use rustc_hash::FxHashSet;
use std::slice;
use std::sync::Arc;

/// Operations that are looked at for one value, at most: what is used twice is computed twice.
const MOST_OPERATIONS: usize = 4096;

/// Why a value is nothing that the host computes.
pub(super) enum Unhosted {
    /// It takes more than arithmetic over elements.
    MoreThanScalars,
    /// It takes more operations than [`MOST_OPERATIONS`].
    TooLarge,
    /// An element whose place is this value, which is no constant.
    Place(Value),
    /// An element outside of its tensor, which was reported where it was indexed.
    Outside,
    /// An element that no launch has written.
    Unwritten(TensorId, usize),
}

type Hosted<T> = Result<T, Unhosted>;

/// Statements that are executed, behind those of `before`.
#[derive(Clone, Copy)]
struct Path<'r> {
    stmts: &'r [Stmt],
    before: Option<&'r Path<'r>>,
}

impl<'r> Path<'r> {
    /// This path up to its statement of a number.
    fn until(&self, number: usize) -> Path<'r> {
        Path { stmts: &self.stmts[..number], ..*self }
    }

    /// This path, and then `stmts`.
    fn then<'n>(&'n self, stmts: &'n [Stmt]) -> Path<'n> {
        Path { stmts, before: Some(self) }
    }

    /// Whether a variable is set on it.
    fn sets(&self, var: Var) -> bool {
        sets(self.stmts, var) || self.before.is_some_and(|before| before.sets(var))
    }

    /// What defines a value, and the path to it.
    fn definition(&self, x: Value) -> Option<(&'r Op, Path<'r>)> {
        match self.stmts.iter().rposition(|s| s.op.def() == Some(x)) {
            Some(at) => Some((&self.stmts[at].op, self.until(at))),
            None => self.before?.definition(x),
        }
    }
}

/// The reader of statements.
struct HostReader<'e> {
    b: &'e Builder,
    parts: &'e Parts,
    left: usize,
    /// Statements are executed. Otherwise that is done where loops are, and all else is selected.
    executes: bool,
}

/// What the host computes for `x`. `region` holds what was evaluated for it by itself.
pub(super) fn host_expr(b: &Builder, parts: &Parts, x: Value, region: &Region) -> Hosted<HostExpr> {
    let read = |executes| {
        let mut reader = HostReader { b, parts, left: MOST_OPERATIONS, executes };
        reader.within(&b.open_regions(), None, region, x)
    };
    match read(false) {
        Err(Unhosted::TooLarge) => read(true),
        read => read,
    }
}

/// Whether statements do nothing but compute scalars from elements.
pub(super) fn only_computes(stmts: &[Stmt]) -> bool {
    stmts.iter().all(|s| match &s.op {
        Op::Load { .. } | Op::Get { .. } | Op::Set { .. } => true,
        Op::Leave(_) | Op::Break(_) | Op::Continue(_) => true,
        Op::For(f) => f.stages <= 1 && only_computes(&f.body),
        Op::While(w) => only_computes(&w.head) && only_computes(&w.body),
        Op::If(i) => only_computes(&i.then) && only_computes(&i.els),
        Op::Scope(s) => s.role.is_none() && only_computes(&s.body),
        op => op.is_pure(),
    })
}

/// Whether a variable is set there, at any depth.
fn sets(stmts: &[Stmt], var: Var) -> bool {
    let is = |s: &Stmt| matches!(s.op, Op::Set { var: v, .. } if v == var);
    stmts.iter().any(|s| is(s) || s.op.regions().any(|r| sets(r, var)))
}

/// Whether there are loops, at any depth.
fn loops(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|s| matches!(s.op, Op::For(_) | Op::While(_)) || s.op.regions().any(|r| loops(r)))
}

/// What statements define, use and read, at any depth.
#[derive(Default)]
struct Inside {
    defined: FxHashSet<Value>,
    used: Vec<Value>,
    elements: Vec<(Value, TensorId, Value)>,
    /// Variables that are read or set.
    vars: Vec<Var>,
    /// Those that are set.
    set: Vec<Var>,
}

impl Inside {
    fn look(&mut self, stmts: &[Stmt]) {
        for s in stmts {
            match &s.op {
                Op::Load { dst, tensor, offset } => self.elements.push((*dst, *tensor, *offset)),
                op => op.for_each_use(&mut |v| self.used.push(v)),
            }
            self.defined.extend(s.op.def());
            match &s.op {
                Op::For(f) => self.defined.extend([f.index]),
                Op::Get { var, .. } => self.vars.push(*var),
                Op::Set { var, .. } => {
                    self.vars.push(*var);
                    self.set.push(*var);
                }
                _ => {}
            }
            s.op.regions().for_each(|r| self.look(r));
        }
    }

    /// Whether something of a statement before is read here.
    fn needs(&self, before: &Inside) -> bool {
        before.set.iter().any(|v| self.vars.contains(v)) || self.used.iter().any(|v| before.defined.contains(v))
    }

    fn add(&mut self, mut more: Inside) {
        self.defined.extend(more.defined);
        self.used.append(&mut more.used);
        self.elements.append(&mut more.elements);
        more.vars.retain(|v| !self.vars.contains(v));
        more.vars.sort_unstable();
        more.vars.dedup();
        self.vars.append(&mut more.vars);
    }
}

/// Whether a scope is left there, at any depth.
fn leaves(stmts: &[Stmt], label: Label) -> bool {
    let is = |s: &Stmt| matches!(s.op, Op::Leave(l) if l == label);
    stmts.iter().any(|s| is(s) || s.op.regions().any(|r| leaves(r, label)))
}

impl HostReader<'_> {
    /// The value behind the open regions, the outermost first, and then `region`.
    fn within(&mut self, open: &[&[Stmt]], before: Option<&Path<'_>>, region: &[Stmt], x: Value) -> Hosted<HostExpr> {
        match open {
            [] => self.value(x, &Path { stmts: region, before }),
            [first, rest @ ..] => self.within(rest, Some(&Path { stmts: first, before }), region, x),
        }
    }

    fn value(&mut self, x: Value, path: &Path<'_>) -> Hosted<HostExpr> {
        self.left = self.left.checked_sub(1).ok_or(Unhosted::TooLarge)?;
        if let Some(c) = self.b.const_of(x) {
            return Ok(HostExpr::Const(c));
        }
        if let Some(slot) = self.parts.slots.get(&x) {
            return Ok(HostExpr::Slot(*slot));
        }
        let (op, path) = path.definition(x).ok_or(Unhosted::MoreThanScalars)?;
        let ty = |v: Value| self.b.ty(v);
        Ok(match *op {
            Op::Unary { op, a, .. } => HostExpr::Unary(op, ty(a), self.operand(a, &path)?),
            Op::Binary { op, a, b, .. } => {
                HostExpr::Binary(op, ty(a), self.operand(a, &path)?, self.operand(b, &path)?)
            }
            Op::Compare { op, a, b, .. } => {
                HostExpr::Compare(op, ty(a), self.operand(a, &path)?, self.operand(b, &path)?)
            }
            Op::Select { cond, a, b, .. } => {
                HostExpr::Select(self.operand(cond, &path)?, self.operand(a, &path)?, self.operand(b, &path)?)
            }
            Op::Convert { dst, a, round, saturate } => {
                let (from, to) = (ty(a), ty(dst));
                HostExpr::Convert { from, to, round, saturate, a: self.operand(a, &path)? }
            }
            Op::Load { tensor, offset, .. } => self.element(tensor, offset)?,
            Op::Get { var, .. } => self.variable(var, &path)?,
            _ => return Err(Unhosted::MoreThanScalars),
        })
    }

    fn operand(&mut self, x: Value, path: &Path<'_>) -> Hosted<Box<HostExpr>> {
        self.value(x, path).map(Box::new)
    }

    fn element(&mut self, tensor: TensorId, offset: Value) -> Hosted<HostExpr> {
        let place = self.b.index_of(offset).ok_or(Unhosted::Place(offset))?;
        let source = self.parts.sources.iter().find(|s| s.id == tensor).ok_or(Unhosted::Outside)?;
        let Source { source, len, .. } = *source;
        let at = usize::try_from(place).ok().filter(|p| (*p as u64) < len).ok_or(Unhosted::Outside)?;
        let known = self.parts.written.get(&source).is_some_and(|w| w.has(at));
        if !known && !self.parts.failed {
            return Err(Unhosted::Unwritten(tensor, at));
        }
        Ok(HostExpr::Element { source, dtype: self.b.kernel().tensors[tensor].dtype, at })
    }

    /// What a variable holds at the end of a path.
    fn variable(&mut self, var: Var, path: &Path<'_>) -> Hosted<HostExpr> {
        let Some(at) = path.stmts.iter().rposition(|s| sets(slice::from_ref(s), var)) else {
            return self.variable(var, path.before.ok_or(Unhosted::MoreThanScalars)?);
        };
        let before = path.until(at);
        match &path.stmts[at].op {
            op if self.executes || matches!(op, Op::For(_) | Op::While(_)) || op.regions().any(|r| loops(r)) => {
                self.executed(var, path, at)
            }
            Op::Set { value, .. } => self.value(*value, &before),
            Op::If(i) => {
                let If { cond, then, els } = &**i;
                let cond = self.operand(*cond, &before)?;
                let (then, els) = (self.variable(var, &before.then(then))?, self.variable(var, &before.then(els))?);
                Ok(HostExpr::Select(cond, Box::new(then), Box::new(els)))
            }
            Op::Scope(s) => {
                let Scope { label, body, .. } = &**s;
                self.left_with(var, *label, &before, &[&body[..]])
            }
            _ => Err(Unhosted::MoreThanScalars),
        }
    }

    /// What a variable holds behind statement `at` of a path, by executing what it is computed by: that statement, and
    /// those before it that do nothing else.
    fn executed(&mut self, var: Var, path: &Path<'_>, at: usize) -> Hosted<HostExpr> {
        let (mut stmts, mut inside, mut first) = (Vec::new(), Inside::default(), 0);
        inside.vars.push(var);
        for (n, s) in path.stmts[..=at].iter().enumerate().rev() {
            let mut more = Inside::default();
            more.look(slice::from_ref(s));
            if !inside.needs(&more) {
                continue;
            }
            let executable = only_computes(slice::from_ref(s))
                && more.elements.iter().all(|(_, tensor, offset)| self.element(*tensor, *offset).is_ok());
            if !executable && n == at {
                for (_, tensor, offset) in more.elements {
                    self.element(tensor, offset)?;
                }
                return Err(Unhosted::MoreThanScalars);
            }
            if !executable {
                first = n + 1;
                break;
            }
            self.left = self.left.checked_sub(more.used.len()).ok_or(Unhosted::TooLarge)?;
            inside.add(more);
            stmts.push(s.clone());
        }
        stmts.reverse();
        let before = path.until(first);
        let Inside { defined, mut used, elements, vars, .. } = inside;
        let types = used.iter().chain(&defined).map(|v| (*v, self.b.ty(*v))).collect();
        used.retain(|v| !defined.contains(v));
        used.sort_unstable();
        used.dedup();
        let mut inputs = Vec::new();
        for v in used {
            inputs.push((v, self.value(v, &before)?));
        }
        for (v, tensor, offset) in elements {
            inputs.push((v, self.element(tensor, offset)?));
        }
        // Others are set inside before they are read.
        let mut held = Vec::new();
        for v in vars.into_iter().filter(|v| before.sets(*v)) {
            held.push((v, self.variable(v, &before)?));
        }
        Ok(HostExpr::Loop(Arc::new(HostLoop { stmts, inputs, vars: held, types, result: var })))
    }

    /// What a variable holds behind a scope, of which `rest` is to come, piece by piece.
    fn left_with(&mut self, var: Var, label: Label, path: &Path<'_>, rest: &[&[Stmt]]) -> Hosted<HostExpr> {
        self.left = self.left.checked_sub(1).ok_or(Unhosted::TooLarge)?;
        let [first, others @ ..] = rest else { return self.variable(var, path) };
        let Some(at) = first.iter().position(|s| leaves(slice::from_ref(s), label)) else {
            return self.left_with(var, label, &path.then(first), others);
        };
        let before = path.then(&first[..at]);
        match &first[at].op {
            Op::Leave(_) => self.variable(var, &before),
            Op::If(i) => {
                let cond = self.operand(i.cond, &before)?;
                let mut on = |branch: &[Stmt]| {
                    let rest: Vec<&[Stmt]> =
                        [branch, &first[at + 1..]].into_iter().chain(others.iter().copied()).collect();
                    self.left_with(var, label, &before, &rest).map(Box::new)
                };
                let (then, els) = (on(&i.then)?, on(&i.els)?);
                Ok(HostExpr::Select(cond, then, els))
            }
            _ => Err(Unhosted::MoreThanScalars),
        }
    }
}
