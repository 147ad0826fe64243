//! What a simulation has to say as text.

use ptoc_diagnostics::plural;
use ptoc_pim_sim::dram::Command;
use ptoc_pim_sim::machine::account::{Bucket, Buckets, KindTotals};
use ptoc_pim_sim::machine::baseline::Traffic;
use ptoc_pim_sim::machine::bound::BoundBy;
use ptoc_pim_sim::machine::report::Report;
use ptoc_pim_stream::stream::SourceLine;
use std::fmt::Write as _;

/// Lines of the source, and banks, that are shown.
const SHOWN: usize = 16;

/// One line.
pub fn summary(name: &str, r: &Report) -> String {
    let steps = plural(r.steps.len(), "step");
    format!("{name} on {}: {steps}, {}\n", r.device, time(r))
}

/// `1166 cycles, 1.166 us`
pub fn time(r: &Report) -> String {
    format!("{} cycles, {:.3} us", r.clocks(r.ticks), r.ns() / 1000.0)
}

pub(crate) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}

/// How far steps are from what they take at least, and what that is made of.
fn of_bound(r: &Report, k: &KindTotals) -> String {
    let Some(factor) = k.bound.factor(k.ticks) else { return String::new() };
    let parts = BoundBy::ALL.iter().map(|by| (by.name(), k.bound.part(*by))).filter(|(_, ticks)| *ticks > 0);
    let parts: Vec<String> = parts.map(|(name, ticks)| format!("{name} {}", r.clocks(ticks))).collect();
    format!(", {factor:.2} of the bound ({}: {})", r.clocks(k.bound.ticks()), parts.join(", "))
}

/// Shares of time, without those that are 0.
fn shares(buckets: &Buckets) -> String {
    let whole: u64 = buckets.iter().sum();
    let parts: Vec<String> = Bucket::ALL
        .iter()
        .map(|b| (b.name(), buckets[*b as usize]))
        .filter(|(_, ticks)| *ticks > 0)
        .map(|(name, ticks)| format!("{name} {:.1} %", percent(ticks as f64, whole as f64)))
        .collect();
    if parts.is_empty() { "nothing".into() } else { parts.join(", ") }
}

/// What the host would move.
fn host(r: &Report, t: &Traffic) -> String {
    let [hits, misses, conflicts] = t.rows;
    let all = (hits + misses + conflicts) as f64;
    let mut out = format!(
        "{} cycles, {} bytes moved, {} useful ({:.1} %), data buses used {:.1} %, row hits {:.1} %",
        r.clocks(t.ticks),
        t.moved,
        t.useful,
        percent(t.useful as f64, t.moved as f64),
        100.0 * t.utilisation,
        percent(hits as f64, all)
    );
    let [simulated, bursts] = t.simulated;
    if simulated < bursts {
        let _ = write!(out, "; the first {simulated} of {bursts} bursts were simulated");
    }
    out
}

/// A line of the source without the folders, which take the room of the numbers.
pub(crate) fn short(r: &Report, place: SourceLine) -> String {
    let whole = r.place(place);
    whole.rsplit('/').next().unwrap_or(&whole).to_owned()
}

/// The time of a line without that of pseudo-channels that do nothing in the whole run: these wait for the line's
/// steps.
fn at_work_in(r: &Report, place: SourceLine, buckets: &Buckets) -> Buckets {
    let own = r.steps.iter().zip(&r.names).filter(|(_, (_, at))| *at == place);
    let waited: u64 = own.map(|((start, end), _)| end - start).sum();
    let mut out = *buckets;
    let still = &mut out[Bucket::Idle as usize];
    *still = still.saturating_sub(waited * (r.pchs.len() as u64 - r.busy()));
    out
}

