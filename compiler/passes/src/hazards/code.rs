//! The body of a kernel as steps with jumps, and the scalars that matter to the order of pipes.

use super::domain::{Num, gcd};
use super::poly::{Poly, constant, poly};
use super::touch::{Kind, Touch, What, touches};
use super::whiles::{Driver, drivers};
use cranelift_entity::SecondaryMap;
use ptoc_ir::tile::{Kernel, Label, Op, Region, RoleId, Stmt, SyncOp, TensorId, Tile, Ty, Value, Var, pipe_of_op};
use ptoc_isa::{BinOp, CmpOp, Pipe, UnOp};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::rc::Rc;

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
    /// How it counts; `None`: a `while` that does not.
    pub(super) counted: Option<Counted>,
    /// Slot of the counter; of a `while` that of the counter's first value.
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

/// A loop that counts by one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// The counter.
    pub(super) index: Value,
    /// First; `None`: what the variable is.
    pub(super) lo: Option<Value>,
    /// One past the last.
    pub(super) hi: Value,
    /// The variable that counts, in a `while`.
    pub(super) var: Option<Var>,
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(super) enum Def {
    /// Not known, and always the same: an argument, a dimension, the block's number, an element of a tensor that the kernel
    /// only reads. At least 0 if so.
    Given(bool),
    Const(Num),
    Slot(usize),
    Unary(UnOp, Value),
    Binary(BinOp, Value, Value),
    Compare(CmpOp, Value, Value),
    /// The first is at most the second and so much more.
    AtMost(Value, Value, i64),
    Select(Value, Value, Value),
    Same(Value),
    /// A constant that is no integer.
    Bits(u64),
    /// A comparison of such values.
    Test(CmpOp, Value, Value),
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
    /// What a counter is less than: of loops and of the grid.
    pub(super) bounds: FxHashMap<Value, Value>,
    /// The innermost loop that a value changes with.
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
    /// Values that are read from variables.
    pub(super) variables: FxHashSet<Value>,
    /// Where the elements are that are read from tensors that nothing writes.
    pub(super) loaded: FxHashMap<Value, (TensorId, Value)>,
    /// What the launch gives, as far as it decides something.
    pub(super) given: Rc<[Value]>,
    /// What a value is computed from that is not followed.
    opaque: FxHashMap<Value, Vec<Value>>,
    sources: RefCell<FxHashMap<Value, Rc<[Value]>>>,
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
            fixed: kernel.tensors.keys().filter(|t| only_read(kernel, &kernel.body, *t)).collect(),
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
        flat.code.steps.push(Step::End);
        flat.homes();
        flat.code.numbers(&flat.wanted);
        let conditions = conditions(kernel);
        flat.code.given = super::witness::wanted(&flat.code, flat.wanted.iter().copied().chain(conditions));
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
                Def::AtMost(a, b, n) if n.abs() <= SMALL && (self.counts(a, 0) || self.counts(b, 0)) => {
                    self.told = self.told.max(n.abs() + 1);
                }
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
        if !constant && self.loops.iter().filter_map(|l| l.counted).any(|c| v == c.index || v == self.root(c.hi)) {
            return true;
        }
        match self.defs[v] {
            Def::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div, a, b) if depth < 8 => {
                self.counts(a, depth + 1) || self.counts(b, depth + 1)
            }
            _ => false,
        }
    }

    /// The value that stands for all that are the same.
    pub(super) fn root(&self, mut v: Value) -> Value {
        while let Def::Same(a) = self.defs[v] {
            v = a;
        }
        v
    }

    /// What a value comes from that is not computed. The number of a block is below the grid's extent, and so comes from
    /// that, too.
    pub(super) fn sources(&self, v: Value) -> Rc<[Value]> {
        if let Some(known) = self.sources.borrow().get(&v) {
            return known.clone();
        }
        let (mut out, mut open, mut seen) = (Vec::new(), vec![v], FxHashSet::default());
        while let Some(v) = open.pop() {
            let v = self.root(v);
            if !seen.insert(v) {
                continue;
            }
            match self.defs[v] {
                Def::Const(_) | Def::Bits(_) => {}
                Def::Given(_) => {
                    out.push(v);
                    open.extend(self.kernel.grid.iter().filter(|g| g.index == v).map(|g| g.extent));
                }
                Def::Slot(_) => out.push(v),
                Def::Vague => match self.opaque.get(&v) {
                    Some(operands) => open.extend(operands),
                    None => out.push(v),
                },
                Def::Unary(_, a) | Def::Same(a) => open.push(a),
                Def::Binary(_, a, b) | Def::Compare(_, a, b) | Def::AtMost(a, b, _) | Def::Test(_, a, b) => {
                    open.extend([a, b]);
                }
                Def::Select(c, a, b) => open.extend([c, a, b]),
            }
        }
        out.sort_unstable();
        let out: Rc<[Value]> = out.into();
        self.sources.borrow_mut().insert(v, out.clone());
        out
    }

    /// Does the value change with loop `l` or with one inside of it?
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
    /// The first of the values that are computed alike.
    same: FxHashMap<(Def, Ty), Value>,
    /// The first that is read from one place of a tensor that nothing writes.
    loads: FxHashMap<(TensorId, Value), Value>,
    /// Tensors that nothing writes.
    fixed: FxHashSet<TensorId>,
    drivers: FxHashMap<Label, Driver>,
    wanted: FxHashSet<Value>,
    vars: FxHashSet<Var>,
    around: Vec<usize>,
    labels: Vec<Target>,
    path: Path,
    role: Option<RoleId>,
}

