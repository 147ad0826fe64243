//! `cp.async`: copies of 16 bytes that a thread issues, and that are done when it waits for them or has an `mbarrier`
//! wait for them. Here they are done no earlier: who looks before finds what was there.

use super::mbarrier::Wrong;
use super::races::RaceAccess;
use super::warp::each;
use super::{Cta, SimFault, World};
use crate::sm90::Sm90;

/// Bytes of a copy.
const BYTES: usize = 16;

/// A copy that is under way.
#[derive(Debug)]
pub(super) struct Pending {
    to: u64,
    from: u64,
    /// Bytes that are read; the others are zeros.
    read: u32,
    pc: u32,
}

impl World<'_> {
    /// An instruction of `cp.async`, of some lanes.
    pub(super) fn cp_async(&mut self, cta: &mut Cta, w: usize, pc: u32, op: Sm90, does: u32) -> Result<(), SimFault> {
        let step = &self.code.steps[pc as usize];
        let (first, second) = (self.values(cta, w, step.srcs[0]), self.values(cta, w, step.srcs[1]));
        let third = self.values(cta, w, step.srcs[2]);
        for lane in each(does) {
            let at = self.own(cta, first[lane]);
            let done = match op {
                Sm90::CpAsync => pending(cta, 32 * w + lane, [at, second[lane], third[lane]], pc),
                Sm90::CpAsyncArrive => self.finish(cta, w, lane).and_then(|()| {
                    let view = cta.view(w, lane, pc);
                    cta.arrive(at, 1, &view)
                }),
                _ => self.finish(cta, w, lane),
            };
            done.map_err(|wrong| self.wrong(cta, w, pc, lane, wrong))?;
        }
        Ok(())
    }

    /// Does what a thread has issued.
    fn finish(&mut self, cta: &mut Cta, w: usize, lane: usize) -> Result<(), Wrong> {
        for Pending { to, from, read, pc } in cta.cp_async.remove(&(32 * w + lane)).unwrap_or_default() {
            let view = cta.view(w, lane, pc);
            let mut raw = [0; BYTES];
            if read > 0 {
                let bytes = self.device.touch(from, read, u32::MAX, RaceAccess::Read, &view);
                raw[..read as usize].copy_from_slice(bytes.map_err(|refused| Wrong::Access(refused, from))?);
            }
            if !cta.mbarriers.is_empty() {
                cta.over_mbarrier(to, BYTES as u64)?;
            }
            let bytes = cta.shared.touch_some(to, BYTES as u32, u32::MAX, RaceAccess::Write, &view);
            bytes.map_err(|refused| Wrong::Access(refused, to))?.copy_from_slice(&raw);
        }
        Ok(())
    }
}

fn pending(cta: &mut Cta, thread: usize, [to, from, read]: [u64; 3], pc: u32) -> Result<(), Wrong> {
    let read = read as u32;
    if read > BYTES as u32 {
        return Err(Wrong::Undefined(format!("{read} of 16 bytes are read")));
    }
    if let Some(at) = [to, from].into_iter().find(|at| at % BYTES as u64 != 0) {
        return Err(Wrong::Undefined(format!("{at:#x} is no multiple of 16")));
    }
    cta.cp_async.entry(thread).or_default().push(Pending { to, from, read, pc });
    Ok(())
}
