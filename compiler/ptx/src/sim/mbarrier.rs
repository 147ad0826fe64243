//! `mbarrier` objects: phases that end when all have arrived and all bytes are there.

use super::clocks::Clocks;
use super::memory::Refused;
use super::races::{RaceAccess, View};
use super::warp::{Park, each};
use super::{Cta, Random, SimFault, Why, World};
use crate::sm90::Sm90;
use std::rc::Rc;

/// The most bytes that a phase may wait for.
const BYTES: i64 = (1 << 20) - 1;

/// One of them.
#[derive(Debug)]
pub(super) struct Mbarrier {
    /// Arrivals of a phase.
    count: u32,
    /// Those that are missing.
    pending: i64,
    /// Bytes that are missing.
    tx: i64,
    /// The phase under way, from 1 on.
    pub(super) phase: u32,
    pub(super) slot: usize,
    /// What those know who have arrived in this phase.
    open: Clocks,
    /// And in phases that are complete.
    done: Clocks,
    /// The thread that has made it, until its fence lets the async proxy see that.
    unfenced: Option<usize>,
}

impl Mbarrier {
    /// Whether the phase of a parity is complete.
    fn complete(&self, parity: u64) -> bool {
        u64::from((self.phase - 1) & 1) != parity & 1
    }

    /// How it stands, for who waits for a parity.
    pub(super) fn state(&self, parity: u64) -> String {
        let (phase, pending, count, tx) = (self.phase - 1, self.pending, self.count, self.tx);
        format!(
            "phase {phase} is under way, parity {} is waited for, {pending} of {count} arrivals and {tx} bytes are \
             missing",
            parity & 1
        )
    }
}

/// What is wrong with an instruction of one lane.
pub(super) enum Wrong {
    Access(Refused, u64),
    Undefined(String),
}

impl Cta {
    /// The `mbarrier` at an address.
    fn mbarrier(&mut self, at: u64) -> Result<&mut Mbarrier, Wrong> {
        self.mbarriers.get_mut(&at).ok_or_else(|| Wrong::Undefined(format!("there is no mbarrier at {at:#x}")))
    }

    /// Marks an access to the object itself.
    fn touch_mbarrier(&mut self, at: u64, access: RaceAccess, view: &View) -> Result<(), Wrong> {
        self.shared.touch(at, 8, access, view).map(|_| ()).map_err(|refused| Wrong::Access(refused, at))
    }

    fn init(&mut self, at: u64, count: u64, view: &View) -> Result<(), Wrong> {
        self.touch_mbarrier(at, RaceAccess::Write, view)?;
        if count == 0 || count > BYTES as u64 {
            return Err(Wrong::Undefined(format!("an mbarrier for {count} arrivals")));
        }
        if self.mbarriers.contains_key(&at) {
            return Err(Wrong::Undefined(format!("there is an mbarrier at {at:#x}")));
        }
        let slot = self.clocks.as_ref().map_or(0, |clocks| clocks.slot());
        let (count, pending, unfenced) = (count as u32, count as i64, Some(view.who.thread()));
        let (open, done) = (Clocks::default(), Clocks::default());
        self.mbarriers.insert(at, Mbarrier { count, pending, tx: 0, phase: 1, slot, open, done, unfenced });
        Ok(())
    }

    fn expect(&mut self, at: u64, bytes: u64, view: &View) -> Result<(), Wrong> {
        self.touch_mbarrier(at, RaceAccess::Atomic, view)?;
        self.mbarrier(at)?.tx += bytes as u32 as i64;
        self.settle(at)
    }

    pub(super) fn arrive(&mut self, at: u64, count: u64, view: &View) -> Result<(), Wrong> {
        let told = self.clocks.as_ref().map(|clocks| clocks.release(view.who.thread()));
        self.arrives(at, count, view, told)
    }

    /// Arrivals of a thread, perhaps of another CTA, which tells what it knows.
    pub(super) fn arrives(&mut self, at: u64, count: u64, view: &View, told: Option<Rc<Clocks>>) -> Result<(), Wrong> {
        self.touch_mbarrier(at, RaceAccess::Atomic, view)?;
        let barrier = self.mbarrier(at)?;
        if let Some(told) = told {
            barrier.open.join(&told);
        }
        barrier.pending -= count as i64;
        if barrier.pending < 0 {
            let message = format!("more than the {} arrivals of the mbarrier at {at:#x}", barrier.count);
            return Err(Wrong::Undefined(message));
        }
        self.settle(at)
    }

