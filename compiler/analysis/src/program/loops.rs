//! Loops of programs. What is known is the launches of its iterations, one behind the other; of a loop whose range or
//! condition the host computes there is one body. Either is left where data say so.

use super::condition::Decision;
use super::stmts::Flow;
use super::variables::Outward;
use super::written::{OnSomePaths, Written};
use super::{HostExpr, Parts, ProgramElaborator, ProgramNode, TensorSource};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{ElabResult, ErrorReported};
use ptoc_ir::tile::{Const, Region, Ty, Value};
use ptoc_isa::{BinOp, CmpOp};
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, TilesDomain, Val, View};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// A loop around the statements that are being elaborated.
pub(super) struct OpenLoop {
    /// The labels of its end, and of the end of an iteration.
    labels: (usize, usize),
    /// How many statements that are decided late stand around the iterations.
    late: usize,
    /// What its body does to what is outside.
    pub outward: Outward,
    /// Where it is left, and where an iteration is, when data say so.
    left: Vec<Left>,
    ended: Vec<Left>,
}

/// A place where data decide that a loop goes no further.
struct Left {
    at: Span,
    /// What has a value there.
    written: FxHashMap<TensorSource, Written>,
    /// What variables stand for there.
    tensors: Vec<(Name, Rc<View>)>,
}

/// Statements that a `Leave` ends, if there is one.
fn scope(label: usize, is_left: bool, body: Vec<ProgramNode>) -> Vec<ProgramNode> {
    if is_left { vec![ProgramNode::Scope { label, body }] } else { body }
}

impl Parts {
    /// The innermost open loop begins.
    fn open_loop(&mut self, body: &Block) {
        self.labels += 2;
        let (labels, late) = ((self.labels - 2, self.labels - 1), self.late);
        let outward = Outward::of_body(body);
        self.loops.push(OpenLoop { labels, late, outward, left: Vec::new(), ended: Vec::new() });
    }

    /// Where its iterations have ended since this was last asked.
    fn ended(&mut self) -> Vec<Left> {
        self.loops.last_mut().map(|l| std::mem::take(&mut l.ended)).unwrap_or_default()
    }

    /// Whether data may have decided by now that a loop around, or its iteration, goes no further.
    pub(super) fn may_have_left(&self) -> bool {
        self.loops.iter().any(|l| !l.left.is_empty() || !l.ended.is_empty())
    }

    fn is_left(&self) -> bool {
        self.loops.last().is_some_and(|l| !l.left.is_empty())
    }

    /// What has a value where paths meet: those on which a loop went no further, and the one to here unless it has
    /// ended.
    fn paths_meet(&mut self, paths: &[Left], falls: bool) {
        let here = falls.then(|| std::mem::take(&mut self.written));
        let mut all = paths.iter().map(|l| &l.written).chain(&here);
        let Some(first) = all.next() else { return };
        let met = all.fold(first.clone(), |met, w| super::written::both(&met, w));
        for (k, path) in paths.iter().enumerate() {
            let others = paths[..k].iter().chain(&paths[k + 1..]).map(|l| &l.written).chain(&here);
            for other in others {
                let lacks: FxHashMap<_, _> = other
                    .iter()
                    .filter(|(s, w)| path.written.get(s) != Some(w))
                    .map(|(s, w)| (*s, w.clone()))
                    .collect();
                self.note_paths(&lacks, &met, OnSomePaths::Left(path.at));
            }
        }
        self.written = met;
    }
}

