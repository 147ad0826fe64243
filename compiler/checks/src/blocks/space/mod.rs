//! Numbers of a block as polynomials, and what is known of them.
//!
//! A *side* is one moment of one block: its indices of the grid and of the loops around are symbols (or given), and
//! every value that is computed there is a polynomial in symbols. What belongs to the launch (dimensions, arguments,
//! the prologue) is the same on all sides. Whatever is no sum or product (quotients, least and greatest values, data)
//! is a symbol with facts.

mod proof;
mod stride;

pub(in crate::blocks) use stride::Stride;

use super::accesses::Fact;
use super::budget::Steps;
use ptoc_ir::analysis::poly::{Definitions, Poly};
use ptoc_ir::tile::{Kernel, Op, Region, Ty, Value, Var};
use ptoc_isa::{BinOp, CmpOp, UnOp};
use rustc_hash::{FxHashMap, FxHashSet};

/// A number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(in crate::blocks) struct Sym(pub(super) u32);

/// A polynomial in them.
pub(in crate::blocks) type Form = Poly<Sym>;

/// A moment of a block; the first is the launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::blocks) struct BlockMoment(u32);

/// What belongs to the launch.
pub(in crate::blocks) const LAUNCH: BlockMoment = BlockMoment(0);

/// Deepest computation that is followed.
const DEPTH: u32 = 40;
/// Alternatives of a condition that are looked at.
const WAYS: usize = 4;
/// Quotients by the same unknown number that one is told apart from.
const APART: usize = 2;
/// Factors that a product has at most.
const FACTORS: usize = 4;

/// An equation or inequality.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::blocks) enum Claim {
    /// `form == 0`
    Zero(Form),
    /// `form >= 0`
    Least(Form),
}

impl Claim {
    pub(in crate::blocks) fn form(&self) -> &Form {
        match self {
            Claim::Zero(f) | Claim::Least(f) => f,
        }
    }

    fn map(&self, f: impl FnOnce(&Form) -> Option<Form>) -> Option<Claim> {
        Some(match self {
            Claim::Zero(x) => Claim::Zero(f(x)?),
            Claim::Least(x) => Claim::Least(f(x)?),
        })
    }
}

/// Conjunctions, of which one holds.
pub(in crate::blocks) type Ways = Vec<Vec<Claim>>;

/// The kernel, as all spaces see it.
pub(in crate::blocks) struct KernelIndex<'k> {
    pub(in crate::blocks) kernel: &'k Kernel,
    pub(in crate::blocks) defs: Definitions<'k>,
    /// What the launch computes, or could.
    launch: FxHashSet<Value>,
    /// Arguments that are no greater than what an array or a grid may have.
    bounded: FxHashSet<Value>,
    /// Variables that count up: first value and step.
    pub(in crate::blocks) counters: FxHashMap<Var, super::counters::Counter>,
}

