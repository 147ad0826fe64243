//! Skipping to the next event gives the commands of walking through every tick.

use proptest::prelude::*;

use super::*;
use crate::dram::timing::Timing;

fn device(preset: &'static str) -> impl Strategy<Value = Config> {
    (prop::collection::vec(1u32..24, Timing::PARAMETERS.len()), 1u32..3, 1u32..3, 1u32..4, 1u32..4).prop_map(
        move |(times, pcs, sids, groups, banks)| {
            let mut config = Config::preset(preset).expect("a preset");
            config.org.pseudochannel = pcs;
            config.org.sid = sids;
            config.org.bankgroup = groups;
            config.org.bank = banks;
            for (parameter, time) in Timing::PARAMETERS.iter().zip(times) {
                config.timing.set(parameter.name, time);
            }
            config.timing.refi = 150 + config.timing.refi * 8;
            config.timing.refi_pb = 100 + config.timing.refi_pb * 8;
            config.derive();
            config
        },
    )
}

fn controller() -> impl Strategy<Value = Controller> {
    (any::<bool>(), 0usize..3, 1usize..9, 1usize..9, 0.0..0.5, 0.5..1.0, any::<bool>()).prop_map(
        |(closed, refresh, reads, writes, low, high, edges)| Controller {
            row_policy: if closed { RowPolicy::Closed } else { RowPolicy::Open },
            refresh: [Refresh::Off, Refresh::AllBank, Refresh::PerBank][refresh],
            read_queue: reads,
            write_queue: writes,
            write_low: low,
            write_high: high,
            clock_edges: edges,
            ..Controller::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(60, 200)))]

    #[test]
    fn skipping_is_walking(
        config in prop_oneof![device("hbm2_2000"), device("hbm3_6400")],
        controller in controller(),
        seeds in prop::collection::vec((any::<bool>(), any::<u16>(), 0u32..3, 0u32..4), 1..150),
    ) {
        let org = &config.org;
        let requests: Vec<Request> = seeds.iter().map(|&(write, place, row, column)| {
            let place = u32::from(place);
            let address = Address {
                pc: (place % org.pseudochannel) as u16,
                bankgroup: (place / 2 % org.bankgroups_per_pc()) as u16,
                bank: (place / 16 % org.bank) as u16,
                row,
                column,
            };
            Request { address, write }
        }).collect();
        let mut skipped = Vec::new();
        let mut walked = Vec::new();
        let mut sessions = [Session::new(&config, &controller), Session::new(&config, &controller)];
        let [first, second] = &mut sessions;
        let a = step::<false>(&config, &controller, first, 1, requests.iter().copied(), |c, _| skipped.push(c));
        let b = step::<true>(&config, &controller, second, 1, requests.iter().copied(), |c, _| walked.push(c));
        prop_assert_eq!(a, b);
        prop_assert_eq!(sessions[0].stats(), sessions[1].stats());
        prop_assert_eq!(skipped, walked);
    }
}
