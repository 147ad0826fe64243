//! Register allocation: machine registers for a program.
//!
//! What is known before the first row, and what the row's code computes, gets registers of its own as far as the step
//! leaves some (the most used first); the rest has a place in memory. Within a section registers are given out in one
//! walk; when they run out, the value whose next use is farthest away leaves, which is the best choice in straight-line
//! code. Values have one definition, so a value that was stored once need not be stored again.

use super::Isa;
use super::ops::VOp;
use super::program::{Action, Class, Home, Ins, Mask, NestProgram, Origin, VReg};

/// Where an operand is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Operand {
    Reg(u8),
    /// In memory: one element for all lanes (AVX-512), or a whole vector, in a slot or in the pool (AVX2).
    Memory(Home),
}

/// The forms of a multiply-add: which operand the result replaces, and which may be in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// `a = a * mem(b) + c`
    F132,
    /// `a = b * a + mem(c)`
    F213,
    /// `c = a * mem(b) + c`
    F231,
}

/// An instruction with machine registers.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum AllocatedInst {
    Do {
        ins: Ins,
        dst: Option<u8>,
        args: Vec<Operand>,
        mask: Option<u8>,
    },
    /// `dst` is the operand that the form replaces; the others in the form's order.
    Fma {
        form: Form,
        dst: u8,
        args: [Operand; 2],
    },
    Fill {
        to: u8,
        class: Class,
        home: Home,
    },
    Spill {
        from: u8,
        class: Class,
        slot: u32,
    },
    Move {
        to: u8,
        from: u8,
    },
    /// No instruction: what follows stems from this statement.
    At(Origin),
}

/// A program with machine registers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allocated {
    /// Before the first row.
    pub(crate) once: Vec<AllocatedInst>,
    pub(crate) row: Vec<AllocatedInst>,
    /// None also if it has partials in registers, and too few are left for them.
    pub(crate) turn: Option<Vec<AllocatedInst>>,
    /// Of the turn, behind its guards.
    pub(crate) whole: Vec<Vec<AllocatedInst>>,
    /// The registers of the partials, in their order.
    pub(crate) sums: Vec<u8>,
    pub(crate) main: Vec<AllocatedInst>,
    pub(crate) tail: Vec<AllocatedInst>,
    /// Of a row that ends with its reduction: the fill, and the ends by registers and by memory.
    pub(crate) ending: Option<[Vec<AllocatedInst>; 3]>,
    /// Vector slots of the frame.
    pub(crate) slots: u32,
}

/// Vector registers that a section keeps for values that it fetches.
const SPARE: usize = 4;
/// The same with AVX2, which has half as many.
pub(super) const SPARE_AVX2: usize = 2;
/// What any section needs: three operands of a multiply-add that live on, and its result.
const LEAST: usize = 4;

