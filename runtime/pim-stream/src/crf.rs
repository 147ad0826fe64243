//! Instruction words of an HBM-PIM unit (`spec/stream.md`): 32 bits each, 32 of them in the unit's CRF.
//!
//! | bits | arithmetic and moves | JUMP | NOP |
//! |---|---|---|---|
//! | 31:28 | operation | operation | operation |
//! | 27:25 | destination | count, 27:11 | |
//! | 24:22, 21:19, 18:16 | sources | | |
//! | 15 | indices from the address of the column | | |
//! | 12 | ReLU of the result | | |
//! | 11:8, 7:4, 3:0 | indices of destination and two sources | offset back, 10:0 | repeat, 10:0 |
//!
//! Bits without a meaning are 0. The text form is `MAC GRF_B[0], EVEN_BANK, GRF_A[0] auto`, `JUMP -1, 7`, `NOP 3`,
//! `EXIT`.

use crate::word::{Field, WordError, number, split};
use std::fmt;

/// Instructions that a unit's CRF holds.
pub const ENTRIES: usize = 32;
/// Registers of each of GRF_A and GRF_B, and of each half of the SRF.
pub const REGISTERS: u8 = 8;

/// Where an operand is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OperandLocation {
    /// Output of the adder.
    AOut,
    /// Output of the multiplier.
    MOut,
    /// The even bank of the unit, at the address of the column command.
    EvenBank,
    /// The odd one.
    OddBank,
    /// Vector register file A.
    GrfA,
    /// Vector register file B.
    GrfB,
    /// Scalars for multiplication.
    SrfM,
    /// Scalars for addition.
    SrfA,
}

impl OperandLocation {
    /// In the order of their codes.
    pub const ALL: [OperandLocation; 8] = [
        OperandLocation::AOut,
        OperandLocation::MOut,
        OperandLocation::EvenBank,
        OperandLocation::OddBank,
        OperandLocation::GrfA,
        OperandLocation::GrfB,
        OperandLocation::SrfM,
        OperandLocation::SrfA,
    ];

    /// The name in the text form.
    pub fn name(self) -> &'static str {
        ["A_OUT", "M_OUT", "EVEN_BANK", "ODD_BANK", "GRF_A", "GRF_B", "SRF_M", "SRF_A"][self as usize]
    }

    /// Whether it is a file of registers.
    pub fn is_file(self) -> bool {
        matches!(self, OperandLocation::GrfA | OperandLocation::GrfB | OperandLocation::SrfM | OperandLocation::SrfA)
    }
}

/// An operand: a place and, in a file, the register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Operand {
    /// The place.
    pub place: OperandLocation,
    /// Register of a file, below [`REGISTERS`]; 0 elsewhere.
    pub index: u8,
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.place.name())?;
        if self.place.is_file() { write!(f, "[{}]", self.index) } else { Ok(()) }
    }
}

/// An operation on vectors of 16 f16.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Alu {
    /// dst = a + b
    Add,
    /// dst = a * b
    Mul,
    /// dst = dst + a * b, rounded after the product and after the sum
    Mac,
    /// dst = a * b + c, with c in the same register of SRF_A as b is of SRF_M
    Mad,
    /// dst = a, or max(a, 0)
    Mov,
    /// dst = a, eight times
    Fill,
}

impl Alu {
    const ALL: [(Alu, u32, &'static str); 6] = [
        (Alu::Add, 1, "ADD"),
        (Alu::Mul, 2, "MUL"),
        (Alu::Mac, 3, "MAC"),
        (Alu::Mad, 4, "MAD"),
        (Alu::Mov, 8, "MOV"),
        (Alu::Fill, 9, "FILL"),
    ];

    fn row(self) -> &'static (Alu, u32, &'static str) {
        Alu::ALL.iter().find(|(a, ..)| *a == self).expect("every operation is in the table")
    }

    /// The mnemonic.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// Source operands: one or two.
    pub fn sources(self) -> usize {
        if matches!(self, Alu::Mov | Alu::Fill) { 1 } else { 2 }
    }
}

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Instruction {
    /// Waits for so many column commands beyond the first.
    Nop {
        /// Additional commands, at most 2047.
        repeat: u16,
    },
    /// Computes or moves.
    Alu {
        /// What.
        op: Alu,
        /// Destination.
        dst: Operand,
        /// First source.
        a: Operand,
        /// Second source, if the operation has one.
        b: Option<Operand>,
        /// Indices of registers come from the column address, and the instruction repeats eight times.
        auto: bool,
        /// The result is max(result, 0); of MOV only.
        relu: bool,
    },
    /// Goes back `offset` instructions, `count` times; takes no time.
    Jump {
        /// How many times, at most 131071.
        count: u32,
        /// Instructions back, at most 2047.
        offset: u16,
    },
    /// Ends the program.
    Exit,
}

