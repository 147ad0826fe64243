//! `ptoc run`

use super::{Report, host_threads, show};
use crate::args::{MessageFormat, RunArgs};
use crate::io::Io;
use crate::{WRONG_CALL, commands::units};
use ptoc_diagnostics::{Diagnostic, SourceMap, codes, plural};
use ptoc_driver::backend::{self, BackendRef, Capabilities, pim};
use ptoc_driver::files::Outputs;
use ptoc_driver::launch::{
    Arrays, CompiledPlan, Keep, Plan, RunOptions, RunOutcome, Schedule, Timed, Verified, check_outputs, open_arrays,
    open_expected, verify,
};
use ptoc_driver::preview;
use ptoc_driver::session::{EntryPoint, Failed, Session};
use ptoc_driver::tuning::TuningUse;
use ptoc_isa::{ProcessingUnit, Target, UnitKind};
use ptoc_tensor::{Tensor, npy};
use ptoc_trace::Format;
use ptoc_views::pipes::{self, PipeRun};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Compiles a kernel, runs it, compares and shows or writes its results.
pub fn run(args: &RunArgs, io: &mut Io<'_>) -> u8 {
    let (mut session, mut report) = match Report::begin(&args.compile, &args.file, io) {
        Ok(begun) => begun,
        Err(status) => return status,
    };
    let backend = match choose(args, &session.target) {
        Ok(backend) => backend,
        Err(d) => {
            show(*d, io, args.compile.message_format);
            return WRONG_CALL;
        }
    };
    if args.html.is_some()
        && let Err(d) = has_page(backend, &session.target)
    {
        show(*d, io, args.compile.message_format);
        return WRONG_CALL;
    }
    if args.timing_only
        && let Err(d) = has_time_of_its_own(backend, &session.target)
    {
        show(*d, io, args.compile.message_format);
        return WRONG_CALL;
    }
    let Capabilities { sanitizer, watches, units, .. } = backend.capabilities();
    if !args.resident.is_empty() && !units {
        show(super::no_residents(backend, &session.target), io, args.compile.message_format);
        return WRONG_CALL;
    }
    if args.sanitize && !sanitizer && !watches {
        show(no_sanitizer(backend), io, args.compile.message_format);
        return WRONG_CALL;
    }
    session.select(backend);
    session.watched = watches || args.sanitize;
    session.vectors = args.vectors;
    session.exact = args.exact;
    session.resident = args.resident.clone();
    session.tuning = TuningUse::of(backend, host_threads(args.threads));
    // Everything that is wrong is among the diagnostics.
    let _ = Runner { args, backend, session: &mut session, report: &mut report, io }.run();
    report.flush(&mut session, io);
    report.times(&session, io);
    report.status()
}

impl RunArgs {
    /// What does not go together.
    pub(crate) fn wrong(&self) -> Option<&'static str> {
        if self.schedule.is_some() && !self.backend.is_some_and(|b| b.capabilities().pipes) {
            return Some("'--schedule' is for the pipes of the interpreter: add '--backend interp'");
        }
        let compared = self.verify || !self.expect.is_empty();
        if !compared && (self.rtol > 0.0 || self.atol > 0.0) {
            return Some("'--rtol' and '--atol' are of comparisons: add '--verify' or '--expect NAME=F.npy'");
        }
        None
    }
}

/// `--sanitize` for a backend that has no sanitizer.
pub(super) fn no_sanitizer(backend: BackendRef) -> Diagnostic {
    let message = format!("`--sanitize` watches machine code, and the backend is `{}`", backend.name());
    Diagnostic::global(codes::BACKEND_TARGET, message)
        .with_help("`--backend interp` runs the kernel for this target, and finds the same")
}

