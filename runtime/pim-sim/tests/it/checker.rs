//! The rule checker: the golden gap matrix pair by pair, golden traces, and what it says of broken ones.

use ptoc_pim_sim::check::{Options, Rule, Violation, check, shown};
use ptoc_pim_sim::dram::{Address, Command, Config, Issued};
use std::fmt::Write as _;

use crate::support::{golden_json, preset};

/// Distances alone.
const GAPS: Options = Options { strict: false, state: false, refresh: false };

pub fn at(tick: u64, command: Command, pc: u16, bankgroup: u16, bank: u16, row: u32) -> Issued {
    Issued { tick, command, address: Address { pc, bankgroup, bank, row, column: 0 } }
}

/// Two commands so far apart, the second where `scope` says.
pub fn pair(first: Command, second: Command, scope: &str, gap: u64) -> [Issued; 2] {
    let (pc, group, bank) = match scope {
        "same_bank" => (0, 0, 0),
        "same_bankgroup" => (0, 0, 1),
        "other_bankgroup" => (0, 1, 0),
        "other_pseudochannel" => (1, 0, 0),
        _ => panic!("{scope}"),
    };
    [at(1000, first, 0, 0, 0, 0), at(1000 + gap, second, pc, group, bank, 0)]
}

/// Slots of the command buses are no distance of the matrix: it has 0 between commands that share a bus.
fn is_slot(v: &Violation) -> bool {
    matches!(v.rule, Rule::RowBus | Rule::ColumnBus) && v.need == 1
}

#[test]
fn the_gap_matrix_is_exact() {
    let config = preset("hbm2_2000");
    let matrix = golden_json("gap_matrix_hbm2_2000.json");
    let mut wrong = String::new();
    let mut pairs = 0;
    for (key, gap) in matrix["hbm2_2000"].as_object().unwrap() {
        let Some((names, scope)) = key.split_once(':') else { continue };
        let (first, second) = names.split_once("->").unwrap();
        let (first, second) = (Command::from_name(first).unwrap(), Command::from_name(second).unwrap());
        let gap = gap.as_u64().unwrap();
        pairs += 1;
        let found = check(&config, &pair(first, second, scope, gap), GAPS);
        for v in found.iter().filter(|v| !is_slot(v)) {
            let _ = writeln!(wrong, "{key} {gap}: {v}");
        }
        if found.iter().any(is_slot) {
            assert!(gap == 0 && first.is_column() == second.is_column(), "{key}");
            assert_eq!(check(&config, &pair(first, second, scope, 1), GAPS), [], "{key}");
        }
        if gap > 0 {
            let found = check(&config, &pair(first, second, scope, gap - 1), GAPS);
            match &found[..] {
                [v] if v.need == gap && v.gap == gap - 1 => {}
                _ => {
                    let _ = writeln!(wrong, "{key} {}: {found:?}", gap - 1);
                }
            }
        }
    }
    assert_eq!(pairs, 268);
    assert!(wrong.is_empty(), "{wrong}");
}

/// The earliest ticks of nine ACTs to different banks, found by asking the checker.
pub fn nine_acts(config: &Config) -> Vec<u64> {
    let mut trace: Vec<Issued> = Vec::new();
    for n in 0..9u16 {
        let mut next = at(trace.last().map_or(0, |c| c.tick), Command::Act, 0, n % 4, n / 4, 0);
        loop {
            trace.push(next);
            if check(config, &trace, Options::default()).is_empty() {
                break;
            }
            trace.pop();
            next.tick += 1;
        }
    }
    trace.iter().map(|c| c.tick).collect()
}

#[test]
fn nine_activations() {
    let mut config = preset("hbm2_2000");
    let golden = &golden_json("gap_matrix_hbm2_2000.json")["hbm2_2000"]["ACT_x9_asap_issue_ticks"];
    assert_eq!(serde_json::json!(nine_acts(&config)), *golden);
    // Sliding windows: the fifth after the first, the sixth after the second.
    config.timing.faw = 30;
    assert_eq!(nine_acts(&config), [0, 4, 8, 12, 30, 34, 38, 42, 60]);
    // 2 x (4 tRRD, 24 tFAW) half clocks.
    assert_eq!(nine_acts(&preset("hbm3_6400")), [0, 8, 16, 24, 48, 56, 64, 72, 96]);
}

