//! Order between pipes: events, barriers and roles.
//!
//! A block's statements are issued in order; each runs on its pipe ([`super::pipe_of_op`]), pipes run at the same time,
//! and one pipe keeps its order. What a pipe does is seen by another one only through the synchronisation here. It
//! never changes the meaning, which is program order: a kernel whose pipes are not ordered where they must be is wrong,
//! and is reported.
//!
//! * A **flag** ([`EventKind::Flag`]; PTO's `set_flag` and `wait_flag`) is down at first. [`SyncOp::Set`] raises it
//!   when the pipe `from` has done its earlier work. [`SyncOp::Wait`] holds the pipe `to` back until it is up, and
//!   takes it down. It must be down when it is raised, the raising must precede its wait in program order too, and each
//!   raising meets one wait.
//! * A **transaction barrier** ([`EventKind::Barrier`]; [`crate::sync::TransactionBarrier`]) ends a phase when all its
//!   arrivals and all bytes that were announced have come. [`SyncOp::WaitPhase`] holds `to` back while the barrier is
//!   in the phase of that parity.
//! * **`barrier`** ([`SyncOp::Barrier`]) lets nothing later start on a pipe (or on any) before all that it (or every
//!   pipe) did is done.
//! * A **role** ([`super::Scope::role`]) is an issuer of its own with queues of its own to the pipes: roles run at the
//!   same time and share the memories and the units. Statements outside of roles are issued by the kernel itself.

use super::Value;
use cranelift_entity::entity_impl;
use ptoc_diagnostics::Span;
use ptoc_isa::Pipe;
use smol_str::SmolStr;

/// An event, or an array of events: `e0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event(u32);
entity_impl!(Event, "e");

/// A role: `r0`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoleId(u32);
entity_impl!(RoleId, "r");

/// Who orders the pipes of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SyncMode {
    /// Nobody yet: the compiler will, or the kernel runs where nothing overlaps.
    #[default]
    Auto,
    /// The author (`#[sync(manual)]`): nothing is inserted, and what is missing is an error.
    Manual,
    /// The compiler has.
    Inserted,
}

/// What an event is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EventKind {
    /// Up or down.
    Flag,
    /// A transaction barrier with so many arrivals a phase, 1 to 2^20 - 1.
    Barrier {
        /// Arrivals that end a phase.
        arrivals: u32,
    },
}

/// What an event is for, where that is known; messages say it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Purpose {
    /// The author's own.
    Author,
    /// A slot of the ring of this name is filled (`commit` to `wait`).
    RingFull,
    /// A slot of the ring of this name is free (`release` to `acquire`).
    RingEmpty,
    /// Inserted by the compiler.
    Inserted,
}

/// An event or an array of events.
#[derive(Clone, Debug, PartialEq)]
pub struct EventData {
    /// The source's name; for the events of a ring the ring's.
    pub name: SmolStr,
    /// Flag or barrier.
    pub kind: EventKind,
    /// The pipe whose work it announces.
    pub from: Pipe,
    /// The pipe that waits for it.
    pub to: Pipe,
    /// Elements, at least 1.
    pub count: u32,
    /// What for.
    pub purpose: Purpose,
    /// The declaration.
    pub span: Span,
}

impl EventData {
    /// What the source calls an operation on the event: for a ring its word.
    pub fn word(&self, op: &SyncOp) -> &'static str {
        match (self.purpose, op) {
            (Purpose::RingFull, SyncOp::Set(_)) => "commit",
            (Purpose::RingFull, SyncOp::Wait(_)) => "wait",
            (Purpose::RingEmpty, SyncOp::Set(_)) => "release",
            (Purpose::RingEmpty, SyncOp::Wait(_)) => "acquire",
            (_, SyncOp::ArriveExpect(..)) => "arrive_and_expect",
            (_, SyncOp::WaitPhase(..)) => "wait",
            (_, op) => op.word(),
        }
    }
}

/// A role.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleData {
    /// The source's name.
    pub name: SmolStr,
    /// Its first use.
    pub span: Span,
}

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventRef {
    /// The event or array.
    pub event: Event,
    /// Element of the array; `None` is element 0.
    pub element: Option<Value>,
}

/// A synchronisation. It is queued on a pipe like an instruction: on `from` what announces, on `to` what waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncOp {
    /// Raises a flag.
    Set(EventRef),
    /// Waits for a flag and takes it down.
    Wait(EventRef),
    /// `pipe_barrier`: of one pipe, or of all (`None`).
    Barrier(Option<Pipe>),
    /// One arrival at a transaction barrier.
    Arrive(EventRef),
    /// Announces bytes at a transaction barrier.
    Expect(EventRef, Value),
    /// Both in one step.
    ArriveExpect(EventRef, Value),
    /// So many of the announced bytes have come.
    Complete(EventRef, Value),
    /// Waits while a transaction barrier is in the phase of this parity (an `index`, 0 or 1).
    WaitPhase(EventRef, Value),
}

impl SyncOp {
    /// The event, if it has one.
    pub fn event(&self) -> Option<EventRef> {
        match *self {
            SyncOp::Set(e) | SyncOp::Wait(e) | SyncOp::Arrive(e) => Some(e),
            SyncOp::Expect(e, _) | SyncOp::ArriveExpect(e, _) | SyncOp::Complete(e, _) | SyncOp::WaitPhase(e, _) => {
                Some(e)
            }
            SyncOp::Barrier(_) => None,
        }
    }

    /// Bytes or parity.
    pub fn value(&self) -> Option<Value> {
        match *self {
            SyncOp::Expect(_, v) | SyncOp::ArriveExpect(_, v) | SyncOp::Complete(_, v) | SyncOp::WaitPhase(_, v) => {
                Some(v)
            }
            _ => None,
        }
    }

    /// Whether it holds a pipe back.
    pub fn waits(&self) -> bool {
        matches!(self, SyncOp::Wait(_) | SyncOp::WaitPhase(..) | SyncOp::Barrier(_))
    }

    /// Calls `f` on every value that it uses.
    pub fn for_each_value(&self, f: &mut dyn FnMut(Value)) {
        self.event().and_then(|e| e.element).into_iter().for_each(&mut *f);
        self.value().into_iter().for_each(f);
    }

    /// The word of the text form.
    pub fn word(&self) -> &'static str {
        match self {
            SyncOp::Set(_) => "set",
            SyncOp::Wait(_) => "wait",
            SyncOp::Barrier(_) => "barrier",
            SyncOp::Arrive(_) => "arrive",
            SyncOp::Expect(..) => "expect",
            SyncOp::ArriveExpect(..) => "arrive_expect",
            SyncOp::Complete(..) => "complete",
            SyncOp::WaitPhase(..) => "wait_phase",
        }
    }
}
