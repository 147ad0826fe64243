//! The function of a nest: parameters, rows, steps, the last lanes.
//!
//! It follows the System V convention, as Cranelift's functions do, and leaves the upper halves of the vector
//! registers clean (`vzeroupper`), since Cranelift's own code is slow when they are not.

use super::Isa;
use super::alloc::{Allocated, allocate};
use super::asm::{Asm, Encoded, Label, at, at_label, indexed, low};
use super::emit::{Emitter, INDEX, SCRATCH};
use super::frame::Frame;
use super::ops::VOp;
use super::program::{Class, Home, MemOperand, NestProgram};
use crate::nest::{FIRST_INPUT, Nest, RowStride};
use iced_x86::{Code, Instruction, Register};
use ptoc_ir::loops::LTy;
use ptoc_kernels::LINE;

/// Lanes in whole steps.
const END: Register = Register::R10;

/// Lanes of a row whose vectors may begin anywhere in a line and still go past the caches: with fewer, its first and
/// last line, which are written in part, cost more than reading all of them before they are written.
const LONG: i64 = 128;

/// How many rows ahead words are asked for: a factor that addresses have.
const AHEAD: u32 = 8;

/// Integer parameters, and floats.
const INTEGERS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
const FLOATS: u32 = 8;

pub(crate) fn function(nest: &Nest, program: &NestProgram) -> Result<Encoded, String> {
    let allocated = allocate(program);
    let isa = program.isa;
    let frame = Frame::new(nest, program, allocated.slots);
    let mut e = Emitter {
        asm: Asm::default(),
        isa,
        program,
        frame,
        pool: Vec::new(),
        non_temporal: 0,
        in_quarters: false,
        leaves: Vec::new(),
    };
    e.function(nest, &allocated);
    e.constants();
    e.asm.finish()
}

