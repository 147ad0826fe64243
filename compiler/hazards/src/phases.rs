//! Transaction barriers in the walk: what takes part in a phase, when it ends, and whether it might end before all of
//! it is there. In program order it ends where no arrival and no byte is pending. In another order that may be so
//! before: its arrivals have come, and what is still to be announced and to come has not begun.

use super::order::{Carried, Order, Record, What, Wrong};
use super::poly::PolyInterval;
use ptoc_ir::sync::MAX_BYTES;
use std::cmp::Ordering;

/// Steps of a phase that are told apart.
const STEPS: usize = 64;
/// Steps that no arrival follows; of more, what could go wrong is not decided.
const LOOSE: usize = 12;

/// Less than, equal to or greater than 0; `None`: not known.
pub(super) type Sign<'a> = &'a dyn Fn(&PolyInterval) -> Option<Ordering>;

/// One arrival, announcement or number of bytes in a phase.
#[derive(Clone, PartialEq, Eq, Debug)]
struct PhaseOp {
    site: u32,
    arrives: bool,
    /// Announced, less those that come.
    bytes: PolyInterval,
    /// The steps before it that it is ordered after, one bit each.
    after: u64,
}

/// A transaction barrier.
#[derive(Clone, Debug)]
pub(super) struct Barrier {
    arrivals: u32,
    pending: u32,
    completed: u64,
    /// Bytes that were announced and that came, in this phase.
    pub(super) announced: PolyInterval,
    pub(super) came: PolyInterval,
    /// The last operation was an arrival without bytes that ended a phase: its site.
    early: Option<u32>,
    steps: Vec<PhaseOp>,
    /// Bytes are pending that cannot be spelled any more: they were computed in a loop that has gone on.
    lost: bool,
}

/// What an operation does to a barrier.
pub(super) struct Change {
    pub(super) arrives: bool,
    pub(super) announced: Option<PolyInterval>,
    pub(super) came: Option<PolyInterval>,
}

impl Barrier {
    pub(super) fn new(arrivals: u32) -> Barrier {
        Barrier {
            arrivals,
            pending: arrivals,
            completed: 0,
            announced: PolyInterval::default(),
            came: PolyInterval::default(),
            early: None,
            steps: Vec::new(),
            lost: false,
        }
    }

    /// Bytes that were announced and have not come; `None`: not known.
    pub(super) fn outstanding(&self) -> Option<PolyInterval> {
        if self.lost {
            return None;
        }
        self.announced.add(&self.came.scaled(-1)?)
    }

    /// Arrivals that the current phase still needs, if it has begun.
    pub(super) fn missing(&self) -> Option<(u32, u32)> {
        (!self.steps.is_empty()).then_some((self.pending, self.arrivals))
    }

    /// Values of a loop are others from now on: whoever counts with them does not know any more.
    pub(super) fn lose(&mut self, gone: &dyn Fn(&PolyInterval) -> bool) {
        let steps = self.steps.iter().any(|s| gone(&s.bytes));
        self.lost |= steps || gone(&self.announced) || gone(&self.came);
        if self.lost {
            (self.announced, self.came) = (PolyInterval::default(), PolyInterval::default());
            self.steps.clear();
        }
    }

    pub(super) fn key(&self, out: &mut Vec<u64>) {
        let phase = self.completed.min(1) << 1 | self.completed & 1;
        out.push(u64::from(self.pending) << 3 | u64::from(self.lost) << 2 | phase);
        self.announced.words(out);
        self.came.words(out);
        out.push(self.early.map_or(0, |s| u64::from(s) + 1));
        for step in &self.steps {
            out.extend([u64::from(step.site) << 1 | u64::from(step.arrives), step.after]);
            step.bytes.words(out);
        }
    }

