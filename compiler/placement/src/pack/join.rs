//! Which rectangles belong together: the surest pair or pinwheel is joined first.
//!
//! A pattern is sure if it is not to be expected by accident: two blocks of one size are a surer sign where few blocks
//! have about that size, two with one life where few blocks begin and end there. What is not sure by itself is
//! tried: if the joined block would fit with others without a gap, that is a reason. Only when no pair has a reason,
//! the surest without one is joined.

use super::Budget;
use super::blocks::{Joined, PackedBlock};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What is surer than this is joined without further reasons.
const CERTAIN: f32 = 8.0;

/// Of more blocks with the same life than these, no two are joined without a reason.
const CROWD: usize = 12;

/// A way to join, and how likely it is an accident.
struct Move {
    /// The logarithm of the number of such patterns to be expected by accident, negated: the surest is the greatest.
    sure: f32,
    /// The same, with what the joined block would fit with.
    promised: f32,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// The second begins where the first ends.
    InTurn(u32, u32),
    Beside(u32, u32),
    /// Below, after, above, before and in the middle.
    Wheel([u32; 5]),
}

impl PartialEq for Move {
    fn eq(&self, other: &Move) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Move {}

impl PartialOrd for Move {
    fn partial_cmp(&self, other: &Move) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Move {
    fn cmp(&self, other: &Move) -> Ordering {
        self.promised.total_cmp(&other.promised)
    }
}

/// Number and size of a block: sizes are compared all the time.
type Entry = (u32, u64);

/// The work of joining; what it needs is kept from one time to the next.
pub(super) struct Joining {
    state: Joined,
    /// What it was when first something doubtful was to be done.
    sure: Option<Joined>,
    active: usize,
    /// Active blocks by the column where they begin, and by the one where they have ended.
    begin: Vec<Vec<Entry>>,
    end: Vec<Vec<Entry>>,
    /// How many active blocks have a size of this magnitude.
    magnitudes: [u32; 65],
    moves: BinaryHeap<Move>,
    /// Moves without a reason.
    doubtful: Vec<Move>,
    /// What is looked at.
    list: Vec<(u32, u64, u32)>,
    /// Pinwheels found: how often such are expected by accident, and their parts.
    found: Vec<(f32, [u32; 5])>,
    /// How much chance has a say.
    noise: f32,
    steps: u64,
}

impl Joining {
    pub(super) fn new(columns: u32) -> Joining {
        let columns = columns as usize + 1;
        Joining {
            state: Joined::default(),
            sure: None,
            active: 0,
            begin: vec![Vec::new(); columns],
            end: vec![Vec::new(); columns],
            magnitudes: [0; 65],
            moves: BinaryHeap::new(),
            doubtful: Vec::new(),
            list: Vec::new(),
            found: Vec::new(),
            noise: 0.0,
            steps: 0,
        }
    }

    /// Joins until nothing fits, or `reserve` of the budget is left.
    pub(super) fn join(&mut self, blocks: &mut Joined, noise: f32, budget: &mut Budget, reserve: u64) {
        std::mem::swap(&mut self.state, blocks);
        (self.active, self.noise, self.magnitudes) = (0, noise, [0; 65]);
        self.begin.iter_mut().chain(&mut self.end).for_each(Vec::clear);
        self.moves.clear();
        self.doubtful.clear();
        self.steps = self.begin.len() as u64 / 4;
        let start = std::mem::take(&mut self.state.active);
        for &i in &start {
            self.enter(i);
        }
        let limit = budget.left.saturating_sub(reserve);
        for i in std::mem::take(&mut self.state.fresh) {
            if self.steps >= limit {
                break;
            }
            self.look(i, budget);
        }
        // Everything is to be tried once before anything doubtful is done.
        let mut since = self.active;
        while self.steps < limit {
            let Some(m) = self.moves.pop() else {
                if since > self.active / 8 {
                    // Something has changed: what gave no reason may give one now.
                    since = 0;
                    self.moves.extend(self.doubtful.drain(..));
                } else {
                    let Some(m) = self.surest_doubtful() else { break };
                    if self.sure.is_none() {
                        self.sure = Some(self.state.clone());
                    }
                    self.make(m.what, m.sure, budget);
                    since += 1;
                }
                continue;
            };
            if !self.possible(m.what) {
                continue;
            }
            let promised = if m.sure >= CERTAIN { m.sure } else { m.sure + self.promise(m.what) };
            if promised >= CERTAIN || promised > m.sure && promised >= self.next() {
                self.make(m.what, promised, budget);
                since += 1;
            } else if promised > m.sure {
                self.moves.push(Move { promised, ..m });
            } else {
                self.doubtful.push(Move { promised: m.sure, ..m });
            }
        }
        budget.spend(self.steps);
        self.state.find_active();
        std::mem::swap(&mut self.state, blocks);
    }

