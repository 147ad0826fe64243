//! Backends: what executes kernels. Each is an implementation of [`Backend`], and an entry of the registry.
//!
//! A backend takes the kernels of a plan in the form that its [`Pipeline`] leaves, and compiles them to something that
//! is launched. It says which targets have its numbers, which stages of its own `ptoc emit` shows, and what it can do
//! beyond executing. Commands ask for these things, and never which backend it is.

#[cfg(feature = "cpu")]
mod cpu;
#[cfg(any(feature = "cpu", feature = "gpu"))]
mod failure;
#[cfg(feature = "gpu")]
mod gpu;
pub(crate) mod holes;
mod interp;
mod left_out;
#[cfg(feature = "pim")]
pub mod pim;
#[cfg(feature = "pim")]
mod pim_file;
#[cfg(feature = "pim")]
mod pim_usage;
#[cfg(feature = "pim")]
mod pim_windows;
mod registry;

pub use left_out::Part;
pub use registry::{
    CPU, GPU, INTERP, PIM, all, choose, default_of, named, register, serving, with_left_out, wrong_backend, wrong_stage,
};

/// Without units in memory nothing runs on them.
#[cfg(not(feature = "pim"))]
pub mod pim {
    /// What the simulator says of a program: there is none.
    #[derive(Clone, Debug)]
    pub enum Simulated {}
}

use crate::build::{BuildUnit, Built, Form, Request};
use crate::launch::{BackendLaunch, Plan, PlannedLaunch, RunOptions, RunOutcome, Total, Used, Workspace};
use crate::session::{CompilationUnit, Failed, Session};
use crate::stages::BackendStage;
#[cfg(any(feature = "cpu", feature = "gpu"))]
pub use failure::diagnose;
#[cfg(any(feature = "cpu", feature = "gpu"))]
use failure::failed;
use ptoc_analysis::TensorSource;
use ptoc_diagnostics::{Diagnostic, FileId, SourceMap, Span, codes};
use ptoc_ir::tile::{Kernel, TensorId};
use ptoc_isa::{Preset, Target};
use ptoc_passes::Prepared;
use ptoc_passes::pipeline::Pipeline;
use ptoc_tensor::Tensor;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A registered backend.
pub type BackendRef = &'static dyn Backend;

/// What executes kernels.
pub trait Backend: Sync {
    /// The name, as `--backend` has it.
    fn name(&self) -> &'static str;

    /// What it is, in some words for the help of `--backend`.
    fn about(&self) -> &'static str;

    /// The part of ptoc that it is, where a build has left that out: it is none then, and only says so.
    fn left_out(&self) -> Option<&Part> {
        None
    }

    /// Whether it has the numbers of this target.
    fn serves(&self, target: &Target) -> bool;

