//! What units are told: the map and where it lies, and the queries of each.

use super::{Map, Order, UnitConfig};
use std::fmt;

/// Bytes of a burst.
pub const BURST: u64 = 32;

/// Where a map lies in a bank: burst number `origin + y[..] + x[..] + c[..]` from the bank's first, of which a row has
/// the device's bursts a row. So rows of pixels, patches of 2 x 2 pixels and whatever else is a layout are one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapPlace {
    /// The burst at (0, 0).
    pub origin: u64,
    /// What each row of pixels adds.
    pub y: Vec<u64>,
    /// What each column adds.
    pub x: Vec<u64>,
    /// What each burst of 16 channels adds.
    pub c: Vec<u64>,
}

impl MapPlace {
    /// Pixels one after the other, channel-last.
    pub fn rows(map: &Map, origin: u64) -> MapPlace {
        let pixel = u64::from(map.channels / 16);
        let steps = |n: u32, step: u64| (0..u64::from(n)).map(|i| i * step).collect();
        MapPlace {
            origin,
            y: steps(map.height, pixel * u64::from(map.width)),
            x: steps(map.width, pixel),
            c: steps(map.channels / 16, 1),
        }
    }

    /// Patches of 2 x 2 pixels, each from the start of a row of `bursts` bursts.
    pub fn patches(map: &Map, origin: u64, bursts: u64) -> MapPlace {
        let pixel = u64::from(map.channels / 16);
        let across = u64::from(map.width.div_ceil(2));
        let pair = |n: u32, near: u64, far: u64| (0..u64::from(n)).map(|i| i % 2 * near + i / 2 * far).collect();
        MapPlace {
            origin,
            y: pair(map.height, 2 * pixel, across * bursts),
            x: pair(map.width, pixel, bursts),
            c: (0..pixel).collect(),
        }
    }

    /// The burst of a pixel's channels 16 n to 16 n + 15.
    pub fn burst(&self, (x, y): (u32, u32), n: u32) -> u64 {
        self.origin + self.y[y as usize] + self.x[x as usize] + self.c[n as usize]
    }

    /// The last burst, and whether the tables are as large as the map.
    fn check(&self, map: &Map) -> Option<u64> {
        let fits = (self.y.len(), self.x.len(), self.c.len())
            == (map.height as usize, map.width as usize, (map.channels / 16) as usize);
        let top = |v: &[u64]| v.iter().copied().max();
        if !fits {
            return None;
        }
        self.origin.checked_add(top(&self.y)?)?.checked_add(top(&self.x)?)?.checked_add(top(&self.c)?)
    }
}

/// What all units of an execution share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeoPimKernel {
    /// The units.
    pub unit: UnitConfig,
    /// The map. Its `base` is not used: [`MapPlace`] says where it lies.
    pub map: Map,
    /// Attention is multiplied into the shares of the four neighbours.
    pub fold: bool,
    /// The order of bursts.
    pub order: Order,
    /// All banks of a channel hold the same at the same place. Only then may they share a scratchpad.
    pub replicated: bool,
}

/// The work of one unit. Addresses are bytes of its bank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The bank, counted over the channel.
    pub bank: usize,
    /// Where its map lies.
    pub place: MapPlace,
    /// Entries to go through; those that are not valid are passed over.
    pub queries: u16,
    /// The first parameter entry.
    pub params: u64,
    /// Where the result of the first entry goes; the others follow, each from a whole burst.
    pub output: u64,
}

/// The banks of a channel as units see them.
pub trait Banks {
    /// A burst, by number from the bank's first.
    fn read(&self, bank: usize, burst: u64) -> [u8; BURST as usize];
    /// Writes a burst.
    fn write(&mut self, bank: usize, burst: u64, bytes: &[u8; BURST as usize]);
}

/// Why an execution stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeoPimFault {
    /// The bank of the unit, counted over the channel; absent where the kernel itself is wrong.
    pub bank: Option<usize>,
    /// Refreshes leave no time; otherwise the unit or the kernel is wrong.
    pub refresh: bool,
    /// One sentence.
    pub message: String,
}

impl fmt::Display for GeoPimFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bank {
            Some(bank) => write!(f, "the unit of bank {bank}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for GeoPimFault {}

/// Checks that these units can do these jobs, with `banks` banks of `bursts` bursts.
pub fn check(kernel: &GeoPimKernel, jobs: &[Job], banks: usize, bursts: u64) -> Result<(), GeoPimFault> {
    let fault = |bank, message: String| Err(GeoPimFault { bank, refresh: false, message });
    let map = &kernel.map;
    if map.width == 0 || map.height == 0 {
        return fault(None, "the map has no pixel".into());
    }
    if let Err(refusal) = kernel.unit.check(map.channels, kernel.order, kernel.fold) {
        return fault(None, refusal.0);
    }
    let mut seen = vec![false; banks];
    for job in jobs {
        let here = Some(job.bank);
        if job.bank >= banks {
            return fault(here, format!("the channel has {banks} banks"));
        }
        if std::mem::replace(&mut seen[job.bank], true) {
            return fault(here, "two jobs for one unit".into());
        }
        match job.place.check(map) {
            None => return fault(here, "the place of the map is not of the map's size".into()),
            Some(last) if last >= bursts => {
                return fault(here, format!("the map ends in burst {last}; the bank has {bursts}"));
            }
            Some(_) => {}
        }
        let results = u64::from(job.queries) * u64::from(map.channels / 16) * BURST;
        for (what, address, bytes) in
            [("parameters", job.params, u64::from(job.queries) * BURST), ("results", job.output, results)]
        {
            if !address.is_multiple_of(BURST) {
                return fault(here, format!("the {what} begin at {address:#x}, which is no whole burst of 32 bytes"));
            }
            if address.checked_add(bytes).is_none_or(|end| end > bursts * BURST) {
                return fault(
                    here,
                    format!("the {what} at {address:#x} end behind the bank's {} bytes", bursts * BURST),
                );
            }
        }
    }
    Ok(())
}
