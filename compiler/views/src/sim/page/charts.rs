//! Bars: where the time went, and the energy; and what the host would do.

use super::super::report::{percent, short};
use super::{bytes, line_id, ratio, shares};
use crate::page::escape;
use ptoc_diagnostics::plural;
use ptoc_pim_sim::machine::account::{Bucket, Buckets};
use ptoc_pim_sim::machine::baseline::Traffic;
use ptoc_pim_sim::machine::report::Report;
use std::cmp::Reverse;
use std::fmt::Write as _;

/// Bars of one chart.
const SHOWN: usize = 40;

/// The class of a bucket's colour.
fn class(bucket: Bucket) -> &'static str {
    ["compute", "column", "row", "faw", "refresh", "operand", "fence", "mode", "idle"][bucket as usize]
}

/// A bar: its label, which is HTML, and its ticks.
type Bar = (String, Buckets);

/// Bars of time: by kind of step, line, and unit.
pub(super) fn attribution(out: &mut String, r: &Report, texts: &[(&str, &str)]) {
    out.push_str("<h2>Where the time went</h2>\n<p class=\"key\">");
    let total = r.total();
    for bucket in Bucket::ALL.into_iter().filter(|b| total[*b as usize] > 0) {
        write!(out, "<span><i class=\"c-{}\"></i>{}</span> ", class(bucket), bucket.name()).ok();
    }
    out.push_str(
        "</p>\n<p class=\"note\">Every tick of every pseudo-channel and of every unit is in one part of one bar of \
        each chart.</p>\n",
    );
    bars(out, "all pseudo-channels", &[("the run".into(), total)], true);
    // The host's own kernels are not timed.
    let timed = r.kinds.iter().filter(|(_, k)| k.ticks > 0);
    let kinds: Vec<Bar> = timed.map(|(name, k)| (escape(name), k.buckets)).collect();
    bars(out, "by kind of step", &kinds, false);
    let mut lines: Vec<_> = r.lines.iter().collect();
    lines.sort_by_key(|(p, b)| (Reverse(b.iter().sum::<u64>()), **p));
    let lines: Vec<Bar> = lines
        .iter()
        .map(|(place, buckets)| {
            let name = escape(&short(r, **place));
            let file = (place.file as usize).checked_sub(1).and_then(|n| r.files.get(n));
            let text = texts.iter().position(|(name, _)| file.is_some_and(|f| f == name));
            let label = match text {
                Some(n) => format!("<a href=\"#{}\">{name}</a>", line_id(n, place.line)),
                None => name,
            };
            (label, **buckets)
        })
        .collect();
    bars(out, "by line of the source", &lines, false);
    let per = r.shape[0] as usize;
    let own = r.units.iter().any(|u| u.sequencer.is_some());
    let units: Vec<Bar> = match own {
        true => {
            let place = |bank| r.bank(bank).map(|n| n.to_string()).join(".");
            r.units.iter().map(|u| (format!("unit {} ({})", u.number, place(u.bank)), u.buckets)).collect()
        }
        false => {
            let name = |n| format!("pseudo-channel {}.{}", n / per, n % per);
            r.pchs.iter().enumerate().filter(|(_, b)| works(b)).map(|(n, b)| (name(n), *b)).collect()
        }
    };
    let title = match (own, r.unit) {
        (true, _) => "by unit (bank)",
        (false, "none") => "by pseudo-channel",
        (false, _) => "by pseudo-channel, whose units work in lock step",
    };
    bars(out, title, &units, true);
    let left = if own { 0 } else { r.pchs.len() - units.len() };
    if left > 0 {
        writeln!(out, "<p class=\"note\">{} with nothing to do left out</p>", plural(left, "pseudo-channel")).ok();
    }
}

/// Whether it does anything but waiting and being refreshed.
fn works(b: &Buckets) -> bool {
    shares(b).iter().any(|(bucket, _)| !matches!(bucket, Bucket::Idle | Bucket::Refresh))
}

/// The kernels of a program.
pub(super) fn launches(out: &mut String, r: &Report) {
    if r.launches.is_empty() {
        return;
    }
    out.push_str("<h2>Launches</h2>\n<div class=\"scroll\"><table>\n<tr><th>kernel<th>launched at<th>ticks<th></tr>\n");
    for l in &r.launches {
        let note = if l.is_host() { "ran on the host, not timed; its arrays move in these ticks" } else { "" };
        writeln!(
            out,
            "<tr><td>{}<td>{}<td class=\"n\">{}<td>{note}</tr>",
            escape(&l.kernel),
            escape(&r.place(l.place)),
            l.ticks()
        )
        .ok();
    }
    out.push_str("</table></div>\n");
}

