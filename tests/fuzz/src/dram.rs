//! DRAM texts: a configuration, a request trace and a command trace, with a line `---` between them.
//!
//! Whatever they say, nothing panics and every mistake has a place. What can be simulated keeps the rules that the
//! checker derives from the parameters, its commands read back as they were written, and its time is accounted for.

use ptoc_pim_sim::check::bound::attribute;
use ptoc_pim_sim::check::{CommandTrace, Options, Rule, check};
use ptoc_pim_sim::dram::controller::RowPolicy;
use ptoc_pim_sim::dram::mapping::Mapping;
use ptoc_pim_sim::dram::trace::{parse_requests, write_commands};
use ptoc_pim_sim::dram::{Config, Controller, Issued, Policy, Refresh, Request, simulate};
use ptoc_pim_sim::energy::{self, Model};
use ptoc_pim_sim::located::InputError;
use ptoc_pim_sim::timeline;

/// Requests of a run.
const REQUESTS: usize = 48;

fn placed(text: &str, errors: &[InputError]) {
    assert!(!errors.is_empty());
    for e in errors {
        assert!(!e.message.is_empty());
        assert!(e.line == 0 || text.get(e.bytes.clone()).is_some(), "{e:?}");
        assert!(!e.to_string().is_empty());
    }
}

/// Bytes as the three texts.
pub fn dram(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split("\n---\n");
    let mut part = || parts.next().unwrap_or_default();
    let (config, requests, commands) = (part(), part(), part());
    let mapping = part();
    let config = match Config::parse("fuzz", config) {
        Ok(loaded) => loaded.config,
        Err(errors) => return placed(config, &errors),
    };
    if let Err(e) = Mapping::parse(&config, mapping) {
        placed(mapping, &[e]);
    }
    match CommandTrace::parse(&config, commands) {
        Ok(trace) => {
            for (channel, bytes) in trace.channels.iter().zip(&trace.bytes) {
                for strict in [false, true] {
                    for v in check(&config, channel, Options { strict, refresh: true, ..Options::default() }) {
                        assert!(!v.to_string().is_empty() && bytes.get(v.second.0).is_some());
                        assert!(!v.rule.is_timing() || v.need > v.gap || v.first.is_none(), "{v}");
                    }
                }
            }
        }
        Err(errors) => placed(commands, &errors),
    }
    match parse_requests(&config, &Mapping::interleaved(&config), requests) {
        Ok(channels) => channels.iter().take(2).for_each(|requests| run(&config, requests)),
        Err(errors) => placed(requests, &errors),
    }
}

fn run(config: &Config, requests: &[Request]) {
    let requests = &requests[..requests.len().min(REQUESTS)];
    if requests.is_empty() {
        return;
    }
    let mut derived = config.clone();
    derived.derive();
    let own_list = derived.constraints != config.constraints;
    // With refreshes that are many to a request a run is long.
    let t = &config.timing;
    let slowest = [t.rc, t.faw, t.rtw, t.wr, t.ras, t.rp, t.rcd_rd, t.rcd_wr, t.cl, t.cwl, t.ccd_l, t.rfc, t.wtr_l];
    let many = slowest.into_iter().max().unwrap_or(0) / 20 > t.refi.min(t.refi_pb);
    for policy in [Policy::InOrder, Policy::FrFcfs] {
        for (refresh, row_policy) in [
            (Refresh::Off, RowPolicy::Closed),
            (Refresh::AllBank, RowPolicy::Open),
            (Refresh::PerBank, RowPolicy::Closed),
        ] {
            if many && refresh != Refresh::Off {
                continue;
            }
            let controller = Controller { policy, refresh, row_policy, ..Controller::default() };
            let mut trace: Vec<Issued> = Vec::new();
            let Ok(stats) = simulate(config, &controller, requests.iter().copied(), |c| trace.push(c)) else {
                continue;
            };
            assert_eq!(stats.reads + stats.writes, requests.len() as u64);
            for v in check(config, &trace, Options::default()) {
                // A list of its own may forbid less, and an nRTW of its own may let bursts overlap.
                assert!(own_list || v.rule == Rule::DataBus, "{controller:?}: {v}");
            }
            let written = write_commands([&trace[..]]);
            let back = CommandTrace::parse(config, &written).expect("what is written is read");
            assert_eq!(back.channels[0], trace);
            let last = trace.iter().filter(|c| c.command.is_column()).map(|c| c.tick).max();
            let burst = config.ticks(config.timing.bl);
            assert_eq!(attribute(config, &trace).total(), last.map_or(0, |tick| tick + burst));
            if let Ok(model) = Model::of(config) {
                let energy = energy::of_trace(&model, config, &trace, stats.end_tick);
                assert!(energy.total().is_finite() && energy.total() >= 0.0);
            }
            let timeline = timeline::of_commands(config, &[&trace]);
            assert!(timeline.slices() >= trace.len().min(1));
        }
    }
}
