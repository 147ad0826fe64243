//! Where the segments of a running block's spaces are: shared memory as far as it goes, and else memory of the device.

use crate::dependences::Key;
use crate::row_pointers;
use crate::segments::Segments;
use cranelift_entity::SecondaryMap;
use ptoc_ir::loops::{Module, Reg, SpaceId};
use rustc_hash::FxHashSet;

/// Bytes of shared memory that a CTA may have on sm_90.
pub const MOST_SHARED: u32 = 232_448;

/// Threads that a multiprocessor has at once.
pub(crate) const MOST_THREADS: u32 = 2048;

/// Bytes of shared memory of a multiprocessor, of which each CTA has 1 KiB beside its own.
const ALL_SHARED: u32 = 233_472;

/// CTAs with so much shared memory that a multiprocessor has at once.
pub(crate) fn residents(shared: u32) -> u32 {
    (ALL_SHARED / shared.saturating_add(1024)).clamp(1, 32)
}

/// Bytes at the start of shared memory through which threads tell each other scalars.
pub(crate) const CONTROL: u32 = 64;

/// Homes are multiples of it: the widest access, so that vectors of a tile are aligned where its rows are.
pub(crate) const ALIGN: u32 = 16;

/// Where a segment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    /// At this offset of shared memory.
    Shared(u32),
    /// At this offset of the CTA's part of scratch memory.
    Scratch(u64),
}

/// The homes of the segments of a module's spaces.
#[derive(Clone, Debug)]
pub(crate) struct Homes {
    of: SecondaryMap<SpaceId, Vec<Home>>,
    pub(crate) segments: Segments,
    /// Where gathers put rows that cannot stay in their tables.
    pub(crate) displaced: FxHashSet<Key>,
    /// Bytes of shared memory.
    pub(crate) shared: u32,
    /// Bytes of scratch memory for each CTA.
    pub(crate) scratch: u64,
}

impl Homes {
    /// Takes so many bytes of shared memory behind the spaces, if they are left: where they begin.
    pub(crate) fn reserve(&mut self, bytes: u64, most: u32) -> Option<u32> {
        let end = u32::try_from(u64::from(self.shared) + bytes).ok().filter(|end| *end <= most)?;
        Some(std::mem::replace(&mut self.shared, end))
    }

    /// Where an access at this offset is, and from which byte of the space on.
    pub(crate) fn find(&self, space: SpaceId, offset: Reg) -> (Home, u64) {
        let n = self.segments.find(space, offset);
        match self.segments.of(space).get(n) {
            Some(segment) => (self.of[space][n], segment.lo),
            None => (Home::Scratch(0), 0),
        }
    }

    /// Small segments first: they are partials, row vectors and masks, which are used most for their size. Where
    /// gathers put rows that cannot stay in their tables is memory of the device, as the tables are: row pointers lead
    /// to either.
    pub(crate) fn new(module: &Module, most: u32) -> Homes {
        let segments = Segments::new(module);
        let mut all = Vec::new();
        for space in module.spaces.keys() {
            all.extend(segments.of(space).iter().enumerate().map(|(n, s)| (s.hi - s.lo, space, n)));
        }
        all.sort_by_key(|(size, ..)| *size);
        let mut homes =
            Homes { of: SecondaryMap::new(), segments, displaced: FxHashSet::default(), shared: CONTROL, scratch: 0 };
        for space in module.spaces.keys() {
            homes.of[space] = vec![Home::Scratch(0); homes.segments.of(space).len()];
        }
        row_pointers::displaced(&module.block.body, &homes.segments, &mut homes.displaced);
        for (size, space, n) in all {
            let end = u64::from(homes.shared) + size;
            homes.of[space][n] = match u32::try_from(end) {
                Ok(end) if end <= most && !homes.displaced.contains(&Key::Space(space, n as u32)) => {
                    Home::Shared(std::mem::replace(&mut homes.shared, end))
                }
                _ => {
                    let at = homes.scratch;
                    homes.scratch += size;
                    Home::Scratch(at)
                }
            };
        }
        // Whole lines, so that CTAs share none.
        homes.scratch = homes.scratch.next_multiple_of(256);
        homes
    }
}
