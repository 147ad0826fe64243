//! Kernels as functions.

use crate::arrays::{self, Refused, View};
use crate::outputs::Maker;
use crate::{errors, inspect, library, signals, threads, values};
use ptoc_diagnostics::{Diagnostic, codes, list, plural, suggest};
use ptoc_driver::defs::Definition;
use ptoc_driver::launch::Tolerance;
use ptoc_driver::library::{Argument, Call, Callable, Device, Dir, Parameter, ParameterKind, Specialization};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A kernel or program. Called with arrays it runs; called with constants alone it gives the kernel with these.
#[pyclass(module = "ptoc", frozen, weakref)]
pub struct Kernel {
    pub(crate) callable: Arc<Callable>,
}

/// The arguments of a call, and the objects that they are.
struct Given<'py> {
    call: Call,
    /// By parameter.
    objects: Vec<Option<Bound<'py, PyAny>>>,
    /// What keeps the memory of arrays.
    views: Vec<Bound<'py, PyAny>>,
    /// Constants among the arguments.
    constants: Vec<Definition>,
    maker: Option<Maker>,
    /// Where the arrays are.
    device: Device,
}

impl Kernel {
    /// A kernel.
    pub fn new(callable: Arc<Callable>) -> Kernel {
        Kernel { callable }
    }

    fn refuse(&self, py: Python<'_>, d: Diagnostic) -> PyErr {
        errors::raised(py, &self.callable.report(d))
    }

    /// `softmax(x: in T[M, N], ..)`
    fn wants(&self) -> String {
        format!("it is declared `{}`", self.callable.signature().text)
    }

    fn with(&self, py: Python<'_>, constants: Vec<Definition>) -> PyResult<Kernel> {
        let made = self.callable.with(constants).map_err(|report| errors::raised(py, &report))?;
        Ok(Kernel { callable: made })
    }

    /// The same kernel.
    fn share(&self) -> Kernel {
        Kernel { callable: Arc::clone(&self.callable) }
    }

    /// The arguments of a call, and the kernel with the constants that are among them.
    fn prepared<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(Kernel, Given<'py>)> {
        let mut given = self.arguments(py, args, out, named)?;
        let kernel = match std::mem::take(&mut given.constants) {
            none if none.is_empty() => self.share(),
            constants => self.with(py, constants)?,
        };
        given.device = given.call.device(self.callable.signature()).map_err(|d| self.refuse(py, *d))?;
        let Device::Cuda(number) = given.device else { return Ok((kernel, given)) };
        given.call.stream = given.maker.unwrap_or(Maker::Numpy).stream(py, number)?;
        let callable = kernel.callable.for_device().map_err(|report| errors::raised(py, &report))?;
        Ok((Kernel { callable }, given))
    }

    /// Refuses arrays of a device, for what works on copies here.
    fn on_host(&self, py: Python<'_>, given: &Given<'_>, what: &str) -> PyResult<()> {
        if given.device == Device::Host {
            return Ok(());
        }
        let message = format!("`{what}` works on arrays of the host, and these are on {}", given.device);
        let d = Diagnostic::global(codes::ARRAY_NOT_TAKEN, message);
        Err(self.refuse(py, d.with_help("pass `x.cpu()`; times on a device are those of `torch.cuda.Event`")))
    }

