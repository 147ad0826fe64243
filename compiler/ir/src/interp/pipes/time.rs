//! A model of time: every pipe takes what is queued on it in order, as soon as it is free, the issuer has come to it, and what it
//! waits for is there. What an instruction takes says [`crate::cost`]. This is no measurement: there are no bank conflicts, no
//! caches, and no other core uses the memory.

use super::clocks::{Stamp, place};
use super::report::word;
use crate::cost::{self, Work};
use crate::interp::machine::Machine;
use crate::tile::Op;
use ptoc_diagnostics::Span;
use ptoc_isa::{Pipe, PipeTimes};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a pipe did in all blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lane {
    /// 0 is the kernel itself, n its n-th role.
    pub role: u32,
    /// The pipe.
    pub pipe: Pipe,
    /// Cycles in which it was at work.
    pub busy: u64,
    /// Instructions.
    pub count: u64,
}

/// Why a pipe stood still although there was work for it to come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// It waited for an event of that pipe.
    Event(Pipe),
    /// It waited for its own earlier work, or (S) for that of all pipes.
    Barrier,
    /// The issuer had not come to it.
    Issue,
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
    /// One past the last cycle.
    pub end: u64,
    /// The statement.
    pub span: Span,
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
    /// Pipes that did something.
    pub lanes: Vec<Lane>,
    /// The longest first.
    pub stalls: Vec<Stall>,
    /// The first block, by begin; at most [`MOST_SLICES`].
    pub slices: Vec<Slice>,
}

/// Slices that are kept.
pub const MOST_SLICES: usize = 100_000;

pub(super) struct Timeline {
    times: PipeTimes,
    loose: Vec<Pipe>,
    /// By stream: when it can take the next.
    free: Vec<u64>,
    /// By stream: when all that it has is complete.
    done: Vec<u64>,
    /// By role: when the issuer comes to the next.
    issuer: Vec<u64>,
    /// When announcements are made.
    announced: FxHashMap<Stamp, u64>,
    lanes: FxHashMap<u32, (u64, u64)>,
    stalls: FxHashMap<(Span, u32, Cause), u64>,
    /// By stream: stalls that nothing has come after yet. A pipe without further work does not stand still.
    open: Vec<Vec<(Span, Cause, u64)>>,
    slices: Vec<Slice>,
    blocks: Vec<u64>,
}