    /// The blocks that were joined without doubt, at the first time, if there was any doubt.
    pub(super) fn sure(&mut self) -> Option<Joined> {
        let mut sure = self.sure.take()?;
        sure.find_active();
        Some(sure)
    }

    fn surest_doubtful(&mut self) -> Option<Move> {
        let mut doubtful = std::mem::take(&mut self.doubtful);
        doubtful.retain(|m| self.possible(m.what));
        self.steps += doubtful.len() as u64;
        self.doubtful = doubtful;
        let list = &self.doubtful;
        let k = (0..list.len()).max_by(|&a, &b| list[a].sure.total_cmp(&list[b].sure))?;
        Some(self.doubtful.swap_remove(k))
    }

    fn add(&mut self, left: u32, right: u32, size: u64, sure: f32, parts: &[(u32, u64)]) -> u32 {
        for p in parts {
            self.retire(p.0);
        }
        let i = self.state.push(left, right, size, sure, parts);
        self.enter(i);
        i
    }

    fn enter(&mut self, i: u32) {
        let b = &self.state.blocks[i as usize];
        insert(&mut self.begin[b.left as usize], (i, b.size));
        insert(&mut self.end[b.right as usize], (i, b.size));
        self.active += 1;
        self.magnitudes[magnitude(b.size)] += 1;
        self.steps += 6;
    }

    fn retire(&mut self, i: u32) {
        let b = &mut self.state.blocks[i as usize];
        b.active = false;
        let (left, right, size) = (b.left as usize, b.right as usize, b.size);
        remove(&mut self.begin[left], (i, size));
        remove(&mut self.end[right], (i, size));
        self.active -= 1;
        self.magnitudes[magnitude(size)] -= 1;
        self.steps += 10;
    }

    fn size(&self, i: u32) -> u64 {
        self.state.blocks[i as usize].size
    }

    /// How often one block has this size by accident.
    fn density(&self, size: u64) -> f32 {
        let m = magnitude(size);
        let near = self.magnitudes[m] as f32 / size.max(1) as f32;
        (2.0 * near / self.active.max(1) as f32).clamp(1e-9, 1.0)
    }

    /// Notes a way to join that is expected so often by accident.
    fn note(&mut self, accidents: f32, what: What, budget: &mut Budget) {
        let mut sure = -accidents.max(1e-9).ln();
        if self.noise > 0.0 {
            sure += self.noise * (budget.unit() - 0.5);
        }
        self.moves.push(Move { sure, promised: sure, what });
        self.steps += 12;
    }

