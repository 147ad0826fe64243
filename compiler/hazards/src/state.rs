//! Abstract state: where a walk is, and what it knows of scalars there.

use super::code::{Def, HazardProgram};
use super::domain::{AffineValue, MAX};
use super::order::Order;
use super::relations::{Relations, leaves, related};
use super::witness::Concrete;
use cranelift_entity::EntityRef;
use ptoc_ir::tile::{Kernel, TensorId, Value};
use ptoc_isa::{BinOp, CmpOp, UnOp};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// How the iterations of a loop are walked through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LoopMode {
    /// Not in it.
    Out,
    /// One by one, from the first.
    First,
    /// One for all that are neither among the first nor the last.
    General,
    /// One by one, to the last.
    Last,
}

/// A moment.
#[derive(Clone, Debug)]
pub(super) struct HazardState {
    pub(super) step: usize,
    pub(super) slots: Vec<AffineValue>,
    pub(super) vars: Vec<AffineValue>,
    /// What this way through the program has assumed.
    pub(super) assumed: Vec<(Value, AffineValue)>,
    pub(super) modes: Vec<LoopMode>,
    /// Most periods of each loop.
    pub(super) periods: Vec<i64>,
    /// Addresses of tiles that have them at run time.
    pub(super) bound: Vec<AffineValue>,
    pub(super) order: Order,
    /// Numbers are given, and this is what is known beside them.
    pub(super) concrete: Option<Concrete>,
    /// With numbers, whether assumptions were made that may not hold together.
    pub(super) unsure: bool,
    /// Iterations of each loop so far. For messages; not part of what matters.
    pub(super) at: Rc<[i64]>,
    /// Variables at the first iteration that stands for others; see `general`.
    pub(super) before: FxHashMap<usize, Rc<Vec<AffineValue>>>,
}

impl HazardState {
    pub(super) fn new(code: &HazardProgram, order: Order) -> HazardState {
        let bound = code.kernel.tiles.values().map(|t| t.count as usize).sum();
        let loops = code.loops.len();
        HazardState {
            step: 0,
            slots: vec![AffineValue::TOP; code.slots.len()],
            vars: vec![AffineValue::TOP; code.kernel.vars.len()],
            assumed: Vec::new(),
            modes: vec![LoopMode::Out; loops],
            periods: vec![MAX; loops],
            bound: vec![AffineValue::TOP; bound],
            order,
            concrete: None,
            unsure: false,
            at: vec![0; loops].into(),
            before: FxHashMap::default(),
        }
    }

    /// What matters: equal ones go on alike.
    pub(super) fn key(&self) -> Box<[u64]> {
        let mut out = Vec::with_capacity(64);
        out.push((self.step as u64) << 1 | u64::from(self.unsure));
        let mut number = |n: &AffineValue| {
            if *n == AffineValue::TOP {
                out.push(u64::MAX);
            } else {
                out.extend(words(n));
            }
        };
        self.slots.iter().chain(&self.vars).chain(&self.bound).for_each(&mut number);
        let mut assumed: Vec<_> = self.assumed.iter().collect();
        assumed.sort_unstable_by_key(|a| a.0);
        for (v, n) in assumed {
            out.push(v.index() as u64);
            out.extend(words(n));
        }
        out.extend(self.modes.iter().map(|m| *m as u64));
        self.order.key(&mut out);
        self.concrete.iter().for_each(|c| c.key(&mut out));
        out.into_boxed_slice()
    }

    /// Roughly the words that it takes in memory.
    pub(super) fn words(&self) -> usize {
        let numbers = self.slots.len() + self.vars.len() + self.bound.len() + self.assumed.len();
        let order = 8 * self.order.records.len() + self.order.up.len() + self.order.barriers.len();
        let concrete = self.concrete.as_ref().map_or(0, Concrete::words);
        6 * numbers + order + 2 * self.modes.len() + concrete
    }

    fn all(&mut self) -> impl Iterator<Item = &mut AffineValue> {
        let assumed = self.assumed.iter_mut().map(|a| &mut a.1);
        self.slots.iter_mut().chain(&mut self.vars).chain(&mut self.bound).chain(assumed)
    }

    /// Another period of loop `l` has passed.
    pub(super) fn shift(&mut self, l: usize) {
        self.all().filter(|n| n.base as usize == l + 1).for_each(|n| *n = n.shifted());
    }

    /// Loop `l` has been through exactly `t` periods.
    pub(super) fn pin(&mut self, l: usize, t: i64) {
        let pinned = |n: &AffineValue| match n.coef.checked_mul(t) {
            Some(by) => AffineValue { base: 0, coef: 0, ..*n }.plus(by),
            None => AffineValue::TOP,
        };
        self.all().filter(|n| n.base as usize == l + 1).for_each(|n| *n = pinned(n));
    }