impl<'k> KernelIndex<'k> {
    pub(in crate::blocks) fn new(kernel: &'k Kernel) -> KernelIndex<'k> {
        let mut launch: FxHashSet<Value> = kernel.dims.values().map(|d| d.value).collect();
        launch.extend(kernel.scalars.iter().flat_map(|s| [Some(s.value), s.default]).flatten());
        launch.extend(kernel.prologue.iter().filter_map(|s| s.op.def()));
        // What a block computes of that alone is the same in every block.
        fn repeated(region: &Region, out: &mut FxHashSet<Value>) {
            for stmt in region {
                if let Some(v) = stmt.op.def().filter(|_| stmt.op.is_pure()) {
                    let mut all = true;
                    stmt.op.for_each_use(&mut |u| all = all && out.contains(&u));
                    if all {
                        out.insert(v);
                    }
                }
                stmt.op.regions().for_each(|r| repeated(r, out));
            }
        }
        repeated(&kernel.body, &mut launch);
        let defs = Definitions::new(kernel);
        let counters = super::counters::find(kernel, &defs, &launch);
        let bounded = super::bounded::find(kernel, &defs);
        KernelIndex { kernel, defs, launch, bounded, counters }
    }

    pub(in crate::blocks) fn of_launch(&self, v: Value) -> bool {
        self.launch.contains(&v)
    }
}

/// Symbols with all that is known of them.
#[derive(Clone)]
pub(in crate::blocks) struct Space<'k, 'a> {
    pub(in crate::blocks) code: &'a KernelIndex<'k>,
    budget: &'a Steps<'a>,
    /// Symbols whose size is bounded by that of an array or a loop, so that products with them do not wrap.
    small: Vec<bool>,
    /// Symbols that have a small bound below, and above.
    bounds: FxHashMap<Sym, (bool, bool)>,
    /// Symbols that belong to the launch.
    launch: Vec<bool>,
    /// What is computed now belongs to it.
    launching: bool,
    sides: u32,
    values: FxHashMap<(BlockMoment, Value), Form>,
    /// Symbols that are the lesser or the greater of two.
    extremes: FxHashMap<Sym, [Form; 2]>,
    counts: FxHashMap<(BlockMoment, Var), Form>,
    turns: FxHashMap<(BlockMoment, Var), Form>,
    quotients: FxHashMap<(Form, Form), Form>,
    pub(in crate::blocks) facts: Vec<Claim>,
    either: Vec<[Vec<Claim>; 2]>,
    /// Symbols that are others by now.
    replaced: Vec<(Sym, Form)>,
}

impl Space<'_, '_> {
    /// Spends what a copy takes; false if that is not left.
    pub(in crate::blocks) fn pay(&self) -> bool {
        self.budget.spend(16 + (self.values.len() + self.facts.len() + self.small.len()) as u64 / 2)
    }
}

pub(in crate::blocks) fn number(n: i64) -> Form {
    Poly::constant(n)
}

impl<'k, 'a> Space<'k, 'a> {
    pub(in crate::blocks) fn new(code: &'a KernelIndex<'k>, budget: &'a Steps<'a>) -> Space<'k, 'a> {
        let mut space = Space {
            code,
            budget,
            small: Vec::new(),
            bounds: FxHashMap::default(),
            launch: Vec::new(),
            launching: true,
            sides: 1,
            values: FxHashMap::default(),
            extremes: FxHashMap::default(),
            counts: FxHashMap::default(),
            turns: FxHashMap::default(),
            quotients: FxHashMap::default(),
            facts: Vec::new(),
            either: Vec::new(),
            replaced: Vec::new(),
        };
        let kernel = code.kernel;
        budget.spend((kernel.dims.len() + kernel.scalars.len() + kernel.tensors.len() + kernel.grid.len()) as u64 / 2);
        for dim in code.kernel.dims.values() {
            let s = space.symbol(true);
            space.facts.push(Claim::Least(s.clone()));
            space.values.insert((LAUNCH, dim.value), s);
        }
        for param in &code.kernel.scalars {
            let s = space.symbol(code.bounded.contains(&param.value));
            space.values.insert((LAUNCH, param.value), s);
        }
        for tensor in code.kernel.tensors.values() {
            let strides = tensor.stored.iter().flat_map(|s| &s.at.strides);
            tensor.shape.iter().chain(strides).for_each(|v| space.counted_by(*v, FACTORS));
            for &extent in &tensor.shape {
                // An array is that long.
                let form = space.value(LAUNCH, extent);
                if form.number().is_none() {
                    space.facts.push(Claim::Least(form));
                }
            }
        }
        space.launching = false;
        space
    }

    /// What elements are counted by is one factor, or a product of such: a sum gets a symbol of its own.
    fn counted_by(&mut self, v: Value, factors: usize) {
        if factors > 1
            && let Some((a, b)) = self.code.defs.binary(v, BinOp::Mul)
        {
            [a, b].into_iter().for_each(|f| self.counted_by(f, factors - 1));
        }
        let form = self.value(LAUNCH, v);
        if form.terms().len() > 1 && self.is_small(&form) {
            let s = self.symbol(true);
            if let Some(difference) = s.plus(&form, -1) {
                self.facts.push(Claim::Zero(difference));
                self.values.insert((LAUNCH, v), s);
            }
        }
    }

