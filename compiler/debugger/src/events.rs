//! Events while a kernel is debugged: which flags are up, in which phase barriers are. The run goes through a block
//! statement after statement, and nothing waits; this keeps what the events of the block would be at that moment.

use super::condition::Scalar;
use super::overview::table;
use super::values::Look;
use ptoc_diagnostics::Span;
use ptoc_interp::RunningKernel;
use ptoc_ir::sync::TransactionBarrier;
use ptoc_ir::tile::{Event, EventData, EventKind, EventRef, Kernel, Op, Purpose, Stmt, SyncOp};
use std::collections::HashMap;

/// What happened last to an event.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// The word of the statement.
    op: SyncOp,
    span: Span,
    /// How many there were before it.
    tick: u64,
    /// A wait that would not have gone through, or a set of a flag that was up.
    wrong: bool,
}

/// One element of an event.
#[derive(Clone, Debug, Default)]
struct One {
    up: bool,
    barrier: Option<TransactionBarrier>,
    last: Option<Last>,
}

/// The events of the running block.
#[derive(Clone, Debug, Default)]
pub struct Events {
    all: HashMap<(Event, i64), One>,
    tick: u64,
}

impl Events {
    /// A block begins: flags are down, barriers in phase 0.
    pub fn begin(&mut self) {
        self.all.clear();
    }

    /// A statement has run.
    pub fn after(&mut self, state: &RunningKernel<'_>, stmt: &Stmt) {
        let Op::Sync(op) = &stmt.op else { return };
        let Some(EventRef { event, element }) = op.event() else { return };
        let kernel = state.kernel();
        let element = element.map_or(0, |v| state.value(v) as i64);
        let number = op.value().map_or(0, |v| state.value(v) as i64);
        let one = self.all.entry((event, element)).or_insert_with(|| One::new(kernel, event));
        let wrong = one.apply(op, number);
        one.last = Some(Last { op: *op, span: stmt.span, tick: self.tick, wrong });
        self.tick += 1;
    }

    /// An element of an event, in words.
    pub fn state(&self, kernel: &Kernel, event: Event, element: i64) -> String {
        self.all.get(&(event, element)).map_or_else(|| One::new(kernel, event).text(), One::text)
    }

    /// The state of an event: whether the flag is up, or how many phases the barrier has completed.
    pub fn value(&self, kernel: &Kernel, event: Event, element: i64) -> Scalar {
        let fresh = One::new(kernel, event);
        let one = self.all.get(&(event, element)).unwrap_or(&fresh);
        match &one.barrier {
            Some(b) => Scalar::Int(b.completed().into()),
            None => Scalar::Bool(one.up),
        }
    }

    /// All events of the kernel, one line an element; or one event, or one element of it.
    pub fn text(&self, look: &Look<'_>, place: &dyn Fn(Span) -> String, only: Option<(Event, Option<i64>)>) -> String {
        let kernel = look.state.kernel();
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (event, data) in &kernel.events {
            if only.is_some_and(|(e, _)| e != event) {
                continue;
            }
            // A ring is two arrays of flags; the first of them speaks for both.
            let other = match data.purpose {
                Purpose::RingEmpty => continue,
                Purpose::RingFull => partner(kernel, event),
                _ => None,
            };
            for element in 0..i64::from(data.count) {
                if only.is_some_and(|(_, one)| one.is_some_and(|one| one != element)) {
                    continue;
                }
                let fresh = One::new(kernel, event);
                let one = self.all.get(&(event, element)).unwrap_or(&fresh);
                let pair = other.and_then(|o| self.all.get(&(o, element)));
                let name = if data.count > 1 { format!("{}[{element}]", data.name) } else { data.name.to_string() };
                let said = match data.purpose {
                    Purpose::RingFull => slot(one, pair),
                    _ => one.text(),
                };
                let mine = one.last.map(|l| (l, event));
                let theirs = pair.and_then(|p| p.last).zip(other);
                let last = mine.into_iter().chain(theirs).max_by_key(|(l, _)| l.tick);
                // The slots of a ring are free from its declaration on.
                let since = last.filter(|(l, _)| l.span != data.span).map_or(String::new(), |(l, of)| {
                    let word = kernel.events[of].word(&l.op);
                    let wrong = match (l.wrong, l.op) {
                        (false, _) => "",
                        (true, SyncOp::Set(_)) => ", which found it up",
                        (true, SyncOp::Arrive(_) | SyncOp::ArriveExpect(..)) => ", one too many",
                        (true, _) => ", which would wait for ever",
                    };
                    format!("last `{word}` at {}{wrong}", place(l.span))
                });
                rows.push(vec![name, format!("{} -> {}", data.from, data.to), said, since]);
            }
        }
        if rows.is_empty() {
            return "the kernel has no events\n".into();
        }
        table(&rows)
    }
}

impl One {
    fn new(kernel: &Kernel, event: Event) -> One {
        let barrier = match kernel.events[event].kind {
            EventKind::Barrier { arrivals } => TransactionBarrier::new(arrivals).ok(),
            EventKind::Flag => None,
        };
        One { up: false, barrier, last: None }
    }

    /// True if it could not be so in a run with pipes.
    fn apply(&mut self, op: &SyncOp, number: i64) -> bool {
        let spent = |b: &TransactionBarrier| b.pending() == 0;
        match (op, &mut self.barrier) {
            (SyncOp::Set(_), _) => std::mem::replace(&mut self.up, true),
            (SyncOp::Wait(_), _) => !std::mem::replace(&mut self.up, false),
            (SyncOp::WaitPhase(..), Some(b)) => !b.try_wait(u8::from(number & 1 == 1)),
            (SyncOp::Arrive(_), Some(b)) => {
                let wrong = spent(b);
                b.arrive();
                wrong
            }
            (SyncOp::ArriveExpect(..), Some(b)) => {
                let wrong = spent(b);
                b.arrive_and_expect(number).is_err() || wrong
            }
            (SyncOp::Expect(..), Some(b)) => b.expect(number).is_err(),
            (SyncOp::Complete(..), Some(b)) => b.complete(number).is_err(),
            _ => false,
        }
    }

    fn text(&self) -> String {
        let Some(b) = &self.barrier else { return if self.up { "up" } else { "down" }.into() };
        let bytes = match b.bytes() {
            0 => String::new(),
            n if n < 0 => format!(", {} bytes came unannounced", -n),
            n => format!(", {n} bytes to come"),
        };
        let (pending, all) = (b.pending(), b.arrivals());
        format!("phase {} (parity {}), {pending} of {all} arrivals to come{bytes}", b.completed(), b.phase())
    }
}

/// A slot of a ring: one of its flags is up, or whoever waited last has it.
fn slot(full: &One, empty: Option<&One>) -> String {
    let tick = |one: &One| one.last.map(|l| l.tick);
    match empty {
        _ if full.up => "filled",
        Some(e) if e.up => "free",
        Some(e) if tick(full) > tick(e) => "being read",
        Some(_) => "being filled",
        None => "not declared yet",
    }
    .into()
}

/// The flags that say the slots of the same ring are empty.
fn partner(kernel: &Kernel, full: Event) -> Option<Event> {
    let data = &kernel.events[full];
    let same = |d: &EventData| d.purpose == Purpose::RingEmpty && d.name == data.name && d.span == data.span;
    kernel.events.iter().find(|(_, d)| same(d)).map(|(e, _)| e)
}
