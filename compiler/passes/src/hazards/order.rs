//! Who is ordered after what. No clocks: a [`Record`] (an access, or a synchronisation that later ones must follow) carries the
//! set of *carriers* that know it. Carriers are the streams (a pipe of a role), the elements of flags that are up, and for
//! each transaction barrier its current phase and the last one that ended. A stream that knows a record is ordered after it.
//!
//! On a pipe that may start an instruction before the one before it is done there are two carriers: what has *started* on it
//! is ordered after the first, what it *announces* after the second.

use super::touch::Kind;
use ptoc_ir::sync::{BarrierFault, TransactionBarrier};
use ptoc_ir::tile::{Event, EventKind, Kernel, RoleId};
use ptoc_isa::{Pipe, Target};
use std::rc::Rc;

/// Carriers, one bit each.
pub(super) type Carriers = u128;

/// A pipe of a role.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) pipe: Pipe,
    pub(super) role: Option<RoleId>,
    /// What starts on it.
    pub(super) start: Carriers,
    /// What it announces; the same as `start` on a pipe that finishes first.
    pub(super) done: Carriers,
}

/// The carriers of a kernel.
#[derive(Debug)]
pub(super) struct Carried {
    pub(super) streams: Vec<Stream>,
    /// First element of each event, and for flags their first carrier.
    pub(super) first: Vec<u32>,
    /// The event and element of each element.
    pub(super) elements: Vec<(Event, u32)>,
    carrier: Vec<Carriers>,
    /// All carriers by which something starts.
    pub(super) starts: Carriers,
}

impl Carried {
    /// `None`: more than there are bits.
    pub(super) fn new(
        kernel: &Kernel,
        pairs: impl IntoIterator<Item = (Option<RoleId>, Pipe)>,
        target: &Target,
    ) -> Option<Carried> {
        let mut next = 0u32;
        let mut bit = || {
            let b = 1u128.checked_shl(next);
            next += 1;
            b
        };
        let mut streams: Vec<Stream> = Vec::new();
        for (role, pipe) in pairs {
            if streams.iter().all(|s| (s.role, s.pipe) != (role, pipe)) {
                let start = bit()?;
                let done = if target.pipes.barrier.contains(&pipe) && pipe != Pipe::S { bit()? } else { start };
                streams.push(Stream { pipe, role, start, done: start | done });
            }
        }
        let (mut first, mut elements, mut carrier) = (Vec::new(), Vec::new(), Vec::new());
        for (event, data) in &kernel.events {
            first.push(elements.len() as u32);
            for n in 0..data.count {
                elements.push((event, n));
                carrier.push(bit()?);
                if matches!(data.kind, EventKind::Barrier { .. }) {
                    // The phase that ended last.
                    bit()?;
                }
            }
        }
        let starts = streams.iter().fold(0, |all, s| all | s.start);
        Some(Carried { streams, first, elements, carrier, starts })
    }

    pub(super) fn stream(&self, role: Option<RoleId>, pipe: Pipe) -> usize {
        self.streams.iter().position(|s| (s.role, s.pipe) == (role, pipe)).unwrap_or(0)
    }

    /// Everything that a role issues.
    fn role(&self, role: Option<RoleId>) -> Carriers {
        self.streams.iter().filter(|s| s.role == role).fold(0, |all, s| all | s.done)
    }

    /// What is ordered after something that held `stream` back: its later work; behind the issuer all that it issues later.
    fn held(&self, stream: usize) -> Carriers {
        let s = self.streams[stream];
        if s.pipe == Pipe::S { self.role(s.role) } else { s.done }
    }

    fn of(&self, element: u32) -> Carriers {
        self.carrier[element as usize]
    }

    fn ended(&self, element: u32) -> Carriers {
        self.carrier[element as usize] << 1
    }
}

