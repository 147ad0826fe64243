//! What placement sees of kernels whose tiles are fragments, or one product's sums: those are fused, and held to the
//! registers of a thread, so the bytes of all tiles do not bound them.

use super::{find, room};
use crate::matrix_unit;
use crate::rings::straight;
use ptoc_ir::tile::Kernel;
use ptoc_isa::{Loc, Target};
use ptoc_placement::memories;
use std::borrow::Cow;

/// The target as this kernel sees it ([`memories::seen_by`]), with room for tiles that fusion leaves out and for images
/// that are unfolded from where they lie in global memory.
pub fn seen_by<'t>(kernel: &Kernel, target: &'t Target) -> Cow<'t, Target> {
    let seen = memories::seen_by(kernel, target);
    if seen.gpu.is_none() {
        return seen;
    }
    if matrix_unit::find(&straight(kernel), &seen).is_ok() {
        return Cow::Owned(seen.into_owned().before_fusion(Loc::Vec));
    }
    let Ok(plan) = find(kernel, &seen) else { return seen };
    let fused = seen.clone().into_owned().before_fusion(Loc::Vec);
    // A target that was seen so before has the room.
    let images = *seen != fused && plan.loads.iter().any(|load| load.image().is_some());
    Cow::Owned(if images { fused.before_fusion(Loc::Mat) } else { fused })
}

/// Registers of a thread that hold tiles at once, and as many as may; `None` of kernels whose tiles are no fragments.
pub fn tile_registers(kernel: &Kernel, target: &Target) -> Option<[u32; 2]> {
    target.gpu?;
    if let Ok(product) = matrix_unit::find(&straight(kernel), target) {
        // Its sums; what is done to them is done to a few columns at a time.
        return Some([product.tile[1] / 2, room(false)]);
    }
    find(kernel, target).ok().map(|plan| [plan.registers, room(plan.all_threads)])
}
