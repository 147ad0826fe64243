//! From a test line of a source to results: by the reference interpreter, and as PTX by its interpreter.

use crate::bundle::{self, Array, Bundle};
use ptoc_diagnostics::Diagnostic;
use ptoc_driver::backend::INTERP;
use ptoc_driver::defs::Definition;
use ptoc_driver::launch::{
    Arrays, CompiledPlan, Locals, Plan, PlannedLaunch, RunOptions, Used, Workspace, open_arrays,
};
use ptoc_driver::session::{CompilationUnit, Session};
use ptoc_gpu::{Arguments, Compiled, GPU_PASSES, Options, compile, compile_kernel, extents};
use ptoc_ir::loops::Module;
use ptoc_ir::tile::{TensorDir, adds_floats};
use ptoc_passes::pipeline::Pipeline;
use ptoc_ptx::sim::{self, Global, SimLaunch};
use ptoc_ptx::{BodyItem, LineTable, Op, PtxKernel, Sm90};
use ptoc_syntax::Directive;
use ptoc_syntax::directive::{RunLine, Settings};
use ptoc_tensor::Tensor;
use std::path::{Path, PathBuf};

/// How PTX is executed.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Threads of a CTA.
    pub threads: u32,
    /// CTAs, at most.
    pub ctas: u32,
    /// Which order.
    pub seed: u64,
    /// The most shared memory.
    pub shared: u32,
    /// The number of the file and of the line.
    pub file: usize,
    pub line: usize,
}

impl Default for How {
    fn default() -> How {
        How { threads: 64, ctas: 3, seed: 1, shared: ptoc_gpu::MOST_SHARED, file: 0, line: 0 }
    }
}

/// What became of a line.
#[derive(Debug)]
pub enum Outcome {
    /// The same bits.
    Same,
    /// It has no translation, and why.
    Refused(String),
    /// It is for another machine.
    Elsewhere,
    /// A mistake.
    Wrong(String),
}

/// The test lines of a source that run something.
pub fn lines(path: &Path) -> Vec<(String, RunLine)> {
    lines_of(path, std::fs::read_to_string(path).expect("a source"))
}

/// The test lines of a text.
pub fn lines_of(path: &Path, text: String) -> Vec<(String, RunLine)> {
    let mut sources = ptoc_diagnostics::SourceMap::new();
    let file = sources.add(path.display().to_string(), text.as_str());
    let parsed = ptoc_syntax::parse(file, &text);
    let shown = |run: &RunLine| sources.slice(run.span).split_whitespace().collect::<Vec<_>>().join(" ");
    let runs = parsed.directives.into_iter().filter_map(|d| if let Directive::Run(run) = d { Some(run) } else { None });
    runs.map(|run| (shown(&run), run)).collect()
}

fn definitions(settings: &Settings) -> Vec<Definition> {
    let plain = settings.params.iter().map(|b| (b.name.name.to_string(), b));
    let capacities = settings.capacities.iter().map(|b| (format!("capacity.{}", b.name.name), b));
    plain.chain(capacities).map(|(name, b)| Definition { name, value: b.value.to_string() }).collect()
}

/// Runs a line both ways.
pub fn run(path: &Path, run: &RunLine, how: How) -> Outcome {
    match attempt(path, run, how) {
        Ok(outcome) => outcome,
        Err(message) => Outcome::Wrong(message),
    }
}

/// What is made of a line before it is run.
pub fn plan(path: &Path, run: &RunLine) -> Result<(Session, Plan, Vec<Tensor>), String> {
    plan_for(path, run, target(run))
}

/// The target that a line names.
fn target(run: &RunLine) -> &str {
    run.settings.target.as_ref().map_or("a2a3", |t| t.name.as_str())
}

fn plan_for(path: &Path, run: &RunLine, target: &str) -> Result<(Session, Plan, Vec<Tensor>), String> {
    let (mut session, plan, mut arrays) = bound_for(path, run, target)?;
    let seed = run.settings.seed.map_or(0, |(seed, _)| seed);
    let Ok(before) = plan.tensors(&mut session, &mut arrays, seed) else { return Err(said(&session)) };
    Ok((session, plan, before))
}

