//! What a unit is made of: every number a parameter, and what a map asks of them.

use std::fmt;

/// A unit beside each bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitConfig {
    /// Its clock in kHz.
    pub clock_khz: u32,
    /// Multiply-accumulates a cycle.
    pub lanes: u32,
    /// Channels of a tile: 8 or 16.
    pub tile_channels: u32,
    /// Halves of the tile buffer: 2 overlap fetching and computing, 1 does not.
    pub buffers: u32,
    /// Bytes of the tile buffer, all halves.
    pub buffer_bytes: u32,
    /// Accumulators of 32 bits.
    pub accumulators: u32,
    /// Parameter entries that are loaded at once.
    pub entries: u32,
    /// Cycles from an offset to the addresses of a sample.
    pub address_cycles: u32,
    /// Bytes of the scratchpad that the units of a channel share; 0: there is none.
    pub scratchpad_bytes: u32,
    /// Cycles of a burst from the scratchpad.
    pub scratchpad_cycles: u32,
    /// Neighbours of a tile in one row are fetched together, whatever their order.
    pub group_rows: bool,
}

impl UnitConfig {
    /// The unit of the design, with the readings of `spec/geopim.md`: 500 MHz, 16 channels a tile, 128 accumulators.
    pub const DESIGN: UnitConfig = UnitConfig {
        clock_khz: 500_000,
        lanes: 8,
        tile_channels: 16,
        buffers: 2,
        buffer_bytes: 256,
        accumulators: 128,
        entries: 4,
        address_cycles: 2,
        scratchpad_bytes: 0,
        scratchpad_cycles: 2,
        group_rows: true,
    };
}

impl Default for UnitConfig {
    fn default() -> UnitConfig {
        UnitConfig::DESIGN
    }
}

/// In which order a sample's bursts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// Tile by tile of channels, four neighbours each.
    TileMajor,
    /// Neighbour by neighbour, all channels each. Only with folded weights: else the neighbours' sum would have to
    /// wait.
    #[default]
    NeighbourMajor,
    /// Tile by tile, all samples each: two tiles' accumulators do, one of which is written while the other adds;
    /// coordinates are computed, and weights read, once for every tile.
    TileOuter,
}

/// Why a unit cannot do what is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl UnitConfig {
    /// Bytes of half a tile buffer.
    pub fn half_bytes(&self) -> u32 {
        self.buffer_bytes / self.buffers.max(1)
    }

    /// Checks that the unit is one that can be built, and that it can sample maps of so many channels in this order.
    pub fn check(&self, channels: u32, order: Order, fold: bool) -> Result<(), Refusal> {
        let refuse = |text: String| Err(Refusal(text));
        if self.clock_khz == 0 || self.lanes == 0 || self.entries == 0 || !(1..=2).contains(&self.buffers) {
            return refuse("a unit needs a clock, a lane, a parameter entry and one or two tile buffers".into());
        }
        if !matches!(self.tile_channels, 8 | 16) {
            return refuse(format!("a tile has 8 or 16 channels, not {}", self.tile_channels));
        }
        if !self.tile_channels.is_multiple_of(self.lanes) {
            return refuse(format!("{} lanes do not divide a tile of {} channels", self.lanes, self.tile_channels));
        }
        let tile = 4 * self.tile_channels * 2;
        if tile > self.half_bytes() {
            return refuse(format!(
                "a tile of 4 neighbours x {} channels x 2 B has {tile} B; half of the tile buffer has {} B",
                self.tile_channels,
                self.half_bytes()
            ));
        }
        if channels == 0 || !channels.is_multiple_of(16) {
            return refuse(format!("a pixel is whole bursts of 16 channels, not {channels} channels"));
        }
        let (needed, why) = match order {
            Order::TileOuter => (2 * self.tile_channels, format!("two tiles of {} channels", self.tile_channels)),
            _ => (channels, format!("{channels} channels")),
        };
        if needed > self.accumulators {
            return refuse(format!(
                "{why} need {needed} accumulators ({} B); the unit has {} ({} B)",
                4 * needed,
                self.accumulators,
                4 * self.accumulators
            ));
        }
        if order == Order::NeighbourMajor && !fold {
            return refuse(
                "neighbour by neighbour needs folded weights: without, the sum of the four waits in f16 for all \
                channels"
                    .into(),
            );
        }
        Ok(())
    }

    /// Cycles that a tile computes: four products a channel, and without folding the accumulation.
    pub fn tile_cycles(&self, fold: bool) -> u64 {
        u64::from(self.tile_channels / self.lanes) * if fold { 4 } else { 5 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is over a budget is refused with the numbers.
    #[test]
    fn budgets() {
        let unit = UnitConfig::default();
        assert_eq!(unit.check(128, Order::TileMajor, false), Ok(()));
        assert_eq!(unit.check(128, Order::NeighbourMajor, true), Ok(()));
        let says = |u: UnitConfig, c, o, f| u.check(c, o, f).unwrap_err().0;
        let paper = UnitConfig { accumulators: 16, ..unit };
        assert_eq!(
            says(paper, 128, Order::TileMajor, false),
            "128 channels need 128 accumulators (512 B); the unit has 16 (64 B)"
        );
        assert!(says(unit, 256, Order::TileMajor, false).starts_with("256 channels need"));
        // The paper's 16 do with eight channels a tile, tiles outermost (`spec/geopim.md`, decisions).
        assert_eq!(UnitConfig { tile_channels: 8, ..paper }.check(128, Order::TileOuter, false), Ok(()));
        assert!(says(paper, 128, Order::TileOuter, false).starts_with("two tiles of 16 channels need 32"));
        let small = UnitConfig { buffer_bytes: 128, ..unit };
        assert!(says(small, 128, Order::TileMajor, false).contains("has 128 B; half of the tile buffer has 64 B"));
        assert_eq!(UnitConfig { tile_channels: 8, ..small }.check(128, Order::TileMajor, false), Ok(()));
        assert!(says(unit, 128, Order::NeighbourMajor, false).contains("needs folded weights"));
        assert!(says(unit, 24, Order::TileMajor, true).contains("whole bursts"));
    }

    /// Five cycles a tile of 8 channels, and twice that for 16.
    #[test]
    fn cycles() {
        let unit = UnitConfig::default();
        assert_eq!((unit.tile_cycles(false), unit.tile_cycles(true)), (10, 8));
        let eight = UnitConfig { tile_channels: 8, ..unit };
        assert_eq!((eight.tile_cycles(false), eight.tile_cycles(true)), (5, 4));
    }
}
