//! A page about runs on units in memory: where time, rows, bandwidth and energy went. It is one file that needs nothing
//! from outside, and its size is bounded: it has counts in bins of time, and commands one by one, packed, as far as
//! some megabytes go.

mod charts;
mod data;
mod roofline;
mod units;

use super::report::percent;
use crate::page::packed::SCRIPT as PACKED;
use crate::page::{Page, TIME_AXIS, escape, listing};
use ptoc_pim_sim::machine::account::{Bucket, Buckets};
use ptoc_pim_sim::machine::report::Report;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page of some runs with their names, and of texts that they name: name and text.
pub fn page(title: &str, runs: &[(&str, &Report)], texts: &[(&str, &str)]) -> String {
    let device = runs.first().map_or(String::new(), |(_, r)| format!("on {} with units {}", escape(&r.device), r.unit));
    let mut main = String::new();
    for (name, report) in runs {
        main.push_str("<section class=\"run\">\n");
        if *name != title {
            writeln!(main, "<h2 class=\"launch\">{}</h2>", escape(name)).ok();
        }
        run(&mut main, report, texts);
        main.push_str("</section>\n");
    }
    if runs.is_empty() {
        main.push_str("<p>Nothing ran on units in memory.</p>\n");
    }
    let page = Page {
        title: format!("{title}: a run on units in memory"),
        style: STYLE.into(),
        header: format!("<h1>{}</h1><p>{device}</p>", escape(title)),
        main,
        source: source(runs, texts),
        script: format!("{PACKED}{TIME_AXIS}{SCRIPT}"),
    };
    page.html()
}

fn run(out: &mut String, r: &Report, texts: &[(&str, &str)]) {
    cards(out, r);
    if let Some(timeline) = data::Timeline::new(r) {
        out.push_str(&timeline.html(r));
    }
    charts::launches(out, r);
    charts::attribution(out, r, texts);
    roofline::section(out, r);
    charts::energy(out, r);
    charts::baseline(out, r);
}

fn cards(out: &mut String, r: &Report) {
    let [hits, misses, conflicts] = r.rows;
    let accesses = hits + misses + conflicts;
    out.push_str("<div class=\"cards\">\n");
    let mut card = |title: &str, value: String, more: String| {
        writeln!(out, "<div class=\"card\"><b>{title}</b> <span>{value}</span><small>{more}</small></div>").ok();
    };
    let cycles = r.unit_cycles().zip(r.unit_mhz);
    card(
        "time",
        format!("{:.3} us", r.ns() / 1000.0),
        format!(
            "{} ticks of {} ps{}",
            r.ticks,
            r.tick_ps,
            cycles.map_or(String::new(), |(n, mhz)| format!(", {n:.0} cycles of the units ({mhz} MHz)"))
        ),
    );
    card(
        "row hits",
        format!("{:.1} %", percent(hits as f64, accesses as f64)),
        format!("{hits} hits, {misses} misses, {conflicts} conflicts"),
    );
    let b = &r.bytes;
    card(
        "bytes",
        bytes(b.host_moved + b.unit_moved),
        format!(
            "host path {} ({:.1} % useful), units {}",
            bytes(b.host_moved),
            percent(b.host_useful as f64, b.host_moved as f64),
            bytes(b.unit_moved)
        ),
    );
    card(
        "energy",
        format!("{:.3} uJ", r.picojoules() / 1e6),
        format!("{:.2} pJ for a byte moved", r.picojoules() / ((b.host_moved + b.unit_moved).max(1)) as f64),
    );
    if let Some(t) = &r.baseline.streaming {
        let times = t.ticks as f64 / r.ticks.max(1) as f64;
        card("host, streaming", ratio(times), "of this run's time, moving each array once".into());
    }
    if let Some(t) = &r.baseline.gathering {
        let times = t.ticks as f64 / r.ticks.max(1) as f64;
        card("host, gathering", ratio(times), "of this run's time, reading pixels query by query".into());
    }
    out.push_str("</div>\n");
}

/// A ratio with three digits that count.
pub(crate) fn ratio(times: f64) -> String {
    let digits = if times > 0.0 { (2 - times.log10().floor() as i32).clamp(0, 6) } else { 0 };
    format!("{times:.*} x", digits as usize)
}

/// A number of bytes with a unit that keeps it short.
fn bytes(n: u64) -> String {
    match n {
        0..10_000 => format!("{n} B"),
        10_000..10_000_000 => format!("{:.1} KiB", n as f64 / 1024.0),
        10_000_000..10_000_000_000 => format!("{:.1} MiB", n as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", n as f64 / 1_073_741_824.0),
    }
}

/// The share of a bucket in words.
fn shares(b: &Buckets) -> Vec<(Bucket, u64)> {
    Bucket::ALL.into_iter().map(|bucket| (bucket, b[bucket as usize])).filter(|(_, n)| *n > 0).collect()
}

/// The id of a line in the listings.
fn line_id(file: usize, line: u32) -> String {
    format!("F{file}L{line}")
}

/// All texts, and at each line its share of what all pseudo-channels did beside standing idle.
fn source(runs: &[(&str, &Report)], texts: &[(&str, &str)]) -> String {
    let mut spent: BTreeMap<(&str, u32), Buckets> = BTreeMap::new();
    let busy = |b: &Buckets| b.iter().sum::<u64>() - b[Bucket::Idle as usize];
    let mut whole = 0;
    for (_, r) in runs {
        for (place, buckets) in &r.lines {
            whole += busy(buckets);
            let file = (place.file as usize).checked_sub(1).and_then(|n| r.files.get(n));
            if let Some(file) = file {
                let all = spent.entry((file, place.line)).or_default();
                all.iter_mut().zip(buckets).for_each(|(a, b)| *a += b);
            }
        }
    }
    let mut out = String::new();
    for (n, (name, text)) in texts.iter().enumerate() {
        writeln!(out, "<h3>{}</h3>", escape(name)).ok();
        out.push_str(&listing(text, &format!("F{n}L"), |line| {
            let Some(buckets) = spent.get(&(*name, line)).filter(|b| busy(b) > 0) else { return String::new() };
            let share = percent(busy(buckets) as f64, whole as f64);
            let parts = shares(buckets).into_iter().filter(|(b, _)| *b != Bucket::Idle);
            let most = parts.max_by_key(|(b, n)| (*n, std::cmp::Reverse(*b)));
            let most = most.map_or("", |(b, _)| b.name());
            let words = format!("{share:.1} %, most of it {most}");
            format!("<span class=\"heat\" style=\"--share:{share:.1}%\" title=\"{words}\">{share:.1} % {most}</span>")
        }));
    }
    if !texts.is_empty() {
        out.push_str(
            "<p class=\"note\">Shares are of what the pseudo-channels did, waits and all, beside standing idle; with \
             what took most of it.</p>\n",
        );
    }
    out
}