/// The gaps of HBM3 in half clocks.
#[test]
fn hbm3_gaps() {
    use Command::{Act, PreAb, PrePb, Rd, RefPb, Wr};
    let config = preset("hbm3_6400");
    let t = config.timing.clone();
    let two = |n: u32| u64::from(2 * n);
    for (first, second, scope, gap) in [
        (Act, Rd, "same_bank", two(t.rcd_rd) + 1),
        (Act, Wr, "same_bank", two(t.rcd_wr) + 1),
        (Act, PrePb, "same_bank", two(t.ras) + 2),
        (Act, PreAb, "other_bankgroup", two(t.ras) + 2),
        (Act, Act, "same_bank", two(t.rc)),
        (Act, Act, "other_pseudochannel", 3),
        (PrePb, Act, "same_bank", two(t.rp) - 2),
        (PrePb, PrePb, "same_bankgroup", 4),
        (PrePb, PreAb, "other_bankgroup", 4),
        (PrePb, PrePb, "other_pseudochannel", 1),
        (Rd, PrePb, "same_bank", two(t.rtp) + 1),
        (Wr, PrePb, "same_bank", two(t.cwl + 2 + t.wr) + 1),
        (Rd, Wr, "other_bankgroup", 40),
        (Rd, Rd, "other_bankgroup", 4),
        (Rd, Rd, "same_bankgroup", 8),
        (Rd, Rd, "other_pseudochannel", 2),
        (Wr, Rd, "other_bankgroup", two(t.cwl + 2 + t.wtr_s)),
        (Wr, Rd, "same_bankgroup", two(t.cwl + 2 + t.wtr_l)),
        (RefPb, RefPb, "other_bankgroup", two(t.rrefd)),
    ] {
        let name = format!("{}->{}:{scope}", first.name(), second.name());
        assert_eq!(check(&config, &pair(first, second, scope, gap), GAPS), [], "{name}");
        let found = check(&config, &pair(first, second, scope, gap - 1), GAPS);
        assert!(found.len() == 1 && found[0].need == gap, "{name}: {found:?}");
    }
}

/// `[tick, "CMD", (pc,) bankgroup, bank, row, column]`
fn golden_commands(list: &serde_json::Value) -> Vec<Issued> {
    let command = |c: &serde_json::Value| {
        let c = c.as_array().unwrap();
        let number = |n: usize| c[n].as_u64().unwrap();
        let (pc, at) = if c.len() == 7 { (number(2), 3) } else { (0, 2) };
        Issued {
            tick: number(0),
            command: Command::from_name(c[1].as_str().unwrap()).unwrap(),
            address: Address {
                pc: pc as u16,
                bankgroup: number(at) as u16,
                bank: number(at + 1) as u16,
                row: number(at + 2) as u32,
                column: number(at + 3) as u32,
            },
        }
    };
    list.as_array().unwrap().iter().map(command).collect()
}

#[test]
fn golden_traces_pass() {
    let config = preset("hbm2_2000");
    let golden = golden_json("hbm2_2000.json");
    let mut commands = 0;
    for (trace, results) in golden["results"].as_object().unwrap() {
        for policy in ["inorder", "frfcfs_refresh_off", "frfcfs_refresh_on"] {
            let list = golden_commands(&results[policy]["first64"]);
            commands += list.len();
            let found = check(&config, &list, Options { strict: true, ..Options::default() });
            assert!(found.is_empty(), "{trace} {policy}: {}", found[0]);
        }
    }
    assert!(commands > 2000, "{commands}");
}

/// One tick less before any command of a golden trace (all later ones with it) is noticed, unless the command could
/// have come then: in-order golden traces issue every command at the earliest tick.
#[test]
fn every_golden_command_is_at_its_earliest() {
    let config = preset("hbm2_2000");
    let golden = golden_json("hbm2_2000.json");
    for (trace, results) in golden["results"].as_object().unwrap() {
        let list = golden_commands(&results["inorder"]["first64"]);
        for n in 1..list.len() {
            let mut early = list.clone();
            early[n..].iter_mut().for_each(|c| c.tick -= 1);
            let found = check(&config, &early, Options::default());
            // One command a tick is the policy's rule; the buses would take a row and a column command.
            let shared = early[n].tick == early[n - 1].tick;
            assert!(shared || found.iter().any(|v| v.second.0 == n), "{trace}: {}", shown(&list[n]));
        }
    }
}

