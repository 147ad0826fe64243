//! Dispatch of PTO instructions by their meaning.

use super::Lower;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::{Inst, Operand, TileRef, Value, ViewRef};
use ptoc_isa::Sem;

/// The operands of one instruction by kind. A row of the table fixes what stands where; the verifier has checked it.
pub(super) struct Operands<'i> {
    inst: &'i Inst,
}

impl Operands<'_> {
    pub(super) fn tile(&self, n: usize) -> Option<TileRef> {
        match self.inst.operands.get(n) {
            Some(Operand::Tile(t)) => Some(*t),
            _ => None,
        }
    }

    pub(super) fn view(&self, n: usize) -> Option<&ViewRef> {
        match self.inst.operands.get(n) {
            Some(Operand::View(v)) => Some(v),
            _ => None,
        }
    }

    pub(super) fn scalar(&self, n: usize) -> Option<Value> {
        match self.inst.operands.get(n) {
            Some(Operand::Scalar(v)) => Some(*v),
            _ => None,
        }
    }
}

impl Lower<'_> {
    pub(super) fn inst(&mut self, inst: &Inst) {
        if self.inst_of_table(inst).is_none() {
            let row = inst.instr.get();
            let message = format!("`{}` does not have the operands that its row of the table demands", row.name);
            self.errors.push(Diagnostic::error(codes::LOWERING_FAILED, self.code.span, message));
        }
    }

    fn inst_of_table(&mut self, inst: &Inst) -> Option<()> {
        let o = Operands { inst };
        match inst.instr.get().sem {
            // A constant address is part of the tile, a run-time one is `Op::Assign`.
            Sem::Assign => {}
            Sem::Load => self.load(&o.tile(0)?, o.view(1)?),
            Sem::Store => self.store(o.view(0)?, &o.tile(1)?, inst.attrs.atomic_add),
            Sem::Move => self.movement(&o.tile(0)?, &o.tile(1)?),
            Sem::Binary(op) => self.binary(op, &o.tile(0)?, &o.tile(1)?, &o.tile(2)?),
            Sem::BinaryScalar(op) => {
                self.binary_scalar(op, &o.tile(0)?, &o.tile(1)?, o.scalar(2)?, inst.attrs.reversed);
            }
            Sem::Unary(op) => self.unary(op, &o.tile(0)?, &o.tile(1)?),
            Sem::Expand => self.expand(&o.tile(0)?, o.scalar(1)?),
            Sem::Convert => self.convert(&o.tile(0)?, &o.tile(1)?, &inst.attrs),
            Sem::Compare => self.compare(&o.tile(0)?, &o.tile(1)?, &o.tile(2)?, &inst.attrs),
            Sem::Select => self.select(&o.tile(0)?, &o.tile(1)?, &o.tile(2)?, &o.tile(3)?),
            // Sums of units in memory, which are not lowered to loops.
            Sem::RowReduce(_) | Sem::ColReduce(_) if inst.attrs.stepwise => return None,
            Sem::RowReduce(op) => self.row_reduce(op, &o.tile(0)?, &o.tile(1)?),
            Sem::ColReduce(op) => self.col_reduce(op, &o.tile(0)?, &o.tile(1)?),
            Sem::RowExpand => self.row_expand(&o.tile(0)?, &o.tile(1)?),
            Sem::RowExpandBinary(op) => self.row_expand_binary(op, &o.tile(0)?, &o.tile(1)?, &o.tile(2)?),
            Sem::ColExpand => self.col_expand(&o.tile(0)?, &o.tile(1)?),
            Sem::ColExpandBinary(op) => self.col_expand_binary(op, &o.tile(0)?, &o.tile(1)?, &o.tile(2)?),
            Sem::Transpose => self.transpose(&o.tile(0)?, &o.tile(1)?),
            Sem::Matmul => self.matmul(&o.tile(0)?, None, None, &o.tile(1)?, &o.tile(2)?),
            Sem::MatmulAcc => self.matmul(&o.tile(0)?, Some(&o.tile(1)?), None, &o.tile(2)?, &o.tile(3)?),
            Sem::MatmulBias => self.matmul(&o.tile(0)?, None, Some(&o.tile(3)?), &o.tile(1)?, &o.tile(2)?),
            // Kernels for units in memory are not lowered to loops.
            Sem::Sample => return None,
            Sem::Gather => self.gather(&o.tile(0)?, o.view(1)?, &o.tile(2)?, &inst.attrs),
        }
        Some(())
    }
}
