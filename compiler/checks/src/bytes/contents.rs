//! Reaching writes: what may lie in each byte: the writes whose value it may hold, and under which conditions.

use super::numbers::{Literal, Numbers};
use super::window::{Key, Keys};
use ptoc_ir::tile::Tile;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// A write: of a statement through one element of a tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Def(pub(super) u32);

/// Through what it writes: an element of a tile; without a number, nobody knows which.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Owner {
    pub(super) tile: Tile,
    pub(super) element: Option<u32>,
}

impl Owner {
    /// Whether both may be the same element.
    pub(super) fn meets(self, other: Owner) -> bool {
        let unknown = self.element.is_none() || other.element.is_none();
        self.tile == other.tile && (unknown || self.element == other.element)
    }
}

/// Nothing was ever written.
pub(super) const UNWRITTEN: Def = Def(0);
/// Nothing was written, because some loop did not run at all.
pub(super) const EMPTY_LOOP: Def = Def(1);
/// Something that is not looked into: reported already, or through an address that is not known.
pub(super) const ANYTHING: Def = Def(2);
/// Writes of the program are numbered from here on.
pub(super) const FIRST_DEF: u32 = 3;

/// More is not remembered of one value.
const LITERALS: usize = 6;
const SHADOWS: usize = 8;

/// Why a byte may hold another value than an entry says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Vague {
    /// It does not.
    No,
    /// A window lies over the byte of which the launch says how much is valid.
    Valid,
    /// A write went somewhere, perhaps here.
    Somewhere,
}

/// A value that a byte may hold.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Entry {
    pub(super) def: Def,
    /// It does only if all of these hold.
    pub(super) literals: Vec<Literal>,
    /// It does only inside of this window, through which it was written; of one that is not known it is not.
    pub(super) inside: Option<Key>,
    /// It does only outside of these windows, which were written since.
    pub(super) shadows: Vec<Key>,
    /// It may have been overwritten since, or never have been written here.
    pub(super) vague: Vague,
    /// The life of its tile ended: the tile was declared anew.
    pub(super) ended: bool,
    /// Values of other tiles that were destroyed here since those tiles were last written, one of a tile.
    pub(super) victims: Vec<Def>,
    /// If the write went here at all.
    pub(super) maybe: bool,
}

impl Entry {
    fn new(def: Def) -> Entry {
        Entry {
            def,
            literals: Vec::new(),
            inside: None,
            shadows: Vec::new(),
            vague: Vague::No,
            ended: false,
            victims: Vec::new(),
            maybe: false,
        }
    }

    /// The same, but only outside of the window.
    pub(super) fn outside(&self, key: Key) -> Entry {
        let mut e = self.clone();
        if let Err(at) = e.shadows.binary_search(&key) {
            e.shadows.insert(at, key);
            if e.shadows.len() > SHADOWS {
                e.shadows.remove(0);
            }
        }
        e
    }

    /// Whether the byte is what `other` says only where it is what this one says.
    fn includes(&self, other: &Entry) -> bool {
        let of = |e: &Entry| (e.def, e.vague, e.ended, e.maybe);
        let same = of(self) == of(other);
        same && self.victims == other.victims
            && (self.inside.is_none() || self.inside == other.inside)
            && self.literals.iter().all(|l| other.literals.contains(l))
            && self.shadows.iter().all(|k| other.shadows.contains(k))
    }
}

/// A set of entries, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Set(u32);

/// Nobody wrote.
pub(super) const NOTHING: Set = Set(0);

/// All sets.
pub(super) struct Sets {
    all: Vec<Rc<[Entry]>>,
    ids: FxHashMap<Rc<[Entry]>, Set>,
    /// Steps that were taken since somebody asked.
    pub(super) work: usize,
}

/// Steps that looking at an entry takes, and keeping a new one.
const LOOK: usize = 4;
const KEEP: usize = 24;

/// How two paths meet.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Meeting {
    /// They differ by nothing that can be named.
    Plain,
    /// The first path holds this, the second one its negation.
    Branch(Literal),
    /// The first path is that of a loop which does not run, the second one comes out of the loop.
    Loop(Option<Literal>),
}

