//! Machine code on this host.

#[cfg(feature = "objects")]
mod build;
mod code_files;
mod watched;

use super::{
    Backend, Capabilities, Compiled, Ending, Launches, Listing, PIM, Refusal, SharedCode, Timed, failed, holes,
    wrong_backend, wrong_stage,
};
#[cfg(feature = "objects")]
use crate::build::{BuildUnit, Built, Form, Request};
use crate::launch::{BackendLaunch, Plan, PlannedLaunch, RunOptions, Total, Used};
use crate::session::{DEFAULT_TARGET, Failed, Session};
use crate::stages::BackendStage;
use crate::stages::quoted;
use ptoc_analysis::TensorSource;
use ptoc_cpu::jitdump::{self, SourcePlace};
use ptoc_diagnostics::{Diagnostic, Severity, SourceMap, Span, codes};
use ptoc_exec::PrintEvent;
use ptoc_interp::sanitize;
use ptoc_ir::tile::TensorId;
use ptoc_isa::Target;
use ptoc_passes::Prepared;
use ptoc_passes::pipeline::{CPU_PASSES, Pipeline};
use ptoc_tensor::Tensor;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use watched::Watched;

/// The backend: loop IR to machine code, launched on threads of this host.
pub(super) struct Cpu;

/// The forms of loop IR on its way to machine code.
const STAGES: [BackendStage; 3] = [
    BackendStage { name: "loop", about: "Loop IR", plan: false, extension: None },
    BackendStage { name: "clif", about: "Cranelift IR", plan: false, extension: None },
    BackendStage { name: "asm", about: "Machine code", plan: false, extension: None },
];

impl Backend for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn about(&self) -> &'static str {
        "Machine code on this host"
    }

    fn home(&self) -> Option<&'static str> {
        Some(DEFAULT_TARGET)
    }

    fn serves(&self, target: &Target) -> bool {
        !target.is_pim() && target.gpu.is_none()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { sanitizer: true, timed: Some(Timed::Host), ..Capabilities::default() }
    }

    fn pipeline(&self) -> Option<Pipeline> {
        Some(Pipeline::Loops(CPU_PASSES))
    }

    fn stages(&self) -> &'static [BackendStage] {
        &STAGES
    }

    fn emit_kernel(&self, session: &mut Session, prepared: &Prepared, stage: &BackendStage) -> Result<String, Failed> {
        let Some(module) = &prepared.module else {
            let d = wrong_stage(&session.target, stage.name);
            return session.fail(d);
        };
        if stage.name == "loop" {
            return Ok(super::loop_text(session, prepared, module));
        }
        let options = ptoc_cpu::Options { text: true, vectors: session.vectors, ..Default::default() };
        match ptoc_cpu::compile(module, &options) {
            Ok(compiled) => Ok(match compiled.text() {
                Some(text) if stage.name == "clif" => text.clif.clone(),
                Some(text) => ptoc_cpu::listing::print(&text.code, |span| quoted(&session.sources, span)),
                None => String::new(),
            }),
            Err(d) => session.fail(d),
        }
    }

    fn listing(&self, session: &mut Session, prepared: &Prepared) -> Result<Option<Listing>, Failed> {
        let Some(module) = &prepared.module else { return Ok(None) };
        let options = ptoc_cpu::Options { text: true, vectors: session.vectors, ..Default::default() };
        let compiled = ptoc_cpu::compile(module, &options).or_else(|d| session.fail(d))?;
        let Some(text) = compiled.text() else { return Ok(None) };
        let lines = ptoc_cpu::listing::lines(&text.code, |span| quoted(&session.sources, span));
        let lines = lines.into_iter().map(|(text, spans)| (text, spans.to_vec())).collect();
        let about = format!("{} bytes in {} functions", compiled.code_size(), text.code.len());
        Ok(Some(Listing { name: "machine code".into(), about, lines }))
    }

    #[cfg(feature = "objects")]
    fn forms(&self) -> &'static [Form] {
        &crate::build::CPU_FORMS
    }

    #[cfg(feature = "objects")]
    fn build(&self, session: &mut Session, unit: &BuildUnit, request: &Request) -> Result<Built, Failed> {
        build::build(session, unit, request).or_else(|d| session.fail(*d))
    }

    fn compile(&self, session: &mut Session, plan: &Plan) -> Result<Compiled, Failed> {
        let mut kernels = Vec::new();
        for step in &plan.steps {
            let begin = session.clock.now();
            let Some(module) = &step.module else {
                let d = wrong_backend(&session.target, &Cpu);
                return session.fail(d);
            };
            let kind = (session.vectors, session.exact);
            if let Some(code) = session.cache.code::<ptoc_cpu::CompiledKernel>(module, kind) {
                kernels.push(code);
                continue;
            }
            let (vectors, exact) = kind;
            let text = jitdump::wanted();
            let options = ptoc_cpu::Options { vectors, exact, text, ..Default::default() };
            let files = code_files::CodeFiles::of_environment();
            let store = files.as_ref().and_then(|f| Some((f as &dyn ptoc_cpu::CodeStore, code_files::build()?)));
            let compiled = ptoc_cpu::compile_or_load(module, &options, store);
            session.clock.phase("machine code", begin);
            match compiled {
                Ok(code) => {
                    let code = Arc::new(code);
                    tell_perf(session, &code, &module.name);
                    session.cache.keep_code(module, kind, &code);
                    kernels.push(code);
                }
                Err(d) => return session.fail(d),
            }
        }
        Ok(Compiled::Launches(Box::new(Code { kernels, watched: Vec::new() })))
    }

    fn sanitized(&self, session: &mut Session, plan: &Plan) -> Result<Compiled, Failed> {
        let watched = watched::compile(session, plan)?;
        Ok(Compiled::Launches(Box::new(Code { kernels: Vec::new(), watched })))
    }

    fn refusal(&self, target: &Target) -> Refusal {
        let why = match target.gpu {
            Some(_) => format!("`{}` is a GPU, whose kernels are compiled to PTX", target.name),
            None => format!("`{}` has units in memory, which `cpu` has not", target.name),
        };
        Refusal { why, instead: None }
    }

    fn other_stages(&self, target: &Target) -> Refusal {
        Refusal {
            why: format!("`{}` has no units in memory, for which command streams are", target.name),
            instead: Some(format!("give {}; or `--stage loop`, `clif` or `asm`", super::registry::targets_of(PIM))),
        }
    }

    fn stats_note(&self) -> &'static str {
        "pipes            by the target's model of time, with `--backend interp`\n"
    }
}

