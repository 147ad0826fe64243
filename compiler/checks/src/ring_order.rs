//! The order of a ring's operations. A slot that is used out of turn is a slot that nothing has written: that is what
//! the analysis of bytes sees, and it says so (E0501). Where the ring's operations come in an order that cannot be
//! meant, this says which, in its place (E0570).
//!
//! The kernel is followed in program order with, for each ring, the states that it may be in. A mistake is one on every
//! path that leads to the operation, in the first iteration of the loops around at least. What comes after a jump is
//! not looked at.

use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Event, Kernel, Op, Purpose, Stmt, SyncOp};
use std::collections::{BTreeMap, BTreeSet};

/// Where the two sides of a ring are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct At {
    /// The producer has a slot.
    filling: bool,
    /// The consumer has a slot.
    emptying: bool,
    /// Slots that are filled and not taken, at most one more than there are.
    filled: u32,
}

/// The states a ring may be in; `None` if nothing is known any more.
type States = Option<BTreeSet<At>>;

/// An operation of a ring.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum RingOp {
    Acquire,
    Commit,
    Wait,
    Release,
}

impl RingOp {
    fn word(self) -> &'static str {
        match self {
            RingOp::Acquire => "acquire",
            RingOp::Commit => "commit",
            RingOp::Wait => "wait",
            RingOp::Release => "release",
        }
    }

    /// What has to come before it.
    fn needs(self) -> RingOp {
        match self {
            RingOp::Commit => RingOp::Acquire,
            RingOp::Release => RingOp::Wait,
            RingOp::Acquire | RingOp::Wait => RingOp::Commit,
        }
    }

    fn allowed(self, at: At) -> bool {
        match self {
            RingOp::Acquire => true,
            RingOp::Commit => at.filling,
            RingOp::Wait => at.filled > 0,
            RingOp::Release => at.emptying,
        }
    }

    fn after(self, at: At, slots: u32) -> At {
        match self {
            RingOp::Acquire => At { filling: true, ..at },
            RingOp::Commit => At { filling: false, filled: (at.filled + 1).min(slots + 1), ..at },
            RingOp::Wait => At { emptying: true, filled: at.filled.saturating_sub(1), ..at },
            RingOp::Release => At { emptying: false, ..at },
        }
    }
}

struct Follow<'k> {
    kernel: &'k Kernel,
    /// By the event of full slots.
    rings: BTreeMap<Event, States>,
    /// A loop's later iterations: nothing is noted.
    quiet: bool,
    /// By ring: its first operation out of order.
    wrong: BTreeMap<Event, (RingOp, Span)>,
    /// Every operation, in program order.
    steps: Vec<(Event, RingOp, Span)>,
}

impl<'k> Follow<'k> {
    /// The ring and its operation, if this is one.
    fn step(&self, sync: &SyncOp, span: Span) -> Option<(Event, RingOp)> {
        let event = sync.event()?.event;
        let data = &self.kernel.events[event];
        // The flags that are set at the declaration, and the drain.
        if span == data.span {
            return None;
        }
        // The two events of a ring are made one after the other.
        let full = |empty: Event| Some(Event::from_u32(empty.as_u32().checked_sub(1)?));
        match (data.purpose, sync) {
            (Purpose::RingFull, SyncOp::Set(_)) => Some((event, RingOp::Commit)),
            (Purpose::RingFull, SyncOp::Wait(_)) => Some((event, RingOp::Wait)),
            (Purpose::RingEmpty, SyncOp::Set(_)) => Some((full(event)?, RingOp::Release)),
            (Purpose::RingEmpty, SyncOp::Wait(_)) => Some((full(event)?, RingOp::Acquire)),
            _ => None,
        }
    }

    fn region(&mut self, region: &[Stmt]) {
        for stmt in region {
            match &stmt.op {
                Op::Sync(sync) => {
                    if let Some((ring, step)) = self.step(sync, stmt.span) {
                        self.take(ring, step, stmt.span);
                    }
                }
                Op::If(i) => {
                    let before = self.rings.clone();
                    self.region(&i.then);
                    let then = std::mem::replace(&mut self.rings, before);
                    self.region(&i.els);
                    self.join(then);
                }
                Op::Break(_) | Op::Continue(_) | Op::Leave(_) => self.rings.values_mut().for_each(|s| *s = None),
                op if matches!(op, Op::For(_) | Op::While(_)) => {
                    let before = self.rings.clone();
                    op.regions().for_each(|r| self.region(r));
                    let loud = std::mem::replace(&mut self.quiet, true);
                    self.join(before);
                    // The sets only grow, and there are few states.
                    loop {
                        let head = self.rings.clone();
                        op.regions().for_each(|r| self.region(r));
                        self.join(head.clone());
                        if self.rings == head {
                            break;
                        }
                    }
                    self.quiet = loud;
                }
                op => op.regions().for_each(|r| self.region(r)),
            }
        }
    }

