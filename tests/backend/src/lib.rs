//! A small backend: it records the IR that it is given, and executes element-wise kernels with the evaluator of loop
//! IR.
//!
//! It shows what a backend has to say, and that a crate of its own is enough. The one line elsewhere is where it is
//! registered: `ptoc_driver::backend::register(RECORD)`.

#![forbid(unsafe_code)]

use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_driver::backend::{Backend, BackendRef, Compiled, Ending, Launches};
use ptoc_driver::launch::{BackendLaunch, Plan, PlannedLaunch};
use ptoc_driver::session::{Failed, Session};
use ptoc_driver::stages::BackendStage;
use ptoc_ir::loops::eval::{self, EvalStop, Memory};
use ptoc_ir::loops::{self, Module, Op, Region};
use ptoc_ir::tile::{CheckId, text};
use ptoc_isa::Target;
use ptoc_opt::copy_propagation;
use ptoc_passes::Prepared;
use ptoc_passes::pipeline::Pipeline;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard};

/// The backend, as it is registered.
pub const RECORD: BackendRef = &Record;

/// What it was given to compile, in order.
static GIVEN: Mutex<Vec<Given>> = Mutex::new(Vec::new());

/// Statements that the blocks of a launch may take.
const FUEL: u64 = 1 << 24;

/// A launch that was compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// The kernel's name.
    pub kernel: String,
    /// Its tile IR, with checks.
    pub tile_ir: String,
    /// Its loop IR.
    pub loop_ir: String,
}

/// What was compiled of kernels of this name.
pub fn given(kernel: &str) -> Vec<Given> {
    lock().iter().filter(|g| g.kernel == kernel).cloned().collect()
}

fn lock() -> MutexGuard<'static, Vec<Given>> {
    GIVEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

struct Record;

const STAGES: [BackendStage; 1] =
    [BackendStage { name: "ops", about: "Operations of loop IR, counted", plan: false, extension: None }];

impl Backend for Record {
    fn name(&self) -> &'static str {
        "record"
    }

    fn about(&self) -> &'static str {
        "Records IR and evaluates it"
    }

    fn serves(&self, target: &Target) -> bool {
        !target.is_pim()
    }

    /// Of the rewrites the one that makes element-wise kernels shorter.
    fn pipeline(&self) -> Option<Pipeline> {
        Some(Pipeline::Loops(&[copy_propagation::PASS]))
    }

    fn stages(&self) -> &'static [BackendStage] {
        &STAGES
    }

    fn emit_kernel(&self, session: &mut Session, prepared: &Prepared, stage: &BackendStage) -> Result<String, Failed> {
        let Some(module) = &prepared.module else {
            let d = ptoc_driver::backend::wrong_stage(&session.target, stage.name);
            return session.fail(d);
        };
        let mut ops = BTreeMap::new();
        count(&module.block.body, &mut ops);
        let mut out = String::new();
        for (op, n) in ops {
            let _ = writeln!(out, "{op:<10} {n}");
        }
        Ok(out)
    }

    fn compile(&self, session: &mut Session, plan: &Plan) -> Result<Compiled, Failed> {
        let mut modules = Vec::new();
        for step in &plan.steps {
            match element_wise(step) {
                Ok(module) => modules.push(module),
                Err(d) => return session.fail(*d),
            }
        }
        let given = plan.steps.iter().zip(&modules).map(|(step, module)| Given {
            kernel: step.kernel.name.to_string(),
            tile_ir: text::print(&step.kernel, text::Spans::Omit),
            loop_ir: loops::text::print(module, false),
        });
        lock().extend(given);
        Ok(Compiled::Launches(Box::new(Evaluated { modules })))
    }
}

/// The loop IR of a launch, if it is of a kernel that computes each element by itself.
fn element_wise(step: &PlannedLaunch) -> Result<Arc<Module>, Box<Diagnostic>> {
    let mut ops = BTreeMap::new();
    let module = step.module.as_ref().filter(|m| m.tensors.len() == step.tensors.len());
    if let Some(module) = module {
        count(&module.block.body, &mut ops);
    }
    let other = ["atomic", "contract", "gather", "join", "print", "reduce", "while"]
        .into_iter()
        .find(|op| ops.contains_key(op));
    match (module, other) {
        (Some(module), None) => Ok(Arc::clone(module)),
        (_, other) => {
            let why = other.map_or("uses memory of its own".to_owned(), |op| format!("has the operation `{op}`"));
            let message =
                format!("the backend `record` executes element-wise kernels, and `{}` {why}", step.kernel.name);
            Err(Box::new(Diagnostic::error(codes::BACKEND_TARGET, step.span, message)))
        }
    }
}

