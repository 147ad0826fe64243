//! The body of a kernel as steps with jumps, and the scalars that matter to the order of pipes.

use super::domain::{Num, gcd};
use super::touch::{Touch, What, touches};
use cranelift_entity::SecondaryMap;
use ptoc_ir::tile::{Kernel, Label, Op, Region, RoleId, Stmt, SyncOp, TensorId, Tile, Ty, Value, Var, pipe_of_op};
use ptoc_isa::{BinOp, CmpOp, Pipe, UnOp};
use rustc_hash::{FxHashMap, FxHashSet};

/// Numbers of comparisons up to this one are worth iterations of their own.
const SMALL: i64 = 16;
/// Periods above this one are not followed.
const LONGEST_PERIOD: i64 = 720;

/// Where a statement is: for each region on the way, which of its parent's (0 or 1), and the statement in it.
pub(super) type Path = Vec<(usize, usize)>;

/// One step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A scalar that is not known becomes one; it is at least 0 if so.
    Unknown(usize, bool),
    /// Reads a mutable scalar.
    Get(usize, Var),
    /// Writes it.
    Set(Var, Value),
    /// Binds an address to an element of a tile.
    Bind(Tile, Option<Value>, Value),
    /// A statement that touches memory.
    Access(usize),
    /// A statement that orders pipes.
    Sync(usize, SyncOp),
    /// It holds from here on.
    Holds(Value),
    /// Goes on if it holds, else there.
    Branch(Value, usize),
    Jump(usize),
    /// Ways meet here.
    Join,
    Enter(usize),
    /// Another iteration, or out to the step after `Next`.
    Head(usize),
    /// Counts, and back to the head.
    Next(usize),
    Leave(usize),
    End,
}

/// A loop.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    /// Counter, bounds; `None` for `while`.
    pub(super) counted: Option<(Value, Value, Value)>,
    /// Slot of the counter.
    pub(super) slot: usize,
    /// One past the last loop inside.
    pub(super) end: usize,
    /// First step of an iteration.
    pub(super) head: usize,
    /// The step that leaves.
    pub(super) leave: usize,
    /// Iterations after which everything is as before.
    pub(super) period: i64,
}

/// A statement that matters.
#[derive(Clone, Debug)]
pub(super) struct Site<'k> {
    pub(super) stmt: &'k Stmt,
    pub(super) path: Path,
    /// Who issues it.
    pub(super) role: Option<RoleId>,
    /// Where it runs; `None`: a barrier of all pipes.
    pub(super) pipe: Option<Pipe>,
    pub(super) touches: Vec<Touch<'k>>,
    /// The loops around, outermost first.
    pub(super) loops: Vec<usize>,
}

/// How a value comes about.
#[derive(Clone, Copy, Default, Debug)]
pub(super) enum Def {
    /// The block's own, and not known: an argument, a dimension, the block's number. At least 0 if so.
    Given(bool),
    Const(Num),
    Slot(usize),
    Unary(UnOp, Value),
    Binary(BinOp, Value, Value),
    Compare(CmpOp, Value, Value),
    Select(Value, Value, Value),
    Same(Value),
    /// Not followed.
    #[default]
    Vague,
}

/// A kernel to be walked through.
pub(super) struct Code<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) steps: Vec<Step>,
    pub(super) sites: Vec<Site<'k>>,
    pub(super) loops: Vec<Loop>,
    pub(super) defs: SecondaryMap<Value, Def>,
    /// The loop in which a value is defined.
    pub(super) home: FxHashMap<Value, usize>,
    /// The values that slots hold.
    pub(super) slots: Vec<Option<Value>>,
    /// Variables that count and nothing else, whatever the loop.
    pub(super) counting: FxHashSet<Var>,
    /// First and last iterations that are told apart.
    pub(super) told: i64,
    /// How often a value is used where it decides something.
    pub(super) uses: FxHashMap<Value, u32>,
    /// Of values that are read from one tensor or one tile the first: they may be the same number.
    pub(super) read: FxHashMap<Value, Value>,
}

