//! A kernel with its names resolved.

use crate::inst::{AddrBase, Op, Shfl, Special, Src};
use crate::kernel::PtxKernel;
use crate::sm90::{Sm90, Wgmma};
use crate::types::Space;
use crate::verify::{self, labels};
use cranelift_entity::EntityRef;

/// An operand: a register by number, or what is the same in all threads; or a special register.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Reg(usize),
    Imm(u64),
    Special(Special),
    /// A register and a displacement, or for `None` an address.
    Addr(Option<usize>, u64),
    /// A place in the shared memory of whichever CTA it is.
    Own(u64),
    Target(u32),
}

/// An instruction.
#[derive(Clone, Debug)]
pub(super) struct SimInst {
    pub(super) op: Op,
    pub(super) guard: Option<(usize, bool)>,
    pub(super) dsts: [usize; 4],
    pub(super) results: usize,
    pub(super) srcs: [Operand; 5],
    pub(super) operands: usize,
    /// Of an instruction of Hopper, all results and all operands.
    pub(super) all_dsts: Vec<usize>,
    pub(super) all_srcs: Vec<Operand>,
}

impl SimInst {
    /// The registers of a product's left operand, if it is in registers.
    pub(super) fn left(&self) -> Vec<usize> {
        let Op::Sm90(Sm90::Wgmma(Wgmma { a_in_regs: true, .. })) = self.op else { return Vec::new() };
        let reg = |operand: &Operand| if let Operand::Reg(reg) = operand { Some(*reg) } else { None };
        self.all_srcs[..4].iter().filter_map(reg).collect()
    }

    /// Registers that it reads, but for the sums of a product.
    pub(super) fn reads(&self) -> impl Iterator<Item = usize> {
        let few = &self.srcs[..self.operands.min(self.srcs.len())];
        let all = if self.all_srcs.is_empty() { few } else { &self.all_srcs };
        let reg = |operand: &Operand| match operand {
            Operand::Reg(reg) | Operand::Addr(Some(reg), _) => Some(*reg),
            _ => None,
        };
        all.iter().filter_map(reg).chain(self.guard.map(|g| g.0))
    }

    /// Registers that it writes.
    pub(super) fn writes(&self) -> impl Iterator<Item = usize> {
        let few = &self.dsts[..self.results.min(self.dsts.len())];
        let all = if self.all_dsts.is_empty() { few } else { &self.all_dsts };
        all.iter().copied()
    }
}

/// A kernel as it is executed.
pub(super) struct SimKernel {
    pub(super) steps: Vec<SimInst>,
    pub(super) registers: usize,
    /// Bytes of shared memory that have their size in the kernel.
    pub(super) shared: u32,
    /// Bytes of local memory.
    pub(super) local: u32,
    /// The offset of each parameter.
    pub(super) params: u32,
    /// The parameters that are tensor maps: where each is.
    pub(super) maps: Vec<(u64, usize)>,
    /// It has more than barriers of all threads.
    pub(super) clocked: bool,
    /// It has products of warp-groups.
    pub(super) multiplies: bool,
}

impl SimKernel {
    pub(super) fn new(kernel: &PtxKernel) -> Result<SimKernel, verify::Error> {
        verify::verify(kernel)?;
        let places = labels(kernel)?;
        let (mut shared, mut local) = (0u32, 0u32);
        let mut symbols = Vec::new();
        for symbol in kernel.symbols.iter().filter(|s| s.size.is_some()) {
            let end = if symbol.space == Space::Shared { &mut shared } else { &mut local };
            *end = end.next_multiple_of(symbol.align);
            symbols.push((&symbol.name, *end));
            *end += symbol.size.unwrap_or(0);
        }
        // What the launch sizes lies behind the rest.
        if let Some(symbol) = kernel.symbols.iter().find(|s| s.size.is_none()) {
            shared = shared.next_multiple_of(symbol.align);
            symbols.push((&symbol.name, shared));
        }
        let address = |n: u32| {
            let name = &kernel.symbols[n as usize].name;
            symbols.iter().find(|(known, _)| *known == name).map_or(0, |(_, at)| u64::from(*at))
        };
        let in_shared = |n: u32| kernel.symbols[n as usize].space == Space::Shared;
        let mut params = Vec::new();
        let mut end = 0;
        let mut maps = Vec::new();
        for (n, param) in kernel.params.iter().enumerate() {
            let at = u32::next_multiple_of(end, param.align());
            params.push(u64::from(at));
            maps.extend(param.map.then_some((u64::from(at), n)));
            end = at + param.size();
        }
        let operand = |src: &Src| match src {
            Src::Reg(reg) => Operand::Reg(reg.index()),
            Src::Imm(bits) => Operand::Imm(*bits),
            Src::Special(special) => Operand::Special(*special),
            Src::Symbol(n) if in_shared(*n) => Operand::Own(address(*n)),
            Src::Symbol(n) => Operand::Imm(address(*n)),
            Src::Param(n) => Operand::Imm(params[*n as usize]),
            Src::Label(label) => Operand::Target(places[*label].unwrap_or(0) as u32),
            Src::Addr(at) => {
                let disp = i64::from(at.disp) as u64;
                match at.base {
                    AddrBase::Reg(reg) => Operand::Addr(Some(reg.index()), disp),
                    AddrBase::Param(n) => Operand::Addr(None, params[n as usize].wrapping_add(disp)),
                    AddrBase::Symbol(n) if in_shared(n) => Operand::Own(address(n).wrapping_add(disp)),
                    AddrBase::Symbol(n) => Operand::Addr(None, address(n).wrapping_add(disp)),
                }
            }
        };
        let steps = kernel.insts().map(|inst| {
            let mut step = SimInst {
                op: inst.op,
                guard: inst.guard.map(|(reg, so)| (reg.index(), so)),
                dsts: [0; 4],
                results: inst.dsts.len(),
                srcs: [Operand::Imm(0); 5],
                operands: inst.srcs.len(),
                all_dsts: Vec::new(),
                all_srcs: Vec::new(),
            };
            if matches!(inst.op, Op::Sm90(_)) {
                step.all_dsts = inst.dsts.iter().map(|reg| reg.index()).collect();
                step.all_srcs = inst.srcs.iter().map(operand).collect();
            }
            step.dsts.iter_mut().zip(&inst.dsts).for_each(|(to, from)| *to = from.index());
            step.srcs.iter_mut().zip(&inst.srcs).for_each(|(to, from)| *to = operand(from));
            step
        });
        let steps: Vec<SimInst> = steps.collect();
        let clocked = steps.iter().any(|step| matches!(step.op, Op::Sm90(_)));
        let multiplies = steps.iter().any(|step| matches!(step.op, Op::Sm90(Sm90::Wgmma(_))));
        let registers = kernel.regs.len();
        Ok(SimKernel { steps, registers, shared, local, params: end, maps, clocked, multiplies })
    }
}

impl Shfl {
    /// The lane that `lane` takes from; its own where there is none.
    pub(super) fn source(self, lane: u32, b: u32) -> u32 {
        let from = match self {
            Shfl::Down => lane.checked_add(b & 31),
            Shfl::Bfly => Some(lane ^ (b & 31)),
            Shfl::Idx => Some(b & 31),
        };
        from.filter(|n| *n < 32).unwrap_or(lane)
    }
}
