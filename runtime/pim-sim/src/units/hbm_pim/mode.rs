//! Modes of a pseudo-channel together with the units whose registers the writes of [`ptoc_pim_stream::mode`] reach.

use super::HbmPimUnit;
use crate::units::vector::{BYTES, Vector};
use ptoc_pim_stream::mode::{self, Register};

pub use ptoc_pim_stream::mode::{Parity, PimMode};

/// What a column command to a reserved row did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Nothing: the row is not reserved in this mode, so the command is for the banks.
    None,
    /// It was taken as one of several writes that change the mode.
    Counted,
    /// It changed the mode.
    Changed(PimMode),
    /// It wrote registers of every unit: operands.
    Registers,
    /// It wrote their programs or their configuration.
    Program,
}

/// The mode of a pseudo-channel and how far a change of it has come.
#[derive(Clone, Debug, Default)]
pub struct ModeMachine(mode::Machine);

impl ModeMachine {
    /// The mode.
    pub fn mode(&self) -> PimMode {
        self.0.mode()
    }

    /// Which commands step the units in [`PimMode::AllBankPim`].
    pub fn parity(&self) -> Parity {
        self.0.parity()
    }

    /// Whether a column command to this bank and row steps the units.
    pub fn steps(&self, bank: usize, row: u32) -> bool {
        // A pseudo-channel has at most 1024 banks.
        self.0.steps(bank as u32, row)
    }

    /// A write of `data` to `bank`, `row`, `column`, which may be for the mode or for the units' registers.
    pub fn write(
        &mut self,
        bank: usize,
        row: u32,
        column: u32,
        data: &[u8; BYTES],
        units: &mut [HbmPimUnit],
    ) -> Control {
        let vector = Vector::from_bytes(data);
        let register = match self.0.write(bank as u32, row, column, data) {
            mode::Control::None => return Control::None,
            mode::Control::Counted => return Control::Counted,
            mode::Control::Changed(to) => return Control::Changed(to),
            mode::Control::Register(register) => register,
        };
        match register {
            Register::Config(config) => {
                for unit in units {
                    if config.clear_a {
                        unit.grf_a = Default::default();
                    }
                    if config.clear_b {
                        unit.grf_b = Default::default();
                    }
                    if config.restart {
                        unit.restart();
                    }
                }
                return config.changed.map_or(Control::Program, Control::Changed);
            }
            Register::Crf(burst) => {
                let words =
                    std::array::from_fn(|i| u32::from_le_bytes(data[4 * i..4 * i + 4].try_into().expect("four bytes")));
                units.iter_mut().for_each(|u| u.write_crf(burst, words));
                return Control::Program;
            }
            Register::Srf => units.iter_mut().for_each(|u| u.write_srf(vector)),
            Register::GrfA(n) => units.iter_mut().for_each(|u| u.grf_a[n] = vector),
            Register::GrfB(n) => units.iter_mut().for_each(|u| u.grf_b[n] = vector),
        }
        Control::Registers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: [u8; BYTES] = [0; BYTES];

    #[test]
    fn the_way_in_and_out() {
        let mut m = ModeMachine::default();
        let mut units = vec![HbmPimUnit::default(); 8];
        for bank in [0, 4, 8] {
            assert_eq!(m.write(bank, 0x17ff, 0x1f, &ZERO, &mut units), Control::Counted);
        }
        assert_eq!(m.write(8, 0x17ff, 0x1f, &ZERO, &mut units), Control::Counted);
        assert_eq!(m.write(12, 0x17ff, 0x1f, &ZERO, &mut units), Control::Changed(PimMode::AllBank));
        assert_eq!(m.write(0, 100, 0, &ZERO, &mut units), Control::None);
        let on: [u8; BYTES] = std::array::from_fn(|i| u8::from(i == 0 || i == 16));
        assert_eq!(m.write(0, 0x3fff, 0, &on, &mut units), Control::Changed(PimMode::AllBankPim));
        assert_eq!(m.parity(), Parity::Odd);
        assert!(m.steps(1, 100) && !m.steps(2, 100) && !m.steps(1, 0x1000));
        assert_eq!(m.write(0, 0x3fff, 0, &ZERO, &mut units), Control::Changed(PimMode::AllBank));
        assert!(!m.steps(1, 100));
        assert_eq!(m.write(0, 0x1fff, 0x1f, &ZERO, &mut units), Control::Counted);
        assert_eq!(m.write(1, 0x1fff, 0x1f, &ZERO, &mut units), Control::Changed(PimMode::SingleBank));
    }

    #[test]
    fn another_write_starts_the_count_anew() {
        let mut m = ModeMachine::default();
        for bank in 0..3 {
            m.write(bank, 0x17ff, 0x1f, &ZERO, &mut []);
        }
        assert_eq!(m.write(0, 7, 7, &ZERO, &mut []), Control::None);
        assert_eq!(m.write(3, 0x17ff, 0x1f, &ZERO, &mut []), Control::Counted);
        assert_eq!(m.mode(), PimMode::SingleBank);
    }

    #[test]
    fn registers_of_every_unit() {
        let mut m = ModeMachine::default();
        let mut units = vec![HbmPimUnit::default(); 2];
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
