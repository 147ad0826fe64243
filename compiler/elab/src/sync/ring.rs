//! Rings: slots, an event for each of them in both directions, and the places of the two sides.
//!
//! `acquire` waits until the producer's slot is free and gives it, `commit` announces that it is filled and goes on to
//! the next; `wait` waits until the consumer's slot is filled and gives it, `release` announces that it is free and
//! goes on. All slots are free at the declaration, and free again at the end of the ring's scope, where both sides meet
//! (the drain).

use super::{ElabResult, Elaborator, ErrorReported, Jump};
use crate::inst::instr_for;
use crate::tileops::tile;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{EventKind, EventRef, InstAttrs, Purpose, SyncOp, Ty, Value, Var};
use ptoc_isa::{BinOp, CmpOp, Sem};
use ptoc_names::builtins::SyncFn;
use ptoc_syntax::ast::*;
use ptoc_values::{EventSpec, Ring, RingSpec, Slots, TileVal, Val};
use std::rc::Rc;

/// A ring whose scope has not ended.
pub(super) struct Live {
    ring: Rc<Ring>,
    span: Span,
    /// Functions and loops around its declaration.
    nesting: (usize, usize),
}

/// One of the two sides.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RingSide {
    Producer,
    Consumer,
}

impl RingSide {
    fn of(self, ring: &Ring) -> String {
        match self {
            RingSide::Producer => format!("the filling side of the ring `{}`", ring.name),
            RingSide::Consumer => format!("the emptying side of the ring `{}`", ring.name),
        }
    }
}

