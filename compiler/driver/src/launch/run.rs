//! Running a plan: on the interpreter, or compiled on this machine.

use super::holes::Holes;
use super::pim;
use super::pipes::{self, Schedule, Timed};
use super::plan::{Plan, Step};
use super::watched::{self, Watched};
use crate::session::{Failed, Session};
use ptoc_analysis::TensorSource;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_exec::PrintEvent;
use ptoc_interp::sanitize;
use ptoc_interp::{End, Observer, Trap, Unwritten};
use ptoc_ir::tile::{CheckId, Kernel, SyncMode, TensorData, TensorDir, TensorId};
use ptoc_isa::Loc;
use ptoc_layout::Overlap;
use ptoc_pim_sim::machine::Options as Keep;
use ptoc_tensor::Tensor;
use serde_json::{Map, Value, json};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// What executes a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// The reference interpreter.
    Interp,
    /// Machine code.
    Cpu,
    /// Command streams, executed by the simulator of units in memory.
    Pim,
}

impl Backend {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Interp => "interp",
            Backend::Cpu => "cpu",
            Backend::Pim => "pim",
        }
    }
}

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// Threads; 0 is one a core.
    pub threads: usize,
    /// Pipes, on the interpreter.
    pub schedule: Schedule,
    /// What is kept of runs on units in memory, for timelines and pages.
    pub keep: Keep,
    /// Hold the commands of such runs to the DRAM's rules.
    pub rules: bool,
}

/// A plan with machine code, if the backend wants some.
pub struct CompiledPlan<'p> {
    plan: &'p Plan,
    backend: Backend,
    kernels: Vec<Rc<ptoc_cpu::CompiledKernel>>,
    /// The program's command stream.
    stream: Option<pim::Compiled>,
    /// The machine code of launches that are watched, in place of `kernels`; of none or of all.
    watched: Vec<Rc<Watched>>,
    /// Tensors of each launch of machine code that it is not known to fill.
    unfilled: Vec<Vec<TensorId>>,
}

/// Whoever looks on at a run: an observer for each launch that the interpreter executes.
pub trait Observers {
    /// The observer of the launch of this number.
    fn of_launch(&mut self, launch: usize) -> Box<dyn Observer + '_>;
}

/// What a run gives beside the tensors.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Time of the launches.
    pub run_time: Duration,
    /// Counts, for `--stats` and `--json`.
    pub stats: Map<String, Value>,
    /// What the model of time says, by launch.
    pub timed: Vec<Timed>,
    /// What the simulator of units in memory says.
    pub simulated: Option<pim::Simulated>,
    /// Whoever looked on has ended the run: there are no results.
    pub stopped: bool,
}

