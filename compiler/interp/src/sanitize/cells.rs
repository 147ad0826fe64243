//! Instructions that put elements elsewhere: they read the elements that their expression names, and no others.

use super::sites::Data;
use super::tiles::TileStorage;
use super::worker::{BoundWindow, TrapResult, Worker};
use crate::Trap;
use ptoc_ir::cells;
use ptoc_ir::cells::{Look, Operands};
use ptoc_ir::scalar;
use ptoc_ir::tile::{Inst, Operand, Ty};
use ptoc_isa::Cells;
use ptoc_tensor::DType;
use std::cell::RefCell;

enum Source<'s> {
    Tile(BoundWindow<'s>, i64, Option<super::memory::Matrix>),
    Scalar(Ty, i64),
}

/// Why the reading ends early.
enum End {
    Fault(Box<Trap>),
    /// There is no such element: the code's own check says so.
    Outside,
}

/// The operands of an instruction, with the thread that reads them.
struct Reader<'w, 's> {
    worker: RefCell<&'w mut Worker<'s>>,
    sources: Vec<Source<'s>>,
}

impl Operands for Reader<'_, '_> {
    type Error = End;

    fn shape(&self, k: usize) -> (i64, i64) {
        match &self.sources[k] {
            Source::Tile(w, ..) => (w.part.rows as i64, w.part.cols as i64),
            Source::Scalar(..) => (1, 1),
        }
    }

    fn width(&self, k: usize) -> i64 {
        match &self.sources[k] {
            Source::Tile(_, width, _) => *width,
            Source::Scalar(..) => 1,
        }
    }

    fn dtype(&self, k: usize) -> DType {
        match &self.sources[k] {
            Source::Tile(w, ..) => w.slot.ty.dtype,
            Source::Scalar(Ty::D(d), _) => *d,
            Source::Scalar(Ty::Index, _) => DType::I64,
        }
    }

    fn index(&self, k: usize) -> i64 {
        match &self.sources[k] {
            Source::Scalar(_, n) => *n,
            Source::Tile(..) => 0,
        }
    }

    fn scalar(&self, k: usize) -> u64 {
        match &self.sources[k] {
            Source::Scalar(ty, n) => *n as u64 & scalar::mask(*ty),
            Source::Tile(..) => 0,
        }
    }

    fn element(&self, k: usize, row: i64, col: i64, _: Option<Look>) -> Result<u64, End> {
        let Source::Tile(w, _, memory) = &self.sources[k] else { return Err(End::Outside) };
        if !(0..w.part.rows as i64).contains(&row) || !(0..w.part.cols as i64).contains(&col) {
            return Err(End::Outside);
        }
        self.worker.borrow_mut().read_one(w, row as usize, col as usize).map_err(End::Fault)?;
        // SAFETY: an element of the valid part of the tile, which the code has told where it is.
        Ok(memory.map_or(0, |m| unsafe { m.element(row, col, w.slot.ty.dtype.size()) }))
    }
}

impl<'s> Worker<'s> {
    /// Reads what the elements of the destination are made of.
    pub(super) fn cells(&mut self, cells: &Cells, inst: &'s Inst) -> TrapResult {
        let mut sources = Vec::new();
        for operand in &inst.operands {
            sources.push(match operand {
                Operand::Tile(t) => {
                    let w = self.window(t)?;
                    // The others' values say nothing about where.
                    let integers = !w.slot.ty.dtype.is_float();
                    let memory = self.matrix(Data::Tile(*t)).filter(|_| integers);
                    Source::Tile(w, i64::from(t.cols), memory)
                }
                Operand::Scalar(v) => Source::Scalar(self.s.kernel.values[*v].ty, self.number(*v)),
                Operand::View(_) => return Ok(()),
            });
        }
        let mut tiles = sources.iter().skip(1).filter_map(|source| match source {
            Source::Tile(w, ..) => Some(w),
            Source::Scalar(..) => None,
        });
        // Where everything may be read, it does not matter what is.
        if tiles.all(|w| matches!(w.slot.place, TileStorage::Private(..)) && self.is_whole(w)) {
            return Ok(());
        }
        let Some(Source::Tile(d, ..)) = sources.first() else { return Ok(()) };
        let (rows, cols) = (d.part.rows as i64, d.part.cols as i64);
        let reader = Reader { worker: RefCell::new(self), sources };
        for at in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
            match cells::eval(&cells.value, at, &reader) {
                Ok(_) => {}
                Err(End::Outside) => return Ok(()),
                Err(End::Fault(trap)) => return Err(trap),
            }
        }
        Ok(())
    }

    /// Whether all of the valid part may be read.
    fn is_whole(&self, w: &BoundWindow<'_>) -> bool {
        let mut whole = true;
        w.slot.lines(w.part, &mut |line| whole = whole && self.tiles.may_read(&w.slot, line));
        whole
    }
}
