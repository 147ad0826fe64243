//! One unit: registers, program counter, and a step.

use crate::units::vector::{Vector, add, mul, relu};
use ptoc_pim_stream::WordError;
use ptoc_pim_stream::crf::{Alu, ENTRIES, Instruction, Operand, OperandLocation, REGISTERS};

/// Steps of an instruction with automatic indices, and of FILL.
const REPEATS: u8 = 8;

/// A column command as a unit sees it: the banks that it serves, at the address of the command.
#[derive(Debug)]
pub struct ColumnAccess<'b> {
    /// Row of the command.
    pub row: u32,
    /// Column of the command.
    pub column: u32,
    /// A write command: the unit may drive the bank instead of reading it.
    pub write: bool,
    /// The burst of the even bank there; absent if the command does not open it.
    pub even: Option<&'b mut Vector>,
    /// The burst of the odd bank.
    pub odd: Option<&'b mut Vector>,
}

/// What a step did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepResult {
    /// Executed the instruction with this number.
    Executed(usize),
    /// The program has ended; the command did nothing.
    Idle,
}

/// Why a command cannot be executed. The program is wrong; nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HbmPimFault {
    /// The word is no instruction.
    Word(usize, WordError),
    /// Control ran past the last entry.
    PastEnd(usize),
    /// The instruction reads a bank on a write command, or writes one on a read command.
    Direction(usize, OperandLocation),
    /// The instruction uses a bank that the command does not address.
    Bank(usize, OperandLocation),
    /// Jumps alone, and no instruction that a command could step.
    Endless(usize),
}

/// A unit.
#[derive(Clone, Debug)]
pub struct HbmPimUnit {
    /// Vector registers A.
    pub grf_a: [Vector; REGISTERS as usize],
    /// Vector registers B.
    pub grf_b: [Vector; REGISTERS as usize],
    /// Scalars for products.
    pub srf_m: [u16; REGISTERS as usize],
    /// Scalars for sums.
    pub srf_a: [u16; REGISTERS as usize],
    crf: [u32; ENTRIES],
    pc: usize,
    /// Steps that the current instruction has taken.
    taken: u16,
    /// Rounds that each JUMP still has; `None` before its first.
    rounds: [Option<u32>; ENTRIES],
    a_out: Vector,
    m_out: Vector,
    ended: bool,
}

impl Default for HbmPimUnit {
    /// Registers 0, a program of NOPs.
    fn default() -> HbmPimUnit {
        HbmPimUnit {
            grf_a: Default::default(),
            grf_b: Default::default(),
            srf_m: Default::default(),
            srf_a: Default::default(),
            crf: [0; ENTRIES],
            pc: 0,
            taken: 0,
            rounds: [None; ENTRIES],
            a_out: Vector::default(),
            m_out: Vector::default(),
            ended: false,
        }
    }
}

impl HbmPimUnit {
    /// Writes eight words of the program, `burst` 0 to 3.
    pub fn write_crf(&mut self, burst: usize, words: [u32; 8]) {
        self.crf[8 * burst..8 * burst + 8].copy_from_slice(&words);
    }

    /// Writes the scalars: eight for products, then eight for sums.
    pub fn write_srf(&mut self, burst: Vector) {
        self.srf_m.copy_from_slice(&burst.0[..8]);
        self.srf_a.copy_from_slice(&burst.0[8..]);
    }

    /// Starts the program over. Registers stay.
    pub fn restart(&mut self) {
        (self.pc, self.taken, self.ended) = (0, 0, false);
        self.rounds = [None; ENTRIES];
    }

    /// The instruction with this number, if its word is one.
    pub fn instruction(&self, pc: usize) -> Option<Instruction> {
        self.at(pc).ok()
    }

    /// Whether the program has ended.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Executes the instruction that this column command steps.
    pub fn step(&mut self, mut access: ColumnAccess<'_>) -> Result<StepResult, HbmPimFault> {
        let before = (self.pc, self.rounds);
        let outcome = self.fetch().and_then(|found| match found {
            None => Ok(StepResult::Idle),
            Some(instruction) => self.execute(instruction, &mut access).map(|()| StepResult::Executed(self.pc)),
        });
        match outcome {
            Ok(StepResult::Executed(at)) => {
                self.advance(at);
                Ok(StepResult::Executed(at))
            }
            Ok(StepResult::Idle) => Ok(StepResult::Idle),
            Err(fault) => {
                (self.pc, self.rounds) = before;
                Err(fault)
            }
        }
    }

    fn at(&self, pc: usize) -> Result<Instruction, HbmPimFault> {
        let word = self.crf.get(pc).ok_or(HbmPimFault::PastEnd(pc))?;
        Instruction::decode(*word).map_err(|e| HbmPimFault::Word(pc, e))
    }

