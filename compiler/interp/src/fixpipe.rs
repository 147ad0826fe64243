//! What leaves the accumulator: a window of it, element by element, to a window of a tile or of a tensor.

use super::machine::Machine;
use super::trap::Trap;
use ptoc_diagnostics::codes;
use ptoc_ir::formula;
use ptoc_ir::scalar;
use ptoc_ir::tile::{Inst, InstAttrs, Operand};
use ptoc_isa::{Fixpipe, FixpipeWindow, drained};
use ptoc_tensor::DType;

type TrapResult<T = ()> = Result<T, Trap>;

/// The scale that the bits say, as those of an f32: of a u64 they are the lower half.
fn scale(dtype: DType, bits: u64) -> u64 {
    if dtype == DType::U64 { bits & 0xffff_ffff } else { u64::from(scalar::to_f32(dtype, bits).to_bits()) }
}

/// An element of `a` on its way out without a scale, with negative ones made 0.
pub(super) fn positive(from: DType, to: DType, bits: u64) -> Option<u64> {
    formula::eval(drained(false, true), to, &[(to, 0), (from, bits)], &InstAttrs::default())
}

impl<'k> Machine<'k, '_> {
    pub(super) fn fixpipe(&mut self, f: &Fixpipe, inst: &'k Inst) -> TrapResult {
        let name = inst.instr.get().name;
        let (Some(dst), Some(Operand::Tile(a))) = (inst.operands.first(), inst.operands.get(1)) else {
            return self.malformed(name);
        };
        let a = self.take(a)?;
        // The scales of the columns; one for all is repeated.
        let mut scales: Option<Vec<u64>> = None;
        if f.quantised {
            scales = Some(match inst.operands.get(2) {
                Some(Operand::Tile(t)) => {
                    let s = self.take(t)?;
                    if s.rows != 1 {
                        return self.malformed(name);
                    }
                    s.bits.iter().map(|b| scale(s.dtype, *b)).collect()
                }
                Some(Operand::Scalar(v)) => vec![self.get(*v); a.cols],
                _ => return self.malformed(name),
            });
        }
        let mut at = (0, 0);
        if let Some(k) = f.row_operand() {
            let (Some(Operand::Scalar(r)), Some(Operand::Scalar(c))) = (inst.operands.get(k), inst.operands.get(k + 1))
            else {
                return self.malformed(name);
            };
            at = (self.index(*r), self.index(*c));
        }
        // How much is moved, and where it begins on either side.
        let (rows, cols, room) = match dst {
            Operand::Tile(d) => {
                let w = self.window(d)?;
                match f.window {
                    FixpipeWindow::OfSource => (w.rows, w.cols, (a.rows, a.cols)),
                    FixpipeWindow::Whole | FixpipeWindow::OfDestination => (a.rows, a.cols, (w.rows, w.cols)),
                }
            }
            Operand::View(v) => {
                let view = self.view(v);
                let extent = |k: usize| view.shape.get(k).map_or(0, |n| usize::try_from(*n).unwrap_or(0));
                (a.rows, a.cols, (extent(0), extent(1)))
            }
            Operand::Scalar(_) => return self.malformed(name),
        };
        let inside = |at: i64, n: usize, room: usize| at >= 0 && at.saturating_add(n as i64) <= room as i64;
        let exact = f.window != FixpipeWindow::Whole || room == (rows, cols);
        if !exact || !inside(at.0, rows, room.0) || !inside(at.1, cols, room.1) {
            let message = format!("{name} moves {rows} x {cols} elements at {at:?} of {} x {}", room.0, room.1);
            return self.trap(codes::TRAP_TILE_OUT_OF_BOUNDS, message);
        }
        if scales.as_ref().is_some_and(|s| s.len() < cols) {
            return self.malformed(name);
        }
        let at = (at.0 as usize, at.1 as usize);
        let (from, to) = if f.window == FixpipeWindow::OfSource { (at, (0, 0)) } else { ((0, 0), at) };
        let dtype = match dst {
            Operand::Tile(d) => self.k.tiles[d.tile].ty.dtype,
            Operand::View(v) => self.tensors[v.tensor].dtype,
            Operand::Scalar(_) => return self.malformed(name),
        };
        let expr = f.expr(inst.attrs.relu);
        self.spend((rows * cols) as u64)?;
        for i in 0..rows {
            for j in 0..cols {
                let mut operands = vec![(dtype, 0), (a.dtype, a.at(i + from.0, j + from.1))];
                operands.extend(scales.as_ref().map(|s| (DType::F32, s[j])));
                let Some(bits) = formula::eval(expr, dtype, &operands, &InstAttrs::default()) else {
                    return self.malformed(name);
                };
                match dst {
                    Operand::Tile(d) => {
                        let w = self.window(d)?;
                        self.tile_write(&w, i + to.0, j + to.1, bits);
                    }
                    Operand::View(v) => {
                        let element = self.view(v).element(&[i as i64, j as i64]);
                        self.put_element(v.tensor, element, bits, inst.attrs.atomic)?;
                    }
                    Operand::Scalar(_) => {}
                }
            }
        }
        Ok(())
    }
}
