//! Faults of events in words: what happens, why, and what to look for.

use super::cross_role;
use super::find::{Finding, HazardFault, Why};
use super::interpreter::HazardInterpreter;
use super::order::Wrong;
use super::poly::PolyInterval;
use super::repair::{Advice, Repair};
use super::text;
use super::touch::{TouchKind, TouchedObject as Place};
use ptoc_diagnostics::{Code, Diagnostic, codes};
use ptoc_ir::tile::{EventData, Op, Purpose, SyncOp};
use ptoc_isa::Pipe;

/// A fault of an event as a diagnostic.
pub(super) fn event(
    walk: &HazardInterpreter,
    f: &Finding,
    repair: Option<&Repair>,
    tried: Option<Advice>,
) -> Diagnostic {
    let code = walk.code;
    let site = &code.sites[f.site as usize];
    let sync = match &site.stmt.op {
        Op::Sync(op) => *op,
        _ => SyncOp::Barrier(None),
    };
    let data: Option<&EventData> = sync.event().map(|e| &code.kernel.events[e.event]);
    let what = f
        .element
        .map_or_else(|| data.map_or("an event".to_owned(), |d| format!("`{}`", d.name)), |e| text::element(walk, e));
    let ring = data.filter(|d| matches!(d.purpose, Purpose::RingFull | Purpose::RingEmpty));
    let word = data.map_or("barrier", |d| d.word(&sync));
    let anew = text::begins_anew(walk, f);
    let (id, message, label) = match &f.fault {
        HazardFault::Order(Wrong::Down) => match ring {
            Some(d) => ring_waits(walk, d, &what, f),
            None => (
                codes::WAIT_WITHOUT_SET,
                match f.other {
                    Some(_) => format!("`wait` for {what} never ends: nothing has set it again"),
                    None => format!("`wait` for {what} never ends: nothing has set it"),
                },
                "waits for ever".to_owned(),
            ),
        },
        HazardFault::Order(Wrong::Up(_)) => (
            codes::FLAG_RAISED_TWICE,
            match ring {
                Some(_) => format!("{what} gets a second `{word}` before anyone took the first"),
                None => format!("{what} is set although it is still up: no `wait` has taken it down"),
            },
            format!("the second `{word}`"),
        ),
        HazardFault::Order(Wrong::Unordered(..)) if anew.is_some() => (
            codes::FLAG_RAISED_TWICE,
            format!(
                "ring `{}` may begin anew before the iteration before is done with it",
                data.map_or("", |d| d.name.as_str())
            ),
            format!(
                "declared in each iteration of {}, and nothing orders one of them after the other",
                anew.map_or_else(String::new, |l| text::loop_name(walk, l))
            ),
        ),
        HazardFault::Order(Wrong::Unordered(..)) => (
            codes::FLAG_RAISED_TWICE,
            match ring {
                Some(d) => format!("{what} may get its next `{word}` before the last `{}` is through", taking(d)),
                None => format!("{what} may be set again before its last `wait` is through"),
            },
            format!("nothing orders this after that `{}`", data.map_or("wait", taking)),
        ),
        HazardFault::LeftUp => (
            codes::SET_WITHOUT_WAIT,
            match ring {
                Some(_) => format!("{what} has a `{word}` that nobody takes"),
                None => format!("{what} is set, and no `wait` takes it down before the block ends"),
            },
            "stays up".to_owned(),
        ),
        HazardFault::Order(Wrong::Stuck { completed: 1.., fresh: true, .. }) => (
            codes::BARRIER_DEADLOCK,
            format!(
                "`wait` for {what} never ends: it waits for the phase that has just begun, and nothing arrives in that"
            ),
            "waits for ever".to_owned(),
        ),
        HazardFault::Order(Wrong::Stuck { pending, announced, came, completed, .. }) => {
            stuck(&what, *pending, (announced, came), *completed)
        }
        HazardFault::Order(Wrong::OnePhaseEarly(_)) => (
            codes::PHASE_AMBIGUOUS,
            format!("`wait` for {what} may let its pipe through a phase early"),
            "cannot tell this phase from the last but one: their parities are equal".to_owned(),
        ),
        HazardFault::Order(Wrong::Overtaken(_)) => (
            codes::PHASE_AMBIGUOUS,
            format!("a phase of {what} may end before everyone has seen that the one before it did"),
            "may end the next phase".to_owned(),
        ),
        HazardFault::Order(Wrong::MixedPhases(_)) => (
            codes::PHASE_AMBIGUOUS,
            format!("this `{word}` may count for the phase of {what} that is not over yet"),
            "nothing orders this after the end of the phase before".to_owned(),
        ),
        HazardFault::Order(Wrong::EarlyArrival(_)) => (
            codes::EARLY_ARRIVAL,
            format!("the phase of {what} may end before its bytes are announced"),
            "the bytes are announced here, for the next phase".to_owned(),
        ),
        HazardFault::Order(Wrong::Unannounced { .. }) => (
            codes::EARLY_ARRIVAL,
            format!("the phase of {what} may end before its bytes are announced"),
            format!("this `{word}` may be late: the arrivals of the phase do not wait for it"),
        ),
        HazardFault::Order(Wrong::Surplus(_)) => (
            codes::PHASE_AMBIGUOUS,
            format!("one arrival too many at {what}: its phase has all of them, and waits for bytes"),
            "one more arrives here".to_owned(),
        ),
        HazardFault::Order(Wrong::TooManyBytes(n)) => (
            codes::BARRIER_BYTES,
            format!("{what} would have {n} bytes outstanding, and it counts up to {}", ptoc_ir::sync::MAX_BYTES),
            "too many".to_owned(),
        ),
        HazardFault::BytesLeft { announced, came } => (
            codes::BARRIER_BYTES,
            match (announced, came) {
                (Some(announced), Some(came)) => format!("{announced} bytes are announced at {what}, and {came} come"),
                _ => format!("the bytes that are announced at {what} are not those that come"),
            },
            "the last that counts for this phase".to_owned(),
        ),
        HazardFault::ArrivalsLeft { missing, of } => (
            codes::PHASE_LEFT,
            match (missing, of) {
                (1, 1) => format!("a phase of {what} begins and never ends: its arrival is missing"),
                (1, _) => format!("a phase of {what} begins and never ends: 1 of {of} arrivals is missing"),
                _ => format!("a phase of {what} begins and never ends: {missing} of {of} arrivals are missing"),
            },
            "the last step of this phase".to_owned(),
        ),
        HazardFault::BytesMoved { said, moved } => {
            let total: i64 = moved.iter().sum();
            (
                codes::BARRIER_BYTES,
                format!("{said} bytes are said to have come at {what}, and {total} were moved"),
                format!("says {said} bytes"),
            )
        }
        HazardFault::UnknownElement => (
            codes::ORDER_NOT_PROVED,
            format!("which element of {what} is meant is not known, so the order of pipes from here on is not proved"),
            "not followed beyond this".to_owned(),
        ),
        HazardFault::UnknownBytes | HazardFault::Order(Wrong::UnknownBytes) => (
            codes::ORDER_NOT_PROVED,
            format!(
                "whether as many bytes come at {what} as are announced is only known at run time, so its order is not \
                proved"
            ),
            "the phase may end here, or not".to_owned(),
        ),
        HazardFault::UnknownNumber => (
            codes::ORDER_NOT_PROVED,
            format!("the number here is only known at run time, so the order that {what} makes is not proved"),
            "not followed beyond this".to_owned(),
        ),
        HazardFault::Race { .. } => (codes::UNDECIDED, String::new(), String::new()),
    };
    let below = cross_role::below(walk, f);
    let message = match (below, data) {
        (Some(at), Some(data)) => cross_role::message(walk, f, data, &what, at),
        _ => message,
    };
    let span = site.stmt.span;
    let mut d = if f.sure {
        Diagnostic::error(id, span, message)
    } else if f.fault.is_unknown() {
        Diagnostic::warning(id, span, message)
    } else {
        Diagnostic::warning(codes::ORDER_NOT_PROVED, span, format!("not excluded: {message}"))
            .with_note("conditions on the path decide it; that they exclude each other is not known")
    };
    d = d.with_label(label);
    if let Some((other, before)) = &f.other
        && *other != f.site
        && anew.is_none()
    {
        let when = text::iterations(walk, (*other as usize, before), (f.site as usize, &f.at));
        let text = match (&f.fault, when) {
            (HazardFault::Order(Wrong::Up(_)), _) => "up since here".to_owned(),
            (HazardFault::Order(Wrong::Down), _) if ring.is_some() => "took the slot before".to_owned(),
            (HazardFault::Order(Wrong::Down), _) => "took it down before".to_owned(),
            (HazardFault::Order(Wrong::Unordered(..)), Some((x, y, n))) if n != 0 => {
                format!("the `{}` of {x}; the `{word}` is that of {y}", data.map_or("wait", taking))
            }
            (HazardFault::Order(Wrong::Unordered(..)), _) => format!("this `{}`", data.map_or("wait", taking)),
            (HazardFault::Order(Wrong::Unannounced { .. }), _) => "the phase may end here, or before".to_owned(),
            (HazardFault::Order(Wrong::Surplus(_)), _) => "the last that the phase takes".to_owned(),
            (HazardFault::Order(Wrong::EarlyArrival(_)), _) => "ends the phase: no bytes are announced yet".to_owned(),
            (HazardFault::Order(Wrong::Overtaken(_)), _) => "may still be looking for the phase before".to_owned(),
            _ => "part of the phase before".to_owned(),
        };
        d = d.with_secondary(text::span(walk, *other), text);
    }
    if let Some(data) = data.filter(|_| anew.is_none()) {
        d = d.with_secondary(data.span, declared(data));
    }
    if let Some(at) = below {
        d = cross_role::explained(walk, d, f, at);
    } else {
        d = why(walk, d, f, data, ring.is_some());
    }
    if matches!(f.fault, HazardFault::LeftUp | HazardFault::Order(Wrong::Down | Wrong::Up(_) | Wrong::Stuck { .. }))
        && let Some(when) = text::when(walk, f)
    {
        d = d.with_note(when);
    }
    if repair.is_none() && below.is_none() {
        d = help(walk, d, f, data, tried);
    }
    d
}

