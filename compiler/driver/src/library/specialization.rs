//! The code of a kernel for calls of one kind, and its launch on the caller's memory.

use super::arrays::{ArrayView, Call, Device};
use super::rebinding::Rebinding;
use super::{Callable, Report, on_large_stack};
use crate::backend::{BackendRef, DeviceCall, DeviceCode};
use crate::launch::{
    Argument, CompiledPlan, Plan, PlanStep, PlannedLaunch, Position, RunOptions, SharedLaunch, Used, Workspace,
};
use crate::session::Failed;
use ptoc_diagnostics::{Diagnostic, Diagnostics, SourceMap, Span, codes};
use ptoc_layout::Storage;
use ptoc_tensor::{DType, Tensor};
use std::fmt;
use std::sync::{Arc, Mutex};

/// A plan, and its code.
pub(super) type Made = (Plan, SpecialCode);

/// The code of a plan for any thread, as far as the backend has such.
pub(super) struct SpecialCode {
    /// On the host, by launch.
    pub shared: Option<Vec<SharedLaunch>>,
    /// On arrays of a device.
    pub device: Option<Arc<dyn DeviceCode>>,
    /// Where the tensors of a program are.
    pub workspace: Workspace,
}

/// What a kernel is compiled to for calls of one kind.
pub struct Specialization {
    plan: Plan,
    code: SpecialCode,
    backend: BackendRef,
    /// The parameter of each of the plan's arguments.
    parameters: Vec<usize>,
    /// Calls with other scalars use it, too.
    rebinding: Option<Rebinding>,
    sources: Arc<SourceMap>,
    /// What is worth a warning.
    pub warnings: Report,
    /// See [`Specialization::take_notes`].
    pub(super) notes: Mutex<Vec<String>>,
}

impl fmt::Debug for Specialization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Specialization").field("name", &self.plan.name).finish_non_exhaustive()
    }
}

impl Specialization {
    pub(super) fn new(
        (plan, code): Made,
        rebinding: Option<Rebinding>,
        callable: &Callable,
        sources: Arc<SourceMap>,
        warnings: Report,
    ) -> Specialization {
        let declared = &callable.signature().parameters;
        let number = |a: &Argument| declared.iter().position(|p| a.name == *p.name).unwrap_or(usize::MAX);
        let parameters = plan.arguments.iter().map(number).collect();
        Specialization {
            plan,
            code,
            backend: callable.backend(),
            parameters,
            rebinding,
            sources,
            warnings,
            notes: Mutex::default(),
        }
    }

    /// The launches, with shapes and dimensions.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether calls with other scalars use it, too.
    pub(super) fn rebinds(&self) -> bool {
        self.rebinding.is_some()
    }

    /// Whether a call has the scalars that it was made with.
    pub(super) fn has_values_of(&self, call: &Call) -> bool {
        self.rebinding.as_ref().is_none_or(|rebinding| rebinding.is_of(call))
    }

    /// The number, dtype and shape of each parameter that is only written, and that the call has no array for.
    pub fn missing_outputs<'s, 'c>(
        &'s self,
        call: &'c Call,
    ) -> impl Iterator<Item = (usize, DType, &'s [usize])> + use<'s, 'c> {
        let arguments = self.plan.arguments.iter().zip(&self.parameters);
        let missing = arguments.filter(|(a, n)| !a.is_input() && call.array(**n).is_none());
        missing.map(|(a, n)| (*n, a.dtype, &a.shape[..]))
    }

    /// Executes a call that has an array for each parameter that takes one, and was [specialised](Callable::specialize)
    /// for this code, but for outputs that it had not. `print` gets what kernels print.
    ///
    /// # Errors
    /// Memory that cannot be used, a check that fails, arguments that break a `where`.
    ///
    /// # Safety
    /// The memory of each array is valid for reads, and of those that are written for writes, for its shape and
    /// strides; nothing else writes to it during the call, and nothing else uses what the call writes. Elements of
    /// bools are 0 or 1.
    pub unsafe fn run(
        &self,
        callable: &Callable,
        call: &Call,
        threads: usize,
        print: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Option<Report>, Report> {
        call.check_memory(callable.signature()).map_err(|d| callable.report(*d))?;
        let views = self.views(call);
        if let Device::Cuda(device) = call.device(callable.signature()).map_err(|d| callable.report(*d))? {
            // SAFETY: the caller's promise.
            return unsafe { self.run_on(device, call.stream, &views) }.map_err(|d| self.report(*d)).map(|()| None);
        }
        let rebound = match &self.rebinding {
            Some(rebinding) if !rebinding.is_of(call) => match rebinding.step(&self.plan, call) {
                None => {
                    let exact = callable.specialize_exactly(call)?;
                    // SAFETY: the caller's promise, for code of this very call.
                    return unsafe { exact.run(callable, call, threads, print) };
                }
                some => some,
            },
            _ => None,
        };
        match &self.code.shared {
            Some(code) if self.conditions().next().is_none() => {
                // SAFETY: the caller's promise.
                let ended = unsafe { self.run_shared(code, rebound.as_ref(), &views, threads, print) };
                let left = ended.map_err(|d| self.report(*d))?;
                Ok((!left.is_empty()).then(|| Report::new(left, Arc::clone(&self.sources))))
            }
            _ => {
                let print = Mutex::new(print);
                // SAFETY: the caller's promise.
                on_large_stack(|| unsafe { self.run_session(callable, call, &views, threads, &print) })
            }
        }
    }

    /// What is worth a line, once: the stored results of tuning that it was compiled with.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *crate::lock(&self.notes))
    }

