//! Hand-computed ticks on devices without golden results, and what bound them.

use ptoc_pim_sim::dram::{Address, Cause, Command, Config, Controller, Issued, Refresh, Request, Stats, simulate};

use crate::support::preset;

fn at(bankgroup: u16, bank: u16, row: u32, column: u32) -> Address {
    Address { pc: 0, bankgroup, bank, row, column }
}

fn reads(addresses: impl IntoIterator<Item = Address>) -> Vec<Request> {
    addresses.into_iter().map(|address| Request { address, write: false }).collect()
}

fn run(config: &Config, controller: &Controller, requests: &[Request]) -> (Stats, Vec<Issued>) {
    let mut commands = Vec::new();
    let stats = simulate(config, controller, requests.iter().copied(), |c| commands.push(c)).unwrap();
    (stats, commands)
}

fn ticks(commands: &[Issued]) -> Vec<(u64, &'static str)> {
    commands.iter().map(|c| (c.tick, c.command.name())).collect()
}

/// HBM3 in half clocks: ACT-RD 2 x 31 + 1, RD-RD of a group 2 x 4, RD-WR 2 x 20, WR-PRE 2 x (10 + 2 + 33) + 1,
/// PRE-ACT 2 x 26 - 2.
#[test]
fn hbm3_in_order() {
    let config = preset("hbm3_6400");
    let mut requests = reads([at(0, 0, 0, 0), at(0, 0, 0, 1)]);
    requests.push(Request { address: at(0, 0, 0, 2), write: true });
    requests.extend(reads([at(0, 0, 1, 0)]));
    let (_, commands) = run(&config, &Controller::in_order(), &requests);
    let want = [(0, "ACT"), (63, "RD"), (71, "RD"), (111, "WR"), (202, "PREpb"), (252, "ACT"), (315, "RD")];
    assert_eq!(ticks(&commands), want);
}

/// Precharges of two banks are tPPD = 2 clocks apart, and an ACT holds the row bus for three half clocks.
#[test]
fn hbm3_row_commands() {
    let config = preset("hbm3_6400");
    let mut device = ptoc_pim_sim::dram::Device::new(&config);
    device.issue(Command::Act, 0, 0, 0);
    assert_eq!(device.earliest(Command::PrePb, 4), 3);
    device.issue(Command::PrePb, 4, 0, 10);
    assert_eq!(device.earliest(Command::PrePb, 8), 14);
    // tRRD_S of the first ACT: a PRE holds the bus for its own tick only.
    assert_eq!(device.earliest(Command::Act, 8), 8);
    device.issue(Command::RefPb, 4, 0, 100);
    assert_eq!(device.earliest(Command::RefPb, 5), 116);
}

/// Under FR-FCFS only precharges begin at falling edges; tick 1 is a rising one.
#[test]
fn hbm3_clock_edges() {
    let config = preset("hbm3_6400");
    let requests = reads((0..3000).map(|i| at((i % 4) as u16, (i / 4 % 4) as u16, i / 40 % 7, i % 32)));
    for refresh in [Refresh::Off, Refresh::AllBank, Refresh::PerBank] {
        let controller = Controller { refresh, ..Controller::default() };
        let (_, commands) = run(&config, &controller, &requests);
        let falling: Vec<Command> = commands.iter().filter(|c| c.tick % 2 == 0).map(|c| c.command).collect();
        assert!(falling.iter().all(|c| matches!(c, Command::PrePb | Command::PreAb)), "{refresh:?}");
        assert!(!falling.is_empty());
        let free = Controller { clock_edges: false, ..controller };
        assert!(run(&config, &free, &requests).1.iter().any(|c| c.tick % 2 == 0 && c.command.is_column()));
    }
}

/// Reads of nine banks, one a bank: with tFAW 30 every fifth ACT waits for the window.
#[test]
fn longer_faw() {
    let mut config = preset("hbm2_2000");
    config.timing.faw = 30;
    config.derive();
    let requests = reads((0..9).map(|i| at(i % 4, i / 4, 0, 0)));
    let (stats, commands) = run(&config, &Controller::default(), &requests);
    let acts: Vec<u64> = commands.iter().filter(|c| c.command == Command::Act).map(|c| c.tick).collect();
    assert_eq!(acts, [1, 5, 9, 13, 31, 35, 39, 43, 61]);
    // Data of 31's read: idle from the end of 13's (13 + 15 + 14 + 2) to its begin (31 + 15 + 14), 16 ticks; twice.
    assert_eq!(stats.stalls[Cause::Faw as usize], 32);
}

/// Each of these streams has one bound, and it is named.
#[test]
fn what_bound_it() {
    let config = preset("hbm2_2000");
    let dominant = |controller: &Controller, requests: &[Request]| {
        let stats = run(&config, controller, requests).0;
        let most = stats.stalls.iter().max().copied().unwrap_or(0);
        Cause::ALL.into_iter().find(|c| stats.stalls[*c as usize] == most).unwrap()
    };
    let fr = Controller::default();
    let one_group = reads((0..1000).map(|i| at(0, 0, i / 32, i % 32)));
    assert_eq!(dominant(&fr, &one_group), Cause::Ccd);
    let one_bank = reads((0..500).map(|i| at(0, 0, i, 0)));
    assert_eq!(dominant(&fr, &one_bank), Cause::RowCycle);
    let alternate: Vec<Request> =
        (0..500).map(|i| Request { address: at(0, 0, 0, i % 32), write: i % 2 == 1 }).collect();
    assert_eq!(dominant(&Controller::in_order(), &alternate), Cause::Turnaround);
    let few = reads((0..4).map(|i| at(i, 0, 0, 0)));
    assert_eq!(dominant(&fr, &few), Cause::RowCycle);
}

/// A stream over all groups keeps the bus busy; the counters add up to the time between the first and the last datum.
#[test]
fn utilisation() {
    let config = preset("hbm2_2000");
    let requests = reads((0..4096).map(|i| at((i % 4) as u16, (i / 4 % 4) as u16, i / 512, i / 16 % 32)));
    let (stats, commands) = run(&config, &Controller::default(), &requests);
    assert!(stats.utilisation() > 0.95, "{}", stats.utilisation());
    assert_eq!(stats.data_busy, [8192, 0]);
    assert_eq!(stats.end_tick, stats.last_cmd_tick + 16);
    assert_eq!(stats.data_busy[0] + stats.stalls.iter().sum::<u64>(), stats.end_tick);
    let latencies = &stats.read_latency;
    assert!(latencies.percentile(0.5) <= latencies.percentile(0.99) && latencies.percentile(1.0) == latencies.max());
    assert_eq!(commands.len() as u64, stats.commands.iter().sum::<u64>());
}

/// A read of a burst that waits to be written is answered from the queue; a second write merges.
#[test]
fn forwarding() {
    let config = preset("hbm2_2000");
    let write = Request { address: at(0, 0, 5, 3), write: true };
    let read = Request { write: false, ..write };
    let busy = Request { address: at(1, 0, 0, 0), write: false };
    let (stats, commands) = run(&config, &Controller::default(), &[busy, write, write, read]);
    assert_eq!((stats.forwarded, stats.coalesced, stats.reads, stats.writes), (1, 1, 2, 2));
    assert_eq!(commands.iter().filter(|c| c.command.is_column()).count(), 2);
}
