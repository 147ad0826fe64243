//! What is said of races and of synchronisation that does not work.

use super::clocks::place;
use super::protocol::{Breach, Name, Pending};
use super::races::Conflict;
use super::touches::{Object, TouchKind};
use super::{Item, Running};
use crate::machine::Machine;
use crate::trap::Trap;
use ptoc_diagnostics::{Code, codes};
use ptoc_ir::tile::{EventKind, Op, Purpose, SyncOp};
use ptoc_isa::{Loc, Pipe};

/// A wait that nothing before it in program order ends.
pub(super) struct Stuck {
    pub name: Name,
    pub pending: Option<Pending>,
    pub item: u32,
    /// What ends it later in program order, and whether that comes after the wait itself.
    pub set: Option<(u32, bool)>,
}

impl Stuck {
    pub fn new(name: Name, pending: Option<Pending>, item: u32) -> Stuck {
        Stuck { name, pending, item, set: None }
    }

    /// The parity that is waited for.
    pub fn parity(&self) -> u8 {
        self.pending.map_or(0, |p| p.parity)
    }
}

fn times(n: i64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// How an instruction touches bytes.
fn verb(kind: TouchKind) -> &'static str {
    match kind {
        TouchKind::Read => "reads",
        TouchKind::Write => "writes",
        TouchKind::Atomic(_) => "updates",
    }
}

