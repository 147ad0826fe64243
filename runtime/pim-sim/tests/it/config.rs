//! Configurations: presets, the golden file, derived constraints, refusals.

use ptoc_pim_sim::dram::presets::PRESETS;
use ptoc_pim_sim::dram::{Command, Config, Constraint, Level};

use crate::support::{golden, golden_json, preset};

fn as_json(c: &Constraint) -> serde_json::Value {
    let level = match c.level {
        Level::Channel => 0,
        Level::PseudoChannel => 1,
        Level::Sid => panic!("HBM2 has no SID"),
        Level::BankGroup => 2,
        Level::Bank => 3,
    };
    let ids = |set: ptoc_pim_sim::dram::CommandSet| set.iter().map(|c| c as u8).collect::<Vec<_>>();
    let mut out = vec![level.into(), ids(c.preceding).into(), ids(c.following).into(), c.gap.into()];
    if c.window != 1 {
        out.push(c.window.into());
    }
    serde_json::Value::Array(out)
}

#[test]
fn every_preset_reads_without_a_warning() {
    for preset in PRESETS {
        let loaded = Config::parse(preset.name, preset.text).unwrap_or_else(|e| panic!("{}: {e:?}", preset.name));
        assert_eq!(loaded.warnings, [], "{}", preset.name);
        assert_eq!(loaded.config.name, preset.name);
        let org = &loaded.config.org;
        // A DIMM's 64 pins move 64 bytes; the others' bursts are those of streams.
        let wide = preset.name.starts_with("ddr");
        assert_eq!(org.burst_bytes(), if wide { 64 } else { 32 }, "{}", preset.name);
        let row = org.burst_bytes() * org.bursts_per_row();
        let want = match preset.name {
            "ddr4_3200" => 8192,
            "ddr5_4800" => 4096,
            "gddr6_14000" | "gddr6_aim" | "lpddr5_6400" => 2048,
            _ => 1024,
        };
        assert_eq!(row, want, "{}", preset.name);
    }
}

#[test]
fn the_derived_constraints_are_the_golden_list() {
    let derived: Vec<_> = preset("hbm2_2000").constraints.iter().map(as_json).collect();
    let golden = golden_json("hbm2_2000.json");
    assert_eq!(&derived, golden["constraints"].as_array().unwrap());
}

#[test]
fn the_golden_file_is_the_preset() {
    let loaded = Config::parse("hbm2_2000", &golden("hbm2_2000.json")).unwrap();
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config, preset("hbm2_2000"));
    assert_eq!(loaded.config.read_latency(), 16);
}

/// The gaps of HBM3: half-clock ticks, ACT holds three, RD and WR two.
#[test]
fn hbm3_gaps() {
    let config = preset("hbm3_6400");
    let gap = |level, p: Command, f: Command| {
        config
            .constraints
            .iter()
            .filter(|c| c.level == level && c.window == 1 && c.preceding.contains(p) && c.following.contains(f))
            .map(|c| c.gap)
            .max()
            .unwrap()
    };
    use Command::{Act, PrePb, Rd, Wr};
    assert_eq!(gap(Level::Bank, Act, Rd), 2 * 31 + 1);
    assert_eq!(gap(Level::Bank, Act, Wr), 2 * 15 + 1);
    assert_eq!(gap(Level::Bank, Act, PrePb), 2 * 45 + 2);
    assert_eq!(gap(Level::Bank, PrePb, Act), 2 * 26 - 2);
    assert_eq!(gap(Level::Bank, Rd, PrePb), 2 * 9 + 1);
    assert_eq!(gap(Level::Bank, Wr, PrePb), 2 * (10 + 2 + 33) + 1);
    assert_eq!(gap(Level::PseudoChannel, PrePb, PrePb), 4);
    assert_eq!(gap(Level::PseudoChannel, Rd, Wr), 40);
    assert_eq!(gap(Level::Channel, Act, PrePb), 3);
    assert_eq!(gap(Level::Channel, Rd, Wr), 2);
}

#[test]
fn refusals_say_where() {
    let base = PRESETS[0].text;
    let mut out = String::new();
    let mut show = |title: &str, text: &str| {
        out.push_str(&format!("## {title}\n"));
        match Config::parse("f", text) {
            Ok(loaded) => loaded.warnings.iter().for_each(|w| out.push_str(&format!("warning {w}\n"))),
            Err(errors) => errors.iter().for_each(|e| out.push_str(&format!("{e}\n"))),
        }
    };
    show("misspelt", &base.replace("nFAW", "nFAV"));
    show("misspelt count", &base.replace("bankgroup = 4", "bankgrop = 4"));
    show("negative", &base.replace("nFAW = 15", "nFAW = -15"));
    show("a string", &base.replace("nFAW = 15", "nFAW = \"15\""));
    show("missing", &base.replace("nRAS = 34\n", "").replace("bank = 4\n", "").replace("bankgroup = 4\n", ""));
    show("columns", &base.replace("column = 128", "column = 30"));
    show("too many banks", &base.replace("bankgroup = 4", "bankgroup = 64").replace("bank = 4", "bank = 64"));
    show("HBM3 ticks", &PRESETS[2].text.replace("tick_multiplier = 2", "tick_multiplier = 1"));
    show("no TOML", "org = [1,\n");
    show("no JSON", "{\"org\": {\"dq\": 64,}}");
    show("JSON twice", "{\"org\": 1,\n \"org\": 2}");
    show("JSON deep", &"{\"a\":".repeat(100));
    show("a list", "{\"org\": [], \"timing_nCK\": 3}");
    show("unknown key", &format!("tick_multiplyer = 1\n{base}"));
    let golden = golden("hbm2_2000.json");
    show("stale constraints", &golden.replace("\"nFAW\":15", "\"nFAW\":30"));
    show("both spellings", &base.replace("nRTPL = 5", "nRTPL = 5\nnRTP = 5"));
    insta::assert_snapshot!(out);
}

#[test]
fn an_explicit_list_may_win() {
    let text = golden("hbm2_2000.json").replacen('{', "{\"constraints_override\": true,", 1);
    let config = Config::parse("x", &text.replace("\"nFAW\":15", "\"nFAW\":30")).unwrap().config;
    assert!(config.constraints.iter().any(|c| c.window == 4 && c.gap == 15));
    let mut again = config.clone();
    again.derive();
    assert!(again.constraints.iter().any(|c| c.window == 4 && c.gap == 30));
}

#[test]
fn data_that_would_meet_is_reported() {
    let text = PRESETS[2].text.replace("nRTW = 20", "nRTW = 10");
    let warnings = Config::parse("x", &text).unwrap().warnings;
    let shown: Vec<String> = warnings.iter().map(|w| w.to_string()).collect();
    assert_eq!(
        shown,
        ["41:8: `timing_nCK.nRTW`: the data of a WR 10 clocks after a RD meets the RD's on the bus; nCL + nBL - \
            nCWL = 12 clocks keep them apart"]
    );
}
