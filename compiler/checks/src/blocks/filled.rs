//! Which `out` tensors a launch certainly fills: seen by the shape of a store, without a search.

use ptoc_ir::analysis::along_grid::Along;
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{Kernel, Op, Operand, Region, TensorDir, TensorId, Value, ViewRef};
use ptoc_isa::{FixpipeWindow, Sem};

/// The `out` tensors of which it is not seen that every launch writes all of their elements.
///
/// It is seen of a window that every block stores, if the places of all blocks' elements are the digits of one number:
/// a digit for each mode of the window and for each index (of the grid, of a loop) along which it moves, each as large
/// as the step of the next one, all of them together as large as the tensor. Blocks of tiles (`min(T, M - T g)` of `M`)
/// are one digit with their mode.
pub fn unfilled(kernel: &Kernel) -> Vec<TensorId> {
    let along = Along::new(kernel);
    let mut stores = Stores { along: &along, indices: Vec::new(), found: Vec::new() };
    stores.indices.extend(kernel.grid.iter().map(|dim| (dim.index, dim.extent)));
    stores.region(&kernel.body);
    let is_filled = |t: TensorId| {
        stores.found.iter().any(|(view, indices)| view.tensor == t && fills(&along, view, indices).is_some())
    };
    let outputs = kernel.tensors.iter().filter(|(_, data)| data.dir == TensorDir::Out);
    outputs.map(|(t, _)| t).filter(|&t| !is_filled(t)).collect()
}

/// An index and how far it counts, from 0.
type Index = (Value, Value);

/// The windows that a block stores whatever it is given.
struct Stores<'a> {
    along: &'a Along<'a>,
    /// The indices around.
    indices: Vec<Index>,
    found: Vec<(&'a ViewRef, Vec<Index>)>,
}

impl<'a> Stores<'a> {
    fn region(&mut self, region: &'a Region) {
        for stmt in region {
            match &stmt.op {
                Op::Inst(inst) if inst.attrs.atomic.is_none() => match (inst.instr.get().sem, inst.operands.first()) {
                    (Sem::Store, Some(Operand::View(view))) => self.found.push((view, self.indices.clone())),
                    (Sem::Fixpipe(f), Some(Operand::View(view))) if f.window == FixpipeWindow::Whole => {
                        self.found.push((view, self.indices.clone()));
                    }
                    _ => {}
                },
                Op::For(f) if self.along.defs.number(f.lo) == Some(0) && runs_through(&f.body) => {
                    self.indices.push((f.index, f.hi));
                    self.region(&f.body);
                    self.indices.pop();
                }
                Op::Scope(s) if runs_through(&s.body) => self.region(&s.body),
                _ => {}
            }
        }
    }
}

/// Whether every statement is reached.
fn runs_through(region: &Region) -> bool {
    region.iter().all(|stmt| {
        let jumps = matches!(stmt.op, Op::Break(_) | Op::Continue(_) | Op::Leave(_));
        !jumps && stmt.op.regions().all(runs_through)
    })
}

/// How many values a digit has, and the step from one to the next, in elements.
struct Digit {
    count: Poly,
    step: Poly,
}

fn fills(along: &Along<'_>, view: &ViewRef, indices: &[Index]) -> Option<()> {
    let kernel = along.kernel;
    let mut digits = Vec::new();
    // An index of one turn is 0.
    let (single, mut open): (Vec<Index>, Vec<Index>) =
        indices.iter().partition(|(_, extent)| along.defs.number(*extent) == Some(1));
    let at_start = |poly: Poly| {
        single.iter().try_fold(poly, |poly, (g, _)| poly.plus(&poly.step(*g)?.times(&Poly::symbol(*g))?, -1))
    };
    let mut offset = at_start(along.defs.poly(view.offset)?)?;
    for (&extent, &stride) in view.shape.iter().zip(&view.strides) {
        let step = along.defs.poly(stride)?;
        // The blocks along an index that continue each other along this mode.
        let joined = open.iter().position(|&index| {
            let moves = |tile: i64| Some(offset.step(index.0)? == step.times(&Poly::constant(tile))?);
            let length = along.length_of(index, extent).filter(|l| l.whole.is_some());
            length.is_some_and(|l| moves(l.tile) == Some(true))
        });
        let count = match joined {
            Some(at) => {
                let index = open.remove(at);
                let length = along.length_of(index, extent)?;
                let moved = step.times(&Poly::constant(length.tile))?.times(&Poly::symbol(index.0))?;
                offset = offset.plus(&moved, -1)?;
                length.whole?
            }
            None => at_start(along.defs.poly(extent)?)?,
        };
        digits.push(Digit { count, step });
    }
    for (g, extent) in open {
        let (step, count) = (offset.step(g)?, along.defs.poly(extent)?);
        if step.number() == Some(0) {
            // Without a turn along it there is none at all.
            if count.number().is_none_or(|n| n < 1) {
                return None;
            }
            continue;
        }
        offset = offset.plus(&step.times(&Poly::symbol(g))?, -1)?;
        digits.push(Digit { count, step });
    }
    if offset.number() != Some(0) {
        return None;
    }
    let mut whole = kernel.tensors[view.tensor].shape.iter();
    let whole = whole.try_fold(Poly::constant(1), |n, &extent| n.times(&along.defs.poly(extent)?))?;
    let mut reach = Poly::constant(1);
    while let Some(at) = digits.iter().position(|d| d.step == reach || d.count.number() == Some(1)) {
        let Digit { count, .. } = digits.swap_remove(at);
        reach = reach.times(&count)?;
    }
    (digits.is_empty() && reach == whole).then_some(())
}
