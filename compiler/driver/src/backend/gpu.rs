//! PTX on an NVIDIA GPU.

use super::holes::Holes;
use super::{Backend, Capabilities, Compiled, Ending, Launches, Refusal, failed, wrong_backend, wrong_stage};
use crate::launch::{Launch, Plan, Step, Used, unwritten};
use crate::session::{Failed, Session};
use crate::stages::BackendStage;
use ptoc_cuda::{Context, Driver};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_exec::LaunchError;
use ptoc_gpu::{Arguments, GPU_PASSES, Options, Refused};
use ptoc_ir::loops;
use ptoc_ir::tile::{TensorDir, TensorId};
use ptoc_isa::Target;
use ptoc_passes::Prepared;
use ptoc_passes::pipeline::Pipeline;
use ptoc_tensor::Tensor;
use std::cell::OnceCell;
use std::time::Duration;

/// The backend: loop IR to PTX, which the driver assembles, and launches on the first device.
pub(super) struct Gpu;

const STAGES: [BackendStage; 2] = [
    BackendStage { name: "loop", about: "Loop IR", plan: false, extension: None },
    BackendStage { name: "ptx", about: "PTX", plan: false, extension: Some("ptx") },
];

impl Backend for Gpu {
    fn name(&self) -> &'static str {
        "gpu"
    }

    fn about(&self) -> &'static str {
        "PTX on an NVIDIA GPU"
    }

    fn serves(&self, target: &Target) -> bool {
        target.gpu.is_some()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn pipeline(&self) -> Option<Pipeline> {
        Some(Pipeline::Loops(GPU_PASSES))
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
        match ptoc_gpu::compile(module, &Options::default()) {
            Ok(code) => Ok(ptoc_ptx::print(&code.kernel)),
            Err(refused) => session.fail(told(refused)),
        }
    }

    fn compile(&self, session: &mut Session, plan: &Plan) -> Result<Compiled, Failed> {
        let mut kernels = Vec::new();
        for step in &plan.steps {
            let begin = session.clock.now();
            let Some(module) = &step.module else {
                let d = wrong_backend(&session.target, &Gpu);
                return session.fail(d);
            };
            let compiled = ptoc_gpu::compile(module, &Options::default());
            session.clock.phase("PTX", begin);
            match compiled {
                Ok(code) => {
                    kernels.push(Code { ptx: ptoc_ptx::print(&code.kernel), compiled: code, loaded: OnceCell::new() })
                }
                Err(refused) => return session.fail(told(refused)),
            }
        }
        Ok(Compiled::Launches(Box::new(Kernels { kernels })))
    }

    fn refusal(&self, target: &Target) -> Refusal {
        let why = format!("`{}` is no GPU, and its kernels have the tiles of another machine", target.name);
        Refusal { why, instead: Some(format!("give {}", super::registry::targets_of(&Gpu))) }
    }
}

/// What has no PTX.
fn told(refused: Refused) -> Diagnostic {
    Diagnostic::error(codes::GPU_NOT_TRANSLATED, refused.span, refused.message)
        .with_note("the GPU backend has no translation for it")
        .with_help("`--backend interp` runs it")
}

/// The PTX of a plan.
struct Kernels {
    kernels: Vec<Code>,
}

/// A kernel, and what the driver has made of it once it was launched.
struct Code {
    ptx: String,
    compiled: ptoc_gpu::Compiled,
    loaded: OnceCell<Loaded>,
}

/// A kernel in the device's memory.
struct Loaded {
    module: ptoc_cuda::Module<'static>,
    /// CTAs that the device runs at once.
    ctas: u32,
}

impl Launches for Kernels {
    fn expect(&mut self, session: &mut Session, plan: &Plan, _: &[Vec<TensorId>]) -> Result<(), Failed> {
        super::refuse_watched(session, plan)
    }

    fn launch(&self, launch: &mut Launch<'_, '_>) -> Result<Ending, Box<Diagnostic>> {
        let (step, code) = (launch.step, &self.kernels[launch.number]);
        let (used, buffers) = (&mut *launch.used, &mut *launch.buffers);
        let Some(holes) = Holes::new(step, launch.unfilled) else {
            code.execute(step, used, buffers)?;
            return Ok(Ending::Done);
        };
        let before = holes.fill(used, buffers, launch.program);
        code.execute(step, used, buffers)?;
        let found = holes.found(used, buffers, &before, |used, buffers| code.execute(step, used, buffers).map(drop))?;
        for hole in found {
            launch.session.diagnostics.push(unwritten(step, &hole));
        }
        Ok(Ending::Done)
    }

    fn time(&self, launch: &mut Launch<'_, '_>) -> Result<Duration, Box<Diagnostic>> {
        self.kernels[launch.number].execute(launch.step, launch.used, launch.buffers)
    }

    fn code_bytes(&self) -> usize {
        self.kernels.iter().map(|k| k.ptx.len()).sum()
    }
}

