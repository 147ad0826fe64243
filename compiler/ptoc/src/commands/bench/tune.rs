//! `--tune`: every combination of the values that a kernel's `tune` lists name.
//!
//! What the target's checks refuse is discarded before any code is generated; the others are compiled, and launched in
//! turns, so that a disturbance of the machine meets all of them.

use super::report::time;
use super::sample::{Rehearsal, percentile};
use super::{Benched, inputs, load};
use crate::args::BenchArgs;
use ptoc_diagnostics::{Diagnostic, Edit, codes, plural};
use ptoc_driver::defs::Definition;
use ptoc_driver::launch::{Arrays, CompiledPlan, Plan};
use ptoc_driver::session::{CompilationUnit, Failed, Session};
use ptoc_syntax::ast::{KernelItem, StaticKind, StaticParam};
use ptoc_tensor::Tensor;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// Configurations at most.
const MOST: usize = 1024;
/// Rounds in which all configurations are launched.
const ROUNDS: u32 = 5;
/// Of `--seconds`, what one configuration gets.
const SHARE: f64 = 0.25;

/// A parameter with its candidates, as they are written.
struct TuneAxis<'u> {
    param: &'u StaticParam,
    values: Vec<String>,
}

/// A value for each axis.
type Choice = Vec<usize>;

/// Measures all configurations and reports.
pub fn tune(args: &BenchArgs, on: &Benched, session: &mut Session) -> Result<String, Failed> {
    let (unit, mut arrays) = load(args, session)?;
    let entry = unit.entry(args.kernel.as_deref(), "bench").or_else(|d| session.fail(*d))?;
    let axes = axes(session, entry.item)?;
    let choices = choices(&axes);
    let mut sessions = Vec::new();
    let mut refused: Vec<(Choice, Diagnostic)> = Vec::new();
    for choice in choices {
        match configure(args, &axes, &choice, &arrays) {
            Ok((session, plan)) => sessions.push((choice, session, plan)),
            Err(d) => refused.push((choice, *d)),
        }
    }
    let mut running = Vec::new();
    let mut tensors: Option<Vec<Tensor>> = None;
    for (choice, own, plan) in &mut sessions {
        // Shapes and inputs are the same for all.
        if tensors.is_none() {
            tensors = Some(inputs(args, session, plan, &mut arrays)?);
        }
        match CompiledPlan::new(own, plan, on.backend) {
            Ok(compiled) => running.push((choice.clone(), own, compiled)),
            Err(Failed) => refused.push((choice.clone(), first_error(own))),
        }
    }
    let mut tensors = tensors.unwrap_or_default();
    let (mut trials, mut stopped) = (Vec::new(), None);
    for (choice, own, compiled) in &mut running {
        match Rehearsal::new(own, compiled, &tensors, on.threads) {
            Ok(rehearsal) => trials.push((choice.clone(), own, rehearsal, Vec::new())),
            Err(Failed) => {
                let why = first_error(own);
                stopped = stopped.or(Some(why.clone()));
                refused.push((choice.clone(), why));
            }
        }
    }
    // What is wrong with the machine, or with the arrays, is no matter of configurations.
    if let (true, Some(why)) = (trials.is_empty(), stopped) {
        return session.fail(why);
    }
    let length = Duration::from_secs_f64(args.seconds * SHARE) / ROUNDS;
    for _ in 0..ROUNDS {
        for (_, own, rehearsal, times) in &mut trials {
            match rehearsal.launch_for(own, &mut tensors, length) {
                Ok(more) => times.extend(more.times),
                Err(Failed) => return session.fail(first_error(own)),
            }
        }
    }
    let mut measured: Vec<(Choice, Vec<Duration>)> = trials.into_iter().map(|(c, _, _, times)| (c, times)).collect();
    measured.iter_mut().for_each(|(_, times)| times.sort_unstable());
    measured.sort_by_key(|(_, times)| percentile(times, 0.5));
    refused.sort_by(|a, b| a.0.cmp(&b.0));
    if measured.is_empty() {
        return session.fail(nothing_fits(entry.item, &axes, refused));
    }
    let result = Tuned { on, session, unit: &unit, item: entry.item, axes, measured, refused };
    Ok(if args.json { result.json() } else { result.text() })
}