impl<'p> CompiledPlan<'p> {
    /// Compiles what the backend needs.
    pub fn new(session: &mut Session, plan: &'p Plan, backend: Backend) -> Result<CompiledPlan<'p>, Failed> {
        let mut kernels = Vec::new();
        if backend == Backend::Cpu {
            for step in &plan.steps {
                let begin = session.clock.now();
                let Some(module) = &step.module else {
                    let d = super::wrong_backend(&session.target, backend.name());
                    return session.fail(d);
                };
                let kind = (session.vectors, session.exact);
                if let Some(code) = session.cache.code(module, kind) {
                    kernels.push(code);
                    continue;
                }
                let (vectors, exact) = kind;
                let options = ptoc_cpu::Options { vectors, exact, ..Default::default() };
                let compiled = ptoc_cpu::compile(module, &options);
                session.clock.phase("machine code", begin);
                match compiled {
                    Ok(code) => {
                        let code = Rc::new(code);
                        session.cache.keep_code(module, kind, &code);
                        kernels.push(code);
                    }
                    Err(d) => return session.fail(d),
                }
            }
        }
        let mut stream = None;
        if backend == Backend::Pim {
            if !session.target.is_pim() {
                let d = super::wrong_backend(&session.target, backend.name());
                return session.fail(d);
            }
            let begin = session.clock.now();
            let compiled = pim::compile(session, plan);
            session.clock.phase("command stream", begin);
            match compiled {
                Ok(compiled) => stream = Some(compiled),
                Err(d) => return session.fail(*d),
            }
        }
        let begin = session.clock.now();
        let unfilled: Vec<Vec<TensorId>> = plan.steps.iter().map(|step| session.unfilled(&step.kernel)).collect();
        session.clock.phase("outputs", begin);
        // What such a kernel adds to may be nothing that it has written, which only marks can tell (PA-1012).
        let updates = |(step, of): (&Step, &Vec<TensorId>)| of.iter().any(|t| sanitize::updates(&step.kernel, *t));
        let open = plan.steps.iter().any(|step| step.watched) || plan.steps.iter().zip(&unfilled).any(updates);
        let watched = match backend == Backend::Cpu && open {
            true => watched::compile(session, plan)?,
            false => Vec::new(),
        };
        Ok(CompiledPlan { plan, backend, kernels, stream, watched, unfilled })
    }

    /// Compiles machine code that the sanitizer watches.
    pub fn sanitized(session: &mut Session, plan: &'p Plan) -> Result<CompiledPlan<'p>, Failed> {
        let watched = watched::compile(session, plan)?;
        Ok(CompiledPlan {
            plan,
            backend: Backend::Cpu,
            kernels: Vec::new(),
            stream: None,
            watched,
            unfilled: Vec::new(),
        })
    }

    /// Runs all launches. `tensors` are those of the arguments and hold the results afterwards. `print` gets what
    /// the kernels print. `observers` see what the interpreter does.
    pub fn run(
        &self,
        session: &mut Session,
        tensors: &mut [Tensor],
        options: &RunOptions,
        print: &mut dyn FnMut(&str),
        mut observers: Option<&mut dyn Observers>,
    ) -> Result<Outcome, Failed> {
        let mut locals = self.locals(session)?;
        let mut stats = Map::new();
        let mut total = Total::default();
        let mut run_time = Duration::ZERO;
        if let Some(compiled) = &self.stream {
            let begin = session.clock.now();
            let result = self.simulate(session, compiled, tensors, options, print, &mut total);
            run_time += session.clock.phase(format!("run {}", self.plan.name), begin);
            let simulated = match result {
                Ok(simulated) => simulated,
                Err(d) => return session.fail(*d),
            };
            for (step, tensors) in self.plan.steps.iter().zip(&self.unfilled).filter(|(step, _)| !step.kernel.host) {
                for hole in pim::holes(step, tensors) {
                    session.diagnostics.push(unwritten(step, &hole));
                }
            }
            self.counts(&mut stats, run_time);
            pim::stats(&simulated, &mut stats);
            let simulated = Some(simulated);
            return Ok(Outcome { run_time, stats, timed: total.timed, simulated, stopped: false });
        }
        for (i, step) in self.plan.steps.iter().enumerate() {
            let mut used = Used::of(tensors, &mut locals);
            let begin = session.clock.now();
            let mut buffers = match step.buffers(&mut used) {
                Ok(buffers) => buffers,
                Err(d) => return session.fail(*d),
            };
            session.clock.phase("lay out arrays", begin);
            let begin = session.clock.now();
            let result = match self.backend {
                Backend::Interp | Backend::Pim => {
                    let mut observer = observers.as_mut().map(|o| o.of_launch(i));
                    let observer = observer.as_mut().map(|o| &mut **o as &mut dyn Observer);
                    let mut print = |line: &str| print(line);
                    let how: How<'_> = (options.schedule, &mut print, observer);
                    interpret(session, step, &mut used, &mut buffers, how, &mut total)
                }
                Backend::Cpu if !self.watched.is_empty() => self.watched[i]
                    .launch(session, step, &mut used, &mut buffers, options.threads, print)
                    .map(|()| Ending::Done),
                Backend::Cpu => self.launch_step(i, &mut used, &mut buffers, options.threads, print).map(|holes| {
                    for hole in &holes {
                        session.diagnostics.push(unwritten(step, hole));
                    }
                    Ending::Done
                }),
            };
            run_time += session.clock.phase(format!("run {}", step.kernel.name), begin);
            let begin = session.clock.now();
            step.collect(&mut used, &buffers);
            session.clock.phase("lay out arrays", begin);
            match result {
                Ok(Ending::Done) => {}
                Ok(Ending::Stopped) => {
                    return Ok(Outcome { run_time, stats, timed: total.timed, simulated: None, stopped: true });
                }
                Err(d) => return session.fail(*d),
            }
        }
        self.counts(&mut stats, run_time);
        match self.backend {
            Backend::Cpu => {
                let threads = if options.threads == 0 { ptoc_exec::Pool::default_threads() } else { options.threads };
                stats.insert("threads".into(), json!(threads));
                stats.insert("code_bytes".into(), json!(self.code_bytes()));
                let arenas = self.kernels.iter().map(|k| k.arena()).chain(self.watched.iter().map(|w| w.arena()));
                stats.insert("arena_bytes".into(), json!(arenas.max().unwrap_or(0)));
            }
            Backend::Interp | Backend::Pim => {
                let counts = &total.counts;
                stats.insert("steps".into(), json!(counts.steps));
                stats.insert("bytes_read".into(), json!(counts.bytes_read));
                stats.insert("bytes_written".into(), json!(counts.bytes_written));
                stats.insert("bytes_moved".into(), json!(counts.bytes_moved));
                stats.insert("instructions".into(), json!(counts.instructions));
                pipes::stats(&total.timed, &session.sources, &mut stats);
            }
        }
        Ok(Outcome { run_time, stats, timed: total.timed, simulated: None, stopped: false })
    }

    /// Launches machine code; what it has left unwritten of tensors that it is not known to fill.
    fn launch_step(
        &self,
        number: usize,
        used: &mut Used<'_>,
        buffers: &mut [Option<Tensor>],
        threads: usize,
        print: &mut dyn FnMut(&str),
    ) -> Result<Vec<Unwritten>, Box<Diagnostic>> {
        let (step, kernel) = (&self.plan.steps[number], &self.kernels[number]);
        let Some(holes) = Holes::new(step, &self.unfilled[number]) else {
            return launch(step, kernel, used, buffers, threads, Some(print)).map(|_| Vec::new());
        };
        let before = holes.fill(used, buffers, self.plan.program);
        launch(step, kernel, used, buffers, threads, Some(print))?;
        // What it prints has been seen.
        holes
            .found(used, buffers, &before, |used, buffers| launch(step, kernel, used, buffers, threads, None).map(drop))
    }

    /// The program's own tensors, new.
    pub fn locals(&self, session: &mut Session) -> Result<Vec<Tensor>, Failed> {
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
        Ok(locals)
    }

    /// Runs all launches on this machine for the sake of their time, which does not count what is done around them.
    /// `tensors` hold the results afterwards.
    /// `locals` are those of [`CompiledPlan::locals`]: made once, so that their pages are not touched for the first
    /// time in every launch.
    pub fn time(
        &self,
        session: &mut Session,
        tensors: &mut [Tensor],
        locals: &mut [Tensor],
        threads: usize,
    ) -> Result<Duration, Failed> {
        let mut total = Duration::ZERO;
        for (step, kernel) in self.plan.steps.iter().zip(&self.kernels) {
            let mut used = Used::of(tensors, locals);
            let timed = step.buffers(&mut used).and_then(|mut buffers| {
                let time = launch(step, kernel, &mut used, &mut buffers, threads, None)?;
                step.collect(&mut used, &buffers);
                Ok(time)
            });
            match timed {
                Ok(time) => total += time,
                Err(d) => return session.fail(*d),
            }
        }
        Ok(total)
    }

    /// What it was made of.
    pub fn plan(&self) -> &'p Plan {
        self.plan
    }

    /// Bytes of machine code, which launches of one kernel share.
    pub fn code_bytes(&self) -> usize {
        let first = |(n, k): &(usize, &Rc<_>)| !self.kernels[..*n].iter().any(|other| Rc::ptr_eq(other, k));
        let plain: usize = self.kernels.iter().enumerate().filter(first).map(|(_, k)| k.code_size()).sum();
        let first = |(n, w): &(usize, &Rc<_>)| !self.watched[..*n].iter().any(|other| Rc::ptr_eq(other, w));
        let watched = self.watched.iter().enumerate().filter(first);
        plain + watched.map(|(_, w)| w.code_size()).sum::<usize>()
    }

    /// What every backend counts.
    fn counts(&self, stats: &mut Map<String, Value>, run_time: Duration) {
        stats.insert("run_ms".into(), json!(crate::trace::milliseconds(run_time)));
        stats.insert("blocks".into(), json!(self.plan.steps.iter().map(|s| s.blocks).fold(0, u64::saturating_add)));
    }

    /// Executes the program's stream. Kernels of the host run where their numbers are defined, on the interpreter.
    fn simulate(
        &self,
        session: &mut Session,
        compiled: &pim::Compiled,
        tensors: &mut [Tensor],
        options: &RunOptions,
        print: &mut dyn FnMut(&str),
        total: &mut Total,
    ) -> Result<pim::Simulated, Box<Diagnostic>> {
        let args = tensors.len();
        pim::run(self.plan, compiled, tensors, options.keep, options.rules, &mut |launch, arrays| {
            let step = &self.plan.steps[launch];
            let mut used = Used { slots: arrays.iter_mut().map(Option::as_mut).collect(), args };
            let mut buffers = step.buffers(&mut used)?;
            let how: How<'_> = (options.schedule, print, None);
            interpret(session, step, &mut used, &mut buffers, how, total)?;
            step.collect(&mut used, &buffers);
            Ok(())
        })
    }
}

/// The order of pipes, who gets what kernels print, who looks on.
type How<'a> = (Schedule, &'a mut dyn FnMut(&str), Option<&'a mut dyn Observer>);

/// How a launch ends.
enum Ending {
    Done,
    Stopped,
}

/// What the interpreter has seen in all launches.
#[derive(Default)]
struct Total {
    counts: ptoc_interp::Stats,
    timed: Vec<Timed>,
}

/// Bytes that the interpreter may hold.
const MEMORY: u64 = 4 << 30;

/// The tensors that launches choose from.
pub(super) struct Used<'t> {
    /// Arguments, then tensors of the program; those that nobody has now are `None`.
    slots: Vec<Option<&'t mut Tensor>>,
    /// How many arguments there are.
    args: usize,
}

