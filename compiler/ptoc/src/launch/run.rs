//! Running a plan: on the interpreter, or compiled on this machine.

use super::plan::{Plan, Step};
use crate::session::{Failed, Session};
use ptoc_analysis::TensorSource;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_exec::PrintEvent;
use ptoc_ir::interp::{self, Trap};
use ptoc_ir::tile::{CheckId, TensorDir};
use ptoc_isa::Loc;
use ptoc_layout::Storage;
use ptoc_tensor::Tensor;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// What executes a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// The reference interpreter.
    Interp,
    /// Machine code.
    Cpu,
}

impl Backend {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Interp => "interp",
            Backend::Cpu => "cpu",
        }
    }
}

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// Threads; 0 is one a core.
    pub threads: usize,
}

/// A plan with machine code, if the backend wants some.
pub struct CompiledPlan<'p> {
    plan: &'p Plan,
    backend: Backend,
    kernels: Vec<ptoc_cpu::CompiledKernel>,
}

/// What a run gives beside the tensors.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Time of the launches.
    pub run_time: Duration,
    /// Counts, for `--stats` and `--json`.
    pub stats: Map<String, Value>,
}

impl<'p> CompiledPlan<'p> {
    /// Compiles what the backend needs.
    pub fn new(session: &mut Session, plan: &'p Plan, backend: Backend) -> Result<CompiledPlan<'p>, Failed> {
        let mut kernels = Vec::new();
        if backend == Backend::Cpu {
            for step in &plan.steps {
                let begin = session.clock.now();
                let compiled = ptoc_cpu::compile(&step.module, &ptoc_cpu::Options::default());
                session.clock.phase("machine code", begin);
                match compiled {
                    Ok(kernel) => kernels.push(kernel),
                    Err(d) => return session.fail(d),
                }
            }
        }
        Ok(CompiledPlan { plan, backend, kernels })
    }

    /// Runs all launches. `tensors` are those of the arguments and hold the results afterwards. `print` gets what
    /// the kernels print.
    pub fn run(
        &self,
        session: &mut Session,
        tensors: &mut [Tensor],
        options: &RunOptions,
        print: &mut dyn FnMut(&str),
    ) -> Result<Outcome, Failed> {
        let mut locals = Vec::new();
        for local in &self.plan.locals {
            let shape: Vec<usize> = local.shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).collect();
            match Tensor::filled(local.dtype, &shape, local.fill.unwrap_or(0)) {
                Ok(tensor) => locals.push(tensor),
                Err(e) => {
                    let message = format!("tensor `{}`: {e}", local.name);
                    return session.fail(Diagnostic::error(crate::files::code(e.code()), local.span, message));
                }
            }
        }
        let mut stats = Map::new();
        let mut total = interp::Stats::default();
        let mut run_time = Duration::ZERO;
        for (i, step) in self.plan.steps.iter().enumerate() {
            let begin = session.clock.now();
            let mut used = Used { tensors, locals: &mut locals };
            let result = match self.backend {
                Backend::Interp => interpret(session, step, &mut used, print, &mut total),
                Backend::Cpu => launch(step, &self.kernels[i], &mut used, options, print),
            };
            run_time += session.clock.phase(format!("run {}", step.kernel.name), begin);
            if let Err(d) = result {
                return session.fail(*d);
            }
        }
        stats.insert("run_ms".into(), json!(crate::commands::run::milliseconds(run_time)));
        stats.insert("blocks".into(), json!(self.plan.steps.iter().map(|s| s.blocks).sum::<u64>()));
        match self.backend {
            Backend::Cpu => {
                let threads = if options.threads == 0 { ptoc_exec::Pool::default_threads() } else { options.threads };
                stats.insert("threads".into(), json!(threads));
                stats.insert("code_bytes".into(), json!(self.kernels.iter().map(|k| k.code_size()).sum::<usize>()));
                stats.insert("arena_bytes".into(), json!(self.kernels.iter().map(|k| k.arena()).max().unwrap_or(0)));
            }
            Backend::Interp => {
                stats.insert("steps".into(), json!(total.steps));
                stats.insert("bytes_read".into(), json!(total.bytes_read));
                stats.insert("bytes_written".into(), json!(total.bytes_written));
                stats.insert("bytes_moved".into(), json!(total.bytes_moved));
                stats.insert("instructions".into(), json!(total.instructions));
            }
        }
        Ok(Outcome { run_time, stats })
    }
}

/// The tensors that launches choose from.
struct Used<'t> {
    tensors: &'t mut [Tensor],
    locals: &'t mut [Tensor],
}

impl Used<'_> {
    fn get(&mut self, source: TensorSource) -> &mut Tensor {
        match source {
            TensorSource::Arg(i) => &mut self.tensors[i],
            TensorSource::Local(i) => &mut self.locals[i],
        }
    }
}

impl Step {
    /// How argument `i` lies in memory, where that is not its C order.
    fn storage(&self, i: usize) -> Option<&Storage> {
        self.storage.get(i)?.as_ref()
    }

    /// The buffer of argument `i`, with the array in it if the kernel reads it.
    fn laid_out(&self, i: usize, s: &Storage, array: &Tensor) -> Result<Tensor, Box<Diagnostic>> {
        let data = self.kernel.tensors.values().nth(i);
        let length = usize::try_from(s.len()).unwrap_or(usize::MAX);
        let mut buffer = Tensor::zeros(array.dtype(), &[length]).map_err(|e| {
            let span = data.map_or(self.kernel.span, |t| t.span);
            Box::new(Diagnostic::error(crate::files::code(e.code()), span, format!("the buffer of an argument: {e}")))
        })?;
        if data.is_none_or(|t| t.dir != TensorDir::Out) {
            s.scatter(array.dtype().size(), array.bytes(), buffer.bytes_mut());
        }
        Ok(buffer)
    }
}

