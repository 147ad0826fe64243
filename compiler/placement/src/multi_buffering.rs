//! Multi-buffer promotion: which hidden tiles of a pipeline get copies, as the tiles do that its body names.
//!
//! What one pipe leaves for another in a hidden tile (a load to its first use, a result to its store, a stop on the way
//! of a move) would hold iterations apart if there were only one of it. What stays on one pipe gains nothing from a
//! copy, and copies never make a kernel too large: where they do not fit a memory, its hidden tiles do without.

use crate::access::{is_auto, regions, tile_accesses};
use crate::liveness::{Liveness, liveness};
use crate::placement::{Overflow, Placement, plan_with};
use cranelift_entity::SecondaryMap;
use ptoc_ir::tile::{Kernel, Op, Stmt, Tile, pipe_of_op};
use ptoc_isa::{Pipe, Target};
use rustc_hash::FxHashSet;

/// Places `kernel`, with as many copies of hidden tiles as fit. What overflows does so without any.
pub fn plan_with_copies(kernel: &mut Kernel, target: &Target) -> (Liveness, Result<Placement, Vec<Overflow>>) {
    let mut given = give(kernel);
    loop {
        let live = liveness(kernel);
        let plan = plan_with(kernel, &live, target, u32::MAX);
        let Err(overflows) = &plan else { return (live, plan) };
        let before = given.len();
        given.retain(|&tile| {
            let data = &mut kernel.tiles[tile];
            let keep = overflows.iter().all(|o| o.loc != target.home(data.ty.loc));
            data.stages = if keep { data.stages } else { 1 };
            keep
        });
        if given.len() == before {
            return (live, plan);
        }
    }
}

/// Gives copies to the hidden tiles that connect pipes; returns these.
fn give(kernel: &mut Kernel) -> Vec<Tile> {
    struct MultiBufferPromotion<'k> {
        kernel: &'k Kernel,
        /// Stages of the pipeline around each tile's declaration.
        stages: SecondaryMap<Tile, u32>,
        pipe: SecondaryMap<Tile, Option<Pipe>>,
        several: Vec<Tile>,
        listed: SecondaryMap<Tile, bool>,
    }
    fn walk(w: &mut MultiBufferPromotion<'_>, region: &[Stmt], stages: u32) {
        for stmt in region {
            if let Op::Alloc { tile } = stmt.op {
                w.stages[tile] = stages;
            }
            if let Some(pipe) = pipe_of_op(w.kernel, &stmt.op) {
                for (_, r) in tile_accesses(w.kernel, stmt) {
                    if *w.pipe[r.tile].get_or_insert(pipe) != pipe && !std::mem::replace(&mut w.listed[r.tile], true) {
                        w.several.push(r.tile);
                    }
                }
            }
            let inside = match &stmt.op {
                Op::For(f) if f.stages > 1 => f.stages,
                _ => stages,
            };
            regions(&stmt.op).into_iter().for_each(|r| walk(w, r, inside));
        }
    }
    let (stages, pipe) = (SecondaryMap::new(), SecondaryMap::new());
    let mut w = MultiBufferPromotion { kernel, stages, pipe, several: Vec::new(), listed: SecondaryMap::new() };
    walk(&mut w, &kernel.body, 1);
    let MultiBufferPromotion { stages, several, .. } = w;
    // A plan of the author's says itself how many there are: as many as addresses, if that is possible at all.
    let pinned: Vec<(Tile, u32)> = kernel.pins.iter().map(|(t, at)| (*t, at.len() as u32)).collect();
    for &(tile, n) in &pinned {
        if kernel.tiles[tile].hidden && n == stages[tile] && n > 1 {
            kernel.tiles[tile].stages = n;
        }
    }
    let fixed: FxHashSet<Tile> = pinned.iter().map(|(t, _)| *t).collect();
    let free = |t: &Tile| !fixed.contains(t);
    let gains = |t: &Tile| kernel.tiles[*t].hidden && is_auto(kernel, *t) && stages[*t] > 1 && free(t);
    let given: Vec<Tile> = several.into_iter().filter(gains).collect();
    for &tile in &given {
        kernel.tiles[tile].stages = stages[tile];
    }
    given
}
