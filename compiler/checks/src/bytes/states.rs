//! Abstract state and its join: what is known at a place of the program, where ways meet, and where iterations end.

use super::contents::{Contents, Meeting, Set};
use super::numbers::{Literal, SymbolicOffset};
use super::walk::ByteInterpreter;
use ptoc_ir::tile::{Tile, Var};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Everything that is known at a place of the program.
#[derive(Clone, PartialEq)]
pub(super) struct ByteState {
    pub(super) storages: Vec<Rc<Contents>>,
    /// Addresses of tiles that are bound at run time; what is missing is unknown.
    pub(super) bound: FxHashMap<(Tile, u32), SymbolicOffset>,
    pub(super) vars: FxHashMap<Var, SymbolicOffset>,
}

impl ByteInterpreter<'_> {
    pub(super) fn join(&mut self, a: Option<ByteState>, b: Option<ByteState>, how: Meeting) -> Option<ByteState> {
        let (a, b) = match (a, b) {
            (None, x) | (x, None) => return x,
            (Some(a), Some(b)) => (a, b),
        };
        self.work += a.storages.len() + a.vars.len() + a.bound.len();
        let sets = &mut self.sets;
        let mut both = |x: &Rc<Contents>, y: &Rc<Contents>| match Rc::ptr_eq(x, y) {
            true => x.clone(),
            false => {
                sets.work += x.len() + y.len();
                Rc::new(x.zip(y, &mut |p, q| sets.join(p, q, how)))
            }
        };
        Some(ByteState {
            storages: a.storages.iter().zip(&b.storages).map(|(x, y)| both(x, y)).collect(),
            bound: agreed(a.bound, &b.bound),
            vars: match how {
                Meeting::Branch(l) if self.relational => self.either(l, a.vars, &b.vars),
                _ => agreed(a.vars, &b.vars),
            },
        })
    }

    /// Without what cannot be if these hold as well.
    pub(super) fn filter(&mut self, mut state: ByteState, more: &[Literal]) -> ByteState {
        if more.is_empty() {
            return state;
        }
        let path: Vec<Literal> = self.path.iter().chain(more).copied().collect();
        self.work += path.len() + state.vars.len();
        let ByteInterpreter { sets, numbers, work, .. } = self;
        if self.relational {
            state.vars.values_mut().for_each(|n| *n = numbers.resolve(*n, &path));
        }
        // Many values stand under the same few conditions.
        let mut decided: FxHashMap<Literal, bool> = FxHashMap::default();
        let mut contradicted = |l: Literal| *decided.entry(l).or_insert_with(|| numbers.contradicts(l, &path));
        let mut filtered: FxHashMap<Set, Set> = FxHashMap::default();
        *work += replace(&mut state.storages, &mut |set| {
            *filtered.entry(set).or_insert_with(|| sets.filter(set, &mut contradicted))
        });
        state
    }

    /// At the end of an iteration.
    pub(super) fn forget(&mut self, state: Option<ByteState>, then: u32) -> Option<ByteState> {
        let mut state = state?;
        let ByteInterpreter { sets, numbers, keys, work, .. } = self;
        // The same few sets are in many storages.
        let mut forgotten: FxHashMap<Set, Set> = FxHashMap::default();
        *work += replace(&mut state.storages, &mut |set| {
            *forgotten.entry(set).or_insert_with(|| sets.forget(set, numbers, keys, then))
        });
        state.bound.retain(|_, n| !numbers.younger(*n, then));
        state.vars.retain(|_, n| !numbers.younger(*n, then));
        Some(state)
    }
}

/// Replaces every set; how many were looked at. Most storages stay as they are.
pub(super) fn replace(storages: &mut [Rc<Contents>], f: &mut dyn FnMut(Set) -> Set) -> usize {
    let mut work = 0;
    for s in storages {
        work += s.len();
        if let Some(new) = s.mapped(f) {
            *s = Rc::new(new);
        }
    }
    work
}

pub(super) fn agreed<K: std::hash::Hash + Eq>(
    mut a: FxHashMap<K, SymbolicOffset>,
    b: &FxHashMap<K, SymbolicOffset>,
) -> FxHashMap<K, SymbolicOffset> {
    a.retain(|k, n| b.get(k) == Some(n));
    a
}
