//! One kernel, launched again and again, and held against what its machine can do.

use crate::measured::{Measured, Part};
use crate::sample::{Rehearsal, Sample};
use crate::setup::{Machine, Setup, operations, work};
use crate::simulated::simulate;
use crate::traffic::Traffic;
use ptoc_diagnostics::Span;
use ptoc_driver::backend::Timed;
use ptoc_driver::launch::{CompiledPlan, Plan};
use ptoc_driver::session::{Failed, Session};
use std::time::Duration;

/// Measures the kernel with the definitions that were given; text, or JSON. `warn` shows what the session has found,
/// before the wait.
///
/// # Errors
/// What is wrong is among the diagnostics.
pub fn bench(
    setup: &Setup,
    on: &Machine,
    session: &mut Session,
    json: bool,
    warn: &mut dyn FnMut(&mut Session),
) -> Result<String, Failed> {
    let (unit, mut arrays) = setup.load(session)?;
    let entry = unit.entry(setup.kernel.as_deref(), setup.command).or_else(|d| session.fail(*d))?;
    let plan = Plan::new(session, &unit, &entry, &arrays, true)?;
    let compiled = CompiledPlan::new(session, &plan, on.backend)?;
    let compile = phases(session);
    let mut tensors = setup.inputs(session, &plan, &mut arrays)?;
    warn(session);
    if on.timed == Timed::Simulated {
        return simulate(setup, on, session, (&compiled, &tensors), (compile, json));
    }
    let mut rehearsal = Rehearsal::new(session, &compiled, &tensors, on.threads)?;
    let work = work(&plan, &tensors);
    let traffic = Traffic::of(&plan, work.as_deref().ok());
    let measure = || on.limits(traffic.moved as usize, setup.exact);
    let before = measure();
    let sample = rehearsal.launch_for(session, &mut tensors, Duration::from_secs_f64(setup.seconds))?;
    let limits = before.zip(measure()).map(|(before, after)| before.best(&after));
    let measured = Measured {
        name: plan.name.to_string(),
        target: session.target.name.to_string(),
        dims: plan.dims.iter().map(|(name, n)| (name.to_string(), *n)).collect(),
        blocks: plan.steps.iter().map(|s| s.blocks).sum(),
        launches: plan.steps.len(),
        code_bytes: compiled.code_bytes(),
        compile,
        parts: parts(session, &plan, &sample),
        around: sample.around / sample.times.len().max(1) as u32,
        times: sample.times,
        work: work.as_deref().map(operations).map_err(|why| *why),
        bytes: traffic.moved,
        least_bytes: traffic.least,
        limits,
    };
    Ok(if json { measured.json(on) } else { measured.text(on) })
}

/// The phases of a compilation, each with all of its time.
fn phases(session: &Session) -> Vec<(String, Duration)> {
    let mut compile: Vec<(String, Duration)> = Vec::new();
    for phase in session.clock.phases.iter().filter(|p| !p.part && p.name != "read arrays") {
        match compile.iter_mut().find(|(name, _)| *name == phase.name) {
            Some((_, length)) => *length += phase.length,
            None => compile.push((phase.name.clone(), phase.length)),
        }
    }
    compile
}

/// The launches of a program by their places in the source; iterations of a loop are together.
fn parts(session: &Session, plan: &Plan, sample: &Sample) -> Vec<Part> {
    let mut out: Vec<(Span, Part)> = Vec::new();
    let runs = sample.times.len().max(1) as u32;
    for (step, (sum, launches)) in plan.steps.iter().zip(&sample.steps).filter(|_| plan.program) {
        let time = *sum / runs;
        // Every run launches alike.
        let count = (launches / u64::from(runs)) as usize;
        if let Some((_, part)) = out.iter_mut().find(|(at, p)| *at == step.span && p.kernel == step.kernel.name) {
            part.count += count;
            part.time += time;
            continue;
        }
        let line = session.sources.position(step.span.file, step.span.start).line;
        out.push((step.span, Part { kernel: step.kernel.name.to_string(), line, count, time }));
    }
    out.into_iter().map(|(_, part)| part).collect()
}
