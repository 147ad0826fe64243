//! Diagnostics already reported: what was told already. A walk that comes to such a fault goes on as if it were mended
//! (a wait that never ends is the end of its way), so that what only follows from it is not found: a second error is a
//! second mistake.

use super::find::{Finding, HazardFault, Key};
use super::interpreter::HazardInterpreter;
use super::order::{Carriers, Record, What, Wrong};
use super::state::HazardState;
use super::text;
use super::touch::TouchKind;
use ptoc_ir::tile::{Event, EventKind, Kernel, Op, Purpose, SyncOp};
use ptoc_isa::Pipe;
use rustc_hash::FxHashSet;

/// Faults that were told.
#[derive(Clone, Default, Debug)]
pub(super) struct Told {
    keys: FxHashSet<Key>,
    events: FxHashSet<Event>,
    /// Accesses, and pipes whose accesses before they are not ordered after.
    pairs: FxHashSet<(u32, Pipe)>,
    /// Pipes that hand over to one another by an event of which a fault was told: there and back is one matter.
    handshakes: FxHashSet<(Pipe, Pipe)>,
    /// Streams that nothing orders with others.
    lonely: FxHashSet<usize>,
    /// Blocks in loops in which what is left up is waited for.
    left: Vec<Vec<(usize, usize)>>,
}