impl Elaborator<'_> {
    /// `ring<P, Q>(tile T[n] at ..)`
    pub(crate) fn ring_type(&mut self, statics: &[Arg], args: &[Arg], span: Span) -> ElabResult<Val> {
        let pipes = self.two_pipes(SyncFn::Ring, statics, span)?;
        let e = self.exactly(args, 1, "ring<P, Q>(tile T[count])", span)?[0];
        let slots = match &*e.kind {
            ExprKind::Tile { ty, at } => Slots::New(self.tile_spec(ty)?, at.clone()),
            _ => match self.expr(e)? {
                Val::TileType(spec) => {
                    let at = Span::new(e.span.file, e.span.start, e.span.start);
                    let d = Diagnostic::error(codes::TYPE_MISMATCH, e.span, "a ring has tiles, this is their type")
                        .with_label(format!("{}", spec.ty))
                        .with_fix("declare them", at, "tile ");
                    return self.report(d);
                }
                v @ Val::TileArray(_) => Slots::Given(Box::new(v)),
                Val::Tile(t) if !t.temp && t.element.is_none() && t.origin.is_none() => {
                    Slots::Given(Box::new(Val::Tile(t)))
                }
                Val::Poison => return Err(ErrorReported),
                other => {
                    let d = Diagnostic::error(
                        codes::TYPE_MISMATCH,
                        e.span,
                        format!("a ring's slots are tiles, this is {}", other.describe()),
                    )
                    .with_label(other.describe())
                    .with_help("for example `ring<MTE2, V>(tile Vec<f32, 16, 64>[2])`");
                    return self.report(d);
                }
            },
        };
        self.manual("a ring", span)?;
        Ok(Val::RingType(RingSpec { pipes, slots }.into()))
    }

    /// `let r = ring<P, Q>(..);`
    pub(crate) fn declare_ring(&mut self, spec: &RingSpec, name: &Ident) -> ElabResult<Val> {
        let span = name.span;
        self.outside_prologue(span)?;
        let (from, to) = spec.pipes;
        let count = match &spec.slots {
            Slots::New(spec, _) => spec.count,
            Slots::Given(v) => match &**v {
                Val::TileArray(a) => a.count,
                _ => 1,
            },
        };
        let event = |pipes| EventSpec { kind: EventKind::Flag, pipes, count: Some(count) };
        let full = self.new_event(&event((from, to)), name, Purpose::RingFull)?;
        let empty = self.new_event(&event((to, from)), name, Purpose::RingEmpty)?;
        let slots = match &spec.slots {
            Slots::New(spec, at) => self
                .make_tiles(spec, at.as_ref(), std::slice::from_ref(&name.name), span)?
                .pop()
                .ok_or(ErrorReported)?,
            Slots::Given(v) => (**v).clone(),
        };
        let next = if count == 1 {
            None
        } else {
            let zero = self.idx(0);
            let mut var = |what: &str| {
                let var = self.b.var(format!("{}.{what}", name.name), Ty::Index);
                self.b.set(var, zero, span);
                var
            };
            Some((var("filled"), var("emptied")))
        };
        for k in 0..count {
            let e = self.slot_event(empty, count, k);
            self.b.sync(SyncOp::Set(e), span);
        }
        let ring = Rc::new(Ring { name: name.name.clone(), slots, count, events: (full, empty), next });
        self.sync.rings.push(Live { ring: ring.clone(), span, nesting: self.nesting() });
        Ok(Val::Ring(ring))
    }

    /// The event of slot `k`.
    fn slot_event(&mut self, event: ptoc_ir::tile::Event, count: u32, k: u32) -> EventRef {
        EventRef { event, element: (count > 1).then(|| self.idx(i64::from(k))) }
    }

    /// A scope begins: its rings are those from here on.
    pub(crate) fn rings_begin(&self) -> usize {
        self.sync.rings.len()
    }

    /// The scope ends: what was released is waited for, so that nothing uses a slot any more and every flag is down.
    pub(crate) fn rings_end(&mut self, begin: usize, reachable: bool) {
        while self.sync.rings.len() > begin {
            let Some(live) = self.sync.rings.pop() else { return };
            if !reachable {
                continue;
            }
            for k in 0..live.ring.count {
                let e = self.slot_event(live.ring.events.1, live.ring.count, k);
                self.b.sync(SyncOp::Wait(e), live.span);
            }
        }
    }

    /// `r.acquire()`, ..
    pub(crate) fn ring_method(&mut self, ring: &Ring, method: &Ident, args: &[Arg], span: Span) -> ElabResult<Val> {
        let what = match SyncFn::RING.iter().find(|(name, _)| *name == method.name.as_str()) {
            Some((_, what)) => *what,
            None => {
                let other = method.name.as_str();
                let d =
                    Diagnostic::error(codes::UNKNOWN_MEMBER, method.span, format!("a ring has no method `{other}`"))
                        .with_label("no such method")
                        .with_note(
                            "it has .acquire(), .commit() for the producer, .wait(), .release() for the consumer",
                        );
                let d = match other {
                    "tile" | "valid" | "rows" | "cols" => {
                        d.with_help(format!("a slot of it is a tile: `{0}.acquire()`, `{0}.wait()`", ring.name))
                    }
                    _ => d,
                };
                return self.report(d);
            }
        };
        self.exactly(args, 0, &format!("{}.{}()", ring.name, method.name), span)?;
        self.step_ring(ring, what, span)
    }

    /// `TALLOC(r)`, `TPUSH(r)`, `TPUSH(r, t)`, `TPOP(r)`, `TFREE(r)`
    pub(crate) fn ring_call(&mut self, what: SyncFn, args: &[Arg], span: Span) -> ElabResult<Val> {
        self.no_names(args)?;
        let usage = match what {
            SyncFn::TPush => "TPUSH(ring) or TPUSH(ring, tile)".to_string(),
            _ => format!("{}(ring)", what.name()),
        };
        let pushed = match args {
            [_, t] if what == SyncFn::TPush => Some(&t.value),
            _ => None,
        };
        let e = self.exactly(if pushed.is_some() { &args[..1] } else { args }, 1, &usage, span)?[0];
        let ring = match self.expr(e)? {
            Val::Ring(r) => r,
            Val::Poison => return Err(ErrorReported),
            other => {
                let message = format!("`{}` takes a ring, this is {}", what.name(), other.describe());
                let d = Diagnostic::error(codes::WRONG_EVENT, e.span, message).with_label(other.describe());
                return self.report(d);
            }
        };
        if let Some(t) = pushed {
            let v = match self.expr(t)? {
                Val::Tile(t) => t,
                Val::Poison => return Err(ErrorReported),
                other => {
                    let message = format!("`TPUSH` moves a tile into the ring, this is {}", other.describe());
                    let d = Diagnostic::error(codes::TYPE_MISMATCH, t.span, message)
                        .with_label(other.describe())
                        .with_help(format!("fill a slot: `TLOAD({0}.acquire(), ..); {0}.commit();`", ring.name));
                    return self.report(d);
                }
            };
            if let Val::Tile(slot) = self.step_ring(&ring, SyncFn::TAlloc, span)? {
                let id = instr_for(Sem::Move).ok_or(ErrorReported)?;
                let shape = self.valid_of(&v, t.span)?;
                let slot = TileVal { valid: Some(shape), ..slot };
                let operands = vec![tile(slot, span), tile(v, t.span)];
                self.apply(id, operands, InstAttrs::default(), span)?;
            }
        }
        self.step_ring(&ring, what, span)
    }

    /// What one of the sides does.
    fn step_ring(&mut self, ring: &Ring, what: SyncFn, span: Span) -> ElabResult<Val> {
        self.outside_prologue(span)?;
        let side = match what {
            SyncFn::TAlloc | SyncFn::TPush => RingSide::Producer,
            _ => RingSide::Consumer,
        };
        let var = ring.next.map(|(p, c)| if side == RingSide::Producer { p } else { c });
        let (full, empty) = ring.events;
        let at = match var {
            Some(var) => Some(self.slot_number(ring, side, var, span)?),
            None => None,
        };
        let event = |event| EventRef { event, element: at };
        match what {
            SyncFn::TAlloc => self.b.sync(SyncOp::Wait(event(empty)), span),
            SyncFn::TPop => self.b.sync(SyncOp::Wait(event(full)), span),
            SyncFn::TPush => self.b.sync(SyncOp::Set(event(full)), span),
            _ => self.b.sync(SyncOp::Set(event(empty)), span),
        }
        if matches!(what, SyncFn::TAlloc | SyncFn::TPop) {
            return self.slot(ring, at);
        }
        if let (Some(var), Some(at)) = (var, at) {
            let (zero, one, n) = (self.idx(0), self.idx(1), self.idx(i64::from(ring.count)));
            let up = self.bin(BinOp::Add, at, one, span);
            let end = self.compare(CmpOp::Eq, up, n, span);
            let next = self.b.select(end, zero, up, span);
            self.write_var(var, &side.of(ring), span)?;
            self.b.set(var, next, span);
        }
        Ok(Val::Unit)
    }

    /// The number of the slot that a side is at.
    fn slot_number(&mut self, ring: &Ring, side: RingSide, var: Var, span: Span) -> ElabResult<Value> {
        self.read_var(var, &side.of(ring), span)?;
        let at = self.b.get(var, span);
        self.facts.ge_const(at, 0);
        self.facts.le_const(at, i64::from(ring.count) - 1);
        Ok(at)
    }

    fn slot(&mut self, ring: &Ring, at: Option<Value>) -> ElabResult<Val> {
        match &ring.slots {
            Val::TileArray(a) => Ok(Val::Tile(self.element_of(a, at))),
            v => Ok(v.clone()),
        }
    }

    /// `break`, `continue` or `return` where the scope of a ring is left without its drain.
    pub(crate) fn jump_over_ring(&mut self, jump: Jump, span: Span) -> ElabResult<()> {
        let (calls, loops) = self.nesting();
        let left = self.sync.rings.iter().rev().find(|live| match jump {
            Jump::Loop(_) => live.nesting.0 == calls && live.nesting.1 >= loops,
            Jump::Return => live.nesting.0 == calls,
        });
        let Some(live) = left else { return Ok(()) };
        let (name, at) = (live.ring.name.clone(), live.span);
        let word = jump.word();
        let d = Diagnostic::error(
            codes::RING_LEFT,
            span,
            format!("`{word}` leaves the scope of the ring `{name}` without its end"),
        )
        .with_label("slots may be in use here")
        .with_secondary(at, "the scope begins here; at its end all slots are waited for")
        .with_help(match jump {
            Jump::Loop(_) => "declare the ring before the loop: its scope then ends after it".to_string(),
            Jump::Return => "end the function once, at its end: put the rest into an `else`".to_string(),
        });
        self.report(d)
    }
}