    fn constant(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Definition> {
        let Some(value) = values::constant(value)? else {
            let shown = value.repr().map_or_else(|_| "this value".to_owned(), |r| r.to_string());
            let message = format!("`{name}` is given {shown}, which is no constant");
            let d = Diagnostic::global(codes::CALL_ARGUMENTS, message);
            let help = "give a number, a dtype, a tuple of them, or a text in the language such as `\"gelu\"`";
            return Err(self.refuse(py, d.with_help(help)));
        };
        Ok(Definition { name: name.to_owned(), value })
    }

    fn put<'py>(&self, given: &mut Given<'py>, n: usize, value: Bound<'py, PyAny>) -> PyResult<()> {
        let py = value.py();
        let parameter = &self.callable.signature().parameters[n];
        if given.objects[n].is_some() {
            let message = format!("`{}` is given twice", parameter.name);
            let d = Diagnostic::error(codes::CALL_ARGUMENTS, parameter.span, message);
            return Err(self.refuse(py, d.with_help("give it by position or by name")));
        }
        if value.is_none() && (parameter.optional || !parameter.is_input()) {
            return Ok(());
        }
        let argument = if parameter.is_tensor() {
            let View { array, _owner } = match arrays::view(&value)? {
                Ok(view) => view,
                Err(refused) => return Err(self.refuse(py, not_taken(parameter, refused))),
            };
            given.views.push(_owner);
            if given.maker.is_none() {
                given.maker = Some(Maker::of(&value));
            }
            Argument::Array(array)
        } else {
            match values::scalar(&value)? {
                Some(scalar) => Argument::Scalar(scalar),
                None => return Err(self.refuse(py, no_scalar(parameter, &value))),
            }
        };
        given.call.arguments[n] = Some(argument);
        given.objects[n] = Some(value);
        Ok(())
    }

