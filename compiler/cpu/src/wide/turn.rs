//! Partials of reductions in registers.
//!
//! A step joins its lanes with the partials of these lanes in memory, and the next steps with others, so that the same
//! ones come up again after a turn of 64 lanes: each value waits for a store and a load. A turn is one body, the steps
//! one after the other, whose partials are in registers from its first lane to the last whole turn of the row.

use super::ops::VOp;
use super::program::{Action, Ins, Mask, Place, Program, VReg};
use ptoc_ir::loops::PARTIALS;
use rustc_hash::FxHashMap;

/// Instructions up to which a step is worth repeating.
const LONGEST: usize = 48;

/// A vector of partials in a register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    pub(crate) reg: VReg,
    pub(crate) pointer: u32,
    /// Bytes from the first partial.
    pub(crate) disp: i32,
}

/// The steps of [`PARTIALS`] lanes. Partials are read and written once a step; they are the only registers that are defined again.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) sums: Vec<Sum>,
    pub(crate) body: Vec<Ins>,
}

/// A turn of a program's steps; `None` if no partials are joined, or the steps are not alike but for their places.
pub(crate) fn turn(program: &mut Program) -> Option<Turn> {
    let step = program.main.clone();
    if step.len() > LONGEST || !step.iter().all(repeats) {
        return None;
    }
    let joins = joins(&step)?;
    let (lanes, bytes) = (program.isa.lanes() as i32, program.isa.bytes());
    let mut out = Turn { sums: Vec::new(), body: Vec::new() };
    for n in 0..PARTIALS as i32 / lanes {
        let mut regs: FxHashMap<VReg, VReg> = FxHashMap::default();
        for join in &joins {
            let reg = program.reg(program.class(join.old));
            regs.extend([(join.old, reg), (join.new, reg)]);
            out.sums.push(Sum { reg, pointer: join.pointer, disp: n * bytes });
        }
        for ins in step.iter().filter(|ins| !matches!(ins.place, Some(Place::Partials { .. }))) {
            let mut ins = ins.clone();
            if let Some(dst) = ins.dst {
                ins.dst = Some(*regs.entry(dst).or_insert_with(|| program.reg(program.class(dst))));
            }
            let known = |reg: &mut VReg| *reg = regs.get(reg).copied().unwrap_or(*reg);
            ins.args.iter_mut().for_each(known);
            if let Mask::Reg(reg) = &mut ins.mask {
                known(reg);
            }
            if let Some(Place::Pointer { scale, disp, .. }) = &mut ins.place {
                *disp = disp.checked_add(n * lanes * i32::from(*scale))?;
            }
            out.body.push(ins);
        }
    }
    Some(out)
}

/// Is an instruction the same some lanes further on, but for its place?
fn repeats(ins: &Ins) -> bool {
    matches!(ins.action, Action::Vector(_)) && !matches!(ins.place, Some(Place::Area { .. }))
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
    let partials = |ins: &Ins| if let Some(Place::Partials { pointer }) = ins.place { Some(pointer) } else { None };
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
