//! A launch in numbers, as far as numbers are known without data: a witness of what goes wrong.
//!
//! The blocks are gone through one after the other, and what each does to elements of tensors is noted as the
//! interpreter notes it. What depends on data is not known; what is done under such a condition, or after one, may be
//! done and is no witness.

mod touch;

use super::accesses::{AccessKind, is_watched, leaves, views};
use super::budget::Steps;
use cranelift_entity::EntityRef as _;
use ptoc_diagnostics::Span;
use ptoc_ir::scalar;
use ptoc_ir::tile::{For, If, Kernel, Label, Op, Region, ScalarParam, Stmt, Stored, TensorId, Ty, Value, While, jumps};
use rustc_hash::{FxHashMap, FxHashSet};
use touch::on;

/// Numbers of a launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::blocks) struct Sizes {
    /// Those of the dimensions.
    pub(in crate::blocks) dims: Vec<i64>,
    /// Bits of the scalar arguments; `None`: the default.
    pub(in crate::blocks) scalars: Vec<Option<u64>>,
}

/// One use of an element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::blocks) struct Use {
    pub(in crate::blocks) kind: AccessKind,
    pub(in crate::blocks) span: Span,
    /// Indices of the grid.
    pub(in crate::blocks) block: Vec<i64>,
}

/// Two uses of one element that do not go together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::blocks) struct Clash {
    pub(in crate::blocks) tensor: TensorId,
    /// Its index in each dimension.
    pub(in crate::blocks) element: Vec<i64>,
    pub(in crate::blocks) first: Use,
    pub(in crate::blocks) second: Use,
}

/// Two elements of a copy that meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::blocks) struct Meeting {
    pub(in crate::blocks) span: Span,
    /// The element in words.
    pub(in crate::blocks) element: String,
    /// It is written twice; if not, it is read too.
    pub(in crate::blocks) twice: bool,
    pub(in crate::blocks) block: Vec<i64>,
}

/// Elements that nothing writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::blocks) struct Hole {
    pub(in crate::blocks) tensor: TensorId,
    pub(in crate::blocks) count: u64,
    /// Of so many.
    pub(in crate::blocks) all: u64,
    pub(in crate::blocks) first: Vec<i64>,
}

/// What a launch does.
#[derive(Clone, Debug, Default)]
pub(in crate::blocks) struct TrialOutcome {
    /// It went to its end, all numbers known.
    pub(in crate::blocks) whole: bool,
    pub(in crate::blocks) clashes: Vec<Clash>,
    pub(in crate::blocks) meetings: Vec<Meeting>,
    pub(in crate::blocks) holes: Vec<Hole>,
    /// Something that depends on data touched these, or may have.
    pub(in crate::blocks) vague: FxHashSet<TensorId>,
    /// The extents of the grid.
    pub(in crate::blocks) grid: Vec<i64>,
}

impl TrialOutcome {
    /// Whether all that the launch does to the tensor was seen.
    pub(in crate::blocks) fn sees(&self, tensor: TensorId) -> bool {
        self.whole && !self.vague.contains(&tensor)
    }
}

/// Why it does not go on.
enum Stop {
    /// A check fails: there is no such launch, or it ends there.
    Trap,
    /// It takes too long.
    Long,
    Break(Label),
    Continue(Label),
    Leave(Label),
}

type TrialResult = Result<(), Stop>;

/// An affine function of a point: start and strides.
type AffineForm = (i64, Vec<i64>);

/// Iterations of a `while`.
const TURNS: u32 = 100_000;
/// Elements of all tensors together that are marked, and how many of them are made in a step.
const ELEMENTS: i64 = 1 << 22;
const MADE: u64 = 16;

/// Who used an element: numbers of uses plus 1.
#[derive(Clone, Copy, Default)]
struct Users {
    writer: u32,
    reader: u32,
    atomic: u32,
}

struct Tensor {
    shape: Vec<i64>,
    /// Where the elements of an array are that does not fill it row by row.
    members: Option<Vec<(Vec<i64>, i64)>>,
    users: Vec<Users>,
    /// Written, perhaps.
    covered: Vec<bool>,
    anywhere: bool,
    /// Two blocks have met in it.
    raced: bool,
}