fn said(session: &Session) -> String {
    session.diagnostics.iter().filter(|d| d.is_error()).map(|d| d.message.clone()).collect::<Vec<_>>().join("; ")
}

/// The launches of a line, and the arrays that it names.
pub fn bound(path: &Path, run: &RunLine) -> Result<(Session, Plan, Arrays), String> {
    bound_for(path, run, target(run))
}

fn bound_for(path: &Path, run: &RunLine, target: &str) -> Result<(Session, Plan, Arrays), String> {
    let mut session = Session::new(target, &definitions(&run.settings)).map_err(|d| d.message)?;
    // Whatever the target, but one whose kernels have no loops.
    if session.pipeline != Pipeline::Placed {
        session.pipeline = Pipeline::Loops(GPU_PASSES);
    }
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let unit: CompilationUnit = session.load_text(path, text);
    let entry = unit.entry(Some(&run.kernel.name), "run").map_err(|d| d.message)?;
    session.check_definitions(&[entry], &unit);
    let directory = path.parent().unwrap_or(Path::new(""));
    let files: Vec<(String, PathBuf)> =
        run.inputs.iter().map(|b| (b.name.name.to_string(), directory.join(b.value.as_str()))).collect();
    let Ok(arrays) = open_arrays(&mut session, &entry, "", &files) else { return Err(said(&session)) };
    let Ok(plan) = Plan::new(&mut session, &unit, &entry, &arrays, true) else { return Err(said(&session)) };
    Ok((session, plan, arrays))
}

fn attempt(path: &Path, run: &RunLine, how: How) -> Result<Outcome, String> {
    let (mut session, plan, before) = plan(path, run)?;
    if session.target.has_units() {
        return Ok(Outcome::Elsewhere);
    }
    let mut compiled = Vec::new();
    for step in &plan.steps {
        let module = lowered(step);
        match compile(&module, &Options { threads: Some(how.threads), shared: how.shared }) {
            Ok(mut code) => {
                code.kernel = read_again(&code.kernel)?;
                keep(&module);
                compiled.push((module, code));
            }
            Err(refused) => return Ok(Outcome::Refused(refused.to_string())),
        }
    }
    agree(&mut session, &plan, &compiled, (before, how))
}

/// Runs a line for tensor cores, if it is for a target of the language and none in particular, and has kernels on them.
/// Their sums are the interpreter's then.
pub fn run_on_unit(path: &Path, run: &RunLine, how: How) -> Result<Option<usize>, String> {
    if run.settings.target.is_some() || !run.settings.capacities.is_empty() {
        return Ok(None);
    }
    // What does not fit there is told by other tests.
    let Ok((mut session, plan, before)) = plan_for(path, run, "sm90") else { return Ok(None) };
    session.exact = false;
    let mut compiled = Vec::new();
    let mut multiply = 0;
    for step in &plan.steps {
        let module = lowered(step);
        let code = compile_kernel(&step.kernel, &session.target, &module, false, &Options::default());
        let mut code = code.map_err(|refused| refused.to_string())?;
        code.kernel = read_again(&code.kernel)?;
        multiply += usize::from(code.kernel.insts().any(|i| matches!(i.op, Op::Sm90(Sm90::Wgmma(_)))));
        compiled.push((module, code));
    }
    if multiply == 0 {
        return Ok(None);
    }
    match agree(&mut session, &plan, &compiled, (before, how))? {
        Outcome::Same => Ok(Some(multiply)),
        other => Err(format!("{other:?}")),
    }
}

