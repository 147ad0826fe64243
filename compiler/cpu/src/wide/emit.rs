//! Instructions of a section as machine instructions.

use super::Isa;
use super::alloc::{AllocatedInst, Form, Operand};
use super::asm::{Asm, Label, at, at_label, indexed, low};
use super::frame::Frame;
use super::ops::{VOp, Width};
use super::program::{Action, Class, Gap, Home, Ins, Mask, MemOperand, NestProgram, Origin};
use iced_x86::{Code, Instruction, MemoryOperand, OpKind, Register};
use ptoc_ir::loops::PARTIALS;

/// The lane that a step begins with.
pub(crate) const INDEX: Register = Register::R11;
/// Free for short use. Pointers that have no register of their own are brought to the first.
pub(crate) const SCRATCH: [Register; 3] = [Register::RAX, Register::RDX, Register::RCX];

/// An operand of a vector instruction.
#[derive(Clone, Copy)]
enum Arg {
    Reg(Register),
    Memory(MemoryOperand, bool),
}

/// Emission of one function.
pub(crate) struct Emitter<'a> {
    pub(crate) asm: Asm,
    pub(crate) isa: Isa,
    pub(crate) program: &'a NestProgram,
    pub(crate) frame: Frame,
    /// The pool so far.
    pub(crate) pool: Vec<(Home, Label)>,
    /// Pointers whose vectors are written past the caches, by bits.
    pub(crate) non_temporal: u64,
    /// Such vectors are written in parts of 16 bytes, and need not be aligned otherwise.
    pub(crate) in_quarters: bool,
    /// Where guards of the turn at hand lead to: groups of its whole steps.
    pub(crate) leaves: Vec<(usize, Label)>,
}

/// A machine register.
pub(crate) fn register(isa: Isa, width: Width, n: u8) -> Register {
    let n = u32::from(n);
    match (isa, width) {
        (_, Width::Mask) => Register::K0 + n,
        (Isa::Avx512, Width::Full) => Register::ZMM0 + n,
        (Isa::Avx512, Width::Half) | (Isa::Avx2, Width::Full) => Register::YMM0 + n,
        _ => Register::XMM0 + n,
    }
}