/// What a record is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum What {
    /// An access of bytes.
    Access { area: u32, kind: Kind },
    /// The last wait for an element of a flag.
    Waited(u32),
    /// Took part in the last but one phase of a barrier that ended.
    Older(u32),
    /// Took part in the last phase that ended.
    Before(u32),
    /// Took part in its current phase.
    Now(u32),
    /// Waited for the phase that ended last, while the current one ran.
    Looked(u32),
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) what: What,
    pub(super) site: u32,
    pub(super) stream: u8,
    pub(super) known: Carriers,
    /// Iterations of all loops when it happened; for messages only.
    pub(super) at: Rc<[i64]>,
}

/// A transaction barrier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Barrier {
    pub(super) state: TransactionBarrier,
    /// Bytes that were announced and that came, in this phase.
    pub(super) announced: i64,
    pub(super) came: i64,
    /// The last operation was an arrival without bytes that ended a phase: its site and stream.
    pub(super) early: Option<(u32, u8)>,
}

/// The order at one moment.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) records: Vec<Record>,
    /// The flags that are up, and where each was set last.
    pub(super) up: Vec<Option<u32>>,
    pub(super) barriers: Vec<Option<Barrier>>,
}

/// What a synchronisation finds wrong.
#[derive(Clone, Debug)]
pub(super) enum Wrong {
    /// Waits for a flag that is down.
    Down,
    /// Raises a flag that is up since that site.
    Up(u32),
    /// Raises a flag whose last wait (site, when) may come later.
    Unordered(u32, Rc<[i64]>),
    /// A wait that never ends, for the phase that is not over.
    Stuck { pending: u32, announced: i64, came: i64, completed: u64 },
    /// The waiter may see the phase before; that part of it is not known to it.
    OnePhaseEarly(u32),
    /// The phase may end while that waiter still looks for the one before.
    Overtaken(u32),
    /// May count for the phase before: that site is part of it, and not ordered before.
    MixedPhases(u32),
    /// An arrival ended the phase before its bytes were announced.
    EarlyArrival(u32),
    /// More than a barrier counts.
    TooManyBytes(i64),
}

impl Order {
    pub(super) fn new(kernel: &Kernel, carried: &Carried) -> Order {
        let barrier = |event: Event| match kernel.events[event].kind {
            EventKind::Barrier { arrivals } => TransactionBarrier::new(arrivals).ok().map(|state| Barrier {
                state,
                announced: 0,
                came: 0,
                early: None,
            }),
            EventKind::Flag => None,
        };
        Order {
            records: Vec::new(),
            up: vec![None; carried.elements.len()],
            barriers: carried.elements.iter().map(|(e, _)| barrier(*e)).collect(),
        }
    }

    /// The accesses that an access on `stream` is not ordered after.
    pub(super) fn unordered(&self, carried: &Carried, stream: usize) -> impl Iterator<Item = &Record> {
        let start = carried.streams[stream].start;
        self.records.iter().filter(move |r| r.known & start == 0)
    }

    /// Notes an access. `part_of` says whether all bytes of the first area are in the second.
    pub(super) fn access(&mut self, carried: &Carried, record: Record, part_of: &mut dyn FnMut(u32, u32) -> bool) {
        let s = carried.streams[record.stream as usize];
        let What::Access { area, kind } = record.what else { return };
        // What the issuer reads is read before it issues anything else; what it writes goes through its own cache.
        let known = match (s.pipe, kind) {
            (Pipe::S, Kind::Read) => carried.role(s.role),
            _ => s.done & !(if s.done == s.start { 0 } else { s.start }),
        };
        self.forget(carried);
        self.records.retain(|old| match old.what {
            // Whoever meets the old one unordered meets the new one unordered too.
            What::Access { area: before, kind: was } => {
                !(kind.covers(was) && known & !old.known == 0 && (before == area || part_of(before, area)))
            }
            _ => true,
        });
        self.records.push(Record { known, ..record });
    }

    /// Drops what everyone is ordered after.
    fn forget(&mut self, carried: &Carried) {
        self.records.retain(|r| !matches!(r.what, What::Access { .. }) || carried.starts & !r.known != 0);
    }

    /// Whoever knows one of `from` tells `to`.
    fn tell(&mut self, from: Carriers, to: Carriers) {
        for r in &mut self.records {
            if r.known & from != 0 {
                r.known |= to;
            }
        }
    }