impl<'t> Used<'t> {
    fn of(tensors: &'t mut [Tensor], locals: &'t mut [Tensor]) -> Used<'t> {
        let args = tensors.len();
        Used { slots: tensors.iter_mut().chain(locals).map(Some).collect(), args }
    }

    /// A tensor of the launch, which is there.
    pub(super) fn get(&mut self, source: TensorSource) -> &mut Tensor {
        let number = match source {
            TensorSource::Arg(i) => i,
            TensorSource::Local(i) => self.args + i,
        };
        self.slots[number].as_deref_mut().expect("a launch has its tensors")
    }
}

impl Step {
    /// The buffers of the arguments that have a layout, with the arrays in those that the kernel reads.
    fn buffers(&self, used: &mut Used<'_>) -> Result<Vec<Option<Tensor>>, Box<Diagnostic>> {
        let mut buffers = Vec::new();
        for ((t, storage), &source) in self.kernel.tensors.values().zip(&self.storage).zip(&self.tensors) {
            let Some(storage) = storage else {
                buffers.push(None);
                continue;
            };
            let array = used.get(source);
            let length = usize::try_from(storage.len()).unwrap_or(usize::MAX);
            let mut buffer = Tensor::zeros(array.dtype(), &[length]).map_err(|e| {
                let message = format!("the buffer of `{}`: {e}", t.name);
                Box::new(Diagnostic::error(crate::files::code(e.code()), t.span, message))
            })?;
            if t.dir != TensorDir::Out {
                let width = array.dtype().size();
                storage.scatter(width, array.bytes(), buffer.bytes_mut());
                if let Some(o) = storage.conflict(width, array.bytes(), buffer.bytes()) {
                    return Err(Box::new(repeated(t, array, &o)));
                }
            }
            buffers.push(Some(buffer));
        }
        Ok(buffers)
    }