fn declared(data: &EventData) -> String {
    match data.purpose {
        Purpose::RingFull | Purpose::RingEmpty => {
            format!("ring `{}` of {} slot{}", data.name, data.count, if data.count == 1 { "" } else { "s" })
        }
        _ => format!("set on {}, waited for on {}", data.from, data.to),
    }
}

/// The word of the operation that waits for the event.
fn taking(data: &EventData) -> &'static str {
    match data.purpose {
        Purpose::RingEmpty => "acquire",
        _ => "wait",
    }
}

fn ring_waits(walk: &HazardInterpreter, d: &EventData, what: &str, f: &Finding) -> (Code, String, String) {
    let name = &d.name;
    let drain = text::span(walk, f.site) == d.span;
    let message = match (d.purpose, &f.other) {
        (Purpose::RingEmpty, _) if drain && f.why == Why::Uncommitted => {
            format!("{what} is acquired and never committed: the block waits for its release at its end for ever")
        }
        (Purpose::RingEmpty, _) if f.why == Why::Uncommitted => {
            format!("`{name}.acquire()` waits for ever: {what} was acquired before, and is not committed since")
        }
        (Purpose::RingEmpty, _) if f.why == Why::Filled && !drain => {
            format!("`{name}.acquire()` waits for ever: {what} is filled, and nobody has read it yet")
        }
        (Purpose::RingEmpty, _) if drain => {
            format!("{what} is never released: the block waits for it at its end for ever")
        }
        (Purpose::RingEmpty, _) => {
            format!("`{name}.acquire()` waits for ever: {what} is still taken, as nothing has released it since")
        }
        (_, Some(_)) if f.why == Why::Unfilled => {
            format!("`{name}.wait()` waits for ever: {what} was released, and is not filled again since")
        }
        (_, Some(_)) => {
            format!(
                "`{name}.wait()` waits for ever: {what} was taken already, and neither released nor filled again since"
            )
        }
        _ => format!("`{name}.wait()` waits for ever: nothing is committed to {what}"),
    };
    let who = if d.purpose == Purpose::RingEmpty { "the producer" } else { "the consumer" };
    (codes::WAIT_WITHOUT_SET, message, format!("{who} waits here for ever"))
}

