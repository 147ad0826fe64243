//! `--tune`: the values that the `tune` lists of a kernel name, or of the kernels that a program launches.
//!
//! What the target's checks refuse is discarded before any code is generated, and so is what its model of time leaves
//! no hope for; the others are compiled, and launched in turns, so that a disturbance of the machine meets all of them.
//! Where there are too many combinations to launch all, a [search](crate::search) chooses.

use crate::contest::Contest;
use crate::format::flag;
use crate::model::Model;
use crate::race::Laps;
use crate::recall;
use crate::search::{ALL, Choice, Found, descend};
use crate::setup::{Machine, Setup};
use crate::sweep::{Values, same};
use crate::tuned::Tuned;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_driver::session::{CompilationUnit, EntryPoint, Failed, Session};
use ptoc_driver::tuning::TuningSlot;
use ptoc_syntax::ast::{KernelItem, StaticKind, StaticParam};

/// Configurations at most that are all tried, where that is asked for.
pub(crate) const MOST: usize = 1024;

/// Configurations at most that meet in the last race of a search.
const LAST: usize = 8;

/// How to tune.
#[derive(Clone, Copy, Debug)]
pub struct TuneOptions {
    /// The report is JSON.
    pub json: bool,
    /// What is stored is measured again.
    pub again: bool,
    /// Every combination is tried, however many there are.
    pub exhaustive: bool,
    /// How many times the cycles of the best a configuration may have by the target's model of time.
    pub margin: Option<f64>,
}

/// A parameter with its candidates, as they are written.
pub(crate) struct TuneAxis<'u> {
    /// What sets it: `BM`, or `scale.BM` of a kernel that a program launches.
    pub name: String,
    pub param: &'u StaticParam,
    pub values: Vec<String>,
}

/// Measures configurations, and reports, as text or as JSON. What is stored for the same text, sizes and machine is not
/// measured, unless that is asked for; what was measured is stored.
///
/// # Errors
/// What is wrong is among the diagnostics.
pub fn tune(setup: &Setup, on: &Machine, session: &mut Session, options: TuneOptions) -> Result<String, Failed> {
    let (unit, arrays) = setup.load(session)?;
    let entry = unit.entry(setup.kernel.as_deref(), setup.command).or_else(|d| session.fail(*d))?;
    let axes = axes(session, &unit, &entry)?;
    let all = axes.iter().map(|a| a.values.len()).fold(1usize, usize::saturating_mul);
    if options.exhaustive && all > MOST {
        return session.fail(too_many(entry.item, &axes, all));
    }
    let slot = TuningSlot::of(session, (&unit, &entry), &arrays, (on.backend, on.threads))?;
    let known = slot.as_ref().filter(|_| !options.again).and_then(|slot| recall::recall(slot, &axes, setup.verify));
    if let Some(stored) = known {
        return Ok(if options.json { recall::json(on, &stored) } else { recall::text(on, &stored) });
    }
    let model = Model::new(options.margin, session);
    let of = |choice: &Choice| definitions(&axes, choice);
    let mut contest = Contest::new(setup, on, &of, model);
    let (searched, equal) = match options.exhaustive || all <= ALL {
        true => (None, contest.race_all(session, &axes)?),
        false => contest.search(session, &axes)?,
    };
    let Contest { laps, cycles, refused, stopped, failed, .. } = contest;
    // What is wrong with the machine, or with the arrays, is no matter of configurations.
    if let (true, Some(why)) = (laps.is_empty(), stopped) {
        return session.fail(why);
    }
    let refused: Vec<(Choice, Diagnostic)> = refused.into_iter().collect();
    if laps.is_empty() {
        return session.fail(nothing_fits(entry.item, &axes, refused));
    }
    let verified = setup.verify.is_some() && !entry.item.ensures.is_empty();
    let default = equal.iter().find(|choice| is_default(session, &axes, choice));
    let best = default.or(equal.first()).cloned().unwrap_or_default();
    let mut measured: Vec<(Choice, Laps)> = laps.into_iter().collect();
    measured.sort_by(|a, b| a.1.median().total_cmp(&b.1.median()));
    if let (Some(slot), Some((_, laps))) = (&slot, measured.iter().find(|(choice, _)| *choice == best)) {
        recall::keep(slot, session, definitions(&axes, &best), (laps.median(), setup.verify, failed));
    }
    let search = searched.map(|found| (found, all));
    let item = entry.item;
    let result =
        Tuned { on, session, unit: &unit, item, axes, search, measured, cycles, equal, verified, best, refused };
    Ok(if options.json { result.json() } else { result.text() })
}