const OPCODE: Field = Field::new("the operation", 28, 4);
const PLACES: [Field; 3] = [
    Field::new("the destination", 25, 3),
    Field::new("the first source", 22, 3),
    Field::new("the second source", 19, 3),
];
const INDICES: [Field; 3] = [
    Field::new("the index of the destination", 8, 4),
    Field::new("the index of the first source", 4, 4),
    Field::new("the index of the second source", 0, 4),
];
const AUTO: Field = Field::new("the bit for automatic indices", 15, 1);
const RELU: Field = Field::new("the bit for ReLU", 12, 1);
const COUNT: Field = Field::new("the count of a JUMP", 11, 17);
const LOW: Field = Field::new("the offset or repeat", 0, 11);

const NOP: u64 = 0;
const JUMP: u64 = 14;
const EXIT: u64 = 15;

impl Instruction {
    /// What is wrong with it by itself.
    pub fn check(&self) -> Result<(), WordError> {
        let conflict = |message: String| Err(WordError::Conflict(message));
        match *self {
            Instruction::Nop { repeat } => LOW.check(u64::from(repeat)),
            Instruction::Jump { count, offset } => {
                COUNT.check(u64::from(count))?;
                LOW.check(u64::from(offset))?;
                match offset {
                    0 => conflict("a JUMP to itself never ends: its offset is at least 1".into()),
                    _ => Ok(()),
                }
            }
            Instruction::Exit => Ok(()),
            Instruction::Alu { op, dst, a, b, relu, .. } => {
                if b.is_some() != (op.sources() == 2) {
                    return conflict(format!("{} has {} sources", op.name(), op.sources()));
                }
                for operand in [Some(dst), Some(a), b].into_iter().flatten() {
                    if operand.index >= if operand.place.is_file() { REGISTERS } else { 1 } {
                        return conflict(format!("{} has no register {}", operand.place.name(), operand.index));
                    }
                }
                let written = dst.place;
                if matches!(written, OperandLocation::AOut | OperandLocation::MOut) {
                    return conflict(format!("{} is not written by an instruction", written.name()));
                }
                if relu && op != Alu::Mov {
                    return conflict(format!("ReLU belongs to MOV, not to {}", op.name()));
                }
                Ok(())
            }
        }
    }

    /// The word of an instruction that [`Self::check`] accepts.
    pub fn encode(&self) -> Result<u32, WordError> {
        self.check()?;
        match *self {
            Instruction::Nop { repeat } => LOW.put(OPCODE.put(0, NOP)?, u64::from(repeat)),
            Instruction::Jump { count, offset } => {
                LOW.put(COUNT.put(OPCODE.put(0, JUMP)?, u64::from(count))?, u64::from(offset))
            }
            Instruction::Exit => OPCODE.put(0, EXIT),
            Instruction::Alu { op, dst, a, b, auto, relu } => {
                let mut word = OPCODE.put(0, u64::from(op.row().1))?;
                for (n, operand) in [Some(dst), Some(a), b].into_iter().enumerate() {
                    let Some(operand) = operand else { continue };
                    word = PLACES[n].put(word, operand.place as u64)?;
                    word = INDICES[n].put(word, u64::from(operand.index))?;
                }
                RELU.put(AUTO.put(word, u64::from(auto))?, u64::from(relu))
            }
        }
    }

    /// The instruction of a word.
    pub fn decode(word: u32) -> Result<Instruction, WordError> {
        let code = OPCODE.get(word);
        let decoded = match u64::from(code) {
            NOP => Instruction::Nop { repeat: LOW.get(word) as u16 },
            JUMP => Instruction::Jump { count: COUNT.get(word), offset: LOW.get(word) as u16 },
            EXIT => Instruction::Exit,
            _ => {
                let Some(&(op, ..)) = Alu::ALL.iter().find(|(_, c, _)| *c == code) else {
                    let known = "0 NOP, 1 ADD, 2 MUL, 3 MAC, 4 MAD, 8 MOV, 9 FILL, 14 JUMP, 15 EXIT";
                    return Err(WordError::Code { field: "the operation", value: u64::from(code), known });
                };
                let operand = |n: usize| Operand {
                    place: OperandLocation::ALL[PLACES[n].get(word) as usize],
                    index: INDICES[n].get(word) as u8,
                };
                let b = (op.sources() == 2).then(|| operand(2));
                let (auto, relu) = (AUTO.get(word) == 1, RELU.get(word) == 1);
                Instruction::Alu { op, dst: operand(0), a: operand(1), b, auto, relu }
            }
        };
        // What an instruction does not use is 0, so its word is the only one.
        let canonical = decoded.encode()?;
        match canonical == word {
            true => Ok(decoded),
            false => Err(WordError::Reserved {
                field: "bits that the operation does not use",
                value: u64::from(canonical ^ word),
            }),
        }
    }

