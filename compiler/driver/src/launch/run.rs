//! Running a plan on a backend.

use super::order::Position;
use super::pipes::{Schedule, Timed};
use super::plan::Plan;
use super::planned::PlannedLaunch;
use super::tensors::Used;
use super::workspace::{Locals, Workspace};
use crate::backend::holes::OpenLaunch;
use crate::backend::{BackendRef, Compiled, DeviceCode, Ending, ProgramRun, SharedCode, pim, wrong_backend};
use crate::session::{CompilationUnit, Failed, Session};
use crate::trace::milliseconds;
use ptoc_analysis::TensorSource;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_interp::{Observer, Unwritten};
use ptoc_ir::tile::TensorId;
use ptoc_tensor::Tensor;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is kept of a run on units in memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keep {
    /// Its timeline.
    pub trace: bool,
    /// What every bank did when, for a page; its commands one by one from this tick on.
    pub history: Option<u64>,
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
    /// Their time alone: nothing is computed, and the tensors stay as they are.
    pub timing_only: bool,
}

/// A plan with what a backend has compiled it to.
pub struct CompiledPlan<'p> {
    plan: &'p Plan,
    code: Compiled,
    /// Tensors of each launch that it is not known to fill.
    unfilled: Vec<Vec<TensorId>>,
    /// Where the program's own tensors are.
    workspace: Workspace,
}

/// The code of a launch that threads of one process share.
#[derive(Clone)]
pub struct SharedLaunch {
    code: Arc<dyn SharedCode>,
    /// Tensors that it is not known to fill.
    unfilled: Vec<TensorId>,
}

impl SharedLaunch {
    /// Executes the launch on the tensors that it chooses from; what it has left unwritten, as diagnostics. `program`:
    /// it is one of several. `print` gets what the kernel prints.
    pub fn execute(
        &self,
        (step, program): (&PlannedLaunch, bool),
        used: &mut Used<'_>,
        buffers: &mut [Option<Tensor>],
        threads: usize,
        print: &mut dyn FnMut(&str),
    ) -> Result<Vec<Diagnostic>, Box<Diagnostic>> {
        let open = OpenLaunch { step, unfilled: &self.unfilled, program };
        open.run(used, buffers, Some(print), &|used, buffers, print| {
            self.code.execute(step, used, buffers, threads, print)
        })
    }
}

/// Whoever looks on at a run: an observer for each launch that the interpreter executes.
pub trait Observers {
    /// The observer of the launch of this number.
    fn of_launch(&mut self, launch: usize) -> Box<dyn Observer + '_>;
}

/// One launch, as a backend gets it.
pub struct BackendLaunch<'l, 't> {
    /// The compilation, and its diagnostics.
    pub session: &'l mut Session,
    /// The number among the plan's.
    pub number: usize,
    /// What is launched, and on what.
    pub step: &'l PlannedLaunch,
    /// It is one of a program's.
    pub program: bool,
    /// The tensors that it chooses from.
    pub used: &'l mut Used<'t>,
    /// In place of these the buffers of arguments that have a layout of their own, by argument.
    pub buffers: &'l mut [Option<Tensor>],
    /// Its tensors that it is not known to fill.
    pub unfilled: &'l [TensorId],
    /// How to run.
    pub options: &'l RunOptions,
    /// Gets what the kernel prints, if anyone does.
    pub print: Option<&'l mut dyn FnMut(&str)>,
    /// Looks on.
    pub observer: Option<&'l mut dyn Observer>,
    /// What all launches of the run have come to.
    pub total: &'l mut Total,
}

/// What the interpreter has seen in all launches.
#[derive(Default)]
pub struct Total {
    /// Counts.
    pub counts: ptoc_interp::Stats,
    /// By the target's model of time.
    pub timed: Vec<Timed>,
}

/// How long launches take.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LaunchTimes {
    /// All of them.
    pub launches: Duration,
    /// That of each of the plan's, and how often it was launched; of a plan that is one artefact none.
    pub steps: Vec<(Duration, u64)>,
    /// Laying arguments out, and copies of windows.
    pub around: Duration,
}

/// What a run gives beside the tensors.
#[derive(Clone, Debug)]
pub struct RunOutcome {
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
    /// What would be better with other kernels.
    pub fn advice(&self, session: &mut Session, unit: &CompilationUnit) -> Vec<Diagnostic> {
        match &self.code {
            Compiled::Program(program) => program.advice(session, unit, self.plan),
            _ => Vec::new(),
        }
    }

