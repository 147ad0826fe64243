//! A device's configuration: organisation, timing, ticks a clock, constraints.

use std::collections::BTreeMap;

use super::command::Command;
use super::org::Org;
use super::rules::Constraint;
use super::timing::{Standard, Timing};

/// Everything that describes a device. Build it from a text, from a preset, or by changing one and calling
/// `Config::derive` again.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// A name for reports: the preset's, or the file's.
    pub name: String,
    /// The row-command rules.
    pub standard: Standard,
    /// Counts.
    pub org: Org,
    /// Timing in nCK.
    pub timing: Timing,
    /// Ticks of the simulation in one clock.
    pub tick_multiplier: u32,
    /// Ticks that each command holds its bus, by command id.
    pub command_ticks: [u32; Command::COUNT],
    /// The resolved constraints, in ticks.
    pub constraints: Vec<Constraint>,
    /// The `energy` table of the file, if any: names to numbers, not interpreted here.
    pub energy: BTreeMap<String, f64>,
}

impl Config {
    /// Picoseconds of a tick.
    pub fn tick_ps(&self) -> f64 {
        f64::from(self.timing.tck_ps) / f64::from(self.tick_multiplier)
    }

    /// Ticks from the first cycle of RD to the end of its data.
    pub fn read_latency(&self) -> u64 {
        u64::from(self.timing.cl + self.timing.bl) * u64::from(self.tick_multiplier)
    }
}
