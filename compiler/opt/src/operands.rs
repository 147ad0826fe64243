//! Operands of an instruction by their place in its row of the table.

use ptoc_ir::tile::{Inst, Operand, TileRef, Value, ViewRef};

/// The operands of one instruction by kind. A row of the table fixes what stands where; the verifier has checked it.
pub struct Operands<'i> {
    inst: &'i Inst,
}

impl<'i> Operands<'i> {
    /// The operands of an instruction.
    pub fn new(inst: &'i Inst) -> Operands<'i> {
        Operands { inst }
    }

    /// Operand `n`, if it is a tile.
    pub fn tile(&self, n: usize) -> Option<TileRef> {
        match self.inst.operands.get(n) {
            Some(Operand::Tile(t)) => Some(*t),
            _ => None,
        }
    }

    /// Operand `n`, if it is a window of a tensor.
    pub fn view(&self, n: usize) -> Option<&'i ViewRef> {
        match self.inst.operands.get(n) {
            Some(Operand::View(v)) => Some(v),
            _ => None,
        }
    }

    /// Operand `n`, if it is a scalar.
    pub fn scalar(&self, n: usize) -> Option<Value> {
        match self.inst.operands.get(n) {
            Some(Operand::Scalar(v)) => Some(*v),
            _ => None,
        }
    }
}
