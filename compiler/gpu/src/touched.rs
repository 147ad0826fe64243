//! Which memory statements touch, and where a barrier has to stand.

use ptoc_ir::loops::{Addr, Base, Op, PrintPart, Region, SpaceId, Start};
use rustc_hash::FxHashSet;

/// A piece of memory that overlaps no other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Key {
    Tensor(u32),
    Space(SpaceId),
    /// The words through which threads tell each other scalars.
    Control,
}

impl From<Base> for Key {
    fn from(base: Base) -> Key {
        match base {
            Base::Tensor(n) => Key::Tensor(n),
            Base::Space(space) => Key::Space(space),
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
    pub(crate) fn read(mut self, addr: &Addr) -> Touched {
        self.reads.insert(addr.base.into());
        self
    }

    pub(crate) fn write(mut self, addr: &Addr) -> Touched {
        self.writes.insert(addr.base.into());
        self
    }

    /// Is it touched in any way?
    pub(crate) fn any(&self, key: Key) -> bool {
        [&self.reads, &self.writes, &self.solo_reads, &self.solo_writes].into_iter().any(|set| set.contains(&key))
    }

    pub(crate) fn add(&mut self, other: &Touched) {
        self.reads.extend(&other.reads);
        self.writes.extend(&other.writes);
        self.solo_reads.extend(&other.solo_reads);
        self.solo_writes.extend(&other.solo_writes);
    }

    /// Must a barrier stand between what was touched and what is about to be? What the first thread alone does is in
    /// its own order.
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
pub(crate) fn of_region(region: &Region, broadcast: &FxHashSet<Key>, out: &mut Touched) {
    for stmt in region {
        out.add(&of(&stmt.op, broadcast));
        stmt.op.regions().filter(|_| !matches!(stmt.op, Op::Lanes(_))).for_each(|r| of_region(r, broadcast, out));
    }
}

/// What a statement touches, regions of control flow aside. `broadcast` is what only the first thread loads scalars
/// from, because other CTAs may be changing it.
pub(crate) fn of(op: &Op, broadcast: &FxHashSet<Key>) -> Touched {
    let mut t = Touched::default();
    match op {
        Op::Load { addr, .. } if broadcast.contains(&addr.base.into()) => {
            t.solo_reads.insert(addr.base.into());
            t.solo_writes.insert(Key::Control);
            t.reads.insert(Key::Control);
        }
        Op::Load { addr, .. } => t = t.read(addr),
        Op::Store { addr, .. } => {
            t.solo_writes.insert(addr.base.into());
        }
        Op::Atomic(a) => {
            t.solo_writes.insert(a.addr.base.into());
            t.solo_writes.insert(Key::Control);
            t.reads.insert(Key::Control);
        }
        Op::Lanes(lanes) => {
            for stmt in &lanes.body {
                match &stmt.op {
                    Op::Load { addr, .. } => t = t.read(addr),
                    Op::Store { addr, .. } => t = t.write(addr),
                    Op::Join { addr, .. } => t = t.read(addr).write(addr),
                    _ => {}
                }
            }
        }
        Op::Contract(c) => {
            t = t.read(&c.a).read(&c.b).write(&c.d);
            if let Start::At { addr, .. } = &c.start {
                t = t.read(addr);
            }
        }
        Op::Reduce(r) => t = t.read(&r.a).write(&r.d),
        Op::Gather(g) => {
            t = t.read(&g.table).read(&g.index).write(&g.d);
            if let Some((addr, _)) = &g.plus {
                t = t.read(addr);
            }
            t.writes.insert(Key::Control);
            t.reads.insert(Key::Control);
        }
        // The first thread may run it alone, and tell the others of its variables.
        Op::For(_) | Op::While(_) => {
            t.solo_writes.insert(Key::Control);
            t.reads.insert(Key::Control);
        }
        Op::Print { parts } => {
            for part in parts {
                if let PrintPart::Matrix { addr, .. } = part {
                    t = t.read(addr);
                }
            }
        }
        _ => {}
    }
    t
}
