//! A table of problems and configurations: each is checked, compiled, verified, and then [measured](crate::measure), by
//! the clock in turns with the other configurations of its problem, or by the cycles of a simulation.

use crate::line::Line;
use crate::measure::Measure;
use crate::race::Laps;
use crate::recall;
use crate::sample::percentile;
use crate::setup::{Machine, Setup};
use crate::sweep::{Values, alike, combinations, same};
use crate::tune::{defaults, listed, nothing_to_tune};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_driver::launch::Tolerance;
use ptoc_driver::session::{CompilationUnit, EntryPoint, Failed, Session};
use ptoc_driver::tuning::TuningSlot;
use ptoc_ir::loops::work::OpCount;
use sha2::{Digest, Sha256};

/// What a table orders by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// The clock.
    Time,
    /// Cycles of the simulated device, or of the target's model of time: every run gives the same.
    Cycles,
}

/// How far it goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Depth {
    /// Cases are listed.
    Enumerate,
    /// Each is checked and compiled.
    Compile,
    /// Each is launched.
    Measure,
}

/// Names and values that are one case.
pub type Definitions = Vec<(String, String)>;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// Definitions with several values.
    pub axes: Vec<Values>,
    /// Whole configurations; none: what the axes say.
    pub configurations: Vec<Definitions>,
    /// `tune` lists that nothing else sets are axes too.
    pub tune: bool,
    /// Of `tune` lists every combination, however many there are.
    pub exhaustive: bool,
    /// What is stored of tuning is measured again.
    pub again: bool,
    /// How many times the cycles of the best a configuration may have by the target's model of time.
    pub margin: Option<f64>,
    /// What counts.
    pub by: By,
    /// How far.
    pub depth: Depth,
}

/// The configurations of a problem.
#[derive(Clone, Debug)]
pub struct Problem {
    /// What the configurations have in common.
    pub sizes: Definitions,
    /// The others.
    pub configurations: Vec<Definitions>,
}

/// The `tune` lists whose combinations are the configurations.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    /// How many values each has.
    pub lengths: Vec<usize>,
    /// The numbers of the values that the source has; 0 where it has another.
    pub start: Vec<usize>,
}

impl Lists {
    /// The number of a combination among all, the last list fastest.
    pub fn number(&self, choice: &[usize]) -> usize {
        choice.iter().zip(&self.lengths).fold(0, |at, (n, of)| at * of + n)
    }
}

impl Cases {
    /// The number of the configuration of a problem that the source has, if it is among them.
    pub(crate) fn default_of(&self, problem: &Problem) -> Option<usize> {
        let is_own = |(name, value): &(String, String)| {
            self.defaults.iter().any(|(known, own)| known == name && same(own, value))
        };
        problem.configurations.iter().position(|configuration| configuration.iter().all(is_own))
    }
}

/// All cases, problem by problem.
#[derive(Clone, Debug)]
pub struct Cases {
    /// What is tuned, if `tune` lists alone vary.
    pub(crate) lists: Option<Lists>,
    /// The kernel.
    pub kernel: String,
    /// The values that the source has of the parameters of the kernel.
    pub(crate) defaults: Definitions,
    /// Definitions that all cases have.
    pub fixed: Definitions,
    /// Names of the others, which are columns.
    pub names: Vec<String>,
    /// The problems.
    pub problems: Vec<Problem>,
}

/// Cases at most.
const MOST: usize = 1 << 20;

/// What became of a case.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was only listed.
    Listed,
    /// It compiles.
    Compiles,
    /// It was measured.
    Measured(Box<Figures>),
    /// It is the best of a problem that was tuned before.
    Stored {
        /// Seconds of a launch.
        median: f64,
        /// When.
        date: String,
    },
    /// It was not looked at.
    Skipped(&'static str),
    /// It was not.
    Rejected {
        /// `refused` by a check, `failed` in a launch, `wrong`: its results are.
        status: &'static str,
        /// Why.
        why: Box<Diagnostic>,
    },
}

/// The figures of a case.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Launches, by the clock.
    pub laps: Option<Laps>,
    /// Cycles.
    pub cycles: Option<u64>,
    /// Operations of a launch, where they can be counted.
    pub work: Option<OpCount>,
    /// Bytes of the arguments: of those that are read by data, what is found.
    pub bytes: u64,
    /// Of these, those that no launch does without.
    pub least_bytes: u64,
    /// `memory` or `arithmetic`: what bounds a launch.
    pub bound: Option<&'static str>,
    /// Seconds that the machine's limits allow at least.
    pub least: Option<f64>,
    /// Elements that were compared, and the largest error.
    pub right: Option<(usize, f64)>,
    /// No configuration of its problem is faster.
    pub fastest: bool,
}

