//! What the emitter is told of a kernel beside the kernel: results of analyses that refer to it.

use crate::clock;
use crate::contraction::{self, Products};
use crate::fusion::{self, Fusion, Known};
use crate::grid_coarsen::{self, Coarsening};
use crate::lazy_gather;
use crate::overlap::Overlap;
use crate::pass::RewriteUnit;
use crate::webs::Uses;
use ptoc_ir::analysis::poly::Definitions;
use ptoc_isa::Target;

/// Results of the analyses of a rewritten kernel.
pub struct Analyses<'k> {
    /// Contraction recognition: products whose operands stay where they are, and loops that are one product.
    pub products: Products<'k>,
    /// Grid coarsening: dimensions along which one call may compute several blocks.
    pub coarsening: Coarsening,
    /// How `index` values are computed.
    pub defs: Definitions<'k>,
    /// Element-wise fusion: neighbouring instructions that become one nest of loops.
    pub fusion: Fusion<'k>,
}

impl<'k> Analyses<'k> {
    /// All of them, for what is made of the kernel on this target.
    pub fn of(unit: &'k RewriteUnit, target: &Target) -> Analyses<'k> {
        let products = clock::pass("contraction", || contraction::find(&unit.kernel));
        let coarsening = clock::pass("grid-coarsen", || grid_coarsen::find(&unit.kernel, &products));
        let defs = Definitions::new(&unit.kernel);
        let fusion = clock::pass(fusion::NAME, || fused(unit, &products, &defs, target.gpu.is_none()));
        Analyses { products, coarsening, defs, fusion }
    }

    /// None that would leave out a statement: for machine code that is watched statement by statement.
    pub fn none(unit: &'k RewriteUnit) -> Analyses<'k> {
        Analyses {
            products: Products::default(),
            coarsening: Coarsening::default(),
            defs: Definitions::new(&unit.kernel),
            fusion: Fusion::default(),
        }
    }
}

fn fused<'k>(unit: &'k RewriteUnit, products: &Products<'k>, defs: &Definitions<'k>, halves: bool) -> Fusion<'k> {
    let RewriteUnit { kernel, placement, gathers, .. } = unit;
    let uses = Uses::new(kernel, &|stmt| lazy_gather::tiles_of(kernel, &gathers.located, stmt));
    let overlap = Overlap { kernel, placement, defs };
    Fusion::find(&Known { kernel, overlap, products, uses: &uses, gathers, halves })
}
