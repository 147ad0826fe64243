//! A warp: lanes with registers and program counters, and which of them go on together.

use super::code::Operand;
use super::memory::Refused;
use super::races::{RaceAccess, Who};
use super::{Cta, Other, Random, SimFault, Why, World};
use crate::inst::Op;

/// Barriers of a CTA.
const BARRIERS: u32 = 16;

/// A register of all lanes.
pub(super) type Values = [u64; 32];

/// Lanes are bits: of those that go on, that wait at a barrier, that wait for the others of a shuffle. The rest has
/// ended.
pub(super) struct Warp {
    pub(super) number: u32,
    ready: u32,
    at_barrier: u32,
    shuffling: u32,
    pcs: [u32; 32],
    /// The barriers that lanes wait at.
    barriers: [u32; 32],
    /// Lanes at a barrier that vote for it, and the registers in which those that vote want the outcome.
    votes: u32,
    outcomes: [Option<usize>; 32],
    regs: Vec<Values>,
}

/// The lanes of a mask.
pub(super) fn each(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

impl Warp {
    pub(super) fn new(number: u32, registers: usize) -> Warp {
        Warp {
            number,
            ready: u32::MAX,
            at_barrier: 0,
            shuffling: 0,
            pcs: [0; 32],
            barriers: [0; 32],
            votes: 0,
            outcomes: [None; 32],
            regs: vec![[0; 32]; registers],
        }
    }

    /// The lanes that can go on.
    pub(super) fn ready(&self) -> u32 {
        self.ready
    }

    /// How many lanes wait at a barrier or have ended.
    pub(super) fn arrived(&self) -> u32 {
        32 - (self.ready | self.shuffling).count_ones()
    }

    /// The barriers that lanes wait at.
    pub(super) fn barriers(&self) -> impl Iterator<Item = u32> {
        each(self.at_barrier).map(|l| self.barriers[l])
    }

    /// Whether a lane at a barrier votes for it.
    pub(super) fn votes(&self) -> bool {
        self.votes != 0
    }

    /// Behind a barrier, with the outcome of the vote: how many lanes have ended.
    pub(super) fn resume(&mut self, outcome: bool) -> u32 {
        for lane in each(self.at_barrier) {
            if let Some(reg) = self.outcomes[lane].take() {
                self.regs[reg][lane] = outcome.into();
            }
        }
        self.votes = 0;
        self.ready |= std::mem::take(&mut self.at_barrier);
        self.arrived()
    }

    /// Where a lane waits.
    pub(super) fn waiting(&self) -> Option<usize> {
        each(self.at_barrier | self.shuffling).next().map(|lane| self.pcs[lane] as usize)
    }

    pub(super) fn reg(&self, reg: usize) -> &Values {
        &self.regs[reg]
    }

    pub(super) fn set(&mut self, reg: usize, mask: u32, values: &Values) {
        match mask {
            u32::MAX => self.regs[reg] = *values,
            _ => each(mask).for_each(|l| self.regs[reg][l] = values[l]),
        }
    }

    pub(super) fn set_one(&mut self, reg: usize, lane: usize, value: u64) {
        self.regs[reg][lane] = value;
    }

    /// Lanes that are at `pc` and can go on.
    fn together(&self, pc: u32) -> u32 {
        each(self.ready).filter(|&l| self.pcs[l] == pc).fold(0, |mask, l| mask | 1 << l)
    }

    fn move_on(&mut self, mask: u32, pc: u32) {
        each(mask).for_each(|l| self.pcs[l] = pc);
    }

    /// Lanes wait at a barrier.
    fn wait(&mut self, lanes: u32, barrier: u32) {
        self.at_barrier |= lanes;
        each(lanes).for_each(|l| self.barriers[l] = barrier);
    }

    /// The lanes of which a register is not zero, if `so`; else those of which it is.
    fn holds(&self, reg: usize, so: bool) -> u32 {
        let values = self.reg(reg);
        (0..32).fold(0, |mask, l| mask | u32::from((values[l] != 0) == so) << l)
    }

    /// The lane that leads. Those behind mostly go first, so that lanes meet again; not always.
    fn leader(&self, random: &mut Random) -> usize {
        if random.below(4) == 0 {
            let nth = random.below(self.ready.count_ones() as usize);
            each(self.ready).nth(nth).unwrap_or(0)
        } else {
            each(self.ready).min_by_key(|&l| self.pcs[l]).unwrap_or(0)
        }
    }
}

impl World<'_> {
    /// Lets some lanes of a warp that are together run for so many instructions, or until they wait or part.
    pub(super) fn burst(&mut self, cta: &mut Cta, w: usize, burst: usize, random: &mut Random) -> Result<(), SimFault> {
        let warp = &cta.warps[w];
        let leader = warp.leader(random);
        let mut pc = warp.pcs[leader];
        let mut mask = warp.together(pc);
        if random.below(16) == 0 {
            // Some of them only.
            mask &= random.next() as u32 | 1 << leader;
        }
        // Others may come to where these are. The counters of these are brought up to date when they stop.
        let alone = mask == warp.ready;
        for _ in 0..burst {
            if !alone {
                let here = cta.warps[w].together(pc) | mask;
                if here != mask && random.below(8) != 0 {
                    mask = here;
                }
            }
            self.fuel = self.fuel.checked_sub(1).ok_or(Why::Fuel)?;
            self.stats.issued += 1;
            self.stats.lanes += u64::from(mask.count_ones());
            let step = &self.code.steps[pc as usize];
            let does = step.guard.map_or(mask, |(reg, so)| mask & cta.warps[w].holds(reg, so));
            match step.op {
                Op::Bra => {
                    let Operand::Target(target) = step.srcs[0] else { unreachable!("the verifier has seen a label") };
                    if does != 0 && does != mask {
                        cta.warps[w].move_on(mask & !does, pc + 1);
                        cta.warps[w].move_on(does, target);
                        return Ok(());
                    }
                    pc = if does != 0 { target } else { pc + 1 };
                    continue;
                }
                Op::Ret | Op::Bar(_) | Op::BarOr(_) => {
                    let votes = self.values(cta, w, step.srcs[0]);
                    let warp = &mut cta.warps[w];
                    warp.move_on(does, pc + 1);
                    warp.ready &= !does;
                    match step.op {
                        Op::Bar(n) => warp.wait(does, n),
                        Op::BarOr(n) => {
                            // A barrier with a vote is none without.
                            warp.wait(does, BARRIERS + n);
                            each(does).for_each(|l| warp.outcomes[l] = Some(step.dsts[0]));
                            warp.votes |= each(does).filter(|&l| votes[l] != 0).fold(0, |mask, l| mask | 1 << l);
                        }
                        _ => {}
                    }
                    mask &= !does;
                    if mask == 0 {
                        return Ok(());
                    }
                }
                Op::Shfl(_) if does != 0 => {
                    cta.warps[w].move_on(mask & !does, pc + 1);
                    return self.shuffle(cta, w, pc, does);
                }
                Op::Ld(..) | Op::St(..) | Op::Atom(..) => self
                    .memory(cta, w, pc, step, does)
                    .map_err(|(refused, lane, at)| self.refused(cta, w, pc, lane, refused, at))?,
                _ if does != 0 => self.compute(cta, w, step, does),
                _ => {}
            }
            pc += 1;
        }
        cta.warps[w].move_on(mask, pc);
        Ok(())
    }

    /// A shuffle waits until all its members are there.
    fn shuffle(&mut self, cta: &mut Cta, w: usize, pc: u32, does: u32) -> Result<(), SimFault> {
        let step = &self.code.steps[pc as usize];
        let Op::Shfl(mode) = step.op else { return Ok(()) };
        let first = does.trailing_zeros() as usize;
        let members = self.values(cta, w, step.srcs[3])[first] as u32;
        let warp = &mut cta.warps[w];
        warp.move_on(does, pc);
        warp.ready &= !does;
        warp.shuffling |= does;
        if members & does != does {
            let why = Why::Invalid("a shuffle of lanes that are no members".into());
            return Err(self.fault(cta, w, pc, first, why));
        }
        if members & !warp.shuffling != 0 || each(members).any(|l| warp.pcs[l] != pc) {
            return Ok(());
        }
        let (values, by) = (self.values(cta, w, step.srcs[0]), self.values(cta, w, step.srcs[1]));
        let taken = std::array::from_fn(|l| values[mode.source(l as u32, by[l] as u32) as usize]);
        let warp = &mut cta.warps[w];
        warp.set(step.dsts[0], members, &taken);
        warp.move_on(members, pc + 1);
        warp.shuffling &= !members;
        warp.ready |= members;
        Ok(())
    }

    fn fault(&self, cta: &Cta, w: usize, pc: u32, lane: usize, why: Why) -> SimFault {
        let thread = 32 * cta.warps[w].number + lane as u32;
        SimFault { at: Some((pc as usize, String::new(), 0)), thread: Some((cta.number, thread)), ..why.into() }
    }

    fn refused(&self, cta: &Cta, w: usize, pc: u32, lane: usize, (refusal, race): Refused, at: u64) -> SimFault {
        let other = |(access, who): (RaceAccess, Who)| Other {
            access,
            at: (who.pc as usize, String::new(), 0),
            thread: (who.cta, who.thread),
        };
        SimFault { other: race.map(other), ..self.fault(cta, w, pc, lane, Why::Access(refusal, at)) }
    }
}
