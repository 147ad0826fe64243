//! Bulk copies: they read their source some time after they are issued, write their destination some time after that,
//! and tell their `mbarrier` some time later still; or their group is waited for.

use super::maps::{Run, SHARED};
use super::mbarrier::Wrong;
use super::races::{RaceAccess, View, Who};
use super::warp::each;
use super::{Cta, SimFault, Why, World};
use crate::sm90::Sm90;

/// Where addresses of parameters begin.
pub(super) const PARAMS: u64 = 1 << 62;

/// A copy under way.
#[derive(Debug)]
pub(super) struct Copy {
    /// To global memory.
    pub(super) store: bool,
    runs: Vec<Run>,
    data: Vec<u8>,
    /// What has been done: nothing, the read, the write, and the arrival of its bytes.
    stage: u32,
    reads: View,
    writes: View,
    /// The `mbarrier`, and its phase then.
    arrival: Option<(u64, u32)>,
    /// The group of the thread.
    group: u32,
}

/// Bulk stores of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BulkGroups {
    committed: u32,
    /// Slots: when shared memory has been read, and when global memory has been written.
    slots: Option<(usize, usize)>,
}

/// Operands of a copy, of one lane.
#[derive(Clone, Debug)]
pub(super) struct Operands {
    runs: Vec<Run>,
    mbarrier: u64,
}

impl Cta {
    /// Lets a copy do the next of what it does.
    pub(super) fn step_copy(&mut self, world: &mut World<'_>, n: usize) -> Result<(), SimFault> {
        let mut copy = self.copies.swap_remove(n);
        copy.stage += 1;
        let done = match copy.stage {
            1 => self.read(world, &mut copy),
            2 => self.write(world, &copy),
            _ => self.arrived(&copy),
        };
        let view = if copy.stage == 1 { &copy.reads } else { &copy.writes };
        done.map_err(|wrong| operation(view.who, wrong))?;
        if copy.stage < 2 || (copy.stage < 3 && copy.arrival.is_some()) {
            self.copies.push(copy);
        }
        Ok(())
    }

    fn read(&mut self, world: &mut World<'_>, copy: &mut Copy) -> Result<(), Wrong> {
        for run in &copy.runs {
            let (at, view) = (if copy.store { Some(run.shared) } else { run.global }, &copy.reads);
            let bytes = match at {
                None => None,
                Some(at) if copy.store => Some((at, self.shared.touch_run(at, run.len, RaceAccess::Read, view))),
                Some(at) => Some((at, world.device.touch_run(at, run.len, RaceAccess::Read, view))),
            };
            match bytes {
                None => copy.data.resize(copy.data.len() + run.len, 0),
                Some((at, bytes)) => copy.data.extend_from_slice(bytes.map_err(|r| Wrong::Access(r, at))?),
            }
        }
        Ok(())
    }

    fn write(&mut self, world: &mut World<'_>, copy: &Copy) -> Result<(), Wrong> {
        let mut data = &copy.data[..];
        for run in &copy.runs {
            let (these, rest) = data.split_at(run.len);
            data = rest;
            let Some(at) = (if copy.store { run.global } else { Some(run.shared) }) else { continue };
            let bytes = if copy.store {
                world.device.touch_run(at, run.len, RaceAccess::Write, &copy.writes)
            } else {
                self.over_mbarrier(at, run.len as u64)?;
                self.shared.touch_run(at, run.len, RaceAccess::Write, &copy.writes)
            };
            let bytes = bytes.map_err(|refused| Wrong::Access(refused, at))?;
            bytes.copy_from_slice(these);
            if run.tf32 {
                bytes.chunks_exact_mut(4).for_each(round_to_tf32);
            }
        }
        Ok(())
    }

    fn arrived(&mut self, copy: &Copy) -> Result<(), Wrong> {
        let Some((at, phase)) = copy.arrival else { return Ok(()) };
        self.complete_tx(at, copy.data.len() as u64, phase, &copy.writes)
    }

