//! Engine traces of random devices, controllers and requests obey every constraint, by brute force.

use proptest::prelude::*;
use ptoc_pim_sim::dram::presets::{PRESETS, Preset as PresetFile};
use ptoc_pim_sim::dram::{
    Address, Command, Config, Controller, Issued, Level, Policy, Refresh, Request, RowPolicy, SimError, Timing,
    simulate, simulate_channels,
};

use crate::support::preset;
use std::collections::BTreeMap;

fn device() -> impl Strategy<Value = Config> {
    let times = prop::collection::vec(0u32..40, Timing::PARAMETERS.len());
    (
        prop::sample::select(PRESETS.iter().map(|p| p.name).collect::<Vec<_>>()),
        times,
        1u32..3,
        1u32..3,
        1u32..5,
        1u32..5,
    )
        .prop_map(|(name, times, pcs, sids, groups, banks)| {
            let mut config = preset(name);
            if config.standard.has_stack_levels() {
                config.org.pseudochannel = pcs;
                config.org.sid = sids;
            }
            config.org.bankgroup = groups;
            config.org.bank = banks;
            for (parameter, time) in Timing::PARAMETERS.iter().zip(times) {
                config.timing.set(parameter.name, time);
            }
            config.timing.bl = config.timing.bl.max(1);
            config.timing.refi = 300 + config.timing.refi * 8;
            config.timing.refi_pb = 200 + config.timing.refi_pb * 8;
            config.derive();
            config
        })
}

fn controller() -> impl Strategy<Value = Controller> {
    (any::<bool>(), any::<bool>(), 0usize..3, 1usize..34, 1usize..34, any::<bool>()).prop_map(
        |(in_order, closed, refresh, reads, writes, edges)| Controller {
            policy: if in_order { Policy::InOrder } else { Policy::FrFcfs },
            row_policy: if closed { RowPolicy::Closed } else { RowPolicy::Open },
            refresh: [Refresh::Off, Refresh::AllBank, Refresh::PerBank][refresh],
            read_queue: reads,
            write_queue: writes,
            clock_edges: edges,
            ..Controller::default()
        },
    )
}

pub fn requests(config: &Config, seeds: &[(bool, u16, u32, u32)]) -> Vec<Request> {
    let org = &config.org;
    seeds
        .iter()
        .map(|&(write, place, row, column)| {
            let place = u32::from(place);
            let address = Address {
                pc: (place % org.pseudochannel) as u16,
                bankgroup: (place / 2 % org.bankgroups_per_pc()) as u16,
                bank: (place / 32 % org.bank) as u16,
                row,
                column,
            };
            Request { address, write }
        })
        .collect()
}

/// The nodes of a level that a command touches, each with its parent.
fn nodes(config: &Config, level: Level, command: Command, a: Address) -> Vec<(u32, u32)> {
    let org = &config.org;
    let (pc, group, bank) = (u32::from(a.pc), u32::from(a.bankgroup), u32::from(a.bank));
    let all = command.is_all_bank();
    match level {
        Level::Channel => vec![(0, 0)],
        Level::PseudoChannel => vec![(pc, 0)],
        Level::Sid if all => (0..org.sid).map(|s| (pc * org.sid + s, pc)).collect(),
        Level::Sid => vec![(pc * org.sid + group / org.bankgroup, pc)],
        Level::BankGroup if all => (0..org.bankgroups_per_pc())
            .map(|g| (pc * org.bankgroups_per_pc() + g, pc * org.sid + g / org.bankgroup))
            .collect(),
        Level::BankGroup => vec![(pc * org.bankgroups_per_pc() + group, pc * org.sid + group / org.bankgroup)],
        Level::Bank if all => (0..org.banks_per_pc()).map(|b| (pc * org.banks_per_pc() + b, 0)).collect(),
        Level::Bank => vec![(pc * org.banks_per_pc() + group * org.bank + bank, 0)],
    }
}

