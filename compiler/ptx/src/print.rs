//! The text of a kernel, for PTX ISA 8.3 on sm_90a.

use crate::inst::{AddrBase, Address, Inst, Op, Src};
use crate::kernel::{BodyItem, Param, PtxKernel, VReg};
use crate::lines::LineTable;
use crate::sm90::{Slot, Sm90};
use crate::types::{Class, Space, Type};
use cranelift_entity::{EntityRef, SecondaryMap};
use std::fmt::Write as _;

/// What any driver since CUDA 12.3 assembles.
const HEADER: &str = ".version 8.3\n.target sm_90a\n.address_size 64\n";

/// A module with this kernel.
pub fn print(kernel: &PtxKernel) -> String {
    print_with_lines(kernel, &LineTable::default())
}

/// A module with this kernel, and the places in the source that its instructions are made for.
pub fn print_with_lines(kernel: &PtxKernel, lines: &LineTable) -> String {
    let mut out = String::from(HEADER);
    let text = Text { kernel, numbers: numbers(kernel) };
    for symbol in kernel.symbols.iter().filter(|s| s.size.is_none()) {
        let _ = writeln!(out, "\n.extern .shared .align {} .b8 {}[];", symbol.align, symbol.name);
    }
    let params: Vec<String> = kernel.params.iter().map(parameter).collect();
    let _ = writeln!(out, "\n.visible .entry {}(\n{}\n)", kernel.name, params.join(",\n"));
    let _ = writeln!(out, ".maxntid {}, 1, 1", kernel.threads);
    if let Some(resident) = kernel.resident {
        let _ = writeln!(out, ".minnctapersm {resident}");
    }
    if let Some(cluster) = kernel.cluster {
        let _ = writeln!(out, ".explicitcluster\n.reqnctapercluster {cluster}, 1, 1");
    }
    let _ = writeln!(out, "{{");
    for class in Class::ALL {
        let count = kernel.regs.values().filter(|c| **c == class).count();
        if count > 0 {
            let _ = writeln!(out, "    .reg .{} %{}<{count}>;", class.declared(), class.prefix());
        }
    }
    for symbol in &kernel.symbols {
        if let Some(size) = symbol.size {
            let space = symbol.space.name();
            let _ = writeln!(out, "    .{space} .align {} .b8 {}[{size}];", symbol.align, symbol.name);
        }
    }
    let mut place = None;
    for item in &kernel.body {
        if let BodyItem::Inst(inst) = item
            && let Some(next) = lines.directive(inst.site).filter(|next| place.as_ref() != Some(next))
        {
            let _ = writeln!(out, "    {next}");
            place = Some(next);
        }
        let _ = match item {
            BodyItem::Label(label) => writeln!(out, "$L{}:", label.index()),
            BodyItem::Comment(line) => writeln!(out, "    // {}", line.replace('\n', " ")),
            BodyItem::Inst(inst) => writeln!(out, "    {};", text.inst(inst)),
        };
    }
    out.push_str("}\n");
    out.push_str(&lines.files());
    out
}

fn parameter(param: &Param) -> String {
    match param.map {
        true => format!("    .param .align {} .b8 {}[{}]", param.align(), param.name, param.size()),
        false => format!("    .param .{} {}", param.ty, param.name),
    }
}

/// One instruction, as the module has it.
pub(crate) fn instruction(kernel: &PtxKernel, inst: &Inst) -> String {
    Text { kernel, numbers: numbers(kernel) }.inst(inst)
}

/// Registers are numbered within their class.
fn numbers(kernel: &PtxKernel) -> SecondaryMap<VReg, u32> {
    let mut next = [0; Class::ALL.len()];
    let mut numbers = SecondaryMap::new();
    for (reg, class) in &kernel.regs {
        numbers[reg] = next[*class as usize];
        next[*class as usize] += 1;
    }
    numbers
}

struct Text<'a> {
    kernel: &'a PtxKernel,
    numbers: SecondaryMap<VReg, u32>,
}