    /// Notes all pairs with `i`, and those that `i` gives a reason for.
    fn look(&mut self, i: u32, budget: &mut Budget) {
        let PackedBlock { left, right, size, .. } = self.state.blocks[i as usize];
        let equal = self.density(size);
        let mut list = std::mem::take(&mut self.list);
        // In turn.
        for after in [true, false] {
            let side = if after { &self.begin[right as usize] } else { &self.end[left as usize] };
            list.clear();
            let from = side.partition_point(|e| e.1 < size);
            let equals = side[from..].iter().take_while(|e| e.1 == size).take(CROWD);
            list.extend(equals.map(|e| (0, 0, e.0)));
            let accidents = equal * side.len() as f32;
            self.steps += 6;
            for &(_, _, j) in &list {
                let what = if after { What::InTurn(i, j) } else { What::InTurn(j, i) };
                self.note(accidents, what, budget);
            }
        }
        // Beside it. Of a crowd only those pairs are of interest that something else gives a reason for.
        let twin = |e: &&Entry| e.0 != i && self.state.blocks[e.0 as usize].right == right;
        list.clear();
        list.extend(self.begin[left as usize].iter().filter(twin).map(|e| (0, 0, e.0)));
        if list.len() <= CROWD {
            for &(_, _, j) in &list {
                self.pair(i, j, list.len(), false, budget);
            }
        }
        // In a pinwheel.
        self.found.clear();
        self.wheels_with(i);
        for k in 0..self.found.len() {
            let (accidents, wheel) = self.found[k];
            self.note(accidents, What::Wheel(wheel), budget);
        }
        // Pairs before and after it that are together as large.
        for after in [true, false] {
            let side = if after { &self.begin[right as usize] } else { &self.end[left as usize] };
            list.clear();
            list.extend(side.iter().filter(|e| e.1 < size).map(|e| {
                let b = &self.state.blocks[e.0 as usize];
                (if after { b.right } else { b.left }, e.1, e.0)
            }));
            list.sort_unstable();
            self.steps += 4 * list.len() as u64;
            for group in list.chunk_by(|a, b| a.0 == b.0) {
                let (mut low, mut high) = (0, group.len() - 1);
                while low < high {
                    match (group[low].1.saturating_add(group[high].1)).cmp(&size) {
                        Ordering::Less => low += 1,
                        Ordering::Greater => high -= 1,
                        Ordering::Equal => {
                            self.pair(group[low].2, group[high].2, group.len() - 1, true, budget);
                            low += 1;
                        }
                    }
                }
            }
        }
        self.list = list;
    }

    /// Notes that two with the same life could be joined, of so many more with that life, and if that is `supported` by
    /// something of their common size.
    fn pair(&mut self, i: u32, j: u32, twins: usize, supported: bool, budget: &mut Budget) {
        let PackedBlock { left, right, .. } = self.state.blocks[i as usize];
        let (left, right) = (left as usize, right as usize);
        let both = self.size(i) + self.size(j);
        let neighbours = self.end[left].len() + self.begin[right].len();
        let n = self.active.max(1) as f32;
        let mut accidents = (self.begin[left].len() * self.end[right].len()) as f32 / n;
        let equal = |these: &[Entry]| these.get(these.partition_point(|e| e.1 < both)).is_some_and(|e| e.1 == both);
        if supported || equal(&self.end[left]) || equal(&self.begin[right]) {
            let pairs = (twins * (twins + 1)) as f32 / 2.0;
            accidents = accidents.min(1.0) * (self.density(both) * neighbours as f32 * pairs).min(1.0);
        } else {
            accidents *= twins as f32;
        }
        self.steps += 4;
        self.note(accidents, What::Beside(i, j), budget);
    }

    fn possible(&self, what: What) -> bool {
        let active = |i: &u32| self.state.blocks[*i as usize].active;
        match what {
            What::InTurn(i, j) | What::Beside(i, j) => [i, j].iter().all(active),
            What::Wheel(all) => all.iter().all(active),
        }
    }

    fn next(&self) -> f32 {
        self.moves.peek().map_or(f32::MIN, |m| m.promised)
    }

