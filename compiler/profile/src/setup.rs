//! What is measured, and on what.

use crate::limits::Limits;
use ptoc_analysis::TensorSource;
use ptoc_diagnostics::{Diagnostic, plural};
use ptoc_driver::backend::{BackendRef, Timed};
use ptoc_driver::defs::Definition;
use ptoc_driver::launch::{Arrays, Expected, Plan, PlannedLaunch, Tolerance, open_arrays, open_expected};
use ptoc_driver::project;
use ptoc_driver::session::{CompilationUnit, EntryPoint, Failed, Session};
use ptoc_exec::Vectors;
use ptoc_ir::loops::work::{self, OpCount, Unknown, Work};
use ptoc_tensor::Tensor;
use std::path::PathBuf;

/// Statements of loops that are walked to count a launch's operations: about a second.
const FUEL: u64 = 50_000_000;

/// A kernel, its arguments, and how long it is launched.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The command, for messages: `bench`, `profile`.
    pub command: &'static str,
    /// The source file.
    pub file: PathBuf,
    /// Kernel or program; the only one if there is no name.
    pub kernel: Option<String>,
    /// The target's name; else the project says it.
    pub target: Option<String>,
    /// Definitions.
    pub define: Vec<(String, String)>,
    /// Arrays of arguments; inputs that are not given are random.
    pub input: Vec<(String, PathBuf)>,
    /// Arrays that results are compared with.
    pub expect: Vec<(String, PathBuf)>,
    /// Where random inputs start from.
    pub random: u64,
    /// Bits of the vectors in machine code.
    pub vectors: Vectors,
    /// Products of f16 and bf16 are chains of multiply-adds.
    pub exact: bool,
    /// Inputs that are in a memory with units before the launches.
    pub resident: Vec<String>,
    /// Seconds of launches for a kernel.
    pub seconds: f64,
    /// Tolerance of `ensures` that have none of their own; `None`: results are not verified.
    pub verify: Option<Tolerance>,
}

impl Setup {
    /// A session with more definitions.
    ///
    /// # Errors
    /// An unknown target, or a definition that is none.
    pub fn session(&self, more: &[(String, String)]) -> Result<Session, Box<Diagnostic>> {
        let all = self.define.iter().chain(more);
        let definitions: Vec<Definition> =
            all.map(|(name, value)| Definition { name: name.clone(), value: value.clone() }).collect();
        let mut session = Session::in_project(project::find(&self.file), self.target.as_deref(), &definitions)?;
        session.vectors = self.vectors;
        session.exact = self.exact;
        session.resident = self.resident.clone();
        Ok(session)
    }

    /// The file, its kernel checked against the definitions, and the arrays that are given.
    pub(crate) fn load(&self, session: &mut Session) -> Result<(CompilationUnit, Arrays), Failed> {
        let unit = session.load_code(&self.file)?;
        let entry = match unit.entry(self.kernel.as_deref(), self.command) {
            Ok(entry) => entry,
            Err(d) => return session.fail(*d),
        };
        session.check_definitions(&[entry], &unit);
        let arrays = open_arrays(session, &entry, "--in", &self.input);
        self.open_expected(session, &entry)?;
        if session.diagnostics.has_errors() {
            return Err(Failed);
        }
        Ok((unit, arrays?))
    }

    /// The arrays that are given, opened anew: a plan takes them.
    pub(crate) fn given(&self, session: &mut Session) -> Result<Arrays, Box<Diagnostic>> {
        let opened = session.load_code(&self.file).and_then(|unit| {
            let entry = unit.entry(self.kernel.as_deref(), self.command).or_else(|d| session.fail(*d))?;
            open_arrays(session, &entry, "--in", &self.input)
        });
        opened.map_err(|Failed| Box::new(first_error(session)))
    }

    /// A plan with more definitions, in a session of its own; the first error if it is refused.
    pub(crate) fn plan(&self, more: &[(String, String)], arrays: &Arrays) -> Result<(Session, Plan), Box<Diagnostic>> {
        let mut session = self.session(more)?;
        let plan = session.load_code(&self.file).and_then(|unit: CompilationUnit| {
            let entry = unit.entry(self.kernel.as_deref(), self.command).or_else(|d| session.fail(*d))?;
            session.check_definitions(&[entry], &unit);
            if session.diagnostics.has_errors() {
                return Err(Failed);
            }
            let plan = Plan::new(&mut session, &unit, &entry, arrays, true)?;
            let expected = self.open_expected(&mut session, &entry)?;
            plan.check_expected(&mut session, &expected)?;
            Ok(plan)
        });
        plan.map_err(|Failed| Box::new(first_error(&mut session))).map(|plan| (session, plan))
    }

