//! Synchronisations in the walk, and the end of a block.

use super::find::{Fault, Finding};
use super::order::{Record, What, Wrong};
use super::state::State;
use super::touch::What as Place;
use super::walk::{Then, Walk};
use ptoc_ir::tile::{SyncOp, Value};

/// Loads whose sums are compared with a number of bytes.
const LOADS: usize = 10;

impl Walk<'_> {
    pub(super) fn event(&mut self, state: &mut State, site: usize, op: SyncOp, element: u32) -> Then {
        let stream = self.stream(site);
        let record = Record {
            what: What::Now(element),
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
                    let finding = Finding::plain(Fault::Order(wrong), true, site, state, Some(element));
                    self.found.add(Finding { other, ..finding });
                }
                Then::On
            }
            SyncOp::Wait(_) => {
                if !state.order.is_up(element) {
                    let finding = Finding::plain(Fault::Order(Wrong::Down), true, site, state, Some(element));
                    let last = state.order.records.iter().find(|r| r.what == What::Waited(element));
                    self.found.add(Finding { other: last.map(|r| (r.site, r.at.clone())), ..finding });
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
                    Err(wrong) => {
                        self.wrong(state, site, wrong, element);
                        Then::Stop
                    }
                }
            }
            SyncOp::Arrive(_) | SyncOp::Expect(..) | SyncOp::ArriveExpect(..) | SyncOp::Complete(..) => {
                let bytes = match op.value() {
                    Some(v) => match state.value(self.code, v).constant() {
                        Some(n) => Some(n),
                        None => {
                            self.found.add(Finding::plain(Fault::UnknownNumber, false, site, state, Some(element)));
                            return Then::Stop;
                        }
                    },
                    None => None,
                };
                let arrives = matches!(op, SyncOp::Arrive(_) | SyncOp::ArriveExpect(..));
                let (announced, came) = if matches!(op, SyncOp::Complete(..)) { (None, bytes) } else { (bytes, None) };
                if let Some(said) = came {
                    self.moved(state, site, said, element);
                }
                for wrong in state.order.count(&self.carried, element, record, arrives, announced, came) {
                    self.wrong(state, site, wrong, element);
                }
                Then::On
            }
        }
    }

    /// A parity that is not known is 0 or 1.
    fn which(&mut self, state: &State, site: usize, v: Value) -> Then {
        let n = state.value(self.code, v);
        let (lo, hi) = n.bounds(&state.periods);
        if n.base != 0 || lo > 1 || hi < 0 {
            self.found.add(Finding::plain(Fault::UnknownNumber, false, site, state, None));
            return Then::Stop;
        }
        for k in lo.max(0)..=hi.min(1) {
            let mut other = state.clone();
            other.step = state.step - 1;
            if other.assume(self.code, v, super::domain::Num::of(k)) {
                self.stack.push(other);
            }
        }
        Then::Stop
    }

    fn wrong(&mut self, state: &State, site: usize, wrong: Wrong, element: u32) {
        let other = match &wrong {
            Wrong::OnePhaseEarly(s) | Wrong::Overtaken(s) | Wrong::MixedPhases(s) | Wrong::EarlyArrival(s) => {
                Some((*s, state.at.clone()))
            }
            _ => None,
        };
        let finding = Finding::plain(Fault::Order(wrong), true, site, state, Some(element));
        self.found.add(Finding { other, ..finding });
    }

    /// Are the bytes that are said to have come those that some of the loads before moved? The loads of this stream since
    /// its last such statement in the same region count, and a window counts as a whole.
    fn moved(&mut self, state: &State, site: usize, said: i64, element: u32) {
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
                if let (super::touch::Kind::Write, Place::Tile(r)) = (touch.kind, touch.what) {
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
            let fault = Fault::BytesMoved { said, moved };
            self.found.add(Finding::plain(fault, true, site, state, Some(element)));
        }
    }

    /// The block ends: every flag has met its wait, and every announced byte has come.
    pub(super) fn end(&mut self, state: &State) {
        for (element, up) in state.order.up.iter().enumerate() {
            if let Some(site) = up {
                let finding = Finding::plain(Fault::LeftUp, true, *site as usize, state, Some(element as u32));
                self.found.add(finding);
            }
        }
        for (element, barrier) in state.order.barriers.iter().enumerate() {
            let Some(b) = barrier.as_ref().filter(|b| b.state.bytes() != 0) else { continue };
            let element = element as u32;
            let part = state.order.records.iter().rev().find(|r| r.what == What::Now(element));
            let site = part.map_or(0, |r| r.site as usize);
            let fault = Fault::BytesLeft { announced: b.announced, came: b.came };
            self.found.add(Finding::plain(fault, true, site, state, Some(element)));
        }
    }
}
