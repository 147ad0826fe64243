//! Commands to AiM's units: rows and columns that exist, bytes of arrays, accumulators of banks that the exec names.

use super::{Checker, FaultKind, MOST, Said, Site, fault};
use crate::stream::*;
use crate::unit::UnitConfig;
use ptoc_tensor::DType;

impl Checker<'_> {
    pub(super) fn aim_exec(&mut self, step: usize, e: &Exec) -> Said {
        self.pchs(e)?;
        for (n, op) in e.ops.iter().enumerate() {
            let said = match op {
                ColumnOp::Fence => Ok(()),
                ColumnOp::Line(place) => {
                    self.known(Site::Op(step, n), *place);
                    Ok(())
                }
                ColumnOp::Rd { .. } | ColumnOp::Wr { .. } => {
                    fault(FaultKind::Unit, "`rd` and `wr` of single banks are for units of kind hbm-pim")
                }
                ColumnOp::Aim(op) => self.aim_op(e, op),
            };
            self.note(Site::Op(step, n), said);
            if self.faults.len() >= MOST {
                break;
            }
        }
        Ok(())
    }

    fn aim_op(&mut self, e: &Exec, op: &AimOp) -> Said {
        let UnitConfig::Aim(unit) = self.stream.unit else { return Ok(()) };
        let below = |what: &str, value: u64, bound: u64| match value < bound {
            true => Ok(()),
            false => fault(FaultKind::Place, format!("{what} {value} is not below {bound}")),
        };
        let columns = u64::from(self.g.col).min(u64::from(unit.buffer_bytes) / BURST as u64);
        match *op {
            AimOp::Close | AimOp::Clear | AimOp::Relu => Ok(()),
            AimOp::Open { row } => below("row", u64::from(row), u64::from(self.g.row)),
            AimOp::Mac { row, col, count } => {
                below("row", u64::from(row), u64::from(self.g.row))?;
                if count == 0 {
                    return fault(FaultKind::Place, "a command occurs at least once");
                }
                below("column", u64::from(col) + u64::from(count) - 1, columns)
            }
            AimOp::WriteBuffer { col, tensor, offset, bytes } => {
                self.given(tensor)?;
                let t = self.tensor(tensor)?;
                if bytes == 0 {
                    return fault(FaultKind::Array, "a write to the buffer brings at least a byte");
                }
                below("column", u64::from(col) + u64::from(bytes).div_ceil(BURST as u64) - 1, columns)?;
                self.inside(t, offset, u64::from(bytes))
            }
            AimOp::Read { tensor, offset, lanes: (first, count) } => {
                let t = self.tensor(tensor)?;
                let banks = e.pchs.len() as u64 * u64::from(self.g.banks_of_pch());
                if t.role == Role::In {
                    return fault(FaultKind::Array, format!("`{}` is in: the host does not take it", t.name));
                }
                if t.dtype != DType::BF16 {
                    return fault(FaultKind::Array, format!("`{}` is {}: accumulators are bf16", t.name, t.dtype));
                }
                if count == 0 {
                    return fault(FaultKind::Place, "one accumulator is read at least");
                }
                below("bank", u64::from(first) + u64::from(count) - 1, banks)?;
                let said = self.inside(t, offset, 2 * u64::from(count));
                self.host[tensor as usize] = true;
                said
            }
        }
    }

    /// These bytes are the array's.
    fn inside(&self, t: &TensorDecl, offset: u64, bytes: u64) -> Said {
        let all = t.bytes().unwrap_or(0);
        match offset.checked_add(bytes).is_some_and(|end| end <= all) {
            true => Ok(()),
            false => fault(
                FaultKind::Array,
                format!(
                    "bytes {offset} to {} of `{}`, which has {all}",
                    u128::from(offset) + u128::from(bytes),
                    t.name
                ),
            ),
        }
    }
}