    fn open_expected(&self, session: &mut Session, entry: &EntryPoint<'_>) -> Result<Arrays, Failed> {
        if self.expect.is_empty() {
            return Ok(Arrays::new());
        }
        open_expected(session, entry, "--expect", &mut Arrays::new(), &self.expect)
    }

    /// What the results of a plan are compared with beside `ensures`.
    pub(crate) fn expected(&self, session: &mut Session, plan: &Plan) -> Result<Vec<Expected>, Failed> {
        if self.expect.is_empty() {
            return Ok(Vec::new());
        }
        let unit = session.load_code(&self.file)?;
        let entry = unit.entry(self.kernel.as_deref(), self.command).or_else(|d| session.fail(*d))?;
        let opened = self.open_expected(session, &entry)?;
        plan.read_expected(session, opened)
    }

    /// The arrays of a launch.
    pub(crate) fn inputs(
        &self,
        session: &mut Session,
        plan: &Plan,
        arrays: &mut Arrays,
    ) -> Result<Vec<Tensor>, Failed> {
        let tensors = plan.tensors(session, arrays, self.random)?;
        plan.check_inputs(session, &tensors)?;
        Ok(tensors)
    }
}

/// Moves what a session has found, but for errors, to another one, each once.
pub(crate) fn tell(found: &mut Session, session: &mut Session) {
    for d in std::mem::take(&mut found.diagnostics).iter().filter(|d| !d.is_error()) {
        let same = |other: &Diagnostic| (other.code, &other.message, other.span) == (d.code, &d.message, d.span);
        if !session.diagnostics.iter().any(same) {
            session.diagnostics.push(d.clone());
        }
    }
}

/// The first error of a session in which something has failed.
pub(crate) fn first_error(session: &mut Session) -> Diagnostic {
    let found = std::mem::take(&mut session.diagnostics);
    let error = found.iter().find(|d| d.is_error()).cloned();
    error.expect("what fails has said why")
}

/// What launches are made by.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// The backend.
    pub backend: BackendRef,
    /// Whose time is taken.
    pub timed: Timed,
    /// Threads of this host.
    pub threads: usize,
}

impl Machine {
    /// The threads, if a launch is made by them.
    pub(crate) fn host_threads(&self) -> Option<usize> {
        (self.timed == Timed::Host).then_some(self.threads)
    }

    /// What the machine of the launches can do at most.
    pub(crate) fn limits(&self, bytes: usize, exact: bool) -> Option<Limits> {
        match self.timed {
            Timed::Host => Some(Limits::measure(bytes, self.threads, exact)),
            Timed::Device => self.backend.device_limits(bytes).map(Limits::of_device),
            Timed::Simulated => None,
        }
    }

    /// `scale on cpu (a2a3)`
    pub(crate) fn head(&self, kernel: &str, target: &str) -> String {
        format!("{kernel} on {} ({target})", self.backend.name())
    }

    /// `, 2 threads`, if there are such.
    pub(crate) fn tail(&self) -> String {
        self.host_threads().map(|n| format!(", {}", plural(n, "thread"))).unwrap_or_default()
    }
}

/// The bytes of a launch's tensors, as far as they are arrays that nothing writes and that lie as they are.
fn read_only<'t>(plan: &Plan, step: &PlannedLaunch, tensors: &'t [Tensor]) -> Vec<Option<&'t [u8]>> {
    let bytes = |(n, source): (usize, &TensorSource)| match source {
        TensorSource::Arg(at) => {
            let moved = step.windows[n].is_some() || step.storage[n].is_some();
            (!moved && !plan.arguments[*at].is_output()).then(|| tensors[*at].bytes())
        }
        _ => None,
    };
    step.tensors.iter().enumerate().map(bytes).collect()
}

/// What each launch does on these arrays.
pub(crate) fn work(plan: &Plan, tensors: &[Tensor]) -> Result<Vec<Work>, Unknown> {
    let of = |step: &PlannedLaunch| {
        let module = step.module.as_ref().ok_or(Unknown::Data)?;
        let scalars = step.scalars.iter().map(|&bits| bits as i64);
        let params: Vec<i64> = step.dims.iter().copied().chain(scalars).collect();
        work::work(module, &params, &read_only(plan, step, tensors), FUEL)
    };
    plan.steps.iter().map(of).collect()
}

/// Operations of all launches.
pub(crate) fn operations(work: &[Work]) -> OpCount {
    let mut total = OpCount::default();
    work.iter().for_each(|work| total += work.operations);
    total
}
