//! Devices by name, as data files with their sources.

use super::config::Config;

/// A device that comes with the simulator.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name, as `--config` takes it.
    pub name: &'static str,
    /// Its file; comments name the sources.
    pub text: &'static str,
}

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset { name: "hbm2_2000", text: include_str!("../../presets/hbm2_2000.toml") },
    Preset { name: "hbm2_samsung_pim", text: include_str!("../../presets/hbm2_samsung_pim.toml") },
    Preset { name: "hbm3_6400", text: include_str!("../../presets/hbm3_6400.toml") },
    Preset { name: "gddr6_14000", text: include_str!("../../presets/gddr6_14000.toml") },
    Preset { name: "gddr6_aim", text: include_str!("../../presets/gddr6_aim.toml") },
    Preset { name: "lpddr5_6400", text: include_str!("../../presets/lpddr5_6400.toml") },
    Preset { name: "ddr4_3200", text: include_str!("../../presets/ddr4_3200.toml") },
    Preset { name: "ddr5_4800", text: include_str!("../../presets/ddr5_4800.toml") },
];

impl Config {
    /// The preset of that name.
    pub fn preset(name: &str) -> Option<Config> {
        let preset = PRESETS.iter().find(|p| p.name == name)?;
        // A test reads every preset, so this cannot fail for a user.
        Config::parse(preset.name, preset.text).ok().map(|loaded| loaded.config)
    }
}