/// Counts the operations of a region by name.
fn count(region: &Region, ops: &mut BTreeMap<&'static str, usize>) {
    for stmt in region {
        *ops.entry(name(&stmt.op)).or_default() += 1;
        stmt.op.regions().for_each(|inner| count(inner, ops));
    }
}

fn name(op: &Op) -> &'static str {
    match op {
        Op::Load { .. } | Op::Fetch { .. } | Op::Nibble { .. } => "load",
        Op::Store { .. } => "store",
        Op::Lanes(_) => "lanes",
        Op::Check { .. } | Op::Watch(_) => "check",
        Op::For(_) | Op::If(_) | Op::Scope(_) | Op::Break(_) | Op::Continue(_) | Op::Leave(_) => "control",
        Op::While(_) => "while",
        Op::Contract(_) => "contract",
        Op::Reduce(_) => "reduce",
        Op::Gather(_) => "gather",
        Op::Atomic(_) => "atomic",
        Op::Join { .. } => "join",
        Op::Print { .. } => "print",
        _ => "arithmetic",
    }
}

/// A plan that the evaluator executes.
struct Evaluated {
    modules: Vec<Arc<Module>>,
}

impl Launches for Evaluated {
    fn launch(&self, launch: &mut BackendLaunch<'_, '_>) -> Result<Ending, Box<Diagnostic>> {
        let (step, module) = (launch.step, &self.modules[launch.number]);
        let arguments = 0..step.tensors.len();
        let tensors = arguments.clone().map(|n| step.bytes(n, launch.used, launch.buffers).to_vec()).collect();
        let mut memory = Memory { tensors, arena: vec![0; module.arena as usize] };
        evaluate(step, module, &mut memory)?;
        for (n, bytes) in arguments.zip(memory.tensors) {
            step.bytes(n, launch.used, launch.buffers).copy_from_slice(&bytes);
        }
        Ok(Ending::Done)
    }
}

/// The launch function, then the block function for every block of the grid, the last dimension fastest.
fn evaluate(step: &PlannedLaunch, module: &Module, memory: &mut Memory) -> Result<(), Box<Diagnostic>> {
    let params: Vec<i64> = step.dims.iter().copied().chain(step.scalars.iter().map(|bits| *bits as i64)).collect();
    let mut prints = Vec::new();
    let extents = eval::run(module, &module.launch, &params, memory, &mut prints, FUEL);
    let extents = extents.map_err(|stop| stopped(step, module, stop))?;
    // Where a call may run several blocks, it is told to run one.
    let lengths = if module.spread.is_empty() { 0 } else { extents.len() };
    let blocks: i64 = extents.iter().map(|n| (*n).max(0)).product();
    for block in 0..blocks {
        let (mut rest, mut coordinates) = (block, vec![0; extents.len()]);
        for (at, extent) in coordinates.iter_mut().zip(&extents).rev() {
            (*at, rest) = (rest % extent, rest / extent);
        }
        let own = params.iter().copied().chain(coordinates).chain(std::iter::repeat_n(1, lengths));
        let own: Vec<i64> = own.collect();
        eval::run(module, &module.block, &own, memory, &mut prints, FUEL)
            .map_err(|stop| stopped(step, module, stop))?;
    }
    Ok(())
}

/// Why the evaluator did not reach the end.
fn stopped(step: &PlannedLaunch, module: &Module, stop: EvalStop) -> Box<Diagnostic> {
    Box::new(match stop {
        EvalStop::Check { check, args } => {
            let check = &step.kernel.checks[CheckId::from_u32(module.checks[check as usize].id)];
            let fill = |text: String, (n, x): (usize, &i64)| text.replace(&format!("{{{n}}}"), &x.to_string());
            Diagnostic::error(check.code, check.span, args.iter().enumerate().fold(check.message.clone(), fill))
        }
        EvalStop::OutOfBounds(span) => Diagnostic::error(codes::INDEX_OUT_OF_BOUNDS, span, "an access out of bounds"),
        EvalStop::Fuel => Diagnostic::error(codes::BACKEND_TARGET, step.span, "too much for the evaluator"),
    })
}