pub(crate) fn allocate(program: &NestProgram) -> Allocated {
    let mut pins: Vec<Option<u8>> = vec![None; program.regs.len()];
    let mut homes: Vec<Option<Home>> = program.regs.iter().map(|r| r.home).collect();
    let step = if program.main.is_empty() { &program.tail } else { &program.main };
    let last = program.isa.registers();
    // The most used of what comes from outside the step and the turn, while registers last.
    let mut uses = vec![0usize; program.regs.len()];
    let interleaved = program.turn.as_ref().filter(|turn| turn.interleaved > 1).map_or(&[][..], |turn| &turn.body);
    step.iter().chain(interleaved).flat_map(Ins::reads).for_each(|reg| uses[reg.0 as usize] += 1);
    let mut local = vec![false; program.regs.len()];
    let whole = || program.turn.iter().flat_map(|turn| &turn.whole);
    for ins in program.main.iter().chain(&program.tail).chain(interleaved).chain(whole().flatten()) {
        ins.dst.iter().for_each(|dst| local[dst.0 as usize] = true);
    }
    let mut outside: Vec<usize> = (0..program.regs.len())
        .filter(|&n| uses[n] > 0 && !local[n] && program.regs[n].class == Class::Vector)
        .collect();
    outside.sort_by_key(|&n| (std::cmp::Reverse(uses[n]), n));
    let spare = if program.isa == Isa::Avx512 { SPARE } else { SPARE_AVX2 };
    let sections = [step.as_slice(), interleaved].into_iter().chain(whole().map(Vec::as_slice));
    let live = sections.map(|section| pressure(program, section)).max().unwrap_or(0);
    let needed = (live + spare).max(LEAST);
    let mut room = usize::from(last).saturating_sub(needed);
    let mut next = last;
    let turn = program.turn.as_ref().filter(|turn| turn.sums.len() <= room);
    for sum in turn.iter().flat_map(|turn| &turn.sums) {
        next -= 1;
        room -= 1;
        pins[sum.reg.0 as usize] = Some(next);
    }
    let others = outside.split_off(room.min(outside.len()));
    for n in outside {
        next -= 1;
        pins[n] = Some(next);
    }
    let mut slots = 0;
    let mut once = Vec::new();
    if program.isa == Isa::Avx2 {
        // Its instructions take whole vectors from memory, but no single elements for all lanes.
        for n in others {
            if let Some(home @ (Home::Const(_) | Home::ConstQ(_) | Home::Param(_) | Home::ParamQ(_))) = homes[n] {
                once.push(AllocatedInst::Fill { to: 0, class: Class::Vector, home });
                once.push(AllocatedInst::Spill { from: 0, class: Class::Vector, slot: slots });
                homes[n] = Some(Home::Slot(slots));
                slots += 1;
            }
        }
    }
    // The row's other values live in slots, if anything else reads them.
    let mut wanted = vec![false; program.regs.len()];
    let behind = turn.iter().flat_map(|turn| turn.whole.iter().flatten().chain(&turn.body));
    for reg in program.main.iter().chain(&program.tail).chain(behind).flat_map(Ins::reads) {
        wanted[reg.0 as usize] = true;
    }
    for ins in &program.row {
        if let Some(n) = ins.dst.map(|dst| dst.0 as usize).filter(|&n| pins[n].is_none() && wanted[n]) {
            homes[n] = Some(Home::Slot(slots));
            slots += 1;
        }
    }
    let sums = turn.iter().flat_map(|turn| &turn.sums).filter_map(|sum| pins[sum.reg.0 as usize]).collect();
    let mut out = Allocated { once, sums, ..Allocated::default() };
    for (n, pin) in pins.iter().enumerate() {
        if let (Some(to), Some(home)) = (*pin, homes[n]) {
            out.once.push(AllocatedInst::Fill { to, class: Class::Vector, home });
        }
    }
    let first_slot = slots;
    let mut walk = |section: &[Ins], is_row: bool, interleaved: usize| {
        let mut walk = SectionAllocator {
            isa: program.isa,
            program,
            pins: &pins,
            homes: homes.clone(),
            free: next,
            holds: [[None; 32]; 2],
            place: vec![None; program.regs.len()],
            uses: uses_of(section, program.regs.len()),
            slots,
            first_slot,
            out: Vec::with_capacity(section.len()),
            origin: Origin::default(),
            is_row,
            interleaved,
        };
        section.iter().enumerate().for_each(|(at, ins)| walk.instruction(at, ins));
        slots = walk.slots.max(slots);
        walk.out
    };
    out.row = walk(&program.row, true, 1);
    out.turn = turn.map(|turn| walk(&turn.body, false, turn.interleaved));
    out.whole = turn
        .iter()
        .flat_map(|turn| turn.whole.iter().map(|group| (group, turn.interleaved)))
        .map(|(group, interleaved)| walk(group, false, interleaved))
        .collect();
    out.main = walk(&program.main, false, 1);
    out.tail = walk(&program.tail, false, 1);
    out.ending = program.ending.as_ref().map(|e| [&e.fill, &e.of_sums, &e.of_memory].map(|part| walk(part, false, 1)));
    out.slots = slots;
    out
}