    pub(super) fn set(&mut self, carried: &Carried, element: u32, site: u32, stream: usize) -> Option<Wrong> {
        let s = carried.streams[stream];
        let mut wrong = None;
        if let Some(before) = self.up[element as usize] {
            wrong = Some(Wrong::Up(before));
        } else if let Some(last) = self.records.iter().find(|r| r.what == What::Waited(element))
            && last.known & s.done == 0
        {
            wrong = Some(Wrong::Unordered(last.site, last.at.clone()));
        }
        self.records.retain(|r| r.what != What::Waited(element));
        self.tell(s.done, carried.of(element));
        self.up[element as usize] = Some(site);
        wrong
    }

    pub(super) fn wait(&mut self, carried: &Carried, element: u32, record: Record) -> Option<Wrong> {
        self.up[element as usize].take()?;
        let held = carried.held(record.stream as usize);
        let carrier = carried.of(element);
        self.tell(carrier, held);
        self.records.iter_mut().for_each(|r| r.known &= !carrier);
        self.forget(carried);
        self.records.retain(|r| r.what != What::Waited(element));
        self.records.push(Record { what: What::Waited(element), known: held, ..record });
        None
    }

    /// Records of one thing become one, known to those that know all of them.
    pub(super) fn unite(&mut self) {
        let mut out: Vec<Record> = Vec::with_capacity(self.records.len());
        for r in self.records.drain(..) {
            match out.iter_mut().find(|o| (o.what, o.site, o.stream) == (r.what, r.site, r.stream)) {
                Some(old) => *old = Record { known: old.known & r.known, ..r },
                None => out.push(r),
            }
        }
        self.records = out;
    }

    /// Is the flag up?
    pub(super) fn is_up(&self, element: u32) -> bool {
        self.up[element as usize].is_some()
    }

    /// `pipe_barrier` of a pipe, or of all pipes of a role.
    pub(super) fn barrier(&mut self, carried: &Carried, role: Option<RoleId>, pipe: Option<Pipe>) {
        match pipe {
            Some(p) => {
                let s = carried.streams[carried.stream(role, p)];
                self.tell(s.done, s.start);
            }
            None => {
                let all = carried.role(role);
                self.tell(all, all);
            }
        }
        self.forget(carried);
    }

    /// An arrival, an announcement or bytes: changes the barrier and says what is wrong with it.
    pub(super) fn count(
        &mut self,
        carried: &Carried,
        element: u32,
        record: Record,
        arrives: bool,
        announced: Option<i64>,
        came: Option<i64>,
    ) -> Vec<Wrong> {
        let s = carried.streams[record.stream as usize];
        let mut wrong = Vec::new();
        let Some(b) = self.barriers[element as usize].as_mut() else { return wrong };
        if let Some((site, stream)) = b.early.take()
            && announced.is_some()
            && stream == record.stream
        {
            wrong.push(Wrong::EarlyArrival(site));
        }
        if let Some(part) = self.records.iter().find(|r| r.what == What::Before(element) && r.known & s.done == 0) {
            wrong.push(Wrong::MixedPhases(part.site));
        }
        let plain = arrives && announced.is_none() && b.announced == 0;
        b.announced += announced.unwrap_or(0);
        b.came += came.unwrap_or(0);
        let ended = match (arrives, announced, came) {
            (true, Some(n), _) => b.state.arrive_and_expect(n),
            (true, None, _) => Ok(b.state.arrive()),
            (false, Some(n), _) => b.state.expect(n),
            (false, None, Some(n)) => b.state.complete(n),
            (false, None, None) => Ok(false),
        };
        let ended = match ended {
            Ok(ended) => ended,
            Err(BarrierFault::Bytes(n)) => {
                wrong.push(Wrong::TooManyBytes(n));
                false
            }
            Err(BarrierFault::Arrivals(_)) => false,
        };
        let (site, stream) = (record.site, record.stream);
        if ended {
            (b.announced, b.came) = (0, 0);
            b.early = plain.then_some((site, stream));
        }
        self.tell(s.done, carried.of(element));
        // Waits that this one is ordered after are safe: the phase cannot end without it.
        self.records.retain(|r| !(r.what == What::Looked(element) && r.known & s.done != 0));
        self.records.push(Record { what: What::Now(element), known: s.done | carried.of(element), ..record });
        if ended {
            if let Some(waiter) = self.records.iter().find(|r| r.what == What::Looked(element)) {
                wrong.push(Wrong::Overtaken(waiter.site));
            }
            self.records.retain(|r| r.what != What::Older(element) && r.what != What::Looked(element));
            let (now, ended) = (carried.of(element), carried.ended(element));
            self.tell(now, ended);
            for r in &mut self.records {
                r.known &= !now;
                if r.what == What::Before(element) {
                    r.what = What::Older(element);
                } else if r.what == What::Now(element) {
                    r.what = What::Before(element);
                }
            }
        }
        wrong
    }