/// The machine code of a plan.
struct Code {
    kernels: Vec<Arc<ptoc_cpu::CompiledKernel>>,
    /// That of launches which are watched, in place of `kernels`; of none or of all.
    watched: Vec<Arc<Watched>>,
}

impl Launches for Code {
    fn expect(&mut self, session: &mut Session, plan: &Plan, unfilled: &[Vec<TensorId>]) -> Result<(), Failed> {
        // What such a kernel adds to may be nothing that it has written, which only marks can tell (PA-1012).
        let updates =
            |(step, of): (&PlannedLaunch, &Vec<TensorId>)| of.iter().any(|t| sanitize::updates(&step.kernel, *t));
        if plan.steps.iter().any(|step| step.watched) || plan.steps.iter().zip(unfilled).any(updates) {
            self.watched = watched::compile(session, plan)?;
        }
        Ok(())
    }

    fn launch(&self, launch: &mut BackendLaunch<'_, '_>) -> Result<Ending, Box<Diagnostic>> {
        match self.watched.get(launch.number) {
            Some(watched) => watched.launch(launch)?,
            None => {
                let (step, kernel, threads) = (launch.step, &self.kernels[launch.number], launch.options.threads);
                holes::launch(launch, &|used, buffers, print| {
                    execute(step, kernel, used, buffers, threads, print).map(drop)
                })?;
            }
        }
        Ok(Ending::Done)
    }

    fn time(&self, launch: &mut BackendLaunch<'_, '_>) -> Result<Duration, Box<Diagnostic>> {
        let (step, kernel) = (launch.step, &self.kernels[launch.number]);
        execute(step, kernel, launch.used, launch.buffers, launch.options.threads, None)
    }

    fn code_bytes(&self) -> usize {
        let first = |(n, k): &(usize, &Arc<_>)| !self.kernels[..*n].iter().any(|other| Arc::ptr_eq(other, k));
        let plain: usize = self.kernels.iter().enumerate().filter(first).map(|(_, k)| k.code_size()).sum();
        let first = |(n, w): &(usize, &Arc<_>)| !self.watched[..*n].iter().any(|other| Arc::ptr_eq(other, w));
        let watched = self.watched.iter().enumerate().filter(first);
        plain + watched.map(|(_, w)| w.code_size()).sum::<usize>()
    }

    fn shared(&self) -> Option<Vec<Arc<dyn SharedCode>>> {
        let share = |k: &Arc<ptoc_cpu::CompiledKernel>| Arc::new(Shared(Arc::clone(k))) as Arc<dyn SharedCode>;
        self.watched.is_empty().then(|| self.kernels.iter().map(share).collect())
    }

