//! Unroll-and-jam: several steps as one body.
//!
//! **Partials of reductions in registers.** A step joins its lanes with the partials of these lanes in memory, and the
//! next steps with others, so that the same ones come up again after 64 lanes: each value waits for a store and a load.
//! The steps of 64 lanes, one after the other, keep the partials in registers from their first lane to the last whole
//! turn of the row.
//!
//! **Woven steps.** A long step is a chain, each instruction waiting for the one before. Zen 3 has 64 places for
//! instructions that wait, which two exponentials fill; so it rarely finds work for its four pipes. The same
//! instruction for several steps, then the next one for all of them, leaves fewer waiting, and a constant that is
//! fetched serves them all. Lanes are independent, so any order of steps is right. Exponentials are short there
//! ([`powers`]), behind guards that lead to the same steps in full.

use super::Isa;
use super::alloc::{SPARE_AVX2, pressure};
use super::ops::VOp;
use super::powers;
use super::program::{Action, Ins, Mask, MemOperand, NestProgram, VReg};
use ptoc_ir::loops::PARTIALS;
use rustc_hash::FxHashMap;

/// Instructions up to which a step is worth repeating.
const LONGEST: usize = 48;

/// Instructions that are a chain worth weaving: from these on, up to those.
const WOVEN: std::ops::RangeInclusive<usize> = 16..=160;

/// How many steps are woven, as registers permit.
const WIDTHS: [usize; 3] = [4, 3, 2];

/// A vector of partials in a register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    pub(crate) reg: VReg,
    pub(crate) pointer: u32,
    /// Bytes from the first partial.
    pub(crate) disp: i32,
}

/// Several steps. Partials in registers are read and written once a step; they are the only registers that are defined
/// again.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) lanes: i64,
    /// How many steps are woven; 1 if each stands behind the one before.
    pub(crate) interleaved: usize,
    pub(crate) sums: Vec<Sum>,
    pub(crate) body: Vec<Ins>,
    /// Where the body has guards: the same steps in full, as groups of woven ones, for a turn to go on with behind a
    /// guard.
    pub(crate) whole: Vec<Vec<Ins>>,
}

/// A turn of a program's steps for rows of `count` lanes, if that is known; `None` if no more than a step is gained, or
/// the steps are not alike but for their places.
pub(crate) fn turn(program: &mut NestProgram, count: Option<i64>) -> Option<Turn> {
    if !program.main.iter().all(repeats) {
        return None;
    }
    let most = count.unwrap_or(i64::MAX);
    interleaved(program, most).or_else(|| summed(program).filter(|turn| turn.lanes <= most))
}

/// Whether an instruction is the same some lanes further on, but for its place.
fn repeats(ins: &Ins) -> bool {
    matches!(ins.action, Action::Vector(_)) && !matches!(ins.place, Some(MemOperand::Area { .. }))
}

/// The pointer of an instruction's place, if that is one of a row of partials.
fn partials(ins: &Ins) -> Option<u32> {
    if let Some(MemOperand::Partials { pointer }) = ins.place { Some(pointer) } else { None }
}

/// Woven steps of at most so many lanes, with their partials in memory: that is faster than having them in registers
/// and the steps not woven. With AVX-512 nothing is gained (spec/bench.md).
fn interleaved(program: &mut NestProgram, most: i64) -> Option<Turn> {
    if program.isa != Isa::Avx2 || !WOVEN.contains(&program.main.len()) {
        return None;
    }
    let joins = program.main.iter().any(|ins| partials(ins).is_some());
    let lanes = program.isa.lanes();
    let short = powers::short(program);
    let main = program.main.clone();
    let known = program.regs.len();
    WIDTHS.into_iter().find_map(|interleaved| {
        program.regs.truncate(known);
        // As many steps as there are different places of partials.
        let steps = if joins { PARTIALS / lanes as usize } else { interleaved };
        if !steps.is_multiple_of(interleaved) || steps as i64 * lanes > most {
            return None;
        }
        let (mut body, mut whole) = (Vec::new(), Vec::new());
        for first in (0..steps).step_by(interleaved) {
            let copies = |program: &mut NestProgram, step: &[Ins]| -> Option<Vec<Vec<Ins>>> {
                (first..first + interleaved).map(|n| copy(program, step, n as i32, FxHashMap::default())).collect()
            };
            match &short {
                Some(short) => {
                    let copies = [copies(program, &short.step)?, copies(program, &main)?];
                    let mut group = weave(&copies[0]);
                    let behind = (short.last + 1) * interleaved;
                    group.splice(behind..behind, short.guard(program, &copies[0], whole.len()));
                    body.append(&mut group);
                    whole.push(weave(&copies[1]));
                }
                None => body.append(&mut weave(&copies(program, &main)?)),
            }
        }
        let most = whole.iter().map(|group| pressure(program, group)).max().unwrap_or(0).max(pressure(program, &body));
        let fits = most + SPARE_AVX2 <= usize::from(program.isa.registers());
        fits.then_some(Turn { lanes: steps as i64 * lanes, interleaved, sums: Vec::new(), body, whole })
    })
}

