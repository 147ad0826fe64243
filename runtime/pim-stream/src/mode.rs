//! Modes of an HBM-PIM pseudo-channel: who a command is for. They change by writes to reserved rows (`spec/stream.md`).
//!
//! [`Machine`] follows the writes; what they do to registers is the caller's business.

use crate::stream::BURST;
use std::ops::RangeInclusive;

/// Row whose writes, to four different banks, lead from SB to HAB.
pub const ENTER_ROW: u32 = 0x17ff;
/// Row whose writes, to two different banks, lead back.
pub const LEAVE_ROW: u32 = 0x1fff;
/// Column of both.
pub const SWITCH_COLUMN: u32 = 0x1f;
/// Row of the units' registers in HAB.
pub const REGISTER_ROW: u32 = 0x3fff;
/// Rows with this bit are reserved: their commands step no unit.
pub const RESERVED_BIT: u32 = 1 << 12;
/// Column of the units' configuration.
pub const CONFIG_COLUMN: u32 = 0;
/// Column of the scalars.
pub const SRF_COLUMN: u32 = 1;
/// Columns of the program.
pub const CRF_COLUMNS: RangeInclusive<u32> = 4..=7;
/// Columns of GRF_A.
pub const GRF_A_COLUMNS: RangeInclusive<u32> = 8..=15;
/// Columns of GRF_B.
pub const GRF_B_COLUMNS: RangeInclusive<u32> = 24..=31;

/// The mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PimMode {
    /// A command is for one bank, as in any DRAM.
    #[default]
    SingleBank,
    /// A command is for all even or all odd banks.
    AllBank,
    /// As before, and steps the units.
    AllBankPim,
}

/// Which banks' commands step the units.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Parity {
    /// Those of even banks.
    Even,
    /// Those of odd banks.
    Odd,
    /// Both.
    #[default]
    Both,
}

/// Registers that a write goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Register {
    /// The configuration: [`Config`].
    Config(Config),
    /// The scalars.
    Srf,
    /// So many eight words of the program, from 0.
    Crf(usize),
    /// GRF_A.
    GrfA(usize),
    /// GRF_B.
    GrfB(usize),
}

/// A write to the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Clear GRF_A.
    pub clear_a: bool,
    /// Clear GRF_B.
    pub clear_b: bool,
    /// The units begin to compute: every program starts over.
    pub restart: bool,
    /// The mode, if it changed.
    pub changed: Option<PimMode>,
}

/// What a column command to a reserved row did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Nothing: the row is not reserved in this mode, so the command is for the banks.
    None,
    /// It was taken as one of several writes that change the mode.
    Counted,
    /// It changed the mode.
    Changed(PimMode),
    /// It wrote registers of every unit.
    Register(Register),
}

/// The mode of a pseudo-channel and how far a change of it has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    mode: PimMode,
    parity: Parity,
    /// Banks that were written on the way to another mode.
    seen: Vec<u32>,
}

impl Machine {
    /// The mode.
    pub fn mode(&self) -> PimMode {
        self.mode
    }

    /// Which commands step the units in [`PimMode::AllBankPim`].
    pub fn parity(&self) -> Parity {
        self.parity
    }

    /// Whether a column command to this bank of the pseudo-channel and this row steps the units.
    pub fn steps(&self, bank: u32, row: u32) -> bool {
        let parity = match self.parity {
            Parity::Even => bank.is_multiple_of(2),
            Parity::Odd => !bank.is_multiple_of(2),
            Parity::Both => true,
        };
        self.mode == PimMode::AllBankPim && row & RESERVED_BIT == 0 && parity
    }

    /// A write of `data` to `bank`, `row`, `column`, which may be for the mode or for the units' registers.
    pub fn write(&mut self, bank: u32, row: u32, column: u32, data: &[u8; BURST]) -> Control {
        match self.mode {
            PimMode::SingleBank if (row, column) == (ENTER_ROW, SWITCH_COLUMN) => self.count(bank, 4, PimMode::AllBank),
            PimMode::AllBank if (row, column) == (LEAVE_ROW, SWITCH_COLUMN) => self.count(bank, 2, PimMode::SingleBank),
            PimMode::AllBank | PimMode::AllBankPim if row == REGISTER_ROW => match column {
                CONFIG_COLUMN => Control::Register(Register::Config(self.configure(data))),
                SRF_COLUMN => Control::Register(Register::Srf),
                c if CRF_COLUMNS.contains(&c) => Control::Register(Register::Crf((c - CRF_COLUMNS.start()) as usize)),
                c if GRF_A_COLUMNS.contains(&c) => {
                    Control::Register(Register::GrfA((c - GRF_A_COLUMNS.start()) as usize))
                }
                c if GRF_B_COLUMNS.contains(&c) => {
                    Control::Register(Register::GrfB((c - GRF_B_COLUMNS.start()) as usize))
                }
                _ => Control::None,
            },
            _ => {
                self.seen.clear();
                Control::None
            }
        }
    }

    fn count(&mut self, bank: u32, needed: usize, to: PimMode) -> Control {
        if !self.seen.contains(&bank) {
            self.seen.push(bank);
        }
        match self.seen.len() < needed {
            true => Control::Counted,
            false => {
                self.seen.clear();
                self.mode = to;
                Control::Changed(to)
            }
        }
    }

    /// Takes over a configuration. Byte 0: whether the units compute. Byte 16: whose commands step them (0 even, 1 odd,
    /// else both). Bytes 20 and 21: whether to clear GRF_A and GRF_B. Entering starts every program over.
    fn configure(&mut self, data: &[u8; BURST]) -> Config {
        self.parity = match data[16] {
            0 => Parity::Even,
            1 => Parity::Odd,
            _ => Parity::Both,
        };
        let restart = data[0] != 0 && self.mode == PimMode::AllBank;
        let to = if data[0] != 0 { PimMode::AllBankPim } else { PimMode::AllBank };
        let changed = (to != self.mode).then_some(to);
        self.mode = to;
        Config { clear_a: data[20] != 0, clear_b: data[21] != 0, restart, changed }
    }
}