    /// How much surer it makes a pair that, joined, it would fit with others without a gap.
    fn promise(&mut self, what: What) -> f32 {
        let (What::InTurn(i, j) | What::Beside(i, j)) = what else { return 0.0 };
        let (left, right) = (self.state.blocks[i as usize].left, self.state.blocks[j as usize].right);
        let size = match what {
            What::Beside(..) => self.size(i) + self.size(j),
            _ => self.size(i),
        };
        let (begin, end) = (&self.begin[right as usize], &self.end[left as usize]);
        let fits = |these: &[Entry]| these.iter().any(|e| e.1 == size && e.0 != i && e.0 != j);
        let mut accidents = 1.0f32;
        let steps = 4 + (begin.len() + end.len()) as u64 / 2;
        if fits(begin) || fits(end) {
            accidents = accidents.min(self.density(size) * (begin.len() + end.len()) as f32);
        }
        self.steps += steps;
        // A block on trial.
        let crowd = [left, right].into_iter().map(|c| self.begin[c as usize].len() + self.end[c as usize].len());
        if crowd.sum::<usize>() < 8 * CROWD {
            for k in [i, j] {
                self.state.blocks[k as usize].active = false;
            }
            let new = self.state.push(left, right, size, 0.0, &[]);
            insert(&mut self.begin[left as usize], (new, size));
            insert(&mut self.end[right as usize], (new, size));
            self.found.clear();
            self.wheels_with(new);
            remove(&mut self.begin[left as usize], (new, size));
            remove(&mut self.end[right as usize], (new, size));
            self.state.blocks.pop();
            for k in [i, j] {
                self.state.blocks[k as usize].active = true;
            }
            accidents = self.found.iter().map(|f| f.0).fold(accidents, f32::min);
        }
        -accidents.max(1e-9).ln()
    }

    /// Joins, and notes what is possible with the new block.
    fn make(&mut self, what: What, sure: f32, budget: &mut Budget) {
        let new = match what {
            What::InTurn(i, j) => {
                let (left, right) = (self.state.blocks[i as usize].left, self.state.blocks[j as usize].right);
                self.add(left, right, self.size(i), sure, &[(i, 0), (j, 0)])
            }
            What::Beside(i, j) => {
                let (left, right) = (self.state.blocks[i as usize].left, self.state.blocks[i as usize].right);
                let size = self.size(i);
                self.add(left, right, size + self.size(j), sure, &[(i, 0), (j, size)])
            }
            What::Wheel([a, b, c, d, e]) => {
                let (left, right) = (self.state.blocks[a as usize].left, self.state.blocks[b as usize].right);
                let (low, high) = (self.size(a), self.size(b));
                let size = high + self.size(c);
                self.add(left, right, size, sure, &[(a, 0), (b, 0), (c, high), (d, low), (e, low)])
            }
        };
        self.look(new, budget);
    }

    /// Finds the pinwheels that `i` is part of. In a pinwheel around a middle `e` lie: `a` below it and before `b`, `b`
    /// after it and below `c`, `c` above it and after `d`, `d` before it and above `a`. So at the right edge of the
    /// middle `b` is as large as `a` and `e` together, and at its left edge `d` is as large as `c` and `e`.
    fn wheels_with(&mut self, i: u32) {
        let PackedBlock { left, right, size, .. } = self.state.blocks[i as usize];
        let (ended, begun) = (&self.end[left as usize], &self.begin[left as usize]);
        let (ends, begins) = (&self.end[right as usize], &self.begin[right as usize]);
        let mut found = std::mem::take(&mut self.found);
        let mut work = (ended.len() + begun.len() + ends.len() + begins.len()) as u64 / 2 + 6;
        // In the middle.
        differ(begins, ends, size, &mut |b, a| self.left_half(a, b, i, &mut work, &mut found));
        // Below, above, after and before.
        differ(begins, ends, size, &mut |b, e| self.left_half(i, b, e, &mut work, &mut found));
        differ(ended, begun, size, &mut |d, e| self.right_half(i, d, e, &mut work, &mut found));
        add_up(ended, size, &mut |a, e| self.left_half(a, i, e, &mut work, &mut found));
        add_up(begins, size, &mut |c, e| self.right_half(c, i, e, &mut work, &mut found));
        self.steps += work;
        self.found = found;
    }

