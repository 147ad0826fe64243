//! Modes of a pseudo-channel: who a command is for. They change by writes to reserved rows (pim.md section 2).

use super::Unit;
use crate::units::vector::{BYTES, Vector};

/// Row whose writes, to four different banks, lead from SB to HAB.
const ENTER_ROW: u32 = 0x17ff;
/// Row whose writes, to two different banks, lead back.
const LEAVE_ROW: u32 = 0x1fff;
/// Column of both.
const SWITCH_COLUMN: u32 = 0x1f;
/// Row of the units' registers in HAB.
const REGISTER_ROW: u32 = 0x3fff;
/// Rows with this bit are reserved: their commands step no unit.
const RESERVED_BIT: u32 = 1 << 12;

/// The mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
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

/// What a column command to a reserved row did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Nothing: the row is not reserved in this mode, so the command is for the banks.
    None,
    /// It was taken as one of several writes that change the mode.
    Counted,
    /// It changed the mode.
    Changed(Mode),
    /// It wrote registers of every unit.
    Registers,
}

/// The mode of a pseudo-channel and how far a change of it has come.
#[derive(Clone, Debug, Default)]
pub struct ModeMachine {
    mode: Mode,
    parity: Parity,
    /// Banks that were written on the way to another mode.
    seen: Vec<usize>,
}

impl ModeMachine {
    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Which commands step the units in [`Mode::AllBankPim`].
    pub fn parity(&self) -> Parity {
        self.parity
    }

    /// Does a column command to this bank and row step the units?
    pub fn steps(&self, bank: usize, row: u32) -> bool {
        let parity = match self.parity {
            Parity::Even => bank.is_multiple_of(2),
            Parity::Odd => !bank.is_multiple_of(2),
            Parity::Both => true,
        };
        self.mode == Mode::AllBankPim && row & RESERVED_BIT == 0 && parity
    }

    /// A write of `data` to `bank`, `row`, `column`, which may be for the mode or for the units' registers.
    pub fn write(&mut self, bank: usize, row: u32, column: u32, data: &[u8; BYTES], units: &mut [Unit]) -> Control {
        match self.mode {
            Mode::SingleBank if (row, column) == (ENTER_ROW, SWITCH_COLUMN) => self.count(bank, 4, Mode::AllBank),
            Mode::AllBank if (row, column) == (LEAVE_ROW, SWITCH_COLUMN) => self.count(bank, 2, Mode::SingleBank),
            Mode::AllBank | Mode::AllBankPim if row == REGISTER_ROW => self.register(column, data, units),
            _ => {
                self.seen.clear();
                Control::None
            }
        }
    }

    fn count(&mut self, bank: usize, needed: usize, to: Mode) -> Control {
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

    fn register(&mut self, column: u32, data: &[u8; BYTES], units: &mut [Unit]) -> Control {
        let vector = Vector::from_bytes(data);
        match column {
            0 => return self.configure(data, units),
            1 => units.iter_mut().for_each(|u| u.write_srf(vector)),
            4..=7 => {
                let words =
                    std::array::from_fn(|i| u32::from_le_bytes(data[4 * i..4 * i + 4].try_into().expect("four bytes")));
                units.iter_mut().for_each(|u| u.write_crf(column as usize - 4, words));
            }
            8..=15 => units.iter_mut().for_each(|u| u.grf_a[column as usize - 8] = vector),
            24..=31 => units.iter_mut().for_each(|u| u.grf_b[column as usize - 24] = vector),
            _ => return Control::None,
        }
        Control::Registers
    }

    /// Byte 0: do the units compute? Byte 16: whose commands step them (0 even, 1 odd, else both). Bytes 20 and 21: clear
    /// GRF_A and GRF_B. Entering starts every program over.
    fn configure(&mut self, data: &[u8; BYTES], units: &mut [Unit]) -> Control {
        self.parity = match data[16] {
            0 => Parity::Even,
            1 => Parity::Odd,
            _ => Parity::Both,
        };
        for unit in units {
            if data[20] != 0 {
                unit.grf_a = Default::default();
            }
            if data[21] != 0 {
                unit.grf_b = Default::default();
            }
            if data[0] != 0 && self.mode == Mode::AllBank {
                unit.restart();
            }
        }
        let to = if data[0] != 0 { Mode::AllBankPim } else { Mode::AllBank };
        let changed = to != self.mode;
        self.mode = to;
        if changed { Control::Changed(to) } else { Control::Registers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: [u8; BYTES] = [0; BYTES];

    #[test]
    fn the_way_in_and_out() {
        let mut m = ModeMachine::default();
        let mut units = vec![Unit::default(); 8];
        for bank in [0, 4, 8] {
            assert_eq!(m.write(bank, 0x17ff, 0x1f, &ZERO, &mut units), Control::Counted);
        }
        assert_eq!(m.write(8, 0x17ff, 0x1f, &ZERO, &mut units), Control::Counted);
        assert_eq!(m.write(12, 0x17ff, 0x1f, &ZERO, &mut units), Control::Changed(Mode::AllBank));
        assert_eq!(m.write(0, 100, 0, &ZERO, &mut units), Control::None);
        let on: [u8; BYTES] = std::array::from_fn(|i| u8::from(i == 0 || i == 16));
        assert_eq!(m.write(0, 0x3fff, 0, &on, &mut units), Control::Changed(Mode::AllBankPim));
        assert_eq!(m.parity(), Parity::Odd);
        assert!(m.steps(1, 100) && !m.steps(2, 100) && !m.steps(1, 0x1000));
        assert_eq!(m.write(0, 0x3fff, 0, &ZERO, &mut units), Control::Changed(Mode::AllBank));
        assert!(!m.steps(1, 100));
        assert_eq!(m.write(0, 0x1fff, 0x1f, &ZERO, &mut units), Control::Counted);
        assert_eq!(m.write(1, 0x1fff, 0x1f, &ZERO, &mut units), Control::Changed(Mode::SingleBank));
    }

    #[test]
    fn another_write_starts_the_count_anew() {
        let mut m = ModeMachine::default();
        for bank in 0..3 {
            m.write(bank, 0x17ff, 0x1f, &ZERO, &mut []);
        }
        assert_eq!(m.write(0, 7, 7, &ZERO, &mut []), Control::None);
        assert_eq!(m.write(3, 0x17ff, 0x1f, &ZERO, &mut []), Control::Counted);
        assert_eq!(m.mode(), Mode::SingleBank);
    }

    #[test]
    fn registers_of_every_unit() {
        let mut m = ModeMachine::default();
        let mut units = vec![Unit::default(); 2];
        for bank in 0..4 {
            m.write(bank, 0x17ff, 0x1f, &ZERO, &mut units);
        }
        let data: [u8; BYTES] = std::array::from_fn(|i| i as u8);
        for column in [1, 9, 31] {
            assert_eq!(m.write(0, 0x3fff, column, &data, &mut units), Control::Registers);
        }
        for u in &units {
            assert_eq!(u.grf_a[1], Vector::from_bytes(&data));
            assert_eq!(u.grf_b[7], Vector::from_bytes(&data));
            assert_eq!((u.srf_m[0], u.srf_a[7]), (0x0100, 0x1f1e));
        }
        let clear: [u8; BYTES] = std::array::from_fn(|i| u8::from(i == 20));
        m.write(0, 0x3fff, 0, &clear, &mut units);
        assert_eq!((units[0].grf_a[1], units[0].grf_b[7]), (Vector::default(), Vector::from_bytes(&data)));
        assert_eq!(m.write(0, 0x3fff, 2, &data, &mut units), Control::None);
    }
}