impl Told {
    pub(super) fn add(&mut self, walk: &HazardInterpreter, f: &Finding) {
        self.keys.insert(f.key());
        for element in f.element.into_iter().chain(f.loose) {
            let (event, _) = walk.carried.elements[element as usize];
            self.events.insert(event);
            // The two events of a ring have one name.
            let events = &walk.code.kernel.events;
            let ring = |e: &Event| events[*e].purpose != Purpose::Author && events[*e].name == events[event].name;
            if ring(&event) {
                self.events.extend(events.keys().filter(ring));
            }
        }
        match (&f.fault, &f.other, f.element) {
            (HazardFault::Race { .. }, Some((other, _)), _) => {
                let (a, b) = (walk.stream(*other as usize), walk.stream(f.site as usize));
                let (pipe, own) = (walk.carried.streams[a], walk.carried.streams[b]);
                self.pairs.insert((f.site, pipe.pipe));
                // One pipe of two roles: that one of them is ordered with nothing is one matter.
                if pipe.pipe == own.pipe && pipe.role != own.role {
                    self.lonely.extend([a, b].into_iter().filter(|s| walk.is_lonely(*s)));
                }
            }
            (HazardFault::LeftUp, _, Some(element)) => {
                self.left.extend(walk.last_wait(element, f.site).map(<[_]>::to_vec));
                let (from, to) = walk.ends(element);
                self.handshakes.extend([(from, to), (to, from)]);
            }
            (HazardFault::Race { .. }, ..) => {}
            (.., Some(element)) => {
                let (from, to) = walk.ends(element);
                self.handshakes.extend([(from, to), (to, from)]);
            }
            _ => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a barrier between these two pipes is told to have the wrong phase: the pair relies on it.
    fn phase(&self, kernel: &Kernel, a: Pipe, b: Pipe) -> bool {
        let between = |e: &&Event| {
            let data = &kernel.events[**e];
            let barrier = matches!(data.kind, EventKind::Barrier { .. });
            barrier && [(a, b), (b, a)].contains(&(data.from, data.to))
        };
        self.events.iter().any(|e| between(&e))
    }
}

impl HazardInterpreter<'_> {
    /// Whether this was told, or follows from what was. Of the faults of the events between two pipes the first is
    /// told.
    pub(super) fn is_told(&self, f: &Finding) -> bool {
        if self.told.is_empty() {
            return false;
        }
        let mut events = f.element.into_iter().chain(f.loose).map(|e| self.carried.elements[e as usize].0);
        let own = events.any(|e| self.told.events.contains(&e));
        let pair = match (&f.fault, &f.other) {
            (HazardFault::Race { .. }, Some((other, _))) => {
                let pipe = |site: u32| self.carried.streams[self.stream(site as usize)].pipe;
                self.told.pairs.iter().any(|&(site, p)| p == pipe(*other) && self.is_part(site, f.site))
                    || self.told.phase(self.code.kernel, pipe(*other), pipe(f.site))
                    || [*other, f.site].iter().any(|s| self.told.lonely.contains(&self.stream(*s as usize)))
            }
            (HazardFault::Race { .. }, None) => false,
            // The waits of several flags stand in one loop, which is too short.
            (HazardFault::LeftUp, _)
                if f.element
                    .and_then(|e| self.last_wait(e, f.site))
                    .is_some_and(|r| self.told.left.iter().any(|l| l == r)) =>
            {
                true
            }
            _ => f.element.is_some_and(|e| self.told.handshakes.contains(&self.ends(e))),
        };
        own || pair || self.told.keys.contains(&f.key())
    }

    /// Whether two operations are the same, or the one a part of the expression that the other one is.
    fn is_part(&self, a: u32, b: u32) -> bool {
        let (x, y) = (text::span(self, a), text::span(self, b));
        a == b || self.stream(a as usize) == self.stream(b as usize) && (x.contains(y) || y.contains(x))
    }

    /// The flags that are up and were set behind `record`.
    pub(super) fn loose<'a>(&'a self, state: &'a HazardState, record: &'a Record) -> impl Iterator<Item = u32> + 'a {
        let all = 0..state.order.up.len() as u32;
        all.filter(|&e| state.order.is_up(e) && record.known & self.carried.of(e) != 0)
    }

    /// The event of several elements, as its first of them, if it is only one.
    pub(super) fn only(&self, mut elements: impl Iterator<Item = u32>) -> Option<u32> {
        let first = elements.next()?;
        let event = |e: u32| self.carried.elements[e as usize].0;
        elements.all(|e| event(e) == event(first)).then_some(first)
    }

    /// Where an element's event is set, and where it is waited for.
    pub(super) fn ends(&self, element: u32) -> (Pipe, Pipe) {
        let data = &self.code.kernel.events[self.carried.elements[element as usize].0];
        (data.from, data.to)
    }

    /// Whether a wait for the flag holds this pipe back. What the issuer waits for, all that it issues waits for.
    pub(super) fn holds(&self, element: u32, pipe: Pipe) -> bool {
        [pipe, Pipe::S].contains(&self.ends(element).1)
    }

    /// Whether the author has declared it, not a ring.
    pub(super) fn is_author(&self, element: u32) -> bool {
        self.code.kernel.events[self.carried.elements[element as usize].0].purpose == Purpose::Author
    }

    /// Whether anything runs on the pipe.
    pub(super) fn has_pipe(&self, pipe: Pipe) -> bool {
        self.carried.streams.iter().any(|s| s.pipe == pipe)
    }

    /// Whether `cause` is about an event between the pipes of `pair`, a race of two accesses.
    pub(super) fn explains(&self, cause: &Finding, pair: &Finding) -> bool {
        let (Some(element), Some((other, _)), HazardFault::Race { .. }) = (cause.element, &pair.other, &pair.fault)
        else {
            return false;
        };
        let pipe = |site: u32| self.carried.streams[self.stream(site as usize)].pipe;
        let (from, to) = self.ends(element);
        [(from, to), (to, from)].contains(&(pipe(*other), pipe(pair.site)))
    }

    /// Where an event that is set at `set` is waited for last: the region, if it is in a loop behind those of `set`.
    fn last_wait(&self, element: u32, set: u32) -> Option<&[(usize, usize)]> {
        let event = self.carried.elements[element as usize].0;
        let waits = |op: &Op| matches!(op, Op::Sync(SyncOp::Wait(e)) if e.event == event);
        let site = self.code.sites.iter().rev().find(|s| waits(&s.stmt.op))?;
        let behind = site.loops.last().is_some_and(|l| !self.code.sites[set as usize].loops.contains(l));
        behind.then(|| site.path.split_last().map_or(&site.path[..0], |(_, region)| region))
    }

    /// Whether no event orders the stream with anything.
    fn is_lonely(&self, stream: usize) -> bool {
        let mut sites = self.code.sites.iter().enumerate();
        !sites.any(|(n, s)| {
            let barrier = s.pipe.is_none() && s.role == self.carried.streams[stream].role;
            matches!(s.stmt.op, Op::Sync(_)) && (barrier || self.stream(n) == stream)
        })
    }

    /// Whether this stream could wait for the flag. Where it is waited for at all, that is by its role.
    pub(super) fn may_wait(&self, element: u32, stream: usize) -> bool {
        let (event, _) = self.carried.elements[element as usize];
        let s = self.carried.streams[stream];
        let mut waits = self.code.sites.iter().filter_map(|site| match &site.stmt.op {
            Op::Sync(SyncOp::Wait(e)) if e.event == event => Some(site.role),
            _ => None,
        });
        let first = waits.next();
        self.holds(element, s.pipe) && first.is_none_or(|role| role == s.role || waits.any(|r| r == s.role))
    }

    /// Notes a finding. False: it was told, and the walk is to go on as if it were mended.
    pub(super) fn tell(&mut self, finding: Finding, state: &HazardState) -> bool {
        let new = !self.is_told(&finding);
        if new {
            self.found.add(finding, state);
        }
        new
    }

    /// Orders an access on `stream` after `record`, as a flag would have that is set behind the one and waited for
    /// before the other. The flag `up` that was meant to be waited for is taken down.
    pub(super) fn order_after(
        &self,
        state: &mut HazardState,
        record: &Record,
        stream: usize,
        up: Option<u32>,
        site: usize,
    ) {
        let held = self.carried.held(stream);
        let from = self.carried.streams[record.stream as usize].done;
        state.order.tell(from, held);
        let told = |e: &u32| self.told.events.contains(&self.carried.elements[*e as usize].0);
        if let Some(element) = up.filter(|e| state.order.is_up(*e) && told(e)) {
            let wait = Record {
                what: What::Waited(element),
                site: site as u32,
                stream: stream as u8,
                known: 0,
                at: state.at.clone(),
            };
            state.order.wait(&self.carried, element, wait);
        }
    }

    /// Both sides of an event know what the other one has done.
    pub(super) fn reconcile(&self, state: &mut HazardState, element: u32) {
        let (from, to) = (self.side(element, true), self.side(element, false));
        state.order.tell(from | to | self.carried.of(element), from | to);
    }

    /// The streams that set an event, or wait for it.
    fn side(&self, element: u32, sets: bool) -> Carriers {
        let data = &self.code.kernel.events[self.carried.elements[element as usize].0];
        let pipe = if sets { data.from } else { data.to };
        let streams = (0..self.carried.streams.len()).filter(|s| self.carried.streams[*s].pipe == pipe);
        streams.fold(0, |all, s| all | if sets { self.carried.streams[s].done } else { self.carried.held(s) })
    }
}

impl HazardFault {
    /// Whether it is that something is not known.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(
            self,
            HazardFault::UnknownElement
                | HazardFault::UnknownNumber
                | HazardFault::UnknownBytes
                | HazardFault::Order(Wrong::UnknownBytes)
        )
    }

    /// Whether it is about numbers of bytes.
    fn is_of_bytes(&self) -> bool {
        match self {
            HazardFault::BytesLeft { .. } | HazardFault::BytesMoved { .. } => true,
            HazardFault::Order(Wrong::Stuck { announced, came, .. }) => announced != came,
            _ => false,
        }
    }

    /// Two accesses, and how.
    pub(super) fn pair(&self) -> Option<(TouchKind, TouchKind)> {
        match self {
            HazardFault::Race { first, second, .. } => Some((*first, *second)),
            _ => None,
        }
    }
}

impl Finding {
    /// Whether it is about numbers of bytes.
    pub(super) fn is_of_bytes(&self) -> bool {
        self.fault.is_of_bytes()
    }
}
