//! What a DRAM simulation has to say.

use super::{Run, shown};
use crate::args::{DramPage, DramPolicy, DramRefresh};
use ptoc_diagnostics::plural;
use ptoc_pim_sim::check::Cause;
use ptoc_pim_sim::check::bound::{Bound, attribute};
use ptoc_pim_sim::dram::{Command, Policy, Stats};
use ptoc_pim_sim::energy::{self, Energy};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// The numbers of a report.
struct Numbers {
    stats: Stats,
    energy: Energy,
    bound: Bound,
    /// Of the data that moved.
    bytes: u64,
    /// Until all data has moved.
    ns: f64,
    /// Bytes a nanosecond, over the pseudo-channels that moved any.
    peak: f64,
}

impl Numbers {
    fn of(run: &Run<'_>) -> Numbers {
        let config = &run.config;
        let mut stats = Stats::default();
        run.outcomes.iter().for_each(|o| stats.merge(&o.stats));
        let (mut energy, mut bound) = (Energy::default(), Bound::default());
        for o in &run.outcomes {
            // Idle channels wait for the others.
            energy.add(&energy::of_trace(&run.model, config, &o.commands, stats.end_tick));
            bound.add(&attribute(config, &o.commands));
        }
        let columns = [Command::Rd, Command::RdA, Command::Wr, Command::WrA];
        let bursts: u64 = columns.iter().map(|&c| stats.count(c)).sum();
        let buses = stats.data_busy.iter().filter(|&&b| b > 0).count() as f64;
        let burst_bytes = u64::from(config.org.burst_bytes());
        let burst_ns = config.ticks(config.timing.bl) as f64 * config.tick_ps() / 1000.0;
        Numbers {
            bytes: bursts * burst_bytes,
            ns: stats.end_tick as f64 * config.tick_ps() / 1000.0,
            peak: if burst_ns > 0.0 { buses * burst_bytes as f64 / burst_ns } else { 0.0 },
            stats,
            energy,
            bound,
        }
    }