    /// Nothing but its own instructions writes an `mbarrier`.
    pub(super) fn over_mbarrier(&self, at: u64, len: u64) -> Result<(), Wrong> {
        match self.mbarriers.range(at.saturating_sub(7)..at.saturating_add(len)).next() {
            Some((at, _)) => Err(Wrong::Undefined(format!("a write over the mbarrier at {at:#x}"))),
            None => Ok(()),
        }
    }

    /// A load to this CTA begins, of a thread of its cluster.
    pub(super) fn load(&mut self, view: View, operands: Operands) -> Result<(), Wrong> {
        let at = operands.mbarrier;
        let none = || Wrong::Undefined(format!("there is no mbarrier at {at:#x}"));
        let barrier = self.mbarriers.get(&at).ok_or_else(none)?;
        let arrival = Some((at, barrier.phase));
        let view = View { who: view.who.operation(barrier.slot, barrier.phase), ..view };
        if let Some(clocks) = &self.clocks {
            clocks.issue(view.who);
        }
        let (runs, data, writes) = (operands.runs, Vec::new(), view.clone());
        self.copies.push(Copy { store: false, runs, data, stage: 0, reads: view, writes, arrival, group: 0 });
        Ok(())
    }

    fn groups(&mut self, thread: usize) -> &mut BulkGroups {
        let groups = self.groups.entry(thread).or_default();
        if let (None, Some(clocks)) = (groups.slots, &self.clocks) {
            groups.slots = Some((clocks.slot(), clocks.slot()));
        }
        groups
    }

    /// A thread waits for all but the most recent of its groups.
    fn wait_for_groups(
        &mut self,
        world: &mut World<'_>,
        thread: usize,
        pending: u32,
        read: bool,
    ) -> Result<(), SimFault> {
        let groups = *self.groups(thread);
        let last = groups.committed.saturating_sub(pending);
        let stages = if read { 1 } else { 2 };
        let waits =
            |copy: &Copy| copy.store && copy.reads.who.thread() == thread && copy.group <= last && copy.stage < stages;
        while let Some(n) = self.copies.iter().position(waits) {
            self.step_copy(world, n)?;
        }
        if let (Some((reads, writes)), Some(clocks)) = (groups.slots, &self.clocks) {
            clocks.ended(thread, reads, last);
            if !read {
                clocks.ended(thread, writes, last);
            }
        }
        Ok(())
    }
}

/// The fault of an asynchronous operation.
pub(super) fn operation(who: Who, wrong: Wrong) -> SimFault {
    let (why, other) = match wrong {
        Wrong::Access((refusal, race), at) => (Why::Access(refusal, at), race.map(super::races::other)),
        Wrong::Undefined(message) => (Why::Undefined(message), None),
    };
    let at = Some((who.pc as usize, String::new(), 0));
    SimFault { at, thread: Some((who.cta, who.thread() as u32)), other, asynchronous: true, ..why.into() }
}

