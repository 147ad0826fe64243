//! The operations that have a name in the language and on the command line: one table.
//!
//! # Where CuTe is not followed
//!
//! Static results are those of the C++ headers, text for text, unless an operation's own postcondition would be false:
//! then it refuses. Of the golden cases that are seven, which `tests/it/golden.rs` counts:
//!
//! * composition (5): a stride below the extent that it falls into and no divisor of it, as in `(6,4):(8,2) o 4:4`;
//!   modes that run past an extent together, as in `(8,(2,4)):(1,(6,1)) o (8,(8,1)):(2,(4,2))`; negative strides after
//!   several modes, as in `(4,8):(8,1) o 4:-1`. No layout is `A(B(c))` there.
//! * left_inverse (1): modes that overlap, as in `(6,(8,1)):(3,(3,1))`.
//! * logical_divide (1), and all other divisions: tiles whose copies leave elements out or have them twice, as in
//!   `(2,(3,3,4),1):(36,(12,4,1),1) / 6:12`.
//!
//! Beyond them: downcast with several modes of stride 1; logical, zipped, tiled and flat products whose copies would
//! overlap; upcasts of swizzles that move parts of an element; slices at an index that is not there; orders with equal
//! entries (the leftmost is first, where CuTe's modes overlap).
//!
//! In three places CuTe's answer stands though it promises less than one may think. `complement` may leave holes, where
//! a stride is no multiple of the span below it: `(2,2):(1,3)` in 12 (a division by such a tile is refused if elements
//! fall into the holes). `blocked_product` and `raked_product` take a tiler that runs past a gap of the block, so that
//! copies overlap: `4:3 x (2,4):(1,2)`; ask `is_injective`. `identity_compose` gives coordinates outside of the shape
//! instead of carrying into the next mode: predicate them.
//!
//! # Extents of 0
//!
//! A layout with an extent of 0 has no coordinates. It coalesces to `0:d`, reads on along that stride, divides into 0
//! tiles, is injective, and is no tile: it has no complement. An index has no coordinate in it.

mod access;
pub(crate) mod args;
mod coalesce;
mod complement;
mod composition;
mod copy_blocks;
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
pub use copy_blocks::{CopyBlocks, copy_blocks};
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
pub use tiled_copy::{CopyAtom, CopySide, TiledCopy};

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
    copy_blocks::OPS,
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
