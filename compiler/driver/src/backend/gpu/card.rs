//! A launch on the first device.

use super::arrays::{Arrays, Place};
use super::launch::{Code, Ready};
use crate::launch::{PlannedLaunch, Used};
use ptoc_analysis::TensorSource;
use ptoc_cuda::{Context, Driver, Error, Matrices, Module, TensorMap};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_gpu::{Arguments, NO_FAILURE};
use ptoc_ptx::sim;
use ptoc_tensor::Tensor;
use std::cell::OnceCell;
use std::sync::OnceLock;
use std::time::Duration;

/// A kernel in the device's memory, once it was launched.
#[derive(Default)]
pub(super) struct Loaded(OnceLock<(Module<'static>, u32)>);

/// The device's name and its driver's version, if there is one.
pub(super) fn name() -> Option<String> {
    let context = device().ok()?;
    let version = context.driver_version();
    Some(format!("{}, CUDA {}.{}", context.name().ok()?, version / 1000, version % 1000 / 10))
}

/// Why no kernel can be launched here; `None` if there is a card for it.
pub(super) fn missing() -> Option<String> {
    let context = match device() {
        Ok(context) => context,
        Err(e) => return Some(e.code.name().to_owned()),
    };
    other_chip(context).unwrap_or_else(|e| Some(e.code.name().to_owned()))
}

/// Copies to the device what is newer here, launches, and leaves there what the kernel has written, but for arguments
/// with a layout of their own. `filled` are the arguments of which the kernel sees nothing that was there before. The
/// time is the kernel's on the device; with `queued`, that of a second launch, which has waited for the first: the
/// device was not idle before.
pub(super) fn run(
    ready: &Ready<'_>,
    arrays: &Arrays,
    filled: &dyn Fn(usize) -> bool,
    queued: bool,
    used: &mut Used<'_>,
    buffers: &mut [Option<Tensor>],
) -> Result<Duration, Box<Diagnostic>> {
    let Ready { step, code, params, extents, number, .. } = ready;
    let context = context(step)?;
    let told = |e: Error| stopped(step, &e);
    let abi = &code.compiled.abi;
    let (module, resident) = loaded(ready, context)?;
    let ctas = abi.ctas(*resident, extents);
    let place = |argument: usize, buffers: &[Option<Tensor>]| match buffers[argument] {
        Some(_) => Place::Laid(*number, argument),
        None => Place::Tensor(step.tensors[argument]),
    };
    let mut tensors = Vec::new();
    for (argument, &source) in step.tensors.iter().enumerate() {
        let place = place(argument, buffers);
        if let Place::Laid(..) = place {
            arrays.changed(|other| other == place);
        }
        // Of a window that is in place the whole tensor is there.
        let (bytes, begin) = match &buffers[argument] {
            Some(buffer) => (buffer.bytes(), 0),
            None => (used.get(source).bytes(), step.range(argument).start),
        };
        tensors.push(arrays.address(context, place, bytes.len()).map_err(told)? + begin as u64);
        arrays.upload(place, bytes, !filled(argument)).map_err(told)?;
    }
    let status = arrays.address(context, Place::Status, abi.status_bytes(ctas)).map_err(told)?;
    arrays.changed(|place| place == Place::Status);
    // CTAs fill their words when they fail, and then they are looked at.
    arrays.upload(Place::Status, &NO_FAILURE, true).map_err(told)?;
    let scratch_bytes = (abi.scratch * u64::from(ctas)) as usize;
    let scratch = arrays.address(context, Place::Scratch, scratch_bytes).map_err(told)?;
    let arguments = Arguments { tensors: &tensors, params, extents, status, scratch };
    let maps = tensor_maps(&abi.maps(&arguments), context).map_err(told)?;
    let arguments = abi.arguments(&arguments);
    let function = module.function(&code.compiled.kernel.name, abi.shared).map_err(told)?;
    let (begin, end) = (context.event().map_err(told)?, context.event().map_err(told)?);
    let launch = ptoc_cuda::LaunchConfig { ctas, threads: abi.threads, params: &arguments, maps: &maps };
    // SAFETY: the parameters are those that this kernel was compiled for, in their order. The arrays have the lengths
    // that `Plan::new` has checked against the kernel's shapes, and lowered code stays inside them or fails a check;
    // status and scratch have the lengths that the kernel's interface asks for. All live until the synchronisation.
    let start = || unsafe { function.launch(&launch) }.map_err(told);
    if queued {
        start()?;
    }
    begin.record().map_err(told)?;
    start()?;
    end.record().map_err(told)?;
    context.synchronize().map_err(told)?;
    let time = end.since(&begin).map_err(told)?;
    for argument in (0..step.tensors.len()).filter(|argument| ready.writes(*argument)) {
        let place = place(argument, buffers);
        arrays.written(place);
        if let Place::Laid(..) = place {
            arrays.download(place, step.bytes(argument, used, buffers)).map_err(told)?;
        }
    }
    arrays.written(Place::Status);
    let mut first = NO_FAILURE;
    arrays.download(Place::Status, &mut first).map_err(told)?;
    if first != NO_FAILURE {
        let mut status = abi.status(ctas);
        arrays.written(Place::Status);
        arrays.download(Place::Status, &mut status).map_err(told)?;
        if let Some(failure) = abi.failure(&status, extents, ctas) {
            return Err(ready.failure(failure));
        }
    }
    Ok(Duration::from_secs_f64(f64::from(time) / 1e3))
}

/// Tensor maps as the driver has them.
pub(super) fn tensor_maps(maps: &[sim::TensorMap], context: &Context<'_>) -> Result<Vec<TensorMap>, Error> {
    let map = |m: &sim::TensorMap| {
        let sim::TensorMap { base, dims, strides, tile, tf32, .. } = m.clone();
        context.tensor_map(&Matrices { tf32, base, dims, strides, tile })
    };
    maps.iter().map(map).collect()
}

/// Brings tensors back to the host.
pub(super) fn fetch(
    step: &PlannedLaunch,
    arrays: &Arrays,
    used: &mut Used<'_>,
    is: impl Fn(TensorSource) -> bool,
) -> Result<(), Box<Diagnostic>> {
    arrays.fetch(used, is).map_err(|e| stopped(step, &e))
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
    let loaded = assembled(code, context).map_err(|e| stopped(ready.step, &e))?;
    Ok(code.loaded.0.get_or_init(|| loaded))
}

/// The kernel, assembled by the driver of a device, and how many CTAs of it run there at once.
pub(super) fn assembled(code: &Code, context: &'static Context<'static>) -> Result<(Module<'static>, u32), Error> {
    let abi = &code.compiled.abi;
    let module = context.load(&code.ptx)?;
    let function = module.function(&code.compiled.kernel.name, abi.shared)?;
    let ctas = match abi.cluster {
        1 => function.resident(abi.threads)?.max(1) * context.multiprocessors()?,
        cluster => function.resident_in_clusters(abi.threads, cluster)?,
    };
    Ok((module, ctas.max(1) as u32))
}

/// The context of the first device. It lives as long as the process: so does what is kept on the device.
pub(super) fn device() -> Result<&'static Context<'static>, Error> {
    thread_local! {
        static DEVICE: OnceCell<Result<&'static Context<'static>, Error>> = const { OnceCell::new() };
    }
    let open = || {
        let driver: &'static Driver = Box::leak(Box::new(Driver::open()?));
        let context: &'static Context<'static> = Box::leak(Box::new(Context::new(driver, 0)?));
        Ok(context)
    };
    DEVICE.with(|cell| cell.get_or_init(open).clone())
}

/// What the device is, if it is no Hopper: PTX for sm_90a has no forward compatibility.
pub(super) fn other_chip(context: &Context<'_>) -> Result<Option<String>, Error> {
    let (major, minor) = context.capability()?;
    if major == 9 {
        return Ok(None);
    }
    let name = context.name().unwrap_or_else(|_| "the device".into());
    Ok(Some(format!("{name} has compute capability {major}.{minor}, and sm_90 is a Hopper (9.0)")))
}

/// The context, for a launch.
fn context(step: &PlannedLaunch) -> Result<&'static Context<'static>, Box<Diagnostic>> {
    usable(step, device())
}

/// The context of a device that runs our code.
pub(super) fn usable(
    step: &PlannedLaunch,
    context: Result<&'static Context<'static>, Error>,
) -> Result<&'static Context<'static>, Box<Diagnostic>> {
    let unavailable = |message: String| {
        let d = Diagnostic::error(codes::GPU_UNAVAILABLE, step.span, message);
        d.with_help("`--backend interp` runs the kernel without one, with the same bits")
    };
    let told = |e: Error| Box::new(unavailable(e.message).with_help(e.code.remedy()));
    let context = context.map_err(told)?;
    match other_chip(context).map_err(told)? {
        Some(message) => Err(Box::new(unavailable(message))),
        None => Ok(context),
    }
}

/// What the driver says of a launch.
pub(super) fn stopped(step: &PlannedLaunch, e: &Error) -> Box<Diagnostic> {
    let d = Diagnostic::error(codes::GPU_FAILED, step.span, format!("the GPU has ended the launch: {}", e.message));
    Box::new(d.with_help(e.code.remedy()))
}