/// The backend that is asked for, or the target's first; the interpreter for who wants to look on.
fn choose(args: &RunArgs, target: &Target) -> Result<BackendRef, Box<Diagnostic>> {
    // A page of pipes has the interpreter's model of time.
    let pipes = args.html.is_some() && !target.has_units() && target.pipes.time.is_some();
    let looks_on = args.looks_on().or(pipes.then_some("--html"));
    match (args.backend, looks_on) {
        (Some(other), Some(option)) if other.left_out().is_none() && !other.capabilities().observed => {
            let name = other.name();
            let message = format!("`{option}` looks into the interpreter, and `--backend {name}` was asked for");
            let d = Diagnostic::global(codes::NEEDS_INTERPRETER, message);
            Err(d.with_help("leave `--backend` out, or write `--backend interp`").into())
        }
        (None, Some(_)) => Ok(backend::INTERP),
        (asked, _) => backend::choose(target, asked),
    }
}

/// Whether there is something to draw of a run on this backend.
fn has_page(backend: BackendRef, target: &Target) -> Result<(), Box<Diagnostic>> {
    let interpreted = backend.name() == backend::INTERP.name() && target.pipes.time.is_some();
    if backend.capabilities().units || interpreted && !target.has_units() {
        return Ok(());
    }
    let message = match target.has_units() {
        true => format!("`--html` writes of runs on units in memory, and the backend is `{}`", backend.name()),
        false => format!("`--html` draws a model of time, and target `{}` has none", target.name),
    };
    let help = match target.has_units() {
        true => "leave `--backend` out, or write `--backend pim`",
        false => {
            "targets with a model of time are those of `[pipes.time]` in spec/targets.md, such as a5; `ptoc mem \
            --html` shows a kernel's memories"
        }
    };
    Err(Diagnostic::global(codes::BACKEND_TARGET, message).with_help(help).into())
}

/// Whether the time of a run depends on no element: that of units that column commands step.
fn has_time_of_its_own(backend: BackendRef, target: &Target) -> Result<(), Box<Diagnostic>> {
    let stepped = |unit: &ProcessingUnit| matches!(unit.kind, UnitKind::HbmPim(_) | UnitKind::Aim(_));
    if backend.capabilities().units && target.unit.as_ref().is_some_and(stepped) {
        return Ok(());
    }
    let message = match backend.capabilities().units {
        true => format!("`--timing-only`: how long the units of `{}` take depends on what they sample", target.name),
        false => format!("`--timing-only` is for units in memory, and the backend is `{}`", backend.name()),
    };
    let help = match backend.capabilities().units {
        true => "give them elements: `--random SEED`, or `--in NAME=F.npy`",
        false => "`ptoc bench` measures by the clock; on a target with units in memory leave `--backend` out",
    };
    Err(Diagnostic::global(codes::BACKEND_TARGET, message).with_help(help).into())
}

struct Runner<'r, 'i> {
    args: &'r RunArgs,
    backend: BackendRef,
    session: &'r mut Session,
    report: &'r mut Report,
    io: &'r mut Io<'i>,
}

/// The files of a run, taken before it begins.
struct Files {
    outputs: Outputs,
    /// Number of each output among `outputs`, with its argument.
    arrays: Vec<(usize, String)>,
    trace: Option<usize>,
    html: Option<usize>,
}