impl Tensor {
    /// Of an element: its index in each dimension.
    fn coordinates(&self, at: i64) -> Vec<i64> {
        let member = self.members.as_ref().and_then(|all| all.iter().find(|(_, n)| *n == at));
        member.map_or_else(|| coordinates(&self.shape, at), |(point, _)| point.clone())
    }
}

struct Trial<'k, 'b> {
    kernel: &'k Kernel,
    budget: &'b Steps<'b>,
    values: Vec<Option<u64>>,
    vars: Vec<Option<u64>>,
    tensors: FxHashMap<TensorId, Tensor>,
    uses: Vec<Use>,
    known_uses: FxHashMap<(AccessKind, Span), u32>,
    /// Uses of blocks before this one.
    earlier: u32,
    block: Vec<i64>,
    /// Nothing that data decide has been decided so far in this block.
    sure: bool,
    /// A jump that data decide has not been made, as if it had not come.
    jumped: bool,
    out: TrialOutcome,
}

/// The sizes with dimensions that equations of `where` give in place of their own.
pub(in crate::blocks) fn adjusted(kernel: &Kernel, mut sizes: Sizes, budget: &Steps<'_>) -> Sizes {
    let wanted =
        kernel.prologue.iter().filter_map(|s| if let Op::Check { cond, .. } = s.op { Some(cond) } else { None });
    let wanted: FxHashSet<Value> = wanted.collect();
    for _ in 0..2 {
        if !budget.spend(kernel.prologue.len() as u64) {
            break;
        }
        let mut trial = Trial::new(kernel, budget);
        trial.arguments(&sizes);
        for stmt in &kernel.prologue {
            if let Some(dst) = stmt.op.def() {
                let bits = trial.pure(&stmt.op);
                trial.set(dst, bits);
            }
        }
        let mut changed = false;
        for equation in &kernel.prologue {
            let Op::Compare { dst, op: ptoc_isa::CmpOp::Eq, a, b } = equation.op else { continue };
            let wanted = wanted.contains(&dst);
            for (x, y) in [(a, b), (b, a)] {
                let dim = kernel.dims.values().position(|d| d.value == x);
                if let (Some(dim), Some(n)) = (dim, trial.index(y))
                    && sizes.dims[dim] != n
                    && n >= 0
                    && wanted
                    && !changed
                {
                    sizes.dims[dim] = n;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    sizes
}

/// Launches the kernel; `None`: there is no such launch.
pub(in crate::blocks) fn run(kernel: &Kernel, sizes: &Sizes, budget: &Steps<'_>) -> Option<TrialOutcome> {
    let mut trial = launched(kernel, sizes, budget)?;
    if trial.out.whole {
        trial.holes();
    }
    Some(trial.out)
}

/// For each tensor that blocks share: which elements a launch writes whatever the data are. What an array has no
/// element for counts as written. `None`: that is not known.
pub(in crate::blocks) fn written(
    kernel: &Kernel,
    sizes: &Sizes,
    budget: &Steps<'_>,
) -> Option<FxHashMap<TensorId, Vec<bool>>> {
    let trial = launched(kernel, sizes, budget).filter(|t| t.out.whole)?;
    let marks = |t: &Tensor| {
        let mut marks: Vec<bool> = t.users.iter().map(|u| u.writer != 0).collect();
        if let Some(members) = &t.members {
            let of: FxHashSet<i64> = members.iter().map(|(_, n)| *n).collect();
            marks.iter_mut().enumerate().for_each(|(n, m)| *m |= !of.contains(&(n as i64)));
        }
        marks
    };
    Some(trial.tensors.iter().map(|(id, t)| (*id, marks(t))).collect())
}

fn launched<'k, 'b>(kernel: &'k Kernel, sizes: &Sizes, budget: &'b Steps<'b>) -> Option<Trial<'k, 'b>> {
    let mut trial = Trial::new(kernel, budget);
    let defaults = trial.arguments(sizes);
    // A default may be computed in the prologue, and be used there.
    for _ in 0..=usize::from(!defaults.is_empty()) {
        match trial.region(&kernel.prologue) {
            Ok(()) => {}
            Err(Stop::Trap) => return None,
            Err(_) => return Some(trial),
        }
        for param in &defaults {
            let value = param.default.and_then(|d| trial.get(d));
            trial.set(param.value, value);
        }
    }
    let mut room = ELEMENTS;
    for (id, data) in kernel.tensors.iter().filter(|(id, _)| is_watched(kernel, *id)) {
        let shape: Option<Vec<i64>> = data.shape.iter().map(|&v| trial.index(v)).collect();
        let shape = shape?;
        let len = shape.iter().try_fold(1i64, |n, &e| n.checked_mul(e)).filter(|n| (0..=room).contains(n));
        if shape.iter().any(|&e| e < 0) {
            return None;
        }
        let Some(len) = len else { return Some(trial) };
        room -= len;
        if !budget.spend(1 + len as u64 / MADE) {
            return Some(trial);
        }
        let members = match &data.stored {
            Some(stored) => match trial.members(stored) {
                Ok(Some(members)) => Some(members),
                Ok(None) => return None,
                Err(_) => return Some(trial),
            },
            None => None,
        };
        let tensor = Tensor {
            shape,
            members,
            users: vec![Users::default(); len as usize],
            covered: vec![false; len as usize],
            anywhere: false,
            raced: false,
        };
        trial.tensors.insert(id, tensor);
    }
    let extents: Option<Vec<i64>> = kernel.grid.iter().map(|g| trial.index(g.extent)).collect();
    let Some(extents) = extents else { return Some(trial) };
    trial.out.grid = extents.clone();
    match trial.blocks(&extents) {
        Ok(()) => trial.out.whole = true,
        Err(Stop::Trap) => return None,
        Err(_) => {}
    }
    Some(trial)
}

impl<'k, 'b> Trial<'k, 'b> {
    fn new(kernel: &'k Kernel, budget: &'b Steps<'b>) -> Trial<'k, 'b> {
        Trial {
            kernel,
            budget,
            values: vec![None; kernel.values.len()],
            vars: vec![None; kernel.vars.len()],
            tensors: FxHashMap::default(),
            uses: Vec::new(),
            known_uses: FxHashMap::default(),
            earlier: 0,
            block: Vec::new(),
            sure: true,
            jumped: false,
            out: TrialOutcome::default(),
        }
    }

    /// Gives the arguments their numbers; returns those that have their default.
    fn arguments(&mut self, sizes: &Sizes) -> Vec<&'k ScalarParam> {
        for (dim, n) in self.kernel.dims.values().zip(&sizes.dims) {
            self.set(dim.value, Some(*n as u64));
        }
        let mut defaults = Vec::new();
        for (param, given) in self.kernel.scalars.iter().zip(&sizes.scalars) {
            self.set(param.value, *given);
            if given.is_none() {
                defaults.push(param);
            }
        }
        defaults
    }

    fn get(&self, v: Value) -> Option<u64> {
        self.values[v.index()]
    }

    fn set(&mut self, v: Value, bits: Option<u64>) {
        self.values[v.index()] = bits;
    }

    fn index(&self, v: Value) -> Option<i64> {
        self.get(v).map(|bits| bits as i64)
    }

    /// Steps beyond one that a block's indices take, which most grids have few of.
    fn dims(&self) -> u64 {
        self.block.len() as u64 / 8
    }

    fn spend(&self, n: u64) -> TrialResult {
        if self.budget.spend(n) { Ok(()) } else { Err(Stop::Long) }
    }

    /// The elements of an array by their index in each leaf of its layout; nothing if no launch may have such a layout:
    /// one with a stride that is negative, or two elements in one place.
    #[allow(clippy::type_complexity)]
    fn members(&self, stored: &Stored) -> Result<Option<Vec<(Vec<i64>, i64)>>, Stop> {
        let mut out = Vec::new();
        let (Some(extents), Some(at)) = (self.extents(&stored.extents), self.line(&stored.at)) else {
            return Err(Stop::Long);
        };
        if at.1.iter().any(|s| *s < 0) {
            return Ok(None);
        }
        let mut places = FxHashSet::default();
        each(&extents, &mut |point| {
            let n = on(&at, point).ok_or(Stop::Long)?;
            places.insert(n);
            out.push((point.to_vec(), stored.swizzle.map_or(n, |s| s.apply(n))));
            self.spend(1)
        })?;
        Ok((places.len() == out.len()).then_some(out))
    }

    fn blocks(&mut self, extents: &[i64]) -> TrialResult {
        if extents.iter().any(|&e| e <= 0) {
            return Ok(());
        }
        self.block = vec![0; extents.len()];
        loop {
            for (dim, &at) in self.kernel.grid.iter().zip(&self.block.clone()) {
                self.set(dim.index, Some(at as u64));
            }
            self.spend(1 + self.dims())?;
            (self.sure, self.jumped) = (true, false);
            self.known_uses.clear();
            self.earlier = self.uses.len() as u32;
            let kernel = self.kernel;
            self.region(&kernel.body)?;
            let mut d = extents.len();
            loop {
                let Some(next) = d.checked_sub(1) else { return Ok(()) };
                d = next;
                self.block[d] += 1;
                if self.block[d] < extents[d] {
                    break;
                }
                self.block[d] = 0;
            }
        }
    }

    // ---- statements ----------------------------------------------------------------------------------------------

    fn region(&mut self, region: &'k Region) -> TrialResult {
        region.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &'k Stmt) -> TrialResult {
        self.spend(1)?;
        match &stmt.op {
            Op::Set { var, value } => {
                let new = self.get(*value);
                let old = &mut self.vars[var.index()];
                // Perhaps control does not come here.
                *old = if self.jumped && *old != new { None } else { new };
                Ok(())
            }
            Op::Get { dst, var } => {
                self.set(*dst, self.vars[var.index()]);
                Ok(())
            }
            Op::Load { dst, tensor, offset } => {
                self.set(*dst, None);
                self.element(*tensor, AccessKind::Read, *offset, stmt.span)
            }
            Op::Store { tensor, offset, .. } => self.element(*tensor, AccessKind::Write, *offset, stmt.span),
            Op::Atomic { dst, tensor, offset, .. } => {
                self.set(*dst, None);
                self.element(*tensor, AccessKind::Atomic, *offset, stmt.span)
            }
            Op::Inst(inst) => {
                for (view, kind, whole) in views(inst) {
                    if whole {
                        self.window(view, kind, stmt.span)?;
                    } else {
                        self.vague(view.tensor, kind);
                    }
                }
                Ok(())
            }
            Op::Copy(copy) => self.copy(copy, stmt.span),
            Op::Mma(mma) => self.mma(mma, stmt.span),
            Op::Check { cond, .. } => match self.get(*cond) {
                Some(0) if self.sure => Err(Stop::Trap),
                _ => Ok(()),
            },
            Op::For(f) => self.counted(f),
            Op::If(i) => self.branch(i),
            Op::While(w) => self.turns(w),
            Op::Scope(s) => match self.region(&s.body) {
                Err(Stop::Leave(l)) if l == s.label => Ok(()),
                other => other,
            },
            Op::Break(l) => self.jump(Stop::Break(*l)),
            Op::Continue(l) => self.jump(Stop::Continue(*l)),
            Op::Leave(l) => self.jump(Stop::Leave(*l)),
            op => {
                if let Some(dst) = op.def() {
                    let bits = self.pure(op);
                    self.set(dst, bits);
                }
                Ok(())
            }
        }
    }

    /// A jump that may not come is not made: what follows may be done.
    fn jump(&mut self, stop: Stop) -> TrialResult {
        if self.sure {
            return Err(stop);
        }
        self.jumped = true;
        Ok(())
    }

    fn pure(&self, op: &Op) -> Option<u64> {
        let ty = |v: Value| self.kernel.values[v].ty;
        match *op {
            Op::Const { value, .. } => Some(value.bits),
            Op::Unary { op, a, .. } => scalar::unary(op, ty(a), self.get(a)?),
            Op::Binary { op, a, b, .. } => {
                let (x, y) = (self.get(a), self.get(b));
                // One side may decide.
                let bool = ty(a) == Ty::BOOL;
                match (op, x, y) {
                    (ptoc_isa::BinOp::And, Some(0), _) | (ptoc_isa::BinOp::And, _, Some(0)) if bool => Some(0),
                    (ptoc_isa::BinOp::Or, Some(1), _) | (ptoc_isa::BinOp::Or, _, Some(1)) if bool => Some(1),
                    _ => scalar::binary(op, ty(a), x?, y?),
                }
            }
            Op::Compare { op, a, b, .. } => Some(u64::from(scalar::compare(op, ty(a), self.get(a)?, self.get(b)?))),
            Op::Select { cond, a, b, .. } => match self.get(cond)? {
                0 => self.get(b),
                _ => self.get(a),
            },
            Op::Convert { dst, a, round, saturate } => {
                Some(scalar::convert(ty(a), ty(dst), self.get(a)?, round, saturate))
            }
            Op::Bitcast { a, .. } => self.get(a),
            _ => None,
        }
    }

    fn branch(&mut self, i: &'k If) -> TrialResult {
        match self.get(i.cond) {
            Some(0) => self.region(&i.els),
            Some(_) => self.region(&i.then),
            None => {
                let jumps = jumps(&i.then) || jumps(&i.els);
                let outer = std::mem::replace(&mut self.sure, false);
                let before = self.vars.clone();
                self.region(&i.then)?;
                let then = std::mem::replace(&mut self.vars, before);
                self.region(&i.els)?;
                for (var, then) in self.vars.iter_mut().zip(then) {
                    if *var != then {
                        *var = None;
                    }
                }
                self.sure = outer && !jumps;
                Ok(())
            }
        }
    }

    fn counted(&mut self, f: &'k For) -> TrialResult {
        let (Some(lo), Some(hi)) = (self.index(f.lo), self.index(f.hi)) else {
            self.forget(&f.body);
            self.set(f.index, None);
            return self.perhaps(&f.body);
        };
        for i in lo..hi {
            self.set(f.index, Some(i as u64));
            match self.region(&f.body) {
                Err(Stop::Break(l)) if l == f.label => break,
                Err(Stop::Continue(l)) if l == f.label => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn turns(&mut self, w: &'k While) -> TrialResult {
        for _ in 0..TURNS {
            self.region(&w.head)?;
            match self.get(w.cond) {
                Some(0) => return Ok(()),
                Some(_) if self.sure || !leaves(&w.body, w.label) => {}
                // How often is not known: once, as if anything may be.
                _ => {
                    self.forget(&w.head);
                    self.forget(&w.body);
                    self.perhaps(&w.head)?;
                    return self.perhaps(&w.body);
                }
            }
            match self.region(&w.body) {
                Err(Stop::Break(l)) if l == w.label => return Ok(()),
                Err(Stop::Continue(l)) if l == w.label => {}
                other => other?,
            }
        }
        Err(Stop::Long)
    }

    /// What is done some times, or not at all.
    fn perhaps(&mut self, region: &'k Region) -> TrialResult {
        let jumps = jumps(region);
        let outer = std::mem::replace(&mut self.sure, false);
        self.region(region)?;
        self.forget(region);
        self.sure = outer && !jumps;
        Ok(())
    }

    /// Variables that the region sets are not known.
    fn forget(&mut self, region: &Region) {
        for stmt in region {
            if let Op::Set { var, .. } = stmt.op {
                self.vars[var.index()] = None;
            }
            stmt.op.regions().for_each(|r| self.forget(r));
        }
    }
}

/// `y[3, 4]`
pub(in crate::blocks) fn element_name(tensor: &str, at: &[i64]) -> String {
    let at: Vec<String> = at.iter().map(i64::to_string).collect();
    format!("`{tensor}[{}]`", at.join(", "))
}

/// Every index below the extents.
fn each(extents: &[i64], f: &mut dyn FnMut(&[i64]) -> TrialResult) -> TrialResult {
    if extents.iter().any(|&e| e <= 0) {
        return Ok(());
    }
    let mut point = vec![0; extents.len()];
    loop {
        f(&point)?;
        let mut d = extents.len();
        loop {
            let Some(next) = d.checked_sub(1) else { return Ok(()) };
            d = next;
            point[d] += 1;
            if point[d] < extents[d] {
                break;
            }
            point[d] = 0;
        }
    }
}

fn coordinates(shape: &[i64], at: i64) -> Vec<i64> {
    let mut rest = at;
    let mut out: Vec<i64> = shape
        .iter()
        .rev()
        .map(|&n| {
            let n = n.max(1);
            let x = rest % n;
            rest /= n;
            x
        })
        .collect();
    out.reverse();
    out
}
