//! Instructions that compute each element of their result from one element of each operand, as data: what is written,
//! what is read and under which indices, and the function. Reductions of rows have the same form up to their last step.

use super::operands::Operands;
use ptoc_ir::loops::{LTy, MemTy};
use ptoc_ir::tile::{Inst, Kernel, Op, Stmt, TileRef, Value, ViewRef};
pub use ptoc_isa::Read;
use ptoc_isa::{Expr, Order, Reduce, Sem};
use ptoc_tensor::DType;

/// Columns from which on partials (64 of them) are worth their way through memory, and most rows of them.
const WIDE: u32 = 128;
const MOST_ROWS: u32 = 128;

/// A window of a tile or of a tensor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum OperandWindow<'i> {
    /// Of a tile.
    Tile(TileRef),
    /// Of a tensor.
    View(&'i ViewRef),
}

impl OperandWindow<'_> {
    /// The window of a tile, if it is one.
    pub fn tile(&self) -> Option<&TileRef> {
        match self {
            OperandWindow::Tile(t) => Some(t),
            OperandWindow::View(_) => None,
        }
    }
}

/// What is written, and what is read for it.
#[derive(Clone, PartialEq, Debug)]
pub struct Pattern<'i> {
    /// The instruction.
    pub inst: &'i Inst,
    /// What is written.
    pub dst: OperandWindow<'i>,
    /// What is read, and under which indices.
    pub srcs: Vec<(OperandWindow<'i>, Read)>,
    /// The elements of a row become one of the result by this.
    pub fold: Option<Reduce>,
}

impl<'i> Pattern<'i> {
    /// The pattern of an instruction; `None` if it is none of this kind, or has not the operands that its row of the
    /// table demands.
    pub fn of(inst: &'i Inst) -> Option<Pattern<'i>> {
        let o = Operands::new(inst);
        let tile = |n| o.tile(n).map(OperandWindow::Tile);
        let view = |n| o.view(n).map(OperandWindow::View);
        let (dst, srcs) = match inst.instr.get().sem {
            Sem::Load => (tile(0)?, vec![(view(1)?, Read::Whole)]),
            Sem::Store if inst.attrs.atomic.is_some() => return None,
            Sem::Store => (view(0)?, vec![(tile(1)?, Read::Whole)]),
            Sem::Move => (tile(0)?, vec![(tile(1)?, Read::Whole)]),
            // What the table has an expression for: its sources that are tiles.
            sem if sem.expr().is_some() => {
                let row = inst.instr.get();
                if row.operands.len() != inst.operands.len() {
                    return None;
                }
                let mut srcs = Vec::new();
                for (k, spec) in row.operands.iter().enumerate().skip(1) {
                    match spec.is_tile() {
                        true => srcs.push((tile(k)?, row.read(k))),
                        false => o.scalar(k).map(|_| ())?,
                    }
                }
                (tile(0)?, srcs)
            }
            _ => return None,
        };
        Some(Pattern { inst, dst, srcs, fold: None })
    }

    /// As [`Pattern::of`], and reductions of rows by partial results.
    pub fn with_folds(inst: &'i Inst) -> Option<Pattern<'i>> {
        let Sem::RowReduce(op) = inst.instr.get().sem else { return Pattern::of(inst) };
        let o = Operands::new(inst);
        let (dst, src) = (OperandWindow::Tile(o.tile(0)?), OperandWindow::Tile(o.tile(1)?));
        // Products of rows are in another order.
        (!inst.attrs.stepwise && op != Reduce::Prod).then(|| Pattern {
            inst,
            dst,
            srcs: vec![(src, Read::Whole)],
            fold: Some(op),
        })
    }

    /// The pattern of a statement, a reduction of rows among them.
    pub fn of_stmt(stmt: &'i Stmt) -> Option<Pattern<'i>> {
        if let Op::Inst(inst) = &stmt.op { Pattern::with_folds(inst) } else { None }
    }

    /// Whether this is nothing but rows that become columns.
    pub fn turns(&self) -> bool {
        matches!(self.inst.instr.get().sem.expr(), Some(Expr::Arg(_))) && matches!(self.srcs[..], [(_, Read::Turned)])
    }

    /// Rows and columns; `None` for a view of rank 1, which is a row.
    pub fn shape(&self) -> Option<(Value, Value)> {
        let first = self.srcs.first().map(|s| s.0).filter(|s| s.tile().is_none() || self.fold.is_some());
        match first.unwrap_or(self.dst) {
            OperandWindow::Tile(t) => Some(t.valid),
            OperandWindow::View(v) => match v.shape[..] {
                [rows, cols] => Some((rows, cols)),
                _ => None,
            },
        }
    }
}

/// Whether partials of a tile's rows are worth it.
pub fn foldable(kernel: &Kernel, t: &TileRef) -> bool {
    let data = &kernel.tiles[t.tile];
    let narrow = MemTy::of(data.ty.dtype).reg() != LTy::I64 && data.ty.dtype != DType::Bool;
    narrow && t.rows <= MOST_ROWS && t.cols >= WIDE && data.ty.order == Order::Nd
}