impl Figures {
    /// The 0th, 50th and 90th percentile of the times, in seconds.
    pub fn times(&self) -> Option<[f64; 3]> {
        let laps = self.laps.as_ref()?;
        Some([0.0, 0.5, 0.9].map(|share| percentile(&laps.times, share).as_secs_f64()))
    }
}

/// A case with what became of it.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number of its problem.
    pub problem: usize,
    /// Values, in the order of the columns.
    pub values: Vec<String>,
    /// What became of it.
    pub outcome: Outcome,
}

/// All cases of a request: the session has the definitions of the first.
///
/// # Errors
/// What is wrong is among the diagnostics.
pub fn cases(setup: &Setup, request: &Request, session: &mut Session) -> Result<Cases, Failed> {
    let (unit, _) = setup.load(session)?;
    let entry = unit.entry(setup.kernel.as_deref(), setup.command).or_else(|d| session.fail(*d))?;
    let mut axes = request.axes.clone();
    if let Some((name, _)) = request
        .configurations
        .iter()
        .flatten()
        .find(|(name, _)| axes.iter().any(|a| a.name == *name) || setup.define.iter().any(|(n, _)| n == name))
    {
        let message = format!("`-D {name}` is given, and the file of configurations sets it too");
        return session.fail(Diagnostic::global(codes::DEFINED_TWICE, message).with_help("leave one of them out"));
    }
    let mut lists = None;
    if request.tune {
        let taken = |name: &str| {
            axes.iter().any(|a| a.name == name)
                || setup.define.iter().any(|(n, _)| n == name)
                || request.configurations.iter().flatten().any(|(n, _)| n == name)
        };
        let more = listed(session, &unit, &entry).into_iter().filter(|(v, _)| !taken(&v.name));
        let (more, start): (Vec<Values>, Vec<Option<usize>>) = more.unzip();
        if more.is_empty() {
            return session.fail(nothing_to_tune(entry.item));
        }
        let others = axes.iter().any(|a| is_constant(&unit, &entry, &a.name)) || !request.configurations.is_empty();
        lists = (!others).then(|| Lists {
            lengths: more.iter().map(|v| v.values.len()).collect(),
            start: start.into_iter().map(Option::unwrap_or_default).collect(),
        });
        axes.extend(more);
    }
    let all = axes.iter().map(|a| a.values.len()).chain([request.configurations.len().max(1)]);
    let all = all.fold(1usize, usize::saturating_mul);
    if all > MOST {
        let message = format!("there are {all} cases, and at most {MOST} are tried");
        let d = Diagnostic::global(codes::TOO_MANY_CONFIGURATIONS, message);
        return session.fail(d.with_help("give fewer values: a range may have a larger step, `FIRST:LAST:STEP`"));
    }
    let problems = problems(&unit, &entry, &axes, &request.configurations);
    let mut names: Vec<String> = Vec::new();
    for (name, _) in problems.iter().take(1).flat_map(|p| p.sizes.iter().chain(p.configurations.iter().flatten())) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let (kernel, defaults) = (entry.item.name.name.to_string(), defaults(session, &unit, &entry));
    Ok(Cases { lists, kernel, defaults, fixed: setup.define.clone(), names, problems })
}

/// The cases of axes and of whole configurations: what no parameter of the kernel takes is the problem.
fn problems(
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    axes: &[Values],
    configurations: &[Definitions],
) -> Vec<Problem> {
    let (configuring, sizes): (Vec<Values>, Vec<Values>) =
        axes.iter().cloned().partition(|a| is_constant(unit, entry, &a.name));
    let (sizes, configuring) = (combinations(&sizes), combinations(&configuring));
    let none = [Definitions::new()];
    let rows = if configurations.is_empty() { &none[..] } else { configurations };
    let mut out: Vec<Problem> = Vec::new();
    for sizes in &sizes {
        for more in &configuring {
            for row in rows {
                let (own, open): (Definitions, Definitions) =
                    row.iter().cloned().partition(|(name, _)| is_constant(unit, entry, name));
                let sizes: Definitions = sizes.iter().cloned().chain(open).collect();
                let number = out.iter().position(|p| alike(&p.sizes, &sizes)).unwrap_or_else(|| {
                    out.push(Problem { sizes, configurations: Vec::new() });
                    out.len() - 1
                });
                let configuration: Definitions = more.iter().cloned().chain(own).collect();
                if !out[number].configurations.iter().any(|known| alike(known, &configuration)) {
                    out[number].configurations.push(configuration);
                }
            }
        }
    }
    out
}