/// Every constraint between every two commands, and the states of the banks.
pub fn broken(config: &Config, commands: &[Issued]) -> Option<String> {
    for constraint in &config.constraints {
        for (j, later) in commands.iter().enumerate() {
            if !constraint.following.contains(later.command) {
                continue;
            }
            for (node, parent) in nodes(config, constraint.level, later.command, later.address) {
                let mut left = constraint.window;
                for earlier in commands[..j].iter().rev() {
                    let applies = constraint.preceding.contains(earlier.command)
                        && nodes(config, constraint.level, earlier.command, earlier.address)
                            .iter()
                            .any(|(n, p)| if constraint.sibling { *n != node && *p == parent } else { *n == node });
                    if !applies {
                        continue;
                    }
                    left -= 1;
                    if left == 0 {
                        if (later.tick - earlier.tick) < u64::try_from(constraint.gap).unwrap_or(0) {
                            return Some(format!("{constraint:?} between {earlier:?} and {later:?}"));
                        }
                        break;
                    }
                }
            }
        }
    }
    let mut open = std::collections::HashMap::new();
    let mut last = [None; 2];
    for c in commands {
        let a = c.address;
        let bank = (a.pc, a.bankgroup, a.bank);
        let slot = &mut last[config.standard.bus(c.command)];
        if slot.is_some_and(|t| t >= c.tick) {
            return Some(format!("two commands on one bus: {c:?}"));
        }
        *slot = Some(c.tick);
        let any_open = || open.keys().any(|k: &(u16, u16, u16)| k.0 == a.pc);
        let legal = match c.command {
            Command::Act => !open.contains_key(&bank),
            Command::Rd | Command::Wr | Command::RdA | Command::WrA => open.get(&bank) == Some(&a.row),
            Command::PrePb => open.contains_key(&bank),
            Command::PreAb => any_open(),
            Command::RefAb | Command::RfmAb => !any_open(),
            Command::RefPb | Command::RfmPb => !open.contains_key(&bank),
        };
        if !legal {
            return Some(format!("the bank is in another state: {c:?}"));
        }
        match c.command {
            Command::Act => drop(open.insert(bank, a.row)),
            Command::PrePb | Command::RdA | Command::WrA => drop(open.remove(&bank)),
            Command::PreAb => open.retain(|k, _| k.0 != a.pc),
            _ => {}
        }
    }
    None
}

