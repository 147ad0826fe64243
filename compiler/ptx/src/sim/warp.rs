//! A warp: lanes with registers and program counters, and what an instruction does to those that are together.

use super::code::{Operand, Step};
use super::memory::Arena;
use super::races::{Access, Who};
use super::{Cta, Fault, Random, Refusal, Why, World, arith};
use crate::inst::{AtomOp, Op, Special};
use crate::table::Arith;
use crate::types::{Space, Type};

/// What a lane does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lane {
    Ready,
    /// It waits at this barrier.
    Barrier(u32),
    /// It waits for the other lanes of a shuffle.
    Shuffle,
    Ended,
}

pub(super) struct Warp {
    number: u32,
    pub(super) lanes: [Lane; 32],
    pcs: [u32; 32],
    /// Register n of lane l at `32 n + l`.
    regs: Vec<u64>,
}

/// The lanes of a mask.
fn each(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |l| mask >> l & 1 != 0)
}

impl Warp {
    pub(super) fn new(number: u32, registers: usize) -> Warp {
        Warp { number, lanes: [Lane::Ready; 32], pcs: [0; 32], regs: vec![0; 32 * registers] }
    }

    /// Behind a barrier.
    pub(super) fn resume(&mut self) {
        for lane in self.lanes.iter_mut().filter(|l| matches!(l, Lane::Barrier(_))) {
            *lane = Lane::Ready;
        }
    }

    /// Where a lane waits.
    pub(super) fn waiting(&self) -> Option<usize> {
        let lane = self.lanes.iter().position(|l| !matches!(l, Lane::Ended | Lane::Ready))?;
        Some(self.pcs[lane] as usize)
    }

    /// Lanes that are at `pc` and can go on.
    fn together(&self, pc: u32) -> u32 {
        (0..32).filter(|&l| self.lanes[l] == Lane::Ready && self.pcs[l] == pc).fold(0, |mask, l| mask | 1 << l)
    }

    fn set(&mut self, reg: usize, lane: usize, value: u64) {
        self.regs[32 * reg + lane] = value;
    }

    fn move_on(&mut self, mask: u32, pc: u32) {
        each(mask).for_each(|l| self.pcs[l] = pc);
    }
}

