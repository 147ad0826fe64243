//! A list of x86-64 instructions with labels, and its encoding.

use super::program::Origin;
use crate::listing::Mark;
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, IcedError, Instruction, InstructionBlock, MemoryOperand, Register,
};

/// A place in the code. Labels are the addresses that instructions pretend to have until they are encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label(u64);

#[derive(Default)]
pub(crate) struct Asm {
    list: Vec<Instruction>,
    labels: u64,
    /// The label of the next instruction.
    pending: Option<Label>,
    /// The first refusal of an operand: a defect of ours.
    error: Option<IcedError>,
    /// Instructions before the pool.
    code: Option<usize>,
    /// What the next instructions stem from.
    pub(crate) origin: Origin,
    /// Instructions from which on it is another.
    origins: Vec<(usize, Origin)>,
}

/// Encoded instructions.
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    /// How many are code rather than constants.
    pub(crate) code: usize,
    pub(crate) marks: Vec<Mark>,
}

/// The low half of a general register.
pub(crate) fn low(register: Register) -> Register {
    Register::EAX + (register as u32 - Register::RAX as u32)
}

/// Operands in memory.
pub(crate) fn at(base: Register, disp: i64) -> MemoryOperand {
    MemoryOperand::with_base_displ(base, disp)
}

pub(crate) fn indexed(base: Register, index: Register, scale: u32, disp: i64) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(base, index, scale, disp, 1)
}

/// What stands at a label.
pub(crate) fn at_label(label: Label) -> MemoryOperand {
    MemoryOperand::with_base_displ(Register::RIP, label.0 as i64)
}

impl Asm {
    pub(crate) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    /// The next instruction is at this label. An instruction has one, so a second label gets an instruction of its own.
    pub(crate) fn bind(&mut self, label: Label) {
        if self.pending.is_some() {
            self.push(Instruction::with(Code::Nopd));
        }
        self.pending = Some(label);
    }

    pub(crate) fn push(&mut self, mut instruction: Instruction) {
        if let Some(Label(ip)) = self.pending.take() {
            instruction.set_ip(ip);
        }
        if self.origins.last().and_then(|last| last.1.0) != self.origin.0 {
            self.origins.push((self.list.len(), self.origin));
        }
        self.list.push(instruction);
    }

    pub(crate) fn try_push(&mut self, instruction: Result<Instruction, IcedError>) {
        match instruction {
            Ok(instruction) => self.push(instruction),
            Err(why) => {
                self.error.get_or_insert(why);
            }
        }
    }

    pub(crate) fn branch(&mut self, code: Code, to: Label) {
        self.try_push(Instruction::with_branch(code, to.0));
    }

    pub(crate) fn rr(&mut self, code: Code, a: Register, b: Register) {
        self.try_push(Instruction::with2(code, a, b));
    }

    pub(crate) fn ri(&mut self, code: Code, a: Register, b: i32) {
        self.try_push(Instruction::with2(code, a, b));
    }

    pub(crate) fn rm(&mut self, code: Code, a: Register, b: MemoryOperand) {
        self.try_push(Instruction::with2(code, a, b));
    }

    pub(crate) fn mr(&mut self, code: Code, a: MemoryOperand, b: Register) {
        self.try_push(Instruction::with2(code, a, b));
    }

    pub(crate) fn mi(&mut self, code: Code, a: MemoryOperand, b: i32) {
        self.try_push(Instruction::with2(code, a, b));
    }

    pub(crate) fn r(&mut self, code: Code, a: Register) {
        self.try_push(Instruction::with1(code, a));
    }

    /// A 64-bit constant.
    pub(crate) fn constant(&mut self, to: Register, value: i64) {
        if value == 0 {
            let low = low(to);
            self.rr(Code::Xor_r32_rm32, low, low);
        } else if let Ok(short) = i32::try_from(value) {
            self.ri(Code::Mov_rm64_imm32, to, short);
        } else {
            self.try_push(Instruction::with2(Code::Mov_r64_imm64, to, value));
        }
    }

    /// `to += bytes`; `scratch` is for what an instruction cannot hold.
    pub(crate) fn add(&mut self, to: Register, bytes: i64, scratch: Register) {
        match i32::try_from(bytes) {
            Ok(0) => {}
            Ok(short) => self.ri(Code::Add_rm64_imm32, to, short),
            Err(_) => {
                self.constant(scratch, bytes);
                self.rr(Code::Add_r64_rm64, to, scratch);
            }
        }
    }

    /// Bytes behind the code.
    pub(crate) fn data(&mut self, label: Label, bytes: &[u8]) {
        self.code.get_or_insert(self.list.len());
        self.bind(label);
        for part in bytes.chunks(16) {
            self.try_push(Instruction::with_declare_byte(part));
        }
    }

    /// The bytes.
    pub(crate) fn finish(self) -> Result<Encoded, String> {
        if let Some(why) = self.error {
            return Err(why.to_string());
        }
        let data: usize =
            self.list[self.code.unwrap_or(self.list.len())..].iter().map(Instruction::declare_data_len).sum();
        let block = InstructionBlock::new(&self.list, 0);
        let encoded = BlockEncoder::encode(64, block, BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS)
            .map_err(|e| e.to_string())?;
        let code = encoded.code_buffer.len() - data;
        let offsets = &encoded.new_instruction_offsets;
        let marks = self.origins.iter().map(|(at, origin)| Mark { offset: offsets[*at], source: origin.0 }).collect();
        Ok(Encoded { bytes: encoded.code_buffer, code, marks })
    }
}