/// The most vectors of a section that live at once, of those that it defines.
pub(super) fn pressure(program: &NestProgram, section: &[Ins]) -> usize {
    let mut local = vec![false; program.regs.len()];
    section.iter().flat_map(|ins| ins.dst).for_each(|dst| local[dst.0 as usize] = true);
    let mut live = vec![false; program.regs.len()];
    let (mut now, mut most) = (0usize, 0);
    for ins in section.iter().rev() {
        if let Some(dst) = ins.dst.filter(|dst| live[dst.0 as usize]) {
            live[dst.0 as usize] = false;
            now -= 1;
        }
        for reg in ins.reads() {
            let n = reg.0 as usize;
            if local[n] && !live[n] && program.class(reg) == Class::Vector {
                live[n] = true;
                now += 1;
            }
        }
        most = most.max(now);
    }
    most
}

/// Where each register is read, last first.
fn uses_of(section: &[Ins], regs: usize) -> Vec<Vec<usize>> {
    let mut uses = vec![Vec::new(); regs];
    for (at, ins) in section.iter().enumerate().rev() {
        for reg in ins.reads() {
            if uses[reg.0 as usize].last() != Some(&at) {
                uses[reg.0 as usize].push(at);
            }
        }
    }
    uses
}

/// One section.
struct SectionAllocator<'a> {
    isa: Isa,
    program: &'a NestProgram,
    pins: &'a [Option<u8>],
    homes: Vec<Option<Home>>,
    /// Vector registers below are free to use.
    free: u8,
    /// What the registers of both classes hold.
    holds: [[Option<VReg>; 32]; 2],
    /// Where values are.
    place: Vec<Option<u8>>,
    /// Uses still to come, the next one last.
    uses: Vec<Vec<usize>>,
    slots: u32,
    first_slot: u32,
    out: Vec<AllocatedInst>,
    /// Of the last step.
    origin: Origin,
    is_row: bool,
    /// How many steps are woven: so many neighbours are the same instruction, each of another step.
    interleaved: usize,
}

