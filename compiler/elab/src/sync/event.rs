//! Flags: `event<P, Q>[n]`, `set`, `wait`, `TSYNC`; and `barrier`.

use super::{ElabResult, Elaborator, ErrorReported};
use crate::labels::count;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Event, EventData, EventKind, EventRef, Purpose, SyncOp};
use ptoc_isa::Pipe;
use ptoc_names::builtins::SyncFn;
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, EventSpec, EventVal, Val};

impl Elaborator<'_> {
    /// `event<P, Q>`
    pub(crate) fn event_type(&mut self, statics: &[Arg], span: Span) -> ElabResult<Val> {
        let pipes = self.two_pipes(SyncFn::Event, statics, span)?;
        self.manual("an event", span)?;
        Ok(Val::EventType(EventSpec { kind: EventKind::Flag, pipes, count: None }))
    }

    /// `event<P, Q>[n]`
    pub(crate) fn event_array(&mut self, spec: &EventSpec, args: &[Arg], span: Span) -> ElabResult<Val> {
        if spec.count.is_some() {
            return self.error(codes::TYPE_MISMATCH, span, "events have one dimension");
        }
        let e = self.exactly(args, 1, "event<P, Q>[count]", span)?[0];
        let v = self.expr(e)?;
        let count = self.static_extent(&v, e.span, "the number of events")?;
        // Flags have a tighter bound of the hardware's.
        if count > 1 << 16 {
            return self.error(codes::BAD_EXTENT, e.span, format!("{count} events are more than anything needs"));
        }
        Ok(Val::EventType(EventSpec { count: Some(count), ..*spec }))
    }

    /// `let e = event<P, Q>[n];`
    pub(crate) fn declare_event(&mut self, spec: &EventSpec, name: &Ident) -> ElabResult<Val> {
        let event = self.new_event(spec, name, Purpose::Author)?;
        Ok(Val::Event(EventVal { event, array: spec.count, element: None }))
    }

    /// A new event, if there are flags left between its pipes.
    pub(crate) fn new_event(&mut self, spec: &EventSpec, name: &Ident, purpose: Purpose) -> ElabResult<Event> {
        let (from, to) = spec.pipes;
        let count = spec.count.unwrap_or(1);
        let data = EventData { name: name.name.clone(), kind: spec.kind, from, to, count, purpose, span: name.span };
        let flags = |k: EventKind| k == EventKind::Flag;
        let users: Vec<EventData> = self
            .b
            .kernel()
            .events
            .values()
            .filter(|e| flags(e.kind) && (e.from, e.to) == spec.pipes)
            .chain([&data])
            .cloned()
            .collect();
        let used: u32 = users.iter().map(|e| e.count).sum();
        if flags(spec.kind) && used > self.target.pipes.flags {
            return self.too_many(&users, used, name.span);
        }
        Ok(self.b.kernel_mut().events.push(data))
    }

    fn too_many<T>(&mut self, users: &[EventData], used: u32, span: Span) -> ElabResult<T> {
        let Some(last) = users.last() else { return Err(ErrorReported) };
        let flags = self.target.pipes.flags;
        let what = |e: &EventData| match e.purpose {
            Purpose::RingFull => format!("{}, of the ring `{}`: its slots are filled", e.count, e.name),
            Purpose::RingEmpty => format!("{}, of the ring `{}`: its slots are free", e.count, e.name),
            _ => format!("{}, of `{}`", e.count, e.name),
        };
        let mut d = Diagnostic::error(
            codes::TOO_MANY_FLAGS,
            span,
            format!(
                "{} from {} to {}, and `{}` has {flags}",
                count(used as usize, "flag", "flags"),
                last.from,
                last.to,
                self.target.name
            ),
        )
        .with_label(what(last));
        for e in &users[..users.len() - 1] {
            d = d.with_secondary(e.span, what(e));
        }
        let before = used - last.count;
        let d = match flags.checked_sub(before) {
            Some(left) if left > 0 => {
                d.with_help(format!("{left} {} left: make this one smaller", if left == 1 { "is" } else { "are" }))
            }
            _ => d,
        };
        self.report(d.with_help("one event may serve several tiles that are loaded, used or stored together"))
    }

    /// The event that `e` is, one element of it.
    pub(crate) fn event_arg(&mut self, e: &Expr, function: &str) -> ElabResult<EventVal> {
        let v = self.expr(e)?;
        match v {
            Val::Event(EventVal { event, array: Some(n), element: None }) => {
                let data = &self.b.kernel().events[event];
                let d = Diagnostic::error(
                    codes::WRONG_EVENT,
                    e.span,
                    format!("`{function}` takes one event, `{}` is an array of {n}", data.name),
                )
                .with_label("which one?")
                .with_secondary(data.span, format!("{n} events"))
                .with_help(format!(
                    "choose one: `{}[0]`, or `for b in 0..{n} {{ {function}({}[b]); }}`",
                    data.name, data.name
                ));
                self.report(d)
            }
            Val::Event(e) => Ok(e),
            Val::Poison => Err(ErrorReported),
            Val::Ring(r) => {
                let d = Diagnostic::error(
                    codes::WRONG_EVENT,
                    e.span,
                    format!("`{function}` takes an event, `{}` is a ring", r.name),
                )
                .with_label("a ring")
                .with_help(format!(
                    "a ring has its events in it: `{}.acquire()`, `.commit()`, `.wait()`, `.release()`",
                    r.name
                ));
                self.report(d)
            }
            Val::EventType(_) => {
                let d = Diagnostic::error(codes::WRONG_EVENT, e.span, "an event that nothing else can name")
                    .with_label("declared here and gone")
                    .with_help("declare it before: `let e = event<MTE2, V>;`");
                self.report(d)
            }
            other => {
                let d = Diagnostic::error(
                    codes::WRONG_EVENT,
                    e.span,
                    format!("`{function}` takes an event, this is {}", other.describe()),
                )
                .with_label(other.describe())
                .with_help("an event is declared by `let e = event<MTE2, V>;`");
                self.report(d)
            }
        }
    }

    /// `e[b]`
    pub(crate) fn index_event(&mut self, e: &EventVal, args: &[Arg], span: Span) -> ElabResult<Val> {
        let (Some(n), None) = (e.array, e.element) else {
            let name = &self.b.kernel().events[e.event].name;
            let one = if e.element.is_some() { format!("an element of `{name}`") } else { format!("`{name}`") };
            let d = Diagnostic::error(codes::WRONG_EVENT, span, format!("{one} is one event, and has no elements"))
                .with_label("no array");
            return self.report(d);
        };
        let at = self.exactly(args, 1, "events[number]", span)?[0];
        let v = self.expr(at)?;
        let i = self.index_of(&v, at.span)?;
        let extent = self.idx(i64::from(n));
        let what = format!("the events `{}`", self.b.kernel().events[e.event].name);
        self.check_index(i, extent, &what, at.span)?;
        Ok(Val::Event(EventVal { element: Some(i), ..*e }))
    }

    pub(crate) fn event_ref(e: &EventVal) -> EventRef {
        EventRef { event: e.event, element: e.element }
    }

    /// A flag, not a transaction barrier; `flag` false: the other way round.
    pub(crate) fn of_kind(&mut self, e: &EventVal, flag: bool, function: &str, span: Span) -> ElabResult<()> {
        let data = &self.b.kernel().events[e.event];
        if (data.kind == EventKind::Flag) == flag {
            return Ok(());
        }
        let name = data.name.clone();
        let (is, help) = match (flag, function) {
            (true, "wait" | "TSYNC") => (
                "a transaction barrier",
                format!("say which phase must be over: `wait({name}, parity)`, where the first is 0"),
            ),
            (true, _) => ("a transaction barrier", format!("`arrive({name})` is an arrival at it")),
            (false, "wait") => ("a flag", format!("a flag has no phases: `wait({name})`")),
            (false, _) => {
                ("a flag", format!("a flag is raised by `set({name})`; `mbarrier<P, Q>(arrivals = n)` counts"))
            }
        };
        let takes = match (flag, function) {
            (true, _) => format!("`{function}` takes a flag"),
            (false, "wait") => "`wait` with a parity takes a transaction barrier".into(),
            (false, _) => format!("`{function}` takes a transaction barrier"),
        };
        let d = Diagnostic::error(codes::WRONG_EVENT, span, format!("{takes}, `{name}` is {is}"))
            .with_label(is)
            .with_secondary(data.span, "declared here")
            .with_help(help);
        self.report(d)
    }

    /// `set(e)`
    pub(crate) fn set_flag(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        let at = self.exactly(args, 1, "set(e)", span)?[0];
        let e = self.event_arg(at, "set")?;
        self.of_kind(&e, true, "set", at.span)?;
        self.sync_op(SyncOp::Set(Self::event_ref(&e)), span)?;
        Ok(Val::Unit)
    }

    /// `wait(e)`, `wait(b, parity)`
    pub(crate) fn wait_call(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        self.no_names(args)?;
        if let [e, parity] = args {
            return self.wait_phase(&e.value, &parity.value, span);
        }
        let at = self.exactly(args, 1, "wait(e)", span)?[0];
        let e = self.event_arg(at, "wait")?;
        self.of_kind(&e, true, "wait", at.span)?;
        self.sync_op(SyncOp::Wait(Self::event_ref(&e)), span)?;
        Ok(Val::Unit)
    }

    /// `barrier(P)`, `barrier()`
    pub(crate) fn pipe_barrier(&mut self, args: &[Arg], span: Span, name: Span) -> ElabResult<Val> {
        self.no_names(args)?;
        let pipe = match args {
            [] => None,
            [p] => Some(self.pipe(&p.value)?),
            _ => {
                let message = format!("`barrier` takes one pipe or none, {} given", args.len());
                let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, message)
                    .with_help("`barrier();` is one of all pipes");
                return self.report(d);
            }
        };
        self.manual("a barrier", name)?;
        if pipe == Some(Pipe::S) {
            let d = Diagnostic::error(codes::SAME_PIPE, args[0].value.span, "S never runs ahead of itself")
                .with_label("issues everything, one after the other")
                .with_help("to wait for other pipes: `wait(e)` of an event to S, or `barrier()`");
            return self.report(d);
        }
        self.sync_op(SyncOp::Barrier(pipe), span)?;
        Ok(Val::Unit)
    }

    /// `TSYNC(e, ..)` waits, `TSYNC(P)` and `TSYNC()` are barriers.
    pub(crate) fn tsync(&mut self, args: &[Arg], span: Span, name: Span) -> ElabResult<Val> {
        self.no_names(args)?;
        let pipe = match args {
            [] => true,
            [a] => matches!(&*a.value.kind, ExprKind::Name(n)
                if self.env.get(n).is_none_or(|(b, _)| !matches!(b, Binding::Let(Val::Event(_))))
                    && Pipe::from_name(n).is_some()),
            _ => false,
        };
        if pipe {
            return self.pipe_barrier(args, span, name);
        }
        let mut waits = Vec::new();
        for a in args {
            let e = self.event_arg(&a.value, "TSYNC")?;
            self.of_kind(&e, true, "TSYNC", a.value.span)?;
            waits.push(Self::event_ref(&e));
        }
        for e in waits {
            self.sync_op(SyncOp::Wait(e), span)?;
        }
        Ok(Val::Unit)
    }
}
