//! A table of problems and configurations: each is checked, compiled, verified, and then measured, by the clock in
//! turns with the other configurations of its problem, or by the cycles of a simulation.

use crate::race::{Entrant, Laps, fastest, race};
use crate::sample::{Rehearsal, percentile};
use crate::setup::{Machine, Setup, bytes, first_error, operations, tell};
use crate::sweep::{Values, alike, combinations};
use crate::tune::{listed, nothing_to_tune};
use crate::verify::{Rejected, checked};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_driver::launch::{Arrays, CompiledPlan, Plan, open_arrays};
use ptoc_driver::session::{EntryPoint, Failed, Session};
use ptoc_ir::loops::work::OpCount;
use ptoc_tensor::Tensor;
use sha2::{Digest, Sha256};
use std::time::Duration;

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

/// All cases, problem by problem.
#[derive(Clone, Debug)]
pub struct Cases {
    /// The kernel.
    pub kernel: String,
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
    /// Bytes of the arguments.
    pub bytes: u64,
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
    if request.tune {
        let taken = |name: &str| {
            axes.iter().any(|a| a.name == name)
                || setup.define.iter().any(|(n, _)| n == name)
                || request.configurations.iter().flatten().any(|(n, _)| n == name)
        };
        let more: Vec<Values> = listed(session, entry.item).into_iter().filter(|v| !taken(&v.name)).collect();
        if more.is_empty() {
            return session.fail(nothing_to_tune(entry.item));
        }
        axes.extend(more);
    }
    let all = axes.iter().map(|a| a.values.len()).chain([request.configurations.len().max(1)]);
    let all = all.fold(1usize, usize::saturating_mul);
    if all > MOST {
        let message = format!("there are {all} cases, and at most {MOST} are tried");
        let d = Diagnostic::global(codes::TOO_MANY_CONFIGURATIONS, message);
        return session.fail(d.with_help("give fewer values: a range may have a larger step, `FIRST:LAST:STEP`"));
    }
    let problems = problems(&entry, &axes, &request.configurations);
    let mut names: Vec<String> = Vec::new();
    for (name, _) in problems.iter().take(1).flat_map(|p| p.sizes.iter().chain(p.configurations.iter().flatten())) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    Ok(Cases { kernel: entry.item.name.name.to_string(), fixed: setup.define.clone(), names, problems })
}

