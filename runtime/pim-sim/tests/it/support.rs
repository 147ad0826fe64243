//! Golden files and shared helpers.

use std::path::PathBuf;

use ptoc_pim_sim::dram::Config;

pub fn golden_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/dram").join(name)
}

pub fn golden(name: &str) -> String {
    std::fs::read_to_string(golden_path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

pub fn golden_json(name: &str) -> serde_json::Value {
    serde_json::from_str(&golden(name)).expect("golden JSON")
}

/// The presets of standards with one command bus.
pub const ONE_BUS: [&str; 5] = ["ddr4_3200", "ddr5_4800", "gddr6_14000", "gddr6_aim", "lpddr5_6400"];

pub fn preset(name: &str) -> Config {
    Config::preset(name).expect("a preset")
}