    /// Compiles a plan on a backend.
    pub fn new(session: &mut Session, plan: &'p Plan, backend: BackendRef) -> Result<CompiledPlan<'p>, Failed> {
        if !backend.serves(&session.target) {
            let d = wrong_backend(&session.target, backend);
            return session.fail(d);
        }
        let mut code = backend.compile(session, plan)?;
        let begin = session.clock.now();
        let unfilled: Vec<Vec<TensorId>> = plan.steps.iter().map(|step| session.unfilled(&step.kernel)).collect();
        session.clock.phase("outputs", begin);
        if let Compiled::Launches(code) = &mut code {
            code.expect(session, plan, &unfilled)?;
        }
        let workspace = plan.workspace(&unfilled);
        Ok(CompiledPlan { plan, code, unfilled, workspace })
    }

    /// Compiles a plan for the sanitizer.
    pub fn sanitized(session: &mut Session, plan: &'p Plan, backend: BackendRef) -> Result<CompiledPlan<'p>, Failed> {
        let code = backend.sanitized(session, plan)?;
        let workspace = Workspace::separate(&plan.locals);
        Ok(CompiledPlan { plan, code, unfilled: Vec::new(), workspace })
    }

    /// Runs all launches. `tensors` are those of the arguments and hold the results afterwards; of
    /// [`RunOptions::timing_only`] there are none. `print` gets what the kernels print. `observers` see what the
    /// interpreter does.
    pub fn run(
        &self,
        session: &mut Session,
        tensors: &mut [Tensor],
        options: &RunOptions,
        print: &mut dyn FnMut(&str),
        mut observers: Option<&mut dyn Observers>,
    ) -> Result<RunOutcome, Failed> {
        let code = match &self.code {
            Compiled::Launches(code) => code,
            Compiled::Program(program) => {
                if !options.timing_only {
                    let mut locals = self.locals(session)?;
                    self.plan.check_ahead(session, tensors, &mut locals.tensors)?;
                }
                let (plan, unfilled) = (self.plan, &self.unfilled[..]);
                return program.run(session, ProgramRun { plan, tensors, unfilled, options, print });
            }
        };
        let mut locals = self.locals(session)?;
        let locals = &mut locals.tensors[..];
        let mut stats = Map::new();
        let mut total = Total::default();
        let mut run_time = Duration::ZERO;
        let mut blocks = 0u64;
        let held = self.plan.check_ahead(session, tensors, locals)?;
        code.begin();
        let mut position = Position::start(self.plan, &self.workspace);
        while let Some((number, step)) = position.next(Some(&**code), tensors, locals).or_else(|d| session.fail(*d))? {
            let step = &*step;
            blocks = blocks.saturating_add(step.blocks);
            let mut used = Used::of(tensors, locals);
            let begin = session.clock.now();
            let laid = |source| step.lays_out(source);
            let mut buffers = match code.fetch(step, &mut used, &laid).and_then(|()| step.buffers(&mut used)) {
                Ok(buffers) => buffers,
                Err(d) => return session.fail(*d),
            };
            session.clock.phase("lay out arrays", begin);
            if step.contents.is_some() && !held.contains(&number) {
                let mine = |source| step.tensors.contains(&source);
                code.fetch(step, &mut used, &mine).or_else(|d| session.fail(*d))?;
                step.check_contents(session, &mut used)?;
            }
            let begin = session.clock.now();
            let mut observer = observers.as_mut().map(|o| o.of_launch(number));
            let mut launch = BackendLaunch {
                session,
                number,
                step,
                program: self.plan.program,
                used: &mut used,
                buffers: &mut buffers,
                unfilled: self.unfilled.get(number).map_or(&[], |of| &of[..]),
                options,
                print: Some(&mut *print),
                observer: observer.as_mut().map(|o| &mut **o as &mut dyn Observer),
                total: &mut total,
            };
            let result = code.launch(&mut launch);
            drop(observer);
            // Of a tensor with elements in a buffer the launch may have written others where they are.
            let result = result.and_then(|ending| code.fetch(step, &mut used, &laid).map(|()| ending));
            run_time += session.clock.phase(format!("run {}", step.kernel.name), begin);
            let begin = session.clock.now();
            step.collect(&mut used, &buffers);
            code.changed(&laid);
            session.clock.phase("lay out arrays", begin);
            match result {
                Ok(Ending::Done) => {}
                Ok(Ending::Stopped) => {
                    return Ok(RunOutcome { run_time, stats, timed: total.timed, simulated: None, stopped: true });
                }
                Err(d) => return session.fail(*d),
            }
        }
        if let Some(last) = self.plan.steps.last()
            && let Err(d) = code.fetch(last, &mut Used::of(tensors, locals), &is_argument)
        {
            return session.fail(*d);
        }
        counts(blocks, &mut stats, run_time);
        code.stats(&total, options, &session.sources, &mut stats);
        Ok(RunOutcome { run_time, stats, timed: total.timed, simulated: None, stopped: false })
    }

    /// Memory for the program's own tensors.
    pub fn locals(&self, session: &mut Session) -> Result<Locals, Failed> {
        self.workspace.allocate(&self.plan.locals).or_else(|d| session.fail(*d))
    }

    /// Where the program's own tensors are.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// Runs all launches for the sake of their times, which do not count what is done around them. `tensors` hold the
    /// results afterwards. `locals` are those of [`CompiledPlan::locals`]: made once, so that their pages are not
    /// touched for the first time in every launch. A plan that is one artefact is run as a whole. With `resident`,
    /// nobody has changed a tensor since the last time, and nobody looks at the results: arrays stay on a device.
    pub fn time(
        &self,
        session: &mut Session,
        tensors: &mut [Tensor],
        locals: &mut [Tensor],
        threads: usize,
        resident: bool,
    ) -> Result<LaunchTimes, Failed> {
        let options = RunOptions { threads, ..RunOptions::default() };
        let mut times = LaunchTimes::default();
        let Compiled::Launches(code) = &self.code else {
            times.launches = self.run(session, tensors, &options, &mut |_| {}, None)?.run_time;
            return Ok(times);
        };
        if !resident {
            code.begin();
        }
        times.steps.resize(self.plan.steps.len(), (Duration::ZERO, 0));
        let mut position = Position::timed(self.plan, &self.workspace);
        while let Some((number, step)) = position.next(Some(&**code), tensors, locals).or_else(|d| session.fail(*d))? {
            let step = &*step;
            let mut used = Used::of(tensors, locals);
            let laid = |source| step.lays_out(source);
            let begin = Instant::now();
            let laid_out = code.fetch(step, &mut used, &laid).and_then(|()| step.buffers(&mut used));
            let copies = laid_out.as_ref().is_ok_and(|buffers| buffers.iter().any(Option::is_some));
            times.around += if copies { begin.elapsed() } else { Duration::ZERO };
            let timed = laid_out.and_then(|mut buffers| {
                let time = code.time(&mut BackendLaunch {
                    session,
                    number,
                    step,
                    program: self.plan.program,
                    used: &mut used,
                    buffers: &mut buffers,
                    unfilled: &[],
                    options: &options,
                    print: None,
                    observer: None,
                    total: &mut Total::default(),
                })?;
                let begin = Instant::now();
                code.fetch(step, &mut used, &laid)?;
                step.collect(&mut used, &buffers);
                times.around += if copies { begin.elapsed() } else { Duration::ZERO };
                code.changed(&laid);
                Ok(time)
            });
            match timed {
                Ok(time) => {
                    times.launches += time;
                    times.steps[number].0 += time;
                    times.steps[number].1 += 1;
                }
                Err(d) => return session.fail(*d),
            }
        }
        if let Some(last) = self.plan.steps.last()
            && !resident
            && let Err(d) = code.fetch(last, &mut Used::of(tensors, locals), &is_argument)
        {
            return session.fail(*d);
        }
        Ok(times)
    }

    /// What it was made of.
    pub fn plan(&self) -> &'p Plan {
        self.plan
    }

    /// The code of each launch for any thread, where every launch is known to fill its outputs: see
    /// [`Launches::shared`](crate::backend::Launches::shared).
    pub fn shared(&self) -> Option<Vec<SharedLaunch>> {
        let Compiled::Launches(code) = &self.code else { return None };
        let launches = code.shared()?.into_iter().zip(&self.unfilled);
        Some(launches.map(|(code, unfilled)| SharedLaunch { code, unfilled: unfilled.clone() }).collect())
    }

    /// The code of all launches for arrays that are on a device already.
    pub fn on_device(&self) -> Option<Arc<dyn DeviceCode>> {
        match &self.code {
            Compiled::Launches(code) => code.on_device(),
            Compiled::Program(_) => None,
        }
    }

    /// Bytes of machine code, which launches of one kernel share.
    pub fn code_bytes(&self) -> usize {
        match &self.code {
            Compiled::Launches(code) => code.code_bytes(),
            Compiled::Program(_) => 0,
        }
    }
}

/// Of the program's own tensors nobody sees what they hold when it has ended.
fn is_argument(source: TensorSource) -> bool {
    matches!(source, TensorSource::Arg(_))
}

/// What every backend counts.
pub fn counts(blocks: u64, stats: &mut Map<String, Value>, run_time: Duration) {
    stats.insert("run_ms".into(), json!(milliseconds(run_time)));
    stats.insert("blocks".into(), json!(blocks));
}

/// An `out` argument that a launch did not fill.
pub fn unwritten(step: &PlannedLaunch, u: &Unwritten) -> Diagnostic {
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