    /// Follows jumps, which take no time, to the next instruction; `None` after EXIT.
    fn fetch(&mut self) -> Result<Option<Instruction>, HbmPimFault> {
        let start = self.pc;
        // Without an instruction between them, jumps could go on for as many rounds as they count.
        for _ in 0..=ENTRIES {
            if self.ended {
                return Ok(None);
            }
            match self.at(self.pc)? {
                Instruction::Exit => self.ended = true,
                Instruction::Jump { count, offset } => {
                    let left = self.rounds[self.pc].unwrap_or(count);
                    if left == 0 {
                        self.rounds[self.pc] = None;
                        self.pc += 1;
                    } else {
                        self.rounds[self.pc] = Some(left - 1);
                        self.pc = self.pc.checked_sub(usize::from(offset)).ok_or(HbmPimFault::PastEnd(self.pc))?;
                    }
                }
                other => return Ok(Some(other)),
            }
        }
        Err(HbmPimFault::Endless(start))
    }

    /// After the instruction at `at` was executed once.
    fn advance(&mut self, at: usize) {
        let steps = match self.at(at) {
            Ok(Instruction::Nop { repeat }) => repeat + 1,
            Ok(Instruction::Alu { op, auto, .. }) if auto || op == Alu::Fill => u16::from(REPEATS),
            _ => 1,
        };
        self.taken += 1;
        if self.taken >= steps {
            (self.pc, self.taken) = (at + 1, 0);
        }
    }

    fn execute(&mut self, instruction: Instruction, access: &mut ColumnAccess<'_>) -> Result<(), HbmPimFault> {
        let Instruction::Alu { op, dst, a, b, auto, relu: with_relu } = instruction else { return Ok(()) };
        // An instruction that repeats takes its registers from the address.
        let auto = auto || op == Alu::Fill;
        let index = |o: Operand| register(o, op, auto, access.row, access.column);
        let (di, ai, bi) = (index(dst), index(a), b.map(index));
        let x = self.read(a, ai, access)?;
        let y = b.zip(bi).map(|(o, i)| self.read(o, i, access)).transpose()?.unwrap_or_default();
        let result = match op {
            Alu::Add => x.zip(y, add),
            Alu::Mul => x.zip(y, mul),
            Alu::Mac => {
                let old = self.read(dst, di, access)?;
                self.m_out = x.zip(y, mul);
                old.zip(self.m_out, add)
            }
            Alu::Mad => {
                self.m_out = x.zip(y, mul);
                let third = Vector::splat(self.srf_a[bi.unwrap_or(0)]);
                self.m_out.zip(third, add)
            }
            Alu::Mov if with_relu => x.zip(x, |v, _| relu(v)),
            Alu::Mov | Alu::Fill => x,
        };
        match op {
            Alu::Mul => self.m_out = result,
            Alu::Add | Alu::Mac | Alu::Mad => self.a_out = result,
            Alu::Mov | Alu::Fill => {}
        }
        self.write(dst, di, result, access)
    }

    fn read(&self, o: Operand, index: usize, access: &ColumnAccess<'_>) -> Result<Vector, HbmPimFault> {
        Ok(match o.place {
            OperandLocation::AOut => self.a_out,
            OperandLocation::MOut => self.m_out,
            OperandLocation::EvenBank | OperandLocation::OddBank => {
                let bank = if o.place == OperandLocation::EvenBank { &access.even } else { &access.odd };
                match bank {
                    None => return Err(HbmPimFault::Bank(self.pc, o.place)),
                    Some(_) if access.write => return Err(HbmPimFault::Direction(self.pc, o.place)),
                    Some(burst) => **burst,
                }
            }
            OperandLocation::GrfA => self.grf_a[index],
            OperandLocation::GrfB => self.grf_b[index],
            OperandLocation::SrfM => Vector::splat(self.srf_m[index]),
            OperandLocation::SrfA => Vector::splat(self.srf_a[index]),
        })
    }

    fn write(
        &mut self,
        o: Operand,
        index: usize,
        value: Vector,
        access: &mut ColumnAccess<'_>,
    ) -> Result<(), HbmPimFault> {
        match o.place {
            OperandLocation::GrfA => self.grf_a[index] = value,
            OperandLocation::GrfB => self.grf_b[index] = value,
            OperandLocation::SrfM => self.srf_m[index] = value.0[0],
            OperandLocation::SrfA => self.srf_a[index] = value.0[0],
            OperandLocation::EvenBank | OperandLocation::OddBank => {
                let bank = if o.place == OperandLocation::EvenBank { &mut access.even } else { &mut access.odd };
                match bank {
                    None => return Err(HbmPimFault::Bank(self.pc, o.place)),
                    Some(_) if !access.write => return Err(HbmPimFault::Direction(self.pc, o.place)),
                    Some(burst) => **burst = value,
                }
            }
            // No instruction that decodes has such a destination.
            OperandLocation::AOut | OperandLocation::MOut => {}
        }
        Ok(())
    }
}

/// The register of an operand: its own number, or, with automatic indices, the low three bits of the column. GRF_A of a
/// MAC is the vector that eight rows share, so it takes the next higher bits: bit 0 of the row above bits 4 and 3 of
/// the column.
pub(crate) fn register(o: Operand, op: Alu, auto: bool, row: u32, column: u32) -> usize {
    match auto {
        false => usize::from(o.index),
        true if op == Alu::Mac && o.place == OperandLocation::GrfA => ((row & 1) << 2 | column >> 3 & 3) as usize,
        true => (column & 7) as usize,
    }
}

#[cfg(test)]
mod tests;
