//! Parameters of the units, and where the units are.

use crate::placement::Geometry;

/// Declares a table of numbers with names and defaults, so that each is written once.
macro_rules! parameters {
    ($(#[doc = $top:literal])+ $type:ident { $($(#[doc = $doc:literal])+ $field:ident: $default:literal;)* }) => {
        $(#[doc = $top])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $type { $($(#[doc = $doc])+ pub $field: u32,)* }

        impl Default for $type {
            fn default() -> $type {
                $type { $($field: $default,)* }
            }
        }

        impl $type {
            /// Names with what they mean.
            pub const NAMES: &'static [(&'static str, &'static str)] =
                &[$((stringify!($field), concat!($($doc),+)),)*];

            /// The values in the order of [`Self::NAMES`].
            pub fn values(&self) -> Vec<u32> {
                vec![$(self.$field,)*]
            }

            /// Sets the parameter of that name; false if there is none.
            pub fn set(&mut self, name: &str, value: u32) -> bool {
                match name {
                    $(stringify!($field) => self.$field = value,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

parameters! {
    /// HBM-PIM: one unit for two banks, stepped by column commands.
    HbmPim {
        /// Clock of the units in MHz, for reports: an operation takes one column command, whatever the clock.
        clock_mhz: 250;
        /// How many activations a command for all even or odd banks counts for tRRD and tFAW: 1, or 8 for all of them.
        act_weight: 1;
        /// 1: a fence waits until the data of every command before it has moved. 0: until the commands are issued, as
        /// the vendor's simulator has it.
        fence_data: 1;
    }
}

parameters! {
    /// GeoPIM: one unit a bank, with a sequencer of its own.
    GeoPim {
        /// Clock of the units in MHz.
        clock_mhz: 500;
        /// f16 lanes: channels computed in a cycle.
        lanes: 8;
        /// Bytes of one half of the tile buffer.
        buffer_bytes: 128;
        /// Halves of the tile buffer: 2 overlap fetching and computing, 1 does not.
        buffers: 2;
        /// f32 accumulators.
        acc_regs: 128;
        /// Queries that the parameter register holds.
        param_entries: 4;
        /// Bytes of the scratchpad that the banks of a channel share; 0 is none.
        scratchpad_bytes: 0;
        /// Cycles of the address generator for the coordinates of a sample; they are pipelined.
        coordinate_cycles: 2;
        /// Units that exist; 0 is one in every bank.
        units: 0;
        /// 1: successive units are in successive channels, then pseudo-channels, bank groups and banks. 0: in
        /// successive banks, then bank groups, pseudo-channels and channels.
        spread: 1;
        /// How many activations a command for all banks counts for tRRD and tFAW.
        act_weight: 1;
    }
}

parameters! {
    /// AiM: a unit of 16 bf16 lanes and an adder tree in every bank, beside a buffer that all units of a channel share.
    Aim {
        /// Clock of the units in MHz, for reports: a MAC takes one column command, whatever the clock.
        clock_mhz: 1000;
        /// Bytes of the global buffer of a channel.
        buffer_bytes: 2048;
        /// Clocks of the DRAM from a MAC to its sum in the accumulator.
        latency: 16;
        /// 1: a product is rounded to bf16 before it is added. 0: it is exact.
        round_products: 0;
        /// How many activations one for all banks counts for tRRD and tFAW.
        act_weight: 1;
    }
}

/// The units of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitConfig {
    /// No units: host and memory.
    None,
    /// HBM-PIM's.
    HbmPim(HbmPim),
    /// GeoPIM's.
    GeoPim(GeoPim),
    /// AiM's.
    Aim(Aim),
}

impl UnitConfig {
    /// The kinds, in the order of their codes.
    pub const KINDS: [&'static str; 4] = ["none", "hbm-pim", "geopim", "aim"];

    /// The unit of that kind with its default parameters.
    pub fn of_kind(code: usize) -> Option<UnitConfig> {
        match code {
            0 => Some(UnitConfig::None),
            1 => Some(UnitConfig::HbmPim(HbmPim::default())),
            2 => Some(UnitConfig::GeoPim(GeoPim::default())),
            3 => Some(UnitConfig::Aim(Aim::default())),
            _ => None,
        }
    }

    /// The code of its kind.
    pub fn code(&self) -> usize {
        match self {
            UnitConfig::None => 0,
            UnitConfig::HbmPim(_) => 1,
            UnitConfig::GeoPim(_) => 2,
            UnitConfig::Aim(_) => 3,
        }
    }

    /// The word of the text form.
    pub fn name(&self) -> &'static str {
        UnitConfig::KINDS[self.code()]
    }

    /// Names of the parameters with what they mean.
    pub fn names(&self) -> &'static [(&'static str, &'static str)] {
        match self {
            UnitConfig::None => &[],
            UnitConfig::HbmPim(_) => HbmPim::NAMES,
            UnitConfig::GeoPim(_) => GeoPim::NAMES,
            UnitConfig::Aim(_) => Aim::NAMES,
        }
    }

    /// Values of the parameters, in the same order.
    pub fn values(&self) -> Vec<u32> {
        match self {
            UnitConfig::None => Vec::new(),
            UnitConfig::HbmPim(u) => u.values(),
            UnitConfig::GeoPim(u) => u.values(),
            UnitConfig::Aim(u) => u.values(),
        }
    }

    /// Sets a parameter; false if there is none of that name.
    pub fn set(&mut self, name: &str, value: u32) -> bool {
        match self {
            UnitConfig::None => false,
            UnitConfig::HbmPim(u) => u.set(name, value),
            UnitConfig::GeoPim(u) => u.set(name, value),
            UnitConfig::Aim(u) => u.set(name, value),
        }
    }

    /// MHz of the units.
    pub fn clock_mhz(&self) -> Option<u32> {
        match self {
            UnitConfig::None => None,
            UnitConfig::HbmPim(u) => Some(u.clock_mhz),
            UnitConfig::GeoPim(u) => Some(u.clock_mhz),
            UnitConfig::Aim(u) => Some(u.clock_mhz),
        }
    }

    /// How many activations a command for many banks counts.
    pub fn act_weight(&self) -> u32 {
        match self {
            UnitConfig::None => 1,
            UnitConfig::HbmPim(u) => u.act_weight,
            UnitConfig::GeoPim(u) => u.act_weight,
            UnitConfig::Aim(u) => u.act_weight,
        }
    }

    /// Banks of a unit; 0 where there are no units.
    pub fn banks(&self) -> u32 {
        match self {
            UnitConfig::None => 0,
            UnitConfig::HbmPim(_) => 2,
            UnitConfig::GeoPim(_) | UnitConfig::Aim(_) => 1,
        }
    }

    /// Units of the device.
    pub fn count(&self, g: &Geometry) -> u32 {
        let most = match self.banks() {
            0 => 0,
            n => g.banks() / n,
        };
        match self {
            UnitConfig::GeoPim(u) if u.units != 0 => u.units.min(most),
            _ => most,
        }
    }

    /// Channel, pseudo-channel, bank group and first bank of unit `n`, which is below [`Self::count`].
    pub fn home(&self, n: u32, g: &Geometry) -> [u32; 4] {
        let per_group = g.bank / self.banks().max(1);
        // Commands step the units of a pseudo-channel together, so these are counted first.
        let spread = matches!(self, UnitConfig::GeoPim(u) if u.spread != 0);
        // Digits from the fastest on, and where each goes.
        let order = if spread { [0, 1, 2, 3] } else { [3, 2, 1, 0] };
        let extents = [g.channel, g.pch, g.bg, per_group.max(1)];
        let (mut rest, mut at) = (n, [0; 4]);
        for digit in order {
            at[digit] = rest % extents[digit];
            rest /= extents[digit];
        }
        at[3] *= self.banks().max(1);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Geometry = Geometry { channel: 2, pch: 2, bg: 4, bank: 4, row: 16, col: 32, burst: 32 };

    #[test]
    fn every_bank_has_one_unit() {
        for unit in [
            UnitConfig::GeoPim(GeoPim::default()),
            UnitConfig::GeoPim(GeoPim { spread: 0, ..GeoPim::default() }),
            UnitConfig::HbmPim(HbmPim::default()),
        ] {
            let homes: std::collections::BTreeSet<_> = (0..unit.count(&G)).map(|n| unit.home(n, &G)).collect();
            assert_eq!(homes.len() as u32 * unit.banks(), G.banks());
            assert!(homes.iter().all(|[c, p, g, b]| *c < 2 && *p < 2 && *g < 4 && b + unit.banks() <= 4));
        }
        let packed = UnitConfig::GeoPim(GeoPim { spread: 0, ..GeoPim::default() });
        assert_eq!((packed.home(5, &G), packed.home(16, &G)), ([0, 0, 1, 1], [0, 1, 0, 0]));
        let spread = UnitConfig::GeoPim(GeoPim::default());
        assert_eq!((spread.home(1, &G), spread.home(17, &G)), ([1, 0, 0, 0], [1, 0, 0, 1]));
        let hbm = UnitConfig::HbmPim(HbmPim::default());
        assert_eq!((hbm.home(1, &G), hbm.home(2, &G), hbm.home(17, &G)), ([0, 0, 0, 2], [0, 0, 1, 0], [1, 0, 0, 2]));
    }
}