impl<'k> Flat<'k> {
    /// Notes how values come about. Operands are the first values that are the same.
    fn define(&mut self, region: &'k Region) {
        for stmt in region {
            if let Some(dst) = stmt.op.def() {
                self.define_value(dst, &stmt.op);
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
            match &stmt.op {
                Op::For(f) => {
                    self.code.slots.push(Some(f.index));
                    self.code.defs[f.index] = Def::Slot(self.code.slots.len() - 1);
                    self.code.bounds.insert(f.index, f.hi);
                }
                Op::While(w) => {
                    if let Some(driver) = self.drivers.get(&w.label) {
                        self.code.bounds.insert(driver.index, driver.hi);
                        for &again in &driver.same {
                            self.code.defs[again] = Def::Same(driver.index);
                        }
                    }
                }
                _ => {}
            }
            stmt.op.regions().for_each(|r| self.define(r));
        }
    }

    fn define_value(&mut self, dst: Value, op: &Op) {
        if matches!(self.code.defs[dst], Def::Same(_)) {
            return;
        }
        let kernel = self.code.kernel;
        let ints = |v: Value| matches!(kernel.values[v].ty, Ty::Index | Ty::BOOL);
        let root = |v: Value| self.code.root(v);
        let def = match op {
            Op::Const { value, .. } => match value.ty {
                Ty::Index => Def::Const(Num::of(value.bits as i64)),
                ty if ptoc_ir::scalar::is_int(ty) || ty == Ty::BOOL => {
                    let n = i64::try_from(ptoc_ir::scalar::to_int(ty, value.bits));
                    n.map_or(Def::Vague, |n| Def::Const(Num::of(n)))
                }
                _ => Def::Bits(value.bits),
            },
            Op::Unary { op, a, .. } if ints(*a) => Def::Unary(*op, root(*a)),
            Op::Binary { op, a, b, .. } if ints(*a) => {
                let (a, b) = (root(*a), root(*b));
                let either = matches!(op, BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max);
                // The constant, or else what was computed later, is the second.
                let turn = either
                    && (matches!(self.code.defs[a], Def::Const(_)), a)
                        > (matches!(self.code.defs[b], Def::Const(_)), b);
                if turn { Def::Binary(*op, b, a) } else { Def::Binary(*op, a, b) }
            }
            Op::Compare { op, a, b, .. } if ptoc_ir::scalar::float(kernel.values[*a].ty).is_none() => {
                let (a, b) = (root(*a), root(*b));
                let last = (*op == CmpOp::Eq && kernel.values[a].ty == Ty::Index).then(|| last_tile(&self.code, a, b));
                last.flatten().unwrap_or(Def::Compare(*op, a, b))
            }
            Op::Compare { op, a, b, .. } => Def::Test(*op, root(*a), root(*b)),
            Op::Select { cond, a, b, .. } if ints(*a) => Def::Select(root(*cond), root(*a), root(*b)),
            Op::Convert { a, .. } if kernel.values[dst].ty == Ty::Index && narrow(kernel.values[*a].ty) => {
                Def::Same(root(*a))
            }
            Op::Load { tensor, offset, .. } if self.fixed.contains(tensor) => {
                let offset = root(*offset);
                match self.loads.get(&(*tensor, offset)) {
                    Some(&first) => Def::Same(first),
                    None => {
                        self.loads.insert((*tensor, offset), dst);
                        self.code.loaded.insert(dst, (*tensor, offset));
                        Def::Given(unsigned(kernel.values[dst].ty))
                    }
                }
            }
            op if op.is_pure() => {
                let mut operands = Vec::new();
                op.for_each_use(&mut |v| operands.push(v));
                self.code.opaque.insert(dst, operands);
                Def::Vague
            }
            op => {
                if matches!(op, Op::Get { .. }) {
                    self.code.variables.insert(dst);
                }
                self.code.slots.push(Some(dst));
                Def::Slot(self.code.slots.len() - 1)
            }
        };
        self.code.defs[dst] = match def {
            Def::Unary(..)
            | Def::Binary(..)
            | Def::Compare(..)
            | Def::AtMost(..)
            | Def::Select(..)
            | Def::Bits(_)
            | Def::Test(..) => match *self.same.entry((def, kernel.values[dst].ty)).or_insert(dst) {
                first if first == dst => def,
                first => Def::Same(first),
            },
            def => def,
        };
    }

    /// What is computed changes with the loops of what it is computed from, and not with those around it.
    fn homes(&mut self) {
        let mut homes = Homes {
            offsets: self.loads.iter().map(|((_, offset), v)| (*v, *offset)).collect(),
            done: FxHashMap::default(),
        };
        let all = self.code.kernel.values.keys();
        let found: Vec<_> = all.filter_map(|v| Some((v, homes.of(self, v)?))).collect();
        self.code.home = found.into_iter().collect();
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
            let counts = values.iter().all(|v| match self.code.defs[self.code.root(*v)] {
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
            Def::Binary(_, a, b) | Def::Compare(_, a, b) | Def::AtMost(a, b, _) | Def::Test(_, a, b) => {
                out.extend([a, b]);
            }
            Def::Select(c, a, b) => out.extend([c, a, b]),
            Def::Given(_) | Def::Const(_) | Def::Slot(_) | Def::Bits(_) => {}
            Def::Vague => out.extend(self.code.opaque.get(&v).into_iter().flatten()),
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
                let counted = Some(Counted { index: f.index, lo: Some(f.lo), hi: f.hi, var: None });
                let Def::Slot(slot) = self.code.defs[f.index] else { return };
                self.repeat(f.label, counted, slot, |flat, id| {
                    flat.push(Step::Head(id));
                    flat.region(&f.body, 0);
                });
            }
            Op::While(w) => {
                let slot = self.code.slots.len();
                self.code.slots.push(None);
                let driver = self.drivers.get(&w.label);
                let counted = driver.map(|d| Counted { index: d.index, lo: None, hi: d.hi, var: Some(d.var) });
                self.repeat(w.label, counted, slot, |flat, id| {
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
            Def::Same(a) | Def::Unary(UnOp::Not, a) => self.decided_by_wanted(a),
            Def::Binary(BinOp::And | BinOp::Or, a, b) => self.decided_by_wanted(a) || self.decided_by_wanted(b),
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

    fn repeat(&mut self, label: Label, counted: Option<Counted>, slot: usize, inside: impl FnOnce(&mut Self, usize)) {
        let id = self.code.loops.len();
        if let Some(counted) = counted {
            self.code.home.insert(counted.index, id);
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

/// The innermost loop of each value.
struct Homes {
    /// Where loads read that are always the same.
    offsets: FxHashMap<Value, Value>,
    done: FxHashMap<Value, Option<usize>>,
}

impl Homes {
    fn of(&mut self, flat: &Flat, v: Value) -> Option<usize> {
        if let Some(&l) = self.done.get(&v) {
            return l;
        }
        let mut operands = Vec::new();
        let l = match flat.code.defs[v] {
            Def::Slot(_) | Def::Vague => flat.code.home.get(&v).copied(),
            def => {
                match def {
                    Def::Given(_) => operands.extend(self.offsets.get(&v)),
                    _ => flat.operands(v, &mut operands),
                }
                // Of loops in one another the inner one has the greater number.
                operands.into_iter().filter_map(|v| self.of(flat, v)).max()
            }
        };
        self.done.insert(v, l);
        l
    }
}

/// An integer type all of whose values are `index` values.
fn narrow(ty: Ty) -> bool {
    ptoc_ir::scalar::is_int(ty) && ptoc_ir::scalar::width(ty) <= 32 || ty == Ty::BOOL
}

/// Does nothing in the region write the tensor?
fn only_read(kernel: &Kernel, region: &Region, tensor: TensorId) -> bool {
    region.iter().all(|stmt| {
        let mut touches = touches(kernel, stmt).into_iter();
        let written = touches.any(|t| {
            t.kind != Kind::Read
                && matches!(t.what, What::View(g, ..) | What::Element(g, _) | What::Tensor(g) if g == tensor)
        });
        !written && stmt.op.regions().all(|r| only_read(kernel, r, tensor))
    })
}

/// `j * k + min(d - j * k, k) == d`: is tile j the last one? As `j` is less than `bound = (d + k - 1) / k`, that is
/// `bound <= j + 1`, which says how far it is from the end of its loop.
fn last_tile(code: &Code, a: Value, b: Value) -> Option<Def> {
    let tile = |end: Value, all: Value| {
        let Def::Binary(BinOp::Add, p, q) = code.defs[end] else { return None };
        [(p, q), (q, p)].into_iter().find_map(|(from, length)| {
            let Def::Binary(BinOp::Min, rest, most) = code.defs[length] else { return None };
            let most = constant(code, most)?;
            // The end is the end of all if the rest is no more than a tile.
            let left = poly(code, rest, 0)?;
            let difference = poly(code, from, 0)?.add(left.clone())?.add(poly(code, all, 0)?.scaled(-1)?)?;
            if difference.constant() != Some(0) {
                return None;
            }
            left.terms.iter().find_map(|(symbols, k)| {
                let (&[counter], k) = (&symbols[..], -k) else { return None };
                let bound = code.root(*code.bounds.get(&counter).filter(|_| k > 0)?);
                let Def::Binary(BinOp::Div, sum, by) = code.defs[bound] else { return None };
                if constant(code, by) != Some(k) {
                    return None;
                }
                // left <= most, where left + k * counter + e = sum: sum <= k * counter + most + e.
                let whole = left.clone().add(Poly::symbol(counter).scaled(k)?)?;
                let e = poly(code, sum, 0)?.add(whole.scaled(-1)?)?.constant()?;
                let more = most.checked_add(e)?.checked_sub(k - 1)?;
                (more.rem_euclid(k) == 0).then(|| Def::AtMost(bound, counter, more / k))
            })
        })
    };
    tile(a, b).or_else(|| tile(b, a))
}

fn unsigned(ty: Ty) -> bool {
    ptoc_ir::scalar::is_int(ty) && !ptoc_ir::scalar::is_signed(ty)
}

/// The conditions of all checks.
fn conditions(kernel: &Kernel) -> Vec<Value> {
    fn collect(region: &Region, out: &mut Vec<Value>) {
        for stmt in region {
            if let Op::Check { cond, .. } = stmt.op {
                out.push(cond);
            }
            stmt.op.regions().for_each(|r| collect(r, out));
        }
    }
    let mut out = Vec::new();
    collect(&kernel.prologue, &mut out);
    collect(&kernel.body, &mut out);
    out
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