    /// A step that may come after the end of the phase that it belongs to. `Err`: not decided.
    fn late(&self, sign: Sign) -> Result<Option<&PhaseOp>, ()> {
        let mut early: u64 = 0;
        for (n, step) in self.steps.iter().enumerate().filter(|(_, s)| s.arrives) {
            early |= step.after | 1 << n;
        }
        let loose: Vec<usize> = (0..self.steps.len()).filter(|n| early >> n & 1 == 0).collect();
        let signs: Vec<_> = loose.iter().map(|&n| sign(&self.steps[n].bytes)).collect();
        // Bytes of one sign only get nearer to 0, which is reached with the last.
        if [Ordering::Greater, Ordering::Less].iter().any(|&one| signs.iter().all(|s| *s == Some(one))) {
            return Ok(None);
        }
        if loose.len() > LOOSE {
            return Err(());
        }
        let sum = |set: u64| {
            let of = |n: &usize| set >> n & 1 == 1;
            (0..self.steps.len()).filter(of).try_fold(PolyInterval::default(), |sum, n| sum.add(&self.steps[n].bytes))
        };
        for subset in 0..(1u64 << loose.len()) - 1 {
            let here = |k: usize| subset >> k & 1 == 1;
            let set = loose.iter().enumerate().filter(|(k, _)| here(*k)).fold(early, |set, (_, n)| set | 1 << n);
            // Nothing comes before what it is ordered after.
            if (0..loose.len()).any(|k| here(k) && self.steps[loose[k]].after & !set != 0) {
                continue;
            }
            match sum(set).and_then(|p| sign(&p)) {
                Some(Ordering::Equal) => {
                    let missing = |n: &&usize| set >> **n & 1 == 0;
                    let announces = |n: &&usize| sign(&self.steps[**n].bytes) == Some(Ordering::Greater);
                    let late = loose.iter().filter(missing);
                    let first = late.clone().find(announces).or_else(|| late.clone().next());
                    return Ok(first.map(|n| &self.steps[*n]));
                }
                Some(_) => {}
                None => return Err(()),
            }
        }
        Ok(None)
    }
}

impl Order {
    /// An arrival, an announcement or bytes: changes the barrier and says what is wrong with it.
    pub(super) fn count(
        &mut self,
        carried: &Carried,
        element: u32,
        record: Record,
        change: Change,
        sign: Sign,
    ) -> Vec<Wrong> {
        let Change { arrives, announced, came } = change;
        let s = carried.streams[record.stream as usize];
        let mut wrong = Vec::new();
        let Some(b) = self.barriers[element as usize].as_mut() else { return wrong };
        if b.lost || b.steps.len() == STEPS {
            return vec![Wrong::UnknownBytes];
        }
        if let Some(site) = b.early.take()
            && announced.is_some()
        {
            wrong.push(Wrong::EarlyArrival(site));
        }
        if let Some(part) = self.records.iter().find(|r| r.what == What::Before(element) && r.known & s.done == 0) {
            wrong.push(Wrong::MixedPhases(part.site));
        }
        if arrives
            && b.pending == 0
            && let Some(last) = b.steps.iter().rev().find(|s| s.arrives)
        {
            wrong.push(Wrong::Surplus(last.site));
        }
        let nothing = Some(Ordering::Equal);
        let plain = arrives && announced.is_none() && sign(&b.announced) == nothing;
        let (more, less) = (announced.unwrap_or_default(), came.unwrap_or_default());
        let bytes = less.scaled(-1).and_then(|less| less.add(&more));
        let sums = (b.announced.add(&more), b.came.add(&less));
        let (Some(bytes), (Some(all), Some(here))) = (bytes, sums) else { return vec![Wrong::UnknownBytes] };
        (b.announced, b.came) = (all, here);
        b.pending = b.pending.saturating_sub(u32::from(arrives));
        let outstanding = b.outstanding();
        if let Some(n) = outstanding.as_ref().and_then(PolyInterval::constant).filter(|n| n.abs() > MAX_BYTES) {
            wrong.push(Wrong::TooManyBytes(n));
        }
        let ordered = |r: &Record| match r.what {
            What::Now(e, step) if e == element && r.known & s.done != 0 => 1u64 << step,
            _ => 0,
        };
        let after = self.records.iter().fold(0, |all, r| all | ordered(r));
        let step = b.steps.len() as u8;
        b.steps.push(PhaseOp { site: record.site, arrives, bytes, after });
        let ended = match outstanding.and_then(|p| sign(&p)) {
            Some(sign) => b.pending == 0 && sign == Ordering::Equal,
            None if b.pending > 0 => false,
            None => return vec![Wrong::UnknownBytes],
        };
        let site = record.site;
        if ended {
            match b.late(sign) {
                Ok(None) => {}
                Ok(Some(late)) => {
                    let late = late.site;
                    let last = b.steps.iter().rev().find(|s| s.arrives).map_or(site, |s| s.site);
                    wrong.push(Wrong::Unannounced { late, last });
                }
                Err(()) => wrong.push(Wrong::UnknownBytes),
            }
            *b = Barrier { completed: b.completed + 1, early: plain.then_some(site), ..Barrier::new(b.arrivals) };
        }
        self.tell(s.done, carried.of(element));
        // Waits that this one is ordered after are safe: the phase cannot end without it.
        self.records.retain(|r| !(r.what == What::Looked(element) && r.known & s.done != 0));
        self.records.push(Record { what: What::Now(element, step), known: s.done | carried.of(element), ..record });
        if ended {
            self.end_phase(carried, element, &mut wrong);
        }
        wrong
    }

