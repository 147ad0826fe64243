//! Memory of a launch: buffers of the device, shared memory of CTAs, local memory of threads.

use super::SimLaunch;
use super::clocks::Column;
use super::maps::TensorMap;
use super::races::{Missing, Race, RaceAccess, Shadow, View};
use super::warp::each;

/// Bits of an offset in a buffer.
const OFFSET_BITS: u32 = 40;

/// The device's memory: buffers, far apart.
#[derive(Clone, Debug, Default)]
pub struct Global {
    /// Contents.
    pub buffers: Vec<Vec<u8>>,
    /// Tensor maps: what a parameter that is one has is its number ([`Global::add_map`]).
    pub maps: Vec<TensorMap>,
}

impl Global {
    /// Takes a buffer; its address, a multiple of 256.
    pub fn add(&mut self, bytes: Vec<u8>) -> u64 {
        self.buffers.push(bytes);
        (self.buffers.len() as u64) << OFFSET_BITS
    }

    /// Takes a tensor map: what to give as the parameter.
    pub fn add_map(&mut self, map: TensorMap) -> u64 {
        self.maps.push(map);
        self.maps.len() as u64 - 1
    }

    /// The buffer of an address, and the offset there.
    fn find(address: u64) -> Option<(usize, usize)> {
        let number = (address >> OFFSET_BITS).checked_sub(1)?;
        Some((usize::try_from(number).ok()?, (address & ((1 << OFFSET_BITS) - 1)) as usize))
    }
}

/// Why an access is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is no such memory.
    Bounds,
    /// The address is no multiple of the access's size.
    Alignment,
    /// Another thread accesses it, and nothing orders the two.
    Race,
    /// Another thread has written it through the generic proxy, and no proxy fence lets the async proxy see that.
    Proxy,
}

/// A refusal, and of a race the other access.
pub(super) type Refused = (Refusal, Option<Race>);

fn refused(race: Race) -> Refused {
    match race.2 {
        Missing::Order => (Refusal::Race, Some(race)),
        Missing::Fence => (Refusal::Proxy, Some(race)),
    }
}

const BOUNDS: Refused = (Refusal::Bounds, None);

/// Bytes with what is known of who touched them.
#[derive(Debug)]
pub(super) struct Arena {
    pub(super) bytes: Vec<u8>,
    pub(super) shadow: Option<Shadow>,
    pub(super) aligned: bool,
}

impl Arena {
    fn new(bytes: Vec<u8>, launch: &SimLaunch<'_>, fence: Column) -> Arena {
        let shadow = launch.races.then(|| Shadow::new(bytes.len(), fence));
        Arena { bytes, shadow, aligned: launch.aligned }
    }

    /// Memory that one thread alone can reach, with garbage.
    pub(super) fn private(size: usize, launch: &SimLaunch<'_>, seed: u64) -> Arena {
        Arena::poisoned(size, &SimLaunch { races: false, ..*launch }, seed)
    }

    /// Memory that holds garbage.
    pub(super) fn poisoned(size: usize, launch: &SimLaunch<'_>, seed: u64) -> Arena {
        let mut x = seed | 1;
        let bytes = std::iter::repeat_with(|| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 56) as u8
        });
        Arena::new(bytes.take(size).collect(), launch, Column::Shared)
    }

    /// The bytes of an access.
    pub(super) fn touch(&mut self, at: u64, size: u32, access: RaceAccess, view: &View) -> Result<&mut [u8], Refused> {
        self.touch_some(at, size, u32::MAX, access, view)
    }

    /// The same, of which only the bytes of a mask count as accessed.
    pub(super) fn touch_some(
        &mut self,
        at: u64,
        size: u32,
        mask: u32,
        access: RaceAccess,
        view: &View,
    ) -> Result<&mut [u8], Refused> {
        let from = usize::try_from(at).map_err(|_| BOUNDS)?;
        let to = from.checked_add(size as usize).ok_or(BOUNDS)?;
        let bytes = self.bytes.get_mut(from..to).ok_or(BOUNDS)?;
        if self.aligned && at & u64::from(size - 1) != 0 {
            return Err((Refusal::Alignment, None));
        }
        if let Some(shadow) = &mut self.shadow {
            let race = match mask {
                u32::MAX => shadow.touch(from..to, access, view),
                _ => each(mask).find_map(|n| shadow.touch(from + n..from + n + 1, access, view)),
            };
            if let Some(race) = race {
                return Err(refused(race));
            }
        }
        Ok(bytes)
    }

    /// The bytes of a copy, wherever they lie.
    pub(super) fn touch_run(
        &mut self,
        at: u64,
        size: usize,
        access: RaceAccess,
        view: &View,
    ) -> Result<&mut [u8], Refused> {
        let from = usize::try_from(at).map_err(|_| BOUNDS)?;
        let to = from.checked_add(size).ok_or(BOUNDS)?;
        let bytes = self.bytes.get_mut(from..to).ok_or(BOUNDS)?;
        match self.shadow.as_mut().and_then(|shadow| shadow.touch(from..to, access, view)) {
            Some(race) => Err(refused(race)),
            None => Ok(bytes),
        }
    }
}

/// The device's buffers as a launch sees them.
pub(super) struct Device {
    pub(super) buffers: Vec<Arena>,
}

impl Device {
    pub(super) fn new(global: &mut Global, launch: &SimLaunch<'_>) -> Device {
        let buffers = global.buffers.iter_mut().map(|bytes| Arena::new(std::mem::take(bytes), launch, Column::Global));
        Device { buffers: buffers.collect() }
    }

    /// Gives the contents back.
    pub(super) fn back(self, global: &mut Global) {
        for (to, from) in global.buffers.iter_mut().zip(self.buffers) {
            *to = from.bytes;
        }
    }

    /// As [`Arena::touch_some`].
    pub(super) fn touch(
        &mut self,
        at: u64,
        size: u32,
        mask: u32,
        access: RaceAccess,
        view: &View,
    ) -> Result<&mut [u8], Refused> {
        let (buffer, offset) = Global::find(at).ok_or(BOUNDS)?;
        let arena = self.buffers.get_mut(buffer).ok_or(BOUNDS)?;
        arena.touch_some(offset as u64, size, mask, access, view)
    }

    /// As [`Arena::touch_run`].
    pub(super) fn touch_run(
        &mut self,
        at: u64,
        size: usize,
        access: RaceAccess,
        view: &View,
    ) -> Result<&mut [u8], Refused> {
        let (buffer, offset) = Global::find(at).ok_or(BOUNDS)?;
        self.buffers.get_mut(buffer).ok_or(BOUNDS)?.touch_run(offset as u64, size, access, view)
    }
}