    fn bandwidth(&self) -> f64 {
        if self.ns > 0.0 { self.bytes as f64 / self.ns } else { 0.0 }
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// The counts of commands that occurred, in the order of their ids.
fn commands(stats: &Stats) -> impl Iterator<Item = (&'static str, u64)> {
    Command::ALL.into_iter().map(|c| (c.name(), stats.count(c))).filter(|&(_, n)| n > 0)
}

/// `--json`
pub(super) fn json(run: &Run<'_>) -> String {
    let n = Numbers::of(run);
    let s = &n.stats;
    let commands: Map<String, Value> = commands(s).map(|(name, n)| (name.to_owned(), json!(n))).collect();
    let bound: Map<String, Value> =
        Cause::ALL.iter().map(|&cause| (cause.name().to_owned(), json!(n.bound.ticks(cause)))).collect();
    let latency = &s.read_latency;
    let object = json!({
        "last_cmd_tick": s.last_cmd_tick,
        "commands": commands,
        "hits": s.hits,
        "misses": s.misses,
        "conflicts": s.conflicts,
        "reads": s.reads,
        "writes": s.writes,
        "forwarded": s.forwarded,
        "coalesced": s.coalesced,
        "end_tick": s.end_tick,
        "ns": n.ns,
        "bytes": n.bytes,
        "bandwidth_GBps": n.bandwidth(),
        "utilisation": s.utilisation(),
        "read_latency_ticks": {
            "mean": latency.mean(),
            "p50": latency.percentile(0.5),
            "p90": latency.percentile(0.9),
            "p99": latency.percentile(0.99),
            "max": latency.max(),
        },
        "energy_pj": {
            "activate": n.energy.activate,
            "read": n.energy.read,
            "write": n.energy.write,
            "refresh": n.energy.refresh,
            "background": n.energy.background,
            "total": n.energy.total(),
        },
        "bound_ticks": bound,
    });
    format!("{object}\n")
}

/// One line: what ran how.
fn title(run: &Run<'_>, stats: &Stats, path: &Path) -> String {
    let args = run.args;
    let policy = match (args.policy, args.page) {
        (DramPolicy::Inorder, _) => "in order",
        (DramPolicy::Frfcfs, DramPage::Open) => "FR-FCFS, open page",
        (DramPolicy::Frfcfs, DramPage::Closed) => "FR-FCFS, closed page",
    };
    let refresh = match args.refresh {
        DramRefresh::On => "all-bank refresh",
        DramRefresh::Off => "no refresh",
        DramRefresh::PerBank => "per-bank refresh",
    };
    let requests = plural((stats.reads + stats.writes) as usize, "request");
    format!(
        "{} on {}: {requests} ({} reads, {} writes), {policy}, {refresh}\n\n",
        shown(path),
        run.config.name,
        stats.reads,
        stats.writes
    )
}

/// The report as a text.
pub(super) fn text(run: &Run<'_>, path: &Path) -> String {
    let n = Numbers::of(run);
    let s = &n.stats;
    let mut out = title(run, s, path);
    let mut line = |name: &str, text: String| {
        if !text.is_empty() {
            let _ = writeln!(out, "{name:<14}{text}");
        }
    };
    line("time", format!("{} ticks, {:.3} us; last RD or WR at tick {}", s.end_tick, n.ns / 1000.0, s.last_cmd_tick));
    let (got, peak) = (n.bandwidth(), n.peak);
    line(
        "data",
        format!("{} bytes, {got:.2} GB/s of {peak:.2} GB/s, bus used {:.1} %", n.bytes, 100.0 * s.utilisation()),
    );
    let served = s.hits + s.misses + s.conflicts;
    line(
        "rows",
        format!(
            "{} hits ({:.1} %), {} misses ({:.1} %), {} conflicts ({:.1} %)",
            s.hits,
            percent(s.hits, served),
            s.misses,
            percent(s.misses, served),
            s.conflicts,
            percent(s.conflicts, served)
        ),
    );
    line("commands", commands(s).map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", "));
    if run.controller.policy == Policy::FrFcfs {
        line("queues", format!("{} reads from the write queue, {} writes merged", s.forwarded, s.coalesced));
    }
    let l = &s.read_latency;
    if l.count() > 0 {
        let at = |q: f64| l.percentile(q);
        line(
            "read latency",
            format!(
                "mean {:.1} ticks, median {}, 90 % {}, 99 % {}, longest {}",
                l.mean(),
                at(0.5),
                at(0.9),
                at(0.99),
                l.max()
            ),
        );
    }
    let e = &n.energy;
    let per_bit = if n.bytes > 0 { e.total() / (n.bytes as f64 * 8.0) } else { 0.0 };
    line("energy", format!("{:.3} nJ, {per_bit:.2} pJ/bit", e.total() / 1000.0));
    let parts = [
        ("activate", e.activate),
        ("read", e.read),
        ("write", e.write),
        ("refresh", e.refresh),
        ("background", e.background),
    ];
    let share = |part: f64| if e.total() > 0.0 { 100.0 * part / e.total() } else { 0.0 };
    line(
        "",
        parts
            .iter()
            .filter(|p| p.1 > 0.0)
            .map(|(name, p)| format!("{name} {:.1} %", share(*p)))
            .collect::<Vec<_>>()
            .join(", "),
    );
    let total = n.bound.total();
    if total > 0 {
        let mut causes: Vec<Cause> = Cause::ALL.into_iter().filter(|&c| n.bound.ticks(c) > 0).collect();
        causes.sort_by_key(|&c| std::cmp::Reverse(n.bound.ticks(c)));
        let shares = causes.iter().map(|&c| format!("{} {:.1} %", c.name(), percent(n.bound.ticks(c), total)));
        line("critical path", shares.collect::<Vec<_>>().join(", "));
        line("bound by", explain(n.bound.dominant()).to_owned());
    }
    out
}

/// What it means that a cause took most of the time.
fn explain(cause: Cause) -> &'static str {
    match cause {
        Cause::Data => "the data bus: it moves bursts most of the time",
        Cause::Ccd => {
            "tCCD: column commands in one bank group come faster than it takes them; spread them over bank groups"
        }
        Cause::Row => "tRCD/tRP: opening and closing rows; more banks in flight or more hits in a row would help",
        Cause::Faw => "tFAW/tRRD: activations; fewer rows or more pseudo-channels would help",
        Cause::Turnaround => {
            "turnaround: the data bus changes direction; longer runs of reads and of writes would help"
        }
        Cause::Refresh => "refresh",
        Cause::Bus => "the command bus",
        Cause::Controller => "the requests or their order: no rule stood in the way of the next command",
    }
}
