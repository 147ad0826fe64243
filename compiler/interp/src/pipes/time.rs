//! A model of time: every pipe takes what is queued on it in order, as soon as its unit is free, the issuer has come to
//! it, and what it waits for is there ([`core`]). What an instruction takes says [`crate::cost`]. This is no
//! measurement: there are no bank conflicts, no caches, and no other core uses the memory.

mod core;

pub use self::core::{Cause, EventElement};

use self::core::{Core, Grant, Pause, QueuedInst, Seen};
use super::clocks::{Stamp, place, stream};
use super::report::word;
use crate::cost;
use crate::cost::Work;
use crate::machine::Machine;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::Op;
use ptoc_isa::{Pipe, PipeTimes};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a role gave a unit to do, in all blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lane {
    /// 0 is the kernel itself, n its n-th role.
    pub role: u32,
    /// The pipe.
    pub pipe: Pipe,
    /// Cycles in which the unit was at work for it.
    pub busy: u64,
    /// Instructions.
    pub count: u64,
}

/// Cycles in which a pipe stood still.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stall {
    /// The statement that waited, or that came late.
    pub span: Span,
    /// As in [`Lane`].
    pub role: u32,
    /// Who stood still.
    pub pipe: Pipe,
    /// What for.
    pub cause: Cause,
    /// In all blocks.
    pub cycles: u64,
}

/// An instruction of the first block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice {
    /// As in [`Lane`].
    pub role: u32,
    /// Its pipe.
    pub pipe: Pipe,
    /// Its mnemonic.
    pub name: &'static str,
    /// First cycle.
    pub begin: u64,
    /// From this cycle on the unit takes other work.
    pub free: u64,
    /// One past the last cycle: the result is there.
    pub end: u64,
    /// The statement.
    pub span: Span,
}

/// A pipe that stood still in the first block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StallInterval {
    /// As in [`Lane`].
    pub role: u32,
    /// Who stood still.
    pub pipe: Pipe,
    /// What for.
    pub cause: Cause,
    /// First cycle.
    pub begin: u64,
    /// One past the last cycle.
    pub end: u64,
    /// The statement that waited, or that came late.
    pub span: Span,
}

/// A point in time of a pipe, and the statement that comes there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moment {
    /// As in [`Lane`].
    pub role: u32,
    /// The pipe.
    pub pipe: Pipe,
    /// The cycle.
    pub cycle: u64,
    /// The statement.
    pub span: Span,
}

/// A flag of the first block, from the set to the wait that it ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signal {
    /// Which.
    pub event: EventElement,
    /// Set here, or, of a barrier, arrived at.
    pub set: Moment,
    /// The wait goes on here.
    pub wait: Moment,
}

/// The first block in full, as far as it is kept.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlockTimeline {
    /// Instructions by begin, those of S among them; at most [`MOST_SLICES`].
    pub slices: Vec<Slice>,
    /// As they came about; at most [`MOST_SLICES`].
    pub stalls: Vec<StallInterval>,
    /// As the waits ended; at most [`MOST_SLICES`].
    pub signals: Vec<Signal>,
    /// Cycles of the block.
    pub cycles: u64,
    /// The first cycle of an instruction that was not kept.
    pub lost_from: Option<u64>,
}

/// What the model says of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Cycles a microsecond.
    pub clock: u32,
    /// Cores that share the blocks.
    pub cores: u32,
    /// Blocks.
    pub blocks: u64,
    /// Cycles of all blocks one after another.
    pub cycles: u64,
    /// Cycles of the longest block.
    pub longest: u64,
    /// Cycles until the last core is done, where each takes the next block when it is free.
    pub makespan: u64,
    /// Pipes of roles that did something.
    pub lanes: Vec<Lane>,
    /// The longest first.
    pub stalls: Vec<Stall>,
    /// What the units did when, in the first block.
    pub first: BlockTimeline,
}

/// Slices that are kept.
pub const MOST_SLICES: usize = 100_000;

/// What a unit did, whoever gave it to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnitUse {
    /// The unit.
    pub unit: Pipe,
    /// Cycles in which it was at work.
    pub busy: u64,
    /// Instructions.
    pub count: u64,
}

impl Timing {
    /// What each unit did that did anything. None of them is busy for longer than the blocks take.
    pub fn units(&self) -> Vec<UnitUse> {
        let mut units: Vec<UnitUse> = Vec::new();
        for lane in &self.lanes {
            match units.iter_mut().find(|u| u.unit == lane.pipe) {
                Some(u) => (u.busy, u.count) = (u.busy + lane.busy, u.count + lane.count),
                None => units.push(UnitUse { unit: lane.pipe, busy: lane.busy, count: lane.count }),
            }
        }
        units.sort_by_key(|u| u.unit);
        units
    }
}

impl BlockTimeline {
    fn slice(&mut self, grant: &Grant) {
        if self.slices.len() >= MOST_SLICES {
            self.lost_from = Some(self.lost_from.map_or(grant.begin, |at| at.min(grant.begin)));
            return;
        }
        let ((role, pipe), (name, span)) = (place(grant.stream), grant.what);
        self.slices.push(Slice { role, pipe, name, begin: grant.begin, free: grant.free, end: grant.done, span });
    }

    fn stall(&mut self, pause: &Pause) {
        if self.stalls.len() < MOST_SLICES {
            let ((role, pipe), end) = (place(pause.stream), pause.begin + pause.cycles);
            let (cause, begin, span) = (pause.cause, pause.begin, pause.span);
            self.stalls.push(StallInterval { role, pipe, cause, begin, end, span });
        }
    }

