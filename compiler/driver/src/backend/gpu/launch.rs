//! Launches of a plan's PTX, whichever machine runs them.

use super::arrays::{Arrays, Place};
use super::{card, interpreted, resident};
use crate::backend::{DeviceCode, Ending, Launches, failed, holes, refuse_watched};
use crate::launch::{BackendLaunch, Plan, PlannedLaunch, Used};
use crate::session::{Failed, Session};
use ptoc_analysis::TensorSource;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_exec::{Failure, LaunchError};
use ptoc_gpu::Obstacle;
use ptoc_ir::loops;
use ptoc_ir::tile::{TensorDir, TensorId};
use ptoc_tensor::Tensor;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What runs PTX.
#[derive(Clone, Debug)]
pub(super) enum Machine {
    /// The first device. Where there is none, a launch says so.
    Card,
    /// The interpreter of PTX, and why.
    Interpreter(String),
}

impl Machine {
    /// The card; where there is none, the interpreter if a stand-in will do.
    pub(super) fn choose(stand_in: bool) -> Machine {
        match stand_in.then(card::missing).flatten() {
            Some(why) => Machine::Interpreter(why),
            None => Machine::Card,
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Machine::Card => f.write_str(&card::name().unwrap_or_else(|| "no card".into())),
            Machine::Interpreter(why) => write!(f, "PTX interpreter, no card ({why})"),
        }
    }
}

/// The PTX of a plan.
pub(super) struct Kernels {
    pub(super) kernels: Vec<Arc<Code>>,
    pub(super) machine: Machine,
    pub(super) arrays: Arrays,
}

/// A kernel, and what the driver has made of it once it was launched.
pub(crate) struct Code {
    /// Its text.
    pub(super) ptx: String,
    /// It, and how it is launched.
    pub(super) compiled: ptoc_gpu::Compiled,
    /// It in the device's memory.
    pub(super) loaded: card::Loaded,
    /// It on the devices of callers.
    pub(super) devices: resident::Devices,
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").field("name", &self.compiled.kernel.name).finish_non_exhaustive()
    }
}

/// A launch whose checks on the host have passed.
pub(super) struct Ready<'a> {
    pub(super) step: &'a PlannedLaunch,
    pub(super) code: &'a Code,
    /// Its number in the plan.
    pub(super) number: usize,
    /// Dimensions, then scalars.
    pub(super) params: Vec<i64>,
    /// The grid's extents.
    pub(super) extents: Vec<i64>,
    /// Their product, which is positive.
    pub(super) blocks: u32,
}

impl<'a> Ready<'a> {
    /// Evaluates the launch function; `None` where there are no blocks.
    pub(super) fn new(
        step: &'a PlannedLaunch,
        code: &'a Code,
        number: usize,
    ) -> Result<Option<Ready<'a>>, Box<Diagnostic>> {
        let module = step.module.as_ref().expect("it was compiled");
        let params = step.params();
        let extents = match ptoc_gpu::extents(module, &params) {
            Ok(extents) => extents,
            Err(loops::eval::EvalStop::Check { check, args }) => {
                return Err(ended(step, LaunchError::Check(Failure { check, args, block: None, coords: Vec::new() })));
            }
            Err(stop) => {
                let message = format!("a bug of ptoc: the launch function stopped, {stop:?}");
                return Err(Box::new(Diagnostic::error(codes::GPU_FAILED, step.span, message)));
            }
        };
        match ptoc_abi::count(&extents) {
            Ok(0) => Ok(None),
            Ok(blocks) => Ok(Some(Ready { step, code, number, params, extents, blocks })),
            Err(e) => Err(ended(step, LaunchError::GridTooLarge(e))),
        }
    }
}

impl Ready<'_> {
    /// Whether the kernel writes this argument.
    pub(super) fn writes(&self, argument: usize) -> bool {
        self.step.kernel.tensors.values().nth(argument).is_some_and(|t| t.dir != TensorDir::In)
    }

    /// A check that has failed.
    pub(super) fn failure(&self, failure: Failure) -> Box<Diagnostic> {
        ended(self.step, LaunchError::Check(failure))
    }
}

/// Warnings of operands that bulk copies cannot bring to the tensor cores.
fn by_elements(step: &PlannedLaunch, code: &Code) -> Vec<Diagnostic> {
    let (abi, params) = (&code.compiled.abi, step.params());
    let mut found = abi.gemm.as_ref().map_or_else(Vec::new, |gemm| gemm.obstacles(&params));
    found.extend(abi.arrays.iter().filter_map(|array| array.obstacle(&params)));
    found.sort_by_key(|(tensor, _)| *tensor);
    found.dedup_by_key(|(tensor, _)| *tensor);
    let warning = |(tensor, obstacle): (u32, Obstacle)| {
        let tensor = &step.kernel.tensors[TensorId::from_u32(tensor)];
        let name = |n: u32| step.kernel.dims.values().nth(n as usize).map(|d| format!("`{}`", d.name));
        let (why, help) = match obstacle {
            Obstacle::Sparse => (
                "neither its rows nor its columns have their elements next to each other".to_owned(),
                "copy it to an array whose rows are dense".to_owned(),
            ),
            Obstacle::Turned => (
                "its elements of one byte are next to each other along the other side than k".to_owned(),
                "keep it transposed: `B: in T[N, K]`, of which `B.T.tile(k, n)` is a part".to_owned(),
            ),
            Obstacle::Stride(bytes, of) => {
                let names: Vec<String> = of.into_iter().filter_map(name).collect();
                let names = if names.is_empty() { "its rows".to_owned() } else { names.join(" times ") };
                let why = format!("its rows are {bytes} bytes apart, which is no multiple of 16");
                (why, format!("make {names} a multiple of {}, or pad the rows", 16 / tensor.dtype.size()))
            }
            Obstacle::Start(bytes) => (
                format!("it begins {bytes} bytes behind the start of the array, which is no multiple of 16"),
                "let the window begin at a multiple of 8 elements".to_owned(),
            ),
        };
        let message = format!("`{}` is loaded element by element: {why}", tensor.name);
        let d = Diagnostic::warning(codes::OPERAND_BY_ELEMENTS, tensor.span, message).with_help(help);
        if abi.cluster > 1 { d.with_note("so the blocks of a cluster share nothing in this launch") } else { d }
    };
    found.into_iter().map(warning).collect()
}