    /// The target that stands for one it does not serve, where a test line leaves the choice.
    fn home(&self) -> Option<&'static str> {
        None
    }

    /// What its kernels run on, where that is not this host; `stand_in` as [`Session::stand_in`].
    fn machine(&self, stand_in: bool) -> Option<String> {
        let _ = stand_in;
        None
    }

    /// The device that a preset of this name stands for, where it is one of a target that it serves; `at` is where the
    /// name stands.
    fn preset(&self, name: &str, at: Span) -> Result<Preset, Box<Diagnostic>> {
        let message = format!("`{}` has no devices, and so none of the name `{name}`", self.name());
        Err(Box::new(Diagnostic::error(codes::SETTING_VALUE, at, message)))
    }

    /// The DRAM of a target that this file describes: its `[dram]`, or the preset that it names.
    fn memory(&self, file: FileId, text: &str, target: &Target) -> Result<Preset, Vec<Diagnostic>> {
        let _ = text;
        let message = format!("`{}`, which `{}` would run on, has no devices", self.name(), target.name);
        Err(vec![Diagnostic::error(codes::DEVICE_FILE, Span::new(file, 0, 0), message)])
    }

    /// What it can do beyond executing.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// What its device can do at most, measured on it, where [`Timed::Device`] is whose time a launch takes; a copy has
    /// so many bytes.
    fn device_limits(&self, bytes: usize) -> Option<DeviceLimits> {
        let _ = bytes;
        None
    }

    /// Reads memory of a device of its own, once what is in a stream before is done.
    ///
    /// # Safety
    /// The stream is one of the device, and there are so many bytes at the address.
    unsafe fn read_from(
        &self,
        (device, stream): (i32, u64),
        address: u64,
        bytes: &mut [u8],
    ) -> Result<(), Box<Diagnostic>> {
        let _ = (device, stream, address, bytes);
        let message = format!("`{}` has no devices whose memory could be read", self.name());
        Err(Box::new(Diagnostic::global(codes::ARRAY_NOT_TAKEN, message)))
    }

    /// What the middle end makes of a kernel for it. `None`: it takes kernels as they are placed, whatever else is made
    /// of them for the target's own backend.
    fn pipeline(&self) -> Option<Pipeline>;

    /// The stages of its own that `ptoc emit` shows.
    fn stages(&self) -> &'static [BackendStage] {
        &[]
    }

    /// Why the backend has no code for a kernel that the language and the target allow; what [`Backend::compile`] of it
    /// would say.
    fn refuses(&self, prepared: &Prepared) -> Option<Box<Diagnostic>> {
        let _ = prepared;
        None
    }

    /// The same of a kernel whose sizes are not known, for a back end that compiles whole launches: what none of them
    /// can have code for.
    fn refuses_at_any_size(&self, target: &Target, kernel: &Kernel) -> Option<Box<Diagnostic>> {
        let _ = (target, kernel);
        None
    }

    /// One of its stages of a kernel, as text.
    fn emit_kernel(&self, session: &mut Session, prepared: &Prepared, stage: &BackendStage) -> Result<String, Failed> {
        let _ = prepared;
        let d = wrong_stage(&session.target, stage.name);
        session.fail(d)
    }

    /// What it makes of a kernel last, line by line; `None` where that is made of whole plans.
    fn listing(&self, session: &mut Session, prepared: &Prepared) -> Result<Option<Listing>, Failed> {
        let Some(last) = self.stages().last().filter(|stage| !stage.plan) else { return Ok(None) };
        let text = self.emit_kernel(session, prepared, last)?;
        let lines = text.lines().map(|text| (text.to_owned(), Vec::new())).collect();
        Ok(Some(Listing { name: last.name.into(), about: last.about.into(), lines }))
    }

    /// One of its stages of a whole plan.
    fn emit_plan(&self, session: &mut Session, plan: &Plan, stage: &BackendStage) -> Result<Artefact, Failed> {
        let _ = plan;
        let d = wrong_stage(&session.target, stage.name);
        session.fail(d)
    }

    /// The kinds of files that it makes of kernels ahead of time.
    fn forms(&self) -> &'static [Form] {
        &[]
    }

    /// One of them.
    fn build(&self, session: &mut Session, unit: &BuildUnit, request: &Request) -> Result<Built, Failed> {
        let _ = unit;
        let message = format!("the backend `{}` does not make `.{}` files", self.name(), request.extension);
        session.fail(Diagnostic::global(codes::NOT_AHEAD_OF_TIME, message))
    }

    /// What its machine cannot do of a plan, for `ptoc check`, which asks where [`Capabilities::limits`] says so; else
    /// what it would do better with another kernel.
    fn check(
        &self,
        session: &mut Session,
        unit: &CompilationUnit,
        plan: &Plan,
    ) -> Result<Vec<Diagnostic>, Box<Diagnostic>> {
        let _ = (session, unit, plan);
        Ok(Vec::new())
    }

    /// Compiles a plan.
    fn compile(&self, session: &mut Session, plan: &Plan) -> Result<Compiled, Failed>;

    /// Compiles a plan for the sanitizer, which watches each access, where [`Capabilities::sanitizer`] says so.
    fn sanitized(&self, session: &mut Session, plan: &Plan) -> Result<Compiled, Failed> {
        let _ = plan;
        let message = format!("the backend `{}` does not compile for the sanitizer", self.name());
        session.fail(Diagnostic::global(codes::BACKEND_TARGET, message))
    }

    /// Why it does not serve a target.
    fn refusal(&self, target: &Target) -> Refusal {
        Refusal { why: format!("`{}` has not the numbers of {}", self.name(), target.name), instead: None }
    }

    /// Why a kernel for one of its targets has not every stage; `instead` says which there are.
    fn other_stages(&self, target: &Target) -> Refusal {
        let stages: Vec<String> = self.stages().iter().map(|s| format!("`{}`", s.name)).collect();
        let instead = (!stages.is_empty()).then(|| format!("give `--stage` one of {}", stages.join(", ")));
        Refusal { why: format!("kernels for {} are compiled by `{}`", target.name, self.name()), instead }
    }

    /// A line at the end of the counts of `--stats`; it may be empty.
    fn stats_note(&self) -> &'static str {
        ""
    }
}

