//! `--tune`: every combination of the values that a kernel's `tune` lists name.
//!
//! What the target's checks refuse is discarded before any code is generated; the others are compiled, and launched in
//! turns, so that a disturbance of the machine meets all of them.

use crate::format::{flag, time};
use crate::race::{Entrant, Laps, fastest, race};
use crate::recall::{self, Memory};
use crate::sample::{Rehearsal, percentile};
use crate::setup::{Machine, Setup, first_error, tell};
use crate::sweep::{Values, same};
use crate::verify::{Rejected, checked};
use ptoc_diagnostics::{Diagnostic, Edit, codes, plural};
use ptoc_driver::launch::CompiledPlan;
use ptoc_driver::session::{CompilationUnit, Failed, Session};
use ptoc_syntax::ast::{KernelItem, StaticKind, StaticParam};
use ptoc_tensor::Tensor;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// Configurations at most.
const MOST: usize = 1024;
/// Of the seconds of a measurement, what one configuration gets.
const SHARE: f64 = 0.25;

/// A parameter with its candidates, as they are written.
pub(crate) struct TuneAxis<'u> {
    pub param: &'u StaticParam,
    pub values: Vec<String>,
}

/// A value for each axis.
type Choice = Vec<usize>;

/// Measures all configurations, and reports, as text or as JSON. What is stored for the same text, sizes and machine is
/// not measured, but `again`; what was measured is stored.
///
/// # Errors
/// What is wrong is among the diagnostics.
pub fn tune(setup: &Setup, on: &Machine, session: &mut Session, (json, again): (bool, bool)) -> Result<String, Failed> {
    let (unit, mut arrays) = setup.load(session)?;
    let entry = unit.entry(setup.kernel.as_deref(), setup.command).or_else(|d| session.fail(*d))?;
    let axes = axes(session, entry.item)?;
    let memory = Memory::of(session, on, (&unit, &entry), &arrays)?;
    if let Some(stored) = memory.as_ref().filter(|_| !again).and_then(|memory| memory.recall(&axes)) {
        return Ok(if json { recall::json(on, &stored) } else { recall::text(on, &stored) });
    }
    let choices = choices(&axes);
    let mut sessions = Vec::new();
    let mut refused: Vec<(Choice, Diagnostic)> = Vec::new();
    for choice in choices {
        match setup.plan(&definitions(&axes, &choice), &arrays) {
            Ok((mut own, plan)) => {
                tell(&mut own, session);
                sessions.push((choice, own, plan));
            }
            Err(d) => refused.push((choice, *d)),
        }
    }
    let mut compiled = Vec::new();
    let mut tensors: Option<Vec<Tensor>> = None;
    for (choice, own, plan) in &mut sessions {
        // Shapes and inputs are the same for all.
        if tensors.is_none() {
            tensors = Some(setup.inputs(session, plan, &mut arrays)?);
        }
        match CompiledPlan::new(own, plan, on.backend) {
            Ok(code) => compiled.push((choice.clone(), own, code)),
            Err(Failed) => refused.push((choice.clone(), first_error(own))),
        }
    }
    let tensors = tensors.unwrap_or_default();
    let (mut tried, mut entrants, mut stopped) = (Vec::new(), Vec::new(), None);
    for (choice, own, code) in &mut compiled {
        let right = checked(own, code, &tensors, on.threads, setup.verify, false);
        let ready = right.and_then(|_| {
            let rehearsal = Rehearsal::new(own, code, &tensors, on.threads);
            rehearsal.map_err(|Failed| Rejected::Failed(Box::new(first_error(own))))
        });
        match ready {
            Ok(rehearsal) => {
                tried.push(choice.clone());
                entrants.push(Entrant { session: own, rehearsal, arrays: 0 });
            }
            Err(Rejected::Wrong(why)) => refused.push((choice.clone(), *why)),
            Err(Rejected::Failed(why)) => {
                stopped = stopped.or(Some((*why).clone()));
                refused.push((choice.clone(), *why));
            }
        }
    }
    // What is wrong with the machine, or with the arrays, is no matter of configurations.
    if let (true, Some(why)) = (entrants.is_empty(), stopped) {
        return session.fail(why);
    }
    refused.sort_by(|a, b| a.0.cmp(&b.0));
    if entrants.is_empty() {
        return session.fail(nothing_fits(entry.item, &axes, refused));
    }
    let length = Duration::from_secs_f64(setup.seconds * SHARE);
    let laps = match race(&mut entrants, &mut [tensors], length, true) {
        Ok(laps) => laps,
        Err((_, why)) => return session.fail(*why),
    };
    drop(entrants);
    let equal: Vec<Choice> = fastest(&laps).into_iter().map(|n| tried[n].clone()).collect();
    let verified = setup.verify.is_some() && !entry.item.ensures.is_empty();
    let default = equal.iter().find(|choice| is_default(session, &axes, choice));
    let best = default.or(equal.first()).cloned().unwrap_or_default();
    let mut measured: Vec<(Choice, Laps)> = tried.into_iter().zip(laps).collect();
    measured.sort_by(|a, b| a.1.median().total_cmp(&b.1.median()));
    if let (Some(memory), Some((_, laps))) = (&memory, measured.iter().find(|(choice, _)| *choice == best)) {
        memory.keep(session, definitions(&axes, &best), laps.median(), verified);
    }
    let result = Tuned { on, session, unit: &unit, item: entry.item, axes, measured, equal, verified, best, refused };
    Ok(if json { result.json() } else { result.text() })
}

