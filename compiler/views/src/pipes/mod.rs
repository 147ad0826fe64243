//! The page of `run --html` for targets with pipes: when each pipe of each role was at work in the first block, what
//! it waited for otherwise, and the flags between pipes. It is the model's time, not measured. A page is one file that
//! needs nothing from outside.

mod data;

use crate::page::{Page, TIME_AXIS, escape, listing};
use data::Places;
use ptoc_diagnostics::{FileId, SourceMap, Span, plural};
use ptoc_interp::{Cause, Timing};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Rows of the table of stalls.
const MOST_STALLS: usize = 40;

/// A launch that was timed.
#[derive(Clone, Copy, Debug)]
pub struct PipeRun<'r> {
    /// The kernel.
    pub kernel: &'r str,
    /// Names of its roles.
    pub roles: &'r [String],
    /// Names of its events, and whether each is an array.
    pub events: &'r [(String, bool)],
    /// The model's numbers.
    pub timing: &'r Timing,
}

impl PipeRun<'_> {
    /// The name of a role; empty for the kernel itself.
    fn role(&self, role: u32) -> &str {
        role.checked_sub(1).and_then(|n| self.roles.get(n as usize)).map_or("", String::as_str)
    }

    /// `V`, `V of loader`
    fn lane(&self, role: u32, pipe: ptoc_isa::Pipe) -> String {
        match self.role(role) {
            "" => pipe.to_string(),
            role => format!("{pipe} of {role}"),
        }
    }

    fn micros(&self, cycles: u64) -> f64 {
        cycles as f64 / f64::from(self.timing.clock.max(1))
    }
}

