//! What leaves the accumulator: one map from a window of it to a window of a tile or of a tensor.

use super::code::FunctionBuilder;
use super::elementwise::update_each;
use super::matrix::{Matrix, map};
use super::{Lower, formula};
use ptoc_ir::loops::{MemTy, Reg, Stride};
use ptoc_ir::tile::{Inst, Operand};
use ptoc_isa::{Fixpipe, FixpipeWindow};
use ptoc_opt::operands::Operands;
use ptoc_tensor::DType;

impl Lower<'_> {
    pub(super) fn fixpipe(&mut self, f: &Fixpipe, inst: &Inst) -> Option<()> {
        let o = Operands::new(inst);
        let source = o.tile(1)?;
        let mut a = self.tile(&source);
        let shape = match (f.window, inst.operands.first()?) {
            (FixpipeWindow::OfSource, Operand::Tile(d)) => d.valid,
            _ => source.valid,
        };
        let shape = (self.value(shape.0), self.value(shape.1));
        let mut d = match inst.operands.first()? {
            Operand::Tile(t) => self.tile(t),
            Operand::View(v) => self.view(v),
            Operand::Scalar(_) => return None,
        };
        if let Some(k) = f.row_operand() {
            let (row, col) = (self.value(o.scalar(k)?), self.value(o.scalar(k + 1)?));
            let moved = if f.window == FixpipeWindow::OfSource { &mut a } else { &mut d };
            *moved = moved.at_row(&mut self.code, row).at_col(&mut self.code, col);
        }
        let (expr, attrs) = (f.expr(inst.attrs.relu), inst.attrs);
        let (from, to) = (a.dtype, d.dtype);
        let mut sources = vec![a];
        let mut scale = None;
        match (f.quantised, inst.operands.get(2)) {
            (true, Some(Operand::Tile(t))) => sources.push(scales(self.tile(t).one_row())),
            (true, Some(Operand::Scalar(v))) => scale = Some(self.value(*v)),
            _ => {}
        }
        let mut element = |code: &mut FunctionBuilder, v: &[Reg]| {
            let mut operands = vec![(from, v[0])];
            operands.extend(v.get(1).copied().or(scale).map(|s| (DType::F32, s)));
            formula::emit(code, expr, to, &operands, &attrs)
        };
        match attrs.atomic {
            Some(op) => update_each(&mut self.code, op, shape, &d, &sources, &mut element),
            None => map(&mut self.code, shape, &d, &sources, &mut element),
        }
        Some(())
    }
}

/// Of a table of u64 the lower halves, as f32.
fn scales(m: Matrix) -> Matrix {
    match m.dtype {
        DType::U64 => Matrix { ty: MemTy::F32, dtype: DType::F32, cols: Stride::Const(8), ..m },
        _ => m,
    }
}