impl Runner<'_, '_> {
    fn run(&mut self) -> Result<(), Failed> {
        let args = self.args;
        self.session.open.given = args.input.iter().map(|(name, _)| name.clone()).collect();
        let unit = self.session.load_code(&args.file)?;
        let entry = match unit.entry(args.kernel.as_deref(), "run") {
            Ok(entry) => entry,
            Err(d) => return self.session.fail(*d),
        };
        self.session.check_definitions(&[entry], &unit);
        // Both are checked before either stops: the mistakes are independent.
        let mut arrays = open_arrays(self.session, &entry, "--in", &args.input);
        let files = self.files(&entry);
        let expected = open_expected(
            self.session,
            &entry,
            "--expect",
            arrays.as_mut().unwrap_or(&mut Arrays::new()),
            &args.expect,
        );
        self.stop_on_errors()?;
        let (mut arrays, mut files, expected) = (arrays?, files?, expected?);
        let plan = Plan::new(self.session, &unit, &entry, &arrays, args.random.is_some() || args.timing_only)?;
        plan.check_expected(self.session, &expected)?;
        if args.verify && plan.specification.ensures.is_empty() {
            let word = entry.word();
            let message = format!("--verify: {word} `{}` has no `ensures`", plan.name);
            return self.session.fail(
                Diagnostic::error(codes::NOTHING_TO_VERIFY, entry.item.name.span, message)
                    .with_help("write one, or compare with an array: `--expect NAME=FILE.npy`"),
            );
        }
        // What is refused is refused before arrays are made.
        let compiled = match args.sanitize && self.backend.capabilities().sanitizer {
            true => CompiledPlan::sanitized(self.session, &plan, self.backend)?,
            false => CompiledPlan::new(self.session, &plan, self.backend)?,
        };
        let advice = compiled.advice(self.session, &unit);
        self.session.diagnostics.extend(advice);
        let mut tensors = match args.timing_only {
            true => Vec::new(),
            false => plan.tensors(self.session, &mut arrays, args.random.unwrap_or(0))?,
        };
        drop::<Arrays>(arrays);
        let expected = plan.read_expected(self.session, expected)?;
        if !args.timing_only {
            plan.check_inputs(self.session, &tensors)?;
        }
        // What the compiler has to say comes before what the kernel prints.
        if self.report.flush(self.session, self.io).errors > 0 {
            return Err(Failed);
        }
        let compile_ms = self.compile_ms();
        let before = if args.verify { tensors.clone() } else { Vec::new() };
        let schedule = Schedule {
            order: args.schedule,
            insert: args.schedule.is_some() || args.stats || args.html.is_some(),
            time: args.stats || args.json || args.trace.is_some() || args.html.is_some(),
        };
        let keep = Keep { trace: args.trace.is_some(), history: args.html.as_ref().map(|_| args.html_from) };
        let options = RunOptions { threads: args.threads, schedule, keep, rules: false, timing_only: args.timing_only };
        let outcome = match args.looks_on() {
            #[cfg(feature = "debugger")]
            Some(_) => super::debug::observed(args, self.session, self.io, (&unit, &plan, &compiled), &mut tensors)?,
            _ => {
                let io = &mut *self.io;
                compiled.run(self.session, &mut tensors, &options, &mut |line| io.note(line), None)?
            }
        };
        if outcome.stopped {
            return Ok(());
        }

        let mut verified = Vec::new();
        let mut comparison = Ok(());
        if args.verify {
            match verify(self.session, &plan, &before, &tensors, (args.rtol, args.atol).into()) {
                Ok(list) => verified = list,
                Err(failed) => comparison = Err(failed),
            }
        }
        let compared = plan.compare(self.session, &expected, &tensors, (args.rtol, args.atol).into());
        verified.extend(compared.0);
        comparison = comparison.and(compared.1);
        self.write(&plan, &mut files, &tensors, &outcome)?;
        let wrote: Vec<(String, String)> =
            args.output.iter().map(|(name, path)| (name.clone(), path.display().to_string())).collect();
        if let Err(d) = files.outputs.commit() {
            return self.session.fail(d);
        }
        let mut stats = Map::new();
        stats.insert("compile_ms".into(), json!(compile_ms));
        stats.extend(outcome.stats);
        if args.json {
            self.print_json(&plan, &tensors, stats);
        } else {
            for name in ["pipes", "launches", "per_bank", "report"] {
                stats.remove(name);
            }
            self.print_human(&plan, &tensors, &verified, &wrote, (&stats, &outcome.timed, &outcome.simulated));
        }
        comparison
    }

    /// Stops if there are errors that no function returned.
    fn stop_on_errors(&self) -> Result<(), Failed> {
        if self.session.diagnostics.has_errors() { Err(Failed) } else { Ok(()) }
    }

    fn compile_ms(&self) -> f64 {
        let phases = self.session.clock.phases.iter().filter(|p| !p.part);
        let compile = phases.filter(|p| !matches!(p.name.as_str(), "read arrays" | "make inputs"));
        ptoc_driver::trace::milliseconds(compile.map(|p| p.length).sum())
    }

