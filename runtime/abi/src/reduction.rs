//! The order in which the elements of a row are joined.

/// Partial results of a reduction of a row. Element j joins partial j mod 64, j ascending; then partial n joins partial
/// n + 32 for n below 32, n + 16 for n below 16, and so on down to one.
pub const PARTIALS: usize = 64;
