//! Issuing: what is executed at once, what is queued, and what waits.

use super::clocks::{Knowledge, Stamp};
use super::protocol::{Breach, Name, Queued};
use super::races::Use;
use super::report::Stuck;
use super::schedule::Deferred;
use super::time::EventElement;
use super::touches::{TouchKind, Touches};
use super::{Order, Running, time};
use crate::machine::Machine;
use crate::trap::Trap;
use ptoc_diagnostics::{Span, codes};
use ptoc_ir::tile::{AddrKind, EventRef, Op, Operand, SyncOp, Tile, TileRef, pipe_of_op};
use ptoc_isa::Pipe;

type TrapResult<T = ()> = Result<T, Trap>;

/// When something runs that is executed now.
struct Now<'a> {
    item: u32,
    reads: Stamp,
    writes: Stamp,
    knowledge: &'a Knowledge,
}

impl<'k> Machine<'k, '_> {
    /// Issues a statement without regions.
    pub(crate) fn issue(&mut self, op: &'k Op, span: Span) -> TrapResult {
        let Some(mut running) = self.pipes.take() else { return self.simple(op) };
        let result = self.issue_on(&mut running, op, span);
        let result = result.map_err(|trap| self.last_word(&running, trap));
        self.pipes = Some(running);
        result
    }

    /// A wait that was stuck before explains the trap.
    fn last_word(&self, r: &Running<'k>, trap: Trap) -> Trap {
        match &r.stuck {
            Some(stuck) => self.stuck_trap(r, stuck),
            None => trap,
        }
    }

    pub(super) fn finish_block(&mut self, r: &mut Running<'k>) -> TrapResult {
        while let Some(d) = r.schedule.next() {
            self.run(r, d)?;
        }
        if let Some(stuck) = &r.stuck {
            return Err(self.stuck_trap(r, stuck));
        }
        if let Err(breach) = r.protocol.end(self.k) {
            return Err(self.breach_trap(r, None, &breach));
        }
        if let Some(timeline) = &mut r.timeline {
            timeline.end_block();
        }
        Ok(())
    }

    fn issue_on(&mut self, r: &mut Running<'k>, op: &'k Op, span: Span) -> TrapResult {
        match (op, pipe_of_op(self.k, op)) {
            (Op::Sync(sync), _) => self.synchronise(r, op, sync, span)?,
            (_, None) => self.simple(op)?,
            (_, Some(Pipe::S)) => self.on_issuer(r, op, span)?,
            (_, Some(pipe)) => self.queue(r, op, pipe, span)?,
        }
        while let Some(d) = r.schedule.between() {
            self.run(r, d)?;
        }
        self.span = span;
        Ok(())
    }

    /// What pipe S does, at once.
    fn on_issuer(&mut self, r: &mut Running<'k>, op: &'k Op, span: Span) -> TrapResult {
        let (writes, knowledge) = r.clocks.start(r.role, Pipe::S);
        let reads = r.clocks.read_by_issuer(r.role);
        r.schedule.ran(writes);
        let item = r.item(op, span, writes);
        if let Some(timeline) = &mut r.timeline {
            timeline.scalar(writes, time::name_of(op), span);
        }
        self.watched(r, op, &Now { item, reads, writes, knowledge: &knowledge })
    }

    /// An instruction of another pipe.
    fn queue(&mut self, r: &mut Running<'k>, op: &'k Op, pipe: Pipe, span: Span) -> TrapResult {
        let (stamp, knowledge) = r.clocks.start(r.role, pipe);
        let item = r.item(op, span, stamp);
        if r.loads.counted() {
            let loops = r.loops_here();
            r.loads.note((self.k, op, stamp), &loops, &|v| self.index(v));
        }
        if let Some(mut timeline) = r.timeline.take() {
            timeline.work(stamp, time::work_of(self, op), time::name_of(op), span);
            r.timeline = Some(timeline);
        }
        if r.order == Order::Program {
            r.schedule.ran(stamp);
            let result = self.watched(r, op, &Now { item, reads: stamp, writes: stamp, knowledge: &knowledge });
            // Where the text has the wrong order, data that comes too late is a consequence.
            return if r.stuck.is_some() { Ok(()) } else { result };
        }
        let mut values = Vec::new();
        op.for_each_use(&mut |v| values.push((v, self.get(v))));
        let mut bound = Vec::new();
        for_each_tile(op, &mut |tile| {
            if self.k.tiles[tile].addr == AddrKind::Dynamic {
                bound.push((tile, self.tiles.bindings(tile).to_vec()));
            }
        });
        r.schedule.push(Deferred { stamp, item, op: Some(op), span, knowledge, values, bound, after: Vec::new() });
        Ok(())
    }

    /// Executes what was queued.
    fn run(&mut self, r: &mut Running<'k>, mut d: Deferred<'k>) -> TrapResult {
        let Some(op) = d.op else { return Ok(()) };
        self.span = d.span;
        self.exchange(&mut d);
        let result =
            self.watched(r, op, &Now { item: d.item, reads: d.stamp, writes: d.stamp, knowledge: &d.knowledge });
        self.exchange(&mut d);
        result
    }

    /// Exchanges what an instruction depends on with what is now.
    fn exchange(&mut self, d: &mut Deferred<'k>) {
        // An instruction may use a value twice: what comes in first goes out last.
        for (value, bits) in &mut d.values {
            let now = self.get(*value);
            self.set(*value, *bits);
            *bits = now;
        }
        d.values.reverse();
        for (tile, list) in &mut d.bound {
            self.tiles.exchange_bindings(*tile, list);
        }
        d.bound.reverse();
    }

    /// Executes an instruction and compares the bytes that it touches with what others did. A race explains a missing
    /// value better than poison does, so it goes first.
    fn watched(&mut self, r: &mut Running<'k>, op: &'k Op, now: &Now<'_>) -> TrapResult {
        self.touches = Some(Touches::default());
        // Scratch is written while operands are read and before the result is there: whatever shares bytes with it is
        // lost.
        let result = self.scratch(op).and_then(|()| self.simple(op)).and_then(|()| self.scratch(op));
        let touches = self.touches.take().unwrap_or_default();
        if r.stuck.is_some() {
            return result;
        }
        let first = r.uses.len();
        let uses: Vec<Use> = (first as u32..)
            .zip(&touches.list)
            .map(|(number, touch)| {
                let stamp = if touch.kind == TouchKind::Read { now.reads } else { now.writes };
                Use { stamp, kind: touch.kind, number }
            })
            .collect();
        r.uses.extend(touches.list.iter().map(|touch| (now.item, touch.object)));
        for (touch, &mine) in touches.list.iter().zip(&uses) {
            if let Err(conflict) = r.histories.check(touch, mine, now.knowledge) {
                return Err(self.race_trap(r, &conflict, touch.space));
            }
        }
        for (touch, &mine) in touches.list.iter().zip(&uses) {
            r.histories.note(touch, mine);
        }
        result
    }

    // ---- synchronisation -----------------------------------------------------------------------------------------

    fn synchronise(&mut self, r: &mut Running<'k>, op: &'k Op, sync: &SyncOp, span: Span) -> TrapResult {
        let Some(event) = sync.event() else {
            return match pipe_of_op(self.k, op) {
                Some(pipe) => self.barrier(r, op, pipe, span),
                None => self.barrier_of_all(r, op, span),
            };
        };
        let name = self.event_name(event)?;
        let data = &self.k.events[event.event];
        let pipe = if sync.waits() { data.to } else { data.from };
        let value = sync.value().map_or(0, |v| self.index(v));
        self.check_value(sync, value)?;
        let (stamp, known) = r.clocks.start(r.role, pipe);
        let item = r.item(op, span, stamp);
        let knowledge = if sync.waits() { known.clone() } else { r.clocks.done(r.role, pipe) };
        // All that the issuer issues after its own wait comes after it, as after its reads.
        let seen = if sync.waits() && pipe == Pipe::S { r.clocks.read_by_issuer(r.role) } else { stamp };
        r.schedule.seen(seen, stamp);
        let me = Queued { stamp: seen, item, knowledge };
        if r.stuck.is_some() {
            self.after_stuck(r, sync, name, value, me, pipe);
            return Ok(());
        }
        if matches!(sync, SyncOp::Complete(..))
            && let Some(moved) = r.loads.complete(stamp, value, &r.loops)
        {
            return Err(self.moved_trap(r, item, name, value, &moved));
        }
        let effect = match r.protocol.apply(sync, name, value, me) {
            Ok(effect) => effect,
            Err(Breach::Stuck { name, pending }) => {
                if r.order != Order::Program {
                    // The repetition in program order looks for more.
                    return Err(self.stuck_trap(r, &Stuck::new(name, pending, item)));
                }
                r.stuck = Some(Stuck::new(name, pending, item));
                return Ok(());
            }
            Err(breach) => return Err(self.breach_trap(r, Some(item), &breach)),
        };
        if let Some(learnt) = &effect.learnt {
            r.clocks.learn(r.role, pipe, learnt);
        }
        if let Some(timeline) = &mut r.timeline {
            match sync.waits() {
                true => {
                    let event = EventElement { event: event.event.as_u32(), element: name.element };
                    timeline.wait(stamp, &effect.after, data.from, event, span);
                }
                false => timeline.announce(stamp, span),
            }
        }
        if pipe == Pipe::S {
            r.schedule.ran(stamp);
            return self.force(r, &effect.after);
        }
        self.defer_sync(r, stamp, item, span, known, effect.after);
        Ok(())
    }

    fn defer_sync(
        &mut self,
        r: &mut Running<'k>,
        stamp: Stamp,
        item: u32,
        span: Span,
        knowledge: Knowledge,
        after: Vec<Stamp>,
    ) {
        if r.order == Order::Program {
            return r.schedule.ran(stamp);
        }
        let (values, bound) = (Vec::new(), Vec::new());
        r.schedule.push(Deferred { stamp, item, op: None, span, knowledge, values, bound, after });
    }

    fn barrier(&mut self, r: &mut Running<'k>, op: &'k Op, pipe: Pipe, span: Span) -> TrapResult {
        let (stamp, knowledge) = r.clocks.start(r.role, pipe);
        r.clocks.barrier(r.role, pipe);
        let item = r.item(op, span, stamp);
        if let Some(timeline) = &mut r.timeline {
            timeline.barrier(stamp, span);
        }
        if pipe == Pipe::S {
            r.schedule.ran(stamp);
        } else {
            self.defer_sync(r, stamp, item, span, knowledge, Vec::new());
        }
        Ok(())
    }

    /// The issuer itself waits.
    fn barrier_of_all(&mut self, r: &mut Running<'k>, op: &'k Op, span: Span) -> TrapResult {
        r.clocks.barrier_of_all(r.role);
        let last: Vec<Stamp> = r.clocks.last(r.role).collect();
        if let Some(timeline) = &mut r.timeline {
            timeline.barrier_of_all(r.role, span);
        }
        let _ = op;
        self.force(r, &last)
    }

    /// Executes until all of `goals` are.
    fn force(&mut self, r: &mut Running<'k>, goals: &[Stamp]) -> TrapResult {
        for &goal in goals {
            while let Some(d) = r.schedule.toward(goal) {
                self.run(r, d)?;
            }
        }
        Ok(())
    }

    fn event_name(&self, r: EventRef) -> TrapResult<Name> {
        let (n, data) = (r.element.map_or(0, |v| self.index(v)), &self.k.events[r.event]);
        match u32::try_from(n).ok().filter(|&n| n < data.count) {
            Some(element) => Ok(Name { event: r.event, element }),
            None => {
                let message = format!("element {n} of `{}`, which has {} elements", data.name, data.count);
                self.trap(codes::TRAP_EVENT_RANGE, message)
            }
        }
    }

    fn check_value(&self, sync: &SyncOp, value: i64) -> TrapResult {
        let (wrong, what) = match sync {
            SyncOp::WaitPhase(..) => (!(0..=1).contains(&value), "a parity is 0 or 1"),
            SyncOp::Expect(..) | SyncOp::ArriveExpect(..) | SyncOp::Complete(..) => {
                (value < 0, "a number of bytes is not negative")
            }
            _ => (false, ""),
        };
        if wrong { self.trap(codes::TRAP_EVENT_RANGE, format!("{what}, and here it is {value}")) } else { Ok(()) }
    }

    /// Applies an operation after a wait that was stuck, and notes the first one that sets what it waits for.
    fn after_stuck(&mut self, r: &mut Running<'k>, sync: &SyncOp, name: Name, value: i64, me: Queued, pipe: Pipe) {
        let (item, knowledge) = (me.item, me.knowledge.clone());
        match r.protocol.apply(sync, name, value, me) {
            Ok(effect) => {
                if let Some(learnt) = &effect.learnt {
                    r.clocks.learn(r.role, pipe, learnt);
                }
            }
            Err(_) => {
                if matches!(sync, SyncOp::Wait(_)) {
                    r.protocol.take_down(name);
                }
                return;
            }
        }
        let Some(stuck) = &mut r.stuck else { return };
        if stuck.set.is_none() && stuck.name == name && !sync.waits() && r.protocol.would_pass(name, stuck.parity()) {
            let stamp = r.items[stuck.item as usize].stamp;
            stuck.set = Some((item, super::clocks::knows(&knowledge, stamp)));
        }
    }
}

/// The tiles of an instruction.
fn for_each_tile(op: &Op, f: &mut dyn FnMut(Tile)) {
    let mut of = |t: &TileRef| f(t.tile);
    match op {
        Op::Inst(inst) => {
            for operand in &inst.operands {
                if let Operand::Tile(t) = operand {
                    of(t);
                }
            }
            inst.scratch.iter().for_each(of);
        }
        Op::Copy(copy) => [&copy.dst, &copy.src].into_iter().filter_map(|a| a.tile()).for_each(of),
        Op::Mma(mma) => [&mma.acc, &mma.a, &mma.b].into_iter().filter_map(|a| a.tile()).for_each(of),
        // The rest runs on S.
        _ => {}
    }
}
