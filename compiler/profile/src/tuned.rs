//! What a tuner reports.

use crate::format::time;
use crate::race::Laps;
use crate::sample::percentile;
use crate::search::{Choice, Found};
use crate::setup::Machine;
use crate::tune::{MOST, TuneAxis, definitions, flags, is_default};
use ptoc_diagnostics::{Diagnostic, Edit, Span, plural};
use ptoc_driver::backend::Timed;
use ptoc_driver::session::{CompilationUnit, Session};
use ptoc_syntax::ast::{KernelItem, StaticKind};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Configurations that are shown of those that one code discards.
const SHOWN: usize = 8;

/// All that was tried.
pub(crate) struct Tuned<'t> {
    pub on: &'t Machine,
    pub session: &'t Session,
    pub unit: &'t CompilationUnit,
    pub item: &'t KernelItem,
    pub axes: Vec<TuneAxis<'t>>,
    /// What a search has come to, of how many configurations.
    pub search: Option<(Found, usize)>,
    /// By their medians, fastest first.
    pub measured: Vec<(Choice, Laps)>,
    /// Cycles of those that were simulated.
    pub cycles: BTreeMap<Choice, u64>,
    /// Those that none is faster than.
    pub equal: Vec<Choice>,
    /// Results were compared.
    pub verified: bool,
    /// Of these the one that the source has, or else the first.
    pub best: Choice,
    pub refused: Vec<(Choice, Diagnostic)>,
}

/// What a search has looked at, and how to look at all, where that is possible.
fn searched(found: &Found, tried: usize, all: usize) -> String {
    let optima = if found.optima.len() == 1 { "optimum" } else { "optima" };
    let rest = if all <= MOST { "; `--exhaustive` tries all" } else { "" };
    format!(
        "search: {tried} of {all} were tried, by coordinate descent from {} starts to {} {optima}{rest}\n",
        found.starts,
        found.optima.len()
    )
}

