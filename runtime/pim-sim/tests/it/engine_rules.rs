//! The checker over what the engine issues: all policies, devices, golden and random traces.

use ptoc_pim_sim::check::{Options, check};
use ptoc_pim_sim::dram::controller::RowPolicy;
use ptoc_pim_sim::dram::mapping::Mapping;
use ptoc_pim_sim::dram::trace::parse_requests;
use ptoc_pim_sim::dram::{Address, Config, Controller, Issued, Policy, Refresh, Request, simulate};

use crate::support::{ONE_BUS, golden, golden_json, preset};

/// Every combination that a controller of the device has.
fn controllers(config: &Config) -> Vec<Controller> {
    let mut out = Vec::new();
    for policy in [Policy::InOrder, Policy::FrFcfs] {
        for row_policy in [RowPolicy::Open, RowPolicy::Closed] {
            for refresh in [Refresh::Off, Refresh::AllBank, Refresh::PerBank] {
                if refresh != Refresh::PerBank || config.standard.refreshes_banks() {
                    out.push(Controller { policy, row_policy, refresh, ..Controller::default() });
                }
            }
        }
    }
    out
}

fn holds(config: &Config, controller: &Controller, requests: &[Request], what: &str) {
    let mut commands: Vec<Issued> = Vec::new();
    let stats = simulate(config, controller, requests.iter().copied(), |c| commands.push(c)).unwrap();
    let refresh = controller.refresh != Refresh::Off;
    let found = check(config, &commands, Options { strict: true, refresh, ..Options::default() });
    assert!(
        found.is_empty(),
        "{what}, {}, {controller:?}: {} of {}: {}",
        config.name,
        found.len(),
        commands.len(),
        found[0]
    );
    let columns = commands.iter().filter(|c| c.command.is_column()).count() as u64;
    assert_eq!(columns + stats.forwarded + stats.coalesced, requests.len() as u64, "{what}");
    assert!(commands.is_sorted_by_key(|c| c.tick), "{what}");
}

#[test]
fn golden_traces_under_every_policy() {
    for device in ["hbm2_2000", "hbm2_samsung_pim", "hbm3_6400"] {
        let config = preset(device);
        for trace in golden_json("hbm2_2000.json")["results"].as_object().unwrap().keys() {
            let text = golden(&format!("{trace}.txt"));
            let requests = parse_requests(&config, &Mapping::interleaved(&config), &text).unwrap();
            for controller in controllers(&config) {
                holds(&config, &controller, &requests[0], trace);
            }
        }
    }
}

#[test]
fn random_traces_under_every_policy() {
    let mut state = 1u64;
    let mut below = |n: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((state >> 33) % u64::from(n)) as u32
    };
    let mut configs = vec![preset("hbm2_2000"), preset("hbm3_6400")];
    configs.extend(ONE_BUS.map(preset));
    for device in ["hbm2_2000", "hbm3_6400"] {
        let mut config = preset(device);
        config.name = format!("{device} with long windows and two SIDs");
        (config.timing.faw, config.timing.rc, config.timing.ccd_r, config.org.sid) = (60, 90, 5, 2);
        (config.timing.bl, config.timing.rrd_l) = (3, 7);
        // One bank of the channel (HBM2) or of each pseudo-channel (HBM3) at a time, all of them in nREFI.
        let turns = config.org.banks_per_pc() * if device == "hbm2_2000" { config.org.pseudochannel } else { 1 };
        config.timing.refi_pb = config.timing.refi / turns;
        config.timing.rtw = config.timing.cl + config.timing.bl + 2 - config.timing.cwl;
        config.derive();
        configs.push(config);
    }
    for config in &configs {
        for (round, controller) in controllers(config).iter().enumerate() {
            let (rows, banks, writes) = (1 + below(4), 1 + below(4), below(10));
            let requests: Vec<Request> = (0..3000)
                .map(|_| Request {
                    address: Address {
                        pc: below(config.org.pseudochannel) as u16,
                        bankgroup: below(config.org.bankgroups_per_pc()) as u16,
                        bank: below(banks.min(config.org.bank)) as u16,
                        row: below(rows),
                        column: below(config.org.bursts_per_row()),
                    },
                    write: below(10) < writes,
                })
                .collect();
            holds(config, controller, &requests, &format!("round {round}"));
        }
    }
}
