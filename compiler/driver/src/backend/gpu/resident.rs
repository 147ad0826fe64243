//! A plan on arrays that a caller has on a device, on the caller's stream: nothing is copied, and nothing waits but for
//! checks that have to be read.

use super::card::{self, stopped};
use super::launch::{Code, Ready};
use crate::backend::{DeviceCall, DeviceCode};
use crate::launch::{PlanStep, PlannedLaunch};
use crate::lock;
use ptoc_analysis::TensorSource;
use ptoc_cuda::{Context, Driver, Error, LaunchConfig, Module, Stream, StreamBuffer};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_gpu::{Arguments, NO_FAILURE};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// A kernel on each device where it was launched.
#[derive(Default)]
pub(super) struct Devices(Mutex<HashMap<i32, Arc<Loaded>>>);

/// A kernel in the memory of a device.
struct Loaded {
    /// There until it is dropped.
    module: Option<Module<'static>>,
    context: &'static Context<'static>,
    /// CTAs that run there at once.
    resident: u32,
}

/// The code of a plan's launches.
pub(super) struct Resident {
    kernels: Vec<Arc<Code>>,
}

impl Resident {
    pub(super) fn new(kernels: &[Arc<Code>]) -> Resident {
        Resident { kernels: kernels.to_vec() }
    }
}

/// What the host would have to wait for.
const READS: &str = "a program that reads elements between launches";

/// A launch that is in the stream, whose status is to be read.
struct Started<'a, 's> {
    ready: Ready<'a>,
    ctas: u32,
    status: StreamBuffer<'s>,
}

impl DeviceCode for Resident {
    unsafe fn start(&self, call: DeviceCall<'_>) -> Result<(), Box<Diagnostic>> {
        let Some(first) = call.plan.steps.first() else { return Ok(()) };
        let context = card::usable(first, context(call.device))?;
        let told = |e: Error| stopped(first, &e);
        // SAFETY: the stream is the caller's, of this device, and lives until the call is done.
        let stream = unsafe { context.enter(call.stream) }.map_err(told)?;
        let capturing = stream.is_capturing().map_err(told)?;
        if !capturing {
            unload_unused();
        }
        // What is refused is refused before the first launch.
        call.plan.order.iter().try_for_each(|step| self.refused(step, &call, capturing))?;
        let room = usize::try_from(call.workspace.bytes).unwrap_or(usize::MAX);
        let workspace = if room > 0 { Some(stream.alloc(room).map_err(told)?) } else { None };
        let locals = workspace.as_ref().map_or(0, StreamBuffer::address);
        if call.workspace.left.contains(&true) {
            // SAFETY: the workspace has that many bytes.
            unsafe { stream.fill(locals, &[0], room) }.map_err(told)?;
        }
        let mut started = Vec::new();
        for step in &call.plan.order {
            match step {
                PlanStep::Launch(n) => {
                    let (step, code) = (&call.plan.steps[*n], &*self.kernels[*n]);
                    let addresses = addresses(step, &call, locals);
                    let Some(ready) = Ready::new(step, code, *n)? else { continue };
                    // SAFETY: the caller's promise, and the addresses are those of its arrays and of the workspace.
                    started.extend(unsafe { launch(ready, context, call.device, &stream, &addresses) }?);
                }
                PlanStep::Fill(k) => {
                    let (local, place) = (&call.plan.locals[*k], &call.workspace.places[*k]);
                    let bits = local.fill.unwrap_or(0).to_le_bytes();
                    let width = local.dtype.size();
                    let count = (place.bytes / width as u64) as usize;
                    // SAFETY: that is the place of the tensor in the workspace.
                    unsafe { stream.fill(locals + place.offset, &bits[..width], count) }.map_err(told)?;
                }
                // Refused above.
                PlanStep::Set(..)
                | PlanStep::New(_)
                | PlanStep::Require(_)
                | PlanStep::Branch { .. }
                | PlanStep::Jump(_) => {}
            }
        }
        for started in &started {
            read_status(&stream, started)?;
        }
        Ok(())
    }
}