/// Whether the interpreter and PTX have the same results of a plan.
fn agree(
    session: &mut Session,
    plan: &Plan,
    compiled: &[(Module, Compiled)],
    (before, how): (Vec<Tensor>, How),
) -> Result<Outcome, String> {
    let interp = CompiledPlan::new(session, plan, INTERP).map_err(|_| "no interpreter".to_owned())?;
    let mut want = before.clone();
    let ran = interp.run(session, &mut want, &RunOptions::default(), &mut |_| {}, None);
    let mut got = before;
    let mut locals = filled(plan).map_err(|d| d.message.clone())?;
    let result = execute(plan, compiled, &mut got, &mut locals.tensors, how);
    match (ran.is_ok(), result) {
        (true, Ok(())) => {}
        (false, Err(End::Check(_))) => return Ok(Outcome::Same),
        (false, Ok(_)) => return Err("the interpreter stopped, PTX did not".into()),
        (_, Err(End::Check(message) | End::Fault(message))) => return Err(message),
    }
    for (a, (want, got)) in plan.arguments.iter().zip(want.iter().zip(&got)) {
        if a.is_output()
            && let Some(difference) = difference(want, got)
        {
            return Err(format!("`{}`: {difference}", a.name));
        }
    }
    Ok(Outcome::Same)
}

/// A kernel as its text says it, which prints as the same text. What it is made for is not in the text.
fn read_again(kernel: &PtxKernel) -> Result<PtxKernel, String> {
    let text = ptoc_ptx::print(kernel);
    let mut again = ptoc_ptx::parse(&text).map_err(|e| format!("its text is not read: {e}"))?;
    ptoc_ptx::verify(&again).map_err(|e| format!("what is read of its text: {e}"))?;
    let printed = ptoc_ptx::print(&again);
    if let Some((read, written)) = printed.lines().zip(text.lines()).find(|(read, written)| read != written) {
        return Err(format!("`{written}` is read as `{read}`"));
    }
    for (again, item) in again.body.iter_mut().zip(&kernel.body) {
        if let (BodyItem::Inst(again), BodyItem::Inst(inst)) = (again, item) {
            again.site = inst.site;
        }
    }
    Ok(again)
}

/// Writes the text of a kernel, as a launch on a card has it, into the folder that `PTX_DUMP` names, if it names one:
/// for `ptxas`.
fn keep(module: &Module) {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let Some(folder) = std::env::var_os("PTX_DUMP") else { return };
    let code = compile(module, &Options::default()).expect("it has been translated for fewer threads");
    let mut lines = LineTable::default();
    (1..).zip(&code.sites).for_each(|(line, _)| lines.push("kernel.tile", line, 1));
    let text = ptoc_ptx::print_with_lines(&code.kernel, &lines);
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let name = format!("{}_{:016x}.ptx", code.kernel.name, hasher.finish());
    std::fs::write(Path::new(&folder).join(name), text).expect("a folder to write to");
}

/// The loop IR of a step, which [`plan`] prepares for the GPU's backend.
pub fn lowered(step: &PlannedLaunch) -> Module {
    (**step.module.as_ref().expect("targets of PTO have loop IR")).clone()
}

/// Why a launch as PTX did not end well.
pub enum End {
    /// A check failed.
    Check(String),
    /// It did what no kernel may do.
    Fault(String),
}

/// Runs all launches of a plan as PTX.
/// The tensors of a program, each in memory of its own, with what they begin with.
fn filled(plan: &Plan) -> Result<Locals, Box<Diagnostic>> {
    let mut locals = Workspace::separate(&plan.locals).allocate(&plan.locals)?;
    for (local, tensor) in plan.locals.iter().zip(&mut locals.tensors) {
        (0..tensor.len()).for_each(|i| tensor.set_bits(i, local.fill.unwrap_or(0)));
    }
    Ok(locals)
}

