//! Synchronisations in the walk, and the end of a block.

use super::find::{Finding, HazardFault, Why};
use super::interpreter::{HazardInterpreter, Then};
use super::order::{Record, What, Wrong};
use super::phases::Change;
use super::poly::PolyInterval;
use super::state::HazardState;
use super::touch::TouchedObject as Place;
use ptoc_ir::sync::MAX_BYTES;
use ptoc_ir::tile::{Op, Purpose, SyncOp, Value};
use std::cmp::Ordering;

/// Loads whose sums are compared with a number of bytes.
const LOADS: usize = 10;

impl HazardInterpreter<'_> {
    pub(super) fn event(&mut self, state: &mut HazardState, site: usize, op: SyncOp, element: u32) -> Then {
        let stream = self.stream(site);
        let record = Record {
            what: What::Waited(element),
            site: site as u32,
            stream: stream as u8,
            known: 0,
            at: state.at.clone(),
        };
        match op {
            SyncOp::Set(_) => {
                let since = state.order.up[element as usize];
                if let Some(wrong) = state.order.set(&self.carried, element, site as u32, stream) {
                    let other = match &wrong {
                        Wrong::Unordered(at, when) => Some((*at, when.clone())),
                        _ => since.map(|s| (s, state.at.clone())),
                    };
                    let finding = Finding::plain(HazardFault::Order(wrong), true, site, state, Some(element));
                    if !self.tell(Finding { other, ..finding }, state) {
                        self.reconcile(state, element);
                    }
                }
                Then::On
            }
            SyncOp::Wait(_) => {
                if !state.order.is_up(element) {
                    let finding = Finding::plain(HazardFault::Order(Wrong::Down), true, site, state, Some(element));
                    let last = state.order.records.iter().find(|r| r.what == What::Waited(element));
                    let other = last.map(|r| (r.site, r.at.clone()));
                    let why = self.why_down(state, element);
                    self.tell(Finding { other, why, ..finding }, state);
                    return Then::Stop;
                }
                state.order.wait(&self.carried, element, record);
                Then::On
            }
            SyncOp::Barrier(_) => Then::On,
            SyncOp::WaitPhase(_, v) => {
                let n = state.value(self.code, v);
                let Some(parity) = n.constant() else { return self.which(state, site, v) };
                match state.order.wait_phase(&self.carried, element, record, (parity & 1) as u8) {
                    Ok(None) => Then::On,
                    Ok(Some(wrong)) => {
                        self.wrong(state, site, wrong, element);
                        Then::On
                    }
                    Err(Wrong::UnknownBytes) => {
                        self.tell(Finding::plain(HazardFault::UnknownBytes, false, site, state, Some(element)), state);
                        Then::Stop
                    }
                    Err(wrong) => {
                        self.wrong(state, site, wrong, element);
                        Then::Stop
                    }
                }
            }
            SyncOp::Arrive(_) | SyncOp::Expect(..) | SyncOp::ArriveExpect(..) | SyncOp::Complete(..) => {
                let bytes = match op.value() {
                    Some(v) => match self.bytes_of(state, v) {
                        Some(p) => Some(p),
                        None => return self.unknown(state, site, element),
                    },
                    None => None,
                };
                let arrives = matches!(op, SyncOp::Arrive(_) | SyncOp::ArriveExpect(..));
                let (announced, came) = if matches!(op, SyncOp::Complete(..)) { (None, bytes) } else { (bytes, None) };
                if let Some(said) = came.as_ref().and_then(PolyInterval::constant) {
                    self.moved(state, site, said, element);
                }
                // The order is looked at while it changes, and the scalars are not part of it.
                let mut order = std::mem::take(&mut state.order);
                let sign = |p: &PolyInterval| p.sign(self.code, state);
                let found = order.count(&self.carried, element, record, Change { arrives, announced, came }, &sign);
                state.order = order;
                for wrong in found {
                    if matches!(wrong, Wrong::UnknownBytes) {
                        self.tell(Finding::plain(HazardFault::UnknownBytes, false, site, state, Some(element)), state);
                        return Then::Stop;
                    }
                    self.wrong(state, site, wrong, element);
                }
                Then::On
            }
        }
    }

    /// The other flag of a ring's slot: it is full, or it is empty.
    fn partner(&self, element: u32) -> Option<u32> {
        let (event, n) = self.carried.elements[element as usize];
        let events = &self.code.kernel.events;
        let ring = &events[event];
        let wanted = match ring.purpose {
            Purpose::RingEmpty => Purpose::RingFull,
            Purpose::RingFull => Purpose::RingEmpty,
            _ => return None,
        };
        let (other, _) =
            events.iter().find(|(_, d)| d.purpose == wanted && d.span == ring.span && d.name == ring.name)?;
        Some(self.carried.first[cranelift_entity::EntityRef::index(other)] + n)
    }

    /// The reason why the flag of a ring's slot is down: who was to raise it.
    fn why_down(&self, state: &HazardState, element: u32) -> Why {
        let Some(other) = self.partner(element) else { return Why::Plain };
        let (event, _) = self.carried.elements[element as usize];
        let empty = self.code.kernel.events[event].purpose == Purpose::RingEmpty;
        if state.order.is_up(other) {
            return if empty { Why::Filled } else { Why::Unfilled };
        }
        // Acquired, and not committed since: records are kept in the order in which they were made.
        let waited = |e: u32| state.order.records.iter().position(|r| r.what == What::Waited(e));
        let uncommitted = empty && waited(element).is_some() && waited(other) < waited(element);
        if uncommitted { Why::Uncommitted } else { Why::Plain }
    }

    /// Whether nobody has looked at this element before, and all its arrivals stand behind this wait.
    fn first_use(&self, state: &HazardState, site: usize, element: u32) -> bool {
        let (event, _) = self.carried.elements[element as usize];
        let looked = state.order.records.iter().any(|r| r.what == What::Looked(element));
        let mut arrivals = self.code.sites.iter().enumerate().filter(|(_, s)| match &s.stmt.op {
            Op::Sync(op @ (SyncOp::Arrive(_) | SyncOp::ArriveExpect(..))) => {
                op.event().is_some_and(|e| e.event == event)
            }
            _ => false,
        });
        let first = arrivals.next();
        !looked && first.is_some_and(|(n, _)| n > site)
    }

    /// What was found. An announcement that follows the arrival that has ended the phase before may be that of a phase
    /// of its own: it is too late only where something is wrong with the barrier, or between its two pipes.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let all = &self.found.all;
        let event = |f: &Finding| f.element.map(|e| self.carried.elements[e as usize].0);
        let early = |f: &Finding| matches!(f.fault, HazardFault::Order(Wrong::EarlyArrival(_)));
        let pipe = |site: u32| self.carried.streams[self.stream(site as usize)].pipe;
        let explained = |f: &Finding| {
            let ends = f.element.map(|e| self.ends(e));
            all.iter().filter(|o| !early(o)).any(|o| match (&o.fault, &o.other) {
                (HazardFault::Race { .. }, Some((other, _))) => {
                    let pair = (pipe(o.site), pipe(*other));
                    ends.is_some_and(|(from, to)| pair == (from, to) || pair == (to, from))
                }
                _ => event(o) == event(f),
            })
        };
        all.iter().filter(|f| !early(f) || explained(f)).cloned().collect()
    }

    /// A number of bytes that a barrier can count with: not negative, and not more than it counts to.
    fn bytes_of(&self, state: &HazardState, v: Value) -> Option<PolyInterval> {
        let p = PolyInterval::of(self.code, state, v)?;
        if p.constant().is_some() {
            return Some(p);
        }
        match p.bounds(self.code, state) {
            (Some(0..), Some(high)) if high <= MAX_BYTES => Some(p),
            _ => None,
        }
    }

    /// Nothing is proved beyond this.
    fn unknown(&mut self, state: &HazardState, site: usize, element: u32) -> Then {
        self.tell(Finding::plain(HazardFault::UnknownNumber, false, site, state, Some(element)), state);
        Then::Stop
    }

    /// A parity that is not known is 0 or 1.
    fn which(&mut self, state: &HazardState, site: usize, v: Value) -> Then {
        let n = state.value(self.code, v);
        let (lo, hi) = n.bounds(&state.periods);
        if n.base != 0 || lo > 1 || hi < 0 {
            self.tell(Finding::plain(HazardFault::UnknownNumber, false, site, state, None), state);
            return Then::Stop;
        }
        for k in lo.max(0)..=hi.min(1) {
            let mut other = state.clone();
            other.step = state.step - 1;
            if other.assume(self.code, v, super::domain::AffineValue::of(k)) {
                self.later(other);
            }
        }
        Then::Stop
    }

    /// Notes what is wrong. If it was told, both sides go on as if it were not so.
    fn wrong(&mut self, state: &mut HazardState, site: usize, wrong: Wrong, element: u32) {
        // What comes too late is where it is told.
        let site = if let Wrong::Unannounced { late, .. } = wrong { late as usize } else { site };
        let other = match &wrong {
            Wrong::Unannounced { last, .. } => Some((*last, state.at.clone())),
            Wrong::OnePhaseEarly(s)
            | Wrong::Overtaken(s)
            | Wrong::MixedPhases(s)
            | Wrong::EarlyArrival(s)
            | Wrong::Surplus(s) => Some((*s, state.at.clone())),
            _ => None,
        };
        // For an arrival that does not wait for an announcement: the flag that would tell it of one.
        let loose = match (&wrong, &other) {
            (Wrong::Unannounced { .. }, Some((last, _))) => {
                let ends = [site, *last as usize].map(|s| self.carried.streams[self.stream(s)].pipe);
                let up = (0..state.order.up.len() as u32).filter(|e| state.order.is_up(*e));
                self.only(up.filter(|e| self.ends(*e).0 == ends[0] && self.holds(*e, ends[1])))
            }
            _ => None,
        };
        let finding = Finding::plain(HazardFault::Order(wrong), true, site, state, Some(element));
        let why = match &finding.fault {
            HazardFault::Order(Wrong::Stuck { completed: 0, fresh: true, .. })
                if self.first_use(state, site, element) =>
            {
                Why::FirstUse
            }
            _ => Why::Plain,
        };
        if !self.tell(Finding { other, loose, why, ..finding }, state) {
            self.reconcile(state, element);
        }
    }

    /// Reports bytes that are said to have come and are not those that some of the loads before moved. The loads of
    /// this stream since its last such statement in the same region count, and a window counts as a whole.
    fn moved(&mut self, state: &HazardState, site: usize, said: i64, element: u32) {
        let code = self.code;
        let (path, role, pipe) = (&code.sites[site].path, code.sites[site].role, code.sites[site].pipe);
        let mut moved: Vec<i64> = Vec::new();
        for s in code.sites[..site].iter().rev() {
            let same_region = s.path.len() == path.len() && s.path[..s.path.len() - 1] == path[..path.len() - 1];
            if !same_region || s.path.last().map(|p| p.0) != path.last().map(|p| p.0) {
                break;
            }
            if (s.role, s.pipe) != (role, pipe) {
                continue;
            }
            if matches!(&s.stmt.op, ptoc_ir::tile::Op::Sync(SyncOp::Complete(..))) {
                break;
            }
            for touch in &s.touches {
                if let (super::touch::TouchKind::Write, Place::Tile(r)) = (touch.kind, touch.what) {
                    let ty = code.kernel.tiles[r.tile].ty;
                    let (ranges, exact) = super::bytes::window(ty, 0, 0, u64::from(r.rows), u64::from(r.cols));
                    if !exact {
                        return;
                    }
                    moved.push(ranges.iter().map(|(a, b)| (b - a) as i64).sum());
                }
            }
        }
        moved.reverse();
        if moved.is_empty() || moved.len() > LOADS {
            return;
        }
        let some_sum = (1..1u32 << moved.len()).any(|set| {
            moved.iter().enumerate().filter(|(k, _)| set >> k & 1 == 1).map(|(_, n)| n).sum::<i64>() == said
        });
        if !some_sum {
            let fault = HazardFault::BytesMoved { said, moved };
            self.tell(Finding::plain(fault, true, site, state, Some(element)), state);
        }
    }

    /// The block ends: every flag has met its wait, every announced byte has come, and no phase has only begun.
    pub(super) fn end(&mut self, state: &HazardState) {
        for (element, up) in state.order.up.iter().enumerate() {
            if let Some(site) = up {
                let finding = Finding::plain(HazardFault::LeftUp, true, *site as usize, state, Some(element as u32));
                self.tell(finding, state);
            }
        }
        for (element, barrier) in state.order.barriers.iter().enumerate() {
            let Some(b) = barrier else { continue };
            let element = element as u32;
            let part = state.order.records.iter().rev().find(|r| matches!(r.what, What::Now(e, _) if e == element));
            let site = part.map_or(0, |r| r.site as usize);
            let fault = match b.outstanding().and_then(|p| p.sign(self.code, state)) {
                Some(Ordering::Equal) => match b.missing() {
                    Some((missing, of)) => HazardFault::ArrivalsLeft { missing, of },
                    None => continue,
                },
                Some(_) => HazardFault::BytesLeft { announced: b.announced.constant(), came: b.came.constant() },
                None => HazardFault::UnknownBytes,
            };
            let sure = !matches!(fault, HazardFault::UnknownBytes);
            self.tell(Finding::plain(fault, sure, site, state, Some(element)), state);
        }
    }
}
