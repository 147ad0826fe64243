//! A warp: lanes with registers and program counters, and which of them go on together.

use super::code::Operand;
use super::memory::Refused;
use super::races::other;
use super::waits::Flow;
use super::wgmma::Products;
use super::{Cta, Random, SimFault, Why, World};
use crate::inst::Op;
use crate::sm90::Sm90;

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
    /// Lanes that wait for something else, and for what.
    parked: u32,
    parks: [Park; 32],
    /// The instruction at which a lane waits.
    stops: [u32; 32],
    pub(super) products: Products,
    /// It is among those that are drawn from.
    pub(super) queued: bool,
}

/// What a lane waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Park {
    /// All threads of the CTA.
    Cta,
    /// Lanes of its warp.
    Warp,
    /// The phase of a parity of an `mbarrier`.
    Mbarrier(u64, u64),
    /// A barrier by number.
    Named(u64),
    /// All threads of the cluster.
    Cluster,
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
            parked: 0,
            parks: [Park::Cta; 32],
            stops: [0; 32],
            products: Products::default(),
            queued: true,
        }
    }

    /// The lanes that can go on.
    pub(super) fn ready(&self) -> u32 {
        self.ready
    }

    /// How many lanes wait at a barrier or have ended.
    pub(super) fn arrived(&self) -> u32 {
        32 - (self.ready | self.shuffling | self.parked).count_ones()
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

    /// All its lanes have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ready | self.shuffling | self.parked | self.at_barrier == 0
    }

    /// Lanes that wait: where, and for what.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (usize, u32, Park)> {
        each(self.at_barrier | self.shuffling | self.parked).map(|lane| {
            let park = match 1 << lane {
                bit if bit & self.at_barrier != 0 => Park::Cta,
                bit if bit & self.shuffling != 0 => Park::Warp,
                _ => self.parks[lane],
            };
            (lane, self.stops[lane], park)
        })
    }

    /// A lane waits from now on.
    pub(super) fn park(&mut self, lane: usize, pc: u32, park: Park) {
        self.ready &= !(1 << lane);
        self.parked |= 1 << lane;
        (self.parks[lane], self.stops[lane]) = (park, pc);
    }

    /// Lanes go on that wait for this; whether there are any.
    pub(super) fn unpark(&mut self, so: impl Fn(Park) -> bool) -> bool {
        let lanes = each(self.parked).filter(|lane| so(self.parks[*lane])).fold(0, |mask, lane| mask | 1 << lane);
        self.parked &= !lanes;
        self.ready |= lanes;
        lanes != 0
    }

    /// Where a lane goes on that is not running.
    pub(super) fn at(&self, lane: usize) -> u32 {
        self.pcs[lane]
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

    pub(super) fn move_on(&mut self, mask: u32, pc: u32) {
        each(mask).for_each(|l| self.pcs[l] = pc);
    }

    /// Lanes wait at a barrier.
    fn wait(&mut self, lanes: u32, barrier: u32, pc: u32) {
        self.at_barrier |= lanes;
        each(lanes).for_each(|l| (self.barriers[l], self.stops[l]) = (barrier, pc));
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
            if self.code.multiplies && does != 0 && !matches!(step.op, Op::Sm90(Sm90::Wgmma(_))) {
                let touched = cta.warps[w].products.touch(step.reads(), step.writes());
                let lane = does.trailing_zeros() as usize;
                touched.map_err(|message| self.fault(cta, w, pc, lane, Why::Undefined(message.into())))?;
            }
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
                    if step.op == Op::Ret {
                        self.leave(cta, does.count_ones());
                    }
                    let warp = &mut cta.warps[w];
                    match step.op {
                        Op::Bar(n) => warp.wait(does, n, pc),
                        Op::BarOr(n) => {
                            // A barrier with a vote is none without.
                            warp.wait(does, BARRIERS + n, pc);
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
                Op::Sm90(op) => match self.sm90(cta, w, pc, op, (does, mask), random)? {
                    Flow::Next => {}
                    Flow::Left => return Ok(()),
                },
                Op::Ld(..) | Op::St(..) | Op::Atom(..) => {
                    self.memory(cta, w, pc, step, does).map_err(|(wrong, lane)| self.wrong(cta, w, pc, lane, wrong))?
                }
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
        if !self.gather(cta, w, pc, does, members)? {
            return Ok(());
        }
        let (values, by) = (self.values(cta, w, step.srcs[0]), self.values(cta, w, step.srcs[1]));
        let taken = std::array::from_fn(|l| values[mode.source(l as u32, by[l] as u32) as usize]);
        cta.warps[w].set(step.dsts[0], members, &taken);
        Ok(())
    }

    /// Lanes wait for the others of a mask; whether all are there, and go on.
    pub(super) fn gather(&self, cta: &mut Cta, w: usize, pc: u32, does: u32, members: u32) -> Result<bool, SimFault> {
        let warp = &mut cta.warps[w];
        warp.move_on(does, pc);
        warp.ready &= !does;
        warp.shuffling |= does;
        each(does).for_each(|lane| warp.stops[lane] = pc);
        if members & does != does {
            let why = Why::Invalid("lanes that are no members".into());
            return Err(self.fault(cta, w, pc, does.trailing_zeros() as usize, why));
        }
        if members & !warp.shuffling != 0 || each(members).any(|l| warp.pcs[l] != pc) {
            return Ok(false);
        }
        warp.move_on(members, pc + 1);
        warp.shuffling &= !members;
        warp.ready |= members;
        Ok(true)
    }

    pub(super) fn fault(&self, cta: &Cta, w: usize, pc: u32, lane: usize, why: Why) -> SimFault {
        let thread = 32 * cta.warps[w].number + lane as u32;
        SimFault { at: Some((pc as usize, String::new(), 0)), thread: Some((cta.number, thread)), ..why.into() }
    }

    pub(super) fn refused(
        &self,
        cta: &Cta,
        w: usize,
        pc: u32,
        lane: usize,
        (refusal, race): Refused,
        at: u64,
    ) -> SimFault {
        SimFault { other: race.map(other), ..self.fault(cta, w, pc, lane, Why::Access(refusal, at)) }
    }
}