    /// The instruction of a line of text.
    pub fn parse(line: &str) -> Result<Instruction, WordError> {
        let words = split(line);
        let mut rest = Words { words: &words, end: line.len() };
        let (at, name) = rest.next("an operation")?;
        let instruction = match name {
            "NOP" if rest.words.is_empty() => Instruction::Nop { repeat: 0 },
            "NOP" => Instruction::Nop { repeat: rest.small(LOW)? as u16 },
            "EXIT" => Instruction::Exit,
            "JUMP" => {
                let (place, text) = rest.next("an offset such as `-1`")?;
                let back = text.strip_prefix('-').ok_or_else(|| WordError::Text {
                    message: "a JUMP goes back: its offset begins with `-`".into(),
                    at: place,
                })?;
                let offset = number(place + 1, back)?;
                LOW.check(offset)?;
                rest.comma()?;
                Instruction::Jump { count: rest.small(COUNT)? as u32, offset: offset as u16 }
            }
            _ => {
                let Some(&(op, ..)) = Alu::ALL.iter().find(|(.., n)| *n == name) else {
                    return Err(WordError::Text { message: format!("`{name}` is no operation"), at });
                };
                let dst = rest.operand()?;
                rest.comma()?;
                let a = rest.operand()?;
                let b = match op.sources() {
                    2 => {
                        rest.comma()?;
                        Some(rest.operand()?)
                    }
                    _ => None,
                };
                let (auto, relu) = (rest.eat("auto"), rest.eat("relu"));
                Instruction::Alu { op, dst, a, b, auto, relu }
            }
        };
        if let Some(&(at, word)) = rest.words.first() {
            return Err(WordError::Text { message: format!("`{word}` is too much"), at });
        }
        instruction.check()?;
        Ok(instruction)
    }
}

/// What is left of a line.
struct Words<'w, 't> {
    words: &'w [(usize, &'t str)],
    end: usize,
}

impl<'t> Words<'_, 't> {
    fn next(&mut self, what: &str) -> Result<(usize, &'t str), WordError> {
        let Some((first, rest)) = self.words.split_first() else {
            return Err(WordError::Text { message: format!("{what} is missing"), at: self.end });
        };
        self.words = rest;
        Ok(*first)
    }

    fn eat(&mut self, word: &str) -> bool {
        let hit = self.words.first().is_some_and(|(_, w)| *w == word);
        if hit {
            self.words = &self.words[1..];
        }
        hit
    }

    fn comma(&mut self) -> Result<(), WordError> {
        let (at, word) = self.next("`,`")?;
        match word {
            "," => Ok(()),
            _ => Err(WordError::Text { message: format!("expected `,`, found `{word}`"), at }),
        }
    }

    fn small(&mut self, field: Field) -> Result<u64, WordError> {
        let (at, text) = self.next(field.name)?;
        let value = number(at, text)?;
        field.check(value)?;
        Ok(value)
    }

    /// `GRF_A[3]` or `EVEN_BANK`
    fn operand(&mut self) -> Result<Operand, WordError> {
        let (at, text) = self.next("an operand")?;
        let wrong = |message: String| WordError::Text { message, at };
        let (name, index) = match text.split_once('[') {
            None => (text, None),
            Some((name, rest)) => {
                let digits = rest.strip_suffix(']').ok_or_else(|| wrong(format!("`{text}` lacks its `]`")))?;
                (name, Some(number(at + name.len() + 1, digits)?))
            }
        };
        let place = OperandLocation::ALL.into_iter().find(|p| p.name() == name);
        let place = place.ok_or_else(|| wrong(format!("`{name}` is no operand")))?;
        if place.is_file() != index.is_some() {
            return Err(wrong(match place.is_file() {
                true => format!("{name} needs the number of a register: `{name}[0]`"),
                false => format!("{name} has no registers"),
            }));
        }
        let index = index.unwrap_or(0);
        match u8::try_from(index) {
            Ok(index) if index < REGISTERS => Ok(Operand { place, index }),
            _ => Err(wrong(format!("{name} has registers 0 to {}", REGISTERS - 1))),
        }
    }
}

