//! Elements of `out` tensors that a launch on units leaves unwritten. All sizes are known, so its blocks are gone
//! through.

use crate::eval::{BlockScalars, EvaluatedWindow, Visitor};
use crate::slopes::{self, Slope};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_interp::{Unwritten, coordinates};
use ptoc_ir::tile::{Inst, Kernel, NestAccess, Op, Operand, Stmt, TensorDir, TensorId};
use ptoc_isa::Role;
use ptoc_layout::Storage;
use rustc_hash::FxHashMap;

/// Marks of the elements of a tensor.
struct Marks {
    tensor: TensorId,
    written: Vec<bool>,
}

struct Stores {
    marks: Vec<Marks>,
    /// What the block at hand stores, and how that moves.
    windows: Vec<(EvaluatedWindow, Option<Slope>)>,
}

impl Stores {
    /// The elements of a window, which is so many further on.
    fn mark(&mut self, window: &EvaluatedWindow, by: i64) {
        let Some(marks) = self.marks.iter_mut().find(|m| m.tensor.as_u32() == window.tensor) else { return };
        let mut places = vec![window.offset + by];
        for (&extent, &stride) in window.shape.iter().zip(&window.strides) {
            places = places.iter().flat_map(|at| (0..extent).map(move |i| at + i * stride)).collect();
        }
        for at in places {
            if let Some(mark) = usize::try_from(at).ok().and_then(|at| marks.written.get_mut(at)) {
                *mark = true;
            }
        }
    }
}

/// A block and what it stores.
type BlockStores = (Vec<i64>, Vec<(EvaluatedWindow, Slope)>);

impl Stores {
    /// Marks what a block stores; `None` if that is not known.
    fn block(
        &mut self,
        numbers: &mut BlockScalars<'_>,
        grid: &[i64],
        at: &[i64],
        known: &mut FxHashMap<u32, Option<BlockStores>>,
    ) -> Option<()> {
        let class = slopes::around(grid, at);
        let like = class.and_then(|(class, _)| known.get(&class));
        if let Some(Some((from, windows))) = like {
            for (window, slope) in windows {
                self.mark(window, slopes::moved(slope, from, at)?);
            }
            return Some(());
        }
        self.windows.clear();
        let stands = match class.filter(|_| like.is_none()) {
            Some((_, around)) => numbers.block_for(at, around, self).ok()?,
            None => numbers.block(at, self).map(|()| false).ok()?,
        };
        let windows = std::mem::take(&mut self.windows);
        windows.iter().for_each(|(window, _)| self.mark(window, 0));
        if let (Some((class, _)), None) = (class, like) {
            let moves = windows.into_iter().map(|(window, slope)| Some((window, slope?))).collect::<Option<Vec<_>>>();
            known.insert(class, moves.filter(|_| stands).map(|windows| (at.to_vec(), windows)));
        }
        Some(())
    }
}

impl Visitor for Stores {
    fn inst(&mut self, inst: &Inst, _: Span, numbers: &BlockScalars<'_>) -> Result<(), Box<Diagnostic>> {
        for (spec, operand) in inst.instr.get().operands.iter().zip(&inst.operands) {
            if let (Role::Dst, Operand::View(view)) = (spec.role, operand) {
                self.windows.push((numbers.window(view), numbers.slope(view.offset)));
            }
        }
        Ok(())
    }

    fn other(&mut self, stmt: &Stmt, numbers: &BlockScalars<'_>) -> Result<(), Box<Diagnostic>> {
        let unknown = || Err(Box::new(Diagnostic::error(codes::UNIT_CANNOT, stmt.span, "the places are not known")));
        match &stmt.op {
            Op::Store { tensor, offset, .. } => {
                let offset = numbers.known_index(*offset, stmt.span)?;
                let (shape, strides) = (Vec::new(), Vec::new());
                self.windows.push((EvaluatedWindow { tensor: tensor.as_u32(), offset, shape, strides }, None));
                Ok(())
            }
            Op::Copy(copy) if matches!(copy.dst, NestAccess::Tensor { .. }) => unknown(),
            Op::Mma(mma) if matches!(mma.acc, NestAccess::Tensor { .. }) => unknown(),
            _ => Ok(()),
        }
    }
}

/// What no block of a launch stores of the tensors `of`. `values` are those of the prologue, `storage` says how arrays
/// lie in them. `None` where that takes the data, or more than some millions of statements or elements.
pub fn unwritten(
    kernel: &Kernel,
    values: &[u64],
    of: &[TensorId],
    storage: &[Option<Storage>],
) -> Option<Vec<Unwritten>> {
    let mut numbers = BlockScalars::new(kernel, values);
    let shape = |t: TensorId, numbers: &BlockScalars<'_>| -> Vec<u64> {
        kernel.tensors[t].shape.iter().map(|&v| numbers.index(v).max(0) as u64).collect()
    };
    let mut stores = Stores { marks: Vec::new(), windows: Vec::new() };
    for &tensor in of.iter().filter(|t| kernel.tensors[**t].dir == TensorDir::Out) {
        let size = shape(tensor, &numbers).iter().try_fold(1u64, |n, &e| n.checked_mul(e));
        let size = size.filter(|n| *n <= MOST)?;
        stores.marks.push(Marks { tensor, written: vec![false; size as usize] });
    }
    let grid = numbers.grid();
    let blocks = grid.iter().try_fold(1i64, |n, &e| n.checked_mul(e))?;
    let mut at = vec![0i64; grid.len()];
    // By class of blocks: one of them, and what it stores, if the others store the same further on.
    let mut known: FxHashMap<u32, Option<BlockStores>> = FxHashMap::default();
    for _ in 0..blocks {
        stores.block(&mut numbers, &grid, &at, &mut known)?;
        for (i, &extent) in at.iter_mut().zip(&grid).rev() {
            *i += 1;
            if *i < extent {
                break;
            }
            *i = 0;
        }
    }
    let holes = stores.marks.into_iter().filter_map(|Marks { tensor, written }| {
        let storage = storage.get(tensor.as_u32() as usize).and_then(Option::as_ref);
        let members = storage.and_then(Storage::members);
        let is_member = |at: usize| members.as_ref().is_none_or(|m| m.get(at) == Some(&true));
        let mut missing = (0..written.len()).filter(|&at| !written[at] && is_member(at));
        let first = missing.next()? as u64;
        let count = 1 + missing.count() as u64;
        Some(Unwritten { tensor, count, first: coordinates(storage, &shape(tensor, &numbers), first) })
    });
    Some(holes.collect())
}

/// Elements of a tensor that are marked.
const MOST: u64 = 1 << 26;