    /// Waits while the barrier is in the phase of `parity`. The first of the results is a wait that never ends.
    pub(super) fn wait_phase(
        &mut self,
        carried: &Carried,
        element: u32,
        record: Record,
        parity: u8,
    ) -> Result<Option<Wrong>, Wrong> {
        let s = carried.streams[record.stream as usize];
        let Some(b) = self.barriers[element as usize].as_mut() else { return Ok(None) };
        b.early = None;
        if !b.state.try_wait(parity) {
            return Err(Wrong::Stuck {
                pending: b.state.pending(),
                announced: b.announced,
                came: b.came,
                completed: b.state.completed(),
            });
        }
        if b.state.completed() == 0 {
            // A stage that nobody has filled yet; nothing is seen. The phase must not end before this looks.
            let held = carried.held(record.stream as usize);
            self.look(element, Record { what: What::Looked(element), known: held, ..record });
            return Ok(None);
        }
        // Two phases ago the parity was the same: a waiter that does not know that the phase after that one has ended may
        // get through too early.
        let missed = self.records.iter().find(|r| r.what == What::Older(element) && r.known & s.start == 0);
        let wrong = missed.map(|r| Wrong::OnePhaseEarly(r.site));
        let held = carried.held(record.stream as usize);
        self.tell(carried.ended(element), held);
        self.look(element, Record { what: What::Looked(element), known: held, ..record });
        self.forget(carried);
        Ok(wrong)
    }

    fn look(&mut self, element: u32, record: Record) {
        // A later wait of the same stream stands for the earlier ones.
        let same = |r: &Record| r.what == What::Looked(element) && r.stream == record.stream;
        self.records.retain(|r| !same(r));
        self.records.push(record);
    }

    /// What matters, as numbers: equal ones behave alike.
    pub(super) fn key(&self, out: &mut Vec<u64>) {
        let mut rows: Vec<[u64; 4]> = self
            .records
            .iter()
            .map(|r| {
                let (word, n) = match r.what {
                    What::Access { area, kind } => (kind as u64, area),
                    What::Waited(e) => (8, e),
                    What::Before(e) => (9, e),
                    What::Now(e) => (10, e),
                    What::Looked(e) => (11, e),
                    What::Older(e) => (12, e),
                };
                [
                    word << 32 | u64::from(n),
                    u64::from(r.site) << 8 | u64::from(r.stream),
                    r.known as u64,
                    (r.known >> 64) as u64,
                ]
            })
            .collect();
        rows.sort_unstable();
        out.push(rows.len() as u64);
        out.extend(rows.into_iter().flatten());
        out.extend(self.up.iter().map(|u| u.map_or(0, |s| u64::from(s) + 1)));
        for b in self.barriers.iter().flatten() {
            out.push(u64::from(b.state.pending()) << 2 | b.state.completed().min(1) << 1 | u64::from(b.state.phase()));
            out.extend([b.announced as u64, b.came as u64]);
            out.push(b.early.map_or(0, |(s, t)| u64::from(s) << 8 | u64::from(t) | 1 << 40));
        }
    }
}