    fn end_phase(&mut self, carried: &Carried, element: u32, wrong: &mut Vec<Wrong>) {
        if let Some(waiter) = self.records.iter().find(|r| r.what == What::Looked(element)) {
            wrong.push(Wrong::Overtaken(waiter.site));
        }
        self.records.retain(|r| r.what != What::Older(element) && r.what != What::Looked(element));
        let (now, ended) = (carried.of(element), carried.ended(element));
        self.tell(now, ended);
        for r in &mut self.records {
            r.known &= !now;
            match r.what {
                What::Before(e) if e == element => r.what = What::Older(element),
                What::Now(e, _) if e == element => r.what = What::Before(element),
                _ => {}
            }
        }
    }

    /// Waits while the barrier is in the phase of `parity`. The first of the results is a wait that never ends.
    pub(super) fn wait_phase(
        &mut self,
        carried: &Carried,
        element: u32,
        record: Record,
        parity: u8,
    ) -> Result<Option<Wrong>, Wrong> {
        let s = carried.streams[record.stream as usize];
        let Some(b) = self.barriers[element as usize].as_mut() else { return Ok(None) };
        b.early = None;
        if b.completed & 1 == u64::from(parity) {
            if b.lost {
                return Err(Wrong::UnknownBytes);
            }
            return Err(Wrong::Stuck {
                pending: b.pending,
                announced: b.announced.clone(),
                came: b.came.clone(),
                completed: b.completed,
                fresh: b.steps.is_empty(),
            });
        }
        if b.completed == 0 {
            // A stage that nobody has filled yet; nothing is seen. The phase must not end before this looks.
            let held = carried.held(record.stream as usize);
            self.look(element, Record { what: What::Looked(element), known: held, ..record });
            return Ok(None);
        }
        // Two phases ago the parity was the same: a waiter that does not know that the phase after that one has ended
        // may get through too early.
        let missed = self.records.iter().find(|r| r.what == What::Older(element) && r.known & s.start == 0);
        let wrong = missed.map(|r| Wrong::OnePhaseEarly(r.site));
        let held = carried.held(record.stream as usize);
        self.tell(carried.ended(element), held);
        self.look(element, Record { what: What::Looked(element), known: held, ..record });
        self.forget(carried);
        Ok(wrong)
    }

    fn look(&mut self, element: u32, record: Record) {
        // A later wait of the same stream stands for the earlier ones.
        let same = |r: &Record| r.what == What::Looked(element) && r.stream == record.stream;
        self.records.retain(|r| !same(r));
        self.records.push(record);
    }
}
