//! Where the spaces of a running block are: shared memory as far as it goes, and else memory of the device.

use crate::touched::{Key, Touched, of_region};
use cranelift_entity::SecondaryMap;
use ptoc_ir::loops::{Module, SpaceId};
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

/// Where a space is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    /// At this offset of shared memory.
    Shared(u32),
    /// At this offset of the CTA's part of scratch memory.
    Scratch(u64),
}

impl Default for Home {
    fn default() -> Home {
        Home::Scratch(0)
    }
}

/// The homes of a module's spaces.
#[derive(Clone, Debug)]
pub(crate) struct Homes {
    pub(crate) of: SecondaryMap<SpaceId, Home>,
    /// Bytes of shared memory.
    pub(crate) shared: u32,
    /// Bytes of scratch memory for each CTA.
    pub(crate) scratch: u64,
}

impl Homes {
    /// Small spaces first: they are partials, row vectors and masks, which are used most for their size.
    pub(crate) fn new(module: &Module, most: u32) -> Homes {
        let mut homes = Homes { of: SecondaryMap::new(), shared: CONTROL, scratch: 0 };
        // Tiles of fused chains are in none.
        let mut touched = Touched::default();
        of_region(&module.block.body, &FxHashSet::default(), &mut touched);
        let used = |id: SpaceId| touched.any(Key::Space(id));
        let all = module.spaces.iter().filter(|(id, _)| used(*id));
        let mut spaces: Vec<(SpaceId, u64)> = all.map(|(id, data)| (id, data.size)).collect();
        spaces.sort_by_key(|(_, size)| *size);
        for (id, size) in spaces {
            let end = u64::from(homes.shared) + size;
            homes.of[id] = match u32::try_from(end) {
                Ok(end) if end <= most => Home::Shared(std::mem::replace(&mut homes.shared, end)),
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
