//! `ptoc bench`: a kernel launched again and again by its target's backend, and held against what the machine can do
//! whose time a launch takes: this host, or its device.

mod limits;
mod report;
mod sample;
mod tune;

use super::{Report, show};
use crate::args::BenchArgs;
use crate::io::Io;
use crate::{DONE, ERRORS};
use limits::Limits;
use ptoc_diagnostics::{Diagnostic, Span, codes, plural};
use ptoc_driver::backend::{self, BackendRef, Timed};
use ptoc_driver::launch::{Arrays, CompiledPlan, Plan, open_arrays};
use ptoc_driver::session::{CompilationUnit, Failed, Session};
use ptoc_ir::loops::work::{self, OpCount, Unknown};
use ptoc_tensor::Tensor;
use report::{Measured, Part};
use sample::{Rehearsal, Sample};
use std::time::Duration;

/// Statements of loops that are walked to count a launch's operations: about a second.
const FUEL: u64 = 50_000_000;

/// Measures a kernel, or all its configurations, and reports.
pub fn bench(args: &BenchArgs, io: &mut Io<'_>) -> u8 {
    let (mut session, mut report) = match Report::begin(&args.compile, io) {
        Ok(begun) => begun,
        Err(status) => return status,
    };
    session.vectors = args.vectors;
    session.exact = args.exact;
    let backend = match backend::choose(&session.target, args.backend) {
        Ok(backend) => backend,
        Err(d) => {
            show(*d, io, args.compile.message_format);
            return ERRORS;
        }
    };
    let Some(timed) = backend.capabilities().timed else {
        let what = if args.backend.is_some() { backend.name() } else { &session.target.name };
        let message = format!("`ptoc bench` measures machine code, and {what} has none");
        let d = Diagnostic::global(codes::BACKEND_TARGET, message)
            .with_help("`ptoc run --stats` shows the cycles of a run on units in memory, `--html` where they went");
        show(d, io, args.compile.message_format);
        return ERRORS;
    };
    let on = Benched { backend, timed, threads: threads(args) };
    // Everything that is wrong is among the diagnostics.
    let text = match args.tune {
        true => tune::tune(args, &on, &mut session),
        false => one(args, &on, &mut session, &mut report, io),
    };
    report.flush(&mut session, io);
    match text {
        Ok(text) if report.status() == DONE => io.print(&text),
        _ => {}
    }
    report.times(&session, io);
    report.status()
}

/// What is measured on.
struct Benched {
    backend: BackendRef,
    timed: Timed,
    /// Threads of this host.
    threads: usize,
}

impl Benched {
    /// The threads, if a launch is made by them.
    fn host_threads(&self) -> Option<usize> {
        (self.timed == Timed::Host).then_some(self.threads)
    }

    /// What the machine of the launches can do at most.
    fn limits(&self, bytes: usize, exact: bool) -> Option<Limits> {
        match self.timed {
            Timed::Host => Some(Limits::measure(bytes, self.threads, exact)),
            Timed::Device => self.backend.device_limits(bytes).map(Limits::of_device),
        }
    }

    /// `scale on cpu (a2a3)`
    fn head(&self, kernel: &str, target: &str) -> String {
        format!("{kernel} on {} ({target})", self.backend.name())
    }

    /// `, 2 threads`, if there are such.
    fn tail(&self) -> String {
        self.host_threads().map(|n| format!(", {}", plural(n, "thread"))).unwrap_or_default()
    }
}

/// Threads of the machine that `--threads` means.
fn threads(args: &BenchArgs) -> usize {
    if args.threads == 0 { ptoc_exec::Pool::default_threads() } else { args.threads }
}

/// Measures the kernel with the definitions that were given.
fn one(
    args: &BenchArgs,
    on: &Benched,
    session: &mut Session,
    report: &mut Report,
    io: &mut Io<'_>,
) -> Result<String, Failed> {
    let (unit, mut arrays) = load(args, session)?;
    let entry = unit.entry(args.kernel.as_deref(), "bench").or_else(|d| session.fail(*d))?;
    let plan = Plan::new(session, &unit, &entry, &arrays, true)?;
    let compiled = CompiledPlan::new(session, &plan, on.backend)?;
    let mut compile: Vec<(String, Duration)> = Vec::new();
    for phase in session.clock.phases.iter().filter(|p| !p.part && p.name != "read arrays") {
        match compile.iter_mut().find(|(name, _)| *name == phase.name) {
            Some((_, length)) => *length += phase.length,
            None => compile.push((phase.name.clone(), phase.length)),
        }
    }
    let mut tensors = inputs(args, session, &plan, &mut arrays)?;
    // Warnings come before the wait.
    report.flush(session, io);
    let mut rehearsal = Rehearsal::new(session, &compiled, &tensors, on.threads)?;
    let bytes = bytes(&plan);
    let measure = || on.limits(bytes, args.exact);
    let before = measure();
    let sample = rehearsal.launch_for(session, &mut tensors, Duration::from_secs_f64(args.seconds))?;
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
        work: work(&plan),
        bytes: bytes as u64,
        limits,
    };
    Ok(if args.json { measured.json(on) } else { measured.text(on) })
}

/// The file, its kernel checked against the definitions, and the arrays that are given.
fn load(args: &BenchArgs, session: &mut Session) -> Result<(CompilationUnit, Arrays), Failed> {
    let unit = session.load_code(&args.file)?;
    let entry = match unit.entry(args.kernel.as_deref(), "bench") {
        Ok(entry) => entry,
        Err(d) => return session.fail(*d),
    };
    session.check_definitions(&[entry], &unit);
    let arrays = open_arrays(session, &entry, "--in", &args.input);
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    Ok((unit, arrays?))
}

fn inputs(args: &BenchArgs, session: &mut Session, plan: &Plan, arrays: &mut Arrays) -> Result<Vec<Tensor>, Failed> {
    let tensors = plan.tensors(session, arrays, args.random)?;
    plan.check_inputs(session, &tensors)?;
    Ok(tensors)
}

/// Bytes of the arguments, those that are read and written twice.
fn bytes(plan: &Plan) -> usize {
    let size = |a: &ptoc_driver::launch::Argument| a.shape.iter().product::<usize>().saturating_mul(a.dtype.size());
    let uses = |a: &ptoc_driver::launch::Argument| usize::from(a.is_input()) + usize::from(a.is_output());
    plan.arguments.iter().map(|a| size(a).saturating_mul(uses(a))).fold(0, usize::saturating_add)
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

/// Operations of all launches.
fn work(plan: &Plan) -> Result<OpCount, Unknown> {
    let mut total = OpCount::default();
    for step in &plan.steps {
        let Some(module) = &step.module else { return Err(Unknown::Data) };
        let scalars = step.scalars.iter().map(|&bits| bits as i64);
        let params: Vec<i64> = step.dims.iter().copied().chain(scalars).collect();
        total += work::work(module, &params, FUEL)?;
    }
    Ok(total)
}