/// The cases of axes and of whole configurations: what no parameter of the kernel takes is the problem.
fn problems(entry: &EntryPoint<'_>, axes: &[Values], configurations: &[Definitions]) -> Vec<Problem> {
    let (configuring, sizes): (Vec<Values>, Vec<Values>) =
        axes.iter().cloned().partition(|a| is_constant(entry, &a.name));
    let (sizes, configuring) = (combinations(&sizes), combinations(&configuring));
    let none = [Definitions::new()];
    let rows = if configurations.is_empty() { &none[..] } else { configurations };
    let mut out: Vec<Problem> = Vec::new();
    for sizes in &sizes {
        for more in &configuring {
            for row in rows {
                let (own, open): (Definitions, Definitions) =
                    row.iter().cloned().partition(|(name, _)| is_constant(entry, name));
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
    for path in session.read.iter().chain(setup.input.iter().map(|(_, path)| path)) {
        hash.update(std::fs::read(path).unwrap_or_default());
    }
    let arrays: Vec<&String> = setup.input.iter().map(|(name, _)| name).collect();
    let rest = (&setup.define, arrays, setup.random, setup.vectors, setup.exact, on.threads, setup.verify);
    hash.update(format!("{rest:?}"));
    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a name is a parameter of the kernel that only the compilation knows.
fn is_constant(entry: &EntryPoint<'_>, name: &str) -> bool {
    entry.item.statics.iter().any(|p| *p.name.name == *name)
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
    let mut outcomes: Vec<Outcome> = vec![Outcome::Listed; problem.configurations.len()];
    if request.depth > Depth::Enumerate {
        measure(setup, on, request, problem, session, &mut outcomes)?;
    }
    let mut rows = problem.listed(number, &cases.names);
    rows.iter_mut().zip(outcomes).for_each(|(row, outcome)| row.outcome = outcome);
    Ok(rows)
}

/// What is wrong with all cases alike, and so with none in particular: it is told once. Cases of sizes come first.
pub fn mistake(setup: &Setup, cases: &Cases, session: &mut Session) -> Option<Diagnostic> {
    let all: usize = cases.problems.iter().map(|p| p.configurations.len()).sum();
    let mut first: Option<Diagnostic> = None;
    for problem in &cases.problems {
        for configuration in &problem.configurations {
            let definitions: Definitions = problem.sizes.iter().chain(configuration).cloned().collect();
            let arrays = given(setup, session).ok()?;
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

/// What becomes of each configuration of a problem.
fn measure(
    setup: &Setup,
    on: &Machine,
    request: &Request,
    problem: &Problem,
    session: &mut Session,
    outcomes: &mut [Outcome],
) -> Result<(), Failed> {
    let refused = |why: Box<Diagnostic>| Outcome::Rejected { status: "refused", why };
    let mut planned: Vec<(usize, Session, Plan)> = Vec::new();
    for (n, configuration) in problem.configurations.iter().enumerate() {
        let definitions: Definitions = problem.sizes.iter().chain(configuration).cloned().collect();
        match given(setup, session).and_then(|arrays| setup.plan(&definitions, &arrays)) {
            Ok((mut own, plan)) => {
                tell(&mut own, session);
                planned.push((n, own, plan));
            }
            Err(why) => outcomes[n] = refused(why),
        }
    }
    let mut compiled: Vec<(usize, &mut Session, CompiledPlan<'_>)> = Vec::new();
    for (n, own, plan) in &mut planned {
        match CompiledPlan::new(own, plan, on.backend) {
            Ok(code) => {
                outcomes[*n] = Outcome::Compiles;
                compiled.push((*n, own, code));
            }
            Err(Failed) => outcomes[*n] = refused(Box::new(first_error(own))),
        }
    }
    if request.depth < Depth::Measure {
        return Ok(());
    }
    let mut arrays = ArraySets::default();
    let mut entrants: Vec<Entrant<'_, '_, '_>> = Vec::new();
    let mut ready: Vec<(usize, Figures)> = Vec::new();
    for (n, own, code) in &mut compiled {
        let of = match arrays.of(setup, own, code.plan()) {
            Ok(of) => of,
            Err(Failed) => {
                outcomes[*n] = refused(Box::new(first_error(own)));
                continue;
            }
        };
        let cycles = request.by == By::Cycles;
        let mut figures = match checked(own, code, &arrays.sets[of], on.threads, setup.verify, cycles) {
            Ok(checked) => Figures {
                cycles: checked.cycles().filter(|_| cycles),
                right: checked.right,
                bytes: bytes(code.plan()) as u64,
                ..Figures::default()
            },
            Err(rejected) => {
                let (status, why) = match rejected {
                    Rejected::Wrong(why) => ("wrong", why),
                    // It is no matter of cases that the machine is not there.
                    Rejected::Failed(why) if why.code == codes::GPU_UNAVAILABLE => return session.fail(*why),
                    Rejected::Failed(why) => ("failed", why),
                };
                outcomes[*n] = Outcome::Rejected { status, why };
                continue;
            }
        };
        if cycles {
            outcomes[*n] = Outcome::Measured(Box::new(figures));
            continue;
        }
        figures.work = operations(code.plan(), &arrays.sets[of]).ok();
        match Rehearsal::new(own, code, &arrays.sets[of], on.threads) {
            Ok(rehearsal) => {
                entrants.push(Entrant { session: own, rehearsal, arrays: of });
                ready.push((*n, figures));
            }
            Err(Failed) => {
                outcomes[*n] = Outcome::Rejected { status: "failed", why: Box::new(first_error(own)) };
            }
        }
    }
    if request.by == By::Cycles {
        fewest(outcomes);
        return Ok(());
    }
    let most = ready.iter().map(|(_, figures)| figures.bytes).max().unwrap_or(0) as usize;
    let limits = || on.limits(most, setup.exact);
    let before = if ready.is_empty() { None } else { limits() };
    let laps = match race(&mut entrants, &mut arrays.sets, Duration::from_secs_f64(setup.seconds), false) {
        Ok(laps) => laps,
        Err((_, why)) => return session.fail(*why),
    };
    let limits = before.and_then(|before| limits().map(|after| before.best(&after)));
    let best = fastest(&laps);
    for (at, ((n, mut figures), laps)) in ready.into_iter().zip(laps).enumerate() {
        figures.fastest = best.contains(&at);
        figures.least = limits.as_ref().zip(figures.work).map(|(limits, work)| limits.least(&work, figures.bytes));
        figures.laps = Some(laps);
        outcomes[n] = Outcome::Measured(Box::new(figures));
    }
    Ok(())
}

/// The arrays that are given, opened anew: a plan takes them.
fn given(setup: &Setup, session: &mut Session) -> Result<Arrays, Box<Diagnostic>> {
    let opened = session.load_code(&setup.file).and_then(|unit| {
        let entry = unit.entry(setup.kernel.as_deref(), setup.command).or_else(|d| session.fail(*d))?;
        open_arrays(session, &entry, "--in", &setup.input)
    });
    opened.map_err(|Failed| Box::new(first_error(session)))
}

/// Of all that were measured by cycles, those that take the fewest.
fn fewest(outcomes: &mut [Outcome]) {
    let cycles = |outcome: &Outcome| match outcome {
        Outcome::Measured(figures) => figures.cycles,
        _ => None,
    };
    let least = outcomes.iter().filter_map(cycles).min();
    for outcome in outcomes {
        if let Outcome::Measured(figures) = outcome {
            figures.fastest = figures.cycles.is_some() && figures.cycles == least;
        }
    }
}

/// Arrays of launches, shared by those whose arguments have the same types.
#[derive(Default)]
struct ArraySets {
    signatures: Vec<Vec<String>>,
    sets: Vec<Vec<Tensor>>,
}

impl ArraySets {
    /// The number of a plan's set.
    fn of(&mut self, setup: &Setup, session: &mut Session, plan: &Plan) -> Result<usize, Failed> {
        let signature: Vec<String> = plan.arguments.iter().map(|a| format!("{}{:?}", a.dtype, a.shape)).collect();
        if let Some(known) = self.signatures.iter().position(|s| *s == signature) {
            return Ok(known);
        }
        let mut arrays = given(setup, session).or_else(|d| session.fail(*d))?;
        let tensors = setup.inputs(session, plan, &mut arrays)?;
        self.signatures.push(signature);
        self.sets.push(tensors);
        Ok(self.sets.len() - 1)
    }
}