impl Resident {
    /// Refuses what cannot be done without the host.
    fn refused(&self, step: &PlanStep, call: &DeviceCall<'_>, capturing: bool) -> Result<(), Box<Diagnostic>> {
        match step {
            PlanStep::Launch(n) => {
                let step = &call.plan.steps[*n];
                if step.late.is_some() {
                    return Err(by_host(step.span, READS));
                }
                if capturing && self.kernels[*n].compiled.checks {
                    return Err(captured(step));
                }
                if step.windows.iter().flatten().any(|w| w.bytes.is_none()) {
                    return Err(by_host(step.span, "a window that is passed through a copy"));
                }
                if call.plan.program && step.storage.iter().any(Option::is_some) {
                    return Err(by_host(step.span, "a program whose kernel has a layout of its own for an argument"));
                }
                Ok(())
            }
            PlanStep::Fill(k) => {
                let local = &call.plan.locals[*k];
                let bits = local.fill.unwrap_or(0).to_le_bytes();
                match local.dtype.size() == 8 && bits[..4] != bits[4..] {
                    true => Err(by_host(local.span, "a `fill` of 64 bits whose halves differ")),
                    false => Ok(()),
                }
            }
            _ => Err(by_host(call.plan.steps[0].span, READS)),
        }
    }
}

/// Starts a launch. What is returned has checks.
///
/// # Safety
/// The kernel stays inside of its arrays, which have these addresses.
unsafe fn launch<'a, 's>(
    ready: Ready<'a>,
    context: &'static Context<'static>,
    device: i32,
    stream: &'s Stream<'s>,
    tensors: &[u64],
) -> Result<Option<Started<'a, 's>>, Box<Diagnostic>> {
    let step = ready.step;
    let told = |e: Error| stopped(step, &e);
    let loaded = loaded(ready.code, context, device).map_err(told)?;
    let compiled = &ready.code.compiled;
    let abi = &compiled.abi;
    let ctas = abi.ctas(loaded.resident, &ready.extents);
    let buffer = |bytes: usize| stream.alloc(bytes).map_err(told);
    let status = if compiled.checks { Some(buffer(abi.status_bytes(ctas))?) } else { None };
    if let Some(status) = &status {
        // SAFETY: it has more bytes.
        unsafe { stream.fill(status.address(), &NO_FAILURE[..1], NO_FAILURE.len()) }.map_err(told)?;
    }
    let bytes = (abi.scratch * u64::from(ctas)) as usize;
    let scratch = if bytes > 0 { Some(buffer(bytes)?) } else { None };
    let address = |b: &Option<StreamBuffer<'_>>| b.as_ref().map_or(0, StreamBuffer::address);
    let arguments = Arguments {
        tensors,
        params: &ready.params,
        extents: &ready.extents,
        status: address(&status),
        scratch: address(&scratch),
    };
    let params = abi.arguments(&arguments);
    let maps = card::tensor_maps(&abi.maps(&arguments), context).map_err(told)?;
    let module = loaded.module.as_ref().expect("it is not dropped");
    let function = module.function(&compiled.kernel.name, abi.shared).map_err(told)?;
    let config = LaunchConfig { ctas, threads: abi.threads, params: &params, maps: &maps };
    // SAFETY: the parameters are those that this kernel was compiled for, in their order; status and scratch are freed
    // in the stream's order, and the arrays are the caller's promise.
    unsafe { stream.launch(&function, &config) }.map_err(told)?;
    Ok(status.map(|status| Started { ready, ctas, status }))
}