impl Problem {
    /// The values of a configuration, in the order of the columns.
    pub fn values(&self, names: &[String], configuration: &Definitions) -> Vec<String> {
        let value = |name: &String| {
            let all = self.sizes.iter().chain(configuration.iter());
            all.rev().find(|(n, _)| n == name).map(|(_, v)| v.clone()).unwrap_or_default()
        };
        names.iter().map(value).collect()
    }

    /// The rows of all configurations, as they are listed.
    pub fn listed(&self, number: usize, names: &[String]) -> Vec<Row> {
        let row = |c| Row { problem: number, values: self.values(names, c), outcome: Outcome::Listed };
        self.configurations.iter().map(row).collect()
    }
}

/// A digest of the sources, and of all else that rows of one table have in common: rows with another one are of another
/// program.
pub fn digest(setup: &Setup, on: &Machine, session: &Session) -> String {
    let mut hash = Sha256::new();
    for path in session.read.iter().chain(setup.input.iter().chain(&setup.expect).map(|(_, path)| path)) {
        hash.update(std::fs::read(path).unwrap_or_default());
    }
    let arrays: Vec<&String> = setup.input.iter().chain(&setup.expect).map(|(name, _)| name).collect();
    let rest = (&setup.define, arrays, setup.random, setup.vectors, setup.exact, on.threads, setup.verify);
    hash.update(format!("{rest:?}"));
    // Cycles without the writing of weights are other cycles.
    if !setup.resident.is_empty() {
        hash.update(format!("{:?}", setup.resident));
    }
    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a name is a parameter of the kernel, or of what a program launches, that only the compilation knows.
fn is_constant(unit: &CompilationUnit, entry: &EntryPoint<'_>, name: &str) -> bool {
    entry.static_params(unit).iter().any(|(known, _)| **known == *name)
}

/// The rows of a problem.
///
/// # Errors
/// What has nothing to do with a case: it is among the diagnostics.
pub fn rows(
    setup: &Setup,
    on: &Machine,
    request: &Request,
    cases: &Cases,
    number: usize,
    session: &mut Session,
) -> Result<Vec<Row>, Failed> {
    let problem = &cases.problems[number];
    let mut rows = problem.listed(number, &cases.names);
    if request.depth == Depth::Enumerate {
        return Ok(rows);
    }
    // What is stored was compared with no array.
    let tunes = cases.lists.is_some() && setup.expect.is_empty();
    let slot = match tunes && request.by == By::Time && request.depth == Depth::Measure {
        true => place(setup, on, problem, session)?,
        false => None,
    };
    let stored = slot.as_ref().filter(|_| !request.again).and_then(|slot| stored(slot, problem, setup.verify));
    let outcomes = match stored {
        Some(outcomes) => outcomes,
        None => {
            let mut measure = Measure::new(setup, on, request, (problem, cases.default_of(problem)));
            measure.all(cases.lists.as_ref().filter(|_| request.tune && !request.exhaustive), session)?;
            let outcomes = measure.outcomes;
            if let Some(slot) = &slot {
                keep(slot, setup.verify, (problem, cases.default_of(problem)), &outcomes, session);
            }
            outcomes
        }
    };
    rows.iter_mut().zip(outcomes).for_each(|(row, outcome)| row.outcome = outcome);
    Ok(rows)
}

/// The rows of a problem of which some had failed: these are tried again, and the others stay. Where one is measured
/// now, all are, since the fastest of a problem is found in turns.
///
/// # Errors
/// As for [`rows`].
pub fn retried(
    setup: &Setup,
    on: &Machine,
    request: &Request,
    (cases, number): (&Cases, usize),
    mut kept: Vec<Line>,
    session: &mut Session,
) -> Result<Vec<Line>, Failed> {
    let Problem { sizes, configurations } = &cases.problems[number];
    let failed: Vec<usize> = (0..kept.len()).filter(|n| kept[*n].status() == "failed").collect();
    let configurations = failed.iter().map(|n| configurations[*n].clone()).collect();
    let some = Cases {
        lists: None,
        kernel: cases.kernel.clone(),
        defaults: cases.defaults.clone(),
        fixed: cases.fixed.clone(),
        names: cases.names.clone(),
        problems: vec![Problem { sizes: sizes.clone(), configurations }],
    };
    let again = rows(setup, on, request, &some, 0, session)?;
    if again.iter().any(|row| matches!(row.outcome, Outcome::Measured(_))) {
        let all = rows(setup, on, request, cases, number, session)?;
        return Ok(all.iter().map(Line::from).collect());
    }
    for (n, row) in failed.into_iter().zip(&again) {
        kept[n] = Line::from(&Row { problem: number, ..row.clone() });
    }
    Ok(kept)
}

/// Where results for the sizes of a problem are stored, if they are.
fn place(setup: &Setup, on: &Machine, problem: &Problem, session: &mut Session) -> Result<Option<TuningSlot>, Failed> {
    let mut own = setup.session(&problem.sizes).or_else(|d| session.fail(*d))?;
    let made = setup.load(&mut own).and_then(|(unit, arrays)| {
        let entry = unit.entry(setup.kernel.as_deref(), setup.command).or_else(|d| own.fail(*d))?;
        TuningSlot::of(&mut own, (&unit, &entry), &arrays, (on.backend, on.threads))
    });
    // What is wrong with the sizes, the row says.
    Ok(made.unwrap_or_default())
}

/// What is stored for a problem: its best, and all others are skipped.
fn stored(slot: &TuningSlot, problem: &Problem, tolerance: Option<Tolerance>) -> Option<Vec<Outcome>> {
    // What failed before would be skipped, and a table with a mistake would be green.
    let result = slot.stored(tolerance).filter(|result| result.failed == Some(0))?;
    let is = |configuration: &Definitions| {
        let best = |name: &String, value: &String| result.best.get(name).is_some_and(|best| same(best, value));
        configuration.len() == result.best.len() && configuration.iter().all(|(name, value)| best(name, value))
    };
    let best = problem.configurations.iter().position(is)?;
    let outcome = |n| match n == best {
        true => Outcome::Stored { median: result.median, date: result.date() },
        false => Outcome::Skipped("the problem was tuned before; `--retune` measures it"),
    };
    Some((0..problem.configurations.len()).map(outcome).collect())
}

/// Stores the fastest of a problem: the source's own values if they are among those that tie.
fn keep(
    slot: &TuningSlot,
    tolerance: Option<Tolerance>,
    (problem, default): (&Problem, Option<usize>),
    outcomes: &[Outcome],
    session: &mut Session,
) {
    let fastest = |n: &usize| matches!(&outcomes[*n], Outcome::Measured(figures) if figures.fastest);
    let best = default.into_iter().chain(0..outcomes.len()).find(fastest);
    let Some((best, Outcome::Measured(figures))) = best.map(|n| (n, &outcomes[n])) else { return };
    let is_failed = |o: &&Outcome| matches!(o, Outcome::Rejected { status: "failed" | "wrong", .. });
    let failed = outcomes.iter().filter(is_failed).count();
    if let Some(laps) = &figures.laps {
        recall::keep(slot, session, problem.configurations[best].clone(), (laps.median(), tolerance, failed));
    }
}

/// What is wrong with all cases alike, and so with none in particular: it is told once. Cases of sizes come first.
pub fn mistake(setup: &Setup, cases: &Cases, session: &mut Session) -> Option<Diagnostic> {
    let all: usize = cases.problems.iter().map(|p| p.configurations.len()).sum();
    let mut first: Option<Diagnostic> = None;
    for problem in &cases.problems {
        for configuration in &problem.configurations {
            let definitions: Definitions = problem.sizes.iter().chain(configuration).cloned().collect();
            let arrays = setup.given(session).ok()?;
            let why = *setup.plan(&definitions, &arrays).err()?;
            match &first {
                Some(first) if (first.code, &first.message) != (why.code, &why.message) => return None,
                Some(_) => {}
                None => first = Some(why),
            }
        }
    }
    let first = first.filter(|_| all > 1)?;
    Some(first.with_note(format!("so it is with all {all} cases")))
}
