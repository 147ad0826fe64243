//! What is asked of a kernel before it is printed or executed.
//!
//! Operands of the types that instructions have; symbols, parameters and labels that are there; and on every way to an
//! instruction a definition of what it reads. A definition under a guard is none for who reads without it, unless the
//! register had a value before.

use crate::inst::{AddrBase, Inst, Op, OperandClass, Src};
use crate::kernel::{BodyItem, Label, PtxKernel, VReg};
use crate::print::instruction;
use crate::sm90::Sm90;
use crate::types::{Class, Space, Type};
use cranelift_entity::{EntityRef, SecondaryMap};
use std::fmt;

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The number of the instruction; `None` is about the kernel.
    pub inst: Option<usize>,
    /// In words.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inst {
            Some(n) => write!(f, "instruction {n}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

/// Checks a kernel.
///
/// # Errors
/// The first mistake.
pub fn verify(kernel: &PtxKernel) -> Result<(), Error> {
    let whole = |message: String| Err(Error { inst: None, message });
    if kernel.threads == 0 || kernel.threads > 1024 || !kernel.threads.is_multiple_of(32) {
        return whole(format!("{} threads: whole warps, at most 1024", kernel.threads));
    }
    if kernel.cluster.is_some_and(|n| !(1..=16).contains(&n)) {
        return whole("a cluster has 1 to 16 CTAs".into());
    }
    for symbol in &kernel.symbols {
        let fits = match symbol.space {
            Space::Shared => true,
            Space::Local => symbol.size.is_some(),
            Space::Global | Space::Param => false,
        };
        if !fits || !symbol.align.is_power_of_two() {
            return whole(format!("symbol `{}`", symbol.name));
        }
    }
    if kernel.symbols.iter().filter(|s| s.size.is_none()).count() > 1 {
        return whole("two symbols of shared memory whose size the launch says".into());
    }
    if kernel.params.iter().any(|p| p.size() < 4) {
        return whole("a parameter of less than 32 bits".into());
    }
    moves_registers(kernel).map_err(|message| Error { inst: None, message })?;
    let places = labels(kernel)?;
    let mut n = 0;
    for item in &kernel.body {
        if let BodyItem::Inst(inst) = item {
            let failed =
                |message| Error { inst: Some(n), message: format!("`{}`: {message}", instruction(kernel, inst)) };
            check(kernel, inst, &places).map_err(failed)?;
            n += 1;
        }
    }
    if !matches!(kernel.insts().last(), Some(Inst { op: Op::Ret | Op::Bra, guard: None, .. })) {
        return whole("the last instruction does not end the kernel".into());
    }
    definitions(kernel, &places)
}

/// Registers of a multiprocessor.
const REGISTERS: u32 = 65_536;
/// Threads of a warp-group, of which all have as many registers.
const WARP_GROUP: u32 = 128;

/// What `ptxas` asks of an equal share for a product, beside its sums, and for a left operand in registers (C7602),
/// whatever registers move later.
const BESIDE_SUMS: u32 = 26;
const LEFT: u32 = 4;

/// Registers that one warp-group gives up are as many as the others ask for: a warp that asks for more than its CTA has
/// waits for ever. At its start a CTA has an equal share of those that it shares a multiprocessor with.
fn moves_registers(kernel: &PtxKernel) -> Result<(), String> {
    let count = |wanted: bool| {
        let counts = kernel.insts().filter_map(move |i| match i.op {
            Op::Sm90(Sm90::SetMaxReg { inc, count }) if inc == wanted => Some(count),
            _ => None,
        });
        counts.max()
    };
    let share = REGISTERS / (kernel.resident.unwrap_or(1).max(1) * kernel.threads) / 8 * 8;
    let asked = kernel.insts().filter_map(|i| match i.op {
        Op::Sm90(Sm90::Wgmma(w)) => Some(u32::from(w.n) / 2 + BESIDE_SUMS + if w.a_in_regs { LEFT } else { 0 }),
        _ => None,
    });
    if let Some(most) = asked.max().filter(|most| kernel.resident.is_some() && *most > share) {
        return Err(format!("a product asks for {most} registers of a thread, and an equal share is {share}"));
    }
    let (Some(more), Some(less)) = (count(true), count(false)) else { return Ok(()) };
    let groups = kernel.threads / WARP_GROUP;
    let (wanted, there) = (less + groups.saturating_sub(1) * more, groups * share.min(255));
    match wanted <= there {
        true => Ok(()),
        false => Err(format!("warp-groups ask for {wanted} registers of a thread each, and the CTA has {there}")),
    }
}

/// The instruction in front of which each label stands.
pub(crate) fn labels(kernel: &PtxKernel) -> Result<SecondaryMap<Label, Option<usize>>, Error> {
    let mut places: SecondaryMap<Label, Option<usize>> = SecondaryMap::new();
    let mut n = 0;
    for item in &kernel.body {
        match item {
            BodyItem::Label(label) => {
                if places[*label].replace(n).is_some() {
                    return Err(Error { inst: None, message: format!("{label} stands in two places") });
                }
            }
            BodyItem::Inst(_) => n += 1,
            BodyItem::Comment(_) => {}
        }
    }
    if places.values().flatten().any(|at| *at >= n) {
        return Err(Error { inst: None, message: "a label behind the last instruction".into() });
    }
    Ok(places)
}

fn check(kernel: &PtxKernel, inst: &Inst, places: &SecondaryMap<Label, Option<usize>>) -> Result<(), String> {
    let Some(form) = inst.op.form() else { return Err("there is no such instruction".into()) };
    let class = |reg: VReg| kernel.regs.get(reg).copied().ok_or_else(|| format!("there is no register {reg}"));
    if let Some((guard, _)) = inst.guard
        && class(guard)? != Class::Pred
    {
        return Err("the guard is no predicate".into());
    }
    let (mut dsts, mut srcs) = (form.dsts, form.srcs);
    let elements = match inst.op {
        Op::Ld(..) => inst.dsts.len(),
        Op::St(..) => inst.srcs.len().saturating_sub(1),
        _ => 1,
    };
    if let Op::Ld(space, ty) | Op::St(space, ty) = inst.op {
        let vector = matches!(elements, 1 | 2 | 4) && (elements == 1 || elements as u32 * ty.size() <= 16);
        if !vector || (elements > 1 && space == Space::Param) {
            return Err(format!("a vector of {elements}"));
        }
        match inst.op {
            Op::Ld(..) => dsts = vec![dsts[0]; elements],
            _ => srcs.resize(1 + elements, srcs[1]),
        }
    }
    if inst.dsts.len() != dsts.len() || inst.srcs.len() != srcs.len() {
        let (d, s) = (dsts.len(), srcs.len());
        return Err(format!("{d} results and {s} operands are wanted"));
    }
    for (reg, kind) in inst.dsts.iter().zip(dsts) {
        if !register(class(*reg)?, kind) {
            return Err(format!("the result {reg} is {:?}, not {kind:?}", class(*reg)?));
        }
    }
    for (src, kind) in inst.srcs.iter().zip(srcs) {
        let fits = match (src, kind) {
            (Src::Reg(reg), kind) => register(class(*reg)?, kind),
            (Src::Imm(_), OperandClass::Value(_) | OperandClass::Any(_)) => true,
            (Src::Special(_), OperandClass::Any(class)) => class == Class::B32,
            (Src::Symbol(n), OperandClass::Any(class)) => {
                let Some(symbol) = kernel.symbols.get(*n as usize) else {
                    return Err("there is no such symbol".into());
                };
                class == Class::B64 || (class == Class::B32 && symbol.space.is_small())
            }
            (Src::Param(n), OperandClass::Any(class)) => {
                class == Class::B64 && kernel.params.get(*n as usize).is_some_and(|p| p.map)
            }
            (Src::Label(label), OperandClass::Label) => places[*label].is_some(),
            (Src::Addr(at), OperandClass::Addr(space)) => match at.base {
                AddrBase::Reg(reg) => {
                    class(reg)? == Class::B64 && space != Space::Param || class(reg)? == Class::B32 && space.is_small()
                }
                AddrBase::Param(n) => {
                    let ty = if let Op::Ld(_, ty) = inst.op { ty.size() } else { 0 };
                    let holds = |size: u32| at.disp >= 0 && (at.disp as u32).saturating_add(ty) <= size;
                    space == Space::Param && kernel.params.get(n as usize).is_some_and(|p| holds(p.size()))
                }
                AddrBase::Symbol(n) => kernel.symbols.get(n as usize).is_some_and(|s| s.space == space),
            },
            _ => false,
        };
        if !fits {
            return Err(format!("{src:?} where {kind:?} is wanted"));
        }
    }
    Ok(())
}

/// Whether a register of this class may stand there.
fn register(class: Class, kind: OperandClass) -> bool {
    match kind {
        OperandClass::Value(c) | OperandClass::Reg(c) | OperandClass::Any(c) => class == c,
        OperandClass::Width(bits) => class != Class::Pred && class.bits() == bits,
        OperandClass::Memory(ty) => {
            let bits = !matches!(class, Class::Pred | Class::F32 | Class::F64);
            let narrow = ty.size() <= 2 && !ty.is_float();
            class == ty.class()
                || (matches!(ty, Type::B32 | Type::B64) && class != Class::Pred && class.bits() == 8 * ty.size())
                || (narrow && bits && class.bits() > 8 * ty.size())
        }
        OperandClass::Addr(_) | OperandClass::Label => false,
    }
}

/// A set of registers.
#[derive(Clone, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn new(registers: usize) -> Set {
        Set(vec![0; registers.div_ceil(64)])
    }

    fn insert(&mut self, reg: VReg) {
        self.0[reg.index() / 64] |= 1 << (reg.index() % 64);
    }

    fn contains(&self, reg: VReg) -> bool {
        self.0[reg.index() / 64] >> (reg.index() % 64) & 1 != 0
    }

    /// Keeps what is in both.
    fn meet(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
    }

    /// What an instruction leaves defined.
    fn define(&mut self, inst: &Inst) {
        if inst.guard.is_none() {
            inst.dsts.iter().for_each(|d| self.insert(*d));
        }
    }
}