impl<'k> Code<'k> {
    pub(super) fn new(kernel: &'k Kernel) -> Code<'k> {
        let mut flat = Flat {
            code: Code {
                kernel,
                steps: Vec::new(),
                sites: Vec::new(),
                loops: Vec::new(),
                defs: SecondaryMap::new(),
                home: FxHashMap::default(),
                slots: Vec::new(),
                counting: FxHashSet::default(),
                told: 1,
                uses: FxHashMap::default(),
                read: FxHashMap::default(),
            },
            readers: FxHashMap::default(),
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
        flat.define(&kernel.prologue);
        flat.define(&kernel.body);
        flat.want();
        flat.region(&kernel.body, 0);
        flat.code.steps.push(Step::End);
        flat.code.numbers(&flat.wanted);
        flat.code
    }

    /// Periods, and how many iterations are told apart.
    fn numbers(&mut self, wanted: &FxHashSet<Value>) {
        let mut moduli: Vec<i64> = Vec::new();
        let counts = self.kernel.events.values().map(|e| e.count).chain(self.kernel.tiles.values().map(|t| t.count));
        moduli.extend(counts.map(i64::from).filter(|n| (2..=SMALL).contains(n)));
        for &value in wanted {
            let small = |v: Value| match self.defs[v] {
                Def::Const(n) => n.constant().filter(|n| n.abs() <= SMALL),
                _ => None,
            };
            match self.defs[value] {
                Def::Binary(BinOp::Rem | BinOp::Div, a, b) if self.counts(a, 0) => {
                    moduli.extend(match self.defs[b] {
                        Def::Const(n) => n.constant().filter(|n| (2..=LONGEST_PERIOD).contains(n)),
                        _ => None,
                    });
                }
                Def::Binary(BinOp::And, a, b) => moduli
                    .extend([a, b].into_iter().filter_map(small).filter(|n| *n > 0 && (n + 1) & n == 0).map(|n| n + 1)),
                Def::Binary(BinOp::Add | BinOp::Sub, a, b) | Def::Compare(_, a, b)
                    if self.counts(a, 0) || self.counts(b, 0) =>
                {
                    for n in [a, b].into_iter().filter_map(small) {
                        self.told = self.told.max(n.abs() + 1);
                    }
                }
                _ => {}
            }
        }
        let mut period = 1;
        for m in moduli {
            let longer = period / gcd(period, m) * m;
            if longer <= LONGEST_PERIOD {
                period = longer;
            }
        }
        // The parity of a barrier turns at each round.
        if self.kernel.events.values().any(|e| matches!(e.kind, ptoc_ir::tile::EventKind::Barrier { .. })) {
            period = if period * 2 <= LONGEST_PERIOD { period * 2 } else { period };
        }
        self.loops.iter_mut().for_each(|l| l.period = period);
    }

    /// Is it the counter or the bound of a loop, or does it move along with one?
    fn counts(&self, v: Value, depth: u32) -> bool {
        let constant = matches!(self.defs[v], Def::Const(_));
        if !constant && self.loops.iter().filter_map(|l| l.counted).any(|(index, _, hi)| v == index || v == hi) {
            return true;
        }
        match self.defs[v] {
            Def::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div, a, b) if depth < 8 => {
                self.counts(a, depth + 1) || self.counts(b, depth + 1)
            }
            _ => false,
        }
    }

    /// Is the value defined in loop `l` or in one inside of it?
    pub(super) fn inside(&self, value: Value, l: usize) -> bool {
        self.home.get(&value).is_some_and(|&h| h >= l && h < self.loops[l].end)
    }
}

/// Labels that jumps go to.
struct Target {
    label: Label,
    /// The loop, or how many loops are around the scope.
    loop_id: Option<usize>,
    breaks: Vec<usize>,
    continues: Vec<usize>,
}

struct Flat<'k> {
    code: Code<'k>,
    /// The first value that is read from a tensor or a tile.
    readers: FxHashMap<(Option<TensorId>, Option<Tile>), Value>,
    wanted: FxHashSet<Value>,
    vars: FxHashSet<Var>,
    around: Vec<usize>,
    labels: Vec<Target>,
    path: Path,
    role: Option<RoleId>,
}