    /// All that belongs to the launch, and what it checks.
    pub(in crate::blocks) fn launch(&mut self) {
        let mut all: Vec<Value> = self.code.launch.iter().copied().collect();
        all.sort_unstable();
        for v in all {
            if self.code.kernel.values[v].ty == Ty::Index {
                self.value(LAUNCH, v);
            }
        }
        for stmt in &self.code.kernel.prologue {
            if let Op::Check { cond, .. } = stmt.op {
                self.assume(LAUNCH, cond, true);
            }
        }
    }

    /// Whether the symbol is the same in all blocks.
    pub(in crate::blocks) fn is_launch(&self, s: Sym) -> bool {
        self.launch[s.0 as usize]
    }

    /// A new number.
    pub(in crate::blocks) fn symbol(&mut self, small: bool) -> Form {
        self.small.push(small);
        self.launch.push(self.launching);
        Poly::symbol(Sym(self.small.len() as u32 - 1))
    }

    pub(in crate::blocks) fn side(&mut self) -> BlockMoment {
        self.sides += 1;
        BlockMoment(self.sides - 1)
    }

    /// Says what a value is on a side.
    pub(in crate::blocks) fn set(&mut self, side: BlockMoment, v: Value, form: Form) {
        self.values.insert((side, v), form);
    }

    /// The indices of the grid on a side as new symbols, inside their extents.
    pub(in crate::blocks) fn block(&mut self, side: BlockMoment) -> Vec<Form> {
        let kernel = self.code.kernel;
        let mut out = Vec::new();
        for dim in &kernel.grid {
            let extent = self.value(LAUNCH, dim.extent);
            let index = if extent.number() == Some(1) { number(0) } else { self.symbol(true) };
            self.at_least(&index, &number(0));
            self.at_least(&extent, &index.plus(&number(1), 1).expect("small"));
            self.set(side, dim.index, index.clone());
            out.push(index);
        }
        out
    }

