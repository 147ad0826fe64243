//! Work of one lane at a time, in general registers: between memory and the frame's areas; and vectors that are filled
//! lane by lane.

use super::asm::{at, indexed, low};
use super::emit::{Emitter, INDEX, SCRATCH};
use super::ops::VOp;
use super::program::{Copy, Gap, Scalar};
use iced_x86::{Code, MemoryOperand, Register};
use ptoc_ir::loops::BinOp;

/// Operands of divisions: dividend (high half in `RDX`), divisor. The third counts lanes.
const A: Register = Register::RAX;
const B: Register = Register::R11;
const LANE: Register = Register::RCX;

impl Emitter<'_> {
    /// Element of an area, by the lane in `RCX`.
    fn element(&self, area: u8, size: u32) -> MemoryOperand {
        let base = self.frame.area(area, 0);
        indexed(base.base, LANE, size, base.displacement)
    }

    /// Runs `body` for each lane; `tail`: those of the tail only.
    fn each(&mut self, lanes: i64, tail: bool, body: impl FnOnce(&mut Self)) {
        let head = self.asm.label();
        self.asm.constant(LANE, 0);
        self.asm.bind(head);
        body(self);
        self.asm.ri(Code::Add_rm64_imm32, LANE, 1);
        if tail {
            let active = self.frame.active();
            self.asm.rm(Code::Cmp_r64_rm64, LANE, active);
        } else {
            self.asm.ri(Code::Cmp_rm64_imm32, LANE, lanes as i32);
        }
        self.asm.branch(Code::Jl_rel32_64, head);
    }

    pub(crate) fn copy(&mut self, copy: Copy, lanes: i64) {
        let [address, element, _] = SCRATCH;
        // address = pointer + disp + index * gap
        match copy.gap {
            Gap::Const(0) => self.asm.constant(address, 0),
            Gap::Const(bytes) => {
                self.asm.constant(address, bytes);
                self.asm.rr(Code::Imul_r64_rm64, address, INDEX);
            }
            Gap::Param(n) => {
                let memory = self.frame.input(n);
                self.asm.rm(Code::Mov_r64_rm64, address, memory);
                self.asm.rr(Code::Imul_r64_rm64, address, INDEX);
            }
        }
        self.asm.add(address, copy.disp, element);
        match self.frame.pointer(copy.pointer) {
            Some(pointer) => self.asm.rr(Code::Add_r64_rm64, address, pointer),
            None => {
                let slot = self.frame.pointer_slot(copy.pointer);
                self.asm.rm(Code::Add_r64_rm64, address, slot);
            }
        }
        let size = u32::from(copy.size);
        if copy.inserts() {
            return self.inserted(copy, size as i32, lanes as i32);
        }
        let scatter = copy.store && copy.gather;
        let saved = self.frame.index();
        if scatter {
            self.asm.mr(Code::Mov_rm64_r64, saved, INDEX);
        }
        self.each(lanes, copy.tail, |e| {
            let area = e.element(0, size);
            let mut far = indexed(address, Register::None, 1, 0);
            if copy.gather {
                let offset = e.element(1, 8);
                e.asm.rm(Code::Mov_r64_rm64, element, offset);
                far = indexed(address, element, 1, 0);
            }
            let (load, save, register) = match size {
                1 => (Code::Movzx_r32_rm8, Code::Mov_rm8_r8, Register::DL),
                2 => (Code::Movzx_r32_rm16, Code::Mov_rm16_r16, Register::DX),
                4 => (Code::Mov_r32_rm32, Code::Mov_rm32_r32, Register::EDX),
                _ => (Code::Mov_r64_rm64, Code::Mov_rm64_r64, Register::RDX),
            };
            let wide = if size == 8 { Register::RDX } else { Register::EDX };
            if scatter {
                // Three registers are not enough: the index, not needed meanwhile, lends its own.
                e.asm.rm(Code::Lea_r64_m, B, far);
                e.asm.rm(load, wide, area);
                e.asm.mr(save, indexed(B, Register::None, 1, 0), register);
            } else if copy.store {
                e.asm.rm(load, wide, area);
                e.asm.mr(save, far, register);
            } else {
                e.asm.rm(load, wide, far);
                e.asm.mr(save, area, register);
            }
            e.add_gap(address, copy.gap);
        });
        if scatter {
            self.asm.rm(Code::Mov_r64_rm64, INDEX, saved);
        }
    }

    /// All lanes of a step from the address in the first scratch register on, into area 0, a vector at a time: what is
    /// stored in one piece is loaded from there without waiting for it to reach the cache. Three vector registers are
    /// used, and given back.
    fn inserted(&mut self, copy: Copy, size: i32, lanes: i32) {
        let gap = SCRATCH[1];
        if let Gap::Param(n) = copy.gap {
            let memory = self.frame.input(n);
            self.asm.rm(Code::Mov_r64_rm64, gap, memory);
            self.asm.rm(Code::Lea_r64_m, LANE, indexed(gap, gap, 2, 0));
        }
        let vector = (size * lanes).min(self.isa.bytes());
        let used = ((vector + 15) / 16).min(3) as u8;
        let kept = |e: &Self, n: u8| e.frame.area(1 + n / 2, i32::from(n % 2) * 64);
        for n in 0..used {
            let memory = kept(self, n);
            self.store(VOp::Store, memory, n);
        }
        for first in (0..lanes).step_by((vector / size) as usize) {
            let per = (16 / size).min(lanes);
            let quarter = |n: i32| (first + n * per, per);
            let (mut whole, xmm) = (Register::XMM0, |n: u32| Register::XMM0 + n);
            self.insert_lanes(copy.gap, size, Register::XMM0, quarter(0));
            if vector >= 32 {
                self.insert_lanes(copy.gap, size, xmm(1), quarter(1));
                whole = Register::YMM0;
                self.joined(Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8, [whole, whole, xmm(1)]);
            }
            if vector == 64 {
                self.insert_lanes(copy.gap, size, xmm(1), quarter(2));
                self.insert_lanes(copy.gap, size, xmm(2), quarter(3));
                let upper = Register::YMM1;
                self.joined(Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8, [upper, upper, xmm(2)]);
                whole = Register::ZMM0;
                self.joined(Code::EVEX_Vinserti64x4_zmm_k1z_zmm_ymmm256_imm8, [whole, whole, upper]);
            }
            let store = match vector {
                8 => Code::VEX_Vmovq_xmmm64_xmm,
                16 => Code::VEX_Vmovdqu_xmmm128_xmm,
                32 => Code::VEX_Vmovdqu_ymmm256_ymm,
                _ => Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm,
            };
            let area = self.frame.area(0, first * size);
            self.asm.mr(store, area, whole);
        }
        for n in 0..used {
            let memory = kept(self, n);
            self.load(VOp::Load, n, memory);
        }
    }

    /// Lanes into the elements of a register. The address is that of the first of them, and then of the lane behind
    /// the last, unless gaps are known.
    fn insert_lanes(&mut self, gap: Gap, size: i32, to: Register, (first, count): (i32, i32)) {
        let [address, step, _] = SCRATCH;
        let code = match size {
            1 => Code::VEX_Vpinsrb_xmm_xmm_r32m8_imm8,
            2 => Code::VEX_Vpinsrw_xmm_xmm_r32m16_imm8,
            4 => Code::VEX_Vpinsrd_xmm_xmm_rm32_imm8,
            _ => Code::VEX_Vpinsrq_xmm_xmm_rm64_imm8,
        };
        let zero = iced_x86::Instruction::with3(Code::VEX_Vpxor_xmm_xmm_xmmm128, to, to, to);
        self.asm.try_push(zero);
        for n in 0..count {
            let from = match gap {
                Gap::Const(bytes) => at(address, bytes * i64::from(first + n)),
                Gap::Param(_) => match n % 4 {
                    0 => at(address, 0),
                    3 => indexed(address, LANE, 1, 0),
                    n => indexed(address, step, n as u32, 0),
                },
            };
            self.asm.try_push(iced_x86::Instruction::with4(code, to, to, from, n));
            if matches!(gap, Gap::Param(_)) && (n % 4 == 3 || n + 1 == count) {
                let more = indexed(address, step, if n % 4 == 3 { 4 } else { (n % 4 + 1) as u32 }, 0);
                self.asm.rm(Code::Lea_r64_m, address, more);
            }
        }
    }

    /// The upper half of a register becomes another one.
    fn joined(&mut self, code: Code, [to, low, high]: [Register; 3]) {
        self.asm.try_push(iced_x86::Instruction::with4(code, to, low, high, 1));
    }

    /// Operands in areas 0 and 1, the result in area 2.
    pub(crate) fn scalar(&mut self, what: Scalar, wide: bool, lanes: i64) {
        match what {
            Scalar::Div(op) => {
                let saved = self.frame.index();
                self.asm.mr(Code::Mov_rm64_r64, saved, INDEX);
                self.each(lanes, false, |e| e.divide(op, wide));
                self.asm.rm(Code::Mov_r64_rm64, INDEX, saved);
            }
            Scalar::FromLong { signed } => {
                // Vector register 0 is used, and given back.
                let saved = self.frame.vector();
                self.store(VOp::Store, saved, 0);
                self.each(lanes, false, |e| e.long_to_f32(signed));
                self.load(VOp::Load, 0, saved);
            }
            Scalar::ToLong { signed } => self.each(lanes, false, |e| e.f32_to_long(signed)),
        }
    }

    /// Nothing here can trap: 0 and -1 as divisors are dealt with apart.
    fn divide(&mut self, op: BinOp, wide: bool) {
        let size = if wide { 8 } else { 4 };
        let pick = |long: Code, short: Code| if wide { long } else { short };
        let [a, b, d] = [A, B, Register::RDX].map(|r| if wide { r } else { low(r) });
        let (x, y, to) = (self.element(0, size), self.element(1, size), self.element(2, size));
        let mov = pick(Code::Mov_r64_rm64, Code::Mov_r32_rm32);
        let store = pick(Code::Mov_rm64_r64, Code::Mov_rm32_r32);
        let test = pick(Code::Test_rm64_r64, Code::Test_rm32_r32);
        let remainder = matches!(op, BinOp::Rem | BinOp::RemU | BinOp::RemFloor);
        let unsigned = matches!(op, BinOp::DivU | BinOp::RemU);
        let (zero, done) = (self.asm.label(), self.asm.label());
        self.asm.rm(mov, a, x);
        self.asm.rm(mov, b, y);
        self.asm.rr(test, b, b);
        self.asm.branch(Code::Je_rel32_64, zero);
        if unsigned {
            self.asm.rr(Code::Xor_r32_rm32, Register::EDX, Register::EDX);
            self.asm.r(pick(Code::Div_rm64, Code::Div_rm32), b);
        } else {
            let (usual, divided) = (self.asm.label(), self.asm.label());
            self.asm.ri(pick(Code::Cmp_rm64_imm32, Code::Cmp_rm32_imm32), b, -1);
            self.asm.branch(Code::Jne_rel32_64, usual);
            // By -1: the negative, nothing left.
            self.asm.r(pick(Code::Neg_rm64, Code::Neg_rm32), a);
            self.asm.rr(Code::Xor_r32_rm32, Register::EDX, Register::EDX);
            self.asm.branch(Code::Jmp_rel32_64, divided);
            self.asm.bind(usual);
            self.asm.push(iced_x86::Instruction::with(if wide { Code::Cqo } else { Code::Cdq }));
            self.asm.r(pick(Code::Idiv_rm64, Code::Idiv_rm32), b);
            if matches!(op, BinOp::DivFloor | BinOp::RemFloor) {
                // Something left over with the other sign than the divisor's: one step down.
                self.asm.rr(test, d, d);
                self.asm.branch(Code::Je_rel32_64, divided);
                let saved = self.frame.scratch();
                self.asm.mr(Code::Mov_rm64_r64, saved, A);
                self.asm.rr(mov, a, d);
                self.asm.rr(pick(Code::Xor_r64_rm64, Code::Xor_r32_rm32), a, b);
                let signs = self.asm.label();
                self.asm.rm(Code::Mov_r64_rm64, A, saved);
                self.asm.branch(Code::Jns_rel32_64, signs);
                self.asm.ri(pick(Code::Sub_rm64_imm32, Code::Sub_rm32_imm32), a, 1);
                self.asm.rr(pick(Code::Add_r64_rm64, Code::Add_r32_rm32), d, b);
                self.asm.bind(signs);
            }
            self.asm.bind(divided);
        }
        self.asm.mr(store, to, if remainder { d } else { a });
        self.asm.branch(Code::Jmp_rel32_64, done);
        self.asm.bind(zero);
        if !remainder {
            self.asm.ri(pick(Code::Mov_rm64_imm32, Code::Mov_rm32_imm32), a, -1);
        }
        self.asm.mr(store, to, a);
        self.asm.bind(done);
    }

    fn long_to_f32(&mut self, signed: bool) {
        let (x, to) = (self.element(0, 8), self.element(2, 4));
        let out = Register::XMM0;
        self.asm.rm(Code::Mov_r64_rm64, A, x);
        let convert = |e: &mut Self| {
            let three = iced_x86::Instruction::with3(Code::VEX_Vcvtsi2ss_xmm_xmm_rm64, out, out, A);
            e.asm.try_push(three);
        };
        if signed {
            convert(self);
        } else {
            // From 2^63 on: half of it, the lost bit kept for the rounding, and doubled again.
            let (small, end) = (self.asm.label(), self.asm.label());
            self.asm.rr(Code::Test_rm64_r64, A, A);
            self.asm.branch(Code::Jns_rel32_64, small);
            self.asm.rr(Code::Mov_r64_rm64, Register::RDX, A);
            self.asm.ri(Code::And_rm32_imm32, Register::EDX, 1);
            self.asm.ri(Code::Shr_rm64_imm8, A, 1);
            self.asm.rr(Code::Or_r64_rm64, A, Register::RDX);
            convert(self);
            let double = iced_x86::Instruction::with3(Code::VEX_Vaddss_xmm_xmm_xmmm32, out, out, out);
            self.asm.try_push(double);
            self.asm.branch(Code::Jmp_rel32_64, end);
            self.asm.bind(small);
            convert(self);
            self.asm.bind(end);
        }
        self.asm.mr(Code::VEX_Vmovss_m32_xmm, to, out);
    }

    /// By the float's bits: what is no number or out of range is found without arithmetic.
    fn f32_to_long(&mut self, signed: bool) {
        let (x, to) = (self.element(0, 4), self.element(2, 8));
        let (zero, over, end) = (self.asm.label(), self.asm.label(), self.asm.label());
        let bits = Register::EAX;
        self.asm.rm(Code::Mov_r32_rm32, bits, x);
        self.asm.rr(Code::Mov_r32_rm32, Register::EDX, bits);
        self.asm.ri(Code::And_rm32_imm32, Register::EDX, 0x7fff_ffff);
        self.asm.ri(Code::Cmp_rm32_imm32, Register::EDX, 0x7f80_0000);
        self.asm.branch(Code::Jg_rel32_64, zero);
        let most = if signed { 0x5f00_0000 } else { 0x5f80_0000 };
        self.asm.ri(Code::Cmp_rm32_imm32, bits, most);
        self.asm.branch(Code::Jge_rel32_64, over);
        if signed {
            self.asm.rm(Code::VEX_Vcvttss2si_r64_xmmm32, A, x);
        } else {
            let small = self.asm.label();
            self.asm.rr(Code::Test_rm32_r32, bits, bits);
            self.asm.branch(Code::Js_rel32_64, zero);
            self.asm.ri(Code::Cmp_rm32_imm32, bits, 0x5f00_0000);
            self.asm.branch(Code::Jl_rel32_64, small);
            // From 2^63 to 2^64 the significand is 40 places up.
            self.asm.ri(Code::And_rm32_imm32, bits, 0x007f_ffff);
            self.asm.ri(Code::Or_rm32_imm32, bits, 0x0080_0000);
            self.asm.ri(Code::Shl_rm64_imm8, A, 40);
            self.asm.branch(Code::Jmp_rel32_64, end);
            self.asm.bind(small);
            self.asm.rm(Code::VEX_Vcvttss2si_r64_xmmm32, A, x);
        }
        self.asm.branch(Code::Jmp_rel32_64, end);
        self.asm.bind(over);
        self.asm.constant(A, if signed { i64::MAX } else { -1 });
        self.asm.branch(Code::Jmp_rel32_64, end);
        self.asm.bind(zero);
        self.asm.constant(A, 0);
        self.asm.bind(end);
        self.asm.mr(Code::Mov_rm64_r64, to, A);
    }
}
