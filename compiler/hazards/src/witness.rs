//! Witnesses. What a walk finds on a way is an error only if some launch takes that way. Numbers are chosen for what
//! the launch gives, such that all its checks hold and everything that the way has assumed; then the kernel is walked
//! through once more with these numbers, and must show the same. Nothing that the first walk has left out of account
//! can make such an error a false one: what is not known even then (numbers that are loaded) counts only where each
//! decides once.

use super::code::{Def, HazardProgram};
use super::domain::AffineValue;
use super::find::{Finding, Key};
use super::interpreter::HazardInterpreter;
use super::relations::{Leaf, Relations, by_type};
use super::reported::Told;
use super::state::HazardState;
use ptoc_diagnostics::Account;
use ptoc_ir::analysis::linear::{LinearSum, System};
use ptoc_ir::tile::{Op, TensorId, Ty, Value};
use ptoc_isa::Target;
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// Walks with numbers, of one kernel.
const WALKS: usize = 32;
/// Choices of one search for numbers.
const CHOICES: usize = 400;
/// Numbers that are tried where nothing bounds them.
const NUMBERS: [i64; 14] = [1, 0, 2, 3, 4, 5, 8, 16, 17, 32, 33, 48, 64, -1];

/// What a walk with given numbers knows beside them.
#[derive(Clone, Default, Debug)]
pub(super) struct Concrete {
    /// Elements of tensors that nothing writes.
    pub(super) elements: Vec<((TensorId, i64), AffineValue)>,
    /// What conditions were decided by, that is not one of these; sorted.
    decided: Vec<Leaf>,
}

impl Concrete {
    /// Something that depends on these is decided. False: what was decided before may exclude it.
    pub(super) fn decide(&mut self, code: &HazardProgram, own: &[Leaf], again: bool) -> bool {
        let free = |leaf: &Leaf| match leaf {
            Leaf::Periods(_) => false,
            // Of numbers that are loaded nothing is known: one may decide, a second one may be the same.
            Leaf::Value(v) => !code.variables.contains(v) && !self.decided.iter().any(|d| matches!(d, Leaf::Value(_))),
            Leaf::Element(..) => !self.decided.contains(leaf),
        };
        let free = again || own.iter().all(free);
        for leaf in own {
            if let Err(at) = self.decided.binary_search(leaf) {
                self.decided.insert(at, *leaf);
            }
        }
        free
    }

    /// An element is one of these. False: a condition that compares it has been decided before.
    pub(super) fn narrow(&mut self, place: (TensorId, i64), n: AffineValue) -> bool {
        match self.elements.iter_mut().find(|e| e.0 == place) {
            Some(e) => e.1 = n,
            None => self.elements.push((place, n)),
        }
        !self.decided.contains(&Leaf::Element(place.0, place.1))
    }

    pub(super) fn element(&self, place: (TensorId, i64)) -> Option<AffineValue> {
        self.elements.iter().find(|e| e.0 == place).map(|e| e.1)
    }

    /// Roughly the words that it takes in memory.
    pub(super) fn words(&self) -> usize {
        8 * self.elements.len() + 2 * self.decided.len()
    }

    pub(super) fn key(&self, out: &mut Vec<u64>) {
        out.push(self.elements.len() as u64);
        for ((tensor, offset), n) in &self.elements {
            out.extend([u64::from(tensor.as_u32()), *offset as u64, n.lo as u64, n.hi as u64]);
        }
        out.push(self.decided.len() as u64);
        for leaf in &self.decided {
            out.extend(match *leaf {
                Leaf::Value(v) => [0, u64::from(v.as_u32()), 0],
                Leaf::Periods(l) => [1, u64::from(l), 0],
                Leaf::Element(tensor, offset) => [2, u64::from(tensor.as_u32()), offset as u64],
            });
        }
    }
}

/// Keeps as errors those that a launch shows. The keys of these in order: launch by launch, as each meets them.
pub(super) fn confirm(
    code: &HazardProgram,
    target: &Target,
    told: &Told,
    findings: &mut [Finding],
    account: Account<'_>,
) -> Vec<Key> {
    let mut shown: Vec<Key> = Vec::new();
    let mut walked = 0;
    for f in findings.iter_mut().filter(|f| f.sure) {
        for ground in &f.grounds {
            if shown.contains(&f.key()) || walked == WALKS {
                break;
            }
            walked += 1;
            let Some(start) = solve(code, ground) else { continue };
            let Some(mut walk) = HazardInterpreter::with(code, target, start, account) else { continue };
            walk.told = told.clone();
            // What was found before it is given up stands.
            let _ = walk.run();
            shown.extend(walk.found.all.iter().filter(|f| f.sure).map(Finding::key));
        }
        f.sure = shown.contains(&f.key());
    }
    shown
}