pub fn execute(
    plan: &Plan,
    compiled: &[(Module, Compiled)],
    tensors: &mut [Tensor],
    locals: &mut [Tensor],
    how: How,
) -> Result<(), End> {
    for (number, (step, (module, code))) in plan.steps.iter().zip(compiled).enumerate() {
        let params = step.params();
        let extents = extents(module, &params).map_err(|stop| End::Check(format!("the launch: {stop:?}")))?;
        let blocks = ptoc_abi::count(&extents).map_err(|e| End::Check(e.to_string()))?;
        if blocks == 0 {
            continue;
        }
        let mut used = Used::of(tensors, locals);
        let mut buffers = step.buffers(&mut used).map_err(|d| End::Check(d.message.clone()))?;
        let n = step.tensors.len();
        let ctas = if adds_floats(&step.kernel) { 1 } else { blocks.min(how.ctas).next_multiple_of(code.abi.cluster) };
        let mut global = Global::default();
        let mut addresses = Vec::new();
        for k in 0..n {
            let mut bytes = step.bytes(k, &mut used, &mut buffers).to_vec();
            // Words around the last bytes are there.
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            addresses.push(global.add(bytes));
        }
        let before = global.buffers.clone();
        let status = global.add(code.abi.status(ctas));
        let scratch = global.add(vec![0xa5; (u64::from(ctas) * code.abi.scratch) as usize]);
        let arguments = Arguments { tensors: &addresses, params: &params, extents: &extents, status, scratch };
        let mut passed = code.abi.arguments(&arguments);
        passed.extend(code.abi.maps(&arguments).into_iter().map(|map| global.add_map(map)));
        let launch = SimLaunch {
            kernel: &code.kernel,
            ctas,
            shared: code.abi.shared,
            params: &passed,
            seed: how.seed,
            fuel: 1 << 32,
            races: true,
            aligned: true,
            keep_nan: false,
        };
        sim::run(&launch, &mut global).map_err(|fault| {
            let site = fault.at.as_ref().map(|at| code.sites[at.2 as usize]);
            End::Fault(format!("{fault} ({site:?})"))
        })?;
        if let Some(failure) = code.abi.failure(&global.buffers[n], &extents, ctas) {
            return Err(End::Check(format!("{failure:?}")));
        }
        if let Some(root) = bundle::folder() {
            let written = |k: &usize| step.kernel.tensors.values().nth(*k).is_some_and(|t| t.dir != TensorDir::In);
            let expect = (0..n).filter(written).map(|k| (k, global.buffers[k].clone(), step.dtype(k)));
            let name = format!("{}_{}_{}_{number}", how.file, how.line, plan.name);
            let bundle = Bundle {
                name,
                module,
                params: &params,
                extents: &extents,
                arrays: before.into_iter().map(Array::Bytes).collect(),
                expect: expect.collect(),
                in_order: adds_floats(&step.kernel),
            };
            bundle::write(&root, &bundle);
        }
        for k in 0..n {
            if step.kernel.tensors.values().nth(k).is_some_and(|t| t.dir != TensorDir::In) {
                let place = step.bytes(k, &mut used, &mut buffers);
                place.copy_from_slice(&global.buffers[k][..place.len()]);
            }
        }
        step.collect(&mut used, &buffers);
    }
    Ok(())
}

/// Where two tensors first differ; one NaN is as good as another.
pub fn difference(want: &Tensor, got: &Tensor) -> Option<String> {
    let nan = |t: &Tensor, i: usize| t.dtype().is_float() && t.get_f64(i).is_nan();
    let differs = |&i: &usize| want.get_bits(i) != got.get_bits(i) && !(nan(want, i) && nan(got, i));
    let at = (0..want.len()).find(differs)?;
    let count = (0..want.len()).filter(differs).count();
    let show = |t: &Tensor| ptoc_tensor::scalar::format_bits(t.dtype(), t.get_bits(at));
    let place = want.unravel(at);
    Some(format!("{count} of {} elements, first {place:?}: {} and {}", want.len(), show(want), show(got)))
}

/// The sources of `examples`, in order.
pub fn examples() -> Vec<PathBuf> {
    sources("../../examples")
}

/// Those of `tests/language`.
pub fn language() -> Vec<PathBuf> {
    sources("../../tests/language")
}

fn sources(folder: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(folder).expect("examples").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == "tile")).collect();
    files.sort();
    files
}

/// Runs on a stack that the front end may recurse on.
pub fn with_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(128 << 20).spawn_scoped(scope, f).expect("a thread");
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