    fn take(&mut self, ring: Event, step: RingOp, span: Span) {
        if !self.quiet {
            self.steps.push((ring, step, span));
        }
        let Some(Some(states)) = self.rings.get_mut(&ring) else { return };
        if !self.quiet && !states.is_empty() && states.iter().all(|at| !step.allowed(*at)) {
            self.wrong.entry(ring).or_insert((step, span));
        }
        let slots = self.kernel.events[ring].count;
        *states = states.iter().map(|at| step.after(*at, slots)).collect();
    }

    fn join(&mut self, other: BTreeMap<Event, States>) {
        for (ring, states) in other {
            let here = self.rings.entry(ring).or_insert(None);
            *here = match (here.take(), states) {
                (Some(a), Some(b)) => Some(a.into_iter().chain(b).collect()),
                _ => None,
            };
        }
    }
}

/// Replaces what is said of slots that are read unwritten where the ring's operations are out of order.
pub fn explain(kernel: &Kernel, diagnostics: &mut Vec<Diagnostic>) {
    let unwritten = |d: &Diagnostic| matches!(d.code, codes::UNINITIALISED | codes::MAYBE_UNINITIALISED);
    if !diagnostics.iter().any(unwritten) {
        return;
    }
    let start = BTreeSet::from([At { filling: false, emptying: false, filled: 0 }]);
    let rings = kernel.events.iter().filter(|(_, d)| d.purpose == Purpose::RingFull);
    let rings = rings.map(|(e, _)| (e, Some(start.clone()))).collect();
    let mut follow = Follow { kernel, rings, quiet: false, wrong: BTreeMap::new(), steps: Vec::new() };
    follow.region(&kernel.body);
    for (&ring, &(step, span)) in &follow.wrong {
        let declared = kernel.events[ring].span;
        // The ring's own tiles are declared with it; others were given to it.
        let own = kernel.tiles.values().any(|t| t.span == declared);
        let about = |d: &Diagnostic| unwritten(d) && (!own || d.labels.iter().any(|l| l.span == declared));
        if diagnostics.iter().any(about) {
            diagnostics.retain(|d| !about(d));
            diagnostics.push(out_of_order(kernel, ring, step, span, &follow.steps));
        }
    }
}

fn out_of_order(kernel: &Kernel, ring: Event, step: RingOp, span: Span, steps: &[(Event, RingOp, Span)]) -> Diagnostic {
    let data = &kernel.events[ring];
    let (name, word, needs) = (&data.name, step.word(), step.needs());
    let later = steps
        .iter()
        .skip_while(|(_, _, at)| *at != span)
        .find(|(r, s, _)| *r == ring && *s == needs)
        .map(|(_, _, at)| *at);
    let before = needs.word();
    let message = match later {
        Some(_) => format!("`{name}.{word}()` comes before `{name}.{before}()`"),
        None => format!("`{name}.{word}()` has no `{name}.{before}()` before it"),
    };
    let (label, help) = match step {
        RingOp::Commit => (
            "announces a slot that was not acquired",
            format!("first `{name}.acquire()`, then fill that slot, then `{name}.commit()`"),
        ),
        RingOp::Release => (
            "frees a slot that was not waited for",
            format!("first `{name}.wait()`, then read that slot, then `{name}.release()`"),
        ),
        RingOp::Acquire | RingOp::Wait => (
            "no slot is filled yet",
            format!("fill a slot first: `{name}.acquire()`, the writes, `{name}.commit()`; then `{name}.wait()`"),
        ),
    };
    let mut d = Diagnostic::error(codes::RING_ORDER, span, message).with_label(label);
    if let Some(at) = later {
        d = d.with_secondary(at, format!("`{before}` comes only here"));
    }
    d.with_secondary(data.span, format!("ring `{name}` is declared here"))
        .with_note(
            "the filling side acquires, fills and commits a slot; the emptying side waits for it, reads it and \
            releases it",
        )
        .with_help(help)
}
