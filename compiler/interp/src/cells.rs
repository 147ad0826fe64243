//! Instructions that put elements elsewhere: each element of the destination by its expression, read where it lies.

use super::exec::BoundWindow;
use super::machine::Machine;
use super::matrix::Matrix;
use super::trap::Trap;
use ptoc_diagnostics::codes;
use ptoc_ir::cells;
use ptoc_ir::cells::{Look, Operands};
use ptoc_ir::tile::{Inst, Operand, Ty};
use ptoc_ir::{indexed, scalar};
use ptoc_isa::{Cells, CmpOp};
use ptoc_tensor::DType;
use std::cell::RefCell;

type TrapResult<T = ()> = Result<T, Trap>;

enum Source {
    Tile(BoundWindow, i64),
    Scalar(Ty, u64),
}

/// The operands of an instruction, with the machine that reads them.
struct Reader<'m, 'k, 'x> {
    machine: RefCell<&'m mut Machine<'k, 'x>>,
    name: &'static str,
    sources: Vec<Source>,
}

impl Operands for Reader<'_, '_, '_> {
    type Error = Trap;

    fn shape(&self, k: usize) -> (i64, i64) {
        match &self.sources[k] {
            Source::Tile(w, _) => (w.rows as i64, w.cols as i64),
            Source::Scalar(..) => (1, 1),
        }
    }

    fn width(&self, k: usize) -> i64 {
        match &self.sources[k] {
            Source::Tile(_, width) => *width,
            Source::Scalar(..) => 1,
        }
    }

    fn dtype(&self, k: usize) -> DType {
        match &self.sources[k] {
            Source::Tile(w, _) => w.slot.ty.dtype,
            Source::Scalar(Ty::D(d), _) => *d,
            Source::Scalar(Ty::Index, _) => DType::I64,
        }
    }

    fn index(&self, k: usize) -> i64 {
        match &self.sources[k] {
            Source::Scalar(ty, bits) => scalar::to_int(*ty, *bits) as i64,
            Source::Tile(..) => 0,
        }
    }

    fn scalar(&self, k: usize) -> u64 {
        match &self.sources[k] {
            Source::Scalar(_, bits) => *bits,
            Source::Tile(..) => 0,
        }
    }

    fn element(&self, k: usize, row: i64, col: i64, found: Option<Look>) -> TrapResult<u64> {
        let mut machine = self.machine.borrow_mut();
        let Source::Tile(w, _) = &self.sources[k] else { return machine.malformed(self.name) };
        let inside = (0..w.rows as i64).contains(&row) && (0..w.cols as i64).contains(&col);
        if inside {
            return machine.tile_read(w, row as usize, col as usize);
        }
        let message = match found {
            Some(Look { operand, at: (i, j), value }) => {
                let index = match &self.sources[operand] {
                    Source::Tile(w, _) => &*machine.k.tiles[w.tile].name,
                    Source::Scalar(..) => "",
                };
                let text = indexed::outside_tile(index, &machine.k.tiles[w.tile].name);
                indexed::filled(&text, &[value, i, j])
            }
            None => {
                let (tile, rows, cols) = (machine.tile_name(w.tile), w.rows, w.cols);
                format!("{} reads element ({row}, {col}) of tile {tile}, which is valid as {rows} x {cols}", self.name)
            }
        };
        machine.trap(codes::GATHER_INDEX, message)
    }
}

impl<'k> Machine<'k, '_> {
    /// The elements of the destination.
    pub(super) fn cells(&mut self, cells: &Cells, inst: &'k Inst, dtype: DType) -> TrapResult<Matrix> {
        let row = inst.instr.get();
        let mut sources = Vec::new();
        for operand in &inst.operands {
            sources.push(match operand {
                Operand::Tile(t) => Source::Tile(self.window(t)?, i64::from(t.cols)),
                Operand::Scalar(v) => Source::Scalar(self.ty(*v), self.get(*v)),
                Operand::View(_) => return self.malformed(row.name),
            });
        }
        let Some(Source::Tile(w, _)) = sources.first() else { return self.malformed(row.name) };
        let (rows, cols) = (w.rows, w.cols);
        self.spend((rows * cols) as u64)?;
        let reader = Reader { machine: RefCell::new(self), name: row.name, sources };
        for need in cells.needs {
            let sides = (cells::num(&need.left, (0, 0), &reader)?, cells::num(&need.right, (0, 0), &reader)?);
            let holds = if need.op == CmpOp::Eq { sides.0 == sides.1 } else { sides.0 <= sides.1 };
            if !holds {
                let what = need.what.replace("{0}", &sides.0.to_string()).replace("{1}", &sides.1.to_string());
                return reader
                    .machine
                    .into_inner()
                    .trap(codes::TRAP_TILE_OUT_OF_BOUNDS, format!("{}: {what}", row.name));
            }
        }
        let mut bits = Vec::with_capacity(rows * cols);
        for i in 0..rows as i64 {
            for j in 0..cols as i64 {
                bits.push(cells::eval(&cells.value, (i, j), &reader)?);
            }
        }
        Ok(Matrix { dtype, rows, cols, bits })
    }

    /// TSCATTER: the destination as it was, with elements put into it.
    pub(super) fn scatter(&mut self, inst: &'k Inst) -> TrapResult<Matrix> {
        let name = inst.instr.get().name;
        let [Operand::Tile(to), Operand::Tile(a), Operand::Tile(idx), Operand::Tile(old)] = &inst.operands[..] else {
            return self.malformed(name);
        };
        let (a, index, mut d) = (self.take(a)?, self.take(idx)?, self.take(old)?);
        if (a.rows, a.cols) != (index.rows, index.cols) || a.cols > d.cols {
            return self.malformed(name);
        }
        for i in 0..a.rows {
            for j in 0..a.cols {
                let n = scalar::to_int(index.ty(), index.at(i, j)) as i64;
                if !(0..d.rows as i64).contains(&n) {
                    let text = indexed::outside_rows(&self.k.tiles[idx.tile].name, &self.k.tiles[to.tile].name);
                    let message = indexed::filled(&text, &[n, i as i64, j as i64, d.rows as i64]);
                    return self.trap(codes::GATHER_INDEX, message);
                }
                d.bits[n as usize * d.cols + j] = a.at(i, j);
            }
        }
        Ok(d)
    }
}