impl<'k> Flat<'k> {
    /// Notes how values come about.
    fn define(&mut self, region: &'k Region) {
        let ints = |kernel: &Kernel, v: Value| matches!(kernel.values[v].ty, Ty::Index | Ty::BOOL);
        for stmt in region {
            let kernel = self.code.kernel;
            if let Some(dst) = stmt.op.def() {
                self.code.defs[dst] = match &stmt.op {
                    Op::Const { value, .. } => match value.ty {
                        Ty::Index => Def::Const(Num::of(value.bits as i64)),
                        ty if ptoc_ir::scalar::is_int(ty) || ty == Ty::BOOL => {
                            let n = i64::try_from(ptoc_ir::scalar::to_int(ty, value.bits));
                            n.map_or(Def::Vague, |n| Def::Const(Num::of(n)))
                        }
                        _ => Def::Vague,
                    },
                    Op::Unary { op, a, .. } if ints(kernel, *a) => Def::Unary(*op, *a),
                    Op::Binary { op, a, b, .. } if ints(kernel, *a) => Def::Binary(*op, *a, *b),
                    Op::Compare { op, a, b, .. } if ptoc_ir::scalar::float(kernel.values[*a].ty).is_none() => {
                        Def::Compare(*op, *a, *b)
                    }
                    Op::Select { cond, a, b, .. } if ints(kernel, *a) => Def::Select(*cond, *a, *b),
                    Op::Convert { a, .. } if kernel.values[dst].ty == Ty::Index && narrow(kernel.values[*a].ty) => {
                        Def::Same(*a)
                    }
                    op if op.is_pure() => Def::Vague,
                    _ => {
                        self.code.slots.push(Some(dst));
                        Def::Slot(self.code.slots.len() - 1)
                    }
                };
            }
            let place = match &stmt.op {
                Op::Load { dst, tensor, .. } => Some((*dst, (Some(*tensor), None))),
                Op::TileGet { dst, tile, .. } => Some((*dst, (None, Some(tile.tile)))),
                _ => None,
            };
            if let Some((dst, place)) = place {
                let first = *self.readers.entry(place).or_insert(dst);
                self.code.read.insert(dst, first);
            }
            if let Op::For(f) = &stmt.op {
                self.code.slots.push(Some(f.index));
                self.code.defs[f.index] = Def::Slot(self.code.slots.len() - 1);
            }
            stmt.op.regions().for_each(|r| self.define(r));
        }
    }

    /// Which scalars decide something: who waits for whom, where an access is, which way control goes.
    fn want(&mut self) {
        let mut found: FxHashMap<Var, Vec<Value>> = FxHashMap::default();
        let mut gets: FxHashMap<Value, Var> = FxHashMap::default();
        let mut work = Vec::new();
        let mut roots = Vec::new();
        seeds(self.code.kernel, &self.code.kernel.body, &mut found, &mut gets, &mut roots);
        roots.iter().for_each(|v| *self.code.uses.entry(*v).or_default() += 1);
        work.extend(roots);
        while let Some(v) = work.pop() {
            if !self.wanted.insert(v) {
                continue;
            }
            let mut operands = Vec::new();
            self.operands(v, &mut operands);
            operands.iter().for_each(|v| *self.code.uses.entry(*v).or_default() += 1);
            work.extend(operands);
            if let Some(&var) = gets.get(&v)
                && self.vars.insert(var)
            {
                work.extend(found.get(&var).into_iter().flatten());
            }
        }
        for (&var, values) in &found {
            let counts = values.iter().all(|v| match self.code.defs[*v] {
                Def::Const(_) => true,
                Def::Binary(BinOp::Add | BinOp::Sub, a, b) => {
                    gets.get(&a) == Some(&var) && matches!(self.code.defs[b], Def::Const(_))
                }
                _ => false,
            });
            if counts && self.vars.contains(&var) {
                self.code.counting.insert(var);
            }
        }
    }

    fn operands(&self, v: Value, out: &mut Vec<Value>) {
        match self.code.defs[v] {
            Def::Unary(_, a) | Def::Same(a) => out.push(a),
            Def::Binary(_, a, b) | Def::Compare(_, a, b) => out.extend([a, b]),
            Def::Select(c, a, b) => out.extend([c, a, b]),
            Def::Given(_) | Def::Const(_) | Def::Slot(_) | Def::Vague => {}
        }
    }

    fn push(&mut self, step: Step) -> usize {
        self.code.steps.push(step);
        self.code.steps.len() - 1
    }

