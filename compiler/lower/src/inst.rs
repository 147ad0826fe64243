//! Dispatch of PTO instructions by their meaning.

use super::Lower;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::Inst;
use ptoc_isa::{Reduce, Sem};
use ptoc_opt::operands::Operands;
use ptoc_opt::pattern::Pattern;

impl Lower<'_> {
    pub(super) fn inst(&mut self, inst: &Inst) {
        if self.inst_of_table(inst).is_none() {
            let row = inst.instr.get();
            let message = format!("`{}` does not have the operands that its row of the table demands", row.name);
            self.errors.push(Diagnostic::error(codes::LOWERING_FAILED, self.code.span, message));
        }
    }

    fn inst_of_table(&mut self, inst: &Inst) -> Option<()> {
        if let Some(pattern) = Pattern::of(inst) {
            self.elementwise(&pattern);
            return Some(());
        }
        let o = Operands::new(inst);
        match inst.instr.get().sem {
            // A constant address is part of the tile, a run-time one is `Op::Assign`.
            Sem::Assign => {}
            Sem::Store => self.update(inst.attrs.atomic?, o.view(0)?, &o.tile(1)?, inst.attrs.relu),
            // A hint.
            Sem::Prefetch => {}
            Sem::GatherRows => self.gather_rows(&o.tile(0)?, o.view(1)?, &o.tile(2)?, &inst.attrs),
            Sem::ScatterRows => self.scatter_rows(o.view(0)?, &o.tile(1)?, &o.tile(2)?, &inst.attrs),
            Sem::ScatterTo => self.scatter_to(o.view(0)?, &o.tile(1)?, &o.tile(2)?, &inst.attrs),
            // Sums of units in memory, which are not lowered to loops.
            Sem::RowReduce(_) | Sem::ColReduce(_) if inst.attrs.stepwise => return None,
            Sem::RowReduce(Reduce::Prod) => self.fold(Reduce::Prod, &o.tile(0)?, &o.tile(1)?, true),
            Sem::RowReduce(op) => self.row_reduce(op, &o.tile(0)?, &o.tile(1)?),
            Sem::ColReduce(op) => self.fold(op, &o.tile(0)?, &o.tile(1)?, false),
            Sem::Cells(cells) => self.cells(cells, inst)?,
            Sem::Fixpipe(f) => self.fixpipe(f, inst)?,
            Sem::Scatter => self.scatter(&o.tile(0)?, &o.tile(1)?, &o.tile(2)?),
            Sem::Named(named) => self.named(named, inst)?,
            Sem::RowArg(op) => self.arg(op, None, &o.tile(0)?, &o.tile(1)?, true),
            Sem::ColArg(op) => self.arg(op, None, &o.tile(0)?, &o.tile(1)?, false),
            Sem::RowArgValues(op) => {
                self.arg(op, Some(&o.tile(0)?), &o.tile(1)?, &o.tile(2)?, true);
            }
            Sem::Part(op) => self.part(op, &o.tile(0)?, &o.tile(1)?, &o.tile(2)?),
            Sem::PartArg(op) => {
                let tiles = [o.tile(0)?, o.tile(1)?, o.tile(2)?, o.tile(3)?, o.tile(4)?, o.tile(5)?];
                self.part_arg(op, &tiles);
            }
            Sem::Interleave => self.interleave(&o.tile(0)?, &o.tile(1)?, &o.tile(2)?, &o.tile(3)?),
            Sem::Deinterleave => self.deinterleave(&o.tile(0)?, &o.tile(1)?, &[o.tile(3)?, o.tile(2)?]),
            Sem::DeinterleaveOne => self.deinterleave(&o.tile(0)?, &o.tile(1)?, &[o.tile(2)?]),
            Sem::PairSum => self.pair_sum(&o.tile(0)?, &o.tile(1)?),
            Sem::Matmul => self.matmul(&o.tile(0)?, None, None, (&o.tile(1)?, &o.tile(2)?), &inst.attrs),
            Sem::MatmulAcc => {
                self.matmul(&o.tile(0)?, Some(&o.tile(1)?), None, (&o.tile(2)?, &o.tile(3)?), &inst.attrs);
            }
            Sem::MatmulBias => {
                self.matmul(&o.tile(0)?, None, Some(&o.tile(3)?), (&o.tile(1)?, &o.tile(2)?), &inst.attrs);
            }
            Sem::Gather => self.gather(&o.tile(0)?, o.view(1)?, &o.tile(2)?, &inst.attrs),
            // Patterns that lack an operand, and what only kernels for units in memory have.
            _ => return None,
        }
        Some(())
    }
}
