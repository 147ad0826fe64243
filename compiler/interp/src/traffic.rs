//! What one copy or matrix product touches of the memory that it writes: its elements have no order, so none may be
//! written twice, or written and read.

use ptoc_ir::tile::TensorId;
use ptoc_isa::Loc;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// Storage, with its size in bytes (of a mask: bits), or its range in a memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    Tensor(TensorId, u64),
    Private(u64, u64),
    Space(Loc, Range<u64>),
    Masks(Loc, Range<u64>),
}

impl Home {
    /// Whether bytes of one may be bytes of the other.
    pub fn meets(&self, other: &Home) -> bool {
        let overlap = |a: &Range<u64>, b: &Range<u64>| a.start < b.end && b.start < a.end;
        match (self, other) {
            (Home::Tensor(a, _), Home::Tensor(b, _)) => a == b,
            (Home::Private(a, _), Home::Private(b, _)) => a == b,
            // Bits of masks and plain bytes cannot be read for each other anyway.
            (Home::Space(a, x), Home::Space(b, y)) | (Home::Masks(a, x), Home::Masks(b, y)) => a == b && overlap(x, y),
            _ => false,
        }
    }

    fn range(&self) -> Range<u64> {
        match self {
            Home::Tensor(_, n) | Home::Private(_, n) => 0..*n,
            Home::Space(_, range) | Home::Masks(_, range) => range.clone(),
        }
    }
}

/// First bytes of the elements that were written.
enum Seen {
    /// A bit for each byte.
    Dense(u64, Vec<u64>),
    Sparse(FxHashSet<u64>),
}

impl Seen {
    /// False if it was there.
    fn insert(&mut self, at: u64) -> bool {
        match self {
            Seen::Dense(start, words) => {
                let n = at.wrapping_sub(*start);
                let Some(word) = words.get_mut((n / 64) as usize) else { return true };
                let fresh = *word >> (n % 64) & 1 == 0;
                *word |= 1 << (n % 64);
                fresh
            }
            Seen::Sparse(set) => set.insert(at),
        }
    }
}

/// How an element was touched before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Conflict {
    Twice,
    ReadToo,
}

/// The places of one nest.
pub(crate) struct Traffic {
    seen: Seen,
    /// Bytes that were read (false) or written (true), where a source may lie in the destination's storage.
    shared: Option<FxHashMap<u64, bool>>,
}

impl Traffic {
    /// For a nest of so many writes to `dst`; `shared` if something that it reads meets `dst`.
    pub fn new(dst: &Home, writes: u64, shared: bool) -> Traffic {
        let range = dst.range();
        let bytes = range.end - range.start;
        let seen = match bytes / 32 <= writes {
            true => Seen::Dense(range.start, vec![0; bytes.div_ceil(64) as usize]),
            false => Seen::Sparse(FxHashSet::default()),
        };
        Traffic { seen, shared: shared.then(FxHashMap::default) }
    }

    /// Bytes of the destination's storage are read. False if they have been written.
    pub fn read(&mut self, bytes: Range<u64>) -> bool {
        let Some(shared) = &mut self.shared else { return true };
        bytes.into_iter().all(|b| !*shared.entry(b).or_insert(false))
    }

    /// An element of the destination is written.
    pub fn write(&mut self, bytes: Range<u64>) -> Result<(), Conflict> {
        if !self.seen.insert(bytes.start) {
            return Err(Conflict::Twice);
        }
        let Some(shared) = &mut self.shared else { return Ok(()) };
        match bytes.into_iter().all(|b| *shared.entry(b).or_insert(true)) {
            true => Ok(()),
            false => Err(Conflict::ReadToo),
        }
    }
}