impl Sets {
    pub(super) fn new() -> Sets {
        let mut sets = Sets { all: Vec::new(), ids: FxHashMap::default(), work: 0 };
        sets.of(vec![Entry::new(UNWRITTEN)]);
        sets
    }

    pub(super) fn of(&mut self, mut entries: Vec<Entry>) -> Set {
        entries.sort_unstable();
        entries.dedup();
        self.work += LOOK * entries.len();
        let entries: Rc<[Entry]> = entries.into();
        if let Some(&id) = self.ids.get(&entries) {
            return id;
        }
        let id = Set(self.all.len() as u32);
        self.work += KEEP * entries.len();
        self.all.push(entries.clone());
        self.ids.insert(entries, id);
        id
    }

    pub(super) fn get(&self, set: Set) -> Rc<[Entry]> {
        self.all[set.0 as usize].clone()
    }

    /// Only this value, unconditionally.
    pub(super) fn only(&mut self, def: Def, victims: Vec<Def>) -> Set {
        self.of(vec![Entry { victims, ..Entry::new(def) }])
    }

    /// The values that a write through the tile `own` destroys here, with those destroyed before.
    pub(super) fn victims(&self, set: Set, own: Owner, owners: &dyn Fn(Def) -> Owner) -> Vec<Def> {
        let mut out: Vec<(Owner, Def)> = Vec::new();
        for e in self.all[set.0 as usize].iter() {
            let written = (e.def.0 >= FIRST_DEF && !e.ended).then_some(e.def);
            out.extend(e.victims.iter().copied().chain(written).map(|d| (owners(d), d)));
        }
        out.retain(|(owner, _)| !owner.meets(own));
        out.sort_unstable();
        out.dedup_by_key(|(owner, _)| *owner);
        let mut out: Vec<Def> = out.into_iter().map(|(_, d)| d).collect();
        out.sort_unstable();
        out
    }

    /// After a write that covers the byte only if it lies in the window `key`; `placed` says that it does where all is
    /// valid that can be. `somewhere` says that nobody knows where the window is. `covers` says of two windows that the
    /// second one has nothing beside the first: what was written through it is gone.
    #[allow(clippy::too_many_arguments, reason = "a write in its parts")]
    pub(super) fn overlaid(
        &mut self,
        set: Set,
        def: Def,
        key: Option<Key>,
        covers: &dyn Fn(Key, Key) -> bool,
        (placed, somewhere): (bool, bool),
        own: Owner,
        owners: &dyn Fn(Def) -> Owner,
    ) -> Set {
        let victims = if placed || somewhere { self.victims(set, own, owners) } else { Vec::new() };
        let gone = |e: &Entry| key.is_some_and(|key| e.inside.is_some_and(|inside| covers(key, inside)));
        // Who was the first to destroy something is to be told.
        let mut told: Vec<Def> = Vec::new();
        let mut stays = |e: &&Entry| {
            let first = e.victims.iter().any(|v| !told.contains(v));
            told.extend(&e.victims);
            first || !gone(e)
        };
        let mut entries: Vec<Entry> = self.get(set).iter().filter(|e| stays(e)).cloned().collect();
        for e in &mut entries {
            e.vague = e.vague.max(if somewhere { Vague::Somewhere } else { Vague::Valid });
            if let Some(key) = key
                && let Err(at) = e.shadows.binary_search(&key)
            {
                e.shadows.insert(at, key);
                if e.shadows.len() > SHADOWS {
                    e.shadows.remove(0);
                }
            }
        }
        // Where nobody knows what it destroyed, it is no evidence of anything either.
        let vague = if placed { Vague::No } else { Vague::Valid };
        entries.push(Entry { victims, vague, inside: key, maybe: !placed, ..Entry::new(def) });
        self.of(entries)
    }

    /// What was destroyed of the tile `own` does not count any more: it has got a new value here.
    pub(super) fn restored(&mut self, set: Set, own: Owner, owners: &dyn Fn(Def) -> Owner) -> Set {
        let entries = self.get(set);
        if !entries.iter().any(|e| e.victims.iter().any(|v| owners(*v).meets(own))) {
            return set;
        }
        let mut entries = entries.to_vec();
        for e in &mut entries {
            e.victims.retain(|v| !owners(*v).meets(own));
        }
        self.of(entries)
    }