    /// What lies below and after a middle is known: finds what lies above and before it.
    fn left_half(&self, a: u32, b: u32, e: u32, work: &mut u64, found: &mut Vec<(f32, [u32; 5])>) {
        let [below, after, middle] = [a, b, e].map(|i| &self.state.blocks[i as usize]);
        if !(below.active && after.active && middle.active) || a == e || below.left >= middle.left {
            return;
        }
        let (ended, begun) = (&self.end[middle.left as usize], &self.begin[middle.left as usize]);
        *work += 2 + (ended.len() + begun.len()) as u64 / 4;
        differ(ended, begun, middle.size, &mut |d, c| {
            let [before, above] = [d, c].map(|i| &self.state.blocks[i as usize]);
            let fits = before.left == below.left && above.right == after.right;
            if fits && before.active && above.active && c != e {
                found.push((self.accidents(before, after, middle, [below.left, after.right]), [a, b, c, d, e]));
            }
        });
    }

    /// What lies above and before a middle is known: finds what lies below and after it.
    fn right_half(&self, c: u32, d: u32, e: u32, work: &mut u64, found: &mut Vec<(f32, [u32; 5])>) {
        let [above, before, middle] = [c, d, e].map(|i| &self.state.blocks[i as usize]);
        if !(above.active && before.active && middle.active) || c == e || above.right <= middle.right {
            return;
        }
        let (ends, begins) = (&self.end[middle.right as usize], &self.begin[middle.right as usize]);
        *work += 2 + (ends.len() + begins.len()) as u64 / 4;
        differ(begins, ends, middle.size, &mut |b, a| {
            let [after, below] = [b, a].map(|i| &self.state.blocks[i as usize]);
            let fits = before.left == below.left && above.right == after.right;
            if fits && after.active && below.active && a != e {
                found.push((self.accidents(before, after, middle, [below.left, after.right]), [a, b, c, d, e]));
            }
        });
    }

    /// How many such pinwheels are to be expected by accident.
    fn accidents(&self, before: &PackedBlock, after: &PackedBlock, middle: &PackedBlock, [from, to]: [u32; 2]) -> f32 {
        let (left, right) = (middle.left as usize, middle.right as usize);
        let n = (self.end[left].len() * self.begin[left].len()) as f32;
        let m = (self.end[right].len() * self.begin[right].len()) as f32;
        let ends = (self.begin[from as usize].len() * self.end[to as usize].len()) as f32;
        let active = self.active as f32;
        n * m * self.density(before.size) * self.density(after.size) * (ends / active / active).min(1.0)
    }
}

/// All pairs of which the first is by `size` larger than the second. Both lists are ordered by size.
fn differ(large: &[Entry], small: &[Entry], size: u64, f: &mut impl FnMut(u32, u32)) {
    let mut from = 0;
    let Some(most) = small.last().map(|s| s.1.saturating_add(size)) else { return };
    for l in large {
        let Some(rest) = l.1.checked_sub(size) else { continue };
        if l.1 > most {
            return;
        }
        while small[from].1 < rest {
            from += 1;
        }
        for s in small[from..].iter().take_while(|s| s.1 == rest) {
            f(l.0, s.0);
        }
    }
}

/// All pairs, in both orders, that are together as large as `size`.
fn add_up(list: &[Entry], size: u64, f: &mut impl FnMut(u32, u32)) {
    let mut to = list.len();
    for l in list {
        let Some(rest) = size.checked_sub(l.1) else { return };
        while to > 0 && list[to - 1].1 > rest {
            to -= 1;
        }
        for s in list[..to].iter().rev().take_while(|s| s.1 == rest) {
            f(l.0, s.0);
        }
    }
}

/// Adds to a list that is ordered by size.
fn insert(list: &mut Vec<Entry>, entry: Entry) {
    let at = list.partition_point(|e| (e.1, e.0) < (entry.1, entry.0));
    list.insert(at, entry);
}

fn remove(list: &mut Vec<Entry>, entry: Entry) {
    let at = list.partition_point(|e| (e.1, e.0) < (entry.1, entry.0));
    if list.get(at) == Some(&entry) {
        list.remove(at);
    }
}

fn magnitude(size: u64) -> usize {
    (64 - size.leading_zeros()) as usize
}