/// A chart. Bars are as long as their share of the longest, or `full`.
fn bars(out: &mut String, title: &str, bars: &[Bar], full: bool) {
    let sum = |b: &Buckets| b.iter().sum::<u64>();
    let longest = bars.iter().map(|(_, b)| sum(b)).max().unwrap_or(0);
    writeln!(out, "<h3>{title}</h3>\n<div class=\"bars\">").ok();
    for (label, buckets) in bars.iter().take(SHOWN) {
        let whole = sum(buckets);
        let width = if full { 100.0 } else { percent(whole as f64, longest as f64) };
        let parts = shares(buckets);
        let said: Vec<String> =
            parts.iter().map(|(b, n)| format!("{} {:.1} %", b.name(), percent(*n as f64, whole as f64))).collect();
        let said = if said.is_empty() { "nothing".to_owned() } else { said.join(", ") };
        write!(
            out,
            "<div class=\"bar\"><span>{label}</span><div class=\"track\" role=\"img\" aria-label=\"{whole} ticks: \
             {said}\" title=\"{whole} ticks: {said}\"><div style=\"width:{width:.2}%\">"
        )
        .ok();
        for (bucket, n) in parts {
            write!(
                out,
                "<i class=\"c-{}\" style=\"width:{:.3}%\"></i>",
                class(bucket),
                percent(n as f64, whole as f64)
            )
            .ok();
        }
        writeln!(out, "</div></div><small>{whole}</small></div>").ok();
    }
    out.push_str("</div>\n");
    if bars.len() > SHOWN {
        writeln!(out, "<p class=\"note\">and {} more; <code>--json</code> has all</p>", bars.len() - SHOWN).ok();
    }
}

/// Energy by kind.
pub(super) fn energy(out: &mut String, r: &Report) {
    let (e, total) = (&r.energy, r.picojoules());
    let parts = [
        ("activate", e.activate),
        ("read over the interface", e.read),
        ("write over the interface", e.write),
        ("refresh", e.refresh),
        ("background", e.background),
        ("units: accesses to their banks", r.unit_energy[0]),
        ("units: operations", r.unit_energy[1]),
    ];
    writeln!(out, "<h2>Energy</h2>\n<p class=\"note\">{:.3} uJ in all.</p>\n<div class=\"bars\">", total / 1e6).ok();
    for (name, pj) in parts {
        let share = percent(pj, total);
        writeln!(
            out,
            "<div class=\"bar\"><span>{name}</span><div class=\"track\"><div style=\"width:{share:.2}%\"><i \
             class=\"c-energy\" style=\"width:100%\"></i></div></div><small>{:.3} uJ, {share:.1} %</small></div>",
            pj / 1e6
        )
        .ok();
    }
    out.push_str("</div>\n");
}

/// The host with the same memory, beside the run.
pub(super) fn baseline(out: &mut String, r: &Report) {
    out.push_str(
        "<h2>The host with the same memory</h2>\n<div class=\"scroll\"><table>\n\
                  <tr><th><th>us<th>of this run's time<th>moved\
                  <th>useful<th>data buses used<th>row hits</tr>\n",
    );
    let mut row = |name: &str, us: f64, cells: [String; 4]| {
        let times = us * 1000.0 / r.ns().max(f64::MIN_POSITIVE);
        let cells: String = cells.iter().map(|c| format!("<td class=\"n\">{c}")).collect();
        writeln!(out, "<tr><td>{name}<td class=\"n\">{us:.3}<td class=\"n\">{}{cells}</tr>", ratio(times)).ok();
    };
    let [hits, misses, conflicts] = r.rows;
    let rate = |[hits, misses, conflicts]: [u64; 3]| {
        format!("{:.1} %", percent(hits as f64, (hits + misses + conflicts) as f64))
    };
    let b = &r.bytes;
    let used = b.host_moved as f64 / (r.peaks.host_bytes * r.ns()).max(f64::MIN_POSITIVE);
    let useful = format!("{} (host path)", bytes(b.host_useful));
    row(
        "this run",
        r.ns() / 1000.0,
        [
            format!("{} (host path {})", bytes(b.host_moved + b.unit_moved), bytes(b.host_moved)),
            useful,
            format!("{:.1} %", 100.0 * used),
            rate([hits, misses, conflicts]),
        ],
    );
    let us = |t: &Traffic| t.ticks as f64 * r.tick_ps / 1e6;
    let mut note = String::new();
    for (name, t) in [("streaming", &r.baseline.streaming), ("gathering", &r.baseline.gathering)] {
        let Some(t) = t else { continue };
        let cells = [bytes(t.moved), bytes(t.useful), format!("{:.1} %", 100.0 * t.utilisation), rate(t.rows)];
        row(name, us(t), cells);
        let [simulated, all] = t.simulated;
        if simulated < all {
            write!(note, " Of {name} the first {simulated} of {all} bursts were simulated.").ok();
        }
    }
    out.push_str(
        "</table></div>\n<p class=\"note\">Streaming moves each array that goes in or comes out once, from its front: \
                  a bound for whoever computes on the host.",
    );
    if r.baseline.gathering.is_some() {
        out.push_str(" Gathering reads the pixels of each sample in the order of the queries, without a cache.");
    }
    writeln!(out, "{note}</p>").ok();
}
