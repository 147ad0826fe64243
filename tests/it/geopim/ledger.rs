//! The account of time: every tick of every unit and pseudo-channel is charged once, refreshes are charged what
//! refreshes take, and what a unit does behind its last result is idle.

use super::run;
use proptest::prelude::*;
use ptoc_pim_sim::dram::{Command, Config};
use ptoc_pim_sim::machine::account::Bucket;
use ptoc_tests::programs::Given;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(6, 40)))]

    /// Queries that do not divide into the units, so that some have more to do than others: a unit that waits for the
    /// others is not being refreshed longer than it works.
    #[test]
    fn every_tick_is_charged_once(
        (queries, samples, batch) in (1u32..40, 1u32..5, 1u32..3),
        refresh in prop::sample::select(vec!["off", "all", "bank"]),
        stacks in 1u32..3,
    ) {
        let sizes = format!("B={batch} H=8 W=8 C=32 Q={queries} S={}", 8 * samples);
        let all = format!("{sizes} device.refresh={refresh} device.stacks={stacks}");
        let pairs: Vec<(String, String)> =
            all.split_whitespace().filter_map(|d| d.split_once('=')).map(|(n, v)| (n.into(), v.into())).collect();
        let ran = run("sampling.tile", "transplat", &pairs, &Given::new(), 3);
        let report = &ran.outcome.simulated.as_ref().expect("units ran").report;
        prop_assert!(!report.units.is_empty());
        for buckets in report.pchs.iter().chain(report.units.iter().map(|u| &u.buckets)) {
            prop_assert_eq!(buckets.iter().sum::<u64>(), report.ticks);
        }
        let refreshes = report.commands[Command::RefAb as usize] + report.commands[Command::RefPb as usize];
        prop_assert!(refresh != "off" || refreshes == 0);
        let config = Config::preset("hbm2_2000").expect("the preset");
        let t = &config.timing;
        // Its row closes first, when it may.
        let each = config.ticks(t.rfc.max(t.rfc_pb) + t.ras + t.rp + t.rtp.max(t.cwl + t.bl + t.wr));
        for unit in &report.units {
            let [idle, charged] = [Bucket::Idle, Bucket::Refresh].map(|b| unit.buckets[b as usize]);
            let works = report.ticks - idle;
            let most = if refresh == "off" { 0 } else { (works / config.ticks(t.refi) + 2) * each };
            prop_assert!(charged <= most, "unit {}: {charged} of {works} ticks, {most} at most", unit.number);
        }
    }
}
