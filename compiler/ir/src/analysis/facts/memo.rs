//! Memoisation of what recursive questions found. The rules of [`super`] ask each other for bounds, magnitudes and
//! exactness; of nested definitions they ask for the same operand many times.

use crate::tile::Value;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// A value, and how deep a question about it may go.
type Key = (Value, u32);

/// Results that a table keeps: questions are about values near each other, and a small table stays in the cache.
const MOST_KEPT: usize = 512;

/// Results of questions that had all their steps. Whatever adds or takes back a fact forgets them all.
#[derive(Default)]
pub(super) struct Memo {
    least: RefCell<FxHashMap<Key, Option<i64>>>,
    most: RefCell<FxHashMap<Key, Option<i64>>>,
    bits: RefCell<FxHashMap<Key, u32>>,
    exact: RefCell<FxHashMap<Key, bool>>,
}

/// One table of [`Memo`].
pub(super) type Table<T> = fn(&Memo) -> &RefCell<FxHashMap<Key, T>>;

pub(super) const LEAST: Table<Option<i64>> = |m| &m.least;
pub(super) const MOST: Table<Option<i64>> = |m| &m.most;
pub(super) const BITS: Table<u32> = |m| &m.bits;
pub(super) const EXACT: Table<bool> = |m| &m.exact;

impl Memo {
    pub fn get<T: Copy>(&self, table: Table<T>, key: Key) -> Option<T> {
        table(self).borrow().get(&key).copied()
    }

    pub fn put<T>(&self, table: Table<T>, key: Key, found: T) {
        let mut known = table(self).borrow_mut();
        if known.len() >= MOST_KEPT {
            known.clear();
        }
        known.insert(key, found);
    }

    pub fn forget(&mut self) {
        self.least.get_mut().clear();
        self.most.get_mut().clear();
        self.bits.get_mut().clear();
        self.exact.get_mut().clear();
    }
}
