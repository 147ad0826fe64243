//! The operations that have a name in the language and on the command line: one table.

mod access;
mod args;
mod coalesce;
mod complement;
mod composition;
mod copy_plan;
mod divide;
mod eval;
mod inject;
mod inverse;
mod left;
mod make;
mod mma;
mod partition;
mod product;
mod profile;
mod recast;
mod slice;
mod suggest;
mod swizzle;
mod tiled_copy;

use crate::{Cx, Result, Value};

pub use access::{concat, cosize_composed, flatten, group, select, take};
pub use coalesce::{coalesce, coalesce_by, filter, filter_zeros};
pub use complement::complement;
pub use composition::composition;
pub use copy_plan::{CopyAxis, CopyPlan, copy_plan};
pub use divide::{flat_divide, logical_divide, tiled_divide, zipped_divide};
pub use eval::{Offset, crd2idx, idx2crd, idx2crd_strided};
pub use inject::{is_bijection, is_injective};
pub use inverse::{left_inverse, max_common_vector, nullspace, right_inverse};
pub use make::{
    compact, compact_right, domain_distribute, make_fragment_like, make_identity_layout, make_layout_like,
    make_ordered_layout,
};
pub use partition::{
    Projection, inner_partition, local_partition, local_partition_proj, local_tile, local_tile_proj, outer_partition,
};
pub use product::{
    blocked_product, flat_product, logical_product, raked_product, tile_to_shape, tiled_product, zipped_product,
};
pub use profile::{ceil_div, compatible, elem_less, evenly_divides, weakly_congruent};
pub use recast::{downcast, downcast_composed, upcast, upcast_composed};
pub use slice::{dice, slice, slice_composed};
pub use swizzle::compose_swizzles;
pub use tiled_copy::{CopyAtom, Side, TiledCopy};

/// An operation.
pub struct Op {
    /// The name that authors write.
    pub name: &'static str,
    /// How it is called: `composition(A, B)`.
    pub usage: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Least and greatest number of arguments.
    pub arity: (usize, usize),
    /// Evaluates it. The number of arguments is right.
    pub eval: fn(&Cx, &[Value]) -> Result<Value>,
}

/// Every operation, by topic: a file's operations are one slice of it.
pub static TABLES: &[&[Op]] = &[
    access::OPS,
    make::OPS,
    profile::OPS,
    eval::OPS,
    slice::OPS,
    coalesce::OPS,
    composition::OPS,
    complement::OPS,
    inverse::OPS,
    inject::OPS,
    divide::OPS,
    product::OPS,
    recast::OPS,
    swizzle::OPS,
    partition::OPS,
    mma::OPS,
    tiled_copy::OPS,
    copy_plan::OPS,
    crate::picture::OPS,
];

/// Every operation.
pub fn all() -> impl Iterator<Item = &'static Op> {
    TABLES.iter().copied().flatten()
}

/// The operation called `name`.
pub fn find(name: &str) -> Option<&'static Op> {
    all().find(|op| op.name == name)
}