/// Copies of a step by turns: the first instruction of all of them, then the second.
fn weave(copies: &[Vec<Ins>]) -> Vec<Ins> {
    let step = copies.first().map_or(0, Vec::len);
    (0..step).flat_map(|at| copies.iter().map(move |copy| copy[at].clone())).collect()
}

/// Steps one after the other, with their partials in registers; `None` if they join none.
fn summed(program: &mut NestProgram) -> Option<Turn> {
    if program.main.len() > LONGEST {
        return None;
    }
    let joins = joins(&program.main)?;
    let bytes = program.isa.bytes();
    let mut out =
        Turn { lanes: PARTIALS as i64, interleaved: 1, sums: Vec::new(), body: Vec::new(), whole: Vec::new() };
    for n in 0..PARTIALS as i32 / program.isa.lanes() as i32 {
        let mut regs: FxHashMap<VReg, VReg> = FxHashMap::default();
        for join in &joins {
            let reg = program.reg(program.class(join.old));
            regs.extend([(join.old, reg), (join.new, reg)]);
            out.sums.push(Sum { reg, pointer: join.pointer, disp: n * bytes });
        }
        let main = std::mem::take(&mut program.main);
        let step = copy(program, &main, n, regs);
        program.main = main;
        out.body
            .extend(step?.into_iter().zip(&program.main).filter(|(_, i)| partials(i).is_none()).map(|(ins, _)| ins));
    }
    Some(out)
}

/// The n-th of such steps in a turn: its own registers, but for those given, and its own places.
fn copy(program: &mut NestProgram, step: &[Ins], n: i32, mut regs: FxHashMap<VReg, VReg>) -> Option<Vec<Ins>> {
    let (lanes, bytes) = (program.isa.lanes() as i32, program.isa.bytes());
    let mut out = step.to_vec();
    for ins in &mut out {
        if let Some(dst) = &mut ins.dst {
            *dst = *regs.entry(*dst).or_insert_with(|| program.reg(program.class(*dst)));
        }
        let known = |reg: &mut VReg| *reg = regs.get(reg).copied().unwrap_or(*reg);
        ins.args.iter_mut().for_each(known);
        if let Mask::Reg(reg) = &mut ins.mask {
            known(reg);
        }
        match &mut ins.place {
            Some(MemOperand::Pointer { scale, disp, .. }) => *disp = disp.checked_add(n * lanes * i32::from(*scale))?,
            Some(MemOperand::Words { disp, .. }) => *disp = disp.checked_add(n * lanes / 2)?,
            Some(MemOperand::Partials { pointer }) => {
                ins.place = Some(MemOperand::Pointer { pointer: *pointer, scale: 0, disp: n * bytes });
            }
            _ => {}
        }
    }
    Some(out)
}

/// A step's partials, as they are read and as they are written.
struct Join {
    pointer: u32,
    old: VReg,
    new: VReg,
}

/// The joins of a step, if there are any and the partials they write are computed by the instruction before, which is
/// the last to read those there were: so both may be in one register.
fn joins(step: &[Ins]) -> Option<Vec<Join>> {
    let mut joins: Vec<Join> = Vec::new();
    for (at, ins) in step.iter().enumerate() {
        let (Some(pointer), None) = (partials(ins), ins.dst) else { continue };
        let new = *ins.args.first()?;
        step[..at].last().filter(|i| i.dst == Some(new) && i.action != Action::Vector(VOp::Fma))?;
        let old = step[..at].iter().rfind(|i| i.dst.is_some() && partials(i) == Some(pointer))?.dst?;
        let later = step[at..].iter().any(|i| i.reads().any(|reg| reg == old));
        if joins.iter().any(|j| j.pointer == pointer) || later {
            return None;
        }
        joins.push(Join { pointer, old, new });
    }
    (!joins.is_empty()).then_some(joins)
}