impl<'k> Machine<'k, '_> {
    fn item_trap(&self, code: Code, item: &Item<'k>, message: String, label: impl Into<String>) -> Trap {
        Trap {
            label: label.into(),
            block: self.coordinates().map(<[i64]>::to_vec),
            ..Trap::new(code, item.span, message)
        }
    }

    /// `V`, `V of role loader`
    fn pipe(&self, item: &Item<'k>) -> String {
        let (role, pipe) = place(item.stamp.stream);
        let role = role.checked_sub(1).and_then(|n| self.k.roles.values().nth(n as usize));
        role.map_or(pipe.to_string(), |r| format!("{pipe} of role `{}`", r.name))
    }

    /// `e[1]`, and what it stands for.
    fn event(&self, name: Name) -> String {
        let data = &self.k.events[name.event];
        let element = if data.count > 1 { format!("[{}]", name.element) } else { String::new() };
        let what = match data.purpose {
            Purpose::RingFull => " (slot filled)",
            Purpose::RingEmpty => " (slot free)",
            Purpose::Author | Purpose::Inserted => "",
        };
        format!("`{}{element}`{what}", data.name)
    }

    // ---- races ---------------------------------------------------------------------------------------------------

    pub(super) fn race_trap(&self, r: &Running<'k>, conflict: &Conflict, space: u32) -> Trap {
        let of = |number: u32| {
            let (item, object) = r.uses[number as usize];
            (&r.items[item as usize], object)
        };
        let ((first, was), (second, is)) = (of(conflict.first.number), of(conflict.second.number));
        let (before, after) = (conflict.first.kind, conflict.second.kind);
        let (code, short) = match (before, after) {
            (TouchKind::Write | TouchKind::Atomic(_), TouchKind::Read) => (codes::TRAP_RACE_RAW, "read after write"),
            (TouchKind::Read, _) => (codes::TRAP_RACE_WAR, "write after read"),
            (TouchKind::Atomic(_), TouchKind::Atomic(_)) => (codes::TRAP_RACE_ATOMIC, "their order shows"),
            _ => (codes::TRAP_RACE_WAW, "write after write"),
        };
        let (one, two) = (self.pipe(first), self.pipe(second));
        let here = self.place_of(is, conflict.byte);
        let message = match before {
            TouchKind::Read => format!("{two} {} {here} that {one} may still be reading ({short})", verb(after)),
            TouchKind::Atomic(_) if matches!(after, TouchKind::Atomic(_)) => {
                format!("{two} may update {here} before {one} does ({short})")
            }
            _ => format!("{two} {} {here} that {one} may still be writing ({short})", verb(after)),
        };
        let mut trap =
            self.item_trap(code, second, message, format!("{two} {} it here ({})", verb(after), word(second.op)));
        trap.labels.push((
            first.span,
            format!("{one} {} it here ({}), and nothing orders the two", verb(before), word(first.op)),
        ));
        let address = match Loc::ALL.get(space as usize) {
            Some(loc) => format!("byte {:#x} of {loc}", conflict.byte),
            None => format!("byte {:#x} of the tensor", conflict.byte),
        };
        trap.notes.push(match was == is {
            true => format!("they meet at {address}"),
            false => format!("they meet at {address}, for the other {}", self.place_of(was, conflict.byte)),
        });
        if let (TouchKind::Atomic(a), TouchKind::Atomic(b)) = (before, after) {
            trap.notes.push(a.disagreement(b));
        }
        trap.notes.extend(distance(first, second));
        trap.help = Some(self.order_help(first, second, before));
        trap
    }

    fn order_help(&self, first: &Item<'k>, second: &Item<'k>, before: TouchKind) -> String {
        let ((role, from), (other, to)) = (place(first.stamp.stream), place(second.stamp.stream));
        if (role, from) == (other, to) {
            return format!(
                "{from} may start an instruction before the one before it is done: put `barrier({from})` between them"
            );
        }
        let did = match before {
            TouchKind::Read => "read",
            TouchKind::Write => "written",
            TouchKind::Atomic(_) => "updated",
        };
        if from == to {
            return format!(
                "the two roles have pipes of their own: let {from} signal another pipe once it has {did} it, and that \
                one {to}"
            );
        }
        format!("set an event from {from} to {to} once {from} has {did} it, and wait for it before {to} goes on")
    }

    /// The element of a tile or tensor that a byte of its memory belongs to.
    fn place_of(&self, object: Object, byte: u64) -> String {
        match object {
            Object::Tensor(t) => {
                let tensor = &self.tensors[t];
                format!("{}{:?}", self.tensor_name(t), tensor.coordinates(byte / tensor.dtype.size() as u64))
            }
            Object::Tile(tile, element) => {
                let data = &self.k.tiles[tile];
                let name = match data.count {
                    1 => format!("tile `{}`", data.name),
                    _ => format!("tile `{}[{element}]`", data.name),
                };
                let slot = self.tiles.existing(self.k, tile, element as usize).ok();
                let at = slot.and_then(|slot| {
                    let all = (0..data.ty.rows as usize).flat_map(|i| (0..data.ty.cols as usize).map(move |j| (i, j)));
                    let mut all = all.filter(|&(i, j)| {
                        self.tiles.physical_bytes(&slot, i, j).is_some_and(|bytes| bytes.contains(&byte))
                    });
                    all.next()
                });
                at.map_or(name.clone(), |(i, j)| format!("element ({i}, {j}) of {name}"))
            }
        }
    }

    // ---- synchronisation -----------------------------------------------------------------------------------------

    pub(super) fn stuck_trap(&self, r: &Running<'k>, stuck: &Stuck) -> Trap {
        let item = &r.items[stuck.item as usize];
        let (pipe, event, data) = (self.pipe(item), self.event(stuck.name), &self.k.events[stuck.name.event]);
        let (from, barrier) = (data.from, matches!(data.kind, EventKind::Barrier { .. }));
        // More bytes came than were announced, and no announcement follows: this is no matter of order.
        let surplus = stuck.pending.map(|p| -p.bytes).filter(|n| *n > 0 && stuck.set.is_none());
        let message = match (&stuck.pending, &stuck.set, surplus) {
            (Some(p), _, Some(surplus)) => format!(
                "phase {} of {event} does not end: {} more came than were announced, and {pipe} waits for parity {}",
                p.phase,
                times(surplus, "byte"),
                p.parity
            ),
            (Some(p), _, None) => {
                let bytes = if p.bytes == 0 { String::new() } else { format!(" and {}", times(p.bytes, "byte")) };
                format!(
                    "deadlock: {pipe} waits for parity {} of {event}, which stays in phase {}: it still needs {} of \
                    {}{bytes}",
                    p.parity,
                    p.phase,
                    p.arrivals,
                    times(i64::from(p.of), "arrival")
                )
            }
            (None, None, _) => format!("deadlock: {pipe} waits for {event}, and {from} never sets it"),
            (None, Some((_, true)), _) => {
                format!("deadlock: {pipe} waits for {event}, which {from} sets only after this wait")
            }
            (None, Some((_, false)), _) => {
                format!("{pipe} waits for {event}, which {from} sets only later in program order")
            }
        };
        let code = if surplus.is_some() { codes::TRAP_BYTES } else { codes::TRAP_DEADLOCK };
        let mut trap = self.item_trap(code, item, message, "this wait never ends");
        if let Some((set, _)) = stuck.set {
            let what = if barrier { "the phase would end here" } else { "set here" };
            trap.labels.push((r.items[set as usize].span, what.into()));
        }
        trap.notes.extend(self.iteration(item));
        let first = stuck.pending.is_some_and(|p| p.phase == 0 && p.parity == 0 && p.arrivals == p.of);
        trap.help = Some(match (&stuck.set, first) {
            (Some((_, true)), true) => {
                "nobody has filled or released anything yet: a producer's first wait is for parity 1, which goes \
                through"
                    .into()
            }
            (Some((_, false)), _) => "the meaning of a block is its program order: put what is waited for before the \
                wait"
                .into(),
            (Some((_, true)), false) => {
                "the two wait for each other: put the set where it does not depend on this wait, or set the event once \
                before"
                    .into()
            }
            (None, _) if surplus.is_some() => {
                "announce each byte that comes: `expect` or `arrive_and_expect` with what the loads of the phase move"
                    .into()
            }
            (None, _) if barrier => format!(
                "every phase takes as many arrivals as `{}` was declared with, and every announced byte",
                data.name
            ),
            (None, _) => format!("set {event} on {from} before, or drop the wait"),
        });
        trap
    }

    pub(super) fn breach_trap(&self, r: &Running<'k>, at: Option<u32>, breach: &Breach) -> Trap {
        let item = |n: u32| &r.items[n as usize];
        let me = |other: u32| at.map_or(item(other), item);
        match breach {
            Breach::Stuck { name, pending } => self.stuck_trap(r, &Stuck::new(*name, *pending, at.unwrap_or(0))),
            Breach::Up { name, set } => {
                let (me, event) = (me(*set), self.event(*name));
                let message = format!("{} sets {event}, which is set already: no wait took it down", self.pipe(me));
                let mut trap = self.item_trap(codes::TRAP_EVENT_REUSE, me, message, "set again here");
                trap.labels.push((item(*set).span, "set here".into()));
                trap.notes.extend(distance(item(*set), me));
                trap.help =
                    Some(format!("wait for {event} once for every set, or use another element of an array of events"));
                trap
            }
            Breach::Reused { name, set, wait } => {
                let (me, event) = (me(*set), self.event(*name));
                let message = format!(
                    "{} may set {event} again before {} has waited for it",
                    self.pipe(me),
                    self.pipe(item(*wait))
                );
                let mut trap = self.item_trap(codes::TRAP_EVENT_REUSE, me, message, "set again here");
                trap.labels.push((item(*set).span, "set before here".into()));
                trap.labels
                    .push((item(*wait).span, "waited for here; nothing orders this before the second set".into()));
                trap.notes.extend(distance(item(*set), me));
                let (from, to) = (place(me.stamp.stream).1, place(item(*wait).stamp.stream).1);
                trap.help = Some(format!("let {from} wait for an event that {to} sets after its wait"));
                trap
            }
            Breach::LeftUp { name, set } => {
                let (me, event, to) = (item(*set), self.event(*name), self.k.events[name.event].to);
                let message = format!("{event} is still set at the end of the block: no wait on {to} took it down");
                let mut trap = self.item_trap(codes::TRAP_EVENT_LEFT, me, message, "set here for the last time");
                trap.notes.extend(self.iteration(me));
                trap.help = Some(format!("wait for {event} on {to} once more at the end, or set it once less"));
                trap
            }
            Breach::Early { name, phase } => {
                let me = me(0);
                let message = format!(
                    "{} may go through its wait for {} a round early: nothing makes it see the end of phase {}, and \
                    two phases later the parity is the same",
                    self.pipe(me),
                    self.event(*name),
                    phase.saturating_sub(2)
                );
                let mut trap = self.item_trap(codes::TRAP_PARITY, me, message, "waited for here");
                trap.help = Some("wait for every phase on this pipe, toggling the parity at each wrap".into());
                trap
            }
            Breach::Overtaken { name, wait, phase } => {
                let me = me(*wait);
                let message = format!(
                    "phase {phase} of {} may end before {} has looked: its wait would not see the phase before any \
                    more",
                    self.event(*name),
                    self.pipe(item(*wait))
                );
                let mut trap = self.item_trap(codes::TRAP_PARITY, me, message, "the phase ends here");
                trap.labels.push((item(*wait).span, "the wait that may come too late".into()));
                trap.help = Some(
                    "let one arrival of the phase come after that wait: through a barrier that the waiter releases"
                        .into(),
                );
                trap
            }
            Breach::Mixed { name, other, phase } => {
                let me = me(*other);
                let message = format!(
                    "{} may count for phase {} of {} instead of phase {phase}: nothing makes it come after the end of \
                    that",
                    self.pipe(me),
                    phase.saturating_sub(1),
                    self.event(*name)
                );
                let mut trap = self.item_trap(codes::TRAP_PARITY, me, message, "counted here");
                trap.labels.push((item(*other).span, "the phase before ends here".into()));
                trap.help = Some("wait for the phase before (through whoever is released by it) first".into());
                trap
            }
            Breach::Unannounced { name, expect, phase } => {
                let me = item(*expect);
                let message = format!(
                    "phase {phase} of {} may end before these bytes are announced: no arrival comes after this \
                    `expect`",
                    self.event(*name)
                );
                let mut trap = self.item_trap(codes::TRAP_EARLY_FLIP, me, message, "announced here");
                trap.help = Some("announce and arrive in one step (`arrive_and_expect`), or before arriving".into());
                trap
            }
            Breach::Unfinished { name, last, arrivals, announced, came, before } => {
                let event = self.event(*name);
                let (me, numbers) = (item(*last), format!("{} announced, {came} came", times(*announced, "byte")));
                let (code, message) = match before {
                    Some(_) => (
                        codes::TRAP_EARLY_FLIP,
                        format!(
                            "an arrival has ended a phase of {event} before its bytes were announced ({numbers} in the \
                            next phase)"
                        ),
                    ),
                    None if *announced == 0 && *came == 0 => (
                        codes::TRAP_EVENT_LEFT,
                        format!(
                            "a phase of {event} begins and does not end: {} missing",
                            times(i64::from(*arrivals), "arrival")
                        ),
                    ),
                    None if announced != came => {
                        (codes::TRAP_BYTES, format!("a phase of {event} does not end: {numbers}"))
                    }
                    None => (
                        codes::TRAP_BYTES,
                        format!(
                            "a phase of {event} does not end: {} missing ({numbers})",
                            times(i64::from(*arrivals), "arrival")
                        ),
                    ),
                };
                let mut trap = self.item_trap(code, me, message, "the last step of this phase");
                match before {
                    Some(flip) => {
                        trap.labels.push((item(*flip).span, "this arrival ends the phase early".into()));
                        trap.help =
                            Some("announce and arrive in one step (`arrive_and_expect`), or announce first".into());
                    }
                    None if *announced == 0 && *came == 0 => {
                        trap.help = Some("arrive as often as declared in each phase, and no more".into())
                    }
                    None => {
                        trap.help = Some(
                            "announce as many bytes as the loads of the phase move, and arrive as often as declared"
                                .into(),
                        )
                    }
                }
                trap
            }
            Breach::Surplus { name, other, of, bytes } => {
                let me = me(*other);
                let message = format!(
                    "one arrival too many at {}: its phase has had {}, and waits for {}",
                    self.event(*name),
                    times(i64::from(*of), "arrival"),
                    times(*bytes, "byte")
                );
                let mut trap = self.item_trap(codes::TRAP_PARITY, me, message, "one more arrives here");
                trap.labels.push((item(*other).span, "the last one that the phase takes".into()));
                trap.help =
                    Some("declare as many arrivals as there are, and arrive for the next phase after this one".into());
                trap
            }
            Breach::Bytes { name, bytes } => {
                let me = me(0);
                let message =
                    format!("{} has {bytes} bytes pending, beyond the 20 bits that it counts with", self.event(*name));
                self.item_trap(codes::TRAP_BYTES, me, message, "here")
            }
        }
    }

    /// The loads before `item` have moved other bytes than it says.
    pub(super) fn moved_trap(&self, r: &Running<'k>, item: u32, name: Name, said: i64, moved: &[u64]) -> Trap {
        let (me, total) = (&r.items[item as usize], moved.iter().fold(0u64, |a, b| a.saturating_add(*b)));
        let message =
            format!("{} are said to have come at {}, and {total} were moved", times(said, "byte"), self.event(name));
        let mut trap = self.item_trap(codes::TRAP_BYTES, me, message, format!("says {said}"));
        if moved.len() > 1 {
            let parts: Vec<String> = moved.iter().map(u64::to_string).collect();
            trap.notes.push(format!("the loads before it move {} bytes", parts.join(" + ")));
        }
        trap.notes.extend(self.iteration(me));
        trap.help =
            Some("say what the loads have moved: all that their windows can hold, or what is valid of it".into());
        trap
    }

    /// In which iteration an item is.
    fn iteration(&self, item: &Item<'k>) -> Option<String> {
        let list: Vec<String> = item.loops.iter().map(|(_, n)| n.to_string()).collect();
        (!list.is_empty())
            .then(|| format!("in iteration {} of its loop{}", list.join(", "), if list.len() == 1 { "" } else { "s" }))
    }
}

/// How many iterations lie between two items.
fn distance(first: &Item<'_>, second: &Item<'_>) -> Option<String> {
    let pairs = first.loops.iter().zip(second.loops.iter());
    let common = pairs.take_while(|((a, _), (b, _))| a == b);
    let (level, n) = common.map(|((_, a), (_, b))| b - a).enumerate().find(|&(_, n)| n != 0)?;
    let outer = if level + 1 < first.loops.len() { "outer " } else { "" };
    Some(format!("the second is {} of the {outer}loop later", times(n, "iteration")))
}

/// A word for what an item does.
pub(super) fn word(op: &Op) -> &'static str {
    match op {
        Op::Inst(inst) => inst.instr.get().written_name(),
        Op::Copy(_) => "copy",
        Op::Mma(_) => "mma",
        Op::Sync(SyncOp::Barrier(_)) => "barrier",
        Op::Sync(sync) => sync.word(),
        _ => Pipe::S.name(),
    }
}
