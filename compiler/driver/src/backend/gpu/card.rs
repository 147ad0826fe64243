//! A launch on the first device.

use super::launch::Ready;
use crate::launch::{PlannedLaunch, Used};
use ptoc_cuda::{Context, Driver, Error, Module};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_gpu::Arguments;
use ptoc_tensor::Tensor;
use std::cell::OnceCell;
use std::time::Duration;

/// A kernel in the device's memory, once it was launched.
#[derive(Default)]
pub(super) struct Loaded(OnceCell<(Module<'static>, u32)>);

/// The device's name and its driver's version, if there is one.
pub(super) fn name() -> Option<String> {
    let (driver, context) = device().ok()?;
    let version = driver.version();
    Some(format!("{}, CUDA {}.{}", context.name().ok()?, version / 1000, version % 1000 / 10))
}

/// Why no kernel can be launched here; `None` if there is a card for it.
pub(super) fn missing() -> Option<String> {
    let context = match device() {
        Ok((_, context)) => context,
        Err(e) => return Some(e.code.name().to_owned()),
    };
    other_chip(context).unwrap_or_else(|e| Some(e.code.name().to_owned()))
}

/// Copies the arrays to the device, launches, and copies back what the kernel may have written. The time is the
/// kernel's on the device.
pub(super) fn run(
    ready: &Ready<'_>,
    used: &mut Used<'_>,
    buffers: &mut [Option<Tensor>],
) -> Result<Duration, Box<Diagnostic>> {
    let Ready { step, code, params, extents, blocks } = ready;
    let context = context(step)?;
    let told = |e: Error| stopped(step, &e);
    let abi = &code.compiled.abi;
    let (module, resident) = loaded(ready, context)?;
    let ctas = (*resident).min(*blocks).max(1);
    let mut arrays = Vec::new();
    for (argument, &source) in step.tensors.iter().enumerate() {
        let tensor = used.held(source, &mut buffers[argument]);
        // What is empty has an address, too.
        let array = context.alloc(tensor.bytes().len().max(1)).map_err(told)?;
        if !tensor.bytes().is_empty() {
            array.write(tensor.bytes()).map_err(told)?;
        }
        arrays.push((array, ready.writes(argument) && !tensor.bytes().is_empty()));
    }
    let status = abi.status(ctas);
    let status_at = context.alloc(status.len()).map_err(told)?;
    status_at.write(&status).map_err(told)?;
    let scratch = context.alloc((abi.scratch * u64::from(ctas)).max(1) as usize).map_err(told)?;
    let tensors: Vec<u64> = arrays.iter().map(|(a, _)| a.address()).collect();
    let arguments = abi.arguments(&Arguments {
        tensors: &tensors,
        params,
        extents,
        status: status_at.address(),
        scratch: scratch.address(),
    });
    let function = module.function(&code.compiled.kernel.name, abi.shared).map_err(told)?;
    let (begin, end) = (context.event().map_err(told)?, context.event().map_err(told)?);
    begin.record().map_err(told)?;
    let launch = ptoc_cuda::LaunchConfig { ctas, threads: abi.threads, params: &arguments };
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
            let to = used.held(source, &mut buffers[argument]).bytes_mut();
            to.copy_from_slice(&bytes[..to.len()]);
        }
    }
    match abi.failure(&status_at.read().map_err(told)?, extents, ctas) {
        Some(first) => Err(ready.failure(first)),
        None => Ok(Duration::from_secs_f64(f64::from(time) / 1e3)),
    }
}

/// The kernel on the device, and how many CTAs of it run there at once.
fn loaded<'a>(
    ready: &Ready<'a>,
    context: &'static Context<'static>,
) -> Result<&'a (Module<'static>, u32), Box<Diagnostic>> {
    let code = ready.code;
    if let Some(loaded) = code.loaded.0.get() {
        return Ok(loaded);
    }
    let told = |e: Error| stopped(ready.step, &e);
    let abi = &code.compiled.abi;
    let module = context.load(&code.ptx).map_err(told)?;
    let function = module.function(&code.compiled.kernel.name, abi.shared).map_err(told)?;
    let resident = function.resident(abi.threads).map_err(told)?.max(1);
    let ctas = (resident * context.multiprocessors().map_err(told)?).max(1) as u32;
    Ok(code.loaded.0.get_or_init(|| (module, ctas)))
}

/// The driver, and the context of the first device. They live as long as the process: so does what is kept on the
/// device.
fn device() -> Result<(&'static Driver, &'static Context<'static>), Error> {
    type Device = (&'static Driver, &'static Context<'static>);
    thread_local! {
        static DEVICE: OnceCell<Result<Device, Error>> = const { OnceCell::new() };
    }
    let open = || {
        let driver: &'static Driver = Box::leak(Box::new(Driver::open()?));
        let context: &'static Context<'static> = Box::leak(Box::new(Context::new(driver, 0)?));
        Ok((driver, context))
    };
    DEVICE.with(|cell| cell.get_or_init(open).clone())
}

/// What the device is, if it is no Hopper: PTX for sm_90a has no forward compatibility.
fn other_chip(context: &Context<'_>) -> Result<Option<String>, Error> {
    let (major, minor) = context.capability()?;
    if major == 9 {
        return Ok(None);
    }
    let name = context.name().unwrap_or_else(|_| "the device".into());
    Ok(Some(format!("{name} has compute capability {major}.{minor}, and sm_90 is a Hopper (9.0)")))
}

/// The context, for a launch.
fn context(step: &PlannedLaunch) -> Result<&'static Context<'static>, Box<Diagnostic>> {
    let unavailable = |message: String| {
        let d = Diagnostic::error(codes::GPU_UNAVAILABLE, step.span, message);
        d.with_help("`--backend interp` runs the kernel without one, with the same bits")
    };
    let told = |e: Error| Box::new(unavailable(e.message).with_help(e.code.remedy()));
    let (_, context) = device().map_err(told)?;
    match other_chip(context).map_err(told)? {
        Some(message) => Err(Box::new(unavailable(message))),
        None => Ok(context),
    }
}

/// What the driver says of a launch.
fn stopped(step: &PlannedLaunch, e: &Error) -> Box<Diagnostic> {
    let d = Diagnostic::error(codes::GPU_FAILED, step.span, format!("the GPU has ended the launch: {}", e.message));
    Box::new(d.with_help(e.code.remedy()))
}
