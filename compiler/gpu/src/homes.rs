//! Where the spaces of a running block are: shared memory as far as it goes, and else memory of the device.

use cranelift_entity::SecondaryMap;
use ptoc_ir::loops::{Module, SpaceId};

/// Bytes of shared memory that a CTA may have on sm_90.
pub const MOST_SHARED: u32 = 232_448;

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
        let mut spaces: Vec<(SpaceId, u64)> = module.spaces.iter().map(|(id, data)| (id, data.size)).collect();
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
