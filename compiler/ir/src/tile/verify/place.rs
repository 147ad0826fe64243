//! Placements of tensors and blocks.

use super::Verifier;
use crate::tile::{Coord, ElementPlacement, TensorDir, Value};
use ptoc_diagnostics::codes;

impl Verifier<'_> {
    /// Of every tensor, and of the grid.
    pub(super) fn placements(&mut self) {
        let k = self.k;
        for (id, tensor) in &k.tensors {
            let Some(place) = &tensor.place else { continue };
            self.span = tensor.span;
            self.placement(place, &tensor.shape, &format!("tensor {id}"));
            if tensor.dir == TensorDir::Scratch {
                self.error(codes::IR_DECLARATION, format!("{id} is the compiler's own, and has a placement"));
            }
            let above_row = place.leaves().any(|l| l.coord.is_some_and(|c| c < Coord::Row || c == Coord::Unit));
            if place.replicated && above_row {
                self.error(
                    codes::IR_DECLARATION,
                    format!("{id} is in the banks of every unit, and names some of them"),
                );
            }
        }
        if let Some(on) = &k.on {
            self.span = k.span;
            let extents: Vec<Value> = k.grid.iter().map(|d| d.extent).collect();
            self.placement(on, &extents, "the grid");
            let inside = on.leaves().any(|l| matches!(l.coord, Some(Coord::Row | Coord::Col | Coord::Byte)));
            if on.replicated || inside {
                self.error(codes::IR_DECLARATION, "blocks are placed on units and banks, and not inside of them");
            }
        }
    }

    fn placement(&mut self, place: &ElementPlacement, extents: &[Value], what: &str) {
        if place.dims.len() != extents.len() {
            let message = format!("{what} has {} dimensions, its placement {}", extents.len(), place.dims.len());
            return self.error(codes::IR_DECLARATION, message);
        }
        if place.leaves().any(|l| l.extent < 0 || l.stride < 0 || (l.coord.is_none() && l.stride != 0)) {
            self.error(codes::IR_DECLARATION, format!("{what} has a placement with a leaf that no layout has"));
        }
        let Some(shape) = place.shape() else {
            return self.error(codes::IR_DECLARATION, format!("the placement of {what} has too many elements"));
        };
        for (&extent, n) in extents.iter().zip(shape) {
            if self.scopes.index(extent).is_some_and(|known| known.max(0) != n) {
                self.error(codes::IR_DECLARATION, format!("{what} has {extent} where its placement has {n}"));
            }
        }
    }
}
