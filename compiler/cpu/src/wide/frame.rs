//! Stack frame and parameters: where a function keeps what: general registers, and the bytes of its frame.

use super::asm::at;
use super::program::NestProgram;
use crate::nest::Nest;
use iced_x86::{MemoryOperand, Register};

/// Registers for pointers; the last five belong to the caller, and are saved.
const POINTERS: [Register; 9] = [
    Register::RDI,
    Register::RSI,
    Register::R8,
    Register::R9,
    Register::RBX,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];
const FREE: usize = 4;

/// Parameters by number, as [`Nest::params`] has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Params {
    pub(crate) rows: Option<u32>,
    pub(crate) count: Option<u32>,
    pub(crate) pointers: u32,
    pub(crate) steps: u32,
    /// Whether to write past the caches.
    pub(crate) non_temporal: Option<u32>,
    pub(crate) inputs: u32,
    /// All of them.
    pub(crate) count_all: u32,
}

/// Offsets from the stack pointer.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) params: Params,
    /// Pointers of the nest; others are the program's own.
    pointers: u32,
    /// Of each pointer, its register.
    registers: Vec<Option<Register>>,
    vector: i64,
    slots: i64,
    words: i64,
    /// Bytes, a multiple of 64.
    pub(crate) size: i64,
}

/// Words behind the parameters.
const ACTIVE: i64 = 0;
const INDEX: i64 = 1;
const SCRATCH: i64 = 2;
const ROWS: i64 = 3;
const FIRST_STEP: i64 = 4;

/// Areas of 128 bytes, the tail's mask, and a saved register.
const AREA: i64 = 128;
const TAIL: i64 = 3 * AREA;
const SAVED: i64 = TAIL + 64;
const FIRST_SLOT: i64 = SAVED + 64;

impl Frame {
    pub(crate) fn new(nest: &Nest, program: &NestProgram, slots: u32) -> Frame {
        let mut next = 0;
        let mut take = |n: usize| {
            next += n as u32;
            next - n as u32
        };
        let rows = nest.rows.then(|| take(1));
        let count = nest.count.is_none().then(|| take(1));
        let pointers = take(nest.steps.len());
        let steps = take(nest.step_regs());
        let non_temporal = (nest.non_temporal != 0).then(|| take(1));
        let inputs = take(nest.inputs);
        let params = Params { rows, count, pointers, steps, non_temporal, inputs, count_all: next };
        let vector = i64::from(program.isa.bytes());
        let words = FIRST_SLOT + i64::from(slots) * vector;
        let pointers = nest.steps.len() as u32;
        let all = words + 8 * (i64::from(next) + FIRST_STEP + i64::from(pointers) + i64::from(program.seeks));
        Frame {
            params,
            pointers,
            registers: registers(program, pointers + program.seeks),
            vector,
            slots: FIRST_SLOT,
            words,
            size: (all + 63) / 64 * 64,
        }
    }

    fn word(&self, n: i64) -> MemoryOperand {
        at(Register::RSP, self.words + 8 * n)
    }

    pub(crate) fn param(&self, n: u32) -> MemoryOperand {
        self.word(i64::from(n))
    }

    fn extra(&self, n: i64) -> MemoryOperand {
        self.word(i64::from(self.params.count_all) + n)
    }

    /// Lanes of the tail.
    pub(crate) fn active(&self) -> MemoryOperand {
        self.extra(ACTIVE)
    }

    /// Where the lane that a step begins with is kept for a while.
    pub(crate) fn index(&self) -> MemoryOperand {
        self.extra(INDEX)
    }

    pub(crate) fn scratch(&self) -> MemoryOperand {
        self.extra(SCRATCH)
    }

    /// Rows still to do.
    pub(crate) fn rows(&self) -> MemoryOperand {
        self.extra(ROWS)
    }

    /// What moves a pointer from row to row, if it is not known.
    pub(crate) fn step(&self, pointer: u32) -> MemoryOperand {
        self.extra(FIRST_STEP + i64::from(pointer))
    }

    pub(crate) fn input(&self, n: u32) -> MemoryOperand {
        self.param(self.params.inputs + n)
    }

    pub(crate) fn area(&self, area: u8, disp: i32) -> MemoryOperand {
        at(Register::RSP, i64::from(area) * AREA + i64::from(disp))
    }

    pub(crate) fn tail(&self) -> MemoryOperand {
        at(Register::RSP, TAIL)
    }

    pub(crate) fn vector(&self) -> MemoryOperand {
        at(Register::RSP, SAVED)
    }

    pub(crate) fn slot(&self, n: u32) -> MemoryOperand {
        at(Register::RSP, self.slots + i64::from(n) * self.vector)
    }

    /// The register of a pointer, if it has one.
    pub(crate) fn pointer(&self, n: u32) -> Option<Register> {
        self.registers.get(n as usize).copied().flatten()
    }

    pub(crate) fn pointer_slot(&self, n: u32) -> MemoryOperand {
        match n.checked_sub(self.pointers) {
            None => self.param(self.params.pointers + n),
            Some(own) => self.extra(FIRST_STEP + i64::from(self.pointers + own)),
        }
    }

    /// Registers that the caller wants back.
    pub(crate) fn saved(&self) -> &'static [Register] {
        let used = self.registers.iter().flatten().count();
        if used > FREE { &POINTERS[FREE..used] } else { &[] }
    }
}

/// A register for each of `count` pointers as far as there are any; first come those that every step uses.
fn registers(program: &NestProgram, count: u32) -> Vec<Option<Register>> {
    let mut order: Vec<u32> = (0..count).collect();
    if order.len() > POINTERS.len() {
        order.sort_by_key(|n| !program.steps_through(*n));
    }
    let mut out = vec![None; order.len()];
    for (n, register) in order.into_iter().zip(POINTERS) {
        out[n as usize] = Some(register);
    }
    out
}
