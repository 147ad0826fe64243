//! What the emitter is told of a kernel beside the kernel: results of analyses that refer to it.

use crate::clock;
use crate::contraction::{self, Products};
use crate::grid_coarsen::{self, Coarsening};
use crate::lazy_gather;
use crate::pass::Unit;
use crate::webs::Uses;

/// Results of the analyses of a rewritten kernel.
pub struct Analyses<'k> {
    /// Contraction recognition: products whose operands stay where they are, and loops that are one product.
    pub products: Products<'k>,
    /// Grid coarsening: dimensions along which one call may compute several blocks.
    pub coarsening: Coarsening,
    /// How often each tile is accessed.
    pub uses: Uses,
}

impl<'k> Analyses<'k> {
    /// All of them.
    pub fn of(unit: &'k Unit) -> Analyses<'k> {
        let products = clock::pass("contraction", || contraction::find(&unit.kernel));
        let coarsening = clock::pass("grid-coarsen", || grid_coarsen::find(&unit.kernel, &products));
        Analyses { products, coarsening, uses: uses(unit) }
    }

    /// None that would leave out a statement: for machine code that is watched statement by statement.
    pub fn none(unit: &'k Unit) -> Analyses<'k> {
        Analyses { products: Products::default(), coarsening: Coarsening::default(), uses: uses(unit) }
    }
}

fn uses(unit: &Unit) -> Uses {
    Uses::new(&unit.kernel, &|stmt| lazy_gather::tiles_of(&unit.kernel, &unit.gathers.located, stmt))
}