    /// What was defined in loop `l`, or inside of it, is gone.
    pub(super) fn forget(&mut self, code: &HazardProgram, l: usize) {
        let counter = code.loops[l].slot;
        for (slot, value) in code.slots.iter().enumerate() {
            if slot != counter && value.is_some_and(|v| code.inside(v, l)) {
                self.slots[slot] = AffineValue::TOP;
            }
        }
        self.assumed.retain(|(v, _)| !code.inside(*v, l));
    }

    /// Loop `l` is over, with all inside of it.
    pub(super) fn leave(&mut self, code: &HazardProgram, l: usize) {
        for inner in (l..code.loops[l].end).rev() {
            let periods = self.periods.clone();
            self.all().filter(|n| n.base as usize == inner + 1).for_each(|n| *n = n.settled(&periods));
            self.modes[inner] = LoopMode::Out;
            self.periods[inner] = MAX;
            self.before.remove(&inner);
            self.slots[code.loops[inner].slot] = AffineValue::TOP;
        }
        self.forget(code, l);
    }

    pub(super) fn iteration(&mut self, l: usize, f: impl FnOnce(i64) -> i64) {
        let mut at: Vec<i64> = self.at.to_vec();
        at[l] = f(at[l]);
        self.at = at.into();
    }

    fn assumption(&self, v: Value) -> Option<AffineValue> {
        self.assumed.iter().find(|a| a.0 == v).map(|a| a.1)
    }

    /// What is known of a value.
    pub(super) fn value(&self, code: &HazardProgram, v: Value) -> AffineValue {
        self.evaluate(code, v, &mut FxHashMap::default())
    }

    fn evaluate(&self, code: &HazardProgram, v: Value, memo: &mut FxHashMap<Value, AffineValue>) -> AffineValue {
        let v = code.root(v);
        if let Some(n) = self.assumption(v) {
            return n;
        }
        match code.defs[v] {
            Def::Const(n) => return n,
            Def::Given(positive) => {
                let own = if positive { AffineValue::range(0, MAX) } else { of_type(code.kernel, v) };
                let element = self.place(code, v).and_then(|p| self.concrete.as_ref()?.element(p));
                return element.unwrap_or(own);
            }
            Def::Slot(slot) => return self.slots[slot].meet(of_type(code.kernel, v)),
            Def::Vague | Def::Bits(_) | Def::Test(..) => return of_type(code.kernel, v),
            _ => {}
        }
        if let Some(&n) = memo.get(&v) {
            return n;
        }
        let mut get = |v| self.evaluate(code, v, memo);
        let n = match code.defs[v] {
            Def::Same(a) => get(a),
            Def::Unary(UnOp::Neg, a) => get(a).neg(),
            Def::Unary(UnOp::Not, a) if code.kernel.values[v].ty == ptoc_ir::tile::Ty::BOOL => {
                get(a).constant().map_or(AffineValue::BIT, |n| AffineValue::of(1 - n))
            }
            Def::Unary(UnOp::Abs, a) => match get(a) {
                n if n.bounds(&self.periods).0 >= 0 => n,
                _ => AffineValue::range(0, MAX),
            },
            Def::Binary(op, a, b) => {
                let (x, y) = (get(a), get(b));
                AffineValue::binary(op, x, y, &self.periods)
            }
            Def::Compare(op, a, b) => {
                let (x, y) = (get(a), get(b));
                match AffineValue::compare(op, x, y, &self.periods).or_else(|| same_symbol(code, op, a, b)) {
                    Some(holds) => AffineValue::bit(holds),
                    None => AffineValue::BIT,
                }
            }
            Def::AtMost(a, b, c) => {
                let (x, y) = (get(a), get(b).plus(c));
                AffineValue::compare(CmpOp::Le, x, y, &self.periods).map_or(AffineValue::BIT, AffineValue::bit)
            }
            Def::Select(c, a, b) => {
                let (x, y) = (get(a), get(b));
                match get(c).constant() {
                    Some(0) => y,
                    Some(_) => x,
                    None => x.join(y, &self.periods),
                }
            }
            _ => AffineValue::TOP,
        };
        memo.insert(v, n);
        n
    }

    /// The element of a tensor that `v` is read from, if nothing writes the tensor and the place is known. Only of
    /// walks with numbers.
    pub(super) fn place(&self, code: &HazardProgram, v: Value) -> Option<(TensorId, i64)> {
        self.concrete.as_ref()?;
        let &(tensor, offset) = code.loaded.get(&v)?;
        Some((tensor, self.value(code, offset).constant()?))
    }