impl Emitter<'_> {
    fn pooled(&mut self, home: Home) -> Label {
        if let Some((_, label)) = self.pool.iter().find(|(h, _)| *h == home) {
            return *label;
        }
        let label = self.asm.label();
        self.pool.push((home, label));
        label
    }

    /// The memory of a home.
    pub(crate) fn home(&mut self, home: Home) -> MemoryOperand {
        match home {
            Home::Const(_) | Home::ConstQ(_) | Home::Table(_) => {
                let label = self.pooled(home);
                at_label(label)
            }
            Home::Param(n) | Home::ParamQ(n) => self.frame.input(n),
            Home::Tail => self.frame.tail(),
            Home::Slot(n) => self.frame.slot(n),
        }
    }

    /// A pointer in a register.
    pub(crate) fn pointer(&mut self, n: u32) -> Register {
        if let Some(register) = self.frame.pointer(n) {
            return register;
        }
        let slot = self.frame.pointer_slot(n);
        self.asm.rm(Code::Mov_r64_rm64, SCRATCH[0], slot);
        SCRATCH[0]
    }

    fn place(&mut self, place: MemOperand) -> MemoryOperand {
        match place {
            MemOperand::Pointer { pointer, scale: 0, disp } => at(self.pointer(pointer), i64::from(disp)),
            MemOperand::Pointer { pointer, scale, disp } => {
                indexed(self.pointer(pointer), INDEX, u32::from(scale), i64::from(disp))
            }
            MemOperand::Partials { pointer } => {
                let (base, number) = (self.pointer(pointer), SCRATCH[2]);
                self.asm.rr(Code::Mov_r64_rm64, number, INDEX);
                self.asm.ri(Code::And_rm64_imm8, number, PARTIALS as i32 - 1);
                indexed(base, number, 4, 0)
            }
            MemOperand::Words { pointer, disp } => {
                let (base, number) = (self.pointer(pointer), SCRATCH[2]);
                self.asm.rr(Code::Mov_r64_rm64, number, INDEX);
                self.asm.ri(Code::Shr_rm64_imm8, number, 1);
                indexed(base, number, 1, i64::from(disp))
            }
            MemOperand::Area { area, disp } => self.frame.area(area, disp),
        }
    }

    fn raw(&mut self, code: Code, args: &[Arg], imm: Option<u8>, mask: Option<Register>, zero: bool) {
        debug_assert!(code != Code::INVALID, "an operation that the instruction set lacks");
        let mut instruction = Instruction::new();
        instruction.set_code(code);
        let mut n = 0;
        for arg in args {
            match *arg {
                Arg::Reg(register) => {
                    instruction.set_op_kind(n, OpKind::Register);
                    instruction.set_op_register(n, register);
                }
                Arg::Memory(memory, broadcast) => {
                    instruction.set_op_kind(n, OpKind::Memory);
                    instruction.set_memory_base(memory.base);
                    instruction.set_memory_index(memory.index);
                    instruction.set_memory_index_scale(memory.scale);
                    instruction.set_memory_displacement64(memory.displacement as u64);
                    let size = if memory.base == Register::RIP { 8 } else { memory.displ_size };
                    instruction.set_memory_displ_size(size);
                    instruction.set_is_broadcast(broadcast);
                }
            }
            n += 1;
        }
        if let Some(imm) = imm {
            instruction.set_op_kind(n, OpKind::Immediate8);
            instruction.set_immediate8(imm);
        }
        if let Some(mask) = mask {
            instruction.set_op_mask(mask);
            instruction.set_zeroing_masking(zero);
        }
        self.asm.push(instruction);
    }

    /// One register and memory.
    pub(crate) fn load(&mut self, op: VOp, to: u8, memory: MemoryOperand) {
        let info = op.info();
        let to = register(self.isa, info.dst.unwrap_or(Width::Full), to);
        self.raw(info.code(self.isa), &[Arg::Reg(to), Arg::Memory(memory, false)], None, None, false);
    }

    pub(crate) fn store(&mut self, op: VOp, memory: MemoryOperand, from: u8) {
        let from = register(self.isa, op.args()[1], from);
        self.raw(op.info().code(self.isa), &[Arg::Memory(memory, false), Arg::Reg(from)], None, None, false);
    }

    pub(crate) fn section(&mut self, steps: &[AllocatedInst], lanes: i64) {
        for step in steps {
            match step {
                AllocatedInst::Fill { to, class, home } => self.fill(*to, *class, *home),
                AllocatedInst::Spill { from, class, slot } => {
                    let memory = self.frame.slot(*slot);
                    self.store(if *class == Class::Mask { VOp::KStore } else { VOp::Store }, memory, *from);
                }
                AllocatedInst::Move { to, from } => {
                    let [to, from] = [*to, *from].map(|n| Arg::Reg(register(self.isa, Width::Full, n)));
                    self.raw(VOp::Move.info().code(self.isa), &[to, from], None, None, false);
                }
                AllocatedInst::Fma { form, dst, args } => self.fma(*form, *dst, *args),
                AllocatedInst::Do { ins, dst, args, mask } => self.instruction(ins, *dst, args, *mask, lanes),
                AllocatedInst::At(origin) => self.asm.origin = *origin,
            }
        }
        self.asm.origin = Origin::default();
    }

    pub(crate) fn fill(&mut self, to: u8, class: Class, home: Home) {
        let memory = self.home(home);
        let op = match home {
            _ if class == Class::Mask => VOp::KLoad,
            // `x - x` and comparisons need no memory.
            Home::Const(0) | Home::ConstQ(0) => {
                let vex = if self.isa == Isa::Avx512 {
                    VOp::Xor.info().code(Isa::Avx512)
                } else {
                    Code::VEX_Vpxor_ymm_ymm_ymmm256
                };
                let register = Arg::Reg(register(self.isa, Width::Full, to));
                return self.raw(vex, &[register; 3], None, None, false);
            }
            Home::Const(_) | Home::Param(_) => VOp::All,
            Home::ConstQ(_) | Home::ParamQ(_) => VOp::AllQ,
            Home::Table(_) | Home::Tail | Home::Slot(_) => VOp::Load,
        };
        self.load(op, to, memory);
    }

    fn operand(&mut self, operand: Operand, width: Width) -> Arg {
        match operand {
            Operand::Reg(n) => Arg::Reg(register(self.isa, width, n)),
            Operand::Memory(home) => Arg::Memory(self.home(home), self.isa == Isa::Avx512),
        }
    }

    fn fma(&mut self, form: Form, dst: u8, args: [Operand; 2]) {
        let code = match (self.isa, form) {
            (Isa::Avx2, Form::F132) => Code::VEX_Vfmadd132ps_ymm_ymm_ymmm256,
            (Isa::Avx2, Form::F213) => Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256,
            (Isa::Avx2, Form::F231) => Code::VEX_Vfmadd231ps_ymm_ymm_ymmm256,
            (Isa::Avx512, Form::F132) => Code::EVEX_Vfmadd132ps_zmm_k1z_zmm_zmmm512b32_er,
            (Isa::Avx512, Form::F213) => Code::EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er,
            (Isa::Avx512, Form::F231) => Code::EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er,
        };
        let dst = Arg::Reg(register(self.isa, Width::Full, dst));
        let args = args.map(|arg| self.operand(arg, Width::Full));
        self.raw(code, &[dst, args[0], args[1]], None, None, false);
    }

    fn instruction(&mut self, ins: &Ins, dst: Option<u8>, args: &[Operand], mask: Option<u8>, lanes: i64) {
        let op = match ins.action {
            Action::Vector(op) => op,
            Action::Index { wide } => return self.index(wide, dst.unwrap_or(0)),
            Action::Copy(copy) => return self.copy(copy, lanes),
            Action::Seek { to, base, word, disp } => return self.seek(to, base, word, disp),
            Action::Scalar { what, wide } => return self.scalar(what, wide, lanes),
            Action::Guard { group } => return self.guard(group, args),
        };
        let info = op.info();
        let mut all = Vec::with_capacity(4);
        let widths = op.args();
        let memory = ins.place.map(|place| Arg::Memory(self.place(place), false));
        match info.dst {
            Some(width) => all.push(Arg::Reg(register(self.isa, width, dst.unwrap_or(0)))),
            None => all.extend(memory),
        }
        let skip = usize::from(info.dst.is_none());
        for (n, arg) in args.iter().enumerate() {
            all.push(self.operand(*arg, widths[(n + skip).min(widths.len() - 1)]));
        }
        if info.dst.is_some() {
            all.extend(memory);
        }
        let store = info.dst.is_none();
        let (mask, zero) = match ins.mask {
            Mask::All => (None, false),
            Mask::Reg(_) => (mask.map(|n| register(self.isa, Width::Mask, n)), op == VOp::KZero),
            Mask::Tail => (Some(Register::K7), !store),
            Mask::TailHigh => (Some(Register::K6), !store),
        };
        let past = op == VOp::Store && mask.is_none() && self.is_non_temporal(ins.place);
        if let (true, true, [Arg::Memory(to, _), Arg::Reg(from)]) = (past, self.in_quarters, all.as_slice()) {
            return self.store_quarters(*to, *from);
        }
        let code = if past { VOp::StoreNonTemporal.info() } else { info };
        self.raw(code.code(self.isa), &all, ins.imm, mask, zero);
    }

    fn guard(&mut self, group: usize, args: &[Operand]) {
        let leave = self.asm.label();
        self.leaves.push((group, leave));
        for arg in args {
            let arg = self.operand(*arg, Width::Full);
            self.raw(Code::VEX_Vptest_ymm_ymmm256, &[arg, arg], None, None, false);
        }
        self.asm.branch(Code::Jne_rel32_64, leave);
    }

    /// Non-temporal stores of a vector's quarters (of AVX2 halves), which ask for an alignment of 16 bytes alone. Each
    /// is rotated to the lowest place, without a register more, and the register is as before in the end.
    fn store_quarters(&mut self, to: MemoryOperand, from: Register) {
        let (zmm, lowest) = match self.isa {
            Isa::Avx512 => (true, Register::XMM0 + (from as u32 - Register::ZMM0 as u32)),
            Isa::Avx2 => (false, Register::XMM0 + (from as u32 - Register::YMM0 as u32)),
        };
        let [store, rotate] = match zmm {
            true => [Code::EVEX_Vmovntps_m128_xmm, Code::EVEX_Vshuff32x4_zmm_k1z_zmm_zmmm512b32_imm8],
            false => [Code::VEX_Vmovntps_m128_xmm, Code::VEX_Vperm2f128_ymm_ymm_ymmm256_imm8],
        };
        for n in 0..self.isa.bytes() / 16 {
            let displacement = to.displacement + 16 * i64::from(n);
            let quarter = MemoryOperand { displacement, displ_size: 8, ..to };
            self.raw(store, &[Arg::Memory(quarter, false), Arg::Reg(lowest)], None, None, false);
            // Quarters 1, 2, 3, 0 (and halves 1, 0) are the next 0, 1, 2, 3.
            self.raw(rotate, &[Arg::Reg(from); 3], Some(if zmm { 0x39 } else { 1 }), None, false);
        }
    }

    /// Whether a whole vector at this place is written past the caches.
    fn is_non_temporal(&self, place: Option<MemOperand>) -> bool {
        let bytes = self.isa.bytes();
        matches!(place, Some(MemOperand::Pointer { pointer: n @ 0..64, disp, scale: 4 })
            if disp % bytes == 0 && self.non_temporal >> n & 1 != 0)
    }

    /// Sets a pointer of the program's own.
    fn seek(&mut self, to: u32, base: u32, word: u32, disp: i32) {
        let place = at(self.pointer(word), i64::from(disp));
        let own = self.frame.pointer(to);
        let register = own.unwrap_or(SCRATCH[1]);
        self.asm.rm(Code::Mov_r64_rm64, register, place);
        let base = self.pointer(base);
        self.asm.rr(Code::Add_r64_rm64, register, base);
        if own.is_none() {
            let slot = self.frame.pointer_slot(to);
            self.asm.mr(Code::Mov_rm64_r64, slot, register);
        }
    }

    /// The step's first lane in all lanes.
    fn index(&mut self, wide: bool, to: u8) {
        let full = register(self.isa, Width::Full, to);
        if self.isa == Isa::Avx512 {
            let (code, from) = if wide {
                (Code::EVEX_Vpbroadcastq_zmm_k1z_r64, INDEX)
            } else {
                (Code::EVEX_Vpbroadcastd_zmm_k1z_r32, low(INDEX))
            };
            return self.asm.rr(code, full, from);
        }
        let half = register(self.isa, Width::Half, to);
        self.asm.rr(Code::VEX_Vmovq_xmm_rm64, half, INDEX);
        let code = if wide { Code::VEX_Vpbroadcastq_ymm_xmmm64 } else { Code::VEX_Vpbroadcastd_ymm_xmmm32 };
        self.asm.rr(code, full, half);
    }

    /// A gap in a register, or known.
    pub(crate) fn add_gap(&mut self, to: Register, gap: Gap) {
        match gap {
            Gap::Const(bytes) => self.asm.add(to, bytes, SCRATCH[1]),
            Gap::Param(n) => {
                let memory = self.frame.input(n);
                self.asm.rm(Code::Add_r64_rm64, to, memory);
            }
        }
    }
}
