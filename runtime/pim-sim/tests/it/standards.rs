//! Distances of the standards with one command bus, computed by hand from their tables.
//!
//! A parameter counts between the ends of two commands, so a gap between first ticks is the parameter, plus the length
//! of the first command, less that of the second. Lengths in clocks: DDR5 has two for ACT, RD and WR, LPDDR5 two for
//! ACT (ACT-1 and ACT-2), all others one. Data: a read is over nCL + nBL after its command, a write nCWL + nBL; nBL is
//! the burst over the bits that a pin moves in a clock: DDR4 8/2, DDR5 16/2, GDDR6 16/8, LPDDR5 16/8.

use ptoc_pim_sim::check::{Options, Rule, check};
use ptoc_pim_sim::dram::Command::{self, Act, PreAb, PrePb, Rd, RdA, RefAb, RefPb, Wr, WrA};
use ptoc_pim_sim::dram::{Address, Config, Controller, Device, Issued, Refresh, Request, SimError, simulate};
use ptoc_pim_sim::energy::Model;

use crate::checker::{at, nine_acts, pair};
use crate::support::{ONE_BUS, preset};

/// Two commands, where the second goes relative to the first, and the least distance of their first ticks.
type Gap = (Command, Command, &'static str, u64);

const BANK: &str = "same_bank";
const GROUP: &str = "same_bankgroup";
const OTHER: &str = "other_bankgroup";

/// DDR4-3200AA at 0.625 ns: CL 22, CWL 16, tRCD = tRP = 13.75 ns, tRAS 32 ns less half a clock, tWR 15 ns, tRTP 7.5 ns.
const DDR4: &[Gap] = &[
    (Act, Rd, BANK, 22),
    (Act, Wr, BANK, 22),
    (Act, PrePb, BANK, 52),
    (Act, Act, BANK, 74),
    (Act, Act, GROUP, 8),
    (Act, Act, OTHER, 4),
    (PrePb, Act, BANK, 22),
    (PreAb, Act, OTHER, 22),
    (PrePb, PrePb, OTHER, 1),
    (PrePb, Rd, OTHER, 1),
    (Rd, Rd, GROUP, 8),
    (Rd, Rd, OTHER, 4),
    (Wr, Wr, GROUP, 8),
    (Wr, Wr, OTHER, 4),
    (Rd, Wr, OTHER, 22 + 4 + 2 - 16),
    (Wr, Rd, GROUP, 16 + 4 + 12),
    (Wr, Rd, OTHER, 16 + 4 + 4),
    (Rd, PrePb, BANK, 12),
    (Wr, PrePb, BANK, 16 + 4 + 24),
    (RdA, Act, BANK, 12 + 22),
    (WrA, Act, BANK, 16 + 4 + 24 + 22),
    (RefAb, Act, OTHER, 560),
    (Act, RefAb, OTHER, 74),
];

/// DDR5-4800B at 0.416 ns: CL 36, CWL 34, tRCD = tRP = 15 ns, tRAS 32 ns, tWR 30 ns, tRTP 7.5 ns; tCCD_L_WR 20 ns.
const DDR5: &[Gap] = &[
    (Act, Rd, BANK, 36),
    (Act, PrePb, BANK, 77 + 1),
    (Act, Act, BANK, 113),
    (Act, Act, GROUP, 12),
    (Act, Act, OTHER, 8),
    (Act, Rd, OTHER, 2),
    (PrePb, Act, BANK, 36 - 1),
    (PrePb, PrePb, OTHER, 2),
    (PrePb, Rd, OTHER, 1),
    (Rd, Rd, GROUP, 12),
    (Rd, Rd, OTHER, 8),
    (Wr, Wr, GROUP, 48),
    (Wr, Wr, OTHER, 8),
    (Rd, Wr, OTHER, 36 + 8 + 4 - 34),
    (Wr, Rd, GROUP, 34 + 8 + 24),
    (Wr, Rd, OTHER, 34 + 8 + 6),
    (Rd, PrePb, BANK, 18 + 1),
    (Wr, PrePb, BANK, 34 + 8 + 72 + 1),
    (WrA, Act, BANK, 34 + 8 + 72 + 36),
    (RefAb, Act, OTHER, 710 - 1),
];

/// GDDR6 at 0.57 ns: RL 24, WL 6; tRCDRD 15 ns, tRCDWR 9 ns, tRP 15 ns, tRAS 30 ns, tWR 15 ns, tFAW 16 ns.
const GDDR6: &[Gap] = &[
    (Act, Rd, BANK, 27),
    (Act, Wr, BANK, 16),
    (Act, PrePb, BANK, 53),
    (Act, Act, BANK, 79),
    (Act, Act, OTHER, 8),
    (PrePb, Act, BANK, 27),
    (PrePb, PrePb, OTHER, 1),
    (Rd, Rd, GROUP, 4),
    (Rd, Rd, OTHER, 2),
    (Wr, Wr, GROUP, 4),
    (Rd, Wr, OTHER, 24 + 1),
    (Wr, Rd, GROUP, 6 + 2 + 11),
    (Wr, Rd, OTHER, 6 + 2 + 9),
    (Rd, PrePb, BANK, 4),
    (Wr, PrePb, BANK, 6 + 2 + 27),
    (RefPb, Act, BANK, 106),
    (RefPb, Act, OTHER, 15),
    (RefPb, RefPb, OTHER, 15),
    (RefAb, Act, OTHER, 211),
];

/// The GDDR6 of AiM at 0.5 ns: tRCDRD 18 ns, tRCDWR 14 ns, tRP 16 ns, tRAS 27 ns; no bank groups for column commands.
const AIM: &[Gap] = &[
    (Act, Rd, BANK, 36),
    (Act, Wr, BANK, 28),
    (Act, PrePb, BANK, 54),
    (PrePb, Act, BANK, 32),
    (Rd, Rd, GROUP, 2),
    (Rd, Rd, OTHER, 2),
    (Act, Act, OTHER, 11),
    (Rd, Wr, OTHER, 50 + 1),
    (Wr, PrePb, BANK, 6 + 2 + 33),
];

/// LPDDR5-6400 at 1.25 ns: RL 17, WL 9; tRCD 18 ns, tRPpb 18 ns, tRPab 21 ns, tRAS 42 ns, tWR 34 ns, tRBTP 7.5 ns.
const LPDDR5: &[Gap] = &[
    (Act, Rd, BANK, 15 + 1),
    (Act, Wr, BANK, 15 + 1),
    (Act, PrePb, BANK, 34 + 1),
    (Act, Act, BANK, 49),
    (Act, Act, OTHER, 4),
    (Act, Rd, OTHER, 2),
    (PrePb, Act, BANK, 15 - 1),
    (PreAb, Act, OTHER, 17 - 1),
    (PrePb, RefAb, OTHER, 15),
    (PreAb, RefAb, OTHER, 17),
    (PrePb, PrePb, OTHER, 2),
    (Rd, Rd, GROUP, 4),
    (Rd, Rd, OTHER, 2),
    (Wr, Wr, GROUP, 4),
    (Rd, Wr, OTHER, 17 + 2 + 2 - 9),
    (Wr, Rd, GROUP, 9 + 4 + 10),
    (Wr, Rd, OTHER, 9 + 2 + 5),
    (Rd, PrePb, BANK, 8),
    (Wr, PrePb, BANK, 9 + 2 + 28),
    (RefPb, RefPb, OTHER, 72),
    (RefPb, Act, OTHER, 6 - 1),
    (RefPb, Act, BANK, 96 - 1),
    (RefAb, Act, OTHER, 168 - 1),
];

fn tables() -> [(&'static str, &'static [Gap]); 5] {
    [("ddr4_3200", DDR4), ("ddr5_4800", DDR5), ("gddr6_14000", GDDR6), ("gddr6_aim", AIM), ("lpddr5_6400", LPDDR5)]
}

/// The checker takes each pair at its distance, and refuses it a tick earlier with that number.
#[test]
fn the_checker_has_the_distances() {
    let gaps = Options { strict: false, state: false, refresh: false };
    for (name, table) in tables() {
        let config = preset(name);
        for &(first, second, scope, gap) in table {
            let what = format!("{name}: {}->{}:{scope}", first.name(), second.name());
            assert_eq!(check(&config, &pair(first, second, scope, gap), gaps), [], "{what}");
            let found = check(&config, &pair(first, second, scope, gap - 1), gaps);
            assert!(found.len() == 1 && found[0].need == gap, "{what}: {found:?}");
        }
    }
}

/// The engine's earliest tick is that distance.
#[test]
fn the_engine_has_the_distances() {
    for (name, table) in tables() {
        let config = preset(name);
        let bank = |i: &Issued| config.org.bank_index(i.address.bankgroup, i.address.bank) as usize;
        for &(first, second, scope, gap) in table {
            let [a, b] = pair(first, second, scope, gap);
            let mut device = Device::new(&config);
            device.issue(a.command, bank(&a), 0, a.tick);
            let earliest = device.earliest(b.command, bank(&b));
            assert_eq!(earliest, b.tick, "{name}: {}->{}:{scope}", first.name(), second.name());
        }
    }
}

/// Nine ACTs to different banks: tRRD_S three times, then the window of four.
#[test]
fn windows_of_activations() {
    let want = |rrd: u64, window: u64| -> Vec<u64> { (0..9).map(|n| n / 4 * window + n % 4 * rrd).collect() };
    for (name, rrd, window) in [
        ("ddr4_3200", 4, 34),
        ("ddr5_4800", 8, 32),
        ("gddr6_14000", 8, 32), // 29, but the fourth ACT is at 24 and tRRD is 8
        ("gddr6_aim", 11, 44),
        ("lpddr5_6400", 4, 16),
    ] {
        assert_eq!(nine_acts(&preset(name)), want(rrd, window), "{name}");
    }
}

/// One bus: a row and a column command that HBM takes together.
#[test]
fn one_command_bus() {
    let trace = |ticks: u64| [at(0, Act, 0, 0, 0, 0), at(100, Rd, 0, 0, 0, 0), at(100 + ticks, Act, 0, 1, 0, 0)];
    assert_eq!(check(&preset("hbm2_2000"), &trace(0), Options::default()), []);
    for name in ONE_BUS {
        let config = preset(name);
        let found = check(&config, &trace(0), Options::default());
        assert!(matches!(&found[..], [v] if v.rule == Rule::CommandBus), "{name}: {found:?}");
        let held = u64::from(config.command_ticks[Rd as usize]);
        assert_eq!(check(&config, &trace(held), Options::default()), [], "{name}");
    }
}

/// DDR4 and DDR5 refresh whole ranks.
#[test]
fn refresh_of_single_banks() {
    let request = Request { address: Address::default(), write: false };
    for name in ONE_BUS {
        let controller = Controller { refresh: Refresh::PerBank, ..Controller::default() };
        let result = simulate(&preset(name), &controller, [request], |_| {});
        match result {
            Err(SimError::NoBankRefresh { standard }) => assert!(name.starts_with("ddr"), "{name}, {standard}"),
            other => assert!(!name.starts_with("ddr") && other.is_ok(), "{name}: {other:?}"),
        }
    }
}

#[test]
fn what_a_file_of_a_standard_may_not_say() {
    let ddr4 = include_str!("../../presets/ddr4_3200.toml");
    let says = |text: &str| {
        let loaded = Config::parse("d", text);
        let all = loaded.map_or_else(|errors| errors, |l| l.warnings);
        all.iter().map(|e| format!("{}:{} {}; {}", e.line, e.column, e.message, e.help)).collect::<Vec<_>>()
    };
    assert_eq!(
        says(&ddr4.replace("bankgroup = 4", "sid = 2\nbankgroup = 4")),
        ["13:7 DDR4 has one rank here, and no sid: this should be 1; ranks that share a bus are not modelled; \
          describe one of them"]
    );
    assert_eq!(
        says(&ddr4.replace("nRFC = 560", "nRFC = 560\nnPPD = 2")),
        ["39:8 DDR4 has no rule between precharges; it is not used"]
    );
    let unknown = &says(&ddr4.replace("\"DDR4\"", "\"DDR3\""))[0];
    assert!(unknown.contains("\"HBM2\", \"HBM3\", \"DDR4\", \"DDR5\", \"GDDR6\", \"LPDDR5\""), "{unknown}");
}

/// Currents of other standards are of the channel that the file describes, and the file gives all of them.
#[test]
fn energies() {
    // 1.2 V (456 mA x 46.25 ns - 416 mA x 32.5 ns - 296 mA x 13.75 ns) of ACT; 1.2 V (1344 - 416) mA x 2.5 ns of RD.
    let model = Model::of(&preset("ddr4_3200")).unwrap();
    assert!((model.activate - 4200.0).abs() < 1e-6, "{}", model.activate);
    assert!((model.read - 2784.0).abs() < 1e-6, "{}", model.read);
    assert!((model.active_mw - 499.2).abs() < 1e-6, "{}", model.active_mw);
    let mut config = preset("lpddr5_6400");
    config.energy.remove("idd4w_mA");
    let error = Model::of(&config).unwrap_err();
    assert_eq!((error.key.as_str(), error.message.contains("LPDDR5")), ("idd4w_mA", true));
    for name in ONE_BUS {
        assert!(Model::of(&preset(name)).is_ok(), "{name}");
    }
}