    /// Takes the places of all outputs. None of them is one of the call's own files, but for an argument that is
    /// updated in place.
    fn files(&mut self, entry: &EntryPoint<'_>) -> Result<Files, Failed> {
        let args = self.args;
        let names = check_outputs(self.session, entry, "--out", &args.output);
        let mut files = Files { outputs: Outputs::new(), arrays: Vec::new(), trace: None, html: None };
        let mut failed = names.is_err();
        for (name, path) in &args.output {
            match files.outputs.plan(path) {
                Ok(n) => files.arrays.push((n, name.clone())),
                Err(d) => {
                    self.session.diagnostics.push(d);
                    failed = true;
                }
            }
        }
        for (path, place) in [(args.trace.as_ref(), &mut files.trace), (args.html.as_ref(), &mut files.html)] {
            let Some(path) = path else { continue };
            match files.outputs.plan(path) {
                Ok(n) => *place = Some(n),
                Err(d) => {
                    self.session.diagnostics.push(d);
                    failed = true;
                }
            }
        }
        let in_place = |files: &Files, name: &str, path: &Path| {
            files.arrays.iter().any(|(n, of)| of == name && files.outputs.writes(*n, path))
        };
        let mut kept = files.outputs.keep_sources(&self.session.read);
        for (name, path) in &args.input {
            if !in_place(&files, name, path) {
                kept = kept.and(files.outputs.keep(path, format!("the array of `{name}`")));
            }
        }
        for (name, path) in &args.expect {
            kept = kept.and(files.outputs.keep(path, format!("the array that `{name}` is compared with")));
        }
        if let Err(d) = kept {
            self.session.diagnostics.push(d);
            failed = true;
        }
        if failed { Err(Failed) } else { Ok(files) }
    }

    fn write(
        &mut self,
        plan: &Plan,
        files: &mut Files,
        tensors: &[Tensor],
        outcome: &RunOutcome,
    ) -> Result<(), Failed> {
        let begin = self.session.clock.now();
        for (n, name) in &files.arrays {
            let Some(at) = plan.arguments.iter().position(|a| a.name == *name) else { continue };
            if let Err(d) = files.outputs.write(*n, &npy::write(&tensors[at])) {
                return self.session.fail(d);
            }
        }
        self.session.clock.phase("write arrays", begin);
        if let Some(n) = files.trace {
            let sources = &self.session.sources;
            let mut trace = match outcome.simulated.as_ref().map(units::timeline) {
                None => self.session.clock.trace(),
                Some(Ok(trace)) => trace,
                Some(Err(d)) => return self.session.fail(*d),
            };
            outcome.timed.iter().for_each(|t| t.trace(sources, &mut trace));
            let format = self.args.trace.as_deref().map_or(Format::Chrome, Format::of);
            if let Err(d) = files.outputs.write(n, &trace.write(format)) {
                return self.session.fail(d);
            }
        }
        if let Some(n) = files.html {
            let sources = &self.session.sources;
            let page = match &outcome.simulated {
                Some(simulated) => units::page(&plan.name, simulated, sources),
                None => page_of_pipes(&plan.name, &self.session.target, &outcome.timed, sources),
            };
            if let Err(d) = files.outputs.write(n, page.as_bytes()) {
                return self.session.fail(d);
            }
        }
        Ok(())
    }

    fn print_json(&mut self, plan: &Plan, tensors: &[Tensor], stats: Map<String, Value>) {
        let mut outputs = Map::new();
        for (a, t) in plan.arguments.iter().zip(tensors).filter(|(a, _)| a.is_output()) {
            let value = json!({"dtype": a.dtype.name(), "shape": a.shape, "sha256": t.sha256()});
            outputs.insert(a.name.to_string(), value);
        }
        let object = json!({
            "kernel": plan.name.as_str(), "backend": self.backend.name(), "target": self.session.target.name,
            "outputs": outputs, "stats": stats,
        });
        self.io.print(&format!("{object}\n"));
    }

