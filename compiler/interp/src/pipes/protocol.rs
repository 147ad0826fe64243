//! Flags and transaction barriers, gone through in program order.
//!
//! A flag has one pipe that raises it and one that takes it down, and a pipe keeps its order. So if every wait finds in
//! program order what it waits for, and nothing can be raised, or a phase end, a second time before it was waited for,
//! then every legal order matches the same waits with the same sets, and none gets stuck. What would break that is a
//! [`Breach`].

use super::clocks::{Knowledge, Stamp, join, knows, knows_all};
use cranelift_entity::SecondaryMap;
use ptoc_ir::sync::{BarrierFault, TransactionBarrier};
use ptoc_ir::tile::{Event, EventKind, Kernel, SyncOp};

/// A synchronisation that was queued: when, what is complete once its turn comes, and its number for reports.
#[derive(Clone, Debug)]
pub(super) struct Queued {
    pub stamp: Stamp,
    pub item: u32,
    /// What is complete when it takes effect.
    pub knowledge: Knowledge,
}

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Name {
    pub event: Event,
    pub element: u32,
}

/// Why a transaction barrier does not let a wait through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pending {
    pub parity: u8,
    pub phase: u64,
    pub arrivals: u32,
    pub of: u32,
    pub bytes: i64,
}

/// What may go wrong in some legal order. Numbers are those of [`Queued::item`].
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Breach {
    /// The wait finds its flag down, or its barrier in the phase (given).
    Stuck { name: Name, pending: Option<Pending> },
    /// The flag is up still, raised by `set`.
    Up { name: Name, set: u32 },
    /// Raised again, and nothing makes sure that `wait` has taken it down.
    Reused { name: Name, set: u32, wait: u32 },
    /// The flag is up at the end.
    LeftUp { name: Name, set: u32 },
    /// The wait may go through a round early: it need not have seen the end of the phase before.
    Early { name: Name, phase: u64 },
    /// The phase that `wait` waits for may be over, and the next one too, before it looks.
    Overtaken { name: Name, wait: u32, phase: u64 },
    /// It may count for the phase before, in which `other` takes part.
    Mixed { name: Name, other: u32, phase: u64 },
    /// The phase has all its arrivals, the last by `other`, and waits for bytes.
    Surplus { name: Name, other: u32, of: u32, bytes: i64 },
    /// All arrivals of the phase may come before the bytes are announced by `expect`.
    Unannounced { name: Name, expect: u32, phase: u64 },
    /// A phase has begun and does not end: so many arrivals are missing, so many bytes were announced, and came.
    Unfinished { name: Name, last: u32, arrivals: u32, announced: i64, came: i64, before: Option<u32> },
    /// More bytes than a barrier counts.
    Bytes { name: Name, bytes: i64 },
}

/// What a synchronisation orders.
#[derive(Clone, Debug, Default)]
pub(super) struct Effect {
    /// What the waiting pipe knows from then on.
    pub learnt: Option<Knowledge>,
    /// What must have been executed before.
    pub after: Vec<Stamp>,
}

#[derive(Clone, Default)]
struct Flag {
    /// Raised by.
    up: Option<Queued>,
    /// The set and the wait before.
    last: Option<(u32, Queued)>,
}

/// One operation on a barrier.
#[derive(Clone)]
struct EventOp {
    by: Queued,
    arrives: bool,
    /// Bytes that it announces, less those that come.
    bytes: i64,
}

/// A transaction barrier with its history.
#[derive(Clone)]
struct Barrier {
    model: TransactionBarrier,
    /// Of the current phase.
    steps: Vec<EventOp>,
    announced: i64,
    came: i64,
    /// Steps of the phase that ended last, and what is complete when it has.
    ended: Option<(Vec<Stamp>, Knowledge, u32)>,
    /// The same of the one before.
    ended_before: Option<Knowledge>,
    /// Waits that have gone through in the current phase.
    waits: Vec<Queued>,
    /// The last arrival that ended a phase without bytes, and its pipe.
    flipped: Option<Queued>,
}

#[derive(Clone)]
enum EventState {
    Flag(Flag),
    Barrier(Box<Barrier>),
}

/// All events of a block.
pub(super) struct Protocol {
    events: SecondaryMap<Event, Vec<EventState>>,
}

/// Arrivals, announced bytes and bytes that come, of a step of a barrier; `value` is its number of bytes.
fn step_of(op: &SyncOp, value: i64) -> Option<(bool, i64, i64)> {
    match op {
        SyncOp::Arrive(_) => Some((true, 0, 0)),
        SyncOp::Expect(..) => Some((false, value, 0)),
        SyncOp::ArriveExpect(..) => Some((true, value, 0)),
        SyncOp::Complete(..) => Some((false, 0, value)),
        _ => None,
    }
}

impl Default for EventState {
    fn default() -> EventState {
        EventState::Flag(Flag::default())
    }
}