impl Emitter<'_> {
    fn function(&mut self, nest: &Nest, code: &Allocated) {
        self.asm.r(Code::Push_r64, Register::RBP);
        self.asm.rr(Code::Mov_r64_rm64, Register::RBP, Register::RSP);
        let saved = self.frame.saved();
        for register in saved {
            self.asm.r(Code::Push_r64, *register);
        }
        self.asm.ri(Code::And_rm64_imm8, Register::RSP, -64);
        self.asm.ri(Code::Sub_rm64_imm32, Register::RSP, self.frame.size as i32);
        self.parameters(nest);
        let exit = self.asm.label();
        let lanes = self.isa.lanes();
        // Nothing to do: not even what all lanes share may be read.
        for n in [self.frame.params.rows, self.frame.params.count].into_iter().flatten() {
            let slot = self.frame.param(n);
            self.asm.mi(Code::Cmp_rm64_imm32, slot, 0);
            self.asm.branch(Code::Jle_rel32_64, exit);
        }
        if nest.count.is_none_or(|n| n > 0) {
            self.before(nest, lanes);
            self.section(&code.once, lanes);
            if let Some(non_temporal) = self.frame.params.non_temporal {
                let (quarters, near) = (self.asm.label(), self.asm.label());
                let wanted = self.frame.param(non_temporal);
                self.asm.mi(Code::Cmp_rm64_imm32, wanted, 0);
                self.asm.branch(Code::Je_rel32_64, near);
                self.non_temporal = nest.non_temporal;
                self.unless_aligned(nest, LINE as i32, quarters);
                self.rows(nest, code, lanes);
                self.asm.branch(Code::Jmp_rel32_64, exit);
                self.asm.bind(quarters);
                if nest.count.is_none_or(|n| n >= LONG) || nest.rows {
                    self.unless_aligned(nest, 16, near);
                    self.unless_long(nest, near);
                    self.in_quarters = true;
                    self.rows(nest, code, lanes);
                    self.in_quarters = false;
                    self.asm.branch(Code::Jmp_rel32_64, exit);
                }
                self.non_temporal = 0;
                self.asm.bind(near);
            }
            self.rows(nest, code, lanes);
        }
        self.asm.bind(exit);
        let top = at(Register::RBP, -8 * saved.len() as i64);
        self.asm.rm(Code::Lea_r64_m, Register::RSP, top);
        for register in saved.iter().rev() {
            self.asm.r(Code::Pop_r64, *register);
        }
        self.asm.r(Code::Pop_r64, Register::RBP);
        self.asm.push(Instruction::with(Code::VEX_Vzeroupper));
        self.asm.push(Instruction::with(Code::Retnq));
    }

    /// Row after row.
    fn rows(&mut self, nest: &Nest, code: &Allocated, lanes: i64) {
        let head = self.asm.label();
        self.asm.bind(head);
        self.row(nest, code, lanes);
        if nest.rows {
            self.ask_ahead(nest);
            self.next_row(nest);
            let rows = self.frame.rows();
            self.asm.mi(Code::Sub_rm64_imm32, rows, 1);
            self.asm.branch(Code::Jne_rel32_64, head);
        }
    }

    /// Goes to `other` unless each row of what may go past the caches begins at a multiple of so many bytes: then
    /// every vector of a row is a line, or half of one, if that is a line's.
    fn unless_aligned(&mut self, nest: &Nest, bytes: i32, other: Label) {
        let [a, ..] = SCRATCH;
        let unit = i64::from(bytes);
        for (n, step) in (0..).zip(&nest.steps).filter(|(n, _)| *n < 64 && nest.non_temporal >> n & 1 != 0) {
            let pointer = self.pointer(n);
            self.asm.rr(Code::Mov_r64_rm64, a, pointer);
            match *step {
                RowStride::Const(bytes) if bytes % unit == 0 => {}
                RowStride::Const(_) => self.asm.constant(a, 1),
                RowStride::Reg(..) => {
                    let by = self.frame.step(n);
                    self.asm.rm(Code::Or_r64_rm64, a, by);
                }
            }
            self.asm.ri(Code::Test_rm64_imm32, a, bytes - 1);
            self.asm.branch(Code::Jne_rel32_64, other);
        }
    }

    /// Goes to `other` unless what may go past the caches has [`LONG`] lanes side by side: a row, or rows without gaps.
    fn unless_long(&mut self, nest: &Nest, other: Label) {
        let [a, ..] = SCRATCH;
        let long = self.asm.label();
        self.asm.ri(Code::Cmp_rm64_imm32, END, LONG as i32);
        self.asm.branch(Code::Jge_rel32_64, long);
        if !nest.rows {
            self.asm.branch(Code::Jmp_rel32_64, other);
        }
        for (n, step) in (0..).zip(&nest.steps).filter(|(n, _)| *n < 64 && nest.non_temporal >> n & 1 != 0) {
            self.asm.rr(Code::Mov_r64_rm64, a, END);
            self.asm.ri(Code::Shl_rm64_imm8, a, 2);
            match *step {
                // A step that no instruction holds is of no row this short.
                RowStride::Const(bytes) => self.asm.ri(Code::Cmp_rm64_imm32, a, i32::try_from(bytes).unwrap_or(-1)),
                RowStride::Reg(..) => {
                    let by = self.frame.step(n);
                    self.asm.rm(Code::Cmp_r64_rm64, a, by);
                }
            }
            self.asm.branch(Code::Jne_rel32_64, other);
        }
        self.asm.bind(long);
    }

    /// Every parameter to its word of the frame; pointers to registers.
    fn parameters(&mut self, nest: &Nest) {
        let first_input = self.frame.params.inputs;
        let ty = |n: u32| match n.checked_sub(first_input) {
            Some(input) => nest.regs[(FIRST_INPUT + input) as usize],
            None => LTy::I64,
        };
        let (mut integers, mut floats, mut stacked) = (0, 0, 0);
        let mut late = Vec::new();
        for n in 0..self.frame.params.count_all {
            let slot = self.frame.param(n);
            let float = ty(n) == LTy::F32;
            if float && floats < FLOATS {
                self.asm.mr(Code::VEX_Vmovss_m32_xmm, slot, Register::XMM0 + floats);
                floats += 1;
            } else if !float && integers < INTEGERS.len() {
                self.asm.mr(Code::Mov_rm64_r64, slot, INTEGERS[integers]);
                integers += 1;
            } else {
                late.push((slot, stacked));
                stacked += 1;
            }
        }
        for (slot, n) in late {
            // Above the caller's frame pointer and the return address.
            self.asm.rm(Code::Mov_r64_rm64, SCRATCH[0], at(Register::RBP, 16 + 8 * n));
            self.asm.mr(Code::Mov_rm64_r64, slot, SCRATCH[0]);
        }
        for n in first_input..self.frame.params.count_all {
            if ty(n) == LTy::Bool {
                // Only its low byte is the caller's.
                let slot = self.frame.param(n);
                self.asm.rm(Code::Movzx_r32_rm8, Register::EAX, slot);
                self.asm.mr(Code::Mov_rm64_r64, slot, Register::RAX);
            }
        }
        for n in 0..nest.steps.len() as u32 {
            if let Some(register) = self.frame.pointer(n) {
                let slot = self.frame.pointer_slot(n);
                self.asm.rm(Code::Mov_r64_rm64, register, slot);
            }
        }
    }

    /// What is the same in all rows: counts, steps, the tail's mask.
    fn before(&mut self, nest: &Nest, lanes: i64) {
        let [a, b, count] = SCRATCH;
        for (n, step) in nest.steps.iter().enumerate() {
            if let RowStride::Reg(reg, factor) = *step {
                let from = self.frame.param(self.frame.params.steps + reg.as_u32());
                self.asm.constant(a, factor);
                self.asm.try_push(Instruction::with2(Code::Imul_r64_rm64, a, from));
                let to = self.frame.step(n as u32);
                self.asm.mr(Code::Mov_rm64_r64, to, a);
            }
        }
        self.flatten(nest);
        let active = self.frame.active();
        match (nest.count, self.frame.params.count) {
            (None, Some(n)) => {
                let slot = self.frame.param(n);
                self.asm.rm(Code::Mov_r64_rm64, END, slot);
                self.asm.rr(Code::Mov_r64_rm64, count, END);
                self.asm.ri(Code::And_rm64_imm8, END, -(lanes as i32));
                self.asm.ri(Code::And_rm64_imm8, count, lanes as i32 - 1);
            }
            (known, _) => {
                let n = known.unwrap_or(0);
                self.asm.constant(END, n / lanes * lanes);
                self.asm.constant(count, n % lanes);
            }
        }
        self.asm.mr(Code::Mov_rm64_r64, active, count);
        if let Some(n) = self.frame.params.rows {
            let (from, to) = (self.frame.param(n), self.frame.rows());
            self.asm.rm(Code::Mov_r64_rm64, a, from);
            self.asm.mr(Code::Mov_rm64_r64, to, a);
        }
        if self.program.tail.is_empty() {
            return;
        }
        if self.isa == Isa::Avx512 {
            let low = low(a);
            self.asm.constant(a, 1);
            self.asm.rr(Code::Shl_rm32_CL, low, Register::CL);
            self.asm.ri(Code::Sub_rm32_imm32, low, 1);
            self.asm.rr(Code::VEX_Kmovw_kr_r32, Register::K7, low);
            self.asm.ri(Code::Shr_rm32_imm8, low, 8);
            self.asm.rr(Code::VEX_Kmovw_kr_r32, Register::K6, low);
        } else {
            // A window into lanes of -1 followed by lanes of 0.
            let table = self.asm.label();
            self.pool.push((Home::Tail, table));
            self.asm.rm(Code::Lea_r64_m, b, at_label(table));
            self.asm.r(Code::Neg_rm64, count);
            let window = indexed(b, count, 4, 32);
            self.load(VOp::Load, 0, window);
            let to = self.frame.tail();
            self.store(VOp::Store, to, 0);
        }
    }

    fn row(&mut self, nest: &Nest, code: &Allocated, lanes: i64) {
        self.asm.constant(INDEX, 0);
        self.section(&code.row, lanes);
        let (tail, done, end) = (self.asm.label(), self.asm.label(), self.asm.label());
        if let Some([fill, ..]) = code.ending.as_ref().filter(|_| code.turn.is_none() || code.sums.is_empty()) {
            self.section(fill, lanes);
        }
        self.turns(nest, code, lanes, end);
        let turns = self.program.turn.as_ref().filter(|_| code.turn.is_some()).map_or(i64::MAX, |turn| turn.lanes);
        if nest.count.is_none_or(|n| n % turns >= lanes) {
            if nest.count.is_none() {
                self.asm.rr(Code::Cmp_r64_rm64, INDEX, END);
                self.asm.branch(Code::Jge_rel32_64, tail);
            }
            let head = self.asm.label();
            self.asm.bind(head);
            self.section(&code.main, lanes);
            self.asm.ri(Code::Add_rm64_imm32, INDEX, lanes as i32);
            if nest.count.is_none_or(|n| n % turns / lanes > 1) {
                self.asm.rr(Code::Cmp_r64_rm64, INDEX, END);
                self.asm.branch(Code::Jl_rel32_64, head);
            }
        }
        self.asm.bind(tail);
        if nest.count.is_none_or(|n| n % lanes != 0) {
            if nest.count.is_none() {
                let active = self.frame.active();
                self.asm.mi(Code::Cmp_rm64_imm32, active, 0);
                self.asm.branch(Code::Je_rel32_64, done);
            }
            self.section(&code.tail, lanes);
        }
        self.asm.bind(done);
        if let Some([_, _, of_memory]) = &code.ending {
            self.section(of_memory, lanes);
        }
        self.asm.bind(end);
    }

    /// Several steps at once, as long as there are lanes for all of them. A row that has its partials in registers, and
    /// no lanes left, ends here, and goes on with `end`.
    fn turns(&mut self, nest: &Nest, code: &Allocated, lanes: i64, end: Label) {
        let (Some(steps), Some(turn)) = (&code.turn, &self.program.turn) else { return };
        let all = turn.lanes as i32;
        let (few, short) = (self.asm.label(), self.asm.label());
        let ending = code.ending.as_ref().filter(|_| !code.sums.is_empty());
        if nest.count.is_none() {
            self.asm.ri(Code::Cmp_rm64_imm32, END, all);
            self.asm.branch(Code::Jl_rel32_64, if ending.is_some() { short } else { few });
        }
        for (sum, &register) in turn.sums.iter().zip(&code.sums) {
            if let Some(ending) = &self.program.ending {
                self.fill(register, Class::Vector, Home::Const(ending.identity));
                continue;
            }
            let from = at(self.pointer(sum.pointer), i64::from(sum.disp));
            self.load(VOp::Load, register, from);
        }
        let (head, done) = (self.asm.label(), self.asm.label());
        self.asm.bind(head);
        self.section(steps, lanes);
        self.asm.bind(done);
        self.asm.ri(Code::Add_rm64_imm32, INDEX, all);
        let [a, ..] = SCRATCH;
        self.asm.rm(Code::Lea_r64_m, a, at(INDEX, i64::from(all)));
        self.asm.rr(Code::Cmp_r64_rm64, a, END);
        self.asm.branch(Code::Jle_rel32_64, head);
        self.whole(code, lanes, done, few);
        let left = self.asm.label();
        if let Some([_, of_sums, _]) = ending {
            self.asm.rr(Code::Cmp_r64_rm64, INDEX, END);
            self.asm.branch(Code::Jne_rel32_64, left);
            let active = self.frame.active();
            self.asm.mi(Code::Cmp_rm64_imm32, active, 0);
            self.asm.branch(Code::Jne_rel32_64, left);
            self.section(of_sums, lanes);
            self.asm.branch(Code::Jmp_rel32_64, end);
        }
        self.asm.bind(left);
        for (sum, &register) in turn.sums.iter().zip(&code.sums) {
            let to = at(self.pointer(sum.pointer), i64::from(sum.disp));
            self.store(VOp::Store, to, register);
        }
        if let Some([fill, ..]) = ending {
            self.asm.branch(Code::Jmp_rel32_64, few);
            self.asm.bind(short);
            self.section(fill, lanes);
        }
        self.asm.bind(few);
    }

    /// What a turn's guards lead to: its whole steps from a group on. What is before has stored its results, the
    /// guard's group nothing.
    fn whole(&mut self, code: &Allocated, lanes: i64, done: Label, few: Label) {
        let leaves = std::mem::take(&mut self.leaves);
        if leaves.is_empty() {
            return;
        }
        self.asm.branch(Code::Jmp_rel32_64, few);
        for (n, group) in code.whole.iter().enumerate() {
            leaves.iter().filter(|leave| leave.0 == n).for_each(|leave| self.asm.bind(leave.1));
            self.section(group, lanes);
        }
        self.asm.branch(Code::Jmp_rel32_64, done);
    }

    /// Asks for the words of half bytes of a row to come: rows of them are short, and far from each other.
    fn ask_ahead(&mut self, nest: &Nest) {
        let steps = self.program.main.iter().filter_map(|ins| ins.place);
        let mut words: Vec<u32> = steps
            .filter_map(|p| if let MemOperand::Words { pointer, .. } = p { Some(pointer) } else { None })
            .collect();
        words.dedup();
        for n in words {
            let [_, by, _] = SCRATCH;
            match nest.steps[n as usize] {
                RowStride::Const(bytes) => self.asm.constant(by, bytes),
                RowStride::Reg(..) => {
                    let step = self.frame.step(n);
                    self.asm.rm(Code::Mov_r64_rm64, by, step);
                }
            }
            let row = self.pointer(n);
            self.asm.try_push(Instruction::with1(Code::Prefetcht0_m8, indexed(row, by, AHEAD, 0)));
        }
    }

    fn next_row(&mut self, nest: &Nest) {
        for (n, step) in (0..).zip(&nest.steps) {
            let register = self.frame.pointer(n);
            let to = register.unwrap_or(SCRATCH[0]);
            let slot = self.frame.pointer_slot(n);
            if *step == RowStride::Const(0) {
                continue;
            }
            if register.is_none() {
                self.asm.rm(Code::Mov_r64_rm64, to, slot);
            }
            match *step {
                RowStride::Const(bytes) => self.asm.add(to, bytes, SCRATCH[1]),
                RowStride::Reg(..) => {
                    let by = self.frame.step(n);
                    self.asm.rm(Code::Add_r64_rm64, to, by);
                }
            }
            if register.is_none() {
                self.asm.mr(Code::Mov_rm64_r64, slot, to);
            }
        }
    }

    /// The pool.
    fn constants(&mut self) {
        for (home, label) in std::mem::take(&mut self.pool) {
            let bytes: Vec<u8> = match home {
                Home::Const(bits) => bits.to_le_bytes().to_vec(),
                Home::ConstQ(bits) => bits.to_le_bytes().to_vec(),
                Home::Table(n) => self.program.tables[n as usize].iter().flat_map(|w| w.to_le_bytes()).collect(),
                Home::Tail => (0..16).flat_map(|n| (if n < 8 { u32::MAX } else { 0 }).to_le_bytes()).collect(),
                Home::Param(_) | Home::ParamQ(_) | Home::Slot(_) => continue,
            };
            self.asm.data(label, &bytes);
        }
    }
}
