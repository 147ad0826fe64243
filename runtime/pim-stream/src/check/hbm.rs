//! Column commands: bursts that exist, modes, words of programs.

use super::Wrong;
use super::{Checker, FaultKind, MOST, Said, Site, fault, mode_name};
use crate::crf::Instruction;
use crate::mode::{Control, Machine, PimMode, REGISTER_ROW, Register};
use crate::stream::*;

impl Checker<'_> {
    pub(super) fn exec(&mut self, step: usize, e: &Exec) -> Said {
        self.needs("hbm-pim", "exec")?;
        self.pchs(e)?;
        // Pseudo-channels in one state stay in one state.
        let mut machines: Vec<Machine> = Vec::new();
        for p in &e.pchs {
            let m = self.machines.get(p).cloned().unwrap_or_default();
            if !machines.contains(&m) {
                machines.push(m);
            }
        }
        let starts = machines.clone();
        for (n, op) in e.ops.iter().enumerate() {
            if let ColumnOp::Line(place) = op {
                self.known(Site::Op(step, n), *place);
            }
            let said = self.op(op, &mut machines);
            self.note(Site::Op(step, n), said);
            if self.faults.len() >= MOST {
                return Ok(());
            }
        }
        for p in &e.pchs {
            let start = self.machines.get(p).cloned().unwrap_or_default();
            let n = starts.iter().position(|m| *m == start).expect("every state is in the list");
            self.machines.insert(*p, machines[n].clone());
        }
        Ok(())
    }

    /// The pseudo-channels exist, in ascending order.
    pub(super) fn pchs(&self, e: &Exec) -> Said {
        if e.pchs.is_empty() {
            return fault(FaultKind::Place, "no pseudo-channel is named");
        }
        for (n, p) in e.pchs.iter().enumerate() {
            if u32::from(p.channel) >= self.g.channel || u32::from(p.pc) >= self.g.pch {
                let (c, n) = (self.g.channel, self.g.pch);
                return fault(
                    FaultKind::Place,
                    format!("there is no pseudo-channel {p}; the device has {c} channels of {n}"),
                );
            }
            if n > 0 && e.pchs[n - 1] >= *p {
                return fault(
                    FaultKind::Place,
                    format!("pseudo-channel {p} is not after {}: they ascend", e.pchs[n - 1]),
                );
            }
        }
        Ok(())
    }

    fn op(&self, op: &ColumnOp, machines: &mut [Machine]) -> Said {
        let (at, count, data) = match op {
            ColumnOp::Fence | ColumnOp::Line(_) => return Ok(()),
            ColumnOp::Aim(_) => return fault(FaultKind::Unit, "this command is for units of kind aim"),
            ColumnOp::Rd { at, count } => (at, *count, None),
            ColumnOp::Wr { at, count, data } => (at, *count, Some(data)),
        };
        self.burst(at, count)?;
        let bank = u32::from(at.bg) * self.g.bank + u32::from(at.bank);
        if let Some(Data::Tensor { tensor, offset }) = data {
            self.given(*tensor)?;
            let t = self.tensor(*tensor)?;
            let last = u64::from(count - 1) * BURST as u64;
            let bytes = t.bytes().unwrap_or(0);
            if offset.checked_add(last).is_none_or(|first| first >= bytes) {
                return fault(
                    FaultKind::Array,
                    format!(
                        "the last burst begins at byte {} of `{}`, which has {bytes}",
                        u128::from(*offset) + u128::from(last),
                        t.name
                    ),
                );
            }
        }
        for m in machines {
            let steps = m.steps(bank, at.row);
            let Some(data) = data else {
                continue;
            };
            match data {
                Data::Unit if !steps => {
                    return fault(
                        FaultKind::Program,
                        format!(
                            "no unit drives the banks in this write: the pseudo-channel is in {} mode",
                            mode_name(m)
                        ),
                    );
                }
                Data::Unit => continue,
                _ if steps => {
                    return fault(
                        FaultKind::Program,
                        "this write steps the units, which drive the banks: its data is `unit`",
                    );
                }
                _ => {}
            }
            for column in at.col..at.col + count {
                written(m, bank, at.row, column, data)?;
            }
        }
        Ok(())
    }

    /// The bursts exist.
    fn burst(&self, at: &Burst, count: u32) -> Said {
        let levels = [
            ("bank group", u32::from(at.bg), self.g.bg),
            ("bank", u32::from(at.bank), self.g.bank),
            ("row", at.row, self.g.row),
            ("column", at.col, self.g.col),
        ];
        for (what, value, bound) in levels {
            if value >= bound {
                return fault(FaultKind::Place, format!("{what} {value} is not below {bound}"));
            }
        }
        match count {
            0 => fault(FaultKind::Place, "a command occurs at least once"),
            _ if u64::from(at.col) + u64::from(count) > u64::from(self.g.col) => {
                let message = format!(
                    "x{count} from column {} passes the end of the row, which has {} columns",
                    at.col, self.g.col
                );
                let help =
                    format!("write at most `x{}`, and the others from column 0 of another row", self.g.col - at.col);
                Err(Wrong { kind: FaultKind::Place, message, help })
            }
            _ => Ok(()),
        }
    }
}

/// A write that steps no unit: what it does to the mode, and whether its words are instructions.
fn written(m: &mut Machine, bank: u32, row: u32, column: u32, data: &Data) -> Said {
    let special = matches!((m.mode(), row), (PimMode::AllBank | PimMode::AllBankPim, REGISTER_ROW));
    let bytes = match data {
        Data::Bytes(bytes) => bytes,
        // What is in an array is known only later, and must not change the mode.
        _ => {
            let configures = special && column == crate::mode::CONFIG_COLUMN;
            let switches = column == crate::mode::SWITCH_COLUMN
                && matches!(
                    (m.mode(), row),
                    (PimMode::SingleBank, crate::mode::ENTER_ROW) | (PimMode::AllBank, crate::mode::LEAVE_ROW)
                );
            return match configures || switches {
                true => fault(FaultKind::Program, "the data of a write that changes the mode stand in the stream"),
                false => Ok(()),
            };
        }
    };
    match m.write(bank, row, column, bytes) {
        Control::None if special => {
            fault(FaultKind::Program, format!("column {column} of row {row:#x} is no register of the units"))
        }
        Control::Register(Register::Crf(_)) => {
            for (n, four) in bytes.chunks_exact(4).enumerate() {
                let word = u32::from_le_bytes(four.try_into().expect("four bytes"));
                if let Err(e) = Instruction::decode(word) {
                    return fault(FaultKind::Program, format!("word {n}, {word:#010x}, is no instruction: {e}"));
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
