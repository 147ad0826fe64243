//! Control-flow graph: the body of a kernel as steps with jumps.

use super::code::{Counted, Def, HazardOp, HazardProgram, Loop, Path, Site};
use super::relevance::conditions;
use super::touch::{StatementAccess, touches};
use super::values::{only_read, unsigned};
use super::whiles::{Driver, drivers};
use cranelift_entity::SecondaryMap;
use ptoc_ir::tile::{Kernel, Label, Op, Region, RoleId, Stmt, TensorId, Tile, Ty, Value, Var, pipe_of_op, used_values};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::rc::Rc;

impl<'k> HazardProgram<'k> {
    pub(super) fn new(kernel: &'k Kernel) -> HazardProgram<'k> {
        let used = used_values(kernel);
        let mut flat = Flat {
            fixed: kernel.tensors.keys().filter(|t| only_read(&used, &kernel.body, *t)).collect(),
            code: HazardProgram {
                kernel,
                used,
                steps: Vec::new(),
                sites: Vec::new(),
                loops: Vec::new(),
                defs: SecondaryMap::new(),
                bounds: kernel.grid.iter().map(|g| (g.index, g.extent)).collect(),
                home: FxHashMap::default(),
                slots: Vec::new(),
                counting: FxHashSet::default(),
                told: 1,
                uses: FxHashMap::default(),
                read: FxHashMap::default(),
                variables: FxHashSet::default(),
                loaded: FxHashMap::default(),
                given: Rc::default(),
                opaque: FxHashMap::default(),
                sources: RefCell::default(),
            },
            readers: FxHashMap::default(),
            same: FxHashMap::default(),
            loads: FxHashMap::default(),
            drivers: FxHashMap::default(),
            wanted: FxHashSet::default(),
            vars: FxHashSet::default(),
            around: Vec::new(),
            labels: Vec::new(),
            path: Vec::new(),
            role: None,
        };
        for value in kernel.dims.values().map(|d| d.value).chain(kernel.grid.iter().map(|g| g.index)) {
            flat.code.defs[value] = Def::Given(true);
        }
        for scalar in &kernel.scalars {
            flat.code.defs[scalar.value] = Def::Given(false);
        }
        flat.drivers = drivers(kernel);
        flat.define(&kernel.prologue);
        flat.define(&kernel.body);
        flat.want();
        flat.region(&kernel.body, 0);
        flat.code.steps.push(HazardOp::End);
        flat.homes();
        flat.code.numbers(&flat.wanted);
        let conditions = conditions(kernel);
        flat.code.given = super::witness::wanted(&flat.code, flat.wanted.iter().copied().chain(conditions));
        flat.code
    }
}

/// Labels that jumps go to.
pub(super) struct Target {
    label: Label,
    /// The loop, or how many loops are around the scope.
    loop_id: Option<usize>,
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

pub(super) struct Flat<'k> {
    pub(super) code: HazardProgram<'k>,
    /// The first value that is read from a tensor or a tile.
    pub(super) readers: FxHashMap<(Option<TensorId>, Option<Tile>), Value>,
    /// The first of the values that are computed alike.
    pub(super) same: FxHashMap<(Def, Ty), Value>,
    /// The first that is read from one place of a tensor that nothing writes.
    pub(super) loads: FxHashMap<(TensorId, Value), Value>,
    /// Tensors that nothing writes.
    pub(super) fixed: FxHashSet<TensorId>,
    pub(super) drivers: FxHashMap<Label, Driver>,
    pub(super) wanted: FxHashSet<Value>,
    pub(super) vars: FxHashSet<Var>,
    pub(super) around: Vec<usize>,
    pub(super) labels: Vec<Target>,
    pub(super) path: Path,
    pub(super) role: Option<RoleId>,
}

impl<'k> Flat<'k> {
    fn push(&mut self, step: HazardOp) -> usize {
        self.code.steps.push(step);
        self.code.steps.len() - 1
    }

    fn site(&mut self, stmt: &'k Stmt, touches: Vec<StatementAccess<'k>>) -> usize {
        let site = Site {
            stmt,
            path: self.path.clone(),
            role: self.role,
            pipe: pipe_of_op(self.code.kernel, &stmt.op),
            touches,
            loops: self.around.clone(),
        };
        self.code.sites.push(site);
        self.code.sites.len() - 1
    }

    fn region(&mut self, region: &'k Region, which: usize) {
        for (n, stmt) in region.iter().enumerate() {
            self.path.push((which, n));
            self.stmt(stmt);
            self.path.pop();
        }
    }

