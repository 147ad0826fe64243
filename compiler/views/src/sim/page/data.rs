//! Timeline and row map: the past of the banks as JSON, which the page's script draws.

use super::super::report::short;
use super::bytes;
use super::units::{self, Units};
use crate::page::escape;
use crate::page::packed::base64;
use ptoc_diagnostics::plural;
use ptoc_pim_sim::dram::Command;
use ptoc_pim_sim::machine::history::{COLUMNS, Count, History, MOST};
use ptoc_pim_sim::machine::report::Report;
use ptoc_pim_stream::stream::SourceLine;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Bins that are written, over all banks.
const BINS: usize = 40_000;
/// Steps that are told apart; neighbours are joined where there are more.
const STEPS: u64 = 1000;
/// Banks of the table.
const ROWS: usize = 64;

/// The past of the banks that did something beside being refreshed.
pub(super) struct Timeline {
    history: History,
    banks: Vec<usize>,
    /// Banks that are not shown though they have accesses: no unit of their pseudo-channels computes.
    aside: usize,
    /// The bins are wider than those that the run kept.
    joined: bool,
}

/// Lines by the numbers that stand for them.
#[derive(Default)]
struct Places(Vec<SourceLine>);

impl Places {
    fn number(&mut self, place: SourceLine) -> usize {
        self.0.iter().position(|p| *p == place).unwrap_or_else(|| {
            self.0.push(place);
            self.0.len() - 1
        })
    }
}

impl Timeline {
    /// Of a run that kept it.
    pub fn new(r: &Report) -> Option<Timeline> {
        let kept = r.history.as_ref()?;
        let history = kept.at_most(BINS);
        let has = |bank: usize, what: &dyn Fn(usize) -> bool| {
            history.bins(bank).iter().any(|b| b.counts.iter().enumerate().any(|(n, c)| what(n) && *c > 0))
        };
        let works: Vec<usize> = (0..history.banks()).filter(|b| has(*b, &|n| n != Count::Refresh as usize)).collect();
        // Copies of what units read lie in all banks. Where these are too many to look at, those beside units at work
        // are shown.
        let of_pch = (r.shape[1] * r.shape[2]) as usize;
        let busy: BTreeSet<usize> =
            works.iter().filter(|b| has(**b, &|n| n == Count::Compute as usize)).map(|b| b / of_pch).collect();
        let shown = |b: &usize| works.len() <= ROWS || busy.is_empty() || busy.contains(&(b / of_pch));
        let banks: Vec<usize> = works.iter().copied().filter(shown).collect();
        let joined = history.width() > 1;
        let aside = works.len() - banks.len();
        Some(Timeline { history, banks, aside, joined })
    }

    /// Both pictures with their data, and a table of the banks.
    pub fn html(&self, r: &Report) -> String {
        let mut places = Places::default();
        let (chunks, until) = self.history.chunks();
        let commands: u64 = chunks.iter().map(|c| u64::from(c.count)).sum();
        let data = self.data(r, &mut places).to_string().replace("</", "<\\/");
        let has_states = r.unit_traces.iter().flatten().next().is_some();
        let mut out = String::from("<h2>Time of every bank</h2>\n<p class=\"note\">");
        let left = self.history.banks() - self.banks.len() - self.aside;
        if self.joined {
            write!(out, "Counts are of bins of {} ticks. ", self.history.width()).ok();
        }
        let (since, count) = (self.history.since(), plural(commands as usize, "command"));
        let from = if since > 0 { format!(" from tick {since} on") } else { String::new() };
        let to = until.map(|tick| format!(" up to tick {tick}")).unwrap_or_default();
        match (since, until) {
            (0, None) => write!(out, "Zoomed in, all {count} are there one by one. ").ok(),
            _ => write!(
                out,
                "Zoomed in, commands are there one by one{from}{to} ({count}); of all others there are bins alone. \
                 <code>--html-from TICK</code> writes a page that has them from another tick on, up to {}. ",
                bytes(MOST as u64)
            )
            .ok(),
        };
        if left > 0 {
            write!(out, "{} with no access {} left out. ", plural(left, "bank"), if left == 1 { "is" } else { "are" })
                .ok();
        }
        if self.aside > 0 {
            write!(
                out,
                "{} of pseudo-channels in which no unit computes {} left out. ",
                plural(self.aside, "bank"),
                if self.aside == 1 { "is" } else { "are" }
            )
            .ok();
        }
        out.push_str("A command for many banks is drawn at each.</p>\n");
        out.push_str(
            "<div class=\"tools\"><button data-zoom=\"0.5\">zoom in</button><button data-zoom=\"2\">zoom out</button>\
             <button data-zoom=\"0\">all</button> <button data-open=\"all\">open all</button><button \
             data-open=\"none\">\
             close all</button> <span>drag to move, double-click or Ctrl and wheel to zoom, + - 0 \
             and arrow keys do the same</span></div>\n\
             <p class=\"key\">banks stand under their pseudo-channel, whose lane has their means; a click on its name \
             opens and closes it; upper part of a bank: <span><i class=\"c-compute\"></i>its unit computes;</span> \
             lower part: <span><i class=\"c-column\"></i>bursts</span> <span><i class=\"c-row\"></i>rows opened</span> \
             <span><i class=\"c-refresh\"></i>refresh</span></p>\n",
        );
        if has_states {
            out.push_str(
                "<p class=\"key\">above that the state of its unit: <span><i class=\"c-mode\"></i>LOAD</span> \
                 <span><i class=\"c-energy\"></i>PROCESS</span> <span><i class=\"c-operand\"></i>OUTPUT</span> \
                 <span><i class=\"c-idle\"></i>DONE</span>; zoomed in, tiles with their numbers: when each is \
                 computed, and below when it is fetched</p>\n",
            );
        }
        out.push_str(
            "<div class=\"lanes\"><canvas class=\"time\" tabindex=\"0\" role=\"img\" aria-label=\"Time of every bank; \
             the table below has its numbers\"></canvas></div>\n\
             <h2>Rows found open</h2>\n<p class=\"key\">of the accesses of a bank: <span><i class=\"c-hit\"></i>hits \
             (no command to the row since the access before)</span> <span><i class=\"c-miss\"></i>misses (ACT)</span> \
             <span><i class=\"c-conflict\"></i>conflicts (PRE and ACT)</span></p>\n\
             <div class=\"lanes\"><canvas class=\"rows\" tabindex=\"0\" role=\"img\" aria-label=\"Row hits of every \
             bank; the table below has its numbers\"></canvas></div>\n",
        );
        writeln!(out, "<script type=\"application/json\" class=\"data\">{data}</script>").ok();
        self.table(&mut out, r);
        out
    }