/// Whether the choice is what the source has.
fn is_default(session: &Session, axes: &[TuneAxis<'_>], choice: &Choice) -> bool {
    axes.iter().zip(choice).all(|(axis, &n)| match &axis.param.kind {
        StaticKind::Const { default: Some(e), .. } => session.sources.slice(e.span) == axis.values[n],
        _ => false,
    })
}

/// A choice as definitions.
fn definitions(axes: &[TuneAxis<'_>], choice: &Choice) -> Vec<(String, String)> {
    axes.iter().zip(choice).map(|(a, &n)| (a.param.name.name.to_string(), a.values[n].clone())).collect()
}

/// The parameters that have candidates and no definition.
fn axes<'u>(session: &mut Session, item: &'u KernelItem) -> Result<Vec<TuneAxis<'u>>, Failed> {
    let mut axes = Vec::new();
    for param in &item.statics {
        let values = candidates(session, param);
        if !values.is_empty() && !session.definitions.values.contains_key(&param.name.name) {
            axes.push(TuneAxis { param, values });
        }
    }
    let name = &item.name;
    let set = |p: &&StaticParam| matches!(&p.kind, StaticKind::Const { tune, .. } if !tune.is_empty());
    if axes.is_empty()
        && let Some(first) = item.statics.iter().find(set)
    {
        let message =
            format!("there is nothing to tune: `-D` sets every parameter of `{}` that has a `tune` list", name.name);
        let d = Diagnostic::error(codes::NOTHING_TO_TUNE, first.span, message).with_label("set by `-D`");
        return session.fail(d.with_help(format!("leave out `-D {}`", first.name.name)));
    }
    if axes.is_empty() {
        return session.fail(nothing_to_tune(item));
    }
    let all = axes.iter().map(|a| a.values.len()).fold(1usize, usize::saturating_mul);
    if all > MOST {
        let counts = axes.iter().map(|a| format!("{} values of `{}`", a.values.len(), a.param.name.name));
        let counts: Vec<String> = counts.collect();
        let message = format!("`{}` has {all} configurations, and at most {MOST} are tried", name.name);
        let d = Diagnostic::error(codes::TOO_MANY_CONFIGURATIONS, name.span, message).with_label("this kernel");
        let d = d.with_note(format!("they are the product of {}", counts.join(" and ")));
        return session.fail(d.with_help(format!("fix one of them: `-D {}=..`", axes[0].param.name.name)));
    }
    Ok(axes)
}