    /// Bytes of a copy have come, that was issued in a phase.
    pub(super) fn complete_tx(&mut self, at: u64, bytes: u64, phase: u32, view: &View) -> Result<(), Wrong> {
        let barrier = self.mbarrier(at)?;
        let sees = barrier.unfenced.is_none();
        if barrier.phase != phase {
            let (now, then) = (barrier.phase - 1, phase - 1);
            let message = format!(
                "{bytes} bytes come in phase {now} of the mbarrier at {at:#x}, and were issued in phase {then}, \
                 which did not wait for them"
            );
            return Err(Wrong::Undefined(message));
        }
        barrier.tx -= bytes as i64;
        self.touch_mbarrier(at, RaceAccess::Atomic, &View { sees, ..view.clone() })?;
        self.settle(at)
    }

    /// Ends the phase if nothing is missing; those that wait look again.
    fn settle(&mut self, at: u64) -> Result<(), Wrong> {
        let barrier = self.mbarrier(at)?;
        if barrier.tx.abs() > BYTES {
            return Err(Wrong::Undefined(format!("{} bytes are missing at the mbarrier at {at:#x}", barrier.tx)));
        }
        if barrier.pending != 0 || barrier.tx != 0 {
            return Ok(());
        }
        barrier.done.join(&barrier.open);
        barrier.done.ended(barrier.slot, barrier.phase);
        barrier.open = Clocks::default();
        barrier.phase += 1;
        barrier.pending = barrier.count.into();
        self.wake(|park| matches!(park, Park::Mbarrier(a, _) if a == at));
        Ok(())
    }

    /// Lets the async proxy see what a thread has made.
    pub(super) fn fence_mbarriers(&mut self, thread: usize) {
        for barrier in self.mbarriers.values_mut().filter(|b| b.unfenced == Some(thread)) {
            barrier.unfenced = None;
        }
    }
}

impl World<'_> {
    /// An instruction on `mbarrier`s, of some lanes; those that wait.
    pub(super) fn mbarrier(
        &mut self,
        cta: &mut Cta,
        w: usize,
        pc: u32,
        op: Sm90,
        does: u32,
        random: &mut Random,
    ) -> Result<u32, SimFault> {
        let step = &self.code.steps[pc as usize];
        let (at, number) = (self.values(cta, w, step.srcs[0]), self.values(cta, w, step.srcs[1]));
        let mut parked = 0;
        for lane in each(does) {
            let view = cta.view(w, lane, pc);
            let (there, number) = (at[lane], number[lane] as u32 as u64);
            let at = self.own(cta, there);
            let done = match op {
                Sm90::MbarrierInit => cta.init(at, number, &view),
                Sm90::MbarrierInval => cta.touch_mbarrier(at, RaceAccess::Write, &view).and_then(|()| {
                    let none = || Wrong::Undefined(format!("there is no mbarrier at {at:#x}"));
                    cta.mbarriers.remove(&at).map(|_| ()).ok_or_else(none)
                }),
                Sm90::MbarrierArrive => cta.arrive(at, number, &view),
                Sm90::MbarrierArriveExpectTx => cta.expect(at, number, &view).and_then(|()| cta.arrive(at, 1, &view)),
                Sm90::MbarrierArriveCluster => self.arrive_there(cta, there, number, view),
                Sm90::MbarrierExpectTx => cta.expect(at, number, &view),
                _ => cta.touch_mbarrier(at, RaceAccess::Atomic, &view).and_then(|()| {
                    let barrier = cta.mbarrier(at)?;
                    let complete = barrier.complete(number);
                    if complete {
                        let done = barrier.done.clone();
                        if let Some(clocks) = &cta.clocks {
                            clocks.acquire(view.who.thread(), &done);
                        }
                    } else if op == Sm90::MbarrierTryWait && random.below(8) != 0 {
                        parked |= 1 << lane;
                        cta.warps[w].park(lane, pc, Park::Mbarrier(at, number));
                        return Ok(());
                    }
                    cta.warps[w].set_one(step.dsts[0], lane, complete.into());
                    Ok(())
                }),
            };
            done.map_err(|wrong| self.wrong(cta, w, pc, lane, wrong))?;
        }
        Ok(parked)
    }

    /// The fault of one lane.
    pub(super) fn wrong(&self, cta: &Cta, w: usize, pc: u32, lane: usize, wrong: Wrong) -> SimFault {
        match wrong {
            Wrong::Access(refused, at) => self.refused(cta, w, pc, lane, refused, at),
            Wrong::Undefined(message) => self.fault(cta, w, pc, lane, Why::Undefined(message)),
        }
    }
}