    /// Reads back what the kernel has written.
    fn collect(&self, used: &mut Used<'_>, buffers: &[Option<Tensor>]) {
        for (i, t) in self.kernel.tensors.values().enumerate() {
            if let (true, Some(Some(storage)), Some(Some(buffer)), Some(&source)) =
                (t.dir != TensorDir::In, self.storage.get(i), buffers.get(i), self.tensors.get(i))
            {
                let array = used.get(source);
                storage.gather(array.dtype().size(), buffer.bytes(), array.bytes_mut());
            }
        }
    }
}

/// Elements of one place that differ.
fn repeated(t: &TensorData, array: &Tensor, o: &Overlap) -> Diagnostic {
    let shown = |at: &[u64]| {
        let at: Vec<usize> = at.iter().map(|&n| n as usize).collect();
        let bits = array.offset(&at).map_or(0, |k| array.get_bits(k));
        format!("{at:?} = {}", ptoc_tensor::scalar::format_bits(array.dtype(), bits))
    };
    let message = format!("the layout of `{}` repeats elements, and its array does not", t.name);
    Diagnostic::error(codes::REPEATED_ELEMENTS, t.span, message)
        .with_label(format!("{} and {} are one element", shown(&o.first), shown(&o.second)))
        .with_help("give an array that is equal along the modes of stride 0, such as one of `np.broadcast_to`")
}

