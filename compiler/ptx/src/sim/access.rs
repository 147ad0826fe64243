//! Instructions that go to memory, lane by lane.

use super::code::SimInst;
use super::compute::narrow;
use super::mbarrier::Wrong;
use super::memory::{Arena, Refused};
use super::races::{RaceAccess, View};
use super::warp::{Values, each};
use super::{Cta, World, arith};
use crate::inst::{AtomOp, Op};
use crate::table::Arith;
use crate::types::{Space, Type};

/// What is wrong, of which lane.
type Stopped = (Wrong, usize);

impl World<'_> {
    /// An access of some lanes.
    pub(super) fn memory(
        &mut self,
        cta: &mut Cta,
        w: usize,
        pc: u32,
        step: &SimInst,
        mask: u32,
    ) -> Result<(), Stopped> {
        if mask == 0 {
            return Ok(());
        }
        let mut at = self.values(cta, w, step.srcs[0]);
        if let Op::Ld(Space::Shared, _) | Op::St(Space::Shared, _) | Op::Atom(Space::Shared, ..) = step.op {
            at = at.map(|at| self.own(cta, at));
        }
        match step.op {
            Op::Ld(space, ty) => self.load(cta, w, step, (space, ty), &at, mask, pc),
            Op::St(space, ty) => self.store(cta, w, step, (space, ty), &at, mask, pc),
            Op::Atom(space, op, ty) => {
                let (value, other) = (self.values(cta, w, step.srcs[1]), self.values(cta, w, step.srcs[2]));
                for lane in each(mask) {
                    let (value, other) = (narrow(ty, value[lane]), narrow(ty, other[lane]));
                    let some = if op == AtomOp::Cas { different(value, other) } else { u32::MAX };
                    let view = cta.view(w, lane, pc);
                    let bytes = self.touch(cta, space, at[lane], ty.size(), some, RaceAccess::Atomic, &view);
                    let bytes = bytes.map_err(|refused| (Wrong::Access(refused, at[lane]), lane))?;
                    let old = update(bytes, op, ty, value, other);
                    cta.warps[w].set_one(step.dsts[0], lane, old);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "an instruction's parts")]
    fn load(
        &mut self,
        cta: &mut Cta,
        w: usize,
        step: &SimInst,
        (space, ty): (Space, Type),
        at: &Values,
        mask: u32,
        pc: u32,
    ) -> Result<(), Stopped> {
        let size = ty.size() as usize;
        let total = size * step.results;
        for lane in each(mask) {
            let mut raw = [0; 16];
            if space == Space::Param {
                let at = at[lane] as usize;
                raw[..total].copy_from_slice(&self.params[at..at + total]);
            } else {
                let view = cta.view(w, lane, pc);
                let bytes = self.touch(cta, space, at[lane], total as u32, u32::MAX, RaceAccess::Read, &view);
                raw[..total].copy_from_slice(bytes.map_err(|refused| (Wrong::Access(refused, at[lane]), lane))?);
            }
            for n in 0..step.results {
                let mut one = [0; 8];
                one[..size].copy_from_slice(&raw[n * size..(n + 1) * size]);
                let bits = u64::from_le_bytes(one);
                let value = match ty {
                    Type::S8 => u64::from(bits as u8 as i8 as i32 as u32),
                    Type::S16 => u64::from(bits as u16 as i16 as i32 as u32),
                    _ => bits,
                };
                cta.warps[w].set_one(step.dsts[n], lane, value);
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "an instruction's parts")]
    fn store(
        &mut self,
        cta: &mut Cta,
        w: usize,
        step: &SimInst,
        (space, ty): (Space, Type),
        at: &Values,
        mask: u32,
        pc: u32,
    ) -> Result<(), Stopped> {
        let (size, count) = (ty.size() as usize, step.operands - 1);
        let mut values = [[0; 32]; 4];
        for (n, to) in values.iter_mut().enumerate().take(count) {
            *to = self.values(cta, w, step.srcs[1 + n]);
        }
        let total = size * count;
        for lane in each(mask) {
            let mut raw = [0; 16];
            for n in 0..count {
                raw[n * size..(n + 1) * size].copy_from_slice(&values[n][lane].to_le_bytes()[..size]);
            }
            if space == Space::Shared && !cta.mbarriers.is_empty() {
                cta.over_mbarrier(at[lane], total as u64).map_err(|wrong| (wrong, lane))?;
            }
            let view = cta.view(w, lane, pc);
            let bytes = self.touch(cta, space, at[lane], total as u32, u32::MAX, RaceAccess::Write, &view);
            bytes.map_err(|refused| (Wrong::Access(refused, at[lane]), lane))?.copy_from_slice(&raw[..total]);
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "an access's parts")]
    fn touch<'m>(
        &'m mut self,
        cta: &'m mut Cta,
        space: Space,
        at: u64,
        size: u32,
        some: u32,
        access: RaceAccess,
        view: &View,
    ) -> Result<&'m mut [u8], Refused> {
        match space {
            Space::Shared => cta.shared.touch_some(at, size, some, access, view),
            Space::Local => Arena::touch(&mut cta.locals[view.who.thread()], at, size, access, view),
            _ => self.device.touch(at, size, some, access, view),
        }
    }
}

/// The bytes that a compare-and-swap of these changes, which are those that it is marked to access. Updates of narrow
/// elements swap the word around, and try again where a neighbour's bytes are not what they were; memory takes stores
/// of bytes and swaps of words one after another.
fn different(compare: u64, new: u64) -> u32 {
    let bytes = (compare ^ new).to_le_bytes();
    (0..8).filter(|&n| bytes[n] != 0).fold(0, |mask, n| mask | 1 << n)
}

/// An atomic instruction on the bytes of an element; what was there.
fn update(bytes: &mut [u8], op: AtomOp, ty: Type, value: u64, other: u64) -> u64 {
    let size = ty.size() as usize;
    let mut raw = [0; 8];
    raw[..size].copy_from_slice(bytes);
    let old = u64::from_le_bytes(raw);
    let new = match op {
        AtomOp::Add => arith::arith(Arith::Add, ty, old, value, 0, false),
        AtomOp::Min => arith::arith(Arith::Min, ty, old, value, 0, false),
        AtomOp::Max => arith::arith(Arith::Max, ty, old, value, 0, false),
        AtomOp::And => old & value,
        AtomOp::Or => old | value,
        AtomOp::Xor => old ^ value,
        AtomOp::Exch => value,
        AtomOp::Cas if old == value => other,
        AtomOp::Cas => old,
    };
    bytes.copy_from_slice(&new.to_le_bytes()[..size]);
    old
}