impl World<'_> {
    /// Lets some lanes of a warp that are together run for so many instructions, or until they wait or part.
    pub(super) fn burst(&mut self, cta: &mut Cta, w: usize, burst: usize, random: &mut Random) -> Result<(), Fault> {
        let warp = &cta.warps[w];
        let ready: Vec<usize> = (0..32).filter(|&l| warp.lanes[l] == Lane::Ready).collect();
        // Those behind mostly go first, so that lanes meet again; not always.
        let leader = match random.below(4) {
            0 => ready[random.below(ready.len())],
            _ => ready.iter().copied().min_by_key(|&l| warp.pcs[l]).unwrap_or(0),
        };
        let mut pc = warp.pcs[leader];
        let mut mask = warp.together(pc);
        if random.below(16) == 0 {
            // Some of them only.
            mask &= random.next() as u32 | 1 << leader;
        }
        let all = mask == warp.together(pc) && mask.count_ones() as usize == ready.len();
        for _ in 0..burst {
            // Others may be here.
            if !all {
                let here = cta.warps[w].together(pc);
                if here != mask && here & mask == mask && random.below(8) != 0 {
                    mask = here;
                }
            }
            self.fuel = self.fuel.checked_sub(1).ok_or(Why::Fuel)?;
            self.stats.issued += 1;
            self.stats.lanes += u64::from(mask.count_ones());
            let step = &self.code.steps[pc as usize];
            let mut does = mask;
            if let Some((reg, so)) = step.guard {
                does = each(mask)
                    .filter(|l| (cta.warps[w].regs[32 * reg + l] != 0) == so)
                    .fold(0, |mask, l| mask | 1 << l);
            }
            match step.op {
                Op::Bra => {
                    let Operand::Target(target) = step.srcs[0] else { unreachable!("the verifier has seen a label") };
                    let warp = &mut cta.warps[w];
                    warp.move_on(mask & !does, pc + 1);
                    warp.move_on(does, target);
                    if does != 0 && does != mask {
                        return Ok(());
                    }
                    pc = if does != 0 { target } else { pc + 1 };
                    continue;
                }
                Op::Ret | Op::Bar(_) => {
                    let warp = &mut cta.warps[w];
                    warp.move_on(mask, pc + 1);
                    let state = if let Op::Bar(n) = step.op { Lane::Barrier(n) } else { Lane::Ended };
                    each(does).for_each(|l| warp.lanes[l] = state);
                    if does == mask {
                        return Ok(());
                    }
                    mask &= !does;
                }
                Op::Shfl(_) if does != 0 => {
                    self.shuffle(cta, w, pc, mask, does)?;
                    return Ok(());
                }
                _ => {
                    self.step(cta, w, pc, step, does)?;
                    cta.warps[w].move_on(mask, pc + 1);
                }
            }
            pc += 1;
        }
        Ok(())
    }

    /// A shuffle waits until all its members are there.
    fn shuffle(&mut self, cta: &mut Cta, w: usize, pc: u32, mask: u32, does: u32) -> Result<(), Fault> {
        let step = &self.code.steps[pc as usize];
        let Op::Shfl(mode) = step.op else { return Ok(()) };
        let first = does.trailing_zeros() as usize;
        let members = self.value(cta, w, step.srcs[3], first) as u32;
        let warp = &mut cta.warps[w];
        warp.move_on(mask & !does, pc + 1);
        each(does).for_each(|l| warp.lanes[l] = Lane::Shuffle);
        let here = |l: usize| warp.lanes[l] == Lane::Shuffle && warp.pcs[l] == pc;
        if members & does != does {
            return Err(self.fault(cta, w, pc, first, Why::Invalid("a shuffle of lanes that are no members".into())));
        }
        if !each(members).all(here) {
            return Ok(());
        }
        let values: Vec<u64> = (0..32).map(|l| self.value(cta, w, step.srcs[0], l)).collect();
        let from: Vec<u32> =
            (0..32).map(|l| mode.source(l as u32, self.value(cta, w, step.srcs[1], l) as u32)).collect();
        let warp = &mut cta.warps[w];
        for l in each(members) {
            warp.set(step.dsts[0], l, values[from[l] as usize]);
            warp.lanes[l] = Lane::Ready;
            warp.pcs[l] = pc + 1;
        }
        Ok(())
    }

    fn value(&self, cta: &Cta, w: usize, operand: Operand, lane: usize) -> u64 {
        let warp = &cta.warps[w];
        match operand {
            Operand::Reg(reg) => warp.regs[32 * reg + lane],
            Operand::Imm(bits) => bits,
            Operand::Special(special) => u64::from(match special {
                Special::Tid => 32 * warp.number + lane as u32,
                Special::Ntid => self.launch.kernel.threads,
                Special::Ctaid => cta.number,
                Special::Nctaid => self.launch.ctas,
                Special::Laneid => lane as u32,
            }),
            Operand::Addr(base, disp) => base.map_or(0, |reg| warp.regs[32 * reg + lane]).wrapping_add(disp),
            Operand::Target(_) => 0,
        }
    }

    fn fault(&self, cta: &Cta, w: usize, pc: u32, lane: usize, why: Why) -> Fault {
        let thread = 32 * cta.warps[w].number + lane as u32;
        Fault { why, at: Some((pc as usize, String::new(), 0)), thread: Some((cta.number, thread)) }
    }

    /// An instruction of some lanes, which computes or goes to memory.
    fn step(&mut self, cta: &mut Cta, w: usize, pc: u32, step: &Step, mask: u32) -> Result<(), Fault> {
        let [dst, ..] = step.dsts;
        match step.op {
            Op::Ld(..) | Op::St(..) | Op::Atom(..) => {
                for lane in each(mask) {
                    self.memory(cta, w, step, lane)
                        .map_err(|(refusal, at)| self.fault(cta, w, pc, lane, Why::Access(refusal, at)))?;
                }
            }
            op => {
                for lane in each(mask) {
                    let value = |n: usize| self.value(cta, w, step.srcs[n], lane);
                    let result = match op {
                        Op::Arith(arith, ty) => {
                            arith::arith(arith, ty, value(0), value(1), value(2), self.launch.keep_nan)
                        }
                        Op::Mov(ty) => narrow(ty, value(0)),
                        Op::Bits(_) | Op::CvtaTo(_) => value(0),
                        Op::Setp(cmp, ty) => u64::from(arith::compare(cmp, ty, value(0), value(1))),
                        Op::Selp(ty) => narrow(ty, if value(2) != 0 { value(0) } else { value(1) }),
                        Op::Cvt { to, from, round } => arith::convert(to, from, round, value(0), self.launch.keep_nan),
                        _ => unreachable!("control and memory have been seen to"),
                    };
                    cta.warps[w].set(dst, lane, result);
                }
            }
        }
        Ok(())
    }

    fn memory(&mut self, cta: &mut Cta, w: usize, step: &Step, lane: usize) -> Result<(), (Refusal, u64)> {
        let at = self.value(cta, w, step.srcs[0], lane);
        let who = Who { cta: cta.number, thread: 32 * cta.warps[w].number + lane as u32, epoch: cta.epoch };
        match step.op {
            Op::Ld(space, ty) => {
                let size = ty.size() as usize;
                let mut raw = [0; 16];
                let total = size * step.results;
                if space == Space::Param {
                    raw[..total].copy_from_slice(&self.params[at as usize..at as usize + total]);
                } else {
                    let bytes = self.touch(cta, space, at, total as u32, Access::Read, who)?;
                    raw[..total].copy_from_slice(bytes);
                }
                for n in 0..step.results {
                    let mut one = [0; 8];
                    one[..size].copy_from_slice(&raw[n * size..(n + 1) * size]);
                    let bits = u64::from_le_bytes(one);
                    let value = match ty {
                        Type::S8 => bits as u8 as i8 as i32 as u32 as u64,
                        Type::S16 => bits as u16 as i16 as i32 as u32 as u64,
                        _ => bits,
                    };
                    cta.warps[w].set(step.dsts[n], lane, value);
                }
            }
            Op::St(space, ty) => {
                let size = ty.size() as usize;
                let count = step.operands - 1;
                let mut raw = [0; 16];
                for n in 0..count {
                    let bits = self.value(cta, w, step.srcs[1 + n], lane).to_le_bytes();
                    raw[n * size..(n + 1) * size].copy_from_slice(&bits[..size]);
                }
                let total = size * count;
                self.touch(cta, space, at, total as u32, Access::Write, who)?.copy_from_slice(&raw[..total]);
            }
            Op::Atom(space, op, ty) => {
                let value = narrow(ty, self.value(cta, w, step.srcs[1], lane));
                let other = narrow(ty, self.value(cta, w, step.srcs[2], lane));
                let size = ty.size() as usize;
                let bytes = self.touch(cta, space, at, ty.size(), Access::Atomic, who)?;
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
                    AtomOp::Cas => {
                        if old == value {
                            other
                        } else {
                            old
                        }
                    }
                };
                bytes.copy_from_slice(&new.to_le_bytes()[..size]);
                cta.warps[w].set(step.dsts[0], lane, old);
            }
            _ => {}
        }
        Ok(())
    }

    fn touch<'m>(
        &'m mut self,
        cta: &'m mut Cta,
        space: Space,
        at: u64,
        size: u32,
        access: Access,
        who: Who,
    ) -> Result<&'m mut [u8], (Refusal, u64)> {
        let touched = match space {
            Space::Shared => cta.shared.touch(at, size, access, who),
            Space::Local => Arena::touch(&mut cta.locals[who.thread as usize], at, size, access, who),
            _ => self.device.touch(at, size, access, who),
        };
        touched.map_err(|refusal| (refusal, at))
    }
}

/// Numbers of an instruction have as many bits as its type.
fn narrow(ty: Type, bits: u64) -> u64 {
    arith::truncate(ty.class().bits().div_ceil(8) * u32::from(ty != Type::Pred), bits)
}