/// Every read has a definition on every way to it. Forward data flow over instructions until nothing changes.
fn definitions(kernel: &PtxKernel, places: &SecondaryMap<Label, Option<usize>>) -> Result<(), Error> {
    let insts: Vec<&Inst> = kernel.insts().collect();
    // Heads of blocks: the first instruction, targets, and what follows a jump.
    let mut heads: Vec<usize> = vec![0];
    heads.extend(places.values().flatten());
    heads.extend(insts.iter().enumerate().filter(|(_, i)| matches!(i.op, Op::Bra | Op::Ret)).map(|(n, _)| n + 1));
    heads.retain(|n| *n < insts.len());
    heads.sort_unstable();
    heads.dedup();
    let block_of = |n: usize| heads.partition_point(|h| *h <= n) - 1;
    let mut before: Vec<Option<Set>> = vec![None; heads.len()];
    before[0] = Some(Set::new(kernel.regs.len()));
    let mut work = vec![0];
    while let Some(block) = work.pop() {
        let Some(mut defined) = before[block].clone() else { continue };
        let end = heads.get(block + 1).copied().unwrap_or(insts.len());
        let mut next = Vec::new();
        let mut falls = true;
        for inst in &insts[heads[block]..end] {
            defined.define(inst);
            match inst.op {
                Op::Bra => {
                    let target = inst.srcs.iter().find_map(|s| if let Src::Label(l) = s { places[*l] } else { None });
                    next.extend(target.map(block_of));
                    falls = inst.guard.is_some();
                }
                Op::Ret => falls = inst.guard.is_some(),
                _ => {}
            }
        }
        if falls && end < insts.len() {
            next.push(block + 1);
        }
        for target in next {
            let mut merged = defined.clone();
            if let Some(old) = &before[target] {
                merged.meet(old);
            }
            if before[target].as_ref() != Some(&merged) {
                before[target] = Some(merged);
                work.push(target);
            }
        }
    }
    for (block, defined) in before.iter().enumerate() {
        // What nothing leads to is not executed.
        let Some(mut defined) = defined.clone() else { continue };
        let end = heads.get(block + 1).copied().unwrap_or(insts.len());
        for (n, inst) in insts.iter().enumerate().take(end).skip(heads[block]) {
            let read = inst.srcs.iter().filter_map(|src| match src {
                Src::Reg(reg) => Some(*reg),
                Src::Addr(at) => {
                    if let AddrBase::Reg(reg) = at.base {
                        Some(reg)
                    } else {
                        None
                    }
                }
                _ => None,
            });
            if let Some(reg) = read.chain(inst.guard.map(|g| g.0)).find(|r| !defined.contains(*r)) {
                let message = format!("`{}`: {reg} has no value on some way here", instruction(kernel, inst));
                return Err(Error { inst: Some(n), message });
            }
            defined.define(inst);
        }
    }
    Ok(())
}