impl Text<'_> {
    fn reg(&self, reg: VReg) -> String {
        let prefix = self.kernel.regs.get(reg).map_or("?", |class| class.prefix());
        format!("%{prefix}{}", self.numbers[reg])
    }

    fn inst(&self, inst: &Inst) -> String {
        let guard = match inst.guard {
            Some((reg, true)) => format!("@{} ", self.reg(reg)),
            Some((reg, false)) => format!("@!{} ", self.reg(reg)),
            None => String::new(),
        };
        let Some(form) = inst.op.form() else { return format!("{guard}?{:?}", inst.op) };
        let ty = form.ty;
        let operands = match inst.op {
            Op::Ld(_, ty) => {
                let regs: Vec<String> = inst.dsts.iter().map(|r| self.reg(*r)).collect();
                return format!(
                    "{guard}{}{}.{ty} {}, {}",
                    form.name,
                    vector(regs.len()),
                    braces(&regs),
                    self.src(inst.srcs.first(), ty)
                );
            }
            Op::St(_, ty) => {
                let regs: Vec<String> = inst.srcs.iter().skip(1).map(|s| self.src(Some(s), ty)).collect();
                return format!(
                    "{guard}{}{}.{ty} {}, {}",
                    form.name,
                    vector(regs.len()),
                    self.src(inst.srcs.first(), ty),
                    braces(&regs)
                );
            }
            Op::BarOr(n) => {
                let pred = self.src(inst.srcs.first(), ty);
                inst.dsts.iter().map(|r| self.reg(*r)).chain([n.to_string(), pred]).collect()
            }
            Op::Sm90(op) => self.slots(op, inst),
            Op::Pack | Op::Pair => {
                let halves: Vec<String> = inst.srcs.iter().map(|s| self.src(Some(s), ty)).collect();
                inst.dsts.iter().map(|r| self.reg(*r)).chain([braces(&halves)]).collect()
            }
            // A count or a lane is u32 whatever is shifted; a third operand may be wide.
            _ => {
                let dsts = inst.dsts.iter().map(|r| self.reg(*r));
                dsts.chain(inst.srcs.iter().map(|s| self.src(Some(s), ty))).collect::<Vec<_>>()
            }
        };
        if operands.is_empty() {
            return format!("{guard}{}", form.name);
        }
        format!("{guard}{} {}", form.name, operands.join(", "))
    }

    /// What stands in the places of an instruction's text.
    fn slots(&self, op: Sm90, inst: &Inst) -> Vec<String> {
        let mut dsts = inst.dsts.iter().map(|r| self.reg(*r));
        let mut srcs = inst.srcs.iter().map(|s| self.src(Some(s), Type::S32));
        let next = |all: &mut dyn Iterator<Item = String>| all.next().unwrap_or("?".into());
        let list = |all: Vec<String>| format!("{{{}}}", all.join(", "));
        let slots = op.slots().unwrap_or_default().into_iter().map(|slot| match slot {
            Slot::Dst(_) => next(&mut dsts),
            Slot::DstBehindSink(_) => format!("_|{}", next(&mut dsts)),
            Slot::Dsts(_, n) => list(dsts.by_ref().take(n).collect()),
            Slot::Src(_) => next(&mut srcs),
            Slot::Srcs(_, n) => list(srcs.by_ref().take(n).collect()),
            Slot::Map(rank) => format!("[{}, {}]", next(&mut srcs), list(srcs.by_ref().take(rank).collect())),
            Slot::Sink => "_".into(),
            Slot::Literal(n) => n.to_string(),
        });
        slots.collect()
    }

    fn src(&self, src: Option<&Src>, ty: Type) -> String {
        match src {
            None => "?".into(),
            Some(Src::Reg(reg)) => self.reg(*reg),
            Some(Src::Imm(bits)) => number(*bits, ty),
            Some(Src::Special(special)) => special.name().into(),
            Some(Src::Symbol(n)) => self.symbol(*n),
            Some(Src::Param(n)) => self.param(*n),
            Some(Src::Label(label)) => format!("$L{}", label.index()),
            Some(Src::Addr(Address { base, disp })) => {
                let base = match base {
                    AddrBase::Reg(reg) => self.reg(*reg),
                    AddrBase::Param(n) => self.param(*n),
                    AddrBase::Symbol(n) => self.symbol(*n),
                };
                match disp {
                    0 => format!("[{base}]"),
                    _ => format!("[{base}+{disp}]"),
                }
            }
        }
    }

    fn param(&self, n: u32) -> String {
        self.kernel.params.get(n as usize).map_or("?".into(), |p| p.name.clone())
    }

    fn symbol(&self, n: u32) -> String {
        self.kernel.symbols.get(n as usize).map_or("?".into(), |s| s.name.clone())
    }
}

fn vector(count: usize) -> &'static str {
    match count {
        2 => ".v2",
        4 => ".v4",
        _ => "",
    }
}

fn braces(regs: &[String]) -> String {
    if let [one] = regs { one.clone() } else { format!("{{{}}}", regs.join(", ")) }
}

/// A number of an instruction of this type.
fn number(bits: u64, ty: Type) -> String {
    match ty {
        Type::F32 => format!("0f{:08X}", bits as u32),
        Type::F64 => format!("0d{bits:016X}"),
        Type::Pred => u8::from(bits != 0).to_string(),
        // Numbers above the greatest of s64 would need a suffix.
        Type::S64 | Type::B64 | Type::U64 => (bits as i64).to_string(),
        Type::S8 | Type::S16 | Type::S32 => (bits as u32 as i32).to_string(),
        _ => (bits as u32).to_string(),
    }
}

impl Space {
    /// Whether addresses of 32 bits are enough for it.
    pub(crate) fn is_small(self) -> bool {
        matches!(self, Space::Shared)
    }
}
