//! Elements of `out` tensors that a launch on units leaves unwritten. All sizes are known, so its blocks are gone
//! through.

use crate::eval::{BlockScalars, Visitor};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_interp::{Unwritten, coordinates};
use ptoc_ir::tile::{Inst, Kernel, NestAccess, Op, Operand, Stmt, TensorDir, TensorId};
use ptoc_isa::Role;
use ptoc_layout::Storage;

/// Marks of the elements of a tensor.
struct Marks {
    tensor: TensorId,
    written: Vec<bool>,
}

struct Stores {
    marks: Vec<Marks>,
}

impl Stores {
    /// The elements at so many strides from an offset.
    fn mark(&mut self, tensor: u32, offset: i64, shape: &[i64], strides: &[i64]) {
        let Some(marks) = self.marks.iter_mut().find(|m| m.tensor.as_u32() == tensor) else { return };
        let mut places = vec![offset];
        for (&extent, &stride) in shape.iter().zip(strides) {
            places = places.iter().flat_map(|at| (0..extent).map(move |i| at + i * stride)).collect();
        }
        for at in places {
            if let Some(mark) = usize::try_from(at).ok().and_then(|at| marks.written.get_mut(at)) {
                *mark = true;
            }
        }
    }
}

impl Visitor for Stores {
    fn inst(&mut self, inst: &Inst, _: Span, numbers: &BlockScalars<'_>) -> Result<(), Box<Diagnostic>> {
        for (spec, operand) in inst.instr.get().operands.iter().zip(&inst.operands) {
            if let (Role::Dst, Operand::View(view)) = (spec.role, operand) {
                let w = numbers.window(view);
                self.mark(w.tensor, w.offset, &w.shape, &w.strides);
            }
        }
        Ok(())
    }

    fn other(&mut self, stmt: &Stmt, numbers: &BlockScalars<'_>) -> Result<(), Box<Diagnostic>> {
        let unknown = || Err(Box::new(Diagnostic::error(codes::UNIT_CANNOT, stmt.span, "the places are not known")));
        match &stmt.op {
            Op::Store { tensor, offset, .. } => {
                let offset = numbers.known_index(*offset, stmt.span)?;
                self.mark(tensor.as_u32(), offset, &[], &[]);
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
    let mut stores = Stores { marks: Vec::new() };
    for &tensor in of.iter().filter(|t| kernel.tensors[**t].dir == TensorDir::Out) {
        let size = shape(tensor, &numbers).iter().try_fold(1u64, |n, &e| n.checked_mul(e));
        let size = size.filter(|n| *n <= MOST)?;
        stores.marks.push(Marks { tensor, written: vec![false; size as usize] });
    }
    let grid = numbers.grid();
    let blocks = grid.iter().try_fold(1i64, |n, &e| n.checked_mul(e))?;
    let mut at = vec![0i64; grid.len()];
    for _ in 0..blocks {
        numbers.block(&at, &mut stores).ok()?;
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
