//! When the core's units do what the roles of a block have issued. A core has one unit of each kind, whatever the
//! number of roles: each role has a queue to each unit, and the unit takes what is ready first (of several the one of
//! the first role).
//!
//! What is ready when depends on what the units took before, in all roles, so a block is timed as it would run: always
//! the work that can begin first begins. Nothing that comes later can be ready earlier, since it follows from work that
//! begins later. Program order would not do: a role that stands later in the source would come later, too.

use super::super::clocks::{Stamp, place, stream};
use ptoc_diagnostics::Span;
use ptoc_isa::{Pipe, PipeTimes};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::Range;

/// What a pipe stood still for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// It waited for an event of that pipe.
    Event(Pipe),
    /// It waited for its own earlier work, or (S) for that of all pipes.
    Barrier,
    /// The issuer had not come to it.
    Issue,
    /// Another role had the unit.
    Unit,
}

/// Something issued, as it stands in the queue of its role or of its pipe.
#[derive(Debug)]
pub(super) enum QueuedInst {
    /// S does something by itself.
    Scalar { name: &'static str, span: Span },
    /// An instruction of so many cycles, without the startup.
    Work { cycles: u64, name: &'static str, span: Span },
    /// A set, or a step of a barrier, after all that its pipe has.
    Announce(Stamp, Span),
    /// A wait for announcements of a pipe.
    Wait { after: Vec<Stamp>, from: Pipe, event: EventElement, span: Span },
    /// A pipe waits for itself.
    Barrier(Span),
    /// The issuer waits for all pipes of its role.
    BarrierOfAll(Span),
}

/// A unit at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Grant {
    pub stream: u32,
    /// First cycle.
    pub begin: u64,
    /// From here on the unit can take other work.
    pub free: u64,
    /// From here on the result is there.
    pub done: u64,
    /// Mnemonic and statement.
    pub what: (&'static str, Span),
}

/// An element of an array of events, by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EventElement {
    /// The event in the kernel's list.
    pub event: u32,
    /// 0 of a single one.
    pub element: u32,
}

/// A pipe stood still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pause {
    /// The statement that waited, or that came late.
    pub span: Span,
    pub stream: u32,
    pub cause: Cause,
    /// First cycle.
    pub begin: u64,
    pub cycles: u64,
}

/// An announcement that a wait was for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    pub event: EventElement,
    /// Who set it, when and in which statement.
    pub set: (u32, u64, Span),
    /// Who waited, the cycle in which it went on, and the statement.
    pub wait: (u32, u64, Span),
}

/// The queues of a pipe of a role.
#[derive(Default)]
struct Stream {
    /// What was issued to it, and when.
    queue: VecDeque<(u64, QueuedInst)>,
    /// When it can take the next.
    free: u64,
    /// When all that it has is complete.
    done: u64,
    /// Pauses that nothing has come after yet. A pipe without further work does not stand still.
    open: Vec<Pause>,
}

/// A role: what its issuer has still to come to, by stream, and when it comes to the next.
#[derive(Default)]
struct Issuer {
    ahead: VecDeque<(u32, QueuedInst)>,
    time: u64,
}

/// Work that is ready, in the order in which units take it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    /// When the unit can begin it.
    begin: u64,
    /// Since when it waits for the unit.
    since: u64,
    role: usize,
    /// Its pipe; `None`: the issuer wants S.
    pipe: Option<usize>,
}

/// The units of a core, and what a block gives them to do.
pub(super) struct Core {
    times: PipeTimes,
    /// By pipe: it starts the next while the one before is on its way.
    loose: [bool; Pipe::ALL.len()],
    /// By unit: when it can take the next.
    units: [u64; Pipe::ALL.len()],
    issuers: Vec<Issuer>,
    streams: Vec<Stream>,
    /// When announcements are made, and in which statement; `None`: not known yet.
    announced: FxHashMap<Stamp, Option<(u64, Span)>>,
    pub grants: Vec<Grant>,
    pub pauses: Vec<Pause>,
    pub seen: Vec<Seen>,
}

impl Core {
    pub fn new(times: PipeTimes, streams: usize, roles: usize, loose: &[Pipe]) -> Core {
        Core {
            times,
            loose: Pipe::ALL.map(|p| loose.contains(&p)),
            units: [0; Pipe::ALL.len()],
            issuers: (0..roles).map(|_| Issuer::default()).collect(),
            streams: (0..streams).map(|_| Stream::default()).collect(),
            announced: FxHashMap::default(),
            grants: Vec::new(),
            pauses: Vec::new(),
            seen: Vec::new(),
        }
    }