fn interpret(
    session: &mut Session,
    step: &Step,
    used: &mut Used<'_>,
    buffers: &mut [Option<Tensor>],
    (schedule, print, observer): How<'_>,
    total: &mut Total,
) -> Result<Ending, Box<Diagnostic>> {
    let mut args = Vec::new();
    for (&source, buffer) in step.tensors.iter().zip(buffers.iter()) {
        let t = buffer.as_ref().unwrap_or(used.get(source));
        let shape = t.shape().iter().map(|&n| n as u64).collect();
        // What exceeds the memory is refused before anyone looks at the data.
        let data = if t.bytes().len() as u64 > MEMORY { Vec::new() } else { t.bytes().to_vec() };
        args.push(ptoc_interp::TensorArg { dtype: t.dtype(), shape, data });
    }
    let target = ptoc_placement::memories::seen_by(&step.kernel, &session.target).into_owned();
    let capacity = Loc::ALL.into_iter().map(|loc| (loc, target.memory(loc).capacity)).collect();
    // Whoever looks on knows the statements of the plan's kernel, and sees them one after another.
    let physical = if observer.is_some() { None } else { step.pipes(session, schedule) };
    let (physical, pipes) = physical.unzip();
    let kernel = physical.as_ref().unwrap_or(&step.kernel);
    let mut launch = ptoc_interp::Launch {
        tensors: args,
        dims: step.dims.clone(),
        scalars: step.scalars.iter().map(|&bits| Some(bits)).collect(),
        options: ptoc_interp::Options {
            memory: MEMORY,
            capacity,
            storage: step.storage.clone(),
            pipes,
            overlap: true,
            ..ptoc_interp::Options::default()
        },
        print,
    };
    let outcome = match observer {
        Some(observer) => ptoc_interp::run_observed(kernel, &mut launch, observer),
        None => ptoc_interp::run(kernel, &mut launch).map_err(End::Trap),
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(End::Stopped) => return Ok(Ending::Stopped),
        Err(End::Trap(trap)) => return Err(Box::new(step.debug.trapped_in(&step.kernel, blamed(kernel, &trap)))),
    };
    for ((arg, &source), buffer) in launch.tensors.iter().zip(&step.tensors).zip(buffers) {
        buffer.as_mut().unwrap_or(used.get(source)).bytes_mut().copy_from_slice(&arg.data);
    }
    for u in &outcome.unwritten {
        session.diagnostics.push(unwritten(step, u));
    }
    total.timed.extend(outcome.timing.map(|timing| Timed::new(kernel, timing)));
    let (s, total) = (outcome.stats, &mut total.counts);
    total.steps += s.steps;
    total.bytes_read += s.bytes_read;
    total.bytes_written += s.bytes_written;
    total.bytes_moved += s.bytes_moved;
    for (name, n) in s.instructions {
        *total.instructions.entry(name).or_default() += n;
    }
    Ok(Ending::Done)
}