    /// Two paths meet.
    pub(super) fn join(&mut self, a: Set, b: Set, how: Meeting) -> Set {
        if a == b {
            return a;
        }
        let (x, y) = (self.get(a), self.get(b));
        self.work += x.len() * y.len() / 4;
        let (mut first, second) = match how {
            Meeting::Plain => (None, None),
            Meeting::Branch(l) => (Some(l), Some(l.negated())),
            Meeting::Loop(l) => (l.map(Literal::negated), l),
        };
        let written = !y.iter().any(|e| e.def == UNWRITTEN && e.vague == Vague::No);
        let mut entries = Vec::with_capacity(x.len() + y.len());
        for e in x.iter() {
            let mut e = e.clone();
            if !y.contains(&e) {
                if matches!(how, Meeting::Loop(_)) && e.def == UNWRITTEN && e.vague == Vague::No && written {
                    e.def = EMPTY_LOOP;
                }
                qualify(&mut e, first);
            }
            entries.push(e);
        }
        first = second;
        for e in y.iter().filter(|e| !x.contains(e)) {
            let mut e = e.clone();
            qualify(&mut e, first);
            entries.push(e);
        }
        // What would need a condition to hold and not to hold is nowhere.
        let possible = |e: &Entry| !e.literals.iter().any(|l| l.holds && e.literals.contains(&l.negated()));
        if entries.iter().any(possible) {
            entries.retain(possible);
        }
        // The same value on both paths needs no condition.
        self.merge(&mut entries);
        self.of(entries)
    }

    /// Without entries that others say under fewer conditions.
    fn merge(&mut self, entries: &mut Vec<Entry>) {
        entries.sort_unstable();
        entries.dedup();
        // They say it of the same write.
        let mut first = 0;
        let mut kept = vec![true; entries.len()];
        while first < entries.len() {
            let end = first + entries[first..].iter().take_while(|e| e.def == entries[first].def).count();
            self.work += (end - first) * (end - first);
            for n in first..end {
                let said = |k: usize| k != n && entries[k].includes(&entries[n]);
                kept[n] = !(first..end).any(said);
            }
            first = end;
        }
        let mut kept = kept.into_iter();
        entries.retain(|_| kept.next().unwrap_or(true));
    }

    /// Without what cannot be, by what `contradicted` says of conditions.
    pub(super) fn filter(&mut self, set: Set, contradicted: &mut dyn FnMut(Literal) -> bool) -> Set {
        let entries = self.get(set);
        let possible: Vec<bool> = entries.iter().map(|e| !e.literals.iter().any(|l| contradicted(*l))).collect();
        if possible.iter().all(|p| *p) || !possible.contains(&true) {
            return set;
        }
        let kept = entries.iter().zip(possible).filter(|(_, p)| *p).map(|(e, _)| e.clone()).collect();
        self.of(kept)
    }

    /// At the end of an iteration: forgets what speaks of symbols younger than `then`.
    pub(super) fn forget(&mut self, set: Set, numbers: &Numbers, keys: &Keys, then: u32) -> Set {
        let entries = self.get(set);
        let stale = |e: &Entry| {
            e.literals.iter().any(|l| numbers.literal_younger(*l, then))
                || e.shadows.iter().chain(&e.inside).any(|k| keys.younger(*k, numbers, then))
        };
        if !entries.iter().any(stale) {
            return set;
        }
        let mut kept = entries.to_vec();
        for e in &mut kept {
            e.literals.retain(|l| !numbers.literal_younger(*l, then));
            e.shadows.retain(|k| !keys.younger(*k, numbers, then));
            e.inside = e.inside.filter(|k| !keys.younger(*k, numbers, then));
        }
        self.merge(&mut kept);
        self.of(kept)
    }