    fn signal(&mut self, seen: &Seen) {
        if self.signals.len() < MOST_SLICES {
            let moment = |(stream, cycle, span): (u32, u64, Span)| {
                let (role, pipe) = place(stream);
                Moment { role, pipe, cycle, span }
            };
            self.signals.push(Signal { event: seen.event, set: moment(seen.set), wait: moment(seen.wait) });
        }
    }
}

pub(super) struct Timeline {
    clock: u32,
    cores: u32,
    core: Core,
    lanes: FxHashMap<u32, (u64, u64)>,
    stalls: FxHashMap<(Span, u32, Cause), u64>,
    first: BlockTimeline,
    blocks: Vec<u64>,
}

impl Timeline {
    pub fn new(times: PipeTimes, streams: usize, roles: usize, loose: &[Pipe]) -> Timeline {
        Timeline {
            clock: times.clock,
            cores: times.cores,
            core: Core::new(times, streams, roles, loose),
            lanes: FxHashMap::default(),
            stalls: FxHashMap::default(),
            first: BlockTimeline::default(),
            blocks: Vec::new(),
        }
    }

    /// S does something by itself.
    pub fn scalar(&mut self, stamp: Stamp, name: &'static str, span: Span) {
        self.push(stamp.stream, QueuedInst::Scalar { name, span });
    }

    /// An instruction.
    pub fn work(&mut self, stamp: Stamp, work: Work, name: &'static str, span: Span) {
        let cycles = work.cycles(self.core.times(), place(stamp.stream).1);
        self.push(stamp.stream, QueuedInst::Work { cycles, name, span });
    }

    /// A set, or a step of a barrier, after all that its pipe has.
    pub fn announce(&mut self, stamp: Stamp, span: Span) {
        self.push(stamp.stream, QueuedInst::Announce(stamp, span));
    }

    /// A wait for announcements of `from`.
    pub fn wait(&mut self, stamp: Stamp, after: &[Stamp], from: Pipe, event: EventElement, span: Span) {
        self.push(stamp.stream, QueuedInst::Wait { after: after.to_vec(), from, event, span });
    }

    /// A pipe waits for itself.
    pub fn barrier(&mut self, stamp: Stamp, span: Span) {
        self.push(stamp.stream, QueuedInst::Barrier(span));
    }

    /// The issuer of a role waits for all of its pipes.
    pub fn barrier_of_all(&mut self, role: u32, span: Span) {
        self.push(stream(role, Pipe::S), QueuedInst::BarrierOfAll(span));
    }

    fn push(&mut self, stream: u32, step: QueuedInst) {
        self.core.push(stream, step);
        self.note();
    }

    pub fn end_block(&mut self) {
        let last = self.core.end_block();
        self.note();
        if self.blocks.is_empty() {
            self.first.cycles = last;
        }
        self.blocks.push(last);
    }

    /// Adds up what the units have done since the last time.
    fn note(&mut self) {
        let mut kept = self.blocks.is_empty().then_some(&mut self.first);
        for pause in self.core.pauses.drain(..) {
            *self.stalls.entry((pause.span, pause.stream, pause.cause)).or_default() += pause.cycles;
            if let Some(first) = &mut kept {
                first.stall(&pause);
            }
        }
        for grant in self.core.grants.drain(..) {
            let lane = self.lanes.entry(grant.stream).or_default();
            *lane = (lane.0 + grant.free - grant.begin, lane.1 + 1);
            if let Some(first) = &mut kept {
                first.slice(&grant);
            }
        }
        match kept {
            Some(first) => self.core.seen.drain(..).for_each(|seen| first.signal(&seen)),
            None => self.core.seen.clear(),
        }
    }

    /// A core that has done a block takes the next one: the units of a core never work for two.
    pub fn finish(self) -> Timing {
        let mut cores: BinaryHeap<Reverse<u64>> = (0..self.cores.max(1)).map(|_| Reverse(0)).collect();
        let mut makespan = 0;
        for &block in &self.blocks {
            let end = cores.pop().map_or(0, |Reverse(t)| t) + block;
            makespan = makespan.max(end);
            cores.push(Reverse(end));
        }
        let mut lanes: Vec<(u32, (u64, u64))> = self.lanes.into_iter().collect();
        lanes.sort_unstable();
        let mut stalls: Vec<((Span, u32, Cause), u64)> = self.stalls.into_iter().collect();
        stalls.sort_unstable_by_key(|&((span, stream, cause), cycles)| (Reverse(cycles), span.start, stream, cause));
        let mut first = self.first;
        first.slices.sort_by_key(|s| (s.begin, s.end, s.role, s.pipe));
        Timing {
            clock: self.clock,
            cores: self.cores,
            blocks: self.blocks.len() as u64,
            cycles: self.blocks.iter().sum(),
            longest: self.blocks.iter().copied().max().unwrap_or(0),
            makespan,
            lanes: lanes
                .into_iter()
                .map(|(stream, (busy, count))| {
                    let (role, pipe) = place(stream);
                    Lane { role, pipe, busy, count }
                })
                .collect(),
            stalls: stalls
                .into_iter()
                .map(|((span, stream, cause), cycles)| {
                    let (role, pipe) = place(stream);
                    Stall { span, role, pipe, cause, cycles }
                })
                .collect(),
            first,
        }
    }
}

/// A word for an instruction.
pub(super) fn name_of(op: &Op) -> &'static str {
    word(op)
}

/// What an instruction has to do now.
pub(super) fn work_of(m: &Machine<'_, '_>, op: &Op) -> Work {
    cost::work_of(m.k, op, &|v, _| m.index(v).max(0) as u64)
}

#[cfg(test)]
mod tests;