    pub fn times(&self) -> &PipeTimes {
        &self.times
    }

    /// A role issues something, in program order.
    pub fn push(&mut self, stream: u32, mut step: QueuedInst) {
        match &mut step {
            QueuedInst::Announce(stamp, _) => drop(self.announced.insert(*stamp, None)),
            // What was not announced in the program's order never is.
            QueuedInst::Wait { after, .. } => after.retain(|s| self.announced.contains_key(s)),
            _ => {}
        }
        self.issuers[place(stream).0 as usize].ahead.push_back((stream, step));
        // Who has the units alone takes them in program order.
        if self.issuers.len() == 1 {
            self.run();
        }
    }

    /// Ends the block: when everything is done.
    pub fn end_block(&mut self) -> u64 {
        self.run();
        debug_assert!(
            self.issuers.iter().all(|i| i.ahead.is_empty()) && self.streams.iter().all(|s| s.queue.is_empty())
        );
        let streams = self.streams.iter().map(|s| s.done.max(s.free));
        let last = streams.chain(self.issuers.iter().map(|i| i.time)).max().unwrap_or(0);
        self.units.fill(0);
        self.issuers.iter_mut().for_each(|i| *i = Issuer::default());
        self.streams.iter_mut().for_each(|s| *s = Stream::default());
        self.announced.clear();
        last
    }

    /// Does all that was issued.
    fn run(&mut self) {
        loop {
            while self.settle() {}
            let Some(first) = self.first() else { break };
            self.begin(first);
        }
    }

    /// Does what needs no unit: issues synchronisation, and takes it from the heads of the queues, as far as it goes.
    fn settle(&mut self) -> bool {
        let mut moved = false;
        for role in 0..self.issuers.len() {
            while let Some((stream, step)) = self.issuers[role].ahead.front() {
                let queued = place(*stream).1 != Pipe::S
                    && !matches!(step, QueuedInst::Work { .. } | QueuedInst::BarrierOfAll(_));
                if !queued && !self.goes(role, step) {
                    break;
                }
                let Some((stream, step)) = self.issuers[role].ahead.pop_front() else { break };
                let time = self.issuers[role].time;
                match queued {
                    true => self.streams[stream as usize].queue.push_back((time, step)),
                    false => self.synchronise(stream, time, step),
                }
                moved = true;
            }
        }
        for stream in 0..self.streams.len() {
            while let Some((_, step)) = self.streams[stream].queue.front() {
                if !self.goes(place(stream as u32).0 as usize, step) {
                    break;
                }
                let Some((issued, step)) = self.streams[stream].queue.pop_front() else { break };
                self.synchronise(stream as u32, issued, step);
                moved = true;
            }
        }
        moved
    }

    /// Whether all is known that this depends on, and it needs no unit.
    fn goes(&self, role: usize, step: &QueuedInst) -> bool {
        match step {
            QueuedInst::Scalar { .. } | QueuedInst::Work { .. } => false,
            QueuedInst::Wait { after, .. } => after.iter().all(|s| matches!(self.announced.get(s), Some(Some(_)))),
            QueuedInst::BarrierOfAll(_) => self.own(role).all(|s| s.queue.is_empty()),
            QueuedInst::Announce(..) | QueuedInst::Barrier(_) => true,
        }
    }

    /// The pipes of a role.
    fn own(&self, role: usize) -> impl Iterator<Item = &Stream> {
        let all = self.streams.iter().enumerate();
        all.filter(move |(at, _)| place(*at as u32).0 as usize == role).map(|(_, s)| s)
    }

