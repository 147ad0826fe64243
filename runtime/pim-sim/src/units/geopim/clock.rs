//! Two clocks: the device counts ticks, a unit counts cycles of its own.

use crate::dram::Config;

/// A unit's clock beside the device's. Both begin at 0. Conversions are exact and round up: to the first edge that is
/// not earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Ticks of a cycle are `ticks / cycles`.
    ticks: u128,
    cycles: u128,
}

impl Clock {
    /// A clock of `khz` kHz, at least 1, beside the device's.
    pub fn new(khz: u32, config: &Config) -> Clock {
        // A cycle is 1e9 / khz picoseconds, a tick tCK / tick_multiplier.
        Clock {
            ticks: 1_000_000_000 * u128::from(config.tick_multiplier),
            cycles: u128::from(khz.max(1)) * u128::from(config.timing.tck_ps.max(1)),
        }
    }

    /// The first tick at or after the beginning of a cycle.
    pub fn tick(&self, cycle: u64) -> u64 {
        (u128::from(cycle) * self.ticks).div_ceil(self.cycles) as u64
    }

    /// The first cycle that begins at or after a tick.
    pub fn cycle(&self, tick: u64) -> u64 {
        (u128::from(tick) * self.cycles).div_ceil(self.ticks) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cycles_of_two_ticks() {
        let hbm2 = Config::preset("hbm2_2000").unwrap();
        let clock = Clock::new(500_000, &hbm2);
        assert_eq!((clock.tick(3), clock.cycle(6), clock.cycle(7)), (6, 3, 4));
        // 300 MHz: 10/3 ticks a cycle.
        let slow = Clock::new(300_000, &hbm2);
        assert_eq!((slow.tick(1), slow.tick(2), slow.tick(3), slow.cycle(10), slow.cycle(11)), (4, 7, 10, 3, 4));
        // HBM3 counts half clocks of 312.5 ps.
        let half = Clock::new(500_000, &Config::preset("hbm3_6400").unwrap());
        assert_eq!((half.tick(5), half.cycle(32)), (32, 5));
    }

    proptest! {
        #[test]
        fn the_first_edge_that_is_not_earlier(khz in 1u32..3_000_000, tick in 0u64..1 << 40) {
            let clock = Clock::new(khz, &Config::preset("hbm3_6400").unwrap());
            let cycle = clock.cycle(tick);
            prop_assert!(clock.tick(cycle) >= tick);
            prop_assert!(cycle == 0 || clock.tick(cycle - 1) <= tick);
        }
    }
}
