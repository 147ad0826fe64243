//! Every constraint of the resolved lists, lowered and raised by one.
//!
//! Short random command sequences are driven through the device, each command at its earliest tick. With a constraint
//! one tick too low the checker, which has only the named parameters, must object. Where it does not, the constraint is
//! implied by others: without it nothing changes, and the test names it. Raised by one, a constraint changes the gap
//! matrix or the nine ACTs that the golden files have.

use ptoc_pim_sim::check::{Options, Rule, check};
use ptoc_pim_sim::dram::device::CLOSED;
use ptoc_pim_sim::dram::{Address, Command, Config, Constraint, Device, Issued, Level, Standard};

use crate::support::{ONE_BUS, golden_json, preset};

const SEQUENCES: u64 = 1000;

/// A small generator: the tests' own numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A few banks near each other and apart, as places.
fn places(config: &Config) -> Vec<(u16, u16, u16)> {
    let last = config.org.bankgroups_per_pc() as u16 - 1;
    let mut places = vec![(0, 0, 0), (0, 0, 0), (0, 0, 1), (0, 1, 0), (0, last, 1), (1, 0, 0), (1, 1, 1)];
    places.retain(|p| u32::from(p.0) < config.org.pseudochannel);
    places
}

/// What the state of the bank allows.
fn allowed(config: &Config, device: &Device, place: (u16, u16, u16), index: usize, random: &mut Random) -> Command {
    use Command::{Act, PreAb, PrePb, Rd, RdA, RefAb, RefPb, RfmAb, RfmPb, Wr, WrA};
    let hbm3 = config.standard == Standard::Hbm3;
    let management = hbm3 && random.below(2) == 0;
    match (device.open_row(index) == CLOSED, random.below(12)) {
        (_, 0) => PreAb,
        (true, 1..=4) if !device.any_open(usize::from(place.0)) => {
            if management {
                RfmAb
            } else {
                RefAb
            }
        }
        (true, 1 | 2) if config.standard.refreshes_banks() => {
            if management {
                RfmPb
            } else {
                RefPb
            }
        }
        (true, 3) => PrePb,
        (true, _) => Act,
        (false, 1..=3) => PrePb,
        (false, 4) => RdA,
        (false, 5) => WrA,
        (false, 6..=8) => Rd,
        (false, _) => Wr,
    }
}

/// One sequence: each command at its earliest tick, one of a bus in a tick.
fn drive(config: &Config, seed: u64) -> Vec<Issued> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    random.below(1);
    let mut device = Device::new(config);
    let places = places(config);
    let (mut now, mut bus) = (0u64, [u64::MAX; 2]);
    let mut trace = Vec::new();
    // Runs of ACTs fill windows.
    let acts = random.below(4) == 0;
    for n in 0..4 + random.below(9) {
        let place = match acts {
            true => (0, (n % 4) as u16, (n / 4) as u16),
            false => places[random.below(places.len() as u64) as usize],
        };
        let (pc, bankgroup, bank) = place;
        let index = (u32::from(pc) * config.org.banks_per_pc() + config.org.bank_index(bankgroup, bank)) as usize;
        let command = match acts {
            true if device.open_row(index) == CLOSED => Command::Act,
            _ => allowed(config, &device, place, index, &mut random),
        };
        let slot = config.standard.bus(command);
        let mut tick = device.earliest(command, index).max(now);
        if bus[slot] == tick {
            tick += 1;
            // The device knows of nothing that ends between two ticks.
            assert!(device.earliest(command, index) <= tick);
        }
        device.issue(command, index, 0, tick);
        trace.push(Issued { tick, command, address: Address { pc, bankgroup, bank, row: 0, column: 0 } });
        (now, bus[slot]) = (tick, tick);
    }
    trace
}

/// `nRRDS PseudoChannel ACT->ACT`
fn name(c: &Constraint) -> String {
    let list = |set: ptoc_pim_sim::dram::CommandSet| set.iter().map(Command::name).collect::<Vec<_>>().join(",");
    format!("{}: {} {}->{}", c.rule, c.level.name(), list(c.preceding), list(c.following))
}

fn with_gap(config: &Config, n: usize, gap: i64) -> Config {
    let mut config = config.clone();
    config.constraints[n].gap = gap;
    config
}