    /// Each entry anew. Where none is left, as they were.
    pub(super) fn rewrite(&mut self, set: Set, f: &mut dyn FnMut(&Entry) -> Option<Entry>) -> Set {
        let old = self.get(set);
        let mut new: Vec<Entry> = old.iter().filter_map(f).collect();
        if new.is_empty() {
            return set;
        }
        self.merge(&mut new);
        self.of(new)
    }

    /// Both, the first without what `covered` says.
    pub(super) fn generalised(&mut self, a: Set, b: Set, covered: &[Entry]) -> Set {
        let covers = |e: &Entry| covered.iter().any(|c| c.includes(e));
        let mut entries: Vec<Entry> = self.get(a).iter().filter(|e| !covers(e)).cloned().collect();
        entries.extend(self.get(b).iter().cloned());
        self.merge(&mut entries);
        self.of(entries)
    }

    /// The tile with these writes is declared anew at an address where bytes stay.
    pub(super) fn end(&mut self, set: Set, own: &dyn Fn(Def) -> bool) -> Set {
        let mut entries = self.get(set).to_vec();
        for e in &mut entries {
            e.ended |= own(e.def);
            e.victims.retain(|v| !own(*v));
        }
        self.of(entries)
    }

    /// After a report: what was unwritten counts as written.
    pub(super) fn settled(&mut self, set: Set) -> Set {
        let mut entries = self.get(set).to_vec();
        for e in &mut entries {
            if matches!(e.def, UNWRITTEN | EMPTY_LOOP) {
                *e = Entry::new(ANYTHING);
            }
        }
        self.of(entries)
    }
}

fn qualify(e: &mut Entry, literal: Option<Literal>) {
    if let Some(l) = literal
        && let Err(at) = e.literals.binary_search(&l)
    {
        e.literals.insert(at, l);
        // The youngest conditions are those that are likely to come again.
        if e.literals.len() > LITERALS {
            e.literals.remove(0);
        }
    }
}

/// First byte and one past the last.
pub(super) type Bytes = (u64, u64);

/// A storage's bytes from 0 to infinity, as runs of equal sets: where each begins.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Contents {
    runs: Vec<(u64, Set)>,
}

impl Contents {
    pub(super) fn unwritten() -> Contents {
        Contents { runs: vec![(0, NOTHING)] }
    }

    /// How many runs there are.
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// The runs that meet `ranges` (sorted, apart), clipped.
    pub(super) fn visit(&self, ranges: &[Bytes], f: &mut dyn FnMut(Bytes, Set)) {
        for &(start, end) in ranges {
            let first = self.runs.partition_point(|(s, _)| *s <= start).saturating_sub(1);
            for (k, &(s, set)) in self.runs.iter().enumerate().skip(first) {
                if s >= end {
                    break;
                }
                let next = self.runs.get(k + 1).map_or(u64::MAX, |r| r.0);
                f((s.max(start), next.min(end)), set);
            }
        }
    }

    /// Replaces the sets in `ranges` (sorted, apart).
    pub(super) fn update(&mut self, ranges: &[Bytes], f: &mut dyn FnMut(Set) -> Set) {
        if ranges.is_empty() {
            return;
        }
        let mut out: Vec<(u64, Set)> = Vec::with_capacity(self.runs.len() + 2 * ranges.len());
        let mut memo: FxHashMap<Set, Set> = FxHashMap::default();
        let mut push = |at: u64, set: Set| match out.last_mut() {
            Some((_, last)) if *last == set => {}
            Some((s, last)) if *s == at => *last = set,
            _ => out.push((at, set)),
        };
        let mut r = 0;
        for (k, &(start, set)) in self.runs.iter().enumerate() {
            let end = self.runs.get(k + 1).map_or(u64::MAX, |r| r.0);
            let mut at = start;
            while r < ranges.len() && ranges[r].0 < end {
                let (from, to) = (ranges[r].0.max(at), ranges[r].1.min(end));
                if from > at {
                    push(at, set);
                }
                if from < to {
                    let new = *memo.entry(set).or_insert_with(|| f(set));
                    push(from, new);
                }
                at = at.max(to);
                if ranges[r].1 > end {
                    break;
                }
                r += 1;
            }
            if at < end {
                push(at, set);
            }
        }
        self.runs = out;
    }