    /// Synchronisation that was issued at a time, and comes to the head of its queue.
    fn synchronise(&mut self, stream: u32, issued: u64, step: QueuedInst) {
        let (role, pipe) = place(stream);
        let (at, role) = (stream as usize, role as usize);
        let begin = issued.max(self.streams[at].free);
        let done = self.streams[at].done;
        let (goes, span, cause) = match step {
            QueuedInst::Announce(stamp, span) => {
                self.announced.insert(stamp, Some((begin.max(done), span)));
                return;
            }
            QueuedInst::Wait { after, from, event, span } => {
                let sets = after.iter().filter_map(|s| Some((s.stream, (*self.announced.get(s)?)?)));
                let sets: Vec<(u32, (u64, Span))> = sets.collect();
                let came = sets.iter().map(|(_, (time, _))| *time).max();
                let goes = came.map_or(begin, |t| begin.max(t + u64::from(self.times.sync)));
                self.seen.extend(sets.into_iter().map(|(setter, (time, set))| Seen {
                    event,
                    set: (setter, time, set),
                    wait: (stream, goes, span),
                }));
                // S is the issuer: what it waits for holds up all that comes later.
                if pipe == Pipe::S {
                    self.issuers[role].time = goes;
                }
                (goes, span, Cause::Event(from))
            }
            QueuedInst::Barrier(span) => (begin.max(done), span, Cause::Barrier),
            QueuedInst::BarrierOfAll(span) => {
                let goes = self.own(role).map(|s| s.done).fold(begin, u64::max);
                self.pause(at, span, Cause::Barrier, begin..goes);
                self.issuers[role].time = goes;
                return;
            }
            QueuedInst::Scalar { .. } | QueuedInst::Work { .. } => unreachable!("work needs a unit"),
        };
        self.pause(at, span, cause, begin..goes);
        self.streams[at].free = goes;
    }

    fn pause(&mut self, stream: usize, span: Span, cause: Cause, time: Range<u64>) {
        if !time.is_empty() {
            let (begin, cycles) = (time.start, time.end - time.start);
            self.streams[stream].open.push(Pause { span, stream: stream as u32, cause, begin, cycles });
        }
    }

    /// What begins next.
    fn first(&self) -> Option<Ready> {
        let issuers = self.issuers.iter().enumerate().filter_map(|(role, issuer)| {
            let work = matches!(issuer.ahead.front()?.1, QueuedInst::Scalar { .. } | QueuedInst::Work { .. });
            let since = issuer.time;
            work.then(|| Ready { begin: since.max(self.units[Pipe::S as usize]), since, role, pipe: None })
        });
        let streams = self.streams.iter().enumerate().filter_map(|(at, stream)| {
            let (issued, QueuedInst::Work { .. }) = stream.queue.front()? else { return None };
            let (role, pipe) = place(at as u32);
            let since = stream.free.max(*issued);
            let begin = since.max(self.units[pipe as usize]);
            Some(Ready { begin, since, role: role as usize, pipe: Some(pipe as usize) })
        });
        issuers.chain(streams).min()
    }

    /// A unit begins something.
    fn begin(&mut self, ready: Ready) {
        match ready.pipe {
            None => self.issue(ready),
            Some(pipe) => self.work(ready, Pipe::ALL[pipe]),
        }
    }

    /// The issuer of a role comes to an instruction, and S, which it is, is busy with that.
    fn issue(&mut self, ready: Ready) {
        let Some((stream, step)) = self.issuers[ready.role].ahead.pop_front() else { return };
        let (at, mut end) = (stream as usize, ready.begin + u64::from(self.times.issue));
        match step {
            QueuedInst::Scalar { name, span } => {
                let begin = end.max(self.streams[at].free);
                end = begin + u64::from(self.times.startup[Pipe::S as usize]);
                self.occupy(Grant { stream, begin, free: end, done: end, what: (name, span) });
            }
            step => self.streams[at].queue.push_back((end, step)),
        }
        self.units[Pipe::S as usize] = end;
        self.issuers[ready.role].time = end;
    }

    /// A pipe begins an instruction.
    fn work(&mut self, ready: Ready, pipe: Pipe) {
        let stream = stream(ready.role as u32, pipe);
        let at = stream as usize;
        let Some((_, QueuedInst::Work { cycles, name, span })) = self.streams[at].queue.pop_front() else { return };
        let (begin, idle) = (ready.begin, self.streams[at].free);
        // Before its first work a pipe does not stand still.
        if idle > 0 {
            self.pause(at, span, Cause::Issue, idle..ready.since);
        }
        self.pause(at, span, Cause::Unit, ready.since..begin);
        let done = begin + u64::from(self.times.startup[pipe as usize]) + cycles;
        // A loose pipe starts the next while this one is on its way.
        let free = if self.loose[pipe as usize] { begin + cycles } else { done };
        self.occupy(Grant { stream, begin, free, done, what: (name, span) });
        self.units[pipe as usize] = free;
    }

    fn occupy(&mut self, grant: Grant) {
        let stream = &mut self.streams[grant.stream as usize];
        self.pauses.append(&mut stream.open);
        stream.free = grant.free;
        stream.done = stream.done.max(grant.done);
        self.grants.push(grant);
    }
}