    /// The arguments of a call: inputs by position, anything by name, outputs by `out`.
    fn arguments<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Given<'py>> {
        let signature = self.callable.signature();
        let parameters = &signature.parameters;
        let mut given = Given {
            call: Call::of(signature),
            objects: parameters.iter().map(|_| None).collect(),
            views: Vec::with_capacity(parameters.len()),
            constants: Vec::new(),
            maker: None,
            device: Device::Host,
        };
        let mut inputs = parameters.iter().enumerate().filter(|(_, p)| p.is_input()).map(|(n, _)| n);
        for value in args.iter() {
            let Some(n) = inputs.next() else { return Err(self.refuse(py, self.too_many(args.len()))) };
            self.put(&mut given, n, value)?;
        }
        for (name, value) in named.into_iter().flatten() {
            let name = name.cast::<PyString>()?.to_str()?;
            match signature.parameter(name) {
                Some((n, _)) => self.put(&mut given, n, value)?,
                None if signature.is_constant(name) => given.constants.push(self.constant(py, name, &value)?),
                None => return Err(self.refuse(py, self.unknown(name))),
            }
        }
        if let Some(out) = out {
            self.outputs(&mut given, out)?;
        }
        Ok(given)
    }

    /// `out=y`, `out=(y, z)`
    fn outputs<'py>(&self, given: &mut Given<'py>, out: Bound<'py, PyAny>) -> PyResult<()> {
        let parameters = self.callable.signature().parameters.iter().enumerate();
        let open: Vec<usize> = parameters.filter(|(_, p)| p.is_output() && !p.is_input()).map(|(n, _)| n).collect();
        let py = out.py();
        let several = out.is_instance_of::<PyTuple>() || out.is_instance_of::<PyList>();
        let values: Vec<Bound<'py, PyAny>> =
            if several { out.try_iter()?.collect::<PyResult<_>>()? } else { vec![out] };
        if values.len() != open.len() {
            let name = &self.callable.signature().name;
            let message = format!(
                "`out` has {}, and `{name}` has {}",
                plural(values.len(), "array"),
                plural(open.len(), "output")
            );
            let names: Vec<&str> =
                open.iter().map(|&n| self.callable.signature().parameters[n].name.as_str()).collect();
            let mut d = Diagnostic::global(codes::CALL_ARGUMENTS, message).with_note(self.wants());
            if !names.is_empty() {
                d = d.with_help(format!("give a tuple of arrays for {}", list(names)));
            }
            return Err(self.refuse(py, d));
        }
        open.into_iter().zip(values).try_for_each(|(n, value)| self.put(given, n, value))
    }

    fn too_many(&self, count: usize) -> Diagnostic {
        let signature = self.callable.signature();
        let inputs: Vec<&str> = signature.parameters.iter().filter(|p| p.is_input()).map(|p| p.name.as_str()).collect();
        let takes = match inputs.is_empty() {
            true => "nothing".to_owned(),
            false => format!("{}: {}", plural(inputs.len(), "argument"), list(inputs.iter().copied())),
        };
        let message = format!("`{}` takes {takes} by position, and {count} are given", signature.name);
        let d = Diagnostic::global(codes::CALL_ARGUMENTS, message).with_note(self.wants());
        d.with_help("outputs are given by name or with `out=..`")
    }

    fn nothing_given(&self) -> Diagnostic {
        let signature = self.callable.signature();
        let inputs = signature.parameters.iter().filter(|p| p.is_input() && !p.optional);
        let inputs: Vec<&str> = inputs.map(|p| p.name.as_str()).collect();
        let count = plural(inputs.len(), "argument");
        let message = format!("`{}` takes {count}, and none is given", signature.name);
        let d = Diagnostic::global(codes::CALL_ARGUMENTS, message).with_note(self.wants());
        d.with_help(format!("give {}, or constants to get the kernel with these", list(inputs)))
    }

    fn unknown(&self, name: &str) -> Diagnostic {
        let signature = self.callable.signature();
        let message = format!("{} `{}` has no argument or constant `{name}`", signature.word, signature.name);
        let statics = signature.statics.iter().map(|s| s.name.as_str());
        let known = signature.parameters.iter().map(|p| p.name.as_str()).chain(statics);
        let known: Vec<&str> = known.chain(signature.dimensions.iter().map(String::as_str)).collect();
        let d = Diagnostic::global(codes::CALL_ARGUMENTS, message).with_note(self.wants());
        match suggest(name, known) {
            Some(near) => d.with_help(format!("did you mean `{near}`?")),
            None => d,
        }
    }

    /// Makes the outputs that are missing.
    fn make_outputs<'py>(&self, py: Python<'py>, given: &mut Given<'py>, code: &Specialization) -> PyResult<()> {
        let missing: Vec<_> = code.missing_outputs(&given.call).collect();
        for (n, dtype, shape) in missing {
            let parameter = &self.callable.signature().parameters[n];
            if parameter.optional {
                continue;
            }
            let made = given.maker.unwrap_or(Maker::Numpy).empty(py, dtype, shape, given.device).map_err(|e| {
                let why = e.value(py);
                let message = format!("no array can be made for `{}`, which is {dtype}: {why}", parameter.name);
                let d = Diagnostic::error(codes::ARRAY_NOT_TAKEN, parameter.span, message);
                self.refuse(py, d.with_help("give one with `out=`; for bf16 and floats of 8 bits install `ml_dtypes`"))
            })?;
            self.put(given, n, made)?;
        }
        Ok(())
    }

    /// The code for a call, compiled without Python's lock if there is none yet.
    fn code(&self, py: Python<'_>, call: &Call) -> PyResult<Arc<Specialization>> {
        let mut key = Vec::with_capacity(32);
        if let Some(known) = self.callable.known(call, &mut key) {
            return Ok(known);
        }
        let made = crate::forks::detached(py, || self.callable.specialize(call))
            .map_err(|report| errors::raised(py, &report))?;
        errors::warn(py, &made.warnings)?;
        for note in made.take_notes() {
            py.import("sys")?.getattr("stderr")?.call_method1("write", (format!("{note}\n"),))?;
        }
        Ok(made)
    }

    fn run<'py>(&self, py: Python<'py>, mut given: Given<'py>) -> PyResult<Bound<'py, PyAny>> {
        let code = self.code(py, &given.call)?;
        self.make_outputs(py, &mut given, &code)?;
        let threads = threads::of_call(py)?;
        let mut printed = String::new();
        let call = &given.call;
        let ended = signals::detached(py, || {
            let mut print = |text: &str| printed.push_str(text);
            // SAFETY: the arrays' owners are kept by `given`. That nobody else works on them meanwhile is Python's
            // usual contract for functions on arrays that release its lock.
            unsafe { code.run(&self.callable, call, threads, &mut print) }
        });
        // What was printed before a signal came is printed in any case.
        if !printed.is_empty() {
            let stdout = py.import("sys")?.getattr("stdout")?;
            stdout.call_method1("write", (printed,))?;
        }
        match ended? {
            Ok(None) => {}
            Ok(Some(report)) => errors::warn(py, &report)?,
            Err(report) => return Err(errors::raised(py, &report)),
        }
        self.results(py, given)
    }

    /// The outputs of a call: one as it is, several as a tuple; nothing where all are updated in place.
    fn results<'py>(&self, py: Python<'py>, given: Given<'py>) -> PyResult<Bound<'py, PyAny>> {
        let parameters = self.callable.signature().parameters.iter().zip(given.objects);
        let outputs = parameters.filter(|(p, _)| p.is_output() && !p.is_input());
        let mut outputs: Vec<Bound<'py, PyAny>> = outputs.filter_map(|(_, object)| object).collect();
        Ok(match outputs.len() {
            0 => py.None().into_bound(py),
            1 => outputs.remove(0),
            _ => PyTuple::new(py, outputs)?.into_any(),
        })
    }
}