fn stuck(
    what: &str,
    pending: u32,
    (announced, came): (&PolyInterval, &PolyInterval),
    completed: u64,
) -> (Code, String, String) {
    let label = "waits for ever".to_owned();
    if announced != came {
        let bytes = match (announced.constant(), came.constant()) {
            (Some(announced), Some(came)) => format!("{announced} bytes are announced, {came} have come"),
            _ => "the bytes that are announced are not those that have come".to_owned(),
        };
        let missing = match pending {
            0 => String::new(),
            1 => ", and 1 arrival is missing".to_owned(),
            n => format!(", and {n} arrivals are missing"),
        };
        return (codes::BARRIER_DEADLOCK, format!("`wait` for {what} never ends: {bytes}{missing}"), label);
    }
    let message = match completed {
        0 => format!("`wait` for {what} never ends: its first phase needs {pending} more {}", arrivals(pending)),
        _ => format!("`wait` for {what} never ends: this phase needs {pending} more {}", arrivals(pending)),
    };
    (codes::BARRIER_DEADLOCK, message, label)
}

fn arrivals(n: u32) -> &'static str {
    if n == 1 { "arrival" } else { "arrivals" }
}

fn why(walk: &HazardInterpreter, d: Diagnostic, f: &Finding, data: Option<&EventData>, ring: bool) -> Diagnostic {
    match &f.fault {
        HazardFault::Order(Wrong::Down) if !ring => {
            d.with_note("each `set` meets one `wait`, and comes before it in the program")
        }
        HazardFault::Order(Wrong::Unordered(..)) => {
            let (from, to) = data.map_or(("S", "S"), |d| (d.from.name(), d.to.name()));
            if text::begins_anew(walk, f).is_some() {
                return d.with_note(format!(
                    "all slots are free at the declaration, says {from}; it may say so while {to} still waits for the \
                    last release of the iteration before"
                ));
            }
            d.with_note(format!("{from} may run ahead of {to}, and a flag that is up already counts once"))
        }
        HazardFault::Order(Wrong::Stuck { announced, came, .. }) if announced == came && none_arrives(walk, f) => {
            d.with_note("nothing in the kernel arrives at it")
        }
        HazardFault::Order(Wrong::Stuck { completed, fresh: true, .. }) if *completed > 0 => d.with_note(format!(
            "the phase before it has ended, so the barrier is in a phase of parity {}",
            completed & 1
        )),
        HazardFault::Order(Wrong::Stuck { .. }) if starts(walk, f) => d.with_note(
            "who fills a stage first waits for parity 1: the barrier starts in phase 0, and nobody has emptied \
            anything yet",
        ),
        HazardFault::Order(Wrong::Stuck { .. }) if f.why == Why::FirstUse => d.with_note(
            "who fills an element first waits for parity 1: it starts in phase 0, and nobody has emptied anything yet",
        ),
        HazardFault::Order(Wrong::Unannounced { .. }) => d.with_note(
            "no byte is pending before the announcement: if the arrivals come first, the phase ends without its bytes",
        ),
        HazardFault::Order(Wrong::OnePhaseEarly(_) | Wrong::Overtaken(_)) => {
            d.with_note("a wait sees the parity of the phase only: after two phases it is as before")
        }
        HazardFault::BytesMoved { moved, .. } if moved.len() > 1 => {
            let parts: Vec<String> = moved.iter().map(i64::to_string).collect();
            d.with_note(format!("the loads before it move {} bytes", parts.join(" + ")))
        }
        _ => d,
    }
}