/// The page of some launches.
pub fn page(title: &str, target: &str, runs: &[PipeRun<'_>], sources: &SourceMap) -> String {
    let mut places = Places::new(sources);
    let mut main = String::new();
    for run in runs {
        main.push_str("<section class=\"run\">\n");
        if runs.len() > 1 || run.kernel != title {
            writeln!(main, "<h2 class=\"launch\">{}</h2>", escape(run.kernel)).ok();
        }
        cards(&mut main, run);
        timeline(&mut main, run, &mut places);
        stalls(&mut main, run, &mut places);
        main.push_str("</section>\n");
    }
    let header = format!("<h1>{}</h1><p>on {}: a model of time, not a measurement</p>", escape(title), escape(target));
    let page = Page {
        title: format!("{title}: pipes in time"),
        style: STYLE.into(),
        header,
        main,
        source: source(runs, &places),
        script: format!("{TIME_AXIS}{SCRIPT}"),
    };
    page.html()
}

fn cards(out: &mut String, run: &PipeRun<'_>) {
    let t = run.timing;
    out.push_str("<div class=\"cards\">\n");
    let mut card = |title: &str, value: String, more: String| {
        writeln!(out, "<div class=\"card\"><b>{title}</b> <span>{value}</span><small>{more}</small></div>").ok();
    };
    let time = |cycles: u64| format!("{:.3} us", run.micros(cycles));
    card("first block", format!("{} cycles", t.first.cycles), format!("{} at {} MHz", time(t.first.cycles), t.clock));
    card(
        "launch",
        format!("{} cycles", t.makespan),
        format!("{}, {} on {}", time(t.makespan), plural(t.blocks as usize, "block"), plural(t.cores as usize, "core")),
    );
    for unit in t.units().iter().filter(|u| u.unit != ptoc_isa::Pipe::S) {
        let share = unit.busy as f64 * 100.0 / t.cycles.max(1) as f64;
        let more = format!(
            "{} of {} cycles, {} in all blocks",
            unit.busy,
            t.cycles,
            plural(unit.count as usize, "instruction")
        );
        let value = format!("{share:.1} % busy");
        writeln!(
            out,
            "<div class=\"card\"><b>{}</b> <span>{value}</span><i><u \
             style=\"width:{:.1}%\"></u></i><small>{more}</small></div>",
            unit.unit,
            share.min(100.0)
        )
        .ok();
    }
    out.push_str("</div>\n");
}

fn timeline(out: &mut String, run: &PipeRun<'_>, places: &mut Places<'_>) {
    let first = &run.timing.first;
    out.push_str("<h2>Pipes of the first block</h2>\n");
    if let Some(cycle) = first.lost_from {
        writeln!(
            out,
            "<p class=\"note\">The first {} are here, up to cycle {cycle}; those that come later are in the sums \
             alone.</p>",
            plural(first.slices.len(), "instruction")
        )
        .ok();
    }
    out.push_str(
        "<div class=\"tools\"><button data-zoom=\"0.5\">zoom in</button><button data-zoom=\"2\">zoom out</button>\
         <button data-zoom=\"0\">all</button> <label>from cycle <input class=\"at\" type=\"number\" min=\"0\"></label> \
         <label><input class=\"flags\" type=\"checkbox\" checked> flags</label> <span>drag to move, double-click or \
         Ctrl and wheel to zoom, + - 0 and arrow keys do the same; a click shows the line</span></div>\n\
         <p class=\"key\"><span><i class=\"k-work\"></i>the unit is at work</span> <span><i class=\"k-tail\"></i>the \
         result is on its way</span> <span><i class=\"k-event\"></i>waits for a flag</span> <span><i \
         class=\"k-barrier\"></i>at a \
         barrier</span> <span><i class=\"k-issue\"></i>for the issuer</span> <span><i class=\"k-unit\"></i>for its \
         unit, which another role has</span> <span><i class=\"k-flag\"></i>a flag, from set to wait: strong \
         where it ended a wait</span></p>\n\
         <div class=\"lanes\"><canvas class=\"time\" tabindex=\"0\" role=\"img\" aria-label=\"Pipes in time; the table \
         below has the stalls\"></canvas></div>\n",
    );
    let data = data::of(run, places).to_string().replace("</", "<\\/");
    writeln!(out, "<script type=\"application/json\" class=\"data\">{data}</script>").ok();
}

fn stalls(out: &mut String, run: &PipeRun<'_>, places: &mut Places<'_>) {
    let t = run.timing;
    if t.stalls.is_empty() {
        out.push_str("<p class=\"note\">No pipe stood still between two instructions.</p>\n");
        return;
    }
    out.push_str(
        "<h2>What pipes waited for, in all blocks</h2>\n<div class=\"scroll\"><table>\n\
         <tr><th>pipe<th>waited<th>cycles<th>share<th>line</tr>\n",
    );
    for stall in t.stalls.iter().take(MOST_STALLS) {
        let place = places.number(stall.span);
        writeln!(
            out,
            "<tr><td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{:.1} %<td><a href=\"#{}\">{}</a></tr>",
            escape(&run.lane(stall.role, stall.pipe)),
            cause(stall.cause),
            stall.cycles,
            stall.cycles as f64 * 100.0 / t.cycles.max(1) as f64,
            places.id(place),
            escape(&places.label(place)),
        )
        .ok();
    }
    out.push_str("</table></div>\n");
    if t.stalls.len() > MOST_STALLS {
        writeln!(out, "<p class=\"note\">and {} more</p>", t.stalls.len() - MOST_STALLS).ok();
    }
}

/// What a pipe waited for, in words.
fn cause(cause: Cause) -> String {
    match cause {
        Cause::Event(pipe) => format!("for a flag of {pipe}"),
        Cause::Barrier => "at a barrier".into(),
        Cause::Issue => "for the issuer".into(),
        Cause::Unit => "for its unit, which another role has".into(),
    }
}

/// The files that something stems from, and at each line its share of the first block: pipes at work, pipes waiting.
fn source(runs: &[PipeRun<'_>], places: &Places<'_>) -> String {
    let mut spent: BTreeMap<(FileId, u32), (u64, u64)> = BTreeMap::new();
    let mut whole = 0;
    for run in runs {
        let first = &run.timing.first;
        whole += first.cycles;
        let mut add = |span: Span, busy: u64, waited: u64| {
            let sum = spent.entry(places.line(span)).or_default();
            *sum = (sum.0 + busy, sum.1 + waited);
        };
        first.slices.iter().for_each(|s| add(s.span, s.free - s.begin, 0));
        first.stalls.iter().for_each(|s| add(s.span, 0, s.end - s.begin));
    }
    let percent = |cycles: u64| cycles as f64 * 100.0 / whole.max(1) as f64;
    let mut out = String::new();
    for (n, (file, name, text)) in places.files().enumerate() {
        writeln!(out, "<h3>{}</h3>", escape(name)).ok();
        out.push_str(&listing(text, &format!("F{n}L"), |line| {
            let Some((busy, waited)) = spent.get(&(file, line)) else { return String::new() };
            let (work, waits) = (percent(*busy), percent(*waited));
            let short = match (*busy, *waited) {
                (0, _) => format!("+ {waits:.1} %"),
                (_, 0) => format!("{work:.1} %"),
                _ => format!("{work:.1} + {waits:.1} %"),
            };
            let words = format!("works for {work:.1} %, waits for {waits:.1} % of the first block's cycles");
            let share = (work + waits).min(100.0);
            format!("<span class=\"heat\" style=\"--share:{share:.1}%\" title=\"{words}\">{short}</span>")
        }));
    }
    out.push_str(
        "<p class=\"note\">Work + waits of a line, in shares of the first block's cycles; pipes work at the same time, \
         so they may come to more than 100 %.</p>\n",
    );
    out
}

#[cfg(test)]
mod tests;
