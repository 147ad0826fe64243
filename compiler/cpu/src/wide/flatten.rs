//! Loop collapsing: rows that follow one another without gaps are one long row.
//!
//! Whether they do is seen when the function runs: every pointer must move by a row's bytes. Lanes are independent only
//! within a row, so besides nothing that is stored may lie where another row reads or stores, unless it is the very
//! same element.

use super::emit::{Emitter, INDEX, SCRATCH};
use super::program::{Action, Copy, Gap, Ins, MemOperand, NestProgram};
use crate::nest::{Nest, RowStride};
use iced_x86::{Code, Instruction, MemoryOperand, Register};

/// A pointer and the bytes of its elements; 0 for what all lanes and rows share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stream {
    pointer: u32,
    size: u8,
    stored: bool,
}

/// The accesses of a nest whose rows may be joined; `None` if they never may.
fn streams(nest: &Nest, program: &NestProgram) -> Option<Vec<Stream>> {
    let mut all: Vec<Stream> = Vec::new();
    let mut note = |pointer, size, stored| match all.iter_mut().find(|s| s.pointer == pointer && s.size == size) {
        Some(known) => known.stored |= stored,
        None => all.push(Stream { pointer, size, stored }),
    };
    for ins in &program.row {
        match (ins.action, ins.place) {
            // Each row has its own pointers.
            (Action::Copy(_) | Action::Seek { .. }, _) => return None,
            (_, Some(MemOperand::Pointer { pointer, .. })) => {
                if nest.steps[pointer as usize] != RowStride::Const(0) {
                    return None;
                }
                note(pointer, 0, false);
            }
            _ => {}
        }
    }
    for ins in program.main.iter().chain(&program.tail) {
        match *ins {
            // A lane's number is that of its row.
            Ins { action: Action::Index { .. }, .. } => return None,
            Ins { action: Action::Copy(copy), .. } => {
                let Copy { pointer, disp: 0, gap: Gap::Const(gap), size, gather: false, store, .. } = copy else {
                    return None;
                };
                if gap != i64::from(size) {
                    return None;
                }
                note(pointer, size, store);
            }
            // So does its partial, and the word of its half byte.
            Ins { place: Some(MemOperand::Partials { .. } | MemOperand::Words { .. }), .. } => return None,
            Ins { place: Some(MemOperand::Pointer { pointer, scale, disp }), dst, .. } => {
                // 64-bit lanes take two registers.
                if disp != 0 && !(scale == 8 && disp == program.isa.bytes()) {
                    return None;
                }
                note(pointer, scale, dst.is_none());
            }
            _ => {}
        }
    }
    Some(all)
}

impl Emitter<'_> {
    /// Where a pointer is.
    fn pointer_operand(&self, n: u32) -> Result<Register, MemoryOperand> {
        self.frame.pointer(n).ok_or_else(|| self.frame.pointer_slot(n))
    }

    fn with_pointer(&mut self, register: Code, memory: Code, to: Register, n: u32) {
        match self.pointer_operand(n) {
            Ok(pointer) => self.asm.rr(register, to, pointer),
            Err(slot) => self.asm.rm(memory, to, slot),
        }
    }

    /// Makes one row of all, if they follow one another. The steps are in the frame already.
    pub(crate) fn flatten(&mut self, nest: &Nest) {
        let (Some(rows), Some(count)) = (self.frame.params.rows, self.frame.params.count) else { return };
        let Some(streams) = streams(nest, self.program) else { return };
        let (rows, count) = (self.frame.param(rows), self.frame.param(count));
        let [a, b, _] = SCRATCH;
        let (row, total) = (Register::R10, INDEX);
        let no = self.asm.label();
        self.asm.rm(Code::Mov_r64_rm64, row, count);
        self.asm.rr(Code::Mov_r64_rm64, total, row);
        self.asm.rm(Code::Imul_r64_rm64, total, rows);
        for stream in streams.iter().filter(|s| s.size > 0) {
            self.times(a, row, stream.size);
            match nest.steps[stream.pointer as usize] {
                RowStride::Const(bytes) => {
                    self.asm.constant(b, bytes);
                    self.asm.rr(Code::Cmp_r64_rm64, a, b);
                }
                RowStride::Reg(..) => {
                    let step = self.frame.step(stream.pointer);
                    self.asm.rm(Code::Cmp_r64_rm64, a, step);
                }
            }
            self.asm.branch(Code::Jne_rel32_64, no);
        }
        for (n, stored) in streams.iter().enumerate().filter(|(_, s)| s.stored) {
            for (m, other) in streams.iter().enumerate() {
                if n != m && !(other.stored && m < n) {
                    self.apart(*stored, *other, total, no);
                }
            }
        }
        self.asm.mr(Code::Mov_rm64_r64, count, total);
        self.asm.mi(Code::Mov_rm64_imm32, rows, 1);
        self.asm.bind(no);
    }

    /// `to = from * size`
    fn times(&mut self, to: Register, from: Register, size: u8) {
        self.asm.try_push(Instruction::with3(Code::Imul_r64_rm64_imm32, to, from, i32::from(size)));
    }

    /// Goes to `no` if the bytes of two streams overlap and are not the same elements.
    fn apart(&mut self, one: Stream, two: Stream, total: Register, no: super::asm::Label) {
        let [a, ..] = SCRATCH;
        let yes = self.asm.label();
        if one.size == two.size && one.pointer != two.pointer {
            self.with_pointer(Code::Mov_r64_rm64, Code::Mov_r64_rm64, a, one.pointer);
            self.with_pointer(Code::Cmp_r64_rm64, Code::Cmp_r64_rm64, a, two.pointer);
            self.asm.branch(Code::Je_rel32_64, yes);
        }
        for (last, first, otherwise) in [(one, two, false), (two, one, true)] {
            match last.size {
                0 => self.asm.constant(a, 8),
                size => self.times(a, total, size),
            }
            self.with_pointer(Code::Add_r64_rm64, Code::Add_r64_rm64, a, last.pointer);
            self.with_pointer(Code::Cmp_r64_rm64, Code::Cmp_r64_rm64, a, first.pointer);
            if otherwise {
                self.asm.branch(Code::Ja_rel32_64, no);
            } else {
                self.asm.branch(Code::Jbe_rel32_64, yes);
            }
        }
        self.asm.bind(yes);
    }
}
