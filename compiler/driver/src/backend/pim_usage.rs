//! What launches on units in lock step leave unused, with the change that mends it: other numbers for the kernel's
//! constants, or no places, each tried on the kernel before it is proposed.

use crate::launch::{Plan, PlannedLaunch};
use crate::repair::KernelSource;
use crate::session::{CompilationUnit, RepairOrigin, Session};
use ptoc_checks::capacity::{FixContext, Parameter};
use ptoc_diagnostics::{Diagnostic, codes, plural};
use ptoc_ir::tile::Kernel;
use ptoc_pim::hbm::usage::{ThinBursts, Usage};

/// Commands' clocks of a launch up to which other ways to write it are tried: beyond that each takes too long.
const TRIED: u64 = 1 << 21;

/// Clocks of a launch that a change must save to be told: as many as some two changes of the units' modes, with the
/// commands around them, take.
const GAIN: u64 = 1000;

/// A way is better if it takes less than nine tenths of the clocks, and saves some.
fn better(new: &Usage, old: &Usage) -> bool {
    10 * new.clocks < 9 * old.clocks && new.clocks + GAIN <= old.clocks
}

/// Of the launches that have this usage, what could be better.
pub(super) fn advice(
    session: &mut Session,
    unit: &CompilationUnit,
    plan: &Plan,
    usage: &[(usize, Usage)],
) -> Vec<Diagnostic> {
    let mut out: Vec<Diagnostic> = Vec::new();
    for (number, usage) in usage {
        let Some(step) = plan.steps.get(*number) else { continue };
        out.extend(usage.thin.iter().map(|thin| thin_bursts(step, thin)));
        let idle = usage.filled() < 0.75;
        let switches = usage.openings >= 2 * usage.rows.max(4) || usage.turns > 2 * usage.least_turns.max(4);
        if !(idle || switches) || usage.clocks > TRIED {
            continue;
        }
        let Some(found) = best(session, unit, step, usage) else { continue };
        out.push(found.told(step, usage));
    }
    // A kernel that is launched several times is told once.
    let mut told: Vec<Diagnostic> = Vec::new();
    for d in out {
        if !told.iter().any(|t| (t.code, t.span, &t.message) == (d.code, d.span, &d.message)) {
            told.push(d);
        }
    }
    told
}

/// A way that is better.
struct Found {
    /// What to write.
    change: String,
    usage: Usage,
}

impl Found {
    fn told(&self, step: &PlannedLaunch, old: &Usage) -> Diagnostic {
        let name = &step.kernel.name;
        let new = &self.usage;
        let help = format!(
            "{}: about {} clocks of column commands and rows in place of {} (tried; {} are saved, and less than {GAIN} \
             are not told)",
            self.change,
            new.clocks,
            old.clocks,
            old.clocks - new.clocks
        );
        if new.filled() > old.filled() {
            let message = match old.busy < old.units {
                true => format!("`{name}` works on {} of {} units", old.busy, old.units),
                false => format!("units wait for {:.0} % of `{name}`", 100.0 * (1.0 - old.filled())),
            };
            let most = match old.rounds {
                1 => "a unit has one of them at most".to_owned(),
                n => format!("a unit has {n} of them at most"),
            };
            let note = format!("the grid has {}, and {most}", plural(old.blocks as usize, "block"));
            let d = Diagnostic::warning(codes::IDLE_UNITS, step.kernel.span, message).with_note(note);
            return d
                .with_note("a launch takes as long as the unit with most blocks")
                .with_help(format!("{help}, {} of {} units", new.busy, new.units));
        }
        // What is told is what the change mends.
        let message = if old.openings > old.rows && old.openings > new.openings {
            format!("`{name}` opens rows {} times, of which {} are different", old.openings, old.rows)
        } else {
            format!("`{name}` turns from reads to writes {} times", old.turns)
        };
        Diagnostic::warning(codes::ROW_SWITCHES, step.kernel.span, message)
            .with_note(
                "a row that is opened takes tRP and tRCD, and a turn waits for the data, as long as several steps",
            )
            .with_help(format!("{help}, {} openings and {} turns", new.openings, new.turns))
    }
}

/// The best of what is tried, if it is better.
fn best(session: &mut Session, unit: &CompilationUnit, step: &PlannedLaunch, old: &Usage) -> Option<Found> {
    let (item, bindings) = session.origins.get(step.origin?)?.clone();
    let (item, bindings) = (&item, &bindings);
    let origin = RepairOrigin { unit, kernel: *item, bindings };
    let mut all: Vec<Found> = Vec::new();
    if let Some(kernel) = ptoc_pim::without_places(&step.kernel) {
        let change = "without `at` and `on`, by which tensors and blocks have places".to_owned();
        all.extend(used(session, step, &kernel).map(|usage| Found { change, usage }));
    }
    let source = KernelSource { sources: &session.sources, modules: &unit.modules, kernel: *item, bindings };
    for parameter in source.parameters() {
        for value in values(&parameter) {
            let source = KernelSource { sources: &session.sources, modules: &unit.modules, kernel: *item, bindings };
            let Some(kernel) = source.elaborate(Some((&parameter, value)), &session.target) else { continue };
            let told = std::mem::take(&mut session.diagnostics);
            let prepared = session.prepare(kernel, &step.debug, &origin);
            session.diagnostics = told;
            let Some(prepared) = prepared else { continue };
            let change = format!("`{} = {value}`", parameter.name);
            all.extend(used(session, step, &prepared.placed.kernel).map(|usage| Found { change, usage }));
        }
    }
    all.into_iter().min_by_key(|f| f.usage.clocks).filter(|f| better(&f.usage, old))
}

/// Numbers that are tried: halves, and doubles as often.
fn values(parameter: &Parameter) -> Vec<i64> {
    let doubles = (1..=4).filter_map(|n| parameter.value.checked_mul(1 << n)).filter(|n| *n <= 1 << 14);
    parameter.candidates.iter().copied().chain(doubles).collect()
}

/// What a launch of this kernel in place of the step's would use.
fn used(session: &Session, step: &PlannedLaunch, kernel: &Kernel) -> Option<Usage> {
    let scalars: Vec<Option<u64>> = step.scalars.iter().map(|bits| Some(*bits)).collect();
    let values = ptoc_interp::prologue(kernel, &step.dims, &scalars).ok()?;
    ptoc_pim::usage(kernel, &values, &session.target)
}

fn thin_bursts(step: &PlannedLaunch, thin: &ThinBursts) -> Diagnostic {
    let ThinBursts { tensor, columns, lanes } = *thin;
    let tensor = step.kernel.tensors.values().nth(tensor as usize);
    let (name, span) = tensor.map_or(("", step.kernel.span), |t| (&t.name[..], t.span));
    let message = format!("rows of `{name}` have {columns} elements, and take bursts of {lanes} lanes");
    Diagnostic::warning(codes::IDLE_LANES, span, message)
        .with_label(format!("{} of {lanes} lanes compute nothing", lanes - columns))
        .with_note("a burst has 16 lanes of f16, and rows begin with a burst of their own")
        .with_help(
            "give rows a multiple of 16 elements; where the rows' order is no matter, make them one dimension, or the \
             last one the longer",
        )
}