impl Protocol {
    /// Every flag down, every barrier in phase 0. The kernel is verified.
    pub fn new(kernel: &Kernel) -> Protocol {
        let mut events = SecondaryMap::new();
        for (id, data) in &kernel.events {
            let one = || match data.kind {
                EventKind::Flag => EventState::default(),
                EventKind::Barrier { arrivals } => TransactionBarrier::new(arrivals)
                    .map_or_else(|_| EventState::default(), |m| EventState::Barrier(Barrier::new(m))),
            };
            events[id] = (0..data.count).map(|_| one()).collect();
        }
        Protocol { events }
    }

    /// `wait`, `set` and the steps of barriers; `value` is a parity or a number of bytes. `me` knows what is complete
    /// when its pipe comes to it.
    pub fn apply(&mut self, op: &SyncOp, name: Name, value: i64, me: Queued) -> Result<Effect, Breach> {
        match (op, &mut self.events[name.event][name.element as usize]) {
            (SyncOp::Set(_), EventState::Flag(flag)) => flag.set(name, me),
            (SyncOp::Wait(_), EventState::Flag(flag)) => flag.wait(name, me),
            (SyncOp::WaitPhase(..), EventState::Barrier(b)) => b.wait(name, u8::from(value & 1 == 1), me),
            (op, EventState::Barrier(b)) => match step_of(op, value) {
                Some(step) => b.step(name, step, me).map(|()| Effect::default()),
                None => Ok(Effect::default()),
            },
            // The verifier admits no other pair.
            _ => Ok(Effect::default()),
        }
    }

    /// Whether a wait for `parity` would go through now. No rule is asked, as one is broken already.
    pub fn would_pass(&self, name: Name, parity: u8) -> bool {
        match &self.events[name.event][name.element as usize] {
            EventState::Flag(flag) => flag.up.is_some(),
            EventState::Barrier(b) => b.model.try_wait(parity),
        }
    }

    /// A wait that is stuck is passed over.
    pub fn take_down(&mut self, name: Name) {
        if let EventState::Flag(flag) = &mut self.events[name.event][name.element as usize] {
            flag.up = None;
        }
    }

    /// The block is over.
    pub fn end(&self, kernel: &Kernel) -> Result<(), Breach> {
        for event in kernel.events.keys() {
            for (element, state) in (0..).zip(&self.events[event]) {
                let name = Name { event, element };
                match state {
                    EventState::Flag(flag) => {
                        if let Some(up) = &flag.up {
                            return Err(Breach::LeftUp { name, set: up.item });
                        }
                    }
                    EventState::Barrier(b) => b.end(name)?,
                }
            }
        }
        Ok(())
    }
}

impl Flag {
    fn set(&mut self, name: Name, me: Queued) -> Result<Effect, Breach> {
        if let Some(up) = &self.up {
            return Err(Breach::Up { name, set: up.item });
        }
        let mut after = Vec::new();
        if let Some((set, wait)) = &self.last {
            if !knows(&me.knowledge, wait.stamp) {
                return Err(Breach::Reused { name, set: *set, wait: wait.item });
            }
            after.push(wait.stamp);
        }
        self.up = Some(me);
        Ok(Effect { learnt: None, after })
    }

    fn wait(&mut self, name: Name, me: Queued) -> Result<Effect, Breach> {
        let Some(set) = self.up.take() else { return Err(Breach::Stuck { name, pending: None }) };
        let effect = Effect { learnt: Some(announced(&set)), after: vec![set.stamp] };
        self.last = Some((set.item, me));
        Ok(effect)
    }
}

/// What a waiter learns: all that was complete, and the announcement itself.
fn announced(by: &Queued) -> Knowledge {
    let mut all = by.knowledge.to_vec();
    let own = &mut all[by.stamp.stream as usize];
    *own = (*own).max(by.stamp.clock);
    all.into()
}

/// A phase of so many loose steps is looked through for all orders; beyond, what could go wrong counts as wrong.
const MOST_LOOSE: usize = 12;

/// A step that would be late, if a phase of these steps could end before the last of them. All arrivals may be there,
/// and whatever else has to be there with them, while the bytes happen to cancel out.
fn may_end_before(steps: &[EventOp]) -> Option<&EventOp> {
    let arrivals: Vec<&EventOp> = steps.iter().filter(|s| s.arrives).collect();
    let early = |s: &EventOp| s.arrives || arrivals.iter().any(|a| knows(&a.by.knowledge, s.by.stamp));
    let sum: i64 = steps.iter().filter(|s| early(s)).map(|s| s.bytes).sum();
    let loose: Vec<&EventOp> = steps.iter().filter(|s| !early(s)).collect();
    // Bytes of one sign only get nearer to 0, which is reached with the last.
    if loose.iter().all(|s| s.bytes > 0) || loose.iter().all(|s| s.bytes < 0) {
        return None;
    }
    if loose.len() > MOST_LOOSE {
        return loose.into_iter().find(|s| s.bytes >= 0);
    }
    let has = |set: usize, n: usize| set >> n & 1 == 1;
    let whole = (1 << loose.len()) - 1;
    let possible = |&set: &usize| {
        let closed = (0..loose.len()).filter(|&n| has(set, n)).all(|n| {
            (0..loose.len()).all(|before| has(set, before) || !knows(&loose[n].by.knowledge, loose[before].by.stamp))
        });
        closed && sum + (0..loose.len()).filter(|&n| has(set, n)).map(|n| loose[n].bytes).sum::<i64>() == 0
    };
    let set = (0..whole).find(possible)?;
    let late = |n: &usize| !has(set, *n);
    (0..loose.len()).filter(late).map(|n| loose[n]).max_by_key(|s| s.bytes)
}