#[test]
fn what_is_said_of_broken_traces() {
    use Command::{Act, PreAb, PrePb, Rd, RdA, RefAb, RefPb, Wr};
    let config = preset("hbm2_2000");
    let cases: &[(&str, Vec<Issued>)] = &[
        ("early read", vec![at(0, Act, 0, 0, 0, 5), at(14, Rd, 0, 0, 0, 5)]),
        ("closed", vec![at(0, Rd, 0, 0, 0, 5)]),
        ("closed again", vec![at(0, Act, 0, 0, 0, 5), at(35, PrePb, 0, 0, 0, 5), at(60, Wr, 0, 0, 0, 5)]),
        ("auto", vec![at(0, Act, 0, 0, 0, 5), at(15, RdA, 0, 0, 0, 5), at(40, Rd, 0, 0, 0, 5)]),
        ("other row", vec![at(0, Act, 0, 0, 0, 5), at(15, Rd, 0, 0, 0, 6)]),
        ("open", vec![at(0, Act, 0, 0, 0, 5), at(20, Act, 0, 0, 0, 6)]),
        ("refresh of open banks", vec![at(0, Act, 0, 0, 0, 5), at(8, Act, 0, 1, 0, 5), at(90, RefAb, 0, 0, 0, 0)]),
        ("refresh of an open bank", vec![at(0, Act, 0, 1, 2, 5), at(90, RefPb, 0, 1, 2, 0)]),
        (
            "two groups",
            vec![
                at(0, Act, 0, 0, 0, 1),
                at(4, Act, 0, 0, 1, 1),
                at(30, Rd, 0, 0, 0, 1),
                at(31, Rd, 0, 0, 1, 1),
                at(40, Wr, 0, 0, 1, 1),
                at(50, PreAb, 0, 0, 0, 0),
            ],
        ),
        ("same tick", vec![at(7, Act, 0, 0, 0, 1), at(7, Act, 1, 0, 0, 1), at(8, PrePb, 1, 3, 3, 0)]),
        ("during refresh", vec![at(0, RefAb, 1, 0, 0, 0), at(258, Act, 1, 0, 0, 1), at(258, Rd, 0, 0, 0, 0)]),
        ("places", vec![at(0, Act, 2, 0, 0, 0), at(1, Act, 0, 4, 0, 0), at(2, Act, 0, 0, 0, 40_000)]),
        ("any order", vec![at(15, Rd, 0, 0, 0, 5), at(1, Act, 0, 0, 0, 5)]),
    ];
    let mut text = String::new();
    for (name, trace) in cases {
        let _ = writeln!(text, "{name}");
        for v in check(&config, trace, Options::default()) {
            let _ = writeln!(text, "    {v}");
        }
    }
    insta::assert_snapshot!(text);
}

/// What only the strict grade refuses.
#[test]
fn strict() {
    use Command::{Act, PreAb, RefAb, RefPb};
    let config = preset("hbm2_2000");
    let strict = Options { strict: true, ..Options::default() };
    for (first, second, gap, rule) in [
        (PreAb, RefPb, 14, Rule::Rp),
        (RefAb, RefAb, 260, Rule::Rfc),
        (RefAb, RefPb, 260, Rule::Rfc),
        (RefPb, RefPb, 160, Rule::RfcPb),
        (RefPb, RefAb, 160, Rule::RfcPb),
    ] {
        for (gap, ok) in [(gap, true), (gap - 1, false)] {
            let trace = pair(first, second, "same_bank", gap);
            assert_eq!(check(&config, &trace, Options::default()), []);
            let found = check(&config, &trace, strict);
            assert!(if ok { found.is_empty() } else { found[0].rule == rule }, "{found:?}");
        }
    }
    let trace = [at(0, RefPb, 0, 0, 0, 0), at(8, RefPb, 0, 0, 1, 0), at(15, Act, 0, 0, 2, 0)];
    assert_eq!(check(&config, &trace, strict), []);
}

#[test]
fn refreshes_are_counted() {
    let config = preset("hbm2_2000");
    let options = Options { refresh: true, ..Options::default() };
    let trace = |refreshes: u64, end: u64| -> Vec<Issued> {
        let mut trace: Vec<Issued> = (1..=refreshes).map(|n| at(n * 3900, Command::RefAb, 0, 0, 0, 0)).collect();
        trace.push(at(end, Command::Act, 0, 0, 0, 0));
        trace
    };
    // Eight may be owed.
    assert_eq!(check(&config, &trace(3, 12 * 3900 - 1), options), []);
    let found = check(&config, &trace(3, 12 * 3900), options);
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].to_string(),
        "tREFI: command 3, ACT bank group 0 bank 0 row 0 at tick 46800: 3 REFab by now, 12 were due, and 8 \
         may be owed (command 2, REFab at tick 11700)"
    );
    // Per bank: eight rounds over sixteen banks, one every 243.75 ticks.
    let one = |end: u64| [at(200, Command::RefPb, 0, 0, 0, 0), at(end, Command::Act, 0, 1, 0, 0)];
    assert_eq!(check(&config, &one(3900 / 16 * 130), options), []);
    assert_eq!(check(&config, &one(3900 / 16 * 131), options).len(), 1);
}