/// Whether it is the first iteration, before anybody arrived.
fn starts(walk: &HazardInterpreter, f: &Finding) -> bool {
    let first = f.at.iter().all(|n| *n == 0);
    if f.why == Why::FirstUse && walk.code.sites[f.site as usize].loops.iter().all(|l| f.at[*l] == 0) {
        return true;
    }
    match &f.fault {
        HazardFault::Order(Wrong::Stuck { completed: 0, fresh, .. }) => first && *fresh,
        _ => false,
    }
}

fn none_arrives(walk: &HazardInterpreter, f: &Finding) -> bool {
    let event = f.element.map(|e| walk.carried.elements[e as usize].0);
    walk.code.sites.iter().all(|s| match &s.stmt.op {
        Op::Sync(op @ (SyncOp::Arrive(_) | SyncOp::ArriveExpect(..))) => op.event().map(|e| e.event) != event,
        _ => true,
    })
}

/// The `complete` that is missing: bytes are announced, and nothing says that they have come.
fn completing(walk: &HazardInterpreter, f: &Finding, from: Pipe, one: &str) -> String {
    let filled = walk.code.sites[..f.site as usize].iter().rev().filter(|s| s.pipe == Some(from)).find_map(|s| {
        s.touches.iter().find_map(|t| match (t.kind, t.what) {
            (TouchKind::Write, Place::Tile(r)) => Some((s, text::tile(walk.code, r))),
            _ => None,
        })
    });
    match filled {
        Some((site, tile)) => {
            let near = text::operation(&site.stmt.op);
            let tile = tile.trim_matches('`');
            format!("nothing says that the bytes have come: `complete({one}, bytes({tile}));` after {near}")
        }
        None => format!("nothing says that the bytes have come: `complete({one}, ..);` after what moves them"),
    }
}