    fn print_human(
        &mut self,
        plan: &Plan,
        tensors: &[Tensor],
        verified: &[Verified],
        wrote: &[(String, String)],
        (stats, timed, simulated): (&Map<String, Value>, &[Timed], &Option<pim::Simulated>),
    ) {
        let mut text = String::new();
        for (a, t) in plan.arguments.iter().zip(tensors).filter(|(a, _)| a.is_output()) {
            match wrote.iter().find(|(name, _)| *a.name == **name) {
                Some((_, path)) => {
                    let _ = writeln!(text, "{}: {} written to {path}", a.name, t.signature());
                }
                None if wrote.is_empty() => {
                    let _ = writeln!(text, "{}: {}\n{}", a.name, t.signature(), preview::corner(t));
                }
                None => {}
            }
        }
        for v in verified {
            let s = &v.stats;
            let error = match s.max_error {
                0.0 => "exactly".to_owned(),
                error => {
                    let ulps = s.max_ulps.map_or(String::new(), |n| format!(", {n} ulp"));
                    format!("largest error {error:.3e}{ulps}")
                }
            };
            // Which comparison it was is said where there are several.
            let with = match verified.iter().filter(|other| other.name == v.name).count() {
                1 => String::new(),
                _ => format!(" by `{}`", v.with),
            };
            let elements = match v.left_out {
                0 => plural(s.elements, "element"),
                left => format!("a sample of {} of {} elements", s.elements, s.elements + left),
            };
            let _ = writeln!(text, "{}: {elements} as expected{with}, {error}", v.name);
        }
        let told = self.args.stats || self.args.timing_only;
        if told {
            for (name, value) in stats {
                match value {
                    Value::Object(counts) => {
                        for (name, n) in counts {
                            let _ = writeln!(text, "  {name:<14} {}", counted(n));
                        }
                    }
                    Value::Number(n) if n.is_f64() => {
                        let _ = writeln!(text, "{name:<16} {:.3}", n.as_f64().unwrap_or(0.0));
                    }
                    value => {
                        let _ = writeln!(text, "{name:<16} {value}");
                    }
                }
            }
            for t in timed {
                text.push_str(&t.text(&self.session.sources));
            }
            if let Some(s) = simulated {
                let _ = write!(text, "\n{}", units::report(s));
            }
            text.push_str(self.backend.stats_note());
        }
        self.io.print(&text);
        if self.args.compile.message_format == MessageFormat::Human && !told {
            let ms = |name: &str| stats.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            let line = format!(
                "{} on {} ({}{}): compiled in {:.1} ms, ran in {:.3} ms\n",
                plan.name,
                self.backend.name(),
                self.session.target.name,
                by_host(plan, self.backend),
                ms("compile_ms"),
                ms("run_ms")
            );
            self.io.flush();
            self.io.note(&line);
        }
    }
}

/// The page of launches that the model of time has seen.
fn page_of_pipes(title: &str, target: &Target, timed: &[Timed], sources: &SourceMap) -> String {
    let runs: Vec<PipeRun<'_>> = timed
        .iter()
        .map(|t| PipeRun { kernel: &t.kernel, roles: &t.roles, events: &t.events, timing: &t.timing })
        .collect();
    pipes::page(title, &target.name, &runs, sources)
}

/// Which of the launches on a target with units in memory are the host's: one by itself is easily taken for theirs.
fn by_host(plan: &Plan, backend: BackendRef) -> String {
    match plan.steps.iter().filter(|s| s.kernel.host).count() {
        hosted if hosted == 0 || !backend.capabilities().units => String::new(),
        _ if plan.is_host() => "; a kernel of the host: no unit takes part".into(),
        hosted => format!("; {hosted} of {} launches by the host", plan.steps.len()),
    }
}

/// A count, or several of one thing: `fetched 512, read 1024`.
fn counted(n: &Value) -> String {
    let Value::Object(several) = n else { return n.to_string() };
    several.iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
}