impl Timeline {
    pub fn new(times: PipeTimes, streams: usize, roles: usize, loose: &[Pipe]) -> Timeline {
        Timeline {
            times,
            loose: loose.to_vec(),
            free: vec![0; streams],
            done: vec![0; streams],
            issuer: vec![0; roles],
            announced: FxHashMap::default(),
            lanes: FxHashMap::default(),
            stalls: FxHashMap::default(),
            open: vec![Vec::new(); streams],
            slices: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// The issuer comes to an instruction for a stream: when that can take it.
    fn issue(&mut self, stream: u32) -> u64 {
        self.issuer[place(stream).0 as usize] += u64::from(self.times.issue);
        self.now(stream)
    }

    /// The same for synchronisation, which is issued along with the instructions.
    fn now(&self, stream: u32) -> u64 {
        self.issuer[place(stream).0 as usize].max(self.free[stream as usize])
    }

    fn stall(&mut self, span: Span, stream: u32, cause: Cause, cycles: u64) {
        if cycles > 0 {
            self.open[stream as usize].push((span, cause, cycles));
        }
    }

    /// S does something by itself.
    pub fn scalar(&mut self, stamp: Stamp) {
        let begin = self.issue(stamp.stream);
        let end = begin + u64::from(self.times.startup[Pipe::S as usize]);
        self.occupy(stamp.stream, begin, end, end);
        self.issuer[place(stamp.stream).0 as usize] = end;
    }

    fn occupy(&mut self, stream: u32, begin: u64, free: u64, done: u64) {
        for (span, cause, cycles) in self.open[stream as usize].drain(..) {
            *self.stalls.entry((span, stream, cause)).or_default() += cycles;
        }
        self.free[stream as usize] = free;
        let last = &mut self.done[stream as usize];
        *last = (*last).max(done);
        let lane = self.lanes.entry(stream).or_default();
        lane.0 += free - begin;
        lane.1 += 1;
    }

    /// An instruction.
    pub fn work(&mut self, stamp: Stamp, work: Work, name: &'static str, span: Span) {
        let (role, pipe) = place(stamp.stream);
        let idle = self.free[stamp.stream as usize];
        let begin = self.issue(stamp.stream);
        // Before its first work a pipe does not stand still.
        if idle > 0 {
            self.stall(span, stamp.stream, Cause::Issue, begin - idle);
        }
        let cycles = work.cycles(&self.times, pipe);
        let end = begin + u64::from(self.times.startup[pipe as usize]) + cycles;
        // A loose pipe starts the next while this one is on its way.
        let free = if self.loose.contains(&pipe) { begin + cycles } else { end };
        self.occupy(stamp.stream, begin, free, end);
        if self.blocks.is_empty() && self.slices.len() < MOST_SLICES {
            self.slices.push(Slice { role, pipe, name, begin, end, span });
        }
    }

    /// A set, or a step of a barrier, after all that its pipe has.
    pub fn announce(&mut self, stamp: Stamp) {
        let now = self.now(stamp.stream).max(self.done[stamp.stream as usize]);
        self.announced.insert(stamp, now);
    }

    /// A wait for announcements of `from`.
    pub fn wait(&mut self, stamp: Stamp, after: &[Stamp], from: Pipe, span: Span) {
        let begin = self.now(stamp.stream);
        let came = after.iter().filter_map(|s| self.announced.get(s)).max();
        let goes = came.map_or(begin, |&t| begin.max(t + u64::from(self.times.sync)));
        self.stall(span, stamp.stream, Cause::Event(from), goes - begin);
        self.free[stamp.stream as usize] = goes;
        let (role, pipe) = place(stamp.stream);
        if pipe == Pipe::S {
            self.issuer[role as usize] = goes;
        }
    }

    /// A pipe waits for itself.
    pub fn barrier(&mut self, stamp: Stamp, span: Span) {
        let begin = self.now(stamp.stream);
        let goes = begin.max(self.done[stamp.stream as usize]);
        self.stall(span, stamp.stream, Cause::Barrier, goes - begin);
        self.free[stamp.stream as usize] = goes;
    }

    /// The issuer waits for all of its pipes, of each of which the last is given.
    pub fn barrier_of_all(&mut self, last: &[Stamp], span: Span) {
        let Some(stream) = last.iter().map(|s| s.stream).find(|&s| place(s).1 == Pipe::S) else { return };
        let begin = self.now(stream);
        let goes = last.iter().map(|s| self.done[s.stream as usize]).fold(begin, u64::max);
        self.stall(span, stream, Cause::Barrier, goes - begin);
        self.issuer[place(stream).0 as usize] = goes;
    }

    pub fn end_block(&mut self) {
        let last = self.done.iter().chain(&self.free).chain(&self.issuer).copied().max().unwrap_or(0);
        self.blocks.push(last);
        self.free.fill(0);
        self.done.fill(0);
        self.issuer.fill(0);
        self.announced.clear();
        self.open.iter_mut().for_each(Vec::clear);
    }

    pub fn finish(self) -> Timing {
        let mut cores: BinaryHeap<Reverse<u64>> = (0..self.times.cores.max(1)).map(|_| Reverse(0)).collect();
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
        let mut slices = self.slices;
        slices.sort_by_key(|s| (s.begin, s.end, s.role, s.pipe));
        Timing {
            clock: self.times.clock,
            cores: self.times.cores,
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
            slices,
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
