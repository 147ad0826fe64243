//! Register pressure: how many 32-bit registers a thread holds at once, by liveness. What `ptxas` needs is near it: it
//! makes some values again, and keeps some that all threads have alike elsewhere.

use crate::inst::{AddrBase, Inst, Op, Src};
use crate::kernel::{Label, PtxKernel, VReg};
use crate::types::Class;
use crate::verify::{Error, labels};
use cranelift_entity::{EntityRef, SecondaryMap};

/// A set of registers.
#[derive(Clone, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn new(registers: usize) -> Set {
        Set(vec![0; registers.div_ceil(64)])
    }

    /// Adds one; was it new?
    fn insert(&mut self, reg: VReg) -> bool {
        let (word, bit) = (&mut self.0[reg.index() / 64], 1 << (reg.index() % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Takes one out; was it there?
    fn remove(&mut self, reg: VReg) -> bool {
        let (word, bit) = (&mut self.0[reg.index() / 64], 1 << (reg.index() % 64));
        let there = *word & bit != 0;
        *word &= !bit;
        there
    }

    /// Adds all of another; was any of them new?
    fn union(&mut self, other: &Set) -> bool {
        let mut new = false;
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            new |= more & !*word != 0;
            *word |= more;
        }
        new
    }

    fn each(&self) -> impl Iterator<Item = VReg> {
        let bits = |(n, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| VReg::new(64 * n + bit))
        };
        self.0.iter().enumerate().flat_map(bits)
    }
}

/// Instructions that are run one after another.
struct Block {
    /// From, to.
    insts: (usize, usize),
    /// Where it goes on.
    next: Vec<usize>,
}

/// The registers that an instruction reads. A guarded one keeps what its results were.
fn reads(inst: &Inst) -> impl Iterator<Item = VReg> {
    let operand = |src: &Src| match src {
        Src::Reg(reg) => Some(*reg),
        Src::Addr(at) => match at.base {
            AddrBase::Reg(reg) => Some(reg),
            _ => None,
        },
        _ => None,
    };
    let guard = inst.guard.map(|(reg, _)| reg);
    let kept = inst.dsts.iter().copied().filter(move |_| guard.is_some());
    inst.srcs.iter().filter_map(operand).chain(guard).chain(kept)
}

/// 32-bit registers that a value takes; those of predicates are others.
fn weight(class: Class) -> u32 {
    class.bits().div_ceil(32) * u32::from(class != Class::Pred)
}

fn blocks(insts: &[&Inst], places: &SecondaryMap<Label, Option<usize>>) -> Vec<Block> {
    let target = |inst: &Inst| match inst.srcs.first() {
        Some(Src::Label(label)) if inst.op == Op::Bra => places[*label],
        _ => None,
    };
    let mut starts = vec![false; insts.len() + 1];
    starts[0] = true;
    for (n, inst) in insts.iter().enumerate() {
        if let Some(to) = target(inst) {
            starts[to] = true;
        }
        starts[n + 1] |= matches!(inst.op, Op::Bra | Op::Ret);
    }
    let begins: Vec<usize> = (0..insts.len()).filter(|n| starts[*n]).collect();
    let block_at = |n: usize| begins.binary_search(&n).ok();
    let one = |(k, &begin): (usize, &usize)| {
        let end = begins.get(k + 1).copied().unwrap_or(insts.len());
        let last = insts[end - 1];
        let falls = last.guard.is_some() || !matches!(last.op, Op::Bra | Op::Ret);
        let on = falls.then(|| block_at(end)).flatten();
        Block { insts: (begin, end), next: target(last).and_then(block_at).into_iter().chain(on).collect() }
    };
    begins.iter().enumerate().map(one).collect()
}

/// The most 32-bit registers that are live at once in a kernel.
///
/// # Errors
/// A label that is nowhere.
pub fn pressure(kernel: &PtxKernel) -> Result<u32, Error> {
    let places = labels(kernel)?;
    let insts: Vec<&Inst> = kernel.insts().collect();
    if insts.is_empty() {
        return Ok(0);
    }
    let blocks = blocks(&insts, &places);
    let mut live_in = vec![Set::new(kernel.regs.len()); blocks.len()];
    let walk = |block: &Block, live: &mut Set, seen: &mut dyn FnMut(VReg, bool)| {
        for inst in insts[block.insts.0..block.insts.1].iter().rev() {
            for &dst in inst.dsts.iter().filter(|_| inst.guard.is_none()) {
                if live.remove(dst) {
                    seen(dst, false);
                }
            }
            for reg in reads(inst) {
                if live.insert(reg) {
                    seen(reg, true);
                }
            }
        }
    };
    let out = |block: &Block, live_in: &[Set]| {
        let mut live = Set::new(kernel.regs.len());
        block.next.iter().for_each(|next| {
            live.union(&live_in[*next]);
        });
        live
    };
    let mut changed = true;
    while changed {
        changed = false;
        for (n, block) in blocks.iter().enumerate().rev() {
            let mut live = out(block, &live_in);
            walk(block, &mut live, &mut |_, _| {});
            changed |= live_in[n].union(&live);
        }
    }
    let mut most = 0;
    for block in &blocks {
        let mut live = out(block, &live_in);
        let mut now: u32 = live.each().map(|reg| weight(kernel.regs[reg])).sum();
        most = most.max(now);
        walk(block, &mut live, &mut |reg, begins| {
            let weight = weight(kernel.regs[reg]);
            now = if begins { now + weight } else { now - weight };
            most = most.max(now);
        });
    }
    Ok(most)
}