fn interpret(
    session: &mut Session,
    step: &Step,
    used: &mut Used<'_>,
    print: &mut dyn FnMut(&str),
    total: &mut interp::Stats,
) -> Result<(), Box<Diagnostic>> {
    let memory = interp::Options::default().memory;
    let mut args = Vec::new();
    for (i, &source) in step.tensors.iter().enumerate() {
        let t = used.get(source);
        let (shape, data) = match step.storage(i) {
            // What exceeds the memory is refused before the data is looked at.
            Some(s) if s.len().saturating_mul(t.dtype().size() as u64) > memory => (vec![s.len()], Vec::new()),
            Some(s) => (vec![s.len()], step.laid_out(i, s, t)?.bytes().to_vec()),
            None => (t.shape().iter().map(|&n| n as u64).collect(), t.bytes().to_vec()),
        };
        args.push(interp::TensorArg { dtype: t.dtype(), shape, data });
    }
    let capacity = Loc::ALL.into_iter().map(|loc| (loc, session.target.memory(loc).capacity)).collect();
    let mut launch = interp::Launch {
        tensors: args,
        dims: step.dims.clone(),
        scalars: step.scalars.iter().map(|&bits| Some(bits)).collect(),
        options: interp::Options { capacity, storage: step.storage.clone(), ..interp::Options::default() },
        print,
    };
    let outcome = interp::run(&step.kernel, &mut launch).map_err(|trap| Box::new(trap.to_diagnostic()))?;
    for (i, (arg, &source)) in launch.tensors.iter().zip(&step.tensors).enumerate() {
        let t = used.get(source);
        match step.storage(i) {
            Some(s) => s.gather(t.dtype().size(), &arg.data, t.bytes_mut()),
            None => t.bytes_mut().copy_from_slice(&arg.data),
        }
    }
    for u in &outcome.unwritten {
        let t = &step.kernel.tensors[u.tensor];
        let first: Vec<String> = u.first.iter().map(u64::to_string).collect();
        let (verb, noun) = if u.count == 1 { ("was", "element") } else { ("were", "elements") };
        let d = Diagnostic::warning(
            codes::UNWRITTEN_OUTPUT,
            t.span,
            format!("{} {noun} of `{}` {verb} never written, first [{}]", u.count, t.name, first.join(", ")),
        );
        session.diagnostics.push(d.with_help("let the grid cover the whole tensor, or declare it `inout`"));
    }
    let s = outcome.stats;
    total.steps += s.steps;
    total.bytes_read += s.bytes_read;
    total.bytes_written += s.bytes_written;
    total.bytes_moved += s.bytes_moved;
    for (name, n) in s.instructions {
        *total.instructions.entry(name).or_default() += n;
    }
    Ok(())
}

fn launch(
    step: &Step,
    kernel: &ptoc_cpu::CompiledKernel,
    used: &mut Used<'_>,
    options: &RunOptions,
    print: &mut dyn FnMut(&str),
) -> Result<(), Box<Diagnostic>> {
    let params: Vec<i64> = step.dims.iter().copied().chain(step.scalars.iter().map(|&bits| bits as i64)).collect();
    let mut buffers = Vec::new();
    for (i, &source) in step.tensors.iter().enumerate() {
        let buffer = step.storage(i).map(|s| step.laid_out(i, s, used.get(source)));
        buffers.push(buffer.transpose()?);
    }
    let tensors: Vec<ptoc_exec::TensorArg> = (step.tensors.iter().zip(&mut buffers))
        .map(|(&source, buffer)| match buffer {
            Some(buffer) => ptoc_exec::TensorArg::new(buffer.bytes_mut()),
            None => ptoc_exec::TensorArg::new(used.get(source).bytes_mut()),
        })
        .collect();
    let mut sink = |event: PrintEvent| print(&event.line());
    let launch =
        ptoc_exec::Launch { params: &params, tensors: &tensors, threads: options.threads, print: Some(&mut sink) };
    // SAFETY: `tensors` point at buffers of `used` and at `buffers`, which are borrowed for the launch or live as long.
    // The analysis admits no tensor twice in one launch. `Plan::new` has checked that their shapes are those of the kernel for these parameters,
    // and lowered code stays inside them or fails a check.
    let result = unsafe { kernel.launch(launch) };
    for (i, (&source, buffer)) in step.tensors.iter().zip(&buffers).enumerate() {
        if let (Some(s), Some(buffer)) = (step.storage(i), buffer) {
            let t = used.get(source);
            s.gather(t.dtype().size(), buffer.bytes(), t.bytes_mut());
        }
    }
    let Err(error) = result else { return Ok(()) };
    let failure = match ptoc_cpu::diagnose(error) {
        Ok(mut d) => {
            d.span.get_or_insert(step.kernel.span);
            return Err(Box::new(d));
        }
        Err(failure) => failure,
    };
    let row = &step.module.checks[failure.check as usize];
    let check = &step.kernel.checks[CheckId::from_u32(row.id)];
    let fill = |text: &str| {
        failure
            .args
            .iter()
            .enumerate()
            .fold(text.to_owned(), |text, (n, arg)| text.replace(&format!("{{{n}}}"), &arg.to_string()))
    };
    let trap = Trap {
        code: check.code,
        message: fill(&check.message),
        span: check.span,
        help: check.help.as_deref().map(fill),
        block: failure.block.map(|_| failure.coords.clone()),
    };
    Err(Box::new(trap.to_diagnostic()))
}