    /// All that holds at an access; the loops' indices are new symbols unless they are given.
    pub(in crate::blocks) fn enter(&mut self, side: BlockMoment, facts: &[Fact<'k>]) {
        self.budget.spend(facts.len() as u64);
        for fact in facts {
            match *fact {
                Fact::Loop(f) => {
                    let (lo, hi) = (self.value(side, f.lo), self.value(side, f.hi));
                    if !self.values.contains_key(&(side, f.index)) {
                        let once = hi.plus(&lo, -1).is_some_and(|n| n.number() == Some(1));
                        let index = if once { lo.clone() } else { self.symbol(true) };
                        self.set(side, f.index, index);
                    }
                    let index = self.value(side, f.index);
                    self.at_least(&index, &lo);
                    if let Some(next) = index.plus(&number(1), 1) {
                        self.at_least(&hi, &next);
                    }
                }
                Fact::Turn(w, inside) => {
                    if inside {
                        self.assume(side, w.cond, true);
                    }
                }
                Fact::Checked(cond) => self.assume(side, cond, true),
                Fact::Branch(i, then, _) => self.assume(side, i.cond, then),
            }
        }
    }

    fn at_least(&mut self, a: &Form, b: &Form) {
        if let Some(d) = a.plus(b, -1)
            && d.number().is_none_or(|n| n < 0)
        {
            self.facts.push(Claim::Least(d));
        }
    }

    pub(in crate::blocks) fn fact(&mut self, claim: Claim) {
        self.facts.push(claim);
    }

    // ---- values --------------------------------------------------------------------------------------------------

    /// What a value is on a side.
    pub(in crate::blocks) fn value(&mut self, side: BlockMoment, v: Value) -> Form {
        self.value_at(side, v, 0)
    }

    fn value_at(&mut self, side: BlockMoment, v: Value, depth: u32) -> Form {
        let home = if self.code.of_launch(v) { LAUNCH } else { side };
        if let Some(form) = self.values.get(&(home, v)) {
            return form.clone();
        }
        let outer = std::mem::replace(&mut self.launching, home == LAUNCH);
        let form = match depth < DEPTH {
            true => self.computed(home, v, depth + 1),
            false => None,
        };
        let form = form.unwrap_or_else(|| self.symbol(false));
        self.launching = outer;
        self.values.insert((home, v), form.clone());
        form
    }

    fn computed(&mut self, side: BlockMoment, v: Value, depth: u32) -> Option<Form> {
        if self.code.kernel.values[v].ty != Ty::Index {
            return None;
        }
        match *self.code.defs.of(v)? {
            Op::Const { value, .. } => value.as_index().map(number),
            Op::Unary { op: UnOp::Neg, a, .. } => number(0).plus(&self.value_at(side, a, depth), -1),
            Op::Binary { op, a, b, .. } => {
                let (x, y) = (self.value_at(side, a, depth), self.value_at(side, b, depth));
                self.binary(op, &x, &y)
            }
            Op::Select { cond, a, b, .. } => {
                let (x, y) = (self.value_at(side, a, depth), self.value_at(side, b, depth));
                let s = self.symbol(self.is_small(&x) && self.is_small(&y));
                let mut one = |form: &Form, holds| {
                    let mut ways = self.ways(side, cond, holds).filter(|w| w.len() == 1)?;
                    ways[0].push(Claim::Zero(s.plus(form, -1)?));
                    ways.pop()
                };
                let (then, els) = (one(&x, true), one(&y, false));
                let plain = |form: &Form| Some(vec![Claim::Zero(s.plus(form, -1)?)]);
                self.either.push([then.or_else(|| plain(&x))?, els.or_else(|| plain(&y))?]);
                Some(s)
            }
            Op::Convert { a, .. } if self.code.kernel.values[a].ty == Ty::Index => Some(self.value_at(side, a, depth)),
            // 32 bits times a stride are no more than 63.
            Op::Convert { a, .. } => {
                let narrow = matches!(self.code.kernel.values[a].ty, Ty::D(d) if !d.is_float() && d.size() <= 4);
                narrow.then(|| self.symbol(true))
            }
            Op::Get { var, .. } => self.counted(side, v, var, depth),
            _ => None,
        }
    }

    /// A variable that counts up: its first value and some steps.
    fn counted(&mut self, side: BlockMoment, get: Value, var: Var, depth: u32) -> Option<Form> {
        let counter = self.code.counters.get(&var).filter(|c| c.gets.contains(&get))?;
        if let Some(form) = self.counts.get(&(side, var)) {
            return Some(form.clone());
        }
        let (first, step) = (counter.first, counter.step);
        let (first, step) = (self.value_at(side, first, depth), self.value_at(side, step, depth));
        let turns = match self.turns.get(&(side, var)) {
            Some(turns) => turns.clone(),
            None => {
                let turns = self.symbol(true);
                self.facts.push(Claim::Least(turns.clone()));
                self.turns.insert((side, var), turns.clone());
                turns
            }
        };
        let form = first.plus(&step.times(&turns)?, 1)?;
        self.counts.insert((side, var), form.clone());
        Some(form)
    }

    /// Says in which iteration a variable is read.
    pub(in crate::blocks) fn count(&mut self, side: BlockMoment, var: Var, turns: Form) {
        self.turns.insert((side, var), turns);
    }

    /// The iterations in which variables are read on a side, where they are symbols.
    pub(in crate::blocks) fn turns(&self, side: BlockMoment) -> Vec<(Var, Sym)> {
        let own = self.turns.iter().filter(|((of, _), _)| *of == side);
        own.filter_map(|((_, var), form)| Some((*var, form.symbol_alone()?))).collect()
    }

    /// The number that a least or greatest value is compared with.
    pub(in crate::blocks) fn usual(&self, s: Sym) -> Option<Form> {
        self.extremes.get(&s)?.iter().find(|f| f.number().is_some()).cloned()
    }

    /// Quotients that are symbols, with what is divided.
    pub(in crate::blocks) fn divided_symbols(&self) -> impl Iterator<Item = (Sym, &(Form, Form))> {
        self.quotients.iter().filter_map(|(of, q)| Some((q.symbol_alone()?, of)))
    }

    /// Symbols there are.
    pub(in crate::blocks) fn symbols(&self) -> u32 {
        self.small.len() as u32
    }

    /// Symbols of which it is known that products with them do not wrap around.
    fn is_small(&self, form: &Form) -> bool {
        form.symbols().all(|s| self.small[s.0 as usize])
    }

    fn binary(&mut self, op: BinOp, x: &Form, y: &Form) -> Option<Form> {
        match op {
            BinOp::Add => x.plus(y, 1),
            BinOp::Sub => x.plus(y, -1),
            BinOp::Mul if self.is_small(x) && self.is_small(y) => self.product(x, y),
            BinOp::Div => self.quotient(x, y),
            BinOp::Rem => {
                let q = self.quotient(x, y)?;
                x.plus(&self.product(&q, y)?, -1)
            }
            BinOp::Shr => {
                let by = y.number().filter(|n| (0..62).contains(n))?;
                self.quotient(x, &number(1 << by))
            }
            BinOp::Shl => {
                let by = y.number().filter(|n| (0..40).contains(n))?;
                self.is_small(x).then(|| self.product(x, &number(1 << by)))?
            }
            BinOp::And => {
                let mask = y.number().or(x.number()).filter(|n| *n >= 0 && (n + 1) & n == 0)?;
                let x = if y.number().is_some() { x } else { y };
                let (one, by) = (x.clone(), number(mask + 1));
                let q = self.quotient(&one, &by)?;
                one.plus(&self.product(&q, &by)?, -1)
            }
            BinOp::Min | BinOp::Max => {
                let sign = if op == BinOp::Min { 1 } else { -1 };
                if let Some(d) = x.plus(y, -1)?.number() {
                    return Some(if d * sign <= 0 { x.clone() } else { y.clone() });
                }
                let m = self.symbol(self.is_small(x) && self.is_small(y));
                if let Some(s) = m.symbol_alone() {
                    self.extremes.insert(s, [x.clone(), y.clone()]);
                }
                let mut sides = Vec::new();
                for z in [x, y] {
                    let below = m.plus(z, -1)?;
                    let above = number(0).plus(&below, -1)?;
                    let (own, other) = if sign > 0 { (above, below) } else { (below, above) };
                    self.facts.push(Claim::Least(own));
                    sides.push(vec![Claim::Least(other)]);
                }
                let second = sides.pop()?;
                self.either.push([sides.pop()?, second]);
                Some(m)
            }
            _ => None,
        }
    }

    fn product(&self, x: &Form, y: &Form) -> Option<Form> {
        x.times(y).filter(|p| p.terms().iter().all(|t| t.0.len() <= FACTORS))
    }

    /// `x / y`, rounded down, for a `y` that is certainly positive.
    pub(in crate::blocks) fn quotient(&mut self, x: &Form, y: &Form) -> Option<Form> {
        if let Some(q) = self.quotients.get(&(x.clone(), y.clone())) {
            return Some(q.clone());
        }
        let positive = match y.number() {
            Some(n) => n > 0,
            None => self.is_positive(y),
        };
        if !positive {
            return None;
        }
        let q = match self.multiples(x, y) {
            // What is a multiple, and the quotient of the rest.
            Some((q, r)) if r.number() == Some(0) => q,
            Some((q, r)) if q.number() != Some(0) => q.plus(&self.quotient(&r, y)?, 1)?,
            _ if self.proves(&Claim::Least(x.clone())) && self.below(x, y) => number(0),
            _ => {
                let q = self.symbol(self.is_small(x) && self.is_small(y));
                let rest = x.plus(&self.product(&q, y)?, -1)?;
                let above = y.plus(&number(1), -1)?.plus(&rest, -1)?;
                self.facts.extend([Claim::Least(rest), Claim::Least(above)]);
                self.beside(x, y, &q);
                if self.proves(&Claim::Least(x.clone())) {
                    self.facts.push(Claim::Least(q.clone()));
                }
                q
            }
        };
        self.quotients.insert((x.clone(), y.clone()), q.clone());
        Some(q)
    }

    /// Quotients of numbers that differ by a constant differ by its quotient, or by one more.
    fn beside(&mut self, x: &Form, y: &Form, q: &Form) {
        let Some(n) = y.number() else { return self.apart(y, q) };
        let mut found = Vec::new();
        for ((other, by), p) in &self.quotients {
            let Some(d) = x.plus(other, -1).and_then(|d| d.number()).filter(|_| by == y) else { continue };
            let Some(more) = q.plus(p, -1).and_then(|m| m.plus(&number(d.div_euclid(n)), -1)) else { continue };
            found.extend(number(1).plus(&more, -1).map(Claim::Least));
            found.push(Claim::Least(more));
        }
        self.facts.extend(found);
    }

    /// Quotients by one number that is not known are the same, or differ by 1 at least, and what they stand for by it.
    fn apart(&mut self, y: &Form, q: &Form) {
        let others = self.quotients.iter().filter(|((_, by), _)| by == y).map(|(_, p)| p.clone());
        for p in others.take(APART).collect::<Vec<_>>() {
            for (more, less) in [(q, &p), (&p, q)] {
                let above = more.plus(less, -1).and_then(|d| d.plus(&number(1), -1));
                let (Some(above), Some(below)) = (above, less.plus(more, -1)) else { continue };
                let (Some(by), Some(no)) = (self.product(&above, y), self.product(&below, y)) else { continue };
                self.either.push([[above, by], [below, no]].map(|side| side.map(Claim::Least).to_vec()));
            }
        }
    }

    /// `x` as multiples of `y` and the rest.
    fn multiples(&self, x: &Form, y: &Form) -> Option<(Form, Form)> {
        Stride::of(y)?.split(x)
    }

    /// `a < b`
    pub(in crate::blocks) fn below(&mut self, a: &Form, b: &Form) -> bool {
        let claim = b.plus(a, -1).and_then(|d| d.plus(&number(1), -1));
        claim.is_some_and(|c| self.proves(&Claim::Least(c)))
    }

    /// A factor that is 0 makes all products with it 0.
    fn is_positive(&mut self, y: &Form) -> bool {
        let one = y.plus(&number(1), -1);
        if one.is_some_and(|one| self.proves(&Claim::Least(one))) {
            return true;
        }
        let symbols: Vec<Sym> = y.symbols().collect();
        let product = y.terms().len() == 1 && y.terms()[0].1 > 0;
        product
            && symbols.iter().all(|&s| {
                let alone = Poly::symbol(s);
                self.proves(&Claim::Least(alone)) && self.without(s)
            })
    }

    /// Whether the symbol is certainly not 0.
    fn without(&mut self, s: Sym) -> bool {
        self.replaced.push((s, number(0)));
        let refuted = self.refutes(&[Claim::Zero(Poly::symbol(s))]);
        self.replaced.pop();
        refuted
    }

    // ---- conditions ----------------------------------------------------------------------------------------------

    /// What it means that a condition holds, or does not.
    pub(in crate::blocks) fn ways(&mut self, side: BlockMoment, cond: Value, holds: bool) -> Option<Ways> {
        self.ways_at(side, cond, holds, 0)
    }

    fn ways_at(&mut self, side: BlockMoment, cond: Value, holds: bool, depth: u32) -> Option<Ways> {
        if depth > 8 {
            return None;
        }
        let ways = match *self.code.defs.of(cond)? {
            Op::Const { value, .. } => {
                if (value.bits != 0) == holds {
                    vec![Vec::new()]
                } else {
                    Vec::new()
                }
            }
            Op::Unary { op: UnOp::Not, a, .. } => self.ways_at(side, a, !holds, depth + 1)?,
            Op::Binary { op: op @ (BinOp::And | BinOp::Or), a, b, .. } => {
                let (x, y) = (self.ways_at(side, a, holds, depth + 1), self.ways_at(side, b, holds, depth + 1));
                if (op == BinOp::And) == holds {
                    // Both: what is not understood says nothing.
                    match (x, y) {
                        (Some(x), Some(y)) => {
                            x.iter().flat_map(|x| y.iter().map(move |y| [&x[..], y].concat())).collect()
                        }
                        (Some(one), None) | (None, Some(one)) => one,
                        (None, None) => return None,
                    }
                } else {
                    [x?, y?].concat()
                }
            }
            Op::Compare { op, a, b, .. } if self.code.kernel.values[a].ty == Ty::Index => {
                let (x, y) = (self.value(side, a), self.value(side, b));
                let (d, e) = (x.plus(&y, -1)?, y.plus(&x, -1)?);
                let op = if holds { op } else { op.opposite() };
                let above = |f: &Form| Some(Claim::Least(f.plus(&number(1), -1)?));
                match op {
                    CmpOp::Lt => vec![vec![above(&e)?]],
                    CmpOp::Le => vec![vec![Claim::Least(e)]],
                    CmpOp::Gt => vec![vec![above(&d)?]],
                    CmpOp::Ge => vec![vec![Claim::Least(d)]],
                    CmpOp::Eq => vec![vec![Claim::Zero(d)]],
                    CmpOp::Ne => vec![vec![above(&d)?], vec![above(&e)?]],
                }
            }
            _ => return None,
        };
        (ways.len() <= WAYS).then_some(ways)
    }

    /// Whether a condition is understood to the last part, so that its opposite holds where none of its ways does.
    pub(in crate::blocks) fn is_whole(&self, cond: Value) -> bool {
        match self.code.defs.of(cond) {
            Some(Op::Const { .. }) => true,
            Some(Op::Unary { op: UnOp::Not, a, .. }) => self.is_whole(*a),
            Some(Op::Binary { op: BinOp::And | BinOp::Or, a, b, .. }) => self.is_whole(*a) && self.is_whole(*b),
            Some(Op::Compare { a, .. }) => self.code.kernel.values[*a].ty == Ty::Index,
            _ => false,
        }
    }

    /// A symbol that has small bounds on both sides is small.
    fn bound(&mut self, claim: &Claim) {
        let mut open = claim.form().terms().iter().filter(|(f, _)| f.iter().any(|s| !self.small[s.0 as usize]));
        let (Some((factors, k)), None) = (open.next(), open.next()) else { return };
        let [s] = factors[..] else { return };
        let both = matches!(claim, Claim::Zero(_));
        if k.abs() == 1 {
            let (below, above) = self.bounds.entry(s).or_default();
            *below |= both || *k > 0;
            *above |= both || *k < 0;
            self.small[s.0 as usize] = *below && *above;
        }
    }

    pub(in crate::blocks) fn assume(&mut self, side: BlockMoment, cond: Value, holds: bool) {
        let Some(mut ways) = self.ways(side, cond, holds) else { return };
        match ways.len() {
            0 => self.facts.push(Claim::Least(number(-1))),
            1 => {
                let claims = ways.remove(0);
                claims.iter().for_each(|c| self.bound(c));
                self.facts.extend(claims);
            }
            2 => {
                let second = ways.pop().unwrap_or_default();
                self.either.push([ways.pop().unwrap_or_default(), second]);
            }
            _ => {}
        }
    }

    /// From here on a symbol is something else, in products too.
    pub(in crate::blocks) fn replace(&mut self, s: Sym, by: Form) {
        let by = self.current(&by).unwrap_or(by);
        self.replaced.push((s, by));
    }

    /// A form with what symbols are by now.
    pub(in crate::blocks) fn current(&self, form: &Form) -> Option<Form> {
        let mut out = form.clone();
        for _ in 0..8 {
            let Some((s, by)) = self.replaced.iter().find(|(s, _)| out.symbols().any(|x| x == *s)) else {
                return Some(out);
            };
            let mut sum = number(0);
            for (factors, k) in out.terms() {
                let rest: Vec<Sym> = factors.iter().copied().filter(|f| f != s).collect();
                let mut term = Poly::sum_of(vec![(rest.clone(), *k)])?;
                for _ in rest.len()..factors.len() {
                    term = self.product(&term, by)?;
                }
                sum = sum.plus(&term, 1)?;
            }
            out = sum;
        }
        let open = out.symbols().any(|x| self.replaced.iter().any(|(s, _)| *s == x));
        (!open).then_some(out)
    }
}