/// An object that is not taken as an array.
pub fn not_taken(parameter: &Parameter, refused: Refused) -> Diagnostic {
    let message = format!("the array of `{}` {}", parameter.name, refused.why);
    Diagnostic::error(refused.code, parameter.span, message)
        .with_label(format!("declared `{}`", parameter.declared))
        .with_help(refused.help)
}

fn no_scalar(parameter: &Parameter, value: &Bound<'_, PyAny>) -> Diagnostic {
    let shown = value.repr().map_or_else(|_| "something else".to_owned(), |r| r.to_string());
    let message = format!("`{}` is a scalar, and {shown} is given", parameter.name);
    Diagnostic::error(codes::CALL_ARGUMENTS, parameter.span, message)
        .with_label(format!("declared `{}`", parameter.declared))
        .with_help("pass a number of Python or NumPy that fits 64 bits")
}

/// Constants, seconds of a launch, and when it was stored.
type StoredTuning = (BTreeMap<String, String>, f64, String);

#[pymethods]
impl Kernel {
    /// Runs the kernel on arrays, where they are, and returns its outputs: those that are given with `out=` or by name,
    /// or new ones. Called with constants alone, it returns the kernel with these.
    #[pyo3(signature = (*args, out = None, **named))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (kernel, given) = self.prepared(py, args, out, named)?;
        let needs = || kernel.callable.signature().parameters.iter().any(|p| p.is_input() && !p.optional);
        let asked = named.is_some_and(|named| !named.is_empty());
        // Without arrays only a kernel that needs none runs, and not where it is given its constants.
        if given.objects.iter().any(Option::is_some) || (!needs() && !asked) {
            return kernel.run(py, given);
        }
        if !asked {
            return Err(self.refuse(py, self.nothing_given()));
        }
        Ok(kernel.share().into_pyobject(py)?.into_any())
    }

    fn __copy__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// A kernel does not change, so it is its own copy.
    #[pyo3(signature = (_memo, /))]
    fn __deepcopy__<'py>(slf: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyRef<'py, Self> {
        slf
    }

    /// Kernels of one file with the same constants are equal.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Kernel>().is_ok_and(|other| Arc::ptr_eq(&self.callable, &other.get().callable))
    }

    fn __hash__(&self) -> usize {
        Arc::as_ptr(&self.callable).addr()
    }

    /// The text, how it is compiled, and the constants: it is compiled anew where it is read.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let of = library::parts(py, self.callable.library(), self.callable.options())?;
        let make = py.import("ptoc._pickle")?.getattr("kernel")?;
        let arguments = (of, &self.callable.signature().name, self.constants(py)?);
        Ok((make, arguments.into_pyobject(py)?.into_any()))
    }

    /// For `inspect.signature`.
    #[getter]
    fn __signature__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("ptoc._signature")?.getattr("of")?.call1((slf,))
    }

    /// The kernel with constants: values of static parameters, sizes of dimensions, capacities of the target.
    #[pyo3(signature = (**constants))]
    fn bind(&self, py: Python<'_>, constants: Option<&Bound<'_, PyDict>>) -> PyResult<Kernel> {
        let mut definitions = Vec::new();
        for (name, value) in constants.into_iter().flatten() {
            definitions.push(self.constant(py, name.cast::<PyString>()?.to_str()?, &value)?);
        }
        self.with(py, definitions)
    }

    fn __repr__(&self) -> String {
        let (of, callable) = (self.callable.signature(), &self.callable);
        let constants: Vec<String> = callable.definitions().iter().map(|d| format!("{}={}", d.name, d.value)).collect();
        let with = if constants.is_empty() { String::new() } else { format!(" with {}", constants.join(", ")) };
        format!("<ptoc.Kernel {}{with} for {} on {}>", of.text, callable.options().target, callable.backend().name())
    }

    /// What `ptoc check` says of the kernel with its constants: raises errors, and returns the text of warnings.
    fn check(&self, py: Python<'_>) -> PyResult<String> {
        inspect::check(py, &self.callable)
    }

    /// Where its tiles are in the target's memories, and when; shows itself in a notebook.
    fn mem(&self, py: Python<'_>) -> PyResult<inspect::Memory> {
        inspect::memory(py, &self.callable)
    }

    /// A stage of its compilation as text, by the names of `ptoc emit --stage`.
    #[pyo3(signature = (stage = "ir"))]
    fn ir(&self, py: Python<'_>, stage: &str) -> PyResult<String> {
        inspect::stage(py, &self.callable, stage)
    }

    /// Runs the kernel on copies of the arrays, and holds the results to its `ensures`. Returns how near each is.
    #[pyo3(signature = (*args, rtol = 0.0, atol = 0.0, **named))]
    fn verify<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        rtol: f64,
        atol: f64,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (kernel, given) = self.prepared(py, args, None, named)?;
        self.on_host(py, &given, "verify")?;
        let code = kernel.code(py, &given.call)?;
        inspect::verify(py, &kernel.callable, &code, &given.call, (rtol, atol))
    }

    /// Runs the kernel again and again on these arrays for about so many seconds, and returns how long a run takes.
    #[pyo3(signature = (*args, out = None, seconds = 0.2, **named))]
    fn bench<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<Bound<'py, PyAny>>,
        seconds: f64,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let timing = self._bench((seconds, None), args, out, named)?;
        Ok(timing.unwrap_or_else(|| py.None().into_bound(py)))
    }

    /// The same, unless a run takes longer than the limit, at which it is ended: then nothing.
    #[pyo3(signature = (how, *args, out = None, **named))]
    fn _bench<'py>(
        &self,
        how: (f64, Option<f64>),
        args: &Bound<'py, PyTuple>,
        out: Option<Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = args.py();
        let (kernel, mut given) = self.prepared(py, args, out, named)?;
        self.on_host(py, &given, "bench")?;
        let code = kernel.code(py, &given.call)?;
        kernel.make_outputs(py, &mut given, &code)?;
        inspect::bench(py, &kernel.callable, &code, &given.call, how)
    }

    /// Runs the kernel on these arrays with every combination of the constants that its `tune` lists name, and returns
    /// the fastest, for about so many seconds a configuration. The best is stored, and measured again only with
    /// `retune`.
    #[pyo3(signature = (*args, out = None, seconds = 0.2, retune = false, **named))]
    fn tune<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        out: Option<Bound<'py, PyAny>>,
        seconds: f64,
        retune: bool,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let named = named.map_or_else(|| Ok(PyDict::new(py)), |named| named.copy())?;
        py.import("ptoc._tune")?.getattr("tune")?.call1((slf, args, out, (seconds, retune), named))
    }

    /// What was stored of tuning for calls like this one: constants, seconds of a launch, and when; or nothing.
    #[pyo3(signature = (*args, out = None, **named))]
    fn _stored<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<StoredTuning>> {
        let (kernel, given) = self.prepared(py, args, out, named)?;
        let slot = kernel.callable.tuning_slot(&given.call).map_err(|report| errors::raised(py, &report))?;
        Ok(slot.and_then(|slot| slot.stored(Some(Tolerance::Rounding))).map(|r| (r.best.clone(), r.median, r.date())))
    }

    /// Stores what tuning for calls like this one has come to.
    #[pyo3(signature = (best, *args, out = None, **named))]
    fn _keep<'py>(
        &self,
        py: Python<'py>,
        best: (Vec<(String, String)>, f64, bool, usize),
        args: &Bound<'py, PyTuple>,
        out: Option<Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<()> {
        let (kernel, given) = self.prepared(py, args, out, named)?;
        let slot = kernel.callable.tuning_slot(&given.call).map_err(|report| errors::raised(py, &report))?;
        let (best, median, verified, failed) = best;
        let how = (verified.then_some(Tolerance::Rounding), failed);
        match slot.map(|slot| slot.keep(best, median, how)) {
            Some(Err(e)) => errors::warn(py, &kernel.callable.report(e.warning())),
            _ => Ok(()),
        }
    }

    /// Whether a launch on copies of the arrays is held to `ensures`; raises where the results are wrong.
    #[pyo3(signature = (*args, **named))]
    fn _holds<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<bool> {
        let (kernel, given) = self.prepared(py, args, None, named)?;
        self.on_host(py, &given, "tune")?;
        let code = kernel.code(py, &given.call)?;
        inspect::holds(py, &kernel.callable, &code, &given.call)
    }

    /// The values that `tune` lists of static parameters name, as expressions of the language.
    #[getter]
    fn tune_lists<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let lists = PyDict::new(py);
        for s in self.callable.signature().statics.iter().filter(|s| !s.tune.is_empty()) {
            lists.set_item(&s.name, &s.tune)?;
        }
        Ok(lists)
    }

    /// The defaults of the static parameters that have a `tune` list, as they are written.
    #[getter]
    fn _tune_defaults<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let defaults = PyDict::new(py);
        for s in self.callable.signature().statics.iter().filter(|s| !s.tune.is_empty()) {
            if let Some(default) = &s.default {
                defaults.set_item(&s.name, default)?;
            }
        }
        Ok(defaults)
    }

    /// The name.
    #[getter]
    fn __name__(&self) -> String {
        self.callable.signature().name.clone()
    }

    /// The comment that documents it.
    #[getter]
    fn docs(&self) -> String {
        self.callable.signature().docs.clone()
    }

    /// What it takes, in order.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let class = py.import("ptoc._results")?.getattr("Parameter")?;
        let row = |p: &Parameter| -> PyResult<Bound<'py, PyAny>> {
            let (direction, dtype, shape) = match &p.kind {
                ParameterKind::Tensor { dir, element, extents } => {
                    let direction = match dir {
                        Dir::In => "in",
                        Dir::Out => "out",
                        Dir::InOut => "inout",
                    };
                    let unknown = || vec!["...".to_owned()];
                    let shape = PyTuple::new(py, extents.clone().unwrap_or_else(unknown))?;
                    (direction, element, Some(shape))
                }
                ParameterKind::Scalar => ("in", &p.declared, None),
            };
            class.call1((&p.name, direction, dtype, shape, p.optional, &p.default))
        };
        let rows = self.callable.signature().parameters.iter().map(row).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, rows)
    }

    /// Its constants, as expressions of the language.
    #[getter]
    fn constants<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let constants = PyDict::new(py);
        for d in self.callable.definitions() {
            constants.set_item(&d.name, &d.value)?;
        }
        Ok(constants)
    }

    /// The names of its static parameters and dimensions.
    #[getter]
    fn constant_names(&self) -> Vec<&str> {
        let signature = self.callable.signature();
        let statics = signature.statics.iter().map(|s| s.name.as_str());
        statics.chain(signature.dimensions.iter().map(String::as_str)).collect()
    }

    /// The declaration.
    #[getter]
    fn signature(&self) -> String {
        self.callable.signature().text.clone()
    }
}
