//! Another order of a strip's events with the same meaning, in which equal instructions on successive columns stand
//! together.
//!
//! An event waits for those before it that write what it reads or writes, or read what it writes: registers, scalars,
//! bursts. Of those that wait for nothing, the one is next that continues the last one; else one like it; else the
//! first in the old order.

use super::code::{HostWrite, UnitEvent};
use super::program::continues;
use ptoc_pim_stream::crf::{Alu, Instruction, Operand, OperandLocation as File};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// What an event touches: vector registers, the scalars, bursts of the banks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Thing {
    Register(Operand),
    Scalars,
    Burst(super::node::BankBurst),
}

/// What is read, and what is written.
fn touched(event: &UnitEvent) -> (Vec<Thing>, Vec<Thing>) {
    match *event {
        UnitEvent::Host(HostWrite::Vector { file_b, index, .. }, _) => {
            let place = if file_b { File::GrfB } else { File::GrfA };
            (Vec::new(), vec![Thing::Register(Operand { place, index })])
        }
        UnitEvent::Host(HostWrite::Scalars(..) | HostWrite::Elements(..), _) => (Vec::new(), vec![Thing::Scalars]),
        UnitEvent::Step { instruction, at, .. } => {
            let Instruction::Alu { op, dst, a, b, .. } = instruction else { return (Vec::new(), Vec::new()) };
            let thing = |o: Operand| match o.place {
                File::EvenBank | File::OddBank => Thing::Burst(at),
                File::SrfM | File::SrfA => Thing::Scalars,
                _ => Thing::Register(o),
            };
            let mut reads: Vec<Thing> = [Some(a), b].into_iter().flatten().map(thing).collect();
            if op == Alu::Mac {
                reads.push(thing(dst));
            }
            (reads, vec![thing(dst)])
        }
    }
}

/// The events in their new order.
pub fn ordered(events: &[UnitEvent]) -> Vec<UnitEvent> {
    let mut waits = vec![0usize; events.len()];
    let mut wakes: Vec<Vec<usize>> = vec![Vec::new(); events.len()];
    let mut writer: FxHashMap<Thing, usize> = FxHashMap::default();
    let mut readers: FxHashMap<Thing, Vec<usize>> = FxHashMap::default();
    for (n, event) in events.iter().enumerate() {
        let (reads, writes) = touched(event);
        let mut before: BTreeSet<usize> = BTreeSet::new();
        before.extend(reads.iter().chain(&writes).filter_map(|t| writer.get(t)));
        for t in &writes {
            before.extend(readers.remove(t).unwrap_or_default());
        }
        reads.iter().for_each(|t| readers.entry(*t).or_default().push(n));
        writes.iter().for_each(|t| {
            writer.insert(*t, n);
        });
        before.remove(&n);
        waits[n] = before.len();
        before.iter().for_each(|&b| wakes[b].push(n));
    }
    let mut ready: BTreeSet<usize> = (0..events.len()).filter(|n| waits[*n] == 0).collect();
    let mut out: Vec<UnitEvent> = Vec::with_capacity(events.len());
    while let Some(&first) = ready.first() {
        let like = |n: &&usize| match (out.last(), &events[**n]) {
            (Some(last), next) if matches!(last, UnitEvent::Step { .. }) => continues(last, next),
            (Some(UnitEvent::Host(HostWrite::Vector { .. }, _)), UnitEvent::Host(HostWrite::Vector { .. }, _)) => true,
            _ => false,
        };
        // Far ahead there may be much that is ready; what is near is enough.
        let next = ready.iter().take(64).find(like).copied().unwrap_or(first);
        ready.remove(&next);
        out.push(events[next]);
        for &n in &wakes[next] {
            waits[n] -= 1;
            if waits[n] == 0 {
                ready.insert(n);
            }
        }
    }
    out
}