impl Code {
    /// Copies the arrays to the device, launches, and copies back what the kernel may have written. The time is the
    /// kernel's on the device.
    fn execute(
        &self,
        step: &Step,
        used: &mut Used<'_>,
        buffers: &mut [Option<Tensor>],
    ) -> Result<Duration, Box<Diagnostic>> {
        let module = step.module.as_ref().expect("it was compiled");
        let params = step.params();
        let failure = |failure| failed(step, &step.kernel, |row| module.checks[row].id, LaunchError::Check(failure));
        let extents = match ptoc_gpu::extents(module, &params) {
            Ok(extents) => extents,
            Err(loops::eval::Stop::Check { check, args }) => {
                let first = ptoc_exec::Failure { check, args, block: None, coords: Vec::new() };
                return Err(failure(first));
            }
            Err(stop) => {
                let message = format!("a bug of ptoc: the launch function stopped, {stop:?}");
                return Err(Box::new(Diagnostic::error(codes::GPU_FAILED, step.span, message)));
            }
        };
        let blocks = match ptoc_abi::count(&extents) {
            Ok(0) => return Ok(Duration::ZERO),
            Ok(blocks) => blocks,
            Err(e) => {
                return Err(failed(step, &step.kernel, |row| module.checks[row].id, LaunchError::GridTooLarge(e)));
            }
        };
        let context = context(step)?;
        let told = |e: ptoc_cuda::Error| stopped(step, &e);
        let loaded = self.loaded(step, context)?;
        let abi = &self.compiled.abi;
        let ctas = loaded.ctas.min(blocks).max(1);
        let mut arrays = Vec::new();
        for (argument, (&source, data)) in step.tensors.iter().zip(step.kernel.tensors.values()).enumerate() {
            let tensor = used.held(source, &mut buffers[argument]);
            // What is empty has an address, too.
            let array = context.alloc(tensor.bytes().len().max(1)).map_err(told)?;
            if !tensor.bytes().is_empty() {
                array.write(tensor.bytes()).map_err(told)?;
            }
            arrays.push((array, data.dir != TensorDir::In && !tensor.bytes().is_empty()));
        }
        let status = abi.status(ctas);
        let status_at = context.alloc(status.len()).map_err(told)?;
        status_at.write(&status).map_err(told)?;
        let scratch = context.alloc((abi.scratch * u64::from(ctas)).max(1) as usize).map_err(told)?;
        let tensors: Vec<u64> = arrays.iter().map(|(a, _)| a.address()).collect();
        let arguments = abi.arguments(&Arguments {
            tensors: &tensors,
            params: &params,
            extents: &extents,
            status: status_at.address(),
            scratch: scratch.address(),
        });
        let function = loaded.module.function(&self.compiled.kernel.name, abi.shared).map_err(told)?;
        let (begin, end) = (context.event().map_err(told)?, context.event().map_err(told)?);
        begin.record().map_err(told)?;
        let launch = ptoc_cuda::Launch { ctas, threads: abi.threads, params: &arguments };
        // SAFETY: the parameters are those that this kernel was compiled for, in their order. The arrays have the lengths
        // that `Plan::new` has checked against the kernel's shapes, and lowered code stays inside them or fails a check;
        // status and scratch have the lengths that the kernel's interface asks for. All live until the synchronisation.
        unsafe { function.launch(&launch) }.map_err(told)?;
        end.record().map_err(told)?;
        context.synchronize().map_err(told)?;
        let time = end.since(&begin).map_err(told)?;
        for (argument, ((array, written), &source)) in arrays.iter().zip(&step.tensors).enumerate() {
            if *written {
                let bytes = array.read().map_err(told)?;
                let tensor = used.held(source, &mut buffers[argument]);
                let to = tensor.bytes_mut();
                to.copy_from_slice(&bytes[..to.len()]);
            }
        }
        if let Some(first) = abi.failure(&status_at.read().map_err(told)?, &extents, ctas) {
            return Err(failure(first));
        }
        Ok(Duration::from_secs_f64(f64::from(time) / 1e3))
    }

    fn loaded(&self, step: &Step, context: &'static Context<'static>) -> Result<&Loaded, Box<Diagnostic>> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let told = |e: ptoc_cuda::Error| stopped(step, &e);
        let abi = &self.compiled.abi;
        let module = context.load(&self.ptx).map_err(told)?;
        let resident = module.function(&self.compiled.kernel.name, abi.shared).map_err(told)?;
        let resident = resident.resident(abi.threads).map_err(told)?.max(1);
        let ctas = (resident * context.multiprocessors().map_err(told)?).max(1) as u32;
        Ok(self.loaded.get_or_init(|| Loaded { module, ctas }))
    }
}

/// The context of the first device. It lives as long as the process: so does what is kept on the device.
fn context(step: &Step) -> Result<&'static Context<'static>, Box<Diagnostic>> {
    thread_local! {
        static CONTEXT: OnceCell<Result<&'static Context<'static>, ptoc_cuda::Error>> = const { OnceCell::new() };
    }
    let open = || {
        let driver: &'static Driver = Box::leak(Box::new(Driver::open()?));
        let context: &'static Context<'static> = Box::leak(Box::new(Context::new(driver, 0)?));
        Ok(context)
    };
    let unavailable = |message: String| {
        let d = Diagnostic::error(codes::GPU_UNAVAILABLE, step.span, message);
        d.with_help("`--backend interp` runs the kernel without one, with the same bits")
    };
    let told = |e: ptoc_cuda::Error| Box::new(unavailable(e.message).with_help(e.code.remedy()));
    let context = CONTEXT.with(|cell| cell.get_or_init(open).clone()).map_err(told)?;
    let found = context.capability().map_err(told)?;
    // PTX for sm_90a has no forward compatibility.
    if found.0 != 9 {
        let name = context.name().unwrap_or_else(|_| "the device".into());
        let (major, minor) = found;
        let message = format!("{name} has compute capability {major}.{minor}, and sm_90 is a Hopper (9.0)");
        return Err(Box::new(unavailable(message)));
    }
    Ok(context)
}

/// What the driver says of a launch.
fn stopped(step: &Step, e: &ptoc_cuda::Error) -> Box<Diagnostic> {
    let d = Diagnostic::error(codes::GPU_FAILED, step.span, format!("the GPU has ended the launch: {}", e.message));
    Box::new(d.with_help(e.code.remedy()))
}