/// A kernel without `tune` lists.
pub(crate) fn nothing_to_tune(item: &KernelItem) -> Diagnostic {
    let name = &item.name;
    let message = format!("there is nothing to tune: no parameter of `{}` has a `tune` list", name.name);
    let d = Diagnostic::error(codes::NOTHING_TO_TUNE, name.span, message).with_label("this kernel");
    match item.statics.iter().find(|p| matches!(p.kind, StaticKind::Const { .. })) {
        Some(p) => d.with_help(format!(
            "name the values to try after a parameter's default: `const {} = .. tune [64, 128]`",
            p.name.name
        )),
        None => d.with_help("`kernel NAME<const BM = 64 tune [64, 128]>(..)` names the values to try"),
    }
}

/// The values of a parameter's `tune` list, as they are written.
fn candidates(session: &Session, param: &StaticParam) -> Vec<String> {
    let StaticKind::Const { tune, .. } = &param.kind else { return Vec::new() };
    let mut values: Vec<String> = Vec::new();
    for value in tune.iter().map(|e| session.sources.slice(e.span).to_owned()) {
        if !values.iter().any(|known| same(known, &value)) {
            values.push(value);
        }
    }
    values
}

/// The `tune` lists of a kernel.
pub(crate) fn listed(session: &Session, item: &KernelItem) -> Vec<Values> {
    let all = item.statics.iter().map(|p| Values { name: p.name.name.to_string(), values: candidates(session, p) });
    all.filter(|v| !v.values.is_empty()).collect()
}