impl SectionAllocator<'_> {
    fn registers(&self, class: Class) -> std::ops::Range<usize> {
        match class {
            Class::Vector => 0..usize::from(self.free),
            // k0 is no mask; k6 and k7 are the tail's.
            Class::Mask => 1..6,
        }
    }

    fn next_use(&self, reg: VReg) -> Option<usize> {
        self.uses[reg.0 as usize].last().copied()
    }

    /// A register that none of `kept` is in; its value leaves.
    fn take(&mut self, class: Class, kept: &[VReg]) -> u8 {
        let file = class as usize;
        if let Some(n) = self.registers(class).find(|&n| self.holds[file][n].is_none()) {
            return n as u8;
        }
        let farthest = self
            .farthest(class, kept)
            .unwrap_or_else(|| unreachable!("no instruction keeps as many registers as a section has"));
        if let Some(reg) = self.holds[file][farthest].take() {
            self.place[reg.0 as usize] = None;
            if self.homes[reg.0 as usize].is_none() {
                let slot = self.slots.max(self.first_slot);
                self.slots = slot + 1;
                self.homes[reg.0 as usize] = Some(Home::Slot(slot));
                self.out.push(AllocatedInst::Spill { from: farthest as u8, class, slot });
            }
        }
        farthest as u8
    }

    /// Of the registers that are taken, but not by `kept`, the one whose value is needed last. In woven steps what need
    /// not be stored goes first: it was fetched to serve several, and each of them can read it in memory.
    fn farthest(&self, class: Class, kept: &[VReg]) -> Option<usize> {
        let held = |n: usize| self.holds[class as usize][n].filter(|reg| !kept.contains(reg));
        let last = self.registers(class).filter_map(|n| Some((n, held(n)?))).max_by_key(|&(_, reg)| {
            let homed = self.homes[reg.0 as usize].is_some();
            // Of two equal ones rather one that need not be stored.
            (homed && self.interleaved > 1, self.next_use(reg).unwrap_or(usize::MAX), homed)
        });
        last.map(|(n, _)| n)
    }

    /// Whether a value is outside registers worth one. In woven steps it is if their other copies read it right behind,
    /// and a register is free, or holds what is needed later and need not be stored.
    fn serves_others(&self, reg: VReg, kept: &[VReg]) -> bool {
        let [.., later, now] = self.uses[reg.0 as usize][..] else { return false };
        if later - now >= self.interleaved {
            return false;
        }
        self.registers(Class::Vector).any(|n| {
            self.holds[Class::Vector as usize][n].is_none_or(|held| {
                let later = self.next_use(held).is_none_or(|next| next > later);
                later && self.homes[held.0 as usize].is_some() && !kept.contains(&held)
            })
        })
    }

    fn put(&mut self, reg: VReg, class: Class, at: u8) {
        self.holds[class as usize][usize::from(at)] = Some(reg);
        self.place[reg.0 as usize] = Some(at);
    }

    /// Where a value is, if it is in a register.
    fn found(&self, reg: VReg) -> Option<u8> {
        self.pins[reg.0 as usize].or(self.place[reg.0 as usize])
    }

    /// A value in a register.
    fn fetch(&mut self, reg: VReg, kept: &[VReg]) -> u8 {
        if let Some(at) = self.found(reg) {
            return at;
        }
        let class = self.program.class(reg);
        let to = self.take(class, kept);
        if let Some(home) = self.homes[reg.0 as usize] {
            self.out.push(AllocatedInst::Fill { to, class, home });
        }
        self.put(reg, class, to);
        to
    }

    /// The home of an operand that may be read from memory.
    fn memory(&self, op: VOp, reg: VReg, kept: &[VReg]) -> Option<Home> {
        if self.found(reg).is_some() || self.serves_others(reg, kept) {
            return None;
        }
        let home = self.homes[reg.0 as usize]?;
        if self.isa == Isa::Avx2 {
            let vector = matches!(home, Home::Slot(_) | Home::Table(_));
            return (vector && op.info().reads_vector()).then_some(home);
        }
        let size = match home {
            Home::Const(_) | Home::Param(_) => 4,
            Home::ConstQ(_) | Home::ParamQ(_) => 8,
            _ => return None,
        };
        (op.info().broadcast == size).then_some(home)
    }

    fn instruction(&mut self, at: usize, ins: &Ins) {
        if self.origin.0 != ins.origin.0 {
            self.origin = ins.origin;
            self.out.push(AllocatedInst::At(ins.origin));
        }
        let kept: Vec<VReg> = ins.reads().collect();
        let op = if let Action::Vector(op) = ins.action { Some(op) } else { None };
        if op == Some(VOp::Fma) {
            return self.fma(at, ins, &kept);
        }
        let mut args = Vec::with_capacity(ins.args.len());
        for (n, &reg) in ins.args.iter().enumerate() {
            let last = n + 1 == ins.args.len() && !ins.args[..n].contains(&reg);
            let memory = op.filter(|_| last && ins.place.is_none()).and_then(|op| self.memory(op, reg, &kept));
            args.push(match memory {
                Some(home) => Operand::Memory(home),
                None => Operand::Reg(self.fetch(reg, &kept)),
            });
        }
        let mask = match ins.mask {
            Mask::Reg(reg) => Some(self.fetch(reg, &kept)),
            _ => None,
        };
        self.consume(ins, at);
        let dst = ins.dst.map(|dst| self.target(dst));
        self.out.push(AllocatedInst::Do { ins: ins.clone(), dst, args, mask });
        self.settle(ins.dst, dst);
    }

    /// After the operands were read: one use of each is over.
    fn consume(&mut self, ins: &Ins, at: usize) {
        let mut seen: Vec<VReg> = Vec::new();
        for reg in ins.reads() {
            if !seen.contains(&reg) {
                debug_assert_eq!(self.next_use(reg), Some(at));
                self.uses[reg.0 as usize].pop();
                seen.push(reg);
            }
        }
        for reg in seen {
            let n = reg.0 as usize;
            if self.uses[n].is_empty()
                && let Some(at) = self.place[n].take()
            {
                self.holds[self.program.class(reg) as usize][usize::from(at)] = None;
            }
        }
    }

    /// The register of a result.
    fn target(&mut self, dst: VReg) -> u8 {
        if let Some(pin) = self.pins[dst.0 as usize] {
            return pin;
        }
        let class = self.program.class(dst);
        let to = self.take(class, &[]);
        self.put(dst, class, to);
        to
    }

    /// After a result was computed: the row's values go to their slots.
    fn settle(&mut self, dst: Option<VReg>, at: Option<u8>) {
        let (Some(dst), Some(at)) = (dst, at) else { return };
        if let (true, Some(Home::Slot(slot))) = (self.is_row, self.homes[dst.0 as usize]) {
            self.out.push(AllocatedInst::Spill { from: at, class: self.program.class(dst), slot });
        }
        if self.uses[dst.0 as usize].is_empty()
            && let Some(at) = self.place[dst.0 as usize].take()
        {
            self.holds[self.program.class(dst) as usize][usize::from(at)] = None;
        }
    }

    fn fma(&mut self, at: usize, ins: &Ins, kept: &[VReg]) {
        let [a, b, c] = [ins.args[0], ins.args[1], ins.args[2]];
        // At most one operand comes from memory; factors commute.
        let (mut from_memory, mut home) = (None, None);
        for reg in [c, b, a] {
            let once = kept.iter().filter(|r| **r == reg).count() == 1;
            if let Some(found) = self.memory(VOp::Fma, reg, kept).filter(|_| once) {
                (from_memory, home) = (Some(reg), Some(found));
                break;
            }
        }
        let (a, b) = if from_memory == Some(a) { (b, a) } else { (a, b) };
        let operand = |walk: &mut Self, reg: VReg| match home.filter(|_| from_memory == Some(reg)) {
            Some(home) => Operand::Memory(home),
            None => Operand::Reg(walk.fetch(reg, kept)),
        };
        let (x, y, z) = (operand(self, a), operand(self, b), operand(self, c));
        // A register whose value ends here, and is no other operand.
        let ends = |walk: &Self, reg: VReg| {
            walk.pins[reg.0 as usize].is_none()
                && walk.uses[reg.0 as usize].len() == 1
                && kept.iter().filter(|r| **r == reg).count() == 1
                && from_memory != Some(reg)
        };
        let (end_a, end_b, end_c) = (ends(self, a), ends(self, b), ends(self, c));
        let pinned = ins.dst.and_then(|dst| self.pins[dst.0 as usize]);
        let in_memory = from_memory.is_some();
        let c_memory = from_memory == Some(c);
        let (form, replaced, args) = if end_c {
            (Form::F231, z, [x, y])
        } else if end_a && (c_memory || !in_memory) {
            (Form::F213, x, [y, z])
        } else if end_b && (c_memory || !in_memory) {
            (Form::F213, y, [x, z])
        } else if end_a && in_memory {
            (Form::F132, x, [z, y])
        } else if c_memory {
            (Form::F213, x, [y, z])
        } else {
            (Form::F231, z, [x, y])
        };
        let ends_here = end_c || end_a || (end_b && (c_memory || !in_memory));
        let Operand::Reg(replaced) = replaced else { return };
        let dst = match pinned {
            None if ends_here => {
                self.consume(ins, at);
                if let Some(dst) = ins.dst {
                    self.put(dst, Class::Vector, replaced);
                }
                replaced
            }
            _ => {
                // The result must not take the place of another operand.
                let dst = match (pinned, ins.dst) {
                    (Some(pin), _) => pin,
                    (None, Some(dst)) => {
                        let to = self.take(Class::Vector, kept);
                        self.put(dst, Class::Vector, to);
                        to
                    }
                    (None, None) => return,
                };
                self.consume(ins, at);
                self.out.push(AllocatedInst::Move { to: dst, from: replaced });
                dst
            }
        };
        self.out.push(AllocatedInst::Fma { form, dst, args });
        self.settle(ins.dst, Some(dst));
    }
}

#[cfg(test)]
mod tests;