/// What the launch gives, as far as it matters.
fn given<'a>(code: &'a HazardProgram) -> impl Iterator<Item = Value> + 'a {
    code.given.iter().copied().filter(|v| {
        let ty = code.kernel.values[*v].ty;
        ptoc_ir::scalar::is_int(ty) || matches!(ty, Ty::Index | Ty::BOOL)
    })
}

/// Where a walk begins that goes the way of `ground`.
fn solve(code: &HazardProgram, ground: &HazardState) -> Option<HazardState> {
    let mut relations = Relations::of(code, ground, 0..ground.assumed.len());
    let symbols: Vec<(Value, u32)> = given(code).map(|v| (v, relations.symbol_of(v))).collect();
    let mut search = Search { code, symbols, chosen: Vec::new(), left: CHOICES };
    search.choose(&relations.system)
}

struct Search<'a> {
    code: &'a HazardProgram<'a>,
    symbols: Vec<(Value, u32)>,
    chosen: Vec<i64>,
    left: usize,
}

impl Search<'_> {
    fn choose(&mut self, system: &System) -> Option<HazardState> {
        let Some(&(v, symbol)) = self.symbols.get(self.chosen.len()) else { return self.start() };
        let (low, high) = system.bounds(symbol);
        let mut tried = Vec::new();
        tried.extend(low.into_iter().flat_map(|n| n..n.saturating_add(3)));
        tried.extend(high.into_iter().flat_map(|n| [n, n.saturating_sub(1)]));
        tried.extend(NUMBERS);
        // Multiples and remainders are met sooner or later.
        tried.extend(low.into_iter().flat_map(|n| n.saturating_add(3)..n.saturating_add(64)));
        let ty = by_type(self.code.kernel.values[v].ty);
        let mut seen = FxHashSet::default();
        for n in tried {
            let inside = low.is_none_or(|l| l <= n) && high.is_none_or(|h| n <= h) && ty.lo <= n && n <= ty.hi;
            if !inside || !seen.insert(n) {
                continue;
            }
            self.left = self.left.checked_sub(1)?;
            let mut with = system.clone();
            with.zero(LinearSum::number(-n).plus(symbol, 1)?);
            if with.refuted() {
                continue;
            }
            self.chosen.push(n);
            if let Some(start) = self.choose(&with) {
                return Some(start);
            }
            self.chosen.pop();
        }
        None
    }

    /// The state with the numbers that were chosen, if the launch's checks let them pass.
    fn start(&self) -> Option<HazardState> {
        let code = self.code;
        let mut state = HazardState::new(code, super::order::Order::default());
        state.concrete = Some(Concrete::default());
        let chosen = self.symbols.iter().map(|s| s.0).zip(&self.chosen);
        let (loaded, plain): (Vec<_>, Vec<_>) = chosen.partition(|(v, _)| code.loaded.contains_key(v));
        state.assumed = plain.into_iter().map(|(v, n)| (v, AffineValue::of(*n))).collect();
        for (v, &n) in loaded {
            // One whose place is not known yet stays open.
            let Some(place) = state.place(code, v) else { continue };
            let concrete = state.concrete.as_mut()?;
            match concrete.element(place) {
                Some(other) if other != AffineValue::of(n) => return None,
                Some(_) => {}
                None => concrete.elements.push((place, AffineValue::of(n))),
            }
        }
        let grid = |g: &ptoc_ir::tile::GridDim| {
            let number = |v| state.value(code, v).constant();
            number(g.index).zip(number(g.extent)).is_none_or(|(n, all)| n < all)
        };
        let inside = code.kernel.grid.iter().all(grid);
        let holds = code.kernel.prologue.iter().all(|s| match &s.op {
            Op::Check { cond, .. } => state.value(code, *cond).constant() != Some(0),
            _ => true,
        });
        (inside && holds).then_some(state)
    }
}

/// The givens of a kernel that conditions, places and events depend on, and that are the same wherever they are read.
pub(super) fn wanted(code: &HazardProgram, from: impl Iterator<Item = Value>) -> Rc<[Value]> {
    let mut out: Vec<Value> = Vec::new();
    for v in from {
        for &s in code.sources(v).iter() {
            if matches!(code.defs[s], Def::Given(_)) && !code.home.contains_key(&s) && !out.contains(&s) {
                out.push(s);
            }
        }
    }
    out.into()
}
