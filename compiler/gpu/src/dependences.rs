//! Memory dependences between statements, and where a barrier has to stand for them.

use crate::segments::Segments;
use ptoc_ir::loops::{Addr, Base, Op, PrintPart, Region, SpaceId, Start};
use rustc_hash::FxHashSet;

/// A piece of memory that overlaps no other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Key {
    Tensor(u32),
    /// A segment of a space.
    Space(SpaceId, u32),
    /// The words through which threads tell each other scalars.
    Control,
    /// The words through which the warps of a row tell each other what they have found.
    Words,
}

/// What tells pieces of memory apart.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a> {
    pub(crate) segments: &'a Segments,
    /// What only the first thread loads scalars from, because other CTAs may be changing it.
    pub(crate) broadcast: &'a FxHashSet<Key>,
    /// Where gathers put rows that cannot stay in their tables: readers of such tables may read there.
    pub(crate) displaced: &'a FxHashSet<Key>,
}

impl Keys<'_> {
    pub(crate) fn of(self, addr: &Addr) -> Key {
        match addr.base {
            Base::Tensor(n) => Key::Tensor(n),
            Base::Space(space) => Key::Space(space, self.segments.find(space, addr.offset) as u32),
        }
    }
}

/// What has been touched since the last barrier, or what a statement is about to touch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Touched {
    /// Read by threads of any number.
    pub(crate) reads: FxHashSet<Key>,
    /// Written by threads of any number.
    pub(crate) writes: FxHashSet<Key>,
    /// Read by the first thread alone.
    pub(crate) solo_reads: FxHashSet<Key>,
    /// Written by the first thread alone.
    pub(crate) solo_writes: FxHashSet<Key>,
}

impl Touched {
    fn read(mut self, key: Key) -> Touched {
        self.reads.insert(key);
        self
    }

    fn write(mut self, key: Key) -> Touched {
        self.writes.insert(key);
        self
    }

    pub(crate) fn add(&mut self, other: &Touched) {
        self.reads.extend(&other.reads);
        self.writes.extend(&other.writes);
        self.solo_reads.extend(&other.solo_reads);
        self.solo_writes.extend(&other.solo_writes);
    }

    /// Takes out memory that is neither read nor written after all.
    pub(crate) fn remove(&mut self, (reads, writes): (Vec<Key>, Vec<Key>)) {
        self.reads.retain(|key| !reads.contains(key));
        self.writes.retain(|key| !writes.contains(key));
    }

    /// Whether a barrier must stand between what was touched and what is about to be. What the first thread alone does
    /// is in its own order.
    pub(crate) fn conflicts(&self, next: &Touched) -> bool {
        let meets = |a: &FxHashSet<Key>, b: &FxHashSet<Key>| a.iter().any(|key| b.contains(key));
        let all_writes = |t: &Touched, u: &Touched| {
            meets(&t.writes, &u.reads)
                || meets(&t.writes, &u.writes)
                || meets(&t.writes, &u.solo_reads)
                || meets(&t.writes, &u.solo_writes)
        };
        all_writes(self, next)
            || all_writes(next, self)
            || meets(&self.solo_writes, &next.reads)
            || meets(&next.solo_writes, &self.reads)
    }
}

/// What a region touches.
pub(crate) fn of_region(region: &Region, keys: Keys<'_>, out: &mut Touched) {
    for stmt in region {
        out.add(&of(&stmt.op, keys));
        stmt.op.regions().filter(|_| !matches!(stmt.op, Op::Lanes(_))).for_each(|r| of_region(r, keys, out));
    }
}

/// What a statement touches, regions of control flow aside.
pub(crate) fn of(op: &Op, keys: Keys<'_>) -> Touched {
    let mut t = Touched::default();
    match op {
        Op::Load { addr, .. } if keys.broadcast.contains(&keys.of(addr)) => {
            t.solo_reads.insert(keys.of(addr));
            t.solo_writes.insert(Key::Control);
            t.reads.insert(Key::Control);
        }
        Op::Load { addr, .. } => t = t.read(keys.of(addr)),
        Op::Store { addr, .. } => {
            t.solo_writes.insert(keys.of(addr));
        }
        Op::Atomic(a) => {
            t.solo_writes.insert(keys.of(&a.addr));
            t.solo_writes.insert(Key::Control);
            t.reads.insert(Key::Control);
        }
        Op::Lanes(lanes) => {
            for stmt in &lanes.body {
                match &stmt.op {
                    Op::Load { addr, .. } => {
                        t = t.read(keys.of(addr));
                        if addr.gather.is_some() && matches!(addr.base, Base::Tensor(_)) {
                            t.reads.extend(keys.displaced);
                        }
                    }
                    Op::Store { addr, .. } => t = t.write(keys.of(addr)),
                    Op::Join { addr, .. } => t = t.read(keys.of(addr)).write(keys.of(addr)),
                    _ => {}
                }
            }
        }
        Op::Contract(c) => {
            t = t.read(keys.of(&c.a)).read(keys.of(&c.b)).write(keys.of(&c.d));
            if let Start::At { addr, .. } = &c.start {
                t = t.read(keys.of(addr));
            }
        }
        Op::Reduce(r) => t = t.read(keys.of(&r.a)).write(keys.of(&r.d)),
        Op::Gather(g) => {
            t = t.read(keys.of(&g.table)).read(keys.of(&g.index)).write(keys.of(&g.d));
            if let Some((addr, _)) = &g.plus {
                t = t.read(keys.of(addr));
            }
            if let Some((addr, _)) = &g.places {
                t = t.write(keys.of(addr));
            }
            t.writes.insert(Key::Control);
            t.reads.insert(Key::Control);
        }
        Op::Sort(s) => t = t.read(keys.of(&s.a)).read(keys.of(&s.index)).write(keys.of(&s.d)),
        Op::Merge(m) => {
            for records in m.read() {
                t = t.read(keys.of(&records.at));
            }
            t = t.write(keys.of(&m.d));
        }
        // The first thread may run it alone, and tell the others of its variables.
        Op::For(_) | Op::While(_) => {
            t.solo_writes.insert(Key::Control);
            t.reads.insert(Key::Control);
        }
        Op::Print { parts } => {
            for part in parts {
                if let PrintPart::Matrix { addr, .. } = part {
                    t = t.read(keys.of(addr));
                }
            }
        }
        _ => {}
    }
    t
}