    fn stats(&self, _: &Total, options: &RunOptions, _: &SourceMap, stats: &mut Map<String, Value>) {
        let threads = if options.threads == 0 { ptoc_exec::Pool::default_threads() } else { options.threads };
        stats.insert("threads".into(), json!(threads));
        stats.insert("code_bytes".into(), json!(self.code_bytes()));
        let arenas = self.kernels.iter().map(|k| k.arena()).chain(self.watched.iter().map(|w| w.arena()));
        stats.insert("arena_bytes".into(), json!(arenas.max().unwrap_or(0)));
    }
}

/// Writes a kernel's functions for `perf`, where that is asked for. Why it cannot be done is a warning.
fn tell_perf(session: &mut Session, code: &ptoc_cpu::CompiledKernel, name: &str) {
    if !jitdump::wanted() {
        return;
    }
    let sources = &session.sources;
    let place = |span: Span| {
        let at = sources.position(span.file, span.start);
        SourcePlace { file: sources.name(span.file).to_owned(), line: at.line, column: at.column }
    };
    if let Err(why) = jitdump::add(code, name, place) {
        let d = Diagnostic::global(codes::PERF_NOT_TOLD, why);
        let d = Diagnostic { severity: Severity::Warning, ..d };
        let remedy = format!("name another directory by the variable `{}`, or unset it", jitdump::VARIABLE);
        session.diagnostics.push(d.with_help(remedy));
    }
}

/// Machine code that threads share.
struct Shared(Arc<ptoc_cpu::CompiledKernel>);

impl SharedCode for Shared {
    fn execute(
        &self,
        step: &PlannedLaunch,
        used: &mut Used<'_>,
        buffers: &mut [Option<Tensor>],
        threads: usize,
        print: Option<&mut dyn FnMut(&str)>,
    ) -> Result<(), Box<Diagnostic>> {
        execute(step, &self.0, used, buffers, threads, print).map(drop)
    }
}

/// The memory of each argument. One tensor may be several arguments, which are pointers into one borrow of it.
fn arguments(step: &PlannedLaunch, used: &mut Used<'_>, buffers: &mut [Option<Tensor>]) -> Vec<ptoc_exec::TensorArg> {
    let mut wholes: Vec<(TensorSource, *mut u8, usize)> = Vec::new();
    let mut out = Vec::new();
    for (argument, (&source, buffer)) in step.tensors.iter().zip(buffers).enumerate() {
        if let Some(buffer) = buffer {
            let len = buffer.len() * buffer.dtype().size();
            out.push(ptoc_exec::TensorArg::whole(buffer.as_mut_ptr(), len));
            continue;
        }
        let known = wholes.iter().find(|(of, ..)| *of == source).map(|&(_, data, bytes)| (data, bytes));
        let (data, bytes) = known.unwrap_or_else(|| {
            let whole = used.get(source);
            let (data, bytes) = (whole.as_mut_ptr(), whole.len() * whole.dtype().size());
            wholes.push((source, data, bytes));
            (data, bytes)
        });
        let range = step.range(argument);
        let streamed = if step.streams(argument) { bytes } else { range.len() };
        out.push(ptoc_exec::TensorArg { data: data.wrapping_add(range.start), len: range.len(), streamed });
    }
    out
}

/// Launches a step on this machine; the time is that of the launch alone.
fn execute(
    step: &PlannedLaunch,
    kernel: &ptoc_cpu::CompiledKernel,
    used: &mut Used<'_>,
    buffers: &mut [Option<Tensor>],
    threads: usize,
    print: Option<&mut dyn FnMut(&str)>,
) -> Result<Duration, Box<Diagnostic>> {
    let params = step.params();
    let tensors = arguments(step, used, buffers);
    let mut sink = print.map(|print| move |event: PrintEvent| print(&event.line()));
    let print = sink.as_mut().map(|sink| sink as &mut dyn FnMut(PrintEvent));
    let launch = ptoc_exec::LaunchArgs { params: &params, tensors: &tensors, threads, print };
    let begin = Instant::now();
    // SAFETY: `tensors` point into arrays of `used` or at `buffers`, which are borrowed for the launch. The analysis
    // admits nothing that is written twice in one launch. `Plan::new` has checked that their shapes are those of the
    // kernel for these parameters, `PlannedLaunch::buffers` makes buffers of the length that the kernel knows, and
    // lowered code stays inside them or fails a check.
    match unsafe { kernel.launch(launch) } {
        Ok(()) => Ok(begin.elapsed()),
        Err(e) => {
            let module = step.module.as_ref().expect("it has run");
            Err(failed(step, &step.kernel, |row| module.checks[row].id, e))
        }
    }
}