impl fmt::Display for Instruction {
    /// What [`Instruction::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Instruction::Nop { repeat: 0 } => f.write_str("NOP"),
            Instruction::Nop { repeat } => write!(f, "NOP {repeat}"),
            Instruction::Jump { count, offset } => write!(f, "JUMP -{offset}, {count}"),
            Instruction::Exit => f.write_str("EXIT"),
            Instruction::Alu { op, dst, a, b, auto, relu } => {
                write!(f, "{} {dst}, {a}", op.name())?;
                if let Some(b) = b {
                    write!(f, ", {b}")?;
                }
                f.write_str(if *auto { " auto" } else { "" })?;
                f.write_str(if *relu { " relu" } else { "" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The fields by hand: operation 3, destination 5, sources 2 and 4, automatic.
    #[test]
    fn a_mac_by_hand() {
        let text = "MAC GRF_B[1], EVEN_BANK, GRF_A[7] auto";
        let mac = Instruction::parse(text).unwrap();
        let word = 3 << 28 | 5 << 25 | 2 << 22 | 4 << 19 | 1 << 15 | 1 << 8 | 7;
        assert_eq!(mac.encode(), Ok(word));
        assert_eq!(Instruction::decode(word), Ok(mac));
        assert_eq!(mac.to_string(), text);
    }

    #[test]
    fn control() {
        assert_eq!(Instruction::parse("JUMP -1, 7").unwrap().encode(), Ok(14 << 28 | 7 << 11 | 1));
        assert_eq!(Instruction::parse("NOP 23").unwrap().encode(), Ok(23));
        assert_eq!(Instruction::parse("EXIT").unwrap().encode(), Ok(15 << 28));
        assert_eq!(Instruction::decode(0), Ok(Instruction::Nop { repeat: 0 }));
    }

    #[test]
    fn words_that_are_no_instruction() {
        let says = |w: u32| Instruction::decode(w).unwrap_err().to_string();
        assert!(says(5 << 28).starts_with("the operation is 5: 0 NOP"));
        assert_eq!(says(15 << 28 | 4), "bits that the operation does not use must be 0, and is 0x4");
        assert_eq!(says(14 << 28 | 1 << 11), "a JUMP to itself never ends: its offset is at least 1");
        assert_eq!(says(1 << 28 | 4 << 25 | 15 << 8), "GRF_A has no register 15");
        assert_eq!(says(1 << 28 | 4 << 25 | 1 << 12), "ReLU belongs to MOV, not to ADD");
        assert_eq!(says(1 << 28), "A_OUT is not written by an instruction");
    }

    #[test]
    fn text_that_is_no_instruction() {
        let wrong = |line: &str| match Instruction::parse(line).unwrap_err() {
            WordError::Text { message, at } => format!("{at}: {message}"),
            other => other.to_string(),
        };
        assert_eq!(wrong(""), "0: an operation is missing");
        assert_eq!(wrong("SUB GRF_A[0], GRF_A[1], GRF_A[2]"), "0: `SUB` is no operation");
        assert_eq!(wrong("ADD GRF_A[0], GRF_A[9], GRF_A[2]"), "14: GRF_A has registers 0 to 7");
        assert_eq!(wrong("ADD GRF_A, GRF_A[1], GRF_A[2]"), "4: GRF_A needs the number of a register: `GRF_A[0]`");
        assert_eq!(wrong("ADD GRF_A[0], EVEN_BANK"), "23: `,` is missing");
        assert_eq!(wrong("JUMP 1, 3"), "5: a JUMP goes back: its offset begins with `-`");
        assert_eq!(wrong("NOP 4096"), "the offset or repeat is 0x1000, and has 11 bits: at most 0x7ff");
        assert_eq!(wrong("EXIT now"), "5: `now` is too much");
    }

    proptest! {
        #[test]
        fn every_word_that_decodes_is_its_own_encoding(word: u32, code in 0u32..16) {
            for word in [word, word & !(0xf << 28) | code << 28] {
                if let Ok(i) = Instruction::decode(word) {
                    prop_assert_eq!(i.encode(), Ok(word));
                    prop_assert_eq!(Instruction::parse(&i.to_string()), Ok(i));
                }
            }
        }

        #[test]
        fn instructions_round_trip(op in 0usize..6, places: [u8; 3], indices: [u8; 3], auto: bool, relu: bool) {
            let op = Alu::ALL[op].0;
            let operand = |n: usize| {
                let place = OperandLocation::ALL[usize::from(places[n] % 8)];
                Operand { place, index: if place.is_file() { indices[n] % 8 } else { 0 } }
            };
            let b = (op.sources() == 2).then(|| operand(2));
            let i = Instruction::Alu { op, dst: operand(0), a: operand(1), b, auto, relu: relu && op == Alu::Mov };
            if let Ok(word) = i.encode() {
                prop_assert_eq!(Instruction::decode(word), Ok(i));
            } else {
                let output = matches!(operand(0).place, OperandLocation::AOut | OperandLocation::MOut);
                prop_assert!(output);
            }
        }

        #[test]
        fn text_never_panics(text in "\\PC{0,40}|(MAC|MOV|JUMP|NOP)( \
            (GRF_A\\[[0-9]{0,3}\\]?|,|-?[0-9x]{1,9}|auto)){0,6}") {
            let _ = Instruction::parse(&text);
        }
    }
}
