//! What a target allows. Pure functions that return violations: numbers first, and their wording as a [`Diagnostic`]
//! beside them, so that every reporter says the same.
//!
//! [`Diagnostic`]: ptoc_diagnostics::Diagnostic

mod absent;
mod assign;
mod atomic;
mod convert;
mod dtype;
mod layout;
mod limits;
mod location;
mod moves;
mod nearest;
mod overlap;
mod product;
mod scratch;
mod tile;

pub use absent::{AbsentLocation, check_there, of_matrix};
pub use assign::{SaKind, SaViolation, check_address, check_size};
pub use atomic::{AtomicViolation, check_atomic, updated_dtypes};
pub use convert::{
    BitsWay, ConversionHop, bits_row, conversion_by_bits, conversion_path, converts, other_sign, tcvt_pairs,
};
pub use dtype::{DTypeProblem, DTypeViolation, allowed_dtypes, allowed_tuples, check_dtypes};
pub use layout::{LayoutViolation, check_layout};
pub use limits::{LimitViolation, check_limits};
pub use location::{LocationViolation, check_location};
pub use moves::{Hop, MoveProblem, MoveViolation, check_move, check_move_as, shortest_conversion, shortest_path};
pub use nearest::Nearest;
pub use overlap::{OverlapViolation, check_overlap};
pub use product::no_product;
pub use scratch::scratch_type;
pub use tile::{
    Granule, TypeRule, TypeViolation, absent_parameter, check_tensor_dtype, check_tile_type, default_order,
    dtypes_instead, granule, instead_of, round_up_to_legal, storage_of,
};

#[cfg(test)]
mod tests;