/// The constraints that no sequence needs: without them every sequence is the same. All others are caught when they are
/// one tick too low.
fn implied(config: &Config) -> Vec<String> {
    let base: Vec<Vec<Issued>> = (0..SEQUENCES).map(|seed| drive(config, seed)).collect();
    for trace in &base {
        let found = check(config, trace, Options::default());
        assert!(found.is_empty(), "{}\n{trace:?}", found[0]);
    }
    let mut out = Vec::new();
    for n in 0..config.constraints.len() {
        let c = &config.constraints[n];
        if c.gap <= 0 {
            continue;
        }
        let lowered = with_gap(config, n, c.gap - 1);
        let caught = (0..SEQUENCES).any(|seed| !check(config, &drive(&lowered, seed), Options::default()).is_empty());
        if caught {
            continue;
        }
        let without = with_gap(config, n, 0);
        let same = (0..SEQUENCES).all(|seed| drive(&without, seed) == base[seed as usize]);
        assert!(same, "{} is neither caught nor implied", name(c));
        out.push(name(c));
    }
    out
}

#[test]
fn lowering_a_constraint_is_caught_or_it_is_implied() {
    let hbm2 = preset("hbm2_2000");
    // nBL = nCCDS; four tRRD are longer than tFAW.
    insta::assert_snapshot!("implied_hbm2_2000", implied(&hbm2).join("\n"));
    insta::assert_snapshot!("implied_hbm3_6400", implied(&preset("hbm3_6400")).join("\n"));
    for name in ONE_BUS {
        insta::assert_snapshot!(format!("implied_{name}"), implied(&preset(name)).join("\n"));
    }
    insta::assert_snapshot!("implied_hbm2_samsung_pim", implied(&preset("hbm2_samsung_pim")).join("\n"));
}

/// Configurations on which everything that HBM2-2000 leaves implied binds.
#[test]
fn what_is_implied_binds_elsewhere() {
    let binds = |change: &dyn Fn(&mut Config), rule: &str| {
        let mut config = preset("hbm2_2000");
        change(&mut config);
        config.derive();
        let left = implied(&config);
        assert!(!left.iter().any(|name| name.starts_with(&format!("{rule}: "))), "{rule}: {left:?}");
    };
    binds(&|c| c.timing.faw = 30, "nFAW");
    binds(&|c| c.timing.rc = 60, "nRC");
    binds(&|c| c.timing.bl = 3, "nBL");
    binds(&|c| (c.timing.ccd_s, c.timing.bl) = (3, 2), "nCCDS");
    binds(&|c| c.timing.rrd_l = 6, "nRRDL");
    binds(&|c| c.timing.rrd_s = 3, "nRRDL");
    // Four columns of two SIDs.
    binds(&|c| (c.org.sid, c.timing.ccd_r) = (2, 3), "nCCDR");
}

/// The least gaps that the device gives for the golden matrix's pairs, and nine ACTs.
fn gaps(config: &Config) -> Vec<u64> {
    let matrix = golden_json("gap_matrix_hbm2_2000.json");
    let per_pc = config.org.banks_per_pc() as usize;
    let mut out = Vec::new();
    for key in matrix["hbm2_2000"].as_object().unwrap().keys() {
        let Some((names, scope)) = key.split_once(':') else { continue };
        let (first, second) = names.split_once("->").unwrap();
        let bank = match scope {
            "same_bank" => 0,
            "same_bankgroup" => 1,
            "other_bankgroup" => config.org.bank as usize,
            _ => per_pc,
        };
        let mut device = Device::new(config);
        device.issue(Command::from_name(first).unwrap(), 0, 0, 1000);
        out.push(device.earliest(Command::from_name(second).unwrap(), bank).saturating_sub(1000));
    }
    let mut device = Device::new(config);
    for n in 0..9 {
        let bank = n % 4 * 4 + n / 4;
        let tick = device.earliest(Command::Act, bank);
        device.issue(Command::Act, bank, 0, tick);
        out.push(tick);
    }
    out
}

#[test]
fn raising_a_constraint_changes_the_gap_matrix() {
    let config = preset("hbm2_2000");
    let golden = golden_json("gap_matrix_hbm2_2000.json");
    let golden = golden["hbm2_2000"].as_object().unwrap();
    let mut want: Vec<u64> = golden.values().filter_map(serde_json::Value::as_u64).collect();
    want.extend(golden["ACT_x9_asap_issue_ticks"].as_array().unwrap().iter().map(|t| t.as_u64().unwrap()));
    assert_eq!(gaps(&config), want);
    let same: Vec<String> = (0..config.constraints.len())
        .filter(|&n| gaps(&with_gap(&config, n, config.constraints[n].gap + 1)) == want)
        .map(|n| name(&config.constraints[n]))
        .collect();
    // tFAW is 15 and four tRRD are 16: it needs two more. The matrix has no refresh of a bank after its ACT; after
    // ACT and RDA there is one, and it is the ACT that it waits for.
    assert_eq!(same, ["nFAW: PseudoChannel ACT->ACT", "nRC: PseudoChannel ACT->REFab", "nRC: Bank ACT->REFpb"]);
    for n in (0..config.constraints.len()).filter(|&n| config.constraints[n].rule == "nRC") {
        let raised = with_gap(&config, n, config.constraints[n].gap + 1);
        assert!((0..SEQUENCES).any(|seed| drive(&raised, seed) != drive(&config, seed)));
    }
    let faw = config.constraints.iter().position(|c| c.rule == "nFAW").unwrap();
    assert_ne!(gaps(&with_gap(&config, faw, 17)), want);
}

