//! Records that are sorted and merged: a value and an index.

/// Bytes of a record: the value, then, in the last four bytes, the index.
pub const RECORD: usize = 8;

/// Elements that are sorted together.
pub const SORTED: usize = 32;

/// Lists that are merged together, at most.
pub const MERGED: usize = 4;