    fn stmt(&mut self, stmt: &'k Stmt) {
        if let (Some(dst), Some(&l)) = (stmt.op.def(), self.around.last()) {
            self.code.home.insert(dst, l);
        }
        let touches = touches(stmt, &self.code.used);
        if !touches.is_empty() {
            let site = self.site(stmt, touches);
            self.push(HazardOp::Access(site));
        }
        if let Some(dst) = stmt.op.def()
            && let Def::Slot(slot) = self.code.defs[dst]
            && self.wanted.contains(&dst)
        {
            match &stmt.op {
                Op::Get { var, .. } => self.push(HazardOp::Get(slot, *var)),
                _ => self.push(HazardOp::Unknown(slot, unsigned(self.code.kernel.values[dst].ty))),
            };
        }
        match &stmt.op {
            Op::Set { var, value } if self.vars.contains(var) => {
                self.push(HazardOp::Set(*var, *value));
            }
            Op::Assign { tile, element, addr } => {
                self.push(HazardOp::Bind(*tile, *element, *addr));
            }
            Op::Sync(sync) => {
                let site = self.site(stmt, Vec::new());
                self.push(HazardOp::Sync(site, *sync));
            }
            Op::Check { cond, .. } if self.decided_by_wanted(*cond) => {
                self.push(HazardOp::Holds(*cond));
            }
            Op::For(f) => {
                let counted = Some(Counted { index: f.index, lo: Some(f.lo), hi: f.hi, var: None });
                let Def::Slot(slot) = self.code.defs[f.index] else { return };
                let start = self.code.steps.len();
                self.repeat(f.label, counted, slot, |flat, id| {
                    flat.push(HazardOp::Head(id));
                    flat.region(&f.body, 0);
                });
                // It ends, and nothing in it matters: how often it runs is not asked.
                if matches!(
                    self.code.steps[start..],
                    [HazardOp::Enter(_), HazardOp::Head(_), HazardOp::Next(_), HazardOp::Leave(_)]
                ) {
                    self.code.steps.truncate(start);
                }
            }
            Op::While(w) => {
                let slot = self.code.slots.len();
                self.code.slots.push(None);
                let driver = self.drivers.get(&w.label);
                let counted = driver.map(|d| Counted { index: d.index, lo: None, hi: d.hi, var: Some(d.var) });
                self.repeat(w.label, counted, slot, |flat, id| {
                    flat.push(HazardOp::Head(id));
                    flat.region(&w.head, 0);
                    let branch = flat.push(HazardOp::Branch(w.cond, usize::MAX));
                    flat.labels.last_mut().expect("the loop's own").breaks.push(branch);
                    flat.region(&w.body, 1);
                });
            }
            Op::If(i) => self.branch(i),
            Op::Scope(s) => {
                let role = self.role;
                self.role = s.role.or(role);
                self.labels.push(Target { label: s.label, loop_id: None, breaks: Vec::new(), continues: Vec::new() });
                self.region(&s.body, 0);
                self.role = role;
                let target = self.labels.pop().expect("pushed above");
                // Leaving from inside of a loop ends the loop.
                let here = self.push(HazardOp::Join);
                self.patch(&target.breaks, here);
            }
            Op::Break(label) | Op::Leave(label) => {
                self.close(*label, false);
                let at = self.push(HazardOp::Jump(usize::MAX));
                if let Some(t) = self.labels.iter_mut().rev().find(|t| t.label == *label) {
                    t.breaks.push(at);
                }
            }
            Op::Continue(label) => {
                self.close(*label, true);
                let at = self.push(HazardOp::Jump(usize::MAX));
                if let Some(t) = self.labels.iter_mut().rev().find(|t| t.label == *label) {
                    t.continues.push(at);
                }
            }
            _ => {}
        }
    }

    /// The loops that a jump to `label` leaves, innermost first. The loop of the label itself is left where it arrives.
    fn close(&mut self, label: Label, _again: bool) {
        let Some(at) = self.labels.iter().rposition(|t| t.label == label) else { return };
        let inner: Vec<usize> = self.labels[at + 1..].iter().rev().filter_map(|t| t.loop_id).collect();
        for l in inner {
            self.push(HazardOp::Leave(l));
        }
    }

    fn branch(&mut self, i: &'k ptoc_ir::tile::If) {
        let start = self.push(HazardOp::Branch(i.cond, usize::MAX));
        self.region(&i.then, 0);
        if self.code.steps.len() == start + 1 && i.els.is_empty() {
            // Nothing in it matters.
            self.code.steps.pop();
            return;
        }
        let over = self.push(HazardOp::Jump(usize::MAX));
        let els = self.code.steps.len();
        self.code.steps[start] = HazardOp::Branch(i.cond, els);
        self.region(&i.els, 1);
        if els == start + 2 && self.code.steps.len() == els {
            self.code.steps.truncate(start);
            return;
        }
        let end = self.push(HazardOp::Join);
        self.patch(&[over], end);
    }

    fn repeat(&mut self, label: Label, counted: Option<Counted>, slot: usize, inside: impl FnOnce(&mut Self, usize)) {
        let id = self.code.loops.len();
        if let Some(counted) = counted {
            self.code.home.insert(counted.index, id);
        }
        self.code.loops.push(Loop { counted, slot, end: 0, head: 0, leave: 0, period: 1, stepwise: false });
        self.labels.push(Target { label, loop_id: Some(id), breaks: Vec::new(), continues: Vec::new() });
        self.around.push(id);
        self.push(HazardOp::Enter(id));
        self.code.loops[id].head = self.code.steps.len();
        inside(self, id);
        let next = self.push(HazardOp::Next(id));
        let leave = self.push(HazardOp::Leave(id));
        self.around.pop();
        let target = self.labels.pop().expect("pushed above");
        self.patch(&target.breaks, leave);
        self.patch(&target.continues, next);
        let end = self.code.loops.len();
        let this = &mut self.code.loops[id];
        (this.end, this.leave) = (end, leave);
    }

    fn patch(&mut self, from: &[usize], to: usize) {
        for &at in from {
            match &mut self.code.steps[at] {
                HazardOp::Jump(target) | HazardOp::Branch(_, target) => *target = to,
                _ => {}
            }
        }
    }
}