/// What backends can do beyond executing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Capabilities {
    /// Every access is watched: hazards and races of a kernel stop its run where they show, and do not keep it from
    /// running.
    pub watches: bool,
    /// An observer sees each statement: the debugger, `--print-tile`.
    pub observed: bool,
    /// Pipes are run, in any order that the kernel allows.
    pub pipes: bool,
    /// Compiles for the sanitizer.
    pub sanitizer: bool,
    /// Units in memory execute, and the host beside them; a page says where time and energy went.
    pub units: bool,
    /// Its machine refuses kernels that the language and the target allow, which compiling finds out.
    pub limits: bool,
    /// A launch takes a time that means something, which `ptoc bench` measures.
    pub timed: Option<Timed>,
}

/// Whose time a launch takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timed {
    /// That of threads of this host, whose limits can be measured beside it.
    Host,
    /// A device's, by its own clock.
    Device,
    /// A simulated device's, in cycles: the same in every run.
    Simulated,
}

/// Rates of a device at most.
#[derive(Clone, Debug)]
pub struct DeviceLimits {
    /// The device.
    pub name: String,
    /// Bytes a second, read and written.
    pub copy: f64,
    /// Operations a second: fused multiply-adds of f32, two each.
    pub fma: f64,
}

/// Why something is not to be had, and what is.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// A note.
    pub why: String,
    /// What to do in place of it.
    pub instead: Option<String>,
}

/// Code of a kernel.
#[derive(Clone, Debug)]
pub struct Listing {
    /// What it is called.
    pub name: String,
    /// What it is, in some words.
    pub about: String,
    /// Lines, each with the places in the source that it is made of, where that is known.
    pub lines: Vec<(String, Vec<Span>)>,
}

/// A stage of a plan.
#[derive(Clone, Debug)]
pub struct Artefact {
    /// As text.
    pub text: String,
    /// As files with [`BackendStage::extension`] hold it.
    pub binary: Option<Vec<u8>>,
}

/// What a plan is compiled to.
pub enum Compiled {
    /// Code that is launched step by step.
    Launches(Box<dyn Launches>),
    /// One artefact, which executes all steps.
    Program(Box<dyn CompiledProgram>),
}

/// Code of a plan that is launched step by step.
pub trait Launches {
    /// Gets ready for what is not proved of a plan: launches may leave elements of the tensors `unfilled` unwritten, by
    /// step, and accesses of a step that is [watched](crate::launch::PlannedLaunch::watched) may meet. Code that
    /// watches nothing refuses such steps.
    fn expect(&mut self, session: &mut Session, plan: &Plan, unfilled: &[Vec<TensorId>]) -> Result<(), Failed> {
        let _ = unfilled;
        refuse_watched(session, plan)
    }

    /// A run begins: tensors are the host's.
    fn begin(&self) {}

    /// Brings tensors that launches have left elsewhere back to the host, before it looks at them; `step` is the launch
    /// that asks, or the last one.
    fn fetch(
        &self,
        step: &PlannedLaunch,
        used: &mut Used<'_>,
        is: &dyn Fn(TensorSource) -> bool,
    ) -> Result<(), Box<Diagnostic>> {
        let _ = (step, used, is);
        Ok(())
    }

    /// The host has written tensors.
    fn changed(&self, is: &dyn Fn(TensorSource) -> bool) {
        let _ = is;
    }

    /// Executes a launch.
    fn launch(&self, launch: &mut BackendLaunch<'_, '_>) -> Result<Ending, Box<Diagnostic>>;

    /// Executes a launch for the sake of its time: nothing is printed or looked for, and what is done around the code
    /// itself does not count.
    fn time(&self, launch: &mut BackendLaunch<'_, '_>) -> Result<Duration, Box<Diagnostic>> {
        let begin = Instant::now();
        self.launch(launch)?;
        Ok(begin.elapsed())
    }

    /// Bytes of machine code.
    fn code_bytes(&self) -> usize {
        0
    }

    /// The code of each launch as what any thread may execute, without a session and beside others; `None` if there is
    /// none such, or a launch has to be looked at while it runs.
    fn shared(&self) -> Option<Vec<Arc<dyn SharedCode>>> {
        None
    }

    /// The code of all launches for arrays that are on a device already; `None` if there is none such.
    fn on_device(&self) -> Option<Arc<dyn DeviceCode>> {
        None
    }