/// The whole report.
pub fn text(name: &str, r: &Report) -> String {
    let mut out = summary(name, r);
    out.push('\n');
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{name:<16} {text}");
    };
    if let (Some(mhz), Some(cycles)) = (r.unit_mhz, r.unit_cycles()) {
        let stepped = r.step_ns.map(|ns| match ns * f64::from(mhz) < 999.0 {
            true => format!("; commands step them every {ns} ns, which is less than a cycle of their clock"),
            false => format!("; commands step them every {ns} ns at most"),
        });
        let stepped = stepped.unwrap_or_default();
        line("units", format!("{}, {mhz} MHz: {cycles:.0} cycles in that time{stepped}", r.unit));
        let [steps, ops] = r.unit_work;
        line("", format!("{steps} unit steps, {ops} lane operations"));
    }
    let b = &r.bytes;
    line(
        "bytes",
        format!(
            "host path {} moved, {} useful ({:.1} %); units {}",
            b.host_moved,
            b.host_useful,
            percent(b.host_useful as f64, b.host_moved as f64),
            b.unit_moved
        ),
    );
    let [buses, unit_banks] = r.utilisation().map(|share| 100.0 * share);
    line(
        "bandwidth",
        match r.unit_mhz {
            Some(_) => format!("data buses used {buses:.1} %, banks towards their units {unit_banks:.1} %"),
            None => format!("data buses used {buses:.1} %"),
        },
    );
    let [hits, misses, conflicts] = r.rows;
    let all = (hits + misses + conflicts) as f64;
    line("rows", format!("{hits} hits ({:.1} %), {misses} misses, {conflicts} conflicts", percent(hits as f64, all)));
    let commands: Vec<String> = Command::ALL
        .iter()
        .filter(|c| r.commands[**c as usize] > 0)
        .map(|c| format!("{} {}", c.name(), r.commands[*c as usize]))
        .collect();
    line("commands", if commands.is_empty() { "none".into() } else { commands.join(", ") });
    let e = &r.energy;
    let total = r.picojoules();
    let parts = [
        ("activate", e.activate),
        ("read", e.read),
        ("write", e.write),
        ("refresh", e.refresh),
        ("background", e.background),
        ("unit accesses", r.unit_energy[0]),
        ("unit operations", r.unit_energy[1]),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, pj)| *pj > 0.0)
        .map(|(name, pj)| format!("{name} {:.1} %", percent(*pj, total)))
        .collect();
    line("energy", format!("{:.3} nJ: {}", total / 1000.0, parts.join(", ")));
    let baselines = [
        ("each array once, from its front", &r.baseline.streaming),
        ("the pixels of each query in turn, without a cache", &r.baseline.gathering),
    ];
    let mut title = "host baseline";
    for (what, traffic) in baselines.into_iter().filter_map(|(what, t)| Some((what, t.as_ref()?))) {
        line(std::mem::take(&mut title), format!("{what}: {}", host(r, traffic)));
    }
    if let Some(ticks) = r.launch_by_launch() {
        line("", format!("launch by launch, each of its arrays once: {} cycles", r.clocks(ticks)));
    }
    if !r.resident.is_empty() {
        let arrays: Vec<String> = r.resident.iter().map(|(name, bytes)| format!("{name} {bytes} bytes")).collect();
        let said = "there before the run, and not written by the host";
        line("resident", format!("{}: {said}", arrays.join(", ")));
    }
    if r.launches.is_empty() && r.kinds.keys().all(|kind| *kind == "host") {
        line("units", "none of them works: the host runs the kernel, whose time is not in the cycles".to_owned());
    }
    for l in &r.launches {
        let kinds = l.kinds.iter().filter(|(_, (_, ticks))| *ticks > 0);
        let mut kinds: Vec<String> = kinds.map(|(name, (_, ticks))| format!("{name} {}", r.clocks(*ticks))).collect();
        if l.is_host() {
            let least = l.baseline.map(|t| format!(" (its arrays once take {} cycles)", r.clocks(t.ticks)));
            let least = least.unwrap_or_default();
            kinds.push(format!("computed by the host, whose time is not in the cycles{least}"));
        }
        if let Some(t) = l.baseline.filter(|_| !l.is_host()) {
            kinds.push(format!("by the host {}", r.clocks(t.ticks)));
        }
        let kinds = if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") };
        let share = percent(l.ticks() as f64, r.ticks as f64);
        line(
            &format!("  {}", l.kernel),
            format!("{}: {} cycles ({share:.1} %): {kinds}", short(r, l.place), r.clocks(l.ticks())),
        );
    }
    // Pseudo-channels that do nothing in the whole run would be most of every share.
    let (busy, all) = (r.busy(), r.pchs.len() as u64);
    let idle = all - busy;
    let at_work = |buckets: &Buckets| {
        let mut own = *buckets;
        let still = &mut own[Bucket::Idle as usize];
        *still = still.saturating_sub(buckets.iter().sum::<u64>() / all.max(1) * idle);
        shares(&own)
    };
    let of = if idle > 0 { format!("of {busy} of {all} pseudo-channels, the others idle: ") } else { String::new() };
    line("time", format!("{of}{}", at_work(&r.total())));
    for (kind, k) in &r.kinds {
        let steps = plural(k.steps as usize, "step");
        let text = match *kind {
            "host" => format!("{steps}: ran on the host, not timed"),
            _ => format!("{steps}, {} cycles{}: {}", r.clocks(k.ticks), of_bound(r, k), at_work(&k.buckets)),
        };
        line(&format!("  {kind}"), text);
    }
    let mut lines: Vec<_> =
        r.lines.iter().filter(|(p, _)| p.file != 0).map(|(p, b)| (p, at_work_in(r, *p, b))).collect();
    lines.sort_by_key(|(p, b)| (std::cmp::Reverse(b.iter().sum::<u64>()), **p));
    for (place, buckets) in lines.iter().take(SHOWN) {
        let ticks: u64 = buckets.iter().sum();
        line(
            &format!("  {}", short(r, **place)),
            format!("{} pseudo-channel cycles: {}", r.clocks(ticks), shares(buckets)),
        );
    }
    if lines.len() > SHOWN {
        line("", format!("and {} more", plural(lines.len() - SHOWN, "line")));
    }
    // Units that take commands together have one time.
    let per = r.shape[0] as usize;
    let together = r.pchs.iter().enumerate().filter(|(_, b)| b[Bucket::Compute as usize] > 0);
    let together = together.map(|(n, b)| (format!("  units {}.{}", n / per, n % per), shares(b)));
    let alone = r.units.iter().filter(|u| u.sequencer.is_some());
    let alone: Vec<(String, String)> = alone.map(|u| (format!("  unit {}", u.number), shares(&u.buckets))).collect();
    let units = if alone.is_empty() { together.collect() } else { alone };
    for (name, text) in units.iter().take(SHOWN) {
        line(name, text.clone());
    }
    if units.len() > SHOWN {
        line("", format!("and {} more; `--json` has all", units.len() - SHOWN));
    }
    let mut banks: Vec<_> = r.banks.iter().enumerate().filter(|(_, b)| b.rd + b.wr > 0).collect();
    banks.sort_by_key(|(n, b)| (std::cmp::Reverse(b.rd + b.wr), *n));
    for (n, b) in banks.iter().take(SHOWN) {
        let [channel, pch, group, bank] = r.bank(*n);
        line(
            &format!("  bank {channel}.{pch}.{group}.{bank}"),
            format!("ACT {}, RD {}, WR {}, unit steps {}", b.act, b.rd, b.wr, b.steps),
        );
    }
    if banks.len() > SHOWN {
        line("", format!("and {} more; `--json` has all", plural(banks.len() - SHOWN, "bank")));
    }
    out
}