fn seeds() -> impl Strategy<Value = Vec<(bool, u16, u32, u32)>> {
    prop::collection::vec((any::<bool>(), any::<u16>(), 0u32..3, 0u32..6), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(50, 150)))]

    #[test]
    fn engine_traces_obey_every_constraint(config in device(), controller in controller(), seeds in seeds()) {
        let requests = requests(&config, &seeds);
        let mut commands = Vec::new();
        let result = simulate(&config, &controller, requests.iter().copied(), |c| commands.push(c));
        prop_assert_eq!(broken(&config, &commands), None);
        let stats = match result {
            Ok(stats) => stats,
            Err(SimError::RefreshStarves { .. }) => return Ok(()),
            Err(SimError::NoBankRefresh { .. }) => {
                prop_assert!(controller.refresh == Refresh::PerBank && !config.standard.refreshes_banks());
                return Ok(());
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let count = |write| requests.iter().filter(|r| r.write == write).count() as u64;
        prop_assert_eq!((stats.reads, stats.writes), (count(false), count(true)));
        prop_assert_eq!(stats.count(Command::Rd) + stats.count(Command::RdA) + stats.forwarded, stats.reads);
        prop_assert_eq!(stats.count(Command::Wr) + stats.count(Command::WrA) + stats.coalesced, stats.writes);
        let of_rows = stats.hits + stats.misses + stats.conflicts;
        prop_assert_eq!(of_rows + stats.forwarded + stats.coalesced, requests.len() as u64);
        prop_assert_eq!(stats.read_latency.count(), stats.reads);
        for command in Command::ALL {
            prop_assert_eq!(stats.count(command), commands.iter().filter(|c| c.command == command).count() as u64);
        }
        prop_assert!(stats.utilisation() <= 1.0
            || config.timing.ccd_s.min(config.timing.ccd_l) < config.timing.bl
            || config.org.sid > 1
            || config.timing.rtw + config.timing.cwl < config.timing.cl + config.timing.bl || stats.writes != 0);
        // In order is in order.
        if controller.policy == Policy::InOrder {
            let served: Vec<Address> = commands.iter().filter(|c| c.command.is_column()).map(|c| c.address).collect();
            prop_assert_eq!(served, requests.iter().map(|r| r.address).collect::<Vec<_>>());
        }
        // Reads and writes of one burst keep their order.
        for (i, a) in requests.iter().enumerate() {
            let is_read = commands.iter().any(|c| c.command.is_read() && c.address == a.address);
            prop_assert!(a.write || stats.forwarded != 0 || is_read, "{}", i);
        }
    }

    /// What streams of HBM-PIM rely on (`spec/stream.md`): reads, or writes, of one bank that come back to no row keep
    /// their order.
    #[test]
    fn row_after_row_of_a_bank_is_in_order(
        config in device(),
        controller in controller(),
        stretches in prop::collection::vec(
            (0u32..40, prop::sample::subsequence((0u32..6).collect::<Vec<_>>(), 1..6)),
            1..20,
        ),
        write in any::<bool>(),
    ) {
        let rows: BTreeMap<u32, Vec<u32>> = stretches.iter().cloned().collect();
        // Rows in the order in which they were drawn, each once.
        let mut order: Vec<u32> = Vec::new();
        for (row, _) in &stretches {
            if !order.contains(row) {
                order.push(*row);
            }
        }
        let one = |row: u32, column: u32| Address { pc: 0, bankgroup: 0, bank: 0, row, column };
        let wanted: Vec<Address> = order.iter().flat_map(|&row| rows[&row].iter().map(move |&c| one(row, c))).collect();
        let mut commands = Vec::new();
        let requests = wanted.iter().map(|&address| Request { address, write });
        match simulate(&config, &controller, requests, |c| commands.push(c)) {
            Ok(_) => {}
            Err(SimError::RefreshStarves { .. } | SimError::NoBankRefresh { .. }) => return Ok(()),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
        let served: Vec<Address> = commands.iter().filter(|c| c.command.is_column()).map(|c| c.address).collect();
        prop_assert_eq!(served, wanted);
    }

    #[test]
    fn channels_in_parallel_are_channels_alone(
        config in device(), controller in controller(), all in prop::collection::vec(seeds(), 1..5),
    ) {
        let channels: Vec<Vec<Request>> = all.iter().map(|s| requests(&config, s)).collect();
        let alone = simulate_channels(&config, &controller, &channels, true, 1);
        let together = simulate_channels(&config, &controller, &channels, true, 3);
        prop_assert_eq!(alone, together);
    }

    /// Whatever the numbers, the engine ends.
    #[test]
    fn extreme_numbers(
        exponents in prop::collection::vec(0u32..24, Timing::PARAMETERS.len()),
        controller in controller(),
        seeds in prop::collection::vec((any::<bool>(), any::<u16>(), 0u32..3, 0u32..6), 1..6),
        standard in 0..PRESETS.len(),
    ) {
        let mut config = preset(PRESETS[standard].name);
        for (parameter, e) in Timing::PARAMETERS.iter().zip(exponents) {
            config.timing.set(parameter.name, (1 << e) - 1);
        }
        config.derive();
        let _ = simulate(&config, &controller, requests(&config, &seeds), |_| {});
    }
}

#[test]
fn a_request_outside_the_device_is_refused() {
    let config = preset("hbm2_2000");
    let address = Address { row: config.org.row, ..Address::default() };
    let requests = [Request { address: Address::default(), write: false }, Request { address, write: false }];
    for controller in [Controller::in_order(), Controller::default()] {
        let error = simulate(&config, &controller, requests, |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "request 2 is outside the device: row 32768, of 32768");
    }
}

#[test]
fn refreshes_that_take_all_time_are_reported() {
    let mut config = preset("hbm2_2000");
    config.timing.refi = 200;
    config.timing.refi_pb = 2;
    for policy in [Policy::InOrder, Policy::FrFcfs] {
        for refresh in [Refresh::AllBank, Refresh::PerBank] {
            let controller = Controller { policy, refresh, ..Controller::default() };
            let request = Request { address: Address::default(), write: false };
            let result = simulate(&config, &controller, std::iter::repeat_n(request, 100_000), |_| {});
            assert!(matches!(result, Err(SimError::RefreshStarves { .. })), "{policy:?} {refresh:?} {result:?}");
        }
    }
}

/// Each bank is refreshed once in tREFI, all-bank or per-bank.
#[test]
fn refresh_rates() {
    for PresetFile { name, .. } in PRESETS {
        let config = preset(name);
        for policy in [Policy::InOrder, Policy::FrFcfs] {
            for (refresh, command) in [(Refresh::AllBank, Command::RefAb), (Refresh::PerBank, Command::RefPb)] {
                if refresh == Refresh::PerBank && !config.standard.refreshes_banks() {
                    continue;
                }
                let controller = Controller { policy, refresh, ..Controller::default() };
                let requests = (0..60_000u32).map(|i| Request {
                    write: i % 5 == 0,
                    address: Address {
                        pc: (i % config.org.pseudochannel) as u16,
                        bankgroup: (i / 2 % 4) as u16,
                        bank: 0,
                        row: i / 256,
                        column: i / 8 % 32,
                    },
                });
                let stats = simulate(&config, &controller, requests, |_| {}).unwrap();
                let intervals = stats.last_cmd_tick as f64 / config.ticks(config.timing.refi) as f64;
                let pcs = f64::from(config.org.pseudochannel);
                let each = if command == Command::RefAb { pcs } else { pcs * f64::from(config.org.banks_per_pc()) };
                let got = stats.count(command) as f64;
                assert!(
                    (got - intervals * each).abs() <= each * (0.02 * intervals + 1.0),
                    "{name} {policy:?} {refresh:?}: {got} of {}",
                    intervals * each
                );
            }
        }
    }
}

/// A closed page spares the conflicts of a stream of single accesses.
#[test]
fn closed_page() {
    let config = preset("hbm2_2000");
    let run = |row_policy| {
        let requests = (0..2000u32).map(|i| Request {
            write: false,
            address: Address { pc: 0, bankgroup: (i % 4) as u16, bank: (i / 4 % 4) as u16, row: i / 16, column: 0 },
        });
        simulate(&config, &Controller { row_policy, ..Controller::default() }, requests, |_| {}).unwrap()
    };
    let (open, closed) = (run(RowPolicy::Open), run(RowPolicy::Closed));
    assert_eq!((closed.count(Command::PrePb), closed.conflicts), (0, 0));
    assert_eq!(closed.count(Command::RdA), 2000);
    assert!(open.conflicts > 1900, "{}", open.conflicts);
    assert!(closed.last_cmd_tick <= open.last_cmd_tick);
}