impl World<'_> {
    /// An instruction of bulk copies, of some lanes.
    pub(super) fn bulk(&mut self, cta: &mut Cta, w: usize, pc: u32, op: Sm90, does: u32) -> Result<(), SimFault> {
        for lane in each(does) {
            let thread = 32 * w + lane;
            match op {
                Sm90::BulkCommit => cta.groups(thread).committed += 1,
                Sm90::BulkWait { pending, read } => cta.wait_for_groups(self, thread, pending, read)?,
                Sm90::TensorMulticast(rank) => {
                    let step = &self.code.steps[pc as usize];
                    let mask = self.values(cta, w, step.all_srcs[3 + usize::from(rank)])[lane] as u16;
                    let operands = self.copied(cta, w, pc, op, lane);
                    let sent = operands.and_then(|operands| self.send(cta, w, pc, lane, operands, mask));
                    sent.map_err(|wrong| self.wrong(cta, w, pc, lane, wrong))?;
                }
                _ => {
                    let operands = self.copied(cta, w, pc, op, lane);
                    let issued = operands.and_then(|operands| issue(cta, w, pc, op, lane, operands));
                    issued.map_err(|wrong| self.wrong(cta, w, pc, lane, wrong))?;
                }
            }
        }
        Ok(())
    }

    /// What a copy copies.
    fn copied(&self, cta: &Cta, w: usize, pc: u32, op: Sm90, lane: usize) -> Result<Operands, Wrong> {
        let step = &self.code.steps[pc as usize];
        let value = |n: usize| self.values(cta, w, step.all_srcs[n])[lane];
        let undefined = |message: &str, at: u64| Wrong::Undefined(format!("{message} {at:#x}"));
        let (shared, global, mbarrier, rank) = match op {
            Sm90::BulkLoad => (value(0), value(1), value(3), 0),
            Sm90::BulkStore => (value(1), value(0), 0, 0),
            Sm90::TensorLoad(rank) | Sm90::TensorMulticast(rank) => {
                (value(0), value(1), value(2 + usize::from(rank)), rank)
            }
            Sm90::TensorStore(rank) => (value(1 + usize::from(rank)), value(0), 0, rank),
            _ => return Err(Wrong::Undefined("no bulk copy".into())),
        };
        let [shared, mbarrier] = [shared, mbarrier].map(|at| self.own(cta, at));
        if rank == 0 {
            let size = value(2) as u32;
            if u64::from(size) > SHARED {
                return Err(undefined("no shared memory has as many bytes as", size.into()));
            }
            if (shared | global | u64::from(size)) & 15 != 0 {
                return Err(undefined("addresses and sizes of bulk copies are multiples of 16, not", shared | global));
            }
            let run = |n: u64| Run {
                shared: shared.wrapping_add(n),
                global: Some(global.wrapping_add(n)),
                len: 16,
                tf32: false,
            };
            return Ok(Operands { runs: (0..size.into()).step_by(16).map(run).collect(), mbarrier });
        }
        let map = self.map(global).ok_or_else(|| undefined("there is no tensor map at", global))?;
        if map.dims.len() != usize::from(rank) {
            return Err(Wrong::Undefined(format!("a tensor map of {} dimensions", map.dims.len())));
        }
        if shared & 127 != 0 {
            return Err(undefined("boxes lie at multiples of 128 in shared memory, not at", shared));
        }
        let first = if matches!(op, Sm90::TensorLoad(_) | Sm90::TensorMulticast(_)) { 2 } else { 1 };
        let at: Vec<i64> = (0..usize::from(rank)).map(|n| i64::from(value(first + n) as u32 as i32)).collect();
        Ok(Operands { runs: map.runs(&at, shared), mbarrier })
    }
}

/// A copy begins.
fn issue(cta: &mut Cta, w: usize, pc: u32, op: Sm90, lane: usize, operands: Operands) -> Result<(), Wrong> {
    let mut view = cta.view(w, lane, pc);
    if let Some(clocks) = &cta.clocks {
        // What the thread does behind this is not before it.
        view.clocks = Some(clocks.release(view.who.thread()));
    }
    let store = matches!(op, Sm90::BulkStore | Sm90::TensorStore(_));
    let with = |slot: usize, time: u32| View { who: view.who.operation(slot, time), ..view.clone() };
    let (reads, writes, group) = if store {
        let groups = *cta.groups(view.who.thread());
        let group = groups.committed + 1;
        let (reads, writes) = groups.slots.unwrap_or((0, 0));
        (with(reads, group), with(writes, group), group)
    } else {
        return cta.load(view, operands);
    };
    if let Some(clocks) = &cta.clocks {
        clocks.issue(reads.who);
    }
    let (runs, data, stage, arrival) = (operands.runs, Vec::new(), 0, None);
    cta.copies.push(Copy { store, runs, data, stage, reads, writes, arrival, group });
    Ok(())
}

/// A number of f32 to the nearest of TF32, of two the even one, as an H200 does it; what is none becomes one NaN.
fn round_to_tf32(word: &mut [u8]) {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(word);
    let bits = u32::from_le_bytes(bytes);
    let rounded = match bits & 0x7fff_ffff {
        0..=0x7f80_0000 => bits.wrapping_add(0xfff + (bits >> 13 & 1)) & !0x1fff,
        _ => 0x7fff_e000,
    };
    word.copy_from_slice(&rounded.to_le_bytes());
}