    fn data(&self, r: &Report, places: &mut Places) -> Value {
        let (chunks, until) = self.history.chunks();
        let units = Units::new(r, self.history.since());
        let banks: Vec<Value> = self
            .banks
            .iter()
            .map(|bank| {
                let filled =
                    self.history.bins(*bank).iter().enumerate().filter(|(_, b)| b.counts.iter().any(|c| *c > 0));
                let bins: Vec<Value> = filled
                    .map(|(n, b)| {
                        let mut row = vec![n as u64];
                        row.extend(b.counts.iter().map(|c| u64::from(*c)));
                        row.extend([places.number(b.place) as u64, u64::from(b.others)]);
                        json!(row)
                    })
                    .collect();
                json!([bank, name(r, *bank), bins, units.states_of(*bank), units.chunks_of(*bank)])
            })
            .collect();
        let kept: Vec<Value> =
            chunks.iter().map(|c| json!([c.from, c.to, c.count, c.first_bank, c.channel, base64(&c.data)])).collect();
        // Lines of a channel's commands by their numbers there.
        let lines: Vec<Vec<usize>> = (0..self.history.channels())
            .map(|channel| self.history.places(channel).iter().map(|p| places.number(*p)).collect())
            .collect();
        let steps = steps(r, places);
        let [burst, act, pre, refresh_all, refresh_one] = r.lengths;
        json!({
            "ticks": r.ticks, "ns": r.tick_ps / 1000.0, "width": self.history.width(),
            "perPch": r.shape[1] * r.shape[2],
            "lengths": {"burst": burst, "act": act, "pre": pre, "refreshAll": refresh_all, "refreshOne": refresh_one},
            "commands": Command::ALL.iter().map(|c| c.name()).collect::<Vec<_>>(),
            "steps": steps, "banks": banks, "kept": kept, "lines": lines, "columns": COLUMNS, "until": until,
            "since": self.history.since(),
            "unitsUntil": units.until(),
            "stateNames": units::names(),
            "places": places.0.iter()
                .map(|p| if p.file == 0 { String::new() } else { short(r, *p) })
                .collect::<Vec<_>>(),
        })
    }

    fn table(&self, out: &mut String, r: &Report) {
        write!(
            out,
            "<details><summary>{}</summary>\n<div class=\"scroll\"><table>\n<tr><th>bank<th>ACT<th>RD<th>WR<th>hits\
             <th>misses<th>conflicts<th>ticks of computing<th>of refresh</tr>\n",
            plural(self.banks.len(), "bank")
        )
        .ok();
        for bank in self.banks.iter().take(ROWS) {
            let mut sums = [0u64; Count::COUNT];
            for bin in self.history.bins(*bank) {
                sums.iter_mut().zip(bin.counts).for_each(|(a, b)| *a += u64::from(b));
            }
            let cells: String = sums.iter().map(|n| format!("<td class=\"n\">{n}")).collect();
            writeln!(out, "<tr><td>{}{cells}</tr>", escape(&name(r, *bank))).ok();
        }
        out.push_str("</table></div>\n");
        if self.banks.len() > ROWS {
            writeln!(out, "<p class=\"note\">and {} more</p>", self.banks.len() - ROWS).ok();
        }
        let moved = r.bytes.unit_moved;
        write!(out, "<p class=\"note\">Units moved {} in their banks.</p>\n</details>\n", bytes(moved)).ok();
    }
}

/// `channel.pseudo-channel.group.bank`
fn name(r: &Report, bank: usize) -> String {
    r.bank(bank).map(|n| n.to_string()).join(".")
}

/// Begin, end, name and line of each step that takes time.
fn steps(r: &Report, places: &mut Places) -> Vec<Value> {
    let short = r.ticks / STEPS;
    let mut out: Vec<(u64, u64, String, SourceLine)> = Vec::new();
    for ((from, to), (name, place)) in r.steps.iter().zip(&r.names).filter(|((from, to), _)| to > from) {
        match out.last_mut() {
            Some(last) if last.1 == *from && last.2 == *name && last.3 == *place => last.1 = *to,
            // What is too short to be seen is drawn with what comes before.
            Some(last) if last.1 == *from && to - from <= short && last.1 - last.0 <= short => {
                *last = (last.0, *to, "several steps".into(), SourceLine::default());
            }
            _ => out.push((*from, *to, (*name).into(), *place)),
        }
    }
    out.into_iter().map(|(from, to, name, place)| json!([from, to, name, places.number(place)])).collect()
}