/// Refresh intervals have no pair of commands: they are seen by count.
#[test]
fn refresh_intervals_are_counted() {
    let config = preset("hbm2_2000");
    let refreshes = |interval: u64| -> Vec<Issued> {
        let address = Address::default();
        (1..2000).map(|n| Issued { tick: n * interval, command: Command::RefAb, address }).collect()
    };
    let options = Options { refresh: true, ..Options::default() };
    assert!(check(&config, &refreshes(3900), options).is_empty());
    // Twenty ticks more each: after some 1560 of them more than eight are owed.
    let found = check(&config, &refreshes(3920), options);
    assert_eq!(found.first().map(|v| v.rule), Some(Rule::RefreshCount));
}

/// The commands that come too early by the list, each constraint looked up among all earlier commands.
fn early_by_list(config: &Config, trace: &[Issued]) -> Vec<usize> {
    let org = &config.org;
    // The node of a command at a level; none for an all-bank command below the pseudo-channel.
    let node = |c: &Issued, level: Level| -> Option<(u32, u32)> {
        let a = &c.address;
        let (pc, group) = (u32::from(a.pc), u32::from(a.bankgroup));
        match level {
            Level::Channel => Some((0, 0)),
            Level::PseudoChannel => Some((pc, 0)),
            _ if c.command.is_all_bank() => None,
            Level::Sid => Some((pc, group / org.bankgroup)),
            Level::BankGroup => Some((pc, group)),
            Level::Bank => Some((pc, org.bank_index(a.bankgroup, a.bank))),
        }
    };
    let early = |n: usize| {
        config.constraints.iter().filter(|c| c.following.contains(trace[n].command)).any(|c| {
            let own = node(&trace[n], c.level);
            let mut seen = 0;
            let first = trace[..n].iter().rev().find(|p| {
                let there = node(p, c.level);
                let related = match (own, there) {
                    (Some(own), Some(there)) if c.sibling => own.0 == there.0 && own != there,
                    (own, there) => own.is_some() && own == there,
                };
                seen += u32::from(related && c.preceding.contains(p.command));
                seen == c.window
            });
            first.is_some_and(|p| ((trace[n].tick - p.tick) as i64) < c.gap)
        })
    };
    (0..trace.len()).filter(|&n| early(n)).collect()
}

/// The checker and the list agree on every command of sequences that are partly too fast: neither asks more.
#[test]
fn the_checker_asks_what_the_list_asks() {
    let mut configs = vec![preset("hbm2_2000"), preset("hbm2_samsung_pim"), preset("hbm3_6400")];
    configs.extend(ONE_BUS.map(preset));
    for n in [0, 2] {
        let mut config = configs[n].clone();
        (config.org.sid, config.timing.ccd_r, config.timing.faw, config.timing.bl) = (2, 5, 70, 3);
        (config.timing.rfm_ab, config.timing.rfm_pb) = (200, 100);
        config.derive();
        configs.push(config);
    }
    let gaps = Options { strict: false, state: false, refresh: false };
    let mut early = 0;
    for config in &configs {
        for seed in 0..SEQUENCES {
            let mut random = Random(seed);
            let mut trace = drive(config, seed);
            // Everything from a command on comes some ticks earlier, but not before the command in front of it.
            for n in 1..trace.len() {
                let slack = trace[n].tick - trace[n - 1].tick;
                let less = random.below(4).min(slack) * random.below(2);
                trace[n..].iter_mut().for_each(|c| c.tick -= less);
            }
            let mut found: Vec<usize> = check(config, &trace, gaps)
                .iter()
                .filter(|v| !(matches!(v.rule, Rule::RowBus | Rule::ColumnBus) && v.need == 1))
                .filter(|v| v.rule != Rule::DataBus)
                .map(|v| v.second.0)
                .collect();
            found.dedup();
            let want = early_by_list(config, &trace);
            assert_eq!(found, want, "{} {seed}: {trace:?}", config.name);
            early += want.len();
        }
    }
    assert!(early > 1000, "{early}");
}