impl Contest<'_> {
    /// Races all combinations: those that none is faster than.
    fn race_all(&mut self, session: &mut Session, axes: &[TuneAxis<'_>]) -> Result<Vec<Choice>, Failed> {
        let all = choices(axes);
        let best = self.race(session, &all, default_choice(session, axes).as_ref())?;
        Ok(best.into_iter().map(|n| all[n].clone()).collect())
    }

    /// Searches, and races what the search has come to.
    fn search(&mut self, session: &mut Session, axes: &[TuneAxis<'_>]) -> Result<(Option<Found>, Vec<Choice>), Failed> {
        let lengths: Vec<usize> = axes.iter().map(|axis| axis.values.len()).collect();
        let start = axes.iter().map(|axis| default(session, axis).unwrap_or(0)).collect();
        let found = descend(&lengths, &start, &mut |line| self.race(session, line, None))?;
        let default = default_choice(session, axes);
        let last = self.last(&found.optima, default.as_ref());
        let best = self.race(session, &last, default.as_ref())?.into_iter().map(|n| last[n].clone()).collect();
        Ok((Some(found), best))
    }

    /// Who meets in the last race: the optima, the default, and the fastest of the others, which may be as fast.
    fn last(&self, optima: &[Choice], default: Option<&Choice>) -> Vec<Choice> {
        let mut all: Vec<(&Choice, f64)> = self.laps.iter().map(|(choice, laps)| (choice, laps.median())).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        let others = all.into_iter().map(|(choice, _)| choice).filter(|choice| !optima.contains(choice));
        let mut last: Vec<Choice> = optima.iter().chain(others).take(LAST.max(optima.len())).cloned().collect();
        last.extend(default.filter(|default| self.laps.contains_key(*default)).cloned());
        last.sort();
        last.dedup();
        last
    }
}

/// The number of the value that the source has.
fn default(session: &Session, axis: &TuneAxis<'_>) -> Option<usize> {
    let StaticKind::Const { default: Some(e), .. } = &axis.param.kind else { return None };
    let text = session.sources.slice(e.span);
    axis.values.iter().position(|value| same(value, text))
}

/// The choice that the source has, if it is one of the lists' values throughout.
fn default_choice(session: &Session, axes: &[TuneAxis<'_>]) -> Option<Choice> {
    axes.iter().map(|axis| default(session, axis)).collect()
}

/// Whether the choice is what the source has.
pub(crate) fn is_default(session: &Session, axes: &[TuneAxis<'_>], choice: &Choice) -> bool {
    axes.iter().zip(choice).all(|(axis, &n)| default(session, axis) == Some(n))
}

/// A choice as definitions.
pub(crate) fn definitions(axes: &[TuneAxis<'_>], choice: &Choice) -> Vec<(String, String)> {
    axes.iter().zip(choice).map(|(a, &n)| (a.name.clone(), a.values[n].clone())).collect()
}

/// The parameters that have candidates and no definition: those of the entry, and of what a program launches.
fn axes<'u>(
    session: &mut Session,
    unit: &'u CompilationUnit,
    entry: &EntryPoint<'u>,
) -> Result<Vec<TuneAxis<'u>>, Failed> {
    let params = entry.static_params(unit);
    let all = params.iter().map(|(name, param)| TuneAxis {
        name: name.to_string(),
        param,
        values: candidates(session, param),
    });
    let all: Vec<TuneAxis<'u>> = all.filter(|axis| !axis.values.is_empty()).collect();
    let first = all.first().map(|axis| (axis.name.clone(), axis.param.span));
    let is_open = |axis: &TuneAxis<'_>| !session.definitions.values.keys().any(|name| **name == *axis.name);
    let axes: Vec<TuneAxis<'u>> = all.into_iter().filter(is_open).collect();
    match (axes.is_empty(), first) {
        (false, _) => Ok(axes),
        (true, None) => session.fail(nothing_to_tune(entry.item)),
        (true, Some((first, span))) => {
            let name = &entry.item.name.name;
            let message =
                format!("there is nothing to tune: `-D` sets every parameter of `{name}` that has a `tune` list");
            let d = Diagnostic::error(codes::NOTHING_TO_TUNE, span, message).with_label("set by `-D`");
            session.fail(d.with_help(format!("leave out `-D {first}`")))
        }
    }
}

/// More combinations than are tried.
fn too_many(item: &KernelItem, axes: &[TuneAxis<'_>], all: usize) -> Diagnostic {
    let name = &item.name;
    let counts: Vec<String> = axes.iter().map(|a| format!("{} values of `{}`", a.values.len(), a.name)).collect();
    let message = format!("`{}` has {all} configurations, and at most {MOST} are tried", name.name);
    let d = Diagnostic::error(codes::TOO_MANY_CONFIGURATIONS, name.span, message).with_label("this kernel");
    d.with_note(format!("they are the product of {}", counts.join(" and ")))
        .with_help("leave out `--exhaustive`: a search tries some of them")
        .with_help(format!("fix one of them: `-D {}=..`", axes[0].name))
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

/// The `tune` lists of an entry, and of what it launches, with the values that the source has.
pub(crate) fn listed(
    session: &Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
) -> Vec<(Values, Option<usize>)> {
    let all = entry.static_params(unit).into_iter().map(|(name, param)| {
        let axis = TuneAxis { name: name.to_string(), param, values: candidates(session, param) };
        let default = default(session, &axis);
        (Values { name: axis.name, values: axis.values }, default)
    });
    all.filter(|(v, _)| !v.values.is_empty()).collect()
}

/// The values that the source has of the parameters of an entry, and of what it launches.
pub(crate) fn defaults(session: &Session, unit: &CompilationUnit, entry: &EntryPoint<'_>) -> Vec<(String, String)> {
    let value = |param: &StaticParam| match &param.kind {
        StaticKind::Const { default: Some(e), .. } | StaticKind::Type { default: Some(e) } => {
            Some(session.sources.slice(e.span).to_owned())
        }
        _ => None,
    };
    entry.static_params(unit).iter().filter_map(|(name, param)| Some((name.to_string(), value(param)?))).collect()
}

/// All combinations, the last axis fastest.
fn choices(axes: &[TuneAxis<'_>]) -> Vec<Choice> {
    axes.iter().fold(vec![Vec::new()], |all, axis| {
        let longer = |choice: &Choice, n| choice.iter().copied().chain([n]).collect();
        all.iter().flat_map(|choice| (0..axis.values.len()).map(move |n| longer(choice, n))).collect()
    })
}

/// `-D BM=64 -D BN=128`
pub(crate) fn flags(axes: &[TuneAxis<'_>], choice: &Choice) -> String {
    let flags = axes.iter().zip(choice).map(|(a, &n)| flag(&a.name, &a.values[n]));
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
