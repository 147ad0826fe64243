//! Happens-before: who is ordered after what. No clocks: a [`Record`] (an access, or a synchronisation that later ones
//! must follow) carries the set of *carriers* that know it. Carriers are the streams (a pipe of a role), the elements
//! of flags that are up, and for each transaction barrier its current phase and the last one that ended. A stream that
//! knows a record is ordered after it.
//!
//! On a pipe that may start an instruction before the one before it is done there are two carriers: what has *started*
//! on it is ordered after the first, what it *announces* after the second.

use super::phases::Barrier;
use super::poly::PolyInterval;
use super::touch::TouchKind;
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

    /// What is ordered after something that held `stream` back: its later work; behind the issuer all that it issues
    /// later.
    pub(super) fn held(&self, stream: usize) -> Carriers {
        let s = self.streams[stream];
        if s.pipe == Pipe::S { self.role(s.role) } else { s.done }
    }

    pub(super) fn of(&self, element: u32) -> Carriers {
        self.carrier[element as usize]
    }

    pub(super) fn ended(&self, element: u32) -> Carriers {
        self.carrier[element as usize] << 1
    }
}

/// What a record is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum What {
    /// An access of bytes.
    Access { area: u32, kind: TouchKind },
    /// The last wait for an element of a flag.
    Waited(u32),
    /// Took part in the last but one phase of a barrier that ended.
    Older(u32),
    /// Took part in the last phase that ended.
    Before(u32),
    /// Took part in its current phase, as the step of that number.
    Now(u32, u8),
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

/// The order at one moment.
#[derive(Clone, Default, Debug)]
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
    Stuck {
        pending: u32,
        announced: PolyInterval,
        came: PolyInterval,
        completed: u64,
        /// Nothing has taken part in the phase yet.
        fresh: bool,
    },
    /// The waiter may see the phase before; that part of it is not known to it.
    OnePhaseEarly(u32),
    /// The phase may end while that waiter still looks for the one before.
    Overtaken(u32),
    /// May count for the phase before: that site is part of it, and not ordered before.
    MixedPhases(u32),
    /// An arrival ended the phase before its bytes were announced.
    EarlyArrival(u32),
    /// All arrivals of the phase may come before the bytes of `late` are announced; the last one in the program.
    Unannounced { late: u32, last: u32 },
    /// One arrival more than the phase takes; the last that it took.
    Surplus(u32),
    /// More than a barrier counts.
    TooManyBytes(i64),
    /// Whether the phase ends here depends on numbers of bytes that are not known.
    UnknownBytes,
}

impl Order {
    pub(super) fn new(kernel: &Kernel, carried: &Carried) -> Order {
        let barrier = |event: Event| match kernel.events[event].kind {
            EventKind::Barrier { arrivals } => Some(Barrier::new(arrivals)),
            EventKind::Flag => None,
        };
        Order {
            records: Vec::new(),
            up: vec![None; carried.elements.len()],
            barriers: carried.elements.iter().map(|(e, _)| barrier(*e)).collect(),
        }
    }

    /// Notes an access. `part_of` says whether all bytes of the first area are in the second.
    pub(super) fn access(&mut self, carried: &Carried, record: Record, part_of: &mut dyn FnMut(u32, u32) -> bool) {
        let s = carried.streams[record.stream as usize];
        let What::Access { area, kind } = record.what else { return };
        // What the issuer reads is read before it issues anything else; what it writes goes through its own cache.
        let known = match (s.pipe, kind) {
            (Pipe::S, TouchKind::Read) => carried.role(s.role),
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
    pub(super) fn forget(&mut self, carried: &Carried) {
        self.records.retain(|r| !matches!(r.what, What::Access { .. }) || carried.starts & !r.known != 0);
    }

    /// Whoever knows one of `from` tells `to`.
    pub(super) fn tell(&mut self, from: Carriers, to: Carriers) {
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

    /// Whether the flag is up.
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

    /// What matters, as numbers: equal ones behave alike.
    pub(super) fn key(&self, out: &mut Vec<u64>) {
        let mut rows: Vec<[u64; 4]> = self
            .records
            .iter()
            .map(|r| {
                let (word, n) = match r.what {
                    What::Access { area, kind } => (0x1000 + u64::from(kind.number()), area),
                    What::Waited(e) => (8, e),
                    What::Before(e) => (9, e),
                    What::Now(e, step) => (16 + u64::from(step), e),
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
        self.barriers.iter().flatten().for_each(|b| b.key(out));
    }
}
