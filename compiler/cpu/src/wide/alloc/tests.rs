//! Every operand is where the instruction reads it: steps are followed with the values' names in place of the values.

use super::*;
use crate::wide::program::MemOperand;
use crate::wide::unroll_and_jam::turn;
use std::collections::HashMap;

/// What registers and slots hold.
struct Machine<'p> {
    program: &'p NestProgram,
    vectors: [Option<VReg>; 32],
    slots: HashMap<u32, Option<VReg>>,
}

impl Machine<'_> {
    fn home(&self, home: Home) -> Option<VReg> {
        match home {
            Home::Slot(n) => self.slots[&n],
            _ => self.program.regs.iter().position(|r| r.home == Some(home)).map(|n| VReg(n as u32)),
        }
    }

    fn operand(&self, operand: Operand) -> Option<VReg> {
        match operand {
            Operand::Reg(n) => self.vectors[usize::from(n)],
            Operand::Memory(home) => self.home(home),
        }
    }

    /// Follows a section's steps.
    fn follow(&mut self, section: &[Ins], steps: &[AllocatedInst]) {
        let mut fmas = section.iter().filter(|ins| ins.action == Action::Vector(VOp::Fma));
        for step in steps {
            match step {
                AllocatedInst::Fill { to, home, .. } => self.vectors[usize::from(*to)] = self.home(*home),
                AllocatedInst::Spill { from, slot, .. } => {
                    self.slots.insert(*slot, self.vectors[usize::from(*from)]);
                }
                AllocatedInst::At(_) => {}
                AllocatedInst::Move { to, from } => self.vectors[usize::from(*to)] = self.vectors[usize::from(*from)],
                AllocatedInst::Do { ins, dst, args, .. } => {
                    for (arg, expected) in args.iter().zip(&ins.args) {
                        assert_eq!(self.operand(*arg), Some(*expected), "{ins}");
                    }
                    if let Some(dst) = dst {
                        self.vectors[usize::from(*dst)] = ins.dst;
                    }
                }
                AllocatedInst::Fma { form, dst, args } => {
                    let ins = fmas.next().expect("a multiply-add for each step");
                    let replaced = self.vectors[usize::from(*dst)];
                    let [x, y] = args.map(|arg| self.operand(arg));
                    let (mut factors, sum) = match form {
                        Form::F132 => ([replaced, y], x),
                        Form::F213 => ([replaced, x], y),
                        Form::F231 => ([x, y], replaced),
                    };
                    let mut expected = [Some(ins.args[0]), Some(ins.args[1])];
                    factors.sort_unstable();
                    expected.sort_unstable();
                    assert_eq!((factors, sum), (expected, Some(ins.args[2])), "{ins}");
                    self.vectors[usize::from(*dst)] = ins.dst;
                }
            }
        }
    }
}

fn check(program: &NestProgram) {
    let allocated = allocate(program);
    let mut m = Machine { program, vectors: [None; 32], slots: HashMap::new() };
    m.follow(&[], &allocated.once);
    let before = m.vectors;
    // Partials in registers are fetched by the function around the steps.
    let interleaved = program.turn.as_ref().filter(|turn| turn.interleaved > 1);
    for _ in 0..2 {
        m.follow(&program.row, &allocated.row);
        for _ in 0..2 {
            if let (Some(turn), Some(steps)) = (interleaved, &allocated.turn) {
                // There is room for all values that live at once, and what serves several steps displaces none of them.
                let groups = turn.whole.iter().zip(&allocated.whole);
                for (section, steps) in groups.map(|(g, s)| (g.as_slice(), s)).chain([(&turn.body[..], steps)]) {
                    m.follow(section, steps);
                    assert!(!steps.iter().any(|step| matches!(step, AllocatedInst::Spill { .. })), "{program}");
                }
            }
            m.follow(&program.main, &allocated.main);
        }
        m.follow(&program.tail, &allocated.tail);
    }
    // What is known before the first row stays; register 0 is free.
    for step in &allocated.once {
        if let AllocatedInst::Fill { to: n @ 1.., .. } = step {
            assert_eq!(m.vectors[usize::from(*n)], before[usize::from(*n)]);
        }
    }
}

fn ins(op: VOp, dst: Option<VReg>, args: &[VReg], place: Option<MemOperand>) -> Ins {
    let origin = Origin::default();
    Ins { action: Action::Vector(op), dst, args: args.to_vec(), place, imm: None, mask: Mask::All, origin }
}

const HERE: Option<MemOperand> = Some(MemOperand::Pointer { pointer: 0, scale: 4, disp: 0 });