    /// The arrays of the plan's arguments.
    pub(super) fn views<'c>(&self, call: &'c Call) -> Vec<Option<&'c ArrayView>> {
        self.parameters.iter().map(|&n| call.array(n)).collect()
    }

    /// The places of what `where` says of contents, of the whole and of what it launches.
    fn conditions(&self) -> impl Iterator<Item = Span> + '_ {
        let kernels = self.plan.steps.iter().filter_map(|s| s.contents.as_ref()).flat_map(|c| &c.conditions);
        let own = self.plan.specification.conditions.iter().chain(kernels).map(|(_, at)| *at);
        own.chain(self.plan.order.iter().filter_map(PlanStep::tests_contents))
    }

    /// The texts that its diagnostics point into.
    pub(super) fn sources(&self) -> &Arc<SourceMap> {
        &self.sources
    }

    pub(super) fn report(&self, d: Diagnostic) -> Report {
        Report::of(d, Arc::clone(&self.sources))
    }

    /// How argument `n` of a kernel lies in memory, if that is not in C order.
    pub(super) fn storage(&self, n: usize) -> Option<&Storage> {
        if self.plan.program { None } else { self.plan.steps[0].storage[n].as_ref() }
    }

    /// The caller's arrays, in place.
    ///
    /// # Safety
    /// As for [`Specialization::run`], as long as the tensors live. Those of arguments with a layout are not to be
    /// used as they are.
    unsafe fn lent(&self, views: &[Option<&ArrayView>]) -> Result<Vec<Tensor>, Box<Diagnostic>> {
        let lend = |(a, view): (&Argument, &Option<&ArrayView>)| {
            let data = view.map_or(std::ptr::null_mut(), |view| view.data);
            // SAFETY: the caller's promise.
            unsafe { Tensor::lent(a.dtype, &a.shape, data) }.map_err(|e| too_large(a, &e))
        };
        self.plan.arguments.iter().zip(views).map(lend).collect()
    }

    /// Starts the launches on a device.
    ///
    /// # Safety
    /// As for [`Specialization::run`]; the arrays live until the stream is done.
    unsafe fn run_on(&self, device: i32, stream: u64, views: &[Option<&ArrayView>]) -> Result<(), Box<Diagnostic>> {
        let span = self.plan.steps.first().map_or_else(Default::default, |s| s.kernel.span);
        let refuse = |message: String, help: &str| {
            Err(Box::new(Diagnostic::error(codes::ARRAY_NOT_TAKEN, span, message).with_help(help)))
        };
        if let Some(at) = self.conditions().next() {
            let d = Diagnostic::error(codes::NOT_YET, at, "a `where` over contents is not tested on a device");
            return Err(Box::new(d.with_label("reads elements").with_help("pass arrays of the host: `x.cpu()`")));
        }
        let Some(code) = &self.code.device else {
            return refuse(format!("`{}` has no code for arrays of a device", self.plan.name), "pass `x.cpu()`");
        };
        let arguments: Vec<u64> =
            views.iter().map(|view| view.map_or(0, |view| view.data.expose_provenance() as u64)).collect();
        let call =
            DeviceCall { plan: &self.plan, workspace: &self.code.workspace, arguments: &arguments, device, stream };
        // SAFETY: shapes and strides were checked when the plan was made for calls like this one; the rest is the
        // caller's promise.
        unsafe { code.start(call) }
    }

    /// Executes the launches here and now; that of a kernel may be another one with the same arguments. Returns what
    /// they leave unwritten.
    ///
    /// # Safety
    /// As for [`Specialization::run`].
    unsafe fn run_shared(
        &self,
        code: &[SharedLaunch],
        step: Option<&PlannedLaunch>,
        views: &[Option<&ArrayView>],
        threads: usize,
        print: &mut dyn FnMut(&str),
    ) -> Result<Diagnostics, Box<Diagnostic>> {
        // SAFETY: the caller's promise. A kernel gets arguments with a layout as the buffers below; a program's are all
        // in C order.
        let mut tensors = unsafe { self.lent(views) }?;
        let mut locals = self.code.workspace.allocate(&self.plan.locals)?;
        let locals = &mut locals.tensors[..];
        let mut left = Diagnostics::default();
        if !self.plan.program {
            let step = step.unwrap_or(&self.plan.steps[0]);
            // SAFETY: the caller's promise.
            let mut buffers = unsafe { self.laid_out(views) }?;
            let mut used = Used::of(&mut tensors, locals);
            left.extend(code[0].execute((step, false), &mut used, &mut buffers, threads, print)?);
            return Ok(left);
        }
        let mut position = Position::start(&self.plan, &self.code.workspace);
        while let Some((number, step)) = position.next(None, &mut tensors, locals)? {
            let step = &*step;
            let mut used = Used::of(&mut tensors, locals);
            let mut buffers = step.buffers(&mut used)?;
            left.extend(code[number].execute((step, true), &mut used, &mut buffers, threads, print)?);
            step.collect(&mut used, &buffers);
        }
        Ok(left)
    }

    /// Arguments with a layout as buffers, which are the caller's memory: it lies as the layout says.
    ///
    /// # Safety
    /// As for [`Specialization::run`], as long as the tensors live.
    unsafe fn laid_out(&self, views: &[Option<&ArrayView>]) -> Result<Vec<Option<Tensor>>, Box<Diagnostic>> {
        let buffer = |(n, view): (usize, &Option<&ArrayView>)| {
            let Some(storage) = self.storage(n) else { return Ok(None) };
            let a = &self.plan.arguments[n];
            let length = usize::try_from(storage.len()).unwrap_or(usize::MAX);
            let data = view.map_or(std::ptr::null_mut(), |view| view.data);
            // SAFETY: the strides of the array are those of the storage, which ends with the array's last element. Of
            // what is between its elements the code writes nothing.
            unsafe { Tensor::lent(a.dtype, &[length], data) }.map(Some).map_err(|e| too_large(a, &e))
        };
        views.iter().enumerate().map(buffer).collect()
    }

    /// Executes the launches with a session, for backends and kernels that need one.
    ///
    /// # Safety
    /// As for [`Specialization::run`].
    unsafe fn run_session(
        &self,
        callable: &Callable,
        call: &Call,
        views: &[Option<&ArrayView>],
        threads: usize,
        print: &Mutex<&mut (dyn FnMut(&str) + Send)>,
    ) -> Result<Option<Report>, Report> {
        let mut session = callable.session(call)?;
        session.sources = SourceMap::new();
        let mut print = |text: &str| crate::lock(print)(text);
        // SAFETY: the caller's promise. Arguments with a layout are replaced.
        let mut tensors = unsafe { self.lent(views) }.map_err(|d| self.report(*d))?;
        // SAFETY: the caller's promise.
        let buffers = unsafe { self.laid_out(views) }.map_err(|d| self.report(*d))?;
        for (n, buffer) in buffers.iter().enumerate() {
            let (Some(buffer), Some(storage), a) = (buffer, self.storage(n), &self.plan.arguments[n]) else { continue };
            let mut own = Tensor::zeros(a.dtype, &a.shape).map_err(|e| self.report(*too_large(a, &e)))?;
            if a.is_input() {
                storage.gather(a.dtype.size(), buffer.bytes(), own.bytes_mut());
            }
            tensors[n] = own;
        }
        let mut run = || -> Result<(), Failed> {
            self.plan.check_inputs(&mut session, &tensors)?;
            let options = RunOptions { threads, ..RunOptions::default() };
            let compiled = CompiledPlan::new(&mut session, &self.plan, self.backend)?;
            compiled.run(&mut session, &mut tensors, &options, &mut print, None).map(drop)
        };
        let ended = run();
        for (n, mut buffer) in buffers.into_iter().enumerate() {
            let a = &self.plan.arguments[n];
            if let (Some(buffer), Some(storage), true) = (&mut buffer, self.storage(n), a.is_output()) {
                storage.scatter(a.dtype.size(), tensors[n].bytes(), buffer.bytes_mut());
            }
        }
        // Some back ends leave results in tensors of their own.
        for (n, view) in views.iter().enumerate() {
            let (Some(view), true, None) = (view, self.plan.arguments[n].is_output(), self.storage(n)) else {
                continue;
            };
            let bytes = tensors[n].bytes();
            if !bytes.is_empty() && !std::ptr::eq(bytes.as_ptr(), view.data) {
                // SAFETY: the caller's promise; the tensor has the argument's dtype and shape, and memory of its own.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), view.data, bytes.len()) };
            }
        }
        let found = std::mem::take(&mut session.diagnostics);
        let report = Report::new(found, Arc::clone(&self.sources));
        match ended {
            Ok(()) => Ok((!report.is_empty()).then_some(report)),
            Err(Failed) => Err(report),
        }
    }
}

pub(super) fn too_large(a: &Argument, e: &ptoc_tensor::TensorError) -> Box<Diagnostic> {
    let message = format!("argument `{}`: {e}", a.name);
    Box::new(Diagnostic::error(crate::files::code(e.code()), a.span, message))
}