/// A warning of clusters whose blocks load everything for themselves.
fn unshared(step: &PlannedLaunch, code: &Code) -> Option<Diagnostic> {
    let abi = &code.compiled.abi;
    if step.kernel.cluster.is_empty() || abi.cluster > 1 {
        return None;
    }
    let why = match abi.gemm {
        Some(_) => "parts of an operand would be less than 8 lines, or the cluster goes along another dimension",
        None => "loads are shared in kernels that are one product on the tensor cores",
    };
    let message = format!("the blocks of a cluster of `{}` share nothing: {why}", step.kernel.name);
    Some(Diagnostic::warning(codes::CLUSTER_WITHOUT_SHARING, step.kernel.span, message))
}

/// Why a launch has not come to its end.
fn ended(step: &PlannedLaunch, error: LaunchError) -> Box<Diagnostic> {
    let module = step.module.as_ref().expect("it was compiled");
    failed(step, &step.kernel, |row| module.checks[row].id, error)
}

impl Launches for Kernels {
    fn expect(&mut self, session: &mut Session, plan: &Plan, _: &[Vec<TensorId>]) -> Result<(), Failed> {
        refuse_watched(session, plan)
    }

    fn begin(&self) {
        self.arrays.changed(|_| true);
    }

    fn fetch(
        &self,
        step: &PlannedLaunch,
        used: &mut Used<'_>,
        is: &dyn Fn(TensorSource) -> bool,
    ) -> Result<(), Box<Diagnostic>> {
        card::fetch(step, &self.arrays, used, is)
    }

    fn changed(&self, is: &dyn Fn(TensorSource) -> bool) {
        self.arrays.changed(|place| matches!(place, Place::Tensor(source) if is(source)));
    }

    fn launch(&self, launch: &mut BackendLaunch<'_, '_>) -> Result<Ending, Box<Diagnostic>> {
        let (step, number) = (launch.step, launch.number);
        let code = &self.kernels[number];
        for d in by_elements(step, code).into_iter().chain(unshared(step, code)) {
            launch.session.diagnostics.push(d);
        }
        let mine = |source: TensorSource| step.tensors.contains(&source);
        let open = !launch.unfilled.is_empty();
        let written: Vec<TensorDir> = step.kernel.tensors.values().map(|t| t.dir).collect();
        let once = |argument: usize| step.tensors.iter().filter(|s| **s == step.tensors[argument]).count() == 1;
        let whole = |argument: usize| step.windows[argument].is_none() && once(argument);
        let filled = |argument: usize| !open && written[argument] == TensorDir::Out && whole(argument);
        // Patterns of what may be left unwritten are the host's, and so is who looks for them.
        if open {
            self.fetch(step, launch.used, &mine)?;
        }
        holes::launch(launch, &|used, buffers, _| {
            if open {
                self.changed(&mine);
            }
            self.execute(number, step, &filled, false, used, buffers)?;
            if open { self.fetch(step, used, &mine) } else { Ok(()) }
        })?;
        if open {
            self.changed(&mine);
        }
        Ok(Ending::Done)
    }

    fn time(&self, launch: &mut BackendLaunch<'_, '_>) -> Result<Duration, Box<Diagnostic>> {
        // What is launched twice has to leave its arguments as they were, and what follows it.
        let again = !launch.program && launch.step.kernel.tensors.values().all(|t| t.dir != TensorDir::InOut);
        self.execute(launch.number, launch.step, &|_| false, again, launch.used, launch.buffers)
    }

    fn on_device(&self) -> Option<Arc<dyn DeviceCode>> {
        Some(Arc::new(resident::Resident::new(&self.kernels)))
    }

    fn code_bytes(&self) -> usize {
        let first = |(n, k): &(usize, &Arc<Code>)| !self.kernels[..*n].iter().any(|other| Arc::ptr_eq(other, k));
        self.kernels.iter().enumerate().filter(first).map(|(_, k)| k.ptx.len()).sum()
    }
}

impl Kernels {
    /// Evaluates the launch function, and has the machine run the blocks. The time is the kernel's there.
    fn execute(
        &self,
        number: usize,
        step: &PlannedLaunch,
        filled: &dyn Fn(usize) -> bool,
        queued: bool,
        used: &mut Used<'_>,
        buffers: &mut [Option<Tensor>],
    ) -> Result<Duration, Box<Diagnostic>> {
        let Some(ready) = Ready::new(step, &self.kernels[number], number)? else { return Ok(Duration::ZERO) };
        match self.machine {
            Machine::Card => card::run(&ready, &self.arrays, filled, queued, used, buffers),
            Machine::Interpreter(_) => interpreted::run(&ready, number as u64, used, buffers),
        }
    }
}

impl Code {
    pub(super) fn new(compiled: ptoc_gpu::Compiled, ptx: String) -> Code {
        Code { ptx, compiled, loaded: card::Loaded::default(), devices: resident::Devices::default() }
    }
}