    /// From here on `v` is `n`. False: that cannot be.
    pub(super) fn assume(&mut self, code: &HazardProgram, v: Value, n: AffineValue) -> bool {
        let v = code.root(v);
        if n.empty() {
            return false;
        }
        let mut own = Vec::new();
        leaves(code, self, v, &mut own);
        let mut related = related(code, self, v, own.clone());
        let at = self.assumed.iter().position(|a| a.0 == v);
        if let Some(place) = self.place(code, v) {
            let Some(concrete) = &mut self.concrete else { return false };
            self.unsure |= !concrete.narrow(place, n);
            return true;
        }
        if let Some(concrete) = &mut self.concrete {
            self.unsure |= !concrete.decide(code, &own, at.is_some()) || !related.is_empty();
        }
        match at {
            Some(at) => self.assumed[at].1 = n,
            None => self.assumed.push((v, n)),
        }
        if related.is_empty() {
            return true;
        }
        related.push(at.unwrap_or(self.assumed.len() - 1));
        !Relations::of(code, self, related).system.refuted()
    }

    /// The condition holds, or the launch has ended. False: it cannot hold.
    pub(super) fn holds(&mut self, code: &HazardProgram, cond: Value) -> bool {
        if let Some(n) = self.value(code, cond).constant() {
            // One that never holds is somebody else's to report. With numbers it ends the launch.
            return n != 0 || self.concrete.is_none();
        }
        self.decide(code, cond, true)
    }

    /// From here on the condition has this value. False: it cannot.
    pub(super) fn decide(&mut self, code: &HazardProgram, cond: Value, holds: bool) -> bool {
        let cond = code.root(cond);
        let compare = match code.defs[cond] {
            Def::Unary(UnOp::Not, a) => return self.decide(code, a, !holds),
            Def::Binary(BinOp::And, a, b) if holds => return self.decide(code, a, true) && self.decide(code, b, true),
            Def::Binary(BinOp::Or, a, b) if !holds => {
                return self.decide(code, a, false) && self.decide(code, b, false);
            }
            Def::Compare(op, a, b) => Some((op, a, b, 0)),
            Def::AtMost(a, b, c) => Some((CmpOp::Le, a, b, c)),
            _ => None,
        };
        let Some((op, a, b, more)) = compare else {
            return match self.value(code, cond).constant() {
                Some(n) => (n != 0) == holds,
                None => self.assume(code, cond, AffineValue::bit(holds)),
            };
        };
        let op = if holds { op } else { op.opposite() };
        let (x, y) = (self.value(code, a), self.value(code, b).plus(more));
        if let Some(is) = AffineValue::compare(op, x, y, &self.periods) {
            return is;
        }
        let mut refine = |v: Value, op: CmpOp, bound: AffineValue| {
            let (core, c) = core(code, v);
            let old = self.value(code, core);
            let narrow = old.limited(op, bound.plus(-c));
            // `!=` of the inside of a range says nothing that a range could say.
            (old.constant().is_none() && (narrow != old || narrow.empty())).then(|| self.assume(code, core, narrow))
        };
        let said = match (x.offset(), y.offset()) {
            (_, Some(_)) => refine(a, op, y),
            (Some(_), _) => refine(b, op.mirrored(), x.plus(-more)),
            _ => None,
        };
        said.unwrap_or_else(|| self.assume(code, cond, AffineValue::bit(holds)))
    }
}

fn words(n: &AffineValue) -> [u64; 6] {
    [u64::from(n.base), n.coef as u64, n.lo as u64, n.hi as u64, n.m as u64, n.r as u64]
}

/// `v` without a constant that is added, and that constant.
pub(super) fn core(code: &HazardProgram, v: Value) -> (Value, i64) {
    let v = code.root(v);
    let constant = |v: Value| match code.defs[v] {
        Def::Const(n) => n.constant(),
        _ => None,
    };
    let (next, c) = match code.defs[v] {
        Def::Binary(BinOp::Add, a, b) => match (constant(a), constant(b)) {
            (_, Some(c)) => (a, c),
            (Some(c), _) => (b, c),
            _ => return (v, 0),
        },
        Def::Binary(BinOp::Sub, a, b) => match constant(b) {
            Some(c) => (a, -c),
            None => return (v, 0),
        },
        _ => return (v, 0),
    };
    let (inner, more) = core(code, next);
    (inner, more.saturating_add(c))
}

/// Compares two values that are one symbol plus constants.
fn same_symbol(code: &HazardProgram, op: CmpOp, a: Value, b: Value) -> Option<bool> {
    let ((x, c), (y, d)) = (core(code, a), core(code, b));
    (x == y).then(|| AffineValue::compare(op, AffineValue::of(c), AffineValue::of(d), &[]))?
}

/// What the type says.
fn of_type(kernel: &Kernel, v: Value) -> AffineValue {
    let ty = kernel.values[v].ty;
    if ty == ptoc_ir::tile::Ty::BOOL { AffineValue::BIT } else { AffineValue::TOP }
}