impl ProgramElaborator<'_> {
    /// `break` or `continue`: known, or a step of its own where data decide over it.
    pub(super) fn leave(&mut self, flow: Flow, s: &Stmt, parts: &mut Parts) -> ElabResult<Flow> {
        let Some(l) = parts.loops.last() else { return self.elab.stmt(s).map(|()| flow) };
        if parts.late == l.late {
            return Ok(flow);
        }
        let tensors = self.tensors_of(&l.outward.names, parts);
        let left = Left { at: s.span, written: parts.written.clone(), tensors };
        let Some(l) = parts.loops.last_mut() else { return Err(ErrorReported) };
        let label = match flow {
            Flow::Continue => {
                l.ended.push(left);
                l.labels.1
            }
            _ => {
                l.left.push(left);
                l.labels.0
            }
        };
        parts.order.push(ProgramNode::Leave(label));
        Ok(Flow::Left)
    }

    /// Variables stand for the same tensors on all paths on which a loop went no further, and here.
    fn meet(&mut self, paths: &[Left], falls: bool, names: &[Name], parts: &mut Parts) -> ElabResult<()> {
        if paths.is_empty() {
            return Ok(());
        }
        parts.paths_meet(paths, falls);
        let here = if falls { self.tensors_of(names, parts) } else { Vec::new() };
        if let (false, Some(first)) = (falls, paths.first()) {
            self.stand_for(&first.tensors);
        }
        for (k, path) in paths.iter().enumerate() {
            let others = paths[..k].iter().map(|l| &l.tensors).chain([&here]);
            for other in others {
                self.same_tensors(&path.tensors, other, path.at)?;
            }
        }
        Ok(())
    }

    /// Iterations that are known, until one of them is the last.
    fn unrolled(
        &mut self,
        body: &Block,
        parts: &mut Parts,
        mut iteration: impl FnMut(&mut Self, &mut Parts) -> ElabResult<Flow>,
    ) -> ElabResult<()> {
        let around = std::mem::take(&mut parts.order);
        parts.open_loop(body);
        let mark = self.elab.facts.mark();
        let result = self.until_the_last(parts, &mut iteration);
        self.elab.facts.forget(mark);
        let closed = parts.loops.pop().ok_or(ErrorReported)?;
        let nodes = std::mem::replace(&mut parts.order, around);
        parts.order.extend(scope(closed.labels.0, !closed.left.is_empty(), nodes));
        self.meet(&closed.left, result?, &closed.outward.names, parts)
    }

    /// Whether a path leads from the last iteration to the end of the loop.
    fn until_the_last(
        &mut self,
        parts: &mut Parts,
        iteration: &mut impl FnMut(&mut Self, &mut Parts) -> ElabResult<Flow>,
    ) -> ElabResult<bool> {
        loop {
            let before = std::mem::take(&mut parts.order);
            let flow = iteration(self, parts);
            let nodes = std::mem::replace(&mut parts.order, before);
            let ended = parts.ended();
            let Some(l) = parts.loops.last() else { return Err(ErrorReported) };
            let (label, names) = (l.labels.1, l.outward.names.clone());
            parts.order.extend(scope(label, !ended.is_empty(), nodes));
            let flow = flow?;
            self.meet(&ended, flow != Flow::Left, &names, parts)?;
            match flow {
                Flow::Break => return Ok(true),
                Flow::Left if ended.is_empty() => return Ok(false),
                Flow::Left | Flow::Continue | Flow::Next => {}
            }
        }
    }

    /// A loop whose condition the host evaluates: one body.
    fn repeated(
        &mut self,
        cond: HostExpr,
        (at, outward): (Span, &Block),
        parts: &mut Parts,
        body: impl FnOnce(&mut Self, &mut Parts) -> ElabResult<Flow>,
        step: Option<ProgramNode>,
    ) -> ElabResult<()> {
        let before = parts.written.clone();
        parts.open_loop(outward);
        let names = parts.loops.last().map(|l| l.outward.names.clone()).unwrap_or_default();
        let tensors = self.tensors_of(&names, parts);
        let body = self.decided_late(parts, body);
        let closed = parts.loops.pop().ok_or(ErrorReported)?;
        parts.may_not_run(before, at);
        let (nodes, flow) = body?;
        let here = if flow == Flow::Left { Vec::new() } else { self.tensors_of(&names, parts) };
        self.same_tensors(&here, &tensors, at)?;
        for path in closed.ended.iter().chain(&closed.left) {
            self.same_tensors(&path.tensors, &tensors, path.at)?;
        }
        self.stand_for(&tensors);
        let mut body = scope(closed.labels.1, !closed.ended.is_empty(), nodes);
        body.extend(step);
        let repeated = vec![ProgramNode::While { cond, body }];
        parts.order.extend(scope(closed.labels.0, !closed.left.is_empty(), repeated));
        Ok(())
    }

    pub(super) fn program_for(&mut self, var: &Ident, range: &Expr, body: &Block, parts: &mut Parts) -> ElabResult<()> {
        let at = range.span;
        let known = |s: &mut Self, x| {
            let i = s.elab.static_int(&Val::Scalar(x), at, "the range of a loop in a program")?;
            i64::try_from(i).map_err(|_| ErrorReported)
        };
        let (lo, hi, tiles) = match self.elab.range(range)? {
            Val::List(items) => {
                let mut items = items.into_iter();
                return self.unrolled(body, parts, |s, parts| match items.next() {
                    Some(v) => s.iteration(var, v, body, parts),
                    None => Ok(Flow::Break),
                });
            }
            Val::Range(lo, hi) => (lo, hi, None),
            Val::Tiles(t) => (self.elab.idx(0), t.count, Some(t)),
            Val::Block(b) => match &b.place {
                Some(p) => (p.start, p.end, None),
                None => (self.elab.idx(0), b.len, None),
            },
            other => return self.elab.not_looped(&other, range),
        };
        let length = tiles.as_ref().map(|t| t.n);
        if [Some(lo), Some(hi), length].into_iter().flatten().any(|x| self.waits_with(x)) {
            return Err(ErrorReported);
        }
        if [Some(lo), Some(hi), length].into_iter().flatten().any(|x| self.is_late(x)) {
            return self.for_late((var, at), (lo, hi, tiles), body, parts);
        }
        let mut numbers = known(self, lo)?..known(self, hi)?;
        self.unrolled(body, parts, |s, parts| {
            let Some(i) = numbers.next() else { return Ok(Flow::Break) };
            let i = s.elab.idx(i);
            let v = match &tiles {
                Some(t) => s.elab.block_at(t, i, at),
                None => Val::Scalar(i),
            };
            s.iteration(var, v, body, parts)
        })
    }

    /// A loop whose range the host computes before it: one body, with the number in a slot.
    fn for_late(
        &mut self,
        (var, at): (&Ident, Span),
        (lo, hi, tiles): (Value, Value, Option<Rc<TilesDomain>>),
        body: &Block,
        parts: &mut Parts,
    ) -> ElabResult<()> {
        let mut slot = |s: &mut Self, x| -> ElabResult<Value> {
            let host = s.computed_late(x, &Region::default(), at, parts)?;
            Ok(s.slot(host, Ty::Index, at, parts))
        };
        let (number, end) = (slot(self, lo)?, slot(self, hi)?);
        let tiles = match tiles {
            Some(t) => Some(TilesDomain { n: slot(self, t.n)?, size: t.size, count: end }),
            None => None,
        };
        self.become_late(&Outward::of_body(body).names, at, parts)?;
        let [number_slot, end_slot] = [number, end].map(|x| parts.slots[&x]);
        let slot = |n| Box::new(HostExpr::Slot(n));
        let cond = HostExpr::Compare(CmpOp::Lt, Ty::Index, slot(number_slot), slot(end_slot));
        let one = Box::new(HostExpr::Const(Const::index(1)));
        let next = HostExpr::Binary(BinOp::Add, Ty::Index, slot(number_slot), one);
        let next = ProgramNode::Set(number_slot, next);
        let iteration = |s: &mut Self, parts: &mut Parts| {
            let v = match &tiles {
                Some(t) => s.elab.block_at(t, number, at),
                None => Val::Scalar(number),
            };
            s.iteration(var, v, body, parts)
        };
        self.repeated(cond, (at, body), parts, iteration, Some(next))
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

    pub(super) fn program_while(&mut self, cond: &Expr, body: &Block, parts: &mut Parts) -> ElabResult<()> {
        self.unrolled(body, parts, |s, parts| {
            match s.decided(cond, parts)? {
                Decision::Known(false) => return Ok(Flow::Break),
                // Where data decide when it ends, one body is all of its iterations.
                Decision::Known(true) if !parts.is_left() => {}
                _ => return s.while_late(cond, body, parts).map(|()| Flow::Break),
            }
            s.elab.step(cond.span)?;
            s.elab.begin_unrolled();
            let flow = s.program_block(body, parts);
            s.elab.end_unrolled();
            flow
        })
    }

    fn while_late(&mut self, cond: &Expr, body: &Block, parts: &mut Parts) -> ElabResult<()> {
        let at = cond.span;
        let outward = Outward::of_body(body);
        self.become_late(&outward.names, at, parts)?;
        // It reads what the body changes.
        let late = match self.decided(cond, parts)? {
            Decision::Late(late) => late,
            Decision::Known(b) => HostExpr::Const(Const { ty: Ty::BOOL, bits: u64::from(b) }),
        };
        let mut changes = outward.breaks;
        late.elements(&mut |_, _| changes = true);
        late.slots(&mut |slot| changes |= self.is_one_of(slot, &outward.names, parts));
        if !changes {
            let message = "nothing that this loop's condition reads can change";
            let d = Diagnostic::error(codes::OUT_OF_FUEL, at, message)
                .with_label("kept since before the loop")
                .with_note("a `let` keeps the number that it was given")
                .with_help("read the element in the condition itself: `while n[0] > 0 { .. }`");
            return self.elab.report(d);
        }
        self.repeated(late, (body.span, body), parts, |s, parts| s.program_block(body, parts), None)
    }

    /// Whether a slot is that of a variable with one of these names.
    fn is_one_of(&self, slot: usize, names: &[Name], parts: &Parts) -> bool {
        names.iter().any(|n| match self.elab.env.get(n) {
            Some((Binding::Let(Val::Scalar(x)), _)) => parts.slots.get(x) == Some(&slot),
            _ => false,
        })
    }
}
