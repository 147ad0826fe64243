//! Conflicting uses of bytes that nothing orders.
//!
//! For every byte its last write and the reads since are kept, each with its stamp. A use conflicts with one of them
//! that its own knowledge does not cover. Whatever is ordered after the last write is ordered after all that the write
//! was ordered after, so no older use has to be kept; and since what is executed is executed in an order that the
//! synchronisation allows, a pair that is not ordered is found in every such order.

use super::clocks::{Stamp, knows};
use super::touches::{TouchKind, TouchedBytes};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// A use of bytes that is kept: its stamp, and its number for reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Use {
    pub stamp: Stamp,
    pub kind: TouchKind,
    pub number: u32,
}

/// Bytes with one history.
#[derive(Clone, PartialEq, Debug)]
struct Cell {
    end: u64,
    write: Option<Use>,
    /// Reads and atomic updates since, the last of each stream and kind.
    since: Vec<Use>,
}

/// Two uses without order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Conflict {
    /// The one that was executed first.
    pub first: Use,
    pub second: Use,
    /// Of the memory, the first that both use.
    pub byte: u64,
}

/// The histories of all memories. Ranges do not overlap.
#[derive(Default)]
pub(super) struct Histories {
    spaces: FxHashMap<u32, BTreeMap<u64, Cell>>,
}

impl Histories {
    /// Checks that a use of bytes by something that knows `knowledge` is ordered after all others. All uses of an
    /// instruction are checked before one of them is noted: its write must not hide behind its own read.
    pub fn check(&self, touch: &TouchedBytes, mine: Use, knowledge: &[u32]) -> Result<(), Conflict> {
        let Some(cells) = self.spaces.get(&touch.space) else { return Ok(()) };
        let Range { start, end } = touch.bytes;
        let before = cells.range(..start).next_back().filter(|(_, cell)| cell.end > start);
        for (&at, cell) in before.into_iter().chain(cells.range(start..end.max(start))) {
            let open = |u: &&Use| !u.kind.commutes(mine.kind) && u.stamp != mine.stamp && !knows(knowledge, u.stamp);
            if let Some(&first) = cell.write.iter().chain(&cell.since).find(open) {
                return Err(Conflict { first, second: mine, byte: at.max(start) });
            }
        }
        Ok(())
    }

    /// Notes the use of bytes.
    pub fn note(&mut self, touch: &TouchedBytes, mine: Use) {
        let Range { start, end } = touch.bytes;
        if start >= end {
            return;
        }
        let cells = self.spaces.entry(touch.space).or_default();
        split(cells, start);
        split(cells, end);
        if mine.kind == TouchKind::Write {
            let old: Vec<u64> = cells.range(start..end).map(|(&at, _)| at).collect();
            for at in old {
                cells.remove(&at);
            }
            cells.insert(start, Cell { end, write: Some(mine), since: Vec::new() });
            return;
        }
        let mut at = start;
        while at < end {
            match cells.get_mut(&at) {
                Some(cell) => {
                    at = cell.end;
                    match cell.since.iter_mut().find(|u| u.stamp.stream == mine.stamp.stream && u.kind == mine.kind) {
                        Some(old) => *old = mine,
                        None => cell.since.push(mine),
                    }
                }
                None => {
                    let next = cells.range(at..end).next().map_or(end, |(&at, _)| at);
                    cells.insert(at, Cell { end: next, write: None, since: vec![mine] });
                    at = next;
                }
            }
        }
    }
}

/// No range lies across `at` any more.
fn split(cells: &mut BTreeMap<u64, Cell>, at: u64) {
    if let Some((_, cell)) = cells.range_mut(..at).next_back()
        && cell.end > at
    {
        let rest = cell.clone();
        cell.end = at;
        cells.insert(at, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::super::touches::Object;
    use super::*;
    use cranelift_entity::EntityRef;
    use ptoc_ir::tile::{Tile, Update};
    use ptoc_isa::AtomicOp;

    fn step(
        h: &mut Histories,
        kind: TouchKind,
        bytes: Range<u64>,
        stamp: (u32, u32),
        know: &[u32],
    ) -> Option<(u32, u64)> {
        let touch = TouchedBytes { space: 0, object: Object::Tile(Tile::new(0), 0), kind, bytes };
        let stamp = Stamp { stream: stamp.0, clock: stamp.1 };
        let mine = Use { stamp, kind, number: stamp.stream * 100 + stamp.clock };
        let conflict = h.check(&touch, mine, know).err().map(|c| (c.first.number, c.byte));
        h.note(&touch, mine);
        conflict
    }

    #[test]
    fn kinds() {
        use TouchKind::{Read, Write};
        let atomic = |op, seen| TouchKind::Atomic(Update { op, seen });
        let (add, max) = (atomic(AtomicOp::Add, false), atomic(AtomicOp::Max, false));
        let (ticket, exchange) = (atomic(AtomicOp::Add, true), atomic(AtomicOp::Exchange, false));
        for (first, second, conflict) in [
            (Write, Read, true),
            (Write, Write, true),
            (Read, Write, true),
            (Read, Read, false),
            (add, add, false),
            (add, max, true),
            (add, ticket, true),
            (ticket, add, true),
            (exchange, exchange, true),
            (add, Read, true),
            (Read, add, true),
            (Write, add, true),
            (add, Write, true),
        ] {
            let mut h = Histories::default();
            assert_eq!(step(&mut h, first, 0..8, (0, 1), &[0, 0]), None);
            let found = step(&mut h, second, 4..6, (1, 1), &[0, 0]);
            assert_eq!(found, conflict.then_some((1, 4)), "{first:?} {second:?}");
            let mut h = Histories::default();
            step(&mut h, first, 0..8, (0, 1), &[0, 0]);
            assert_eq!(step(&mut h, second, 4..6, (1, 1), &[1, 0]), None);
        }
    }

    /// Random uses against a history of every byte alone.
    #[test]
    fn ranges_are_bytes() {
        let mut seed = 7u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for _ in 0..300 {
            let (mut whole, mut bytes) = (Histories::default(), Histories::default());
            let mut clock = [0u32; 3];
            for _ in 0..40 {
                let (start, len, s) = (next(24), 1 + next(8), next(3) as usize);
                let kind =
                    [TouchKind::Read, TouchKind::Write, TouchKind::Atomic(Update::unseen(ptoc_isa::AtomicOp::Add))]
                        [next(3) as usize];
                clock[s] += 1;
                let mut know = clock.map(|c| next(u64::from(c) + 1).max(u64::from(c).saturating_sub(2)) as u32);
                know[s] = clock[s] - 1;
                let stamp = (s as u32, clock[s]);
                let one = step(&mut whole, kind, start..start + len, stamp, &know);
                let each = (start..start + len).find_map(|b| step(&mut bytes, kind, b..b + 1, stamp, &know));
                assert_eq!(one, each);
                if one.is_some() {
                    break;
                }
            }
        }
    }
}
