//! A device's configuration: organisation, timing, ticks a clock, constraints.

mod read;

use std::collections::BTreeMap;

use super::command::Command;
use super::org::Org;
use super::rules::{self, Constraint};
use super::standard::Standard;
use super::timing::Timing;
use crate::located::InputError;

/// Everything that describes a device. Build it from a text ([`Config::parse`]), from a preset
/// ([`Config::preset`]), or by changing one and calling [`Config::derive`] again.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// A name for reports: the preset's, or the file's `name`.
    pub name: String,
    /// The rules.
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

/// A configuration and what is doubtful in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What the user should know: keys that nothing reads, values that contradict each other.
    pub warnings: Vec<InputError>,
}

impl Config {
    /// The largest timing parameter. Sums of a few of them in ticks stay far from any overflow.
    pub const MAX_TIMING: u32 = 10_000_000;
    /// The most ticks in a clock.
    pub const MAX_TICK_MULTIPLIER: u32 = 16;

    /// Reads a configuration in JSON or TOML. `name` is for reports where the file gives none.
    ///
    /// `org` and `timing_nCK` are tables, `tick_multiplier` a number (1 where absent), `standard` the name of a
    /// [`Standard`] (where absent HBM3 if there is nPPD, nRTW or two ticks a clock, else HBM2). The timing parameters
    /// are the truth: a `constraints` list is compared with what they give, and a difference is a warning, unless the
    /// file says `constraints_override = true`, which makes the list the truth.
    pub fn parse(name: &str, text: &str) -> Result<Loaded, Vec<InputError>> {
        read::read(name, text)
    }

    /// Reads the configuration that a table of a TOML document is; other tables are somebody else's.
    pub fn in_table(name: &str, text: &str, table: &str) -> Result<Loaded, Vec<InputError>> {
        let document = crate::located::parse_toml(text).map_err(|e| vec![e])?;
        match document.get(table) {
            Some(node) => read::of_node(name, text, node),
            None => Err(vec![InputError::whole(format!("there is no table `{table}`"))]),
        }
    }

    /// Computes the constraints anew from the named timing parameters.
    pub fn derive(&mut self) {
        self.constraints =
            rules::derive(self.standard, &self.org, &self.timing, self.tick_multiplier, &self.command_ticks);
    }

    /// Picoseconds of a tick.
    pub fn tick_ps(&self) -> f64 {
        f64::from(self.timing.tck_ps) / f64::from(self.tick_multiplier)
    }

    /// Ticks from the first cycle of RD to the end of its data.
    pub fn read_latency(&self) -> u64 {
        (u64::from(self.timing.cl) + u64::from(self.timing.bl)) * u64::from(self.tick_multiplier)
    }

    /// A timing parameter given in clocks, in ticks.
    pub fn ticks(&self, clocks: u32) -> u64 {
        u64::from(clocks) * u64::from(self.tick_multiplier)
    }
}