/// The parameters that have candidates and no definition.
fn axes<'u>(session: &mut Session, item: &'u KernelItem) -> Result<Vec<TuneAxis<'u>>, Failed> {
    let mut axes = Vec::new();
    for param in &item.statics {
        let StaticKind::Const { tune, .. } = &param.kind else { continue };
        if tune.is_empty() || session.definitions.values.contains_key(&param.name.name) {
            continue;
        }
        let mut values: Vec<String> = Vec::new();
        for value in tune.iter().map(|e| session.sources.slice(e.span).to_owned()) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        axes.push(TuneAxis { param, values });
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
        let message = format!("there is nothing to tune: no parameter of `{}` has a `tune` list", name.name);
        let d = Diagnostic::error(codes::NOTHING_TO_TUNE, name.span, message).with_label("this kernel");
        return session.fail(match item.statics.iter().find(|p| matches!(p.kind, StaticKind::Const { .. })) {
            Some(p) => d.with_help(format!(
                "name the values to try after a parameter's default: `const {} = .. tune [64, 128]`",
                p.name.name
            )),
            None => d.with_help("`kernel NAME<const BM = 64 tune [64, 128]>(..)` names the values to try"),
        });
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

/// All combinations, the last axis fastest.
fn choices(axes: &[TuneAxis<'_>]) -> Vec<Choice> {
    axes.iter().fold(vec![Vec::new()], |all, axis| {
        let longer = |choice: &Choice, n| choice.iter().copied().chain([n]).collect();
        all.iter().flat_map(|choice| (0..axis.values.len()).map(move |n| longer(choice, n))).collect()
    })
}

/// A plan of one configuration, with a session of its own; the first error if it is refused.
fn configure(
    args: &BenchArgs,
    axes: &[TuneAxis<'_>],
    choice: &Choice,
    arrays: &Arrays,
) -> Result<(Session, Plan), Box<Diagnostic>> {
    let given = args.compile.define.iter().map(|(name, value)| (name.clone(), value.clone()));
    let chosen = axes.iter().zip(choice).map(|(a, &n)| (a.param.name.name.to_string(), a.values[n].clone()));
    let definitions: Vec<Definition> = given.chain(chosen).map(|(name, value)| Definition { name, value }).collect();
    let mut session = Session::new(&args.compile.target, &definitions)?;
    session.vectors = args.vectors;
    session.exact = args.exact;
    let plan = session.load_code(&args.file).and_then(|unit: CompilationUnit| {
        let entry = unit.entry(args.kernel.as_deref(), "bench").or_else(|d| session.fail(*d))?;
        Plan::new(&mut session, &unit, &entry, arrays, true)
    });
    plan.map_err(|Failed| Box::new(first_error(&mut session))).map(|plan| (session, plan))
}

fn first_error(session: &mut Session) -> Diagnostic {
    let found = std::mem::take(&mut session.diagnostics);
    let error = found.iter().find(|d| d.is_error()).cloned();
    error.expect("what fails has said why")
}

/// `BM=64 BN=128`
fn words(axes: &[TuneAxis<'_>], choice: &Choice) -> String {
    let words: Vec<String> =
        axes.iter().zip(choice).map(|(a, &n)| format!("{}={}", a.param.name.name, a.values[n])).collect();
    words.join(" ")
}

fn nothing_fits(item: &KernelItem, axes: &[TuneAxis<'_>], refused: Vec<(Choice, Diagnostic)>) -> Diagnostic {
    let message = match refused.len() {
        1 => format!("the only configuration of `{}` cannot be run", item.name.name),
        n => format!("none of the {n} configurations of `{}` can be run", item.name.name),
    };
    let mut d = Diagnostic::error(codes::NO_CONFIGURATION, item.name.span, message).with_label("this kernel");
    let first = refused.into_iter().next();
    if let Some((choice, why)) = first {
        let words = words(axes, &choice);
        d = d.with_note(format!("with {words}: error[{}]: {}", why.code, why.message));
        let flags = words.split(' ').map(|w| format!("-D {w}")).collect::<Vec<_>>().join(" ");
        d = d.with_help(format!("`ptoc check` with `{flags}` says more"));
    }
    d
}

/// All that was tried.
struct Tuned<'t> {
    on: &'t Benched,
    session: &'t Session,
    unit: &'t CompilationUnit,
    item: &'t KernelItem,
    axes: Vec<TuneAxis<'t>>,
    /// Fastest first, times ascending.
    measured: Vec<(Choice, Vec<Duration>)>,
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
        let fastest = self.measured.first().map_or(0.0, |(_, t)| percentile(t, 0.5).as_secs_f64());
        for (choice, times) in &self.measured {
            let [median, best] = [0.5, 0.0].map(|share| percentile(times, share).as_secs_f64());
            let slower = format!("{:.2} x", median / fastest);
            let _ = writeln!(out, "{}{:>10} {:>10}   {slower}", cells(choice), time(median), time(best));
        }
        for (choice, why) in &self.refused {
            let _ = writeln!(out, "{} discarded: {}: {}", cells(choice), why.code, why.message);
        }
        let (best, _) = &self.measured[0];
        let flags: Vec<String> = words(&self.axes, best).split(' ').map(|w| format!("-D {w}")).collect();
        let _ = writeln!(out, "best: {}", flags.join(" "));
        match self.source(best) {
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
            .map(|(choice, t)| {
                json!({"values": values(choice), "launches": t.len(), "min_ms": ms(percentile(t, 0.0)),
                       "median_ms": ms(percentile(t, 0.5)), "p99_ms": ms(percentile(t, 0.99))})
            })
            .collect();
        let refused: Vec<Value> = (self.refused.iter())
            .map(|(choice, why)| json!({"values": values(choice), "code": why.code.as_str(), "message": why.message}))
            .collect();
        let report = json!({
            "kernel": self.item.name.name.as_str(), "backend": self.on.backend.name(),
            "target": self.session.target.name.as_str(), "threads": self.on.host_threads(),
            "best": values(&self.measured[0].0), "measured": measured, "discarded": refused,
        });
        format!("{report}\n")
    }
}