    /// Counts of all launches, for `--stats` and `--json`.
    fn stats(&self, total: &Total, options: &RunOptions, sources: &SourceMap, stats: &mut Map<String, Value>) {
        let _ = (total, options, sources, stats);
    }
}

/// Code of a launch that threads of one process share.
pub trait SharedCode: Send + Sync {
    /// Executes the launch on the tensors that it chooses from. `print` gets what the kernel prints, if anyone does.
    fn execute(
        &self,
        step: &PlannedLaunch,
        used: &mut Used<'_>,
        buffers: &mut [Option<Tensor>],
        threads: usize,
        print: Option<&mut dyn FnMut(&str)>,
    ) -> Result<(), Box<Diagnostic>>;
}

/// Code of a plan on arrays of a device, which threads of one process share.
pub trait DeviceCode: Send + Sync {
    /// Starts all launches on a stream of the caller's, and does not wait for them, but where checks have to be read.
    ///
    /// # Errors
    /// A device that cannot run them, a check that fails, and plans that need the host between launches.
    ///
    /// # Safety
    /// The arrays of `call` have the extents and strides of the plan's arguments, and live, as the stream does, until
    /// it is done; nothing else uses what is written.
    unsafe fn start(&self, call: DeviceCall<'_>) -> Result<(), Box<Diagnostic>>;
}

/// A call on arrays of a device.
#[derive(Clone, Copy)]
pub struct DeviceCall<'c> {
    /// What is launched.
    pub plan: &'c Plan,
    /// Where the tensors of a program are.
    pub workspace: &'c Workspace,
    /// Addresses of the arguments; 0 for one that is not there.
    pub arguments: &'c [u64],
    /// The device's number.
    pub device: i32,
    /// The driver's handle of a stream; 0 is the legacy default stream.
    pub stream: u64,
}

/// Refuses a plan with a launch that must be watched, for code that watches no access.
fn refuse_watched(session: &mut Session, plan: &Plan) -> Result<(), Failed> {
    let Some(step) = plan.steps.iter().find(|step| step.watched) else { return Ok(()) };
    let name = &step.kernel.name;
    let message = format!("what `{name}` does with its bytes is not proved, and this backend watches no access");
    let d = Diagnostic::error(codes::BACKEND_TARGET, step.span, message);
    session.fail(d.with_help(PROVABLE).with_help("`--backend interp` runs it, and finds what is wrong"))
}

/// How a kernel is written whose bytes are proved.
const PROVABLE: &str = "fill what is read before it is read: of an array of tiles all, `tile Vec<f32, 8, 32>[2]` by \
    `for n in 0..2 { t[n] = 0.0; }`, and use parts of them, `t[b].valid(i, j)`";

/// Loop IR as text, with the places of what it is in bounds by.
#[cfg(any(feature = "cpu", feature = "gpu"))]
fn loop_text(session: &Session, prepared: &Prepared, module: &ptoc_ir::loops::Module) -> String {
    use ptoc_ir::loops::{SourcePosition, text};
    let mut module = module.clone();
    let own = prepared.placed.kernel.span.file;
    module.locate(|span| {
        let at = session.sources.position(span.file, span.start);
        let file = (span.file != own).then(|| session.sources.name(span.file).into());
        SourcePosition { file, line: at.line, column: at.column }
    });
    text::print(&module, false)
}

/// A plan as one artefact.
pub trait CompiledProgram {
    /// Executes it on the tensors of the arguments, which hold the results afterwards.
    fn run(&self, session: &mut Session, run: ProgramRun<'_>) -> Result<RunOutcome, Failed>;

    /// What would be better with other kernels.
    fn advice(&self, session: &mut Session, unit: &CompilationUnit, plan: &Plan) -> Vec<Diagnostic> {
        let _ = (session, unit, plan);
        Vec::new()
    }
}

/// A run of a [`CompiledProgram`].
pub struct ProgramRun<'r> {
    /// What is run.
    pub plan: &'r Plan,
    /// Tensors of the arguments.
    pub tensors: &'r mut [Tensor],
    /// Tensors of each launch that it is not known to fill.
    pub unfilled: &'r [Vec<TensorId>],
    /// How.
    pub options: &'r RunOptions,
    /// Gets what kernels print.
    pub print: &'r mut dyn FnMut(&str),
}

/// How a launch ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It is complete.
    Done,
    /// Whoever looks on has ended it.
    Stopped,
}

impl PartialEq for dyn Backend {
    fn eq(&self, other: &dyn Backend) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Backend {}

impl fmt::Debug for dyn Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