impl Barrier {
    fn new(model: TransactionBarrier) -> Box<Barrier> {
        Box::new(Barrier {
            model,
            steps: Vec::new(),
            announced: 0,
            came: 0,
            ended: None,
            ended_before: None,
            waits: Vec::new(),
            flipped: None,
        })
    }

    fn wait(&mut self, name: Name, parity: u8, me: Queued) -> Result<Effect, Breach> {
        let phase = self.model.completed();
        if !self.model.try_wait(parity) {
            let (arrivals, of, bytes) = (self.model.pending(), self.model.arrivals(), self.model.bytes());
            return Err(Breach::Stuck { name, pending: Some(Pending { parity, phase, arrivals, of, bytes }) });
        }
        if self.ended_before.as_ref().is_some_and(|before| !knows_all(&me.knowledge, before)) {
            return Err(Breach::Early { name, phase });
        }
        self.waits.push(me);
        let Some((steps, learnt, _)) = &self.ended else { return Ok(Effect::default()) };
        Ok(Effect { learnt: Some(learnt.clone()), after: steps.clone() })
    }

    fn step(&mut self, name: Name, (arrives, announces, comes): (bool, i64, i64), me: Queued) -> Result<(), Breach> {
        let phase = self.model.completed();
        if let Some((_, ended, last)) = &self.ended
            && !knows_all(&me.knowledge, ended)
        {
            return Err(Breach::Mixed { name, other: *last, phase });
        }
        if arrives && self.model.pending() == 0 {
            let other = self.steps.iter().rev().find(|s| s.arrives).map_or(me.item, |s| s.by.item);
            let (of, bytes) = (self.model.arrivals(), self.model.bytes());
            return Err(Breach::Surplus { name, other, of, bytes });
        }
        let fault = |e: BarrierFault| match e {
            BarrierFault::Bytes(bytes) => Breach::Bytes { name, bytes },
            BarrierFault::Arrivals(n) => Breach::Bytes { name, bytes: i64::from(n) },
        };
        let ended = match (arrives, announces, comes) {
            (true, 0, _) => self.model.arrive(),
            (true, n, _) => self.model.arrive_and_expect(n).map_err(fault)?,
            (false, 0, n) => self.model.complete(n).map_err(fault)?,
            (false, n, _) => self.model.expect(n).map_err(fault)?,
        };
        self.announced += announces;
        self.came += comes;
        self.steps.push(EventOp { by: me, arrives, bytes: announces - comes });
        if ended { self.end_phase(name, phase) } else { Ok(()) }
    }

    fn end_phase(&mut self, name: Name, phase: u64) -> Result<(), Breach> {
        let steps = std::mem::take(&mut self.steps);
        let knows_it = |stamp: Stamp| steps.iter().any(|s| s.by.stamp == stamp || knows(&s.by.knowledge, stamp));
        if let Some(wait) = self.waits.iter().find(|w| !knows_it(w.stamp)) {
            return Err(Breach::Overtaken { name, wait: wait.item, phase });
        }
        if let Some(first) = may_end_before(&steps) {
            return Err(Breach::Unannounced { name, expect: first.by.item, phase });
        }
        let mut all = vec![0; steps.first().map_or(0, |s| s.by.knowledge.len())];
        for step in &steps {
            join(&mut all, &announced(&step.by));
        }
        self.flipped = steps.last().filter(|s| s.arrives && self.announced == 0).map(|s| s.by.clone());
        let last = steps.last().map_or(0, |s| s.by.item);
        self.ended_before = self.ended.take().map(|(_, knowledge, _)| knowledge);
        self.ended = Some((steps.iter().map(|s| s.by.stamp).collect(), all.into(), last));
        (self.announced, self.came) = (0, 0);
        self.waits.clear();
        Ok(())
    }

    fn end(&self, name: Name) -> Result<(), Breach> {
        let Some(last) = self.steps.last() else { return Ok(()) };
        // An arrival of the same pipe ended the phase before without any bytes: it came too soon.
        let first = &self.steps[0].by;
        let flipped = self.flipped.as_ref().filter(|f| f.stamp.stream == first.stamp.stream && self.announced != 0);
        let before = flipped.map(|f| f.item);
        Err(Breach::Unfinished {
            name,
            last: last.by.item,
            arrivals: self.model.pending(),
            announced: self.announced,
            came: self.came,
            before,
        })
    }
}