    /// With every set replaced, by a function that may be asked twice for one; `None` if all stay.
    pub(super) fn mapped(&self, f: &mut dyn FnMut(Set) -> Set) -> Option<Contents> {
        let first = self.runs.iter().position(|&(_, set)| f(set) != set)?;
        let mut runs: Vec<(u64, Set)> = Vec::with_capacity(self.runs.len());
        runs.extend_from_slice(&self.runs[..first]);
        for &(at, set) in &self.runs[first..] {
            let new = f(set);
            if runs.last().is_none_or(|(_, last)| *last != new) {
                runs.push((at, new));
            }
        }
        Some(Contents { runs })
    }

    /// Both at once.
    pub(super) fn zip(&self, other: &Contents, f: &mut dyn FnMut(Set, Set) -> Set) -> Contents {
        let mut runs: Vec<(u64, Set)> = Vec::with_capacity(self.runs.len().max(other.runs.len()));
        let mut memo: FxHashMap<(Set, Set), Set> = FxHashMap::default();
        let (mut i, mut j) = (0, 0);
        loop {
            let at = self.runs[i].0.max(other.runs[j].0);
            let pair = (self.runs[i].1, other.runs[j].1);
            let set = *memo.entry(pair).or_insert_with(|| f(pair.0, pair.1));
            if runs.last().is_none_or(|(_, last)| *last != set) {
                runs.push((at, set));
            }
            let next = |runs: &[(u64, Set)], k: usize| runs.get(k + 1).map(|r| r.0);
            match (next(&self.runs, i), next(&other.runs, j)) {
                (None, None) => return Contents { runs },
                (Some(_), None) => i += 1,
                (None, Some(_)) => j += 1,
                (Some(a), Some(b)) => {
                    i += usize::from(a <= b);
                    j += usize::from(b <= a);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The runs as a map of the first `n` bytes.
    fn spread(c: &Contents, n: u64) -> Vec<Set> {
        let mut out = Vec::new();
        c.visit(&[(0, n)], &mut |(s, e), set| out.extend((s..e).map(|_| set)));
        out
    }

    #[test]
    fn updates_are_those_of_an_array() {
        let mut seed = 12345u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for _ in 0..200 {
            let (mut contents, mut model) = (Contents::unwritten(), vec![NOTHING; 40]);
            for _ in 0..12 {
                let mut cuts: Vec<u64> = (0..2 * (1 + next(3))).map(|_| next(40)).collect();
                cuts.sort_unstable();
                cuts.dedup();
                let ranges: Vec<Bytes> = cuts.chunks_exact(2).map(|c| (c[0], c[1])).collect();
                let step = 1 + next(3) as u32;
                contents.update(&ranges, &mut |s| Set((s.0 + step) % 5));
                for &(s, e) in &ranges {
                    for set in &mut model[s as usize..e as usize] {
                        *set = Set((set.0 + step) % 5);
                    }
                }
                assert_eq!(spread(&contents, 40), model);
                let runs = &contents.runs;
                assert!(runs.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 != w[1].1), "{runs:?}");
            }
            let mapped = contents.mapped(&mut |s| Set(s.0 / 2));
            let halves: Vec<Set> = model.iter().map(|s| Set(s.0 / 2)).collect();
            assert_eq!(mapped.is_none(), contents.runs.iter().all(|(_, s)| *s == NOTHING));
            assert_eq!(spread(mapped.as_ref().unwrap_or(&contents), 40), halves);
            assert!(mapped.is_none_or(|c| c.runs.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 != w[1].1)));
            let other = {
                let mut c = Contents::unwritten();
                c.update(&[(3, 9), (20, 31)], &mut |_| Set(1));
                c
            };
            let both = contents.zip(&other, &mut |a, b| Set(a.0 * 8 + b.0));
            let expected: Vec<Set> =
                spread(&contents, 40).iter().zip(spread(&other, 40)).map(|(a, b)| Set(a.0 * 8 + b.0)).collect();
            assert_eq!(spread(&both, 40), expected);
        }
    }
}