/// What to look for, where no change was found that mends it.
fn help(
    walk: &HazardInterpreter,
    d: Diagnostic,
    f: &Finding,
    data: Option<&EventData>,
    tried: Option<Advice>,
) -> Diagnostic {
    let Some(data) = data else { return d };
    let ring = matches!(data.purpose, Purpose::RingFull | Purpose::RingEmpty);
    let (name, from, to) = (&data.name, data.from, data.to);
    let one = match f.element {
        Some(e) if data.count > 1 => format!("{name}[{}]", walk.carried.elements[e as usize].1),
        _ => name.to_string(),
    };
    match (&f.fault, ring) {
        (HazardFault::Order(Wrong::Down), true) if f.why == Why::Uncommitted => d.with_help(format!(
            "call `{name}.commit()` when the slot is filled, once for each `acquire()` and on the same paths"
        )),
        (HazardFault::Order(Wrong::Down), true) if f.why == Why::Filled && text::span(walk, f.site) != data.span => d
            .with_help(format!(
                "acquire it after its `{name}.wait()` and `{name}.release()`, or give the ring more than {} slot{}",
                data.count,
                if data.count == 1 { "" } else { "s" }
            )),
        (HazardFault::Order(Wrong::Down), true) if f.why == Why::Unfilled && f.other.is_some() => {
            d.with_help("fill and commit a slot for each `wait()`, on the same paths".to_owned())
        }
        (HazardFault::Order(Wrong::Down), true) if data.purpose == Purpose::RingEmpty => {
            d.with_help(format!("call `{name}.release()` when the slot has been read, once for each `wait()`"))
        }
        (HazardFault::Order(Wrong::Down), true) if f.other.is_some() => {
            d.with_help(format!("call `{name}.release()` after each `wait()`, when the slot has been read"))
        }
        (HazardFault::Order(Wrong::Down), true) => {
            d.with_help(format!("call `{name}.commit()` when the slot is filled, once for each `acquire()`"))
        }
        (HazardFault::Order(Wrong::Down), false) => {
            let add = format!("pipe {from} has to set `{one}` before this `wait`, on each path that leads here");
            d.with_help(match walk.code.sites[f.site as usize].loops.is_empty() || f.other.is_some() {
                true => add,
                false => format!("{add}; if pipe {to} need not wait the first time, set it once before the loop"),
            })
        }
        (HazardFault::LeftUp, false) => {
            d.with_help(format!("pipe {to} has to wait for `{one}` once for each `set`, on the same paths"))
        }
        (HazardFault::LeftUp, true) => d.with_help("each slot that is committed is waited for and released".to_owned()),
        (HazardFault::Order(Wrong::Up(_)), false) => {
            d.with_help(format!("pipe {to} has to wait for `{one}` between the two"))
        }
        (HazardFault::Order(Wrong::Unordered(..)), true) if text::begins_anew(walk, f).is_some() => {
            d.with_help("declare the ring before the loop".to_owned())
        }
        (HazardFault::Order(Wrong::Unordered(..)), false) => d.with_help(format!(
            "let pipe {from} wait for pipe {to} in between (an event the other way), or use an array of events and \
            take them in turn"
        )),
        (HazardFault::UnknownBytes, _) => d.with_help("announce and complete with the same expression"),
        (HazardFault::Order(Wrong::Stuck { completed, fresh: true, .. }), _) if *completed > 0 => {
            let parity = completed & 1;
            d.with_help(format!(
                "parity {} waits for the phase before, which is over; to wait for this one, pipe {from} has to arrive \
                before it",
                1 - parity
            ))
        }
        (HazardFault::Order(Wrong::Stuck { .. }), _) if starts(walk, f) => {
            d.with_help("start with phase 1, or arrive before the first wait".to_owned())
        }
        (HazardFault::Order(Wrong::Stuck { .. }), _) if f.why == Why::FirstUse && data.count > 1 => d.with_help(format!(
            "the first wait for each of the {} elements has to be for parity 1: the parity changes when all of them \
            were used once, not with each iteration",
            data.count
        )),
        (HazardFault::Order(Wrong::Stuck { pending, .. }), _) if *pending > 0 => {
            let declared = match data.kind {
                ptoc_ir::tile::EventKind::Barrier { arrivals } => arrivals,
                ptoc_ir::tile::EventKind::Flag => 0,
            };
            d.with_help(if *pending < declared {
                let come = declared - pending;
                match tried {
                    Some(Advice::Arrivals) => {
                        format!("{come} of {declared} arrivals come: declare `arrivals = {come}`")
                    }
                    _ => format!("{come} of {declared} arrivals come: some are missing, or too many are declared"),
                }
            } else {
                format!("pipe {from} has to arrive at `{one}` when the work is done that is waited for")
            })
        }
        (HazardFault::Order(Wrong::EarlyArrival(_)), _) => {
            d.with_help("announce before the arrival, or both in one step: `arrive_and_expect`".to_owned())
        }
        (HazardFault::Order(Wrong::Unannounced { .. }), _) => d.with_help(
            "let the role that arrives announce the bytes too, in one step: `arrive_and_expect`; or let it wait until \
            they are announced"
                .to_owned(),
        ),
        (HazardFault::Order(Wrong::Surplus(_)), _) => {
            let ptoc_ir::tile::EventKind::Barrier { arrivals } = data.kind else { return d };
            d.with_help(format!(
                "leave it out, declare more arrivals than {arrivals}, or arrive for the next phase after the wait for \
                this one"
            ))
        }
        (HazardFault::ArrivalsLeft { of, .. }, _) => d.with_help(format!(
            "arrive {} in each phase: leave out what is too much, or add what is missing",
            if *of == 1 { "once".to_owned() } else { format!("{of} times") }
        )),
        (HazardFault::BytesLeft { came: Some(0), announced: Some(1..) }, _) => {
            d.with_help(completing(walk, f, from, &one))
        }
        (HazardFault::Order(Wrong::Stuck { announced, came, .. }), _)
            if came.constant() == Some(0) && announced.constant() != Some(0) =>
        {
            d.with_help(completing(walk, f, from, &one))
        }
        (HazardFault::BytesLeft { .. } | HazardFault::Order(Wrong::Stuck { .. }), _) => {
            d.with_help("announce as many bytes as the loads move".to_owned())
        }
        _ => d,
    }
}