impl Tuned<'_> {
    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let tried = self.measured.len() + self.refused.len();
        let all = self.search.as_ref().map_or(tried, |(_, all)| *all);
        let names: Vec<&str> = self.axes.iter().map(|a| a.name.as_str()).collect();
        let _ = writeln!(
            out,
            "{}: {} of {}{}",
            self.on.head(&self.item.name.name, &self.session.target.name),
            plural(all, "configuration"),
            names.join(", "),
            self.on.tail()
        );
        let width = |a: &TuneAxis<'_>| a.values.iter().map(String::len).max().unwrap_or(0).max(a.name.len());
        let widths: Vec<usize> = self.axes.iter().map(width).collect();
        let row = |cells: Vec<&str>| -> String {
            cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}  ")).collect()
        };
        let cells = |choice: &Choice| row(self.axes.iter().zip(choice).map(|(a, &n)| a.values[n].as_str()).collect());
        let simulated = self.on.timed == Timed::Simulated;
        let heads = if simulated { "    cycles       time" } else { "    median       best" };
        let _ = writeln!(out, "{}{heads}", row(names));
        let least = self.measured.first().map_or(0.0, |(_, laps)| laps.median());
        for (choice, laps) in &self.measured {
            let best = percentile(&laps.times, 0.0).as_secs_f64();
            let tie = if self.equal.len() > 1 && self.equal.contains(choice) { ", a tie" } else { "" };
            let slower = format!("{:.2} x{tie}", laps.median() / least);
            let first = match self.cycles.get(choice) {
                Some(cycles) => cycles.to_string(),
                None => time(laps.median()),
            };
            let _ = writeln!(out, "{}{first:>10} {:>10}   {slower}", cells(choice), time(best));
        }
        let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
        for (choice, why) in &self.refused {
            let of_code = shown.entry(why.code.as_str()).or_default();
            *of_code += 1;
            if *of_code <= SHOWN {
                let _ = writeln!(out, "{} discarded: {}: {}", cells(choice), why.code, why.message);
            }
        }
        for (code, count) in shown.into_iter().filter(|(_, count)| *count > SHOWN) {
            let _ = writeln!(out, "and {} more discarded: {code}", count - SHOWN);
        }
        if let Some((found, all)) = &self.search {
            out += &searched(found, tried, *all);
        }
        if self.equal.len() > 1 {
            let kept = match is_default(self.session, &self.axes, &self.best) {
                true => "the defaults are among them, and stay",
                false => "the first in the order of the lists is taken",
            };
            let _ =
                writeln!(out, "tie: {} are as fast as each other; {kept}", plural(self.equal.len(), "configuration"));
        }
        let _ = writeln!(out, "best: {}", flags(&self.axes, &self.best));
        if !self.verified {
            let _ = writeln!(out, "not verified: `{}` has no `ensures`", self.item.name.name);
        }
        match self.source(&self.best) {
            _ if is_default(self.session, &self.axes, &self.best) => out += "which are the defaults\n",
            lines if lines.is_empty() => {}
            lines => {
                let _ = writeln!(out, "as source, {}:", self.unit.path.display());
                out += &lines;
            }
        }
        out
    }

    /// The lines of the file that change when the choice becomes the defaults.
    fn source(&self, choice: &Choice) -> String {
        let mut edits: Vec<Edit> = Vec::new();
        for (axis, &n) in self.axes.iter().zip(choice) {
            let StaticKind::Const { default, ty, .. } = &axis.param.kind else { continue };
            let value = &axis.values[n];
            match default {
                Some(e) if self.session.sources.slice(e.span) == value => {}
                Some(e) => edits.push(Edit { span: e.span, text: value.clone() }),
                None => {
                    let after = ty.as_ref().map_or(axis.param.name.span, |ty| ty.span);
                    let end = Span::new(after.file, after.end, after.end);
                    edits.push(Edit { span: end, text: format!(" = {value}") });
                }
            }
        }
        // Kernels of other files are not the author's to change here.
        edits.retain(|e| e.span.file == self.unit.file);
        let text = self.session.sources.text(self.unit.file);
        let mut lines: BTreeMap<usize, (usize, String)> = BTreeMap::new();
        edits.sort_by_key(|e| std::cmp::Reverse(e.span.start));
        for e in &edits {
            let from = text[..e.span.start as usize].rfind('\n').map_or(0, |at| at + 1);
            let end = text[e.span.end as usize..].find('\n').map_or(text.len(), |at| e.span.end as usize + at);
            let (_, line) = lines.entry(from).or_insert_with(|| (end, text[from..end].to_owned()));
            line.replace_range(e.span.start as usize - from..e.span.end as usize - from, &e.text);
        }
        let signed = |sign: char, text: &str| -> String { text.lines().map(|l| format!("{sign} {l}\n")).collect() };
        lines.iter().map(|(from, (end, new))| signed('-', &text[*from..*end]) + &signed('+', new)).collect()
    }

    /// For programs.
    pub fn json(&self) -> String {
        let values = |choice: &Choice| -> Map<String, Value> {
            definitions(&self.axes, choice).into_iter().map(|(name, value)| (name, json!(value))).collect()
        };
        let ms = |d: Duration| d.as_nanos() as f64 / 1e6;
        let measured: Vec<Value> = (self.measured.iter())
            .map(|(choice, laps)| {
                let t = &laps.times;
                let cycles = self.cycles.get(choice);
                json!({"values": values(choice), "cycles": cycles, "launches": t.len(),
                       "min_ms": ms(percentile(t, 0.0)), "median_ms": ms(percentile(t, 0.5)),
                       "p99_ms": ms(percentile(t, 0.99)), "fastest": self.equal.contains(choice)})
            })
            .collect();
        let refused: Vec<Value> = (self.refused.iter())
            .map(|(choice, why)| json!({"values": values(choice), "code": why.code.as_str(), "message": why.message}))
            .collect();
        let search = self.search.as_ref().map(|(found, all)| {
            json!({"configurations": all, "tried": found.tried, "starts": found.starts, "optima": found.optima.len()})
        });
        let report = json!({
            "kernel": self.item.name.name.as_str(), "backend": self.on.backend.name(),
            "target": self.session.target.name.as_str(), "threads": self.on.host_threads(),
            "best": values(&self.best), "measured": measured, "discarded": refused, "search": search,
        });
        format!("{report}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_proposed_where_all_can_be_tried() {
        let found = Found { optima: vec![vec![0]], tried: 70, starts: 4 };
        let of = |all| searched(&found, 70, all);
        assert!(of(MOST).ends_with(" to 1 optimum; `--exhaustive` tries all\n"));
        assert!(
            of(MOST + 1).ends_with("search: 70 of 1025 were tried, by coordinate descent from 4 starts to 1 optimum\n")
        );
    }
}