    fn site(&mut self, stmt: &'k Stmt, touches: Vec<Touch<'k>>) -> usize {
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
        let touches = touches(self.code.kernel, stmt);
        if !touches.is_empty() {
            let site = self.site(stmt, touches);
            self.push(Step::Access(site));
        }
        if let Some(dst) = stmt.op.def()
            && let Def::Slot(slot) = self.code.defs[dst]
            && self.wanted.contains(&dst)
        {
            match &stmt.op {
                Op::Get { var, .. } => self.push(Step::Get(slot, *var)),
                _ => self.push(Step::Unknown(slot, unsigned(self.code.kernel.values[dst].ty))),
            };
        }
        match &stmt.op {
            Op::Set { var, value } if self.vars.contains(var) => {
                self.push(Step::Set(*var, *value));
            }
            Op::Assign { tile, element, addr } => {
                self.push(Step::Bind(*tile, *element, *addr));
            }
            Op::Sync(sync) => {
                let site = self.site(stmt, Vec::new());
                self.push(Step::Sync(site, *sync));
            }
            Op::Check { cond, .. } if self.decided_by_wanted(*cond) => {
                self.push(Step::Holds(*cond));
            }
            Op::For(f) => {
                let counted = Some((f.index, f.lo, f.hi));
                let Def::Slot(slot) = self.code.defs[f.index] else { return };
                self.repeat(f.label, counted, slot, |flat, id| {
                    flat.push(Step::Head(id));
                    flat.region(&f.body, 0);
                });
            }
            Op::While(w) => {
                let slot = self.code.slots.len();
                self.code.slots.push(None);
                self.repeat(w.label, None, slot, |flat, id| {
                    flat.push(Step::Head(id));
                    flat.region(&w.head, 0);
                    let branch = flat.push(Step::Branch(w.cond, usize::MAX));
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
                let here = self.push(Step::Join);
                self.patch(&target.breaks, here);
            }
            Op::Break(label) | Op::Leave(label) => {
                self.close(*label, false);
                let at = self.push(Step::Jump(usize::MAX));
                if let Some(t) = self.labels.iter_mut().rev().find(|t| t.label == *label) {
                    t.breaks.push(at);
                }
            }
            Op::Continue(label) => {
                self.close(*label, true);
                let at = self.push(Step::Jump(usize::MAX));
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
            self.push(Step::Leave(l));
        }
    }

    fn decided_by_wanted(&self, cond: Value) -> bool {
        match self.code.defs[cond] {
            Def::Compare(_, a, b) => {
                [a, b].iter().any(|v| self.wanted.contains(v) && !matches!(self.code.defs[*v], Def::Const(_)))
            }
            _ => false,
        }
    }

    fn branch(&mut self, i: &'k ptoc_ir::tile::If) {
        let start = self.push(Step::Branch(i.cond, usize::MAX));
        self.region(&i.then, 0);
        if self.code.steps.len() == start + 1 && i.els.is_empty() {
            // Nothing in it matters.
            self.code.steps.pop();
            return;
        }
        let over = self.push(Step::Jump(usize::MAX));
        let els = self.code.steps.len();
        self.code.steps[start] = Step::Branch(i.cond, els);
        self.region(&i.els, 1);
        if els == start + 2 && self.code.steps.len() == els {
            self.code.steps.truncate(start);
            return;
        }
        let end = self.push(Step::Join);
        self.patch(&[over], end);
    }

    fn repeat(
        &mut self,
        label: Label,
        counted: Option<(Value, Value, Value)>,
        slot: usize,
        inside: impl FnOnce(&mut Self, usize),
    ) {
        let id = self.code.loops.len();
        if let Some((index, ..)) = counted {
            self.code.home.insert(index, id);
        }
        self.code.loops.push(Loop { counted, slot, end: 0, head: 0, leave: 0, period: 1 });
        self.labels.push(Target { label, loop_id: Some(id), breaks: Vec::new(), continues: Vec::new() });
        self.around.push(id);
        self.push(Step::Enter(id));
        self.code.loops[id].head = self.code.steps.len();
        inside(self, id);
        let next = self.push(Step::Next(id));
        let leave = self.push(Step::Leave(id));
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
                Step::Jump(target) | Step::Branch(_, target) => *target = to,
                _ => {}
            }
        }
    }
}

/// An integer type all of whose values are `index` values.
fn narrow(ty: Ty) -> bool {
    ptoc_ir::scalar::is_int(ty) && ptoc_ir::scalar::width(ty) <= 32 || ty == Ty::BOOL
}

fn unsigned(ty: Ty) -> bool {
    ptoc_ir::scalar::is_int(ty) && !ptoc_ir::scalar::is_signed(ty)
}

/// The values that decide something, and what variables are set to.
fn seeds(
    kernel: &Kernel,
    region: &Region,
    found: &mut FxHashMap<Var, Vec<Value>>,
    gets: &mut FxHashMap<Value, Var>,
    out: &mut Vec<Value>,
) {
    for stmt in region {
        match &stmt.op {
            Op::Get { dst, var } => {
                gets.insert(*dst, *var);
            }
            Op::Set { var, value } => found.entry(*var).or_default().push(*value),
            Op::Sync(sync) => sync.for_each_value(&mut |v| out.push(v)),
            Op::Assign { element, addr, .. } => out.extend(element.iter().chain([addr])),
            Op::For(f) => out.extend([f.lo, f.hi]),
            Op::If(i) => out.push(i.cond),
            Op::While(w) => out.push(w.cond),
            _ => {}
        }
        for touch in touches(kernel, stmt) {
            match touch.what {
                What::Tile(t) => {
                    out.extend(t.element);
                    out.extend(t.origin.iter().flat_map(|(r, c)| [*r, *c]));
                }
                What::View(_, v, _) => {
                    out.push(v.offset);
                    out.extend(&v.strides);
                }
                What::Element(_, offset) => out.push(offset),
                What::Tensor(_) => {}
            }
        }
        stmt.op.regions().for_each(|r| seeds(kernel, r, found, gets, out));
    }
}