/// Waits for a launch, and says which check has failed.
fn read_status(stream: &Stream<'_>, started: &Started<'_, '_>) -> Result<(), Box<Diagnostic>> {
    let Started { ready, ctas, status } = started;
    let told = |e: Error| stopped(ready.step, &e);
    let mut first = NO_FAILURE;
    // SAFETY: the status begins with that.
    unsafe { stream.read(status.address(), &mut first) }.map_err(told)?;
    if first == NO_FAILURE {
        return Ok(());
    }
    let abi = &ready.code.compiled.abi;
    let mut words = vec![0; abi.status_bytes(*ctas)];
    // SAFETY: it was allocated with that length.
    unsafe { stream.read(status.address(), &mut words) }.map_err(told)?;
    match abi.failure(&words, &ready.extents, *ctas) {
        Some(failure) => Err(ready.failure(failure)),
        None => Ok(()),
    }
}

/// Where the arguments of a launch are.
fn addresses(step: &PlannedLaunch, call: &DeviceCall<'_>, locals: u64) -> Vec<u64> {
    let address = |(n, source): (usize, &TensorSource)| {
        let begin = step.windows[n].as_ref().and_then(|w| w.bytes.as_ref()).map_or(0, |range| range.start as u64);
        match source {
            TensorSource::Arg(i) => call.arguments[*i] + begin,
            TensorSource::Local(k) => locals + call.workspace.places[*k].offset + begin,
        }
    };
    step.tensors.iter().enumerate().map(address).collect()
}

/// The kernel on a device.
fn loaded(code: &Code, context: &'static Context<'static>, device: i32) -> Result<Arc<Loaded>, Error> {
    let mut devices = lock(&code.devices.0);
    if let Some(known) = devices.get(&device) {
        return Ok(Arc::clone(known));
    }
    let (module, resident) = card::assembled(code, context)?;
    let loaded = Arc::new(Loaded { module: Some(module), context, resident });
    devices.insert(device, Arc::clone(&loaded));
    Ok(loaded)
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // Code is dropped anywhere, also while this thread records a graph: then a module cannot be unloaded.
        lock(&UNUSED).extend(self.module.take().map(|module| (self.context, module)));
    }
}

/// Modules whose kernels are gone, until a call that records nothing unloads them.
static UNUSED: Mutex<Vec<(&Context<'static>, Module<'static>)>> = Mutex::new(Vec::new());

fn unload_unused() {
    for (context, module) in std::mem::take(&mut *lock(&UNUSED)) {
        // SAFETY: the default stream is one of every context.
        let _entered = unsafe { context.enter(0) };
        module.unload();
    }
}

/// The primary context of a device, for all threads. It lives as long as the process.
fn context(device: i32) -> Result<&'static Context<'static>, Error> {
    static DRIVER: OnceLock<Result<Driver, Error>> = OnceLock::new();
    static CONTEXTS: Mutex<Vec<(i32, &'static Context<'static>)>> = Mutex::new(Vec::new());
    let driver = DRIVER.get_or_init(Driver::open).as_ref().map_err(Error::clone)?;
    let mut contexts = lock(&CONTEXTS);
    if let Some((_, known)) = contexts.iter().find(|(n, _)| *n == device) {
        return Ok(known);
    }
    let made: &'static Context<'static> = Box::leak(Box::new(Context::retain(driver, device)?));
    contexts.push((device, made));
    Ok(made)
}

/// Reads memory of a device, once what is in a stream before is done.
///
/// # Safety
/// The stream is one of the device, and there are so many bytes at the address.
pub(super) unsafe fn read((device, stream): (i32, u64), address: u64, bytes: &mut [u8]) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe { context(device)?.enter(stream)?.read(address, bytes) }
}

/// A launch whose checks have to be read is not recorded.
fn captured(step: &PlannedLaunch) -> Box<Diagnostic> {
    let message =
        format!("`{}` has checks that are read when it has run, and a CUDA graph records it", step.kernel.name);
    let d = Diagnostic::error(codes::GPU_FAILED, step.span, message);
    d.with_help("`ptoc check` says what is not proved; call it outside of the graph, or prove it with `where`").into()
}

/// What needs the host between launches.
fn by_host(span: Span, what: &str) -> Box<Diagnostic> {
    let d = Diagnostic::error(codes::NOT_YET, span, format!("{what} does not run on arrays of a device yet"));
    d.with_help("pass arrays of the host: `x.cpu()`").into()
}