/// A trap as a diagnostic. Where the compiler has ordered the pipes, what is wrong with that is not the author's
/// mistake.
fn blamed(kernel: &Kernel, trap: &Trap) -> Diagnostic {
    let d = trap.to_diagnostic();
    if kernel.sync == SyncMode::Inserted && trap.code.as_str().starts_with("PA-112") {
        let d = Diagnostic { fixes: Vec::new(), ..d };
        return d.with_note(
            "a bug of ptoc: the compiler has ordered these pipes, and the program is not at fault: please report it",
        );
    }
    d
}

/// Launches a step on this machine; the time is that of the launch alone.
fn launch(
    step: &Step,
    kernel: &ptoc_cpu::CompiledKernel,
    used: &mut Used<'_>,
    buffers: &mut [Option<Tensor>],
    threads: usize,
    print: Option<&mut dyn FnMut(&str)>,
) -> Result<Duration, Box<Diagnostic>> {
    let params: Vec<i64> = step.dims.iter().copied().chain(step.scalars.iter().map(|&bits| bits as i64)).collect();
    let tensors: Vec<ptoc_exec::TensorArg> = (step.tensors.iter().zip(buffers))
        .map(|(&source, buffer)| ptoc_exec::TensorArg::new(buffer.as_mut().unwrap_or(used.get(source)).bytes_mut()))
        .collect();
    let mut sink = print.map(|print| move |event: PrintEvent| print(&event.line()));
    let print = sink.as_mut().map(|sink| sink as &mut dyn FnMut(PrintEvent));
    let launch = ptoc_exec::Launch { params: &params, tensors: &tensors, threads, print };
    let begin = Instant::now();
    // SAFETY: `tensors` point at arrays of `used` or at `buffers`, which are borrowed for the launch. The analysis
    // admits no tensor twice in one launch. `Plan::new` has checked that their shapes are those of the kernel for these
    // parameters, `Step::buffers` makes buffers of the length that the kernel knows, and lowered code stays inside them
    // or fails a check.
    match unsafe { kernel.launch(launch) } {
        Ok(()) => Ok(begin.elapsed()),
        Err(e) => {
            let module = step.module.as_ref().expect("it has run");
            Err(failed(step, &step.kernel, |row| module.checks[row].id, e))
        }
    }
}

/// Why a launch did not complete; `check` is the number of the check in `kernel` that a row of the code's table is of.
pub(super) fn failed(
    step: &Step,
    kernel: &Kernel,
    check: impl Fn(usize) -> u32,
    error: ptoc_exec::LaunchError,
) -> Box<Diagnostic> {
    let failure = match ptoc_cpu::diagnose(error) {
        Ok(mut d) => {
            d.span.get_or_insert(step.kernel.span);
            return Box::new(d);
        }
        Err(failure) => failure,
    };
    let check = &kernel.checks[CheckId::from_u32(check(failure.check as usize))];
    let fill = |text: &str| {
        failure
            .args
            .iter()
            .enumerate()
            .fold(text.to_owned(), |text, (n, arg)| text.replace(&format!("{{{n}}}"), &arg.to_string()))
    };
    let trap = Trap {
        help: check.help.as_deref().map(fill),
        block: failure.block.map(|_| failure.coords.clone()),
        ..Trap::new(check.code, check.span, fill(&check.message))
    };
    Box::new(step.debug.trapped_in(&step.kernel, trap.to_diagnostic()))
}

/// An `out` argument that a launch did not fill.
pub(super) fn unwritten(step: &Step, u: &Unwritten) -> Diagnostic {
    let t = &step.kernel.tensors[u.tensor];
    let first: Vec<String> = u.first.iter().map(u64::to_string).collect();
    let (verb, noun) = if u.count == 1 { ("was", "element") } else { ("were", "elements") };
    Diagnostic::warning(
        codes::UNWRITTEN_OUTPUT,
        t.span,
        format!("{} {noun} of `{}` {verb} never written, first [{}]", u.count, t.name, first.join(", ")),
    )
    .with_help("let the grid cover the whole tensor, or declare it `inout`")
}