/// A section in the making.
struct Section<'p> {
    program: &'p mut NestProgram,
    out: Vec<Ins>,
}

impl Section<'_> {
    fn push(&mut self, op: VOp, args: &[VReg]) -> VReg {
        let dst = self.program.reg(Class::Vector);
        self.out.push(ins(op, Some(dst), args, if args.is_empty() { HERE } else { None }));
        dst
    }
}

/// A multiply-add of three values that live on, where the step needs nearly all registers for what it reads of outside.
#[test]
fn rows_whose_operands_live_on() {
    for isa in [Isa::Avx2, Isa::Avx512] {
        for stores in [false, true] {
            let mut p = NestProgram::new(isa);
            let mut row = Section { program: &mut p, out: Vec::new() };
            let [a, b, c] = [0; 3].map(|_| row.push(VOp::Load, &[]));
            let d = row.push(VOp::Fma, &[a, b, c]);
            let e = row.push(VOp::AddF, &[a, b]);
            let g = row.push(VOp::AddF, &[e, c]);
            let h = row.push(VOp::MulF, &[d, g]);
            p.row = row.out;
            let outside: Vec<VReg> = (0..31).map(|n| p.homed(Home::Param(n))).collect();
            let mut main = Section { program: &mut p, out: Vec::new() };
            if stores {
                main.out.extend(outside.iter().chain([&h]).map(|v| ins(VOp::Store, None, &[*v], HERE)));
            } else {
                let mut y = main.push(VOp::Load, &[]);
                for v in [h].iter().chain(&outside) {
                    y = main.push(VOp::AddF, &[y, *v]);
                }
                main.out.push(ins(VOp::Store, None, &[y], HERE));
            }
            p.main = main.out;
            check(&p);
        }
    }
}

#[test]
fn random_programs() {
    let mut seed = 7u64;
    let mut next = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    let mut interleaved = [0; 5];
    for _ in 0..800 {
        for isa in [Isa::Avx2, Isa::Avx512] {
            let mut p = NestProgram::new(isa);
            let consts = 1 + next(24);
            let mut known: Vec<VReg> =
                (0..consts as u32).map(|n| p.homed(if n % 3 == 0 { Home::Param(n) } else { Home::Const(n) })).collect();
            let mut sections = Vec::new();
            for most in [next(12), 1 + next(40), next(20)] {
                let mut s = Section { program: &mut p, out: Vec::new() };
                let mut here = known.clone();
                // Half of the programs are chains: what was computed is read soon, or never.
                let (chain, reach) = (next(2) == 0, 2 + next(6));
                for _ in 0..most {
                    let pick = |next: &mut dyn FnMut(usize) -> usize| match chain && next(4) > 0 {
                        true => here[here.len() - 1 - next(reach.min(here.len()))],
                        false => here[next(if chain { known.len() } else { here.len() })],
                    };
                    let [x, y, z] = [0; 3].map(|_| pick(&mut next));
                    let blend = if isa == Isa::Avx2 { VOp::Blend } else { VOp::Fma };
                    let v = match next(5) {
                        0 => s.push(VOp::Load, &[]),
                        1 => s.push(VOp::AddF, &[x, y]),
                        2 => s.push(blend, &[x, y, z]),
                        _ => s.push(VOp::Fma, &[x, y, z]),
                    };
                    here.push(v);
                }
                // Whatever was computed is read at the end, so that it lives until then.
                for v in here.iter().skip(known.len()).filter(|_| next(3) > 0 && !chain) {
                    s.out.push(ins(VOp::Store, None, &[*v], HERE));
                }
                if chain && let Some(v) = here.last() {
                    s.out.push(ins(VOp::Store, None, &[*v], HERE));
                    if next(2) == 0 {
                        let partials = Some(MemOperand::Partials { pointer: 1 });
                        let old = s.program.reg(Class::Vector);
                        s.out.push(ins(VOp::Load, Some(old), &[], partials));
                        let new = s.push(VOp::AddF, &[old, *v]);
                        s.out.push(ins(VOp::Store, None, &[new], partials));
                    }
                }
                let out = s.out;
                if sections.is_empty() {
                    known = here;
                }
                sections.push(out);
            }
            p.tail = sections.pop().unwrap_or_default();
            p.main = sections.pop().unwrap_or_default();
            p.row = sections.pop().unwrap_or_default();
            p.sweep();
            p.turn = turn(&mut p, None);
            interleaved[p.turn.as_ref().map_or(0, |turn| turn.interleaved)] += 1;
            check(&p);
        }
    }
    assert!(interleaved[2..].iter().all(|n| *n > 5), "so many programs with woven steps: {interleaved:?}");
}