/// All combinations, the last axis fastest.
fn choices(axes: &[TuneAxis<'_>]) -> Vec<Choice> {
    axes.iter().fold(vec![Vec::new()], |all, axis| {
        let longer = |choice: &Choice, n| choice.iter().copied().chain([n]).collect();
        all.iter().flat_map(|choice| (0..axis.values.len()).map(move |n| longer(choice, n))).collect()
    })
}

/// `-D BM=64 -D BN=128`
fn flags(axes: &[TuneAxis<'_>], choice: &Choice) -> String {
    let flags = axes.iter().zip(choice).map(|(a, &n)| flag(&a.param.name.name, &a.values[n]));
    flags.collect::<Vec<_>>().join(" ")
}

fn nothing_fits(item: &KernelItem, axes: &[TuneAxis<'_>], refused: Vec<(Choice, Diagnostic)>) -> Diagnostic {
    let (name, all) = (&item.name.name, refused.len());
    let is_wrong = |d: &Diagnostic| d.code == codes::EXPECTED_VALUES;
    let wrong = refused.iter().filter(|(_, d)| is_wrong(d)).count();
    let Some((choice, why)) = refused.first() else {
        return Diagnostic::error(codes::NO_CONFIGURATION, item.name.span, format!("`{name}` has no configuration"));
    };
    // What is wrong with all of them is no matter of configurations.
    if all > 1 && wrong == 0 && refused.iter().all(|(_, d)| (d.code, &d.message) == (why.code, &why.message)) {
        return why.clone().with_note(format!("so it is with all {all} configurations"));
    }
    let message = match (all, wrong) {
        (1, 0) => format!("the only configuration of `{name}` cannot be run"),
        (1, _) => format!("the only configuration of `{name}` is wrong"),
        (_, 0) => format!("none of the {all} configurations of `{name}` can be run"),
        _ => format!("none of the {all} configurations of `{name}` can be run and is right"),
    };
    let flags = flags(axes, choice);
    let command = if is_wrong(why) { "ptoc run --verify --random 1" } else { "ptoc check" };
    Diagnostic::error(codes::NO_CONFIGURATION, item.name.span, message)
        .with_label("this kernel")
        .with_note(format!("with {}: error[{}]: {}", flags.replace("-D ", ""), why.code, why.message))
        .with_help(format!("`{command}` with `{flags}` says more"))
}

/// All that was tried.
struct Tuned<'t> {
    on: &'t Machine,
    session: &'t Session,
    unit: &'t CompilationUnit,
    item: &'t KernelItem,
    axes: Vec<TuneAxis<'t>>,
    /// By their medians, fastest first.
    measured: Vec<(Choice, Laps)>,
    /// Those that none is faster than.
    equal: Vec<Choice>,
    /// Results were compared.
    verified: bool,
    /// Of these the one that the source has, or else the first.
    best: Choice,
    refused: Vec<(Choice, Diagnostic)>,
}

impl Tuned<'_> {
    fn text(&self) -> String {
        let mut out = String::new();
        let all = self.measured.len() + self.refused.len();
        let names: Vec<&str> = self.axes.iter().map(|a| a.param.name.name.as_str()).collect();
        let _ = writeln!(
            out,
            "{}: {} of {}{}",
            self.on.head(&self.item.name.name, &self.session.target.name),
            plural(all, "configuration"),
            names.join(", "),
            self.on.tail()
        );
        let width = |a: &TuneAxis<'_>| a.values.iter().map(String::len).max().unwrap_or(0).max(a.param.name.name.len());
        let widths: Vec<usize> = self.axes.iter().map(width).collect();
        let row = |cells: Vec<&str>| -> String {
            cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}  ")).collect()
        };
        let cells = |choice: &Choice| row(self.axes.iter().zip(choice).map(|(a, &n)| a.values[n].as_str()).collect());
        let _ = writeln!(out, "{}    median       best", row(names));
        let least = self.measured.first().map_or(0.0, |(_, laps)| laps.median());
        for (choice, laps) in &self.measured {
            let best = percentile(&laps.times, 0.0).as_secs_f64();
            let tie = if self.equal.len() > 1 && self.equal.contains(choice) { ", a tie" } else { "" };
            let slower = format!("{:.2} x{tie}", laps.median() / least);
            let _ = writeln!(out, "{}{:>10} {:>10}   {slower}", cells(choice), time(laps.median()), time(best));
        }
        for (choice, why) in &self.refused {
            let _ = writeln!(out, "{} discarded: {}: {}", cells(choice), why.code, why.message);
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
            lines if lines.is_empty() => out += "which are the defaults\n",
            lines => {
                let _ = writeln!(out, "as source, {}:", self.unit.path.display());
                out += &lines;
            }
        }
        out
    }

    /// The lines that change when the choice becomes the defaults.
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
                    let end = ptoc_diagnostics::Span::new(after.file, after.end, after.end);
                    edits.push(Edit { span: end, text: format!(" = {value}") });
                }
            }
        }
        let (Some(from), Some(to)) = (edits.iter().map(|e| e.span.start).min(), edits.iter().map(|e| e.span.end).max())
        else {
            return String::new();
        };
        let text = self.session.sources.text(edits[0].span.file);
        let start = text[..from as usize].rfind('\n').map_or(0, |at| at + 1);
        let end = text[to as usize..].find('\n').map_or(text.len(), |at| to as usize + at);
        let old = &text[start..end];
        let mut new = old.to_owned();
        edits.sort_by_key(|e| std::cmp::Reverse(e.span.start));
        for e in &edits {
            new.replace_range(e.span.start as usize - start..e.span.end as usize - start, &e.text);
        }
        let lines = |sign: char, text: &str| -> String { text.lines().map(|l| format!("{sign} {l}\n")).collect() };
        lines('-', old) + &lines('+', &new)
    }

    fn json(&self) -> String {
        let values = |choice: &Choice| -> serde_json::Map<String, Value> {
            let pairs = self.axes.iter().zip(choice);
            pairs.map(|(a, &n)| (a.param.name.name.to_string(), json!(a.values[n]))).collect()
        };
        let ms = |d: Duration| d.as_nanos() as f64 / 1e6;
        let measured: Vec<Value> = (self.measured.iter())
            .map(|(choice, laps)| {
                let t = &laps.times;
                json!({"values": values(choice), "launches": t.len(), "min_ms": ms(percentile(t, 0.0)),
                       "median_ms": ms(percentile(t, 0.5)), "p99_ms": ms(percentile(t, 0.99)),
                       "fastest": self.equal.contains(choice)})
            })
            .collect();
        let refused: Vec<Value> = (self.refused.iter())
            .map(|(choice, why)| json!({"values": values(choice), "code": why.code.as_str(), "message": why.message}))
            .collect();
        let report = json!({
            "kernel": self.item.name.name.as_str(), "backend": self.on.backend.name(),
            "target": self.session.target.name.as_str(), "threads": self.on.host_threads(),
            "best": values(&self.best), "measured": measured, "discarded": refused,
        });
        format!("{report}\n")
    }
}
